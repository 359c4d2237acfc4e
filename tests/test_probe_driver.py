"""The driver as its files tell it."""

from __future__ import annotations

import lzma
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envaudit.driverlib import parse_mountinfo
from envaudit.host import Host
from envaudit.kernel_words import parse_proc_version
from envaudit.probes import driver
from tests.making import (
    I386,
    X86_64,
    elf_head,
    kernel_module,
    ld_cache,
    pkcs7_signature,
    rpm_database,
    rpm_header,
)
from tests.probing import Told, machine, probe

RELEASE = "6.8.0-45-generic"
LIB = "/usr/lib/x86_64-linux-gnu"
OPEN_555 = (
    "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  555.58.02  Release Build  "
    "(dvs-builder@U16-I3-B03-4-3)  Tue Jun 25 01:26:03 UTC 2024\n"
    "GCC version:  gcc version 14.2.1 20240801 (Red Hat 14.2.1-1) (GCC) \n"
)
CLOSED_510 = (
    "NVRM version: NVIDIA UNIX x86_64 Kernel Module  510.60.02  Wed Mar 16 11:24:05 UTC 2022\n"
    "GCC version:  gcc version 11.2.0 (Ubuntu 11.2.0-7ubuntu2) \n"
)
OPEN_ARM = (
    "NVRM version: NVIDIA UNIX Open Kernel Module for aarch64  540.3.0  Release Build  (b@h)\n"
)


def look(
    tmp_path: Path,
    files: Mapping[str, str | bytes] | None = None,
    links: Mapping[str, str] | None = None,
    **rest: Any,
) -> Told:
    """The probe on a running x86_64 machine with these files."""
    running = {"/proc/sys/kernel/osrelease": RELEASE + "\n", "/proc/modules": "ext4 1 2 - Live\n"}
    rest.setdefault("arch", "x86_64")
    return probe("driver", machine(tmp_path, {**running, **(files or {})}, links, **rest))


def cached(*libraries: tuple[str, str]) -> dict[str, bytes]:
    return {"/etc/ld.so.cache": ld_cache([(soname, path, X86_64) for soname, path in libraries])}


def cached_cuda(*folders: str) -> dict[str, bytes]:
    return cached(*(("libcuda.so.1", f"{folder}/libcuda.so.1") for folder in folders))


# -- the loaded module


@pytest.mark.parametrize(
    ("text", "version", "flavor"),
    [
        (OPEN_555, "555.58.02", "open"),
        (CLOSED_510, "510.60.02", "proprietary"),
        (OPEN_ARM, "540.3.0", "open"),
        ("NVRM version: something else\n", None, None),
        ("", None, None),
    ],
)
def test_proc_version(text: str, version: str | None, flavor: str | None) -> None:
    assert parse_proc_version(text) == (version, flavor)


@given(st.text())
def test_text_parsers_never_raise(text: str) -> None:
    parse_proc_version(text)
    parse_proc_version("NVRM version: " + text)
    driver.parse_params(text)
    driver.parse_modprobe(text)
    driver.parse_cmdline(text)
    parse_mountinfo(text)


def test_a_loaded_module(tmp_path: Path) -> None:
    told = look(
        tmp_path,
        {
            "/proc/modules": "nvidia_uvm 1 0 - Live 0x0\nnvidia 62 1 nvidia_uvm, Live 0x0 (OE)\n",
            "/proc/driver/nvidia/version": OPEN_555,
            "/sys/module/nvidia/version": "555.58.02\n",
        },
    )
    assert told.facts["driver.module.loaded"] is True
    assert told.facts["driver.module.version"] == "555.58.02"
    assert told.facts["driver.version"] == "555.58.02"
    assert told.facts["driver.module.flavor"] == "open"
    assert told.sources["driver.module.version"] == "/proc/driver/nvidia/version"


