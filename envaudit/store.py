"""Where snapshots live: one folder with one file a snapshot, and the ways to name one of them.

Reading never writes, so a read-only store can be read. Writing is one file at a time, whole or
not at all: written under a hidden name, synced, then linked to its place. A lock keeps writers
apart; where the file system has none (some network and FUSE mounts) writing goes on without it,
since a new file is never linked over another, and the worst that can happen is that of two
labels given to one snapshot at the same moment one is lost.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import sys
import time
import zlib
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from envaudit.errors import InputError, StoreError, UsageError
from envaudit.model import Snapshot
from envaudit.snapshot import NAME_LIMIT, dump, encode, load, read_bytes, read_file

LOCK_WAIT_S = 5.0
"""How long a writer waits for another; a write takes milliseconds."""
STALE_AFTER_S = 3600.0
"""Age from which an unfinished file is nobody's, where no lock can tell."""

_STAMPED = r"(\d{8}T\d{6}Z)-[0-9A-Za-z]{8}(?:-\d+)?\.json"
_DATE = r"\d{4}-\d\d(?:-\d\d(?:[T ]\d\d(?::\d\d(?::\d\d)?)?)?)?(?:\.\d+)?Z?"


class Entry(NamedTuple):
    """One file of the store."""

    path: str
    taken_at: str
    """Of a damaged file: what its name says."""
    snapshot: Snapshot | None
    """None where it cannot be read: damaged, not permitted, made by a newer envaudit."""
    problem: str = ""
    """Why not."""


def default_folder(env: Mapping[str, str]) -> str:
    """The folder where none is named. Raises StoreError where there is no place for one.

    /var/lib/envaudit for root, else $XDG_STATE_HOME/envaudit, else ~/.local/state/envaudit.
    """
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        return "/var/lib/envaudit"
    state = env.get("XDG_STATE_HOME", "")
    if os.path.isabs(state):  # its standard says to ignore a relative one
        return os.path.join(state, "envaudit")
    home = env.get("HOME", "")
    if not os.path.isabs(home):
        raise StoreError(
            "no place for snapshots: HOME is not set",
            "Name a folder with --store DIR, or set HOME or XDG_STATE_HOME.",
        )
    return os.path.join(home, ".local", "state", "envaudit")


