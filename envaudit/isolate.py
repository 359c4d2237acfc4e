"""Run a probe or a command to a deadline and walk away from it, whatever it does.

`subprocess.run(timeout=)` is not that: after its kill it waits without limit, and a process in
uninterruptible sleep (a hung driver) never ends. Here a job runs in a forked child of its own
process group, tells its facts on a private anonymous file, and is given up when its time is
over: its whole process tree is killed, waited for briefly, and then left behind.
"""

from __future__ import annotations

import contextlib
import errno
import os
import selectors
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

KILL_GRACE_S = 1.5
"""How long a killed child may take to go before it is called stuck."""
MEMORY_LIMIT_BYTES = 2 << 30
"""Address space of a probe: generous for libraries that map much, short of hurting the host."""
OUTPUT_LIMIT_BYTES = 32 << 20
"""The largest file a probe or a command of it may write, its own output included."""
RUN_MARK = "ENVAUDIT_RUN"
"""Environment variable that marks the commands of a run, so that strays can be found."""


class Job(NamedTuple):
    """One piece of work for a child: `work` gets a function that tells one JSON-able record."""

    name: str
    work: Callable[[Callable[[bytes], None]], None]
    seconds: float


class Outcome(NamedTuple):
    """How a job ended, with every record it told before it did."""

    name: str
    status: str
    """ok | timed_out | crashed | stuck"""
    detail: str
    records: bytes
    seconds: float


class _Child:
    """A child that runs, and whether it is being killed."""

    __slots__ = ("deadline", "job", "killed_at", "pid", "pidfd", "started", "strays", "told")

    def __init__(self, job: Job, pid: int, told: int, started: float) -> None:
        self.job = job
        self.pid = pid
        self.pidfd = _pidfd(pid)
        self.told = told
        self.started = started
        self.deadline = started + job.seconds
        self.killed_at = 0.0
        self.strays: list[int] = []


def anonymous_file(name: str) -> int:
    """A file descriptor without a place on any disk; works with a read-only or full disk."""
    if sys.platform == "linux":
        return os.memfd_create(name)
    raise OSError(errno.ENOSYS, "no anonymous files on this platform")


def read_all(fd: int, limit: int = OUTPUT_LIMIT_BYTES) -> bytes:
    """What was written to an anonymous file, from its start, at most `limit` bytes."""
    parts = []
    offset = 0
    while offset < limit:
        part = os.pread(fd, min(1 << 20, limit - offset), offset)
        if not part:
            break
        parts.append(part)
        offset += len(part)
    return b"".join(parts)


