"""ELF files, as far as they are read here: headers, segments, sections, dynamic section.

By the System V ABI, chapters 4 and 5 (Object Files, Program Loading and Dynamic Linking). Where
the fields lie, in bytes from the start of each structure, for files of 32 and of 64 bit:

    ELF header       e_ident 0: "\\x7fELF", class 4 (1: 32 bit, 2: 64), byte order 5 (1: little)
                                        32  64                          32  64
                     e_machine          18  18      e_shentsize         46  58
                     e_phoff            28  32      e_shnum             48  60
                     e_shoff            32  40      e_shstrndx          50  62
                     e_phentsize        42  54      (size)              52  64
                     e_phnum            44  56
    program header   p_type              0   0      p_filesz            16  32
                     p_offset            4   8      (size)              32  56
                     p_vaddr             8  16
    section header   sh_name             0   0      sh_size             20  32
                     sh_type             4   4      sh_link             24  40
                     sh_offset          16  24      (size)              40  64
    dynamic entry    d_tag               0   0      (size)               8  16
                     d_val               4   8

A file comes through a function `read(offset, size)`, which gives fewer bytes where the file ends.
However its bytes are mangled, the answer comes after a bounded number of bytes, or NotElf does.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import NamedTuple

START_BYTES = 1024
"""Read at once: the header with the program headers behind it in all but odd files."""
SEGMENTS_LIMIT = 1024
SECTIONS_LIMIT = 1 << 16
DYNAMIC_LIMIT_BYTES = 1 << 16
NAMES_LIMIT_BYTES = 4 << 20
STRING_LIMIT_BYTES = 1 << 16
READ_LIMIT_BYTES = 16 << 20
"""Most that is read of one file, all pieces together."""
HEAD_BYTES = 20
"""Enough of a file for `arch`."""

PT_LOAD, PT_DYNAMIC, PT_INTERP = 1, 2, 3
SHT_NOBITS = 8
DT_NULL, DT_NEEDED, DT_STRTAB, DT_STRSZ, DT_SONAME = 0, 1, 5, 10, 14
DT_RPATH, DT_RUNPATH, DT_FLAGS_1 = 15, 29, 0x6FFFFFFB
DF_1_NODEFLIB = 0x800

_MAGIC = b"\x7fELF"
_SHN_XINDEX = 0xFFFF
"""In e_shstrndx: the index did not fit and is the sh_link of the first section header."""
_HEADER = {32: "16xHHI3II6H", 64: "16xHHI3QI6H"}
_SEGMENT = {32: "8I", 64: "2I6Q"}
_SECTION = {32: "10I", 64: "2I4Q2I2Q"}
_DYNAMIC = {32: "2I", 64: "2Q"}
_FILE_OFFSETS = range(1 << 63)

_MACHINES = {
    3: ("EM_386", "i686"),
    20: ("EM_PPC", "ppc"),
    21: ("EM_PPC64", "ppc64"),
    22: ("EM_S390", "s390x"),
    40: ("EM_ARM", "armv7l"),
    62: ("EM_X86_64", "x86_64"),
    183: ("EM_AARCH64", "aarch64"),
    243: ("EM_RISCV", "riscv64"),
    258: ("EM_LOONGARCH", "loongarch64"),
}
"""e_machine to its name in the ABI and to what uname -m says on such a machine."""

Read = Callable[[int, int], bytes]


class NotElf(Exception):
    """This is no ELF file, or a broken one; says why in the dynamic loader's words."""


class Segment(NamedTuple):
    """A program header: a piece of the file, and the address where it is mapped."""

    kind: int
    offset: int
    address: int
    size: int


class Section(NamedTuple):
    """A section header."""

    name: str
    kind: int
    offset: int
    size: int


class Dynamic(NamedTuple):
    """The dynamic section: what a library asks of the loader."""

    entries: list[tuple[int, int]]
    """Tag and value of each, in order, up to DT_NULL."""
    last: dict[int, int]
    """Tag to value; of several with one tag the last counts, as it does for glibc."""
    strings: int
    """Where the string table lies in the file."""


