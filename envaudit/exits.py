"""The exit codes: one table for every command and format, computed here and nowhere else."""

from __future__ import annotations

from typing import Literal

from envaudit.check import told, undecided
from envaudit.model import Comparison, Finding, Report

OK = 0
WARNINGS = 1
CHANGED = 1
ERRORS = 2
UNDETERMINED = 3

FailOn = Literal["error", "warning"]


def of_report(report: Report, *, strict: bool, fail_on: FailOn) -> int:
    """Exit code of check: 2 an error, 1 warnings that count, 3 undetermined with --strict, else 0.

    A definite failure outweighs what could not be told. A driver that hung is an error-level
    finding whose verdict is unknown: 3 with --strict, 2 without.
    """
    roots = [finding for finding in report.findings if finding.because_of is None]
    if any(_failed(finding, "error") for finding in roots):
        return ERRORS
    if strict and (report.verdict == "unknown" or any(map(open_question, roots))):
        return UNDETERMINED
    if any(told(finding) and finding.severity == "error" for finding in roots):
        return ERRORS
    if fail_on == "warning" and any(
        told(finding) and finding.severity == "warning" for finding in roots
    ):
        return WARNINGS
    return OK


def open_question(finding: Finding) -> bool:
    """Whether a finding leaves open what an error or a warning hangs on."""
    return finding.severity != "note" and (
        undecided(finding) or (told(finding) and finding.verdict == "unknown")
    )


def _failed(finding: Finding, severity: str) -> bool:
    return finding.verdict == "fail" and finding.severity == severity


def of_comparison(comparison: Comparison, *, exit_code: bool, fail_on: FailOn | None) -> int:
    """Exit code of diff: 2 a new finding at the level of --fail-on, 1 changes with --exit-code."""
    if fail_on is not None:
        levels = ("error",) if fail_on == "error" else ("error", "warning")
        if any(f.severity in levels and f.because_of is None for f in comparison.appeared):
            return ERRORS
    if exit_code and any(change.stability in ("static", "config") for change in comparison.changes):
        return CHANGED
    return OK
