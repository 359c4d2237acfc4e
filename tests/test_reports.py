"""Pasted reports of every kind: the cause that must be named, and neighbours that stay quiet."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from envaudit import inputs
from envaudit.check import check
from envaudit.matrix import Matrices
from envaudit.model import Report

FOLDER = Path(__file__).parent / "reports"
MATRICES = Matrices()


def expected() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for path in sorted(FOLDER.glob("expect*.json")):
        found.update(json.loads(path.read_text("utf-8")))
    return found


EXPECTED = expected()


def judged(name: str) -> Report:
    path = FOLDER / f"{name}.txt"
    return check(inputs.understand(path.read_bytes(), path.name, MATRICES), MATRICES)


def test_every_report_has_an_expectation_and_every_expectation_a_report() -> None:
    reports = {str(p.relative_to(FOLDER).with_suffix("")) for p in FOLDER.rglob("*.txt")}
    assert reports == set(EXPECTED)


@pytest.mark.parametrize("name", EXPECTED)
def test_a_report_is_judged_right(name: str) -> None:
    want = EXPECTED[name]
    report = judged(name)
    failing = [f for f in report.findings if f.verdict == "fail" and f.severity != "note"]
    roots = {f.cause for f in failing if f.severity == "error" and f.because_of is None}
    if want["cause"] is None:
        assert not roots
        return
    assert want["cause"] in {f.cause for f in failing}
    assert roots <= {want["cause"], *want.get("also", ())}
    severity = MATRICES.causes()[want["cause"]]["verdict"]
    assert report.verdict == "fail" or (severity == "warn" and report.verdict == "warn")
    found = next(f for f in failing if f.cause == want["cause"])
    assert found.evidence
    assert found.fix


def test_every_cause_that_reports_tell_has_neighbours_that_stay_quiet() -> None:
    found = {want["cause"] for want in EXPECTED.values() if want["cause"]}
    quiet = {name.partition("/")[0] for name, want in EXPECTED.items() if want["cause"] is None}
    assert len(EXPECTED) > 700
    assert found - quiet <= {"gpu-arch-too-old-for-nvcc"}
