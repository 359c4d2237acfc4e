"""Environment variables that change what the GPU stack does: an allow-list, never a secret."""

from __future__ import annotations

import re

ALLOWED: tuple[tuple[str, str], ...] = (
    # name or pattern, and what it moves, in one word
    ("CUDA_*", "cuda"),
    ("CUDAARCHS", "build"),
    ("CUDACXX", "build"),
    ("CUDAHOSTCXX", "build"),
    ("CUBLAS_*", "cuda"),
    ("CUBLASLT_*", "cuda"),
    ("CUFILE_*", "storage"),
    ("CUDNN_*", "cudnn"),
    ("NVIDIA_*", "driver"),
    ("NVCC_*", "build"),
    ("NCCL_*", "collectives"),
    ("NVSHMEM_*", "collectives"),
    ("UCX_*", "collectives"),
    ("GLOO_*", "collectives"),
    ("FI_*", "fabric"),
    ("GPU_DEVICE_ORDINAL", "visibility"),
    ("HIP_VISIBLE_DEVICES", "visibility"),
    ("ROCR_VISIBLE_DEVICES", "visibility"),
    ("HSA_OVERRIDE_GFX_VERSION", "rocm"),
    ("SLURM_GPUS*", "scheduler"),
    ("SLURM_JOB_GPUS", "scheduler"),
    ("SLURM_STEP_GPUS", "scheduler"),
    ("SLURM_CPUS_PER_TASK", "scheduler"),
    ("LD_LIBRARY_PATH", "loader"),
    ("LD_PRELOAD", "loader"),
    ("LIBRARY_PATH", "build"),
    ("CPATH", "build"),
    ("CC", "build"),
    ("CXX", "build"),
    ("MAX_JOBS", "build"),
    ("FORCE_CUDA", "build"),
    ("USE_CUDA", "build"),
    ("OMP_*", "threads"),
    ("GOMP_*", "threads"),
    ("KMP_*", "threads"),
    ("MKL_*", "threads"),
    ("OPENBLAS_*", "threads"),
    ("NUMEXPR_*", "threads"),
    ("TORCH_*", "torch"),
    ("TORCHINDUCTOR_*", "torch"),
    ("TORCHDYNAMO_*", "torch"),
    ("PYTORCH_*", "torch"),
    ("TRITON_*", "triton"),
    ("NVTE_*", "torch"),
    ("XFORMERS_*", "torch"),
    ("BNB_CUDA_VERSION", "torch"),
    # TF_* would take in Terraform, whose TF_VAR_* hold anything
    ("TF_CPP_*", "tensorflow"),
    ("TF_CUDA_*", "tensorflow"),
    ("TF_CUDNN_*", "tensorflow"),
    ("TF_DETERMINISTIC_OPS", "tensorflow"),
    ("TF_DISABLE_*", "tensorflow"),
    ("TF_ENABLE_*", "tensorflow"),
    ("TF_FORCE_*", "tensorflow"),
    ("TF_GPU_*", "tensorflow"),
    ("TF_NUM_*", "tensorflow"),
    ("TF_USE_*", "tensorflow"),
    ("TF_XLA_*", "tensorflow"),
    ("XLA_*", "xla"),
    ("JAX_*", "jax"),
    ("CUPY_*", "cupy"),
    ("NUMBA_*", "numba"),
    ("VLLM_*", "vllm"),
    ("CONDA_PREFIX", "python"),
    ("CONDA_DEFAULT_ENV", "python"),
    ("CONDA_OVERRIDE_CUDA", "python"),
    ("VIRTUAL_ENV", "python"),
    ("PYTHONPATH", "python"),
    ("PYTHONHOME", "python"),
    ("PYTHONNOUSERSITE", "python"),
)
"""The variables that are told; everything else in the environment stays unread."""

_NAMES = frozenset(name for name, _ in ALLOWED)
_FAMILIES = tuple(name[:-1] for name, _ in ALLOWED if name.endswith("*"))

_WITHHELD = re.compile(
    r"TOKEN|KEY|SECRET|PASS|CREDENTIAL|AUTH"
    r"|(ADDR|ADDRESS|(^|_)(HOST|HOSTNAME|IP|URL|URI|COMM_ID))$"
)
"""Names of secrets, and of addresses, which say nothing of the GPU stack and much of the site."""
_SERVICE = re.compile(r"_SERVICE_(HOST|PORT)|_PORT(_\d+_(TCP|UDP).*)?$")
"""A family of variables that Kubernetes gives for every service, whatever its name begins with."""

VALUE_LIMIT = 4096
"""Longest value that is kept whole, in characters."""


def allowed(name: str) -> bool:
    """Whether a variable is one of those that matter."""
    return (
        (name in _NAMES or name.startswith(_FAMILIES))
        and name.isascii()
        and name.isidentifier()
        and not _SERVICE.search(name)
    )


def is_withheld(name: str) -> bool:
    """Whether a variable's name says that its value is a secret or an address."""
    return _WITHHELD.search(name) is not None


# Up to the last @: a password may hold what it should not, and a shorter address hurts nobody.
_LOGIN = re.compile(r"([A-Za-z][\w+.-]{0,30}://)[^ \t\n,;\"']*@")
_NAMED_SECRET = re.compile(
    r"((?:token|secret|passw(?:or)?d|passphrase|credentials?|api[-_]?key|access[-_]?key|signature)"
    r"[\"']?\s*[=:]\s*[\"']?)[^\s&;,\"']+",
    re.IGNORECASE,
)
_TOKEN = re.compile(
    r"\b(?:(?:hf_|gh[opsu]_|github_pat_|glpat-|nvapi-|sk-|xox[abp]-|AKIA)[\w-]{8,}|eyJ[\w-]{8,}\.[\w.-]+)"
)


def clean(value: str) -> str:
    """A value without logins in URLs and without what looks like a token, cut where it is huge."""
    value = _LOGIN.sub(r"\1", value)
    value = _TOKEN.sub("***", _NAMED_SECRET.sub(r"\1***", value))
    if len(value) > VALUE_LIMIT:
        return f"{value[:VALUE_LIMIT]}... (cut, {len(value)} characters)"
    return value
