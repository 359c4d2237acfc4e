"""The JSON forms that scripts rely on: envaudit.report/1 and envaudit.diff/1."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from envaudit import __version__
from envaudit.check import told, undecided
from envaudit.model import Comparison, Evidence, Finding, Fix, Report, Snapshot, Source


def report(said: Report, *, everything: bool = False) -> str:
    """A report; passes, and rules that do not apply, only with `everything`."""
    shown = [f for f in said.findings if everything or told(f) or undecided(f)]
    return _dump(
        {
            "schema": "envaudit.report/1",
            "tool": {"name": "envaudit", "version": __version__},
            "matrices": {
                "version": said.matrices_version,
                "newest_source": said.matrices_newest_source,
                "stale_days": said.matrices_stale_days or None,
            },
            "verdict": said.verdict,
            "snapshot": _snapshot(said.snapshot),
            "findings": [finding(f) for f in shown],
            "facts_unknown": [
                {"probe": run.name, "status": run.status, "reason": run.detail or run.status}
                for run in said.snapshot.probes
                if run.status not in ("ok", "absent", "skipped")
            ]
            + [
                {"probe": run.name, "fact": name, "reason": reason}
                for run in said.snapshot.probes
                for name, reason in run.gaps.items()
            ],
            "seconds": said.seconds,
        }
    )


def comparison(said: Comparison) -> str:
    """A diff of two snapshots."""
    return _dump(
        {
            "schema": "envaudit.diff/1",
            "tool": {"name": "envaudit", "version": __version__},
            "old": _snapshot(said.old),
            "new": _snapshot(said.new),
            "changes": [
                {
                    "fact": change.fact,
                    "before": change.before,
                    "after": change.after,
                    "kind": change.kind,
                    "stability": change.stability,
                    "transaction": change.transaction,
                }
                for change in said.changes
            ],
            "suspects": [
                {
                    "rank": suspect.rank,
                    "fact": suspect.fact,
                    "cause": suspect.cause,
                    "confidence": suspect.confidence,
                    "explains": list(suspect.explains),
                    "why": suspect.why,
                    "fix": [_fix(f) for f in suspect.fix],
                    "sources": _sources(suspect.sources),
                }
                for suspect in said.suspects
            ],
            "findings": {
                "new": [finding(f) for f in said.appeared],
                "resolved": [finding(f) for f in said.resolved],
                "standing": [finding(f) for f in said.standing],
            },
            "measurements": [],
            "not_comparable": [
                {"fact": blind.fact, "side": blind.side, "reason": blind.reason}
                for blind in said.blinded
            ],
        }
    )


def finding(said: Finding) -> dict[str, Any]:
    """One finding as the contract has it."""
    data: dict[str, Any] = {
        "rule": said.rule,
        "cause": said.cause,
        "verdict": said.verdict,
        "severity": said.severity,
        "title": said.title,
        "why": said.why,
        "subject": said.subject,
        "evidence": [_evidence(e) for e in said.evidence],
        "missing": list(said.missing),
        "sources": _sources(said.sources),
        "fix": [_fix(f) for f in said.fix],
        "confidence": said.confidence,
    }
    if said.because_of is not None:
        data["because_of"] = said.because_of
    return data


def _evidence(said: Evidence) -> dict[str, Any]:
    return {"fact": said.fact, "value": said.value, "source": said.source}


def _sources(said: Sequence[Source]) -> list[dict[str, Any]]:
    return [{"title": source.title, "url": source.url} for source in said]


def _fix(said: Fix) -> dict[str, Any]:
    return {
        "text": said.text,
        "command": said.command,
        "needs_root": said.needs_root,
        "needs_reboot": said.needs_reboot,
    }


def _snapshot(said: Snapshot) -> dict[str, Any]:
    return {
        "id": said.id,
        "label": said.label,
        "taken_at": said.taken_at,
        "fingerprint": said.fingerprint,
        "host": dict(said.host),
        "target": dict(said.target),
    }


def _dump(data: dict[str, Any]) -> str:
    return json.dumps(data, indent=1, ensure_ascii=False) + "\n"
