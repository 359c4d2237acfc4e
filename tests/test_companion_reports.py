"""Reports about packages beside PyTorch, their builds and their driver: the cause each shows.

Beside every text that shows a cause stands a neighbour of it that shows none, or another one.
"""

from __future__ import annotations

import pytest

from envaudit import report
from envaudit.check import check
from envaudit.matrix import Matrices
from envaudit.model import Snapshot

MATRICES = Matrices()

SITE = "/opt/env/lib/python3.11/site-packages"
ERROR_CLASS = "_ZN3c105ErrorC2ENS_14SourceLocationE"
NEW_STRING = "NSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
NMS = "RuntimeError: operator torchvision::nms does not exist\n"
XFORMERS = "xFormers was built for:\n    PyTorch 2.4.0+cu121 with CUDA 1201 (you have {})\n"
NOT_COMPILED = "AssertionError: Torch not compiled with CUDA enabled\n"
MAC = """
PyTorch version: 2.3.0
Is debug build: False
OS: macOS 14.5 (arm64)
Is CUDA available: False
"""
FA2 = "INFO FA2 is only supported on devices with compute capability >= 8\n"
PTXAS = "fatal   : Unsupported .version 8.4; current version is '8.2'\n"
NVCC = (
    "The detected CUDA version ({}) mismatches the version that was used to compile\n"
    "  PyTorch ({}).\n"
)
NO_MATCH = (
    "Could not find a version that satisfies the requirement {} (from versions: 2.2.0, 2.3.0)\n"
)
AMPERE = "RuntimeError: FlashAttention only supports Ampere GPUs or newer.\n"
NO_KERNEL = "CUDA error: no kernel image is available for execution on the device\n"


def smi(driver: str, cuda: str, *gpus: str) -> str:
    """What `nvidia-smi` and `nvidia-smi -L` print, as far as it matters here."""
    head = (
        f"$ nvidia-smi\n| NVIDIA-SMI {driver}   Driver Version: {driver}   CUDA Version: {cuda} |\n"
    )
    uuid = "GPU-00000000-1111-2222-3333-444444444444"
    listed = "".join(f"GPU {n}: {name} (UUID: {uuid})\n" for n, name in enumerate(gpus))
    return head + ("$ nvidia-smi -L\n" + listed if gpus else "")


def pip(*pins: str) -> str:
    """What `pip freeze` prints."""
    return "$ pip freeze\n" + "".join(f"{pin}\n" for pin in pins)


def wheel(build: str, symbol: str) -> str:
    """An extension that lacks a symbol, beside the torch it met."""
    return f"ImportError: {SITE}/ext_cuda.so: undefined symbol: {symbol}\n" + pip(f"torch=={build}")


def roots(text: str) -> set[str]:
    """Causes of the root errors and warnings that a report shows."""
    read = report.read(text, "report.txt", MATRICES.signatures_for)
    snapshot = Snapshot("x", "2026-12-01T00:00:00Z", read.facts, read.probes)
    return {
        finding.cause
        for finding in check(snapshot, MATRICES).findings
        if finding.verdict == "fail" and finding.severity != "note" and finding.because_of is None
    }


