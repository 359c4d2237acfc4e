from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envaudit.host import Host
from envaudit.kernel_words import comparable, filter_cmdline, parse_compiler
from envaudit.probes.kernel import MODULES, loaded_modules
from tests.probing import machine, probe

RELEASE = "6.8.0-45-generic"
SECURE_BOOT = "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"

SERVER: dict[str, str | bytes] = {
    "/proc/sys/kernel/osrelease": f"{RELEASE}\n",
    "/proc/sys/kernel/tainted": "12289\n",
    "/proc/sys/kernel/random/boot_id": "4f0c2c1e-3b54-4d5c-9d0a-7f4a9c1c2d3e\n",
    "/proc/version": (
        "Linux version 6.8.0-45-generic (buildd@lcy02-amd64-075) (x86_64-linux-gnu-gcc-13 (Ubuntu"
        " 13.2.0-23ubuntu4) 13.2.0, GNU ld (GNU Binutils for Ubuntu) 2.42) #45-Ubuntu SMP\n"
    ),
    "/proc/cmdline": "BOOT_IMAGE=/vmlinuz-6.8 root=UUID=e66b767e-94ac-4adc ro quiet iommu=pt\n",
    "/proc/cpuinfo": "processor\t: 0\nmicrocode\t: 0xa101148\n",
    "/proc/stat": "cpu  1 2 3\nintr 12 0 0\nbtime 1790834464\nprocesses 9\n",
    "/proc/modules": (
        "nvidia_uvm 4956160 0 - Live 0x0000000000000000 (POE)\n"
        "nvidia 60702720 3 nvidia_uvm, Live 0x0000000000000000 (POE)\n"
    ),
    "/sys/module/nvidia/version": "580.65.06\n",
    "/sys/module/nvidia_uvm/refcnt": "0\n",
    "/sys/module/nouveau/parameters/modeset": "-1\n",
    "/sys/kernel/security/lockdown": "none [integrity] confidentiality\n",
    "/sys/firmware/acpi/x": "",
    SECURE_BOOT: b"\x06\0\0\0\x01",
    "/sys/class/dmi/id/bios_version": "2.19.1\n",
    "/sys/class/dmi/id/bios_date": "06/04/2025\n",
    "/sys/class/dmi/id/product_name": "PowerEdge XE9680\n",
    "/etc/kernel/postinst.d/unattended-upgrades": "",
    "/etc/default/grub": "GRUB_DEFAULT=0\n",
    "/boot/vmlinuz-6.8.0-45-generic": "",
    "/boot/vmlinuz-6.8.0-9-generic": "",
    "/boot/vmlinuz-0-rescue-858382f092494811bf89e090de079ab1": "",
    "/lib/modules/6.8.0-45-generic/modules.dep": "",
    "/lib/modules/6.8.0-9-generic/kernel/x": "",
    "/lib/modules/5.15.0-91-generic/updates/dkms/nvidia.ko": "",
}


def test_a_server_tells_everything(tmp_path: Path) -> None:
    told = probe("kernel", machine(tmp_path, SERVER))
    modules = {f"kernel.module.{name}.loaded": False for name in MODULES}
    assert told.facts == modules | {
        "kernel.release": RELEASE,
        "kernel.version": "6.8.0",
        "kernel.compiler": "gcc 13.2.0",
        "kernel.cmdline": "ro quiet iommu=pt",
        "kernel.lockdown": "integrity",
        "kernel.taint": 12289,
        "kernel.installed": ["6.8.0-9-generic", RELEASE],
        "kernel.default": RELEASE,
        "kernel.module.nvidia.loaded": True,
        "kernel.module.nvidia.version": "580.65.06",
        "kernel.module.nvidia_uvm.loaded": True,
        "kernel.module.nouveau.loaded": True,
        "boot.id": "4f0c2c1e-3b54-4d5c-9d0a-7f4a9c1c2d3e",
        "boot.time": "2026-10-01T06:01:04Z",
        "boot.secure_boot": "enabled",
        "boot.reboot_required": False,
        "firmware.bios.version": "2.19.1",
        "firmware.bios.date": "06/04/2025",
        "firmware.product": "PowerEdge XE9680",
        "cpu.microcode": "0xa101148",
    }
    assert told.gaps == {}
    assert told.sources["kernel.module.nouveau.loaded"] == "/sys/module"


def test_nothing_recorded_is_unknown_and_never_no(tmp_path: Path) -> None:
    told = probe("kernel", machine(tmp_path, {"/etc/os-release": ""}))
    assert told.facts == {}
    assert told.gaps["kernel.release"] == "no /proc/sys/kernel/osrelease"
    assert told.gaps["kernel.module.*"] == "no /proc/modules"
    assert {"boot.id", "boot.secure_boot", "firmware.*", "kernel.cmdline"} <= set(told.gaps)


