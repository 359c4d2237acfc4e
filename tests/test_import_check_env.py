# ruff: noqa: W291 (reports as they are printed)
from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envaudit.importers import Section, check_env
from tests.report_laws import (
    assert_lawful,
    assert_parts_agree,
    hostile,
    open_to,
    parts_of,
    read,
    values,
)

SGLANG = """\
Python: 3.12.3 (main, Jan 22 2026, 20:57:42) [GCC 13.3.0]
CUDA available: True
GPU 0,1,2: NVIDIA H800 80GB
GPU 0,1,2 Compute Capability: 9.0
CUDA_HOME: /usr/local/cuda
NVCC: Cuda compilation tools, release 12.9, V12.9.86
CUDA Driver Version: 580.105.08
PyTorch: 2.9.1+cu129
sglang: 0.5.9
sgl_kernel: 0.3.21
flashinfer_python: 0.6.3
flashinfer_jit_cache: 0.6.3+cu129
triton: 3.5.1
transformers: 5.3.0
python-multipart: 0.0.22
pyzmq: 27.1.0
vllm: Module Not Found
NVIDIA Topology: 
\tGPU0\tGPU1\tNIC0\tCPU Affinity
GPU0\t X \tNV18\tPIX\t0-47

Legend:

  X    = Self

Hypervisor vendor: KVM
ulimit soft: 1048576
"""

SGLANG_OLD = """\
Python: 3.10.12 (main, Sep 11 2024, 15:47:36) [GCC 11.4.0]
CUDA available: True
GPU 0: NVIDIA GeForce RTX 3060
GPU 1: NVIDIA GeForce GTX 1080 Ti
GPU 0 Compute Capability: 8.6
GPU 1 Compute Capability: 6.1
CUDA_HOME: None
PyTorch: 2.5.1+cu124
sglang: 0.3.5
flashinfer: 0.1.6+cu124torch2.4
multipart: 0.0.17
zmq: 26.2.0
vllm: 0.6.3.post1
ulimit soft: 1024
"""

MMDET = """\
2021-09-06 09:44:26,951 - mmdet - INFO - Environment info:
------------------------------------------------------------
sys.platform: linux
Python: 3.6.12 (default, Aug 18 2020, 02:08:22) [GCC 5.4.0 20160609]
CUDA available: True
CUDA_HOME: /usr/local/cuda
NVCC: Cuda compilation tools, release 10.1, V10.1.243
GPU 0,1: Tesla P40
GCC: gcc (Ubuntu 5.4.0-6ubuntu1~16.04.12) 5.4.0 20160609
PyTorch: 1.6.0
PyTorch compiling details: PyTorch built with:
  - GCC 7.3
  - CUDA Runtime 10.2
TorchVision: 0.7.0
OpenCV: 4.5.3
MMCV: 1.0.5
MMCV Compiler: GCC 5.4
MMCV CUDA Compiler: 10.1
MMDetection: 2.3.0+e343491
------------------------------------------------------------
"""

MMENGINE_WINDOWS = """\
System environment:
    sys.platform: win32
    Python: 3.9.16 (main, Jan 11 2023, 16:16:36) [MSC v.1916 64 bit (AMD64)]
    CUDA available: False
    MUSA available: False
    numpy_random_seed: 2147483648
    MSVC: 用于 x64 的 Microsoft (R) C/C++ 优化编译器 19.29.30148 版
    GCC: n/a
    PyTorch: 2.0.1+cpu
    TorchVision: 0.15.2+cpu
    OpenCV: 4.8.0
    MMEngine: 0.8.4
"""

LMDEPLOY = """\
sys.platform: linux
Python: 3.10.14 (main, May  6 2024, 19:42:50) [GCC 11.2.0]
CUDA available: True
MUSA available: False
numpy_random_seed: 2147483648
GPU 0: NVIDIA A100-SXM4-80GB
CUDA_HOME: /usr/local/cuda-12.1
NVCC: Build cuda_12.1.r12.1/compiler.32688072_0
GCC: x86_64-linux-gnu-gcc (Debian 12.2.0-14) 12.2.0
PyTorch: 2.3.1+cu121
TorchVision: 0.18.1+cu121
LMDeploy: 0.6.3+
transformers: 4.46.2
gradio: Not Found
fastapi: 0.115.5
triton: 2.3.1
"""

