"""Read what people paste: outputs of several tools one after another, with prose between.

A report is cut into sections at its prompts, code fences and headings of place; every importer
sees every section and picks out its own lines; signatures find error texts. What was said of
the machine inside a container and of its host is kept apart: the innermost place is judged,
what holds for the whole machine (driver, GPUs, kernel) may come from either.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from envaudit.facts import spec_of
from envaudit.importers import IMPORTERS, Imported, Importer, Section
from envaudit.model import Fact, ProbeRun, Value
from envaudit.patterns import regex
from envaudit.signals import scan

SECTIONS_LIMIT = 2000
"""Most sections that are read; a report with more prompts is a log of something else."""

INNER = ("container", "wsl", "guest")
"""Places inside another one, where the program runs that the report is about."""

_OF_THE_MACHINE = regex(
    r"(?:driver\.(?:version|cuda\.|module\.|param\.|gsp\.|install_method)|gpu\.|kernel\.|dkms\.|boot\.|"
    r"firmware\.|fabricmanager\.|nvswitch\.|pci\.|host\.|service\.|container\.toolkit\.|"
    r"signal\.|cpu\.)"
)
"""Facts that are the same inside a container and outside of it; a guest has its own kernel."""


class Reading(NamedTuple):
    """What a report says."""

    facts: Mapping[str, Fact]
    probes: tuple[ProbeRun, ...]
    titles: tuple[str, ...]
    """What was recognised in it, in words."""


# -- cutting ------------------------------------------------------------------------------------

_ESCAPES = regex(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]{0,200}(?:\x07|\x1b\\)|[@-_])")
_ODD_SPACES = str.maketrans({"\xa0": " ", "\u2007": " ", "\u202f": " ", "\u200b": "", "\ufeff": ""})
_QUOTE = regex(r"[ \t]{0,3}>(?!>>)[ \t]?")
_FENCE = regex(r"[ \t]{0,8}(?:```|~~~)[^`\n]{0,60}\Z")
_TAGS = regex(r"[ \t]*</?(?:details|summary|pre|code|br)\b[^>\n]{0,80}>", re.IGNORECASE)

_COMMANDS = (
    r"(?:sudo |docker |kubectl |podman |nvidia-|nvcc\b|pip3?\b|uv |conda |mamba |python[\d.]*\b|"
    r"dmesg\b|journalctl\b|ls(?:mod|pci|cpu|b_release)?\b|uname\b|cat |echo |env\b|printenv\b|"
    r"ldd\b|ldconfig\b|dkms\b|modinfo\b|modprobe\b|mokutil\b|systemctl\b|apt|dpkg\b|dnf\b|yum\b|rpm\b|"
    r"pacman\b|zypper\b|gcc\b|g\+\+|which |find |grep |export |strings |module |free\b|nproc\b|"
    r"cmake\b|make\b|ds_report\b|accelerate |transformers-cli |vllm |nvidia-smi|uname)"
)
_WHERE = r"(?P<where>host|container|docker|guest|wsl2?|windows|node|pod|vm)"
_ENVIRONMENT = r"[ \t]*(?:\([\w.\-]{1,40}\)[ \t]*)?"
_LOGIN = r"\[?(?P<user>[\w.\-]{1,40})@(?P<host>[\w.\-]{1,60})"
_DRIVE = r"(?:PS[ \t]+)?(?P<drive>[A-Za-z]:\\[^\n>]{0,120})"
_PROMPTS = tuple(
    regex(pattern)
    for pattern in (
        # host$ nvidia-smi        container# env
        rf"[ \t]*\(?{_WHERE}\)?[ \t]?[$#>][ \t]+(?P<command>\S.*)",
        # (venv) user@host:~/x$ cmd      root@0123456789ab:/# cmd      [user@host x]$ cmd
        _ENVIRONMENT + _LOGIN + r"[: \t][^\n$#>%]{0,120}\]?[$#>%][ \t]*(?P<command>\S.*)?",
        # PS C:\Users\x> cmd       (env) C:\x>cmd
        _ENVIRONMENT + _DRIVE + r">[ \t]*(?P<command>\S.*)?",
        rf"{_ENVIRONMENT}[$\u276f\u279c][ \t]+(?P<command>\S.*)",
        rf"[ \t]*#[ \t]+(?P<command>{_COMMANDS}.*)",
        r"[ \t]*>>>[ \t]?(?P<command>\S.*)?",
        r"[ \t]*In \[\d{1,4}\]:[ \t]?(?P<command>\S.*)",
        r"[ \t]*julia>[ \t]?(?P<command>\S.*)",
        rf"[ \t]*[!%](?P<command>{_COMMANDS}.*)",
    )
)
_SIGNS = regex(r"[$#>%!\u276f\u279c]|In \[")
"""Without one of these no line begins with a prompt: most lines are done with here."""
_CONTINUED = regex(r"[ \t]*\.\.\.(?:[ \t](?P<more>.*))?\Z")
_INSIDE = regex(
    r"(?:sudo[ \t]+)?(?:docker|podman|nerdctl|kubectl|singularity|apptainer)[ \t]+"
    r"(?:compose[ \t]+)?(?:exec|run)\b"
)
_HEADING = regex(
    r"[ \t#*_\-]{0,8}(?:(?:outputs?|result)[ \t]+)?(?:(?:on|in|inside|within|from|outside)[ \t]+)?"
    r"(?:of[ \t]+)?(?:the[ \t]+)?(?:my[ \t]+)?(?:docker[ \t]+)?"
    r"(?P<where>host(?:[ \t]machine|[ \t]system)?|container|docker|guest(?:[ \t]vm)?|vm|wsl2?|"
    r"windows(?:[ \t]host)?|pod)"
    r"[*_]{0,3}[ \t]*(?:\([^)\n]{0,40}\))?:?[*_]{0,3}[ \t]*\Z",
    re.IGNORECASE,
)
_NAMES = {
    "host": "host",
    "node": "host",
    "vm": "guest",
    "guest": "guest",
    "container": "container",
    "docker": "container",
    "pod": "container",
    "wsl": "wsl",
    "wsl2": "wsl",
    "windows": "windows",
}
_CONTAINER_NAME = regex(r"[0-9a-f]{12}\Z")
_STARTS = regex(
    r"[ \t]*(?:Collecting environment information\.\.\.|={6,}NVSMI LOG={6,}|"
    r"\|[ \t]NVIDIA-SMI[ \t]\S+[ \t]+(?:Driver|KMD) Version)"
)
"""First lines of outputs: a second one of a kind begins another section."""


def clean(text: str) -> str:
    """The text line by line without colours, quote marks and markup; lines keep their number."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if "\x1b" in text:
        text = _ESCAPES.sub("", text)
    text = text.translate(_ODD_SPACES) if not text.isascii() else text
    lines = text.split("\n")
    quoted = sum(line.startswith((">", " >")) and not line.startswith(">>>") for line in lines)
    if quoted * 2 > sum(bool(line.strip()) for line in lines):
        lines = [_QUOTE.sub("", line, count=1) if ">" in line[:4] else line for line in lines]
    elif quoted > 1:
        lines = _without_quotes(lines)
    return "\n".join(_TAGS.sub("", line) if "<" in line else line for line in lines)


