"""What ONNX Runtime and CuPy say of the CUDA libraries they were built for.

    Failed to load library libonnxruntime_providers_cuda.so with error: libcublasLt.so.11: cannot
      open shared object file
    Failed to create CUDAExecutionProvider. Require cuDNN 9.* and CUDA 12.*.
    Specified provider 'CUDAExecutionProvider' is not in available provider names. Available
      providers: 'AzureExecutionProvider, CPUExecutionProvider'
    CuPy failed to load libnvrtc.so.12: OSError: ...

A library that a build asks for carries the CUDA release of the build in its name.
"""

from __future__ import annotations

from envaudit.importers import Draft, Imported, Section
from envaudit.importers.reading import numbered
from envaudit.patterns import regex

_ASKS = regex(
    r"onnxruntime_providers_(?:cuda|shared)?[^\n]{0,120}?"
    r"(?:libcublas|libcublasLt|libcudart)\.so\.([0-9]{1,2})(?:\.0)?:"
)
_REQUIRES = regex(
    r"Require cuDNN ([0-9]{1,2})\.(?:\*|[0-9x]{1,2}) and CUDA ([0-9]{1,2})\.(?:\*|[0-9x]{1,2})"
)
_AVAILABLE = regex(r"[Aa]vailable providers: ?[\['\"]{0,2}((?:[\w'\", ]{0,400})?ExecutionProvider)")
_PROVIDER = regex(r"\w+ExecutionProvider")
_CUPY = regex(r"CuPy failed to load lib(?:nvrtc|cublas|cublasLt|cudart)\.so\.([0-9]{2})(?![\w.])")
_HINTS = ("onnxruntime", "ExecutionProvider", "CuPy failed to load")
CPU_PROVIDERS = frozenset({"CPUExecutionProvider", "AzureExecutionProvider"})
"""What every build has, the one without a GPU too."""


def recognises(section: Section) -> bool:
    """Whether ONNX Runtime or CuPy speaks in the text."""
    return any(hint in section.text for hint in _HINTS)


def parse(section: Section) -> Imported:
    """What the build was made for."""
    draft = Draft()
    for number, line in numbered(section.text):
        asks, requires = _ASKS.search(line), _REQUIRES.search(line)
        available, cupy = _AVAILABLE.search(line), _CUPY.search(line)
        if asks is not None:
            source = "ONNX Runtime's message: the library it asks for"
            draft.add("onnxruntime.cuda.version", asks[1], source, number)
        if requires is not None:
            source = "ONNX Runtime's message: Require cuDNN and CUDA"
            draft.add("onnxruntime.cuda.version", requires[2], source, number)
            draft.add("onnxruntime.cudnn.version", requires[1], source, number)
        if available is not None:
            tell_providers(draft, available[1], number)
        if cupy is not None:
            source = "CuPy's message: the library it asks for"
            draft.add("cupy.cuda.version", cupy[1], source, number)
    return draft.done()


def tell_providers(draft: Draft, text: str, line: int) -> bool:
    """Tell what a list of providers says of the build; False where there is no such list."""
    found = set(_PROVIDER.findall(text))
    if not found:
        return False
    draft.read(line)
    if found <= CPU_PROVIDERS:
        draft.absent("onnxruntime.cuda.version", line)
    return True
