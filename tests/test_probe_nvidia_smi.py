from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from envaudit.host import Host
from envaudit.model import covers
from tests.probing import Told, machine, probe
from tests.smi_samples import FAILED, GPU_418, GPU_595, MISMATCH, TABLE_384, TABLE_580, xml

PROGRAM = "/usr/bin/nvidia-smi"


def told_by(
    tmp_path: Path,
    first: dict[str, Any] | None = None,
    second: dict[str, Any] | None = None,
    *,
    program: str = PROGRAM,
    before: dict[str, Any] | None = None,
) -> Told:
    """What the probe says of a machine with these answers of `-q -x` and of the plain command."""
    commands = {"nvidia-smi -q -x": first, "nvidia-smi": second}
    host = machine(
        tmp_path, {program: ""}, commands={key: said for key, said in commands.items() if said}
    )
    return probe("nvidia_smi", host, before=before, seconds=9)


def unknown(told: Told, name: str) -> str | None:
    return next((why for gap, why in told.gaps.items() if covers(gap, name)), None)


def no_gpu(told: Told) -> bool:
    return not any(name.startswith(("gpu.", "driver.")) for name in told.facts)


class TestWhetherItRuns:
    def test_not_where_nvml_answered(self, tmp_path: Path) -> None:
        told = told_by(tmp_path, {"stdout": xml(GPU_595)}, before={"nvml.status": "ok"})
        assert (told.status, told.detail) == ("skipped", "NVML answered")
        assert not told.facts

    @pytest.mark.parametrize("before", [None, {"nvml.status": "Driver Not Loaded"}])
    def test_where_nvml_did_not(self, tmp_path: Path, before: dict[str, Any] | None) -> None:
        told = told_by(tmp_path, {"stdout": xml(GPU_595)}, before=before)
        assert told.facts["gpu.0.name"] == "NVIDIA A100-SXM4-80GB"

    def test_no_program(self, tmp_path: Path) -> None:
        told = probe("nvidia_smi", machine(tmp_path))
        assert (told.status, told.detail) == ("absent", "no nvidia-smi")
        assert not told.gaps

    def test_image(self, tmp_path: Path) -> None:
        told = probe("nvidia_smi", Host(str(tmp_path)))
        assert told.status == "skipped"

    def test_not_recorded(self, tmp_path: Path) -> None:
        assert told_by(tmp_path).status == "skipped"

    def test_wsl_without_its_folder_on_path(self, tmp_path: Path) -> None:
        told = told_by(tmp_path, {"stdout": xml(GPU_595)}, program="/usr/lib/wsl/lib/nvidia-smi")
        assert told.facts["gpu.count"] == 1
        assert told.sources["smi.status"] == "/usr/lib/wsl/lib/nvidia-smi"


class TestAnswers:
    def test_xml(self, tmp_path: Path) -> None:
        told = told_by(tmp_path, {"stdout": xml(GPU_418, GPU_595)})
        assert told.facts["smi.status"] == "ok"
        assert told.facts["driver.version"] == "595.84"
        assert told.facts["driver.cuda.version"] == "13.2"
        assert told.facts["driver.gsp.version"] == "595.84"
        assert told.facts["gpu.count"] == 2
        assert told.facts["gpu.1.temperature"] == 27
        assert told.sources["gpu.1.temperature"] == "nvidia-smi -q -x: temperature/gpu_temp"
        assert unknown(told, "gpu.1.compute_capability")

    def test_table_where_it_is_no_xml(self, tmp_path: Path) -> None:
        told = told_by(
            tmp_path, {"stdout": "unknown option -x\n", "exit": 2}, {"stdout": TABLE_384}
        )
        assert told.facts["smi.status"] == "ok"
        assert told.facts["driver.version"] == "384.111"
        assert told.facts["gpu.count"] == 1
        assert unknown(told, "gpu.0.uuid") == "the nvidia-smi table does not tell it"

    def test_whole_gpus_of_a_cut_document(self, tmp_path: Path) -> None:
        cut = xml(GPU_595, GPU_418)[:-600]
        told = told_by(tmp_path, {"stdout": cut, "exit": -11}, {"stdout": "", "exit": -11})
        assert told.facts["smi.status"] == "ended by signal 11"
        assert told.facts["gpu.count"] == 2
        assert told.facts["gpu.0.serial"] == "1650522003820"
        assert not any(name.startswith("gpu.1.") for name in told.facts)
        assert unknown(told, "gpu.1.name") == "the output of nvidia-smi -q -x is cut in GPU 1"

    def test_table_fills_a_cut_document(self, tmp_path: Path) -> None:
        cut = xml(GPU_595, GPU_418)[:-600]
        told = told_by(tmp_path, {"stdout": cut}, {"stdout": TABLE_580})
        assert told.facts["smi.status"] == "nvidia-smi -q -x was cut short"
        assert told.facts["gpu.0.name"] == "NVIDIA A100-SXM4-80GB"
        assert told.facts["gpu.1.name"] == "NVIDIA GeForce RTX 5070 ..."
        assert told.facts["driver.version"] == "595.84"

    def test_crash_at_the_end(self, tmp_path: Path) -> None:
        told = told_by(tmp_path, {"stdout": xml(GPU_595), "exit": -6})
        assert told.facts["smi.status"] == "ended by signal 6"
        assert told.facts["gpu.count"] == 1

    def test_lost_gpu_told_on_stderr(self, tmp_path: Path) -> None:
        document = xml(GPU_595).replace("<attached_gpus>1<", "<attached_gpus>2<")
        line = "Unable to determine the device handle for GPU1: 0000:44:00.0: Unknown Error\n"
        told = told_by(tmp_path, {"stdout": document, "stderr": line})
        assert told.facts["smi.status"] == "ok"
        assert told.facts["gpu.0.status"] == "ok"
        assert told.facts["gpu.1.status"] == "Unknown Error"
        assert told.facts["gpu.1.pci.address"] == "0000:44:00.0"
        assert "Unknown Error" in (unknown(told, "gpu.1.name") or "")


