"""The closed set of operators that rows may use, and how versions are compared.

Every operator is a small pure function of two values. A row that wants something else needs a
new operator here, with its test, not a special case somewhere.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from envaudit.model import Value


class Incomparable(Exception):
    """Two values that an operator cannot relate; the text says why. The answer is unknown."""


_RELEASE = re.compile(r"\s*[vVrR]?(?:\d+:)?(\d+(?:\.\d+)*)")

_LONGEST = 200
"""Characters of a version; what is longer is none."""


def release(text: Value) -> tuple[int, ...]:
    """The numbers that a version begins with: "550.54.14-0ubuntu1" gives (550, 54, 14).

    Pre-release, local and distribution suffixes do not count, so NGC's 2.6.0a0+...nv24.11 is
    the 2.6.0 that it was built from and 5.15.0-105-generic is 5.15.0. An epoch (1:2.3) is left
    out. Raises Incomparable where there is no number.
    """
    if isinstance(text, bool) or not isinstance(text, (str, int, float)):
        raise Incomparable(f"{text!r} is no version")
    found = _RELEASE.match(str(text))
    if found is None:
        raise Incomparable(f"{text!r} is no version")
    if len(found[1]) > _LONGEST:  # Python itself refuses numbers of thousands of digits
        raise Incomparable(f"{found[1][:20]}... of {len(found[1])} characters is no version")
    return tuple(int(number) for number in found[1].split("."))


_PARTS = {"major": 1, "minor": 2, "patch": 3}


def part_of(value: Value, part: str) -> str:
    """The first components of a version as text: part_of("12.8.1", "minor") is "12.8"."""
    numbers = release(value)[: _PARTS[part]]
    return ".".join(str(number) for number in numbers)


def compare(left: Value, right: Value, part: str | None = None) -> int:
    """Negative, zero or positive, as left is older, the same or newer; missing parts are zero.

    `part` cuts both to their first components (major, minor, patch) before comparing.
    """
    if _is_number(left) and _is_number(right):
        assert isinstance(left, (int, float))
        assert isinstance(right, (int, float))
        return (left > right) - (left < right)
    a, b = release(left), release(right)
    length = _PARTS[part] if part else max(len(a), len(b))
    a = (a + (0,) * length)[:length]
    b = (b + (0,) * length)[:length]
    return (a > b) - (a < b)


def _is_number(value: Value) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


_CLAUSE = re.compile(r"\s*(<=|>=|==|!=|<|>)\s*([0-9][\w.+:-]*)\s*")


def in_range(value: Value, text: str) -> bool:
    """Whether a version lies in a range such as ">=9.11,<10"; the empty range holds everything."""
    for clause in filter(None, text.split(",")):
        found = _CLAUSE.fullmatch(clause)
        if found is None:
            raise Incomparable(f"{clause!r} is no version range")
        order = compare(value, found[2])
        if not _ORDERS[found[1]](order):
            return False
    return True


_ORDERS: Mapping[str, Callable[[int], bool]] = {
    "<": lambda order: order < 0,
    "<=": lambda order: order <= 0,
    ">": lambda order: order > 0,
    ">=": lambda order: order >= 0,
    "==": lambda order: order == 0,
    "!=": lambda order: order != 0,
}


def _items(value: Value) -> Sequence[Value]:
    return value if isinstance(value, list) else [value]


def _matches(value: Value, pattern: Value) -> bool:
    regex = re.compile(str(pattern))
    return any(regex.search(item if isinstance(item, str) else str(item)) for item in _items(value))


Operator = Callable[[Value, Value, "str | None"], bool]

OPERATORS: Mapping[str, Operator] = {
    # exact values: text, numbers, flags
    "==": lambda a, b, part: (part_of(a, part) if part else a) == b,
    "!=": lambda a, b, part: (part_of(a, part) if part else a) != b,
    # order of versions and numbers
    "<": lambda a, b, part: compare(a, b, part) < 0,
    "<=": lambda a, b, part: compare(a, b, part) <= 0,
    ">": lambda a, b, part: compare(a, b, part) > 0,
    ">=": lambda a, b, part: compare(a, b, part) >= 0,
    # the same release, however it is written (580.65.06 and 580.65.6)
    "same": lambda a, b, part: compare(a, b, part) == 0,
    "differs": lambda a, b, part: compare(a, b, part) != 0,
    "range": lambda a, b, part: in_range(a, str(b)),
    # sets and texts
    "in": lambda a, b, part: (part_of(a, part) if part else a) in _items(b),
    "not_in": lambda a, b, part: (part_of(a, part) if part else a) not in _items(b),
    "has": lambda a, b, part: b in _items(a),
    "lacks": lambda a, b, part: b not in _items(a),
    "matches": lambda a, b, part: _matches(a, b),
    "free_of": lambda a, b, part: not _matches(a, b),
}
"""Name to function (fact's value, other value, part) -> bool. Raises Incomparable."""


def gpu_code(
    arch_list: Value, compute_capability: Value, rows: Sequence[Mapping[str, Any]]
) -> tuple[str, list[Mapping[str, Any]]]:
    """What a build's GPU code can do on a device, and the rows that this rests on.

    `arch_list` is the build's (sm_90, compute_120, ...), `rows` the binary-compatibility
    catalogue (compiled_for, runs_on, except). native: a cubin runs there. ptx: PTX of a lower or
    equal capability is in the build and the driver must compile it. too_new / too_old: the device
    is newer / older than everything in the build. none: in between (a gap in the list).
    Source of the law: CUDA C++ Programming Guide, binary and PTX compatibility.
    """
    device = release(compute_capability)
    known = {row["compiled_for"]: row for row in rows}
    built: list[tuple[int, ...]] = []
    ptx: list[tuple[int, ...]] = []
    against: list[Mapping[str, Any]] = []
    for item in _items(arch_list):
        found = re.fullmatch(r"(sm|compute|lto)_(\d{1,9})(\d)([af]?)", str(item))
        if found is None:
            continue
        capability = (int(found[2]), int(found[3]))
        built.append(capability)
        if found[1] == "compute" and not found[4]:
            ptx.append(capability)
        elif found[1] == "sm":
            row = known.get(str(item))
            if _runs(capability, found[4], device, compute_capability, row):
                return "native", [row] if row is not None else []
            if row is not None and capability[0] == device[0]:
                against.append(row)
    if not built:
        raise Incomparable("the list of GPU code is empty")
    if any(capability <= device for capability in ptx):
        return "ptx", against
    if device > max(built):
        return "too_new", against
    if device < min(built):
        return "too_old", against
    return "none", against


def _runs(
    capability: tuple[int, ...],
    suffix: str,
    device: tuple[int, ...],
    compute_capability: Value,
    row: Mapping[str, Any] | None,
) -> bool:
    """Whether a cubin runs on a device: by its row, else by the law for its kind of target."""
    if suffix == "a":
        return capability == device
    if suffix == "f" or row is None:
        return capability[0] == device[0] and capability <= device
    return in_range(compute_capability, row["runs_on"]) and str(compute_capability) not in row.get(
        "except", ()
    )
