"""Own rows: what lies over what, what is refused and how it is said; judging at its edges."""

from __future__ import annotations

import copy
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from envaudit.check import check, judge
from envaudit.constraint import in_range
from envaudit.errors import MatrixError
from envaudit.evaluate import Scope, Trial, holds
from envaudit.examples import validate
from envaudit.matrix import Matrices, NoRow, shipped_folder
from envaudit.model import Report
from envaudit.snapshot import load

SHIPPED = Matrices()
SOURCES = {"s": {"title": "a source", "url": None, "read": "2026-12-01"}}
RULE: dict[str, Any] = {
    "id": "own/test",
    "cause": "driver-too-old",
    "layer": "driver",
    "severity": "error",
    "title": "driver {driver.version} is old",
    "why": "It is.",
    "when": [{"fact": "driver.version", "is": "present"}],
    "require": [{"fact": "driver.version", ">=": "600"}],
    "fix": [{"text": "Update."}],
    "sources": ["s"],
    "confidence": "high",
    "examples": {"fail": [{"driver.version": "1"}], "pass": [{"driver.version": "600"}]},
}
DERIVED: dict[str, Any] = {
    "id": "own-branch",
    "fact": "driver.version",
    "when": [{"fact": "driver.module.version", "is": "present"}],
    "extract": {"fact": "driver.module.version", "pattern": "^([0-9]+)", "value": "{1}"},
    "sources": ["s"],
}
NCCL: dict[str, Any] = {
    "nccl": "2.12.12",
    "released": "2000-01-01",
    "wheel_cuda_majors": ["12"],
    "sources": ["s"],
    "confidence": "high",
}
CAUSE = {"id": "own-cause", "verdict": "fail", "meaning": "Ours it is.", "where": "snapshot"}


