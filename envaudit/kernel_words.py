"""What the kernel says of itself and of the nvidia module, wherever it is read.

/proc/version, /proc/cmdline and /proc/driver/nvidia/version, of this machine or as somebody
pasted them.
"""

from __future__ import annotations

import re

from envaudit.patterns import regex

_RELEASE = r"\d{3,4}\.\d+(?:\.\d+)*"
"""A driver release."""


def comparable(release: str) -> str | None:
    """The part of a release that can be compared: 6.8.0-45-generic -> 6.8.0."""
    found = re.match(r"\d+(\.\d+)+", release)
    return found.group() if found else None


def parse_compiler(text: str) -> str | None:
    """The compiler in /proc/version, as name and version.

    Linux version 6.8.0-45-generic (buildd@host) (x86_64-linux-gnu-gcc-13 (Ubuntu 13.2.0-23ubuntu4)
    13.2.0, GNU ld (GNU Binutils for Ubuntu) 2.42) #45-Ubuntu SMP ...   -> gcc 13.2.0
    Before 5.8: ... (gcc version 5.4.0 20160609 (Ubuntu 5.4.0-6ubuntu1~16.04.4)) #1 SMP ...
    """
    text = text[:4096]
    clang = re.search(r"\bclang version (\d+(?:\.\d+)*)", text)
    if clang:
        return f"clang {clang.group(1)}"
    old = re.search(r"\bgcc version (\d+(?:\.\d+)*)", text)
    if old:
        return f"gcc {old.group(1)}"
    new = re.search(r"\bgcc(?:-[\d.]+)?(?:\.\w+)? \((?:[^()]|\([^()]*\))*\) (\d+(?:\.\d+)*)", text)
    return f"gcc {new.group(1)}" if new else None


_PLACE = regex(
    r"(root|resume(_offset)?|BOOT_IMAGE|initrd|crypt\w*|rd\.(luks|lvm|md|dm|iscsi|nvmf?|znet|dasd|zfcp"
    r"|neednet|route)\b.*|luks\..*|nfs(root|addrs)|ip|ipv6|nameserver|BOOTIF|hostname|systemd\.hostname"
    r"|systemd\.machine_id|ostree|ds|inst\..*|ks|url|autoinstall|netroot|iscsi.*|ifname|zfs|bootdev|real_root"
    r"|.*(token|key|secret|passw|passphrase|credential|auth|uuid).*)$",
    re.IGNORECASE,
)
"""Options that say where this machine's disks and networks are, or may hold a secret."""
_IDENTITY = regex(
    r"[0-9a-f]{8}-[0-9a-f]{4}-|[0-9a-f]{32}|([0-9a-f]{2}:){5}[0-9a-f]{2}|\bUUID=|\bLABEL=|/dev/disk/"
    r"|/dev/mapper/|://|\b\d{1,3}(\.\d{1,3}){3}\b",
    re.IGNORECASE,
)
"""Values that name one disk, machine or address."""


def filter_cmdline(text: str) -> str:
    """The kernel's options without what tells this machine from its like, in their own order.

    BOOT_IMAGE=/vmlinuz-6.8 root=UUID=... ro quiet iommu=pt -- init's own  ->  ro quiet iommu=pt
    """
    kept = []
    for word in re.findall(r'(?:[^\s"]|"[^"]*(?:"|$))+', text[:65536].replace("\0", " ")):
        if word == "--":  # what follows is meant for init
            break
        name = word.partition("=")[0]
        if not _PLACE.match(name) and not _IDENTITY.search(word):
            kept.append(word)
    return " ".join(kept)


def parse_proc_version(text: str) -> tuple[str | None, str | None]:
    """Version and flavour from /proc/driver/nvidia/version; None for what it does not say.

    NVRM version: NVIDIA UNIX x86_64 Kernel Module  510.60.02  Wed Mar 16 11:24:05 UTC 2022
    NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  555.58.02  Release Build  (...)
    """
    found = re.search(
        rf"^NVRM version:.*?\b(Open )?Kernel Module\b(?: for \S+)?\s+({_RELEASE})",
        text,
        re.MULTILINE,
    )
    if found is None:
        return None, None
    return found[2], "open" if found[1] else "proprietary"
