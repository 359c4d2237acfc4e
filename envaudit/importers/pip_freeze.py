"""What pip and uv print of installed distributions: freeze, list, show, check, tree, install.

    torch==2.4.1+cu124                       pip freeze, also a few lines of it behind a grep
    Package    Version                       pip list, uv pip list; also without the heading
    ---------- -------
    torch      2.11.0
    torch (1.0.1)                            pip list before 10
    Name: torch                              pip show
    Successfully installed torch-2.4.1       pip install
     + torch==2.4.1                          uv pip install, uv sync
    torch v2.4.1                             uv pip tree; pipdeptree has "torch==2.4.1"

A version that somebody wishes for (requirements.txt, an argument of pip install, a sentence) is
not an installed one. Later lines about an installation replace earlier ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from envaudit.importers import Draft, Imported, Section
from envaudit.importers.requirement_lines import VERSION, Block, Wheel, blocks, wheel
from envaudit.patterns import regex
from envaudit.stack import in_gpu_stack, normalise

LISTED_LIMIT = 5000
"""Most distributions of one section."""
_LIMIT = 4 << 20

_NAME = r"([A-Za-z0-9](?:[A-Za-z0-9._-]{0,98}[A-Za-z0-9])?)"
_LISTS = regex(
    r"\b(?:pip[0-9.]*|uv|poetry|pdm|rye|pipx|pipenv)(?:\.exe)?\b[^|;&\n]{0,80}?"
    r"\b(?:freeze|list|show|tree|graph|inspect|check)\b|\bpipdeptree\b|freeze"
)
_WISHES = regex(
    r"requirements|constraints|\.lock\b|\.toml\b|setup\.(?:py|cfg)|Dockerfile|\.ya?ml\b|Pipfile|"
    r"\bcompile\b|--dry-run"
)
_CONDA = regex(r"\b(?:conda|mamba|micromamba|pixi)(?:\.exe)?[ \t]")
_GREPS = regex(r"\b(?:grep|egrep|rg|findstr|Select-String|sls)\b")

_HEADING = regex(r"Package[ \t]+Version(?:[ \t]+(.*))?\Z")
_RULE = regex(r"[-\u2500]{3,}(?:[ \t]+[-\u2500]{3,}){0,6}[ \t]*\Z")
_ROW = regex(rf"{_NAME}[ \t]+({VERSION})(?:[ \t]+(\S[^\n]{{0,600}}))?\Z")
_BARE_ROW = regex(rf"{_NAME}([ \t]+)({VERSION})[ \t]*((?:[/~]|[A-Za-z]:\\)[^\n]{{0,400}})?\Z")
_OLD_ROW = regex(rf"{_NAME} \(({VERSION})(?:, ([^()\n]{{1,400}}))?\)\Z")
_SHOW_NAME = regex(rf"Name: {_NAME}\Z")
_SHOW_FIELD = regex(r"([A-Z][A-Za-z -]{1,40}):(?: (.*))?\Z")
_JSON = regex(rf'\{{"name": ?"{_NAME}", ?"version": ?"({VERSION})"')
_TREE = regex(
    rf"[\u2502| ]{{0,200}}(?:[\u251c\u2514+`|][\u2500-]{{1,3}} )?{_NAME} v({VERSION})(?: |\Z)"
)
_DEPTREE = regex(
    rf"[^\[\n]{{0,200}}?{_NAME} \[required: [^\n]{{1,120}}?, installed: ({VERSION})\]\Z"
)
_DEPTREE_NO = regex(rf"[^\[\n]{{0,200}}?{_NAME} \[required: [^\n]{{1,120}}?, installed: \?\]\Z")
_POETRY = regex(rf"{_NAME}[ \t]+({VERSION})[ \t]+[A-Za-z\u0080-\uffff\"'(][^\n]{{0,400}}\Z")
_BOX = regex(rf"[\u2502|][ \t]*{_NAME}[ \t]*[\u2502|][ \t]*({VERSION})[ \t]*[\u2502|]")

_SUCCESS = regex(r"[ \t]*Successfully installed (.+)\Z")
_TOKEN = regex(rf"[A-Za-z0-9][A-Za-z0-9._-]{{0,98}}-{VERSION}\Z")
_UNINSTALLED = regex(rf"[ \t]*Successfully uninstalled ([\w.-]{{1,100}})-({VERSION})\Z")
_UV_DONE = regex(r"[ \t]*(?:Installed|Reinstalled|Uninstalled) \d+ packages? in ")
_UV_CHANGE = regex(rf"[ \t]{{0,4}}([+~-]) {_NAME}==({VERSION})(?: \(from ([^\n]{{1,600}})\))?\Z")
_SATISFIED = regex(
    rf"[ \t]*Requirement already (?:satisfied|up-to-date)(?: \([^()\n]{{1,60}}\))?: {_NAME}"
    rf"(?:[^A-Za-z0-9._-][^\n]{{0,600}})? in [^\n]{{1,500}}? \(({VERSION})\)\Z"
)
_FETCHED = regex(
    r"[ \t]*(?:Downloading|Using cached|Processing|Obtaining dependency information for|Saved) "
    r"([^ \t\n]{1,800}\.whl)"
)
_POETRY_DONE = regex(
    rf"[ \t]*[-\u2022][ \t]+(?:Installing|Updating|Downgrading) {_NAME} \((?:[^()\n]{{1,60}} -> )?"
    rf"({VERSION})(?: [0-9a-f]{{7}})?\)(?:: Installed[^\n]{{0,40}})?\Z"
)
_WHEEL_WORD = regex(r"[^\s\"'<>()`,]{5,600}\.whl\b")
_IS_INSTALLED = regex(r"\binstalled\b", re.IGNORECASE)
_IS_NOT = regex(
    r"(?:\bnot|n't|\bbe|\bto|\bif|\bnever|\bpreviously|\bbefore|\bun|\bfailed|\bgets?|\bget|\bwhen)"
    r"[ \t-]*\Z",
    re.IGNORECASE,
)

_CONFLICTS = (
    regex(
        rf"(?:ERROR: |WARNING: )?{_NAME} ({VERSION}) (?:has requirement|requires) "
        rf"([^\n]{{1,300}}?), but you(?:'ll)? have {_NAME} ({VERSION})"
        r"(?: which is incompatible)?\.?\Z"
    ),
    regex(
        rf"(?:ERROR: |WARNING: )?{_NAME} ({VERSION}) requires ([^\n]{{1,300}}?), "
        r"which is not installed\.?()()\Z"
    ),
    regex(
        rf"The package `{_NAME}(?:==)?({VERSION})?` requires `([^`\n]{{1,200}})`, but "
        rf"(?:`()({VERSION})` is installed|it's not installed)\.?\Z"
    ),
)
_NO_CONFLICTS = regex(
    r"No broken requirements found\.?\Z|All installed packages are compatible\.?\Z"
)
_VERSION_CONFLICT = regex(
    rf"VersionConflict: \({_NAME} ({VERSION}) \([^()\n]{{0,400}}\), "
    rf"Requirement\.parse\('([^'\n]{{1,200}})'\)(?:, \{{'([\w.-]{{1,100}})'\}})?\)"
)
_NOT_FOUND = regex(r"(?:WARNING: |warning: )?Package\(s\) not found(?: for)?: ([\w., -]{1,300})\Z")
_REQUIRED = regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,98}")

_HINTS = (
    *("==", " @ file:", "-e git", "Package ", "Name: ", "Successfully ", "Requirement already"),
    *(".whl", " requires ", " has requirement ", "No broken req", "installed packages are"),
    *('"version"', "VersionConflict", "[required: ", "not found: ", "- Installing "),
)


def recognises(section: Section) -> bool:
    """Whether the text can hold a line of pip or uv."""
    text = section.text
    return (
        _LISTS.search(section.command[:2000]) is not None
        or any(hint in text for hint in _HINTS)
        or _ALIGNED.search(text[:_LIMIT]) is not None
        or "\u2022 Installing " in text
    )


_ALIGNED = regex(
    r"^[A-Za-z0-9][\w.-]{0,98}(?:[ \t]{2,60}| v| \()[0-9][\w.+!-]{0,60}\)?[ \t]*$", re.MULTILINE
)


_INSTALLERS = {"pip install": "pip", "uv pip install": "uv"}


class _Told(NamedTuple):
    """One line that tells the version of a distribution."""

    line: int
    version: str
    source: str
    change: bool = False
    """An installation: what was told before is over."""


class _Reader:
    """Collects what the lines of one section say."""

    def __init__(self, section: Section) -> None:
        self.command = section.command[:4000]
        self.before = section.before
        text = section.text[:_LIMIT]
        self.lines = [line.rstrip() for line in text.split("\n")]
        self.draft = Draft()
        self.told: dict[str, list[_Told]] = {}
        self.wheels: dict[str, tuple[Wheel, int]] = {}
        self.conflicts: dict[str, int] = {}
        self.lists = _LISTS.search(self.command) is not None
        self.wishes = _WISHES.search(self.command) is not None and not re.search(
            r"\bfreeze\b|\blist\b", self.command
        )
        self.conda = _CONDA.search(self.command) is not None and not re.search(
            r"\bpip\b", self.command
        )

    def tell(self, name: str, version: str, line: int, source: str, change: bool = False) -> None:
        """Note the version of a distribution."""
        if len(self.told) < LISTED_LIMIT or name in self.told:
            self.told.setdefault(name, []).append(_Told(line, version, source, change))
        self.draft.read(line)

    def done(self) -> Imported:
        """What all lines together say."""
        for name, told in self.told.items():
            told.sort(key=lambda one: one.line)
            fact = f"dist.{name}.version"
            last = max((i for i, one in enumerate(told) if one.change), default=0)
            told = told[last:]
            versions = sorted({one.version for one in told}, key=len)
            if told[-1].version == "":
                continue
            longest = versions[-1]
            if told[0].change or all(_same(each, longest) for each in versions):
                best = told[-1] if told[0].change else _first(told, longest)
                self.draft.add(fact, best.version, f"{best.source}: {name}", best.line)
                if best.change and best.source in _INSTALLERS:
                    self.draft.add(
                        f"dist.{name}.installer", _INSTALLERS[best.source], best.source, best.line
                    )
            else:
                self.draft.gap(fact, f"the text names {' and '.join(sorted(versions))}")
        for name, (built, line) in self.wheels.items():
            self._wheel(name, built, line)
        if self.conflicts:
            first = next(iter(self.conflicts.values()))
            self.draft.add("python.conflicts", [*self.conflicts], "pip check", first)
            self.draft.read(*self.conflicts.values())
        return self.draft.done()

    def _wheel(self, name: str, built: Wheel, line: int) -> None:
        """A wheel that was fetched tells its tag and the local part, where it was installed."""
        told = self.told.get(name, [])
        if not any(one.change and _same(one.version, built.version) for one in told):
            return
        if not _same(told[-1].version, built.version):
            return
        self.draft.add(f"dist.{name}.tag", built.tag, f"file name of the wheel of {name}", line)
        if len(built.version) > len(told[-1].version):
            self.draft.replace(
                f"dist.{name}.version", built.version, f"file name of the wheel of {name}", line
            )


def _same(short: str, long: str) -> bool:
    """Whether one version is the other, with or without a local part."""
    return short.partition("+")[0] == long.partition("+")[0] and (
        "+" not in short or "+" not in long or short == long
    )


def _first(told: Sequence[_Told], version: str) -> _Told:
    return next(one for one in told if one.version == version)


def parse(section: Section) -> Imported:
    """Distributions that the text says are installed, and what pip says of their conflicts."""
    reader = _Reader(section)
    for number, line in enumerate(reader.lines, 1):
        if len(line) > 100_000 or not line:
            continue
        _installs(reader, number, line)
        _complaints(reader, number, line)
    if not reader.wishes:
        _frozen(reader)
        _tables(reader)
        _shown(reader)
        _others(reader)
    _named_wheels(reader)
    return reader.done()


# -- lists -----------------------------------------------------------------------------------


def _frozen(reader: _Reader) -> None:
    """pip freeze, or the lines of it that somebody looked for."""
    if reader.conda:
        return
    for block in blocks(reader.lines, reader.before):
        if not _is_frozen(block, reader):
            continue
        for line in block.told:
            if line.version:
                reader.tell(line.name, line.version, line.number, "pip freeze")
            elif line.name:
                reader.draft.gap(
                    f"dist.{line.name}.version",
                    "pip freeze tells where it is from, not its version",
                )
                reader.draft.read(line.number)
            if line.name and line.origin:
                reader.draft.add(
                    f"dist.{line.name}.origin", line.origin, f"pip freeze: {line.name}", line.number
                )
            if line.name and line.editable:
                reader.draft.add(
                    f"dist.{line.name}.editable", True, f"pip freeze: {line.name}", line.number
                )
        reader.draft.read(*(line.number for line in block.lines))


def _is_frozen(block: Block, reader: _Reader) -> bool:
    """Whether a block of pins is what is installed."""
    if not block.told:
        return False
    piped = _GREPS.search(reader.command) is not None and "|" in reader.command
    if reader.lists or (piped and re.search(r"\bpip\b|\buv\b", reader.command)):
        return not any(line.kind == "range" for line in block.lines)
    if block.wished or "_" in block.heading[:1]:
        return False
    headed = (
        re.search(r"\bpip3? (?:freeze|list)|\buv pip\b|\binstalled\b", block.heading) is not None
    )
    return len(block.told) >= (1 if headed else 2)


def _tables(reader: _Reader) -> None:
    """pip list, with its heading or without; the form before pip 10; pdm's table."""
    if reader.conda:
        return
    at = 0
    while at < len(reader.lines):
        heading = _HEADING.match(reader.lines[at].strip())
        at = _headed(reader, at, heading) if heading else at + 1
    piped = re.search(r"\bpip[0-9.]*\b.*\blist\b|\buv\b.*\blist\b", reader.command) is not None
    for run in _runs(reader.lines, _BARE_ROW):
        rows = [found for _, found in run]
        ends = {len(found[1]) + len(found[2]) for found in rows}
        aligned = len(rows) > 1 and len(ends) == 1 and all(len(found[2]) > 1 for found in rows)
        if not piped and not (aligned and any(in_gpu_stack(normalise(f[1])) for f in rows)):
            continue
        for number, found in run:
            name = normalise(found[1])
            if piped or in_gpu_stack(name):
                reader.tell(name, found[3], number, "pip list")
            if piped and found[4]:
                reader.draft.add(f"dist.{name}.editable", True, f"pip list: {name}", number)
    for run in _runs(reader.lines, _OLD_ROW):
        names = [normalise(found[1]) for _, found in run]
        if piped or (len(run) > 1 and any(map(in_gpu_stack, names))):
            for (number, found), name in zip(run, names, strict=True):
                reader.tell(name, found[2], number, "pip list")
                if found[3]:
                    reader.draft.add(f"dist.{name}.editable", True, f"pip list: {name}", number)


