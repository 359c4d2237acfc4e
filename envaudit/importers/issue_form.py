"""Forms that people fill in: "- GPU: 2x A100 80GB", "**Driver version**: 535.104.05", "### GPU".

Only labels of a closed list count, and only values that can mean one thing: "535 or later",
"3.8, 3.9" and a GPU that is no product tell nothing. A plain "CUDA: 12.2" is left alone too,
for it may be what the driver supports, the toolkit, or what the framework was built for.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from envaudit.importers import Draft, Imported, Section
from envaudit.importers.gpu_words import gpu_names
from envaudit.importers.os_words import read_os
from envaudit.importers.reading import (
    cuda_version,
    cudnn_version,
    is_driver,
    numbered,
    package_name,
    release,
)
from envaudit.patterns import regex

_START = regex(
    r"[ \t>]{0,8}(?:(?:[-*•+]|[0-9]{1,2}[.)]|#{1,6}|\|)[ \t]{1,4})?"
    r"(?:\[[ xX]?\][ \t]{1,4})?"
)
_LINE = regex(
    r"([^:：=|\n]{2,120}?)[ \t`*_]{0,6}(?:[:：|]|[ \t]=)[ \t`*_]{0,12}"
    r"([^\n]{0,300}?)[ \t`*_|]{0,8}\Z"
)
_CODE_LABEL = regex(
    r"(.{0,40}?)\(?`{1,3}([^`\n]{4,160})`{1,3}\)?[ \t*_]{0,4}(?::|=)[ \t`*]{0,6}"
    r"([^\n]{1,200}?)[ \t`*]{0,6}\Z"
)
_ASIDE = regex(r"\([^()\n]{0,120}\)|\bif applicable\b|\?")
_WORDS = regex(r"[ \t`*_\"'#]+")


def _labels(text: str) -> frozenset[str]:
    return frozenset(" ".join(label.split()) for label in text.split("|"))


_GPU = _labels("""
    gpu|gpus|gpu model|gpu models|gpu type|gpu name|gpu info|gpu card|gpu device|gpu devices|
    gpu used|gpu model and memory|gpu models and configuration|graphics card|graphic card|
    graphics|video card|card|my card|nvidia gpu|your gpu|my gpu|gpu hardware|cuda gpu|
    gpu accelerator|显卡|显卡型号|gpu型号|gpu 型号|グラボ|グラフィックボード|grafikkarte|
    carte graphique|placa de vídeo|tarjeta gráfica|scheda video|видеокарта|그래픽카드
""")
_GPU_NUMBER = regex(r"gpu ?#?([0-9]{1,2})\Z")
_DRIVER = _labels("""
    driver|driver version|nvidia driver|nvidia driver version|nvidia drivers|gpu driver|
    gpu driver version|nvidia gpu driver|nvidia gpu driver version|nvidia driver info|
    cuda driver|cuda driver version|nvidia-driver|graphics driver|graphics driver version|
    驱动|驱动版本|显卡驱动|显卡驱动版本|treiberversion|grafiktreiber|nvidia-treiber|ドライバ|ドライバー|драйвер
""")
_PYTHON = _labels("python|python version|python3|python3 version|version of python")
_OS = _labels("""
    操作系统|系统|系统版本|betriebssystem|système d'exploitation|sistema operativo|
    sistema operacional|операционная система|os|operating system|
    os platform and distribution|os version|system|platform|distribution|
    linux distribution|linux distro|os platform|os and version|os type|host os|
    operating system and version|operating system / platform|os/platform
""")
_TORCH_CUDA = _labels("""
    torch.version.cuda|torch cuda|torch cuda version|pytorch cuda version|pytorch cuda|
    cuda version of pytorch|cuda used to build pytorch|pytorch built with cuda|
    cuda version used by pytorch|cuda version pytorch
""")
_TOOLKIT = _labels("""
    nvcc|nvcc version|cuda toolkit|cuda toolkit version|nvcc --version|cuda nvcc|
    cuda toolkit installed|cuda version nvcc|cudatoolkit version
