"""The loader on paper against the real one: small programs are built, and both are asked."""

from __future__ import annotations

import contextlib
import os
import platform
import struct
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from hypothesis import given
from hypothesis import strategies as st

from envaudit.elf import DT_RUNPATH, NotElf
from envaudit.host import Host
from envaudit.loader import Elf, Files, Process, expand, read_elf
from tests.probing import machine

GCC = ["gcc", "-shared", "-fPIC", "-xc", "-Wl,--no-as-needed", "-Wl,--allow-shlib-undefined"]


@dataclass
class Kit:
    """Builds libraries and programs in folders below `top`, which stands for {top} in paths."""

    top: Path
    built: dict[str, Path] = field(default_factory=dict)

    def lib(
        self, place: str, *needs: str, rpath: str = "", runpath: str = "", tag: str = ""
    ) -> Path:
        """A library at `place`; `needs` are places of libraries that exist when it is linked."""
        path = self.top / place
        path.parent.mkdir(parents=True, exist_ok=True)
        self._link([*GCC, f"-Wl,-soname,{path.name}"], path, needs, rpath, runpath, f"int x{tag};")
        return path

    def program(self, *needs: str, rpath: str = "", runpath: str = "", flags: str = "") -> Path:
        """The program `main`, which opens by dlopen what it gets as arguments."""
        path = self.top / "main"
        source = r"""
            #include <dlfcn.h>
            #include <stdio.h>
            int main(int n, char **names) {
                for (int i = 1; i < n; i++)
                    if (!dlopen(names[i], RTLD_LAZY)) printf("failed %s\n", dlerror());
                FILE *maps = fopen("/proc/self/maps", "r");
                for (int c; (c = getc(maps)) != EOF;) putchar(c);
                return 0;
            }"""
        command = [
            "gcc",
            "-xc",
            "-Wl,--no-as-needed",
            "-Wl,--allow-shlib-undefined",
            *flags.split(),
        ]
        self._link(command, path, needs, rpath, runpath, source)
        return path

    def _link(
        self,
        command: list[str],
        path: Path,
        needs: tuple[str, ...],
        rpath: str,
        runpath: str,
        source: str,
    ) -> None:
        command = [*command, "-", "-o", str(path), "-xnone"]
        command += [str(self.top / need) for need in needs]
        for value, how in ((rpath, "disable"), (runpath, "enable")):
            if value:
                where = value.replace("{top}", str(self.top))
                command += [f"-Wl,-rpath,{where}", f"-Wl,--{how}-new-dtags"]
        subprocess.run(command, input=source.encode(), check=True, capture_output=True)

    def env(self, **values: str) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            **{name: value.replace("{top}", str(self.top)) for name, value in values.items()},
        }

    def process(self, **env: str) -> Process:
        return Process(Files(Host(env=self.env(**env))), str(self.top / "main"))

    def real(self, **env: str) -> dict[str, str]:
        """Library name to real path, "" for not found, as the real loader lists them."""
        done = subprocess.run(
            [str(self.top / "main")],
            env={**self.env(**env), "LD_TRACE_LOADED_OBJECTS": "1"},
            capture_output=True,
            text=True,
        )
        found = {}
        for line in done.stdout.splitlines():
            name, arrow, rest = line.strip().partition(" => ")
            if arrow:
                path = "" if rest.startswith("not found") else rest.rsplit(" (", 1)[0]
                found[name] = os.path.realpath(path) if path else ""
        return found

    def mapped(self, *opened: str, **env: str) -> set[str]:
        """Real paths below `top` that the program has mapped after it opened some names."""
        done = subprocess.run(
            [str(self.top / "main"), *opened], env=self.env(**env), capture_output=True, text=True
        )
        paths = {line.split(None, 5)[-1] for line in done.stdout.splitlines()}
        return {path for path in paths if path.startswith(f"{self.top}/") and ".so" in path}


@pytest.fixture
def kit(tmp_path: Path) -> Kit:
    return Kit(Path(os.path.realpath(tmp_path)))


def ours(process: Process) -> dict[str, str]:
    found = {}
    for one in process.loaded[1:]:
        for asking in process.loaded:
            for name in asking.elf.needed:
                if process.has(name) is one:
                    found[name] = os.path.realpath(one.path)
    return {**found, **{missing.name: "" for missing in process.missing}}


def same(kit: Kit, **env: str) -> dict[str, str]:
    """What both say for a program's own libraries, by name; fails where they differ."""
    process = kit.process(**env)
    real = kit.real(**env)
    mine = ours(process)
    # The real loader lists itself by its path and the kernel's vdso without one.
    assert {n: p for n, p in mine.items() if not n.startswith("ld-linux")} == real
    return {name: path.replace(f"{kit.top}/", "") for name, path in real.items()}


