from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envaudit.addresses import pci_address
from envaudit.facts import spec_of
from envaudit.importers import Imported, Section, nvidia_smi_table, nvidia_smi_xml
from envaudit.importers.nvidia_smi_words import amount, no_handles, version
from envaudit.model import covers
from tests.smi_samples import (
    FAILED,
    GPU_418,
    GPU_595,
    LISTED,
    MISMATCH,
    TABLE_384,
    TABLE_580,
    TABLE_615,
    TABLE_SICK,
    TABLE_WINDOWS,
    TABLES,
    xml,
)

MIB = 1 << 20


def values(imported: Imported) -> dict[str, Any]:
    for fact in imported.facts:
        assert spec_of(fact.name) is not None, fact.name
        assert fact.source
    return {fact.name: fact.value for fact in imported.facts}


def table(text: str) -> dict[str, Any]:
    return values(nvidia_smi_table.parse(Section(text)))


def gpus(facts: dict[str, Any]) -> set[str]:
    return {name.split(".")[1] for name in facts if name.startswith("gpu.") and name != "gpu.count"}


def open_to(imported: Imported, name: str) -> str | None:
    return next((why for gap, why in imported.gaps.items() if covers(gap, name)), None)


class TestTable:
    def test_one_of_today(self) -> None:
        facts = table(TABLE_580)
        assert facts == {
            "smi.status": "ok",
            "smi.version": "580.95.05",
            "driver.version": "580.95.05",
            "driver.cuda.version": "13.0",
            "gpu.count": 2,
            "gpu.0.name": "NVIDIA H100 80GB HBM3",
            "gpu.0.pci.address": "0000:1a:00.0",
            "gpu.0.persistence_mode": "enabled",
            "gpu.0.ecc.current": "enabled",
            "gpu.0.ecc.uncorrected": 0,
            "gpu.0.temperature": 34,
            "gpu.0.pstate": "P0",
            "gpu.0.power.draw": 95,
            "gpu.0.power.limit": 700,
            "gpu.0.memory.used": 4 * MIB,
            "gpu.0.memory.total": 81559 * MIB,
            "gpu.0.utilization": 7,
            "gpu.0.compute_mode": "default",
            "gpu.0.mig.current": "disabled",
            "gpu.0.processes": 0,
            "gpu.0.status": "ok",
            "gpu.1.name": "NVIDIA GeForce RTX 5070 ...",
            "gpu.1.pci.address": "0000:1b:00.0",
            "gpu.1.persistence_mode": "disabled",
            "gpu.1.temperature": 51,
            "gpu.1.pstate": "P8",
            "gpu.1.power.draw": 7,
            "gpu.1.memory.used": 273 * MIB,
            "gpu.1.memory.total": 12227 * MIB,
            "gpu.1.utilization": 2,
            "gpu.1.compute_mode": "default",
            "gpu.1.processes": 2,
            "gpu.1.status": "ok",
        }

    def test_before_the_cuda_column(self) -> None:
        imported = nvidia_smi_table.parse(Section(TABLE_384))
        facts = values(imported)
        assert facts["driver.version"] == "384.111"
        assert facts["gpu.0.name"] == "Tesla K80"
        assert facts["gpu.0.compute_mode"] == "exclusive_process"
        assert facts["gpu.0.processes"] == 1
        assert open_to(imported, "driver.cuda.version") == "this nvidia-smi does not print it"

    def test_new_words_in_the_heading(self) -> None:
        facts = table(TABLE_615)
        assert facts["driver.version"] == "615.71.09"
        assert facts["driver.cuda.version"] == "13.4"
        assert facts["gpu.0.name"] == "NVIDIA L4"

    def test_without_the_process_table_more_gpus_may_follow(self) -> None:
        imported = nvidia_smi_table.parse(Section(TABLE_615))
        assert "gpu.count" not in values(imported)
        assert open_to(imported, "gpu.count") == "the nvidia-smi table may go on behind the text"

    def test_no_cuda_library(self) -> None:
        imported = nvidia_smi_table.parse(
            Section(TABLE_580.replace("CUDA Version: 13.0", "CUDA Version: N/A "))
        )
        assert "driver.cuda.version" not in values(imported)
        assert open_to(imported, "driver.cuda.version") is None

    def test_what_head_leaves(self) -> None:
        imported = nvidia_smi_table.parse(Section("\n".join(TABLE_580.split("\n")[:3]) + "\n"))
        assert values(imported) == {
            "smi.status": "ok",
            "smi.version": "580.95.05",
            "driver.version": "580.95.05",
            "driver.cuda.version": "13.0",
        }
        assert open_to(imported, "gpu.count") == "no GPU in the nvidia-smi table"

    @pytest.mark.parametrize("text", [TABLE_384, TABLE_580, TABLE_WINDOWS])
    def test_around_its_lines_a_paste_has_put_something(self, text: str) -> None:
        plain = table(text)
        lines = text.split("\n")
        squeezed = "\n".join(" ".join(line.split()) for line in lines)
        escaped = text.replace("|", "\\|").replace("---", "\\---").replace("+", "\\+")
        prefixed = "\n".join(f"gpu-test-1  | {line}" for line in lines)
        stamped = "\n".join(f"2024-05-06T10:01:02.123Z {line}" for line in lines)
        wrapped = "\n".join(
            line[at : at + 70] for line in lines for at in range(0, max(len(line), 1), 70)
        )
        for changed in (squeezed, escaped, prefixed, stamped, wrapped):
            assert table(changed) == plain

    def test_one_wide_line_between_the_others(self) -> None:
        text = TABLE_580.replace("C+G   ...ing", f"C+G   {'x' * 300} ...ing")
        assert table(text)["gpu.1.name"] == "NVIDIA GeForce RTX 5070 ..."

    def test_driver_model_of_windows(self) -> None:
        facts = table(TABLE_WINDOWS)
        assert facts["gpu.0.name"] == "Tesla P4"
        assert facts["gpu.0.driver_model"] == "TCC"
        assert facts["gpu.0.ecc.current"] == "disabled"
        assert facts["gpu.0.compute_mode"] == "prohibited"
        assert "gpu.0.persistence_mode" not in facts

    def test_wsl_prints_two_versions(self) -> None:
        facts = table(TABLE_580.replace("NVIDIA-SMI 580.95.05", "NVIDIA-SMI 580.95   "))
        assert facts["smi.version"] == "580.95"
        assert facts["driver.version"] == "580.95.05"

    def test_gpu_that_does_not_answer(self) -> None:
        imported = nvidia_smi_table.parse(Section(TABLE_SICK))
        facts = values(imported)
        assert facts["gpu.count"] == 3
        assert facts["gpu.1.status"] == "ERR!"
        assert facts["gpu.1.pci.address"] == "0000:83:00.0"
        for name in ("name", "temperature", "ecc.current", "mig.current"):
            assert f"gpu.1.{name}" not in facts
            assert open_to(imported, f"gpu.1.{name}") == "nvidia-smi printed 'ERR!'"
        assert open_to(imported, "driver.cuda.version") == "nvidia-smi printed 'ERR!'"

    def test_mig(self) -> None:
        facts = table(TABLE_SICK)
        assert facts["gpu.0.mig.current"] == "enabled"
        assert facts["gpu.0.mig.instances"] == ["9856 MiB", "19968 MiB"]
        assert facts["gpu.0.ecc.current"] == "enabled"
        assert "gpu.0.utilization" not in facts

    def test_warning_below_the_table(self) -> None:
        assert table(TABLE_SICK)["gpu.0.status"] == "infoROM is corrupted"

    def test_jetson_has_next_to_nothing(self) -> None:
        facts = {n: v for n, v in table(TABLE_SICK).items() if n.startswith("gpu.2.")}
        assert facts == {
            "gpu.2.name": "Orin (nvgpu)",
            "gpu.2.status": "ok",
            "gpu.2.processes": 0,
        }

    def test_gpu_without_a_handle_is_not_absent(self) -> None:
        line = "Unable to determine the device handle for GPU2: 0000:5F:00.0: Unknown Error\n"
        imported = nvidia_smi_table.parse(Section(line + TABLE_580))
        facts = values(imported)
        assert facts["gpu.count"] == 3
        assert facts["gpu.2.status"] == "Unknown Error"
        assert facts["gpu.2.pci.address"] == "0000:5f:00.0"
        assert open_to(imported, "gpu.2.name") == line.strip()

    def test_gpu_without_a_handle_and_without_a_number(self) -> None:
        line = "Unable to determine the device handle for GPU 0000:04:00.0: GPU is lost.  Reboot\n"
        imported = nvidia_smi_table.parse(Section(line + TABLE_580))
        assert "gpu.count" not in values(imported)
        assert "GPU is lost" in (open_to(imported, "gpu.count") or "")

    def test_left_out_rows_leave_the_count_open(self) -> None:
        imported = nvidia_smi_table.parse(
            Section(TABLE_580.replace("|   1  NVIDIA", "|   3  NVIDIA"))
        )
        assert gpus(values(imported)) == {"0", "3"}
        assert "gpu.count" not in values(imported)
        assert open_to(imported, "gpu.count")

    def test_heading_alone(self) -> None:
        line = "| NVIDIA-SMI 537.42      Driver Version: 537.42       CUDA Version: 12.2     |"
        imported = nvidia_smi_table.parse(Section(f'$ nvidia-smi | grep "CUDA Version"\n{line}\n'))
        assert values(imported)["driver.version"] == "537.42"
        assert not gpus(values(imported))
        assert open_to(imported, "gpu.count") == "no GPU in the nvidia-smi table"

    @pytest.mark.parametrize("prefix", ["    ", "\t", "> "])
    def test_indented_or_quoted(self, prefix: str) -> None:
        text = "".join(prefix + line for line in TABLE_580.splitlines(keepends=True))
        assert table(text) == table(TABLE_580)

    def test_windows_line_ends(self) -> None:
        assert table(TABLE_580.replace("\n", "\r\n")) == table(TABLE_580)

    def test_text_around_it_and_a_second_table(self) -> None:
        imported = nvidia_smi_table.parse(
            Section(f"$ nvidia-smi\n{TABLE_615}$ docker run ...\n{TABLE_580}")
        )
        assert values(imported) == table(TABLE_615)
        assert imported.notes

    @pytest.mark.parametrize("text", TABLES)
    def test_cut_anywhere(self, text: str) -> None:
        whole = table(text)
        for end in range(len(text)):
            imported = nvidia_smi_table.parse(Section(text[:end]))
            for name, value in values(imported).items():
                if name == "gpu.0.mig.instances":
                    assert value == whole[name][: len(value)]
                elif name != "gpu.0.status":  # the warning stands below the table
                    assert value == whole[name], (end, name)


