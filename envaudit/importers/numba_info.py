"""`numba -s` and `numba.cuda.detect()`, of any release.

    __CUDA Information__
    CUDA Device Initialized                       : True
    CUDA Driver Version                           : 12.2
    CUDA Runtime Version                          : 11.8
    CUDA Detect Output:
    Found 1 CUDA devices
    id 0     b'GeForce GTX 960M'                              [SUPPORTED]
                          Compute Capability: 5.0

Older releases print 11020 for 11.2, and "compute capability" in lower case.
"""

from __future__ import annotations

import re

from envaudit.importers import Draft, Imported, Section
from envaudit.importers.platform_words import tell_platform
from envaudit.importers.reading import cuda_version, numbered, release
from envaudit.patterns import regex

_FIELD = regex(
    r"[ \t]{0,4}(CUDA Driver Version|CUDA Runtime Version|CUDA Device Initialized|Python Version|"
    r"Platform|Platform Name|Machine|libcuda?|glibc version|GLIBC version|Python Implementation)"
    r"[ \t]{1,60}: ?([^\n]{1,200})\Z"
)
_DEVICE = regex(r"[ \t]{0,4}id ([0-9]{1,3})[ \t]+b?['\"]([^'\"\n]{1,80})['\"][ \t]+\[[A-Z ]{4,40}")
_CAPABILITY = regex(r"[ \t]*[Cc]ompute [Cc]apability: ([0-9]{1,2}\.[0-9])\s*\Z")
_HINTS = (
    "__CUDA Information__",
    "__Hardware Information__",
    "__Python Information__",
    "CUDA devices",
)


def recognises(section: Section) -> bool:
    """Whether the text has a heading of such an output."""
    return any(hint in section.text for hint in _HINTS)


def parse(section: Section) -> Imported:
    """Driver, runtime, Python and GPUs that Numba sees."""
    draft = Draft()
    gpu = ""
    for number, line in numbered(section.text):
        field, device = _FIELD.match(line), _DEVICE.match(line)
        capability = _CAPABILITY.match(line)
        if field is not None:
            _field(draft, field[1], field[2].strip(), number)
        elif device is not None:
            gpu = device[1]
            draft.add(f"gpu.{gpu}.name", device[2].strip(), "numba: CUDA Detect Output", number)
        elif capability is not None and gpu:
            source = "numba: CUDA Detect Output"
            draft.add(f"gpu.{gpu}.compute_capability", capability[1], source, number)
        elif line.startswith("__") and line.endswith("__"):
            gpu = ""
            draft.read(number)
    return draft.done()


def _field(draft: Draft, name: str, value: str, number: int) -> None:
    source = f"numba -s: {name}"
    if name == "CUDA Driver Version":
        version = cuda_version(value)
        draft.add("driver.cuda.version", version, source, number)
        if version is None:
            draft.gap("driver.cuda.version", f"numba -s printed {value[:40]!r}")
    elif name == "CUDA Runtime Version":
        draft.add("cuda.runtime.version", cuda_version(value), source, number)
    elif name == "Python Version":
        draft.add("python.version", release(value), source, number)
    elif name.startswith("Platform"):
        tell_platform(draft, value, source, number)
    elif name == "Machine" and re.fullmatch(r"x86_64|aarch64|ppc64le", value):
        draft.add("os.arch", value, source, number)
    elif name == "CUDA Device Initialized" and value in ("True", "False"):
        draft.add("numba.available", value == "True", source, number)
    draft.read(number)
