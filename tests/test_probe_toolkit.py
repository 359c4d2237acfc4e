"""Toolkits and compilers: which one a build takes, and what tells its version."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envaudit.host import Host
from envaudit.probes.toolkit import (
    ccbin_in_flags,
    major_in_name,
    version_in_dpkg,
    version_in_tool,
)
from envaudit.target import Target
from tests.probing import Told, machine, probe

SITE = "/venv/lib/python3.11/site-packages"
NVCC = """nvcc: NVIDIA (R) Cuda compiler driver
Copyright (c) 2005-2025 NVIDIA Corporation
Built on Wed_Aug_20_01:58:59_PM_PDT_2025
Cuda compilation tools, release 13.0, V13.0.88
Build cuda_13.0.r13.0/compiler.36424714_0
"""
JSON = """{
   "cuda" : { "name" : "CUDA SDK", "version" : "12.4.1" },
   "cuda_nvcc" : { "name" : "CUDA NVCC", "version" : "12.4.131" }
}"""
GCC = {"gcc -dumpfullversion -dumpversion": {"stdout": "12.2.0\n"}}


def run(
    folder: Path,
    files: Mapping[str, str | bytes],
    links: Mapping[str, str] | None = None,
    *,
    commands: Mapping[str, Any] | None = None,
    prefix: str = "/venv",
    **env: str,
) -> Told:
    env.setdefault("PATH", "/usr/local/cuda/bin:/usr/local/bin:/usr/bin")
    host = machine(folder, files, links, env=env, commands=commands or {})
    return probe("toolkit", host, target=Target("/venv/bin/python", "--python", prefix, (SITE,)))


def toolkit(home: str, version: str = JSON) -> dict[str, str | bytes]:
    return {f"{home}/bin/nvcc": b"\x7fELF", f"{home}/version.json": version}


def test_nvcc_on_path_behind_the_usual_link(tmp_path: Path) -> None:
    told = run(
        tmp_path,
        toolkit("/usr/local/cuda-12.4"),
        {"/usr/local/cuda": "cuda-12.4"},
    )
    assert told.facts == {
        "cuda.home": "/usr/local/cuda (nvcc on PATH)",
        "cuda.nvcc.path": "/usr/local/cuda/bin/nvcc",
        "cuda.nvcc.version": "12.4.131",
        "cuda.toolkit.version": "12.4.131",
        "cuda.toolkits": ["/usr/local/cuda-12.4 12.4.131"],
    }
    assert told.sources["cuda.nvcc.version"] == "/usr/local/cuda-12.4/version.json"
    assert not told.gaps


def test_cuda_home_wins_over_path(tmp_path: Path) -> None:
    other = '{"cuda_nvcc": {"version": "11.8.89"}}'
    files = {**toolkit("/usr/local/cuda"), **toolkit("/opt/cuda", other)}
    told = run(tmp_path, files, CUDA_HOME="/opt/cuda/")
    assert told.facts["cuda.home"] == "/opt/cuda (CUDA_HOME)"
    assert told.facts["cuda.nvcc.path"] == "/opt/cuda/bin/nvcc"
    assert told.facts["cuda.toolkit.version"] == "11.8.89"
    assert told.facts["cuda.toolkits"] == ["/opt/cuda 11.8.89", "/usr/local/cuda 12.4.131"]


def test_cuda_path_is_next_and_an_empty_cuda_home_says_nothing(tmp_path: Path) -> None:
    told = run(tmp_path, toolkit("/opt/cuda"), CUDA_HOME="", CUDA_PATH="/opt/cuda")
    assert told.facts["cuda.home"] == "/opt/cuda (CUDA_PATH)"


def test_cuda_home_that_leads_nowhere(tmp_path: Path) -> None:
    told = run(tmp_path, toolkit("/usr/local/cuda"), CUDA_HOME="/opt/gone")
    assert told.facts["cuda.home"] == "/opt/gone (CUDA_HOME, not there)"
    assert "cuda.toolkit.version" not in told.facts
    assert not told.gaps


def test_the_usual_folder_counts_when_path_has_no_nvcc(tmp_path: Path) -> None:
    told = run(tmp_path, toolkit("/usr/local/cuda"), PATH="/usr/bin")
    assert told.facts["cuda.home"] == "/usr/local/cuda (/usr/local/cuda)"
    assert told.facts["cuda.toolkit.version"] == "12.4.131"


def test_a_runtime_image_has_no_toolkit_to_build_with(tmp_path: Path) -> None:
    told = run(tmp_path, {"/usr/local/cuda/version.json": JSON})
    assert told.facts["cuda.toolkits"] == ["/usr/local/cuda 12.4.131 (without nvcc)"]
    assert "cuda.toolkit.version" not in told.facts


@pytest.mark.parametrize(
    "script",
    [
        '#!/bin/sh\nexec /usr/lib/nvidia-cuda-toolkit/bin/nvcc "$@"\n',
        "#!/bin/bash\n# starts nvcc\nexec '/usr/lib/nvidia-cuda-toolkit/bin/nvcc' \"$@\"\n",
        '#!/bin/sh\n/usr/lib/nvidia-cuda-toolkit/bin/nvcc -I/usr/include "$@"\n',
    ],
)
def test_nvcc_on_path_may_be_a_script_that_starts_the_real_one(tmp_path: Path, script: str) -> None:
    home = "/usr/lib/nvidia-cuda-toolkit"
    told = run(
        tmp_path,
        {
            "/usr/bin/nvcc": script,
            f"{home}/bin/nvcc": b"\x7fELF",
            f"{home}/bin/fatbinary": b"\x7fELF\0Cuda compilation tools, release 11.8, V11.8.89\0",
        },
    )
    assert told.facts["cuda.home"] == f"{home} (nvcc on PATH, which starts {home}/bin/nvcc)"
    assert told.facts["cuda.nvcc.path"] == "/usr/bin/nvcc"
    assert told.facts["cuda.nvcc.version"] == "11.8.89"


def test_a_script_that_says_nothing_is_asked(tmp_path: Path) -> None:
    told = run(
        tmp_path,
        {"/usr/bin/nvcc": "#!/bin/sh\nmodule load cuda\nnvcc $*\n"},
        commands={"nvcc --version": {"stdout": NVCC}},
    )
    assert told.facts["cuda.toolkit.version"] == "13.0.88"
    assert "does not say" in told.gaps["cuda.home"]


def test_scripts_that_start_each_other_end(tmp_path: Path) -> None:
    told = run(tmp_path, {"/usr/bin/nvcc": '#!/bin/sh\nexec /usr/bin/nvcc "$@"\n'})
    assert "cuda.home" in told.gaps


@pytest.mark.parametrize(
    ("files", "commands", "version", "source"),
    [
        ({"version.txt": "CUDA Version 10.2.89\n"}, {}, "10.2.89", "/version.txt"),
        ({"version.json": '{"cuda": {"version": "11.1.1"}}'}, {}, "11.1.1", "/version.json"),
        ({"bin/fatbinary": f"\0{NVCC}\0"}, {}, "13.0.88", "/bin/fatbinary"),
        ({}, {"nvcc --version": {"stdout": NVCC}}, "13.0.88", "--version"),
        ({"include/cuda.h": "#define CUDA_VERSION 12080\n"}, {}, "12.8", "cuda.h"),
        ({"targets/x/include/cuda.h": "#define CUDA_VERSION 12080\n"}, {}, "12.8", "cuda.h"),
        (
            {"version.json": "{", "include/cuda.h": "#define CUDA_VERSION 13000\n"},
            {"nvcc --version": {"status": "timed_out"}},
            "13.0",
            "cuda.h",
        ),
    ],
)
def test_what_tells_the_version(
    tmp_path: Path, files: dict[str, str], commands: dict[str, Any], version: str, source: str
) -> None:
    home = "/usr/local/cuda"
    placed: dict[str, str | bytes] = {f"{home}/{name}": text for name, text in files.items()}
    told = run(tmp_path, {f"{home}/bin/nvcc": b"\x7fELF", **placed}, commands=commands)
    assert told.facts["cuda.nvcc.version"] == version
    assert source in told.sources["cuda.nvcc.version"]


def test_a_toolkit_that_tells_nothing_is_a_gap(tmp_path: Path) -> None:
    told = run(tmp_path, {"/usr/local/cuda/bin/nvcc": b"\x7fELF"})
    assert told.facts["cuda.toolkits"] == ["/usr/local/cuda unknown"]
    assert "cuda.toolkit.version" in told.gaps
    assert "cuda.nvcc.version" in told.gaps


def test_toolkits_of_every_origin(tmp_path: Path) -> None:
    sdk = "/opt/nvidia/hpc_sdk/Linux_x86_64/24.5/cuda"
    files: dict[str, str | bytes] = {
        **toolkit("/usr/local/cuda-12.4"),
        **toolkit("/usr/local/cuda-11.8", '{"cuda_nvcc": {"version": "11.8.89"}}'),
        **toolkit(f"{sdk}/12.4"),
        f"{sdk}/bin/nvcc": b"",
        "/conda/conda-meta/cuda-nvcc-12.6.85-hcdd1206_0.json": "{}",
        "/conda/bin/nvcc": b"\x7fELF",
        f"{SITE}/nvidia/cu13/bin/nvcc": b"\x7fELF",
        f"{SITE}/nvidia/cuda_nvcc/bin/ptxas": b"\x7fELF",
        f"{SITE}/nvidia/cudnn/lib/libcudnn.so.9": b"",
        f"{SITE}/nvidia_cuda_nvcc-13.0.88.dist-info/RECORD": "",
        f"{SITE}/nvidia_cuda_nvcc_cu12-12.8.93.dist-info/RECORD": "",
    }
    told = run(tmp_path, files, {"/usr/local/cuda": "cuda-12.4"}, prefix="/conda")
    assert told.facts["cuda.toolkits"] == [
        "/usr/local/cuda-12.4 12.4.131",
        "/usr/local/cuda-11.8 11.8.89",
        f"{sdk}/12.4 12.4.131",
        "/conda 12.6.85",
        f"{SITE}/nvidia/cu13 13.0.88",
        f"{SITE}/nvidia/cuda_nvcc 13.0.88 (without nvcc)",
    ]


def test_nothing_there_is_an_answer(tmp_path: Path) -> None:
    told = run(tmp_path, {"/usr/bin/sh": ""})
    assert not told.facts
    assert not told.gaps
    assert told.status == "ok"


# -- compilers ---------------------------------------------------------------------------------


def test_gcc(tmp_path: Path) -> None:
    told = run(tmp_path, {"/usr/bin/gcc": ""}, commands=GCC)
    assert told.facts == {"gcc.version": "12.2.0", "gcc.major": "12"}


def test_gcc_of_an_image_has_a_major_version_by_its_name(tmp_path: Path) -> None:
    told = run(
        tmp_path,
        {"/usr/bin/x86_64-linux-gnu-gcc-12": ""},
        {"/usr/bin/gcc": "gcc-12", "/usr/bin/gcc-12": "x86_64-linux-gnu-gcc-12"},
    )
    assert told.facts == {"gcc.major": "12"}
    assert "not recorded" in told.gaps["gcc.version"]


@pytest.mark.parametrize(
    "said",
    [
        {"stdout": "", "stderr": "gcc: error", "exit": 1},
        {"stdout": "what?\n"},
        {"status": "timed_out"},
        {"stdout": ""},
    ],
)
def test_a_gcc_that_does_not_answer_is_a_gap(tmp_path: Path, said: dict[str, Any]) -> None:
    command = "gcc -dumpfullversion -dumpversion"
    told = run(tmp_path, {"/usr/bin/gcc": ""}, commands={command: said})
    assert not told.facts
    assert set(told.gaps) == {"gcc.version", "gcc.major"}


def test_clang_by_the_folder_of_its_headers(tmp_path: Path) -> None:
    told = run(
        tmp_path,
        {"/usr/lib/llvm-14/bin/clang": "", "/usr/lib/llvm-14/lib/clang/14.0.6/include/x.h": ""},
        {"/usr/bin/clang": "../lib/llvm-14/bin/clang"},
    )
    assert told.facts == {"clang.version": "14.0.6"}


def test_clang_that_has_to_be_asked(tmp_path: Path) -> None:
    files = {"/usr/bin/clang": "", "/usr/lib/clang/18/include/x.h": ""}
    said = {"stdout": "Ubuntu clang version 18.1.3 (1ubuntu1)\nTarget: x86_64-pc-linux-gnu\n"}
    assert run(tmp_path, files, commands={"clang --version": said}).facts == {
        "clang.version": "18.1.3"
    }


def test_cmake(tmp_path: Path) -> None:
    said = {"stdout": "cmake version 3.25.1\n\nCMake suite maintained by Kitware\n"}
    told = run(tmp_path, {"/usr/bin/cmake": b"\x7fELF"}, commands={"cmake --version": said})
    assert told.facts == {"cmake.version": "3.25.1"}


STATUS = """Package: cmake-data
Status: install ok installed
Version: 3.25.1-1

