"""Which CUDA libraries a target gets: small machines, one rule of the loader or framework each."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envaudit.entries import jax_preloads, torch_preloads
from envaudit.host import Host
from envaudit.libversion import (
    FAMILIES,
    Versions,
    family_of,
    is_main,
    recorded,
    version_in_header,
    version_in_name,
    version_in_nccl,
    versions_in_json,
)
from envaudit.probes.libraries import newest_glibcxx
from envaudit.target import Target
from tests.binaries import shared_object
from tests.making import X86_64, ld_cache
from tests.probing import Told, machine, probe

SITE = "/venv/lib/python3.11/site-packages"
CU13 = f"{SITE}/nvidia/cu13/lib"
CUDNN = f"{SITE}/nvidia/cudnn/lib"
RPATH = "$ORIGIN/../../nvidia/cudnn/lib:$ORIGIN/../../nvidia/cu13/lib:$ORIGIN"
SYSTEM = "/usr/lib/x86_64-linux-gnu"
PYTHON = "/usr/bin/python3.11"

Files = dict[str, str | bytes]

TORCH_INIT = {
    "nothing after success": """
def _preload_cuda_deps(lib_folder, lib_name):
    pass
def _load_global_deps():
    cuda_libs = {'x': 1}
    try:
        ctypes.CDLL(global_deps_lib_path, mode=ctypes.RTLD_GLOBAL)
    except OSError as err:
        pass
""",
    "nvjitlink after success": """
    cuda_libs = {
        "cublas": "libcublas.so.*[0-9]",
        "nvjitlink": "libnvJitLink.so.*[0-9]",
    }
def _load_global_deps():
    try:
        ctypes.CDLL(global_deps_lib_path, mode=ctypes.RTLD_GLOBAL)
        # if the runtime is the wheel's
        if "nvidia/cuda_runtime/lib/libcudart.so" not in _maps:
            return
        _preload_cuda_deps("nvjitlink", "libnvJitLink.so.*[0-9]")
    except OSError as err:
        pass
""",
    "all after success": """
def _preload_cuda_deps(err=None, required=True):
    cuda_libs = [
        ("cublas", "libcublasLt.so.*[0-9]"),
        ("cublas", "libcublas.so.*[0-9]"),
        ("nvjitlink", "libnvJitLink.so.*[0-9]"),
        ("cudnn", "libcudnn.so.*[0-9]"),
    ]
def _load_global_deps() -> None:
    try:
        ctypes.CDLL(global_deps_lib_path, mode=ctypes.RTLD_GLOBAL)
        if "libcudart.so" not in _maps:
            return
        _preload_cuda_deps(required=False)
    except OSError as err:
        _preload_cuda_deps(err)
        ctypes.CDLL(global_deps_lib_path, mode=ctypes.RTLD_GLOBAL)
