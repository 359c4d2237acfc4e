"""The snapshot file: write, read, finish; the one place that knows its JSON form.

Schema `envaudit.snapshot/1`; a flat JSON object of fact names to plain values is read as well.
matrices/schema/snapshot.schema.json says the same for other programs, and a test holds the two
together: jsonschema alone would take longer to import than a whole check of a file may.
"""

from __future__ import annotations

import json
import os
import re
import stat
import sys
from collections.abc import Callable
from typing import Any, cast, get_args

from envaudit import facts as catalogue
from envaudit.errors import InputError
from envaudit.model import Confidence, Fact, ProbeRun, ProbeStatus, Snapshot, Value

SCHEMA_NAME = "envaudit.snapshot"
SCHEMA_NUMBER = 1
UPGRADES: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {}
"""Schema number to the step that turns such a document into one of the next number."""

SIZE_LIMIT_BYTES = 16 << 20
DEPTH_LIMIT = 32
CONTAINERS_LIMIT = 1_000_000
FACTS_LIMIT = 200_000
PROBES_LIMIT = 1_000
PATTERNS_LIMIT = 10_000
"""Most `provides` and most `gaps` of one probe: every question walks through them."""
TEXT_LIMIT = 1 << 18
NAME_LIMIT = 256
NUMBER_LIMIT = 1e30
"""Far above anything that is measured, and arithmetic on it cannot overflow."""


def finish(snapshot: Snapshot) -> Snapshot:
    """Give a fresh snapshot its fingerprint and id, and leave out what no file can hold.

    A value such as NaN becomes a gap: it was looked at, and still nobody knows.
    """
    kept = {}
    gaps = {}
    for name, fact in snapshot.facts.items():
        problem = _unfit(fact)
        if problem:
            gaps[name] = f"not kept: {problem}"
        else:
            kept[name] = fact
    if gaps:
        run = ProbeRun("snapshot", "ok", provides=tuple(gaps), gaps=gaps)
        snapshot = snapshot._replace(facts=kept, probes=(*snapshot.probes, run))
    content = json.dumps(
        [snapshot.taken_at, {n: f.value for n, f in snapshot.facts.items()}], sort_keys=True
    )
    digest = _digest(content)[:8]
    stamp = "".join(c for c in snapshot.taken_at if c.isdigit())[:14]
    identity = snapshot.id or (f"{stamp}-{digest}" if stamp else digest)
    return snapshot._replace(fingerprint=fingerprint(snapshot), id=identity)


def fingerprint(snapshot: Snapshot) -> str:
    """Hash over the static and configured facts that do not tell equal machines apart."""
    kept = {}
    for name, fact in snapshot.facts.items():
        spec = catalogue.spec_of(name)
        if spec is not None and spec.stability in ("static", "config") and not spec.identity:
            kept[name] = fact.value
    return _digest(json.dumps(kept, sort_keys=True))[:16]


def _digest(text: str) -> str:
    # hashlib loads OpenSSL, which takes longer than all the rest of reading a file.
    try:
        from _sha2 import sha256  # type: ignore[import-not-found]  # Python 3.12 and newer
    except ImportError:
        try:
            from _sha256 import sha256  # type: ignore[import-not-found]
        except ImportError:
            from hashlib import sha256
    return str(sha256(text.encode()).hexdigest())


def _unfit(fact: Fact) -> str:
    try:
        _value(fact.name, fact.value)
    except InputError as problem:
        return problem.message
    return ""


# -- writing ---------------------------------------------------------------------------------


def dump(snapshot: Snapshot) -> str:
    """The file's text: keys sorted, one final newline, always encodable as UTF-8."""
    data: dict[str, Any] = {
        "schema": f"{SCHEMA_NAME}/{SCHEMA_NUMBER}",
        "id": snapshot.id,
        "label": snapshot.label,
        "taken_at": snapshot.taken_at,
        "fingerprint": snapshot.fingerprint,
        "tool": dict(snapshot.tool),
        "host": dict(snapshot.host),
        "target": dict(snapshot.target),
        "facts": {name: _fact_data(fact) for name, fact in snapshot.facts.items()},
        "probes": [
            {
                "name": run.name,
                "status": run.status,
                "detail": run.detail,
                "provides": list(run.provides),
                "gaps": dict(run.gaps),
                "seconds": run.seconds,
            }
            for run in snapshot.probes
        ],
        "transactions": [dict(transaction) for transaction in snapshot.transactions],
    }
    return encode(data)


def _fact_data(fact: Fact) -> dict[str, Any]:
    data: dict[str, Any] = {"value": fact.value, "source": fact.source}
    if fact.confidence != "high":
        data["confidence"] = fact.confidence
    return data


