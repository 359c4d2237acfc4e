"""NVIDIA functions on the PCI bus, from /sys."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envaudit.host import Host
from envaudit.probes import pci
from tests.probing import Told, machine, probe

BRIDGE = "/sys/devices/pci0000:00/0000:00:01.0"
DRIVERS = "/sys/bus/pci/drivers"


def function(
    address: str,
    ids: str,
    class_code: str,
    driver: str | None = None,
    above: str = BRIDGE,
    subsystem: str = "1458:40bf",
) -> tuple[dict[str, str | bytes], dict[str, str]]:
    """Files and links of one function, laid out as the kernel does."""
    place = f"{above}/{address}"
    vendor, device = ids.split(":")
    files: dict[str, str | bytes] = {
        f"{place}/vendor": f"0x{vendor}\n",
        f"{place}/device": f"0x{device}\n",
        f"{place}/class": f"0x{class_code}\n",
        f"{place}/subsystem_vendor": f"0x{subsystem[:4]}\n",
        f"{place}/subsystem_device": f"0x{subsystem[5:]}\n",
    }
    links = {f"/sys/bus/pci/devices/{address}": f"../../..{place[4:]}"}
    if driver:
        links[f"{place}/driver"] = f"{DRIVERS}/{driver}"
    return files, links


GPU = function("0000:01:00.0", "10de:2684", "030000", "nvidia")
AUDIO = function("0000:01:00.1", "10de:22ba", "040300", "snd_hda_intel")
INTEL = function("0000:00:02.0", "8086:a780", "030000", "i915", "/sys/devices/pci0000:00")


def look(
    tmp_path: Path,
    *functions: tuple[dict[str, str | bytes], dict[str, str]],
    files: Mapping[str, str | bytes] | None = None,
    nvml: str = "ok",
    before: Mapping[str, Any] | None = None,
) -> Told:
    every = {"/sys/bus/pci/devices/.keep": "", **(files or {})}
    links: dict[str, str] = {}
    for its_files, its_links in functions:
        every.update(its_files)
        links.update(its_links)
    return probe(
        "pci", machine(tmp_path, every, links), before={"nvml.status": nvml, **(before or {})}
    )


def test_a_gpu_with_its_driver(tmp_path: Path) -> None:
    told = look(tmp_path, GPU, AUDIO, INTEL)
    assert told.facts["gpu.driver_bound"] == ["0000:01:00.0 10de:2684 display nvidia"]
    assert told.facts["pci.gpu.count"] == 1
    assert told.facts["pci.gpu.0.address"] == "0000:01:00.0"
    assert told.facts["pci.gpu.0.id"] == "10de:2684"
    assert told.facts["pci.gpu.0.driver"] == "nvidia"
    assert told.facts["nvswitch.count"] == 0
    assert "gpu.0.pci.address" not in told.facts


def test_gpus_of_two_drivers_and_of_none(tmp_path: Path) -> None:
    told = look(
        tmp_path,
        function("0000:02:00.0", "10de:2684", "030000", "nouveau"),
        function("0000:03:00.0", "10de:20b0", "030200", "vfio-pci"),
        function("0000:04:00.0", "10de:20b0", "030200"),
    )
    drivers = [told.facts[f"pci.gpu.{n}.driver"] for n in range(3)]
    assert drivers == ["nouveau", "vfio-pci", "none"]
    assert told.facts["pci.gpu.count"] == 3


def test_nvswitches_are_counted_apart(tmp_path: Path) -> None:
    told = look(
        tmp_path,
        GPU,
        function("0000:85:00.0", "10de:22a3", "068000", "nvidia-nvswitch"),
        function("0000:86:00.0", "10de:22a3", "068000"),
    )
    assert told.facts["nvswitch.count"] == 2
    assert told.facts["pci.gpu.count"] == 1
    assert told.facts["gpu.driver_bound"][1] == "0000:85:00.0 10de:22a3 nvswitch nvidia-nvswitch"


def test_virtual_functions_are_not_gpus_of_their_own(tmp_path: Path) -> None:
    files, links = function("0000:01:00.4", "10de:2684", "030200", "nvidia")
    links[f"{BRIDGE}/0000:01:00.4/physfn"] = "../0000:01:00.0"
    assert look(tmp_path, GPU, (files, links)).facts["pci.gpu.count"] == 1


def test_where_nvml_saw_nothing_the_bus_order_stands_in(tmp_path: Path) -> None:
    told = look(
        tmp_path,
        function("0000:af:00.0", "10de:20b0", "030200", subsystem="10de:134f"),
        GPU,
        nvml="Driver Not Loaded",
    )
    assert told.facts["gpu.0.pci.address"] == "0000:01:00.0"
    assert told.facts["gpu.1.pci.address"] == "0000:af:00.0"
    assert told.facts["gpu.1.pci.id"] == "10de:20b0 10de:134f"
    assert told.facts["gpu.1.pci.device"] == "20B0"


NVML_SEES_ONE = {"gpu.count": 1, "gpu.0.pci.address": "0000:01:00.0"}
P4 = function("0000:af:00.0", "10de:1bb3", "030200", subsystem="10de:11d8")


def test_a_gpu_that_nvml_leaves_out_comes_behind_its_own(tmp_path: Path) -> None:
    told = look(tmp_path, GPU, P4, before=NVML_SEES_ONE)
    assert told.facts["gpu.1.pci.address"] == "0000:af:00.0"
    assert told.facts["gpu.1.pci.device"] == "1BB3"
    assert "gpu.0.pci.address" not in told.facts


@pytest.mark.parametrize(
    "before",
    [
        {**NVML_SEES_ONE, "container.runtime": "docker"},
        {"gpu.count": 1},
        {"gpu.count": 2, "gpu.0.pci.address": "0000:01:00.0"},
        {},
    ],
)
def test_what_nvml_chose_to_show_is_left_alone(tmp_path: Path, before: Mapping[str, Any]) -> None:
    told = look(tmp_path, GPU, P4, before=before)
    assert not [name for name in told.facts if name.startswith("gpu.1.")]


def test_a_gpu_given_to_another_driver_is_not_missed(tmp_path: Path) -> None:
    given = function("0000:af:00.0", "10de:1bb3", "030200", "vfio-pci")
    told = look(tmp_path, GPU, given, before=NVML_SEES_ONE)
    assert not [name for name in told.facts if name.startswith("gpu.1.")]


def test_a_bus_without_a_gpu_is_an_answer(tmp_path: Path) -> None:
    told = look(tmp_path, INTEL)
    assert told.facts == {"pci.gpu.count": 0, "nvswitch.count": 0}
    assert not told.gaps


@pytest.mark.parametrize(
    "files",
    [
        {"/dev/dxg": ""},
        {"/proc/sys/kernel/osrelease": "5.15.167.4-microsoft-standard-WSL2\n"},
        {"/etc/nv_tegra_release": "# R36 (release)\n"},
        {"/dev/nvmap": ""},
    ],
)
def test_where_gpus_are_not_on_the_bus_nothing_is_counted(
    tmp_path: Path, files: dict[str, str]
) -> None:
    told = look(tmp_path, files=files)
    assert not told.facts
    for name in ("gpu.driver_bound", "pci.gpu.*", "nvswitch.count"):
        assert name in told.gaps


def test_a_card_in_a_jetson_is_counted(tmp_path: Path) -> None:
    told = look(tmp_path, GPU, files={"/etc/nv_tegra_release": ""})
    assert told.facts["pci.gpu.count"] == 1


def test_no_bus_at_all_is_unknown(tmp_path: Path) -> None:
    told = probe("pci", machine(tmp_path))
    assert not told.facts
    assert told.gaps["pci.gpu.*"] == "no /sys/bus/pci/devices"


def test_an_image_has_no_bus(tmp_path: Path) -> None:
    machine(tmp_path, {"/sys/bus/pci/devices/.keep": ""})
    told = probe("pci", Host(str(tmp_path / "root")))
    assert not told.facts
    assert "pci.gpu.*" in told.gaps


def config_space(control: int | None, size: int = 4096) -> bytes:
    """PCIe configuration space with another capability before ACS at 0x140."""
    data = bytearray(4096)
    struct.pack_into("<I", data, 0x100, 0x0001 | 2 << 16 | 0x140 << 20)
    if control is not None:
        struct.pack_into("<IHH", data, 0x140, 0x000D | 1 << 16, 0x5F, control)
    return bytes(data[:size])


@pytest.mark.parametrize(
    ("config", "enabled"),
    [
        (config_space(0x1D), True),
        (config_space(0x04), True),
        (config_space(0x01), False),
        (config_space(0), False),
        (config_space(None), False),
    ],
)
def test_acs_of_the_bridge_above(tmp_path: Path, config: bytes, enabled: bool) -> None:
    bridge = function("0000:00:01.0", "8086:7a44", "060400", "pcieport", "/sys/devices/pci0000:00")
    told = look(tmp_path, bridge, GPU, files={f"{BRIDGE}/config": config})
    assert told.facts["pci.acs.enabled"] is enabled


def test_acs_without_root_is_unknown(tmp_path: Path) -> None:
    bridge = function("0000:00:01.0", "8086:7a44", "060400", "pcieport", "/sys/devices/pci0000:00")
    told = look(tmp_path, bridge, GPU, files={f"{BRIDGE}/config": config_space(0, 64)})
    assert "needs root" in told.gaps["pci.acs.enabled"]
    assert told.facts["pci.gpu.count"] == 1


def test_bridges_above() -> None:
    path = "/sys/devices/pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:02.0/0000:18:00.0"
    assert pci.bridges_above(path) == ["0000:15:01.0", "0000:16:00.0", "0000:17:02.0"]
    assert pci.bridges_above("/sys/devices/pci0000:00/0000:00:05.0") == []


@given(st.binary(max_size=600))
def test_acs_parser_never_raises(data: bytes) -> None:
    pci.acs_control(data)
    pci.acs_control(bytes(0x100) + data)


def test_a_capability_chain_that_runs_in_circles_ends() -> None:
    data = bytearray(4096)
    struct.pack_into("<I", data, 0x100, 0x0001 | 0x100 << 20)
    assert pci.acs_control(bytes(data)) is None


def test_this_machine() -> None:
    assert probe("pci", Host()).facts.get("pci.gpu.count", 0) >= 0
