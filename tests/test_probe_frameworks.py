from __future__ import annotations

import os
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envaudit.host import Host
from envaudit.probes.frameworks import (
    FRAMEWORKS,
    architecture_literal,
    find_architectures,
    parse_abi,
    parse_assignments,
    parse_cupy_name,
    parse_finder,
    parse_jaxlib_local,
    parse_paddle_architectures,
    parse_pins,
    parse_tf_build_info,
)
from envaudit.target import Target
from tests.probing import Told, machine, probe

SITE = "/v/lib/python3.11/site-packages"
TARGET = Target("/v/bin/python", "--python", "/v", (SITE,))
ABORT = "import os\nos.abort()\n"
Files = dict[str, str | bytes]

VERSION_PY = (
    "from typing import Optional\n\n"
    "__all__ = ['__version__', 'debug', 'cuda', 'git_version', 'hip']\n"
    "__version__ = '2.9.1+cu128'\ndebug = False\ncuda: Optional[str] = '12.8'\n"
    "git_version = '5811a8d7da873dd699ff6687092c225caffcf1bb'\nhip: Optional[str] = None\n"
)
NEW_ABI = b"\0_ZN3c105ErrorC1ENS_14SourceLocationENSt7__cxx1112basic_stringIcE\0"
OLD_ABI = b"\0_ZN3c105ErrorC1ENS_14SourceLocationESs\0"


def elf(constants: bytes, *, name: bytes = b".rodata") -> bytes:
    """A 64-bit library with one section of constants and code that looks like them."""
    code = b"H\x8d\x05sm_99 sm_98\0"
    names = b"\0.shstrtab\0" + name + b"\0"
    at = 64 + len(code)
    sections = [
        (0, 0, 0),
        (1, at + len(constants), len(names)),
        (11, at, len(constants)),
    ]
    table = b"".join(
        struct.pack("<IIQQQQIIQQ", name_at, 1, 0, 0, begin, size, 0, 0, 1, 0)
        for name_at, begin, size in sections
    )
    head = b"\x7fELF\x02\x01\x01" + bytes(9)
    head += struct.pack(
        "<HHIQQQIHHHHHH", 3, 62, 1, 0, 0, at + len(constants) + len(names), 0, 64, 0, 0, 64, 3, 1
    )
    return head + code + constants + names + table


TORCH: Files = {
    f"{SITE}/torch/__init__.py": ABORT,
    f"{SITE}/torch/version.py": VERSION_PY,
    f"{SITE}/torch/lib/libtorch_python.so": elf(
        b"\0_set_sm_carveout_experimental\0sm_75 sm_80 sm_90a sm_120 compute_120\0sm_70\0x"
    ),
    f"{SITE}/torch/lib/libc10.so": NEW_ABI,
    f"{SITE}/torch-2.9.1+cu128.dist-info/METADATA": (
        "Name: torch\n"
        'Requires-Dist: nvidia-cudnn-cu12==9.10.2.21; platform_system == "Linux"\n'
        'Requires-Dist: nvidia-nccl-cu12==2.27.5; platform_system == "Linux"\n'
    ),
}


def told_by(tmp_path: Path, files: Files, *, path: list[str] | None = None) -> Told:
    host = machine(tmp_path, files)
    before: dict[str, Any] = {"python.path": path if path is not None else [SITE]}
    return probe("frameworks", host, target=TARGET, before=before)


def without(files: Files, part: str) -> Files:
    return {path: text for path, text in files.items() if part not in path}