Package: cmake
Status: install ok installed
Architecture: amd64
Version: 3.25.1-1
Description: cross-platform, open-source make system

Package: gone
Status: deinstall ok config-files
Version: 1.2.3-1

Package: odd
Status: install ok installed
Version: 2:3.27.0~rc2+dfsg-1"""


@pytest.fixture(scope="module")
def cmake(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A program with the version text of cmake among its constants."""
    path = tmp_path_factory.mktemp("cmake") / "cmake"
    source = b'const char text[] = "3.25.1"; int main(void) { return text[0]; }'
    subprocess.run(["gcc", "-xc", "-", "-o", path], input=source, check=True)
    return path.read_bytes()


def test_cmake_of_debian_is_not_started(tmp_path: Path, cmake: bytes) -> None:
    told = run(tmp_path, {"/usr/bin/cmake": cmake, "/var/lib/dpkg/status": STATUS})
    assert told.facts == {"cmake.version": "3.25.1"}
    assert told.sources["cmake.version"] == (
        "/var/lib/dpkg/status and version text in /usr/bin/cmake"
    )


@pytest.mark.parametrize(
    ("path", "status", "text"),
    [
        ("/usr/bin/cmake", STATUS.replace("3.25.1-1\nDescr", "3.25.2-1\nDescr"), b"3.25.1"),
        ("/usr/bin/cmake", STATUS, b"3.26.4"),
        ("/usr/bin/cmake", STATUS.replace("Package: cmake\n", "Package: other\n"), b"3.25.1"),
        ("/usr/local/bin/cmake", STATUS, b"3.25.1"),
    ],
)
def test_cmake_that_is_not_as_the_package_says_is_asked(
    tmp_path: Path, cmake: bytes, path: str, status: str, text: bytes
) -> None:
    program = cmake.replace(b"3.25.1", text)
    said = {"cmake --version": {"stdout": "cmake version 3.26.4\n"}}
    told = run(tmp_path, {path: program, "/var/lib/dpkg/status": status}, commands=said)
    assert told.facts == {"cmake.version": "3.26.4"}
    assert told.sources["cmake.version"] == f"{path} --version"


