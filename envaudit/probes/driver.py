"""The NVIDIA driver as its files tell it: module loaded and on disk, libraries, nodes, settings.

Nothing of the driver is loaded or asked: what NVML says is the nvml probe's, and wins.
"""

from __future__ import annotations

import posixpath
import re
import time
from collections.abc import Iterator
from fnmatch import fnmatchcase

from envaudit import modinfo
from envaudit.driverlib import VERSION, Library, Loader
from envaudit.host import CannotRun, Host
from envaudit.kernel_words import parse_proc_version
from envaudit.probes import Look, part

PARAMETERS = (
    "EnableGpuFirmware",
    "OpenRmEnableUnsupportedGpus",
    "RmProfilingAdminOnly",
    "RestrictProfilingToAdminUsers",
    "PreserveVideoMemoryAllocations",
    "DynamicPowerManagement",
    "EnableStreamMemOPs",
    "EnableResizableBar",
    "EnablePCIERelaxedOrderingMode",
    "EnablePCIeGen3",
    "EnableMSI",
    "UsePageAttributeTable",
    "NvLinkDisable",
    "DmaRemapPeerMmio",
    "GrdmaPciTopoCheckOverride",
    "CoherentGPUMemoryMode",
    "ImexChannelCount",
    "EnableUserNUMAManagement",
    "IgnoreMMIOCheck",
    "RegistryDwords",
    "RegistryDwordsPerDevice",
    "ExcludedGpus",
)
"""Parameters of nvidia.ko that are told, without the prefix NVreg_ of the modprobe option."""

OTHER_PARAMETERS = (
    ("nvidia_drm.modeset", "/sys/module/nvidia_drm/parameters/modeset"),
    ("nvidia_drm.fbdev", "/sys/module/nvidia_drm/parameters/fbdev"),
    ("uvm_disable_hmm", "/sys/module/nvidia_uvm/parameters/uvm_disable_hmm"),
)
"""Parameters of its sister modules, and where they can be read."""

BLACKLISTABLE = (
    "nouveau",
    "nova_core",
    "nova_drm",
    "nvidia",
    "nvidia_drm",
    "nvidia_modeset",
    "nvidia_uvm",
    "nvidia_peermem",
)
"""Modules of which it is told that modprobe is kept from loading them."""

PROC_VERSION = "/proc/driver/nvidia/version"
_PROC_PARAMS = "/proc/driver/nvidia/params"
_MODULE_TOPS = (
    "/lib/modules",
    "/usr/lib/modules",
    "/run/booted-system/kernel-modules/lib/modules",
)
_MODINFO = ("modinfo", "/usr/sbin/modinfo", "/sbin/modinfo")

_VERSION = re.compile(VERSION)
_GSP_PLACES = ("/lib/firmware/nvidia", "/usr/lib/firmware/nvidia")
_MODPROBE_FOLDERS = (
    "/etc/modprobe.d",
    "/run/modprobe.d",
    "/usr/local/lib/modprobe.d",
    "/usr/lib/modprobe.d",
    "/lib/modprobe.d",
)
_NODES = re.compile(r"nvidia.*|dxg|nvmap|nvhost-.*|nvgpu")
_INSTALLER_LOG = "/var/log/nvidia-installer.log"
_UNINSTALLER = "/usr/bin/nvidia-uninstall"


def look(look: Look) -> None:
    """Tell what the files say, the module file last: decompressing it may take long."""
    part(look, "driver.module.loaded", _loaded)
    part(look, ("driver.module.version", "driver.module.flavor", "driver.version"), _running)
    part(look, "driver.param.*", _parameters)
    part(
        look,
        ("driver.libcuda.*", "driver.libnvml.*", "driver.library.*", "driver.compat.*")
        + ("driver.install_method",),
        _libraries,
    )
    part(look, "driver.device_nodes", _device_nodes)
    part(look, "driver.gsp.on_disk", _gsp)
    part(look, "driver.blacklisted", _blacklisted)
    part(look, "driver.module.kernels", _kernels)
    part(
        look,
        ("driver.module.on_disk", "driver.module.on_disk_flavor", "driver.module.signer"),
        _on_disk,
    )


# -- the loaded module -----------------------------------------------------------------------


