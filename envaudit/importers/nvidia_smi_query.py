"""Other forms that nvidia-smi answers in: chosen columns, its versions, how the GPUs are wired.

    name, driver_version, memory.total [MiB]          --query-gpu=... --format=csv
    NVIDIA A100-SXM4-40GB, 550.163.01, 40960 MiB

    NVIDIA-SMI version  : 580.95.05                   --version
    CUDA Version        : 13.0

            GPU0    GPU1    CPU Affinity    NUMA Affinity        topo -m
    GPU0     X      NV12    0-31            0

With `noheader` only the command tells what the columns are; a row that nothing explains is left
alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from envaudit.addresses import pci_address, pci_id
from envaudit.importers import Draft, Imported, Section
from envaudit.importers.nvidia_smi_words import (
    amount,
    as_is,
    is_absent,
    is_sick,
    switch,
    version,
    words_joined,
)
from envaudit.importers.reading import numbered
from envaudit.model import GPUS_LIMIT, Value
from envaudit.patterns import regex

_QUERY = regex(r"nvidia-smi\b[^|;\n]{0,200}?--query-gpu[= ]['\"]?([A-Za-z0-9_.,]{2,1500})")
_HINTS = ("NVIDIA-SMI version", "GPU0", "name", "driver_version", "memory.", "compute_cap")


def recognises(section: Section) -> bool:
    """Whether a line or the command may be of such an output."""
    return "nvidia-smi" in section.command or any(hint in section.text for hint in _HINTS)


def parse(section: Section) -> Imported:
    """Facts from rows of chosen columns, from the list of versions, and from the matrix."""
    draft = Draft()
    lines = list(numbered(section.text))
    _versions(draft, section, lines)
    _rows(draft, section, lines)
    _matrix(draft, section, lines)
    return draft.done()


# -- --version ----------------------------------------------------------------------------------

_VERSION_LINE = regex(
    r"[ \t]*(NVIDIA-SMI|NVML|DRIVER|KMD|CUDA UMD|CUDA) [Vv]ersion[ \t]{0,20}:[ \t]*(\S[^\n]{0,100})"
)
_VERSION_FACTS = {
    "NVIDIA-SMI": "smi.version",
    "NVML": "nvml.version",
    "DRIVER": "driver.version",
    "KMD": "driver.version",
    "CUDA": "driver.cuda.version",
    "CUDA UMD": "driver.cuda.version",
}


def _versions(draft: Draft, section: Section, lines: Sequence[tuple[int, str]]) -> None:
    """Since 550; from 610 on two values are sentences that name the line to read instead."""
    asked = re.search(r"nvidia-smi[^|\n]{0,80}--version", section.command[:400]) is not None
    if not asked and "NVIDIA-SMI version" not in section.text:
        return
    for number, line in lines:
        match = _VERSION_LINE.match(line)
        if match is not None:
            draft.read(number)
            source = f"nvidia-smi --version: {match[1]} version"
            draft.add(_VERSION_FACTS[match[1]], version(match[2]), source, number)


# -- --query-gpu --------------------------------------------------------------------------------


class _Column(NamedTuple):
    """What a column says: the fact (of the GPU, if it begins with a dot) and how to read it."""

    fact: str
    read: Callable[[str], Value | None]


def _unit(unit: str) -> Callable[[str], Value | None]:
    """Reads a number with this unit, or bare as `nounits` prints it."""

    def read(text: str) -> Value | None:
        bare = amount(text, "")
        return amount(text, unit) if bare is None else bare

    return read


def _bytes(text: str) -> int | None:
    number = _unit("MiB")(text)
    return number << 20 if isinstance(number, int) else None


_DRIVER = _Column("driver.version", version)
_NAME = _Column(".name", as_is)
_UUID = _Column(".uuid", as_is)
_PLACE = _Column(".pci.address", pci_address)
_CURRENT_SM = _Column(".clocks.sm.current", _unit("MHz"))
_CURRENT_MEMORY = _Column(".clocks.mem.current", _unit("MHz"))
_COLUMNS = {
    "driver_version": _DRIVER,
    "name": _NAME,
    "gpu_name": _NAME,
    "uuid": _UUID,
    "gpu_uuid": _UUID,
    "serial": _Column(".serial", as_is),
    "gpu_serial": _Column(".serial", as_is),
    "pci.bus_id": _PLACE,
    "gpu_bus_id": _PLACE,
    "vbios_version": _Column(".vbios.version", as_is),
    "compute_cap": _Column(".compute_capability", version),
    "memory.total": _Column(".memory.total", _bytes),
    "memory.used": _Column(".memory.used", _bytes),
    "memory.free": _Column(".memory.free", _bytes),
    "pcie.link.gen.current": _Column(".pcie.gen.current", _unit("")),
    "pcie.link.gen.gpucurrent": _Column(".pcie.gen.current", _unit("")),
    "pcie.link.gen.max": _Column(".pcie.gen.max", _unit("")),
    "pcie.link.gen.gpumax": _Column(".pcie.gen.device_max", _unit("")),
    "pcie.link.width.current": _Column(".pcie.width.current", _unit("")),
    "pcie.link.width.max": _Column(".pcie.width.max", _unit("")),
    "power.draw": _Column(".power.draw", _unit("W")),
    "power.draw.average": _Column(".power.draw", _unit("W")),
    "power.draw.instant": _Column(".power.draw", _unit("W")),
    "power.limit": _Column(".power.limit", _unit("W")),
    "enforced.power.limit": _Column(".power.limit", _unit("W")),
    "power.default_limit": _Column(".power.limit_default", _unit("W")),
    "power.max_limit": _Column(".power.limit_max", _unit("W")),
    "clocks.sm": _CURRENT_SM,
    "clocks.current.sm": _CURRENT_SM,
    "clocks.mem": _CURRENT_MEMORY,
    "clocks.current.memory": _CURRENT_MEMORY,
    "clocks.max.sm": _Column(".clocks.sm.max", _unit("MHz")),
    "clocks.max.mem": _Column(".clocks.mem.max", _unit("MHz")),
    "clocks.max.memory": _Column(".clocks.mem.max", _unit("MHz")),
    "pstate": _Column(".pstate", as_is),
    "temperature.gpu": _Column(".temperature", _unit("C")),
    "utilization.gpu": _Column(".utilization", _unit("%")),
    "ecc.mode.current": _Column(".ecc.current", switch),
    "ecc.mode.pending": _Column(".ecc.pending", switch),
    "ecc.errors.uncorrected.volatile.total": _Column(".ecc.uncorrected", _unit("")),
    "mig.mode.current": _Column(".mig.current", switch),
    "mig.mode.pending": _Column(".mig.pending", switch),
    "compute_mode": _Column(".compute_mode", words_joined),
    "persistence_mode": _Column(".persistence_mode", switch),
    "driver_model.current": _Column(".driver_model", as_is),
    "fabric.state": _Column(".fabric.state", words_joined),
    "fabric.status": _Column(".fabric.status", as_is),
    "gpu_recovery_action": _Column(".recovery_action", words_joined),
    "count": _Column("gpu.count", _unit("")),
}
_PLAIN = frozenset({"index", "name", "uuid", "serial", "count", "timestamp", "pstate"})
_WORD = regex(r"([a-z][A-Za-z0-9_.]{1,80})(?: \[[A-Za-z%/]{1,6}\])?\Z")
_LIKE_A_GPU = regex(
    r"(?:NVIDIA|GeForce|Tesla|Quadro|TITAN|Titan|GRID|RTX|GTX|Graphics Device|Orin|Xavier|Thor)\b"
    r"[\w ./()+\-]{0,70}\Z|[A-Z]{1,3}[0-9]{1,4}[\w ./\-]{0,60}\Z"
)
_REASON = regex(r"clocks_(?:event|throttle)_reasons\.([a-z_]{2,60})\Z")
_ONE = regex(r"[ \t](?:-i|--id)[ =]?([0-9]{1,3})(?![0-9,:.])")
_NARROWED = regex(r"[|;]|[ \t](?:-i|--id)\b|&&")


def _columns(line: str, asked: bool) -> list[str] | None:
    """The columns that a header line names; None for any other line."""
    names = []
    for cell in line.split(","):
        match = _WORD.match(cell.strip())
        if match is None:
            return None
        names.append(match[1])
    if not all(name in _PLAIN or "." in name or "_" in name for name in names):
        return None
    # "name" alone is a word of prose, and of every other table.
    ours = any(name in _COLUMNS and name not in _PLAIN for name in names)
    return names if ours or asked else None


def _rows(draft: Draft, section: Section, lines: Sequence[tuple[int, str]]) -> None:
    told = _Query(section.command)
    query = told
    rows = 0
    before = 0
    for number, line in lines:
        written = _QUERY.search(line[:2000])
        if written is not None:  # a command that stands in the text without a prompt we know
            query, rows = _Query(line), 0
            draft.read(number)
            continue
        header = _columns(line, query.asked)
        if header is not None:
            query, rows = query.headed(header), 0
            draft.read(number)
            continue
        cells = [cell.strip() for cell in line.split(",")]
        ended = rows > 0 and number != before + 1
        if ended or len(cells) != len(query.columns) or not _is_row(query.columns, cells):
            if rows:  # the output has ended
                query = _Query("")
            continue
        if rows >= GPUS_LIMIT:
            break
        index = query.only if query.only is not None else rows
        if "index" in query.columns and cells[query.columns.index("index")].isdecimal():
            index = int(cells[query.columns.index("index")][:4])
        draft.read(number)
        _row(draft, index, query.columns, cells, number)
        rows, before = rows + 1, number
        if query.whole:
            draft.replace("gpu.count", rows, "nvidia-smi --query-gpu: rows")


class _Query:
    """What a command asked for."""

    def __init__(self, command: str) -> None:
        match = _QUERY.search(command[:2000])
        self.asked = match is not None
        self.columns: list[str] = match[1].strip(",").split(",") if match is not None else []
        chosen = _ONE.search(command[:2000]) if self.asked else None
        self.only = int(chosen[1]) if chosen is not None else None
        """The GPU that was chosen."""
        self.whole = self.asked and not _NARROWED.search(command[:2000])
        """Whether every GPU has a row."""

    def headed(self, columns: list[str]) -> _Query:
        """The same with the columns that the output's own header names."""
        query = _Query("")
        query.asked, query.columns = self.asked, columns
        query.only, query.whole = self.only, self.whole
        return query


