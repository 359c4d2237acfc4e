"""Reads the environment reports that frameworks on PyTorch print before a run or on request.

`python -m sglang.check_env`, `lmdeploy check_env`, and the "Environment info" of MMCV, MMEngine,
MMDetection and their kin:

    sys.platform: linux
    Python: 3.8.10 (default, Sep 28 2021, 16:10:42) [GCC 9.3.0]
    CUDA available: True
    GPU 0,1: NVIDIA GeForce RTX 3090
    GPU 0,1 Compute Capability: 8.6                     SGLang
    CUDA_HOME: /usr/local/cuda
    NVCC: Cuda compilation tools, release 12.4, V12.4.131
    CUDA Driver Version: 550.90.07                      SGLang: the driver's release
    GCC: gcc (Ubuntu 9.3.0-17ubuntu1~20.04) 9.3.0
    PyTorch: 2.5.1+cu124
    sglang: 0.4.0

and the same as a table of Detectron2 and what copied it:

    -----------------  ----------------------------------------------------------------
    sys.platform       linux
    PyTorch            1.10.0+cu113 @/opt/conda/lib/python3.8/site-packages/torch
    GPU available      Yes
    GPU 0,1            NVIDIA GeForce RTX 3090 (arch=8.6)
    CUDA_HOME          /usr/local/cuda - invalid!

GPUs are those that torch sees, in its order: how many the machine has, it does not tell.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from envaudit.importers import Draft, Imported, Section
from envaudit.importers.platform_words import (
    arch_list,
    build,
    compiler_version,
    gpu_name,
    indices,
    is_unknown,
    tell_python,
    told,
    version,
)
from envaudit.patterns import regex
from envaudit.stack import normalise

_LIMIT = 1 << 20
_MAX_LINES = 20_000

_KEYS = (
    r"sys\.platform|Python|CUDA available|ROCM available|MUSA available|numpy_random_seed|"
    r"GPU available|GPU [0-9][0-9, ]{0,4000}(?: Compute Capability)?|"
    r"CUDA_HOME|ROCM_HOME|MUSA_HOME|NVCC|HIPCC|CUDA Driver Versions?|ROCM Driver Version|"
    r"Driver version|GCC|MSVC|PyTorch debug build|PyTorch compiling details|PyTorch|"
    r"TORCH_CUDA_ARCH_LIST|DETECTRON2_ENV_MODULE|FASTREID_ENV_MODULE|"
    r"torch\._C\._GLIBCXX_USE_CXX11_ABI|detectron2\._C|detectron2 arch flags|detectron2|fastreid|"
    r"Compiler(?: \(\$CXX\))?|CUDA compiler|detectron2 compiler|detectron2 CUDA compiler|"
    r"MMCV Compiler|MMCV CUDA Compiler|MMCV|MMEngine|MMDetection|MMSegmentation|MMPose|"
    r"TorchVision|torchvision arch flags|OpenCV|Pillow|cv2|LMDeploy|"
    r"NVIDIA Topology|AMD Topology|Hypervisor vendor|ulimit soft"
)
_LEAD = r"[ \t>|*\u2022`]{0,40}(?:-[ \t]{1,4})?"
_KEY = regex(
    rf"{_LEAD}(?P<key>{_KEYS})(?:[*_`]{{0,3}}[ \t]{{0,8}}:[ \t]*|[ \t]{{2,60}})"
    r"(?P<value>\S.*|\Z)"
)
_PACKAGE = regex(
    rf"{_LEAD}(?P<name>[a-z][a-z0-9_.\-]{{1,40}})(?:[ \t]{{0,2}}:[ \t]|[ \t]{{2,60}})"
    r"(?P<version>v?[0-9][^ \t\n]{0,80}|(?:Module )?[Nn]ot [Ff]ound|failed to import)"
    r"(?:[ \t]+@\S.*)?[ \t]*\Z"
)
_SURE = regex(
    r"^[ \t>|*`\-]{0,40}(?:sys\.platform|CUDA available|GPU available|CUDA_HOME|NVCC|"
    r"CUDA Driver Version|GPU [0-9][0-9, ]{0,4000}(?: Compute Capability)?|ulimit soft|sglang|"
    r"PyTorch compiling details|PyTorch debug build|DETECTRON2_ENV_MODULE|MMCV CUDA Compiler|"
    r"numpy_random_seed|PyTorch|LMDeploy)(?:[*`]{0,3}[ \t]{0,8}:|[ \t]{2})",
    re.MULTILINE,
)
_SM = regex(r"\bsm_([0-9]{1,2})([0-9])\b")
_ENOUGH = 2
"""Different names that make a report: one alone stands in many texts."""

_PACKAGES = """
accelerate aiohttp anthropic bitsandbytes cuda-python decord decord2 deepspeed fastapi
flash-attn flashinfer flashinfer-cubin flashinfer-jit-cache flashinfer-python fvcore gradio
hf-transfer huggingface-hub interegular iopath litellm lmdeploy mmcv mmcv-full mmdet mmengine
modelscope ninja numpy openai orjson outlines packaging pillow psutil pydantic python-multipart
pyzmq sgl-kernel sglang sglang-kernel tiktoken torchao torchaudio torchcodec torchvision
transformers triton triton-kernels uvicorn uvloop vllm xformers xgrammar
"""
PACKAGES = frozenset(_PACKAGES.split())
"""What these reports list under the name of a distribution."""
MODULES = {
    "multipart": "python-multipart",
    "zmq": "pyzmq",
    "sgl_kernel": "sgl-kernel",
    "TorchVision": "torchvision",
    "MMEngine": "mmengine",
    "MMDetection": "mmdet",
    "MMSegmentation": "mmsegmentation",
    "MMPose": "mmpose",
    "LMDeploy": "lmdeploy",
    "Pillow": "pillow",
}
"""What they list under another name than its distribution's."""

