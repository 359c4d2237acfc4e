"""What a system says of itself: uname, os-release, lsb_release, hostnamectl, Windows, WSL, lscpu.

    Linux host 5.15.0-105-generic #115-Ubuntu SMP Mon Apr 15 09:52:04 UTC 2024 x86_64 GNU/Linux
    PRETTY_NAME="Ubuntu 22.04.4 LTS"                  /etc/os-release
    Description:    Ubuntu 22.04.4 LTS                lsb_release -a
    Operating System: Debian GNU/Linux 12 (bookworm)  hostnamectl
    Microsoft Windows [Version 10.0.19045.2846]       ver
    WSL version: 2.1.5.0                              wsl --version
    Mem:            62Gi        10Gi        41Gi      free -h

Lines of a form that other programs share count only beside their own kind, or below the command
that prints them.
"""

from __future__ import annotations

import re

from envaudit.importers import Draft, Imported, Section
from envaudit.importers.platform_words import (
    ARCHITECTURES,
    tell_kernel,
    tell_processor,
    tell_system,
)
from envaudit.importers.reading import numbered
from envaudit.patterns import regex

_HINTS = (
    "Linux ",
    "PRETTY_NAME",
    "VERSION_ID",
    "Distributor ID",
    "Description:",
    "Operating System:",
    "Microsoft Windows",
    "ProductName:",
    "Darwin ",
    "WSL",
    "CPU op-mode",
    "Thread(s) per core",
    "Mem:",
    "available: ",
    "Running",
    "Stopped",
    "/dev/shm",
)
_COMMAND = regex(
    r"(?:sudo[ \t]+)?(?P<tool>uname|nproc|lsb_release|hostnamectl|ver|systeminfo|free|arch|ulimit|"
    r"df|wsl(?:\.exe)?|systemd-detect-virt|numactl|cat[ \t]+/etc/[\w.*\-]{2,30})(?![\w.])"
    r"(?P<rest>[^|;&\n]{0,80})"
)


def recognises(section: Section) -> bool:
    """Whether the command or a line may be of one of these tools."""
    return (
        any(hint in section.text for hint in _HINTS) or _COMMAND.match(section.command) is not None
    )


def parse(section: Section) -> Imported:
    """Facts of the system, the kernel, the machine's architecture, processors and memory."""
    draft = Draft()
    lines = list(numbered(section.text))
    asked = _COMMAND.match(section.command)
    tool = asked["tool"] if asked is not None else ""
    if asked is not None:
        _answers(draft, tool, asked["rest"], lines)
    _uname(draft, lines)
    _release_files(draft, lines, tool)
    _named_fields(draft, lines)
    _windows(draft, section, lines)
    _mac(draft, lines)
    _wsl(draft, lines)
    _processors(draft, section, lines)
    _memory(draft, section, lines)
    return draft.done()


_Lines = list[tuple[int, str]]

# -- uname and single answers -------------------------------------------------------------------

_UNAME = regex(
    r"Linux (?:(?P<host>[\w.\-]{1,64}) )?(?P<release>[0-9]{1,2}\.[0-9]{1,3}\S{0,80}) "
    rf"(?:(?P<built>#[0-9][^\n]{{0,160}}?) )?(?P<arch>{ARCHITECTURES})(?![\w])"
)
_KERNEL_ALONE = regex(r"[0-9]{1,2}\.[0-9]{1,3}(?:\.[0-9]{1,3})?[\w.+\-]{0,80}\Z")
_NUMBER = regex(r"[0-9]{1,5}\Z")


def _uname(draft: Draft, lines: _Lines) -> None:
    for number, line in lines:
        match = _UNAME.search(line)
        if match is None or not (match["built"] or match["host"] is None):
            continue
        tell_kernel(draft, match["release"], "uname", number)
        draft.add("os.arch", match["arch"], "uname", number)


def _answers(draft: Draft, tool: str, rest: str, lines: _Lines) -> None:
    """Commands that answer in one line with one word."""
    for number, line in lines[:3]:
        text = line.strip()
        if tool == "uname" and "r" in rest and _KERNEL_ALONE.match(text):
            tell_kernel(draft, text, "uname -r", number)
        elif tool in ("uname", "arch") and re.fullmatch(ARCHITECTURES, text):
            draft.add("os.arch", text, "uname -m", number)
        elif tool == "nproc" and "--all" not in rest and _NUMBER.match(text):
            draft.add("host.cpu.usable", int(text), "nproc", number)
        elif tool == "systemd-detect-virt" and re.fullmatch(r"[a-z][a-z0-9\-]{1,20}", text):
            _virtual(draft, text, "systemd-detect-virt", number)
        elif tool == "ulimit" and rest.strip() in ("-l", "-Hl", "-Sl"):
            if text == "unlimited":
                draft.add("host.limits.memlock", -1, "ulimit -l", number)
            elif _NUMBER.match(text):
                draft.add("host.limits.memlock", int(text) * 1024, "ulimit -l", number)


def _virtual(draft: Draft, word: str, source: str, line: int) -> None:
    if word == "wsl":
        draft.add("os.wsl", True, source, line)
    elif word not in ("docker", "podman", "lxc", "container-other", "systemd-nspawn"):
        draft.add("os.virtualization", word, source, line)


