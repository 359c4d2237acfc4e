"""Patterns of importers are compiled late: the literal they wait for is part of every match."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envaudit import report
from envaudit.importers import IMPORTERS, _Late, literal_of, regex

parser = importlib.import_module("re._parser" if sys.version_info >= (3, 11) else "sre_parse")


def literals(pattern: Any) -> list[str]:
    """Literal runs at the top of a parsed pattern, each part of every match."""
    found: list[str] = []
    run = ""
    for operator, value in pattern:
        if str(operator) == "LITERAL":
            run += chr(value)
            continue
        if str(operator) == "MAX_REPEAT" and value[0] > 0 and len(value[2]) == 1:
            (inner, char) = value[2][0]
            if str(inner) == "LITERAL":
                run += chr(char)
        if str(operator) != "AT":
            found, run = [*found, run], ""
    return [*found, run]


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


@pytest.mark.parametrize(("text", "flags"), every_pattern())
def test_the_literal_is_part_of_every_match(text: str, flags: int) -> None:
    literal = literal_of(text, flags)
    assert any(literal in run for run in literals(parser.parse(text, flags))) or not literal


@pytest.mark.parametrize(
    ("text", "literal"),
    [
        (r"Driver Version: ([\d.]+)", "Driver Version: "),
        (r"(?:a|b)cd|ef", ""),
        (r"x*yz+w", "yz"),
        (r"colou?r of", "colo"),
        (r"\x1b\[end", "[end"),
        (r"\bNVRM: \d{1,3}", "NVRM: "),
        (r"[abc\]]def", "def"),
        (r"(?i)driver", ""),
        (r"a{2}bcd", "bcd"),
        (r"(group) after", " after"),
        (r"\.so\.", ".so."),
    ],
)
def test_a_literal(text: str, literal: str) -> None:
    assert literal_of(text) == literal


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
