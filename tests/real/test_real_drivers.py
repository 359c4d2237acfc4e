"""Three real NVIDIA drivers, unpacked and put in front of the loader without their module.

Every expectation is asked of somebody else: the package for its version, NVML and nvidia-smi for
what they say, libcuda for the CUDA it runs, PyTorch for what it thinks of that libcuda.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from envaudit.derive import derive
from envaudit.matrix import Matrices
from envaudit.model import Fact
from envaudit.snapshot import load
from tests.real import parts
from tests.real.parts import Driver, driver, envaudit, failures, gaps, snapshot, values

pytestmark = pytest.mark.real

BRANCHES = ("470", "535", "550")

NVML = """
import json, pynvml
try:
    pynvml.nvmlInit()
except pynvml.NVMLError as error:
    print(json.dumps(pynvml.nvmlErrorString(error.value)))
"""

LIBCUDA = """
import ctypes, json
libcuda, version = ctypes.CDLL("libcuda.so.1"), ctypes.c_int()
assert libcuda.cuDriverGetVersion(ctypes.byref(version)) == 0
print(json.dumps(f"{version.value // 1000}.{version.value % 1000 // 10}"))
"""

TORCH = """
import json, torch
said = {"available": torch.cuda.is_available(), "error": ""}
try:
    torch.zeros(1, device="cuda")
except (RuntimeError, AssertionError) as error:
    said["error"] = str(error)