""",
}


def lib(name: str, *needed: str, **paths: Any) -> bytes:
    return shared_object(soname=name, needed=needed, **paths)


def python() -> Files:
    return {
        PYTHON: shared_object(needed=["libc.so.6"], interpreter="/lib64/ld-linux-x86-64.so.2"),
        f"{SYSTEM}/libc.so.6": lib("libc.so.6"),
        f"{SYSTEM}/libstdc++.so.6.0.30": lib(
            "libstdc++.so.6", symbols=["GLIBCXX_3.4", "GLIBCXX_3.4.9", "GLIBCXX_3.4.30"]
        ),
    }


def wheel(name: str, *files: str) -> Files:
    record = "".join(f"{file},sha256=x,\n" for file in files)
    return {f"{SITE}/{name}.dist-info/RECORD": record}


def cudnn_header(version: str) -> str:
    parts = zip(("MAJOR", "MINOR", "PATCHLEVEL"), version.split("."), strict=True)
    return "#pragma once\n" + "".join(f"#define CUDNN_{name} {value}\n" for name, value in parts)


def torch(init: str = "nothing after success", *, kind: str = "rpath") -> Files:
    """A CUDA 13 build of torch with its wheels."""
    where = {kind: RPATH}
    return {
        f"{SITE}/torch/__init__.py": TORCH_INIT[init],
        f"{SITE}/torch/version.py": "__version__ = '2.14.1+cu130'\ncuda: Optional[str] = '13.0'\n",
        f"{SITE}/torch/_C.cpython-311-x86_64-linux-gnu.so": shared_object(
            needed=["libtorch_python.so"], **{kind: f"{RPATH}:$ORIGIN/lib"}
        ),
        f"{SITE}/torch/lib/libtorch_global_deps.so": lib(
            "libtorch_global_deps.so", "libcudart.so.13", **where
        ),
        f"{SITE}/torch/lib/libtorch_python.so": lib(
            "libtorch_python.so", "libtorch_cuda.so", "libcudnn.so.9", "libstdc++.so.6", **where
        ),
        f"{SITE}/torch/lib/libtorch_cuda.so": lib(
            "libtorch_cuda.so", "libcudart.so.13", "libcusparse.so.12", "libcublas.so.13", **where
        ),
        f"{CU13}/libcudart.so.13": lib("libcudart.so.13"),
        f"{CU13}/libcublas.so.13": lib("libcublas.so.13", "libcublasLt.so.13", runpath="$ORIGIN"),
        f"{CU13}/libcublasLt.so.13": lib("libcublasLt.so.13"),
        f"{CU13}/libcusparse.so.12": lib(
            "libcusparse.so.12", "libnvJitLink.so.13", runpath="$ORIGIN"
        ),
        f"{CU13}/libnvJitLink.so.13": lib("libnvJitLink.so.13"),
        **wheel("nvidia_cuda_runtime-13.0.96", "nvidia/cu13/lib/libcudart.so.13"),
        **wheel(
            "nvidia_cublas-13.1.1.3",
            "nvidia/cu13/lib/libcublas.so.13",
            "nvidia/cu13/lib/libcublasLt.so.13",
        ),
        **wheel("nvidia_cusparse-12.6.3.3", "nvidia/cu13/lib/libcusparse.so.12"),
        **wheel("nvidia_nvjitlink-13.5.37", "nvidia/cu13/lib/libnvJitLink.so.13"),
        **cudnn("9.24.0"),
    }


def cudnn(version: str, *, folder: str = f"{SITE}/nvidia/cudnn") -> Files:
    """cuDNN 9: the library that links get, and those that it opens."""
    paths = {"runpath": "$ORIGIN"}
    graph = "libcudnn_graph.so.9"
    return {
        f"{folder}/include/cudnn_version.h": cudnn_header(version),
        f"{folder}/lib/libcudnn.so.9": lib("libcudnn.so.9", rpath="$ORIGIN"),
        f"{folder}/lib/{graph}": lib(graph, **paths),
        **{
            f"{folder}/lib/{name}": lib(name, graph, **paths)
            for name in (f"libcudnn_{part}.so.9" for part in ("ops", "cnn", "adv", "heuristic"))
        },
    }


def run(
    folder: Path,
    files: Mapping[str, str | bytes],
    links: Mapping[str, str] | None = None,
    *,
    before: Mapping[str, Any] | None = None,
    **env: str,
) -> Told:
    host = machine(
        folder,
        {**python(), **files},
        {f"{SYSTEM}/libstdc++.so.6": "libstdc++.so.6.0.30", **(links or {})},
        arch="x86_64",
        env=env,
    )
    target = Target(PYTHON, "--python", "/venv", (SITE,))
    return probe("libraries", host, target=target, before=before)


def paths(told: Told) -> dict[str, str]:
    return {
        name.removeprefix("lib.").removesuffix(".path"): value
        for name, value in told.facts.items()
        if name.startswith("lib.") and name.endswith(".path")
    }


def test_torch_takes_its_wheels(tmp_path: Path) -> None:
    told = run(tmp_path, torch())
    assert paths(told) == {
        **{f"{n}": f"{CU13}/{n}" for n in ("libcudart.so.13", "libcublas.so.13")},
        **{f"{n}": f"{CU13}/{n}" for n in ("libcublasLt.so.13", "libcusparse.so.12")},
        "libnvJitLink.so.13": f"{CU13}/libnvJitLink.so.13",
        "libcudnn.so.9": f"{CUDNN}/libcudnn.so.9",
        **{
            f"libcudnn_{part}.so.9": f"{CUDNN}/libcudnn_{part}.so.9"
            for part in ("graph", "ops", "cnn", "adv", "heuristic")
        },
    }
    facts = told.facts
    assert facts["cuda.runtime.version"] == "13.0.96"
    assert facts["cublas.version"] == "13.1.1.3"
    assert facts["cusparse.version"] == "12.6.3.3"
    assert facts["nvjitlink.version"] == "13.5.37"
    assert facts["cudnn.version"] == "9.24.0"
    assert facts["os.libstdcxx.version"] == "3.4.30"
    assert facts["lib.libcublas.so.13.via"] == "rpath"
    assert facts["lib.libcublas.so.13.for"] == "torch: libtorch_cuda.so"
    assert facts["lib.libcublasLt.so.13.via"] == "runpath"
    assert facts["lib.libcudnn_heuristic.so.9.for"] == "torch: libcudnn_graph.so.9"
    assert facts["cudnn.installs"] == [f"{CUDNN}/libcudnn.so.9 9.24.0 wheel (taken by torch)"]
    assert "nccl.version" not in facts
    assert not told.gaps


STALE: Files = {
    "/old/libcudart.so.13": lib("libcudart.so.13"),
    "/old/libcublasLt.so.13": lib("libcublasLt.so.13"),
    "/old/libnvJitLink.so.13.0.1": lib("libnvJitLink.so.13"),
    "/old/libcudnn_heuristic.so.9.1.0": lib("libcudnn_heuristic.so.9"),
}
STALE_LINKS = {
    "/old/libnvJitLink.so.13": "libnvJitLink.so.13.0.1",
    "/old/libcudnn_heuristic.so.9": "libcudnn_heuristic.so.9.1.0",
}


def test_a_stale_folder_shadows_what_is_found_by_runpath_only(tmp_path: Path) -> None:
    told = run(tmp_path, {**torch(), **STALE}, STALE_LINKS, LD_LIBRARY_PATH="/old")
    taken = paths(told)
    assert taken["libcudart.so.13"] == f"{CU13}/libcudart.so.13"
    assert taken["libcublasLt.so.13"] == "/old/libcublasLt.so.13"
    assert taken["libnvJitLink.so.13"] == "/old/libnvJitLink.so.13.0.1"
    assert taken["libcudnn_heuristic.so.9"] == "/old/libcudnn_heuristic.so.9.1.0"
    assert told.facts["nvjitlink.version"] == "13.0.1"
    assert told.facts["lib.libnvJitLink.so.13.via"] == "LD_LIBRARY_PATH"
    assert told.facts["lib.libcudnn_heuristic.so.9.version"] == "9.1.0"
    assert told.facts["lib.libcudnn_graph.so.9.version"] == "9.24.0"


def test_torch_guards_itself_by_loading_first(tmp_path: Path) -> None:
    told = run(
        tmp_path, {**torch("all after success"), **STALE}, STALE_LINKS, LD_LIBRARY_PATH="/old"
    )
    taken = paths(told)
    assert taken["libcublasLt.so.13"] == f"{CU13}/libcublasLt.so.13"
    assert taken["libnvJitLink.so.13"] == f"{CU13}/libnvJitLink.so.13"
    assert told.facts["lib.libnvJitLink.so.13.via"] == "preload"
    assert taken["libcudnn_heuristic.so.9"] == "/old/libcudnn_heuristic.so.9.1.0"


def test_the_guard_of_older_releases_waits_for_its_sign(tmp_path: Path) -> None:
    """The runtime lies in cu13/lib, not in cuda_runtime/lib as that release expects."""
    told = run(
        tmp_path, {**torch("nvjitlink after success"), **STALE}, STALE_LINKS, LD_LIBRARY_PATH="/old"
    )
    assert paths(told)["libnvJitLink.so.13"] == "/old/libnvJitLink.so.13.0.1"


def test_a_build_with_runpath_is_shadowed_altogether(tmp_path: Path) -> None:
    told = run(tmp_path, {**torch(kind="runpath"), **STALE}, STALE_LINKS, LD_LIBRARY_PATH="/old")
    assert paths(told)["libcudart.so.13"] == "/old/libcudart.so.13"
    assert told.gaps["cuda.runtime.version"] == (
        "no file tells the version of /old/libcudart.so.13"
    )
    assert "cuda.runtime.version" not in told.facts


def test_when_the_first_load_fails_everything_is_loaded_by_path(tmp_path: Path) -> None:
    """Wheels in another folder than torch: RPATH leads nowhere."""
    files = {
        path.replace(f"{SITE}/nvidia", "/more/nvidia"): content
        for path, content in torch("all after success").items()
    }
    files["/more/nvidia/cu13/lib/libcudart.so.13"] = lib("libcudart.so.13")
    told = run(tmp_path, files, before={"python.path": [SITE, "/more"]})
    taken = paths(told)
    assert taken["libcublas.so.13"] == "/more/nvidia/cu13/lib/libcublas.so.13"
    assert taken["libcudnn.so.9"] == "/more/nvidia/cudnn/lib/libcudnn.so.9"
    assert "libcudart.so.13" not in taken
    assert told.facts["lib.libcudart.so.13.for"] == "torch: libtorch_global_deps.so"


def test_what_is_needed_and_found_nowhere_has_no_path(tmp_path: Path) -> None:
    files = {path: data for path, data in torch().items() if "cudnn" not in path}
    files |= cudnn("9.10.1", folder="/opt/cudnn")
    told = run(tmp_path, files)
    assert told.facts["lib.libcudnn.so.9.for"] == "torch: libtorch_python.so"
    assert "lib.libcudnn.so.9.path" not in told.facts
    assert "cudnn.version" not in told.facts
    assert "cudnn.version" not in told.gaps


def test_a_sublibrary_that_lacks_is_named(tmp_path: Path) -> None:
    files = {path: data for path, data in torch().items() if "libcudnn_ops" not in path}
    told = run(tmp_path, files)
    assert told.facts["lib.libcudnn_ops.so.9.for"].startswith("torch: libcudnn")
    assert "lib.libcudnn_ops.so.9.path" not in told.facts


def test_a_broken_library_is_a_gap(tmp_path: Path) -> None:
    told = run(tmp_path, {**torch(), f"{CUDNN}/libcudnn.so.9": b""})
    assert told.gaps["lib.libcudnn.so.9.path"].endswith("libcudnn.so.9: file too short")


def test_left_over_wheels_of_another_cuda_decide_nothing(tmp_path: Path) -> None:
    files = {
        **torch("all after success"),
        f"{SITE}/nvidia/cublas/lib/libcublas.so.12": lib("libcublas.so.12"),
        **wheel("nvidia_cublas_cu12-12.8.4.1", "nvidia/cublas/lib/libcublas.so.12"),
    }
    told = run(tmp_path, files)
    assert told.facts["lib.libcublas.so.12.version"] == "12.8.4.1"
    assert told.facts["lib.libcublas.so.13.version"] == "13.1.1.3"
    assert told.facts["cublas.version"] == "13.1.1.3"


def test_two_of_a_kind_in_one_folder_cannot_be_told_apart(tmp_path: Path) -> None:
    """torch loads the one that its folder happens to list first."""
    files = {
        **torch("all after success"),
        f"{SITE}/nvidia/cublas/lib/libcublas.so.11": lib("libcublas.so.11"),
        f"{SITE}/nvidia/cublas/lib/libcublas.so.12": lib("libcublas.so.12"),
    }
    told = run(tmp_path, files)
    assert "whichever comes first" in told.gaps["lib.libcublas.so.12.*"]
    assert paths(told)["libcublas.so.13"] == f"{CU13}/libcublas.so.13"


def test_libraries_for_another_machine_are_passed_over(tmp_path: Path) -> None:
    files = {
        **torch(kind="runpath"),
        "/arm/libcudart.so.13": lib("libcudart.so.13", arch="aarch64"),
    }
    told = run(tmp_path, files, LD_LIBRARY_PATH="/arm")
    assert paths(told)["libcudart.so.13"] == f"{CU13}/libcudart.so.13"


def test_preloaded_by_the_environment(tmp_path: Path) -> None:
    told = run(tmp_path, {**torch(), **STALE}, LD_PRELOAD="/old/libcudart.so.13")
    assert told.facts["lib.libcudart.so.13.path"] == "/old/libcudart.so.13"
    assert told.facts["lib.libcudart.so.13.via"] == "LD_PRELOAD"


def test_a_copy_for_special_cpus_is_a_gap(tmp_path: Path) -> None:
    files = {**torch(), f"{CU13}/glibc-hwcaps/x86-64-v3/libcudart.so.13": lib("libcudart.so.13")}
    told = run(tmp_path, files)
    assert "on CPUs that can use it" in told.gaps["lib.libcudart.so.13.*"]
    assert "on CPUs that can use it" in told.gaps["cuda.runtime.version"]
    assert "cuda.runtime.version" not in told.facts


def test_a_musl_interpreter_is_a_gap(tmp_path: Path) -> None:
    files = {**torch(), PYTHON: shared_object(interpreter="/lib/ld-musl-x86_64.so.1")}
    told = run(tmp_path, files)
    assert not paths(told)
    assert "ld-musl" in told.gaps["lib.*"]
    assert "ld-musl" in told.gaps["cudnn.version"]
    assert told.facts["cudnn.installs"] == [f"{CUDNN}/libcudnn.so.9 9.24.0 wheel"]


def test_conda_brings_its_own_cpp_library(tmp_path: Path) -> None:
    """conda's python has an RPATH, which counts for all that it loads."""
    files = {
        **torch(),
        PYTHON: shared_object(rpath="$ORIGIN/../../conda/lib", needed=["libc.so.6"]),
        "/conda/lib/libstdc++.so.6": lib("libstdc++.so.6", symbols=["GLIBCXX_3.4.33"]),
    }
    told = run(tmp_path, files)
    assert told.facts["os.libstdcxx.version"] == "3.4.33"
    assert "/conda/lib/libstdc++.so.6" in told.sources["os.libstdcxx.version"]


