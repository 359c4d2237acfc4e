"""Reads what `python -m torch.utils.collect_env` prints, and what grew out of it.

    PyTorch version: 2.4.0+cu121
    CUDA used to build PyTorch: 12.1            what torch.version.cuda says; "None" in a CPU build
    ROCM used to build PyTorch: N/A

    OS: Ubuntu 22.04.4 LTS (x86_64)
    GCC version: (Ubuntu 11.4.0-1ubuntu1~22.04) 11.4.0
    Libc version: glibc-2.35

    Python version: 3.10.12 (main, Nov 20 2023, 15:14:05) [GCC 11.4.0] (64-bit runtime)
    Python platform: Linux-5.15.0-122-generic-x86_64-with-glibc2.35
    Is CUDA available: True
    CUDA runtime version: 12.3.107              what nvcc says, not the runtime
    GPU models and configuration:
    GPU 0: NVIDIA A100-SXM4-80GB
      MIG 3g.40gb     Device  0:

    Nvidia driver version: 535.161.08
    cuDNN version: Probably one of the following:
    /usr/lib/x86_64-linux-gnu/libcudnn.so.8.9.7

    Versions of relevant libraries:
    [pip3] torch==2.4.0
    [conda] pytorch 2.1.0 py3.10_cuda12.1_cudnn8.9.2_0 pytorch

vLLM prints the same with padded names under headings, its own version, a build's flags and the
environment. Early releases said "Yes" for True and "[pip] torch (1.0.0)". "N/A" in the place of
the PyTorch version means that torch could not be imported; every other "N/A" follows from that.
"Could not collect" stands for what the script got no answer to. People paste parts of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from envaudit.importers import Draft, Imported, Section
from envaudit.importers.platform_words import (
    arch_list,
    build,
    compiler_version,
    gpu_name,
    is_unknown,
    python_version,
    tell_libc,
    tell_platform,
    tell_processor,
    tell_python,
    tell_system,
    told,
    version,
)
from envaudit.patterns import regex
from envaudit.stack import normalise
from envaudit.variables import allowed, clean, is_withheld

_LIMIT = 1 << 20
"""Characters of a section that are looked at: a report has 10 to 40 thousand."""
_MAX_LINES = 20_000
_MAX_LINE = 4000

_OWN = (
    "PyTorch version",
    "Is debug build",
    "CUDA used to build PyTorch",
    "ROCM used to build PyTorch",
    "XPU used to build PyTorch",
    "GCC version",
    "Clang version",
    "CMake version",
    "Libc version",
    "Python platform",
    "Is CUDA available",
    "CUDA runtime version",
    "CUDA_MODULE_LOADING set to",
    "GPU models and configuration",
    "Nvidia driver version",
    "cuDNN version",
    "Is XPU available",
    "HIP runtime version",
    "MIOpen runtime version",
    "Is XNNPACK available",
    "Caching allocator config",
    "Versions of relevant libraries",
    "Neuron SDK Version",
    "ROCM Version",
    "vLLM Version",
    "vLLM Build Flags",
    "GPU Topology",
)
_COMMON = ("OS", "Python version", "CPU", "CUDA Archs", "Legend")
"""Names that other reports have as well: read only beside one that is its own."""

_NAME = "|".join(re.escape(name) for name in sorted((*_OWN, *_COMMON), key=len, reverse=True))
_LEAD = r"[ \t>|*\-\u2022`]{0,40}"
_KEY = regex(rf"{_LEAD}(?P<key>{_NAME})[*_`]{{0,3}}[ \t]{{0,40}}[:\uff1a]\*{{0,2}}(?P<value>.*)")
_TAG = regex(rf"{_LEAD}\[(?P<tag>pip3?|conda)\][ \t]+(?P<rest>\S.*)")
_SECTION = regex(r"[ \t>]{0,20}={6,}[ \t]*\Z")
_HEADING = regex(
    r"[ \t>]{0,40}(?P<name>System Info|PyTorch Info|Python Environment|CUDA / GPU Info|CPU Info|"
    r"vLLM Info|Intel XPU / GPU Info|Environment Variables|Versions of relevant libraries)[ \t]*\Z"
)
_SURE = regex(
    r"(?:Is debug build|CUDA used to build PyTorch|ROCM used to build PyTorch|Python platform|"
    r"Is CUDA available|CUDA runtime version|CUDA_MODULE_LOADING set to|"
    r"GPU models and configuration|Nvidia driver version|Is XNNPACK available|"
    r"Versions of relevant libraries|vLLM Build Flags|vLLM Version|Libc version)"
    r"[*_`]{0,3}[ \t]{0,40}[:\uff1a\n]"
    r"|^[ \t>|*\-]{0,40}\[(?:pip3?|conda)\][ \t]+[A-Za-z0-9][\w.\-]{1,60}"
    r"[ \t]{0,40}(?:==|\(|[ \t][0-9])",
    re.MULTILINE,
)
_INLINE = regex(rf"(?<=[ \t])(?=(?:{_NAME})[ \t]{{0,40}}:[ \t]|\[(?:pip3?|conda)\] )")
_GPU = regex(rf"{_LEAD}GPU (?P<index>[0-9]{{1,4}}):[ \t]*(?P<name>[^\n]{{1,200}})")
_MIG = regex(rf"{_LEAD}MIG (?P<profile>[0-9a-z.+]{{1,30}})[ \t]+Device[ \t]+[0-9]{{1,3}}:")
_CUDNN_FILE = regex(
    r"(?P<path>(?:/|[A-Za-z]:[\\/])[^\n]{0,400}?"
    r"(?P<file>libcudnn(?P<part>_[a-z0-9_]+)?(?:\.so)?(?P<version>(?:\.[0-9]{1,4}){0,4})(?:\.dylib)?"
    r"|cudnn(?P<dll>_[a-z0-9_]+)?64_(?P<major>[0-9]{1,2})\.dll))[ \t]*\Z"
)
_VARIABLE = regex(r"[ \t>]{0,40}(?P<name>[A-Z][A-Z0-9_]{1,80})=(?P<value>.*)")
_PROCESSOR = regex(r"[ \t>]{0,20}(?!Traceback|File )[A-Z][\w()/\- ]{0,50}[:=]|[ \t>]{0,20}-{8}")
"""A line of lscpu, or of what Windows tells of a processor."""
_TOPOLOGY = regex(
    r"[ \t>]{0,80}(?:Could not collect|(?:\x1b\[4m)?(?:GPU|NIC|DCU)[0-9]{1,3}\b|CPU Affinity|mlx|"
    r"NIC Legend|(?:X|SYS|NODE|PHB|PXB|PIX|NV#)[ \t]+= |=+[ \t])"
)
_ALLOCATOR = regex(r"'(PYTORCH_[A-Z_]{1,40})':[ \t]*'([^'\n]{1,400})'")


def recognises(section: Section) -> bool:
    """Whether there is a line that only this kind of report has."""
    return _SURE.search(section.text[:_LIMIT]) is not None


def parse(section: Section) -> Imported:
    """Facts from every line that is one of the report's, whichever of them are there."""
    draft = Draft()
    reader = _Reader(draft)
    text = section.text[:_LIMIT].replace("\r\n", "\n")
    for number, line in enumerate(text.split("\n")[:_MAX_LINES], 1):
        for piece in _pieces(line):
            reader.line(piece, number)
    reader.end()
    return draft.done()


