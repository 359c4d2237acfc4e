"""Environment variables and modules as shells, containers, logs and manifests show them."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envaudit.importers import Section, environment
from tests.importing import absent, facts, gap, holds, imported, is_linear, prefixes_hold

READER = "environment"

ENV = """\
HOME=/home/user
LD_LIBRARY_PATH=/usr/local/cuda/compat:/usr/local/cuda/lib64
CUDA_PATH=C:\\Program Files\\NVIDIA GPU Computing Toolkit\\CUDA\\v11.3
NVIDIA_VISIBLE_DEVICES=all
WANDB_API_KEY=0123456789
NVIDIA_API_KEY=nvapi-0123456789
AWS_SECRET_ACCESS_KEY=x
"""
DOCKERFILE = """\
FROM nvidia/cuda:12.1.0-devel-ubuntu22.04
ENV CUDA_HOME=/usr/local/cuda
ENV NVIDIA_DRIVER_CAPABILITIES compute,utility
RUN pip install torch==2.1.0
"""
MANIFEST = """\
    environment:
      - NVIDIA_VISIBLE_DEVICES=0
    env:
    - name: NCCL_DEBUG
      value: "INFO"
    - name: PASSWORD
      value: "x"
"""
NCCL = """\
node:174:239 [0] NCCL INFO NCCL_SOCKET_IFNAME set by environment to eth0
node:174:239 [0] NCCL INFO NCCL_P2P_DISABLE set by environment to 1.
"""
LMOD = """\

Currently Loaded Modules:
  1) gcc/11.3.0 (H)   3) openmpi/4.1.4
  2) cuda/12.2  (g,D)

  Where:
   D:  Default Module
"""
MODULES_3 = """\
Currently Loaded Modulefiles:
  1) slurm/18.08     2) cudnn/8.9<aL>   3) python/3.9(default)
