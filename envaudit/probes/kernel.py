"""The running kernel, this boot, the firmware below it, and the kernels on disk."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime, timezone
from functools import partial

from envaudit.bootloader import Undecided, next_kernel, release_key, release_of
from envaudit.host import Host
from envaudit.kernel_words import comparable, filter_cmdline, parse_compiler
from envaudit.probes import Look, part

MODULES = (
    "nvidia",
    "nvidia_uvm",
    "nvidia_modeset",
    "nvidia_drm",
    "nvidia_peermem",
    "nouveau",
    "nova_core",
    "gdrdrv",
)
"""Kernel modules that decide whether and how a GPU can be used."""

RUNNING = (
    "kernel.release",
    "kernel.version",
    "kernel.compiler",
    "kernel.cmdline",
    "kernel.lockdown",
    "kernel.taint",
    "kernel.module.*",
    "boot.*",
    "firmware.*",
    "cpu.microcode",
)
"""What only a running machine can tell."""


def look(look: Look) -> None:
    """Read the kernel's own words from /proc and /sys, and the kernels from /boot."""
    part(look, ("kernel.installed", "kernel.default"), _on_disk)
    if look.host.files_only:
        for name in RUNNING:
            look.gap(name, "an image does not run")
        return
    part(look, ("kernel.release", "kernel.version"), _release)
    part(look, "kernel.compiler", _compiler)
    part(look, "kernel.cmdline", _cmdline)
    part(look, "kernel.lockdown", _lockdown)
    part(look, "kernel.taint", _taint)
    part(look, "kernel.module.*", _modules)
    part(look, "boot.id", _boot_id)
    part(look, "boot.time", _boot_time)
    part(look, "boot.secure_boot", _secure_boot)
    part(look, "boot.reboot_required", _reboot_required)
    part(look, "firmware.*", _firmware)
    part(look, "cpu.microcode", _microcode)


# -- the running kernel ----------------------------------------------------------------------


def _release(look: Look) -> None:
    path = "/proc/sys/kernel/osrelease"
    release = look.host.read(path).strip()
    look.add("kernel.release", release, path)
    look.add("kernel.version", comparable(release), path)


def _compiler(look: Look) -> None:
    compiler = parse_compiler(look.host.read("/proc/version"))
    if compiler:
        look.add("kernel.compiler", compiler, "/proc/version")
    else:
        look.gap("kernel.compiler", "/proc/version names no compiler that is known")


def _cmdline(look: Look) -> None:
    path = "/proc/cmdline"
    kept = filter_cmdline(look.host.read(path))
    look.add("kernel.cmdline", kept, f"{path}, without devices, addresses and secrets")


def _lockdown(look: Look) -> None:
    folder = "/sys/kernel/security"
    try:
        text = look.host.read(f"{folder}/lockdown")
    except FileNotFoundError:
        if not look.host.listdir(folder):
            look.gap("kernel.lockdown", f"{folder} is not mounted here")
        return
    # The choice in force stands in brackets: none [integrity] confidentiality
    look.add("kernel.lockdown", text.partition("[")[2].partition("]")[0], f"{folder}/lockdown")


def _taint(look: Look) -> None:
    path = "/proc/sys/kernel/tainted"
    look.add("kernel.taint", int(look.host.read(path, 64)), path)


def _modules(look: Look) -> None:
    source = "/proc/modules"
    try:
        loaded = loaded_modules(look.host.read(source))
    except FileNotFoundError:  # a kernel without loadable modules has no such file
        if not look.host.isdir("/sys/module"):
            raise
        loaded, source = frozenset(), "/sys/module"
    present = frozenset(look.host.listdir("/sys/module"))
    for name in MODULES:
        built_in = name in present and name not in loaded
        look.add(
            f"kernel.module.{name}.loaded",
            name in loaded or built_in,
            "/sys/module" if built_in else source,
        )
        path = f"/sys/module/{name}/version"
        look.add(f"kernel.module.{name}.version", look.host.read_or(path).strip(), path)


def loaded_modules(text: str) -> frozenset[str]:
    """Names in /proc/modules: `nvidia_uvm 1769472 0 - Live 0x0000000000000000 (POE)`."""
    return frozenset(line.split(None, 1)[0] for line in text.splitlines() if line.strip())


# -- this boot -------------------------------------------------------------------------------


def _boot_id(look: Look) -> None:
    path = "/proc/sys/kernel/random/boot_id"
    look.add("boot.id", look.host.read(path).strip(), path)


def _boot_time(look: Look) -> None:
    found = re.search(r"^btime (\d{1,11})$", look.host.read("/proc/stat"), re.MULTILINE)
    if found is None:
        look.gap("boot.time", "/proc/stat has no btime")
        return
    began = datetime.fromtimestamp(int(found.group(1)), timezone.utc)
    look.add("boot.time", began.strftime("%Y-%m-%dT%H:%M:%SZ"), "/proc/stat btime")


