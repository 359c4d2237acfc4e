"""The running kernel and this boot."""

from __future__ import annotations

from envaudit.probes import Look


def look(look: Look) -> None:
    """Read the kernel's own words from /proc."""
    look.add(
        "kernel.release",
        look.host.read("/proc/sys/kernel/osrelease").strip(),
        "/proc/sys/kernel/osrelease",
    )