def _headed(reader: _Reader, at: int, heading: re.Match[str]) -> int:
    """Rows below "Package Version"; gives the line behind them."""
    third = (heading[1] or "").strip()
    editable = third.startswith("Editable") or third == "Location"
    reader.draft.read(at + 1)
    at += 1
    if at < len(reader.lines) and _RULE.match(reader.lines[at].strip()):
        reader.draft.read(at + 1)
        at += 1
    while at < len(reader.lines):
        row = _ROW.match(reader.lines[at].strip())
        if row is None:
            break
        name = normalise(row[1])
        reader.tell(name, row[2], at + 1, "pip list")
        if editable and row[3]:
            reader.draft.add(f"dist.{name}.editable", True, f"pip list: {name}", at + 1)
        at += 1
    return at


def _runs(
    lines: Sequence[str], pattern: re.Pattern[str]
) -> Iterator[list[tuple[int, re.Match[str]]]]:
    """Runs of lines next to one another that all match."""
    run: list[tuple[int, re.Match[str]]] = []
    for number, line in enumerate(lines, 1):
        found = pattern.match(line) if len(line) < 600 else None
        if found:
            run.append((number, found))
        elif run:
            yield run
            run = []
    if run:
        yield run


def _shown(reader: _Reader) -> None:
    """pip show: paragraphs of `Key: value` that begin with Name and Version."""
    piped = re.search(r"\bshow\b[ \t]+([^|;&\n]{1,300})", reader.command)
    for at, line in enumerate(reader.lines):
        found = _SHOW_NAME.match(line)
        if found is None:
            continue
        fields: dict[str, str] = {}
        end = at + 1
        for end in range(at + 1, min(at + 40, len(reader.lines))):
            field = _SHOW_FIELD.match(reader.lines[end])
            if field is None or field[1] == "Name":
                break
            fields.setdefault(field[1], (field[2] or "").strip())
        version = fields.get("Version", "")
        known = reader.lists or "Summary" in fields or "Location" in fields
        if not known or not re.fullmatch(VERSION, version):
            continue
        name = normalise(found[1])
        reader.tell(name, version, at + 2, f"pip show {name}")
        reader.draft.read(*range(at + 1, end + 1))
        if fields.get("Editable project location"):
            reader.draft.add(f"dist.{name}.editable", True, f"pip show: {name}", at + 1)
        if fields.get("Installer"):
            reader.draft.add(
                f"dist.{name}.installer", fields["Installer"], f"pip show: {name}", at + 1
            )
    if piped and reader.lists and not reader.told:
        names = [each for each in piped[1].split() if not each.startswith("-")]
        if len(names) == 1:
            for number, line in enumerate(reader.lines, 1):
                version_line = re.fullmatch(rf"Version: ({VERSION})", line)
                if version_line:
                    name = normalise(names[0])
                    reader.tell(name, version_line[1], number, f"pip show {name}")


