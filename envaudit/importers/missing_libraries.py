"""Shared libraries that programs say they could not find, whoever says it.

ImportError: libcudart.so.11.0: cannot open shared object file: No such file or directory
Could not load dynamic library 'cudart64_110.dll'; dlerror: cudart64_110.dll not found
Could not load library libcudnn_cnn_infer.so.8. Error: ...
Unable to load any of {libcudnn_ops.so.9.1.0, libcudnn_ops.so.9.1, libcudnn_ops.so.9}
    libnvJitLink.so.12 => not found
"""

from __future__ import annotations

from envaudit.importers import Draft, Imported, Section
from envaudit.importers.reading import numbered
from envaudit.model import Value
from envaudit.patterns import regex

_MOST = 64
_SONAME = r"[A-Za-z0-9_+\-]{1,60}\.so(?:\.[0-9]{1,10}){0,4}"
_LIBRARY = rf"(?:{_SONAME}|[A-Za-z0-9_\-]{{1,60}}(?:\.[0-9]{{1,3}})?\.dll)"
_NAME = regex(rf"(?<![\w./\\]){_LIBRARY}(?![\w])")
_OF_TENSORFLOW = (
    r"[Cc]ould(?:n't| not) (?:load|dlopen|open) (?:dynamic |CUDA )?library "
    rf"'?({_LIBRARY})(?![\w/]|\.\w)"
)
_SAYS = tuple(
    regex(pattern)
    for pattern in (
        rf"(?<![\w./\\-])({_SONAME}): cannot open shared object file",
        _OF_TENSORFLOW,
        rf"failed to load ({_LIBRARY})(?![\w/]|\.\w)",
        rf"(?:Unable to load|Could not find module|Library) '?({_SONAME})'? (?:is )?not found",
        rf"^[ \t]*({_SONAME}) => not found",
        rf"[Cc]ould not (?:find|locate) ({_LIBRARY})(?![\w/])",
    )
)
_ANY_OF = regex(r"Unable to load any of \{([^{}\n]{1,600})\}")
_OPENED = regex(rf"[Ss]uccessfully opened (?:dynamic library|CUDA library) ({_LIBRARY})")
_HINTS = (
    "cannot open shared object",
    "ould not load",
    "ould not dlopen",
    "ouldn't open",
    "ailed to load",
    "nable to load",
    "not found",
    "ould not find",
    "ould not locate",
    "uccessfully opened",
)


def recognises(section: Section) -> bool:
    """Whether a line of the text tells of a library that was looked for."""
    return any(hint in section.text for hint in _HINTS)


def parse(section: Section) -> Imported:
    """The libraries that were not found, and those that a log says were opened."""
    draft = Draft()
    missing: dict[str, int] = {}
    opened: dict[str, int] = {}
    for number, line in numbered(section.text):
        if not any(hint in line for hint in _HINTS):
            continue
        for name in _missing(line):
            missing.setdefault(name, number)
            draft.read(number)
        for match in _OPENED.finditer(line):
            opened.setdefault(match[1], number)
            draft.read(number)
    _tell(draft, "loader.missing", missing, "what a program says of a library it did not find")
    _tell(draft, "loader.opened", opened, "log: Successfully opened dynamic library")
    return draft.done()


def _missing(line: str) -> list[str]:
    found = [match[1] for says in _SAYS for match in says.finditer(line)]
    for match in _ANY_OF.finditer(line):
        # One library under all its names: the one with the major version alone is its soname.
        names: list[str] = _NAME.findall(match[1])
        found += sorted(names, key=lambda name: (name.count(".") != 2, len(name)))[:1]
    return found


def _tell(draft: Draft, name: str, found: dict[str, int], source: str) -> None:
    values: list[Value] = []
    values += list(found)[:_MOST]
    if values:
        draft.add(name, values, source, min(found.values()))
