"""Kernel logs of many releases, and /proc/driver/nvidia/version."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envaudit.importers import Section, kernel_log
from tests.importing import facts, gap, holds, imported, is_linear, prefixes_hold

NAME = "kernel_log"

BOOT = """\
[    0.000000] Linux version 5.15.0-105-generic (buildd@lcy02) (gcc (Ubuntu 11.4.0-1ubuntu1~22.04) 11.4.0, GNU ld (GNU Binutils for Ubuntu) 2.38) #115-Ubuntu SMP
[    0.000000] Command line: BOOT_IMAGE=/vmlinuz root=UUID=1b4e28ba-2fa1 ro quiet iommu=pt
[    0.000000] Kernel is locked down from EFI Secure Boot mode; see man kernel_lockdown.7
[    0.059993] secureboot: Secure boot enabled
[    2.100000] nouveau 0000:01:00.0: NVIDIA GP106 (136000a1)
"""  # noqa: E501
MISMATCH = """\
Sep 14 20:30:26 host kernel: NVRM: loading NVIDIA UNIX x86_64 Kernel Module  545.23.08  Mon Nov  6 23:49:37 UTC 2023
[ 1865.855970] NVRM: API mismatch: the client 'nvidia-smi' (pid 4242) has the version 550.54.14, but
               NVRM: this kernel module has the version 545.23.08.  Please
               NVRM: make sure that this kernel module and all NVIDIA driver
               NVRM: components have the same version.
"""  # noqa: E501
OLD_MISMATCH = """\
(EE) NVIDIA: API mismatch: the NVIDIA kernel module has version 304.88, but
(EE) NVIDIA: this NVIDIA driver component has version 304.117.  Please
"""
XIDS = """\
[ 1399.140323] NVRM: Xid (PCI:0000:01:00): 32, Channel ID 00000009 intr 00800000
2024-01-15T03:00:00,000000+00:00 NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus.
kernel: NVRM: GPU at 0000:dc:00.0: Xid (PCI:0000:dc:00): 45, pid=1000, name=python3
kernel: NVRM: Xid (PCI:0000:3b:00): 79, pid=2, GPU has fallen off the bus.
nvidia-nvswitch0: SXid (PCI:0000:c4:00.0): 11001, Fatal, ingress invalid command
"""
OPEN_ONLY = """\
[    8.299192] NVRM: The NVIDIA GPU 0000:01:00.0 (PCI ID: 10de:1d01)
               NVRM: installed in this system is not supported by open
               NVRM: nvidia.ko because it does not include the required GPU
               NVRM: System Processor (GSP).
