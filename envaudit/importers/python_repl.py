"""Expressions that people type at a Python prompt, or print, and what comes back.

    >>> torch.__version__, torch.version.cuda
    ('2.1.0+cu121', '12.1')
    $ python -c "import torch; print(torch.__version__, torch.cuda.is_available())"
    2.2.0+cu118 False
    torch.cuda.get_device_capability(0): (8, 6)
    julia> cuDNN.version()
    v"9.24.0"

The prompt's command is the section's; a line may hold an expression and its value as well.
Only expressions of a closed list count, and only values of the form that each of them has.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from envaudit.importers import Draft, Imported, Section
from envaudit.importers.jax_info import can_use_a_gpu
from envaudit.importers.ort_log import tell_providers
from envaudit.importers.platform_words import tell_kernel, tell_platform
from envaudit.importers.reading import (
    cuda_version,
    cudnn_version,
    dotted,
    nccl_version,
    numbered,
    package_name,
    release,
)
from envaudit.importers.tensorflow_log import read_build_info
from envaudit.model import Value
from envaudit.patterns import regex

Reader = Callable[[Draft, str, str, int], bool]
"""Takes a value as Python shows it and where it stands; False where it is of another form."""

_COMMAND_LIMIT = 4000


def _unquoted(text: str) -> str:
    return text.strip().strip("'\"`")


def _version(fact: str, decode: Callable[[str], str | None]) -> Reader:
    def read(draft: Draft, value: str, source: str, line: int) -> bool:
        value = _unquoted(value)
        if value == "None":
            draft.absent(fact, line)
            return True
        found = decode(value)
        draft.add(fact, found, source, line)
        return found is not None

    return read


def _flag(fact: str) -> Reader:
    def read(draft: Draft, value: str, source: str, line: int) -> bool:
        value = _unquoted(value)
        if value not in ("True", "False", "1", "0"):
            return False
        draft.add(fact, value in ("True", "1"), source, line)
        return True

    return read


_STRING = regex(r"['\"]?([A-Za-z][^'\"\n()\[\]=<>]{2,80})['\"]?\s*\Z")
_CODE = regex(r"(?:sm|compute)_[0-9]{2,3}[af]?(?![\w])")
_PROPERTIES = regex(
    r"_?CudaDeviceProperties\(name='([^'\n]{1,80})'(?:, major=([0-9]{1,2}), minor=([0-9]))?"
)
_TF_GPU = regex(r"device_type=['\"]GPU['\"]|/device:GPU:|physical_device:GPU")
_TF_DEVICES = regex(r"\[(?:\]|(?:Physical|Logical)Device\()")
_WORD = regex(r"\w{2,12}\Z")


def _name(index: str) -> Reader:
    def read(draft: Draft, value: str, source: str, line: int) -> bool:
        match = _STRING.match(value.strip())
        if match is None or "rror" in value or match[1] in ("None", "True", "False"):
            return False
        draft.add(f"gpu.{index}.name", match[1].strip(), source, line)
        return True

    return read


def _capability(index: str) -> Reader:
    def read(draft: Draft, value: str, source: str, line: int) -> bool:
        found = dotted(value)
        if found is None or found.count(".") != 1:
            return False
        draft.add(f"gpu.{index}.compute_capability", found, source, line)
        return True

    return read


def _properties(index: str) -> Reader:
    def read(draft: Draft, value: str, source: str, line: int) -> bool:
        match = _PROPERTIES.search(value)
        if match is None:
            return False
        draft.add(f"gpu.{index}.name", match[1], source, line)
        if match[2]:
            draft.add(f"gpu.{index}.compute_capability", f"{match[2]}.{match[3]}", source, line)
        return True

    return read


def _codes(draft: Draft, value: str, source: str, line: int) -> bool:
    if not value.lstrip().startswith("["):
        return False
    codes: list[Value] = []
    codes += _CODE.findall(value)
    if codes:
        draft.add("torch.arch_list", codes, source, line)
    return bool(codes)


def _tf_devices(draft: Draft, value: str, source: str, line: int) -> bool:
    if not _TF_DEVICES.match(value.strip()):
        return False
    draft.add("tensorflow.available", bool(_TF_GPU.search(value)), source, line)
    return True


def _tf_built_with_cuda(draft: Draft, value: str, source: str, line: int) -> bool:
    if _unquoted(value) == "False":
        draft.absent("tensorflow.cuda.version", line)
    return _unquoted(value) in ("True", "False")


def _jax_devices(draft: Draft, value: str, source: str, line: int) -> bool:
    available = can_use_a_gpu(value)
    draft.add("jax.available", available, source, line)
    return available is not None


def _jax_backend(draft: Draft, value: str, source: str, line: int) -> bool:
    value = _unquoted(value)
    if value not in ("gpu", "cuda", "cpu", "rocm", "tpu"):
        return False
    draft.add("jax.available", value in ("gpu", "cuda", "rocm"), source, line)
    return True


def _tf_build(draft: Draft, value: str, source: str, line: int) -> bool:
    return read_build_info(draft, value, line)


def _providers(draft: Draft, value: str, source: str, line: int) -> bool:
    return value.lstrip().startswith("[") and tell_providers(draft, value, line)


def _platform(draft: Draft, value: str, source: str, line: int) -> bool:
    return tell_platform(draft, value, source, line)


def _kernel(draft: Draft, value: str, source: str, line: int) -> bool:
    value = _unquoted(value)
    if not re.match(r"[0-9]{1,2}\.[0-9]{1,3}[\w.+\-]{0,80}\Z", value):
        return False
    tell_kernel(draft, value, source, line)
    return True


def _environment(name: str) -> Reader:
    def read(draft: Draft, value: str, source: str, line: int) -> bool:
        shown = value.strip()[:1] in ("'", '"')
        value = _unquoted(value)
        if value == "None":
            draft.absent(f"env.{name}", line)
        elif shown or not re.search(r"\s|Error", value):
            draft.add(f"env.{name}", value, source, line)
        return True

    return read


_RELEASE_OF = {
    "torch": "torch.version",
    "tf": "tensorflow.version",
    "tensorflow": "tensorflow.version",
    "jax": "jax.version",
    "jaxlib": "jaxlib.version",
    "cupy": "cupy.version",
    "cp": "cupy.version",
    "onnxruntime": "onnxruntime.version",
    "ort": "onnxruntime.version",
    "rt": "onnxruntime.version",
    "paddle": "paddle.version",
    "np": "dist.numpy.version",
    "bnb": "dist.bitsandbytes.version",
    "pl": "dist.pytorch-lightning.version",
    "trt": "tensorrt.version",
    "tensorrt": "tensorrt.version",
}
_DISTRIBUTIONS = frozenset(
    {
        "accelerate", "apex", "bitsandbytes", "ctranslate2", "cudf", "cuml", "datasets",
        "deepspeed", "dgl", "diffusers", "faster_whisper", "flash_attn", "keras", "lightning",
        "mmcv", "mmdet", "numba", "numpy", "onnx", "optimum", "peft", "pytorch_lightning", "ray",
        "scipy", "sglang", "tensorrt_llm", "timm", "torch_geometric", "torchaudio", "torchvision",
        "transformer_engine", "transformers", "triton", "trl", "ultralytics", "unsloth", "vllm",
        "xformers",
    }
)  # fmt: skip
_FIXED: dict[str, Reader] = {
    "torch.version.cuda": _version("torch.cuda.version", cuda_version),
    "torch.version.hip": _version("torch.hip.version", release),
    "torch.version.__version__": _version("torch.version", release),
    "torch.cuda.is_available()": _flag("torch.cuda.available"),
    "torch.cuda.get_arch_list()": _codes,
    "torch.backends.cudnn.version()": _version("cudnn.version", cudnn_version),
    "torch.cuda.nccl.version()": _version("nccl.version", nccl_version),
    "torch._C._GLIBCXX_USE_CXX11_ABI": _flag("torch.cxx11_abi"),
    "torch.compiled_with_cxx11_abi()": _flag("torch.cxx11_abi"),
    "torch._C._cuda_getDriverVersion()": _version("driver.cuda.version", cuda_version),
    "torch._C._cuda_getCompiledVersion()": _version("torch.cuda.version", cuda_version),
    "tf.version.VERSION": _version("tensorflow.version", release),
    "tensorflow.version.VERSION": _version("tensorflow.version", release),
    "tf.test.is_gpu_available()": _flag("tensorflow.available"),
    "tf.test.is_built_with_cuda()": _tf_built_with_cuda,
    "tf.sysconfig.get_build_info()": _tf_build,
    "jax.devices()": _jax_devices,
    "jax.local_devices()": _jax_devices,
    "jax.default_backend()": _jax_backend,
    "jax.lib.xla_bridge.get_backend().platform": _jax_backend,
    "xla_bridge.get_backend().platform": _jax_backend,
    "onnxruntime.get_available_providers()": _providers,
    "ort.get_available_providers()": _providers,
    "cupy.cuda.runtime.driverGetVersion()": _version("driver.cuda.version", cuda_version),
    "cupy.cuda.runtime.runtimeGetVersion()": _version("cuda.runtime.version", cuda_version),
    "sys.version": _version("python.version", release),
    "platform.python_version()": _version("python.version", release),
    "platform.platform()": _platform,
    "platform.release()": _kernel,
    "cuDNN.version()": _version("cudnn.version", lambda text: dotted(text.lstrip('v"'))),
    "CUDNN.version()": _version("cudnn.version", lambda text: dotted(text.lstrip('v"'))),
    "CUDA.driver_version()": _version(
        "driver.cuda.version", lambda text: _two_parts(text.lstrip('v"'))
    ),
    "CUDA.runtime_version()": _version(
        "cuda.runtime.version", lambda text: _two_parts(text.lstrip('v"'))
    ),
}
_INDEXED = regex(
    r"torch\.cuda\.(get_device_name|get_device_capability|get_device_properties)\("
    r"(?:device=)?(?:torch\.device\()?['\"]?(?:cuda:?)?([0-9]{0,2})['\"]?\)?\)\Z"
)
_CURRENT = regex(
    r"torch\.cuda\.(get_device_name|get_device_capability|get_device_properties)\("
    r"(?:device=)?(?:torch\.cuda\.current_device\(\)|device|None)\)\Z"
)
_TF_LIST = regex(
    r"(?:tf|tensorflow)\.config(?:\.experimental)?\.list_(?:physical|logical)_devices\("
    r"(?:(?:device_type=)?['\"]GPU['\"])?\)\Z"
)
_RELEASE = regex(r"([A-Za-z_]\w{0,40})\.__version__\Z")
_VARIABLE = regex(
    r"os\.(?:environ\[|environ\.get\(|getenv\()['\"](LD_LIBRARY_PATH|CUDA_\w{1,40}|NVIDIA_\w{1,40}|"
    r"NCCL_\w{1,40}|TORCH_\w{1,40}|PYTORCH_\w{1,40}|XLA_\w{1,40}|TF_\w{1,40}|JAX_\w{1,40})['\"]"
    r"(?:, ?[^()\n]{0,30})?[\])]\Z"
)
_BY_INDEX: dict[str, Callable[[str], Reader]] = {
    "get_device_name": _name,
    "get_device_capability": _capability,
    "get_device_properties": _properties,
}


def _two_parts(text: str) -> str | None:
    version = dotted(text.strip('"'))
    return ".".join(version.split(".")[:2]) if version else None


def _reader(expression: str) -> Reader | None:
    """What reads the value of an expression; None for one that is not known."""
    expression = expression.strip().rstrip(";").strip()
    fixed = _FIXED.get(expression)
    if fixed is not None:
        return fixed
    if len(expression) > 120:
        return None
    indexed, current = _INDEXED.match(expression), _CURRENT.match(expression)
    if indexed is not None:
        return _BY_INDEX[indexed[1]](indexed[2] or "0")
    if current is not None:
        return _BY_INDEX[current[1]]("0")
    if _TF_LIST.match(expression):
        return _tf_devices
    named, variable = _RELEASE.match(expression), _VARIABLE.match(expression)
    if named is not None:
        fact = _RELEASE_OF.get(named[1])
        if fact is None and named[1] in _DISTRIBUTIONS:
            fact = f"dist.{package_name(named[1])}.version"
        return _version(fact, release) if fact else None
    return _environment(variable[1]) if variable is not None else None


# -- commands -----------------------------------------------------------------------------------


class _Print(NamedTuple):
    """What one statement prints: its parts in order, and whether they stand on one line."""

    parts: tuple[str, ...]
    shown: bool
    """Shown by the prompt itself, so strings have quotes and several values are a tuple."""


_DASH_C = regex(
    r"(?:^|[\s;&|/])(?:python|ipython|py)[0-9.]{0,5}(?:\.exe)?"
    r"(?:[ ]+-[A-Zabd-z][^\s]{0,20}(?:[ ]+[a-z:]{2,20})?){0,6}[ ]+-c[ ]*"
    r"(\"(?:[^\"\\]|\\.){0,3000}\"|'(?:[^'\\]|\\.){0,3000}')"
)


def _statements(code: str) -> list[str]:
    """Statements of a line of code, cut at semicolons and line ends outside of strings."""
    found, start, quote, depth = [], 0, "", 0
    for at, letter in enumerate(code):
        if quote:
            quote = "" if letter == quote and code[at - 1] != "\\" else quote
        elif letter in "'\"":
            quote = letter
        elif letter in "([{":
            depth += 1
        elif letter in ")]}":
            depth -= 1
        elif letter in ";\n" and depth <= 0:
            found.append(code[start:at].strip())
            start = at + 1
    found.append(code[start:].strip())
    return [statement for statement in found if statement]


def _arguments(text: str) -> list[str]:
    """Arguments of a call, cut at commas outside of brackets and strings."""
    found, start, quote, depth = [], 0, "", 0
    for at, letter in enumerate(text):
        if quote:
            quote = "" if letter == quote and text[at - 1] != "\\" else quote
        elif letter in "'\"":
            quote = letter
        elif letter in "([{":
            depth += 1
        elif letter in ")]}":
            depth -= 1
        elif letter == "," and not depth:
            found.append(text[start:at].strip())
            start = at + 1
    found.append(text[start:].strip())
    return [part for part in found if part]


_F_STRING = regex(r"f(['\"])([^\n]{0,400})\1\Z")
_FIELD = regex(r"\{([^{}\n]{1,120})\}")


def _fields(part: str) -> list[str]:
    """The texts and expressions of an f-string in order; any other part as it is."""
    match = _F_STRING.match(part)
    if match is None:
        return [part]
    quote = "'" if match[1] == '"' else '"'
    found = []
    for index, piece in enumerate(_FIELD.split(match[2])):
        if index % 2:
            found.append(piece.strip().rstrip("= "))
        elif piece.strip() and quote not in piece:
            found.append(f"{quote}{piece.strip()}{quote}")
    return found


def _printed(command: str) -> list[_Print]:
    """What a command prints, statement by statement; of a prompt the last one is shown."""
    command = command[:_COMMAND_LIMIT]
    at_prompt = True
    dash = _DASH_C.search(command)
    if dash is not None:
        command, at_prompt = dash[1][1:-1].replace('\\"', '"'), False
    found = []
    statements = _statements(command)
    for statement in statements:
        if statement.startswith("print(") and statement.endswith(")"):
            arguments = _arguments(statement[6:-1])
            parts = [part for part in arguments if not re.match(r"\w+ ?=[^=]", part)]
            found.append(_Print(tuple(each for part in parts for each in _fields(part)), False))
        elif statement.startswith("print "):  # Python 2, and what people mistype
            found.append(_Print(tuple(_arguments(statement[6:])), False))
        elif at_prompt and statement == statements[-1]:
            bracketed = statement.startswith("(") and statement.endswith(")")
            inner = statement[1:-1] if bracketed else statement
            found.append(_Print(tuple(_arguments(inner)), True))
    return found


# -- outputs ------------------------------------------------------------------------------------

_OUT = regex(r"[ \t]*(?:Out\[[0-9]{1,4}\]: ?)?")
_NOISE = regex(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9:]{8}|[IWEF][0-9]{4} |WARNING|\s*warnings\.warn|"
    r".*Warning: |\s*return |To enable the following|.*oneDNN|.*tensorflow/|.*external/"
)


def recognises(section: Section) -> bool:
    """Whether an expression of the list may stand in the command or in the text."""
    return any(
        hint in text
        for text in (section.command, section.text)
        for hint in ("torch", "__version__", "tf.", "jax.", "sys.", "platform.", "ersion()",
                     "ython", "os.environ", "providers()")
    )  # fmt: skip


def parse(section: Section) -> Imported:
    """What the expressions of the command, and of lines that hold one, gave."""
    draft = Draft()
    lines = list(numbered(section.text))
    if section.command:
        _outputs(draft, section.command, lines)
    for number, line in lines:
        _labelled(draft, line, number)
    _alone(draft, lines)
    return draft.done()


_ALONE = regex(
    r"[ \t]{0,8}(?:print\()?((?:torch|tf|tensorflow|jax|jaxlib)\.[A-Za-z_][\w.]{1,60}"
    r"(?:\([^()\n]{0,40}\))?)\)?[ \t]*\Z"
)


_BETWEEN = regex(
    r"[ \t]*(?:\[?(?:out|output|outputs|result|results)\b[^\n]{0,12})?[ \t]*\Z", re.IGNORECASE
)


def _alone(draft: Draft, lines: list[tuple[int, str]]) -> None:
    """Expressions that are all of their lines, pasted without a prompt, and the values below.

    torch.__version__                   print(torch.__version__)
    '2.4.0'                             print(torch.cuda.is_available())
                                        [Out]:
                                        2.4.0+cpu
                                        False
    """
    asked: list[tuple[int, str]] = []
    for number, line in lines:
        match = _ALONE.match(line)
        if match is not None:
            asked.append((number, match[1]))
        elif asked and number - asked[-1][0] < 4 and _BETWEEN.match(line):
            continue
        elif asked:
            before, expression = asked.pop(0)
            reader = _reader(expression)
            if reader is None or not reader(draft, line.strip(), expression, number):
                asked.clear()
            else:
                draft.read(before)
                asked = [(number, each) for _, each in asked]


def _outputs(draft: Draft, command: str, lines: list[tuple[int, str]]) -> None:
    wanted = [
        each
        for each in _printed(command)
        if any(_reader(part) or not _literal(part) for part in each.parts)
    ]
    values: Iterator[tuple[int, str]] = iter(
        (number, line) for number, line in _joined(lines) if not _NOISE.match(line)
    )
    for each in wanted:
        taken = next(values, None)
        if taken is None or taken[1].startswith("Traceback"):
            return
        number, line = taken
        line = line[_OUT.match(line).end() :]  # type: ignore[union-attr]
        for part, value in zip(each.parts, _values(each, line), strict=False):
            reader = _reader(part)
            if reader is not None and value.strip():
                reader(draft, value.strip(), part, number)


def _joined(lines: list[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Lines, where one that ends within brackets goes on in the next ones."""
    held, first, depth = "", 0, 0
    for number, line in lines:
        if not held:
            first = number
        held = f"{held} {line.strip()}" if held else line
        depth = sum(held.count(letter) for letter in "([{") - sum(
            held.count(letter) for letter in ")]}"
        )
        if depth <= 0 or len(held) > 4000 or held.lstrip()[:1] not in "([{_O":
            yield first, held
            held = ""
    if held:
        yield first, held


