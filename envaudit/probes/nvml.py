"""What the driver says of itself and of every GPU, through NVIDIA's management library (NVML).

NVML counts all GPUs in PCI order, whatever CUDA_VISIBLE_DEVICES says. Every question is asked
and told on its own, what is safe before what may hang, so that a GPU that hangs or is lost
costs only what comes after it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from envaudit.addresses import pci_address, pci_id
from envaudit.model import GPUS_LIMIT, Value
from envaudit.probes import Look, NotHere, Skipped
from envaudit.restrain import restrain

LIBRARY = "libnvidia-ml.so.1"

# Return codes of nvml.h, by number: nvidia-ml-py names only those its own version knows.
_INVALID_ARGUMENT = 2
_NOT_SUPPORTED = 3
_NOT_FOUND = 6
_FUNCTION_NOT_FOUND = 13
_VERSION_MISMATCH = 25
_OF_ANOTHER_DRIVER = frozenset({_FUNCTION_NOT_FOUND, _VERSION_MISMATCH})
_NO_LONGER_THERE = frozenset({15, 16})
"""GPU is lost, GPU requires reset: no further question makes sense."""
_UNKNOWN = 999
_HARMLESS = frozenset({0, _NOT_SUPPORTED, 4}) | _OF_ANOTHER_DRIVER
"""Answers, no permission (4) among them, that do not mean that the GPU is unwell."""


def look(look: Look) -> None:
    """Ask NVML: first the driver, then who the GPUs are, then how each of them does."""
    if not look.host.live and not (look.host.recorded or {}).get("nvml"):
        raise Skipped("only files of this machine are at hand")
    restrain(look.host)
    broken = _why_not_loaded()
    if broken:
        look.add("nvml.status", broken, "loading " + LIBRARY)
        _nothing(look, broken)
        return
    import pynvml

    nvml = _Nvml(look, pynvml)
    if nvml.start():
        nvml.driver()
        handles = nvml.identities()
        nvml.firmware(handles)
        nvml.peers({gpu: handle for gpu, handle in handles.items() if nvml.state(gpu, handle)})


class _Ask(NamedTuple):
    """One question to a GPU: the facts it tells, and the calls for it, newest first."""

    names: tuple[str, ...]
    calls: tuple[tuple[Any, ...], ...]
    """Function name and arguments after the handle."""
    read: Callable[[Any], Sequence[Value | None]]


def _one(value: Any) -> Sequence[Value | None]:
    return (value,)


def _words(value: Any) -> str:
    """A text; nvidia-ml-py leaves some as bytes."""
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
    return text.strip()


def _text(value: Any) -> Sequence[Value | None]:
    return (_words(value),)


def _watts(milliwatts: int) -> int | float:
    return milliwatts / 1000 if milliwatts % 1000 else milliwatts // 1000


def _switches(states: Any) -> Sequence[Value | None]:
    return tuple("enabled" if state else "disabled" for state in states)


def _pci(info: Any) -> Sequence[Value | None]:
    return pci_address(_words(info.busId)), pci_id(info.pciDeviceId, info.pciSubSystemId)


def _choice(words: dict[int, str]) -> Callable[[Any], Sequence[Value | None]]:
    return lambda code: (words.get(code, f"code {code}"),)


_COMPUTE_MODES = {
    0: "default",
    1: "exclusive_thread",
    2: "prohibited",
    3: "exclusive_process",
}
_DRIVER_MODELS = {0: "WDDM", 1: "TCC", 2: "MCDM"}
_PEER = {
    0: "ok",
    1: "chipset not supported",
    2: "GPU not supported",
    3: "topology not supported",
    4: "disabled by regkey",
    5: "not supported",
    6: "unknown",
}
_FABRIC = {1: "not_started", 2: "in_progress", 3: "completed"}
_RECOVERY = {
    0: "none",
    1: "reset",
    2: "reboot",
    3: "drain_p2p",
    4: "drain_and_reset",
    5: "recover_imex_domain",
    6: "bus_reset",
    7: "system_reboot",
}
_REASONS = (
    "gpu_idle",
    "applications_clocks_setting",
    "sw_power_cap",
    "hw_slowdown",
    "sync_boost",
    "sw_thermal_slowdown",
    "hw_thermal_slowdown",
    "hw_power_brake_slowdown",
    "display_clock_setting",
    "board_limit",
    "reliability",
)
"""What each bit of the clocks event reasons stands for, from the lowest on."""


class _Code(Exception):
    """A return code that stands within an answer."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


