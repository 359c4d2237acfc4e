"""DKMS and its nvidia module, from DKMS's own folders: no command is run.

/var/lib/dkms/nvidia/580.95.05/source                                 added
/var/lib/dkms/nvidia/580.95.05/6.8.0-45-generic/x86_64/module/*.ko*   built
/var/lib/dkms/nvidia/kernel-6.8.0-45-generic-x86_64                   installed (a link)
/var/lib/dkms/nvidia/580.95.05/build/make.log                         the last build broke off
"""

from __future__ import annotations

import re
from typing import NamedTuple

from envaudit.host import Host
from envaudit.probes import Look, part

TREE = "/var/lib/dkms"
_MODULE = re.compile(r"nvidia(?:-?\d+\w*)?(?:-(?:current|open|srv|legacy|tesla)\b.*)?\Z")
"""Names under which distributions add the driver: nvidia, nvidia-current, nvidia-open,
nvidia-tesla-470, nvidia340 - not nvidia-fs, which is another module."""
_COMMANDS = ("/usr/sbin/dkms", "/usr/bin/dkms", "/sbin/dkms")
_LOG_HEAD = re.compile(rb"make\.log for (\S+) for kernel (\S+) \((\S+)\)")
_FAILED = re.compile(rb"\*\*\* \[|\berror: |\bERROR\b|\bError \d|exit code: [1-9]")
"""What a broken build leaves in its log; make's own "*** [" is there in every language."""
_LOG_LIMIT_BYTES = 8 << 20


class Build(NamedTuple):
    """What DKMS has of one version of the module for one kernel."""

    kernel: str
    """"" for a version that was only added."""
    status: str
    source: str


def look(look: Look) -> None:
    """Tell whether DKMS is there and what it made of the nvidia module."""
    part(look, "dkms.installed", _installed)
    part(look, ("dkms.nvidia.status", "dkms.nvidia.kernels"), _nvidia)


def _installed(look: Look) -> None:
    command = next((path for path in _COMMANDS if look.host.exists(path)), None)
    look.add("dkms.installed", command is not None, command or " ".join(_COMMANDS))


def _nvidia(look: Look) -> None:
    builds = list(nvidia_builds(look.host))
    made = dict.fromkeys(b.kernel for b in builds if b.status in ("built", "installed"))
    if made:
        look.add("dkms.nvidia.kernels", list(made), TREE)
    if not builds:
        return
    if look.host.files_only:
        look.gap("dkms.nvidia.status", "which kernel runs is not known: only files are at hand")
        return
    running = look.host.read("/proc/sys/kernel/osrelease").strip()
    order = ("installed", "built", "failed", "added")
    here = [b for b in builds if b.kernel in ("", running)]
    best = min(here, key=lambda build: order.index(build.status), default=None)
    if best is not None:
        look.add("dkms.nvidia.status", best.status, best.source)


def nvidia_builds(host: Host) -> list[Build]:
    """Everything that DKMS's tree says of the nvidia module. Raises PermissionError."""
    found = []
    for module in host.listdir(TREE):
        if not _MODULE.match(module):
            continue
        top = f"{TREE}/{module}"
        names = host.listdir(top)
        installed = {name for name in names if name.startswith("kernel-")}
        for version in names:
            folder = f"{top}/{version}"
            if version in installed or not host.isdir(folder):
                continue
            if host.readlink(f"{folder}/source") or host.exists(f"{folder}/source"):
                found.append(Build("", "added", f"{folder}/source"))
            found += _failed(host, folder)
            for kernel in host.listdir(folder):
                for arch in host.listdir(f"{folder}/{kernel}") if kernel != "build" else []:
                    made = f"{folder}/{kernel}/{arch}/module"
                    if any(".ko" in name for name in host.listdir(made)):
                        link = f"{top}/kernel-{kernel}-{arch}"
                        is_installed = (host.readlink(link) or "").split("/")[:1] == [version]
                        found.append(
                            Build(kernel, "installed", link)
                            if is_installed
                            else Build(kernel, "built", made)
                        )
    return found


def _failed(host: Host, folder: str) -> list[Build]:
    """The last build of this version, where it left its folder behind with an error in the log."""
    path = f"{folder}/build/make.log"
    if not host.exists(path):
        return []
    log = host.read_bytes(path, _LOG_LIMIT_BYTES)
    head = _LOG_HEAD.search(log[:4096])
    if head is None or not _FAILED.search(log):
        return []
    return [Build(head[2].decode("utf-8", "replace"), "failed", path)]