def _without_quotes(lines: Sequence[str]) -> list[str]:
    """Lines without the marks of passages that are quoted; a single mark may be a prompt."""
    marked = [line.startswith("> ") or line == ">" for line in lines]
    beside = zip([False, *marked], [*marked[1:], False], strict=False)
    return [
        line[2:] if mark and any(near) else line
        for line, mark, near in zip(lines, marked, beside, strict=False)
    ]


def sections(text: str) -> list[Section]:
    """The pieces of a cleaned report, in order; their line numbers count through the report."""
    if text.lstrip()[:1] == "{":  # a document of another tool: it has no prompts
        return [Section(text)]
    found: list[Section] = []
    lines: list[str] = []
    command, scope, place, first, repl = "", "", "", 1, False
    before, above = "", ""
    seen: set[str] = set()

    def close(upto: int) -> None:
        nonlocal lines, first
        if any(line.strip() for line in lines) or command:
            text = "\n".join(lines) + "\n"
            found.append(Section(text, command, scope or place, first, before))
        lines, first = [], upto

    for number, line in enumerate(text.split("\n"), 1):
        if len(found) >= SECTIONS_LIMIT:
            lines.append(line)
            continue
        if ("```" in line or "~~~" in line) and _FENCE.match(line):
            close(number + 1)
            before = above
            command, scope, repl = "", "", False
            continue
        prompt = _prompt(line)
        if prompt is not None:
            close(number + 1)
            before = ""
            command, where = prompt
            scope = where if where is not None else ""
            repl = line.lstrip().startswith((">>>", "In ["))
            if where is None and _INSIDE.match(command):
                scope = "container"
            continue
        if repl and not any(each.strip() for each in lines):
            more = _CONTINUED.match(line)
            if more is not None:
                command += "\n" + (more["more"] or "")
                first = number + 1
                continue
        if len(line) < 80 and (heading := _HEADING.match(line)) is not None:
            close(number + 1)
            command, scope, repl = "", "", False
            place = _NAMES[heading["where"].lower().split()[0]]
            continue
        if line.lstrip()[:1] in ("C", "=", "|") and _STARTS.match(line):
            kind = line.split()[0] + line.split()[1][:6]
            if kind in seen and any(each.strip() for each in lines):
                close(number)
                command = ""
            seen.add(kind)
        lines.append(line)
        above = line.strip() or above
    close(0)
    return found


