"""Descriptions of whole machines for the fake library.

Each function answers a fresh mapping: change what a test is about, then `describe` it. Amounts are
NVML's own: bytes, milliwatts, MHz, degrees Celsius.
"""

from __future__ import annotations

MIB = 1024**2
GIB = 1024**3

DRIVER = "580.95.05"

_SINCE_535 = frozenset(
    {
        "nvmlDeviceGetComputeRunningProcesses_v3",
        "nvmlDeviceGetCurrentClocksEventReasons",
        "nvmlDeviceGetGpuFabricInfo",
        "nvmlDeviceGetGpuMaxPcieLinkGeneration",
        "nvmlDeviceGetGraphicsRunningProcesses_v3",
        "nvmlDeviceGetGspFirmwareMode",
        "nvmlDeviceGetGspFirmwareVersion",
        "nvmlDeviceGetMemoryInfo_v2",
        "nvmlDeviceGetSupportedClocksEventReasons",
    }
)
_SINCE_550 = frozenset({"nvmlDeviceGetGpuFabricInfoV", "nvmlDeviceGetNumaNodeId"})
_AFTER_550 = frozenset({"nvmlDeviceGetDriverModel_v2", "nvmlDeviceGetTemperatureV"})

LACKING: dict[str, frozenset[str]] = {
    "470": _SINCE_535 | _SINCE_550 | _AFTER_550,
    "535": _SINCE_550 | _AFTER_550,
    "550": _AFTER_550,
}
"""The functions of the fake that the real library of a driver branch does not have.

For `build(without=...)`; compared with the symbols of 470.256.02, 535.309.01 and 550.163.01.
"""


def _uuid(number: int) -> str:
    return f"GPU-00000000-0000-4000-8000-{number:012d}"


def _system(
    driver: str = DRIVER, cuda: tuple[int, int] = (13, 0), count: int = 1
) -> dict[str, object]:
    return {
        "system.driver_version": driver,
        "system.nvml_version": f"{cuda[0]}.{driver}",
        "system.cuda_driver_version": 1000 * cuda[0] + 10 * cuda[1],
        "count": count,
    }


def _gpu(which: int | str, facts: dict[str, object]) -> dict[str, object]:
    return {f"gpu.{which}.{key}": value for key, value in facts.items()}


def _datacenter() -> dict[str, object]:
    """What a healthy data-center GPU answers whatever its model."""
    return {
        "pcie.replays": 0,
        "pcie.width.current": 16,
        "pcie.width.max": 16,
        "clocks.event_reasons": 0x1,
        "clocks.event_reasons_supported": 0x1FF,
        "pstate": 0,
        "utilization.gpu": 0,
        "utilization.memory": 0,
        "processes.compute": "",
        "processes.graphics": "",
        "ecc.current": True,
        "ecc.pending": True,
        "ecc.*.volatile": 0,
        "ecc.*.aggregate": 0,
        "remapped_rows.*": 0,
        "recovery_action": 0,
        "compute_mode": 0,
        "persistence_mode": True,
        "display_active": False,
        "gsp.version": DRIVER,
        "gsp.enabled": True,
        "gsp.default": True,
        "violation.*.time": 0,
        "field.74": 0,
        "field.75": 0,
        "field.269": 0,
        "field.270": 0,
        "field.271": 0,
        "field.*.type": 3,
        "field.230.type": 1,
    }


