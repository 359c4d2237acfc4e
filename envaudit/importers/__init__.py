"""Readers of what other tools print: pure functions from text to facts, run on nothing.

Each module has `recognises(section) -> bool` and `parse(section) -> Imported`. A section is one
piece of a pasted report: the output of one command, or what stands between two. It may hold
other things besides what a reader knows: each reader picks out its own lines, and says which.
Neither function ever raises, whatever the text: what is not understood is left out, and told
as a gap where it matters.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, cast

from envaudit.model import Fact, Value


class Section(NamedTuple):
    """One piece of a report, without prompts, quote marks and colours."""

    text: str
    """Lines ended by "\\n"."""
    command: str = ""
    """The command whose output this is, where the report shows its prompt."""
    scope: str = ""
    """Where it ran: host, container, wsl, windows; empty where the report does not say."""
    first: int = 1
    """Number of the text's first line in the report."""
    before: str = ""
    """The last line before it, where a fence begins it: often what the fenced text is."""


class Imported(NamedTuple):
    """What a section says, in our vocabulary."""

    facts: tuple[Fact, ...] = ()
    gaps: Mapping[str, str] = MappingProxyType({})
    """Fact name or pattern to the reason why the text leaves it open."""
    notes: tuple[str, ...] = ()
    """What a reader should know of the text itself, in words."""
    cut: str = ""
    """Why the text is not all that there was; empty for a whole one."""
    absent: tuple[str, ...] = ()
    """Fact names and patterns that the text says are not there."""
    lines: Mapping[str, int] = MappingProxyType({})
    """Fact name to the line of the section it was read in, from 1."""
    read: frozenset[int] = frozenset()
    """Lines of the section that were understood, from 1."""


class _Late:
    """A pattern that is compiled when a text may match it.

    A reader has a dozen patterns and most texts match none of them. Compiling them all would
    take longer than everything else that a check of a file does, so that the literals in a
    pattern are looked for first.
    """

    def __init__(self, text: str, flags: int) -> None:
        self._of = (text, flags)
        self._literals: tuple[str, ...] | None = None

    def _ready(self, string: str) -> bool:
        """Whether the string can match; from then on the compiled pattern answers itself."""
        literals = self._literals
        if literals is None:
            literals = self._literals = literals_of(*self._of)
        if literals and not any(each in string for each in literals):
            return False
        compiled = re.compile(*self._of)
        for each in ("search", "match", "fullmatch", "finditer", "findall", "sub", "split"):
            setattr(self, each, getattr(compiled, each))
        return True

    def search(self, string: str, *bounds: int) -> re.Match[str] | None:
        return self.search(string, *bounds) if self._ready(string) else None

    def match(self, string: str, *bounds: int) -> re.Match[str] | None:
        return self.match(string, *bounds) if self._ready(string) else None

    def fullmatch(self, string: str, *bounds: int) -> re.Match[str] | None:
        return self.fullmatch(string, *bounds) if self._ready(string) else None

    def finditer(self, string: str, *bounds: int) -> Iterator[re.Match[str]]:
        return self.finditer(string, *bounds) if self._ready(string) else iter(())

    def findall(self, string: str, *bounds: int) -> list[Any]:
        return self.findall(string, *bounds) if self._ready(string) else []

    def sub(self, new: Any, string: str, *more: Any, **named: Any) -> str:
        return self.sub(new, string, *more, **named) if self._ready(string) else string

    def split(self, string: str, *more: Any, **named: Any) -> list[Any]:
        return self.split(string, *more, **named) if self._ready(string) else [string]

    def __getattr__(self, name: str) -> Any:
        return getattr(re.compile(*self._of), name)


def literals_of(text: str, flags: int = 0) -> tuple[str, ...]:
    """Literals of which one at least is part of every text that a pattern matches.

    Empty where none is plain to see: then every text may match.
    """
    if flags & (re.IGNORECASE | re.VERBOSE) or "(?i" in text or "(?x" in text:
        return ()
    return _alternatives(text, 0)[0]