# -- other frameworks --------------------------------------------------------------------------


def tensorflow(cuda: bool = True) -> Files:
    wheels = "$ORIGIN/../nvidia/cuda_runtime/lib:$ORIGIN/../nvidia/cudnn/lib"
    entry = "libtensorflow_framework.so.2"
    return {
        f"{SITE}/tensorflow/python/platform/build_info.py": (
            f"build_info = collections.OrderedDict([('is_cuda_build', {cuda}), ('x', '12.5.1')])\n"
        ),
        f"{SITE}/tensorflow/{entry}": lib(entry, runpath=wheels),
        f"{SITE}/tensorflow/libtensorflow_cc.so.2": lib(
            "libtensorflow_cc.so.2", entry, runpath=f"{wheels}:$ORIGIN"
        ),
        f"{SITE}/nvidia/cuda_runtime/lib/libcudart.so.12": lib("libcudart.so.12"),
        **wheel("nvidia_cuda_runtime_cu12-12.5.82", "nvidia/cuda_runtime/lib/libcudart.so.12"),
        **cudnn("9.3.0"),
    }


def system_cuda(*names: str) -> Files:
    """Libraries of a toolkit that ldconfig knows."""
    folder = "/usr/local/cuda-13.0/lib64"
    return {
        **{f"{folder}/{name}": lib(name) for name in names},
        "/etc/ld.so.cache": ld_cache([(name, f"{folder}/{name}", X86_64) for name in names]),
    }


