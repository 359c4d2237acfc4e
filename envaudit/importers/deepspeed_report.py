"""Reads what DeepSpeed's `ds_report` prints, or a log that repeats it on every rank.

    op name ................ installed .. compatible
    --------------------------------------------------
    async_io ............... [NO] ....... [OKAY]
    fused_adam ............. [YES] ...... [OKAY]
    --------------------------------------------------
    DeepSpeed general environment info:
    torch install path ............... ['/opt/conda/lib/python3.8/site-packages/torch']
    torch version .................... 2.1.0+cu121
    torch cuda version ............... 12.1                None in a build without
    torch hip version ................ None
    nvcc version ..................... 12.1                of CUDA_HOME
    deepspeed info ................... 0.12.3+6ea44d02, 6ea44d02, HEAD
    deepspeed wheel compiled w. ...... torch 2.1, cuda 12.1
    shared memory (/dev/shm) size .... 503.18 GB

"torch 0.0, cuda 0.0" is a package that was built without looking. Operations that are not
installed are compiled when they are first used.
"""

from __future__ import annotations

import re

from envaudit.importers import Draft, Imported, Section
from envaudit.importers.platform_words import build, version
from envaudit.patterns import regex

_LIMIT = 1 << 20
_MAX_LINES = 20_000

_SURE = regex(
    r"DeepSpeed general environment info:|DeepSpeed C\+\+/CUDA extension op report|"
    r"^[ \t>]{0,20}(?:deepspeed wheel compiled w\.|torch cuda version|deepspeed info|nvcc version|"
    r"torch install path|deepspeed install path) \.{2,}",
    re.MULTILINE,
)
_ROW = regex(
    r"[ \t>]{0,20}(?P<key>torch install path|torch version|torch cuda version|torch hip version|"
    r"nvcc version|deepspeed install path|deepspeed info|deepspeed wheel compiled w\.|"
    r"shared memory \(/dev/shm\) size|ninja) \.{2,40}[ \t]*(?P<value>\S.*)"
)
_OPERATION = regex(
    r"[ \t>]{0,20}(?P<name>[a-z][a-z0-9_]{2,40}) \.{0,40}[ \t]*\[(?P<installed>YES|NO)\] \.{2,20} "
    r"\[(?:OKAY|NO)\]"
)
_NOISE = regex(
    r"[ \t>]{0,20}(?:-{20,}|DeepSpeed general environment info:|DeepSpeed C\+\+/CUDA extension op "
    r"report|NOTE: Ops not installed|runtime if needed|meet the required dependencies|"
    r"JIT compiled ops|op name \.+)"
)
_COLOURS = regex(r"\x1b\[[0-9;]{0,10}m")
_SIZE = regex(r"([0-9]{1,6}(?:\.[0-9]{1,4})?) (B|KB|MB|GB|TB)\b")
_UNITS = {"B": 0, "KB": 10, "MB": 20, "GB": 30, "TB": 40}


def recognises(section: Section) -> bool:
    """Whether there is a line that only ds_report prints."""
    return _SURE.search(_COLOURS.sub("", section.text[:_LIMIT])) is not None


def parse(section: Section) -> Imported:
    """Facts of the general information, and which operations were built beforehand."""
    draft = Draft()
    operations: dict[str, bool] = {}
    first = 0
    lines = section.text[:_LIMIT].replace("\r\n", "\n").split("\n")[:_MAX_LINES]
    for number, line in enumerate(lines, 1):
        line = _COLOURS.sub("", line[:1000])
        row = _ROW.match(line)
        operation = _OPERATION.match(line)
        if row is not None:
            draft.read(number)
            _row(draft, row["key"], row["value"].strip(), number)
        elif operation is not None:
            draft.read(number)
            first = first or number
            operations.setdefault(operation["name"], operation["installed"] == "YES")
        elif _NOISE.match(line):
            draft.read(number)
    if operations:
        built = [name for name, there in sorted(operations.items()) if there]
        draft.add("deepspeed.built.ops", [*built], "ds_report: op name", first)
    return draft.done()


def _source(key: str) -> str:
    return f"ds_report: {key}"


def _row(draft: Draft, key: str, value: str, line: int) -> None:
    source = _source(key)
    if key == "torch version":
        found = build(value)
        draft.add("torch.version", found, source, line)
        draft.add("torch.import", "ok" if found else None, source, line)
    elif key in ("torch cuda version", "torch hip version"):
        name = f"torch.{key.split()[1]}.version"
        if value == "None":
            draft.absent(name, line)
        else:
            draft.add(name, version(value), source, line)
    elif key == "nvcc version":
        _nvcc(draft, value, source, line)
    elif key == "deepspeed info":
        draft.add("dist.deepspeed.version", build(value), source, line)
    elif key == "deepspeed wheel compiled w.":
        for name, found in re.findall(r"\b(torch|cuda) ([0-9]{1,2}\.[0-9]{1,2})\b", value[:200]):
            if found.strip("0."):
                draft.add(f"deepspeed.built.{name}.version", found, source, line)
            else:
                draft.gap(f"deepspeed.built.{name}.version", "it was built without looking")
    elif key.startswith("shared memory"):
        match = _SIZE.match(value)
        if match is not None:
            size = int(float(match[1]) * (1 << _UNITS[match[2]]))
            draft.add("host.shm.size", size, source, line)


def _nvcc(draft: Draft, value: str, source: str, line: int) -> None:
    found = version(value)
    if found is not None:
        for name in ("cuda.nvcc.version", "cuda.toolkit.version"):
            draft.add(name, found, source, line)
    elif "nvcc missing" in value:
        draft.absent("cuda.nvcc.version", line)
        draft.gap("cuda.toolkit.version", "CUDA_HOME has no nvcc")
    elif "cannot find CUDA_HOME" in value:
        draft.absent("cuda.home", line)
        draft.gap("cuda.nvcc.version", "torch found no CUDA_HOME")
