"""First lines of programs: YOLO, web UIs, containers, interpreters."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.importing import facts, holds, is_linear, prefixes_hold

NAME = "banners"

CASES = [
    ("YOLOv5 v4.0-14-gb75c432 torch 1.7.1 CPU\n", {"torch.version": "1.7.1"}),
    (
        (
            "YOLOv5 🚀 v7.0 Python-3.8.10 torch-1.13.1+cu117 CUDA:0 (NVIDIA GeForce RTX 3060, "
            "12288MiB)\n                                  CUDA:1 (Tesla T4, 15110MiB)\n"
        ),
        {
            "torch.version": "1.13.1+cu117",
            "python.version": "3.8.10",
            "gpu.0.name": "NVIDIA GeForce RTX 3060",
            "gpu.1.name": "Tesla T4",
        },
    ),
    (
        "Ultralytics 8.3.0 🚀 Python-3.12.3 torch-2.4.1+cpu CPU (Intel Core(TM) i7-9750H)\n",
        {
            "torch.version": "2.4.1+cpu",
            "python.version": "3.12.3",
            "dist.ultralytics.version": "8.3.0",
        },
    ),
    (
        "Using torch 1.7.0+cu101 CUDA:0 (Tesla V100-SXM2-16GB, 16130MB)\n",
        {"torch.version": "1.7.0+cu101", "gpu.0.name": "Tesla V100-SXM2-16GB"},
    ),
    (
        (
            "Total VRAM 24576 MB, total RAM 65277 MB\npytorch version: 2.3.1+cu121\n"
            "xformers version: 0.0.27\nSet vram state to: NORMAL_VRAM\n"
            "Device: cuda:0 NVIDIA GeForce RTX 3090 : cudaMallocAsync\n"
        ),
        {
            "torch.version": "2.3.1+cu121",
            "dist.xformers.version": "0.0.27",
            "gpu.0.name": "NVIDIA GeForce RTX 3090",
        },
    ),
    (
        (
            "Python 3.10.6 (tags/v3.10.6:9c7b4bd, Aug  1 2022, 21:53:49) [MSC v.1932 64 bit]\n"
            "Version: v1.9.3\nLaunching Web UI with arguments: --xformers\n"
        ),
        {"python.version": "3.10.6"},
    ),
    (
        (
            "10:00:00-000000 INFO     Device: device=NVIDIA GeForce RTX 4090 n=1 arch=sm_90 "
            "capability=(8, 9) cuda=12.1 cudnn=8907 driver=552.22\n"
        ),
        {
            "gpu.0.name": "NVIDIA GeForce RTX 4090",
            "gpu.0.compute_capability": "8.9",
            "torch.cuda.version": "12.1",
            "cudnn.version": "8.9.7",
            "driver.version": "552.22",
        },
    ),
    (
        "[2024-05-01 10:00:00,000]::[InvokeAI]::INFO --> Using torch device: NVIDIA RTX A4000\n",
        {"gpu.0.name": "NVIDIA RTX A4000"},
    ),
    (
        (
            "=============\n== PyTorch ==\n=============\n\nNVIDIA Release 23.10 (build 71422337)\n"
            "PyTorch Version 2.1.0a0+32f93b1\n\n"
            "ERROR: This container was built for NVIDIA Driver Release 535.86 or later, but\n"
            "       version 470.42.01 was detected and compatibility mode is UNAVAILABLE.\n"
        ),
        {
            "container.image": "PyTorch, NVIDIA Release 23.10",
            "torch.version": "2.1.0a0+32f93b1",
            "driver.version": "470.42.01",
        },
    ),
    (
        (
            "NOTE: CUDA Forward Compatibility mode ENABLED.\n"
            "  Using CUDA 12.2 driver version 535.86.10 with kernel driver version 470.57.02.\n"
        ),
        {
            "driver.compat.version": "535.86.10",
            "driver.version": "470.57.02",
            "driver.module.version": "470.57.02",
        },
    ),
]
SAMPLES = [text for text, _ in CASES]


@pytest.mark.parametrize(("text", "told"), CASES)
def test_facts(text: str, told: dict[str, str]) -> None:
    assert facts(NAME, text) == told


@pytest.mark.parametrize(
    "text",
    [
        "pip install torch-2.1.0 for YOLO\n",
        "requires torch 2.0 or newer\n",
        "Device: cpu\n",
        "Python 3.8 or later is required (see below)\n",
        "Downloading torch-2.1.0-cp310-cp310-manylinux1_x86_64.whl (619.9 MB)\n",
    ],
)
def test_what_is_no_banner(text: str) -> None:
    assert facts(NAME, text) == {}


@given(st.sampled_from(SAMPLES), st.integers(0, 5000))
def test_cut_anywhere(text: str, at: int) -> None:
    prefixes_hold(NAME, text, at)


@given(st.lists(st.sampled_from("\n".join(SAMPLES).splitlines()) | st.text(max_size=60)))
def test_any_text(lines: list[str]) -> None:
    holds(NAME, "\n".join(lines))


def test_no_text_takes_long() -> None:
    is_linear(NAME, "YOLO torch-1.0 ", "device=", "== ", "CUDA:0 (")
