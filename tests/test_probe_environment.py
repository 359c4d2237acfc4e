from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envaudit.host import Host
from envaudit.variables import ALLOWED, VALUE_LIMIT, allowed, clean
from tests.probing import Told, machine, probe


def told_by(tmp_path: Path, **env: str) -> Told:
    return probe("environment", machine(tmp_path, env=env))


def test_variables_that_matter_are_told(tmp_path: Path) -> None:
    told = told_by(
        tmp_path,
        CUDA_VISIBLE_DEVICES="0,1",
        NCCL_P2P_DISABLE="1",
        LD_LIBRARY_PATH="/usr/local/cuda/lib64",
        CUDAHOSTCXX="/usr/bin/g++-12",
        HOME="/home/alice",
        PATH="/usr/bin",
        AWS_SECRET_ACCESS_KEY="x",
    )
    assert told.facts == {
        "env.CUDA_VISIBLE_DEVICES": "0,1",
        "env.NCCL_P2P_DISABLE": "1",
        "env.LD_LIBRARY_PATH": "/usr/local/cuda/lib64",
        "env.CUDAHOSTCXX": "/usr/bin/g++-12",
    }
    assert told.sources["env.NCCL_P2P_DISABLE"] == "environment NCCL_P2P_DISABLE"
    assert told.gaps == {}


def test_set_but_empty_is_a_fact(tmp_path: Path) -> None:
    assert told_by(tmp_path, CUDA_VISIBLE_DEVICES="").facts == {"env.CUDA_VISIBLE_DEVICES": ""}


@pytest.mark.parametrize(
    "name",
    ["VLLM_API_KEY", "NVIDIA_API_KEY", "JAX_AUTH_X", "TRITON_TOKEN", "NCCL_COMM_ID", "VLLM_HOST_IP"]
    + ["JAX_COORDINATOR_ADDRESS", "TORCH_SECRET_Y", "MKL_PASS", "TRITON_CACHE_URL"],
)
def test_secrets_and_addresses_are_named_but_never_told(tmp_path: Path, name: str) -> None:
    told = told_by(tmp_path, **{name: "swordfish"})
    assert told.facts == {}
    assert told.gaps == {f"env.{name}": "set; its value is not told"}
    assert "swordfish" not in str(told)


@pytest.mark.parametrize(
    "name",
    ["NVIDIA_DCGM_EXPORTER_SERVICE_HOST", "NVIDIA_DCGM_EXPORTER_PORT", "VLLM_PORT_8000_TCP"]
    + ["VLLM_PORT_8000_TCP_ADDR", "TF_VAR_password", "TF_TOKEN_app", "CUDA_\xe9", "CUDA.X"],
)
def test_families_of_somebody_else_are_passed_over(tmp_path: Path, name: str) -> None:
    told = told_by(tmp_path, **{name: "tcp://10.0.0.7:8000"})
    assert told.facts == told.gaps == {}


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("http://alice:s3cret@proxy:3128/x", "http://proxy:3128/x"),
        ("http://a:b@h1,https://c:d@h2", "http://h1,https://h2"),
        ("https://h/simple?token=abc&x=1", "https://h/simple?token=***&x=1"),
        ("--api-key=sk-abcdefghijkl --x", "--api-key=*** --x"),
        ("hf_abcdefghijklmnop", "***"),
        ("https://alice:p/q?r#s@proxy/x", "https://proxy/x"),
        ("user@host", "user@host"),
        ("/opt/cuda/lib64:/usr/lib", "/opt/cuda/lib64:/usr/lib"),
        ("expandable_segments:True,max_split_size_mb:128",) * 2,
        ("--xla_gpu_cuda_data_dir=/usr/local/cuda",) * 2,
    ],
)
def test_values_lose_logins_and_tokens(value: str, told: str) -> None:
    assert clean(value) == told


def test_a_huge_value_is_cut_with_a_mark() -> None:
    told = clean("x" * 100_000)
    assert told.startswith("x" * VALUE_LIMIT + "... (cut")
    assert len(told) < VALUE_LIMIT + 40


def test_bytes_that_are_no_text_still_make_a_fact(tmp_path: Path) -> None:
    host = machine(tmp_path, env={"LD_PRELOAD": "placeholder"})
    host.env = {"LD_PRELOAD": "/x\udcff.so"}
    assert probe("environment", host).facts == {"env.LD_PRELOAD": "/x?.so"}


def test_an_image_has_no_environment(tmp_path: Path) -> None:
    for host in (Host(str(tmp_path)), machine(tmp_path / "m", arch="x86_64")):
        told = probe("environment", host)
        assert told.facts == {}
        assert "env.*" in told.gaps


def test_every_line_of_the_list_has_one_word_of_reason() -> None:
    for pattern, reason in ALLOWED:
        assert reason.isalpha()
        assert allowed(pattern.replace("*", "X"))
    assert not allowed("PATH")
    assert not allowed("MY_CUDA_HOME")


@given(st.text(), st.text())
def test_no_name_or_value_breaks_it(name: str, value: str) -> None:
    allowed(name)
    clean(value)


@given(st.text(st.characters(exclude_characters=" \t\n,;\"'", codec="ascii")))
def test_no_login_survives(login: str) -> None:
    assert clean(f"https://{login}pw@host/").endswith(("https://host/", "***"))


def test_this_machine() -> None:
    assert probe("environment", Host(env={"CC": "gcc"})).facts == {"env.CC": "gcc"}