def via(kit: Kit, name: str, **env: str) -> str:
    one = kit.process(**env).has(name)
    return one.via if one else "nothing"


def test_runpath_comes_after_the_library_path(kit: Kit) -> None:
    kit.lib("one/libx.so")
    kit.lib("two/libx.so")
    kit.program("one/libx.so", runpath="{top}/one")
    assert same(kit)["libx.so"] == "one/libx.so"
    assert same(kit, LD_LIBRARY_PATH="{top}/two")["libx.so"] == "two/libx.so"
    assert via(kit, "libx.so") == "runpath"
    assert via(kit, "libx.so", LD_LIBRARY_PATH="{top}/two") == "LD_LIBRARY_PATH"


def test_rpath_comes_before_the_library_path(kit: Kit) -> None:
    kit.lib("one/libx.so")
    kit.lib("two/libx.so")
    kit.program("one/libx.so", rpath="{top}/one")
    assert same(kit, LD_LIBRARY_PATH="{top}/two")["libx.so"] == "one/libx.so"
    assert via(kit, "libx.so", LD_LIBRARY_PATH="{top}/two") == "rpath"


def test_rpath_counts_for_libraries_further_down(kit: Kit) -> None:
    kit.lib("one/libz9.so")
    kit.lib("one/liby.so", "one/libz9.so")
    kit.lib("one/libx.so", "one/liby.so")
    kit.program("one/libx.so", rpath="{top}/one")
    assert same(kit)["libz9.so"] == "one/libz9.so"


def test_runpath_counts_for_its_own_object_only(kit: Kit) -> None:
    kit.lib("one/liby.so")
    kit.lib("one/libx.so", "one/liby.so")
    kit.program("one/libx.so", runpath="{top}/one")
    assert same(kit)["liby.so"] == ""
    assert same(kit, LD_LIBRARY_PATH="{top}/one")["liby.so"] == "one/liby.so"


def test_an_object_with_runpath_ignores_every_rpath_above(kit: Kit) -> None:
    kit.lib("one/liby.so")
    kit.lib("one/libx.so", "one/liby.so", runpath="{top}/nothing")
    kit.program("one/libx.so", rpath="{top}/one")
    assert same(kit)["liby.so"] == ""


def test_rpath_passes_through_an_object_with_runpath_to_those_below(kit: Kit) -> None:
    kit.lib("one/libz9.so")
    kit.lib("two/liby.so", "one/libz9.so")
    kit.lib("one/libx.so", "two/liby.so", runpath="{top}/two")
    kit.program("one/libx.so", rpath="{top}/one")
    assert same(kit)["libz9.so"] == "one/libz9.so"


def test_rpath_of_the_nearest_object_is_first(kit: Kit) -> None:
    kit.lib("one/liby.so")
    kit.lib("two/liby.so")
    kit.lib("one/libx.so", "two/liby.so", rpath="{top}/two")
    kit.program("one/libx.so", rpath="{top}/one")
    assert same(kit)["liby.so"] == "two/liby.so"


@pytest.mark.parametrize(
    "element", ["$ORIGIN/../lib", "${ORIGIN}/../lib", "/nowhere:$ORIGIN/../lib"]
)
@pytest.mark.parametrize("kind", ["rpath", "runpath"])
def test_origin_is_the_folder_of_the_object(kit: Kit, kind: str, element: str) -> None:
    kit.lib("pkg/lib/liby.so")
    kit.lib("pkg/deep/libx.so", "pkg/lib/liby.so", **{kind: element})
    kit.program("pkg/deep/libx.so", rpath="$ORIGIN/pkg/deep")
    assert same(kit)["liby.so"] == "pkg/lib/liby.so"


def test_origin_is_taken_before_links_are_followed(kit: Kit) -> None:
    kit.lib("real/lib/liby.so")
    kit.lib("other/lib/liby.so")
    kit.lib("real/bin/libx.so", "real/lib/liby.so", runpath="$ORIGIN/../lib")
    (kit.top / "other/bin").mkdir()
    (kit.top / "other/bin/libx.so").symlink_to("../../real/bin/libx.so")
    kit.program("real/bin/libx.so", rpath="{top}/other/bin")
    assert same(kit)["liby.so"] == "other/lib/liby.so"


