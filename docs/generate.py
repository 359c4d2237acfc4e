"""Write what is derived: docs/facts.md, docs/rules.md, README's outputs, canonical matrices.

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
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from envaudit.facts import CATALOGUE  # noqa: E402
from envaudit.matrix import Matrices  # noqa: E402
from envaudit.output.rows import sentence  # noqa: E402
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


def rules_page() -> str:
    """Every rule with its conditions, fixes and sources as a page."""
    matrices = Matrices(shipped=str(MATRICES))
    lines = [
        "# Rules",
        "",
        "Every rule of envaudit, generated from its row in `matrices/rules/`.",
    ]
    for row in matrices.rows("rules"):
        lines += ["", f"## {row['id']}", "", f"**{_text(row['title'])}**", ""]
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
        lines += [f"- Source: {_source(source)}" for source in row["sources"]]
    return "\n".join(lines) + "\n"


def verdicts_page() -> str:
    """The table of known combinations that tests/test_verdicts.py holds the rules to."""
    lines = [
        "# Known combinations",
        "",
        "Driver, PyTorch build and GPU with the verdict that their sources give; a test holds the",
        "rules to every line. Generated from `tests/verdicts.py`.",
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
    yield HERE / "rules.md", rules_page()
    yield HERE / "verdicts.md", verdicts_page()
    yield HERE.parent / "README.md", readme()
    for path in sorted(MATRICES.glob("**/*.json")):
        data = json.loads(path.read_text("utf-8"))
        yield path, json.dumps(data, indent=1, ensure_ascii=False) + "\n"


def main() -> int:
    """Write or check; returns the exit status."""
    stale = [(p, t) for p, t in wanted() if not p.exists() or p.read_text("utf-8") != t]
    for path, text in stale:
        print(f"{'out of date' if '--check' in sys.argv else 'written'}: {path.name}")
        if "--check" not in sys.argv:
            path.write_text(text, "utf-8")
    return 1 if stale and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
