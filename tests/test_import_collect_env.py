# ruff: noqa: E501, W291 (reports as they are printed)
from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envaudit.importers import Section, collect_env
from tests.report_laws import (
    assert_lawful,
    assert_parts_agree,
    hostile,
    open_to,
    parts_of,
    read,
    values,
)

TORCH_10 = """\
Collecting environment information...
PyTorch version: 1.0.1.post2
Is debug build: No
CUDA used to build PyTorch: 9.0.176

OS: Ubuntu 16.04.5 LTS
GCC version: (Ubuntu 5.4.0-6ubuntu1~16.04.11) 5.4.0 20160609
CMake version: version 3.5.1

Python version: 3.6
Is CUDA available: Yes
CUDA runtime version: 9.1.85
GPU models and configuration: 
GPU 0: Tesla P100-PCIE-16GB
GPU 1: Tesla P100-PCIE-16GB

Nvidia driver version: 390.12
cuDNN version: Probably one of the following:
/usr/lib/x86_64-linux-gnu/libcudnn.so.7.1.4
/usr/local/cuda-9.1/lib64/libcudnn_static_v7.a

Versions of relevant libraries:
[pip] numpy (1.16.1)
[pip] torch (1.0.1.post2)
[conda] blas                      1.0                         mkl  
[conda] cuda90                    1.0                  h6433d27_0    pytorch
[conda] mkl                       2019.1                      144  
[conda] numpy                     1.9.3                   py27_p0  [mkl]
[conda] torchvision               0.2.1                     <pip>
"""

TORCH_18_WINDOWS = """\
Collecting environment information...
PyTorch version: 1.8.1+cpu
Is debug build: False
CUDA used to build PyTorch: None
ROCM used to build PyTorch: N/A

OS: Microsoft Windows 10 Pro
GCC version: (x86_64-posix-seh-rev0, Built by MinGW-W64 project) 8.1.0
Clang version: Could not collect
CMake version: version 3.20.1

Python version: 3.8 (64-bit runtime)
Is CUDA available: False
CUDA runtime version: No CUDA
GPU models and configuration: No CUDA
Nvidia driver version: No CUDA
cuDNN version: No CUDA
HIP runtime version: N/A
MIOpen runtime version: N/A

Versions of relevant libraries:
[pip3] numpy==1.20.2
[pip3] torch==1.8.1+cpu
[conda] No relevant packages
"""

TORCH_21_CONDA = """\
PyTorch version: 2.1.0
Is debug build: False
CUDA used to build PyTorch: 12.1
ROCM used to build PyTorch: N/A

OS: CentOS Linux 7 (Core) (x86_64)
GCC version: (GCC) 4.8.5 20150623 (Red Hat 4.8.5-44)
Clang version: 3.4.2 (tags/RELEASE_34/dot2-final)
CMake version: version 2.8.12.2
Libc version: glibc-2.17

Python version: 3.10.13 | packaged by conda-forge | (main, Oct 26 2023, 18:07:37) [GCC 12.3.0] (64-bit runtime)
Python platform: Linux-3.10.0-1160.102.1.el7.x86_64-x86_64-with-glibc2.17
Is CUDA available: True
CUDA runtime version: Could not collect
CUDA_MODULE_LOADING set to: LAZY
GPU models and configuration: 
GPU 0: NVIDIA A100-SXM4-80GB
  MIG 3g.40gb     Device  0:
  MIG 2g.20gb     Device  1:
GPU 1: NVIDIA A100-SXM4-80GB

Nvidia driver version: 535.104.12
cuDNN version: /usr/lib64/libcudnn.so.8.9.7
HIP runtime version: N/A
MIOpen runtime version: N/A
Is XNNPACK available: True

CPU:
Architecture:          x86_64
CPU op-mode(s):        32-bit, 64-bit
CPU(s):                128
On-line CPU(s) list:   0-127
Vendor ID:             AuthenticAMD
Model name:            AMD EPYC 7543 32-Core Processor
NUMA node(s):          2
NUMA node0 CPU(s):     0-63

Versions of relevant libraries:
[pip3] numpy==1.26.0
[pip3] torch==2.1.0
[conda] numpy                     1.26.0          py310hb13e2d6_0    conda-forge
[conda] pytorch                   2.1.0           py3.10_cuda12.1_cudnn8.9.2_0    pytorch
[conda] pytorch-cuda              12.1                 ha16c6d3_5    pytorch
[conda] torchtriton               2.1.0                     py310    pytorch
[conda] triton-nightly            2.1.0                    pypi_0    pypi
"""

