"""Driver, PyTorch build and GPU with the verdict that the vendors' own words give.

Each line was drawn from a source, not from the rules: the minimum drivers of NVIDIA's CUDA
Compatibility pages, and the lists of code that the builds carry. `docs/verdicts.md` shows it.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple


class Triple(NamedTuple):
    """One combination and what must be said of it."""

    driver: str
    torch: str
    gpu: str
    verdict: str
    """pass or fail."""
    cause: str
    """What a failing one fails for; empty for a passing one."""
    because: str
    arch: str = "x86_64"
    os: str = "ubuntu"


def _read(line: str) -> Triple:
    cells = [cell.strip() for cell in line.split("|")]
    driver, torch, gpu, cause, because, *more = cells
    return Triple(driver, torch, gpu, "fail" if cause else "pass", cause, because, *more)


_TABLE = Path(__file__).with_suffix(".txt").read_text("utf-8")
TRIPLES = [_read(line) for line in _TABLE.splitlines() if not line.startswith("#")]