[    8.299260] NVRM: The NVIDIA probe routine failed for 1 device(s).
[    8.299262] NVRM: None of the NVIDIA devices were initialized.
"""
TOO_NEW_GPU = """\
NVRM: The NVIDIA GPU 0000:01:00.0 (PCI ID: 10de:1292)
NVRM: installed in this system is not supported by the 304.116
NVRM: NVIDIA Linux driver release.  Please see 'Appendix
NVRM: A - Supported NVIDIA GPU Products' in this release's
NVRM: None of the NVIDIA graphics adapters were initialized!
"""
LEGACY = """\
NVRM: loading NVIDIA UNIX x86_64 Kernel Module  595.58.03  Release Build
NVRM: The NVIDIA GeForce GTX 1050 GPU installed in this system is
NVRM:  supported through the NVIDIA 580.xx Legacy drivers. Please
NVRM:  visit http://www.nvidia.com/object/unix.html for more
NVRM:  information.  The 595.58.03 NVIDIA driver will ignore
NVRM:  this GPU.  Continuing probe...
NVRM: No NVIDIA GPU found.
"""
TAKEN = """\
[  201.910514] NVRM: GPU 0000:01:00.0 is already bound to NovaCore.
[  201.911000] NVRM: The NVIDIA probe routine was not called for 1 device(s).
[  201.913648] NVRM: No NVIDIA devices probed.
"""
PROC_OPEN = """\
NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  610.43.02  Release Build  (dvs@host)  Tue May 19 11:24:27 UTC 2026
GCC version:  gcc version 13.3.0 (Ubuntu 13.3.0-6ubuntu2~24.04.1)
"""  # noqa: E501
PROC_CLOSED = """\
NVRM version: NVIDIA UNIX x86_64 Kernel Module  460.80  Fri May  7 06:55:54 UTC 2021
GCC version:  gcc version 9.3.0 (Ubuntu 9.3.0-17ubuntu1~20.04)
"""
SAMPLES = (
    *(BOOT, MISMATCH, OLD_MISMATCH, XIDS, OPEN_ONLY, TOO_NEW_GPU, LEGACY, TAKEN),
    *(PROC_OPEN, PROC_CLOSED),
)


def test_boot() -> None:
    assert facts(NAME, BOOT) == {
        "kernel.release": "5.15.0-105-generic",
        "kernel.version": "5.15.0",
        "os.wsl": False,
        "kernel.compiler": "gcc 11.4.0",
        "kernel.cmdline": "ro quiet iommu=pt",
        "boot.secure_boot": "enabled",
        "kernel.lockdown": "integrity",
        "kernel.module.nouveau.loaded": True,
    }


def test_the_last_boot_of_a_journal_counts() -> None:
    later = BOOT.replace("5.15.0-105", "6.8.0-45").replace("boot enabled", "boot disabled")
    told = facts(NAME, BOOT + later)
    assert told["kernel.release"] == "6.8.0-45-generic"
    assert told["boot.secure_boot"] == "disabled"


def test_locked_down_for_another_reason() -> None:
    text = "[    0.0] Kernel is locked down from command line; see man kernel_lockdown.7\n"
    assert facts(NAME, text) == {}
    assert gap(imported(NAME, text), "kernel.lockdown") is not None


def test_wsl() -> None:
    text = "Linux version 5.15.90.1-microsoft-standard-WSL2 (o@o) (x86_64-linux-gcc (GCC) 9.3.0)\n"
    told = facts(NAME, text)
    assert told["os.wsl"] is True
    assert told["kernel.release"] == "5.15.90.1-microsoft-standard-WSL2"


def test_client_and_module_of_different_releases() -> None:
    assert facts(NAME, MISMATCH) == {
        "driver.module.loaded": True,
        "driver.module.version": "545.23.08",
        "driver.module.flavor": "proprietary",
        "driver.library.version": "550.54.14",
    }
    assert imported(NAME, MISMATCH).read == frozenset({1, 2, 3, 4, 5})


def test_without_the_name_of_the_client() -> None:
    text = MISMATCH.replace(" 'nvidia-smi' (pid 4242)", "")
    assert facts(NAME, text) == facts(NAME, MISMATCH)


def test_the_same_told_from_above() -> None:
    assert facts(NAME, OLD_MISMATCH) == {
        "driver.module.loaded": True,
        "driver.module.version": "304.88",
        "driver.library.version": "304.117",
    }


def test_a_module_loaded_after_a_mismatch_has_ended_it() -> None:
    text = MISMATCH + "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.54.14  Thu Feb 22\n"
    told = facts(NAME, text)
    assert told["driver.module.version"] == "550.54.14"
    assert told["driver.library.version"] == "550.54.14"


def test_xids_without_repetition() -> None:
    assert facts(NAME, XIDS) == {
        "kernel.log.xids": ["0000:01:00.0 32", "0000:3b:00.0 79", "0000:dc:00.0 45"],
        "kernel.log.sxids": ["0000:c4:00.0 11001"],
    }


def test_a_gpu_that_the_open_module_cannot_drive() -> None:
    assert facts(NAME, OPEN_ONLY) == {
        "driver.module.loaded": False,
        "driver.module.flavor": "open",
        "pci.gpu.0.address": "0000:01:00.0",
        "pci.gpu.0.id": "10de:1d01",
    }


def test_a_gpu_that_a_release_does_not_know() -> None:
    told = facts(NAME, TOO_NEW_GPU)
    assert told["driver.module.version"] == "304.116"
    assert told["pci.gpu.0.id"] == "10de:1292"
    newer = TOO_NEW_GPU.replace(
        "by the 304.116\nNVRM: NVIDIA Linux", "by the\nNVRM: NVIDIA 555.58.02"
    )
    assert facts(NAME, newer)["driver.module.version"] == "555.58.02"


@pytest.mark.parametrize("speaker", ["NVRM:", "(WW) NVIDIA(0):"])
def test_a_gpu_left_to_a_legacy_driver(speaker: str) -> None:
    told = facts(NAME, LEGACY.replace("NVRM:", speaker))
    assert told["gpu.0.name"] == "NVIDIA GeForce GTX 1050"
    assert told["driver.module.version"] == "595.58.03"
    assert told["driver.module.loaded"] is False


def test_the_name_may_have_the_maker_in_it_twice() -> None:
    text = LEGACY.replace("The NVIDIA GeForce", "The NVIDIA NVIDIA GeForce")
    assert facts(NAME, text)["gpu.0.name"] == "NVIDIA GeForce GTX 1050"


def test_another_driver_has_the_gpu() -> None:
    assert facts(NAME, TAKEN) == {
        "driver.module.loaded": False,
        "pci.gpu.0.address": "0000:01:00.0",
        "pci.gpu.0.driver": "NovaCore",
        "gpu.driver_bound": ["0000:01:00.0 10de:? display NovaCore"],
    }


def test_nouveau_that_made_way() -> None:
    later = "[  9.1] NVRM: loading NVIDIA UNIX x86_64 Kernel Module  535.183.01  Sun May 12\n"
    assert "kernel.module.nouveau.loaded" not in facts(NAME, BOOT + later)
    assert facts(NAME, later + BOOT)["kernel.module.nouveau.loaded"] is True


def test_loaded_module() -> None:
    assert facts(NAME, PROC_OPEN) == {
        "driver.module.version": "610.43.02",
        "driver.module.flavor": "open",
        "driver.module.loaded": True,
        "driver.module.compiler": "gcc 13.3.0",
    }
    assert facts(NAME, PROC_CLOSED)["driver.module.flavor"] == "proprietary"


def test_modeset_names_the_release_too() -> None:
    text = (
        "nvidia-modeset: Loading NVIDIA UNIX Open Kernel Mode Setting Driver for x86_64  570.86.16"
        "  Release Build\n"
    )
    assert facts(NAME, text) == {
        "driver.module.version": "570.86.16",
        "driver.module.flavor": "open",
    }


def test_the_version_of_the_loaded_module_stands_alone() -> None:
    section = Section("535.216.01\n", command="cat /sys/module/nvidia/version")
    assert kernel_log.recognises(section)
    told = {fact.name: fact.value for fact in kernel_log.parse(section).facts}
    assert told == {"driver.module.version": "535.216.01", "driver.module.loaded": True}
    gone = Section("cat: /sys/module/nvidia/version: No such file\n", section.command)
    assert not kernel_log.parse(gone).facts


@given(st.sampled_from(SAMPLES), st.integers(0, 2000))
def test_cut_anywhere(text: str, at: int) -> None:
    prefixes_hold(NAME, text, at)


@given(st.lists(st.sampled_from("\n".join(SAMPLES).splitlines()) | st.text(max_size=60)))
def test_any_text(lines: list[str]) -> None:
    holds(NAME, "\n".join(lines))


def test_no_text_takes_long() -> None:
    is_linear(
        NAME, "NVRM: The NVIDIA ", "NVRM: ", "Linux version 5.4", "Kernel command line: ", "SXid ("
    )