_SURROGATE = re.compile("[\ud800-\udfff]")


def encode(document: dict[str, Any]) -> str:
    """A snapshot document as its file's text.

    Half a surrogate pair (an undecodable byte of a path, as os.fsdecode gives it) has no UTF-8
    form and would make the file unreadable for others: it is written out as the text \\udc80.
    """
    text = json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    return _SURROGATE.sub(lambda found: f"\\\\u{ord(found[0]):04x}", text)


# -- reading ---------------------------------------------------------------------------------


def read_file(path: str) -> Snapshot:
    """The snapshot (or flat facts) in a file. Raises InputError with one clear line."""
    return load(read_bytes(path), path)


def read_bytes(path: str) -> bytes:
    """The content of a file from outside, or of standard input for "-"; bounded, never hanging.

    Only a regular file is opened, and the pipe that a shell's <(command) makes: opening a FIFO
    can wait for ever, and opening a device can do anything. Raises InputError.
    """
    if path == "-":
        try:
            return _within_limit("standard input", sys.stdin.buffer.read(SIZE_LIMIT_BYTES + 1))
        except (OSError, AttributeError, ValueError) as problem:
            raise InputError(f"standard input: {problem}") from problem
    name = _one_line(path)
    try:
        mode = os.stat(path).st_mode
        piped = stat.S_ISFIFO(mode) and path.startswith(("/dev/fd/", "/proc/self/fd/", "/dev/std"))
        if not stat.S_ISREG(mode) and not piped:
            raise _not_a_file(name, mode)
        fd = os.open(path, os.O_RDONLY | _NONBLOCK)  # it may have become a FIFO since
        try:
            if piped:
                os.set_blocking(fd, True)
            elif not stat.S_ISREG(os.fstat(fd).st_mode):
                raise _not_a_file(name, os.fstat(fd).st_mode)
            return _within_limit(name, _read(fd, SIZE_LIMIT_BYTES + 1))
        finally:
            os.close(fd)
    except FileNotFoundError as problem:
        raise InputError(
            f"{name}: no such file", "Stored snapshots are listed by: envaudit snapshots"
        ) from problem
    except PermissionError as problem:
        raise InputError(
            f"{name}: permission denied", "Read it as the user who owns it, or give a copy."
        ) from problem
    except OSError as problem:
        raise InputError(f"{name}: {problem.strerror or problem}") from problem
    except ValueError as problem:  # a NUL in the path
        raise InputError(f"{name}: {problem}") from problem


_NONBLOCK = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_BINARY", 0)


def _read(fd: int, limit: int) -> bytes:
    parts = []
    while limit > 0:
        part = os.read(fd, min(limit, 1 << 20))
        if not part:
            break
        parts.append(part)
        limit -= len(part)
    return b"".join(parts)


_TOO_LARGE = f"larger than {SIZE_LIMIT_BYTES >> 20} MiB"


def _within_limit(name: str, data: bytes) -> bytes:
    if len(data) > SIZE_LIMIT_BYTES:
        raise InputError(f"{name}: {_TOO_LARGE}")
    return data


def _not_a_file(name: str, mode: int) -> InputError:
    if stat.S_ISDIR(mode):
        return InputError(f"{name}: a folder, not a file", "Give one of the files in it.")
    kind = "a named pipe" if stat.S_ISFIFO(mode) else "a socket or device"
    return InputError(f"{name}: {kind}, not a file", "Give - to read from standard input.")


def _one_line(path: str) -> str:
    return path if path.isprintable() else ascii(path)


def load(data: bytes, name: str) -> Snapshot:
    """A snapshot (or flat facts) from a file's bytes. Raises InputError with one clear line.

    `name` is what the reader calls the file; a flat fact has its last part as source.
    """
    try:
        document = _parse(data)
        if "schema" in document:
            return _snapshot(_upgraded(document))
        return _flat(document, os.path.basename(name) or name)
    except InputError as problem:
        raise InputError(f"{_one_line(name)}: {problem.message}", problem.hint) from None


# From bytes to a JSON object, whatever the bytes are.


def _parse(data: bytes) -> dict[str, Any]:
    if len(data) > SIZE_LIMIT_BYTES:
        raise InputError(_TOO_LARGE)
    text = _decode(data)
    if not text.strip():
        raise InputError("empty", "A write that was cut short leaves such a file.")
    _check_shape(data)
    try:
        document = json.loads(
            text,
            object_pairs_hook=_object,
            parse_int=_integer,
            parse_constant=_constant,
        )
    except json.JSONDecodeError as problem:
        raise _syntax(text, problem) from None
    if not isinstance(document, dict):
        raise InputError(f"{_kind(document)}; a snapshot is a JSON object")
    if re.search(_SURROGATE_ESCAPE, data):
        _check_surrogates("", document)
    return document


