"""Kernel module files: where nvidia.ko lies, and what a module says of itself, without modinfo.

The kernel build puts `key=value` strings, each ended by NUL, into an ELF section `.modinfo`:

    version=580.95.05 NUL supported=external NUL license=Dual MIT/GPL NUL ... vermagic=6.8.0 ... NUL

A signed module ends with the signature, a header of 12 bytes (algo, hash, id type, length of
the signer's name, length of the key id, 3 of padding, big-endian length of the signature) and
the line "~Module signature appended~". Compressed modules (.gz .xz .zst) are the whole of that,
compressed; they are read as a stream and never held in memory.
"""

from __future__ import annotations

import io
import posixpath
import re
import struct
from collections.abc import Callable, Iterable, Iterator
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from envaudit.elf import ElfFile, NotElf
from envaudit.host import Host

_MODULE_FILE = re.compile(
    r"nvidia(?:_\d+|-current|-(?:tesla|legacy)(?:-\d+\w*)?)?(?:-open)?\.ko(?:\.gz|\.xz|\.zst)?\Z"
)
"""nvidia.ko under the names that distributions give it: Debian keeps several side by side as
nvidia-current.ko, nvidia-tesla-470.ko and the like. Sister modules (nvidia-uvm) do not match."""
_MODULE_FOLDERS = ("updates", "extra", "weak-updates", "extramodules", "video", "misc")
_MODULE_PLACES = ("kernel/drivers/video", "kernel/drivers/video/nvidia", "kernel/nvidia*")
_WALK_DEPTH = 3
_WALK_FOLDERS = 200
_DEP_LIMIT_BYTES = 32 << 20

NO_SIGNER = "none"
"""Signer of a module without a signature."""
_UNNAMED = "a key without a name"

_MAGIC = b"~Module signature appended~\n"
_TRAILER = struct.Struct(">5B3xI")
_PKCS7 = 2
_COMMON_NAME = b"\x06\x03\x55\x04\x03"
"""Object identifier 2.5.4.3 in DER."""
_PIECE = re.compile(rb"[A-Za-z0-9_.]+=")
_FIRST = re.compile(rb"(?:version|license|supported|firmware|alias)=.*\Z", re.DOTALL)
_SIGNATURE_LIMIT_BYTES = 64 << 10
_SECTION_LIMIT_BYTES = 4 << 20
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
    try:
        section = ElfFile(read).section(".modinfo", _SECTION_LIMIT_BYTES)
    except NotElf:
        return None
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
    end = next((i for i, piece in enumerate(pieces) if not _PIECE.match(piece)), len(pieces))
    before = near[:found].split(b"\0")
    start = len(before)
    while start and _PIECE.match(before[start - 1]):
        start -= 1
    # The last byte of the section before need not be NUL: the first string then hangs on to it.
    first = _FIRST.search(before[start - 1]) if start else None
    return _info(_fields([*([first[0]] if first else []), *before[start:], *pieces[:end]]), tail)


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


def flavor(license: str | None) -> str | None:  # noqa: A002 - the module's own word
    """Open or proprietary, by the license of nvidia.ko; None for any other."""
    return {"NVIDIA": "proprietary", "Dual MIT/GPL": "open"}.get(license or "")


class _Blocks(io.RawIOBase):
    """A file behind a function, for the decompressors of the standard library."""

    def __init__(self, read: Callable[[int, int], bytes]) -> None:
        self._read = read
        self._at = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        block = self._read(self._at, len(buffer))
        buffer[: len(block)] = block
        self._at += len(block)
        return len(block)


def decompressed(read: Callable[[int, int], bytes], suffix: str) -> Iterator[bytes]:
    """The content of a compressed module file, piece by piece.

    Raises ValueError on bytes that do not fit, ImportError where this Python has no such
    decompressor (zstd before 3.14), and OSError as `read` does.
    """
    opener: Callable[[Any], Any]
    errors: tuple[type[Exception], ...]
    if suffix == ".gz":
        import gzip
        import zlib

        opener, errors = gzip.open, (EOFError, gzip.BadGzipFile, zlib.error)
    elif suffix == ".xz":
        import lzma

        opener, errors = lzma.open, (EOFError, lzma.LZMAError)
    else:
        import importlib

        zstd = importlib.import_module("compression.zstd")
        opener, errors = zstd.open, (EOFError, zstd.ZstdError)
    try:
        with opener(io.BufferedReader(_Blocks(read), 1 << 20)) as file:
            while chunk := file.read(1 << 20):
                yield chunk
    except errors as problem:
        raise ValueError(f"broken {suffix[1:]} data: {problem}") from problem


