"""`CUDA.versioninfo()` of Julia, from 2021 to today."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.importing import facts, holds, is_linear, prefixes_hold

NAME = "julia_cuda"

OF_2021 = """\
CUDA toolkit 11.4.1, artifact installation
CUDA driver 11.4.0
NVIDIA driver 470.57.2

Libraries:
- CUBLAS: 11.5.4
- CURAND: 10.2.5
- NVML: 11.0.0+470.57.2
- CUDNN: 8.20.2 (for CUDA 11.4.0)

Toolchain:
- Julia: 1.6.2
- LLVM: 11.0.1

1 device:
  0: NVIDIA GeForce RTX 2080 Ti (sm_75, 10.751 GiB / 10.761 GiB available)
"""
OF_2023 = """\
CUDA runtime 12.1, artifact installation
CUDA driver 12.1
NVIDIA driver 531.14.0, originally for CUDA 12.1

CUDA libraries:
- CUBLAS: 12.1.3
- NVML: 12.0.0+531.14

2 devices:
  0: NVIDIA A100-PCIE-40GB (sm_80, 39.389 GiB / 40.000 GiB available)
  1: NVIDIA H100 PCIe (sm_90, 78.891 GiB / 79.647 GiB available)
"""
OF_TODAY = """\
CUDA toolchain:
- runtime 12.9, artifact installation
- driver 575.57.8 for 12.9
- compiler 12.9

CUDA libraries:
- CUBLAS: 12.9.1

Julia packages:
- CUDA: 5.8.2

Toolchain:
- Julia: 1.11.5
- LLVM: 16.0.6

1 device:
  0: NVIDIA GeForce RTX 5080 (sm_120, 15.453 GiB / 15.921 GiB available)
"""
SAMPLES = (OF_2021, OF_2023, OF_TODAY)


def test_of_2021() -> None:
    assert facts(NAME, OF_2021) == {
        "cuda.runtime.version": "11.4.1",
        "driver.cuda.version": "11.4",
        "driver.version": "470.57.02",
        "cudnn.version": "8.2.2",
        "gpu.0.name": "NVIDIA GeForce RTX 2080 Ti",
        "gpu.0.compute_capability": "7.5",
    }


def test_of_2023() -> None:
    assert facts(NAME, OF_2023) == {
        "cuda.runtime.version": "12.1",
        "driver.cuda.version": "12.1",
        "driver.version": "531.14",
        "gpu.0.name": "NVIDIA A100-PCIE-40GB",
        "gpu.0.compute_capability": "8.0",
        "gpu.1.name": "NVIDIA H100 PCIe",
        "gpu.1.compute_capability": "9.0",
    }


def test_of_today() -> None:
    assert facts(NAME, OF_TODAY) == {
        "cuda.runtime.version": "12.9",
        "driver.version": "575.57.08",
        "driver.cuda.version": "12.9",
        "gpu.0.name": "NVIDIA GeForce RTX 5080",
        "gpu.0.compute_capability": "12.0",
    }


def test_cudnn_9_has_minors_of_two_digits() -> None:
    text = OF_2021.replace("8.20.2 (for CUDA 11.4.0)", "9.10.2 (for CUDA 12.9.0)")
    assert facts(NAME, text)["cudnn.version"] == "9.10.2"


@given(st.sampled_from(SAMPLES), st.integers(0, 5000))
def test_cut_anywhere(text: str, at: int) -> None:
    prefixes_hold(NAME, text, at)


@given(st.lists(st.sampled_from("\n".join(SAMPLES).splitlines()) | st.text(max_size=60)))
def test_any_text(lines: list[str]) -> None:
    holds(NAME, "\n".join(lines))


def test_no_text_takes_long() -> None:
    is_linear(NAME, "CUDA runtime ", "  0: ")
