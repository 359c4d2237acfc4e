"""The fake NVML under the real pynvml, each time in a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.fake_nvml import FUNCTIONS, GPU_KEYS, build, describe, environment, machines

Description = Mapping[str, object]
Start = Callable[..., "subprocess.Popen[str]"]
Run = Callable[..., "subprocess.CompletedProcess[str]"]

HEAD = """
import json, sys
from pynvml import *

def ask(function, *arguments):
    try:
        return function(*arguments)
    except NVMLError as error:
        return f"error {error.value}"

def show(value):
    print(json.dumps(value), flush=True)
"""

# What pynvml answers for one GPU, by the keys of the description.
READ = """
def read(gpu):
    pci, bar1 = nvmlDeviceGetPciInfo(gpu), nvmlDeviceGetBAR1MemoryInfo(gpu)
    memory = nvmlDeviceGetMemoryInfo(gpu, nvmlMemory_v2)
    load, rows = nvmlDeviceGetUtilizationRates(gpu), nvmlDeviceGetRemappedRows(gpu)
    fabric = c_nvmlGpuFabricInfo_v3_t()
    nvmlDeviceGetGpuFabricInfoV(gpu, byref(fabric))
    action = nvmlDeviceGetFieldValues(gpu, [NVML_FI_DEV_GET_GPU_RECOVERY_ACTION])[0]
    limits = nvmlDeviceGetPowerManagementLimitConstraints(gpu)
    clocks = {}
    for kind, which in (("graphics", 0), ("sm", 1), ("mem", 2), ("video", 3)):
        clocks[f"clocks.{kind}.current"] = nvmlDeviceGetClockInfo(gpu, which)
        clocks[f"clocks.{kind}.max"] = nvmlDeviceGetMaxClockInfo(gpu, which)
    return clocks | {
        "name": nvmlDeviceGetName(gpu),
        "uuid": nvmlDeviceGetUUID(gpu),
        "serial": nvmlDeviceGetSerial(gpu),
        "minor": nvmlDeviceGetMinorNumber(gpu),
        "architecture": nvmlDeviceGetArchitecture(gpu),
        "pci.address": pci.busId,
        "pci.id": pci.pciDeviceId,
        "pci.subsystem_id": pci.pciSubSystemId,
        "vbios.version": nvmlDeviceGetVbiosVersion(gpu),
        "compute_capability": "%d.%d" % nvmlDeviceGetCudaComputeCapability(gpu),
        "memory.total": memory.total,
        "memory.reserved": memory.reserved,
        "memory.used": memory.used,
        "bar1.total": bar1.bar1Total,
        "bar1.used": bar1.bar1Used,
        "pcie.gen.current": nvmlDeviceGetCurrPcieLinkGeneration(gpu),
        "pcie.gen.max": nvmlDeviceGetMaxPcieLinkGeneration(gpu),
        "pcie.gen.device_max": nvmlDeviceGetGpuMaxPcieLinkGeneration(gpu),
        "pcie.width.current": nvmlDeviceGetCurrPcieLinkWidth(gpu),
        "pcie.width.max": nvmlDeviceGetMaxPcieLinkWidth(gpu),
        "pcie.replays": nvmlDeviceGetPcieReplayCounter(gpu),
        "power.draw": nvmlDeviceGetPowerUsage(gpu),
        "power.limit": nvmlDeviceGetPowerManagementLimit(gpu),
        "power.limit_default": nvmlDeviceGetPowerManagementDefaultLimit(gpu),
        "power.limit_enforced": nvmlDeviceGetEnforcedPowerLimit(gpu),
        "power.limit_min": limits[0],
        "power.limit_max": limits[1],
        "clocks.event_reasons": nvmlDeviceGetCurrentClocksEventReasons(gpu),
        "clocks.event_reasons_supported": nvmlDeviceGetSupportedClocksEventReasons(gpu),
        "pstate": nvmlDeviceGetPerformanceState(gpu),
        "temperature": nvmlDeviceGetTemperature(gpu, NVML_TEMPERATURE_GPU),
        "utilization.gpu": load.gpu,
        "utilization.memory": load.memory,
        "ecc.current": nvmlDeviceGetEccMode(gpu)[0],
        "ecc.pending": nvmlDeviceGetEccMode(gpu)[1],
        "ecc.uncorrected.volatile": nvmlDeviceGetTotalEccErrors(gpu, 1, NVML_VOLATILE_ECC),
        "ecc.corrected.aggregate": nvmlDeviceGetTotalEccErrors(gpu, 0, NVML_AGGREGATE_ECC),
        "remapped_rows.correctable": rows[0],
        "remapped_rows.uncorrectable": rows[1],
        "remapped_rows.pending": rows[2],
        "remapped_rows.failed": rows[3],
        "recovery_action": action.value.uiVal,
        "mig.current": nvmlDeviceGetMigMode(gpu)[0],
        "mig.pending": nvmlDeviceGetMigMode(gpu)[1],
        "compute_mode": nvmlDeviceGetComputeMode(gpu),
        "persistence_mode": nvmlDeviceGetPersistenceMode(gpu),
        "display_active": nvmlDeviceGetDisplayActive(gpu),
        "gsp.version": nvmlDeviceGetGspFirmwareVersion(gpu).decode(),  # pynvml leaves bytes here
        "gsp.enabled": nvmlDeviceGetGspFirmwareMode(gpu)[0],
        "gsp.default": nvmlDeviceGetGspFirmwareMode(gpu)[1],
        "violation.0.time": nvmlDeviceGetViolationStatus(gpu, 0).violationTime,
        "nvlink.17.active": nvmlDeviceGetNvLinkState(gpu, 17),
        "nvlink.17.version": nvmlDeviceGetNvLinkVersion(gpu, 17),
        "fabric.state": fabric.state,
        "fabric.clique_id": fabric.cliqueId,
        "memory_affinity": nvmlDeviceGetMemoryAffinity(gpu, 1, 0)[0],
    }
