"""What compilers and build tools print of themselves, and the CUDA toolkit's version files.

    $ nvcc --version                              whole, or what tail and grep left of it
    Cuda compilation tools, release 12.4, V12.4.131
    Build cuda_12.4.r12.4/compiler.34097967_0
    $ which nvcc
    /usr/local/cuda-12.4/bin/nvcc
    $ cat /usr/local/cuda/version.txt
    CUDA Version 10.1.243
    gcc (Ubuntu 11.4.0-1ubuntu1~22.04) 11.4.0     gcc --version
    gcc version 7.5.0 (Ubuntu 7.5.0-3ubuntu1~18.04)           gcc -v
    cmake version 3.22.1
    ldd (Ubuntu GLIBC 2.35-0ubuntu3.8) 2.35

An nvcc that a command names by its path says what lies there; which one a build would take, only
`which` and a plain `nvcc` tell.
"""

from __future__ import annotations

import re

from envaudit.importers import Draft, Imported, Section
from envaudit.importers.platform_words import compiler_version, tell_libc
from envaudit.importers.reading import numbered
from envaudit.patterns import regex

_HINTS = (
    "Cuda compilation tools",
    "Build cuda_",
    "nvcc",
    "CUDA Version ",
    '"cuda"',
    "gcc",
    "g++",
    "GCC",
    "clang version",
    "cmake version",
    "cmake3 version",
    "ldd (",
    "GNU C Library",
    "glibc ",
    "musl libc",
)


def recognises(section: Section) -> bool:
    """Whether a line, or the command, may be of one of these tools."""
    return "nvcc" in section.command or any(hint in section.text for hint in _HINTS)


def parse(section: Section) -> Imported:
    """Facts of the toolkit, of host compilers, of CMake and of the C library."""
    draft = Draft()
    lines = list(numbered(section.text))
    _nvcc(draft, section, lines)
    _where(draft, section, lines)
    _toolkit_files(draft, section, lines)
    _compilers(draft, section, lines)
    _libc(draft, section, lines)
    return draft.done()


_Lines = list[tuple[int, str]]
_NOT_FOUND = regex(
    r"command not found|: not found|No such file or directory|is not recognized as|not installed|"
    r"can be installed with"
)


# -- CUDA toolkit -------------------------------------------------------------------------------

_RELEASE = regex(
    r"Cuda compilation tools, release (?P<release>[0-9]{1,2}\.[0-9]{1,2})"
    r"(?:, V(?P<full>[0-9]{1,2}\.[0-9]{1,2}\.[0-9]{1,4}))?"
)
_BUILD = regex(r"Build cuda_(?P<release>[0-9]{1,2}\.[0-9]{1,2})\.r")
_BARE_RELEASE = regex(r"(?:release )?V?([0-9]{1,2}\.[0-9]{1,2}(?:\.[0-9]{1,4})?)\Z")
_PATH = regex(r"(?P<path>(?:/[\w.+\-]{1,80}){1,12}/nvcc)(?![\w/.\-])")
_NAMED_BY_PATH = regex(r"(?:\A|[ \t;&(])(?P<path>(?:[~$]?[\w{}.+\-]{0,60}/)[\w.+/\-]{0,200}nvcc)\b")


def _nvcc(draft: Draft, section: Section, lines: _Lines) -> None:
    command = section.command
    asked = re.search(r"\bnvcc\b[^|;&\n]{0,40}[ \t](?:--version|-V)", command) is not None
    named = _NAMED_BY_PATH.search(command)
    found = ("", 0)
    for number, line in lines:
        match = _RELEASE.search(line)
        built = _BUILD.match(line.strip())
        if match is not None:
            found = (match["full"] or match["release"], number)
            draft.read(number)
        elif built is not None:
            found = found if found[0] else (built["release"], number)
            draft.read(number)
        elif "NVIDIA (R) Cuda compiler driver" in line or (
            asked and line.startswith(("Copyright (c)", "Built on "))
        ):
            draft.read(number)
        elif asked and _NOT_FOUND.search(line):
            draft.gap("cuda.nvcc.version", f"the shell said: {line.strip()[:100]}")
            draft.read(number)
        elif asked and "|" in command and (bare := _BARE_RELEASE.match(line.strip())):
            found = found if found[0] else (bare[1], number)
        if match is not None and named is None:
            _tell_nvcc(draft, *found)
    if found[0] and named is not None:
        home = named["path"].removesuffix("nvcc").removesuffix("bin/").rstrip("/")
        draft.add("cuda.toolkits", [f"{home} {found[0]}"], "nvcc --version", found[1])
    elif found[0]:
        _tell_nvcc(draft, *found)


def _tell_nvcc(draft: Draft, version: str, line: int) -> None:
    draft.add("cuda.nvcc.version", version, "nvcc --version", line)
    draft.add("cuda.toolkit.version", version, "nvcc --version", line)


