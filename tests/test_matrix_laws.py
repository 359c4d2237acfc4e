"""Laws over all rows: every row's own examples, its sources, its confidence, its form."""

from __future__ import annotations

import importlib
import json
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from envaudit.check import LAYERS, check, told
from envaudit.constraint import release
from envaudit.examples import broken
from envaudit.facts import spec_of
from envaudit.matrix import KINDS, Matrices, read_json, shipped_folder
from envaudit.model import Finding, covers
from envaudit.signals import scan
from envaudit.snapshot import load
from envaudit.validate import contradiction, lookups, overlap, validate_folder

parser = importlib.import_module("re._parser" if sys.version_info >= (3, 11) else "sre_parse")

FOLDER = Path(shipped_folder())
MATRICES = Matrices()
RULES = MATRICES.rows("rules")


def examples() -> list[Any]:
    return [
        pytest.param(row, verdict, facts, id=f"{row['id']}-{verdict}-{number}")
        for row in RULES
        for verdict, cases in row["examples"].items()
        for number, facts in enumerate(cases)
    ]


def judged(row: Any, facts: dict[str, Any]) -> list[Finding]:
    snapshot = load(json.dumps(facts).encode(), "example")
    return list(check(snapshot, MATRICES, rules=[row], everything=True).findings)


def test_the_schema_knows_the_layers_of_the_report() -> None:
    schema = read_json(str(FOLDER / "schema" / "rules.schema.json"))
    assert schema["properties"]["rows"]["items"]["properties"]["layer"]["enum"] == list(LAYERS)


@pytest.mark.parametrize(("row", "verdict", "facts"), examples())
def test_a_row_judges_its_own_examples(row: Any, verdict: str, facts: dict[str, Any]) -> None:
    assert broken(row, verdict, facts, MATRICES) is None  # what `envaudit matrix validate` says
    found = judged(row, facts)
    verdicts = {f.verdict for f in found}
    failing = row.get("verdict", "fail")
    if verdict == "fail":
        raised = [f for f in found if f.verdict == failing and not f.missing]
        assert raised
        # A failing example that only informs would prove nothing about the row's severity.
        assert raised[0].severity == row["severity"]
        assert raised[0].evidence
        assert raised[0].sources
        assert "unknown" not in raised[0].title.split() or row["layer"] == "host"
    elif verdict == "not_applicable":
        assert verdicts <= {"not_applicable"}
    else:
        assert verdict in verdicts
        assert "fail" not in verdicts
        assert not any(f.verdict == failing and not f.missing for f in found)


@pytest.mark.parametrize("row", RULES, ids=lambda row: row["id"])
def test_a_row_is_complete(row: Any) -> None:
    assert row["cause"] in MATRICES.causes()
    assert row["layer"] in LAYERS
    assert row["examples"].get("fail") or row["examples"].get("unknown"), "no failing case"
    assert row["sources"]
    if row["severity"] == "error":
        sure = ("high", "medium") if "signals" in row else ("high",)
        assert row["confidence"] in sure, "less sure rows inform; they never fail anything"
        assert row["fix"]
    for cause in row.get("because_of", ()):
        assert cause in MATRICES.causes()


def facts_in(condition: Any) -> Iterator[str]:
    if isinstance(condition, dict):
        for key, value in condition.items():
            if key in ("fact", "of", "on") and isinstance(value, str):
                yield value
            else:
                yield from facts_in(value)
    elif isinstance(condition, list):
        for part in condition:
            yield from facts_in(part)


@pytest.mark.parametrize("row", RULES, ids=lambda row: row["id"])
def test_a_row_names_only_facts_of_the_catalogue(row: Any) -> None:
    instances = {
        name: over.replace("*", "0") if isinstance(over, str) else over[0]
        for name, over in row.get("for", {}).items()
    }
    for part in ("when", "unless", "require", "prove"):
        for name in facts_in(row.get(part, [])):
            for variable, instance in instances.items():
                name = name.replace("{" + variable + "}", instance)
            assert spec_of(name) is not None, name


