"""The store: whole files or none, every writer served, every snapshot found by its names."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import json
import os
import random
import resource
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from envaudit import store as stores
from envaudit.errors import EnvauditError, InputError, StoreError, UsageError
from envaudit.model import Fact, ProbeRun, Snapshot
from envaudit.snapshot import dump, finish, read_file
from envaudit.store import LOCK_WAIT_S, STALE_AFTER_S, Store, check_label, default_folder


def look(
    taken_at: str = "2026-11-30T14:15:00Z",
    label: str | None = None,
    size: int = 3,
    **facts: Any,
) -> Snapshot:
    told = {f"pkg.p{n}.version": Fact(f"pkg.p{n}.version", f"1.{n}", "dpkg") for n in range(size)}
    told |= {name: Fact(name, value, "test") for name, value in facts.items()}
    runs = (ProbeRun("packages", "ok", provides=("pkg.*",)),)
    return finish(Snapshot("", taken_at, told, runs, label=label))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(str(tmp_path / "state" / "store"))


def files(store: Store) -> list[str]:
    return sorted(os.listdir(store.folder)) if os.path.isdir(store.folder) else []


def kept(store: Store) -> list[str]:
    return [name for name in files(store) if not name.startswith(".")]


def unfinished(store: Store) -> list[str]:
    return [name for name in files(store) if name.startswith(".new-")]


def ids(store: Store) -> list[str]:
    return [entry.snapshot.id if entry.snapshot else entry.problem for entry in store.entries()]


def in_child(work: Callable[[], Any]) -> Any:
    """What `work` returns in a forked child, or the message of the error that it ends with."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            try:
                answer = work()
            except EnvauditError as problem:
                answer = problem.message
            os.write(writing, json.dumps(answer).encode())
        except BaseException as problem:  # noqa: BLE001 - a child must not go on as the test
            os.write(writing, json.dumps(repr(problem)).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with open(reading, "rb") as file:
        answer = json.loads(file.read())
    os.waitpid(pid, 0)
    return answer


def as_nobody(folder: Path, work: Callable[[], Any]) -> Any:
    """The same in `folder`, as a user whom file permissions bind."""
    folder.chmod(0o755)

    def bound() -> Any:
        os.chdir(folder)
        if os.geteuid() == 0:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
        return work()

    return in_child(bound)


# -- keeping ---------------------------------------------------------------------------------


def test_a_snapshot_is_kept_and_found_again(store: Store) -> None:
    snapshot = look(label="before driver upgrade")
    path = store.save(snapshot)
    assert os.path.basename(path) == f"20261130T141500Z-{snapshot.id[-8:]}.json"
    assert read_file(path) == snapshot
    assert Path(path).read_text("utf-8") == dump(snapshot)
    assert [entry.snapshot for entry in store.entries()] == [snapshot]
    assert unfinished(store) == []


def test_only_the_owner_can_read_it(store: Store) -> None:
    mask = os.umask(0)
    try:
        path = store.save(look())
    finally:
        os.umask(mask)
    assert os.stat(store.folder).st_mode & 0o777 == 0o700
    assert os.stat(path).st_mode & 0o777 == 0o600
    assert os.stat(os.path.join(store.folder, ".lock")).st_mode & 0o777 == 0o600


def test_no_file_is_replaced(store: Store) -> None:
    snapshot = look()
    paths = [store.save(snapshot) for _ in range(3)]
    stem = f"20261130T141500Z-{snapshot.id[-8:]}"
    assert [os.path.basename(p) for p in paths] == [
        f"{stem}.json",
        f"{stem}-2.json",
        f"{stem}-3.json",
    ]


def test_an_id_from_elsewhere_is_no_path(store: Store) -> None:
    path = store.save(Snapshot("../../x/../etc/a", "2026-11-30T14:15:00Z", {}, ()))
    assert os.path.dirname(path) == store.folder
    assert len(ids(store)) == 1


def test_what_could_not_be_read_again_is_not_kept(store: Store) -> None:
    bad = Snapshot("a", "2026-11-30T14:15:00Z", {"a.b": Fact("a.b", "x" * 300_000, "s")}, ())
    with pytest.raises(StoreError, match=r"cannot be kept: facts\.a\.b: a text of 300,000"):
        store.save(bad)
    with pytest.raises(StoreError, match="does not say when"):
        store.save(Snapshot("a", "", {}, ()))
    assert files(store) == []


def test_a_full_store_path_may_be_a_link(store: Store, tmp_path: Path) -> None:
    store.save(look())
    (tmp_path / "link").symlink_to(store.folder)
    other = Store(str(tmp_path / "link"))
    other.save(look("2026-12-01T00:00:00Z"))
    assert ids(other) == ids(store)


# -- where it lies ---------------------------------------------------------------------------


def test_the_default_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert default_folder({"HOME": "/home/a"}) == "/var/lib/envaudit"
    assert default_folder({}) == "/var/lib/envaudit"
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert default_folder({"HOME": "/home/a"}) == "/home/a/.local/state/envaudit"
    assert default_folder({"HOME": "/home/a", "XDG_STATE_HOME": "/s"}) == "/s/envaudit"
    assert default_folder({"HOME": "/home/a", "XDG_STATE_HOME": "s"}).startswith("/home/a/")


@pytest.mark.parametrize("env", [{}, {"HOME": ""}, {"HOME": "relative"}])
def test_without_a_home_the_way_out_is_told(
    env: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    store = Store(env=env)
    with pytest.raises(StoreError, match="HOME is not set") as told:
        store.save(look())
    assert "--store DIR" in told.value.hint
    assert store.resolve("some/file.json") == "some/file.json"  # needs no store


def test_a_home_that_cannot_be_written_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "home").mkdir(mode=0o555)

    def work() -> str:
        return Store("home/.local/state/envaudit").save(look())

    assert as_nobody(tmp_path, work) == (
        "home/.local/state/envaudit: Permission denied: nothing was changed there"
    )


def test_a_file_in_place_of_the_folder_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "file" / "store"):
        store = Store(str(folder))
        with pytest.raises(StoreError, match="Not a directory") as told:
            store.save(look())
        assert "--store DIR" in told.value.hint
        with pytest.raises(StoreError, match="Not a directory"):
            list(store.entries())