TORCH_28_WINDOWS = """\
Collecting environment information...
PyTorch version: 2.8.0+cu128
Is debug build: False
CUDA used to build PyTorch: 12.8
ROCM used to build PyTorch: N/A

OS: Microsoft Windows 11 Pro (10.0.22631 64-bit)
GCC version: Could not collect
Clang version: Could not collect
CMake version: Could not collect
Libc version: N/A

Python version: 3.12.8 (tags/v3.12.8:2dc476b, Dec  3 2024, 19:30:04) [MSC v.1942 64 bit (AMD64)] (64-bit runtime)
Python platform: Windows-11-10.0.22631-SP0
Is CUDA available: True
CUDA runtime version: 12.8.93
CUDA_MODULE_LOADING set to: 
GPU models and configuration: GPU 0: NVIDIA GeForce RTX 5090
Nvidia driver version: 576.88
cuDNN version: Probably one of the following:
C:\\Program Files\\NVIDIA GPU Computing Toolkit\\CUDA\\v12.8\\bin\\cudnn64_9.dll
C:\\Program Files\\NVIDIA GPU Computing Toolkit\\CUDA\\v12.8\\bin\\cudnn_ops64_9.dll
Is XPU available: False
HIP runtime version: N/A
MIOpen runtime version: N/A
Is XNNPACK available: True

CPU:
Name: AMD Ryzen 9 7950X 16-Core Processor
Manufacturer: AuthenticAMD
Family: 107
Architecture: 9
MaxClockSpeed: 4501

Versions of relevant libraries:
[pip3] numpy==2.2.6
[pip3] torch==2.8.0+cu128
[conda] Could not collect
"""

TORCH_24_ROCM_WSL = """\
PyTorch version: 2.4.0+rocm6.3.4.git7cecbf6d
Is debug build: False
CUDA used to build PyTorch: N/A
ROCM used to build PyTorch: 6.3.42134-a9a80e791

OS: Ubuntu 22.04.5 LTS (x86_64)
Libc version: glibc-2.35

Python version: 3.10.16 (main, Dec 11 2024, 16:24:50) [GCC 11.2.0] (64-bit runtime)
Python platform: Linux-5.15.167.4-microsoft-standard-WSL2-x86_64-with-glibc2.35
Is CUDA available: True
GPU models and configuration: AMD Radeon RX 7900 XT (gfx1100)
Nvidia driver version: Could not collect
HIP runtime version: 6.3.42134
"""

NOT_IMPORTED = """\
PyTorch version: N/A
Is debug build: N/A
CUDA used to build PyTorch: N/A
ROCM used to build PyTorch: N/A

OS: Ubuntu 24.04 LTS (x86_64)
Python version: 3.13.2 experimental free-threading build (main, Feb  6 2025, 14:12:01) [GCC 13.3.0] (64-bit runtime)
Is CUDA available: N/A
GPU models and configuration: GPU 0: NVIDIA GeForce RTX 4080 Laptop GPU
Nvidia driver version: 535.129.03
Versions of relevant libraries:
[pip3] torch==2.7.0
"""

VLLM_FLAT = """\
PyTorch version: 2.4.0+cu121
Is debug build: False
CUDA used to build PyTorch: 12.1
ROCM used to build PyTorch: N/A
Is CUDA available: True
GPU models and configuration: 
GPU 0: NVIDIA L40S
GPU 1: NVIDIA L40S

Nvidia driver version: 550.54.14
Versions of relevant libraries:
[pip3] nvidia-nccl-cu12==2.20.5
[pip3] torch==2.4.0
[conda] Could not collect
ROCM Version: Could not collect
Neuron SDK Version: N/A
vLLM Version: 0.6.3.dev24+g4f19966.d20241008 (git sha: 4f19966, date: 20241008)
vLLM Build Flags:
CUDA Archs: 7.0 8.9 9.0+PTX; ROCm: Disabled; Neuron: Disabled
GPU Topology:
\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID
GPU0\t X \tSYS\t0-31\t0\t\tN/A
GPU1\tSYS\t X \t32-63\t1\t\tN/A

Legend:

  X    = Self
  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes

NVIDIA_VISIBLE_DEVICES=all
LD_LIBRARY_PATH=/usr/local/nvidia/lib:/usr/local/nvidia/lib64
CUDA_HOME=/usr/local/cuda
VLLM_API_KEY=abc
HF_HOME=/x
CUDA_MODULE_LOADING=LAZY
"""

