"""The report for a person: verdict, root causes with evidence and fix, the stack in short."""

from __future__ import annotations

import difflib
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar, cast

from envaudit.check import told, undecided
from envaudit.evaluate import show, visible
from envaudit.facts import CATALOGUE, spec_of
from envaudit.model import Absent, Change, Comparison, Fact, Finding, Report, Snapshot, Unknown

_Told = TypeVar("_Told")

_CODES = {"red": "31", "green": "32", "yellow": "33", "blue": "34", "bold": "1", "dim": "2"}


class Style(NamedTuple):
    """How text may look where it is going."""

    colour: bool = False
    unicode: bool = True
    width: int = 100

    def paint(self, text: str, *codes: str) -> str:
        """The text in these colours, where there are colours."""
        if not self.colour or not text:
            return text
        return f"\x1b[{';'.join(_CODES[code] for code in codes)}m{text}\x1b[0m"

    def mark(self, severity: str) -> str:
        """One sign for a severity."""
        signs = {"error": "✗", "warning": "!", "note": "·", "ok": "✓", "unknown": "?"}
        plain = {"error": "x", "warning": "!", "note": "-", "ok": "+", "unknown": "?"}
        colours = {
            "error": "red",
            "warning": "yellow",
            "note": "dim",
            "ok": "green",
            "unknown": "yellow",
        }
        return self.paint((signs if self.unicode else plain)[severity], colours[severity], "bold")


def report(said: Report, style: Style, *, verbose: bool = False, quiet: bool = False) -> str:
    """The report as text; `verbose`: also what passed and every gap; `quiet`: failures only."""
    said = clean(said)
    lines = [_headline(said, style), ""]
    roots = [f for f in said.findings if told(f) and f.because_of is None]
    follows = [f for f in said.findings if told(f) and f.because_of is not None]
    for group in _groups(f for f in roots if f.severity != "note"):
        lines += [*_finding(group, follows, style), ""]
    if quiet:
        return _end(lines, style)
    notes = [f for f in roots if f.severity == "note"]
    open_questions = [f for f in said.findings if undecided(f)]
    if notes:
        for group in _groups(notes):
            lines += _note(group[0], style)
        lines.append("")
    if open_questions:
        lines += [*_undecided(open_questions, style, verbose), ""]
    lines += _strange_names(said.snapshot, style)
    gaps = _gaps(said.snapshot, verbose)
    if gaps:
        lines.append(style.paint("Could not be looked at", "bold"))
        for text in gaps:
            lines += _wrap(f"{style.mark('unknown')} {text}", style, 2)
        lines.append("")
    lines += [*stack(said.snapshot, style, sources=verbose), ""]
    if verbose:
        passed = [f for f in said.findings if f.verdict == "pass"]
        lines.append(style.paint(f"Passed ({len(passed)})", "bold"))
        lines += [f"  {style.mark('ok')} {f.rule}{_of(f)}" for f in passed]
        lines.append("")
    if said.matrices_stale_days:
        lines += _wrap(
            f"{style.mark('warning')} The newest source of these matrices was read "
            f"{said.matrices_stale_days} days ago; newer drivers and builds are not in them. "
            "Update envaudit.",
            style,
            0,
            2,
        )
    lines.append(
        style.paint(
            f"matrices {said.matrices_version} (newest source {said.matrices_newest_source}); "
            f"`envaudit explain RULE` shows a row, -v where each value was read",
            "dim",
        )
    )
    return _end(lines, style)


def clean(said: _Told) -> _Told:
    """The same with every control character in every text written out.

    What is shown comes from files of anybody's making; none of it may command a terminal.
    """
    return cast(_Told, _clean(said))


def _clean(said: object) -> object:
    if isinstance(said, str):
        return visible(said)
    if isinstance(said, tuple):
        parts = [_clean(part) for part in said]
        make = getattr(said, "_make", tuple)
        return make(parts)
    if isinstance(said, list):
        return [_clean(part) for part in said]
    if isinstance(said, Mapping):
        return {_clean(key): _clean(value) for key, value in said.items()}
    return said


def _end(lines: Sequence[str], style: Style) -> str:
    text = "\n".join(lines).rstrip() + "\n"
    return text if style.unicode else text.replace("…", "...")


