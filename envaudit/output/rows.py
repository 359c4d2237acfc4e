"""Rows for a reader: a rule with its sources and examples, a catalogue as a table."""

from __future__ import annotations

import difflib
import json
import os
import textwrap
from collections.abc import Mapping
from typing import Any

from envaudit.errors import UsageError
from envaudit.evaluate import show, visible
from envaudit.matrix import KINDS, Matrices, Row, confidence_of, json_files, read_json
from envaudit.output.text import Style
from envaudit.report import clean
from envaudit.signals import scan

_OPERATORS = {
    "same": "is the same release as",
    "differs": "is another release than",
    "range": "lies in",
    "in": "is one of",
    "not_in": "is none of",
    "has": "holds",
    "lacks": "does not hold",
    "matches": "matches",
    "free_of": "does not match",
    "==": "is",
    "!=": "is not",
}


_PARTS = (
    ("when", "when"),
    ("unless", "unless"),
    ("require", "requires"),
    ("prove", "proved by"),
)


def explain(subject: str, matrices: Matrices, style: Style) -> str:
    """A rule, a cause or a signature by its id, or what an error text means.

    Raises UsageError for a word that is none of them, and for a text in which nothing is known.
    """
    rules = {row["id"]: row for row in matrices.rows("rules")}
    if subject in rules:
        return "\n".join(_rule(rules[subject], style)) + "\n"
    causes = matrices.causes()
    if subject in causes:
        cause = causes[subject]
        lines = [style.paint(subject, "bold"), f"  {cause['meaning']}", ""]
        found = [row for row in rules.values() if row["cause"] == subject]
        for row in found:
            lines += [*_rule(row, style), ""]
        if not found:
            lines.append("  No rule finds it from a snapshot yet.")
        return "\n".join(lines).rstrip() + "\n"
    signatures = matrices.signatures()
    if subject in signatures:
        return "\n".join(_signature(signatures[subject], "", rules, causes, style)) + "\n"
    if "\n" in subject or " " in subject.strip():
        return _texts(subject, signatures, rules, causes, style)
    near = difflib.get_close_matches(subject, [*rules, *causes, *signatures], 3, 0.4)
    hint = f"Did you mean {', '.join(near)}?" if near else "See: envaudit matrix."
    raise UsageError(f"explain {subject}: no rule, cause or signature of that name", hint)


def _texts(
    text: str,
    signatures: Mapping[str, Row],
    rules: Mapping[str, Row],
    causes: Mapping[str, Row],
    style: Style,
) -> str:
    """What is known of every error text that stands in a text."""
    lines = []
    for fact in scan(clean(text), signatures.values()):
        name = fact.name.removeprefix("signal.")
        if name in signatures:
            lines += [*_signature(signatures[name], str(fact.value), rules, causes, style), ""]
    if not lines:
        raise UsageError(
            "explain: nothing in this text is known",
            "`envaudit check FILE` reads a whole report; `envaudit matrix` lists what is known.",
        )
    lines.append("`envaudit check FILE` proves or refutes these by the facts of the report.")
    return "\n".join(lines) + "\n"


def _signature(
    row: Row, line: str, rules: Mapping[str, Row], causes: Mapping[str, Row], style: Style
) -> list[str]:
    """An error text: what it says, and the causes that it can have."""
    lines = [style.paint(row["id"], "bold") + f"  ({row['component']}, {row['weight']})"]
    if line:
        lines += _filled(f"text: {visible(line)}", style, 8)
    lines += _filled(row["meaning"], style, 2)
    shown: dict[str, None] = {}
    for rule in rules.values():
        if row["id"] in rule.get("signals", ()) and rule["cause"] not in shown:
            shown[rule["cause"]] = None
            meaning = causes[rule["cause"]]["meaning"]
            lines += _filled(f"cause {rule['cause']}: {meaning}", style, 4)
            for fix in rule["fix"][:1]:
                lines += _filled(f"fix: {_plain(fix['text'])}", style, 9)
            tests = [sentence(each) for part in ("when", "prove") for each in rule.get(part, ())]
            if tests:
                lines += _filled(f"if {' and '.join(tests)}", style, 4)
    if row["weight"] == "weak":
        lines += _filled("It stands in healthy logs too: alone it proves nothing.", style, 2)
    if not line:
        lines += [f"  pattern: {row['pattern']}"]
        lines += [f"  example: {each}" for each in row["examples"]["match"][:2]]
    lines += [
        f"  source: {source.title}{' ' + source.url if source.url else ''}"
        for source in row["sources"]
    ]
    return lines


