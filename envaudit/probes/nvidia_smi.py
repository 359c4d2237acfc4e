"""What nvidia-smi says, where NVML itself did not answer."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from envaudit.host import CannotRun
from envaudit.isolate import Done
from envaudit.probes import Denied, Look, NotHere, Skipped
from envaudit.restrain import restrain

if TYPE_CHECKING:
    from envaudit.importers import Imported

WSL_PATH = "/usr/lib/wsl/lib/nvidia-smi"
"""Where WSL mounts it; login shells alone have this folder on PATH."""

RESERVE_S = 2.0
"""Kept from our own time for killing an nvidia-smi that hangs and for telling of it."""

_PROVIDED = ("driver.version", "driver.cuda.version", "driver.gsp.version", "gpu.count", "gpu.*.*")


def look(look: Look) -> None:
    """Ask `nvidia-smi -q -x`, and the plain table where its answer is cut or no XML at all."""
    if look.value("nvml.status") == "ok":
        raise Skipped("NVML answered")
    if not look.host.live and look.host.recorded is None:
        raise Skipped("only files of this machine are at hand")
    program = look.host.which("nvidia-smi") or look.host.which(WSL_PATH)
    if program is None:
        raise NotHere("no nvidia-smi")
    restrain(look.host)
    time_given = max(look.seconds - RESERVE_S, look.seconds / 2)
    until = time.monotonic() + time_given

    answers: list[tuple[Done, Imported | None]] = []
    for argv in ([program, "-q", "-x"], [program]):
        done = _run(look, argv, max(0.05, until - time.monotonic()))
        if done is not None:
            answer = _read(done)
            answers.append((done, answer))
            if done.status != "ok" or (answer is not None and _status(answer)):
                break
    if not answers:
        raise Skipped("nvidia-smi was not recorded")

    look.add("smi.status", _verdict(answers), program)
    told = {"smi.status"}
    for _, answer in answers:
        if answer is not None:
            _tell(look, answer, told)
    last, answer = answers[-1]
    if last.status == "timed_out":
        _gaps(look, f"nvidia-smi did not answer within {time_given:.3g} s")
    elif last.status == "missing":
        _gaps(look, f"nvidia-smi cannot be started: {last.stderr}")
    elif not any(answer for _, answer in answers):
        said = next(filter(None, (_first_line(done) for done, _ in answers)), "")
        reason = f"nvidia-smi printed something else: {said!r}" if said else "no answer"
        _gaps(look, reason)
        look.gap("smi.*", reason)


def _run(look: Look, argv: list[str], seconds: float) -> Done | None:
    """Run it; None where a recorded machine has no such run."""
    try:
        done = look.host.run(argv, seconds=seconds)
    except CannotRun:
        return None
    if done.status == "denied":
        raise Denied(done.stderr)
    return done


def _read(done: Done) -> Imported | None:
    """What a run said, as far as that is understood."""
    # Their patterns take longer to prepare than all else here; most machines have no use for them.
    from envaudit.importers import Section, nvidia_smi_table, nvidia_smi_xml

    said = Section(f"{done.stderr}\n{done.stdout}")
    if nvidia_smi_xml.recognises(said):
        return nvidia_smi_xml.parse(said)
    return nvidia_smi_table.parse(said) if nvidia_smi_table.recognises(said) else None


def _status(answer: Imported) -> str:
    """ "ok" or the failure where the answer is whole; nothing for a document that was cut."""
    return next((str(fact.value) for fact in answer.facts if fact.name == "smi.status"), "")


def _verdict(answers: list[tuple[Done, Imported | None]]) -> str:
    """How nvidia-smi fared over its runs, in its own words where it has any."""
    for done, answer in answers:
        if done.status == "timed_out":
            return "timed out"
        if done.status == "missing":
            return f"cannot be started: {done.stderr}"
        if done.code < 0:
            return f"ended by signal {-done.code}"
        if answer is not None:
            return _status(answer) or "nvidia-smi -q -x was cut short"
    code = answers[-1][0].code
    return f"ended with exit status {code}" if code else ""


def _tell(look: Look, answer: Imported, told: set[str]) -> None:
    """Tell what an answer knows beyond what was told before."""
    for fact in answer.facts:
        if fact.name in told or fact.name.startswith("nvml."):
            continue
        told.add(fact.name)
        look.add(fact.name, fact.value, fact.source)
    for name, reason in answer.gaps.items():
        look.gap(name, reason)


def _gaps(look: Look, reason: str) -> None:
    for name in _PROVIDED:
        look.gap(name, reason)


def _first_line(done: Done) -> str:
    for text in (done.stdout, done.stderr):
        for line in text.splitlines():
            if line.strip():
                return line.strip()[:120]
    return ""
