"""Whole machines, recorded: what the command line sees on each, says of it, and does not say.

A machine is a folder below tests/machines; README.md there tells what is in one.
"""

from __future__ import annotations

import functools
import json
import os
import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from envaudit.check import LAYERS
from envaudit.facts import spec_of
from envaudit.matrix import Matrices
from envaudit.model import Absent, Fact, Snapshot, Unknown
from envaudit.snapshot import load
from tests.fake_nvml import describe, machines
from tests.recorded import Ran, audit
from tests.recording import MACHINES, entries, unpack

NAMES = sorted(path.name for path in MACHINES.iterdir() if path.is_dir())
GOLDEN = Path(__file__).parent / "golden"
GOLDEN_NAMES = (
    "debian12-none-toolkit-only",
    "ubuntu2204-a100-library-mismatch",
    "ubuntu2204-h200-driver-hung",
    "ubuntu2204-v100-cudnn-too-new",
    "ubuntu2404-h100x8-healthy",
    "ubuntu2404-mixed-gpu-too-old",
)

every_machine = pytest.mark.parametrize("name", NAMES)


@functools.cache
def expected(name: str) -> dict[str, Any]:
    told: dict[str, Any] = json.loads((MACHINES / name / "expect.json").read_text())
    return told


@dataclass(frozen=True)
class Seen:
    """One machine as envaudit saw it: judged at once, and judged from what was kept of it."""

    live: Ran
    """check --format json"""
    strict: Ran
    """The same of the snapshot, with --strict --all."""
    file: Path
    snapshot: Snapshot
    """As it was kept: with nothing derived."""


@pytest.fixture(scope="session")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("machines")


_SEEN: dict[str, Seen] = {}


def look(name: str, libraries: Path) -> Seen:
    """The machine as it was seen; looked at once in a run of the tests."""
    if name not in _SEEN:
        file = libraries / f"{name}.json"
        more = expected(name).get("args", [])
        live = audit(name, "check", "--format", "json", *more, libraries=libraries)
        kept = audit(name, "snapshot", "-o", str(file), *more, libraries=libraries)
        assert kept.code == 0, kept.err
        judged = ["check", str(file), "--format", "json", "--strict", "--all"]
        strict = audit(name, *judged, libraries=libraries)
        _SEEN[name] = Seen(live, strict, file, load(file.read_bytes(), str(file)))
    return _SEEN[name]


def told(report: Any) -> list[Any]:
    """The findings that a reader must see, in their order."""
    return [
        f
        for f in report["findings"]
        if f["verdict"] == "fail" or (f["verdict"] == "unknown" and not f["missing"])
    ]


def roots(report: Any, *severities: str) -> list[Any]:
    return [f for f in told(report) if "because_of" not in f and f["severity"] in severities]


# -- what is said ------------------------------------------------------------------------------


@every_machine
def test_a_machine_is_judged(name: str, libraries: Path) -> None:
    want, seen = expected(name), look(name, libraries)
    report = seen.live.json
    found = roots(report, "error", "warning")
    assert [f["cause"] for f in found] == want["causes"]
    assert [f["cause"] for f in roots(report, "note")] == want.get("notes", [])
    if "subjects" in want:
        assert [f["subject"] for f in found] == want["subjects"]
    follows = [f for f in told(report) if "because_of" in f]
    assert sorted(f["cause"] for f in follows) == sorted(want["consequences"])
    assert {f["because_of"] for f in follows} <= {f["rule"] for f in found}
    assert not {f["cause"] for f in told(report)} & set(want["quiet"])
    assert report["verdict"] == want["verdict"]
    assert (seen.live.code, seen.strict.code) == (want["exit"], want["strict_exit"])
    assert seen.live.err == ""


@every_machine
def test_roots_come_before_consequences(name: str, libraries: Path) -> None:
    order = {"error": 0, "warning": 1, "note": 2}
    layers = {row["id"]: LAYERS.index(row["layer"]) for row in Matrices().rows("rules")}
    keys = [
        (order[f["severity"]], "because_of" in f, layers[f["rule"]])
        for f in told(look(name, libraries).live.json)
    ]
    assert keys == sorted(keys)


