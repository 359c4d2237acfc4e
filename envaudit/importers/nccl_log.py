"""NCCL's own lines: its version and CUDA, and the CUDA that the driver supports.

NCCL version 2.18.3+cuda12.1
node:174:239 [0] NCCL INFO cudaDriverVersion 12020
"""

from __future__ import annotations

from envaudit.importers import Draft, Imported, Section
from envaudit.importers.reading import cuda_version, numbered
from envaudit.patterns import regex

_VERSION = regex(
    r"NCCL version:?[ \t]{1,4}([0-9]{1,2}\.[0-9]{1,2}\.[0-9]{1,2})"
    r"(?:\+cuda([0-9]{1,2}\.[0-9]{1,2}))?"
)
_DRIVER = regex(r"NCCL INFO (?:[\w: ]{0,40})?cudaDriverVersion ([0-9]{4,6})(?![0-9])")
_SETTING = regex(
    r"NCCL INFO (?:\w{1,40}: )?(NCCL_[A-Z0-9_]{1,40}) set by environment to "
    r"([^\s\n]{1,200}?)\.?(?:\s|\Z)"
)


def recognises(section: Section) -> bool:
    """Whether NCCL speaks in the text."""
    return "NCCL version" in section.text or "NCCL INFO" in section.text


def parse(section: Section) -> Imported:
    """Versions and NCCL variables; every other line of NCCL is known and tells no fact."""
    draft = Draft()
    for number, line in numbered(section.text):
        if "NCCL" not in line:
            continue
        version, driver = _VERSION.search(line), _DRIVER.search(line)
        setting = _SETTING.search(line)
        if version is not None:
            draft.add("nccl.version", version[1], "NCCL's log: NCCL version", number)
            draft.add("nccl.cuda.version", version[2], "NCCL's log: NCCL version", number)
        if driver is not None:
            source = "NCCL's log: cudaDriverVersion"
            draft.add("driver.cuda.version", cuda_version(driver[1]), source, number)
        if setting is not None:
            draft.add(f"env.{setting[1]}", setting[2], "NCCL's log: set by environment", number)
        if "NCCL INFO" in line:
            draft.read(number)
    return draft.done()
