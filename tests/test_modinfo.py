"""Kernel module files, read without modinfo."""

from __future__ import annotations

import contextlib
import gzip
import lzma
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envaudit import modinfo
from envaudit.modinfo import ModuleInfo
from tests.making import clear_signature, kernel_module, pkcs7_signature
from tests.probing import machine

OPEN = {
    "version": "580.95.05",
    "supported": "external",
    "license": "Dual MIT/GPL",
    "firmware": "nvidia/580.95.05/gsp_tu10x.bin",
    "srcversion": "0123456789ABCDEF",
    "vermagic": "6.8.0-45-generic SMP preempt mod_unload modversions ",
}
SIGNED = kernel_module(OPEN, pkcs7_signature("ubuntu Secure Boot Module Signature key"))
WANTED = ModuleInfo("580.95.05", "Dual MIT/GPL", "ubuntu Secure Boot Module Signature key")


def from_bytes(data: bytes) -> ModuleInfo | None:
    return modinfo.from_file(lambda at, length: data[at : at + length], len(data))


def pieces(data: bytes, size: int) -> list[bytes]:
    return [data[i : i + size] for i in range(0, len(data), size)]


def test_a_signed_module() -> None:
    assert from_bytes(SIGNED) == WANTED


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("order", ["<", ">"])
def test_every_class_and_byte_order(bits: int, order: str) -> None:
    assert from_bytes(kernel_module(OPEN, bits=bits, order=order)) == WANTED._replace(signer="none")


def test_an_unsigned_module_has_no_signer() -> None:
    info = from_bytes(kernel_module({**OPEN, "license": "NVIDIA"}))
    assert info == ModuleInfo("580.95.05", "NVIDIA", "none")


def test_a_signature_of_an_old_kernel_names_its_signer_in_clear() -> None:
    info = from_bytes(kernel_module(OPEN, clear_signature("Fedora kernel signing key")))
    assert info is not None
    assert info.signer == "Fedora kernel signing key"


def test_a_key_may_go_by_a_number_alone() -> None:
    info = from_bytes(kernel_module(OPEN, pkcs7_signature(None)))
    assert info is not None
    assert info.signer == "a key without a name"


@pytest.mark.parametrize("data", [b"", b"\x7fELF", b"x" * 5000, SIGNED[:70], bytes(64)])
def test_what_is_no_module_tells_nothing(data: bytes) -> None:
    assert from_bytes(data) is None


@pytest.mark.parametrize("size", [1 << 20, 1000, 97])
@pytest.mark.parametrize("text", [b"", b"\0" * 3000, bytes(range(256)) + b"i\x01", b"an end="])
def test_a_stream_tells_the_same(size: int, text: bytes) -> None:
    data = kernel_module(OPEN, pkcs7_signature("key"), text=text, parameters=300)
    assert modinfo.from_stream(pieces(data, size)) == from_bytes(data)


def test_a_stream_without_a_module_tells_nothing() -> None:
    assert modinfo.from_stream([]) is None
    assert modinfo.from_stream([b"nothing", b"here"]) is None


@pytest.mark.parametrize(("suffix", "pack"), [(".gz", gzip.compress), (".xz", lzma.compress)])
def test_compressed_modules(suffix: str, pack: object) -> None:
    assert callable(pack)
    big = kernel_module(OPEN, pkcs7_signature("key"), text=os.urandom(3 << 20))
    packed = pack(big)
    chunks = modinfo.decompressed(lambda at, length: packed[at : at + length], suffix)
    assert modinfo.from_stream(chunks) == ModuleInfo("580.95.05", "Dual MIT/GPL", "key")


@pytest.mark.parametrize(("suffix", "pack"), [(".gz", gzip.compress), (".xz", lzma.compress)])
@settings(max_examples=30)
@given(cut=st.integers(0, 400), noise=st.binary(max_size=40))
def test_broken_compression_is_a_value_error_at_most(
    suffix: str, pack: object, cut: int, noise: bytes
) -> None:
    assert callable(pack)
    packed = pack(SIGNED)[:cut] + noise
    with contextlib.suppress(ValueError):
        modinfo.from_stream(modinfo.decompressed(lambda a, n: packed[a : a + n], suffix))


@given(st.integers(0, len(SIGNED) - 1), st.integers(0, 255), st.integers(0, len(SIGNED)))
def test_damage_never_raises(at: int, byte: int, cut: int) -> None:
    bad = bytearray(SIGNED)
    bad[at] = byte
    from_bytes(bytes(bad))
    from_bytes(SIGNED[:cut])
    modinfo.from_stream(pieces(bytes(bad), 64))