def _decode(data: bytes) -> str:
    if data.startswith(b"\x1f\x8b"):
        raise InputError("compressed by gzip", "Unpack it first: gunzip FILE")
    if data.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in data[:4]:
        raise InputError(
            "UTF-16 text, not UTF-8",
            "Windows PowerShell's > writes that; -o FILE writes UTF-8.",
        )
    try:
        return data.removeprefix(b"\xef\xbb\xbf").decode()
    except UnicodeDecodeError as problem:
        raise InputError(
            f"not UTF-8 text (byte 0x{data[problem.start]:02x} at offset {problem.start})"
        ) from None


_NOT_BRACKETS = bytes(byte for byte in range(256) if byte not in b"[]{}")


def _check_shape(data: bytes) -> None:
    """Refuse deep nesting and floods before the parser meets them: it recurses, and allocates."""
    # Without escapes every quote is the end of a text, so that each second part lies outside.
    outside = b"".join(data.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')[::2])
    brackets = outside.translate(None, _NOT_BRACKETS)
    if len(brackets) > 2 * CONTAINERS_LIMIT:
        raise InputError(f"more than {CONTAINERS_LIMIT:,} lists and objects")
    depth = 0
    for bracket in brackets:
        depth += 1 if bracket in b"[{" else -1
        if depth > DEPTH_LIMIT:
            raise InputError(f"lists and objects nested deeper than {DEPTH_LIMIT}")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        seen = set()
        for key, _ in pairs:
            if key in seen:
                raise InputError(f"{_part(key)} stands twice in one object")
            seen.add(key)
    return result


def _integer(text: str) -> int:
    if len(text) > 40:  # int() takes quadratic time, and later releases refuse long texts
        raise InputError(f"a number of {len(text)} digits")
    return int(text)


def _constant(text: str) -> Any:
    raise InputError(f"{text} is not a number that JSON has")


_CUT_SHORT = r"\s*(t(ru?)?|f(a(ls?)?)?|n(ul?)?|-|\.|\.?[0-9]*[eE][+-]?)?\s*\Z"
"""What the parser may have left when a file ends in the middle of a word or number."""


def _syntax(text: str, problem: json.JSONDecodeError) -> InputError:
    rest = text[problem.pos : problem.pos + 80]
    at_end = problem.pos + 80 >= len(text)
    if problem.msg == "Extra data":
        return InputError(f"more text after the end of the JSON object, at line {problem.lineno}")
    if (
        problem.msg.startswith("Unterminated string")
        or (at_end and re.match(_CUT_SHORT, rest))
        or (at_end and "escape" in problem.msg and '"' not in rest)
    ):
        last = text.rstrip().count("\n") + 1
        return InputError(
            f"ends in the middle, at line {last}", "It was cut short: copy or write it again."
        )
    if not text.lstrip().startswith("{"):
        return InputError("not a snapshot: the text is not JSON")
    return InputError(
        f"not valid JSON at line {problem.lineno}, column {problem.colno}: {problem.msg.lower()}"
    )


_SURROGATE_ESCAPE = rb"\\u[dD][89a-fA-F]"


def _check_surrogates(place: str, value: Any) -> None:
    if isinstance(value, str):
        if _SURROGATE.search(value):
            raise InputError(f"{place or 'a name'}: half of a surrogate pair, which is no text")
    elif isinstance(value, dict):
        for key, item in value.items():
            _check_surrogates("", key)
            _check_surrogates(_below(place, key), item)
    elif isinstance(value, list):
        for number, item in enumerate(value):
            _check_surrogates(f"{place}[{number}]", item)


# From a JSON object to a snapshot.

_KIND = {dict: "an object", list: "a list", str: "a text", bool: "true or false"}


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    return _KIND.get(type(value), "a number")


def _part(key: str) -> str:
    """A key as it can be shown: whatever a file says must not reach a terminal as it is."""
    return key if len(key) <= 100 and key.isprintable() else f"{key[:60]!a}..."


def _below(place: str, key: str) -> str:
    return f"{place}.{_part(key)}" if place else _part(key)


def _text(place: str, value: Any) -> str:
    if type(value) is not str:
        raise InputError(f"{place}: {_kind(value)}; a text belongs here")
    if len(value) > TEXT_LIMIT:
        raise InputError(f"{place}: a text of {len(value):,} characters; at most {TEXT_LIMIT:,}")
    return value


_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")


def _short(place: str, value: Any) -> str:
    """A name of some kind: short, not empty, on one line."""
    text = _text(place, value)
    if not text:
        raise InputError(f"{place}: empty")
    if len(text) > NAME_LIMIT:
        raise InputError(f"{place}: {len(text):,} characters; at most {NAME_LIMIT}")
    if _CONTROL.search(text):
        raise InputError(f"{place}: {text!a} has a control character")
    return text


def _mapping(place: str, value: Any) -> dict[str, Any]:
    if type(value) is not dict:
        raise InputError(f"{place}: {_kind(value)}; an object belongs here")
    return value


def _sequence(place: str, value: Any, limit: int) -> list[Any]:
    if type(value) is not list:
        raise InputError(f"{place}: {_kind(value)}; a list belongs here")
    if len(value) > limit:
        raise InputError(f"{place}: {len(value):,} entries; at most {limit:,}")
    return value


def _value(place: str, value: Any) -> Value:
    kind = type(value)
    if kind is str:
        return _text(place, value)
    if kind is bool:
        return cast(bool, value)
    if kind is int or kind is float:
        if not -NUMBER_LIMIT <= value <= NUMBER_LIMIT:  # NaN is on neither side
            raise InputError(f"{place}: a number out of range")
        return cast(float, value)
    if kind is list:
        for number, item in enumerate(value):
            _value(f"{place}[{number}]", item)
        return cast(Value, value)
    if kind is dict:
        for key, item in value.items():
            _value(_below(place, key), item)
        return cast(Value, value)
    raise InputError(
        f"{place}: null; what is absent is left out"
        if value is None
        else f"{place}: {kind.__name__} is nothing that JSON has"
    )


def _values(place: str, value: Any) -> dict[str, Value]:
    mapping = _mapping(place, value)
    _value(place, mapping)
    return mapping


_KINDS_OF_FILE = {
    "report": "a report",
    "diff": "a comparison",
    "recommendation": "a recommendation",
}


def _upgraded(document: dict[str, Any]) -> dict[str, Any]:
    """A document of any schema number up to ours, brought to ours step by step."""
    schema = _short("schema", document["schema"])
    family, _, digits = schema.partition("/")
    if family != SCHEMA_NAME:
        _, ours, rest = family.partition("envaudit.")
        what = _KINDS_OF_FILE.get(rest, f"{_part(rest)} data") if ours else _part(schema)
        raise InputError(
            f"this is {what}, not a snapshot",
            "envaudit snapshot -o FILE writes a snapshot.",
        )
    if not re.fullmatch("[1-9][0-9]{0,8}", digits):
        raise InputError(f"schema: {_part(schema)}; it ends in a number, as {SCHEMA_NAME}/1 does")
    number = int(digits)
    if number > SCHEMA_NUMBER:
        raise InputError(
            f"made by a newer envaudit (schema {number}); this one reads up to {SCHEMA_NUMBER}: "
            "update envaudit"
        )
    for step in range(number, SCHEMA_NUMBER):
        document = UPGRADES[step](document)
    return document


def _snapshot(document: dict[str, Any]) -> Snapshot:
    """A snapshot from a document of our schema number; keys that we do not know are left out."""
    for key in ("id", "taken_at", "facts", "probes"):
        if key not in document:
            raise InputError(f'has no "{key}"')
    raw_facts = _mapping("facts", document["facts"])
    if len(raw_facts) > FACTS_LIMIT:
        raise InputError(f"facts: {len(raw_facts):,} of them; at most {FACTS_LIMIT:,}")
    raw_probes = _sequence("probes", document["probes"], PROBES_LIMIT)
    raw_transactions = _sequence("transactions", document.get("transactions", []), FACTS_LIMIT)
    label = document.get("label")
    snapshot = Snapshot(
        id=_short("id", document["id"]),
        taken_at=_time("taken_at", document["taken_at"]),
        facts={name: _fact(name, raw) for name, raw in raw_facts.items()},
        probes=tuple(_probe(f"probes[{n}]", raw) for n, raw in enumerate(raw_probes)),
        fingerprint=_text("fingerprint", document.get("fingerprint", "")),
        label=None if label is None else _short("label", label),
        tool=_values("tool", document.get("tool", {})),
        host=_values("host", document.get("host", {})),
        target=_values("target", document.get("target", {})),
        transactions=tuple(
            _values(f"transactions[{n}]", raw) for n, raw in enumerate(raw_transactions)
        ),
    )
    if snapshot.fingerprint:
        return snapshot
    return snapshot._replace(fingerprint=fingerprint(snapshot))


def _time(place: str, value: Any) -> str:
    """A time in RFC 3339 UTC; empty in a snapshot of something that does not say when."""
    text = _text(place, value)
    if text and not is_utc_time(text):
        raise InputError(f"{place}: {_part(text)}; a time is written 2026-11-30T14:15:00Z")
    return text


_UTC_TIME = r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.\d{1,9})?Z"
_MONTHS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def is_utc_time(text: str) -> bool:
    """Whether a text is a time as snapshots have it: RFC 3339, in UTC, with Z."""
    found = re.fullmatch(_UTC_TIME, text, re.ASCII)
    if not found:
        return False
    year, month, day, hour, minute, second = map(int, found.groups())
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return (
        year > 0
        and 1 <= month <= 12
        and 1 <= day <= _MONTHS[month - 1]
        and (leap or (month, day) != (2, 29))
        and hour < 24
        and minute < 60
        and second < 60
    )


