"""Reads what the `env` commands of Hugging Face's libraries and their kin print.

`transformers env` (transformers-cli), `accelerate env`, `diffusers-cli env`, `hf env`
(huggingface-cli), `datasets-cli env`, `trl env`, `lerobot-info`, `llamafactory-cli env`:

    - `transformers` version: 4.52.3
    - Platform: Linux-6.1.0-x86_64-with-glibc2.34
    - Python version: 3.10.16
    - Accelerate version: not installed
    - PyTorch version (GPU?): 2.6.0+cu124 (True)           torch.cuda.is_available() in parentheses
    - PyTorch version (accelerator?): 2.7.0 (CUDA)         since 2025; NA where there is none
    - Tensorflow version (GPU?): 2.15.0 (False)
    - Flax version (CPU?/GPU?/TPU?): 0.7.4 (cpu)
    - GPU type: NVIDIA A100-SXM4-80GB                      the current device
    - Accelerator: NVIDIA GeForce RTX 4090, 24564 MiB      Diffusers: nvidia-smi, one line a GPU

"not installed" can also mean a version that the library refuses as too old: it leaves open
whether the distribution is there.
"""

from __future__ import annotations

import re

from envaudit.importers import Draft, Imported, Section
from envaudit.importers.platform_words import (
    build,
    gpu_name,
    is_unknown,
    python_version,
    tell_platform,
    tell_python,
    tell_system,
    told,
    version,
)
from envaudit.patterns import regex
from envaudit.stack import normalise

_LIMIT = 1 << 20
_MAX_LINES = 20_000

_ITEM = regex(
    r"[ \t>]{0,20}(?:[\-*\u2022+][ \t]{1,4})?(?P<key>[`*_\U0001f917A-Za-z][^:\n]{0,60}?)[*`_]{0,3}"
    r"[ \t]{0,4}:[*_]{0,2}(?:[ \t]+(?P<value>.*))?\Z"
)
_SURE = regex(
    r"^[ \t>*\-\u2022+]{0,20}(?:"
    r"`(?P<named>[\w\-]{2,40})` version:|\U0001f917 Diffusers version:|"
    r"(?:PyTorch|Tensorflow) version \((?:GPU|accelerator)\?\):|Flax version \(CPU\?|"
    r"Hugging[Ff]ace[_ ][Hh]ub version:|HF Hub version:|"
    r"Using (?:GPU|distributed or parallel set-up) in script\?|Accelerate config:|"
    r"`Accelerate` (?:default config|configs?|version):|"
    r"Running in (?:iPython|notebook|Google Colab) ?\?|TRL version:|lerobot version:|"
    r"PyTorch (?:XPU|NPU|accelerator)(?: available)?:)",
    re.MULTILINE,
)
_READ = regex(
    r"[ \t>]{0,20}(?:Copy-and-paste the text below in your GitHub issue|"
    r"- Using .{1,60} in script\?|"
    r"- Accelerate config:|- `Accelerate` (?:default config|config))"
)
_MEMORY = regex(r"(?P<name>[^,\n]{2,80}),[ \t]*(?P<size>[0-9]{3,7}) MiB(?:[ \t]+VRAM)?[ \t]*\Z")

_DISTRIBUTIONS = {
    name.lower(): name
    for name in (
        *("accelerate", "bitsandbytes", "datasets", "deepspeed", "diffusers", "evaluate", "fsspec"),
        *("gradio", "hf-transfer", "huggingface-hub", "kernels", "lerobot", "liger-kernel"),
        *("llamafactory", "numpy", "openai", "optimum", "pandas", "peft", "pillow", "pyarrow"),
        *("safetensors", "sentence-transformers", "sglang", "tokenizers", "torchao", "torchaudio"),
        *("torchvision", "transformers", "trl", "unsloth", "vllm", "xformers", "flash-attn"),
        *("keras", "tensorboard", "pydantic", "aiohttp", "timm", "xet"),
    )
}
"""Distributions that these commands list, in their normal form."""
_OTHERS = {"hf-hub": "huggingface-hub", "hugging-face-hub": "huggingface-hub", "hf-xet": "hf-xet"}


def recognises(section: Section) -> bool:
    """Whether there is a line that only these commands print."""
    return _SURE.search(section.text[:_LIMIT]) is not None


def parse(section: Section) -> Imported:
    """Facts from the items with a known name; the first of a name counts."""
    draft = Draft()
    lines = section.text[:_LIMIT].replace("\r\n", "\n").split("\n")[:_MAX_LINES]
    python = next(
        (
            python_version(match["value"] or "")
            for line in lines
            if (match := _ITEM.match(line[:400])) and _words(match["key"]) == "python version"
        ),
        None,
    )
    lerobot = any("lerobot" in line[:60].lower() for line in lines)
    devices = _Devices(draft)
    for number, line in enumerate(lines, 1):
        if _READ.match(line):
            draft.read(number)
        if devices.more(line, number):
            continue
        match = _ITEM.match(line[:1000])
        if match is None:
            continue
        key, value = _words(match["key"]), told(match["value"] or "")
        if key == "accelerator":
            devices.first(value, number)
        elif _item(draft, key, value, number, python, lerobot):
            draft.read(number)
    devices.end()
    return draft.done()


def _words(key: str) -> str:
    """A name without marks of emphasis, in lower case."""
    return " ".join(re.sub(r"[`*\U0001f917]", "", key).lower().split())


def _source(key: str) -> str:
    return f"env report: {key}"


