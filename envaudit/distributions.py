"""Installed Python distributions as their records on disk tell them, without importing anything.

A record is a folder or file beside the packages, whose name says most:

    torch-2.9.1+cu128.dist-info/     METADATA, WHEEL, INSTALLER, direct_url.json
    numpy-1.24.2-py3.11.egg-info     a folder with PKG-INFO and requires.txt, or PKG-INFO itself
    apex.egg-info/                   the same in a source folder; the version is in PKG-INFO
    apex-0.1-py3.10-linux-x86_64.egg a path entry of its own with EGG-INFO/
    apex.egg-link                    "setup.py develop": names the source folder
    __editable__.vllm-0.11.0.pth     an editable install by setuptools

Names are normalised as PEP 503 says: torch_tensorrt is torch-tensorrt.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from envaudit.host import Host
from envaudit.stack import normalise, without_secrets

HEADER_LIMIT_BYTES = 256 << 10
"""Most of a METADATA file that is read; its header is far smaller, its description may not be."""


class Distribution(NamedTuple):
    """One installed distribution."""

    name: str
    """Normalised."""
    version: str
    """As its record has it; "" where the record has none."""
    folder: str
    """The entry of sys.path it was found in."""
    record: str
    """Path of its record."""


class Installed(NamedTuple):
    """What the package folders hold."""

    found: Sequence[Distribution]
    """In the order of the path: of several with one name, the first is the one imported."""
    editable: Mapping[str, str]
    """Normalised names that a file beside the packages says are editable, with that file."""
    finders: Sequence[str]
    """Import hooks of editable installs: files that map a package to its source folder."""
    unreadable: Mapping[str, str]
    """Folders that could not be listed, and why."""

    def first(self) -> dict[str, Distribution]:
        """Name to the distribution that wins."""
        return {dist.name: dist for dist in reversed(self.found)}


_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?\Z")
_EGG_TAIL = re.compile(r"-py\d+(?:\.\d+)?(?:-.*)?\Z")


def parse_record_name(entry: str) -> tuple[str, str] | None:
    """Normalised name and version ("" for none) of a record's file name; None for another file.

    What is left of a failed uninstall (~orch-2.1.0.dist-info) is no record.
    """
    stem, dot, kind = entry.rpartition(".")
    if not dot or kind not in ("dist-info", "egg-info", "egg"):
        return None
    if kind != "dist-info":
        stem = _EGG_TAIL.sub("", stem)
    # No version has a dash (a record has _ instead); the name of an old record may.
    name, _, version = stem.rpartition("-")
    if not name:
        name, version = version, ""
    return (normalise(name), version) if _NAME.match(name) else None


def scan(host: Host, folders: Iterable[str]) -> Installed:
    """Every distribution in these folders, each folder listed once."""
    found: list[Distribution] = []
    editable: dict[str, str] = {}
    finders: list[str] = []
    unreadable: dict[str, str] = {}

    def add(folder: str, record: str, name: str, version: str) -> None:
        if not version:
            dist = Distribution(name, "", folder, record)
            version = dict(headers(read_header(host, dist) or "")).get("version", "")
        found.append(Distribution(name, version, folder, record))

    for folder in folders:
        if folder.endswith(".egg") and host.isdir(f"{folder}/EGG-INFO"):
            named = parse_record_name(posixpath.basename(folder))
            if named:
                add(folder, f"{folder}/EGG-INFO", *named)
            continue
        try:
            entries = host.listdir(folder)
        except OSError as problem:
            unreadable[folder] = problem.strerror or str(problem)
            continue
        for entry in entries:
            path = f"{folder}/{entry}"
            if entry.endswith("-info"):
                named = parse_record_name(entry)
                if named:
                    add(folder, path, *named)
            elif entry.endswith(".egg-link"):
                editable[normalise(entry[: -len(".egg-link")])] = path
            elif entry.startswith("__editable__"):
                if entry.endswith("_finder.py"):
                    finders.append(path)
                elif entry.endswith(".pth"):
                    name = entry[len("__editable__.") : -len(".pth")].rpartition("-")[0]
                    editable[normalise(name)] = path
    return Installed(found, editable, finders, unreadable)


def read_header(host: Host, dist: Distribution) -> str | None:
    """The header of a distribution's METADATA or PKG-INFO; None where it has none to read."""
    file = "METADATA" if dist.record.endswith(".dist-info") else "PKG-INFO"
    for path in (f"{dist.record}/{file}", dist.record):
        try:
            text = host.read(path, HEADER_LIMIT_BYTES)
        except OSError:
            continue
        return re.split(r"\r?\n\r?\n", text, maxsplit=1)[0]
    return None


