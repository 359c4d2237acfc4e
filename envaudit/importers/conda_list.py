"""What conda, mamba, micromamba and pixi print of an environment and of the machine.

    # packages in environment at /opt/conda/envs/gpu:            conda list
    # Name                    Version                   Build  Channel
    pytorch                   2.3.0           py3.11_cuda12.1_cudnn8.9.2_0    pytorch
    torchvision               0.18.0                   pypi_0    pypi

    pytorch=2.3.0=py3.11_cuda12.1_cudnn8.9.2_0                   conda list --export
    - pytorch=2.3.0=py3.11_cuda12.1_cudnn8.9.2_0                 conda env export
    virtual packages : __cuda=12.4=0                             conda info

An environment.yml that somebody wrote holds wishes: `python=3.10` there means any 3.10.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import NamedTuple

from envaudit.importers import Draft, Imported, Section
from envaudit.importers.requirement_lines import VERSION
from envaudit.patterns import regex
from envaudit.stack import conda_matters, in_gpu_stack, normalise, without_secrets

_LIMIT = 4 << 20
LISTED_LIMIT = 5000
"""Most packages of one section."""

_COMMAND = regex(r"\b(?:conda|mamba|micromamba|pixi)(?:\.exe|\.bat)?\b")
_LISTS = regex(r"\b(?:conda|mamba|micromamba|pixi)(?:\.exe|\.bat)?\b[^|;&\n]{0,120}?\blist\b")
_HEAD = regex(r"# packages in environment at ([^\n]{1,400}?):?[ \t]*\Z")
_MICRO_HEAD = regex(r"[ \t]*List of packages in environment: \"?([^\"\n]{1,400})\"?[ \t]*\Z")
_COLUMNS = regex(
    r"(?:# )?[ \t]*(?:Name|Package)[ \t]+Version[ \t]+Build"
    r"(?:[ \t]+(?:Channel|Size|Platform|Kind)\b.*)?\Z"
)
_NAME = r"([A-Za-z0-9_][A-Za-z0-9._-]{0,98})"
_VERSION = r"([A-Za-z0-9][A-Za-z0-9._!+-]{0,99})"
_BUILD = r"([A-Za-z0-9_.+]{1,99}|<pip>)"
_ROW = regex(rf"[ \t]*{_NAME}[ \t]+{_VERSION}[ \t]+{_BUILD}(?:[ \t]+(\S{{1,300}}))?[ \t]*\Z")
_PIXI_START = rf"[ \t]*{_NAME}[ \t]+{_VERSION}(?:[ \t]+{_BUILD})?"
_PIXI_KIND = r"(conda|pypi)\b(?:[ \t]+(\S{1,300}))?"
_PIXI_ROW = regex(rf"{_PIXI_START}[ \t]+[0-9.]{{1,12}} ?[KMG]?i?B[ \t]+{_PIXI_KIND}")
_PIXI_NO_SIZE = regex(rf"{_PIXI_START}[ \t]{{2,}}{_PIXI_KIND}")
_SURE_BUILD = regex(
    r"(?:[A-Za-z0-9_.]*?(?:py\d|py_|pyh[0-9a-f]|h[0-9a-f]{5,}|cuda|cpu|cp3)[A-Za-z0-9_.]*_\d+|"
    r"pypi_0|<pip>|[a-z][A-Za-z0-9.]*_\d+)\Z"
)
"""Builds that say by themselves that the line is one of conda's."""
_PYTHON_BUILD = regex(r"(?:\A|_|cuda\d{2,4})py(?:\d|h[0-9a-f]|_\d)")
_EXPORTED = regex(rf"{_NAME}={_VERSION}={_BUILD}\Z")
_URL = regex(
    r"(https?://[^\s\"'#]{1,600}/|file:///[^\s\"'#]{1,600}/)?"
    r"(linux-\w{1,12}|osx-\w{1,12}|win-\w{1,12}|noarch)/"
    r"([A-Za-z0-9_][A-Za-z0-9_.-]{0,98})-([^-/\s]{1,99})-([^-/\s]{1,99})\.(?:conda|tar\.bz2)(?=[\s#\"']|\Z)"
)
_YAML_ITEM = regex(
    r"([ \t]*)-[ \t]+(?:'([^'\n]{1,300})'|\"([^\"\n]{1,300})\"|([^\n#]{1,300}?))[ \t]*(?:#.*)?\Z"
)
_YAML_KEY = regex(r"([a-z_]{1,40}):(?:[ \t]+(.*))?\Z")
_PIP_PIN = regex(
    rf"([A-Za-z0-9][A-Za-z0-9._-]{{0,98}})(?:\[[^\]\n]{{0,100}}\])?[ ]?==[ ]?({VERSION})\Z"
)
_VIRTUAL = regex(
    r"(?<![\w.])__(cuda|glibc|linux|musl)(?:==?|[ \t]+)([0-9][0-9A-Za-z.+_-]{0,40}?)"
    r"(?:=[0-9a-z_]{1,20}|[ \t]+0)(?![\w.])"
)
_INFO_KEY = regex(
    r"[ \t]*((?:active )?env location|platform|conda version|virtual packages)[ \t]*: ?(.*)\Z"
)
_JSON_ENTRY = regex(r"\[\s*\{")

