"""Libraries that programs did not find, in the words of loaders and frameworks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.importing import facts, holds, is_linear, prefixes_hold

NAME = "missing_libraries"

CASES = [
    (
        "ImportError: libcudart.so.11.0: cannot open shared object file: No such file or directory",
        ["libcudart.so.11.0"],
    ),
    (
        (
            "./a: error while loading shared libraries: libcublas.so.12: cannot open shared object "
            "file: No such file or directory"
        ),
        ["libcublas.so.12"],
    ),
    (
        (
            "W dso_loader.cc:60] Could not load dynamic library 'cudart64_110.dll'; dlerror: "
            "cudart64_110.dll not found"
        ),
        ["cudart64_110.dll"],
    ),
    (
        "I dso_loader.cc:126] Couldn't open CUDA library libcudnn.so. LD_LIBRARY_PATH: /usr",
        ["libcudnn.so"],
    ),
    (
        (
            "Could not load library libcudnn_cnn_infer.so.8. Error: libcuda.so: cannot open shared "
            "object file: No such file or directory"
        ),
        ["libcuda.so", "libcudnn_cnn_infer.so.8"],
    ),
    (
        (
            "Unable to load any of {libcudnn_ops.so.9.1.0, libcudnn_ops.so.9.1, libcudnn_ops.so.9, "
            "libcudnn_ops.so}"
        ),
        ["libcudnn_ops.so.9"],
    ),
    (
        (
            "Error: CuPy failed to load libnvrtc.so.12: OSError: libnvrtc.so.12: cannot open "
            "shared object file: No such file or directory"
        ),
        ["libnvrtc.so.12"],
    ),
    ("\tlibnvJitLink.so.12 => not found", ["libnvJitLink.so.12"]),
    (
        (
            "FAIL : Failed to load library libonnxruntime_providers_cuda.so with error: "
            "libcublasLt.so.11: cannot open shared object file: No such file or directory"
        ),
        ["libcublasLt.so.11"],
    ),
    ("RuntimeError: Library libcublas.so.12 is not found or cannot be loaded", ["libcublas.so.12"]),
]
SAMPLES = [text for text, _ in CASES]


@pytest.mark.parametrize(("text", "names"), CASES)
def test_names(text: str, names: list[str]) -> None:
    assert facts(NAME, f"x\n{text}\n") == {"loader.missing": names}


@pytest.mark.parametrize(
    "text",
    [
        "OSError: /opt/a/libfoo.so: cannot open shared object file: No such file or directory",
        "\tlibm.so.6 => /lib/x86_64-linux-gnu/libm.so.6 (0x00007f)",
        "ModuleNotFoundError: No module named 'libcudnn'",
        "cuDNN not found",
        "command not found: nvcc",
    ],
)
def test_what_names_no_library_that_was_searched(text: str) -> None:
    assert facts(NAME, f"{text}\n") == {}


def test_all_of_them_once_and_where_the_first_stands() -> None:
    text = "\n".join(["prose", *SAMPLES, *SAMPLES])
    read = holds(NAME, text)
    (missing,) = (fact.value for fact in read.facts if fact.name == "loader.missing")
    assert isinstance(missing, list)
    assert len(missing) == len(set(map(str, missing)))
    assert {name for _, names in CASES for name in names} == set(missing)
    assert read.lines["loader.missing"] == 2


def test_what_was_opened() -> None:
    text = (
        "I successfully opened CUDA library libcublas.so.8.0 locally\n"
        "I Successfully opened dynamic library libcudnn.so.7\n"
        "I Successfully opened dynamic library nvcuda.dll\n"
    )
    assert facts(NAME, text) == {
        "loader.opened": ["libcublas.so.8.0", "libcudnn.so.7", "nvcuda.dll"]
    }


@given(st.sampled_from(SAMPLES), st.integers(0, 5000))
def test_cut_anywhere(text: str, at: int) -> None:
    prefixes_hold(NAME, text, at)


@given(st.lists(st.sampled_from(SAMPLES) | st.text(max_size=60)))
def test_any_text(lines: list[str]) -> None:
    holds(NAME, "\n".join(lines))


def test_no_text_takes_long() -> None:
    is_linear(NAME, "Could not load library ", "Unable to load any of {", "lib.so.1 not found")