def headers(text: str) -> list[tuple[str, str]]:
    """`Key: value` lines of a header, keys in lower case; continuation lines are left out."""
    pairs = []
    for line in text.splitlines():
        key, colon, value = line.partition(":")
        if colon and key and not key[0].isspace():
            pairs.append((key.strip().lower(), value.strip()))
    return pairs


def requirements(host: Host, dist: Distribution) -> list[str]:
    """What a distribution says it requires, extras included, as requirement texts."""
    header = read_header(host, dist) or ""
    told = [value for key, value in headers(header) if key == "requires-dist"]
    if not told and not dist.record.endswith(".dist-info"):
        told = parse_requires_txt(host.read_or(f"{dist.record}/requires.txt"))
    return told


def parse_requires_txt(text: str) -> list[str]:
    """Requirement texts of an egg's requires.txt: plain lines, then sections with a condition.

    A section is headed `[extra]`, `[:marker]` or `[extra:marker]`.
    """
    told = []
    condition = ""
    for line in text.splitlines():
        line = line.strip()
        if line.startswith("[") and line.endswith("]"):
            extra, _, marker = line[1:-1].partition(":")
            parts = [f"({marker})"] if marker else []
            if extra:
                parts.append(f"extra == '{normalise(extra)}'")
            condition = " and ".join(parts)
        elif line and not line.startswith("#"):
            told.append(f"{line} ; {condition}" if condition else line)
    return told


class Install(NamedTuple):
    """How a distribution came here: each "" or False where its record does not say."""

    installer: str
    tag: str
    """First compatibility tag of its wheel."""
    editable: str
    """The file that says so."""
    origin: str
    """URL or path it was installed from, without credentials."""


def how_installed(host: Host, dist: Distribution, editable: Mapping[str, str]) -> Install:
    """Read INSTALLER, WHEEL and direct_url.json of a distribution's record."""
    if not dist.record.endswith(".dist-info"):
        return Install("", "", editable.get(dist.name, ""), "")
    direct = f"{dist.record}/direct_url.json"
    origin, is_editable = parse_direct_url(host.read_or(direct))
    wheel = dict(reversed(headers(host.read_or(f"{dist.record}/WHEEL"))))
    return Install(
        host.read_or(f"{dist.record}/INSTALLER").strip()[:100],
        wheel.get("tag", "")[:200],
        direct if is_editable else editable.get(dist.name, ""),
        origin,
    )


def parse_direct_url(text: str) -> tuple[str, bool]:
    """Origin and whether editable, of a direct_url.json (PEP 610): ("", False) where unreadable.

    {"url": "https://user:TOKEN@host/x.git", "vcs_info": {"vcs": "git", "commit_id": "abc"}} gives
    "https://host/x.git@abc".
    """
    try:
        told = json.loads(text) if text else {}
    except (ValueError, RecursionError):
        return "", False
    if not isinstance(told, dict) or not isinstance(told.get("url"), str):
        return "", False
    url = without_secrets(told["url"])
    vcs, folder = told.get("vcs_info"), told.get("dir_info")
    commit = vcs.get("commit_id") if isinstance(vcs, dict) else None
    if isinstance(commit, str):
        url += "@" + commit
    return url[:500], isinstance(folder, dict) and folder.get("editable") is True


# -- requirements that are not met ------------------------------------------------------------

_REQUIREMENT = re.compile(
    r"\s*(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[(?P<extras>[^\]]*)\])?\s*"
    r"(?:@\s*(?P<url>\S+)|\(?(?P<spec>[^;@()]*)\)?)\s*(?:;(?P<marker>.*))?\Z",
    re.DOTALL,
)
_CLAUSE = re.compile(r"\s*(===|==|~=|!=|<=|>=|<|>)\s*(\d+(?:\.\d+)*)(\.\*)?\s*\Z")
_PLAIN = re.compile(r"(\d+(?:\.\d+)*)(?:\+[A-Za-z0-9._-]+)?\Z")
_CONDITION = re.compile(r"""\s*(\w+)\s*(==|!=|<=|>=|<|>)\s*(["'])([^"']*)\3\s*\Z""")


