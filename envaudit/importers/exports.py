"""JSON that other tools write about a machine: one document, told apart by its keys.

| tool | keys |
|---|---|
| env-doctor `export` | `env_doctor_version`, `environment` |
| env-doctor `check --json` | `summary`, `checks` (with `driver` and `libraries`) |
| RAPIDS `rapids debug --json` | `nvidia_smi_output`, `package_versions` |
| NVIDIA aicr `snapshot` | `measurements` (a list), also as YAML |
| Stable Diffusion web UI `sysinfo` | `Torch env info` |
| `pip inspect` | `pip_version`, `installed` |

What a tool computes from a table of its own (the newest CUDA of a driver) is left out: it is no
reading of the machine.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from envaudit.importers import Draft, Imported, Section, nvidia_smi_table
from envaudit.importers.os_words import read_os
from envaudit.importers.platform_words import tell_kernel, tell_platform
from envaudit.importers.reading import (
    cuda_version,
    is_dotted,
    is_driver,
    numbered,
    package_name,
    release,
)
from envaudit.model import Value
from envaudit.patterns import regex

_LIMIT = 8 << 20
_GPUS = 64
_PACKAGES = 5000

Document = Mapping[str, Any]


def kind_of(document: object) -> str:
    """Which tool wrote a parsed JSON document; empty for none of them."""
    if not isinstance(document, Mapping):
        return ""
    for name, (keys, _) in _KINDS.items():
        if all(key in document for key in keys):
            return name
    return ""


def recognises(section: Section) -> bool:
    """Whether the whole text is such a document, or an aicr snapshot as YAML."""
    text = section.text[:_LIMIT].lstrip("\ufeff \t\r\n")
    if text[:1] == "{":
        return any(f'"{keys[0]}"' in text for keys, _ in _KINDS.values())
    return "measurements:" in text and "subtype" in text


def parse(section: Section) -> Imported:
    """What the document tells."""
    draft = Draft()
    text = section.text[:_LIMIT].lstrip("\ufeff \t\r\n")
    if text[:1] == "{":
        try:
            document = json.loads(text)
        except (ValueError, RecursionError):
            return draft.done()
        name = kind_of(document)
        if name:
            _KINDS[name][1](draft, document)
            draft.read(*range(1, section.text.count("\n") + 2))
    elif recognises(section):
        _aicr_yaml(draft, section.text)
    return draft.done()


def _text(value: object) -> str:
    """A value as text; empty for what stands for nothing."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return ""
    text = str(value).strip()
    return "" if text.lower() in ("", "unknown", "n/a", "none", "not found", "not_found") else text


def _map(value: object) -> Document:
    return value if isinstance(value, Mapping) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _kernel(draft: Draft, value: str, source: str) -> None:
    if value:
        tell_kernel(draft, value, source)


# -- env-doctor ---------------------------------------------------------------------------------


def _env_doctor_export(draft: Draft, document: Document) -> None:
    environment = _map(document["environment"])
    tool = "env-doctor"
    driver = _text(environment.get("nvidia_driver"))
    draft.add("driver.version", driver if is_driver(driver) else None, f"{tool}: nvidia_driver")
    _toolkit(draft, environment.get("cuda_toolkit"), f"{tool}: cuda_toolkit")
    draft.add("python.version", release(_text(environment.get("python"))), f"{tool}: python")
    for library, found in _map(environment.get("libraries")).items():
        found = _map(found)
        _library(draft, library, found.get("version"), found.get("cuda_version"), tool)
    _env_doctor_gpus(draft, environment.get("gpus"))
    if _text(environment.get("wsl")).upper().startswith("WSL"):
        draft.add("os.wsl", True, f"{tool}: wsl")


def _env_doctor_check(draft: Draft, document: Document) -> None:
    checks, machine = _map(document["checks"]), _map(document.get("machine"))
    tool = "env-doctor"
    driver = _map(checks.get("driver"))
    version = _text(driver.get("version"))
    draft.add("driver.version", version if is_driver(version) else None, f"{tool}: driver")
    _env_doctor_gpus(draft, _map(driver.get("metadata")).get("gpus"))
    _toolkit(draft, _map(checks.get("cuda")).get("version"), f"{tool}: cuda")
    _cudnn_on_disk(draft, checks.get("cudnn"), f"{tool}: cudnn")
    for library, found in _map(checks.get("libraries")).items():
        metadata = _map(_map(found).get("metadata"))
        release_told = _map(found).get("version")
        _library(draft, library, release_told, metadata.get("cuda_version"), tool)
        codes: list[Value] = []
        codes += [code for code in _list(metadata.get("arch_list")) if isinstance(code, str)]
        if library == "torch" and codes:
            draft.add("torch.arch_list", codes, f"{tool}: torch arch_list")
    python = _text(machine.get("python_version"))
    draft.add("python.version", release(python), f"{tool}: python_version")
    if machine.get("platform") == "Linux":
        _kernel(draft, _text(machine.get("platform_release")), f"{tool}: platform_release")