def write(path: Path, data: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(data if isinstance(data, str) else json.dumps(data))


def rows(folder: Path, kind: str, *found: Any, name: str = "own", **more: Any) -> str:
    word = "catalogue" if kind == "catalogues" else kind
    data = {"schema": f"envaudit.{word}/1", "name": name, "about": "own rows", "sources": SOURCES}
    write(folder / kind / f"{name}.json", {**data, "rows": found, **more})
    return str(folder)


def table(folder: Path, *found: Any, name: str = "nccl-releases", **more: Any) -> str:
    shipped = SHIPPED.catalogue(name) if name in SHIPPED.catalogue_names() else None
    head = {"title": "t", "keys": shipped.keys, "columns": shipped.columns} if shipped else {}
    return rows(folder, "catalogues", *found, name=name, **{**head, **more})


def rule(**change: Any) -> dict[str, Any]:
    return {**copy.deepcopy(RULE), **change}


def report(matrices: Matrices, **facts: Any) -> Report:
    named = {name.replace("__", "."): value for name, value in facts.items()}
    return check(load(json.dumps(named).encode(), "x"), matrices)


def answer(condition: Any, **facts: Any) -> bool | None:
    named = {name.replace("__", "."): value for name, value in facts.items()}
    scope = Scope(load(json.dumps(named).encode(), "x"), SHIPPED, {}, {})
    return holds(condition, scope, Trial())


# -- what lies over what ------------------------------------------------------------------------


def test_a_row_with_equal_keys_replaces_the_shipped_one(tmp_path: Path) -> None:
    own = Matrices(table(tmp_path, NCCL))
    cell = own.catalogue("nccl-releases").cell({"nccl": "2.12.12"}, "released")
    assert cell.value == "2000-01-01"
    assert [source.title for source in cell.sources] == ["a source"]
    before, after = (len(each.catalogue("nccl-releases").rows) for each in (SHIPPED, own))
    assert before == after


def test_each_file_has_its_own_sources(tmp_path: Path) -> None:
    name = SHIPPED.catalogue("nccl-releases").rows[5]["sources"][0]
    folders = []
    for version in ("98.1", "99.1"):
        source = {"title": f"page of {version}", "url": None, "read": "2026-12-01"}
        row = {**NCCL, "nccl": version, "sources": [name]}
        folders.append(table(tmp_path / version, row, sources={name: source}))
    own = Matrices(*folders).catalogue("nccl-releases")
    for version in ("98.1", "99.1"):
        (found,) = own.cell({"nccl": version}, "released").sources
        assert found.title == f"page of {version}"
    shipped = {"nccl": SHIPPED.catalogue("nccl-releases").rows[5]["nccl"]}
    theirs = SHIPPED.catalogue("nccl-releases").cell(shipped, "released").sources
    assert own.cell(shipped, "released").sources == theirs


def test_a_later_folder_may_refer_to_an_earlier_one(tmp_path: Path) -> None:
    first, second = tmp_path / "1", tmp_path / "2"
    write(first / "causes.json", {"schema": "envaudit.causes/1", "causes": [CAUSE]})
    rows(second, "rules", rule(cause="own-cause"))
    assert "own-cause" in Matrices(str(first), str(second)).causes()
    with pytest.raises(MatrixError, match="there is no cause own-cause"):
        Matrices(str(second))


def test_rows_that_disagree_are_not_unique() -> None:
    table = copy.copy(SHIPPED.catalogue("nccl-releases"))
    table.rows = [NCCL, {**NCCL, "released": "2001-01-01"}]
    table.sources = {}
    table._exact = {}
    table.rows = [{**row, "sources": []} for row in table.rows]
    with pytest.raises(NoRow, match=r"not unique on released for nccl 2\.12\.12"):
        table.cell({"nccl": "2.12.12"}, "released")
    assert table.cell({"nccl": "2.12.12"}, "wheel_cuda_majors").value == ["12"]


# -- what is refused ----------------------------------------------------------------------------


def lookup(**change: Any) -> list[Any]:
    said = {"row": "nccl-releases", "where": {"nccl": {"fact": "nccl.version"}}, "take": "released"}
    return [{"fact": "driver.version", "==": {**said, **change}}]


def asks(**condition: Any) -> list[Any]:
    return [{"fact": "driver.version", **condition}]


REFUSED_RULES = {
    "layer": ({"layer": "drivers"}, "layer: 'drivers' is not one of"),
    "matches": ({"require": asks(matches="(")}, "no regular expression '('"),
    "free_of": ({"unless": asks(free_of="[")}, "unless/0/free_of: no regular expression"),
    "range": ({"require": asks(range=">=600,~7")}, "'~7' is no version range"),
    "empty range": ({"require": asks(range="")}, "a range is a text"),
    "cause": ({"cause": "driver-to-old"}, "no cause driver-to-old; did you mean driver-too-old?"),
    "because_of": ({"because_of": ["nothing-such"]}, "because_of/0: there is no cause"),
    "fact": (
        {"when": [{"fact": "driver.versoin", "is": "present"}]},
        "did you mean driver.version?",
    ),
    "fact in any": (
        {"when": [{"any": [{"not": {"fact": "no.such", "is": "present"}}]}]},
        "when/0/any/0/not/fact: there is no fact no.such",
    ),
    "fact of a fix": (
        {"fix": [{"text": "x", "when": [{"fact": "os.di", "==": "x"}]}]},
        "fix/0/when/0/fact: there is no fact os.di; did you mean os.id?",
    ),
    "operator of a fix": (
        {"fix": [{"text": "x", "unless": [{"any": [], "==": 1, "when": 2}]}]},
        "fix/0/unless/0: == does not go with any",
    ),
    "fact of an operand": ({"require": asks(same={"fact": "driver.versoin"})}, "did you mean"),
    "fact of an example": (
        {"examples": {"fail": [{"driver.versoin": "1"}], "pass": [{"driver.version": "600"}]}},
        "examples/fail/0: there is no fact driver.versoin",
    ),
    "fact of a text": ({"title": "driver {driver.versoin}"}, "title: there is no fact"),
    "name of a text": ({"why": "below {needed}"}, "why: there is no fact needed"),
    "catalogue": ({"require": lookup(row="nccl-release")}, "did you mean nccl-releases?"),
    "key": ({"require": lookup(where={"ncl": "2"})}, "has no key ncl; did you mean nccl?"),
    "column": ({"require": lookup(take="releasd")}, "no column releasd; did you mean released?"),
    "variable": (
        {"when": [{"fact": "{gpu}.name", "is": "present"}]},
        "the variable {gpu} is not bound by for",
    ),
    "variable of a text": ({"title": "{<gpu>.name}"}, "title: the variable {gpu} is not bound"),
    "for": ({"for": {"gpu": "gpus.*"}}, "no fact lies below gpus.*"),
    "two operators": ({"require": asks(**{">=": "6", "<": "7"})}, "two operators, >= and <"),
    "no operator": ({"require": asks()}, "no operator among ==, !=, <"),
    "unknown operator": ({"require": asks(**{"=>": "6"})}, "no operator '=>' among ==, !=, <"),
    "no condition": ({"require": [{"fct": "x"}]}, "this has none"),
    "two conditions": ({"require": [{"any": [], "all": []}]}, "this has any and all"),
    "empty any": ({"require": [{"any": []}]}, "require/0: any is a list of conditions"),
    "is": ({"require": asks(**{"is": "here"})}, "is 'here': it is present or absent"),
    "is with operator": (
        {"require": asks(**{"is": "present", "==": "x"})},
        "== does not go with is",
    ),
    "part": ({"require": asks(**{"part": "mayor", ">=": "6"})}, "part 'mayor': one of major"),
    "null": ({"require": asks(**{"==": None})}, "null is no operand"),
    "null in a list": ({"require": asks(**{"in": [None]})}, "a list holds texts"),
    "operand": ({"require": asks(**{"==": {"value": 3}})}, "an operand is a value"),
    "operand of order": ({"require": asks(**{"<": "new"})}, "'new' is no version"),
    "flag in order": ({"require": asks(**{"<": True})}, "True is no version"),
    "list in has": ({"require": asks(has=["a"])}, "has asks for one element"),
    "number for text": ({"require": asks(**{"==": 600})}, "is a version; 600 never equals it"),
    "text for flag": (
        {"require": [{"fact": "os.wsl", "==": "true"}]},
        "os.wsl is a flag; 'true' never equals it",
    ),
    "number with part": ({"require": asks(**{"part": "major", "in": [6]})}, "part gives a text"),
    "code": ({"require": [{"code": {"of": "torch.arch_list"}, "in": ["ptx"]}]}, "code is {"),
    "source": ({"sources": ["t"]}, "source 't' is not in sources"),
    "examples": (
        {"examples": {"fail": [{"driver.version": "1"}]}},
        "examples: 'pass' is a required property; or 'not_applicable' is a required",
    ),
    "for of another type": ({"for": {"gpu": 3}}, "for/gpu: 3 is not of type 'string'; or 3 is"),
    "long": ({"title": ["x" * 500]}, "... is not of type 'string'"),
    "missing key": ({"why": None}, "None is not of type 'string'"),
    **{
        f"part of {operator}": (
            {"require": asks(**{"part": "major", operator: "6"})},
            f"{operator} compares whole values",
        )
        for operator in ("range", "has", "lacks", "matches", "free_of")
    },
}


def refused(folder: Path) -> str:
    with pytest.raises(MatrixError) as problem:
        Matrices(str(folder))
    message = problem.value.message
    assert problem.value.exit_code == 64
    assert message.startswith(str(folder))
    assert "under any of the given schemas" not in message
    assert "\n" not in message
    return message.removeprefix(str(folder))


@pytest.mark.parametrize(("change", "words"), REFUSED_RULES.values(), ids=REFUSED_RULES.keys())
def test_a_rule_that_cannot_hold_is_refused(tmp_path: Path, change: Any, words: str) -> None:
    rows(tmp_path, "rules", rule(id="own/good"), rule(**change))
    message = refused(tmp_path)
    assert message.startswith("/rules/own.json: rows/1 (own/test): ")
    assert words in message
    assert len(message) < 400


REFUSED_DERIVATIONS: dict[str, tuple[dict[str, Any], str]] = {
    "pattern": ({"pattern": "("}, "extract/pattern: no regular expression"),
    "group": ({"value": "{2}"}, "extract/value: the pattern has no group {2}"),
    "fact": ({"fact": "driver.modul.version"}, "extract/fact: there is no fact"),
}


def test_a_derivation_fills_its_fact_in_one_way(tmp_path: Path) -> None:
    rows(tmp_path, "derive", {**DERIVED, "absent": True})
    assert "one of row, extract, absent, not several" in refused(tmp_path)


@pytest.mark.parametrize(("change", "words"), REFUSED_DERIVATIONS.values())
def test_a_derivation_that_cannot_hold_is_refused(tmp_path: Path, change: Any, words: str) -> None:
    rows(tmp_path, "derive", {**DERIVED, "extract": {**DERIVED["extract"], **change}})
    message = refused(tmp_path)
    assert message.startswith("/derive/own.json: rows/0 (own-branch): ")
    assert words in message


REFUSED_CELLS: dict[str, tuple[dict[str, Any], str]] = {
    "no column": ({"relesed": "x"}, "relesed is no column; did you mean released?"),
    "type": ({"released": 2000}, "released is a number; other rows have a text"),
    "list": ({"wheel_cuda_majors": ["12", 13]}, "a list holds one type"),
    "key": ({"nccl": None}, "nccl is a null"),
    "confidence word": ({"confidence": "sure"}, "confidence: 'sure' is not one of ['high'"),
    "confidence": ({"confidence": {"relesed": "high"}}, "confidence/relesed: no such column"),
}


@pytest.mark.parametrize(("change", "words"), REFUSED_CELLS.values(), ids=REFUSED_CELLS.keys())
def test_a_catalogue_row_of_another_form_is_refused(
    tmp_path: Path, change: Any, words: str
) -> None:
    table(tmp_path, {**NCCL, **change})
    message = refused(tmp_path)
    assert message.startswith("/catalogues/nccl-releases.json: rows/0")
    assert words in message


SURE = {"sources": ["s"], "confidence": "high"}
CUDNN = {"cuda_major": "12", **SURE}


@pytest.mark.parametrize(
    ("name", "found", "words"),
    [
        ("nccl-releases", [NCCL, NCCL], "rows/0 and rows/1 answer for the same 2.12.12"),
        ("cudnn-releases", [{**CUDNN, "cudnn": ">=99,100"}], "'100' is no version range"),
        (
            "cudnn-releases",
            [{**CUDNN, "cudnn": ">=99,<101"}, {**CUDNN, "cudnn": ">=100"}],
            "rows/0 and rows/1 answer for the same 12",
        ),
        (
            "gpu-products",
            [
                {"name": "Own One", "compute_capability": "9.0", **SURE},
                {"name": "NVIDIA Own", "aliases": ["own one"], "compute_capability": "8.0", **SURE},
            ],
            "rows/0 and rows/1 answer for the same name own one",
        ),
        (
            "gpu-products",
            [{"name": "NVIDIA L4", "compute_capability": "8.0", "sources": ["s"]}],
            "'confidence' is a required property",
        ),
        (
            "gpu-products",
            [{"name": "L4", "compute_capability": "8.0", **SURE}],
            "rows/0 and a row that it does not replace answer for the same name l4",
        ),
        (
            "binary-compatibility",
            [{"compiled_for": "sm_999", "code": "sass", **SURE}],
            "it lacks runs_on",
        ),
    ],
)
def test_rows_of_a_table_that_contradict_are_refused(
    tmp_path: Path, name: str, found: list[Any], words: str
) -> None:
    table(tmp_path, *found, name=name)
    assert words in refused(tmp_path)


def test_a_table_of_the_shipped_name_has_the_shipped_keys(tmp_path: Path) -> None:
    table(tmp_path, NCCL, keys={"released": "exact"})
    assert "the rows below have the keys {'nccl': 'exact'}" in refused(tmp_path)


def test_a_table_of_ones_own_can_be_looked_up(tmp_path: Path) -> None:
    found = {"team": "a", "driver": "600", "sources": ["s"], "confidence": "high"}
    columns = {"team": "who", "driver": "the lowest"}
    table(tmp_path, found, name="teams", title="t", keys={"team": "exact"}, columns=columns)
    said = {"row": "teams", "where": {"team": "a"}, "take": "driver"}
    rows(tmp_path, "rules", rule(require=asks(**{">=": said})))
    own = Matrices(str(tmp_path))
    finding = next(f for f in report(own, driver__version="1").findings if f.rule == "own/test")
    assert finding.verdict == "fail"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[]", "[] is not of type 'object'"),
        ('{"schema": "envaudit.causes/1", "causes": [{"id": "x-y"}]}', "'verdict' is a required"),
        ('{"schema": "envaudit.causes/1", "causes": [{}, 3]}', "causes/0: 'id' is a required"),
        ({"schema": "envaudit.causes/1", "causes": [CAUSE, CAUSE]}, "own-cause stands there twice"),
        ({"schema": "envaudit.causes/1", "causes": [{**CAUSE, "verdict": "bad"}]}, "causes/0"),
    ],
)
def test_causes_are_validated(tmp_path: Path, text: Any, words: str) -> None:
    write(tmp_path / "causes.json", text)
    message = refused(tmp_path)
    assert message.startswith("/causes.json: ")
    assert words in message