_DISTS = {"pytorch": "torch", "tensorflow-base": "tensorflow", "torchtriton": "triton"}
"""Distributions that conda packages of another name bring."""
_NO_DISTS = regex(
    r"-(?:base|mutex|gpu|cuda|cpu|feedstock|devel|dev|static)\Z|\Apytorch-|\Atensorflow-|\Alib"
)
"""Names of packages that bring no distribution of that name."""

_HINTS = (
    *("# packages in env", "pypi_0", "<pip>", "dependencies:", "__glibc", "__cuda", "@EXPLICIT"),
    *(
        "List of packages",
        ".conda",
        ".tar.bz2",
        "Version",
        '"build_string"',
        "_0",
        "_1",
        "_2",
        "=py",
    ),
    *("_cuda", "$ conda create", "active env location"),
)


class Package(NamedTuple):
    """One package of an environment."""

    name: str
    version: str
    build: str
    channel: str
    line: int
    source: str


def recognises(section: Section) -> bool:
    """Whether the text can hold a line of conda."""
    if _COMMAND.search(section.command[:2000]):
        return True
    text = section.text[:_LIMIT]
    return any(hint in text for hint in _HINTS)


def parse(section: Section) -> Imported:
    """Packages of a conda environment, its prefix, and what conda sees of the machine."""
    draft = Draft()
    lines = [line.rstrip() for line in section.text[:_LIMIT].split("\n")]
    packages = [
        *_json_packages(section.text[:_LIMIT], section.command),
        *_listed(draft, lines, section.command[:4000]),
        *_environment(draft, lines, section.command[:4000]),
    ]
    _tell(draft, packages[:LISTED_LIMIT])
    _machine(draft, lines)
    return draft.done()


# -- telling ---------------------------------------------------------------------------------


def _tell(draft: Draft, packages: list[Package]) -> None:
    versions: dict[str, set[str]] = {}
    for package in packages:
        for fact in _facts(package):
            versions.setdefault(fact, set()).add(package.version)
    for package in packages:
        name, line = package.name.lower(), package.line
        source = f"{package.source}: {package.name}"
        draft.read(line)
        for fact in _facts(package):
            if len(versions[fact]) > 1:
                draft.gap(
                    f"{fact}.version", f"the text lists {' and '.join(sorted(versions[fact]))}"
                )
                continue
            draft.add(f"{fact}.version", package.version, source, line)
            if fact.startswith("conda."):
                draft.add(f"{fact}.build", package.build, source, line)
                draft.add(f"{fact}.channel", package.channel, source, line)
            elif _is_pip(package):
                draft.add(f"{fact}.installer", "pip", source, line)
            if name == "python" and not _is_pip(package):
                draft.add("python.version", package.version, source, line)


def _facts(package: Package) -> list[str]:
    """What a package tells of: itself, and the Python distribution that it brings."""
    name = package.name.lower()
    if _is_pip(package):
        return [f"dist.{normalise(name)}"]
    dist = _dist(name, package.build)
    return [f"conda.{name}"] * conda_matters(name) + [f"dist.{dist}"] * bool(dist)


def _is_pip(package: Package) -> bool:
    return package.channel == "pypi" or package.build in ("pypi_0", "<pip>")


