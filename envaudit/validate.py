"""Refuse own rows that would crash or silently never hold, with file, row and what is wrong.

The schemas say the form. Here stands what a schema cannot say: that names exist (facts, causes,
catalogues, columns, variables), that patterns, ranges and versions can be read, that rows of a
table do not contradict one another, and which part of a condition is the wrong one.
"""

from __future__ import annotations

import difflib
import itertools
import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import jsonschema
from jsonschema.exceptions import best_match

from envaudit.constraint import OPERATORS, Incomparable, compare, in_range
from envaudit.errors import MatrixError
from envaudit.facts import CATALOGUE, spec_of
from envaudit.matrix import KINDS, Catalogue, Matrices, json_files, product_words, read_json
from envaudit.model import covers
from envaudit.signals import find_signature

NO_PART = ("range", "has", "lacks", "matches", "free_of")
"""Operators that compare whole values: `part` would be ignored."""

_COMBINING = ("any", "all", "not", "code", "fact")
_ORDERED = ("<", "<=", ">", ">=", "same", "differs")
_EXACT = ("==", "!=", "in", "not_in")
_PARTS = ("major", "minor", "patch")
_BESIDE_COLUMNS = ("sources", "confidence", "note")
_PLACE = re.compile(r"\{([^{}]+)\}")

READ_BY_CODE = {"binary-compatibility": ("compiled_for", "runs_on")}
"""Columns that the condition `code` reads itself: every row needs them."""


class _Wrong(Exception):
    """What is wrong, at which place inside the row."""


def validate_folder(folder: str, known: Matrices) -> None:
    """Check every file of a folder of rows. Raises MatrixError on the first that is wrong.

    `known` is the knowledge the rows may refer to: the shipped folder and all that lies over it.
    """
    if not os.path.isdir(folder):
        raise MatrixError(f"--matrices {folder}: no such folder")
    schemas = os.path.join(known.folders[0], "schema")
    seen = _check_list(folder, "causes", schemas)
    seen |= _check_list(folder, "components", schemas)
    for name in json_files(folder):
        if name not in ("causes.json", "components.json", "index.json", "rows.json"):
            places = ", ".join(f"{kind}/" for kind in KINDS)
            raise MatrixError(f"{os.path.join(folder, name)}: rows belong into one of {places}")
    files = []
    for kind in KINDS:
        for name in json_files(os.path.join(folder, kind)):
            path = os.path.join(folder, kind, name)
            files.append((kind, path, _read(path)))
            _check_form(kind, path, files[-1][2], schemas)
    if not files and not seen:
        raise MatrixError(
            f"--matrices {folder}: no rules/, derive/ or catalogues/ with JSON files in it"
        )
    for kind, path, data in files:
        if kind == "catalogues":  # before the rows that look things up in them
            _check_catalogue(path, data, known)
    ids: dict[tuple[str, str], str] = {}
    for kind, path, data in files:
        for number, row in enumerate(data["rows"] if kind != "catalogues" else ()):
            before = ids.setdefault((kind, row["id"]), path)
            if before != path or any(row["id"] == other["id"] for other in data["rows"][:number]):
                raise MatrixError(f"{path}: rows/{number}: the id {row['id']} stands in {before}")
            with _at(path, number, row):
                _check_row(kind, row, known)


@contextmanager
def _at(path: str, number: int, row: Any) -> Iterator[None]:
    """Name file and row of what is wrong inside."""
    try:
        yield
    except _Wrong as problem:
        name = row.get("id") if isinstance(row, dict) else None
        named = f" ({name})" if isinstance(name, str) else ""
        text = str(problem) if len(str(problem)) <= 300 else f"{str(problem)[:300]}..."
        raise MatrixError(f"{path}: rows/{number}{named}: {text}") from None


def _near(name: str, names: Collection[str]) -> str:
    """Ending of a message: the name that was probably meant."""
    found = difflib.get_close_matches(name, names, 1)
    return f"; did you mean {found[0]}?" if found else ""


# -- files and their form -----------------------------------------------------------------------


def _read(path: str) -> Any:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            names = [name for name, _ in pairs]
            twice = next(name for name in names if names.count(name) > 1)
            raise MatrixError(f"{path}: the key {twice!r} stands twice in one object")
        return found

    return read_json(path, once)


