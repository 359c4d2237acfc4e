"""First lines that programs print of themselves: versions, Python, the device they chose.

YOLOv5 v7.0 Python-3.8.10 torch-1.13.1+cu117 CUDA:0 (NVIDIA GeForce RTX 3060, 12288MiB)
pytorch version: 2.3.1+cu121
Device: cuda:0 NVIDIA GeForce RTX 3090 : cudaMallocAsync
Python 3.10.6 (tags/v3.10.6:9c7b4bd, Aug  1 2022, 21:53:49) [MSC v.1932 64 bit (AMD64)]
Device: device=NVIDIA GeForce RTX 4090 n=1 arch=sm_90 capability=(8, 9) cuda=12.1 cudnn=8907
NVIDIA Release 23.10 (build 71422337)
NOTE: CUDA Forward Compatibility mode ENABLED.
  Using CUDA 12.2 driver version 535.86.10 with kernel driver version 470.57.02.
"""

from __future__ import annotations

import re

from envaudit.importers import Draft, Imported, Section
from envaudit.importers.reading import (
    cuda_version,
    cudnn_version,
    is_driver,
    numbered,
    release,
)
from envaudit.patterns import regex

_BEHIND = r"(?=[\s,;:)\]]|\Z)"
_VERSION = r"([0-9]{1,2}\.[0-9]{1,3}(?:\.[0-9]{1,3})?[0-9A-Za-z.+]{0,40})"
_YOLO = regex(r"\btorch[- ]" + _VERSION + _BEHIND)
_YOLO_WORDS = ("YOLO", "Ultralytics", "Using torch", "Setup complete")
_YOLO_PYTHON = regex(r"\bPython-" + _VERSION + _BEHIND)
_ULTRALYTICS = regex(r"\bUltralytics (?:YOLO)?v?" + _VERSION + r"[ \t]")
_CUDA_DEVICE = regex(r"\bCUDA:([0-9]{1,2}) \(([^,()\n]{1,80}), [0-9.]{2,9}Mi?B\)")
_COMFY_TORCH = regex(
    r"[ \t]*(?:\[[^\]\n]{1,40}\][ \t]*)?(?:py)?torch version: ?" + _VERSION + r"\s*\Z",
    re.IGNORECASE,
)
_COMFY_XFORMERS = regex(r"[ \t]*xformers version: ?" + _VERSION + r"\s*\Z", re.IGNORECASE)
_COMFY_DEVICE = regex(r"[ \t]*Device: cuda:([0-9]{1,2}) ([^:\n]{3,80}?)(?: : \w{1,40})?\s*\Z")
_INVOKE = regex(r"Using torch device: (NVIDIA [^\n]{3,80}|Tesla [^\n]{3,80})")
_SD_NEXT = regex(
    r"device=([^=\n]{3,80}?) n=[0-9]{1,2} (?:arch=\S{1,20} )?"
    r"(?:capability|cap)=\(([0-9]{1,2}), ([0-9])\)"
    r"(?: cuda=([0-9.]{3,6}))?(?: cudnn=([0-9]{4,6}))?(?: driver=([0-9.]{5,12}))?"
)
_PYTHON = regex(
    r"[ \t*]{0,6}(?:Python(?: version:)? )([23]\.[0-9]{1,2}\.[0-9]{1,3}[0-9a-z+]{0,8}) "
    r"(?:\(|\| packaged by|\[)[^\n]{0,200}"
)
_RELEASE = regex(r"NVIDIA Release ([0-9]{2}\.[0-9]{2})(?:\.[0-9]{1,2})? \(build [0-9]{1,12}\)")
_HEADING = regex(r"==+ ?([A-Za-z][\w +\-]{2,40}?) ?==+\s*\Z")
_NGC_TORCH = regex(r"PyTorch Version " + _VERSION + _BEHIND)
_NGC_TENSORFLOW = regex(r"TensorFlow Version " + _VERSION + _BEHIND)
_NGC_DETECTED = regex(
    r"built for NVIDIA Driver Release [0-9.]{3,12} or later, but\s+"
    r"version ([0-9.]{5,12}) was detected"
)
_NGC_COMPAT = regex(
    r"Using CUDA [0-9.]{3,6} driver version ([0-9.]{5,12}) "
    r"with kernel driver version ([0-9.]{5,12})"
)
_HINTS = ("torch", "Ultralytics", "YOLO", "CUDA:", "Device: ", "Python ", "NVIDIA Release",
          "device=", "driver version", "was detected", "xformers version", "TensorFlow Version",
          "PyTorch Version")  # fmt: skip