"""


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fake-nvml")


@pytest.fixture
def start(libraries: Path, tmp_path: Path) -> Start:
    """Start a script under the fake library."""

    def started(
        script: str, description: Description, without: frozenset[str] = frozenset()
    ) -> subprocess.Popen[str]:
        file = tmp_path / "description"
        file.write_text(describe(description), encoding="utf-8")
        return subprocess.Popen(
            [sys.executable, "-c", HEAD + script],
            env={**os.environ, **environment(build(libraries, without), file)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    return started


@pytest.fixture
def run(start: Start) -> Run:
    """Run a script under the fake library to its end."""

    def ran(
        script: str, description: Description, without: frozenset[str] = frozenset()
    ) -> subprocess.CompletedProcess[str]:
        with start(script, description, without) as process:
            out, err = process.communicate(timeout=30)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    return ran


def told(done: subprocess.CompletedProcess[str]) -> Any:
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def expected(machine: Description, key: str) -> object:
    """What a description says of a key: its last line with the fewest stars."""

    def names(pattern: str) -> bool:
        own, parts = pattern.split("."), key.split(".")
        return len(own) == len(parts) and all(
            mine in (part, "*") for mine, part in zip(own, parts, strict=True)
        )

    patterns = [pattern for pattern in reversed(list(machine)) if names(pattern)]
    return machine[min(patterns, key=lambda pattern: pattern.count("*"))]


def test_eight_gpus_read_back_value_by_value(run: Run) -> None:
    machine = machines.h100_8() | {
        "gpu.2.temperature": 91,
        "gpu.2.clocks.event_reasons": 0x60,
        "gpu.5.nvlink.17.active": 0,
        "gpu.6.recovery_action": 2,
        "gpu.7.remapped_rows.failed": 1,
        "gpu.7.ecc.uncorrected.volatile": 2**40,
    }
    script = """
