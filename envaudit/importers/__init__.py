"""Readers of what other tools print: pure functions from text to facts, run on nothing.

Each module has `recognises(text) -> bool` and `parse(text) -> Imported`. Neither ever raises,
whatever the text: what is not understood is left out, and told as a gap where it matters.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from envaudit.model import Fact, Value


class Imported(NamedTuple):
    """What a text says, in our vocabulary."""

    facts: tuple[Fact, ...] = ()
    gaps: Mapping[str, str] = MappingProxyType({})
    """Fact name or pattern to the reason why the text leaves it open."""
    notes: tuple[str, ...] = ()
    """What a reader should know of the text itself, in words."""
    cut: str = ""
    """Why the text is not all that there was; empty for a whole one."""


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

    def add(self, name: str, value: Value | None, source: str) -> None:
        """Tell a fact; None tells nothing."""
        if value is not None and value != "":
            self._facts.setdefault(name, Fact(name, value, source))

    def replace(self, name: str, value: Value, source: str) -> None:
        """Tell a fact that is better than one told before."""
        self._facts[name] = Fact(name, value, source)

    def gap(self, name: str, reason: str) -> None:
        """Tell what the text leaves open, and why."""
        self._gaps.setdefault(name, reason)

    def cut(self, reason: str) -> None:
        """Tell that the text is not all that there was."""
        self._cut = self._cut or reason

    def note(self, text: str) -> None:
        """Tell the reader something of the text itself."""
        self._notes.append(text)

    def __contains__(self, name: str) -> bool:
        return name in self._facts

    def done(self) -> Imported:
        """What was read."""
        return Imported(
            tuple(self._facts.values()), dict(self._gaps), tuple(self._notes), self._cut
        )


class Importer(NamedTuple):
    """One row of the table of importers; its module is imported when it is asked."""

    name: str
    title: str
    provides: tuple[str, ...]
    """Fact names (patterns) on whose absence such a text has the last word."""
    reads: str
    """Regular expression for the parts of a text that it reads; the rest is told to be unread."""

    def load(self) -> Any:
        """The module with `recognises` and `parse`."""
        return importlib.import_module(f"envaudit.importers.{self.name}")


IMPORTERS: tuple[Importer, ...] = (
    Importer(
        "nvidia_smi_xml",
        "nvidia-smi -q -x",
        (),
        r"<\?xml[^>\n]*>|<!DOCTYPE[^>\n]*>|(?s:<nvidia_smi_log>.*?(?:</nvidia_smi_log>|\Z))",
    ),
    Importer(
        "nvidia_smi_table",
        "the table of nvidia-smi",
        (),
        r"^[ \t]*[|+].*$|^\w{3} \w{3} +\d+ [\d:]{8} \d{4}[ \t]*$",
    ),
)
"""All importers, the most certain to recognise its text first."""
