"""Reads `python -m xformers.info`, and the warning with which xFormers says that it does not fit.

xFormers 0.0.28
memory_efficient_attention.cutlassF:               available
pytorch.version:                                   2.4.1+cu121
pytorch.cuda:                                      available
gpu.compute_capability:                            8.9
gpu.name:                                          NVIDIA GeForce RTX 4090
build.cuda_version:                                1201        that of the nvcc, 12.1
build.torch_version:                               2.4.1+cu121
build.env.TORCH_CUDA_ARCH_LIST:                    6.0+PTX 7.0 7.5 8.0+PTX 9.0

WARNING[XFORMERS]: xFormers can't load C++/CUDA extensions. xFormers was built for:
    PyTorch 2.1.2+cu121 with CUDA 1201 (you have 2.1.2+cpu)
    Python  3.10.13 (you have 3.10.8)
"""

from __future__ import annotations

import re

from envaudit.importers import Draft, Imported, Section
from envaudit.importers.platform_words import (
    arch_list,
    build,
    gpu_name,
    python_version,
    tell_python,
    told,
    version,
)
from envaudit.patterns import regex

_LIMIT = 1 << 20
_MAX_LINES = 20_000

_SURE = regex(
    r"xFormers was built for:|^[ \t>|*`\-]{0,20}(?:memory_efficient_attention\.\w|"
    r"pytorch\.version:|"
    r"pytorch\.cuda:|build\.(?:info|cuda_version|torch_version|nvcc_version|env\.\w{1,40}):|"
    r"swiglu\.\w{1,40}[.:]|gpu\.compute_capability:)",
    re.MULTILINE,
)
_HEADING = regex(r"[ \t>]{0,20}xFormers[ \t]+v?(?P<version>[0-9]\S{0,80})[ \t]*\Z")
_ROW = regex(
    r"[ \t>|*`\-]{0,20}(?P<key>(?:pytorch|gpu|build|source|swiglu|indexing|"
    r"memory_efficient_attention|"
    r"sequence_parallel_fused|sp24|is_\w{1,30})[\w.@\-+]{0,80}):`?[ \t]+(?P<value>.{1,400})\Z"
)
_TORCH = regex(
    r"[ \t>]{0,20}PyTorch (?P<built>\S{1,60}) with "
    r"(?:CUDA (?P<cuda>[0-9]{3,4}|None)|HIP \S{1,20}|CPU)[ \t]*\(you have (?P<now>[^)\n]{1,60})\)"
)
_PYTHON = regex(
    r"[ \t>]{0,20}Python[ \t]{1,8}(?P<built>\S{1,30}) \(you have (?P<now>[^)\n]{1,30})\)"
)


def recognises(section: Section) -> bool:
    """Whether there is a line that only xFormers prints."""
    return _SURE.search(section.text[:_LIMIT]) is not None


def parse(section: Section) -> Imported:
    """Facts of xFormers' own build and of the PyTorch that it met."""
    draft = Draft()
    warned = False
    lines = section.text[:_LIMIT].replace("\r\n", "\n").split("\n")[:_MAX_LINES]
    for number, line in enumerate(lines, 1):
        line = line[:1000]
        warned = warned or "xFormers was built for" in line
        heading = _HEADING.match(line)
        row = _ROW.match(line)
        if heading is not None:
            found = build(heading["version"])
            draft.add("dist.xformers.version", found, _source("xFormers"), number)
        elif row is not None:
            draft.read(number)
            _row(draft, row["key"], told(row["value"]), number)
        elif warned and "you have" in line:
            _mismatch(draft, line, number)
    return draft.done()


def _source(key: str) -> str:
    return f"xformers.info: {key}"


def _row(draft: Draft, key: str, value: str, line: int) -> None:
    source = _source(key)
    if key == "pytorch.version":
        found = build(value)
        draft.add("torch.version", found, source, line)
        draft.add("torch.import", "ok" if found else None, source, line)
    elif key == "pytorch.cuda":
        flag = {"available": True, "not available": False}.get(value)
        draft.add("torch.cuda.available", flag, source, line)
    elif key == "gpu.compute_capability" and re.fullmatch(r"[0-9]{1,2}\.[0-9]", value):
        draft.add("gpu.0.compute_capability", value, source, line)
    elif key == "gpu.name":
        draft.add("gpu.0.name", gpu_name(value), source, line)
    elif key == "build.cuda_version":
        draft.add("xformers.built.cuda.version", cuda_release(value), source, line)
    elif key == "build.nvcc_version":
        draft.add("xformers.built.nvcc.version", version(value), source, line)
    elif key == "build.torch_version":
        draft.add("xformers.built.torch.version", build(value), source, line)
    elif key == "build.python_version":
        draft.add("xformers.built.python.version", python_version(value), source, line)
    elif key == "build.env.TORCH_CUDA_ARCH_LIST":
        codes = arch_list(value)
        if codes is not None:
            draft.add("xformers.arch_list", [*codes], source, line)


def cuda_release(text: str) -> str | None:
    """The release behind the number that xFormers keeps: 1108 is 11.8."""
    match = re.fullmatch(r"([0-9]{1,2})([0-9]{2})", text)
    return f"{match[1]}.{int(match[2])}" if match else None


def _mismatch(draft: Draft, line: str, number: int) -> None:
    source = "xFormers' warning: was built for"
    torch = _TORCH.match(line)
    if torch is not None:
        draft.add("xformers.built.torch.version", build(torch["built"]), source, number)
        released = cuda_release(torch["cuda"] or "")
        draft.add("xformers.built.cuda.version", released, source, number)
        draft.add("torch.version", build(torch["now"]), source, number)
    python = _PYTHON.match(line)
    if python is not None:
        found = python_version(python["built"])
        draft.add("xformers.built.python.version", found, source, number)
        tell_python(draft, python["now"], source, number)
