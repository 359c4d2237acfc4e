"""What a command judges instead of this machine: a stored snapshot, a file, a pasted report."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from envaudit.errors import InputError
from envaudit.model import GPUS_LIMIT, Fact, ProbeRun, Snapshot
from envaudit.snapshot import SIZE_LIMIT_BYTES, finish, load, read_bytes

if TYPE_CHECKING:
    from envaudit.store import Store


def read(reference: str, store: Store) -> Snapshot:
    """The snapshot behind a reference: `-`, a path, or what the store knows by that name.

    Raises InputError for a file that cannot be understood, UsageError for an unknown name.
    """
    if reference == "-":
        return understand(read_bytes("-"), "standard input")
    path = store.resolve(reference)
    return understand(read_bytes(path), path)


def understand(data: bytes, name: str) -> Snapshot:
    """A snapshot, flat facts or a report of another tool, from the bytes of a file."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):  # PowerShell's > writes UTF-16
        data = data.decode("utf-16", "replace").encode("utf-8", "replace")
    if data.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"["):
        return _bounded(load(data, name), name)
    if not data.strip():
        raise InputError(f"{name}: empty", "Give a snapshot, flat facts or a pasted report.")
    if len(data) > SIZE_LIMIT_BYTES:
        raise InputError(f"{name}: larger than {SIZE_LIMIT_BYTES >> 20} MiB")
    return _report(data.decode("utf-8", "replace"), name)


def _bounded(snapshot: Snapshot, name: str) -> Snapshot:
    """Refuse what no machine is, since every rule looks at every GPU. Raises InputError."""
    count = len(snapshot.instances("gpu.*"))
    if count > GPUS_LIMIT:
        raise InputError(f"{name}: tells of {count} GPUs, more than any one machine has")
    return snapshot


def _report(text: str, name: str) -> Snapshot:
    """What the first importer that knows the text reads out of it."""
    from envaudit.importers import IMPORTERS

    for importer in IMPORTERS:
        module = importer.load()
        if not module.recognises(text):
            continue
        imported = module.parse(text)
        facts = {fact.name: fact for fact in imported.facts}
        rest = re.sub(importer.reads, "", text, flags=re.MULTILINE)
        unread = sum(bool(line.strip()) for line in rest.splitlines())
        if unread:
            told = f"{unread} line{'s' if unread > 1 else ''} besides {importer.title}"
            facts["report.unread"] = Fact("report.unread", told, name)
        if imported.cut:
            facts["report.cut"] = Fact("report.cut", imported.cut, name)
        run = ProbeRun(
            f"import:{importer.name}",
            "ok",
            detail="; ".join(imported.notes),
            provides=importer.provides,
            gaps=imported.gaps,
        )
        return _bounded(finish(Snapshot(id="", taken_at="", facts=facts, probes=(run,))), name)
    raise InputError(
        f"{name}: neither a snapshot nor a report that envaudit can read",
        "It reads snapshots, flat facts (a JSON object) and: "
        + ", ".join(importer.title for importer in IMPORTERS)
        + ".",
    )


def merge(parts: Sequence[Snapshot]) -> Snapshot:
    """Several parts of one picture as one: what an earlier part says wins over a later one."""
    if len(parts) == 1:
        return parts[0]
    facts: dict[str, Fact] = {}
    for part in parts:
        for name, fact in part.facts.items():
            facts.setdefault(name, fact)
    probes = tuple(run for part in parts for run in part.probes)
    return finish(parts[0]._replace(id="", facts=facts, probes=probes))
