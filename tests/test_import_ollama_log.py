"""Logs of Ollama from its first releases to today, and of llama.cpp."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.importing import facts, holds, is_linear, prefixes_hold

NAME = "ollama_log"

OF_0_1_20 = """\
2024/01/14 19:50:06 gpu.go:203: Searching for GPU management library libnvidia-ml.so
2024/01/14 19:50:06 gpu.go:248: Discovered GPU libraries: [/usr/lib/libnvidia-ml.so.535.129.03]
2024/01/14 19:50:06 gpu.go:94: Nvidia GPU detected
2024/01/14 19:50:06 gpu.go:138: CUDA GPU is too old. Falling back to CPU mode. Compute \
Capability detected: 5.2
"""
OF_0_5 = """\
time=2025-02-28T15:45:20.1Z level=INFO source=routes.go:1238 msg="Listening on [::]:11434 \
(version 0.5.12)"
Feb 28 15:45:27 h ollama[1169310]: initializing /usr/lib/x86_64-linux-gnu/libcuda.so.570.86.16
Feb 28 15:45:27 h ollama[1169310]: CUDA driver version: 12.8
Feb 28 15:45:27 h ollama[1169310]: [GPU-0aa928c0-ece6-7698-4db1-ac130bfe47b7] Compute \
Capability 12.0
time=2025-02-28T15:45:27.887Z level=INFO source=types.go:130 msg="inference compute" \
id=GPU-0aa928c0-ece6-7698-4db1-ac130bfe47b7 library=cuda variant=v12 compute=12.0 driver=12.8 \
name="NVIDIA GeForce RTX 5090" total="31.4 GiB" available="30.9 GiB"
time=2025-02-28T15:45:27.887Z level=INFO source=types.go:130 msg="inference compute" \
id=GPU-2f2b88b7-dca2-5058-5b25-e203ebd8ed18 library=cuda variant=v12 compute=8.6 driver=12.8 \
name="NVIDIA A40" total="44.4 GiB" available="44.2 GiB"
"""
OF_TODAY = """\
time=2025-10-20T10:00:00Z level=INFO source=types.go:112 msg="inference compute" \
id=GPU-d6de3398-9932-6902-11ec-fee8e424c8a2 filter_id="" library=CUDA compute=7.5 name=CUDA0 \
description="NVIDIA GeForce RTX 2080 Ti" libdirs=ollama,cuda_v12 driver=12.1 \
pci_id=0000:01:00.0 type=discrete total="11.0 GiB" available="9.9 GiB"
"""
TOO_OLD = """\
level=WARN source=cuda_compat.go msg="NVIDIA driver too old" driver=535.309.01 minimum=550
level=INFO msg="inference compute" id=cpu library=cpu
"""
LLAMA = """\
ggml_cuda_init: GGML_CUDA_FORCE_MMQ:    no
ggml_cuda_init: found 2 CUDA devices:
  Device 0: NVIDIA GeForce RTX 3090, compute capability 8.6, VMM: yes
  Device 1: Tesla P40, compute capability 6.1, VMM: yes
build: 3920 (edc26566) with cc (Debian 12.2.0-14) 12.2.0 for x86_64-linux-gnu
"""
SAMPLES = (OF_0_1_20, OF_0_5, OF_TODAY, TOO_OLD, LLAMA)


def test_first_releases() -> None:
    assert facts(NAME, OF_0_1_20) == {
        "gpu.0.compute_capability": "5.2",
        "driver.library.version": "535.129.03",
    }


def test_first_releases_with_several_gpus_tell_the_lowest_of_them() -> None:
    text = OF_0_1_20 + "[0] CUDA totalMem 11264 mb\n[1] CUDA totalMem 4096 mb\n"
    assert "gpu.0.compute_capability" not in facts(NAME, text)


def test_of_0_5() -> None:
    assert facts(NAME, OF_0_5) == {
        "ollama.version": "0.5.12",
        "driver.library.version": "570.86.16",
        "driver.cuda.version": "12.8",
        "gpu.0.name": "NVIDIA GeForce RTX 5090",
        "gpu.0.compute_capability": "12.0",
        "gpu.0.uuid": "GPU-0aa928c0-ece6-7698-4db1-ac130bfe47b7",
        "gpu.1.name": "NVIDIA A40",
        "gpu.1.compute_capability": "8.6",
        "gpu.1.uuid": "GPU-2f2b88b7-dca2-5058-5b25-e203ebd8ed18",
    }


def test_of_today_names_the_gpu_elsewhere() -> None:
    told = facts(NAME, OF_TODAY)
    assert told["gpu.0.name"] == "NVIDIA GeForce RTX 2080 Ti"
    assert told["driver.cuda.version"] == "12.1"


def test_a_second_start_of_the_server_adds_no_gpu() -> None:
    assert facts(NAME, OF_0_5 + OF_0_5) == facts(NAME, OF_0_5)


def test_driver_is_the_release_where_it_looks_like_one() -> None:
    assert facts(NAME, TOO_OLD) == {"driver.version": "535.309.01"}
    assert facts(NAME, "CUDA driver version: 545.23.08\n") == {"driver.version": "545.23.08"}


def test_other_makers() -> None:
    text = OF_TODAY.replace("library=CUDA", "library=ROCm").replace(
        "driver=12.1", "driver=60342.13"
    )
    assert facts(NAME, text) == {}


def test_version() -> None:
    assert facts(NAME, "ollama version is 0.11.4\n") == {"ollama.version": "0.11.4"}


def test_llama() -> None:
    assert facts(NAME, LLAMA) == {
        "gpu.0.name": "NVIDIA GeForce RTX 3090",
        "gpu.0.compute_capability": "8.6",
        "gpu.1.name": "Tesla P40",
        "gpu.1.compute_capability": "6.1",
    }
    amd = "  Device 0: AMD Radeon RX 7900 XTX, compute capability 11.0, VMM: no\n"
    assert "gpu.0.name" in facts(NAME, amd.replace("AMD Radeon RX 7900 XTX", "NVIDIA L4"))
    assert facts(NAME, amd) == {}


@given(st.sampled_from(SAMPLES), st.integers(0, 5000))
def test_cut_anywhere(text: str, at: int) -> None:
    prefixes_hold(NAME, text, at)


@given(st.lists(st.sampled_from("\n".join(SAMPLES).splitlines()) | st.text(max_size=60)))
def test_any_text(lines: list[str]) -> None:
    holds(NAME, "\n".join(lines))


def test_no_text_takes_long() -> None:
    is_linear(NAME, 'msg="inference compute" ', "CUDA driver version", "[0] CUDA ")
