"""A fake NVIDIA Management Library: built from nvml.c, described by a file, under real pynvml."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

SONAME = "libnvidia-ml.so.1"

_SOURCE = Path(__file__).with_name("nvml.c")
_TEXT = _SOURCE.read_text(encoding="utf-8")

FUNCTIONS: frozenset[str] = frozenset(
    re.findall(r"^(?:API [a-z ]+\*?|[A-Z]+\()(nvml[A-Z]\w+)", _TEXT, re.MULTILINE)
)
"""The functions the library has."""

FAULTS = ("error", "hang", "abort", "delay")


def _keys(mark: str) -> frozenset[tuple[str, ...]]:
    found = re.findall(rf'\b{mark}\("([a-z][^"]*)"\)', _TEXT)
    return frozenset(tuple(key.replace("%u", "*").split(".")) for key in found)


_GPU_KEYS = _keys("K")
_MACHINE_KEYS = _keys("S")

GPU_KEYS: frozenset[str] = frozenset(".".join(key) for key in _GPU_KEYS)
"""The keys below "gpu.N."; "*" stands for a number."""

MACHINE_KEYS: frozenset[str] = frozenset(".".join(key) for key in _MACHINE_KEYS)
"""The keys of the whole machine; "*" stands for a number."""


def build(folder: Path, without: frozenset[str] = frozenset()) -> Path:
    """Compile the library, without some of its functions; answer a folder for LD_LIBRARY_PATH.

    What was built in `folder` before from the same source without the same functions is kept.
    """
    unknown = sorted(without - FUNCTIONS)
    if unknown:
        raise ValueError(f"the fake library never has {', '.join(unknown)}")
    digest = hashlib.sha256("\0".join([_TEXT, *sorted(without)]).encode()).hexdigest()[:16]
    target = folder / f"nvml-{digest}"
    library = target / SONAME
    if library.exists():
        return target
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        fresh = Path(scratch) / SONAME
        command = [os.environ.get("CC", "cc"), "-std=c11", "-shared", "-fPIC"]
        command += [
            "-fvisibility=hidden",
            "-Wall",
            "-Wextra",
            f"-Wl,-soname,{SONAME}",
            "-o",
            str(fresh),
            str(_SOURCE),
        ]
        if without:
            hidden = Path(scratch) / "hidden"
            names = " ".join(f"{name};" for name in sorted(without))
            hidden.write_text(f"{{ global: *; local: {names} }};\n", encoding="utf-8")
            command.append(f"-Wl,--version-script={hidden}")
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"the fake library does not compile:\n{done.stderr}")
        fresh.replace(library)
    return target


def environment(library: Path, description: Path) -> dict[str, str]:
    """The variables under which a process loads the library in that folder and reads that file."""
    return {"LD_LIBRARY_PATH": str(library), "FAKE_NVML": str(description)}


def describe(mapping: Mapping[str, object]) -> str:
    """The text of a description; a key that the library would never look up is refused.

    None takes back what a line with "*" gives; True and False are "yes" and "no".
    """
    lines = []
    for key, value in mapping.items():
        if not _known(key):
            raise ValueError(f"the fake library knows no key {key!r}")
        text = _render(value)
        if text != text.strip() or len(text.splitlines()) > 1:
            raise ValueError(f"{key}: {text!r} does not fit on one line")
        lines.append(f"{key} = {text}\n")
    return "".join(lines)


def _render(value: object) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def _known(key: str) -> bool:
    parts = key.split(".")
    if parts[0] != "gpu":
        return _among(parts, _MACHINE_KEYS) or _is_fault(parts)
    if not _is_instance(parts[1:2]):
        return False
    parts = parts[2:]
    if parts[:1] == ["mig"] and _is_instance(parts[1:2]):
        parts = parts[2:]
    return _among(parts, _GPU_KEYS) or _is_fault(parts)


def _is_instance(part: list[str]) -> bool:
    return len(part) == 1 and (part[0] == "*" or part[0].isdigit())


def _is_fault(parts: list[str]) -> bool:
    return len(parts) == 2 and parts[0] in FAULTS and (parts[1] == "*" or parts[1] in FUNCTIONS)


def _among(parts: list[str], keys: frozenset[tuple[str, ...]]) -> bool:
    return any(
        len(key) == len(parts)
        and all(
            part in (own, "*") or (own == "*" and part.isdigit())
            for own, part in zip(key, parts, strict=True)
        )
        for key in keys
    )
