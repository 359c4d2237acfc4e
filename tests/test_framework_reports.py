"""Reports about frameworks other than PyTorch: which cause they show, and which are fine."""

from __future__ import annotations

import pytest

from envaudit import report
from envaudit.check import check
from envaudit.matrix import Matrices
from envaudit.model import Snapshot

MATRICES = Matrices()

LOADER = "W tensorflow/stream_executor/platform/default/dso_loader.cc:64] "
CUDART_11 = (
    f"2022-03-01 09:00:00.000000: {LOADER}Could not load dynamic library 'libcudart.so.11.0'; "
    "dlerror: libcudart.so.11.0: cannot open shared object file: No such file or directory\n"
)
NO_LIBCUDA = (
    f"{LOADER}Could not load dynamic library 'libcuda.so.1'; dlerror: libcuda.so.1: cannot open "
    "shared object file: No such file or directory\n"
)
FOUND_GPU = """\
I tensorflow/core/common_runtime/gpu/gpu_device.cc:1555] Found device 0 with properties:
pciBusID: 0000:02:00.0 name: GeForce GTX 960M computeCapability: 5.0
"""
NO_CUDART = (
    "2024-06-07 14:17:16.238228: I external/local_tsl/tsl/cuda/cudart_stub.cc:32] Could not find "
    "cuda drivers on your machine, GPU will not be used.\n"
)
SMI = """
$ nvidia-smi
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 550.54.14              Driver Version: 550.54.14      CUDA Version: 12.4     |
|-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
|=========================================+========================+======================|
|   0  NVIDIA GeForce RTX 4070        Off |   00000000:01:00.0  On |                  N/A |
+-----------------------------------------+------------------------+----------------------+
"""
NO_GPU_LISTED = ">>> tf.config.list_physical_devices('GPU')\n[]\n"
ORT_LINUX = (
    "2026-01-02 [E:onnxruntime:Default, provider_bridge_ort.cc:1992 TryGetProviderInfo_CUDA] "
    "[ONNXRuntimeError] : 1 : FAIL : Failed to load library libonnxruntime_providers_cuda.so "
    "with error: libcublasLt.so.{major}: cannot open shared object file: No such file\n"
)
ORT_WINDOWS = (
    '[ONNXRuntimeError] : 1 : FAIL : Error loading "C:\\x\\capi\\onnxruntime_providers_cuda.dll" '
    'which depends on "cublasLt64_12.dll" which is missing. (Error 126: "Das angegebene Modul")\n'
)
CUPY_BOX = """
ImportError:
================================================================
Failed to import CuPy.

If you installed CuPy via wheels (cupy-cudaXXX), make sure that the package matches CUDA.

Original error:
  ImportError: libcublas.so.11: cannot open shared object file: No such file or directory
================================================================
"""
PJRT_SIZE = (
    "RuntimeError: Unable to initialize backend 'cuda': INVALID_ARGUMENT: Unexpected "
    "PJRT_Client_Create_Args size: expected 88, got 72. The plugin is likely built with a later "
    "version than the framework.\n"
)
ASKED_JAX = (
    "RuntimeError: Unknown backend: 'gpu' requested, but no platforms that are instances of gpu "
    "are present. Platforms present are: cpu\n"
)
A100 = "$ nvidia-smi -L\nGPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-0000)\n"


def findings(text: str) -> set[tuple[str, str]]:
    """Cause and severity of the roots that a report shows, without what only informs."""
    read = report.read(text, "report.txt", MATRICES.signatures_for)
    snapshot = Snapshot("x", "2026-12-01T00:00:00Z", read.facts, read.probes)
    return {
        (finding.cause, finding.severity)
        for finding in check(snapshot, MATRICES).findings
        if finding.verdict == "fail" and finding.severity != "note" and finding.because_of is None
    }


