"""What a framework brings into its process: built on paper from its files, nothing is run.

A process begins with the interpreter; then the framework loads some libraries by path, its
extension modules with all they need, and libraries open others by name when they are used.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from envaudit.host import Host
from envaudit.libversion import FAMILIES, Versions, family_of, is_main
from envaudit.loader import Files, Loaded, Process, is_soname

TEXT_LIMIT_BYTES = 1 << 19
"""Most that is read of a framework's Python file; torch/__init__.py has 110 KB."""

_BY_NAME = ("libcudart", "libcublas", "libcublasLt", "libcufft", "libcusolver", "libcusparse") + (
    "libcudnn",
    "libnccl",
)
"""What frameworks open by name when they do not link it."""


class Framework(NamedTuple):
    """Where a framework's process begins."""

    name: str
    entries: tuple[str, ...] = ()
    """Its libraries below a package folder, in the order of loading; * in the last part."""
    optional: tuple[str, ...] = ()
    """Libraries that it loads only when asked to: what they miss is no news."""
    cuda_if: tuple[str, str] = ("", "")
    """File below the package folder, and what it says when this is a CUDA build."""
    by_name: tuple[str, ...] = ()
    """Stems of libraries that a CUDA build opens by name from its entries."""


FRAMEWORKS: tuple[Framework, ...] = (
    Framework(
        "torch",
        entries=("torch/_C.*.so",),
        optional=("torch/lib/libcaffe2_nvrtc.so", "torch/lib/libtorch_cuda_linalg.so"),
    ),
    Framework(
        "tensorflow",
        entries=("tensorflow/libtensorflow_framework.so.2", "tensorflow/libtensorflow_cc.so.2"),
        cuda_if=("tensorflow/python/platform/build_info.py", r"is_cuda_build['\"][,:]\s*True"),
        by_name=_BY_NAME,
    ),
    Framework(
        "jax",
        entries=(
            "jax_plugins/xla_cuda12/xla_cuda_plugin.so",
            "jax_plugins/xla_cuda13/xla_cuda_plugin.so",
            "jax_cuda12_plugin/*.so",
            "jax_cuda13_plugin/*.so",
            "jaxlib/cuda/*.so",
        ),
        by_name=_BY_NAME,
    ),
    Framework(
        "onnxruntime",
        entries=("onnxruntime/capi/libonnxruntime_providers_cuda.so",),
        optional=("onnxruntime/capi/libonnxruntime_providers_tensorrt.so",),
    ),
    Framework(
        "cupy",
        optional=("cupy_backends/cuda/api/*.so", "cupy_backends/cuda/libs/*.so", "cupy/cuda/*.so"),
    ),
    Framework(
        "paddle",
        entries=("paddle/base/libpaddle.so", "paddle/fluid/libpaddle.so"),
        cuda_if=("paddle/version/__init__.py", r"cuda_version\s*=\s*['\"]\d"),
        by_name=_BY_NAME,
    ),
    Framework("tensorrt", optional=("tensorrt_libs/libnvinfer.so.*", "tensorrt/libnvinfer.so.*")),
)
"""Frameworks and their entry files; only those that exist count."""


class Opens(NamedTuple):
    """Libraries that a library opens by name when it is used."""

    opener: str
    """Its soname; up to the dot before a number that may be any."""
    names: tuple[str, ...]
    """{release} stands for the first two numbers of the opener's version (12.8)."""
    optional: bool = False
    """Releases differ in whether they have these."""


OPENS: tuple[Opens, ...] = (
    Opens(
        "libcudnn.so.9",
        ("libcudnn_graph.so.9", "libcudnn_ops.so.9", "libcudnn_cnn.so.9", "libcudnn_adv.so.9"),
    ),
    Opens("libcudnn.so.9", ("libcudnn_ext.so.9",), optional=True),
    Opens(
        "libcudnn_graph.so.9",
        ("libcudnn_heuristic.so.9", "libcudnn_engines_precompiled.so.9")
        + ("libcudnn_engines_runtime_compiled.so.9", "libcudnn_engines_tensor_ir.so.9"),
        optional=True,
    ),
    Opens("libcudnn.so.8", ("libcudnn_ops_infer.so.8", "libcudnn_cnn_infer.so.8")),
    Opens(
        "libcudnn.so.8",
        ("libcudnn_adv_infer.so.8", "libcudnn_ops_train.so.8", "libcudnn_cnn_train.so.8")
        + ("libcudnn_adv_train.so.8",),
        optional=True,
    ),
    Opens("libnvrtc.so.", ("libnvrtc-builtins.so.{release}",)),
    Opens("libcufft.so.11", ("libnvJitLink.so.12",), optional=True),
    Opens("libcufft.so.12", ("libnvJitLink.so.13",), optional=True),
    Opens("libnccl.so.", ("libnccl-net.so",), optional=True),
)
"""Who opens what by name: found by the rules of the library that opens it."""