nvmlInit()
show({
    "versions": [nvmlSystemGetDriverVersion(), nvmlSystemGetNVMLVersion()],
    "cuda": [nvmlSystemGetCudaDriverVersion(), nvmlSystemGetCudaDriverVersion_v2()],
    "gpus": [read(nvmlDeviceGetHandleByIndex(i)) for i in range(nvmlDeviceGetCount())],
    "beyond": ask(nvmlDeviceGetHandleByIndex, 8),
})
nvmlShutdown()
"""
    answer = told(run(READ + script, machine))
    assert answer["versions"] == ["580.95.05", "13.580.95.05"]
    assert answer["cuda"] == [13000, 13000]
    assert answer["beyond"] == "error 2"
    assert len(answer["gpus"]) == 8
    for index, gpu in enumerate(answer["gpus"]):
        assert gpu == {key: expected(machine, f"gpu.{index}.{key}") for key in gpu}
    assert len({gpu["uuid"] for gpu in answer["gpus"]}) == 8


def test_memory_of_both_versions(run: Run) -> None:
    script = """
nvmlInit()
gpu = nvmlDeviceGetHandleByIndex(0)
first, second = nvmlDeviceGetMemoryInfo(gpu), nvmlDeviceGetMemoryInfo(gpu, nvmlMemory_v2)
show([first.total, first.used, first.free])
show([second.total, second.reserved, second.used, second.free])
"""
    memory = {"total": 100, "reserved": 10, "used": 7}
    machine = {"count": 1} | {f"gpu.0.memory.{key}": value for key, value in memory.items()}
    assert run(script, machine).stdout == "[100, 17, 83]\n[100, 10, 7, 83]\n"


@pytest.mark.parametrize(
    ("machine", "code", "text"),
    [
        (machines.error_mismatch(), 18, "Driver/library version mismatch"),
        (machines.error_not_loaded(), 9, "Driver Not Loaded"),
        ({"error.nvmlInit_v2": 999}, 999, "Unknown Error"),
    ],
)
def test_init_answers_an_error_and_its_text(
    run: Run, machine: Description, code: int, text: str
) -> None:
    script = """
code = ask(nvmlInit)
text = nvmlErrorString(int(code.split()[1]))
show([code, text, ask(nvmlDeviceGetCount), ask(nvmlSystemGetNVMLVersion)])
"""
    version = machine.get("system.nvml_version", "error 3")
    assert told(run(script, machine)) == [f"error {code}", text, "error 1", version]


def test_without_a_description_no_driver_is_loaded(libraries: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", HEAD + "show(ask(nvmlInit))"],
        env={
            **{name: value for name, value in os.environ.items() if name != "FAKE_NVML"},
            "LD_LIBRARY_PATH": str(build(libraries)),
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    assert told(done) == "error 9"


def test_a_missing_symbol(run: Run) -> None:
    script = """
nvmlInit()
gpu = nvmlDeviceGetHandleByIndex(0)
show([ask(nvmlDeviceGetTemperatureV, gpu, 0), ask(nvmlDeviceGetTemperature, gpu, 0)])
"""
    gone = frozenset({"nvmlDeviceGetTemperatureV"})
    assert told(run(script, machines.rtx4090(), gone)) == ["error 13", 38]
    assert told(run(script, machines.rtx4090())) == [38, 38]


@pytest.mark.parametrize("branch", sorted(machines.LACKING))
def test_an_older_driver_lacks_more(run: Run, branch: str) -> None:
    script = """
nvmlInit()
gpu = nvmlDeviceGetHandleByIndex(0)
show([ask(nvmlDeviceGetName, gpu), ask(nvmlDeviceGetCurrentClocksThrottleReasons, gpu),
      ask(nvmlDeviceGetCurrentClocksEventReasons, gpu), ask(nvmlDeviceGetNumaNodeId, gpu)])
"""
    answer = told(run(script, machines.rtx4090(), machines.LACKING[branch]))
    assert answer[:2] == ["NVIDIA GeForce RTX 4090", 1]
    assert answer[2] == ("error 13" if branch == "470" else 1)
    assert answer[3] == ("error 3" if branch == "550" else "error 13")


def test_an_error_of_one_gpu(run: Run) -> None:
    script = """
