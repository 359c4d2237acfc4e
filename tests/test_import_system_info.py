"""uname, release files, hostnamectl, Windows, WSL, lscpu, free and df."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.importing import facts, holds, is_linear, prefixes_hold

NAME = "system_info"

OS_RELEASE = """\
PRETTY_NAME="Ubuntu 22.04.4 LTS"
NAME="Ubuntu"
VERSION_ID="22.04"
VERSION="22.04.4 LTS (Jammy Jellyfish)"
ID=ubuntu
ID_LIKE=debian
"""
LSB = """\
No LSB modules are available.
Distributor ID:\tUbuntu
Description:\tUbuntu 20.04.6 LTS
Release:\t20.04
Codename:\tfocal
"""
HOSTNAMECTL = """\
   Static hostname: x
  Operating System: Debian GNU/Linux 12 (bookworm)
            Kernel: Linux 6.1.0-18-amd64
      Architecture: x86-64
    Virtualization: kvm
"""
SYSTEMINFO = """\
Host Name:                 DESKTOP
OS Name:                   Microsoft Windows 11 Pro
OS Version:                10.0.22631 N/A Build 22631
"""
WSL = """\
WSL version: 2.1.5.0
Kernel version: 5.15.146.1-2
WSLg version: 1.0.60
Windows version: 10.0.22631.3737
"""
WSL_CHINESE = """\
WSL 版本： 2.0.9.0
内核版本： 5.15.133.1-1
Windows 版本： 10.0.22621.2715
"""
LSCPU = """\
Architecture:            x86_64
  CPU op-mode(s):        32-bit, 64-bit
CPU(s):                  32
Vendor ID:               AuthenticAMD
  Model name:            AMD EPYC 7763 64-Core Processor
NUMA node(s):            2
"""
FREE = """\
              total        used        free      shared  buff/cache   available
