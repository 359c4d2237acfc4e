"""The container around us, if there is one, and the limits of our control group."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator

from envaudit.host import Host
from envaudit.probes import Look, part

RUNNING = (
    "container.runtime",
    "container.image",
    "container.visible_devices",
    "container.driver_capabilities",
)
"""What only a running container can tell."""


def look(look: Look) -> None:
    """Tell what container runtime put us here, what it gave us, and what the cgroup allows."""
    part(look, "container.cdi", _cdi)
    if look.host.files_only:
        part(look, "container.toolkit.version", _toolkit)
        for name in (*RUNNING, "cgroup.*"):
            look.gap(name, "an image does not run")
        return
    part(look, ("container.runtime", "container.image", "container.toolkit.version"), _container)
    _given(look)
    part(look, "cgroup.*", _cgroup)


# -- the container ---------------------------------------------------------------------------


def _container(look: Look) -> None:
    runtime, source = find_runtime(look.host)
    if runtime is None:
        if not (look.host.exists("/proc/self/cgroup") or look.host.exists("/proc/self/mountinfo")):
            raise FileNotFoundError(2, "", "/proc/self/cgroup")
        _toolkit(look)
        return
    look.add("container.runtime", runtime, source)
    look.gap("container.toolkit.version", "inside a container; the toolkit is the host's")
    for name in ("APPTAINER_CONTAINER", "SINGULARITY_CONTAINER"):
        if runtime in ("apptainer", "singularity") and look.host.env.get(name):
            look.add("container.image", look.host.env[name], f"environment {name}")
            return
    image = parse_containerenv(look.host.read_or("/run/.containerenv")).get("image")
    if image:
        look.add("container.image", image, "/run/.containerenv")
    else:
        look.gap("container.image", f"{runtime} does not tell a container its image")


def parse_containerenv(text: str) -> dict[str, str]:
    """podman's note to its container: lines such as `image="docker.io/nvidia/cuda:13.0"`."""
    return dict(re.findall(r'^(\w+)="?([^"\n]*)"?$', text, re.MULTILINE))


_CGROUP_HINTS = (
    ("kubepods", "kubernetes"),
    ("/docker", "docker"),
    ("libpod", "podman"),
    ("cri-containerd", "containerd"),
    ("/nerdctl", "containerd"),
    ("/lxc", "lxc"),
)
_ROOT_HINTS = (
    ("/containers/storage/", "podman"),
    ("/docker/", "docker"),
    ("containerd", "containerd"),
    ("/enroot/", "enroot"),
    ("/lxc/", "lxc"),
)


def find_runtime(host: Host) -> tuple[str | None, str]:
    """What runs the container we are in and where that is seen; None outside of any."""
    for name, runtime in (
        ("APPTAINER_CONTAINER", "apptainer"),
        ("SINGULARITY_CONTAINER", "singularity"),
        ("KUBERNETES_SERVICE_HOST", "kubernetes"),
    ):
        if host.env.get(name):
            return runtime, f"environment {name}"
    for path, runtime in (
        ("/.singularity.d", "apptainer"),
        ("/var/run/secrets/kubernetes.io", "kubernetes"),
        ("/run/.containerenv", "podman"),
    ):
        if host.exists(path):
            return runtime, path
    own = host.read_or("/proc/self/cgroup") + host.read_or("/proc/1/cgroup")
    docker = host.exists("/.dockerenv")
    for hint, runtime in _CGROUP_HINTS:
        if hint in own and (runtime != "docker" or docker):
            return runtime, "/proc/self/cgroup"
    if docker:
        return "docker", "/.dockerenv"
    told = host.read_or("/run/systemd/container").strip() or host.env.get("container", "")
    if re.fullmatch(r"[a-z][a-z0-9-]{0,30}", told) and told != "wsl":
        return told, "/run/systemd/container"
    return root_hint(host.read_or("/proc/self/mountinfo")), "/proc/self/mountinfo"


def root_hint(mountinfo: str) -> str | None:
    """What the mount of our own root says of a runtime; mounts below it may be other containers'.

    512 480 0:60 / / rw - overlay overlay rw,lowerdir=/var/lib/docker/overlay2/l/...
    """
    for line in mountinfo.splitlines():
        words = line.split(" ")
        if len(words) > 6 and words[4] == "/":
            for hint, runtime in _ROOT_HINTS:
                if hint in line:
                    return runtime
    return None


def _given(look: Look) -> None:
    """What was asked of the NVIDIA runtime for this container."""
    host = look.host
    if host.recorded is not None and "env" not in host.recorded:
        for name in ("container.visible_devices", "container.driver_capabilities"):
            look.gap(name, "no environment is known of this machine")
        return
    for fact, name in (
        ("container.visible_devices", "NVIDIA_VISIBLE_DEVICES"),
        ("container.driver_capabilities", "NVIDIA_DRIVER_CAPABILITIES"),
    ):
        look.add(fact, host.env.get(name, "")[:4096], f"environment {name}")


_SPEC_FOLDERS = ("/etc/cdi", "/var/run/cdi")


def _cdi(look: Look) -> None:
    found = [
        f"{folder}/{name}"
        for folder in _SPEC_FOLDERS
        for name in look.host.listdir(folder)
        if name.endswith((".yaml", ".json"))
    ]
    if found:
        look.add("container.cdi", [*found], ", ".join(_SPEC_FOLDERS))


