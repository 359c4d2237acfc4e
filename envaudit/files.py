"""Write a file that was asked for (-o) whole or not at all."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile

from envaudit.errors import UsageError


def write_atomically(path: str, text: str) -> None:
    """Replace `path` by this text; on any failure it stays as it was.

    A device or pipe (/dev/stdout, a process substitution) is written to as it is. Raises
    UsageError with the reason.
    """
    data = text.encode("utf-8", "surrogateescape")
    try:
        if os.path.exists(path) and not stat.S_ISREG(os.stat(path).st_mode):
            with open(path, "wb") as file:
                file.write(data)
            return
        # A link is written through, as every other program does.
        place = os.path.realpath(path)
        fd, temporary = tempfile.mkstemp(prefix=".envaudit-", dir=os.path.dirname(place) or ".")
        try:
            with os.fdopen(fd, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(temporary, _mode(place))
            os.replace(temporary, place)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
    except OSError as problem:
        raise UsageError(
            f"-o {path}: {problem.strerror or problem}", "Name a file in a folder you can write to."
        ) from problem


def _mode(path: str) -> int:
    """The mode a file written the plain way would have."""
    with contextlib.suppress(OSError):
        return stat.S_IMODE(os.stat(path).st_mode)
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
