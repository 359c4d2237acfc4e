"""What if, and what would fit, for a person and as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from envaudit.advise import Candidate, Recommendation, WhatIf
from envaudit.constraint import release
from envaudit.evaluate import show
from envaudit.model import Finding
from envaudit.output import json as as_json
from envaudit.output import text as as_text
from envaudit.output.text import Style, clean


def what_if(said: WhatIf, style: Style, *, verbose: bool = False) -> str:
    """What would be new, resolved and standing, then the report of the machine as it would be."""
    said = clean(said)
    assumed = ", ".join(f"{name} {show(value)}" for name, value in said.assumed.items())
    lines = [f"{style.paint('What if', 'bold')} {assumed}: {_step(said)}"]
    for word, findings, mark in (
        ("resolved", said.resolved, "ok"),
        ("new", said.new, None),
        ("standing", said.standing, None),
    ):
        lines += [
            f"  {style.mark(mark or finding.severity)} {word}: {finding.title}"
            for finding in findings
            if finding.because_of is None and (finding.severity != "note" or verbose)
        ]
    return "\n".join(lines) + "\n\n" + as_text.report(said.after, style, verbose=verbose)


def _step(said: WhatIf) -> str:
    if said.before.verdict == said.after.verdict:
        return f"{said.after.verdict}, as now"
    return f"{said.after.verdict}, where it is {said.before.verdict} now"


def what_if_json(said: WhatIf, *, everything: bool = False) -> str:
    """A report with "assumed", and "change" in each finding."""
    data = json.loads(as_json.report(said.after, everything=everything))
    new = {(f.rule, f.subject) for f in said.new}
    standing = {(f.rule, f.subject) for f in said.standing}
    for each in data["findings"]:
        key = (each["rule"], each["subject"])
        if key in new or key in standing:
            each["change"] = "new" if key in new else "standing"
    data["findings"] += [{**as_json.finding(f), "change": "resolved"} for f in said.resolved]
    data["assumed"] = dict(said.assumed)
    data["before"] = {"verdict": said.before.verdict}
    return json.dumps(data, indent=1, ensure_ascii=False) + "\n"


def recommendation(said: Recommendation, style: Style) -> str:
    """The builds that fit, with the command, and why newer ones do not."""
    said = clean(said)
    lines = []
    if said.candidates:
        lines.append(style.paint(f"Builds of {said.component} that fit this machine", "bold"))
        width = max(len(each.version) for each in said.candidates)
        for number, each in enumerate(said.candidates):
            lines.append(f"  {_mark(each, style)} {each.version:<{width}}  {_doubt(each)}".rstrip())
            if number == 0:
                lines += [
                    f"      {style.paint('$ ' + command, 'blue')}" for _, command in each.commands
                ]
    else:
        lines.append(style.paint(f"No build of {said.component} is known to fit", "bold"))
    if said.candidates and not said.gpus:
        lines += ["", "No GPU is known here: whether a build has code for yours was not judged."]
    newer = [each for each in said.rejected if not said.candidates or _newer(each, said)]
    if newer:
        lines += ["", style.paint("Newer ones, and what speaks against them", "bold")]
        for each in newer:
            lines.append(f"  {style.mark('error')} {each.version}: {_against(each)}")
    if said.unlock is not None:
        branch, best = said.unlock
        lines += ["", f"A driver of branch {branch} or newer would allow {best.version}."]
    return "\n".join(lines) + "\n"


def _newer(each: Candidate, said: Recommendation) -> bool:
    return release(each.version) > release(said.candidates[0].version)


def _mark(said: Candidate, style: Style) -> str:
    return style.mark({"pass": "ok", "warn": "warning"}.get(said.verdict, "unknown"))


def _doubt(said: Candidate) -> str:
    if said.verdict == "pass":
        return ""
    if said.verdict == "warn":
        return "; ".join(_titles(said.because))
    missing = dict.fromkeys(text.partition(":")[0] for f in said.because for text in f.missing)
    return f"if {', '.join(missing)} fits, which is not known here"


def _against(said: Candidate) -> str:
    if said.verdict == "doubtful":
        return "whether it has code for this GPU is not sure"
    return "; ".join(_titles(said.because)[:2])


def _titles(findings: Sequence[Finding]) -> list[str]:
    return list(dict.fromkeys(finding.title for finding in findings))


def recommendation_json(said: Recommendation) -> str:
    """envaudit.recommendation/1: every candidate with its verdict, best first."""
    data: dict[str, Any] = {
        "schema": "envaudit.recommendation/1",
        "component": said.component,
        "candidates": [_candidate(each) for each in (*said.candidates, *said.rejected)],
        "unlock": None
        if said.unlock is None
        else {"driver_branch": said.unlock[0], **_candidate(said.unlock[1])},
    }
    return json.dumps(data, indent=1, ensure_ascii=False) + "\n"


def _candidate(said: Candidate) -> dict[str, Any]:
    return {
        "version": said.version,
        "flavour": said.flavour or None,
        "verdict": said.verdict,
        "command": said.commands[0][1] if said.commands else None,
        "commands": [{"manager": name, "command": text} for name, text in said.commands],
        "because": [as_json.finding(each) for each in said.because],
    }
