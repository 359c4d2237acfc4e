"""What a command judges instead of this machine: a stored snapshot, a file, a pasted report."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from envaudit.errors import InputError
from envaudit.model import GPUS_LIMIT, Fact, Snapshot
from envaudit.snapshot import SIZE_LIMIT_BYTES, finish, load, read_bytes

if TYPE_CHECKING:
    from envaudit.matrix import Matrices
    from envaudit.store import Store


_LOG = re.compile(r"(?i:\b(?:error|traceback|exception|warning|fatal|failed)\b)|[a-z]Error\b")


def read(reference: str, store: Store, matrices: Matrices) -> Snapshot:
    """The snapshot behind a reference: `-`, a path, or what the store knows by that name.

    Raises InputError for a file that cannot be understood, UsageError for an unknown name.
    """
    if reference == "-":
        return understand(read_bytes("-"), "standard input", matrices)
    path = store.resolve(reference)
    return understand(read_bytes(path), path, matrices)


def understand(data: bytes, name: str, matrices: Matrices) -> Snapshot:
    """A snapshot, flat facts or a report of other tools, from the bytes of a file."""
    text = _text(data, name)
    if text.lstrip("\ufeff \t\r\n")[:1] in ("{", "[") and not _is_export(text):
        try:
            return _bounded(load(text.encode("utf-8", "replace"), name), name)
        except InputError as problem:
            if '"facts"' in text[:200]:  # a snapshot of ours that was cut is no report
                raise
            try:  # a report may begin with [pip3]
                return _report(text, name, matrices)
            except InputError:
                raise problem from None
    return _report(text, name, matrices)


def _is_export(text: str) -> bool:
    """Whether a JSON document is one that another tool writes about a machine."""
    if '"envaudit.' in text:
        return False
    from envaudit.importers import Section, exports

    return exports.recognises(Section(text))


def log(path: str, matrices: Matrices) -> Snapshot:
    """What a log (a traceback, dmesg, a journal) says. Raises InputError.

    Where nothing in it is known, the log says nothing: that is no error.
    """
    from envaudit.report import read as read_report

    name = "standard input" if path == "-" else path
    reading = read_report(_text(read_bytes(path), name), name, matrices.signatures_for)
    return finish(Snapshot(id="", taken_at="", facts=reading.facts, probes=reading.probes))


def _text(data: bytes, name: str) -> str:
    """The text of a file, whatever wrote it. Raises InputError for an empty or a huge one."""
    if not data.strip(b"\xef\xbb\xbf \t\r\n\0"):
        raise InputError(f"{name}: empty", "Give a snapshot, flat facts or a pasted report.")
    if len(data) > SIZE_LIMIT_BYTES:
        raise InputError(f"{name}: larger than {SIZE_LIMIT_BYTES >> 20} MiB")
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):  # PowerShell's > writes UTF-16
        return data.decode("utf-16", "replace")
    return data.decode("utf-8-sig", "replace")


def _bounded(snapshot: Snapshot, name: str) -> Snapshot:
    """Refuse what no machine is, since every rule looks at every GPU. Raises InputError."""
    count = len(snapshot.instances("gpu.*"))
    if count > GPUS_LIMIT:
        raise InputError(f"{name}: tells of {count} GPUs, more than any one machine has")
    return snapshot


def _report(text: str, name: str, matrices: Matrices) -> Snapshot:
    """What the importers and the signatures of error texts read out of a report."""
    from envaudit.report import read as read_report

    reading = read_report(text, name, matrices.signatures_for)
    if reading.titles or _LOG.search(text):  # a log in which nothing is known is still one
        found = Snapshot(id="", taken_at="", facts=reading.facts, probes=reading.probes)
        return _bounded(finish(found), name)
    raise InputError(
        f"{name}: neither a snapshot nor a report in which envaudit knows anything",
        "It reads snapshots, flat facts (a JSON object), outputs of nvidia-smi, collect_env, pip "
        "and others (docs/reports.md has the list), and error texts of GPU programs.",
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
