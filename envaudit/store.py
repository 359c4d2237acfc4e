"""Where snapshots live: one folder with one file a snapshot, and the ways to name one of them.

Reading never writes, so that a read-only store can be read. Writing is one new file at a time,
whole or not at all: written under a hidden name, synced, then linked to its place. A lock keeps
writers apart; where the file system has none (some network and FUSE mounts) a write goes on
without it, since no step of it can harm another writer's file.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import secrets
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from envaudit.errors import InputError, StoreError, UsageError
from envaudit.model import Snapshot
from envaudit.snapshot import NAME_LIMIT, dump, encode, is_utc_time, load, read_bytes

LOCK_WAIT_S = 5.0
"""How long a writer waits for another; a write takes milliseconds."""
STALE_AFTER_S = 3600.0
"""Age from which an unfinished file is nobody's, where there is no lock to tell."""

_STAMPED = r"(\d{8}T\d{6}Z)-[0-9A-Za-z]{8}(?:-\d+)?\.json"
_UNFINISHED = r"\.new-\d+-[0-9a-f]{16}"


@dataclass(frozen=True, slots=True)
class Entry:
    """One file of the store."""

    path: str
    taken_at: str
    """When it was taken; of a damaged file, what its name says of that."""
    snapshot: Snapshot | None
    """None: the file is damaged, or made by a newer envaudit."""
    problem: str = ""
    """Why there is no snapshot."""


def default_folder(env: Mapping[str, str]) -> str:
    """The folder that is used where none is named. Raises StoreError where there is none.

    /var/lib/envaudit for root, else $XDG_STATE_HOME/envaudit, else ~/.local/state/envaudit.
    """
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        return "/var/lib/envaudit"
    state = env.get("XDG_STATE_HOME", "")
    if os.path.isabs(state):  # the standard says to ignore a relative one
        return os.path.join(state, "envaudit")
    home = env.get("HOME", "")
    if not os.path.isabs(home):
        raise StoreError(
            "no place for snapshots: HOME is not set",
            "Name a folder with --store DIR, or set HOME or XDG_STATE_HOME.",
        )
    return os.path.join(home, ".local", "state", "envaudit")