# -- reading ---------------------------------------------------------------------------------


def test_an_empty_or_missing_store_is_read_and_not_made(store: Store) -> None:
    assert list(store.entries()) == []
    assert store.prune(keep=0) == []
    assert not os.path.exists(store.folder)


def test_a_store_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir(mode=0o000)
    assert as_nobody(tmp_path, lambda: len(list(Store("store").entries()))) == (
        "store: Permission denied: the stored snapshots cannot be read"
    )


def test_a_store_that_cannot_be_written_is_read(tmp_path: Path) -> None:
    store = Store(str(tmp_path / "store"))
    path = store.save(look(label="golden"))
    os.chmod(path, 0o444)
    os.chmod(store.folder, 0o555)

    def work() -> Any:
        shared = Store("store")
        found = [entry.taken_at for entry in shared.entries()], shared.resolve("golden")
        try:
            shared.save(look())
        except StoreError as problem:
            return [*found, problem.message]
        return found

    assert as_nobody(tmp_path, work) == [
        ["2026-11-30T14:15:00Z"],
        f"store/{os.path.basename(path)}",
        "store: Permission denied: nothing was changed there",
    ]


def test_the_newest_comes_first(store: Store) -> None:
    times = [f"2026-{month:02}-01T00:00:00Z" for month in range(1, 13)]
    for taken_at in random.Random(1).sample(times, len(times)):
        store.save(look(taken_at))
    assert [entry.taken_at for entry in store.entries()] == times[::-1]


def test_within_one_second_the_last_written_comes_first(store: Store) -> None:
    looks = [look(driver=str(number)) for number in range(8)]
    for snapshot in looks:
        store.save(snapshot)
        time.sleep(0.005)
    assert ids(store) == [snapshot.id for snapshot in looks[::-1]]