TITLE = "environment report"


def recognises(section: Section) -> bool:
    """Whether two or more lines of such a report are there."""
    found: set[str] = set()
    for match in _SURE.finditer(section.text[:_LIMIT]):
        found.add(re.sub(r"[0-9, ]+", "", match[0]).strip(" \t:>|*`-"))
        if len(found) >= _ENOUGH:
            return True
    return False


def parse(section: Section) -> Imported:
    """Facts from every line with a known name; the first line of a name counts."""
    draft = Draft()
    topology = False
    lines = section.text[:_LIMIT].replace("\r\n", "\n").split("\n")[:_MAX_LINES]
    for number, line in enumerate(lines, 1):
        line = line[:4500]
        match = _KEY.match(line)
        if match is not None:
            key, value = match["key"].strip(), told(match["value"])
            topology = key.endswith("Topology")
            draft.read(number)
            _tell(draft, key, value, number)
            continue
        package = _PACKAGE.match(line)
        if package is not None and _package(draft, package["name"], package["version"], number):
            topology = False
        elif topology and _TOPOLOGY.match(line):
            draft.read(number)
    return draft.done()


_TOPOLOGY = regex(
    r"[ \t>]{0,80}(?:\x1b\[4m)?(?:GPU[0-9]|NIC[0-9]|CPU Affinity|Legend:|NIC Legend|mlx|"
    r"(?:X|SYS|NODE|PHB|PXB|PIX|NV#)[ \t]+=)"
)


def _tell(draft: Draft, key: str, value: str, line: int) -> None:
    source = f"{TITLE}: {key}"
    gpu = re.match(r"GPU ([0-9][0-9, ]*?)[ \t]*(Compute Capability)?\Z", key)
    if gpu is not None:
        _gpus(draft, gpu[1], value, gpu[2] is not None, line)
    elif key in MODULES:
        _package(draft, key, value, line)
    elif key in _READERS:
        _READERS[key](draft, value, source, line)


def _package(draft: Draft, name: str, text: str, line: int) -> bool:
    """Tell a distribution's version; false where the name is none that such reports list."""
    distribution = MODULES.get(name, normalise(name))
    if distribution not in PACKAGES and name not in MODULES:
        return False
    found = build(text.rstrip("+")) if re.match(r"v?[0-9]", text) else None
    draft.read(line)
    draft.add(f"dist.{distribution}.version", found, f"{TITLE}: {name}", line)
    return True


def _gpus(draft: Draft, numbers: str, value: str, capability: bool, line: int) -> None:
    arch = re.search(r"\(arch=([0-9]{1,2}\.[0-9])\)", value)
    name = None if capability else gpu_name(re.sub(r"[ \t]*\(arch=[^\n)]*\)?", "", value))
    number = version(value) if capability else arch[1] if arch else None
    for index in indices(numbers):
        if name is not None:
            draft.add(f"gpu.{index}.name", name, f"{TITLE}: GPU {index}", line)
        if number is not None and (capability or name is not None):
            source = f"{TITLE}: GPU {index} compute capability"
            draft.add(f"gpu.{index}.compute_capability", number, source, line)


def _platform(draft: Draft, value: str, source: str, line: int) -> None:
    system = {"win32": "windows", "win64": "windows", "darwin": "macos"}.get(value)
    draft.add("os.id", system, source, line)


def _python(draft: Draft, value: str, source: str, line: int) -> None:
    tell_python(draft, value, source, line)


def _available(draft: Draft, value: str, source: str, line: int) -> None:
    flag = {"true": True, "yes": True, "false": False, "no": False}.get(value.lower().split(":")[0])
    draft.add("torch.cuda.available", flag, source, line)


def _torch(draft: Draft, value: str, source: str, line: int) -> None:
    found = build(value)
    if found is not None:
        draft.add("torch.version", found, source, line)
        draft.add("torch.import", "ok", source, line)


