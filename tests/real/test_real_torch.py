"""What the probes read from real PyTorch wheels, against what PyTorch says of itself.

Needs ENVAUDIT_TORCH_CUDA_PYTHON and ENVAUDIT_TORCH_CPU_PYTHON: the interpreters of environments
with a CUDA build and with a CPU build of torch from PyPI or its own index.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from envaudit.collect import collect
from envaudit.host import Host
from envaudit.model import Absent, Snapshot
from envaudit.probes import PROBES
from envaudit.target import find_target

pytestmark = pytest.mark.real

TORCH = """
import json, torch
print(json.dumps({
    "torch.version": torch.__version__,
    "torch.cuda.version": torch.version.cuda,
    "torch.hip.version": torch.version.hip,
    "torch.cxx11_abi": torch.compiled_with_cxx11_abi(),
    "torch.arch_list": torch._C._cuda_getArchFlags().split() if torch.version.cuda else None,
    "nccl": list(torch.cuda.nccl.version()) if torch.version.cuda else None,
    "cudnn": torch.backends.cudnn.version(),
}))
"""
INSTALLED = """
import json
from importlib.metadata import distributions
print(json.dumps({d.metadata["Name"]: d.version for d in distributions()}))
"""


def interpreter(variable: str) -> str:
    path = os.environ.get(variable, "")
    assert path, f"set {variable} to the interpreter of an environment with torch in it"
    return path


def says(python: str, code: str) -> Any:
    done = subprocess.run(
        [python, "-Wignore", "-c", code], capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def look(python: str, **env: str) -> Snapshot:
    clean = {key: text for key, text in os.environ.items() if not key.startswith("PYTHON")}
    host = Host(env=clean | env)
    names = ("python_env", "frameworks", "conda")
    rows = [row for row in PROBES if row.name in names]
    return collect(host, find_target(host, python), probes=rows)


def value(seen: Snapshot, name: str) -> Any:
    fact = seen.facts.get(name)
    assert fact is not None or isinstance(seen.ask(name), Absent), seen.ask(name)
    return fact.value if fact else None


@pytest.mark.parametrize("variable", ["ENVAUDIT_TORCH_CUDA_PYTHON", "ENVAUDIT_TORCH_CPU_PYTHON"])
class TestBuild:
    def test_its_files_tell_what_it_says_itself(self, variable: str) -> None:
        python = interpreter(variable)
        told = says(python, TORCH)
        assert bool(told["torch.cuda.version"]) is ("CUDA" in variable), (
            "another build is asked for"
        )
        seen = look(python)
        for name in (name for name in told if name.startswith("torch.")):
            assert value(seen, name) == told[name], name
        if told["torch.cuda.version"]:
            nccl = [int(part) for part in value(seen, "torch.nccl.version").split(".")]
            assert nccl[:3] == told["nccl"][:3]
            major, minor, patch = (
                int(part) for part in value(seen, "torch.cudnn.version").split(".")[:3]
            )
            # 9.24.0 is 92400, 8.9.2 was 8902.
            assert told["cudnn"] == major * (10000 if major >= 9 else 1000) + minor * 100 + patch

    def test_every_distribution_is_seen(self, variable: str) -> None:
        python = interpreter(variable)
        installed = says(python, INSTALLED)
        seen = look(python)
        told = dict(str(item).split("==") for item in value(seen, "dist.all"))
        expected = {name.lower().replace("_", "-").replace(".", "-") for name in installed}
        assert set(told) == expected
        assert sorted(told.values()) == sorted(installed.values())

    def test_a_whole_environment_fits_together(self, variable: str) -> None:
        python = interpreter(variable)
        pip = subprocess.run(
            [python, "-m", "pip", "check"], capture_output=True, text=True, check=False
        )
        conflicts = value(look(python), "python.conflicts") or []
        assert (conflicts == []) is (pip.returncode == 0), (conflicts, pip.stdout)

    def test_it_is_read_in_a_moment(self, variable: str) -> None:
        python = interpreter(variable)
        look(python)
        started = time.monotonic()
        seen = look(python)
        assert time.monotonic() - started < 1
        assert [run.status for run in seen.probes] == ["ok", "ok", "absent"]


def test_a_library_of_another_version_in_front_is_a_conflict(tmp_path: Path) -> None:
    record = tmp_path / "nvidia_nccl_cu13-2.28.9.dist-info"
    record.mkdir()
    (record / "METADATA").write_text("Name: nvidia-nccl-cu13\nVersion: 2.28.9\n")
    python = interpreter("ENVAUDIT_TORCH_CUDA_PYTHON")
    pinned = value(look(python), "torch.nccl.version")
    seen = look(python, PYTHONPATH=str(tmp_path))
    version = value(seen, "dist.torch.version")
    assert value(seen, "python.conflicts") == [
        f"torch {version} requires nvidia-nccl-cu13=={pinned}, installed 2.28.9"
    ]
    assert len(value(seen, "dist.duplicates")) == 2


def test_a_library_of_another_version_behind_an_extra_is_a_conflict(tmp_path: Path) -> None:
    """The CUDA 13 builds pin most libraries through extras of cuda-toolkit."""
    record = tmp_path / "nvidia_cublas-13.99.0.dist-info"
    record.mkdir()
    (record / "METADATA").write_text("Name: nvidia-cublas\nVersion: 13.99.0\n")
    seen = look(interpreter("ENVAUDIT_TORCH_CUDA_PYTHON"), PYTHONPATH=str(tmp_path))
    (conflict,) = (text for text in value(seen, "python.conflicts") if "nvidia-cublas" in text)
    assert conflict.startswith("cuda-toolkit ")
    assert conflict.endswith("installed 13.99.0")
