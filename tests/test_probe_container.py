from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envaudit.host import Host
from envaudit.probes.container import (
    RUNNING,
    find_runtime,
    parse_cgroup_paths,
    parse_containerenv,
    parse_cpu_max,
    parse_throttling,
    root_hint,
    upwards,
)
from tests.probing import Told, machine, probe

METAL: dict[str, str | bytes] = {
    "/proc/self/cgroup": "0::/user.slice/user-1000.slice/session-3.scope\n",
    "/proc/1/cgroup": "0::/init.scope\n",
    "/proc/self/mountinfo": (
        "27 1 254:0 / / rw - ext4 /dev/vda rw\n"
        "90 27 0:60 / /var/lib/docker/overlay2/0a/merged rw - overlay overlay rw,lowerdir=/x\n"
    ),
    "/sys/fs/cgroup/cgroup.controllers": "cpuset cpu io memory\n",
}


def told_by(tmp_path: Path, files: dict[str, str | bytes], **rest: Any) -> Told:
    return probe("container", machine(tmp_path, METAL | files, **({"env": {}} | rest)))


class TestRuntime:
    def test_outside_of_any(self, tmp_path: Path) -> None:
        told = told_by(tmp_path, {})
        assert told.facts == {"cgroup.version": 2}
        assert told.gaps == {}

    @pytest.mark.parametrize(
        ("files", "env", "runtime"),
        [
            ({"/.dockerenv": ""}, {}, "docker"),
            ({"/run/.containerenv": ""}, {}, "podman"),
            ({"/run/systemd/container": "systemd-nspawn\n"}, {}, "systemd-nspawn"),
            ({}, {"container": "lxc"}, "lxc"),
            ({}, {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "container": "oci"}, "kubernetes"),
            ({"/.dockerenv": "", "/proc/self/cgroup": "0::/kubepods/pod1\n"}, {}, "kubernetes"),
            ({"/var/run/secrets/kubernetes.io/x": ""}, {}, "kubernetes"),
            ({"/proc/1/cgroup": "0::/system.slice/cri-containerd-0.scope\n"}, {}, "containerd"),
            ({}, {"APPTAINER_CONTAINER": "/images/x.sif"}, "apptainer"),
            ({}, {"SINGULARITY_CONTAINER": "/images/x.sif"}, "singularity"),
            ({"/.singularity.d/env/x": ""}, {}, "apptainer"),
            ({"/proc/self/cgroup": "0::/system.slice/docker.service\n"}, {}, None),
            ({"/run/systemd/container": "wsl\n"}, {}, None),
            ({"/run/systemd/container": "\x00??\n"}, {}, None),
        ],
    )
    def test_traces(
        self,
        tmp_path: Path,
        files: dict[str, str | bytes],
        env: dict[str, str],
        runtime: str | None,
    ) -> None:
        assert find_runtime(machine(tmp_path, METAL | files, env=env))[0] == runtime

    @pytest.mark.parametrize(
        ("options", "runtime"),
        [
            ("lowerdir=/var/lib/docker/overlay2/l/X", "docker"),
            ("lowerdir=/var/lib/containers/storage/overlay/l/X", "podman"),
            ("lowerdir=/var/lib/containerd/io.containerd.snapshotter.v1.overlayfs/1", "containerd"),
            ("lowerdir=/home/a/.local/share/enroot/data/x", "enroot"),
            ("lowerdir=/run/archiso/sfs", None),
        ],
    )
    def test_the_root_mount_and_no_other(self, options: str, runtime: str | None) -> None:
        assert root_hint(f"512 480 0:60 / / rw - overlay overlay rw,{options}\n") == runtime
        assert root_hint(f"512 480 0:60 / /mnt rw - overlay overlay rw,{options}\n") is None


