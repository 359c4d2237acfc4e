"""The CUDA libraries that the target's frameworks would get, by the loader's own rules.

For every framework that is installed its process is built on paper (see `envaudit.entries`);
where there is none, that of a program that asks for the libraries by name. A library that is
asked for and found nowhere has `lib.*.for` alone.
"""

from __future__ import annotations

import contextlib
import posixpath
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from envaudit.elf import NotElf
from envaudit.entries import FRAMEWORKS, Build, importer
from envaudit.libversion import FAMILIES, Versions, family_of, is_main
from envaudit.loader import Files, Loaded, Process, read_strings
from envaudit.probes import Look

INSTALLS_LIMIT = 40
"""Most copies of one library that are listed."""

_INSTALLS = {
    "libcudart": "cuda.runtime.installs",
    "libcudnn": "cudnn.installs",
    "libnccl": "nccl.installs",
}
"""Libraries of which machines tend to have several copies."""

_PLAIN = "a program that asks by name"

Processes = Sequence[tuple[str, Process]]
"""The name of each framework and its process."""


def look(look: Look) -> None:
    """Build every framework's process; tell which copies it takes and which lie around."""
    files = Files(look.host)
    folders = _package_dirs(look)
    versions = Versions(look.host, folders)
    build = Build(files, _program(look, files), folders, versions)
    processes: list[tuple[str, Process]] = []
    bare = Process(files, build.program)
    if bare.foreign_loader:
        reason = f"{bare.foreign_loader} has rules of its own, which are not followed"
        for name in ("lib.*", "os.libstdcxx.version", *(f.fact for f in FAMILIES if f.fact)):
            look.gap(name, reason)
    else:
        for framework in FRAMEWORKS:
            try:
                process = build.framework(framework)
            except OSError as problem:
                look.gap("lib.*", f"{framework.name}: {problem}")
                continue
            if process is not None:
                processes.append((framework.name, process))
        _libstdcxx(look, files, processes or [("the interpreter", bare)])
        if not any(_stack(process) for _, process in processes):
            processes.append((_PLAIN, build.plain()))
    taken = _tell(look, processes, versions)
    _installs(look, bare, folders, versions, taken)


def _package_dirs(look: Look) -> list[str]:
    """The target's folders of packages, in the order of its imports."""
    told = look.value("python.path")
    if isinstance(told, list) and told:
        return [str(path) for path in told if str(path).startswith("/")]
    return list(look.target.site_dirs) if look.target is not None else []


def _program(look: Look, files: Files) -> str | None:
    """The target's interpreter, where it is a program that the loader starts."""
    told = look.value("python.executable")
    for path in (str(told or ""), look.target.executable if look.target else ""):
        if path:
            try:
                files.elf(look.host.real(path))
            except (OSError, NotElf):  # a wrapper script
                continue
            return path
    return None


# -- what is taken -----------------------------------------------------------------------------


class _Copy(NamedTuple):
    """What one framework takes for one name."""

    framework: str
    one: Loaded
    real: str
    version: str
    source: str


def _stack(process: Process) -> list[Loaded]:
    """The libraries of the CUDA stack in a process."""
    return [one for one in process.loaded if family_of(one.name)]


def _tell(look: Look, processes: Processes, versions: Versions) -> dict[str, str]:
    """Tell lib.* and the versions; gives real path to framework of every copy that is taken."""
    found: dict[str, list[_Copy]] = {}
    for framework, process in processes:
        for one in _stack(process):
            real = process.files.real(one.path)
            found.setdefault(one.name, []).append(_Copy(framework, one, real, *versions.of(real)))
    unsure = {
        name: f"{framework}: {reason}"
        for framework, process in processes
        for name, reason in process.unsure.items()
        if family_of(name)
    }
    for name, reason in unsure.items():
        look.gap(f"lib.{name}.*", reason)
    for name, copies in found.items():
        if name in unsure:
            continue
        by_path: dict[str, _Copy] = {}
        for copy in copies:
            by_path.setdefault(copy.real, copy)
        if len(by_path) == 1:
            _tell_one(look, name, copies[0])
        else:
            takes = (f"{copy.framework} takes {real}" for real, copy in by_path.items())
            look.gap(f"lib.{name}.*", ", ".join(takes))
    _tell_missing(look, processes, set(found))
    _tell_versions(look, found, unsure)
    return {copy.real: copy.framework for copies in found.values() for copy in copies}