Mem:            62Gi        10Gi        41Gi       1.0Gi        10Gi        50Gi
Swap:          2.0Gi          0B       2.0Gi
"""
SAMPLES = (OS_RELEASE, LSB, HOSTNAMECTL, SYSTEMINFO, WSL, WSL_CHINESE, LSCPU, FREE)
UBUNTU = {"os.id": "ubuntu", "os.version": "22.04", "os.name": "Ubuntu 22.04.4 LTS"}


@pytest.mark.parametrize(
    ("text", "release", "wsl"),
    [
        (
            "Linux h 5.15.0-105-generic #115-Ubuntu SMP Mon Apr 15 2024 x86_64 x86_64 GNU/Linux",
            "5.15.0-105-generic",
            False,
        ),
        (
            "Linux a 6.15.2-arch1-1 #1 SMP PREEMPT_DYNAMIC Tue, 10 Jun 2025 x86_64 GNU/Linux",
            "6.15.2-arch1-1",
            False,
        ),
        (
            "Linux PC 5.10.16.3-microsoft-standard-WSL2 #1 SMP Fri Apr 2 2021 x86_64 GNU/Linux",
            "5.10.16.3-microsoft-standard-WSL2",
            True,
        ),
        ("Linux 6.1.0-18-amd64 x86_64", "6.1.0-18-amd64", False),
    ],
)
def test_uname(text: str, release: str, wsl: bool) -> None:
    told = facts(NAME, f"{text}\n")
    assert told["kernel.release"] == release
    assert told["os.wsl"] is wsl
    assert told["os.arch"] == "x86_64"


@pytest.mark.parametrize("release", ["6.12.7_1", "5.14.0-427.el9.x86_64", "6.3.7-1-cachyos"])
def test_uname_r(release: str) -> None:
    assert facts(NAME, f"{release}\n", "uname -r")["kernel.release"] == release
    assert facts(NAME, f"{release}\n") == {}


@pytest.mark.parametrize(
    ("text", "command", "told"),
    [
        (OS_RELEASE, "", UBUNTU),
        (
            "CentOS Linux release 7.9.2009 (Core)\n",
            "cat /etc/redhat-release",
            {"os.id": "centos", "os.version": "7", "os.name": "CentOS Linux 7.9.2009 (Core)"},
        ),
        (
            LSB,
            "lsb_release -a",
            {"os.id": "ubuntu", "os.version": "20.04", "os.name": "Ubuntu 20.04.6 LTS"},
        ),
        ("Description:\tUbuntu 22.04.4 LTS\n", "lsb_release -d", UBUNTU),
        (
            "ProductName:\t\tmacOS\nProductVersion:\t\t14.5\nBuildVersion:\t\t23F79\n",
            "sw_vers",
            {"os.id": "macos", "os.version": "14.5"},
        ),
        (
            "Darwin mac.local 23.5.0 Darwin Kernel Version 23.5.0: root:xnu-1~5/RELEASE arm64\n",
            "uname -a",
            {"os.id": "macos", "os.arch": "arm64"},
        ),
        ("Ubuntu 22.04.4 LTS \\n \\l\n", "cat /etc/issue", UBUNTU),
        (
            HOSTNAMECTL,
            "",
            {
                "os.id": "debian",
                "os.version": "12",
                "os.name": "Debian GNU/Linux 12 (bookworm)",
                "kernel.release": "6.1.0-18-amd64",
                "kernel.version": "6.1.0",
                "os.wsl": False,
                "os.arch": "x86_64",
                "os.virtualization": "kvm",
            },
        ),
    ],
)
def test_distributions(text: str, command: str, told: dict[str, Any]) -> None:
    assert facts(NAME, text, command) == told


@pytest.mark.parametrize(
    "text",
    ["Description: it crashes\n", "Kernel: my own\n", "ID=42\n", "Architecture: Ampere\n"],
)
def test_words_that_others_use_too(text: str) -> None:
    assert facts(NAME, text.replace("ID=42", "NAME=42")) == {}


@pytest.mark.parametrize(
    "text",
    ["Microsoft Windows [Version 10.0.19045.2846]", "Microsoft Windows [版本 10.0.19045.2846]"],
)
def test_ver(text: str) -> None:
    assert facts(NAME, f"{text}\n") == {"os.id": "windows", "os.build": "19045"}


def test_systeminfo() -> None:
    assert facts(NAME, SYSTEMINFO) == {
        "os.id": "windows",
        "os.version": "11",
        "os.name": "Microsoft Windows 11 Pro",
        "os.build": "22631",
    }


def test_wsl() -> None:
    assert facts(NAME, WSL) == {"wsl.release": "2.1.5.0", "os.build": "22631"}
    assert facts(NAME, WSL_CHINESE) == {"wsl.release": "2.0.9.0", "os.build": "22621"}
    listed = (
        "  NAME      STATE           VERSION\n* Ubuntu    Running         1\n  Debian  Stopped  2\n"
    )
    assert facts(NAME, listed) == {"wsl.version": "1"}


def test_processors() -> None:
    assert facts(NAME, LSCPU) == {
        "os.arch": "x86_64",
        "host.cpu.count": 32,
        "host.cpu.vendor": "AuthenticAMD",
        "host.cpu.model": "AMD EPYC 7763 64-Core Processor",
        "host.numa.nodes": 2,
    }
    assert facts(NAME, "16\n", "nproc") == {"host.cpu.usable": 16}
    assert facts(NAME, "available: 2 nodes (0-1)\n") == {"host.numa.nodes": 2}


def test_memory() -> None:
    assert facts(NAME, FREE, "free -h") == {
        "host.memory.total": 62 << 30,
        "host.memory.available": 50 << 30,
    }
    in_kib = FREE.replace("62Gi", "65011712").replace("50Gi", "52428800")
    assert facts(NAME, in_kib, "free")["host.memory.total"] == 62 << 30
    text = "Filesystem  Size  Used Avail Use% Mounted on\nshm  64M  0  64M  0% /dev/shm\n"
    assert facts(NAME, text, "df -h /dev/shm") == {"host.shm.size": 64 << 20}
    assert facts(NAME, "unlimited\n", "ulimit -l") == {"host.limits.memlock": -1}
    assert facts(NAME, "65536\n", "ulimit -l") == {"host.limits.memlock": 64 << 20}


@given(st.sampled_from(SAMPLES), st.integers(0, 2000))
def test_cut_anywhere(text: str, at: int) -> None:
    prefixes_hold(NAME, text, at)


@given(
    st.lists(st.sampled_from("\n".join(SAMPLES).splitlines()) | st.text(max_size=60)),
    st.sampled_from(("", "uname -r", "nproc", "free -m", "ulimit -l", "cat /etc/issue", "ver")),
)
def test_any_text(lines: list[str], command: str) -> None:
    holds(NAME, "\n".join(lines), command)


def test_no_text_takes_long() -> None:
    is_linear(NAME, "Linux ", "Linux a 5.1 #1 ", "WSL ", "Mem: ", "x: Microsoft Windows ")