class TestList:
    def test_names_and_uuids(self) -> None:
        assert table(LISTED) == {
            "gpu.count": 2,
            "gpu.0.name": "NVIDIA H100 80GB HBM3",
            "gpu.0.uuid": "GPU-00000000-0000-4000-8000-000000000000",
            "gpu.1.name": "NVIDIA GeForce RTX 5070 Ti Laptop GPU",
            "gpu.1.uuid": "GPU-00000000-0000-4000-8000-000000000001",
            "gpu.1.mig.instances": ["3g.20gb", "2g.10gb"],
        }

    def test_completes_the_names_of_a_table(self) -> None:
        facts = table(TABLE_580 + LISTED)
        assert facts["gpu.1.name"] == "NVIDIA GeForce RTX 5070 Ti Laptop GPU"
        assert facts["gpu.1.temperature"] == 51


class TestFailures:
    def test_no_driver(self) -> None:
        imported = nvidia_smi_table.parse(Section(f"$ nvidia-smi\n{FAILED}\n\n$ uname -r\n6.1.0\n"))
        assert values(imported) == {"smi.status": FAILED}
        for name in ("gpu.count", "gpu.0.name", "driver.version", "driver.cuda.version"):
            assert open_to(imported, name) == FAILED

    def test_mismatch(self) -> None:
        assert table(MISMATCH) == {
            "smi.status": "Failed to initialize NVML: Driver/library version mismatch",
            "nvml.status": "Driver/library version mismatch",
            "nvml.version": "535.183",
        }

    @pytest.mark.parametrize(
        "text",
        [
            "Failed to initialize NVML: Unknown Error",
            "Failed to initialize NVML: GPU access blocked by the operating system",
            "Failed to properly shut down NVML: Unknown Error",
            "NVIDIA-SMI couldn't find libnvidia-ml.so library in your system.",
            "Unable to determine the device handle for GPU 0000:01:00.0: Not Found",
            "Mismatch in versions between nvidia-smi and NVML.\nAre you sure ...?",
            "Unknown Error",
        ],
    )
    def test_others(self, text: str) -> None:
        assert nvidia_smi_table.recognises(Section(text))
        imported = nvidia_smi_table.parse(Section(text))
        assert values(imported)["smi.status"] == text.split("\n")[0]
        assert not gpus(values(imported))
        assert open_to(imported, "gpu.0.name")

    def test_no_devices_is_an_answer(self) -> None:
        imported = nvidia_smi_table.parse(Section("No devices were found\n"))
        assert values(imported) == {"smi.status": "No devices were found", "gpu.count": 0}
        assert open_to(imported, "gpu.count") is None

    @pytest.mark.parametrize(
        ("line", "index", "address", "error"),
        [
            ("GPU3: 0000:5F:00.0: Unknown Error", 3, "0000:5f:00.0", "Unknown Error"),
            ("GPU2: Unknown Error", 2, None, "Unknown Error"),
            ("GPU0000:25:00.0: Unknown Error", None, "0000:25:00.0", "Unknown Error"),
            ("GPU 0000:04:00.0: GPU is lost.  Reboot", None, "0000:04:00.0", "GPU is lost"),
            ("gpu 0000:04:00.0: Not Found", None, "0000:04:00.0", "Not Found"),
        ],
    )
    def test_lost_gpu(self, line: str, index: int | None, address: str | None, error: str) -> None:
        (found,) = no_handles(f"Unable to determine the device handle for {line}\n")
        assert (found.gpu, found.address, found.error) == (index, address, error)

    def test_other_texts_are_not_recognised(self) -> None:
        for text in ("", "Failed to initialize the database", "GPU 0: yes", "| a | b | c |"):
            assert not nvidia_smi_table.recognises(Section(text))
            assert not nvidia_smi_xml.recognises(Section(text))


