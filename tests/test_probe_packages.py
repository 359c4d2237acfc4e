"""Packages from the managers' own files."""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envaudit.host import Host
from envaudit.probes import packages
from envaudit.probes.packages import Package
from envaudit.stack import wanted
from tests.making import rpm_database, rpm_header
from tests.probing import Told, machine, probe

STATUS = """\
Package: dpkg
Status: install ok installed
Architecture: amd64
Version: 1.21.22

Package: libcuda1
Status: hold ok installed
Priority: optional
Architecture: amd64
Multi-Arch: same
Version: 535.183.01-1~deb12u1
Description: NVIDIA CUDA Driver Library
 Version: 1.2.3 is not a field here
 .
 Package: nvidia-fake

Package: libcuda1
Status: install ok installed
Architecture: i386
Version: 535.183.01-1~deb12u1

Package: nvidia-driver
Status: deinstall ok config-files
Architecture: amd64
Version: 525.147.05-4

Package: nvidia-kernel-dkms
Status: install ok half-configured
Architecture: amd64
Version: 535.183.01-1~deb12u1

Package: vim
Status: install ok installed
Architecture: amd64
Version: 2:9.0

Package: cuda-toolkit-12-4-config-common
Status: install ok installed
Architecture: all
Version: 12.4.127-1
"""


def look(tmp_path: Path, files: dict[str, str | bytes], **rest: Any) -> Told:
    return probe("packages", machine(tmp_path, files, **rest))


# -- which


@pytest.mark.parametrize(
    "name",
    ["nvidia-driver-580-open", "libnvidia-compute-580", "cuda-toolkit-13-0", "libcudnn9-cuda-12"]
    + [
        "linux-image-6.8.0-45-generic",
        "kernel-core",
        "linux",
        "linux-lts-headers",
        "gcc-12",
        "dkms",
    ]
    + ["xserver-xorg-video-nvidia-580", "nvidia-container-toolkit", "libnvinfer10", "g++", "libc6"],
)
def test_wanted(name: str) -> None:
    assert wanted(name)


@pytest.mark.parametrize(
    "name",
    ["vim", "gcc-12-base", "python3", "linuxlogo", "libc-bin", "kernelshark", "docker-compose", ""]
    + ["linux-libc-dev", "gcc-python"],
)
def test_unwanted(name: str) -> None:
    assert not wanted(name)


# -- dpkg


def test_dpkg(tmp_path: Path) -> None:
    told = look(tmp_path, {"/var/lib/dpkg/status": STATUS})
    assert told.facts == {
        "pkg.libcuda1.version": "535.183.01-1~deb12u1",
        "pkg.libcuda1.held": True,
        "pkg.libcuda1:i386.version": "535.183.01-1~deb12u1",
        "pkg.nvidia-kernel-dkms.version": "535.183.01-1~deb12u1",
        "pkg.cuda-toolkit-12-4-config-common.version": "12.4.127-1",
    }
    assert told.sources["pkg.libcuda1.version"] == "/var/lib/dpkg/status"
    assert not told.gaps


def test_a_distroless_image(tmp_path: Path) -> None:
    told = look(
        tmp_path,
        {
            "/var/lib/dpkg/status.d/libc6": "Package: libc6\nVersion: 2.36-9\n",
            "/var/lib/dpkg/status.d/libc6.md5sums": "0 usr/lib/x\n",
            "/var/lib/dpkg/status.d/base": "Package: base-files\nVersion: 12\n\n",
        },
    )
    assert told.facts == {"pkg.libc6.version": "2.36-9"}


@pytest.mark.parametrize(
    "text", ["", "\n\n", "Package: ", "Package: nvidia", "Package: nvidia\n\n"]
)
def test_dpkg_oddities(text: str) -> None:
    assert packages.dpkg_packages(text.encode()) == []


def test_the_last_paragraph_needs_no_newline() -> None:
    data = b"Package: dkms\nStatus: install ok installed\nVersion: 3"
    assert packages.dpkg_packages(data) == [Package("dkms", "3")]


