from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from envaudit.errors import UsageError
from envaudit.host import Host
from envaudit.target import find_target, pyvenv, site_dirs, version_of_name
from tests.probing import machine

ELF = b"\x7fELF\x02\x01\x01" + bytes(11) + b"\x3e\x00"
SYSTEM: dict[str, str | bytes] = {
    "/usr/bin/python3.11": ELF,
    "/usr/lib/python3.11/os.py": "",
    "/usr/lib/python3/dist-packages/apt.py": "",
    "/usr/local/lib/python3.11/dist-packages/numpy.py": "",
    "/usr/local/lib/python3.12/dist-packages/numpy.py": "",
}
LINKS = {"/usr/bin/python3": "python3.11"}
VENV: dict[str, str | bytes] = {
    "/opt/venv/pyvenv.cfg": "home = /usr/bin\ninclude-system-site-packages = false\n",
    "/opt/venv/lib/python3.11/site-packages/torch.py": "",
}
VENV_LINKS = {"/opt/venv/bin/python": "/usr/bin/python3", "/opt/venv/lib64": "lib"}


class TestChoice:
    def test_an_active_environment_comes_before_path(self, tmp_path: Path) -> None:
        host = machine(
            tmp_path,
            SYSTEM | VENV,
            LINKS | VENV_LINKS,
            env={"VIRTUAL_ENV": "/opt/venv", "CONDA_PREFIX": "/opt/conda", "PATH": "/usr/bin"},
        )
        target = find_target(host)
        assert target is not None
        assert target.executable == "/opt/venv/bin/python"
        assert target.chosen_by == "$VIRTUAL_ENV"
        assert target.prefix == "/opt/venv"
        assert target.site_dirs == ("/opt/venv/lib/python3.11/site-packages",)

    def test_conda_comes_next(self, tmp_path: Path) -> None:
        conda: dict[str, str | bytes] = {
            "/opt/conda/bin/python3.11": ELF,
            "/opt/conda/conda-meta/history": "",
            "/opt/conda/lib/python3.11/site-packages/torch.py": "",
        }
        host = machine(
            tmp_path,
            SYSTEM | conda,
            LINKS | {"/opt/conda/bin/python": "python3.11"},
            env={"VIRTUAL_ENV": "/gone", "CONDA_PREFIX": "/opt/conda"},
        )
        target = find_target(host)
        assert target is not None
        assert (target.prefix, target.chosen_by) == ("/opt/conda", "$CONDA_PREFIX")
        assert target.site_dirs == ("/opt/conda/lib/python3.11/site-packages",)

    def test_else_python3_on_path(self, tmp_path: Path) -> None:
        target = find_target(machine(tmp_path, SYSTEM, LINKS))
        assert target is not None
        assert target.executable == "/usr/bin/python3"
        assert target.prefix == "/usr"
        assert target.chosen_by == "python3 on PATH"
        # Debian's order, and nothing of another version.
        assert target.site_dirs == (
            "/usr/local/lib/python3.11/dist-packages",
            "/usr/lib/python3/dist-packages",
        )

    def test_an_image_without_python_has_none(self, tmp_path: Path) -> None:
        assert find_target(machine(tmp_path, {"/etc/hostname": "x"})) is None

    def test_a_live_machine_without_one_on_path_has_our_own(self) -> None:
        target = find_target(Host(env={"PATH": "/nowhere"}))
        assert target is not None
        assert target.executable == os.path.abspath(sys.executable)

    def test_a_shim_tells_nothing_of_its_places(self, tmp_path: Path) -> None:
        shim = {"/home/me/.pyenv/shims/python3": "#!/usr/bin/env bash\nexec pyenv exec python3\n"}
        target = find_target(machine(tmp_path, shim, env={"PATH": "/home/me/.pyenv/shims"}))
        assert target is not None
        assert (target.prefix, target.site_dirs) == ("", ())


