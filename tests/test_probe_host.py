from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envaudit.host import Host
from envaudit.probes.host import (
    count_ranges,
    iommu_mode,
    mount_of,
    one_word,
    parse_cpuinfo,
    parse_limits,
    parse_meminfo,
    parse_mounts,
    parse_pressure,
)
from envaudit.target import Target
from tests.probing import Told, machine, probe

CPU = "/sys/devices/system/cpu"
LIMITS = """\
Limit                     Soft Limit           Hard Limit           Units
Max core file size        0                    unlimited            bytes
Max open files            1024                 1048576              files
Max locked memory         unlimited            unlimited            bytes
Max nice priority         0                    0
"""
SERVER: dict[str, str | bytes] = {
    "/proc/sys/kernel/hostname": "node7\n",
    "/proc/cpuinfo": (
        "processor\t: 0\nvendor_id\t: AuthenticAMD\n"
        "model name\t: AMD EPYC 9554 64-Core Processor\n\n"
        "processor\t: 1\nvendor_id\t: AuthenticAMD\nmodel name\t: AMD EPYC 9554 64-Core Processor\n"
    ),
    f"{CPU}/online": "0-127,256-383\n",
    f"{CPU}/cpufreq/policy0/scaling_governor": "performance\n",
    f"{CPU}/cpufreq/policy0/scaling_driver": "amd-pstate-epp\n",
    f"{CPU}/cpufreq/policy0/energy_performance_preference": "performance\n",
    f"{CPU}/cpufreq/policy1/scaling_governor": "powersave\n",
    f"{CPU}/cpufreq/policy1/scaling_driver": "amd-pstate-epp\n",
    f"{CPU}/cpufreq/policy1/energy_performance_preference": "performance\n",
    f"{CPU}/cpufreq/boost": "1\n",
    f"{CPU}/cpu0/thermal_throttle/core_throttle_count": "3\n",
    f"{CPU}/cpu0/thermal_throttle/package_throttle_count": "10\n",
    f"{CPU}/cpu1/thermal_throttle/core_throttle_count": "4\n",
    f"{CPU}/cpu1/thermal_throttle/package_throttle_count": "10\n",
    "/sys/devices/system/node/online": "0-1\n",
    "/proc/meminfo": (
        "MemTotal:       131857188 kB\nMemFree:         1000 kB\nMemAvailable:   98000000 kB\n"
        "SwapTotal:       8388604 kB\nSwapFree:        8000000 kB\nHugePages_Total:       0\n"
    ),
    "/proc/loadavg": "0.61 0.58 0.59 2/1234 5678\n",
    "/proc/pressure/cpu": "some avg10=1.25 avg60=0.10 avg300=0.02 total=12345\n",
    "/proc/pressure/memory": "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
    "/proc/pressure/io": (
        "some avg10=7.50 avg60=0.00 avg300=0.00 total=1\n"
        "full avg10=6.00 avg60=0.00 avg300=0.00 total=1\n"
    ),
    "/sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc\n",
    "/sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
    "/proc/self/limits": LIMITS,
    "/proc/self/mounts": (
        "/dev/nvme0n1p2 / ext4 rw,relatime 0 0\n"
        "tmpfs /dev/shm tmpfs rw 0 0\n"
        "/dev/nvme1n1 /var xfs rw 0 0\n"
        "store:/export /home nfs4 rw 0 0\n"
    ),
    "/sys/class/net/lo": "",
}
DISKS = {
    "/": {"size": 1000, "free": 250},
    "/var": {"size": 3000, "free": 1000},
    "/dev/shm": {"size": 67108864, "free": 67108864},
}
REST: dict[str, Any] = {"cpus": 64, "disks": DISKS, "env": {"HOME": "/home/alice"}}


def told_by(tmp_path: Path, more: dict[str, str | bytes], **rest: Any) -> Told:
    return probe("host", machine(tmp_path, SERVER | more, **(REST | rest)))


def test_a_server_tells_everything(tmp_path: Path) -> None:
    told = told_by(tmp_path, {})
    assert told.facts == {
        "host.name": "node7",
        "host.cpu.model": "AMD EPYC 9554 64-Core Processor",
        "host.cpu.vendor": "AMD",
        "host.cpu.count": 256,
        "host.cpu.usable": 64,
        "host.cpu.governor": "mixed",
        "host.cpu.frequency_driver": "amd-pstate-epp",
        "host.cpu.energy_preference": "performance",
        "host.cpu.turbo": True,
        "host.cpu.throttled": 17,
        "host.numa.nodes": 2,
        "host.memory.total": 131857188 * 1024,
        "host.memory.available": 98000000 * 1024,
        "host.swap.used": 388604 * 1024,
        "host.load.1m": 0.61,
        "host.psi.cpu": 1.25,
        "host.psi.memory": 0.0,
        "host.psi.io": 7.5,
        "host.clocksource": "tsc",
        "host.thp": "madvise",
        "host.limits.memlock": -1,
        "host.limits.nofile": 1024,
        "host.limits.core": 0,
        "host.iommu": "none",
        "host.shm.size": 67108864,
        "host.disk./.free": 250,
        "host.disk./.free_ratio": 0.25,
        "host.disk./var.free": 1000,
        "host.disk./var.free_ratio": 0.3333,
    }
    assert told.gaps == {"host.disk./home.*": "nfs4 is not asked: it may not answer"}