@pytest.mark.parametrize(
    ("prepare", "words"),
    [
        (lambda f: rows(f, "rules", RULE, RULE), "rows/1: the id own/test stands in"),
        (
            lambda f: (rows(f, "rules", RULE), rows(f, "rules", RULE, name="two")),
            "/rules/two.json: rows/0: the id own/test stands in",
        ),
        (
            lambda f: (
                rows(f, "rules", RULE),
                shutil.move(f / "rules/own.json", f / "rules/o.json"),
            ),
            "/rules/o.json: name: it is 'own'; the file's name says 'o'",
        ),
        (lambda f: write(f / "rules/own.json", "[1]"), "top level: [1] is not of type 'object'"),
        (lambda f: write(f / "rules/own.json", '{"a": 1, "a": 2}'), "the key 'a' stands twice"),
        (lambda f: write(f / "rules/own.json", '{"a": '), "not valid JSON"),
        (lambda f: write(f / "own.json", "{}"), "/own.json: rows belong into one of signatures/"),
    ],
)
def test_a_folder_is_validated(
    tmp_path: Path, prepare: Callable[[Path], object], words: str
) -> None:
    prepare(tmp_path)
    assert words in refused(tmp_path)


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MatrixError, match=r"no rules/, derive/ or catalogues/"):
        Matrices(str(tmp_path))
    with pytest.raises(MatrixError, match="no such folder"):
        Matrices(str(tmp_path / "none"))


