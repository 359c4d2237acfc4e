from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envaudit.probes.conda import parse_channel, parse_record_name
from envaudit.stack import conda_matters
from envaudit.target import Target
from tests.probing import Told, machine, probe

META = "/opt/conda/envs/gpu/conda-meta"
TARGET = Target("/opt/conda/envs/gpu/bin/python", "$CONDA_PREFIX", "/opt/conda/envs/gpu", ())


def record(channel: str | None, **rest: object) -> str:
    head = {"build": "x", "build_number": 0} | ({"channel": channel} if channel else {})
    return json.dumps(head | rest | {"files": ["lib/x"] * 50_000}, indent=2)


FILES: dict[str, str | bytes] = {
    f"{META}/history": "==> 2025-01-01 <==\n",
    f"{META}/pytorch-2.3.0-py3.11_cuda12.1_cudnn8.9.2_0.json": record(
        "https://conda.anaconda.org/pytorch/linux-64"
    ),
    f"{META}/cuda-version-12.6-h7480c83_3.json": record(
        "https://conda.anaconda.org/conda-forge/noarch"
    ),
    f"{META}/libcublas-12.6.4.1-h5888daf_1.json": record("https://conda.anaconda.org/conda-forge/"),
    f"{META}/numpy-1.26.4-py311h08b1b3b_0.json": record(
        "https://repo.anaconda.com/pkgs/main/linux-64"
    ),
    f"{META}/zlib-1.3.1-hb9d3cd8_2.json": record("https://conda.anaconda.org/conda-forge/linux-64"),
}


def told_by(tmp_path: Path, files: dict[str, str | bytes], **before: str) -> Told:
    return probe("conda", machine(tmp_path, files), target=TARGET, before={**before})


def test_packages_of_the_gpu_stack(tmp_path: Path) -> None:
    told = told_by(tmp_path, FILES)
    assert told.facts == {
        "conda.pytorch.version": "2.3.0",
        "conda.pytorch.build": "py3.11_cuda12.1_cudnn8.9.2_0",
        "conda.pytorch.channel": "pytorch",
        "conda.cuda-version.version": "12.6",
        "conda.cuda-version.build": "h7480c83_3",
        "conda.cuda-version.channel": "conda-forge",
        "conda.libcublas.version": "12.6.4.1",
        "conda.libcublas.build": "h5888daf_1",
        "conda.libcublas.channel": "conda-forge",
        "conda.numpy.version": "1.26.4",
        "conda.numpy.build": "py311h08b1b3b_0",
        "conda.numpy.channel": "pkgs/main",
    }
    assert told.gaps == {}


def test_the_prefix_that_the_interpreter_told_wins(tmp_path: Path) -> None:
    moved = {path.replace("/opt/conda/envs/gpu", "/else"): text for path, text in FILES.items()}
    told = told_by(tmp_path, moved, **{"python.prefix": "/else"})
    assert told.facts["conda.pytorch.version"] == "2.3.0"


def test_another_kind_of_environment(tmp_path: Path) -> None:
    told = told_by(tmp_path, {"/opt/conda/envs/gpu/pyvenv.cfg": ""})
    assert told.status == "absent"


def test_an_unknown_prefix_is_no_answer(tmp_path: Path) -> None:
    shim = Target("/shims/python", "--python", "", ())
    told = probe("conda", machine(tmp_path), target=shim)
    assert "conda.*" in told.gaps
    assert probe("conda", machine(tmp_path)).status == "absent"


@pytest.mark.parametrize("content", [b"", b"\xff\xfe{", record(None), b'{"channel": 3}'])
def test_a_record_without_a_channel(tmp_path: Path, content: str | bytes) -> None:
    told = told_by(tmp_path, {f"{META}/cudnn-9.3.0-h62a6f1c_2.json": content})
    assert told.facts == {"conda.cudnn.version": "9.3.0", "conda.cudnn.build": "h62a6f1c_2"}
    assert "names none" in told.gaps["conda.cudnn.channel"]


def test_a_record_that_cannot_be_read_keeps_what_its_name_tells(tmp_path: Path) -> None:
    told = told_by(tmp_path, {f"{META}/cudnn-9.3.0-h62a6f1c_2.json/x": ""})
    assert told.facts["conda.cudnn.version"] == "9.3.0"
    assert "directory" in told.gaps["conda.cudnn.channel"]


def test_only_records_that_matter_are_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = machine(tmp_path, FILES)
    read: list[str] = []

    def note(path: str, limit: int) -> str:
        read.append(path)
        return ""

    monkeypatch.setattr(host, "read", note)
    probe("conda", host, target=TARGET)
    assert len(read) == 4
    assert not [path for path in read if "zlib" in path]


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ("python-3.12.11-h9e4cc4f_0_cpython.json", ("python", "3.12.11", "h9e4cc4f_0_cpython")),
        ("_openmp_mutex-4.5-2_gnu.json", ("_openmp_mutex", "4.5", "2_gnu")),
        ("cuda-nvcc_linux-64-12.6.85-1.json", ("cuda-nvcc_linux-64", "12.6.85", "1")),
        ("history", None),
        ("state.json", None),
        ("x-1.json", None),
    ],
)
def test_record_names(entry: str, expected: tuple[str, str, str] | None) -> None:
    assert parse_record_name(entry) == expected


@pytest.mark.parametrize(
    ("channel", "expected"),
    [
        ("https://conda.anaconda.org/nvidia/label/cuda-12.4.1/noarch", "nvidia/label/cuda-12.4.1"),
        ("https://conda.anaconda.org/t/me-12ab-SECRET/private/linux-64", "private"),
        (
            "https://me:SECRET@mirror.example/conda-forge/linux-aarch64",
            "mirror.example/conda-forge",
        ),
        ("https://mirror.example/c/noarch?token=SECRET", "mirror.example/c"),
        ("conda-forge", "conda-forge"),
        ("file:///opt/channel/linux-64", "opt/channel"),
        ("<unknown>", "<unknown>"),
    ],
)
def test_channels(channel: str, expected: str) -> None:
    assert parse_channel(record(channel)) == expected
    assert "SECRET" not in (parse_channel(record(channel)) or "")


def test_what_matters() -> None:
    for name in ("pytorch", "cudatoolkit", "cuda-nvcc", "libcusparse", "nccl", "libblas", "python"):
        assert conda_matters(name), name
    for name in ("zlib", "openssl", "tk", "pandas"):
        assert not conda_matters(name), name


@given(st.text(max_size=100))
def test_any_text(text: str) -> None:
    parse_record_name(text)
    parse_record_name(f"{text}-1-0.json")
    parse_channel('{"channel": "' + text + '"')
