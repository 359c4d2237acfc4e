"""The interpreter under audit and what is installed for it.

The interpreter itself is asked once, in a child with a deadline (envaudit/in_target/ask.py). One
that hangs, crashes or is no Python leaves gaps with the reason; its files still tell the rest.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from envaudit.distributions import (
    Installed,
    how_installed,
    read_header,
    requirements,
    scan,
    unmet,
)
from envaudit.elf import HEAD_BYTES, NotElf, arch
from envaudit.host import CannotRun, Host
from envaudit.isolate import Done
from envaudit.probes import Look, NotHere
from envaudit.stack import in_gpu_stack
from envaudit.target import Target, pyvenv, script, version_of_name

RESERVE_S = 1.5
"""Time kept for the files when the interpreter does not answer."""
PATH_LIMIT = 200
"""Most entries of a sys.path that are looked at."""


def look(look: Look) -> None:
    """Ask the interpreter, list its distributions, and compare what they require."""
    target = look.target
    if target is None:
        raise NotHere("no Python interpreter")
    answer, trouble, ended = _ask(look, target)
    look.add("python.chosen_by", target.chosen_by, "the choice of the interpreter")
    look.add("python.status", trouble or "ok", f"starting {target.executable}")
    if answer:
        look.add("python.interpreter", True, f"starting {target.executable}")
        _tell_answer(look, target, answer)
        folders = package_folders(look.host, answer)
        look.add("python.path", [*folders], f"sys.path of {target.executable}")
    else:
        _tell_files(look, target, trouble, ended)
        folders = list(target.site_dirs)
    environment = marker_environment(look.host, target, answer)
    if not answer and not folders:
        look.gap("dist.*", f"package folders are not known: {trouble}")
        look.gap("python.conflicts", f"package folders are not known: {trouble}")
        return
    installed = scan(look.host, folders)
    for folder, reason in installed.unreadable.items():
        look.gap("dist.*", f"{folder}: {reason}")
        look.gap("python.conflicts", f"{folder}: {reason}")
    _tell_distributions(look, installed)
    if not installed.unreadable:  # what is required may be installed there
        _tell_conflicts(look, installed, environment)


# -- the interpreter --------------------------------------------------------------------------


def _ask(look: Look, target: Target) -> tuple[dict[str, Any], str, bool]:
    """The interpreter's answer, or {} with the reason, and whether it ended by itself.

    It is started as a shell would start it, with the environment's PYTHONPATH, .pth files and
    sitecustomize; -B only keeps it from writing byte code.
    """
    argv = [target.executable, "-B", script(look.host, "ask.py")]
    seconds = max(0.05, look.seconds - RESERVE_S)
    try:
        done = look.host.run(argv, seconds=seconds, with_answer=True)
    except CannotRun as reason:
        return {}, f"not started: {reason}", False
    answer = parse_answer(done.answer)
    return answer, "" if answer else why_silent(done, seconds), done.status != "timed_out"


def parse_answer(text: str) -> dict[str, Any]:
    """The object that ask.py writes; {} for anything that is not one, complete and of its types."""
    try:
        told = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(told, dict):
        return {}
    texts = ("version", "implementation", "executable", "prefix", "base_prefix", "stdlib")
    if not all(isinstance(told.get(key), str) for key in texts):
        return {}
    path = told.get("path")
    if not isinstance(path, list) or not all(isinstance(entry, str) for entry in path):
        return {}
    return told


def why_silent(done: Done, seconds: float) -> str:
    """Why a started interpreter gave no answer, in words."""
    if done.status == "timed_out":
        return f"did not answer within {seconds:.3g} s"
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    # A traceback ends with what happened; other programs begin with it.
    said = (lines[-1] if lines[0].startswith("Traceback") else lines[0])[:200] if lines else ""
    if done.status == "too_much_output":
        how = "wrote without end"
    elif done.status in ("missing", "denied"):
        how = "could not be started"
    elif done.code < 0:
        how = f"ended by signal {-done.code}"
    elif done.code:
        how = f"ended with exit status {done.code}"
    else:
        how = "ended without an answer, as no Python does"
    return f"{how}: {said}" if said else how


_IMPLEMENTATIONS = {"cpython": "CPython", "pypy": "PyPy", "graalpy": "GraalVM"}


def _tell_answer(look: Look, target: Target, answer: Mapping[str, Any]) -> None:
    of = f"of {target.executable}"
    name = answer["implementation"]
    look.add("python.version", answer["version"], f"sys.version {of}")
    look.add(
        "python.implementation",
        _IMPLEMENTATIONS.get(name, name),
        f"sys.implementation {of}",
    )
    look.add("python.executable", answer["executable"] or target.executable, f"sys.executable {of}")
    look.add("python.prefix", answer["prefix"], f"sys.prefix {of}")
    look.add("python.free_threaded", answer.get("free_threaded") is True, f"sys.abiflags {of}")
    look.add("python.environment", *environment_kind(look.host, answer["prefix"], answer))


def _tell_files(look: Look, target: Target, trouble: str, ended: bool) -> None:
    """What the files of an interpreter that gave no answer tell of it."""
    host, prefix = look.host, target.prefix
    version, version_source = version_from_files(host, target)
    look.add("python.executable", target.executable, "path by which it was chosen")
    look.add("python.version", version, version_source)
    if not version:
        look.gap("python.version", trouble)
        if ended:
            look.add("python.interpreter", False, f"starting {target.executable}: {trouble}")
        else:
            look.gap("python.interpreter", trouble)
    for name in ("implementation", "free_threaded", "path"):
        look.gap(f"python.{name}", trouble)
    if prefix:
        look.add("python.prefix", prefix, f"place of {target.executable}")
        look.add("python.environment", *environment_kind(host, prefix, {}))
    else:
        look.gap("python.prefix", trouble)
        look.gap("python.environment", trouble)


def environment_kind(host: Host, prefix: str, answer: Mapping[str, Any]) -> tuple[str, str]:
    """venv, virtualenv, conda, system or other, and what tells it."""
    config = pyvenv(host, prefix)
    if config:
        return "virtualenv" if "virtualenv" in config else "venv", f"{prefix}/pyvenv.cfg"
    if answer and answer["prefix"] != answer["base_prefix"]:
        return "virtualenv", "sys.prefix and the prefix of its base"
    if host.isdir(f"{prefix}/conda-meta"):
        return "conda", f"{prefix}/conda-meta"
    return "system" if prefix in ("/usr", "/usr/local") else "other", "sys.prefix"


_CONDA_PYTHON = re.compile(r"python-(\d+(?:\.\w+)+)-[^-]+\.json\Z")
_FULL_VERSION = re.compile(r"\d+\.\d+\.\d+(?:(?:a|b|rc)\d+)?")


def version_from_files(host: Host, target: Target) -> tuple[str, str]:
    """Version and source without starting it; ("", "") where no file tells.

    pyvenv.cfg has `version = 3.11.7` (venv) or `version_info = 3.11.7.final.0` (virtualenv, uv);
    conda's record is python-3.11.7-h955ad1f_0.json; a name such as python3.11 tells 3.11.
    """
    config = pyvenv(host, target.prefix) if target.prefix else {}
    for key in ("version", "version_info"):
        found = _FULL_VERSION.match(config.get(key, ""))
        if found:
            return found[0], f"{target.prefix}/pyvenv.cfg"
    if target.prefix:
        try:
            names = host.listdir(f"{target.prefix}/conda-meta")
        except PermissionError:
            names = []
        for name in names:
            record = _CONDA_PYTHON.match(name)
            if record:
                return record[1], f"{target.prefix}/conda-meta/{name}"
    real = host.real(target.executable)
    return version_of_name(real).rstrip("t"), f"name of {real}"


def package_folders(host: Host, answer: Mapping[str, Any]) -> list[str]:
    """Entries of sys.path that can hold packages, each place once, in order.

    Left out: what is not there, archives, and the standard library.
    """
    stdlib = host.real(answer["stdlib"])
    seen = {stdlib, f"{stdlib}/lib-dynload"}
    folders = []
    for entry in answer["path"][:PATH_LIMIT]:
        if not entry.startswith("/") or "\0" in entry:
            continue
        real = host.real(entry)
        if real not in seen and host.isdir(entry):
            seen.add(real)
            folders.append(entry)
    return folders


def marker_environment(host: Host, target: Target, answer: Mapping[str, Any]) -> dict[str, str]:
    """What requirement markers ask for, in the target: {} where its version is not known."""
    version = str(answer["version"]) if answer else version_from_files(host, target)[0]
    short = re.match(r"\d+\.\d+", version)
    if short is None:
        return {}
    implementation = str(answer["implementation"]) if answer else "cpython"
    return {
        "python_version": short[0],
        "python_full_version": version.rstrip("+"),
        "implementation_name": implementation,
        "implementation_version": version.rstrip("+"),
        "platform_python_implementation": _IMPLEMENTATIONS.get(implementation, implementation),
        "os_name": "posix",
        "sys_platform": "linux",
        "platform_system": str(answer.get("system") or "Linux"),
        "platform_machine": str(answer.get("machine") or host.arch or _machine(host, target)),
        "platform_release": str(answer.get("release") or ""),
        "platform_version": str(answer.get("system_version") or ""),
    }


def _machine(host: Host, target: Target) -> str:
    """Architecture of the interpreter's file, as `uname -m` says it; "" where it is no program."""
    try:
        return arch(host.read_bytes(host.real(target.executable), HEAD_BYTES)) or ""
    except (OSError, NotElf):
        return ""


