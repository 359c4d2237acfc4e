"""NVML, nvidia-smi and the target all hang, ignoring SIGTERM: 12 seconds, and the truth."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.fake_nvml import build, describe, environment
from tests.fake_nvml.machines import hang

HANGING = """#!/bin/sh
trap '' TERM INT HUP
echo $$ >> {pids}
while :; do sleep 1; done
"""


@pytest.fixture(scope="module")
def hung(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """A folder of hanging programs, and the environment that makes them ours."""
    folder = tmp_path_factory.mktemp("hung")
    for name in ("nvidia-smi", "python3", "python"):
        program = folder / name
        program.write_text(HANGING.format(pids=folder / "pids"))
        program.chmod(0o755)
    description = folder / "nvml.txt"
    description.write_text(describe(hang()))
    env = dict(os.environ)
    env.pop("VIRTUAL_ENV", None)
    env.update(environment(build(folder / "nvml"), description))
    env["PATH"] = f"{folder}:{os.environ['PATH']}"
    env["NO_COLOR"] = "1"
    return folder, env


def run(hung: tuple[Path, dict[str, str]], *args: str) -> subprocess.CompletedProcess[str]:
    started = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "envaudit", "check", *args],
        capture_output=True,
        text=True,
        env=hung[1],
        timeout=60,
        check=False,
        cwd=Path(__file__).parent.parent,
    )
    assert time.monotonic() - started < 12
    return done


def left_running(folder: Path) -> list[str]:
    pids = (folder / "pids").read_text().split()
    return [pid for pid in pids if Path(f"/proc/{pid}").exists()]


def test_all_three_hang_and_it_is_told_as_unknown(hung: tuple[Path, dict[str, str]]) -> None:
    done = run(hung, "--strict", "--format", "json")
    assert done.returncode == 3, done.stderr
    report = json.loads(done.stdout)
    assert report["verdict"] == "unknown"
    ended = {each["probe"]: each.get("status") for each in report["facts_unknown"]}
    assert ended["nvml"] == "timed_out"
    causes = {finding["cause"] for finding in report["findings"]}
    assert "driver-probe-hung" in causes
    assert not [f for f in report["findings"] if f["verdict"] == "fail" and f["severity"] != "note"]
    reasons = {(u["probe"], u.get("fact")): u["reason"] for u in report["facts_unknown"]}
    assert "did not answer" in reasons["python_env", "python.version"]
    assert left_running(hung[0]) == []


def test_without_strict_a_hung_driver_is_an_error(hung: tuple[Path, dict[str, str]]) -> None:
    done = run(hung)
    assert done.returncode == 2, done.stderr
    assert done.stdout.startswith("UNKNOWN")
    assert "The driver did not answer: the probe nvml was given up" in done.stdout
    assert left_running(hung[0]) == []


def test_a_shorter_deadline_is_kept(hung: tuple[Path, dict[str, str]]) -> None:
    started = time.monotonic()
    done = run(hung, "--deadline", "2", "--format", "json")
    assert time.monotonic() - started < 2 + 1.5 + 2.5
    assert json.loads(done.stdout)["verdict"] == "unknown"
    assert left_running(hung[0]) == []
