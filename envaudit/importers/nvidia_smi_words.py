"""What nvidia-smi prints in place of a value, and the sentences it fails with."""

from __future__ import annotations

import re
from typing import NamedTuple

from envaudit.addresses import pci_address
from envaudit.patterns import regex

_ABSENT = frozenset(
    {
        "",
        "N/A",
        "Not Supported",
        "Not Available",
        "Requested functionality has been deprecated",
        "[N/A]",
        "[Not Supported]",
        "[Requested functionality has been deprecated]",
    }
)

_SICK = frozenset({"ERR!", "GPU is lost", "GPU requires reset", "Unknown Error", "Error"})


def is_absent(text: str) -> bool:
    """Whether the words in place of a value say that this GPU or driver does not have it."""
    return text.strip() in _ABSENT


def is_sick(text: str) -> bool:
    """Whether the words in place of a value say that the GPU did not answer."""
    return text.strip().strip("[]") in _SICK


_AMOUNT = regex(r"([0-9]{1,15})(?:\.([0-9]{1,9}))?[ \t]*([A-Za-z%]*)\Z")


def amount(text: str, unit: str) -> int | float | None:
    """A number with its unit, such as "139.62 W", "16x" or "9184 MiB"; None for anything else."""
    match = _AMOUNT.match(text.strip())
    if match is None or match[3] != unit:
        return None
    if match[2] is None or not match[2].strip("0"):
        return int(match[1])
    return float(f"{match[1]}.{match[2]}")


def mebibytes(text: str) -> int | None:
    """Bytes in "9184 MiB"; None for anything else."""
    number = amount(text, "MiB")
    return number << 20 if isinstance(number, int) else None


def plain(text: str) -> int | float | None:
    """A number without a unit."""
    return amount(text, "")


def lanes(text: str) -> int | float | None:
    """PCIe lanes in "16x"."""
    return amount(text, "x")


def megahertz(text: str) -> int | float | None:
    """A clock in "1980 MHz"."""
    return amount(text, "MHz")


def watts(text: str) -> int | float | None:
    """Power in "700.00 W"."""
    return amount(text, "W")


def celsius(text: str) -> int | float | None:
    """A temperature in "33 C"."""
    return amount(text, "C")


def percent(text: str) -> int | float | None:
    """A share in "7 %"."""
    return amount(text, "%")


def switch(text: str) -> str | None:
    """Our words for Enabled and Disabled."""
    return {"Enabled": "enabled", "Disabled": "disabled"}.get(text.strip())


def flag(text: str) -> bool | None:
    """Yes or No."""
    return {"Yes": True, "No": False}.get(text.strip())


def words_joined(text: str) -> str:
    """Words such as "Exclusive_Process" or "Drain and Reset" as we write them."""
    return "_".join(text.lower().split())


def as_is(text: str) -> str | None:
    """A text of reasonable length, as it was printed."""
    return text if len(text) <= 200 else None


_VERSION = regex(r"[0-9]{1,6}(?:\.[0-9]{1,6}){1,4}(?![^ \t[])")


def version(text: str) -> str | None:
    """The version at the start of a value; None where there is none.

    Drivers from 610 on print "13.3 [Deprecated; will be removed in CUDA 14.0. ...]".
    """
    match = _VERSION.match(text.strip())
    return match[0] if match else None


_FAILURES = tuple(
    regex(rf"^[ \t]*({sentence})", re.MULTILINE)
    for sentence in (
        r"NVIDIA-SMI (?:has failed|couldn't|could not)\b[^\n|]*",
        r"Failed to initialize NVML:[^\n]*",
        r"Failed to properly shut ?down NVML:[^\n]*",
        r"Mismatch in versions between nvidia-smi and NVML[^\n]*",
        r"Unable to determine the device handle for [^\n]*",
        r"(?:Unable|Failed) to determine the number of available (?:GPUs|devices)[^\n]*",
        r"No devices (?:were )?found\b[^\n]*",
        r"GPU access blocked by the operating system[^\n]*",
        r"(?:Unknown Error|Driver/library version mismatch|Insufficient Permissions)[ \t]*$",
    )
)


def failure(text: str) -> str | None:
    """The sentence with which nvidia-smi failed, as it printed it; None where it did not fail."""
    for sentence in _FAILURES:
        match = sentence.search(text)
        if match is not None:
            return " ".join(match[1].split())[:300]
    return None


_NVML = regex(r"Failed to (?:initialize|properly shut ?down) NVML:[ \t]*([^\n]{1,200})")
_NVML_VERSION = regex(r"^[ \t]*NVML library version:[ \t]*([0-9]+(?:\.[0-9]+)+)", re.MULTILINE)


def nvml_error(text: str) -> str | None:
    """NVML's own error in such a sentence, for example "Driver/library version mismatch"."""
    match = _NVML.search(text)
    return " ".join(match[1].split()) or None if match else None


def nvml_version(text: str) -> str | None:
    """Version of the NVML library that newer releases name below a mismatch, such as 535.183."""
    match = _NVML_VERSION.search(text)
    return match[1] if match else None


class NoHandle(NamedTuple):
    """A GPU that nvidia-smi could not get hold of."""

    gpu: int | None
    """None where this nvidia-smi does not print it."""
    address: str | None
    error: str
    line: str


_NO_HANDLE = regex(
    r"^[ \t]*(Unable to determine the device handle for "
    r"(?:GPU|gpu)[ \t]?(?:([0-9]{1,3})(?=[ \t]*:[ \t]))?[ \t]*:?[ \t]*"
    r"((?:[0-9A-Fa-f]{4,8}:)?[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f])?[ \t]*:[ \t]*"
    r"([^\n]{1,200}))",
    re.MULTILINE,
)


def no_handles(text: str) -> list[NoHandle]:
    """GPUs that are told as lost outside the table.

    "Unable to determine the device handle for GPU3: 0000:5F:00.0: Unknown Error", and from older
    releases "... for GPU 0000:04:00.0: GPU is lost.  Reboot the system to recover this GPU".
    """
    found = []
    for match in _NO_HANDLE.finditer(text):
        error = match[4].strip()
        if error.startswith("GPU is lost"):
            error = "GPU is lost"
        found.append(
            NoHandle(
                int(match[2]) if match[2] else None,
                pci_address(match[3]) if match[3] else None,
                error,
                " ".join(match[1].split()),
            )
        )
    return found


_INFOROM = regex(
    r"^[ \t]*WARNING: (infoROM is corrupted) at gpu ([0-9A-Fa-f:.]{7,16})", re.MULTILINE
)


def corrupted_inforoms(text: str) -> dict[str, str]:
    """PCI address to the warning that nvidia-smi prints below its table for such a GPU."""
    return {
        address: match[1]
        for match in _INFOROM.finditer(text)
        if (address := pci_address(match[2])) is not None
    }
