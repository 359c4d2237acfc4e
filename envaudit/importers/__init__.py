"""Readers of what other tools print: pure functions from text to facts, run on nothing.

Each module has `recognises(section) -> bool` and `parse(section) -> Imported`. A section is one
piece of a pasted report: the output of one command, or what stands between two. It may hold
other things besides what a reader knows: each reader picks out its own lines, and says which.
Neither function ever raises, whatever the text: what is not understood is left out, and told
as a gap where it matters.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from envaudit.model import Fact, Value


class Section(NamedTuple):
    """One piece of a report, without prompts, quote marks and colours."""

    text: str
    """Lines ended by "\\n"."""
    command: str = ""
    """The command whose output this is, where the report shows its prompt."""
    scope: str = ""
    """Where it ran: host, container, wsl, windows; empty where the report does not say."""
    first: int = 1
    """Number of the text's first line in the report."""


class Imported(NamedTuple):
    """What a section says, in our vocabulary."""

    facts: tuple[Fact, ...] = ()
    gaps: Mapping[str, str] = MappingProxyType({})
    """Fact name or pattern to the reason why the text leaves it open."""
    notes: tuple[str, ...] = ()
    """What a reader should know of the text itself, in words."""
    cut: str = ""
    """Why the text is not all that there was; empty for a whole one."""
    absent: tuple[str, ...] = ()
    """Fact names and patterns that the text says are not there."""
    lines: Mapping[str, int] = MappingProxyType({})
    """Fact name to the line of the section it was read in, from 1."""
    read: frozenset[int] = frozenset()
    """Lines of the section that were understood, from 1."""


_PCI_ADDRESS = re.compile(
    r"(?:([0-9A-Fa-f]{4,8}):)?([0-9A-Fa-f]{2}):([0-9A-Fa-f]{2})\.([0-9A-Fa-f])\Z"
)


def pci_address(text: str) -> str | None:
    """A PCI bus address as the kernel writes it, 0000:1a:00.0; None for anything else.

    NVIDIA's tools write 00000000:1A:00.0, older ones 0000:1A:00.0.
    """
    match = _PCI_ADDRESS.match(text.strip())
    if match is None:
        return None
    domain, *rest = match.groups()
    return "{:04x}:{}:{}.{}".format(int(domain or "0", 16), *rest).lower()


def pci_id(device: int, subsystem: int) -> str:
    """Device and subsystem as `lspci -nn` writes ids: "10de:2330 10de:16c1".

    NVIDIA's tools give each as one number, device above vendor: 0x233010DE.
    """
    return " ".join(
        f"{number & 0xFFFF:04x}:{number >> 16 & 0xFFFF:04x}" for number in (device, subsystem)
    )


class Draft:
    """Facts, gaps and notes while a text is read; the first fact of a name is kept."""

    def __init__(self) -> None:
        self._facts: dict[str, Fact] = {}
        self._gaps: dict[str, str] = {}
        self._notes: list[str] = []
        self._cut = ""
        self._absent: dict[str, None] = {}
        self._lines: dict[str, int] = {}
        self._read: set[int] = set()

    def add(self, name: str, value: Value | None, source: str, line: int | None = None) -> None:
        """Tell a fact and the line it was read in; None and an empty text tell nothing."""
        if value is not None and value != "" and name not in self._facts:
            self.replace(name, value, source, line)

    def replace(self, name: str, value: Value, source: str, line: int | None = None) -> None:
        """Tell a fact that is better than one told before."""
        self._facts[name] = Fact(name, value, source)
        if line is not None:
            self._lines[name] = line
            self._read.add(line)

    def absent(self, name: str, line: int | None = None) -> None:
        """Tell that the text says there is none of this name or pattern."""
        self._absent.setdefault(name)
        if line is not None:
            self._read.add(line)

    def gap(self, name: str, reason: str) -> None:
        """Tell what the text leaves open, and why."""
        self._gaps.setdefault(name, reason)

    def cut(self, reason: str) -> None:
        """Tell that the text is not all that there was."""
        self._cut = self._cut or reason

    def note(self, text: str) -> None:
        """Tell the reader something of the text itself."""
        self._notes.append(text)

    def read(self, *lines: int) -> None:
        """Tell which lines were understood, whether or not they gave a fact."""
        self._read.update(lines)

    def __contains__(self, name: str) -> bool:
        return name in self._facts

    def done(self) -> Imported:
        """What was read."""
        return Imported(
            tuple(self._facts.values()),
            dict(self._gaps),
            tuple(self._notes),
            self._cut,
            tuple(name for name in self._absent if name not in self._facts),
            dict(self._lines),
            frozenset(self._read),
        )


def lines_of(text: str, spans: Iterable[tuple[int, int]]) -> set[int]:
    """Numbers of the lines that spans of characters touch, from 1."""
    found: set[int] = set()
    for start, end in spans:
        first = text.count("\n", 0, start) + 1
        found.update(range(first, first + text.count("\n", start, max(start, end - 1)) + 1))
    return found


class Importer(NamedTuple):
    """One row of the table of importers; its module is imported when it is asked."""

    name: str
    title: str
    hints: tuple[str, ...] = ()
    """Literal texts: the module is loaded only for a report that holds one; none: always."""

    def load(self) -> Any:
        """The module with `recognises` and `parse`."""
        return importlib.import_module(f"envaudit.importers.{self.name}")


IMPORTERS: tuple[Importer, ...] = (
    Importer("nvidia_smi_xml", "nvidia-smi -q -x"),
    Importer("nvidia_smi_table", "the table of nvidia-smi"),
)
"""All importers. Where two read the same fact, the earlier one is believed."""
