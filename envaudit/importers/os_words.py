"""Operating systems in the words of people: "Linux Ubuntu 18.04", "WSL2 on Windows 11"."""

from __future__ import annotations

import re

from envaudit.importers import Draft
from envaudit.importers.platform_words import tell_platform
from envaudit.patterns import regex

_NAMED = regex(
    r"\b(ubuntu|debian|centos|rhel|red[ ]?hat(?:[ ]enterprise[ ]linux)?|rocky(?:[ ]?linux)?|"
    r"alma(?:[ ]?linux)?|fedora|arch(?:[ ]?linux)?|manjaro|opensuse|sles|linux[ ]?mint|"
    r"pop[!_]?[ ]?os|nixos|gentoo|amazon[ ]?linux|kali|windows|mac[ ]?os|darwin)\b"
    r"(?:[ ](?:linux|server|pro|home|enterprise|release|leap|lts|gnu/linux|x64))*"
    r"[ ,:\-(]{0,3}(?:v(?:ersion)?[ ]?)?([0-9]{1,4}(?:\.[0-9]{1,4}){0,2})?",
    re.IGNORECASE,
)
_IDS = (
    ("ubuntu", "ubuntu"),
    ("debian", "debian"),
    ("centos", "centos"),
    ("rhel", "rhel"),
    ("red", "rhel"),
    ("rocky", "rocky"),
    ("alma", "almalinux"),
    ("fedora", "fedora"),
    ("arch", "arch"),
    ("manjaro", "manjaro"),
    ("opensuse", "opensuse"),
    ("sles", "sles"),
    ("linuxmint", "linuxmint"),
    ("linux mint", "linuxmint"),
    ("pop", "pop"),
    ("nixos", "nixos"),
    ("gentoo", "gentoo"),
    ("amazon", "amzn"),
    ("kali", "kali"),
    ("windows", "windows"),
    ("mac", "macos"),
    ("darwin", "macos"),
)
_PARTS = {"ubuntu": 2, "debian": 1, "centos": 1}
"""How many numbers VERSION_ID has, where people write more: 22.04.3, 7.9.2009."""
_WSL = regex(r"\bWSL[ ]?([12])?\b", re.IGNORECASE)


def read_os(draft: Draft, text: str, source: str, line: int) -> bool:
    """Tell the one operating system that somebody names; False for none or for several."""
    text = text[:300]
    if tell_platform(draft, text, source, line):
        return True
    if "SMP" in text:  # uname's words name the distribution that built the kernel
        return False
    found: dict[str, str] = {}
    for match in _NAMED.finditer(text):
        word = match[1].lower()
        name = next(name for start, name in _IDS if word.startswith(start))
        if not found.get(name):
            found[name] = match[2] or ""
    wsl = _WSL.search(text)
    if wsl is not None:
        found.pop("windows", None)
        draft.add("os.wsl", True, source, line)
        if wsl[1]:
            draft.add("wsl.version", wsl[1], source, line)
    if len(found) != 1:
        return wsl is not None
    ((name, version),) = found.items()
    draft.add("os.id", name, source, line)
    parts = version.split(".")[: _PARTS.get(name, 3)]
    draft.add("os.version", ".".join(parts), source, line)
    return True
