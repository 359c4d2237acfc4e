from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envaudit.host import Host
from envaudit.probes.os import (
    parse_libc_banner,
    parse_os_release,
    parse_redhat_release,
    virtualization,
    wsl_version,
)
from tests.probing import Told, machine, probe

DEBIAN = """\
PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"
NAME="Debian GNU/Linux"
VERSION_ID="12"
ID=debian
"""
BANNER = b"\0\0GNU C Library (Debian GLIBC 2.36-9+deb12u10) stable release version 2.36.\nCopyright"
GUEST = "flags\t\t: fpu vme hypervisor lahf_lm\n"
METAL = "flags\t\t: fpu vme lahf_lm\n"


def told_by(tmp_path: Path, files: dict[str, str | bytes], **rest: Any) -> Told:
    return probe("os", machine(tmp_path, files, **rest))


class TestDistribution:
    def test_os_release(self, tmp_path: Path) -> None:
        told = told_by(tmp_path, {"/etc/os-release": DEBIAN})
        assert told.facts["os.id"] == "debian"
        assert told.facts["os.version"] == "12"
        assert told.facts["os.name"] == "Debian GNU/Linux 12 (bookworm)"
        assert "os.build" not in told.facts

    def test_below_usr_only(self, tmp_path: Path) -> None:
        told = told_by(tmp_path, {"/usr/lib/os-release": "ID='sles'\nVERSION_ID='15.6'\n"})
        assert (told.facts["os.id"], told.facts["os.version"]) == ("sles", "15.6")

    def test_rolling_has_no_version_and_no_build(self, tmp_path: Path) -> None:
        told = told_by(tmp_path, {"/etc/os-release": "ID=arch\nBUILD_ID=rolling\n"})
        assert "os.version" not in told.facts
        assert "os.build" not in told.facts
        assert "os.version" not in told.gaps

    def test_before_os_release(self, tmp_path: Path) -> None:
        told = told_by(tmp_path, {"/etc/redhat-release": "CentOS release 6.10 (Final)\n"})
        assert told.facts["os.id"] == "centos"
        assert told.facts["os.version"] == "6.10"

    def test_neither(self, tmp_path: Path) -> None:
        told = told_by(tmp_path, {"/etc/hostname": "x"})
        assert {"os.id", "os.version", "os.name"} <= set(told.gaps)

    def test_quotes_and_escapes(self) -> None:
        text = '# c\nNAME="A \\"B\\" \\$C"\nBROKEN\nEMPTY=\n'
        assert parse_os_release(text) == {"NAME": 'A "B" $C', "EMPTY": ""}

    def test_red_hat_by_its_long_name(self) -> None:
        text = "Red Hat Enterprise Linux Server release 7.9 (Maipo)"
        assert parse_redhat_release(text) == ("rhel", "7.9", text)


class TestImage:
    def test_files_tell_what_files_can(self, tmp_path: Path) -> None:
        header = b"\x7fELF\x02\x01\x01" + bytes(11) + b"\xb7\0"
        machine(
            tmp_path,
            {
                "/etc/os-release": DEBIAN,
                "/usr/bin/dash": header,
                "/usr/lib/aarch64-linux-gnu/libc.so.6": BANNER,
                "/proc/sys/kernel/osrelease": "5.15.167.4-microsoft-standard-WSL2",
            },
            {"/bin": "usr/bin", "/usr/bin/sh": "dash", "/lib": "usr/lib"},
        )
        told = probe("os", Host(str(tmp_path / "root")))
        assert told.facts == {
            "os.id": "debian",
            "os.version": "12",
            "os.name": "Debian GNU/Linux 12 (bookworm)",
            "os.arch": "aarch64",
            "os.libc.name": "glibc",
            "os.libc.version": "2.36",
        }
        assert set(told.gaps) == {"os.virtualization", "os.wsl", "wsl.version"}

    def test_nothing_to_read_it_from(self, tmp_path: Path) -> None:
        told = probe("os", Host(str(tmp_path)))
        assert told.facts == {}
        assert {"os.arch", "os.libc.version", "os.id"} <= set(told.gaps)