def _headline(said: Report, style: Style) -> str:
    roots = [f for f in said.findings if told(f) and f.because_of is None]
    errors = len({(f.rule, f.title) for f in roots if f.severity == "error"})
    warnings = len({(f.rule, f.title) for f in roots if f.severity == "warning"})
    where = _where(said.snapshot)
    if said.verdict == "fail":
        text = f"{style.paint('FAIL', 'red', 'bold')}  {_count(errors, 'root cause')}"
        text += f" and {_count(warnings, 'warning')}" if warnings else ""
    elif said.verdict == "unknown":
        judged = any(f.verdict in ("pass", "fail") for f in said.findings)
        why = "not everything could be told" if judged else "nothing here could be judged"
        text = f"{style.paint('UNKNOWN', 'yellow', 'bold')}  {why}"
    elif said.verdict == "warn":
        text = f"{style.paint('WARN', 'yellow', 'bold')}  nothing broken found, but "
        text += _count(warnings, "warning")
    else:
        text = f"{style.paint('PASS', 'green', 'bold')}  nothing found that does not fit together"
    return f"{text} {where}".rstrip()


def _where(snapshot: Snapshot) -> str:
    target = snapshot.target
    if target.get("executable"):
        return f"(python: {target['executable']}, {target.get('chosen_by', '')})"
    return ""


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


def _groups(findings: Iterable[Finding]) -> list[list[Finding]]:
    """Findings of one rule that differ only in their subject are told once."""
    groups: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        title = finding.title.replace(finding.subject or "\0", "*")
        groups.setdefault((finding.rule, title), []).append(finding)
    return list(groups.values())


def _finding(group: Sequence[Finding], follows: Sequence[Finding], style: Style) -> list[str]:
    first = group[0]
    more = f" (and {', '.join(f.subject or '' for f in group[1:])})" if len(group) > 1 else ""
    title = style.paint(first.title + more, "bold")
    lines = [f"{style.mark(first.severity)} {title}", f"  {style.paint(first.cause, 'dim')}"]
    known = [e for e in first.evidence if e.value is not None]
    shown = known or list(first.evidence)
    width = max((len(e.fact) for e in shown), default=0)
    for evidence in shown:
        value = _clip(show(evidence.value), 60)
        source = style.paint(f"[{_clip(evidence.source, 90)}]", "dim")
        lines.append(f"    {evidence.fact:<{width}}  {value}  {source}")
    lines += _wrap(f"why: {first.why}", style, 2, 7)
    for number, fix in enumerate(first.fix, 1):
        needs = ["root"] * fix.needs_root + ["reboot"] * fix.needs_reboot
        mark = style.paint(f" [needs {', '.join(needs)}]", "yellow") if needs else ""
        # A text that says itself how it goes on needs no "or" before it.
        goes_on = fix.text.startswith(("Or ", "Then "))
        advice = fix.text
        if number == 1 and advice.startswith("Or "):  # the ways before it do not fit this machine
            advice = advice[3:4].upper() + advice[4:]
        lead = "fix: " if number == 1 else "     " if goes_on else " or: "
        lines += _wrap(f"{lead}{advice}{mark}", style, 2, 7)
        if fix.command:
            lines.append(f"       {style.paint('$ ' + fix.command, 'blue')}")
    for said in first.sources[:2]:
        url = f" {said.url}" if said.url else ""
        lines.append(style.paint(f"  source: {said.title}{url}", "dim"))
    mine = [f for f in follows if f.because_of == first.rule]
    for finding in mine:
        lines += _wrap(f"follows from it: {finding.title}", style, 2, 4)
    return lines


def _note(finding: Finding, style: Style) -> list[str]:
    """A finding that only informs; one that rests on less sure knowledge says so."""
    if finding.confidence == "high":
        return _wrap(f"{style.mark('note')} {finding.title}. {finding.why}", style, 2)
    doubt = f"Perhaps ({finding.confidence} confidence, so it counts for nothing): "
    lines = _wrap(f"{style.mark('unknown')} {doubt}{finding.title}. {finding.why}", style, 2)
    for fix in finding.fix[:1]:
        lines += _wrap(f"If so: {fix.text}", style, 4)
    return lines


