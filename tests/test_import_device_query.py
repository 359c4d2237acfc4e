"""deviceQuery, and what prints the properties of a device alike."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.importing import facts, holds, is_linear, prefixes_hold

NAME = "device_query"

QUERY = """\
 CUDA Device Query (Runtime API) version (CUDART static linking)

Detected 2 CUDA Capable device(s)

Device 0: "Tesla K80"
  CUDA Driver Version / Runtime Version          11.4 / 10.2
  CUDA Capability Major/Minor version number:    3.7
  Total amount of global memory:                 11441 MBytes (11996954624 bytes)

Device 1: "NVIDIA GeForce RTX 3080"
  CUDA Driver Version / Runtime Version          11.4 / 10.2
  CUDA Capability Major/Minor version number:    8.6
deviceQuery, CUDA Driver = CUDART, CUDA Driver Version = 11.4, NumDevs = 2
"""
MEMTEST = """\
num_gpus=1
Device name=GeForce RTX 3070 Laptop GPU, global memory size=8370061312, serial=0
major=8, minor=6
Attached to device 0 successfully.
"""
PROPERTIES = """\
device 0: _CudaDeviceProperties(name="Tesla T4", major=7, minor=5, total_memory=15079MB)
device 1: _CudaDeviceProperties(name="NVIDIA L4", major=8, minor=9, total_memory=22491MB)
""".replace('"', "\x27")
SAMPLE_PROGRAM = """\
[Matrix Multiply Using CUDA] - Starting...
GPU Device 0: "Turing" with compute capability 7.5
"""
SAMPLES = (QUERY, MEMTEST, PROPERTIES, SAMPLE_PROGRAM)


def test_device_query() -> None:
    assert facts(NAME, QUERY) == {
        "gpu.0.name": "Tesla K80",
        "driver.cuda.version": "11.4",
        "cuda.runtime.version": "10.2",
        "gpu.0.compute_capability": "3.7",
        "gpu.1.name": "NVIDIA GeForce RTX 3080",
        "gpu.1.compute_capability": "8.6",
    }


def test_memtest() -> None:
    assert facts(NAME, MEMTEST) == {
        "gpu.0.name": "GeForce RTX 3070 Laptop GPU",
        "gpu.0.compute_capability": "8.6",
    }


def test_properties_of_torch() -> None:
    assert facts(NAME, PROPERTIES) == {
        "gpu.0.name": "Tesla T4",
        "gpu.0.compute_capability": "7.5",
        "gpu.1.name": "NVIDIA L4",
        "gpu.1.compute_capability": "8.9",
    }


def test_a_sample_program_names_the_generation_not_the_product() -> None:
    assert facts(NAME, SAMPLE_PROGRAM) == {"gpu.0.compute_capability": "7.5"}


@given(st.sampled_from(SAMPLES), st.integers(0, 5000))
def test_cut_anywhere(text: str, at: int) -> None:
    prefixes_hold(NAME, text, at)


@given(st.lists(st.sampled_from("\n".join(SAMPLES).splitlines()) | st.text(max_size=60)))
def test_any_text(lines: list[str]) -> None:
    holds(NAME, "\n".join(lines))


def test_no_text_takes_long() -> None:
    is_linear(NAME, "Device 0: ", "evice name=", "CudaDeviceProperties(name=")
