"""The CUDA toolkits and compilers of this machine, by what they print themselves."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.real import parts
from tests.real.parts import snapshot, values

pytestmark = pytest.mark.real


def release_of(nvcc: str) -> str:
    """What an nvcc says of its release: `Cuda compilation tools, release 13.0, V13.0.88`."""
    found = re.search(r"release [\d.]+, V([\d.]+)", parts.output([nvcc, "--version"]))
    assert found, nvcc
    return found[1]


def toolkits() -> dict[str, str]:
    """Folder to release of every toolkit in the usual place that has an nvcc."""
    return {
        str(nvcc.parents[1]): release_of(str(nvcc))
        for nvcc in Path("/usr/local").glob("cuda*/bin/nvcc")
        if not nvcc.parents[1].is_symlink()
    }


def test_every_toolkit_is_told_with_the_release_of_its_nvcc() -> None:
    told = values(snapshot(), "cuda.toolkits").get("cuda.toolkits", [])
    for home, release in toolkits().items():
        assert f"{home} {release}" in told
    assert bool(told) == bool(toolkits() or shutil.which("nvcc"))


def test_the_default_toolkit_is_the_one_that_nvcc_on_the_path_belongs_to() -> None:
    seen = snapshot()
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        expected = {}
        if len(toolkits()) == 1:
            ((home, release),) = toolkits().items()
            expected = {"cuda.toolkit.version": release}
            assert Path("/usr/local/cuda").resolve() == Path(home)
    else:
        release = release_of(nvcc)
        expected = {
            "cuda.toolkit.version": release,
            "cuda.nvcc.path": nvcc,
            "cuda.nvcc.version": release,
        }
    assert values(seen, *expected) == expected
    assert ("cuda.toolkit.version" in seen["facts"]) == bool(expected)


def test_cuda_home_names_another_default(tmp_path: Path) -> None:
    homes = toolkits()
    home = next(iter(homes), str(tmp_path))
    seen = snapshot(env=parts.environment(CUDA_HOME=home))
    assert seen["facts"]["cuda.home"]["value"].startswith(home)
    assert values(seen, "cuda.toolkit.version").get("cuda.toolkit.version") == homes.get(home)


@pytest.mark.parametrize("compiler", ["gcc", "clang", "cmake"])
def test_compilers_by_their_own_words(compiler: str) -> None:
    told = values(snapshot(), f"{compiler}.version").get(f"{compiler}.version")
    if shutil.which(compiler) is None:
        assert told is None
        return
    said = parts.output([compiler, "--version"]).splitlines()[0]
    assert told is not None
    assert re.search(rf"(?<![\d.]){re.escape(told)}(?![\d.])", said), (told, said)
