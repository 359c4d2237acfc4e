"""The driver's user-mode libraries: which copy the loader would take, and where others lie."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from typing import NamedTuple

from envaudit import elf, ldcache
from envaudit.host import Host

VERSION = r"\d{3,4}\.\d+(?:\.\d+)*"
"""A driver release; the 1.1 of libcuda.so.1.1 on Jetson and WSL is none."""
_LIBRARY = re.compile(rf"\.so\.({VERSION})\Z")


class Library(NamedTuple):
    """A library of the driver."""

    path: str
    """The real path, links followed."""
    version: str | None
    found: str
    """The path under which the loader finds it."""
    via: str

    @property
    def is_compat(self) -> bool:
        """Whether it belongs to cuda-compat, by its folder."""
        folders = {*self.path.split("/")[:-1], *self.found.split("/")[:-1]}
        return any(name == "compat" or name.startswith("cuda-compat") for name in folders)

    @property
    def is_stub(self) -> bool:
        """Whether it is the toolkit's, for linking only."""
        return "stubs" in self.path.split("/")[:-1]


class Loader:
    """Where the dynamic loader finds libraries of the driver, for a program without RPATH."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.arch = host.arch or elf.arch(self._head("/bin/sh"))
        self.entries = ldcache.read_cache(host)
        self.mounts = parse_mountinfo(host.read_or("/proc/self/mountinfo"))

    def candidates(self, soname: str) -> Iterator[Library]:
        """Every library of this name on the loader's path; it takes the first."""
        host = self.host
        seen = set()
        for path, via in self._paths(soname):
            if host.exists(path) and self._fits(path):
                library = self._library(path, via)
                if library.path not in seen:
                    seen.add(library.path)
                    yield library

    def _paths(self, soname: str) -> Iterator[tuple[str, str]]:
        for folder in self.host.env.get("LD_LIBRARY_PATH", "").replace(";", ":").split(":"):
            if folder.startswith("/"):
                yield posixpath.join(folder, soname), "LD_LIBRARY_PATH"
        for path in ldcache.lookup(self.entries, soname, self.arch):
            yield path, ldcache.CACHE
        if not self.entries:
            for folder in ldcache.conf_dirs(self.host):
                yield posixpath.join(folder, soname), "/etc/ld.so.conf"
        for folder in ldcache.default_dirs(self.arch):
            yield posixpath.join(folder, soname), "default folder"

    def usual_places(self, soname: str) -> Iterator[Library]:
        """Copies in the folders where driver packages, toolkits and runtimes put them."""
        host = self.host
        toolkits = [f"/usr/local/{n}" for n in host.listdir("/usr/local") if n.startswith("cuda")]
        folders = [
            *ldcache.default_dirs(self.arch),
            *(f"{folder}/nvidia/current" for folder in ldcache.default_dirs(self.arch)[1:2]),
            "/usr/lib/wsl/lib",
            *(f"{kit}/compat{below}" for kit in toolkits for below in ("", "/lib", "/lib.real")),
            "/usr/local/nvidia/lib64",
            "/usr/local/nvidia/lib",
            "/run/opengl-driver/lib",
            "/run/nvidia/driver/usr/lib/x86_64-linux-gnu",
            "/run/nvidia/driver/usr/lib64",
            "/usr/lib/aarch64-linux-gnu/tegra",
            "/usr/lib/aarch64-linux-gnu/nvidia",
        ]
        for folder in folders:
            path = f"{folder}/{soname}"
            if host.exists(path) and self._fits(path):
                yield self._library(path, "usual folder")

    def _library(self, path: str, via: str) -> Library:
        real = self.host.real(path)
        found = _LIBRARY.search(real)
        if found is None:  # a bind mount of a file may tell what it was called outside
            mount = self.mounts.get(real)
            found = _LIBRARY.search(mount) if mount else None
        return Library(real, found[1] if found else None, path, via)

    def _fits(self, path: str) -> bool:
        """Whether the loader would pass it over: a library for another architecture."""
        arch = elf.arch(self._head(path))
        return arch is None or self.arch is None or arch == self.arch

    def _head(self, path: str) -> bytes:
        try:
            return self.host.read_bytes(path, elf.HEAD_BYTES)
        except OSError:
            return b""


def parse_mountinfo(text: str) -> dict[str, str]:
    """Mount points to what is mounted there, inside its own file system.

    1045 1022 259:1 /usr/lib/libcuda.so.535.54.03 /usr/lib/x86_64-linux-gnu/libcuda.so.1 ro - ext4
    """
    found = {}
    for line in text.splitlines():
        fields = line.split(" ")
        if len(fields) > 5:
            found[_unescaped(fields[4])] = _unescaped(fields[3])
    return found


def _unescaped(text: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), text)