DETECTRON2 = """\
-------------------------------  ----------------------------------------------------
sys.platform                     linux
Python                           3.8.10 (default, Jun  4 2021, 15:09:15) [GCC 7.5.0]
numpy                            1.21.2
detectron2                       0.6 @/opt/conda/lib/python3.8/site-packages/detectron2
Compiler                         GCC 7.3
CUDA compiler                    CUDA 11.1
detectron2 arch flags            3.7, 5.0, 5.2, 6.0, 6.1, 7.0, 7.5, 8.0, 8.6
DETECTRON2_ENV_MODULE            <not set>
PyTorch                          1.9.0+cu111 @/opt/conda/lib/python3.8/site-packages/torch
PyTorch debug build              False
torch._C._GLIBCXX_USE_CXX11_ABI  False
GPU available                    Yes
GPU 0,1                          NVIDIA GeForce RTX 3090 (arch=8.6)
Driver version                   470.57.02
CUDA_HOME                        /usr/local/cuda
TORCH_CUDA_ARCH_LIST             Kepler;Kepler+Tesla;Maxwell
Pillow                           8.3.1
torchvision                      0.10.0+cu111 @/opt/conda/lib/python3.8/site-packages/torchvision
fvcore                           0.1.5.post20210910
cv2                              Not found
-------------------------------  ----------------------------------------------------
"""

DETECTRON2_NO_GPU = """\
----------------------  ------------------------------------------------------------
sys.platform            win64
Python                  3.8.3 (default, Jul  2 2020, 17:30:36) [MSC v.1916 64 bit (AMD64)]
detectron2              failed to import
PyTorch                 1.7.1 @C:\\Users\\li\\anaconda3\\lib\\site-packages\\torch
GPU available           No: torch.cuda.is_available() == False
CUDA_HOME               C:\\CUDA\\v10.1 - invalid!
----------------------  ------------------------------------------------------------
"""

SAMPLES = (
    SGLANG,
    SGLANG_OLD,
    MMDET,
    MMENGINE_WINDOWS,
    LMDEPLOY,
    DETECTRON2,
    DETECTRON2_NO_GPU,
)


class TestSglang:
    def test_one_of_today(self) -> None:
        imported = read(check_env, SGLANG)
        assert values(imported) == {
            "python.version": "3.12.3",
            "python.implementation": "CPython",
            "torch.cuda.available": True,
            "gpu.0.name": "NVIDIA H800 80GB",
            "gpu.1.name": "NVIDIA H800 80GB",
            "gpu.2.name": "NVIDIA H800 80GB",
            "gpu.0.compute_capability": "9.0",
            "gpu.1.compute_capability": "9.0",
            "gpu.2.compute_capability": "9.0",
            "cuda.home": "/usr/local/cuda",
            "cuda.toolkit.version": "12.9.86",
            "cuda.nvcc.version": "12.9.86",
            "driver.version": "580.105.08",
            "torch.version": "2.9.1+cu129",
            "torch.import": "ok",
            "dist.sglang.version": "0.5.9",
            "dist.sgl-kernel.version": "0.3.21",
            "dist.flashinfer-python.version": "0.6.3",
            "dist.flashinfer-jit-cache.version": "0.6.3+cu129",
            "dist.triton.version": "3.5.1",
            "dist.transformers.version": "5.3.0",
            "dist.python-multipart.version": "0.0.22",
            "dist.pyzmq.version": "27.1.0",
            "os.virtualization": "kvm",
            "host.limits.nofile": 1048576,
        }
        assert imported.lines["gpu.2.name"] == 3
        assert imported.absent == ()

    def test_modules_in_place_of_distributions(self) -> None:
        imported = read(check_env, SGLANG_OLD)
        facts = values(imported)
        assert facts["dist.python-multipart.version"] == "0.0.17"
        assert facts["dist.pyzmq.version"] == "26.2.0"
        assert facts["dist.vllm.version"] == "0.6.3.post1"
        assert facts["gpu.0.compute_capability"] == "8.6"
        assert facts["gpu.1.compute_capability"] == "6.1"
        assert imported.absent == ("cuda.home",)
        assert "gpu.count" not in facts

    def test_drivers_that_differ(self) -> None:
        text = SGLANG.replace("Driver Version: 580.105.08", "Driver Versions: 570.1.1, 580.105.08")
        imported = read(check_env, text)
        assert "driver.version" not in values(imported)
        assert open_to(imported, "driver.version")


