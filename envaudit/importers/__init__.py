"""Readers of what other tools print: pure functions from text to facts, run on nothing.

Each module has `recognises(section) -> bool` and `parse(section) -> Imported`. A section is one
piece of a pasted report: the output of one command, or what stands between two. It may hold
other things besides what a reader knows: each reader picks out its own lines, and says which.
Neither function ever raises, whatever the text: what is not understood is left out, and told
as a gap where it matters.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

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
    """Numbers of the lines that spans of characters touch, from 1; the spans in their order."""
    found: set[int] = set()
    line, at = 1, 0
    for start, end in spans:
        line += text.count("\n", at, start)
        at = start
        found.update(range(line, line + text.count("\n", start, max(start, end - 1)) + 1))
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
    Importer(
        "nvidia_smi_q",
        "nvidia-smi -q",
        ("NVSMI LOG", "Driver Version    ", "CUDA Version    ", "MD Version    ", "Attached GPUs"),
    ),
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
        (".so", "/cuda-", "cuda-1", "cuda-9", "cuda-8", "GLIBCXX_", ".dll"),
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
    Importer(
        "exports",
        "a JSON or YAML export of another tool",
        (
            *('"env_doctor_version"', '"checks"', '"nvidia_smi_output"', '"package_versions"'),
            *('"Torch env info"', '"pip_version"', '"measurements"', "measurements:"),
        ),
    ),
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
    ),
    Importer(
        "issue_form",
        "the form of an issue",
        rest=True,
    ),
)
"""All importers. Where two read the same fact, the earlier one is believed."""