class Build:
    """The processes of one target's frameworks."""

    def __init__(
        self, files: Files, program: str | None, folders: Sequence[str], versions: Versions
    ) -> None:
        self.files = files
        self.host: Host = files.host
        self.program = program
        self.folders = folders
        """Package folders, in the order of imports."""
        self.versions = versions

    def framework(self, framework: Framework) -> Process | None:
        """The process of one framework; None where it is not installed. Raises OSError."""
        entries = self._files(framework.entries)
        optional = self._files(framework.optional)
        if not entries and not optional:
            return None
        process = Process(self.files, self.program)
        caller = importer(process)
        first = {"torch": self._torch, "jax": self._jax, "paddle": self._paddle}
        doubtful = first[framework.name](process) if framework.name in first else {}
        opened = [process.open(path, caller) for path in entries]
        if framework.by_name and self._says(*framework.cuda_if):
            self._open_by_name(process, [one for one in opened if one], framework.by_name)
        self._open_later(process)
        for path in optional:
            _open_optional(process, path, caller)
        self._open_later(process)
        for path, reason in doubtful.items():
            if process.holds(path) is None:
                process.unsure[posixpath.basename(path)] = reason
        return process

    def plain(self) -> Process:
        """What a program would get that asks for the newest of each library by name."""
        process = Process(self.files, self.program)
        caller = importer(process)
        for family in FAMILIES:
            names = process.available(family.stem, caller)
            if names:
                newest = max(names, key=lambda name: [int(n) for n in re.findall(r"\.(\d+)", name)])
                _open_optional(process, newest, caller)
        self._open_later(process)
        return process

    # -- files of packages -----------------------------------------------------------------

    def _files(self, patterns: Iterable[str]) -> list[str]:
        """The files that patterns mean, in the first package folder that has the package."""
        found = []
        for pattern in patterns:
            below, last = posixpath.split(pattern)
            home = self._home(below.split("/", 1)[0])
            if home:
                found += self._matching(f"{home}/{below}", last)
        return found

    def _home(self, package: str) -> str:
        """The first package folder that has a package; "" for none."""
        return next((f for f in self.folders if self.host.isdir(f"{f}/{package}")), "")

    def _matching(self, folder: str, pattern: str) -> list[str]:
        if "*" not in pattern:
            path = f"{folder}/{pattern}"
            return [path] if self.host.exists(path) else []
        begin, _, end = pattern.partition("*")
        names = self.files.names(folder, begin)
        return [f"{folder}/{name}" for name in names if _fits(name[len(begin) :], f"*{end}")]

    def _text(self, path: str) -> str:
        try:
            return self.host.read(path, TEXT_LIMIT_BYTES)
        except OSError:
            return ""

    def _says(self, file: str, words: str) -> bool:
        """Whether a file of a package says something; True where none is named."""
        return not file or any(re.search(words, self._text(path)) for path in self._files([file]))

    # -- what libraries open by name -------------------------------------------------------

    def _open_by_name(
        self, process: Process, openers: Sequence[Loaded], stems: Iterable[str]
    ) -> None:
        """Open libraries of which only the stem is known, where that can mean one only."""
        for stem in stems:
            if any(is_soname(one.name, stem) for one in process.loaded):
                continue
            names: set[str] = set()
            for own in (True, False):  # what a build brings along is what it was built for
                for opener in openers:
                    names |= set(process.available(stem, opener, own=own))
                if names:
                    break
            if len(names) > 1:
                there = ", ".join(sorted(names))
                process.unsure |= dict.fromkeys(names, f"opened by name, of {there}")
                continue
            for name in names:
                paths = {process.locate(name, opener) for opener in openers} - {""}
                if len(paths) > 1:
                    process.unsure[name] = f"opened by name: {' or '.join(sorted(paths))}"
                for opener in openers:
                    if process.try_open(name, opener):
                        break

    def _open_later(self, process: Process) -> None:
        """Open what loaded libraries open by name when they are used."""
        for one in process.loaded:  # grows while it is walked
            for row in OPENS:
                begins = row.opener[-1] == "." and one.name.startswith(row.opener)
                if not begins and one.name != row.opener:
                    continue
                version, _ = self.versions.of(self.files.real(one.path))
                release = ".".join(version.split(".")[:2])
                for name in row.names:
                    if "{release}" in name and "." not in release:
                        continue
                    if row.optional:
                        _open_optional(process, name, one)
                    elif not any(m.name == name for m in process.missing):
                        process.open(name.format(release=release), one)

    # -- what frameworks load by path before anything else -----------------------------------

    def _torch(self, process: Process) -> dict[str, str]:
        """What torch/__init__.py does before it imports torch._C."""
        home = self._home("torch")
        dependencies = f"{home}/torch/lib/libtorch_global_deps.so"
        if not home or not self.host.exists(dependencies):
            return {}
        on_failure, on_success, sign = torch_preloads(self._text(f"{home}/torch/__init__.py"))
        built = re.search(
            r"^cuda\b[^=\n]*=\s*['\"](\d+)", self._text(f"{home}/torch/version.py"), re.MULTILINE
        )
        cuda_major = built.group(1) if built else ""
        caller = importer(process)
        if process.try_open(dependencies, caller):
            runtime = next((one for one in process.loaded if "libcudart.so" in one.path), None)
            if runtime is None or sign not in self.host.real(runtime.path):
                return {}
            return self._load_wheels(process, on_success, cuda_major)
        doubtful = self._load_wheels(process, on_failure, cuda_major)
        process.open(dependencies, caller)
        return doubtful

    def _jax(self, process: Process) -> dict[str, str]:
        """What the plugins of jax do before they load themselves."""
        pairs: list[tuple[str, str]] = []
        for file in self._files(
            ("jax_plugins/xla_cuda13/__init__.py", "jax_plugins/xla_cuda12/__init__.py")
        ):
            pairs += jax_preloads(self._text(file))
        return self._load_wheels(process, pairs, "")

    def _paddle(self, process: Process) -> dict[str, str]:
        """What paddle opens by path in the wheels beside it, where it was built to."""
        home = self._home("paddle")
        if self._says("paddle/version/__init__.py", r"with_pip_cuda_libraries\s*=\s*['\"]ON"):
            for package in self.host.listdir(f"{home}/nvidia"):
                folder = f"{home}/nvidia/{package}/lib"
                for name in self.host.listdir(folder):
                    family = family_of(name)
                    if family and family.stem in _BY_NAME and is_main(name, family):
                        process.try_open(f"{folder}/{name}", importer(process))
        return {}

    def _load_wheels(
        self, process: Process, pairs: Iterable[tuple[str, str]], cuda_major: str
    ) -> dict[str, str]:
        """Load libraries of NVIDIA's wheels by path, each from the first folder that has it.

        Gives the paths of which it cannot be told whether they are loaded, with the reason.
        """
        doubtful: dict[str, str] = {}
        for package, pattern in pairs:
            for found in self._wheel_files(package, pattern, cuda_major):
                if len(found) == 1:
                    process.try_open(found[0], importer(process))
                else:
                    reason = f"loaded by path is whichever comes first of {', '.join(found)}"
                    doubtful |= dict.fromkeys(found, reason)
                break
        return doubtful

    def _wheel_files(self, package: str, pattern: str, cuda_major: str) -> Iterator[list[str]]:
        for folder in self.folders:
            below = [f"nvidia/{package}"]
            below += [f"nvidia/cu{cuda_major}"] if cuda_major else []
            for place in (*below, package):
                found = self._matching(f"{folder}/{place}/lib", pattern)
                if found:
                    yield found


