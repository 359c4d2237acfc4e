"""Compare the rows that rest on package metadata with what pip tells, and bring them up to date.

python -m tools.refresh                     what would change, and which releases are new
python -m tools.refresh --write             change the cells in place: hand-written columns,
                                            sources, confidence and notes stay as they are
python -m tools.refresh --write --add       and add rows for new releases, with the columns that
                                            metadata tells; the others are a person's work
python -m tools.refresh --check             exit status 1 where a shipped row contradicts metadata

Packages come from wherever pip is configured to get them. `--cache FILE` keeps pip's answers, so
that a release is asked for its requirements once; `--offline` asks that file alone.
`tests/metadata-cache.json` is a small excerpt of such a file (`--excerpt FILE` writes it), against
which the tests hold the rows.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name

from tools import columns
from tools.columns import Value, parsed
from tools.metadata import Metadata, NoAnswer, Pip, Release, by_age
from tools.tables import TABLES, Difference, Fresh, Row, Table

CATALOGUES = columns.CATALOGUES
INDEX = CATALOGUES.parent / "index.json"

EXCERPT_OF = (
    *("jax", "jaxlib", "numpy", "onnxruntime-gpu", "tensorflow"),
    *("torch", "torchaudio", "torchvision", "triton", "vllm", "xformers"),
)
EXCERPT_RELEASES = 30
"""Newest releases of each that the excerpt keeps."""

NEWEST = 5
"""Newest releases of each package whose requirements are asked unless more are wanted."""

_METADATA = ("pypi", "meta-")
"""What the short name of a source begins with that is package metadata."""

_WIDTH = 60

Catalogue = dict[str, Any]


@dataclass
class Found:
    """What all comparisons found."""

    differences: list[Difference] = field(default_factory=list)
    fresh: list[Fresh] = field(default_factory=list)
    rows: int = 0

    @property
    def contradictions(self) -> list[Difference]:
        """Cells that say something else than metadata."""
        return [one for one in self.differences if one.contradicts]


def catalogues() -> dict[str, Catalogue]:
    """The shipped catalogues that rest on package metadata, by name."""
    names = {table.name for table in TABLES}
    return {
        name: json.loads((CATALOGUES / f"{name}.json").read_text(encoding="utf-8"))
        for name in sorted(names)
    }


def compared(
    shipped: Mapping[str, Catalogue], metadata: Metadata, tables: Iterable[Table] = TABLES
) -> Found:
    """Every catalogue against the metadata at hand."""
    found = Found()
    for table in tables:
        seen = table.compare(shipped[table.name]["rows"], metadata)
        found.differences += seen.differences
        found.fresh += seen.fresh
        found.rows += seen.rows
    return found


# -- asking pip ---------------------------------------------------------------------------------


def ask(
    pip: Pip,
    metadata: Metadata,
    shipped: Mapping[str, Catalogue],
    package: str,
    newest: int | None,
) -> list[str]:
    """Ask pip for a package; what it could not tell. `newest` releases are asked in depth."""

    def wanted(found: Mapping[str, Release]) -> list[str]:
        names: set[str] = set()
        for table in TABLES:
            rows = shipped[table.name]["rows"]
            if package in table.packages(rows):
                names |= table.wanted(rows, package, found)
        return by_age(names)[::-1][:newest]

    try:
        return metadata.ask(pip, package, wanted, datetime.date.today().isoformat())
    except NoAnswer as problem:
        return [str(problem)]


def worth_keeping(shipped: Mapping[str, Catalogue]) -> set[str]:
    """Names of packages that any row is about or requires: what the excerpt keeps."""
    names = set()
    for table in TABLES:
        names |= table.packages(shipped[table.name]["rows"])
    cells = [cell for one in shipped.values() for row in one["rows"] for cell in row.values()]
    for cell in cells:
        for text in cell if isinstance(cell, list) else ():
            if isinstance(text, str) and (need := parsed(text)):
                names.add(canonicalize_name(need.name))
    return names


def excerpt(metadata: Metadata, shipped: Mapping[str, Catalogue]) -> Metadata:
    """The small file that the tests hold the rows against."""
    names = worth_keeping(shipped)

    def keep(text: str) -> bool:
        need = parsed(text)
        return need is not None and canonicalize_name(need.name) in names

    missing = sorted(name for name in EXCERPT_OF if not metadata.of(name))
    if missing:
        raise NoAnswer(f"the excerpt needs {', '.join(missing)}: ask for all packages")
    return metadata.excerpt(EXCERPT_OF, EXCERPT_RELEASES, keep)


# -- writing ------------------------------------------------------------------------------------


def rewrite(shipped: Mapping[str, Catalogue], found: Found, add: bool, day: str) -> list[str]:
    """Put what metadata tells into the rows in memory; names of the catalogues that changed."""
    changed: dict[str, list[Row]] = {}
    for one in found.differences:
        if one.cell is None:
            continue
        row, column = one.cell
        if one.told in (None, []):
            row.pop(column, None)
        else:
            row[column] = one.told
        changed.setdefault(one.catalogue, []).append(row)
    for new in found.fresh if add else ():
        if new.row is None:
            continue
        rows = shipped[new.catalogue]["rows"]
        last = max(i for i, row in enumerate(rows) if row.get("package") == new.row.get("package"))
        rows.insert(last + 1, new.row)
        changed.setdefault(new.catalogue, []).append(new.row)
    for name, rows in changed.items():
        for row in rows:
            _put_in_order(row, shipped[name]["columns"])
            for key in _metadata_sources(row, shipped[name]["sources"]):
                shipped[name]["sources"][key]["read"] = day
    return sorted(changed)


def _metadata_sources(row: Row, sources: Iterable[str]) -> list[str]:
    """The row's sources that are metadata; it gets the catalogue's where it had none."""
    mine = [key for key in row["sources"] if key.startswith(_METADATA)]
    if not mine:
        package = row.get("package", "")
        mine = [key for key in sources if key.startswith(_METADATA) and key.endswith(package)]
        if len(mine) != 1:
            raise NoAnswer(
                f"no one source of the catalogue is the metadata of {row}: write it by hand"
            )
        row["sources"] += mine
    return mine


def _put_in_order(row: Row, columns: Iterable[str]) -> None:
    """Cells in the order of the catalogue's columns, then where they come from."""
    cells = dict(row)
    row.clear()
    row.update({key: cells[key] for key in [*columns, *cells] if key in cells})


