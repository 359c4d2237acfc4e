from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envaudit.importers import Section, hugging_face
from tests.report_laws import (
    assert_lawful,
    assert_parts_agree,
    hostile,
    open_to,
    parts_of,
    read,
    values,
)

TRANSFORMERS_46 = """\
## Environment info

- `transformers` version: 4.6.0.dev0
- Platform: Linux-5.4.0-81-generic-x86_64-with-glibc2.10
- Python version: 3.7.11
- PyTorch version (GPU?): 1.8.1 (True)
- Tensorflow version (GPU?): 2.4.1 (False)
- Using GPU in script?: Yes
- Using distributed or parallel set-up in script?: No
"""

TRANSFORMERS_452 = """\
Copy-and-paste the text below in your GitHub issue and FILL OUT the two last points.

- `transformers` version: 4.52.3
- Platform: Linux-5.15.167.4-microsoft-standard-WSL2-x86_64-with-glibc2.39
- Python version: 3.10.16
- Huggingface_hub version: 0.32.2
- Safetensors version: 0.5.3
- Accelerate version: not installed
- Accelerate config: not found
- DeepSpeed version: 0.16.4
- PyTorch version (accelerator?): 2.7.0+cu128 (CUDA)
- Tensorflow version (GPU?): not installed (NA)
- Flax version (CPU?/GPU?/TPU?): 0.7.4 (gpu)
- Jax version: 0.4.16
- JaxLib version: 0.4.16
- Using distributed or parallel set-up in script?: <fill in>
- Using GPU in script?: <fill in>
- GPU type: NVIDIA A100-SXM4-80GB
"""

TRANSFORMERS_NO_TORCH = """\
- `transformers` version: 4.29.0
- Platform: Windows-10-10.0.19045-SP0
- Python version: 3.11.4
- PyTorch version (GPU?): not installed (NA)
- Flax version (CPU?/GPU?/TPU?): 0.6.9 (cpu)
"""

ACCELERATE = """\
Copy-and-paste the text below in your GitHub issue

- `Accelerate` version: 0.27.2
- Platform: Linux-3.10.0-957.el7.x86_64-x86_64-with-glibc2.17
- Python version: 3.10.9
- Numpy version: 1.26.4
- PyTorch version (GPU?): 2.0.0+cu118 (False)
- PyTorch XPU available: False
- PyTorch NPU available: False
- System RAM: 503.36 GB
- GPU type: NVIDIA GeForce RTX 3090
- `Accelerate` default config:
        - compute_environment: LOCAL_MACHINE
        - distributed_type: MULTI_GPU
        - gpu_ids: all
"""

DIFFUSERS = """\
- 🤗 Diffusers version: 0.33.0.dev0
- Platform: Linux-6.8.0-49-generic-x86_64-with-glibc2.39
- Running on Google Colab?: No
- Python version: 3.10.12
- PyTorch version (GPU?): 2.5.1+cu124 (True)
- Flax version (CPU?/GPU?/TPU?): not installed (NA)
- Huggingface_hub version: 0.27.0
- Transformers version: 4.47.1
- Accelerate version: 1.2.1
- PEFT version: 0.13.2
- Bitsandbytes version: 0.44.1
- Safetensors version: 0.4.4
- xFormers version: not installed
- Accelerator: NVIDIA GeForce RTX 4090, 24564 MiB
NVIDIA GeForce RTX 3060, 12288 MiB VRAM
- Using GPU in script?: <fill in>
"""

HUB = """\
- huggingface_hub version: 0.20.3
- Platform: macOS-13.2-arm64-arm-64bit
- Python version: 3.10.6
- Running in iPython ?: No
- Running in notebook ?: No
- FastAI: N/A
- Tensorflow: N/A
- Torch: 2.1.0
- numpy: 1.26.3
- ENDPOINT: https://huggingface.co
"""

TRL = """\
- Platform: Linux-5.15.0-1048-aws-x86_64-with-glibc2.31
- Python version: 3.11.9
- TRL version: 0.15.0
- PyTorch version: 2.6.0
- accelerator(s): NVIDIA H100 80GB HBM3, NVIDIA H100 80GB HBM3
- Transformers version: 4.49.0
- Liger-Kernel version: 0.5.3
- vLLM version: 0.7.2
"""

