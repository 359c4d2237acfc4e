"""Package metadata as pip tells it: the wheels of a release, Requires-Python and Requires-Dist.

Everything is asked of pip's own commands in child processes; where packages come from is pip's
configuration. Where the index serves parts of files, no wheel is downloaded whole.

- `pip index versions -vvv` names every file that it considers, with its Requires-Python, and why it
  takes or leaves it. A bound on the upload time that nothing meets makes it tell the upload times.
- `pip install --dry-run --report` tells the requirements of one release.

The answers are kept in a JSON file. What a release requires never changes, so it is asked once;
which files a release has is asked again each time.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    canonicalize_name,
    parse_sdist_filename,
    parse_wheel_filename,
)
from packaging.version import InvalidVersion, Version

SCHEMA = "envaudit.metadata/1"
LONG_AGO = "1990-01-01T00:00:00Z"
"""No file of any index is as old: with it as a bound, pip tells the upload time of each."""

_DEADLINE_S = 300
_AT_ONCE = 4
_ATTEMPTS = 2


class NoAnswer(Exception):
    """pip did not tell what it was asked; the text says what to do."""


@dataclass(frozen=True)
class Release:
    """One release of a package. `requires` and `day` are None where nobody has read them."""

    version: str
    day: str | None = None
    requires_python: str | None = None
    yanked: bool = False
    sdist: bool = False
    wheels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Platform tags of a wheel, joined by dots, to its Python and ABI tags, as cp312-cp312."""
    requires: tuple[str, ...] | None = None
    unlike: tuple[str, ...] = ()
    """Packages on which the wheels of the release do not require the same."""

    def as_json(self) -> dict[str, Any]:
        """As it is kept: what is false or unknown is left out, cp312-cp312 is written cp312."""
        kept: dict[str, Any] = {}
        if self.day:
            kept["day"] = self.day
        if self.requires_python:
            kept["requires_python"] = self.requires_python
        for flag in ("yanked", "sdist"):
            if getattr(self, flag):
                kept[flag] = True
        if self.wheels:
            kept["wheels"] = {
                platform: " ".join(_short(tag) for tag in self.wheels[platform])
                for platform in sorted(self.wheels)
            }
        if self.requires is not None:
            kept["requires"] = list(self.requires)
        if self.unlike:
            kept["unlike"] = list(self.unlike)
        return kept

    @staticmethod
    def from_json(version: str, kept: Mapping[str, Any]) -> Release:
        """The release that `as_json` wrote."""
        wheels = {
            platform: tuple(
                tag if "-" in tag else f"{tag.rstrip('t')}-{tag}" for tag in tags.split()
            )
            for platform, tags in kept.get("wheels", {}).items()
        }
        requires = kept.get("requires")
        return Release(
            version,
            day=kept.get("day"),
            requires_python=kept.get("requires_python"),
            yanked=kept.get("yanked", False),
            sdist=kept.get("sdist", False),
            wheels=wheels,
            requires=None if requires is None else tuple(requires),
            unlike=tuple(kept.get("unlike", ())),
        )


def _short(tag: str) -> str:
    python, _, abi = tag.partition("-")
    return abi if re.fullmatch(re.escape(python) + "t?", abi) else tag


# -- what pip prints ----------------------------------------------------------------------------

_FILE = re.compile(r"/(?P<name>[^/\s#]+\.(?:whl|tar\.gz|zip|tar\.bz2))(?=[\s,#]|$)")
_REQUIRES_PYTHON = re.compile(r"\(requires-python:(?P<range>[^()]*)\)")
_UPLOADED = re.compile(r"Upload time (?P<day>\d{4}-\d{2}-\d{2})[ T]")


@dataclass
class _Files:
    """What the lines of a listing say of the files of one release."""

    days: set[str] = field(default_factory=set)
    requires_python: set[str] = field(default_factory=set)
    names: set[str] = field(default_factory=set)
    yanked: set[str] = field(default_factory=set)
    sdist: bool = False
    wheels: dict[str, set[str]] = field(default_factory=dict)


