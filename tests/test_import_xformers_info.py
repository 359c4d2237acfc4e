from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envaudit.importers import Section, xformers_info
from tests.report_laws import (
    assert_lawful,
    assert_parts_agree,
    hostile,
    parts_of,
    read,
    values,
)

INFO_13 = """\
xFormers 0.0.13
memory_efficient_attention.flshatt:      available - requires GPU with compute capability 7.5+
memory_efficient_attention.cutlass:      available
swiglu.fused.p.cpp:                      available
is_triton_available:                     False
is_functorch_available:                  False
pytorch.version:                         1.12.1
pytorch.cuda:                            available
gpu.compute_capability:                  7.0
gpu.name:                                Tesla V100-SXM2-32GB
"""

INFO_20 = """\
xFormers 0.0.20
memory_efficient_attention.cutlassF:               available
memory_efficient_attention.flshattF@0.0.0:         unavailable
indexing.scaled_index_addF:                        available
swiglu.dual_gemm_silu:                             available
is_triton_available:                               True
pytorch.version:                                   2.0.1+cu117
pytorch.cuda:                                      available
gpu.compute_capability:                            8.9
gpu.name:                                          NVIDIA GeForce RTX 4070
build.info:                                        available
build.cuda_version:                                1108
build.python_version:                              3.10.11
build.torch_version:                               2.0.1+cu118
build.env.TORCH_CUDA_ARCH_LIST:                    5.0+PTX 6.0 6.1 7.0 7.5 8.0 8.6
build.env.XFORMERS_BUILD_TYPE:                     Release
build.env.NVCC_FLAGS:                              None
build.env.XFORMERS_PACKAGE_FROM:                   wheel-v0.0.20
build.nvcc_version:                                11.8.89
source.privacy:                                    open source
"""

INFO_33_BROKEN = """\
WARNING[XFORMERS]: xFormers can't load C++/CUDA extensions. xFormers was built for:
    PyTorch 2.9.1+cu130 with CUDA 1302 (you have 2.8.0+cpu)
    Python  3.12.10 (you have 3.12.4)
  Please reinstall xformers (see https://github.com/facebookresearch/xformers#installing-xformers)
  Memory-efficient attention, SwiGLU, sparse and more won't be available.
xFormers 0.0.33.post2
memory_efficient_attention.fa3F@0.0.0:             unavailable
pytorch.version:                                   2.8.0+cpu
pytorch.cuda:                                      not available
build.info:                                        available
build.cuda_version:                                1302
build.hip_version:                                 None
build.torch_version:                               2.9.1+cu130
build.env.TORCH_CUDA_ARCH_LIST:                    8.0;9.0a
"""

SAMPLES = (INFO_13, INFO_20, INFO_33_BROKEN)


def test_before_it_told_of_its_build() -> None:
    assert values(read(xformers_info, INFO_13)) == {
        "dist.xformers.version": "0.0.13",
        "torch.version": "1.12.1",
        "torch.import": "ok",
        "torch.cuda.available": True,
        "gpu.0.compute_capability": "7.0",
        "gpu.0.name": "Tesla V100-SXM2-32GB",
    }


def test_a_build_for_another_torch() -> None:
    imported = read(xformers_info, INFO_20)
    facts = values(imported)
    assert facts["torch.version"] == "2.0.1+cu117"
    assert facts["xformers.built.torch.version"] == "2.0.1+cu118"
    assert facts["xformers.built.cuda.version"] == "11.8"
    assert facts["xformers.built.nvcc.version"] == "11.8.89"
    assert facts["xformers.built.python.version"] == "3.10.11"
    assert facts["xformers.arch_list"] == [
        *("sm_50", "compute_50", "sm_60", "sm_61", "sm_70", "sm_75", "sm_80", "sm_86"),
    ]
    assert "torch.cuda.version" not in facts
    assert imported.lines["gpu.0.name"] == 10
    assert imported.read == set(range(1, 21))


def test_the_warning_says_the_same() -> None:
    facts = values(read(xformers_info, INFO_33_BROKEN))
    assert facts["xformers.built.torch.version"] == "2.9.1+cu130"
    assert facts["xformers.built.cuda.version"] == "13.2"
    assert facts["torch.version"] == "2.8.0+cpu"
    assert facts["torch.cuda.available"] is False
    assert facts["python.version"] == "3.12.4"
    assert facts["xformers.arch_list"] == ["sm_80", "sm_90a"]
    warning = INFO_33_BROKEN[: INFO_33_BROKEN.index("xFormers 0.0.33")]
    alone = values(read(xformers_info, warning))
    assert alone["xformers.built.cuda.version"] == "13.2"
    assert alone["torch.version"] == "2.8.0+cpu"


def test_a_build_without_cuda() -> None:
    facts = values(
        read(
            xformers_info,
            "xFormers was built for:\n    PyTorch 2.1.2 with CUDA None (you have 2.1.2+cu121)\n",
        )
    )
    assert facts == {"xformers.built.torch.version": "2.1.2", "torch.version": "2.1.2+cu121"}


@pytest.mark.parametrize("value", ["None", "Kepler Maxwell", "7.5 oder so"])
def test_no_list_of_architectures(value: str) -> None:
    text = INFO_20.replace("5.0+PTX 6.0 6.1 7.0 7.5 8.0 8.6", value)
    assert "xformers.arch_list" not in values(read(xformers_info, text))


@pytest.mark.parametrize("text", ["", "xFormers 0.0.20\n", "is_triton_available: True\n"])
def test_what_is_none(text: str) -> None:
    assert not xformers_info.recognises(Section(text))


@pytest.mark.parametrize("lead", ["> ", "  - ", "\t"])
def test_marks_in_front(lead: str) -> None:
    marked = "\n".join(lead + line for line in INFO_20.split("\n")[1:])
    facts = values(read(xformers_info, marked))
    assert facts["xformers.built.torch.version"] == "2.0.1+cu118"
    assert facts["gpu.0.compute_capability"] == "8.9"


@pytest.mark.parametrize("sample", SAMPLES)
def test_parts_say_what_the_whole_says(sample: str) -> None:
    assert_parts_agree(xformers_info, sample)


@given(parts_of(*SAMPLES) | st.text(max_size=400))
def test_laws(text: str) -> None:
    assert_lawful(xformers_info, text)


def test_long_lines_take_no_time() -> None:
    starts = ("pytorch.version: ", "xFormers was built for:\n    PyTorch ", "build.env.", "swiglu.")
    for text in hostile(*starts):
        began = time.perf_counter()
        assert_lawful(xformers_info, text)
        assert time.perf_counter() - began < 2
