from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envaudit.collect import collect
from envaudit.host import Host
from envaudit.isolate import Done
from envaudit.model import Absent, Unknown
from envaudit.probes import PROBES
from envaudit.probes.python_env import parse_answer, why_silent
from envaudit.target import find_target
from tests.probing import Told, machine, probe

ELF = b"\x7fELF\x02\x01\x01" + bytes(11) + b"\x3e\x00"
SITE = "/opt/venv/lib/python3.11/site-packages"
ASK = "python -B ask.py"

ANSWER: dict[str, Any] = {
    "version": "3.11.7",
    "implementation": "cpython",
    "executable": "/opt/venv/bin/python",
    "prefix": "/opt/venv",
    "base_prefix": "/usr",
    "path": [
        "/usr/lib/python311.zip",
        "/usr/lib/python3.11",
        "/usr/lib/python3.11/lib-dynload",
        SITE,
    ],
    "stdlib": "/usr/lib/python3.11",
    "free_threaded": False,
    "system": "Linux",
    "machine": "x86_64",
}
FILES: dict[str, str | bytes] = {
    "/usr/bin/python3.11": ELF,
    "/usr/lib/python3.11/lib-dynload/x.so": "",
    "/opt/venv/pyvenv.cfg": (
        "home = /usr/bin\ninclude-system-site-packages = false\nversion = 3.11.7\n"
    ),
    f"{SITE}/torch/__init__.py": "import os; os.abort()",
    f"{SITE}/torch-2.9.1+cu128.dist-info/METADATA": (
        "Metadata-Version: 2.1\nName: torch\nVersion: 2.9.1+cu128\nRequires-Dist: jinja2\n"
        'Requires-Dist: nvidia-nccl-cu12==2.27.5; platform_system == "Linux"\n'
        'Requires-Dist: triton==3.5.1; platform_system == "Linux"\n\nRequires-Dist: prose\n'
    ),
    f"{SITE}/torch-2.9.1+cu128.dist-info/INSTALLER": "pip\n",
    f"{SITE}/torch-2.9.1+cu128.dist-info/WHEEL": "Tag: cp311-cp311-manylinux_2_28_x86_64\n",
    f"{SITE}/triton-3.5.1.dist-info/METADATA": "Name: triton\nVersion: 3.5.1\n",
    f"{SITE}/nvidia_nccl_cu12-2.26.2.dist-info/METADATA": "Name: nvidia-nccl-cu12\n",
    f"{SITE}/jinja2-3.1.6.dist-info/METADATA": "Name: jinja2\nVersion: 3.1.6\n",
}
LINKS = {"/opt/venv/bin/python": "/usr/bin/python3.11"}


def told_by(
    tmp_path: Path,
    files: dict[str, str | bytes] | None = None,
    *,
    answer: dict[str, Any] | None = ANSWER,
    said: dict[str, Any] | None = None,
    links: dict[str, str] | None = None,
    python: str = "/opt/venv",
    arch: str | None = "x86_64",
) -> Told:
    commands = {ASK: said if said is not None else {"answer": json.dumps(answer)}}
    host = machine(tmp_path, FILES | (files or {}), LINKS | (links or {}), commands=commands,
                   env={}, arch=arch)  # fmt: skip
    return probe("python_env", host, target=find_target(host, python))


