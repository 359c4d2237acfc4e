"""The commands: parse, call, render, exit. typer lives only here.

Everything a command needs is imported inside it: `--help` and judging a file must not pay for
probes, and looking must not pay for matrices.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, NoReturn, TextIO

import typer

from envaudit import __version__
from envaudit.errors import EnvauditError, UsageError

if TYPE_CHECKING:
    from envaudit.advise import Assumption
    from envaudit.host import Host
    from envaudit.matrix import Matrices
    from envaudit.model import Snapshot, Value
    from envaudit.output.text import Style
    from envaudit.store import Store


def _application() -> typer.Typer:
    """The application without its commands."""
    return typer.Typer(
        name="envaudit",
        add_completion=False,
        no_args_is_help=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        help="What changed on this GPU machine, does it fit together, and what to do about it.",
        epilog="Exit codes: 0 fine, 1 warnings that count, 2 an error, 3 undetermined (--strict), "
        "64 wrong usage or input, 70 internal error.",
    )


app = _application()

Python = Annotated[
    str | None,
    typer.Option(
        "--python",
        metavar="PATH",
        help="Interpreter or virtual environment under audit (default: $VIRTUAL_ENV, "
        "$CONDA_PREFIX, python3 on PATH).",
    ),
]
Root = Annotated[
    str | None,
    typer.Option(
        "--root", metavar="DIR", help="A mounted image instead of this machine (files only)."
    ),
]
Format = Annotated[str, typer.Option("--format", metavar="text|json", help="Output format.")]
Output = Annotated[
    str | None,
    typer.Option("-o", "--output", metavar="FILE", help="Write there instead of standard output."),
]
Extra = Annotated[
    list[str] | None,
    typer.Option(
        "--matrices", metavar="DIR", help="Rows that add to or override the shipped ones."
    ),
]
StoreFolder = Annotated[
    str | None, typer.Option("--store", metavar="DIR", help="Where snapshots live.")
]
Expect = Annotated[
    int | None,
    typer.Option("--expect-gpus", metavar="N", min=0, help="GPUs this machine should have."),
]
Deadline = Annotated[
    float,
    typer.Option("--deadline", metavar="SECONDS", min=0.5, max=3600, help="For the whole look."),
]
Strict = Annotated[
    bool, typer.Option("--strict", help="Exit 3 when something could not be determined.")
]
FailOn = Annotated[
    str, typer.Option("--fail-on", metavar="error|warning", help="What ends in a non-zero exit.")
]
Everything = Annotated[bool, typer.Option("--all", help="In JSON: also what passed.")]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="Only what went wrong.")]
Log = Annotated[
    list[str] | None,
    typer.Option("--log", metavar="FILE", help="A log with error texts, as evidence besides."),
]
Verbose = Annotated[bool, typer.Option("-v", "--verbose", help="Also what passed, and every gap.")]

DEFAULT_DEADLINE_S = 10.0


@app.callback(invoke_without_command=True)
def _default(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
) -> None:
    if version:
        print(f"envaudit {__version__}")
        raise typer.Exit(0)
    if context.invoked_subcommand is None:
        check()


@app.command()
def snapshot(
    label: Annotated[
        str | None, typer.Option("--label", metavar="TEXT", help="A name to find it by.")
    ] = None,
    output: Annotated[
        str | None,
        typer.Option("-o", "--output", metavar="FILE|-", help="Write there instead of the store."),
    ] = None,
    redact: Annotated[
        bool,
        typer.Option("--redact", help="Replace names, addresses and serials."),
    ] = False,
    python: Python = None,
    root: Root = None,
    store: StoreFolder = None,
    deadline: Deadline = DEFAULT_DEADLINE_S,
    quiet: Quiet = False,
) -> None:
    """Look at this machine and keep what was seen.

    Example: envaudit snapshot --label before-update
    """
    if label is not None:
        from envaudit.store import check_label

        check_label(label)
    found = _look(_host(root), python, deadline, label=label)
    if redact:
        from envaudit.redact import redact as redacted

        found = redacted(found, users=_accounts())
    if output is not None:
        from envaudit.snapshot import dump

        _write(dump(found), None if output == "-" else output)
        place = output
    else:
        place = _store(store).save(found)
    if output != "-" and not quiet:
        told = f"{len(found.facts)} facts"
        unknown = [r.name for r in found.probes if r.status not in ("ok", "absent", "skipped")]
        more = f"; could not look: {', '.join(unknown)}" if unknown else ""
        print(f"{found.id}{f' ({label})' if label else ''}: {told}{more}")
        print(f"kept in {place}")


@app.command()
def check(
    inputs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[SNAPSHOT|REPORT|-]...",
            help="A snapshot (file, label, @1, date), flat facts, or a report to judge instead of "
            "this machine; several are parts of one picture.",
        ),
    ] = None,
    python: Python = None,
    root: Root = None,
    log: Log = None,
    output_format: Format = "text",
    output: Output = None,
    matrices: Extra = None,
    store: StoreFolder = None,
    expect_gpus: Expect = None,
    deadline: Deadline = DEFAULT_DEADLINE_S,
    strict: Strict = False,
    fail_on: FailOn = "error",
    everything: Everything = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Judge this machine, a snapshot, or what a report says.

    Examples: envaudit check · envaudit check @1 · nvidia-smi -q -x | envaudit check -
    """
    _choice("--format", output_format, "text", "json")
    level = _choice("--fail-on", fail_on, "error", "warning")
    from envaudit.check import check as judge

    knowledge = _matrices(matrices)
    if inputs:
        _no_live_options(python=python, root=root)
        seen = _read_all(inputs, store, knowledge)
    else:
        seen = _look(_host(root), python, deadline)
    seen = _with_log(seen, log, knowledge)
    assume: dict[str, tuple[Value, str]] = {}
    if expect_gpus is not None:
        assume["expected.gpu.count"] = (expect_gpus, "--expect-gpus")
    report = judge(seen, knowledge, assume=assume, everything=everything)
    from envaudit import exits

    code = exits.of_report(report, strict=strict, fail_on=level)  # type: ignore[arg-type]
    if output_format == "json":
        from envaudit.output import json as as_json

        text = as_json.report(report, everything=everything)
    else:
        from envaudit.output import text as as_text

        text = as_text.report(report, _style(output), verbose=verbose, quiet=quiet)
    _write(text, output)
    raise typer.Exit(code)