def read_listing(package: str, text: str) -> dict[str, Release]:
    """The final releases among the files that `pip index versions -vvv` named."""
    seen: dict[str, _Files] = {}
    for line in text.splitlines():
        named = _FILE.search(line)
        if named is None:
            continue
        name = unquote(named["name"])
        version, platforms, tags = _name_says(package, name)
        if version is None or version.is_prerelease or version.local:
            continue
        files = seen.setdefault(str(version), _Files())
        files.names.add(name)
        if platforms:
            files.wheels.setdefault(".".join(platforms), set()).update(tags)
        else:
            files.sdist = True
        if (needs := _REQUIRES_PYTHON.search(line)) and needs["range"].strip():
            files.requires_python.add(needs["range"].strip())
        if uploaded := _UPLOADED.search(line):
            files.days.add(uploaded["day"])
        if "yanked for reason" in line:
            files.yanked.add(name)
    return {version: _release(version, files) for version, files in seen.items()}


def _name_says(package: str, name: str) -> tuple[Version | None, list[str], list[str]]:
    """Version, platform tags and Python-ABI tags of a file of the package."""
    try:
        if name.endswith(".whl"):
            project, version, _, tags = parse_wheel_filename(name)
            platforms = sorted({tag.platform for tag in tags})
            pythons = sorted({f"{tag.interpreter}-{tag.abi}" for tag in tags})
        else:
            project, version = parse_sdist_filename(name)
            platforms, pythons = [], []
    except (InvalidWheelFilename, InvalidSdistFilename, InvalidVersion):
        return None, [], []
    return (version if project == canonicalize_name(package) else None), platforms, pythons


def _release(version: str, files: _Files) -> Release:
    return Release(
        version,
        day=min(files.days, default=None),
        # Files of one release that differ in it are those of a mistake; then none is the release's.
        requires_python=files.requires_python.pop() if len(files.requires_python) == 1 else None,
        yanked=files.names == files.yanked,
        sdist=files.sdist,
        wheels={platform: tuple(sorted(tags)) for platform, tags in files.wheels.items()},
    )


# -- asking -------------------------------------------------------------------------------------