@pytest.mark.parametrize(
    ("cause", "text"),
    [
        ("tf-cuda-toolkit-mismatch", FOUND_GPU + CUDART_11),
        ("tf-cuda-toolkit-mismatch", CUDART_11 + "Cannot dlopen some GPU libraries.\n"),
        (
            "tf-cuda-toolkit-mismatch",
            FOUND_GPU + f"{LOADER}Could not load dynamic library 'cudart64_101.dll'; dlerror: x\n",
        ),
        (
            "tf-cuda-toolkit-mismatch",
            (
                "ImportError: Could not find 'cudart64_90.dll'. TensorFlow requires that this DLL "
                "be installed in a directory that is named in your %PATH% environment variable.\n"
            ),
        ),
        (
            "tf-cuda-toolkit-mismatch",
            (
                "ImportError: libcublas.so.9.0: cannot open shared object file: No such file\n\n\n"
                "Failed to load the native TensorFlow runtime.\n"
            ),
        ),
        ("tf-cuda-toolkit-mismatch", NO_CUDART + NO_GPU_LISTED + SMI),
        ("jax-jaxlib-mismatch", "$ pip freeze\njax==0.4.25\njaxlib==0.4.26\n"),
        ("jax-jaxlib-mismatch", "$ pip freeze\njax==0.5.3\njaxlib==0.4.38\n"),
        (
            "jax-jaxlib-mismatch",
            (
                "RuntimeError: jaxlib is version 0.4.14, but this version of jax requires version "
                ">= 0.4.19.\n"
            ),
        ),
        ("jax-plugin-jaxlib-mismatch", PJRT_SIZE),
        (
            "jax-plugin-jaxlib-mismatch",
            "$ pip freeze\njaxlib==0.7.1\njax==0.7.1\njax-cuda12-plugin==0.7.2\n",
        ),
        (
            "cupy-cuda-major-mismatch",
            (
                "RuntimeError: CuPy failed to load nvrtc64_112_0.dll: FileNotFoundError: Could not "
                "find module 'nvrtc64_112_0.dll' (or one of its dependencies).\n"
            ),
        ),
        ("cupy-cuda-major-mismatch", CUPY_BOX),
        (
            "nvrtc-header-version-mix",
            (
                'cupy.cuda.compiler.CompileException: storage.h(137): error: incomplete type "__nv_'
                'fp8_e8m0" is not allowed\n'
            ),
        ),
        ("onnxruntime-cuda-major-mismatch", ORT_LINUX.format(major="11")),
        (
            "onnxruntime-cuda-major-mismatch",
            ORT_LINUX.format(major="13") + "$ pip freeze\nnvidia-cublas-cu12==12.8.4.1\n",
        ),
        ("onnxruntime-cuda-major-mismatch", ORT_WINDOWS),
        ("cpu-only-build", ASKED_JAX + A100 + "$ pip freeze\njax==0.4.35\njaxlib==0.4.34\n"),
        (
            "cpu-only-build",
            "ValueError: This CTranslate2 package was not compiled with CUDA support\n" + A100,
        ),
        (
            "tensorrt-engine-arch-mismatch",
            (
                "[TRT] [E] 6: The engine plan file is generated on an incompatible device, "
                "expecting compute 8.6 got compute 7.5, please rebuild.\n"
            ),
        ),
        (
            "tensorrt-engine-version-mismatch",
            (
                "face_1  | [TRT] [E] 6: The engine plan file is not compatible with this version "
                "of TensorRT, expecting library version 8.2.3 got 8.2.1, please rebuild.\n"
            ),
        ),
        (
            "tensorrt-engine-version-mismatch",
            (
                "Version tag does not match. Note: Current Version: 240, Serialized Engine "
                "Version: 239)\n"
            ),
        ),
        (
            "gpu-arch-too-old-for-build",
            (
                "UnsupportedCUDAError: A GPU with NVIDIA Volta\u2122 (Compute Capability 7.0) or "
                "newer architecture is required.\nDetected GPU 0: NVIDIA GeForce GTX 1080 Ti\n"
                "Detected Compute Capability: 6.1\n"
            ),
        ),
        (
            "gpu-arch-too-new-for-build",
            (
                "Mismatched GPU Architecture: The installed PaddlePaddle package was compiled for "
                "60 61 70 75 80 86, but your current GPU is 120\n"
            ),
        ),
        (
            "driver-too-old",
            (
                "PyTorch version: 2.9.0a0+50eac811a6.nv25.09\nCUDA used to build PyTorch: 13.0\n"
                "GPU models and configuration: GPU 0: NVIDIA GeForce RTX 4090\n"
                "Nvidia driver version: 550.124.06\n"
            ),
        ),
    ],
)
def test_a_report_shows_its_cause_and_no_other(cause: str, text: str) -> None:
    assert {found for found, severity in findings(text) if severity == "error"} == {cause}