def test_tensorflow_opens_by_name_what_its_build_brings(tmp_path: Path) -> None:
    told = run(tmp_path, {**tensorflow(), **system_cuda("libcudart.so.13", "libcufft.so.12")})
    taken = paths(told)
    assert taken["libcudart.so.12"] == f"{SITE}/nvidia/cuda_runtime/lib/libcudart.so.12"
    assert taken["libcufft.so.12"] == "/usr/local/cuda-13.0/lib64/libcufft.so.12"
    assert told.facts["cuda.runtime.version"] == "12.5.82"
    assert told.facts["cudnn.version"] == "9.3.0"


def test_a_choice_among_several_is_a_gap(tmp_path: Path) -> None:
    told = run(tmp_path, {**tensorflow(), **system_cuda("libcufft.so.11", "libcufft.so.12")})
    assert "libcufft.so.11" not in paths(told)
    assert "libcufft.so.11, libcufft.so.12" in told.gaps["lib.libcufft.so.12.*"]


def test_tensorflow_for_cpus_takes_nothing(tmp_path: Path) -> None:
    files = {path: data for path, data in tensorflow(cuda=False).items() if "/nvidia/" not in path}
    assert not paths(run(tmp_path, files))


def test_two_frameworks_that_take_different_copies_are_a_gap(tmp_path: Path) -> None:
    files = {**torch(), **tensorflow(), "/old/libcudnn.so.9": lib("libcudnn.so.9")}
    told = run(tmp_path, files, LD_LIBRARY_PATH="/old")
    assert told.gaps["lib.libcudnn.so.9.*"] == (
        f"torch takes {CUDNN}/libcudnn.so.9, tensorflow takes /old/libcudnn.so.9"
    )
    assert "cudnn.version" in told.gaps
    assert told.gaps["cuda.runtime.version"] == "torch takes 13.0.96, tensorflow takes 12.5.82"
    assert told.facts["lib.libcudart.so.12.version"] == "12.5.82"
    assert told.facts["lib.libcudart.so.13.version"] == "13.0.96"