VLLM_HEADINGS = """\
INFO 06-19 10:11:12 [__init__.py:244] Automatically detected platform cuda.
Collecting environment information...
==============================
        System Info
==============================
OS                           : Rocky Linux 9.4 (Blue Onyx) (x86_64)
GCC version                  : (conda-forge gcc 12.1.0-17) 12.1.0
Clang version                : Could not collect
CMake version                : version 4.0.3
Libc version                 : glibc-2.34

==============================
       PyTorch Info
==============================
PyTorch version              : 2.7.0+cu126
Is debug build               : False
CUDA used to build PyTorch   : 12.6
ROCM used to build PyTorch   : N/A

==============================
      Python Environment
==============================
Python version               : 3.12.11 (main, Jun  4 2025, 08:56:18) [GCC 13.3.0] (64-bit runtime)
Python platform              : Linux-5.14.0-427.13.1.el9_4.x86_64-x86_64-with-glibc2.34

==============================
       CUDA / GPU Info
==============================
Is CUDA available            : True
CUDA runtime version         : 12.6.85
CUDA_MODULE_LOADING set to   : LAZY
GPU models and configuration : 
GPU 0: NVIDIA H100 80GB HBM3
GPU 1: NVIDIA H100 80GB HBM3

Nvidia driver version        : 560.35.05
cuDNN version                : Could not collect
HIP runtime version          : N/A
MIOpen runtime version       : N/A
Is XNNPACK available         : True

==============================
          CPU Info
==============================
Architecture:                         x86_64
CPU(s):                               192
Hypervisor vendor:                    KVM

==============================
Versions of relevant libraries
==============================
[pip3] nvidia-cudnn-cu12==9.5.1.17
[pip3] torch==2.7.0
[conda] Could not collect

==============================
         vLLM Info
==============================
ROCM Version                 : Could not collect
Neuron SDK Version           : N/A
vLLM Version                 : 0.9.1
vLLM Build Flags:
  CUDA Archs: Not Set; ROCm: Disabled; Neuron: Disabled
GPU Topology:
  \tGPU0\tGPU1\tNIC0
GPU0\t X \tNV18\tPIX

==============================
     Environment Variables
==============================
NCCL_DEBUG=INFO
CUDA_VISIBLE_DEVICES=0,1
OMP_NUM_THREADS=1
"""

SAMPLES = (
    TORCH_10,
    TORCH_18_WINDOWS,
    TORCH_21_CONDA,
    TORCH_28_WINDOWS,
    TORCH_24_ROCM_WSL,
    NOT_IMPORTED,
    VLLM_FLAT,
    VLLM_HEADINGS,
)