# -- macOS --------------------------------------------------------------------------------------

_SW_VERS = regex(r"[ \t]*ProductName:[ \t]{1,8}(?:macOS|Mac OS X)(?: Server)?[ \t]*\Z")
_PRODUCT = regex(
    r"[ \t]*ProductVersion:[ \t]{1,8}(?P<version>[0-9]{1,2}(?:\.[0-9]{1,3}){0,3})[ \t]*\Z"
)
_DARWIN = regex(r"Darwin [^\n]{0,120}?Darwin Kernel Version [^\n]{0,200}?(?P<arch>arm64|x86_64)\b")


def _mac(draft: Draft, lines: _Lines) -> None:
    """sw_vers, and what uname prints on a Mac."""
    for number, line in lines:
        darwin = _DARWIN.search(line) if "Darwin" in line else None
        if darwin is not None:
            draft.add("os.id", "macos", "uname", number)
            draft.add("os.arch", darwin["arch"], "uname", number)
        elif _SW_VERS.match(line):
            draft.add("os.id", "macos", "sw_vers", number)
        elif "os.id" in draft and (product := _PRODUCT.match(line)) is not None:
            draft.add("os.version", product["version"], "sw_vers", number)


# -- release files ------------------------------------------------------------------------------

_ASSIGNED = regex(
    r"(?P<key>ID|VERSION_ID|PRETTY_NAME|DISTRIB_DESCRIPTION)="
    r"(?P<value>\"[^\"\n]{1,80}\"|[^ \t\"'\n]{1,60}|'[^'\n]{1,80}')\Z"
)
_LSB = regex(r"(?P<key>Distributor ID|Description|Release|Codename):[ \t]{1,8}(?P<value>\S.{0,80})")
_BARE_RELEASE = regex(
    r"(?:CentOS|Red Hat|Rocky|AlmaLinux|Fedora|Oracle|Scientific|Amazon)[A-Za-z ]{0,40} release "
    r"[0-9][\w. ()\-]{0,40}\Z"
)


def _release_files(draft: Draft, lines: _Lines, tool: str) -> None:
    assigned: dict[str, tuple[str, int]] = {}
    listed: dict[str, tuple[str, int]] = {}
    for number, line in lines:
        text = line.strip()
        match, lsb = _ASSIGNED.match(text), _LSB.match(text)
        if match is not None:
            assigned.setdefault(match["key"], (match["value"].strip("\"'"), number))
        elif lsb is not None:
            listed.setdefault(lsb["key"], (lsb["value"].strip(), number))
        elif _BARE_RELEASE.match(text):
            tell_system(draft, text.replace(" release ", " "), "release file in /etc", number)
        elif tool.startswith("cat") and re.match(
            r"[A-Z][\w/ ]{2,40} [0-9.]{1,8}[^\n]{0,20}\\n", text
        ):
            tell_system(draft, text.partition("\\n")[0].strip(), "/etc/issue", number)
    source = "/etc/os-release"
    if "ID" in assigned or "PRETTY_NAME" in assigned or len(assigned) > 1:
        for key, name in (
            ("ID", "os.id"),
            ("VERSION_ID", "os.version"),
            ("PRETTY_NAME", "os.name"),
        ):
            if key in assigned:
                draft.add(name, assigned[key][0], f"{source}: {key}", assigned[key][1])
        words = assigned.get("PRETTY_NAME") or assigned.get("DISTRIB_DESCRIPTION")
        if words is not None:
            tell_system(draft, words[0], source, words[1])
    if "Description" in listed and (len(listed) > 1 or tool == "lsb_release"):
        tell_system(
            draft, listed["Description"][0], "lsb_release: Description", listed["Description"][1]
        )
        draft.read(*(line for _, line in listed.values()))


_FIELD = regex(
    r"[ \t]{0,24}(?P<key>Operating System|Kernel|Architecture|Virtualization): "
    r"(?P<value>\S.{0,100})"
)


def _named_fields(draft: Draft, lines: _Lines) -> None:
    """hostnamectl; its keys count only where it names both the system and the kernel."""
    found = {m["key"]: (m["value"], n) for n, line in lines if (m := _FIELD.match(line))}
    if not {"Operating System", "Kernel"} <= set(found):
        return
    for key, (value, number) in found.items():
        source = f"hostnamectl: {key}"
        if key == "Operating System":
            tell_system(draft, value, source, number)
        elif key == "Kernel" and value.startswith("Linux "):
            tell_kernel(draft, value[6:].split()[0], source, number)
        elif key == "Architecture":
            arch = {"x86-64": "x86_64", "arm64": "aarch64"}.get(value)
            draft.add("os.arch", arch, source, number)
        elif key == "Virtualization":
            _virtual(draft, value, source, number)


# -- Windows and WSL ----------------------------------------------------------------------------