def test_two_frameworks_that_take_the_same_copy_agree(tmp_path: Path) -> None:
    told = run(tmp_path, {**torch(), **tensorflow()})
    assert told.facts["cudnn.version"] == "9.3.0"


def test_jax_loads_the_wheels_by_path(tmp_path: Path) -> None:
    plugin = f"{SITE}/jax_plugins/xla_cuda12"
    files: Files = {
        f"{plugin}/__init__.py": (
            'def _load_nvidia_libraries():\n  _load("cuda_runtime", ["libcudart.so.12"])\n'
            '  _load("cublas", ["libcublas.so.12", "libcublasLt.so.12"])\n'
        ),
        f"{plugin}/xla_cuda_plugin.so": lib("xla_cuda_plugin.so"),
        f"{SITE}/jax_cuda12_plugin/_solver.so": shared_object(needed=["libcudart.so.12"]),
        f"{SITE}/nvidia/cuda_runtime/lib/libcudart.so.12": lib("libcudart.so.12"),
        f"{SITE}/nvidia/cublas/lib/libcublasLt.so.12": lib("libcublasLt.so.12"),
    }
    told = run(tmp_path, files)
    assert set(paths(told)) == {"libcudart.so.12", "libcublasLt.so.12"}
    assert told.facts["lib.libcudart.so.12.via"] == "preload"
    assert told.facts["lib.libcudart.so.12.for"] == "jax: _solver.so"
    assert told.facts["lib.libcublasLt.so.12.for"] == "jax"


