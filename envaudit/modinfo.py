"""What a kernel module file says of itself: version, license and who signed it, without modinfo.

The kernel build puts `key=value` strings, each ended by NUL, into an ELF section `.modinfo`:

    version=580.95.05 NUL supported=external NUL license=Dual MIT/GPL NUL ... vermagic=6.8.0 ... NUL

A signed module ends with the signature, a header of 12 bytes (algo, hash, id type, length of
the signer's name, length of the key id, 3 of padding, big-endian length of the signature) and
the line "~Module signature appended~". Compressed modules (.gz .xz .zst) are the whole of that,
compressed; they are read as a stream and never held in memory.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

NO_SIGNER = "none"
"""Signer of a module without a signature."""

_MAGIC = b"~Module signature appended~\n"
_TRAILER = struct.Struct(">5B3xI")
_PKCS7 = 2
_COMMON_NAME = b"\x06\x03\x55\x04\x03"
"""Object identifier 2.5.4.3 in DER."""
_PIECE = re.compile(rb"[A-Za-z0-9_.]+=")
_SIGNATURE_LIMIT_BYTES = 64 << 10
_SECTION_LIMIT_BYTES = 1 << 20
_AROUND_BYTES = 256 << 10
"""Most that is kept to either side of the mark by which a stream's .modinfo is found."""


class ModuleInfo(NamedTuple):
    """What a module file says; None where it does not."""

    version: str | None
    license: str | None
    signer: str | None
    """Name of the signing key's certificate, or "none"; None where it could not be read."""


def from_file(read: Callable[[int, int], bytes], size: int) -> ModuleInfo | None:
    """An uncompressed module; `read(offset, length)` gives its bytes. None where it is no ELF."""
    section = _modinfo_section(read)
    if section is None:
        return None
    tail = read(max(0, size - _SIGNATURE_LIMIT_BYTES), _SIGNATURE_LIMIT_BYTES)
    return _info(_fields(section.split(b"\0")), tail)


def from_stream(chunks: Iterable[bytes]) -> ModuleInfo | None:
    """A module that comes in pieces; None where no .modinfo was found in it.

    Section headers stand at the end of the file, so the section is found by the one string that
    every module has, "vermagic=", and by the strings around it.
    """
    near = tail = b""
    found = -1
    for chunk in chunks:
        tail = (tail + chunk)[-max(_SIGNATURE_LIMIT_BYTES, len(chunk)) :]
        if found >= 0:
            if len(near) < found + _AROUND_BYTES:
                near += chunk
            continue
        near = near[-_AROUND_BYTES:] + chunk
        found = near.find(b"\0vermagic=")
    if found < 0:
        return None
    pieces = near[found + 1 :].split(b"\0")
    end = next((i for i, piece in enumerate(pieces) if not _is_field(piece)), len(pieces))
    before = near[:found].split(b"\0")
    start = next((i for i in range(len(before) - 1, -1, -1) if not _is_field(before[i])), -1)
    return _info(_fields(before[start + 1 :] + pieces[:end]), tail)


def from_text(text: str) -> ModuleInfo | None:
    """The output of `modinfo FILE`: lines of `key:   value`; None where there is none of them."""
    fields: dict[str, str] = {}
    for line in text.splitlines():
        key, colon, value = line.partition(":")
        if colon and re.fullmatch(r"[a-z_]+", key):
            fields.setdefault(key, value.strip())
    if "vermagic" not in fields and "license" not in fields:
        return None
    signed = "signer" in fields or "sig_id" in fields
    signer = fields.get("signer") or (_UNNAMED if signed else NO_SIGNER)
    return ModuleInfo(fields.get("version") or None, fields.get("license") or None, signer)


_UNNAMED = "a key without a name"


def flavor(license: str | None) -> str | None:  # noqa: A002 - the module's own word
    """Open or proprietary, by the license of nvidia.ko; None for any other."""
    return {"NVIDIA": "proprietary", "Dual MIT/GPL": "open"}.get(license or "")


def decompressed(blocks: Iterable[bytes], suffix: str) -> Iterator[bytes]:
    """The content of a module file by its suffix. Raises ValueError on bytes that do not fit.

    Raises ImportError where this Python has no such decompressor (zstd before 3.14).
    """
    make, errors = _DECOMPRESSORS[suffix]()
    decompressor = make()
    for block in blocks:
        try:
            while block:
                yield decompressor.decompress(block, 1 << 20)
                if suffix == ".gz":
                    block = decompressor.unconsumed_tail
                    continue
                while not decompressor.eof and not decompressor.needs_input:
                    yield decompressor.decompress(b"", 1 << 20)
                block = decompressor.unused_data if decompressor.eof else b""
                if block:
                    decompressor = make()
        except errors as problem:
            raise ValueError(f"broken {suffix[1:]} data: {problem}") from problem


def _gzip() -> tuple[Callable[[], object], type[Exception]]:
    import zlib

    return (lambda: zlib.decompressobj(31)), zlib.error
