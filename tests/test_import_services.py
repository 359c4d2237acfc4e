"""systemctl, the fabric manager, docker info and NVIDIA's container tools."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.importing import absent, facts, holds, is_linear, prefixes_hold

NAME = "services"

STATUS = """\
\u25cf nvidia-fabricmanager.service - NVIDIA fabric manager service
     Loaded: loaded (/lib/systemd/system/nvidia-fabricmanager.service; enabled; vendor preset: enabled)
     Active: failed (Result: exit-code) since Mon 2024-05-06 10:01:02 UTC; 3min ago
May 06 10:01:02 h nv-fabricmanager[1]: fabric manager NVIDIA GPU driver interface version 535.129.03 don't match with driver version 535.154.05. Please update with matching NVIDIA driver package.
"""  # noqa: E501
RUNNING = """\
* nvidia-persistenced.service - NVIDIA Persistence Daemon
   Loaded: loaded (/usr/lib/systemd/system/nvidia-persistenced.service; enabled)
   Active: active (running) since Tue 2020-03-03 10:00:00 UTC; 1 day ago
"""
DOCKER = """\
Client: Docker Engine - Community
 Version:    24.0.5
Server:
 Server Version: 24.0.5
 Storage Driver: overlay2
 Cgroup Driver: systemd
 Cgroup Version: 2
 Runtimes: io.containerd.runc.v2 nvidia runc
 Default Runtime: runc
 Kernel Version: 5.15.0-105-generic
 Operating System: Ubuntu 22.04.4 LTS
"""
CLI_INFO = """\
NVRM version:   535.54.03
CUDA version:   12.2

Device Index:   0
Device Minor:   0
Model:          NVIDIA A100-SXM4-40GB
Brand:          Nvidia
GPU UUID:       GPU-12345678-1234-1234-1234-123456780000
Bus Location:   00000000:00:1e.0
Architecture:   8.0
"""
CLI_VERSION = "cli-version: 1.13.5\nlib-version: 1.13.5\nbuild date: 2023-07-18T11:37+00:00\n"
SAMPLES = (STATUS, RUNNING, DOCKER, CLI_INFO, CLI_VERSION)


def test_a_service_that_failed() -> None:
    assert facts(NAME, STATUS) == {
        "service.nvidia-fabricmanager.active": False,
        "fabricmanager.active": False,
        "fabricmanager.version": "535.129.03",
        "driver.version": "535.154.05",
    }


def test_a_service_that_runs() -> None:
    assert facts(NAME, RUNNING) == {
        "service.nvidia-persistenced.active": True,
        "driver.persistenced.active": True,
    }


@pytest.mark.parametrize(
    ("word", "active"), [("active", True), ("inactive", False), ("failed", False)]
)
def test_is_active(word: str, active: bool) -> None:
    told = {"service.nvidia-fabricmanager.active": active, "fabricmanager.active": active}
    assert facts(NAME, f"{word}\n", "systemctl is-active nvidia-fabricmanager") == told
    assert facts(NAME, f"{word}\n", "systemctl is-active nvidia-fabricmanager.service") == told
    assert facts(NAME, f"{word}\n", "systemctl is-active cups") == {}


def test_a_service_that_is_not_there() -> None:
    text = "Unit nvidia-fabricmanager.service could not be found.\n"
    assert facts(NAME, text)["fabricmanager.active"] is False
    assert absent(NAME, text) == {"fabricmanager.version"}


def test_a_list_of_units() -> None:
    text = "  nvidia-persistenced.service   loaded active running NVIDIA Persistence Daemon\n"
    assert facts(NAME, text)["driver.persistenced.active"] is True


@pytest.mark.parametrize(
    "text",
    [
        "Fabric Manager version is : 535.161.08",
        "[May 06 2024] [INFO] Fabric Manager version 535.161.08 is running with the following",
    ],
)
def test_version_of_the_fabric_manager(text: str) -> None:
    assert facts(NAME, f"{text}\n") == {"fabricmanager.version": "535.161.08"}


@pytest.mark.parametrize(
    "text",
    [
        "NVIDIA Container Toolkit CLI version 1.14.3\ncommit: abc",
        "NVIDIA Container Runtime Hook version 1.14.3\ncommit: abc",
        "NVIDIA Container Runtime version 1.14.3",
    ],
)
def test_container_toolkit(text: str) -> None:
    assert facts(NAME, f"{text}\n") == {"container.toolkit.version": "1.14.3"}


def test_container_cli() -> None:
    assert facts(NAME, CLI_VERSION) == {"container.cli.version": "1.13.5"}
    assert facts(NAME, CLI_INFO) == {
        "driver.version": "535.54.03",
        "driver.cuda.version": "12.2",
        "gpu.0.name": "NVIDIA A100-SXM4-40GB",
        "gpu.0.uuid": "GPU-12345678-1234-1234-1234-123456780000",
        "gpu.0.pci.address": "0000:00:1e.0",
        "gpu.0.compute_capability": "8.0",
    }
    assert facts(NAME, CLI_INFO[30:]) == {}  # nobody says whose CUDA that is


def test_docker() -> None:
    assert facts(NAME, DOCKER) == {
        "docker.version": "24.0.5",
        "cgroup.version": 2,
        "docker.runtimes": ["io.containerd.runc.v2", "nvidia", "runc"],
        "docker.default_runtime": "runc",
    }
    assert facts(NAME, "Docker version 29.6.2, build dfc4efb\n") == {"docker.version": "29.6.2"}
    desktop = DOCKER.replace("Ubuntu 22.04.4 LTS", "Docker Desktop")
    assert facts(NAME, desktop)["docker.desktop"] is True


@given(st.sampled_from(SAMPLES), st.integers(0, 2000))
def test_cut_anywhere(text: str, at: int) -> None:
    prefixes_hold(NAME, text, at)


@given(
    st.lists(st.sampled_from("\n".join(SAMPLES).splitlines()) | st.text(max_size=60)),
    st.sampled_from(("", "systemctl is-active docker", "docker info")),
)
def test_any_text(lines: list[str], command: str) -> None:
    holds(NAME, "\n".join(lines), command)


def test_no_text_takes_long() -> None:
    is_linear(NAME, "nvidia-fabricmanager.service ", "Runtimes: ", "NVRM version: 535.1\nModel: ")