def _loaded(look: Look) -> None:
    if look.host.files_only:
        look.gap("driver.module.loaded", "nothing is loaded: only files are at hand")
        return
    source = "/proc/modules"
    try:
        loaded = re.search(r"^nvidia ", look.host.read(source), re.MULTILINE) is not None
    except FileNotFoundError:  # a kernel without loadable modules has no such file
        if not look.host.isdir("/sys/module"):
            raise
        source = "/sys/module"
        loaded = look.host.isdir("/sys/module/nvidia")
    look.add("driver.module.loaded", loaded, source)


def _running(look: Look) -> None:
    names = ("driver.module.version", "driver.module.flavor", "driver.version")
    host = look.host
    if host.files_only:
        for name in names:
            look.gap(name, "nothing is loaded: only files are at hand")
        return
    text = host.read_or(PROC_VERSION)
    version, flavor = parse_proc_version(text)
    source = PROC_VERSION
    if version is None:
        source = "/sys/module/nvidia/version"
        version = host.read_or(source).strip() or None
    look.add("driver.module.version", version, source)
    look.add("driver.version", version, source)
    look.add("driver.module.flavor", flavor, PROC_VERSION)
    if version is not None and flavor is None:
        look.gap("driver.module.flavor", f"{PROC_VERSION} does not tell: {text[:100]!r}")
    elif version is None and not host.exists("/proc/modules") and not host.isdir("/sys/module"):
        for name in names:
            look.gap(name, "neither /proc/modules nor /sys/module to look at")
    elif version is None and host.exists("/dev/dxg"):
        look.gap("driver.version", "under WSL the driver is on Windows; NVML alone tells it")
    elif version is None and host.exists("/etc/nv_tegra_release"):
        look.gap("driver.version", "on a Jetson the driver is part of L4T; NVML alone tells it")


def _parameters(look: Look) -> None:
    host = look.host
    if host.exists(_PROC_PARAMS):
        told = parse_params(host.read(_PROC_PARAMS))
        for name in PARAMETERS:
            if name in told:
                look.add(f"driver.param.NVreg_{name}", told[name], _PROC_PARAMS)
    for name, path in OTHER_PARAMETERS:
        if host.exists(path):
            try:
                look.add(f"driver.param.{name}", _parameter(host.read(path)), path)
            except PermissionError:
                look.gap(f"driver.param.{name}", f"{path}: needs root")
    if host.files_only:
        look.gap("driver.param.*", "nothing is loaded: only files are at hand")


def parse_params(text: str) -> dict[str, int | str]:
    """The parameters in /proc/driver/nvidia/params: `EnableMSI: 1`, `RegistryDwords: ""`."""
    found: dict[str, int | str] = {}
    for line in text.splitlines():
        name, colon, value = line.partition(":")
        if colon and re.fullmatch(r"\w+", name):
            found.setdefault(name, _parameter(value))
    return found


def _parameter(text: str) -> int | str:
    value = text.strip()
    if len(value) > 1 and value[0] == value[-1] == '"':
        value = value[1:-1]
    return int(value) if re.fullmatch(r"-?[0-9]{1,18}", value) else value


# -- the module on disk ----------------------------------------------------------------------


def _kernels(look: Look) -> None:
    found: dict[str, None] = {}
    looked = False
    for top in {look.host.real(top): top for top in reversed(_MODULE_TOPS)}.values():
        for release in look.host.listdir(top):
            if look.host.isdir(f"{top}/{release}"):
                looked = True
                if next(modinfo.module_files(look.host, f"{top}/{release}"), None) is not None:
                    found[release] = None
    if not looked:
        look.gap("driver.module.kernels", "no kernel has its modules here (a container?)")
    elif found:
        look.add("driver.module.kernels", [*found], "/lib/modules/*/modules.dep")


def _on_disk(look: Look) -> None:
    names = ("driver.module.on_disk", "driver.module.on_disk_flavor", "driver.module.signer")

    def gap(reason: str) -> None:
        for name in names:
            look.gap(name, reason)

    host = look.host
    if host.files_only:
        gap("which kernel runs is not known: only files are at hand")
        return
    release = host.read("/proc/sys/kernel/osrelease").strip()
    folders = [f"{top}/{release}" for top in _MODULE_TOPS if host.isdir(f"{top}/{release}")]
    if not folders:
        gap(f"no modules of the running kernel here: no /lib/modules/{release} (a container?)")
        return
    path = next((path for folder in folders for path in modinfo.module_files(host, folder)), None)
    if path is None:
        return
    info, source = read_module(look, path)
    if info is None:
        gap(source)
        return
    for name, value in zip(
        names, (info.version, modinfo.flavor(info.license), info.signer), strict=True
    ):
        if value is None:
            look.gap(name, f"{path} does not tell")
        look.add(name, value, source)