@app.command()
def diff(
    old: Annotated[
        str | None,
        typer.Argument(
            metavar="[OLD", help="Earlier snapshot: file, label, @1, date (default: newest stored)."
        ),
    ] = None,
    new: Annotated[
        str | None,
        typer.Argument(metavar="[NEW]]", help="Later snapshot, or now (default: now)."),
    ] = None,
    python: Python = None,
    log: Log = None,
    output_format: Format = "text",
    output: Output = None,
    matrices: Extra = None,
    store: StoreFolder = None,
    deadline: Deadline = DEFAULT_DEADLINE_S,
    exit_code: Annotated[
        bool, typer.Option("--exit-code", help="Exit 1 when something changed.")
    ] = False,
    fail_on: Annotated[
        str | None,
        typer.Option("--fail-on", metavar="error|warning", help="Exit 2 on such a new finding."),
    ] = None,
    verbose: Verbose = False,
) -> None:
    """What changed between two looks, and what explains it.

    Examples: envaudit diff · envaudit diff before-update now · envaudit diff a.json b.json
    """
    _choice("--format", output_format, "text", "json")
    if fail_on is not None:
        _choice("--fail-on", fail_on, "error", "warning")
    from envaudit.diff import compare_snapshots

    knowledge = _matrices(matrices)
    before = _reference(old if old is not None else "@1", store, knowledge)
    later = (
        _look(_host(None), python, deadline)
        if new is None or new == "now"
        else _reference(new, store, knowledge)
    )
    said = compare_snapshots(before, _with_log(later, log, knowledge), knowledge)
    from envaudit import exits

    code = exits.of_comparison(said, exit_code=exit_code, fail_on=fail_on)  # type: ignore[arg-type]
    if output_format == "json":
        from envaudit.output import json as as_json

        text = as_json.comparison(said)
    else:
        from envaudit.output import text as as_text

        text = as_text.comparison(said, _style(output), verbose=verbose)
    _write(text, output)
    raise typer.Exit(code)


