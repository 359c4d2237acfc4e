"""JSON and YAML that other tools export."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from envaudit.importers import exports
from tests.importing import absent, facts, holds, is_linear, prefixes_hold
from tests.smi_samples import TABLE_580

NAME = "exports"

ENV_DOCTOR: dict[str, Any] = {
    "env_doctor_version": "0.3.5",
    "spec_version": "1.0",
    "platform": {"system": "Linux"},
    "environment": {
        "nvidia_driver": "555.42.02",
        "max_cuda_version": "12.4",
        "cuda_toolkit": "12.4",
        "cudnn": "92.4.0",
        "python": "3.11.9",
        "libraries": {
            "torch": {"version": "2.3.0+cu121", "cuda_version": "12.1"},
            "tensorflow": {"version": "2.16.1", "cuda_version": "Unknown"},
            "jax": None,
        },
        "gpus": [
            {"name": "NVIDIA GeForce RTX 4090", "vram_mb": 24564, "compute_capability": "8.9"},
            {"name": "Tesla P40", "vram_mb": 24576, "compute_capability": None},
        ],
    },
}
ENV_DOCTOR_CHECK: dict[str, Any] = {
    "machine": {
        "platform": "Linux",
        "platform_release": "6.8.0-45-generic",
        "python_version": "3.10.12",
    },
    "status": "warning",
    "summary": {"driver": "found", "cuda": "not_found"},
    "checks": {
        "driver": {
            "version": "580.95.05",
            "metadata": {"max_cuda_version": "13.0", "gpus": [{"name": "NVIDIA L4"}]},
        },
        "cuda": {"version": None},
        "cudnn": {"version": "9.10.2", "path": "/usr/lib/x86_64-linux-gnu/libcudnn.so.9"},
        "libraries": {
            "torch": {
                "version": "2.9.1+cu128",
                "metadata": {"cuda_version": "12.8", "arch_list": ["sm_75", "sm_90"]},
            }
        },
    },
}
RAPIDS: dict[str, Any] = {
    "date": "2025-09-01 10:00:00",
    "platform": "Linux-5.15.0-91-generic-x86_64-with-glibc2.35",
    "nvidia_smi_output": TABLE_580,
    "driver_version": "580.95.05",
    "cuda_version": "13.0",
    "python_version": "3.12.3",
    "package_versions": {"cudf-cu12": "25.8.0", "NumPy": "2.2.6", "Odd Name!": "1"},
    "tools": {"nvcc": "Cuda compilation tools, release 12.9, V12.9.86", "conda": None},
    "os_info": {"ID": "ubuntu", "VERSION_ID": "22.04", "PRETTY_NAME": "Ubuntu 22.04.5 LTS"},
}
AICR: dict[str, Any] = {
    "kind": "Snapshot",
    "apiVersion": "aicr.nvidia.com/v1alpha1",
    "measurements": [
        {
            "type": "GPU",
            "subtypes": [
                {
                    "subtype": "smi",
                    "data": {
                        "driver": "560.35.03",
                        "cuda-version": "12.6",
                        "gpu-count": 8,
                        "gpu.model": "NVIDIA B200",
                        "gpu.gsp-firmware-version": "560.35.03",
                    },
                }
            ],
        },
        {
            "type": "OS",
            "subtypes": [
                {"subtype": "release", "data": {"ID": "ubuntu", "VERSION_ID": "24.04"}},
                {"subtype": "kmod", "data": {"nvidia": True, "nvidia_uvm": True, "xfs": True}},
            ],
        },
    ],
}
AICR_YAML = """\
apiVersion: aicr.nvidia.com/v1alpha1
kind: Snapshot
metadata:
  version: dev
measurements:
  - type: OS
    subtypes:
      - subtype: release
        data:
          ID: ubuntu
          VERSION_ID: "24.04"
      - subtype: kmod
        data:
          nvidia: true
  - type: GPU
    subtypes:
      - subtype: smi
        data:
          gpu.model: NVIDIA B200
          driver: "560.35.03"
          gpu-count: 8
