"""ask.py as interpreters run it: what it answers, and what cannot disturb it."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from envaudit.host import Host
from envaudit.probes.python_env import parse_answer
from envaudit.target import script

ASK = script(Host(), "ask.py")


def ask(python: str = sys.executable, **env: str) -> tuple[dict[str, Any], str]:
    """Its answer and what else was printed."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    done = Host(env=clean | env).run([python, "-B", ASK], seconds=20, with_answer=True)
    assert done.status == "ok", done
    return json.loads(done.answer) if done.answer else {}, done.stdout + done.stderr


def says(code: str, **env: str) -> Any:
    """What Python code run by the same interpreter prints as JSON."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    done = subprocess.run(
        [sys.executable, "-B", "-c", f"import json, os, platform, site, sys, sysconfig\n{code}"],
        env=clean | env,
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def test_it_says_what_the_standard_library_says() -> None:
    answer, printed = ask()
    expected = says(
        "print(json.dumps({'version': platform.python_version(),"
        " 'implementation': sys.implementation.name, 'executable': sys.executable,"
        " 'prefix': sys.prefix, 'base_prefix': sys.base_prefix, 'path': sys.path[1:],"
        " 'stdlib': sysconfig.get_path('stdlib'),"
        " 'free_threaded': bool(sysconfig.get_config_var('Py_GIL_DISABLED')),"
        " 'platform': sysconfig.get_platform(), 'machine': platform.machine(),"
        " 'cache_tag': sys.implementation.cache_tag, 'user_site': site.getusersitepackages(),"
        " 'system': platform.system(), 'release': platform.release()}))"
    )
    assert {key: answer[key] for key in expected} == expected
    assert printed == ""
    assert parse_answer(json.dumps(answer))


def test_it_sees_the_environment_that_a_shell_would_give(tmp_path: Path) -> None:
    (tmp_path / "packages").mkdir()
    answer, _ = ask(PYTHONPATH=f"{tmp_path}/packages")
    assert answer["path"][0] == f"{tmp_path}/packages"


def test_its_own_folder_is_not_on_the_path_and_nothing_else_is_lost(tmp_path: Path) -> None:
    # PYTHONSAFEPATH (3.11) keeps the script's folder out by itself: then nothing is taken away.
    for env in ({}, {"PYTHONSAFEPATH": "1"}):
        answer, _ = ask(PYTHONPATH=str(tmp_path), **env)
        assert os.path.dirname(ASK) not in answer["path"]
        assert answer["path"][0] == str(tmp_path)


def test_prints_of_sitecustomize_and_its_exit_hooks_do_not_matter(tmp_path: Path) -> None:
    mark = tmp_path / "ran at exit"
    (tmp_path / "sitecustomize.py").write_text(
        "import atexit, sys\n"
        'print(\'{"version": "no"}\')\n'
        "print('loud', file=sys.stderr)\n"
        f"atexit.register(lambda: open({str(mark)!r}, 'w').close())\n"
    )
    answer, printed = ask(PYTHONPATH=str(tmp_path))
    assert answer["prefix"] == sys.prefix
    assert "loud" in printed
    assert not mark.exists()
    assert not (tmp_path / "__pycache__").exists()


def test_modules_that_shadow_the_standard_library_are_not_imported(tmp_path: Path) -> None:
    for name in ("json", "platform", "sysconfig", "re", "torch"):
        (tmp_path / f"{name}.py").write_text("import os; os.abort()\n")
    answer, _ = ask(PYTHONPATH=str(tmp_path))
    assert answer["version"] == says("print(json.dumps(platform.python_version()))")


def test_odd_paths_come_through(tmp_path: Path) -> None:
    odd = [tmp_path / 'a "quoted" \\ one', tmp_path / "ünï 🐍", tmp_path / "tab\tnewline\n"]
    for folder in odd:
        folder.mkdir()
    undecodable = os.fsencode(tmp_path) + b"/\xff\xfe"
    os.mkdir(undecodable)
    odd_path = [*map(str, odd), os.fsdecode(undecodable)]
    answer, _ = ask(PYTHONPATH=":".join(odd_path))
    assert answer["path"][:4] == odd_path


def test_it_is_alone_in_its_folder_and_every_python_from_3_8_can_read_it() -> None:
    scripts = [name for name in os.listdir(os.path.dirname(ASK)) if name.endswith(".py")]
    assert not set(scripts) & {f"{name}.py" for name in [*sys.stdlib_module_names, "torch"]}
    tree = ast.parse(Path(ASK).read_text(), feature_version=(3, 8))
    imported = {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
    }
    assert imported == {"os", "sys"}
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]


def test_every_interpreter_at_hand_answers() -> None:
    names = [f"python3.{minor}" for minor in range(8, 16)] + ["python3.13t", "python3.14t", "pypy3"]
    for name in names:
        python = Host().which(name)
        if python is None:
            continue
        told = subprocess.run(
            [python, "-c", "import sys; print(sys.version.split()[0], sys.prefix)"],
            capture_output=True,
            text=True,
            check=False,
        )
        if told.returncode == 0:  # a version manager's shim may have nothing behind it
            answer, _ = ask(python)
            assert f"{answer['version']} {answer['prefix']}" == told.stdout.strip()
            assert answer["free_threaded"] is name.endswith("t")
