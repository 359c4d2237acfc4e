"""Reports about CUDA libraries and binary interfaces: which cause they show, and which are fine."""

from __future__ import annotations

import pytest

from envaudit import report
from envaudit.check import check
from envaudit.matrix import Matrices
from envaudit.model import Snapshot

MATRICES = Matrices()

SITE = "/opt/venv/lib/python3.11/site-packages"
CUDNN9_MISSING = """
worker  | Unable to load any of {libcudnn_cnn.so.9.1.0, libcudnn_cnn.so.9.1, libcudnn_cnn.so.9}
worker  | Invalid handle. Cannot load symbol cudnnCreateConvolutionDescriptor
"""
CUDNN8_MISSING = """
Could not load library libcudnn_ops_infer.so.8. Error: libcudnn_ops_infer.so.8: cannot open \
shared object file: No such file or directory
"""
NVJITLINK = f"""
ImportError: {SITE}/nvidia/cusparse/lib/libcusparse.so.12: undefined symbol: \
__nvJitLinkComplete_12_4, version libnvJitLink.so.12
"""
NCCL_SYMBOL = f"""
ImportError: {SITE}/torch/lib/libtorch_cuda.so: undefined symbol: ncclCommShrink
"""
XLA_CUDNN = """
E0301 cuda_dnn.cc:522] Loaded runtime CuDNN library: 9.1.0 but source was compiled with: 9.8.0.
"""
TORCH_CUDNN = """
RuntimeError: cuDNN version incompatibility: PyTorch was compiled  against (9, 1, 0) but found \
runtime version (9, 0, 0). PyTorch already comes bundled with cuDNN. One option to resolving \
this error is to ensure PyTorch can find the bundled cuDNN. """


def causes(text: str) -> set[str]:
    """Causes of the root errors that a report shows."""
    read = report.read(text, "report.txt", MATRICES.signatures_for)
    snapshot = Snapshot("x", "2026-12-01T00:00:00Z", read.facts, read.probes)
    return {
        finding.cause
        for finding in check(snapshot, MATRICES).findings
        if finding.verdict == "fail" and finding.severity == "error" and finding.because_of is None
    }


@pytest.mark.parametrize(
    ("cause", "text"),
    [
        ("cudnn-not-on-loader-path", CUDNN9_MISSING + "$ pip list\nnvidia-cudnn-cu12 9.1.0.70\n"),
        ("cudnn-major-mismatch", CUDNN9_MISSING + "$ pip list\nnvidia-cudnn-cu12 8.9.2.26\n"),
        ("cudnn-major-mismatch", CUDNN9_MISSING),
        ("cudnn-major-mismatch", CUDNN8_MISSING + "$ pip freeze\nnvidia-cudnn-cu12==9.1.0.70\n"),
        (
            "cudnn-not-on-loader-path",
            CUDNN8_MISSING + "$ pip freeze\nnvidia-cudnn-cu11==8.9.6.50\n",
        ),
        ("cudnn-major-mismatch", "Could not locate cudnn_ops_infer64_8.dll. Please make sure\n"),
        ("cudnn-runtime-older-than-build", XLA_CUDNN),
        (
            "cudnn-runtime-older-than-build",
            XLA_CUDNN + "$ pip freeze\njax==0.6.2\nnvidia-cudnn-cu12==9.1.0.70\n",
        ),
        (
            "cudnn-shadowed-by-ld-library-path",
            XLA_CUDNN + "$ pip freeze\njax==0.6.2\nnvidia-cudnn-cu12==9.10.2.21\n",
        ),
        ("cudnn-runtime-older-than-build", TORCH_CUDNN + "\n"),
        (
            "cudnn-shadowed-by-ld-library-path",
            TORCH_CUDNN + "one possibility is a conflicting cuDNN in LD_LIBRARY_PATH.\n",
        ),
        ("cudnn-shadowed-by-ld-library-path", TORCH_CUDNN.split(" PyTorch already")[0] + "\n"),
        ("two-cudnn-installs-mixed", "cuDNN error: CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH\n"),
        ("nvjitlink-shadowed", NVJITLINK),
        ("nvjitlink-shadowed", NVJITLINK + "$ pip list\nnvidia-nvjitlink-cu12 12.4.127\n"),
        (
            "nvjitlink-older-than-cusparse",
            NVJITLINK + "$ pip list\nnvidia-nvjitlink-cu12 12.1.105\n",
        ),
        (
            "nvjitlink-older-than-cusparse",
            "$ pip list\nnvidia-cusparse-cu12 12.5.8.93\nnvidia-nvjitlink-cu12 12.4.127\n",
        ),
        (
            "cublas-shadowed",
            (
                "OSError: /opt/nvidia/cublas/lib/libcublas.so.11: symbol cublasLtGetStatusString "
                "version libcublasLt.so.11 not defined in file libcublasLt.so.11\n"
            ),
        ),
        (
            "mixed-cuda-major-wheels",
            (NCCL_SYMBOL + "$ pip freeze\nnvidia-nccl-cu12==2.21.5\nnvidia-nccl-cu13==2.27.7\n"),
        ),
        (
            "library-path-shadowing",
            (NCCL_SYMBOL + "$ pip freeze\nnvidia-nccl-cu12==2.27.5\n"),
        ),
        ("numpy2-abi", "AttributeError: _ARRAY_API not found\n"),
        ("numpy2-abi", "$ pip freeze\nnumpy==2.0.1\ntorch==2.1.2+cu121\n"),
        (
            "glibc-too-old",
            "./x: /lib64/libc.so.6: version `GLIBC_2.27' not found (required by x)\n",
        ),
        ("libstdcxx-too-old", "ImportError: version `GLIBCXX_3.4.32' not found (required by x)\n"),
        (
            "nccl-needs-newer-driver",
            "Last error:\nCuda failure 'API call is not supported in the installed CUDA driver'\n",
        ),
    ],
)
def test_a_report_shows_its_cause(cause: str, text: str) -> None:
    assert causes(text) == {cause}


