"""What if, and what would fit: assume facts, derive what follows, and check again.

There is no second set of rules: an assumed machine is a snapshot like any other. What hangs on
an assumed component (`matrices/components.json`) becomes unknown, unless the matrices know it.
"""

from __future__ import annotations

import difflib
import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from envaudit.check import check, told, undecided
from envaudit.constraint import Incomparable, release
from envaudit.errors import UsageError
from envaudit.facts import spec_of
from envaudit.matrix import Matrices, Row
from envaudit.model import Fact, Finding, ProbeRun, Report, Snapshot, Value, covers
from envaudit.stack import in_gpu_stack

_SOURCE = "assumed"
_FITS = ("pass", "warn", "unknown")
"""Verdicts of builds that are recommended, the best first. Unknown: nothing speaks against it,
but a fact is missing, such as the Python version in a report."""


class Assumption(NamedTuple):
    """One thing that is taken to be so."""

    component: Row
    value: str


class WhatIf(NamedTuple):
    """The machine as it would be, judged, beside the machine as it is."""

    assumed: Mapping[str, Value]
    before: Report
    after: Report
    new: tuple[Finding, ...]
    resolved: tuple[Finding, ...]
    standing: tuple[Finding, ...]


class Candidate(NamedTuple):
    """A build, judged for this machine."""

    version: str
    flavour: str
    verdict: str
    """pass, warn, fail, unknown, or doubtful: that it has code for the GPU is not sure."""
    commands: tuple[tuple[str, str], ...]
    """Package manager and command."""
    because: tuple[Finding, ...]
    """What speaks against it, or could not be told."""
    notes: tuple[Finding, ...] = ()
    """What it works by, such as minor-version compatibility: of two equals, fewer are better."""


class Recommendation(NamedTuple):
    """Builds of a component for this machine, best first, and what a newer driver would add."""

    component: str
    candidates: tuple[Candidate, ...]
    rejected: tuple[Candidate, ...]
    """The newest build of each flavour that does not fit."""
    gpus: int
    """GPUs that the builds were judged for."""
    unlock: tuple[str, Candidate] | None
    """Driver branch and the newer build that it would allow."""


# -- assuming -----------------------------------------------------------------------------------


def assumption(name: str, value: str, matrices: Matrices, *, strict: bool = True) -> Assumption:
    """What NAME=VALUE assumes: a component, a fact, or a distribution.

    Raises UsageError, for a distribution that no rule looks at too, unless not `strict`.
    """
    if not name or not value:
        raise UsageError(f"{name}={value}: give NAME=VALUE", "For example: torch=2.14.1+cu130.")
    for component in matrices.components():
        if name.lower() in (component["id"], *component.get("aliases", ())):
            return Assumption(component, value)
    if "." in name:
        spec = spec_of(name)
        if spec is None or "*" in name:
            raise UsageError(f"{name}: there is no such fact", "`envaudit facts` lists them.")
        if spec.kind not in ("version", "text", "number", "flag"):
            raise UsageError(f"{name}: a {spec.kind} cannot be assumed on the command line")
        return Assumption({"id": name, "sets": [name], "moves": [name, "signal.*"]}, value)
    dist = re.sub(r"[-_.]+", "-", name.lower())
    if strict and not in_gpu_stack(dist):
        names = [
            each for row in matrices.components() for each in (row["id"], *row.get("aliases", ()))
        ]
        near = [each for each in names if each.startswith(dist)]
        near = near or difflib.get_close_matches(dist, names, 1, 0.6)
        hint = f"Did you mean {near[0]}?" if near else f"Components: {', '.join(names)}."
        raise UsageError(f"whatif {name}: no rule looks at it", hint)
    fact = f"dist.{dist}.version"
    moves = [f"dist.{dist}.*", "python.conflicts", "signal.*"]
    return Assumption({"id": dist, "sets": [fact], "moves": moves}, value)


def assume(snapshot: Snapshot, assumptions: Sequence[Assumption]) -> Snapshot:
    """The snapshot as it would be: assumed facts in, what hangs on them unknown."""
    facts = dict(snapshot.facts)
    gaps: dict[str, str] = {}
    for component, value in assumptions:
        keeps = component.get("keeps", ())
        sets = _names(component["sets"], snapshot)
        for pattern in component["moves"]:
            gaps[pattern] = f"changes with {component['id']}, which is assumed"
            for name in [each for each in facts if covers(pattern, each)]:
                if not any(covers(kept, name) for kept in keeps):
                    del facts[name]
        for name in sets:
            facts[name] = Fact(name, _typed(name, value), _SOURCE)
        name = f"assumed.{component['id']}"
        facts[name] = Fact(name, value, _SOURCE)
    run = ProbeRun("assumed", "ok", provides=tuple(gaps), gaps=gaps)
    return snapshot._replace(id="", facts=facts, probes=(run, *snapshot.probes))


