"""What belongs to the GPU stack, by name: Python distributions, packages of systems and conda."""

from __future__ import annotations

import re
from fnmatch import translate

_GPU_STACK = """
accelerate apex auto-gptq autoawq bitsandbytes ctranslate2 cutlass dali deepspeed diffusers
exllama faster-whisper horovod intel-openmp liger-kernel lightgbm lightning llama-cpp-python
llvmlite mamba-ssm mkl ml-dtypes numpy onnx optimum peft pip pycuda pylibcudf pynvml
pytorch-lightning scipy sentence-transformers setuptools sglang taichi tbb tf-keras transformers
triton unsloth vllm warp-lang wheel xformers xgboost
"""
GPU_STACK = frozenset(_GPU_STACK.split())
"""Distributions whose version matters to whether GPU work runs and how fast, by name."""

GPU_STACK_PREFIXES = (
    *("cuda-", "cudf", "cuml", "cupy", "exllama", "flash-attn", "flashinfer", "jax", "keras"),
    *("libcudf", "libcuml", "librmm", "mxnet", "numba", "nvidia-", "onnxruntime", "paddlepaddle"),
    *("pytorch-triton", "rmm", "tensorflow", "tensorrt", "tf-nightly", "torch", "transformer-"),
    *("triton-", "intel-tensorflow", "intel-extension-for-", "mkl-", "unsloth-"),
)
"""The same by how the name begins."""


def in_gpu_stack(name: str) -> bool:
    """Whether a distribution (its normalised name) belongs to the GPU stack."""
    return name in GPU_STACK or name.startswith(GPU_STACK_PREFIXES)


def normalise(name: str) -> str:
    """A distribution name as PEP 503 compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def without_secrets(url: str) -> str:
    """A URL without user, password, query and fragment."""
    url = re.split(r"[?#]", url, maxsplit=1)[0]
    scheme, separator, rest = url.partition("://")
    if not separator:
        return url.rpartition("@")[2]
    host, slash, path = rest.partition("/")
    return scheme + separator + host.rpartition("@")[2] + slash + path


WANTED = (
    # driver, its libraries and services
    "nvidia*",
    "libnvidia*",
    "libcuda*",
    "xserver-xorg-video-nvidia*",
    "xorg-x11-drv-nvidia*",
    "xorg-x11-nvidia*",
    "x11-video-nvidia*",
    "kmod-nvidia*",
    "akmod-nvidia*",
    "firmware-nvidia*",
    "libxnvctrl*",
    "datacenter-gpu-manager*",
    "libnvsdm*",
    "nvlsm",
    "dkms",
    # toolkit and libraries
    "cuda*",
    "libcudnn*",
    "cudnn*",
    "libnccl*",
    "nccl*",
    "libcublas*",
    "libcufft*",
    "libcurand*",
    "libcusolver*",
    "libcusparse*",
    "libnvjitlink*",
    "libnvinfer*",
    "libnvonnxparsers*",
    "tensorrt*",
    "libnpp*",
    "gds-tools*",
    "mlnx-ofed*",
    "doca-ofed*",
    # containers
    "docker-ce",
    "docker.io",
    "docker",
    "moby-engine",
    "podman",
    "containerd*",
    # kernel
    "linux",
    "linux-lts",
    "linux-zen",
    "linux-hardened",
    "linux-cachyos*",
    "linux-image*",
    "linux-headers*",
    "linux-*-headers",
    "linux-modules*",
    "linux-objects-nvidia*",
    "linux-signatures-nvidia*",
    "linux-generic*",
    "linux-firmware*",
    "kernel",
    "kernel-core",
    "kernel-modules",
    "kernel-modules-core",
    "kernel-devel",
    "kernel-headers",
    "kernel-default",
    "kernel-default-devel",
    "kernel-firmware*",
    # what modules and extensions are built with and run on
    "gcc",
    "gcc-[0-9]*",
    "gcc-c++",
    "g++",
    "g++-[0-9]*",
    "libc6",
    "libc6-dev",
    "glibc",
    "musl",
    "libstdc++",
    "libstdc++6",
    # what upgrades by itself
    "unattended-upgrades",
    "dnf-automatic",
)
"""Names of packages that are told, with shell wildcards."""

_EXACT = frozenset(name for name in WANTED if "*" not in name)
_PREFIXES = tuple(name[:-1] for name in WANTED if re.fullmatch(r"[^*\[]+\*", name))
_OTHERS = re.compile(
    "|".join(
        translate(name) for name in WANTED if name not in _EXACT and not name.startswith(_PREFIXES)
    )
)


def wanted(name: str) -> bool:
    """Whether a package of this name is told."""
    return (
        name in _EXACT
        or name.startswith(_PREFIXES)
        or (_OTHERS.match(name) is not None and not name.endswith("-base"))
    )


_CONDA = """
_openmp_mutex blas blis cudatoolkit cudnn cusparselt cutensor libblas libcblas libgcc libgcc-ng
libgomp liblapack libmagma libmagma_sparse libopenblas libstdcxx libstdcxx-ng libtorch
llvm-openmp magma mpich nccl nomkl openblas openmpi python pytorch pytorch-cuda pytorch-gpu
pytorch-mutex ucx
"""
CONDA_NAMES = frozenset(_CONDA.split())
"""Packages that matter to the GPU stack and are no Python distributions, by name."""

CONDA_PREFIXES = (
    "libcu",
    "libnv",
    "libnccl",
    "magma-",
    "gcc_",
    "gxx_",
    "sysroot_",
    "libtensorflow",
)
"""The same by how the name begins."""


def conda_matters(name: str) -> bool:
    """Whether a conda package belongs to the GPU stack."""
    return name in CONDA_NAMES or name.startswith(CONDA_PREFIXES) or in_gpu_stack(normalise(name))