def recognises(section: Section) -> bool:
    """Whether a line may be such a banner."""
    return any(hint in section.text for hint in _HINTS)


def parse(section: Section) -> Imported:
    """What the banners tell."""
    draft = Draft()
    heading = ""
    lines = list(numbered(section.text))
    for at, (number, line) in enumerate(lines):
        _yolo(draft, line, number)
        _web_uis(draft, line, number)
        python = _PYTHON.match(line)
        if python is not None:
            draft.add("python.version", python[1].rstrip("."), "Python's own banner", number)
        title = _HEADING.match(line.strip())
        if title is not None:
            heading = title[1]
        following = lines[at + 1][1] if at + 1 < len(lines) else ""
        _container(draft, line, following, heading, number)
    return draft.done()


def _yolo(draft: Draft, line: str, number: int) -> None:
    yolo = _YOLO.search(line)
    if yolo is not None and any(word in line[: yolo.end()] for word in _YOLO_WORDS):
        draft.add("torch.version", release(yolo[1]), "YOLO's banner", number)
        python = _YOLO_PYTHON.search(line)
        if python is not None:
            draft.add("python.version", release(python[1]), "YOLO's banner", number)
        ultralytics = _ULTRALYTICS.search(line)
        if ultralytics is not None:
            source = "Ultralytics' banner"
            draft.add("dist.ultralytics.version", release(ultralytics[1]), source, number)
    for device in _CUDA_DEVICE.finditer(line):
        draft.add(f"gpu.{device[1]}.name", device[2].strip(), "YOLO's banner: CUDA", number)


def _web_uis(draft: Draft, line: str, number: int) -> None:
    torch, xformers = _COMFY_TORCH.match(line), _COMFY_XFORMERS.match(line)
    device, invoke, sd_next = _COMFY_DEVICE.match(line), _INVOKE.search(line), _SD_NEXT.search(line)
    if torch is not None:
        draft.add("torch.version", release(torch[1]), "banner: pytorch version", number)
    if xformers is not None:
        source = "banner: xformers version"
        draft.add("dist.xformers.version", release(xformers[1]), source, number)
    if device is not None:
        draft.add(f"gpu.{device[1]}.name", device[2].strip(), "banner: Device", number)
    if invoke is not None:
        draft.add("gpu.0.name", invoke[1].strip(), "banner: Using torch device", number)
    if sd_next is not None:
        source = "banner: Device"
        draft.add("gpu.0.name", sd_next[1].strip(), source, number)
        draft.add("gpu.0.compute_capability", f"{sd_next[2]}.{sd_next[3]}", source, number)
        draft.add("torch.cuda.version", cuda_version(sd_next[4] or ""), source, number)
        draft.add("cudnn.version", cudnn_version(sd_next[5] or ""), source, number)
        if is_driver(sd_next[6] or ""):
            draft.add("driver.version", sd_next[6], source, number)


def _container(draft: Draft, line: str, following: str, heading: str, number: int) -> None:
    built = _RELEASE.search(line)
    if built is not None and heading:
        image = f"{heading}, NVIDIA Release {built[1]}"
        draft.add("container.image", image, "banner of NVIDIA's container", number)
    for pattern, fact in ((_NGC_TORCH, "torch.version"), (_NGC_TENSORFLOW, "tensorflow.version")):
        version = pattern.search(line)
        if version is not None and built is None and line.strip() == version[0]:
            draft.add(fact, release(version[1]), "banner of NVIDIA's container", number)
    both = f"{line.strip()} {following.strip()}"  # the sentence is broken into two lines
    detected = _NGC_DETECTED.search(both)
    compat = _NGC_COMPAT.search(line)
    if detected is not None and is_driver(detected[1]):
        draft.add("driver.version", detected[1], "banner of NVIDIA's container", number)
    if compat is not None:
        source = "banner of NVIDIA's container: Forward Compatibility"
        mode, kernel = compat[1].rstrip("."), compat[2].rstrip(".")
        if is_driver(mode) and is_driver(kernel):
            draft.add("driver.compat.version", mode, source, number)
            draft.add("driver.version", kernel, source, number)
            draft.add("driver.module.version", kernel, source, number)
