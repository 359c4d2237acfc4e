"""The snapshot file: what is written is read back, and what is not a snapshot says so."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from datetime import datetime
from pathlib import Path
from typing import Any, get_args

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from envaudit import snapshot as snapshots
from envaudit.errors import InputError
from envaudit.model import Absent, Confidence, Fact, ProbeRun, ProbeStatus, Snapshot, Unknown
from envaudit.snapshot import dump, fingerprint, finish, load, read_bytes, read_file

SCHEMA = json.loads(
    (Path(__file__).parent.parent / "matrices/schema/snapshot.schema.json").read_text("utf-8")
)

# -- generated snapshots ---------------------------------------------------------------------

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
shorts = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=20)
numbers = st.one_of(
    st.integers(-(10**30), 10**30),
    st.floats(-1e30, 1e30),
    st.sampled_from([0, -0.0, 1.0, 2**53 + 1, 5e-324]),
)
values = st.recursive(
    st.one_of(texts, st.booleans(), numbers),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(texts, inner, max_size=4)),
    max_leaves=8,
)
mappings = st.dictionaries(texts, values, max_size=3)
times = st.datetimes(datetime(1970, 1, 1), datetime(9999, 12, 31)).map(
    lambda moment: moment.isoformat(timespec="seconds") + "Z"
)


@st.composite
def fact_tables(draw: st.DrawFn) -> dict[str, Fact]:
    names = draw(st.lists(shorts, max_size=5, unique=True))
    confidence = st.sampled_from(get_args(Confidence))
    return {name: Fact(name, draw(values), draw(texts), draw(confidence)) for name in names}


probe_runs = st.builds(
    ProbeRun,
    name=shorts,
    status=st.sampled_from(get_args(ProbeStatus)),
    detail=texts,
    provides=st.lists(shorts, max_size=3).map(tuple),
    gaps=st.dictionaries(shorts, texts, max_size=3),
    seconds=st.floats(0, 1e6),
)
made = st.builds(
    Snapshot,
    id=shorts,
    taken_at=st.one_of(st.just(""), times),
    facts=fact_tables(),
    probes=st.lists(probe_runs, max_size=3).map(tuple),
    fingerprint=st.text("0123456789abcdef", min_size=16, max_size=16),
    label=st.one_of(st.none(), shorts),
    tool=mappings,
    host=mappings,
    target=mappings,
    transactions=st.lists(mappings, max_size=3).map(tuple),
)


@given(made)
@settings(deadline=None)
def test_what_is_written_is_read_back(snapshot: Snapshot) -> None:
    text = dump(snapshot)
    again = load(text.encode(), "file")
    assert again == snapshot
    assert dump(again) == text
    assert text.endswith("}\n")
    assert not text.endswith("\n\n")


@given(numbers)
@settings(deadline=None)
def test_numbers_keep_their_type(number: float) -> None:
    again = load(dump(minimal({"perf.x": number})).encode(), "file")
    assert repr(again.facts["perf.x"].value) == repr(number)


@given(made, st.data())
@settings(deadline=None)
def test_a_file_cut_anywhere_is_told_to_be_cut(snapshot: Snapshot, data: st.DataObject) -> None:
    whole = dump(snapshot).encode()
    cut = data.draw(st.integers(1, len(whole) - 2))
    with pytest.raises(InputError) as told:
        load(whole[:cut], "file")
    assert "ends in the middle, at line" in told.value.message or "UTF-8" in told.value.message


def test_keys_are_sorted_and_the_text_is_plain() -> None:
    snapshot = minimal({"b.x": 1, "a.x": "Grüße"})
    text = dump(snapshot)
    keys = list(json.loads(text))
    assert keys == sorted(keys)
    assert text.index('"a.x"') < text.index('"b.x"')
    assert "Grüße" in text


def test_an_undecodable_byte_of_a_path_leaves_the_file_readable_for_everyone() -> None:
    path = os.fsdecode(b"/opt/caf\xe9/bin/python")
    text = dump(minimal({"python.executable": path}))
    raw = text.encode()  # no error
    assert load(raw, "file").facts["python.executable"].value == "/opt/caf\\udce9/bin/python"


# -- whatever the bytes ----------------------------------------------------------------------


def outcome(data: bytes) -> Snapshot | str:
    try:
        return load(data, "x.json")
    except InputError as problem:
        told = problem.message
    assert told.isprintable()
    return told


def refusal(data: bytes, name: str = "x.json") -> InputError:
    with pytest.raises(InputError) as told:
        load(data, name)
    assert told.value.message.startswith(f"{name}: ")
    assert "\n" not in told.value.message
    assert told.value.message.isprintable()
    assert told.value.exit_code == 64
    return told.value


pieces = st.sampled_from(
    [b"{", b"}", b"[", b"]", b'"', b":", b",", b"\\", b"\\u", b"d800", b"null", b"true", b"1e400"]
    + [b"NaN", b"-", b"0", b"9" * 5000, b"\xff", b"\0", b"\xef\xbb\xbf", b"\n", b'"schema"']
    + [b'"envaudit.snapshot/1"', b'"facts"', b'"a.b"', b'"\\ud83d\\ude00"']
)


@given(st.one_of(st.binary(max_size=200), st.lists(pieces, max_size=40).map(b"".join)))
@settings(max_examples=500, deadline=None)
def test_any_bytes_give_a_snapshot_or_a_clear_refusal(data: bytes) -> None:
    found = outcome(data)
    if isinstance(found, Snapshot):
        assert load(dump(found).encode(), "x.json") == found


@given(made, st.data())
@settings(max_examples=200, deadline=None)
def test_a_damaged_file_gives_a_snapshot_or_a_clear_refusal(
    snapshot: Snapshot, data: st.DataObject
) -> None:
    raw = bytearray(dump(snapshot).encode())
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(raw) - 1))
        raw[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    outcome(bytes(raw))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "empty"),
        (b" \n\t\n", "empty"),
        (b"\xef\xbb\xbf", "empty"),
        ('{"driver.version": "535"}'.encode("utf-16"), "UTF-16"),
        ('{"driver.version": "535"}'.encode("utf-16-le"), "UTF-16"),
        (b'{"a.b": "\xe9"}', "byte 0xe9 at offset 9"),
        (b"\x1f\x8b\x08\0\0\0\0\0", "gzip"),
        (b"\x89PNG\r\n\x1a\n", "byte 0x89 at offset 0"),
        (b"[" * 100_000, "nested deeper than 32"),
        (b'{"a.b":' * 100_000, "nested deeper than 32"),
        (b'{"a.b": "' + b"\\" * 100_000 + b"[" * 99, "ends in the middle"),
        (b"[]" * 1_000_001, "more than 1,000,000 lists and objects"),
        (b"[1, 2]", "a list; a snapshot is a JSON object"),
        (b'"text"', "a text; a snapshot is a JSON object"),
        (b"null", "null; a snapshot is a JSON object"),
        (b"12", "a number; a snapshot is a JSON object"),
        (b"PyTorch version: 2.9.1", "not a snapshot: the text is not JSON"),
        (b'{"a.b": 1', "ends in the middle, at line 1"),
        (b'{\n"a.b":\n', "ends in the middle, at line 2"),
        (b'{"a.b": tru', "ends in the middle"),
        (b'{"a.b": -', "ends in the middle"),
        (b'{"a.b": 1e+', "ends in the middle"),
        (b'{"a.b": "\\u12', "ends in the middle"),
        (b'{"a.b": "text', "ends in the middle"),
        (b'{"a.b": 1} {"a.b": 2}', "more text after the end"),
        (b'{"a.b": 1,\n "c" 2}', "not valid JSON at line 2, column 6"),
        (b'{"a.b": "tab\there"}', "not valid JSON at line 1"),
        (b'{"a.b": NaN}', "NaN is not a number"),
        (b'{"a.b": -Infinity}', "-Infinity is not a number"),
        (b'{"a.b": 1e400}', "a.b: a number out of range"),
        (b'{"a.b": -1e31}', "a.b: a number out of range"),
        (b'{"a.b": ' + b"9" * 5000 + b"}", "a number of 5000 digits"),
        (b'{"a.b": ' + b"9" * 35 + b"}", "a.b: a number out of range"),
        (b'{"a.b": 1, "a.b": 2}', "a.b stands twice"),
        (b'{"a.b": [{"x": 1, "x": 1}]}', "x stands twice"),
        (b'{"a.b": "\\ud800"}', "a.b: half of a surrogate pair"),
        (b'{"a.\\udfff": 1}', "half of a surrogate pair"),
        (b'{"a.b": ["\\ud83d\\ude00", "\\ude00\\ud83d"]}', "a.b[1]: half of a surrogate pair"),
        (b'{"\\u001b[31m.x": [null]}', "no fact name"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_no_json_object_is_told_in_one_line(data: bytes, words: str) -> None:
    assert words in refusal(data).message


def test_more_than_16_mib_is_refused() -> None:
    assert refusal(b" " * ((16 << 20) + 1)).message == "x.json: larger than 16 MiB"
    assert "empty" in refusal(b" " * (16 << 20)).message


def test_a_byte_order_mark_is_accepted() -> None:
    assert load(b'\xef\xbb\xbf{"a.b": 1}', "x").facts["a.b"].value == 1


def test_nesting_up_to_the_bound_is_read() -> None:
    assert load(b'{"a.b":' + b"[" * 31 + b"]" * 31 + b"}", "x").facts["a.b"].value != []
    refusal(b'{"a.b":' + b"[" * 32 + b"]" * 32 + b"}")


def test_brackets_in_texts_are_no_nesting() -> None:
    text = "[" * 1000 + '"' + "\\" + "{" * 1000
    assert load(json.dumps({"a.b": text}).encode(), "x").facts["a.b"].value == text


def test_a_hostile_file_name_stays_on_one_line() -> None:
    with pytest.raises(InputError) as told:
        load(b"", "a\x1b[2J\nb")
    assert told.value.message.isprintable()


# -- a snapshot of the wrong form ------------------------------------------------------------


def document(**changes: Any) -> dict[str, Any]:
    whole: dict[str, Any] = {
        "schema": "envaudit.snapshot/1",
        "id": "20261130141500-0123abcd",
        "label": None,
        "taken_at": "2026-11-30T14:15:00Z",
        "fingerprint": "0123456789abcdef",
        "tool": {"name": "envaudit", "version": "1.0"},
        "host": {},
        "target": {"executable": "/usr/bin/python3"},
        "facts": {"driver.version": {"value": "580.65.06", "source": "/proc/version"}},
        "probes": [
            {
                "name": "driver",
                "status": "ok",
                "detail": "",
                "provides": ["driver.*"],
                "gaps": {"driver.gsp.version": "denied"},
                "seconds": 0.1,
            }
        ],
        "transactions": [],
    }
    whole.update(changes)
    return {key: value for key, value in whole.items() if value is not ...}


def read(whole: Any) -> Snapshot:
    return load(json.dumps(whole).encode(), "x.json")


def minimal(facts: dict[str, Any]) -> Snapshot:
    return finish(
        Snapshot(
            id="",
            taken_at="2026-11-30T14:15:00Z",
            facts={name: Fact(name, value, "test") for name, value in facts.items()},
            probes=(),
        )
    )


def test_a_whole_document_is_read() -> None:
    snapshot = read(document())
    assert snapshot.facts["driver.version"] == Fact("driver.version", "580.65.06", "/proc/version")
    assert snapshot.ask("driver.gsp.version") == Unknown("driver.gsp.version", "driver: denied")
    assert snapshot.ask("driver.compat.version") == Absent("driver.compat.version", "driver")


FACT = {"value": 1, "source": "s"}
PROBE = {"name": "p", "status": "ok"}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"id": ...}, 'has no "id"'),
        ({"taken_at": ...}, 'has no "taken_at"'),
        ({"facts": ...}, 'has no "facts"'),
        ({"probes": ...}, 'has no "probes"'),
        ({"id": 7}, "id: a number; a text belongs here"),
        ({"id": ""}, "id: empty"),
        ({"id": "a\nb"}, "id: 'a\\nb' has a control character"),
        ({"id": "x" * 257}, "id: 257 characters; at most 256"),
        ({"label": 3}, "label: a number"),
        ({"label": "\x1b[0m"}, "label: "),
        ({"taken_at": "yesterday"}, "taken_at: yesterday; a time is written"),
        ({"taken_at": "2026-11-30T14:15:00+01:00"}, "taken_at: "),
        ({"taken_at": "2026-02-29T00:00:00Z"}, "taken_at: "),
        ({"taken_at": "2026-11-30T14:15:00Z\n"}, "taken_at: "),
        ({"taken_at": "٢٠٢٦-11-30T14:15:00Z"}, "taken_at: "),
        ({"fingerprint": None}, "fingerprint: null"),
        ({"tool": []}, "tool: a list; an object belongs here"),
        ({"host": {"name": None}}, "host.name: null; what is absent is left out"),
        ({"facts": []}, "facts: a list; an object belongs here"),
        ({"facts": {"driver.version": "580"}}, "facts.driver.version: a text; an object"),
        ({"facts": {"driver.version": {"value": 1}}}, "facts.driver.version: a fact has"),
        ({"facts": {"a.b": {**FACT, "value": None}}}, "facts.a.b: null"),
        ({"facts": {"a.b": {**FACT, "value": [1, {"x": [None]}]}}}, "facts.a.b[1].x[0]: null"),
        ({"facts": {"a.b": {**FACT, "source": 1}}}, "facts.a.b.source: a number"),
        ({"facts": {"a.b": {**FACT, "confidence": "sure"}}}, "facts.a.b.confidence: one of high"),
        ({"facts": {"a.b": {**FACT, "confidence": []}}}, "facts.a.b.confidence: one of high"),
        ({"facts": {"": FACT}}, "facts.: empty"),
        ({"facts": {"a\x9bb": FACT}}, "has a control character"),
        ({"facts": {"a.b": {**FACT, "value": "x" * 262_145}}}, "a text of 262,145 characters"),
        ({"facts": {f"a.{n}": FACT for n in range(200_001)}}, "facts: 200,001 of them"),
        ({"probes": {}}, "probes: an object; a list belongs here"),
        ({"probes": [PROBE] * 1001}, "probes: 1,001 entries; at most 1,000"),
        ({"probes": [PROBE, 1]}, "probes[1]: a number"),
        ({"probes": [{"name": "p"}]}, 'probes[0]: has no "status"'),
        ({"probes": [{**PROBE, "status": "fine"}]}, "probes[0].status: one of ok, absent"),
        ({"probes": [{**PROBE, "status": ["ok"]}]}, "probes[0].status: one of ok, absent"),
        ({"probes": [{**PROBE, "detail": 1}]}, "probes[0].detail: a number"),
        ({"probes": [{**PROBE, "provides": "a"}]}, "probes[0].provides: a text; a list"),
        ({"probes": [{**PROBE, "provides": ["a", 1]}]}, "probes[0].provides[1]: a number"),
        ({"probes": [{**PROBE, "provides": ["a"] * 10_001}]}, "probes[0].provides: 10,001"),
        ({"probes": [{**PROBE, "gaps": {"a.b": 1}}]}, "probes[0].gaps.a.b: a number"),
        ({"probes": [{**PROBE, "seconds": "1"}]}, "probes[0].seconds: a number, not negative"),
        ({"probes": [{**PROBE, "seconds": True}]}, "probes[0].seconds: a number"),
        ({"probes": [{**PROBE, "seconds": -1}]}, "probes[0].seconds: a number, not negative"),
        ({"transactions": [1]}, "transactions[0]: a number"),
        ({"schema": 1}, "schema: a number; a text belongs here"),
        ({"schema": "envaudit.snapshot"}, "it ends in a number"),
        ({"schema": "envaudit.snapshot/0"}, "it ends in a number"),
        ({"schema": "envaudit.snapshot/01"}, "it ends in a number"),
        ({"schema": "envaudit.snapshot/1.5"}, "it ends in a number"),
        ({"schema": "envaudit.report/1"}, "this is a report, not a snapshot"),
        ({"schema": "envaudit.diff/1"}, "this is a comparison, not a snapshot"),
        ({"schema": "envaudit.rules/1"}, "this is rules data, not a snapshot"),
        ({"schema": "http://example.org/x"}, "this is http://example.org/x, not a snapshot"),
        ({"schema": "\x1b]0;"}, "schema: "),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_wrong_form_is_told_by_its_place(change: dict[str, Any], words: str) -> None:
    assert words in refusal(json.dumps(document(**change)).encode()).message


def test_a_newer_schema_is_refused_before_anything_else_is_looked_at() -> None:
    assert refusal(b'{"schema": "envaudit.snapshot/2", "facts": 7}').message == (
        "x.json: made by a newer envaudit (schema 2); this one reads up to 1: update envaudit"
    )


def test_an_older_schema_is_upgraded_step_by_step(monkeypatch: pytest.MonkeyPatch) -> None:
    def to_2(old: dict[str, Any]) -> dict[str, Any]:
        return {**old, "facts": old["seen"]}

    def to_3(old: dict[str, Any]) -> dict[str, Any]:
        return {**old, "taken_at": old["when"]}

    monkeypatch.setattr(snapshots, "SCHEMA_NUMBER", 3)
    monkeypatch.setattr(snapshots, "UPGRADES", {1: to_2, 2: to_3})
    first = document(facts=..., taken_at=..., seen={"a.b": FACT}, when="2020-01-01T00:00:00Z")
    second = document(schema="envaudit.snapshot/2", taken_at=..., when="2020-01-01T00:00:00Z")
    assert read(first).facts["a.b"].value == 1
    assert read(first).taken_at == read(second).taken_at == "2020-01-01T00:00:00Z"
    assert '"schema": "envaudit.snapshot/3"' in dump(read(first))


def test_every_older_schema_has_its_upgrade() -> None:
    assert sorted(snapshots.UPGRADES) == list(range(1, snapshots.SCHEMA_NUMBER))


def test_additions_of_a_later_release_are_ignored() -> None:
    plain = read(document())
    fact = {"value": "580.65.06", "source": "/proc/version", "note": None}
    assert read(document(extra={"x": None}, facts={"driver.version": fact})) == plain


def test_a_missing_fingerprint_is_computed() -> None:
    snapshot = read(document(fingerprint=...))
    assert snapshot.fingerprint == fingerprint(snapshot) != ""


def test_reading_a_snapshot_needs_no_schema_library() -> None:
    code = (
        "import sys; from envaudit.snapshot import read_file\n"
        "read_file(sys.argv[1])\n"
        "heavy = {'jsonschema', 'hashlib', 'subprocess', 'datetime'} & set(sys.modules)\n"
        "sys.exit(str(heavy) if heavy else 0)"
    )
    file = Path(__file__).parent / "machines" / "none.json"
    done = subprocess.run(
        [sys.executable, "-c", code, "/dev/stdin"],
        input=json.dumps(document()),
        capture_output=True,
        text=True,
        check=False,
        cwd=file.parent.parent.parent,
    )
    assert (done.returncode, done.stderr) == (0, "")


# -- the schema for others says the same -----------------------------------------------------

formats = jsonschema.FormatChecker(formats=())


@formats.checks("date-time")
def is_time(value: object) -> bool:
    if not isinstance(value, str):
        return True
    try:
        datetime.fromisoformat(value.removesuffix("Z")[:19])
    except ValueError:
        return False
    return value.endswith("Z")


validator = jsonschema.Draft202012Validator(SCHEMA, format_checker=formats)

anything = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(10**33), 10**33),
        st.floats(-1e33, 1e33),
        st.sampled_from(["", "a.b", "x\n", "ok", "high", "*.a", "a b.c", "é.x", "\x7f", "s" * 257]),
        st.sampled_from(["2026-11-30T14:15:00Z", "2026-02-30T14:15:00Z", "2026-11-30T14:15:00"]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["a.b", "value", "source", "", "x\n"]), inner, max_size=3),
    ),
    max_leaves=6,
)
keys = st.sampled_from(
    ["schema", "id", "label", "taken_at", "fingerprint", "tool", "host", "target", "facts"]
    + ["probes", "transactions", "other"]
)
probe_keys = st.sampled_from(["name", "status", "detail", "provides", "gaps", "seconds", "more"])


@st.composite
def documents(draw: st.DrawFn) -> Any:
    """Whole snapshots with a few wrong places, and flat files."""
    if draw(st.booleans()):
        names = st.sampled_from(["a.b", "c", "a b.c", "", "gpu.*", "é.x", ".x", "x" * 257, "a\n.b"])
        return draw(st.dictionaries(names, anything, max_size=4))
    whole = document()
    part = draw(st.integers(0, 3))
    if part == 0:
        whole.update(draw(st.dictionaries(keys, anything, max_size=2)))
        for key in draw(st.lists(keys, max_size=1)):
            whole.pop(key, None)
    elif part == 1:
        whole["facts"] = {draw(st.sampled_from(["a.b", "", "x\n", "a b", "é"])): draw(anything)}
    elif part == 2:
        fact = {
            **FACT,
            **draw(
                st.dictionaries(
                    st.sampled_from(["value", "source", "confidence"]), anything, max_size=2
                )
            ),
        }
        whole["facts"] = {"a.b": fact}
    else:
        whole["probes"] = [{**PROBE, **draw(st.dictionaries(probe_keys, anything, max_size=2))}]
    return whole


@given(documents())
@settings(max_examples=1000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_the_schema_accepts_what_is_read_and_refuses_what_is_not(whole: Any) -> None:
    try:
        read(whole)
    except InputError as problem:
        accepted, why = False, problem.message
    else:
        accepted, why = True, ""
    assert validator.is_valid(whole) == accepted, why


@given(made)
@settings(max_examples=50, deadline=None)
def test_the_schema_accepts_what_is_written(snapshot: Snapshot) -> None:
    validator.validate(json.loads(dump(snapshot)))


def test_the_schema_and_the_reader_have_the_same_bounds() -> None:
    parts = SCHEMA["$defs"]
    assert parts["snapshot"]["properties"]["schema"]["const"] == "envaudit.snapshot/1"
    assert parts["snapshot"]["properties"]["facts"]["maxProperties"] == snapshots.FACTS_LIMIT
    assert parts["snapshot"]["properties"]["probes"]["maxItems"] == snapshots.PROBES_LIMIT
    assert parts["probe"]["properties"]["provides"]["maxItems"] == snapshots.PATTERNS_LIMIT
    assert parts["probe"]["properties"]["gaps"]["maxProperties"] == snapshots.PATTERNS_LIMIT
    assert parts["probe"]["properties"]["status"]["enum"] == list(get_args(ProbeStatus))
    assert parts["fact"]["properties"]["confidence"]["enum"] == list(get_args(Confidence))
    assert parts["flat"]["maxProperties"] == snapshots.FACTS_LIMIT
    assert parts["text"]["maxLength"] == snapshots.TEXT_LIMIT
    assert parts["short"]["maxLength"] == snapshots.NAME_LIMIT
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


# -- flat facts ------------------------------------------------------------------------------


def test_flat_facts_are_known_absent_or_unknown() -> None:
    snapshot = read_flat(
        {"driver.version": "535.54.03", "torch.cuda.version": None, "gpu.count": 2}
    )
    assert snapshot.ask("driver.version") == Fact("driver.version", "535.54.03", "before.json")
    assert snapshot.ask("gpu.count") == Fact("gpu.count", 2, "before.json")
    assert isinstance(snapshot.ask("torch.cuda.version"), Absent)
    assert snapshot.ask("cudnn.version") == Unknown("cudnn.version", "nobody looked")
    assert [run.name for run in snapshot.probes] == ["flat-facts"]
    assert snapshot.taken_at == ""
    assert snapshot.id
    assert snapshot.fingerprint


def read_flat(flat: dict[str, Any]) -> Snapshot:
    return load(json.dumps(flat).encode(), "some/folder/before.json")


def test_a_name_outside_the_catalogue_is_kept() -> None:
    snapshot = read_flat({"torch.backends.cudnn.benchmark": True, "host.disk./.free_ratio": 0.4})
    assert snapshot.facts["torch.backends.cudnn.benchmark"].value is True
    assert snapshot.facts["host.disk./.free_ratio"].value == 0.4


def test_null_for_a_pattern_says_that_there_is_nothing_of_the_kind() -> None:
    snapshot = read_flat({"env.*": None, "env.CUDA_HOME": "/usr/local/cuda"})
    assert isinstance(snapshot.ask("env.LD_LIBRARY_PATH"), Absent)
    assert snapshot.facts["env.CUDA_HOME"].value == "/usr/local/cuda"


def test_flat_facts_can_be_written_as_a_snapshot() -> None:
    snapshot = read_flat({"driver.version": "535.54.03", "torch.cuda.version": None})
    assert load(dump(snapshot).encode(), "x") == snapshot


@pytest.mark.parametrize(
    ("flat", "words"),
    [
        ({}, "neither a snapshot nor flat facts"),
        ({"name": "left-pad", "version": "1.0.0"}, "neither a snapshot nor flat facts"),
        ({"driver.version": {"value": "535"}}, "driver.version: an object; a flat fact is"),
        ({"driver.version": [1, None]}, "driver.version[1]: null"),
        ({"gpu.*.name": "H100"}, "gpu.*.name: a pattern can be null only"),
        ({"the driver.": 1}, "'the driver.' is no fact name"),
        ({".hidden": 1}, "'.hidden' is no fact name"),
        ({"a." + "b" * 255: 1}, "is no fact name"),
        ({f"a.{n}": None for n in range(10_001)}, "10,001 absent facts; at most 10,000"),
        ({f"a.{n}": 1 for n in range(200_001)}, "200,001 facts; at most 200,000"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_no_flat_file_is_told(flat: dict[str, Any], words: str) -> None:
    assert words in refusal(json.dumps(flat).encode()).message


# -- finishing -------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 10**31, ["ok", float("nan")]])
def test_a_value_that_no_file_can_hold_becomes_a_gap(value: Any) -> None:
    looked = ProbeRun("smoke", "ok", provides=("perf.*",))
    bad = Fact("perf.matmul_bf16.flops", value, "test")
    good = Fact("perf.launch.latency_s", 1e-5, "test")
    snapshot = finish(
        Snapshot("", "2026-01-01T00:00:00Z", {f.name: f for f in (bad, good)}, (looked,))
    )
    answer = snapshot.ask(bad.name)
    assert isinstance(answer, Unknown)
    assert "out of range" in answer.reason
    assert snapshot.ask(good.name) == good
    assert load(dump(snapshot).encode(), "x") == snapshot


def test_equal_machines_have_equal_fingerprints() -> None:
    one = minimal({"driver.version": "580.65.06", "gpu.0.uuid": "GPU-1", "gpu.0.temperature": 40})
    two = minimal({"driver.version": "580.65.06", "gpu.0.uuid": "GPU-2", "gpu.0.temperature": 41})
    other = minimal({"driver.version": "580.65.07", "gpu.0.uuid": "GPU-1"})
    assert one.fingerprint == two.fingerprint != other.fingerprint
    assert one.id != two.id
    assert one.id.startswith("20261130141500-")


# -- files -----------------------------------------------------------------------------------


def unreadable(path: str | Path) -> InputError:
    with pytest.raises(InputError) as told:
        read_file(str(path))
    assert "\n" not in told.value.message
    return told.value


def test_a_file_is_read(tmp_path: Path) -> None:
    file = tmp_path / "s.json"
    file.write_text(json.dumps(document()))
    assert read_file(str(file)) == read(document())


def test_what_is_no_readable_file_is_told(tmp_path: Path) -> None:
    assert "no such file" in unreadable(tmp_path / "none.json").message
    assert "a folder, not a file" in unreadable(tmp_path).message
    assert "null" in unreadable("a\0b").message
    assert "Not a directory" in unreadable("/dev/null/x").message
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    assert "symbolic links" in unreadable(tmp_path / "loop").message
    assert "no such file" in unreadable("").message


def test_neither_a_fifo_nor_a_device_is_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "link").symlink_to(tmp_path / "fifo")
    with socket.socket(socket.AF_UNIX) as listening:
        place = os.open(tmp_path, os.O_RDONLY)  # a socket's path may be 107 bytes long at most
        listening.bind(f"/proc/self/fd/{place}/socket")
        os.close(place)
    for path in (tmp_path / "fifo", tmp_path / "link"):
        assert "a named pipe, not a file" in unreadable(path).message
    for path in (tmp_path / "socket", Path("/dev/zero"), Path("/dev/null"), Path("/dev/tty")):
        assert "a socket or device, not a file" in unreadable(path).message


def test_a_file_larger_than_the_bound_is_not_read_to_its_end(tmp_path: Path) -> None:
    with open(tmp_path / "huge", "wb") as file:
        file.truncate(1 << 40)
    assert "larger than 16 MiB" in unreadable(tmp_path / "huge").message


def test_a_file_that_may_not_be_read_is_told(tmp_path: Path) -> None:
    file = tmp_path / "secret.json"
    file.write_text("{}")
    file.chmod(0)
    code = (
        "import os, sys; from envaudit.errors import InputError\n"
        "from envaudit.snapshot import read_bytes\n"
        "os.chdir(sys.argv[1])\n"
        "os.geteuid() or os.setuid(65534)\n"
        "try: read_bytes('secret.json')\n"
        "except InputError as problem: print(problem.message)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parent.parent,
    )
    assert done.stdout == "secret.json: permission denied\n"


def test_the_pipe_of_a_shell_is_read() -> None:
    reading, writing = os.pipe()

    def write_slowly() -> None:
        for byte in json.dumps(document()).encode():
            os.write(writing, bytes([byte]))
        os.close(writing)

    writer = threading.Thread(target=write_slowly)
    writer.start()
    try:
        assert read_file(f"/dev/fd/{reading}") == read(document())
    finally:
        writer.join()
        os.close(reading)


def test_standard_input_is_read_within_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    with open("/dev/zero") as endless:
        monkeypatch.setattr("sys.stdin", endless)
        with pytest.raises(InputError, match="standard input: larger than 16 MiB"):
            read_bytes("-")
    with pytest.raises(InputError, match="standard input: "):
        read_bytes("-")  # closed by now
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(InputError, match="standard input: "):
        read_bytes("-")
