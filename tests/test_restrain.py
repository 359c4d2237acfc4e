"""What a process may still do after it restrained itself, asked of the kernel."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.probing import machine

SHOW = """
from envaudit.host import Host
from envaudit.restrain import restrain
host = Host({root!r})
host.isdir = lambda path: False  # whatever is loaded here
restrain(host)
print(open("/proc/self/status").read())
import subprocess
print(subprocess.run(["/bin/cat", "/proc/self/status"], capture_output=True, text=True).stdout)
"""

SYS_MODULE, MKNOD = 1 << 16, 1 << 27


def status_after(root: str = "/") -> list[dict[str, str]]:
    """/proc/self/status of a process after restrain, and of a command that it starts."""
    done = subprocess.run(
        [sys.executable, "-c", SHOW.format(root=root)], capture_output=True, text=True, check=True
    )
    return [
        dict(line.split(":\t", 1) for line in part.splitlines() if ":\t" in line)
        for part in done.stdout.split("\nName:\t")
    ]


def test_neither_it_nor_what_it_starts_can_make_nodes_or_load_modules() -> None:
    own, started = status_after()
    for status in (own, started):
        for held in ("CapEff", "CapPrm", "CapInh"):
            assert not int(status[held], 16) & (SYS_MODULE | MKNOD), held
        assert status["NoNewPrivs"] == "1"


def test_everything_else_it_may_do_as_before() -> None:
    (own, _), (plain, _) = status_after(), status_after("/tmp")
    lost = int(plain["CapEff"], 16) & ~int(own["CapEff"], 16)
    assert lost == int(plain["CapEff"], 16) & (SYS_MODULE | MKNOD)


def test_a_device_node_cannot_be_made(tmp_path: Path) -> None:
    node = tmp_path / "node"
    code = (
        "import os, stat; from envaudit.host import Host; from envaudit.restrain import restrain\n"
        "host = Host(); host.isdir = lambda path: False; restrain(host)\n"
        f"os.mknod({str(node)!r}, 0o600 | stat.S_IFCHR, os.makedev(195, 255))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "PermissionError" in done.stderr
    assert not node.exists()


def test_a_recorded_machine_restrains_nothing(tmp_path: Path) -> None:
    from envaudit.restrain import restrain

    before = Path("/proc/self/status").read_text().split("CapEff:")[1].split()[0]
    restrain(machine(tmp_path))
    assert Path("/proc/self/status").read_text().split("CapEff:")[1].split()[0] == before