class TestAnswer:
    def test_the_interpreter_and_its_distributions(self, tmp_path: Path) -> None:
        told = told_by(tmp_path)
        facts = told.facts
        assert facts["python.status"] == "ok"
        assert facts["python.version"] == "3.11.7"
        assert facts["python.implementation"] == "CPython"
        assert facts["python.executable"] == "/opt/venv/bin/python"
        assert facts["python.prefix"] == "/opt/venv"
        assert facts["python.environment"] == "venv"
        assert facts["python.free_threaded"] is False
        assert facts["python.chosen_by"] == "--python"
        assert facts["python.path"] == [SITE]
        assert facts["dist.torch.version"] == "2.9.1+cu128"
        assert facts["dist.torch.installer"] == "pip"
        assert facts["dist.torch.tag"] == "cp311-cp311-manylinux_2_28_x86_64"
        assert "dist.torch.editable" not in facts
        assert "dist.jinja2.version" not in facts
        assert facts["dist.all"] == [
            "jinja2==3.1.6",
            "nvidia-nccl-cu12==2.26.2",
            "torch==2.9.1+cu128",
            "triton==3.5.1",
        ]
        assert facts["python.conflicts"] == [
            "torch 2.9.1+cu128 requires nvidia-nccl-cu12==2.27.5, installed 2.26.2"
        ]
        assert told.sources["dist.torch.version"] == f"{SITE}/torch-2.9.1+cu128.dist-info"
        assert told.gaps == {}

    def test_without_conflicts_there_is_no_such_fact_and_no_gap(self, tmp_path: Path) -> None:
        nccl = f"{SITE}/nvidia_nccl_cu12-2.26.2.dist-info"
        files = {key: text for key, text in FILES.items() if not key.startswith(nccl)}
        host = machine(
            tmp_path,
            files | {f"{SITE}/nvidia_nccl_cu12-2.27.5.dist-info/METADATA": "Name: x\n"},
            LINKS,
            commands={ASK: {"answer": json.dumps(ANSWER)}},
        )
        told = probe("python_env", host, target=find_target(host, "/opt/venv"))
        assert "python.conflicts" not in told.facts
        assert told.gaps == {}

    @pytest.mark.parametrize(
        ("files", "change", "kind"),
        [
            ({"/opt/venv/pyvenv.cfg": "home = /usr/bin\nvirtualenv = 20.26\n"}, {}, "virtualenv"),
            ({"/opt/venv/pyvenv.cfg": "home = /usr/bin\nuv = 0.9.1\n"}, {}, "venv"),
            ({}, {"prefix": "/old", "base_prefix": "/usr"}, "virtualenv"),
            ({"/c/conda-meta/history": ""}, {"prefix": "/c", "base_prefix": "/c"}, "conda"),
            ({}, {"prefix": "/usr", "base_prefix": "/usr"}, "system"),
            ({}, {"prefix": "/usr/local", "base_prefix": "/usr/local"}, "system"),
            ({}, {"prefix": "/home/me/3.11.7", "base_prefix": "/home/me/3.11.7"}, "other"),
        ],
    )
    def test_kinds_of_environment(
        self, tmp_path: Path, files: dict[str, str | bytes], change: dict[str, Any], kind: str
    ) -> None:
        told = told_by(tmp_path, files, answer=ANSWER | change)
        assert told.facts["python.environment"] == kind

    def test_pypy_and_free_threading(self, tmp_path: Path) -> None:
        told = told_by(tmp_path, answer=ANSWER | {"implementation": "pypy", "free_threaded": True})
        assert told.facts["python.implementation"] == "PyPy"
        assert told.facts["python.free_threaded"] is True

    def test_a_place_that_is_twice_on_the_path_counts_once(self, tmp_path: Path) -> None:
        twice = "/opt/venv/lib64/python3.11/site-packages"
        answer = ANSWER | {"path": [twice, *ANSWER["path"], "relative", "/gone", "/no\0"]}
        told = told_by(tmp_path, answer=answer, links={"/opt/venv/lib64": "lib"})
        assert told.facts["python.path"] == [twice]
        assert "dist.duplicates" not in told.facts


