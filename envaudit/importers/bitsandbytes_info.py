"""Reads what `python -m bitsandbytes` prints, and what its set-up said on every import.

Since 2025:

    =================== bitsandbytes v0.49.2 ===================
    Platform: Linux-6.6.113+-x86_64-with-glibc2.35
      libc: glibc-2.35
    Python: 3.12.13
    PyTorch: 2.11.0+cu130
      CUDA: 13.0                   N/A in a build without
      HIP: N/A
    Related packages:
      accelerate: 1.13.0
      trl: not found
    ============================================================
    PyTorch settings found: CUDA_VERSION=130, Highest Compute Capability: (7, 5).

Before: "CUDA specs: CUDASpecs(highest_compute_capability=(8, 6), cuda_version_string='124', ...)",
"CUDA SETUP: PyTorch settings found: CUDA_VERSION=118, Highest Compute Capability: 8.6.", and "CUDA
SETUP: Loading binary .../libbitsandbytes_cuda117.so...". The highest compute capability is that of
some GPU: which, it does not say, so no GPU is given it. A ROCm build's number has two digits.
"""

from __future__ import annotations

import re

from envaudit.importers import Draft, Imported, Section
from envaudit.importers.platform_words import (
    build,
    python_version,
    tell_libc,
    tell_platform,
    tell_python,
    told,
    version,
)
from envaudit.patterns import regex
from envaudit.stack import normalise

_LIMIT = 1 << 20
_MAX_LINES = 20_000

_SURE = regex(
    r"=== bitsandbytes v[0-9]|CUDASpecs\(|PyTorch settings found: (?:CUDA|ROCM)_VERSION=|"
    r"CUDA[ _]SETUP: |COMPILED_WITH_CUDA = |COMPUTE_CAPABILITIES_PER_GPU = |"
    r"(?:^|[ /])libbitsandbytes_cuda[0-9]{2,4}"
)
_HEADING = regex(r"=== bitsandbytes v(?P<version>[0-9]\S{0,60}) ===")
_ROW = regex(
    r"[ \t>]{0,20}(?P<key>Platform|libc|Python|PyTorch|CUDA|HIP|XPU|[a-z][a-z\-]{1,30}):"
    r"[ \t]+(?P<value>\S.*)"
)
_FOUND = regex(r"PyTorch settings found: CUDA_VERSION=(?P<number>[0-9]{1,4})\b")
_SPECS = regex(r"CUDASpecs\([^\n]{0,200}?cuda_version_string='(?P<number>[0-9]{1,4})'")
_PER_GPU = regex(r"COMPUTE_CAPABILITIES_PER_GPU = \[(?P<list>[0-9., ']{1,2000})\]")
_RELATED = frozenset(
    {
        "accelerate",
        "diffusers",
        "numpy",
        "pip",
        "peft",
        "safetensors",
        "transformers",
        "triton",
        "trl",
    }
)
_NOISE = regex(
    r"[ \t>]{0,20}(?:\+{10,}|={10,}|CUDA[ _]SETUP: |Checking that the library is importable|"
    r"Related packages:|"
    r"Welcome to bitsandbytes|COMPILED_WITH_CUDA|To manually override the PyTorch CUDA version|"
    r"The directory listed in your path is found to be non-existent)"
)


def recognises(section: Section) -> bool:
    """Whether there is a line that only bitsandbytes prints."""
    return _SURE.search(section.text[:_LIMIT]) is not None


def parse(section: Section) -> Imported:
    """Facts of the environment block and of the settings that bitsandbytes found."""
    draft = Draft()
    lines = section.text[:_LIMIT].replace("\r\n", "\n").split("\n")[:_MAX_LINES]
    block = False
    python: str | None = None
    for number, line in enumerate(lines, 1):
        line = line[:4000]
        heading = _HEADING.search(line)
        if heading is not None:
            block = True
            found = build(heading["version"])
            draft.add("dist.bitsandbytes.version", found, _source("heading"), number)
            continue
        if _NOISE.match(line):
            draft.read(number)
            block = block and not line.lstrip().startswith("=====")
        row = _ROW.match(line) if block else None
        if row is not None:
            key, value = row["key"], told(row["value"])
            python = python_version(value) if key == "Python" else python
            _row(draft, key, value, number, python)
        _settings(draft, line, number)
    return draft.done()


def _source(key: str) -> str:
    return f"bitsandbytes: {key}"


def _row(draft: Draft, key: str, value: str, line: int, python: str | None) -> None:
    source = _source(key)
    draft.read(line)
    if key == "Platform":
        tell_platform(draft, value, source, line, python)
    elif key == "libc":
        tell_libc(draft, value, source, line, python)
    elif key == "Python":
        tell_python(draft, value, source, line)
    elif key == "PyTorch":
        found = build(value)
        draft.add("torch.version", found, source, line)
        draft.add("torch.import", "ok" if found else None, source, line)
    elif key in ("CUDA", "HIP"):
        name = f"torch.{key.lower()}.version"
        if value == "N/A":
            draft.absent(name, line)
        else:
            draft.add(name, version(value), source, line)
    elif key in _RELATED:
        name = f"dist.{normalise(key)}.version"
        if value == "not found":
            draft.absent(name, line)
        else:
            draft.add(name, build(value), source, line)


def _settings(draft: Draft, line: str, number: int) -> None:
    """Lines that stand anywhere in the output, of every generation."""
    for pattern, key in ((_FOUND, "PyTorch settings found"), (_SPECS, "CUDA specs")):
        match = pattern.search(line)
        if match is not None:
            draft.read(number)
            draft.add("torch.cuda.version", _release(match["number"]), _source(key), number)
    match = _PER_GPU.search(line)
    if match is not None:
        draft.read(number)
        found = re.findall(r"'?([0-9]{1,2}\.[0-9])'?", match["list"])[:64]
        if len(set(found)) == 1:  # some releases sort the list, so only equal ones have a place
            source = _source("COMPUTE_CAPABILITIES_PER_GPU")
            for index, capability in enumerate(found):
                draft.add(f"gpu.{index}.compute_capability", capability, source, number)


def _release(digits: str) -> str | None:
    """CUDA's release behind 118 or 124; two digits are ROCm's."""
    return f"{digits[:-1]}.{digits[-1]}" if len(digits) == 3 else None
