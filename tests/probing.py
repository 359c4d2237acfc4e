"""Run one probe in this process against a small machine, for tests."""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from envaudit.facts import spec_of
from envaudit.host import Host
from envaudit.model import Fact, Value
from envaudit.probes import PROBES, Denied, Look, NotHere, Skipped
from envaudit.target import Target


@dataclass
class Told:
    """What a probe told: values, sources, gaps and how it ended."""

    facts: dict[str, Any] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    gaps: dict[str, str] = field(default_factory=dict)
    status: str = "ok"
    detail: str = ""


def probe(
    name: str,
    host: Host,
    *,
    target: Target | None = None,
    before: Mapping[str, Value] | None = None,
    seconds: float = 5.0,
) -> Told:
    """Run the probe `name` here; an unexpected exception is raised, so that a test sees it."""
    told = Told()

    def tell(record: bytes) -> None:
        kind, *rest = json.loads(record)
        if kind == "fact":
            told.facts[rest[0]] = rest[1]
            told.sources[rest[0]] = rest[2]
        else:
            told.gaps[rest[0]] = rest[1]

    seen = {key: Fact(key, value, "test") for key, value in (before or {}).items()}
    module = importlib.import_module(f"envaudit.probes.{name}")
    try:
        module.look(Look(host, target, seen, tell, seconds))
    except NotHere as reason:
        told.status, told.detail = "absent", str(reason)
    except Skipped as reason:
        told.status, told.detail = "skipped", str(reason)
    except (PermissionError, Denied) as reason:
        told.status, told.detail = "denied", str(reason)
    provides = next(row.provides for row in PROBES if row.name == name)
    from envaudit.model import covers

    for fact in told.facts:
        assert spec_of(fact) is not None, f"{fact} is not in the catalogue"
        assert any(covers(pattern, fact) for pattern in provides), f"{fact} is not provided"
    return told


def machine(
    folder: Path,
    files: Mapping[str, str | bytes] | None = None,
    links: Mapping[str, str] | None = None,
    **rest: Any,
) -> Host:
    """A recorded machine made of these files (absolute paths to contents) and links."""
    root = folder / "root"
    root.mkdir(parents=True, exist_ok=True)
    for path, content in (files or {}).items():
        place = root / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content.encode() if isinstance(content, str) else content)
    for path, to in (links or {}).items():
        place = root / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(to)
    (folder / "machine.json").write_text(json.dumps(rest))
    return Host.from_recording(str(folder))