def test_onnxruntime_names_what_it_needs(tmp_path: Path) -> None:
    capi = f"{SITE}/onnxruntime/capi"
    files: Files = {
        f"{capi}/libonnxruntime_providers_cuda.so": shared_object(
            soname="libonnxruntime_providers_cuda.so",
            needed=["libcublasLt.so.12", "libcudnn.so.9"],
        ),
        f"{capi}/libonnxruntime_providers_tensorrt.so": shared_object(needed=["libnvinfer.so.10"]),
    }
    told = run(tmp_path, {**files, **system_cuda("libcublasLt.so.12")})
    who = "onnxruntime: libonnxruntime_providers_cuda.so"
    assert told.facts["lib.libcudnn.so.9.for"] == who
    assert told.facts["lib.libcublasLt.so.12.for"] == who
    assert "lib.libnvinfer.so.10.for" not in told.facts


def test_paddle_opens_its_wheels_by_path(tmp_path: Path) -> None:
    files = {
        f"{SITE}/paddle/version/__init__.py": (
            "cuda_version     = '12.6'\nwith_pip_cuda_libraries       = 'ON'\n"
        ),
        f"{SITE}/paddle/base/libpaddle.so": lib("libpaddle.so"),
        **cudnn("9.5.1"),
    }
    told = run(
        tmp_path, {**files, "/old/libcudnn.so.9": lib("libcudnn.so.9")}, LD_LIBRARY_PATH="/old"
    )
    assert paths(told)["libcudnn.so.9"] == f"{CUDNN}/libcudnn.so.9"
    assert told.facts["cudnn.version"] == "9.5.1"


def test_tensorrt_in_wheels(tmp_path: Path) -> None:
    files = {
        f"{SITE}/tensorrt_libs/libnvinfer.so.10": lib("libnvinfer.so.10"),
        **wheel("tensorrt_cu12_libs-10.13.3.9", "tensorrt_libs/libnvinfer.so.10"),
    }
    assert run(tmp_path, files).facts["tensorrt.version"] == "10.13.3.9"


# -- no framework ------------------------------------------------------------------------------


def test_a_plain_program_gets_the_newest_that_the_loader_knows(tmp_path: Path) -> None:
    files = {
        **system_cuda("libcudart.so.12", "libcudart.so.13"),
        "/usr/local/cuda-13.0/version.json": '{"cuda_cudart": {"version": "13.0.96"}}',
        f"{SYSTEM}/libcudnn.so.8.9.7": lib("libcudnn.so.8"),
        f"{SYSTEM}/libcudnn.so.9.1.0": lib("libcudnn.so.9"),
        f"{SYSTEM}/libnccl.so.2.21.5": lib("libnccl.so.2"),
        "/usr/lib/libcublas.so.12": lib("libcublas.so.12"),
    }
    links = {
        f"{SYSTEM}/libcudnn.so.{n}": f"libcudnn.so.{full}"
        for n, full in (("8", "8.9.7"), ("9", "9.1.0"))
    }
    links[f"{SYSTEM}/libnccl.so.2"] = "libnccl.so.2.21.5"
    told = run(tmp_path, files, links)
    assert told.facts["cuda.runtime.version"] == "13.0.96"
    assert told.facts["lib.libcudart.so.13.via"] == "ldconfig"
    assert told.facts["cudnn.version"] == "9.1.0"
    assert told.facts["lib.libcudnn.so.9.via"] == "default"
    assert told.facts["nccl.version"] == "2.21.5"
    assert told.facts["cudnn.installs"] == [
        f"{SYSTEM}/libcudnn.so.8.9.7 8.9.7 default",
        f"{SYSTEM}/libcudnn.so.9.1.0 9.1.0 default (taken by a program that asks by name)",
    ]
    assert "lib.libcudart.so.13.for" not in told.facts
    assert "cublas.version" in told.gaps


def test_nothing_there_is_an_answer(tmp_path: Path) -> None:
    told = run(tmp_path, {})
    assert told.facts == {"os.libstdcxx.version": "3.4.30"}
    assert told.status == "ok"
    assert not told.gaps