@pytest.mark.parametrize(
    ("cause", "text"),
    [
        (
            "tf-cuda-toolkit-mismatch",
            (
                f"{LOADER}Could not load dynamic library 'cudart64_110.dll'; dlerror: "
                "cudart64_110.dll not found\nTensorFlow version: 2.9.1\n"
            ),
        ),
        (
            "cpu-only-build",
            (
                "UserWarning: Specified provider 'CUDAExecutionProvider' is not in available "
                "provider names.Available providers: 'AzureExecutionProvider, "
                "CPUExecutionProvider'\n"
            ),
        ),
    ],
)
def test_what_may_be_harmless_only_warns(cause: str, text: str) -> None:
    assert findings(text) == {(cause, "warning")}


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(CUDART_11 + NO_LIBCUDA, id="tensorflow on a machine without a GPU"),
        pytest.param(NO_CUDART, id="tensorflow meant for the CPU"),
        pytest.param(
            "TF-TRT Warning: Could not find TensorRT\n"
            "successful NUMA node read from SysFS had negative value (-1), but there must be at "
            "least one NUMA node, so returning NUMA node zero\n"
            "Unable to register cuDNN factory: Attempting to register factory for plugin cuDNN "
            "when one has already been registered\nNum GPUs Available:  1\n",
            id="harmless lines of tensorflow",
        ),
        pytest.param(
            "An NVIDIA GPU may be present on this machine, but a CUDA-enabled jaxlib is not "
            "installed. Falling back to cpu.\n",
            id="jax meant for the CPU",
        ),
        pytest.param(
            NO_CUDART + SMI + "$ pip freeze\ntorch==2.4.0+cu124\ntensorflow==2.15.0\n",
            id="tensorflow beside torch",
        ),
        pytest.param(
            "$ pip freeze\njax==0.12.0\njaxlib==0.11.2\njax-cuda13-plugin==0.11.2\n",
            id="a jax that accepts an older jaxlib",
        ),
        pytest.param(
            "Unable to initialize backend 'tpu': INVALID_ARGUMENT: Mismatched PJRT plugin PJRT API "
            "version (0.47) and framework PJRT API version 0.40).\n",
            id="a plugin for a TPU",
        ),
        pytest.param(
            "[W] [TRT] Using an engine plan file across different models of devices is not "
            "recommended and is likely to affect performance or even cause errors.\n",
            id="an engine of another GPU model",
        ),
        pytest.param(
            "The engine plan file is not compatible with this version of TensorRT, expecting "
            "library version 5.1.5 got 0.0.0, please rebuild.\n",
            id="a file that is no engine",
        ),
        pytest.param("$ pip freeze\nonnxruntime==1.19.2\n" + A100, id="onnxruntime on purpose"),
        pytest.param(
            "PyTorch version: 2.9.0a0+50eac811a6.nv25.09\nCUDA used to build PyTorch: 13.0\n"
            "GPU models and configuration: GPU 0: NVIDIA H100 80GB HBM3\n"
            "Nvidia driver version: 570.124.06\n",
            id="an NVIDIA container with its forward-compatibility libraries",
        ),
        pytest.param(
            "The NVIDIA driver's CUDA version is 12.2 which is older than the PTX compiler version "
            "12.5.82. Because the driver is older than the PTX compiler version, XLA is disabling "
            "parallel compilation, which may slow down compilation.\n",
            id="xla with a newer ptxas",
        ),
    ],
)
def test_what_is_fine_raises_nothing(text: str) -> None:
    assert findings(text) == set()


def test_a_build_of_an_nvidia_container_gets_its_parts_from_the_container() -> None:
    text = "PyTorch version: 2.6.0a0+df5bbc09d1.nv24.11\n"
    read = report.read(text, "report.txt", MATRICES.signatures_for)
    snapshot = Snapshot("x", "2026-12-01T00:00:00Z", read.facts, read.probes)
    facts = check(snapshot, MATRICES).snapshot.facts
    assert facts["torch.ngc_release"].value == "24.11"
    assert facts["torch.cuda.version"].value == "12.6"
    assert "torch.arch_list" not in facts
    assert "torch.build_tag" not in facts
