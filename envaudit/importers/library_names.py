"""Which libraries of a report matter, and what the path of one tells."""

from __future__ import annotations

import posixpath
import re

from envaudit.importers import Draft
from envaudit.libversion import family_of, is_main, version_in_name
from envaudit.patterns import regex

LISTED_LIMIT = 40
"""Most copies of one library that are listed."""

SONAME = r"lib[A-Za-z0-9_+.-]{1,80}?\.so(?:\.\d{1,10}){0,4}"
"""Name of a library as files and the loader have it."""
_OTHERS = regex(
    r"lib(?:cuda|nvidia-|nvcuvid|nvoptix|torch|c10|caffe2|stdc\+\+|tensorflow|onnxruntime|jax|xla|nvrtc|nv|cu)"
)
_DRIVER = regex(r"\.so\.(\d{3,4}\.\d+(?:\.\d+)*)\Z")
_LIBSTDCXX = regex(r"libstdc\+\+\.so\.6\.0\.(\d{1,3})\Z")
_SYSTEM = regex(
    r"/(?:usr/)?lib(?:64|32)?/(?:(?:x86_64|aarch64|powerpc64le)-linux-gnu/)?(?:nvidia/(?:current/)?)?[^/]+\Z"
    r"|/usr/lib/wsl/(?:lib|drivers/[^/]+)/[^/]+\Z"
)
_INSTALLS = {
    "libcudart": "cuda.runtime.installs",
    "libcudnn": "cudnn.installs",
    "libnccl": "nccl.installs",
}


def matters(name: str) -> bool:
    """Whether a library belongs to the GPU stack or to what it needs of the C++ runtime."""
    return family_of(name) is not None or _OTHERS.match(name) is not None


def is_system(path: str) -> bool:
    """Whether a file lies in a folder that the loader searches on every machine."""
    return _SYSTEM.match(path) is not None


def is_compat(path: str) -> bool:
    """Whether a library belongs to cuda-compat, by its folder."""
    folders = path.split("/")[:-1]
    return any(name == "compat" or name.startswith("cuda-compat") for name in folders)


def is_stub(path: str) -> bool:
    """Whether a library is the toolkit's, for linking only."""
    return "stubs" in path.split("/")[:-1]


def version_of(path: str) -> str:
    """The version that the file's name tells; "" where it has the soname alone.

    libcuda.so.535.104.05, libcudnn.so.8.9.7; libstdc++.so.6.0.30 has the symbols GLIBCXX_3.4.30.
    """
    name = posixpath.basename(path)
    driver = _DRIVER.search(name)
    if driver and name.startswith(("libcuda.", "libnvidia-", "libnv")) and family_of(name) is None:
        return driver[1]
    standard = _LIBSTDCXX.match(name)
    if standard:
        return f"3.4.{standard[1]}"
    return version_in_name(name) if family_of(name) else ""


def soname_of(name: str) -> str:
    """The soname of a file: what stands after the first number behind ".so" is its version.

    Libraries whose soname has two numbers (libcudart.so.11.0, libnvrtc.so.11.2) keep both.
    """
    if version_of(name):
        return re.sub(r"(\.so\.\d+).*\Z", r"\1", name)
    return name


class Copies:
    """Copies of libraries that a text names, and the facts that they make."""

    def __init__(self) -> None:
        self._lists: dict[str, dict[str, tuple[str, int]]] = {}
        self.libcuda: dict[str, tuple[str, int]] = {}
        """Path of each libcuda to its version and line."""

    def note(self, path: str, version: str, how: str, line: int) -> None:
        """One file, with what is known of its version; links to another are not noted."""
        name = posixpath.basename(path)
        if name.startswith("libcuda.so"):
            self._add("driver.library.copies", path, " ".join(filter(None, (path, version))), line)
            if version or path not in self.libcuda:
                self.libcuda[path] = version, line
        elif name.startswith("libstdc++.so.6"):
            self._add("libstdcxx.installs", path, f"{path} {version or 'unknown'} {how}", line)
        family = family_of(name)
        if family is not None and family.stem in _INSTALLS and is_main(name, family):
            text = f"{path} {version or 'unknown'} {how}"
            self._add(_INSTALLS[family.stem], path, text, line)

    def _add(self, fact: str, path: str, text: str, line: int) -> None:
        copies = self._lists.setdefault(fact, {})
        if path in copies and "unknown" not in copies[path][0]:
            return
        if len(copies) < LISTED_LIMIT:
            copies[path] = text, line

    def tell(self, draft: Draft, source: str) -> None:
        """Add the lists of copies."""
        for fact, copies in self._lists.items():
            texts = [text for text, _ in copies.values()]
            draft.add(fact, [*texts], source, next(iter(copies.values()))[1])
            draft.read(*(line for _, line in copies.values()))
