"""Rows for a reader: a rule with its sources and examples, a catalogue as a table."""

from __future__ import annotations

import difflib
import json
import textwrap
from collections.abc import Mapping
from typing import Any

from envaudit.errors import UsageError
from envaudit.evaluate import show
from envaudit.matrix import Matrices, Row, confidence_of
from envaudit.output.text import Style

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


def explain(subject: str, matrices: Matrices, style: Style) -> str:
    """A rule by its id, or a cause with every rule that can find it. Raises UsageError."""
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
    near = difflib.get_close_matches(subject, [*rules, *causes], 3, 0.4)
    hint = f"Did you mean {', '.join(near)}?" if near else "See: envaudit matrix."
    raise UsageError(f"explain {subject}: no rule and no cause of that name", hint)


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
    for part, word in (("when", "when"), ("unless", "unless"), ("require", "requires")):
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


def listing(matrices: Matrices) -> str:
    """Every rule and catalogue in a line."""
    lines = ["Rules"]
    lines += [
        f"  {row['id']:<36} {row['severity']:<8} {row['cause']}" for row in matrices.rows("rules")
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