def _tell_one(look: Look, name: str, copy: _Copy) -> None:
    one = copy.one
    own = [asker for asker in one.needed_by if not family_of(asker.name)]
    asker = next(iter(own or one.needed_by), one.loader)
    if not one.needed_by and asker is not None and not family_of(asker.name):
        asker = None  # the interpreter, on behalf of the framework
    who = asker.path if asker is not None else copy.framework
    rule = {
        "path": f"loaded by path by {copy.framework}",
        "rpath": f"DT_RPATH on the way to {who}",
        "runpath": f"DT_RUNPATH of {who}",
        "ldconfig": "ldconfig -p",
        "default": "default folders of the loader",
    }.get(one.via, one.via)
    look.add(f"lib.{name}.path", copy.real, rule)
    look.add(f"lib.{name}.via", "preload" if one.via == "path" else one.via, rule)
    if asker is not None:
        look.add(f"lib.{name}.for", f"{copy.framework}: {asker.name}", f"readelf -d {asker.path}")
    elif copy.framework != _PLAIN:
        look.add(f"lib.{name}.for", copy.framework, rule)
    if copy.version:
        look.add(f"lib.{name}.version", copy.version, copy.source)
    else:
        look.gap(f"lib.{name}.version", f"no file tells the version of {copy.real}")


def _tell_missing(look: Look, processes: Processes, found: set[str]) -> None:
    """Who asks for a library that is found nowhere."""
    for framework, process in processes:
        for name, asker, reason in process.missing:
            if asker is None or name in found or not family_of(name):
                continue
            found.add(name)
            look.add(f"lib.{name}.for", f"{framework}: {asker.name}", f"readelf -d {asker.path}")
            if reason != "not found":
                look.gap(f"lib.{name}.path", reason)


def _tell_versions(look: Look, found: dict[str, list[_Copy]], unsure: dict[str, str]) -> None:
    """The version of each library as the frameworks take it; a gap where they differ."""
    for family in FAMILIES:
        if not family.fact:
            continue
        names = [name for name in (*found, *unsure) if is_main(name, family)]
        doubt = next((unsure[name] for name in names if name in unsure), "")
        copies = [copy for name in names for copy in found.get(name, ())]
        by_version = {copy.version: copy for copy in reversed(_wanted(copies))}
        if doubt:
            look.gap(family.fact, doubt)
        elif "" in by_version:
            look.gap(family.fact, f"no file tells the version of {by_version[''].real}")
        elif len(by_version) > 1:
            takes = [f"{copy.framework} takes {version}" for version, copy in by_version.items()]
            look.gap(family.fact, ", ".join(reversed(takes)))
        else:
            for version, copy in by_version.items():
                look.add(family.fact, version, f"{copy.source} ({copy.framework})")


def _wanted(copies: Sequence[_Copy]) -> list[_Copy]:
    """Without copies that a framework loads in advance and never needs, where it has others."""
    wanted = [copy for copy in copies if copy.one.needed_by or copy.one.via != "path"]
    served = {copy.framework for copy in wanted}
    return [copy for copy in copies if copy in wanted or copy.framework not in served]


# -- the C++ library ---------------------------------------------------------------------------