def _plain(text: str) -> str:
    """A row's text where no machine is looked at: its places are named."""
    return text.replace("{<", "{").replace(">.", ".")


def _filled(text: str, style: Style, hanging: int) -> list[str]:
    return textwrap.wrap(
        text, style.width, initial_indent="  ", subsequent_indent=" " * max(2, hanging)
    )


def _rule(row: Row, style: Style) -> list[str]:
    lines = [
        style.paint(row["id"], "bold")
        + f"  ({row['severity']}, {row['cause']}, confidence {row['confidence']})",
        *textwrap.wrap(row["title"], style.width, initial_indent="  ", subsequent_indent="  "),
        *textwrap.wrap(row["why"], style.width, initial_indent="  ", subsequent_indent="  "),
        "",
    ]
    if row.get("for"):
        over = (f"{name} in {show(each)}" for name, each in row["for"].items())
        lines.append(f"  for each {', '.join(over)}")
    if row.get("signals"):
        lines.append(f"  for the error texts {', '.join(row['signals'])}")
    for part, word in _PARTS:
        lines += [f"  {word} {sentence(condition)}" for condition in row.get(part, ())]
    for fix in row["fix"]:
        lines += textwrap.wrap(
            f"fix: {fix['text']}", style.width, initial_indent="  ", subsequent_indent="       "
        )
        if fix.get("command"):
            lines.append(f"       $ {fix['command']}")
    lines += [
        f"  source: {source.title}{' ' + source.url if source.url else ''}"
        for source in row["sources"]
    ]
    for verdict, cases in row["examples"].items():
        lines += [f"  {verdict}: {json.dumps(case, ensure_ascii=False)}" for case in cases[:2]]
    return lines


def sentence(condition: Mapping[str, Any]) -> str:
    """A condition in words."""
    for key, word in (("any", " or "), ("all", " and ")):
        if key in condition:
            return "(" + word.join(sentence(part) for part in condition[key]) + ")"
    if "not" in condition:
        return f"not {sentence(condition['not'])}"
    if "code" in condition:
        code = condition["code"]
        return f"the code of {code['of']} on {code['on']} is {' or '.join(condition['in'])}"
    name = condition["fact"]
    if "part" in condition:
        name = f"the {condition['part']} version of {name}"
    if "is" in condition:
        return f"{name} is {condition['is']}"
    operator = next(key for key in condition if key not in ("fact", "part"))
    word = _OPERATORS.get(operator, operator)
    return f"{name} {word} {_operand(condition[operator])}"


def _operand(said: Any) -> str:
    if not isinstance(said, Mapping):
        return show(said)
    if "fact" in said:
        part = f" ({said['part']} version)" if "part" in said else ""
        return f"{said['fact']}{part}"
    where = ", ".join(f"{column} {_operand(value)}" for column, value in said["where"].items())
    return f"{said['take']} of {said['row']} for {where}"