def _home(draft: Draft, value: str, source: str, line: int) -> None:
    if value == "None":
        draft.absent("cuda.home", line)
        draft.gap("cuda.nvcc.version", "torch found no CUDA_HOME")
    elif " - invalid" in value:
        draft.gap("cuda.home", f"{value.partition(' - ')[0]}, which is no folder")
        draft.absent("cuda.nvcc.version", line)
    elif value.startswith(("/", "~")) or value[1:2] == ":":
        draft.add("cuda.home", value[:400], source, line)


def _nvcc(draft: Draft, value: str, source: str, line: int) -> None:
    match = re.search(r"\bV([0-9]{1,2}\.[0-9]{1,2}\.[0-9]{1,4})", value) or re.search(
        r"\b(?:cuda_|release )([0-9]{1,2}\.[0-9]{1,2})\b", value
    )
    for name in ("cuda.toolkit.version", "cuda.nvcc.version"):
        if match is not None:
            draft.add(name, match[1], source, line)
        elif value:
            draft.gap(name, f"the report says {value[:60]!r}")


def _driver(draft: Draft, value: str, source: str, line: int) -> None:
    found = version(value)
    if found is None or "," in value or not re.match(r"[0-9]{2,4}\.", found):
        draft.gap("driver.version", f"the report says {value[:60]!r}")
    else:
        draft.add("driver.version", found, source, line)


def _gcc(draft: Draft, value: str, source: str, line: int) -> None:
    words = value.lower()
    if is_unknown(value) or words.startswith("n/a") or "clang" in words or "icc" in words[:4]:
        return
    found = compiler_version(value)
    if found is not None:
        draft.add("gcc.version", found, source, line)
        draft.add("gcc.major", found.partition(".")[0], source, line)


def _archs(draft: Draft, value: str, source: str, line: int) -> None:
    if arch_list(value) is not None:
        draft.add("env.TORCH_CUDA_ARCH_LIST", value, source, line)


def _codes(name: str) -> Callable[[Draft, str, str, int], None]:
    """A reader of the GPU code in a library: "6.1, 7.0", or "sm_61, sm_70" of older reports."""

    def read(draft: Draft, value: str, source: str, line: int) -> None:
        codes = arch_list(value) or arch_list(_SM.sub(r"\1.\2", value[:2000]))
        if codes is not None:
            draft.add(f"{name}.arch_list", [*codes], source, line)

    return read


def _abi(draft: Draft, value: str, source: str, line: int) -> None:
    draft.add("torch.cxx11_abi", {"True": True, "False": False}.get(value), source, line)


def _built(name: str) -> Callable[[Draft, str, str, int], None]:
    """A reader of the toolkit that an extension was compiled with, such as "CUDA 11.1"."""

    def read(draft: Draft, value: str, source: str, line: int) -> None:
        match = re.match(r"(?:CUDA )?([0-9]{1,2}\.[0-9]{1,2})(?:\.[0-9]{1,4})?\Z", value)
        if match is not None:
            draft.add(f"{name}.built.cuda.version", match[1], source, line)

    return read


def _hypervisor(draft: Draft, value: str, source: str, line: int) -> None:
    word = value.lower()
    if word in ("kvm", "microsoft", "vmware", "xen"):
        draft.add("os.virtualization", word, source, line)


def _files(draft: Draft, value: str, source: str, line: int) -> None:
    if re.fullmatch(r"-?[0-9]{1,19}", value):
        draft.add("host.limits.nofile", int(value), source, line)


def _distribution(name: str) -> Callable[[Draft, str, str, int], None]:
    def read(draft: Draft, value: str, source: str, line: int) -> None:
        draft.add(f"dist.{name}.version", build(value), source, line)

    return read


_READERS: Mapping[str, Callable[[Draft, str, str, int], None]] = {
    "sys.platform": _platform,
    "Python": _python,
    "CUDA available": _available,
    "GPU available": _available,
    "PyTorch": _torch,
    "CUDA_HOME": _home,
    "NVCC": _nvcc,
    "CUDA Driver Version": _driver,
    "CUDA Driver Versions": _driver,
    "Driver version": _driver,
    "GCC": _gcc,
    "TORCH_CUDA_ARCH_LIST": _archs,
    "torch._C._GLIBCXX_USE_CXX11_ABI": _abi,
    "MMCV CUDA Compiler": _built("mmcv"),
    "CUDA compiler": _built("detectron2"),
    "detectron2 CUDA compiler": _built("detectron2"),
    "detectron2": _distribution("detectron2"),
    "detectron2 arch flags": _codes("detectron2"),
    "torchvision arch flags": _codes("torchvision"),
    "Hypervisor vendor": _hypervisor,
    "ulimit soft": _files,
}
