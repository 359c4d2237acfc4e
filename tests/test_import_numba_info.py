"""`numba -s` and `cuda.detect()` of several generations."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.importing import facts, gap, holds, imported, is_linear, prefixes_hold

NAME = "numba_info"

OF_2020 = """\
System info:
--------------------------------------------------------------------------------
__Time Stamp__
2020-05-29 15:56:37.093839

__Hardware Information__
Machine                                       : AMD64
CPU Name                                      : haswell

__OS Information__
Platform                                      : Windows-10-10.0.18362-SP0
Release                                       : 10

__Python Information__
Python Compiler                               : MSC v.1916 64 bit (AMD64)
Python Implementation                         : CPython
Python Version                                : 3.7.7

__CUDA Information__
Found 1 CUDA devices
id 0     b"GeForce GTX 960M"                              [SUPPORTED]
                      compute capability: 5.0
                           pci device id: 0
"""
OF_2021 = """\
__Hardware Information__
Machine                                       : x86_64
__OS Information__
Platform Name                                 : Linux-5.4.0-66-generic-x86_64-with-glibc2.31
__Python Information__
Python Version                                : 3.8.8
__CUDA Information__
CUDA Device Initialized                       : True
CUDA Driver Version                           : 11020
CUDA Runtime Version                          : 11000
CUDA Detect Output:
Found 2 CUDA devices
id 0    b"NVIDIA Quadro RTX 8000"                              [SUPPORTED]
                      Compute Capability: 7.5
                           PCI Device ID: 0
                              PCI Bus ID: 21
id 1    b"GeForce GT 730"                              [NOT SUPPORTED]
                      Compute Capability: 3.5
Summary:
	1/2 devices are supported
"""
OF_TODAY = """\
__CUDA Information__
CUDA Device Initialized                       : False
CUDA Driver Version                           : ?
CUDA Runtime Version                          : 12.4
CUDA NVIDIA Bindings Available                : True
CUDA Detect Output:
None
"""
SAMPLES = tuple(text.replace("b\"", "b\x27").replace("\"  ", "\x27  ")
                for text in (OF_2020, OF_2021, OF_TODAY))  # fmt: skip


def test_of_2020() -> None:
    assert facts(NAME, SAMPLES[0]) == {
        "os.id": "windows",
        "os.build": "18362",
        "python.version": "3.7.7",
        "gpu.0.name": "GeForce GTX 960M",
        "gpu.0.compute_capability": "5.0",
    }


def test_of_2021() -> None:
    told = facts(NAME, SAMPLES[1])
    assert told["driver.cuda.version"] == "11.2"
    assert told["cuda.runtime.version"] == "11.0"
    assert told["numba.available"] is True
    assert told["gpu.0.name"] == "NVIDIA Quadro RTX 8000"
    assert told["gpu.1.name"] == "GeForce GT 730"
    assert told["gpu.1.compute_capability"] == "3.5"
    assert told["os.libc.version"] == "2.31"
    assert told["os.arch"] == "x86_64"


def test_of_today_without_a_driver() -> None:
    told = facts(NAME, OF_TODAY)
    assert told == {"numba.available": False, "cuda.runtime.version": "12.4"}
    assert gap(imported(NAME, OF_TODAY), "driver.cuda.version") == "numba -s printed \x27?\x27"


def test_lines_of_another_program_are_left_alone() -> None:
    assert facts(NAME, "CUDA Driver Version   : 9020\nPython Version   : 3.8\n") == {}


@given(st.sampled_from(SAMPLES), st.integers(0, 5000))
def test_cut_anywhere(text: str, at: int) -> None:
    prefixes_hold(NAME, text, at)


@given(st.lists(st.sampled_from("\n".join(SAMPLES).splitlines()) | st.text(max_size=60)))
def test_any_text(lines: list[str]) -> None:
    holds(NAME, "\n".join(lines))


def test_no_text_takes_long() -> None:
    is_linear(NAME, "Python Version  ", "id 0 b\x27")
