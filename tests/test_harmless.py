"""A look changes nothing, writes nowhere but to its store, and never opens the network."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent.parent

WATCHED = """
import json, os, sys
log = os.open({log!r}, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
HARMLESS = ("/dev/null", "/proc/self/oom_score_adj")
def watch(event, args):
    told = None
    if event == "open":
        path, mode, flags = args
        writes = flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND)
        if writes and isinstance(path, (str, bytes)) and os.fsdecode(path) not in HARMLESS:
            told = os.fsdecode(path)
    elif event.startswith(("socket.connect", "socket.bind", "socket.getaddrinfo", "socket.sendto",
                           "urllib.", "http.", "ftplib.")):
        told = repr(args)
    elif event in ("os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.chmod", "os.chown",
                   "os.link", "os.symlink", "os.truncate", "os.utime", "os.setxattr",
                   "shutil.rmtree", "os.system", "pty.spawn", "os.kill"):
        told = repr(args)
    elif event in ("subprocess.Popen", "os.posix_spawn", "os.exec"):
        told = repr(args[:2])
    if told is not None:
        os.write(log, json.dumps([event, told]).encode() + b"\\n")
sys.addaudithook(watch)
from envaudit.cli import run
sys.exit(run(sys.argv[1:]))
"""


def watched(log: Path, *args: str) -> list[tuple[str, str]]:
    """What a command line does to the machine, in its children too."""
    done = subprocess.run(
        [sys.executable, "-c", WATCHED.format(log=str(log)), *args],
        capture_output=True,
        text=True,
        cwd=HERE,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [(event, told) for event, told in map(json.loads, log.read_text().splitlines())]


def test_a_check_writes_nothing_and_runs_only_what_tells_a_version(tmp_path: Path) -> None:
    seen = watched(tmp_path / "log", "check", "--python", sys.executable)
    assert {event for event, _ in seen} <= {"os.posix_spawn", "os.kill"}, seen
    for event, told in seen:
        if event == "os.posix_spawn":
            assert any(
                words in told
                for words in ("ask.py", "--version", "-dumpfullversion", "nvidia-smi", "-qa")
            ), told


def test_a_snapshot_writes_to_its_store_only(tmp_path: Path) -> None:
    store = tmp_path / "store"
    seen = watched(tmp_path / "log", "snapshot", "--store", str(store), "--python", sys.executable)
    places = [told for event, told in seen if event not in ("os.posix_spawn", "os.kill")]
    assert places
    # Making the folder begins with its parent, which is there.
    assert all(str(tmp_path) in place for place in places), places
    assert not [event for event, _ in seen if event.startswith("socket.")]