def _undecided(findings: Sequence[Finding], style: Style, verbose: bool) -> list[str]:
    lines = [style.paint("Could not be decided", "bold")]
    for finding in findings:
        reason = "; ".join(finding.missing[:3])
        lines += _wrap(f"{style.mark('unknown')} {finding.rule}{_of(finding)}: {reason}", style, 2)
        if not verbose and len(lines) > 8:
            lines.append(f"    … and {len(findings) - 8} more (-v shows all)")
            break
    return lines


def _of(finding: Finding) -> str:
    return f" ({finding.subject})" if finding.subject else ""


def _strange_names(snapshot: Snapshot, style: Style) -> list[str]:
    """Names that no rule can know, with the name that was perhaps meant."""
    strange = [name for name in snapshot.facts if spec_of(name) is None]
    if not strange:
        return []
    exact = [spec.pattern for spec in CATALOGUE if "*" not in spec.pattern]
    told = []
    for name in sorted(strange)[:5]:
        near = difflib.get_close_matches(name, exact, 1, 0.8)
        told.append(f"{name} (did you mean {near[0]}?)" if near else name)
    more = f" and {len(strange) - 5} more" if len(strange) > 5 else ""
    text = f"Not names of the catalogue, so no rule looks at them: {', '.join(told)}{more}"
    return [*_wrap(f"{style.mark('unknown')} {text}", style, 2), ""]


def _gaps(snapshot: Snapshot, verbose: bool) -> list[str]:
    found = [
        f"{run.name}: {run.status}{': ' + run.detail if run.detail else ''}"
        for run in snapshot.probes
        if run.status not in ("ok", "absent", "skipped")
    ]
    for run in snapshot.probes:
        if run.name.startswith("import:"):  # what a pasted text leaves open is for its reader
            found += [run.detail] if run.detail else []
    if verbose:
        found += [
            f"{run.name}: {name}: {reason}"
            for run in snapshot.probes
            for name, reason in run.gaps.items()
        ]
    return found


def _wrap(text: str, style: Style, indent: int, hanging: int | None = None) -> list[str]:
    return textwrap.wrap(
        text,
        width=max(40, style.width),
        initial_indent=" " * indent,
        subsequent_indent=" " * (indent + 2 if hanging is None else hanging),
        break_long_words=False,
        break_on_hyphens=False,
    )


def _clip(text: str, width: int) -> str:
    text = " ".join(text.split())
    return text if len(text) <= width else text[: width - 1] + "…"


# -- the stack --------------------------------------------------------------------------------


_STACK_FACTS = {
    "GPU": ("pci.gpu.count", "gpu.count"),
    "driver": ("driver.version", "driver.module.version", "driver.cuda.version"),
    "toolkit": ("cuda.toolkit.version",),
    "libraries": ("cuda.runtime.version", "cudnn.version", "nccl.version", "cublas.version"),
    "frameworks": tuple(
        f"{name}.version"
        for name in ("torch", "tensorflow", "jax", "cupy", "onnxruntime", "paddle")
    ),
    "python": ("python.version",),
    "compilers": ("gcc.version", "clang.version"),
    "system": ("os.name", "kernel.release", "os.libc.version", "container.runtime"),
}
"""The facts behind each row of the stack, whose sources -v tells."""


def _sources(snapshot: Snapshot, row: str, style: Style) -> list[str]:
    lines = []
    for name in _STACK_FACTS[row]:
        answer = snapshot.ask(name)
        if isinstance(answer, Fact):
            told = f"{name} {_clip(show(answer.value), 40)}: {answer.source}"
        elif isinstance(answer, Absent) and row == "driver":
            told = f"{name} absent: looked for by {answer.source}"
        else:
            continue
        lines += [style.paint(line, "dim") for line in _wrap(told, style, 13)]
    return lines


def stack(snapshot: Snapshot, style: Style, *, sources: bool = False) -> list[str]:
    """A short table of what is there, top to bottom, unknowns told as such."""
    rows = [
        ("GPU", _gpus(snapshot)),
        ("driver", _driver(snapshot)),
        ("toolkit", _toolkit(snapshot)),
        ("libraries", _libraries(snapshot)),
        ("frameworks", _frameworks(snapshot)),
        ("python", _python(snapshot)),
        ("compilers", _join(snapshot, {"gcc": "gcc.version", "clang": "clang.version"})),
        ("system", _system(snapshot)),
    ]
    lines = []
    for name, text in rows:
        if text:
            lines += _wrap(f"{name:<11}{text}", style, 2, 13)
            lines += _sources(snapshot, name, style) if sources else []
    return [style.paint("The stack", "bold"), *lines] if lines else []


