"""Cells of the catalogues as the metadata of one release tells them, and when two cells agree."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.markers import Marker
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, Specifier, SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from envaudit.constraint import release
from tools.metadata import Release

CATALOGUES = Path(__file__).resolve().parent.parent / "matrices" / "catalogues"

Value = Any
"""A cell as JSON has it; None where metadata says that there is nothing."""


class NotRead(Exception):
    """The metadata at hand leaves this cell open."""


# -- one release as columns ---------------------------------------------------------------------


def _known(value: Value) -> Value:
    if value is None:
        raise NotRead
    return value


def released(item: Release) -> Value:
    """Day of its first file."""
    return _known(item.day)


def requires_python(item: Release) -> Value:
    """Requires-Python."""
    return item.requires_python


def yanked(item: Release) -> Value:
    """True or nothing."""
    return item.yanked or None


def source_only(item: Release) -> Value:
    """True where there is no wheel, else nothing."""
    return True if item.sdist and not item.wheels else None


def _is_linux(platform: str, machine: str) -> bool:
    return "linux" in platform and "musl" not in platform and platform.endswith(machine)


def _tags(item: Release, machine: str | None) -> Iterator[tuple[str, str]]:
    """Python and ABI tag of each wheel, for Linux on a machine or (None) for any platform."""
    for platform, tags in item.wheels.items():
        if machine is None or _is_linux(platform, machine):
            for tag in tags:
                python, _, abi = tag.partition("-")
                yield python, abi


def _python(tag: str) -> str | None:
    found = re.fullmatch(r"cp(\d)(\d+)", tag)
    return f"{found[1]}.{found[2]}" if found else None


def pythons(item: Release, machine: str | None = "x86_64") -> Value:
    """Python versions with wheels; t stands for free-threaded."""
    found = {
        python + ("t" if abi.endswith("t") else "")
        for tag, abi in _tags(item, machine)
        if (python := _python(tag)) is not None
    }
    return sorted(found, key=_by_python) or None


def _by_python(label: str) -> tuple[tuple[int, ...], bool]:
    return release(label), label.endswith("t")


def pythons_anywhere(item: Release) -> Value:
    """Python versions with wheels of any platform."""
    return pythons(item, None)


def abi3_from(item: Release) -> Value:
    """Lowest Python of a wheel for the stable ABI on Linux x86_64."""
    found = [_python(tag) for tag, abi in _tags(item, "x86_64") if abi == "abi3"]
    return min(filter(None, found), key=release, default=None)


@functools.cache
def _manylinux() -> Mapping[str, str]:
    rows = json.loads((CATALOGUES / "manylinux-tags.json").read_text(encoding="utf-8"))["rows"]
    return {row["tag"]: row["glibc"] for row in rows}


def glibc_floors(item: Release, machine: str) -> list[str]:
    """glibc that each kind of Linux wheel of the release accepts, from the lowest."""
    floors = set()
    for platform in item.wheels:
        if _is_linux(platform, machine):
            of_tags = [floor for tag in platform.split(".") if (floor := _floor(tag))]
            if of_tags:
                floors.add(min(of_tags, key=release))
    return sorted(floors, key=release)


def _floor(platform: str) -> str | None:
    if found := re.fullmatch(r"manylinux_(\d+)_(\d+)_.+", platform):
        return f"{found[1]}.{found[2]}"
    found = re.fullmatch(r"(manylinux\d+)_.+", platform)
    return _manylinux().get(found[1]) if found else None


def glibc(item: Release, machine: str = "x86_64") -> Value:
    """Lowest glibc by the platform tags."""
    return next(iter(glibc_floors(item, machine)), None)


def glibc_of_all(item: Release, machine: str = "x86_64") -> Value:
    """glibc that every wheel accepts, by the platform tags."""
    return next(reversed(glibc_floors(item, machine)), None)


def on(machine: str, read: Callable[[Release, str], Value]) -> Callable[[Release], Value]:
    """A reader for another machine."""
    return lambda item: read(item, machine)


def platform_tags(item: Release) -> Value:
    """Platform tags of its wheels, those for macOS left out: no GPU of ours is there."""
    tags = {tag for joined in item.wheels for tag in joined.split(".")}
    return sorted(tag for tag in tags if not tag.startswith("macosx")) or None


def windows(item: Release) -> Value:
    """Whether there is a wheel for Windows."""
    return any(joined.startswith("win") for joined in item.wheels)


def kind_of_wheel(item: Release) -> Value:
    """What stands in the place of Python versions where wheels are not built for one."""
    if source_only(item):
        return "source only"
    tags = set(_tags(item, None))
    return "any Python 3" if tags and tags <= {("py3", "none"), ("py2", "none")} else None


# -- requirements -------------------------------------------------------------------------------


@functools.cache
def parsed(text: str) -> Requirement | None:
    """A requirement; None for one that today's rules do not know."""
    try:
        return Requirement(text)
    except InvalidRequirement:
        return None


