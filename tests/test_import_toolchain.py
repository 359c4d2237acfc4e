"""nvcc, gcc, clang, cmake and ldd, whole and as tail and grep leave them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.importing import absent, facts, gap, holds, imported, is_linear, prefixes_hold

NAME = "toolchain"

NVCC_10 = """\
nvcc: NVIDIA (R) Cuda compiler driver
Copyright (c) 2005-2019 NVIDIA Corporation
Built on Sun_Jul_28_19:07:16_PDT_2019
Cuda compilation tools, release 10.1, V10.1.243
"""
NVCC_13 = """\
nvcc: NVIDIA (R) Cuda compiler driver
Copyright (c) 2005-2026 NVIDIA Corporation
Built on Wed_Apr__9_19:24:57_PDT_2026
Cuda compilation tools, release 13.3, V13.3.33
Build cuda_13.3.r13.3/compiler.37861068_0
"""
VERSION_JSON = """\
{
   "cuda" : {
      "name" : "CUDA SDK",
      "version" : "11.4.1"
   },
   "cuda_cudart" : {
      "name" : "CUDA Runtime (cudart)",
      "version" : "11.4.108"
   }
}
"""
CMAKE = (
    "cmake version 3.22.1\n\nCMake suite maintained and supported by Kitware (kitware.com/cmake).\n"
)
SAMPLES = (NVCC_10, NVCC_13, VERSION_JSON, CMAKE)


@pytest.mark.parametrize(
    ("text", "command", "version"),
    [
        (NVCC_10, "nvcc --version", "10.1.243"),
        (NVCC_13, "", "13.3.33"),
        (NVCC_13[NVCC_13.index("Cuda c") :], "nvcc -V | tail -n 2", "13.3.33"),
        ("Build cuda_11.3.r11.3/compiler.29745058_0\n", "nvcc --version | tail -1", "11.3"),
        (
            "Cuda compilation tools, release 9.0, V9.0.176\n",
            "nvcc --version | grep release",
            "9.0.176",
        ),
        ("V12.1.66\n", "nvcc --version | grep release | cut -d, -f3", "12.1.66"),
    ],
)
def test_nvcc(text: str, command: str, version: str) -> None:
    assert facts(NAME, text, command) == {
        "cuda.nvcc.version": version,
        "cuda.toolkit.version": version,
    }


def test_an_nvcc_named_by_its_path_is_a_toolkit_only() -> None:
    text = "Cuda compilation tools, release 11.4, V11.4.152\n"
    assert facts(NAME, text, "/usr/local/cuda-11.4/bin/nvcc --version | grep release") == {
        "cuda.toolkits": ["/usr/local/cuda-11.4 11.4.152"]
    }


def test_no_nvcc() -> None:
    read = imported(NAME, "bash: nvcc: command not found\n", "nvcc --version")
    assert not read.facts
    assert gap(read, "cuda.nvcc.version") is not None


def test_which_nvcc() -> None:
    text = "/usr/bin/nvcc\n/usr/local/cuda/bin/nvcc\n"
    assert facts(NAME, text, "which -a nvcc") == {"cuda.nvcc.path": "/usr/bin/nvcc"}
    assert facts(NAME, "nvcc: /usr/local/cuda/bin/nvcc\n", "whereis nvcc") == {
        "cuda.nvcc.path": "/usr/local/cuda/bin/nvcc"
    }
    gone = "/usr/bin/which: no nvcc in (/usr/bin:/bin)\n"
    assert absent(NAME, gone, "which nvcc") == {"cuda.nvcc.path", "cuda.nvcc.version"}


def test_version_files() -> None:
    assert facts(NAME, "CUDA Version 10.1.243\n", "cat /usr/local/cuda/version.txt") == {
        "cuda.toolkit.version": "10.1.243"
    }
    assert facts(NAME, VERSION_JSON) == {"cuda.toolkit.version": "11.4.1"}
    assert facts(NAME, "CUDA Version 10.1.243\n") == {}  # nobody says what that is of


@pytest.mark.parametrize(
    ("text", "name", "version"),
    [
        ("gcc (Ubuntu 11.4.0-1ubuntu1~22.04) 11.4.0", "gcc.version", "11.4.0"),
        ("gcc (GCC) 4.8.5 20150623 (Red Hat 4.8.5-44)", "gcc.version", "4.8.5"),
        ("g++ (Debian 12.2.0-14) 12.2.0", "gcc.version", "12.2.0"),
        ("x86_64-linux-gnu-gcc (Ubuntu 9.4.0-1ubuntu1~20.04.2) 9.4.0", "gcc.version", "9.4.0"),
        ("gcc version 7.5.0 (Ubuntu 7.5.0-3ubuntu1~18.04) ", "gcc.version", "7.5.0"),
        ("Ubuntu clang version 14.0.0-1ubuntu1.1", "clang.version", "14.0.0"),
        ("clang version 18.1.8", "clang.version", "18.1.8"),
        (CMAKE, "cmake.version", "3.22.1"),
        ("cmake3 version 3.17.5", "cmake.version", "3.17.5"),
    ],
)
def test_compilers(text: str, name: str, version: str) -> None:
    assert facts(NAME, f"{text}\n") == {name: version}


@pytest.mark.parametrize(
    "text",
    [
        "gcc-9 (Ubuntu 9.4.0-1) 9.4.0",
        "x86_64-conda-linux-gnu-gcc (conda-forge gcc 12.3.0-5) 12.3.0",
        "gcc: fatal error: no input files",
        "we need gcc (at least 9)",
    ],
)
def test_not_the_default_compiler(text: str) -> None:
    assert facts(NAME, f"{text}\n") == {}


def test_c_library() -> None:
    assert facts(NAME, "ldd (Ubuntu GLIBC 2.31-0ubuntu9.17) 2.31\n") == {
        "os.libc.name": "glibc",
        "os.libc.version": "2.31",
        "os.id": "ubuntu",
    }
    assert facts(NAME, "ldd (GNU libc) 2.17\n")["os.libc.version"] == "2.17"
    assert facts(NAME, "glibc 2.35\n", "getconf GNU_LIBC_VERSION")["os.libc.version"] == "2.35"
    assert facts(NAME, "musl libc (x86_64)\nVersion 1.2.4\n") == {"os.libc.name": "musl"}
    assert absent(NAME, "musl libc (x86_64)\nVersion 1.2.4\n") == {"os.libc.version"}


@given(st.sampled_from(SAMPLES), st.integers(0, 2000))
def test_cut_anywhere(text: str, at: int) -> None:
    prefixes_hold(NAME, text, at)


@given(
    st.lists(st.sampled_from("\n".join(SAMPLES).splitlines()) | st.text(max_size=60)),
    st.sampled_from(("", "nvcc --version", "which nvcc", "cat /usr/local/cuda/version.txt")),
)
def test_any_text(lines: list[str], command: str) -> None:
    holds(NAME, "\n".join(lines), command)


def test_no_text_takes_long() -> None:
    is_linear(NAME, "gcc (", '"cuda" : {', "ldd (", "GNU C Library ", "nvcc /")