def _is_row(columns: Sequence[str], cells: Sequence[str]) -> bool:
    """Whether every cell says what its column can say; a line of prose does not."""
    for column, cell in zip(columns, cells, strict=True):
        known = _COLUMNS.get(column)
        if known is None or is_absent(cell) or is_sick(cell):
            continue
        if column in ("name", "gpu_name"):
            if not _LIKE_A_GPU.match(cell):
                return False
        elif known.read is as_is:
            if not 1 < len(cell) < 80 or " " in cell:
                return False
        elif known.read(cell) is None:
            return False
    return True


def _row(draft: Draft, index: int, columns: Sequence[str], cells: Sequence[str], line: int) -> None:
    reasons: list[Value] = []
    ids: dict[str, int] = {}
    for column, cell in zip(columns, cells, strict=True):
        reason = _REASON.match(column)
        if reason is not None and cell == "Active":
            reasons.append(reason[1])
        if column in ("pci.device_id", "pci.sub_device_id") and re.match(
            r"0x[0-9A-Fa-f]{8}\Z", cell
        ):
            ids[column] = int(cell, 16)
        known = _COLUMNS.get(column)
        if known is None or is_absent(cell):
            continue
        name = f"gpu.{index}{known.fact}" if known.fact.startswith(".") else known.fact
        if is_sick(cell):
            draft.gap(name, f"nvidia-smi printed {cell!r}")
        else:
            draft.add(name, known.read(cell), f"nvidia-smi --query-gpu: {column}", line)
    source = "nvidia-smi --query-gpu"
    if reasons:  # a list of none says nothing of the columns that were not asked for
        draft.add(f"gpu.{index}.clocks.event_reasons", reasons, source, line)
    if len(ids) == 2:
        text = pci_id(ids["pci.device_id"], ids["pci.sub_device_id"])
        draft.add(f"gpu.{index}.pci.id", text, f"{source}: pci.device_id", line)


