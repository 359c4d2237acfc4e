"""The real parts that tests/real/prepare fetched: where they lie and how to put them to use.

A part that is missing fails the test with what to do; nothing is skipped.
"""

from __future__ import annotations

import functools
import json
import os
import platform
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from envaudit.snapshot import load
from tests.recorded import Ran

PROJECT = Path(__file__).parents[2]
PREPARE = "run `tests/real/prepare FOLDER` and `source FOLDER/env` before `pytest -m real`"


def part(name: str) -> Path:
    """The folder of one part."""
    folder = os.environ.get("ENVAUDIT_REAL")
    if not folder:
        pytest.fail(f"ENVAUDIT_REAL is not set: {PREPARE}", pytrace=False)
    path = Path(folder, name)
    if not path.joinpath(".done").exists():
        pytest.fail(f"no complete part {path}: {PREPARE}", pytrace=False)
    return path


def python_of(variable: str) -> str:
    """An interpreter named by a variable of the environment."""
    path = os.environ.get(variable, "")
    if not os.access(path, os.X_OK):
        pytest.fail(f"{variable} names no interpreter ({path!r}): {PREPARE}", pytrace=False)
    return path


def torch_cuda() -> str:
    """The interpreter that has a CUDA build of PyTorch."""
    return python_of("ENVAUDIT_TORCH_CUDA_PYTHON")


def torch_cpu() -> str:
    """The interpreter that has a CPU build of PyTorch."""
    return python_of("ENVAUDIT_TORCH_CPU_PYTHON")


# -- running -----------------------------------------------------------------------------------


def environment(**more: str) -> dict[str, str]:
    """The environment of this process without what would point at other GPU software."""
    plain = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("LD_", "CUDA", "NVIDIA", "PYTHONPATH", "VIRTUAL_ENV", "CONDA"))
    }
    return plain | {"NO_COLOR": "1", "PYTHONIOENCODING": "utf-8"} | more


def run(argv: list[str], env: Mapping[str, str] | None = None, timeout: float = 120) -> Ran:
    """Run a command to its end, whatever its exit status."""
    done = subprocess.run(
        argv,
        capture_output=True,
        text=True,
        env=dict(env) if env is not None else environment(),
        stdin=subprocess.DEVNULL,
        timeout=timeout,
        check=False,
    )
    return Ran(done.returncode, done.stdout, done.stderr)


def output(argv: list[str], env: Mapping[str, str] | None = None) -> str:
    """What a command prints; that it fails is the test's failure."""
    done = run(argv, env)
    assert done.code == 0, f"{argv}: exit status {done.code}\n{done.out}\n{done.err}"
    return done.out


def envaudit(*args: str, env: Mapping[str, str] | None = None) -> Ran:
    """`envaudit ARGS` as a user would run it."""
    return run([sys.executable, "-m", "envaudit", *args], env if env is not None else environment())


def snapshot(*args: str, env: Mapping[str, str] | None = None) -> Any:
    """The JSON of a look, checked to be readable again."""
    done = envaudit("snapshot", "-o", "-", *args, env=env)
    assert done.code == 0, done.err
    load(done.out.encode(), "this look")
    return done.json


def values(seen: Any, *names: str) -> dict[str, Any]:
    """The values of some facts of a snapshot; those it does not have are left out."""
    facts = seen["facts"]
    return {name: facts[name]["value"] for name in names if name in facts}


def gaps(seen: Any) -> dict[str, str]:
    """Fact names (or patterns) that a look could not tell, with the reason."""
    return {name: why for probe in reversed(seen["probes"]) for name, why in probe["gaps"].items()}


def failures(report: Any) -> dict[str, str]:
    """Rule to cause of the root causes at error level in a report."""
    return {
        finding["rule"]: finding["cause"]
        for finding in report["findings"]
        if finding["verdict"] == "fail"
        and finding["severity"] == "error"
        and not finding.get("because_of")
    }


# -- driver libraries --------------------------------------------------------------------------