@app.command()
def whatif(
    changes: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME=VERSION|LOCKFILE...",
            help="A component (driver, torch, cudnn, nccl, gpu, kernel, python, cuda-toolkit, a "
            "distribution), a fact, or a lock file.",
        ),
    ],
    reference: Annotated[
        str | None,
        typer.Option(
            "--snapshot", metavar="REF", help="A snapshot or report, not this machine now."
        ),
    ] = None,
    python: Python = None,
    root: Root = None,
    output_format: Format = "text",
    output: Output = None,
    matrices: Extra = None,
    store: StoreFolder = None,
    deadline: Deadline = DEFAULT_DEADLINE_S,
    strict: Strict = False,
    fail_on: FailOn = "error",
    everything: Everything = False,
    verbose: Verbose = False,
) -> None:
    """Judge the machine as it would be after a change.

    Examples: envaudit whatif driver=580 · envaudit whatif torch=2.14.1+cu130 gpu="NVIDIA L40S"
    """
    _choice("--format", output_format, "text", "json")
    level = _choice("--fail-on", fail_on, "error", "warning")
    from envaudit.advise import assumption, what_if

    knowledge = _matrices(matrices)
    assumptions: list[Assumption] = []
    for change in changes:
        name, equals, value = change.partition("=")
        if equals:
            assumptions.append(assumption(name.strip(), value.strip().lstrip("="), knowledge))
        else:
            assumptions += _of_lock_file(change, knowledge)
    if reference is not None:
        _no_live_options(python=python, root=root)
        seen = _reference(reference, store, knowledge)
    else:
        seen = _look(_host(root), python, deadline)
    said = what_if(seen, assumptions, knowledge)
    from envaudit import exits
    from envaudit.output import advice

    code = exits.of_report(said.after, strict=strict, fail_on=level)  # type: ignore[arg-type]
    if output_format == "json":
        text = advice.what_if_json(said, everything=everything)
    else:
        text = advice.what_if(said, _style(output), verbose=verbose)
    _write(text, output)
    raise typer.Exit(code)


@app.command()
def recommend(
    component: Annotated[
        str, typer.Argument(metavar="[torch|...]", help="What to find builds of.")
    ] = "torch",
    reference: Annotated[
        str | None,
        typer.Option(
            "--snapshot", metavar="REF", help="A snapshot or report, not this machine now."
        ),
    ] = None,
    python: Python = None,
    root: Root = None,
    output_format: Format = "text",
    output: Output = None,
    matrices: Extra = None,
    store: StoreFolder = None,
    deadline: Deadline = DEFAULT_DEADLINE_S,
) -> None:
    """Name the newest builds that fit this machine, with the command.

    Examples: envaudit recommend torch · envaudit recommend torch --snapshot report.txt
    """
    _choice("--format", output_format, "text", "json")
    from envaudit.advise import recommend as advise

    knowledge = _matrices(matrices)
    if reference is not None:
        _no_live_options(python=python, root=root)
        seen = _reference(reference, store, knowledge)
    else:
        seen = _look(_host(root), python, deadline)
    said = advise(seen, component, knowledge)
    from envaudit.output import advice

    text = (
        advice.recommendation_json(said)
        if output_format == "json"
        else advice.recommendation(said, _style(output))
    )
    _write(text, output)


@app.command()
def snapshots(
    action: Annotated[
        str, typer.Argument(metavar="[list|show|prune]", help="What to do (default: list).")
    ] = "list",
    reference: Annotated[
        str | None, typer.Argument(metavar="[REF]", help="Which one to show.")
    ] = None,
    keep: Annotated[
        int | None, typer.Option("--keep", metavar="N", min=1, help="prune: how many to keep.")
    ] = None,
    output_format: Format = "text",
    store: StoreFolder = None,
) -> None:
    """List, show or prune the stored snapshots.

    Examples: envaudit snapshots · envaudit snapshots show @1 · envaudit snapshots prune --keep 20
    """
    _choice("snapshots", action, "list", "show", "prune")
    _choice("--format", output_format, "text", "json")
    place = _store(store)
    if action == "show":
        from envaudit.snapshot import dump

        _write(dump(_reference(reference or "@1", store, _matrices(None))), None)
        return
    if action == "prune":
        if keep is None:
            raise UsageError(
                "snapshots prune needs --keep N", "For example: envaudit snapshots prune --keep 20."
            )
        removed = place.prune(keep=keep)
        print(f"removed {len(removed)}; labelled snapshots are kept")
        return
    _write(_listing(place, output_format), None)