def test_no_module_loaded_is_an_answer(tmp_path: Path) -> None:
    told = look(tmp_path, {"/proc/modules": "nvidia_wmi_ec_backlight 1 0 - Live\nnouveau 2 0\n"})
    assert told.facts["driver.module.loaded"] is False
    assert "driver.version" not in told.facts
    assert "driver.version" not in told.gaps


def test_without_proc_driver_sysfs_has_the_version_and_nobody_the_flavour(tmp_path: Path) -> None:
    told = look(tmp_path, {"/sys/module/nvidia/version": "535.183.01\n"})
    assert told.facts["driver.module.version"] == "535.183.01"
    assert told.sources["driver.module.version"] == "/sys/module/nvidia/version"
    assert "driver.module.flavor" in told.gaps


def test_a_kernel_without_loadable_modules_has_none_loaded(tmp_path: Path) -> None:
    host = machine(tmp_path, {"/sys/module/ext4/x": "", "/proc/sys/kernel/osrelease": "6.1\n"})
    assert probe("driver", host).facts["driver.module.loaded"] is False


def test_where_no_kernel_can_be_seen_nothing_is_said_of_it(tmp_path: Path) -> None:
    told = probe("driver", machine(tmp_path))
    assert not told.facts
    for name in ("driver.module.loaded", "driver.module.version", "driver.version"):
        assert name in told.gaps


def test_under_wsl_the_version_is_unknown_and_not_absent(tmp_path: Path) -> None:
    told = look(tmp_path, {"/dev/dxg": ""})
    assert "Windows" in told.gaps["driver.version"]
    assert told.facts["driver.device_nodes"] == ["/dev/dxg"]


def test_parameters(tmp_path: Path) -> None:
    told = look(
        tmp_path,
        {
            "/proc/driver/nvidia/params": (
                "ResmanDebugLevel: 4294967295\nEnableGpuFirmware: 18\nEnableGpuFirmwareLogs: 2\n"
                'RegistryDwords: "ForceP2P=0x11"\nRegistryDwordsPerDevice: ""\n'
                'CoherentGPUMemoryMode: "driver"\nbroken line\n'
            ),
            "/sys/module/nvidia_drm/parameters/modeset": "Y\n",
            "/sys/module/nvidia_uvm/parameters/uvm_disable_hmm": "N\n",
        },
    )
    params = {k: v for k, v in told.facts.items() if k.startswith("driver.param.")}
    assert params == {
        "driver.param.NVreg_EnableGpuFirmware": 18,
        "driver.param.NVreg_RegistryDwords": "ForceP2P=0x11",
        "driver.param.NVreg_CoherentGPUMemoryMode": "driver",
        "driver.param.nvidia_drm.modeset": "Y",
        "driver.param.uvm_disable_hmm": "N",
    }


# -- the module on disk

MODULE = kernel_module(
    {"version": "580.95.05", "license": "NVIDIA", "vermagic": RELEASE},
    pkcs7_signature("DKMS module signing key"),
)


def on_disk(tmp_path: Path, name: str, content: bytes, **rest: Any) -> Told:
    top = f"/lib/modules/{RELEASE}"
    return look(tmp_path, {f"{top}/{name}": content, f"{top}/modules.dep": f"{name}: x\n"}, **rest)


def test_a_module_on_disk(tmp_path: Path) -> None:
    told = on_disk(tmp_path, "updates/dkms/nvidia.ko", MODULE)
    assert told.facts["driver.module.on_disk"] == "580.95.05"
    assert told.facts["driver.module.on_disk_flavor"] == "proprietary"
    assert told.facts["driver.module.signer"] == "DKMS module signing key"
    assert told.facts["driver.module.kernels"] == [RELEASE]
    path = f"/lib/modules/{RELEASE}/updates/dkms/nvidia.ko"
    assert told.sources["driver.module.on_disk"] == path


def test_an_xz_module_on_disk(tmp_path: Path) -> None:
    told = on_disk(tmp_path, "extra/nvidia/nvidia.ko.xz", lzma.compress(MODULE))
    assert told.facts["driver.module.on_disk"] == "580.95.05"


