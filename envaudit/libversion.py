"""The version of a CUDA library file, told by the files around it; the library is not loaded.

A library's own name tells it best (libcudnn.so.9.1.0). Wheels name the file by its soname only:
there the header beside it or the distribution that brought it tells, in a toolkit its version.json.
"""

from __future__ import annotations

import contextlib
import json
import posixpath
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from envaudit.host import Host

HEADER_LIMIT_BYTES = 1 << 18
RECORD_LIMIT_BYTES = 1 << 20
NCCL_SEARCH_BYTES = 16 << 20
"""How far into libnccl its version text is looked for; in real ones it lies within 3 MiB."""


class Family(NamedTuple):
    """One library of the CUDA stack, with what tells its version."""

    stem: str
    fact: str = ""
    """Catalogue name of its version; "" for libraries that only have lib.* facts."""
    dist: str = ""
    """Name of its wheels, without a part for the CUDA release such as _cu12."""
    json_key: str = ""
    """Its key in a toolkit's version.json."""
    header: str = ""
    macros: tuple[str, ...] = ()
    """Macros of the header that hold the parts of the version; one alone holds it coded."""
    header_first: bool = False
    """The header has the version that people compare; the wheel adds a build number to it."""


_CUBLAS = ("CUBLAS_VER_MAJOR", "CUBLAS_VER_MINOR", "CUBLAS_VER_PATCH", "CUBLAS_VER_BUILD")
_CUDNN = ("CUDNN_MAJOR", "CUDNN_MINOR", "CUDNN_PATCHLEVEL")
_TENSORRT = ("NV_TENSORRT_MAJOR", "NV_TENSORRT_MINOR", "NV_TENSORRT_PATCH")


def _macros(prefix: str) -> tuple[str, ...]:
    return tuple(f"{prefix}_VER_{part}" for part in ("MAJOR", "MINOR", "PATCH", "BUILD"))


FAMILIES: tuple[Family, ...] = (
    Family(
        "libcudart",
        "cuda.runtime.version",
        "nvidia_cuda_runtime",
        "cuda_cudart",
        "cuda_runtime_api.h",
        ("CUDART_VERSION",),
    ),
    Family("libcublas", "cublas.version", "nvidia_cublas", "libcublas", "cublas_api.h", _CUBLAS),
    Family("libcublasLt", "", "nvidia_cublas", "libcublas", "cublas_api.h", _CUBLAS),
    Family("libcudnn", "cudnn.version", "nvidia_cudnn", "", "cudnn_version.h", _CUDNN, True),
    Family(
        "libnccl",
        "nccl.version",
        "nvidia_nccl",
        "",
        "nccl.h",
        ("NCCL_MAJOR", "NCCL_MINOR", "NCCL_PATCH"),
        True,
    ),
    Family("libnvJitLink", "nvjitlink.version", "nvidia_nvjitlink", "libnvjitlink"),
    Family("libnvrtc", "nvrtc.version", "nvidia_cuda_nvrtc", "cuda_nvrtc"),
    Family(
        "libcusparse",
        "cusparse.version",
        "nvidia_cusparse",
        "libcusparse",
        "cusparse.h",
        _macros("CUSPARSE"),
    ),
    Family("libcusparseLt", "", "nvidia_cusparselt"),
    Family(
        "libcusolver",
        "",
        "nvidia_cusolver",
        "libcusolver",
        "cusolver_common.h",
        _macros("CUSOLVER"),
    ),
    Family("libcufft", "", "nvidia_cufft", "libcufft", "cufft.h", _macros("CUFFT")),
    Family("libcurand", "", "nvidia_curand", "libcurand", "curand.h", _macros("CURAND")),
    Family("libcupti", "", "nvidia_cuda_cupti", "cuda_cupti"),
    Family("libnvToolsExt", "", "nvidia_nvtx", "cuda_nvtx"),
    Family("libcufile", "", "nvidia_cufile", "libcufile"),
    Family("libnvshmem_host", "", "nvidia_nvshmem"),
    Family("libcutensor", "", "cutensor"),
    Family(
        "libnvinfer",
        "tensorrt.version",
        "tensorrt_libs",
        "",
        "NvInferVersion.h",
        _TENSORRT,
        True,
    ),
)
"""Every library of the CUDA stack that is told of."""