print(json.dumps(said))
"""


@pytest.fixture(autouse=True, scope="module")
def clean_dev() -> Iterator[None]:
    """Take away what the software that is asked here puts into /dev as root."""
    before = set(os.listdir("/dev"))
    yield
    for name in set(os.listdir("/dev")) - before:
        if name.startswith("nvidia"):
            os.unlink(f"/dev/{name}")


@pytest.fixture(params=BRANCHES)
def each(request: pytest.FixtureRequest) -> Driver:
    return driver(str(request.param))


def test_the_parts_are_those_that_are_meant() -> None:
    assert [driver(branch).version.split(".")[0] for branch in BRANCHES] == list(BRANCHES)


def test_a_driver_is_read_as_what_it_is(each: Driver) -> None:
    seen = snapshot("--python", sys.executable, env=each.env)
    cuda, nvml = each.file("libcuda"), each.file("libnvidia-ml")
    assert values(
        seen,
        "driver.libcuda.path",
        "driver.libcuda.version",
        "driver.libcuda.stub",
        "driver.libnvml.path",
        "driver.libnvml.version",
        "driver.library.version",
        "driver.compat.version",
        "driver.module.loaded",
    ) == {
        "driver.libcuda.path": cuda,
        "driver.libcuda.version": each.version,
        "driver.libcuda.stub": False,
        "driver.libnvml.path": nvml,
        "driver.libnvml.version": each.version,
        "driver.library.version": each.version,
        "driver.module.loaded": False,
    }
    assert seen["facts"]["driver.libcuda.path"]["source"] == "LD_LIBRARY_PATH"
    assert f"{cuda} {each.version}" in seen["facts"]["driver.library.copies"]["value"]


def test_nvml_and_nvidia_smi_are_quoted(each: Driver) -> None:
    seen = snapshot("--python", sys.executable, env=each.env)
    nvml = parts.as_json(parts.output([sys.executable, "-c", NVML], each.env))
    smi = parts.run(["nvidia-smi"], each.env)
    assert smi.code != 0
    assert values(seen, "nvml.status", "smi.status") == {
        "nvml.status": nvml,
        "smi.status": next(line.strip() for line in smi.out.splitlines() if line.strip()),
    }
    assert nvml == "Driver Not Loaded"
    assert {probe["name"]: probe["status"] for probe in seen["probes"]}["nvml"] == "ok"


def test_what_an_unloaded_driver_cannot_tell_is_not_made_up(each: Driver) -> None:
    seen = snapshot("--python", sys.executable, env=each.env)
    silent = (
        "driver.version",
        "driver.cuda.version",
        "driver.module.version",
        "driver.install_method",
        "gpu.count",
    )
    assert values(seen, *silent) == {}
    why = gaps(seen)
    assert "Driver Not Loaded" in why["driver.version"]
    assert each.file("libnvidia-ml") in why["driver.install_method"]
    assert not [name for name in seen["facts"] if name.startswith("gpu.0.")]


def test_the_branch_tells_the_cuda_that_libcuda_runs(each: Driver) -> None:
    said = parts.as_json(parts.output([sys.executable, "-c", LIBCUDA], each.env))
    seen = snapshot("--python", sys.executable, env=each.env)
    derived = derive(load(json.dumps(seen).encode(), "look"), Matrices())
    answer = derived.ask("driver.cuda.version")
    assert isinstance(answer, Fact)
    assert (answer.value, answer.confidence) == (said, "high")
    assert answer.source.startswith("derived: ")


def test_the_verdict_on_a_cuda_build_is_that_of_torch(each: Driver) -> None:
    python = parts.torch_cuda()
    said = parts.as_json(parts.output([python, "-Wignore", "-c", TORCH], each.env))
    assert said["available"] is False
    assert "driver on your system is too old (found version" in said["error"]

    done = envaudit("check", "--python", python, "--format", "json", env=each.env)
    assert done.code == 2, done.err
    assert failures(done.json) == {"cuda-driver/minimum": "driver-too-old"}
    (finding,) = [f for f in done.json["findings"] if f["rule"] == "cuda-driver/minimum"]
    assert each.version in finding["title"]
    told = {evidence["fact"]: evidence for evidence in finding["evidence"]}
    assert told["driver.version"]["value"] == each.version
    assert told["driver.version"]["source"].startswith("derived: driver.library.version")
    assert finding["fix"]


def test_a_cpu_build_has_no_quarrel_with_an_old_driver(each: Driver) -> None:
    python = parts.torch_cpu()
    said = parts.as_json(parts.output([python, "-Wignore", "-c", TORCH], each.env))
    assert "not compiled with CUDA" in said["error"]
    done = envaudit("check", "--python", python, "--format", "json", env=each.env)
    assert failures(done.json) == {}
    assert done.code == 0


@pytest.mark.parametrize(
    ("version", "code", "cause"),
    [("470.256.02", 2, {"driver-too-old"}), ("535.309.01", 2, {"driver-too-old"})]
    + [("550.163.01", 2, {"driver-too-old"}), ("580.65.06", 0, set())],
)
def test_the_same_verdict_from_a_flat_file(
    tmp_path: Path, version: str, code: int, cause: set[str]
) -> None:
    file = tmp_path / "flat.json"
    file.write_text(json.dumps({"driver.version": version, "torch.version": "2.14.1+cu130"}))
    done = envaudit("check", str(file), "--format", "json")
    assert done.code == code, done.err
    assert set(failures(done.json).values()) == cause


def test_another_drivers_libcuda_in_front_decides(tmp_path: Path) -> None:
    """libcuda of 470 alone before all of 550: torch asks the first, and so must the verdict."""
    front, behind = driver("470"), driver("550")
    tmp_path.joinpath("libcuda.so.1").symlink_to(front.file("libcuda"))
    env = behind.env | {"LD_LIBRARY_PATH": f"{tmp_path}:{behind.libraries}"}
    python = parts.torch_cuda()
    said = parts.as_json(parts.output([python, "-Wignore", "-c", TORCH], env))
    assert "found version 11040" in said["error"]

    seen = snapshot("--python", python, env=env)
    assert values(seen, "driver.libcuda.version", "driver.libnvml.version") == {
        "driver.libcuda.version": front.version,
        "driver.libnvml.version": behind.version,
    }
    done = envaudit("check", "--python", python, "--format", "json", env=env)
    assert done.code == 2
    assert "cuda-driver/minimum-libcuda" in failures(done.json)
    # A build that both of them run.
    flat = tmp_path / "flat.json"
    facts = values(seen, "driver.libcuda.version", "driver.libcuda.path", "driver.library.version")
    flat.write_text(json.dumps({**facts, "torch.version": "2.4.1+cu118"}))
    assert envaudit("check", str(flat)).code == 0


def test_a_libcuda_alone_decides_too(tmp_path: Path) -> None:
    """As in an image that has libcuda and nothing else of a driver."""
    only = driver("535")
    tmp_path.joinpath("libcuda.so.1").symlink_to(only.file("libcuda"))
    env = parts.environment(LD_LIBRARY_PATH=str(tmp_path))
    python = parts.torch_cuda()
    said = parts.as_json(parts.output([python, "-Wignore", "-c", TORCH], env))
    assert "found version 12020" in said["error"]
    done = envaudit("check", "--python", python, "--format", "json", env=env)
    assert done.code == 2
    assert failures(done.json) == {"cuda-driver/minimum-libcuda": "driver-too-old"}


def test_the_first_of_two_drivers_on_the_path_is_taken() -> None:
    first, second = driver("535"), driver("470")
    env = first.env | {"LD_LIBRARY_PATH": f"{first.libraries}:{second.libraries}"}
    seen = snapshot("--python", sys.executable, env=env)
    assert values(seen, "driver.libcuda.path") == {"driver.libcuda.path": first.file("libcuda")}
    assert seen["facts"]["driver.library.copies"]["value"][:2] == [
        f"{first.file('libcuda')} {first.version}",
        f"{second.file('libcuda')} {second.version}",
    ]


def test_a_driver_that_went_is_what_a_diff_names(tmp_path: Path) -> None:
    """The same machine before and after a downgrade of the driver's libraries."""
    files = []
    for branch in ("550", "470"):
        files.append(str(tmp_path / f"{branch}.json"))
        env = driver(branch).env
        done = envaudit("snapshot", "--python", parts.torch_cpu(), "-o", files[-1], env=env)
        assert done.code == 0, done.err
    done = envaudit("diff", *files, "--format", "json", "--exit-code")
    assert done.code == 1, done.err
    changes = {change["fact"]: change for change in done.json["changes"]}
    change = changes["driver.library.version"]
    assert (change["before"], change["after"]) == (driver("550").version, driver("470").version)
    assert change["kind"] == "downgraded"


def test_a_look_makes_no_device_node() -> None:
    """NVML, nvidia-smi and libcuda make one when root runs them, although no driver is loaded."""
    env = driver("535").env
    alone = (
        "mount -t tmpfs tmpfs /dev && mknod -m 666 /dev/null c 1 3 && mknod -m 666 /dev/zero c 1 5"
        ' && mknod -m 666 /dev/urandom c 1 9 && "$@" >/dev/null && ls /dev'
    )

    def left_by(*argv: str) -> list[str]:
        command = ["unshare", "--mount", "sh", "-c", alone, "sh", *argv]
        return [n for n in parts.output(command, env).split() if n.startswith("nvidia")]

    assert left_by(sys.executable, "-c", NVML) == ["nvidiactl"], "needs root to be shown"
    assert left_by(sys.executable, "-m", "envaudit", "snapshot", "-o", "-") == []
