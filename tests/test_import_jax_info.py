"""`jax.print_environment_info()` from 2021 to today, and what JAX says of CUDA's libraries."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.importing import facts, holds, is_linear, prefixes_hold

NAME = "jax_info"

BEFORE_PLATFORM = """\
jax:    0.3.17
jaxlib: 0.3.15
numpy:  1.21.6
python: 3.7.13 (default, Apr 24 2022, 01:04:09)  [GCC 7.5.0]
jax.devices (1 total, 1 local): [GpuDevice(id=0, process_index=0)]
process_count: 1

$ nvidia-smi
"""
OF_2024 = """\
jax:    0.4.33
jaxlib: 0.4.33
numpy:  1.26.4
python: 3.10.12 (main, Sep 11 2024, 15:47:36) [GCC 11.4.0]
jax.devices (8 total, 8 local): [CudaDevice(id=0) CudaDevice(id=1) ... CudaDevice(id=7)]
process_count: 1
platform: uname_result(system='Linux', node='n1', release='6.8.0-1017-aws', \
version='#18~22.04.1-Ubuntu SMP Thu Oct  3 19:57:42 UTC 2024', machine='x86_64')
"""
OF_TODAY = """\
jax:    0.6.2
jaxlib: 0.6.2
numpy:  2.3.1
python: 3.13.5 (main, Jun 26 2025, 21:22:36) [Clang 20.1.4 ]
device info: NVIDIA GeForce RTX 4090-1, 1 local devices"
process_count: 1
platform: uname_result(system='Linux', node='n', release='6.6.87.2-microsoft-standard-WSL2', \
version='#1 SMP', machine='x86_64')
"""
ON_A_CPU = """\
jax:    0.4.26
jaxlib: 0.4.26
numpy:  1.26.4
python: 3.11.8
jax.devices (1 total, 1 local): [CpuDevice(id=0)]
"""
LISTED = """\
Environment:

* jax: 0.4.13
- **jaxlib** version: 0.4.13+cuda12.cudnn89
- Python: 3.9.18
"""
ISSUES = """\
RuntimeError: Unable to use CUDA because of the following issues with CUDA components:
Outdated CUDA installation found.
Version JAX was built against: 12030
Minimum supported: 12010
Installed version: 11080
The local installation version must be no lower than 12010.
--------------------------------------------------
Outdated cuDNN installation found.
Version JAX was built against: 8907
Minimum supported: 8900
Installed version: 8600
The local installation version must be no lower than 8900.
"""
SAMPLES = (BEFORE_PLATFORM, OF_2024, OF_TODAY, ON_A_CPU, LISTED, ISSUES)


class TestEnvironment:
    def test_of_2022(self) -> None:
        assert facts(NAME, BEFORE_PLATFORM) == {
            "jax.version": "0.3.17",
            "jaxlib.version": "0.3.15",
            "dist.numpy.version": "1.21.6",
            "python.version": "3.7.13",
            "jax.available": True,
        }

    def test_of_2024(self) -> None:
        assert facts(NAME, OF_2024) == {
            "jax.version": "0.4.33",
            "jaxlib.version": "0.4.33",
            "dist.numpy.version": "1.26.4",
            "python.version": "3.10.12",
            "jax.available": True,
            "kernel.release": "6.8.0-1017-aws",
            "kernel.version": "6.8.0",
            "os.wsl": False,
            "os.arch": "x86_64",
        }

    def test_of_today_names_the_device(self) -> None:
        told = facts(NAME, OF_TODAY)
        assert told["gpu.0.name"] == "NVIDIA GeForce RTX 4090"
        assert told["jax.available"] is True
        assert told["os.wsl"] is True

    def test_no_gpu(self) -> None:
        assert facts(NAME, ON_A_CPU)["jax.available"] is False
        text = OF_TODAY.replace("NVIDIA GeForce RTX 4090-1", "cpu-1")
        assert facts(NAME, text)["jax.available"] is False
        assert "gpu.0.name" not in facts(NAME, text)

    def test_as_a_list(self) -> None:
        assert facts(NAME, LISTED) == {
            "jax.version": "0.4.13",
            "jaxlib.version": "0.4.13+cuda12.cudnn89",
            "python.version": "3.9.18",
        }

    def test_other_programs_that_print_their_python(self) -> None:
        assert facts(NAME, "jaxtyping is installed\npython: 3.8.10\nnumpy: 1.20.0\n") == {}


class TestMessages:
    def test_old_form(self) -> None:
        text = (
            "CUDA backend failed to initialize: Found CUDA version 11080, but JAX was built "
            "against version 12010, which is newer.\n"
            "CUDA backend failed to initialize: Found cuDNN version 8500, but JAX was built "
            "against version 8600, which is newer.\n"
        )
        assert facts(NAME, text) == {
            "cuda.runtime.version": "11.8",
            "jaxlib.cuda.version": "12.1",
            "cudnn.version": "8.5.0",
            "jaxlib.cudnn.version": "8.6.0",
        }

    def test_list_of_issues(self) -> None:
        assert facts(NAME, ISSUES) == {
            "cuda.runtime.version": "11.8",
            "jaxlib.cuda.version": "12.3",
            "cudnn.version": "8.6.0",
            "jaxlib.cudnn.version": "8.9.7",
        }

    def test_cudnn_9_counts_in_other_steps(self) -> None:
        text = "Found cuDNN version 90100, but JAX was built against version 92400, JAX\n"
        assert facts(NAME, text) == {
            "cudnn.version": "9.1.0",
            "jaxlib.cudnn.version": "9.24.0",
        }

    @pytest.mark.parametrize(
        ("text", "told"),
        [
            (
                (
                    "RuntimeError: jaxlib version 0.4.26 is newer than and incompatible with jax "
                    "version 0.4.25. Please update your jax and/or jaxlib packages."
                ),
                {"jaxlib.version": "0.4.26", "jax.version": "0.4.25"},
            ),
            (
                (
                    "RuntimeError: jaxlib is version 0.1.65, but this version of jax requires "
                    "version >=0.1.69."
                ),
                {"jaxlib.version": "0.1.65"},
            ),
            (
                (
                    "JAX plugin jax_cuda12_plugin version 0.9.2 is installed, but it "
                    "is not compatible with the installed jaxlib version 0.9.0.1, so it will not be"
                ),
                {"dist.jax-cuda12-plugin.version": "0.9.2", "jaxlib.version": "0.9.0.1"},
            ),
            (
                (
                    "jax: Device 0 has CUDA compute capability 3.7 which is lower than the minimum "
                    "supported compute capability 5.2."
                ),
                {"gpu.0.compute_capability": "3.7"},
            ),
        ],
    )
    def test_versions_in_sentences(self, text: str, told: dict[str, str]) -> None:
        assert facts(NAME, text + "\n") == told


@given(st.sampled_from(SAMPLES), st.integers(0, 5000))
def test_cut_anywhere(text: str, at: int) -> None:
    prefixes_hold(NAME, text, at)


@given(st.lists(st.sampled_from("".join(SAMPLES).splitlines()) | st.text(max_size=60)))
def test_any_text(lines: list[str]) -> None:
    holds(NAME, "\n".join(lines))


def test_no_text_takes_long() -> None:
    is_linear(NAME, "jax: 1.0", "Found CUDA version 1")
