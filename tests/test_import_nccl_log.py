"""NCCL in logs of several releases."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.importing import facts, holds, is_linear, prefixes_hold

NAME = "nccl_log"

OF_2_9 = """\
NCCL version 2.9.6+cuda11.3
node:174:239 [0] enqueue.cc:802 NCCL WARN Cuda failure 7 "API call is not supported"
"""
OF_2_18 = """\
node1:4242:4242 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.2<0>
node1:4242:4242 [0] NCCL INFO cudaDriverVersion 12020
NCCL version 2.18.3+cuda12.1
node1:4242:4300 [0] NCCL INFO NCCL_IB_DISABLE set by environment to 1.
node1:4242:4300 [0] NCCL INFO NET/IB : No device found.
"""
OF_TODAY = """\
host:1:1 [0] NCCL INFO NCCL version 2.27.5+cuda12.9
host:1:1 [0] NCCL INFO ncclCommInitRank: cudaDriverVersion 13000
"""
SAMPLES = (OF_2_9, OF_2_18, OF_TODAY)


def test_of_2_9() -> None:
    assert facts(NAME, OF_2_9) == {"nccl.version": "2.9.6", "nccl.cuda.version": "11.3"}


def test_of_2_18() -> None:
    assert facts(NAME, OF_2_18) == {
        "driver.cuda.version": "12.2",
        "nccl.version": "2.18.3",
        "nccl.cuda.version": "12.1",
        "env.NCCL_IB_DISABLE": "1",
    }


def test_of_today() -> None:
    assert facts(NAME, OF_TODAY) == {
        "nccl.version": "2.27.5",
        "nccl.cuda.version": "12.9",
        "driver.cuda.version": "13.0",
    }


def test_every_line_of_it_counts_as_read() -> None:
    assert holds(NAME, OF_2_18).read == {1, 2, 3, 4, 5}


def test_without_cuda() -> None:
    assert facts(NAME, "NCCL version 2.19.3\n") == {"nccl.version": "2.19.3"}


@given(st.sampled_from(SAMPLES), st.integers(0, 5000))
def test_cut_anywhere(text: str, at: int) -> None:
    prefixes_hold(NAME, text, at)


@given(st.lists(st.sampled_from("\n".join(SAMPLES).splitlines()) | st.text(max_size=60)))
def test_any_text(lines: list[str]) -> None:
    holds(NAME, "\n".join(lines))


def test_no_text_takes_long() -> None:
    is_linear(NAME, "NCCL version ", "NCCL INFO NCCL_X ")