def test_a_zst_module_is_left_to_modinfo_where_python_has_no_zstd(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "compression.zstd", None)
    path = f"/lib/modules/{RELEASE}/updates/nvidia.ko.zst"
    top = tmp_path / "root/usr/sbin"
    top.mkdir(parents=True)
    (top / "modinfo").write_text("")
    (top / "modinfo").chmod(0o755)
    said = "version: 580.95.05\nlicense: Dual MIT/GPL\nvermagic: 6.8\n"
    told = on_disk(
        tmp_path,
        "updates/nvidia.ko.zst",
        b"\x28\xb5\x2f\xfd",
        commands={f"modinfo {path}": {"stdout": said}},
    )
    assert told.facts["driver.module.on_disk"] == "580.95.05"
    assert told.facts["driver.module.on_disk_flavor"] == "open"
    assert told.facts["driver.module.signer"] == "none"
    assert told.sources["driver.module.on_disk"] == f"modinfo {path}"


def test_a_zst_module_that_nobody_can_read_is_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "compression.zstd", None)
    told = on_disk(tmp_path, "updates/nvidia.ko.zst", b"\x28\xb5\x2f\xfd")
    assert "no decompressor" in told.gaps["driver.module.on_disk"]
    assert told.facts["driver.module.kernels"] == [RELEASE]


@pytest.mark.parametrize("content", [b"", b"garbage" * 99, MODULE[:80]])
def test_a_broken_module_is_unknown(tmp_path: Path, content: bytes) -> None:
    for name, packed in (("nvidia.ko", content), ("nvidia.ko.xz", lzma.compress(content)[:-9])):
        told = on_disk(tmp_path / name, f"updates/{name}", packed)
        assert "driver.module.on_disk" not in told.facts
        assert "driver.module.on_disk" in told.gaps


def test_a_kernel_with_modules_and_no_nvidia_is_an_answer(tmp_path: Path) -> None:
    told = on_disk(tmp_path, "kernel/fs/xfs.ko", b"")
    for name in ("driver.module.on_disk", "driver.module.kernels", "driver.module.signer"):
        assert name not in told.facts
        assert name not in told.gaps


def test_a_container_without_the_hosts_modules_cannot_tell(tmp_path: Path) -> None:
    told = look(tmp_path)
    assert "container" in told.gaps["driver.module.on_disk"]
    assert "driver.module.kernels" in told.gaps


def test_the_next_kernel_without_a_module_shows(tmp_path: Path) -> None:
    told = look(
        tmp_path,
        {
            f"/lib/modules/{RELEASE}/updates/dkms/nvidia.ko": MODULE,
            "/lib/modules/6.8.0-47-generic/modules.dep": "kernel/fs/xfs.ko:\n",
        },
    )
    assert told.facts["driver.module.kernels"] == [RELEASE]


# -- libraries


def test_libraries_by_the_cache(tmp_path: Path) -> None:
    told = look(
        tmp_path,
        {
            **cached(
                ("libcuda.so.1", f"{LIB}/libcuda.so.1"),
                ("libnvidia-ml.so.1", f"{LIB}/libnvidia-ml.so.1"),
            ),
            f"{LIB}/libcuda.so.580.95.05": elf_head(62),
            f"{LIB}/libnvidia-ml.so.580.95.05": elf_head(62),
            "/var/lib/dpkg/info/libnvidia-compute-580:amd64.list": (
                f"/.\n{LIB}/libcuda.so.580.95.05\n{LIB}/libcuda.so.1\n"
            ),
        },
        {
            f"{LIB}/libcuda.so.1": "libcuda.so.580.95.05",
            f"{LIB}/libnvidia-ml.so.1": "libnvidia-ml.so.580.95.05",
            "/lib": "usr/lib",
        },
    )
    facts = {k: v for k, v in told.facts.items() if "lib" in k or "install" in k}
    assert facts == {
        "driver.libcuda.path": f"{LIB}/libcuda.so.580.95.05",
        "driver.libcuda.version": "580.95.05",
        "driver.libcuda.stub": False,
        "driver.libnvml.path": f"{LIB}/libnvidia-ml.so.580.95.05",
        "driver.libnvml.version": "580.95.05",
        "driver.library.version": "580.95.05",
        "driver.library.copies": [f"{LIB}/libcuda.so.580.95.05 580.95.05"],
        "driver.install_method": "apt",
    }
    assert told.sources["driver.libcuda.path"] == "/etc/ld.so.cache"


