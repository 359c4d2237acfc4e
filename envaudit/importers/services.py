"""What systemd, Docker and NVIDIA's container tools say of services and of themselves.

\u25cf nvidia-fabricmanager.service - NVIDIA fabric manager service     systemctl status
     Active: failed (Result: exit-code) since Mon 2024-05-06 10:01:02 UTC; 3min ago
$ systemctl is-active nvidia-persistenced
inactive
Fabric Manager version is : 535.161.08          nv-fabricmanager --version
NVIDIA Container Toolkit CLI version 1.14.3     nvidia-ctk --version
 Runtimes: io.containerd.runc.v2 nvidia runc    docker info
NVRM version:   535.54.03                       nvidia-container-cli info
"""

from __future__ import annotations

import re

from envaudit.addresses import pci_address
from envaudit.importers import Draft, Imported, Section
from envaudit.importers.reading import is_driver, numbered
from envaudit.model import GPUS_LIMIT, Value
from envaudit.patterns import regex

_HINTS = (
    ".service",
    "abric Manager",
    "abric manager",
    "Container Toolkit",
    "Container Runtime",
    "cli-version",
    "Runtimes:",
    "Docker version",
    "Device Index:",
    "NVRM version:",
)


def recognises(section: Section) -> bool:
    """Whether the command or a line may be of one of these tools."""
    return "systemctl" in section.command or any(hint in section.text for hint in _HINTS)


def parse(section: Section) -> Imported:
    """Facts of services, of the fabric manager, of Docker and the container toolkit."""
    draft = Draft()
    lines = list(numbered(section.text))
    _is_active(draft, section, lines)
    _status(draft, lines)
    _fabric_manager(draft, lines)
    _container_tools(draft, lines)
    _container_cli(draft, lines)
    _docker(draft, lines)
    return draft.done()


_Lines = list[tuple[int, str]]
_SERVICES = frozenset(
    {
        "nvidia-fabricmanager",
        "nvidia-persistenced",
        "nvidia-powerd",
        "nvidia-imex",
        "nvidia-dcgm",
        "nvidia-mps",
        "docker",
        "containerd",
        "unattended-upgrades",
    }
)


# -- services -----------------------------------------------------------------------------------

_ASKED = regex(
    r"(?:sudo[ \t]+)?systemctl[ \t]+(?:--[\w\-]{1,20}[ \t]+){0,3}is-active[ \t]+"
    r"(?P<unit>[\w\-]{3,40})(?:\.service)?[ \t]*\Z"
)
_STATES = {"active": True, "inactive": False, "failed": False, "activating": False}
_UNIT = regex(r"[ \t]*(?:[^\w\s]{1,4}[ \t])?(?P<unit>[\w\-]{3,40})\.service(?: - |[ \t]*\Z)")
_ACTIVE = regex(r"[ \t]*Active: (?P<state>active|inactive|failed|activating)\b(?P<how>[^\n]{0,60})")
_MISSING = regex(
    r"Unit (?P<unit>[\w\-]{3,40})\.service (?:could not be found|not found|is not loaded)"
    r"|Failed to (?:start|restart|stop|enable) (?P<other>[\w\-]{3,40})\.service: "
    r"Unit [^\n]{0,60}not found"
)
_LISTED = regex(
    r"[ \t]*(?:[^\w\s][ \t])?(?P<unit>[\w\-]{3,40})\.service[ \t]+(?:loaded|not-found)"
    r"[ \t]+(?P<state>active|inactive|failed|activating)[ \t]"
)


def _tell_service(draft: Draft, unit: str, active: bool, source: str, line: int) -> None:
    if unit not in _SERVICES:
        return
    draft.add(f"service.{unit}.active", active, source, line)
    if unit == "nvidia-fabricmanager":
        draft.add("fabricmanager.active", active, source, line)
    elif unit == "nvidia-persistenced":
        draft.add("driver.persistenced.active", active, source, line)


def _is_active(draft: Draft, section: Section, lines: _Lines) -> None:
    asked = _ASKED.match(section.command)
    if asked is None:
        return
    for number, line in lines[:1]:
        state = _STATES.get(line.strip())
        if state is not None:
            _tell_service(draft, asked["unit"], state, "systemctl is-active", number)


def _status(draft: Draft, lines: _Lines) -> None:
    unit = ""
    for number, line in lines:
        head, active, listed = _UNIT.match(line), _ACTIVE.match(line), _LISTED.match(line)
        missing = _MISSING.search(line)
        if listed is not None:
            state = _STATES[listed["state"]]
            _tell_service(draft, listed["unit"], state, "systemctl list-units", number)
        elif missing is not None:
            gone = missing["unit"] or missing["other"]
            _tell_service(draft, gone, False, "systemctl: no such unit", number)
            if gone == "nvidia-fabricmanager":
                draft.absent("fabricmanager.version", number)
        elif head is not None:
            unit = head["unit"]
            if unit in _SERVICES:
                draft.read(number)
        elif active is not None and unit:
            running = _STATES[active["state"]]
            _tell_service(draft, unit, running, "systemctl status", number)
        elif unit in _SERVICES and line.strip().startswith(("Loaded:", "Main PID:", "Tasks:")):
            draft.read(number)


# -- the fabric manager -------------------------------------------------------------------------

