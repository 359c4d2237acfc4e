"""The operators: small pure functions, each with its cases and its laws."""

from __future__ import annotations

from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envaudit.constraint import (
    OPERATORS,
    Incomparable,
    compare,
    gpu_code,
    in_range,
    part_of,
    release,
)
from envaudit.matrix import Matrices
from envaudit.model import covers

ROWS = Matrices().catalogue("binary-compatibility").rows


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("580.65.06", (580, 65, 6)),
        ("550.54.14-0ubuntu1", (550, 54, 14)),
        ("5.15.0-105-generic", (5, 15, 0)),
        ("2.6.0a0+df5bbc09d1.nv24.11", (2, 6, 0)),
        ("1:535.183.01-1", (535, 183, 1)),
        ("v1.17.5", (1, 17, 5)),
        ("R580", (580,)),
        (12, (12,)),
    ],
)
def test_a_release_is_the_numbers_that_a_version_begins_with(
    text: str, numbers: tuple[int, ...]
) -> None:
    assert release(text) == numbers


@pytest.mark.parametrize("text", ["N/A", "", "ERR!", True, ["1.2"], "unknown"])
def test_what_is_no_version_cannot_be_compared(text: object) -> None:
    with pytest.raises(Incomparable):
        release(text)  # type: ignore[arg-type]


versions = st.lists(st.integers(0, 999), min_size=1, max_size=4).map(
    lambda numbers: ".".join(map(str, numbers))
)


@given(versions, versions, versions)
def test_order_is_an_order(a: str, b: str, c: str) -> None:
    assert compare(a, a) == 0
    assert compare(a, b) == -compare(b, a)
    if compare(a, b) <= 0 and compare(b, c) <= 0:
        assert compare(a, c) <= 0


@given(versions)
def test_trailing_zeros_and_leading_zeros_do_not_count(a: str) -> None:
    assert compare(a, a + ".0") == 0
    assert compare(a, ".".join("0" + part for part in a.split("."))) == 0


@given(versions, versions)
def test_a_part_sees_no_more_than_its_components(a: str, b: str) -> None:
    if compare(a, b, "minor") != 0:
        assert compare(a, b) == compare(a, b, "minor")
    assert compare(a, part_of(a, "major"), "major") == 0


def test_numbers_compare_as_numbers() -> None:
    assert compare(9.5, 10) < 0
    assert compare(0.25, 0.3) < 0


@pytest.mark.parametrize(
    ("value", "text", "inside"),
    [
        ("9.10.2.21", ">=9.10,<9.11", True),
        ("9.11.0", ">=9.10,<9.11", False),
        ("9.11", "==9.11.0", True),
        ("8.7", "!=8.7", False),
        ("1", "", True),
    ],
)
def test_ranges(value: str, text: str, inside: bool) -> None:
    assert in_range(value, text) is inside


def test_a_range_that_is_none_is_told() -> None:
    with pytest.raises(Incomparable):
        in_range("1.0", "~=1.0")


@pytest.mark.parametrize(
    ("operator", "value", "other", "part", "holds"),
    [
        ("==", "open", "open", None, True),
        ("==", "12.8.1", "12", "major", True),
        ("!=", True, False, None, True),
        ("same", "580.65.06", "580.65.6", None, True),
        ("differs", "535.183.01", "535.216.01", None, True),
        ("in", "nouveau", ["nouveau", "nova_core"], None, True),
        ("not_in", "nvidia", ["nouveau"], None, True),
        ("has", ["a", "b"], "b", None, True),
        ("lacks", ["a", "b"], "c", None, True),
        ("matches", ["one", "two"], "^tw", None, True),
        ("free_of", "all is well", "error", None, True),
        ("<=", "15.2.0", "15", "major", True),
        ("<=", "15.2.0", "15", None, False),
    ],
)
def test_operators(
    operator: str, value: object, other: object, part: str | None, holds: bool
) -> None:
    assert OPERATORS[operator](value, other, part) is holds  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("built", "device", "code"),
    [
        (["sm_80", "sm_86", "sm_90"], "8.9", "native"),
        (["sm_80"], "8.7", "too_new"),  # Jetson Orin needs code of its own
        (["sm_87"], "8.7", "native"),
        (["sm_87"], "8.9", "too_new"),
        (["sm_90a"], "9.0", "native"),
        (["sm_90a"], "10.0", "too_new"),
        (["sm_100f"], "10.3", "native"),
        (["sm_90", "compute_90"], "12.0", "ptx"),
        (["sm_75", "sm_80"], "6.1", "too_old"),
        (["sm_50", "sm_70"], "6.1", "none"),
        (["sm_60"], "6.1", "native"),
        (["sm_100"], "12.0", "too_new"),
        (["sm_120"], "12.1", "native"),
    ],
)
def test_what_the_code_of_a_build_can_do_on_a_gpu(built: list[str], device: str, code: str) -> None:
    assert gpu_code(list(built), device, ROWS)[0] == code


capabilities = st.sampled_from(["5.0", "6.1", "7.0", "7.5", "8.0", "8.6", "8.9", "9.0", "12.0"])
archs = st.lists(
    st.sampled_from(["sm_50", "sm_60", "sm_70", "sm_75", "sm_80", "sm_86", "sm_90", "sm_120"]),
    min_size=1,
    unique=True,
)


@given(archs, capabilities)
def test_more_code_never_takes_a_gpu_away(built: list[str], device: str) -> None:
    if gpu_code(list(built), device, ROWS)[0] == "native":
        assert gpu_code([*built, "sm_100"], device, ROWS)[0] == "native"
    assert gpu_code([*built, "compute_50"], device, ROWS)[0] in ("native", "ptx")


def test_an_empty_list_of_code_decides_nothing() -> None:
    with pytest.raises(Incomparable):
        gpu_code(["garbage"], "8.0", ROWS)


@given(st.text("ab.*", max_size=8), st.text("ab.", max_size=10))
def test_a_pattern_of_names_matches_as_a_shell_wildcard_does(pattern: str, name: str) -> None:
    assert covers(pattern, name) == fnmatchcase(name, pattern)
