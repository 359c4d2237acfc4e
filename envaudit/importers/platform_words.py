"""How Python programs name the machine they run on: system, kernel, C library, interpreter.

Many reports quote the same few sources: `platform.platform()`, `sys.version`, the PRETTY_NAME of
os-release or the Description of lsb_release, `lscpu`. Here each becomes facts, once.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from envaudit.importers import Draft
from envaudit.patterns import regex

UNKNOWN = frozenset(
    {
        "",
        "-",
        "?",
        "n/a",
        "na",
        "none",
        "null",
        "nan",
        "unknown",
        "could not collect",
        "no cuda",
        "not available",
        "not found",
        "not installed",
        "module not found",
        "<fill in>",
        "<not set>",
    }
)
"""What reports print in place of a value, in lower case."""

_VERSION = regex(r"v?([0-9]{1,9}(?:\.[0-9]{1,9}){1,5})(?![0-9])")
_BUILD = regex(r"v?([0-9]{1,9}(?:\.[0-9A-Za-z]{1,30}){1,7}(?:\+[0-9A-Za-z.\-_]{1,80})?)")


def told(text: str) -> str:
    """A value without the marks of quotes and emphasis around it."""
    return text.strip().strip("`*'\"").strip()


def is_unknown(text: str) -> bool:
    """Whether the words in place of a value say that nobody knows it."""
    words = told(text).rstrip(".").lower()
    return words in UNKNOWN or words.startswith(("could not collect", "<fill"))


def version(text: str) -> str | None:
    """The numbers of the version that a value begins with, such as 3.25.1; None without one."""
    match = _VERSION.match(told(text))
    return match[1] if match else None


def build(text: str) -> str | None:
    """A version with its suffixes that a value begins with, such as 2.8.0a0+gitef4d573."""
    match = _BUILD.match(told(text))
    return match[1].rstrip(".-_") if match else None


_PARENTHESES = regex(r"\([^()\n]{0,200}\)")


def compiler_version(text: str) -> str | None:
    """The version of a compiler in the first line that it prints, with or without its name.

    gcc (Ubuntu 11.4.0-1ubuntu1~22.04) 11.4.0 · (GCC) 4.8.5 20150623 (Red Hat 4.8.5-44)
    """
    text = text[:400]
    for _ in range(3):  # nested: (Ubuntu 12.3.0-1ubuntu1~22.04 (x86_64))
        text = _PARENTHESES.sub(" ", text)
    match = re.search(r"(?:^|[ \t(])v?([0-9]{1,3}\.[0-9]{1,3}(?:\.[0-9]{1,3})?)", text)
    return match[1] if match else None


# -- systems ------------------------------------------------------------------------------------

ARCHITECTURES = (
    r"x86_64|amd64|AMD64|aarch64|arm64|ARM64|ppc64le|s390x|riscv64|i[3-6]86|armv7l|loongarch64"
)
_ARCHITECTURE = regex(rf"[ \t]*[(\[ ]({ARCHITECTURES})[)\]]?[ \t]*\Z")

_DISTRIBUTIONS: tuple[tuple[str, str, int], ...] = (
    # how its name begins, ID in os-release, parts of the version that VERSION_ID has
    ("Ubuntu Linux", "ubuntu", 2),
    ("Ubuntu", "ubuntu", 2),
    ("Debian", "debian", 1),
    ("CentOS", "centos", 1),
    ("Red Hat Enterprise", "rhel", 2),
    ("RHEL", "rhel", 2),
    ("Rocky Linux", "rocky", 2),
    ("AlmaLinux", "almalinux", 2),
    ("Oracle Linux", "ol", 2),
    ("Scientific Linux", "scientific", 2),
    ("Fedora", "fedora", 1),
    ("Amazon Linux", "amzn", 1),
    ("Linux Mint", "linuxmint", 2),
    ("Pop!_OS", "pop", 2),
    ("Zorin OS", "zorin", 2),
    ("elementary OS", "elementary", 2),
    ("KDE neon", "neon", 2),
    ("Kali", "kali", 2),
    ("Alpine Linux", "alpine", 3),
    ("Arch Linux", "arch", 0),
    ("Manjaro", "manjaro", 0),
    ("EndeavourOS", "endeavouros", 0),
    ("Garuda", "garuda", 0),
    ("CachyOS", "cachyos", 0),
    ("Gentoo", "gentoo", 0),
    ("Void", "void", 0),
    ("NixOS", "nixos", 2),
    ("openSUSE Tumbleweed", "opensuse-tumbleweed", 0),
    ("openSUSE Leap", "opensuse-leap", 2),
    ("SUSE Linux Enterprise Server", "sles", 2),
    ("SUSE Linux Enterprise Desktop", "sled", 2),
    ("Common Base Linux Mariner", "mariner", 2),
    ("CBL-Mariner", "mariner", 2),
    ("Microsoft Azure Linux", "azurelinux", 2),
    ("VMware Photon", "photon", 2),
    ("Container-Optimized OS", "cos", 1),
    ("Flatcar", "flatcar", 3),
    ("openEuler", "openeuler", 2),
    ("Anolis OS", "anolis", 2),
    ("TencentOS", "tencentos", 2),
    ("Alibaba Cloud Linux", "alinux", 1),
    ("Kylin Linux", "kylin", 1),
)

_WINDOWS = regex(
    r"\bWindows(?:[ \-_]+(?:Server)?[ \-_]*(?P<version>[0-9]{1,4}(?:\.1)?|XP|Vista)\b)?"
)
_WINDOWS_BUILD = regex(r"\b10\.0\.([0-9]{5})\b|\b[Bb]uild[ :]{1,2}([0-9]{5})\b")
_MAC = regex(r"(?:macOS|Mac ?OS ?X?|OS X)[ \-]+v?([0-9]{1,2}(?:\.[0-9]{1,2}){0,2})", re.I)
_NUMBERS = regex(r"[^0-9\n]{0,40}?v?([0-9]{1,4}(?:\.[0-9]{1,8}){0,3})")
_SERVICE_PACK = regex(r"[ \-]SP([0-9])\b")


def tell_system(draft: Draft, text: str, source: str, line: int | None = None) -> None:
    """Tell what the name of an operating system says, such as "Ubuntu 22.04.4 LTS (x86_64)"."""
    name = told(text)[:200]
    match = _ARCHITECTURE.search(name)
    if match is not None:
        draft.add("os.arch", match[1], source, line)
        name = name[: match.start()].rstrip(" ,-")
    if not name or is_unknown(name) or name.lower() in ("linux", "darwin"):
        return
    wsl = re.search(r"\bWSL ?([12])?\b", name)
    if wsl is not None:
        draft.add("os.wsl", True, source, line)
        draft.add("wsl.version", wsl[1], source, line)
    mac = _MAC.match(name)
    if mac is not None:
        draft.add("os.id", "macos", source, line)
        draft.add("os.version", mac[1], source, line)
        draft.add("os.name", name, source, line)
        return
    for words, ident, parts in _DISTRIBUTIONS:
        if name.lower().startswith(words.lower()):
            draft.add("os.id", ident, source, line)
            draft.add("os.version", _version_id(name[len(words) :], parts), source, line)
            draft.add("os.name", name, source, line)
            return
    windows = _WINDOWS.search(name)
    if windows is not None and wsl is None:
        draft.add("os.id", "windows", source, line)
        if windows["version"]:
            draft.add("os.version", windows["version"], source, line)
        found = _WINDOWS_BUILD.search(name)
        if found is not None:
            draft.add("os.build", found[1] or found[2], source, line)
        name = re.sub(r"[ \t]*\([^()]{0,60}\)\Z", "", name)
        draft.add("os.name", name, source, line)


def _version_id(rest: str, parts: int) -> str | None:
    match = _NUMBERS.match(rest)
    if match is None or parts == 0:
        return None
    numbers = match[1].split(".")
    pack = _SERVICE_PACK.search(rest)
    if pack is not None and len(numbers) == 1:
        numbers.append(pack[1])
    return ".".join(numbers[:parts])


_PLATFORM_LINUX = regex(
    rf"Linux-(?P<release>[^ \t\n]{{1,150}})-(?P<arch>{ARCHITECTURES})"
    r"(?:-with-?(?P<libc>[^ \t\n]{0,80}))?\Z"
)
_PLATFORM_WINDOWS = regex(r"Windows-[0-9A-Za-z]{1,12}-[0-9]{1,2}\.[0-9]\.([0-9]{4,5})")
_PLATFORM_MAC = regex(r"macOS-([0-9]{1,2}(?:\.[0-9]{1,2}){0,2})-(arm64|x86_64)")
_PLATFORM_DARWIN = regex(r"Darwin-[0-9.]{1,20}-(arm64|x86_64)")


def tell_platform(
    draft: Draft, text: str, source: str, line: int | None = None, python: str | None = None
) -> bool:
    """Tell what `platform.platform()` says; false where the text is something else.

    Linux-5.15.0-1055-nvidia-x86_64-with-glibc2.35 · Windows-10-10.0.22631-SP0 ·
    macOS-14.6.1-arm64-arm-64bit. `python` is the interpreter's version, as far as it is known.
    """
    text = told(text)
    linux = _PLATFORM_LINUX.match(text)
    if linux is not None:
        tell_kernel(draft, linux["release"], source, line)
        draft.add("os.arch", linux["arch"], source, line)
        tell_libc(draft, linux["libc"] or "", source, line, python)
        named = re.match(r"(?:Ubuntu|centos|redhat)-[0-9][0-9.]{0,12}", linux["libc"] or "")
        if named is not None:  # Pythons before 3.8 name the distribution in this place
            words = named[0].replace("redhat", "RHEL").replace("-", " ")
            tell_system(draft, words, source, line)
        return True
    windows = _PLATFORM_WINDOWS.match(text)
    if windows is not None:
        draft.add("os.id", "windows", source, line)
        draft.add("os.build", windows[1], source, line)
        return True
    mac = _PLATFORM_MAC.match(text)
    if mac is not None:
        draft.add("os.id", "macos", source, line)
        draft.add("os.arch", mac[2], source, line)
        if not mac[1].endswith(".16"):  # 10.16: what an older Python sees of every later macOS
            draft.add("os.version", mac[1], source, line)
        return True
    darwin = _PLATFORM_DARWIN.match(text)
    if darwin is not None:
        draft.add("os.id", "macos", source, line)
        draft.add("os.arch", darwin[1], source, line)
        return True
    return False


def tell_kernel(draft: Draft, release: str, source: str, line: int | None = None) -> None:
    """Tell a kernel release (uname -r) and whether it is that of WSL."""
    draft.add("kernel.release", release, source, line)
    match = re.match(r"[0-9]{1,4}(?:\.[0-9]{1,6}){1,5}", release)
    if match is not None:
        draft.add("kernel.version", match[0], source, line)
    lower = release.lower()
    wsl = "microsoft" in lower or "wsl" in lower
    draft.add("os.wsl", wsl, source, line)
    if wsl:
        old = re.match(r"4\.4\.0-([0-9]{5,6})-microsoft\Z", lower)
        draft.add("wsl.version", "1" if old else "2", source, line)
        if old is not None:  # WSL 1 names the build of Windows where Linux names its own
            draft.add("os.build", old[1], source, line)


_LIBC = regex(r"(glibc|musl|libc)-?([0-9]{1,2}\.[0-9]{1,3}(?:\.[0-9]{1,3})?)?\Z")


def tell_libc(
    draft: Draft, text: str, source: str, line: int | None = None, python: str | None = None
) -> None:
    """Tell the C library that Python names, such as glibc-2.35.

    Before 3.8 Python looked for symbols in its own executable instead of asking the library: that
    is what the executable needs at least, not what is there.
    """
    match = _LIBC.match(told(text))
    if match is None or match[1] == "libc":
        return
    if match[1] == "musl":
        draft.add("os.libc.name", "musl", source, line)
        draft.absent("os.libc.version", line)
        return
    draft.add("os.libc.name", "glibc", source, line)
    if _guesses_libc(python):
        draft.gap("os.libc.version", f"Python {python} guesses it from its own executable")
    else:
        draft.add("os.libc.version", match[2], source, line)


def _guesses_libc(python: str | None) -> bool:
    numbers = (python or "").split(".")[:2]
    return (
        len(numbers) == 2
        and all(n.isdigit() for n in numbers)
        and tuple(map(int, numbers))
        < (
            3,
            8,
        )
    )


_PYTHON = regex(r"v?([23]\.[0-9]{1,2}(?:\.[0-9]{1,2}(?:(?:a|b|rc)[0-9]{1,2})?\+?)?)(?![0-9])")


def python_version(text: str) -> str | None:
    """The version that a text of `sys.version` begins with; None for anything else."""
    match = _PYTHON.match(told(text))
    return match[1].rstrip("+") if match else None


def tell_python(draft: Draft, text: str, source: str, line: int | None = None) -> str | None:
    """Tell what `sys.version` says, such as "3.10.12 (main, ...) [GCC 11.4.0]"; its version."""
    found = python_version(text)
    if found is None:
        return None
    draft.add("python.version", found, source, line)
    if "[PyPy " in text:
        draft.add("python.implementation", "PyPy", source, line)
    elif "[GCC" in text or "[MSC" in text or "[Clang" in text:
        draft.add("python.implementation", "CPython", source, line)
    if "free-threading" in text:
        draft.add("python.free_threaded", True, source, line)
    return found


# -- processors ---------------------------------------------------------------------------------

_HYPERVISORS = {
    "kvm": "kvm",
    "microsoft": "microsoft",
    "vmware": "vmware",
    "xen": "xen",
    "oracle": "oracle",
    "parallels": "parallels",
    "bhyve": "bhyve",
}


def tell_processor(draft: Draft, key: str, value: str, source: str, line: int) -> bool:
    """Tell one line of `lscpu`; false where it is none that says something to us."""
    value = value.strip()
    if key == "Architecture" and re.fullmatch(ARCHITECTURES, value):
        draft.add("os.arch", value, source, line)
    elif key == "CPU(s)" and value.isascii() and value.isdigit() and len(value) < 6:
        draft.add("host.cpu.count", int(value), source, line)
    elif key == "Model name" and value not in ("", "-"):
        draft.add("host.cpu.model", value[:120], source, line)
    elif key == "Vendor ID" and value:
        draft.add("host.cpu.vendor", value[:60], source, line)
    elif key == "NUMA node(s)" and value.isascii() and value.isdigit() and len(value) < 6:
        draft.add("host.numa.nodes", int(value), source, line)
    elif key == "Hypervisor vendor":
        draft.add("os.virtualization", _HYPERVISORS.get(value.lower()), source, line)
    else:
        return False
    return True


# -- GPUs ---------------------------------------------------------------------------------------

_FOREIGN = regex(
    r"\b(?:AMD|ATI|Radeon|Instinct|gfx[0-9]|Intel|Apple|Iris|Ascend|Gaudi|Adreno|Mali|MI[0-9]{3}X?)\b",
    re.I,
)
GPUS_LIMIT = 1024
"""Most GPUs of one list that are believed."""


def gpu_name(text: str) -> str | None:
    """The name of an NVIDIA GPU as a report gives it; None for other makers' and for prose."""
    name = re.sub(r"[ \t]*\(UUID:[^\n)]{0,80}\)?.*\Z", "", told(text))
    if not 2 < len(name) <= 80 or is_unknown(name) or _FOREIGN.search(name):
        return None
    return name


def indices(text: str) -> Sequence[int]:
    """The numbers of a list such as "0,1,2,3"."""
    found = [int(each) for each in re.findall(r"[0-9]{1,4}", text[:8000])]
    return found[:GPUS_LIMIT]


_ARCH = regex(r"([0-9]{1,2})\.([0-9])([a-f]?)(\+PTX)?\Z", re.I)


def arch_list(text: str) -> list[str] | None:
    """GPU code that a TORCH_CUDA_ARCH_LIST asks for, such as "7.5 8.0+PTX"; None for names."""
    found: list[str] = []
    for each in re.split(r"[ \t,;]+", told(text)[:2000]):
        if not each:
            continue
        match = _ARCH.match(each)
        if match is None:
            return None
        number = f"{match[1]}{match[2]}{match[3].lower()}"
        found.append(f"sm_{number}")
        if match[4]:
            found.append(f"compute_{number}")
    return list(dict.fromkeys(found)) or None
