"""On macOS and Windows: nothing of envaudit fails to import, files are judged, looking says no."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

PRETEND = """
import sys
# The standard library and what we depend on are those of this platform; only we are told.
import ctypes, gzip, importlib.metadata, lzma, platform, pkgutil, runpy, shutil, sqlite3, subprocess
import tempfile, textwrap, traceback, typer, typer.main, typer.completion, packaging.requirements
import jsonschema, pynvml
sys.platform = {platform!r}
import os
for name in ("resource", "fcntl", "pwd", "grp", "termios"):
    sys.modules[name] = None
for name in ("fork", "memfd_create", "pidfd_open", "posix_spawn", "uname", "geteuid", "setsid",
             "statvfs", "sched_getaffinity", "WNOHANG", "O_NONBLOCK", "O_CLOEXEC", "getuid",
             "O_NOFOLLOW", "O_DIRECTORY", "confstr", "getpriority"):
    if hasattr(os, name):
        delattr(os, name)
import importlib
import envaudit
for module in pkgutil.walk_packages(envaudit.__path__, "envaudit."):
    if ".in_target" not in module.name and not module.name.endswith("__main__"):
        importlib.import_module(module.name)
from envaudit.cli import run
sys.exit(run(sys.argv[1:]))
"""


def pretend(platform: str, *args: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", PRETEND.format(platform=platform), *args],
        capture_output=True,
        text=True,
        cwd=cwd,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("platform", ["darwin", "win32"])
def test_files_are_judged_where_looking_is_not_supported(platform: str, tmp_path: Path) -> None:
    flat = tmp_path / "flat.json"
    flat.write_text(json.dumps({"driver.version": "470.256.02", "torch.version": "2.14.1+cu130"}))
    done = pretend(platform, "check", str(flat), "--format", "json", cwd=tmp_path)
    assert done.stderr == ""
    assert done.returncode == 2
    findings = json.loads(done.stdout)["findings"]
    assert [f["cause"] for f in findings if f["severity"] == "error"] == ["driver-too-old"]
    same = pretend(platform, "diff", str(flat), str(flat), cwd=tmp_path)
    assert same.returncode == 0, same.stderr
    assert "Nothing changed." in same.stdout


@pytest.mark.parametrize("platform", ["darwin", "win32"])
@pytest.mark.parametrize("command", ["check", "snapshot"])
def test_looking_says_that_it_is_not_supported(platform: str, command: str, tmp_path: Path) -> None:
    done = pretend(platform, command, cwd=tmp_path)
    assert done.returncode == 64
    assert done.stdout == ""
    assert "probes exist for Linux (WSL 2 included) only" in done.stderr
    assert len(done.stderr.splitlines()) == 2
