"""dkms, lsmod, lspci, modinfo, mokutil, modprobe and nvidia-installer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.importing import absent, facts, gap, holds, imported, is_linear, prefixes_hold

NAME = "kernel_modules"

DKMS_OLD = """\
amdgpu, 5.6.0.15-1098277: added
nvidia, 470.103.01, 5.4.0-105-generic, x86_64: installed
nvidia, 470.103.01, 5.4.0-107-generic, x86_64: built
"""
DKMS_NEW = """\
nvidia/535.129.03, 6.7.4-200.fc39.x86_64, x86_64: installed
vboxhost/7.0.8_OSE, 6.4.1-zen1-1-zen, x86_64: installed
"""
DKMS_DIFF = (
    "nvidia-srv/580.159.03, 6.17.0-35-generic: installed "
    "(WARNING! Diff between built and installed module!)\n"
)
MAKE_LOG = """\
DKMS (dkms-3.0.10) make.log for nvidia/470.223.02 for kernel 6.12.1-arch1-1 (x86_64)
Thu Nov 28 12:00:00 UTC 2024
nv-drm.c:748:6: error: 'const struct drm_driver' has no member named 'date'
make[1]: *** [Makefile:1936: nvidia-drm.o] Error 2
"""
BAD_STATUS = """\
Error! Bad return status for module build on kernel: 6.12.7_1 (x86_64)
Consult /var/lib/dkms/nvidia/470.239.06/build/make.log for more information.
"""
LSMOD = "Module                  Size  Used by\n" + "".join(
    f"module_{n:<20} {16384 + n}  {n % 3}\n" for n in range(20)
)
LSPCI = (
    "01:00.0 VGA compatible controller [0300]: NVIDIA Corporation GA102 [GeForce RTX 3090]"
    " [10de:2204] (rev a1)\n"
    "\tSubsystem: Gigabyte Technology Co., Ltd GA102 [GeForce RTX 3090] [1458:4043]\n"
    "\tKernel driver in use: nouveau\n"
    "\tKernel modules: nvidiafb, nouveau\n"
    "01:00.1 Audio device [0403]: NVIDIA Corporation GA102 High Definition Audio [10de:1aef]\n"
    "\tKernel driver in use: snd_hda_intel\n"
    "0000:c4:00.0 Bridge: NVIDIA Corporation GA100 [A100 NVSwitch] (rev a1)\n"
)
MODINFO = """\
filename:       /lib/modules/6.8.0-45-generic/updates/dkms/nvidia.ko.zst
version:        550.120
license:        Dual MIT/GPL
vermagic:       6.8.0-45-generic SMP preempt mod_unload modversions
sig_id:         PKCS#7
signer:         host Secure Boot Module Signature key
parm:           NVreg_EnableGpuFirmware:int
"""
INSTALLER = """\
Installing NVIDIA driver version 550.163.01.
Kernel source path: '/lib/modules/5.15.0-158-generic/build'
ERROR: Unable to load the kernel module 'nvidia.ko'.
"""
SAMPLES = (DKMS_OLD, DKMS_NEW, DKMS_DIFF, MAKE_LOG, BAD_STATUS, LSMOD, LSPCI, MODINFO, INSTALLER)


class TestDkms:
    def test_until_2(self) -> None:
        read = imported(NAME, DKMS_OLD)
        assert facts(NAME, DKMS_OLD) == {
            "dkms.installed": True,
            "dkms.nvidia.version": "470.103.01",
            "dkms.nvidia.kernels": ["5.4.0-105-generic", "5.4.0-107-generic"],
        }
        assert gap(read, "dkms.nvidia.status") == "dkms status does not tell which kernel runs"

    def test_since_3(self) -> None:
        told = facts(NAME, DKMS_NEW, "dkms status -k $(uname -r)")
        assert told["dkms.nvidia.kernels"] == ["6.7.4-200.fc39.x86_64"]
        assert told["dkms.nvidia.status"] == "installed"

    def test_another_module_was_installed_over_it(self) -> None:
        assert facts(NAME, DKMS_DIFF)["dkms.nvidia.kernels"] == ["6.17.0-35-generic"]

    def test_built_for_no_kernel(self) -> None:
        assert facts(NAME, "nvidia/470.239.06: added\n") == {
            "dkms.installed": True,
            "dkms.nvidia.version": "470.239.06",
            "dkms.nvidia.status": "added",
        }

    def test_nothing_registered(self) -> None:
        assert facts(NAME, "\n", "sudo dkms status") == {"dkms.installed": True}
        assert "dkms.nvidia.kernels" in absent(NAME, "\n", "sudo dkms status")

    def test_no_dkms(self) -> None:
        text = "bash: dkms: command not found\n"
        assert facts(NAME, text, "dkms status") == {"dkms.installed": False}

    def test_other_modules_of_nvidia(self) -> None:
        assert facts(NAME, "nvidia-fs/2.17.5, 5.15.0-88-generic, x86_64: installed\n") == {}

    @pytest.mark.parametrize(
        ("text", "version", "kernel"),
        [(MAKE_LOG, "470.223.02", "6.12.1-arch1-1"), (BAD_STATUS, "470.239.06", "6.12.7_1")],
    )
    def test_a_build_that_broke(self, text: str, version: str, kernel: str) -> None:
        assert facts(NAME, text) == {
            "dkms.installed": True,
            "dkms.nvidia.version": version,
            "dkms.nvidia.failed_kernels": [kernel],
        }

    def test_a_log_of_a_build_that_went_well(self) -> None:
        text = MAKE_LOG.partition("nv-drm.c")[0]
        assert "dkms.nvidia.failed_kernels" not in facts(NAME, text)

    def test_a_build_of_another_module(self) -> None:
        text = BAD_STATUS.replace("/nvidia/470.239.06", "/r8168/8.048.00")
        assert facts(NAME, text) == {}


class TestLsmod:
    def test_what_grep_found_and_did_not(self) -> None:
        text = "nouveau  2306048  4\nmxm_wmi 16384 1 nouveau\n"
        assert facts(NAME, text, "lsmod | grep -E 'nvidia_uvm|nouveau'") == {
            "kernel.module.nouveau.loaded": True,
            "kernel.module.nvidia_uvm.loaded": False,
        }

    def test_nothing_found(self) -> None:
        told = facts(NAME, "\n", "lsmod | grep -i nvidia")
        assert told["driver.module.loaded"] is False
        assert told["kernel.module.nvidia.loaded"] is False
        assert "kernel.module.nouveau.loaded" not in told

    def test_a_word_that_is_not_looked_for_says_nothing(self) -> None:
        assert facts(NAME, "\n", "lsmod | grep -v nvidia") == {}
        assert facts(NAME, "\n", "lsmod | grep amdgpu") == {}

    def test_loaded(self) -> None:
        text = "nvidia_uvm 3874816 0\nnvidia              112218112  37 nvidia_uvm,nvidia_modeset\n"
        assert facts(NAME, text) == {
            "kernel.module.nvidia.loaded": True,
            "kernel.module.nvidia_uvm.loaded": True,
            "driver.module.loaded": True,
        }

    def test_a_whole_list_without_it(self) -> None:
        assert facts(NAME, LSMOD, "lsmod")["driver.module.loaded"] is False

    @pytest.mark.parametrize("text", [LSMOD[:200], LSMOD + "...\n"])
    def test_a_cut_list_says_nothing_of_what_is_missing(self, text: str) -> None:
        assert facts(NAME, text, "lsmod") == {}


class TestLspci:
    def test_ids_and_drivers(self) -> None:
        assert facts(NAME, LSPCI, "lspci -nnk") == {
            "pci.gpu.0.address": "0000:01:00.0",
            "pci.gpu.0.id": "10de:2204",
            "pci.gpu.0.driver": "nouveau",
            "gpu.driver_bound": ["0000:01:00.0 10de:2204 display nouveau"],
            "gpu.0.name": "NVIDIA GeForce RTX 3090",
            "nvswitch.count": 1,
            "pci.gpu.count": 1,
        }

    def test_nothing_bound(self) -> None:
        text = (
            "3b:00.0 3D controller: NVIDIA Corporation TU104GL [Tesla T4] (rev a1)\n"
            "\tSubsystem: NVIDIA Corporation TU104GL [Tesla T4]\n"
            "\tKernel modules: nvidiafb, nouveau\n"
        )
        told = facts(NAME, text)
        assert told["pci.gpu.0.driver"] == "none"
        assert told["gpu.0.name"] == "Tesla T4"
        assert "pci.gpu.count" not in told

    def test_no_word_of_drivers(self) -> None:
        text = "01:00.0 VGA compatible controller: NVIDIA Corporation TU117M [GeForce GTX 1650]\n"
        told = facts(NAME, text, "lspci | grep -i vga")
        assert told == {
            "pci.gpu.0.address": "0000:01:00.0",
            "gpu.0.name": "NVIDIA GeForce GTX 1650",
        }
        assert facts(NAME, text, "lspci | grep -i nvidia")["pci.gpu.count"] == 1

    def test_none_on_the_bus(self) -> None:
        assert facts(NAME, "\n", "lspci | grep -i nvidia") == {"pci.gpu.count": 0}

    def test_a_gpu_given_to_a_virtual_machine_has_no_number(self) -> None:
        text = (
            "01:00.0 VGA compatible controller: NVIDIA Corporation GP107 [GeForce GTX 1050]\n"
            "\tKernel driver in use: vfio-pci\n"
            "02:00.0 VGA compatible controller: NVIDIA Corporation GA102 [GeForce RTX 3090]\n"
            "\tKernel driver in use: nvidia\n"
        )
        told = facts(NAME, text)
        assert told["gpu.0.name"] == "NVIDIA GeForce RTX 3090"
        assert "gpu.1.name" not in told

    def test_another_maker(self) -> None:
        assert facts(NAME, "0b:00.0 VGA compatible controller: AMD/ATI Navi 21 [Radeon]\n") == {}


class TestModinfo:
    def test_signed(self) -> None:
        assert facts(NAME, MODINFO, "modinfo nvidia") == {
            "driver.module.on_disk": "550.120",
            "driver.module.on_disk_flavor": "open",
            "driver.module.signer": "host Secure Boot Module Signature key",
            "kernel.release": "6.8.0-45-generic",
            "kernel.version": "6.8.0",
            "os.wsl": False,
        }

    def test_unsigned(self) -> None:
        text = MODINFO.replace("sig_id", "x").replace("signer", "y")
        assert facts(NAME, text)["driver.module.signer"] == "none"

    def test_a_part_does_not_tell_who_signed(self) -> None:
        text = "version:        550.120\nvermagic:       6.8.0-45-generic SMP\n"
        assert facts(NAME, text) == {}
        told = facts(NAME, text, "modinfo nvidia | grep ver")
        assert told["driver.module.on_disk"] == "550.120"
        assert "driver.module.signer" not in told

    def test_no_module(self) -> None:
        text = "modinfo: ERROR: Module nvidia not found.\n"
        assert absent(NAME, text, "modinfo nvidia") == {"driver.module.on_disk"}

    def test_another_kernel_or_module(self) -> None:
        assert facts(NAME, MODINFO, "modinfo -k 6.5.0 nvidia") == {}
        assert facts(NAME, MODINFO.replace("nvidia.ko", "nvidia-fs.ko")) == {}


def test_modprobe_names_the_running_kernel() -> None:
    text = "modprobe: FATAL: Module nvidia not found in directory /lib/modules/6.3.7-1-cachyos\n"
    assert facts(NAME, text)["kernel.release"] == "6.3.7-1-cachyos"
    assert absent(NAME, text) == {"driver.module.on_disk"}
    assert absent(NAME, text.replace("nvidia", "vfio")) == set()


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("SecureBoot enabled", "enabled"),
        ("SecureBoot disabled\nPlatform is in Setup Mode", "disabled"),
        ("SecureBoot enabled\nSecureBoot validation is disabled in shim", "disabled"),
        ("EFI variables are not supported on this system", "unsupported"),
        ("This system doesn't support Secure Boot", "unsupported"),
        ("     Secure Boot: enabled (user)", "enabled"),
        ("Secure Boot State\t: Off", "disabled"),
    ],
)
def test_secure_boot(text: str, state: str) -> None:
    assert facts(NAME, f"{text}\n") == {"boot.secure_boot": state}


def test_installer() -> None:
    told = {
        "driver.installer.version": "550.163.01",
        "driver.installer.kernel": "5.15.0-158-generic",
    }
    assert facts(NAME, INSTALLER) == told
    assert facts(NAME, INSTALLER.replace("Installing", "-> Installing")) == told
    old = "Uncompressing NVIDIA Accelerated Graphics Driver for Linux-x86_64 390.157.....\n"
    assert facts(NAME, old) == {"driver.installer.version": "390.157"}


LSHW = """\
  *-display UNCLAIMED
       description: VGA compatible controller
       product: GA106 [GeForce RTX 3060]
       vendor: NVIDIA Corporation
       physical id: 0
       bus info: pci@0000:01:00.0
       configuration: latency=0
       resources: memory:f6000000-f6ffffff
  *-display
       product: Raphael
       vendor: Advanced Micro Devices, Inc. [AMD/ATI]
       bus info: pci@0000:0c:00.0
       configuration: depth=32 driver=amdgpu latency=0