def _recovery(fields: Any) -> Sequence[Value | None]:
    """Field 230, NVML_FI_DEV_GET_GPU_RECOVERY_ACTION; other drivers call it invalid."""
    code = fields[0].nvmlReturn
    if code:
        raise _Code(_FUNCTION_NOT_FOUND if code == _INVALID_ARGUMENT else code)
    return _choice(_RECOVERY)(fields[0].value.uiVal)


def _lowest_bit(words: Any) -> Sequence[Value | None]:
    bits = sum(word << 64 * place for place, word in enumerate(words))
    return ((bits & -bits).bit_length() - 1 if bits else None,)


def _reasons(bits: int) -> Sequence[Value | None]:
    names: list[Value] = [name for bit, name in enumerate(_REASONS) if bits >> bit & 1]
    unknown = (bit for bit in range(len(_REASONS), 64) if bits >> bit & 1)
    return (names + [f"bit:0x{1 << bit:x}" for bit in unknown],)


_MEMORY_V2 = 0x02000028
_SM, _MEM = 1, 2
_UNCORRECTED, _VOLATILE = 1, 0

_LIBRARY_VERSION = _Ask(("nvml.version",), (("nvmlSystemGetNVMLVersion",),), _text)

_IDENTITY = (
    _Ask(("name",), (("nvmlDeviceGetName",),), _text),
    _Ask(("uuid",), (("nvmlDeviceGetUUID",),), _text),
    _Ask(("pci.address", "pci.id"), (("nvmlDeviceGetPciInfo",),), _pci),
    _Ask(
        ("compute_capability",),
        (("nvmlDeviceGetCudaComputeCapability",),),
        lambda both: (f"{both[0]}.{both[1]}",),
    ),
    _Ask(
        ("memory.total", "memory.used", "memory.free"),
        (("nvmlDeviceGetMemoryInfo", _MEMORY_V2), ("nvmlDeviceGetMemoryInfo",)),
        lambda memory: (memory.total, memory.used, memory.free),
    ),
    _Ask(("serial",), (("nvmlDeviceGetSerial",),), _text),
)
"""Answered from what the driver keeps, mostly without asking the GPU."""