def test_versions_in_the_status_of_dpkg() -> None:
    data = STATUS.encode()
    assert version_in_dpkg(data, "cmake") == "3.25.1"
    assert version_in_dpkg(data, "cmake-data") == "3.25.1"
    assert version_in_dpkg(data, "gone") == ""
    assert version_in_dpkg(data, "odd") == ""
    assert version_in_dpkg(data.replace(b"~rc2", b""), "odd") == "3.27.0"
    assert version_in_dpkg(data, "cma") == ""


def test_cmake_of_a_wheel_is_not_started(tmp_path: Path) -> None:
    told = run(
        tmp_path,
        {"/venv/bin/cmake": "#!/venv/bin/python\n", f"{SITE}/cmake-4.1.2.dist-info/METADATA": ""},
        PATH="/venv/bin",
    )
    assert told.facts == {"cmake.version": "4.1.2"}


def test_cmake_of_an_image_by_its_folder(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        "/usr/bin/cmake": b"\x7fELF",
        "/usr/share/cmake-3.25/x": "",
        "/usr/share/cmake/y": "",
    }
    assert run(tmp_path, files).facts == {"cmake.version": "3.25"}


COMPILERS: dict[str, str | bytes] = {
    **toolkit("/usr/local/cuda"),
    "/usr/bin/gcc": "",
    "/opt/gcc-11/bin/gcc": "",
    "/opt/gcc-11/bin/g++": "",
    "/usr/bin/clang-15": "",
}
ANSWERS = {
    "gcc -dumpfullversion -dumpversion": {"stdout": "14.1.0\n"},
    "g++ -dumpfullversion -dumpversion": {"stdout": "11.4.0\n"},
    "clang-15 --version": {"stdout": "clang version 15.0.7\n"},
}