def _env_doctor_gpus(draft: Draft, gpus: object) -> None:
    for index, gpu in enumerate(_list(gpus)[:_GPUS]):
        gpu = _map(gpu)
        draft.add(f"gpu.{index}.name", _text(gpu.get("name")), "env-doctor: gpus")
        capability = _text(gpu.get("compute_capability"))
        if is_dotted(capability):
            draft.add(f"gpu.{index}.compute_capability", capability, "env-doctor: gpus")


def _toolkit(draft: Draft, value: object, source: str) -> None:
    version = _text(value)
    draft.add("cuda.toolkit.version", version if is_dotted(version) else None, source)


_DECODED_WRONG = regex(r"9[0-9]\.")


def _cudnn_on_disk(draft: Draft, found: object, source: str) -> None:
    """A cuDNN that the tool found; releases that take 92400 apart as 92.4.0 tell nothing."""
    version, path = _text(_map(found).get("version")), _text(_map(found).get("path"))
    if is_dotted(version) and path and not _DECODED_WRONG.match(version):
        draft.add("cudnn.installs", [f"{path} {version} env-doctor"], source)


def _library(draft: Draft, library: str, version: object, cuda: object, tool: str) -> None:
    if library not in ("torch", "tensorflow", "jax"):
        return
    found = release(_text(version))
    if found is None:
        return
    draft.add(f"{library}.version", found, f"{tool}: {library}")
    built = cuda_version(_text(cuda))
    if library != "jax":
        draft.add(f"{library}.cuda.version", built, f"{tool}: {library} cuda_version")


# -- RAPIDS -------------------------------------------------------------------------------------


def _rapids(draft: Draft, document: Document) -> None:
    tool = "rapids debug"
    table = document["nvidia_smi_output"]
    if isinstance(table, str):
        for fact in nvidia_smi_table.parse(Section(table)).facts:
            draft.add(fact.name, fact.value, f"{tool}: {fact.source}")
    driver = _text(document.get("driver_version"))
    draft.add("driver.version", driver if is_driver(driver) else None, f"{tool}: driver_version")
    cuda = cuda_version(_text(document.get("cuda_version")))
    draft.add("driver.cuda.version", cuda, f"{tool}: cuda_version")
    tell_platform(draft, _text(document.get("platform")), f"{tool}: platform", 1)
    python = release(_text(document.get("python_version")))
    draft.add("python.version", python, f"{tool}: python_version")
    _distributions(draft, _map(document["package_versions"]).items(), f"{tool}: package_versions")
    nvcc = re.search(r"release [0-9.]{3,6}, V([0-9]{1,2}(?:\.[0-9]{1,4}){1,2})",
                     _text(_map(document.get("tools")).get("nvcc")))  # fmt: skip
    draft.add("cuda.toolkit.version", nvcc[1] if nvcc else None, f"{tool}: nvcc")
    _os_release(draft, _map(document.get("os_info")), f"{tool}: os_info")


def _distributions(draft: Draft, pairs: Any, source: str) -> None:
    told: list[Value] = []
    for name, version in list(pairs)[:_PACKAGES]:
        found = release(_text(version)) or _text(version)
        if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._\-]{0,80}", str(name)) and found[:1].isdigit():
            draft.add(f"dist.{package_name(str(name))}.version", found, source)
            told.append(f"{package_name(str(name))} {found}")
    if told:
        draft.add("dist.all", told, source)


def _os_release(draft: Draft, fields: Document, source: str) -> None:
    draft.add("os.id", _text(fields.get("ID")), source)
    draft.add("os.version", _text(fields.get("VERSION_ID")), source)
    draft.add("os.name", _text(fields.get("PRETTY_NAME")), source)


# -- aicr ---------------------------------------------------------------------------------------


def _aicr(draft: Draft, document: Document) -> None:
    for measurement in _list(document["measurements"]):
        measurement = _map(measurement)
        for part in _list(measurement.get("subtypes")):
            kind, name = _text(measurement.get("type")), _text(_map(part).get("subtype"))
            _aicr_part(draft, kind, name, _map(_map(part).get("data")))


def _aicr_part(draft: Draft, kind: str, part: str, data: Document) -> None:
    source = f"aicr snapshot: {kind} {part}"
    if (kind, part) == ("GPU", "smi"):
        driver, cuda = _text(data.get("driver")), cuda_version(_text(data.get("cuda-version")))
        draft.add("driver.version", driver if is_driver(driver) else None, source)
        draft.add("driver.cuda.version", cuda, source)
        count = _text(data.get("gpu-count"))
        if count.isdigit() and len(count) < 4:
            draft.add("gpu.count", int(count), source)
        model = _text(data.get("gpu.model") or data.get("model"))
        draft.add("gpu.0.name", model, source)
        draft.add(
            "driver.gsp.version", release(_text(data.get("gpu.gsp-firmware-version"))), source
        )
        draft.add("gpu.0.vbios.version", _text(data.get("gpu.vbios-version")), source)
    elif (kind, part) == ("OS", "release"):
        _os_release(draft, data, source)
    elif (kind, part) == ("OS", "kmod"):
        for module in ("nvidia", "nvidia_uvm", "nvidia_peermem", "nouveau"):
            draft.add(f"kernel.module.{module}.loaded", module in data, source)
        draft.add("driver.module.loaded", "nvidia" in data, source)
    elif (kind, part) == ("OS", "sysctl"):
        _kernel(draft, _text(data.get("/proc/sys/kernel/osrelease")), source)
    elif kind == "K8s" and part == "node":
        _kernel(draft, _text(data.get("kernel-version")), source)
        read_os(draft, _text(data.get("os-image")), source, 1)