@given(st.binary())
def test_parsers_never_raise(data: bytes) -> None:
    for parse in (packages.dpkg_packages, packages.dpkg_arch, packages.apk_packages):
        parse(data)
        parse(b"Package: dkms\n" + data)
        parse(b"P:dkms\n" + data)
    packages.rpm_header(data)
    packages.rpm_header(b"\0\0\0\1\0\0\0\4" + data)


def test_tens_of_thousands_of_packages_are_quick() -> None:
    filler = "".join(
        f"Package: texlive-{n}\nStatus: install ok installed\nVersion: 1\n"
        f"Description: {'words ' * 40}\n\n"
        for n in range(30_000)
    )
    data = (filler + STATUS).encode()
    started = time.process_time()
    found = packages.dpkg_packages(data)
    assert len(found) == 4
    assert time.process_time() - started < 1.0


def test_this_machines_dpkg_says_the_same() -> None:
    query = shutil.which("dpkg-query")
    if query is None:
        assert "pkg.libc6.version" not in probe("packages", Host()).facts
        return
    shown = subprocess.run(
        [query, "-W", "-f", "${Package} ${Version} ${db:Status-Status}\n"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    expected = {
        f"pkg.{name}.version": version
        for name, version, state in (line.split() for line in shown.splitlines())
        if state == "installed" and wanted(name)
    }
    assert probe("packages", Host()).facts == expected


# -- rpm


def test_rpm(tmp_path: Path) -> None:
    rpm_database(
        tmp_path / "root/var/lib/rpm/rpmdb.sqlite",
        {
            "bash": [rpm_header("bash", "5.1", "2")],
            "nvidia-driver": [rpm_header("nvidia-driver", "580.95.05", "1.el9", epoch=3)],
            "kernel-core": [
                rpm_header("kernel-core", "5.14.0", "427.el9"),
                rpm_header("kernel-core", "5.14.0", "503.el9"),
            ],
            "glibc": [rpm_header("glibc", "2.34", "60", arch="i686")],
            "dkms": [rpm_header("dkms", "3.0.12", "1.el9", epoch=0, arch="noarch")],
        },
    )
    lock = "# locked\nnvidia-driver-3:580.95.05-1.el9.*\n!kernel-core-0:5.14.0-427.el9.*\n"
    told = look(tmp_path, {"/etc/dnf/plugins/versionlock.list": lock})
    assert told.facts == {
        "pkg.nvidia-driver.version": "3:580.95.05-1.el9",
        "pkg.nvidia-driver.held": True,
        "pkg.kernel-core.version": "5.14.0-503.el9",
        "pkg.glibc:i686.version": "2.34-60",
        "pkg.dkms.version": "0:3.0.12-1.el9",
    }
    assert told.sources["pkg.nvidia-driver.version"] == "/var/lib/rpm/rpmdb.sqlite"


def test_reading_the_rpm_database_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "root/usr/lib/sysimage/rpm/rpmdb.sqlite"
    rpm_database(path, {"dkms": [rpm_header("dkms", "3", "1")]})
    path.chmod(0o444)
    look(tmp_path, {})
    assert [file.name for file in path.parent.iterdir()] == ["rpmdb.sqlite"]


@pytest.mark.parametrize("content", [b"", b"no database", b"SQLite format 3\0" + bytes(100)])
def test_a_broken_rpm_database_is_unknown(tmp_path: Path, content: bytes) -> None:
    told = look(tmp_path, {"/var/lib/rpm/rpmdb.sqlite": content})
    assert not told.facts
    assert "pkg.*" in told.gaps


def test_a_broken_header_costs_only_its_package(tmp_path: Path) -> None:
    good = rpm_header("dkms", "3.0", "1")
    rpm_database(
        tmp_path / "root/var/lib/rpm/rpmdb.sqlite",
        {"nvidia-driver": [b"\0\0\xff\xff", good[:20]], "dkms": [good]},
    )
    assert look(tmp_path, {}).facts == {"pkg.dkms.version": "3.0-1"}


def test_other_rpm_databases_are_asked_through_rpm(tmp_path: Path) -> None:
    said = (
        "nvidia-driver-G06-kmp-default\t(none)\t550.54.14_k6.4.0\t1\tx86_64\n"
        "kernel-default\t(none)\t6.4.0\t150600.23.7.3\tx86_64\nvim\t(none)\t9\t1\tx86_64\nbroken\n"
    )
    key = "rpm -qa --qf %{NAME}\\t%{EPOCH}\\t%{VERSION}\\t%{RELEASE}\\t%{ARCH}\\n"
    host = machine(
        tmp_path,
        {
            "/usr/lib/sysimage/rpm/Packages.db": b"RpmP",
            "/usr/bin/rpm": "",
            "/etc/zypp/locks": "type: package\nsolvable_name: kernel*\n",
        },
        commands={key: {"stdout": said}},
    )
    (tmp_path / "root/usr/bin/rpm").chmod(0o755)
    told = probe("packages", host)
    assert told.facts == {
        "pkg.nvidia-driver-G06-kmp-default.version": "550.54.14_k6.4.0-1",
        "pkg.kernel-default.version": "6.4.0-150600.23.7.3",
        "pkg.kernel-default.held": True,
    }
    assert told.sources["pkg.kernel-default.version"] == "rpm -qa"


def test_a_berkeley_database_without_rpm_is_unknown(tmp_path: Path) -> None:
    told = look(tmp_path, {"/var/lib/rpm/Packages": b"\0" * 16})
    assert not told.facts
    assert "/var/lib/rpm/Packages" in told.gaps["pkg.*"]


# -- pacman, apk, none


def test_pacman(tmp_path: Path) -> None:
    folder = "/var/lib/pacman/local"
    told = look(
        tmp_path,
        {
            f"{folder}/ALPM_DB_VERSION": "9",
            f"{folder}/linux-6.11.5.arch1-1/desc": "",
            f"{folder}/nvidia-open-565.57.01-3/desc": "",
            f"{folder}/docker-1:27.3.1-1/desc": "",
            f"{folder}/vim-9.1-1/desc": "",
            "/etc/pacman.conf": "[options]\n#IgnorePkg = gcc\nIgnorePkg = linux nvidia*\n",
        },
    )
    assert told.facts == {
        "pkg.linux.version": "6.11.5.arch1-1",
        "pkg.linux.held": True,
        "pkg.nvidia-open.version": "565.57.01-3",
        "pkg.nvidia-open.held": True,
        "pkg.docker.version": "1:27.3.1-1",
    }


def test_apk(tmp_path: Path) -> None:
    text = "C:Q1x=\nP:musl\nV:1.2.5-r0\nA:x86_64\nF:lib\nR:x\n\nP:vim\nV:9\n\n"
    text += "P:linux-lts\nV:6.6.32-r0\n"
    told = look(tmp_path, {"/lib/apk/db/installed": text})
    assert told.facts == {"pkg.musl.version": "1.2.5-r0", "pkg.linux-lts.version": "6.6.32-r0"}


def test_without_any_database_packages_are_unknown(tmp_path: Path) -> None:
    told = look(tmp_path, {})
    assert not told.facts
    assert "pkg.*" in told.gaps


def test_two_managers_on_one_machine(tmp_path: Path) -> None:
    rpm_database(
        tmp_path / "root/var/lib/rpm/rpmdb.sqlite", {"dkms": [rpm_header("dkms", "3", "1")]}
    )
    told = look(tmp_path, {"/var/lib/dpkg/status": STATUS})
    assert told.facts["pkg.dkms.version"] == "3-1"
    assert told.facts["pkg.libcuda1.version"] == "535.183.01-1~deb12u1"