def test_lib_and_platform(kit: Kit) -> None:
    """$LIB differs by distribution: lib64 or lib/x86_64-linux-gnu."""
    for folder in ("lib64", f"lib/{platform.machine()}-linux-gnu"):
        kit.lib(f"{folder}/libx.so")
    kit.program("lib64/libx.so", rpath="{top}/$LIB")
    assert same(kit)["libx.so"].startswith("lib")


def test_what_is_loaded_first_serves_everybody(kit: Kit) -> None:
    kit.lib("one/liby.so")
    kit.lib("two/liby.so")
    kit.lib("one/libx.so", "two/liby.so", rpath="{top}/two")
    kit.program("one/liby.so", "one/libx.so", rpath="{top}/one")
    assert same(kit)["liby.so"] == "one/liby.so"


def test_needed_libraries_are_taken_breadth_first(kit: Kit) -> None:
    for place in ("one", "two"):
        kit.lib(f"{place}/libend.so")
    kit.lib("one/libdeep.so", "one/libend.so", rpath="{top}/one")
    kit.lib("one/liba.so", "one/libdeep.so", rpath="{top}/one")
    kit.lib("one/libb.so", "two/libend.so", rpath="{top}/two")
    kit.program("one/liba.so", "one/libb.so", rpath="{top}/one")
    assert same(kit)["libend.so"] == "two/libend.so"


def test_a_soname_counts_whatever_the_file_is_called(kit: Kit) -> None:
    kit.lib("one/libx.so.1")
    (kit.top / "one/libx.so.1").rename(kit.top / "one/libx.so.1.2.3")
    (kit.top / "one/libx.so.1").symlink_to("libx.so.1.2.3")
    kit.program("one/libx.so.1", rpath="{top}/one")
    assert same(kit)["libx.so.1"] == "one/libx.so.1.2.3"
    process = kit.process()
    assert process.open(str(kit.top / "one/libx.so.1.2.3")) is process.has("libx.so.1")


def test_preloaded_libraries_come_first(kit: Kit) -> None:
    kit.lib("one/libx.so")
    kit.lib("two/libx.so")
    kit.program("one/libx.so", rpath="{top}/one")
    env = {"LD_PRELOAD": f"{kit.top}/two/libx.so"}
    assert kit.mapped(**env) == {f"{kit.top}/two/libx.so"}
    process = kit.process(**env)
    one = process.has("libx.so")
    assert one is not None
    assert (one.path, one.via) == (f"{kit.top}/two/libx.so", "LD_PRELOAD")
    assert not process.missing


def test_libraries_of_another_machine_are_passed_over(kit: Kit) -> None:
    kit.lib("one/libx.so")
    foreign = kit.lib("two/libx.so")
    data = bytearray(foreign.read_bytes())
    struct.pack_into("<H", data, 18, 0xB7 if platform.machine() == "x86_64" else 0x3E)
    foreign.write_bytes(data)
    kit.program("one/libx.so", runpath="{top}/one")
    assert same(kit, LD_LIBRARY_PATH="{top}/two")["libx.so"] == "one/libx.so"


def test_libraries_of_another_class_are_passed_over(kit: Kit) -> None:
    kit.lib("one/libx.so")
    foreign = kit.lib("two/libx.so")
    data = bytearray(foreign.read_bytes())
    data[4] = 1  # ELFCLASS32
    struct.pack_into("<H", data, 18, 3)
    foreign.write_bytes(data)
    kit.program("one/libx.so", runpath="{top}/one")
    assert same(kit, LD_LIBRARY_PATH="{top}/two")["libx.so"] == "one/libx.so"


@pytest.mark.parametrize("content", [b"", b"not an ELF file" * 20, b"\x7fELF"])
def test_a_broken_library_ends_the_search(kit: Kit, content: bytes) -> None:
    kit.lib("one/libx.so")
    kit.program("one/libx.so", runpath="{top}/one")
    (kit.top / "two").mkdir()
    (kit.top / "two/libx.so").write_bytes(content)
    env = {"LD_LIBRARY_PATH": f"{kit.top}/two"}
    done = subprocess.run([kit.top / "main"], env=kit.env(**env), capture_output=True, text=True)
    assert done.returncode == 127
    assert f"{kit.top}/two/libx.so: " in done.stderr
    process = kit.process(**env)
    assert process.has("libx.so") is None
    assert process.missing[0].reason.startswith(f"{kit.top}/two/libx.so: ")


def test_a_folder_named_like_a_library_is_no_library(kit: Kit) -> None:
    kit.lib("one/libx.so")
    kit.program("one/libx.so", runpath="{top}/one")
    (kit.top / "two/libx.so").mkdir(parents=True)
    process = kit.process(LD_LIBRARY_PATH="{top}/two")
    one = process.has("libx.so")
    assert one is not None
    assert one.path == f"{kit.top}/one/libx.so"


