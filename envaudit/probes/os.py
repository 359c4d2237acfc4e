"""The distribution, its C library, and what the machine is made of: metal, a VM, WSL."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping

from envaudit.host import Host
from envaudit.probes import Look, part


def look(look: Look) -> None:
    """Read os-release, the C library and the traces of a hypervisor."""
    part(look, ("os.id", "os.version", "os.name"), _distribution)
    part(look, "os.arch", _arch)
    part(look, ("os.libc.name", "os.libc.version"), _libc)
    if look.host.files_only:
        for name in ("os.virtualization", "os.wsl", "wsl.version"):
            look.gap(name, "an image does not run")
        return
    part(look, ("os.wsl", "wsl.version", "os.build", "os.virtualization"), _machine)


# -- the distribution ------------------------------------------------------------------------


def _distribution(look: Look) -> None:
    for path in ("/etc/os-release", "/usr/lib/os-release"):
        text = look.host.read_or(path)
        if not text:
            continue
        values = parse_os_release(text)
        look.add("os.id", values.get("ID", "").lower(), path)
        look.add("os.version", values.get("VERSION_ID"), path)
        look.add("os.name", values.get("PRETTY_NAME") or values.get("NAME"), path)
        build = values.get("BUILD_ID", "")
        if any(char.isdigit() for char in build):  # "rolling" is no build
            look.add("os.build", build, path)
        return
    path = "/etc/redhat-release"  # before os-release: release 6 and older
    if not look.host.exists(path):
        raise FileNotFoundError(2, "", "/etc/os-release")
    ident, version, name = parse_redhat_release(look.host.read(path))
    look.add("os.id", ident, path)
    look.add("os.version", version, path)
    look.add("os.name", name, path)


def parse_os_release(text: str) -> dict[str, str]:
    r"""Values by name of os-release, which is shell without its freedoms.

    PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"
    ID=debian
    """
    found = {}
    for line in text.splitlines():
        name, equals, value = line.strip().partition("=")
        if not equals or name.startswith("#"):
            continue
        value = value.strip()
        if len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'":
            value = value[1:-1]
        found[name.strip()] = re.sub(r"\\(.)", r"\1", value)
    return found


def parse_redhat_release(text: str) -> tuple[str, str, str]:
    """Id, version and name: `CentOS release 6.10 (Final)` -> centos, 6.10, the line itself."""
    line = text.strip().partition("\n")[0][:200]
    found = re.search(r"release (\d+(?:\.\d+)*)", line)
    ident = "rhel" if line.startswith("Red Hat Enterprise") else line.partition(" ")[0].lower()
    return ident, found.group(1) if found else "", line


def _arch(look: Look) -> None:
    if look.host.arch:
        look.add("os.arch", look.host.arch, "uname -m")
        return
    from envaudit import elf  # for images only

    for path in ("/bin/sh", "/usr/bin/env", "/sbin/ldconfig"):
        try:
            arch = elf.arch(look.host.read_bytes(path, elf.HEAD_BYTES))
        except FileNotFoundError:
            continue
        if arch:
            look.add("os.arch", arch, f"ELF header of {path}")
            return
    look.gap("os.arch", "no program to read it from")


# -- the C library ---------------------------------------------------------------------------


def _libc(look: Look) -> None:
    if look.host.live:
        said = _confstr()
        if said.startswith("glibc "):
            source = "getconf GNU_LIBC_VERSION"
            look.add("os.libc.name", "glibc", source)
            look.add("os.libc.version", said.removeprefix("glibc "), source)
            return
    unread = ""
    for path in _libc_files(look.host):
        version = parse_libc_banner(look.host.read_bytes(path))
        if version:
            look.add("os.libc.name", "glibc", path)
            look.add("os.libc.version", version, path)
            return
        unread = unread or path
    musl = next(
        (name for name in look.host.listdir("/lib") if re.match(r"ld-musl-\w+\.so\.1$", name)), None
    )
    if musl and not unread:
        look.add("os.libc.name", "musl", f"/lib/{musl}")
        return
    for name in ("os.libc.name", "os.libc.version"):
        look.gap(name, f"{unread} has no version text" if unread else "no C library found")


def _confstr() -> str:
    try:
        return os.confstr("CS_GNU_LIBC_VERSION") or ""
    except (ValueError, OSError):  # another C library
        return ""


def _libc_files(host: Host) -> Iterator[str]:
    """Where the GNU C library lies in the layouts in use, those that are there."""
    folders = [f"/lib/{host.arch}-linux-gnu"] if host.arch else []
    folders += ["/lib64", "/usr/lib64"]
    for base in ("/lib", "/usr/lib"):
        folders += [f"{base}/{name}" for name in host.listdir(base) if "-linux-gnu" in name]
    folders += ["/usr/lib", "/lib"]
    for folder in dict.fromkeys(folders):
        if host.exists(f"{folder}/libc.so.6"):
            yield f"{folder}/libc.so.6"


def parse_libc_banner(data: bytes) -> str | None:
    """Version in the text that libc.so.6 prints when it is run.

    GNU C Library (Debian GLIBC 2.36-9+deb12u10) stable release version 2.36.
    """
    start = data.find(b"GNU C Library ")
    while start >= 0:
        found = re.match(
            rb"[^\n\0]{0,300}?release version (\d+(?:\.\d+)+)", data[start : start + 400]
        )
        if found:
            return found.group(1).decode()
        start = data.find(b"GNU C Library ", start + 1)
    return None


# -- the machine -----------------------------------------------------------------------------


def _machine(look: Look) -> None:
    host = look.host
    path = "/proc/sys/kernel/osrelease"
    release = host.read(path).strip()
    interop = any(
        name.startswith("WSLInterop") for name in host.listdir("/proc/sys/fs/binfmt_misc")
    )
    wsl = wsl_version(release, interop)
    look.add("os.wsl", bool(wsl), path)
    look.add("wsl.version", wsl, path)
    build = re.match(r"4\.4\.0-(\d{5,6})-Microsoft$", release)
    if build:  # WSL 1 names the build of Windows where Linux names its own
        look.add("os.build", build.group(1), path)
    elif wsl:
        look.gap("os.build", "WSL 2 has no file that names the build of Windows")
    if wsl == "2":
        look.add("os.virtualization", "microsoft", path)
    else:
        part(look, "os.virtualization", _virtualization)


def wsl_version(release: str, interop: bool) -> str | None:
    """1 or 2 inside Windows Subsystem for Linux, else None.

    4.4.0-19041-Microsoft is WSL 1; 5.15.167.4-microsoft-standard-WSL2 is WSL 2, and so is any
    other kernel that knows how to start Windows programs (`interop`).
    """
    if re.match(r"4\.4\.0-\d+-Microsoft$", release):
        return "1"
    return "2" if interop or "microsoft-standard" in release.lower() else None


_DMI = "/sys/class/dmi/id"
_DMI_FIELDS = ("product_name", "sys_vendor", "board_vendor", "bios_vendor")
_DMI_NAMES = (
    ("KVM", "kvm"),
    ("OpenStack", "kvm"),
    ("KubeVirt", "kvm"),
    ("Amazon EC2", "amazon"),
    ("Google Compute Engine", "google"),
    ("QEMU", "qemu"),
    ("VMware", "vmware"),
    ("VMW", "vmware"),
    ("innotek GmbH", "oracle"),
    ("VirtualBox", "oracle"),
    ("Xen", "xen"),
    ("Bochs", "bochs"),
    ("Parallels", "parallels"),
    ("BHYVE", "bhyve"),
    ("Hyper-V", "microsoft"),
    ("Apple Virtualization", "apple"),
)
"""How a virtual machine's firmware names its maker, and the word systemd-detect-virt has for it."""
_CLOCKS = (("kvm-clock", "kvm"), ("hyperv_clocksource", "microsoft"), ("xen", "xen"))
"""Clock sources that only guests of one hypervisor have."""