def _secure_boot(look: Look) -> None:
    host = look.host
    if not host.listdir("/sys/firmware"):  # containers see an empty folder here
        look.gap("boot.secure_boot", "/sys/firmware is hidden here")
    elif not host.exists("/sys/firmware/efi"):
        look.add("boot.secure_boot", "unsupported", "no /sys/firmware/efi")
    elif not host.listdir("/sys/firmware/efi/efivars"):
        look.gap("boot.secure_boot", "/sys/firmware/efi/efivars is not mounted")
    else:
        path = "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
        try:
            data = host.read_bytes(path, 16)
        except FileNotFoundError:
            look.add("boot.secure_boot", "unsupported", "no EFI variable SecureBoot")
            return
        if len(data) == 5 and data[4] in (0, 1):  # four bytes of attributes, then the value
            look.add("boot.secure_boot", "enabled" if data[4] else "disabled", path)
        else:
            look.gap("boot.secure_boot", f"{path}: not understood: {data.hex()}")


_REBOOT_MARKS = ("/run/reboot-required", "/var/run/reboot-required", "/run/reboot-needed")
_REBOOT_MARKERS = (
    "/usr/share/update-notifier/notify-reboot-required",
    "/etc/kernel/postinst.d/unattended-upgrades",
    "/etc/kernel/postinst.d/update-notifier",
    "/etc/zypp/needreboot",
)
"""What leaves such a mark: only where one of these is installed does its lack say anything."""


def _reboot_required(look: Look) -> None:
    for mark in _REBOOT_MARKS:
        if look.host.exists(mark):
            look.add("boot.reboot_required", True, mark)
            return
    marker = next((path for path in _REBOOT_MARKERS if look.host.exists(path)), None)
    if marker:
        look.add("boot.reboot_required", False, f"no {_REBOOT_MARKS[0]} ({marker} would leave it)")
    else:
        look.gap("boot.reboot_required", "nothing on this machine leaves a mark for it")


# -- firmware --------------------------------------------------------------------------------

_DMI = "/sys/class/dmi/id"
_DMI_FACTS = (
    ("firmware.bios.version", "bios_version"),
    ("firmware.bios.date", "bios_date"),
    ("firmware.product", "product_name"),
)
_FILLERS = frozenset(
    {"to be filled by o.e.m.", "default string", "system product name", "not specified"}
    | {"none", "n/a", "unknown", "not applicable", "o.e.m."}
)
"""What vendors leave in a field that they did not fill."""


def _firmware(look: Look) -> None:
    host = look.host
    if not host.isdir("/sys/class"):
        look.gap("firmware.*", "no /sys here")
        return
    for name, field in _DMI_FACTS:
        part(look, name, partial(_dmi, name=name, field=field))
    if not host.isdir(_DMI):
        path = "/proc/device-tree/model"
        look.add("firmware.product", host.read_or(path).strip("\0\n "), path)


def _dmi(look: Look, name: str, field: str) -> None:
    path = f"{_DMI}/{field}"
    try:
        value = look.host.read(path, 4096).strip("\0\n ")
    except FileNotFoundError:  # no DMI (most of ARM), or not this field
        return
    if value.lower() not in _FILLERS:
        look.add(name, value, path)


def _microcode(look: Look) -> None:
    found = re.search(r"^microcode\s*: (\S+)$", look.host.read("/proc/cpuinfo"), re.MULTILINE)
    if found:
        look.add("cpu.microcode", found.group(1), "/proc/cpuinfo")


# -- kernels on disk -------------------------------------------------------------------------


def _on_disk(look: Look) -> None:
    host = look.host
    images = sorted(
        {r for name in host.listdir("/boot") if (r := release_of(f"/boot/{name}"))}, key=release_key
    )
    installed = sorted({*images, *_with_modules(host)}, key=release_key)
    running = "" if host.files_only else host.read_or("/proc/sys/kernel/osrelease").strip()
    if installed:
        look.add("kernel.installed", [*installed], "/boot/vmlinuz-*, /lib/modules/*")
    elif running:
        look.gap("kernel.installed", "the running kernel was not booted from this file system")
    if re.search(r"microsoft-standard|-Microsoft$", running):
        look.gap("kernel.default", "Windows provides the kernel of WSL")
        return
    try:
        release, source = next_kernel(host, images)
    except Undecided as reason:
        look.gap("kernel.default", str(reason))
    else:
        look.add("kernel.default", release, source)


def _with_modules(host: Host) -> Iterable[str]:
    """Releases that have their modules; a folder left behind by a removed kernel has none."""
    for base in ("/lib/modules", "/usr/lib/modules"):
        for release in host.listdir(base):
            if release[:1].isdigit() and any(
                host.exists(f"{base}/{release}/{content}")
                for content in ("modules.dep", "kernel", "vmlinuz")
            ):
                yield release
