"""Laws that hold for the readers of environment reports, and parts of reports to try them on."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from hypothesis import strategies as st

from envaudit.facts import spec_of
from envaudit.importers import IMPORTERS, Imported, Section
from envaudit.model import covers


def values(imported: Imported) -> dict[str, Any]:
    """Names and values of facts, all of which the catalogue must know."""
    for fact in imported.facts:
        assert spec_of(fact.name) is not None, fact.name
        assert fact.source
    return {fact.name: fact.value for fact in imported.facts}


def read(module: ModuleType, text: str) -> Imported:
    """What an importer reads in a text that it must recognise."""
    section = Section(text)
    assert module.recognises(section)
    imported = module.parse(section)
    assert isinstance(imported, Imported)
    return imported


def open_to(imported: Imported, name: str) -> str | None:
    """Why a text leaves a name open; None where it does not say so."""
    return next((why for gap, why in imported.gaps.items() if covers(gap, name)), None)


_KINDS: dict[str, type | tuple[type, ...]] = {
    "version": str,
    "text": str,
    "number": (int, float),
    "flag": bool,
    "list": list,
}


def assert_lawful(module: ModuleType, text: str) -> None:
    """Never an exception; facts of known names and kinds, from lines that are there.

    And nothing is recognised that the hints of the table of importers would hide.
    """
    section = Section(text)
    name = module.__name__.rpartition(".")[2]
    hints = next(row.hints for row in IMPORTERS if row.name == name)
    if module.recognises(section):
        assert any(hint in text for hint in hints)
    imported = module.parse(section)
    count = text.count("\n") + 1
    for fact in imported.facts:
        spec = spec_of(fact.name)
        assert spec is not None, fact.name
        assert isinstance(fact.value, _KINDS[spec.kind]), fact
        assert fact.name not in imported.absent
    assert all(1 <= line <= count for line in imported.lines.values())
    assert all(1 <= line <= count for line in imported.read)
    unix = module.parse(Section(text.replace("\r", "")))
    windows = module.parse(Section(text.replace("\r", "").replace("\n", "\r\n")))
    assert windows == unix


def assert_parts_agree(module: ModuleType, text: str) -> None:
    """What a part of whole lines tells, the whole report tells too: nothing comes of a cut."""
    whole = module.parse(Section(text))
    known = values(whole)
    lines = text.split("\n")
    for cut in range(len(lines) + 1):
        for part in (lines[:cut], lines[cut:]):
            told = module.parse(Section("\n".join(part) + "\n"))
            for name, value in values(told).items():
                if not isinstance(value, list):
                    assert known.get(name, value) == value, (name, value, cut)
            assert not set(told.absent) - set(whole.absent), cut


@st.composite
def _part(draw: st.DrawFn, texts: tuple[str, ...]) -> str:
    text = draw(st.sampled_from(texts))
    start = draw(st.integers(0, len(text)))
    text = text[start : draw(st.integers(start, len(text)))]
    if draw(st.booleans()):
        lines = text.split("\n")
        text = "\n".join(draw(st.permutations(lines)) if len(lines) < 60 else lines[::-1])
    if draw(st.booleans()) and text:
        hole = draw(st.integers(0, len(text) - 1))
        text = text[:hole] + draw(st.text(max_size=8)) + text[hole + 1 :]
    return text


def parts_of(*texts: str) -> st.SearchStrategy[str]:
    """Pieces of texts, cut anywhere, some with lines in another order or characters lost."""
    return _part(texts)


def hostile(*starts: str) -> list[str]:
    """Long texts that make a backtracking pattern show itself."""
    fillers = (" ", "a", "0", "-", "=", "1.", "a ", ": ", "GPU 0", "\t", "> ", "(", "a=b,")
    return [
        start + filler * (100_000 // len(filler)) for start in ("", *starts) for filler in fillers
    ]