@dataclass(frozen=True)
class Driver:
    """The unpacked user-mode part of one NVIDIA driver."""

    branch: str
    version: str
    """Of the package, not of what is in it."""
    libraries: Path
    programs: Path

    @property
    def env(self) -> dict[str, str]:
        """The environment in which it is the driver that programs find."""
        path = f"{self.programs}:{os.environ['PATH']}"
        return environment(LD_LIBRARY_PATH=str(self.libraries), PATH=path)

    def file(self, name: str) -> str:
        """The real path of one of its libraries."""
        return str(self.libraries / f"{name}.so.{self.version}")


@functools.cache
def driver(branch: str) -> Driver:
    """The driver of this branch."""
    folder = part(f"driver-{branch}")
    (libcuda,) = folder.glob("usr/lib/*/nvidia/*/libcuda.so.1")
    (smi,) = folder.glob("usr/lib/nvidia/*/nvidia-smi")
    version = folder.joinpath("version").read_text().strip()
    return Driver(branch, version, libcuda.parent, smi.parent)


# -- rpm and dnf -------------------------------------------------------------------------------


@dataclass(frozen=True)
class RpmTools:
    """The unpacked rpm, rpmbuild, createrepo_c and dnf, with a home folder of their own."""

    folder: Path
    home: Path

    @property
    def env(self) -> dict[str, str]:
        """The environment in which they find their own parts."""
        machine = platform.machine()
        return environment(
            HOME=str(self.home),
            PATH=f"{self.folder}/usr/bin:{os.environ['PATH']}",
            LD_LIBRARY_PATH=f"{self.folder}/usr/lib/{machine}-linux-gnu",
            PYTHONPATH=f"{self.folder}/usr/lib/python3/dist-packages",
            RPM_CONFIGDIR=f"{self.folder}/usr/lib/rpm",
        )

    def build(self, spec: str, into: Path, target: str = "noarch") -> Path:
        """The package that rpmbuild makes of a spec file, for an architecture."""
        into.mkdir(parents=True, exist_ok=True)
        path = into / f"{len(list(into.iterdir()))}.spec"
        path.write_text(spec)
        topdir = into / path.stem
        defined = ["--define", f"_topdir {topdir}", "--target", target]
        output(["rpmbuild", *defined, "-bb", str(path)], self.env)
        (made,) = topdir.glob("RPMS/*/*.rpm")
        return made

    def install(self, root: Path, *packages: Path) -> None:
        """Enter packages into the database below `root` with rpm, and unpack nothing."""
        database = root / "var/lib/rpm"
        database.mkdir(parents=True, exist_ok=True)
        to = ["rpm", "--dbpath", str(database)]
        output([*to, "-i", "--justdb", "--nodeps", "--noscripts", *map(str, packages)], self.env)

    def query(self, root: Path, text: str) -> list[str]:
        """What rpm itself says of every package below `root`."""
        database = str(root / "var/lib/rpm")
        return output(["rpm", "--dbpath", database, "-qa", "--qf", text], self.env).splitlines()

    def dnf(self, root: Path, repository: Path, *args: str) -> None:
        """Run dnf on the system below `root` with this folder as its one repository."""
        output(["createrepo_c", "-q", str(repository)], self.env)
        aside = self.home / "dnf"
        aside.mkdir(exist_ok=True)
        output(
            [
                # Its first line names a python3 of the system; ours may be another one.
                "/usr/bin/python3",
                f"{self.folder}/usr/bin/dnf-3",
                f"--installroot={root}",
                f"--repofrompath=local,file://{repository}",
                "--repoid=local",
                "--releasever=9",
                "--nogpgcheck",
                "--refresh",
                "--setopt=reposdir=/nonexistent",
                "--setopt=pluginpath=/nonexistent",
                f"--setopt=cachedir={aside}",
                f"--setopt=logdir={aside}",
                "-y",
                *args,
            ],
            self.env,
        )


def rpm_tools(home: Path) -> RpmTools:
    """The tools, with `home` for what they write aside."""
    home.mkdir(exist_ok=True)
    # Debian's rpm keeps its database in the user's home; that of a system is elsewhere.
    home.joinpath(".rpmmacros").write_text("%_dbpath /var/lib/rpm\n")
    return RpmTools(part("rpm"), home)


def as_json(text: str) -> Any:
    """The last line of a program's output, as JSON."""
    return json.loads(text.splitlines()[-1])
