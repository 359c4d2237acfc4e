"""Evaluate the conditions of a row against a snapshot, with three answers: yes, no, unknown.

A condition is one of

    {"fact": NAME, "is": "present" | "absent"}
    {"fact": NAME, OPERATOR: OPERAND, "part": "major" | "minor" | "patch"}   part is optional
    {"code": {"of": ARCH_LIST, "on": COMPUTE_CAPABILITY}, "in": [native, ptx, ...]}   see gpu_code
    {"any": [...]}  {"all": [...]}  {"not": condition}

NAME may hold variables bound by the row's "for". An OPERAND is a literal, {"fact": NAME}, or
{"row": CATALOGUE, "where": {COLUMN: OPERAND}, "take": COLUMN}, each with an optional "part" and
an optional "as", the name under which texts can show it.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from envaudit.constraint import OPERATORS, Incomparable, gpu_code, part_of
from envaudit.matrix import Cell, Matrices, NoRow, Row, confidence_of
from envaudit.model import Absent, Answer, Evidence, Fact, Snapshot, Unknown, Value

CONFIDENCES = ("low", "medium", "high")


class Scope(NamedTuple):
    """What conditions are evaluated against: a snapshot, the knowledge, the row's variables."""

    snapshot: Snapshot
    matrices: Matrices
    bound: Mapping[str, str]
    answers: dict[str, Answer]
    """Answers of this snapshot so far: rules ask for the same facts again and again."""


class Trial:
    """What an evaluation rested on, gathered on the way."""

    def __init__(self) -> None:
        self.evidence: dict[str, Evidence] = {}
        self.missing: dict[str, str] = {}
        """Unknown fact to the reason."""
        self.cells: list[Cell] = []
        self.names: dict[str, str] = {}
        """Values that texts may show, by their "as" name."""
        self.confidence = "high"

    def add(self, other: Trial) -> None:
        """Rest on what another trial rested on, too."""
        self.evidence.update(other.evidence)
        self.missing.update(other.missing)
        self.cells += other.cells
        self.names.update(other.names)
        self.less_sure(other.confidence)

    def less_sure(self, confidence: str) -> None:
        """Lower the confidence to that of a part it rests on."""
        self.confidence = min(self.confidence, confidence, key=CONFIDENCES.index)


_PLACE = re.compile(r"\{([^{}]+)\}")


def fill(text: str, bound: Mapping[str, str]) -> str:
    """Put the row's variables into a fact name: "{gpu}.name" becomes "gpu.0.name"."""
    if "{" not in text:
        return text
    return _PLACE.sub(lambda match: bound.get(match[1], match[0]), text)


def bindings(
    row: Row, snapshot: Snapshot, seen: dict[str, list[str]] | None = None
) -> Iterator[Mapping[str, str]]:
    """Every way to bind the row's "for" variables: instances of a pattern, or a list.

    `seen` keeps the instances of a pattern for the next row, while the snapshot is the same.
    """
    wanted: Mapping[str, Any] = row.get("for", {})
    choices = []
    for over in wanted.values():
        if isinstance(over, list):
            choices.append(over)
        elif seen is None:
            choices.append(snapshot.instances(over))
        else:
            if over not in seen:
                seen[over] = snapshot.instances(over)
            choices.append(seen[over])
    for combination in itertools.product(*choices):
        yield dict(zip(wanted, combination, strict=True))


def ask(name: str, scope: Scope, trial: Trial) -> Answer:
    """The answer to a fact name with its variables filled in, noted in the trial."""
    answer = answer_of(fill(name, scope.bound), scope)
    if isinstance(answer, Fact):
        trial.evidence[answer.name] = Evidence(answer.name, answer.value, answer.source)
        trial.less_sure(answer.confidence)
    elif isinstance(answer, Absent):
        trial.evidence[answer.name] = Evidence(answer.name, None, f"looked for by {answer.source}")
    else:
        trial.missing[answer.name] = answer.reason
    return answer


def answer_of(name: str, scope: Scope) -> Answer:
    """The snapshot's answer to a name, asked for once."""
    answer = scope.answers.get(name)
    if answer is None:
        answer = scope.answers[name] = scope.snapshot.ask(name)
    return answer


def needed(conditions: Iterable[Mapping[str, Any]]) -> list[str]:
    """Fact names without which one of these conditions cannot hold."""
    return [
        str(condition["fact"])
        for condition in conditions
        if "fact" in condition and condition.get("is") != "absent"
    ]


def operand(said: Any, scope: Scope, trial: Trial) -> Value | Absent | Unknown:
    """The value that a condition compares with."""
    if not isinstance(said, Mapping):
        return said  # type: ignore[no-any-return]
    value: Value
    if "fact" in said:
        answer = ask(said["fact"], scope, trial)
        if not isinstance(answer, Fact):
            return answer
        value = answer.value
    else:
        cell = look_up(said, scope, trial)
        if not isinstance(cell, Cell):
            return cell
        value = cell.value
    if "part" in said:
        try:
            value = part_of(value, said["part"])
        except Incomparable as reason:
            name = fill(str(said.get("fact", said.get("take"))), scope.bound)
            trial.missing[name] = str(reason)
            return Unknown(name, str(reason))
    if "as" in said:
        trial.names[said["as"]] = show(value)
    return value