class TestFailures:
    @pytest.mark.parametrize(
        ("text", "code"),
        [
            (FAILED, 9),
            ("Failed to initialize NVML: Unknown Error", 255),
            ("Failed to initialize NVML: GPU access blocked by the operating system", 17),
            ("Unable to determine the device handle for GPU 0000:01:00.0: GPU is lost.", 15),
        ],
    )
    def test_in_its_own_words(self, tmp_path: Path, text: str, code: int) -> None:
        told = told_by(tmp_path, {"stdout": text + "\n", "exit": code})
        assert told.facts == {"smi.status": text}
        for name in ("gpu.count", "gpu.0.name", "driver.version", "driver.cuda.version"):
            assert unknown(told, name) == text

    def test_mismatch(self, tmp_path: Path) -> None:
        told = told_by(tmp_path, {"stdout": MISMATCH, "exit": 18})
        assert told.facts == {
            "smi.status": "Failed to initialize NVML: Driver/library version mismatch"
        }

    def test_no_devices(self, tmp_path: Path) -> None:
        told = told_by(tmp_path, {"stdout": "No devices were found\n", "exit": 6})
        assert told.facts == {"smi.status": "No devices were found", "gpu.count": 0}
        assert unknown(told, "gpu.count") is None

    @pytest.mark.parametrize(
        "garbage",
        ["GPU 0\nGPU 1\nGPU 2\nGPU 3\n", "\0\x01binary\ufffd", "| 0 | 1 | 2 |\n" * 4, "{}"],
    )
    def test_garbage_is_quoted_and_makes_no_gpus(self, tmp_path: Path, garbage: str) -> None:
        told = told_by(tmp_path, {"stdout": garbage}, {"stdout": garbage})
        assert not told.facts
        quoted = repr(garbage.split("\n")[0])
        for name in ("smi.status", "gpu.count", "gpu.0.name", "driver.version"):
            assert unknown(told, name) == f"nvidia-smi printed something else: {quoted}"

    def test_nothing_at_all(self, tmp_path: Path) -> None:
        told = told_by(tmp_path, {"exit": 3}, {"exit": 3})
        assert told.facts == {"smi.status": "ended with exit status 3"}
        assert no_gpu(told)
        assert unknown(told, "gpu.0.name") == "no answer"

    def test_hang(self, tmp_path: Path) -> None:
        told = told_by(tmp_path, {"status": "timed_out", "exit": 124})
        assert told.facts == {"smi.status": "timed out"}
        for name in ("gpu.count", "gpu.0.name", "driver.version", "driver.gsp.version"):
            assert unknown(told, name) == "nvidia-smi did not answer within 7 s"

    def test_hang_in_the_middle(self, tmp_path: Path) -> None:
        cut = xml(GPU_595, GPU_418)[:-600]
        told = told_by(tmp_path, {"status": "timed_out", "exit": 124, "stdout": cut})
        assert told.facts["smi.status"] == "timed out"
        assert told.facts["gpu.0.temperature"] == 27
        assert unknown(told, "gpu.1.name")

    def test_denied(self, tmp_path: Path) -> None:
        told = told_by(tmp_path, {"status": "denied", "stderr": "Permission denied", "exit": 127})
        assert (told.status, told.detail) == ("denied", "Permission denied")

    def test_cannot_be_started(self, tmp_path: Path) -> None:
        told = told_by(tmp_path, {"status": "missing", "stderr": "Exec format error", "exit": 127})
        assert told.facts == {"smi.status": "cannot be started: Exec format error"}
        assert unknown(told, "gpu.0.name")


class TestRealProcesses:
    """The same with programs that really run, really hang and really print."""

    def host(self, tmp_path: Path, script: str) -> Host:
        program = tmp_path / "nvidia-smi"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        return Host(env={"PATH": f"{tmp_path}{os.pathsep}/usr/bin:/bin"})

    def test_answer(self, tmp_path: Path) -> None:
        (tmp_path / "out").write_text(xml(GPU_595))
        told = probe("nvidia_smi", self.host(tmp_path, f"cat {tmp_path}/out"))
        assert told.facts["gpu.0.name"] == "NVIDIA A100-SXM4-80GB"

    def test_crash_in_the_middle(self, tmp_path: Path) -> None:
        (tmp_path / "out").write_text(xml(GPU_595, GPU_418)[:-600])
        told = probe("nvidia_smi", self.host(tmp_path, f"cat {tmp_path}/out; kill -SEGV $$"))
        assert told.facts["smi.status"] == "ended by signal 11"
        assert told.facts["gpu.0.name"] == "NVIDIA A100-SXM4-80GB"

    def test_hang_is_given_up_in_time(self, tmp_path: Path) -> None:
        host = self.host(tmp_path, "sleep 60 & echo Tue; trap '' TERM; sleep 60")
        started = time.monotonic()
        told = probe("nvidia_smi", host, seconds=1)
        assert time.monotonic() - started < 2
        assert told.facts["smi.status"] == "timed out"
        assert unknown(told, "gpu.0.name") == "nvidia-smi did not answer within 0.5 s"
