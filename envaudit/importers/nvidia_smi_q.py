"""The text of `nvidia-smi -q`, whole, filtered (`-d CLOCK`) or cut, from driver 290 to 615.

    ==============NVSMI LOG==============
    Driver Version                            : 535.104.05
    CUDA Version                              : 12.2
    Attached GPUs                             : 8
    GPU 00000000:1A:00.0
        Product Name                          : NVIDIA H100 80GB HBM3
        MIG Mode
            Current                           : Disabled

Groups and keys were renamed over the years (Clocks Throttle Reasons, now Clocks Event Reasons;
Power Readings, now GPU Power Readings), so each fact names every key that ever held it. Since
610 the old "Driver Version" and "CUDA Version" carry a remark that they are deprecated, and "KMD
Version" and "CUDA UMD Version" stand below them. A filter or a cut leaves keys out: what is
not printed stays unknown.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from envaudit.addresses import pci_address, pci_id
from envaudit.importers import Draft, Imported, Section
from envaudit.importers.nvidia_smi_words import (
    amount,
    as_is,
    celsius,
    flag,
    is_absent,
    is_sick,
    lanes,
    mebibytes,
    megahertz,
    no_handles,
    percent,
    plain,
    switch,
    version,
    watts,
    words_joined,
)
from envaudit.importers.reading import numbered
from envaudit.model import GPUS_LIMIT, Value
from envaudit.patterns import regex

_START = "NVSMI LOG"
_HEAD = regex(
    r"[ \t]*(Driver Version|KMD Version|CUDA Version|CUDA UMD Version|Attached GPUs)"
    r"[ \t]{1,60}:[ \t]*(\S[^\n]{0,200})\Z"
)
_GPU = regex(
    r"[ \t]*GPU[ \t]+((?:[0-9A-Fa-f]{4,8}:)?[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f])[ \t]*\Z"
)
_TITLE = regex(r"[A-Za-z][A-Za-z0-9 ./()\-]{1,60}\Z")
_DEPTH_LIMIT = 8


class _Leaf(NamedTuple):
    """What stands behind a key, and where."""

    text: str
    line: int
    key: str


_Leaves = dict[str, list[_Leaf]]
"""Path of a key to what it says, one for each time it occurs."""


class _Gpu(NamedTuple):
    """One GPU of the text."""

    address: str
    leaves: _Leaves


def recognises(section: Section) -> bool:
    """Whether there is such a text, or a line of its head that somebody filtered out of it."""
    if _START in section.text:
        return True
    if " Version " not in section.text and "Attached GPUs" not in section.text:
        return False
    return any(
        match[2][:1].isdigit() and _is_padded(line)
        for _, line in numbered(section.text)
        if (match := _HEAD.match(line)) is not None
    )


def parse(section: Section) -> Imported:
    """Facts of the machine and of every GPU of which something is printed."""
    draft = Draft()
    head, gpus = _read(draft, section.text)
    _driver(draft, head)
    counted = _first(head, ("Attached GPUs",))
    attached = amount(counted.text, "") if counted is not None else None
    if counted is not None and isinstance(attached, int) and attached <= GPUS_LIMIT:
        draft.add("gpu.count", attached, "nvidia-smi -q: Attached GPUs", counted.line)
    if not gpus:
        return draft.done()
    if _START in section.text:
        draft.add("smi.status", "ok", "nvidia-smi -q")
    lost = {gone.gpu: gone for gone in no_handles(section.text) if gone.gpu is not None}
    chosen = _chosen(section.command)
    numbers = (n for n in range(GPUS_LIMIT) if n not in lost)
    for gpu in gpus:
        number = chosen if chosen is not None and len(gpus) == 1 else next(numbers, GPUS_LIMIT)
        _tell_gpu(draft, number, gpu)
    for index, gone in lost.items():
        draft.add(f"gpu.{index}.status", gone.error, "nvidia-smi -q")
        draft.add(f"gpu.{index}.pci.address", gone.address, "nvidia-smi -q")
        draft.gap(f"gpu.{index}.*", gone.line)
    if chosen is None and isinstance(attached, int) and attached > len(gpus) + len(lost):
        draft.cut(f"the output of nvidia-smi -q tells of {len(gpus)} of {attached} GPUs")
    return draft.done()


_CHOSEN = regex(r"nvidia-smi\b[^|\n]{0,200}?[ \t](?:-i|--id)[ =]?([0-9]{1,3})(?![0-9,:.])")


def _chosen(command: str) -> int | None:
    """The one GPU that the command asked for."""
    match = _CHOSEN.search(command[:400])
    return int(match[1]) if match else None


# -- the tree -----------------------------------------------------------------------------------


def _read(draft: Draft, text: str) -> tuple[_Leaves, list[_Gpu]]:
    """Leaves of the head and of each GPU; the indentation tells which group a key is in.

    Where a paste has lost its indentation, a line without a colon still begins a group.
    """
    head: _Leaves = {}
    gpus: list[_Gpu] = []
    groups: list[tuple[int, str]] = []
    began = not (logged := _START in text)
    margin, flat = 0, False
    for number, line in numbered(text):
        if _START in line:
            if began:  # another machine, or another moment
                break
            began = True
            draft.read(number)
            continue
        line = line.expandtabs(4).rstrip("\\ ")
        key, value = _key(line)
        if not began or not key:
            continue
        indent = len(line) - len(line.lstrip())
        gpu = _GPU.match(line)
        if gpu is not None:
            if len(gpus) >= GPUS_LIMIT:
                break
            gpus.append(_Gpu(gpu[1], {}))
            groups, margin = [], indent
            draft.read(number)
            continue
        if not gpus:
            found = _HEAD.match(line)
            if found is not None and (logged or _is_padded(line)):
                draft.read(number)
                head.setdefault(found[1], []).append(_Leaf(found[2].strip(), number, found[1]))
            continue
        leaves = gpus[-1].leaves
        if indent <= margin and not flat:
            if leaves or len(gpus) > 1:  # what follows the output
                break
            flat = True
        if value is None and not _TITLE.match(key):
            continue
        while groups and groups[-1][0] >= indent and not (flat and value is not None):
            groups.pop()
        draft.read(number)
        if value is not None:
            leaf = _Leaf(value, number, key)
            path = "/".join((*(name for _, name in groups), key))
            leaves.setdefault(path, []).append(leaf)
            if flat:
                leaves.setdefault(key, []).append(leaf)
        if not (flat and value is not None) and len(groups) < _DEPTH_LIMIT:
            groups.append((indent, key))  # a line with a value may have others below it
    return head, gpus


def _is_padded(line: str) -> bool:
    """Whether the colon stands in a column of its own, as nvidia-smi prints it."""
    return "     :" in line


def _key(line: str) -> tuple[str, str | None]:
    """Key and value of a line; None as the value of the title of a group."""
    text = line.strip()
    key, colon, value = text.partition(" : ")
    if colon:
        return key.rstrip(), value.strip()
    if text.endswith(" :"):
        return text[:-2].rstrip(), ""
    return text, None


def _first(leaves: _Leaves, keys: tuple[str, ...]) -> _Leaf | None:
    """The first of these keys that says something; else the first that is there."""
    found = None
    for key in keys:
        for leaf in leaves.get(key, ())[:1]:
            if not is_absent(leaf.text):
                return leaf
            found = found or leaf
    return found


def _tell(draft: Draft, name: str, leaf: _Leaf | None, read: Callable[[str], Value | None]) -> None:
    """Tell what a key says; nothing for N/A; a gap for what is neither."""
    if leaf is None or is_absent(leaf.text):
        return
    value = None if is_sick(leaf.text) else read(leaf.text)
    if value is None:
        draft.gap(name, f"nvidia-smi -q printed {leaf.text[:60]!r} as {leaf.key}")
    else:
        draft.add(name, value, f"nvidia-smi -q: {leaf.key}", leaf.line)


# -- facts --------------------------------------------------------------------------------------


def _driver(draft: Draft, head: _Leaves) -> None:
    keys = {
        "driver.version": ("KMD Version", "Driver Version"),
        "driver.cuda.version": ("CUDA UMD Version", "CUDA Version"),
    }
    for name, each in keys.items():
        _tell(draft, name, _first(head, each), version)


class _Row(NamedTuple):
    """A fact of a GPU, how its text is read, and the keys that hold it, best first."""

    name: str
    read: Callable[[str], Value | None]
    keys: tuple[str, ...]


_LINK = "PCI/GPU Link Info"
_POWER = ("GPU Power Readings", "Power Readings")


def _power(*keys: str) -> tuple[str, ...]:
    return tuple(f"{group}/{key}" for group in _POWER for key in keys)


_ROWS = (
    _Row("name", as_is, ("Product Name",)),
    _Row("uuid", as_is, ("GPU UUID",)),
    _Row("serial", as_is, ("Serial Number",)),
    _Row("vbios.version", as_is, ("VBIOS Version",)),
    _Row("memory.total", mebibytes, ("FB Memory Usage/Total", "Memory Usage/Total")),
    _Row("memory.used", mebibytes, ("FB Memory Usage/Used", "Memory Usage/Used")),
    _Row("memory.free", mebibytes, ("FB Memory Usage/Free", "Memory Usage/Free")),
    _Row("bar1.total", mebibytes, ("BAR1 Memory Usage/Total",)),
    _Row("pcie.gen.current", plain, (f"{_LINK}/PCIe Generation/Current",)),
    _Row("pcie.gen.max", plain, (f"{_LINK}/PCIe Generation/Max",)),
    _Row("pcie.gen.device_max", plain, (f"{_LINK}/PCIe Generation/Device Max",)),
    _Row("pcie.width.current", lanes, (f"{_LINK}/Link Width/Current",)),
    _Row("pcie.width.max", lanes, (f"{_LINK}/Link Width/Max",)),
    _Row("pcie.replays", plain, ("PCI/Replays Since Reset", "PCI/Replays since reset")),
    _Row(
        "power.draw",
        watts,
        _power("Average Power Draw", "Power Draw", "Instantaneous Power Draw"),
    ),
    _Row(
        "power.limit",
        watts,
        _power("Current Power Limit", "Enforced Power Limit"),
    ),
    _Row("power.limit_default", watts, _power("Default Power Limit")),
    _Row("power.limit_max", watts, _power("Max Power Limit")),
    _Row("clocks.sm.current", megahertz, ("Clocks/SM",)),
    _Row("clocks.sm.max", megahertz, ("Max Clocks/SM",)),
    _Row("clocks.mem.current", megahertz, ("Clocks/Memory",)),
    _Row("clocks.mem.max", megahertz, ("Max Clocks/Memory",)),
    _Row("pstate", as_is, ("Performance State",)),
    _Row("temperature", celsius, ("Temperature/GPU Current Temp", "Temperature/Gpu")),
    _Row("utilization", percent, ("Utilization/GPU", "Utilization/Gpu")),
    _Row("ecc.current", switch, ("ECC Mode/Current", "Ecc Mode/Current")),
    _Row("ecc.pending", switch, ("ECC Mode/Pending", "Ecc Mode/Pending")),
    _Row("remapped_rows.correctable", plain, ("Remapped Rows/Correctable Error",)),
    _Row("remapped_rows.uncorrectable", plain, ("Remapped Rows/Uncorrectable Error",)),
    _Row("remapped_rows.pending", flag, ("Remapped Rows/Pending",)),
    _Row("remapped_rows.failed", flag, ("Remapped Rows/Remapping Failure Occurred",)),
    _Row("recovery_action", words_joined, ("GPU Recovery Action",)),
    _Row("mig.current", switch, ("MIG Mode/Current",)),
    _Row("mig.pending", switch, ("MIG Mode/Pending",)),
    _Row("compute_mode", words_joined, ("Compute Mode",)),
    _Row("persistence_mode", switch, ("Persistence Mode",)),
    _Row("driver_model", as_is, ("Driver Model/Current",)),
    _Row("fabric.state", words_joined, ("Fabric/State",)),
    _Row("fabric.status", as_is, ("Fabric/Status",)),
)
_VITAL = (
    "Product Name",
    "FB Memory Usage/Total",
    "Performance State",
    "Temperature/GPU Current Temp",
)


def _tell_gpu(draft: Draft, number: int, gpu: _Gpu) -> None:
    leaves = gpu.leaves
    draft.add(f"gpu.{number}.pci.address", pci_address(gpu.address), "nvidia-smi -q: GPU")
    flat_mig = "Index" in leaves and "MIG Device/Index" in leaves
    for row in _ROWS:
        if flat_mig and row.read is mebibytes:  # whose memory it is cannot be told
            continue
        _tell(draft, f"gpu.{number}.{row.name}", _first(leaves, row.keys), row.read)
    _ids(draft, number, leaves)
    firmware = _first(leaves, ("GSP Firmware Version",))
    if firmware is not None:
        release = version(firmware.text)
        draft.add(
            "driver.gsp.version", release, "nvidia-smi -q: GSP Firmware Version", firmware.line
        )
    sick = _sickness(leaves)
    if sick is not None:
        draft.add(f"gpu.{number}.status", sick.text, f"nvidia-smi -q: {sick.key}", sick.line)
        draft.gap(f"gpu.{number}.*", f"nvidia-smi -q printed {sick.text!r}")
        return
    if any(vital in leaves for vital in _VITAL):
        draft.add(f"gpu.{number}.status", "ok", "nvidia-smi -q")
    _reasons(draft, number, leaves)
    _uncorrected(draft, number, leaves)
    if not flat_mig:
        _migs(draft, number, leaves)
    _processes(draft, number, leaves)


def _sickness(leaves: _Leaves) -> _Leaf | None:
    """What stands in place of what every healthy GPU answers."""
    for each in leaves.values():
        for leaf in each:
            if leaf.text in ("GPU is lost", "GPU requires reset"):
                return leaf
    return next(
        (leaf for vital in _VITAL for leaf in leaves.get(vital, ()) if is_sick(leaf.text)), None
    )


_HEXADECIMAL = regex(r"0x([0-9A-Fa-f]{8})\Z")


def _ids(draft: Draft, number: int, leaves: _Leaves) -> None:
    found = [_first(leaves, (f"PCI/{key}",)) for key in ("Device Id", "Sub System Id")]
    matches = [_HEXADECIMAL.match(leaf.text) if leaf is not None else None for leaf in found]
    device, subsystem = matches
    if device is not None and subsystem is not None and found[0] is not None:
        ids = pci_id(int(device[1], 16), int(subsystem[1], 16))
        draft.add(f"gpu.{number}.pci.id", ids, "nvidia-smi -q: PCI Device Id", found[0].line)


_REASON = regex(r"Clocks (?:Event|Throttle) Reasons/(?:[^/]{1,60}/)?([A-Za-z ]{1,60})\Z")
_REASON_NAMES = {"idle": "gpu_idle", "display_clocks_setting": "display_clock_setting"}


def _reasons(draft: Draft, number: int, leaves: _Leaves) -> None:
    active: list[Value] = []
    line = None
    for path, (leaf, *_) in leaves.items():
        match = _REASON.match(path)
        if match is None or leaf.text not in ("Active", "Not Active"):
            continue
        line = line or leaf.line
        if leaf.text == "Active":
            name = words_joined(match[1])
            active.append(_REASON_NAMES.get(name, name))
    if line is not None:
        source = "nvidia-smi -q: Clocks Event Reasons"
        draft.add(f"gpu.{number}.clocks.event_reasons", active, source, line)


_SPLIT = (
    "SRAM Uncorrectable",
    "SRAM Uncorrectable Parity",
    "SRAM Uncorrectable SEC-DED",
    "DRAM Uncorrectable",
)


def _uncorrected(draft: Draft, number: int, leaves: _Leaves) -> None:
    """Uncorrected errors since the driver was loaded, over the ways they were split up so far."""
    total = _first(leaves, ("ECC Errors/Volatile/Double Bit/Total",))
    parts = [total] if total is not None else []
    if total is None:
        parts = [
            leaf for key in _SPLIT for leaf in leaves.get(f"ECC Errors/Volatile/{key}", ())[:1]
        ]
    counts = [amount(leaf.text, "") for leaf in parts]
    numbers = [count for count in counts if isinstance(count, int)]
    if numbers and len(numbers) == len(counts):
        name = f"gpu.{number}.ecc.uncorrected"
        draft.add(name, sum(numbers), "nvidia-smi -q: ECC Errors, Volatile", parts[0].line)


def _migs(draft: Draft, number: int, leaves: _Leaves) -> None:
    mode = _first(leaves, ("MIG Mode/Current",))
    if mode is None or mode.text != "Enabled":
        return
    for group in ("MIG Device", "MIG Devices/MIG Device"):
        sizes: list[Value] = [
            " ".join(leaf.text.split())[:40]
            for leaf in leaves.get(f"{group}/FB Memory Usage/Total", ())
        ]
        if sizes:
            source = "nvidia-smi -q: MIG Device"
            draft.add(f"gpu.{number}.mig.instances", sizes, source, mode.line)


def _processes(draft: Draft, number: int, leaves: _Leaves) -> None:
    name, source = f"gpu.{number}.processes", "nvidia-smi -q: Processes"
    none = _first(leaves, ("Processes",))
    if none is not None and none.text == "None":
        draft.add(name, 0, source, none.line)
    found = _first(leaves, ("Processes/Process ID",))
    if found is not None:
        draft.add(name, len(leaves["Processes/Process ID"]), source, found.line)