@app.command()
def facts(
    reference: Annotated[
        str | None,
        typer.Argument(metavar="[REF|now]", help="Show the facts of this snapshot."),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option("--name", metavar="PATTERN", help="Only names that match, such as gpu.*."),
    ] = None,
    python: Python = None,
    store: StoreFolder = None,
    deadline: Deadline = DEFAULT_DEADLINE_S,
) -> None:
    """List the fact names, or the facts of one snapshot.

    Examples: envaudit facts · envaudit facts now --name 'driver.*'
    """
    from envaudit.model import covers

    if reference is None:
        from envaudit.facts import CATALOGUE

        rows = [
            f"{spec.pattern:<40} {spec.kind:<8} {spec.stability:<8} {spec.meaning}"
            for spec in CATALOGUE
            if name is None or covers(name, spec.pattern)
        ]
        _write("\n".join(rows) + "\n", None)
        return
    seen = (
        _look(_host(None), python, deadline)
        if reference == "now"
        else _reference(reference, store, _matrices(None))
    )
    from envaudit.evaluate import show, visible
    from envaudit.model import Absent, Unknown, natural_key

    lines = [
        f"{fact.name} = {show(fact.value)}  [{fact.source}]"
        for fact in sorted(seen.facts.values(), key=lambda fact: natural_key(fact.name))
        if name is None or covers(name, fact.name)
    ]
    lines += [
        f"{gap}: unknown  [{run.name}: {reason}]"
        for run in seen.probes
        for gap, reason in run.gaps.items()
        if name is None or covers(name, gap)
    ]
    if name is not None and not lines:
        answer = seen.ask(name)
        lines.append(
            f"{name}: absent  [looked for by {answer.source}]"
            if isinstance(answer, Absent)
            else f"{name}: unknown  [{answer.reason if isinstance(answer, Unknown) else ''}]"
        )
    _write("\n".join(map(visible, lines)) + "\n", None)


@app.command()
def explain(
    subject: Annotated[
        str,
        typer.Argument(
            metavar="RULE|CAUSE|TEXT|-", help="What to explain; - reads an error text from a pipe."
        ),
    ],
    matrices: Extra = None,
) -> None:
    """Explain a rule, a cause or an error text, with its sources.

    Examples: envaudit explain driver-too-old · python train.py 2>&1 | envaudit explain -
    """
    from envaudit.output import rows

    if subject == "-":
        from envaudit.snapshot import read_bytes

        subject = read_bytes("-").decode("utf-8", "replace") + "\n"
    _write(rows.explain(subject, _matrices(matrices), _style(None)), None)


@app.command()
def matrix(
    action: Annotated[
        str,
        typer.Argument(
            metavar="[list|show|validate|stats|age]", help="What to do (default: list)."
        ),
    ] = "list",
    subject: Annotated[
        str | None,
        typer.Argument(metavar="[NAME|DIR]", help="A catalogue to show, a folder to validate."),
    ] = None,
    matrices: Extra = None,
) -> None:
    """List rules, signatures and tables; validate own rows.

    Examples: envaudit matrix · envaudit matrix show gpu-products · envaudit matrix validate DIR
    """
    _choice("matrix", action, "list", "show", "validate", "stats", "age")
    from envaudit.output import rows

    if action == "validate":
        from envaudit.examples import validate
        from envaudit.matrix import shipped_folder

        folder = subject or shipped_folder()
        validate(folder)
        print(f"{folder}: valid")
        return
    knowledge = _matrices(matrices)
    if action == "show":
        if subject is None:
            raise UsageError("matrix show needs the name of a catalogue", "See: envaudit matrix.")
        _write(rows.catalogue(subject, knowledge), None)
        return
    tell = {"stats": rows.statistics, "age": rows.age}.get(action, rows.listing)
    _write(tell(knowledge), None)


# -- what the commands share ---------------------------------------------------------------------

_host_override: list[Host] = []
"""A recorded machine in place of this one, put here by the tests' own entry point."""


def _host(root: str | None) -> Host:
    from envaudit.host import Host

    if root is None:
        return _host_override[0] if _host_override else Host()
    if not os.path.isdir(root):
        raise UsageError(f"--root {root}: no such folder", "Give the folder of a mounted image.")
    if not any(os.path.isdir(os.path.join(root, name)) for name in ("etc", "usr", "var")):
        raise UsageError(
            f"--root {root}: no system image: neither etc nor usr nor var is in it",
            "Give the folder where the image's own / is mounted.",
        )
    return Host(root)