def test_a_damaged_file_hides_no_other(store: Store) -> None:
    good = [store.save(look(f"2026-11-{day:02}T00:00:00Z")) for day in (1, 2, 3)]
    Path(good[1]).write_bytes(Path(good[1]).read_bytes()[:100])
    Path(store.folder, "20261104T000000Z-0000aaaa.json").write_bytes(b"")
    Path(store.folder, "20261105T000000Z-0000bbbb.json").write_text(
        '{"schema": "envaudit.snapshot/9"}'
    )
    os.mkfifo(Path(store.folder, "20261106T000000Z-0000cccc.json"))
    Path(store.folder, "folder.json").mkdir()
    Path(store.folder, "notes.txt").write_text("not ours")
    found = [(entry.taken_at[:10], entry.problem) for entry in store.entries()]
    assert [day for day, _ in found] == [
        "2026-11-06",
        "2026-11-05",
        "2026-11-04",
        "2026-11-03",
        "2026-11-02",
        "2026-11-01",
        "",
    ]
    assert [problem[:24] for _, problem in found] == [
        "a named pipe, not a file",
        "made by a newer envaudit",
        "empty",
        "",
        "ends in the middle, at l",
        "",
        "a folder, not a file",
    ]
    assert store.resolve("@1") == good[2]
    assert store.resolve("@2") == good[0]


def test_a_file_that_goes_while_the_store_is_read_is_passed_over(store: Store) -> None:
    for day in (1, 2, 3):
        store.save(look(f"2026-11-0{day}T00:00:00Z"))
    entries = store.entries()
    assert next(entries).taken_at == "2026-11-03T00:00:00Z"
    os.unlink(store.resolve("2026-11-02"))
    assert [entry.taken_at for entry in entries] == ["2026-11-01T00:00:00Z"]


def test_a_file_brought_by_hand_takes_its_place_by_time(store: Store) -> None:
    store.save(look("2026-11-01T00:00:00Z"))
    store.save(look("2026-11-03T00:00:00Z"))
    Path(store.folder, "node7.json").write_text(dump(look("2026-11-02T00:00:00Z")))
    assert [entry.taken_at[8:10] for entry in store.entries()] == ["03", "02", "01"]
    assert store.resolve("node7.json") == os.path.join(store.folder, "node7.json")


# -- references ------------------------------------------------------------------------------


@pytest.fixture
def filled(store: Store) -> Store:
    store.save(look("2026-11-29T23:59:59Z", "golden"))
    store.save(look("2026-11-30T08:00:00Z"))
    store.save(look("2026-11-30T14:15:00Z", "golden"))
    store.save(look("2026-11-30T14:59:00Z"))
    store.save(look("2026-12-02T10:00:00Z", "after"))
    return store


@pytest.mark.parametrize(
    ("reference", "taken_at"),
    [
        ("@1", "2026-12-02T10:00:00Z"),
        ("@2", "2026-11-30T14:59:00Z"),
        ("@5", "2026-11-29T23:59:59Z"),
        ("golden", "2026-11-30T14:15:00Z"),
        ("after", "2026-12-02T10:00:00Z"),
        ("2026-11", "2026-11-30T14:59:00Z"),
        ("2026-11-30", "2026-11-30T14:59:00Z"),
        ("2026-11-29", "2026-11-29T23:59:59Z"),
        ("2026-11-30T08", "2026-11-30T08:00:00Z"),
        ("2026-11-30T14", "2026-11-30T14:59:00Z"),
        ("2026-11-30 14:15", "2026-11-30T14:15:00Z"),
        ("2026-11-30T14:15:00", "2026-11-30T14:15:00Z"),
        ("2026-11-30T14:15:00Z", "2026-11-30T14:15:00Z"),
        ("2026-11-30T14:15:00.25Z", "2026-11-30T14:15:00Z"),
    ],
)
def test_a_reference_names_one_snapshot(filled: Store, reference: str, taken_at: str) -> None:
    assert filled.read(reference).taken_at == taken_at


