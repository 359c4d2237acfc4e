"""What the frameworks of the target were built for, from their files alone.

Nothing is imported: a framework may hang, abort or take seconds, and its files say more. Where a
build is for the CPU the CUDA facts are absent; where a file does not say, they are gaps.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from envaudit.distributions import Distribution, Installed, requirements, scan
from envaudit.elf import ElfFile, NotElf
from envaudit.host import Host
from envaudit.model import Value
from envaudit.probes import Look, NotHere


def look(look: Look) -> None:
    """Read each framework's build files, each on its own."""
    if look.target is None:
        raise NotHere("no Python interpreter")
    known = look.value("python.path")
    folders = [str(f) for f in known] if isinstance(known, list) else [*look.target.site_dirs]
    if known is None and not folders:
        for name in FRAMEWORKS:
            look.gap(f"{name}.*", "the package folders of the target are not known")
        return
    packages = Packages(look.host, folders)
    for name in FRAMEWORKS:
        _part(look, name, packages)


def _part(look: Look, name: str, packages: Packages) -> None:
    """Tell one framework; what goes wrong there costs the others nothing."""
    try:
        FRAMEWORKS[name](look, packages)
    except Exception as problem:  # noqa: BLE001 - whatever it was, it is told as a gap
        look.gap(f"{name}.*", f"{type(problem).__name__}: {problem}"[:300])


class Packages:
    """Where a package of the target lies, and which distribution brought it."""

    def __init__(self, host: Host, folders: Sequence[str]) -> None:
        self.host = host
        self.folders = folders
        self.installed: Installed = scan(host, folders)

    def place(self, package: str) -> str | None:
        """Folder of the package that an import would take; None where there is none."""
        for folder in self.folders:
            if self.host.exists(f"{folder}/{package}/__init__.py"):
                return f"{folder}/{package}"
        for finder in self.installed.finders:
            mapped = parse_finder(self.host.read_or(finder)).get(package)
            if mapped and self.host.exists(f"{mapped}/__init__.py"):
                return mapped
        return None

    def named(self, *names: str) -> Distribution | None:
        """The first of these distributions that is installed."""
        first = self.installed.first()
        return next((first[name] for name in names if name in first), None)

    def fields(self, path: str) -> dict[str, str | bool | None]:
        """Simple assignments of a file; {} where there is no such file."""
        return parse_assignments(self.host.read_or(path))


def parse_finder(text: str) -> dict[str, str]:
    """Package to source folder of a setuptools editable finder.

    One line is `MAPPING: dict[str, str] = {'torch': '/src/pytorch/torch', ...}`.
    """
    line = re.search(r"^MAPPING\b[^={]*=\s*\{([^}\n]*)\}", text, re.MULTILINE)
    pairs = re.findall(r"(['\"])([^'\"]+)\1\s*:\s*(['\"])([^'\"]+)\3", line[1] if line else "")
    return {name: folder for _, name, _, folder in pairs}


_ASSIGNMENT = re.compile(
    r"^(\w+)[ \t]*(?::[^=\n]{1,80})?=[ \t]*(?:(['\"])([^'\"\n]*)\2|(None|True|False)\b)",
    re.MULTILINE,
)


def parse_assignments(text: str) -> dict[str, str | bool | None]:
    """Top-level assignments of texts, flags and None in Python source, the first of each name.

    cuda: Optional[str] = '13.0'
    hip = None
    """
    fields: dict[str, str | bool | None] = {}
    for name, _, value, word in _ASSIGNMENT.findall(text):
        fields.setdefault(name, {"None": None, "True": True, "False": False}.get(word, value))
    return fields


def _text(fields: Mapping[str, str | bool | None], name: str) -> str | None:
    value = fields.get(name)
    return value if isinstance(value, str) and value else None


# -- PyTorch ----------------------------------------------------------------------------------