_NAME = re.compile(r"(lib[A-Za-z]\w*?)(?:-[0-9a-f]{8})?(-builtins)?\.so((?:\.\d+)*)")
_DIST_INFO = re.compile(r"([^-]+)-([^-]+)\.dist-info")
_BY_STEM = {family.stem: family for family in FAMILIES}


def family_of(name: str) -> Family | None:
    """The family of a library by the name of its file or its soname; None for all others.

    libcudnn_ops.so.9 and libnvrtc-builtins.so.13.0 belong to the library that opens them;
    libcudart-d0da41ae.so.11.0 is a name as wheels with bundled libraries have it.
    """
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    stem = match.group(1)
    if stem.startswith("libcudnn_"):
        stem = "libcudnn"
    return _BY_STEM.get(stem)


def is_main(name: str, family: Family) -> bool:
    """Whether this is the library itself and none of those that it opens."""
    match = _NAME.fullmatch(name)
    return match is not None and match.group(1) == family.stem and not match.group(2)


def version_in_name(name: str) -> str:
    """The version that a library's file name tells: three numbers or more after ".so".

    "libcudnn.so.9.1.0" gives 9.1.0; fewer numbers are the soname (libcudart.so.11.0).
    """
    match = _NAME.fullmatch(name)
    numbers = match.group(3).lstrip(".") if match else ""
    return numbers if numbers.count(".") >= 2 else ""


_DEFINE = re.compile(r"\n[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+(\w+)")
"""Begins with a line's end: a sixth of the time that ^ takes, and headers are long."""


def version_in_header(text: str, macros: Sequence[str]) -> str:
    """The version in a header, from macros for its parts or one that codes it.

    #define CUDNN_MAJOR 9              NvInferVersion.h names another macro as the value:
    #define CUDNN_MINOR 24             #define NV_TENSORRT_MAJOR TRT_MAJOR_ENTERPRISE
    #define CUDNN_PATCHLEVEL 0
    #define CUDART_VERSION  13000      1000 * major + 10 * minor: "13.0"
    """
    defined: dict[str, str] = {}
    for name, value in _DEFINE.findall(f"\n{text}"):
        defined.setdefault(name, value)
    parts = []
    for macro in macros:
        value = defined.get(macro, "")
        value = defined.get(value, value)
        if not value.isdecimal():
            return ""
        parts.append(str(int(value[:9])))
    if len(macros) == 1 and parts:
        code = int(parts[0])
        return f"{code // 1000}.{code % 1000 // 10}" if code >= 1000 else ""
    return ".".join(parts)


def versions_in_json(text: str) -> dict[str, str]:
    """Component to version from a toolkit's version.json.

    {"cuda": {"name": "CUDA SDK", "version": "12.4.1"}, "cuda_nvcc": {..., "version": "12.4.131"}}
    """
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(data, dict):
        return {}
    return {
        key: part["version"]
        for key, part in data.items()
        if isinstance(part, dict) and isinstance(part.get("version"), str)
    }


def version_in_nccl(data: bytes) -> str:
    """The version in the bytes of libnccl: "NCCL version 2.30.7+cuda13.0" gives 2.30.7."""
    match = re.search(rb"NCCL version (\d+\.\d+(?:\.\d+)*)", data)
    return match.group(1).decode() if match else ""


def recorded(record: str, path: str, size: int) -> bool:
    """Whether a RECORD lists `path`, with this size where it says one.

    nvidia/cudnn/lib/libcudnn.so.9,sha256=D0MRPsaxcf...,129240
    """
    for line in record.splitlines():
        if line.startswith(path):
            fields = line.rsplit(",", 2)
            if fields[0].strip('"') == path:
                said = fields[-1].strip()
                return not said.isdecimal() or int(said[:18]) == size
    return False


