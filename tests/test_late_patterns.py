"""Patterns of importers are compiled late: the literal they wait for is part of every match."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from envaudit import report
from envaudit.importers import IMPORTERS
from envaudit.patterns import _Late, literals_of, regex


def every_pattern() -> Iterator[Any]:
    modules = [each.load() for each in IMPORTERS]
    modules += [module for name, module in sys.modules.items() if name.startswith("envaudit.imp")]
    seen = set()
    for module in [*modules, report]:
        for value in vars(module).values():
            for each in value if isinstance(value, tuple) else (value,):
                if isinstance(each, _Late) and each._of not in seen:
                    seen.add(each._of)
                    yield pytest.param(*each._of, id=each._of[0][:40])


@pytest.mark.parametrize(("text", "flags"), [*every_pattern()])
def test_one_of_the_literals_is_part_of_every_match(text: str, flags: int) -> None:
    literals = literals_of(text, flags)
    if not literals:
        return

    @settings(max_examples=8, deadline=None, database=None, suppress_health_check=[*HealthCheck])
    @given(st.from_regex(re.compile(text, flags)))
    def holds(match: str) -> None:
        assert any(each in match for each in literals)

    holds()


@pytest.mark.parametrize(
    ("text", "literals"),
    [
        (r"Driver Version: ([\d.]+)", ("Driver Version: ",)),
        (r"(?:a|b)cd|ef", ("cd", "ef")),
        (r"x*yz+w", ("yz",)),
        (r"colou?r of", ("colo",)),
        (r"\x1b\[end", ("[end",)),
        (r"\bNVRM: \d{1,3}", ("NVRM: ",)),
        (r"[abc\]]def", ("def",)),
        (r"(?i)driver", ()),
        (r"a{2}bcd", ("bcd",)),
        (r"(group) after", (" after",)),
        (r"\.so\.", (".so.",)),
        (r"(?:alpha|beta)\d", ("alpha", "beta")),
        (r"(?:alpha|\d)x", ("x",)),
        (r"(?:alpha|beta)?\d", ()),
        (r"(?!never)some", ("some",)),
        (r"(?<!no)(?P<name>this|that)", ("this", "that")),
    ],
)
def test_the_literals(text: str, literals: tuple[str, ...]) -> None:
    assert literals_of(text) == literals


@given(st.text("abcxyz .:", max_size=40))
def test_a_late_pattern_answers_as_a_compiled_one(text: str) -> None:
    for source in ("ab+c", "x: (a|b)", "abc|xyz", "[ab]c.x", "a?bc"):
        late, plain = regex(source), re.compile(source)
        for name in ("search", "match", "fullmatch"):
            one, other = getattr(regex(source), name)(text), getattr(plain, name)(text)
            assert (one and one.span()) == (other and other.span())
        assert [m.span() for m in regex(source).finditer(text)] == [
            m.span() for m in plain.finditer(text)
        ]
        assert late.findall(text) == plain.findall(text)
        assert regex(source).sub("-", text) == plain.sub("-", text)
        assert regex(source).split(text) == plain.split(text)
        assert late.findall(text) == plain.findall(text)
