"""The exit codes: every line of the table, and what must not move them."""

from __future__ import annotations

from typing import Any

import pytest

from envaudit import exits
from envaudit.check import verdict_of
from envaudit.model import Change, Comparison, Finding, Report, Snapshot

SNAPSHOT = Snapshot("x", "", {}, ())


def finding(severity: Any, verdict: Any = "fail", **more: Any) -> Finding:
    return Finding("a/b", "cause", verdict, severity, "title", "why", **more)


def report(*findings: Finding) -> Report:
    passed = finding("note", "pass")
    every = (*findings, passed)
    return Report(SNAPSHOT, verdict_of(every), every, "1", "2026-12-01")


HUNG = finding("error", "unknown")
OPEN = finding("error", "unknown", missing=("x: nobody looked",))
OPEN_NOTE = finding("note", "unknown", missing=("x: nobody looked",))


@pytest.mark.parametrize(
    ("findings", "verdict", "plain", "strict", "warnings"),
    [
        ((), "pass", 0, 0, 0),
        ((finding("note"),), "pass", 0, 0, 0),
        ((finding("warning"),), "warn", 0, 0, 1),
        ((finding("error"),), "fail", 2, 2, 2),
        ((finding("error"), finding("warning"), OPEN), "fail", 2, 2, 2),
        ((HUNG,), "unknown", 2, 3, 2),
        ((HUNG, finding("error")), "fail", 2, 2, 2),
        ((OPEN,), "unknown", 0, 3, 0),
        ((OPEN_NOTE,), "pass", 0, 0, 0),
        ((finding("warning", "unknown"),), "warn", 0, 3, 1),
        ((finding("error", because_of="c/d"),), "pass", 0, 0, 0),
    ],
)
def test_check(
    findings: tuple[Finding, ...], verdict: str, plain: int, strict: int, warnings: int
) -> None:
    said = report(*findings)
    assert said.verdict == verdict
    assert exits.of_report(said, strict=False, fail_on="error") == plain
    assert exits.of_report(said, strict=True, fail_on="error") == strict
    assert exits.of_report(said, strict=False, fail_on="warning") == warnings


def test_nothing_judged_is_no_pass() -> None:
    assert verdict_of([OPEN_NOTE]) == "unknown"
    assert verdict_of([]) == "unknown"


def comparison(*appeared: Finding, stability: str = "config") -> Comparison:
    changes = (Change("x.y", 1, 2, "changed", stability),)
    return Comparison(SNAPSHOT, SNAPSHOT, changes, (), appeared, (), ())


@pytest.mark.parametrize(
    ("appeared", "fail_on", "code"),
    [
        ((), None, 0),
        ((finding("error"),), None, 0),
        ((finding("error"),), "error", 2),
        ((finding("warning"),), "error", 0),
        ((finding("warning"),), "warning", 2),
        ((finding("note"),), "warning", 0),
        ((finding("error", because_of="c/d"),), "error", 0),
    ],
)
def test_diff(appeared: tuple[Finding, ...], fail_on: Any, code: int) -> None:
    assert exits.of_comparison(comparison(*appeared), exit_code=False, fail_on=fail_on) == code


@pytest.mark.parametrize(
    ("stability", "code"), [("config", 1), ("static", 1), ("state", 0), ("measure", 0)]
)
def test_diff_tells_changes_that_somebody_made(stability: str, code: int) -> None:
    assert (
        exits.of_comparison(comparison(stability=stability), exit_code=True, fail_on=None) == code
    )
