"""The probe asks the real nvidia-ml-py, which loads a stand-in for NVIDIA's library."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from envaudit.facts import spec_of
from envaudit.host import Host
from envaudit.model import covers
from envaudit.probes import PROBES
from tests.fake_nvml import build, describe, environment, machines
from tests.probing import machine, probe

ROW = next(row for row in PROBES if row.name == "nvml")

SCRIPT = """
import json, sys
from envaudit.collect import collect
from envaudit.host import Host
from envaudit.probes import PROBES

root, live, deadline = sys.argv[1], sys.argv[2] == "live", float(sys.argv[3])
host = Host() if live else Host(root, recorded={"nvml": True})
probes = [row for row in PROBES if row.name == "nvml"]
seen = collect(host, None, deadline=deadline, probes=probes)
run = seen.probes[0]
print(json.dumps({
    "facts": {name: fact.value for name, fact in seen.facts.items()},
    "sources": {name: fact.source for name, fact in seen.facts.items()},
    "gaps": dict(run.gaps), "status": run.status, "detail": run.detail, "seconds": run.seconds,
}))
"""


@dataclass
class Seen:
    facts: dict[str, Any]
    sources: dict[str, str]
    gaps: dict[str, str]
    status: str
    detail: str
    seconds: float

    def of(self, gpu: int) -> dict[str, Any]:
        """Facts of one GPU, without its prefix."""
        prefix = f"gpu.{gpu}."
        return {n[len(prefix) :]: v for n, v in self.facts.items() if n.startswith(prefix)}

    def unknown(self, name: str) -> str | None:
        assert name not in self.facts
        return next((why for gap, why in self.gaps.items() if covers(gap, name)), None)


Look = Callable[..., Seen]


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fake-nvml")


@pytest.fixture
def look(libraries: Path, tmp_path: Path) -> Look:
    """Look through NVML at a described machine, in a process of its own."""

    def looked(
        description: Mapping[str, object] | None,
        *,
        driver: str = "",
        live: bool = False,
        deadline: float = 9.0,
        files: Mapping[str, str] | None = None,
        variables: Mapping[str, str] | None = None,
    ) -> Seen:
        env = {name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"}
        if description is not None:
            file = tmp_path / "description"
            file.write_text(describe(description), encoding="utf-8")
            library = build(libraries, machines.LACKING.get(driver, frozenset()))
            env |= environment(library, file)
        root = machine(tmp_path, files).root
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT, root, "live" if live else "recorded", str(deadline)],
            env=env | dict(variables or {}),
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        seen = Seen(**json.loads(done.stdout))
        for name in seen.facts:
            assert spec_of(name) is not None, f"{name} is not in the catalogue"
            assert any(covers(pattern, name) for pattern in ROW.provides), name
            assert seen.sources[name]
        return seen

    return looked


class TestWhetherItRuns:
    def test_image(self, tmp_path: Path) -> None:
        told = probe("nvml", Host(str(tmp_path)))
        assert (told.status, told.detail) == ("skipped", "only files of this machine are at hand")

    def test_recorded_without_nvml(self, tmp_path: Path) -> None:
        assert probe("nvml", machine(tmp_path)).status == "skipped"

    def test_no_library(self, look: Look, tmp_path: Path) -> None:
        seen = look(None, variables={"LD_LIBRARY_PATH": str(tmp_path)})
        assert (seen.status, seen.detail) == ("absent", "no libnvidia-ml.so.1")
        assert not seen.facts
        assert not seen.gaps

    def test_library_that_cannot_be_loaded(self, look: Look, tmp_path: Path) -> None:
        (tmp_path / "libnvidia-ml.so.1").write_text("not a library")
        seen = look(None, variables={"LD_LIBRARY_PATH": str(tmp_path)})
        assert seen.status == "ok"
        assert "cannot be loaded" in seen.facts["nvml.status"]
        assert "cannot be loaded" in (seen.unknown("gpu.count") or "")


class TestHealthyMachines:
    def test_eight_gpus(self, look: Look) -> None:
        seen = look(machines.h100_8())
        assert seen.status == "ok"
        assert seen.facts["nvml.status"] == "ok"
        assert seen.facts["nvml.version"] == "13.580.95.05"
        assert seen.facts["driver.version"] == "580.95.05"
        assert seen.facts["driver.cuda.version"] == "13.0"
        assert seen.facts["driver.gsp.version"] == "580.95.05"
        assert seen.facts["gpu.count"] == 8
        first = seen.of(0)
        assert [first.pop(f"p2p.{other}") for other in range(1, 8)] == ["ok"] * 7
        assert first == {
            "status": "ok",
            "name": "NVIDIA H100 80GB HBM3",
            "uuid": "GPU-00000000-0000-4000-8000-000000000000",
            "serial": "1650000000000",
            "pci.address": "0000:1a:00.0",
            "pci.id": "10de:2330 10de:16c1",
            "compute_capability": "9.0",
            "vbios.version": "96.00.89.00.01",
            "memory.total": 81559 << 20,
            "memory.used": 4 << 20,
            "memory.free": (81559 - 551 - 4) << 20,
            "bar1.total": 128 << 30,
            "pcie.gen.current": 5,
            "pcie.gen.max": 5,
            "pcie.gen.device_max": 5,
            "pcie.width.current": 16,
            "pcie.width.max": 16,
            "pcie.replays": 0,
            "power.draw": 71.53,
            "power.limit": 700,
            "power.limit_default": 700,
            "power.limit_max": 700,
            "clocks.sm.current": 345,
            "clocks.sm.max": 1980,
            "clocks.mem.current": 2619,
            "clocks.mem.max": 2619,
            "clocks.event_reasons": ["gpu_idle"],
            "pstate": "P0",
            "temperature": 34,
            "utilization": 0,
            "processes": 0,
            "ecc.current": "enabled",
            "ecc.pending": "enabled",
            "ecc.uncorrected": 0,
            "remapped_rows.correctable": 0,
            "remapped_rows.uncorrectable": 0,
            "remapped_rows.pending": False,
            "remapped_rows.failed": False,
            "recovery_action": "none",
            "mig.current": "disabled",
            "mig.pending": "disabled",
            "compute_mode": "default",
            "persistence_mode": "enabled",
            "nvlink.active": 18,
            "nvlink.total": 18,
            "fabric.state": "completed",
            "fabric.status": "Success",
            "numa_node": 0,
        }
        assert seen.of(7)["numa_node"] == 1
        assert {name for name in seen.of(7) if not name.startswith("p2p.")} == set(first)
        # What NVML does not tell is unknown, not absent.
        assert seen.unknown("gpu.0.xid")
        assert seen.unknown("gpu.0.throttle.power")
        assert seen.unknown("gpu.0.processes.foreign")

    def test_visible_devices_do_not_matter(self, look: Look) -> None:
        assert (
            look(machines.h100_8(), variables={"CUDA_VISIBLE_DEVICES": "2"}).facts["gpu.count"] == 8
        )

    def test_what_a_geforce_lacks_is_absent(self, look: Look) -> None:
        seen = look(machines.rtx4090())
        for name in ("serial", "mig.current", "nvlink.total", "remapped_rows.pending"):
            assert seen.unknown(f"gpu.0.{name}") is None
        assert seen.facts["gpu.0.ecc.current"] == "disabled"
        assert not any(".p2p." in name for name in seen.facts)

    def test_two_different_gpus(self, look: Look) -> None:
        seen = look(machines.mixed())
        assert seen.of(0)["compute_capability"] == "8.9"
        assert seen.of(1)["compute_capability"] == "6.1"
        assert seen.of(0)["p2p.1"] == seen.of(1)["p2p.0"] == "chipset not supported"
        assert seen.of(1)["processes"] == 1
        assert "power.draw" not in seen.of(1)
        assert seen.unknown("gpu.1.power.draw") is None

    def test_mig(self, look: Look) -> None:
        gpu = look(machines.mig()).of(0)
        assert gpu["mig.current"] == "enabled"
        assert gpu["mig.instances"] == ["3g.20gb 19968 MiB"] * 2
        assert "utilization" not in gpu

    def test_jetson(self, look: Look) -> None:
        seen = look(machines.orin())
        assert set(seen.of(0)) == {"name", "uuid", "compute_capability", "status"}
        assert seen.facts["driver.cuda.version"] == "12.6"

    def test_numa_node_by_the_kernel(self, look: Look) -> None:
        place = "/sys/bus/pci/devices/0000:{}:00.0/numa_node"
        files = {place.format("1a"): "3\n", place.format("1b"): "-1\n"}
        seen = look(machines.h100_8(), files=files)
        assert seen.facts["gpu.0.numa_node"] == 3
        assert seen.sources["gpu.0.numa_node"] == place.format("1a")
        assert "does not know" in (seen.unknown("gpu.1.numa_node") or "")
        assert seen.facts["gpu.2.numa_node"] == 0

    def test_foreign_processes_on_this_machine(self, look: Look) -> None:
        mine, gone = os.getpid(), 4_000_000
        one = machines.rtx4090() | {"gpu.0.processes.compute": f"{mine}:1048576, {mine}:1048576"}
        seen = look(one, live=True)
        assert seen.facts["gpu.0.processes"] == 1
        assert seen.facts["gpu.0.processes.foreign"] == 0
        seen = look(one | {"gpu.0.processes.graphics": f"{gone}:1"}, live=True)
        assert seen.facts["gpu.0.processes"] == 2
        assert seen.unknown("gpu.0.processes.foreign")

    @pytest.mark.parametrize("driver", ["470", "535", "550"])
    def test_older_drivers_are_asked_in_older_ways(self, look: Look, driver: str) -> None:
        seen = look(machines.h100_8() | {"gpu.*.clocks.event_reasons": 0x44}, driver=driver)
        gpu = seen.of(0)
        assert gpu["clocks.event_reasons"] == ["sw_power_cap", "hw_thermal_slowdown"]
        assert gpu["temperature"] == 34
        assert gpu["memory.total"] == 81559 << 20
        assert gpu["processes"] == 0
        assert gpu["status"] == "ok"
        if driver == "470":
            for name in ("gpu.0.pcie.gen.device_max", "gpu.0.fabric.state", "driver.gsp.version"):
                assert seen.unknown(name) == "not in this driver's NVML"
        else:
            assert gpu["fabric.state"] == "completed"

    def test_unknown_codes_are_kept(self, look: Look) -> None:
        seen = look(
            machines.rtx4090()
            | {
                "gpu.0.clocks.event_reasons": (1 << 63) | (1 << 11) | 0x101,
                "gpu.0.recovery_action": 42,
                "gpu.0.compute_mode": 9,
                "gpu.0.pstate": 32,
            }
        )
        assert seen.facts["gpu.0.clocks.event_reasons"] == [
            "gpu_idle",
            "display_clock_setting",
            "bit:0x800",
            "bit:0x8000000000000000",
        ]
        assert seen.facts["gpu.0.recovery_action"] == "code 42"
        assert seen.facts["gpu.0.compute_mode"] == "code 9"
        assert "gpu.0.pstate" not in seen.facts

    def test_links_and_fabric_in_between(self, look: Look) -> None:
        seen = look(
            machines.h100_8()
            | {"gpu.2.nvlink.3.active": False, "gpu.2.nvlink.4.active": False}
            | {"gpu.2.fabric.state": 2, "gpu.3.fabric.status": 999}
        )
        assert (seen.of(2)["nvlink.active"], seen.of(2)["nvlink.total"]) == (16, 18)
        assert seen.of(2)["fabric.state"] == "in_progress"
        assert "fabric.status" not in seen.of(2)
        assert seen.of(3)["fabric.status"] == "Unknown Error"

    def test_cuda_version_without_libcuda(self, look: Look) -> None:
        seen = look(machines.rtx4090() | {"error.nvmlSystemGetCudaDriverVersion_v2": 12})
        assert seen.facts["driver.cuda.version"] == "13.0"
        assert seen.sources["driver.cuda.version"] == "NVML nvmlSystemGetCudaDriverVersion"

    def test_firmware_that_is_switched_off(self, look: Look) -> None:
        seen = look(machines.rtx4090() | {"gpu.0.gsp.enabled": False})
        assert seen.unknown("driver.gsp.version") is None


class TestRefusals:
    @pytest.mark.parametrize(
        ("description", "text"),
        [
            (machines.error_mismatch(), "Driver/library version mismatch"),
            (machines.error_not_loaded(), "Driver Not Loaded"),
            ({"error.nvmlInit_v2": 999}, "Unknown Error"),
            ({"error.nvmlInit_v2": 17}, "GPU access blocked by the operating system"),
        ],
    )
    def test_at_the_start(self, look: Look, description: dict[str, object], text: str) -> None:
        seen = look(description)
        assert seen.status == "ok"
        assert seen.facts["nvml.status"] == text
        for name in ("gpu.count", "gpu.0.name", "driver.version", "driver.cuda.version"):
            assert seen.unknown(name) == f"NVML: {text}"

    def test_mismatch_tells_the_library_version(self, look: Look) -> None:
        assert look(machines.error_mismatch()).facts["nvml.version"] == "13.580.95.05"

    def test_no_gpus(self, look: Look) -> None:
        seen = look({"system.driver_version": "580.95.05"})
        assert seen.facts["gpu.count"] == 0
        assert seen.unknown("gpu.0.name") is None

    def test_one_question(self, look: Look) -> None:
        seen = look(
            machines.rtx4090()
            | {
                "gpu.0.error.nvmlDeviceGetVbiosVersion": 4,
                "gpu.0.error.nvmlDeviceGetPowerUsage": 999,
                "gpu.0.error.nvmlDeviceGetFieldValues": 13,
            }
        )
        assert seen.unknown("gpu.0.vbios.version") == "NVML: Insufficient Permissions"
        assert seen.unknown("gpu.0.power.draw") == "NVML: Unknown Error"
        assert seen.unknown("gpu.0.recovery_action") == "not in this driver's NVML"
        assert seen.facts["gpu.0.temperature"] == 38
        assert seen.facts["gpu.0.status"] == "ok"

    def test_count(self, look: Look) -> None:
        seen = look(machines.rtx4090() | {"error.nvmlDeviceGetCount_v2": 999})
        assert seen.unknown("gpu.count") == "NVML: Unknown Error"
        assert seen.unknown("gpu.0.name") == "NVML: Unknown Error"


class TestSickGpus:
    def others_are_well(self, seen: Seen, sick: int) -> None:
        for gpu in set(range(8)) - {sick}:
            assert seen.of(gpu)["status"] == "ok"
            assert seen.of(gpu)["temperature"] == 34
            assert sum(name.startswith("p2p.") for name in seen.of(gpu)) == 6
        assert seen.facts["gpu.count"] == 8

    def test_lost(self, look: Look) -> None:
        seen = look(machines.lost_gpu(3))
        self.others_are_well(seen, 3)
        assert seen.of(3) == {"status": "GPU is lost"}
        assert seen.unknown("gpu.3.name") == "NVML: GPU is lost"

    def test_handle_refused(self, look: Look) -> None:
        seen = look(machines.h100_8() | {"gpu.0.error.nvmlDeviceGetHandleByIndex_v2": 4})
        self.others_are_well(seen, 0)
        assert seen.of(0) == {"status": "Insufficient Permissions"}

    def test_lost_while_we_look(self, look: Look) -> None:
        seen = look(machines.h100_8() | {"gpu.5.error.nvmlDeviceGetPowerUsage": 15})
        self.others_are_well(seen, 5)
        gpu = seen.of(5)
        assert gpu["status"] == "GPU is lost"
        assert gpu["name"] == "NVIDIA H100 80GB HBM3"
        assert seen.unknown("gpu.5.power.draw") == "NVML: GPU is lost"
        assert seen.unknown("gpu.5.nvlink.total") == "NVML: GPU is lost"

    def test_names_itself_and_no_more(self, look: Look) -> None:
        seen = look(machines.h100_8() | {"gpu.1.error.nvmlDeviceGetTemperatureV": 999})
        self.others_are_well(seen, 1)
        assert seen.of(1)["status"] == "Unknown Error"
        assert seen.of(1)["uuid"] == "GPU-00000000-0000-4000-8000-000000000001"


class TestHangsAndCrashes:
    def test_hang_at_the_start(self, look: Look) -> None:
        seen = look(machines.hang(), deadline=0.6)
        assert seen.status == "timed_out"
        assert not seen.facts
        assert seen.seconds < 3

    def test_hang_in_one_gpu_keeps_the_others(self, look: Look) -> None:
        seen = look(machines.h100_8() | {"gpu.3.hang.nvmlDeviceGetClockInfo": True}, deadline=1.5)
        assert seen.status == "timed_out"
        for gpu in range(3):
            assert seen.of(gpu)["status"] == "ok"
        for gpu in range(8):
            assert seen.of(gpu)["uuid"]
        assert seen.of(3)["vbios.version"] == "96.00.89.00.01"
        assert "status" not in seen.of(3)
        assert "temperature" not in seen.of(4)

    def test_abort_keeps_what_was_told(self, look: Look) -> None:
        seen = look(machines.h100_8() | {"gpu.1.abort.nvmlDeviceGetRemappedRows": True})
        assert seen.status == "crashed"
        assert seen.of(0)["status"] == "ok"
        assert seen.of(1)["temperature"] == 34
        assert "status" not in seen.of(1)