class TestXml:
    def test_old_driver(self) -> None:
        imported = nvidia_smi_xml.parse(Section(xml(GPU_418, driver="418.43", cuda="10.1")))
        assert values(imported) == {
            "smi.status": "ok",
            "driver.version": "418.43",
            "driver.cuda.version": "10.1",
            "gpu.count": 1,
            "gpu.0.status": "ok",
            "gpu.0.name": "GeForce GTX 1660 Ti",
            "gpu.0.uuid": "GPU-00000000-0000-4000-8000-000000001660",
            "gpu.0.pci.address": "0000:43:00.0",
            "gpu.0.pci.id": "10de:2184 1458:3fc8",
            "gpu.0.vbios.version": "90.16.25.00.4C",
            "gpu.0.memory.total": 5912 * MIB,
            "gpu.0.memory.used": 0,
            "gpu.0.memory.free": 5912 * MIB,
            "gpu.0.bar1.total": 256 * MIB,
            "gpu.0.pcie.gen.current": 1,
            "gpu.0.pcie.gen.max": 3,
            "gpu.0.pcie.width.current": 8,
            "gpu.0.pcie.width.max": 16,
            "gpu.0.pcie.replays": 0,
            "gpu.0.power.draw": 8.93,
            "gpu.0.power.limit": 120,
            "gpu.0.power.limit_default": 130,
            "gpu.0.power.limit_max": 140,
            "gpu.0.clocks.sm.current": 300,
            "gpu.0.clocks.sm.max": 2145,
            "gpu.0.clocks.mem.current": 405,
            "gpu.0.clocks.mem.max": 4001,
            "gpu.0.clocks.event_reasons": ["gpu_idle", "display_clock_setting"],
            "gpu.0.pstate": "P8",
            "gpu.0.temperature": 40,
            "gpu.0.utilization": 0,
            "gpu.0.processes": 0,
            "gpu.0.compute_mode": "exclusive_process",
            "gpu.0.persistence_mode": "disabled",
        }
        # Absent where it says N/A, unknown where this nvidia-smi never heard of it.
        assert open_to(imported, "gpu.0.ecc.current") is None
        assert open_to(imported, "gpu.0.serial") is None
        assert open_to(imported, "gpu.0.mig.current") == "this nvidia-smi does not print it"
        assert open_to(imported, "gpu.0.compute_capability") == "nvidia-smi -q does not tell it"

    def test_new_driver(self) -> None:
        facts = values(nvidia_smi_xml.parse(Section(xml(GPU_595))))
        expected = {
            "driver.gsp.version": "595.84",
            "gpu.0.serial": "1650522003820",
            "gpu.0.pcie.gen.device_max": 5,
            "gpu.0.pcie.replays": 3,
            "gpu.0.power.draw": 67.03,
            "gpu.0.power.limit": 400,
            "gpu.0.power.limit_default": 500,
            "gpu.0.clocks.event_reasons": ["sw_power_cap"],
            "gpu.0.ecc.current": "enabled",
            "gpu.0.ecc.pending": "enabled",
            "gpu.0.ecc.uncorrected": 7,
            "gpu.0.remapped_rows.correctable": 0,
            "gpu.0.remapped_rows.uncorrectable": 4,
            "gpu.0.remapped_rows.pending": True,
            "gpu.0.remapped_rows.failed": False,
            "gpu.0.recovery_action": "drain_and_reset",
            "gpu.0.mig.current": "enabled",
            "gpu.0.mig.pending": "disabled",
            "gpu.0.mig.instances": ["19968 MiB", "9856 MiB"],
            "gpu.0.fabric.state": "in_progress",
            "gpu.0.processes": 2,
        }
        assert expected.items() <= facts.items()
        assert "gpu.0.utilization" not in facts
        assert "gpu.0.fabric.status" not in facts

    def test_new_words_for_versions(self) -> None:
        deprecated = "[Deprecated; will be removed in CUDA 14.0. Use KMD Version instead]"
        text = xml(GPU_595, driver=f"610.57.04 {deprecated}", cuda=f"13.1 {deprecated}")
        facts = values(nvidia_smi_xml.parse(Section(text)))
        assert (facts["driver.version"], facts["driver.cuda.version"]) == ("610.57.04", "13.1")
        both = "<kmd_version>610.57.04</kmd_version><cuda_umd_version>13.3</cuda_umd_version>"
        text = xml(GPU_595, driver=f"610.57.04 {deprecated}", cuda=deprecated, extra=both)
        facts = values(nvidia_smi_xml.parse(Section(text)))
        assert (facts["driver.version"], facts["driver.cuda.version"]) == ("610.57.04", "13.3")

    def test_group_that_the_gpu_lacks(self) -> None:
        start, end = GPU_595.index("<remapped_rows>"), GPU_595.index("</remapped_rows>")
        text = GPU_595[: start + len("<remapped_rows>")] + "N/A" + GPU_595[end:]
        imported = nvidia_smi_xml.parse(Section(xml(text)))
        assert "gpu.0.remapped_rows.pending" not in values(imported)
        assert open_to(imported, "gpu.0.remapped_rows.pending") is None

    def test_lost_gpu(self) -> None:
        lost = GPU_595.replace("27 C", "GPU is lost").replace("81920 MiB", "GPU is lost")
        imported = nvidia_smi_xml.parse(Section(xml(GPU_418, lost)))
        facts = values(imported)
        assert facts["gpu.count"] == 2
        assert facts["gpu.0.status"] == "ok"
        assert facts["gpu.1.status"] == "GPU is lost"
        assert facts["gpu.1.name"] == "NVIDIA A100-SXM4-80GB"
        for name in ("temperature", "memory.total", "processes", "mig.instances"):
            assert f"gpu.1.{name}" not in facts
            assert open_to(imported, f"gpu.1.{name}")

    def test_gpu_without_a_handle_keeps_its_number(self) -> None:
        line = "Unable to determine the device handle for GPU0: 0000:04:00.0: GPU is lost.\n"
        text = xml(GPU_595).replace("<attached_gpus>1<", "<attached_gpus>2<")
        imported = nvidia_smi_xml.parse(Section(line + text))
        facts = values(imported)
        assert facts["gpu.count"] == 2
        assert facts["gpu.0.status"] == "GPU is lost"
        assert facts["gpu.1.name"] == "NVIDIA A100-SXM4-80GB"
        assert "GPU is lost" in (open_to(imported, "gpu.0.name") or "")

    def test_fewer_gpus_than_attached(self) -> None:
        text = xml(GPU_595).replace("<attached_gpus>1<", "<attached_gpus>4<")
        imported = nvidia_smi_xml.parse(Section(text))
        assert values(imported)["gpu.count"] == 4
        assert open_to(imported, "gpu.3.name") == "nvidia-smi -q -x tells of 1 of 4 GPUs"

    def test_words_that_are_no_value(self) -> None:
        imported = nvidia_smi_xml.parse(Section(xml(GPU_418.replace("40 C", "warm"))))
        assert "gpu.0.temperature" not in values(imported)
        assert "'warm'" in (open_to(imported, "gpu.0.temperature") or "")

    def test_cut_anywhere_keeps_whole_gpus_only(self) -> None:
        text = xml(GPU_595, GPU_418)
        whole = values(nvidia_smi_xml.parse(Section(text)))
        ends = [
            text.index("</gpu>\n\t<gpu ") + len("</gpu>"),
            text.rindex("</gpu>") + len("</gpu>"),
        ]
        for cut in range(len(text.rstrip())):
            imported = nvidia_smi_xml.parse(Section(text[:cut]))
            facts = values(imported)
            complete = sum(cut >= end for end in ends)
            assert gpus(facts) == {str(n) for n in range(complete)}, cut
            assert facts.items() <= whole.items()
            assert "smi.status" not in facts
            if complete < 2:
                assert open_to(imported, "gpu.1.name"), cut

    def test_damaged_in_the_middle(self) -> None:
        text = xml(GPU_418, GPU_595.replace("<serial>", "<serial"))
        imported = nvidia_smi_xml.parse(Section(text))
        assert gpus(values(imported)) == {"0"}
        assert "cut in GPU 1" in (open_to(imported, "gpu.1.name") or "")
        assert "smi.status" not in values(imported)

    def test_entities_are_refused(self) -> None:
        bomb = '<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]>'
        imported = nvidia_smi_xml.parse(Section(bomb + xml(GPU_418.replace("40 C", "&b;"))))
        assert not values(imported)
        assert "entities" in (open_to(imported, "gpu.0.name") or "")

    def test_a_document_without_an_end_to_its_depth(self) -> None:
        imported = nvidia_smi_xml.parse(Section("<nvidia_smi_log>" + "<gpu>" * 100_000))
        assert not gpus(values(imported))
        assert open_to(imported, "gpu.0.name")