class TestNamed:
    def test_an_environment_may_be_named_instead_of_its_interpreter(self, tmp_path: Path) -> None:
        host = machine(tmp_path, SYSTEM | VENV, LINKS | VENV_LINKS)
        for name in ("/opt/venv", "/opt/venv/bin/python", "opt/venv"):
            target = find_target(host, name)
            assert target is not None
            assert (target.executable, target.chosen_by) == ("/opt/venv/bin/python", "--python")

    def test_a_command_name_is_looked_up(self, tmp_path: Path) -> None:
        target = find_target(machine(tmp_path, SYSTEM, LINKS), "python3.11")
        assert target is not None
        assert target.executable == "/usr/bin/python3.11"

    def test_a_folder_beside_us_on_a_live_machine(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "env" / "bin").mkdir(parents=True)
        (tmp_path / "env" / "bin" / "python").symlink_to(sys.executable)
        monkeypatch.chdir(tmp_path)
        target = find_target(Host(), "env")
        assert target is not None
        assert target.executable == f"{tmp_path}/env/bin/python"

    @pytest.mark.parametrize(
        ("name", "words"),
        [
            ("/nowhere/python", "No such file"),
            ("no-such-command", "no such command on PATH"),
            ("/etc", "a folder without bin/python"),
            ("/dev/null", "not a file"),
        ],
    )
    def test_what_is_no_interpreter_is_refused(self, name: str, words: str) -> None:
        with pytest.raises(UsageError, match=words):
            find_target(Host(), name)

    def test_a_file_that_may_not_be_run_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "python").touch(0o644)
        with pytest.raises(UsageError, match="not an executable file"):
            find_target(Host(), f"{tmp_path}/python")

    def test_a_fifo_is_refused_at_once(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "python")
        with pytest.raises(UsageError, match="not a file"):
            find_target(Host(), f"{tmp_path}/python")


class TestSiteDirs:
    def test_an_environment_that_sees_its_base_and_the_users_own(self, tmp_path: Path) -> None:
        inherits = {"/opt/venv/pyvenv.cfg": "home = /usr/bin\n"}  # the default, as site.py has it
        mine = {"/home/me/.local/lib/python3.11/site-packages/x.py": ""}
        host = machine(
            tmp_path, SYSTEM | VENV | inherits | mine, LINKS | VENV_LINKS, env={"HOME": "/home/me"}
        )
        assert site_dirs(host, "/opt/venv", "/usr/bin/python3.11") == (
            "/opt/venv/lib/python3.11/site-packages",
            "/home/me/.local/lib/python3.11/site-packages",
            "/usr/local/lib/python3.11/dist-packages",
            "/usr/lib/python3/dist-packages",
        )

    def test_pythonpath_comes_first(self, tmp_path: Path) -> None:
        host = machine(
            tmp_path, SYSTEM | {"/src/x.py": ""}, LINKS, env={"PYTHONPATH": "rel:/src:/gone:"}
        )
        assert site_dirs(host, "/usr", "/usr/bin/python3.11")[0] == "/src"

    def test_free_threaded_and_pypy_layouts(self, tmp_path: Path) -> None:
        host = machine(
            tmp_path,
            {
                "/a/lib/python3.13/site-packages/x": "",
                "/a/lib/python3.13t/site-packages/x": "",
                "/b/lib/pypy3.10/site-packages/x": "",
            },
        )
        assert site_dirs(host, "/a", "/a/bin/python3.13t") == ("/a/lib/python3.13t/site-packages",)
        assert site_dirs(host, "/b", "/b/bin/pypy3.10") == ("/b/lib/pypy3.10/site-packages",)

    def test_a_prefix_that_is_not_there_has_none(self, tmp_path: Path) -> None:
        assert site_dirs(machine(tmp_path), "/nowhere") == ()


def test_the_version_in_a_name() -> None:
    names = ("/usr/bin/python3.11", "python3.13t", "pypy3.10", "python3", "python", "python3.11d")
    assert [version_of_name(name) for name in names] == ["3.11", "3.13t", "3.10", "", "", ""]


def test_pyvenv_cfg_may_be_anything(tmp_path: Path) -> None:
    text = b"Home = /usr/bin \r\nversion=3.11.7\nprompt\n\xff=\xfe\n = \n"
    config = pyvenv(machine(tmp_path, {"/v/pyvenv.cfg": text}), "/v")
    assert config["home"] == "/usr/bin"
    assert config["version"] == "3.11.7"
    assert pyvenv(machine(tmp_path), "/nowhere") == {}