""")
_FRAMEWORKS = {
    "torch": "torch.version",
    "pytorch": "torch.version",
    "torch.__version__": "torch.version",
    "tensorflow": "tensorflow.version",
    "tf": "tensorflow.version",
    "tf.__version__": "tensorflow.version",
    "jax": "jax.version",
    "jaxlib": "jaxlib.version",
    "cupy": "cupy.version",
    "onnxruntime": "onnxruntime.version",
    "onnx runtime": "onnxruntime.version",
    "ort": "onnxruntime.version",
    "paddle": "paddle.version",
    "paddlepaddle": "paddle.version",
    "nccl": "nccl.version",
    "ollama": "ollama.version",
    "gcc": "gcc.version",
    "cmake": "cmake.version",
}
_DISTRIBUTIONS = _labels("""
    torchvision|torchaudio|torchtext|transformers|accelerate|vllm|xformers|flash-attn|
    flash-attention|bitsandbytes|triton|deepspeed|numpy|numba|keras|diffusers|peft|ctranslate2|
    faster-whisper|mmcv|mmcv-full|mmdet|ultralytics|sglang|tensorrt-llm|ray|cudf|cuml|dgl|
    torch-geometric|pytorch-lightning|lightning|datasets|scipy|trl|unsloth|auto-gptq|autoawq|
    exllamav2|llama-cpp-python|onnx|optimum|timm|fairseq|apex|megatron-core|
    transformer-engine|sentence-transformers|spacy|cuda-python