def _item(draft: Draft, key: str, value: str, line: int, python: str | None, lerobot: bool) -> bool:
    """Tell what one item says; false where its name is none of these commands'."""
    source = _source(key)
    if key == "platform":
        if not tell_platform(draft, value, source, line, python):
            tell_system(draft, value, source, line)
    elif key == "python version":
        tell_python(draft, value, source, line)
    elif key in ("pytorch version", "torch", "torch version") or key.startswith(
        "pytorch version ("
    ):
        _torch(draft, key, value, line)
    elif key == "pytorch accelerator":
        _accelerator(draft, value, source, line)
    elif key.startswith("tensorflow version (") or key == "tensorflow version":
        _with_flag(draft, "tensorflow", value, source, line)
    elif key.startswith("flax version"):
        draft.add("dist.flax.version", build(value), source, line)
        backend = re.search(r"\((cpu|gpu|cuda|tpu)\)", value, re.IGNORECASE)
        if backend is not None:
            draft.add("jax.available", backend[1].lower() in ("gpu", "cuda"), source, line)
    elif key in ("jax version", "jaxlib version"):
        name = key.partition(" ")[0]
        found = build(value)
        draft.add(f"{name}.version", found, source, line)
        draft.add(f"dist.{name}.version", found, source, line)
    elif key in ("gpu type", "gpu model", "gpu name"):
        draft.add("gpu.0.name", gpu_name(value), source, line)
    elif key in ("cuda device(s)", "accelerator(s)"):
        for index, name in enumerate(value.split(", ")[:64]):
            draft.add(f"gpu.{index}.name", gpu_name(name), source, line)
    elif key == "cuda version" and lerobot:
        draft.add("torch.cuda.version", _compiled(value), source, line)
    elif key == "is pytorch built with cuda support?" and value.lower() in ("false", "no"):
        draft.add("torch.cuda.available", False, source, line)
    elif key == "nvidia driver version":
        draft.add("driver.version", version(value), source, line)
    else:
        return _package(draft, key, value, line)
    return True


def _torch(draft: Draft, key: str, value: str, line: int) -> None:
    source = _source(key)
    found = build(value)
    if found is None:
        if is_unknown(value.partition("(")[0]):
            draft.gap("torch.version", f"the report says {value[:60]!r}")
        return
    draft.add("torch.version", found, source, line)
    draft.add("torch.import", "ok", source, line)
    flag = re.search(r"\(([A-Za-z]{2,12})\)", value)
    if flag is not None:
        _accelerator(draft, flag[1], source, line)


_AVAILABLE = {
    "true": True,
    "cuda": True,
    "gpu": True,
    "yes": True,
    "false": False,
    "cpu": False,
    "na": False,
    "n/a": False,
    "no": False,
    "none": False,
    "xpu": False,
    "npu": False,
    "hpu": False,
    "mps": False,
    "mlu": False,
    "musa": False,
}
"""What stands beside torch's version, and whether torch.cuda was available by it."""


def _accelerator(draft: Draft, word: str, source: str, line: int) -> None:
    draft.add("torch.cuda.available", _AVAILABLE.get(word.lower()), source, line)


def _with_flag(draft: Draft, name: str, value: str, source: str, line: int) -> None:
    found = build(value)
    if found is None:
        return
    draft.add(f"{name}.version", found, source, line)
    flag = re.search(r"\((True|False)\)", value)
    if flag is not None:
        draft.add(f"{name}.available", flag[1] == "True", source, line)


def _compiled(value: str) -> str | None:
    """The CUDA of a torch build, which LeRobot printed as 12080 and later as 12.8."""
    found = version(value)
    if found is None and re.fullmatch(r"[0-9]{4,5}", value):
        return f"{int(value) // 1000}.{int(value) // 10 % 100}"
    return found


def _package(draft: Draft, key: str, value: str, line: int) -> bool:
    """Tell "NAME version: VERSION", and "name: VERSION" of hf env; false for other names."""
    name, _, rest = key.partition(" ")
    if rest not in ("", "version"):
        name, _, rest = key.rpartition(" ")
        if rest != "version":
            return False
    if not re.fullmatch(r"[a-z0-9][a-z0-9 _.\-]{0,60}", name):
        return False
    name = normalise(name.replace(" ", "-")).strip("-")
    name = _OTHERS.get(name, _DISTRIBUTIONS.get(name, ""))
    if not name:
        return False
    found = build(value)
    if found is not None:
        draft.add(f"dist.{name}.version", found, _source(key), line)
    elif is_unknown(value):
        draft.gap(f"dist.{name}.version", f"the report says {value[:60]!r}")
    else:
        return False
    return True


class _Devices:
    """The list of GPUs that Diffusers took from nvidia-smi: a name and its memory a line."""

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self.count = 0
        self.open = False
        self.whole = False

    def first(self, value: str, line: int) -> None:
        self.draft.read(line)
        if self.count == 0:
            self.open = True
            self.take(value, line)

    def more(self, text: str, line: int) -> bool:
        """Take the next line of the list; false where the list is not open or has ended."""
        if not self.open or not text.strip():
            return False
        if self.take(text.strip(" \t>"), line):
            return True
        self.open, self.whole = False, self.count > 0
        return False

    def take(self, text: str, line: int) -> bool:
        match = _MEMORY.match(text)
        name = gpu_name(match["name"]) if match else None
        if match is None or name is None or self.count >= 1024:
            return False
        source = _source("Accelerator")
        self.draft.add(f"gpu.{self.count}.name", name, source, line)
        size = int(match["size"]) << 20
        self.draft.add(f"gpu.{self.count}.memory.total", size, source, line)
        self.count += 1
        return True

    def end(self) -> None:
        if self.whole:
            self.draft.add("gpu.count", self.count, _source("Accelerator"))
