"""What the paths in tracebacks and library errors tell of the interpreter.

    File "/home/user/venv/lib/python3.10/site-packages/torch/cuda/__init__.py", line 293
    /opt/conda/envs/gpu/lib/python3.11/site-packages/torch/lib/libtorch_cuda.so: undefined symbol
    File "C:\\Users\\user\\AppData\\Local\\Programs\\Python\\Python310\\lib\\site-packages\\x.py"

A folder tells the minor release only. Paths of two releases leave it open. A drive or a folder that
only macOS has tells the system too, as does a Windows prompt.
"""

from __future__ import annotations

import re

from envaudit.importers import Draft, Imported, Section
from envaudit.patterns import regex

_LIMIT = 4 << 20
_LINES_LIMIT = 20_000

_UNIX = regex(
    r"(?<![\w/.-])(/(?:[^\s\"':/]{1,80}/){0,14}?)lib(?:64)?/python([23]\.\d{1,2})t?/"
    r"(site-packages|dist-packages|[a-z_]{2,30}(?:\.py|/))"
)
_WINDOWS = regex(
    r"([A-Za-z]:\\(?:[^\\\n\"']{1,80}\\){0,12}?)(?:Python3?(\d)(\d{1,2})\\)?(?:Lib|lib)\\(site-packages)\\"
)
_PYENV = regex(
    r"/(?:\.?pyenv|\.local/share/uv/python)/(?:versions/)?(?:cpython-)?(3\.\d{1,2}\.\d{1,2})[/-]"
)
_EXTENSION = regex(r"\.cpython-3(\d{1,2})t?-(?:x86_64|aarch64|powerpc64le)-linux-gnu\.so\b")
_COMMAND = regex(
    r"(?:^|[\s/;&|])(?:(?:python|pip)(?P<unix>3\.[0-9]{1,2})(?=[\s]|\Z)|"
    r"py[ ]-(?P<windows>3\.[0-9]{1,2})\b)"
)
_CONDA = regex(
    r"/(?:[a-z0-9]*conda[0-9]{0,2}|miniforge[0-9]?|mambaforge|micromamba|\.mamba)(?:/|\Z)|/\.?conda/envs/|"
    r"\\(?:[A-Za-z0-9]*conda[0-9]?|miniforge[0-9]?|mambaforge)\\",
    re.IGNORECASE,
)
_VENV = regex(
    r"[/\\](?:\.?v?env|\.?venv[\w.-]{0,30}|[\w.-]{0,30}[-_.]v?env|virtualenvs?|pypoetry|\.virtualenvs|\.tox)[/\\]",
    re.IGNORECASE,
)
_SYSTEM = regex(r"/usr(?:/local)?/\Z")
_SYSTEMS = (
    ("windows", regex(r"(?<![\w/\\])[A-Za-z]:\\(?=[\w.\- ])")),
    (
        "macos",
        regex(
            r"(?<![\w.~/-])/(?:Users/[\w.-]|opt/homebrew/|Applications/|Library/Frameworks/Python|"
            r"System/Library/)"
        ),
    ),
    ("linux", regex(r"(?<![\w.~/-])/(?:home|root|usr/lib|usr/local/lib|opt/conda|mnt|data)/")),
)

_HINTS = ("python3.", "python2.", "site-packages", ".cpython-3", "pyenv", 'File "', ":\\")


def recognises(section: Section) -> bool:
    """Whether the text has a path below an interpreter, or stands below a Windows prompt."""
    text = section.text[:_LIMIT]
    return (
        section.scope == "windows"
        or any(hint in text for hint in _HINTS)
        or _COMMAND.search(section.command[:400]) is not None
    )


def parse(section: Section) -> Imported:
    """The interpreter's minor release and the kind of environment, where all paths agree."""
    draft = Draft()
    versions: dict[str, int] = {}
    kinds: dict[str, int] = {}
    systems: dict[str, int] = {}
    if section.scope == "windows":
        draft.add("os.id", "windows", "Windows prompt")
    called = _COMMAND.search(section.command[:400])
    if called is not None:
        draft.add("python.version", called["unix"] or called["windows"], "the command's name")
    for number, line in enumerate(section.text[:_LIMIT].split("\n")[:_LINES_LIMIT], 1):
        if "ython" not in line and "site-packages" not in line and 'File "' not in line:
            continue
        _line(line[:3000], number, versions, kinds)
        for system, pattern in _SYSTEMS:
            if system not in systems and pattern.search(line[:3000]):
                systems[system] = number
    if len(systems) == 1 and "linux" not in systems:
        system, number = next(iter(systems.items()))
        draft.add("os.id", system, "path below the interpreter", number)
    if len(versions) == 1:
        version, number = next(iter(versions.items()))
        draft.add("python.version", version, "path below the interpreter", number)
    elif versions:
        told = " and ".join(sorted(versions))
        draft.gap("python.version", f"the text has paths of Python {told}")
    if len(kinds) == 1:
        kind, number = next(iter(kinds.items()))
        draft.add("python.environment", kind, "path below the interpreter", number)
    return draft.done()


def _line(line: str, number: int, versions: dict[str, int], kinds: dict[str, int]) -> None:
    full = _PYENV.search(line)
    for found in _UNIX.finditer(line):
        prefix, version, folder = found.groups()
        if full and full[1].startswith(f"{version}."):
            version = full[1]
        shorter = version.rpartition(".")[0]
        if not any(known.startswith(f"{version}.") for known in versions):
            versions.pop(shorter, None)
            versions.setdefault(version, number)
        kind = _kind(prefix, folder)
        if kind:
            kinds.setdefault(kind, number)
    for found in _WINDOWS.finditer(line):
        if found[2] == "3" or found[3]:
            versions.setdefault(
                f"3.{found[3]}" if found[2] == "3" else f"3.{found[2]}{found[3]}", number
            )
        kind = _kind(found[1], "")
        if kind:
            kinds.setdefault(kind, number)
    extension = _EXTENSION.search(line)
    if extension and not versions:
        versions[f"3.{extension[1]}"] = number


def _kind(prefix: str, folder: str) -> str:
    """conda, venv or system by the folders above lib/; "" where they do not tell."""
    if _CONDA.search(prefix):
        return "conda"
    if _VENV.search(prefix):
        return "venv"
    if _SYSTEM.search(prefix) and folder in ("site-packages", "dist-packages"):
        return "system"
    return ""
