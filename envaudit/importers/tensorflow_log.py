"""Log lines of TensorFlow and of XLA, which JAX uses too, and what `get_build_info()` returns.

    Created device /job:localhost/replica:0/task:0/device:GPU:0 with 9652 MB memory:  -> device: 0,
      name: NVIDIA GeForce RTX 3080, pci bus id: 0000:01:00.0, compute capability: 8.6
    kernel version 470.57.2 does not match DSO version 470.63.1 -- cannot find working devices
    Loaded runtime CuDNN library: 8.0.5 but source was compiled with: 8.1.0.

The log prints driver releases as numbers, so 470.57.02 loses a nought (see `driver_release`).
"""

from __future__ import annotations

import re

from envaudit.addresses import pci_address
from envaudit.importers import Draft, Imported, Section
from envaudit.importers.reading import cuda_version, cudnn_version, driver_release, numbered
from envaudit.model import Value
from envaudit.patterns import regex

_DEVICE = regex(
    r"device: ([0-9]{1,3}), name: ([^,()\n]{1,80}), pci bus id: ([0-9A-Fa-f:.]{7,16})"
    r"(?:, compute capability: ([0-9]{1,2}\.[0-9]))?"
)
_BELOW = regex(r"[Cc]uda compute capability ([0-9]{1,2}\.[0-9])\. The minimum required")
_FOUND = regex(r"[Ff]ound device ([0-9]{1,3}) with properties")
_BLOCK_NAME = regex(
    r"(?:\A|[ \t])name: (.{1,80}?)(?=[ \t]+(?:computeCapability|major|memoryClock|pciBus)|\Z)"
)
_BLOCK_BUS = regex(r"pciBusID:? ([0-9A-Fa-f:.]{7,16})")
_BLOCK_CAPABILITY = regex(r"computeCapability: ([0-9]{1,2}\.[0-9])")
_BLOCK_MAJOR = regex(r"major: ([0-9]{1,2}) minor: ([0-9])\b")
_STREAM = regex(
    r"StreamExecutor device \(([0-9]{1,3})\): ([^,\n]{1,80}), "
    r"Compute Capability ([0-9]{1,2}\.[0-9])"
)
_MISMATCH = regex(
    r"kernel version ([0-9]{3}\.[0-9.]{1,12}) does not match DSO version ([0-9]{3}\.[0-9.]{1,12})"
)
_LIBCUDA = regex(r"libcuda reported version is:? ([0-9]{3}\.[0-9.]{1,12})")
_KERNEL = regex(r"kernel reported version is:? ([0-9]{3}\.[0-9.]{1,12})")
_CUDNN_PAIR = regex(
    r"Loaded (?:runtime )?CuDNN (?:library|runtime library): ([0-9.]{4,9})"
    r"(?: \(compatibility version [0-9]{1,6}\))? but source was compiled with:? ([0-9.]{4,9})",
    re.IGNORECASE,
)
_CUDNN = regex(r"Loaded cuDNN version ([0-9]{4,6})")
_SEARCHED = regex(r"; LD_LIBRARY_PATH: ([^\n;]{1,2000})")
_RUNTIME = regex(
    r"uccessfully opened (?:dynamic library|CUDA library) "
    r"(?:libcudart\.so\.(10\.[0-9]|[5-9]\.[0-9])|cudart64_(10[0-9]|[5-9][0-9])\.dll)(?![\w.])"
)
"""Names of CUDA up to 10 change with every release; libcudart.so.11.0 serves all of 11."""
_BUILD_VALUE = regex(
    r"'(cuda_version|cudnn_version)'(?::|,) '(?:64_)?([0-9.]{1,6})'"
    r"|'(is_cuda_build)'(?::|,) (True|False)"
    r"|'(cuda_compute_capabilities)'(?::|,) \[([^\]\n]{0,400})\]"
)
_CAPABILITY = regex(r"(?:sm|compute)_[0-9]{2,3}[af]?|(?<![\d.])[0-9]{1,2}\.[0-9](?![\d.])")
_HINTS = (
    "pci bus id",
    "with properties",
    "StreamExecutor device",
    "DSO version",
    "reported version is",
    "oaded cuDNN",
    "oaded runtime CuDNN",
    "oaded CuDNN",
    "LD_LIBRARY_PATH",
    "uccessfully opened",
    "'cuda_version'",
    "is_cuda_build",
    "TensorFlow version",
)
_PLACES = (
    ("external/local_xla/", "tensorflow"),
    ("external/org_tensorflow/", "jaxlib"),
    ("external/xla/", "jaxlib"),
    ("jaxlib", "jaxlib"),
    ("tensorflow/", "tensorflow"),
)
"""Where a line's source file lies in the build tree of who was built with it."""


def recognises(section: Section) -> bool:
    """Whether a line may be one of these logs."""
    return any(hint in section.text for hint in _HINTS)


def parse(section: Section) -> Imported:
    """GPUs, driver, cuDNN and search path from the lines that are of such a log."""
    draft = Draft()
    block = _Block(draft)
    for number, line in numbered(section.text):
        block.line(number, line)
        _devices(draft, line, number)
        _driver(draft, line, number)
        _cudnn(draft, line, number)
        _loader(draft, line, number)
        if "cuda" in line:
            read_build_info(draft, line, number)
    return draft.done()