class TestTorch:
    def test_a_cuda_build(self, tmp_path: Path) -> None:
        told = told_by(tmp_path, TORCH)
        assert told.facts == {
            "torch.version": "2.9.1+cu128",
            "torch.cuda.version": "12.8",
            "torch.cudnn.version": "9.10.2.21",
            "torch.nccl.version": "2.27.5",
            "torch.cxx11_abi": True,
            "torch.arch_list": ["sm_75", "sm_80", "sm_90a", "sm_120", "compute_120"],
        }
        assert told.gaps == {}
        assert told.sources["torch.cuda.version"] == f"{SITE}/torch/version.py"

    def test_a_cpu_build_has_no_cuda_and_that_is_an_answer(self, tmp_path: Path) -> None:
        text = VERSION_PY.replace("'12.8'", "None").replace("cu128", "cpu")
        cpu: Files = {f"{SITE}/torch/version.py": text, f"{SITE}/torch/lib/libc10.so": OLD_ABI}
        told = told_by(tmp_path, without(TORCH, "libtorch_python") | cpu)
        assert told.facts == {"torch.version": "2.9.1+cpu", "torch.cxx11_abi": False}
        assert told.gaps == {}

    def test_a_rocm_build(self, tmp_path: Path) -> None:
        text = VERSION_PY.replace("'12.8'", "None").replace(
            "hip: Optional[str] = None", "hip: Optional[str] = '6.4.43484-123eb5128'"
        )
        library = elf(b"x\0gfx900 gfx90a gfx1100\0")
        told = told_by(
            tmp_path,
            TORCH
            | {
                f"{SITE}/torch/version.py": text,
                f"{SITE}/torch/lib/libtorch_python.so": library,
            },
        )
        assert told.facts["torch.hip.version"] == "6.4.43484-123eb5128"
        assert "torch.cuda.version" not in told.facts
        assert told.facts["torch.arch_list"] == ["gfx900", "gfx90a", "gfx1100"]

    def test_an_old_wheel_with_the_libraries_inside(self, tmp_path: Path) -> None:
        """No pins: what it was compiled with is unknown, not absent."""
        files = TORCH | {f"{SITE}/torch-2.9.1+cu128.dist-info/METADATA": "Name: torch\n"}
        told = told_by(tmp_path, files)
        assert "requires no certain distribution" in told.gaps["torch.cudnn.version"]
        assert "torch.nccl.version" in told.gaps

    def test_none_at_all_is_absent(self, tmp_path: Path) -> None:
        told = told_by(tmp_path, {f"{SITE}/x.py": ""})
        assert (told.facts, told.gaps, told.status) == ({}, {}, "ok")

    def test_a_record_without_the_package(self, tmp_path: Path) -> None:
        told = told_by(tmp_path, without(TORCH, "/torch/"))
        assert "the package torch is not" in told.gaps["torch.*"]

    def test_a_source_folder_that_shadows_it(self, tmp_path: Path) -> None:
        """An import would take the folder first on the path, which was never built."""
        files = TORCH | {"/src/pytorch/torch/__init__.py": ABORT}
        told = told_by(tmp_path, files, path=["/src/pytorch", SITE])
        assert told.facts == {}
        assert "/src/pytorch/torch/version.py is not there" in told.gaps["torch.*"]

    def test_an_editable_build_is_found_through_its_finder(self, tmp_path: Path) -> None:
        moved = {
            path.replace(f"{SITE}/torch/", "/src/pytorch/torch/"): text
            for path, text in TORCH.items()
        }
        finder = "MAPPING: dict[str, str] = {'functorch': '/f', 'torch': '/src/pytorch/torch'}\n"
        told = told_by(tmp_path, moved | {f"{SITE}/__editable___torch_2_9_finder.py": finder})
        assert told.facts["torch.version"] == "2.9.1+cu128"
        assert told.facts["torch.arch_list"]
        assert "torch.cudnn.version" in told.gaps  # the pins are not surely this build's

    def test_a_library_that_conda_keeps_elsewhere(self, tmp_path: Path) -> None:
        files = without(TORCH, "libtorch_python") | {
            "/v/lib/libtorch_python.so": elf(b"\0sm_50 compute_50\0")
        }
        told = told_by(tmp_path, files)
        assert told.facts["torch.arch_list"] == ["sm_50", "compute_50"]

    @pytest.mark.parametrize(
        ("library", "words"),
        [
            (None, "is not there"),
            (b"", "no list of architectures"),
            (b"\x7fELF", "no list of architectures"),
            (elf(b"\0no such text\0"), "no list of architectures"),
            (b"\x7fELF\x02\x01" + b"\xff" * 200, "no list of architectures"),
        ],
    )
    def test_architectures_that_cannot_be_told(
        self, tmp_path: Path, library: bytes | None, words: str
    ) -> None:
        files = without(TORCH, "libtorch_python")
        if library is not None:
            files[f"{SITE}/torch/lib/libtorch_python.so"] = library
        told = told_by(tmp_path, files)
        assert words in told.gaps["torch.arch_list"]
        assert told.facts["torch.cuda.version"] == "12.8"

    def test_a_fifo_in_place_of_a_library(self, tmp_path: Path) -> None:
        host = machine(tmp_path, without(without(TORCH, "libtorch_python"), "libc10"))
        for name in ("libtorch_python.so", "libc10.so"):
            path = Path(host.at(f"{SITE}/torch/lib/{name}"))
            path.parent.mkdir(exist_ok=True)
            os.mkfifo(path)
        told = probe("frameworks", host, target=TARGET)
        assert {"torch.arch_list", "torch.cxx11_abi"} <= set(told.gaps)
        assert told.facts["torch.version"] == "2.9.1+cu128"

    @pytest.mark.parametrize("text", ["", "version = 1\n", "\xff\x00"])
    def test_a_version_file_of_an_unknown_layout(self, tmp_path: Path, text: str) -> None:
        told = told_by(tmp_path, TORCH | {f"{SITE}/torch/version.py": text})
        assert told.facts == {}
        assert "has no __version__" in told.gaps["torch.*"]

    def test_a_version_file_that_does_not_name_cuda(self, tmp_path: Path) -> None:
        told = told_by(tmp_path, TORCH | {f"{SITE}/torch/version.py": "__version__ = '9.0'\n"})
        assert told.facts["torch.version"] == "9.0"
        assert {"torch.cuda.version", "torch.hip.version"} <= set(told.gaps)
        assert told.facts["torch.arch_list"]