def _pieces(line: str) -> Iterator[str]:
    """A line; its parts where a whole report was folded into one line."""
    if len(line) > 160:
        parts = _INLINE.split(line[: _MAX_LINE * 10])
        if len(parts) > 4:
            yield from parts
            return
    yield line[:_MAX_LINE]


class _Reader:
    """Reads line by line; some values go on over several lines, and some parts have no names."""

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self.part = ""
        """What lines without a name belong to: gpus, cudnn, cpu, topology, environment."""
        self.values: dict[str, tuple[str, int]] = {}
        self.gpus: dict[int, str] = {}
        self.migs: dict[int, list[str]] = {}
        self.gpu_line = 0
        self.followed = False
        """Whether something follows the list of GPUs, so that it is whole."""
        self.listed = True
        """Whether every GPU of the list is an NVIDIA one."""
        self.copies: list[tuple[str, str, int]] = []
        self.cpus = 0

    # -- lines ----------------------------------------------------------------------------------

    def line(self, line: str, number: int) -> None:
        if not line.strip():
            return
        tag = _TAG.match(line)
        if tag is not None:
            self.close()
            self.draft.read(number)
            self.library(tag["tag"], tag["rest"].strip(), number)
            return
        key = _KEY.match(line)
        if key is not None and self.named(key["key"], key["value"].strip(), number):
            return
        if _SECTION.match(line):
            self.draft.read(number)
            if self.part in ("gpus", "cudnn", "flags"):
                self.close()
            return
        heading = _HEADING.match(line)
        if heading is not None:
            self.close()
            self.draft.read(number)
            parts = {"CPU Info": "cpu", "Environment Variables": "environment"}
            self.part, self.cpus = parts.get(heading["name"], ""), 0
            return
        if line.strip(" \t>") == "Collecting environment information...":
            self.draft.read(number)
        else:
            self.unnamed(line, number)

    def named(self, key: str, value: str, number: int) -> bool:
        """Take a line with a name; false where the name belongs to something else."""
        if key == "Legend" and self.part != "topology":
            return False
        if key == "CPU" and value:  # a hand-written line or the table of something else
            return False
        self.close()
        self.draft.read(number)
        self.values.setdefault(key, (told(value), number))
        if key == "GPU models and configuration":
            self.part = "gpus"
            self.gpu_line = number
            self.gpus_inline(value, number)
        elif key == "cuDNN version":
            self.part = "cudnn"
            self.cudnn(value, number)
        elif key == "CPU":
            self.part, self.cpus = "cpu", 0
        elif key in ("GPU Topology", "Legend"):
            self.part = "topology"
        elif key in ("vLLM Build Flags", "CUDA Archs"):
            self.part = "flags"
        return True

    def unnamed(self, line: str, number: int) -> None:
        if self.part == "gpus":
            if not self.gpu(line, number):
                self.close()
        elif self.part == "cudnn":
            if not self.cudnn(line, number):
                self.close()
        elif self.part == "cpu":
            self.processor(line, number)
        elif self.part in ("topology", "environment"):
            self.variable(line, number)

    def close(self) -> None:
        """A part has ended because another line of the report follows."""
        if self.part == "gpus":
            self.followed = True
        if self.part in ("gpus", "cudnn", "flags", "cpu"):
            self.part = ""

    # -- parts ----------------------------------------------------------------------------------

    def gpus_inline(self, value: str, number: int) -> None:
        """GPUs on the line of the name itself: the only one, or a name without a number."""
        if not value or is_unknown(value):
            return
        if self.gpu(value, number):
            self.part, self.followed = "", True
            return
        match = re.match(r"(?:[0-9]{1,3}[ \t]?[xX*\u00d7][ \t]{0,2})?([^,;\n]{1,200})", value)
        name = gpu_name(match[1]) if match else None
        if name is None:
            self.listed = False
        else:
            self.draft.add("gpu.0.name", name, _source("GPU models and configuration"), number)

    def gpu(self, line: str, number: int) -> bool:
        """One line of the list of GPUs (nvidia-smi -L); false where it is none."""
        mig = _MIG.match(line)
        if mig is not None and self.gpus:
            self.migs.setdefault(max(self.gpus), []).append(mig["profile"])
            self.draft.read(number)
            return True
        match = _GPU.match(line)
        if match is None:
            return False
        self.draft.read(number)
        index, name = int(match["index"]), gpu_name(match["name"])
        if name is None:
            self.listed = False
        elif index not in self.gpus:
            self.gpus[index] = name
            source = _source("GPU models and configuration")
            self.draft.add(f"gpu.{index}.name", name, source, number)
        return True

    def cudnn(self, line: str, number: int) -> bool:
        """One file of the list of cuDNN's libraries; false where it is none."""
        if line.startswith("Probably one of the following") or not line.strip():
            return True
        match = _CUDNN_FILE.search(line.strip(" \t>|*-`"))
        if match is None:
            return False
        self.draft.read(number)
        if match["part"] is None and match["dll"] is None:
            found = (match["version"] or "").strip(".") or match["major"] or "unknown"
            self.copies.append((match["path"], found, number))
        return True

    def processor(self, line: str, number: int) -> None:
        if self.cpus and not _PROCESSOR.match(line):
            self.part = ""
            return
        self.draft.read(number)
        key, sep, value = line.strip(" \t>").partition(":")
        if not sep:
            key, sep, value = line.strip(" \t>").partition("=")  # Windows, wmic
        key = key.strip()
        source = "collect_env: CPU"
        if not sep:
            if self.cpus == 0 and re.match(r"[ \t>]{0,20}(?:Apple|Intel|AMD)\b", line):
                self.draft.add("host.cpu.model", line.strip(" \t>")[:120], source, number)
        elif key == "Name" and value.strip():
            self.draft.add("host.cpu.model", value.strip()[:120], source, number)
        elif key == "Manufacturer" and value.strip():
            self.draft.add("host.cpu.vendor", value.strip()[:60], source, number)
        else:
            tell_processor(self.draft, key, value, source, number)
        self.cpus += 1

    def variable(self, line: str, number: int) -> None:
        """A variable of the environment, which vLLM prints at its end; or a row of the topology."""
        match = _VARIABLE.match(line)
        if match is None:
            if _TOPOLOGY.match(line):
                self.draft.read(number)
            else:
                self.part = ""
            return
        self.draft.read(number)
        if not allowed(match["name"]):
            return
        name, source = f"env.{match['name']}", f"vLLM collect_env: {match['name']}"
        if is_withheld(match["name"]):
            self.draft.gap(name, "set; its value is not told")
        elif not match["value"].strip():
            self.draft.replace(name, "", source, number)
        else:
            self.draft.add(name, clean(match["value"].strip()), source, number)

    def library(self, tag: str, rest: str, number: int) -> None:
        """A line of the list of packages, from pip or from conda."""
        source = _source(f"[{tag}]")
        if is_unknown(rest) or rest.startswith("No relevant packages"):
            return
        if tag != "conda":
            required, pinned = _requirement(rest)
            if required and pinned:
                self.draft.add(f"dist.{required}.version", pinned, source, number)
            return
        fields = rest.split()
        if len(fields) < 2 or not re.fullmatch(r"[\w.\-]{1,80}", fields[0]):
            return
        name, shown = fields[0], fields[1]
        if not re.match(r"v?[0-9]", shown):
            return
        found = build(shown) or shown[:80]
        channel = fields[3] if len(fields) > 3 and not fields[3].startswith("[") else ""
        if channel == "pypi" or "<pip>" in fields[2:]:
            self.draft.add(f"dist.{normalise(name)}.version", found, source, number)
            return
        name = name.lower()
        self.draft.add(f"conda.{name}.version", found, source, number)
        if len(fields) > 2 and not fields[2].startswith(("[", "<")):
            self.draft.add(f"conda.{name}.build", fields[2][:120], source, number)
        self.draft.add(f"conda.{name}.channel", channel[:120], source, number)

    # -- the whole ------------------------------------------------------------------------------

    def end(self) -> None:
        """Tell what the single values say; some mean different things beside others."""
        draft = self.draft
        self.torch()
        python = python_version(self.value("Python version"))
        text, line = self.values.get("Python version", ("", 0))
        tell_python(draft, text, _source("Python version"), line)
        text, line = self.values.get("OS", ("", 0))
        tell_system(draft, text, _source("OS"), line)
        text, line = self.values.get("Python platform", ("", 0))
        tell_platform(draft, text, _source("Python platform"), line, python)
        text, line = self.values.get("Libc version", ("", 0))
        tell_libc(draft, text, _source("Libc version"), line, python)
        self.simple("Clang version", ("clang.version",), version)
        self.simple("CMake version", ("cmake.version",), _after_version)
        self.simple("GCC version", ("gcc.version",), compiler_version)
        self.simple("GCC version", ("gcc.major",), _major)
        self.simple("CUDA runtime version", ("cuda.toolkit.version", "cuda.nvcc.version"), _nvcc)
        self.simple("Nvidia driver version", ("driver.version",), _driver)
        self.available()
        self.gpu_list()
        self.vllm()
        for name, found in _ALLOCATOR.findall(self.value("Caching allocator config")):
            line = self.values["Caching allocator config"][1]
            draft.add(f"env.{name}", clean(found), _source("Caching allocator config"), line)
        if self.copies:
            lines = [f"{path} {found} {_via(path)}" for path, found, _ in self.copies]
            draft.add("cudnn.installs", [*lines], _source("cuDNN version"), self.copies[0][2])

    def value(self, key: str) -> str:
        return self.values.get(key, ("", 0))[0]

    def simple(self, key: str, names: Sequence[str], read: Callable[[str], str | None]) -> None:
        """Tell a value under each name, or that the script got no answer."""
        if key not in self.values:
            return
        text, line = self.values[key]
        found = read(text)
        for name in names:
            if found is not None:
                self.draft.add(name, found, _source(key), line)
            else:
                self.draft.gap(name, f"collect_env printed {text[:60]!r}")

    def torch(self) -> None:
        """Tell the PyTorch build, or that torch could not be imported."""
        draft = self.draft
        key = "PyTorch version"
        text, line = self.values.get(key, ("", 0))
        found = build(text)
        if found is not None:
            draft.add("torch.version", found, _source(key), line)
            draft.add("torch.import", "ok", _source(key), line)
        elif text.upper().startswith("N/A"):
            draft.add(
                "torch.import", "failed: collect_env could not import torch", _source(key), line
            )
            for name in ("torch.version", "torch.cuda.*", "torch.hip.version"):
                draft.gap(name, "torch could not be imported")
        for key, name in (
            ("CUDA used to build PyTorch", "torch.cuda.version"),
            ("ROCM used to build PyTorch", "torch.hip.version"),
        ):
            text, line = self.values.get(key, ("", 0))
            if not line:
                continue
            number = version(text)
            if number is not None:
                draft.add(name, number, _source(key), line)
            elif text == "None" or (found is not None and is_unknown(text)):
                # torch was imported, and torch.version says None: "None", "N/A" beside a ROCm
                # build, and "Could not collect" where there is an nvcc or a driver
                draft.absent(name, line)
            else:
                draft.gap(name, f"collect_env printed {text[:60]!r}")

    def available(self) -> None:
        key = "Is CUDA available"
        if key not in self.values:
            return
        text, line = self.values[key]
        flag = {"true": True, "yes": True, "false": False, "no": False}.get(
            text.lower().rstrip(".")
        )
        if flag is not None:
            self.draft.add("torch.cuda.available", flag, _source(key), line)
        else:
            self.draft.gap("torch.cuda.available", f"collect_env printed {text[:60]!r}")

    def gpu_list(self) -> None:
        """How many GPUs there are, which only a list that is whole tells."""
        draft, key = self.draft, "GPU models and configuration"
        if key not in self.values:
            return
        source = _source(key)
        for index, profiles in self.migs.items():
            draft.add(f"gpu.{index}.mig.current", "enabled", source, self.gpu_line)
            if self.followed or index != max(self.gpus):
                draft.add(f"gpu.{index}.mig.instances", [*profiles], source, self.gpu_line)
        if not self.gpus:
            text = self.values[key][0]
            if is_unknown(text):
                draft.gap("gpu.count", f"collect_env printed {text[:60]!r}")
        elif not self.followed:
            draft.gap("gpu.count", "the list of GPUs may go on behind the text")
        elif not self.listed or sorted(self.gpus) != list(range(len(self.gpus))):
            draft.gap("gpu.count", "the list leaves GPUs out")
        else:
            draft.add("gpu.count", len(self.gpus), source, self.gpu_line)

    def vllm(self) -> None:
        key = "vLLM Version"
        text, line = self.values.get(key, ("", 0))
        if line:
            self.draft.add("dist.vllm.version", build(text), "vLLM collect_env: vLLM Version", line)
        key = "CUDA Archs"
        text, line = self.values.get(key, ("", 0))
        if line:
            archs = text.partition(";")[0].strip()
            if archs.lower() == "not set":
                self.draft.absent("env.TORCH_CUDA_ARCH_LIST", line)
            elif arch_list(text.partition("; ")[0]):
                source = "vLLM collect_env: CUDA Archs"
                self.draft.add("env.TORCH_CUDA_ARCH_LIST", text.partition("; ")[0], source, line)