class Runner:
    """Starts jobs side by side and yields each outcome as it comes.

    `add` may be called while iterating, so a job can be started on the answer of another.
    """

    def __init__(self, kill: Callable[[int, int], None] = os.kill) -> None:
        self._children: dict[int, _Child] = {}
        self._selector = selectors.DefaultSelector()
        self._kill = kill
        # Every child needs it, so it is loaded once, before they fork. There is none on Windows,
        # where nothing is ever run.
        import resource  # noqa: F401

    def add(self, job: Job) -> None:
        """Fork a child for the job now."""
        told = anonymous_file(job.name)
        sys.stdout.flush()
        sys.stderr.flush()
        started = time.monotonic()
        pid = os.fork()
        if pid == 0:  # the child: never returns
            _child(job, told)
        child = self._children[pid] = _Child(job, pid, told, started)
        if child.pidfd >= 0:
            self._selector.register(child.pidfd, selectors.EVENT_READ, pid)

    @property
    def running(self) -> list[str]:
        """Names of the jobs that have not ended."""
        return [child.job.name for child in self._children.values()]

    def wait(self, until: float) -> Iterator[Outcome]:
        """Yield what ended by `until` (monotonic seconds), at once when something did."""
        while self._children:
            now = time.monotonic()
            ended = [child for child in self._children.values() if self._ended(child)]
            for child in ended:
                yield self._close(child, now)
            for child in list(self._children.values()):
                if child.killed_at and now >= child.killed_at + KILL_GRACE_S:
                    yield self._abandon(child, now)
                elif not child.killed_at and now >= child.deadline:
                    self._put_down(child, now)
            if ended or now >= until or not self._children:
                return
            next_event = min(
                [until]
                + [
                    child.killed_at + KILL_GRACE_S if child.killed_at else child.deadline
                    for child in self._children.values()
                ]
            )
            pause = max(0.0, next_event - now)
            if any(child.pidfd < 0 for child in self._children.values()):
                pause = min(pause, 0.005)
            self._selector.select(pause)

    def kill_all(self) -> None:
        """Kill every child and what it started, and forget them: for a run that is broken off."""
        for child in list(self._children.values()):
            # What broke the run off can have struck anywhere, between any two of our steps.
            with contextlib.suppress(OSError, KeyError, ValueError):
                self._put_down(child, time.monotonic())
                os.waitpid(child.pid, os.WNOHANG)
        self._children.clear()

    def _ended(self, child: _Child) -> bool:
        # WNOWAIT leaves the zombie, so that _close alone reaps and its status is not lost.
        found = os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        return found is not None

    def _close(self, child: _Child, now: float) -> Outcome:
        _, status = os.waitpid(child.pid, 0)
        # A finished child may leave commands behind in its group; they end with it.
        self._kill_group(child)
        records = read_all(child.told)
        self._forget(child)
        seconds = now - child.started
        if child.killed_at:
            return Outcome(
                child.job.name,
                "timed_out",
                f"no answer within {child.job.seconds:.3g} s",
                records,
                seconds,
            )
        code = os.waitstatus_to_exitcode(status)
        if code == 0:
            return Outcome(child.job.name, "ok", "", records, seconds)
        detail = (
            f"ended by signal {-code} ({_signal_name(-code)})"
            if code < 0
            else f"ended with exit status {code} before its answer was complete"
        )
        return Outcome(child.job.name, "crashed", detail, records, seconds)

    def _put_down(self, child: _Child, now: float) -> None:
        child.killed_at = now
        child.strays = [*_descendants(child.pid), *_marked(f"{os.getpid()}.{child.job.name}")]
        self._kill_group(child)

    def _kill_group(self, child: _Child) -> None:
        for pid in child.strays:
            with contextlib.suppress(OSError):
                self._kill(pid, signal.SIGKILL)
        with contextlib.suppress(OSError):
            self._kill(-child.pid, signal.SIGKILL)

    def _abandon(self, child: _Child, now: float) -> Outcome:
        state, where = process_state(child.pid)
        records = read_all(child.told)
        self._forget(child)
        return Outcome(
            child.job.name,
            "stuck",
            f"did not end after SIGKILL (state {state}{', in ' + where if where else ''})",
            records,
            now - child.started,
        )

    def _forget(self, child: _Child) -> None:
        del self._children[child.pid]
        if child.pidfd >= 0:
            self._selector.unregister(child.pidfd)
            os.close(child.pidfd)
        os.close(child.told)


def _pidfd(pid: int) -> int:
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):  # kernels before 5.3, seccomp filters: polled instead
        return -1


def _child(job: Job, told: int) -> None:
    """Everything the forked child does; ends the process."""
    code = 70
    try:
        os.setsid()
        limit_resources()
        nothing = _nothing()
        for fd in (0, 1, 2):
            os.dup2(nothing, fd)
        sys.stdout = sys.stderr = open(nothing, "w", closefd=False)  # noqa: SIM115 - to the end
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            signal.signal(number, signal.SIG_DFL)
        os.environ[RUN_MARK] = f"{os.getppid()}.{job.name}"

        def tell(record: bytes) -> None:
            os.write(told, record + b"\n")

        job.work(tell)
        code = 0
    except MemoryError:
        code = 71
    except BaseException:  # noqa: BLE001 - a child reports by its exit status alone
        code = 70
    finally:
        os._exit(code)


def _nothing() -> int:
    """A descriptor that gives nothing and takes everything, /dev mounted or not."""
    try:
        return os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return anonymous_file("nothing")


def limit_resources() -> None:
    """Bound memory and output of this process, and offer it first to the out-of-memory killer."""
    import resource

    for which, limit in (
        (resource.RLIMIT_AS, MEMORY_LIMIT_BYTES),
        (resource.RLIMIT_FSIZE, OUTPUT_LIMIT_BYTES),
        (resource.RLIMIT_CORE, 0),
    ):
        _, hard = resource.getrlimit(which)
        new = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(which, (new, hard))
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")


def process_state(pid: int) -> tuple[str, str]:
    """State letter and kernel wait channel of a process, as /proc tells them."""
    state = "unknown"
    where = ""
    with contextlib.suppress(OSError, IndexError), open(f"/proc/{pid}/stat", "rb") as file:
        state = file.read().rsplit(b")", 1)[1].split()[0].decode()
    with contextlib.suppress(OSError), open(f"/proc/{pid}/wchan", "rb") as file:
        where = file.read().decode(errors="replace").strip("0\n ")
    return state, where


