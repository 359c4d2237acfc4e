"""`nvidia-smi -q` of several generations, filtered, cut, and without its indentation."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envaudit.importers import nvidia_smi_q, nvidia_smi_xml
from tests.importing import facts, gap, holds, imported, is_linear, prefixes_hold
from tests.smi_q_samples import Q_375, Q_470_MIG, Q_610, Q_WINDOWS_CLOCK, SAMPLES

NAME = "nvidia_smi_q"
MIB = 1 << 20


def test_of_375() -> None:
    assert facts(NAME, Q_375) == {
        "driver.version": "375.82",
        "gpu.count": 1,
        "smi.status": "ok",
        "gpu.0.pci.address": "0000:01:00.0",
        "gpu.0.name": "Quadro M1000M",
        "gpu.0.uuid": "GPU-00000000-0000-0000-0000-000000000000",
        "gpu.0.vbios.version": "82.07.9D.00.1F",
        "gpu.0.memory.total": 4041 * MIB,
        "gpu.0.memory.used": 263 * MIB,
        "gpu.0.memory.free": 3778 * MIB,
        "gpu.0.pcie.gen.current": 1,
        "gpu.0.pcie.gen.max": 3,
        "gpu.0.pcie.width.current": 8,
        "gpu.0.pcie.width.max": 16,
        "gpu.0.pcie.replays": 0,
        "gpu.0.clocks.sm.current": 135,
        "gpu.0.clocks.sm.max": 1124,
        "gpu.0.clocks.mem.current": 405,
        "gpu.0.clocks.mem.max": 2505,
        "gpu.0.pstate": "P8",
        "gpu.0.temperature": 44,
        "gpu.0.utilization": 0,
        "gpu.0.compute_mode": "exclusive_process",
        "gpu.0.persistence_mode": "disabled",
        "gpu.0.pci.id": "10de:13b1 1028:2230",
        "gpu.0.status": "ok",
        "gpu.0.clocks.event_reasons": ["gpu_idle"],
        "gpu.0.processes": 1,
    }


def test_mig_memory_is_not_the_gpus() -> None:
    told = facts(NAME, Q_470_MIG)
    assert told["gpu.0.memory.total"] == 40536 * MIB
    assert told["gpu.0.mig.current"] == "enabled"
    assert told["gpu.0.mig.instances"] == ["20096 MiB", "9984 MiB"]


def test_errors_and_remapped_rows() -> None:
    told = facts(NAME, Q_470_MIG)
    assert told["gpu.0.ecc.uncorrected"] == 4
    assert told["gpu.0.ecc.pending"] == "disabled"
    assert told["gpu.0.remapped_rows.uncorrectable"] == 2
    assert told["gpu.0.remapped_rows.pending"] is True
    assert told["gpu.0.remapped_rows.failed"] is False


def test_a_reason_below_a_reason() -> None:
    told = facts(NAME, Q_470_MIG)
    assert told["gpu.0.clocks.event_reasons"] == ["hw_slowdown", "hw_thermal_slowdown"]


def test_the_limit_in_force_is_the_enforced_one() -> None:
    assert facts(NAME, Q_470_MIG)["gpu.0.power.limit"] == 350
    assert facts(NAME, Q_610)["gpu.0.power.limit"] == 500
    assert facts(NAME, Q_610)["gpu.0.power.limit_max"] == 700  # of the GPU, not of its module
    assert facts(NAME, Q_610)["gpu.0.power.draw"] == 78.75


def test_610_calls_the_old_words_deprecated() -> None:
    told = facts(NAME, Q_610)
    assert told["driver.version"] == "610.57.04"
    assert told["driver.cuda.version"] == "13.3"
    only_old = "\n".join(line for line in Q_610.split("\n") if "KMD V" not in line[:12])
    assert facts(NAME, only_old.replace("CUDA UMD Version  ", "x"))["driver.version"] == "610.57.04"
    assert told["driver.gsp.version"] == "610.57.04"
    assert told["gpu.0.recovery_action"] == "drain_and_reset"
    assert told["gpu.0.fabric.state"] == "in_progress"
    assert told["gpu.0.processes"] == 2


def test_a_gpu_that_does_not_answer() -> None:
    read = imported(NAME, Q_610)
    told = facts(NAME, Q_610)
    assert told["gpu.1.status"] == "Unknown Error"
    assert "gpu.1.temperature" not in told
    assert gap(read, "gpu.1.memory.total") == "nvidia-smi -q printed 'Unknown Error'"


def test_a_filter_leaves_the_rest_open() -> None:
    told = facts(NAME, Q_WINDOWS_CLOCK)
    assert told["gpu.count"] == 2
    assert told["gpu.0.clocks.sm.max"] == 2100
    assert told["gpu.1.clocks.sm.max"] == 875
    assert "gpu.0.status" not in told
    assert not imported(NAME, Q_WINDOWS_CLOCK).absent


def test_cut_after_the_first_gpu() -> None:
    read = imported(NAME, Q_WINDOWS_CLOCK.partition("GPU 00000000:07")[0])
    assert read.cut == "the output of nvidia-smi -q tells of 1 of 2 GPUs"
    assert {"gpu.count", "gpu.0.clocks.sm.max"} <= {fact.name for fact in read.facts}


def test_one_gpu_that_was_asked_for() -> None:
    text = Q_WINDOWS_CLOCK.partition("GPU 00000000:07")[0]
    told = facts(NAME, text, "nvidia-smi -i 1 -q -d CLOCK")
    assert told["gpu.1.clocks.sm.max"] == 2100
    assert not any(name.startswith("gpu.0.") for name in told)


@pytest.mark.parametrize("sample", SAMPLES)
def test_without_indentation_nothing_becomes_another_fact(sample: str) -> None:
    whole = facts(NAME, sample)
    flat = facts(NAME, "\n".join(line.strip() for line in sample.split("\n")))
    assert flat.items() <= whole.items()
    assert flat["driver.version"] == whole["driver.version"]
    assert flat.get("gpu.0.name") == whole.get("gpu.0.name")


def test_in_a_quote_with_prose_behind_it() -> None:
    text = "".join(f"    {line}\n" for line in Q_375.splitlines()) + "\nClocks: what now?\nX : y\n"
    assert facts(NAME, text) == facts(NAME, Q_375)


def test_lines_that_grep_left() -> None:
    text = "Driver Version                      : 470.57.02\n"
    assert facts(NAME, text) == {"driver.version": "470.57.02"}


def test_a_line_somebody_wrote_is_none_of_it() -> None:
    assert facts(NAME, "CUDA Version : 11.8\nDriver Version: 535.54.03\n") == {}


def test_no_cuda_library() -> None:
    text = Q_470_MIG.replace(
        "CUDA Version                              : 11.4", "CUDA Version : Not Found"
    )
    assert "driver.cuda.version" not in facts(NAME, text)
    assert gap(imported(NAME, text), "driver.cuda.version") is not None


def test_the_same_facts_as_from_the_xml() -> None:
    mine = {row.name for row in nvidia_smi_q._ROWS} | {"pci.address"}
    assert mine == {row.name for row in nvidia_smi_xml._ROWS}


@given(st.sampled_from(SAMPLES), st.integers(0, 10_000))
def test_cut_anywhere(text: str, at: int) -> None:
    prefixes_hold(NAME, text, at)


@given(st.sampled_from(SAMPLES), st.integers(0, 10_000))
def test_a_cut_changes_no_value_but_the_last(text: str, at: int) -> None:
    whole, part = facts(NAME, text), facts(NAME, text[: text.rfind("\n", 0, at) + 1])
    state = {"clocks.event_reasons", "status", "processes", "ecc.uncorrected", "instances"}
    for name, value in part.items():
        if name in whole and name.split(".", 2)[-1] not in state and "mig" not in name:
            assert value == whole[name], name


@given(st.lists(st.sampled_from("\n".join(SAMPLES).splitlines()) | st.text(max_size=60)))
def test_any_text(lines: list[str]) -> None:
    holds(NAME, "\n".join(["==============NVSMI LOG==============", *lines]))


def test_no_text_takes_long() -> None:
    is_linear(NAME, "NVSMI LOG\nGPU 00000000:01:00.0\n    A : ", "NVSMI LOG\nDriver Version    ")
