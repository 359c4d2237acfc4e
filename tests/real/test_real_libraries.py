"""The libraries probe against what a real PyTorch CUDA build loads on this machine.

Needs ENVAUDIT_TORCH_CUDA_PYTHON: the interpreter of an environment with a CUDA build of torch.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from envaudit.collect import collect
from envaudit.host import Host
from envaudit.libversion import family_of
from envaudit.loader import Files, Process
from envaudit.probes import PROBES
from envaudit.target import find_target
from tests.probing import Told, probe

pytestmark = pytest.mark.real

MAPS = """
print(json.dumps(sorted({line.split(None, 5)[5].strip() for line in open("/proc/self/maps")
                         if ".so" in line})))
"""


@pytest.fixture(scope="module")
def python() -> str:
    path = os.environ.get("ENVAUDIT_TORCH_CUDA_PYTHON", "")
    assert path, "set ENVAUDIT_TORCH_CUDA_PYTHON to the python of an environment with a CUDA torch"
    return path


def packages(python: str) -> str:
    done = subprocess.run(
        [
            python,
            "-Ic",
            "import torch, os; print(os.path.dirname(os.path.dirname(torch.__file__)))",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def loaded(python: str, code: str, **env: str) -> list[str]:
    """Real paths of the libraries that the interpreter has mapped after `code`."""
    done = subprocess.run(
        [python, "-Wignore", "-c", f"import ctypes, json\n{code}\n{MAPS}"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **env},
    )
    return list(json.loads(done.stdout.splitlines()[-1]))


def mapped(python: str, code: str, **env: str) -> dict[str, str]:
    """Name to path of those of the CUDA stack."""
    paths = loaded(python, code, **env)
    return {p.rsplit("/", 1)[1]: p for p in paths if family_of(p.rsplit("/", 1)[1])}


def told(python: str, **env: str) -> Told:
    host = Host(env={**os.environ, **env})
    return probe("libraries", host, target=find_target(host, python))


def test_every_library_that_torch_maps_is_named(python: str) -> None:
    real = mapped(python, "import torch")
    assert len(real) > 10
    said = told(python)
    assert {name: said.facts.get(f"lib.{name}.path") for name in real} == real
    assert all(f"lib.{name}.version" in said.facts for name in real)
    assert not said.gaps


def test_what_is_named_beyond_that_is_opened_later(python: str) -> None:
    real = mapped(python, "import torch")
    names = {n[4:-5] for n in told(python).facts if n.startswith("lib.") and n.endswith(".path")}
    assert all(
        n.startswith(("libcudnn_", "libnvrtc-builtins", "libcusolver")) for n in names - set(real)
    )


def test_a_toolkit_on_the_library_path_shadows_nothing_that_torch_loads(
    python: str, tmp_path: Path
) -> None:
    """Copies of some of its own libraries, in a folder on LD_LIBRARY_PATH."""
    said = told(python)
    for name in ("libcudart", "libcupti", "libcudnn"):
        path = next(
            str(value)
            for fact, value in said.facts.items()
            if fact.startswith(f"lib.{name}.so") and fact.endswith(".path")
        )
        shutil.copy(path, tmp_path)
    env = {"LD_LIBRARY_PATH": str(tmp_path)}
    real = mapped(python, "import torch", **env)
    again = told(python, **env)
    assert {name: again.facts.get(f"lib.{name}.path") for name in real} == real


def test_a_wheel_with_runpath_is_shadowed(python: str, tmp_path: Path) -> None:
    """libcusparse finds its libnvJitLink by RUNPATH: LD_LIBRARY_PATH wins, as in real life."""
    said = told(python)
    facts = {n: str(v) for n, v in said.facts.items() if n.endswith(".path")}
    jitlink = next(path for n, path in facts.items() if n.startswith("lib.libnvJitLink.so"))
    cusparse = next(path for n, path in facts.items() if n.startswith("lib.libcusparse.so"))
    shutil.copy(jitlink, tmp_path)
    for path in ("", str(tmp_path)):
        env = {"LD_LIBRARY_PATH": path}
        real = mapped(python, f"ctypes.CDLL({cusparse!r})", **env)
        process = Process(Files(Host(env={**os.environ, **env})), python)
        process.open(cusparse)
        mine = {one.name: os.path.realpath(one.path) for one in process.loaded}
        assert {name: mine.get(name) for name in real} == real
        assert len(real) == 2


@pytest.mark.parametrize("preload", [False, True])
def test_the_whole_of_libtorch_python_without_torchs_own_help(python: str, preload: bool) -> None:
    home = packages(python)
    entry = f"{home}/torch/lib/libtorch_python.so"
    env = {"LD_PRELOAD": f"{home}/nvidia/cu13/lib/libcudart.so.13"} if preload else {}
    real = mapped(python, f"ctypes.CDLL({entry!r})", **env)
    process = Process(Files(Host(env={**os.environ, **env})), python)
    process.open(entry)
    mine = {one.name: os.path.realpath(one.path) for one in process.loaded if family_of(one.name)}
    assert mine == real


def test_versions_are_those_of_the_distributions(python: str) -> None:
    code = (
        "import importlib.metadata as m, json;"
        "print(json.dumps({d.metadata['Name']: d.version for d in m.distributions()}))"
    )
    done = subprocess.run([python, "-Ic", code], capture_output=True, text=True, check=True)
    dists = json.loads(done.stdout)
    facts = told(python).facts
    for fact, name in (
        ("cuda.runtime.version", "nvidia-cuda-runtime"),
        ("cublas.version", "nvidia-cublas"),
        ("nvrtc.version", "nvidia-cuda-nvrtc"),
        ("nvjitlink.version", "nvidia-nvjitlink"),
        ("nccl.version", "nvidia-nccl"),
        ("cudnn.version", "nvidia-cudnn"),
    ):
        dist = next(v for n, v in dists.items() if n == name or n.startswith(f"{name}-cu"))
        assert f"{dist}.".startswith(f"{facts[fact]}.")


def test_the_cpp_library_of_the_process(python: str) -> None:
    path = next(path for path in loaded(python, "import torch") if "libstdc++" in path)
    newest = max(
        int(line.rsplit(".", 1)[1])
        for line in subprocess.run(
            ["strings", path], capture_output=True, text=True, check=True
        ).stdout.splitlines()
        if line.startswith("GLIBCXX_3.4.") and line[12:].isdecimal()
    )
    assert told(python).facts["os.libstdcxx.version"] == f"3.4.{newest}"


def test_it_is_quick(python: str) -> None:
    host = Host()
    target = find_target(host, python)
    row = next(row for row in PROBES if row.name == "libraries")._replace(after=())
    seconds = []
    for _ in range(5):
        run = collect(host, target, probes=[row]).probes[0]
        assert run.status == "ok"
        seconds.append(run.seconds)
    assert min(seconds) < 0.2
