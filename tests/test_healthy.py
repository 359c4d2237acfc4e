"""Healthy machines are accused of nothing."""

from __future__ import annotations

import json

import pytest

from envaudit.check import check, told
from envaudit.matrix import Matrices
from envaudit.snapshot import load
from tests.healthy import HEALTHY, Healthy

MATRICES = Matrices()


@pytest.mark.parametrize("machine", HEALTHY, ids=lambda machine: machine.name)
def test_healthy_machine_has_no_error(machine: Healthy) -> None:
    report = check(load(json.dumps(machine.facts).encode(), "facts.json"), MATRICES)
    accused = [(f.rule, f.title) for f in report.findings if told(f) and f.severity == "error"]
    assert accused == [], machine.why


def test_machines_are_told_apart() -> None:
    assert len({machine.name for machine in HEALTHY}) == len(HEALTHY) >= 60
    assert all(machine.why and machine.facts for machine in HEALTHY)