def look_up(said: Mapping[str, Any], scope: Scope, trial: Trial) -> Cell | Absent | Unknown:
    """One cell of a catalogue, or why there is none."""
    where: dict[str, Value] = {}
    for column, by in said["where"].items():
        value = operand(fill(by, scope.bound) if isinstance(by, str) else by, scope, trial)
        if isinstance(value, (Absent, Unknown)):
            return value
        where[column] = value
    catalogue = scope.matrices.catalogue(said["row"])
    try:
        cell = catalogue.cell(where, said["take"])
    except (NoRow, Incomparable) as reason:
        name = f"{said['row']}.{said['take']}"
        trial.missing[name] = str(reason)
        return Unknown(name, str(reason))
    trial.cells.append(cell)
    trial.less_sure(cell.confidence)
    asked = ", ".join(f"{column} {value}" for column, value in where.items())
    trial.evidence[f"{cell.catalogue}.{cell.column}"] = Evidence(
        f"{cell.column} for {asked}", cell.value, cell.source
    )
    return cell


def holds(condition: Mapping[str, Any], scope: Scope, trial: Trial) -> bool | None:
    """Whether a condition is met: True, False, or None where that cannot be told."""
    if "any" in condition:
        return _surest(condition["any"], scope, trial)
    if "all" in condition:
        return _all([holds(part, scope, trial) for part in condition["all"]])
    if "not" in condition:
        inner = holds(condition["not"], scope, trial)
        return None if inner is None else not inner
    try:
        if "code" in condition:
            return _code(condition, scope, trial)
        return _compare(condition, scope, trial)
    except (Incomparable, re.error) as reason:  # a pattern may come from a fact
        name = fill(str(condition.get("fact", condition.get("code"))), scope.bound)
        trial.missing[name] = str(reason)
        return None


def switched_off(row: Row, scope: Scope) -> bool:
    """Whether one of the row's "unless" conditions is certainly met; an unknown one is not."""
    return any(holds(part, scope, Trial()) is True for part in row.get("unless", ()))


def _surest(parts: Sequence[Mapping[str, Any]], scope: Scope, trial: Trial) -> bool | None:
    """Whether one of the parts holds; the trial then rests on the surest of those that do.

    What else might have held makes the answer no less sure, and is no evidence of it.
    """
    tried = []
    for part in parts:
        own = Trial()
        tried.append((holds(part, scope, own), own))
    met = [own for answer, own in tried if answer is True]
    surest = [max(met, key=lambda own: CONFIDENCES.index(own.confidence))] if met else []
    for own in surest or [own for _, own in tried]:
        trial.add(own)
    for _, own in tried:
        for name, value in own.names.items():
            trial.names.setdefault(name, value)
    if met:
        return True
    return None if any(answer is None for answer, _ in tried) else False


def _all(answers: list[bool | None]) -> bool | None:
    if any(answer is False for answer in answers):
        return False
    return None if any(answer is None for answer in answers) else True


def _compare(condition: Mapping[str, Any], scope: Scope, trial: Trial) -> bool | None:
    answer = ask(condition["fact"], scope, trial)
    if "is" in condition:
        if isinstance(answer, Unknown):
            return None
        return bool(isinstance(answer, Fact) == (condition["is"] == "present"))
    if isinstance(answer, Unknown):
        return None
    if isinstance(answer, Absent):
        return False
    part = condition.get("part")
    for name, function in OPERATORS.items():
        if name in condition:
            other = operand(condition[name], scope, trial)
            if isinstance(other, Unknown):
                return None
            if isinstance(other, Absent):
                return False
            return function(answer.value, other, part)
    raise AssertionError(f"no operator in {condition}")  # the schema of rows forbids it


def _code(condition: Mapping[str, Any], scope: Scope, trial: Trial) -> bool | None:
    of = ask(condition["code"]["of"], scope, trial)
    on = ask(condition["code"]["on"], scope, trial)
    if isinstance(of, Unknown) or isinstance(on, Unknown):
        return None
    if isinstance(of, Absent) or isinstance(on, Absent):
        return False
    table = scope.matrices.catalogue("binary-compatibility")
    code, rows = gpu_code(of.value, on.value, table.rows)
    for row in rows:
        trial.less_sure(confidence_of(row, "runs_on"))
    return code in list(condition["in"])


_INVISIBLE = re.compile(
    "[\\x00-\\x1f\\x7f-\\x9f\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069\\ud800-\\udfff]"
)


def visible(text: str, keep: str = "") -> str:
    """Text of whatever origin with its control characters written out: a terminal obeys none."""
    return _INVISIBLE.sub(
        lambda found: found[0] if found[0] in keep else f"\\x{ord(found[0]):02x}", text
    )


def show(value: Value | None) -> str:
    """A value as a reader sees it in a sentence."""
    if value is None:
        return "absent"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return " ".join(show(item) for item in value)
    if isinstance(value, float):
        return f"{value:.6g}"
    return str(value)


def render(text: str, scope: Scope, trial: Trial) -> str:
    """A row's text with variables, named values and fact values put in."""

    def put(match: re.Match[str]) -> str:
        name = match[1]
        if name in trial.names:
            return trial.names[name]
        if name in scope.bound:
            return scope.bound[name]
        answer = answer_of(fill(name.replace("<", "{").replace(">", "}"), scope.bound), scope)
        if isinstance(answer, Absent):
            return "no"
        return show(answer.value) if isinstance(answer, Fact) else "unknown"

    # {<gpu>.name} names a fact of the bound instance: braces cannot nest.
    return _PLACE.sub(put, text)