_CONFIDENCES = get_args(Confidence)
_STATUSES = get_args(ProbeStatus)


def _fact(name: str, raw: Any) -> Fact:
    place = f"facts.{_part(name)}"
    _short(place, name)
    entry = _mapping(place, raw)
    if "value" not in entry or "source" not in entry:
        raise InputError(f'{place}: a fact has a "value" and a "source"')
    confidence = entry.get("confidence", "high")
    if confidence not in _CONFIDENCES:
        raise InputError(f"{place}.confidence: one of {', '.join(_CONFIDENCES)}")
    return Fact(
        name,
        _value(place, entry["value"]),
        _text(f"{place}.source", entry["source"]),
        confidence,
    )


def _probe(place: str, raw: Any) -> ProbeRun:
    entry = _mapping(place, raw)
    for key in ("name", "status"):
        if key not in entry:
            raise InputError(f'{place}: has no "{key}"')
    status = entry["status"]
    if status not in _STATUSES:
        raise InputError(f"{place}.status: one of {', '.join(_STATUSES)}")
    provides = _sequence(f"{place}.provides", entry.get("provides", []), PATTERNS_LIMIT)
    gaps = _mapping(f"{place}.gaps", entry.get("gaps", {}))
    if len(gaps) > PATTERNS_LIMIT:
        raise InputError(f"{place}.gaps: {len(gaps):,} of them; at most {PATTERNS_LIMIT:,}")
    seconds = entry.get("seconds", 0.0)
    if type(seconds) not in (int, float) or not 0 <= seconds <= NUMBER_LIMIT:
        raise InputError(f"{place}.seconds: a number, not negative")
    return ProbeRun(
        _short(f"{place}.name", entry["name"]),
        status,
        _text(f"{place}.detail", entry.get("detail", "")),
        tuple(_short(f"{place}.provides[{n}]", item) for n, item in enumerate(provides)),
        {
            _short(f"{place}.gaps", gap): _text(f"{place}.gaps.{_part(gap)}", reason)
            for gap, reason in gaps.items()
        },
        seconds,
    )


