"""Read the matrices: rules that judge, catalogues of the world, derivations, causes.

The folder ships with envaudit; `--matrices DIR` adds to it or overrides rows by their id. What
is shipped is validated by the tests; what comes from outside by `validate`, before it is used.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping
from datetime import date
from typing import Any, NamedTuple

from envaudit.constraint import Incomparable, in_range, release
from envaudit.errors import MatrixError
from envaudit.model import Source, Value

Row = Mapping[str, Any]


def shipped_folder() -> str:
    """Where the shipped matrices lie: inside an installed wheel, or beside a checkout's package."""
    here = os.path.dirname(os.path.abspath(__file__))
    for folder in (
        os.path.join(here, "_matrices"),
        os.path.join(os.path.dirname(here), "matrices"),
    ):
        if os.path.isfile(os.path.join(folder, "index.json")):
            return folder
    raise MatrixError(
        "the matrices that ship with envaudit are missing",
        "Reinstall envaudit: pip install --force-reinstall envaudit.",
    )


class NoRow(Exception):
    """A look-up without an answer; the text says why, and whether the table simply ends before."""


class Cell(NamedTuple):
    """One value of a catalogue, with where it stands and how sure it is."""

    catalogue: str
    column: str
    value: Value
    sources: tuple[Source, ...]
    confidence: str

    @property
    def source(self) -> str:
        """For a reader: the catalogue and the first source behind the row."""
        title = self.sources[0].title if self.sources else "no source"
        return f"matrix {self.catalogue}: {title}"


class Catalogue:
    """One table of the world, looked up by its key columns."""

    def __init__(self, data: Row) -> None:
        self.name: str = data["name"]
        self.keys: Mapping[str, str] = data["keys"]
        self.columns: Mapping[str, str] = data["columns"]
        self.rows: list[Row] = list(data["rows"])
        self.sources = {key: read_source(value) for key, value in data["sources"].items()}
        self._exact: dict[tuple[str, ...], dict[tuple[str, ...], list[Row]]] = {}
        self._named: dict[str, list[tuple[tuple[str, ...], Row]]] = {}
        self._products: dict[tuple[str, str], list[Row]] = {}

    def find(self, where: Mapping[str, Value]) -> list[Row]:
        """Rows whose key columns match, best first. Raises NoRow with the reason."""
        unknown = [column for column in where if column not in self.keys]
        if unknown:
            raise NoRow(f"{self.name} has no key {unknown[0]}")
        exact = [column for column in where if self.keys[column] == "exact"]
        rows: list[Row] = self.rows
        if exact:
            rows = self._index(tuple(exact)).get(tuple(str(where[c]) for c in exact), [])
        for column, wanted in where.items():
            kind = self.keys[column]
            if kind == "range":
                rows = [row for row in rows if column in row and in_range(wanted, row[column])]
            elif kind == "list":
                rows = [row for row in rows if str(wanted) in row.get(column, ())]
            elif kind == "product":
                rows = self._of_product(rows, column, str(wanted))
        if not rows:
            raise NoRow(self._why(where))
        return rows

    def _of_product(self, rows: list[Row], column: str, name: str) -> list[Row]:
        """Rows of a product name; over the whole table the answer is kept for the next look-up."""
        if rows is not self.rows:
            return _products(_by_words(rows, column), name)
        found = self._products.get((column, name))
        if found is None:
            if column not in self._named:
                self._named[column] = _by_words(rows, column)
            found = self._products[column, name] = _products(self._named[column], name)
        return found

    def _index(self, columns: tuple[str, ...]) -> Mapping[tuple[str, ...], list[Row]]:
        index = self._exact.get(columns)
        if index is None:
            index = self._exact[columns] = {}
            for row in self.rows:
                key = tuple(str(row.get(column)) for column in columns)
                index.setdefault(key, []).append(row)
        return index

    def _why(self, where: Mapping[str, Value]) -> str:
        asked = ", ".join(f"{column} {value}" for column, value in where.items())
        for column, value in where.items():
            if self.keys[column] not in ("exact", "range"):
                continue
            try:
                known = sorted(
                    (release(cell), cell)
                    for row in self.rows
                    if column in row
                    for cell in [str(row[column]).lstrip("<>=! ")]
                )
                if known and release(value) > known[-1][0]:
                    return (
                        f"{asked} is newer than these matrices know ({self.name} ends at "
                        f"{column} {known[-1][1]})"
                    )
            except Incomparable:
                continue
        return f"{self.name} has no row for {asked}"

    def cell(self, where: Mapping[str, Value], column: str) -> Cell:
        """One value. All rows that match must agree on it. Raises NoRow."""
        rows = [row for row in self.find(where) if column in row]
        if not rows:
            asked = ", ".join(f"{key} {value}" for key, value in where.items())
            raise NoRow(f"{self.name} does not say {column} for {asked}")
        values = {json.dumps(row[column], sort_keys=True) for row in rows}
        if len(values) > 1:
            asked = ", ".join(f"{key} {value}" for key, value in where.items())
            raise NoRow(f"{self.name} is not unique on {column} for {asked}")
        row = rows[0]
        return Cell(
            self.name,
            column,
            row[column],
            tuple(self.sources[source] for source in row["sources"]),
            confidence_of(row, column),
        )


