"""The interpreter under audit: which one, and where its packages lie, without running it.

Nothing of envaudit is imported there. Running the target to ask it is a probe's job, with a
deadline; what is found here from files alone stands when the target hangs.
"""

from __future__ import annotations

import os
import posixpath
import re
import sys
from dataclasses import dataclass

from envaudit.errors import UsageError
from envaudit.host import Host


@dataclass(frozen=True, slots=True)
class Target:
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
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        prefix = host.env.get(variable)
        if prefix:
            executable = posixpath.join(prefix, "bin", "python")
            if host.exists(executable):
                return _target(host, executable, f"${variable}")
    for name in ("python3", "python"):
        found = host.which(name)
        if found:
            return _target(host, found, f"{name} on PATH")
    if host.live:
        return _target(host, sys.executable, "envaudit's own interpreter")
    return None


def _named(host: Host, python: str) -> Target:
    path = python
    if "/" not in python:
        found = host.which(python)
        if found is None:
            raise UsageError(
                f"--python {python}: no such command on PATH",
                "Give the path of the interpreter, for example --python venv/bin/python.",
            )
        path = found
    elif host.live:
        path = os.path.abspath(os.path.expanduser(python))
    if host.isdir(path):  # a virtual environment was named instead of its interpreter
        for inside in ("bin/python", "bin/python3"):
            if host.exists(posixpath.join(path, inside)):
                return _target(host, posixpath.join(path, inside), "--python")
        raise UsageError(
            f"--python {python}: a folder without bin/python",
            "Give the interpreter itself or a virtual environment.",
        )
    if not host.exists(path):
        raise UsageError(f"--python {python}: no such file")
    if host.live and not os.access(path, os.X_OK):
        raise UsageError(f"--python {python}: not an executable file")
    return _target(host, path, "--python")


def _target(host: Host, executable: str, chosen_by: str) -> Target:
    home = posixpath.dirname(executable)
    prefix = posixpath.dirname(home)
    if host.exists(posixpath.join(prefix, "pyvenv.cfg")) or host.exists(
        posixpath.join(prefix, "conda-meta")
    ):
        return Target(executable, chosen_by, prefix, site_dirs(host, prefix))
    real = host.real(executable)
    if _is_script(host, real):  # a wrapper such as a version manager's shim: only asking helps
        return Target(executable, chosen_by, "", ())
    real_prefix = posixpath.dirname(posixpath.dirname(real))
    return Target(executable, chosen_by, real_prefix, site_dirs(host, real_prefix))


def _is_script(host: Host, path: str) -> bool:
    try:
        return host.read_bytes(path, 2) == b"#!"
    except OSError:
        return False


_PYTHON_FOLDER = re.compile(r"python3(\.\d+)?t?$")


def site_dirs(host: Host, prefix: str) -> tuple[str, ...]:
    """Package folders below a prefix: site-packages, and the dist-packages of Debian."""
    found = []
    for lib in ("lib", "lib64", "local/lib"):
        base = posixpath.join(prefix, lib)
        for name in host.listdir(base):
            if _PYTHON_FOLDER.match(name):
                for packages in ("site-packages", "dist-packages"):
                    path = posixpath.join(base, name, packages)
                    if host.isdir(path) and path not in found:
                        found.append(path)
    if prefix == "/usr":
        extra = posixpath.join("/usr/local/lib")
        for name in host.listdir(extra):
            path = posixpath.join(extra, name, "dist-packages")
            if _PYTHON_FOLDER.match(name) and host.isdir(path) and path not in found:
                found.insert(0, path)
    return tuple(dict.fromkeys(host.real(path) for path in found))