def plainly_meets(version: str, specifiers: str) -> bool:
    """Whether a version surely meets specifiers; False where it does not or that takes more.

    Knows plain release numbers only (2.9.1, 2.9.1+cu128; ==2.9.*), which is nearly everything,
    and saves importing a library for it.
    """
    plain = _PLAIN.match(version)
    if plain is None:
        return False
    have = [int(part) for part in plain[1].split(".")]
    for clause in filter(None, (part.strip() for part in specifiers.split(","))):
        parsed = _CLAUSE.match(clause)
        if parsed is None or parsed[1] == "===":
            return False
        operator, star = parsed[1], bool(parsed[3])
        want = [int(part) for part in parsed[2].split(".")]
        width = max(len(have), len(want))
        ours, theirs = (side + [0] * (width - len(side)) for side in (have, want))
        same = ours[: len(want)] == want if star else ours == theirs
        if operator == "==":
            met = same
        elif operator == "!=":
            met = not same
        elif star:
            return False
        elif operator == "~=":
            met = ours >= theirs and ours[: len(want) - 1] == want[:-1] and len(want) > 1
        else:
            met = {"<": ours < theirs, ">": ours > theirs, "<=": ours <= theirs}.get(
                operator, ours >= theirs
            )
        if not met:
            return False
    return True


def plainly_applies(
    marker: str, environment: Mapping[str, str], extras: frozenset[str]
) -> bool | None:
    """Whether a marker holds, where that can be told without a library; None where it cannot.

    Knows conditions joined by `and`. What stands in parentheses is left open, which still tells
    that `(...) and extra == "all"` does not hold.
    """
    if not marker.strip():
        return True
    if marker.count("(") > 50:
        return None
    before = None
    while before != marker:
        before = marker
        marker = re.sub(r"\([^()]*\)", "?", marker)
    if re.search(r"\bor\b", marker):
        return None
    answers = [_holds(part, environment, extras) for part in re.split(r"\band\b", marker)]
    if False in answers:
        return False
    return None if None in answers else True


def _holds(condition: str, environment: Mapping[str, str], extras: frozenset[str]) -> bool | None:
    parsed = _CONDITION.match(condition)
    if parsed is None:
        return None
    name, operator, value = parsed[1], parsed[2], parsed[4]
    if name == "extra":
        return normalise(value) in extras if operator == "==" else None
    have = environment.get(name)
    if have is None:
        return None
    if name.endswith("version"):
        if not _PLAIN.match(have) or not _CLAUSE.match(operator + value):
            return None
        return plainly_meets(have, operator + value)
    if operator in ("==", "!="):
        return (have == value) is (operator == "==")
    return None


def unmet(
    requirers: Mapping[str, tuple[str, Sequence[str]]],
    installed: Mapping[str, str],
    environment: Mapping[str, str],
) -> list[str]:
    """Requirements that the installed versions do not meet, each as a sentence.

    requirers: name to version and requirement texts; installed: name to version of everything;
    environment: what markers ask for (python_version, sys_platform, ...) in the target. An extra
    counts where another requirer asks for it: torch asks for cuda-toolkit[cublas,...].
    """
    told: dict[str, None] = {}
    todo: list[tuple[str, frozenset[str]]] = [(name, frozenset()) for name in sorted(requirers)]
    done = set(todo)
    for name, extras in todo:  # grows while it is walked
        version, texts = requirers[name]
        for text in texts:
            parsed = _REQUIREMENT.match(text)
            if parsed is None or (extras and "extra" not in (parsed["marker"] or "")):
                continue
            applies = plainly_applies(parsed["marker"] or "", environment, extras)
            if applies is False:
                continue
            wanted, spec = normalise(parsed["name"]), (parsed["spec"] or "").strip()
            have = installed.get(wanted)
            asked = frozenset(
                normalise(e) for e in (parsed["extras"] or "").split(",") if e.strip()
            )
            met = have == "" or (have is not None and plainly_meets(have, spec))
            if met and not (asked and wanted in requirers):
                continue
            if applies is None and not _applies(parsed["marker"], environment, extras):
                continue
            if asked and wanted in requirers and (wanted, asked) not in done:
                done.add((wanted, asked))
                todo.append((wanted, asked))
            if not met and (have is None or not _meets(have, spec)):
                state = f"installed {have}" if have else "which is not installed"
                wish = wanted + re.sub(r"\s+", "", spec)
                told[f"{name} {version} requires {wish}, {state}"] = None
    return list(told)


def _applies(marker: str, environment: Mapping[str, str], extras: frozenset[str]) -> bool:
    """The whole of the marker language; a marker that is not understood does not hold."""
    from packaging.markers import Marker

    try:
        parsed = Marker(marker.strip())
        return any(
            parsed.evaluate({**environment, "extra": extra}) for extra in sorted(extras) or [""]
        )
    except ValueError:  # what packaging raises for all it does not understand
        return False


def _meets(version: str, specifiers: str) -> bool:
    """The whole of version specifiers; what is not understood counts as met."""
    from packaging.specifiers import SpecifierSet
    from packaging.version import Version

    try:
        return SpecifierSet(specifiers).contains(Version(version), prereleases=True)
    except ValueError:
        return True