class TestGenerations:
    def test_the_first_one(self) -> None:
        imported = read(collect_env, TORCH_10)
        assert values(imported) == {
            "torch.version": "1.0.1.post2",
            "torch.import": "ok",
            "torch.cuda.version": "9.0.176",
            "torch.cuda.available": True,
            "os.id": "ubuntu",
            "os.version": "16.04",
            "os.name": "Ubuntu 16.04.5 LTS",
            "gcc.version": "5.4.0",
            "gcc.major": "5",
            "cmake.version": "3.5.1",
            "python.version": "3.6",
            "cuda.toolkit.version": "9.1.85",
            "cuda.nvcc.version": "9.1.85",
            "gpu.0.name": "Tesla P100-PCIE-16GB",
            "gpu.1.name": "Tesla P100-PCIE-16GB",
            "gpu.count": 2,
            "driver.version": "390.12",
            "cudnn.installs": ["/usr/lib/x86_64-linux-gnu/libcudnn.so.7.1.4 7.1.4 ldconfig"],
            "dist.numpy.version": "1.16.1",
            "dist.torch.version": "1.0.1.post2",
            "conda.blas.version": "1.0",
            "conda.blas.build": "mkl",
            "conda.cuda90.version": "1.0",
            "conda.cuda90.build": "h6433d27_0",
            "conda.cuda90.channel": "pytorch",
            "conda.mkl.version": "2019.1",
            "conda.mkl.build": "144",
            "conda.numpy.version": "1.9.3",
            "conda.numpy.build": "py27_p0",
            "dist.torchvision.version": "0.2.1",
        }
        assert imported.lines["driver.version"] == 17
        assert "torch.hip.version" not in imported.absent

    def test_a_cpu_build_on_windows(self) -> None:
        imported = read(collect_env, TORCH_18_WINDOWS)
        facts = values(imported)
        assert facts["os.id"] == "windows"
        assert facts["os.version"] == "10"
        assert facts["os.name"] == "Microsoft Windows 10 Pro"
        assert facts["gcc.version"] == "8.1.0"
        assert facts["torch.cuda.available"] is False
        assert set(imported.absent) == {"torch.cuda.version", "torch.hip.version"}
        assert open_to(imported, "driver.version") == "collect_env printed 'No CUDA'"
        assert open_to(imported, "gpu.count") == "collect_env printed 'No CUDA'"
        assert "conda.no.version" not in facts

    def test_conda_and_mig(self) -> None:
        imported = read(collect_env, TORCH_21_CONDA)
        facts = values(imported)
        assert facts["kernel.release"] == "3.10.0-1160.102.1.el7.x86_64"
        assert facts["kernel.version"] == "3.10.0"
        assert facts["os.arch"] == "x86_64"
        assert facts["os.libc.version"] == "2.17"
        assert facts["os.version"] == "7"
        assert facts["os.wsl"] is False
        assert facts["gcc.version"] == "4.8.5"
        assert facts["clang.version"] == "3.4.2"
        assert facts["cmake.version"] == "2.8.12.2"
        assert facts["python.version"] == "3.10.13"
        assert facts["gpu.0.mig.instances"] == ["3g.40gb", "2g.20gb"]
        assert facts["gpu.0.mig.current"] == "enabled"
        assert "gpu.1.mig.current" not in facts
        assert facts["gpu.count"] == 2
        assert facts["cudnn.installs"] == ["/usr/lib64/libcudnn.so.8.9.7 8.9.7 ldconfig"]
        assert facts["conda.pytorch.build"] == "py3.10_cuda12.1_cudnn8.9.2_0"
        assert facts["conda.pytorch.channel"] == "pytorch"
        assert facts["dist.triton-nightly.version"] == "2.1.0"
        assert "conda.triton-nightly.version" not in facts
        assert facts["host.cpu.count"] == 128
        assert facts["host.cpu.model"] == "AMD EPYC 7543 32-Core Processor"
        assert facts["host.numa.nodes"] == 2
        assert "cuda.toolkit.version" not in facts
        assert open_to(imported, "cuda.nvcc.version")

    def test_windows_of_today(self) -> None:
        facts = values(read(collect_env, TORCH_28_WINDOWS))
        assert facts["os.name"] == "Microsoft Windows 11 Pro"
        assert facts["os.version"] == "11"
        assert facts["os.build"] == "22631"
        assert "os.libc.version" not in facts
        assert "kernel.release" not in facts
        assert facts["driver.version"] == "576.88"
        assert facts["gpu.count"] == 1
        assert facts["host.cpu.model"] == "AMD Ryzen 9 7950X 16-Core Processor"
        assert facts["host.cpu.vendor"] == "AuthenticAMD"
        assert "os.arch" not in facts
        (copy,) = facts["cudnn.installs"]
        assert copy.endswith("\\cudnn64_9.dll 9 CUDA_PATH")

    def test_a_rocm_build_tells_of_no_nvidia_gpu(self) -> None:
        imported = read(collect_env, TORCH_24_ROCM_WSL)
        facts = values(imported)
        assert facts["torch.hip.version"] == "6.3.42134"
        assert imported.absent == ("torch.cuda.version",)
        assert facts["os.wsl"] is True
        assert facts["wsl.version"] == "2"
        assert not [name for name in facts if name.startswith("gpu.")]

    def test_torch_that_cannot_be_imported(self) -> None:
        imported = read(collect_env, NOT_IMPORTED)
        facts = values(imported)
        assert facts["torch.import"].startswith("failed")
        assert facts["dist.torch.version"] == "2.7.0"
        assert facts["python.free_threaded"] is True
        assert imported.absent == ()
        for name in ("torch.version", "torch.cuda.version", "torch.cuda.available"):
            assert name not in facts
            assert open_to(imported, name)

    def test_vllm_without_headings(self) -> None:
        imported = read(collect_env, VLLM_FLAT)
        facts = values(imported)
        assert facts["dist.vllm.version"] == "0.6.3.dev24+g4f19966.d20241008"
        assert facts["env.TORCH_CUDA_ARCH_LIST"] == "7.0 8.9 9.0+PTX"
        assert facts["env.LD_LIBRARY_PATH"] == "/usr/local/nvidia/lib:/usr/local/nvidia/lib64"
        assert facts["env.NVIDIA_VISIBLE_DEVICES"] == "all"
        assert facts["env.CUDA_HOME"] == "/usr/local/cuda"
        assert "env.VLLM_API_KEY" not in facts
        assert "abc" not in str(imported)
        assert "env.HF_HOME" not in facts
        assert facts["gpu.count"] == 2

    def test_vllm_with_headings(self) -> None:
        imported = read(collect_env, VLLM_HEADINGS)
        facts = values(imported)
        assert facts["os.id"] == "rocky"
        assert facts["os.version"] == "9.4"
        assert facts["gcc.version"] == "12.1.0"
        assert facts["torch.version"] == "2.7.0+cu126"
        assert facts["cuda.toolkit.version"] == "12.6.85"
        assert facts["driver.version"] == "560.35.05"
        assert facts["gpu.1.name"] == "NVIDIA H100 80GB HBM3"
        assert facts["gpu.count"] == 2
        assert facts["os.virtualization"] == "kvm"
        assert facts["host.cpu.count"] == 192
        assert facts["dist.vllm.version"] == "0.9.1"
        assert facts["env.CUDA_VISIBLE_DEVICES"] == "0,1"
        assert "env.TORCH_CUDA_ARCH_LIST" in imported.absent
        unread = set(range(1, VLLM_HEADINGS.count("\n") + 1)) - imported.read
        lines = VLLM_HEADINGS.split("\n")
        assert [lines[number - 1] for number in sorted(unread) if lines[number - 1].strip()] == [
            "INFO 06-19 10:11:12 [__init__.py:244] Automatically detected platform cuda."
        ]