def _dist(name: str, build: str) -> str:
    """The Python distribution that a conda package brings; "" where that is not sure."""
    if not _PYTHON_BUILD.search(build) and not (name == "pytorch" and not build):
        return ""
    if name in _DISTS:
        return _DISTS[name]
    dist = normalise(name)
    return dist if in_gpu_stack(dist) and not _NO_DISTS.search(name) else ""


def channel(text: str) -> str:
    """A channel as conda names it, without host of the public ones, token and platform."""
    text = re.sub(r"/t/[^/]+", "", without_secrets(text)).rstrip("/")
    text = re.sub(r"/(?:noarch|(?:linux|osx|win)-\w+)\Z", "", text)
    text = re.sub(
        r"\Ahttps?://(?:conda\.anaconda\.org|repo\.anaconda\.com|repo\.prefix\.dev)/", "", text
    )
    return re.sub(r"\A\w+://", "", text).strip("/")


# -- lists -----------------------------------------------------------------------------------


def _listed(draft: Draft, lines: list[str], command: str) -> list[Package]:
    """conda list in its forms: columns, --export, --explicit; the lists of mamba and pixi."""
    found: list[Package] = []
    listing = _LISTS.search(command) is not None
    pixi = "pixi" in command
    headed = exported = False
    for number, line in enumerate(lines, 1):
        if not line or len(line) > 600:
            headed = headed and not (found and found[-1].line == number - 1)
            continue
        head = _HEAD.match(line) or _MICRO_HEAD.match(line)
        if head:
            headed = True
            draft.add("python.prefix", head[1].strip(), "conda list: environment", number)
            draft.add("python.environment", "conda", "conda list", number)
        elif _COLUMNS.match(line):
            headed = True
            draft.read(number)
        elif line.startswith(("# $ conda create", "# created-by: conda")):
            exported = True
            draft.read(number)
        elif line == "@EXPLICIT" or (line.startswith("# platform:") and exported):
            draft.read(number)
        elif _url_line(line) is not None:
            package = _url_line(line)
            if package is not None and (listing or headed or "@EXPLICIT" in lines):
                found.append(package._replace(line=number))
        else:
            row = _row(line, number, listing or headed, pixi)
            if row is None and (listing or exported):
                pinned = _EXPORTED.match(line)
                if pinned:
                    row = Package(
                        pinned[1],
                        pinned[2],
                        pinned[3],
                        "pypi" if pinned[3] == "pypi_0" else "",
                        number,
                        "conda list --export",
                    )
            if row is not None:
                found.append(row)
    return found


def _row(line: str, number: int, known: bool, pixi: bool) -> Package | None:
    """A line of columns; without heading and command its build must tell that it is one."""
    if line[0] in "#[|+>$" or "==" in line:
        return None
    size = _PIXI_ROW.match(line) or (_PIXI_NO_SIZE.match(line) if pixi else None)
    if size and (pixi or known):
        name, version, build, kind, source = size.groups()
        from_pypi = kind == "pypi"
        where = "pypi" if from_pypi else channel(source or "")
        return Package(name, version, build or "", where, number, "pixi list")
    row = _ROW.match(line)
    if row is None or not row[2][0].isdigit():
        return None
    name, version, build, where = row[1], row[2], row[3], row[4] or ""
    if not known and not (
        _SURE_BUILD.match(build) and (where or "_" in build) and _is_channel(where)
    ):
        return None
    if known and not (_SURE_BUILD.match(build) or where or re.fullmatch(r"\w+", build)):
        return None
    return Package(name, version, build, channel(where), number, "conda list")


def _is_channel(text: str) -> bool:
    return re.fullmatch(r"|[a-z][a-z0-9_./:-]*", text, re.IGNORECASE) is not None


def _url_line(line: str) -> Package | None:
    found = _URL.search(line) if (".conda" in line or ".tar.bz2" in line) else None
    if found is None:
        return None
    return Package(
        found[3], found[4], found[5], channel(found[1] or ""), 0, "conda list --explicit"
    )