class Pip:
    """The pip of one interpreter, in child processes."""

    def __init__(self, python: str) -> None:
        self._python = python

    def releases(self, package: str, kept: Mapping[str, Release]) -> dict[str, Release]:
        """Every final release with its files; the days of those that are kept are not asked."""
        found = read_listing(package, self._listing(package))
        if not found:
            raise NoAnswer(f"pip named no file of {package}: is there an index that it can reach?")
        # pip tells the upload time of files for the asked Python alone, so each is asked for.
        new = [r for v, r in found.items() if v not in kept or kept[v].day is None]
        pythons = {python for release in new for python in _pythons_of(release)}
        platforms = {p for release in new for joined in release.wheels for p in joined.split(".")}
        options = [f"--platform={platform}" for platform in sorted(platforms - {"any"})]
        days = {release.version: {release.day} for release in new}
        targets = [[f"--python-version={python}"] for python in sorted(pythons)]
        if any(not _pythons_of(release) for release in new):
            targets.append([])  # wheels of any Python 3, for other platforms than this one
        for target in targets:
            again = self._listing(package, *target, *options)
            for version, release in read_listing(package, again).items():
                if version in days:
                    days[version].add(release.day)
        return {
            version: replace(release, day=min(filter(None, days[version]), default=None))
            if version in days
            else replace(release, day=kept[version].day)
            for version, release in found.items()
        }

    def _listing(self, package: str, *options: str) -> str:
        done = self._run(
            ["index", "versions", package, "-vvv", "--ignore-requires-python"]
            + [f"--uploaded-prior-to={LONG_AGO}", *options]
        )
        if "no such option" in done.stderr:
            raise NoAnswer(
                f"the pip of {self._python} is too old to tell upload times: "
                f"`{self._python} -m pip install --upgrade pip`, or name another with --python"
            )
        return done.stdout + done.stderr

    def with_requirements(self, package: str, release: Release) -> Release:
        """A release with its Requires-Dist; one that has no wheel stays as it is.

        Some projects write another Requires-Dist for each Python, so two wheels are asked: that
        of the newest Python and that of the oldest.
        """
        told = [self._requires(package, release.version, options) for options in targets(release)]
        if not told:
            return release
        return replace(release, requires=told[0], unlike=unlike(told))

    def _requires(self, package: str, version: str, options: Sequence[str]) -> tuple[str, ...]:
        with tempfile.TemporaryDirectory() as folder:
            report = Path(folder, "report.json")
            done = self._run(
                ["install", "--quiet", "--dry-run", "--ignore-installed", "--no-deps"]
                + ["--ignore-requires-python", "--only-binary=:all:", "--use-feature=fast-deps"]
                + ["--target", folder, "--report", str(report), *options, f"{package}=={version}"]
            )
            if done.returncode:
                last = (done.stderr.strip().splitlines() or ["it says nothing"])[-1]
                raise NoAnswer(f"pip does not tell what {package} {version} needs: {last}")
            told = json.loads(report.read_text(encoding="utf-8"))
        (item,) = told["install"]
        return tuple(item["metadata"].get("requires_dist") or ())

    def _run(self, arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
        # A constraint of this machine would hide releases. An empty file replaces it; where
        # packages come from stays as it is configured.
        environment = os.environ | {"PIP_CONSTRAINT": os.devnull, "PIP_NO_INPUT": "1"}
        try:
            return subprocess.run(
                [self._python, "-m", "pip", "--disable-pip-version-check", *arguments],
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_DEADLINE_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as problem:
            raise NoAnswer(f"pip of {self._python} gave no answer: {problem}") from problem


def _pythons_of(release: Release) -> list[str]:
    """Python versions, as 3.12, that a release has ordinary wheels for."""
    found = {
        f"{match[1]}.{match[2]}"
        for tags in release.wheels.values()
        for tag in tags
        if (match := re.fullmatch(r"(?:cp|py)(\d)(\d+)-(?:\w*\d|\w*m|abi3|none)", tag))
    }
    return sorted(found)


def targets(release: Release) -> list[list[str]]:
    """Options by which pip takes a wheel of the newest and one of the oldest Python there is.

    Those for Linux x86_64 go before others, ordinary Pythons before free-threaded ones.
    """
    choices = []
    for joined, tags in release.wheels.items():
        platform = joined.split(".")[0]
        linux = "linux" in joined and joined.endswith("x86_64")
        for tag in tags:
            python, abi = tag.split("-", 1)
            minor = int(m[1]) if (m := re.fullmatch(r"[cp][py]3(\d+)", python)) else 0
            if python.startswith("cp") and not minor:
                continue  # Python 2: the rows are about 3
            choices.append(((linux, not abi.endswith("t")), minor, platform, python, abi))
    best = [choice for choice in choices if choice[0] == max(choices)[0]]
    picked = sorted({max(best), min(best)}, reverse=True) if best else []
    found = [_options(*choice[1:]) for choice in picked]
    return found if len(picked) < 2 or picked[0][1] != picked[1][1] else found[:1]


def _options(minor: int, platform: str, python: str, abi: str) -> list[str]:
    options = [f"--python-version=3.{minor}"] if minor else []
    if platform != "any":
        options.append(f"--platform={platform}")
    if python.startswith("cp"):
        options += ["--implementation=cp", f"--abi={abi}"]
    return options


def unlike(told: Sequence[Iterable[str]]) -> tuple[str, ...]:
    """Packages on which lists of requirements do not agree."""
    by_wheel = []
    for lines in told:
        needs: dict[str, set[str]] = {}
        for line in lines:
            with contextlib.suppress(InvalidRequirement):
                need = Requirement(line)
                needs.setdefault(canonicalize_name(need.name), set()).add(str(need))
        by_wheel.append(needs)
    names = sorted({name for needs in by_wheel for name in needs})
    return tuple(n for n in names if any(w.get(n) != by_wheel[0].get(n) for w in by_wheel))


# -- the file -----------------------------------------------------------------------------------


@dataclass
class Metadata:
    """Packages by name, each with its releases; `read` is the day it was last asked."""

    packages: dict[str, dict[str, Release]] = field(default_factory=dict)
    read: dict[str, str] = field(default_factory=dict)
    partial: set[str] = field(default_factory=set)
    """Packages of which the newest releases alone are here."""

    @staticmethod
    def load(path: Path) -> Metadata:
        """The file's content; nothing where there is no such file."""
        if not path.exists():
            return Metadata()
        kept = json.loads(path.read_text(encoding="utf-8"))
        if kept.get("schema") != SCHEMA:
            raise NoAnswer(f"{path} is not a file of package metadata ({SCHEMA})")
        packages = {
            name: {v: Release.from_json(v, release) for v, release in package["releases"].items()}
            for name, package in kept["packages"].items()
        }
        return Metadata(
            packages,
            {name: package["read"] for name, package in kept["packages"].items()},
            {name for name, package in kept["packages"].items() if package.get("partial")},
        )

    def dump(self) -> str:
        """One line a release, newest first, so that a refresh is a small change of the file."""
        blocks = []
        for name in sorted(self.packages):
            lines = [
                f"   {json.dumps(v)}: {json.dumps(self.packages[name][v].as_json())}"
                for v in by_age(self.packages[name])[::-1]
            ]
            head = {"read": self.read[name]} | ({"partial": True} if name in self.partial else {})
            releases = ",\n".join(lines)
            blocks.append(
                f'  {json.dumps(name)}: {json.dumps(head)[:-1]}, "releases": {{\n{releases}\n  }}}}'
            )
        packages = ",\n".join(blocks)
        return f'{{\n "schema": {json.dumps(SCHEMA)},\n "packages": {{\n{packages}\n }}\n}}\n'

    def of(self, package: str) -> Mapping[str, Release]:
        """Releases of a package by version; none where nobody asked."""
        return self.packages.get(package, {})

    def is_whole(self, package: str) -> bool:
        """Whether every release of a package is known."""
        return package in self.packages and package not in self.partial

    def excerpt(
        self, packages: Iterable[str], newest: int, keep: Callable[[str], bool]
    ) -> Metadata:
        """The newest releases of some packages, with the requirements that are worth keeping."""
        out = Metadata()
        for name in packages:
            known = self.of(name)
            out.packages[name] = {
                version: replace(known[version], requires=_kept(known[version].requires, keep))
                for version in _newest(known, newest)
            }
            out.read[name] = self.read[name]
            out.partial.add(name)
        return out

    def ask(
        self,
        pip: Pip,
        package: str,
        wanted: Callable[[Mapping[str, Release]], Iterable[str]],
        day: str,
    ) -> list[str]:
        """Read a package anew, with the requirements of the wanted releases; what went wrong."""
        kept = self.of(package)
        found = {}
        for version, release in pip.releases(package, kept).items():
            old = kept.get(version, release)
            found[version] = replace(release, requires=old.requires, unlike=old.unlike)
        to_read = [found[v] for v in wanted(found) if v in found and found[v].requires is None]
        problems = []

        def one(release: Release, attempts: int = _ATTEMPTS) -> tuple[Release, str]:
            try:
                return pip.with_requirements(package, release), ""
            except NoAnswer as no_answer:
                return one(release, attempts - 1) if attempts > 1 else (release, str(no_answer))

        with ThreadPoolExecutor(_AT_ONCE) as pool:
            for release, problem in pool.map(one, to_read):
                found[release.version] = release
                if problem:
                    problems.append(problem)
        self.packages[package], self.read[package] = found, day
        self.partial.discard(package)
        return problems


def by_age(versions: Iterable[str]) -> list[str]:
    """Versions from the oldest to the newest."""
    return sorted(versions, key=Version)


def _newest(versions: Iterable[str], count: int) -> list[str]:
    """The newest versions; post-releases are not parted from the release that they follow."""
    known = by_age(versions)
    first = Version(known[max(len(known) - count, 0)]).release
    return [version for version in known if Version(version).release >= first]


def _kept(requires: tuple[str, ...] | None, keep: Callable[[str], bool]) -> tuple[str, ...] | None:
    return None if requires is None else tuple(text for text in requires if keep(text))
