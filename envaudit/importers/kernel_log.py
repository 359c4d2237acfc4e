"""The kernel's own words: dmesg, `journalctl -k`, kern.log, /proc/version, NVIDIA's module in them.

    [    0.000000] Linux version 6.8.0-45-generic (buildd@host) (x86_64-linux-gnu-gcc-13 ...) ...
    [    0.000000] secureboot: Secure boot enabled
    [   82.939792] NVRM: API mismatch: the client has the version 535.183.01, but
    [   82.939795] NVRM: this kernel module has the version 535.129.03.  Please
    Sep 14 20:30:27 host kernel: NVRM: Xid (PCI:0000:01:00): 79, pid=0, GPU has fallen off the bus.
    NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  555.58.02  Release Build  (...)

NVIDIA breaks its sentences over lines that each begin with "NVRM:"; they are joined before they
are read. A log may hold several loads and several boots: the last one counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from envaudit.addresses import pci_address
from envaudit.importers import Draft, Imported, Section
from envaudit.importers.platform_words import compiler_version, tell_kernel
from envaudit.importers.reading import numbered
from envaudit.kernel_words import filter_cmdline, parse_compiler, parse_proc_version
from envaudit.model import GPUS_LIMIT, Value
from envaudit.patterns import regex

_HINTS = (
    "NVRM",
    "Linux version ",
    "ecure boot",
    "ecureboot",
    "ecure Boot",
    "locked down from",
    "ommand line: ",
    "nouveau ",
    "nvidiafb",
    "rivafb",
    "SXid",
    "nvidia-modeset: Loading",
    "Legacy drivers",
    "API mismatch",
)


def recognises(section: Section) -> bool:
    """Whether a line may be one of the kernel's."""
    return _MODULE_VERSION in section.command or any(hint in section.text for hint in _HINTS)


def parse(section: Section) -> Imported:
    """Facts of the kernel, of the nvidia module and of what it says about GPUs."""
    draft = Draft()
    lines = list(numbered(section.text))
    _kernel(draft, lines)
    _security(draft, lines)
    _loaded_version(draft, lines)
    if _MODULE_VERSION in section.command:
        _sys_version(draft, lines)
    _module(draft, _sentences(lines))
    _errors(draft, lines)
    _other_drivers(draft, lines)
    return draft.done()


_Lines = list[tuple[int, str]]


# -- the kernel ---------------------------------------------------------------------------------

_LINUX = regex(r"Linux version ([0-9][^ \t\n]{2,100})([^\n]{0,600})")
_COMMAND_LINE = regex(r"(?:Kernel command line|\] Command line|kernel: Command line): (.{1,3000})")


def _kernel(draft: Draft, lines: _Lines) -> None:
    found = [(number, m) for number, line in lines if (m := _LINUX.search(line)) is not None]
    if found:
        number, match = found[-1]
        tell_kernel(draft, match[1], "kernel: Linux version", number)
        compiler = parse_compiler(match[0])
        draft.add("kernel.compiler", compiler, "kernel: Linux version", number)
        draft.read(*(number for number, _ in found))
    for number, line in reversed(lines):
        given = _COMMAND_LINE.search(line)
        if given is not None:
            source = "kernel: command line, without devices, addresses and secrets"
            draft.add("kernel.cmdline", filter_cmdline(given[1]), source, number)
            break


_SECURE = regex(
    r"secureboot: Secure boot (enabled|disabled)|UEFI Secure Boot is (enabled|disabled)"
    r"|(?:\] |kernel: )Secure boot (enabled|disabled)\Z"
)
_LOCKED = regex(r"Kernel is locked down from ([A-Za-z0-9 ]{3,40}?)(?: mode)?(?:;|\Z)")


def _security(draft: Draft, lines: _Lines) -> None:
    for number, line in reversed(lines):
        secure = _SECURE.search(line)
        if secure is not None:
            state = secure[1] or secure[2] or secure[3]
            draft.add("boot.secure_boot", state, "kernel: Secure boot", number)
            draft.read(number)
        locked = _LOCKED.search(line)
        if locked is None:
            continue
        draft.read(number)
        if locked[1] == "EFI Secure Boot":  # locks at this level, whatever the distribution
            draft.add("kernel.lockdown", "integrity", "kernel: locked down from", number)
            draft.add("boot.secure_boot", "enabled", "kernel: locked down from", number)
        else:
            draft.gap("kernel.lockdown", f"the log says only that {locked[1]} locked it down")


