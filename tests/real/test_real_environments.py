"""Whole looks, by the command line, at environments with a real PyTorch in them."""

from __future__ import annotations

import functools
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.real import parts
from tests.real.parts import envaudit, failures, gaps, snapshot, values

pytestmark = pytest.mark.real

OWN_WORDS = """
import json, os, torch
cuda = torch.version.cuda
print(json.dumps({
    "torch.version": torch.__version__,
    "torch.cuda.version": cuda,
    "torch.arch_list": torch._C._cuda_getArchFlags().split() if cuda else None,
    "cudnn": torch.backends.cudnn.version(),
    "nccl.version": ".".join(map(str, torch.cuda.nccl.version())) if cuda else None,
    "packages": os.path.dirname(os.path.dirname(torch.__file__)),
}))
"""

NAMES = ("torch.version", "torch.cuda.version", "torch.arch_list", "cudnn.version", "nccl.version")


@functools.cache
def own_words(python: str) -> dict[str, Any]:
    """What torch, imported, says of itself; what it does not have is left out."""
    said = parts.as_json(parts.output([python, "-Wignore", "-c", OWN_WORDS]))
    cudnn = said.pop("cudnn")
    if cudnn:
        said["cudnn.version"] = f"{cudnn // 10000}.{cudnn % 10000 // 100}.{cudnn % 100}"
    return {name: value for name, value in said.items() if value is not None}


def test_a_cuda_build_is_told_in_torchs_own_words() -> None:
    python = parts.torch_cuda()
    said = own_words(python)
    seen = snapshot("--python", python)
    assert len(seen["facts"]) >= 100
    assert all(fact["source"] for fact in seen["facts"].values())
    assert values(seen, *NAMES) == {name: said[name] for name in NAMES}
    # The builds that the texts of this project speak of.
    assert (said["torch.version"], said["cudnn.version"]) == ("2.14.1+cu130", "9.24.0")
    assert said["torch.arch_list"][0] == "sm_75"
    assert said["torch.arch_list"][-1] == "sm_120"


def test_the_cudnn_that_would_be_loaded_is_the_one_that_is_loaded() -> None:
    python = parts.torch_cuda()
    code = (
        "import json, torch; torch.backends.cudnn.version()\n"
        "lines = open('/proc/self/maps').read().splitlines()\n"
        "print(json.dumps([l.split(None, 5)[5] for l in lines if 'libcudnn.so' in l][0]))"
    )
    path = parts.as_json(parts.output([python, "-Wignore", "-c", code]))
    installs = snapshot("--python", python)["facts"]["cudnn.installs"]["value"]
    (taken,) = [install for install in installs if "(taken by torch)" in install]
    assert taken.split(" ")[0] == path


def test_a_cpu_build_has_no_cuda_and_that_is_an_answer() -> None:
    python = parts.torch_cpu()
    said = own_words(python)
    assert not set(NAMES[1:]) & set(said)
    seen = snapshot("--python", python)
    assert values(seen, *NAMES) == {"torch.version": said["torch.version"]}
    assert not set(NAMES) & set(gaps(seen))
    probes = {probe["name"]: probe["status"] for probe in seen["probes"]}
    assert probes["frameworks"] == probes["libraries"] == "ok"


@pytest.fixture
def poisoned(tmp_path: Path) -> tuple[str, Path]:
    """The same environment with a torch whose import ends the process; its package folder."""
    python = parts.torch_cuda()
    packages = Path(own_words(python)["packages"])
    home = tmp_path / "environment"
    parts.output([python, "-m", "venv", "--without-pip", str(home)])
    (here,) = home.glob("lib/python*/site-packages")
    torch = here / "torch"
    torch.mkdir()
    for folder, inside, own in ((packages, here, "torch"), (packages / "torch", torch, "__init__")):
        for entry in folder.iterdir():
            if entry.name not in (own, f"{own}.py", "__pycache__"):
                inside.joinpath(entry.name).symlink_to(entry)
    torch.joinpath("__init__.py").write_text("import os\nos.abort()\n")
    return str(home / "bin/python"), here


def test_torch_is_not_imported(poisoned: tuple[str, Path]) -> None:
    python, _ = poisoned
    assert parts.run([python, "-c", "import torch"]).code == -signal.SIGABRT
    seen = snapshot("--python", python)
    said = own_words(parts.torch_cuda())
    assert values(seen, *NAMES) == {name: said[name] for name in NAMES}
    ended = {probe["name"]: probe["status"] for probe in seen["probes"]}
    assert ended["python_env"] == ended["frameworks"] == ended["libraries"] == "ok"


def test_an_interpreter_that_cannot_start_costs_little(poisoned: tuple[str, Path]) -> None:
    """A sitecustomize that ends every process: what the files tell is told all the same."""
    python, packages = poisoned
    packages.joinpath("sitecustomize.py").write_text("import os\nos.abort()\n")
    assert parts.run([python, "-c", ""]).code == -signal.SIGABRT
    said = own_words(parts.torch_cuda())
    names = [name for name in NAMES if name.startswith("torch.")]
    assert values(snapshot("--python", python), *names) == {name: said[name] for name in names}


@pytest.mark.parametrize("python", [parts.torch_cuda, parts.torch_cpu])
def test_a_sound_environment_passes(python: Any) -> None:
    done = envaudit("check", "--python", python(), "--format", "json")
    assert done.code == 0, done.out
    assert failures(done.json) == {}
    assert done.json["verdict"] in ("pass", "warn")
