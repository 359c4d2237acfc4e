"""Columns of --query-gpu, --version and the matrices of topo."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.importing import facts, gap, holds, imported, is_linear, prefixes_hold

NAME = "nvidia_smi_query"
MIB = 1 << 20
QUERY = "nvidia-smi --query-gpu="

WITH_HEADER = """\
index, name, driver_version, memory.total [MiB], power.draw [W], pcie.link.gen.current
0, NVIDIA A100-SXM4-40GB, 550.163.01, 40960 MiB, 72.10 W, 4
1, NVIDIA A100-SXM4-40GB, 550.163.01, 40960 MiB, [N/A], [Not Supported]
"""
VERSION_580 = """\
NVIDIA-SMI version  : 580.95.05
NVML version        : 580.95
DRIVER version      : 581.42
CUDA Version        : 13.0
"""
VERSION_610 = """\
NVIDIA-SMI version  : 610.43.02
NVML version        : 610.43
DRIVER version      : Deprecated, see "KMD version" instead
CUDA version        : Deprecated, see "CUDA UMD version" instead
KMD version         : 610.43.02
CUDA UMD version    : 13.3
"""
TOPO_NEW = (
    "\tGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n"
    "GPU0\t X \tNV12\tPIX\t0-31,64-95\t0\t\tN/A\n"
    "GPU1\tNV12\t X \tSYS\t32-63,96-127\t1\t\tN/A\n"
    "NIC0\tPIX\tSYS\t X \n\nLegend:\n\n  X    = Self\n"
)
TOPO_OLD = """\
        GPU0    GPU1    CPU Affinity
GPU0     X      PHB     0-11
GPU1    PHB      X      0-11
"""
PEERS = " \tGPU0\tGPU1\n GPU0\tX\tCNS\n GPU1\tCNS\tX\n\nLegend:\n  CNS  = Chipset not supported\n"
SAMPLES = (WITH_HEADER, VERSION_580, VERSION_610, TOPO_NEW, TOPO_OLD, PEERS)


def test_columns_of_the_header() -> None:
    assert facts(NAME, WITH_HEADER) == {
        "driver.version": "550.163.01",
        "gpu.0.name": "NVIDIA A100-SXM4-40GB",
        "gpu.0.memory.total": 40960 * MIB,
        "gpu.0.power.draw": 72.1,
        "gpu.0.pcie.gen.current": 4,
        "gpu.1.name": "NVIDIA A100-SXM4-40GB",
        "gpu.1.memory.total": 40960 * MIB,
    }


@pytest.mark.parametrize(
    ("columns", "text", "told"),
    [
        ("driver_version --format=csv,noheader", "460.32.03", {"driver.version": "460.32.03"}),
        (
            "name,compute_cap --format=csv,noheader",
            "Tesla V100-PCIE-16GB, 7.0",
            {"gpu.0.name": "Tesla V100-PCIE-16GB", "gpu.0.compute_capability": "7.0"},
        ),
        (
            "memory.total,temperature.gpu --format=csv,noheader,nounits",
            "24576, 33",
            {"gpu.0.memory.total": 24576 * MIB, "gpu.0.temperature": 33},
        ),
        (
            "clocks_throttle_reasons.hw_slowdown,pstate --format=csv,noheader",
            "Active, P2",
            {"gpu.0.clocks.event_reasons": ["hw_slowdown"], "gpu.0.pstate": "P2"},
        ),
        ("name --format=csv", "name\nNVIDIA B200", {"gpu.0.name": "NVIDIA B200"}),
    ],
)
def test_columns_of_the_command(columns: str, text: str, told: dict[str, object]) -> None:
    assert facts(NAME, f"{text}\n", f"{QUERY}{columns}") == {"gpu.count": 1, **told}


def test_rows_that_were_filtered_tell_no_count() -> None:
    text = "NVIDIA H100 PCIe\n"
    assert facts(NAME, text, f"{QUERY}name --format=csv,noheader | head -n 1") == {
        "gpu.0.name": "NVIDIA H100 PCIe"
    }
    assert facts(NAME, text, f"{QUERY}name --format=csv,noheader -i 3") == {
        "gpu.3.name": "NVIDIA H100 PCIe"
    }


def test_a_command_without_a_prompt_that_we_know() -> None:
    text = (
        f"> {QUERY}name --format=csv,noheader\nNVIDIA GeForce GTX 1050 Ti\n\nThanks for any help\n"
    )
    assert facts(NAME, text) == {"gpu.0.name": "NVIDIA GeForce GTX 1050 Ti", "gpu.count": 1}


def test_prose_is_no_row() -> None:
    command = f"{QUERY}name --format=csv,noheader"
    assert facts(NAME, "Failed to initialize NVML: Unknown Error\n", command) == {}
    assert facts(NAME, "name\ntorch\n") == {}
    assert facts(NAME, "name, version\ntorch, 2.1.0\n") == {}


def test_a_gpu_that_does_not_answer() -> None:
    read = imported(NAME, "[Unknown Error]\n", f"{QUERY}temperature.gpu --format=csv,noheader")
    assert gap(read, "gpu.0.temperature") == "nvidia-smi printed '[Unknown Error]'"


def test_versions() -> None:
    assert facts(NAME, VERSION_580) == {
        "smi.version": "580.95.05",
        "nvml.version": "580.95",
        "driver.version": "581.42",
        "driver.cuda.version": "13.0",
    }


def test_versions_since_610() -> None:
    assert facts(NAME, VERSION_610) == {
        "smi.version": "610.43.02",
        "nvml.version": "610.43",
        "driver.version": "610.43.02",
        "driver.cuda.version": "13.3",
    }


def test_wiring() -> None:
    assert facts(NAME, TOPO_NEW) == {
        "gpu.0.link.1": "NV12",
        "gpu.0.numa_node": 0,
        "gpu.1.link.0": "NV12",
        "gpu.1.numa_node": 1,
        "gpu.count": 2,
    }
    assert facts(NAME, TOPO_OLD) == {
        "gpu.0.link.1": "PHB",
        "gpu.1.link.0": "PHB",
        "gpu.count": 2,
    }
    squeezed = "\n".join(" ".join(line.split()) for line in TOPO_NEW.split("\n"))
    assert facts(NAME, squeezed) == facts(NAME, TOPO_NEW)


def test_peers_count_for_reading_only() -> None:
    assert facts(NAME, PEERS, "nvidia-smi topo -p2p r") == {
        "gpu.0.p2p.1": "chipset not supported",
        "gpu.1.p2p.0": "chipset not supported",
        "gpu.count": 2,
    }
    assert facts(NAME, PEERS, "nvidia-smi topo -p2p n") == {"gpu.count": 2}


@given(st.sampled_from(SAMPLES), st.integers(0, 2000))
def test_cut_anywhere(text: str, at: int) -> None:
    prefixes_hold(NAME, text, at)


@given(
    st.lists(st.sampled_from("\n".join(SAMPLES).splitlines()) | st.text(max_size=60)),
    st.sampled_from(("", f"{QUERY}name,memory.total,driver_version --format=csv")),
)
def test_any_text(lines: list[str], command: str) -> None:
    holds(NAME, "\n".join(lines), command)


def test_no_text_takes_long() -> None:
    is_linear(NAME, "GPU0 X ", "index, name, driver_version\n0, NVIDIA ", "nvidia-smi ")