def _check_list(folder: str, kind: str, schemas: str) -> bool:
    """Check causes.json or components.json; whether there is one."""
    path = os.path.join(folder, f"{kind}.json")
    if not os.path.exists(path):
        return False
    data = _read(path)
    error = _first_error(data, os.path.join(schemas, f"{kind}.schema.json"))
    if error is not None:
        raise MatrixError(f"{path}: {_named(data, error.absolute_path)}: {_message(error)}")
    ids = [row["id"] for row in data[kind]]
    for number, name in enumerate(ids):
        if name in ids[:number]:
            raise MatrixError(f"{path}: {kind}/{number}: the id {name} stands there twice")
    return True


def _check_form(kind: str, path: str, data: Any, schemas: str) -> None:
    error = _first_error(data, os.path.join(schemas, f"{kind}.schema.json"))
    if error is not None:
        place = list(error.absolute_path)
        if len(place) > 1 and place[0] == "rows":
            row = data["rows"][place[1]]
            with _at(path, int(place[1]), row):  # says what a schema of alternatives cannot
                for within, condition in _conditions(row):
                    _check_condition(within, condition, _Names(row, None))
        raise MatrixError(f"{path}: {_named(data, place)}: {_message(error)}")
    stem = os.path.basename(path)[: -len(".json")]
    if data["name"] != stem:
        raise MatrixError(f"{path}: name: it is {data['name']!r}; the file's name says {stem!r}")
    for number, row in enumerate(data["rows"]):
        with _at(path, number, row):
            for key in row.get("sources", ()):
                if key not in data["sources"]:
                    hint = _near(key, data["sources"])
                    raise _Wrong(f"source {key!r} is not in sources{hint}")


def _first_error(data: Any, schema: str) -> jsonschema.ValidationError | None:
    validator = jsonschema.Draft202012Validator(read_json(schema))
    errors = sorted(validator.iter_errors(data), key=lambda e: [str(part) for part in e.path])
    if not errors:
        return None
    found: jsonschema.ValidationError = best_match(errors[:1])
    return found


def _message(error: jsonschema.ValidationError) -> str:
    """What is wrong, without the whole of what is wrong: a row may be long."""
    if error.validator in ("anyOf", "oneOf"):
        if error.context:
            return "; or ".join(dict.fromkeys(_message(each) for each in error.context))
        choices: Any = error.validator_value
        names = [name for each in choices for name in each.get("required", ())]
        return f"one of {', '.join(names)}, not several"
    shown, text = repr(error.instance), error.message
    if len(shown) > 80 and text.startswith(shown):
        text = shown[:60] + "..." + text[len(shown) :]
    return text if len(text) <= 200 else text[:200] + "..."


def _named(data: Any, place: Sequence[str | int]) -> str:
    """A place in a file, with the row's id where it has one."""
    parts = [str(part) for part in place]
    if len(parts) > 1 and isinstance(data[place[0]], list):
        row = data[place[0]][place[1]]
        if isinstance(row, dict) and isinstance(row.get("id"), str):
            parts[1] += f" ({row['id']})"
            parts[:2] = [f"{parts[0]}/{parts[1]}" + (":" if parts[2:] else "")]
            return " ".join([parts[0], "/".join(parts[1:])]).strip()
    return "/".join(parts) or "top level"


# -- rows of rules/ and derive/ -----------------------------------------------------------------


class _Names:
    """What the names of one row may be: its variables, and what is known beside it."""

    def __init__(self, row: Any, known: Matrices | None) -> None:
        self.known = known
        """None while only the form is looked at."""
        self.bound: dict[str, list[str]] = {}
        over = row.get("for") if isinstance(row, dict) else None
        for variable, choices in over.items() if isinstance(over, dict) else ():
            if isinstance(choices, str):
                self.bound[variable] = [choices.replace("*", "0")]
            elif isinstance(choices, list):
                self.bound[variable] = [each for each in choices if isinstance(each, str)]

    def fact(self, place: str, name: Any) -> str | None:
        """Check a fact name; returns its kind, or None where it has several."""
        if not isinstance(name, str):
            raise _Wrong(f"{place}: a fact name is a text")
        if self.known is None:
            return None
        kinds = set()
        for filled in self.filled(place, name):
            spec = spec_of(filled)
            if spec is None or "*" in filled:
                names = [each.pattern for each in CATALOGUE]
                shown = re.sub(r"\{\w+\}", "*", name)
                hint = _near(filled, names) or _near(shown, names)
                raise _Wrong(f"{place}: there is no fact {name}{hint} (see envaudit facts)")
            kinds.add(spec.kind)
        return kinds.pop() if len(kinds) == 1 else None

    def filled(self, place: str, text: str) -> Iterator[str]:
        """The text with every choice of its variables put in, one variable at a time."""
        texts = [text]
        for variable in _PLACE.findall(text):
            if variable not in self.bound:
                hint = _near(variable, self.bound)
                raise _Wrong(f"{place}: the variable {{{variable}}} is not bound by for{hint}")
            texts = [
                each.replace("{" + variable + "}", choice)
                for each in texts
                for choice in self.bound[variable]
            ]
        return iter(texts)