_STATE = (
    _Ask(("vbios.version",), (("nvmlDeviceGetVbiosVersion",),), _text),
    _Ask(("bar1.total",), (("nvmlDeviceGetBAR1MemoryInfo",),), lambda bar1: (bar1.bar1Total,)),
    _Ask(("persistence_mode",), (("nvmlDeviceGetPersistenceMode",),), lambda on: _switches([on])),
    _Ask(("compute_mode",), (("nvmlDeviceGetComputeMode",),), _choice(_COMPUTE_MODES)),
    _Ask(
        ("driver_model",),
        (("nvmlDeviceGetDriverModel",),),
        lambda both: _choice(_DRIVER_MODELS)(both[0]),
    ),
    _Ask(("ecc.current", "ecc.pending"), (("nvmlDeviceGetEccMode",),), _switches),
    _Ask(("mig.current", "mig.pending"), (("nvmlDeviceGetMigMode",),), _switches),
    _Ask(("pcie.gen.max",), (("nvmlDeviceGetMaxPcieLinkGeneration",),), _one),
    _Ask(("pcie.gen.device_max",), (("nvmlDeviceGetGpuMaxPcieLinkGeneration",),), _one),
    _Ask(("pcie.width.max",), (("nvmlDeviceGetMaxPcieLinkWidth",),), _one),
    _Ask(("clocks.sm.max",), (("nvmlDeviceGetMaxClockInfo", _SM),), _one),
    _Ask(("clocks.mem.max",), (("nvmlDeviceGetMaxClockInfo", _MEM),), _one),
    _Ask(
        ("power.limit_default",),
        (("nvmlDeviceGetPowerManagementDefaultLimit",),),
        lambda limit: (_watts(limit),),
    ),
    _Ask(
        ("power.limit_max",),
        (("nvmlDeviceGetPowerManagementLimitConstraints",),),
        lambda limits: (_watts(limits[1]),),
    ),
    _Ask(
        ("power.limit",),
        (("nvmlDeviceGetEnforcedPowerLimit",), ("nvmlDeviceGetPowerManagementLimit",)),
        lambda limit: (_watts(limit),),
    ),
    _Ask(
        ("pstate",),
        (("nvmlDeviceGetPerformanceState",),),
        lambda state: (f"P{state}" if 0 <= state <= 15 else None,),
    ),
    _Ask(
        ("clocks.event_reasons",),
        (
            ("nvmlDeviceGetCurrentClocksEventReasons",),
            ("nvmlDeviceGetCurrentClocksThrottleReasons",),
        ),
        _reasons,
    ),
    _Ask(("clocks.sm.current",), (("nvmlDeviceGetClockInfo", _SM),), _one),
    _Ask(("clocks.mem.current",), (("nvmlDeviceGetClockInfo", _MEM),), _one),
    _Ask(
        ("temperature",),
        (("nvmlDeviceGetTemperatureV", 0), ("nvmlDeviceGetTemperature", 0)),
        _one,
    ),
    _Ask(("utilization",), (("nvmlDeviceGetUtilizationRates",),), lambda rates: (rates.gpu,)),
    _Ask(
        ("power.draw",), (("nvmlDeviceGetPowerUsage",),), lambda milliwatts: (_watts(milliwatts),)
    ),
    _Ask(("pcie.gen.current",), (("nvmlDeviceGetCurrPcieLinkGeneration",),), _one),
    _Ask(("pcie.width.current",), (("nvmlDeviceGetCurrPcieLinkWidth",),), _one),
    _Ask(("pcie.replays",), (("nvmlDeviceGetPcieReplayCounter",),), _one),
    _Ask(("ecc.uncorrected",), (("nvmlDeviceGetTotalEccErrors", _UNCORRECTED, _VOLATILE),), _one),
    _Ask(
        (
            "remapped_rows.correctable",
            "remapped_rows.uncorrectable",
            "remapped_rows.pending",
            "remapped_rows.failed",
        ),
        (("nvmlDeviceGetRemappedRows",),),
        lambda rows: (rows[0], rows[1], bool(rows[2]), bool(rows[3])),
    ),
    _Ask(("recovery_action",), (("nvmlDeviceGetFieldValues", [230]),), _recovery),
)
"""Configuration first, then what the GPU itself has to be asked for."""

_NODE = _Ask(("numa_node",), (("nvmlDeviceGetMemoryAffinity", 16, 0),), _lowest_bit)
"""A mask of 1024 nodes, those near the GPU rather than the whole socket's."""

_VITAL = ("name", "uuid", "memory.total", "pstate", "temperature")
"""What a GPU answers whatever its kind; one that refuses these is not well."""


class _Gone(Exception):
    """The GPU does not answer any more."""


