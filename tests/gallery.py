"""Make the gallery of snapshots/ from the recorded machines: python -m tests.gallery

Each is what `envaudit snapshot --redact` tells on the machine, with the day fixed and the seconds
of the probes left out, so that the same machine always gives the same file.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from envaudit.snapshot import dump, finish, load
from tests.recorded import audit

GALLERY = Path(__file__).parent.parent / "snapshots"

MACHINES = {
    "h100x8-healthy": ("ubuntu2404-h100x8-healthy", "2026-11-30T06:00:00Z"),
    "rtx4090-healthy": ("ubuntu2204-rtx4090-healthy", "2026-11-30T08:00:00Z"),
    "a100-before-upgrade": ("ubuntu2204-a100-healthy", "2026-11-29T18:00:00Z"),
    "a100-after-upgrade": ("ubuntu2204-a100-library-mismatch", "2026-11-30T09:00:00Z"),
    "rtx4090-no-module": ("ubuntu2404-rtx4090-new-kernel-without-module", "2026-11-30T09:10:00Z"),
    "mixed-gpus-too-old": ("ubuntu2404-mixed-gpu-too-old", "2026-11-30T09:20:00Z"),
    "h200-driver-hung": ("ubuntu2204-h200-driver-hung", "2026-11-30T09:30:00Z"),
    "wsl2-rtx3080": ("ubuntu2204-wsl2-rtx3080", "2026-11-30T09:40:00Z"),
}
"""Name in the gallery to the recorded machine and the time it is said to be taken at."""


def snapshot(machine: str, taken_at: str, libraries: Path) -> str:
    """The text of the gallery's file for a machine."""
    ran = audit(machine, "snapshot", "-o", "-", "--redact", libraries=libraries)
    seen = load(ran.out.encode(), machine)
    runs = tuple(run._replace(seconds=0.0) for run in seen.probes)
    return dump(finish(seen._replace(id="", taken_at=taken_at, probes=runs)))


def main() -> None:
    """Write every file of the gallery."""
    with tempfile.TemporaryDirectory() as folder:
        for name, (machine, taken_at) in MACHINES.items():
            text = snapshot(machine, taken_at, Path(folder))
            (GALLERY / f"{name}.json").write_text(text, "utf-8")
            print(f"{name}.json: {len(text)} bytes")


if __name__ == "__main__":
    main()