def test_no_driver_at_all_is_an_answer(tmp_path: Path) -> None:
    told = look(tmp_path, cached(("libc.so.6", "/lib/x86_64-linux-gnu/libc.so.6")))
    for name in ("driver.libcuda.path", "driver.library.version", "driver.install_method"):
        assert name not in told.facts
        assert name not in told.gaps


def test_ld_library_path_comes_before_the_cache(tmp_path: Path) -> None:
    told = look(
        tmp_path,
        {
            **cached(("libcuda.so.1", f"{LIB}/libcuda.so.1")),
            f"{LIB}/libcuda.so.550.54.14": elf_head(62),
            "/opt/old/libcuda.so.470.82.01": elf_head(62),
        },
        {
            f"{LIB}/libcuda.so.1": "libcuda.so.550.54.14",
            "/opt/old/libcuda.so.1": "libcuda.so.470.82.01",
        },
        env={"LD_LIBRARY_PATH": "/nowhere::relative:/opt/old"},
    )
    assert told.facts["driver.libcuda.version"] == "470.82.01"
    assert told.sources["driver.libcuda.path"] == "LD_LIBRARY_PATH"
    assert told.facts["driver.library.copies"] == [
        "/opt/old/libcuda.so.470.82.01 470.82.01",
        f"{LIB}/libcuda.so.550.54.14 550.54.14",
    ]


def test_a_library_of_another_architecture_is_passed_over(tmp_path: Path) -> None:
    told = look(
        tmp_path,
        {
            "/etc/ld.so.cache": ld_cache(
                [
                    ("libcuda.so.1", "/usr/lib/i386-linux-gnu/libcuda.so.1", I386),
                    ("libcuda.so.1", f"{LIB}/libcuda.so.1", X86_64),
                ]
            ),
            "/usr/lib/i386-linux-gnu/libcuda.so.1": elf_head(3, 32),
            "/opt/32/libcuda.so.1": elf_head(3, 32),
            f"{LIB}/libcuda.so.1": elf_head(62),
        },
        env={"LD_LIBRARY_PATH": "/opt/32"},
    )
    assert told.facts["driver.libcuda.path"] == f"{LIB}/libcuda.so.1"
    assert told.facts["driver.library.copies"] == [f"{LIB}/libcuda.so.1"]


def test_cuda_compat_in_front_of_the_driver(tmp_path: Path) -> None:
    compat = "/usr/local/cuda-12.8/compat"
    told = look(
        tmp_path,
        {
            **cached(
                ("libcuda.so.1", f"{compat}/libcuda.so.1"), ("libcuda.so.1", f"{LIB}/libcuda.so.1")
            ),
            f"{compat}/libcuda.so.570.124.06": elf_head(62),
            f"{LIB}/libcuda.so.535.183.01": elf_head(62),
        },
        {
            f"{compat}/libcuda.so.1": "libcuda.so.570.124.06",
            f"{LIB}/libcuda.so.1": "libcuda.so.535.183.01",
        },
    )
    assert told.facts["driver.libcuda.version"] == "570.124.06"
    assert told.facts["driver.compat.version"] == "570.124.06"
    assert told.facts["driver.compat.path"] == f"{compat}/libcuda.so.570.124.06"
    assert told.facts["driver.library.version"] == "535.183.01"


