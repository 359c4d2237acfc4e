"""Lists and messages of pip and uv, old and new, whole, grepped, and what only looks like one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envaudit.importers.requirement_lines import blocks, read_line, wheel
from tests.importing import absent, facts, gap, holds, imported, is_linear, prefixes_hold

READER = "pip_freeze"

FREEZE_2024 = """\
accelerate==0.28.0
-e git+https://user:secret@github.com/org/flash-attention.git@0123456789abcdef#egg=flash_attn
# Editable install with no version control (vllm==0.5.4)
-e /home/user/vllm
numpy @ file:///home/conda/feedstock_root/build_artifacts/numpy_1707225380409/work/dist/numpy-1.26.4-cp310-cp310-linux_x86_64.whl#sha256=51131fd8
nvidia-nccl-cu12==2.20.5
mamba_ssm @ git+https://github.com/state-spaces/mamba@0123456
torch==2.4.1+cu124
xformers @ https://download.pytorch.org/whl/cu118/xformers-0.0.28.post1-cp310-cp310-manylinux_2_28_x86_64.whl#sha256=0
"""
LIST_2026 = """\
Package                   Version      Editable project location
------------------------- ------------ -------------------------
cuda-bindings             12.9.5
torch                     2.11.0+cu130
triton_kernels            1.0.0
vllm                      0.11.0.dev1  /home/user/vllm

[notice] A new release of pip is available: 24.0 -> 25.0
"""
LIST_2018 = """\
DEPRECATION: The default format will switch to columns in the future.
numpy (1.14.5)
apex (0.1, /home/user/apex)
torch (0.4.1.post2)
torchvision (0.2.1)
"""
SHOW = """\
Name: torch
Version: 2.1.0+cu118
Summary: Tensors and Dynamic neural networks in Python with strong GPU acceleration
Home-page: https://pytorch.org/
Author: PyTorch Team
License: BSD-3
Location: /opt/venv/lib/python3.10/site-packages
Requires: filelock, fsspec
Required-by: torchvision
---
Name: flash_attn
Version: 2.5.6
Summary: Flash Attention
Location: /opt/venv/lib/python3.10/site-packages
Editable project location: /home/user/flash-attention
Installer: pip
"""
INSTALL = """\
Collecting torch==2.1.0+cu118
  Downloading https://download.pytorch.org/whl/cu118/torch-2.1.0%2Bcu118-cp310-cp310-linux_x86_64.whl (2267.3 MB)
Requirement already satisfied: numpy in /opt/venv/lib/python3.10/site-packages (from torchvision) (1.26.4)
Collecting flash-attn
  Using cached flash_attn-2.5.5+cu118torch2.2cxx11abiFALSE-cp310-cp310-linux_x86_64.whl
Collecting jinja2
  Downloading jinja2-3.1.4-py3-none-any.whl (133 kB)
Installing collected packages: torch, flash-attn
  Attempting uninstall: torch
    Found existing installation: torch 2.0.1
    Uninstalling torch-2.0.1:
      Successfully uninstalled torch-2.0.1