def _torch(look: Look, packages: Packages) -> None:
    """torch/version.py, the pins in the wheel's METADATA, and two literals in its libraries."""
    place, dist = packages.place("torch"), packages.named("torch")
    if place is None:
        if dist:
            look.gap("torch.*", f"{dist.record} is there, the package torch is not")
        return
    source = f"{place}/version.py"
    fields = packages.fields(source)
    version = _text(fields, "__version__")
    if version is None:
        look.gap("torch.*", f"{source} is not there or has no __version__")
        return
    look.add("torch.version", version, source)
    cuda, hip = _text(fields, "cuda"), _text(fields, "hip")
    for name, value in (("cuda", cuda), ("hip", hip)):
        look.add(f"torch.{name}.version", value, source)
        if name not in fields:
            look.gap(f"torch.{name}.version", f"{source} has no {name}")
    _torch_abi(look, f"{place}/lib/libc10.so")
    if cuda is None and hip is None and "cuda" in fields:
        return
    _torch_arch_list(look, place)
    pins = _pins(packages, place, dist)
    for library in ("cudnn", "nccl"):
        if library in pins:
            look.add(f"torch.{library}.version", *pins[library])
        else:
            look.gap(
                f"torch.{library}.version",
                f"the build requires no certain distribution of {library}; "
                "its files do not say what it was compiled with",
            )


def _pins(packages: Packages, place: str, dist: Distribution | None) -> dict[str, tuple[str, str]]:
    """Library to the version that the build requires exactly, and where that stands."""
    if dist is None or not place.startswith(f"{dist.folder}/"):
        return {}
    pins = parse_pins(requirements(packages.host, dist))
    return {name: (version, f"Requires-Dist in {dist.record}") for name, version in pins.items()}


_PIN = re.compile(r"nvidia-(\w+?)(?:-cu\d+)?\s*\(?==\s*(\d+(?:\.\d+)*)(?:\.\*)?\s*\)?\s*(?:;|\Z)")


def parse_pins(texts: Sequence[str]) -> dict[str, str]:
    """Library to version of requirements such as `nvidia-cudnn-cu12 (==9.1.0.70) ; ...`."""
    found = [_PIN.match(text.strip()) for text in texts]
    return {pin[1]: pin[2] for pin in found if pin}


def _torch_arch_list(look: Look, place: str) -> None:
    prefix = look.value("python.prefix") or (look.target.prefix if look.target else "")
    # conda puts the libraries of its build into the environment's lib/.
    for path in (f"{place}/lib/libtorch_python.so", f"{prefix}/lib/libtorch_python.so"):
        if not look.host.exists(path):
            continue
        try:
            architectures = architecture_literal(look.host, path)
        except (OSError, ValueError) as problem:
            look.gap("torch.arch_list", f"{path}: {problem}")
            return
        look.add("torch.arch_list", [*architectures] or None, f"text in {path}")
        if not architectures:
            look.gap("torch.arch_list", f"no list of architectures in {path}")
        return
    look.gap("torch.arch_list", f"{place}/lib/libtorch_python.so is not there")


_ARCHITECTURE = rb"(?:(?:sm|compute)_\d{2,3}[a-z]?|gfx[0-9a-f]{3,5})"
_ARCHITECTURES = re.compile(_ARCHITECTURE + rb"(?:[ ;]" + _ARCHITECTURE + rb")*\Z")
_LITERAL_LIMIT = 2000
_CONSTANTS_LIMIT_BYTES = 8 << 20
_LIBRARY_LIMIT_BYTES = 64 << 20


def architecture_literal(host: Host, path: str) -> list[str]:
    """The architectures a library was compiled for, from one literal in its read-only data.

    It is the text that torch.cuda.get_arch_list() splits: `sm_75 sm_80 sm_90 compute_90`, ended
    by NUL. Only the section of constants is searched, 1 MB of 34. Raises OSError.
    """
    try:
        library = ElfFile(lambda offset, size: host.read_bytes(path, size, offset))
        constants = library.section(".rodata", _CONSTANTS_LIMIT_BYTES) or b""
        if not library.sections():  # stripped of its section headers: it can be anywhere
            constants = host.read_bytes(path, _LIBRARY_LIMIT_BYTES)
    except NotElf:
        return []
    return find_architectures(constants)