def _look(host: Host, python: str | None, deadline: float, *, label: str | None = None) -> Snapshot:
    from envaudit.collect import collect, ensure_supported
    from envaudit.target import find_target

    ensure_supported()
    target = find_target(host, python)
    if not 0.5 <= deadline <= 3600:  # nan passes the parser's own bounds
        raise UsageError(f"--deadline {deadline}: must be between 0.5 and 3600 seconds")
    progress = _Progress() if sys.stderr.isatty() else None
    try:
        found = collect(host, target, deadline=deadline, label=label, progress=progress)
    finally:
        if progress is not None:
            progress(())
    answer = found.facts.get("python.interpreter")
    if python is not None and answer is not None and answer.value is False:
        raise UsageError(
            f"--python {python}: no Python interpreter ({answer.source})",
            "Name the interpreter whose packages are to be audited, such as venv/bin/python.",
        )
    return found


class _Progress:
    """One line on the terminal once a look takes longer than a second."""

    def __init__(self) -> None:
        import time

        self._clock = time.monotonic
        self._from = self._clock() + 1.0
        self._shown = False

    def __call__(self, running: Sequence[str]) -> None:
        if running and self._clock() >= self._from:
            text = f"looking: {', '.join(running)} ..."[:78]
            sys.stderr.write(f"\r{text:<78}")
            self._shown = True
        elif not running and self._shown:
            sys.stderr.write("\r" + " " * 78 + "\r")
        sys.stderr.flush()


def _accounts() -> list[str]:
    """Names of the account that this runs as, which can stand in any path."""
    names = {os.environ.get(name, "") for name in ("USER", "LOGNAME", "SUDO_USER")}
    names.add(os.path.basename(os.path.expanduser("~")))
    return sorted(names - {""})


def _store(folder: str | None) -> Store:
    from envaudit.store import Store

    return Store(folder)


def _reference(text: str, store: str | None, matrices: Matrices) -> Snapshot:
    """The snapshot that a reference names: now, a path, -, a label, @N, a date."""
    if text == "now":
        return _look(_host(None), None, DEFAULT_DEADLINE_S)
    from envaudit import inputs

    return inputs.read(text, _store(store), matrices)


def _read_all(texts: list[str], store: str | None, matrices: Matrices) -> Snapshot:
    from envaudit import inputs

    return inputs.merge([_reference(text, store, matrices) for text in texts])


def _of_lock_file(path: str, matrices: Matrices) -> list[Assumption]:
    """What a lock file would install, as assumptions. Raises UsageError where it is no file."""
    if not os.path.exists(path):
        raise UsageError(
            f"{path}: neither NAME=VERSION nor a lock file", "For example: torch=2.14.1+cu130."
        )
    from envaudit import inputs
    from envaudit.advise import assumption
    from envaudit.snapshot import read_bytes

    locked = inputs.understand(read_bytes(path), path, matrices)
    return [
        assumption(
            name.split(".", 1)[1].rpartition(".")[0], str(fact.value), matrices, strict=False
        )
        for name, fact in locked.facts.items()
        if name.startswith("dist.") and name.endswith(".version")
    ]


def _with_log(seen: Snapshot, paths: list[str] | None, matrices: Matrices) -> Snapshot:
    """The snapshot with what logs say besides; what was looked at wins over them."""
    if not paths:
        return seen
    from envaudit import inputs

    return inputs.merge([seen, *(inputs.log(path, matrices) for path in paths)])


def _matrices(extra: list[str] | None) -> Matrices:
    from envaudit.matrix import Matrices

    return Matrices(*(extra or ()))


def _choice(option: str, value: str, *allowed: str) -> str:
    if value not in allowed:
        raise UsageError(f"{option} {value}: must be one of {', '.join(allowed)}")
    return value


def _no_live_options(**options: str | None) -> None:
    for name, value in options.items():
        if value is not None:
            raise UsageError(
                f"--{name} is for looking at a machine, not for judging a file",
                "Leave one of the two out.",
            )


def _style(output: str | None) -> Style:
    from envaudit.output.text import Style

    stream = sys.stdout
    tty = output is None and stream.isatty()
    colour = (tty and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb") or (
        bool(os.environ.get("FORCE_COLOR")) and not os.environ.get("NO_COLOR")
    )
    encoding = (stream.encoding or "ascii").lower() if output is None else "utf-8"
    width = 100
    if tty:
        import shutil

        width = min(120, shutil.get_terminal_size((100, 24)).columns)
    return Style(colour=colour, unicode=encoding.startswith("utf"), width=width)


