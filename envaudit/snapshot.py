"""The snapshot file: write, read, finish; the one place that knows its JSON form.

Schema `envaudit.snapshot/1`; a flat JSON object of fact names to plain values is read as well.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from typing import Any, get_args

from envaudit import facts as catalogue
from envaudit.errors import InputError
from envaudit.model import Fact, ProbeRun, ProbeStatus, Snapshot

SCHEMA_NAME = "envaudit.snapshot"
SCHEMA_NUMBER = 1
SIZE_LIMIT_BYTES = 16 << 20


def finish(snapshot: Snapshot) -> Snapshot:
    """Give a fresh snapshot its fingerprint and id."""
    mark = fingerprint(snapshot)
    content = json.dumps(
        [snapshot.taken_at, {n: f.value for n, f in snapshot.facts.items()}], sort_keys=True
    )
    stamp = "".join(c for c in snapshot.taken_at if c.isdigit())[:14]
    digest = hashlib.sha256(content.encode()).hexdigest()[:8]
    return replace(snapshot, fingerprint=mark, id=snapshot.id or f"{stamp}-{digest}")


def fingerprint(snapshot: Snapshot) -> str:
    """Hash over the static and configured facts that do not tell equal machines apart."""
    kept = {}
    for name, fact in snapshot.facts.items():
        spec = catalogue.spec_of(name)
        if spec is not None and spec.stability in ("static", "config") and not spec.identity:
            kept[name] = fact.value
    text = json.dumps(kept, sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def dump(snapshot: Snapshot) -> str:
    """The file's text: keys sorted, one final newline."""
    data: dict[str, Any] = {
        "schema": f"{SCHEMA_NAME}/{SCHEMA_NUMBER}",
        "id": snapshot.id,
        "label": snapshot.label,
        "taken_at": snapshot.taken_at,
        "fingerprint": snapshot.fingerprint,
        "tool": dict(snapshot.tool),
        "host": dict(snapshot.host),
        "target": dict(snapshot.target),
        "facts": {name: _fact(fact) for name, fact in snapshot.facts.items()},
        "probes": [
            {
                "name": run.name,
                "status": run.status,
                "detail": run.detail,
                "provides": list(run.provides),
                "gaps": dict(run.gaps),
                "seconds": run.seconds,
            }
            for run in snapshot.probes
        ],
        "transactions": [dict(transaction) for transaction in snapshot.transactions],
    }
    return json.dumps(data, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def _fact(fact: Fact) -> dict[str, Any]:
    data: dict[str, Any] = {"value": fact.value, "source": fact.source}
    if fact.confidence != "high":
        data["confidence"] = fact.confidence
    return data


def load(data: bytes, name: str) -> Snapshot:
    """A snapshot (or flat facts) from a file's bytes. Raises InputError with one clear line."""
    raise NotImplementedError


_STATUSES = get_args(ProbeStatus)
_ = (ProbeRun, InputError, _STATUSES)
