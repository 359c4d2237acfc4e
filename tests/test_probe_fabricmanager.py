"""The fabric manager and running services."""

from __future__ import annotations

from pathlib import Path

import pytest

from envaudit.host import Host
from envaudit.probes.fabricmanager import SERVICES
from tests.probing import Told, machine, probe


def look(
    tmp_path: Path,
    *programs: str,
    files: dict[str, str] | None = None,
    packages: dict[str, str] | None = None,
    everything: bool = True,
) -> Told:
    names = ["systemd", *(["kthreadd"] if everything else []), *programs]
    processes = {f"/proc/{n}/comm": name[:15] + "\n" for n, name in enumerate(names, 1)}
    return probe(
        "fabricmanager", machine(tmp_path, {**processes, **(files or {})}), before=packages
    )


@pytest.mark.parametrize(
    ("package", "version", "said"),
    [
        ("nvidia-fabricmanager-535", "535.183.01-1", "535.183.01"),
        ("nvidia-fabricmanager", "580.95.05-0ubuntu0.24.04.1", "580.95.05"),
        ("nvidia-fabric-manager", "3:550.54.15-1.el9", "550.54.15"),
    ],
)
def test_version_by_its_package(tmp_path: Path, package: str, version: str, said: str) -> None:
    told = look(tmp_path, packages={f"pkg.{package}.version": version})
    assert told.facts["fabricmanager.version"] == said


@pytest.mark.parametrize(
    "package", ["nvidia-fabricmanager-dev-535", "cuda-drivers-fabricmanager", "nvidia-driver-535"]
)
def test_other_packages_are_not_it(tmp_path: Path, package: str) -> None:
    told = look(tmp_path, packages={f"pkg.{package}.version": "535.183.01-1"})
    assert "fabricmanager.version" not in told.facts
    assert "fabricmanager.version" not in told.gaps


def test_a_program_of_no_package_has_an_unknown_version(tmp_path: Path) -> None:
    told = look(tmp_path, files={"/usr/bin/nv-fabricmanager": ""})
    assert "fabricmanager.version" in told.gaps


def test_what_runs(tmp_path: Path) -> None:
    told = look(tmp_path, "nv-fabricmanager", "nvidia-persistenced", "dockerd", "containerd-shim")
    assert told.facts["fabricmanager.active"] is True
    assert told.facts["driver.persistenced.active"] is True
    assert told.facts["service.nvidia-fabricmanager.active"] is True
    assert told.facts["service.docker.active"] is True
    assert told.facts["service.containerd.active"] is False
    assert told.facts["service.nvidia-imex.active"] is False


def test_from_inside_a_container_what_is_not_seen_is_unknown(tmp_path: Path) -> None:
    told = look(tmp_path, "nvidia-persistenced", everything=False)
    assert told.facts["driver.persistenced.active"] is True
    assert "fabricmanager.active" not in told.facts
    assert "hidden" in told.gaps["fabricmanager.active"]
    assert "hidden" in told.gaps["service.docker.active"]


def test_without_proc_nothing_is_said(tmp_path: Path) -> None:
    told = probe("fabricmanager", machine(tmp_path))
    assert not told.facts
    assert "service.*" in told.gaps


def test_an_image_runs_nothing(tmp_path: Path) -> None:
    machine(tmp_path, {"/proc/1/comm": "systemd\n"})
    told = probe("fabricmanager", Host(str(tmp_path / "root")))
    assert not told.facts
    assert "fabricmanager.active" in told.gaps


def test_no_two_services_look_alike_in_comm() -> None:
    assert len({program[:15] for program in SERVICES.values()}) == len(SERVICES)


def test_this_machine() -> None:
    told = probe("fabricmanager", Host())
    assert "fabricmanager.active" in {**told.facts, **told.gaps}
