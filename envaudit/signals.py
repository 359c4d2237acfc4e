"""Find error texts that the matrices know: signature -> the line it was found in.

A signature is a row of `matrices/signatures/`. What is found becomes a fact like any other,
`signal.<id>`, so that rules prove or refute its cause by the facts beside it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from envaudit.model import Fact, Value

_LINE_LIMIT = 300
"""Characters of a line that are kept."""
_VALUES_LIMIT = 32
"""Different values of one group that are kept, and matches that are looked at."""

Row = Mapping[str, Any]


def find_signature(row: Row, text: str, start: int = 0) -> re.Match[str] | None:
    """The first place where a signature stands in a text; None where it does not.

    A literal of the pattern (a hint) is looked for first: a search for one takes microseconds,
    where the pattern would be tried at every character.
    """
    for hint in row["hints"]:
        if hint in text:
            found = re.compile(row["pattern"], re.MULTILINE).finditer(text, start)
            return next((match for match in found if not _only_spoken_of(match, text)), None)
    return None


_SPEECH = re.compile(
    r"[\s>*\-\"'(]*(?:I|We|It|This|That|There|You|My|Our|Last|Previously|Before|Earlier|Fixed|"
    r"Solved|Resolved|After|assert|if|elif|expect\w*)\b",
    re.IGNORECASE,
)
_OVER = re.compile(
    r"(?:\b(?:not|never|no longer|had|used to|fixed|solved|resolved|assert|previously|before|last|"
    r"isn't|wasn't|don't|doesn't|didn't)\b)",
    re.IGNORECASE,
)


def _only_spoken_of(match: re.Match[str], text: str) -> bool:
    """Whether a sentence says that this text did not come, or came before: that is no error.

    Only a line that begins as speech (or as code that compares) is looked at: a log line that
    begins with its time or its program is the error itself.
    """
    start = text.rfind("\n", 0, match.start()) + 1
    before = text[start : match.start()][-200:]
    return _SPEECH.match(before) is not None and _OVER.search(before) is not None


def scan(text: str, signatures: Iterable[Row], where: str = "") -> list[Fact]:
    """Facts of all signatures that stand in a text, with the number of their line.

    `where` begins the source: the file or the part of a report.
    """
    facts: list[Fact] = []
    for row in signatures:
        match = find_signature(row, text)
        if match is not None:
            facts += _facts(row, match, text, where)
    return facts


def _facts(row: Row, match: re.Match[str], text: str, where: str) -> list[Fact]:
    name = f"signal.{row['id']}"
    number = text.count("\n", 0, match.start()) + 1
    source = f"{where}{', ' if where else ''}line {number}"
    facts = [Fact(name, _line(match, text), source)]
    groups: dict[str, list[Value]] = {}
    for count, found in enumerate(match.re.finditer(text, match.start())):
        if count == _VALUES_LIMIT:
            break
        for group, value in found.groupdict().items():
            if value is not None and value.strip() and value not in groups.setdefault(group, []):
                groups[group].append(value.strip())
    for group, values in groups.items():
        facts.append(Fact(f"{name}.{group}", values[0], source))
        facts.append(Fact(f"{name}.{group}.all", values, source))
    return facts


def _line(match: re.Match[str], text: str) -> str:
    """The line with the match, cut around it where it is long."""
    start = text.rfind("\n", 0, match.start()) + 1
    end = text.find("\n", match.start())
    line = text[start : end if end >= 0 else len(text)].strip()
    if len(line) <= _LINE_LIMIT:
        return line
    begin = max(0, match.start() - start - _LINE_LIMIT // 3)
    return ("..." if begin else "") + line[begin : begin + _LINE_LIMIT].strip() + "..."
