# ruff: noqa: E501 (reports as they are printed)
from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envaudit.importers import Section, bitsandbytes_info
from tests.report_laws import (
    assert_lawful,
    assert_parts_agree,
    hostile,
    parts_of,
    read,
    values,
)

BNB_049 = """\
=================== bitsandbytes v0.49.2 ===================
Platform: Linux-6.6.113+-x86_64-with-glibc2.35
  libc: glibc-2.35
Python: 3.12.13
PyTorch: 2.11.0+cu130
  CUDA: 13.0
  HIP: N/A
  XPU: N/A
Related packages:
  accelerate: 1.13.0
  numpy: 2.0.2
  transformers: 5.3.0
  trl: not found
============================================================
PyTorch settings found: CUDA_VERSION=130, Highest Compute Capability: (7, 5).
Checking that the library is importable and CUDA is callable...
SUCCESS!
"""

BNB_049_CPU = BNB_049.replace("2.11.0+cu130", "2.11.0+cpu").replace("CUDA: 13.0", "CUDA: N/A")

BNB_045 = """\
++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++
++++++++++++++++++ BUG REPORT INFORMATION ++++++++++++++++++
++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++
++++++++++++++++++++++++++ OTHER +++++++++++++++++++++++++++
CUDA specs: CUDASpecs(highest_compute_capability=(8, 6), cuda_version_string='124', cuda_version_tuple=(12, 4))
PyTorch settings found: CUDA_VERSION=124, Highest Compute Capability: (8, 6).
The directory listed in your path is found to be non-existent: \\Users\\User
"""

BNB_041 = """\
===================================BUG REPORT===================================
Welcome to bitsandbytes. For bug reports, please run

python -m bitsandbytes

================================================================================
CUDA SETUP: PyTorch settings found: CUDA_VERSION=117, Highest Compute Capability: 7.0.
CUDA SETUP: Loading binary /opt/x/bitsandbytes/libbitsandbytes_cuda117_nocublaslt.so...
"""

BNB_037 = """\
CUDA SETUP: CUDA runtime path found: /opt/conda/lib/libcudart.so
CUDA SETUP: Highest compute capability among GPUs detected: 7.5
CUDA SETUP: Detected CUDA version 117
++++++++++++++++++++++++++ OTHER +++++++++++++++++++++++++++
COMPILED_WITH_CUDA = True
COMPUTE_CAPABILITIES_PER_GPU = ['7.5', '7.5']
"""

BNB_ROCM = """\
CUDA specs: CUDASpecs(highest_compute_capability=(9, 0), cuda_version_string='61', cuda_version_tuple=(6, 1))
PyTorch settings found: CUDA_VERSION=61, Highest Compute Capability: (9, 0).
"""

SAMPLES = (BNB_049, BNB_049_CPU, BNB_045, BNB_041, BNB_037, BNB_ROCM)


def test_since_it_tells_of_its_environment() -> None:
    imported = read(bitsandbytes_info, BNB_049)
    assert values(imported) == {
        "dist.bitsandbytes.version": "0.49.2",
        "kernel.release": "6.6.113+",
        "kernel.version": "6.6.113",
        "os.wsl": False,
        "os.arch": "x86_64",
        "os.libc.name": "glibc",
        "os.libc.version": "2.35",
        "python.version": "3.12.13",
        "torch.version": "2.11.0+cu130",
        "torch.import": "ok",
        "torch.cuda.version": "13.0",
        "dist.accelerate.version": "1.13.0",
        "dist.numpy.version": "2.0.2",
        "dist.transformers.version": "5.3.0",
    }
    assert imported.absent == ("torch.hip.version", "dist.trl.version")
    assert imported.lines["torch.cuda.version"] == 6


def test_a_build_without_cuda() -> None:
    text = BNB_049_CPU[: BNB_049_CPU.index("PyTorch settings")]
    assert "torch.cuda.version" in read(bitsandbytes_info, text).absent


@pytest.mark.parametrize(("text", "version"), [(BNB_045, "12.4"), (BNB_041, "11.7")])
def test_settings(text: str, version: str) -> None:
    facts = values(read(bitsandbytes_info, text))
    assert facts == {"torch.cuda.version": version}


def test_capabilities_that_are_all_the_same() -> None:
    facts = values(read(bitsandbytes_info, BNB_037))
    assert facts == {"gpu.0.compute_capability": "7.5", "gpu.1.compute_capability": "7.5"}
    other = BNB_037.replace("['7.5', '7.5']", "['6.1', '7.5']")
    assert values(read(bitsandbytes_info, other)) == {}


def test_the_number_of_a_rocm_build_is_no_cuda() -> None:
    assert values(read(bitsandbytes_info, BNB_ROCM)) == {}


def test_what_follows_the_block_is_not_part_of_it() -> None:
    text = BNB_049 + "Python: 2.7.1\nnumpy: 1.0.0\n"
    assert values(read(bitsandbytes_info, text)) == values(read(bitsandbytes_info, BNB_049))


@pytest.mark.parametrize("text", ["", "import bitsandbytes\n", "PyTorch: 2.1\n  CUDA: 12.1\n"])
def test_what_is_none(text: str) -> None:
    assert not bitsandbytes_info.recognises(Section(text))


@pytest.mark.parametrize("sample", [BNB_049, BNB_045, BNB_041, BNB_037, BNB_ROCM])
def test_parts_say_what_the_whole_says(sample: str) -> None:
    assert_parts_agree(bitsandbytes_info, sample)


@given(parts_of(*SAMPLES) | st.text(max_size=400))
def test_laws(text: str) -> None:
    assert_lawful(bitsandbytes_info, text)


def test_long_lines_take_no_time() -> None:
    starts = ("=== bitsandbytes v0.49 ===\nPyTorch: ", "CUDASpecs(", "CUDA SETUP: ")
    for text in hostile(*starts):
        began = time.perf_counter()
        assert_lawful(bitsandbytes_info, text)
        assert time.perf_counter() - began < 2