_FEW = 16
"""Most literals that are looked for in place of compiling a pattern."""


_GROUP = re.compile(r"\(\?(?:P<\w+>|P=\w+|[aimsx-]*:|[=!>#]|<[=!])|\(")


def _alternatives(text: str, at: int) -> tuple[tuple[str, ...], int]:
    """Literals of the alternatives from a place on, and the place behind them."""
    found: list[str] = []
    certain = True
    while True:
        literals, at = _sequence(text, at)
        certain = certain and bool(literals)
        found += literals
        if text[at : at + 1] != "|":
            break
        at += 1
    return (tuple(dict.fromkeys(found)) if certain and len(found) <= _FEW else ()), at


def _sequence(text: str, at: int) -> tuple[tuple[str, ...], int]:
    """The best literals of one alternative: a run of its own, or what a group in it offers."""
    offers: list[tuple[str, ...]] = []
    run = ""
    while at < len(text) and text[at] not in "|)":
        char, plain = text[at], ""
        inner: tuple[str, ...] = ()
        if char == "\\":
            following = text[at + 1 : at + 2]
            plain = "" if following.isalnum() else following
            at += {"x": 4, "u": 6}.get(following, 2)
        elif char == "[":
            at = _behind_class(text, at)
        elif char == "(":
            counts = text[at + 1 : at + 3] not in ("?!", "?#") and text[at + 1 : at + 4] != "?<!"
            head = _GROUP.match(text, at)
            at = head.end() if head else at + 1
            inner, at = _alternatives(text, at)
            at += 1
            inner = inner if counts else ()
        elif char in "^$.?*+{}":
            at = text.find("}", at) + 1 if char == "{" and "}" in text[at:] else at + 1
        else:
            plain = char
            at += 1
        optional = text[at : at + 1] in ("?", "*", "{")
        if plain and not optional:
            run += plain
            if text[at : at + 1] != "+":
                continue
        offers += [(run,)] if run else []
        run = ""
        offers += [inner] if inner and not optional else []
    offers += [(run,)] if run else []
    return max(offers, key=_worth, default=()), at


def _worth(literals: tuple[str, ...]) -> tuple[bool, int, int]:
    """How well literals tell a text that may match: long enough, few, long."""
    shortest = min(map(len, literals))
    return shortest > 2, -len(literals), shortest


def _behind_class(text: str, at: int) -> int:
    """The place behind a class of characters."""
    at += 2 if text[at + 1 : at + 2] == "^" else 1
    if text[at : at + 1] == "]":
        at += 1
    while at < len(text) and text[at] != "]":
        at += 2 if text[at] == "\\" else 1
    return at + 1


def regex(text: str, flags: int = 0) -> re.Pattern[str]:
    """A regular expression as `re.compile` makes it, compiled at its first use."""
    return cast("re.Pattern[str]", _Late(text, flags))


_PCI_ADDRESS = regex(r"(?:([0-9A-Fa-f]{4,8}):)?([0-9A-Fa-f]{2}):([0-9A-Fa-f]{2})\.([0-9A-Fa-f])\Z")


def pci_address(text: str) -> str | None:
    """A PCI bus address as the kernel writes it, 0000:1a:00.0; None for anything else.

    NVIDIA's tools write 00000000:1A:00.0, older ones 0000:1A:00.0.
    """
    match = _PCI_ADDRESS.match(text.strip())
    if match is None:
        return None
    domain, *rest = match.groups()
    return "{:04x}:{}:{}.{}".format(int(domain or "0", 16), *rest).lower()


def pci_id(device: int, subsystem: int) -> str:
    """Device and subsystem as `lspci -nn` writes ids: "10de:2330 10de:16c1".

    NVIDIA's tools give each as one number, device above vendor: 0x233010DE.
    """
    return " ".join(
        f"{number & 0xFFFF:04x}:{number >> 16 & 0xFFFF:04x}" for number in (device, subsystem)
    )