def importer(process: Process) -> Loaded | None:
    """The object whose code opens extension modules: libpython, or the program with it inside."""
    for one in process.loaded:
        if one.name.startswith("libpython3"):
            return one
    return process.program


def _fits(name: str, pattern: str) -> bool:
    """fnmatch for patterns that begin with *, without its 0.1 ms for each new one if it can be."""
    if pattern == "*[0-9]":  # what torch ends them with
        return name[-1:] in set("0123456789")
    if not re.search(r"[*?\[]", pattern[1:]):
        return name.endswith(pattern[1:])
    return fnmatchcase(name, pattern)


def _open_optional(process: Process, name: str, caller: Loaded | None) -> None:
    """Open for what it would take, and forget what it misses."""
    missing = list(process.missing)
    process.open(name, caller)
    process.missing = missing


_PAIR = re.compile(r"""["'](\w+)["']\s*[,:]\s*["'](lib[\w+.*\[\]-]+\.so[\w.*\[\]-]*)["']""")


def torch_preloads(text: str) -> tuple[list[tuple[str, str]], list[tuple[str, str]], str]:
    """What torch/__init__.py loads by path: after a failure, after success, and on which sign.

    Each is a list of folder and name pattern, in order: ("nvjitlink", "libnvJitLink.so.*[0-9]").
    The sign is a text that must be in the path of the libcudart that came in. The file has a
    table of such pairs for the failure; after success older releases load nothing, later ones
    the pairs that they name there, the newest the whole table.
    """
    begin = text.find("def _load_global_deps")
    start = text.find("ctypes.CDLL(global_deps_lib_path", begin)
    end = text.find("except OSError", start)
    if begin < 0 or start < 0 or end < 0:
        return [], [], ""
    every = _PAIR.findall(text[:begin])
    after = text[start:end]
    some = _PAIR.findall(after)
    if not some and "_preload_cuda_deps(" in after:
        some = every
    sign = re.search(r"""["']([^"'\n]*libcudart\.so[^"'\n]*)["'] not in""", after)
    return every, some, sign.group(1) if sign else ""


def jax_preloads(text: str) -> list[tuple[str, str]]:
    """What a jax plugin loads by path: its file calls _load("cublas", ["libcublas.so.12", ...])."""
    return [
        (module, name)
        for module, names in re.findall(r"_load\(\s*[\"'](\w+)[\"']\s*,\s*\[([^\]]*)\]", text)
        for name in re.findall(r"[\"'](lib[^\"']+)[\"']", names)
    ]