def read_module(look: Look, path: str) -> tuple[modinfo.ModuleInfo | None, str]:
    """What a module file says, and the source; or None and the reason."""
    host = look.host

    def read(offset: int, length: int) -> bytes:
        return host.read_bytes(path, length, offset)

    suffix = posixpath.splitext(path)[1]
    if suffix == ".ko":
        info = modinfo.from_file(read, host.stat(path).st_size)
        return info, path if info else f"{path}: no module file"
    until = time.monotonic() + look.seconds / 2
    try:
        info = modinfo.from_stream(_until(modinfo.decompressed(read, suffix), until))
    except TimeoutError:
        return None, f"{path}: decompressing took too long"
    except ValueError as problem:
        return None, f"{path}: {problem}"
    except ImportError:
        return _ask_modinfo(look, path)
    return info, path if info else f"{path}: no module file"


def _until(chunks: Iterator[bytes], until: float) -> Iterator[bytes]:
    for chunk in chunks:
        if time.monotonic() > until:
            raise TimeoutError
        yield chunk


def _ask_modinfo(look: Look, path: str) -> tuple[modinfo.ModuleInfo | None, str]:
    """Let kmod read a module that this Python cannot decompress."""
    command = next(filter(None, map(look.host.which, _MODINFO)), None)
    reason = f"{path}: no decompressor for {posixpath.splitext(path)[1]} and no modinfo command"
    if command is None:
        return None, reason
    try:
        done = look.host.run([command, path], seconds=look.seconds / 2)
    except CannotRun:
        return None, reason
    info = modinfo.from_text(done.stdout) if done.status == "ok" and done.code == 0 else None
    if info is None:
        return None, f"modinfo {path}: {done.status}, exit status {done.code}: {done.stderr[:200]}"
    return info, f"modinfo {path}"


# -- user-mode libraries ---------------------------------------------------------------------


def _libraries(look: Look) -> None:
    host = look.host
    loader = Loader(host)
    cuda, nvml = (list(loader.candidates(f"lib{name}.so.1")) for name in ("cuda", "nvidia-ml"))
    for name, candidates in (("libcuda", cuda), ("libnvml", nvml)):
        if candidates:
            first = candidates[0]
            look.add(f"driver.{name}.path", first.path, first.via)
            look.add(f"driver.{name}.version", first.version, first.path)
            if first.version is None:
                look.gap(f"driver.{name}.version", f"{first.path} has no version in its name")
    if cuda:
        look.add("driver.libcuda.stub", cuda[0].is_stub, cuda[0].path)
    compat = next((library for library in cuda if library.is_compat), None)
    if compat is not None:
        look.add("driver.compat.path", compat.path, compat.via)
        look.add("driver.compat.version", compat.version, compat.path)
        if compat.version is None:
            look.gap("driver.compat.version", f"{compat.path} has no version in its name")
    # cuda-compat has a libcuda alone; the driver's own release is that of its other libraries.
    own = [*nvml[:1], *(lib for lib in cuda if not lib.is_compat and not lib.is_stub)]
    version = next((library for library in own if library.version), None)
    if version is not None:
        look.add("driver.library.version", version.version, version.path)
    elif own:
        look.gap("driver.library.version", f"{own[0].path} has no version in its name")
    copies = {library.path: library for library in [*cuda, *loader.usual_places("libcuda.so.1")]}
    if copies:
        look.add(
            "driver.library.copies",
            [" ".join(filter(None, (lib.path, lib.version))) for lib in copies.values()],
            "loader path and usual folders",
        )
    own += [lib for lib in copies.values() if not lib.is_compat and not lib.is_stub]
    part(look, "driver.install_method", lambda look: _install_method(look, own, loader.mounts))


