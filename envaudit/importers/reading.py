"""Lines and numbers as other tools print them: bounded lines, versions written as integers."""

from __future__ import annotations

from collections.abc import Iterator

from envaudit.patterns import regex

TEXT_LIMIT = 4 << 20
"""Characters of a section that are looked at."""
LINE_LIMIT = 4000
"""A longer line is no line of a tool that people read."""


def numbered(text: str) -> Iterator[tuple[int, str]]:
    """Lines that are not empty with their number, from 1, without what ends them."""
    for number, line in enumerate(text[:TEXT_LIMIT].split("\n"), 1):
        line = line.rstrip("\r \t")
        if line and len(line) <= LINE_LIMIT:
            yield number, line


_INTEGER = regex(r"[0-9]{4,6}\Z")
_DOTTED = regex(r"[0-9]{1,4}(?:\.[0-9]{1,6}){1,3}\Z")
_TUPLE = regex(r"[(\[][ ]*([0-9]{1,4}(?:,[ ]*[0-9]{1,6}){0,3}),?[ ]*[)\]]\Z")


def is_dotted(text: str) -> bool:
    """Whether a text is a version of two to four numbers."""
    return bool(_DOTTED.match(text))


def dotted(text: str) -> str | None:
    """A version such as 12.4, written so or as the tuple (12, 4); None for anything else."""
    text = text.strip()
    match = _TUPLE.match(text)
    if match is not None:
        text = ".".join(part.strip() for part in match[1].split(","))
    return text if is_dotted(text) else None


def cuda_version(text: str) -> str | None:
    """CUDA's version, written 12.4, (12, 4) or as CUDA's own integer 12040."""
    text = text.strip()
    if _INTEGER.match(text):
        major, rest = divmod(int(text), 1000)
        return f"{major}.{rest // 10}" if 0 < major < 100 else None
    return dotted(text)


def cudnn_version(text: str) -> str | None:
    """cuDNN's version, written 8.9.7 or as CUDNN_VERSION: 8907, and from cuDNN 9 on 90100."""
    text = text.strip()
    if _INTEGER.match(text):
        number = int(text)
        unit = 10_000 if number >= 90_000 else 1000
        major, rest = divmod(number, unit)
        return f"{major}.{rest // 100}.{rest % 100}" if 0 < major < 90 else None
    return dotted(text)


def nccl_version(text: str) -> str | None:
    """NCCL's version, written 2.18.3, (2, 18, 3) or as NCCL_VERSION_CODE: 2708, later 21803."""
    text = text.strip()
    if _INTEGER.match(text):
        number = int(text)
        unit = 10_000 if number >= 10_000 else 1000
        major, rest = divmod(number, unit)
        return f"{major}.{rest // 100}.{rest % 100}"
    return dotted(text)


def driver_release(text: str) -> str | None:
    """A driver release from software that prints its parts as numbers.

    535.104.5 is the release 535.104.05, and 410.78.0 the release 410.78.
    """
    text = text.strip()
    if not is_driver(text):
        return None
    parts = text.split(".")
    if len(parts) == 3 and len(parts[2]) == 1:
        return ".".join(parts[:2]) if parts[2] == "0" else f"{parts[0]}.{parts[1]}.0{parts[2]}"
    return text


_DRIVER = regex(r"[1-9][0-9]{2}\.[0-9]{1,4}(?:\.[0-9]{1,3})?\Z")


def is_driver(text: str) -> bool:
    """Whether a text has the form of a driver release, such as 535.104.05 or 552.22."""
    return bool(_DRIVER.match(text))


_RELEASE = regex(r"v?([0-9]{1,4}\.[0-9]{1,6}[0-9A-Za-z.+_\-]{0,60})(?=[\s,;:)|'\"(\]]|\Z)")


def release(text: str) -> str | None:
    """The version at the start of a text as a package has it, such as 2.1.0a0+32f93b1."""
    match = _RELEASE.match(text.strip().strip("'\"`"))
    return match[1].rstrip(".-_+") if match else None


_SEPARATORS = regex(r"[-_.]+")


def package_name(text: str) -> str:
    """A distribution's name in its normal form (PEP 503)."""
    return _SEPARATORS.sub("-", text.strip().lower())


_PERCENT = regex(r"%([0-9A-Fa-f]{2})")


def unquote(text: str) -> str:
    """A piece of a URL with its ASCII percent escapes read; urllib takes milliseconds to import."""
    return _PERCENT.sub(
        lambda found: chr(int(found[1], 16)) if int(found[1], 16) < 128 else found[0], text
    )