@pytest.mark.parametrize(
    ("env", "version", "kind", "chosen_by"),
    [
        ({}, "14.1.0", "gcc", "gcc on PATH"),
        ({"CC": "/opt/gcc-11/bin/gcc"}, "14.1.0", "gcc", "gcc on PATH"),
        ({"NVCC_CCBIN": "/opt/gcc-11/bin/g++"}, "11.4.0", "gcc", "NVCC_CCBIN"),
        ({"NVCC_CCBIN": "/opt/gcc-11/bin"}, "14.1.0", "gcc", "NVCC_CCBIN"),
        ({"NVCC_CCBIN": "clang-15"}, "15.0.7", "clang", "NVCC_CCBIN"),
        (
            {"NVCC_PREPEND_FLAGS": "-O2 -ccbin=/opt/gcc-11/bin/g++", "NVCC_CCBIN": "clang-15"},
            "11.4.0",
            "gcc",
            "-ccbin in NVCC_PREPEND_FLAGS",
        ),
        (
            {"NVCC_APPEND_FLAGS": "-ccbin clang-15", "NVCC_PREPEND_FLAGS": "-ccbin g++"},
            "15.0.7",
            "clang",
            "-ccbin in NVCC_APPEND_FLAGS",
        ),
    ],
)
def test_the_compiler_that_nvcc_calls(
    tmp_path: Path, env: dict[str, str], version: str, kind: str, chosen_by: str
) -> None:
    host = machine(
        tmp_path, COMPILERS, env={"PATH": "/usr/local/cuda/bin:/usr/bin", **env}, commands=ANSWERS
    )
    told = probe("toolkit", host)
    assert told.facts["nvcc.host_compiler.version"] == version
    assert told.facts[f"nvcc.host_compiler.{kind}"] == version
    assert told.sources["nvcc.host_compiler.version"].endswith(f"({chosen_by})")


