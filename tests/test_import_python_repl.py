"""Expressions at prompts of Python and Julia, `python -c`, and lines that hold one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envaudit.importers import Section, python_repl
from tests.importing import absent, facts, holds, is_linear

NAME = "python_repl"

CASES: list[tuple[str, str, dict[str, Any]]] = [
    ("torch.__version__", "'1.7.1'", {"torch.version": "1.7.1"}),
    ("import torch; torch.__version__", "'2.9.1+cu128'", {"torch.version": "2.9.1+cu128"}),
    ("torch.version.cuda", "'12.1'", {"torch.cuda.version": "12.1"}),
    ("print(torch.version.cuda)", "11.8", {"torch.cuda.version": "11.8"}),
    ("torch.cuda.is_available()", "False", {"torch.cuda.available": False}),
    ("torch.cuda.get_device_name(0)", "'Tesla T4'", {"gpu.0.name": "Tesla T4"}),
    ('torch.cuda.get_device_name("cuda:1")', "'NVIDIA L4'", {"gpu.1.name": "NVIDIA L4"}),
    ("torch.cuda.get_device_name()", "GeForce GTX 1080", {"gpu.0.name": "GeForce GTX 1080"}),
    ("torch.cuda.get_device_capability()", "(12, 0)", {"gpu.0.compute_capability": "12.0"}),
    (
        "torch.cuda.get_device_properties(0)",
        "_CudaDeviceProperties(name='NVIDIA A40', major=8, minor=6, total_memory=45634MB)",
        {"gpu.0.name": "NVIDIA A40", "gpu.0.compute_capability": "8.6"},
    ),
    (
        "torch.cuda.get_arch_list()",
        "['sm_50', 'sm_60',\n 'sm_90', 'compute_90']",
        {"torch.arch_list": ["sm_50", "sm_60", "sm_90", "compute_90"]},
    ),
    ("torch.backends.cudnn.version()", "8902", {"cudnn.version": "8.9.2"}),
    ("torch.backends.cudnn.version()", "92400", {"cudnn.version": "9.24.0"}),
    ("torch.backends.cudnn.version()", "7605", {"cudnn.version": "7.6.5"}),
    ("torch.cuda.nccl.version()", "2708", {"nccl.version": "2.7.8"}),
    ("torch.cuda.nccl.version()", "(2, 18, 1)", {"nccl.version": "2.18.1"}),
    ("torch._C._cuda_getDriverVersion()", "12040", {"driver.cuda.version": "12.4"}),
    ("torch._C._GLIBCXX_USE_CXX11_ABI", "True", {"torch.cxx11_abi": True}),
    ("tf.__version__", "'2.12.0'", {"tensorflow.version": "2.12.0"}),
    ("print(tf.version.VERSION)", "1.15.5", {"tensorflow.version": "1.15.5"}),
    ("tf.config.list_physical_devices('GPU')", "[]", {"tensorflow.available": False}),
    (
        "tf.config.list_physical_devices()",
        ("[PhysicalDevice(name='/physical_device:CPU:0', device_type='CPU'),\n"
        " PhysicalDevice(name='/physical_device:GPU:0', device_type='GPU')]"),
        {"tensorflow.available": True},
    ),
    ("jax.devices()", "[CpuDevice(id=0)]", {"jax.available": False}),
    ("jax.devices()", "[CudaDevice(id=0), CudaDevice(id=1)]", {"jax.available": True}),
    ("jax.default_backend()", "'gpu'", {"jax.available": True}),
    (
        "import sys; sys.version",
        "'3.8.12 | packaged by conda-forge | (default, Sep 29 2021, 19:52:28) \\n[GCC 9.4.0]'",
        {"python.version": "3.8.12"},
    ),
    ("np.__version__", "'2.1.2'", {"dist.numpy.version": "2.1.2"}),
    ("flash_attn.__version__", "'2.5.7'", {"dist.flash-attn.version": "2.5.7"}),
    ("xgboost.__version__", "'2.0.0'", {}),
    ("cuDNN.version()", 'v"9.24.0"', {"cudnn.version": "9.24.0"}),
    ("os.environ['LD_LIBRARY_PATH']", "'/usr/local/x'", {"env.LD_LIBRARY_PATH": "/usr/local/x"}),
    ("os.environ['AWS_SECRET_ACCESS_KEY']", "'x'", {}),
    ("torch.__version__, torch.version.cuda", "('2.1.0+cu121', '12.1')",
     {"torch.version": "2.1.0+cu121", "torch.cuda.version": "12.1"}),
    (
        'print("PyTorch:", torch.__version__, "CUDA:", torch.version.cuda)',
        "PyTorch: 2.0.0 CUDA: 11.7",
        {"torch.version": "2.0.0", "torch.cuda.version": "11.7"},
    ),
    ('print(f"cuDNN {torch.backends.cudnn.version()}")', "cuDNN 8902", {"cudnn.version": "8.9.2"}),
    (
        "print(f'torch {torch.__version__}, CUDA {torch.version.cuda}!')",
        "torch 2.1.0, CUDA 12.1!",
        {"torch.version": "2.1.0", "torch.cuda.version": "12.1"},
    ),
    (
        'python -c "import torch; print(torch.__version__, torch.cuda.is_available())"',
        "2.2.0+cu118 False",
        {"torch.version": "2.2.0+cu118", "torch.cuda.available": False},
    ),
    (
        ("/opt/x/bin/python3.10 -W ignore -c 'import torch;print(torch.__version__);"
        "print(torch.version.cuda)'"),
        "1.13.1+cu117\n11.7",
        {"torch.version": "1.13.1+cu117", "torch.cuda.version": "11.7"},
    ),
    (
        'python -c "import tensorflow as tf; print(tf.__version__)"',
        "2024-05-01 10:00:00.000000: I tensorflow/core/util/port.cc:113] oneDNN is on\n2.16.1",
        {"tensorflow.version": "2.16.1"},
    ),
    ("python --version", "Python 3.11.12", {"python.version": "3.11.12"}),
    ("py -3.14 --version", "Python 3.14.0", {"python.version": "3.14.0"}),
]  # fmt: skip


@pytest.mark.parametrize(("command", "text", "told"), CASES)
def test_command_and_output(command: str, text: str, told: dict[str, Any]) -> None:
    assert facts(NAME, f"{text}\n", command) == told


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("torch.cuda.is_available(): False", {"torch.cuda.available": False}),
        ("- `torch.__version__`: 2.1.0", {"torch.version": "2.1.0"}),
        ("torch.version.cuda = 11.8", {"torch.cuda.version": "11.8"}),
        ("os.environ['CUDA_VISIBLE_DEVICES']: 0", {"env.CUDA_VISIBLE_DEVICES": "0"}),
        ("torch.cuda.get_device_capability(0) returns (8, 6)", {"gpu.0.compute_capability": "8.6"}),
        ("if torch.cuda.is_available(): x = 1", {}),
        ("torch.version.cuda is wrong", {}),
        (
            "torch.__version__\n'2.4.0a0+3bcc3cddb5.nv24.07'",
            {"torch.version": "2.4.0a0+3bcc3cddb5.nv24.07"},
        ),
        ("print(torch.cuda.is_available())\nTrue", {"torch.cuda.available": True}),
        ("torch.cuda.is_available()\nand then it hangs", {}),
        ("torch.__version__\n\n'2.4.0'", {"torch.version": "2.4.0"}),
        (
            "print(torch.__version__)\nprint(torch.cuda.is_available())\n[Out]:\n2.0.0+cpu\nFalse",
            {"torch.version": "2.0.0+cpu", "torch.cuda.available": False},
        ),
        ("torch.__version__\nwords\n'2.4.0'", {}),
    ],
)
def test_line_with_its_value(line: str, told: dict[str, Any]) -> None:
    assert facts(NAME, f"{line}\n") == told


def test_none_is_absent() -> None:
    assert absent(NAME, "None\n", "print(torch.version.cuda)") == {"torch.cuda.version"}
    assert absent(NAME, "False\n", "tf.test.is_built_with_cuda()") == {"tensorflow.cuda.version"}
    providers = "['AzureExecutionProvider', 'CPUExecutionProvider']\n"
    command = "onnxruntime.get_available_providers()"
    assert absent(NAME, providers, command) == {"onnxruntime.cuda.version"}


@pytest.mark.parametrize(
    "text",
    [
        (
            'Traceback (most recent call last):\n  File "<stdin>", line 1, in <module>\n'
            "AttributeError: module 'torch' has no attribute 'version'\n"
        ),
        "NameError: name 'torch' is not defined\n",
        "Segmentation fault (core dumped)\n",
        "",
    ],
)
def test_an_error_is_no_value(text: str) -> None:
    for command, _, _ in CASES:
        assert facts(NAME, text, command) == {}


def test_a_value_that_is_not_shown() -> None:
    assert facts(NAME, "2.1.0\n", 'python -c "import torch; torch.__version__"') == {}
    assert facts(NAME, "2.1.0\n", "x = torch.__version__") == {}


@given(st.sampled_from(CASES), st.integers(0, 200), st.integers(0, 200))
def test_cut_anywhere(case: tuple[str, str, dict[str, Any]], at: int, text_at: int) -> None:
    command, text, _ = case
    holds(NAME, text[: text_at % (len(text) + 1)], command[: at % (len(command) + 1)])


@given(st.sampled_from([case[0] for case in CASES]) | st.text(max_size=80), st.text(max_size=200))
def test_any_text(command: str, text: str) -> None:
    holds(NAME, text, command)


def test_no_text_takes_long() -> None:
    is_linear(NAME, "torch.version.cuda ", "sys.")


def test_several_values_asked_for_and_fewer_printed() -> None:
    section = Section(
        "2.1.0\n", command="print(torch.__version__, torch.version.cuda, sys.version)"
    )
    assert {fact.name for fact in python_repl.parse(section).facts} <= {"torch.version"}
