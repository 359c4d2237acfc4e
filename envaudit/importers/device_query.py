"""CUDA's deviceQuery sample and programs that print a device's properties alike.

Device 0: "Tesla K80"
  CUDA Driver Version / Runtime Version          12.2 / 11.8
  CUDA Capability Major/Minor version number:    3.7

Device name=GeForce RTX 3070 Laptop GPU, global memory size=8370061312, serial=0
major=8, minor=6

GPU Device 0: "Turing" with compute capability 7.5
_CudaDeviceProperties(name='Tesla T4', major=7, minor=5, total_memory=15079MB, ...)
"""

from __future__ import annotations

from envaudit.importers import Draft, Imported, Section
from envaudit.importers.reading import numbered
from envaudit.patterns import regex

_NAMED = regex(r'[ \t]*Device ([0-9]{1,3}): "([^"\n]{1,80})"')
_VERSIONS = regex(
    r"[ \t]*CUDA Driver Version / Runtime Version[ \t]+"
    r"([0-9]{1,2}\.[0-9]{1,2}) / ([0-9]{1,2}\.[0-9]{1,2})"
)
_CAPABILITY = regex(
    r"[ \t]*CUDA Capability Major/Minor version number:[ \t]*([0-9]{1,2}\.[0-9])(?![0-9])"
)
_SHORT = regex(
    r'GPU Device ([0-9]{1,3}): "[^"\n]{1,80}" with compute capability ([0-9]{1,2}\.[0-9])'
)
_EQUALS = regex(r"[ \t]*[Dd]evice name[ \t]?=[ \t]?([^,\n=]{1,80})(?:,|\Z)")
_MAJOR = regex(r"\bmajor[ \t]?=[ \t]?([0-9]{1,2}),? minor[ \t]?=[ \t]?([0-9])(?![0-9])")
_PROPERTIES = regex(
    r"CudaDeviceProperties\(name='([^'\n]{1,80})'(?:, major=([0-9]{1,2}), minor=([0-9]))?"
)
_INDEXED = regex(r"(?:cuda:|CUDA:?|device ?|GPU ?)([0-9]{1,2})\b[^\n]{0,20}\Z")
_HINTS = ("CUDA Capability", "Runtime Version", "evice name", "CudaDeviceProperties", "GPU Device ")


def recognises(section: Section) -> bool:
    """Whether a line may be of such an output."""
    return any(hint in section.text for hint in _HINTS)


def parse(section: Section) -> Imported:
    """GPUs with their compute capability, and the versions that deviceQuery prints beside them."""
    draft = Draft()
    gpu, counted = "", 0
    for number, line in numbered(section.text):
        named, versions = _NAMED.match(line), _VERSIONS.match(line)
        capability, short = _CAPABILITY.match(line), _SHORT.search(line)
        equals, major = _EQUALS.match(line), _MAJOR.search(line)
        properties = _PROPERTIES.search(line)
        if named is not None:
            gpu = named[1]
            draft.add(f"gpu.{gpu}.name", named[2].strip(), "deviceQuery: Device", number)
        elif versions is not None:
            source = "deviceQuery: CUDA Driver Version / Runtime Version"
            draft.add("driver.cuda.version", versions[1], source, number)
            draft.add("cuda.runtime.version", versions[2], source, number)
        elif capability is not None and gpu:
            source = "deviceQuery: CUDA Capability"
            draft.add(f"gpu.{gpu}.compute_capability", capability[1], source, number)
        elif short is not None:
            source = "CUDA sample: GPU Device"
            draft.add(f"gpu.{short[1]}.compute_capability", short[2], source, number)
        elif properties is not None:
            index = _INDEXED.search(line[: properties.start()])
            gpu = index[1] if index else str(counted)
            counted += 1
            source = "properties of a CUDA device"
            draft.add(f"gpu.{gpu}.name", properties[1], source, number)
            if properties[2]:
                version = f"{properties[2]}.{properties[3]}"
                draft.add(f"gpu.{gpu}.compute_capability", version, source, number)
        elif equals is not None:
            gpu = str(counted)
            counted += 1
            draft.add(f"gpu.{gpu}.name", equals[1].strip(), "device name", number)
        elif major is not None and gpu:
            version = f"{major[1]}.{major[2]}"
            draft.add(f"gpu.{gpu}.compute_capability", version, "device: major, minor", number)
    return draft.done()