def test_without_a_target_only_the_system_counts(tmp_path: Path) -> None:
    host = machine(
        tmp_path,
        {"/usr/lib/libcudart.so.12.8.90": lib("libcudart.so.12")},
        {"/usr/lib/libcudart.so.12": "libcudart.so.12.8.90"},
    )
    told = probe("libraries", host)
    assert told.facts["cuda.runtime.version"] == "12.8.90"


def test_odd_files_do_not_upset_it(tmp_path: Path) -> None:
    files = torch()
    del files[f"{CUDNN}/libcudnn.so.9"], files[f"{SITE}/torch/__init__.py"]
    host = machine(
        tmp_path,
        {**python(), **files, f"{SITE}/torch/__init__.py/x": "", f"{SITE}/tensorrt_libs": ""},
        {
            f"{CU13}/libcudnn.so.9": "libcudnn.so.9",
            f"{SITE}/jaxlib": "/nowhere",
            "/usr/local/cuda": "cuda",
            "/round": "round",
        },
        arch="x86_64",
        env={"LD_LIBRARY_PATH": "/round:/usr/bin/python3.11:/round/x"},
    )
    os.mkfifo(tmp_path / "root" / CUDNN[1:] / "libcudnn.so.9")
    told = probe("libraries", host, target=Target(PYTHON, "--python", "/venv", (SITE, "/gone")))
    assert told.facts["cuda.runtime.version"] == "13.0.96"
    assert told.facts["lib.libcudnn.so.9.for"] == "torch: libtorch_python.so"
    assert "lib.libcudnn.so.9.path" not in told.facts


def test_many_copies_are_cut_short(tmp_path: Path) -> None:
    files: Files = {f"/c{n}/libnccl.so.2.{n}.1": lib("libnccl.so.2") for n in range(60)}
    told = run(tmp_path, files, LD_LIBRARY_PATH=":".join(f"/c{n}" for n in range(60)))
    installs = told.facts["nccl.installs"]
    assert len(installs) == 41
    assert installs[-1] == "and 20 more"


def test_this_machine_is_answered() -> None:
    told = probe("libraries", Host())
    assert told.status == "ok"
    assert told.facts["os.libstdcxx.version"].startswith("3.4.")


# -- versions from files -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "files", "expected"),
    [
        ("/l/libcudart.so.12.8.90", {}, "12.8.90"),
        ("/l/libcudart.so.11.0", {}, ""),
        (
            "/x/lib/libcudart.so.13",
            {"/x/include/cuda_runtime_api.h": "#define CUDART_VERSION  13000"},
            "13.0",
        ),
        ("/x/lib/libcudnn.so.9", {"/x/include/cudnn_version.h": cudnn_header("9.24.0")}, "9.24.0"),
        ("/x/lib/libcudnn.so.9", {"/x/include/cudnn_version.h": cudnn_header("8.9.7")}, ""),
        (
            f"{SYSTEM}/libcudnn.so.9",
            {"/usr/include/x86_64-linux-gnu/cudnn_version.h": cudnn_header("9.2.1")},
            "9.2.1",
        ),
        (
            "/x/lib64/libcublas.so.12",
            {"/x/version.json": '{"libcublas": {"version": "12.4.5.8"}}'},
            "12.4.5.8",
        ),
        (
            "/x/targets/x86_64-linux/lib/libnvrtc.so.12",
            {"/x/version.json": '{"cuda_nvrtc": {"version": "12.4.127"}}'},
            "12.4.127",
        ),
        (
            "/x/lib/libnvinfer.so.10",
            {
                "/x/include/NvInferVersion.h": "#define TRT_MAJOR_ENTERPRISE 10\n"
                "#define TRT_MINOR_ENTERPRISE 13\n#define TRT_PATCH_ENTERPRISE 3\n"
                "#define NV_TENSORRT_MAJOR TRT_MAJOR_ENTERPRISE\n"
                "#define NV_TENSORRT_MINOR TRT_MINOR_ENTERPRISE\n"
                "#define NV_TENSORRT_PATCH TRT_PATCH_ENTERPRISE\n"
            },
            "10.13.3",
        ),
        (
            "/x/lib/libnccl.so.2",
            {"/x/lib/libnccl.so.2": b"..\0NCCL version 2.30.7+cuda13.0\0"},
            "2.30.7",
        ),
        ("/x/lib/libcufft.so.11", {"/x/lib/libcufft.so.11": b""}, ""),
    ],
)
def test_version_of(tmp_path: Path, path: str, files: Files, expected: str) -> None:
    host = machine(tmp_path, {path: b"", **files})
    assert Versions(host).of(path)[0] == expected