"""
SAMPLES = (ENV, DOCKERFILE, MANIFEST, NCCL, LMOD, MODULES_3)
COMMANDS = (
    "",
    "env",
    "echo $LD_LIBRARY_PATH",
    "export CUDA_HOME=/x",
    "module list",
    "echo %CUDA_PATH%",
)


class TestAnswers:
    @pytest.mark.parametrize(
        ("command", "text", "value"),
        [
            (
                "echo $LD_LIBRARY_PATH",
                "/usr/local/cuda-12.1/lib64:\n",
                "/usr/local/cuda-12.1/lib64:",
            ),
            ('docker exec x sh -c "echo $LD_LIBRARY_PATH"', "/a\n", None),
            ('echo "${LD_LIBRARY_PATH}"', "\n/a:/b\nmore\n", "/a:/b"),
            ("printenv LD_LIBRARY_PATH", "/a\n", "/a"),
            ("echo $LD_LIBRARY_PATH | tr ':' '\\n'", "/a\n/b\n\n/c\n", "/a:/b"),
            ("echo $LD_LIBRARY_PATH", "\n\n\nsome prose\n", None),
            ("echo $HOME", "/home/user\n", None),
        ],
    )
    def test_one_variable(self, command: str, text: str, value: str | None) -> None:
        assert facts(READER, text, command).get("env.LD_LIBRARY_PATH") == value

    def test_of_windows(self) -> None:
        path = "C:\\Program Files\\NVIDIA GPU Computing Toolkit\\CUDA\\v11.3"
        assert facts(READER, f"{path}\n", "echo %CUDA_PATH%") == {"env.CUDA_PATH": path}
        assert facts(READER, f"{path}\n", "$env:CUDA_PATH") == {"env.CUDA_PATH": path}
        assert absent(READER, "%CUDA_PATH%\n", "echo %CUDA_PATH%") == {"env.CUDA_PATH"}
        table = f"Name         Value\n----         -----\nCUDA_PATH    {path}\n"
        assert facts(READER, table, "Get-ChildItem Env:")["env.CUDA_PATH"] == path


class TestLines:
    def test_a_whole_environment(self) -> None:
        read = imported(READER, ENV, "env")
        assert {fact.name: fact.value for fact in read.facts} == {
            "env.LD_LIBRARY_PATH": "/usr/local/cuda/compat:/usr/local/cuda/lib64",
            "env.CUDA_PATH": "C:\\Program Files\\NVIDIA GPU Computing Toolkit\\CUDA\\v11.3",
            "env.NVIDIA_VISIBLE_DEVICES": "all",
        }
        assert gap(read, "env.NVIDIA_API_KEY")
        assert "0123456789" not in str(read)

    def test_one_line_of_it(self) -> None:
        command = "docker exec tei env | grep LD_LIBRARY_PATH"
        assert facts(READER, "LD_LIBRARY_PATH=/a:/b c\n", command) == {
            "env.LD_LIBRARY_PATH": "/a:/b c"
        }
        assert facts(READER, "CUDA_VISIBLE_DEVICES=0,1 python train.py\n") == {
            "env.CUDA_VISIBLE_DEVICES": "0,1"
        }

    def test_exports(self) -> None:
        text = "export CUDA_HOME=/usr/local/cuda-11.8\n"
        text += "export LD_LIBRARY_PATH=$CUDA_HOME/lib64:$LD_LIBRARY_PATH\n"
        text += "export NCCL_P2P_DISABLE='1' # for now\ndeclare -x CUDA_CACHE_PATH=\"/tmp/c\"\n"
        assert facts(READER, text) == {
            "env.CUDA_HOME": "/usr/local/cuda-11.8",
            "env.LD_LIBRARY_PATH": "$CUDA_HOME/lib64",
            "env.NCCL_P2P_DISABLE": "1",
            "env.CUDA_CACHE_PATH": "/tmp/c",
        }

    def test_files_and_logs(self) -> None:
        assert facts(READER, DOCKERFILE) == {
            "env.CUDA_HOME": "/usr/local/cuda",
            "env.NVIDIA_DRIVER_CAPABILITIES": "compute,utility",
        }
        assert facts(READER, MANIFEST) == {
            "env.NVIDIA_VISIBLE_DEVICES": "0",
            "env.NCCL_DEBUG": "INFO",
        }
        read = imported(READER, NCCL)
        assert {fact.name: fact.value for fact in read.facts} == {
            "env.NCCL_SOCKET_IFNAME": "eth0",
            "env.NCCL_P2P_DISABLE": "1",
        }
        assert read.lines == {"env.NCCL_SOCKET_IFNAME": 1, "env.NCCL_P2P_DISABLE": 2}

    @pytest.mark.parametrize(
        "text",
        [
            "For debugging consider passing CUDA_LAUNCH_BLOCKING=1.\n",
            "Set XFORMERS_MORE_DETAILS=1 for more details\n",
            "export LD_LIBRARY_PATH=$LD_LIBRARY_PATH:<path_to_cuda_dir/lib64>\n",
            "export CUDA_HOME=/path/to/cuda\n",
            "I set CUDA_HOME=/usr/local/cuda and it worked\n",
            "-DCUDA_HOME=/x\n",
            "CUDA_HOME = /usr/local/cuda\n",
            "# export CUDA_HOME=/usr/local/cuda\n",
            "PATH=/usr/bin\n",
            "TORCH_X\n",
        ],
    )
    def test_what_is_none(self, text: str) -> None:
        assert facts(READER, text) == {}


def test_a_windows_path_has_blanks() -> None:
    path = r"C:\Program Files\NVIDIA GPU Computing Toolkit\CUDA\v12.4"
    assert facts(READER, f"CUDA_PATH={path}\n") == {"env.CUDA_PATH": path}
    assert facts(READER, f"words\nCUDA_PATH={path}\n") == {"env.CUDA_PATH": path}


class TestCommands:
    @pytest.mark.parametrize(
        ("command", "told"),
        [
            (
                "docker run --gpus all -e NVIDIA_VISIBLE_DEVICES=0 --env=NCCL_DEBUG=INFO img",
                {"env.NVIDIA_VISIBLE_DEVICES": "0", "env.NCCL_DEBUG": "INFO"},
            ),
            ("CUDA_VISIBLE_DEVICES='' python x.py", {"env.CUDA_VISIBLE_DEVICES": ""}),
            ("sudo CUDA_HOME=/opt/cuda make", {"env.CUDA_HOME": "/opt/cuda"}),
            ("set CUDA_VISIBLE_DEVICES=1", {"env.CUDA_VISIBLE_DEVICES": "1"}),
            ("setenv CUDA_HOME /opt/cuda", {"env.CUDA_HOME": "/opt/cuda"}),
            ('$env:CUDA_HOME = "D:\\cuda"', {"env.CUDA_HOME": "D:\\cuda"}),
            ("cmake -DCUDA_HOME=/x ..", {}),
            ("export WANDB_API_KEY=1", {}),
        ],
    )
    def test_assignments(self, command: str, told: dict[str, str]) -> None:
        assert facts(READER, "", command) == told


class TestModules:
    def test_lmod_and_environment_modules(self) -> None:
        assert facts(READER, LMOD, "module list") == {
            "env.LOADEDMODULES": "gcc/11.3.0:openmpi/4.1.4:cuda/12.2"
        }
        assert facts(READER, MODULES_3) == {"env.LOADEDMODULES": "slurm/18.08:cudnn/8.9:python/3.9"}
        one_line = "Currently Loaded Modules: 1) cudnn/8.9   2) cuda/12.2\n"
        assert facts(READER, one_line)["env.LOADEDMODULES"] == "cudnn/8.9:cuda/12.2"

    def test_none(self) -> None:
        for text in ("No modules loaded\n", "No Modulefiles Currently Loaded.\n"):
            assert absent(READER, text) == {"env.LOADEDMODULES"}


@given(st.sampled_from(SAMPLES), st.integers(0, 3000), st.sampled_from(COMMANDS))
def test_a_text_cut_anywhere(text: str, at: int, command: str) -> None:
    prefixes_hold(READER, text, at, command)


LINE = st.sampled_from("\n".join(SAMPLES).splitlines()) | st.text(max_size=60)


@given(st.lists(LINE, max_size=12).map("\n".join), st.sampled_from(COMMANDS) | st.text(max_size=40))
def test_any_mixture(text: str, command: str) -> None:
    holds(READER, text, command)


def test_takes_no_long_time() -> None:
    is_linear(READER)


def test_a_command_of_blanks_takes_no_long_time() -> None:
    began = time.process_time()
    section = Section("", command=" a " * 40 + " " * 2000 + "x" * 200)
    environment.parse(section)
    assert time.process_time() - began < 0.5
