"""Databases that real dpkg, rpm and dnf wrote, with what these programs themselves say of them."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from envaudit.stack import wanted
from tests.real import parts
from tests.real.parts import RpmTools, envaudit, snapshot, values

pytestmark = pytest.mark.real


def versions(seen: Any) -> dict[str, str]:
    """Package name to version, as a look tells them."""
    return {
        name.removeprefix("pkg.").removesuffix(".version"): fact["value"]
        for name, fact in seen["facts"].items()
        if name.startswith("pkg.") and name.endswith(".version")
    }


def look_at(root: Path, file: Path | None = None) -> Any:
    """A look at a root folder, kept in a file where one is given."""
    seen = snapshot("--root", str(root))
    if file is not None:
        done = envaudit("snapshot", "--root", str(root), "-o", str(file))
        assert done.code == 0, done.err
    return seen


def changes_between(*files: Path) -> dict[str, tuple[Any, Any, str]]:
    """What `envaudit diff` names: fact to before, after and kind of the change."""
    done = envaudit("diff", *map(str, files), "--format", "json")
    assert done.code == 0, done.err
    return {c["fact"]: (c["before"], c["after"], c["kind"]) for c in done.json["changes"]}


# -- dpkg --------------------------------------------------------------------------------------

QUERY = "${Package}|${Architecture}|${db:Status-Status}|${db:Status-Want}|${Version}\n"
INSTALLED = ("installed", "unpacked", "half-configured", "triggers-awaited", "triggers-pending")


def dpkg_says(*options: str) -> dict[str, str]:
    """Package name to version of what dpkg-query lists as installed; foreign ones as name:arch."""
    native = parts.output(["dpkg", "--print-architecture"]).strip()
    found = {}
    for line in parts.output(["dpkg-query", *options, "-W", f"-f={QUERY}"]).splitlines():
        name, arch, status, _, version = line.split("|")
        if status in INSTALLED:
            found[name if arch in (native, "all") else f"{name}:{arch}"] = version
    return found


class Dpkg:
    """A root folder with the dpkg database of this machine, changed by real dpkg alone."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "root"
        self.work = folder / "debs"
        self.work.mkdir()
        state = self.root / "var/lib/dpkg"
        for name in ("info", "updates", "triggers"):
            state.joinpath(name).mkdir(parents=True)
        shutil.copy("/var/lib/dpkg/status", state / "status")
        state.joinpath("available").touch()
        self.root.joinpath("etc").mkdir()
        shutil.copy("/etc/os-release", self.root / "etc/os-release")

    def dpkg(self, *args: str) -> None:
        log = f"--log={self.work}/dpkg.log"
        parts.output(["dpkg", f"--root={self.root}", "--force-not-root", log, *args])

    def install(self, name: str, version: str) -> None:
        tree = self.work / f"{name}-{version}"
        control = f"Package: {name}\nVersion: {version}\nArchitecture: all\nDescription: none\n"
        for path, text in (
            ("DEBIAN/control", control + "Maintainer: nobody <nobody@example.org>\n"),
            ("DEBIAN/conffiles", f"/etc/{name}.conf\n"),
            (f"etc/{name}.conf", "# empty\n"),
            (f"usr/lib/x86_64-linux-gnu/nvidia/{name}.{version}", "a file\n"),
        ):
            file = tree / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        package = self.work / f"{name}-{version}.deb"
        parts.output(["dpkg-deb", "--root-owner-group", "-b", str(tree), str(package)])
        self.dpkg("-i", str(package))

    def says(self) -> dict[str, str]:
        return dpkg_says(f"--admindir={self.root}/var/lib/dpkg")


@pytest.fixture
def dpkg(tmp_path: Path) -> Dpkg:
    return Dpkg(tmp_path)


def test_the_packages_of_this_machine_are_those_of_dpkg_query() -> None:
    said = {name: version for name, version in dpkg_says().items() if wanted(name.split(":")[0])}
    assert versions(snapshot()) == said
    assert {"libc6", "libstdc++6", "gcc"} <= set(said)