def _names(patterns: Sequence[str], snapshot: Snapshot) -> list[str]:
    """The facts that a component sets, for every instance there is (or a first one)."""
    names: list[str] = []
    for pattern in patterns:
        if "*" not in pattern:
            names.append(pattern)
            continue
        stem = pattern.partition("*")[0] + "*"
        found = snapshot.instances(stem) or [stem.replace("*", "0")]
        names += [pattern.replace(stem, each) for each in found]
    return names


def _typed(name: str, value: str) -> Value:
    spec = spec_of(name)
    if spec is not None and spec.kind == "number":
        try:
            return int(value) if value.lstrip("-").isdigit() else float(value)
        except ValueError:
            raise UsageError(f"{name}={value}: this fact is a number") from None
    if spec is not None and spec.kind == "flag":
        if value.lower() not in ("true", "false", "yes", "no"):
            raise UsageError(f"{name}={value}: this fact is true or false")
        return value.lower() in ("true", "yes")
    return value


def what_if(snapshot: Snapshot, assumptions: Sequence[Assumption], matrices: Matrices) -> WhatIf:
    """Judge the machine as it would be, and tell what would be new, resolved and standing."""
    before = check(snapshot, matrices)
    after = check(assume(snapshot, assumptions), matrices)
    was = {_identity(f): f for f in before.findings if told(f)}
    will = {_identity(f): f for f in after.findings if told(f)}
    unsure = {_identity(f) for f in after.findings if f.verdict == "unknown" and f.missing}
    return WhatIf(
        {each.component["id"]: each.value for each in assumptions},
        before,
        after,
        tuple(finding for key, finding in will.items() if key not in was),
        tuple(f for key, f in was.items() if key not in will and key not in unsure),
        tuple(finding for key, finding in will.items() if key in was),
    )


def _identity(finding: Finding) -> tuple[str, str]:
    return finding.rule, finding.subject or ""


# -- recommending -------------------------------------------------------------------------------


def recommend(snapshot: Snapshot, name: str, matrices: Matrices) -> Recommendation:
    """The newest builds of a component that fit, one for each flavour. Raises UsageError."""
    component = next((each for each in matrices.components() if each["id"] == name), None)
    if component is None or "candidates" not in component:
        known = [each["id"] for each in matrices.components() if "candidates" in each]
        raise UsageError(
            f"recommend {name}: nothing is known of its builds", f"Known: {', '.join(known)}."
        )
    jury = _Jury(component, snapshot, matrices)
    fits: list[Candidate] = []
    rejected: list[Candidate] = []
    for _, builds in _by_flavour(component, matrices):
        newest: Candidate | None = None
        for release_, flavour in builds:
            candidate = jury.judge(release_, flavour)
            newest = newest or candidate
            if candidate.verdict in _FITS:
                fits.append(candidate)
                break
        if newest is not None and newest.verdict not in _FITS:
            rejected.append(newest)
    fits.sort(key=lambda each: each.flavour, reverse=True)
    fits.sort(
        key=lambda each: (
            _FITS.index(each.verdict),
            _newest_first(each.version),
            len(each.notes),
        )
    )
    rejected.sort(key=lambda each: _newest_first(each.version))
    return Recommendation(
        name,
        tuple(fits),
        tuple(rejected),
        len(snapshot.instances("gpu.*")),
        _unlock(jury, fits, rejected, matrices),
    )