class TestImage:
    def test_podman_tells(self, tmp_path: Path) -> None:
        note = 'engine="podman-4.9.3"\nimage="docker.io/nvidia/cuda:13.0.0-base"\nrootless=1\n'
        told = told_by(tmp_path, {"/run/.containerenv": note})
        assert told.facts["container.image"] == "docker.io/nvidia/cuda:13.0.0-base"
        assert "container.image" not in told.gaps

    def test_apptainer_tells(self, tmp_path: Path) -> None:
        told = told_by(tmp_path, {}, env={"APPTAINER_CONTAINER": "/images/pytorch.sif"})
        assert told.facts["container.image"] == "/images/pytorch.sif"

    def test_docker_does_not(self, tmp_path: Path) -> None:
        told = told_by(tmp_path, {"/.dockerenv": ""})
        assert "container.image" not in told.facts
        assert "container.image" in told.gaps


def test_what_the_runtime_was_asked_for(tmp_path: Path) -> None:
    env = {"NVIDIA_VISIBLE_DEVICES": "all", "NVIDIA_DRIVER_CAPABILITIES": "compute,utility"}
    told = told_by(tmp_path, {}, env=env)
    assert told.facts["container.visible_devices"] == "all"
    assert told.facts["container.driver_capabilities"] == "compute,utility"


def test_cdi_specifications_of_both_places(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        "/etc/cdi/nvidia.yaml": "",
        "/etc/cdi/README": "",
        "/run/cdi/management.json": "",
    }
    host = machine(tmp_path, METAL | files, {"/var/run": "/run"}, env={})
    told = probe("container", host)
    assert told.facts["container.cdi"] == ["/etc/cdi/nvidia.yaml", "/var/run/cdi/management.json"]


class TestToolkit:
    def test_version_in_the_name_of_its_library(self, tmp_path: Path) -> None:
        link = "/usr/lib/x86_64-linux-gnu/libnvidia-container.so.1"
        host = machine(tmp_path, METAL, {link: "libnvidia-container.so.1.17.8"}, env={})
        assert probe("container", host).facts["container.toolkit.version"] == "1.17.8"

    def test_there_but_without_a_version(self, tmp_path: Path) -> None:
        told = told_by(tmp_path, {"/usr/bin/nvidia-ctk": ""})
        assert "nvidia-ctk" in told.gaps["container.toolkit.version"]

    def test_inside_a_container_it_is_the_hosts(self, tmp_path: Path) -> None:
        told = told_by(tmp_path, {"/.dockerenv": "", "/usr/bin/nvidia-ctk": ""})
        assert "the host's" in told.gaps["container.toolkit.version"]

    def test_not_installed_is_an_answer(self, tmp_path: Path) -> None:
        assert "container.toolkit.version" not in told_by(tmp_path, {}).gaps


class TestCgroup2:
    def test_smallest_quota_on_the_way_up(self, tmp_path: Path) -> None:
        base = "/sys/fs/cgroup/user.slice"
        told = told_by(
            tmp_path,
            {
                f"{base}/cpu.max": "200000 100000\n",
                f"{base}/cpu.stat": "usage_usec 1\nnr_periods 1000\nnr_throttled 70\n",
                f"{base}/memory.max": "max\n",
                f"{base}/user-1000.slice/cpu.max": "400000 100000\n",
                f"{base}/user-1000.slice/memory.max": "8589934592\n",
                f"{base}/user-1000.slice/session-3.scope/cpu.max": "max 100000\n",
                f"{base}/user-1000.slice/session-3.scope/memory.max": "17179869184\n",
            },
        )
        assert told.facts == {
            "cgroup.version": 2,
            "cgroup.cpu.quota_cores": 2.0,
            "cgroup.cpu.throttled_ratio": 0.07,
            "cgroup.memory.max": 8589934592,
        }

    def test_a_container_sees_its_own_group_as_the_root(self, tmp_path: Path) -> None:
        told = told_by(
            tmp_path,
            {
                "/proc/self/cgroup": "0::/../../x\n",
                "/sys/fs/cgroup/cpu.max": "765000 100000\n",
                "/sys/fs/cgroup/cpu.stat": "nr_periods 0\nnr_throttled 0\n",
            },
        )
        assert told.facts["cgroup.cpu.quota_cores"] == 7.65
        assert "cgroup.cpu.throttled_ratio" not in told.facts

    def test_no_limit_is_absent(self, tmp_path: Path) -> None:
        told = told_by(tmp_path, {"/sys/fs/cgroup/memory.max": "max\n"})
        assert "cgroup.memory.max" not in told.facts
        assert told.gaps == {}


