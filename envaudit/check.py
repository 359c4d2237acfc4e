"""Snapshot x matrices -> findings, root causes before consequences."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Literal, cast

from envaudit.derive import derive
from envaudit.evaluate import (
    Scope,
    Trial,
    answer_of,
    ask,
    bindings,
    fill,
    holds,
    needed,
    render,
    switched_off,
)
from envaudit.matrix import Matrices, Row
from envaudit.model import (
    Absent,
    Answer,
    Confidence,
    Fact,
    Finding,
    Fix,
    Report,
    Severity,
    Snapshot,
    Unknown,
    Value,
    Verdict,
)

LAYERS = (
    "bus",
    "kernel",
    "driver",
    "fabric",
    "container",
    "gpu",
    "toolkit",
    "libraries",
    "framework",
    "python",
    "host",
)
"""Most fundamental first: the order in which failures are told."""

_SEVERITIES = ("error", "warning", "note")


def check(
    snapshot: Snapshot,
    matrices: Matrices,
    *,
    assume: Mapping[str, tuple[Value, str]] | None = None,
    rules: Sequence[Row] | None = None,
    everything: bool = False,
) -> Report:
    """Judge a snapshot by every rule.

    `assume` adds facts (name -> value, source) that the caller states, such as the number of
    GPUs that there should be. `rules`: these only, in place of all.
    `everything`: also say in full what a rule that does not concern this machine rests on.
    """
    started = time.perf_counter()
    facts = dict(snapshot.facts)
    for run in snapshot.probes:
        name = f"probe.{run.name}.status"
        facts[name] = Fact(name, run.status, f"how the probe {run.name} ended")
        if run.detail:
            detail = f"probe.{run.name}.detail"
            facts[detail] = Fact(detail, run.detail, f"how the probe {run.name} ended")
    for name, (value, source) in (assume or {}).items():
        facts[name] = Fact(name, value, source)
    judged = derive(snapshot._replace(facts=facts), matrices)
    findings: list[tuple[Row, Finding]] = []
    instances: dict[str, list[str]] = {}
    answers: dict[str, Answer] = {}
    if rules is None:
        rules = matrices.rows("rules") if everything else matrices.rows_for("rules", judged.facts)
    for row in rules:
        for bound in bindings(row, judged, instances):
            scope = Scope(judged, matrices, bound, answers)
            quick = None if everything else _without_its_facts(row, scope)
            findings.append((row, quick or judge(row, scope, everything=everything)))
    ordered = _arrange(findings)
    age = matrices.age_days()
    return Report(
        snapshot=judged,
        verdict=verdict_of(ordered),
        findings=tuple(ordered),
        matrices_version=matrices.version,
        matrices_newest_source=matrices.newest_source,
        seconds=round(time.perf_counter() - started, 4),
        matrices_stale_days=age if age > matrices.stale_after_days else 0,
    )


def _without_its_facts(row: Row, scope: Scope) -> Finding | None:
    """What a row says where a fact is not there that it needs to be concerned at all.

    Most rules do not concern most machines: this answers for them without looking further.
    None where the row has to be judged.
    """
    if "signals" in row:
        seen = any(f"signal.{name}" in scope.snapshot.facts for name in row["signals"])
        return None if seen else _brief(row, scope, "not_applicable")
    for name in needed(row["when"]):
        filled = fill(name, scope.bound)
        if filled in scope.snapshot.facts:
            continue
        answer = answer_of(filled, scope)
        if isinstance(answer, Absent):
            return _brief(row, scope, "not_applicable")
        if isinstance(answer, Unknown):
            return _brief(row, scope, "unknown", f"{answer.name}: {answer.reason}")
    return None


def _brief(row: Row, scope: Scope, verdict: Verdict, *missing: str) -> Finding:
    return Finding(
        rule=row["id"],
        cause=row["cause"],
        verdict=verdict,
        severity=row["severity"],
        title=row["title"],
        why=row["why"],
        subject=next(iter(scope.bound.values()), None),
        missing=missing,
        sources=row["sources"],
        applicable=None if missing else False,
    )


def judge(row: Row, scope: Scope, *, everything: bool = True) -> Finding:
    """What one row says of one subject; in brief where it says nothing and not `everything`."""
    trial = Trial()
    if "signals" in row:
        return _judge_signals(row, scope, trial)
    applies: bool | None = True
    for condition in row["when"]:
        answer = holds(condition, scope, trial)
        if answer is False:
            applies = False
            break
        if answer is None:
            applies = None
    if applies is not False and switched_off(row, scope):
        applies = False
    verdict: Verdict = "not_applicable"
    if applies is not False:
        answers = [holds(condition, scope, trial) for condition in row["require"]]
        if applies is None:
            # Whether the rule concerns this machine at all is open; only a met requirement
            # settles it, since then nothing can be wrong either way.
            verdict = "pass" if answers and all(a is True for a in answers) else "unknown"
        elif any(answer is False for answer in answers):
            verdict = row.get("verdict", "fail")
        elif any(answer is None for answer in answers):
            verdict = "unknown"
        else:
            verdict = "pass"
    trial.less_sure(row.get("confidence", "high"))
    failed = applies is True and verdict == row.get("verdict", "fail")
    if not everything and not failed and (verdict == "not_applicable" or applies is not True):
        missing = [f"{name}: {reason}" for name, reason in trial.missing.items()]
        return _brief(row, scope, verdict, *(missing if verdict == "unknown" else ()))
    severity: Severity = row["severity"]
    if failed and severity != "note" and trial.confidence != "high":
        severity = "note"  # less sure knowledge may inform, never fail anything
    return _finding(row, scope, trial, verdict, severity, applies)


def _judge_signals(row: Row, scope: Scope, trial: Trial) -> Finding:
    """What a row about error texts says: that the failure was seen, and how sure its cause is.

    One of its texts must have been found and every "when" certainly hold. A "prove" that is
    certainly false refutes the cause; one that cannot be told makes it less sure. Since the
    failure itself was seen, a medium confidence lowers no severity here.
    """
    seen = [
        isinstance(ask(f"signal.{name}", scope, trial), Fact)
        for name in row["signals"]
        if f"signal.{name}" in scope.snapshot.facts
    ]
    applies = bool(
        seen
        and all(holds(condition, scope, trial) is True for condition in row["when"])
        and not switched_off(row, scope)
    )
    if applies:
        for condition in row.get("prove", ()):
            answer = holds(condition, scope, trial)
            if answer is False:
                applies = False
                break
            if answer is None:
                trial.less_sure("medium")
    trial.less_sure(row.get("confidence", "high"))
    severity: Severity = row["severity"] if trial.confidence != "low" else "note"
    verdict: Verdict = row.get("verdict", "fail") if applies else "not_applicable"
    return _finding(row, scope, trial, verdict, severity, applies)


def _finding(
    row: Row,
    scope: Scope,
    trial: Trial,
    verdict: Verdict,
    severity: Severity,
    applies: bool | None,
) -> Finding:
    failed = applies is True and verdict == row.get("verdict", "fail")
    sources = list(row["sources"])
    for cell in trial.cells:
        sources.extend(source for source in cell.sources if source not in sources)
    return Finding(
        rule=row["id"],
        cause=row["cause"],
        verdict=verdict,
        severity=severity,
        title=render(row["title"], scope, trial),
        why=render(row["why"], scope, trial),
        subject=next(iter(scope.bound.values()), None),
        evidence=tuple(trial.evidence.values()),
        missing=tuple(f"{name}: {reason}" for name, reason in trial.missing.items())
        if verdict == "unknown" and not failed and "signals" not in row
        else (),
        sources=tuple(sources),
        fix=tuple(_fixes(row, scope, trial)) if failed else (),
        confidence=cast(Confidence, trial.confidence),
        applicable=applies,
    )


def _fixes(row: Row, scope: Scope, trial: Trial) -> list[Fix]:
    """The ways out that fit this machine."""
    fixes = []
    for said in row["fix"]:
        fits = [holds(condition, scope, Trial()) for condition in said.get("when", ())]
        if any(answer is not True for answer in fits) or switched_off(said, scope):
            continue
        command = said.get("command")
        fixes.append(
            Fix(
                render(said["text"], scope, trial),
                render(command, scope, trial) if command else None,
                bool(said.get("needs_root")),
                bool(said.get("needs_reboot")),
            )
        )
    return fixes


def told(finding: Finding) -> bool:
    """Whether a finding is an answer a reader must see: something failed, or hung."""
    return finding.verdict == "fail" or (finding.verdict == "unknown" and not finding.missing)


def undecided(finding: Finding) -> bool:
    """Whether a rule that certainly concerns this machine lacks a fact to decide."""
    return finding.verdict == "unknown" and bool(finding.missing) and finding.applicable is True


def _arrange(findings: Sequence[tuple[Row, Finding]]) -> list[Finding]:
    """Link consequences to their roots, and put all in reading order."""
    raised = [(row, finding) for row, finding in findings if told(finding)]
    because_of = {
        finding.rule: _root_of(row, finding, raised) for row, finding in raised
    }  # one root for each rule: its subjects share it
    _cut_circles(because_of, [(row, finding) for row, finding in raised])
    linked: list[tuple[tuple[int, ...], Finding]] = []
    for number, (row, finding) in enumerate(findings):
        because = because_of[finding.rule] if told(finding) else None
        done = finding._replace(because_of=because)
        key = (
            0 if told(finding) else 1 if undecided(finding) else 2,
            _SEVERITIES.index(finding.severity),
            0 if because is None else 1,
            LAYERS.index(row["layer"]),
            number,
        )
        linked.append((key, done))
    return [finding for _, finding in sorted(linked, key=lambda pair: pair[0])]


def _cut_circles(because_of: dict[str, str | None], raised: Sequence[tuple[Row, Finding]]) -> None:
    """Make the surest of findings that follow from one another the root of the others.

    Two rules of one cause may each name the other as what they follow from.
    """
    first = {
        finding.rule: ("signals" in row, _rank(finding), LAYERS.index(row["layer"]), number)
        for number, (row, finding) in reversed([*enumerate(raised)])
    }
    for rule in because_of:
        path: list[str] = []
        at: str | None = rule
        while at is not None and at not in path:
            path.append(at)
            at = because_of.get(at)
        if at is not None:
            circle = path[path.index(at) :]
            because_of[min(circle, key=first.__getitem__)] = None


def _root_of(row: Row, finding: Finding, raised: Sequence[tuple[Row, Finding]]) -> str | None:
    """The rule whose failure explains this one: the first cause of its because_of that failed.

    An error text tells what facts prove already: where another row found the same cause, the
    text follows from it. Nothing follows from what is less severe than itself.
    """
    hard = _SEVERITIES.index(finding.severity)
    others = [
        (above, other)
        for above, other in raised
        if other.rule != finding.rule
        and other.severity != "note"
        and _SEVERITIES.index(other.severity) <= hard
    ]
    if "signals" in row:
        for above, other in others:
            if other.cause != finding.cause:
                continue
            mine, its = (_rank(finding), finding.rule), (_rank(other), other.rule)
            if "signals" not in above or its < mine:
                return other.rule
    for _, other in others:
        if other.cause == finding.cause and _SEVERITIES.index(other.severity) < hard:
            return other.rule
    for cause in row.get("because_of", ()):
        for above, other in others:
            own = cause == finding.cause and "signals" in above and "signals" not in row
            if other.cause == cause and not own:  # facts never follow from a text that tells them
                return other.rule
    return None


def _rank(finding: Finding) -> int:
    """How sure a finding is, the surest first."""
    return ("high", "medium", "low").index(finding.confidence)


def verdict_of(findings: Sequence[Finding]) -> Literal["pass", "warn", "fail", "unknown"]:
    """What root causes add up to. A definite failure outweighs what could not be told."""
    roots = [finding for finding in findings if finding.because_of is None]
    if any(f.verdict == "fail" and f.severity == "error" for f in roots):
        return "fail"
    if any((told(f) or undecided(f)) and f.severity == "error" for f in roots):
        return "unknown"
    if any(told(f) and f.severity == "warning" for f in roots):
        return "warn"
    if not any(finding.verdict in ("pass", "fail") for finding in findings):
        return "unknown"  # not one rule could be decided: that is no praise
    return "pass"
