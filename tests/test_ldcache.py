"""ld.so.cache without ldconfig, and the folders beside it."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envaudit import ldcache
from envaudit.host import Host
from envaudit.ldcache import Entry, parse
from tests.making import (
    AARCH64,
    I386,
    X86_64,
    compatible_ld_cache,
    ld_cache,
    old_ld_cache,
)
from tests.probing import machine

TWO = [
    ("libcuda.so.1", "/lib/x86_64-linux-gnu/libcuda.so.1", X86_64),
    ("libcuda.so.1", "/lib/i386-linux-gnu/libcuda.so.1", I386),
]
ENTRIES = [Entry(*entry) for entry in TWO]


def test_new_format() -> None:
    assert parse(ld_cache(TWO)) == ENTRIES


def test_new_format_of_a_big_endian_machine() -> None:
    assert parse(ld_cache(TWO, order=">")) == ENTRIES


def test_new_format_behind_an_old_one() -> None:
    for entries in (TWO, TWO[:1], [*TWO, *TWO, *TWO]):
        assert parse(compatible_ld_cache(entries)) == [Entry(*entry) for entry in entries]


def test_old_format_alone() -> None:
    assert parse(old_ld_cache(TWO)) == ENTRIES


def test_an_empty_cache_has_no_entries() -> None:
    assert parse(ld_cache([])) == []


@pytest.mark.parametrize(
    "data", [b"", b"hello", b"ld.so-1.7.0\0", b"glibc-ld.so.cache1.1", b"\0" * 99]
)
def test_what_is_no_cache_has_no_entries(data: bytes) -> None:
    assert parse(data) == []


def test_a_truncated_cache_keeps_what_is_whole() -> None:
    whole = ld_cache(TWO)
    assert parse(whole[:-20]) == ENTRIES[:1]


@given(st.binary(max_size=200), st.integers(0, 300), st.integers(0, 255))
def test_damage_never_raises(noise: bytes, at: int, byte: int) -> None:
    for good in (ld_cache(TWO), compatible_ld_cache(TWO), old_ld_cache(TWO)):
        bad = bytearray(good)
        bad[at % len(bad)] = byte
        parse(bytes(bad))
        parse(good[: at % len(good)] + noise)


def test_a_name_need_not_be_utf8() -> None:
    cache = ld_cache([("libx.so.1", "/opt/XY/libx.so.1", X86_64)]).replace(b"XY", b"\xff\xfe")
    assert parse(cache)[0].path.encode("utf-8", "surrogateescape") == b"/opt/\xff\xfe/libx.so.1"


@pytest.mark.parametrize(
    ("arch", "path"),
    [
        ("x86_64", "/lib/x86_64-linux-gnu/libcuda.so.1"),
        ("i686", "/lib/i386-linux-gnu/libcuda.so.1"),
        ("aarch64", None),
        (None, "/lib/x86_64-linux-gnu/libcuda.so.1"),
        ("loongarch64", "/lib/x86_64-linux-gnu/libcuda.so.1"),
    ],
)
def test_a_lookup_takes_the_right_architecture(arch: str | None, path: str | None) -> None:
    assert next(ldcache.lookup(ENTRIES, "libcuda.so.1", arch), None) == path


def test_a_lookup_passes_over_copies_for_special_cpus() -> None:
    special = Entry("libx.so.1", "/lib/glibc-hwcaps/x86-64-v3/libx.so.1", X86_64, 1 << 62)
    plain = Entry("libx.so.1", "/lib/libx.so.1", X86_64)
    assert list(ldcache.lookup([special, plain], "libx.so.1", "x86_64")) == ["/lib/libx.so.1"]


def test_an_aarch64_entry_fits_aarch64_alone() -> None:
    entry = Entry("libx.so.1", "/lib/libx.so.1", AARCH64)
    assert entry.fits("aarch64")
    assert not entry.fits("x86_64")


def test_default_folders() -> None:
    assert ldcache.default_dirs("x86_64")[:2] == (
        "/lib/x86_64-linux-gnu",
        "/usr/lib/x86_64-linux-gnu",
    )
    assert "/usr/lib64" in ldcache.default_dirs("aarch64")
    assert "/lib/aarch64-linux-gnu" in ldcache.default_dirs(None)


def test_folders_of_ld_so_conf_with_includes(tmp_path: Path) -> None:
    host = machine(
        tmp_path,
        {
            "/etc/ld.so.conf": "include ld.so.conf.d/*.conf\n/opt/lib # ours\n",
            "/etc/ld.so.conf.d/b-cuda.conf": "/usr/local/cuda/lib64/\n/usr/local/cuda/compat\n",
            "/etc/ld.so.conf.d/a.conf": "# nothing\nhwcap 0 nosegneg\n/opt/lib:/opt/more\n",
            "/etc/ld.so.conf.d/off.conf.bak": "/never\n",
        },
    )
    assert ldcache.conf_dirs(host) == [
        "/opt/lib",
        "/opt/more",
        "/usr/local/cuda/lib64",
        "/usr/local/cuda/compat",
    ]


def test_an_include_of_itself_ends(tmp_path: Path) -> None:
    host = machine(tmp_path, {"/etc/ld.so.conf": "include /etc/ld.so.conf\n/opt/lib\n"})
    assert ldcache.conf_dirs(host) == ["/opt/lib"]


def test_no_cache_has_no_entries(tmp_path: Path) -> None:
    assert ldcache.read_cache(machine(tmp_path)) == []


def test_this_machines_cache_reads_as_ldconfig_prints_it() -> None:
    ldconfig = shutil.which("ldconfig", path="/usr/sbin:/sbin:/usr/bin")
    assert ldconfig is not None
    printed = subprocess.run([ldconfig, "-p"], capture_output=True, text=True, check=True).stdout
    expected = re.findall(r"^\t(\S+) \(.*?\) => (.+)$", printed, re.MULTILINE)
    assert [(e.soname, e.path) for e in ldcache.read_cache(Host())] == expected