def check_label(label: str) -> None:
    """Refuse a label that could not be used as a reference afterwards. Raises UsageError."""
    if not label.strip() or label != label.strip() or not label.isprintable():
        problem = "a label is one line of text without blanks at its ends"
    elif len(label) > NAME_LIMIT:
        problem = f"a label has at most {NAME_LIMIT} characters"
    elif label in ("-", "now") or label.startswith("@") or "/" in label or _date(label):
        problem = "a label is no path, date, @number, - or now: these mean something else"
    else:
        return
    raise UsageError(f"label {label[:60]!a}: {problem}")


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
        """Where it lies. Raises StoreError where none was named and there is no default."""
        if self._folder is None:
            self._folder = default_folder(self._env)
        return self._folder

    # -- reading -------------------------------------------------------------------------

    def entries(self) -> Iterator[Entry]:
        """Every file of the store, newest first, each read only when it is asked for.

        Ordered by time taken, within one second by time written. A damaged file is an entry
        with its problem and hides no other.
        """
        for path, stamp in self._newest_first():
            entry = _entry(path, stamp)
            if entry is not None:
                yield entry

    def _newest_first(self) -> list[tuple[str, str]]:
        """Paths with their times; a file is opened only where its name does not say the time."""
        try:
            names = os.listdir(self.folder)
        except FileNotFoundError:
            return []
        except OSError as problem:
            raise StoreError(
                f"{self.folder}: {problem.strerror}: the stored snapshots cannot be read",
                "Name another folder with --store DIR.",
            ) from problem
        found = []
        for name in names:
            if name.startswith(".") or not name.endswith(".json"):
                continue
            path = os.path.join(self.folder, name)
            named = re.fullmatch(_STAMPED, name, re.ASCII)
            if named:
                stamp = named[1]
            else:  # brought here by hand
                entry = _entry(path, "")
                stamp = _stamp(entry.taken_at) if entry is not None else ""
            try:
                written = os.stat(path).st_mtime_ns
            except OSError:
                written = 0
            found.append((stamp, written, name, path))
        return [(path, stamp) for stamp, _, _, path in sorted(found, reverse=True)]

    def read(self, reference: str) -> Snapshot:
        """The snapshot behind a reference. Raises UsageError and InputError."""
        return read_file(self.resolve(reference))

    def resolve(self, reference: str) -> str:
        """The path behind a snapshot reference. Raises UsageError where nothing is called so.

        A reference is, in this order: "-"; a path (anything with a "/", else a file that is
        there, here or in the store); @1 for the newest stored snapshot, @2 for the one before;
        a date or time in UTC such as 2026-11-30, 2026-11-30T14 or 2026-11-30T14:15, for the
        newest snapshot taken within it; a label, for the newest that bears it; an id, or at
        least four characters from the beginning of it or of the part after its "-", where they
        mean one snapshot only. `now` is a new look, and for the caller to take.

        Damaged files are passed over.
        """
        if reference == "-" or "/" in reference or _is_file(reference):
            return reference
        inside = os.path.join(self.folder, reference)
        if reference.endswith(".json") and not reference.startswith(".") and _is_file(inside):
            return inside
        if reference.startswith("@"):
            return self._numbered(reference)
        date = _date(reference)
        if date:
            return self._dated(reference, date)
        identified: dict[str, str] = {}
        for path, snapshot in self._readable():
            if snapshot.label == reference:
                return path
            if _identifies(reference, snapshot.id):
                identified.setdefault(snapshot.id, path)
        if reference in identified:
            return identified[reference]
        if len(identified) == 1:
            return next(iter(identified.values()))
        if identified:
            raise UsageError(
                f"{_shown(reference)}: {len(identified)} stored snapshots are called so",
                f"Give more of the id: {', '.join(list(identified)[:3])}.",
            )
        there = "a folder" if os.path.isdir(reference) else "no such file"
        raise self._unknown(f"{_shown(reference)}: {there}, and no stored snapshot is called so")

    def _readable(self) -> Iterator[tuple[str, Snapshot]]:
        for entry in self.entries():
            if entry.snapshot is not None:
                yield entry.path, entry.snapshot

    def _numbered(self, reference: str) -> str:
        if not re.fullmatch("@[1-9][0-9]{0,8}", reference):
            raise UsageError(
                f"{_shown(reference)}: no snapshot reference",
                "@1 is the newest stored snapshot, @2 the one before it.",
            )
        for number, (path, _) in enumerate(self._readable(), 1):
            if number == int(reference[1:]):
                return path
        raise self._unknown(f"{reference}: there are not so many stored snapshots")

    def _dated(self, reference: str, date: str) -> str:
        earlier = ""
        for path, stamp in self._newest_first():
            if stamp.startswith(date) or ("" < stamp < date and not earlier):
                entry = _entry(path, stamp)
                if entry is not None and entry.snapshot is not None:
                    if stamp.startswith(date):
                        return path
                    earlier = f"; the last one before is of {entry.taken_at}"
        raise self._unknown(f"{reference}: no stored snapshot was taken then (UTC){earlier}")

    def _unknown(self, message: str) -> UsageError:
        """An unknown reference, with what there is instead."""
        there = []
        labels: dict[str, None] = {}
        for number, (_, snapshot) in enumerate(self._readable(), 1):
            if number <= 3:
                there.append(f"@{number} {snapshot.id}, taken {snapshot.taken_at or 'some time'}")
            if snapshot.label and len(labels) < 20:
                labels[snapshot.label] = None
        if not there:
            return UsageError(message, f"{self.folder} is empty: envaudit snapshot keeps one.")
        hint = f"There is {'; '.join(there)}"
        return UsageError(message, f"{hint}; labels: {', '.join(labels)}" if labels else hint)

    # -- writing -------------------------------------------------------------------------

    def save(self, snapshot: Snapshot) -> str:
        """Keep a snapshot and return the path of its file; no other file is replaced.

        Raises StoreError where it cannot be kept, and the store is as it was.
        """
        if snapshot.label is not None:
            check_label(snapshot.label)
        if not snapshot.taken_at:
            raise StoreError("a snapshot that does not say when it was taken cannot be kept")
        data = dump(snapshot).encode()
        try:
            load(data, "this snapshot cannot be kept")  # what is kept can be read again
        except InputError as problem:
            raise StoreError(problem.message) from problem
        tail = snapshot.id[-8:]
        if not re.fullmatch("[0-9A-Za-z]{8}", tail):
            tail = f"{zlib.crc32(snapshot.id.encode()):08x}"
        with self._locked():
            return self._write(data, f"{_stamp(snapshot.taken_at)}-{tail}")

    def label(self, reference: str, label: str | None) -> str:
        """Give a stored snapshot a label, or take it away; returns the path."""
        if label is not None:
            check_label(label)
        with self._locked():
            path = self.resolve(reference)
            if os.path.realpath(os.path.dirname(path) or ".") != os.path.realpath(self.folder):
                raise UsageError(f"{_shown(reference)}: not in the store {self.folder}")
            data = read_bytes(path)
            load(data, path)
            # What a later release may have added to the file stays in it.
            document = {**json.loads(data), "label": label}
            self._write(encode(document).encode(), path, replacing=True)
            return path

    def prune(
        self, *, keep: int | None = None, older_than: float | None = None, labelled: bool = False
    ) -> list[str]:
        """Remove old snapshots and return the paths of those removed.

        Only what `save` made is removed: never the `keep` newest, and nothing taken within the
        last `older_than` seconds; with both, what neither protects. Snapshots with a label stay
        and do not count unless `labelled` is set. What cannot be read stays: it may be the file
        of a newer envaudit.
        """
        if keep is None and older_than is None:
            raise UsageError("nothing says what to remove", "Give --keep or --older-than.")
        if (keep or 0) < 0 or (older_than or 0) < 0:
            raise UsageError("neither the number to keep nor the age can be negative")
        if not os.path.isdir(self.folder):
            return []
        oldest = max(0.0, time.time() - (older_than or 0.0))
        since = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(oldest))
        removed = []
        with self._locked():
            counted = 0
            for path, snapshot in self._readable():
                named = re.fullmatch(_STAMPED, os.path.basename(path), re.ASCII)
                if not named or (snapshot.label and not labelled):
                    continue
                counted += 1
                if counted <= (keep or 0) or (older_than is not None and named[1] >= since):
                    continue
                try:
                    os.unlink(path)
                except FileNotFoundError:  # somebody else was quicker
                    continue
                except OSError as problem:
                    raise self._cannot_write(problem) from problem
                removed.append(path)
            if removed:
                _sync_folder(self.folder)
        return removed

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Be the only writer, and remove what writers that died have left."""
        try:
            _make_folder(self.folder)
            lock = os.open(
                os.path.join(self.folder, ".lock"), os.O_RDWR | os.O_CREAT | _NOFOLLOW, 0o600
            )
        except OSError as problem:
            raise self._cannot_write(problem) from problem
        try:
            self._sweep(alone=self._wait_for(lock))
            yield
        finally:
            os.close(lock)  # no child of ours is forked while it is held, so this unlocks

    def _wait_for(self, lock: int) -> bool:
        """Take the lock; False where the file system (or platform) has none."""
        until = time.monotonic() + self._lock_wait
        while True:
            taken = _try_lock(lock)
            if taken is not None:
                return taken
            if time.monotonic() >= until:
                raise StoreError(
                    f"{self.folder}: another envaudit has been writing there for "
                    f"{self._lock_wait:g} s",
                    "Try again when it has ended.",
                )
            time.sleep(0.01)

    def _sweep(self, *, alone: bool) -> None:
        # A lock speaks for the processes of this host only: some network mounts keep it local.
        ours = _unfinished_prefix()
        with contextlib.suppress(OSError):
            for name in os.listdir(self.folder):
                if not name.startswith(".new-"):
                    continue
                path = os.path.join(self.folder, name)
                with contextlib.suppress(OSError):
                    age = time.time() - os.lstat(path).st_mtime
                    if (alone and name.startswith(ours)) or age > STALE_AFTER_S:
                        os.unlink(path)

    def _write(self, data: bytes, target: str, *, replacing: bool = False) -> str:
        """Write a file whole or not at all: a new one named after `target`, or `target` anew."""
        unfinished = os.path.join(self.folder, f"{_unfinished_prefix()}{os.urandom(8).hex()}")
        path = ""
        try:
            fd = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NOFOLLOW, 0o600)
            try:
                rest = memoryview(data)
                while rest:
                    rest = rest[os.write(fd, rest) :]
                os.fsync(fd)
            finally:
                os.close(fd)
            if replacing:
                before = os.stat(target)
                os.utime(unfinished, ns=(before.st_atime_ns, before.st_mtime_ns))
                os.replace(unfinished, target)
                _sync_folder(self.folder)
                return target
            path = _link(unfinished, os.path.join(self.folder, target))
            _sync_folder(self.folder)
            return path
        except OSError as problem:
            if path:
                with contextlib.suppress(OSError):
                    os.unlink(path)
            raise self._cannot_write(problem) from problem
        finally:
            with contextlib.suppress(OSError):
                os.unlink(unfinished)

    def _cannot_write(self, problem: OSError) -> StoreError:
        hint = "Name another folder with --store DIR."
        if problem.errno in (errno.ENOSPC, errno.EDQUOT):
            hint = "Free some space there, or name another folder with --store DIR."
        return StoreError(f"{self.folder}: {problem.strerror}: nothing was changed there", hint)


def _try_lock(lock: int) -> bool | None:
    """True: taken. None: somebody else has it. False: there are no locks here."""
    if sys.platform == "win32":
        return False
    import fcntl

    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return None
    except OSError:
        return False
    return True


_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)


def _unfinished_prefix() -> str:
    node = os.uname().nodename if hasattr(os, "uname") else ""
    return f".new-{zlib.crc32(node.encode()):08x}-"


def _make_folder(folder: str) -> None:
    if os.path.isdir(folder):
        return
    above = os.path.dirname(os.path.abspath(folder))
    try:
        os.makedirs(above, exist_ok=True)
        os.mkdir(folder, 0o700)
    except FileExistsError:
        if not os.path.isdir(folder):  # else another writer made it just now
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR)) from None
    else:
        _sync_folder(above)


def _sync_folder(folder: str) -> None:
    """Make a new name in a folder last; not every file system can, and then it need not."""
    try:
        fd = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
    except OSError as problem:
        if problem.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO):
            raise


def _link(unfinished: str, target: str) -> str:
    """Give a written file its name, or the next free one like it; never over another file."""
    number = 1
    while True:
        path = f"{target}.json" if number == 1 else f"{target}-{number}.json"
        number += 1
        try:
            os.link(unfinished, path)
        except FileExistsError:
            continue
        except OSError as problem:
            if problem.errno not in _NO_LINKS:
                raise
            if os.path.lexists(path):
                continue
            os.rename(unfinished, path)
        return path


_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)
"""What a file system says that has no hard links, such as FAT."""


def _entry(path: str, stamp: str) -> Entry | None:
    """A file of the store; None where it has gone in the meantime."""
    try:
        snapshot = read_file(path)
    except InputError as problem:
        if isinstance(problem.__cause__, FileNotFoundError):
            return None
        named = re.fullmatch(r"(....)(..)(..)T(..)(..)(..)Z", stamp)
        taken_at = "{}-{}-{}T{}:{}:{}Z".format(*named.groups()) if named else ""
        return Entry(path, taken_at, None, problem.message.removeprefix(f"{path}: "))
    return Entry(path, snapshot.taken_at, snapshot)


def _stamp(taken_at: str) -> str:
    """2026-11-30T14:15:00Z as a file name has it: 20261130T141500Z."""
    return f"{taken_at[:19].replace('-', '').replace(':', '')}Z" if taken_at else ""


def _date(reference: str) -> str:
    """The beginning of a stamp that a date or time stands for; empty where it is none."""
    if not re.fullmatch(_DATE, reference, re.ASCII):
        return ""
    return re.sub("[-:]", "", reference.rstrip("Z").partition(".")[0]).replace(" ", "T")


def _identifies(reference: str, identity: str) -> bool:
    if len(reference) < 4:
        return reference == identity
    return identity.startswith(reference) or identity.rpartition("-")[2].startswith(reference)


def _is_file(path: str) -> bool:
    return os.path.lexists(path) and not os.path.isdir(path)


def _shown(reference: str) -> str:
    return reference if reference.isprintable() and len(reference) <= 100 else f"{reference[:60]!a}"
