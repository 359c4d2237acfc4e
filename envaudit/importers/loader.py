"""What the dynamic loader took or would take: ldd, LD_DEBUG, ldconfig, open files, its errors.

    libnvJitLink.so.12 => /usr/local/cuda-12.1/lib64/libnvJitLink.so.12 (0x00007f00)   ldd
    libcudnn.so.9 => not found
         4242:	calling init: /usr/lib/x86_64-linux-gnu/libcudnn.so.9                  LD_DEBUG=libs
        libcudnn.so.8 (libc6,x86-64) => /usr/lib/x86_64-linux-gnu/libcudnn.so.8        ldconfig -p
    /usr/local/cuda/compat:
        libcuda.so.1 -> libcuda.so.575.57.08                                           ldconfig -v
    ImportError: /venv/lib/libcusparse.so.12: undefined symbol: __nvJitLinkAddData_12_1

ldconfig lists what there is; only ldd, LD_DEBUG, a process's maps and an error name what is loaded.
"""

from __future__ import annotations

import posixpath
import re

from envaudit.importers import Draft, Imported, Section
from envaudit.importers.library_names import (
    SONAME,
    Copies,
    is_compat,
    is_stub,
    matters,
    soname_of,
    version_of,
)
from envaudit.libversion import family_of, is_main
from envaudit.patterns import regex

_LIMIT = 4 << 20
_LINE_LIMIT = 2000

_PATH = rf"(/(?:[^\s:()'\"`]{{0,400}}/)?({SONAME}))"
_LDD = regex(
    rf"[ \t]{{0,16}}({SONAME}) => (?:(/[^\s()]{{1,500}})(?: \(0x[0-9a-f]+\))?|(not found))[ \t]*\Z"
)
_LDD_HEAD = regex(r"(\S{1,500}):\Z")
_LDD_COMMAND = regex(r"\b(?:ldd|lddtree)\b((?:[ \t]+-\w+){0,3})[ \t]+([^\s|;&]{1,500})")
_DEBUG = regex(
    rf"[ \t]*\d{{1,10}}:[ \t]+(?:calling (?:init|fini)|needed init): {_PATH}(?:[ \t]|\Z)"
)
_BINDING = regex(rf"[ \t]*\d{{1,10}}:[ \t]+binding file (\S{{1,500}}) \[0\] to {_PATH} \[0\]: ")
_NEEDED = regex(
    rf"[ \t]*\d{{1,10}}:[ \t]+file=({SONAME}) \[0\];[ \t]+needed by (\S{{1,500}}) \[0\]"
)
_CACHE = regex(rf"[ \t]{{0,16}}({SONAME}) \(([^()\n]{{1,80}})\) => (/\S{{1,500}})[ \t]*\Z")
_CACHE_LINK = regex(rf"[ \t]{{1,16}}({SONAME}) -> ({SONAME})(?: \(changed\))?[ \t]*\Z")
_CACHE_HEAD = regex(r"(/\S{1,400}):(?: \(from [^()\n]{1,300}\))?[ \t]*\Z")
_MAPS = regex(
    rf"[0-9a-f]{{6,16}}-[0-9a-f]{{6,16}} [r-][w-][x-][ps] [0-9a-f]{{6,16}} \S{{1,12}} \d{{1,20}}"
    rf"[ \t]+{_PATH}[ \t]*\Z"
)
_LSOF = regex(
    rf"\S{{1,40}}[ \t]+\d{{1,10}}[ \t]+\S{{1,60}}[ \t]+(?:mem|DEL|txt)[ \t]+REG[ \t]"
    rf"[^\n]{{0,120}}?[ \t]{_PATH}[ \t]*\Z"
)
_OPENED = regex(
    rf"(?:\[pid +\d+\] )?(?:\d+ +)?open(?:at)?\((?:AT_FDCWD, )?\"{_PATH}\", "
    r"O_RDONLY[^)\n]{0,40}\) += +\d+"
)
_ERROR = regex(
    rf"{_PATH}: (?:undefined symbol: \S|symbol \S{{1,200}} version |"
    r"version `[\w.]{1,60}' not found)"
)
_REQUIRED_BY = regex(r"\(required by ([^\s()]{1,500})\)")
_UNKNOWN_HOST = regex(r"x86-64|AArch64|64bit|hwcap", re.IGNORECASE)

_HINTS = (
    " => ",
    "calling init: ",
    "binding file ",
    ": undefined symbol",
    "' not found",
    " -> lib",
    "-p ",
    "openat(",
    " REG ",
)


def recognises(section: Section) -> bool:
    """Whether the text can name a library that was loaded."""
    text = section.text[:_LIMIT]
    return ".so" in text and any(hint in text for hint in _HINTS)


def parse(section: Section) -> Imported:
    """Libraries of the GPU stack that the loader took, and those that it knows of."""
    reader = _Reader(section.command[:2000])
    for number, raw in enumerate(section.text[:_LIMIT].split("\n"), 1):
        line = raw.rstrip()
        if not line or len(line) > _LINE_LIMIT:
            continue
        if ".so" in line:
            reader.library(number, line)
        reader.heading(number, line)
    return reader.done()


