"""What the dynamic loader would take, worked out from files; nothing is loaded.

An emulation of glibc's ld.so for one process: where it looks for a library that an object asks
for, and which copy stays because it came first. In order:

    already loaded      a library of that name or soname, whoever brought it in
    DT_RPATH            of the object that asks, then of the one that brought that object in, and so
                        on up, then of the program; none of them when the asking object has a
                        DT_RUNPATH, and never that of an object which also has a DT_RUNPATH
    LD_LIBRARY_PATH
    DT_RUNPATH          of the object that asks, of no other
    /etc/ld.so.cache
    default folders

Libraries of another class or machine are passed over, as the loader does. Needed libraries are
taken in breadth first, LD_PRELOAD before all of them. Not followed: path elements that are not
absolute (they depend on where a program is started) and glibc-hwcaps folders (they depend on
the CPU): where one of those holds a copy, `Process.unsure` says so.
"""

from __future__ import annotations

import os
import posixpath
import re
import stat
from bisect import bisect_left
from collections import deque
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from envaudit import ldcache
from envaudit.elf import (
    DF_1_NODEFLIB,
    DT_FLAGS_1,
    DT_NEEDED,
    DT_RPATH,
    DT_RUNPATH,
    DT_SONAME,
    DT_STRSZ,
    PT_INTERP,
    ElfFile,
    NotElf,
)
from envaudit.host import Host

STRINGS_LIMIT_BYTES = 4 << 20
OBJECTS_LIMIT = 2000
"""Most objects of one process; real ones have hundreds."""


class Elf(NamedTuple):
    """What the loader wants to know of a program or library."""

    bits: int = 64
    machine: str = ""
    """Name of the machine in the ELF header: EM_X86_64, EM_AARCH64, ..."""
    soname: str = ""
    needed: tuple[str, ...] = ()
    rpath: tuple[str, ...] = ()
    """Elements of DT_RPATH as written; empty when there is a DT_RUNPATH, which makes it void."""
    runpath: tuple[str, ...] = ()
    has_runpath: bool = False
    nodeflib: bool = False
    """DF_1_NODEFLIB: the default folders are not for this object."""
    interpreter: str = ""
    """The loader that a program names (PT_INTERP)."""
    strings: tuple[int, int] = (0, 0)
    """Place and size of the dynamic string table in the file; symbol versions are named there."""