def test_cuda_compat_behind_the_driver_is_told_and_not_taken(tmp_path: Path) -> None:
    compat = "/usr/local/cuda/compat/lib.real"
    told = look(
        tmp_path,
        {
            **cached(
                ("libcuda.so.1", f"{LIB}/libcuda.so.1"), ("libcuda.so.1", f"{compat}/libcuda.so.1")
            ),
            f"{LIB}/libcuda.so.1": elf_head(62),
            f"{compat}/libcuda.so.1": elf_head(62),
        },
    )
    assert told.facts["driver.libcuda.path"] == f"{LIB}/libcuda.so.1"
    assert told.facts["driver.compat.path"] == f"{compat}/libcuda.so.1"
    assert "driver.compat.version" in told.gaps


def test_cuda_compat_that_lies_around_is_no_compat_in_use(tmp_path: Path) -> None:
    told = look(tmp_path, {"/usr/local/cuda-13.0/compat/libcuda.so.1": elf_head(62)})
    assert "driver.compat.path" not in told.facts
    assert "driver.libcuda.path" not in told.facts
    assert told.facts["driver.library.copies"] == ["/usr/local/cuda-13.0/compat/libcuda.so.1"]
    assert "driver.install_method" not in told.facts


def test_the_stub_of_the_toolkit(tmp_path: Path) -> None:
    stubs = "/usr/local/cuda-12.4/targets/x86_64-linux/lib/stubs"
    told = look(
        tmp_path,
        {f"{stubs}/libcuda.so": elf_head(62)},
        {f"{stubs}/libcuda.so.1": "libcuda.so"},
        env={"LD_LIBRARY_PATH": stubs},
    )
    assert told.facts["driver.libcuda.stub"] is True
    assert "driver.library.version" not in told.facts


def test_without_a_cache_ld_so_conf_and_the_default_folders_are_taken(tmp_path: Path) -> None:
    told = look(
        tmp_path,
        {
            "/etc/ld.so.conf": "/usr/local/nvidia/lib64\n",
            "/usr/local/nvidia/lib64/libcuda.so.1": elf_head(62),
            "/usr/lib64/libnvidia-ml.so.535.104.05": elf_head(62),
        },
        {"/usr/lib64/libnvidia-ml.so.1": "libnvidia-ml.so.535.104.05"},
    )
    assert told.facts["driver.libcuda.path"] == "/usr/local/nvidia/lib64/libcuda.so.1"
    assert told.facts["driver.libnvml.version"] == "535.104.05"
    assert told.facts["driver.library.version"] == "535.104.05"


# -- how it was installed


def installed(
    tmp_path: Path, files: Mapping[str, str | bytes], path: str = LIB, **rest: Any
) -> Told:
    return look(
        tmp_path,
        {
            **cached(("libcuda.so.1", f"{path}/libcuda.so.1")),
            f"{path}/libcuda.so.535.129.03": elf_head(62),
            **files,
        },
        {f"{path}/libcuda.so.1": "libcuda.so.535.129.03"},
    )


def test_by_the_runfile(tmp_path: Path) -> None:
    log = (
        "nvidia-installer log file '/var/log/nvidia-installer.log'\n"
        "creation time: Mon Dec  4 10:00:00 2023\ninstaller version: 535.129.03\n"
    )
    told = installed(
        tmp_path, {"/var/log/nvidia-installer.log": log, "/usr/bin/nvidia-uninstall": ""}
    )
    assert told.facts["driver.install_method"] == "runfile"
    assert "installer version 535.129.03" in told.sources["driver.install_method"]


def test_the_runfile_that_a_package_replaced_is_not_how(tmp_path: Path) -> None:
    told = installed(
        tmp_path,
        {
            "/var/log/nvidia-installer.log": "",
            "/var/lib/dpkg/info/libcuda1:amd64.list": f"/.\n{LIB}/libcuda.so.535.129.03\n",
        },
    )
    assert told.facts["driver.install_method"] == "apt"