def test_packages_come_change_stay_held_and_go(dpkg: Dpkg, tmp_path: Path) -> None:
    files = [tmp_path / f"{number}.json" for number in range(4)]
    before = versions(look_at(dpkg.root, files[0]))

    dpkg.install("libcuda1", "535.261.03-1")
    dpkg.install("nvidia-smi", "535.261.03-1")
    dpkg.install("not-of-interest", "1:2.0-1")
    assert versions(look_at(dpkg.root, files[1])) == before | {
        "libcuda1": "535.261.03-1",
        "nvidia-smi": "535.261.03-1",
    }

    dpkg.install("libcuda1", "550.163.01-2")
    dpkg.dpkg("--remove", "nvidia-smi")  # its conffile stays, so dpkg keeps its record
    selections = f"echo libcuda1 hold | dpkg --root={dpkg.root} --force-not-root --set-selections"
    parts.output(["sh", "-c", selections])
    seen = look_at(dpkg.root, files[2])
    assert versions(seen) == before | {"libcuda1": "550.163.01-2"}
    assert values(seen, "pkg.libcuda1.held") == {"pkg.libcuda1.held": True}
    assert "nvidia-smi" not in dpkg.says()

    dpkg.dpkg("--purge", "--force-hold", "libcuda1")
    assert versions(look_at(dpkg.root, files[3])) == before

    first, second = "535.261.03-1", "550.163.01-2"
    assert changes_between(files[0], files[1]) == {
        "pkg.libcuda1.version": (None, first, "added"),
        "pkg.nvidia-smi.version": (None, first, "added"),
    }
    assert changes_between(files[1], files[2]) == {
        "pkg.libcuda1.version": (first, second, "upgraded"),
        "pkg.libcuda1.held": (None, True, "added"),
        "pkg.nvidia-smi.version": (first, None, "removed"),
    }
    changes = changes_between(files[2], files[0])
    assert changes["pkg.libcuda1.version"] == (second, None, "removed")
    assert changes_between(files[0], files[3]) == {}


def test_a_downgrade_is_called_one(dpkg: Dpkg, tmp_path: Path) -> None:
    new, old = "550.163.01-2", "535.309.01-0+deb12u1"
    parts.output(["dpkg", "--compare-versions", new, "gt", old])
    files = [tmp_path / "new.json", tmp_path / "old.json"]
    for version, file in zip((new, old), files, strict=True):
        dpkg.install("libnvidia-ml1", version)
        look_at(dpkg.root, file)
    assert changes_between(*files) == {"pkg.libnvidia-ml1.version": (new, old, "downgraded")}


# -- rpm and dnf -------------------------------------------------------------------------------

SPEC = """
%global debug_package %{{nil}}
%global __os_install_post %{{nil}}
%global _binary_payload w1.gzdio
Name: {name}
{epoch}Version: {version}
Release: {release}
Summary: {name}
License: none
AutoReqProv: no
%description
{name}
%install
{install}
%files
{files}
"""

DRIVER_SPEC = {
    "name": "nvidia-driver-cuda-libs",
    "epoch": "Epoch: 3\n",
    "release": "1.el9",
    "install": "mkdir -p %{buildroot}/usr/lib64\n"
    "cp LIBCUDA %{buildroot}/usr/lib64/libcuda.so.VERSION\n"
    "ln -s libcuda.so.VERSION %{buildroot}/usr/lib64/libcuda.so.1",
    "files": "/usr/lib64/libcuda.so.VERSION\n/usr/lib64/libcuda.so.1",
}


def spec(name: str, version: str, release: str, epoch: str = "") -> str:
    """The spec file of a package without files."""
    epoch = f"Epoch: {epoch}\n" if epoch else ""
    return SPEC.format(
        name=name, version=version, release=release, epoch=epoch, install="", files=""
    )


def driver_spec(branch: str) -> str:
    """The spec file of a package that holds the real libcuda of a driver."""
    real = parts.driver(branch)
    text = SPEC.format(version=real.version, **DRIVER_SPEC)
    return text.replace("LIBCUDA", real.file("libcuda")).replace("VERSION", real.version)


@pytest.fixture
def rpm(tmp_path: Path) -> RpmTools:
    return parts.rpm_tools(tmp_path / "home")