def open_file(host: Host, path: str) -> int:
    """A descriptor of a regular file of the machine, for reading. Raises OSError."""
    fd = os.open(host.at(path), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(f"{path}: not a regular file")
    return fd


def read_elf(host: Host, path: str) -> Elf:
    """The dynamic section of a program or library, in a few small reads.

    Raises OSError where the file cannot be read and NotElf where it is not understood.
    """
    fd = open_file(host, path)
    try:
        return _asked(ElfFile(lambda at, size: os.pread(fd, size, at)))
    finally:
        os.close(fd)


def _asked(file: ElfFile) -> Elf:
    """What a file asks of the loader."""
    segments = file.segments()
    interpreter = next((s.offset for s in segments if s.kind == PT_INTERP), None)
    found = Elf(
        bits=file.bits,
        machine=file.machine,
        interpreter="" if interpreter is None else file.string(interpreter),
    )
    dynamic = file.dynamic(segments)
    if dynamic is None:  # a static program
        return found
    last, strings = dynamic.last, dynamic.strings

    def text(tag: int) -> str:
        return file.string(strings + last[tag]) if tag in last else ""

    has_runpath = DT_RUNPATH in last
    rpath = "" if has_runpath else text(DT_RPATH)
    return found._replace(
        soname=text(DT_SONAME),
        needed=tuple(file.string(strings + at) for tag, at in dynamic.entries if tag == DT_NEEDED),
        rpath=tuple(rpath.split(":")) if rpath else (),
        runpath=tuple(text(DT_RUNPATH).split(":")) if has_runpath else (),
        has_runpath=has_runpath,
        nodeflib=bool(last.get(DT_FLAGS_1, 0) & DF_1_NODEFLIB),
        strings=(strings, last.get(DT_STRSZ, 0)),
    )


def read_strings(host: Host, path: str, elf: Elf) -> bytes:
    """The dynamic string table of a library: names of its symbols and symbol versions."""
    at, size = elf.strings
    fd = open_file(host, path)
    try:
        return os.pread(fd, min(size, STRINGS_LIMIT_BYTES), at)
    finally:
        os.close(fd)


_NUMBERS = re.compile(r"\d+(\.\d+)?")
_TOKEN = re.compile(r"\$(?:\{(ORIGIN|LIB|PLATFORM)\}|(ORIGIN|LIB|PLATFORM))")


def expand(element: str, origin: str, lib: str, platform: str) -> str:
    """A path element with the loader's tokens replaced: $ORIGIN, $LIB and $PLATFORM."""
    values = {"ORIGIN": origin, "LIB": lib, "PLATFORM": platform}
    return _TOKEN.sub(lambda match: values[match.group(1) or match.group(2)], element)


_MACHINES = {
    "x86_64": (64, "EM_X86_64"),
    "aarch64": (64, "EM_AARCH64"),
    "ppc64le": (64, "EM_PPC64"),
    "s390x": (64, "EM_S390"),
    "riscv64": (64, "EM_RISCV"),
}
_ARCHES = {machine: arch for arch, (_, machine) in _MACHINES.items()}


class Files:
    """What the loader's rules need of one machine; reads every file at most once."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.entries = ldcache.read_cache(host)
        self._elves: dict[str, Elf | NotElf | OSError] = {}
        self._ids: dict[str, tuple[int, int] | None] = {}
        self._names: dict[str, list[str]] = {}
        self._folders: dict[str, str] = {}
        self._hwcaps: dict[str, tuple[str, ...]] = {}
        self._caches: dict[str | None, tuple[dict[str, list[str]], dict[str, str]]] = {}

    def elf(self, path: str) -> Elf:
        """The dynamic section of a file. Raises OSError and NotElf."""
        if path not in self._elves:
            try:
                self._elves[path] = read_elf(self.host, path)
            except (OSError, NotElf) as problem:
                self._elves[path] = problem
        found = self._elves[path]
        if isinstance(found, Elf):
            return found
        raise found

    def identity(self, path: str) -> tuple[int, int] | None:
        """Device and inode of a regular file; None where there is none."""
        if path not in self._ids:
            try:
                status = self.host.stat(path)
            except (OSError, ValueError):
                self._ids[path] = None
            else:
                regular = stat.S_ISREG(status.st_mode)
                self._ids[path] = (status.st_dev, status.st_ino) if regular else None
        return self._ids[path]

    def real(self, path: str) -> str:
        """The real path behind a file's path. Raises OSError."""
        folder, name = posixpath.split(path)
        if folder not in self._folders:
            self._folders[folder] = self.host.real(folder).rstrip("/")
        place = f"{self._folders[folder]}/{name}"
        return place if self.host.readlink(place) is None else self.host.real(place)

    def cache(self, arch: str | None) -> tuple[dict[str, list[str]], dict[str, str]]:
        """Paths by soname in ld.so.cache for an architecture, and those for special CPUs."""
        if arch not in self._caches:
            paths: dict[str, list[str]] = {}
            special: dict[str, str] = {}
            for entry in self.entries:
                if entry.fits(arch):
                    if entry.hwcap:
                        special.setdefault(entry.soname, entry.path)
                    else:
                        paths.setdefault(entry.soname, []).append(entry.path)
            self._caches[arch] = paths, special
        return self._caches[arch]

    def names(self, folder: str, begin: str = "") -> list[str]:
        """Names in a folder that begin so, sorted; none where it cannot be listed."""
        if folder not in self._names:
            try:
                real = self.host.real(folder)
                if real not in self._names:
                    self._names[real] = self.host.listdir(real)
                self._names[folder] = self._names[real]
            except OSError:
                self._names[folder] = []
        names = self._names[folder]
        first = last = bisect_left(names, begin)
        while last < len(names) and names[last].startswith(begin):
            last += 1
        return names[first:last]

    def hwcaps(self, folder: str) -> tuple[str, ...]:
        """The folders for special CPUs below a library folder."""
        if folder not in self._hwcaps:
            below = f"{folder}/glibc-hwcaps"
            try:
                names = self.host.listdir(below)
            except OSError:
                names = []
            self._hwcaps[folder] = tuple(f"{below}/{name}" for name in names)
        return self._hwcaps[folder]


def is_soname(name: str, stem: str) -> bool:
    """Whether a name is STEM.so.1 or STEM.so.1.2, as those are by which libraries are opened."""
    begin = f"{stem}.so."
    return name.startswith(begin) and _NUMBERS.fullmatch(name, len(begin)) is not None


class Loaded:
    """One object of a process, with how it came in."""

    __slots__ = ("elf", "loader", "needed_by", "path", "via")

    def __init__(self, path: str, elf: Elf, via: str, loader: Loaded | None = None) -> None:
        self.path = path
        """As the loader names it: folder that was searched and name; links not followed."""
        self.elf = elf
        self.via = via
        """program | path | LD_PRELOAD | rpath | runpath | LD_LIBRARY_PATH | ldconfig | default"""
        self.loader = loader
        """The object that brought it in; its DT_RPATH counts for what this one needs."""
        self.needed_by: list[Loaded] = []
        """Every object that names it as needed, in order."""

    @property
    def name(self) -> str:
        """Its soname, else the name of its file."""
        return self.elf.soname or posixpath.basename(self.path)


class Missing(NamedTuple):
    """A library that was asked for and not taken."""

    name: str
    asked_by: Loaded | None
    reason: str


class Process:
    """One process as the loader would build it, from a program or from nothing."""

    def __init__(self, files: Files, program: str | None = None) -> None:
        self.files = files
        self.loaded: list[Loaded] = []
        self.missing: list[Missing] = []
        self.unsure: dict[str, str] = {}
        """Name of a library to why it cannot be told which copy is taken."""
        self.program: Loaded | None = None
        self._names: dict[str, Loaded] = {}
        self._by_id: dict[tuple[int, int], Loaded] = {}
        host = files.host
        self._machine = _MACHINES.get(host.arch or "")
        elf = Elf()
        if program is not None:
            program = host.real(program)
            elf = files.elf(program)
            self._machine = (elf.bits, elf.machine)
        arch = host.arch or _ARCHES.get(self._machine[1] if self._machine else "")
        self._platform = arch or ""
        self.default_dirs = ldcache.default_dirs(arch)
        triplet = self.default_dirs[0]
        multiarch = triplet.count("/") == 2 and host.isdir(triplet)
        self._lib = triplet.lstrip("/") if multiarch else "lib64"
        self._cache: dict[str, list[str]] = {}
        self._cache_hwcaps: dict[str, str] = {}
        home = posixpath.dirname(host.real(elf.interpreter)) if elf.interpreter else ""
        if home and not re.match(r"/(usr/)?lib", home):
            # A loader of another tree (Nix, Guix, Gentoo prefix) knows its own folders only.
            self.default_dirs = (home,)
        else:
            self._cache, self._cache_hwcaps = files.cache(arch)
        if program is not None:
            self.program = Loaded(program, elf, "program")
            self._keep(self.program)
        self.library_path = [
            folder.rstrip("/") or "/"
            for part in re.split("[:;]", host.env.get("LD_LIBRARY_PATH", ""))
            if (folder := self._expand(part, self.program)).startswith("/")
        ]
        if self.program is not None:
            queue = deque([self.program])
            names = re.split(r"[\s:]+", host.env.get("LD_PRELOAD", ""))
            names += host.read_or("/etc/ld.so.preload").split()
            for name in filter(None, names):
                found = self._take(name, self.program, "LD_PRELOAD")
                if found is not None:
                    queue.append(found)
            self._needs(queue)

    @property
    def foreign_loader(self) -> str:
        """The program's loader where it is not glibc's, whose rules are others; else ""."""
        interpreter = self.program.elf.interpreter if self.program else ""
        return interpreter if "musl" in interpreter else ""

    def open(self, name: str, caller: Loaded | None = None) -> Loaded | None:
        """What dlopen(name) called from `caller` would bring in, with all it needs.

        None where the library itself is not found. Libraries that it needs and that are not
        found are kept in `missing`; the real call would fail, the rest shows what it would take.
        """
        before = len(self.loaded)
        found = self._take(name, caller or self.program, "")
        if found is not None and len(self.loaded) > before:
            self._needs(deque([found]))
        return found

    def has(self, name: str) -> Loaded | None:
        """The object that is in the process under a name or soname."""
        return self._names.get(name)

    def holds(self, path: str) -> Loaded | None:
        """The object in the process that is this file, whatever the names."""
        identity = self.files.identity(path)
        return self._by_id.get(identity) if identity is not None else None

    def locate(self, name: str, caller: Loaded | None = None) -> str:
        """The path that dlopen(name) from `caller` would end at; "" for none. Takes nothing in."""
        known = self._names.get(name)
        return known.path if known is not None else self._search(name, caller or self.program)[0]

    def try_open(self, name: str, caller: Loaded | None = None) -> bool:
        """Like `open`, but nothing stays when something is missing, as with the real dlopen."""
        state = (list(self.loaded), list(self.missing), dict(self._names), dict(self._by_id))
        askers = [(one, len(one.needed_by)) for one in self.loaded]
        found = self.open(name, caller)
        if found is not None and len(self.missing) == len(state[1]):
            return True
        self.loaded, self.missing, self._names, self._by_id = state
        for one, count in askers:
            del one.needed_by[count:]
        return False

    def available(self, stem: str, caller: Loaded | None = None, *, own: bool = False) -> list[str]:
        """Names STEM.so.1 or STEM.so.1.2 of libraries that dlopen from `caller` could find.

        With `own` only those in folders that the caller or what brought it in names itself.
        """
        begin = f"{stem}.so."
        folders = [
            folder
            for folder, via in self._folders(caller or self.program)
            if not own or via != "LD_LIBRARY_PATH"
        ]
        found: set[str] = set()
        if not own:
            folders += self.default_dirs
            found.update(name for name in (*self._names, *self._cache) if name.startswith(begin))
        for folder in dict.fromkeys(folders):
            found.update(self.files.names(folder, begin))
        return sorted(name for name in found if is_soname(name, stem))

    # -- inside --------------------------------------------------------------------------

    def _needs(self, queue: deque[Loaded]) -> None:
        """Take in what the queued objects need, breadth first."""
        while queue and len(self.loaded) < OBJECTS_LIMIT:
            asking = queue.popleft()
            for name in asking.elf.needed:
                before = len(self.loaded)
                found = self._take(name, asking, "")
                if found is None:
                    continue
                found.needed_by.append(asking)
                if len(self.loaded) > before:
                    queue.append(found)

    def _take(self, name: str, asking: Loaded | None, via: str) -> Loaded | None:
        """The object for a name: one that is there, else the first that the search gives."""
        known = self._names.get(name)
        if known is not None:
            return known
        path, how, elf = self._search(name, asking)
        if elf is None:
            self.missing.append(Missing(name, asking, how))
            return None
        same = self.holds(path)
        if same is not None:
            self._names.setdefault(name, same)
            return same
        found = Loaded(path, elf, via or how, asking)
        if self._machine is None:
            self._machine = (elf.bits, elf.machine)
        self._keep(found)
        self._names.setdefault(name, found)
        return found

    def _search(self, name: str, asking: Loaded | None) -> tuple[str, str, Elf | None]:
        """Path, rule and dynamic section of what the search gives; reason instead of the rule."""
        if "/" in name:
            path = self._expand(name, asking)
            places = iter([(path, "path")] if path.startswith("/") else [])
        else:
            places = self._places(name, asking)
        reason = "not found"
        for path, via in places:
            if self.files.identity(path) is None:
                continue
            try:
                elf = self.files.elf(path)
            except NotElf as problem:  # the real loader gives up here, too
                return "", f"{path}: {problem}", None
            except OSError as problem:
                reason = f"{path}: {problem.strerror or problem}"
                continue
            if self._machine in (None, (elf.bits, elf.machine)):
                return path, via, elf
        return "", reason, None

    def _keep(self, one: Loaded) -> None:
        self.loaded.append(one)
        identity = self.files.identity(one.path)
        if identity is not None:
            self._by_id[identity] = one
        self._names.setdefault(one.path, one)
        if one.elf.soname:
            self._names.setdefault(one.elf.soname, one)

    def _places(self, name: str, asking: Loaded | None) -> Iterator[tuple[str, str]]:
        """Every path that the loader would try for a name, in its order, with the rule."""
        for folder, via in self._folders(asking):
            yield from self._in_folder(folder, name, via)
        defaults = asking is None or not asking.elf.nodeflib
        if name in self._cache_hwcaps:
            self.unsure[name] = f"{self._cache_hwcaps[name]} is taken on CPUs that can use it"
        for path in self._cache.get(name, ()):
            if defaults or posixpath.dirname(path) not in self.default_dirs:
                yield path, "ldconfig"
        if defaults:
            for folder in self.default_dirs:
                yield from self._in_folder(folder, name, "default")

    def _in_folder(self, folder: str, name: str, via: str) -> Iterator[tuple[str, str]]:
        for special in self.files.hwcaps(folder):
            if self.files.identity(f"{special}/{name}") is not None:
                self.unsure[name] = f"{special}/{name} is taken on CPUs that can use it"
        yield f"{folder}/{name}", via

    def _folders(self, asking: Loaded | None) -> Iterator[tuple[str, str]]:
        """The folders that are searched before the cache, each with the rule that names it."""
        if asking is None or not asking.elf.has_runpath:
            above = asking
            seen_program = False
            while above is not None:
                seen_program |= above is self.program
                yield from self._expanded(above.elf.rpath, above, "rpath")
                above = above.loader
            if self.program is not None and not seen_program:
                yield from self._expanded(self.program.elf.rpath, self.program, "rpath")
        for folder in self.library_path:
            yield folder, "LD_LIBRARY_PATH"
        if asking is not None:
            yield from self._expanded(asking.elf.runpath, asking, "runpath")

    def _expanded(
        self, elements: Sequence[str], owner: Loaded, via: str
    ) -> Iterator[tuple[str, str]]:
        for element in elements:
            folder = self._expand(element, owner)
            if folder.startswith("/"):
                yield folder.rstrip("/") or "/", via

    def _expand(self, element: str, owner: Loaded | None) -> str:
        origin = posixpath.dirname(owner.path) if owner is not None else ""
        return expand(element, origin, self._lib, self._platform)