def test_the_wheel_that_recorded_the_file_tells(tmp_path: Path) -> None:
    """Two wheels unpack to one place; the size says whose file is there."""
    path = f"{SITE}/nvidia/cusparselt/lib/libcusparseLt.so.0"
    host = machine(
        tmp_path,
        {
            path: b"12345",
            f"{SITE}/nvidia_cusparselt_cu12-0.7.1.dist-info/RECORD": (
                "nvidia/cusparselt/lib/libcusparseLt.so.0,sha256=a,4\n"
            ),
            f"{SITE}/nvidia_cusparselt_cu13-0.8.1.dist-info/RECORD": (
                "nvidia/cusparselt/lib/libcusparseLt.so.0,sha256=b,5\n"
            ),
        },
    )
    assert Versions(host, [SITE]).of(path) == (
        "0.8.1",
        f"{SITE}/nvidia_cusparselt_cu13-0.8.1.dist-info",
    )


@pytest.mark.parametrize(
    ("name", "stem", "main", "version"),
    [
        ("libcudart.so.13", "libcudart", True, ""),
        ("libcudart.so.12.8.90", "libcudart", True, "12.8.90"),
        ("libcudart-d0da41ae.so.11.0", "libcudart", True, ""),
        ("libcudnn_ops.so.9", "libcudnn", False, ""),
        ("libcudnn_adv_infer.so.8.9.7", "libcudnn", False, "8.9.7"),
        ("libnvrtc-builtins.so.13.0", "libnvrtc", False, ""),
        ("libnvrtc.so.11.2", "libnvrtc", True, ""),
        ("libcublasLt.so.12", "libcublasLt", True, ""),
        ("libnccl.so", "libnccl", True, ""),
        ("libcuda.so.1", "", False, ""),
        ("libnvinfer_plugin.so.10", "", False, ""),
        ("libcudart_static.a", "", False, ""),
    ],
)
def test_names(name: str, stem: str, main: bool, version: str) -> None:
    family = family_of(name)
    assert (family.stem if family else "") == stem
    assert family is None or is_main(name, family) is main
    assert version_in_name(name) == (version if family else version_in_name(name))


def test_torch_preloads() -> None:
    every = [
        ("cublas", "libcublasLt.so.*[0-9]"),
        ("cublas", "libcublas.so.*[0-9]"),
        ("nvjitlink", "libnvJitLink.so.*[0-9]"),
        ("cudnn", "libcudnn.so.*[0-9]"),
    ]
    assert torch_preloads(TORCH_INIT["all after success"]) == (every, every, "libcudart.so")
    failure, success, sign = torch_preloads(TORCH_INIT["nvjitlink after success"])
    assert len(failure) == 2
    assert success == [("nvjitlink", "libnvJitLink.so.*[0-9]")]
    assert sign == "nvidia/cuda_runtime/lib/libcudart.so"
    assert torch_preloads(TORCH_INIT["nothing after success"]) == ([], [], "")
    assert torch_preloads("") == ([], [], "")


def test_newest_glibcxx() -> None:
    assert (
        newest_glibcxx(b"\0GLIBCXX_3.4.9\0GLIBCXX_3.4.30\0GLIBCXX_3.4\0GLIBCXX_DEBUG\0") == "3.4.30"
    )
    assert newest_glibcxx(b"GLIBCXX_3.4.30") == ""


words = st.text(alphabet='libcudnn_.so019-"\n #define\tCUDNN_MAJOR{}:,[]ÿ', max_size=80) | st.text(
    max_size=80
)


@given(words)
def test_no_text_upsets_a_parser(text: str) -> None:
    torch_preloads(
        "def _load_global_deps ctypes.CDLL(global_deps_lib_path" + text + "except OSError"
    )
    jax_preloads("_load(" + text)
    versions_in_json(text)
    recorded(text, "libcudnn", 3)
    version_in_name(text)
    family_of(text)
    for family in FAMILIES:
        version_in_header(text, family.macros)
    assert version_in_header("#define CUDART_VERSION " + text, ("CUDART_VERSION",)) is not None


@given(st.binary(max_size=200))
def test_no_bytes_upset_a_parser(data: bytes) -> None:
    newest_glibcxx(data)
    version_in_nccl(data)
    version_in_nccl(b"NCCL version " + data)


@given(
    st.recursive(
        st.none() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=8,
    )
)
def test_any_version_json(data: object) -> None:
    import json

    assert all(isinstance(v, str) for v in versions_in_json(json.dumps(data)).values())