LEROBOT = """\
- lerobot version: 0.4.0
- Platform: Linux-6.14.0-29-generic-x86_64-with-glibc2.39
- Python version: 3.12.12
- Huggingface Hub version: 0.35.3
- Datasets version: 4.1.1
- PyTorch version: 2.7.0+cu128
- Is PyTorch built with CUDA support?: True
- Cuda version: 12080
- GPU model: NVIDIA RTX PRO 6000 Blackwell Workstation Edition
"""

LLAMA_FACTORY = """\
- `llamafactory` version: 0.9.1.dev0
- Platform: Linux-5.10.134-x86_64-with-glibc2.35
- Python version: 3.11.9
- PyTorch version: 2.4.0+cu121 (GPU)
- Transformers version: 4.45.2
- GPU type: NVIDIA A800-SXM4-80GB
- DeepSpeed version: 0.15.4
"""

SAMPLES = (
    TRANSFORMERS_46,
    TRANSFORMERS_452,
    TRANSFORMERS_NO_TORCH,
    ACCELERATE,
    DIFFUSERS,
    HUB,
    TRL,
    LEROBOT,
    LLAMA_FACTORY,
)


class TestTransformers:
    def test_with_an_old_python(self) -> None:
        imported = read(hugging_face, TRANSFORMERS_46)
        assert values(imported) == {
            "dist.transformers.version": "4.6.0.dev0",
            "kernel.release": "5.4.0-81-generic",
            "kernel.version": "5.4.0",
            "os.wsl": False,
            "os.arch": "x86_64",
            "os.libc.name": "glibc",
            "python.version": "3.7.11",
            "torch.version": "1.8.1",
            "torch.import": "ok",
            "torch.cuda.available": True,
            "tensorflow.version": "2.4.1",
            "tensorflow.available": False,
        }
        assert "3.7.11" in (open_to(imported, "os.libc.version") or "")

    def test_with_any_accelerator(self) -> None:
        imported = read(hugging_face, TRANSFORMERS_452)
        facts = values(imported)
        assert facts["torch.version"] == "2.7.0+cu128"
        assert facts["torch.cuda.available"] is True
        assert facts["os.wsl"] is True
        assert facts["gpu.0.name"] == "NVIDIA A100-SXM4-80GB"
        assert facts["dist.deepspeed.version"] == "0.16.4"
        assert facts["dist.huggingface-hub.version"] == "0.32.2"
        assert facts["jax.version"] == facts["dist.jax.version"] == "0.4.16"
        assert facts["jaxlib.version"] == "0.4.16"
        assert facts["jax.available"] is True
        assert "tensorflow.version" not in facts
        assert open_to(imported, "dist.accelerate.version") == "the report says 'not installed'"
        assert "gpu.count" not in facts
        assert imported.absent == ()

    @pytest.mark.parametrize(
        ("word", "flag"), [("CUDA", True), ("XPU", False), ("NPU", False), ("NA", False)]
    )
    def test_accelerators(self, word: str, flag: bool) -> None:
        text = TRANSFORMERS_452.replace("(CUDA)", f"({word})")
        assert values(read(hugging_face, text))["torch.cuda.available"] is flag

    def test_torch_that_transformers_does_not_take(self) -> None:
        imported = read(hugging_face, TRANSFORMERS_NO_TORCH)
        facts = values(imported)
        assert "torch.cuda.available" not in facts
        assert imported.absent == ()
        assert open_to(imported, "torch.version")
        assert facts["os.id"] == "windows"
        assert facts["os.build"] == "19045"
        assert facts["jax.available"] is False
        assert facts["dist.flax.version"] == "0.6.9"

    def test_retyped_with_marks(self) -> None:
        text = (
            "* `transformers` version: `5.0.0.dev0`\n"
            "* Platform: `Linux-6.1.0-x86_64-with-glibc2.36`\n"
            "* PyTorch version (accelerator?): `2.9.1+cu128 (CUDA)`\n"
            "* `accelerate` version: `1.12.0`\n"
            "* NVIDIA driver version: `550.90.07`\n"
            "* CUDA version: `12.4`\n"
        )
        facts = values(read(hugging_face, text))
        assert facts["torch.version"] == "2.9.1+cu128"
        assert facts["dist.accelerate.version"] == "1.12.0"
        assert facts["driver.version"] == "550.90.07"
        assert "torch.cuda.version" not in facts