def test_libraries_of_the_system_come_from_the_cache(kit: Kit) -> None:
    kit.program(
        "/usr/lib/x86_64-linux-gnu/libz.so.1"
        if os.path.exists("/usr/lib/x86_64-linux-gnu/libz.so.1")
        else "/usr/lib64/libz.so.1"
    )
    same(kit)
    assert via(kit, "libz.so.1") == "ldconfig"


def test_an_object_may_refuse_the_default_folders(kit: Kit) -> None:
    kit.program(flags="-Wl,-z,nodefaultlib")
    assert same(kit) == {"libc.so.6": ""}


def test_the_library_path_takes_semicolons_and_unwritten_folders(kit: Kit) -> None:
    kit.lib("one/libx.so")
    kit.program("one/libx.so")
    assert same(kit, LD_LIBRARY_PATH="/nowhere;{top}/one:")["libx.so"] == "one/libx.so"
    assert same(kit, LD_LIBRARY_PATH="/nowhere:$ORIGIN/one/")["libx.so"] == "one/libx.so"


@pytest.mark.parametrize(
    ("program", "opener", "path", "expected"),
    [
        ({}, {"runpath": "{top}/two"}, "", "two"),
        ({}, {"runpath": "{top}/two"}, "{top}/three", "three"),
        ({}, {"rpath": "{top}/two"}, "{top}/three", "two"),
        ({"rpath": "{top}/three"}, {}, "", "three"),
        ({"rpath": "{top}/three"}, {"rpath": "{top}/two"}, "", "two"),
        ({"rpath": "{top}/three"}, {"runpath": "{top}/nothing"}, "", ""),
        ({"runpath": "{top}/three"}, {}, "", ""),
        ({"runpath": "{top}/three"}, {}, "{top}/two", "two"),
    ],
)
def test_opened_by_name(
    kit: Kit, program: Mapping[str, str], opener: Mapping[str, str], path: str, expected: str
) -> None:
    """A needed library of an opened one: same rules as for what the opened one opens itself."""
    for place in ("two", "three"):
        kit.lib(f"{place}/liby.so")
    kit.lib("one/libx.so", "two/liby.so", **opener)
    kit.program(**program)
    env = {"LD_LIBRARY_PATH": path} if path else {}
    real = kit.mapped(f"{kit.top}/one/libx.so", **env) - {f"{kit.top}/one/libx.so"}
    process = kit.process(**env)
    x = process.open(f"{kit.top}/one/libx.so")
    assert x is not None
    y = process.has("liby.so")
    assert real == ({f"{kit.top}/{expected}/liby.so"} if expected else set())
    assert (y.path if y else "") == (f"{kit.top}/{expected}/liby.so" if expected else "")
    again = kit.process(**env)
    assert again.locate("liby.so", again.open(f"{kit.top}/one/libx.so")) == (y.path if y else "")


def test_a_failed_open_leaves_nothing(kit: Kit) -> None:
    kit.lib("two/liby.so")
    kit.lib("one/libx.so", "two/liby.so")
    kit.program()
    process = kit.process()
    before = list(process.loaded)
    assert process.try_open(f"{kit.top}/one/libx.so") is False
    assert process.loaded == before
    assert process.has("libx.so") is None
    assert not process.missing
    assert process.try_open(f"{kit.top}/two/liby.so") is True
    assert process.try_open(f"{kit.top}/one/libx.so") is True
    assert kit.mapped(f"{kit.top}/two/liby.so", f"{kit.top}/one/libx.so") == {
        f"{kit.top}/two/liby.so",
        f"{kit.top}/one/libx.so",
    }


def test_a_copy_for_special_cpus_makes_it_unsure(kit: Kit) -> None:
    kit.lib("one/libx.so")
    kit.lib("one/glibc-hwcaps/x86-64-v2/libx.so")
    kit.program("one/libx.so", rpath="{top}/one")
    assert list(kit.process().unsure) == ["libx.so"]


def test_the_interpreter_of_this_test(kit: Kit) -> None:
    (kit.top / "main").symlink_to(os.path.realpath(sys.executable))
    same(kit)


def test_what_could_be_opened(kit: Kit) -> None:
    for place in ("one/libx.so.1", "one/libx.so.2", "two/libx.so.3"):
        kit.lib(place)
    opener = kit.lib("one/libopener.so", runpath="$ORIGIN")
    kit.program()
    process = kit.process(LD_LIBRARY_PATH="{top}/two")
    caller = process.open(str(opener))
    assert process.available("libx", caller) == ["libx.so.1", "libx.so.2", "libx.so.3"]
    assert process.available("libx", caller, own=True) == ["libx.so.1", "libx.so.2"]
    assert process.available("libx") == ["libx.so.3"]