nvmlInit()
handles = [nvmlDeviceGetHandleByIndex(index) for index in range(nvmlDeviceGetCount())]
show([ask(nvmlDeviceGetTemperature, handle, 0) for handle in handles])
"""
    machine = machines.mixed() | {"gpu.1.error.nvmlDeviceGetTemperature": 15}
    assert told(run(script, machine)) == [38, "error 15"]


def test_a_lost_gpu_has_no_handle(run: Run) -> None:
    script = """
nvmlInit()
handles = [ask(nvmlDeviceGetHandleByIndex, index) for index in range(nvmlDeviceGetCount())]
show([one if isinstance(one, str) else nvmlDeviceGetMinorNumber(one) for one in handles])
"""
    assert told(run(script, machines.lost_gpu(3))) == [0, 1, 2, "error 15", 4, 5, 6, 7]


def test_what_is_not_described_is_not_supported(run: Run) -> None:
    script = """
nvmlInit()
gpu = nvmlDeviceGetHandleByIndex(0)
show([nvmlDeviceGetName(gpu)] + [ask(function, gpu) for function in (
    nvmlDeviceGetMemoryInfo, nvmlDeviceGetPciInfo, nvmlDeviceGetUtilizationRates,
    nvmlDeviceGetEccMode, nvmlDeviceGetMigMode, nvmlDeviceGetPowerUsage, nvmlDeviceGetDriverModel,
    nvmlDeviceGetComputeRunningProcesses,
)])
"""
    assert told(run(script, machines.orin())) == ["Orin (nvgpu)", *["error 3"] * 8]


def test_links_fields_and_neighbours(run: Run) -> None:
    script = """
nvmlInit()
gpu, other = nvmlDeviceGetHandleByIndex(0), nvmlDeviceGetHandleByIndex(1)
fields = nvmlDeviceGetFieldValues(gpu, [230, 74, (94, 5), 95, 83])
show({
    "links": [ask(nvmlDeviceGetNvLinkState, gpu, link) for link in range(4)],
    "codes": [field.nvmlReturn for field in fields],
    "types": [field.valueType for field in fields],
    "values": [fields[0].value.uiVal, fields[2].value.siVal, fields[4].value.ullVal],
    "p2p": [ask(nvmlDeviceGetP2PStatus, gpu, other, index) for index in (0, 2)],
    "topology": [nvmlDeviceGetTopologyCommonAncestor(*two) for two in ((gpu, other), (other, gpu))],
})
"""
    machine = {
        "count": 2,
        "gpu.*.nvlink.total": 3,
        "gpu.*.nvlink.*.active": True,
        "gpu.0.nvlink.1.active": False,
        "gpu.0.nvlink.2.active": "error 15",
        "gpu.0.recovery_action": 1,
        "gpu.0.field.74": "error 2",
        "gpu.0.field.94.5": -4,
        "gpu.0.field.83": 2**33,
        "gpu.0.p2p.1.read": 4,
        "gpu.0.topology.1": 10,
    }
    assert told(run(script, machine)) == {
        "links": [1, 0, "error 15", "error 2"],
        "codes": [0, 2, 0, 3, 0],
        "types": [1, 1, 5, 1, 3],
        "values": [1, -4, 2**33],
        "p2p": [4, "error 3"],
        "topology": [10, 10],
    }


def test_a_counter_grows(run: Run) -> None:
    script = """
import time
nvmlInit()
gpu = nvmlDeviceGetHandleByIndex(0)
power = NVML_PERF_POLICY_POWER
before, began = nvmlDeviceGetViolationStatus(gpu, power).violationTime, time.monotonic()
time.sleep(0.2)
after, ended = nvmlDeviceGetViolationStatus(gpu, power).violationTime, time.monotonic()
show((after - before) / 1e9 / (ended - began))
"""
    machine = {"count": 1, "gpu.0.violation.0.time": 0, "gpu.0.violation.0.growth": 250_000_000}
    assert told(run(script, machine)) == pytest.approx(0.25, rel=0.2)


def test_fabric_of_both_versions(run: Run) -> None:
    script = """