def one(key: str, value: str, *, torch: str = "2.4.0+cu121") -> dict[str, object]:
    return values(
        read(collect_env, f"PyTorch version: {torch}\nIs debug build: False\n{key}: {value}\n")
    )


class TestSingleValues:
    @pytest.mark.parametrize(
        ("text", "version"),
        [
            ("11.3.109", "11.3.109"),
            ("10.1", "10.1"),
            ("Build cuda_11.3.r11.3/compiler.29920130_0", "11.3"),
            ("11.1.TC455_06.29190527_0", "11.1"),
            ("Cuda compilation tools, release 12.4, V12.4.131", "12.4.131"),
            ("Could not collect", None),
            ("No CUDA", None),
            ("VIDIA (R) Cuda compiler driver", None),
            ("", None),
        ],
    )
    def test_what_nvcc_said(self, text: str, version: str | None) -> None:
        facts = one("CUDA runtime version", text)
        assert facts.get("cuda.toolkit.version") == version
        assert facts.get("cuda.nvcc.version") == version
        assert "cuda.runtime.version" not in facts

    @pytest.mark.parametrize(
        ("text", "version"),
        [
            ("550.54.14", "550.54.14"),
            ("440.33.01 ", "440.33.01"),
            ("Could not collect (the box runs 535)", None),
            ("1.1.0", None),
            ("N/A", None),
        ],
    )
    def test_driver(self, text: str, version: str | None) -> None:
        assert one("Nvidia driver version", text).get("driver.version") == version

    @pytest.mark.parametrize(
        ("text", "version"),
        [
            ("(Ubuntu/Linaro 7.5.0-3ubuntu1~18.04) 7.5.0", "7.5.0"),
            ("(Debian 12.2.0-14+deb12u1) 12.2.0", "12.2.0"),
            ("(GCC) 11.4.1 20231218 (Red Hat 11.4.1-3)", "11.4.1"),
            ("(tdm64-1) 5.1.0", "5.1.0"),
            ("Could not collect", None),
        ],
    )
    def test_gcc(self, text: str, version: str | None) -> None:
        assert one("GCC version", text).get("gcc.version") == version

    @pytest.mark.parametrize("word", ["None", "Could not collect", "N/A"])
    def test_no_cuda_in_a_build_that_was_imported(self, word: str) -> None:
        text = f"PyTorch version: 2.3.1+cpu\nCUDA used to build PyTorch: {word}\n"
        assert read(collect_env, text).absent == ("torch.cuda.version",)

    def test_nothing_is_absent_where_nobody_says_which_torch_it_was(self) -> None:
        imported = read(collect_env, "CUDA used to build PyTorch: Could not collect\n")
        assert imported.absent == ()
        assert open_to(imported, "torch.cuda.version")

    @pytest.mark.parametrize(
        ("text", "name"),
        [
            ("GPU 0: Tesla T4", "Tesla T4"),
            ("GPU 0: Tesla T4 (UUID: GPU-0a1b)", "Tesla T4"),
            ("GeForce GTX 1080 Ti", "GeForce GTX 1080 Ti"),
            ("2x NVIDIA RTX A6000, driver 535", "NVIDIA RTX A6000"),
            ("AMD Instinct MI250X (gfx90a:sramecc+:xnack-)", None),
            ("Intel(R) UHD Graphics 630", None),
            ("Could not collect", None),
            ("N/A", None),
        ],
    )
    def test_the_only_gpu(self, text: str, name: str | None) -> None:
        facts = one("GPU models and configuration", text)
        assert facts.get("gpu.0.name") == name
        assert ("gpu.count" in facts) == text.startswith("GPU 0")

    @pytest.mark.parametrize(
        ("python", "told"), [("3.7.16 (default)", False), ("3.8.10 (default)", True)]
    )
    def test_old_pythons_guess_the_c_library(self, python: str, told: bool) -> None:
        imported = read(
            collect_env,
            f"Libc version: glibc-2.10\nPython version: {python} [GCC 9.4.0]\n"
            "Python platform: Linux-5.4.0-81-generic-x86_64-with-glibc2.10\n",
        )
        assert ("os.libc.version" in values(imported)) is told
        assert (open_to(imported, "os.libc.version") is None) is told

    def test_a_distribution_in_an_old_platform(self) -> None:
        facts = one("Python platform", "Linux-4.15.0-118-generic-x86_64-with-Ubuntu-18.04-bionic")
        assert facts["os.version"] == "18.04"
        facts = one("Python platform", "Linux-5.4.0-x86_64-with-debian-buster-sid")
        assert "os.id" not in facts

    @pytest.mark.parametrize(
        ("name", "ident", "version"),
        [
            ("Ubuntu 24.04.1 LTS (aarch64)", "ubuntu", "24.04"),
            ("Debian GNU/Linux 12 (bookworm) (x86_64)", "debian", "12"),
            ("CentOS Stream 9 (x86_64)", "centos", "9"),
            ("CentOS Linux release 7.9.2009 (Core) (x86_64)", "centos", "7"),
            ("Red Hat Enterprise Linux Server release 7.4 (Maipo)", "rhel", "7.4"),
            ("Amazon Linux 2023.6.20241010 (x86_64)", "amzn", "2023"),
            ("SUSE Linux Enterprise Server 15 SP4 (x86_64)", "sles", "15.4"),
            ("Fedora release 39 (Thirty Nine) (x86_64)", "fedora", "39"),
            ("Arch Linux (x86_64)", "arch", None),
            ("Linux Mint 21.3 (x86_64)", "linuxmint", "21.3"),
            ("Pop!_OS 22.04 LTS (x86_64)", "pop", "22.04"),
            ("macOS 14.6.1 (arm64)", "macos", "14.6.1"),
            ("Mac OSX 10.13.6", "macos", "10.13.6"),
            ("Microsoft Windows Server 2019 Datacenter", "windows", "2019"),
            ("Microsoft Windows 11 家庭中文版 (10.0.26100 64 位)", "windows", "11"),
            ("linux (x86_64)", None, None),
            ("Could not collect", None, None),
        ],
    )
    def test_systems(self, name: str, ident: str | None, version: str | None) -> None:
        facts = one("OS", name)
        assert facts.get("os.id") == ident
        assert facts.get("os.version") == version

    def test_macos_and_its_processor(self) -> None:
        facts = values(
            read(
                collect_env,
                "OS: macOS 14.6.1 (arm64)\nLibc version: N/A\n"
                "Python platform: macOS-14.6.1-arm64-arm-64bit\n\nCPU:\nApple M2 Pro\n",
            )
        )
        assert facts["os.arch"] == "arm64"
        assert facts["host.cpu.model"] == "Apple M2 Pro"
        assert "os.wsl" not in facts

    def test_allocator(self) -> None:
        facts = one(
            "Caching allocator config", "{'PYTORCH_CUDA_ALLOC_CONF': 'expandable_segments:True'}"
        )
        assert facts["env.PYTORCH_CUDA_ALLOC_CONF"] == "expandable_segments:True"