class TestDistributions:
    def test_one_in_two_places(self, tmp_path: Path) -> None:
        mine = "/home/me/.local/lib/python3.11/site-packages"
        told = told_by(
            tmp_path,
            {f"{mine}/torch-2.6.0.dist-info/METADATA": "Name: torch\n"},
            answer=ANSWER | {"path": [mine, SITE]},
        )
        assert told.facts["dist.torch.version"] == "2.6.0"
        assert told.facts["dist.duplicates"] == [
            f"torch 2.6.0 {mine}",
            f"torch 2.9.1+cu128 {SITE}",
        ]

    def test_two_records_of_one_install_are_one(self, tmp_path: Path) -> None:
        told = told_by(tmp_path, {f"{SITE}/triton-3.5.1.egg-info": "Name: triton\n"})
        assert told.facts["dist.triton.version"] == "3.5.1"
        assert "dist.duplicates" not in told.facts

    def test_a_folder_that_cannot_be_listed_leaves_the_rest_open(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        host = machine(
            tmp_path,
            FILES | {"/secret/x": ""},
            LINKS,
            commands={ASK: {"answer": json.dumps(ANSWER | {"path": [SITE, "/secret"]})}},
        )
        listdir = host.listdir

        def denied(path: str) -> list[str]:
            if path == "/secret":
                raise PermissionError(13, "Permission denied", path)
            return listdir(path)

        monkeypatch.setattr(host, "listdir", denied)
        told = probe("python_env", host, target=find_target(host, "/opt/venv"))
        assert told.facts["dist.torch.version"] == "2.9.1+cu128"
        assert "python.conflicts" not in told.facts
        assert told.gaps["dist.*"] == told.gaps["python.conflicts"] == "/secret: Permission denied"

    def test_two_records_side_by_side_leave_the_version_open(self, tmp_path: Path) -> None:
        told = told_by(tmp_path, {f"{SITE}/torch-2.6.0.dist-info/METADATA": "Name: torch\n"})
        assert "dist.torch.version" not in told.facts
        assert "2.6.0 and 2.9.1+cu128 side by side" in told.gaps["dist.torch.version"]

    def test_a_record_without_metadata_leaves_it_open_too(self, tmp_path: Path) -> None:
        told = told_by(tmp_path, {f"{SITE}/cupy_cuda12x-13.6.0.dist-info/RECORD": ""})
        assert "dist.cupy-cuda12x.version" not in told.facts
        assert "no metadata" in told.gaps["dist.cupy-cuda12x.version"]

    def test_an_editable_install(self, tmp_path: Path) -> None:
        record = f"{SITE}/vllm-0.11.0.dist-info"
        told = told_by(
            tmp_path,
            {
                f"{record}/METADATA": "Name: vllm\nVersion: 0.11.0\n",
                f"{record}/direct_url.json": json.dumps(
                    {"url": "https://me:t0ken@git/vllm?x=t0ken", "dir_info": {"editable": True}}
                ),
                f"{SITE}/__editable__.vllm-0.11.0.pth": "/src/vllm",
                "/src/vllm/vllm.egg-info/PKG-INFO": "Name: vllm\nVersion: 0.11.0\n",
            },
            answer=ANSWER | {"path": [SITE, "/src/vllm"]},
        )
        assert told.facts["dist.vllm.editable"] is True
        assert told.sources["dist.vllm.editable"] == f"{record}/direct_url.json"
        assert told.facts["dist.vllm.origin"] == "https://git/vllm"
        assert "dist.duplicates" not in told.facts  # the record of the source folder is its own


class TestNoAnswer:
    def test_a_hang_leaves_what_files_tell(self, tmp_path: Path) -> None:
        told = told_by(tmp_path, said={"status": "timed_out", "exit": 124})
        assert told.status == "ok"
        assert told.facts["python.status"] == "did not answer within 3.5 s"
        assert told.facts["python.version"] == "3.11.7"
        assert told.sources["python.version"] == "/opt/venv/pyvenv.cfg"
        assert told.facts["python.environment"] == "venv"
        assert told.facts["dist.torch.version"] == "2.9.1+cu128"
        assert told.facts["python.conflicts"]
        assert set(told.gaps) == {
            "python.implementation",
            "python.free_threaded",
            "python.path",
        }

    @pytest.mark.parametrize(
        ("said", "words"),
        [
            ({"exit": -11}, "ended by signal 11"),
            ({"exit": 0, "answer": ""}, "as no Python does"),
            ({"exit": 0, "answer": '{"version": "3.11"}'}, "as no Python does"),
            ({"exit": 1, "stderr": "Traceback (most recent call last):\n x\nSyntaxError: bad\n"},
             "ended with exit status 1: SyntaxError: bad"),
            ({"exit": 127, "stderr": "pyenv: python3.8: command not found\n\nNote: ...\n"},
             "ended with exit status 127: pyenv: python3.8: command not found"),
            ({"status": "missing", "exit": 127, "stderr": "Exec format error"},
             "could not be started: Exec format error"),
            ({"status": "too_much_output", "exit": -25}, "wrote without end"),
        ],
    )  # fmt: skip
    def test_the_reason_is_told(self, tmp_path: Path, said: dict[str, Any], words: str) -> None:
        told = told_by(tmp_path, said=said)
        assert words in told.facts["python.status"]
        assert told.gaps["python.path"] == told.facts["python.status"]

    @pytest.mark.parametrize(
        ("files", "python", "version", "source"),
        [
            (
                {"/v/pyvenv.cfg": "version_info = 3.12.1.final.0\n", "/v/bin/python": ELF},
                "/v",
                "3.12.1",
                "/v/pyvenv.cfg",
            ),
            (
                {
                    "/c/conda-meta/python-3.12.11-h9e4cc4f_0_cpython.json": "{}",
                    "/c/conda-meta/python-dateutil-2.9.0-pyhd8ed1ab_0.json": "{}",
                    "/c/conda-meta/python-3.10.json": "{}",
                    "/c/bin/python": ELF,
                },
                "/c",
                "3.12.11",
                "/c/conda-meta/python-3.12.11-h9e4cc4f_0_cpython.json",
            ),
            ({}, "/usr/bin/python3.11", "3.11", "name of /usr/bin/python3.11"),
        ],
    )
    def test_the_version_from_files(
        self,
        tmp_path: Path,
        files: dict[str, str | bytes],
        python: str,
        version: str,
        source: str,
    ) -> None:
        host = machine(tmp_path, FILES | files, LINKS)
        told = probe("python_env", host, target=find_target(host, python))
        assert told.facts["python.version"] == version
        assert told.sources["python.version"] == source
        assert told.facts["python.status"].startswith("not started")

    def test_an_image_is_read_for_its_own_machine(self, tmp_path: Path) -> None:
        """Without the interpreter, its file tells the architecture that markers ask for."""
        markers = {
            f"{SITE}/torch-2.9.1+cu128.dist-info/METADATA": (
                "Name: torch\nRequires-Dist: a; platform_machine == 'x86_64'\n"
                "Requires-Dist: b; platform_machine == 'aarch64'\n"
            )
        }
        told = told_by(tmp_path, {**markers}, said={"exit": 1}, arch=None)
        assert told.facts["python.conflicts"] == [
            "torch 2.9.1+cu128 requires a, which is not installed"
        ]

    def test_a_shim_that_does_not_answer_leaves_everything_open(self, tmp_path: Path) -> None:
        host = machine(
            tmp_path, {"/shims/python": "#!/bin/sh\n"}, commands={ASK: {"exit": 127}}, env={}
        )
        told = probe("python_env", host, target=find_target(host, "/shims/python"))
        for name in ("dist.*", "python.conflicts", "python.version", "python.prefix"):
            assert "ended with exit status 127" in told.gaps[name]

    def test_no_interpreter_at_all(self, tmp_path: Path) -> None:
        told = probe("python_env", machine(tmp_path))
        assert (told.status, told.detail) == ("absent", "no Python interpreter")

    def test_reasons_are_bounded(self) -> None:
        done = Done(("x",), "ok", 1, "", "x" * 10_000, "")
        assert len(why_silent(done, 1)) < 300


class TestLive:
    """Real interpreters and impostors, started by the probe."""

    @pytest.fixture
    def environment(self, tmp_path: Path) -> Path:
        """A virtual environment in which importing torch ends the process."""
        venv = tmp_path / "venv"
        site = venv / f"lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"
        (site / "torch-2.9.1.dist-info").mkdir(parents=True)
        (site / "torch-2.9.1.dist-info" / "METADATA").write_text("Name: torch\nVersion: 2.9.1\n")
        (site / "torch").mkdir()
        (site / "torch" / "__init__.py").write_text("import os\nos.abort()\n")
        (venv / "bin").mkdir()
        (venv / "bin" / "python").symlink_to(os.path.realpath(sys.executable))
        home = os.path.dirname(os.path.realpath(sys.executable))
        (venv / "pyvenv.cfg").write_text(f"home = {home}\ninclude-system-site-packages = false\n")
        return venv

    def told(self, python: Path, seconds: float = 5.0, **env: str) -> Told:
        clean = {key: text for key, text in os.environ.items() if not key.startswith("PYTHON")}
        host = Host(env=clean | env)
        return probe("python_env", host, target=find_target(host, str(python)), seconds=seconds)

    def test_a_real_environment(self, environment: Path) -> None:
        told = self.told(environment)
        assert told.facts["python.status"] == "ok"
        assert told.facts["python.prefix"] == str(environment)
        assert told.facts["python.environment"] == "venv"
        assert told.facts["dist.torch.version"] == "2.9.1"
        assert told.facts["dist.all"] == ["torch==2.9.1"]
        assert told.facts["python.path"] == [str(next(environment.glob("lib/*/site-packages")))]
        assert not list(environment.rglob("__pycache__"))

    def test_no_probe_of_a_whole_look_imports_a_framework(self, environment: Path) -> None:
        site = next(environment.glob("lib/*/site-packages"))
        (site / "torch" / "version.py").write_text("__version__ = '2.9.1'\ncuda = None\n")
        host = Host()
        names = ("python_env", "frameworks", "conda")
        seen = collect(
            host,
            find_target(host, str(environment)),
            probes=[row for row in PROBES if row.name in names],
        )
        assert [run.status for run in seen.probes] == ["ok", "ok", "absent"]
        assert seen.facts["torch.version"].value == "2.9.1"
        assert isinstance(seen.ask("torch.cuda.version"), Absent)
        assert isinstance(seen.ask("torch.cxx11_abi"), Unknown)
        assert isinstance(seen.ask("python.conflicts"), Absent)

    def test_pythonpath_of_the_shell_is_seen(self, environment: Path, tmp_path: Path) -> None:
        (tmp_path / "src" / "triton-3.5.1.dist-info").mkdir(parents=True)
        (tmp_path / "src" / "triton-3.5.1.dist-info" / "METADATA").touch()
        told = self.told(environment, PYTHONPATH=f"{tmp_path}/src")
        assert told.facts["dist.triton.version"] == "3.5.1"

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("#!/bin/sh\nexit 3\n", "exit status 3"),
            ("#!/bin/sh\necho hello\n", "as no Python does"),
            ("#!/bin/sh\nkill -SEGV $$\n", "signal 11"),
            ("#!/no/such/program\n", "could not be started"),
            ("neither a script nor a program", "could not be started"),
            ("#!/bin/sh\necho '{\"version\": 3}' >&3\n", "as no Python does"),
        ],
    )
    def test_impostors(self, tmp_path: Path, text: str, words: str) -> None:
        impostor = tmp_path / "python"
        impostor.write_text(text)
        impostor.chmod(0o755)
        told = self.told(impostor)
        assert words in told.facts["python.status"]
        assert "python.version" in told.gaps

    def test_a_wrapper_that_starts_a_real_one_is_followed(
        self, environment: Path, tmp_path: Path
    ) -> None:
        shim = tmp_path / "python"
        shim.write_text(f'#!/bin/sh\nexec "{environment}/bin/python" "$@"\n')
        shim.chmod(0o755)
        told = self.told(shim)
        assert told.facts["python.executable"] == f"{environment}/bin/python"
        assert told.facts["dist.torch.version"] == "2.9.1"

    def test_one_that_hangs_is_left_in_time(self, environment: Path) -> None:
        site = next(environment.glob("lib/*/site-packages"))
        (site / "sitecustomize.py").write_text("import time\ntime.sleep(600)\n")
        started = time.monotonic()
        told = self.told(environment, seconds=2.0)
        assert time.monotonic() - started < 4
        assert told.facts["python.status"] == "did not answer within 0.5 s"
        assert told.facts["dist.torch.version"] == "2.9.1"


@given(st.text() | st.from_type(dict[str, str]).map(json.dumps))
def test_any_answer(text: str) -> None:
    assert parse_answer(text) == {} or isinstance(parse_answer(text)["path"], list)


def test_an_incomplete_answer_is_none() -> None:
    assert parse_answer(json.dumps(ANSWER)) == ANSWER
    for key in ("version", "path", "stdlib"):
        assert parse_answer(json.dumps(ANSWER | {key: None})) == {}
    assert parse_answer(json.dumps(ANSWER | {"path": [1]})) == {}
    assert parse_answer("[" * 100_000) == {}
