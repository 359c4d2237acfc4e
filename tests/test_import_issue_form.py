"""Forms that people fill in, and how they write their GPUs and systems."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envaudit.importers import Draft
from envaudit.importers.gpu_words import GPUS_TOLD, gpu_names
from envaudit.importers.os_words import read_os
from tests.importing import absent, facts, holds, is_linear, prefixes_hold

NAME = "issue_form"

TENSORFLOW = """\
**System information**
- Have I written custom code (as opposed to using a stock example script provided): Yes
- OS Platform and Distribution (e.g., Linux Ubuntu 16.04): Linux Ubuntu 18.04
- TensorFlow installed from (source or binary): binary
- TensorFlow version (use command below): v2.4.0-49-g85c8b2a817f 2.4.1
- Python version: 3.8.5
- CUDA/cuDNN version: 11.0 / 8
- GPU model and memory: GeForce RTX 3080 10GB
"""
HEADINGS = """\
### Tensorflow Version

2.8.0

### OS Platform and Distribution

Ubuntu 22.04

### Python version

Python 3.9.16 | packaged by conda-forge | (main, Feb  1 2023, 21:39:03)

### CUDA/cuDNN version

11.2/8 in conda env

### GPU model and memory

_No response_
"""
BOLD = """\
**OS**: Windows 11
**GPU**: 2x A100 80GB
**Driver version**: 535.104.05 (open)
**PyTorch version**: 2.1.0+cu118
CUDA (`python -c 'import torch; print(torch.version.cuda)'`): 11.8
"""
TABLE = """\
| GPU | NVIDIA RTX A6000 |
| NVIDIA Driver | 550.54.14 |
| Python | 3.10 |
| vLLM version | 0.6.3 |
| CUDA | 12.2 |
"""
INLINE = "torch 2.0.1 / CUDA 11.8 / Windows 11\n"
BARE = "GPU\nNVIDIA RTX 4090\n\nOperating System\nArch Linux\n"
BLOCK = "runned on\npytorch 1.4.0\ncuda 10.1\nTesla K80\n\nTraceback\n"
SAMPLES = (TENSORFLOW, HEADINGS, BOLD, TABLE, INLINE, BARE, BLOCK)


class TestForms:
    def test_of_tensorflow(self) -> None:
        assert facts(NAME, TENSORFLOW) == {
            "os.id": "ubuntu",
            "os.version": "18.04",
            "tensorflow.version": "2.4.1",
            "python.version": "3.8.5",
            "gpu.0.name": "GeForce RTX 3080",
        }

    def test_headings(self) -> None:
        assert facts(NAME, HEADINGS) == {
            "tensorflow.version": "2.8.0",
            "os.id": "ubuntu",
            "os.version": "22.04",
            "python.version": "3.9.16",
        }

    def test_bold(self) -> None:
        assert facts(NAME, BOLD) == {
            "os.id": "windows",
            "os.version": "11",
            "gpu.0.name": "A100",
            "gpu.1.name": "A100",
            "driver.version": "535.104.05",
            "torch.version": "2.1.0+cu118",
            "torch.cuda.version": "11.8",
        }

    def test_table(self) -> None:
        assert facts(NAME, TABLE) == {
            "gpu.0.name": "NVIDIA RTX A6000",
            "driver.version": "550.54.14",
            "python.version": "3.10",
            "dist.vllm.version": "0.6.3",
        }

    def test_one_line(self) -> None:
        assert facts(NAME, INLINE) == {
            "torch.version": "2.0.1",
            "os.id": "windows",
            "os.version": "11",
        }

    def test_one_under_another(self) -> None:
        assert facts(NAME, BLOCK) == {"torch.version": "1.4.0", "gpu.0.name": "Tesla K80"}

    @pytest.mark.parametrize("text", ["Tesla K80\n", "torch 1.4\n\nTesla K80\n", "A100\nH100\n"])
    def test_no_list_under_one_another(self, text: str) -> None:
        assert facts(NAME, text) == {}

    def test_one_line_with_a_title(self) -> None:
        text = "Environment: Python 3.11.4, torch 2.3.0+cu121, CUDA 12.1, Ubuntu 22.04, A100\n"
        assert facts(NAME, text) == {
            "python.version": "3.11.4",
            "torch.version": "2.3.0+cu121",
            "os.id": "ubuntu",
            "os.version": "22.04",
            "gpu.0.name": "A100",
        }

    def test_graphics_of_another_maker_beside_it(self) -> None:
        text = "- GPU: NVIDIA GeForce GTX 1650 / Intel UHD Graphics\n"
        assert facts(NAME, text) == {"gpu.0.name": "NVIDIA GeForce GTX 1650"}

    def test_label_alone(self) -> None:
        assert facts(NAME, BARE) == {"gpu.0.name": "NVIDIA RTX 4090", "os.id": "arch"}

    def test_no_cuda(self) -> None:
        assert absent(NAME, "- torch.version.cuda: None\n") == {"torch.cuda.version"}


class TestWhatCanMeanTwoThings:
    @pytest.mark.parametrize(
        "line",
        [
            "- CUDA: 12.2",
            "- CUDA version: 12.1",
            "CUDA/cuDNN version: 11.2/8.1",
            "- Driver version: 535 or later",
            "- Driver version: >=535.54.03",
            "- NVIDIA driver: 535",
            "- Python version: 3.8, 3.9 and 3.10",
            "- Python: >=3.8",
            "- PyTorch version: 2.0 or newer",
            "- PyTorch version: 2.1.0, 2.2.0",
            "- PyTorch: latest",
            "- GPU: any",
            "- GPU: RTX 3090 or RTX 4090",
            "- GPU: RTX 6000",
            "- GPU: Titan X",
            "- GPU: Apple M2 Max",
            "- GPU: AMD Radeon RX 7900 XTX",
            "- OS: Ubuntu 22.04 and Windows 11",
            "- OS: Linux",
            "we use torch 2.0 / CUDA 11 / our own fork",
            "The GPU: it is slow, so RTX 3090 is better",
            "Tested on python: yes",
        ],
    )
    def test_tells_nothing(self, line: str) -> None:
        assert facts(NAME, f"{line}\n") == {}

    @pytest.mark.parametrize(
        ("line", "told"),
        [
            ("My GPU is an RTX 3080, drivers are new.", {"gpu.0.name": "RTX 3080"}),
            ("The graphics card is a NVIDIA GeForce GTX 1080 Ti and it is old",
             {"gpu.0.name": "NVIDIA GeForce GTX 1080 Ti"}),
            ("GPU: 2x Tesla T4. Why is it slow?",
             {"gpu.0.name": "Tesla T4", "gpu.1.name": "Tesla T4"}),
            ("My card: RTX 4070 Super, driver 572.16", {"gpu.0.name": "RTX 4070 Super"}),
            ("my GPU is RTX 3090 or 4090", {}),
            ("My OS is Windows 11. My tensorflow version is 2.12.0. My GPUs are RTX 2060 and UHD",
             {"os.id": "windows", "os.version": "11", "tensorflow.version": "2.12.0",
              "gpu.0.name": "RTX 2060"}),
            ("GPU: GTX 1650, driver 537.42", {"gpu.0.name": "GTX 1650"}),
            ("my gpus are RTX 3090 and RTX 4090",
             {"gpu.0.name": "RTX 3090", "gpu.1.name": "RTX 4090"}),
            ("the GPU is slow and the driver is 535.54.03", {}),
            ("my driver is 535 or later", {}),
            ("the GPU is rtx ready", {}),
            ("pip: onnxruntime-gpu 1.17.1, python 3.10.11",
             {"dist.onnxruntime-gpu.version": "1.17.1", "python.version": "3.10.11"}),
        ],
    )  # fmt: skip
    def test_sentences(self, line: str, told: dict[str, str]) -> None:
        assert facts(NAME, f"{line}\n") == told

    def test_a_driver_may_be_told_by_the_cuda_that_it_supports(self) -> None:
        assert facts(NAME, "CUDA driver version: 12.2\n") == {}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("NVIDIA GeForce RTX 2080 Ti", ["NVIDIA GeForce RTX 2080 Ti"]),
        ("2x A100 80GB", ["A100", "A100"]),
        ("8xH100", ["H100"] * 8),
        ("4 * NVIDIA A100-SXM4-80GB", ["NVIDIA A100-SXM4-80GB"] * 4),
        ("RTX 3090 (24 GB), GTX 1080 Ti", ["RTX 3090", "GTX 1080 Ti"]),
        ("rtx3060ti", ["rtx 3060 ti"]),
        ("GTX TITAN X", ["GTX TITAN X"]),
        ("Nvidia Tesla P40 24GB x2", ["Nvidia Tesla P40"] * 2),
        ("T4 (Colab)", ["T4"]),
        ("3x A40 48GB GPUs", ["A40"] * 3),
        ("RTX 3090/4090", []),
        ("99x A100", []),
        ("none", []),
        ("", []),
    ],
)
def test_names_of_gpus(text: str, names: list[str]) -> None:
    assert gpu_names(text) == names


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("Linux Ubuntu 18.04", {"os.id": "ubuntu", "os.version": "18.04"}),
        ("Ubuntu 22.04.3 LTS", {"os.id": "ubuntu", "os.version": "22.04"}),
        ("CentOS Linux release 7.9.2009 (Core)", {"os.id": "centos", "os.version": "7"}),
        ("Debian GNU/Linux 12 (bookworm)", {"os.id": "debian", "os.version": "12"}),
        (
            "WSL2 Ubuntu 22.04 on Windows 11",
            {"os.wsl": True, "wsl.version": "2", "os.id": "ubuntu", "os.version": "22.04"},
        ),
        ("#1 SMP Ubuntu 5.4", {}),
        ("Linux", {}),
    ],
)
def test_systems(text: str, told: dict[str, object]) -> None:
    draft = Draft()
    read_os(draft, text, "form", 1)
    assert {fact.name: fact.value for fact in draft.done().facts} == told


@given(
    st.text(max_size=120) | st.from_regex(r"([0-9]{1,3} ?x ?)?(RTX|A|GTX ?)[0-9]{1,4}[ ,+].{0,20}")
)
def test_any_gpu(text: str) -> None:
    names = gpu_names(text)
    assert len(names) <= GPUS_TOLD
    assert all(name.strip() == name and name for name in names)


@given(st.sampled_from(SAMPLES), st.integers(0, 5000))
def test_cut_anywhere(text: str, at: int) -> None:
    prefixes_hold(NAME, text, at)


@given(st.lists(st.sampled_from("\n".join(SAMPLES).splitlines()) | st.text(max_size=60)))
def test_any_text(lines: list[str]) -> None:
    holds(NAME, "\n".join(lines))


def test_no_text_takes_long() -> None:
    is_linear(NAME, "- GPU: ", "a = ", "`a` ")


@pytest.mark.parametrize(
    ("line", "fact", "value"),
    [
        ("显卡: GeForce RTX 3090", "gpu.0.name", "GeForce RTX 3090"),
        ("显卡型号：RTX 4070 Ti", "gpu.0.name", "RTX 4070 Ti"),
        ("驱动版本：535.104.05", "driver.version", "535.104.05"),
        ("- Grafikkarte: RTX 3060", "gpu.0.name", "RTX 3060"),
        ("Placa de vídeo: RTX 5070 Ti", "gpu.0.name", "RTX 5070 Ti"),
        ("Видеокарта: RTX 3080", "gpu.0.name", "RTX 3080"),
        ("GPU 1: NVIDIA A10G", "gpu.1.name", "NVIDIA A10G"),
    ],
)
def test_labels_in_other_languages_and_numbered(line: str, fact: str, value: str) -> None:
    assert facts(NAME, line + "\n")[fact] == value