class Draft:
    """Facts, gaps and notes while a text is read; the first fact of a name is kept."""

    def __init__(self) -> None:
        self._facts: dict[str, Fact] = {}
        self._gaps: dict[str, str] = {}
        self._notes: list[str] = []
        self._cut = ""
        self._absent: dict[str, None] = {}
        self._lines: dict[str, int] = {}
        self._read: set[int] = set()

    def add(self, name: str, value: Value | None, source: str, line: int | None = None) -> None:
        """Tell a fact and the line it was read in; None and an empty text tell nothing."""
        if value is not None and value != "" and name not in self._facts:
            self.replace(name, value, source, line)

    def replace(self, name: str, value: Value, source: str, line: int | None = None) -> None:
        """Tell a fact that is better than one told before."""
        self._facts[name] = Fact(name, value, source)
        if line is not None:
            self._lines[name] = line
            self._read.add(line)

    def absent(self, name: str, line: int | None = None) -> None:
        """Tell that the text says there is none of this name or pattern."""
        self._absent.setdefault(name)
        if line is not None:
            self._read.add(line)

    def gap(self, name: str, reason: str) -> None:
        """Tell what the text leaves open, and why."""
        self._gaps.setdefault(name, reason)

    def cut(self, reason: str) -> None:
        """Tell that the text is not all that there was."""
        self._cut = self._cut or reason

    def note(self, text: str) -> None:
        """Tell the reader something of the text itself."""
        self._notes.append(text)

    def read(self, *lines: int) -> None:
        """Tell which lines were understood, whether or not they gave a fact."""
        self._read.update(lines)

    def __contains__(self, name: str) -> bool:
        return name in self._facts

    def value(self, name: str) -> Value | None:
        """What was told under a name; None where nothing was."""
        fact = self._facts.get(name)
        return None if fact is None else fact.value

    def done(self) -> Imported:
        """What was read."""
        return Imported(
            tuple(self._facts.values()),
            dict(self._gaps),
            tuple(self._notes),
            self._cut,
            tuple(name for name in self._absent if name not in self._facts),
            dict(self._lines),
            frozenset(self._read),
        )


def lines_of(text: str, spans: Iterable[tuple[int, int]]) -> set[int]:
    """Numbers of the lines that spans of characters touch, from 1."""
    found: set[int] = set()
    for start, end in spans:
        first = text.count("\n", 0, start) + 1
        found.update(range(first, first + text.count("\n", start, max(start, end - 1)) + 1))
    return found


class Importer(NamedTuple):
    """One row of the table of importers; its module is imported when it is asked."""

    name: str
    title: str
    hints: tuple[str, ...] = ()
    """Literal texts: the module is loaded only for a report that holds one; none: always."""
    rest: bool = False
    """It sees only the lines that no earlier reader understood."""
    planned: bool = False
    """It tells what would be installed: what others say is there wins without a contradiction."""

    def load(self) -> Any:
        """The module with `recognises` and `parse`."""
        return importlib.import_module(f"envaudit.importers.{self.name}")