# -- the nvidia module --------------------------------------------------------------------------

_RELEASE = r"[0-9]{2,4}\.[0-9]{1,4}(?:\.[0-9]{1,3})?"
_PROC = regex(r"NVRM version: ")
_GCC = regex(r"GCC version:[ \t]+(.{3,200})")


def _loaded_version(draft: Draft, lines: _Lines) -> None:
    """/proc/driver/nvidia/version, which is there while the module is loaded."""
    for number, line in lines:
        proc = _PROC.search(line)
        if proc is not None:
            version, flavor = parse_proc_version(line[proc.start() :])
            if version is not None:
                source = "NVRM version"
                draft.add("driver.module.version", version, source, number)
                draft.add("driver.module.flavor", flavor, source, number)
                draft.add("driver.module.loaded", True, source, number)
        gcc = _GCC.match(line.strip())
        if gcc is not None:
            name = "clang" if "clang" in gcc[1] else "gcc"
            words = gcc[1].partition("version")[2] or gcc[1]
            found = compiler_version(words)
            if found is not None:
                source = "/proc/driver/nvidia/version: GCC version"
                draft.add("driver.module.compiler", f"{name} {found}", source, number)
            draft.read(number)


_MODULE_VERSION = "/sys/module/nvidia/version"
_ALONE = regex(rf"[ \t]*({_RELEASE})[ \t]*\Z")


def _sys_version(draft: Draft, lines: _Lines) -> None:
    """What the kernel says of the loaded module, alone on its line."""
    for number, line in lines:
        version = _ALONE.match(line)
        if version is not None:
            draft.add("driver.module.version", version[1], _MODULE_VERSION, number)
            draft.add("driver.module.loaded", True, _MODULE_VERSION, number)
            return


class _Sentence(NamedTuple):
    """What NVIDIA's module says in one go, its lines joined, with the lines it stood in."""

    text: str
    first: int
    last: int


_SPEAKER = regex(
    r"NVRM: ?|\((?:WW|EE|II|--)\) NVIDIA(?:\([^)\n]{1,12}\))?: ?|(?:Error: )(?=API mismatch)"
)
_BEGINS = regex(r"[ \t]*(?:loading |API mismatch|Xid|The NVIDIA |GPU[ 0-9]|None of|No NVIDIA)")
_SENTENCE_LINES = 12


def _sentences(lines: _Lines) -> Iterator[_Sentence]:
    words: list[str] = []
    first = last = 0
    for number, line in lines:
        speaker = _SPEAKER.search(line)
        said = line[speaker.end() :] if speaker is not None else ""
        follows = bool(words) and number == last + 1 and len(words) < _SENTENCE_LINES
        if words and (speaker is None or not follows or _BEGINS.match(said)):
            yield _Sentence(" ".join(" ".join(words).split()), first, last)
            words = []
        if speaker is not None:
            first = first if words else number
            last = number
            words.append(said[:300])
    if words:
        yield _Sentence(" ".join(" ".join(words).split()), first, last)