def test_every_cause_of_a_rule_has_one_severity_at_most_as_hard_as_its_rows() -> None:
    for row in RULES:
        if MATRICES.causes()[row["cause"]]["verdict"] == "note":
            assert row["severity"] == "note"


@pytest.mark.parametrize("kind", KINDS)
def test_files_meet_their_schema_and_are_written_canonically(kind: str) -> None:
    schema = read_json(str(FOLDER / "schema" / f"{kind}.schema.json"))
    validator = jsonschema.Draft202012Validator(schema)
    files = sorted((FOLDER / kind).glob("*.json"))
    assert files
    for path in files:
        text = path.read_text("utf-8")
        data = json.loads(text)
        errors = [f"{list(e.absolute_path)}: {e.message}" for e in validator.iter_errors(data)]
        assert not errors, (path.name, errors[:3])
        assert text == json.dumps(data, indent=1, ensure_ascii=False) + "\n", path.name
        assert data["name"] == path.stem
        used = {source for row in data["rows"] for source in row.get("sources", ())}
        assert used == set(data["sources"]), (path.name, used ^ set(data["sources"]))


def test_row_ids_are_unique() -> None:
    for kind in ("signatures", "rules", "derive"):
        ids = [
            row["id"]
            for path in (FOLDER / kind).glob("*.json")
            for row in json.loads(path.read_text("utf-8"))["rows"]
        ]
        assert len(ids) == len(set(ids))


def test_the_index_names_the_newest_source() -> None:
    read = {
        source["read"]
        for kind in ("signatures", "rules", "catalogues")
        for path in (FOLDER / kind).glob("*.json")
        for source in json.loads(path.read_text("utf-8"))["sources"].values()
    }
    assert MATRICES.newest_source == max(read)


def test_catalogue_cells_look_themselves_up() -> None:
    """Every row of a catalogue with exact keys is found by its own keys, and only it."""
    for name in MATRICES.catalogue_names():
        table = MATRICES.catalogue(name)
        exact = [key for key, kind in table.keys.items() if kind == "exact"]
        if len(exact) != len(table.keys):
            continue
        for row in table.rows:
            assert table.find({key: row[key] for key in exact}) == [row], (name, row)


def test_ptx_is_compiled_by_the_driver_of_the_first_release_that_writes_its_isa() -> None:
    rows = MATRICES.catalogue("cuda-minors").rows
    for os in ("linux", "windows"):
        for row in rows:
            same = [other for other in rows if other["ptx_isa"] == row["ptx_isa"]]
            first = min(same, key=lambda other: release(other["cuda"]))
            assert row.get(f"ptx_driver_{os}") == first.get(f"native_driver_{os}"), row["cuda"]


TABLES = MATRICES.catalogue_names()
BESIDE_COLUMNS = {"sources", "confidence", "note"}


@pytest.mark.parametrize("name", TABLES)
def test_cells_stand_in_columns_and_a_column_has_one_type(name: str) -> None:
    table = MATRICES.catalogue(name)
    assert set(table.keys) <= set(table.columns)
    types: dict[str, set[str]] = {}
    for row in table.rows:
        assert set(row) - BESIDE_COLUMNS <= set(table.columns), row
        if isinstance(row["confidence"], dict):
            assert set(row["confidence"]) - {"*"} <= set(table.columns), row
        for column in set(row) - BESIDE_COLUMNS:
            types.setdefault(column, set()).add(json_type(row[column]))
            if isinstance(row[column], list):
                types.setdefault(f"{column}/*", set()).update(map(json_type, row[column]))
    assert {column: found for column, found in types.items() if len(found) > 1} == {}
    assert set(table.columns) <= set(types), "a column without one cell"


def json_type(value: Any) -> str:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return "number"
    return type(value).__name__