class _Nvml:
    """One session with NVML: asks one thing at a time and tells each answer at once."""

    def __init__(self, look: Look, api: Any) -> None:
        self.look = look
        self.api = api

    # -- asking --------------------------------------------------------------------------

    def attempt(self, function: str, *arguments: Any) -> tuple[Any, int]:
        """The answer to one call and NVML's return code, 0 where it is an answer."""
        known = getattr(self.api, function, None)
        if known is None:  # an older nvidia-ml-py
            return None, _FUNCTION_NOT_FOUND
        try:
            return known(*arguments), 0
        except self.api.NVMLError as error:
            return None, int(error.value)
        except UnicodeDecodeError:  # nvidia-ml-py takes every text for UTF-8
            return None, _UNKNOWN

    def said(self, code: int) -> str:
        """An error as NVML prints it; nvidia-ml-py has other words for some."""
        text, failed = self.attempt("nvmlErrorString", code)
        if failed:  # without the library
            return str(self.api.NVMLError(code))
        return _words(text)

    def refused(self, names: Sequence[str], code: int) -> None:
        """Tell what a refusal leaves unknown; "not supported" is an answer and leaves nothing."""
        if code == _NOT_SUPPORTED:
            return
        reason = (
            "not in this driver's NVML"
            if code in _OF_ANOTHER_DRIVER
            else f"NVML: {self.said(code)}"
        )
        for name in names:
            self.look.gap(name, reason)
        if code in _NO_LONGER_THERE and names[0].startswith("gpu."):
            raise _Gone(self.said(code))

    def ask(self, prefix: str, question: _Ask, *handle: Any) -> int:
        """Tell the answer to one question by the newest call that the driver knows.

        Returns NVML's return code. Raises _Gone where the GPU does not answer any more.
        """
        names = [prefix + name for name in question.names]
        refusal = _FUNCTION_NOT_FOUND
        for function, *arguments in question.calls:
            try:
                answer, code = self.attempt(function, *handle, *arguments)
                if code == 0:
                    for name, value in zip(names, question.read(answer), strict=True):
                        self.look.add(name, value, f"NVML {function}")
                    return 0
            except (ValueError, TypeError, AttributeError, OverflowError) as problem:
                for name in names:
                    self.look.gap(name, f"NVML answered something else: {problem}")
                return 0
            except _Code as said:
                code = said.code
            if code not in _OF_ANOTHER_DRIVER:
                refusal = code
            if code not in _OF_ANOTHER_DRIVER | {_NOT_SUPPORTED}:
                break
        self.refused(names, refusal)
        return refusal

    # -- the driver ----------------------------------------------------------------------

    def start(self) -> bool:
        """Open NVML and tell how that went; False where there is no more to ask."""
        _, code = self.attempt("nvmlInit")
        if code == 0:
            self.look.add("nvml.status", "ok", "NVML nvmlInit")
            return True
        self.look.add("nvml.status", self.said(code), "NVML nvmlInit")
        # This alone answers without the driver, and is one half of a version mismatch.
        self.ask("", _LIBRARY_VERSION)
        _nothing(self.look, f"NVML: {self.said(code)}")
        return False

    def driver(self) -> None:
        """Versions of the library and the driver."""
        self.ask("", _LIBRARY_VERSION)
        self.ask("", _Ask(("driver.version",), (("nvmlSystemGetDriverVersion",),), _text))
        # The newer call asks libcuda and fails without one; the older knows it by itself.
        calls = ("nvmlSystemGetCudaDriverVersion_v2", "nvmlSystemGetCudaDriverVersion")
        usable = [call for call in calls if self.attempt(call)[1] == 0] or calls
        self.ask(
            "",
            _Ask(
                ("driver.cuda.version",),
                ((usable[0],),),
                lambda number: (f"{number // 1000}.{number % 1000 // 10}" if number else None,),
            ),
        )

    def firmware(self, handles: Mapping[int, Any]) -> None:
        """Version of the GSP firmware, of the first GPU that runs it."""
        question = _Ask(("driver.gsp.version",), (("nvmlDeviceGetGspFirmwareVersion",),), _text)
        for handle in handles.values():
            # The version alone can be that of firmware that is switched off.
            mode, code = self.attempt("nvmlDeviceGetGspFirmwareMode", handle)
            if code:
                self.refused(question.names, code)
            elif mode[0] and self.ask("", question, handle) == 0:
                return

    # -- the GPUs ------------------------------------------------------------------------

    def identities(self) -> dict[int, Any]:
        """Tell how many GPUs there are and which; the handles of those that answer."""
        self.look.gap("gpu.*.xid", "NVML does not tell what was before")
        self.look.gap("gpu.*.throttle.*", "only told of a measured time")
        for name in ("gpu.*.segment", "gpu.*.open_module_only"):
            self.look.gap(name, "NVML does not tell; the name of the product does")
        count, code = self.attempt("nvmlDeviceGetCount")
        if code:
            for name in ("gpu.count", "gpu.*.*"):
                self.look.gap(name, f"NVML: {self.said(code)}")
            return {}
        if count > GPUS_LIMIT:
            for name in ("gpu.count", "gpu.*.*"):
                self.look.gap(name, f"NVML says {count} GPUs, more than any one machine has")
            return {}
        self.look.add("gpu.count", count, "NVML nvmlDeviceGetCount")
        handles: dict[int, Any] = {}
        for gpu in range(count):
            handle, code = self.attempt("nvmlDeviceGetHandleByIndex", gpu)
            sick = self.said(code) if code else self.questions(gpu, handle, _IDENTITY)
            if sick:
                self.gone(gpu, sick)
            else:
                handles[gpu] = handle
        return handles

    def questions(self, gpu: int, handle: Any, questions: Sequence[_Ask]) -> str:
        """Ask one GPU all of these; what is wrong with it, as NVML prints it, or nothing."""
        sick = ""
        for question in questions:
            try:
                code = self.ask(f"gpu.{gpu}.", question, handle)
            except _Gone as reason:
                return str(reason)
            if code not in _HARMLESS and question.names[0] in _VITAL:
                sick = sick or self.said(code)
        return sick

    def gone(self, gpu: int, reason: str) -> None:
        """Tell that a GPU is there but does not answer."""
        self.look.add(f"gpu.{gpu}.status", reason, "NVML")
        self.look.gap(f"gpu.{gpu}.*", f"NVML: {reason}")

    def state(self, gpu: int, handle: Any) -> bool:
        """Tell configuration and state of one GPU; False where it does not answer any more."""
        sick = self.questions(gpu, handle, _STATE)
        prefix = f"gpu.{gpu}."
        if not sick:
            try:
                self.node(prefix, handle)
                self.links(prefix, handle)
                self.fabric(prefix, handle)
                self.instances(prefix, handle)
                self.processes(prefix, handle)
            except _Gone as reason:
                sick = str(reason)
        if sick:
            self.gone(gpu, sick)
            return False
        self.look.add(f"{prefix}status", "ok", "NVML")
        return True

    def node(self, prefix: str, handle: Any) -> None:
        """NUMA node that the GPU hangs on: the kernel's own word, else NVML's affinity mask."""
        info, code = self.attempt("nvmlDeviceGetPciInfo", handle)
        path = "" if code else f"/sys/bus/pci/devices/{_pci(info)[0]}/numa_node"
        said = self.look.host.read_or(path).strip() if path else ""
        if said.isascii() and said.isdigit():
            self.look.add(f"{prefix}numa_node", int(said), path)
        elif said:
            self.look.gap(f"{prefix}numa_node", f"the kernel does not know it ({said} in {path})")
        else:
            self.ask(prefix, _NODE, handle)

    def links(self, prefix: str, handle: Any) -> None:
        """NVLinks that the GPU has, and how many of them are up."""
        total = active = 0
        for link in range(64):
            up, code = self.attempt("nvmlDeviceGetNvLinkState", handle, link)
            if code == 0:
                total += 1
                active += bool(up)
            elif code == _INVALID_ARGUMENT or (code == _NOT_SUPPORTED and not total):
                break  # behind the last one, or a GPU without any
            elif code != _NOT_SUPPORTED:
                self.refused([f"{prefix}nvlink.active", f"{prefix}nvlink.total"], code)
                return
        if total:
            self.look.add(f"{prefix}nvlink.active", active, "NVML nvmlDeviceGetNvLinkState")
            self.look.add(f"{prefix}nvlink.total", total, "NVML nvmlDeviceGetNvLinkState")

    def fabric(self, prefix: str, handle: Any) -> None:
        """How far the GPU got in joining the NVLink fabric, and with what result."""
        from ctypes import byref

        refusal = _FUNCTION_NOT_FOUND
        for function, kind in (
            ("nvmlDeviceGetGpuFabricInfoV", "c_nvmlGpuFabricInfo_v2_t"),
            ("nvmlDeviceGetGpuFabricInfo", "c_nvmlGpuFabricInfo_t"),
        ):
            if not hasattr(self.api, kind):
                continue
            info = getattr(self.api, kind)()
            _, code = self.attempt(function, handle, byref(info))
            if code == 0:
                if info.state:  # 0 is a GPU without a fabric
                    state = _FABRIC.get(info.state, f"code {info.state}")
                    self.look.add(f"{prefix}fabric.state", state, f"NVML {function}")
                    if state == "completed":
                        status = self.said(info.status)
                        self.look.add(f"{prefix}fabric.status", status, f"NVML {function}")
                return
            if code not in _OF_ANOTHER_DRIVER:
                refusal = code
        self.refused([f"{prefix}fabric.*"], refusal)

    def instances(self, prefix: str, handle: Any) -> None:
        """MIG instances as "3g.20gb 19968 MiB", where the GPU is in MIG mode."""
        mode, code = self.attempt("nvmlDeviceGetMigMode", handle)
        if code or not mode[0]:
            return  # told before, as mig.current
        names = [f"{prefix}mig.instances"]
        most, code = self.attempt("nvmlDeviceGetMaxMigDeviceCount", handle)
        found: list[Value] = []
        for index in range(most or 0):
            instance, code = self.attempt("nvmlDeviceGetMigDeviceHandleByIndex", handle, index)
            if code in (_NOT_FOUND, _INVALID_ARGUMENT):
                code = 0  # this slot is free
                continue
            memory = None
            if code == 0:
                memory, code = self.attempt("nvmlDeviceGetMemoryInfo", instance)
            if memory is None:
                break
            name, _ = self.attempt("nvmlDeviceGetName", instance)
            profile = _words(name).rpartition("MIG ")[2]
            found.append(f"{profile} {memory.total >> 20} MiB")
        if code:
            self.refused(names, code)
        else:
            self.look.add(names[0], found, "NVML nvmlDeviceGetMigDeviceHandleByIndex")

    def processes(self, prefix: str, handle: Any) -> None:
        """How many processes use the GPU, and how many of them are another user's."""
        name, foreign = f"{prefix}processes", f"{prefix}processes.foreign"
        pids: set[int] = set()
        for kind in ("Compute", "Graphics"):
            calls = [f"nvmlDeviceGet{kind}RunningProcesses_v{number}" for number in (3, 2)]
            found, code = self.attempt(calls[0], handle)
            if code in _OF_ANOTHER_DRIVER:
                found, code = self.attempt(calls[1], handle)
            if code and (code != _NOT_SUPPORTED or kind == "Compute"):
                self.refused([name, foreign], code)
                return
            pids.update(process.pid for process in found or ())
        source = "NVML nvmlDeviceGetComputeRunningProcesses"
        self.look.add(name, len(pids), source)
        if not self.look.host.live:
            self.look.gap(foreign, "owners can be told on the machine itself only")
            return
        own = os.getuid()
        try:
            others = sum(self.look.host.stat(f"/proc/{pid}").st_uid != own for pid in pids)
        except OSError:  # ended just now, or seen from another process namespace
            self.look.gap(foreign, "not every process on the GPU can be seen from here")
        else:
            self.look.add(foreign, others, f"{source}, owner of /proc/PID")

    def peers(self, handles: Mapping[int, Any]) -> None:
        """Whether each GPU can read the memory of each other one."""
        read = 0  # NVML_P2P_CAPS_INDEX_READ
        for gpu, handle in handles.items():
            for other, peer in handles.items():
                if other != gpu:
                    status, code = self.attempt("nvmlDeviceGetP2PStatus", handle, peer, read)
                    name = f"gpu.{gpu}.p2p.{other}"
                    if code == 0:
                        words = _PEER.get(status, f"code {status}")
                        self.look.add(name, words, "NVML nvmlDeviceGetP2PStatus")
                    elif code != _NOT_SUPPORTED:
                        self.look.gap(name, f"NVML: {self.said(code)}")


def _nothing(look: Look, reason: str) -> None:
    """Tell that all there is to ask stays unknown."""
    versions = ("driver.version", "driver.cuda.version", "driver.gsp.version")
    for name in (*versions, "gpu.count", "gpu.*.*"):
        look.gap(name, reason)


def _why_not_loaded() -> str:
    """What keeps the library from being loaded, where it is there at all; nothing if it is well.

    Raises NotHere without a library. nvidia-ml-py tells both as "not found", and takes longer.
    """
    from ctypes import CDLL

    try:
        CDLL(LIBRARY)
    except OSError as problem:
        text = str(problem)
        if text.startswith(f"{LIBRARY}: cannot open shared object file: No such file"):
            raise NotHere(f"no {LIBRARY}") from None
        return f"{LIBRARY} cannot be loaded: {text}"
    return ""