# -- its distributions ------------------------------------------------------------------------


def _tell_distributions(look: Look, installed: Installed) -> None:
    first = installed.first()
    names = sorted(f"{dist.name}=={dist.version}" for dist in first.values())
    look.add("dist.all", [*names], "records in the folders of sys.path")
    for name in sorted(filter(in_gpu_stack, first)):
        dist = first[name]
        rivals = {d.version for d in installed.found if (d.name, d.folder) == (name, dist.folder)}
        if len(rivals) > 1:
            look.gap(
                f"dist.{name}.version",
                f"{dist.folder} has records of {' and '.join(sorted(rivals))} side by side",
            )
        elif read_header(look.host, dist) is None:
            look.gap(f"dist.{name}.version", f"{dist.record} has no metadata")
        else:
            look.add(f"dist.{name}.version", dist.version, dist.record)
        install = how_installed(look.host, dist, installed.editable)
        look.add(f"dist.{name}.installer", install.installer, f"{dist.record}/INSTALLER")
        look.add(f"dist.{name}.tag", install.tag, f"{dist.record}/WHEEL")
        look.add(f"dist.{name}.origin", install.origin, f"{dist.record}/direct_url.json")
        if install.editable:
            look.add(f"dist.{name}.editable", True, install.editable)
    copies = {(dist.name, dist.version, dist.folder): None for dist in installed.found}
    often = Counter(name for name, _, _ in copies)
    doubles = [
        f"{name} {version} {folder}"
        for name, version, folder in sorted(copies, key=lambda copy: copy[0])
        # The source folder of an editable install has a record of its own.
        if often[name] > 1 and name not in installed.editable
    ]
    if doubles:
        look.add("dist.duplicates", [*doubles], "records in the folders of sys.path")


def _tell_conflicts(look: Look, installed: Installed, environment: Mapping[str, str]) -> None:
    if not environment:
        look.gap("python.conflicts", "the version of the interpreter is not known")
        return
    first = installed.first()
    requirers = {
        name: (dist.version, requirements(look.host, dist))
        for name, dist in first.items()
        if in_gpu_stack(name)
    }
    versions = {name: dist.version for name, dist in first.items()}
    told = unmet(requirers, versions, environment)
    if told:
        look.add("python.conflicts", [*told], "Requires-Dist in the records of the GPU stack")