V1: dict[str, str | bytes] = {
    "/proc/self/cgroup": "9:name=systemd:/\n4:cpu,cpuacct:/docker/01\n3:memory:/docker/01\n0::/\n",
    "/sys/fs/cgroup/cpu,cpuacct/docker/01/cpu.cfs_quota_us": "150000\n",
    "/sys/fs/cgroup/cpu,cpuacct/docker/01/cpu.cfs_period_us": "100000\n",
    "/sys/fs/cgroup/cpu,cpuacct/docker/01/cpu.stat": "nr_periods 4\nnr_throttled 1\n",
    "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "-1\n",
    "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
    "/sys/fs/cgroup/memory/docker/01/memory.limit_in_bytes": "1073741824\n",
    "/sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
}


class TestCgroup1:
    def test_limits(self, tmp_path: Path) -> None:
        told = probe("container", machine(tmp_path, V1, env={}))
        facts = {name: value for name, value in told.facts.items() if name.startswith("cgroup")}
        assert facts == {
            "cgroup.version": 1,
            "cgroup.cpu.quota_cores": 1.5,
            "cgroup.cpu.throttled_ratio": 0.25,
            "cgroup.memory.max": 1073741824,
        }

    def test_the_largest_number_of_pages_is_no_limit(self, tmp_path: Path) -> None:
        files = {path: text for path, text in V1.items() if "memory/docker" not in path}
        told = probe("container", machine(tmp_path, files, env={}))
        assert "cgroup.memory.max" not in told.facts
        assert "cgroup.memory.max" not in told.gaps

    def test_a_controller_that_is_not_mounted_is_unknown(self, tmp_path: Path) -> None:
        files = {path: text for path, text in V1.items() if "cgroup/cpu" not in path}
        told = probe("container", machine(tmp_path, files, env={}))
        assert "cgroup.cpu.quota_cores" not in told.facts
        assert "cgroup.cpu.*" in told.gaps


def test_nothing_recorded_is_unknown(tmp_path: Path) -> None:
    told = probe("container", machine(tmp_path, {"/etc/os-release": ""}))
    assert told.facts == {}
    assert {"cgroup.*", "container.visible_devices", "container.runtime"} <= set(told.gaps)


def test_an_image_runs_nowhere(tmp_path: Path) -> None:
    machine(tmp_path, METAL | {"/.dockerenv": "", "/etc/cdi/nvidia.yaml": ""})
    told = probe("container", Host(str(tmp_path / "root")))
    assert told.facts == {"container.cdi": ["/etc/cdi/nvidia.yaml"]}
    assert set(told.gaps) == {*RUNNING, "cgroup.*"}


@pytest.mark.parametrize(
    ("text", "cores"),
    [
        ("200000 100000\n", 2.0),
        ("33333 100000", 0.3333),
        ("max 100000", None),
        ("-1 100000", None),
        ("1 0", None),
        ("", None),
    ],
)
def test_cpu_max(text: str, cores: float | None) -> None:
    assert parse_cpu_max(text) == cores


def test_upwards() -> None:
    assert list(upwards("/a/b")) == ["/a/b", "/a", ""]
    assert list(upwards("/")) == [""]
    assert list(upwards("/../../a")) == ["/a", ""]


@given(st.text())
def test_no_text_breaks_a_parser(text: str) -> None:
    parse_containerenv(text)
    parse_cgroup_paths(text)
    parse_cpu_max(text)
    parse_throttling(text)
    root_hint(text)
    assert list(upwards(text))[-1] == ""


def test_this_machine() -> None:
    told = probe("container", Host())
    assert told.facts["cgroup.version"] in (1, 2)
