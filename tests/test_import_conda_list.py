"""Lists of conda, mamba, micromamba and pixi, exported environments, and conda info."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.importing import facts, gap, holds, imported, is_linear, prefixes_hold

READER = "conda_list"

LIST_2019 = """\
# packages in environment at /home/user/anaconda3/envs/gpu:
#
# Name                    Version                   Build  Channel
_libgcc_mutex             0.1                        main
cudatoolkit               10.0.130                      0
cudnn                     7.6.5                cuda10.0_0
mkl                       2019.4                      243
numpy                     1.17.4           py37hc1035e2_0
python                    3.7.5                h0371630_0
pytorch                   1.3.1           py3.7_cuda10.0.130_cudnn7.6.3_0    pytorch
tensorflow-base           1.14.0          gpu_py37h611c6d2_0
apex                      0.1                       <pip>
"""
LIST_2024 = """\
# packages in environment at /opt/conda/envs/gpu:
# Name                    Version                   Build  Channel
cuda-nvcc                 12.4.131                      0    nvidia/label/cuda-12.4.1
libstdcxx-ng              13.2.0               hc0a3c3a_7    conda-forge
numpy                     1.26.4          py311h64a7726_0    conda-forge
python                    3.11.9          hb806964_0_cpython    conda-forge
pytorch                   2.3.0           py3.11_cuda12.1_cudnn8.9.2_0    pytorch
pytorch-cuda              12.1                 ha16c6d3_5    pytorch
flash-attn                2.5.8                    pypi_0    pypi
requests                  2.32.2             pyhd8ed1ab_0    conda-forge
"""
MICROMAMBA = """\
List of packages in environment: "/home/user/micromamba/envs/x"

  Name              Version      Build                 Channel
────────────────────────────────────────────────────────────────────
  _openmp_mutex     4.5          20_gnu                conda-forge
  pytorch           2.5.1        cuda126_py312h1763f6d_306  conda-forge
  python            3.12.7       hc5c86c4_0_cpython    conda-forge
"""
PIXI = """\
Package          Version    Build               Size       Kind   Source
cuda-version     12.6       h7480c83_3          20.4 KiB   conda  cuda-version
pytorch          2.5.1      cuda126_py312h1763f6d_306  24.1 MiB  conda  https://conda.anaconda.org/conda-forge/
python           3.12.7     hc5c86c4_0_cpython  30.1 MiB   conda  python
torchmetrics     1.4.0                          2.1 MiB    pypi   torchmetrics
"""
EXPORT = """\
# This file may be used to create an environment using:
# $ conda create --name <env> --file <this file>
# platform: linux-64
cudatoolkit=11.3.1=h2bc3f7f_2
pytorch=1.12.1=py3.9_cuda11.3_cudnn8.3.2_0
timm=0.6.7=pypi_0
"""
EXPLICIT = """\
@EXPLICIT
https://conda.anaconda.org/pytorch/linux-64/pytorch-2.0.1-py3.10_cuda11.7_cudnn8.5.0_0.tar.bz2#abc
https://conda.anaconda.org/t/secret/conda-forge/noarch/pytorch-lightning-2.1.0-pyhd8ed1ab_0.conda
"""
ENV_EXPORT = """\
name: gpu
channels:
  - pytorch
  - defaults
dependencies:
  - cudatoolkit=11.3.1=h2bc3f7f_2
  - python=3.9.12=h12debd9_1
  - pytorch=1.12.1=py3.9_cuda11.3_cudnn8.3.2_0
  - pip:
    - torchmetrics==0.9.3
    - xformers==0.0.13
prefix: /home/user/miniconda3/envs/gpu
"""
ENV_FILE = """\
name: gpu
channels: [pytorch, nvidia]
dependencies:
- python=3.10
- pytorch::pytorch==2.1.0
- numpy<2
- pip:
  - flash-attn==2.3.3
  - transformers>=4.30