def _prompt(line: str) -> tuple[str, str | None] | None:
    """The command behind a prompt and the place that the prompt tells; None where there is none."""
    if len(line) > 2000 or not _SIGNS.search(line[:240]):
        return None
    for pattern in _PROMPTS:
        match = pattern.match(line)
        if match is None:
            continue
        groups = match.groupdict()
        command = (groups["command"] or "").strip()
        if groups.get("where"):
            return command, _NAMES[groups["where"].lower()]
        if groups.get("host") and _CONTAINER_NAME.match(groups["host"]):
            return command, "container"
        if groups.get("drive"):
            return command, "windows"
        return command, None
    return None


# -- reading ------------------------------------------------------------------------------------


def read(text: str, name: str, signatures: Callable[[str], Iterable[Mapping[str, Any]]]) -> Reading:
    """What the importers and the signatures find in a report; nothing where they know nothing.

    `signatures` gives those that can stand in a text.
    """
    text = clean(text)
    places: dict[str, dict[str, Fact]] = {}
    plans: dict[str, dict[str, Fact]] = {}
    probes: dict[str, _Run] = {}
    doubts: list[str] = []
    unread = {number for number, line in enumerate(text.split("\n"), 1) if line.strip()}
    whole = len(unread)
    importers = [
        importer
        for importer in IMPORTERS
        if not importer.hints or any(hint in text for hint in importer.hints)
    ]
    cut = ""
    outputs: dict[str, set[int]] = {}
    for section in sections(text):
        if section.command:
            lines = section.text.count("\n")
            numbers = set(range(section.first, section.first + lines)) & unread
            outputs.setdefault(section.command.split("\n")[0][:60], set()).update(numbers)
            prompt = section.first - 1 - section.command.count("\n")
            unread -= set(range(prompt, section.first))
        rest = section
        if 'File "' in section.text:
            rest = rest._replace(text=_FRAMES.sub(_emptied, section.text))
        for importer in importers:
            seen = rest if importer.rest else section
            if not seen.text.strip() and not seen.command:
                continue
            module = importer.load()
            if not module.recognises(seen):
                continue
            imported: Imported = module.parse(seen)
            if imported.read:
                rest = rest._replace(text=_without(rest.text, imported.read))
            if not (imported.facts or imported.gaps or imported.absent or imported.cut):
                continue
            told = plans if importer.planned else places
            _take(imported, section, told.setdefault(section.scope, {}), doubts)
            probes.setdefault(importer.name, _Run(importer)).take(imported)
            doubts += [
                f"{name}: {reason}"
                for name, reason in imported.gaps.items()
                if name.endswith(".version") and " and " in reason
            ]
            unread -= {section.first + line - 1 for line in imported.read}
            cut = cut or imported.cut
    for place, planned in plans.items():
        for fact_name, fact in planned.items():
            places.setdefault(place, {}).setdefault(fact_name, fact)
    said = _FRAMES.sub(_emptied, text) if 'File "' in text else text
    signals = scan(said, signatures(said))
    for fact in signals:
        places.setdefault("", {}).setdefault(fact.name, fact)
    unread -= {int(fact.source.rpartition(" ")[2]) for fact in signals}
    facts = judged_place(places)
    if not facts and not probes:
        return Reading({}, (), ())
    strange = [command for command, lines in outputs.items() if lines and lines <= unread]
    if strange:  # prose and tracebacks are in every report: what a command printed is not
        facts["report.unread"] = Fact("report.unread", _unread(unread, whole, strange), name)
    if cut:
        facts["report.cut"] = Fact("report.cut", cut, name)
    if doubts:
        facts["report.contradictions"] = Fact("report.contradictions", list(doubts[:20]), name)
    titles = [run.importer.title for run in probes.values()]
    if signals:
        titles.append("error texts")
    return Reading(facts, tuple(run.done() for run in probes.values()), tuple(titles))