def test_an_image_tells_its_kernels_and_nothing_of_the_machine_it_lies_on(tmp_path: Path) -> None:
    machine(tmp_path, SERVER)  # with a /proc in it, as a chroot has
    told = probe("kernel", Host(str(tmp_path / "root")))
    assert told.facts == {
        "kernel.installed": ["6.8.0-9-generic", RELEASE],
        "kernel.default": RELEASE,
    }
    assert told.gaps["kernel.module.*"] == "an image does not run"


def test_one_unreadable_file_costs_its_own_fact_only(tmp_path: Path) -> None:
    told = probe("kernel", machine(tmp_path, SERVER | {"/proc/sys/kernel/tainted": "?\n"}))
    assert "kernel.taint" not in told.facts
    assert told.gaps["kernel.taint"].startswith("ValueError")
    assert told.facts["boot.secure_boot"] == "enabled"


def test_kernel_without_loadable_modules(tmp_path: Path) -> None:
    files = {path: text for path, text in SERVER.items() if path != "/proc/modules"}
    told = probe("kernel", machine(tmp_path, files))
    assert told.facts["kernel.module.nvidia_drm.loaded"] is False
    assert told.facts["kernel.module.nouveau.loaded"] is True
    assert told.sources["kernel.module.nvidia_drm.loaded"] == "/sys/module"


class TestSecureBoot:
    def told(self, tmp_path: Path, files: dict[str, str | bytes]) -> str:
        found = probe("kernel", machine(tmp_path, files))
        return str(found.facts.get("boot.secure_boot") or f"? {found.gaps['boot.secure_boot']}")

    def test_disabled(self, tmp_path: Path) -> None:
        assert self.told(tmp_path, {SECURE_BOOT: b"\x16\0\0\0\0"}) == "disabled"

    def test_no_uefi(self, tmp_path: Path) -> None:
        assert self.told(tmp_path, {"/sys/firmware/acpi/x": ""}) == "unsupported"

    def test_firmware_without_the_variable(self, tmp_path: Path) -> None:
        assert self.told(tmp_path, {"/sys/firmware/efi/efivars/Boot0000-8be4": ""}) == "unsupported"

    def test_hidden_in_a_container(self, tmp_path: Path) -> None:
        (tmp_path / "root/sys/firmware").mkdir(parents=True)
        assert self.told(tmp_path, {}).startswith("? /sys/firmware is hidden")

    def test_efivars_not_mounted(self, tmp_path: Path) -> None:
        (tmp_path / "root/sys/firmware/efi/efivars").mkdir(parents=True)
        assert "not mounted" in self.told(tmp_path, {})

    def test_cut_short(self, tmp_path: Path) -> None:
        assert "not understood" in self.told(tmp_path, {SECURE_BOOT: b"\x06\0\0"})


class TestReboot:
    @pytest.mark.parametrize("mark", ["/run/reboot-required", "/run/reboot-needed"])
    def test_asked_for(self, tmp_path: Path, mark: str) -> None:
        told = probe("kernel", machine(tmp_path, {mark: "*** System restart required ***\n"}))
        assert told.facts["boot.reboot_required"] is True

    def test_unknown_where_nothing_would_leave_a_mark(self, tmp_path: Path) -> None:
        told = probe("kernel", machine(tmp_path, {"/usr/bin/dnf": ""}))
        assert "boot.reboot_required" not in told.facts
        assert "boot.reboot_required" in told.gaps


def test_the_kernel_of_wsl_comes_from_windows(tmp_path: Path) -> None:
    release = "5.15.167.4-microsoft-standard-WSL2"
    files = {
        "/proc/sys/kernel/osrelease": release,
        f"/lib/modules/{release}/modules.dep": "",
    }
    told = probe("kernel", machine(tmp_path, files))
    assert told.facts["kernel.version"] == "5.15.167.4"
    assert told.facts["kernel.installed"] == [release]
    assert "Windows" in told.gaps["kernel.default"]


def test_a_container_does_not_know_the_kernels_of_its_host(tmp_path: Path) -> None:
    told = probe("kernel", machine(tmp_path, {"/proc/sys/kernel/osrelease": RELEASE}))
    assert {"kernel.installed", "kernel.default"} <= set(told.gaps)


