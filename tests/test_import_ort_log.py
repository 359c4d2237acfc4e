"""What ONNX Runtime and CuPy say of the CUDA they were built for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.importing import absent, facts, holds, is_linear, prefixes_hold

NAME = "ort_log"

OF_1_12 = (
    "[E:onnxruntime:Default, bridge.cc:1480] [ONNXRuntimeError] : 1 : FAIL : Failed to "
    "load library libonnxruntime_providers_cuda.so with error: libcublasLt.so.11: cannot open "
    "shared object file: No such file or directory\n"
)
OF_1_18 = (
    "[W:onnxruntime:Default, onnxruntime_pybind_state.cc:870 CreateExecutionProviderInstance] "
    "Failed to create CUDAExecutionProvider. Require cuDNN 9.* and CUDA 12.*, and the latest MSVC "
    "runtime. Please install all dependencies as mentioned in the GPU requirements page\n"
)
CPU = (
    "UserWarning: Specified provider \x27CUDAExecutionProvider\x27 is not in available provider "
    "names.Available providers: \x27AzureExecutionProvider, CPUExecutionProvider\x27\n"
)
CUPY = "RuntimeError: CuPy failed to load libnvrtc.so.12: OSError: libnvrtc.so.12: cannot open\n"
SAMPLES = (OF_1_12, OF_1_18, CPU, CUPY)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (OF_1_12, {"onnxruntime.cuda.version": "11"}),
        (OF_1_18, {"onnxruntime.cuda.version": "12", "onnxruntime.cudnn.version": "9"}),
        (CPU, {}),
        (CUPY, {"cupy.cuda.version": "12"}),
        ("libcublasLt.so.11: cannot open shared object file\n", {}),
    ],
)
def test_facts(text: str, told: dict[str, str]) -> None:
    assert facts(NAME, text) == told


def test_a_build_without_cuda() -> None:
    assert absent(NAME, CPU) == {"onnxruntime.cuda.version"}
    other = CPU.replace("AzureExecutionProvider", "DmlExecutionProvider")
    assert absent(NAME, other) == set()


@given(st.sampled_from(SAMPLES), st.integers(0, 5000))
def test_cut_anywhere(text: str, at: int) -> None:
    prefixes_hold(NAME, text, at)


@given(st.lists(st.sampled_from("\n".join(SAMPLES).splitlines()) | st.text(max_size=60)))
def test_any_text(lines: list[str]) -> None:
    holds(NAME, "\n".join(lines))


def test_no_text_takes_long() -> None:
    is_linear(NAME, "onnxruntime_providers_cuda", "Available providers: ")