def _json_packages(text: str, command: str) -> Iterator[Package]:
    """conda list --json: a list of objects."""
    if '"build_string"' not in text:
        return
    start = _JSON_ENTRY.search(text)
    end = text.rfind("]")
    try:
        told = json.loads(text[start.start() : end + 1]) if start else []
    except (ValueError, RecursionError):
        return
    line = text.count("\n", 0, start.start()) + 1 if start else 1
    for each in told if isinstance(told, list) else []:
        if not isinstance(each, dict):
            continue
        fields = [each.get(key) for key in ("name", "version", "build_string", "channel")]
        if all(isinstance(field, str) and len(field) < 300 for field in fields[:3]):
            where = channel(str(fields[3] or ""))
            name, version, build = map(str, fields[:3])
            if re.fullmatch(_NAME, name) and version:
                yield Package(name, version, build, where, line, "conda list --json")


# -- environment.yml -------------------------------------------------------------------------


def _environment(draft: Draft, lines: list[str], command: str) -> list[Package]:
    """What `conda env export` printed, or the pins of an environment.yml."""
    at = next((i for i, line in enumerate(lines) if line.rstrip() == "dependencies:"), -1)
    if at < 0:
        return []
    items: list[tuple[int, int, str]] = []
    end = at + 1
    for end in range(at + 1, len(lines) + 1):
        if end == len(lines):
            break
        line = lines[end]
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        item = _YAML_ITEM.match(line) if len(line) < 600 else None
        if item is None:
            break
        items.append((end + 1, len(item[1]), next(filter(None, item.groups()[1:]), "")))
    keys = {}
    for number, line in [*enumerate(lines[:at], 1), *enumerate(lines[end : end + 6], end + 1)]:
        key = _YAML_KEY.match(line)
        if key:
            keys[key[1]] = (key[2] or "").strip(), number
    depth = min((indent for _, indent, _ in items), default=0)
    exact = sum(bool(_EXPORTED.match(text)) for _, indent, text in items if indent == depth)
    exported = "export" in command or "prefix" in keys or exact >= 2
    source = "conda env export" if exported else "environment.yml"
    found = []
    for number, indent, text in items:
        if indent > depth:
            pin = _PIP_PIN.match(text.partition(";")[0].strip())
            if pin:
                found.append(Package(pin[1], pin[2], "pypi_0", "pypi", number, source))
            continue
        text = text.rpartition("::")[2]
        pinned = _EXPORTED.match(text)
        loose = re.fullmatch(
            rf"{_NAME}=={_VERSION}" if not exported else rf"{_NAME}==?{_VERSION}", text
        )
        if pinned:
            found.append(Package(pinned[1], pinned[2], pinned[3], "", number, source))
        elif loose:
            found.append(Package(loose[1], loose[2], "", "", number, source))
        draft.read(number)
    if found and not exported:
        draft.note("an environment.yml says what would be installed, not what is")
    if exported and "prefix" in keys:
        draft.add("python.prefix", keys["prefix"][0], "conda env export: prefix", keys["prefix"][1])
        draft.add("python.environment", "conda", "conda env export", keys["prefix"][1])
    draft.read(at + 1, *(number for _, number in keys.values()))
    return found


# -- conda info ------------------------------------------------------------------------------


def _machine(draft: Draft, lines: list[str]) -> None:
    """Virtual packages: what conda sees of driver, C library and kernel."""
    for number, line in enumerate(lines, 1):
        if len(line) > 2000:
            continue
        if "__" in line:
            for name, version in _VIRTUAL.findall(line):
                source = f"conda info: __{name}"
                if name == "cuda":
                    draft.add("driver.cuda.version", version, source, number)
                elif name == "glibc":
                    draft.add("os.libc.name", "glibc", source, number)
                    draft.add("os.libc.version", version, source, number)
                elif name == "linux":
                    draft.add("kernel.version", version, source, number)
        key = _INFO_KEY.match(line)
        if key:
            draft.read(number)
            if key[1].endswith("env location") and key[2].strip() not in ("", "None", "-"):
                draft.add("python.prefix", key[2].strip(), "conda info: active env", number)
            if key[1] == "platform" and key[2].startswith("linux-"):
                arch = {"64": "x86_64", "aarch64": "aarch64", "ppc64le": "ppc64le"}.get(
                    key[2].strip().partition("-")[2]
                )
                draft.add("os.arch", arch, "conda info: platform", number)
