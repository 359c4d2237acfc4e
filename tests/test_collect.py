"""A look as a whole: what hangs, dies or lies costs one probe and is told."""

from __future__ import annotations

import sys
import time
import types
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from envaudit.collect import collect
from envaudit.host import Host
from envaudit.model import Absent, Fact, Unknown
from envaudit.probes import Look, NotHere, Probe, Skipped
from tests.probing import machine

Work = Callable[[Look], None]


@pytest.fixture
def table() -> Iterator[Callable[..., Probe]]:
    """Makes a probe of a function, as if its module lay in envaudit/probes."""
    made: list[str] = []

    def make(name: str, look: Work, *provides: str, **more: object) -> Probe:
        module = types.ModuleType(f"envaudit.probes.{name}")
        module.look = look  # type: ignore[attr-defined]
        sys.modules[module.__name__] = module
        made.append(module.__name__)
        return Probe(name, provides, **more)  # type: ignore[arg-type]

    yield make
    for name in made:
        del sys.modules[name]


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return machine(tmp_path / "machine", {})


def tells(**facts: object) -> Work:
    def look(look: Look) -> None:
        for name, value in facts.items():
            look.add(name.replace("__", "."), value, "a test")  # type: ignore[arg-type]

    return look


def hangs_after(**facts: object) -> Work:
    def look(look: Look) -> None:
        tells(**facts)(look)
        time.sleep(60)

    return look


def raises(problem: Exception) -> Work:
    def look(look: Look) -> None:
        raise problem

    return look


def test_the_three_answers(host: Host, table: Callable[..., Probe]) -> None:
    def with_gap(look: Look) -> None:
        look.add("os.id", "debian", "/etc/os-release")
        look.gap("os.build", "not told by WSL 2")

    seen = collect(host, None, probes=[table("one", with_gap, "os.*")])
    assert seen.ask("os.id") == Fact("os.id", "debian", "/etc/os-release")
    assert seen.ask("os.build") == Unknown("os.build", "one: not told by WSL 2")
    assert seen.ask("os.version") == Absent("os.version", "one")
    assert seen.ask("gpu.count") == Unknown("gpu.count", "nobody looked")


def test_how_a_probe_ends_is_told(host: Host, table: Callable[..., Probe]) -> None:
    probes = [
        table("fine", tells(os__id="x"), "os.*"),
        table("nothing", raises(NotHere("no toolkit")), "cuda.*"),
        table("idle", raises(Skipped("NVML answered")), "smi.*"),
        table("denied", raises(PermissionError(13, "Permission denied")), "dkms.*"),
        table("broken", raises(KeyError("surprise")), "host.*"),
        table("hung", hangs_after(nvml__status="ok"), "nvml.*", seconds=0.3),
    ]
    seen = collect(host, None, probes=probes)
    ended = {run.name: run.status for run in seen.probes}
    assert ended == {
        "fine": "ok",
        "nothing": "absent",
        "idle": "skipped",
        "denied": "denied",
        "broken": "failed",
        "hung": "timed_out",
    }
    details = {run.name: run.detail for run in seen.probes}
    assert details["nothing"] == "no toolkit"
    assert details["broken"].startswith("KeyError: 'surprise' (test_collect.py:")
    assert isinstance(seen.ask("cuda.home"), Absent)
    assert isinstance(seen.ask("smi.status"), Unknown)
    assert isinstance(seen.ask("host.load.1m"), Unknown)
    assert seen.facts["nvml.status"].value == "ok", "told before the hang, so kept"
    assert isinstance(seen.ask("nvml.version"), Unknown)


def test_the_whole_look_keeps_its_deadline(host: Host, table: Callable[..., Probe]) -> None:
    probes = [table(f"hung{n}", hangs_after(), "os.*", seconds=60) for n in range(6)]
    probes.append(table("later", tells(os__id="x"), "os.id", after=("hung0",), patience=60))
    started = time.monotonic()
    seen = collect(host, None, deadline=1.0, probes=probes)
    assert time.monotonic() - started < 1.0 + 1.5 + 1.0
    assert [run.status for run in seen.probes] == ["timed_out"] * 6 + ["ok"]


def test_a_probe_gets_the_answers_of_those_it_waits_for(
    host: Host, table: Callable[..., Probe]
) -> None:
    def second(look: Look) -> None:
        look.add("os.name", look.value("os.id"), "the first")

    seen = collect(
        host,
        None,
        probes=[
            table("second", second, "os.name", after=("first",)),
            table("first", tells(os__id="debian"), "os.id"),
        ],
    )
    assert seen.facts["os.name"].value == "debian"


def test_a_probe_looks_alone_when_its_patience_is_over(
    host: Host, table: Callable[..., Probe]
) -> None:
    def second(look: Look) -> None:
        look.add("os.name", str(look.value("os.id")), "alone")

    started = time.monotonic()
    seen = collect(
        host,
        None,
        probes=[
            table("slow", hangs_after(os__id="x"), "os.id", seconds=1.5),
            table("second", second, "os.name", after=("slow", "nobody"), patience=0.2),
        ],
    )
    assert seen.facts["os.name"].value == "None"
    assert time.monotonic() - started < 3.5


def test_the_earlier_row_wins_where_two_tell_the_same(
    host: Host, table: Callable[..., Probe]
) -> None:
    probes = [
        table("first", tells(driver__version="580.95.05"), "driver.version"),
        table("second", tells(driver__version="580.0"), "driver.version"),
    ]
    assert collect(host, None, probes=probes).facts["driver.version"].value == "580.95.05"


def test_an_absent_provider_does_not_hide_a_failed_one(
    host: Host, table: Callable[..., Probe]
) -> None:
    probes = [
        table("gone", raises(NotHere("no library")), "gpu.*"),
        table("crashed", raises(RuntimeError("x")), "gpu.*"),
    ]
    assert isinstance(collect(host, None, probes=probes).ask("gpu.count"), Unknown)


def test_progress_names_what_still_runs(host: Host, table: Callable[..., Probe]) -> None:
    said: list[list[str]] = []
    collect(
        host,
        None,
        probes=[table("slow", hangs_after(), "os.*", seconds=0.8)],
        progress=lambda running: said.append(list(running)),
    )
    assert ["slow"] in said
    assert said[-1] == []