def test_a_package_of_another_release_does_not_own_it(tmp_path: Path) -> None:
    told = installed(
        tmp_path,
        {
            "/usr/bin/nvidia-uninstall": "",
            "/var/lib/dpkg/info/libcuda1:amd64.list": f"/.\n{LIB}/libcuda.so.525.147.05\n",
        },
    )
    assert told.facts["driver.install_method"] == "runfile"


@pytest.mark.parametrize(
    ("extra", "manager"), [({}, "dnf"), ({"/etc/zypp/zypp.conf": ""}, "zypper")]
)
def test_by_rpm(tmp_path: Path, extra: dict[str, str], manager: str) -> None:
    rpm_database(
        tmp_path / "root/var/lib/rpm/rpmdb.sqlite",
        {"nvidia-driver-cuda-libs": [rpm_header("nvidia-driver-cuda-libs", "535.129.03", "1.el9")]},
        [("libcuda.so.535.129.03", 1)],
    )
    told = installed(tmp_path, extra, "/usr/lib64")
    assert told.facts["driver.install_method"] == manager


def test_by_pacman(tmp_path: Path) -> None:
    record = "/var/lib/pacman/local/nvidia-utils-535.129.03-1/files"
    told = installed(tmp_path, {record: "%FILES%\nusr/lib/libcuda.so.535.129.03\n"}, "/usr/lib")
    assert told.facts["driver.install_method"] == "pacman"


def test_by_the_container_runtime(tmp_path: Path) -> None:
    path = f"{LIB}/libcuda.so.535.129.03"
    mounts = f"1045 1022 259:1 {path} {path} ro,nosuid - ext4 /dev/vda1 ro\n"
    told = installed(tmp_path, {"/proc/self/mountinfo": mounts})
    assert told.facts["driver.install_method"] == "container-mount"


def test_a_mount_tells_the_version_that_the_name_here_does_not(tmp_path: Path) -> None:
    inside = "/.singularity.d/libs/libcuda.so.1"
    told = look(
        tmp_path,
        {
            inside: elf_head(62),
            "/proc/self/mountinfo": f"9 8 259:1 {LIB}/libcuda.so.550.54.15 {inside} ro - ext4 x\n",
        },
        env={"LD_LIBRARY_PATH": "/.singularity.d/libs"},
    )
    assert told.facts["driver.libcuda.version"] == "550.54.15"
    assert told.facts["driver.install_method"] == "container-mount"


def test_under_wsl(tmp_path: Path) -> None:
    told = look(
        tmp_path,
        {
            **cached(("libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1")),
            "/usr/lib/wsl/lib/libcuda.so.1.1": elf_head(62),
        },
        {"/usr/lib/wsl/lib/libcuda.so.1": "libcuda.so.1.1"},
    )
    assert told.facts["driver.libcuda.path"] == "/usr/lib/wsl/lib/libcuda.so.1.1"
    assert told.facts["driver.install_method"] == "wsl"
    assert "driver.libcuda.version" in told.gaps
    assert "driver.library.version" in told.gaps


def test_under_wsl_off_the_loader_path(tmp_path: Path) -> None:
    told = look(tmp_path, {"/usr/lib/wsl/lib/libcuda.so.1": elf_head(62)})
    assert "driver.libcuda.path" not in told.facts
    assert told.facts["driver.library.copies"] == ["/usr/lib/wsl/lib/libcuda.so.1"]
    assert told.facts["driver.install_method"] == "wsl"


def test_by_nix(tmp_path: Path) -> None:
    store = "/nix/store/abc-nvidia-x11-535.129.03/lib"
    told = look(
        tmp_path,
        {f"{store}/libcuda.so.535.129.03": elf_head(62)},
        {
            f"{store}/libcuda.so.1": "libcuda.so.535.129.03",
            "/run/opengl-driver/lib/libcuda.so.1": f"{store}/libcuda.so.1",
        },
    )
    assert told.facts["driver.install_method"] == "nix"
    assert told.facts["driver.library.copies"] == [f"{store}/libcuda.so.535.129.03 535.129.03"]