def find_architectures(data: bytes) -> list[str]:
    """The longest NUL-ended text in `data` that is nothing but a list of architectures."""
    best = b""
    for mark in (b"sm_", b"compute_", b"gfx"):
        at = data.find(mark)
        while at >= 0:
            begin = data.rfind(b"\0", max(0, at - _LITERAL_LIMIT), at) + 1
            end = data.find(b"\0", at, at + _LITERAL_LIMIT)
            if end < 0:
                end = min(len(data), at + _LITERAL_LIMIT)
            text = data[begin or max(0, at - _LITERAL_LIMIT) : end]
            if len(text) > len(best) and _ARCHITECTURES.match(text):
                best = text
            at = data.find(mark, end)
        if best:
            break
    return re.split("[ ;]", best.decode("ascii")) if best else []


_ABI_MARK = b"c105ErrorC1ENS_14SourceLocationE"
_ABI_LIBRARY_LIMIT_BYTES = 16 << 20


def _torch_abi(look: Look, path: str) -> None:
    """Which std::string the exported c10::Error takes: std::__cxx11's or the old one (Ss)."""
    try:
        data = look.host.read_bytes(path, _ABI_LIBRARY_LIMIT_BYTES)
    except OSError as problem:
        look.gap("torch.cxx11_abi", f"{path}: {problem.strerror}")
        return
    flag = parse_abi(data)
    look.add("torch.cxx11_abi", flag, f"symbols of {path}")
    if flag is None:
        look.gap("torch.cxx11_abi", f"{path} has no symbol that tells")


def parse_abi(data: bytes) -> bool | None:
    """Whether a libc10.so was built with the C++11 ABI; None where no symbol tells."""
    at = data.find(_ABI_MARK)
    if at < 0:
        return None
    string = data[at + len(_ABI_MARK) :][:20]
    return True if string.startswith(b"NSt7__cxx11") else False if string[:2] == b"Ss" else None


# -- TensorFlow -------------------------------------------------------------------------------

_TENSORFLOWS = (
    *("tensorflow", "tensorflow-gpu", "tensorflow-cpu", "tf-nightly", "tf-nightly-gpu"),
    *("tf-nightly-cpu", "tensorflow-rocm", "intel-tensorflow", "tensorflow-intel"),
    *("tensorflow-cpu-aws", "tensorflow-aarch64"),
)


def _tensorflow(look: Look, packages: Packages) -> None:
    """build_info.py of the wheel; the version is its distribution's."""
    place, dist = packages.place("tensorflow"), packages.named(*_TENSORFLOWS)
    if place is None:
        if dist:
            look.gap("tensorflow.*", f"{dist.record} is there, the package tensorflow is not")
        return
    _tell_version(look, "tensorflow", dist, {}, place)
    source = f"{place}/python/platform/build_info.py"
    info = parse_tf_build_info(look.host.read_or(source))
    for name in ("cuda.version", "cudnn.version", "arch_list"):
        if info is None:
            look.gap(f"tensorflow.{name}", f"{source} is not there or does not say")
        elif name in info:
            look.add(f"tensorflow.{name}", info[name], source)
        elif info:
            look.gap(f"tensorflow.{name}", f"{source} does not say")


def parse_tf_build_info(text: str) -> dict[str, Value] | None:
    """CUDA, cuDNN and architectures of a TensorFlow build: {} for a build without CUDA.

    build_info = collections.OrderedDict([('cuda_compute_capabilities', ['sm_60', 'compute_90']),
    ('cuda_version', '12.5.1'), ('cudnn_version', '9'), ('is_cuda_build', True), ...]). Before 2.3
    the names stood alone: is_cuda_build = True. None where it does not say.
    """
    built = re.search(r"\bis_cuda_build['\"]?\s*[,:=]\s*(True|False)", text)
    if built is None:
        return None
    info: dict[str, Value] = {}
    if built[1] == "False":
        return info
    for key in ("cuda", "cudnn"):
        found = re.search(rf"\b{key}_version(?:_number)?['\"]?\s*[,:=]\s*['\"]([\d.]+)['\"]", text)
        if found:
            info[f"{key}.version"] = found[1]
    listed = re.search(r"\bcuda_compute_capabilities['\"]?\s*[,:=]\s*\[([^\]]*)\]", text)
    names = re.findall(r"['\"]((?:sm|compute)_\d+[a-z]?)['\"]", listed[1] if listed else "")
    if names:
        info["arch_list"] = [*names]
    return info or None


# -- JAX --------------------------------------------------------------------------------------