"""
SYSINFO: dict[str, Any] = {
    "Platform": "Windows-10-10.0.22631-SP0",
    "Python": "3.10.6",
    "Torch env info": {
        "torch_version": "2.0.1+cu118",
        "is_cuda_available": "True",
        "cuda_compiled_version": "11.8",
        "nvidia_driver_version": "551.61",
        "nvidia_gpu_models": "GPU 0: NVIDIA GeForce RTX 3060\nGPU 1: Tesla P40",
        "os": "Microsoft Windows 11 Home",
        "python_platform": "Windows-10-10.0.22631-SP0",
    },
    "Packages": ["torch==2.0.1+cu118", "xformers==0.0.20", "-e git+https://x/y"],
}
PIP: dict[str, Any] = {
    "version": "1",
    "pip_version": "24.0",
    "installed": [
        {"metadata": {"name": "Torch", "version": "2.4.1"}},
        {"metadata": {"name": "nvidia_cudnn_cu12", "version": "9.1.0.70"}},
    ],
    "environment": {
        "python_full_version": "3.11.2",
        "platform_machine": "x86_64",
        "platform_system": "Linux",
        "platform_release": "6.1.0-18-amd64",
    },
}
DOCUMENTS = (ENV_DOCTOR, ENV_DOCTOR_CHECK, RAPIDS, AICR, SYSINFO, PIP)


def of(document: object) -> dict[str, Any]:
    return facts(NAME, json.dumps(document, indent=1))


def test_env_doctor_export() -> None:
    assert of(ENV_DOCTOR) == {
        "driver.version": "555.42.02",
        "cuda.toolkit.version": "12.4",
        "python.version": "3.11.9",
        "torch.version": "2.3.0+cu121",
        "torch.cuda.version": "12.1",
        "tensorflow.version": "2.16.1",
        "gpu.0.name": "NVIDIA GeForce RTX 4090",
        "gpu.0.compute_capability": "8.9",
        "gpu.1.name": "Tesla P40",
    }


def test_env_doctor_check() -> None:
    assert of(ENV_DOCTOR_CHECK) == {
        "driver.version": "580.95.05",
        "gpu.0.name": "NVIDIA L4",
        "cudnn.installs": ["/usr/lib/x86_64-linux-gnu/libcudnn.so.9 9.10.2 env-doctor"],
        "torch.version": "2.9.1+cu128",
        "torch.cuda.version": "12.8",
        "torch.arch_list": ["sm_75", "sm_90"],
        "python.version": "3.10.12",
        "kernel.release": "6.8.0-45-generic",
        "kernel.version": "6.8.0",
        "os.wsl": False,
    }


def test_what_a_tool_computed_is_no_reading() -> None:
    assert "driver.cuda.version" not in of(ENV_DOCTOR)
    assert "driver.cuda.version" not in of(ENV_DOCTOR_CHECK)


def test_rapids_debug() -> None:
    told = of(RAPIDS)
    assert told["driver.version"] == "580.95.05"
    assert told["driver.cuda.version"] == "13.0"
    assert told["gpu.0.name"] == "NVIDIA H100 80GB HBM3"
    assert told["gpu.count"] == 2
    assert told["cuda.toolkit.version"] == "12.9.86"
    assert told["dist.cudf-cu12.version"] == "25.8.0"
    assert told["dist.numpy.version"] == "2.2.6"
    assert told["dist.all"] == ["cudf-cu12 25.8.0", "numpy 2.2.6"]
    assert told["os.id"] == "ubuntu"
    assert told["kernel.release"] == "5.15.0-91-generic"


def test_aicr() -> None:
    told = of(AICR)
    assert told["driver.version"] == "560.35.03"
    assert told["driver.cuda.version"] == "12.6"
    assert told["gpu.count"] == 8
    assert told["gpu.0.name"] == "NVIDIA B200"
    assert told["os.version"] == "24.04"
    assert told["kernel.module.nvidia.loaded"] is True
    assert told["kernel.module.nouveau.loaded"] is False


def test_aicr_as_yaml() -> None:
    told = facts(NAME, AICR_YAML)
    assert told["os.id"] == "ubuntu"
    assert told["os.version"] == "24.04"
    assert told["kernel.module.nvidia.loaded"] is True
    assert told["driver.version"] == "560.35.03"
    assert told["gpu.count"] == 8
    assert told["gpu.0.name"] == "NVIDIA B200"


def test_sysinfo() -> None:
    assert of(SYSINFO) == {
        "os.id": "windows",
        "os.version": "11",
        "os.build": "22631",
        "python.version": "3.10.6",
        "torch.version": "2.0.1+cu118",
        "torch.cuda.version": "11.8",
        "driver.version": "551.61",
        "gpu.0.name": "NVIDIA GeForce RTX 3060",
        "gpu.1.name": "Tesla P40",
        "torch.cuda.available": True,
        "dist.torch.version": "2.0.1+cu118",
        "dist.xformers.version": "0.0.20",
        "dist.all": ["torch 2.0.1+cu118", "xformers 0.0.20"],
    }
    cpu = {**SYSINFO, "Torch env info": {"cuda_compiled_version": "None"}}
    assert absent(NAME, json.dumps(cpu)) == {"torch.cuda.version"}


def test_pip_inspect() -> None:
    told = of(PIP)
    assert told["dist.torch.version"] == "2.4.1"
    assert told["dist.nvidia-cudnn-cu12.version"] == "9.1.0.70"
    assert told["python.version"] == "3.11.2"


def test_kinds_are_told_by_their_keys() -> None:
    kinds = [exports.kind_of(document) for document in DOCUMENTS]
    assert kinds == [name for name, _ in exports.documents()]
    others: list[Any] = [{}, {"facts": {}}, {"driver.version": "1"}, [], None, {"checks": 1}]
    for other in others:
        assert exports.kind_of(other) == ""


@given(
    st.sampled_from(DOCUMENTS),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
        ),
        max_leaves=5,
    ),
    st.data(),
)
def test_any_value_anywhere(document: dict[str, Any], value: Any, data: st.DataObject) -> None:
    changed = json.loads(json.dumps(document))
    place = changed
    for _ in range(data.draw(st.integers(0, 4))):
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        if not keys:
            break
        key = data.draw(st.sampled_from(keys))
        if isinstance(place[key], (dict, list)) and place[key]:
            place = place[key]
        else:
            place[key] = value
            break
    else:
        if isinstance(place, dict):
            place[data.draw(st.sampled_from(list(place)))] = value
    holds(NAME, json.dumps(changed))


@given(st.sampled_from(DOCUMENTS), st.integers(0, 10_000))
def test_cut_anywhere(document: dict[str, Any], at: int) -> None:
    prefixes_hold(NAME, json.dumps(document, indent=1), at)
    prefixes_hold(NAME, AICR_YAML, at)


def test_deep_nesting() -> None:
    holds(NAME, '{"measurements": ' + "[" * 100_000)
    holds(NAME, '{"measurements": ' + '{"a":' * 100_000)


def test_no_text_takes_long() -> None:
    is_linear(NAME, '{"measurements": ', "measurements: subtype\n")