class TestLibc:
    @pytest.mark.parametrize(
        ("banner", "version"),
        [
            (BANNER, "2.36"),
            (b"GNU C Library (GNU libc) stable release version 2.39.\n", "2.39"),
            (
                b"GNU C Library (Ubuntu EGLIBC 2.19-0ubuntu6) stable release version 2.19, by",
                "2.19",
            ),
            (b"GNU C Library (GNU libc) development release version 2.42.9000.\n", "2.42.9000"),
            (b"GNU C Library \0GNU C Library (x) stable release version 2.28.", "2.28"),
            (b"GNU C Library (x) stable release", None),
            (b"", None),
        ],
    )
    def test_version_in_its_own_words(self, banner: bytes, version: str | None) -> None:
        assert parse_libc_banner(banner) == version

    def test_architecture_decides_between_copies(self, tmp_path: Path) -> None:
        files: dict[str, str | bytes] = {
            "/lib/i386-linux-gnu/libc.so.6": BANNER.replace(b"2.36.", b"2.31."),
            "/lib/x86_64-linux-gnu/libc.so.6": BANNER,
        }
        assert told_by(tmp_path, files, arch="x86_64").facts["os.libc.version"] == "2.36"

    def test_musl_has_no_glibc_version(self, tmp_path: Path) -> None:
        told = told_by(tmp_path, {"/lib/ld-musl-x86_64.so.1": ""})
        assert told.facts["os.libc.name"] == "musl"
        assert "os.libc.version" not in told.facts
        assert "os.libc.version" not in told.gaps

    def test_a_library_without_its_text_is_unknown(self, tmp_path: Path) -> None:
        told = told_by(tmp_path, {"/lib64/libc.so.6": b"\x7fELF"})
        assert "no version text" in told.gaps["os.libc.version"]


class TestWsl:
    @pytest.mark.parametrize(
        ("release", "interop", "version"),
        [
            ("4.4.0-19041-Microsoft", True, "1"),
            ("5.15.167.4-microsoft-standard-WSL2", True, "2"),
            ("4.19.128-microsoft-standard", False, "2"),
            ("6.12.1-custom", True, "2"),
            ("6.8.0-1015-azure", False, None),
            ("6.6.57.1-1.azl3", False, None),
        ],
    )
    def test_version(self, release: str, interop: bool, version: str | None) -> None:
        assert wsl_version(release, interop) == version

    def test_one(self, tmp_path: Path) -> None:
        files: dict[str, str | bytes] = {
            "/proc/sys/kernel/osrelease": "4.4.0-19041-Microsoft\n",
            "/proc/cpuinfo": METAL,
        }
        told = told_by(tmp_path, files)
        assert told.facts["os.wsl"] is True
        assert told.facts["wsl.version"] == "1"
        assert told.facts["os.build"] == "19041"
        assert told.facts["os.virtualization"] == "none"

    def test_two(self, tmp_path: Path) -> None:
        files: dict[str, str | bytes] = {
            "/proc/sys/kernel/osrelease": "6.12.1-custom\n",
            "/proc/sys/fs/binfmt_misc/WSLInterop-late": "",
        }
        told = told_by(tmp_path, files)
        assert told.facts["wsl.version"] == "2"
        assert told.facts["os.virtualization"] == "microsoft"
        assert "Windows" in told.gaps["os.build"]

    def test_elsewhere(self, tmp_path: Path) -> None:
        told = told_by(tmp_path, {"/proc/sys/kernel/osrelease": "6.8.0\n", "/proc/cpuinfo": METAL})
        assert told.facts["os.wsl"] is False
        assert "wsl.version" not in told.facts
        assert "os.build" not in told.gaps


