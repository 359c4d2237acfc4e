"""PCI addresses and ids as the kernel and lspci write them."""

from __future__ import annotations

from envaudit.patterns import regex

_PCI_ADDRESS = regex(r"(?:([0-9A-Fa-f]{4,8}):)?([0-9A-Fa-f]{2}):([0-9A-Fa-f]{2})\.([0-9A-Fa-f])\Z")


def pci_address(text: str) -> str | None:
    """A PCI bus address as the kernel writes it, 0000:1a:00.0; None for anything else.

    NVIDIA's tools write 00000000:1A:00.0, older ones 0000:1A:00.0.
    """
    match = _PCI_ADDRESS.match(text.strip())
    if match is None:
        return None
    domain, *rest = match.groups()
    return "{:04x}:{}:{}.{}".format(int(domain or "0", 16), *rest).lower()


def pci_id(device: int, subsystem: int) -> str:
    """Device and subsystem as `lspci -nn` writes ids: "10de:2330 10de:16c1".

    NVIDIA's tools give each as one number, device above vendor: 0x233010DE.
    """
    return " ".join(
        f"{number & 0xFFFF:04x}:{number >> 16 & 0xFFFF:04x}" for number in (device, subsystem)
    )