_LOADING = regex(
    rf"loading NVIDIA UNIX (?P<open>Open )?(?:\S{{1,12}} )?Kernel Module (?:for \S{{1,12}} )?"
    rf"(?P<release>{_RELEASE})"
)
_MISMATCH = regex(
    r"API mismatch: the client(?: '[^'\n]{1,40}')?(?: \(pid [0-9]{1,8}\))? has (?:the )?version "
    rf"(?P<client>{_RELEASE}),? but this kernel module has (?:the )?version (?P<module>{_RELEASE})"
)
_SEEN_FROM_ABOVE = regex(
    rf"API mismatch: the (?:NVIDIA )?kernel module has (?:the )?version (?P<module>{_RELEASE}),? "
    rf"but this NVIDIA driver component has (?:the )?version (?P<client>{_RELEASE})"
)
"""The same, told by the user-mode side."""
_UNSUPPORTED = regex(
    r"NVIDIA GPU (?P<address>[0-9A-Fa-f:.]{7,16}) \(PCI ID: (?P<id>10de:[0-9A-Fa-f]{4})\)"
    r" installed in this system is not supported by (?P<by>[^\n]{1,60})"
)
_UNSUPPORTED_BY = regex(rf"(?:the )?(?:NVIDIA )?(?P<release>{_RELEASE}) (?:NVIDIA|driver)")
_LEGACY = regex(
    rf"The (?:NVIDIA )?(?P<name>[^\n]{{2,60}}?)(?: GPU)? installed in this system is supported "
    rf"through the NVIDIA [0-9]{{2,3}}\.xx Legacy drivers.{{0,120}}?"
    rf"The (?P<release>{_RELEASE}) NVIDIA driver will ignore"
)
_BOUND = regex(
    r"GPU (?P<address>[0-9A-Fa-f:.]{7,16}) is already bound to (?P<driver>[A-Za-z0-9_\-]{2,30})"
)
_WITHDREW = regex(
    r"No NVIDIA (?:GPU found|devices probed|graphics adapters? (?:found|probed))"
    r"|None of the NVIDIA (?:devices|graphics adapters) were initialized"
)
_MODESET = regex(
    rf"nvidia-modeset: Loading NVIDIA (?:UNIX )?(?P<open>Open )?Kernel Mode Setting Driver for "
    rf"(?:UNIX platforms|\S{{1,12}})[ \t]{{1,4}}(?P<release>{_RELEASE})"
)


class _Story:
    """What the module told in the course of a log; the last word on each thing counts."""

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self.release = ("", 0)
        self.flavor = ("", 0)
        self.client = ("", 0)
        self.loaded: tuple[bool, int] | None = None
        self.gpus = _Functions(draft)

    def hear(self, sentence: _Sentence) -> bool:
        """Take a sentence in; false where it says nothing to us."""
        text, line = sentence.text, sentence.first
        if loading := _LOADING.search(text):
            self.release, self.loaded = (loading["release"], line), None
            self.flavor = ("open" if loading["open"] else "proprietary", line)
        elif mismatch := _MISMATCH.search(text) or _SEEN_FROM_ABOVE.search(text):
            self.release, self.client = (mismatch["module"], line), (mismatch["client"], line)
            self.loaded = (True, line)
        elif unsupported := _UNSUPPORTED.search(text):
            self.gpus.see(unsupported["address"], unsupported["id"].lower(), "", line)
            by = _UNSUPPORTED_BY.match(unsupported["by"])
            if by is not None:
                self.release = (by["release"], line)
            elif unsupported["by"].startswith("open nvidia.ko"):
                self.flavor = ("open", line)
        elif legacy := _LEGACY.search(text):
            self.release = (legacy["release"], line)
            self.gpus.ignored(legacy["name"], line)
        elif bound := _BOUND.search(text):
            self.gpus.see(bound["address"], "", bound["driver"], line)
        elif not _WITHDREW.search(text):
            return False
        if _WITHDREW.search(text):
            self.loaded = (False, line)
        return True

    def tell(self) -> None:
        """Tell the outcome."""
        if self.loaded is not None:
            self.draft.add("driver.module.loaded", self.loaded[0], "NVRM", self.loaded[1])
            if not self.loaded[0]:  # it was there to be loaded, and let go again
                self.draft.add("driver.module.on_disk", self.release[0], "NVRM", self.release[1])
        source = "NVRM: API mismatch" if self.client[0] else "NVRM"
        self.draft.add("driver.module.version", self.release[0], source, self.release[1])
        self.draft.add("driver.module.flavor", self.flavor[0], "NVRM", self.flavor[1])
        self.draft.add("driver.library.version", self.client[0], source, self.client[1])
        self.gpus.tell()


def _module(draft: Draft, sentences: Iterable[_Sentence]) -> None:
    story = _Story(draft)
    for sentence in sentences:
        if story.hear(sentence):
            draft.read(*range(sentence.first, sentence.last + 1))
    story.tell()