def statistics(matrices: Matrices) -> str:
    """How many rows there are, and how many of them have no source or are less than sure."""
    lines = [f"{'':<36} {'rows':>6} {'no source':>10} {'high':>6} {'medium':>7} {'low':>5}"]
    total = [0] * 5
    for kind in KINDS:
        counts = [0] * 5
        for row in _rows_of(kind, matrices):
            sure = confidence_of(row, "*")
            counts[0] += 1
            counts[1] += not row.get("sources")
            counts[2 + ("high", "medium", "low").index(sure)] += 1
        total = [a + b for a, b in zip(total, counts, strict=True)]
        lines.append(_counted(kind, counts))
    lines.append(_counted("all", total))
    examples = sum(
        len(cases)
        for kind in ("rules", "signatures")
        for row in matrices.rows(kind)
        for cases in row["examples"].values()
    )
    found = {row["cause"] for row in matrices.rows("rules")}
    causes = [row for row in matrices.causes().values() if row["where"] == "snapshot"]
    known = sum(row["id"] in found for row in causes)
    lines += [
        "",
        f"{examples} examples of rules and signatures; {known} of {len(causes)} causes of",
    ]
    lines[-1] += " a snapshot have a rule"
    return "\n".join(lines) + "\n"


def _rows_of(kind: str, matrices: Matrices) -> list[Row]:
    if kind != "catalogues":
        return matrices.rows(kind)
    return [row for name in matrices.catalogue_names() for row in matrices.catalogue(name).rows]


def _counted(name: str, counts: list[int]) -> str:
    rows, bare, high, medium, low = counts
    return f"{name:<36} {rows:>6} {bare:>10} {high:>6} {medium:>7} {low:>5}"


def age(matrices: Matrices) -> str:
    """When the sources of each file were read, the oldest file first."""
    read = f"the newest source was read {matrices.newest_source}, {matrices.age_days()} days ago"
    lines = [
        f"matrices {matrices.version}: {read} (old after {matrices.stale_after_days})",
        "",
        f"{'file':<44} {'oldest':<10}  {'newest':<10}  sources",
    ]
    files = []
    for folder in matrices.folders:
        for kind in KINDS:
            for name in json_files(os.path.join(folder, kind)):
                days = [
                    source["read"]
                    for source in read_json(os.path.join(folder, kind, name))["sources"].values()
                ]
                if days:
                    files.append((min(days), max(days), f"{kind}/{name}", len(days)))
    lines += [f"{name:<44} {old}  {new}  {count:>7}" for old, new, name, count in sorted(files)]
    return "\n".join(lines) + "\n"


def listing(matrices: Matrices) -> str:
    """Every rule, signature and catalogue in a line."""
    lines = ["Rules"]
    lines += [
        f"  {row['id']:<36} {row['severity']:<8} {row['cause']}" for row in matrices.rows("rules")
    ]
    lines += ["", "Signatures of error texts"]
    lines += [
        f"  {row['id']:<36} {row['weight']:<8} {row['component']}"
        for row in matrices.rows("signatures")
    ]
    lines += ["", "Catalogues"]
    for name in matrices.catalogue_names():
        table = matrices.catalogue(name)
        lines.append(f"  {name:<36} {len(table.rows):>4} rows  by {', '.join(table.keys)}")
    return "\n".join(lines) + "\n"


def catalogue(name: str, matrices: Matrices) -> str:
    """A catalogue, a row a line, with sources and confidence. Raises UsageError."""
    if name not in matrices.catalogue_names():
        near = difflib.get_close_matches(name, matrices.catalogue_names(), 3, 0.3)
        hint = f"Did you mean {', '.join(near)}?" if near else "See: envaudit matrix."
        raise UsageError(f"matrix show {name}: no such catalogue", hint)
    table = matrices.catalogue(name)
    lines = []
    for row in table.rows:
        cells = [
            f"{column}={show(value)}"
            for column, value in row.items()
            if column not in ("sources", "confidence", "note")
        ]
        sure = confidence_of(row, "*")
        lines.append(
            "  ".join(cells)
            + f"  [{', '.join(table.sources[s].title for s in row['sources'])}; confidence {sure}]"
        )
    return "\n".join(lines) + "\n"