_LINUX = {
    "implementation_name": "cpython",
    "os_name": "posix",
    "platform_machine": "x86_64",
    "platform_python_implementation": "CPython",
    "platform_release": "",
    "platform_system": "Linux",
    "platform_version": "",
    "sys_platform": "linux",
}
_MINORS = range(6, 40)


@functools.cache
def _holds(marker: str, extra: str, python_range: str) -> bool:
    """Whether a marker holds on Linux x86_64, for a Python that the release is for."""
    rule, admitted = Marker(marker), SpecifierSet(python_range)
    for minor in _MINORS:
        full = f"3.{minor}.0"
        if admitted.contains(full) or admitted.contains(f"3.{minor}.99"):
            python = {"python_version": f"3.{minor}", "python_full_version": full}
            python["implementation_version"] = full
            if rule.evaluate({**_LINUX, **python, "extra": extra}):
                return True
    return False


def needs(item: Release, pattern: str = "", extra: str = "") -> list[Requirement]:
    """What a release requires on Linux x86_64, of packages whose name begins as the pattern says.

    With an extra: what that one adds. Where wheels of the release differ in it, nobody can say.
    """
    if any(re.match(pattern, name) for name in item.unlike):
        raise NotRead
    found = []
    for text in _known(item.requires):
        need = parsed(text)
        if need is None or not re.match(pattern, _name(need)):
            continue
        always = need.marker is None or _holds(str(need.marker), "", item.requires_python or "")
        if extra:
            if not always and _holds(str(need.marker), extra, item.requires_python or ""):
                found.append(need)
        elif always:
            found.append(need)
    return found


def _name(need: Requirement) -> str:
    extras = f"[{','.join(sorted(need.extras))}]" if need.extras else ""
    return canonicalize_name(need.name) + extras


def spaced(need: Requirement) -> str:
    """A requirement as most catalogues write it: "numpy >=2.0"."""
    return f"{_name(need)} {need.specifier}".strip()


def tight(need: Requirement) -> str:
    """A requirement as pip freeze writes it: "numpy>=2.0"."""
    return f"{_name(need)}{need.specifier}"


def bounds_on(pattern: str, extra: str = "") -> Callable[[Release], Value]:
    """All ranges that are required of a package, one for each condition (as on Python)."""

    def read(item: Release) -> Value:
        found: dict[str, SpecifierSet] = {}
        for need in needs(item, f"(?:{pattern})$", extra):
            condition = str(need.marker or "")
            found[condition] = found.get(condition, SpecifierSet()) & need.specifier
        return list(dict.fromkeys(map(str, found.values()))) or None

    return read


def bound_on(pattern: str, extra: str = "") -> Callable[[Release], Value]:
    """The one range that is required of a package whose name matches."""
    read = bounds_on(pattern, extra)

    def of(item: Release) -> Value:
        found = read(item) or []
        return found[0] if len(found) == 1 and found[0] else None

    return of


def lowest(read: Callable[[Release], Value]) -> Callable[[Release], Value]:
    """The lower end of a range."""

    def of(item: Release) -> Value:
        text = read(item)
        ends = [s.version for s in SpecifierSet(text or "") if s.operator in (">=", "==", "~=")]
        return ends[0] if len(ends) == 1 else None

    return of


def exact(read: Callable[[Release], Value]) -> Callable[[Release], Value]:
    """The one release that a range admits, without its local part."""

    def of(item: Release) -> Value:
        found = list(SpecifierSet(read(item) or ""))
        pinned = len(found) == 1 and found[0].operator == "==" and "*" not in found[0].version
        return Version(found[0].version).public if pinned else None

    return of


def all_needs(
    pattern: str = "",
    *,
    extras: Sequence[str] = ("",),
    write: Callable[[Requirement], str] = spaced,
) -> Callable[[Release], Value]:
    """Requirements whose name matches, of the release ("") or of its extras."""

    def read(item: Release) -> Value:
        found = [need for extra in extras for need in needs(item, pattern, extra)]
        return list(dict.fromkeys(map(write, found))) or None

    return read


def pinned(pattern: str) -> Callable[[Release], Value]:
    """The version of the one required package whose name matches."""

    def read(item: Release) -> Value:
        found = {str(need.specifier) for need in needs(item, f"(?:{pattern})$")}
        text = found.pop() if len(found) == 1 else ""
        return text.removeprefix("==") if text.startswith("==") else None

    return read


