"""`cupy.show_config()` of any release.

    CuPy Version                 : 14.0.0
    CUDA Root                    : /usr/local/cuda
    CUDA Build Version           : 12090
    CUDA Driver Version          : 13000
    CUDA Runtime Version         : 12090 (linked to CuPy) / 12000 (locally installed)
    cuDNN Version                : 8907
    Device 0 Name                : NVIDIA GeForce RTX 3090
    Device 0 Compute Capability  : 86

A field that CuPy could not read holds None or the Python error that it met.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from envaudit.addresses import pci_address
from envaudit.importers import Draft, Imported, Section
from envaudit.importers.platform_words import tell_platform
from envaudit.importers.reading import (
    cuda_version,
    cudnn_version,
    nccl_version,
    numbered,
    release,
)
from envaudit.patterns import regex

_FIELD = regex(
    r"[ \t]{0,8}((?:OS|Python Version|CuPy Version|NumPy Version|SciPy Version|CUDA Root|"
    r"nvcc PATH|NVCC PATH|CUDA Build Version|CUDA Driver Version|CUDA Runtime Version|"
    r"NVRTC Version|cuDNN Build Version|cuDNN Version|NCCL Build Version|NCCL Runtime Version)|"
    r"Device [0-9]{1,3} (?:Name|Compute Capability|PCI Bus ID))[ \t]{0,60}: ?([^\n]{1,2000})\Z"
)
_LOCAL = regex(r"([0-9]{4,6}) \(locally installed\)")
_DEVICE = regex(r"Device ([0-9]{1,3}) ([\w ]{4,30})\Z")
_VERSIONS: dict[str, tuple[str, Callable[[str], str | None]]] = {
    "Python Version": ("python.version", release),
    "CuPy Version": ("cupy.version", release),
    "NumPy Version": ("dist.numpy.version", release),
    "SciPy Version": ("dist.scipy.version", release),
    "CUDA Build Version": ("cupy.cuda.version", cuda_version),
    "CUDA Driver Version": ("driver.cuda.version", cuda_version),
    "NVRTC Version": ("nvrtc.version", cuda_version),
    "cuDNN Build Version": ("cupy.cudnn.version", cudnn_version),
    "cuDNN Version": ("cudnn.version", cudnn_version),
    "NCCL Runtime Version": ("nccl.version", nccl_version),
}
_PATHS = {"CUDA Root": "cuda.home", "nvcc PATH": "cuda.nvcc.path", "NVCC PATH": "cuda.nvcc.path"}


def recognises(section: Section) -> bool:
    """Whether the text has CuPy's own lines."""
    return "CuPy Version" in section.text or "CUDA Build Version" in section.text


def parse(section: Section) -> Imported:
    """What CuPy was built for and what it finds."""
    draft = Draft()
    for number, line in numbered(section.text):
        field = _FIELD.match(line)
        if field is None:
            continue
        name, value = field[1], field[2].strip()
        source = f"cupy.show_config(): {name}"
        draft.read(number)
        if name == "OS":
            tell_platform(draft, value, source, number)
        elif name == "CUDA Runtime Version":
            local = _LOCAL.search(value)
            version = cuda_version(local[1] if local else value.partition(" ")[0])
            draft.add("cuda.runtime.version", version, source, number)
        elif name in _PATHS:
            if value == "None":
                draft.absent(_PATHS[name], number)
            elif value.startswith("/") or value[1:3] == ":\\":
                draft.add(_PATHS[name], value, source, number)
        elif name in _VERSIONS:
            fact, decode = _VERSIONS[name]
            draft.add(fact, decode(value), source, number)
            if fact not in draft and value != "None":
                draft.gap(fact, f"cupy.show_config() printed {value[:40]!r}")
        else:
            _device(draft, name, value, source, number)
    return draft.done()


def _device(draft: Draft, name: str, value: str, source: str, number: int) -> None:
    device = _DEVICE.match(name)
    if device is None:
        return
    gpu = f"gpu.{device[1]}"
    if device[2] == "Name":
        draft.add(f"{gpu}.name", value, source, number)
    elif device[2] == "PCI Bus ID":
        draft.add(f"{gpu}.pci.address", pci_address(value), source, number)
    elif re.fullmatch(r"[0-9]{2,3}", value):
        draft.add(f"{gpu}.compute_capability", f"{value[:-1]}.{value[-1]}", source, number)
