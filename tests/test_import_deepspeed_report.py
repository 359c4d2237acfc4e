# ruff: noqa: E501, W291 (reports as they are printed)
from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envaudit.importers import Section, deepspeed_report
from tests.report_laws import (
    assert_lawful,
    assert_parts_agree,
    hostile,
    open_to,
    parts_of,
    read,
    values,
)

DS_04 = """\
--------------------------------------------------
DeepSpeed C++/CUDA extension op report
--------------------------------------------------
NOTE: Ops not installed will be just-in-time (JIT) compiled at
      runtime if needed. Op compatibility means that your system
      meet the required dependencies to JIT install the op.
--------------------------------------------------
JIT compiled ops requires ninja
ninja .................. [OKAY]
--------------------------------------------------
op name ................ installed .. compatible
--------------------------------------------------
cpu_adam ............... [YES] ...... [OKAY]
fused_adam ............. [YES] ...... [OKAY]
stochastic_transformer . [NO] ....... [OKAY]
 [WARNING]  async_io requires the libraries: ['libaio-dev'] but are missing.
async_io ............... [NO] ....... [NO]
--------------------------------------------------
DeepSpeed general environment info:
torch install path ............... ['/opt/conda/envs/x/lib/python3.7/site-packages/torch']
torch version .................... 1.9.0
torch cuda version ............... 11.1
nvcc version ..................... 10.1
deepspeed install path ........... ['/opt/conda/envs/x/lib/python3.7/site-packages/deepspeed']
deepspeed info ................... 0.4.1, unknown, unknown
deepspeed wheel compiled w. ...... torch 1.9, cuda 11.1
"""

DS_17 = """\
async_io ............... [NO] ....... [NO]
fused_adam ............. [NO] ....... [OKAY]
--------------------------------------------------
DeepSpeed general environment info:
torch install path ............... ['/venv/lib/python3.12/site-packages/torch']
torch version .................... 2.7.0+cu128
deepspeed install path ........... ['/venv/lib/python3.12/site-packages/deepspeed']
deepspeed info ................... 0.17.2+46d7d0d1, 46d7d0d1, patch-1
torch cuda version ............... 12.8
torch hip version ................ None
nvcc version .....................  [FAIL] nvcc missing 
deepspeed wheel compiled w. ...... torch 0.0, cuda 0.0
shared memory (/dev/shm) size .... 64.00 MB
"""

DS_NO_HOME = """\
DeepSpeed general environment info:
torch version .................... 2.3.1+cpu
torch cuda version ............... None
nvcc version .....................  [FAIL] cannot find CUDA_HOME via torch.utils.cpp_extension.CUDA_HOME=None 
"""

SAMPLES = (DS_04, DS_17, DS_NO_HOME)


def test_with_operations_built_beforehand() -> None:
    imported = read(deepspeed_report, DS_04)
    assert values(imported) == {
        "torch.version": "1.9.0",
        "torch.import": "ok",
        "torch.cuda.version": "11.1",
        "cuda.nvcc.version": "10.1",
        "cuda.toolkit.version": "10.1",
        "dist.deepspeed.version": "0.4.1",
        "deepspeed.built.torch.version": "1.9",
        "deepspeed.built.cuda.version": "11.1",
        "deepspeed.built.ops": ["cpu_adam", "fused_adam"],
    }
    assert imported.lines["deepspeed.built.ops"] == 13
    assert imported.lines["cuda.nvcc.version"] == 23


def test_built_without_looking() -> None:
    imported = read(deepspeed_report, DS_17)
    facts = values(imported)
    assert facts["dist.deepspeed.version"] == "0.17.2+46d7d0d1"
    assert facts["deepspeed.built.ops"] == []
    assert "deepspeed.built.torch.version" not in facts
    assert open_to(imported, "deepspeed.built.cuda.version") == "it was built without looking"
    assert facts["host.shm.size"] == 64 << 20
    assert imported.absent == ("torch.hip.version", "cuda.nvcc.version")


def test_without_a_toolkit() -> None:
    imported = read(deepspeed_report, DS_NO_HOME)
    assert imported.absent == ("torch.cuda.version", "cuda.home")
    assert "cuda.nvcc.version" not in values(imported)
    assert open_to(imported, "cuda.nvcc.version") == "torch found no CUDA_HOME"


def test_colours() -> None:
    text = DS_04.replace("[YES]", "\x1b[92m[YES]\x1b[0m").replace("[OKAY]", "\x1b[92m[OKAY]\x1b[0m")
    assert values(read(deepspeed_report, text)) == values(read(deepspeed_report, DS_04))


def test_repeated_by_every_rank() -> None:
    assert values(read(deepspeed_report, DS_04 * 3)) == values(read(deepspeed_report, DS_04))


@pytest.mark.parametrize(
    "text", ["", "torch version: 2.1\n", "deepspeed 0.14.0\n", "fused_adam [NO] ... [OKAY]\n"]
)
def test_what_is_none(text: str) -> None:
    assert not deepspeed_report.recognises(Section(text))


@pytest.mark.parametrize("lead", ["> ", "    "])
@pytest.mark.parametrize("sample", SAMPLES)
def test_marks_in_front(sample: str, lead: str) -> None:
    marked = "\n".join(lead + line for line in sample.split("\n"))
    assert values(read(deepspeed_report, marked)) == values(read(deepspeed_report, sample))


@pytest.mark.parametrize("sample", SAMPLES)
def test_parts_say_what_the_whole_says(sample: str) -> None:
    assert_parts_agree(deepspeed_report, sample)


@given(parts_of(*SAMPLES) | st.text(max_size=400))
def test_laws(text: str) -> None:
    assert_lawful(deepspeed_report, text)


def test_long_lines_take_no_time() -> None:
    starts = ("torch cuda version ....", "deepspeed info ...... ", "fused_adam ......", "\x1b[")
    for text in hostile(*starts):
        began = time.perf_counter()
        assert_lawful(deepspeed_report, text)
        assert time.perf_counter() - began < 2