def test_an_id_or_its_beginning_names_one_snapshot(filled: Store) -> None:
    for entry in list(filled.entries()):
        assert entry.snapshot is not None
        identity = entry.snapshot.id
        for reference in (identity, identity[:14], identity[-8:], identity[-8:-2]):
            assert filled.resolve(reference) == entry.path
        assert filled.resolve(os.path.basename(entry.path)) == entry.path


def test_an_ambiguous_id_is_refused(filled: Store) -> None:
    with pytest.raises(UsageError, match="2026113: 3 stored snapshots are called so") as told:
        filled.resolve("2026113")
    assert "20261130" in told.value.hint


def test_the_same_look_kept_twice_is_one_snapshot(store: Store) -> None:
    snapshot = look()
    paths = [store.save(snapshot), store.save(snapshot)]
    assert store.resolve(snapshot.id) in paths
    assert store.resolve(snapshot.id[:6]) in paths


def test_a_path_goes_before_everything_else(
    filled: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert filled.resolve("-") == "-"
    assert filled.resolve("./none.json") == "./none.json"  # reading it tells what is wrong
    Path("golden").mkdir()
    assert filled.read("golden").label == "golden"  # a folder cannot be meant
    Path("after").write_text("{}")
    assert filled.resolve("after") == "after"


@pytest.mark.parametrize(
    ("reference", "words"),
    [
        ("nothing", "nothing: no such file, and no stored snapshot is called so"),
        ("", ": no such file"),
        ("2026-12-24", "2026-12-24: no stored snapshot was taken then (UTC); the last one before"),
        ("2026-12-01", "the last one before is of 2026-11-30T14:59:00Z"),
        ("2020-01-01", "2020-01-01: no stored snapshot was taken then (UTC)"),
        ("@6", "@6: there are not so many stored snapshots"),
        ("abc\x1b[0m\n", "'abc\\x1b[0m\\n': no such file"),
        ("202", "202: no such file"),
        ("now", "now: no such file"),
    ],
)
def test_an_unknown_reference_lists_what_there_is(
    filled: Store, reference: str, words: str
) -> None:
    with pytest.raises(UsageError) as told:
        filled.resolve(reference)
    assert words in told.value.message
    newest = [identity for identity in ids(filled)[:3] if identity in told.value.hint]
    assert len(newest) == 3
    assert told.value.hint.endswith("labels: after, golden")


@pytest.mark.parametrize("reference", ["@0", "@", "@x", "@-1", "@1.5", "@٣"])
def test_a_number_that_is_none_is_refused(filled: Store, reference: str) -> None:
    with pytest.raises(UsageError, match="no snapshot reference"):
        filled.resolve(reference)


def test_an_empty_store_says_how_to_fill_it(store: Store) -> None:
    with pytest.raises(UsageError) as told:
        store.resolve("@1")
    assert "envaudit snapshot" in told.value.hint


# -- labels ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "label",
    ["", " ", " a", "a\n", "\x1b[0m", "-", "now", "@1", "a/b", "2026-11-30", "2026-11", "x" * 257],
)
def test_a_label_that_could_not_be_meant_is_refused(store: Store, label: str) -> None:
    with pytest.raises(UsageError, match="label"):
        check_label(label)
    with pytest.raises(UsageError):
        store.save(look(label=label))
    assert files(store) == []


def test_a_label_is_given_and_taken_away(filled: Store) -> None:
    order = ids(filled)
    path = filled.label("@4", "known good")
    assert filled.resolve("known good") == path
    before = json.loads(Path(path).read_text("utf-8"))
    Path(path).write_text(json.dumps({**before, "of a later release": [1]}))
    filled.label("known good", None)
    assert filled.read("@4").label is None
    assert json.loads(Path(path).read_text("utf-8"))["of a later release"] == [1]
    assert ids(filled) == order
    assert os.stat(path).st_mode & 0o777 == 0o600
    assert unfinished(filled) == []