def test_files_of_another_root(tmp_path: Path) -> None:
    """A mounted image: links and paths are its own, its cache is empty, nothing of ours leaks."""
    kit = Kit(tmp_path / "build")
    lib = kit.lib("libx.so.1").read_bytes()
    opener = kit.lib("libopener.so", "libx.so.1", runpath="/opt/new").read_bytes()
    host = machine(
        tmp_path / "image",
        {"/opt/old/libx.so.1": lib, "/usr/lib/libopener.so": opener},
        {"/opt/new": "/opt/old"},
    )
    process = Process(Files(host))
    process.open("/usr/lib/libopener.so")
    one = process.has("libx.so.1")
    assert one is not None
    assert (one.path, one.via) == ("/opt/new/libx.so.1", "runpath")
    assert process.has("libc.so.6") is None
    assert {missing.name for missing in process.missing} == {"libc.so.6"}


def test_a_program_of_musl_is_not_ours_to_follow(kit: Kit) -> None:
    main = kit.program(flags="-Wl,--dynamic-linker=/lib/ld-musl-x86_64.so.1")
    assert Process(Files(Host(env={})), str(main)).foreign_loader == "/lib/ld-musl-x86_64.so.1"


def test_a_loader_of_another_tree_knows_its_own_folder(kit: Kit) -> None:
    main = kit.program(flags=f"-Wl,--dynamic-linker={kit.top}/store/ld-linux-x86-64.so.2")
    kit.lib("store/libx.so")
    process = Process(Files(Host(env={})), str(main))
    assert process.open("libx.so") is not None
    assert process.open("libz.so.1") is None


def test_of_two_runpaths_the_last_counts(kit: Kit) -> None:
    """As a linker never writes it; the reader of the real loader keeps the last of each tag."""
    kit.lib("one/libx.so")
    kit.lib("two/libx.so")
    main = kit.program("one/libx.so", runpath="{top}/one:{top}/two")
    assert same(kit)["libx.so"] == "one/libx.so"
    with main.open("rb") as file:
        dynamic = ELFFile(file).get_section_by_name(".dynamic")
        assert isinstance(dynamic, DynamicSection)
        tags = [(tag["d_tag"], tag["d_val"]) for tag in dynamic.iter_tags()]
        at = dynamic["sh_offset"] + 16 * (len(tags) - 1)
    data = bytearray(main.read_bytes())
    second = dict(tags)["DT_RUNPATH"] + len(f"{kit.top}/one:")
    assert data[at : at + 32] == bytes(32)  # DT_NULL, and room for one more entry
    struct.pack_into("=qQ", data, at, DT_RUNPATH, second)
    main.write_bytes(data)
    assert same(kit)["libx.so"] == "two/libx.so"


def test_the_dynamic_section_as_readelf_prints_it(kit: Kit) -> None:
    path = kit.lib("libx.so.3", rpath="$ORIGIN:/a:", tag="q")
    elf = read_elf(Host(), str(path))
    assert elf.soname == "libx.so.3"
    assert elf.needed == ("libc.so.6",)
    assert elf.rpath == ("$ORIGIN", "/a", "")
    assert elf.runpath == ()
    assert (elf.bits, elf.machine) == (64, f"EM_{platform.machine().upper()}")


def test_expand() -> None:
    for element, expected in (
        ("$ORIGIN/../lib", "/o/../lib"),
        ("${ORIGIN}/x", "/o/x"),
        ("/usr/$LIB/$PLATFORM", "/usr/lib64/x86_64"),
        ("$UNKNOWN/x", "$UNKNOWN/x"),
    ):
        assert expand(element, "/o", "lib64", "x86_64") == expected


ELF_START = Path(os.path.realpath(sys.executable)).read_bytes()[:6000]


@given(
    cut=st.integers(0, len(ELF_START)),
    changes=st.lists(st.tuples(st.integers(0, 1200), st.integers(0, 255)), max_size=12),
)
def test_no_bytes_upset_the_reader(
    tmp_path_factory: pytest.TempPathFactory, cut: int, changes: list[tuple[int, int]]
) -> None:
    data = bytearray(ELF_START)
    for at, value in changes:
        data[at] = value
    path = tmp_path_factory.getbasetemp() / "broken.so"
    path.write_bytes(data[:cut])
    with contextlib.suppress(NotElf, OSError):
        assert isinstance(read_elf(Host(), str(path)), Elf)
