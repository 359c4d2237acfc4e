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
    assert failed - {"security-update-missing"} == {"driver-too-old"}


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
    failed = [
        f
        for f in check(machine(facts, looked), MATRICES).findings
        if f.severity == "error" and f.verdict == "fail"
    ]
    assert [f.rule for f in failed] == ["cuda-driver/minimum-libcuda"]
    assert "unknown" not in failed[0].title + failed[0].why
    assert len(failed[0].fix) == 1


def test_a_derived_fact_is_no_surer_than_what_it_rests_on() -> None:
    """A bare release number: the build of the package index is likely, of pip it is certain."""
    facts = {"torch.version": "2.11.0", "driver.version": "570.86.10"}
    told = {**facts, "dist.torch.installer": "pip"}
    for seen, sure in ((facts, "medium"), (told, "high")):
        derived = derive(machine(seen), MATRICES)
        for name, value in (("torch.cuda.version", "13.0"), ("torch.build_tag", "cu130")):
            answer = derived.ask(name)
            assert isinstance(answer, Fact)
            assert (answer.value, answer.confidence) == (value, sure)
        assert isinstance(derived.ask("torch.arch_list"), Fact)
        (found,) = [
            f
            for f in check(machine(seen), MATRICES).findings
            if f.cause == "driver-too-old" and f.verdict == "fail"
        ]
        severity = "error" if sure == "high" else "note"
        assert (found.cause, found.severity) == ("driver-too-old", severity)


@pytest.mark.parametrize(
    "more",
    [{"os.id": "windows"}, {"os.arch": "aarch64"}, {"python.environment": "conda"}]
    + [{"dist.torch.installer": "conda"}, {"torch.version": "2.11.0a0+git1"}],
)
def test_only_the_index_of_linux_has_that_build(more: dict[str, Any]) -> None:
    derived = derive(machine({"torch.version": "2.11.0", **more}), MATRICES)
    assert isinstance(derived.ask("torch.cuda.version"), Unknown)


def test_a_build_for_arm_has_a_list_of_its_own() -> None:
    seen = machine({"torch.version": "2.11.0+cu130", "os.arch": "aarch64"})
    answer = derive(seen, MATRICES).ask("torch.arch_list")
    assert isinstance(answer, Fact)
    assert isinstance(answer.value, list)
    assert "sm_110" in answer.value


@pytest.mark.parametrize(
    ("device", "capability"), [("102D", "3.7"), ("1C81", "6.1"), ("1BB3", "6.1"), ("1DB4", "7.0")]
)
def test_a_pci_id_tells_an_old_gpu_for_sure(device: str, capability: str) -> None:
    """Nobody else names a GPU that the driver does not serve any more."""
    facts = {"gpu.0.pci.device": device, "driver.version": "595.58.03"}
    answer = derive(machine(facts), MATRICES).ask("gpu.0.compute_capability")
    assert isinstance(answer, Fact)
    assert (answer.value, answer.confidence) == (capability, "high")
    (found,) = [
        f
        for f in check(machine(facts), MATRICES).findings
        if f.severity == "error" and f.verdict == "fail"
    ]
    assert (found.cause, found.severity) == ("gpu-dropped-by-driver", "error")