def test_nobodys_library_is_unknown(tmp_path: Path) -> None:
    assert "driver.install_method" in installed(tmp_path, {}).gaps


# -- nodes, firmware, modprobe


def test_device_nodes(tmp_path: Path) -> None:
    nodes = ("nvidia0", "nvidiactl", "nvidia-uvm", "nvidia-caps/nvidia-cap1", "null", "nvram")
    told = look(tmp_path, {f"/dev/{node}": "" for node in nodes})
    assert told.facts["driver.device_nodes"] == [
        "/dev/nvidia-caps",
        "/dev/nvidia-uvm",
        "/dev/nvidia0",
        "/dev/nvidiactl",
    ]


def test_gsp_firmware_by_release(tmp_path: Path) -> None:
    told = look(
        tmp_path,
        {
            "/lib/firmware/nvidia/580.95.05/gsp_ga10x.bin": "",
            "/lib/firmware/nvidia/535.183.01/gsp_tu10x.bin.zst": "",
            "/lib/firmware/nvidia/550.54.14/empty": "",
            "/lib/firmware/nvidia/ga102/gsp/bootloader-535.113.01.bin": "",
        },
    )
    assert told.facts["driver.gsp.on_disk"] == ["535.183.01", "580.95.05"]


def test_blacklisted_modules(tmp_path: Path) -> None:
    told = look(
        tmp_path,
        {
            "/etc/modprobe.d/nouveau.conf": "# no\nblacklist nouveau\noptions nouveau modeset=0\n",
            "/etc/modprobe.d/nova.conf": "install nova-core /bin/false\n",
            "/usr/lib/modprobe.d/nvidia.conf": "install nvidia modprobe -i nvidia-current\n",
            "/usr/lib/modprobe.d/nova.conf": "blacklist nvidia\n",
            "/usr/lib/modprobe.d/other.conf.disabled": "blacklist nvidia_drm\n",
            "/etc/modprobe.d/odd.conf": b"\xff\xfe blacklist\nblacklist\nblacklist pcspkr\n",
            "/proc/cmdline": "quiet modprobe.blacklist=nova_drm,pcspkr\n",
        },
    )
    assert told.facts["driver.blacklisted"] == ["nouveau", "nova_core", "nova_drm"]


@pytest.mark.parametrize(
    ("line", "module"),
    [
        ("blacklist nouveau", "nouveau"),
        ("  blacklist\tnova-core  # why", "nova_core"),
        ("install nouveau /bin/true", "nouveau"),
        ("alias nouveau off", "nouveau"),
        ("install nouveau \\\n  /bin/false", "nouveau"),
        ("# blacklist nouveau", None),
        ("install nvidia modprobe -i nvidia-current $CMDLINE_OPTS", None),
        ("alias char-major-195* nvidia", None),
    ],
)
def test_lines_of_modprobe_d(line: str, module: str | None) -> None:
    assert driver.parse_modprobe(line) == ([module] if module else [])


def test_an_image_tells_files_and_not_what_runs(tmp_path: Path) -> None:
    machine(
        tmp_path,
        {
            f"/lib/modules/{RELEASE}/updates/nvidia.ko": MODULE,
            "/usr/lib64/libcuda.so.580.95.05": elf_head(62),
            "/dev/nvidia0": "",
        },
        {"/usr/lib64/libcuda.so.1": "libcuda.so.580.95.05"},
    )
    told = probe("driver", Host(str(tmp_path / "root")))
    assert told.facts["driver.module.kernels"] == [RELEASE]
    assert told.facts["driver.libcuda.version"] == "580.95.05"
    for name in ("driver.module.loaded", "driver.module.on_disk", "driver.version"):
        assert name in told.gaps
        assert name not in told.facts
    assert "driver.device_nodes" in told.gaps


def test_this_machine() -> None:
    told = probe("driver", Host())
    assert isinstance(told.facts.get("driver.module.loaded", False), bool)