class TestOpenMmlab:
    def test_a_training_log(self) -> None:
        facts = values(read(check_env, MMDET))
        assert facts["gpu.1.name"] == "Tesla P40"
        assert facts["cuda.nvcc.version"] == "10.1.243"
        assert facts["gcc.version"] == "5.4.0"
        assert facts["torch.version"] == "1.6.0"
        assert facts["dist.torchvision.version"] == "0.7.0"
        assert facts["dist.mmdet.version"] == "2.3.0+e343491"
        assert facts["mmcv.built.cuda.version"] == "10.1"
        assert "os.id" not in facts

    def test_on_windows_without_a_gpu(self) -> None:
        facts = values(read(check_env, MMENGINE_WINDOWS))
        assert facts["os.id"] == "windows"
        assert facts["torch.cuda.available"] is False
        assert facts["torch.version"] == "2.0.1+cpu"
        assert facts["dist.mmengine.version"] == "0.8.4"
        assert "gcc.version" not in facts

    def test_lmdeploy(self) -> None:
        facts = values(read(check_env, LMDEPLOY))
        assert facts["dist.lmdeploy.version"] == "0.6.3"
        assert facts["cuda.toolkit.version"] == "12.1"
        assert facts["gcc.version"] == "12.2.0"
        assert facts["dist.fastapi.version"] == "0.115.5"
        assert "dist.gradio.version" not in facts

    @pytest.mark.parametrize("nvcc", ["Not Available", "n/a"])
    def test_no_compiler(self, nvcc: str) -> None:
        text = LMDEPLOY.replace("Build cuda_12.1.r12.1/compiler.32688072_0", nvcc)
        assert open_to(read(check_env, text), "cuda.nvcc.version") == f"the report says {nvcc!r}"


class TestDetectron2:
    def test_the_table(self) -> None:
        facts = values(read(check_env, DETECTRON2))
        assert facts["gpu.0.name"] == "NVIDIA GeForce RTX 3090"
        assert facts["gpu.1.compute_capability"] == "8.6"
        assert facts["driver.version"] == "470.57.02"
        assert facts["torch.version"] == "1.9.0+cu111"
        assert facts["torch.cxx11_abi"] is False
        assert facts["torch.cuda.available"] is True
        assert facts["dist.detectron2.version"] == "0.6"
        assert facts["detectron2.built.cuda.version"] == "11.1"
        assert facts["dist.torchvision.version"] == "0.10.0+cu111"
        assert facts["dist.numpy.version"] == "1.21.2"
        assert facts["cuda.home"] == "/usr/local/cuda"
        assert "env.TORCH_CUDA_ARCH_LIST" not in facts

    def test_a_home_that_is_no_folder(self) -> None:
        imported = read(check_env, DETECTRON2_NO_GPU)
        facts = values(imported)
        assert facts["os.id"] == "windows"
        assert facts["torch.version"] == "1.7.1"
        assert facts["torch.cuda.available"] is False
        assert "cuda.home" not in facts
        assert imported.absent == ("cuda.nvcc.version",)


class TestUglyInput:
    @pytest.mark.parametrize("lead", ["> ", "    ", "- ", "* ", "\t"])
    def test_marks_in_front(self, lead: str) -> None:
        marked = "\n".join(lead + line for line in SGLANG.split("\n"))
        assert values(read(check_env, marked)) == values(read(check_env, SGLANG))

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "PyTorch: 2.1 is required\n",
            "CUDA available: True\n",
            "Is CUDA available: True\nCUDA_HOME=/usr/local/cuda\n",
            "GPU 0: Tesla T4 (UUID: GPU-0a)\nGPU 1: Tesla T4 (UUID: GPU-0b)\n",
        ],
    )
    def test_what_is_none(self, text: str) -> None:
        assert not check_env.recognises(Section(text))

    def test_gpus_of_other_makers_are_left_out(self) -> None:
        text = SGLANG.replace("NVIDIA H800 80GB", "AMD Instinct MI300X")
        assert "gpu.0.name" not in values(read(check_env, text))

    def test_many_gpus_have_a_limit(self) -> None:
        numbers = ",".join(map(str, range(2000)))
        text = f"CUDA available: True\nNVCC: Not Available\nGPU {numbers}: NVIDIA H100\n"
        names = [name for name in values(read(check_env, text)) if name.startswith("gpu.")]
        assert len(names) <= 1024


@pytest.mark.parametrize("sample", SAMPLES)
def test_parts_say_what_the_whole_says(sample: str) -> None:
    assert_parts_agree(check_env, sample)


@given(parts_of(*SAMPLES) | st.text(max_size=400))
def test_laws(text: str) -> None:
    assert_lawful(check_env, text)


def test_long_lines_take_no_time() -> None:
    starts = ("CUDA available: True\nNVCC: ", "CUDA available: True\nGPU 0,", "GCC: (", "sglang ")
    for text in hostile(*starts):
        began = time.perf_counter()
        assert_lawful(check_env, text)
        assert time.perf_counter() - began < 2


@pytest.mark.parametrize(
    ("value", "codes"),
    [
        ("6.1, 7.0", ["sm_61", "sm_70"]),
        ("sm_37", ["sm_37"]),
        ("3.5, 5.0, 8.6", ["sm_35", "sm_50", "sm_86"]),
        ("/opt/detectron2/_C.so; cannot find cuobjdump", None),
    ],
)
def test_the_code_of_extensions(value: str, codes: list[str] | None) -> None:
    text = "sys.platform            linux\nGPU available           Yes\n"
    text += f"detectron2 arch flags   {value}\n"
    assert values(read(check_env, text)).get("detectron2.arch_list") == codes
