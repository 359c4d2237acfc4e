"""What belongs to the GPU stack, by name: packages of operating systems and of conda.

Python distributions have `envaudit.distributions.in_gpu_stack`.
"""

from __future__ import annotations

import re
from fnmatch import translate

from envaudit.distributions import in_gpu_stack, normalise

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