def _virtualization(look: Look) -> None:
    host = look.host
    if host.read_or("/sys/hypervisor/type").strip() == "xen":
        ruler = "control_d" in host.read_or("/proc/xen/capabilities")
        look.add("os.virtualization", "none" if ruler else "xen", "/sys/hypervisor/type")
        return
    cpu = host.read("/proc/cpuinfo", 1 << 16)
    dmi = {field: host.read_or(f"{_DMI}/{field}").strip() for field in _DMI_FIELDS}
    clocks = "/sys/devices/system/clocksource/clocksource0/available_clocksource"
    tree = "/proc/device-tree/hypervisor/compatible"
    name, source = virtualization(cpu, dmi, host.read_or(clocks), host.read_or(tree))
    source = {"dmi": _DMI, "clocks": clocks, "tree": tree, "cpu": "/proc/cpuinfo flags"}[source]
    if name is None:
        look.gap("os.virtualization", "nothing here names a hypervisor or rules one out")
    else:
        look.add("os.virtualization", name, source)


def virtualization(
    cpu: str, dmi: Mapping[str, str], clocks: str, tree: str
) -> tuple[str | None, str]:
    """What systemd-detect-virt --vm would say, from files alone, and which of them said it.

    A guest of x86 has `hypervisor` among its cpuinfo flags; what kind it is, firmware (DMI) or
    its clock sources tell. Elsewhere the device tree and DMI tell. None: cannot be told.
    """
    flags = re.search(r"^flags\s*:(.*)$", cpu, re.MULTILINE)
    if flags and "hypervisor" not in flags.group(1).split():
        return "none", "cpu"
    named = _by_dmi(dmi)
    clocked = next((name for clock, name in _CLOCKS if clock in clocks), None)
    if named == "qemu" and clocked == "kvm":
        return "kvm", "clocks"
    if named == "none" and flags:  # a metal instance's name, yet a hypervisor below it
        named = None
    if named:
        return named, "dmi"
    if clocked:
        return clocked, "clocks"
    if flags:
        return "vm-other", "cpu"
    for word, name in (("linux,kvm", "kvm"), ("xen", "xen"), ("vmware", "vmware")):
        if word in tree:
            return name, "tree"
    return ("none", "dmi") if dmi.get("sys_vendor") else (None, "dmi")


def _by_dmi(dmi: Mapping[str, str]) -> str | None:
    product = dmi.get("product_name", "")
    if product.endswith(".metal"):
        return "none"
    if product == "Virtual Machine" and dmi.get("sys_vendor") == "Microsoft Corporation":
        return "microsoft"
    for field in _DMI_FIELDS:
        for start, name in _DMI_NAMES:
            if dmi.get(field, "").startswith(start):
                return name
    return None