def test_output_of_the_modinfo_command() -> None:
    text = (
        "filename:       /lib/modules/6.8.0/updates/dkms/nvidia.ko.zst\n"
        "version:        580.95.05\nlicense:        Dual MIT/GPL\n"
        "vermagic:       6.8.0 SMP preempt\nsig_id:         PKCS#7\n"
        "signer:         box Secure Boot Module Signature key\nsig_key:        4F:00\n"
        "\t\t01:02\nparm:           NVreg_X:int\n"
    )
    assert modinfo.from_text(text) == ModuleInfo(
        "580.95.05", "Dual MIT/GPL", "box Secure Boot Module Signature key"
    )
    assert modinfo.from_text("version: 1\nlicense: NVIDIA\n") == ModuleInfo("1", "NVIDIA", "none")
    assert modinfo.from_text("modinfo: ERROR: Module x not found.\n") is None


@given(st.text())
def test_the_text_reader_never_raises(text: str) -> None:
    modinfo.from_text(text)


def test_flavour_is_the_license() -> None:
    assert modinfo.flavor("NVIDIA") == "proprietary"
    assert modinfo.flavor("Dual MIT/GPL") == "open"
    assert modinfo.flavor("GPL") is None
    assert modinfo.flavor(None) is None


DEP = """\
kernel/drivers/gpu/drm/nouveau/nouveau.ko.zst: kernel/drivers/video/video.ko.zst
kernel/drivers/platform/x86/nvidia-wmi-ec-backlight.ko.zst:
updates/dkms/nvidia-drm.ko.zst: updates/dkms/nvidia-modeset.ko.zst updates/dkms/nvidia.ko.zst
updates/dkms/nvidia.ko.zst: kernel/drivers/i2c/i2c-core.ko.zst
updates/dkms/nvidia-uvm.ko.zst: updates/dkms/nvidia.ko.zst
"""


def test_modules_dep_names_the_file_that_wins() -> None:
    assert modinfo.parse_modules_dep(DEP.encode()) == ["updates/dkms/nvidia.ko.zst"]


@pytest.mark.parametrize(
    ("name", "is_driver"),
    [
        ("nvidia.ko", True),
        ("nvidia-current.ko.xz", True),
        ("nvidia-current-open.ko", True),
        ("nvidia-tesla-470.ko", True),
        ("nvidia-legacy-390xx.ko", True),
        ("nvidia_384.ko", True),
        ("nvidia-current-uvm.ko", False),
        ("nvidia-tesla-470-drm.ko", False),
        ("nvidia-uvm.ko", False),
        ("nvidia-fs.ko", False),
        ("nvidiafb.ko", False),
        ("nvidia.ko.bak", False),
    ],
)
def test_names_of_the_driver_among_its_sisters(name: str, is_driver: bool) -> None:
    found = modinfo.parse_modules_dep(f"updates/{name}: x\n".encode())
    assert found == ([f"updates/{name}"] if is_driver else [])


@given(st.binary())
def test_modules_dep_never_raises(data: bytes) -> None:
    modinfo.parse_modules_dep(data)
    modinfo.parse_modules_dep(b"/nvidia.ko" + data)


@pytest.mark.parametrize(
    "place",
    [
        "updates/nvidia.ko",
        "updates/dkms/nvidia.ko.xz",
        "extra/nvidia/nvidia.ko.xz",
        "extra/nvidia/580/nvidia.ko",
        "weak-updates/nvidia/nvidia.ko",
        "kernel/drivers/video/nvidia.ko",
        "kernel/drivers/video/nvidia/nvidia.ko",
        "kernel/nvidia-535/nvidia.ko",
        "extramodules/nvidia.ko.zst",
        "video/nvidia.ko",
    ],
)
def test_a_module_that_depmod_does_not_know_is_found(place: str, tmp_path: Path) -> None:
    host = machine(
        tmp_path, {f"/lib/modules/6.8.0/{place}": b"", "/lib/modules/6.8.0/modules.dep": ""}
    )
    assert list(modinfo.module_files(host, "/lib/modules/6.8.0")) == [f"/lib/modules/6.8.0/{place}"]


def test_depmods_choice_comes_first_and_a_vanished_file_not_at_all(tmp_path: Path) -> None:
    top = "/lib/modules/6.8.0"
    host = machine(
        tmp_path,
        {
            f"{top}/modules.dep": "updates/dkms/nvidia.ko:\nextra/nvidia.ko:\n",
            f"{top}/extra/nvidia.ko": b"",
            f"{top}/kernel/nvidia-535/nvidia.ko": b"",
        },
    )
    assert next(modinfo.module_files(host, top)) == f"{top}/extra/nvidia.ko"


def test_a_deep_tree_is_not_walked_for_ever(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        f"/lib/modules/6.8.0/extra/{n}/a/b/c/x": b"" for n in range(300)
    }
    host = machine(tmp_path, {**files, "/lib/modules/6.8.0/extra/1/2/3/4/nvidia.ko": b""})
    assert list(modinfo.module_files(host, "/lib/modules/6.8.0")) == []
