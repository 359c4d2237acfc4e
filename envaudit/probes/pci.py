"""NVIDIA functions on the PCI bus and the kernel driver that has each, from /sys.

This is what the machine has whether or not any driver works. GPUs that are not on a PCI bus
(Jetson, WSL) cannot be seen here, so an empty bus is no answer there.
"""

from __future__ import annotations

import posixpath
import re
import struct
from typing import NamedTuple

from envaudit.host import Host
from envaudit.probes import Look, part

BUS = "/sys/bus/pci/devices"
_NVIDIA = "10de"
_ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]\Z")

_ACS_CAPABILITY = 0x000D
_EXTENDED_START = 0x100
_ACS_REDIRECT = 0x000C
"""P2P request redirect and P2P completion redirect of the ACS control register."""


class Function(NamedTuple):
    """One PCI function of a GPU or of an NVSwitch."""

    address: str
    id: str
    """Vendor and device, "10de:2684"."""
    subsystem: str
    kind: str
    """display or nvswitch."""
    driver: str
    """Kernel driver bound to it, or "none"."""


def look(look: Look) -> None:
    """Tell the GPU functions with their kernel drivers, and what lies above them."""
    names = ("gpu.driver_bound", "pci.gpu.*", "nvswitch.count", "gpu.*.pci.*", "pci.acs.enabled")
    reason = _not_on_the_bus(look.host)
    if not look.host.isdir(BUS):
        for name in names:
            look.gap(name, reason or f"no {BUS}")
        return
    part(look, names, lambda look: _functions(look, names, reason))


def _functions(look: Look, names: tuple[str, ...], elsewhere: str) -> None:
    found = nvidia_functions(look.host)
    gpus = [function for function in found if function.kind == "display"]
    if not gpus and elsewhere:
        for name in names:
            look.gap(name, elsewhere)
        return
    look.add("pci.gpu.count", len(gpus), BUS)
    look.add("nvswitch.count", len(found) - len(gpus), BUS)
    if found:
        look.add(
            "gpu.driver_bound",
            [f"{f.address} {f.id} {f.kind} {f.driver}" for f in found],
            f"{BUS}/*/driver",
        )
    for number, gpu in enumerate(gpus):
        place = f"{BUS}/{gpu.address}"
        look.add(f"pci.gpu.{number}.address", gpu.address, place)
        look.add(f"pci.gpu.{number}.id", gpu.id, f"{place}/device")
        look.add(f"pci.gpu.{number}.driver", gpu.driver, f"{place}/driver")
    for number, gpu in _numbered(look, gpus):
        place = f"{BUS}/{gpu.address}"
        look.add(f"gpu.{number}.pci.address", gpu.address, place)
        look.add(f"gpu.{number}.pci.id", f"{gpu.id} {gpu.subsystem}".strip(), place)
        look.add(f"gpu.{number}.pci.device", gpu.id[5:].upper(), f"{place}/device")
        if gpu.subsystem:
            board = f"{gpu.id[5:]}:{gpu.subsystem}".upper()
            look.add(f"gpu.{number}.pci.board", board, f"{place}/subsystem_device")
    part(look, "pci.acs.enabled", lambda look: _acs(look, gpus))


def _numbered(look: Look, gpus: list[Function]) -> list[tuple[int, Function]]:
    """The GPUs to tell with their numbers: all where NVML names none, else those it leaves out.

    The ones that NVML leaves out come behind its own. Only what nvidia has, or nothing: a GPU
    that another driver holds was given away on purpose, and in a container NVML sees a choice.
    """
    if look.value("nvml.status") != "ok":
        return list(enumerate(gpus))
    count = look.value("gpu.count")
    if not isinstance(count, int) or len(gpus) <= count or look.value("container.runtime"):
        return []
    listed = {look.value(f"gpu.{number}.pci.address") for number in range(count)}
    if None in listed:
        return []
    left = [gpu for gpu in gpus if gpu.address not in listed]
    return list(enumerate((gpu for gpu in left if gpu.driver in ("nvidia", "none")), count))


