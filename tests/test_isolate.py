"""Whatever a probe's child does, it costs one probe: never the run, never the time."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from envaudit.isolate import (
    KILL_GRACE_S,
    MEMORY_LIMIT_BYTES,
    OUTPUT_LIMIT_BYTES,
    RUN_MARK,
    Job,
    Outcome,
    Runner,
    run_command,
)

Tell = Callable[[bytes], None]


def outcomes(*jobs: Job, runner: Runner | None = None, within: float = 10.0) -> dict[str, Outcome]:
    runner = runner or Runner()
    started = time.monotonic()
    for job in jobs:
        runner.add(job)
    found: dict[str, Outcome] = {}
    while runner.running:
        for outcome in runner.wait(time.monotonic() + 1.0):
            found[outcome.name] = outcome
        assert time.monotonic() - started < within, f"still running: {runner.running}"
    return found


def alive(pid: int) -> bool:
    """Whether a process still does anything (a zombie that waits for its parent does not)."""
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rsplit(b")", 1)[1].split()[0] != b"Z"
    except OSError:
        return False


def gone(pid: int) -> bool:
    until = time.monotonic() + 5
    while alive(pid) and time.monotonic() < until:
        time.sleep(0.01)
    return not alive(pid)


def ignore_everything(tell: Tell) -> None:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    tell(b"before the hang")
    while True:
        time.sleep(60)


def test_a_hang_that_ignores_signals_is_given_up_and_what_it_told_is_kept() -> None:
    found = outcomes(Job("hang", ignore_everything, 0.3))["hang"]
    assert found.status == "timed_out"
    assert found.detail == "no answer within 0.3 s"
    assert found.records == b"before the hang\n"
    assert 0.3 <= found.seconds < 0.3 + KILL_GRACE_S


def test_many_hangs_cost_the_time_of_one() -> None:
    started = time.monotonic()
    found = outcomes(*(Job(f"hang{n}", ignore_everything, 0.5) for n in range(8)))
    assert {o.status for o in found.values()} == {"timed_out"}
    assert time.monotonic() - started < 0.5 + KILL_GRACE_S


def test_a_process_that_does_not_go_even_when_killed_is_left_behind_with_its_state() -> None:
    """A driver in uninterruptible sleep cannot be had in a test: here the kill does nothing."""
    pids: list[int] = []

    def no_kill(pid: int, number: int) -> None:
        pids.append(abs(pid))

    found = outcomes(Job("stuck", ignore_everything, 0.2), runner=Runner(kill=no_kill))["stuck"]
    assert found.status == "stuck"
    assert "did not end after SIGKILL (state S" in found.detail
    assert found.records == b"before the hang\n"
    assert found.seconds < 0.2 + KILL_GRACE_S + 1
    os.kill(pids[-1], signal.SIGKILL)
    os.waitpid(pids[-1], 0)


def vfork_and_wait(tell: Tell) -> None:
    """A parent of vfork is in state D until its child execs or ends."""
    libc = ctypes.CDLL(None, use_errno=True)
    tell(str(os.getpid()).encode())
    if libc.vfork() == 0:
        libc.sleep(60)
        os._exit(0)


def test_uninterruptible_sleep_of_a_child_is_survived() -> None:
    started = time.monotonic()
    found = outcomes(Job("vfork", vfork_and_wait, 0.3))["vfork"]
    assert found.status in ("timed_out", "stuck")
    assert time.monotonic() - started < 0.3 + KILL_GRACE_S + 1
    assert gone(int(found.records))


def abort(tell: Tell) -> None:
    tell(b"fact")
    os.abort()


def segfault(tell: Tell) -> None:
    ctypes.string_at(0)


def eat_memory(tell: Tell) -> None:
    blocks = []
    while True:
        blocks.append(bytearray(256 << 20))


def eat_memory_in_c(tell: Tell) -> None:
    """A C library that does not check malloc: it writes to what it did not get."""
    libc = ctypes.CDLL(None)
    libc.malloc.restype = ctypes.c_void_p
    while True:
        ctypes.memset(libc.malloc(ctypes.c_size_t(512 << 20)) or 0, 1, 1)


def tell_a_gigabyte(tell: Tell) -> None:
    while True:
        tell(b"x" * (1 << 20))


def print_a_gigabyte(tell: Tell) -> None:
    for _ in range(1024):
        os.write(1, b"x" * (1 << 20))
        os.write(2, b"x" * (1 << 20))
    tell(b"done")


def close_everything(tell: Tell) -> None:
    os.closerange(0, 256)
    tell(b"lost")


def leave_quietly(tell: Tell) -> None:
    os._exit(0)


def raise_exit(tell: Tell) -> None:
    sys.exit(3)


@pytest.mark.parametrize(
    ("work", "status", "words"),
    [
        (abort, "crashed", "signal 6 (SIGABRT)"),
        (segfault, "crashed", "signal 11 (SIGSEGV)"),
        (eat_memory, "crashed", "exit status 71"),
        (eat_memory_in_c, "crashed", "signal 11"),
        (tell_a_gigabyte, "crashed", "exit status 70"),
        (print_a_gigabyte, "ok", ""),
        (close_everything, "crashed", "exit status 70"),
        (leave_quietly, "ok", ""),
        (raise_exit, "crashed", "exit status 70"),
    ],
)
def test_a_child_that_dies_costs_itself_only(
    work: Callable[[Tell], None], status: str, words: str
) -> None:
    found = outcomes(Job("bad", work, 8.0), Job("good", lambda tell: tell(b"fine"), 8.0))
    assert found["bad"].status == status
    assert words in found["bad"].detail
    assert len(found["bad"].records) <= OUTPUT_LIMIT_BYTES
    assert found["good"].status == "ok"
    assert found["good"].records == b"fine\n"


def test_prints_do_not_reach_the_answer_nor_our_own_output(
    capfd: pytest.CaptureFixture[str],
) -> None:
    def chatter(tell: Tell) -> None:
        print("hello from an import")
        os.write(2, b"warning")
        tell(b"answer")

    assert outcomes(Job("chatter", chatter, 5.0))["chatter"].records == b"answer\n"
    out, err = capfd.readouterr()
    assert out == ""
    assert err == ""


@pytest.fixture
def stray(tmp_path: Path) -> Callable[[str], Callable[[Tell], None]]:
    """A job whose command leaves a process behind in the way that `how` says."""

    def make(how: str) -> Callable[[Tell], None]:
        def work(tell: Tell) -> None:
            script = (
                f"{how} sh -c 'trap \"\" TERM HUP; echo $$ > {tmp_path}/pid; sleep 60; sleep 60' &"
                " sleep 0.2; "
            )
            run_command(["/bin/sh", "-c", script + "sleep 60"], seconds=30, env=dict(os.environ))

        return work

    return make


@pytest.mark.parametrize("how", ["", "setsid", "setsid setsid"])
def test_nothing_is_left_running_after_a_deadline(
    tmp_path: Path, stray: Callable[[str], Callable[[Tell], None]], how: str
) -> None:
    assert outcomes(Job("tree", stray(how), 1.0))["tree"].status == "timed_out"
    assert gone(int((tmp_path / "pid").read_text()))


def test_a_command_that_ends_leaves_no_background_process(tmp_path: Path) -> None:
    def work(tell: Tell) -> None:
        script = f"sh -c 'echo $$ > {tmp_path}/pid; exec sleep 60' & sleep 0.1"
        done = run_command(["/bin/sh", "-c", script], seconds=5, env=dict(os.environ))
        tell(done.status.encode())

    found = outcomes(Job("background", work, 5.0))["background"]
    assert found.records == b"ok\n"
    assert found.seconds < 3, "a background process must not be waited for"
    assert gone(int((tmp_path / "pid").read_text()))


# -- commands -------------------------------------------------------------------------------------


def command(script: str, seconds: float = 5.0, **more: bool) -> str:
    """What run_command says of a shell script, run inside a job as probes do."""

    def work(tell: Tell) -> None:
        done = run_command(["/bin/sh", "-c", script], seconds=seconds, env=os.environ, **more)
        line = f"{done.status}|{done.code}|{done.stdout[:40]}|{done.stderr[:40]}|{done.answer[:40]}"
        tell(line.encode())

    return outcomes(Job("command", work, 20.0))["command"].records.decode().strip()


def test_a_command_tells_status_output_and_exit_code() -> None:
    assert command("printf out; printf err >&2; exit 9") == "ok|9|out|err|"


def test_the_answer_has_a_descriptor_of_its_own() -> None:
    assert command("echo noise; printf answer >&3", with_answer=True) == "ok|0|noise\n||answer"


def test_a_command_that_ignores_term_ends_at_its_deadline() -> None:
    started = time.monotonic()
    assert command("trap '' TERM; sleep 60; sleep 60", 0.3).startswith("timed_out|124|")
    assert time.monotonic() - started < 3


def test_a_command_that_prints_without_end_is_stopped() -> None:
    assert command("exec yes").startswith("too_much_output|-25|y\ny\n")


def test_a_command_reads_nothing_from_our_input() -> None:
    assert command("read line || printf nothing") == "ok|0|nothing||"


def test_a_missing_and_a_forbidden_command_are_told_apart(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("no program")

    def work(tell: Tell) -> None:
        for path in (str(tmp_path / "none"), str(plain), str(tmp_path)):
            tell(run_command([path], seconds=1, env={}).status.encode())

    records = outcomes(Job("none", work, 5.0))["none"].records
    assert records.split() == [b"missing", b"denied", b"denied"]


def test_limits_and_mark_reach_the_child() -> None:
    def work(tell: Tell) -> None:
        tell(str(resource.getrlimit(resource.RLIMIT_FSIZE)[0]).encode())
        tell(os.environ[RUN_MARK].encode())
        tell(str(resource.getrlimit(resource.RLIMIT_CORE)[0]).encode())
        tell(str(resource.getrlimit(resource.RLIMIT_AS)[0]).encode())
        tell(Path("/proc/self/oom_score_adj").read_bytes())

    told = outcomes(Job("limits", work, 5.0))["limits"].records.split()
    limit, mark, core, memory, first_to_die = told
    assert int(limit) == OUTPUT_LIMIT_BYTES
    assert (int(core), int(memory), int(first_to_die)) == (0, MEMORY_LIMIT_BYTES, 1000)
    assert mark.decode() == f"{os.getpid()}.limits"