def test_a_board_without_dmi_is_named_by_its_device_tree(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        "/sys/class/net/lo": "",
        "/proc/device-tree/model": b"NVIDIA Jetson AGX Orin Developer Kit\0",
    }
    told = probe("kernel", machine(tmp_path, files))
    assert told.facts["firmware.product"] == "NVIDIA Jetson AGX Orin Developer Kit"
    assert "firmware.bios.version" not in told.facts
    assert "firmware.bios.version" not in told.gaps


def test_fields_that_the_vendor_did_not_fill_are_no_facts(tmp_path: Path) -> None:
    files = {"/sys/class/dmi/id/product_name": "To Be Filled By O.E.M.\n"}
    assert "firmware.product" not in probe("kernel", machine(tmp_path, files)).facts


@pytest.mark.parametrize(
    ("text", "compiler"),
    [
        (SERVER["/proc/version"], "gcc 13.2.0"),
        (
            "Linux version 6.18.44 (b@s) (gcc (GCC) 15.3.0, GNU ld (GNU Binutils) 2.46) #1",
            "gcc 15.3.0",
        ),
        (
            "Linux version 4.15.0-213 (b@l) (gcc version 7.5.0 (Ubuntu 7.5.0-3ubuntu1~18.04)) #224",
            "gcc 7.5.0",
        ),
        (
            "Linux version 6.12.7-2-cachyos (linux@cachyos) (clang version 18.1.8, LLD 18.1.8) #1",
            "clang 18.1.8",
        ),
        (
            "Linux version 6.6.9 (a@x) (Android (11, +pgo) clang version 18.0.0 (https://x/), LLD)",
            "clang 18.0.0",
        ),
        ("Linux version 4.4.0 #1 SMP", None),
        ("", None),
    ],
)
def test_compiler_of_the_running_kernel(text: str, compiler: str | None) -> None:
    assert parse_compiler(text) == compiler


@pytest.mark.parametrize(
    ("release", "version"),
    [
        (RELEASE, "6.8.0"),
        ("6.12.0-55.37.1.el10_0.x86_64", "6.12.0"),
        ("4.8.11_1", "4.8.11"),
        ("7.0.12-201.fc44", "7.0.12"),
        ("6.13-rc3", "6.13"),
        ("unknown", None),
    ],
)
def test_comparable_part_of_a_release(release: str, version: str | None) -> None:
    assert comparable(release) == version


class TestCmdline:
    @pytest.mark.parametrize(
        "word",
        [
            "root=/dev/nvme0n1p2",
            "BOOT_IMAGE=(hd0,gpt2)/vmlinuz-6.5.6-300.fc39.x86_64",
            "resume=UUID=0e9c1b1a-1111-2222-3333-444455556666",
            "cryptdevice=/dev/sda2:root",
            "rd.luks.uuid=luks-0e9c1b1a",
            "rd.lvm.lv=fedora/root",
            "ip=10.0.0.7::10.0.0.1:255.255.255.0:node7:eth0:off",
            "ds=nocloud-net;s=http://user:pass@metadata/",
            "netconsole=@10.0.0.7/eth0,@10.0.0.1/02:42:ac:11:00:02",
            "ignition.token=abcdef",
            "systemd.machine_id=858382f092494811bf89e090de079ab1",
            "ostree=/ostree/boot.1/fedora/858382f092494811bf89e090de079ab1858382/0",
            "systemd.hostname=node7",
        ],
    )
    def test_what_names_this_machine_goes(self, word: str) -> None:
        assert filter_cmdline(f"ro {word} quiet") == "ro quiet"

    @pytest.mark.parametrize(
        "word",
        [
            "iommu=pt",
            "iommu.passthrough=1",
            "intel_iommu=on",
            "modprobe.blacklist=nouveau",
            "rd.driver.blacklist=nouveau,nova_core",
            "nvidia-drm.modeset=1",
            "pcie_aspm=off",
            "mitigations=off",
            'dyndbg="file drivers/pci/* +p"',
        ],
    )
    def test_what_changes_the_kernel_stays(self, word: str) -> None:
        assert filter_cmdline(f"{word} root=/dev/sda\n") == word

    def test_what_is_meant_for_init_goes(self) -> None:
        assert filter_cmdline("quiet -- --listen 10.0.0.7") == "quiet"


@given(st.text())
def test_no_text_breaks_a_parser(text: str) -> None:
    parse_compiler(text)
    comparable(text)
    filter_cmdline(text)
    loaded_modules(text)


def test_this_machine() -> None:
    told = probe("kernel", Host())
    release = Path("/proc/sys/kernel/osrelease").read_text().strip()
    assert told.facts["kernel.release"] == release
    assert told.facts["boot.time"].endswith("Z")
    assert isinstance(told.facts["kernel.module.nvidia.loaded"], bool)
