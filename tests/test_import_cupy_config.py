"""`cupy.show_config()` from 2018 to today."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.importing import absent, facts, gap, holds, imported, is_linear, prefixes_hold

NAME = "cupy_config"

OF_2018 = """\
CuPy Version          : 4.0.0
CUDA Root             : /usr/local/cuda
CUDA Build Version    : 9020
CUDA Driver Version   : 9020
CUDA Runtime Version  : 9020
cuDNN Build Version   : 7102
cuDNN Version         : 7102
NCCL Build Version    : 2115
"""
OF_2023 = """\
OS                           : Linux-5.15.0-76-generic-x86_64-with-glibc2.35
Python Version               : 3.10.6
CuPy Version                 : 12.1.0
CuPy Platform                : NVIDIA CUDA
NumPy Version                : 1.24.3
SciPy Version                : None
Cython Build Version         : 0.29.34
Cython Runtime Version       : None
CUDA Root                    : /usr/local/cuda
nvcc PATH                    : /usr/local/cuda/bin/nvcc
CUDA Build Version           : 12010
CUDA Driver Version          : 12020
CUDA Runtime Version         : 12010
cuBLAS Version               : (available)
cuSOLVER Version             : (11, 4, 5)
NVRTC Version                : (12, 1)
cuDNN Build Version          : 8801
cuDNN Version                : 8907
NCCL Build Version           : 21602
NCCL Runtime Version         : 21803
Device 0 Name                : NVIDIA GeForce RTX 3090
Device 0 Compute Capability  : 86
Device 0 PCI Bus ID          : 0000:01:00.0
Device 1 Name                : NVIDIA GeForce RTX 5090
Device 1 Compute Capability  : 120
"""
OF_TODAY = """\
OS                           : Linux-6.14.0-37-generic-x86_64-with-glibc2.35
Python Version               : 3.10.12
CuPy Version                 : 14.0.0
CUDA Root                    : None
NVCC PATH                    : None
CUDA Build Version           : 12090
CUDA Driver Version          : 13000
CUDA Runtime Version         : 12090 (linked to CuPy) / 12000 (locally installed)
cuBLAS Version               : ImportError("no such file: libcublasLt.so*")
"""
SAMPLES = (OF_2018, OF_2023, OF_TODAY)


def test_of_2018() -> None:
    assert facts(NAME, OF_2018) == {
        "cupy.version": "4.0.0",
        "cuda.home": "/usr/local/cuda",
        "cupy.cuda.version": "9.2",
        "driver.cuda.version": "9.2",
        "cuda.runtime.version": "9.2",
        "cupy.cudnn.version": "7.1.2",
        "cudnn.version": "7.1.2",
    }


def test_of_2023() -> None:
    assert facts(NAME, OF_2023) == {
        "kernel.release": "5.15.0-76-generic",
        "kernel.version": "5.15.0",
        "os.wsl": False,
        "os.arch": "x86_64",
        "os.libc.name": "glibc",
        "os.libc.version": "2.35",
        "python.version": "3.10.6",
        "cupy.version": "12.1.0",
        "dist.numpy.version": "1.24.3",
        "cuda.home": "/usr/local/cuda",
        "cuda.nvcc.path": "/usr/local/cuda/bin/nvcc",
        "cupy.cuda.version": "12.1",
        "driver.cuda.version": "12.2",
        "cuda.runtime.version": "12.1",
        "nvrtc.version": "12.1",
        "cupy.cudnn.version": "8.8.1",
        "cudnn.version": "8.9.7",
        "nccl.version": "2.18.3",
        "gpu.0.name": "NVIDIA GeForce RTX 3090",
        "gpu.0.compute_capability": "8.6",
        "gpu.0.pci.address": "0000:01:00.0",
        "gpu.1.name": "NVIDIA GeForce RTX 5090",
        "gpu.1.compute_capability": "12.0",
    }


def test_of_today_tells_the_runtime_that_is_installed() -> None:
    told = facts(NAME, OF_TODAY)
    assert told["cuda.runtime.version"] == "12.0"
    assert told["cupy.cuda.version"] == "12.9"
    assert absent(NAME, OF_TODAY) == {"cuda.home", "cuda.nvcc.path"}


def test_an_error_in_place_of_a_version_leaves_it_open() -> None:
    text = OF_2018.replace(
        "CUDA Driver Version   : 9020", "CUDA Driver Version   : CUDARuntimeError(35)"
    )
    read = imported(NAME, text)
    assert "driver.cuda.version" not in facts(NAME, text)
    assert gap(read, "driver.cuda.version") is not None


@given(st.sampled_from(SAMPLES), st.integers(0, 5000))
def test_cut_anywhere(text: str, at: int) -> None:
    prefixes_hold(NAME, text, at)


@given(st.lists(st.sampled_from("\n".join(SAMPLES).splitlines()) | st.text(max_size=60)))
def test_any_text(lines: list[str]) -> None:
    holds(NAME, "\n".join(lines))


def test_no_text_takes_long() -> None:
    is_linear(NAME, "CuPy Version : ", "Device 0 Name")