class TestUglyInput:
    @pytest.mark.parametrize("lead", ["> ", "    ", " - ", "* ", "| ", "\t"])
    def test_marks_in_front(self, lead: str) -> None:
        plain = values(read(collect_env, TORCH_21_CONDA))
        marked = "\n".join(lead + line for line in TORCH_21_CONDA.split("\n"))
        facts = values(read(collect_env, marked))
        for name in ("torch.version", "driver.version", "gpu.1.name", "os.name", "gpu.count"):
            assert facts[name] == plain[name]
        assert facts["conda.pytorch.build"] == plain["conda.pytorch.build"]

    def test_emphasis(self) -> None:
        facts = values(
            read(collect_env, "- **PyTorch version**: 2.1.0\n- **Is CUDA available**: `True`\n")
        )
        assert facts["torch.version"] == "2.1.0"
        assert facts["torch.cuda.available"] is True

    def test_a_line_between_each_two(self) -> None:
        facts = values(read(collect_env, TORCH_10.replace("\n", "\n\n")))
        assert facts == values(read(collect_env, TORCH_10))

    def test_folded_into_one_line(self) -> None:
        facts = values(read(collect_env, " ".join(VLLM_HEADINGS.split("System Info")[1].split())))
        assert facts["torch.version"] == "2.7.0+cu126"
        assert facts["driver.version"] == "560.35.05"
        assert facts["dist.torch.version"] == "2.7.0"
        assert facts["python.version"] == "3.12.11"

    def test_only_the_middle(self) -> None:
        middle = TORCH_21_CONDA[TORCH_21_CONDA.index("Is CUDA available") :]
        facts = values(read(collect_env, middle))
        assert facts["gpu.count"] == 2
        assert "torch.version" not in facts

    def test_a_list_of_gpus_that_may_go_on(self) -> None:
        imported = read(collect_env, TORCH_10[: TORCH_10.index("\nNvidia driver")])
        assert values(imported)["gpu.1.name"] == "Tesla P100-PCIE-16GB"
        assert "gpu.count" not in values(imported)
        assert open_to(imported, "gpu.count") == "the list of GPUs may go on behind the text"

    def test_a_list_with_a_hole(self) -> None:
        imported = read(collect_env, TORCH_10.replace("GPU 1:", "GPU 3:"))
        assert open_to(imported, "gpu.count") == "the list leaves GPUs out"

    def test_what_follows_is_not_part_of_it(self) -> None:
        error = (
            'Traceback (most recent call last):\n  File "x.py", line 1, in <module>\nName: no CPU'
        )
        text = TORCH_28_WINDOWS.split("\nVersions")[0] + "\n" + error
        imported = read(collect_env, text)
        assert values(imported)["host.cpu.model"] == "AMD Ryzen 9 7950X 16-Core Processor"
        assert text.split("\n").index("Traceback (most recent call last):") + 1 not in imported.read

    def test_a_command_behind_the_environment_is_no_variable(self) -> None:
        text = VLLM_FLAT + "\nI started it like this:\nCUDA_VISIBLE_DEVICES=1 vllm serve x\n"
        assert "env.CUDA_VISIBLE_DEVICES" not in values(read(collect_env, text))

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "OS: Ubuntu 22.04\nPython version: 3.10\n",
            "PyTorch version: 2.1\n",
            "- `transformers` version: 4.5\n- Python version: 3.8\n",
            "cuDNN version: 8.9\n",
            "[pip] is a tool\n",
        ],
    )
    def test_what_is_none(self, text: str) -> None:
        assert not collect_env.recognises(Section(text))


@pytest.mark.parametrize("sample", SAMPLES)
def test_parts_say_what_the_whole_says(sample: str) -> None:
    assert_parts_agree(collect_env, sample)


@given(parts_of(*SAMPLES) | st.text(max_size=400))
def test_laws(text: str) -> None:
    assert_lawful(collect_env, text)


def test_long_lines_take_no_time() -> None:
    starts = ("Is CUDA available: ", "cuDNN version: /a", "[conda] ", "CPU:\nName", "OS: (")
    for text in hostile(*starts):
        began = time.perf_counter()
        assert_lawful(collect_env, text)
        assert time.perf_counter() - began < 2