def save(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    with tempfile.NamedTemporaryFile(
        "w", dir=path.parent, encoding="utf-8", delete=False, newline="\n"
    ) as file:
        file.write(text)
    os.chmod(file.name, 0o644)
    os.replace(file.name, path)


def save_rows(shipped: Mapping[str, Catalogue], names: Iterable[str], day: str) -> None:
    """Write the changed catalogues, and the day of the newest source."""
    for name in names:
        text = json.dumps(shipped[name], indent=1, ensure_ascii=False) + "\n"
        save(CATALOGUES / f"{name}.json", text)
    index = json.loads(INDEX.read_text(encoding="utf-8"))
    if index["newest_source"] < day:
        index["newest_source"] = day
        save(INDEX, json.dumps(index, indent=1, ensure_ascii=False) + "\n")


# -- telling ------------------------------------------------------------------------------------


def report(found: Found) -> Iterator[str]:
    """What was found, as lines."""
    if found.differences:
        rows = [("catalogue", "row", "column", "shipped", "metadata")]
        rows += [
            (one.catalogue, one.row, one.column, *_sides(one.shipped, one.told))
            for one in found.differences
        ]
        widths = [max(len(row[i]) for row in rows) for i in range(4)]
        for row in rows:
            cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
            yield "  ".join([*cells, row[4]]).rstrip()
        yield ""
    for one in found.fresh:
        by_hand = "" if one.row else "  (the row of a run: by hand)"
        yield f"new: {one.catalogue}: {one.package} {one.version}{by_hand}"
    gaps = len(found.differences) - len(found.contradictions)
    yield (
        f"{found.rows} rows compared: {len(found.contradictions)} cells contradict metadata, "
        f"{gaps} leave out what it tells, {len(found.fresh)} releases are new"
    )


def _sides(shipped: Value, told: Value) -> tuple[str, str]:
    """Two values to look at side by side: of two lists, what only one of them has."""
    if isinstance(shipped, list) and isinstance(told, list):
        only_shipped = [item for item in shipped if item not in told]
        only_told = [item for item in told if item not in shipped]
        return _shown(only_shipped), _shown(only_told)
    return _shown(shipped), _shown(told)


def _shown(value: Value) -> str:
    if value is None:
        return "-"
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 3]}..."


# -- the command --------------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> int:
    """0: nothing contradicts, 1: --check found a contradiction, 2: pip did not tell everything."""
    wish = _parser().parse_args(arguments)
    today = datetime.date.today().isoformat()
    shipped = catalogues()
    tables = [t for t in TABLES if not wish.catalogue or t.name in wish.catalogue]
    problems: list[str] = []
    try:
        metadata = Metadata.load(wish.cache) if wish.cache else Metadata()
        if not wish.offline:
            named = {p for t in tables for p in t.packages(shipped[t.name]["rows"])}
            for package in sorted(named & set(wish.package) if wish.package else named):
                newest = None if wish.all else wish.newest
                untold = ask(Pip(wish.python), metadata, shipped, package, newest)
                problems += untold
                for problem in untold:
                    print(problem, file=sys.stderr)
                # After each one, so that a long run that breaks off goes on from there.
                if wish.cache:
                    save(wish.cache, metadata.dump())
        found = compared(shipped, metadata, tables)
        for line in report(found):
            print(line)
        if wish.write:
            names = rewrite(shipped, found, wish.add, today)
            save_rows(shipped, names, today)
            print(f"written: {', '.join(names) or 'nothing'}")
        if wish.excerpt:
            save(wish.excerpt, excerpt(metadata, shipped).dump())
    except NoAnswer as problem:
        print(problem, file=sys.stderr)
        return 2
    if problems:
        return 2
    return 1 if wish.check and found.contradictions else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tools.refresh",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    option = parser.add_argument
    names = sorted({table.name for table in TABLES})
    option(
        "--catalogue",
        action="append",
        default=[],
        choices=names,
        metavar="NAME",
        help="compare this catalogue alone (again for more)",
    )
    option(
        "--package",
        action="append",
        default=[],
        type=canonicalize_name,
        metavar="NAME",
        help="ask pip for this package alone (again for more)",
    )
    option(
        "--newest",
        type=int,
        default=NEWEST,
        metavar="N",
        help="newest releases of a package that are asked for requirements (default: %(default)s)",
    )
    option(
        "--all", action="store_true", help="ask every release for its requirements; it takes long"
    )
    option(
        "--python",
        default=sys.executable,
        metavar="PYTHON",
        help="the interpreter whose pip is asked (default: this one)",
    )
    option("--cache", type=Path, metavar="FILE", help="where pip's answers are kept")
    option("--offline", action="store_true", help="ask the cache alone")
    option(
        "--excerpt",
        type=Path,
        metavar="FILE",
        help="write the newest releases of the packages that the tests look at",
    )
    option("--check", action="store_true", help="exit status 1 where a row contradicts metadata")
    option("--write", action="store_true", help="change the rows in place")
    option("--add", action="store_true", help="with --write: add rows for new releases")
    return parser


if __name__ == "__main__":
    sys.exit(main())