class _Jury:
    """Judges builds of one component by the rules that these can touch."""

    def __init__(self, component: Row, snapshot: Snapshot, matrices: Matrices) -> None:
        self.component = component
        self.snapshot = snapshot
        self.matrices = matrices
        names = component["candidates"].get("with", ())
        self.companions = [each for each in names if f"dist.{each}.version" in snapshot.facts]
        self.along = [f"{root}{name}.*" for name in names for root in ("", "dist.", "conda.")]
        """Facts of what is installed anew together with it."""
        touched = re.compile(
            "|".join(
                '"' + re.escape(name).replace(r"\*", r"[^\"]*")
                for name in (*component["moves"], "assumed.", "*.arch_list", "{framework}")
                if not name.startswith("signal")
            )
        )
        self.severity = {row["id"]: row["severity"] for row in matrices.rows("rules")}
        conditions = ("for", "when", "unless", "require")
        self.rules = [
            row
            for row in matrices.rows("rules")
            if "signals" not in row
            and touched.search(json.dumps([row.get(part) for part in conditions]))
        ]

    def judge(self, release_: str, flavour: str, driver: Row | None = None) -> Candidate:
        """One build, on this machine or with another driver."""
        version = _fill(self.component["candidates"]["version"], release_, flavour)
        moving = {**self.component, "moves": [*self.component["moves"], *self.along]}
        assumptions = [Assumption(moving, version)]
        if driver is not None:
            component = next(c for c in self.matrices.components() if c["id"] == "driver")
            assumptions.append(Assumption(component, str(driver["branch"])))
        assumed = assume(self.snapshot, assumptions)
        report = check(assumed, self.matrices, rules=self.rules)
        verdict, against = self._verdict(report.findings)
        more = "".join(f" {name}" for name in self.companions)
        commands = tuple(
            (each["manager"], _fill(each["command"], release_, flavour).replace("{with}", more))
            for each in self.component.get("commands", ())
        )
        notes = tuple(f for f in report.findings if told(f) and f.severity == "note")
        return Candidate(version, flavour, verdict, commands, tuple(against), notes)

    def _verdict(self, findings: Sequence[Finding]) -> tuple[str, list[Finding]]:
        """What the findings add up to for a build that somebody is told to install.

        Advice asks for more than a check: what is less sure counts against a build too, and
        for every GPU a rule must have passed that rests on the build's own list of code.
        """
        proof = self.component["candidates"].get("proof")
        errors = [f for f in findings if self.severity[f.rule] == "error" and self._is_about_it(f)]
        failed = [f for f in errors if f.verdict == "fail"]
        if failed:
            return "fail", failed
        open_ = [f for f in errors if undecided(f)]
        proved = {
            f.subject
            for f in errors
            if f.verdict == "pass"
            and f.confidence != "low"
            and any(evidence.fact == proof for evidence in f.evidence)
        }
        if proof and not proved.issuperset(self.snapshot.instances("gpu.*")):
            return "doubtful", open_
        if open_:
            return "unknown", open_
        warned = [
            f for f in findings if told(f) and f.severity == "warning" and self._is_about_it(f)
        ]
        return ("warn", warned) if warned else ("pass", [])

    def _is_about_it(self, finding: Finding) -> bool:
        """Whether a finding rests on the build at all: what is wrong anyway is no reason."""
        asked = [each.fact for each in finding.evidence]
        asked += [text.partition(":")[0] for text in finding.missing]
        return any(
            covers(pattern, name)
            for pattern in (*self.component["moves"], "assumed.*")
            for name in asked
        )


def _fill(text: str, release_: str, flavour: str) -> str:
    return text.replace("{release}", release_).replace("{flavour}", flavour)


def _by_flavour(component: Row, matrices: Matrices) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Flavours with their releases, newest first: the newest patch of each minor."""
    said = component["candidates"]
    column, flavour = said["release"], said.get("flavour")
    rows = [
        row
        for row in matrices.catalogue(said["catalogue"]).rows
        if column in row
        and all(row.get(key) in values for key, values in said.get("only", {}).items())
    ]
    patches: dict[str, str] = {}
    if "patches" in said:
        for row in matrices.catalogue(said["patches"]).rows:
            full = str(row[column])
            minor = ".".join(full.split(".")[:2])
            if minor not in patches or release(full) > release(patches[minor]):
                patches[minor] = full
    builds = [
        (patches.get(str(row[column]), str(row[column])), str(row.get(flavour, "")))
        for row in rows
        if "patches" not in said or str(row[column]) in patches
    ]
    builds.sort(key=lambda build: (build[1], _newest_first(build[0])))
    for name, group in itertools.groupby(builds, key=lambda build: build[1]):
        yield name, list(group)


def _newest_first(version: str) -> list[int]:
    try:
        return [-number for number in release(version)]
    except Incomparable:
        return []


def _unlock(
    jury: _Jury, fits: Sequence[Candidate], rejected: Sequence[Candidate], matrices: Matrices
) -> tuple[str, Candidate] | None:
    """The oldest newer driver branch with which a newer build than any that fits would fit."""
    newest = _newest_first(fits[0].version) if fits else []
    better = [
        each
        for each in rejected
        if (not fits or _newest_first(each.version) < newest)
        and {f.cause for f in each.because} == {"driver-too-old"}
    ]
    if not better:
        return None
    now = jury.snapshot.facts.get("driver.version")
    if now is None:
        return None
    branches = sorted(
        (row for row in matrices.catalogue("driver-branches").rows if "cuda" in row),
        key=lambda row: int(row["branch"]),
    )
    for row in branches:
        if int(row["branch"]) <= int(str(now.value).partition(".")[0]):
            continue
        for each in better:
            release_ = each.version.partition("+")[0]
            with_it = jury.judge(release_, each.flavour, driver=row)
            if with_it.verdict in _FITS:
                return str(row["branch"]), with_it
    return None