_LIBRARY_FOLDERS = (
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
)
_TOOLKIT_FILES = (
    "/usr/bin/nvidia-ctk",
    "/usr/bin/nvidia-container-runtime",
    "/etc/nvidia-container-runtime/config.toml",
)


def _toolkit(look: Look) -> None:
    """The library carries the toolkit's version in its name (the same since 1.6)."""
    for folder in _LIBRARY_FOLDERS:
        link = f"{folder}/libnvidia-container.so.1"
        to = look.host.readlink(link) or ""
        found = re.search(r"\.so\.(\d+\.\d+\.\d+)$", to)
        if found:
            look.add("container.toolkit.version", found.group(1), f"link {link}")
            return
    here = next((path for path in _TOOLKIT_FILES if look.host.exists(path)), None)
    if here:
        look.gap("container.toolkit.version", f"{here} is there; no file tells its version")


# -- the control group -----------------------------------------------------------------------

_CGROUPS = "/sys/fs/cgroup"


def _cgroup(look: Look) -> None:
    host = look.host
    unified = host.exists(f"{_CGROUPS}/cgroup.controllers")
    if not unified and not host.listdir(_CGROUPS):
        raise FileNotFoundError(2, "", _CGROUPS)
    look.add("cgroup.version", 2 if unified else 1, f"{_CGROUPS}{'/cgroup.controllers' * unified}")
    paths = parse_cgroup_paths(host.read("/proc/self/cgroup"))
    part(look, "cgroup.cpu.*", lambda look: _cpu(look, paths, unified))
    part(look, "cgroup.memory.max", lambda look: _memory(look, paths, unified))


def parse_cgroup_paths(text: str) -> dict[str, tuple[str, str]]:
    """Hierarchy and path by controller, "" for the unified one, of /proc/self/cgroup.

    v2: `0::/user.slice/session-3.scope`; v1: `4:cpu,cpuacct:/docker/0123...`.
    """
    found = {}
    for line in text.splitlines():
        words = line.split(":", 2)
        if len(words) == 3:
            for controller in words[1].split(","):
                found[controller] = (words[1], words[2])
    return found


def upwards(path: str) -> Iterator[str]:
    """A cgroup path and everything above it: /a/b, /a, "". One outside our view counts as root."""
    here = posixpath.normpath("/" + path.lstrip("/"))
    while here != "/":
        yield here
        here = posixpath.dirname(here)
    yield ""


def _levels(
    look: Look, paths: dict[str, tuple[str, str]], unified: bool, controller: str
) -> Iterator[str]:
    """Folders of our cgroup and of those above it, nearest first, as far as they can be seen."""
    if unified:
        base, path = _CGROUPS, paths.get("", ("", "/"))[1]
    elif controller in paths:
        hierarchy, path = paths[controller]
        base = f"{_CGROUPS}/{hierarchy}"
        if not look.host.isdir(base):
            base = f"{_CGROUPS}/{controller}"
        if not look.host.isdir(base):
            raise FileNotFoundError(2, "", base)
    else:
        return
    for level in upwards(path):
        yield base + level


def _cpu(look: Look, paths: dict[str, tuple[str, str]], unified: bool) -> None:
    host = look.host
    tightest: tuple[float, str] | None = None
    for level in _levels(look, paths, unified, "cpu"):
        if unified:
            quota = parse_cpu_max(host.read_or(f"{level}/cpu.max"))
        else:
            period = host.read_or(f"{level}/cpu.cfs_period_us").strip()
            quota = parse_cpu_max(f"{host.read_or(f'{level}/cpu.cfs_quota_us').strip()} {period}")
        if quota is not None and (tightest is None or quota < tightest[0]):
            tightest = (quota, level)
    if tightest is None:
        return
    quota, level = tightest
    look.add(
        "cgroup.cpu.quota_cores",
        quota,
        f"{level}/{'cpu.max' if unified else 'cpu.cfs_quota_us'}",
    )
    ratio = parse_throttling(host.read_or(f"{level}/cpu.stat"))
    look.add("cgroup.cpu.throttled_ratio", ratio, f"{level}/cpu.stat nr_throttled/nr_periods")


def parse_cpu_max(text: str) -> float | None:
    """Cores in `quota period` of cpu.max (`200000 100000` -> 2.0); None for `max` and -1."""
    found = re.match(r"(\d{1,18}) (\d{1,18})\s*$", text, re.ASCII)
    if found is None or int(found.group(2)) == 0:
        return None
    return round(int(found.group(1)) / int(found.group(2)), 4)


def parse_throttling(text: str) -> float | None:
    """Share of periods in which the quota ran out, of `nr_periods 100`, `nr_throttled 7`."""
    counts = dict(re.findall(r"^(nr_\w+) (\d{1,18})$", text, re.MULTILINE | re.ASCII))
    periods = int(counts.get("nr_periods", 0))
    return round(int(counts.get("nr_throttled", 0)) / periods, 4) if periods else None


_UNLIMITED = 1 << 60
"""Version 1 writes no limit as the largest number of whole pages."""


def _memory(look: Look, paths: dict[str, tuple[str, str]], unified: bool) -> None:
    file = "memory.max" if unified else "memory.limit_in_bytes"
    limits = [
        (int(text), level)
        for level in _levels(look, paths, unified, "memory")
        if (text := look.host.read_or(f"{level}/{file}").strip()).isdecimal() and len(text) < 20
    ]
    if limits and min(limits)[0] < _UNLIMITED:
        limit, level = min(limits)
        look.add("cgroup.memory.max", limit, f"{level}/{file}")