def _jax(look: Look, packages: Packages) -> None:
    place, dist = packages.place("jax"), packages.named("jax")
    if place is None:
        if dist:
            look.gap("jax.version", f"{dist.record} is there, the package jax is not")
        return
    fields = packages.fields(f"{place}/version.py")
    _tell_version(look, "jax", dist, fields, place, "version.py")


def _jaxlib(look: Look, packages: Packages) -> None:
    """jaxlib and the plugin that gives it CUDA, or the tag in a version of old."""
    place, dist = packages.place("jaxlib"), packages.named("jaxlib")
    if place is None:
        if dist:
            look.gap("jaxlib.*", f"{dist.record} is there, the package jaxlib is not")
        return
    fields = packages.fields(f"{place}/version.py")
    version = _tell_version(look, "jaxlib", dist, fields, place, "version.py")
    cuda, cudnn = parse_jaxlib_local(version or "")
    plugins = sorted(
        name
        for name in packages.installed.first()
        if re.fullmatch(r"jax-cuda\d+-plugin", name) and packages.place(name.replace("-", "_"))
    )
    if cuda:
        look.add("jaxlib.cuda.version", cuda, "version of jaxlib")
        look.add("jaxlib.cudnn.version", cudnn, "version of jaxlib")
        missing = [] if cudnn else ["cudnn.version"]
    elif len(plugins) == 1:
        number = re.sub(r"\D", "", plugins[0])
        look.add("jaxlib.cuda.version", number, f"name of the distribution {plugins[0]}")
        missing = ["cudnn.version"]
    elif plugins:
        look.gap("jaxlib.cuda.version", f"several plugins: {', '.join(plugins)}")
        missing = ["cudnn.version"]
    elif look.host.isdir(f"{place}/cuda"):  # built with CUDA inside, as conda-forge does
        missing = ["cuda.version", "cudnn.version"]
    else:
        return
    for name in [*missing, "arch_list"]:
        look.gap(f"jaxlib.{name}", "the files of the build do not say")


def parse_jaxlib_local(version: str) -> tuple[str, str]:
    """CUDA and cuDNN of a version such as 0.4.23+cuda12.cudnn89: ("12", "8.9")."""
    found = re.search(r"\+cuda(\d{2})(\d?)(?:\.cudnn(\d)(\d*))?", version)
    if found is None:
        return "", ""
    cuda, cuda_minor, cudnn, cudnn_minor = (part or "" for part in found.groups())
    return ".".join(filter(None, (cuda, cuda_minor))), ".".join(filter(None, (cudnn, cudnn_minor)))


# -- CuPy, ONNX Runtime, PaddlePaddle ---------------------------------------------------------


def _cupy(look: Look, packages: Packages) -> None:
    """The distribution's name tells the CUDA series: cupy-cuda12x, cupy-cuda112."""
    place = packages.place("cupy")
    brought = [d for d in packages.installed.first().values() if is_cupy(d.name)]
    if place is None:
        if brought:
            look.gap("cupy.*", f"{brought[0].record} is there, the package cupy is not")
        return
    source = f"{place}/_version.py"
    dist = brought[0] if len(brought) == 1 else None
    _tell_version(look, "cupy", dist, packages.fields(source), place, "_version.py")
    if dist and dist.name.startswith("cupy-rocm"):
        return
    cuda = parse_cupy_name(dist.name) if dist else ""
    look.add("cupy.cuda.version", cuda, f"name of the distribution {dist.name if dist else ''}")
    reason = (
        f"several distributions bring it: {', '.join(d.name for d in brought)}"
        if len(brought) > 1
        else "the files of the build do not say"
    )
    for name in ("cuda.version", "cudnn.version", "arch_list"):
        if not (cuda and name == "cuda.version"):
            look.gap(f"cupy.{name}", reason)


def is_cupy(name: str) -> bool:
    """Whether a distribution brings the package cupy."""
    return name == "cupy" or name.startswith(("cupy-cuda", "cupy-rocm"))


def parse_cupy_name(name: str) -> str:
    """CUDA of a CuPy distribution: cupy-cuda12x is for 12, cupy-cuda112 for 11.2."""
    found = re.fullmatch(r"cupy-cuda(\d{1,2}?)(\d|x)", name)
    if found is None:
        return ""
    return found[1] if found[2] == "x" else f"{found[1]}.{found[2]}"


