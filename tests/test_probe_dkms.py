"""DKMS from its own folders."""

from __future__ import annotations

from pathlib import Path

import pytest

from envaudit.host import Host
from tests.probing import Told, machine, probe

KERNEL = "6.8.0-45-generic"
TREE = "/var/lib/dkms/nvidia"
FAILED_LOG = f"""\
DKMS make.log for nvidia-580.95.05 for kernel {KERNEL} (x86_64)
Mon Oct  6 10:00:00 UTC 2025
/var/lib/dkms/nvidia/580.95.05/build/nvidia/nv-dma.c:769:5: error: implicit declaration
make[1]: *** [Makefile:1652: /var/lib/dkms/nvidia/580.95.05/build] Error 2
"""


def look(
    tmp_path: Path, files: dict[str, str], links: dict[str, str] | None = None, kernel: str = KERNEL
) -> Told:
    running: dict[str, str | bytes] = {"/proc/sys/kernel/osrelease": kernel + "\n"}
    return probe("dkms", machine(tmp_path, {**running, **files}, links))


def built(version: str = "580.95.05", kernel: str = KERNEL, tree: str = TREE) -> dict[str, str]:
    return {
        f"{tree}/{version}/{kernel}/x86_64/module/nvidia.ko.zst": "",
        f"{tree}/{version}/{kernel}/x86_64/log/make.log": "",
    }


def added(version: str = "580.95.05", tree: str = TREE) -> dict[str, str]:
    return {f"{tree}/{version}/source": f"/usr/src/nvidia-{version}"}


def installed(version: str = "580.95.05", kernel: str = KERNEL, tree: str = TREE) -> dict[str, str]:
    return {f"{tree}/kernel-{kernel}-x86_64": f"{version}/{kernel}/x86_64"}


def test_no_dkms_is_an_answer(tmp_path: Path) -> None:
    told = look(tmp_path, {})
    assert told.facts == {"dkms.installed": False}
    assert not told.gaps


def test_an_installed_module(tmp_path: Path) -> None:
    told = look(tmp_path, {"/usr/sbin/dkms": "", **built()}, {**added(), **installed()})
    assert told.facts == {
        "dkms.installed": True,
        "dkms.nvidia.status": "installed",
        "dkms.nvidia.kernels": [KERNEL],
    }
    assert told.sources["dkms.nvidia.status"] == f"{TREE}/kernel-{KERNEL}-x86_64"


def test_a_built_module_that_is_not_installed(tmp_path: Path) -> None:
    assert look(tmp_path, built(), added()).facts["dkms.nvidia.status"] == "built"


def test_an_added_module_that_was_never_built(tmp_path: Path) -> None:
    told = look(tmp_path, {}, added())
    assert told.facts["dkms.nvidia.status"] == "added"
    assert "dkms.nvidia.kernels" not in told.facts


def test_a_module_built_for_the_old_kernel_alone_is_only_added_for_this_one(tmp_path: Path) -> None:
    old = "6.8.0-40-generic"
    told = look(tmp_path, built(kernel=old), {**added(), **installed(kernel=old)})
    assert told.facts["dkms.nvidia.status"] == "added"
    assert told.facts["dkms.nvidia.kernels"] == [old]


@pytest.mark.parametrize(
    "log",
    [
        FAILED_LOG,
        FAILED_LOG.replace("Error 2", "Ошибка 2").replace("error:", "ошибка:"),
        FAILED_LOG.replace("DKMS make.log for nvidia-", "DKMS (dkms-3.2.2) make.log for nvidia/"),
        f"DKMS make.log for nvidia-580 for kernel {KERNEL} (x86_64)\n# exit code: 2\n",
    ],
)
def test_a_build_that_broke_off(tmp_path: Path, log: str) -> None:
    told = look(tmp_path, {f"{TREE}/580.95.05/build/make.log": log}, added())
    assert told.facts["dkms.nvidia.status"] == "failed"
    assert told.sources["dkms.nvidia.status"] == f"{TREE}/580.95.05/build/make.log"


@pytest.mark.parametrize(
    "log",
    [
        FAILED_LOG.replace(KERNEL, "6.12.0-1"),
        f"DKMS make.log for nvidia-580.95.05 for kernel {KERNEL} (x86_64)\n  CC [M] nv-error.o\n",
        "",
        "noise\n",
    ],
)
def test_a_log_of_another_kernel_or_without_an_error_is_no_failure(
    tmp_path: Path, log: str
) -> None:
    told = look(tmp_path, {f"{TREE}/580.95.05/build/make.log": log}, added())
    assert told.facts["dkms.nvidia.status"] == "added"


def test_what_is_installed_counts_before_another_version_that_failed(tmp_path: Path) -> None:
    told = look(
        tmp_path,
        {**built("535.183.01"), f"{TREE}/580.95.05/build/make.log": FAILED_LOG},
        {**added(), **added("535.183.01"), **installed("535.183.01")},
    )
    assert told.facts["dkms.nvidia.status"] == "installed"


@pytest.mark.parametrize(
    "name",
    ["nvidia", "nvidia-open", "nvidia-current", "nvidia-current-open", "nvidia-srv"]
    + ["nvidia-tesla-470", "nvidia-legacy-390xx", "nvidia340", "nvidia-384"],
)
def test_names_of_the_driver(tmp_path: Path, name: str) -> None:
    tree = f"/var/lib/dkms/{name}"
    told = look(tmp_path, built(tree=tree), installed(tree=tree))
    assert told.facts["dkms.nvidia.status"] == "installed"


@pytest.mark.parametrize("name", ["nvidia-fs", "nvidia-peermem", "vboxhost", "r8168"])
def test_names_of_other_modules(tmp_path: Path, name: str) -> None:
    tree = f"/var/lib/dkms/{name}"
    told = look(tmp_path, built(tree=tree), installed(tree=tree))
    assert "dkms.nvidia.status" not in told.facts


def test_odd_things_in_the_tree(tmp_path: Path) -> None:
    told = look(
        tmp_path,
        {
            f"{TREE}/dkms_dbversion": "2.0.0",
            f"{TREE}/original_module/{KERNEL}/x86_64/nvidia.ko": "",
            f"{TREE}/580.95.05/{KERNEL}/x86_64/module/.keep": "",
            f"{TREE}/580.95.05/{KERNEL}/stray": "",
        },
        added(),
    )
    assert told.facts["dkms.nvidia.status"] == "added"


def test_an_image_does_not_tell_which_kernel_runs(tmp_path: Path) -> None:
    machine(tmp_path, {**built()}, installed())
    told = probe("dkms", Host(str(tmp_path / "root")))
    assert told.facts["dkms.nvidia.kernels"] == [KERNEL]
    assert "dkms.nvidia.status" in told.gaps


def test_this_machine() -> None:
    assert "dkms.installed" in probe("dkms", Host()).facts