def _fields(pieces: Iterable[bytes]) -> dict[str, str]:
    fields: dict[str, str] = {}
    for piece in pieces:
        key, _, value = piece.partition(b"=")
        if value:
            fields.setdefault(key.decode("ascii", "replace"), value.decode("utf-8", "replace"))
    return fields


def _info(fields: dict[str, str], tail: bytes) -> ModuleInfo:
    return ModuleInfo(fields.get("version"), fields.get("license"), _signer(tail))


def _signer(tail: bytes) -> str | None:
    """Who signed, from the end of the file: the certificate's issuer, as modinfo has it.

    The signature is a PKCS#7 message without certificates, so the only common name in it is the
    one that identifies the key; a key may also be identified by a number alone.
    """
    if not tail.endswith(_MAGIC):
        return NO_SIGNER
    end = len(tail) - len(_MAGIC) - _TRAILER.size
    if end < 0:
        return None
    _, _, kind, signer_length, key_length, length = _TRAILER.unpack_from(tail, end)
    if kind != _PKCS7:  # kernels before 4.3 wrote the name in clear
        start = end - length - key_length - signer_length
        name = tail[max(0, start) : start + signer_length] if start >= 0 else b""
        return name.decode("utf-8", "replace") or _UNNAMED
    blob = tail[max(0, end - length) : end]
    at = blob.rfind(_COMMON_NAME)
    if at < 0 or at + 7 > len(blob):
        return _UNNAMED
    start = at + 7
    return blob[start : start + blob[at + 6]].decode("utf-8", "replace") or _UNNAMED


def module_files(host: Host, folder: str) -> Iterator[str]:
    """The files of nvidia.ko below /lib/modules/RELEASE, the one that modprobe takes first.

    modules.dep names for each module the file that won in depmod's order. A kernel whose
    modules.dep knows none is searched in the places where packages put one.
    """
    for name in parse_modules_dep(_modules_dep(host, folder)):
        path = posixpath.join(folder, name)
        if host.exists(path):
            yield path
    for place in _MODULE_PLACES:
        parent, last = posixpath.split(f"{folder}/{place}")
        for found in host.listdir(parent) if "*" in last else [last]:
            if fnmatchcase(found, last):
                yield from _in_folder(host, f"{parent}/{found}")
    left = _WALK_FOLDERS
    todo = [(f"{folder}/{name}", _WALK_DEPTH) for name in _MODULE_FOLDERS]
    while todo and left:
        place, depth = todo.pop(0)
        left -= 1
        yield from _in_folder(host, place)
        if depth > 1:
            todo += [
                (f"{place}/{name}", depth - 1)
                for name in host.listdir(place)
                if ".ko" not in name and host.isdir(f"{place}/{name}")
            ]


def _modules_dep(host: Host, folder: str) -> bytes:
    try:
        return host.read_bytes(f"{folder}/modules.dep", _DEP_LIMIT_BYTES)
    except OSError:
        return b""


def _in_folder(host: Host, folder: str) -> Iterator[str]:
    for name in host.listdir(folder):
        if _MODULE_FILE.match(name) and host.exists(f"{folder}/{name}"):
            yield f"{folder}/{name}"


def parse_modules_dep(data: bytes) -> list[str]:
    """Where modules.dep has nvidia.ko, relative to its own folder.

    updates/dkms/nvidia.ko.zst: kernel/drivers/gpu/drm/drm_kms_helper.ko.zst ...
    """
    found = []
    data = b"\n" + data
    at = data.find(b"/nvidia")
    while at >= 0:
        colon = data.find(b":", at)
        start = data.rfind(b"\n", 0, at) + 1
        path = data[start:colon].decode("utf-8", "replace")
        # A path with a blank in it stands behind the colon: a module that needs nvidia.ko.
        if colon >= 0 and " " not in path and _MODULE_FILE.match(posixpath.basename(path)):
            found.append(path)
        at = data.find(b"/nvidia", at + 1)
    return found