def _libstdcxx(look: Look, files: Files, processes: Processes) -> None:
    """The newest symbol version of the C++ library that the process gets."""
    found: dict[str, str] = {}
    for framework, process in processes:
        one = process.has("libstdc++.so.6") or process.open("libstdc++.so.6", importer(process))
        if one is None:
            continue
        try:
            version = newest_glibcxx(read_strings(look.host, one.path, one.elf))
        except OSError as problem:
            look.gap("os.libstdcxx.version", f"{one.path}: {problem}")
            return
        if not version:
            look.gap("os.libstdcxx.version", f"{one.path} names no GLIBCXX version")
            return
        found.setdefault(version, f"{framework} takes {look.host.real(one.path)}")
    if len(found) > 1:
        reasons = (f"{taker} ({version})" for version, taker in found.items())
        look.gap("os.libstdcxx.version", ", ".join(reasons))
        return
    for version, taker in found.items():
        look.add("os.libstdcxx.version", version, f"GLIBCXX symbol versions: {taker}")


def newest_glibcxx(strings: bytes) -> str:
    """The highest GLIBCXX_3.4.N among NUL-ended strings, as "3.4.30"; "" where there is none."""
    numbers = re.findall(rb"GLIBCXX_3\.4\.(\d{1,4})\0", strings)
    return f"3.4.{max(map(int, numbers))}" if numbers else ""


# -- what lies around --------------------------------------------------------------------------


def _installs(
    look: Look, bare: Process, folders: Sequence[str], versions: Versions, taken: dict[str, str]
) -> None:
    """Every copy of the libraries that are most often there twice, with the taken ones marked."""
    host = look.host
    found: dict[str, dict[str, str]] = {stem: {} for stem in _INSTALLS}

    def note(path: str, via: str) -> None:
        family = family_of(posixpath.basename(path))
        if family and family.stem in found and is_main(posixpath.basename(path), family):
            real = bare.files.real(path)
            if host.exists(real):
                found[family.stem].setdefault(real, via)

    for folder, via in _places(look, bare, folders):
        for stem in _INSTALLS:
            for name in bare.files.names(folder, stem):
                with contextlib.suppress(OSError):
                    note(f"{folder}/{name}", via)
    for real in taken:
        note(real, "loader")
    for stem, fact in _INSTALLS.items():
        lines = [
            f"{real} {versions.of(real)[0] or 'unknown'} {via}"
            + (f" (taken by {taken[real]})" if real in taken else "")
            for real, via in found[stem].items()
        ]
        if len(lines) > INSTALLS_LIMIT:
            lines = [*lines[:INSTALLS_LIMIT], f"and {len(lines) - INSTALLS_LIMIT} more"]
        if lines:
            look.add(fact, [*lines], "package folders, toolkits and folders of the loader")


def _places(look: Look, bare: Process, folders: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Folders where CUDA libraries lie, each once, with what makes it known."""
    host = look.host

    def names(folder: str) -> list[str]:
        with contextlib.suppress(OSError):
            return host.listdir(folder)
        return []

    places: list[tuple[str, str]] = []
    for folder in folders:
        places += [(f"{folder}/nvidia/{one}/lib", "wheel") for one in names(f"{folder}/nvidia")]
        places.append((f"{folder}/torch/lib", "torch"))
    prefix = look.target.prefix if look.target else ""
    if prefix and "conda-meta" in names(prefix):
        places.append((f"{prefix}/lib", "conda"))
    places += [(folder, "LD_LIBRARY_PATH") for folder in bare.library_path]
    places += [
        (posixpath.dirname(entry.path), "ldconfig")
        for entry in bare.files.entries
        if family_of(entry.soname)
    ]
    homes = [host.env.get(name, "") for name in ("CUDA_HOME", "CUDA_PATH", "CUDA_ROOT")]
    homes += [f"/usr/local/{name}" for name in names("/usr/local") if name[:4] == "cuda"]
    for home in filter(None, [*homes, "/opt/cuda"]):
        places += [(f"{home}/lib64", "toolkit"), (f"{home}/lib", "toolkit")]
        places += [(f"{home}/targets/{t}/lib", "toolkit") for t in names(f"{home}/targets")]
    places += [(folder, "default") for folder in bare.default_dirs]
    seen: set[str] = set()
    for folder, via in places:
        with contextlib.suppress(OSError):
            real = host.real(folder)
            if real not in seen:
                seen.add(real)
                yield folder, via