def _literal(part: str) -> str | None:
    """The text of a string literal without anything to fill in; None for anything else."""
    match = re.match(r"[rbu]?(['\"])(.*)\1\Z", part, re.DOTALL)
    return match[2] if match is not None and match[1] not in match[2] else None


def _values(each: _Print, line: str) -> list[str]:
    """A line's values, one for each part that was printed; shorter where they do not match."""
    if len(each.parts) == 1:
        return [line]
    if each.shown:
        inner = line.strip()
        return _arguments(inner[1:-1]) if inner[:1] == "(" and inner[-1:] == ")" else []
    values: list[str] = []
    rest = line.strip()
    for index, part in enumerate(each.parts):
        text = _literal(part)
        if text is not None:
            text = text.strip()
            if not rest.startswith(text):
                return values
            rest, value = rest[len(text) :].lstrip(), text
        elif index == len(each.parts) - 1:
            value = rest
        else:
            follows = _literal(each.parts[index + 1])
            if follows is not None and follows.strip() and follows.strip() in rest:
                value, _, behind = rest.partition(follows.strip())
                rest = follows.strip() + behind
            else:
                value, rest = _one(rest)
        values.append(value)
    return values


def _one(text: str) -> tuple[str, str]:
    """The first value of a line, bracketed or up to a blank, and what follows."""
    if text[:1] in ("(", "["):
        close = text.find(")" if text[0] == "(" else "]")
        if close > 0:
            return text[: close + 1], text[close + 1 :].lstrip()
    value, _, rest = text.partition(" ")
    return value, rest.lstrip()


_LABELLED = regex(
    r"[ \t>*\-•]{0,8}`?"
    r"((?:torch|tf|tensorflow|jax|jaxlib|cupy|np|numpy|sys|platform|os|onnxruntime|ort)"
    r"\.[A-Za-z_][\w.]{1,60}(?:\([^()\n]{0,40}\)|\[[^\[\]\n]{1,40}\])?)`?"
    r"[ \t]{0,4}(?:is|returns|->|=>|==|=|:)[ \t`]{0,4}([^\n]{1,600}?)[ \t`]{0,4}\Z"
)


_VERSION_ALONE = regex(r"[ \t]{0,4}Python ([23]\.[0-9]{1,2}\.[0-9]{1,3}(?:rc[0-9]|\+)?)\s*\Z")


def _labelled(draft: Draft, line: str, number: int) -> None:
    """A line that holds an expression and its value: torch.cuda.is_available(): False."""
    alone = _VERSION_ALONE.match(line)
    if alone is not None:
        draft.add("python.version", alone[1], "python --version", number)
    match = _LABELLED.match(line)
    if match is None:
        return
    reader = _reader(match[1])
    if reader is not None:
        reader(draft, match[2], match[1], number)
