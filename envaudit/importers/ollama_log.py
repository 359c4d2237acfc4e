"""Server logs of Ollama and llama.cpp: GPUs, driver and the newest CUDA that it supports.

    level=INFO source=types.go:130 msg="inference compute" id=GPU-d6de3398-... library=cuda
      variant=v12 compute=7.5 driver=12.1 name="NVIDIA GeForce RTX 2080 Ti" total="11.0 GiB"
    ggml_cuda_init: found 1 CUDA devices:
      Device 0: NVIDIA GeForce RTX 3090, compute capability 8.6, VMM: yes

What Ollama calls "driver" is the CUDA of the driver, and in some messages its release.
"""

from __future__ import annotations

import re

from envaudit.importers import Draft, Imported, Section
from envaudit.importers.reading import dotted, is_driver, numbered, release
from envaudit.patterns import regex

_PAIR = regex(r'\b([a-z_]{2,20})=(?:"([^"\n]{0,200})"|([^\s"]{1,200}))')
_DRIVER_LINE = regex(r"CUDA driver version:? ([0-9]{1,3}\.[0-9.]{1,10})(?![\w.])")
_LISTENING = regex(r"Listening on [^\n]{1,80}\(version ([0-9][0-9A-Za-z.\-+]{1,30})\)")
_VERSION = regex(r"[ \t]*(?:ollama|client) version is ([0-9][0-9A-Za-z.\-+]{1,30})")
_OLD_CAPABILITY = regex(
    r"(?:CUDA |cuda driver |)[Cc]ompute [Cc]apability (?:detected: )?([0-9]{1,2}\.[0-9])(?![\w.])"
)
_OLD_INDEX = regex(r"\[([0-9]{1,2})\] CUDA ")
_OLD_NAME = regex(r"\[([0-9]{1,2})\] CUDA device name: ([^\n]{1,80})")
_LIBCUDA = regex(
    r"lib(?:cuda|nvidia-ml)\.so\.([1-9][0-9]{2}\.[0-9]{1,4}(?:\.[0-9]{1,3})?)(?![\w.])"
)
_DEVICE = regex(
    r"[ \t]*Device ([0-9]{1,3}): ([^,\n]{1,80}), compute capability ([0-9]{1,2}\.[0-9])(?![\w.])"
)
_HINTS = (
    "inference compute",
    "CUDA driver version",
    "ompute capability",
    "Compute Capability",
    "ollama",
    "NVIDIA driver too old",
    "gpu.go",
    "libcuda.so.",
)


def recognises(section: Section) -> bool:
    """Whether a line may be of such a log."""
    return any(hint in section.text for hint in _HINTS)


def parse(section: Section) -> Imported:
    """What the lines of these logs tell; of a log that ran twice, the first start."""
    draft = Draft()
    ids: list[str] = []
    several = any(int(match[1]) for match in _OLD_INDEX.finditer(section.text[: 1 << 20]))
    for number, line in numbered(section.text):
        if "msg=" in line:
            _message(draft, line, number, ids)
        driver = _DRIVER_LINE.search(line)
        if driver is not None:
            tell_driver(draft, driver[1], "log: CUDA driver version", number)
        for pattern in (_LISTENING, _VERSION):
            version = pattern.search(line)
            if version is not None:
                draft.add("ollama.version", release(version[1]), "Ollama's log: version", number)
        device = _DEVICE.match(line)
        if device is not None and not device[2].startswith(("AMD ", "Intel ")):
            source = "llama.cpp: Device"
            draft.add(f"gpu.{device[1]}.name", device[2].strip(), source, number)
            draft.add(f"gpu.{device[1]}.compute_capability", device[3], source, number)
        if "gpu.go" in line or "[GPU-" in line or "gpu_info" in line:
            _old(draft, line, number, several)
        name = _OLD_NAME.search(line)
        if name is not None:
            draft.add(f"gpu.{name[1]}.name", name[2].strip(), "Ollama's log", number)
        library = _LIBCUDA.search(line)
        if library is not None and ("paths=" in line or "initializing" in line or "gpu.go" in line):
            source = "Ollama's log: the driver's library"
            draft.add("driver.library.version", library[1], source, number)
    return draft.done()


def tell_driver(draft: Draft, text: str, source: str, line: int) -> None:
    """Tell a "driver version" that may be the driver's release or the CUDA it supports."""
    text = text.strip(".,")
    if is_driver(text):
        draft.add("driver.version", text, source, line)
    else:
        draft.add("driver.cuda.version", dotted(text), source, line)


def _message(draft: Draft, line: str, number: int, ids: list[str]) -> None:
    pairs = {match[1]: match[2] or match[3] or "" for match in _PAIR.finditer(line)}
    message = pairs.get("msg", "")
    if message == "NVIDIA driver too old":
        tell_driver(draft, pairs.get("driver", ""), f"Ollama's log: {message}", number)
    if message != "inference compute":
        return
    draft.read(number)
    if pairs.get("library", "").lower() != "cuda":
        return
    source = "Ollama's log: inference compute"
    tell_driver(draft, pairs.get("driver", ""), f"{source}, driver", number)
    key = pairs.get("id", "") or str(len(ids))
    if key in ids:
        return
    ids.append(key)
    gpu = int(key) if key.isdigit() and len(key) < 4 else len(ids) - 1
    name = pairs.get("name", "")
    if re.fullmatch(r"CUDA[0-9]{1,3}|", name):  # newer releases number the devices here
        name = pairs.get("description", "")
    draft.add(f"gpu.{gpu}.name", name, source, number)
    draft.add(f"gpu.{gpu}.compute_capability", dotted(pairs.get("compute", "")), source, number)
    if key.startswith("GPU-"):
        draft.add(f"gpu.{gpu}.uuid", key, source, number)


def _old(draft: Draft, line: str, number: int, several: bool) -> None:
    """Releases before 0.2 tell the lowest compute capability of all GPUs."""
    match = _OLD_CAPABILITY.search(line)
    if match is None:
        return
    draft.read(number)
    if not several and "[GPU-" not in line:
        draft.add("gpu.0.compute_capability", match[1], "Ollama's log: compute capability", number)
