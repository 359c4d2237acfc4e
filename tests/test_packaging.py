"""What is shipped: wheel and sdist find the matrices, and the install is small."""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement

HERE = Path(__file__).parent.parent
PACKAGES_LIMIT = 18
SIZE_LIMIT_BYTES = 30 << 20


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist of this checkout and the wheel built from that sdist."""
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(HERE)],
        check=True,
        capture_output=True,
        timeout=120,
    )
    return folder


def test_the_wheel_holds_what_it_needs_and_judges(built: Path, tmp_path: Path) -> None:
    (wheel,) = built.glob("*.whl")
    assert wheel.name.endswith("-py3-none-any.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        archive.extractall(tmp_path / "site")
    for name in ("envaudit/in_target/ask.py", "envaudit/py.typed", "envaudit/_matrices/index.json"):
        assert name in names
    shipped = {n.split("_matrices/")[1] for n in names if "_matrices/" in n and n.endswith(".json")}
    assert shipped == {
        str(p.relative_to(HERE / "matrices")) for p in (HERE / "matrices").rglob("*.json")
    }
    assert not [name for name in names if name.startswith(("tests/", "snapshots/", "docs/"))]
    flat = tmp_path / "flat.json"
    flat.write_text('{"driver.version": "470.10", "torch.version": "2.14.1+cu130"}')
    done = subprocess.run(
        [sys.executable, "-c", RUN, "check", str(flat), "--format", "json"],
        env={"PYTHONPATH": str(tmp_path / "site"), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    assert str(tmp_path / "site") in done.stderr, "the wheel's own code must have run"
    assert "driver-too-old" in done.stdout


RUN = """
import sys
import envaudit, envaudit.cli
print(envaudit.__file__, file=sys.stderr)
envaudit.cli.main()
"""


def test_the_sdist_holds_the_tests_and_the_matrices(built: Path) -> None:
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    for name in (
        "matrices/rules/cuda-driver.json",
        "tests/test_packaging.py",
        "tests/fake_nvml/nvml.c",
        "docs/architecture.md",
        "snapshots/README.md",
        "LICENSE",
    ):
        assert name in names


def closure(name: str) -> set[str]:
    """Every distribution that installing this one without extras brings, itself included."""
    found: set[str] = set()
    queue = [name]
    while queue:
        current = re.sub(r"[-_.]+", "-", queue.pop()).lower()
        if current in found:
            continue
        found.add(current)
        for line in importlib.metadata.distribution(current).requires or ():
            requirement = Requirement(line)
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                queue.append(requirement.name)
    return found


def test_the_install_is_small() -> None:
    names = closure("envaudit")
    assert len(names) <= PACKAGES_LIMIT, sorted(names)
    size = 0
    for name in names - {"envaudit"}:
        for file in importlib.metadata.distribution(name).files or ():
            path = Path(str(file.locate()))
            if path.is_file() and path.suffix != ".pyc":
                size += path.stat().st_size
    size += sum(p.stat().st_size for p in (HERE / "envaudit").rglob("*.py"))
    size += sum(p.stat().st_size for p in (HERE / "matrices").rglob("*.json"))
    assert size <= SIZE_LIMIT_BYTES
    assert "torch" not in names