def _conditions(row: Any) -> Iterator[tuple[str, Any]]:
    """Every condition of a row with its place, as far as the row has the form for it."""
    if not isinstance(row, dict):
        return
    for part in ("when", "unless", "require", "prove"):
        if isinstance(row.get(part), list):
            for number, condition in enumerate(row[part]):
                yield f"{part}/{number}", condition
    if isinstance(row.get("fix"), list):
        for number, fix in enumerate(row["fix"]):
            for place, condition in _conditions(fix):
                yield f"fix/{number}/{place}", condition


def _check_condition(place: str, condition: Any, names: _Names) -> None:
    if not isinstance(condition, dict):
        raise _Wrong(f"{place}: a condition is an object")
    kinds = [key for key in _COMBINING if key in condition]
    if len(kinds) != 1:
        found = "none" if not kinds else " and ".join(kinds)
        raise _Wrong(f"{place}: a condition has one of {', '.join(_COMBINING)}; this has {found}")
    kind = kinds[0]
    if kind in ("any", "all"):
        _only(place, condition, (kind,))
        if not isinstance(condition[kind], list) or not condition[kind]:
            raise _Wrong(f"{place}: {kind} is a list of conditions")
        for number, each in enumerate(condition[kind]):
            _check_condition(f"{place}/{kind}/{number}", each, names)
    elif kind == "not":
        _only(place, condition, (kind,))
        _check_condition(f"{place}/not", condition["not"], names)
    elif kind == "code":
        _only(place, condition, ("code", "in"))
        said = condition["code"]
        if not isinstance(said, dict) or set(said) != {"of", "on"} or "in" not in condition:
            raise _Wrong(f'{place}: code is {{"code": {{"of": FACT, "on": FACT}}, "in": [...]}}')
        names.fact(f"{place}/code/of", said["of"])
        names.fact(f"{place}/code/on", said["on"])
    else:
        _check_comparison(place, condition, names)


def _only(place: str, condition: Mapping[str, Any], allowed: Collection[str]) -> None:
    for key in condition:
        if key not in allowed:
            raise _Wrong(f"{place}: {key} does not go with {next(iter(allowed))}")


def _check_comparison(place: str, condition: Mapping[str, Any], names: _Names) -> None:
    kind = names.fact(f"{place}/fact", condition["fact"])
    operators = [key for key in condition if key in OPERATORS]
    for key in condition:
        if key not in OPERATORS and key not in ("fact", "is", "part"):
            hint = _near(key, OPERATORS)
            raise _Wrong(f"{place}: no operator {key!r} among {', '.join(OPERATORS)}{hint}")
    if "is" in condition:
        if operators or "part" in condition:
            raise _Wrong(f"{place}: {(operators or ['part'])[0]} does not go with is")
        if condition["is"] not in ("present", "absent"):
            raise _Wrong(f"{place}: is {condition['is']!r}: it is present or absent")
        return
    if not operators:
        raise _Wrong(f"{place}: no operator among {', '.join(OPERATORS)}")
    if len(operators) > 1:
        raise _Wrong(f"{place}: two operators, {' and '.join(operators)}: write two conditions")
    operator = operators[0]
    if "part" in condition:
        if condition["part"] not in _PARTS:
            raise _Wrong(f"{place}: part {condition['part']!r}: one of {', '.join(_PARTS)}")
        if operator in NO_PART:
            raise _Wrong(f"{place}: {operator} compares whole values: part does not go with it")
    _check_operand(f"{place}/{operator}", condition[operator], names)
    if not isinstance(condition[operator], dict):
        _check_literal(f"{place}/{operator}", operator, condition, kind)


