"""Run envaudit on the machines of tests/machines, in a process of its own as a user would."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.fake_nvml import build, environment
from tests.recording import MACHINES, unpack


@dataclass(frozen=True)
class Ran:
    """How a command line ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Its standard output as JSON."""
        return json.loads(self.out)


def audit(machine: str, *args: str, libraries: Path, timeout: float = 60) -> Ran:
    """`envaudit ARGS` on a recorded machine, with the fake NVML where the machine describes one.

    `libraries` is a folder in which the fake library may be built and the machine unpacked; both
    are kept there.
    """
    folder = MACHINES / machine
    env = {k: v for k, v in os.environ.items() if not k.startswith(("CUDA", "NVIDIA", "LD_"))}
    env.update({"NO_COLOR": "1", "COLUMNS": "100", "PYTHONIOENCODING": "utf-8"})
    description = folder / "nvml.txt"
    if description.exists():
        without = folder / "nvml-without.txt"
        names = frozenset(without.read_text().split()) if without.exists() else frozenset()
        env.update(environment(build(libraries, names), description))
    unpacked = unpack(folder, libraries / machine)
    done = subprocess.run(
        [sys.executable, "-m", "tests.run_recorded", str(unpacked), *args],
        capture_output=True,
        text=True,
        env=env,
        cwd=Path(__file__).parent.parent,
        timeout=timeout,
        check=False,
    )
    return Ran(done.returncode, done.stdout, done.stderr)