_FLAT_NAME = r"[A-Za-z0-9_][^\s\x00-\x1f\x7f-\x9f]*"
FLAT_PROBE = "flat-facts"
"""Name of the probe run that stands for a flat file."""


def _flat(document: dict[str, Any], source: str) -> Snapshot:
    """A snapshot from flat facts: null says absent, and what is not said is unknown.

    null for a pattern ("env.*") says that there is nothing of that kind beyond what is told.
    """
    if len(document) > FACTS_LIMIT:
        raise InputError(f"{len(document):,} facts; at most {FACTS_LIMIT:,}")
    if not any("." in name for name in document):
        raise InputError(
            "neither a snapshot nor flat facts",
            'Flat facts look like this: {"driver.version": "580.65.06", "torch.version": null}.',
        )
    facts = {}
    absent = []
    for name, value in document.items():
        if not re.fullmatch(_FLAT_NAME, name) or len(name) > NAME_LIMIT:
            raise InputError(f"{name[:60]!a} is no fact name, such as driver.version")
        if value is None:
            absent.append(name)
        elif type(value) is dict:
            raise InputError(f"{_part(name)}: an object; a flat fact is a plain value or a list")
        elif "*" in name:
            raise InputError(f"{_part(name)}: a pattern can be null only")
        else:
            facts[name] = Fact(name, _value(_part(name), value), source)
    if len(absent) > PATTERNS_LIMIT:
        raise InputError(f"{len(absent):,} absent facts; at most {PATTERNS_LIMIT:,}")
    run = ProbeRun(FLAT_PROBE, "ok", provides=tuple(absent))
    return finish(Snapshot(id="", taken_at="", facts=facts, probes=(run,)))