def test_only_what_is_stored_can_be_labelled(filled: Store, tmp_path: Path) -> None:
    outside = tmp_path / "mine.json"
    outside.write_text(dump(look()))
    for reference in (str(outside), "-"):
        with pytest.raises(UsageError, match="not in the store"):
            filled.label(reference, "x")
    with pytest.raises(InputError, match="no such file"):
        filled.label(f"{filled.folder}/none.json", "x")


# -- pruning ---------------------------------------------------------------------------------


def days_ago(days: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - days * 86400))


def test_pruning_keeps_the_newest_and_the_labelled(store: Store) -> None:
    paths = [store.save(look(days_ago(day), "golden" if day == 8 else None)) for day in range(10)]
    assert store.prune(keep=3) == [*paths[3:8], paths[9]]
    assert sorted(kept(store)) == sorted(map(os.path.basename, [*paths[:3], paths[8]]))
    assert store.prune(keep=3) == []
    assert store.prune(keep=0, labelled=True) == [*paths[:3], paths[8]]


def test_pruning_by_age(store: Store) -> None:
    paths = [store.save(look(days_ago(day))) for day in range(6)]
    assert store.prune(older_than=3.5 * 86400) == paths[4:]
    assert store.prune(keep=3, older_than=0.5 * 86400) == paths[3:4]
    assert store.prune(keep=0, older_than=1e12) == []


def test_pruning_removes_only_what_it_can_read_and_has_made(store: Store) -> None:
    store.save(look())
    Path(store.folder, "20200101T000000Z-0000aaaa.json").write_text(
        '{"schema": "envaudit.snapshot/9"}'
    )
    Path(store.folder, "golden.json").write_text(dump(look("2020-01-01T00:00:00Z")))
    Path(store.folder, "flat.json").write_text('{"driver.version": "580.65.06"}')
    assert len(store.prune(keep=0)) == 1
    assert kept(store) == ["20200101T000000Z-0000aaaa.json", "flat.json", "golden.json"]


