"""What holds for every reader of other tools' output, and short ways to ask one."""

from __future__ import annotations

import importlib
import time
from typing import Any

from envaudit.facts import spec_of
from envaudit.importers import Imported, Section
from envaudit.model import covers


def imported(name: str, text: str, command: str = "") -> Imported:
    """What a reader makes of a section, or nothing where it does not recognise it."""
    module = importlib.import_module(f"envaudit.importers.{name}")
    section = Section(text, command)
    return module.parse(section) if module.recognises(section) else Imported()


def facts(name: str, text: str, command: str = "") -> dict[str, Any]:
    """Fact name to value."""
    return {fact.name: fact.value for fact in imported(name, text, command).facts}


def absent(name: str, text: str, command: str = "") -> set[str]:
    """Names that the text says are not there."""
    return set(imported(name, text, command).absent)


def gap(read: Imported, name: str) -> str | None:
    """Why a fact is left open; None where nothing was said of it."""
    return next((why for pattern, why in read.gaps.items() if covers(pattern, name)), None)


def holds(name: str, text: str, command: str = "") -> Imported:
    """Read a text however odd, and hold what every reader promises."""
    module = importlib.import_module(f"envaudit.importers.{name}")
    section = Section(text, command)
    assert module.recognises(section) in (True, False)
    read: Imported = module.parse(section)
    lines = text.count("\n") + 1
    for fact in read.facts:
        spec = spec_of(fact.name)
        assert spec is not None, fact.name
        assert fact.source
        kinds: dict[str, tuple[type, ...]] = {
            "flag": (bool,),
            "number": (int, float),
            "list": (list,),
        }
        assert isinstance(fact.value, kinds.get(spec.kind, (str,))), (fact.name, fact.value)
    for fact_name in read.absent:
        assert spec_of(fact_name.replace("*", "x")), fact_name
    assert all(1 <= number <= lines for number in read.read)
    assert all(1 <= number <= lines for number in read.lines.values())
    windows = module.parse(Section(text.replace("\r", "").replace("\n", "\r\n"), command))
    plain = module.parse(Section(text.replace("\r", ""), command))
    assert windows.facts == plain.facts
    assert windows.absent == plain.absent
    return read


def prefixes_hold(name: str, text: str, at: int, command: str = "") -> None:
    """A text cut anywhere is read too."""
    holds(name, text[: at % (len(text) + 1)], command)


HOSTILE = (
    *("a", " ", "0", "1.", "(", "[", "'", '"', "=", ":", "/", "-", "`", "x ", ", ", "\\", "\t"),
    *("GPU: ", "torch ", "print(", "python -c '", "version 1.2", "libcudart.so."),
)


def is_linear(name: str, *starts: str, seconds: float = 1.0) -> None:
    """100 kB of one repeated piece, on one line and on many, behind each start, take no time.

    The bound is far above what a slow machine needs, and far below what a backtracking pattern
    takes.
    """
    for piece in HOSTILE:
        for start in starts or ("",):
            lines = f"{start}{piece * 60}\n" * (1600 // len(piece))
            for text in (start + piece * (100_000 // len(piece)), lines):
                began = time.perf_counter()
                holds(name, text)
                taken = time.perf_counter() - began
                assert taken < seconds, f"{name}: {taken:.1f} s for {start!r} and {piece!r}"