def _value(snapshot: Snapshot, name: str) -> str:
    answer = snapshot.ask(name)
    return show(answer.value) if isinstance(answer, Fact) else ""


def _or_why(snapshot: Snapshot, name: str, absent: str) -> str:
    answer = snapshot.ask(name)
    if isinstance(answer, Fact):
        return show(answer.value)
    if isinstance(answer, Absent):
        return absent
    return f"unknown ({answer.reason})" if answer.reason != "nobody looked" else ""


def _gpus(snapshot: Snapshot) -> str:
    counted: dict[str, int] = {}
    for gpu in snapshot.instances("gpu.*"):
        name = _value(snapshot, f"{gpu}.name")
        capability = _value(snapshot, f"{gpu}.compute_capability")
        if name or capability:
            text = name + (f" (compute capability {capability})" if capability else "")
            counted[text] = counted.get(text, 0) + 1
    if counted:
        return ", ".join(f"{number} x {name}" for name, number in counted.items())
    bus = snapshot.ask("pci.gpu.count")
    if isinstance(bus, Fact):
        return (
            f"{show(bus.value)} on the PCI bus, none usable" if bus.value else "none on the PCI bus"
        )
    seen = snapshot.ask("gpu.count")
    if isinstance(seen, Fact):
        return show(seen.value)
    # That NVML is missing or silent does not tell that there is no GPU.
    reasons = [a.reason for a in (bus, seen) if isinstance(a, Unknown)]
    known = [reason for reason in reasons if reason != "nobody looked"]
    return f"unknown ({known[0]})" if known else ""


def _driver(snapshot: Snapshot) -> str:
    answer = snapshot.ask("driver.version")
    library = _value(snapshot, "driver.library.version")
    loaded = isinstance(answer, Fact) and "driver.library.version" not in answer.source
    if isinstance(answer, Fact) and (loaded or not library):
        text = show(answer.value)
        flavor = _value(snapshot, "driver.module.flavor")
        text += f" ({flavor} kernel module)" if flavor else ""
        cuda = _value(snapshot, "driver.cuda.version")
        return text + (f", runs CUDA up to {cuda}" if cuda else "")
    if library:
        module = snapshot.ask("driver.module.loaded")
        known = isinstance(module, Absent) or (isinstance(module, Fact) and not module.value)
        state = "not loaded; " if known else ""
        return f"{state}user-mode libraries {library} are installed"
    if isinstance(answer, Unknown) and answer.reason != "nobody looked":
        return f"unknown ({answer.reason})"
    return "no NVIDIA driver" if isinstance(answer, Absent) else ""


def _toolkit(snapshot: Snapshot) -> str:
    answer = snapshot.ask("cuda.toolkit.version")
    if not isinstance(answer, Fact):
        return _or_why(snapshot, "cuda.toolkit.version", "")
    home = _value(snapshot, "cuda.home").split(" (")[0]
    return f"CUDA {show(answer.value)}" + (f" in {home}" if home else "")


def _join(snapshot: Snapshot, names: Mapping[str, str]) -> str:
    parts = [f"{word} {_value(snapshot, name)}" for word, name in names.items()]
    return ", ".join(part for part in parts if not part.endswith(" "))


def _libraries(snapshot: Snapshot) -> str:
    return _join(
        snapshot,
        {
            "cudart": "cuda.runtime.version",
            "cuDNN": "cudnn.version",
            "NCCL": "nccl.version",
            "cuBLAS": "cublas.version",
            "TensorRT": "tensorrt.version",
        },
    )


def _frameworks(snapshot: Snapshot) -> str:
    parts = []
    for name in ("torch", "tensorflow", "jax", "cupy", "onnxruntime", "paddle"):
        version = _value(snapshot, f"{name}.version")
        if not version:
            continue
        of = "jaxlib" if name == "jax" else name
        cuda = snapshot.ask(f"{of}.cuda.version")
        built = f" (CUDA {show(cuda.value)})" if isinstance(cuda, Fact) else ""
        hip = _value(snapshot, f"{of}.hip.version")
        if hip:
            parts.append(f"{name} {version} (ROCm {hip})")
            continue
        built = " (CPU-only build)" if isinstance(cuda, Absent) else built
        parts.append(f"{name} {version}{built}")
    return ", ".join(parts)