@pytest.mark.parametrize(
    ("examples", "words"),
    [
        ({"fail": [{"driver.version": "600"}]}, "fail/0: the verdict is pass"),
        ({"pass": [{"driver.version": "1"}]}, "pass/0: it fails: driver 1 is old"),
        ({"pass": [{"driver.version": "N/A"}]}, "pass/0: the verdict is unknown (driver.version:"),
        ({"not_applicable": [{"driver.version": "600"}]}, "the verdict is pass"),
        ({"unknown": [{"driver.version": "600"}]}, "unknown/0: the verdict is pass"),
        ({"fail": [{"driver.version": {}}]}, "is not of type"),
    ],
)
def test_examples_that_do_not_hold_are_told(tmp_path: Path, examples: Any, words: str) -> None:
    rows(tmp_path, "rules", rule(examples={**RULE["examples"], **examples}))
    with pytest.raises(MatrixError) as problem:
        validate(str(tmp_path))
    assert words in problem.value.message
    assert "own.json" in problem.value.message
    assert "own/test" in problem.value.message


def test_a_failing_example_must_have_the_severity_of_its_row(tmp_path: Path) -> None:
    rows(tmp_path, "rules", rule(confidence="medium"))
    with pytest.raises(MatrixError, match="it informs only, as a note"):
        validate(str(tmp_path))