def test_nothing_recorded_is_unknown(tmp_path: Path) -> None:
    told = probe("host", machine(tmp_path, {"/etc/os-release": ""}))
    assert told.facts == {}
    assert {"host.cpu.model", "host.cpu.turbo", "host.iommu", "host.disk.*"} <= set(told.gaps)
    assert told.gaps["host.load.1m"] == "no /proc/loadavg"


def test_an_image_has_a_name_and_no_state(tmp_path: Path) -> None:
    machine(tmp_path, SERVER | {"/etc/hostname": "golden\n"})
    told = probe("host", Host(str(tmp_path / "root")))
    assert told.facts == {"host.name": "golden"}
    assert told.gaps == {"host.*": "an image does not run"}


def test_a_virtual_machine_without_frequencies_lacks_them(tmp_path: Path) -> None:
    files = {path: text for path, text in SERVER.items() if "cpufreq" not in path}
    told = probe("host", machine(tmp_path, files, **REST))
    for name in ("host.cpu.governor", "host.cpu.turbo"):
        assert name not in told.facts
        assert name not in told.gaps


def test_turbo_switched_off_with_intel_pstate(tmp_path: Path) -> None:
    told = told_by(tmp_path, {f"{CPU}/intel_pstate/no_turbo": "1\n"})
    assert told.facts["host.cpu.turbo"] is False


class TestDisks:
    def test_file_systems_of_the_target_and_the_store(self, tmp_path: Path) -> None:
        mounts = (
            "/dev/a / ext4 rw 0 0\n/dev/b /opt/my\\040env ext4 rw 0 0\n/dev/c /state xfs rw 0 0\n"
        )
        disks = {place: {"size": 100, "free": 50} for place in ("/", "/opt/my env", "/state")}
        host = machine(
            tmp_path,
            SERVER | {"/proc/self/mounts": mounts},
            disks=disks,
            env={"XDG_STATE_HOME": "/state/alice"},
        )
        target = Target("/opt/my env/bin/python", "--python", "/opt/my env", ())
        told = probe("host", host, target=target)
        ratios = [name for name in told.facts if name.endswith("free_ratio")]
        assert sorted(ratios) == [f"host.disk.{place}.free_ratio" for place in sorted(disks)]

    def test_one_that_fails_costs_only_itself(self, tmp_path: Path) -> None:
        told = told_by(tmp_path, {}, disks={"/var": DISKS["/var"]})
        assert told.facts["host.disk./var.free"] == 1000
        assert "host.disk./.*" in told.gaps
        assert "host.shm.size" in told.gaps

    def test_size_zero_has_no_share(self, tmp_path: Path) -> None:
        told = told_by(tmp_path, {}, disks=DISKS | {"/": {"size": 0, "free": 0}})
        assert not [name for name in told.facts if name.startswith("host.disk./.")]

    @pytest.mark.parametrize(
        "kind", ["nfs", "cifs", "9p", "lustre", "fuse.sshfs", "autofs", "ceph"]
    )
    def test_what_may_hang_is_not_asked(self, tmp_path: Path, kind: str) -> None:
        told = told_by(tmp_path, {"/proc/self/mounts": f"x / {kind} rw 0 0\n"})
        assert "host.disk./.free" not in told.facts
        assert kind in told.gaps["host.disk./.*"]

    @pytest.mark.parametrize("kind", ["overlay", "zfs", "btrfs", "fuse.fuse-overlayfs", "fuseblk"])
    def test_what_is_local_is(self, tmp_path: Path, kind: str) -> None:
        told = told_by(tmp_path, {"/proc/self/mounts": f"x / {kind} rw 0 0\n"})
        assert told.facts["host.disk./.free"] == 250

    def test_no_shm_mount_no_size(self, tmp_path: Path) -> None:
        told = told_by(tmp_path, {"/proc/self/mounts": "x / ext4 rw 0 0\n"})
        assert "host.shm.size" not in told.facts

    def test_the_last_mount_on_a_place_counts(self) -> None:
        assert parse_mounts("a /x autofs rw 0 0\nb /x ext4 rw 0 0\n") == {"/x": "ext4"}

    def test_mount_of_a_path_by_name(self) -> None:
        mounts = {"/": "ext4", "/var": "xfs", "/variant": "xfs"}
        assert mount_of("/var/lib/envaudit", mounts) == "/var"
        assert mount_of("/variable", mounts) == "/"
        assert mount_of("/var/../tmp", mounts) == "/"
        assert mount_of("/var", {}) is None