def _onnxruntime(look: Look, packages: Packages) -> None:
    """What its package says of itself: with two of its distributions, the last one installed."""
    place = packages.place("onnxruntime")
    if place is None:
        dists = [d for n, d in packages.installed.first().items() if n.startswith("onnxruntime")]
        if dists:
            look.gap("onnxruntime.*", f"{dists[0].record} is there, the package is not")
        return
    source = f"{place}/capi/build_and_package_info.py"
    fields = packages.fields(source)
    name = _text(fields, "package_name")
    fields = {**packages.fields(f"{place}/capi/version_info.py"), **fields}
    version = _text(fields, "__version__")
    if version is None:
        source_of_version = f"{place}/__init__.py"
        version = _text(packages.fields(source_of_version), "__version__")
    else:
        source_of_version = source
    look.add("onnxruntime.version", version, source_of_version)
    if version is None:
        look.gap("onnxruntime.version", f"{source} does not say")
    cuda = _text(fields, "cuda_version")
    look.add("onnxruntime.cuda.version", cuda, source)
    look.add("onnxruntime.cudnn.version", _text(fields, "cudnn_version"), source)
    if not cuda and (fields.get("use_cuda") is False or (name and "gpu" not in name)):
        return
    for part in ("cuda.version", "cudnn.version", "arch_list"):
        if _text(fields, part.replace(".", "_")) is None:
            look.gap(f"onnxruntime.{part}", f"{place}/capi does not say")


def _paddle(look: Look, packages: Packages) -> None:
    """paddle/version/__init__.py, in which 'False' says that a library was left out."""
    place = packages.place("paddle")
    if place is None:
        dist = packages.named("paddlepaddle", "paddlepaddle-gpu")
        if dist:
            look.gap("paddle.*", f"{dist.record} is there, the package paddle is not")
        return
    source = f"{place}/version/__init__.py"
    text = look.host.read_or(source)
    fields = parse_assignments(text)
    version = _text(fields, "full_version")
    if version is None:
        # Another distribution, paddle, has a package of the same name.
        if packages.named("paddlepaddle", "paddlepaddle-gpu"):
            look.gap("paddle.*", f"{source} is not there or has no full_version")
        return
    look.add("paddle.version", version, source)
    for name in ("cuda", "cudnn"):
        value = _text(fields, f"{name}_version")
        if value is None:
            look.gap(f"paddle.{name}.version", f"{source} does not say")
        elif value != "False":
            look.add(f"paddle.{name}.version", value, source)
    if fields.get("cuda_version") != "False":
        architectures = parse_paddle_architectures(text)
        look.add("paddle.arch_list", [*architectures] or None, source)
        if not architectures:
            look.gap("paddle.arch_list", f"{source} does not say")


def parse_paddle_architectures(text: str) -> list[str]:
    """`compiled_cuda_archs = [70, 75, 80]` as ["sm_70", "sm_75", "sm_80"]."""
    line = re.search(r"^compiled_cuda_archs\s*=\s*\[([^\]\n]*)\]", text, re.MULTILINE)
    return [f"sm_{number}" for number in re.findall(r"\d{2,3}", line[1] if line else "")]


def _tell_version(
    look: Look,
    name: str,
    dist: Distribution | None,
    fields: Mapping[str, str | bool | None],
    place: str,
    file: str = "",
) -> str | None:
    """Tell a framework's version from its own file, else from the distribution beside it."""
    keys = ("__version__", "_release_version", "_version")
    version = next(filter(None, (_text(fields, key) for key in keys)), None)
    source = f"{place}/{file}"
    if dist and dist.version and place.startswith(f"{dist.folder}/"):
        # The record has the local part of the version (+cuda12), which the file may lack.
        version, source = dist.version, dist.record
    look.add(f"{name}.version", version, source)
    if not version:
        look.gap(f"{name}.version", f"{place} does not say, and no record lies beside it")
    return version


FRAMEWORKS: dict[str, Callable[[Look, Packages], None]] = {
    "torch": _torch,
    "tensorflow": _tensorflow,
    "jax": _jax,
    "jaxlib": _jaxlib,
    "cupy": _cupy,
    "onnxruntime": _onnxruntime,
    "paddle": _paddle,
}
"""Name of the facts to what tells them."""