def _others(reader: _Reader) -> None:
    """JSON, trees, poetry show, pdm list."""
    text = "\n".join(reader.lines)
    if '"version"' in text and '"channel"' not in text and not reader.conda:
        for found in _JSON.finditer(text):
            number = text.count("\n", 0, found.start()) + 1 if found.start() < 1 << 16 else 1
            reader.tell(normalise(found[1]), found[2], number, "pip list")
    tree = " v" in text and (
        "\u251c\u2500" in text or "\u2514\u2500" in text or "tree" in reader.command
    )
    poetry = re.search(r"\bpoetry\b.*\bshow\b", reader.command) is not None
    boxes = re.search(r"\bpdm\b.*\blist\b", reader.command) is not None
    for number, line in enumerate(reader.lines, 1):
        if len(line) > 600:
            continue
        if tree:
            _tell_match(reader, _TREE.match(line), number, "uv pip tree")
        if "[required: " in line:
            _tell_match(reader, _DEPTREE.match(line), number, "pipdeptree")
            missing = _DEPTREE_NO.match(line)
            if missing:
                reader.draft.absent(f"dist.{normalise(missing[1])}.version", number)
        if poetry and "(!)" not in line:
            row = _POETRY.match(line.replace(" (*)", ""))
            _tell_match(reader, row, number, "poetry show")
        if boxes:
            _tell_match(reader, _BOX.match(line), number, "pdm list")