class ElfFile:
    """One ELF file. Every method raises NotElf where the file is broken, and what `read` raises."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self._left = READ_LIMIT_BYTES
        self._start = b""
        self._start = start = self._upto(0, START_BYTES)
        self.bits, self._order = _class_and_order(start)
        layout = struct.Struct(self._order + _HEADER[self.bits])
        if len(start) < layout.size:
            raise NotElf("file too short")
        fields = layout.unpack_from(start)
        self.machine = _MACHINES[fields[1]][0] if fields[1] in _MACHINES else str(fields[1])
        """Name of e_machine: EM_X86_64, EM_AARCH64, ...; its number where it has none here."""
        self._segments_at, self._sections_at = fields[4:6]
        self._segment_size, self._segments = fields[8:10]
        self._section_size, self._sections, self._names = fields[10:13]

    def segments(self) -> list[Segment]:
        """The program headers."""
        count = self._segments
        if count > SEGMENTS_LIMIT:
            raise NotElf("too many program headers")
        layout = _SEGMENT[self.bits]
        table = self._table(layout, self._segments_at, self._segment_size, count)
        if self.bits == 64:
            return [Segment(h[0], h[2], h[3], h[5]) for h in table]
        return [Segment(h[0], h[1], h[2], h[4]) for h in table]

    def sections(self) -> list[Section]:
        """The section headers with their names; none in a file without a table of them."""
        at, size = self._sections_at, self._section_size
        count, names = self._sections, self._names
        layout = _SECTION[self.bits]
        if not at:
            return []
        if not count or names == _SHN_XINDEX:  # numbers that do not fit stand in the first header
            first = self._table(layout, at, size, 1)[0]
            count = count or first[5]
            names = first[6] if names == _SHN_XINDEX else names
        if count > SECTIONS_LIMIT:
            raise NotElf("too many section headers")
        table = self._table(layout, at, size, count)
        if names >= len(table):
            raise NotElf("section headers without names")
        texts = self.piece(table[names][4], min(table[names][5], NAMES_LIMIT_BYTES))
        found = []
        left = NAMES_LIMIT_BYTES  # names may share their bytes, so all of them may be long
        for name, kind, _, _, offset, length, *_ in table:
            end = texts.find(b"\0", name)
            left -= max(0, end - name)
            if end < 0 or left < 0:
                raise NotElf("invalid section name")
            found.append(Section(_text(texts[name:end]), kind, offset, length))
        return found

    def section(self, name: str, limit: int) -> bytes | None:
        """The bytes of the first section of a name, at most `limit`; None where there is none."""
        for one in self.sections():
            if one.name == name:
                size = 0 if one.kind == SHT_NOBITS else min(one.size, limit)
                return self.piece(one.offset, size)
        return None

    def dynamic(self, segments: list[Segment]) -> Dynamic | None:
        """The dynamic section; None in a static program."""
        where = next((s for s in segments if s.kind == PT_DYNAMIC), None)
        if where is None:
            return None
        if where.size > DYNAMIC_LIMIT_BYTES:
            raise NotElf("dynamic section too long")
        layout = struct.Struct(self._order + _DYNAMIC[self.bits])
        table = self.piece(where.offset, where.size // layout.size * layout.size)
        entries: list[tuple[int, int]] = []
        for tag, value in layout.iter_unpack(table):
            if tag == DT_NULL:
                break
            entries.append((tag, value))
        last = dict(entries)
        address = last.get(DT_STRTAB, -1)
        for s in segments:
            if s.kind == PT_LOAD and s.address <= address < s.address + s.size:
                strings = address - s.address + s.offset
                if strings not in _FILE_OFFSETS:
                    raise NotElf("invalid offset")
                return Dynamic(entries, last, strings)
        raise NotElf("dynamic section without strings")

    def string(self, at: int) -> str:
        """The string at a place in the file, which a NUL ends."""
        size = 128
        while True:
            data = self._upto(at, size)
            end = data.find(b"\0")
            if end >= 0:
                return _text(data[:end])
            if len(data) < size:
                raise NotElf("file too short")
            if size >= STRING_LIMIT_BYTES:
                raise NotElf("string too long")
            size = min(size * 16, STRING_LIMIT_BYTES)

    def piece(self, at: int, size: int) -> bytes:
        """That many bytes from a place in the file on."""
        data = self._upto(at, size)
        if len(data) < size:
            raise NotElf("file too short")
        return data

    # -- inside --------------------------------------------------------------------------

    def _table(self, fields: str, at: int, size: int, count: int) -> list[tuple[int, ...]]:
        """Headers in a row. Loader and kernel refuse those of another size than the ABI's."""
        layout = struct.Struct(self._order + fields)
        if count and size != layout.size:
            raise NotElf("headers of an unexpected size")
        return list(layout.iter_unpack(self.piece(at, layout.size * count)))

    def _upto(self, at: int, size: int) -> bytes:
        if at + size <= len(self._start):
            return self._start[at : at + size]
        if at not in _FILE_OFFSETS or at + size not in _FILE_OFFSETS:
            raise NotElf("invalid offset")
        if size > self._left:
            raise NotElf("too much to read")
        self._left -= size
        return self._read(at, size)


def arch(head: bytes) -> str | None:
    """The machine of an ELF file as uname -m would name it, from its first HEAD_BYTES bytes.

    None for what is no ELF file and for a machine that has no name here.
    """
    try:
        _, order = _class_and_order(head)
    except NotElf:
        return None
    (machine,) = struct.unpack_from(order + "H", head, 18)
    name = _MACHINES[machine][1] if machine in _MACHINES else None
    return "ppc64le" if name == "ppc64" and order == "<" else name


def _class_and_order(start: bytes) -> tuple[int, str]:
    """32 or 64, and the sign of `struct` for the byte order."""
    if len(start) < HEAD_BYTES:
        raise NotElf("file too short")
    if start[:4] != _MAGIC or start[4] not in (1, 2) or start[5] not in (1, 2):
        raise NotElf("invalid ELF header")
    return 32 * start[4], "<" if start[5] == 1 else ">"


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")