def _check_operand(place: str, operand: Any, names: _Names) -> None:
    if operand is None:
        raise _Wrong(f"{place}: null is no operand; absent is asked by is")
    if isinstance(operand, list) and any(
        each is None or isinstance(each, (dict, list)) for each in operand
    ):
        raise _Wrong(f"{place}: a list holds texts, numbers and flags")
    if not isinstance(operand, dict):
        return
    for key in ("part", "as"):
        if key in operand and not isinstance(operand[key], str):
            raise _Wrong(f"{place}/{key}: a text")
    if operand.get("part", "major") not in _PARTS:
        raise _Wrong(f"{place}/part: {operand['part']!r}: one of {', '.join(_PARTS)}")
    if "fact" in operand:
        _only(place, operand, ("fact", "part", "as"))
        names.fact(f"{place}/fact", operand["fact"])
        return
    if set(operand) - {"part", "as"} != {"row", "where", "take"}:
        raise _Wrong(f'{place}: an operand is a value, {{"fact"}} or {{"row", "where", "take"}}')
    _check_lookup(place, operand, names)


def _check_lookup(place: str, said: Mapping[str, Any], names: _Names) -> None:
    if not isinstance(said["where"], dict) or not said["where"]:
        raise _Wrong(f"{place}/where: an object of key columns")
    for column, by in said["where"].items():
        _check_operand(f"{place}/where/{column}", by, names)
        if isinstance(by, str):
            list(names.filled(f"{place}/where/{column}", by))
    if names.known is None:
        return
    tables = names.known.catalogue_names()
    if said["row"] not in tables:
        raise _Wrong(f"{place}: there is no catalogue {said['row']}{_near(said['row'], tables)}")
    table = names.known.catalogue(said["row"])
    for column in said["where"]:
        if column not in table.keys:
            hint = _near(column, table.keys) or f"; its keys are {', '.join(table.keys)}"
            raise _Wrong(f"{place}: {said['row']} has no key {column}{hint}")
    if said["take"] not in table.columns:
        hint = _near(said["take"], table.columns)
        raise _Wrong(f"{place}: {said['row']} has no column {said['take']}{hint}")


def _check_literal(
    place: str, operator: str, condition: Mapping[str, Any], kind: str | None
) -> None:
    """A literal must be one that the operator can relate to something at all."""
    value = condition[operator]
    if operator in ("matches", "free_of"):
        if not isinstance(value, str):
            raise _Wrong(f"{place}: a regular expression is a text")
        _check_pattern(place, value)
    elif operator == "range":
        if not isinstance(value, str) or not value.strip(", "):
            raise _Wrong(f'{place}: a range is a text such as ">=9.11,<10"')
        _check_range(place, value)
    elif operator in _ORDERED:
        try:
            compare(value, value)
        except Incomparable as problem:
            raise _Wrong(f"{place}: {problem}") from None
    elif operator in ("has", "lacks") and isinstance(value, list):
        raise _Wrong(f"{place}: {operator} asks for one element; a list is none")
    elif operator in _EXACT and "part" not in condition:
        values = value if isinstance(value, list) and operator in ("in", "not_in") else [value]
        if values and not any(_may_be(each, kind) for each in values):
            raise _Wrong(f"{place}: {condition['fact']} is a {kind}; {value!r} never equals it")
    elif operator in _EXACT:
        values = value if isinstance(value, list) else [value]
        if not all(isinstance(each, str) for each in values):
            raise _Wrong(f"{place}: part gives a text; {value!r} never equals one")


def _may_be(value: Any, kind: str | None) -> bool:
    if kind == "flag":
        return isinstance(value, bool)
    if kind == "number":
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    return isinstance(value, str) if kind in ("text", "version") else True


