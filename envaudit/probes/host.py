"""The host around the GPU: CPUs, memory, pressure, disks, limits, IOMMU."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterable, Mapping
from functools import partial

from envaudit.host import Host
from envaudit.probes import Look, part


def look(look: Look) -> None:
    """Read /proc and /sys; disks come last, since only they can hang."""
    if look.host.files_only:
        part(look, "host.name", _image_name)
        look.gap("host.*", "an image does not run")
        return
    part(look, "host.name", _name)
    part(look, ("host.cpu.model", "host.cpu.vendor", "host.cpu.count"), _cpu)
    part(look, "host.cpu.usable", _usable)
    part(look, tuple(f"host.cpu.{name}" for name, _ in _POLICY_FACTS), _frequency)
    part(look, "host.cpu.turbo", _turbo)
    part(look, "host.cpu.throttled", _throttled)
    part(look, "host.numa.nodes", _numa)
    part(look, ("host.memory.*", "host.swap.used"), _memory)
    part(look, "host.load.1m", _load)
    for resource in ("cpu", "memory", "io"):
        part(look, f"host.psi.{resource}", partial(_pressure, resource=resource))
    part(look, "host.clocksource", _clocksource)
    part(look, "host.thp", _thp)
    part(look, "host.limits.*", _limits)
    part(look, "host.iommu", _iommu)
    part(look, ("host.shm.size", "host.disk.*"), _disks)


# -- names -----------------------------------------------------------------------------------


def _name(look: Look) -> None:
    path = "/proc/sys/kernel/hostname"
    look.add("host.name", look.host.read(path).strip(), path)


def _image_name(look: Look) -> None:
    look.add("host.name", look.host.read_or("/etc/hostname").strip()[:253], "/etc/hostname")


# -- CPUs ------------------------------------------------------------------------------------

_CPUS = "/sys/devices/system/cpu"


def _cpu(look: Look) -> None:
    path = "/proc/cpuinfo"
    model, vendor, seen = parse_cpuinfo(look.host.read(path))
    look.add("host.cpu.model", model, path)
    look.add("host.cpu.vendor", vendor, path)
    online = count_ranges(look.host.read_or(f"{_CPUS}/online"))
    if online:
        look.add("host.cpu.count", online, f"{_CPUS}/online")
    elif seen:
        look.add("host.cpu.count", seen, path)


_VENDORS = {
    "GenuineIntel": "Intel",
    "AuthenticAMD": "AMD",
    "HygonGenuine": "Hygon",
    "0x41": "ARM",
    "0x48": "HiSilicon",
    "0x4e": "NVIDIA",
    "0xc0": "Ampere",
}
"""Vendor ids in cpuinfo, and the names that people use."""


def parse_cpuinfo(text: str) -> tuple[str, str, int]:
    """Model, vendor and number of CPUs of /proc/cpuinfo, as far as it says them.

    x86: `vendor_id : AuthenticAMD`, `model name : AMD EPYC 9554 64-Core Processor`.
    ARM says only numbers: `CPU implementer : 0x41`, `CPU part : 0xd4f`. POWER: `cpu : POWER9`.
    """
    first: dict[str, str] = {}
    models: dict[str, None] = {}
    parts: dict[str, None] = {}
    count = 0
    for line in text.splitlines():
        key, colon, value = line.partition(":")
        if not colon:
            continue
        key, value = key.strip(), value.strip()
        if key == "processor":
            count += value.isdecimal()
        elif key in ("model name", "cpu"):
            models[" ".join(value.split())] = None
        elif key == "CPU part":
            parts[f"{first.get('CPU implementer', '')} part {value}".strip()] = None
        elif key in ("vendor_id", "CPU implementer"):
            first.setdefault(key, value)
    vendor = first.get("vendor_id") or first.get("CPU implementer", "")
    model = " + ".join(filter(None, models)) or " + ".join(f"implementer {p}" for p in parts)
    return model[:200], _VENDORS.get(vendor, vendor)[:50], count


def count_ranges(text: str) -> int:
    """How many numbers a kernel list such as `0-3,8-11,16` holds; 0 for what is no such list."""
    total = 0
    for piece in text.strip().split(","):
        found = re.fullmatch(r"(\d{1,6})(?:-(\d{1,6}))?", piece.strip(), re.ASCII)
        if found is None:
            return 0
        first, last = int(found.group(1)), int(found.group(2) or found.group(1))
        total += max(0, last - first + 1)
    return total


def _usable(look: Look) -> None:
    if look.host.live:
        look.add("host.cpu.usable", len(os.sched_getaffinity(0)), "sched_getaffinity (nproc)")
    elif look.host.recorded and isinstance(look.host.recorded.get("cpus"), int):
        look.add("host.cpu.usable", look.host.recorded["cpus"], "recorded")
    else:
        look.gap("host.cpu.usable", "not recorded")


_POLICY_FACTS = (
    ("governor", "scaling_governor"),
    ("frequency_driver", "scaling_driver"),
    ("energy_preference", "energy_performance_preference"),
)


def _frequency(look: Look) -> None:
    base = f"{_CPUS}/cpufreq"
    if not look.host.isdir(_CPUS):
        raise FileNotFoundError(2, "", _CPUS)
    policies = [name for name in look.host.listdir(base) if name.startswith("policy")]
    for name, file in _POLICY_FACTS:
        values = {look.host.read_or(f"{base}/{policy}/{file}").strip() for policy in policies}
        look.add(f"host.cpu.{name}", one_word(values), f"{base}/policy*/{file}")


def one_word(values: Iterable[str]) -> str | None:
    """The one value that all share, `mixed` where they differ, None where there is none."""
    seen = {value for value in values if value}
    if not seen:
        return None
    return seen.pop() if len(seen) == 1 else "mixed"


def _turbo(look: Look) -> None:
    if not look.host.isdir(_CPUS):
        raise FileNotFoundError(2, "", _CPUS)
    for path, on in ((f"{_CPUS}/intel_pstate/no_turbo", "0"), (f"{_CPUS}/cpufreq/boost", "1")):
        value = look.host.read_or(path).strip()
        if value in ("0", "1"):
            look.add("host.cpu.turbo", value == on, path)
            return


def _throttled(look: Look) -> None:
    host = look.host
    if not host.isdir(_CPUS):
        raise FileNotFoundError(2, "", _CPUS)
    cores, packages = [], []
    for name in host.listdir(_CPUS):
        folder = f"{_CPUS}/{name}/thermal_throttle"
        if re.fullmatch(r"cpu\d+", name) and host.isdir(folder):
            cores.append(_number(host.read_or(f"{folder}/core_throttle_count")))
            packages.append(_number(host.read_or(f"{folder}/package_throttle_count")))
    if cores:
        # Every CPU of a package repeats the package's events; those of the worst one are enough.
        total = sum(cores) + max(packages)
        look.add("host.cpu.throttled", total, f"{_CPUS}/cpu*/thermal_throttle")


def _number(text: str) -> int:
    text = text.strip()
    return int(text) if text.isdecimal() and len(text) < 20 else 0


def _numa(look: Look) -> None:
    path = "/sys/devices/system/node/online"
    look.add("host.numa.nodes", count_ranges(look.host.read(path)) or None, path)


# -- memory and pressure ---------------------------------------------------------------------


def _memory(look: Look) -> None:
    path = "/proc/meminfo"
    sizes = parse_meminfo(look.host.read(path))
    look.add("host.memory.total", sizes.get("MemTotal"), path)
    look.add("host.memory.available", sizes.get("MemAvailable"), path)
    total, free = sizes.get("SwapTotal"), sizes.get("SwapFree")
    if total is not None and free is not None:
        look.add("host.swap.used", max(0, total - free), path)


def parse_meminfo(text: str) -> dict[str, int]:
    """Sizes in bytes by name: `MemTotal:       131857188 kB`."""
    return {
        name: int(size) * 1024
        for name, size in re.findall(r"^(\w+):\s+(\d{1,15}) kB$", text, re.MULTILINE | re.ASCII)
    }


def _load(look: Look) -> None:
    path = "/proc/loadavg"
    found = re.match(r"\d{1,9}\.\d+", look.host.read(path, 256), re.ASCII)
    if found is None:
        look.gap("host.load.1m", f"{path}: not understood")
    else:
        look.add("host.load.1m", float(found.group()), path)


def _pressure(look: Look, resource: str) -> None:
    name, path = f"host.psi.{resource}", f"/proc/pressure/{resource}"
    average = parse_pressure(look.host.read(path, 1024))
    if average is None:
        look.gap(name, f"{path}: not understood")
    else:
        look.add(name, average, f"{path} some avg10")


def parse_pressure(text: str) -> float | None:
    """`some avg10=0.12 avg60=0.05 avg300=0.01 total=12345` -> 0.12, percent."""
    found = re.search(r"^some avg10=(\d{1,3}(?:\.\d{1,6})?)\b", text, re.MULTILINE | re.ASCII)
    return float(found.group(1)) if found else None


# -- settings --------------------------------------------------------------------------------


def _clocksource(look: Look) -> None:
    path = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
    look.add("host.clocksource", look.host.read(path).strip(), path)


def _thp(look: Look) -> None:
    path = "/sys/kernel/mm/transparent_hugepage/enabled"
    # The choice in force stands in brackets: always [madvise] never
    look.add("host.thp", look.host.read(path).partition("[")[2].partition("]")[0], path)


_LIMITS = (
    ("host.limits.memlock", "Max locked memory"),
    ("host.limits.nofile", "Max open files"),
)


def _limits(look: Look) -> None:
    path = "/proc/self/limits"
    own = parse_limits(look.host.read(path))
    for name, row in _LIMITS:
        look.add(name, own.get(row), path)
    if look.host.live:  # our own core files are switched off; what started us says what is usual
        own = parse_limits(look.host.read(f"/proc/{os.getppid()}/limits"))
    look.add("host.limits.core", own.get("Max core file size"), path)


def parse_limits(text: str) -> dict[str, int]:
    """Soft limits by row of /proc/PID/limits, -1 for unlimited.

    Limit                     Soft Limit           Hard Limit           Units
    Max open files            1024                 1048576              files
    """
    found = re.findall(r"^(Max [a-z ]+?) {2,}(\d{1,20}|unlimited)\b", text, re.MULTILINE | re.ASCII)
    return {name: -1 if soft == "unlimited" else int(soft) for name, soft in found}


def _iommu(look: Look) -> None:
    host = look.host
    groups = "/sys/kernel/iommu_groups"
    if not host.isdir("/sys/class"):
        raise FileNotFoundError(2, "", "/sys/class")
    if not host.listdir("/sys/class/iommu") and not host.listdir(groups):
        look.add("host.iommu", "none", "/sys/class/iommu, /sys/kernel/iommu_groups")
        return
    gpus = _gpu_groups(host)
    types = {
        group: host.read_or(f"{groups}/{group}/type").strip()
        for group in gpus or host.listdir(groups)
    }
    mode = iommu_mode(types)
    if mode is not None:
        look.add("host.iommu", mode, f"{groups}/*/type{' of the GPUs' if gpus else ''}")
    elif re.search(r"(^|\s)iommu(=pt|\.passthrough=1)\b", host.read_or("/proc/cmdline")):
        look.add("host.iommu", "passthrough", "/proc/cmdline")
    else:
        look.gap("host.iommu", f"{groups}/*/type do not agree on one mode")


def _gpu_groups(host: Host) -> list[str]:
    """IOMMU groups of the NVIDIA display devices (PCI class 0x03)."""
    found = []
    for device in host.listdir("/sys/bus/pci/devices"):
        place = f"/sys/bus/pci/devices/{device}"
        if host.read_or(f"{place}/vendor").strip() == "0x10de" and host.read_or(
            f"{place}/class"
        ).startswith("0x03"):
            group = host.readlink(f"{place}/iommu_group")
            if group:
                found.append(posixpath.basename(group))
    return found


def iommu_mode(types: Mapping[str, str]) -> str | None:
    """What the domain types of IOMMU groups come to: DMA and DMA-FQ translate, identity does not.

    A group whose device is lent to a guest (unmanaged, blocked) says nothing of the host.
    """
    seen = {
        "translated" if kind.startswith("DMA") else "passthrough"
        for kind in types.values()
        if kind.startswith("DMA") or kind == "identity"
    }
    return seen.pop() if len(seen) == 1 else None


# -- disks -----------------------------------------------------------------------------------

_DISTANT = re.compile(
    r"(nfs\d?|cifs|smb\w*|9p|afs|autofs|ceph|lustre|gpfs|beegfs\w*|glusterfs|pvfs2|orangefs|wekafs|coda"
    r"|ncpfs|davfs|ocfs2|gfs2|fuse(\..*)?)$"
)
"""File systems that may answer late or never; a fuse-overlayfs is a container's own root."""


