"""Logs of TensorFlow from 0.12 to today, and of XLA."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.importing import absent, facts, holds, is_linear, prefixes_hold

NAME = "tensorflow_log"

OF_1_0 = """\
I tensorflow/core/common_runtime/gpu/gpu_device.cc:885] Found device 0 with properties: \n\
name: GeForce GTX 970
major: 5 minor: 2 memoryClockRate (GHz) 1.253
pciBusID 0000:01:00.0
Total memory: 3.94GiB
Free memory: 3.88GiB
I tensorflow/core/common_runtime/gpu/gpu_device.cc:975] Creating TensorFlow device (/gpu:0) -> \
(device: 0, name: GeForce GTX 970, pci bus id: 0000:01:00.0)
"""
OF_1_15 = """\
2019-11-04 14:16:59.671926: I tensorflow/stream_executor/platform/default/dso_loader.cc:44] \
Successfully opened dynamic library libcuda.so.1
2019-11-04 14:16:59.684998: I tensorflow/core/common_runtime/gpu/gpu_device.cc:1618] \
Found device 0 with properties: \n\
name: GeForce GTX 980 Ti major: 5 minor: 2 memoryClockRate(GHz): 1.076
pciBusID: 0000:01:00.0
2019-11-04 14:16:59.685168: I tensorflow/stream_executor/platform/default/dso_loader.cc:44] \
Successfully opened dynamic library libcudart.so.10.0
"""
OF_2_3_ON_WINDOWS = """\
2020-08-29 18:45:48.778870: I tensorflow/stream_executor/platform/default/dso_loader.cc:48] \
Successfully opened dynamic library cudart64_101.dll
2020-08-29 18:45:52.566076: I tensorflow/core/common_runtime/gpu/gpu_device.cc:1716] \
Found device 0 with properties: \n\
pciBusID: 0000:01:00.0 name: GeForce GTX 1060 3GB computeCapability: 6.1
coreClock: 1.7085GHz coreCount: 9 deviceMemorySize: 3.00GiB deviceMemoryBandwidth: 178.99GiB/s
"""
OF_TODAY = """\
I0000 00:00:1712345678.123456   12345 gpu_device.cc:2020] Created device \
/job:localhost/replica:0/task:0/device:GPU:0 with 9652 MB memory:  -> device: 0, name: NVIDIA \
GeForce RTX 3080, pci bus id: 0000:01:00.0, compute capability: 8.6
I0000 00:00:1712345678.123456   12345 gpu_device.cc:2020] Created device \
/job:localhost/replica:0/task:0/device:GPU:1 with 22298 MB memory:  -> device: 1, name: NVIDIA \
GeForce RTX 3090, pci bus id: 0000:02:00.0, compute capability: 8.6
I0000 00:00:1712345679.123456   12400 cuda_dnn.cc:529] Loaded cuDNN version 90300
"""
MISSING = """\
2021-02-10 11:00:00.000000: W tensorflow/stream_executor/platform/default/dso_loader.cc:60] Could \
not load dynamic library 'libcudart.so.11.0'; dlerror: libcudart.so.11.0: cannot open shared \
object file: No such file or directory; LD_LIBRARY_PATH: /usr/local/cuda-10.1/lib64:/opt/x
"""
MISMATCH = """\
E tensorflow/stream_executor/cuda/cuda_diagnostics.cc:313] kernel version 470.57.2 does not match \
DSO version 470.63.1 -- cannot find working devices in this configuration
"""
BUILD = """\
OrderedDict([('cpu_compiler', '/usr/bin/gcc'), ('cuda_compute_capabilities', ['sm_35', 'sm_50', \
'compute_80']), ('cuda_version', '11.2'), ('cudnn_version', '8'), ('is_cuda_build', True)])
"""
SAMPLES = (OF_1_0, OF_1_15, OF_2_3_ON_WINDOWS, OF_TODAY, MISSING, MISMATCH, BUILD)


class TestDevices:
    def test_of_1_0(self) -> None:
        assert facts(NAME, OF_1_0) == {
            "gpu.0.name": "GeForce GTX 970",
            "gpu.0.compute_capability": "5.2",
            "gpu.0.pci.address": "0000:01:00.0",
        }

    def test_of_1_15(self) -> None:
        assert facts(NAME, OF_1_15) == {
            "gpu.0.name": "GeForce GTX 980 Ti",
            "gpu.0.compute_capability": "5.2",
            "gpu.0.pci.address": "0000:01:00.0",
            "cuda.runtime.version": "10.0",
        }

    def test_of_2_3_on_windows(self) -> None:
        assert facts(NAME, OF_2_3_ON_WINDOWS) == {
            "gpu.0.name": "GeForce GTX 1060 3GB",
            "gpu.0.compute_capability": "6.1",
            "gpu.0.pci.address": "0000:01:00.0",
            "cuda.runtime.version": "10.1",
        }

    def test_of_today(self) -> None:
        assert facts(NAME, OF_TODAY) == {
            "gpu.0.name": "NVIDIA GeForce RTX 3080",
            "gpu.0.compute_capability": "8.6",
            "gpu.0.pci.address": "0000:01:00.0",
            "gpu.1.name": "NVIDIA GeForce RTX 3090",
            "gpu.1.compute_capability": "8.6",
            "gpu.1.pci.address": "0000:02:00.0",
            "cudnn.version": "9.3.0",
        }

    def test_gpu_that_is_too_old(self) -> None:
        text = (
            "Ignoring visible gpu device (device: 1, name: GeForce GTX 460, pci bus id: "
            "0000:03:00.0) with Cuda compute capability 2.1. The minimum required Cuda "
            "capability is 3.0.\n"
        )
        assert facts(NAME, text) == {
            "gpu.1.name": "GeForce GTX 460",
            "gpu.1.compute_capability": "2.1",
            "gpu.1.pci.address": "0000:03:00.0",
        }

    def test_number_of_another_process_is_not_mixed_in(self) -> None:
        other = OF_TODAY.splitlines()[1].replace("device: 1,", "device: 0,")
        told = facts(NAME, OF_TODAY.splitlines()[0] + "\n" + other + "\n")
        assert told["gpu.0.name"] == "NVIDIA GeForce RTX 3080"
        assert told["gpu.0.pci.address"] == "0000:01:00.0"

    def test_xla(self) -> None:
        text = (
            "XLA service 0x7f0 initialized for platform CUDA\n"
            "  StreamExecutor device (0): Tesla T4, Compute Capability 7.5\n"
        )
        assert facts(NAME, text) == {
            "gpu.0.name": "Tesla T4",
            "gpu.0.compute_capability": "7.5",
        }


class TestDriver:
    def test_mismatch_gives_releases_their_nought_back(self) -> None:
        told = facts(NAME, MISMATCH)
        assert told["driver.module.version"] == "470.57.02"
        assert told["driver.library.version"] == "470.63.01"

    def test_release_of_two_parts(self) -> None:
        told = facts(NAME, "libcuda reported version is: 410.78.0\n")
        assert told["driver.libcuda.version"] == "410.78"

    def test_what_the_kernel_reports(self) -> None:
        text = (
            "libcuda reported version is: 535.104.5\n"
            "kernel reported version is: Permission denied: could not open driver version path\n"
        )
        told = facts(NAME, text)
        assert told["driver.libcuda.version"] == "535.104.05"
        assert "driver.module.version" not in told


class TestLibraries:
    def test_cudnn_older_than_the_build(self) -> None:
        line = (
            "E tensorflow/stream_executor/cuda/cuda_dnn.cc:362] Loaded runtime CuDNN library: "
            "8.0.5 but source was compiled with: 8.1.0.  CuDNN library needs to have matching\n"
        )
        assert facts(NAME, line) == {
            "cudnn.version": "8.0.5",
            "tensorflow.cudnn.version": "8.1.0",
        }
        jax = line.replace("tensorflow/", "external/xla/xla/")
        assert facts(NAME, jax)["jaxlib.cudnn.version"] == "8.1.0"
        inside = line.replace("tensorflow/", "external/local_xla/xla/")
        assert facts(NAME, inside)["tensorflow.cudnn.version"] == "8.1.0"

    def test_cudnn_of_1_x(self) -> None:
        line = (
            "E tensorflow/stream_executor/cuda/cuda_dnn.cc:378] Loaded runtime CuDNN library: "
            "7102 (compatibility version 7100) but source was compiled with 7004 (compatibility "
            "version 7000).\n"
        )
        assert facts(NAME, line)["cudnn.version"] == "7.1.2"
        assert facts(NAME, line)["tensorflow.cudnn.version"] == "7.0.4"

    def test_search_path(self) -> None:
        assert facts(NAME, MISSING) == {"env.LD_LIBRARY_PATH": "/usr/local/cuda-10.1/lib64:/opt/x"}

    def test_cudart_11_is_the_name_of_many_releases(self) -> None:
        assert "cuda.runtime.version" not in facts(
            NAME, "Successfully opened dynamic library libcudart.so.11.0\n"
        )


class TestBuild:
    def test_linux(self) -> None:
        assert facts(NAME, BUILD) == {
            "tensorflow.arch_list": ["sm_35", "sm_50", "compute_80"],
            "tensorflow.cuda.version": "11.2",
            "tensorflow.cudnn.version": "8",
        }

    def test_windows(self) -> None:
        text = "{'cuda_version': '64_112', 'cudnn_version': '64_8', 'is_cuda_build': True}\n"
        assert facts(NAME, text)["tensorflow.cuda.version"] == "11.2"

    def test_cpu(self) -> None:
        text = "OrderedDict([('is_cuda_build', False), ('is_rocm_build', False)])\n"
        assert "tensorflow.cuda.version" in absent(NAME, text.replace("is_rocm", "cuda_x"))


@given(st.sampled_from(SAMPLES), st.integers(0, 5000))
def test_cut_anywhere(text: str, at: int) -> None:
    prefixes_hold(NAME, text, at)


@given(st.lists(st.sampled_from("".join(SAMPLES).splitlines()) | st.text(max_size=60)))
def test_any_text(lines: list[str]) -> None:
    holds(NAME, "\n".join(lines))


def test_no_text_takes_long() -> None:
    is_linear(NAME, "device: 0, name: ", "found device 0 with properties", "'cuda_version' ")
