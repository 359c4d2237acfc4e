"""What a diff says: what changed, what only one look could see, and which change broke what."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envaudit import exits
from envaudit.diff import changes_between, compare_snapshots, kind_of
from envaudit.matrix import Matrices
from envaudit.model import Comparison, Fact, ProbeRun, Snapshot
from envaudit.snapshot import load

MATRICES = Matrices()


def flat(facts: dict[str, Any]) -> Snapshot:
    return load(json.dumps(facts).encode(), "facts.json")


def diff(old: dict[str, Any], new: dict[str, Any]) -> Comparison:
    return compare_snapshots(flat(old), flat(new), MATRICES)


@pytest.mark.parametrize(
    ("fact", "before", "after", "kind"),
    [
        ("driver.version", "535.183.01", "535.216.01", "upgraded"),
        ("driver.version", "580.95.05", "570.133.20", "downgraded"),
        ("pkg.linux-image.version", "6.8.0-45.45", "6.8.0-100.100", "upgraded"),
        ("torch.version", "2.9.1+cu128", "2.9.1+cu126", "downgraded"),
        ("dist.torch.version", "2.9.1+cu128", "2.9.1+cpu", "downgraded"),
        ("driver.version", "N/A", "580.1", "changed"),
        ("host.cpu.governor", "performance", "powersave", "changed"),
        ("env.NCCL_DEBUG", None, "INFO", "added"),
        ("env.NCCL_DEBUG", "INFO", None, "removed"),
    ],
)
def test_kinds_of_change(fact: str, before: Any, after: Any, kind: str) -> None:
    assert kind_of(fact, before, after) == kind


def test_a_fact_that_one_look_could_not_see_is_no_change() -> None:
    run = ProbeRun("nvml", "timed_out", "no answer within 9 s", ("gpu.*",))
    old = Snapshot("a", "", {"gpu.count": Fact("gpu.count", 8, "NVML")}, ())
    new = Snapshot("b", "", {}, (run,))
    changes, blinded = changes_between(old, new)
    assert changes == []
    assert [(b.fact, b.side) for b in blinded] == [("gpu.count", "new")]
    assert "timed_out" in blinded[0].reason


def test_state_comes_last_and_configuration_first() -> None:
    said = diff(
        {"gpu.0.temperature": 40, "driver.version": "1.0", "gpu.0.name": "x", "perf.a.flops": 1},
        {"gpu.0.temperature": 50, "driver.version": "2.0", "gpu.0.name": "y", "perf.a.flops": 2},
    )
    assert [c.stability for c in said.changes] == ["config", "static", "measure", "state"]


def test_a_new_failure_is_joined_with_the_evidence_that_changed() -> None:
    old = {
        "driver.module.version": "535.183.01",
        "driver.libnvml.version": "535.183.01",
        "dist.pandas.version": "2.2.1",
    }
    new = {**old, "driver.libnvml.version": "535.216.01", "dist.pandas.version": "2.2.3"}
    said = diff(old, new)
    assert [f.cause for f in said.appeared if f.because_of is None] == ["driver-library-mismatch"]
    (suspect,) = said.suspects
    assert (suspect.fact, suspect.cause) == ("driver.libnvml.version", "driver-library-mismatch")
    assert "from 535.183.01 to 535.216.01" in suspect.why
    back = diff(new, old)
    assert [f.cause for f in back.resolved] == ["driver-library-mismatch"]
    assert back.suspects == ()


def test_a_bystander_is_not_accused() -> None:
    said = diff(
        {"driver.version": "580.95.05", "torch.version": "2.9.1+cu130", "gcc.version": "12"},
        {"driver.version": "470.10", "torch.version": "2.9.1+cu130", "gcc.version": "13"},
    )
    assert [s.fact for s in said.suspects] == ["driver.version"]


def test_what_stood_before_is_standing() -> None:
    facts = {"driver.version": "470.10", "torch.version": "2.9.1+cu130"}
    said = diff(facts, facts)
    assert [f.cause for f in said.standing if f.severity == "error"] == ["driver-too-old"]
    assert not said.appeared
    assert not said.resolved
    assert said.changes == ()


def test_a_failure_that_cannot_be_seen_any_more_is_not_resolved() -> None:
    said = diff(
        {"driver.version": "470.10", "torch.version": "2.9.1+cu130"},
        {"torch.version": "2.9.1+cu130"},
    )
    assert not said.resolved


def test_exit_codes() -> None:
    worse = diff(
        {"driver.version": "580.95.05", "torch.version": "2.9.1+cu130"},
        {"driver.version": "470.10", "torch.version": "2.9.1+cu130"},
    )
    assert exits.of_comparison(worse, exit_code=False, fail_on=None) == 0
    assert exits.of_comparison(worse, exit_code=True, fail_on=None) == 1
    assert exits.of_comparison(worse, exit_code=True, fail_on="error") == 2
    warmer = diff({"gpu.0.temperature": 40}, {"gpu.0.temperature": 50})
    assert exits.of_comparison(warmer, exit_code=True, fail_on="error") == 0


names = st.sampled_from(["driver.version", "gpu.0.name", "gpu.count", "env.X", "host.load.1m"])
values = st.none() | st.text(max_size=5) | st.integers(0, 9) | st.lists(st.text(max_size=3))


@given(st.dictionaries(names, values, min_size=1), st.dictionaries(names, values, min_size=1))
def test_a_diff_is_the_mirror_of_the_other_way_round(a: dict[str, Any], b: dict[str, Any]) -> None:
    there, _ = changes_between(flat(a), flat(b))
    back, _ = changes_between(flat(b), flat(a))
    assert {(c.fact, str(c.before), str(c.after)) for c in there} == {
        (c.fact, str(c.after), str(c.before)) for c in back
    }
    assert changes_between(flat(a), flat(a))[0] == []
