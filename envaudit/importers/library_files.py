"""Files of libraries and toolkits that ls, find and locate list, and what strings finds in one.

    $ ls -l /usr/local/cuda/compat
    lrwxrwxrwx 1 root root   12 Jul  1 12:00 libcuda.so.1 -> libcuda.so.575.57.08
    -rw-r--r-- 1 root root 90mM Jul  1 12:00 libcuda.so.575.57.08

    $ find / -name 'libcudnn.so*'
    /usr/lib/x86_64-linux-gnu/libcudnn.so.8.9.7

    $ strings /usr/lib/x86_64-linux-gnu/libstdc++.so.6 | grep GLIBCXX
    GLIBCXX_3.4.30

That a file lies there does not say that the loader takes it: only copies are told.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from typing import NamedTuple

from envaudit.importers import Draft, Imported, Section
from envaudit.importers.library_names import (
    SONAME,
    Copies,
    is_compat,
    is_stub,
    is_system,
    matters,
    version_of,
)
from envaudit.patterns import regex

_LIMIT = 4 << 20

_LISTS = regex(
    r"(?:^|[\s;&|])(?:ls|ll|dir|find|fd|locate|plocate|mlocate|whereis|readlink|realpath|tree|du|stat|"
    r"dpkg -L|rpm -ql|pacman -Ql)(?=\s|\Z)"
)
_MODE = regex(r"[-l][r-][w-][xsS-][r-][w-][xsS-][r-][w-][xtT-][.+@]?[ \t]")
_FILE = regex(
    rf"((?:/|\./|~/|\$\w{{1,40}}/|\w[^\s:]{{0,200}}?/)[^\s:*]{{0,400}}/?|)({SONAME})\*?\Z"
)
_FOLDER = regex(r"((?:/|~/|\./|\$\w)[^\s:]{0,400}|\.):\Z")
_ARGUMENT = regex(r"(?:[\"']?)((?:/|~|\.|\$\{?\w)[^\s\"'|;&*]{0,400})")
_TOOLKIT = regex(r"((?:/[^\s/]{1,60}){0,6}?/)?cuda-(\d{1,2}\.\d{1,2}(?:\.\d{1,3})?)/?\Z")
_SEARCHED = regex(r"search|tried|trying|missing|not found|could not|looked|unable", re.IGNORECASE)
_STRINGS = regex(
    r"\b(?:strings|objdump|readelf|nm)\b[^|\n]{0,60}?[ \t]"
    r"((?:/|~|\$)[^\s|]{1,400}libstdc\+\+\.so[.\d]*)[^|\n]{0,40}"
    r"\|[ \t]*grep[ \t][^|\n]{0,20}?GLIBCXX(?:_3)?(?:\\?\.4)?[\"']?[ \t]*(?:\||\Z)"
)
_GLIBCXX = regex(r"GLIBCXX_3\.4\.(\d{1,3})(?!\d)")


class _Listed(NamedTuple):
    """A file of a list."""

    path: str
    target: str
    """What it is a link to, as it is written."""
    line: int


def recognises(section: Section) -> bool:
    """Whether the text can be a list of libraries or toolkits."""
    text = section.text[:_LIMIT]
    return (
        ".so" in text
        or ("cuda-" in text and _LISTS.search(section.command[:2000]) is not None)
        or ("GLIBCXX_" in text and "GLIBCXX" in section.command)
    )


def parse(section: Section) -> Imported:
    """Copies of libraries by their file names, and toolkits by the names of their folders."""
    draft = Draft()
    command = section.command[:2000]
    lines = [line.rstrip() for line in section.text[:_LIMIT].split("\n")]
    listing = _LISTS.search(command) is not None
    files = [one for one in _files(lines, command) if matters(posixpath.basename(one.path))]
    if listing or (not command and _is_list(lines, files)):
        _libraries(draft, files)
    if listing:
        _toolkits(draft, lines, _folder(command))
    _symbols(draft, lines, command)
    return draft.done()


def _is_list(lines: list[str], files: list[_Listed]) -> bool:
    """Whether paths without a command are a list of what is there, not of what was looked for."""
    paths = [one for one in files if one.path.startswith("/")]
    if len(paths) < 2:
        return False
    above = [line for line in lines[max(0, paths[0].line - 3) : paths[0].line - 1] if line.strip()]
    return not any(_SEARCHED.search(line) for line in above)


def _folder(command: str) -> str:
    """The one folder that an ls lists, as it is written; "" where the names tell it."""
    first = re.split(r"[|;&]", command, maxsplit=1)[0]
    found = [each.rstrip("/") for each in _ARGUMENT.findall(f" {first}"[:1000]) if "/" in each]
    return found[-1] if len(found) == 1 else ""


def _files(lines: list[str], command: str) -> Iterator[_Listed]:
    """Every line that is the name of a library, with the folder it is listed under."""
    folder = _folder(command)
    for number, line in enumerate(lines, 1):
        if ".so" not in line:
            heading = _FOLDER.match(line) if line.endswith(":") and len(line) < 500 else None
            if heading:
                folder = heading[1]
            continue
        if len(line) > 800:
            continue
        text, _, target = line.strip().partition(" -> ")
        if _MODE.match(text):
            text = text.rpartition(" ")[2]
        words = text.split() if text.startswith(("lib", "/")) else [text]
        if len(words) > 1 and text.partition(" ")[0].endswith(":"):
            words = words[1:]  # whereis
        if not all(".so" in word for word in words):
            continue
        for word in words[:50]:
            found = _FILE.match(word)
            if found:
                path = found[1] + found[2]
                if not found[1] and folder:
                    path = f"{folder}/{path}"
                yield _Listed(posixpath.normpath(path), target.strip().rstrip("*"), number)


def _libraries(draft: Draft, files: list[_Listed]) -> None:
    copies = Copies()
    versioned = {
        (posixpath.dirname(one.path), posixpath.basename(one.path).split(".so")[0])
        for one in files
        if version_of(one.path)
    }
    for one in files:
        draft.read(one.line)
        folder, name = posixpath.split(one.path)
        version = version_of(one.path)
        if not version and ((folder, name.split(".so")[0]) in versioned):
            continue  # a link to the file beside it
        if one.target:
            target = posixpath.normpath(posixpath.join(folder, one.target))
            copies.note(target, version_of(target), "listed", one.line)
        else:
            copies.note(one.path, version, "listed", one.line)
    copies.tell(draft, "names of files")
    _driver(draft, copies)


def _driver(draft: Draft, copies: Copies) -> None:
    """What the names of libcuda tell: the compat package's version, and that of the system's."""
    compat, system = {}, {}
    for path, (version, line) in copies.libcuda.items():
        if version and is_compat(path):
            compat[version] = path, line
        elif version and is_system(path) and not is_stub(path):
            system[version] = path, line
    for found, fact in ((compat, "driver.compat.on_disk"), (system, "driver.library.version")):
        if len(found) > 1:
            draft.gap(fact, f"libcuda of {' and '.join(sorted(found))} is listed")
        for version, (path, line) in found.items():
            if len(found) == 1:
                draft.add(fact, version, f"name of {path}", line)


def _toolkits(draft: Draft, lines: list[str], folder: str) -> None:
    """Folders named cuda-12.4."""
    found: dict[str, int] = {}
    for number, line in enumerate(lines, 1):
        if "cuda-" not in line or len(line) > 600:
            continue
        text, _, target = line.strip().partition(" -> ")
        if line[:1] in "dl" and len(text) > 10 and text[10:11] in " .+@":
            text = text.rpartition(" ")[2]
        for name in (text, target):
            match = _TOOLKIT.match(name.rstrip("/")) if name else None
            if match:
                place = (match[1] or f"{folder or '/usr/local'}/") + f"cuda-{match[2]}"
                found.setdefault(f"{place} {match[2]}", number)
    if found:
        draft.add("cuda.toolkits", [*found], "names of folders", next(iter(found.values())))
        draft.read(*found.values())


def _symbols(draft: Draft, lines: list[str], command: str) -> None:
    """strings libstdc++.so.6 | grep GLIBCXX: the highest number, of the file in the command."""
    asked = _STRINGS.search(command)
    if asked is None or re.search(r"\|\s*head\b", command):
        return
    numbers = {}
    for number, line in enumerate(lines, 1):
        for each in _GLIBCXX.findall(line[:400]):
            numbers[int(each)] = number
    if not numbers:
        return
    newest = max(numbers)
    version = f"3.4.{newest}"
    copies = Copies()
    copies.note(asked[1], version, "strings", numbers[newest])
    copies.tell(draft, "strings | grep GLIBCXX")
    if is_system(asked[1]):
        draft.add("os.libstdcxx.version", version, f"strings {asked[1]}", numbers[newest])
    draft.read(*numbers.values())
