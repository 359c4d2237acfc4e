"""`CUDA.versioninfo()` of Julia, of any release.

    CUDA runtime 12.1, artifact installation          CUDA toolkit 11.4.1, artifact installation
    CUDA driver 12.2                                  CUDA toolchain:
    NVIDIA driver 535.104.5                           - runtime 12.9, artifact installation
    - CUDNN: 8.20.2 (for CUDA 11.4.0)                 - driver 575.57.8 for 12.9
      0: NVIDIA GeForce RTX 3080 (sm_86, 8.907 GiB / 10.000 GiB available)

Julia prints releases as numbers too, so 535.104.05 loses a nought.
"""

from __future__ import annotations

from envaudit.importers import Draft, Imported, Section
from envaudit.importers.reading import driver_release, is_dotted, numbered
from envaudit.patterns import regex

_RUNTIME = regex(
    r"[ \t]{0,8}(?:- runtime|CUDA (?:runtime|toolkit)) v?([0-9]{1,2}(?:\.[0-9]{1,4}){1,2}),"
)
_CUDA = regex(r"[ \t]{0,8}CUDA driver v?([0-9]{1,2}\.[0-9]{1,2})(?:\.0)?\s*\Z")
_DRIVER = regex(r"[ \t]{0,8}NVIDIA driver ([0-9]{3}(?:\.[0-9]{1,4}){1,2})")
_BOTH = regex(r"[ \t]{0,8}- driver ([0-9]{3}(?:\.[0-9]{1,4}){1,2}) for ([0-9]{1,2}\.[0-9]{1,2})")
_JULIA = regex(r"[ \t]{0,8}- Julia: ([0-9]{1,2}(?:\.[0-9]{1,3}){1,2})")
_CUDNN = regex(r"[ \t]{0,8}- CUDNN: ([0-9]{1,2})\.([0-9]{1,2})\.([0-9]{1,2}) \(for CUDA")
_GPU = regex(r"[ \t]{1,8}([0-9]{1,2}): ([^()\n]{1,80}) \(sm_([0-9]{1,2})([0-9]), [0-9]")
_HINTS = ("CUDA runtime ", "CUDA toolkit ", "CUDA toolchain:", "NVIDIA driver ")


def recognises(section: Section) -> bool:
    """Whether the text has the first lines of such an output."""
    return any(hint in section.text for hint in _HINTS) and (
        "installation" in section.text or "Julia" in section.text
    )


def parse(section: Section) -> Imported:
    """Runtime, driver and GPUs that Julia's CUDA.jl sees."""
    draft = Draft()
    source = "CUDA.versioninfo()"
    for number, line in numbered(section.text):
        runtime, cuda, driver = _RUNTIME.match(line), _CUDA.match(line), _DRIVER.match(line)
        both, gpu, cudnn = _BOTH.match(line), _GPU.match(line), _CUDNN.match(line)
        if runtime is not None:
            draft.add("cuda.runtime.version", runtime[1], f"{source}: runtime", number)
        elif cuda is not None:
            draft.add("driver.cuda.version", cuda[1], f"{source}: CUDA driver", number)
        elif driver is not None:
            version = driver_release(driver[1])
            draft.add("driver.version", version, f"{source}: NVIDIA driver", number)
        elif both is not None:
            draft.add("driver.version", driver_release(both[1]), f"{source}: driver", number)
            draft.add("driver.cuda.version", both[2], f"{source}: driver", number)
        elif gpu is not None:
            draft.add(f"gpu.{gpu[1]}.name", gpu[2].strip(), f"{source}: devices", number)
            capability = f"{gpu[3]}.{gpu[4]}"
            draft.add(f"gpu.{gpu[1]}.compute_capability", capability, f"{source}: devices", number)
        elif cudnn is not None:
            version = _cudnn(*cudnn.groups())
            draft.add("cudnn.version", version, f"{source}: CUDNN", number)
        elif _JULIA.match(line) and is_dotted(line.split()[-1]):
            draft.read(number)
    return draft.done()


def _cudnn(major: str, minor: str, patch: str) -> str:
    """Older CUDA.jl takes 8202 apart as 8.20.2, which is 8.2.2; cuDNN 9 does have such minors."""
    if len(minor) == 2 and minor.endswith("0") and int(major) < 9:
        minor = minor[0]
    return f"{major}.{minor}.{patch}"
