"""What paths below an interpreter tell of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envaudit.importers import Section, traceback_paths
from tests.importing import facts, gap, holds, imported, is_linear, prefixes_hold

READER = "traceback_paths"

VENV = '  File "/home/user/.venv/lib/python3.10/site-packages/torch/cuda/__init__.py", line 293\n'
CONDA = (
    "ImportError: /opt/conda/envs/gpu/lib/python3.11/site-packages/torch/lib/libtorch_cuda.so: "
    "undefined symbol: ncclMemFree\n"
)
SYSTEM = '  File "/usr/local/lib/python3.8/dist-packages/torch/__init__.py", line 1\n'
USER = '  File "/home/user/.local/lib/python3.9/site-packages/x.py", line 1, in <module>\n'
STDLIB = '  File "/home/user/miniconda3/lib/python3.10/ctypes/__init__.py", line 387\n'
PYENV = '  File "/home/user/.pyenv/versions/3.10.12/lib/python3.10/site-packages/x.py", line 1\n'
WINDOWS = '  File "C:\\Users\\user\\Programs\\Python\\Python310\\lib\\site-packages\\x.py"\n'
WINDOWS_CONDA = (
    '  File "D:\\Anaconda3\\envs\\gpu\\lib\\site-packages\\torch\\__init__.py", line 9\n'
)
SAMPLES = (VENV, CONDA, SYSTEM, USER, STDLIB, PYENV, WINDOWS, WINDOWS_CONDA)


@pytest.mark.parametrize(
    ("text", "version", "environment"),
    [
        (VENV, "3.10", "venv"),
        (CONDA, "3.11", "conda"),
        (SYSTEM, "3.8", "system"),
        (USER, "3.9", None),
        (STDLIB, "3.10", "conda"),
        (PYENV, "3.10.12", None),
        (WINDOWS, "3.10", None),
        (WINDOWS_CONDA, None, "conda"),
        ("flash_attn_2_cuda.cpython-38-x86_64-linux-gnu.so: undefined\n", "3.8", None),
        ("/root/.local/share/uv/python/cpython-3.12.7-linux-x86_64-gnu/lib/python3.12/os.py\n",
         "3.12.7", None),
        (VENV + "Python39 and python3.7 in prose\n", "3.10", "venv"),
        ("use python3.11 -m pip\n", None, None),
        ("see /docs/python3.10/library\n", None, None),
    ],
)  # fmt: skip
def test_version_and_kind(text: str, version: str | None, environment: str | None) -> None:
    told = facts(READER, text)
    assert told.get("python.version") == version
    assert told.get("python.environment") == environment


@pytest.mark.parametrize(
    ("text", "system"),
    [
        (WINDOWS, "windows"),
        (WINDOWS_CONDA, "windows"),
        ('  File "C:\\work\\train.py", line 3, in <module>\n', "windows"),
        ('  File "/Users/user/app/run.py", line 3, in <module>\n', "macos"),
        ('  File "/opt/homebrew/lib/python3.11/site-packages/x.py", line 1\n', "macos"),
        (VENV, None),
        (WINDOWS + SYSTEM, None),
        ('  File "/Workspace/Users/user/app/run.py", line 3\n', None),
        ('  File "/mnt/c:/x/run.py", line 3\n', None),
        ("see https://host/Users/site-packages\n", None),
    ],
)
def test_system(text: str, system: str | None) -> None:
    assert facts(READER, text).get("os.id") == system


@pytest.mark.parametrize(
    ("command", "version"),
    [
        ("python3.8 -m pip install torch", "3.8"),
        ("sudo /usr/bin/pip3.10 install torch", "3.10"),
        ("py -3.12 -m pip list", "3.12"),
        ("python3 -m pip list", None),
        ("apt install python3.11-venv", None),
    ],
)
def test_command(command: str, version: str | None) -> None:
    assert facts(READER, "words\n", command).get("python.version") == version


def test_windows_prompt() -> None:
    section = Section("2.13.0\n", 'python -c "..."', "windows")
    assert traceback_paths.recognises(section)
    assert [(fact.name, fact.value) for fact in traceback_paths.parse(section).facts] == [
        ("os.id", "windows")
    ]


def test_two_releases_leave_it_open() -> None:
    read = imported(READER, VENV + SYSTEM)
    assert read.facts == ()
    assert "3.10 and 3.8" in str(gap(read, "python.version"))


def test_the_fuller_version_is_one_with_the_folders() -> None:
    text = PYENV + PYENV.replace(".pyenv/versions/3.10.12", "x")
    assert facts(READER, text) == {"python.version": "3.10.12"}


@given(st.lists(st.sampled_from(SAMPLES) | st.text(max_size=60), max_size=6).map("".join))
def test_any_mixture(text: str) -> None:
    holds(READER, text)


@given(st.sampled_from(SAMPLES), st.integers(0, 300))
def test_a_text_cut_anywhere(text: str, at: int) -> None:
    prefixes_hold(READER, text, at)


def test_takes_no_long_time() -> None:
    is_linear(READER)
