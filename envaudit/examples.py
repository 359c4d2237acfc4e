"""Hold a rule to its own examples: the facts it names must end in the verdict it names."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from envaudit.check import check
from envaudit.errors import InputError, MatrixError
from envaudit.matrix import Matrices, Row, json_files, read_json
from envaudit.model import Finding
from envaudit.snapshot import load


def validate(folder: str) -> None:
    """Check a folder of rows, form, names and examples. Raises MatrixError on the first wrong."""
    matrices = Matrices(folder)
    own = os.path.join(folder, "rules")
    paths = [os.path.join(own, name) for name in json_files(own)]
    of_id = {row["id"]: path for path in paths for row in read_json(path)["rows"]}
    for row in matrices.rows("rules"):
        for verdict, cases in row["examples"].items() if row["id"] in of_id else ():
            for number, facts in enumerate(cases):
                wrong = broken(row, verdict, facts, matrices)
                if wrong is not None:
                    place = f"{of_id[row['id']]}: {row['id']}: examples/{verdict}/{number}"
                    raise MatrixError(f"{place}: {wrong}")


def broken(row: Row, verdict: str, facts: Mapping[str, Any], matrices: Matrices) -> str | None:
    """What an example does not hold, in words; None where it holds."""
    try:
        snapshot = load(json.dumps(facts).encode(), "example")
    except InputError as problem:
        return problem.message
    found = list(check(snapshot, matrices, rules=[row], everything=True).findings)
    failing = row.get("verdict", "fail")
    raised = [each for each in found if each.verdict == failing and not each.missing]
    if verdict == "fail":
        return _not_raised(row, found, raised)
    if raised:
        return f"it fails: {raised[0].title}"
    verdicts = {each.verdict for each in found}
    if verdict == "not_applicable":
        return None if verdicts <= {verdict} else _instead(found)
    return None if verdict in verdicts and "fail" not in verdicts else _instead(found)


def _not_raised(row: Row, found: list[Finding], raised: list[Finding]) -> str | None:
    if not raised:
        return _instead(found)
    # A failing example that only informs would prove nothing about the row's severity.
    if raised[0].severity != row["severity"]:
        return (
            f"it informs only, as a {raised[0].severity}: what it rests on has "
            f"{raised[0].confidence} confidence"
        )
    return None


def _instead(found: list[Finding]) -> str:
    if not found:
        return "it concerns nothing: the facts have no instance of for"
    said = f"the verdict is {' and '.join(sorted({each.verdict for each in found}))}"
    missing = [text for each in found for text in each.missing]
    return f"{said} ({missing[0]})" if missing else said