@pytest.mark.parametrize(
    "text",
    [
        # An old system cuDNN and an unrelated toolkit beside wheels that bring their own.
        (
            "$ pip freeze\nnumpy==2.1.2\ntorch==2.6.0+cu124\nnvidia-cudnn-cu12==9.1.0.70\n"
            "nvidia-cusparse-cu12==12.3.1.170\nnvidia-nvjitlink-cu12==12.4.127\n"
            "$ echo $LD_LIBRARY_PATH\n/usr/local/cuda-11.8/lib64\n"
            "$ ls /usr/lib/x86_64-linux-gnu/libcudnn*\n"
            "/usr/lib/x86_64-linux-gnu/libcudnn.so.8.4.0\n"
        ),
        # A newer nvJitLink, and a newer cuDNN minor, than the build pins.
        (
            "$ pip freeze\nnvidia-cusparse-cu12==12.3.1.170\nnvidia-nvjitlink-cu12==12.9.86\n"
            "torch==2.6.0+cu124\nnvidia-cudnn-cu12==9.10.2.21\n"
        ),
        # torch without NumPy warns in a healthy environment.
        "UserWarning: Failed to initialize NumPy: No module named 'numpy' (Triggered internally)\n",
        # What the system has, not what is missing.
        "$ strings /usr/lib/x86_64-linux-gnu/libstdc++.so.6 | grep GLIBCXX\nGLIBCXX_3.4.29\n",
        # Modules for NumPy 2 run under NumPy 1.
        "$ pip freeze\nnumpy==1.26.4\ntorch==2.6.0\ntensorflow==2.19.0\n",
        # cuDNN fails on a GPU that it serves: memory, most likely.
        (
            "RuntimeError: cuDNN error: CUDNN_STATUS_EXECUTION_FAILED\n"
            "$ nvidia-smi -L\nGPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-0)\n"
        ),
        # Another library than cuDNN's is missing.
        "Could not load library libcudnn_cnn_infer.so.8. Error: libnvrtc.so: cannot open\n",
        # cuDNN 8 and 9 wheels have different files.
        "$ pip freeze\nnvidia-cudnn-cu11==8.7.0.84\nnvidia-cudnn-cu12==9.1.0.70\n",
    ],
)
def test_a_valid_setup_shows_nothing(text: str) -> None:
    assert causes(text) == set()
