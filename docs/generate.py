"""Write what is derived: the generated pages of docs/, README's outputs, canonical matrices.

python docs/generate.py [--check]    with --check nothing is written; the exit status is 1 when
                                     a file is out of date.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from envaudit.evaluate import needed  # noqa: E402
from envaudit.facts import CATALOGUE  # noqa: E402
from envaudit.importers import IMPORTERS  # noqa: E402
from envaudit.matrix import Matrices  # noqa: E402
from envaudit.output.rows import sentence  # noqa: E402
from envaudit.patterns import literals_of  # noqa: E402
from tests.verdicts import TRIPLES  # noqa: E402

MATRICES = HERE.parent / "matrices"


def facts_page() -> str:
    """The catalogue of fact names as a page."""
    lines = [
        "# Facts",
        "",
        "Every fact name, generated from `envaudit/facts.py`. `*` stands for an instance.",
        "`static` is hardware, `config` moves when somebody changes it, `state` moves by itself,",
        "`measure` was measured by a run of ours.",
        "",
        "| name | kind | stability | meaning |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| `{spec.pattern}` | {spec.kind} | {spec.stability} | {_cell(spec.meaning)} |"
        for spec in CATALOGUE
    ]
    return "\n".join(lines) + "\n"


def rule_pages(matrices: Matrices) -> Iterator[tuple[Path, str]]:
    """Every rule with its conditions, fixes and sources: one page a file of matrices/rules."""
    rows = matrices.rows("rules")
    index = [
        "# Rules",
        "",
        "Every rule of envaudit, one page for each file of `matrices/rules/`, generated.",
        "",
        "| page | rules | about |",
        "|---|---|---|",
    ]
    for path in sorted((MATRICES / "rules").glob("*.json")):
        about = json.loads(path.read_text("utf-8"))["about"]
        mine = [row for row in rows if row["file"] == f"rules/{path.name}"]
        index.append(f"| [{path.stem}]({path.stem}.md) | {len(mine)} | {_cell(about)} |")
        lines = [f"# Rules: {path.stem}", "", about]
        for row in mine:
            lines += _rule(row)
        yield HERE / "rules" / f"{path.stem}.md", "\n".join(lines) + "\n"
    yield HERE / "rules" / "README.md", "\n".join(index) + "\n"


def _rule(row: Any) -> list[str]:
    lines = ["", f"## {row['id']}", "", f"**{_text(row['title'])}**", ""]
    lines.append(
        f"{row['severity']}, cause `{row['cause']}`, layer {row['layer']}, "
        f"confidence {row['confidence']}. {_text(row['why'])}"
    )
    lines.append("")
    if row.get("signals"):
        lines.append(f"- Error texts: {_code(', '.join(row['signals']))}")
    for part, word in (
        ("when", "When"),
        ("unless", "Unless"),
        ("require", "Requires"),
        ("prove", "Proved by"),
    ):
        lines += [f"- {word} {_code(sentence(each))}" for each in row.get(part, ())]
    for fix in row["fix"]:
        command = f" `{fix['command']}`" if fix.get("command") else ""
        lines.append(f"- Fix: {_text(fix['text'])}{command}")
    return lines + [f"- Source: {_source(source)}" for source in row["sources"]]


def causes_page(matrices: Matrices) -> str:
    """Every cause with the rules that find it."""
    rules: dict[str, list[str]] = {}
    for row in matrices.rows("rules"):
        page = row["file"].removeprefix("rules/").removesuffix(".json")
        rules.setdefault(row["cause"], []).append(f"[{row['id']}](rules/{page}.md)")
    lines = [
        "# Causes",
        "",
        "What a finding can be caused by, generated from `matrices/causes.json`. Causes that",
        "only a comparison of two snapshots shows have no rule of their own.",
        "",
        "| cause | deserves | meaning | rules |",
        "|---|---|---|---|",
    ]
    for name, cause in matrices.causes().items():
        found = ", ".join(rules.get(name, ())) or ("diff" if cause["where"] == "diff" else "")
        lines.append(f"| `{name}` | {cause['verdict']} | {_cell(cause['meaning'])} | {found} |")
    return "\n".join(lines) + "\n"


def signatures_page(matrices: Matrices) -> str:
    """Every error text that is known, with what it says and the causes it can have."""
    causes: dict[str, dict[str, None]] = {}
    for row in matrices.rows("rules"):
        for name in row.get("signals", ()):
            causes.setdefault(name, {}).setdefault(row["cause"])
    lines = [
        "# Error texts",
        "",
        "Every signature, generated from `matrices/signatures/`. A weak one stands in healthy",
        "logs too: it is evidence and raises nothing by itself. `envaudit explain -` reads a",
        "text from a pipe.",
        "",
        "| signature | program | weight | what it says | causes |",
        "|---|---|---|---|---|",
    ]
    for row in matrices.rows("signatures"):
        found = ", ".join(f"`{name}`" for name in causes.get(row["id"], ()))
        meaning = _cell(_text(row["meaning"]))
        lines.append(
            f"| `{row['id']}` | {row['component']} | {row['weight']} | {meaning} | {found} |"
        )
    return "\n".join(lines) + "\n"


def catalogues_page(matrices: Matrices) -> str:
    """Every table of the world, with its size and its keys."""
    lines = [
        "# Catalogues",
        "",
        "The tables that rules look things up in, generated from `matrices/catalogues/`.",
        "`envaudit matrix show NAME` prints one, each row with its source.",
        "",
        "| catalogue | rows | keys | what it holds |",
        "|---|---|---|---|",
    ]
    for path in sorted((MATRICES / "catalogues").glob("*.json")):
        data = json.loads(path.read_text("utf-8"))
        keys = ", ".join(f"`{key}`" for key in data["keys"])
        lines.append(f"| {path.stem} | {len(data['rows'])} | {keys} | {_cell(data['about'])} |")
    return "\n".join(lines) + "\n"


def reports_page() -> str:
    """What can be pasted."""
    lines = [
        "# What can be pasted",
        "",
        "`envaudit check FILE` (or `-` for a pipe) reads these wherever they stand in a text,",
        "one after another, with prompts and prose between, quoted or cut. Generated from",
        "`envaudit/importers/__init__.py`. What was not understood is told.",
        "",
        "| reader | reads |",
        "|---|---|",
    ]
    lines += [f"| `{each.name}` | {_cell(each.title)} |" for each in IMPORTERS]
    lines += [
        "",
        "A prompt (`$ nvidia-smi`, `user@host:~$ ...`, `>>> ...`, `In [3]: ...`, `PS C:\\>",
        "...`), a code fence or a heading such as *inside the container* begins a new",
        "section. What was said of a container and of its host is kept apart: the container",
        "is judged, and what holds for the whole machine (kernel, driver, GPUs) may come from",
        "either. `envaudit facts FILE` shows every fact with the line it was read in; facts",
        "of one place are also there as `scope.host.*` and so on.",
        "",
        "Error texts are found by the signatures of [signatures.md](signatures.md).",
    ]
    return "\n".join(lines) + "\n"


def verdicts_page() -> str:
    """The table of known combinations that tests/test_verdicts.py holds the rules to."""
    lines = [
        "# Known combinations",
        "",
        "Driver, PyTorch build and GPU with the verdict that their sources give; a test holds the",
        "rules to every line. Generated from `tests/verdicts.txt`.",
        "",
        "| driver | torch | GPU | system | verdict | because |",
        "|---|---|---|---|---|---|",
    ]
    for row in TRIPLES:
        verdict = f"fail, `{row.cause}`" if row.cause else "pass"
        system = f"{row.os} {row.arch}"
        cells = (row.driver, row.torch, row.gpu, system, verdict, row.because)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("*", "\\*")


def _text(text: str) -> str:
    return text.replace("<", "&lt;").replace(">", "&gt;")


def _code(text: str) -> str:
    return f"`{text}`"


def _source(source: Any) -> str:
    return f"[{source.title}]({source.url})" if source.url else source.title


def readme() -> str:
    """README with what its commands print now, in every console block."""
    text = (HERE.parent / "README.md").read_text("utf-8")
    return re.sub(r"```console\n\$ envaudit ([^\n]*)\n.*?```", _shown, text, flags=re.S)


def _shown(block: re.Match[str]) -> str:
    env = {**os.environ, "NO_COLOR": "1", "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(
        [sys.executable, "-m", "envaudit", *shlex.split(block[1])],
        capture_output=True,
        text=True,
        encoding="utf-8",
        env=env,
        cwd=HERE.parent,
        timeout=60,
        check=False,
    )
    return f"```console\n$ envaudit {block[1]}\n{done.stdout}{done.stderr}```"


def wanted() -> Iterator[tuple[Path, str]]:
    """Every derived file and what it should hold."""
    yield HERE / "facts.md", facts_page()
    matrices = Matrices(shipped=str(MATRICES))
    yield from rule_pages(matrices)
    yield HERE / "causes.md", causes_page(matrices)
    yield HERE / "signatures.md", signatures_page(matrices)
    yield HERE / "catalogues.md", catalogues_page(matrices)
    yield HERE / "reports.md", reports_page()
    yield HERE / "verdicts.md", verdicts_page()
    yield HERE.parent / "README.md", readme()
    yield MATRICES / "rows.json", row_index()
    for path in sorted(MATRICES.glob("**/*.json")):
        if path.name != "rows.json":
            yield path, canonical(json.loads(path.read_text("utf-8")))


def row_index() -> str:
    """`matrices/rows.json`: where each row stands in its file, and what it needs to say anything.

    A row is `[start, end, facts, roots]`: the characters of the row up to its examples, and the
    facts (or first parts of facts with instances) of which one must be there. For signatures
    the third is the list of its literals. Two empty lists: the row is always read.
    """
    matrices = Matrices(shipped=str(MATRICES))
    files: dict[str, Any] = {}
    for kind in ("signatures", "rules", "derive"):
        rows = matrices.rows(kind)
        needs = [*map(_telling, rows)] if kind == "signatures" else _needs(rows)
        by_id = {row["id"]: need for row, need in zip(rows, needs, strict=True)}
        for path in sorted((MATRICES / kind).glob("*.json")):
            text = canonical(json.loads(path.read_text("utf-8")))
            places = list(_places(text))
            head = text.index('"sources": ') + len('"sources": ')
            _, end = DECODER.raw_decode(text, head)
            found = []
            for start, stop, row in places:
                need = by_id[row["id"]]
                facts = need if kind == "signatures" else [each for each in need if "*" not in each]
                roots = sorted({each.partition(".")[0] for each in need if "*" in each})
                found.append([start, stop, facts, [] if kind == "signatures" else roots])
            files[f"{kind}/{path.name}"] = {
                "length": len(text),
                "sources": [head, end],
                "rows": found,
            }
    lines = []
    for name, said in files.items():
        rows_ = ",\n".join(json.dumps(row, ensure_ascii=False) for row in said["rows"])
        head_ = json.dumps({k: said[k] for k in ("length", "sources")})[:-1]
        lines.append(f'{json.dumps(name)}: {head_}, "rows": [\n{rows_}\n]}}')
    return '{"schema": "envaudit.rows/1", "files": {\n' + ",\n".join(lines) + "\n}}\n"


DECODER = json.JSONDecoder()


def canonical(data: Any) -> str:
    """A file of rows in the one form that it is kept in: examples are the last key of a row."""
    rows = data.get("rows")
    if isinstance(rows, list):
        for row in rows:
            if "examples" in row:
                row["examples"] = row.pop("examples")
    return json.dumps(data, indent=1, ensure_ascii=False) + "\n"


def _places(text: str) -> Iterator[tuple[int, int, Any]]:
    """Every row with its first character and the one behind what is read of it."""
    at = text.index('"rows": [') + len('"rows": [')
    while text[at:].lstrip()[:1] in ("{", ","):
        start = text.index("{", at)
        row, at = DECODER.raw_decode(text, start)
        cut = text.rfind(',\n   "examples":', start, at)
        yield start, cut if cut >= 0 else at - 1, row


def _telling(row: Any) -> list[str]:
    """Literals of which one stands in every text of a signature: its hints, or better ones."""
    own = list(literals_of(row["pattern"], re.MULTILINE))
    return max([row["hints"], own], key=lambda each: min(map(len, each), default=0))


def _needs(rows: Sequence[Any]) -> list[list[str]]:
    """Facts of which one must be there for a row to say anything; empty: it always may."""
    wanted = [
        [[f"signal.{name}" for name in row["signals"]]]
        if "signals" in row
        else _groups(row["when"])
        for row in rows
    ]
    uses = Counter(name for groups in wanted for group in groups for name in set(group))
    found = []
    for row, groups in zip(rows, wanted, strict=True):
        # Of the facts that must all be there one is enough to tell: the one fewest rows ask for.
        group = min(
            groups, key=lambda names: (sum(uses[name] for name in names), names), default=[]
        )
        found.append(sorted({each for name in group for each in _instances(name, row)}))
    return found


def _groups(conditions: Iterable[Any]) -> list[list[str]]:
    """Facts that conditions need: of every group one at least must be there for all to hold."""
    groups: list[list[str]] = []
    for condition in conditions:
        if "any" in condition:
            ways = [_groups([each]) for each in condition["any"]]
            if all(ways):
                groups.append(sorted({name for way in ways for name in min(way, key=len)}))
        elif "all" in condition:
            groups += _groups(condition["all"])
        elif "code" in condition:
            groups += [[condition["code"]["of"]], [condition["code"]["on"]]]
        else:
            groups += [[name] for name in needed([condition])]
    return groups


def _instances(name: str, row: Any) -> list[str]:
    """A fact name with the choices of the row's variables put in; * for instances."""
    names = [name]
    for variable, over in row.get("for", {}).items():
        choices = over if isinstance(over, list) else [over]
        names = [each.replace("{" + variable + "}", choice) for each in names for choice in choices]
    return names


def main() -> int:
    """Write or check; returns the exit status."""
    stale = [(p, t) for p, t in wanted() if not p.exists() or p.read_text("utf-8") != t]
    for path, text in stale:
        print(f"{'out of date' if '--check' in sys.argv else 'written'}: {path.name}")
        if "--check" not in sys.argv:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, "utf-8")
    return 1 if stale and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