def _descendants(pid: int) -> list[int]:
    """Every living process below `pid`, found by parent links in /proc."""
    children: dict[int, list[int]] = {}
    with contextlib.suppress(OSError):
        for entry in os.listdir("/proc"):
            if not entry.isdigit():
                continue
            with contextlib.suppress(OSError, IndexError, ValueError):
                with open(f"/proc/{entry}/stat", "rb") as file:
                    parent = int(file.read().rsplit(b")", 1)[1].split()[1])
                children.setdefault(parent, []).append(int(entry))
    found: list[int] = []
    queue = [pid]
    while queue:
        for child in children.get(queue.pop(), []):
            found.append(child)
            queue.append(child)
    return found


def _marked(mark: str) -> list[int]:
    """Processes that carry the mark of a job in their environment although they left its tree."""
    wanted = f"{RUN_MARK}={mark}".encode()
    found = []
    with contextlib.suppress(OSError):
        for entry in os.listdir("/proc"):
            if entry.isdigit() and int(entry) != os.getpid():
                with contextlib.suppress(OSError), open(f"/proc/{entry}/environ", "rb") as file:
                    if wanted in file.read(1 << 17).split(b"\0"):
                        found.append(int(entry))
    return found


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unknown"


class Done(NamedTuple):
    """How a command ended and what it said."""

    argv: tuple[str, ...]
    status: str
    """ok (it ended by itself) | timed_out | missing | denied | too_much_output"""
    code: int
    """Exit status; negative for a signal; 127 when it could not be started."""
    stdout: str
    stderr: str
    answer: str = ""
    """What it wrote to its private descriptor, where it was given one."""


def run_command(
    argv: Sequence[str],
    *,
    seconds: float,
    env: Mapping[str, str],
    with_answer: bool = False,
) -> Done:
    """Run a command to its end or its deadline, its output in anonymous files.

    Meant to be called inside a job's child, whose limits it inherits. With `with_answer`
    the command gets descriptor 3 for an answer that its prints cannot disturb.
    """
    out, err, answer = (anonymous_file(n) for n in ("stdout", "stderr", "answer"))
    try:
        null = _nothing()
        actions: list[tuple[int, int, int]] = [
            (os.POSIX_SPAWN_DUP2, null, 0),
            (os.POSIX_SPAWN_DUP2, out, 1),
            (os.POSIX_SPAWN_DUP2, err, 2),
        ]
        if with_answer:
            actions.append((os.POSIX_SPAWN_DUP2, answer, 3))
        child_env = dict(env)
        if RUN_MARK in os.environ:
            child_env[RUN_MARK] = os.environ[RUN_MARK]
        try:
            pid = os.posix_spawn(
                argv[0],
                list(argv),
                child_env,
                file_actions=actions,
                setpgroup=0,
                setsigdef=[signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT],
            )
        except PermissionError as problem:
            return Done(tuple(argv), "denied", 127, "", str(problem))
        except OSError as problem:
            return Done(tuple(argv), "missing", 127, "", str(problem))
        finally:
            os.close(null)
        status = _wait_for(pid, time.monotonic() + seconds)
        # What it left in its group ends with it, whether it ended by itself or not.
        for stray in [*(_descendants(pid) if status is None else ()), -pid]:
            with contextlib.suppress(OSError):
                os.kill(stray, signal.SIGKILL)
        if status is None:
            _wait_for(pid, time.monotonic() + KILL_GRACE_S)
            ended, code = "timed_out", 124
        else:
            code = os.waitstatus_to_exitcode(status)
            ended = "too_much_output" if code == -signal.SIGXFSZ else "ok"
        texts = [read_all(fd).decode("utf-8", "replace") for fd in (out, err, answer)]
        return Done(tuple(argv), ended, code, *texts)
    finally:
        for fd in (out, err, answer):
            os.close(fd)


def _wait_for(pid: int, until: float) -> int | None:
    """The wait status of a child, or None when it has not ended by `until`."""
    pidfd = _pidfd(pid)
    try:
        while True:
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                return status
            left = until - time.monotonic()
            if left <= 0:
                return None
            if pidfd >= 0:
                with selectors.SelectSelector() as selector:
                    selector.register(pidfd, selectors.EVENT_READ)
                    selector.select(left)
            else:
                time.sleep(min(left, 0.005))
    finally:
        if pidfd >= 0:
            os.close(pidfd)