def test_the_compiler_of_the_toolkits_profile(tmp_path: Path) -> None:
    """Debian's nvidia-cuda-toolkit sets it there."""
    profile = "TOP = $(_HERE_)/..\ncompiler-bindir = /opt/gcc-11/bin/g++\n"
    files = {**COMPILERS, "/usr/local/cuda/bin/nvcc.profile": profile}
    told = run(tmp_path, files, commands=ANSWERS)
    assert told.facts["nvcc.host_compiler.gcc"] == "11.4.0"
    assert "nvcc.profile" in told.sources["nvcc.host_compiler.gcc"]


def test_a_named_compiler_that_is_not_there_is_a_gap(tmp_path: Path) -> None:
    told = run(tmp_path, COMPILERS, commands=ANSWERS, NVCC_CCBIN="/opt/gone/g++")
    assert told.gaps == {"nvcc.host_compiler.*": "/opt/gone/g++ (NVCC_CCBIN) is not there"}


def test_without_nvcc_there_is_no_host_compiler(tmp_path: Path) -> None:
    told = run(tmp_path, {"/usr/bin/gcc": ""}, commands=GCC)
    assert "nvcc.host_compiler.version" not in told.facts


# -- odd machines ------------------------------------------------------------------------------


def test_odd_files_do_not_upset_it(tmp_path: Path) -> None:
    host = machine(
        tmp_path,
        {
            "/usr/local/cuda-12/bin/nvcc": b"\x7fELF",
            "/usr/local/cuda-12/version.json/x": "",
            "/usr/local/cuda-file": "",
            "/opt/nvidia/hpc_sdk": "",
            "/usr/bin/cmake": b"#!",
        },
        {"/usr/local/cuda": "cuda", "/usr/local/cuda-dangling": "/gone"},
        env={"PATH": "/usr/bin", "CUDA_HOME": "/usr/local/cuda-12", "NVCC_CCBIN": "\n"},
        commands={"nvcc --version": {"stdout": NVCC}},
    )
    os.mkfifo(tmp_path / "root/usr/local/cuda-12/version.txt")
    told = probe("toolkit", host)
    assert told.facts["cuda.toolkit.version"] == "13.0.88"
    assert set(told.gaps) == {"cmake.version", "nvcc.host_compiler.*"}


def test_an_image_is_read_without_running_anything(tmp_path: Path) -> None:
    home = tmp_path / "usr/local/cuda"
    (home / "bin").mkdir(parents=True)
    (home / "bin/nvcc").write_bytes(b"")
    (home / "bin/nvcc").chmod(0o755)
    (home / "version.json").write_text(JSON)
    told = probe("toolkit", Host(str(tmp_path)))
    assert told.facts["cuda.toolkit.version"] == "12.4.131"


def test_this_machine_is_answered() -> None:
    told = probe("toolkit", Host())
    assert told.status == "ok"
    if "cuda.toolkit.version" in told.facts:
        assert told.facts["cuda.toolkit.version"].count(".") >= 1


@given(st.binary(max_size=300))
def test_no_bytes_upset_the_parser(data: bytes) -> None:
    version_in_tool(data)
    version_in_tool(b"release 13.0, V" + data)
    version_in_dpkg(data, "x")
    version_in_dpkg(b"Package: x\nStatus: install ok installed\nVersion: 1" + data, "x")


@given(st.text(max_size=100))
def test_no_text_upsets_a_parser(text: str) -> None:
    assert isinstance(ccbin_in_flags("-ccbin " + text), str)
    assert isinstance(major_in_name("/usr/bin/gcc-" + text), str)
