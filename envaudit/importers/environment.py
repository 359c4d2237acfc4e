"""Environment variables that a report shows, and the environment modules that are loaded.

    $ echo $LD_LIBRARY_PATH                          the first line below is the value
    LD_LIBRARY_PATH=/usr/local/cuda/lib64            env, printenv, set
    export CUDA_VISIBLE_DEVICES=0                    a line or a command
    docker run -e NVIDIA_VISIBLE_DEVICES=all ...     in a command; ENV in a Dockerfile
    NCCL_DEBUG set by environment to INFO            NCCL's log
    Currently Loaded Modules:                        module list (Lmod and Environment Modules)
      1) gcc/11.3.0   2) cuda/12.2

Only variables of the allow-list (`variables.ALLOWED`) are told, and no secrets.
"""

from __future__ import annotations

import re

from envaudit.importers import Draft, Imported, Section
from envaudit.patterns import regex
from envaudit.variables import allowed, clean, is_withheld

_LIMIT = 4 << 20
_LINE_LIMIT = 20_000
MODULES_LIMIT = 500
"""Most environment modules of one list."""

_NAME = r"([A-Za-z_][A-Za-z0-9_]{1,80})"
_ASSIGNED = regex(
    rf"(?:^|(?<=[\s;&('\"])|(?<=--env=)|(?<=-e=))(?:\$env:)?{_NAME}[ ]?=[ ]?"
    r"(?:\"([^\"\n]{0,4000})\"|'([^'\n]{0,4000})'|([^\s;|&'\"]{0,4000}))",
    re.MULTILINE,
)
_CSH = regex(rf"(?:^|[;&] ?)setenv[ \t]+{_NAME}[ \t]+(\S{{1,4000}})")
_SET = regex(rf"(?:^|[;&] ?)set[ \t]+{_NAME}=([^\n&|]{{0,4000}})", re.IGNORECASE)
_ECHO = regex(
    r"[ \t]{0,8}(?:\S{1,20}[ \t]{1,8}){0,6}?(?:echo|printf|write-output)[ \t]+[\"']?"
    r"(?:\$\{?(?:env:)?(\w{1,80})\}?|%(\w{1,80})%)[\"']?[ \t]*(\|[^\n]{1,100})?\Z",
    re.IGNORECASE,
)
_POWERSHELL = regex(r"\$env:(\w{1,80})[ \t]*\Z", re.IGNORECASE)
_PRINTENV = regex(r"(?:[^|;&\n]{0,80}?[ \t])?printenv[ \t]+(\w{1,80})[ \t]*\Z")
_PRINTS = regex(
    r"(?:^|[ \t|;&])(?:env|printenv|set|export -p|declare -x|gci env:|dir env:|ls env:|"
    r"get-childitem env:)(?=[ \t|;&]|\Z)",
    re.IGNORECASE,
)
_DRIVE = regex(r"[A-Za-z]:\\")
_PLAIN = regex(rf"{_NAME}=(.*)\Z")
_EXPORTED = regex(rf"[ \t]{{0,12}}(?:export|declare -x|ENV)[ \t]+{_NAME}=(.*)\Z")
_DOCKERFILE = regex(rf"ENV[ \t]+{_NAME}[ \t]+([^\s=][^\n]*)\Z")
_YAML = regex(rf"[ \t]{{1,24}}-[ \t]+[\"']?{_NAME}=([^\n\"']*)[\"']?\Z")
_YAML_NAME = regex(rf"[ \t]{{0,24}}-[ \t]+name:[ \t]+[\"']?{_NAME}[\"']?\Z")
_YAML_VALUE = regex(r"[ \t]{1,24}value:[ \t]+[\"']?([^\n\"']*)[\"']?\Z")
_COLUMNS = regex(rf"{_NAME}[ \t]{{2,80}}(\S.*)\Z")
_NCCL = regex(r"\b(NCCL_[A-Z0-9_]{1,60}) set by environment to ([^\s]{1,300}?)[.,]?(?=\s|\Z)")
_EXAMPLE = regex(r"<[^>\n]{1,80}>|/path/to|\.\.\.|\bpath_to\b|your[_-]")
"""Values that are an example in somebody's instructions."""
_SELF = r"(?:\$\{{{0}(?::[-+][^}}\n]{{0,200}})?\}}|\${0}\b|%{0}%)"