""")
_RENAMED = {"flash-attention": "flash-attn"}
_SEVERAL = regex(
    r"(?:^|[\s,/])(?:or|and|also|to|later|newer|above|below|older|than|tested|both|all|any|latest)\b|"
    r"[<>~≥≤]|->|→",
    re.IGNORECASE,
)
_DRIVER_VALUE = regex(
    r"(?:nvidia[ \-]?(?:driver)?[ \-]?)?(?:version |v)?([1-9][0-9]{2}\.[0-9]{1,4}(?:\.[0-9]{1,3})?)"
    r"(?:[ ]?\(?[ ]?(?:open|nvidia|proprietary|open source|open kernel module[s]?|studio|"
    r"game ready|whql|drivers?|linux|windows|server)[ ]?\)?){0,3}\s*\Z",
    re.IGNORECASE,
)
_NUMBER = regex(r"(?<![\w.])v?[0-9]{1,4}\.[0-9]{1,4}(?:\.[0-9]{1,6})?")
_TF_DESCRIBED = regex(
    r"v?[0-9.]{3,8}(?:-rc[0-9])?-[0-9]{1,6}-g[0-9a-f]{6,14}[ ,]{1,3}([0-9][^\s,]{2,20})"
)
_NVCC_VALUE = regex(
    r"(?:cuda )?(?:release |v)?([0-9]{1,2}\.[0-9]{1,2}(?:\.[0-9]{1,4})?)(?:, V([0-9.]{5,12}))?",
    re.I,
)
_ITEM = regex(r"[ \t]*(?:/|\||;|,|·|\n)[ \t]*")
_HINTS = ("GPU", "gpu", "river", "ython", "orch", "OS", "ystem", "CUDA", "nvcc", "ensor", "raphics",
          "ersion", "atform", "显卡", "驱动", "系统", "グラ", "ドライ", "rafik", "gráfica",
          "vídeo", "reiber", "istem", "идео", "райвер", "истема", "그래픽")  # fmt: skip

Reader = Callable[[Draft, str, str, int], bool]


def recognises(section: Section) -> bool:
    """Whether the text has a word of one of the labels."""
    return any(hint in section.text for hint in _HINTS)


def parse(section: Section) -> Imported:
    """What filled-in lines say, where only one thing can be meant."""
    draft = Draft()
    heading: tuple[Reader, str, int] | None = None
    block: list[tuple[str, int]] = []
    for number, line in numbered(section.text):
        if len(line) > 400:
            heading = None
            continue
        if heading is not None:
            reader, label, at = heading
            heading = None
            if number <= at + 2 and reader(draft, _value(line), f"form: {label}", number):
                draft.read(at, number)
                continue
        if _coded(draft, line, number):
            continue
        if " is " in line or " are " in line or " was " in line:
            _said(draft, line, number)
        body = line[_START.match(line).end() :]  # type: ignore[union-attr]
        match = _LINE.match(body)
        if match is not None and match[2]:
            reader_of_label = _reader(_label(match[1]))
            if reader_of_label is not None:
                source = f"form: {_label(match[1])}"
                if reader_of_label(draft, _value(match[2]), source, number):
                    draft.read(number)
                continue
        if len(body) < 60:
            label = _label(body.rstrip(": \t*_"))
            bare = _reader(label)
            if bare is not None and _may_head(line, body):
                heading = (bare, label, number)
                continue
        items = _items(body)
        if len(items) == 1 and len(body) < 60 and _is_item(items[0]):
            block.append((items[0], number))
            continue
        _inline(draft, [(item, number) for item in items])
    _inline(draft, _next_to_another(block))
    return draft.done()


def _next_to_another(block: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """The first run of such lines one after another: a list, not a word in a text."""
    runs: list[list[tuple[str, int]]] = []
    for item, number in block:
        if runs and runs[-1][-1][1] == number - 1:
            runs[-1].append((item, number))
        else:
            runs.append([(item, number)])
    return next((run for run in runs if len(run) > 1), [])


def _may_head(line: str, body: str) -> bool:
    """Whether a label alone on its line heads the next one."""
    marked = line.lstrip().startswith(("#", "**", "__")) or body.rstrip(" *_").endswith(":")
    return marked or body[:1].isupper()


def _label(text: str) -> str:
    text = _ASIDE.sub(" ", text.lower())
    return " ".join(_WORDS.sub(" ", text).split()).strip(" :.-")


def _value(text: str) -> str:
    return text.strip(" \t`*_\"'|")


def _reader(label: str) -> Reader | None:
    if label in _GPU:
        return _read_gpu
    numbered_gpu = _GPU_NUMBER.match(label)
    if numbered_gpu is not None:
        return _one_gpu(int(numbered_gpu[1]))
    if label in _DRIVER:
        return _read_driver
    if label in _PYTHON:
        return _versions("python.version")
    if label in _OS:
        return read_os
    if label in _TORCH_CUDA:
        return _read_torch_cuda
    if label in _TOOLKIT:
        return _read_toolkit
    name = label.removesuffix(" version").removeprefix("version of ").removesuffix(" library")
    if name in _FRAMEWORKS:
        return _versions(_FRAMEWORKS[name])
    if package_name(name) in _DISTRIBUTIONS:
        name = package_name(name)
        return _versions(f"dist.{_RENAMED.get(name, name)}.version")
    return None


_OTHER_MAKERS = regex(
    r"[ ]*(?:/|,|\+|&|\band\b)[ ]*(?:Intel|AMD)\b[^/,+&\n]{0,60}\Z", re.IGNORECASE
)


_SENTENCE = regex(r"[.;?!](?=[ ]|\Z)|[ ]\(")
"""Where the first thing that is said ends and a text goes on."""
_CLAUSE = regex(r",[ ]|[ ](?:with|and|but|in|on|which|so)\b", re.IGNORECASE)
_MORE = regex(r"\b(?:rtx|gtx|tesla|quadro|titan|geforce|or|[abhlv][0-9]{2,3})\b", re.IGNORECASE)
_SAID = regex(
    r"\b(?:(?P<mine>my|our)[ ]|the[ ])?"
    r"(?P<label>[a-z][\w.+\-]{0,20}(?:[ ][\w.+\-]{1,20}){0,2}?)[ ](?:is|are|was)[ ]"
    r"(?:an?[ ]|the[ ]|currently[ ]){0,2}(?=(?P<value>[^\n]{2,90}))",
    re.IGNORECASE,
)


def _said(draft: Draft, line: str, number: int) -> None:
    """What sentences say: "My system is Windows 11. My GPU is an RTX 3080, drivers are new"."""
    for match in _SAID.finditer(line):
        label = _label(match["label"])
        reader = _reader(label)
        if reader is None or not (match["mine"] or reader is _read_gpu):
            continue
        value = _SENTENCE.split(match["value"], maxsplit=1)[0]
        if reader is not _read_gpu:
            value = _CLAUSE.split(value, maxsplit=1)[0]
        reader(draft, _value(value).rstrip(".,"), f"said of: {label}", number)


def _read_gpu(draft: Draft, value: str, source: str, line: int) -> bool:
    names = gpu_names(_OTHER_MAKERS.sub("", value))
    if not names:
        value = _SENTENCE.split(value, maxsplit=1)[0]
        names = gpu_names(_OTHER_MAKERS.sub("", value))
    if not names:
        first, *more = _CLAUSE.split(value, maxsplit=1)
        names = [] if more and _MORE.search(more[0]) else gpu_names(first)
    for index, name in enumerate(names):
        draft.add(f"gpu.{index}.name", name, source, line)
    return bool(names)


def _one_gpu(index: int) -> Reader:
    """A reader of the name of one GPU: "GPU 0: NVIDIA A10G"."""

    def read(draft: Draft, value: str, source: str, line: int) -> bool:
        names = gpu_names(value)
        if len(names) != 1:
            return False
        draft.add(f"gpu.{index}.name", names[0], source, line)
        return True

    return read


def _read_driver(draft: Draft, value: str, source: str, line: int) -> bool:
    match = _DRIVER_VALUE.match(value)
    if match is None or not is_driver(match[1]):
        return False
    draft.add("driver.version", match[1], source, line)
    return True


def _read_torch_cuda(draft: Draft, value: str, source: str, line: int) -> bool:
    if value == "None":
        draft.absent("torch.cuda.version", line)
        return True
    version = cuda_version(value)
    draft.add("torch.cuda.version", version, source, line)
    return version is not None


def _read_toolkit(draft: Draft, value: str, source: str, line: int) -> bool:
    match = _NVCC_VALUE.match(value)
    if match is None or _SEVERAL.search(value) or len(_NUMBER.findall(value)) > 2:
        return False
    draft.add("cuda.toolkit.version", (match[2] or match[1]).rstrip("."), source, line)
    return True


def _versions(fact: str) -> Reader:
    def read(draft: Draft, value: str, source: str, line: int) -> bool:
        version = _one_version(value, fact)
        draft.add(fact, version, source, line)
        return version is not None

    return read


def _one_version(value: str, fact: str) -> str | None:
    """The one version that a value names; None where it names a range or several."""
    described = _TF_DESCRIBED.match(value)
    if described is not None:  # git describe, then the release itself
        return release(described[1])
    if fact == "python.version":
        value = re.split(r"[|(\[]", value, maxsplit=1)[0].strip()
    value = re.sub(r"^(?:[A-Za-z]{2,20}[ =:]{1,3})(?=v?[0-9])", "", value)
    version = release(value)
    if version is None or _SEVERAL.search(value):
        return None
    rest = value[value.index(version) + len(version) :] if version in value else ""
    if _NUMBER.search(rest) and fact != "gcc.version" and "(" not in rest:
        return None
    return version


_EXPRESSIONS: tuple[tuple[str, Reader], ...] = (
    ("torch.version.cuda", _read_torch_cuda),
    ("nvcc", _read_toolkit),
    ("torch.__version__", _versions("torch.version")),
    ("tf.version.VERSION", _versions("tensorflow.version")),
    ("tf.__version__", _versions("tensorflow.version")),
    ("tensorflow.__version__", _versions("tensorflow.version")),
    ("jax.__version__", _versions("jax.version")),
)


def _coded(draft: Draft, line: str, number: int) -> bool:
    """A label that holds the command to be run: CUDA (`... print(torch.version.cuda)`): 11.7."""
    if "`" not in line:
        return False
    match = _CODE_LABEL.match(line)
    if match is None:
        return False
    asked = [(text, reader) for text, reader in _EXPRESSIONS if text in match[2]]
    if "cudnn.version()" in match[2]:
        version = cudnn_version(match[3])
        draft.add("cudnn.version", version, "form: torch.backends.cudnn.version()", number)
        return version is not None
    if len(asked) != 1:
        return False
    text, reader = asked[0]
    return reader(draft, _value(match[3]), f"form: {text}", number)


_INLINE: tuple[tuple[re.Pattern[str], str], ...] = (
    (regex(r"(?:py)?torch[ =]{1,2}v?([0-9]\S{2,30})\Z", re.IGNORECASE), "torch.version"),
    (
        regex(r"(?:tensorflow|tf)[ =]{1,2}v?([0-9]\S{2,30})\Z", re.IGNORECASE),
        "tensorflow.version",
    ),
    *(
        (regex(rf"{name}[ =]{{1,2}}v?([0-9][0-9A-Za-z.+]{{1,30}})\Z"), f"dist.{fact}.version")
        for name, fact in (
            ("torchvision", "torchvision"),
            ("torchaudio", "torchaudio"),
            ("onnxruntime-gpu", "onnxruntime-gpu"),
            ("triton", "triton"),
            ("vllm", "vllm"),
            ("(?:xformers|xFormers)", "xformers"),
            ("flash[-_]attn", "flash-attn"),
            ("bitsandbytes", "bitsandbytes"),
            ("deepspeed", "deepspeed"),
            ("transformers", "transformers"),
            ("numpy", "numpy"),
        )
    ),
    (regex(r"python[ =]{1,2}v?([23]\.[0-9]\S{0,10})\Z", re.IGNORECASE), "python.version"),
    (
        regex(r"(?:nvidia )?driver[ =]{1,2}v?([1-9][0-9]{2}\.[0-9.]{1,9})\Z", re.IGNORECASE),
        "driver.version",
    ),
)
_INLINE_CUDA = regex(r"(?:cuda|cudnn)[ =]{1,2}v?[0-9][0-9.]{0,9}\Z", re.IGNORECASE)
_INLINE_OS = regex(r"(?:windows|ubuntu|debian|fedora|centos|wsl2?)\b[ \w.]{0,20}\Z", re.IGNORECASE)


_LEAD = regex(
    r"(?:(?:my )?(?:environment|env|setup|pip|versions?|config(?:uration)?|specs?|system)"
    r"[ \t*]{0,3}:)",
    re.IGNORECASE,
)


def _items(body: str) -> list[str]:
    """What stands on a line between slashes, commas and the like."""
    if len(body) > 160:
        return []
    return [item.strip(" `*_.") for item in _ITEM.split(_LEAD.sub("", body))]


def _is_item(item: str) -> bool:
    """Whether a text is one thing with its version, or a system, or GPUs."""
    return bool(
        any(pattern.match(item) for pattern, _ in _INLINE)
        or _INLINE_OS.match(item)
        or _INLINE_CUDA.match(item)
        or gpu_names(item)
    )


def _inline(draft: Draft, items: list[tuple[str, int]]) -> None:
    """A line, or lines, of nothing but such items: "torch 2.0.1 / CUDA 11.8 / Windows 11"."""
    if not 2 <= len(items) <= 10:
        return
    told: list[tuple[str, str, int]] = []
    systems: list[tuple[str, int]] = []
    for item, number in items:
        found = next(
            ((fact, m[1]) for pattern, fact in _INLINE if (m := pattern.match(item))), None
        )
        if found is not None:
            told.append((*found, number))
        elif _INLINE_OS.match(item):
            systems.append((item, number))
        elif names := gpu_names(item):
            told += [(f"gpu.{index}.name", name, number) for index, name in enumerate(names)]
        elif not _INLINE_CUDA.match(item):
            return
    facts = [fact for fact, _, _ in told]
    if len(facts) != len(set(facts)) or not told:
        return
    for fact, value, number in told:
        draft.add(fact, value, "a line of versions", number)
    for system, number in systems[:1]:
        read_os(draft, system, "a line of versions", number)