def _source(key: str) -> str:
    return f"collect_env: {key}"


def _via(path: str) -> str:
    return "CUDA_PATH" if path[1:2] == ":" else "ldconfig"


def _after_version(text: str) -> str | None:
    """The version in what cmake prints: "version 3.25.1"."""
    return version(text.removeprefix("cmake").strip().removeprefix("version"))


def _major(text: str) -> str | None:
    return (compiler_version(text) or "").partition(".")[0] or None


_BUILD_LINE = regex(r"(?:Build )?cuda_([0-9]{1,2}\.[0-9]{1,2})\.")


def _nvcc(text: str) -> str | None:
    """The release in what was taken from nvcc's output; some collected the wrong line of it.

    11.3.109 · Build cuda_11.3.r11.3/compiler.29920130_0 · 11.1.TC455_06.29190527_0
    """
    match = _BUILD_LINE.match(text) or re.search(r"\bV([0-9]{1,2}\.[0-9]{1,2}\.[0-9]{1,4})", text)
    if match is not None:
        return match[1]
    match = re.match(r"[0-9]{1,2}\.[0-9]{1,2}(?:\.[0-9]{1,4}(?![0-9A-Za-z_]))?", text)
    return match[0] if match else None


def _driver(text: str) -> str | None:
    """A driver's release; macOS printed that of its CUDA extension instead, such as 1.1.0."""
    found = version(text)
    return found if found and re.match(r"[0-9]{2,4}\.", found) else None


_REQUIREMENT = regex(
    r"(?P<name>[A-Za-z0-9][\w.\-]{0,80})(?:[ \t]*==[ \t]*|[ \t]*\([ \t]*|[ \t]+)"
    r"v?(?P<version>[0-9][^ \t()\n,;]{0,80})"
)


def _requirement(text: str) -> tuple[str, str]:
    """Name and version of "torch==2.4.0", "torch (1.0.0)" or "torch  2.4.0"."""
    match = _REQUIREMENT.match(text)
    if match is None:
        return "", ""
    return normalise(match["name"]).strip("-"), match["version"]