def test_what_rpm_installed(rpm: RpmTools, tmp_path: Path) -> None:
    root = tmp_path / "root"
    packages = [
        spec("nvidia-driver-cuda", "580.65.06", "1.el9", epoch="3"),
        spec("kernel-core", "5.14.0", "570.12.1.el9_6"),
        spec("kmod-nvidia-open-dkms", "580.65.06", "1.el9", epoch="3"),
        spec("libcudnn9-cuda-13", "9.13.0.50", "1"),
        spec("glibc", "2.34", "168.el9_6.20"),
        spec("bash", "5.1.8", "9.el9"),
    ]
    rpm.install(root, *(rpm.build(text, tmp_path / "rpms") for text in packages))
    seen = look_at(root)
    said = dict(
        line.split(" ", 1)
        for line in rpm.query(root, r"%{NAME} %|EPOCH?{%{EPOCH}:}|%{VERSION}-%{RELEASE}\n")
    )
    assert len(said) == len(packages)
    assert versions(seen) == {name: said[name] for name in said if name != "bash"}
    assert versions(seen)["nvidia-driver-cuda"] == "3:580.65.06-1.el9"
    assert seen["facts"]["pkg.glibc.version"]["source"] == "/var/lib/rpm/rpmdb.sqlite"


def test_kernels_side_by_side_and_a_foreign_library(rpm: RpmTools, tmp_path: Path) -> None:
    root = tmp_path / "root"
    for text, arch in (
        (spec("kernel-core", "5.14.0", "503.el9"), "x86_64"),
        (spec("kernel-core", "5.14.0", "570.el9"), "x86_64"),
        (spec("glibc", "2.34", "168.el9"), "x86_64"),
        (spec("glibc", "2.34", "168.el9"), "i686"),
    ):
        rpm.install(root, rpm.build(text, tmp_path / "rpms", arch))
    assert versions(look_at(root)) == {
        "kernel-core": "5.14.0-570.el9",
        "glibc": "2.34-168.el9",
        "glibc:i686": "2.34-168.el9",
    }


def test_a_system_that_dnf_installed_and_upgraded(rpm: RpmTools, tmp_path: Path) -> None:
    root, repository = tmp_path / "root", tmp_path / "repository"
    root.mkdir()
    repository.mkdir()
    files = [tmp_path / "old.json", tmp_path / "new.json"]

    def offer(text: str) -> None:
        shutil.copy(rpm.build(text, tmp_path / "rpms"), repository)

    name = f"pkg.{DRIVER_SPEC['name']}.version"
    offer(driver_spec("535"))
    offer(spec("kernel-core", "5.14.0", "503.el9"))
    rpm.dnf(root, repository, "install", DRIVER_SPEC["name"], "kernel-core")
    old = parts.driver("535").version
    seen = look_at(root, files[0])
    assert values(
        seen,
        name,
        "pkg.kernel-core.version",
        "driver.install_method",
        "driver.libcuda.path",
        "driver.library.version",
    ) == {
        name: f"3:{old}-1.el9",
        "pkg.kernel-core.version": "5.14.0-503.el9",
        "driver.install_method": "dnf",
        "driver.libcuda.path": f"/usr/lib64/libcuda.so.{old}",
        "driver.library.version": old,
    }

    offer(driver_spec("550"))
    rpm.dnf(root, repository, "upgrade")
    new = parts.driver("550").version
    assert values(look_at(root, files[1]), name) == {name: f"3:{new}-1.el9"}
    changes = changes_between(*files)
    assert changes[name] == (f"3:{old}-1.el9", f"3:{new}-1.el9", "upgraded")
    assert changes["driver.library.version"] == (old, new, "upgraded")
    assert "pkg.kernel-core.version" not in changes


def test_reading_a_database_leaves_it_as_it_was(rpm: RpmTools, tmp_path: Path) -> None:
    root = tmp_path / "root"
    rpm.install(root, rpm.build(spec("glibc", "2.34", "168.el9"), tmp_path / "rpms"))

    def files() -> dict[str, tuple[int, int]]:
        folder = root / "var/lib/rpm"
        return {
            name: ((folder / name).stat().st_mtime_ns, (folder / name).stat().st_size)
            for name in os.listdir(folder)
        }

    before = files()
    assert versions(look_at(root)) == {"glibc": "2.34-168.el9"}
    assert files() == before
