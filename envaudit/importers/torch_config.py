"""Reads what `torch.__config__.show()` prints: how a PyTorch build was compiled.

    PyTorch built with:
      - GCC 9.3
      - C++ Version: 201703
      - CUDA Runtime 11.8
      - NVCC architecture flags: -gencode;arch=compute_50,code=sm_50;-gencode;arch=compute_90,...
      - CuDNN 8.9.2  (built against CUDA 12.1)
        - Built with CuDNN 8.7
      - Magma 2.6.1
      - Build settings: BLAS_INFO=mkl, CUDA_VERSION=11.8, CUDNN_VERSION=8.7.0, ...

The lines of CUDA stand there only where torch found the driver's library; then "CUDA Runtime" and
"CuDNN" are what was loaded, and "Built with" below them what the build was made with, where that
differs. Settings tell the latter always. cuDNN's number is printed by its rule of before 9: 90.1
is 9.1.0, 92.4 is 9.24.0.
"""

from __future__ import annotations

import re

from envaudit.importers import Draft, Imported, Section, lines_of
from envaudit.patterns import regex

_LIMIT = 1 << 20

_START = regex(r"PyTorch built with:")
_SURE = regex(
    r"PyTorch built with:|NVCC architecture flags:[ \t]*-gencode|"
    r"Build settings:[ \t][^\n]{0,200}\bBUILD_TYPE="
)
_ITEM = r"^[ \t>|*]{0,40}-[ \t]+"
_RUNTIME = regex(_ITEM + r"CUDA Runtime ([0-9]{1,2}\.[0-9]{1,2})\b", re.M)
_BUILT_RUNTIME = regex(_ITEM + r"Built with CUDA Runtime ([0-9]{1,2}\.[0-9]{1,2})\b", re.M)
_CUDNN = regex(_ITEM + r"CuDNN ([0-9]{1,2}\.[0-9](?:\.[0-9]{1,2})?)(?![0-9.])", re.M)
_BUILT_CUDNN = regex(
    _ITEM + r"Built with CuDNN ([0-9]{1,2}\.[0-9](?:\.[0-9]{1,2})?)(?![0-9.])", re.M
)
_FLAGS = regex(_ITEM + r"NVCC architecture flags:(?P<flags>[^\n]{0,8000})", re.M)
_MORE_FLAGS = regex(r"\n[ \t>]{2,80}((?:-gencode;?|arch=|code=)[^\n]{0,2000})")
_FLAG = regex(
    r"arch=compute_[0-9]{2,3}[a-f]?,code=\[?((?:(?:sm|compute)_[0-9]{2,3}[a-f]?,?){1,8})\]?"
)
_SETTINGS = regex(r"Build settings:[ \t]*([^\n]{1,16000})")
_SETTING = regex(r"(?:^|, )([A-Z_]{2,40})=([^,\n]{0,4000})")
_ABI = regex(r"-D_GLIBCXX_USE_CXX11_ABI=([01])")
_READ = regex(
    _ITEM + r"(?:GCC|clang|MSVC|C\+\+ Version|Intel\(R\)|OpenMP|LAPACK|NNPACK|CPU capability|"
    r"CUDA Runtime|Built with|NVCC architecture|CuDNN|Magma|HIP Runtime|MIOpen|Build settings|"
    r"Cross compiling)[^\n]*|PyTorch built with:[^\n]*",
    re.M,
)


def recognises(section: Section) -> bool:
    """Whether the text shows how a PyTorch build was compiled."""
    return _SURE.search(section.text[:_LIMIT]) is not None


def parse(section: Section) -> Imported:
    """CUDA, cuDNN and GPU code of the build, from the first such list in the text."""
    text = section.text[:_LIMIT].replace("\r\n", "\n")
    draft = Draft()
    draft.read(*lines_of(text, (found.span() for found in _READ.finditer(text))))
    start = _START.search(text)
    second = _START.search(text, start.end()) if start else None
    if second is not None:
        text = text[: second.start()]
    settings = dict(_SETTING.findall(found[1])) if (found := _SETTINGS.search(text)) else {}
    _cuda(draft, text, settings)
    _cudnn(draft, text, settings)
    _code(draft, text)
    abi = _ABI.search(settings.get("CXX_FLAGS", ""))
    if abi is not None:
        draft.add("torch.cxx11_abi", abi[1] == "1", _source("CXX_FLAGS"), _settings_line(text))
    return draft.done()


