"""What the dynamic loader would find: ld.so.cache read without ldconfig, and the folders beside it.

`parse` is pure and takes the file of any machine (an image, a recording), also one of another
byte order. Formats, from glibc's dl-cache.h:

    new      "glibc-ld.so.cache" "1.1"  nlibs  len_strings  flags(1) pad(3)  extension  unused(3)
             then nlibs times: flags(i4) key(u4) value(u4) osversion(u4) hwcap(u8);
             key and value are offsets of NUL-ended strings from the start of this header
    old      "ld.so-1.7.0" pad(1)  nlibs  then nlibs times: flags(i4) key(u4) value(u4);
             offsets count from the end of that table
    compat   the old header and table, and after them, aligned to 8 (4 on some 32-bit machines),
             a whole new cache; new glibc reads only that one
"""

from __future__ import annotations

import posixpath
import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from envaudit.host import Host

CACHE = "/etc/ld.so.cache"
CACHE_LIMIT_BYTES = 16 << 20

_NEW_MAGIC = b"glibc-ld.so.cache"
_OLD_MAGIC = b"ld.so-1.7.0"
_NEW_HEADER = 48
_OLD_HEADER = 16
_BIG_ENDIAN = 3
"""Value of the two lowest bits of the header's flags; 2 is little endian, 0 is not said."""

_TYPE_MASK = 0x00FF
_ELF_LIBC6 = 3
_ABI_MASK = 0xFF00
_ABI = {
    "x86_64": 0x0300,
    "s390x": 0x0400,
    "ppc64": 0x0500,
    "ppc64le": 0x0500,
    "armv7l": 0x0900,
    "aarch64": 0x0A00,
    "riscv64": 0x1000,
    "i386": 0,
    "i686": 0,
}
"""Machine (uname -m) to the bits of an entry's flags that a 64-bit (or hard-float) library has."""

_MULTIARCH = {
    "x86_64": "x86_64-linux-gnu",
    "aarch64": "aarch64-linux-gnu",
    "ppc64le": "powerpc64le-linux-gnu",
    "s390x": "s390x-linux-gnu",
    "riscv64": "riscv64-linux-gnu",
    "armv7l": "arm-linux-gnueabihf",
    "i386": "i386-linux-gnu",
    "i686": "i386-linux-gnu",
}


class Entry(NamedTuple):
    """One library of the cache."""

    soname: str
    path: str
    flags: int
    hwcap: int = 0
    """Not 0: only for CPUs with some capability (a glibc-hwcaps folder)."""

    def fits(self, arch: str | None) -> bool:
        """Whether programs of this architecture can take it; True where it cannot be told."""
        if arch is None or arch not in _ABI:
            return True
        return self.flags & _ABI_MASK == _ABI[arch] and self.flags & _TYPE_MASK <= _ELF_LIBC6


def parse(data: bytes) -> list[Entry]:
    """The entries of an ld.so.cache in its own order; empty where the bytes are not understood.

    Entries that point outside the file (a truncated cache) are left out.
    """
    start = 0
    if data.startswith(_OLD_MAGIC):
        if len(data) < _OLD_HEADER:
            return []
        count = struct.unpack_from("<I", data, 12)[0]
        end = _OLD_HEADER + 12 * min(count, len(data))
        start = next(
            (at for at in (-(-end // 8) * 8, -(-end // 4) * 4) if data.startswith(_NEW_MAGIC, at)),
            -1,
        )
        if start < 0:
            return _old_entries(data, end)
    if not data.startswith(_NEW_MAGIC, start) or len(data) < start + _NEW_HEADER:
        return []
    order = ">" if data[start + 28] & 3 == _BIG_ENDIAN else "<"
    count = struct.unpack_from(order + "I", data, start + 20)[0]
    count = min(count, (len(data) - start - _NEW_HEADER) // 24)
    table = memoryview(data)[start + _NEW_HEADER : start + _NEW_HEADER + 24 * count]
    found = []
    for flags, key, value, _, hwcap in struct.iter_unpack(order + "iIIIQ", table):
        soname, path = _string(data, start + key), _string(data, start + value)
        if soname and path:
            found.append(Entry(soname, path, flags, hwcap))
    return found


def _old_entries(data: bytes, end: int) -> list[Entry]:
    if end > len(data):
        return []
    found = []
    for flags, key, value in struct.iter_unpack("<iII", memoryview(data)[_OLD_HEADER:end]):
        soname, path = _string(data, end + key), _string(data, end + value)
        if soname and path:
            found.append(Entry(soname, path, flags))
    return found


def _string(data: bytes, at: int) -> str:
    end = data.find(b"\0", at) if at < len(data) else -1
    return data[at:end].decode("utf-8", "surrogateescape") if end > at else ""


def lookup(entries: Sequence[Entry], soname: str, arch: str | None) -> Iterator[str]:
    """The paths that the cache has for a soname and this architecture, the one taken first.

    Entries for special CPUs stand first in the cache and are passed over: whether this CPU
    would take them cannot be told from the file, and driver libraries have none.
    """
    for entry in entries:
        if entry.soname == soname and not entry.hwcap and entry.fits(arch):
            yield entry.path


def default_dirs(arch: str | None) -> tuple[str, ...]:
    """Folders that the loader searches last, of all distributions, most specific first.

    Debian builds its loader with the multiarch folders, Fedora and SUSE with lib64, Arch and
    Alpine with plain lib; a folder that a machine does not have costs nothing.
    """
    triplets = (
        [_MULTIARCH[arch]] if arch in _MULTIARCH else list(dict.fromkeys(_MULTIARCH.values()))
    )
    return (
        *(f"{top}/{triplet}" for triplet in triplets for top in ("/lib", "/usr/lib")),
        *("/lib64", "/usr/lib64", "/lib", "/usr/lib"),
    )


def conf_dirs(host: Host, path: str = "/etc/ld.so.conf") -> list[str]:
    """Folders named by ld.so.conf and the files it includes, in the order of ldconfig."""
    found: list[str] = []
    _read_conf(host, path, found, set())
    return list(dict.fromkeys(found))


def _read_conf(host: Host, path: str, found: list[str], seen: set[str]) -> None:
    if path in seen or len(seen) > 100:
        return
    seen.add(path)
    for line in host.read_or(path).splitlines():
        words = line.split("#", 1)[0].replace(":", " ").replace(",", " ").split()
        if words[:1] == ["include"]:
            for pattern in words[1:]:
                absolute = posixpath.join(posixpath.dirname(path), pattern)
                for name in _matching(host, absolute):
                    _read_conf(host, name, found, seen)
        elif words[:1] != ["hwcap"]:
            found.extend(word.split("=", 1)[0].rstrip("/") for word in words if word[:1] == "/")


def _matching(host: Host, pattern: str) -> list[str]:
    """Files that an include line means; only its last part may hold wildcards."""
    from fnmatch import fnmatchcase

    folder, last = posixpath.split(pattern)
    return [
        posixpath.join(folder, name) for name in host.listdir(folder) if fnmatchcase(name, last)
    ]


def read_cache(host: Host) -> list[Entry]:
    """The entries of this machine's ld.so.cache; empty where there is none to read."""
    try:
        return parse(host.read_bytes(CACHE, CACHE_LIMIT_BYTES))
    except OSError:
        return []
