"""The XML of `nvidia-smi -q -x`, from driver 418 to 615.

    <nvidia_smi_log>
        <driver_version>550.163.01</driver_version>
        <cuda_version>12.4</cuda_version>
        <attached_gpus>8</attached_gpus>
        <gpu id="00000000:1A:00.0">
            <product_name>NVIDIA H100 80GB HBM3</product_name>
            ...

An element that the GPU does not have is left out or says N/A. Elements were renamed over the
years (clocks_throttle_reasons, now clocks_event_reasons; power_readings, now
gpu_power_readings; since 610 kmd_version beside driver_version), so each fact names every
element that ever held it. nvidia-smi can crash in the middle: whole GPUs are kept.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from envaudit.addresses import pci_address, pci_id
from envaudit.importers import Draft, Imported, Section, lines_of
from envaudit.importers.nvidia_smi_words import (
    amount,
    as_is,
    celsius,
    corrupted_inforoms,
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
from envaudit.model import Value
from envaudit.patterns import regex

_LIMIT = 16 << 20
"""Characters that are read; 16 GPUs with every supported clock have one million."""
_MAX_GPUS = 1024

_START = "<nvidia_smi_log"
_END = "</nvidia_smi_log>"
_NAME, _NAME_END = "<process_name>", "</process_name>"

_NOT_TOLD = (
    "gpu.*.compute_capability",
    "gpu.*.nvlink.*",
    "gpu.*.p2p.*",
    "gpu.*.numa_node",
    "gpu.*.processes.foreign",
    "gpu.*.throttle.*",
    "gpu.*.xid",
)

_READS = regex(r"<\?xml[^>\n]*>|<!DOCTYPE[^>\n]*>|(?s:<nvidia_smi_log>.*?(?:</nvidia_smi_log>|\Z))")


def recognises(section: Section) -> bool:
    """Whether there is a document of `nvidia-smi -q -x` in the text, whole or cut."""
    return _START in section.text[:_LIMIT]


def parse(section: Section) -> Imported:
    """Facts of every GPU that is there as a whole; a gap for what was cut or is damaged."""
    draft = Draft()
    text = section.text[:_LIMIT]
    draft.read(*lines_of(text, (found.span() for found in _READS.finditer(text))))
    start = text.find(_START)
    trouble = ""
    if start < 0:
        trouble = "no document of nvidia-smi -q -x in the text"
    elif "<!ENTITY" in text:
        trouble = "the XML declares entities, which nvidia-smi never does"
    if trouble:
        draft.gap("gpu.count", trouble)
        draft.gap("gpu.*.*", trouble)
        return draft.done()
    end = text.find(_END, start)
    said = text[:start] + (text[end + len(_END) :] if end >= 0 else "")
    document = _Document(_without_names(text[start : end if end >= 0 else None]))
    whole = end >= 0 and document.damage is None
    if whole:
        draft.add("smi.status", "ok", "nvidia-smi -q -x")
    if end >= 0 and _START in text[end:]:
        draft.note("the text has more than one document of nvidia-smi; the first was read")
    _driver(draft, document.head)
    _gpus(draft, document, said, whole=whole)
    return draft.done()


def _without_names(text: str) -> str:
    """The document without names of processes: nvidia-smi does not escape them."""
    first, *rest = text.split(_NAME)
    for at, part in enumerate(rest):
        _, end, after = part.partition(_NAME_END)
        rest[at] = after if end else ""
    return first + "".join(rest)


_Leaves = dict[str, list[str]]
"""Path of an element to its texts, one for each time it occurs."""


class _Document:
    """Reads elements with expat, which keeps nothing and resolves nothing."""

    def __init__(self, text: str) -> None:
        from xml.parsers import expat

        self.head: _Leaves = {}
        self.gpus: list[_Leaves] = []
        self.damage: str | None = None
        """Why reading ended before the document did."""
        self.inside = False
        """Whether it ended within a GPU."""
        self._path: list[str] = []
        self._text: list[str] = []
        self._gpu: _Leaves | None = None
        parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._stop
        parser.CharacterDataHandler = self._text.append
        try:
            # The end tag was left out of the text, so that a cut document reads like a whole one.
            parser.Parse(text.encode("utf-8", "replace"), False)
        except expat.ExpatError as problem:
            self.damage = f"{expat.errors.messages.get(problem.code, 'damaged')}"
        except _TooMuch:
            self.damage = "more GPUs than any machine has"
        self.inside = self._gpu is not None

    def _start(self, name: str, _: object) -> None:
        self._text.clear()
        self._path.append(name)
        if len(self._path) > 32:
            raise _TooMuch
        if name == "gpu" and len(self._path) == 2:
            if len(self.gpus) >= _MAX_GPUS:
                raise _TooMuch
            self._gpu = {}

    def _stop(self, name: str) -> None:
        text = "".join(self._text).strip()
        self._text.clear()
        depth = len(self._path)
        if depth == 2 and self._gpu is not None:
            self.gpus.append(self._gpu)
            self._gpu = None
        elif depth > 1 and self._path[min(2, depth - 1)] != "supported_clocks":
            into, path = (
                (self.head, self._path[1:]) if self._gpu is None else (self._gpu, self._path[2:])
            )
            into.setdefault("/".join(path), []).append(text)
        self._path.pop()


class _TooMuch(Exception):
    """The document is larger than any machine would make it."""


def _driver(draft: Draft, head: _Leaves) -> None:
    for name, elements in (
        ("driver.version", ("kmd_version", "driver_version")),
        ("driver.cuda.version", ("cuda_umd_version", "cuda_version")),
    ):
        element, text = _first(head, elements)
        _tell(draft, name, text, version, element)
        if not text:
            draft.gap(name, "this nvidia-smi does not print it")


def _first(leaves: _Leaves, elements: Sequence[str]) -> tuple[str, str]:
    """The first of these elements that is there and says something, with its text."""
    found = ("", "")
    for element in elements:
        for text in leaves.get(element, ())[:1]:
            if not is_absent(text):
                return element, text
            found = found if found[0] else (element, text)
    return found


def _tell(
    draft: Draft, name: str, text: str, read: Callable[[str], Value | None], element: str
) -> None:
    """Tell what an element says; nothing for N/A; a gap for what is neither."""
    if is_absent(text):
        return
    value = None if is_sick(text) else read(text)
    if value is None:
        draft.gap(name, f"nvidia-smi -q -x printed {text[:60]!r} as {element}")
    else:
        draft.add(name, value, f"nvidia-smi -q -x: {element}")


def _gpus(draft: Draft, document: _Document, said: str, *, whole: bool) -> None:
    lost = no_handles(said)
    taken = {each.gpu for each in lost if each.gpu is not None}
    numbers = [n for n in range(len(document.gpus) + len(taken)) if n not in taken]
    warned = corrupted_inforoms(said)
    _, text = _first(document.head, ("attached_gpus",))
    _tell(draft, "gpu.count", text, lambda text: amount(text, ""), "attached_gpus")
    for number, gpu in zip(numbers, document.gpus, strict=False):
        _gpu(draft, number, gpu, warned)
    for gone in lost:
        if gone.gpu is None:
            draft.gap("gpu.*.*", gone.line)
            continue
        draft.add(f"gpu.{gone.gpu}.status", gone.error, "nvidia-smi -q -x")
        draft.add(f"gpu.{gone.gpu}.pci.address", gone.address, "nvidia-smi -q -x")
        draft.gap(f"gpu.{gone.gpu}.*", gone.line)
    count = amount(text, "")
    answered = len(document.gpus) + len(taken)
    if not whole:
        where = f"in GPU {answered}" if document.inside else f"after {answered} GPUs"
        why = f": {document.damage}" if document.damage else ""
        reason = f"the output of nvidia-smi -q -x is cut {where}{why}"
        draft.cut(reason)
        if isinstance(count, int) and answered <= count <= _MAX_GPUS:
            for number in range(answered, count):
                draft.gap(f"gpu.{number}.*", reason)
        else:
            draft.gap("gpu.*.*", reason)
            draft.gap("gpu.count", reason)
    elif count != answered:
        reason = f"nvidia-smi -q -x tells of {answered} of {text or '?'} GPUs"
        draft.cut(reason)
        draft.gap("gpu.count", reason)
        draft.gap("gpu.*.*", reason)
    for name in _NOT_TOLD:
        draft.gap(name, "nvidia-smi -q does not tell it")


class _Row(NamedTuple):
    """A fact of a GPU, how its text is read, and the elements that hold it, best first."""

    name: str
    read: Callable[[str], Value | None]
    elements: tuple[str, ...]


_LINK = "pci/pci_gpu_link_info"
_POWER = ("gpu_power_readings", "power_readings")

_ROWS = (
    _Row("name", as_is, ("product_name",)),
    _Row("uuid", as_is, ("uuid",)),
    _Row("serial", as_is, ("serial",)),
    _Row("pci.address", pci_address, ("pci/pci_bus_id",)),
    _Row("vbios.version", as_is, ("vbios_version",)),
    _Row("memory.total", mebibytes, ("fb_memory_usage/total",)),
    _Row("memory.used", mebibytes, ("fb_memory_usage/used",)),
    _Row("memory.free", mebibytes, ("fb_memory_usage/free",)),
    _Row("bar1.total", mebibytes, ("bar1_memory_usage/total",)),
    _Row("pcie.gen.current", plain, (f"{_LINK}/pcie_gen/current_link_gen",)),
    _Row("pcie.gen.max", plain, (f"{_LINK}/pcie_gen/max_link_gen",)),
    _Row("pcie.gen.device_max", plain, (f"{_LINK}/pcie_gen/max_device_link_gen",)),
    _Row("pcie.width.current", lanes, (f"{_LINK}/link_widths/current_link_width",)),
    _Row("pcie.width.max", lanes, (f"{_LINK}/link_widths/max_link_width",)),
    _Row("pcie.replays", plain, ("pci/replay_counter",)),
    _Row(
        "power.draw",
        watts,
        tuple(
            f"{group}/{part}"
            for group in _POWER
            for part in ("average_power_draw", "power_draw", "instant_power_draw")
        ),
    ),
    _Row(
        "power.limit",
        watts,
        tuple(
            f"{group}/{part}"
            for group in _POWER
            for part in ("current_power_limit", "enforced_power_limit", "power_limit")
        ),
    ),
    _Row("power.limit_default", watts, tuple(f"{g}/default_power_limit" for g in _POWER)),
    _Row("power.limit_max", watts, tuple(f"{g}/max_power_limit" for g in _POWER)),
    _Row("clocks.sm.current", megahertz, ("clocks/sm_clock",)),
    _Row("clocks.sm.max", megahertz, ("max_clocks/sm_clock",)),
    _Row("clocks.mem.current", megahertz, ("clocks/mem_clock",)),
    _Row("clocks.mem.max", megahertz, ("max_clocks/mem_clock",)),
    _Row("pstate", as_is, ("performance_state",)),
    _Row("temperature", celsius, ("temperature/gpu_temp",)),
    _Row("utilization", percent, ("utilization/gpu_util",)),
    _Row("ecc.current", switch, ("ecc_mode/current_ecc",)),
    _Row("ecc.pending", switch, ("ecc_mode/pending_ecc",)),
    _Row("remapped_rows.correctable", plain, ("remapped_rows/remapped_row_corr",)),
    _Row("remapped_rows.uncorrectable", plain, ("remapped_rows/remapped_row_unc",)),
    _Row("remapped_rows.pending", flag, ("remapped_rows/remapped_row_pending",)),
    _Row("remapped_rows.failed", flag, ("remapped_rows/remapped_row_failure",)),
    _Row("recovery_action", words_joined, ("gpu_recovery_action",)),
    _Row("mig.current", switch, ("mig_mode/current_mig",)),
    _Row("mig.pending", switch, ("mig_mode/pending_mig",)),
    _Row("compute_mode", words_joined, ("compute_mode",)),
    _Row("persistence_mode", switch, ("persistence_mode",)),
    _Row("driver_model", as_is, ("driver_model/current_dm",)),
    _Row("fabric.state", words_joined, ("fabric/state",)),
    _Row("fabric.status", as_is, ("fabric/status",)),
)
_VITAL = ("product_name", "fb_memory_usage/total", "performance_state", "temperature/gpu_temp")


def _gpu(draft: Draft, number: int, gpu: _Leaves, warned: dict[str, str]) -> None:
    def told(name: str, value: Value | None, element: str) -> None:
        draft.add(f"gpu.{number}.{name}", value, f"nvidia-smi -q -x: {element}")

    for row in _ROWS:
        element, text = _first(gpu, row.elements)
        group = row.elements[0].rpartition("/")[0]
        if element:
            _tell(draft, f"gpu.{number}.{row.name}", text, row.read, element)
        elif gpu.get(group) != ["N/A"]:  # a group that the GPU lacks says so as a whole
            draft.gap(f"gpu.{number}.{row.name}", "this nvidia-smi does not print it")
    ids = [gpu.get(f"pci/{part}", [""])[0] for part in ("pci_device_id", "pci_sub_system_id")]
    if all(re.fullmatch(r"[0-9A-Fa-f]{8}", text) for text in ids):
        told("pci.id", pci_id(int(ids[0], 16), int(ids[1], 16)), "pci/pci_device_id")
    firmware = gpu.get("gsp_firmware_version", [""])[0]
    if "driver.gsp.version" not in draft and version(firmware):
        draft.add("driver.gsp.version", version(firmware), "nvidia-smi -q -x: gsp_firmware_version")
    sick = _sickness(gpu)
    warning = warned.get(pci_address(gpu.get("pci/pci_bus_id", [""])[0]) or "")
    told("status", sick or warning or "ok", "gpu")
    if sick:  # what such a GPU says by leaving things out means nothing
        draft.gap(f"gpu.{number}.*", f"nvidia-smi -q -x printed {sick!r}")
        return
    _reasons(draft, number, gpu)
    told("ecc.uncorrected", _uncorrected(gpu), "ecc_errors/volatile")
    if gpu.get("mig_mode/current_mig") == ["Enabled"]:
        sizes: list[Value] = [
            " ".join(size.split())[:40]
            for size in gpu.get("mig_devices/mig_device/fb_memory_usage/total", [])
        ]
        told("mig.instances", sizes, "mig_devices/mig_device")
    if "processes" in gpu and (not gpu["processes"][0] or "processes/process_info" in gpu):
        told("processes", len(gpu.get("processes/process_info", [])), "processes")


def _sickness(gpu: _Leaves) -> str:
    """What nvidia-smi printed in place of what every healthy GPU answers; nothing if it is well."""
    for texts in gpu.values():
        for text in texts:
            if text in ("GPU is lost", "GPU requires reset"):
                return text
    for element in _VITAL:
        for text in gpu.get(element, ()):
            if is_sick(text):
                return text
    return ""


_REASON = regex(r"clocks_(event|throttle)_reasons/clocks_\1_reason_([a-z_]{1,60})\Z")


def _reasons(draft: Draft, number: int, gpu: _Leaves) -> None:
    name = f"gpu.{number}.clocks.event_reasons"
    active: list[Value] = []
    known = False
    for element, texts in gpu.items():
        match = _REASON.match(element)
        if match is None:
            continue
        known = known or texts[0] in ("Active", "Not Active")
        if is_sick(texts[0]):
            draft.gap(name, f"nvidia-smi -q -x printed {texts[0]!r}")
            return
        if texts[0] == "Active":
            active.append(match[2].replace("display_clocks", "display_clock"))
    if known:
        draft.add(name, active, "nvidia-smi -q -x: clocks_event_reasons")


def _uncorrected(gpu: _Leaves) -> int | None:
    """Uncorrected errors since the driver was loaded, over the ways they were split up so far."""
    total = amount(gpu.get("ecc_errors/volatile/double_bit/total", [""])[0], "")
    if isinstance(total, int):
        return total
    counts = [
        amount(gpu[f"ecc_errors/volatile/{part}"][0], "")
        for part in (
            "sram_uncorrectable",
            "sram_uncorrectable_parity",
            "sram_uncorrectable_secded",
            "dram_uncorrectable",
        )
        if f"ecc_errors/volatile/{part}" in gpu
    ]
    numbers = [count for count in counts if isinstance(count, int)]
    return sum(numbers) if numbers and len(numbers) == len(counts) else None