def _python(snapshot: Snapshot) -> str:
    version = _value(snapshot, "python.version")
    if not version:
        return _or_why(snapshot, "python.version", "none")
    kind = _value(snapshot, "python.environment")
    return f"{version}{f' ({kind})' if kind else ''} {_value(snapshot, 'python.executable')}"


def _system(snapshot: Snapshot) -> str:
    parts = [
        _value(snapshot, "os.name"),
        _join(snapshot, {"kernel": "kernel.release", "glibc": "os.libc.version"}),
        _value(snapshot, "container.runtime"),
    ]
    return ", ".join(part for part in parts if part)


# -- diff -------------------------------------------------------------------------------------


def comparison(said: Comparison, style: Style, *, verbose: bool = False) -> str:
    """A diff for a person: what broke and why first, then the changes by component."""
    said = clean(said)
    lines = [
        f"{_name(said.old)}  {'→' if style.unicode else '->'}  {_name(said.new)}",
        "",
    ]
    before, after = (
        _value(side, "python.executable") or str(side.target.get("executable", ""))
        for side in (said.old, said.new)
    )
    if before and after and before != after:
        text = f"Another interpreter was audited: {before}, then {after} (--python names one)."
        lines += [*_wrap(f"{style.mark('warning')} {text}", style, 0), ""]
    if said.suspects:
        lines.append(style.paint("What explains it", "bold"))
        for suspect in said.suspects:
            lines += _wrap(f"{suspect.rank}. {suspect.why}", style, 2, 5)
            for fix in suspect.fix[:1]:
                lines += _wrap(f"fix: {fix.text}", style, 5, 10)
                if fix.command:
                    lines.append(f"          {style.paint('$ ' + fix.command, 'blue')}")
        lines.append("")
    for title, findings in (
        ("New findings", said.appeared),
        ("Resolved", said.resolved),
        ("Still standing", said.standing),
    ):
        if findings:
            lines.append(style.paint(title, "bold"))
            for finding in findings:
                mark = style.mark("ok" if title == "Resolved" else finding.severity)
                told = f"{mark} {finding.title}"
                if finding.because_of is not None:
                    told = f"  follows from it: {finding.title}"
                lines += _wrap(told, style, 2)
            lines.append("")
    moved = [c for c in said.changes if c.stability != "state"]
    by_itself = [c for c in said.changes if c.stability == "state"]
    if not moved and not by_itself:
        lines += ["Nothing changed.", ""]
    if moved:
        lines.append(style.paint(_count(len(moved), "change"), "bold"))
        lines += [*_changes(moved, style), ""]
    if by_itself:
        lines.append(
            style.paint(
                f"{_count(len(by_itself), 'value')} moved by themselves "
                f"(temperatures, load, ...)" + ("" if verbose else "; -v shows them"),
                "dim",
            )
        )
        lines += [*(_changes(by_itself, style) if verbose else []), ""]
    if said.blinded:
        names = sorted({f"{b.reason}" for b in said.blinded})
        lines += _wrap(
            f"{style.mark('unknown')} {_count(len(said.blinded), 'fact')} could be seen in one of "
            f"the two only: {'; '.join(names[:3])}",
            style,
            0,
        )
    return _end(lines, style)


def _name(snapshot: Snapshot) -> str:
    label = f" ({snapshot.label})" if snapshot.label else ""
    return f"{snapshot.taken_at or snapshot.id}{label}"


def _changes(changes: Sequence[Change], style: Style) -> list[str]:
    arrow = "→" if style.unicode else "->"
    lines = []
    width = min(44, max(len(change.fact) for change in changes))
    for change in changes:
        if isinstance(change.before, list) and isinstance(change.after, list):
            gone = [item for item in change.before if item not in change.after]
            come = [item for item in change.after if item not in change.before]
            text = " ".join(
                [f"-{show(item)}" for item in gone] + [f"+{show(item)}" for item in come]
            )
        else:
            text = f"{_clip(show(change.before), 60)} {arrow} {_clip(show(change.after), 60)}"
        word = "" if change.kind in ("changed", "added", "removed") else f"  {change.kind}"
        lines += _wrap(f"{change.fact:<{width}}  {text}{style.paint(word, 'dim')}", style, 2, 6)
    return lines