@pytest.mark.parametrize("how", [{}, {"keep": -1}, {"older_than": -1.0}])
def test_pruning_needs_to_be_told_what(store: Store, how: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        store.prune(**how)


# -- writers that die ------------------------------------------------------------------------


def test_a_writer_killed_at_any_moment_leaves_a_whole_file_or_none(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.save(look("2020-01-01T00:00:00Z", "first"))
    chance = random.Random(20261201)
    looks = [look(f"2026-11-30T14:{m:02}:00Z", size=1500, driver=str(m)) for m in range(30)]
    texts = {snapshot.id: dump(snapshot) for snapshot in looks}
    whole = {text.encode() for text in texts.values()}
    # Nearly all the time of the writer below is to go into writing, for the kills to meet it.
    monkeypatch.setattr(stores, "dump", lambda snapshot: texts[snapshot.id])
    monkeypatch.setattr(stores, "load", lambda data, name: None)
    first = kept(store)
    left_behind = 0
    for _ in range(300):
        pid = os.fork()
        if pid == 0:
            try:
                while True:
                    store.save(chance.choice(looks))
            finally:
                os._exit(1)
        time.sleep(chance.uniform(0, 0.02))
        os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        assert os.WTERMSIG(status) == signal.SIGKILL
        left_behind += bool(unfinished(store))
        for name in kept(store):
            if name not in first:
                path = Path(store.folder, name)
                assert path.read_bytes() in whole
                path.unlink()
    assert left_behind > 20  # kills did come in the middle of writing
    store.save(looks[0])
    assert unfinished(store) == []
    assert ids(store) == [looks[0].id, store.read("first").id]


def test_what_a_dead_writer_left_goes_with_the_next_write(store: Store) -> None:
    store.save(look())
    ours = die_while_writing(store)
    elsewhere = Path(store.folder, ".new-00000000-0123456789abcdef")
    old = Path(store.folder, ".new-00000000-fedcba9876543210")
    for path in (elsewhere, old):
        path.write_text("{")
    long_ago = time.time() - STALE_AFTER_S - 1
    os.utime(old, (long_ago, long_ago))
    list(store.entries())
    assert len(unfinished(store)) == 3  # reading removes nothing
    store.save(look("2026-12-01T00:00:00Z"))
    assert ours not in files(store)
    assert unfinished(store) == [elsewhere.name]  # it may be another host's, at work


def die_while_writing(store: Store) -> str:
    """Have a writer killed when its file is written and not yet in place; the name it had."""
    before = set(unfinished(store))
    pid = os.fork()
    if pid == 0:
        try:
            pytest.MonkeyPatch().setattr(os, "fsync", lambda fd: os.kill(os.getpid(), 9))
            store.save(look("2026-12-24T00:00:00Z"))
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL
    (name,) = set(unfinished(store)) - before
    return name


def test_an_interrupted_write_cleans_up(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.save(look())

    def interrupted(fd: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        store.save(look("2026-12-01T00:00:00Z"))
    assert unfinished(store) == []
    assert len(kept(store)) == 1


# -- disks that fail -------------------------------------------------------------------------


def small_disk(folder: str) -> bool:
    """Put a file system of 128 KiB on a folder, for this process only; False if not permitted."""
    libc = ctypes.CDLL(None, use_errno=True)
    user, group = os.geteuid(), os.getegid()
    if libc.unshare(0x00020000 | (0x10000000 if user else 0)):
        return False
    if user:
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    if libc.mount(b"none", b"/", None, 0x4000 | 0x40000, None):  # private, recursively
        return False
    return not libc.mount(b"tmpfs", os.fsencode(folder), b"tmpfs", 0, b"size=128k")


def small_files(bytes_: int) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_, hard))


def test_a_full_disk_leaves_the_store_as_it_was(tmp_path: Path) -> None:
    def work() -> Any:
        disk = small_disk(str(tmp_path))
        store = Store(str(tmp_path / "store"))
        if not disk:
            small_files(3000)
        message = hint = ""
        while not message:
            before = {name: Path(store.folder, name).read_bytes() for name in kept(store)}
            try:
                # Larger and larger, so that the bound on a file is met as well.
                store.save(look(f"2026-11-30T14:00:{len(before):02}Z", size=10 * len(before)))
            except StoreError as problem:
                message, hint = problem.message, problem.hint
        same = before == {name: Path(store.folder, name).read_bytes() for name in kept(store)}
        clean = not unfinished(store)
        removed = len(store.prune(keep=1))
        store.save(look("2026-12-01T00:00:00Z"))
        told = message.removeprefix(f"{store.folder}: ").removesuffix(": nothing was changed there")
        return [disk, told, "--store" in hint, same, clean, removed > 0, len(kept(store))]

    disk, told, *rest = in_child(work)
    assert told == os.strerror(errno.ENOSPC if disk else errno.EFBIG)
    assert rest == [True, True, True, True, 2]


def test_a_file_that_becomes_too_large_leaves_the_store_as_it_was(store: Store) -> None:
    path = store.save(look(label="golden"))
    before = Path(path).read_bytes()

    def message(write: Callable[[], Any]) -> str:
        with pytest.raises(StoreError) as told:
            write()
        return told.value.message

    def work() -> Any:
        small_files(300)
        return [
            message(lambda: store.save(look("2026-12-01T00:00:00Z", size=500))),
            message(lambda: store.label("golden", "silver")),
            kept(store),
            unfinished(store),
        ]

    words = f"{store.folder}: File too large: nothing was changed there"
    assert in_child(work) == [words, words, [os.path.basename(path)], []]
    assert Path(path).read_bytes() == before


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
@pytest.mark.parametrize("when", [1, 2])
def test_a_disk_that_fails_late_leaves_the_store_as_it_was(
    store: Store, monkeypatch: pytest.MonkeyPatch, number: int, when: int
) -> None:
    store.save(look())
    before = kept(store)
    calls = []

    def fails(fd: int) -> None:  # 1: the file; 2: the folder
        calls.append(fd)
        if len(calls) == when:
            raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises(StoreError, match=os.strerror(number)):
        store.save(look("2026-12-01T00:00:00Z"))
    assert kept(store) == before
    assert unfinished(store) == []


def test_a_folder_that_cannot_be_synced_is_no_failure(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    sync = os.fsync

    def fails_for_folders(fd: int) -> None:
        if os.path.isdir(f"/proc/self/fd/{fd}"):
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        sync(fd)

    monkeypatch.setattr(os, "fsync", fails_for_folders)
    store.save(look())
    assert len(ids(store)) == 1


def test_a_file_system_without_hard_links_will_do(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_links(source: str, target: str) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", no_links)
    snapshot = look()
    assert len({store.save(snapshot), store.save(snapshot)}) == 2
    assert ids(store) == [snapshot.id] * 2
    assert unfinished(store) == []


# -- several writers -------------------------------------------------------------------------


def at_once(works: Sequence[Callable[[], Any]]) -> list[int]:
    """Run each in a child of its own, all let go together; their exit statuses."""
    reading, writing = os.pipe()
    pids = []
    for work in works:
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                os.close(writing)
                os.read(reading, 1)  # ends when the last holder of the other side closes it
                work()
                code = 0
            finally:
                os._exit(code)
        pids.append(pid)
    os.close(writing)
    os.close(reading)
    return [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]


@pytest.mark.parametrize("writers", [2, 8])
def test_writers_at_once_all_succeed(store: Store, writers: int) -> None:
    same = look()

    def work(writer: int) -> Callable[[], None]:
        def write() -> None:
            for number in range(5):
                store.save(look(driver=f"{writer}.{number}", size=200))
                store.save(same)

        return write

    assert at_once([work(writer) for writer in range(writers)]) == [0] * writers
    found = ids(store)
    assert len(found) == writers * 10
    assert found.count(same.id) == writers * 5
    assert len(set(found)) == writers * 5 + 1
    assert unfinished(store) == []


def test_writers_pruners_and_labellers_do_not_disturb_each_other(store: Store) -> None:
    store.save(look("2020-01-01T00:00:00Z", "first"))

    def save() -> None:
        for number in range(10):
            store.save(look(driver=f"{os.getpid()}.{number}"))

    def label() -> None:
        for number in range(10):
            store.label("2020-01-01", f"label {number}")

    def prune() -> None:
        for _ in range(10):
            store.prune(keep=3)

    assert at_once([save, label, prune, save]) == [0, 0, 0, 0]
    store.prune(keep=3)
    assert all(entry.snapshot is not None for entry in store.entries())
    assert len(kept(store)) == 4
    assert store.read("label 9").taken_at == "2020-01-01T00:00:00Z"


def test_a_writer_that_holds_the_lock_too_long_is_not_waited_for(store: Store) -> None:
    store.save(look())
    impatient = Store(store.folder, lock_wait=0.1)
    with open(os.path.join(store.folder, ".lock"), "rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        began = time.monotonic()
        for write in (
            lambda: impatient.save(look()),
            lambda: impatient.prune(keep=0),
            lambda: impatient.label("@1", "x"),
        ):
            with pytest.raises(StoreError, match="another envaudit has been writing there"):
                write()
        assert 0.3 <= time.monotonic() - began < 2
        assert len(ids(impatient)) == 1  # reading waits for nobody
    impatient.save(look())
    assert LOCK_WAIT_S == 5.0


def test_without_locks_writing_goes_on(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_locks(fd: int, how: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", no_locks)
    store.save(look())
    left = die_while_writing(store)
    store.save(look("2026-12-01T00:00:00Z"))
    assert len(kept(store)) == 2
    assert unfinished(store) == [left]  # whether its writer lives cannot be told
