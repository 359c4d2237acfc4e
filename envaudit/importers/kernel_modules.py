"""What tools say of kernel modules and of the devices they hold.

    $ dkms status
    nvidia, 470.103.01, 5.4.0-105-generic, x86_64: installed        until DKMS 2
    nvidia/535.129.03, 6.7.4-200.fc39.x86_64, x86_64: installed     since DKMS 3
    $ lsmod | grep nvidia
    nvidia              56717312  412 nvidia_uvm,nvidia_modeset
    $ lspci -nnk
    01:00.0 VGA compatible controller [0300]: NVIDIA Corporation GA102 [...] [10de:2204] (rev a1)
            Kernel driver in use: nouveau
    $ modinfo nvidia
    version:        550.120
    $ mokutil --sb-state
    SecureBoot enabled

That a module is missing from a list says something only where the list is whole, or the command
tells what was looked for.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from envaudit.addresses import pci_address
from envaudit.importers import Draft, Imported, Section
from envaudit.importers.platform_words import tell_kernel
from envaudit.importers.reading import numbered
from envaudit.model import GPUS_LIMIT, Value
from envaudit.patterns import regex

_HINTS = (
    *(
        "nvidia_",
        "nvidia.ko",
        "nvidia/",
        "nvidia,",
        "nvidia:",
        "nvidia-installer",
        "nvidia-current",
    ),
    *("nvidia-srv", "nvidia-open", "ernel module", "odule nvidia", "NVIDIA Corporation", "10de:"),
    *("NVIDIA Accelerated", "modprobe", "insmod", "akmod", "Kernel driver", "dkms", "DKMS"),
    *("SecureBoot", "ecure Boot", "ecureboot", "Used by", "nouveau", "EFI variables"),
)


def recognises(section: Section) -> bool:
    """Whether the command or a line may be of one of these tools."""
    command = section.command
    return any(hint in section.text for hint in _HINTS) or any(
        tool in command for tool in ("dkms", "lsmod", "lspci", "modinfo", "mokutil")
    )


def parse(section: Section) -> Imported:
    """Facts of DKMS, of loaded and loadable modules, of the PCI bus and of Secure Boot."""
    draft = Draft()
    lines = list(numbered(section.text))
    _dkms(draft, section, lines)
    _lsmod(draft, section, lines)
    _lspci(draft, section, lines)
    _lshw(draft, lines)
    _modinfo(draft, section, lines)
    _modprobe(draft, lines)
    _secure_boot(draft, lines)
    _installer(draft, lines)
    return draft.done()


_Lines = list[tuple[int, str]]
_KERNEL = r"[0-9][^ ,:()'\"\n]{2,100}"
_DRIVER = r"[1-9][0-9]{1,3}\.[0-9]{1,4}(?:\.[0-9]{1,3})?"


# -- DKMS ---------------------------------------------------------------------------------------

_MODULE = (
    r"nvidia(?:-?[0-9]{2,3}\w{0,10})?(?:-(?:current|open|srv|server|legacy|tesla)[\w.\-]{0,30})?"
)
_STATUS = regex(
    rf"[ \t]*(?P<module>{_MODULE})(?:/|, )(?P<version>{_DRIVER})"
    rf"(?:, (?P<kernel>{_KERNEL}))?(?:, (?P<arch>\w{{2,12}}))?: "
    r"(?P<state>added|built|installed|broken)(?![a-z])"
)
_MAKE_LOG = regex(
    rf"DKMS(?: \([^)\n]{{1,30}}\))? make\.log for (?P<module>{_MODULE})[-/](?P<version>{_DRIVER}) "
    rf"for kernel (?P<kernel>{_KERNEL})"
)
_BROKE = regex(r"\*\*\* \[|\berror: |\bError [0-9]|exit code: [1-9]")
_BAD_STATUS = regex(rf"Bad return status for module build on kernel: (?P<kernel>{_KERNEL})")
_CONSULT = regex(rf"/var/lib/dkms/(?P<module>{_MODULE})/(?P<version>{_DRIVER})/")
_NO_DKMS = regex(r"dkms: (?:command )?not found|[Cc]ommand '?dkms'? not found")


def _dkms(draft: Draft, section: Section, lines: _Lines) -> None:
    states: list[tuple[str, str, int]] = []
    versions: dict[str, int] = {}
    failed: dict[str, int] = {}
    logged: tuple[str, int] | None = None
    for number, line in lines:
        status = _STATUS.match(line)
        log = _MAKE_LOG.search(line)
        bad = _BAD_STATUS.search(line)
        consult = _CONSULT.search(line)
        if status is not None:
            states.append((status["kernel"] or "", status["state"], number))
            versions.setdefault(status["version"], number)
            draft.read(number)
        elif log is not None:
            versions.setdefault(log["version"], number)
            logged = (log["kernel"], number)
            draft.read(number)
        elif bad is not None:
            nearby = section.text[: 1 << 20]
            if _CONSULT.search(nearby) or _STATUS.search(nearby) or "nvidia" in section.command:
                failed.setdefault(bad["kernel"].rstrip("."), number)
                draft.read(number)
        elif consult is not None:
            versions.setdefault(consult["version"], number)
        elif logged is not None and _BROKE.search(line):
            failed.setdefault(*logged)
        elif _NO_DKMS.search(line):
            draft.add("dkms.installed", False, "shell: dkms not found", number)
    if states or logged or failed:
        first = min(n for n in (*(s[2] for s in states), *failed.values(), *versions.values()))
        draft.add("dkms.installed", True, "dkms", first)
    if len(versions) == 1:
        version, number = next(iter(versions.items()))
        draft.add("dkms.nvidia.version", version, "dkms", number)
    if failed:
        number = next(iter(failed.values()))
        draft.add("dkms.nvidia.failed_kernels", list(failed), "dkms: module build", number)
    _dkms_states(draft, section, states)


def _dkms_states(draft: Draft, section: Section, states: list[tuple[str, str, int]]) -> None:
    asked = re.match(r"(?:sudo[ \t]+)?dkms[ \t]+status\b", section.command)
    if not states:
        if asked and not section.text.strip():
            draft.add("dkms.installed", True, "dkms status")
            for name in ("dkms.nvidia.status", "dkms.nvidia.kernels", "dkms.nvidia.version"):
                draft.absent(name)
        return
    made = {kernel: line for kernel, state, line in states if state in ("built", "installed")}
    if made:
        kernels: list[Value] = [kernel for kernel in made if kernel]
        draft.add("dkms.nvidia.kernels", kernels, "dkms status", next(iter(made.values())))
    here = [each for each in states if not each[0]]
    if "uname -r" in section.command or (not made and here == states):
        here = states  # of the running kernel only; or of none, and so not of this one either
    elif made:
        draft.gap("dkms.nvidia.status", "dkms status does not tell which kernel runs")
        return
    order = ("installed", "built", "broken", "added")
    best = min(here, key=lambda each: order.index(each[1]), default=None)
    if best is not None:
        draft.add("dkms.nvidia.status", best[1], "dkms status", best[2])


# -- lsmod --------------------------------------------------------------------------------------

_MODULES = (
    "nvidia",
    "nvidia_uvm",
    "nvidia_modeset",
    "nvidia_drm",
    "nvidia_peermem",
    "nouveau",
    "nova_core",
    "gdrdrv",
)
_LSMOD_HEAD = regex(r"[ \t]*Module[ \t]+Size[ \t]+Used by")
_LSMOD_ROW = regex(r"[ \t]*(\w{2,60})[ \t]+([0-9]{3,12})[ \t]+(-?[0-9]{1,6})(?:[ \t]+(\S+))?\Z")
_WHOLE_ROWS = 15
"""Fewer modules than this has no machine with a GPU: such a list was cut."""


def _lsmod(draft: Draft, section: Section, lines: _Lines) -> None:
    asked = re.search(r"\blsmod\b", section.command) is not None
    headed = any(_LSMOD_HEAD.match(line) for _, line in lines)
    rows: dict[str, int] = {}
    cut = False
    for number, line in lines:
        match = _LSMOD_ROW.match(line)
        if match is not None and (asked or headed or match[1] in _MODULES):
            rows.setdefault(match[1], number)
            draft.read(number)
        elif _LSMOD_HEAD.match(line):
            draft.read(number)
        cut = cut or line.strip(" []") in ("...", "\u2026", "<snip>")
    for name in _MODULES:
        if name in rows:
            draft.add(f"kernel.module.{name}.loaded", True, "lsmod", rows[name])
    if "nvidia" in rows:
        draft.add("driver.module.loaded", True, "lsmod", rows["nvidia"])
    for name in _looked_for(section.command) if asked else ():
        draft.add(f"kernel.module.{name}.loaded", False, f"lsmod: no {name}")
    if headed and "|" not in section.command and len(rows) >= _WHOLE_ROWS and not cut:
        for name in _MODULES:
            draft.add(f"kernel.module.{name}.loaded", False, f"lsmod: no {name}")
    if draft.value("kernel.module.nvidia.loaded") is False:
        draft.add("driver.module.loaded", False, "lsmod: no nvidia")


_GREP = regex(
    r"lsmod[ \t]*\|[ \t]*e?grep[ \t]+(?P<options>(?:-[A-Za-z]{1,4}[ \t]+){0,4})"
    r"(?P<quote>['\"]?)(?P<what>[\w|\\^ ]{2,80}?)(?P=quote)[ \t]*"
    r"(?:\|[ \t]*(?:sort|cat|tee)\b.*)?\Z"
)


def _looked_for(command: str) -> list[str]:
    """Modules that a `lsmod | grep` would have shown."""
    match = _GREP.search(command.strip()[-200:])
    if match is None or "v" in match["options"]:
        return []
    words = [word.strip() for word in re.split(r"\\?\|", match["what"])]
    found = []
    for name in _MODULES:
        for word in words:
            plain = word.strip("^ ")
            if plain and (name.startswith(plain) if word.startswith("^") else plain in name):
                found.append(name)
                break
    return found


# -- lspci --------------------------------------------------------------------------------------

_FUNCTION = regex(
    r"[ \t]*(?P<address>(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f]) "
    r"\"?(?P<class>[A-Za-z0-9][A-Za-z0-9 \-/]{2,40}?)(?: \[(?P<code>[0-9a-f]{4})\])?: "
    r"(?P<what>[^\n]{2,300})"
)
_IDS = regex(r"\[(10de:[0-9a-f]{4})\]", re.IGNORECASE)
_MARKETED = regex(r"\[([A-Z][A-Za-z0-9 \-/+()]{1,60})\]")
_SUBSYSTEM = regex(r"[ \t]+Subsystem: .*\[([0-9a-f]{4}:[0-9a-f]{4})\]", re.IGNORECASE)
_IN_USE = regex(r"[ \t]*Kernel driver in use: (\S{2,40})")
_CANDIDATES = regex(r"[ \t]*Kernel modules: \S")
_EVERY_GPU = regex(
    r"lspci\b[^|\n]{0,40}(?:\Z|\|[ \t]*e?grep[ \t]+(?:-[A-Za-z0-9]{1,3}[ \t]+){0,3}"
    r"['\"]?(?:nvidia|10de)['\"]?[ \t]*\Z)",
    re.IGNORECASE,
)
_DISPLAY = ("VGA compatible controller", "3D controller", "Display controller")


class _Function(NamedTuple):
    """A GPU or an NVSwitch on the PCI bus."""

    address: str
    ident: str
    name: str
    line: int
    is_switch: bool


def _lspci(draft: Draft, section: Section, lines: _Lines) -> None:
    found: list[_Function] = []
    drivers: dict[str, tuple[str, int]] = {}
    current: _Function | None = None
    for number, line in lines:
        match = _FUNCTION.match(line)
        if match is not None:
            current = _function(match, number)
            if current is not None and len(found) < GPUS_LIMIT:
                if any(each.address == current.address for each in found):
                    current = None  # listed a second time
                    continue
                found.append(current)
                draft.read(number)
            continue
        if current is None:
            continue
        used, subsystem = _IN_USE.match(line), _SUBSYSTEM.match(line)
        if used is not None:
            drivers[current.address] = (used[1], number)
            draft.read(number)
        elif _CANDIDATES.match(line):  # stands behind the driver in use, where there is one
            drivers.setdefault(current.address, ("none", number))
            draft.read(number)
        elif subsystem is not None or line[:1] in " \t":
            draft.read(number)
        elif line.strip("-"):
            current = None
    gpus = [each for each in found if not each.is_switch]
    whole = _EVERY_GPU.search(section.command.strip()[:200]) is not None
    _tell_functions(draft, gpus, drivers)
    switches = [each for each in found if each.is_switch]
    if switches and len({each.line for each in switches}) == len(switches):
        draft.add("nvswitch.count", len(switches), "lspci", switches[0].line)
    if whole and (gpus or not section.text.strip()):
        draft.add("pci.gpu.count", len(gpus), "lspci", gpus[0].line if gpus else None)


def _function(match: re.Match[str], line: int) -> _Function | None:
    what = match["what"]
    ids = _IDS.search(what)
    address = pci_address(match["address"])
    if address is None or (ids is None and "NVIDIA" not in what):
        return None
    kind = match["class"].strip()
    is_switch = kind == "Bridge" or match["code"] == "0680"
    if not is_switch and kind not in _DISPLAY:
        return None
    names = [name for name in _MARKETED.findall(what) if not _IDS.match(f"[{name}]")]
    name = names[-1].replace(" / Max-Q", "").strip() if names else ""
    if name and not name.startswith(("Tesla", "Quadro", "TITAN", "GRID", "NVIDIA")):
        name = f"NVIDIA {name}"
    return _Function(address, ids[1].lower() if ids else "", name, line, is_switch)


_NODE = regex(r"[ \t]*\*-(\w{2,20})(?::[0-9]{1,3})?(?:[ \t]+(UNCLAIMED|DISABLED))?[ \t]*\Z")
_PROPERTY = regex(r"[ \t]+(product|vendor|bus info|configuration): ([^\n]{1,300})")
_LSHW_DRIVER = regex(r"\bdriver=(\S{2,40})")


def _lshw(draft: Draft, lines: _Lines) -> None:
    """Displays of `lshw`, which names the driver in their configuration.

    *-display
         product: GA106 [GeForce RTX 3060]
         vendor: NVIDIA Corporation
         bus info: pci@0000:01:00.0
         configuration: driver=nouveau latency=0
    """
    found: list[_Function] = []
    drivers: dict[str, tuple[str, int]] = {}
    node, told, start, last = "", dict[str, str](), 0, 0
    for number, line in [*lines, (len(lines) + 1, "  *-end")]:
        match = _NODE.match(line)
        if match is None:
            said = _PROPERTY.match(line) if node else None
            if said is not None:
                told.setdefault(said[1], said[2].strip())
                last = number
            continue
        address = pci_address(told.get("bus info", "").removeprefix("pci@"))
        is_ours = node == "display" and "NVIDIA" in told.get("vendor", "")
        if is_ours and address is not None and len(found) < GPUS_LIMIT:
            names = _MARKETED.findall(told.get("product", ""))
            name = f"NVIDIA {names[-1]}" if names else ""
            name = name.replace("NVIDIA NVIDIA", "NVIDIA")
            found.append(_Function(address, "", name, start, False))
            driver = _LSHW_DRIVER.search(told.get("configuration", ""))
            drivers[address] = (driver[1] if driver else "none", start)
            draft.read(*range(start, last + 1))
        node, told, start = match[1], {}, number
    _tell_functions(draft, found, drivers, "lshw")


def _tell_functions(
    draft: Draft,
    gpus: list[_Function],
    drivers: dict[str, tuple[str, int]],
    tool: str = "lspci",
) -> None:
    held: list[Value] = []
    free = [gpu for gpu in gpus if drivers.get(gpu.address, ("nvidia", 0))[0] in _SERVED]
    for number, gpu in enumerate(gpus):
        draft.add(f"pci.gpu.{number}.address", gpu.address, tool, gpu.line)
        draft.add(f"pci.gpu.{number}.id", gpu.ident, f"{tool}: id", gpu.line)
        driver, line = drivers.get(gpu.address, ("", gpu.line))
        if driver:
            draft.add(f"pci.gpu.{number}.driver", driver, f"{tool}: driver", line)
            held.append(f"{gpu.address} {gpu.ident or '10de:?'} display {driver}")
    if held:
        draft.add("gpu.driver_bound", held, f"{tool}: Kernel driver in use", gpus[0].line)
    # The driver counts in the order of the bus what it has or could have.
    for number, gpu in enumerate(free if free else gpus):
        draft.add(f"gpu.{number}.name", gpu.name, tool, gpu.line)


_SERVED = ("nvidia", "none")


# -- modinfo, modprobe --------------------------------------------------------------------------

_FIELD = regex(
    r"(filename|version|license|signer|vermagic|sig_id|parm|name|description):"
    r"[ \t]+(\S[^\n]{0,300})"
)
_OF_NVIDIA = regex(r"/nvidia(?:-current|-open|-[0-9]{3})?(?:-open)?\.ko")
_PLAIN_MODINFO = regex(r"(?:sudo[ \t]+)?modinfo[ \t]+(?:-F[ \t]*\w+[ \t]+)?nvidia\b(?![./])")


def _modinfo(draft: Draft, section: Section, lines: _Lines) -> None:
    asked = _PLAIN_MODINFO.match(section.command) is not None
    fields: dict[str, tuple[str, int]] = {}
    for number, text in lines:
        match = _FIELD.match(text)
        if match is not None:
            fields.setdefault(match[1], (match[2].strip(), number))
        elif asked and re.search(r"modinfo: ERROR: Module nvidia not found", text):
            draft.absent("driver.module.on_disk", number)
    path = fields.get("filename", ("", 0))[0]
    if not (_OF_NVIDIA.search(path) or (asked and fields)) or " -k" in section.command:
        return  # of another module, or for another kernel
    draft.read(*(number for _, number in fields.values()))
    version, line = fields.get("version", ("", 0))
    if re.fullmatch(_DRIVER, version):
        draft.add("driver.module.on_disk", version, "modinfo nvidia: version", line)
    license_, line = fields.get("license", ("", 0))
    from envaudit import modinfo  # it brings much along

    source = "modinfo nvidia: license"
    draft.add("driver.module.on_disk_flavor", modinfo.flavor(license_), source, line)
    signer, line = fields.get("signer", ("", 0))
    if signer:
        draft.add("driver.module.signer", signer, "modinfo nvidia: signer", line)
    elif "vermagic" in fields and "parm" in fields and "sig_id" not in fields:
        # A signature is printed between these two.
        line = fields["vermagic"][1]
        draft.add("driver.module.signer", "none", "modinfo nvidia: no signer", line)
    if asked and "vermagic" in fields:
        magic, line = fields["vermagic"]
        tell_kernel(draft, magic.split()[0], "modinfo nvidia: vermagic", line)


_NOT_FOUND = regex(
    rf"modprobe: FATAL: Module (?P<module>[\w\-]{{2,40}}) not found"
    rf"(?: in directory /lib/modules/(?P<kernel>{_KERNEL}))?"
)


def _modprobe(draft: Draft, lines: _Lines) -> None:
    for number, line in lines:
        match = _NOT_FOUND.search(line)
        if match is None:
            continue
        draft.read(number)
        if match["kernel"]:  # modprobe looks below the running kernel's release
            tell_kernel(draft, match["kernel"].rstrip("."), "modprobe", number)
        if match["module"] == "nvidia":
            draft.absent("driver.module.on_disk", number)


# -- Secure Boot --------------------------------------------------------------------------------

_STATE = regex(
    r"[ \t]*(?:SecureBoot (?P<mok>enabled|disabled)"
    r"|(?:UEFI )?Secure ?Boot(?: State)?[ \t]*: ?(?P<words>enabled|disabled|on|off|yes|no)\b"
    r"|(?P<none>EFI variables are not supported on this system"
    r"|This system doesn't support Secure Boot))",
    re.IGNORECASE,
)
_SWITCHED = {"enabled": True, "on": True, "yes": True, "disabled": False, "off": False, "no": False}


def _secure_boot(draft: Draft, lines: _Lines) -> None:
    for number, line in lines:
        if "SecureBoot validation is disabled in shim" in line:
            # What the kernel goes by when it judges modules.
            draft.replace("boot.secure_boot", "disabled", "mokutil --sb-state", number)
            continue
        match = _STATE.match(line)
        if match is None:
            continue
        if match["none"]:
            draft.add("boot.secure_boot", "unsupported", "mokutil --sb-state", number)
            continue
        on = _SWITCHED[(match["mok"] or match["words"]).lower()]
        source = "mokutil --sb-state" if match["mok"] else "Secure Boot"
        draft.add("boot.secure_boot", "enabled" if on else "disabled", source, number)


# -- nvidia-installer ---------------------------------------------------------------------------

_INSTALLS = regex(
    rf"(?:-> )?Installing NVIDIA driver version (?P<one>{_DRIVER})\.?\Z"
    rf"|(?:Uncompressing|Verifying) NVIDIA Accelerated Graphics Driver for \S{{3,20}} "
    rf"(?P<two>{_DRIVER})"
    rf"|nvidia-installer version: (?P<three>{_DRIVER})"
)
_SOURCES = regex(
    rf"Kernel (?:source|output) path: '/lib/modules/(?P<kernel>{_KERNEL})/(?:build|source)'"
)


def _installer(draft: Draft, lines: _Lines) -> None:
    for number, line in lines:
        match = _INSTALLS.search(line) if "NVIDIA" in line or "nvidia-installer" in line else None
        if match is not None:
            release = match["one"] or match["two"] or match["three"]
            draft.add("driver.installer.version", release, "nvidia-installer", number)
        sources = _SOURCES.search(line)
        if sources is not None:
            kernel = sources["kernel"]
            draft.add("driver.installer.kernel", kernel, "nvidia-installer: kernel sources", number)
