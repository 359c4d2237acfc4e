"""The ELF reader against pyelftools, on files of this system and on files made byte by byte."""

from __future__ import annotations

import contextlib
import io
import os
import platform
import stat
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import IO

import pytest
from elftools.elf.dynamic import DynamicSegment
from elftools.elf.elffile import ELFFile
from elftools.elf.segments import InterpSegment
from hypothesis import given
from hypothesis import strategies as st

from envaudit import elf
from envaudit.elf import ElfFile, NotElf, Section, Segment
from tests.making import elf_head

SAMPLE_FILES = 150
"""Of each folder; a few hundred in all."""

Answer = tuple[
    int,
    str,
    list[tuple[int, int, int]],
    dict[str, list[str]],
    str,
    list[tuple[str, int, int, bool]],
]
"""Class, machine, segments, dynamic strings, interpreter, sections."""


class Reads:
    """A file in memory that counts what is read of it."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.asked = 0

    def __call__(self, at: int, size: int) -> bytes:
        assert 0 <= at < 1 << 63
        assert 0 <= size <= elf.READ_LIMIT_BYTES
        self.asked += size
        return self.data[at : at + size]


STRING_TAGS = {
    elf.DT_NEEDED: "needed",
    elf.DT_SONAME: "soname",
    elf.DT_RPATH: "rpath",
    elf.DT_RUNPATH: "runpath",
}


def ours(read: elf.Read) -> Answer:
    """Everything that the reader tells of a file."""
    file = ElfFile(read)
    segments = file.segments()
    strings: dict[str, list[str]] = {}
    dynamic = file.dynamic(segments)
    if dynamic is not None:
        for tag, value in dynamic.entries:
            if tag in STRING_TAGS:
                text = file.string(dynamic.strings + value)
                strings.setdefault(STRING_TAGS[tag], []).append(text)
    interpreter = [file.string(s.offset) for s in segments if s.kind == elf.PT_INTERP]
    return (
        file.bits,
        file.machine,
        [(s.offset, s.address, s.size) for s in segments],
        strings,
        "".join(interpreter),
        [(s.name, s.offset, s.size, s.kind == elf.SHT_NOBITS) for s in file.sections()],
    )


def theirs(stream: IO[bytes]) -> Answer:
    """The same by pyelftools."""
    file = ELFFile(stream)
    strings: dict[str, list[str]] = {}
    interpreter = ""
    segments = list(file.iter_segments())
    for segment in segments:
        if isinstance(segment, InterpSegment):
            interpreter = segment.get_interp_name()
        elif isinstance(segment, DynamicSegment):
            for tag in segment.iter_tags():
                for name in STRING_TAGS.values():
                    if tag.entry.d_tag == f"DT_{name.upper()}":
                        strings.setdefault(name, []).append(getattr(tag, name))
    return (
        file.elfclass,
        str(file["e_machine"]),
        [(s["p_offset"], s["p_vaddr"], s["p_filesz"]) for s in segments],
        strings,
        interpreter,
        [
            (s.name, s["sh_offset"], s["sh_size"], s["sh_type"] == "SHT_NOBITS")
            for s in file.iter_sections()
        ],
    )


def elf_files(folder: str) -> Iterator[str]:
    """Programs, libraries and object files, but for debug files, which are hollow by design."""
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name != "debug")
        for name in sorted(names):
            path = f"{place}/{name}"
            mode = os.lstat(path).st_mode
            if stat.S_ISREG(mode) and (mode & 0o111 or ".so" in name or name.endswith(".o")):
                with open(path, "rb") as file:
                    if file.read(4) == b"\x7fELF":
                        yield path


@pytest.mark.parametrize("folder", ["/usr/bin", "/usr/lib"])
def test_files_of_this_system_as_pyelftools_reads_them(folder: str) -> None:
    found = list(elf_files(folder))
    sample = found[:: -(-len(found) // SAMPLE_FILES)]
    assert len(sample) > 20
    for path in sample:
        with open(path, "rb") as file:
            expected = theirs(file)
        fd = os.open(path, os.O_RDONLY)
        told = ours(partial(pread, fd))
        os.close(fd)
        assert told == expected, path


def pread(fd: int, at: int, size: int) -> bytes:
    return os.pread(fd, size, at)


# -- files made byte by byte -------------------------------------------------------------------

FORMATS = [(bits, order) for bits in (32, 64) for order in "<>"]
MACHINES = {(32, "<"): 3, (32, ">"): 20, (64, "<"): 62, (64, ">"): 22}
WORDS = ("libc.so.6", "libx.so.1", "$ORIGIN/../lib:/opt/lib", "/lib/ld.so", "libm.so.6", "/früher")


def library(bits: int = 64, order: str = "<") -> bytes:
    """A library with one of each: segments, dynamic section, sections."""
    wide = bits == 64
    strings = b"\0" + b"\0".join(word.encode() for word in WORDS) + b"\0"

    def at(word: str) -> int:
        return strings.index(word.encode())

    sizes = (64, 56, 64) if wide else (52, 32, 40)
    strings_at = sizes[0] + 3 * sizes[1]
    base = 0x1000
    entries = [
        (elf.DT_NEEDED, at(WORDS[0])),
        (elf.DT_NEEDED, at(WORDS[4])),
        (elf.DT_SONAME, at(WORDS[1])),
        (elf.DT_RPATH, at(WORDS[5])),
        (elf.DT_RUNPATH, at(WORDS[2])),
        (elf.DT_STRTAB, base + strings_at),
        (elf.DT_STRSZ, len(strings)),
        (elf.DT_FLAGS_1, elf.DF_1_NODEFLIB),
        (elf.DT_NULL, 0),
        (elf.DT_NEEDED, at(WORDS[1])),
    ]
    dynamic = b"".join(struct.pack(order + ("qQ" if wide else "iI"), *entry) for entry in entries)
    dynamic_at = strings_at + len(strings)
    names = b"\0.dynstr\0.dynamic\0.bss\0.shstrtab\0"
    names_at = dynamic_at + len(dynamic)
    sections_at = names_at + len(names)

    def segment(kind: int, offset: int, size: int) -> bytes:
        if wide:
            return struct.pack(order + "2I6Q", kind, 4, offset, base + offset, 7, size, size + 9, 8)
        return struct.pack(order + "8I", kind, offset, base + offset, 7, size, size + 9, 4, 4)

    def section(name: bytes, kind: int, offset: int, size: int, link: int = 0) -> bytes:
        layout = "2I4Q2I2Q" if wide else "10I"
        place = names.index(name + b"\0")
        return struct.pack(order + layout, place, kind, 2, 5, offset, size, link, 0, 1, 0)

    head = b"\x7fELF" + bytes([2 if wide else 1, 1 if order == "<" else 2, 1]) + bytes(9)
    head += struct.pack(
        order + ("2HI3QI6H" if wide else "2HI3II6H"),
        *(3, MACHINES[bits, order], 1, 0, sizes[0], sections_at, 0),
        *(sizes[0], sizes[1], 3, sizes[2], 5, 4),
    )
    return b"".join(
        [
            head,
            segment(elf.PT_INTERP, strings_at + at(WORDS[3]), len(WORDS[3]) + 1),
            segment(elf.PT_LOAD, 0, names_at),
            segment(elf.PT_DYNAMIC, dynamic_at, len(dynamic)),
            strings,
            dynamic,
            names,
            section(b"", 0, 0, 0),
            section(b".dynstr", 3, strings_at, len(strings)),
            section(b".dynamic", 6, dynamic_at, len(dynamic), 1),
            section(b".bss", elf.SHT_NOBITS, 1 << 20, 1 << 30),
            section(b".shstrtab", 3, names_at, len(names)),
        ]
    )


@pytest.mark.parametrize(("bits", "order"), FORMATS)
def test_both_classes_and_byte_orders(bits: int, order: str) -> None:
    data = library(bits, order)
    told = ours(Reads(data))
    assert told == theirs(io.BytesIO(data))
    assert told[0] == bits
    assert told[3] == {
        "needed": ["libc.so.6", "libm.so.6"],
        "soname": ["libx.so.1"],
        "rpath": ["/früher"],
        "runpath": ["$ORIGIN/../lib:/opt/lib"],
    }
    assert told[4] == "/lib/ld.so"


@pytest.mark.parametrize("bits", [32, 64])
def test_an_object_file_of_the_compiler_for_both_classes(tmp_path: Path, bits: int) -> None:
    made, rewritten = tmp_path / "made.o", tmp_path / "rewritten.o"
    source = b'const char text[] = "here"; int zero[50];'
    subprocess.run(["gcc", "-xc", "-c", "-", "-o", made], input=source, check=True)
    kind = f"elf{bits}-{sys.byteorder}"
    subprocess.run(["objcopy", "-O", kind, made, rewritten], check=True)
    data = rewritten.read_bytes()
    told = ours(Reads(data))
    assert told[0] == bits
    assert told[2:] == theirs(io.BytesIO(data))[2:]  # its machine is none
    assert ElfFile(Reads(data)).section(".rodata", 100) == b"here\0"


def test_the_bytes_of_a_section() -> None:
    file = ElfFile(Reads(library()))
    assert (file.section(".dynstr", 1 << 10) or b"")[:11] == b"\0libc.so.6\0"
    assert file.section(".dynstr", 3) == b"\0li"
    assert file.section(".bss", 1 << 10) == b""
    assert file.section(".text", 1 << 10) is None


def test_the_program_that_needs_nobody(tmp_path: Path) -> None:
    path = tmp_path / "static"
    subprocess.run(
        ["gcc", "-xc", "-static", "-nostdlib", "-no-pie", "-", "-o", path],
        input=b"void _start(void) { for (;;); }",
        check=True,
    )
    file = ElfFile(Reads(path.read_bytes()))
    assert file.dynamic(file.segments()) is None


@pytest.mark.parametrize("bits", [32, 64])
def test_numbers_that_do_not_fit_stand_in_the_first_section_header(bits: int) -> None:
    data = bytearray(library(bits))
    expected = ours(Reads(bytes(data)))
    first = struct.unpack_from("<Q" if bits == 64 else "<I", data, 40 if bits == 64 else 32)[0]
    struct.pack_into("<2H", data, 60 if bits == 64 else 48, 0, 0xFFFF)
    struct.pack_into("<Q" if bits == 64 else "<I", data, first + (32 if bits == 64 else 20), 5)
    struct.pack_into("<I", data, first + (40 if bits == 64 else 24), 4)
    told = ours(Reads(bytes(data)))
    assert told == theirs(io.BytesIO(bytes(data)))
    assert told[5][1:] == expected[5][1:]


def test_of_two_entries_with_one_tag_the_last_counts() -> None:
    data = library()
    file = ElfFile(Reads(data))
    dynamic = file.dynamic(file.segments())
    assert dynamic is not None
    assert [tag for tag, _ in dynamic.entries].count(elf.DT_NEEDED) == 2
    assert file.string(dynamic.strings + dynamic.last[elf.DT_NEEDED]) == "libm.so.6"


# -- what is broken ----------------------------------------------------------------------------

LIBRARY = library()
STRINGS_AT = 64 + 3 * 56


def changed(at: int, layout: str, *values: int) -> bytes:
    data = bytearray(LIBRARY)
    struct.pack_into(layout, data, at, *values)
    return bytes(data)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "file too short"),
        (b"\x7fELF", "file too short"),
        (LIBRARY[:63], "file too short"),
        (b"#!/bin/sh\n" * 20, "invalid ELF header"),
        (changed(4, "B", 3), "invalid ELF header"),
        (changed(5, "B", 0), "invalid ELF header"),
        (changed(54, "<H", 32), "headers of an unexpected size"),
        (changed(56, "<H", 1025), "too many program headers"),
        (changed(32, "<Q", len(LIBRARY)), "file too short"),
        (changed(32, "<Q", (1 << 64) - 8), "invalid offset"),
        (changed(64 + 2 * 56 + 32, "<Q", 1 << 17), "dynamic section too long"),
        (changed(64 + 2 * 56 + 8, "<Q", 1 << 40), "file too short"),
        (changed(64 + 56, "<I", 7), "dynamic section without strings"),
        (changed(64 + 8, "<Q", len(LIBRARY) + 7), "file too short"),
        (changed(64 + 56 + 8, "<Q", (1 << 64) - 1), "invalid offset"),
        (LIBRARY[: STRINGS_AT + 30], "file too short"),
        (changed(58, "<H", 0), "headers of an unexpected size"),
        (changed(62, "<H", 5), "section headers without names"),
        (changed(len(LIBRARY) - 64, "<I", 500), "invalid section name"),
    ],
)
def test_what_is_broken_is_told_in_words(data: bytes, reason: str) -> None:
    with pytest.raises(NotElf, match=f"^{reason}$"):
        ours(Reads(data))


def test_a_string_without_an_end_is_not_read_for_ever() -> None:
    reads = Reads(LIBRARY + b"x" * (1 << 20))
    with pytest.raises(NotElf, match="string too long"):
        ElfFile(reads).string(len(LIBRARY))
    assert reads.asked < 4 * elf.STRING_LIMIT_BYTES


def test_a_long_string_is_read_whole() -> None:
    text = "/opt/lib:" * 4000
    assert ElfFile(Reads(LIBRARY + text.encode() + b"\0")).string(len(LIBRARY)) == text


def test_many_strings_end_at_the_limit_of_what_is_read() -> None:
    file = ElfFile(Reads(LIBRARY + b"x" * 60_000 + b"\0"))
    with pytest.raises(NotElf, match="too much to read"):
        [file.string(len(LIBRARY)) for _ in range(1000)]


def test_more_sections_than_any_file_has() -> None:
    data = bytearray(changed(60, "<H", 0))
    first = struct.unpack_from("<Q", data, 40)[0]
    struct.pack_into("<Q", data, first + 32, 1 << 60)
    with pytest.raises(NotElf, match="too many section headers"):
        ElfFile(Reads(bytes(data))).sections()


def test_section_names_that_share_a_long_text() -> None:
    """60,000 sections, each named by the same 3 MB: what is copied must stay bounded."""
    count, name = 60_000, 3 << 20
    names_at = len(LIBRARY) + 64 * count
    data = bytearray(changed(40, "<Q", len(LIBRARY)))
    struct.pack_into("<2H", data, 60, count, 0)
    header = struct.pack("<2I4Q2I2Q", 0, 3, 0, 0, names_at, name + 1, 0, 0, 1, 0)
    reads = Reads(bytes(data) + header * count + b"x" * name + b"\0")
    with pytest.raises(NotElf, match="invalid section name"):
        ElfFile(reads).sections()


def test_an_error_of_the_disk_stays_one() -> None:
    def read(at: int, size: int) -> bytes:
        raise OSError(5, "Input/output error")

    with pytest.raises(OSError, match="Input/output"):
        ElfFile(read)


PARTS: tuple[Callable[[ElfFile], object], ...] = (
    lambda file: file.segments(),
    lambda file: file.dynamic(file.segments()),
    lambda file: file.sections(),
    lambda file: file.section(".dynstr", 1 << 16),
    lambda file: file.string(900),
)
"""Each by itself, as what is broken in one must not keep the others from being tried."""
NUMBERS = st.sampled_from([0, 1, 0x7FFF, 0xFFFF, 1 << 31, (1 << 32) - 1, 1 << 62, (1 << 64) - 1])


@given(
    form=st.sampled_from(FORMATS),
    bytes_changed=st.lists(st.tuples(st.integers(0, 900), st.integers(0, 255)), max_size=8),
    numbers_changed=st.lists(st.tuples(st.integers(0, 900), NUMBERS), max_size=3),
    cut=st.integers(0, 1200),
    tail=st.binary(max_size=40),
)
def test_any_mutation_gives_an_answer_or_not_elf(
    form: tuple[int, str],
    bytes_changed: list[tuple[int, int]],
    numbers_changed: list[tuple[int, int]],
    cut: int,
    tail: bytes,
) -> None:
    data = bytearray(library(*form))
    for at, byte in bytes_changed:
        data[at % len(data)] = byte
    for at, number in numbers_changed:
        struct.pack_into(form[1] + "Q", data, at % (len(data) - 8), number)
    whole = bytes(data[:cut]) + tail
    for part in PARTS:
        reads = Reads(whole)
        with contextlib.suppress(NotElf):
            part(ElfFile(reads))
        assert reads.asked <= elf.READ_LIMIT_BYTES
    reads = Reads(whole)
    with contextlib.suppress(NotElf):
        ours(reads)
    assert reads.asked <= elf.READ_LIMIT_BYTES


# -- the machine -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("head", "arch"),
    [
        (elf_head(62), "x86_64"),
        (elf_head(183), "aarch64"),
        (elf_head(3, bits=32), "i686"),
        (elf_head(40, bits=32), "armv7l"),
        (elf_head(21), "ppc64le"),
        (library(64, ">")[:20], "s390x"),
        (b"\x7fELF\x02\x02" + bytes(12) + b"\0\x15", "ppc64"),
        (elf_head(9999), None),
        (b"\x7fELF\x02\x07" + bytes(12) + b"\x3e\0", None),
        (b"#!/bin/busybox sh and more", None),
        (b"\x7fELF", None),
        (b"", None),
    ],
)
def test_the_architecture_that_a_header_names(head: bytes, arch: str | None) -> None:
    assert elf.arch(head) == arch


def test_this_machines_own_architecture() -> None:
    with open("/proc/self/exe", "rb") as file:
        assert elf.arch(file.read(elf.HEAD_BYTES)) == platform.machine()


@given(st.binary(max_size=64))
def test_no_head_upsets_it(head: bytes) -> None:
    elf.arch(head)
    elf.arch(elf_head(62)[:18] + head)


def test_the_pieces_have_names() -> None:
    file = ElfFile(Reads(LIBRARY))
    assert file.segments()[1] == Segment(elf.PT_LOAD, 0, 0x1000, len(LIBRARY) - 5 * 64 - 33)
    assert Section(".bss", elf.SHT_NOBITS, 1 << 20, 1 << 30) in file.sections()
