"""The table of known combinations: driver, build and GPU, each with its verdict."""

from __future__ import annotations

import json

import pytest

from envaudit.check import check
from envaudit.matrix import Matrices
from envaudit.snapshot import load
from tests.verdicts import TRIPLES, Triple

MATRICES = Matrices()


def test_the_table_is_large_enough_to_mean_something() -> None:
    assert len(TRIPLES) >= 60
    assert len({(t.driver, t.torch, t.gpu) for t in TRIPLES}) == len(TRIPLES)


@pytest.mark.parametrize("triple", TRIPLES, ids=lambda t: f"{t.driver}-{t.torch}-{t.gpu}")
def test_a_combination_gets_its_verdict(triple: Triple) -> None:
    facts = {
        "driver.version": triple.driver,
        "torch.version": triple.torch,
        "gpu.0.name": triple.gpu,
        "gpu.count": 1,
        "os.arch": triple.arch,
        "os.id": triple.os,
    }
    report = check(load(json.dumps(facts).encode(), "facts"), MATRICES)
    errors = [f for f in report.findings if f.verdict == "fail" and f.severity == "error"]
    if triple.verdict == "pass":
        assert report.verdict == "pass", [f.title for f in errors]
    else:
        assert report.verdict == "fail"
        assert triple.cause in {f.cause for f in errors}
