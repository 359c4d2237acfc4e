"""Healthy machines as flat facts, usual and unusual ones, each with the reason why it is valid.

None of them may be accused of anything: the law is in `test_healthy.py`. A line here is worth the
more the nearer it is to a fault: minor-version use, libraries that a wheel brings along, builds
of distributions and vendors, several frameworks side by side.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class Healthy(NamedTuple):
    """One machine that works."""

    name: str
    why: str
    facts: dict[str, Any]


def _gpus(*names: str) -> dict[str, Any]:
    told: dict[str, Any] = {f"gpu.{at}.name": name for at, name in enumerate(names)}
    return {"gpu.count": len(names)} | told


def _dists(*pins: str) -> dict[str, Any]:
    pairs = (pin.split("==") for pin in pins)
    return {f"dist.{name}.version": version for name, version in pairs}


_UBUNTU = {"os.id": "ubuntu", "os.version": "22.04", "os.arch": "x86_64"}
_WINDOWS = {"os.id": "windows", "os.arch": "x86_64"}
_WSL = _UBUNTU | {"os.wsl": True}

HEALTHY: tuple[Healthy, ...] = (
    # PyTorch and the driver
    Healthy(
        "torch cu118 on driver 450",
        "CUDA 11.8 runs from driver 450.80.02 on by minor-version compatibility, with native code",
        _UBUNTU
        | _gpus("Tesla V100-SXM2-32GB")
        | {"driver.version": "450.248.02", "torch.version": "2.1.2+cu118"},
    ),
    Healthy(
        "torch cu129 on driver 525",
        "CUDA 12.9 runs from driver 525.60.13 on by minor-version compatibility",
        _UBUNTU
        | _gpus("NVIDIA A100-SXM4-80GB")
        | {"driver.version": "525.147.05", "torch.version": "2.8.0+cu129"},
    ),
    Healthy(
        "torch cu126 under a driver of CUDA 13",
        "a newer driver runs everything older",
        _UBUNTU
        | _gpus("NVIDIA GeForce RTX 3090")
        | {
            "driver.version": "580.95.05",
            "driver.cuda.version": "13.0",
            "torch.version": "2.7.1+cu126",
        },
    ),
    Healthy(
        "torch of PyPI beside an old toolkit",
        "the wheels bring the CUDA libraries, nvcc of the system is not used at run time",
        _UBUNTU
        | _gpus("NVIDIA A10G")
        | {
            "driver.version": "535.183.01",
            "torch.version": "2.5.1+cu124",
            "torch.cuda.version": "12.4",
            "cuda.toolkit.version": "11.5.119",
            "cuda.nvcc.version": "11.5.119",
        },
    ),
    Healthy(
        "torch cu128 on Blackwell",
        "2.7 and newer have sm_120 in their cu128 builds",
        _UBUNTU
        | _gpus("NVIDIA GeForce RTX 5090")
        | {
            "driver.version": "570.133.07",
            "torch.version": "2.7.0+cu128",
            "torch.arch_list": [
                "sm_75",
                "sm_80",
                "sm_86",
                "sm_90",
                "sm_100",
                "sm_120",
                "compute_120",
            ],
        },
    ),
    Healthy(
        "torch cu126 on Pascal",
        "the cu126 builds keep sm_60, and their cuDNN 9.10 still serves it",
        _UBUNTU
        | _gpus("NVIDIA GeForce GTX 1080 Ti")
        | {
            "driver.version": "550.163.01",
            "torch.version": "2.8.0+cu126",
            "torch.arch_list": ["sm_50", "sm_60", "sm_70", "sm_75", "sm_80", "sm_86", "sm_90"],
            "cudnn.version": "9.10.2",
            "torch.cudnn.version": "9.10.2",
        },
    ),
    Healthy(
        "code of sm_80 on an Ada GPU",
        "code runs on every GPU of the same major with the same or a higher minor",
        _UBUNTU
        | _gpus("NVIDIA L40S")
        | {
            "driver.version": "550.90.07",
            "torch.version": "2.4.1+cu121",
            "torch.arch_list": ["sm_50", "sm_60", "sm_70", "sm_75", "sm_80", "sm_86", "sm_90"],
        },
    ),
    Healthy(
        "a driver of a data centre older than the toolkit, with cuda-compat",
        "the forward-compatibility libcuda serves data-centre GPUs",
        _UBUNTU
        | _gpus("NVIDIA H100 80GB HBM3")
        | {
            "driver.version": "535.183.06",
            "driver.compat.version": "580.82.07",
            "driver.compat.path": "/usr/local/cuda/compat/libcuda.so.580.82.07",
            "torch.version": "2.9.1+cu130",
        },
    ),
    Healthy(
        "torch 1.7 on CUDA 10.2",
        "440.33 is the driver that CUDA 10.2 needs",
        _UBUNTU
        | _gpus("Tesla K80")
        | {"driver.version": "440.118.02", "torch.version": "1.7.1+cu102"}
        | _dists("torch==1.7.1+cu102", "torchvision==0.8.2+cu102", "torchaudio==0.7.2"),
    ),
    Healthy(
        "a nightly",
        "development builds pair by their day, not by a table",
        _UBUNTU
        | _gpus("NVIDIA GeForce RTX 4090")
        | {"driver.version": "580.65.06", "torch.version": "2.9.0.dev20250815+cu129"}
        | _dists(
            "torch==2.9.0.dev20250815+cu129",
            "torchvision==0.24.0.dev20250815+cu129",
            "torchaudio==2.8.0.dev20250815+cu129",
            "pytorch-triton==3.4.0+gitf7888497",
            "numpy==2.3.2",
        ),
    ),
    Healthy(
        "a container of NVIDIA",
        "vendor builds name their release and pair among themselves",
        _UBUNTU
        | _gpus("NVIDIA A100-PCIE-40GB")
        | {
            "driver.version": "550.54.15",
            "container.runtime": "docker",
            "torch.version": "2.6.0a0+df5bbc09d1.nv24.11",
        }
        | _dists(
            "torch==2.6.0a0+df5bbc09d1.nv24.11",
            "torchvision==0.20.0a0+bc7b5b4",
            "flash-attn==2.4.2",
            "numpy==1.24.4",
        ),
    ),
    Healthy(
        "a container of NVIDIA on an older driver, with its own libcuda",
        "nvidia-smi in the container names the CUDA of the compat library that is in use",
        _UBUNTU
        | _gpus("NVIDIA RTX 6000 Ada Generation")
        | {
            "driver.version": "570.172.08",
            "driver.cuda.version": "13.0",
            "torch.version": "2.8.0a0+5228986c39.nv25.08",
        },
    ),
    Healthy(
        "built from source",
        "a build of one's own has whatever CUDA and code its builder chose",
        _UBUNTU
        | _gpus("NVIDIA GeForce GTX 1660")
        | {"driver.version": "560.35.03", "torch.version": "2.6.0a0+git1eba9b3"}
        | _dists("torch==2.6.0a0+git1eba9b3", "torchvision==0.20.0a0+afc54f7", "numpy==2.1.3"),
    ),
    Healthy(
        "ROCm",
        "a build for AMD GPUs has no CUDA and needs none",
        _UBUNTU
        | {"torch.version": "2.8.0+rocm6.4", "torch.hip.version": "6.4.43484-123eb5128"}
        | {"torch.cuda.version": None}
        | _dists(
            "torch==2.8.0+rocm6.4",
            "torchvision==0.23.0+rocm6.4",
            "torchaudio==2.8.0+rocm6.4",
            "pytorch-triton-rocm==3.4.0",
        ),
    ),
    Healthy(
        "ROCm beside an idle NVIDIA GPU",
        "the machine has both makers; the build is for the other one",
        _UBUNTU
        | _gpus("NVIDIA GeForce GT 1030")
        | {
            "driver.version": "550.120",
            "torch.version": "2.6.0+rocm6.2.4",
            "torch.hip.version": "6.2.41134-65d174c3e",
            "torch.cuda.version": None,
        },
    ),
    Healthy(
        "Intel GPU beside an NVIDIA one",
        "an XPU build has no CUDA and needs none",
        _UBUNTU
        | _gpus("NVIDIA T400 4GB")
        | {"driver.version": "550.120", "torch.version": "2.8.0+xpu", "torch.cuda.version": None},
    ),
    Healthy(
        "Jetson Orin",
        "JetPack has a driver of its own numbering and builds of its own",
        {
            "os.id": "ubuntu",
            "os.version": "22.04",
            "os.arch": "aarch64",
            "kernel.release": "5.15.148-tegra",
            "gpu.0.name": "Orin",
            "driver.version": "540.4.0",
            "driver.cuda.version": "12.6",
            "cuda.toolkit.version": "12.6.68",
            "torch.version": "2.5.0a0+872d972e41.nv24.08",
        }
        | _dists("torch==2.5.0a0+872d972e41.nv24.08", "torchvision==0.20.0a0+afc54f7"),
    ),
    Healthy(
        "Grace Hopper",
        "wheels for aarch64 with CUDA exist since 2.7",
        {
            "os.id": "ubuntu",
            "os.version": "24.04",
            "os.arch": "aarch64",
            "gpu.count": 1,
            "gpu.0.name": "NVIDIA GH200 480GB",
            "driver.version": "570.124.06",
            "torch.version": "2.7.1+cu128",
        }
        | _dists("torch==2.7.1+cu128", "torchvision==0.22.1", "torchaudio==2.7.1"),
    ),
    Healthy(
        "conda-forge",
        "conda names CUDA in the build string, and the packages are made for one another",
        _UBUNTU
        | _gpus("NVIDIA RTX A6000")
        | {
            "driver.version": "560.28.03",
            "torch.version": "2.5.1",
            "torch.cuda.version": "12.6",
            "conda.pytorch.version": "2.5.1",
            "conda.pytorch.build": "cuda126_py312h1763f6d_306",
            "conda.torchvision.version": "0.20.1",
            "conda.torchvision.build": "cuda126py312h361dbfb_2",
            "conda.cuda-version.version": "12.6",
        }
        | _dists("torch==2.5.1", "torchvision==0.20.1", "numpy==2.2.1"),
    ),
    Healthy(
        "NumPy 2 with an ONNX Runtime of conda-forge",
        "conda-forge built 1.18.1 anew for NumPy 2, other than the wheel on PyPI",
        _UBUNTU
        | {
            "conda.onnxruntime.version": "1.18.1",
            "conda.onnxruntime.build": "py312h0b7b0ba_101_cuda",
            "conda.numpy.version": "2.0.1",
            "dist.onnxruntime.version": "1.18.1",
            "dist.onnxruntime.installer": "conda",
            "dist.numpy.version": "2.0.1",
        },
    ),
    Healthy(
        "Windows, two CUDA toolkits",
        "the wheel brings its DLLs; toolkits on PATH are for building",
        _WINDOWS
        | _gpus("NVIDIA GeForce RTX 4070 Ti")
        | {
            "driver.version": "566.36",
            "torch.version": "2.6.0+cu126",
            "cuda.toolkit.version": "11.8.89",
        }
        | _dists("torch==2.6.0+cu126", "torchvision==0.21.0+cu126", "numpy==2.1.2"),
    ),
    Healthy(
        "Windows, the oldest driver for CUDA 12",
        "528.33 is what CUDA 12 needs on Windows",
        _WINDOWS
        | _gpus("NVIDIA GeForce RTX 3060")
        | {"driver.version": "528.33", "torch.version": "2.3.1+cu121"}
        | _dists("torch==2.3.1+cu121", "numpy==1.26.4"),
    ),
    Healthy(
        "WSL, driver of Windows",
        "the guest sees the driver of the host, and libcuda lies under /usr/lib/wsl",
        _WSL
        | _gpus("NVIDIA GeForce RTX 3080")
        | {
            "driver.version": "572.16",
            "driver.libcuda.path": "/usr/lib/wsl/lib/libcuda.so.1",
            "torch.version": "2.6.0+cu124",
        },
    ),
    Healthy(
        "a Mac",
        "there is no CUDA on macOS, and wheels without a tag are the builds for Metal",
        {"os.id": "macos", "os.version": "15.5", "os.arch": "arm64"}
        | {"torch.version": "2.7.1", "torch.cuda.version": None}
        | _dists("torch==2.7.1", "torchvision==0.22.1", "torchaudio==2.7.1", "numpy==2.3.0"),
    ),
    Healthy(
        "a CPU-only machine",
        "a CPU build is right where there is no GPU",
        _UBUNTU
        | {"gpu.count": 0, "pci.gpu.count": 0, "driver.version": None}
        | {"torch.version": "2.9.0+cpu", "torch.cuda.version": None}
        | _dists("torch==2.9.0+cpu", "torchvision==0.24.0+cpu", "tensorflow-cpu==2.18.0"),
    ),
    Healthy(
        "torchaudio that stays at 2.11",
        "torchaudio has no release after 2.11, which serves the newer torch as well",
        _UBUNTU
        | _gpus("NVIDIA H100 PCIe")
        | {"driver.version": "580.105.08", "torch.version": "2.13.0+cu130"}
        | _dists("torch==2.13.0+cu130", "torchvision==0.28.0+cu130", "torchaudio==2.11.0+cu130"),
    ),
    Healthy(
        "torchvision without a tag beside torch with one",
        "PyPI's torchvision is made for the CUDA of PyPI's torch",
        _UBUNTU
        | _gpus("NVIDIA A100-SXM4-40GB")
        | {"driver.version": "550.90.12", "torch.version": "2.6.0+cu124"}
        | _dists("torch==2.6.0", "torchvision==0.21.0", "torchaudio==2.6.0"),
    ),
    Healthy(
        "torchvision of pure Python",
        "torchvision before 0.3 has no compiled code and fits every torch",
        _UBUNTU
        | _gpus("NVIDIA GeForce RTX 2080 Ti")
        | {"driver.version": "460.91.03", "torch.version": "1.4.0"}
        | _dists("torch==1.4.0", "torchvision==0.2.2"),
    ),
    Healthy(
        "torchvision of another minor of CUDA",
        "torchvision compares the majors only since 0.16",
        _UBUNTU
        | _gpus("NVIDIA L4")
        | {"driver.version": "575.57.08", "torch.version": "2.10.0+cu128"}
        | _dists("torch==2.10.0+cu128", "torchvision==0.25.0+cu129"),
    ),
    Healthy(
        "xFormers built from source",
        "a local part with a commit tells of a build for the torch that is there",
        _UBUNTU
        | _gpus("NVIDIA GeForce RTX 4080")
        | {"driver.version": "535.86.05", "torch.version": "2.2.0+cu121"}
        | _dists("torch==2.2.0+cu121", "xformers==0.0.23+1254a16.d20240110"),
    ),
    Healthy(
        "xFormers that follows any torch",
        "0.0.35 and newer are built on the stable interface",
        _UBUNTU
        | _gpus("NVIDIA GeForce RTX 4090")
        | {"driver.version": "580.95.05", "torch.version": "2.10.0+cu128"}
        | _dists("torch==2.10.0+cu128", "xformers==0.0.35"),
    ),
    Healthy(
        "FlashAttention for another minor of CUDA",
        "a wheel for CUDA 12.2 runs with every torch of CUDA 12",
        _UBUNTU
        | _gpus("NVIDIA A100-SXM4-80GB")
        | {"driver.version": "550.54.15", "torch.version": "2.4.1+cu121", "torch.cxx11_abi": False}
        | _dists("torch==2.4.1+cu121", "flash-attn==2.6.3+cu123torch2.4cxx11abiFALSE"),
    ),
    Healthy(
        "PyG's extensions",
        "pt25cu124 is for torch 2.5 and CUDA 12.4",
        _UBUNTU
        | _gpus("Quadro RTX 8000")
        | {"driver.version": "555.42.06", "torch.version": "2.5.1+cu124"}
        | _dists(
            "torch==2.5.1+cu124", "torch-scatter==2.1.2+pt25cu124", "pyg-lib==0.4.0+pt25cu124"
        ),
    ),
    Healthy(
        "PyG's extensions for a torch of two digits",
        "pt113 is torch 1.13, not 11.3",
        _UBUNTU
        | _gpus("Tesla P100-PCIE-16GB")
        | {"driver.version": "515.105.01", "torch.version": "1.13.1+cu117"}
        | _dists("torch==1.13.1+cu117", "torch-scatter==2.1.1+pt113cu117", "numpy==1.24.3"),
    ),
    Healthy(
        "bitsandbytes with a binary for it",
        "0.45 brings binaries from CUDA 11.7 to 12.6",
        _UBUNTU
        | _gpus("NVIDIA GeForce RTX 3090 Ti")
        | {"driver.version": "550.107.02", "torch.version": "2.5.1+cu121"}
        | _dists("torch==2.5.1+cu121", "bitsandbytes==0.45.0", "triton==3.1.0"),
    ),
    Healthy(
        "bitsandbytes that takes the nearest binary",
        "0.50 and newer load a binary of another minor of the same CUDA major",
        _UBUNTU
        | _gpus("NVIDIA B200")
        | {"driver.version": "580.95.05", "torch.version": "2.14.1+cu132"}
        | _dists("torch==2.14.1+cu132", "bitsandbytes==0.50.1"),
    ),
    Healthy(
        "cuDNN newer than the build",
        "within a major a newer cuDNN serves what was built with an older one",
        _UBUNTU
        | _gpus("NVIDIA A30")
        | {
            "driver.version": "560.35.05",
            "torch.version": "2.5.1+cu124",
            "torch.cudnn.version": "9.1.0",
            "cudnn.version": "9.5.1",
            "lib.libcudnn.so.9.via": "rpath",
        },
    ),
    Healthy(
        "NCCL of a system package that nothing uses",
        "apt moves libnccl2 on to a build for CUDA 13; the program brings its own NCCL",
        _UBUNTU
        | _gpus("NVIDIA A40", "NVIDIA A40")
        | {
            "driver.version": "550.163.01",
            "driver.cuda.version": "12.4",
            "pkg.libnccl2.version": "2.28.3-1+cuda13.0",
            "torch.version": "2.5.1",
            "conda.pytorch.version": "2.5.1",
            "conda.pytorch.build": "py3.12_cuda12.4_cudnn9.1.0_0",
        },
    ),
    Healthy(
        "peer to peer off under driver 560",
        "the known hang is avoided",
        _UBUNTU
        | _gpus("NVIDIA GeForce RTX 4090", "NVIDIA GeForce RTX 4090")
        | {"driver.version": "560.35.03", "env.NCCL_P2P_DISABLE": "1"}
        | {"torch.version": "2.4.0+cu121", "nccl.version": "2.20.5"},
    ),
    Healthy(
        "DGX Spark",
        "code of sm_120 runs on compute capability 12.1",
        {
            "os.id": "ubuntu",
            "os.version": "24.04",
            "os.arch": "aarch64",
            "gpu.count": 1,
            "gpu.0.name": "NVIDIA GB10",
            "gpu.0.compute_capability": "12.1",
            "driver.version": "580.95.05",
            "torch.version": "2.9.1+cu130",
            "torch.arch_list": ["sm_80", "sm_90", "sm_100", "sm_110", "sm_120", "compute_120"],
        }
        | _dists("torch==2.9.1+cu130", "torchvision==0.24.1+cu130"),
    ),
    Healthy(
        "PTX of an older generation on Blackwell",
        "PTX is compiled at the first start, slowly, and works",
        _UBUNTU
        | _gpus("NVIDIA GeForce RTX 5070 Ti")
        | {
            "driver.version": "570.86.16",
            "torch.version": "2.6.0a0+gitd0cab28",
            "torch.cuda.version": "12.6",
            "torch.arch_list": ["sm_80", "sm_86", "sm_90", "compute_90"],
        },
    ),
    Healthy(
        "Kepler with the last torch for it",
        "the cu113 builds of torch 1.12 have sm_37, and driver 470 serves the K80",
        _UBUNTU
        | _gpus("Tesla K80", "Tesla K80")
        | {
            "driver.version": "470.256.02",
            "torch.version": "1.12.1+cu113",
            "torch.arch_list": ["sm_37", "sm_50", "sm_60", "sm_70", "sm_75", "sm_80", "sm_86"],
        }
        | _dists("torch==1.12.1+cu113", "torchvision==0.13.1+cu113", "torchaudio==0.12.1+cu113"),
    ),
    Healthy(
        "an old system",
        "the wheels up to torch 2.5 ask for glibc 2.17",
        {"os.id": "centos", "os.version": "7", "os.arch": "x86_64", "os.libc.version": "2.17"}
        | _gpus("Tesla V100-PCIE-16GB")
        | {"driver.version": "535.104.12", "torch.version": "2.2.2+cu118"}
        | _dists("torch==2.2.2+cu118", "numpy==1.26.4"),
    ),
    Healthy(
        "Arch Linux",
        "the distribution's build names its CUDA without a tag, and its torchvision a commit",
        {"os.id": "arch", "os.arch": "x86_64", "os.libc.version": "2.42"}
        | _gpus("NVIDIA GeForce RTX 3060 Ti")
        | {
            "driver.version": "590.48.01",
            "torch.version": "2.9.1",
            "torch.cuda.version": "13.1",
            "cuda.toolkit.version": "13.1.80",
            "gcc.version": "15.2.1",
        }
        | _dists("torch==2.9.1", "torchvision==0.24.1a0+d801a34", "numpy==2.4.0"),
    ),
    Healthy(
        "vLLM with its pins",
        "vLLM names the torch, xFormers and torchaudio it was built with",
        _UBUNTU
        | _gpus("NVIDIA H100 80GB HBM3", "NVIDIA H100 80GB HBM3")
        | {"driver.version": "550.127.08", "torch.version": "2.8.0+cu128", "nccl.version": "2.27.3"}
        | _dists(
            "vllm==0.11.0",
            "torch==2.8.0",
            "torchvision==0.23.0",
            "torchaudio==2.8.0",
            "xformers==0.0.32.post1",
            "triton==3.4.0",
            "nvidia-nccl-cu12==2.27.3",
            "numpy==2.2.6",
        ),
    ),
    Healthy(
        "Triton for Windows",
        "triton-windows is the one package that brings triton there",
        _WINDOWS
        | _gpus("NVIDIA GeForce RTX 4090")
        | {"driver.version": "576.02", "torch.version": "2.7.0+cu128"}
        | _dists(
            "torch==2.7.0+cu128",
            "torchvision==0.22.0+cu128",
            "triton-windows==3.3.0.post19",
            "xformers==0.0.30",
        ),
    ),
    Healthy(
        "cuBLAS of two CUDA majors",
        "their files have different names and lie side by side",
        _UBUNTU
        | _gpus("NVIDIA A100-SXM4-40GB")
        | {"driver.version": "535.161.07", "torch.version": "2.1.2+cu121"}
        | _dists(
            "torch==2.1.2+cu121",
            "nvidia-cublas-cu11==11.11.3.6",
            "nvidia-cublas-cu12==12.1.3.1",
            "nvidia-cuda-runtime-cu11==11.8.89",
            "nvidia-cuda-runtime-cu12==12.1.105",
            "numpy==1.26.4",
        ),
    ),
    Healthy(
        "NumPy 2 where it fits",
        "on Linux torch is compiled for NumPy 2 since 2.3, ONNX Runtime since 1.19",
        _UBUNTU
        | _gpus("NVIDIA L4")
        | {"driver.version": "550.54.15", "torch.version": "2.3.1+cu121"}
        | _dists("torch==2.3.1+cu121", "onnxruntime-gpu==1.19.2", "numpy==2.0.2", "jaxlib==0.4.30"),
    ),
    Healthy(
        "a new-feature branch of the driver",
        "new-feature branches serve everything that the production branch before them did",
        _UBUNTU
        | _gpus("NVIDIA A16")
        | {
            "driver.version": "545.23.08",
            "torch.version": "2.1.1+cu121",
            "cuda.nvcc.version": "12.3.52",
        },
    ),
    Healthy(
        "a mixture of generations in one build",
        "each GPU has code in the build",
        _UBUNTU
        | _gpus("Tesla P40", "NVIDIA GeForce RTX 3090", "NVIDIA GeForce RTX 4090")
        | {
            "driver.version": "570.158.01",
            "torch.version": "2.7.1+cu126",
            "torch.arch_list": ["sm_50", "sm_60", "sm_70", "sm_75", "sm_80", "sm_86", "sm_90"],
            "cudnn.version": "9.5.1",
        },
    ),
    # JAX
    Healthy(
        "JAX, the pins of pip",
        "plugin and jaxlib of one release",
        _UBUNTU
        | _gpus("NVIDIA H100 80GB HBM3")
        | {"driver.version": "580.65.06", "jax.version": "0.9.2", "jaxlib.version": "0.9.2"}
        | _dists(
            "jax-cuda13-plugin==0.9.2", "jax-cuda13-pjrt==0.9.2", "nvidia-cudnn-cu13==9.16.0.29"
        ),
    ),
    Healthy(
        "JAX older than its jaxlib allows, and just not",
        "jax 0.4.31 names 0.4.30 as its oldest jaxlib",
        _UBUNTU | {"jax.version": "0.4.31", "jaxlib.version": "0.4.30"},
    ),
    Healthy(
        "JAX, plugin of a neighbouring release",
        "before 0.5.3 jaxlib did not compare the plugin's version",
        _UBUNTU
        | _gpus("NVIDIA A100-SXM4-40GB")
        | {"driver.version": "550.54.15", "jax.version": "0.4.35", "jaxlib.version": "0.4.34"}
        | _dists("jax-cuda12-plugin==0.4.35", "jax-cuda12-pjrt==0.4.35", "jaxlib==0.4.34"),
    ),
    Healthy(
        "JAX, plugin of another release, both before the check",
        "jaxlib 0.5.1 does not compare the plugin's version",
        _UBUNTU
        | _gpus("NVIDIA A100-SXM4-40GB")
        | {"driver.version": "550.54.15", "jax.version": "0.5.2", "jaxlib.version": "0.5.1"}
        | _dists("jax-cuda12-plugin==0.5.0", "jaxlib==0.5.1"),
    ),
    Healthy(
        "JAX on ROCm",
        "ROCm plugins are released on their own schedule, and jaxlib does not compare them",
        _UBUNTU
        | {"jax.version": "0.8.2", "jaxlib.version": "0.8.2"}
        | _dists("jax-rocm7-plugin==0.8.0", "jax-rocm7-pjrt==0.8.0"),
    ),
    Healthy(
        "JAX with CUDA in the wheel",
        "the wheels before the plugins had CUDA in the local part of their version",
        _UBUNTU
        | _gpus("NVIDIA RTX A5000")
        | {"driver.version": "535.54.03", "jax.version": "0.4.23"}
        | {
            "jaxlib.version": "0.4.23+cuda12.cudnn89",
            "dist.jaxlib.version": "0.4.23+cuda12.cudnn89",
        },
    ),
    Healthy(
        "JAX with a torch that reads the data",
        "a CPU build of torch beside jax[cuda12] is the usual way to keep their CUDA wheels apart",
        _UBUNTU
        | _gpus("NVIDIA RTX A6000")
        | {
            "driver.version": "560.35.03",
            "jax.version": "0.5.3",
            "jaxlib.version": "0.5.3",
            "torch.version": "2.6.0+cpu",
            "torch.cuda.version": None,
        }
        | _dists("jax-cuda12-plugin==0.5.3", "jax-cuda12-pjrt==0.5.3", "torch==2.6.0+cpu"),
    ),
    Healthy(
        "JAX on the CPU by choice",
        "a GPU is there and jaxlib without a plugin was never asked for it",
        _UBUNTU
        | _gpus("NVIDIA GeForce GTX 970")
        | {"driver.version": "535.183.01", "jax.version": "0.6.2", "jaxlib.version": "0.6.2"},
    ),
    Healthy(
        "JAX of one night and jaxlib of another",
        "development builds are compared by their numbers, not by their day",
        _UBUNTU
        | _gpus("NVIDIA H100 80GB HBM3")
        | {
            "driver.version": "580.95.05",
            "jax.version": "0.9.1.dev20260203+5f4a1c0aa",
            "jaxlib.version": "0.9.1.dev20260201",
        }
        | _dists("jax-cuda13-plugin==0.9.1.dev20260201", "jax-cuda13-pjrt==0.9.1.dev20260201"),
    ),
    Healthy(
        "JAX on a TPU",
        "libtpu has its own numbers",
        _UBUNTU | {"jax.version": "0.6.2", "jaxlib.version": "0.6.2"} | _dists("libtpu==0.0.17"),
    ),
    Healthy(
        "JAX of conda-forge",
        "the build string tells of CUDA, and there is no plugin",
        _UBUNTU
        | _gpus("NVIDIA RTX A4000")
        | {
            "driver.version": "550.144.03",
            "jax.version": "0.4.31",
            "jaxlib.version": "0.4.31",
            "conda.jaxlib.version": "0.4.31",
            "conda.jaxlib.build": "cuda120py311hbd5b6bf_0",
        },
    ),
    # TensorFlow
    Healthy(
        "TensorFlow with its CUDA wheels",
        "tensorflow[and-cuda] brings CUDA 12.5 and cuDNN 9.3, whatever toolkit is installed",
        _UBUNTU
        | _gpus("NVIDIA GeForce RTX 4060")
        | {
            "driver.version": "560.35.03",
            "tensorflow.version": "2.18.0",
            "cuda.toolkit.version": "11.8.89",
        }
        | _dists("tensorflow==2.18.0", "nvidia-cudnn-cu12==9.3.0.75", "numpy==2.0.2"),
    ),
    Healthy(
        "TensorFlow of conda",
        "cudatoolkit of the environment serves it, not the system's",
        _UBUNTU
        | _gpus("NVIDIA GeForce RTX 2070")
        | {
            "driver.version": "525.105.17",
            "tensorflow.version": "2.10.1",
            "conda.cudatoolkit.version": "11.2.2",
            "conda.cudnn.version": "8.1.0.77",
            "cuda.toolkit.version": "12.0.140",
        },
    ),
    Healthy(
        "the last TensorFlow for native Windows",
        "2.10 has GPU support on Windows",
        _WINDOWS
        | _gpus("NVIDIA GeForce GTX 1650")
        | {
            "driver.version": "531.79",
            "tensorflow.version": "2.10.1",
            "cuda.toolkit.version": "11.2.152",
            "cudnn.version": "8.1.0",
        },
    ),
    Healthy(
        "TensorFlow through DirectML",
        "the plugin serves the GPU on native Windows",
        _WINDOWS
        | _gpus("NVIDIA GeForce RTX 3050")
        | {"driver.version": "537.58", "tensorflow.version": "2.10.0"}
        | _dists("tensorflow-cpu==2.10.0", "tensorflow-directml-plugin==0.4.0.dev230202"),
    ),
    Healthy(
        "TensorFlow and torch side by side",
        "each loads the libraries of its own wheels, both of CUDA 12",
        _UBUNTU
        | _gpus("NVIDIA A100-SXM4-40GB")
        | {
            "driver.version": "550.54.15",
            "tensorflow.version": "2.17.1",
            "torch.version": "2.5.1+cu124",
        }
        | _dists(
            "tensorflow==2.17.1",
            "torch==2.5.1+cu124",
            "nvidia-cudnn-cu12==9.1.0.70",
            "numpy==1.26.4",
        ),
    ),
    Healthy(
        "TensorFlow with CUDA 11.8 for 11.2",
        "the libraries of every CUDA 11 have the names that TensorFlow opens",
        _UBUNTU
        | _gpus("NVIDIA GeForce GTX 1660 Ti")
        | {
            "driver.version": "525.147.05",
            "tensorflow.version": "2.11.0",
            "cuda.toolkit.version": "11.8.89",
            "cudnn.version": "8.6.0",
        },
    ),
    Healthy(
        "TensorFlow 2.15 with cuDNN 8 of CUDA 12",
        "2.15 is built for CUDA 12.2 and cuDNN 8.9",
        _UBUNTU
        | _gpus("NVIDIA L4")
        | {"driver.version": "535.129.03", "tensorflow.version": "2.15.1"}
        | _dists("tensorflow==2.15.1", "nvidia-cudnn-cu12==8.9.4.25", "numpy==1.26.4"),
    ),
    Healthy(
        "TensorFlow on a Mac",
        "tensorflow-metal serves the GPU",
        {"os.id": "macos", "os.arch": "arm64", "tensorflow.version": "2.16.2"}
        | _dists("tensorflow==2.16.2", "tensorflow-metal==1.1.0", "numpy==1.26.4"),
    ),
    # Other frameworks
    Healthy(
        "ONNX Runtime for CUDA 11 from its own index",
        "onnxruntime-gpu 1.18 for CUDA 11.8 with cuDNN 8 beside torch cu118",
        _UBUNTU
        | _gpus("Tesla T4")
        | {"driver.version": "535.161.08", "torch.version": "2.3.1+cu118"}
        | _dists("onnxruntime-gpu==1.18.0", "torch==2.3.1+cu118", "numpy==1.26.4"),
    ),
    Healthy(
        "ONNX Runtime on the CPU",
        "onnxruntime without -gpu beside a GPU is right for who wants the CPU",
        _UBUNTU
        | _gpus("NVIDIA GeForce RTX 3070")
        | {"driver.version": "550.120", "torch.version": "2.7.0+cu126"}
        | _dists("onnxruntime==1.22.0", "torch==2.7.0+cu126", "numpy==2.2.6"),
    ),
    Healthy(
        "CTranslate2 that needs no cuDNN",
        "its wheels are built without cuDNN since 4.6.3",
        _UBUNTU
        | _gpus("NVIDIA GeForce RTX 4070")
        | {
            "driver.version": "550.120",
            "torch.version": "2.3.1+cu121",
            "torch.cudnn.version": "8.9.2",
        }
        | _dists("ctranslate2==4.7.1", "faster-whisper==1.2.1", "torch==2.3.1+cu121"),
    ),
    Healthy(
        "CTranslate2 with cuDNN 8",
        "4.4.0 opens cuDNN 8, which torch 2.3 brings",
        _UBUNTU
        | _gpus("NVIDIA GeForce RTX 3060")
        | {
            "driver.version": "550.120",
            "torch.version": "2.3.1+cu121",
            "torch.cudnn.version": "8.9.2",
        }
        | _dists("ctranslate2==4.4.0", "faster-whisper==1.0.3", "torch==2.3.1+cu121"),
    ),
    Healthy(
        "CuPy with NVRTC of a wheel",
        "cupy-cuda12x takes the CUDA libraries of the wheels beside a toolkit of CUDA 11",
        _UBUNTU
        | _gpus("NVIDIA A2")
        | {"driver.version": "535.129.03", "cuda.toolkit.version": "11.7.99"}
        | _dists("cupy-cuda12x==13.6.0", "nvidia-cuda-nvrtc-cu12==12.6.85", "numpy==2.2.6"),
    ),
    Healthy(
        "TensorRT on Turing",
        "compute capability 7.5 is the oldest that TensorRT 10.5 and newer serve",
        _UBUNTU
        | _gpus("Tesla T4")
        | {"driver.version": "550.54.15", "tensorrt.version": "10.9.0.34"},
    ),
    Healthy(
        "RAPIDS beside torch",
        "cudf-cu12 and torch share CUDA 12; the NVRTC of each minor is its own",
        _UBUNTU
        | _gpus("NVIDIA L4")
        | {"driver.version": "570.86.15", "torch.version": "2.6.0+cu124"}
        | _dists(
            "cudf-cu12==25.2.2", "cupy-cuda12x==13.4.0", "numba==0.60.0", "torch==2.6.0+cu124"
        ),
    ),
    Healthy(
        "the wheels of CUDA 13 beside those of CUDA 12",
        "torch cu130 and a JAX for CUDA 12 load folders that do not touch",
        _UBUNTU
        | _gpus("NVIDIA GeForce RTX 5080")
        | {
            "driver.version": "580.82.09",
            "torch.version": "2.9.1+cu130",
            "jax.version": "0.8.1",
            "jaxlib.version": "0.8.1",
        }
        | _dists(
            "torch==2.9.1+cu130",
            "nvidia-cublas==13.0.0.19",
            "nvidia-cusparse==12.6.2.49",
            "nvidia-nvjitlink==13.0.39",
            "jax-cuda12-plugin==0.8.1",
            "nvidia-cublas-cu12==12.9.1.4",
            "nvidia-cudnn-cu12==9.15.1.9",
        ),
    ),
    Healthy(
        "nvJitLink newer than cuSPARSE",
        "the pins of torch 2.6 with nvJitLink moved on by another package",
        _UBUNTU
        | _gpus("NVIDIA A10")
        | {"driver.version": "550.90.07", "torch.version": "2.6.0+cu124"}
        | _dists("nvidia-cusparse-cu12==12.3.1.170", "nvidia-nvjitlink-cu12==12.8.93"),
    ),
    Healthy(
        "ONNX Runtime for CUDA 12 beside a toolkit of CUDA 13",
        "the libraries come from the wheels of CUDA 12",
        _UBUNTU
        | _gpus("NVIDIA GeForce RTX 4080 SUPER")
        | {"driver.version": "580.65.06", "cuda.toolkit.version": "13.0.48"}
        | _dists(
            "onnxruntime-gpu==1.22.0",
            "nvidia-cublas-cu12==12.8.4.1",
            "nvidia-cudnn-cu12==9.8.0.87",
            "numpy==2.2.6",
        ),
    ),
    Healthy(
        "ONNX Runtime on a Jetson",
        "the builds for JetPack have other majors than those on PyPI",
        {
            "os.id": "ubuntu",
            "os.arch": "aarch64",
            "kernel.release": "5.15.136-tegra",
            "gpu.0.name": "Orin (nvgpu)",
            "driver.version": "540.3.0",
            "driver.cuda.version": "12.2",
            "cudnn.version": "8.9.4",
        }
        | _dists("onnxruntime-gpu==1.19.0", "numpy==1.26.1"),
    ),
    Healthy(
        "ONNX Runtime through DirectML",
        "onnxruntime-directml serves GPUs of every maker on Windows",
        _WINDOWS
        | _gpus("NVIDIA GeForce RTX 2060")
        | {"driver.version": "552.44"}
        | _dists("onnxruntime-directml==1.18.0", "numpy==1.26.4"),
    ),
    Healthy(
        "CuPy for AMD",
        "a wheel for ROCm opens no CUDA library",
        _UBUNTU | _dists("cupy-rocm-7-0==14.0.1", "numpy==2.3.4"),
    ),
    Healthy(
        "CuPy of conda",
        "cuda-version of the environment chooses the libraries, not the system's toolkit",
        _UBUNTU
        | _gpus("NVIDIA A30")
        | {
            "driver.version": "535.183.06",
            "conda.cupy.version": "13.4.1",
            "conda.cuda-version.version": "12.2",
            "conda.cuda-nvrtc.version": "12.2.140",
            "cuda.toolkit.version": "11.4.152",
            "dist.cupy.version": "13.4.1",
        },
    ),
    Healthy(
        "TensorRT before it dropped Volta",
        "10.4 is the last release that serves compute capability 7.0",
        _UBUNTU
        | _gpus("Tesla V100-SXM2-16GB")
        | {"driver.version": "535.183.01", "tensorrt.version": "10.4.0.26"},
    ),
    Healthy(
        "PaddlePaddle beside torch",
        "both are builds for CUDA 12 and bring their own libraries",
        _UBUNTU
        | _gpus("NVIDIA GeForce RTX 3080 Ti")
        | {"driver.version": "550.54.14", "torch.version": "2.6.0+cu126"}
        | _dists("paddlepaddle-gpu==3.0.0", "torch==2.6.0+cu126", "numpy==1.26.4"),
    ),
    Healthy(
        "bitsandbytes of conda-forge",
        "conda builds the one library that its environment needs",
        _UBUNTU
        | _gpus("NVIDIA GeForce RTX 3090")
        | {
            "driver.version": "580.82.07",
            "torch.version": "2.7.1",
            "torch.cuda.version": "12.9",
            "conda.pytorch.version": "2.7.1",
            "conda.pytorch.build": "cuda129_mkl_py312_h1f3d5e4_304",
            "conda.bitsandbytes.version": "0.46.0",
            "conda.bitsandbytes.build": "cuda129_py312h4c3e5bb_0",
            "dist.bitsandbytes.version": "0.46.0",
            "dist.torch.version": "2.7.1",
        },
    ),
    Healthy(
        "torchaudio of another CUDA minor",
        "from 2.11.1 on torchaudio compares the majors only",
        _UBUNTU
        | _gpus("NVIDIA H200")
        | {"driver.version": "595.45.04", "torch.version": "2.14.1+cu132"}
        | _dists("torch==2.14.1+cu132", "torchvision==0.29.2+cu132", "torchaudio==2.11.1+cu130"),
    ),
    Healthy(
        "torchvision newer than its torch",
        "from 0.29.1 on torchvision serves every torch since 2.14.0",
        _UBUNTU
        | _gpus("NVIDIA H200")
        | {"driver.version": "580.95.05", "torch.version": "2.15.0+cu130"}
        | _dists("torch==2.15.0+cu130", "torchvision==0.29.1+cu130"),
    ),
    Healthy(
        "MIG and a mixed workstation",
        "two GPUs of different generations, both in the build",
        _UBUNTU
        | _gpus("NVIDIA RTX A2000", "NVIDIA GeForce RTX 4090")
        | {"driver.version": "570.124.04", "torch.version": "2.7.1+cu126"},
    ),
    Healthy(
        "a GPU that is left out",
        "CUDA_VISIBLE_DEVICES takes the old display card from the program's sight",
        _UBUNTU
        | _gpus("NVIDIA GeForce RTX 5070", "NVIDIA GeForce GTX 1060 6GB")
        | {
            "driver.version": "575.64.03",
            "env.CUDA_VISIBLE_DEVICES": "0",
            "torch.version": "2.8.0+cu128",
            "torch.arch_list": ["sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120"],
        },
    ),
    # The driver and the hardware
    Healthy(
        "eight GPUs behind NVSwitches",
        "fabric manager and driver are of one release",
        _UBUNTU
        | _gpus(*["NVIDIA H100 80GB HBM3"] * 8)
        | {
            "driver.version": "570.124.06",
            "driver.module.version": "570.124.06",
            "driver.module.loaded": True,
            "driver.module.flavor": "open",
            "driver.libnvml.version": "570.124.06",
            "driver.libcuda.version": "570.124.06",
            "nvswitch.count": 4,
            "fabricmanager.version": "570.124.06-1",
            "fabricmanager.active": True,
            "nvml.status": "ok",
            "pci.gpu.count": 8,
            "torch.version": "2.7.0+cu128",
        },
    ),
    Healthy(
        "PCIe cards without a fabric",
        "without NVSwitches there is nothing for a fabric manager to do",
        _UBUNTU
        | _gpus(*["NVIDIA H100 PCIe"] * 4)
        | {
            "driver.version": "550.127.05",
            "nvswitch.count": 0,
            "fabricmanager.version": "535.183.06",
            "fabricmanager.active": False,
        },
    ),
    Healthy(
        "Secure Boot with the distribution's module",
        "the module is signed by a key that the kernel knows",
        _UBUNTU
        | _gpus("NVIDIA GeForce RTX 2080 SUPER")
        | {
            "driver.version": "550.120",
            "driver.module.loaded": True,
            "driver.module.version": "550.120",
            "driver.module.on_disk": "550.120",
            "driver.module.signer": "Canonical Ltd. Kernel Module Signing",
            "boot.secure_boot": "enabled",
            "kernel.lockdown": "integrity",
            "kernel.release": "6.8.0-45-generic",
            "dkms.installed": False,
            "pci.gpu.count": 1,
            "nvml.status": "ok",
            "smi.status": "ok",
        },
    ),
    Healthy(
        "DKMS that failed for a kernel that does not run",
        "the running kernel has its module",
        _UBUNTU
        | _gpus("NVIDIA GeForce GTX 1070")
        | {
            "driver.version": "535.183.01",
            "driver.module.loaded": True,
            "kernel.release": "6.5.0-35-generic",
            "dkms.installed": True,
            "dkms.nvidia.status": "installed",
            "dkms.nvidia.kernels": ["6.5.0-35-generic"],
            "dkms.nvidia.failed_kernels": ["6.11.0-9-generic"],
            "pci.gpu.count": 1,
            "nvml.status": "ok",
        },
    ),
    Healthy(
        "a container that brings no driver",
        "libcuda and NVML are mounted from the host, and no module lies in the image",
        {
            "os.id": "debian",
            "os.version": "12",
            "container.runtime": "docker",
            "container.visible_devices": "all",
            "container.driver_capabilities": "compute,utility",
            "driver.version": "535.216.01",
            "driver.module.version": "535.216.01",
            "driver.module.on_disk": None,
            "driver.libcuda.path": "/usr/lib/x86_64-linux-gnu/libcuda.so.535.216.01",
            "driver.libcuda.version": "535.216.01",
            "dkms.installed": False,
            "nvml.status": "ok",
            "torch.version": "2.5.1+cu124",
        }
        | _gpus("NVIDIA A10"),
    ),
    Healthy(
        "a container with one of the host's GPUs",
        "the PCI bus shows all of them, and one was asked for",
        _UBUNTU
        | _gpus("NVIDIA L40S")
        | {
            "container.runtime": "docker",
            "container.visible_devices": "GPU-3c7f5e61-4d1a-2b0e-9f4c-0d1e2f3a4b5c",
            "pci.gpu.count": 8,
            "driver.version": "550.127.08",
            "nvml.status": "ok",
        },
    ),
    Healthy(
        "a host that gives its GPU to a guest",
        "vfio-pci is bound on purpose, and the host has no driver",
        {
            "os.id": "debian",
            "pci.gpu.count": 1,
            "pci.gpu.0.driver": "vfio-pci",
            "gpu.driver_bound": ["0000:01:00.0 10de:2684 display vfio-pci"],
            "driver.version": None,
            "driver.module.loaded": False,
        },
    ),
    Healthy(
        "proprietary module on Pascal",
        "the open module begins with Turing",
        _UBUNTU
        | _gpus("Quadro P4000")
        | {
            "driver.version": "570.133.07",
            "driver.module.version": "570.133.07",
            "driver.module.loaded": True,
            "driver.module.flavor": "proprietary",
            "nvml.status": "ok",
            "gpu.0.status": "ok",
        },
    ),
    Healthy(
        "open module on Blackwell",
        "GPUs since Blackwell work with the open module only",
        _UBUNTU
        | _gpus("NVIDIA RTX PRO 6000 Blackwell Workstation Edition")
        | {
            "driver.version": "575.57.08",
            "driver.module.version": "575.57.08",
            "driver.module.loaded": True,
            "driver.module.flavor": "open",
            "nvml.status": "ok",
            "gpu.0.status": "ok",
        },
    ),
    Healthy(
        "a vGPU guest older than its host",
        "a host serves guests of its own branch and of the one before",
        _UBUNTU
        | _gpus("NVIDIA A16-8Q")
        | {
            "driver.version": "535.161.07",
            "vgpu.host.version": "550.54.16",
            "vgpu.guest.version": "535.161.07",
        },
    ),
    Healthy(
        "memory rows that were remapped",
        "a remapped row is repaired, and no reset is pending",
        _UBUNTU
        | _gpus("NVIDIA A100-SXM4-80GB")
        | {
            "driver.version": "535.216.03",
            "gpu.0.remapped_rows.correctable": 2,
            "gpu.0.remapped_rows.uncorrectable": 1,
            "gpu.0.remapped_rows.pending": False,
            "gpu.0.remapped_rows.failed": False,
            "gpu.0.recovery_action": "none",
            "gpu.0.ecc.uncorrected": 0,
        },
    ),
    Healthy(
        "a data-centre card in TCC mode",
        "TCC is right on native Windows; only WSL cannot use it",
        _WINDOWS
        | _gpus("Tesla T4")
        | {
            "driver.version": "553.09",
            "gpu.0.driver_model": "TCC",
            "torch.version": "2.4.0+cu124",
        },
    ),
    Healthy(
        "MIG instances",
        "the GPU is cut in parts, and a process uses one of them",
        _UBUNTU
        | _gpus("NVIDIA A100-SXM4-40GB")
        | {
            "driver.version": "550.90.07",
            "gpu.0.mig.current": "enabled",
            "gpu.0.mig.pending": "enabled",
            "gpu.0.mig.instances": ["3g.20gb", "3g.20gb"],
            "env.CUDA_VISIBLE_DEVICES": "MIG-5fd15f35-e148-5992-4ecb-9825e534f253",
            "torch.version": "2.5.1+cu121",
        },
    ),
    Healthy(
        "newer libraries in LD_LIBRARY_PATH",
        "cuDNN and nvJitLink that are newer than the wheels' serve them",
        _UBUNTU
        | _gpus("NVIDIA A100 80GB PCIe")
        | {
            "driver.version": "550.54.15",
            "env.LD_LIBRARY_PATH": "/usr/local/cuda-12.6/lib64:/opt/cudnn-9.5/lib",
            "torch.version": "2.5.1+cu124",
            "torch.cudnn.version": "9.1.0",
            "cudnn.version": "9.5.1",
            "lib.libcudnn.so.9.via": "LD_LIBRARY_PATH",
            "cusparse.version": "12.3.1.170",
            "nvjitlink.version": "12.6.85",
            "lib.libnvJitLink.so.12.via": "LD_LIBRARY_PATH",
            "lib.libcusparse.so.12.path": "/venv/nvidia/cusparse/lib/libcusparse.so.12",
            "lib.libcublas.so.12.version": "12.4.5.8",
            "lib.libcublasLt.so.12.version": "12.6.4.1",
            "lib.libcublasLt.so.12.via": "LD_LIBRARY_PATH",
        },
    ),
    Healthy(
        "only the heading of nvidia-smi is known",
        "a driver of CUDA 12.2 runs everything of CUDA 12",
        {"driver.cuda.version": "12.2", "torch.version": "2.6.0+cu126"},
    ),
    Healthy(
        "NCCL wheels of two CUDA majors, the newer one on top",
        "both write the same file, and NCCL is compatible backwards",
        _UBUNTU
        | _gpus("NVIDIA A100-SXM4-80GB", "NVIDIA A100-SXM4-80GB")
        | {
            "driver.version": "580.95.05",
            "torch.version": "2.9.1+cu130",
            "torch.nccl.version": "2.27.7",
            "nccl.version": "2.28.9",
            "lib.libnccl.so.2.path": "/venv/lib/site-packages/nvidia/nccl/lib/libnccl.so.2",
        }
        | _dists("torch==2.9.1", "nvidia-nccl-cu12==2.28.9", "nvidia-nccl-cu13==2.27.7"),
    ),
    Healthy(
        "a container of NVIDIA on GeForce",
        "the driver is of the CUDA major that the container is built for",
        _UBUNTU
        | _gpus("NVIDIA GeForce RTX 4090")
        | {
            "driver.version": "580.65.06",
            "container.runtime": "docker",
            "torch.version": "2.9.0a0+50eac811a6.nv25.09",
        },
    ),
    Healthy(
        "WSL, every GPU in WDDM mode",
        "WSL reaches GPUs in WDDM mode",
        _WSL
        | _gpus("NVIDIA RTX A5500 Laptop GPU")
        | {
            "driver.version": "553.35",
            "gpu.0.driver_model": "WDDM",
            "nvml.status": "ok",
            "torch.version": "2.5.1+cu121",
        },
    ),
    Healthy(
        "all GPUs that are on the bus",
        "each function of the bus has the driver, and NVML sees as many",
        _UBUNTU
        | _gpus("NVIDIA A40", "NVIDIA A40")
        | {
            "driver.version": "535.230.02",
            "driver.libcuda.version": "535.230.02",
            "driver.libcuda.stub": False,
            "expected.gpu.count": 2,
            "pci.gpu.count": 2,
            "nvml.status": "ok",
            "gpu.driver_bound": [
                "0000:3b:00.0 10de:2235 display nvidia",
                "0000:af:00.0 10de:2235 display nvidia",
            ],
            "torch.version": "2.4.1+cu124",
        },
    ),
    Healthy(
        "a musl system without frameworks",
        "nothing of the GPU stack is installed",
        {"os.id": "alpine", "os.version": "3.20", "os.arch": "x86_64", "os.libc.name": "musl"},
    ),
)
