"""Catalogues fill what was not observed: GPU name to compute capability, build tag to CUDA.

A derived fact never overrides an observed one (known or absent); it says in its source that it
is derived, and is no surer than the row and the facts behind it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from envaudit.evaluate import (
    Scope,
    Trial,
    ask,
    bindings,
    fill,
    holds,
    look_up,
    needed,
    switched_off,
)
from envaudit.matrix import Cell, Matrices, Row
from envaudit.model import Absent, Answer, Fact, ProbeRun, Snapshot, Value, covers

_ROUNDS = 4
"""Longest chain of derivations against their order."""


def derive(snapshot: Snapshot, matrices: Matrices) -> Snapshot:
    """The snapshot with what its facts imply filled in.

    Rows are taken in their order, and again while one fills what an earlier one waits for.
    """
    facts = dict(snapshot.facts)
    absences: list[str] = []
    current = snapshot._replace(facts=facts)
    fresh: set[str] | None = None
    for _ in range(_ROUNDS):
        known, gone = set(facts), len(absences)
        rows = matrices.rows_for("derive", facts)
        if fresh is not None:  # only what asks for something new can say something new
            rows = [row for row in rows if fresh.intersection(_asked(row))]
        current = _filled(rows, current, snapshot, facts, absences, matrices)
        fresh = {name.rpartition(".")[2] for name in (*(facts.keys() - known), *absences[gone:])}
        if not fresh:
            break
    return current


def _asked(row: Row) -> Iterator[str]:
    """Last parts of the fact names that a row asks for."""
    for name in needed(row["when"]):
        yield name.rpartition(".")[2]
    for condition in (*row["when"], *row.get("unless", ())):
        if "fact" not in condition:  # of several conditions: whatever it asks for may be new
            yield from _names_in(condition)
    if "extract" in row:
        yield row["extract"]["fact"].rpartition(".")[2]
    yield from _names_in(row.get("row", {}))


def _names_in(said: Any) -> Iterator[str]:
    if isinstance(said, Mapping):
        for key, value in said.items():
            if key in ("fact", "of", "on") and isinstance(value, str):
                yield value.rpartition(".")[2]
            else:
                yield from _names_in(value)
    elif isinstance(said, (list, tuple)):
        for each in said:
            yield from _names_in(each)


def _filled(
    rows: Sequence[Row],
    current: Snapshot,
    snapshot: Snapshot,
    facts: dict[str, Fact],
    absences: list[str],
    matrices: Matrices,
) -> Snapshot:
    """One round through the rows; `facts` and `absences` grow."""
    answers: dict[str, Answer] = {}
    instances: dict[str, list[str]] = {}
    for row in rows:
        needs = needed(row["when"])
        for bound in bindings(row, current, instances):
            name = fill(row["fact"], bound)
            scope = Scope(current, matrices, bound, answers)
            if name in facts:
                continue
            if any(fill(each, bound) not in facts for each in needs):
                continue
            if switched_off(row, scope) or any(
                holds(condition, scope, Trial()) is not True for condition in row["when"]
            ):
                continue
            if row.get("absent"):
                if _seen_absent(name, current):
                    continue
                absences.append(name)
                answers.pop(name, None)
                current = _with_absences(snapshot, facts, absences)
                continue
            found = _value(row, scope)
            if found is not None and not _seen_absent(name, current):
                value, source, confidence = found
                answers.pop(name, None)
                facts[name] = Fact(name, value, source, confidence)  # type: ignore[arg-type]
    return current


def _seen_absent(name: str, snapshot: Snapshot) -> bool:
    """Whether it is known not to be there.

    A probe that ended `absent` had nothing to look with: a machine without NVML has nobody who
    would say the name of its GPU, which its PCI id still tells.
    """
    return isinstance(snapshot.ask(name), Absent) and any(
        run.status == "ok" and any(covers(pattern, name) for pattern in run.provides)
        for run in snapshot.probes
    )


def _with_absences(snapshot: Snapshot, facts: Mapping[str, Fact], absences: list[str]) -> Snapshot:
    run = ProbeRun("derived", "ok", provides=tuple(absences))
    return snapshot._replace(facts=facts, probes=(run, *snapshot.probes))


def _value(row: Row, scope: Scope) -> tuple[Value, str, str] | None:
    trial = Trial()
    trial.less_sure(row.get("confidence", "high"))
    if "row" in row:
        cell = look_up(row["row"], scope, trial)
        if not isinstance(cell, Cell):
            return None
        return cell.value, f"derived: {cell.source}", trial.confidence
    extract = row["extract"]
    answer = ask(extract["fact"], scope, trial)
    if not isinstance(answer, Fact):
        return None
    found = re.search(extract["pattern"], str(answer.value))
    if found is None:
        return None
    groups = {str(number): text or "" for number, text in enumerate(found.groups(), 1)}
    text = re.sub(r"\{(\d+)\}", lambda match: groups[match[1]], extract["value"])
    return text, f"derived: {answer.name} {answer.value}", trial.confidence