nvmlInit()
gpu = nvmlDeviceGetHandleByIndex(0)
def fabric(function, info):
    function(gpu, byref(info))
    health = [getattr(info, name, None) for name in ("healthMask", "healthSummary")]
    return [bytes(info.clusterUuid).hex()[:4], info.state, info.cliqueId, *health]
wrong = c_nvmlGpuFabricInfo_v3_t()
wrong.version += 1
show([fabric(nvmlDeviceGetGpuFabricInfo, c_nvmlGpuFabricInfo_t()),
      fabric(nvmlDeviceGetGpuFabricInfoV, c_nvmlGpuFabricInfoV_t()),
      fabric(nvmlDeviceGetGpuFabricInfoV, c_nvmlGpuFabricInfo_v3_t()),
      ask(nvmlDeviceGetGpuFabricInfoV, gpu, byref(wrong))])
"""
    fabric = {
        "state": 2,
        "clique_id": 7,
        "cluster_uuid": "01ab4567-89ab-4def-8123-456789abcdef",
        "health_mask": 0x1AA,
        "health_summary": 1,
    }
    machine = {"count": 1} | {f"gpu.0.fabric.{key}": value for key, value in fabric.items()}
    assert told(run(script, machine)) == [
        ["01ab", 2, 7, None, None],
        ["01ab", 2, 7, 0x1AA, None],
        ["01ab", 2, 7, 0x1AA, 1],
        "error 25",
    ]


def test_processes(run: Run) -> None:
    script = """
nvmlInit()
gpu = nvmlDeviceGetHandleByIndex(0)
show([[[p.pid, p.usedGpuMemory, p.gpuInstanceId] for p in function(gpu)]
      for function in (nvmlDeviceGetComputeRunningProcesses, nvmlDeviceGetGraphicsRunningProcesses)]
     + [nvmlSystemGetProcessName(41), ask(nvmlSystemGetProcessName, 42)])
"""
    machine = {
        "count": 1,
        "gpu.0.processes.compute": "41:1048576:2:0, 42:?",
        "gpu.0.processes.graphics": "",
        "process.41.name": "python",
    }
    assert told(run(script, machine)) == [
        [[41, 1048576, 2], [42, None, 2**32 - 1]],
        [],
        "python",
        "error 6",
    ]


def test_mig_devices(run: Run) -> None:
    script = """
nvmlInit()
gpu = nvmlDeviceGetHandleByIndex(0)
count = nvmlDeviceGetMaxMigDeviceCount(gpu)
slots = [ask(nvmlDeviceGetMigDeviceHandleByIndex, gpu, index) for index in range(count + 1)]
found = [slot for slot in slots if not isinstance(slot, str)]

def read(mig):
    names = [nvmlDeviceGetName(mig), nvmlDeviceGetUUID(mig)[:4]]
    ids = [nvmlDeviceGetGpuInstanceId(mig), nvmlDeviceGetComputeInstanceId(mig)]
    kind = nvmlDeviceIsMigDeviceHandle(mig).value
    memory = nvmlDeviceGetMemoryInfo(mig).total >> 20
    return [*names, memory, *ids, kind, ask(nvmlDeviceGetTemperature, mig, 0)]