def _source(key: str) -> str:
    return f"torch.__config__: {key}"


def _line(text: str, match: re.Match[str]) -> int:
    return text.count("\n", 0, match.start()) + 1


def _settings_line(text: str) -> int:
    return text.count("\n", 0, text.find("Build settings:")) + 1


def _cuda(draft: Draft, text: str, settings: dict[str, str]) -> None:
    loaded, built = _RUNTIME.search(text), _BUILT_RUNTIME.search(text)
    told = re.match(r"[0-9]{1,2}\.[0-9]{1,2}", settings.get("CUDA_VERSION", ""))
    if loaded is not None:
        draft.add("cuda.runtime.version", loaded[1], _source("CUDA Runtime"), _line(text, loaded))
    if told is not None:
        draft.add("torch.cuda.version", told[0], _source("CUDA_VERSION"), _settings_line(text))
    elif built is not None:
        source = _source("Built with CUDA Runtime")
        draft.add("torch.cuda.version", built[1], source, _line(text, built))
    elif loaded is not None:
        source = _source("CUDA Runtime")
        draft.add("torch.cuda.version", loaded[1], source, _line(text, loaded))
    elif settings.get("USE_CUDA", "").strip().upper() in ("0", "OFF"):
        draft.absent("torch.cuda.version")


def _cudnn(draft: Draft, text: str, settings: dict[str, str]) -> None:
    loaded, built = _CUDNN.search(text), _BUILT_CUDNN.search(text)
    told = re.match(r"[0-9]{1,2}\.[0-9]{1,2}\.[0-9]{1,2}", settings.get("CUDNN_VERSION", ""))
    if loaded is not None:
        number = cudnn_version(loaded[1])
        draft.add("cudnn.version", number, _source("CuDNN"), _line(text, loaded))
    if told is not None:
        draft.add("torch.cudnn.version", told[0], _source("CUDNN_VERSION"), _settings_line(text))
    elif built is not None:
        number = cudnn_version(built[1])
        draft.add("torch.cudnn.version", number, _source("Built with CuDNN"), _line(text, built))
    elif loaded is not None and _goes_on(text, loaded.end()):
        number = cudnn_version(loaded[1])
        draft.add("torch.cudnn.version", number, _source("CuDNN"), _line(text, loaded))


def _goes_on(text: str, end: int) -> bool:
    """Whether another item follows, so that nothing of the one that ends here was cut off."""
    return re.search(_ITEM, text[end : end + 600], re.M) is not None


def cudnn_version(printed: str) -> str:
    """cuDNN's version behind the number that torch prints of it.

    It splits the library's own number by the rule of cuDNN 8 (8902 is 8.9.2), which from 9 on is
    another (90100 is 9.1.0, printed as 90.1).
    """
    major, minor, patch = (*map(int, printed.split(".")), 0)[:3]
    number = major * 1000 + minor * 100 + patch
    if number >= 90_000:
        return f"{number // 10_000}.{number // 100 % 100}.{number % 100}"
    return f"{major}.{minor}.{patch}"


def _code(draft: Draft, text: str) -> None:
    """GPU code in the build; only of a list that is whole, since a missing entry would accuse."""
    match = _FLAGS.search(text)
    if match is None:
        return
    flags, end = match["flags"].strip(), match.end()
    while (more := _MORE_FLAGS.match(text, end)) is not None:
        flags, end = flags + more[1].strip(), more.end()
        draft.read(*lines_of(text, [(more.start() + 1, more.end())]))
    found = [code for each in _FLAG.findall(flags) for code in each.split(",") if code]
    rest = _FLAG.sub("", flags).replace("-gencode", "").strip("; \t")
    if rest or not found or not _goes_on(text, end):
        draft.gap("torch.arch_list", "the list of NVCC architecture flags is cut")
        return
    codes = list(dict.fromkeys(found))
    draft.add("torch.arch_list", [*codes], _source("NVCC architecture flags"), _line(text, match))