_YAML_ITEM = regex(r"[ \t]{0,12}-[ \t]+(type|subtype): [\"']?([\w.\-]{1,60})[\"']?\s*\Z")
_YAML_VALUE = regex(r"[ \t]{2,40}([\w./\-]{1,120}): [\"']?([^\"'\n]{0,300})[\"']?\s*\Z")


def _aicr_yaml(draft: Draft, text: str) -> None:
    """The one shape that aicr writes: types, subtypes, and flat values below `data`."""
    kind, part = "", ""
    values: dict[str, str] = {}
    lines: set[int] = set()

    def close() -> None:
        nonlocal values
        if kind and part:
            _aicr_part(draft, kind, part, values)
        values = {}

    for number, line in numbered(text):
        item, value = _YAML_ITEM.match(line), _YAML_VALUE.match(line)
        if item is not None:
            close()
            kind, part = (item[2], "") if item[1] == "type" else (kind, item[2])
            lines.add(number)
        elif value is not None and kind:
            if value[1] == "subtype":
                part = value[2]
            elif len(values) < _PACKAGES:
                values[value[1]] = value[2]
            lines.add(number)
    close()
    draft.read(*lines)


# -- Stable Diffusion web UI, pip ---------------------------------------------------------------


def _sysinfo(draft: Draft, document: Document) -> None:
    tool = "sysinfo"
    torch = _map(document["Torch env info"])
    read_os(draft, _text(torch.get("os") or document.get("Platform")), f"{tool}: os", 1)
    tell_platform(draft, _text(torch.get("python_platform")), f"{tool}: python_platform", 1)
    draft.add("python.version", release(_text(document.get("Python"))), f"{tool}: Python")
    draft.add("torch.version", release(_text(torch.get("torch_version"))), f"{tool}: torch_version")
    built = torch.get("cuda_compiled_version")
    draft.add("torch.cuda.version", cuda_version(_text(built)), f"{tool}: cuda_compiled_version")
    if built == "None":
        draft.absent("torch.cuda.version")
    driver = _text(torch.get("nvidia_driver_version"))
    draft.add("driver.version", driver if is_driver(driver) else None, f"{tool}: driver")
    for line in _text(torch.get("nvidia_gpu_models")).splitlines()[:_GPUS]:
        gpu = re.match(r"GPU ([0-9]{1,3}): (.{2,80})\Z", line.strip())
        if gpu is not None:
            draft.add(f"gpu.{gpu[1]}.name", gpu[2], f"{tool}: nvidia_gpu_models")
    if torch.get("is_cuda_available") in ("True", "False"):
        available = torch["is_cuda_available"] == "True"
        draft.add("torch.cuda.available", available, f"{tool}: is_cuda_available")
    packages = document.get("Packages")
    if isinstance(packages, list):
        pairs = [str(entry).partition("==")[::2] for entry in packages]
        _distributions(draft, pairs, f"{tool}: Packages")


def _pip_inspect(draft: Draft, document: Document) -> None:
    pairs = []
    for entry in _list(document["installed"]):
        metadata = _map(_map(entry).get("metadata"))
        pairs.append((metadata.get("name"), metadata.get("version")))
    _distributions(draft, pairs, "pip inspect")
    environment = _map(document.get("environment"))
    python = release(_text(environment.get("python_full_version")))
    draft.add("python.version", python, "pip inspect: python_full_version")
    draft.add("os.arch", _text(environment.get("platform_machine")), "pip inspect")
    if environment.get("platform_system") == "Linux":
        _kernel(draft, _text(environment.get("platform_release")), "pip inspect")


_KINDS: dict[str, tuple[tuple[str, ...], Callable[[Draft, Document], None]]] = {
    "env-doctor export": (("env_doctor_version", "environment"), _env_doctor_export),
    "env-doctor check": (("checks", "summary"), _env_doctor_check),
    "rapids debug": (("nvidia_smi_output", "package_versions"), _rapids),
    "aicr snapshot": (("measurements",), _aicr),
    "web UI sysinfo": (("Torch env info",), _sysinfo),
    "pip inspect": (("installed", "pip_version"), _pip_inspect),
}


def documents() -> Iterator[tuple[str, tuple[str, ...]]]:
    """Every tool with the keys by which its document is told."""
    for name, (keys, _) in _KINDS.items():
        yield name, keys