def confidence_of(row: Row, column: str) -> str:
    """How sure a row is of one column: high, medium or low."""
    said = row.get("confidence", "high")
    if isinstance(said, Mapping):
        return str(said.get(column, said.get("*", "high")))
    return str(said)


def read_source(data: Row) -> Source:
    """A source as a reader gets it."""
    return Source(str(data["title"]), data.get("url"))


# -- product names ------------------------------------------------------------------------------

_NOISE = re.compile(r"\(r\)|\(tm\)|\b(nvidia|geforce|graphics|gpu|tesla|corporation|generation)\b")
_VARIANT = re.compile(
    r"\d+(gb|gib)|hbm\d\w?|gddr\d\w?|sxm\d*|pcie|nvl|oam|mig|\d+g|\dg\.\d+gb|laptop|mobile|max|q|"
    r"with|design|server|workstation|edition|d|super|ti"
)


def product_words(name: str) -> tuple[str, ...]:
    """A GPU product name as comparable words, without maker and filler."""
    text = _NOISE.sub(" ", name.lower())
    return tuple(re.findall(r"[a-z0-9.]+", text))


def _by_words(rows: list[Row], column: str) -> list[tuple[tuple[str, ...], Row]]:
    """Every name of every row as words."""
    return [
        (product_words(each), row)
        for row in rows
        if column in row
        for each in (row[column], *row.get("aliases", ()))
    ]


def _products(named: list[tuple[tuple[str, ...], Row]], name: str) -> list[Row]:
    """Rows of the product with this name: equal words, else the longest row name it begins with.

    What the name has beyond the row's name must be variant words (memory, form factor); a name
    that is itself cut short ("RTX 40...") or lacks the variant matches every row it begins.
    """
    cut = name.rstrip().endswith("..")
    words = product_words(name.rstrip(". "))
    if not words:
        return []
    equal = [row for row_words, row in named if row_words == words]
    if equal:
        return equal
    if cut:
        text = " ".join(words)
        return [row for row_words, row in named if " ".join(row_words).startswith(text)]
    longer = [
        (len(row_words), row)
        for row_words, row in named
        if words[: len(row_words)] == row_words
        and all(_VARIANT.fullmatch(word) for word in words[len(row_words) :])
        and not {"ti", "super", "d"} & set(words[len(row_words) :])
    ]
    if longer:
        best = max(length for length, _ in longer)
        return [row for length, row in longer if length == best]
    return [
        row
        for row_words, row in named
        if row_words[: len(words)] == words
        and all(_VARIANT.fullmatch(word) for word in row_words[len(words) :])
        and not {"ti", "super", "d"} & set(row_words[len(words) :])
    ]


# -- the whole ----------------------------------------------------------------------------------

_DEFAULTS: Row = {"when": (), "require": ()}

KINDS = ("signatures", "rules", "derive", "catalogues")
"""The folders of rows, in a folder of matrices."""