_FRAMES = regex(r'^[ \t]*File "[^"\n]{1,400}", line \d+[^\n]*\n(?:[ \t]+[^\n]*\n)?', re.MULTILINE)
"""The frames of a traceback, each with its line of code: nothing stands in them but paths."""


def _emptied(match: re.Match[str]) -> str:
    return "\n" * match[0].count("\n")


def _without(text: str, read: frozenset[int]) -> str:
    """The text with the lines that were read emptied; the others keep their number."""
    lines = text.split("\n")
    for number in read:
        if 0 < number <= len(lines):
            lines[number - 1] = ""
    return "\n".join(lines)


def _unread(unread: set[int], whole: int, commands: Sequence[str]) -> str:
    """How much was not read, with the commands of whose output nothing was."""
    printed = f"`{'`, `'.join(commands[:3])}`"
    return f"{len(unread)} of {whole} lines, among them what {printed} printed"


class _Run:
    """What one importer told over all sections, as a probe's run."""

    def __init__(self, importer: Importer) -> None:
        self.importer = importer
        self.absent: dict[str, None] = {}
        self.gaps: dict[str, str] = {}
        self.notes: dict[str, None] = {}

    def take(self, imported: Imported) -> None:
        """Add what one section gave."""
        self.absent.update(dict.fromkeys(imported.absent))
        self.gaps.update(imported.gaps)
        self.notes.update(dict.fromkeys(imported.notes))

    def done(self) -> ProbeRun:
        """The run: on what it has the last word, and what it leaves open."""
        return ProbeRun(
            f"import:{self.importer.name}",
            "ok",
            detail="; ".join(self.notes),
            provides=(*self.absent, *self.gaps),
            gaps=self.gaps,
        )