def installed(
    name: str, version: str, package: str, files: Mapping[str, str] | None = None
) -> Files:
    record = f"{SITE}/{name.replace('-', '_')}-{version}.dist-info"
    told: Files = {f"{record}/METADATA": f"Name: {name}\n"}
    if package:
        told[f"{SITE}/{package}/__init__.py"] = ABORT
    return told | {f"{SITE}/{path}": text for path, text in (files or {}).items()}


TF_INFO = "tensorflow/python/platform/build_info.py"
TF_CUDA = (
    "build_info = collections.OrderedDict([('cpu_compiler', 'clang'), "
    "('cuda_compute_capabilities', ['sm_60', 'sm_89', 'compute_90']), ('cuda_version', '12.5.1'), "
    "('cudnn_version', '9'), ('is_cuda_build', True), ('is_rocm_build', False)])\n"
)


class TestTensorFlow:
    @pytest.mark.parametrize("name", ["tensorflow", "tf-nightly", "tensorflow-gpu"])
    def test_a_cuda_build(self, tmp_path: Path, name: str) -> None:
        told = told_by(tmp_path, installed(name, "2.21.0", "tensorflow", {TF_INFO: TF_CUDA}))
        assert told.facts == {
            "tensorflow.version": "2.21.0",
            "tensorflow.cuda.version": "12.5.1",
            "tensorflow.cudnn.version": "9",
            "tensorflow.arch_list": ["sm_60", "sm_89", "compute_90"],
        }
        assert told.gaps == {}

    def test_a_cpu_build(self, tmp_path: Path) -> None:
        text = "build_info = collections.OrderedDict([('is_cuda_build', False)])\n"
        told = told_by(
            tmp_path, installed("tensorflow-cpu", "2.21.0", "tensorflow", {TF_INFO: text})
        )
        assert told.facts == {"tensorflow.version": "2.21.0"}
        assert told.gaps == {}

    def test_an_unknown_layout(self, tmp_path: Path) -> None:
        told = told_by(tmp_path, installed("tensorflow", "3.0", "tensorflow"))
        assert told.facts == {"tensorflow.version": "3.0"}
        assert set(told.gaps) == {
            "tensorflow.cuda.version",
            "tensorflow.cudnn.version",
            "tensorflow.arch_list",
        }

    def test_without_a_record_the_version_is_open(self, tmp_path: Path) -> None:
        told = told_by(tmp_path, {f"{SITE}/tensorflow/__init__.py": ABORT})
        assert "tensorflow.version" in told.gaps

    def test_layouts(self) -> None:
        old = "is_cuda_build = True\ncuda_version_number = '10.1'\ncudnn_version_number = '7'\n"
        assert parse_tf_build_info(old) == {"cuda.version": "10.1", "cudnn.version": "7"}
        assert parse_tf_build_info("is_cuda_build = False\n") == {}
        assert parse_tf_build_info("is_cuda_build = True\n") is None
        assert parse_tf_build_info("") is None