"""


def test_lshw_names_the_driver_of_a_display() -> None:
    assert facts(NAME, LSHW, "sudo lshw -C display") == {
        "pci.gpu.0.address": "0000:01:00.0",
        "pci.gpu.0.driver": "none",
        "gpu.driver_bound": ["0000:01:00.0 10de:? display none"],
        "gpu.0.name": "NVIDIA GeForce RTX 3060",
    }
    bound = facts(NAME, LSHW.replace("configuration: latency", "configuration: driver=nouveau l"))
    assert bound["pci.gpu.0.driver"] == "nouveau"


@given(st.sampled_from(SAMPLES), st.integers(0, 2000))
def test_cut_anywhere(text: str, at: int) -> None:
    prefixes_hold(NAME, text, at)


@given(
    st.lists(st.sampled_from("\n".join(SAMPLES).splitlines()) | st.text(max_size=60)),
    st.sampled_from(("", "lsmod", "dkms status", "lspci -nnk", "modinfo nvidia")),
)
def test_any_text(lines: list[str], command: str) -> None:
    holds(NAME, "\n".join(lines), command)


def test_no_text_takes_long() -> None:
    is_linear(NAME, "nvidia", "01:00.0 VGA compatible controller: NVIDIA ", "nvidia, 470.1, ")