def test_a_good_folder_is_valid(tmp_path: Path) -> None:
    rows(tmp_path, "rules", RULE)
    rows(tmp_path, "derive", DERIVED)
    table(tmp_path, NCCL)
    validate(str(tmp_path))


def test_what_ships_meets_what_own_rows_must() -> None:
    assert Matrices(shipped_folder()).version == SHIPPED.version


def test_validation_is_not_imported_without_own_rows() -> None:
    code = (
        "import sys, json; from envaudit.matrix import Matrices; from envaudit.check import check;"
        "from envaudit.snapshot import load;"
        'check(load(b\'{"driver.version": "1"}\', "x"), Matrices());'
        'assert not {"envaudit.validate", "envaudit.examples", "jsonschema"} & set(sys.modules)'
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from("({*["),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["fact", "any", "row", "==", "part"]), inner, max_size=3)
    ),
    max_leaves=4,
)


def places(data: Any, place: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place inside nested data."""
    found = [place] if place else []
    if isinstance(data, (dict, list)):
        pairs = data.items() if isinstance(data, dict) else enumerate(data)
        for key, value in pairs:
            found += places(value, (*place, key))
    return found


WHOLE = rule(
    **{"for": {"gpu": "gpu.*"}},
    require=[{"any": [*lookup(), {"fact": "{gpu}.name", "matches": "^N"}, *asks(range=">=6")]}],
    unless=[{"code": {"of": "torch.arch_list", "on": "{gpu}.compute_capability"}, "in": ["ptx"]}],
)
FACTS = (
    b'{"driver.version": "1", "gpu.0.name": "NVIDIA L4", "gpu.0.compute_capability": "8.9",'
    b'"torch.arch_list": ["sm_80"], "nccl.version": "2.12.12", "driver.module.version": "1"}'
)


@pytest.mark.parametrize(("kind", "row"), [("rules", WHOLE), ("derive", DERIVED), ("nccl", NCCL)])
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_whatever_stands_in_a_row_it_is_refused_or_judges(
    tmp_path: Path, kind: str, row: dict[str, Any], data: st.DataObject
) -> None:
    changed = copy.deepcopy(row)
    *way, last = data.draw(st.sampled_from(places(changed)))
    at: Any = changed
    for key in way:
        at = at[key]
    at[last] = data.draw(JUNK)
    if kind == "nccl":
        table(tmp_path, changed)
    else:
        rows(tmp_path, kind, changed)
    refusal = None
    try:
        check(load(FACTS, "x"), Matrices(str(tmp_path)))
    except MatrixError as problem:
        refusal = problem.message
    if refusal is not None:
        assert refusal.startswith(str(tmp_path))
        assert "given schemas" not in refusal


# -- judging at its edges -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "text", "inside"),
    [
        ("9.11", "<=9.11", True),
        ("9.11.1", "<=9.11", False),
        ("9.11.0", "<=9.11", True),
        ("9.11", "<9.11", False),
        ("9.11", ">9.11", False),
        ("9.11", ">=9.11,<=9.11", True),
        ("9.11", "!=9.11", False),
    ],
)
def test_a_range_at_its_ends(value: str, text: str, inside: bool) -> None:
    assert in_range(value, text) is inside


def test_differs_compares_whole_versions() -> None:
    condition = {"fact": "driver.version", "differs": "580.65.06"}
    assert answer(condition, driver__version="580.65.6") is False
    assert answer(condition, driver__version="580.65.07") is True
    assert answer({**condition, "part": "minor"}, driver__version="580.65.07") is False


def test_any_with_a_part_that_is_unknown() -> None:
    known = {"fact": "driver.version", "==": "1"}
    unknown = {"fact": "torch.version", "==": "1"}
    assert answer({"any": [unknown, known]}, driver__version="1") is True
    assert answer({"any": [unknown, known]}, driver__version="2") is None
    assert answer({"all": [unknown, known]}, driver__version="2") is False
    assert answer({"all": [unknown, known]}, driver__version="1") is None


def test_a_pattern_from_a_fact_that_is_none_leaves_it_open() -> None:
    condition = {"fact": "driver.version", "matches": {"fact": "os.name"}}
    assert answer(condition, driver__version="1", os__name="(") is None


@pytest.mark.parametrize("text", ["9" * 5000, "1." * 4000 + "1"])
def test_a_version_without_end_is_none(text: str) -> None:
    assert answer({"fact": "driver.version", ">=": "1"}, driver__version=text) is None
    row = {"of": "torch.arch_list", "on": "gpu.0.compute_capability"}
    facts = {"torch.arch_list": ["sm_" + "9" * 5000], "gpu.0.compute_capability": text}
    scope = Scope(load(json.dumps(facts).encode(), "x"), SHIPPED, {}, {})
    assert holds({"code": row, "in": ["native"]}, scope, Trial()) is None


def judged(row: dict[str, Any], **facts: Any) -> Any:
    named = {name.replace("__", "."): value for name, value in facts.items()}
    snapshot = load(json.dumps(named).encode(), "x")
    return judge({**row, "sources": ()}, Scope(snapshot, SHIPPED, {}, {}))


def test_what_cannot_be_wrong_either_way_passes() -> None:
    row = rule(when=[{"fact": "torch.version", "is": "present"}])
    assert judged(row, driver__version="600").verdict == "pass"
    assert judged(row, driver__version="1").verdict == "unknown"
    assert judged(row, driver__version="1").applicable is None


def test_a_fix_that_may_not_fit_is_not_shown() -> None:
    fixes = [
        {"text": "For Debian.", "when": [{"fact": "os.id", "==": "debian"}]},
        {"text": "For all."},
    ]
    row = rule(fix=fixes)
    assert [fix.text for fix in judged(row, driver__version="1").fix] == ["For all."]
    both = judged(row, driver__version="1", os__id="debian").fix
    assert [fix.text for fix in both] == ["For Debian.", "For all."]
    other = judged(row, driver__version="1", os__id="fedora").fix
    assert [fix.text for fix in other] == ["For all."]


@pytest.mark.parametrize(
    ("severity", "because"), [("error", "own/root"), ("warning", None), ("note", None)]
)
def test_no_finding_follows_from_what_is_less_severe(
    tmp_path: Path, severity: str, because: str | None
) -> None:
    write(tmp_path / "causes.json", {"schema": "envaudit.causes/1", "causes": [CAUSE]})
    root = rule(id="own/root", cause="own-cause", severity=severity)
    rows(tmp_path, "rules", root, rule(because_of=["own-cause"]))
    found = report(Matrices(str(tmp_path)), driver__version="1").findings
    finding = next(f for f in found if f.rule == "own/test")
    assert (finding.verdict, finding.because_of) == ("fail", because)


def test_the_more_fundamental_layer_is_told_first(tmp_path: Path) -> None:
    rows(
        tmp_path,
        "rules",
        *(
            rule(id=f"own/{layer}", layer=layer)
            for layer in ("host", "python", "gpu", "driver", "kernel", "bus")
        ),
    )
    found = report(Matrices(str(tmp_path)), driver__version="1").findings
    told = [f.rule.removeprefix("own/") for f in found if f.rule.startswith("own/")]
    assert told == ["bus", "kernel", "driver", "gpu", "python", "host"]


def test_findings_that_follow_from_one_another_have_a_root(tmp_path: Path) -> None:
    write(tmp_path / "causes.json", {"schema": "envaudit.causes/1", "causes": [CAUSE]})
    one = rule(id="own/one", cause="own-cause", because_of=["own-cause"])
    other = rule(id="own/other", cause="own-cause", because_of=["own-cause"])
    rows(tmp_path, "rules", one, other)
    found = report(Matrices(str(tmp_path)), driver__version="1").findings
    links = {f.rule: f.because_of for f in found if f.rule.startswith("own/")}
    assert links == {"own/one": None, "own/other": "own/one"}