class TestJax:
    def test_the_plugin_tells_the_cuda_series(self, tmp_path: Path) -> None:
        told = told_by(
            tmp_path,
            installed("jax", "0.10.2", "jax")
            | installed("jaxlib", "0.10.2", "jaxlib")
            | installed("jax-cuda13-plugin", "0.10.2", "jax_cuda13_plugin"),
        )
        assert told.facts == {
            "jax.version": "0.10.2",
            "jaxlib.version": "0.10.2",
            "jaxlib.cuda.version": "13",
        }
        assert set(told.gaps) == {"jaxlib.cudnn.version", "jaxlib.arch_list"}

    def test_without_a_plugin_it_is_for_the_cpu(self, tmp_path: Path) -> None:
        told = told_by(tmp_path, installed("jaxlib", "0.10.2", "jaxlib"))
        assert told.facts == {"jaxlib.version": "0.10.2"}
        assert told.gaps == {}

    def test_two_plugins_leave_it_open(self, tmp_path: Path) -> None:
        told = told_by(
            tmp_path,
            installed("jaxlib", "0.10.2", "jaxlib")
            | installed("jax-cuda12-plugin", "0.10.2", "jax_cuda12_plugin")
            | installed("jax-cuda13-plugin", "0.10.2", "jax_cuda13_plugin"),
        )
        assert told.gaps["jaxlib.cuda.version"] == (
            "several plugins: jax-cuda12-plugin, jax-cuda13-plugin"
        )

    def test_cuda_built_in_as_conda_does(self, tmp_path: Path) -> None:
        files = installed("jaxlib", "0.4.34", "jaxlib", {"jaxlib/cuda/_blas.so": ""})
        told = told_by(tmp_path, files)
        assert "jaxlib.cuda.version" in told.gaps

    def test_a_wheel_from_before_the_plugins(self, tmp_path: Path) -> None:
        told = told_by(tmp_path, installed("jaxlib", "0.4.23+cuda12.cudnn89", "jaxlib"))
        assert told.facts["jaxlib.cuda.version"] == "12"
        assert told.facts["jaxlib.cudnn.version"] == "8.9"

    def test_from_its_own_file_where_no_record_lies_beside_it(self, tmp_path: Path) -> None:
        text = '_version = "0.10.2"\n_release_version: str | None = None\n'
        told = told_by(tmp_path, {f"{SITE}/jax/__init__.py": ABORT, f"{SITE}/jax/version.py": text})
        assert told.facts == {"jax.version": "0.10.2"}

    def test_local_versions(self) -> None:
        assert parse_jaxlib_local("0.4.30") == ("", "")
        assert parse_jaxlib_local("0.1.69+cuda111") == ("11.1", "")
        assert parse_jaxlib_local("0.3.25+cuda11.cudnn82") == ("11", "8.2")