"""
INFO = """\
     active environment : base
    active env location : /home/user/miniconda3
          conda version : 23.9.0
         python version : 3.11.5.final.0
       virtual packages : __archspec=1=x86_64
                          __cuda=12.3=0
                          __glibc=2.31=0
                          __linux=5.15.0=0
                          __unix=0=0
               platform : linux-64
"""
INFO_MAMBA = """\
           env location : /home/user/myEnv
       virtual packages : __unix=0=0, __linux=3.10.0=0, __glibc=2.17=0, __cuda=11.6=0
               platform : linux-64
"""
SOLVER = """\
Your installed version is: 2.17
  - feature:/linux-64::__glibc==2.17=0
  - feature:|@/linux-64::__cuda==10.2=0
"""
SAMPLES = (LIST_2019, LIST_2024, MICROMAMBA, PIXI, EXPORT, EXPLICIT, ENV_EXPORT, ENV_FILE, INFO)
COMMANDS = ("", "conda list", "conda list | grep torch", "pixi list", "conda env export", "ls")


class TestList:
    def test_of_2019(self) -> None:
        told = facts(READER, LIST_2019, "conda list")
        assert told["python.prefix"] == "/home/user/anaconda3/envs/gpu"
        assert told["python.environment"] == "conda"
        assert told["python.version"] == told["conda.python.version"] == "3.7.5"
        assert told["conda.cudatoolkit.version"] == "10.0.130"
        assert told["conda.pytorch.build"] == "py3.7_cuda10.0.130_cudnn7.6.3_0"
        assert told["conda.pytorch.channel"] == "pytorch"
        assert told["dist.torch.version"] == "1.3.1"
        assert told["dist.tensorflow.version"] == "1.14.0"
        assert told["dist.numpy.version"] == told["conda.numpy.version"] == "1.17.4"
        assert told["dist.apex.version"] == "0.1"
        assert told["conda.cudnn.build"] == "cuda10.0_0"

    def test_of_2024(self) -> None:
        told = facts(READER, LIST_2024, "conda list")
        assert told["conda.cuda-nvcc.channel"] == "nvidia/label/cuda-12.4.1"
        assert told["conda.pytorch-cuda.version"] == "12.1"
        assert told["dist.flash-attn.version"] == "2.5.8"
        assert told["dist.flash-attn.installer"] == "pip"
        assert "conda.flash-attn.version" not in told
        assert "conda.requests.version" not in told
        assert "dist.cuda-nvcc.version" not in told
        assert "dist.pytorch-cuda.version" not in told

    def test_of_micromamba_and_pixi(self) -> None:
        for text, command in ((MICROMAMBA, "micromamba list"), (PIXI, "pixi list"), (PIXI, "")):
            told = facts(READER, text, command)
            assert told["conda.pytorch.version"] == "2.5.1"
            assert told["conda.pytorch.build"] == "cuda126_py312h1763f6d_306"
            assert told["conda.pytorch.channel"] == "conda-forge"
            assert told["dist.torch.version"] == "2.5.1"
            assert told["python.version"] == "3.12.7"
        assert facts(READER, PIXI)["dist.torchmetrics.version"] == "1.4.0"
        assert facts(READER, MICROMAMBA)["python.prefix"] == "/home/user/micromamba/envs/x"

    def test_grepped(self) -> None:
        line = "pytorch   2.0.1   py3.10_cuda11.7_cudnn8.5.0_0    pytorch\n"
        for command in ("conda list | grep torch", ""):
            told = facts(READER, line, command)
            assert told["conda.pytorch.version"] == told["dist.torch.version"] == "2.0.1"
        assert facts(READER, "cudatoolkit  10.2.89  0\n") == {}
        assert facts(READER, "cudatoolkit  10.2.89  0\n", "conda list | grep cuda") != {}

    def test_export_explicit_and_json(self) -> None:
        told = facts(READER, EXPORT, "conda list --export")
        assert told["conda.cudatoolkit.version"] == "11.3.1"
        assert told["dist.torch.version"] == "1.12.1"
        assert told["dist.timm.version"] == "0.6.7"
        told = facts(READER, EXPLICIT, "conda list --explicit")
        assert told["conda.pytorch.version"] == "2.0.1"
        assert told["conda.pytorch.channel"] == "pytorch"
        assert "secret" not in str(told)
        text = (
            '[\n  {"base_url": "https://x", "build_string": "pypi_0", "channel": "pypi", '
            '"name": "torch", "version": "2.1.0"}\n]\n'
        )
        assert facts(READER, text)["dist.torch.version"] == "2.1.0"

    def test_conda_and_pip_disagree(self) -> None:
        text = "pytorch  2.0.1  py3.10_cuda11.7_cudnn8.5.0_0  pytorch\ntorch  2.4.1  pypi_0  pypi\n"
        read = imported(READER, text)
        told = {fact.name: fact.value for fact in read.facts}
        assert told["conda.pytorch.version"] == "2.0.1"
        assert "dist.torch.version" not in told
        assert "2.4.1" in str(gap(read, "dist.torch.version"))

    @pytest.mark.parametrize(
        "text",
        [
            "I have 2 gpus here\n",
            "nvidia_uvm 1523712 2 nvidia\n",
            "docker  24.0.7  2915  latest/stable  canonical\n",
            "[conda] pytorch  2.0.1  py3.10_cuda11.7_cudnn8.5.0_0  pytorch\n",
            "pytorch=1.13.0=py3.10_cuda11.7_cudnn8.5.0_0\n",
            "conda install pytorch==2.1.0 pytorch-cuda=12.1 -c pytorch\n",
            "ii  libnccl2  2.9.8-1+cuda11.0  amd64  NVIDIA\n",
            "dependencies:\n  numpy: 1.26.4\n",
        ],
    )
    def test_what_is_none(self, text: str) -> None:
        assert facts(READER, text) == {}


class TestEnvironmentFile:
    def test_exported(self) -> None:
        told = facts(READER, ENV_EXPORT, "conda env export")
        assert told["conda.pytorch.version"] == told["dist.torch.version"] == "1.12.1"
        assert told["python.version"] == "3.9.12"
        assert told["dist.xformers.version"] == "0.0.13"
        assert told["python.prefix"] == "/home/user/miniconda3/envs/gpu"
        assert not imported(READER, ENV_EXPORT).notes

    def test_written_by_hand(self) -> None:
        read = imported(READER, ENV_FILE)
        told = {fact.name: fact.value for fact in read.facts}
        assert told["conda.pytorch.version"] == told["dist.torch.version"] == "2.1.0"
        assert told["dist.flash-attn.version"] == "2.3.3"
        assert "python.version" not in told
        assert "dist.transformers.version" not in told
        assert read.notes


class TestInfo:
    def test_virtual_packages(self) -> None:
        assert facts(READER, INFO, "conda info") == {
            "python.prefix": "/home/user/miniconda3",
            "driver.cuda.version": "12.3",
            "os.libc.name": "glibc",
            "os.libc.version": "2.31",
            "kernel.version": "5.15.0",
            "os.arch": "x86_64",
        }
        told = facts(READER, INFO_MAMBA, "micromamba info")
        assert told["driver.cuda.version"] == "11.6"
        assert told["kernel.version"] == "3.10.0"

    def test_of_the_solver(self) -> None:
        told = facts(READER, SOLVER)
        assert told["os.libc.version"] == "2.17"
        assert told["driver.cuda.version"] == "10.2"

    def test_a_requirement_is_none(self) -> None:
        assert facts(READER, "nothing provides __cuda >=12.0 needed by x; __glibc >=2.28\n") == {}


@given(st.sampled_from(SAMPLES), st.integers(0, 3000), st.sampled_from(COMMANDS))
def test_a_text_cut_anywhere(text: str, at: int, command: str) -> None:
    prefixes_hold(READER, text, at, command)


LINE = st.sampled_from("\n".join(SAMPLES).splitlines()) | st.text(max_size=60)


@given(st.lists(LINE, max_size=12).map("\n".join), st.sampled_from(COMMANDS))
def test_any_mixture(text: str, command: str) -> None:
    holds(READER, text, command)


def test_takes_no_long_time() -> None:
    is_linear(READER)
