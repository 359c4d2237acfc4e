"""The fabric manager, and which services of the GPU stack run, by the names of processes."""

from __future__ import annotations

import re

from envaudit.host import Host
from envaudit.probes import Look, part

SERVICES = {
    "nvidia-fabricmanager": "nv-fabricmanager",
    "nvidia-persistenced": "nvidia-persistenced",
    "nvidia-powerd": "nvidia-powerd",
    "nvidia-imex": "nvidia-imex",
    "nvidia-dcgm": "nv-hostengine",
    "nvidia-mps": "nvidia-cuda-mps-control",
    "nvidia-pstated": "nvidia-pstated",
    "docker": "dockerd",
    "containerd": "containerd",
    "unattended-upgrades": "unattended-upgrade-shutdown",
}
"""Service to the program that it runs."""

_COMM_LENGTH = 15
"""What the kernel keeps of a program's name."""
_PACKAGE = re.compile(r"pkg\.(nvidia-fabric-?manager(?:-\d+)?)\.version\Z")
_PROGRAMS = ("/usr/bin/nv-fabricmanager", "/usr/local/bin/nv-fabricmanager")


def look(look: Look) -> None:
    """Tell the fabric manager's version and what runs."""
    part(look, "fabricmanager.version", _version)
    running = ("fabricmanager.active", "driver.persistenced.active", "service.*")
    part(look, running, lambda look: _running(look, running))


def _version(look: Look) -> None:
    for name, fact in sorted(look.facts.items()):
        found = _PACKAGE.match(name)
        if found:
            # 535.183.01-1 and 550.54.14-0ubuntu0.22.04.1 are packages of 535.183.01 and 550.54.14.
            version = re.match(r"(?:\d+:)?(\d+(?:\.\d+)*)", str(fact.value))
            if version:
                look.add(
                    "fabricmanager.version", version[1], f"{fact.source}: {found[1]} {fact.value}"
                )
                return
    program = next((path for path in _PROGRAMS if look.host.exists(path)), None)
    if program is not None:
        look.gap("fabricmanager.version", f"{program} belongs to no package that names its version")


def _running(look: Look, names: tuple[str, ...]) -> None:
    if look.host.files_only:
        for name in names:
            look.gap(name, "only files of this machine are at hand")
        return
    seen = running_programs(look.host)
    if not seen:
        for name in names:
            look.gap(name, "no processes to be seen in /proc")
        return
    # Kernel threads are seen from where every process is: not in a container, not with hidepid.
    everything = "kthreadd" in seen
    hidden = "processes of the machine are hidden from here (container, or /proc with hidepid)"

    def tell(name: str, program: str) -> None:
        if program[:_COMM_LENGTH] in seen:
            look.add(name, True, f"/proc/*/comm: {program[:_COMM_LENGTH]}")
        elif everything:
            look.add(name, False, f"/proc/*/comm: no {program[:_COMM_LENGTH]}")
        else:
            look.gap(name, hidden)

    tell("fabricmanager.active", SERVICES["nvidia-fabricmanager"])
    tell("driver.persistenced.active", SERVICES["nvidia-persistenced"])
    for service, program in SERVICES.items():
        tell(f"service.{service}.active", program)


def running_programs(host: Host) -> frozenset[str]:
    """Names of the programs that run, as /proc/*/comm cuts them to 15 characters."""
    found = set()
    for entry in host.listdir("/proc"):
        if entry.isdigit():
            # A process may end between listing and reading.
            found.add(host.read_or(f"/proc/{entry}/comm").rstrip("\n"))
    return frozenset(found)