class TestOthers:
    @pytest.mark.parametrize(
        ("name", "cuda"),
        [("cupy-cuda12x", "12"), ("cupy-cuda112", "11.2"), ("cupy-cuda102", "10.2")],
    )
    def test_cupy(self, tmp_path: Path, name: str, cuda: str) -> None:
        own = {"cupy/_version.py": "__version__ = '13.6.0'\n"}
        told = told_by(tmp_path, installed(name, "13.6.0", "cupy", own))
        assert told.facts == {"cupy.version": "13.6.0", "cupy.cuda.version": cuda}
        assert set(told.gaps) == {"cupy.cudnn.version", "cupy.arch_list"}

    def test_cupy_from_source_and_twice(self, tmp_path: Path) -> None:
        own = {"cupy/_version.py": "__version__ = '13.6.0'\n"}
        told = told_by(tmp_path / "a", installed("cupy", "13.6.0", "cupy", own))
        assert "cupy.cuda.version" in told.gaps
        files = installed("cupy-cuda11x", "13.6.0", "cupy", own)
        told = told_by(tmp_path / "b", files | installed("cupy-cuda12x", "14.0.0", "cupy"))
        assert "several distributions" in told.gaps["cupy.cuda.version"]
        assert told.facts == {"cupy.version": "13.6.0"}

    def test_cupy_for_rocm(self, tmp_path: Path) -> None:
        own = {"cupy/_version.py": "__version__ = '13.6.0'\n"}
        told = told_by(tmp_path, installed("cupy-rocm-5-0", "13.6.0", "cupy", own))
        assert (told.facts, told.gaps) == ({"cupy.version": "13.6.0"}, {})

    def test_onnxruntime_gpu(self, tmp_path: Path) -> None:
        info = "package_name = 'onnxruntime-gpu'\n__version__ = '1.31.1'\ncuda_version = '13.0'\n"
        own = {"onnxruntime/capi/build_and_package_info.py": info}
        told = told_by(tmp_path, installed("onnxruntime-gpu", "1.31.1", "onnxruntime", own))
        assert told.facts == {"onnxruntime.version": "1.31.1", "onnxruntime.cuda.version": "13.0"}
        assert set(told.gaps) == {"onnxruntime.cudnn.version", "onnxruntime.arch_list"}

    def test_onnxruntime_for_the_cpu_over_the_one_for_the_gpu(self, tmp_path: Path) -> None:
        """Both distributions are recorded; the files are those of the last one installed."""
        info = "package_name = 'onnxruntime'\n__version__ = '1.22.0'\n"
        own = {"onnxruntime/capi/build_and_package_info.py": info}
        told = told_by(
            tmp_path,
            installed("onnxruntime-gpu", "1.31.1", "")
            | installed("onnxruntime", "1.22.0", "onnxruntime", own),
        )
        assert (told.facts, told.gaps) == ({"onnxruntime.version": "1.22.0"}, {})

    def test_onnxruntime_of_old(self, tmp_path: Path) -> None:
        own = {
            "onnxruntime/capi/version_info.py": "use_cuda = True\ncuda_version = '11.8'\n"
            "cudnn_version = '8.6'\n",
            "onnxruntime/__init__.py": '__version__ = "1.10.0"\n' + ABORT,
        }
        told = told_by(tmp_path, installed("onnxruntime-gpu", "1.10.0", "", own))
        assert told.facts == {
            "onnxruntime.version": "1.10.0",
            "onnxruntime.cuda.version": "11.8",
            "onnxruntime.cudnn.version": "8.6",
        }

    def test_paddle(self, tmp_path: Path) -> None:
        text = (
            "full_version     = '3.3.1'\nmajor            = '3'\ncuda_version     = '12.6'\n"
            "cudnn_version    = '9.5.1'\nhip_version      = None\n"
            "compiled_cuda_archs = [70, 75, 80, 90]\n"
        )
        own = {"paddle/version/__init__.py": text}
        told = told_by(tmp_path, installed("paddlepaddle-gpu", "3.3.1", "paddle", own))
        assert told.facts == {
            "paddle.version": "3.3.1",
            "paddle.cuda.version": "12.6",
            "paddle.cudnn.version": "9.5.1",
            "paddle.arch_list": ["sm_70", "sm_75", "sm_80", "sm_90"],
        }
        assert told.gaps == {}

    def test_paddle_for_the_cpu(self, tmp_path: Path) -> None:
        text = "full_version = '3.3.1'\ncuda_version = 'False'\ncudnn_version = 'False'\n"
        own = {"paddle/version/__init__.py": text + "compiled_cuda_archs = []\n"}
        told = told_by(tmp_path, installed("paddlepaddle", "3.3.1", "paddle", own))
        assert (told.facts, told.gaps) == ({"paddle.version": "3.3.1"}, {})

    def test_another_package_of_that_name(self, tmp_path: Path) -> None:
        told = told_by(tmp_path, installed("paddle", "1.2", "paddle"))
        assert (told.facts, told.gaps) == ({}, {})

    @pytest.mark.parametrize(
        ("name", "facts"),
        [
            ("tensorflow", "tensorflow.*"),
            ("jax", "jax.version"),
            ("jaxlib", "jaxlib.*"),
            ("cupy-cuda12x", "cupy.*"),
            ("onnxruntime-gpu", "onnxruntime.*"),
            ("paddlepaddle-gpu", "paddle.*"),
        ],
    )
    def test_a_record_without_its_package(self, tmp_path: Path, name: str, facts: str) -> None:
        told = told_by(tmp_path, installed(name, "1.0", ""))
        assert told.facts == {}
        assert list(told.gaps) == [facts]