def _take(imported: Imported, section: Section, known: dict[str, Fact], doubts: list[str]) -> None:
    """Add a section's facts to those of its place; contradictions are told, not overwritten.

    Programs count GPUs in different orders: what is told of a GPU by another name is not of
    the one that is known under this number. The number that nvidia-smi gives is the GPU's.
    """
    others: list[str] = []
    for fact in imported.facts:
        who = _WHICH_GPU.fullmatch(fact.name)
        if not (who and _another_gpu(known.get(fact.name), fact)):
            continue
        before, gpu = known[fact.name], who[1]
        if not fact.source.startswith(_BY_ADDRESS) or before.source.startswith(_BY_ADDRESS):
            others.append(gpu)
            continue
        doubts.append(f"{fact.name}: {before.value} ({before.source}), {fact.value}")
        for name in [name for name in known if name.startswith(gpu)]:
            del known[name]
    skip = tuple(others)
    for fact in imported.facts:
        if skip and fact.name.startswith(skip) and not _WHICH_GPU.fullmatch(fact.name):
            continue
        line = imported.lines.get(fact.name)
        source = fact.source if line is None else f"{fact.source}, line {section.first + line - 1}"
        fact = fact._replace(source=source)
        before = known.setdefault(fact.name, fact)
        if before is fact or before.value == fact.value:
            continue
        spec = spec_of(fact.name)
        if spec is not None and spec.kind == "list" and not fact.name.endswith(".arch_list"):
            known[fact.name] = before._replace(value=_united(before.value, fact.value))
            continue
        better = more_precise(before, fact)
        if better is not None:
            known[fact.name] = better
            continue
        if spec is not None and spec.stability in ("static", "config") and spec.kind != "list":
            doubts.append(
                f"{fact.name}: {before.value} ({before.source}), {fact.value} ({fact.source})"
            )


_WHICH_GPU = regex(r"(gpu\.[0-9]{1,4}\.)(?:name|pci\.address)")
_BY_ADDRESS = ("nvidia-smi", "collect_env")
"""Beginnings of the sources that count GPUs by their bus address."""


def _another_gpu(known: Fact | None, told: Fact) -> bool:
    """Whether two names or addresses are of different GPUs; a cut name may be of the same."""
    if known is None:
        return False
    one, other = (str(fact.value).rstrip(". ").lower() for fact in (known, told))
    return one not in other and other not in one


def _united(one: Value, other: Value) -> Value:
    """Both lists in one: what could not be opened here and there."""
    if not isinstance(one, list) or not isinstance(other, list):
        return one
    return [*one, *(each for each in other if each not in one)]


def more_precise(one: Fact, other: Fact) -> Fact | None:
    """Which of two values says the same with more; None where they differ.

    2.4.1+cu121 says more than 2.4.1, and 12.4.131 more than 12.4.
    """
    short, long = sorted((one, other), key=lambda fact: len(str(fact.value).rstrip(". ")))
    start, whole = str(short.value), str(long.value)
    if start.endswith(".."):  # a name cut by a table
        return long if whole.startswith(start.rstrip(". ")) else None
    rest = whole[len(start) :]
    return long if whole.startswith(start) and not rest[:1].isalnum() else None


def judged_place(places: Mapping[str, Mapping[str, Fact]]) -> dict[str, Fact]:
    """One picture of all places: the innermost is judged, the others stand under scope.*.

    Where no inner place is told of, host and unsaid are the same machine.
    """
    inner = next((place for place in INNER if places.get(place)), "")
    facts: dict[str, Fact] = dict(places.get(inner, {}))
    for name, fact in places.get("", {}).items():
        facts.setdefault(name, fact)
    for place, told in places.items():
        if place in ("", inner):
            continue
        for name, fact in told.items():
            if not inner or (inner != "guest" and _OF_THE_MACHINE.match(name)):
                facts.setdefault(name, fact)
            if inner:
                scoped = f"scope.{place}.{name}"
                facts[scoped] = fact._replace(name=scoped)
    if inner:
        for name, fact in places[inner].items():
            scoped = f"scope.{inner}.{name}"
            facts[scoped] = fact._replace(name=scoped)
    return facts
