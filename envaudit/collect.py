"""Look at a machine: run every probe in a child of its own and put the answers together."""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from typing import Any, cast

from envaudit import __version__
from envaudit.errors import UsageError
from envaudit.host import Host
from envaudit.isolate import KILL_GRACE_S, Job, Outcome, Runner
from envaudit.model import Fact, ProbeRun, ProbeStatus, Snapshot, Value
from envaudit.probes import PROBES, Denied, Look, NotHere, Probe, Skipped
from envaudit.snapshot import finish
from envaudit.target import Target

DEADLINE_S = 10.0
"""Overall deadline of a look without the grace for killing what hangs."""


def ensure_supported() -> None:
    """Raise UsageError where there are no probes for the platform that envaudit runs on."""
    if sys.platform != "linux":
        raise UsageError(
            "this machine cannot be looked at: probes exist for Linux (WSL 2 included) only",
            "Files can be judged here all the same: envaudit check SNAPSHOT.json.",
        )


def collect(
    host: Host,
    target: Target | None,
    *,
    deadline: float = DEADLINE_S,
    label: str | None = None,
    probes: Sequence[Probe] = PROBES,
    progress: Callable[[Sequence[str]], None] | None = None,
) -> Snapshot:
    """Look at the machine and return what was seen, complete with what could not be seen.

    Takes at most `deadline` seconds plus the grace for killing what hangs. `progress` is called
    now and then with the names of the probes still running. Raises UsageError where there are
    no probes for this platform.
    """
    ensure_supported()
    started = time.monotonic()
    taken_at = datetime.now(timezone.utc)
    until = started + deadline
    by_name = {probe.name: probe for probe in probes}
    runner = Runner()
    waiting = list(probes)
    runs: dict[str, ProbeRun] = {}
    facts: dict[str, dict[str, Fact]] = {}

    def start(probe: Probe) -> None:
        left = max(0.05, until - time.monotonic())
        seen = {n: f for name in probe.after for n, f in facts.get(name, {}).items()}
        seconds = min(probe.seconds, left)
        try:
            runner.add(Job(probe.name, _work(probe, host, target, seen, seconds), seconds))
        except OSError as problem:  # no more processes or descriptors for this user
            reason = f"could not be started: {problem.strerror}"
            runs[probe.name] = ProbeRun(probe.name, "failed", reason, probe.provides)
            facts[probe.name] = {}

    def start_ready(now: float) -> None:
        for probe in list(waiting):
            late = now >= started + min(probe.patience, deadline / 2)
            if late or all(name in runs or name not in by_name for name in probe.after):
                waiting.remove(probe)
                start(probe)

    def follow() -> None:
        while runner.running or waiting:
            now = time.monotonic()
            late = (started + min(p.patience, deadline / 2) for p in waiting)
            wake = min([until + 2 * KILL_GRACE_S, *late])
            if progress is not None:
                wake = min(wake, now + 0.25)
            for outcome in runner.wait(max(wake, now + 0.001)):
                run, told = _read(by_name[outcome.name], outcome)
                runs[run.name] = run
                facts[run.name] = told
            if progress is not None:
                progress(runner.running)
            start_ready(time.monotonic())

    try:
        start_ready(started)
        # Needed for the fingerprint at the end, and loaded now that the children are at work.
        import hashlib  # noqa: F401

        follow()
    finally:
        runner.kill_all()  # none are left, unless the look was broken off

    merged: dict[str, Fact] = {}
    for probe in probes:
        for name, fact in facts[probe.name].items():
            merged.setdefault(name, fact)
    return finish(
        Snapshot(
            id=f"{taken_at:%Y%m%d%H%M%S}-{os.urandom(4).hex()}",
            taken_at=taken_at.isoformat(timespec="seconds").replace("+00:00", "Z"),
            facts=merged,
            probes=tuple(runs[probe.name] for probe in probes),
            label=label,
            tool={"name": "envaudit", "version": __version__},
            host=_host_facts(merged),
            target={"executable": target.executable, "chosen_by": target.chosen_by}
            if target
            else {},
        )
    )


def _host_facts(facts: dict[str, Fact]) -> dict[str, Value]:
    boot = facts.get("boot.id")
    name = facts.get("host.name")
    return {
        key: fact.value for key, fact in (("name", name), ("boot_id", boot)) if fact is not None
    }


def _work(
    probe: Probe, host: Host, target: Target | None, seen: dict[str, Fact], seconds: float
) -> Callable[[Callable[[bytes], None]], None]:
    """What the child of one probe does: look, and tell how it went."""

    def work(tell: Callable[[bytes], None]) -> None:
        def end(status: ProbeStatus, detail: str = "") -> None:
            tell(json.dumps(["end", status, detail]).encode())

        try:
            module = importlib.import_module(probe.module)
            module.look(Look(host, target, seen, tell, seconds))
        except NotHere as reason:
            end("absent", str(reason))
        except Skipped as reason:
            end("skipped", str(reason))
        except (PermissionError, Denied) as reason:
            end("denied", str(reason))
        except MemoryError:
            end("crashed", "memory exhausted")
        except Exception as problem:  # noqa: BLE001 - whatever it was, it costs this probe only
            end("failed", _told(problem))
        else:
            end("ok")

    return work


def _told(problem: Exception) -> str:
    """An unexpected error in one line, with the place, so that a report of it can be acted on."""
    trace = problem.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = ""
    if trace is not None:
        file = trace.tb_frame.f_code.co_filename.rsplit("/", 1)[-1]
        place = f" ({file}:{trace.tb_lineno})"
    return f"{type(problem).__name__}: {problem}{place}"[:300]


def _read(probe: Probe, outcome: Outcome) -> tuple[ProbeRun, dict[str, Fact]]:
    """The facts, gaps and end of one probe from what its child told."""
    facts: dict[str, Fact] = {}
    gaps: dict[str, str] = {}
    ended: tuple[ProbeStatus, str] | None = None
    for line in outcome.records.split(b"\n"):
        if not line:
            continue
        try:
            record: list[Any] = json.loads(line)
        except ValueError:  # the last line of a child that was killed while telling
            continue
        if record[0] == "fact":
            _, name, value, source, confidence = record
            facts[name] = Fact(name, value, source, confidence)
        elif record[0] == "gap":
            gaps[record[1]] = record[2]
        else:
            ended = (record[1], record[2])
    status = cast(ProbeStatus, outcome.status)
    detail = outcome.detail
    if outcome.status == "ok":
        status, detail = ended or ("crashed", "ended without an answer")
    return (
        ProbeRun(probe.name, status, detail, probe.provides, gaps, round(outcome.seconds, 4)),
        facts,
    )
