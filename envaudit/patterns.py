"""Regular expressions that are compiled when a text may match them, and not before."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, cast


class _Late:
    """A pattern that is compiled when a text may match it.

    A reader has a dozen patterns and most texts match none of them. Compiling them all would
    take longer than everything else that a check of a file does, so that the literals in a
    pattern are looked for first.
    """

    def __init__(self, text: str, flags: int) -> None:
        self._of = (text, flags)
        self._literals: tuple[str, ...] | None = None

    def _ready(self, string: str) -> bool:
        """Whether the string can match; from then on the compiled pattern answers itself."""
        literals = self._literals
        if literals is None:
            literals = self._literals = literals_of(*self._of)
        if literals and not any(each in string for each in literals):
            return False
        compiled = re.compile(*self._of)
        for each in ("search", "match", "fullmatch", "finditer", "findall", "sub", "split"):
            setattr(self, each, getattr(compiled, each))
        return True

    def search(self, string: str, *bounds: int) -> re.Match[str] | None:
        return self.search(string, *bounds) if self._ready(string) else None

    def match(self, string: str, *bounds: int) -> re.Match[str] | None:
        return self.match(string, *bounds) if self._ready(string) else None

    def fullmatch(self, string: str, *bounds: int) -> re.Match[str] | None:
        return self.fullmatch(string, *bounds) if self._ready(string) else None

    def finditer(self, string: str, *bounds: int) -> Iterator[re.Match[str]]:
        return self.finditer(string, *bounds) if self._ready(string) else iter(())

    def findall(self, string: str, *bounds: int) -> list[Any]:
        return self.findall(string, *bounds) if self._ready(string) else []

    def sub(self, new: Any, string: str, *more: Any, **named: Any) -> str:
        return self.sub(new, string, *more, **named) if self._ready(string) else string

    def split(self, string: str, *more: Any, **named: Any) -> list[Any]:
        return self.split(string, *more, **named) if self._ready(string) else [string]

    def __getattr__(self, name: str) -> Any:
        return getattr(re.compile(*self._of), name)


def literals_of(text: str, flags: int = 0) -> tuple[str, ...]:
    """Literals of which one at least is part of every text that a pattern matches.

    Empty where none is plain to see: then every text may match.
    """
    if flags & (re.IGNORECASE | re.VERBOSE) or "(?i" in text or "(?x" in text:
        return ()
    return _alternatives(text, 0)[0]


_FEW = 16
"""Most literals that are looked for in place of compiling a pattern."""


_GROUP = re.compile(r"\(\?(?:P<\w+>|P=\w+|[aimsx-]*:|[=!>#]|<[=!])|\(")


def _alternatives(text: str, at: int) -> tuple[tuple[str, ...], int]:
    """Literals of the alternatives from a place on, and the place behind them."""
    found: list[str] = []
    certain = True
    while True:
        literals, at = _sequence(text, at)
        certain = certain and bool(literals)
        found += literals
        if text[at : at + 1] != "|":
            break
        at += 1
    return (tuple(dict.fromkeys(found)) if certain and len(found) <= _FEW else ()), at


def _sequence(text: str, at: int) -> tuple[tuple[str, ...], int]:
    """The best literals of one alternative: a run of its own, or what a group in it offers."""
    offers: list[tuple[str, ...]] = []
    run = ""
    while at < len(text) and text[at] not in "|)":
        char, plain = text[at], ""
        inner: tuple[str, ...] = ()
        if char == "\\":
            following = text[at + 1 : at + 2]
            plain = "" if following.isalnum() else following
            at += {"x": 4, "u": 6, "U": 10}.get(following, 2)
        elif char == "[":
            at = _behind_class(text, at)
        elif char == "(":
            counts = text[at + 1 : at + 3] not in ("?!", "?#") and text[at + 1 : at + 4] != "?<!"
            head = _GROUP.match(text, at)
            at = head.end() if head else at + 1
            inner, at = _alternatives(text, at)
            at += 1
            inner = inner if counts else ()
        elif char in "^$.?*+{}":
            at = text.find("}", at) + 1 if char == "{" and "}" in text[at:] else at + 1
        else:
            plain = char
            at += 1
        optional = text[at : at + 1] in ("?", "*", "{")
        if plain and not optional:
            run += plain
            if text[at : at + 1] != "+":
                continue
        offers += [(run,)] if run else []
        run = ""
        offers += [inner] if inner and not optional else []
    offers += [(run,)] if run else []
    return max(offers, key=_worth, default=()), at


def _worth(literals: tuple[str, ...]) -> tuple[bool, int, int]:
    """How well literals tell a text that may match: long enough, few, long."""
    shortest = min(map(len, literals))
    return shortest > 2, -len(literals), shortest


def _behind_class(text: str, at: int) -> int:
    """The place behind a class of characters."""
    at += 2 if text[at + 1 : at + 2] == "^" else 1
    if text[at : at + 1] == "]":
        at += 1
    while at < len(text) and text[at] != "]":
        at += 2 if text[at] == "\\" else 1
    return at + 1


def regex(text: str, flags: int = 0) -> re.Pattern[str]:
    """A regular expression as `re.compile` makes it, compiled at its first use."""
    return cast("re.Pattern[str]", _Late(text, flags))
