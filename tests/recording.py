"""Recorded machines as text: every file of a machine in its files.txt, unpacked for a test.

A machine has links to absolute paths, names with colons and binary files. None of them is fit
for a checkout, and none can be read in a diff; so a section of text stands for each:

    === /etc/os-release
    ID=debian
    VERSION_ID="12"
    === /proc/sys/kernel/tainted = 0
    === /dev/nvidia0
    === /bin -> usr/bin
    === /etc/ld.so.cache {"kind": "ld.so.cache", "entries": ["/lib/libcuda.so.1"]}

These are a file with its lines, a file of one line, an empty file, a link, and a binary file,
which tests/binaries.py makes of the words.

`python -m tests.recording MACHINE FOLDER` unpacks one to look at it.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.binaries import KINDS

MACHINES = Path(__file__).parent / "machines"

_SECTION = re.compile(r"=== (/\S+)(?: (->|=) (.*)| (\{.*\}))?\n")


class Entry(NamedTuple):
    """One file or link of a machine."""

    path: str
    link: str = ""
    text: str = ""
    binary: str = ""
    """JSON: what the file holds, in words."""


def entries(text: str) -> Iterator[Entry]:
    """The sections of a files.txt; raises ValueError on a line that belongs to none."""
    entry: Entry | None = None
    for line in text.splitlines(keepends=True):
        if line.startswith("=== "):
            if entry is not None:
                yield entry
            found = _SECTION.fullmatch(line)
            if found is None:
                raise ValueError(f"no section: {line!r}")
            path, sign, value, binary = found.groups()
            entry = Entry(
                path,
                link=value if sign == "->" else "",
                text=f"{value}\n" if sign == "=" else "",
                binary=binary or "",
            )
        elif entry is None or entry.link or entry.binary:
            raise ValueError(f"belongs to no file: {line!r}")
        else:
            entry = entry._replace(text=entry.text + line)
    if entry is not None:
        yield entry


def unpack(machine: Path, folder: Path) -> Path:
    """Make the folder that `Host.from_recording` takes, unless it is there; gives the folder."""
    root = folder / "root"
    if root.exists():
        return folder
    fresh = folder / "unpacking"
    shutil.rmtree(fresh, ignore_errors=True)
    for entry in entries((machine / "files.txt").read_text(encoding="utf-8")):
        place = fresh / entry.path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        if entry.link:
            place.symlink_to(entry.link)
        elif entry.binary:
            words = json.loads(entry.binary)
            place.write_bytes(KINDS[words.pop("kind")](**words))
        else:
            place.write_bytes(entry.text.encode())
    shutil.copy(machine / "machine.json", folder)
    fresh.rename(root)
    return folder


if __name__ == "__main__":
    print(unpack(MACHINES / sys.argv[1], Path(sys.argv[2])) / "root")
