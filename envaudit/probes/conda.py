"""Conda packages of the GPU stack in the target's environment, from conda's own records.

A record is conda-meta/NAME-VERSION-BUILD.json, one a package; there may be hundreds, so the file
name decides which are opened, and of those only the head is read, for the channel.
"""

from __future__ import annotations

import re

from envaudit.probes import Look, NotHere
from envaudit.stack import conda_matters, without_secrets

HEAD_BYTES = 64 << 10
"""Read of a record: its keys are in alphabetical order, and the channel comes before the files."""


def look(look: Look) -> None:
    """List the records and tell version, build and channel of those that matter."""
    if look.target is None:
        raise NotHere("no Python interpreter")
    prefix = look.value("python.prefix") or look.target.prefix
    if not prefix:
        look.gap("conda.*", "the prefix of the target is not known")
        return
    folder = f"{prefix}/conda-meta"
    if not look.host.isdir(folder):
        raise NotHere("the target is not a conda environment")
    for entry in look.host.listdir(folder):
        record = parse_record_name(entry)
        if record is None or not conda_matters(record[0]):
            continue
        name, version, build = record
        source = f"{folder}/{entry}"
        look.add(f"conda.{name}.version", version, source)
        look.add(f"conda.{name}.build", build, source)
        channel, reason = None, "the record names none"
        try:
            channel = parse_channel(look.host.read(source, HEAD_BYTES))
        except OSError as problem:
            reason = problem.strerror or str(problem)
        look.add(f"conda.{name}.channel", channel, source)
        if channel is None:
            look.gap(f"conda.{name}.channel", f"{source}: {reason}")


_RECORD = re.compile(r"([a-z0-9_][a-z0-9_.-]*)-([^-/]+)-([^-/]+)\.json\Z")


def parse_record_name(entry: str) -> tuple[str, str, str] | None:
    """Name, version and build of pytorch-2.3.0-py3.11_cuda12.1_cudnn8.9.2_0.json."""
    found = _RECORD.match(entry)
    return (found[1], found[2], found[3]) if found else None


_CHANNEL = re.compile(r'"channel"\s*:\s*"([^"\\]{1,500})"')
_PLATFORM = re.compile(r"/(?:noarch|(?:linux|osx|win|emscripten|wasi)-[a-z0-9_]+)/?\Z")


def parse_channel(head: str) -> str | None:
    """Channel in the head of a record, as conda names it; None where there is none.

    "channel": "https://conda.anaconda.org/conda-forge/linux-64" gives conda-forge,
    "channel": "https://repo.anaconda.com/pkgs/main/linux-64" gives pkgs/main; a mirror keeps its
    host. A token (/t/TOKEN/) and credentials are left out.
    """
    found = _CHANNEL.search(head)
    if found is None:
        return None
    channel = re.sub(r"/t/[^/]+", "", without_secrets(found[1]))
    channel = _PLATFORM.sub("", channel)
    channel = re.sub(r"\Ahttps?://(?:conda\.anaconda\.org|repo\.anaconda\.com)/", "", channel)
    return re.sub(r"\A\w+://", "", channel).strip("/") or None
