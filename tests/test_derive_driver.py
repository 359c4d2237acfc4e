"""What a driver that is installed and not loaded implies, from its libraries alone."""

from __future__ import annotations

from typing import Any

import pytest

from envaudit.check import check
from envaudit.derive import derive
from envaudit.matrix import Matrices
from envaudit.model import Absent, Fact, ProbeRun, Snapshot, Unknown

MATRICES = Matrices()


def machine(facts: dict[str, Any], *probes: ProbeRun) -> Snapshot:
    known = {name: Fact(name, value, "test") for name, value in facts.items()}
    return Snapshot("test", "2026-01-01T00:00:00Z", known, probes)


NOT_LOADED = ProbeRun(
    "nvml",
    "ok",
    provides=("driver.version", "driver.cuda.version"),
    gaps={"driver.version": "Driver Not Loaded", "driver.cuda.version": "Driver Not Loaded"},
)
LIBRARIES = {"driver.library.version": "535.309.01", "driver.libcuda.version": "535.309.01"}


def test_libraries_stand_for_a_driver_that_is_not_loaded() -> None:
    facts = {**LIBRARIES, "driver.module.loaded": False}
    seen = derive(machine(facts, NOT_LOADED), MATRICES)
    version, cuda = seen.ask("driver.version"), seen.ask("driver.cuda.version")
    assert isinstance(version, Fact)
    assert isinstance(cuda, Fact)
    assert (version.value, cuda.value) == ("535.309.01", "12.2")
    assert version.source == "derived: driver.library.version 535.309.01"


def test_an_image_is_judged_by_its_libraries() -> None:
    """Nobody can tell what is loaded where only files are at hand."""
    files = ProbeRun(
        "driver",
        "ok",
        provides=("driver.version", "driver.module.*"),
        gaps={"driver.version": "only files", "driver.module.*": "only files"},
    )
    seen = machine({**LIBRARIES, "torch.version": "2.14.1+cu130"}, files)
    failed = {f.cause for f in check(seen, MATRICES).findings if f.verdict == "fail"}
    assert failed == {"driver-too-old"}


def test_a_module_that_is_loaded_is_another_matter() -> None:
    """Its version may be another one than that of the libraries."""
    facts = {**LIBRARIES, "driver.module.loaded": True}
    assert isinstance(derive(machine(facts, NOT_LOADED), MATRICES).ask("driver.version"), Unknown)


def test_the_module_outweighs_the_libraries() -> None:
    facts = {**LIBRARIES, "driver.module.loaded": True, "driver.module.version": "580.65.06"}
    version = derive(machine(facts, NOT_LOADED), MATRICES).ask("driver.version")
    assert isinstance(version, Fact)
    assert version.value == "580.65.06"


def test_an_absence_that_somebody_saw_is_kept() -> None:
    looked = ProbeRun("driver", "ok", provides=("driver.version",))
    seen = derive(machine(LIBRARIES, looked), MATRICES)
    assert isinstance(seen.ask("driver.version"), Absent)


@pytest.mark.parametrize("build", ["2.14.1+cu130", "2.9.1+cu130"])
def test_libcuda_alone_is_judged_where_no_driver_is_known(build: str) -> None:
    looked = ProbeRun("driver", "ok", provides=("driver.version",))
    facts = {**LIBRARIES, "driver.libcuda.path": "/x/libcuda.so.535.309.01", "torch.version": build}
    failed = [f for f in check(machine(facts, looked), MATRICES).findings if f.verdict == "fail"]
    assert [f.rule for f in failed] == ["cuda-driver/minimum-libcuda"]
    assert "unknown" not in failed[0].title + failed[0].why
    assert len(failed[0].fix) == 1