class _Functions:
    """NVIDIA's PCI functions that the module speaks of, in the order of their addresses."""

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self.seen: dict[str, tuple[str, str, int]] = {}
        self.names: dict[str, int] = {}

    def see(self, address: str, ident: str, driver: str, line: int) -> None:
        """A function, with its ids and the driver bound to it as far as they are told."""
        place = pci_address(address)
        if place is None or len(self.seen) >= GPUS_LIMIT:
            return
        before = self.seen.get(place, ("", "", line))
        self.seen[place] = (ident or before[0], driver or before[1], line)

    def ignored(self, name: str, line: int) -> None:
        """A GPU that the driver names and leaves alone."""
        name = name.strip()
        if len(self.names) < GPUS_LIMIT:
            self.names.setdefault(name if name.startswith("NVIDIA") else f"NVIDIA {name}", line)

    def tell(self) -> None:
        """Tell what was seen."""
        held: list[Value] = []
        for number, (place, (ident, driver, line)) in enumerate(sorted(self.seen.items())):
            self.draft.add(f"pci.gpu.{number}.address", place, "NVRM", line)
            self.draft.add(f"pci.gpu.{number}.id", ident, "NVRM", line)
            self.draft.add(f"pci.gpu.{number}.driver", driver, "NVRM", line)
            if driver:
                held.append(f"{place} {ident or '10de:?'} display {driver}")
        if held:
            line = max(line for _, driver, line in self.seen.values() if driver)
            self.draft.add("gpu.driver_bound", held, "NVRM: is already bound", line)
        for number, (name, line) in enumerate(self.names.items()):
            self.draft.add(f"gpu.{number}.name", name, "NVRM", line)


# -- errors and other drivers -------------------------------------------------------------------

_XID = regex(
    r"NVRM: (?:GPU at [0-9A-Fa-f:.]{4,16}: )?Xid \((?:PCI:)?(?P<place>[0-9A-Fa-f:.]{4,16})\): "
    r"(?P<code>[0-9]{1,4})(?![0-9])"
)
_SXID = regex(r"SXid \((?:PCI:)?(?P<place>[0-9A-Fa-f:.]{4,16})\): (?P<code>[0-9]{1,6})(?![0-9])")
_ERRORS_LIMIT = 200


def _errors(draft: Draft, lines: _Lines) -> None:
    """The kernel leaves the function number out: 0000:01:00 is the GPU at 0000:01:00.0."""
    for name, pattern in (("kernel.log.xids", _XID), ("kernel.log.sxids", _SXID)):
        found: dict[str, int] = {}
        for number, line in lines:
            match = pattern.search(line) if "Xid" in line else None
            if match is not None and len(found) < _ERRORS_LIMIT:
                place = match["place"]
                address = pci_address(place) or pci_address(f"{place}.0") or place
                found.setdefault(f"{address} {int(match['code'])}", number)
                draft.read(number)
        if found:
            draft.add(name, list(found), "kernel log", next(iter(found.values())))


_NOUVEAU = regex(
    r"(?:\A|[\] ])nouveau (?P<address>[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f]): "
    r"(?:NVIDIA |DRM: |drm: |bios: |fb: |fifo: |mmu: |vgaarb)"
)
_FRAMEBUFFER = regex(
    r"fb[0-9]: (nouveau)(?:drm)?(?:fb)? frame buffer device|(?:\A|[\] ])(rivafb|nvidiafb): "
)
_LOADS = regex(r"nvidia(?:-nvlink)?: (?:loading out-of-tree|module license|Nvlink Core is being)")


def _other_drivers(draft: Draft, lines: _Lines) -> None:
    others: dict[str, int] = {}
    for number, line in lines:
        modeset = _MODESET.search(line) if "nvidia-modeset" in line else None
        if modeset is not None:
            draft.add("driver.module.version", modeset["release"], "nvidia-modeset", number)
            if modeset["open"]:
                draft.add("driver.module.flavor", "open", "nvidia-modeset", number)
            draft.read(number)
        elif "module license 'NVIDIA' taints" in line:
            draft.add("driver.module.flavor", "proprietary", "module license 'NVIDIA'", number)
        elif _LOADS.search(line) is not None:
            draft.read(number)
        if "NVRM: loading" in line:  # another driver had to go before, or is told of again
            others.clear()
        nouveau = _NOUVEAU.search(line) if "nouveau" in line else None
        framebuffer = _FRAMEBUFFER.search(line) if "fb" in line else None
        if nouveau is not None:
            others.setdefault("nouveau", number)
        elif framebuffer is not None:
            others.setdefault(framebuffer[1] or framebuffer[2], number)
    for name, number in others.items():
        draft.add(f"kernel.module.{name}.loaded", True, f"kernel log: {name}", number)