def only_in_extras(package: str) -> Callable[[Release], Value]:
    """True where a package is required, but by extras alone."""

    def read(item: Release) -> Value:
        anywhere = [n for text in _known(item.requires) if (n := parsed(text))]
        named = any(canonicalize_name(n.name) == package for n in anywhere)
        always = bool(needs(item, rf"{package}(\[|$)"))
        return True if named and not always else None

    return read


def extras_like(pattern: str) -> Callable[[Release], Value]:
    """Names of extras."""

    def read(item: Release) -> Value:
        markers = " ".join(str(n.marker) for text in _known(item.requires) if (n := parsed(text)))
        found = set(re.findall(r'extra == "([^"]+)"', markers))
        return sorted(name for name in found if re.fullmatch(pattern, name)) or None

    return read


def with_markers(package: str) -> Callable[[Release], Value]:
    """Every requirement on a package, with its condition; "any" where there is none."""

    def read(item: Release) -> Value:
        found = []
        for need in needs(item, rf"{package}(\[|$)"):
            condition = f" if {need.marker}" if need.marker else ""
            found.append(f"{need.specifier}{condition}".strip())
        return "; ".join(dict.fromkeys(found)) or "any"

    return read


# -- when two cells say the same ----------------------------------------------------------------


def as_text(value: Value) -> Value:
    """As it stands."""
    return value


def as_range(value: Value) -> Value:
    """A range of versions, however it is written; a text that is none stays one."""
    try:
        found = SpecifierSet(value)
    except InvalidSpecifier:
        return value
    return frozenset(end for one in found for end in _ends(one))


def _ends(one: Specifier) -> list[str]:
    """~=2.1 says >=2.1,<3, and is the same range."""
    numbers = one.version.split(".")
    if one.operator != "~=" or not all(number.isdigit() for number in numbers):
        return [str(one)]
    return [f">={one.version}", f"<{'.'.join([*numbers[:-2], str(int(numbers[-2]) + 1)])}"]


def as_ranges(value: Value) -> Value:
    """Ranges, a list or a text, with the condition of each where there is one; in any order."""
    found = set()
    for part in value.split("; ") if isinstance(value, str) else value:
        spec, _, condition = part.partition(" if ")
        found.add((as_range(spec.removeprefix("if ")), str(Marker(condition)) if condition else ""))
    return frozenset(found)


def as_set(value: Value) -> Value:
    """A list in any order."""
    return frozenset(value)


def as_needs(value: Value) -> Value:
    """Requirements by name, whatever the spelling; one that cannot be read stays a text."""
    out = set()
    for text in value:
        need = parsed(text)
        out.add((_name(need), as_range(str(need.specifier))) if need else text)
    return frozenset(out)


@dataclass(frozen=True)
class Column:
    """How a cell is read from a release, and what makes two values the same."""

    read: Callable[[Release], Value]
    same: Callable[[Value], Value] = as_text
    chosen: bool = False
    """Rows list a choice of what metadata lists: all of it must be true, none need be complete."""
    of_requirements: bool = False
    """Read from Requires-Dist, which is asked release by release."""
    one_of: bool = False
    """Rows have one of the values that metadata lists."""

    def agree(self, shipped: Value, told: Value) -> bool:
        """Whether a row says what metadata tells."""
        if self.one_of and shipped is not None:
            return any(self.same(shipped) == self.same(one) for one in told or ())
        if self.chosen:
            return bool(self.same(shipped or ()) <= self.same(told or ()))
        if shipped is None or told is None:
            return shipped is told
        return bool(self.same(shipped) == self.same(told))

    def as_cell(self, shipped: Value, told: Value) -> Value:
        """What metadata tells, as a row has it: narrowed to the packages that it chose before."""
        if self.one_of:
            return told[0] if told else None
        if not self.chosen:
            return told
        names = {_subject(text) for text in shipped or ()}
        return [text for text in told or () if _subject(text) in names]


def required(
    read: Callable[[Release], Value],
    same: Callable[[Value], Value] = as_text,
    *,
    chosen: bool = False,
    one_of: bool = False,
) -> Column:
    """A column that is read from Requires-Dist."""
    return Column(read, same, chosen, of_requirements=True, one_of=one_of)


def _subject(text: str) -> str:
    """The package that a requirement is on; of one that cannot be read, what it begins with."""
    found = re.match(r"[\w.-]*\w", text)
    return canonicalize_name(found[0]) if found else text