ERROR: pip's dependency resolver does not currently take into account all the packages that are installed. This behaviour is the source of the following dependency conflicts.
xformers 0.0.22 requires torch==2.0.1, but you have torch 2.1.0+cu118 which is incompatible.
Successfully installed flash-attn-2.5.5 torch-2.1.0+cu118 typing-extensions-4.8.0
"""  # noqa: E501
UV = """\
Resolved 3 packages in 312ms
Prepared 2 packages in 1.20s
Uninstalled 1 package in 43ms
Installed 2 packages in 51ms
 - torch==2.3.0
 + torch==2.4.0+cu124 (from https://download.pytorch.org/whl/cu124/torch-2.4.0%2Bcu124-cp312-cp312-linux_x86_64.whl)
 ~ triton==3.0.0
"""
UV_TREE = """\
Resolved 9 packages in 5ms
myproject v0.1.0
├── torch v2.6.0
│   ├── filelock v3.17.0
│   └── nvidia-cudnn-cu12 v9.1.0.70
└── numpy v2.2.2 (extra: x)
(*) Package tree already displayed
"""
PIPDEPTREE = """\
Warning!!! Possibly conflicting dependencies found:
* torchvision==0.15.2
 - torch [required: ==2.0.1, installed: 2.1.0]
------------------------------------------------------------------------
torchvision==0.15.2
├── numpy [required: Any, installed: 1.26.4]
├── apex [required: >=0.1, installed: ?]
└── torch [required: ==2.0.1, installed: 2.1.0]
"""
SAMPLES = (FREEZE_2024, LIST_2026, LIST_2018, SHOW, INSTALL, UV, UV_TREE, PIPDEPTREE)
COMMANDS = ("", "pip freeze", "pip list | grep torch", "pip show torch", "uv tree", "cat x.txt")


class TestFreeze:
    def test_places_versions_and_editable_installs(self) -> None:
        read = imported(READER, FREEZE_2024, "pip freeze")
        told = {fact.name: fact.value for fact in read.facts}
        assert told["dist.torch.version"] == "2.4.1+cu124"
        assert told["dist.numpy.version"] == "1.26.4"
        assert told["dist.xformers.version"] == "0.0.28.post1"
        assert told["dist.vllm.version"] == "0.5.4"
        assert told["dist.vllm.editable"] is told["dist.flash-attn.editable"] is True
        assert "secret" not in str(told)
        assert gap(read, "dist.flash-attn.version")
        assert gap(read, "dist.mamba-ssm.version")
        assert read.lines["dist.torch.version"] == 8

    def test_one_line_behind_a_grep(self) -> None:
        command = "docker exec x python -m pip freeze | grep -i torch"
        assert facts(READER, "torch==2.2.0\n", command) == {"dist.torch.version": "2.2.0"}
        assert facts(READER, "torch===1.8.0\n", "pip3 freeze | findstr torch") == {
            "dist.torch.version": "1.8.0"
        }

    def test_without_a_command_two_lines_make_a_list(self) -> None:
        assert facts(READER, "jax==0.4.30\njaxlib==0.4.30\n\nTraceback:\n") == {
            "dist.jax.version": "0.4.30",
            "dist.jaxlib.version": "0.4.30",
        }
        assert facts(READER, "jax==0.4.30\n") == {}
        assert facts(READER, "pip freeze:\njax==0.4.30\n") == {"dist.jax.version": "0.4.30"}

    @pytest.mark.parametrize(
        "text",
        [
            "I tried torch==2.0 and it worked.\nThen torch==2.1 failed.\n",
            "requirements.txt:\ntorch==2.0.1\nnumpy==1.26.4\n",
            "torch==2.0.1\ntransformers>=4.30\nnumpy==1.26.4\n",
            "torch==2.0.1 ; sys_platform == 'linux'\nnumpy==1.26.4\n",
            "torch==2.0.1 \\\n    --hash=sha256:00\nnumpy==1.26.4 \\\n    --hash=sha256:11\n",
            "--extra-index-url https://download.pytorch.org/whl/cu118\ntorch==2.0.1\nnumpy==1.0\n",
            "torch==2.0.1\nnumpy\nscipy==1.2\n",
            "pip install torch==2.0.1 numpy==1.26.4\n",
            "Collecting torch==2.0.1\nCollecting numpy==1.26.4\n",
            "[pip3] torch==2.0.1\n[pip3] numpy==1.26.4\n",
            "The conflict is caused by:\n    The user requested torch==2.0.1\n",
        ],
    )
    def test_a_wish_is_not_installed(self, text: str) -> None:
        assert facts(READER, text) == {}

    def test_a_file_of_requirements_is_not_read_here(self) -> None:
        text = "torch==2.0.1\nnumpy==1.26.4\n"
        assert facts(READER, text, "cat requirements.txt") == {}
        assert facts(READER, "torch==2.0.1\n", "grep torch requirements/gpu.txt") == {}

    def test_two_environments_in_one_text_leave_it_open(self) -> None:
        text = "before:\ntorch==2.0.1\nnumpy==1.26.4\n\nafter:\ntorch==2.4.1\nnumpy==1.26.4\n"
        read = imported(READER, text)
        assert facts(READER, text) == {"dist.numpy.version": "1.26.4"}
        assert "2.0.1" in str(gap(read, "dist.torch.version"))


class TestList:
    def test_columns_of_today(self) -> None:
        assert facts(READER, LIST_2026) == {
            "dist.cuda-bindings.version": "12.9.5",
            "dist.torch.version": "2.11.0+cu130",
            "dist.triton-kernels.version": "1.0.0",
            "dist.vllm.version": "0.11.0.dev1",
            "dist.vllm.editable": True,
        }

    def test_columns_without_their_rule_and_with_other_columns(self) -> None:
        text = "Package Version Latest Type\ntorch 2.1.0 2.4.0 wheel\nnumpy 1.26.4 2.0.0 wheel\n"
        assert facts(READER, text, "pip list -o")["dist.torch.version"] == "2.1.0"
        assert facts(READER, text, "pip list -o")["dist.numpy.version"] == "1.26.4"

    def test_grepped_rows(self) -> None:
        line = "torch                    2.11.0\n"
        assert facts(READER, line, "pip list | grep -i torch") == {"dist.torch.version": "2.11.0"}
        assert facts(READER, line) == {}
        two = "torch              2.4.1\ntorchvision        0.19.1\n"
        assert facts(READER, two)["dist.torchvision.version"] == "0.19.1"
        assert facts(READER, "Driver      535.1\nRelease     22.04\n") == {}

    def test_the_form_before_pip_10(self) -> None:
        assert facts(READER, LIST_2018, "pip list") == {
            "dist.numpy.version": "1.14.5",
            "dist.apex.version": "0.1",
            "dist.apex.editable": True,
            "dist.torch.version": "0.4.1.post2",
            "dist.torchvision.version": "0.2.1",
        }
        assert facts(READER, "torch (1.0.1)\n") == {}

    def test_json_and_the_tables_of_other_tools(self) -> None:
        text = '[{"name": "torch", "version": "2.1.0"}, {"name": "Flash_Attn", "version": "2.5"}]\n'
        assert facts(READER, text, "pip list --format=json") == {
            "dist.torch.version": "2.1.0",
            "dist.flash-attn.version": "2.5",
        }
        assert facts(READER, "torch  2.1.0  Tensors and Dynamic\n", "poetry show") == {
            "dist.torch.version": "2.1.0"
        }
        assert facts(READER, "│ torch │ 2.1.0 │ │\n", "pdm list") == {"dist.torch.version": "2.1.0"}

    def test_a_conda_list_is_not_pips(self) -> None:
        row = "pytorch    2.0.1   py3.10_cuda11.7_cudnn8.5.0_0    pytorch\n"
        assert facts(READER, row, "conda list | grep torch") == {}

    def test_trees(self) -> None:
        told = facts(READER, UV_TREE, "uv tree")
        assert told["dist.torch.version"] == "2.6.0"
        assert told["dist.nvidia-cudnn-cu12.version"] == "9.1.0.70"
        assert told["dist.numpy.version"] == "2.2.2"
        told = facts(READER, PIPDEPTREE, "pipdeptree")
        assert told["dist.torch.version"] == "2.1.0"
        assert told["dist.torchvision.version"] == "0.15.2"
        assert absent(READER, PIPDEPTREE, "pipdeptree") == {"dist.apex.version"}


class TestShow:
    def test_paragraphs(self) -> None:
        assert facts(READER, SHOW, "pip show torch flash-attn") == {
            "dist.torch.version": "2.1.0+cu118",
            "dist.flash-attn.version": "2.5.6",
            "dist.flash-attn.editable": True,
            "dist.flash-attn.installer": "pip",
        }

    def test_one_field_of_it(self) -> None:
        assert facts(READER, "Version: 2.1.0\n", "pip show torch | grep Version") == {
            "dist.torch.version": "2.1.0"
        }
        assert facts(READER, "Version: 2.1.0\n") == {}

    def test_one_that_is_not_there(self) -> None:
        text = "WARNING: Package(s) not found: xformers, flash-attn\n"
        assert absent(READER, text) == {"dist.xformers.version", "dist.flash-attn.version"}

    def test_another_tools_name_and_version(self) -> None:
        assert facts(READER, "Name: Tesla T4\nVersion: 1.2\n") == {}


class TestInstall:
    def test_what_was_installed_and_what_it_replaced(self) -> None:
        assert facts(READER, INSTALL, "pip install torch flash-attn") == {
            "dist.xformers.version": "0.0.22",
            "dist.torch.version": "2.1.0+cu118",
            "dist.torch.installer": "pip",
            "dist.torch.tag": "cp310-cp310-linux_x86_64",
            "dist.flash-attn.version": "2.5.5+cu118torch2.2cxx11abiFALSE",
            "dist.flash-attn.installer": "pip",
            "dist.flash-attn.tag": "cp310-cp310-linux_x86_64",
            "dist.typing-extensions.version": "4.8.0",
            "dist.typing-extensions.installer": "pip",
            "dist.numpy.version": "1.26.4",
            "python.conflicts": ["xformers 0.0.22 requires torch==2.0.1, installed 2.1.0+cu118"],
        }

    def test_one_that_was_fetched_only(self) -> None:
        text = INSTALL.partition("Installing collected")[0]
        assert facts(READER, text) == {"dist.numpy.version": "1.26.4"}

    def test_a_list_that_a_terminal_broke(self) -> None:
        text = "Successfully installed numpy-1.26.4\nnvidia-nccl-cu12-2.20.5 torch-2.4.0\nDone.\n"
        assert facts(READER, text)["dist.nvidia-nccl-cu12.version"] == "2.20.5"

    def test_uv(self) -> None:
        told = facts(READER, UV)
        assert told["dist.torch.version"] == "2.4.0+cu124"
        assert told["dist.torch.tag"] == "cp312-cp312-linux_x86_64"
        assert told["dist.torch.installer"] == "uv"
        assert told["dist.triton.version"] == "3.0.0"

    def test_a_patch_is_no_installation(self) -> None:
        assert facts(READER, "-torch==2.3.0\n+torch==2.4.0\n") == {}
        assert facts(READER, "Would install 1 package\n + torch==2.4.0\n") == {}

    def test_an_uninstalled_one_has_no_version(self) -> None:
        text = "Found existing installation: torch 2.0.1\n  Successfully uninstalled torch-2.0.1\n"
        assert facts(READER, text) == {}

    @pytest.mark.parametrize(
        ("text", "told"),
        [
            ("installed wheel:\nflash_attn-2.5.5+cu118torch2.2-cp38-cp38-linux_x86_64.whl\n", True),
            ("I installed flash_attn-2.5.5+cu118torch2.2-cp38-cp38-linux_x86_64.whl.\n", True),
            ("flash_attn-2.5.5+cu118torch2.2-cp38-cp38-linux_x86_64.whl\n", False),
            ("flash_attn-2.5.5-cp38-cp38-linux_x86_64.whl cannot be installed\n", False),
            ("x-1.0-py3-none-any.whl is not installed\n", False),
            (
                "ERROR: x-1.0-cp38-cp38-linux_x86_64.whl is not a supported wheel on this platform",
                False,
            ),
        ],
    )
    def test_a_wheel_is_told_where_it_is_said_to_be_installed(self, text: str, told: bool) -> None:
        assert bool(facts(READER, text)) is told


class TestConflicts:
    @pytest.mark.parametrize(
        ("text", "conflict"),
        [
            (
                "torchvision 0.19.0 has requirement torch==2.4.0, but you have torch 2.4.1.",
                "torchvision 0.19.0 requires torch==2.4.0, installed 2.4.1",
            ),
            (
                (
                    "ERROR: apex 0.5.0 has requirement torch==1.4.0, but you'll have torch 1.3.1 "
                    "which is incompatible."
                ),
                "apex 0.5.0 requires torch==1.4.0, installed 1.3.1",
            ),
            (
                (
                    "xformers 0.0.22 requires torch<2.2,>=1.10, but you have torch 2.2.0 which is "
                    "incompatible."
                ),
                "xformers 0.0.22 requires torch<2.2,>=1.10, installed 2.2.0",
            ),
            (
                "vllm 0.4.0 requires xformers==0.0.23, which is not installed.",
                "vllm 0.4.0 requires xformers==0.0.23, which is not installed",
            ),
            (
                "The package `torchvision` requires `torch==2.4.0`, but `2.4.1` is installed",
                "torchvision requires torch==2.4.0, installed 2.4.1",
            ),
            (
                (
                    "pkg_resources.ContextualVersionConflict: (numpy 2.0.1 (/opt/lib/x), "
                    "Requirement.parse('numpy<2'), {'numba'})"
                ),
                "numba requires numpy<2, installed 2.0.1",
            ),
        ],
    )
    def test_of_every_tool(self, text: str, conflict: str) -> None:
        assert facts(READER, text)["python.conflicts"] == [conflict]

    def test_both_sides_are_versions(self) -> None:
        told = facts(
            READER, "stable 0.0.20 has requirement torch==2.7.1, but you have torch 2.8.0."
        )
        assert told["dist.stable.version"] == "0.0.20"
        assert told["dist.torch.version"] == "2.8.0"

    def test_none(self) -> None:
        assert absent(READER, "No broken requirements found.\n") == {"python.conflicts"}


class TestLines:
    def test_wheels(self) -> None:
        built = wheel(
            "https://host/whl/cu118/torch-2.1.0%2Bcu118-cp310-cp310-linux_x86_64.whl#sha256=0"
        )
        assert built == ("torch", "2.1.0+cu118", "cp310-cp310-linux_x86_64")
        built = wheel("nvidia_cudnn_cu12-9.1.0.70-1-py3-none-manylinux2014_x86_64.whl")
        assert built == ("nvidia-cudnn-cu12", "9.1.0.70", "py3-none-manylinux2014_x86_64")
        for text in ("torch.whl", "torch-2.1.0.tar.gz", "", "-.whl", "torch-2.1.0-cp310.whl"):
            assert wheel(text) is None

    @given(st.text(max_size=80))
    def test_any_line_is_one_or_none(self, text: str) -> None:
        line = read_line(text, 1)
        assert line is None or line.kind
        assert all(block.lines for block in blocks([text, text]))


@given(st.sampled_from(SAMPLES), st.integers(0, 3000), st.sampled_from(COMMANDS))
def test_a_text_cut_anywhere(text: str, at: int, command: str) -> None:
    prefixes_hold(READER, text, at, command)


LINE = st.sampled_from("\n".join(SAMPLES).splitlines()) | st.text(max_size=60)


@given(st.lists(LINE, max_size=12).map("\n".join), st.sampled_from(COMMANDS))
def test_any_mixture(text: str, command: str) -> None:
    holds(READER, text, command)


def test_takes_no_long_time() -> None:
    is_linear(READER)