def _listing(store: Store, output_format: str) -> str:
    entries = []
    number = 0
    for entry in store.entries():
        number += entry.snapshot is not None  # a damaged file has no number to be named by
        entries.append((f"@{number}" if entry.snapshot else "-", entry))
    if output_format == "json":
        import json

        rows = [
            {
                "reference": reference if entry.snapshot else None,
                "id": entry.snapshot.id if entry.snapshot else None,
                "label": entry.snapshot.label if entry.snapshot else None,
                "taken_at": entry.taken_at,
                "fingerprint": entry.snapshot.fingerprint if entry.snapshot else None,
                "path": entry.path,
                "problem": entry.problem or None,
            }
            for reference, entry in entries
        ]
        return json.dumps(rows, indent=1, ensure_ascii=False) + "\n"
    if not entries:
        return f"no snapshots in {store.folder}; `envaudit snapshot` keeps one\n"
    from envaudit.evaluate import visible

    lines = []
    for reference, entry in entries:
        seen = entry.snapshot
        rest = f"{seen.id:<24} {seen.label or ''}" if seen else f"damaged: {entry.problem}"
        lines.append(visible(f"{reference:<5} {entry.taken_at:<21} {rest}".rstrip()))
    return "\n".join(lines) + "\n"


def _write(text: str, path: str | None) -> None:
    """To standard output, or atomically to a file. Unencodable characters become `?`."""
    if path is None or path == "-":
        try:
            _print(sys.stdout, text)
        except BrokenPipeError:
            # The reader went away (| head): the verdict, and so the exit code, stands.
            sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - until the process ends
        except OSError as problem:
            raise UsageError(f"standard output: {problem.strerror}") from problem
        return
    from envaudit.files import write_atomically

    write_atomically(path, text)


def _print(stream: TextIO, text: str) -> None:
    encoding = stream.encoding or "utf-8"
    stream.write(text.encode(encoding, "replace").decode(encoding))
    stream.flush()


# The base of everything the parser complains of; it has no public name in every typer release.
_WRONG_USAGE: type[Exception] = next(
    c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException"
)


def main(argv: Sequence[str] | None = None) -> NoReturn:
    """Run a command line and exit; every error ends in one or two lines, never a traceback."""
    sys.exit(run(sys.argv[1:] if argv is None else list(argv)))


def run(argv: Sequence[str]) -> int:
    """Run a command line and return its exit code."""
    args = list(argv)
    if args and args[0].startswith("-") and args[0] not in ("-h", "--help", "--version"):
        args.insert(0, "check")  # `envaudit --strict` is `envaudit check --strict`
    try:
        code = typer.main.get_command(_only(args)).main(
            args=args, prog_name="envaudit", standalone_mode=False
        )
        return code if isinstance(code, int) else 0
    except typer.Exit as ended:
        return ended.exit_code
    except _WRONG_USAGE as wrong:
        said = getattr(wrong, "format_message", wrong.__str__)()
        return _complain(said, "See: envaudit --help", 64)
    except EnvauditError as wrong:
        return _complain(wrong.message, wrong.hint, wrong.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        return _complain("interrupted", "", 130)
    except BrokenPipeError:
        return 0
    except OSError as problem:
        place = f"{problem.filename}: " if problem.filename else ""
        return _complain(
            f"{place}{problem.strerror or problem}",
            "The system refused what envaudit needs (see ulimit -a).",
            64,
        )
    except Exception as problem:  # noqa: BLE001 - the last line of defence
        return _internal(problem)


def _only(args: Sequence[str]) -> typer.Typer:
    """The application with the one command that is asked for, else with all of them.

    typer prepares every command it knows, which takes longer than most of them need to run.
    """
    wanted = args[0] if args else "check"
    mine = [
        each
        for each in app.registered_commands
        if each.callback is not None and each.callback.__name__ == wanted
    ]
    if not mine:
        return app
    one = _application()
    one.registered_commands = mine
    one.registered_callback = app.registered_callback
    return one


def _complain(message: str, hint: str, code: int) -> int:
    from envaudit.evaluate import visible

    text = f"envaudit: {message}" + (f"\n{hint}" if hint else "")
    with contextlib.suppress(OSError, ValueError):  # there is nowhere left to complain
        _print(sys.stderr, visible(text, keep="\n") + "\n")
    return code


def _internal(problem: Exception) -> int:
    if os.environ.get("ENVAUDIT_TRACEBACK"):
        raise problem
    import traceback

    place = traceback.extract_tb(problem.__traceback__)[-1]
    return _complain(
        f"internal error: {type(problem).__name__}: {problem} "
        f"({os.path.basename(place.filename)}:{place.lineno}, envaudit {__version__})",
        "Please report this line; ENVAUDIT_TRACEBACK=1 shows more.",
        70,
    )
