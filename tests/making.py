"""Files of a machine, made byte by byte for tests: caches, kernel modules, package databases."""

from __future__ import annotations

import sqlite3
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path

X86_64 = 0x0303
I386 = 0x0003
AARCH64 = 0x0A03


def ld_cache(entries: Sequence[tuple[str, str, int]], *, order: str = "<", hwcap: int = 0) -> bytes:
    """An ld.so.cache of the new format."""
    table, strings = b"", b""
    base = 48 + 24 * len(entries)
    for soname, path, flags in entries:
        value = base + len(strings)
        strings += path.encode() + b"\0"
        key = base + len(strings)
        strings += soname.encode() + b"\0"
        table += struct.pack(order + "iIIIQ", flags, key, value, 0, hwcap)
    head = b"glibc-ld.so.cache1.1" + struct.pack(
        order + "IIB3xI12x", len(entries), len(strings), 3 if order == ">" else 2, 0
    )
    return head + table + strings


def old_ld_cache(entries: Sequence[tuple[str, str, int]]) -> bytes:
    """The format before glibc 2.2, which compatible caches still begin with."""
    table, strings = b"", b""
    for soname, path, flags in entries:
        table += struct.pack("<iII", flags, len(strings), len(strings) + len(soname) + 1)
        strings += soname.encode() + b"\0" + path.encode() + b"\0"
    return b"ld.so-1.7.0\0" + struct.pack("<I", len(entries)) + table + strings


def compatible_ld_cache(entries: Sequence[tuple[str, str, int]]) -> bytes:
    """Both formats in one file; the old table here is without its strings, as readers skip it."""
    old = b"ld.so-1.7.0\0" + struct.pack("<I", len(entries)) + bytes(12 * len(entries))
    return old + bytes(-len(old) % 8) + ld_cache(entries)


def elf_head(machine: int, bits: int = 64) -> bytes:
    """The first 20 bytes of a library: 62 is x86_64, 3 i386, 183 aarch64."""
    return (
        b"\x7fELF"
        + bytes([2 if bits == 64 else 1, 1, 1])
        + bytes(9)
        + struct.pack("<HH", 3, machine)
    )


def kernel_module(
    fields: Mapping[str, str],
    signature: bytes = b"",
    *,
    bits: int = 64,
    order: str = "<",
    text: bytes = b"",
    parameters: int = 0,
) -> bytes:
    """A kernel module with a .modinfo section; `text` stands before it, with no gap."""
    info = b"".join(f"{key}={value}".encode() + b"\0" for key, value in fields.items())
    info += b"".join(f"parm=NVreg_P{n}:int".encode() + b"\0" for n in range(parameters))
    names = b"\0.text\0.modinfo\0.shstrtab\0"
    wide = bits == 64
    start = 64 if wide else 52
    at = start + len(text)
    names_at = at + len(info) + 40
    table_at = names_at + len(names)
    sections = [
        (0, 0, 0, 0),
        (names.index(b".text"), 1, start, len(text)),
        (names.index(b".modinfo"), 1, at, len(info)),
        (names.index(b".shstrtab"), 3, names_at, len(names)),
    ]
    if wide:
        table = b"".join(
            struct.pack(order + "IIQQQQIIQQ", n, t, 0, 0, o, s, 0, 0, 1, 0)
            for n, t, o, s in sections
        )
        rest = struct.pack(order + "HHIQQQIHHHHHH", 1, 62, 1, 0, 0, table_at, 0, 64, 0, 0, 64, 4, 3)
    else:
        table = b"".join(
            struct.pack(order + "10I", n, t, 0, 0, o, s, 0, 0, 1, 0) for n, t, o, s in sections
        )
        rest = struct.pack(order + "HHIIIIIHHHHHH", 1, 3, 1, 0, 0, table_at, 0, 52, 0, 0, 40, 4, 3)
    ident = b"\x7fELF" + bytes([2 if wide else 1, 1 if order == "<" else 2, 1]) + bytes(9)
    return ident + rest + text + info + bytes(40) + names + table + signature


def pkcs7_signature(signer: str | None) -> bytes:
    """What sign-file appends; only the part that names the signer has its real form."""
    name = (signer or "").encode()
    named = b"\x30\x0b\x06\x03\x55\x04\x03\x0c" + bytes([len(name)]) + name if signer else b""
    blob = b"\x30\x82\x01\x00" + bytes(30) + named + b"\x02\x08" + bytes(200)
    return blob + struct.pack(">5B3xI", 0, 0, 2, 0, 0, len(blob)) + b"~Module signature appended~\n"


def clear_signature(signer: str) -> bytes:
    """A signature of kernels before 4.3, with the signer's name in clear."""
    body = signer.encode() + b"key-identifier" + bytes(64)
    head = struct.pack(">5B3xI", 1, 4, 1, len(signer), 14, 64)
    return body + head + b"~Module signature appended~\n"


def rpm_header(
    name: str, version: str, release: str, *, epoch: int | None = None, arch: str = "x86_64"
) -> bytes:
    """A header blob as the rpm database keeps it: no magic, a region tag first."""
    entries: list[tuple[int, int, int, int]] = []
    data = b""

    def text(tag: int, value: str) -> None:
        nonlocal data
        entries.append((tag, 6, len(data), 1))
        data += value.encode() + b"\0"

    text(1000, name)
    text(1001, version)
    text(1002, release)
    if epoch is not None:
        data += bytes(-len(data) % 4)
        entries.append((1003, 4, len(data), 1))
        data += struct.pack(">I", epoch)
    text(1004, "summary in words")
    text(1022, arch)
    entries.insert(0, (63, 7, len(data), 16))
    data += bytes(16)
    index = b"".join(struct.pack(">4I", *entry) for entry in entries)
    return struct.pack(">II", len(entries), len(data)) + index + data


def rpm_database(
    path: Path, headers: Mapping[str, Sequence[bytes]], files: Sequence[tuple[str, int]] = ()
) -> None:
    """An rpmdb.sqlite with the tables that are asked: package names to header blobs.

    `files` are base names with the number of the package that has them, counted from 1.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode = WAL")  # as rpm has it; no -wal is left when closed
    connection.execute("CREATE TABLE Packages (hnum INTEGER PRIMARY KEY, blob BLOB NOT NULL)")
    for table in ("Name", "Basenames"):
        connection.execute(f"CREATE TABLE {table} (key TEXT NOT NULL, hnum INTEGER, idx INTEGER)")
    number = 0
    for name, blobs in headers.items():
        for blob in blobs:
            number += 1
            connection.execute("INSERT INTO Packages VALUES (?, ?)", (number, blob))
            connection.execute("INSERT INTO Name VALUES (?, ?, 0)", (name, number))
    for base, owner in files:
        connection.execute("INSERT INTO Basenames VALUES (?, ?, 0)", (base, owner))
    connection.commit()
    connection.close()