def _check_pattern(place: str, pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as problem:
        raise _Wrong(f"{place}: no regular expression {pattern!r}: {problem}") from None


def _check_range(place: str, text: str) -> None:
    try:
        for clause in text.split(","):  # one by one: reading stops at the first that does not hold
            in_range("0", clause)
    except Incomparable as problem:
        raise _Wrong(f"{place}: {problem}") from None


def _check_row(kind: str, row: Mapping[str, Any], known: Matrices) -> None:
    names = _Names(row, known)
    for variable, over in row.get("for", {}).items():
        if isinstance(over, str):
            below = over.replace("*", "0") + "."
            if not any(
                spec.pattern.startswith(over + ".") or covers(spec.pattern, below + "x")
                for spec in CATALOGUE
            ):
                hint = _near(over, [spec.pattern.rpartition(".")[0] for spec in CATALOGUE])
                raise _Wrong(f"for/{variable}: no fact lies below {over}{hint}")
    for place, condition in _conditions(row):
        _check_condition(place, condition, names)
    if kind == "rules":
        _check_rule(row, names, known)
    elif kind == "signatures":
        _check_signature(row)
    else:
        _check_derivation(row, names)


def _check_rule(row: Mapping[str, Any], names: _Names, known: Matrices) -> None:
    causes = known.causes()
    for place, cause in [("cause", row["cause"])] + [
        (f"because_of/{number}", cause) for number, cause in enumerate(row.get("because_of", ()))
    ]:
        if cause not in causes:
            hint = _near(cause, causes) or "; a new one is a line in DIR/causes.json"
            raise _Wrong(f"{place}: there is no cause {cause}{hint}")
    for number, signal in enumerate(row.get("signals", ())):
        weight = known.signatures().get(signal, {}).get("weight")
        if weight is None:
            hint = _near(signal, known.signatures())
            raise _Wrong(f"signals/{number}: there is no signature {signal}{hint}")
        if weight != "strong":
            raise _Wrong(f"signals/{number}: {signal} is weak: no finding may rest on it alone")
    parts = [row.get(part, ()) for part in ("when", "require", "prove")]
    named = set(_named_values(list(itertools.chain(*parts))))
    texts = [("title", row["title"]), ("why", row["why"])]
    for number, fix in enumerate(row["fix"]):
        texts += [(f"fix/{number}/{key}", fix[key]) for key in ("text", "command") if key in fix]
    for place, text in texts:
        for name in _PLACE.findall(text):
            if name not in named and name not in names.bound:
                names.fact(place, name.replace("<", "{").replace(">", "}"))
    for verdict, cases in row["examples"].items():
        for number, facts in enumerate(cases):
            for name in facts:
                if spec_of(name) is None and not any(
                    covers(name, spec.pattern) for spec in CATALOGUE
                ):
                    hint = _near(name, [spec.pattern for spec in CATALOGUE])
                    raise _Wrong(f"examples/{verdict}/{number}: there is no fact {name}{hint}")


def _check_signature(row: Mapping[str, Any]) -> None:
    pattern = _check_pattern("pattern", row["pattern"])
    for name in pattern.groupindex:
        if not re.fullmatch("[a-z_]+", name):
            raise _Wrong(f"pattern: the group {name} is not of lower-case letters")
    for verdict, texts in row["examples"].items():
        for number, text in enumerate(texts):
            found = find_signature(row, text)
            if (found is not None) != (verdict == "match"):
                said = "is found in it" if found is not None else "is not found in it"
                raise _Wrong(f"examples/{verdict}/{number}: the pattern {said}")


def _named_values(part: Any) -> Iterator[str]:
    """The "as" names inside conditions."""
    if isinstance(part, dict):
        if isinstance(part.get("as"), str):
            yield part["as"]
        part = list(part.values())
    if isinstance(part, list):
        for each in part:
            yield from _named_values(each)


def _check_derivation(row: Mapping[str, Any], names: _Names) -> None:
    names.fact("fact", row["fact"])
    if "row" in row:
        _check_lookup("row", row["row"], names)
    if "extract" in row:
        names.fact("extract/fact", row["extract"]["fact"])
        pattern = _check_pattern("extract/pattern", row["extract"]["pattern"])
        for number in re.findall(r"\{(\d+)\}", row["extract"]["value"]):
            if not 1 <= int(number) <= pattern.groups or str(int(number)) != number:
                raise _Wrong(f"extract/value: the pattern has no group {{{number}}}")


# -- tables -------------------------------------------------------------------------------------


def lookups(part: Any) -> Iterator[Mapping[str, Any]]:
    """Every look-up inside rows or conditions."""
    if isinstance(part, Mapping):
        if "take" in part and "row" in part:
            yield part
        part = list(part.values())
    if isinstance(part, (list, tuple)):
        for each in part:
            yield from lookups(each)


def _check_catalogue(path: str, data: Mapping[str, Any], known: Matrices) -> None:
    keys, columns, rows = data["keys"], data["columns"], data["rows"]
    for key in keys:
        if key not in columns:
            raise MatrixError(f"{path}: keys: {key} is no column")
    types: dict[str, str] = {}
    for other in known.catalogue_files(data["name"]):
        if os.path.realpath(other) == os.path.realpath(path):
            break  # the folders that this one lies over are before it
        below = read_json(other)
        if below["keys"] != keys:
            raise MatrixError(f"{path}: keys: the rows below have the keys {below['keys']}")
        for row in below["rows"]:
            types.update((name, _type(row[name])) for name in row if name not in types)
    for number, row in enumerate(rows):
        with _at(path, number, row):
            _check_cells(row, data, types)
    every = lookups(known.rows("rules") + known.rows("derive"))
    taken = {each["take"] for each in every if each["row"] == data["name"]}
    twice = contradiction(known.catalogue(data["name"]), taken)
    if twice is not None:
        first, second, shown = twice
        beside = f"rows/{second}" if second < len(rows) else "a row that it does not replace"
        if first < len(rows):  # else the folders below disagree, which is not this one's doing
            raise MatrixError(f"{path}: rows/{first} and {beside} answer for the same {shown}")


def _check_cells(row: Mapping[str, Any], data: Mapping[str, Any], types: dict[str, str]) -> None:
    columns = data["columns"]
    for name in READ_BY_CODE.get(data["name"], ()):
        if name not in row:
            raise _Wrong(f"it lacks {name}, which the condition code reads")
    for name, cell in row.items():
        if name in _BESIDE_COLUMNS:
            continue
        if name not in columns:
            raise _Wrong(f"{name} is no column{_near(name, columns)}")
        before = types.setdefault(name, _type(cell))
        if _type(cell) != before:
            raise _Wrong(f"{name} is a {_type(cell)}; other rows have a {before}")
        if isinstance(cell, list) and len({_type(each) for each in cell}) > 1:
            raise _Wrong(f"{name}: a list holds one type")
    for name, kind in data["keys"].items():
        cell = row.get(name)
        if kind == "list":
            if cell is not None and not isinstance(cell, list):
                raise _Wrong(f"{name} is a key of kind list; this is a {_type(cell)}")
        elif kind == "exact":
            if cell is None or isinstance(cell, (list, dict)):
                raise _Wrong(f"the key {name} is one value")
        elif not isinstance(cell, str):
            raise _Wrong(f"the key {name} is a text")
    ranges = [name for name, kind in data["keys"].items() if kind == "range"]
    for name in [*ranges, *(n for n in READ_BY_CODE.get(data["name"], ()) if n == "runs_on")]:
        if not isinstance(row[name], str):
            raise _Wrong(f"{name} is a range, a text")
        _check_range(name, row[name])
    if isinstance(row["confidence"], dict):
        for name in row["confidence"]:
            if name != "*" and name not in columns:
                raise _Wrong(f"confidence/{name}: no such column{_near(name, columns)}")


def _type(value: Any) -> str:
    if isinstance(value, bool):
        return "flag"
    if isinstance(value, (int, float)):
        return "number"
    if isinstance(value, str):
        return "text"
    return "null" if value is None else "list" if isinstance(value, list) else "object"


def contradiction(table: Catalogue, taken: Collection[str]) -> tuple[int, int, str] | None:
    """Two rows that would answer one look-up, and the keys they share; None where none do.

    Rows of one product (its variants) may: they agree on every column that is taken.
    """
    kinds, rows = table.keys, table.rows
    exact = [name for name, kind in kinds.items() if kind == "exact"]
    ranged = [name for name, kind in kinds.items() if kind == "range"]
    groups: dict[tuple[Any, ...], list[int]] = {}
    for number, row in enumerate(rows):
        fixed = tuple(str(row[name]) for name in exact)
        if len(exact) + len(ranged) == len(kinds):
            groups.setdefault(fixed, []).append(number)
        for name, kind in kinds.items():
            if kind == "list":
                for each in set(map(str, row.get(name, ()))):
                    groups.setdefault((*fixed, name, each), []).append(number)
            elif kind == "product":
                named = {product_words(each) for each in (row[name], *row.get("aliases", ()))}
                for words in named:
                    groups.setdefault((*fixed, name, words), []).append(number)
    for key, numbers in groups.items():
        product = bool(key) and isinstance(key[-1], tuple)
        for first, second in itertools.combinations(numbers, 2):
            a, b = rows[first], rows[second]
            if product and all(a.get(column) == b.get(column) for column in taken):
                continue
            if all(overlap(a[name], b[name]) for name in ranged):
                shown = [" ".join(each) if isinstance(each, tuple) else str(each) for each in key]
                return first, second, " ".join(shown) or " ".join(a[name] for name in ranged)
    return None


def overlap(one: str, other: str) -> bool:
    """Whether some version lies in both ranges."""
    ends = ["0", *re.findall(r"[0-9][\w.+:-]*", f"{one},{other}")]
    # The lowest version that two ranges share is a bound, or lies just above one.
    return any(
        in_range(version, one) and in_range(version, other)
        for end in ends
        for version in (end, end + ".0.0.0.1")
    )