show({
    "mode": nvmlDeviceGetMigMode(gpu),
    "missing": [slot for slot in slots if isinstance(slot, str)],
    "devices": [read(mig) for mig in found],
    "parent": nvmlDeviceGetName(nvmlDeviceGetDeviceHandleFromMigDeviceHandle(found[1])),
    "by uuid": read(nvmlDeviceGetHandleByUUID(nvmlDeviceGetUUID(found[1])))[3],
    "of the gpu": ask(nvmlDeviceGetGpuInstanceId, gpu),
    "load": ask(nvmlDeviceGetUtilizationRates, gpu),
})
"""
    profile = "NVIDIA A100-SXM4-40GB MIG 3g.20gb"
    assert told(run(script, machines.mig())) == {
        "mode": [1, 1],
        "missing": ["error 6"] * 5 + ["error 2"],
        "devices": [
            [profile, "MIG-", 19968, 1, 0, 1, "error 3"],
            [profile, "MIG-", 19968, 2, 0, 1, "error 3"],
        ],
        "parent": "NVIDIA A100-SXM4-40GB",
        "by uuid": 2,
        "of the gpu": "error 2",
        "load": "error 3",
    }


def test_a_hang_ignores_sigterm(start: Start) -> None:
    with start('show("there")\nnvmlInit()\nshow("never")', machines.hang()) as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline()) == "there"
        time.sleep(0.3)
        process.send_signal(signal.SIGTERM)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.3)
        process.kill()
        assert process.wait(10) == -signal.SIGKILL
        assert process.stdout.read() == ""


def test_an_abort(run: Run) -> None:
    script = "nvmlInit()\nnvmlDeviceGetName(nvmlDeviceGetHandleByIndex(1))"
    assert run(script, machines.mixed() | {"gpu.0.abort.nvmlDeviceGetName": True}).returncode == 0
    done = run(script, machines.mixed() | {"abort.nvmlDeviceGetName": True})
    assert done.returncode == -signal.SIGABRT


def test_a_delay(run: Run) -> None:
    script = """
import time
began = time.monotonic()
nvmlInit()
show(time.monotonic() - began)
"""
    assert told(run(script, machines.rtx4090() | {"delay.nvmlInit_v2": 0.3})) >= 0.3


def test_a_number_that_is_none_is_told(run: Run) -> None:
    script = "nvmlInit()\nnvmlDeviceGetPowerUsage(nvmlDeviceGetHandleByIndex(0))"
    done = run(script, machines.rtx4090() | {"gpu.0.power.draw": "much"})
    assert done.returncode == -signal.SIGABRT
    assert "gpu.0.power.draw: not a number: 'much'" in done.stderr


def test_build_is_cached_for_each_set(tmp_path: Path) -> None:
    first = build(tmp_path)
    when = (first / "libnvidia-ml.so.1").stat().st_mtime_ns
    other = build(tmp_path, frozenset({"nvmlDeviceGetTemperatureV"}))
    assert build(tmp_path) == first != other
    assert (first / "libnvidia-ml.so.1").stat().st_mtime_ns == when
    with pytest.raises(ValueError, match="nvmlNoSuchFunction"):
        build(tmp_path, frozenset({"nvmlNoSuchFunction"}))


@pytest.mark.parametrize(
    "key",
    [
        "gpu.0.temprature",
        "gpu.temperature",
        "gpu.0.error.nvmlDeviceGetNothing",
        "error",
        "gpu.x.name",
        "gpu.0.p2p.x.read",
        "gpu.0.mig.0",
    ],
)
def test_describe_refuses_a_key_that_is_never_looked_up(key: str) -> None:
    with pytest.raises(ValueError, match="knows no key"):
        describe({key: 1})


def test_describe_renders_lines() -> None:
    text = describe({"count": 2, "gpu.*.ecc.current": True, "gpu.1.serial": None, "error.*": 9})
    assert text == "count = 2\ngpu.*.ecc.current = yes\ngpu.1.serial = none\nerror.* = 9\n"
    with pytest.raises(ValueError, match="one line"):
        describe({"gpu.0.name": "two\nlines"})


def test_the_readme_names_every_key() -> None:
    text = (Path(__file__).parent / "fake_nvml" / "README.md").read_text(encoding="utf-8")
    last_parts = {key.rsplit(".", 1)[-1] for key in GPU_KEYS if not key.endswith("*")}
    assert {part for part in last_parts if part not in text} == set()
    assert len(FUNCTIONS) > 80