class _Reader:
    """Collects what the lines of one section say."""

    def __init__(self, command: str) -> None:
        self.draft = Draft()
        self.copies = Copies()
        asked = _LDD_COMMAND.search(command)
        self.asker = asked[2] if asked else ""
        self.folder = ""
        self.needed: dict[str, str] = {}

    def heading(self, number: int, line: str) -> None:
        """Lines that say of what the next ones tell: "/usr/bin/python3:" of ldd and ldconfig -v."""
        if not line.endswith((":", ")")) or line[0] in " \t":
            return
        folder = _CACHE_HEAD.match(line)
        if folder:
            self.folder = folder[1]
        asker = _LDD_HEAD.match(line)
        if asker and ("/" in asker[1] or ".so" in asker[1]):
            self.asker = asker[1]

    def library(self, number: int, line: str) -> None:
        """One line that names a library."""
        if " => " in line:
            found = _LDD.match(line)
            if found:
                self._ldd(number, found[1], found[2])
                return
            cached = _CACHE.match(line)
            if cached and matters(cached[1]):
                path = posixpath.normpath(cached[3])
                self.draft.read(number)
                self.copies.note(path, version_of(path), "ldconfig", number)
                self._in_cache(number, path, "")
            return
        if " -> " in line:
            link = _CACHE_LINK.match(line)
            if link and self.folder and matters(link[1]):
                path = f"{self.folder}/{link[2]}"
                self.draft.read(number)
                self.copies.note(path, version_of(path), "ldconfig", number)
                self._in_cache(number, path, version_of(path))
            return
        needed = _NEEDED.match(line)
        if needed:
            self.needed.setdefault(needed[1], needed[2])
            self.draft.read(number)
            return
        self._loaded(number, line)

    def _ldd(self, number: int, soname: str, path: str | None) -> None:
        if not matters(soname):
            return
        self.draft.read(number)
        if path is not None:
            self.take(number, path, soname, "ldd", self.asker)
        else:
            asker = self.asker or "the program that ldd was asked about"
            self.draft.add(f"lib.{soname}.for", asker, "ldd: not found", number)
            self.draft.absent(f"lib.{soname}.path", number)

    def _loaded(self, number: int, line: str) -> None:
        for pattern, how in (
            (_DEBUG, "LD_DEBUG"),
            (_MAPS, "maps"),
            (_LSOF, "lsof"),
            (_OPENED, "strace"),
        ):
            found = pattern.match(line)
            if found:
                self.take(number, found[1], soname_of(found[2]), how, "")
                return
        bound = _BINDING.match(line) if "binding file" in line else None
        if bound:
            self.take(number, bound[2], soname_of(bound[3]), "LD_DEBUG", bound[1])
            return
        failed = _ERROR.search(line)
        if failed:
            by = _REQUIRED_BY.search(line, failed.end())
            self.take(number, failed[1], soname_of(failed[2]), "error", by[1] if by else "")

    def take(self, number: int, path: str, soname: str, how: str, asker: str) -> None:
        """A library that the loader took."""
        path = posixpath.normpath(path)
        if not matters(posixpath.basename(path)):
            return
        source = {"error": "the loader's error", "maps": "/proc/PID/maps"}.get(how, how)
        version = version_of(path)
        draft = self.draft
        draft.add(f"lib.{soname}.path", path, source, number)
        draft.add(f"lib.{soname}.via", how, source, number)
        asker = asker or self.needed.get(soname, "")
        if asker:
            draft.add(f"lib.{soname}.for", posixpath.basename(asker), f"{source}: {asker}", number)
        draft.read(number)
        if version and not soname.startswith("libstdc++"):
            draft.add(f"lib.{soname}.version", version, f"name of {path}", number)
            family = family_of(soname)
            if family is not None and family.fact and is_main(soname, family):
                draft.add(family.fact, version, f"name of {path}", number)
        if how != "error" or version:
            self.copies.note(path, version, how, number)
        if soname.startswith("libcuda.so"):
            draft.add("driver.libcuda.path", path, source, number)
            draft.add("driver.libcuda.stub", is_stub(path), source, number)
            draft.add("driver.libcuda.version", version or None, f"name of {path}", number)
            self._in_cache(number, path, version)

    def _in_cache(self, number: int, path: str, version: str) -> None:
        """A cuda-compat libcuda that the loader can see."""
        if posixpath.basename(path).startswith("libcuda.so") and is_compat(path):
            self.draft.add("driver.compat.path", path, "the loader's list", number)
            self.draft.add("driver.compat.version", version or None, f"name of {path}", number)

    def done(self) -> Imported:
        """What all lines together say."""
        self.copies.tell(self.draft, "libraries that the loader knows")
        return self.draft.done()
