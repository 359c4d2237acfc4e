"""The plain data that passes between the rooms: facts, snapshots, findings, changes.

Everything here is frozen and free of behaviour that touches the machine. The JSON forms that
other programs rely on are written in `envaudit.snapshot` and `envaudit.output`, not here, so
that a file format is never a dump of an internal type. Named tuples, since a frozen and slotted
dataclass costs a millisecond each at every start.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Literal, NamedTuple, Union

Value = Union[str, int, float, bool, "list[Value]", "dict[str, Value]"]
"""What a fact may hold: exactly what JSON can say, without null (null is *absent*)."""

ProbeStatus = Literal[
    "ok", "absent", "denied", "failed", "timed_out", "crashed", "stuck", "skipped"
]
"""How a probe ended. `absent`: what it looks at is not on this machine, which is an answer.
`stuck`: it did not end even after SIGKILL (uninterruptible sleep in the kernel)."""

Verdict = Literal["fail", "unknown", "pass", "not_applicable"]
Severity = Literal["error", "warning", "note"]
Confidence = Literal["high", "medium", "low"]


_NOTHING: Mapping[str, str] = MappingProxyType({})


GPUS_LIMIT = 1024
"""Most GPUs that are believed of one machine: the largest NVLink domains have hundreds. A library
or a file that tells of more is broken, and every rule would look at each of them."""


class Fact(NamedTuple):
    """One thing that was seen, with where a reader can see it again."""

    name: str
    value: Value
    source: str
    confidence: Confidence = "high"
    """Below `high` only for facts derived from a catalogue row that is itself less sure."""


class Absent(NamedTuple):
    """Somebody who could have seen it looked, and it is not there."""

    name: str
    source: str
    """Who looked."""


class Unknown(NamedTuple):
    """Nobody could look: not run, denied, timed out, crashed, hung, unsupported."""

    name: str
    reason: str


Answer = Union[Fact, Absent, Unknown]


class ProbeRun(NamedTuple):
    """How one probe went: what it can tell, what it could not, and why."""

    name: str
    status: ProbeStatus
    detail: str = ""
    provides: tuple[str, ...] = ()
    """Patterns of the fact names it would have told."""
    gaps: Mapping[str, str] = _NOTHING
    """Fact name or pattern to the reason why it is unknown although the probe ran."""
    seconds: float = 0.0


class Snapshot(NamedTuple):
    """One look at one machine (or what a report or a flat file says of one)."""

    id: str
    taken_at: str
    """RFC 3339, UTC."""
    facts: Mapping[str, Fact]
    probes: tuple[ProbeRun, ...]
    fingerprint: str = ""
    label: str | None = None
    tool: Mapping[str, Value] = _NOTHING
    host: Mapping[str, Value] = _NOTHING
    target: Mapping[str, Value] = _NOTHING
    transactions: tuple[Mapping[str, Value], ...] = ()

    def ask(self, name: str) -> Answer:
        """Known, absent or unknown: the three answers to one fact name.

        Known wins. Otherwise a gap or a failed probe makes it unknown; only when a probe that
        provides the name ran to its end is the fact absent.
        """
        fact = self.facts.get(name)
        if fact is not None:
            return fact
        looked = ""
        for run in self.probes:
            if not any(covers(pattern, name) for pattern in run.provides):
                continue
            reason = next((why for gap, why in run.gaps.items() if covers(gap, name)), None)
            if reason is not None:
                return Unknown(name, f"{run.name}: {reason}")
            if run.status in ("ok", "absent"):
                if run.name == "derived":  # it follows from what was seen or assumed
                    return Absent(name, run.name)
                looked = looked or run.name
            elif run.status != "skipped":
                return Unknown(
                    name, f"{run.name}: {run.status}{': ' if run.detail else ''}{run.detail}"
                )
        if looked:
            return Absent(name, looked)
        return Unknown(name, "nobody looked")

    def instances(self, pattern: str) -> list[str]:
        """The instances that `*` stands for in a pattern such as `gpu.*`, in natural order.

        `gpu.*` gives ["gpu.0", "gpu.1", ...]: every prefix with as many parts as the pattern
        that has facts below it.
        """
        wanted = pattern.split(".")
        length = len(wanted)
        found = set()
        for name in self.facts:
            if name.count(".") >= length:
                parts = name.split(".", length)[:length]
                if all(part in ("*", mine) for part, mine in zip(wanted, parts, strict=True)):
                    found.add(".".join(parts))
        return sorted(found, key=natural_key)


def covers(pattern: str, name: str) -> bool:
    """Whether a fact-name pattern stands for a name; `*` stands for one or more whole parts."""
    if "*" not in pattern:
        return pattern == name
    first, *middle, last = pattern.split("*")  # fnmatch would compile a regular expression
    if not name.startswith(first):
        return False
    at = len(first)
    for piece in middle:
        at = name.find(piece, at)
        if at < 0:
            return False
        at += len(piece)
    return len(name) - len(last) >= at and name.endswith(last)


def natural_key(text: str) -> list[tuple[int, int, str]]:
    """A sort key that puts gpu.2 before gpu.10."""
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in text.split(".")]


class Source(NamedTuple):
    """Where a piece of knowledge stands, for a reader who wants to check it."""

    title: str
    url: str | None = None


class Evidence(NamedTuple):
    """A value that a finding rests on, and where it was read."""

    fact: str
    value: Value | None
    """None: the fact is absent, which is itself the evidence."""
    source: str


class Fix(NamedTuple):
    """A way out: what to do, as a sentence and where possible as a command. Never run by us."""

    text: str
    command: str | None = None
    needs_root: bool = False
    needs_reboot: bool = False


class Finding(NamedTuple):
    """What one row says about one subject."""

    rule: str
    cause: str
    verdict: Verdict
    severity: Severity
    title: str
    why: str
    subject: str | None = None
    """What it is about where there are several, for example gpu.1 or torch."""
    evidence: tuple[Evidence, ...] = ()
    missing: tuple[str, ...] = ()
    """Unknown facts that keep this from being decided, each with its reason."""
    sources: tuple[Source, ...] = ()
    fix: tuple[Fix, ...] = ()
    confidence: Confidence = "high"
    because_of: str | None = None
    """The rule of the finding that this one follows from; None for a root cause."""
    applicable: bool | None = True
    """None: whether the rule concerns this machine at all could not be told."""


class Report(NamedTuple):
    """The answer of check, gate or smoke: findings in reading order and what they add up to."""

    snapshot: Snapshot
    verdict: Literal["pass", "warn", "fail", "unknown"]
    findings: tuple[Finding, ...]
    """Failures first, most fundamental first."""
    matrices_version: str
    matrices_newest_source: str
    seconds: float = 0.0
    matrices_stale_days: int = 0
    """Age of the knowledge where it is so old that a reader should know; else 0."""


ChangeKind = Literal["upgraded", "downgraded", "added", "removed", "changed"]


class Change(NamedTuple):
    """One fact that differs between two looks."""

    fact: str
    before: Value | None
    after: Value | None
    kind: ChangeKind
    stability: str
    transaction: Mapping[str, Value] | None = None


class Suspect(NamedTuple):
    """A change that has a mechanism to explain what got worse."""

    rank: int
    fact: str
    cause: str
    confidence: Confidence
    explains: tuple[str, ...]
    why: str
    fix: tuple[Fix, ...] = ()
    sources: tuple[Source, ...] = ()


class Blinded(NamedTuple):
    """A fact that was known before and could not be looked at now (or the other way round)."""

    fact: str
    side: Literal["old", "new"]
    reason: str


class Comparison(NamedTuple):
    """What a diff says: changes, findings that came, went and stayed, and suspects."""

    old: Snapshot
    new: Snapshot
    changes: tuple[Change, ...]
    suspects: tuple[Suspect, ...]
    appeared: Sequence[Finding]
    resolved: Sequence[Finding]
    standing: Sequence[Finding]
    blinded: Sequence[Blinded] = ()