def _tell_match(reader: _Reader, found: re.Match[str] | None, number: int, source: str) -> None:
    if found is not None:
        reader.tell(normalise(found[1]), found[2].lstrip("v"), number, source)


# -- installations ---------------------------------------------------------------------------


def _installs(reader: _Reader, number: int, line: str) -> None:
    """What one line says of an installation that was carried out."""
    if "Successfully " in line:
        found = _SUCCESS.match(line)
        if found:
            at = number
            tokens = found[1].split()
            while at < len(reader.lines) and _all_tokens(reader.lines[at]):
                tokens += reader.lines[at].split()
                at += 1
            for token in tokens[:LISTED_LIMIT]:
                name, _, version = token.rpartition("-")
                if name and _TOKEN.match(token):
                    reader.tell(normalise(name), version, number, "pip install", change=True)
            reader.draft.read(*range(number, at + 1))
            return
        found = _UNINSTALLED.match(line)
        if found:
            reader.tell(normalise(found[1]), "", number, "pip uninstall", change=True)
    elif "Requirement already" in line:
        found = _SATISFIED.match(line) if len(line) < 1500 else None
        if found:
            reader.tell(normalise(found[1]), found[2], number, "pip install")
    elif ".whl" in line and (found := _FETCHED.match(line)) is not None:
        built = wheel(found[1])
        if built is not None:
            reader.wheels[built.name] = built, number
            reader.draft.read(number)
    elif "==" in line and (found := _UV_CHANGE.match(line)) is not None:
        if any(_UV_DONE.match(each) for each in reader.lines[max(0, number - 200) : number]):
            version = found[3] if found[1] != "-" else ""
            name = normalise(found[2])
            if version or name not in reader.told:
                reader.tell(name, version, number, "uv pip install", change=True)
            built = wheel(found[4]) if found[4] else None
            if built is not None and version:
                reader.wheels[name] = built, number
    elif "nstalling " in line or "pdating " in line:
        found = _POETRY_DONE.match(line)
        if found and not any("Failed" in each or "Error" in each for each in reader.lines):
            reader.tell(normalise(found[1]), found[2], number, "poetry install", change=True)