# -- topo ---------------------------------------------------------------------------------------

_LINK = regex(r"NV[0-9]{1,2}\Z|PIX\Z|PXB\Z|PHB\Z|NODE\Z|SYS\Z|SOC\Z|PSB\Z")
_PEER = {
    "OK": "ok",
    "CNS": "chipset not supported",
    "GNS": "GPU not supported",
    "TNS": "topology not supported",
    "DR": "disabled by regkey",
    "NS": "not supported",
    "U": "unknown",
}
_ROW = regex(r"[ \t]*GPU([0-9]{1,3})[ \t]{1,8}(\S.*)")


def _matrix(draft: Draft, section: Section, lines: Sequence[tuple[int, str]]) -> None:
    peers = re.search(r"topo[ \t]+-p2p[ \t]+[a-z]*r", section.command[:400]) is not None
    width, affinity, seen = 0, False, 0
    for number, line in lines:
        match = _ROW.match(line)
        if match is None:
            continue
        gpu, rest = int(match[1]), match[2].split()
        is_cell = rest[0] in ("X", *_PEER) or _LINK.match(rest[0]) is not None
        if gpu == 0 and not is_cell:
            width = 1 + sum(re.match(r"GPU[0-9]{1,3}\Z", word) is not None for word in rest)
            affinity, seen = "NUMA Affinity" in line, 0
            draft.read(number)
            continue
        cells = rest[:width]
        if len(cells) < width or gpu >= width or cells[gpu] != "X":
            continue
        draft.read(number)
        seen += 1
        for other, cell in enumerate(cells):
            if _LINK.match(cell):
                draft.add(f"gpu.{gpu}.link.{other}", cell, "nvidia-smi topo -m", number)
            elif peers and cell in _PEER:
                draft.add(f"gpu.{gpu}.p2p.{other}", _PEER[cell], "nvidia-smi topo -p2p", number)
        behind = [word for word in rest[width:] if not _LINK.match(word)]
        if affinity and len(behind) > 1 and behind[1].isdecimal():
            draft.add(f"gpu.{gpu}.numa_node", int(behind[1][:3]), "nvidia-smi topo -m", number)
    if width and seen == width and "|" not in section.command:
        draft.add("gpu.count", width, "nvidia-smi topo -m: rows")