_MODULES = regex(r"[ \t]{0,8}Currently Loaded Module(?:file)?s:(.*)\Z", re.IGNORECASE)
_NO_MODULES = regex(
    r"[ \t]{0,8}No (?:Modulefiles|modules)(?: Currently)? loaded\.?[ \t]*\Z", re.IGNORECASE
)
_MODULE = regex(r"(?<!\S)\d{1,3}\)[ \t]{1,4}([A-Za-z0-9_][^\s(<]{0,200})")
_MODULE_LINE = regex(r"[ \t]{0,8}\d{1,3}\)[ \t]")

_HINTS = (
    *(
        "export ",
        "LD_LIBRARY_PATH",
        "LD_PRELOAD",
        "CUDA_",
        "NVIDIA_",
        "NCCL_",
        "oaded Module",
        "ENV ",
    ),
    *("TORCH_", "PYTORCH_", "TF_", "XLA_", "JAX_", "OMP_", "MKL_", "CONDA_", "VIRTUAL_ENV"),
    *("set by environment", "o modules loaded", "No Modulefiles", "PYTHONPATH", "VLLM_", "TRITON_"),
)


def recognises(section: Section) -> bool:
    """Whether the text or the command can show a variable."""
    text = section.text[:_LIMIT]
    if any(hint in text or hint in section.command for hint in _HINTS):
        return True
    return _asked(section.command[:4000]) is not None or "=" in section.command


def parse(section: Section) -> Imported:
    """Variables of the allow-list, and the loaded environment modules."""
    draft = Draft()
    command = section.command[:4000]
    lines = [line.rstrip() for line in section.text[:_LIMIT].split("\n")]
    _from_answer(draft, command, lines)
    _from_lines(draft, command, lines)
    _from_command(draft, command)
    _modules(draft, lines)
    return draft.done()


def _tell(draft: Draft, name: str, value: str, source: str, line: int | None = None) -> None:
    """Tell one variable; a secret leaves a gap, an example nothing."""
    value = value.strip()
    if f"env.{name}" in draft or not allowed(name) or _EXAMPLE.search(value[:4000]):
        return
    if is_withheld(name):
        draft.gap(f"env.{name}", "set; its value is not told")
    else:
        told = clean(_without_itself(name, value))
        if told or not value:  # set but empty is a value too: it hides every GPU
            draft.replace(f"env.{name}", told, source, line)
    if line is not None:
        draft.read(line)


def _without_itself(name: str, value: str) -> str:
    """`/a:$LD_LIBRARY_PATH` adds to what was there: the part that is told is /a."""
    if "$" not in value and "%" not in value:
        return value
    own = _SELF.format(re.escape(name))
    value = re.sub(rf"(?:[:;]{own})+\Z|\A(?:{own}[:;])+", "", value[:4200])
    return re.sub(rf"{own}\Z", "", value).rstrip(":;") if value != f"${name}" else ""


# -- commands --------------------------------------------------------------------------------


def _asked(command: str) -> tuple[str, str] | None:
    """The one variable whose value a command prints, and what the value is piped into."""
    found = _ECHO.match(command)
    if found:
        return found[1] or found[2], found[3] or ""
    for pattern in (_PRINTENV, _POWERSHELL):
        found = pattern.match(command)
        if found:
            return found[1], ""
    return None


def _from_answer(draft: Draft, command: str, lines: list[str]) -> None:
    """echo $NAME: the first line is the value; one behind `tr` has an entry a line."""
    asked = _asked(command)
    if asked is None or not allowed(asked[0]):
        return
    name, pipe = asked
    start = next((at for at, line in enumerate(lines) if line.strip()), None)
    if start is None or start > 1:
        return
    value = lines[start].strip()
    if pipe:
        if "tr " not in pipe and "sed" not in pipe:
            return
        end = start
        while end < len(lines) and lines[end].strip() and end - start < 200:
            end += 1
        value = ":".join(line.strip() for line in lines[start:end])
        draft.read(*range(start + 1, end + 1))
    if value in (f"%{name}%", f"${name}"):
        draft.absent(f"env.{name}", start + 1)
    elif len(value) < _LINE_LIMIT:
        _tell(draft, name, value, f"echo ${name}", start + 1)