_DRIVER = r"[1-9][0-9]{2}\.[0-9]{1,4}(?:\.[0-9]{1,3})?"
_FM_VERSION = regex(
    rf"Fabric Manager version(?: is)? ?:? ?(?P<version>{_DRIVER})(?![0-9.])", re.IGNORECASE
)
_FM_MISMATCH = regex(
    rf"fabric manager NVIDIA GPU driver interface version (?P<own>{_DRIVER}) don't match with "
    rf"driver version (?P<driver>{_DRIVER})",
    re.IGNORECASE,
)


def _fabric_manager(draft: Draft, lines: _Lines) -> None:
    """Its version, and what its log says of the driver's; the last word in a log counts."""
    for number, line in reversed(lines):
        mismatch = _FM_MISMATCH.search(line)
        version = _FM_VERSION.search(line)
        if mismatch is not None:
            source = "nv-fabricmanager: driver interface version"
            draft.add("fabricmanager.version", mismatch["own"], source, number)
            draft.add("driver.version", mismatch["driver"].rstrip("."), source, number)
        elif version is not None:
            draft.add("fabricmanager.version", version["version"], "nv-fabricmanager", number)


# -- container tools ----------------------------------------------------------------------------

_RELEASE = r"[0-9]{1,2}\.[0-9]{1,3}(?:\.[0-9]{1,3})?(?:[~\-]?rc\.?[0-9]{1,2})?"
_TOOLKIT = regex(
    rf"NVIDIA Container (?:Toolkit(?: CLI)?|Runtime(?: Hook)?) version (?P<version>{_RELEASE})"
)
_CLI = regex(rf"(?:cli-version|version): (?P<version>{_RELEASE})\Z")


def _container_tools(draft: Draft, lines: _Lines) -> None:
    cli = any(line.startswith(("lib-version: ", "build revision: ")) for _, line in lines)
    for number, line in lines:
        match, own = _TOOLKIT.search(line), _CLI.match(line.strip()) if cli else None
        if match is not None:
            source = "version of the NVIDIA Container Toolkit"
            draft.add("container.toolkit.version", match["version"], source, number)
        elif own is not None:
            draft.add("container.cli.version", own["version"], "nvidia-container-cli -V", number)


_CLI_FIELD = regex(
    r"(?P<key>NVRM version|CUDA version|Device Index|Model|GPU UUID|Bus Location|Architecture):"
    r"[ \t]{1,20}(?P<value>\S.{0,100})"
)


def _container_cli(draft: Draft, lines: _Lines) -> None:
    """`nvidia-container-cli info`, which begins with the driver's two versions."""
    if not any("NVRM version:" in line and "Kernel Module" not in line for _, line in lines):
        return
    gpu, began = "", False
    for number, line in lines:
        match = _CLI_FIELD.match(line.strip())
        if match is None:
            continue
        key, value = match["key"], match["value"].strip()
        source = f"nvidia-container-cli info: {key}"
        if key == "NVRM version" and is_driver(value):
            began = True
            draft.add("driver.version", value, source, number)
        elif not began:
            continue
        elif key == "CUDA version" and re.fullmatch(r"[0-9]{1,2}\.[0-9]{1,2}", value):
            draft.add("driver.cuda.version", value, source, number)
        elif key == "Device Index" and value.isdecimal() and int(value[:5]) < GPUS_LIMIT:
            gpu = f"gpu.{int(value[:5])}"
            draft.read(number)
        elif gpu:
            facts: dict[str, Value | None] = {
                "Model": value,
                "GPU UUID": value,
                "Bus Location": pci_address(value),
                "Architecture": value if re.fullmatch(r"[0-9]{1,2}\.[0-9]", value) else None,
            }
            name = {
                "Model": "name",
                "GPU UUID": "uuid",
                "Bus Location": "pci.address",
                "Architecture": "compute_capability",
            }.get(key)
            if name is not None:
                draft.add(f"{gpu}.{name}", facts[key], source, number)


# -- Docker -------------------------------------------------------------------------------------

_DOCKER = regex(rf"Docker version (?P<version>{_RELEASE})")
_INFO = regex(
    r"[ \t]{0,8}(?P<key>Server Version|Runtimes|Default Runtime|Cgroup Version|Kernel Version|"
    r"Operating System|rootless): ?(?P<value>.{0,200})"
)


def _docker(draft: Draft, lines: _Lines) -> None:
    info = any(re.match(r"[ \t]{0,8}(?:Runtimes|Storage Driver): ", line) for _, line in lines)
    for number, line in lines:
        short = _DOCKER.search(line)
        if short is not None:
            draft.add("docker.version", short["version"], "docker --version", number)
        match = _INFO.match(line) if info else None
        if match is None:
            continue
        key, value = match["key"], match["value"].strip()
        source = f"docker info: {key}"
        if key == "Server Version" and re.match(_RELEASE, value):
            draft.add("docker.version", value[:40], source, number)
        elif key == "Runtimes" and value:
            names: list[Value] = [*dict.fromkeys(re.split(r"[ ,]+", value)[:20])]
            draft.add("docker.runtimes", names, source, number)
        elif key == "Default Runtime":
            draft.add("docker.default_runtime", value[:40], source, number)
        elif key == "Cgroup Version" and value in ("1", "2"):
            draft.add("cgroup.version", int(value), source, number)
        elif key == "Operating System" and value.startswith("Docker Desktop"):
            draft.add("docker.desktop", True, source, number)
        elif key in ("Kernel Version", "Operating System"):
            draft.read(number)
    if info:
        rootless = next((n for n, line in lines if line.strip() == "rootless"), None)
        if rootless is not None:
            draft.add("docker.rootless", True, "docker info: Security Options", rootless)