class Matrices:
    """All knowledge: the shipped folder, with extra folders laid over it."""

    def __init__(self, *extra: str, shipped: str | None = None) -> None:
        first = shipped if shipped is not None else shipped_folder()
        self.folders: tuple[str, ...] = (first,)
        index = read_json(os.path.join(first, "index.json"))
        self.version: str = index["version"]
        self.newest_source: str = index["newest_source"]
        self._index: Mapping[str, Row] | None = None
        """Where each shipped row stands and what it needs, so that most are never read."""
        self._texts: dict[str, tuple[str, Mapping[str, Source]] | None] = {}
        self.stale_after_days: int = index["stale_after_days"]
        self._catalogues: dict[str, Catalogue] = {}
        self._rows: dict[str, list[Row]] = {}
        self._single: dict[tuple[str, int], Row] = {}
        self._causes: Mapping[str, Row] | None = None
        for folder in extra:
            self._lay_over(folder)

    def age_days(self, today: date | None = None) -> int:
        """Days since the newest of the sources was read; 0 where the clock is behind it."""
        read = date.fromisoformat(self.newest_source)
        return max(0, ((today or date.today()) - read).days)

    def _lay_over(self, folder: str) -> None:
        """Add a folder; its rows may refer to everything below it. Raises MatrixError."""
        from envaudit.validate import validate_folder

        self.folders = (*self.folders, folder)
        self._catalogues.clear()
        self._rows.clear()
        self._causes = None
        validate_folder(folder, self)

    def catalogue_files(self, name: str) -> list[str]:
        """The files that make up a table, the shipped one first."""
        paths = [os.path.join(folder, "catalogues", name + ".json") for folder in self.folders]
        return [path for path in paths if os.path.isfile(path)]

    def catalogue(self, name: str) -> Catalogue:
        """A table by name, its extra rows first. Raises MatrixError where there is none."""
        found = self._catalogues.get(name)
        if found is None:
            paths = self.catalogue_files(name)
            if not paths:
                raise MatrixError(f"there is no catalogue {name}")
            data = read_json(paths[0])
            for path in paths[1:]:
                data = _overlaid(data, read_json(path), path)
            found = self._catalogues[name] = Catalogue(data)
        return found

    def catalogue_names(self) -> list[str]:
        """Names of all tables."""
        return sorted(
            {
                name[: -len(".json")]
                for folder in self.folders
                for name in json_files(os.path.join(folder, "catalogues"))
            }
        )

    def rows(self, kind: str) -> list[Row]:
        """All rows of a kind but catalogues, files and rows in order, later ids overriding.

        Each row carries its file's sources resolved under "sources".
        """
        found: dict[str, Row] = {}
        for number, folder in enumerate(self.folders):
            for name in json_files(os.path.join(folder, kind)):
                for row in self._file(folder, kind, name, shipped=number == 0):
                    found[row["id"]] = row
        return list(found.values())

    def rows_for(self, kind: str, facts: Mapping[str, Any]) -> list[Row]:
        """Rows that can say anything of these facts, in their order.

        Every other row lacks a fact that it needs: it neither concerns the machine nor leaves
        anything open. `rows.json` says what each shipped row needs.
        """
        roots = {name.partition(".")[0] for name in facts}

        def wanted(place: Any) -> bool:
            _, _, names, stems = place
            return (
                not (names or stems)
                or any(name in facts for name in names)
                or any(stem in roots for stem in stems)
            )

        return self._some(kind, wanted)

    def signatures_for(self, text: str) -> list[Row]:
        """Signatures of which a literal stands in a text."""
        return self._some("signatures", lambda place: any(hint in text for hint in place[2]))

    def _some(self, kind: str, wanted: Callable[[Any], bool]) -> list[Row]:
        """The shipped rows that are wanted, and all of the folders laid over them."""
        found: dict[str, Row] = {}
        for number, folder in enumerate(self.folders):
            for name in json_files(os.path.join(folder, kind)):
                rows = self._wanted(kind, name, wanted) if number == 0 else None
                if rows is None:
                    rows = self._file(folder, kind, name, shipped=number == 0)
                for row in rows:
                    found[row["id"]] = row
        return list(found.values())

    def _wanted(self, kind: str, name: str, wanted: Callable[[Any], bool]) -> list[Row] | None:
        """Rows of a shipped file, read one by one; None where the index is not of this file."""
        if self._index is None:
            path = os.path.join(self.folders[0], "rows.json")
            self._index = read_json(path)["files"] if os.path.isfile(path) else {}
        file = f"{kind}/{name}"
        said = self._index.get(file)
        if said is None:
            return None
        places = [place for place in said["rows"] if wanted(place)]
        if not places:
            return []
        if file not in self._texts:
            text = read_text(os.path.join(self.folders[0], kind, name))
            if len(text) != said["length"]:  # changed since the index was made
                self._texts[file] = None
            else:
                start, end = said["sources"]
                sources = json.loads(text[start:end])
                self._texts[file] = (
                    text,
                    {key: read_source(value) for key, value in sources.items()},
                )
        known = self._texts[file]
        if known is None:
            return None
        text, of = known
        rows = []
        for start, end, *_ in places:
            row = self._single.get((file, start))
            if row is None:
                data = json.loads(text[start:end] + "}")
                row = self._single[file, start] = _row(data, of, file)
            rows.append(row)
        return rows

    def _file(self, folder: str, kind: str, name: str, *, shipped: bool) -> list[Row]:
        path = os.path.join(folder, kind, name)
        rows = self._rows.get(path)
        if rows is None:
            data = read_json(path)
            sources = {key: read_source(value) for key, value in data["sources"].items()}
            place = f"{kind}/{name}" if shipped else path
            rows = self._rows[path] = [_row(row, sources, place) for row in data["rows"]]
        return rows

    def signatures(self) -> Mapping[str, Row]:
        """Every signature of an error text, by its id."""
        return {row["id"]: row for row in self.rows("signatures")}

    def components(self) -> list[Row]:
        """What can be assumed by a short name: driver, torch, ..."""
        found: dict[str, Row] = {}
        for folder in self.folders:
            path = os.path.join(folder, "components.json")
            if os.path.isfile(path):
                found.update({row["id"]: row for row in read_json(path)["components"]})
        return list(found.values())

    def causes(self) -> Mapping[str, Row]:
        """Every cause id with its meaning and the severity it normally deserves."""
        if self._causes is None:
            found: dict[str, Row] = {}
            for folder in self.folders:
                path = os.path.join(folder, "causes.json")
                if os.path.isfile(path):
                    found.update({row["id"]: row for row in read_json(path)["causes"]})
            self._causes = found
        return self._causes