def parse_mounts(text: str) -> dict[str, str]:
    r"""Type by mount point of /proc/self/mounts; the last mount on a place is the one in use.

    /dev/sda1 /mnt/a\040b ext4 rw,relatime 0 0
    """
    found = {}
    for line in text.splitlines():
        words = line.split(" ")
        if len(words) >= 3:
            place = re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal.group(1), 8)), words[1])
            found[place] = words[2]
    return found


def mount_of(path: str, mounts: Mapping[str, str]) -> str | None:
    """The mount point that holds a path, by name alone, so that nothing is touched that hangs."""
    here = posixpath.normpath(path)
    while here not in mounts:
        if here in ("/", "", "."):
            return None
        here = posixpath.dirname(here)
    return here


def _disks(look: Look) -> None:
    mounts = parse_mounts(look.host.read("/proc/self/mounts"))
    if mounts.get("/dev/shm"):
        part(look, "host.shm.size", _shm)
    asked = ["/", "/tmp", "/var", _store(look.host)]
    if look.target is not None:
        asked.append((*look.target.site_dirs, look.target.executable)[0])
    for place in dict.fromkeys(mount_of(path, mounts) for path in asked if path):
        if place is None:
            continue
        kind = mounts[place]
        if _DISTANT.match(kind) and kind != "fuse.fuse-overlayfs":
            look.gap(f"host.disk.{place}.*", f"{kind} is not asked: it may not answer")
        else:
            part(look, f"host.disk.{place}.*", partial(_disk, place=place))


def _store(host: Host) -> str:
    """Where snapshots are kept, if nothing else was said."""
    if host.live and os.geteuid() == 0:
        return "/var/lib/envaudit"
    state = host.env.get("XDG_STATE_HOME")
    home = host.env.get("HOME")
    return state or (f"{home}/.local/state" if home else "")


def _shm(look: Look) -> None:
    size, _ = look.host.disk("/dev/shm")
    look.add("host.shm.size", size, "df /dev/shm")


def _disk(look: Look, place: str) -> None:
    size, free = look.host.disk(place)
    if size <= 0:  # not backed by blocks
        return
    look.add(f"host.disk.{place}.free", free, f"df {place}")
    look.add(f"host.disk.{place}.free_ratio", round(free / size, 4), f"df {place}")
