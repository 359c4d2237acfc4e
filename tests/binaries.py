"""The binary files of a recorded machine, made from the words in its binaries.json.

Libraries, kernel modules, caches and package databases cannot be read in a diff, so each machine
says in words what they hold and this writes them: `python -m tests.binaries [MACHINE]...` after a
change. The kinds are the functions in KINDS; README.md in tests/machines shows each.
"""

from __future__ import annotations

import json
import lzma
import struct
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests import making

MACHINES = Path(__file__).parent / "machines"

_MACHINE_CODES = {"x86_64": 62, "aarch64": 183}
_CACHE_FLAGS = {"x86_64": making.X86_64, "aarch64": making.AARCH64}


def shared_object(
    *,
    arch: str = "x86_64",
    soname: str = "",
    needed: Sequence[str] = (),
    rpath: str = "",
    runpath: str = "",
    interpreter: str = "",
    symbols: Sequence[str] = (),
    text: str = "",
) -> bytes:
    """A library or program as the loader reads it: program headers, dynamic section, strings.

    `symbols` go into the dynamic string table; `text` lies in the file as a literal does.
    """
    strings = b"\0"
    at: dict[str, int] = {}
    for word in (*needed, *symbols, soname, rpath, runpath):
        if word and word not in at:
            at[word] = len(strings)
            strings += word.encode() + b"\0"
    tags = [(1, at[name]) for name in needed]
    for tag, word in ((14, soname), (15, rpath), (29, runpath)):
        if word:
            tags.append((tag, at[word]))
    count = 2 + bool(interpreter)
    start = 64 + 56 * count
    head = interpreter.encode() + b"\0" if interpreter else b""
    strings_at = start + len(head)
    dynamic_at = strings_at + len(strings)
    tags += [(5, strings_at), (10, len(strings)), (0, 0)]
    dynamic = b"".join(struct.pack("<qQ", *tag) for tag in tags)
    literal = text.encode() + b"\0" if text else b""
    end = dynamic_at + len(dynamic) + len(literal)

    def segment(kind: int, offset: int, size: int) -> bytes:
        return struct.pack("<IIQQQQQQ", kind, 4, offset, offset, offset, size, size, 8)

    segments = [(1, 0, end), (2, dynamic_at, len(dynamic))]
    if interpreter:
        segments.insert(0, (3, start, len(head)))
    header = making.elf_head(_MACHINE_CODES[arch]) + struct.pack(
        "<IQQQIHHHHHH", 1, 0, 64, 0, 0, 64, 56, count, 0, 0, 0
    )
    return b"".join([header, *(segment(*one) for one in segments), head, strings, dynamic, literal])


def kernel_module(*, fields: Mapping[str, str], signer: str = "", packing: str = "") -> bytes:
    """nvidia.ko with its .modinfo, signed where a signer is named, packed as xz or zst."""
    data = making.kernel_module(fields, making.pkcs7_signature(signer) if signer else b"")
    if packing == "xz":
        return lzma.compress(data, check=lzma.CHECK_CRC32)
    return zstd_frame(data) if packing == "zst" else data


def zstd_frame(data: bytes) -> bytes:
    """The data in one uncompressed block: every decompressor takes it, and none wrote it."""
    assert len(data) < 1 << 16
    # Frame header: single segment, two bytes of content size (less 256). Block: last, raw.
    head = b"\x28\xb5\x2f\xfd\x60" + struct.pack("<H", len(data) - 256)
    return head + struct.pack("<I", len(data) << 3 | 1)[:3] + data


def ld_cache(*, entries: Sequence[str], arch: str = "x86_64") -> bytes:
    """An ld.so.cache with the libraries at these paths, by the names of the files."""
    flags = _CACHE_FLAGS[arch]
    return making.ld_cache([(path.rpartition("/")[2], path, flags) for path in entries])


def plain(*, hex: str) -> bytes:  # noqa: A002 - the word in the file
    """Bytes written in hexadecimal."""
    return bytes.fromhex(hex)


KINDS: dict[str, Callable[..., bytes]] = {
    "shared object": shared_object,
    "kernel module": kernel_module,
    "ld.so.cache": ld_cache,
    "bytes": plain,
}


def rpm_database(path: Path, packages: Sequence[str], files: Mapping[str, str]) -> None:
    """An rpmdb.sqlite: packages as NAME-[EPOCH:]VERSION-RELEASE.ARCH, files by who owns them."""
    headers: dict[str, list[bytes]] = {}
    numbers: dict[str, int] = {}
    for number, package in enumerate(packages, 1):
        rest, _, arch = package.rpartition(".")
        name, version, release = rest.rsplit("-", 2)
        epoch, _, version = version.rpartition(":")
        blob = making.rpm_header(
            name, version, release, epoch=int(epoch) if epoch else None, arch=arch
        )
        headers.setdefault(name, []).append(blob)
        numbers[name] = number
    path.unlink(missing_ok=True)
    making.rpm_database(path, headers, [(base, numbers[owner]) for base, owner in files.items()])


def described(machine: Path) -> dict[str, dict[str, Any]]:
    """Path to what binaries.json says of it."""
    file = machine / "binaries.json"
    told: dict[str, dict[str, Any]] = json.loads(file.read_text()) if file.exists() else {}
    return told


def content(said: Mapping[str, Any]) -> bytes:
    """The bytes that one entry of binaries.json describes."""
    words = dict(said)
    return KINDS[words.pop("kind")](**words)


def unpacked(path: Path) -> bytes:
    """What a file holds, without the compression, whose bytes may differ between releases."""
    data = path.read_bytes()
    return lzma.decompress(data) if path.suffix == ".xz" else data


def write(machine: Path) -> None:
    """Write every binary file of a machine."""
    for name, said in described(machine).items():
        path = machine / "root" / name.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        if said["kind"] == "rpm database":
            rpm_database(path, said["packages"], said.get("files", {}))
        else:
            path.write_bytes(content(said))


if __name__ == "__main__":
    for name in sys.argv[1:] or sorted(path.name for path in MACHINES.iterdir() if path.is_dir()):
        write(MACHINES / name)
