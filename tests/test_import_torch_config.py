# ruff: noqa: E501 (reports as they are printed)
from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envaudit.importers import Section, torch_config
from envaudit.importers.torch_config import cudnn_version
from tests.report_laws import (
    assert_lawful,
    assert_parts_agree,
    hostile,
    open_to,
    parts_of,
    read,
    values,
)

TORCH_110 = """\
PyTorch compiling details: PyTorch built with:
  - GCC 7.3
  - C++ Version: 201402
  - OpenMP 201511 (a.k.a. OpenMP 4.5)
  - CPU capability usage: AVX2
  - CUDA Runtime 11.3
  - NVCC architecture flags: -gencode;arch=compute_37,code=sm_37;-gencode;arch=compute_50,code=sm_50;-gencode;
                             arch=compute_86,code=sm_86;-gencode;arch=compute_37,code=compute_37
  - CuDNN 8.2
  - Magma 2.5.2
  - Build settings: BLAS_INFO=mkl, BUILD_TYPE=Release, CUDA_VERSION=11.3, CUDNN_VERSION=8.2.0, CXX_COMPILER=/usr/bin/c++, CXX_FLAGS= -D_GLIBCXX_USE_CXX11_ABI=0 -O2 -fPIC, TORCH_VERSION=1.10.0, USE_CUDA=ON,
"""

TORCH_212 = """\
PyTorch built with:
  - GCC 13.3
  - C++ Version: 202002
  - CUDA Runtime 13.0
  - NVCC architecture flags: -gencode;arch=compute_75,code=sm_75;-gencode;arch=compute_90,code=sm_90;-gencode;arch=compute_90a,code=sm_90a;-gencode;arch=compute_120,code=[sm_120,compute_120]
  - CuDNN 92.0  (built against CUDA 13.2)
    - Built with CuDNN 91.9.1
  - Magma 2.6.1
"""

CPU = """\
PyTorch built with:
  - GCC 9.3
  - C++ Version: 201703
  - CPU capability usage: AVX512
  - Build settings: BLAS_INFO=mkl, BUILD_TYPE=Release, CXX_FLAGS= -D_GLIBCXX_USE_CXX11_ABI=1 -O2, USE_CUDA=0, USE_CUDNN=OFF,
"""

NO_GPU = """\
PyTorch built with:
  - GCC 9.3
  - Build settings: BLAS_INFO=mkl, BUILD_TYPE=Release, CUDA_VERSION=12.1, CUDNN_VERSION=8.9.2, USE_CUDA=ON,
"""

SAMPLES = (TORCH_110, TORCH_212, CPU, NO_GPU)


def test_with_flags_on_two_lines() -> None:
    imported = read(torch_config, TORCH_110)
    assert values(imported) == {
        "cuda.runtime.version": "11.3",
        "torch.cuda.version": "11.3",
        "cudnn.version": "8.2.0",
        "torch.cudnn.version": "8.2.0",
        "torch.arch_list": ["sm_37", "sm_50", "sm_86", "compute_37"],
        "torch.cxx11_abi": False,
    }
    assert imported.lines["torch.arch_list"] == 7
    assert imported.read == set(range(1, 12))


def test_a_library_that_is_not_the_one_of_the_build() -> None:
    facts = values(read(torch_config, TORCH_212))
    assert facts["cudnn.version"] == "9.20.0"
    assert facts["torch.cudnn.version"] == "9.19.1"
    assert facts["torch.cuda.version"] == "13.0"
    assert facts["torch.arch_list"] == ["sm_75", "sm_90", "sm_90a", "sm_120", "compute_120"]


def test_a_build_for_processors_only() -> None:
    imported = read(torch_config, CPU)
    assert imported.absent == ("torch.cuda.version",)
    assert values(imported) == {"torch.cxx11_abi": True}


def test_settings_tell_the_build_where_no_gpu_was_found() -> None:
    facts = values(read(torch_config, NO_GPU))
    assert facts == {"torch.cuda.version": "12.1", "torch.cudnn.version": "8.9.2"}


@pytest.mark.parametrize(
    ("printed", "version"),
    [
        ("7.6.5", "7.6.5"),
        ("8.2", "8.2.0"),
        ("8.9.2", "8.9.2"),
        ("90.1", "9.1.0"),
        ("91.0.2", "9.10.2"),
        ("92.4", "9.24.0"),
    ],
)
def test_how_cudnn_is_printed(printed: str, version: str) -> None:
    assert cudnn_version(printed) == version


@pytest.mark.parametrize(
    "end",
    [
        "code=sm_37",  # nothing follows
        "-gencode;ar",
        "arch=compute_50,code=sm_5",
        "arch=compute_86,code=sm_86;-genc",
    ],
)
def test_a_list_of_code_that_is_cut_tells_nothing(end: str) -> None:
    imported = read(torch_config, TORCH_110[: TORCH_110.index(end) + len(end)] + "\n")
    assert "torch.arch_list" not in values(imported)
    assert open_to(imported, "torch.arch_list")


def test_cudnn_may_go_on() -> None:
    text = TORCH_212[: TORCH_212.index("    - Built with")]
    facts = values(read(torch_config, text))
    assert facts["cudnn.version"] == "9.20.0"
    assert "torch.cudnn.version" not in facts


def test_only_the_first_build_is_read() -> None:
    facts = values(read(torch_config, CPU + NO_GPU))
    assert "torch.cuda.version" not in facts


@pytest.mark.parametrize("text", ["", "CUDA Runtime 11.3\n", "Build settings: none\n"])
def test_what_is_none(text: str) -> None:
    assert not torch_config.recognises(Section(text))


@pytest.mark.parametrize("sample", SAMPLES)
def test_parts_say_what_the_whole_says(sample: str) -> None:
    assert_parts_agree(torch_config, sample)


@given(parts_of(*SAMPLES) | st.text(max_size=400))
def test_laws(text: str) -> None:
    assert_lawful(torch_config, text)


def test_long_lines_take_no_time() -> None:
    starts = (
        "PyTorch built with:\n  - NVCC architecture flags: -gencode;",
        "PyTorch built with:\n  - NVCC architecture flags: \n     -gencode;",
        "  - Build settings: BUILD_TYPE=",
        "  - CuDNN 8",
    )
    for text in hostile(*starts):
        began = time.perf_counter()
        assert_lawful(torch_config, text)
        assert time.perf_counter() - began < 2
