"""Binary files made from words, for recorded machines and for tests that need a few of them.

They hold what probes read, in its real form, and nothing else.
"""

from __future__ import annotations

import lzma
import struct
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tests import making

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

    segments = [segment(1, 0, end), segment(2, dynamic_at, len(dynamic))]
    if interpreter:
        segments.insert(0, segment(3, start, len(head)))
    header = making.elf_head(_MACHINE_CODES[arch]) + struct.pack(
        "<IQQQIHHHHHH", 1, 0, 64, 0, 0, 64, 56, count, 0, 0, 0
    )
    return b"".join([header, *segments, head, strings, dynamic, literal])


def kernel_module(*, fields: Mapping[str, str], signer: str = "", packing: str = "") -> bytes:
    """nvidia.ko with its .modinfo, signed where a signer is named, packed as xz or zst."""
    data = making.kernel_module(fields, making.pkcs7_signature(signer) if signer else b"")
    if packing == "xz":
        return lzma.compress(data, check=lzma.CHECK_CRC32)
    return zstd_frame(data) if packing == "zst" else data


def zstd_frame(data: bytes) -> bytes:
    """The data in one uncompressed block: every decompressor takes it, and none wrote it."""
    assert 256 <= len(data) < 1 << 16
    # Frame header: single segment, two bytes of content size (less 256). Block: last, raw.
    head = b"\x28\xb5\x2f\xfd\x60" + struct.pack("<H", len(data) - 256)
    return head + struct.pack("<I", len(data) << 3 | 1)[:3] + data


def ld_cache(*, entries: Sequence[str], arch: str = "x86_64") -> bytes:
    """An ld.so.cache with the libraries at these paths, by the names of the files."""
    flags = _CACHE_FLAGS[arch]
    return making.ld_cache([(path.rpartition("/")[2], path, flags) for path in entries])


def rpm_database(*, packages: Sequence[str]) -> bytes:
    """An rpmdb.sqlite of packages written as NAME-[EPOCH:]VERSION-RELEASE.ARCH."""
    headers: dict[str, list[bytes]] = {}
    for package in packages:
        rest, _, arch = package.rpartition(".")
        name, version, release = rest.rsplit("-", 2)
        epoch, _, version = version.rpartition(":")
        number = int(epoch) if epoch else None
        blob = making.rpm_header(name, version, release, epoch=number, arch=arch)
        headers.setdefault(name, []).append(blob)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rpmdb.sqlite"
        making.rpm_database(path, headers)
        return path.read_bytes()


KINDS: dict[str, Callable[..., bytes]] = {
    "shared object": shared_object,
    "kernel module": kernel_module,
    "ld.so.cache": ld_cache,
    "rpm database": rpm_database,
    "hex": lambda *, digits: bytes.fromhex(digits),
    "text": lambda *, text: text.encode(),
}
"""What a binary file can be: its kind to what makes it of the other words of its section. Text is
binary where it has a NUL or no newline at its end."""