class Store:
    """A folder of snapshots. Nothing is looked at or made before it is needed."""

    def __init__(
        self,
        folder: str | None = None,
        *,
        env: Mapping[str, str] | None = None,
        lock_wait: float = LOCK_WAIT_S,
    ) -> None:
        self._folder = folder
        self._env = os.environ if env is None else env
        self._lock_wait = lock_wait

    @property
    def folder(self) -> str:
        """Where it lies. Raises StoreError where no folder was named and none can be found."""
        if self._folder is None:
            self._folder = default_folder(self._env)
        return self._folder

    # -- reading -------------------------------------------------------------------------

    def entries(self) -> Iterator[Entry]:
        """Every file of the store, newest first, each read when it is asked for.

        The order is that of the times in the file names, and of writing within one second. A
        damaged file is an entry with its problem and hides nobody else's.
        """
        for path, stamp in self._newest_first():
            entry = _entry(path, stamp)
            if entry is not None:
                yield entry

    def _newest_first(self) -> list[tuple[str, str]]:
        """Paths and what their names say of the time, without opening a file that says it."""
        try:
            names = os.listdir(self.folder)
        except FileNotFoundError:
            return []
        except OSError as problem:
            raise StoreError(
                f"{self.folder}: {_reason(problem)}: the stored snapshots cannot be read",
                "Name another folder with --store DIR.",
            ) from problem
        found = []
        for name in names:
            if name.startswith(".") or not name.endswith(".json"):
                continue
            path = os.path.join(self.folder, name)
            stamped = re.fullmatch(_STAMPED, name, re.ASCII)
            stamp = stamped[1] if stamped else ""
            if not stamp:  # brought here by hand
                entry = _entry(path, "")
                stamp = _stamp(entry.taken_at) if entry is not None else ""
            try:
                written = os.stat(path).st_mtime_ns
            except OSError:
                written = 0
            found.append((stamp, written, name, path))
        return [(path, stamp) for stamp, _, _, path in sorted(found, reverse=True)]

    def resolve(self, reference: str) -> str:
        """The path behind a snapshot reference. Raises UsageError where there is none.

        In this order: "-" and an existing file of that name (always taken for one when it has
        a "/"); a label, of which the newest bearer counts; @1 for the newest stored snapshot,
        @2 for the one before; a date or time such as 2026-11-30, 2026-11-30T14 or
        2026-11-30T14:15 (UTC), for the newest taken within it; an id, the part of it after the
        "-", or the beginning of either where it means one snapshot only.

        Damaged files are passed over. `now` is not a stored snapshot but a new look.
        """
        if reference == "-" or "/" in reference or os.path.isfile(reference):
            return reference
        if reference.startswith("@"):
            return self._numbered(reference)
        dated = _date_prefix(reference)
        identified: dict[str, str] = {}
        in_time = ""
        for entry in self.entries():
            snapshot = entry.snapshot
            if snapshot is None:
                continue
            if snapshot.label == reference:
                return entry.path
            if dated and not in_time and entry.taken_at.startswith(dated):
                in_time = entry.path
            if _identifies(reference, snapshot.id):
                identified.setdefault(snapshot.id, entry.path)
        if in_time:
            return in_time
        if len(identified) == 1 or reference in identified:
            return identified.get(reference) or next(iter(identified.values()))
        if identified:
            raise UsageError(
                f"{_shown(reference)}: the beginning of {len(identified)} ids",
                f"Give more of it: {', '.join(list(identified)[:3])}.",
            )
        raise self._unknown(reference, dated)

    def _numbered(self, reference: str) -> str:
        digits = reference[1:]
        if not re.fullmatch("[1-9][0-9]{0,8}", digits):
            raise UsageError(
                f"{_shown(reference)}: no snapshot reference",
                "@1 is the newest stored snapshot, @2 the one before it.",
            )
        left = int(digits)
        for entry in self.entries():
            left -= entry.snapshot is not None
            if not left:
                return entry.path
        raise self._unknown(reference, "")

    def _unknown(self, reference: str, dated: str) -> UsageError:
        good = [entry for entry in self.entries() if entry.snapshot is not None]
        if not good:
            return UsageError(
                f"{_shown(reference)}: no such file, and there are no snapshots in {self.folder}",
                "envaudit snapshot keeps one.",
            )
        if dated:
            earlier = next((e for e in good if e.taken_at < dated), None)
            message = f"{_shown(reference)}: no snapshot was taken then (UTC)"
            if earlier is not None:
                message += f"; the newest before it is of {earlier.taken_at}"
        else:
            message = f"{_shown(reference)}: no such file, and no snapshot is called so"
        labels = dict.fromkeys(e.snapshot.label for e in good if e.snapshot and e.snapshot.label)
        hint = "There is " + ", ".join(
            f"@{number} {entry.snapshot.id} of {entry.taken_at}"
            for number, entry in enumerate(good[:3], 1)
            if entry.snapshot is not None
        )
        if labels:
            hint += f"; labels: {', '.join(list(labels)[:20])}"
        return UsageError(message, hint + ".")

    # -- writing -------------------------------------------------------------------------

    def save(self, snapshot: Snapshot) -> str:
        """Keep a snapshot and return the path of its file; another file is never replaced.

        Raises StoreError where it cannot be kept; the store is then as it was.
        """
        if snapshot.label is not None:
            check_label(snapshot.label)
        data = dump(snapshot).encode()
        try:
            load(data, snapshot.id)  # what is kept can be read again
        except InputError as problem:
            raise StoreError(f"this snapshot cannot be kept: {problem.message}") from problem
        if not snapshot.taken_at:
            raise StoreError(
                "this snapshot cannot be kept: nothing says when it was taken",
                "Only a look at a machine is kept; give the file itself to compare with it.",
            )
        tail = snapshot.id[-8:]
        if not re.fullmatch("[0-9A-Za-z]{8}", tail):
            tail = f"{sum(snapshot.id.encode()) & 0xFFFFFFFF:08x}"
        base = f"{_stamp(snapshot.taken_at)}-{tail}"
        with self._writing() as write:
            return write(base, data)