def _where(draft: Draft, section: Section, lines: _Lines) -> None:
    """`which nvcc`, `command -v nvcc`, `whereis nvcc`: the first is what a build would take."""
    match = re.match(
        r"(?:sudo[ \t]+)?(?P<tool>which(?:[ \t]+-a)?|command[ \t]+-v|type(?:[ \t]+-[aP])?|"
        r"where(?:is)?(?:\.exe)?)[ \t]+nvcc",
        section.command,
    )
    if match is None:
        return
    for number, line in lines:
        path = _PATH.search(line)
        if path is not None:
            draft.add("cuda.nvcc.path", path["path"], match["tool"] + " nvcc", number)
            draft.read(number)
        elif re.search(r"no nvcc in|nvcc not found|not found", line):
            draft.absent("cuda.nvcc.path", number)
            draft.absent("cuda.nvcc.version", number)


_VERSION_TXT = regex(r"CUDA Version (?P<version>[0-9]{1,2}\.[0-9]{1,2}(?:\.[0-9]{1,4}){0,2})\Z")
_VERSION_JSON = regex(
    r'"cuda"[ \t\n]{0,20}:[ \t\n]{0,20}\{[^{}]{0,200}?"version"[ \t]{0,8}:[ \t]{0,8}'
    r'"(?P<version>[0-9]{1,2}\.[0-9]{1,2}(?:\.[0-9]{1,4})?)"'
)


def _toolkit_files(draft: Draft, section: Section, lines: _Lines) -> None:
    shown = re.search(
        r"(?:cat|type|more|head|tail)\b[^|]{0,200}version\.(?:txt|json)", section.command
    )
    for number, line in lines if shown or "version.txt" in section.text else ():
        match = _VERSION_TXT.match(line.strip())
        if match is not None:
            source = "version.txt of the CUDA toolkit"
            draft.add("cuda.toolkit.version", match["version"], source, number)
    text = section.text[: 1 << 20]
    found = _VERSION_JSON.search(text) if '"cuda"' in text else None
    if found is not None and ('"CUDA SDK"' in found[0] or shown):
        number = text.count("\n", 0, found.start("version")) + 1
        source = "version.json of the CUDA toolkit"
        draft.add("cuda.toolkit.version", found["version"], source, number)


# -- compilers and CMake ------------------------------------------------------------------------

_GCC = regex(
    r"(?P<name>(?:[\w\-]{0,40}-)?(?:gcc|g\+\+|cc|c\+\+)(?P<number>-[0-9.]{1,6})?)(?:\.exe)? "
    r"\([^\n]{1,120}"
)
_CROSS = ("conda", "mingw", "android", "none-", "musl")
"""Compilers under such names are not the one that stands first on the path of the system."""
_GCC_V = regex(r"gcc version (?P<version>[0-9]{1,2}\.[0-9]{1,2}\.[0-9]{1,2}) ")
_CLANG = regex(r"(?:\w{2,10} )?clang version (?P<version>[0-9]{1,2}\.[0-9]{1,2}(?:\.[0-9]{1,2})?)")
_CMAKE = regex(r"cmake3? version (?P<version>[0-9]{1,2}\.[0-9]{1,3}(?:\.[0-9]{1,3})?)")


def _compilers(draft: Draft, section: Section, lines: _Lines) -> None:
    for number, line in lines:
        text = line.strip()
        gcc, verbose = _GCC.match(text), _GCC_V.match(text)
        clang, cmake = _CLANG.match(text), _CMAKE.match(text)
        if gcc is not None and "GLIBC" not in text:
            # One that was asked for by number (gcc-9) need not be the default either.
            if gcc["number"] or any(word in gcc["name"] for word in _CROSS):
                continue
            version = compiler_version(text)
            draft.add("gcc.version", version, f"{gcc['name']} --version", number)
        elif verbose is not None:
            draft.add("gcc.version", verbose["version"], "gcc -v", number)
        elif clang is not None:
            draft.add("clang.version", clang["version"], "clang --version", number)
        elif cmake is not None:
            draft.add("cmake.version", cmake["version"], "cmake --version", number)
        elif text.startswith("CMake suite maintained"):
            draft.read(number)


# -- the C library --------------------------------------------------------------------------------

_LDD = regex(
    r"ldd \((?P<who>[^\n)]{0,80}(?:\([^\n)]{0,40}\)[^\n)]{0,40})?)\) (?P<version>[0-9]\.[0-9]{1,3})"
)
_MUSL = regex(r"musl libc(?: \([\w\-]{2,12}\))?\Z")
_LIBC_SAYS = regex(
    r"(?:GNU C Library[^\n]{0,120}release version |glibc[- ])(?P<version>2\.[0-9]{1,3})"
)


def _libc(draft: Draft, section: Section, lines: _Lines) -> None:
    for number, line in lines:
        text = line.strip()
        ldd = _LDD.match(text)
        if ldd is not None:
            tell_libc(draft, f"glibc-{ldd['version']}", "ldd --version", number)
            maker = ldd["who"].partition(" GLIBC")[0].lower()
            if maker in ("ubuntu", "debian"):
                draft.add("os.id", maker, "ldd --version", number)
            continue
        if _MUSL.match(text):
            tell_libc(draft, "musl", "ldd --version", number)
        elif text.startswith("GNU C Library") or "getconf" in section.command:
            said = _LIBC_SAYS.match(text)
            if said is not None:
                tell_libc(draft, f"glibc-{said['version']}", "C library", number)