@pytest.mark.parametrize(
    ("cause", "text"),
    [
        # the driver
        ("driver-too-old", "The NVIDIA driver on your system is too old (found version 11080)."),
        (None, "The NVIDIA driver on your system is up to date (version 11080)."),
        (
            "driver-too-old",
            "Is CUDA available: False\n" + smi("570.86.10", "12.8") + pip("torch==2.11.0"),
        ),
        (None, "Is CUDA available: True\n" + smi("580.65.06", "13.0") + pip("torch==2.11.0")),
        ("driver-too-old", "cudaGetDeviceCount returned 35\n"),
        ("ptx-newer-than-driver", "the provided PTX was compiled with an unsupported toolchain."),
        ("ptx-newer-than-driver", "ptxas application ptx input, line 9; " + PTXAS),
        (None, "ptxas k.ptx, line 9; " + PTXAS),
        (
            "forward-compat-unsupported-hw",
            "Error 804: forward compatibility was attempted on non supported HW",
        ),
        (
            "compat-libcuda-shadows-driver",
            "Error 803: system has unsupported display driver / cuda driver combination",
        ),
        ("cuda-stub-library", "Error 34: CUDA driver is a stub library"),
        # GPU and build
        (
            "gpu-arch-too-new-for-build",
            NO_KERNEL + smi("572.16", "12.8", "NVIDIA GeForce RTX 5080"),
        ),
        ("gpu-arch-too-old-for-build", NO_KERNEL + smi("535.54.03", "12.2", "Tesla P40")),
        ("gpu-arch-too-old-for-build", "GPUs with compute capability below 7.0 are not supported."),
        (None, "UserWarning: Found GPU0 Orin which is of compute capability (CC) 8.7.\n"),
        ("gpu-arch-too-new-for-build", "Found GPU0 X which is of compute capability (CC) 12.0.\n"),
        ("gpu-arch-too-new-for-nvcc", "nvcc fatal   : Unsupported gpu architecture 'compute_90'\n"),
        ("kernel-lib-needs-newer-gpu", AMPERE + smi("550.54.14", "12.4", "Tesla T4")),
        (
            "gpu-arch-too-new-for-build",
            AMPERE + smi("570.86.10", "12.8", "NVIDIA GeForce RTX 5090"),
        ),
        (None, FA2 + smi("550.54.14", "12.4", "Tesla T4")),
        # CPU-only builds
        ("cpu-only-build", NOT_COMPILED),
        (None, NOT_COMPILED + MAC),
        (
            "cpu-only-build",
            pip("torch==2.4.1+cpu") + smi("551.61", "12.4", "NVIDIA GeForce RTX 3060"),
        ),
        (None, pip("torch==2.4.1+cu121") + smi("551.61", "12.4", "NVIDIA GeForce RTX 3060")),
        # companions
        ("torch-torchvision-mismatch", NMS + pip("torch==2.3.1", "torchvision==0.19.1")),
        (
            "torch-torchvision-cuda-mismatch",
            NMS + pip("torch==2.3.1+cu121", "torchvision==0.18.1+cpu"),
        ),
        (None, pip("torch==2.3.0", "torchvision==0.18.1")),
        (
            "torch-torchaudio-mismatch",
            f"OSError: {SITE}/torchaudio/lib/libtorchaudio.so: undefined symbol: _ZN2at4_ops\n",
        ),
        ("torch-torchaudio-mismatch", pip("torch==2.3.1+cu121", "torchaudio==2.4.0+cu121")),
        (None, pip("torch==2.14.0+cu130", "torchaudio==2.11.0", "torchvision==0.29.1")),
        ("xformers-built-for-other-torch", XFORMERS.format("2.5.1+cu124")),
        ("cpu-only-build", XFORMERS.format("2.4.0+cpu")),
        ("xformers-built-for-other-torch", pip("torch==2.2.0+cu121", "xformers==0.0.28")),
        (
            "triton-torch-mismatch",
            "ImportError: cannot import name 'triton_key' from 'triton.compiler.compiler'\n",
        ),
        (None, "ModuleNotFoundError: No module named 'triton'\n" + pip("torch==2.4.0+cu121")),
        ("duplicate-triton-packages", pip("triton==3.0.0", "triton-nightly==3.0.0.post1")),
        (
            "bitsandbytes-no-binary-for-cuda",
            "Required library version not found: libbitsandbytes_cuda122.so.\n",
        ),
        ("bitsandbytes-no-binary-for-cuda", pip("torch==2.7.1+cu128", "bitsandbytes==0.44.1")),
        (None, pip("torch==2.7.1+cu128", "bitsandbytes==0.46.0")),
        # extensions
        ("extension-cxx11-abi-mismatch", wheel("2.4.0+cu121", ERROR_CLASS + NEW_STRING)),
        ("extension-built-for-other-torch", wheel("2.8.0+cu128", ERROR_CLASS + NEW_STRING)),
        ("extension-cxx11-abi-mismatch", wheel("2.8.0+cu128", ERROR_CLASS + "Ss")),
        ("extension-built-for-other-torch", wheel("2.4.0+cu121", "_ZN3c104cuda9SetDeviceEi")),
        (
            "extension-built-for-other-torch",
            pip("torch==2.4.0+cu121", "torch-scatter==2.1.2+pt23cu121"),
        ),
        (
            "extension-cuda-major-mismatch",
            pip("torch==2.4.0+cu121", "torch-scatter==2.1.2+pt24cu118"),
        ),
        (None, pip("torch==2.4.0+cu121", "torch-scatter==2.1.2+pt24cu121")),
        (
            "extension-cuda-major-mismatch",
            "ImportError: libcudart.so.11.0: cannot open shared object file\n"
            + pip("torch==2.4.0+cu121"),
        ),
        # building
        ("nvcc-torch-cuda-mismatch", NVCC.format("11.8", "12.1")),
        (
            None,
            "The detected CUDA version (12.4) has a minor version mismatch with the version.",
        ),
        (
            "gcc-too-new-for-nvcc",
            "#error -- unsupported GNU version! gcc versions later than 11 are not supported!",
        ),
        # Python
        (
            "python-version-no-wheel",
            NO_MATCH.format("torch==2.0.1") + "$ python --version\nPython 3.12.4\n",
        ),
        (None, NO_MATCH.format("torch==2.0.1") + "$ python --version\nPython 3.10.4\n"),
    ],
)
def test_a_report_shows_one_cause(cause: str | None, text: str) -> None:
    assert roots(text) == ({cause} if cause else set())