@every_machine
def test_a_snapshot_is_judged_as_the_machine_was(name: str, libraries: Path) -> None:
    def essence(report: Any) -> list[tuple[Any, ...]]:
        return [(f["rule"], f["subject"], f["verdict"], f.get("because_of")) for f in told(report)]

    seen = look(name, libraries)
    assert essence(seen.live.json) == essence(seen.strict.json)
    assert seen.live.json["verdict"] == seen.strict.json["verdict"]


@every_machine
def test_no_finding_without_evidence(name: str, libraries: Path) -> None:
    for finding in told(look(name, libraries).strict.json):
        assert finding["evidence"], finding["rule"]
        assert all(evidence["source"] for evidence in finding["evidence"])
        assert finding["sources"], finding["rule"]
        for text in (finding["title"], finding["why"]):
            assert not re.search(r"[{}]|\bunknown\b", text), f"{finding['rule']}: {text}"


@every_machine
def test_what_to_do_can_be_done(name: str, libraries: Path) -> None:
    """No place in a text or command is left open, and a shell reads every command."""
    for finding in told(look(name, libraries).strict.json):
        for fix in finding["fix"]:
            assert not re.search(r"[{}]|\bunknown\b", fix["text"]), fix["text"]
            if fix["command"] is not None:
                assert not re.search(r"[{}]|\bunknown\b", fix["command"]), fix["command"]
                assert shlex.split(fix["command"])
        if finding["severity"] == "error" and "because_of" not in finding:
            assert finding["fix"], finding["rule"]


# -- what is seen ------------------------------------------------------------------------------


@every_machine
def test_a_machine_is_seen(name: str, libraries: Path) -> None:
    want, snapshot = expected(name), look(name, libraries).snapshot
    seen = {fact: snapshot.ask(fact) for fact in want["facts"]}
    values = {fact: a.value if isinstance(a, Fact) else a for fact, a in seen.items()}
    assert values == want["facts"]
    assert {f: type(v) for f, v in values.items()} == {f: type(v) for f, v in want["facts"].items()}
    for fact in want["absent"]:
        assert isinstance(snapshot.ask(fact), Absent), snapshot.ask(fact)
    for fact in want["unknown"]:
        answer = snapshot.ask(fact)
        assert isinstance(answer, Unknown), answer
        assert answer.reason


@every_machine
def test_every_fact_is_in_the_catalogue_and_has_a_source(name: str, libraries: Path) -> None:
    seen = look(name, libraries)
    for fact in seen.snapshot.facts.values():
        assert spec_of(fact.name) is not None, fact.name
        assert fact.source.strip(), fact.name
    # A source is a place on the machine, never where its recording lies.
    text = seen.file.read_text()
    assert str(MACHINES) not in text
    assert str(libraries) not in text


@every_machine
def test_every_probe_comes_to_its_end(name: str, libraries: Path) -> None:
    for run in look(name, libraries).snapshot.probes:
        if run.name == "nvml" and name == "ubuntu2204-h200-driver-hung":
            assert run.status == "timed_out"
        else:
            assert run.status in ("ok", "absent", "skipped"), f"{run.name}: {run.detail}"


def test_a_machine_of_eight_gpus_is_seen_whole(libraries: Path) -> None:
    facts = look("ubuntu2404-h100x8-healthy", libraries).snapshot.facts
    assert len(facts) >= 350
    per_gpu = [sum(name.startswith(f"gpu.{n}.") for name in facts) for n in range(8)]
    assert min(per_gpu) == max(per_gpu) >= 40


def test_a_lost_gpu_costs_the_others_nothing(libraries: Path) -> None:
    facts = look("ubuntu2404-h100-gpu-lost", libraries).snapshot.facts
    whole = look("ubuntu2404-h100x8-healthy", libraries).snapshot.facts
    for gpu in (n for n in range(8) if n != 3):
        mine = {n for n in facts if n.startswith(f"gpu.{gpu}.")}
        assert mine == {n for n in whole if n.startswith(f"gpu.{gpu}.")} - {f"gpu.{gpu}.p2p.3"}