def h100_8() -> dict[str, object]:
    """Eight healthy H100 80GB HBM3 behind NVSwitches, idle."""
    cores = ("0xFFFFFFFFFFFF, 0", "0xFFFF000000000000, 0xFFFFFFFF")
    buses = (0x1A, 0x1B, 0x4A, 0x4B, 0x8A, 0x8B, 0xCA, 0xCB)
    machine = _system(count=8)
    machine |= _gpu("*", _datacenter())
    machine |= _gpu(
        "*",
        {
            "name": "NVIDIA H100 80GB HBM3",
            "architecture": 9,
            "pci.id": 0x233010DE,
            "pci.subsystem_id": 0x16C110DE,
            "vbios.version": "96.00.89.00.01",
            "compute_capability": "9.0",
            "memory.total": 81559 * MIB,
            "memory.reserved": 551 * MIB,
            "memory.used": 4 * MIB,
            "bar1.total": 128 * GIB,
            "bar1.used": 1 * MIB,
            "pcie.gen.current": 5,
            "pcie.gen.max": 5,
            "pcie.gen.device_max": 5,
            "power.draw": 71_530,
            "power.limit": 700_000,
            "power.limit_default": 700_000,
            "power.limit_enforced": 700_000,
            "power.limit_min": 200_000,
            "power.limit_max": 700_000,
            "clocks.graphics.current": 345,
            "clocks.sm.current": 345,
            "clocks.mem.current": 2619,
            "clocks.video.current": 765,
            "clocks.graphics.max": 1980,
            "clocks.sm.max": 1980,
            "clocks.mem.max": 2619,
            "clocks.video.max": 1545,
            "temperature": 34,
            "mig.current": False,
            "mig.pending": False,
            "nvlink.total": 18,
            "nvlink.*.active": True,
            "nvlink.*.version": 6,
            "fabric.state": 3,
            "fabric.status": 0,
            "fabric.clique_id": 0,
            "p2p.*.read": 0,
            "p2p.*.write": 0,
            "p2p.*.nvlink": 0,
            "p2p.*.atomics": 0,
            "topology.*": 50,
        },
    )
    for index, bus in enumerate(buses):
        socket = index // 4
        machine |= _gpu(
            index,
            {
                "uuid": _uuid(index),
                "serial": f"16500000000{index:02d}",
                "minor": index,
                "pci.address": f"00000000:{bus:02X}:00.0",
                "memory_affinity": 1 << socket,
                "cpu_affinity": cores[socket],
            },
        )
        beside = [other for other in range(8) if other // 4 == socket and other != index]
        machine |= _gpu(index, {f"topology.{other}": 40 for other in beside})
    return machine


def lost_gpu(index: int = 3) -> dict[str, object]:
    """The eight H100 after one of them fell off the bus."""
    return h100_8() | {f"gpu.{index}.error.*": 15}


def _rtx4090() -> dict[str, object]:
    return {
        "name": "NVIDIA GeForce RTX 4090",
        "architecture": 8,
        "uuid": _uuid(4090),
        "minor": 0,
        "pci.address": "00000000:01:00.0",
        "pci.id": 0x268410DE,
        "pci.subsystem_id": 0x16F310DE,
        "vbios.version": "95.02.3C.00.01",
        "compute_capability": "8.9",
        "memory.total": 24564 * MIB,
        "memory.reserved": 434 * MIB,
        "memory.used": 15 * MIB,
        "bar1.total": 32 * GIB,
        "bar1.used": 27 * MIB,
        "pcie.gen.current": 1,
        "pcie.gen.max": 4,
        "pcie.gen.device_max": 4,
        "pcie.width.current": 16,
        "pcie.width.max": 16,
        "pcie.replays": 0,
        "power.draw": 18_240,
        "power.limit": 450_000,
        "power.limit_default": 450_000,
        "power.limit_enforced": 450_000,
        "power.limit_min": 150_000,
        "power.limit_max": 600_000,
        "clocks.graphics.current": 210,
        "clocks.sm.current": 210,
        "clocks.mem.current": 405,
        "clocks.video.current": 1185,
        "clocks.graphics.max": 3105,
        "clocks.sm.max": 3105,
        "clocks.mem.max": 10501,
        "clocks.video.max": 2415,
        "clocks.event_reasons": 0x1,
        "clocks.event_reasons_supported": 0x1FF,
        "pstate": 8,
        "temperature": 38,
        "utilization.gpu": 0,
        "utilization.memory": 0,
        "processes.compute": "",
        "processes.graphics": "",
        "ecc.current": False,
        "ecc.pending": False,
        "recovery_action": 0,
        "compute_mode": 0,
        "persistence_mode": False,
        "display_active": False,
        "fabric.state": 0,
        "gsp.version": DRIVER,
        "gsp.enabled": True,
        "gsp.default": True,
    }


def rtx4090() -> dict[str, object]:
    """A workstation with one RTX 4090, idle: the PCIe link has dropped to generation 1."""
    return _system() | _gpu(0, _rtx4090())


def mixed() -> dict[str, object]:
    """An RTX 4090 for work and a GTX 1050 Ti for the screen, with the last driver for both."""
    machine = _system(count=2)
    machine |= _gpu(0, _rtx4090())
    machine |= _gpu(
        1,
        {
            "name": "NVIDIA GeForce GTX 1050 Ti",
            "architecture": 4,
            "uuid": _uuid(1050),
            "minor": 1,
            "pci.address": "00000000:05:00.0",
            "pci.id": 0x1C8210DE,
            "pci.subsystem_id": 0x11BF10DE,
            "vbios.version": "86.07.39.00.01",
            "compute_capability": "6.1",
            "memory.total": 4096 * MIB,
            "memory.reserved": 58 * MIB,
            "memory.used": 312 * MIB,
            "bar1.total": 256 * MIB,
            "bar1.used": 8 * MIB,
            "pcie.gen.current": 1,
            "pcie.gen.max": 3,
            "pcie.gen.device_max": 3,
            "pcie.width.current": 4,
            "pcie.width.max": 16,
            "pcie.replays": 0,
            "power.limit": 75_000,
            "power.limit_default": 75_000,
            "power.limit_enforced": 75_000,
            "power.limit_min": 52_500,
            "power.limit_max": 75_000,
            "clocks.graphics.current": 139,
            "clocks.sm.current": 139,
            "clocks.mem.current": 405,
            "clocks.video.current": 544,
            "clocks.graphics.max": 1911,
            "clocks.sm.max": 1911,
            "clocks.mem.max": 3504,
            "clocks.video.max": 1708,
            "clocks.event_reasons": 0x1,
            "clocks.event_reasons_supported": 0x1FF,
            "pstate": 8,
            "temperature": 41,
            "utilization.gpu": 3,
            "utilization.memory": 2,
            "processes.compute": "",
            "processes.graphics": "1503:285212672",
            "compute_mode": 0,
            "persistence_mode": False,
            "display_active": True,
        },
    )
    machine |= _gpu("*", {"p2p.*.read": 1, "p2p.*.write": 1, "topology.*": 30})
    machine["process.1503.name"] = "/usr/lib/xorg/Xorg"
    return machine


def mig() -> dict[str, object]:
    """An A100 40GB in MIG mode with two instances 3g.20gb."""
    name = "NVIDIA A100-SXM4-40GB"
    machine = _system()
    machine |= _gpu(0, _datacenter())
    machine |= _gpu(
        0,
        {
            "name": name,
            "architecture": 7,
            "uuid": _uuid(100),
            "serial": "1560000000100",
            "minor": 0,
            "pci.address": "00000000:07:00.0",
            "pci.id": 0x20B010DE,
            "pci.subsystem_id": 0x134F10DE,
            "vbios.version": "92.00.19.00.01",
            "compute_capability": "8.0",
            "memory.total": 40960 * MIB,
            "memory.reserved": 625 * MIB,
            "memory.used": 74 * MIB,
            "bar1.total": 64 * GIB,
            "bar1.used": 1 * MIB,
            "pcie.gen.current": 4,
            "pcie.gen.max": 4,
            "pcie.gen.device_max": 4,
            "power.draw": 44_120,
            "power.limit": 400_000,
            "power.limit_default": 400_000,
            "power.limit_enforced": 400_000,
            "power.limit_min": 100_000,
            "power.limit_max": 400_000,
            "clocks.graphics.current": 210,
            "clocks.sm.current": 210,
            "clocks.mem.current": 1215,
            "clocks.video.current": 585,
            "clocks.graphics.max": 1410,
            "clocks.sm.max": 1410,
            "clocks.mem.max": 1215,
            "clocks.video.max": 1290,
            "temperature": 29,
            "utilization.gpu": None,
            "utilization.memory": None,
            "mig.current": True,
            "mig.pending": True,
            "mig.max": 7,
            "fabric.state": 0,
        },
    )
    for index in range(2):
        machine |= _gpu(
            f"0.mig.{index}",
            {
                "name": f"{name} MIG 3g.20gb",
                "uuid": f"MIG-00000000-0000-4000-8000-{index:012d}",
                "gpu_instance_id": index + 1,
                "compute_instance_id": 0,
                "memory.total": 19968 * MIB,
                "memory.used": 37 * MIB,
            },
        )
    return machine


def orin() -> dict[str, object]:
    """A Jetson Orin: its library knows the name and little else."""
    return _system(driver="540.4.0", cuda=(12, 6)) | _gpu(
        0,
        {
            "name": "Orin (nvgpu)",
            "uuid": "00000000-0000-5000-8000-000000000087",
            "compute_capability": "8.7",
        },
    )


def error_mismatch() -> dict[str, object]:
    """The driver was updated and the old kernel module is still loaded."""
    return {"system.nvml_version": f"13.{DRIVER}", "error.nvmlInit_v2": 18}


def error_not_loaded() -> dict[str, object]:
    """The driver's libraries are there, its kernel module is not loaded."""
    return {"system.nvml_version": f"13.{DRIVER}", "error.nvmlInit_v2": 9}


def hang() -> dict[str, object]:
    """The library never comes back from its initialization."""
    return h100_8() | {"hang.nvmlInit_v2": True}
