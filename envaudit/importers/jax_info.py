"""`jax.print_environment_info()` of any release, and what JAX says of CUDA's libraries.

    jax:    0.4.34
    jaxlib: 0.4.34
    numpy:  2.0.0
    python: 3.12.5 | packaged by Anaconda, Inc. | (main, Sep 12 2024, 18:27:27) [GCC 11.2.0]
    jax.devices (8 total, 8 local): [CudaDevice(id=0) CudaDevice(id=1) ... CudaDevice(id=7)]
    process_count: 1
    platform: uname_result(system='Linux', ..., release='5.15.0-113-generic', ...)

Newer releases print "device info: NVIDIA GeForce RTX 4090-1, 1 local devices" in its place.
"""

from __future__ import annotations

from collections.abc import Callable

from envaudit.importers import Draft, Imported, Section
from envaudit.importers.platform_words import tell_kernel
from envaudit.importers.reading import cuda_version, cudnn_version, numbered, release
from envaudit.model import Value
from envaudit.patterns import regex

_BULLET = r"[ \t]{0,8}(?:[-*•][ \t]{1,4})?[`*_]{0,3}"
_PART = regex(
    rf"{_BULLET}(jax|jaxlib|numpy|python|Python)[`*_]{{0,3}}(?: version)?[ \t]{{0,4}}(?::|==)"
    r"[ \t]{0,16}[`*_]{0,3}v?([0-9][^\n]{0,200})\Z"
)
_DEVICES = regex(
    rf"{_BULLET}jax\.(?:local_)?devices(?:\(\))?(?: \([^()\n]{{1,60}}\))?:"
    r"[ \t]{0,8}([^\n]{1,600})"
)
_DEVICE_INFO = regex(r"[ \t]{0,8}device info: (.{1,80}?)-([0-9]{1,5}), [0-9]{1,4} local devices")
_PLATFORM = regex(
    r"[ \t]{0,8}platform: uname_result\(system='([A-Za-z]{1,20})'"
    r"(?:[^\n]{0,300}? release='([^'\n]{1,80})')?(?:[^\n]{0,300}? machine='([^'\n]{1,20})')?"
)
_GPU_DEVICE = regex(r"\b(?:Cuda|Gpu)Device\(|\bcuda\(?id=|\bgpu\(id=|\bcuda:[0-9]|\bRocmDevice\(")
_CPU_DEVICE = regex(r"\b(?:TFRT_)?(?:Cpu|CPU)(?:Device\(|_[0-9])")

_FOUND = regex(
    r"Found (CUDA|cuDNN)(?: runtime)? version ([0-9]{4,6}), but JAX was built against "
    r"(?:version )?([0-9]{4,6})"
)
_OUTDATED = regex(r"Outdated (CUDA|cuDNN) installation found")
_BUILT = regex(r"[ \t]*Version JAX was built against: ([0-9]{4,6})")
_INSTALLED = regex(r"[ \t]*Installed version: ([0-9]{4,6})")
_LISTED = regex(r"(CUDA runtime|cuDNN): Found ([0-9]{4,6}),? built(?: against)? ([0-9]{4,6})")
_TOO_NEW = regex(
    r"jaxlib(?: is)? version ([0-9][0-9A-Za-z.+]{1,40}) is newer than and incompatible with "
    r"jax version ([0-9][0-9A-Za-z.+]{1,40})"
)
_TOO_OLD = regex(r"jaxlib is version ([0-9][0-9A-Za-z.+]{1,40}), but this version of jax requires")
_PLUGIN = regex(
    r"JAX plugin (jax_[a-z0-9_]{1,30}) version ([0-9][0-9A-Za-z.+]{1,40}) is installed, but it is "
    r"not compatible with the installed jaxlib version ([0-9][0-9A-Za-z.+]{1,40})"
)
_LOWER = regex(
    r"Device ([0-9]{1,3}) has (?:CUDA )?compute capability ([0-9]{1,2}\.[0-9]) which is lower"
)
_HINTS = ("jax", "JAX")
_COMPONENTS: dict[str, tuple[str, str, Callable[[str], str | None]]] = {
    "CUDA": ("cuda.runtime.version", "jaxlib.cuda.version", cuda_version),
    "CUDA runtime": ("cuda.runtime.version", "jaxlib.cuda.version", cuda_version),
    "cuDNN": ("cudnn.version", "jaxlib.cudnn.version", cudnn_version),
}


