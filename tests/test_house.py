"""The house rules that a reader relies on: imports run one way, knowledge is data."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from pathlib import Path

import pytest

import envaudit

PACKAGE = Path(envaudit.__file__).parent
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if "in_target" not in path.parts)

ROOMS = (
    ("errors", "model"),
    ("facts", "constraint", "elf", "stack", "variables", "patterns"),
    ("addresses", "kernel_words"),
    ("isolate",),
    ("host",),
    ("snapshot", "files"),
    ("store", "redact", "ldcache", "modinfo", "libversion", "bootloader", "distributions"),
    ("importers",),
    ("target", "driverlib", "loader", "entries", "restrain"),
    ("probes",),
    ("collect",),
    ("signals",),
    ("report",),
    ("matrix", "validate"),
    ("evaluate",),
    ("derive",),
    ("check",),
    ("advise",),
    ("diff", "exits", "inputs", "examples"),
    ("output",),
    ("cli",),
    ("__main__",),
)
"""From the ground up: a module may import from its own floor and the ones before it."""

MAY_NOT = {
    "probes": {"matrix", "evaluate", "derive", "check"},
    "output": {"probes", "collect", "host", "isolate", "store"},
    "check": {"probes", "collect", "host", "isolate", "store", "output"},
    "matrix": {"probes", "collect", "host", "isolate"},
    "validate": {"probes", "collect", "host", "isolate"},
}
"""What must stay apart although the floors would allow it."""


def room(path: Path) -> str:
    first = path.relative_to(PACKAGE).parts[0]
    return first.removesuffix(".py")


def imported(path: Path) -> set[str]:
    """Rooms of this package that a module imports, inside functions too."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            parts = node.module.split(".")
            if parts[0] == "envaudit":
                found |= {parts[1]} if len(parts) > 1 else {alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.startswith("envaudit."):
                    found.add(alias.name.split(".")[1])
    return found - {"__version__"}


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_run_one_way(path: Path) -> None:
    mine = room(path)
    if mine == "__init__":
        return
    floors = {name: number for number, names in enumerate(ROOMS) for name in names}
    assert mine in floors, f"{mine} has no floor yet: give it one in ROOMS"
    for other in imported(path) - {mine}:
        assert floors[other] <= floors[mine], f"{mine} must not import {other}"
        assert other not in MAY_NOT.get(mine, ()), f"{mine} must not import {other}"


def test_the_table_of_rooms_names_every_module() -> None:
    page = (PACKAGE.parent / "docs" / "architecture.md").read_text("utf-8")
    rooms = page.partition("## Rooms")[2].partition("\n## ")[0]
    folders = {path.name for path in PACKAGE.iterdir() if path.is_dir()} - {"__pycache__"}
    for name in sorted({path.name for path in PACKAGE.glob("*.py")} - {"__init__.py"}):
        assert re.search(rf"`(envaudit/)?{re.escape(name)}`", rooms), f"{name} has no room"
    for name in sorted(folders):
        assert f"`envaudit/{name}/`" in rooms, f"{name}/ has no room"


def test_typer_lives_in_the_command_line_only() -> None:
    for path in MODULES:
        if path.name not in ("cli.py", "__main__.py"):
            assert not re.search(r"^\s*(import|from) typer", path.read_text("utf-8"), re.M), path


VERSION = re.compile(r"(?:>=|<=|==|<|>)?\s*\d{2,3}\.\d{2,3}(?:\.\d+)?")


def test_no_version_bound_stands_in_python() -> None:
    """Strings that are nothing but a version, outside docstrings, belong into a row."""
    for path in MODULES:
        if path.name == "__init__.py" and path.parent == PACKAGE:
            continue
        source = path.read_text("utf-8")
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type == tokenize.STRING and not token.string.startswith(('"""', 'r"""')):
                text = token.string.strip("rbfRBF\"'")
                assert not VERSION.fullmatch(text), f"{path.name}:{token.start[0]}: {text}"


def test_every_probe_is_in_the_table_and_has_a_test() -> None:
    from envaudit.probes import PROBES

    modules = {path.stem for path in (PACKAGE / "probes").glob("*.py")} - {"__init__"}
    assert modules == {probe.name for probe in PROBES}
    for probe in PROBES:
        assert (Path(__file__).parent / f"test_probe_{probe.name}.py").exists()


def test_what_a_probe_provides_is_in_the_catalogue() -> None:
    from envaudit.facts import spec_of
    from envaudit.probes import PROBES

    for probe in PROBES:
        for pattern in probe.provides:
            assert spec_of(pattern.replace("*", "x")) or any(
                spec.pattern.startswith(pattern.rstrip("*")) for spec in catalogue()
            ), pattern


def catalogue() -> tuple[envaudit.facts.FactSpec, ...]:
    from envaudit.facts import CATALOGUE

    return CATALOGUE


def test_scripts_of_the_target_lie_alone_and_use_the_standard_library() -> None:
    folder = PACKAGE / "in_target"
    assert not (folder / "__init__.py").exists()
    for path in folder.glob("*.py"):
        assert path.stem not in ("json", "types", "torch", "os", "site", "re")
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom):
                assert node.module != "envaudit"
            if isinstance(node, ast.Import):
                assert all(not alias.name.startswith("envaudit") for alias in node.names)


def test_generated_pages_are_up_to_date() -> None:
    import runpy

    generate = runpy.run_path(str(PACKAGE.parent / "docs" / "generate.py"))
    for path, text in generate["wanted"]():
        assert path.read_text("utf-8") == text, f"{path.name}: run docs/generate.py"