IMPORTERS: tuple[Importer, ...] = (
    Importer("nvidia_smi_xml", "nvidia-smi -q -x", ("<nvidia_smi_log",)),
    Importer("nvidia_smi_table", "the table of nvidia-smi"),
    Importer("nvidia_smi_q", "nvidia-smi -q", ("NVSMI LOG", " Version     ", "Attached GPUs")),
    Importer(
        "nvidia_smi_query",
        "nvidia-smi --query-gpu, --version and topo",
        ("nvidia-smi", "NVIDIA-SMI version", "GPU0", "driver_version", "memory.", "compute_cap"),
    ),
    Importer(
        "collect_env",
        "torch.utils.collect_env, or vLLM's form of it",
        (
            *("CUDA used to build PyTorch", "Is CUDA available", "CUDA runtime version"),
            *("GPU models and configuration", "Nvidia driver version", "Is debug build"),
            *("Versions of relevant libraries", "Python platform", "Is XNNPACK available"),
            *("Libc version", "CUDA_MODULE_LOADING set to", "ROCM used to build PyTorch"),
            *("vLLM Version", "vLLM Build Flags", "[pip3] ", "[pip] ", "[conda] "),
        ),
    ),
    Importer(
        "check_env",
        "the environment report of SGLang, LMDeploy, OpenMMLab or Detectron2",
        (
            *("sys.platform", "CUDA available", "GPU available", "CUDA_HOME", "NVCC", "sglang"),
            *("CUDA Driver Version", "ulimit soft", "PyTorch", "LMDeploy", "numpy_random_seed"),
            *("DETECTRON2_ENV_MODULE", "MMCV CUDA Compiler", "Compute Capability"),
        ),
    ),
    Importer(
        "torch_config",
        "torch.__config__.show()",
        ("PyTorch built with:", "NVCC architecture flags:", "Build settings:"),
    ),
    Importer(
        "hugging_face",
        "the env command of transformers, accelerate, diffusers and others",
        (
            *("` version:", "Diffusers version:", "version (GPU?)", "version (accelerator?)"),
            *("Flax version", "ub version:", "in script?", "Accelerate", "TRL version"),
            *("Running in ", "lerobot version", "PyTorch XPU", "PyTorch NPU", "PyTorch acc"),
        ),
    ),
    Importer(
        "xformers_info",
        "xformers.info",
        (
            *("xFormers was built for", "pytorch.version:", "pytorch.cuda:", "gpu.compute_cap"),
            *("memory_efficient_attention.", "build.cuda_version", "build.torch_version"),
            *("build.info:", "build.nvcc_version", "build.env.", "swiglu."),
        ),
    ),
    Importer(
        "bitsandbytes_info",
        "python -m bitsandbytes",
        (
            *("= bitsandbytes v", "CUDASpecs(", "PyTorch settings found:", "COMPILED_WITH_CUDA = "),
            *(
                "CUDA SETUP: ",
                "CUDA_SETUP: ",
                "COMPUTE_CAPABILITIES_PER_GPU",
                "libbitsandbytes_cuda",
            ),
        ),
    ),
    Importer(
        "deepspeed_report",
        "ds_report of DeepSpeed",
        (
            *("DeepSpeed general environment info", "DeepSpeed C++/CUDA extension op report"),
            *("deepspeed wheel compiled w.", "torch cuda version", "deepspeed info ."),
            *("nvcc version .", "torch install path .", "deepspeed install path ."),
        ),
    ),
    Importer("jax_info", "JAX's environment and messages", ("jax", "JAX")),
    Importer(
        "tensorflow_log",
        "a log of TensorFlow or XLA",
        (
            *("pci bus id", "with properties", "StreamExecutor device", "DSO version"),
            *("reported version is", "oaded cuDNN", "oaded runtime CuDNN", "oaded CuDNN"),
            *("LD_LIBRARY_PATH", "uccessfully opened", "'cuda_version'", "is_cuda_build"),
        ),
    ),
    Importer(
        "missing_libraries",
        "libraries that programs did not find",
        (
            *("cannot open shared object", "ould not load", "ould not dlopen", "ouldn't open"),
            *("ailed to load", "nable to load", "not found", "ould not find", "ould not locate"),
            "uccessfully opened",
        ),
    ),
    Importer(
        "ort_log",
        "messages of ONNX Runtime and CuPy",
        ("onnxruntime", "ExecutionProvider", "CuPy failed to load"),
    ),
    Importer("cupy_config", "cupy.show_config()", ("CuPy Version", "CUDA Build Version")),
    Importer(
        "numba_info",
        "numba -s",
        ("__CUDA Information__", "__Hardware Information__", "CUDA devices", "__Python Inf"),
    ),
    Importer(
        "julia_cuda",
        "CUDA.versioninfo() of Julia",
        ("CUDA runtime ", "CUDA toolkit ", "CUDA toolchain:", "NVIDIA driver "),
    ),
    Importer(
        "device_query",
        "deviceQuery and other programs that print a device's properties",
        (
            *("CUDA Capability", "Runtime Version", "evice name", "CudaDeviceProperties"),
            "GPU Device ",
        ),
    ),
    Importer(
        "ollama_log",
        "a log of Ollama or llama.cpp",
        (
            *("inference compute", "CUDA driver version", "ompute capability"),
            *("Compute Capability", "ollama", "NVIDIA driver too old", "gpu.go", "libcuda.so."),
        ),
    ),
    Importer("nccl_log", "a log of NCCL", ("NCCL version", "NCCL INFO")),
    Importer(
        "kernel_log",
        "the kernel's log and /proc",
        (
            *(
                "NVRM",
                "Linux version ",
                "ecure boot",
                "ecureboot",
                "ecure Boot",
                "locked down from",
            ),
            *("ommand line: ", "nouveau ", "nvidiafb", "rivafb", "SXid", "nvidia-modeset: Loading"),
            *("Legacy drivers", "API mismatch", "/sys/module/nvidia/version"),
        ),
    ),
    Importer(
        "kernel_modules",
        "dkms, lsmod, lspci, modinfo, mokutil and nvidia-installer",
        (
            *("nvidia", "NVIDIA", "10de:", "SecureBoot", "ecure Boot", "dkms", "DKMS", "Used by"),
            *("nouveau", "EFI variables"),
        ),
    ),
    Importer(
        "toolchain",
        "nvcc, gcc, clang, cmake and ldd of themselves",
        (
            *("Cuda compilation tools", "Build cuda_", "nvcc", "CUDA Version ", '"cuda"', "gcc"),
            *(
                "g++",
                "GCC",
                "clang version",
                "cmake version",
                "cmake3 version",
                "ldd (",
                "GNU C Library",
                "glibc ",
            ),
            "musl libc",
        ),
    ),
    Importer("system_info", "uname, release files, Windows, WSL and lscpu"),
    Importer(
        "services",
        "systemctl, docker info and NVIDIA's container tools",
        (
            *("systemctl", ".service", "abric Manager", "abric manager", "Container Toolkit"),
            *("Container Runtime", "cli-version", "Runtimes:", "Docker version", "NVRM version:"),
        ),
    ),
    Importer("pip_freeze", "lists and messages of pip and uv"),
    Importer("conda_list", "lists of conda, mamba or pixi"),
    Importer(
        "os_packages",
        "packages of the system",
        (
            *("ii ", "hi ", "iU ", "iF ", "ri ", "un ", "/now", ",now", "[installed", "upgradable"),
            *("x86_64", "noarch", "aarch64", "grade: ", "nstall: ", "emove: ", "status installed"),
            *("[ALPM]", "Setting up ", "i | ", "i+ | ", "Version table", "Package: ", "pacman"),
            *("is not installed", "local/", "apk ", "snap ", "dpkg", "showhold", "(none)", "apt"),
            *("nvidia", "linux ", "cuda", "nccl", "|install|"),
        ),
        rest=True,
    ),
    Importer("loader", "ldd, ldconfig, LD_DEBUG and errors of the loader", (".so",)),
    Importer(
        "library_files",
        "files of libraries and toolkits",
        (".so", "cuda-", "GLIBCXX_"),
        rest=True,
    ),
    Importer(
        "environment",
        "environment variables and modules",
        rest=True,
    ),
    Importer(
        "lockfiles",
        "a lock file or a list of pins",
        ("[[package", '"==', "conda: http", "url: http", "pypi: http", "=="),
        planned=True,
        rest=True,
    ),
    Importer("exports", "a JSON or YAML export of another tool", ('"', "measurements:")),
    Importer("python_repl", "expressions at a Python or Julia prompt"),
    Importer(
        "banners",
        "first lines of YOLO, web UIs, containers and interpreters",
        rest=True,
    ),
    Importer(
        "traceback_paths",
        "paths below an interpreter",
        (
            "python3.",
            "python2.",
            "site-packages",
            ".cpython-3",
            "pyenv",
            'File "',
            ":\\",
            "pip3.",
            "py -3",
        ),
        rest=True,
    ),
    Importer(
        "issue_form",
        "the form of an issue",
        rest=True,
    ),
)
"""All importers. Where two read the same fact, the earlier one is believed."""
