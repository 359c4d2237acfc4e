"""Snapshot x snapshot -> changes, and the findings that came, went and stayed."""

from __future__ import annotations

import re
from collections.abc import Sequence

from envaudit.check import check, told
from envaudit.constraint import Incomparable, compare
from envaudit.facts import spec_of
from envaudit.matrix import Matrices
from envaudit.model import (
    Absent,
    Blinded,
    Change,
    ChangeKind,
    Comparison,
    Finding,
    Snapshot,
    Suspect,
    Unknown,
    Value,
)


def compare_snapshots(old: Snapshot, new: Snapshot, matrices: Matrices) -> Comparison:
    """What changed from the old look to the new one, and which change explains what broke."""
    old_report = check(old, matrices)
    new_report = check(new, matrices)
    changes, blinded = changes_between(old, new)
    before = {key(f): f for f in old_report.findings if told(f)}
    after = {key(f): f for f in new_report.findings if told(f)}
    settled = {key(f) for f in new_report.findings if f.verdict in ("pass", "not_applicable")}
    appeared = [f for k, f in after.items() if k not in before]
    return Comparison(
        old=old,
        new=new,
        changes=tuple(changes),
        suspects=tuple(suspects(changes, appeared)),
        appeared=appeared,
        # A failure that the new look cannot decide is not resolved, only out of sight.
        resolved=[f for k, f in before.items() if k not in after and k in settled],
        standing=[f for k, f in after.items() if k in before],
        blinded=tuple(blinded),
    )


def key(finding: Finding) -> tuple[str, str | None]:
    """What makes two findings of two looks the same one."""
    return finding.rule, finding.subject


def changes_between(old: Snapshot, new: Snapshot) -> tuple[list[Change], list[Blinded]]:
    """Every fact that differs, configuration first; and what only one of the looks could see.

    A fact that one side could not look at is no change: it is told as blinded.
    """
    changes = []
    blinded = []
    for name in sorted({*old.facts, *new.facts}):
        before, after = old.ask(name), new.ask(name)
        if isinstance(before, Unknown):
            blinded.append(Blinded(name, "old", before.reason))
        elif isinstance(after, Unknown):
            blinded.append(Blinded(name, "new", after.reason))
        else:
            a = None if isinstance(before, Absent) else before.value
            b = None if isinstance(after, Absent) else after.value
            if a != b:
                changes.append(Change(name, a, b, kind_of(name, a, b), stability_of(name)))
    order = ("config", "static", "measure", "state")
    changes.sort(key=lambda change: (order.index(change.stability), change.fact))
    return changes, blinded


def stability_of(name: str) -> str:
    """What kind of change it is when this fact moves; unlisted names count as configuration."""
    spec = spec_of(name)
    return spec.stability if spec is not None else "config"


def kind_of(name: str, before: Value | None, after: Value | None) -> ChangeKind:
    """In one word what happened to a fact."""
    if before is None:
        return "added"
    if after is None:
        return "removed"
    spec = spec_of(name)
    if spec is not None and spec.kind == "version":
        try:
            # A package may move in its revision only: then all its numbers decide.
            order = compare(after, before) or _finer(after, before)
        except Incomparable:
            return "changed"
        if order:
            return "upgraded" if order > 0 else "downgraded"
    return "changed"


def _finer(after: Value, before: Value) -> int:
    a, b = ([int(n) for n in re.findall(r"\d+", str(side))] for side in (after, before))
    return (a > b) - (a < b)


def suspects(changes: Sequence[Change], appeared: Sequence[Finding]) -> list[Suspect]:
    """Changes in the evidence of findings that newly fail, root causes first."""
    moved = {change.fact: change for change in changes}
    found: dict[str, Suspect] = {}
    for finding in appeared:
        if finding.because_of is not None:
            continue
        for evidence in finding.evidence:
            change = moved.get(evidence.fact)
            if change is None or change.stability == "state":
                continue
            earlier = found.get(change.fact)
            if earlier is not None:
                continue
            found[change.fact] = Suspect(
                rank=len(found) + 1,
                fact=change.fact,
                cause=finding.cause,
                confidence=finding.confidence,
                explains=tuple(
                    f.rule for f in appeared if any(e.fact == change.fact for e in f.evidence)
                ),
                why=f"{change.fact} went from {show_side(change.before)} to "
                f"{show_side(change.after)}, and now: {finding.title}. {finding.why}",
                fix=finding.fix,
                sources=finding.sources,
            )
    return list(found.values())


def show_side(value: Value | None) -> str:
    """One side of a change as a reader sees it."""
    if value is None:
        return "absent"
    if isinstance(value, list):
        return ", ".join(str(item) for item in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)