class TestWords:
    @pytest.mark.parametrize(
        ("text", "unit", "number"),
        [
            ("139.62 W", "W", 139.62),
            ("400.00 W", "W", 400),
            ("16x", "x", 16),
            ("0 %", "%", 0),
            ("95W", "W", 95),
            ("95 C", "W", None),
            ("9" * 5000 + " W", "W", None),
            ("N/A", "W", None),
            ("", "", None),
        ],
    )
    def test_amounts(self, text: str, unit: str, number: float | None) -> None:
        assert amount(text, unit) == number

    @pytest.mark.parametrize(
        ("text", "found"),
        [
            ("580.65.06", "580.65.06"),
            ("13.3 [Deprecated; use CUDA UMD Version]", "13.3"),
            ("13.3x", None),
            ("N/A", None),
            ("13", None),
        ],
    )
    def test_versions(self, text: str, found: str | None) -> None:
        assert version(text) == found

    @pytest.mark.parametrize(
        ("text", "address"),
        [
            ("00000000:1A:00.0", "0000:1a:00.0"),
            ("0000:01:00.0", "0000:01:00.0"),
            ("00010000:3B:00.0", "10000:3b:00.0"),
            ("N/A", None),
            ("1A:00", None),
        ],
    )
    def test_addresses(self, text: str, address: str | None) -> None:
        assert pci_address(text) == address


@given(st.text(max_size=2000))
def test_no_text_raises(text: str) -> None:
    for module in (nvidia_smi_table, nvidia_smi_xml):
        module.recognises(Section(text))
        assert not gpus(values(module.parse(Section(text)))) or module.recognises(Section(text))


@given(
    st.sampled_from([*TABLES, LISTED, xml(GPU_595, GPU_418)]), st.integers(), st.text(max_size=9)
)
def test_no_damage_raises(text: str, seed: int, filler: str) -> None:
    chance = random.Random(seed)
    for _ in range(chance.randrange(1, 8)):
        start = chance.randrange(len(text))
        text = text[:start] + filler + text[start + chance.randrange(40) :]
        if not text:
            break
    for module in (nvidia_smi_table, nvidia_smi_xml):
        values(module.parse(Section(text)))