# -- the text ----------------------------------------------------------------------------------


def lasting(text: str) -> str:
    """A report without what moves from run to run and from release to release."""
    text = re.sub(r"\bwithin \d+(\.\d+)? s\b", "within N s", text)
    versions = r"(?m)^matrices [\d.]+ \(newest source [\d-]+\)"
    return re.sub(versions, "matrices N (newest source N)", text)


@pytest.mark.parametrize("name", GOLDEN_NAMES)
def test_the_text_of_a_report(name: str, libraries: Path) -> None:
    """UPDATE_GOLDEN=1 writes the texts anew: read what changed before you commit them."""
    ran = audit(name, "check", str(look(name, libraries).file), libraries=libraries)
    text, place = lasting(ran.out), GOLDEN / f"{name}.txt"
    if os.environ.get("UPDATE_GOLDEN"):
        GOLDEN.mkdir(exist_ok=True)
        place.write_text(text, encoding="utf-8")
    assert text == place.read_text(encoding="utf-8")


# -- the recordings themselves -----------------------------------------------------------------


@every_machine
def test_a_description_of_nvml_is_what_it_is_said_to_be(name: str) -> None:
    """A line that nobody would look up is refused; a machine of the library's own is that."""
    file, said = MACHINES / name / "nvml.txt", expected(name).get("nvml")
    if not file.exists():
        assert said is None
        return
    lines = [line.split(" = ", 1) for line in file.read_text().splitlines()]
    assert describe({key: value.strip() for key, value in lines}) == file.read_text()
    if said is not None:
        mapping = getattr(machines, said["machine"])() | said.get("with", {})
        assert file.read_text() == describe(mapping)


@every_machine
def test_the_files_of_a_machine_are_in_order(name: str) -> None:
    paths = [entry.path for entry in entries((MACHINES / name / "files.txt").read_text("utf-8"))]
    assert paths == sorted(set(paths))
    assert all("/../" not in f"{path}/" for path in paths)


def test_a_machine_is_unpacked_as_it_is_written(tmp_path: Path) -> None:
    machine = tmp_path / "machine"
    machine.mkdir()
    (machine / "machine.json").write_text("{}")
    (machine / "files.txt").write_text(
        "=== /dev/nvidia0\n"
        "=== /etc/issue\nfirst\n\n== no section\n"
        "=== /lib -> usr/lib\n"
        "=== /proc/sys/kernel/tainted = 0\n"
        '=== /sys/name {"kind": "text", "text": "no newline"}\n'
        '=== /sys/secure {"kind": "hex", "digits": "0600000001"}\n'
        "=== /usr/lib/x = 1\n"
    )
    root = unpack(machine, tmp_path / "there") / "root"
    assert (root / "dev/nvidia0").read_bytes() == b""
    assert (root / "etc/issue").read_text() == "first\n\n== no section\n"
    assert os.readlink(root / "lib") == "usr/lib"
    assert (root / "proc/sys/kernel/tainted").read_text() == "0\n"
    assert (root / "sys/name").read_text() == "no newline"
    assert (root / "sys/secure").read_bytes() == b"\x06\0\0\0\x01"
    assert (root / "lib/x").read_text() == "1\n"


@pytest.mark.parametrize(
    "text", ["a line\n", "=== relative\n", "=== /a -> b\nmore\n", "=== /a {}\nmore\n", "=== /a b\n"]
)
def test_a_line_that_belongs_nowhere_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"no section|belongs to no file"):
        list(entries(text))


@every_machine
def test_an_expectation_names_what_there_is(name: str) -> None:
    want, causes = expected(name), Matrices().causes()
    for key in ("causes", "consequences", "quiet", "notes"):
        assert set(want.get(key, [])) <= set(causes)
    for fact in (*want["facts"], *want["absent"], *want["unknown"]):
        assert spec_of(fact) is not None, fact
