"""The only door to the machine.

Three kinds of Host answer the same questions: the live machine, another root (a mounted image;
files only) and a recorded machine (a folder with files and the outputs of commands, for tests
and for looking again at what somebody else saw). Paths are always the machine's own absolute
paths; the door maps them.
"""

from __future__ import annotations

import errno
import os
import posixpath
from collections.abc import Mapping, Sequence
from typing import Any

from envaudit.isolate import Done, run_command

READ_LIMIT_BYTES = 4 << 20
"""Most of a text file that is read; everything that matters in one is far smaller."""


class CannotRun(Exception):
    """This host has no commands: a mounted image, or a recording without that command."""


class Host:
    """One machine to look at."""

    def __init__(
        self,
        root: str = "/",
        *,
        env: Mapping[str, str] | None = None,
        recorded: Mapping[str, Any] | None = None,
    ) -> None:
        self.root = os.path.abspath(root)
        self.recorded = recorded
        self.live = self.root == "/" and recorded is None
        self.env: Mapping[str, str] = (
            env if env is not None else dict(os.environ) if self.live else {}
        )

    @classmethod
    def from_recording(cls, folder: str) -> Host:
        """A recorded machine: `folder/root/` with files and `folder/machine.json` with the rest.

        machine.json: {"arch": ..., "env": {...}, "commands": {"nvidia-smi -L": {"stdout":...,
        "stderr":..., "exit": 0}}, "disks": {"/": {"size":..., "free":...}}, "cpus": 64,
        "nvml": true where a (fake) NVML library is to be asked}.
        """
        import json

        with open(os.path.join(folder, "machine.json"), encoding="utf-8") as file:
            recorded = json.load(file)
        return cls(os.path.join(folder, "root"), env=recorded.get("env", {}), recorded=recorded)

    @property
    def files_only(self) -> bool:
        """Whether this is a machine that does not run: its /proc and /sys would be another's."""
        return not self.live and self.recorded is None

    @property
    def arch(self) -> str | None:
        """Machine architecture; None where only files are at hand."""
        if self.recorded is not None:
            value = self.recorded.get("arch")
            return str(value) if value else None
        return os.uname().machine if self.live else None

    # -- files ---------------------------------------------------------------------------

    def at(self, path: str) -> str:
        """Where the machine's `path` lies for us, links followed inside the machine's root."""
        return path if self.root == "/" else self._inside(path)

    def _inside(self, path: str) -> str:
        """Resolve links as the machine itself would: an absolute link starts at its root."""
        done = ""
        todo = [part for part in path.split("/") if part not in ("", ".")]
        hops = 0
        while todo:
            part = todo.pop(0)
            if part == "..":
                done = posixpath.dirname(done)
                continue
            here = f"{done}/{part}"
            try:
                link = os.readlink(self.root + here)
            except OSError:
                done = here
                continue
            hops += 1
            if hops > 40:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
            if link.startswith("/"):
                done = ""
            todo = [bit for bit in link.split("/") if bit not in ("", ".")] + todo
        return self.root + done

    def real(self, path: str) -> str:
        """The machine's own real path behind `path`."""
        if self.root == "/":
            return os.path.realpath(path)
        return self._inside(path)[len(self.root) :] or "/"

    def read_bytes(self, path: str, limit: int = READ_LIMIT_BYTES, offset: int = 0) -> bytes:
        """At most `limit` bytes of a file from `offset` on. Raises OSError as open and read do."""
        # O_NONBLOCK: opening a FIFO in place of a file must not wait for a writer.
        fd = os.open(self.at(path), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            if offset:
                os.lseek(fd, offset, os.SEEK_SET)
            parts = []
            while limit > 0:
                part = os.read(fd, min(limit, 1 << 16))
                if not part:
                    break
                parts.append(part)
                limit -= len(part)
            return b"".join(parts)
        finally:
            os.close(fd)

    def read(self, path: str, limit: int = READ_LIMIT_BYTES) -> str:
        """A text file, with undecodable bytes replaced. Raises OSError."""
        return self.read_bytes(path, limit).decode("utf-8", "replace")

    def read_or(self, path: str, default: str = "") -> str:
        """A text file, or `default` where it cannot be read: for files whose lack says nothing."""
        try:
            return self.read(path)
        except OSError:
            return default

    def exists(self, path: str) -> bool:
        """Whether something is there (links followed)."""
        return os.path.exists(self.at(path))

    def isdir(self, path: str) -> bool:
        """Whether a folder is there (links followed)."""
        return os.path.isdir(self.at(path))

    def listdir(self, path: str) -> list[str]:
        """Names in a folder, sorted; empty where there is none. Raises PermissionError."""
        try:
            return sorted(os.listdir(self.at(path)))
        except (FileNotFoundError, NotADirectoryError):
            return []

    def readlink(self, path: str) -> str | None:
        """What a link says, without following it further; None where it is no link."""
        parent = self.at(posixpath.dirname(path))
        try:
            return os.readlink(posixpath.join(parent, posixpath.basename(path)))
        except OSError:
            return None

    def stat(self, path: str) -> os.stat_result:
        """Status of a file (links followed). Raises OSError."""
        return os.stat(self.at(path))

    def disk(self, path: str) -> tuple[int, int]:
        """Size and free bytes of the file system at `path`. Raises OSError."""
        if self.recorded is not None:
            disk = self.recorded.get("disks", {}).get(path)
            if disk is None:
                raise FileNotFoundError(errno.ENOENT, "not recorded", path)
            return int(disk["size"]), int(disk["free"])
        found = os.statvfs(self.at(path))
        return found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize

    # -- commands ------------------------------------------------------------------------

    def which(self, name: str) -> str | None:
        """The file that the PATH of the audited environment gives for a command name."""
        if "/" in name:
            return name if self._executable(name) else None
        path = (
            self.env.get("PATH") or "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        )
        for folder in path.split(":"):
            candidate = posixpath.join(folder or ".", name)
            if self._executable(candidate):
                return candidate
        return None

    def _executable(self, path: str) -> bool:
        here = self.at(path)
        if self.recorded is not None:
            return os.path.isfile(here)
        return os.path.isfile(here) and os.access(here, os.X_OK)

    def run(
        self,
        argv: Sequence[str],
        *,
        seconds: float,
        env: Mapping[str, str] | None = None,
        with_answer: bool = False,
    ) -> Done:
        """Run a command of the machine to its end or a deadline; see `isolate.run_command`.

        A recorded machine answers from its recording, by the command's base name and arguments.
        Raises CannotRun where this host has no commands.
        """
        if self.recorded is not None:
            key = " ".join([posixpath.basename(argv[0]), *argv[1:]])
            said = self.recorded.get("commands", {}).get(key)
            if said is None:
                raise CannotRun(f"{key}: not recorded")
            return Done(
                tuple(argv),
                said.get("status", "ok"),
                int(said.get("exit", 0)),
                said.get("stdout", ""),
                said.get("stderr", ""),
                said.get("answer", ""),
            )
        if not self.live:
            raise CannotRun("only files of this machine are at hand")
        return run_command(
            argv, seconds=seconds, env=self.env if env is None else env, with_answer=with_answer
        )