def _all_tokens(line: str) -> bool:
    """Whether a line goes on with a list of name-version, as terminals break it."""
    words = line.split()
    return bool(words) and all(_TOKEN.match(word) for word in words)


def _named_wheels(reader: _Reader) -> None:
    """Wheels that the text says are installed: in the line itself or the one above."""
    above = ""
    for number, line in enumerate(reader.lines, 1):
        if ".whl" in line and len(line) < 2000 and not _FETCHED.match(line):
            for word in _WHEEL_WORD.findall(line)[:20]:
                built = wheel(word)
                if built is None:
                    continue
                alone = line.strip(" \t`-*>") == word
                if _says_installed(line) or (alone and _says_installed(above)):
                    source = f"file name of the installed wheel of {built.name}"
                    if built.name not in reader.told:
                        reader.tell(built.name, built.version, number, source)
                    reader.draft.add(f"dist.{built.name}.tag", built.tag, source, number)
        if line.strip():
            above = line


def _says_installed(line: str) -> bool:
    found = _IS_INSTALLED.search(line[:1000])
    return (
        found is not None
        and _IS_NOT.search(line, max(0, found.start() - 20), found.start()) is None
    )


# -- conflicts -------------------------------------------------------------------------------


def _complaints(reader: _Reader, number: int, line: str) -> None:
    """Requirements that pip, uv or pkg_resources say are not met."""
    if len(line) > 2000:
        return
    line = line.strip()
    if " requires " in line or " has requirement " in line:
        for pattern in _CONFLICTS:
            found = pattern.match(line)
            if found:
                _complaint(reader, number, *found.groups())
                return
    elif "VersionConflict: " in line:
        found = _VERSION_CONFLICT.search(line)
        if found:
            _complaint(reader, number, found[4] or "", None, found[3], found[1], found[2])
    elif line.startswith(("No broken", "All installed")) and _NO_CONFLICTS.match(line):
        reader.draft.absent("python.conflicts", number)
    elif "not found" in line and (found := _NOT_FOUND.match(line)) is not None:
        for name in re.split(r"[, ]+", found[1].strip()):
            reader.draft.absent(f"dist.{normalise(name)}.version", number)


def _complaint(
    reader: _Reader,
    number: int,
    requirer: str,
    version: str | None,
    requirement: str,
    have_name: str | None,
    have: str | None,
) -> None:
    wish = requirement.partition(";")[0].strip()
    named = _REQUIRED.match(wish)
    if named is None:
        return
    wanted = normalise(have_name or named[0])
    wish = wanted + re.sub(r"[\s()]+", "", re.sub(r"\[[^\]]*\]", "", wish[named.end() :]))
    who = " ".join(filter(None, (normalise(requirer), version))) or "a distribution"
    state = f"installed {have}" if have else "which is not installed"
    reader.conflicts.setdefault(f"{who} requires {wish}, {state}", number)
    if requirer and version:
        reader.tell(normalise(requirer), version, number, "pip check")
    if have:
        reader.tell(wanted, have, number, "pip check")
    else:
        reader.draft.absent(f"dist.{wanted}.version", number)
    reader.draft.read(number)