class _Block:
    """The lines below "Found device 0 with properties", whose form differs by release."""

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self.gpu = ""
        self.left = 0

    def line(self, number: int, line: str) -> None:
        """Read a line, if it belongs to such a block."""
        found = _FOUND.search(line)
        if found is not None:
            self.gpu, self.left = found[1], 6
            self.draft.read(number)
            return
        if not self.left:
            return
        self.left -= 1
        name, bus = _BLOCK_NAME.search(line), _BLOCK_BUS.search(line)
        major, capability = _BLOCK_MAJOR.search(line), _BLOCK_CAPABILITY.search(line)
        version = f"{major[1]}.{major[2]}" if major else capability[1] if capability else ""
        source = "TensorFlow log: Found device"
        if name is not None:
            tell_gpu(
                self.draft,
                self.gpu,
                name[1].strip(),
                bus[1] if bus else "",
                version,
                source,
                number,
            )
        elif version:
            self.draft.add(f"gpu.{self.gpu}.compute_capability", version, source, number)
        if bus is not None:
            address = pci_address(bus[1])
            self.draft.add(f"gpu.{self.gpu}.pci.address", address, source, number)


def tell_gpu(
    draft: Draft, gpu: str, name: str, bus: str, capability: str, source: str, line: int
) -> None:
    """Tell one GPU; nothing where this number was another GPU of another process."""
    address = pci_address(bus) if bus else None
    for key, value in (("pci.address", address), ("name", name)):
        told = draft.value(f"gpu.{gpu}.{key}")
        if value and told and told != value:
            return
    draft.add(f"gpu.{gpu}.name", name, source, line)
    draft.add(f"gpu.{gpu}.pci.address", address, source, line)
    draft.add(f"gpu.{gpu}.compute_capability", capability, source, line)


def _devices(draft: Draft, line: str, number: int) -> None:
    for match in _DEVICE.finditer(line):
        below = _BELOW.search(line)
        capability = match[4] or (below[1] if below else "")
        source = "TensorFlow log: device"
        tell_gpu(draft, match[1], match[2].strip(), match[3], capability, source, number)
    stream = _STREAM.search(line)
    if stream is not None:
        source = "XLA log: StreamExecutor device"
        tell_gpu(draft, stream[1], stream[2].strip(), "", stream[3], source, number)


def _driver(draft: Draft, line: str, number: int) -> None:
    pair = _MISMATCH.search(line)
    if pair is not None:
        source = "TensorFlow log: kernel version and DSO version"
        draft.add("driver.module.version", _driver_number(pair[1]), source, number)
        draft.add("driver.libcuda.version", _driver_number(pair[2]), source, number)
        draft.add("driver.library.version", _driver_number(pair[2]), source, number)
    libcuda, kernel = _LIBCUDA.search(line), _KERNEL.search(line)
    if libcuda is not None:
        source = "TensorFlow log: libcuda reported version"
        draft.add("driver.libcuda.version", _driver_number(libcuda[1]), source, number)
        draft.add("driver.library.version", _driver_number(libcuda[1]), source, number)
    if kernel is not None:
        source = "TensorFlow log: kernel reported version"
        draft.add("driver.module.version", _driver_number(kernel[1]), source, number)


def _driver_number(text: str) -> str | None:
    return driver_release(text.rstrip("."))


def _cudnn(draft: Draft, line: str, number: int) -> None:
    pair = _CUDNN_PAIR.search(line)
    if pair is not None:
        source = "log: Loaded runtime CuDNN library"
        draft.add("cudnn.version", _cudnn_number(pair[1]), source, number)
        who = next((who for place, who in _PLACES if place in line), "")
        if who:
            draft.add(f"{who}.cudnn.version", _cudnn_number(pair[2]), source, number)
    loaded = _CUDNN.search(line)
    if loaded is not None:
        version = cudnn_version(loaded[1])
        draft.add("cudnn.version", version, "log: Loaded cuDNN version", number)


def _cudnn_number(text: str) -> str | None:
    return cudnn_version(text.rstrip("."))


def _loader(draft: Draft, line: str, number: int) -> None:
    searched = _SEARCHED.search(line)
    if searched is not None:
        value = searched[1].strip()
        draft.add("env.LD_LIBRARY_PATH", value, "TensorFlow log: LD_LIBRARY_PATH", number)
    runtime = _RUNTIME.search(line)
    if runtime is not None:
        version = runtime[1] or f"{runtime[2][:-1]}.{runtime[2][-1]}"
        draft.add("cuda.runtime.version", version, "TensorFlow log: opened cudart", number)


def read_build_info(draft: Draft, text: str, number: int) -> bool:
    """Tell what a dict of `tf.sysconfig.get_build_info()` holds; False for anything else."""
    source = "tf.sysconfig.get_build_info()"
    found = False
    for match in _BUILD_VALUE.finditer(text):
        found = True
        if match[1] == "cuda_version":
            value = match[2]
            if value.isdigit() and len(value) == 3:  # Windows writes 64_112
                value = f"{value[:2]}.{value[2]}"
            draft.add("tensorflow.cuda.version", cuda_version(value), source, number)
        elif match[1] == "cudnn_version":
            draft.add("tensorflow.cudnn.version", match[2], source, number)
        elif match[3] and match[4] == "False":
            draft.absent("tensorflow.cuda.version", number)
        elif match[5]:
            codes: list[Value] = [_target(code) for code in _CAPABILITY.findall(match[6])]
            if codes:
                draft.add("tensorflow.arch_list", codes, source, number)
    return found


def _target(code: str) -> str:
    return code if "_" in code else f"sm_{code.replace('.', '')}"