@pytest.mark.parametrize("name", TABLES)
def test_one_look_up_has_one_answer(name: str) -> None:
    """Exact keys, elements of list keys, product names and ranges: no two rows contradict."""
    every = lookups(RULES + MATRICES.rows("derive"))
    taken = {each["take"] for each in every if each["row"] == name}
    assert contradiction(MATRICES.catalogue(name), taken) is None


@pytest.mark.parametrize(
    ("one", "other", "shared"),
    [
        (">=9.0,<9.1", ">=9.1,<9.2", False),
        (">=9.0,<=9.1", ">=9.1", True),
        (">9.0", "<9.0.1", True),
        (">9.0", "<=9.0", False),
        ("<9", "<8", True),
        ("==9.1", ">=9,<10", True),
    ],
)
def test_ranges_overlap(one: str, other: str, shared: bool) -> None:
    assert overlap(one, other) is overlap(other, one) is shared


def test_what_ships_passes_as_own_rows() -> None:
    validate_folder(str(FOLDER), MATRICES)


def comparisons(conditions: Any) -> Iterator[dict[str, Any]]:
    for condition in conditions:
        for group in ("any", "all"):
            yield from comparisons(condition.get(group, ()))
        if "not" in condition:
            yield from comparisons([condition["not"]])
        if "fact" in condition:
            yield condition


def bounds() -> list[Any]:
    """Every literal bound that a requirement may just meet."""
    return [
        pytest.param(row, condition["fact"], condition[operator], id=f"{row['id']}-{operator}")
        for row in RULES
        for condition in comparisons(row["require"])
        for operator in (">=", "<=")
        if isinstance(condition.get(operator), (str, int, float))
    ]


@pytest.mark.parametrize(("row", "fact", "bound"), bounds())
def test_a_literal_bound_has_an_example_that_just_meets_it(row: Any, fact: str, bound: Any) -> None:
    subjects = {"{gpu}": "gpu.*", "{framework}": "*", "{function}": "pci.gpu.*", "{probe}": "*"}
    for variable, pattern in subjects.items():
        fact = fact.replace(variable, pattern)
    values = [
        value
        for facts in row["examples"].get("pass", ())
        for name, value in facts.items()
        if covers(fact, name)
    ]
    assert bound in values, f"no passing example has {fact} = {bound}"


def exceptions() -> list[Any]:
    """Every simple exception of a rule: one fact that is there, or has a certain value."""
    found = []
    for row in RULES:
        for number, condition in enumerate(row.get("unless", ())):
            if "{" in condition.get("fact", "{"):
                continue
            if condition.get("is") == "present" or "==" in condition:
                value = condition.get("==", "some")
                if not isinstance(value, dict):
                    found.append(
                        pytest.param(row, condition["fact"], value, id=f"{row['id']}-{number}")
                    )
    return found


@pytest.mark.parametrize(("row", "fact", "value"), exceptions())
def test_an_exception_alone_switches_a_rule_off(row: Any, fact: str, value: Any) -> None:
    """What fails without the fact, and is not switched off, does not concern a machine with it."""
    spec = spec_of(fact)
    if value == "some" and spec is not None:
        value = {"number": 1, "flag": True, "list": ["x"], "version": "1"}.get(spec.kind, "some")
    examples = row["examples"]
    verdict = "fail" if "fail" in examples else "unknown"
    for facts in examples[verdict]:
        assert {f.verdict for f in judged(row, facts)} != {"not_applicable"}
        after = judged(row, {**facts, fact: value})
        assert {f.verdict for f in after} <= {"not_applicable"}, facts


SIGNATURES = MATRICES.rows("signatures")