class TestOthers:
    def test_accelerate(self) -> None:
        facts = values(read(hugging_face, ACCELERATE))
        assert facts["dist.accelerate.version"] == "0.27.2"
        assert facts["dist.numpy.version"] == "1.26.4"
        assert facts["kernel.release"] == "3.10.0-957.el7.x86_64"
        assert facts["torch.cuda.available"] is False
        assert facts["gpu.0.name"] == "NVIDIA GeForce RTX 3090"

    def test_diffusers_lists_every_gpu(self) -> None:
        facts = values(read(hugging_face, DIFFUSERS))
        assert facts["dist.diffusers.version"] == "0.33.0.dev0"
        assert facts["gpu.0.name"] == "NVIDIA GeForce RTX 4090"
        assert facts["gpu.1.name"] == "NVIDIA GeForce RTX 3060"
        assert facts["gpu.1.memory.total"] == 12288 << 20
        assert facts["gpu.count"] == 2
        assert facts["dist.bitsandbytes.version"] == "0.44.1"

    @pytest.mark.parametrize("text", ["NA", "Apple M2", "AMD Radeon RX 7900 XT, 20464 MiB"])
    def test_no_gpu_of_ours(self, text: str) -> None:
        facts = values(read(hugging_face, f"- Using GPU in script?: No\n- Accelerator: {text}\n"))
        assert not [name for name in facts if name.startswith("gpu.")]

    def test_a_list_that_may_go_on(self) -> None:
        cut = DIFFUSERS[: DIFFUSERS.index("- Using GPU")]
        assert "gpu.count" not in values(read(hugging_face, cut))

    def test_hub(self) -> None:
        facts = values(read(hugging_face, HUB))
        assert facts["dist.huggingface-hub.version"] == "0.20.3"
        assert facts["os.id"] == "macos"
        assert facts["torch.version"] == "2.1.0"
        assert facts["dist.numpy.version"] == "1.26.3"
        assert "tensorflow.version" not in facts

    def test_trl(self) -> None:
        facts = values(read(hugging_face, TRL))
        assert facts["dist.trl.version"] == "0.15.0"
        assert facts["gpu.1.name"] == "NVIDIA H100 80GB HBM3"
        assert facts["dist.liger-kernel.version"] == "0.5.3"
        assert facts["dist.vllm.version"] == "0.7.2"

    @pytest.mark.parametrize("number", ["12080", "12.8"])
    def test_lerobot(self, number: str) -> None:
        facts = values(read(hugging_face, LEROBOT.replace("12080", number)))
        assert facts["torch.cuda.version"] == "12.8"
        assert facts["dist.huggingface-hub.version"] == "0.35.3"
        assert facts["gpu.0.name"] == "NVIDIA RTX PRO 6000 Blackwell Workstation Edition"

    def test_llama_factory(self) -> None:
        facts = values(read(hugging_face, LLAMA_FACTORY))
        assert facts["dist.llamafactory.version"] == "0.9.1.dev0"
        assert facts["torch.version"] == "2.4.0+cu121"
        assert facts["torch.cuda.available"] is True


@pytest.mark.parametrize(
    "text",
    [
        "",
        "- Python version: 3.10\n- PyTorch version: 2.1\n",
        "Platform: Linux\nDriver version: 535.1\n",
        "import transformers\n",
    ],
)
def test_what_is_none(text: str) -> None:
    assert not hugging_face.recognises(Section(text))


@pytest.mark.parametrize("lead", ["> ", "  ", "\t"])
@pytest.mark.parametrize("sample", SAMPLES)
def test_marks_in_front(sample: str, lead: str) -> None:
    marked = "\n".join(lead + line for line in sample.split("\n"))
    assert values(read(hugging_face, marked)) == values(read(hugging_face, sample))


@pytest.mark.parametrize("sample", SAMPLES)
def test_parts_say_what_the_whole_says(sample: str) -> None:
    if "lerobot" not in sample:  # what its numbers mean, the first line tells
        assert_parts_agree(hugging_face, sample)


@given(parts_of(*SAMPLES) | st.text(max_size=400))
def test_laws(text: str) -> None:
    assert_lawful(hugging_face, text)


def test_long_lines_take_no_time() -> None:
    starts = ("- Using GPU in script?: \n- Accelerator: ", "- `a` version: ", "- GPU type: (")
    for text in hostile(*starts):
        began = time.perf_counter()
        assert_lawful(hugging_face, text)
        assert time.perf_counter() - began < 2