def recognises(section: Section) -> bool:
    """Whether JAX is named in the text."""
    return any(hint in section.text for hint in _HINTS)


def parse(section: Section) -> Imported:
    """What the block of JAX's environment and JAX's own messages tell."""
    draft = Draft()
    told = {match[1] for _, line in numbered(section.text) if (match := _PART.match(line))}
    outdated, built, since = "", "", 0
    for number, line in numbered(section.text):
        if "jaxlib" in told or "jax" in told:
            _environment(draft, line, number)
        _messages(draft, line, number)
        found = _OUTDATED.search(line)
        if found is not None:
            outdated, built, since = found[1], "", number
            continue
        if not outdated or number > since + 6:
            continue
        match = _BUILT.match(line)
        if match is not None:
            built = match[1]
            draft.read(number)
        match = _INSTALLED.match(line)
        if match is not None:
            _component(draft, outdated, match[1], built, number)
            outdated = ""
    return draft.done()


def _environment(draft: Draft, line: str, number: int) -> None:
    part = _PART.match(line)
    if part is not None:
        version = release(part[2])
        name = {"numpy": "dist.numpy", "Python": "python"}.get(part[1], part[1])
        draft.add(f"{name}.version", version, f"jax.print_environment_info: {part[1]}", number)
        return
    devices = _DEVICES.match(line)
    if devices is not None:
        available = can_use_a_gpu(devices[1])
        if available is not None:
            draft.add("jax.available", available, "jax.print_environment_info: devices", number)
        draft.read(number)
        return
    info = _DEVICE_INFO.match(line)
    if info is not None:
        source = "jax.print_environment_info: device info"
        kind = info[1].strip()
        draft.add("jax.available", kind.lower() != "cpu", source, number)
        if kind.startswith(("NVIDIA", "Tesla")):
            draft.add("gpu.0.name", kind, source, number)
        return
    platform = _PLATFORM.match(line)
    if platform is not None:
        source = "jax.print_environment_info: platform"
        if platform[1] == "Linux" and platform[2]:
            tell_kernel(draft, platform[2], source, number)
        elif platform[1] in ("Windows", "Darwin"):
            name = "windows" if platform[1] == "Windows" else "macos"
            draft.add("os.id", name, source, number)
        draft.add("os.arch", platform[3], source, number)
        draft.read(number)
    elif line.lstrip().startswith("process_count: "):
        draft.read(number)


def can_use_a_gpu(devices: str) -> bool | None:
    """Whether a list of JAX devices holds a GPU; None where it cannot be told."""
    if _GPU_DEVICE.search(devices):
        return True
    return False if _CPU_DEVICE.search(devices) else None


def _messages(draft: Draft, line: str, number: int) -> None:
    for pattern in (_FOUND, _LISTED):
        for match in pattern.finditer(line):
            _component(draft, match[1], match[2], match[3], number)
    pairs: list[tuple[str, Value]] = []
    newer, older = _TOO_NEW.search(line), _TOO_OLD.search(line)
    plugin, lower = _PLUGIN.search(line), _LOWER.search(line)
    if newer is not None:
        pairs += [("jaxlib.version", newer[1]), ("jax.version", newer[2].rstrip("."))]
    if older is not None:
        pairs.append(("jaxlib.version", older[1]))
    if plugin is not None:
        name = plugin[1].replace("_", "-")
        pairs += [(f"dist.{name}.version", plugin[2]), ("jaxlib.version", plugin[3].rstrip("."))]
    if lower is not None:
        pairs.append((f"gpu.{lower[1]}.compute_capability", lower[2]))
    for fact, value in pairs:
        draft.add(fact, value, "JAX's message", number)


def _component(draft: Draft, component: str, found: str, built: str, number: int) -> None:
    here, of_the_build, decode = _COMPONENTS[component]
    draft.add(here, decode(found), f"JAX's message: installed {component}", number)
    if built:
        source = f"JAX's message: {component} that JAX was built against"
        draft.add(of_the_build, decode(built), source, number)