def literals(pattern: Any) -> list[str]:
    """The literal runs of a parsed pattern that stand in every text it matches."""
    found: list[str] = []
    run = ""
    for operator, value in pattern:
        name = str(operator)
        if name == "LITERAL":
            run += chr(value)
            continue
        found, run = [*found, run], ""
        if name == "SUBPATTERN":
            found += literals(value[3])
        elif name in ("MAX_REPEAT", "MIN_REPEAT") and value[0] > 0:
            found += literals(value[2])
    return [each for each in [*found, run] if each]


def branches(pattern: Any) -> list[Any]:
    """The alternatives of a parsed pattern at its top, each as a list of its parts."""
    parts = list(pattern)
    for number, (operator, value) in enumerate(parts):
        inner = None
        if str(operator) == "BRANCH":
            inner = value[1]
        elif str(operator) == "SUBPATTERN" and len(list(value[3])) == 1:
            nested = next(iter(value[3]))
            inner = nested[1][1] if str(nested[0]) == "BRANCH" else None
        if inner is not None:
            return [
                branch
                for each in inner
                for branch in branches([*parts[:number], *each, *parts[number + 1 :]])
            ]
    return [parts]


@pytest.mark.parametrize("row", SIGNATURES, ids=lambda row: row["id"])
def test_every_text_that_a_signature_matches_holds_one_of_its_hints(row: Any) -> None:
    for branch in branches(parser.parse(row["pattern"], re.MULTILINE)):
        fixed = literals(branch)
        assert any(hint in run for hint in row["hints"] for run in fixed), fixed


REPETITIVE = (
    "a" * 100_000,
    " " * 100_000,
    "0123456789." * 9_000,
    "CUDA error: \n" * 8_000,
    "libcudnn.so.8: cannot " * 4_500,
    "GPU0 GPU1 NVRM: Xid (PCI:0000:01:00): " * 2_600,
)


@pytest.mark.parametrize("row", SIGNATURES, ids=lambda row: row["id"])
def test_no_signature_is_slow_on_any_text(row: Any) -> None:
    """Counted against a plain search over the same text, since machines are noisy."""
    pattern = re.compile(row["pattern"], re.MULTILINE)
    texts = [*REPETITIVE, *((hint + " ") * (100_000 // (len(hint) + 1)) for hint in row["hints"])]
    for text in texts:
        began = time.process_time()
        for _ in pattern.finditer(text):
            break
        spent = time.process_time() - began
        assert spent < 0.25, (row["id"], text[:40], spent)


@pytest.mark.parametrize("row", SIGNATURES, ids=lambda row: row["id"])
def test_a_signature_knows_its_own_texts(row: Any) -> None:
    for text in row["examples"]["match"]:
        assert f"signal.{row['id']}" in {fact.name for fact in scan(text, [row])}, text
    for text in row["examples"]["no_match"]:
        assert not scan(text, [row]), text


def test_every_signature_is_used_by_a_rule_or_a_derivation() -> None:
    said = json.dumps([RULES, MATRICES.rows("derive")], default=str)
    for row in SIGNATURES:
        named = f'"{row["id"]}"' in said or f"signal.{row['id']}" in said
        assert named or row["weight"] == "weak", row["id"]


@pytest.mark.parametrize("row", RULES, ids=lambda row: row["id"])
def test_no_file_is_left_unread_that_can_say_something(row: Any) -> None:
    """index.json says what each file needs; where a rule is told, its file was read for it."""
    for facts in row["examples"].get("fail", ()):
        snapshot = load(json.dumps(facts).encode(), "example")
        raised = [f for f in judged(row, facts) if told(f)]
        found = [f for f in check(snapshot, MATRICES).findings if f.rule == row["id"] and told(f)]
        assert [f.title for f in found] == [f.title for f in raised]


@pytest.mark.parametrize("row", SIGNATURES, ids=lambda row: row["id"])
def test_a_signature_is_read_for_every_text_that_it_matches(row: Any) -> None:
    for text in row["examples"]["match"]:
        assert row["id"] in {each["id"] for each in MATRICES.signatures_for(text)}