def _row(data: Row, sources: Mapping[str, Source], file: str) -> Row:
    """A row with its defaults, its sources in full and its file."""
    return {
        **_DEFAULTS,
        **data,
        "sources": tuple(sources[key] for key in data.get("sources", ())),
        "file": file,
    }


def _overlaid(below: Row, above: Row, path: str) -> Row:
    """A table with the rows of another laid over it: equal keys replace, all else is added."""
    keys = list(below["keys"])
    replaced = {tuple(str(row.get(key)) for key in keys) for row in above["rows"]}
    kept = [
        row for row in below["rows"] if tuple(str(row.get(key)) for key in keys) not in replaced
    ]
    # The short names of sources are a file's own: the same one may mean another page there.
    sources = {f"{path} {key}": source for key, source in above["sources"].items()}
    rows = [
        {**row, "sources": [f"{path} {key}" for key in row["sources"]]} for row in above["rows"]
    ]
    return {
        **below,
        "columns": {**below["columns"], **above["columns"]},
        "rows": [*rows, *kept],
        "sources": {**below["sources"], **sources},
    }


def json_files(folder: str) -> Iterator[str]:
    """Names of the JSON files in a folder, in order; none where there is no such folder."""
    try:
        names = sorted(os.listdir(folder))
    except FileNotFoundError:
        return
    except OSError as problem:
        raise MatrixError(f"{folder}: {problem.strerror}") from problem
    yield from (name for name in names if name.endswith(".json") and not name.startswith("."))


def read_text(path: str) -> str:
    """A matrix file's text. Raises MatrixError with the file."""
    try:
        with open(path, encoding="utf-8", newline="") as file:
            return file.read()
    except (OSError, UnicodeDecodeError) as problem:
        raise MatrixError(f"{path}: {problem}") from problem


def read_json(path: str, pairs: Callable[[list[tuple[str, Any]]], Any] | None = None) -> Any:
    """A matrix file's data; `pairs` makes each object. Raises MatrixError with file and place."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):  # a pipe or a device could be read for ever
            raise MatrixError(f"{path}: not a regular file")
        with open(path, encoding="utf-8") as file:
            return json.load(file, object_pairs_hook=pairs)
    except OSError as problem:
        raise MatrixError(f"{path}: {problem.strerror}") from problem
    except (ValueError, RecursionError) as problem:
        raise MatrixError(f"{path}: not valid JSON: {problem}") from problem