_VER = regex(r"Microsoft Windows \[[^\]\d\n]{2,24}10\.0\.(?P<build>[0-9]{5})(?:\.[0-9]{1,6})?\]")
_SYSTEMINFO = regex(r"[^:\n]{3,40}:[ \t]{2,40}(?P<name>Microsoft Windows [^\n]{2,60})")
_SYSTEMINFO_BUILD = regex(r"[^:\n]{3,40}:[ \t]{2,40}10\.0\.(?P<build>[0-9]{5}) [^\n]{0,30}[0-9]{5}")
_WSL = regex(
    r"(?:WSL[ \-]?[^:\uff1a\n0-9g]{0,16}|Version(?: de)? WSL)[ ]?[:\uff1a] ?"
    r"(?P<release>[0-9]\.[0-9]{1,3}\.[0-9]{1,3}(?:\.[0-9]{1,3})?)"
)
_WSL_WINDOWS = regex(
    r"[^:\uff1a\n]{0,20}Windows[^:\uff1a\n]{0,20}[:\uff1a] ?10\.0\.(?P<build>[0-9]{5})"
)
_WSL_LIST = regex(r"[ \t]*\*[ \t]+[\w.\-]{2,40}[ \t]+\S{3,20}[ \t]+(?P<version>[12])\Z")


def _windows(draft: Draft, section: Section, lines: _Lines) -> None:
    info = "systeminfo" in section.command or "Microsoft Windows" in section.text
    for number, line in lines:
        ver, name = _VER.search(line), _SYSTEMINFO.match(line)
        build = _SYSTEMINFO_BUILD.match(line) if info else None
        if ver is not None:
            draft.add("os.id", "windows", "ver", number)
            draft.add("os.build", ver["build"], "ver", number)
        elif name is not None:
            tell_system(draft, name["name"].strip(), "systeminfo", number)
        elif build is not None:
            draft.add("os.build", build["build"], "systeminfo", number)


def _wsl(draft: Draft, lines: _Lines) -> None:
    """`wsl --version` and `wsl -l -v`, which speak the language of Windows."""
    release = next(
        ((m["release"], n) for n, line in lines if (m := _WSL.match(line.strip()))), None
    )
    if release is not None:
        draft.add("wsl.release", release[0], "wsl --version", release[1])
    for number, line in lines:
        windows = _WSL_WINDOWS.match(line.strip()) if release is not None else None
        listed = _WSL_LIST.match(line)
        if windows is not None:
            draft.add("os.build", windows["build"], "wsl --version: Windows", number)
        elif listed is not None:
            draft.add("wsl.version", listed["version"], "wsl -l -v", number)


# -- processors and memory ----------------------------------------------------------------------

_LSCPU = regex(
    r"[ \t]*(?P<key>Architecture|CPU\(s\)|Model name|Vendor ID|NUMA node\(s\)|Hypervisor vendor):"
    r"[ \t]{1,60}(?P<value>\S.{0,120})"
)
_NODES = regex(r"available: (?P<count>[0-9]{1,4}) nodes? \([0-9,\-]{1,40}\)")


def _processors(draft: Draft, section: Section, lines: _Lines) -> None:
    lscpu = "lscpu" in section.command or (
        "Architecture:" in section.text
        and ("CPU op-mode(s):" in section.text or "Thread(s) per core:" in section.text)
    )
    for number, line in lines:
        match = _LSCPU.match(line) if lscpu else None
        if match is not None:
            source = f"lscpu: {match['key']}"
            tell_processor(draft, match["key"], match["value"], source, number)
        nodes = _NODES.match(line)
        if nodes is not None:
            draft.add("host.numa.nodes", int(nodes["count"]), "numactl --hardware", number)


_UNITS = {"": 0, "B": 0, "K": 10, "M": 20, "G": 30, "T": 40}
_SIZE = regex(r"(?P<number>[0-9]{1,14}(?:[.,][0-9])?)(?P<unit>[BKMGT]?)i?B?\Z")
_SHM = regex(
    r"\S{2,40}[ \t]+(?P<size>\S{1,14})[ \t]+\S{1,14}[ \t]+\S{1,14}[ \t]+[0-9]{1,3}%[ \t]+/dev/shm"
)


def _bytes(text: str, unit: str) -> int | None:
    match = _SIZE.match(text)
    if match is None:
        return None
    number = float(match["number"].replace(",", "."))
    return int(number * (1 << _UNITS[match["unit"] or unit]))


def _memory(draft: Draft, section: Section, lines: _Lines) -> None:
    header = any("total" in line and "available" in line for _, line in lines)
    unit = "K"
    if re.search(r"\bfree\b[^|\n]{0,20} -\w*[mg]|\bdf\b[^|\n]{0,20} -\w*m", section.command):
        unit = "G" if re.search(r"free[^|\n]{0,20} -\w*g", section.command) else "M"
    for number, line in lines:
        words = line.split()
        if header and words[0] == "Mem:" and len(words) > 3:
            draft.add("host.memory.total", _bytes(words[1], unit), "free", number)
            if len(words) == 7:
                draft.add("host.memory.available", _bytes(words[6], unit), "free", number)
        shm = _SHM.match(line)
        if shm is not None:
            draft.add("host.shm.size", _bytes(shm["size"], unit), "df: /dev/shm", number)