class Versions:
    """Answers for the libraries of one machine; reads each file at most once."""

    def __init__(self, host: Host, package_dirs: Sequence[str] = ()) -> None:
        self.host = host
        found: dict[str, None] = {}
        for path in package_dirs:
            with contextlib.suppress(OSError):  # a link that leads round in a circle
                found[host.real(path)] = None
        self.package_dirs = tuple(found)
        self._known: dict[str, tuple[str, str]] = {}
        self._dists: dict[str, dict[str, list[tuple[str, str]]]] = {}
        self._texts: dict[str, str] = {}

    def of(self, path: str) -> tuple[str, str]:
        """Version of the library at a real path and what told it; ("", "") where no file does."""
        if path not in self._known:
            family = family_of(posixpath.basename(path))
            found = self._ways(path, family) if family is not None else iter(())
            self._known[path] = next(((v, source) for v, source in found if v), ("", ""))
        return self._known[path]

    def _ways(self, path: str, family: Family) -> Iterator[tuple[str, str]]:
        name = posixpath.basename(path)
        yield version_in_name(name), f"name of {path}"
        if family.header_first:
            yield self._from_header(path, family)
        yield self._from_wheel(path, family)
        yield self._from_json(path, family)
        if family.stem == "libnccl":
            yield self._from_nccl(path)
        if not family.header_first:
            yield self._from_header(path, family)

    def _from_header(self, path: str, family: Family) -> tuple[str, str]:
        if not family.header:
            return "", ""
        folder = posixpath.dirname(path)
        above, last = posixpath.split(folder)
        places = [f"{above}/include"]
        if posixpath.basename(above) == "lib":  # /usr/lib/x86_64-linux-gnu
            top = posixpath.dirname(above)
            places = [f"{top}/include/{last}", f"{top}/include"]
        match = _NAME.fullmatch(posixpath.basename(path))
        major = match.group(3).lstrip(".").split(".")[0] if match else ""
        for place in places:
            header = f"{place}/{family.header}"
            version = version_in_header(self._text(header, HEADER_LIMIT_BYTES), family.macros)
            # A header of another release may lie in a folder that many packages share.
            if version and major in ("", version.split(".")[0]):
                return version, header
        return "", ""

    def _from_wheel(self, path: str, family: Family) -> tuple[str, str]:
        for folder in self.package_dirs:
            if not path.startswith(folder + "/") or not family.dist:
                continue
            inside = path[len(folder) + 1 :]
            for name, version in self._dist_infos(folder).get(family.dist, ()):
                record = self._text(f"{folder}/{name}/RECORD", RECORD_LIMIT_BYTES)
                try:
                    size = self.host.stat(path).st_size
                except OSError:
                    continue
                if recorded(record, inside, size):
                    return version, f"{folder}/{name}"
        return "", ""

    def _from_json(self, path: str, family: Family) -> tuple[str, str]:
        folder = posixpath.dirname(path)
        for _ in range(3):  # lib64/, targets/x86_64-linux/lib/
            folder = posixpath.dirname(folder)
            if not family.json_key or folder in ("/", "/usr", ""):
                break
            file = f"{folder}/version.json"
            version = versions_in_json(self._text(file, HEADER_LIMIT_BYTES)).get(family.json_key)
            if version:
                return version, file
        return "", ""

    def _from_nccl(self, path: str) -> tuple[str, str]:
        try:
            return version_in_nccl(self.host.read_bytes(path, NCCL_SEARCH_BYTES)), path
        except OSError:
            return "", ""

    def _dist_infos(self, folder: str) -> dict[str, list[tuple[str, str]]]:
        """Records in a folder, each with its version, by the name of the wheel without -cu12."""
        if folder not in self._dists:
            found: dict[str, list[tuple[str, str]]] = {}
            try:
                names = self.host.listdir(folder)
            except OSError:
                names = []
            for name in names:
                match = _DIST_INFO.fullmatch(name)
                if match is not None:
                    dist = re.sub(r"_cu\d+", "", match.group(1))
                    found.setdefault(dist, []).append((name, match.group(2)))
            self._dists[folder] = found
        return self._dists[folder]

    def _text(self, path: str, limit: int) -> str:
        if path not in self._texts:
            try:
                self._texts[path] = self.host.read(path, limit)
            except OSError:
                self._texts[path] = ""
        return self._texts[path]