def _install_method(look: Look, own: list[Library], mounts: dict[str, str]) -> None:
    """How the driver came here, by its own library: cuda-compat and stubs are not the driver."""
    host = look.host
    name = "driver.install_method"
    uninstaller = host.exists(_UNINSTALLER)
    if not own:
        if uninstaller:
            look.add(name, "runfile", _runfile_source(host))
        return
    library = own[0]
    if library.path.startswith("/usr/lib/wsl/"):
        look.add(name, "wsl", library.path)
        return
    if library.path.startswith("/nix/") or library.found.startswith("/run/opengl-driver/"):
        look.add(name, "nix", library.path)
        return
    for mounted in (library.path, library.found, "/usr/local/nvidia", "/usr/local/nvidia/lib64"):
        if mounted in mounts and library.path.startswith(mounted):
            look.add(name, "container-mount", f"/proc/self/mountinfo: {mounted}")
            return
    from envaudit.probes.packages import owner

    for path in dict.fromkeys(library.path for library in own):
        found = owner(host, path)
        if found is not None:
            look.add(name, found[0], f"{found[1]}: {posixpath.basename(path)}")
            return
    if uninstaller or host.exists(_INSTALLER_LOG):
        look.add(name, "runfile", _runfile_source(host))
    else:
        look.gap(name, f"{library.path} belongs to no package, and there is no trace of a runfile")


def _runfile_source(host: Host) -> str:
    """Which of the installer's traces there is, with its version where the log has it.

    nvidia-installer log file '/var/log/nvidia-installer.log' ... installer version: 535.129.03
    """
    try:
        head = host.read(_INSTALLER_LOG, 4096)
    except OSError:
        return _UNINSTALLER
    found = re.search(r"^installer version: (\S+)", head, re.MULTILINE)
    return f"{_INSTALLER_LOG}: installer version {found[1]}" if found else _INSTALLER_LOG


# -- nodes, firmware, modprobe ---------------------------------------------------------------


def _device_nodes(look: Look) -> None:
    host = look.host
    if host.files_only or not host.isdir("/dev"):
        look.gap("driver.device_nodes", "device nodes are there only while the machine runs")
        return
    nodes = [f"/dev/{name}" for name in host.listdir("/dev") if _NODES.fullmatch(name)]
    if nodes:
        look.add("driver.device_nodes", [*nodes], "/dev")


def _gsp(look: Look) -> None:
    host = look.host
    versions = {
        version: f"{place}/*/gsp_*.bin"
        for place in _GSP_PLACES
        for version in host.listdir(place)
        if _VERSION.fullmatch(version)
        and any(fnmatchcase(n, "gsp*.bin*") for n in host.listdir(f"{place}/{version}"))
    }
    if versions:
        look.add("driver.gsp.on_disk", [*sorted(versions)], next(iter(versions.values())))


def _blacklisted(look: Look) -> None:
    host = look.host
    files: dict[str, str] = {}
    for folder in _MODPROBE_FOLDERS:  # a file hides one of its name in a later folder
        for name in host.listdir(folder):
            if name.endswith(".conf"):
                files.setdefault(name, f"{folder}/{name}")
    found: dict[str, str] = {}
    for path in files.values():
        for module in parse_modprobe(host.read(path)):
            found.setdefault(module, path)
    for module in parse_cmdline(host.read_or("/proc/cmdline")):
        found.setdefault(module, "/proc/cmdline")
    told = [module for module in BLACKLISTABLE if module in found]
    if told:
        look.add(
            "driver.blacklisted",
            [*told],
            ", ".join(dict.fromkeys(found[module] for module in told)),
        )


def parse_modprobe(text: str) -> list[str]:
    """Modules that a modprobe.d file keeps from loading.

    blacklist nouveau
    install nova_core /bin/false
    alias nouveau off
    """
    found = []
    for line in text.replace("\\\n", " ").splitlines():
        words = line.split()
        if len(words) >= 2 and words[0] == "blacklist":
            found.append(words[1])
        elif len(words) >= 3 and words[0] == "install":
            if posixpath.basename(words[2]) in ("false", "true", ":"):
                found.append(words[1])
        elif words[:1] == ["alias"] and words[2:3] == ["off"]:
            found.append(words[1])
    return [name.replace("-", "_") for name in found]


def parse_cmdline(text: str) -> list[str]:
    """Modules that the kernel command line keeps from loading: modprobe.blacklist=nouveau."""
    found = []
    for word in text.split():
        key, _, value = word.partition("=")
        if key in ("modprobe.blacklist", "module_blacklist"):
            found += [name.replace("-", "_") for name in value.split(",")]
    return found