class TestIommu:
    GROUPS = "/sys/kernel/iommu_groups"

    def told(self, tmp_path: Path, types: dict[str, str], cmdline: str = "", **links: str) -> Told:
        files: dict[str, str | bytes] = {
            f"{self.GROUPS}/{group}/type": f"{kind}\n" for group, kind in types.items()
        }
        files |= {"/sys/class/iommu/dmar0/x": "", "/proc/cmdline": cmdline}
        for group in links.values():
            device = f"/sys/bus/pci/devices/0000:{group}:00.0"
            files |= {f"{device}/vendor": "0x10de\n", f"{device}/class": "0x030200\n"}
        to = {
            f"/sys/bus/pci/devices/0000:{group}:00.0/iommu_group": f"../../iommu_groups/{group}"
            for group in links.values()
        }
        return probe("host", machine(tmp_path, SERVER | files, to, **REST))

    def test_all_translated(self, tmp_path: Path) -> None:
        told = self.told(tmp_path, {"0": "DMA", "1": "DMA-FQ"})
        assert told.facts["host.iommu"] == "translated"

    def test_the_gpus_decide(self, tmp_path: Path) -> None:
        told = self.told(tmp_path, {"0": "DMA", "7": "identity"}, gpu="7")
        assert told.facts["host.iommu"] == "passthrough"
        assert told.sources["host.iommu"].endswith("of the GPUs")

    def test_the_command_line_where_groups_differ(self, tmp_path: Path) -> None:
        told = self.told(tmp_path, {"0": "DMA", "1": "identity"}, "quiet iommu=pt")
        assert told.facts["host.iommu"] == "passthrough"

    def test_unknown_where_nothing_decides(self, tmp_path: Path) -> None:
        told = self.told(tmp_path, {"0": "DMA", "1": "identity"})
        assert "host.iommu" in told.gaps

    def test_lent_devices_say_nothing(self) -> None:
        assert iommu_mode({"0": "unmanaged", "1": "blocked"}) is None
        assert iommu_mode({"0": "unmanaged", "1": "identity"}) == "passthrough"


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (
            "processor : 0\nCPU implementer : 0x41\nCPU part : 0xd4f\n",
            ("implementer 0x41 part 0xd4f", "ARM", 1),
        ),
        (
            "processor\t: 0\ncpu\t\t: POWER9, altivec supported\n",
            ("POWER9, altivec supported", "", 1),
        ),
        ("processor : 0\nvendor_id : GenuineIntel\nmodel name : Intel(R)  Xeon(R)\n", None),
        ("", ("", "", 0)),
    ],
)
def test_cpuinfo(text: str, answer: tuple[str, str, int] | None) -> None:
    assert parse_cpuinfo(text) == (answer or ("Intel(R) Xeon(R)", "Intel", 1))


@pytest.mark.parametrize(
    ("text", "count"),
    [("0-3", 4), ("0", 1), ("0-1,8-11,16\n", 7), ("", 0), ("x", 0), ("3-0", 0), ("0-", 0)],
)
def test_kernel_lists(text: str, count: int) -> None:
    assert count_ranges(text) == count


def test_one_word() -> None:
    assert one_word([]) is None
    assert one_word(["", "powersave"]) == "powersave"
    assert one_word(["performance", "powersave"]) == "mixed"


def test_limits() -> None:
    limits = parse_limits(LIMITS)
    assert limits["Max open files"] == 1024
    assert limits["Max locked memory"] == -1


def test_pressure_of_a_kernel_that_says_something_else() -> None:
    assert parse_pressure("some avg10=nan") is None


@given(st.text())
def test_no_text_breaks_a_parser(text: str) -> None:
    parse_cpuinfo(text)
    parse_meminfo(text)
    parse_limits(text)
    parse_pressure(text)
    parse_mounts(text)
    count_ranges(text)
    mount_of(text, parse_mounts(text))


@given(st.lists(st.tuples(st.integers(0, 999), st.integers(0, 99)), min_size=1))
def test_lists_are_counted_as_the_kernel_writes_them(pieces: list[tuple[int, int]]) -> None:
    text = ",".join(f"{first}-{first + more}" if more else str(first) for first, more in pieces)
    assert count_ranges(text) == sum(more + 1 for _, more in pieces)


def test_this_machine() -> None:
    told = probe("host", Host())
    assert told.facts["host.cpu.usable"] == len(os.sched_getaffinity(0))
    assert told.facts["host.memory.total"] > told.facts["host.memory.available"] > 0
    assert told.facts["host.name"] == os.uname().nodename