def _from_command(draft: Draft, command: str) -> None:
    """Assignments in a command: export, before a program, docker run -e, set, setenv."""
    if "=" in command:
        for name, *values in _ASSIGNED.findall(command):
            _tell(draft, name, next(filter(None, values), ""), f"command: {name}=")
        for name, value in _SET.findall(command):
            _tell(draft, name, value, f"command: set {name}")
    if "setenv" in command:
        for name, value in _CSH.findall(command):
            _tell(draft, name, value.strip("\"'"), f"command: setenv {name}")


# -- lines -----------------------------------------------------------------------------------


def _from_lines(draft: Draft, command: str, lines: list[str]) -> None:
    """NAME=value and export NAME=value on lines of their own; Dockerfile, YAML, NCCL's log."""
    listed = _PRINTS.search(command) is not None
    plain = [len(line) < _LINE_LIMIT and _PLAIN.match(line) is not None for line in lines]
    waiting = ""
    for number, line in enumerate(lines, 1):
        if not line or len(line) > _LINE_LIMIT:
            continue
        name_line = _YAML_NAME.match(line) if "name:" in line else None
        if waiting and (value_line := _YAML_VALUE.match(line)) is not None:
            _tell(draft, waiting, value_line[1], f"{waiting} in a manifest", number)
        waiting = name_line[1] if name_line else ""
        if "set by environment" in line:
            for name, value in _NCCL.findall(line[:2000]):
                _tell(draft, name, value, f"NCCL's log: {name}", number)
        if plain[number - 1]:
            among = listed or any(
                plain[max(0, number - 2) : number - 1] + plain[number : number + 1]
            )
            found = _PLAIN.match(line)
            if found and allowed(found[1]):
                value = found[2] if among else _first_word(found[2])
                _tell(draft, found[1], _unquoted(value), f"{found[1]}=", number)
            continue
        if "=" in line:
            found = _EXPORTED.match(line) or _YAML.match(line)
            if found:
                value = _unquoted(_first_word(found[2]))
                _tell(draft, found[1], value, f"export {found[1]}", number)
                continue
        if line.startswith("ENV ") and (found := _DOCKERFILE.match(line)) is not None:
            _tell(draft, found[1], _unquoted(found[2]), f"ENV {found[1]}", number)
        if listed and "env:" in command.lower() and (found := _COLUMNS.match(line)) is not None:
            _tell(draft, found[1], found[2], f"Env:{found[1]}", number)


def _first_word(text: str) -> str:
    """The value of an assignment that something may follow: a command, another assignment."""
    text = text.strip()
    if text[:1] in ("'", '"'):
        end = text.find(text[0], 1)
        return text[: end + 1] if end > 0 else text
    if _DRIVE.match(text):  # its folders have blanks
        return text
    return re.split(r"[\s;&|]", text, maxsplit=1)[0]


def _unquoted(text: str) -> str:
    text = text.strip()
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1]
    return text


# -- environment modules ---------------------------------------------------------------------


def _modules(draft: Draft, lines: list[str]) -> None:
    """`module list`: numbered names, several a line, marks such as (L) or <aL> behind them."""
    for at, line in enumerate(lines):
        if _NO_MODULES.match(line):
            draft.absent("env.LOADEDMODULES", at + 1)
        head = _MODULES.match(line) if "oaded" in line else None
        if head is None:
            continue
        found = _MODULE.findall(head[1][:_LINE_LIMIT])
        read = [at + 1]
        for number in range(at + 1, min(at + 100, len(lines))):
            each = lines[number]
            if not each.strip() and not found:
                continue
            if not _MODULE_LINE.match(each) or len(each) > _LINE_LIMIT:
                break
            found += _MODULE.findall(each)
            read.append(number + 1)
        if found:
            value = ":".join(found[:MODULES_LIMIT])
            draft.add("env.LOADEDMODULES", value, "module list", at + 1)
            draft.read(*read)
        return