def _not_on_the_bus(host: Host) -> str:
    """Why a GPU of this machine need not be on its PCI bus; "" where it would be."""
    if host.files_only:
        return "the bus is there only while the machine runs"
    if host.exists("/dev/dxg") or "microsoft" in host.read_or("/proc/sys/kernel/osrelease"):
        return "under WSL the GPU is not on the PCI bus of the guest"
    if host.exists("/etc/nv_tegra_release") or host.exists("/dev/nvmap"):
        return "the GPU of a Jetson is not on a PCI bus"
    return ""


def nvidia_functions(host: Host) -> list[Function]:
    """Display functions and NVSwitches of vendor 10de in bus order, without virtual functions.

    Class 0x03 is display: 0x0300 with a VGA part, 0x0302 without; 0x0680 is "other bridge",
    which an NVSwitch calls itself. The audio, USB and serial functions of a card are left out.
    """
    found = []
    for address in host.listdir(BUS):
        place = f"{BUS}/{address}"
        if not _ADDRESS.match(address) or _hex(host, f"{place}/vendor") != _NVIDIA:
            continue
        class_code = host.read_or(f"{place}/class").strip().removeprefix("0x")
        if class_code.startswith("03"):
            kind = "display"
        elif class_code.startswith("0680"):
            kind = "nvswitch"
        else:
            continue
        if host.readlink(f"{place}/physfn") is not None:
            continue
        driver = host.readlink(f"{place}/driver")
        subsystem = [_hex(host, f"{place}/subsystem_{what}") for what in ("vendor", "device")]
        found.append(
            Function(
                address,
                f"{_NVIDIA}:{_hex(host, f'{place}/device')}",
                ":".join(subsystem) if all(subsystem) else "",
                kind,
                posixpath.basename(driver) if driver else "none",
            )
        )
    return found


def _hex(host: Host, path: str) -> str:
    return host.read_or(path).strip().removeprefix("0x").lower()


def _acs(look: Look, gpus: list[Function]) -> None:
    """Whether a bridge above a GPU sends the traffic between GPUs up to the root.

    The control register lies beyond the 64 bytes of configuration space that everybody may read.
    """
    denied = ""
    read = 0
    bridges = {bridge for gpu in gpus for bridge in bridges_above(look.host.real(_place(gpu)))}
    for bridge in sorted(bridges):
        path = f"{BUS}/{bridge}/config"
        config = look.host.read_bytes(path, 4096)
        if len(config) <= _EXTENDED_START:
            denied = f"{path}: reading beyond 64 bytes needs root"
            continue
        read += 1
        control = acs_control(config)
        if control is not None and control & _ACS_REDIRECT:
            look.add("pci.acs.enabled", True, path)
            return
    if denied:
        look.gap("pci.acs.enabled", denied)
    elif read:
        look.add("pci.acs.enabled", False, f"{BUS}/*/config of {read} bridges")


def _place(gpu: Function) -> str:
    return f"{BUS}/{gpu.address}"


def bridges_above(path: str) -> list[str]:
    """The addresses above a device in its real path, as
    /sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0 has one."""
    return [name for name in path.split("/")[:-1] if _ADDRESS.match(name)]


def acs_control(config: bytes) -> int | None:
    """The ACS control register from a PCIe configuration space; None where there is no ACS.

    Extended capabilities are a chain from 0x100 on: id (16 bits), version (4), offset of the
    next (12). ACS has its capability register at +4 and its control register at +6.
    """
    at = _EXTENDED_START
    for _ in range(960):
        if at + 8 > len(config):
            return None
        header = struct.unpack_from("<I", config, at)[0]
        if header & 0xFFFF == _ACS_CAPABILITY:
            return int(struct.unpack_from("<H", config, at + 6)[0])
        at = header >> 20
        if at < _EXTENDED_START:
            return None
    return None
