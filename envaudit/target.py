"""The interpreter under audit: which one, and where its packages lie, without running it.

Nothing of envaudit is imported there. Running the target to ask it is a probe's job, with a
deadline; what is found here from files alone stands when the target hangs.
"""

from __future__ import annotations

import os
import posixpath
import re
import stat
import sys
from typing import NamedTuple

from envaudit.errors import UsageError
from envaudit.host import Host


class Target(NamedTuple):
    """One Python interpreter and its places, as its files tell them."""

    executable: str
    """As it was named or found; may be a link or a wrapper script."""
    chosen_by: str
    """Why this one, in words for the reader: "--python", "$VIRTUAL_ENV", ..."""
    prefix: str
    """Folder that holds bin/ and lib/ of its environment; "" where it cannot be told."""
    site_dirs: tuple[str, ...]
    """Package folders by layout, nearest first. The interpreter's own sys.path is better."""


def find_target(host: Host, python: str | None = None) -> Target | None:
    """The interpreter to audit: --python, $VIRTUAL_ENV, $CONDA_PREFIX, python3 on PATH, our own.

    None when the host (an image without Python) has none. Raises UsageError for a --python
    that is not an interpreter.
    """
    if python is not None:
        return _named(host, python)
    missed = ""
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        prefix = host.env.get(variable)
        if prefix:
            executable = posixpath.join(prefix, "bin", "python")
            if host.exists(executable):
                return _target(host, executable, f"${variable}")
            missed += f" (${variable} is {prefix}, where there is no bin/python)"
    for name in ("python3", "python"):
        found = host.which(name)
        if found:
            return _target(host, found, f"{name} on PATH{missed}")
    if host.live:
        return _target(host, sys.executable, "envaudit's own interpreter")
    return None


def script(host: Host, name: str) -> str:
    """Path of one of the scripts that the target runs; a recorded machine knows it by its name."""
    if host.recorded is not None:
        return name
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "in_target", name)


def _named(host: Host, python: str) -> Target:
    path = posixpath.normpath(posixpath.join("/", python))
    if host.live:
        path = os.path.abspath(os.path.expanduser(python))
    for inside in ("bin/python", "bin/python3"):  # an environment instead of its interpreter
        if host.exists(posixpath.join(path, inside)):
            return _target(host, posixpath.join(path, inside), "--python")
    if "/" not in python:
        found = host.which(python)
        if found is None:
            raise UsageError(
                f"--python {python}: no such command on PATH",
                "Give the path of the interpreter, for example --python venv/bin/python.",
            )
        path = found
    if host.isdir(path):
        raise UsageError(
            f"--python {python}: a folder without bin/python",
            "Give the interpreter itself or a virtual environment.",
        )
    try:
        mode = host.stat(path).st_mode
    except OSError as problem:
        raise UsageError(f"--python {python}: {problem.strerror or problem}".rstrip()) from None
    if not stat.S_ISREG(mode):
        raise UsageError(f"--python {python}: not a file that could be run")
    if host.live and not os.access(path, os.X_OK):
        raise UsageError(f"--python {python}: not an executable file")
    return _target(host, path, "--python")


def _target(host: Host, executable: str, chosen_by: str) -> Target:
    if host.live:  # PATH may have relative folders
        executable = os.path.abspath(executable)
    prefix = posixpath.dirname(posixpath.dirname(executable))
    real = host.real(executable)
    if any(host.exists(f"{prefix}/{mark}") for mark in ("pyvenv.cfg", "conda-meta")):
        return Target(executable, chosen_by, prefix, site_dirs(host, prefix, real))
    if _is_script(host, real):  # a wrapper such as a version manager's shim: only asking helps
        return Target(executable, chosen_by, "", ())
    prefix = posixpath.dirname(posixpath.dirname(real))
    return Target(executable, chosen_by, prefix, site_dirs(host, prefix, real))


def _is_script(host: Host, path: str) -> bool:
    try:
        return host.read_bytes(path, 2) == b"#!"
    except OSError:
        return False


_PYTHON_FOLDER = re.compile(r"(?:python|pypy)3(?:\.\d+)?t?\Z")
_PYTHON_NAME = re.compile(r"(?:python|pypy)(\d+\.\d+t?)\Z")


def version_of_name(path: str) -> str:
    """The version in the name of an interpreter's file or library folder: python3.11 -> 3.11."""
    found = _PYTHON_NAME.match(posixpath.basename(path))
    return found[1] if found else ""


def pyvenv(host: Host, prefix: str) -> dict[str, str]:
    """The `key = value` lines of a virtual environment's pyvenv.cfg; empty where there is none."""
    pairs = (line.split("=", 1) for line in host.read_or(f"{prefix}/pyvenv.cfg").splitlines())
    return {pair[0].strip().lower(): pair[1].strip() for pair in pairs if len(pair) == 2}


def site_dirs(host: Host, prefix: str, executable: str = "") -> tuple[str, ...]:
    """Package folders of an environment by the layouts in use, nearest first.

    Where the interpreter's real path has its version in the name, folders of other versions
    below the same prefix are left out. Follows a virtual environment that sees the packages of
    its base, PYTHONPATH, and the user's own packages where the environment has them.
    """
    config = pyvenv(host, prefix)
    found = [entry for entry in host.env.get("PYTHONPATH", "").split(":") if entry[:1] == "/"]
    version = version_of_name(executable)
    bases = [prefix]
    # As the interpreter reads it: without that line the base's packages are seen.
    inherits = bool(config) and config.get("include-system-site-packages", "true").lower() == "true"
    if inherits and config.get("home"):  # the folder of the base's interpreter
        bases.append(posixpath.dirname(config["home"]))
    home = host.env.get("HOME")
    if home and not host.env.get("PYTHONNOUSERSITE") and (inherits or not config):
        bases.insert(1 if inherits else 0, f"{home}/.local")
    for base in bases:
        if base == "/usr":  # Debian: what pip installs goes before what apt installs
            found += _below(host, "/usr/local/lib", version, ("dist-packages",))
        for lib in ("lib", "lib64", "local/lib"):
            found += _below(host, f"{base}/{lib}", version, ("site-packages", "dist-packages"))
    return tuple(dict.fromkeys(host.real(path) for path in found if host.isdir(path)))


def _below(host: Host, lib: str, version: str, packages: tuple[str, ...]) -> list[str]:
    try:
        names = host.listdir(lib)
    except PermissionError:
        return []
    return [
        f"{lib}/{name}/{last}"
        for name in names
        if _PYTHON_FOLDER.match(name)
        and version_of_name(name) in ("", version or version_of_name(name))
        for last in packages
    ]
