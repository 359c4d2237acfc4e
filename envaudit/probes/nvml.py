"""What the driver says of itself and of every GPU, through NVIDIA's management library (NVML).

NVML counts all GPUs in PCI order, whatever CUDA_VISIBLE_DEVICES says. Every question is asked
and told on its own, what is safe before what may hang, so that a GPU that hangs or is lost
costs only what comes after it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from envaudit.importers import pci_address, pci_id
from envaudit.model import Value
from envaudit.probes import Look, NotHere, Skipped

LIBRARY = "libnvidia-ml.so.1"

# Return codes of nvml.h, by number: nvidia-ml-py names only those its own version knows.
_INVALID_ARGUMENT = 2
_NOT_SUPPORTED = 3
_NOT_FOUND = 6
_LIBRARY_NOT_FOUND = 12
_FUNCTION_NOT_FOUND = 13
_VERSION_MISMATCH = 25
_OF_ANOTHER_DRIVER = frozenset({_FUNCTION_NOT_FOUND, _VERSION_MISMATCH})
_NO_LONGER_THERE = frozenset({15, 16})
"""GPU is lost, GPU requires reset: no further question makes sense."""
_UNKNOWN = 999


def look(look: Look) -> None:
    """Ask NVML: first the driver, then who the GPUs are, then how each of them does."""
    if not look.host.live and not (look.host.recorded or {}).get("nvml"):
        raise Skipped("only files of this machine are at hand")
    import pynvml

    nvml = _Nvml(look, pynvml)
    if not nvml.start():
        return
    nvml.driver()
    handles = nvml.identities()
    nvml.firmware(handles)
    for gpu, handle in list(handles.items()):
        if not nvml.state(gpu, handle):
            del handles[gpu]
    nvml.peers(handles)


class _Ask(NamedTuple):
    """One question to a GPU: the facts it tells, and the calls for it, newest first."""

    names: tuple[str, ...]
    calls: tuple[tuple[Any, ...], ...]
    """Function name and arguments after the handle."""
    read: Callable[[Any], Sequence[Value | None]]


def _one(value: Any) -> Sequence[Value | None]:
    return (value,)


def _text(value: Any) -> Sequence[Value | None]:
    return (str(value).strip(),)


def _watts(milliwatts: int) -> int | float:
    return milliwatts / 1000 if milliwatts % 1000 else milliwatts // 1000


def _switches(states: Any) -> Sequence[Value | None]:
    return tuple("enabled" if state else "disabled" for state in states)


def _pci(info: Any) -> Sequence[Value | None]:
    address = info.busId
    if isinstance(address, bytes):
        address = address.decode("ascii", "replace")
    return pci_address(address), pci_id(info.pciDeviceId, info.pciSubSystemId)


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
)
"""What each bit of the clocks event reasons stands for, from the lowest on."""


def _reasons(bits: int) -> Sequence[Value | None]:
    names: list[Value] = [name for bit, name in enumerate(_REASONS) if bits >> bit & 1]
    unknown = (bit for bit in range(len(_REASONS), 64) if bits >> bit & 1)
    return (names + [f"bit:0x{1 << bit:x}" for bit in unknown],)


_MEMORY_V2 = 0x02000028
_SM, _MEM = 1, 2
_UNCORRECTED, _VOLATILE = 1, 0

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
        (("nvmlDeviceGetDriverModel",), ("nvmlDeviceGetDriverModel_v1",)),
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
)
"""Configuration first, then what the GPU itself has to be asked for."""


class _Gone(Exception):
    """The GPU does not answer any more."""


class _Nvml:
    """One session with NVML: asks one thing at a time and tells each answer at once."""

    def __init__(self, look: Look, api: Any) -> None:
        self.look = look
        self.api = api

    # -- asking --------------------------------------------------------------------------

    def said(self, code: int) -> str:
        """An error as NVML prints it: nvidia-ml-py has other words for some."""
        try:
            text = self.api.nvmlErrorString(code)
            return str(text.decode() if isinstance(text, bytes) else text)
        except (self.api.NVMLError, AttributeError, ValueError):
            return str(self.api.NVMLError(code))

    def call(self, calls: Sequence[tuple[Any, ...]], *handle: Any) -> tuple[str, Any]:
        """The first of these calls that this driver knows, by name, and its answer."""
        refusal = self.api.NVMLError(_FUNCTION_NOT_FOUND)
        for name, *arguments in calls:
            function = getattr(self.api, name, None)
            if function is None:
                continue
            try:
                return name, function(*handle, *arguments)
            except self.api.NVMLError as error:
                if error.value not in _OF_ANOTHER_DRIVER | {_NOT_SUPPORTED}:
                    raise
                if error.value == _NOT_SUPPORTED or refusal.value in _OF_ANOTHER_DRIVER:
                    refusal = error
        raise refusal

    def refused(self, names: Sequence[str], error: Any) -> None:
        """Tell what a refusal leaves unknown; "not supported" is an answer and leaves nothing."""
        if error.value == _NOT_SUPPORTED:
            return
        reason = (
            "not in this driver's NVML"
            if error.value in _OF_ANOTHER_DRIVER
            else f"NVML: {self.said(error.value)}"
        )
        for name in names:
            self.look.gap(name, reason)
        if error.value in _NO_LONGER_THERE:
            raise _Gone(self.said(error.value))

    def ask(self, prefix: str, question: _Ask, *handle: Any) -> int:
        """Tell the answer to one question; the answer is NVML's return code."""
        names = [prefix + name for name in question.names]
        try:
            source, answer = self.call(question.calls, *handle)
            for name, value in zip(names, question.read(answer), strict=True):
                self.look.add(name, value, f"NVML {source}")
        except self.api.NVMLError as error:
            self.refused(names, error)
            return int(error.value)
        except (ValueError, TypeError, AttributeError, OverflowError) as problem:
            for name in names:
                self.look.gap(name, f"NVML answered something else: {problem}")
        return 0

    # -- the driver ----------------------------------------------------------------------

    def start(self) -> bool:
        """Open NVML and tell how that went; False where there is no more to ask."""
        try:
            self.api.nvmlInit()
        except self.api.NVMLError as error:
            text = self.said(error.value)
            if error.value == _LIBRARY_NOT_FOUND:
                text = _why_not_loaded() or text
            self.look.add("nvml.status", text, "NVML nvmlInit")
            # This alone answers without the driver, and is half of a version mismatch.
            self.ask("", _Ask(("nvml.version",), (("nvmlSystemGetNVMLVersion",),), _text))
            for name in ("gpu.*.*", "gpu.count", "driver.version", "driver.cuda.version"):
                self.look.gap(name, f"NVML: {text}")
            self.look.gap("driver.gsp.version", f"NVML: {text}")
            return False
        self.look.add("nvml.status", "ok", "NVML nvmlInit")
        return True

    def driver(self) -> None:
        """Versions of the library and the driver."""
        self.ask("", _Ask(("nvml.version",), (("nvmlSystemGetNVMLVersion",),), _text))
        self.ask("", _Ask(("driver.version",), (("nvmlSystemGetDriverVersion",),), _text))
        # The newer call asks libcuda and fails without one; the older knows it by itself.
        question = _Ask(
            ("driver.cuda.version",),
            (("nvmlSystemGetCudaDriverVersion_v2",),),
            lambda number: (f"{number // 1000}.{number % 1000 // 10}" if number > 0 else None,),
        )
        try:
            self.call(question.calls)
        except self.api.NVMLError:
            question = question._replace(calls=(("nvmlSystemGetCudaDriverVersion",),))
        self.ask("", question)

    def firmware(self, handles: dict[int, Any]) -> None:
        """Version of the GSP firmware, of the first GPU that runs it."""
        for handle in handles.values():
            try:
                enabled, _ = self.api.nvmlDeviceGetGspFirmwareMode(handle)
                if enabled:
                    version = self.api.nvmlDeviceGetGspFirmwareVersion(handle)
                    text = version.decode() if isinstance(version, bytes) else str(version)
                    source = "NVML nvmlDeviceGetGspFirmwareVersion"
                    self.look.add("driver.gsp.version", text, source)
                    return
            except self.api.NVMLError as error:
                if error.value not in _NO_LONGER_THERE:
                    self.refused(["driver.gsp.version"], error)
            except (AttributeError, ValueError, TypeError):
                self.look.gap("driver.gsp.version", "not in this nvidia-ml-py")

    # -- the GPUs ------------------------------------------------------------------------

    def identities(self) -> dict[int, Any]:
        """Tell how many GPUs there are and which; the handles of those that answer."""
        for name in ("gpu.*.xid", "gpu.*.throttle.*"):
            self.look.gap(name, "NVML does not tell what was before")
        try:
            count = int(self.api.nvmlDeviceGetCount())
        except self.api.NVMLError as error:
            for name in ("gpu.count", "gpu.*.*"):
                self.look.gap(name, f"NVML: {self.said(error.value)}")
            return {}
        self.look.add("gpu.count", count, "NVML nvmlDeviceGetCount")
        handles: dict[int, Any] = {}
        for gpu in range(count):
            try:
                handles[gpu] = self.api.nvmlDeviceGetHandleByIndex(gpu)
            except self.api.NVMLError as error:
                self.gone(gpu, self.said(error.value), "nvmlDeviceGetHandleByIndex")
                continue
            try:
                for question in _IDENTITY:
                    if self.ask(f"gpu.{gpu}.", question, handles[gpu]) == _UNKNOWN:
                        raise _Gone(self.said(_UNKNOWN))
            except _Gone as reason:
                self.gone(gpu, str(reason), "nvmlDeviceGetName")
                del handles[gpu]
        return handles

    def gone(self, gpu: int, reason: str, source: str) -> None:
        """Tell that a GPU is there but does not answer."""
        self.look.add(f"gpu.{gpu}.status", reason, f"NVML {source}")
        self.look.gap(f"gpu.{gpu}.*", f"NVML: {reason}")

    def state(self, gpu: int, handle: Any) -> bool:
        """Tell configuration and state of one GPU; False where it got lost over that."""
        prefix = f"gpu.{gpu}."
        try:
            for question in _STATE:
                self.ask(prefix, question, handle)
            for part in (
                self.recovery,
                self.node,
                self.links,
                self.fabric,
                self.instances,
                self.processes,
            ):
                part(prefix, handle)
        except _Gone as reason:
            self.gone(gpu, str(reason), "nvmlDeviceGetCurrentClocksEventReasons")
            return False
        self.look.add(f"{prefix}status", "ok", "NVML")
        return True

    def recovery(self, prefix: str, handle: Any) -> None:
        """What the driver asks for after an error, a field value since driver 550 or so."""
        field = 230  # NVML_FI_DEV_GET_GPU_RECOVERY_ACTION

        def read(values: Any) -> Sequence[Value | None]:
            value = values[0]
            if value.nvmlReturn == _INVALID_ARGUMENT:
                raise self.api.NVMLError(_FUNCTION_NOT_FOUND)
            if value.nvmlReturn:
                raise self.api.NVMLError(value.nvmlReturn)
            return _choice(_RECOVERY)(value.value.uiVal)

        question = _Ask(("recovery_action",), (("nvmlDeviceGetFieldValues", [field]),), read)
        self.ask(prefix, question, handle)

    def node(self, prefix: str, handle: Any) -> None:
        """NUMA node that the GPU hangs on: the kernel's own word, else NVML's affinity mask."""
        try:
            address = _pci(self.api.nvmlDeviceGetPciInfo(handle))[0]
        except (self.api.NVMLError, AttributeError, ValueError, TypeError):
            address = None
        path = f"/sys/bus/pci/devices/{address}/numa_node"
        said = self.look.host.read_or(path).strip() if address else ""
        if said.isascii() and said.isdigit():
            self.look.add(f"{prefix}numa_node", int(said), path)
        elif said:
            self.look.gap(f"{prefix}numa_node", f"the kernel does not know it ({said} in {path})")
        else:
            words, node_scope = 16, 0

            def lowest(mask: Any) -> Sequence[Value | None]:
                bits = sum(word << 64 * place for place, word in enumerate(mask))
                return ((bits & -bits).bit_length() - 1 if bits else None,)

            question = _Ask(
                ("numa_node",), (("nvmlDeviceGetMemoryAffinity", words, node_scope),), lowest
            )
            self.ask(prefix, question, handle)

    def links(self, prefix: str, handle: Any) -> None:
        """NVLinks that the GPU has, and how many of them are up."""
        total = active = 0
        for link in range(64):
            try:
                active += bool(self.api.nvmlDeviceGetNvLinkState(handle, link))
                total += 1
            except self.api.NVMLError as error:
                if error.value == _INVALID_ARGUMENT or (
                    error.value == _NOT_SUPPORTED and not total
                ):
                    break
                if error.value != _NOT_SUPPORTED:
                    self.refused([f"{prefix}nvlink.active", f"{prefix}nvlink.total"], error)
                    return
        if total:
            self.look.add(f"{prefix}nvlink.active", active, "NVML nvmlDeviceGetNvLinkState")
            self.look.add(f"{prefix}nvlink.total", total, "NVML nvmlDeviceGetNvLinkState")

    def fabric(self, prefix: str, handle: Any) -> None:
        """How far the GPU got in joining the NVLink fabric, and with what result."""
        from ctypes import byref

        names = [f"{prefix}fabric.state", f"{prefix}fabric.status"]
        error = self.api.NVMLError(_FUNCTION_NOT_FOUND)
        for function, kind in (
            ("nvmlDeviceGetGpuFabricInfoV", "c_nvmlGpuFabricInfo_v2_t"),
            ("nvmlDeviceGetGpuFabricInfo", "c_nvmlGpuFabricInfo_t"),
        ):
            try:
                info = getattr(self.api, kind)()
                getattr(self.api, function)(handle, byref(info))
            except self.api.NVMLError as refusal:
                error = refusal
                continue
            except AttributeError:
                continue
            if info.state:  # 0 is a GPU without a fabric
                state = _FABRIC.get(info.state, f"code {info.state}")
                self.look.add(names[0], state, f"NVML {function}")
                if state == "completed":
                    self.look.add(names[1], self.said(info.status), f"NVML {function}")
            return
        self.refused(names, error)

    def instances(self, prefix: str, handle: Any) -> None:
        """MIG instances as "3g.20gb 19968 MiB", where the GPU is in MIG mode."""
        name = f"{prefix}mig.instances"
        try:
            if not self.api.nvmlDeviceGetMigMode(handle)[0]:
                return
            found: list[Value] = []
            for index in range(self.api.nvmlDeviceGetMaxMigDeviceCount(handle)):
                try:
                    instance = self.api.nvmlDeviceGetMigDeviceHandleByIndex(handle, index)
                except self.api.NVMLError as error:
                    if error.value in (_NOT_FOUND, _INVALID_ARGUMENT):
                        continue
                    raise
                profile = str(self.api.nvmlDeviceGetName(instance)).rpartition("MIG ")[2]
                memory = self.api.nvmlDeviceGetMemoryInfo(instance).total
                found.append(f"{profile} {memory >> 20} MiB")
            self.look.add(name, found, "NVML nvmlDeviceGetMigDeviceHandleByIndex")
        except self.api.NVMLError as error:
            self.refused([name], error)

    def processes(self, prefix: str, handle: Any) -> None:
        """How many processes use the GPU, and how many of them are another user's."""
        name, foreign = f"{prefix}processes", f"{prefix}processes.foreign"
        source = "NVML nvmlDeviceGetComputeRunningProcesses"
        pids: set[int] = set()
        looked = False
        for kind in ("Compute", "Graphics"):
            function = f"nvmlDeviceGet{kind}RunningProcesses"
            try:
                _, found = self.call(((f"{function}_v3",), (f"{function}_v2",)), handle)
                pids.update(process.pid for process in found)
                looked = True
            except self.api.NVMLError as error:
                self.refused([name, foreign], error)
                if error.value != _NOT_SUPPORTED:
                    return
        if not looked:
            return
        self.look.add(name, len(pids), source)
        if not self.look.host.live:
            self.look.gap(foreign, "owners can be told on the machine itself only")
            return
        owners = []
        for pid in pids:
            try:
                owners.append(self.look.host.stat(f"/proc/{pid}").st_uid)
            except OSError:  # ended just now, or seen from another process namespace
                self.look.gap(foreign, f"process {pid} cannot be seen from here")
                return
        own = os.getuid()
        self.look.add(foreign, sum(owner != own for owner in owners), f"{source}, /proc")

    def peers(self, handles: dict[int, Any]) -> None:
        """Whether each GPU can read the memory of each other one."""
        read = 0  # NVML_P2P_CAPS_INDEX_READ
        for gpu, handle in handles.items():
            for other, peer in handles.items():
                if other != gpu:
                    question = _Ask(
                        (f"p2p.{other}",), (("nvmlDeviceGetP2PStatus", peer, read),), _choice(_PEER)
                    )
                    try:
                        self.ask(f"gpu.{gpu}.", question, handle)
                    except _Gone:
                        break


def _why_not_loaded() -> str:
    """What keeps the library from being loaded, where it is there at all. Raises NotHere."""
    from ctypes import CDLL

    try:
        CDLL(LIBRARY)
    except OSError as problem:
        text = str(problem)
        if text.startswith(f"{LIBRARY}: cannot open shared object file: No such file"):
            raise NotHere(f"no {LIBRARY}") from None
        return f"{LIBRARY} cannot be loaded: {text}"
    return ""