class TestAround:
    def test_one_that_fails_costs_the_others_nothing(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(*_: object) -> None:
            raise RuntimeError("broken")

        monkeypatch.setitem(FRAMEWORKS, "torch", fail)
        told = told_by(tmp_path, TORCH | installed("jaxlib", "0.10.2", "jaxlib"))
        assert told.gaps["torch.*"] == "RuntimeError: broken"
        assert told.facts == {"jaxlib.version": "0.10.2"}

    def test_without_an_answer_of_the_interpreter_its_layout_serves(self, tmp_path: Path) -> None:
        told = probe("frameworks", machine(tmp_path, TORCH), target=TARGET)
        assert told.facts["torch.version"] == "2.9.1+cu128"

    def test_without_any_folder_nothing_is_known(self, tmp_path: Path) -> None:
        shim = Target("/shims/python", "--python", "", ())
        told = probe("frameworks", machine(tmp_path), target=shim)
        assert set(told.gaps) == {f"{name}.*" for name in FRAMEWORKS}

    def test_a_path_without_packages_is_an_answer(self, tmp_path: Path) -> None:
        told = told_by(tmp_path, TORCH, path=[])
        assert (told.facts, told.gaps) == ({}, {})

    def test_no_interpreter(self, tmp_path: Path) -> None:
        assert probe("frameworks", machine(tmp_path)).status == "absent"


class TestParsers:
    def test_assignments(self) -> None:
        text = "a = 'x'\na = 'y'\n  b = 'z'\nc: Optional[str] = None\nd = True\ne = f()\ng = \"\"\n"
        assert parse_assignments(text) == {"a": "x", "c": None, "d": True, "g": ""}

    def test_pins(self) -> None:
        assert parse_pins(
            [
                "nvidia-cudnn-cu12 (==9.1.0.70) ; platform_system == 'Linux'",
                "nvidia-nccl-cu13==2.30.7",
                "nvidia-cublas==13.1.1.3.*; extra == 'x'",
                "nvidia-cufft>=12",
                "torch==2.9.1",
            ]
        ) == {"cudnn": "9.1.0.70", "nccl": "2.30.7", "cublas": "13.1.1.3"}

    def test_architectures(self) -> None:
        assert find_architectures(b"sm_90") == ["sm_90"]
        assert find_architectures(b"\0x sm_90\0sm_90;sm_100f\0") == ["sm_90", "sm_100f"]
        assert find_architectures(b"\0compute_90\0compute_unit\0") == ["compute_90"]
        assert find_architectures(b"sm_" * 5000) == []

    def test_only_constants_are_searched(self, tmp_path: Path) -> None:
        host = machine(
            tmp_path,
            {
                "/constants.so": elf(b"\0sm_90\0"),
                "/code.so": elf(b"\0sm_90\0", name=b".text\0"),
                "/text.so": b"\0sm_90\0",
            },
        )
        assert architecture_literal(host, "/constants.so") == ["sm_90"]
        assert architecture_literal(host, "/code.so") == []
        assert architecture_literal(host, "/text.so") == []

    @given(st.binary(max_size=200), st.integers(0, 300))
    def test_any_library(self, tail: bytes, cut: int) -> None:
        for data in (tail, b"\x7fELF\x02\x01" + tail, (elf(b"\0sm_90\0")[:cut] + tail)):
            find_architectures(data)
            parse_abi(data)

    @given(st.text(max_size=300))
    def test_any_text(self, text: str) -> None:
        parse_assignments(text)
        parse_tf_build_info(text + "is_cuda_build = True" + text)
        parse_finder("MAPPING = {" + text)
        parse_pins([text])
        parse_jaxlib_local(text)
        parse_cupy_name(text)
        parse_paddle_architectures("compiled_cuda_archs = [" + text)

    def test_large_ugly_text_is_quick(self) -> None:
        for text in ("a" * 300_000, "a = '" * 60_000, "MAPPING" * 50_000, "=:" * 100_000):
            parse_assignments(text)
            parse_tf_build_info(text)
            parse_finder(text)
            parse_paddle_architectures(text)


def test_a_real_library_is_read_in_place(tmp_path: Path) -> None:
    """The same through the door to the live machine."""
    for path, content in TORCH.items():
        place = tmp_path / path.removeprefix("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content.encode() if isinstance(content, str) else content)
    site = f"{tmp_path}{SITE}"
    target = Target("/bin/python", "--python", "/nowhere", (site,))
    told = probe("frameworks", Host(), target=target)
    assert told.facts["torch.arch_list"][0] == "sm_75"
    assert told.gaps == {}