def dmi(product: str = "", vendor: str = "", **more: str) -> dict[str, str]:
    return {"product_name": product, "sys_vendor": vendor, **more}


@pytest.mark.parametrize(
    ("cpu", "firmware", "clocks", "tree", "name"),
    [
        (METAL, dmi("PowerEdge XE9680", "Dell Inc."), "tsc hpet", "", "none"),
        (METAL, dmi("p5.metal", "Amazon EC2"), "tsc", "", "none"),
        (GUEST, dmi("p5.48xlarge", "Amazon EC2"), "kvm-clock tsc", "", "amazon"),
        (GUEST, dmi("Google Compute Engine", "Google"), "kvm-clock tsc", "", "google"),
        (GUEST, dmi("Standard PC (Q35 + ICH9, 2009)", "QEMU"), "kvm-clock tsc", "", "kvm"),
        (GUEST, dmi("Standard PC (Q35 + ICH9, 2009)", "QEMU"), "tsc hpet", "", "qemu"),
        (GUEST, dmi("VMware7,1", "VMware, Inc."), "tsc", "", "vmware"),
        (GUEST, dmi("VirtualBox", "innotek GmbH"), "tsc", "", "oracle"),
        (GUEST, dmi("Virtual Machine", "Microsoft Corporation"), "tsc", "", "microsoft"),
        (GUEST, dmi(), "hyperv_clocksource_tsc_page acpi_pm", "", "microsoft"),
        (GUEST, dmi("HVM domU", "Xen"), "xen tsc", "", "xen"),
        (GUEST, dmi("AHV", "Nutanix"), "kvm-clock tsc", "", "kvm"),
        (GUEST, dmi("Thin Air", "Nobody"), "tsc", "", "vm-other"),
        ("processor : 0\n", dmi("KVM Virtual Machine", "QEMU"), "", "", "kvm"),
        ("processor : 0\n", dmi(), "arch_sys_counter", "linux,kvm", "kvm"),
        ("processor : 0\n", dmi("DGX GH200", "NVIDIA"), "arch_sys_counter", "", "none"),
        ("processor : 0\n", dmi(), "arch_sys_counter", "", None),
    ],
)
def test_virtualization(
    cpu: str, firmware: dict[str, str], clocks: str, tree: str, name: str | None
) -> None:
    assert virtualization(cpu, firmware, clocks, tree)[0] == name


@pytest.mark.parametrize(("capabilities", "name"), [("control_d\n", "none"), ("", "xen")])
def test_xen_ruler_and_guest(tmp_path: Path, capabilities: str, name: str) -> None:
    files: dict[str, str | bytes] = {
        "/proc/sys/kernel/osrelease": "6.8.0",
        "/sys/hypervisor/type": "xen\n",
        "/proc/xen/capabilities": capabilities,
    }
    assert told_by(tmp_path, files).facts["os.virtualization"] == name


@given(st.text(), st.binary())
def test_no_text_breaks_a_parser(text: str, data: bytes) -> None:
    parse_os_release(text)
    parse_redhat_release(text)
    parse_libc_banner(data)
    parse_libc_banner(b"GNU C Library " + data)
    wsl_version(text, False)
    virtualization(text, {"product_name": text}, text, text)


def test_this_machine() -> None:
    told = probe("os", Host())
    assert told.facts["os.arch"] == os.uname().machine
    assert told.facts["os.libc.version"] == (os.confstr("CS_GNU_LIBC_VERSION") or "").split()[1]
    assert "os.virtualization" in {**told.facts, **told.gaps}


def test_this_machine_by_its_files_says_the_same(tmp_path: Path) -> None:
    (tmp_path / "mounted").symlink_to("/")
    live, files = probe("os", Host()), probe("os", Host(str(tmp_path / "mounted")))
    for name in ("os.id", "os.arch", "os.libc.name", "os.libc.version"):
        assert files.facts[name] == live.facts[name]
