"""Which kernel boots next, as far as files say it.

Read in the order in which the machine itself would: systemd-boot where it started this boot,
else GRUB (its menu with its saved choice, or Boot Loader Specification entries), else a link.
Where files leave two answers open, or only root may read them, there is no answer.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from envaudit.host import Host


class Undecided(Exception):
    """No single answer; the text says why."""


def next_kernel(host: Host, on_disk: Sequence[str]) -> tuple[str, str]:
    """The release that boots next, and the file that says so.

    `on_disk` are the releases of the kernel images in /boot. Raises Undecided.
    """
    loader = efi_text(host, "LoaderInfo")
    if loader.startswith("systemd-boot"):
        return _systemd_boot(host)
    closed = ""
    for path in _grub_menus(host):
        closed = _closed(host, path)
        if not closed:
            return _grub(host, path)
    if on_disk and host.exists("/etc/default/grub"):
        return _grub_by_version(host, on_disk, closed)
    if closed:
        raise Undecided(closed)
    if _loader_folder(host):
        return _systemd_boot(host)
    if not on_disk:
        raise Undecided("no kernel image in /boot: what boots is decided outside this file system")
    for link in ("/boot/vmlinuz", "/vmlinuz", "/boot/vmlinuz.img"):
        to = host.readlink(link)
        release = release_of(to) if to else None
        if release in on_disk and release is not None:
            return release, f"link {link}"
    if len(on_disk) == 1:
        return on_disk[0], "the only kernel image in /boot"
    raise Undecided("no boot loader configuration found")


# -- names and versions --------------------------------------------------------------------

_IMAGE = re.compile(r"(?:vmlinu[xz]|kernel|bzImage|Image)-(\d[\w.+~-]*)$")
_SUFFIX = re.compile(r"\.(?:old|efi|signed|gz|img|bak)$")


def release_of(path: str) -> str | None:
    """The release in a kernel image's path: /boot/vmlinuz-6.8.0-45-generic -> 6.8.0-45-generic.

    None where the name carries none (vmlinuz-linux, vmlinuz) and for rescue images.
    """
    folder, name = posixpath.split(path)
    while _SUFFIX.search(name):
        name = _SUFFIX.sub("", name)
    found = _IMAGE.match(name)
    if found is None:
        above = posixpath.basename(folder)  # <token>/<release>/linux, as kernel-install lays out
        return above if name == "linux" and re.match(r"\d+\.\d", above) else None
    release = found.group(1)
    return None if release.startswith("0-rescue") else release


def release_key(text: str) -> list[tuple[list[int], int]]:
    """Sort key in which grub-mkconfig (sort -V) sees versions: 6.8.0-9 before 6.8.0-45."""
    return [
        ([_order(char) for char in other] + [0], int(digits[:18] or 0))
        for other, digits in re.findall(r"(\D*)(\d*)", text)
    ]


def _order(char: str) -> int:
    if char == "~":
        return -1
    return ord(char) if char.isalpha() and char.isascii() else 256 + ord(char)


# -- GRUB ------------------------------------------------------------------------------------


@dataclass(slots=True)
class Entry:
    """One line of a boot menu."""

    title: str
    ident: str = ""
    image: str = ""
    """Path of the kernel image it boots; "" where it boots something else."""
    version: str = ""
    below: list[Entry] | None = None
    """The entries of a submenu; None for an entry that boots."""


@dataclass(slots=True)
class Menu:
    """What a grub.cfg says about the choice at boot."""

    entries: list[Entry] = field(default_factory=list)
    defaults: list[str] = field(default_factory=list)
    """Every value that `set default=` outside the entries may give, in file order."""
    bls: bool = False
    """It takes its entries from /boot/loader/entries (command blscfg)."""
    odd: str = ""
    """A line that decides and is not understood."""


_QUOTED = r"""'(?:[^']|'\\'')*'|"(?:[^"\\]|\\.)*"|[^\s'"{}]+"""
_ENTRY = re.compile(rf"(menuentry|submenu)\s+({_QUOTED})(.*)\{{$")
_IDENT = re.compile(rf"(?:\$\{{?menuentry_id_option\}}?|--id)[ =]\s*({_QUOTED})")
_LINUX = re.compile(r"(?:linux(?:16|efi)?|module2?)\s+(\S+)")
_DEFAULT = re.compile(rf"set\s+default=({_QUOTED}|)$")


def parse_grub_menu(text: str) -> Menu:
    r"""Entries and default of a grub.cfg as grub-mkconfig writes it.

    menuentry 'Ubuntu' --class ubuntu $menuentry_id_option 'gnulinux-simple-UUID' {
        linux   /boot/vmlinuz-6.8.0-45-generic root=UUID=... ro quiet
    }
    submenu 'Advanced options for Ubuntu' $menuentry_id_option 'gnulinux-advanced-UUID' {
    ...
    """
    menu = Menu()
    stack: list[Entry | None] = []  # None: a brace of something else, such as a function
    for raw in text.splitlines():
        line = raw.strip()
        if len(line) > 4096 or line.startswith("#"):
            continue
        inside = next((entry for entry in reversed(stack) if entry is not None), None)
        started = _ENTRY.match(line)
        if started:
            kind, title, rest = started.groups()
            ident = _IDENT.search(rest)
            entry = Entry(_unquoted(title), _unquoted(ident.group(1)) if ident else "")
            if kind == "submenu":
                entry.below = []
            if inside is None:
                menu.entries.append(entry)
            elif inside.below is not None:
                inside.below.append(entry)
            stack.append(entry)
        elif line.endswith("{") and not line.endswith("${"):
            stack.append(None)
        elif line == "}":
            if stack:
                stack.pop()
        elif inside is not None:
            found = _LINUX.match(line)
            image = _unquoted(found.group(1)) if found else ""
            if "xen" not in posixpath.basename(image)[:4] and not inside.image:
                inside.image = image
        elif not stack:
            found = _DEFAULT.match(line)
            if found:
                menu.defaults.append(_unquoted(found.group(1)))
            elif line.split(None, 1)[:1] == ["blscfg"]:
                menu.bls = True
            elif re.match(r"menuentry\b|submenu\b|(set\s+)?default=", line):
                menu.odd = line[:100]
    return menu


def _unquoted(text: str) -> str:
    if len(text) >= 2 and text[0] == text[-1] == "'":
        return text[1:-1].replace("'\\''", "'")
    if len(text) >= 2 and text[0] == text[-1] == '"':
        return re.sub(r"\\(.)", r"\1", text[1:-1])
    return text


def parse_assignments(text: str) -> dict[str, str]:
    """NAME=value lines of a grubenv block or of /etc/default/grub; the last wins."""
    found = {}
    for raw in text.splitlines():
        line = raw.strip()
        if line.startswith("#") or "=" not in line:
            continue
        name, _, value = line.partition("=")
        name = name.removeprefix("export ").strip()
        if re.fullmatch(r"\w+", name):
            found[name] = _unquoted(value.strip())
    return found


def choose(menu: Menu, chosen: Mapping[str, str]) -> tuple[Entry, bool]:
    """The entry that GRUB boots by itself, and whether it is known by its place in the menu only.

    `chosen` is the grubenv: next_entry for one boot, saved_entry otherwise. Raises Undecided.
    """
    if menu.odd:
        raise Undecided(f"the boot menu has a line of its own kind: {menu.odd}")
    want = chosen.get("next_entry", "") if "${next_entry}" in menu.defaults else ""
    if not want:
        others = [value for value in menu.defaults if value != "${next_entry}"]
        if len(set(others)) > 1:
            raise Undecided("the boot menu sets its default in more than one way")
        want = others[0] if others else "0"
        if want == "${saved_entry}":
            want = chosen.get("saved_entry", "")
        elif "$" in want:
            raise Undecided(f"the boot menu computes its default: {want}")
    return _pick(menu.entries, want or "0")


def _pick(entries: list[Entry], want: str) -> tuple[Entry, bool]:
    """Resolve `2`, a title, an id, or a path of them: `1>2`, `gnulinux-advanced-X>gnulinux-Y`."""
    level, depth, by_position = entries, 0, False
    steps = re.split(r"(?<!>)>(?!>)", want)
    while True:
        step = steps[depth].replace(">>", ">")
        found = _find(level, step)
        by_position = by_position or found is None or step.isdecimal()
        if found is None and depth == 0 and level:
            found, steps = level[0], steps[:1]  # GRUB falls back to its first entry
        if found is None:
            raise Undecided(f"the boot menu has no entry {want[:100]!r}")
        depth += 1
        if found.below is None:
            return found, by_position
        if depth >= len(steps):
            raise Undecided(f"the default is the submenu {found.title[:100]!r}")
        level = found.below


def _find(entries: list[Entry], step: str) -> Entry | None:
    if step.isdecimal() and len(step) < 6:
        return entries[int(step)] if int(step) < len(entries) else None
    return next((entry for entry in entries if step in (entry.ident, entry.title)), None)


def _grub_menus(host: Host) -> list[str]:
    """The grub.cfg files to ask, most telling first, each once."""
    links = ["/etc/grub2-efi.cfg"] if host.exists("/sys/firmware/efi") else []
    found: dict[str, str] = {}
    for path in (*links, "/boot/grub2/grub.cfg", "/boot/grub/grub.cfg"):
        to = host.readlink(path) if path in links else None
        where = posixpath.normpath(posixpath.join("/etc", to)) if to else path
        try:
            host.stat(where)
        except PermissionError:  # the folder is root's, so the file may well be there
            found.setdefault(where, where)
        except OSError:
            continue
        else:
            found.setdefault(host.real(where), where)
    return list(found.values())


def _closed(host: Host, path: str) -> str:
    """Why a file that may be there cannot be read; "" when it can."""
    try:
        host.read_bytes(path, 1)
    except PermissionError:
        return f"{path} is readable by root only"
    return ""


def _grub(host: Host, path: str) -> tuple[str, str]:
    menu = parse_grub_menu(host.read(path))
    folder = posixpath.dirname(path)
    environment: dict[str, str] = {}
    place = posixpath.join(folder, "grubenv")
    try:
        environment = parse_assignments(host.read(place))
    except FileNotFoundError:
        pass
    except PermissionError:
        if any("$" in value for value in menu.defaults):
            raise Undecided(f"{place} is readable by root only") from None
    if "default" in host.read_or(posixpath.join(folder, "custom.cfg")):
        raise Undecided(f"{folder}/custom.cfg may set another default")
    if menu.bls:
        return _bls(host, menu, environment)
    entry, _ = choose(menu, environment)
    return _release(host, entry), path


def _release(host: Host, entry: Entry) -> str:
    """The release of the kernel that an entry boots. Raises Undecided."""
    if re.match(r"\d+\.\d", entry.version):
        return entry.version
    if not entry.image:
        raise Undecided(f"the default entry {entry.title[:100]!r} boots no Linux kernel")
    name = posixpath.basename(entry.image)
    link = host.readlink(f"/boot/{name}")
    release = release_of(entry.image) or (release_of(link) if link else None)
    if release is None and name.startswith("vmlinuz-"):  # Arch: the package's name instead
        owners = [
            kernel
            for kernel in host.listdir("/usr/lib/modules")
            if host.read_or(f"/usr/lib/modules/{kernel}/pkgbase").strip() == name[8:]
        ]
        release = owners[0] if len(owners) == 1 else None
    if release is None:
        raise Undecided(f"the default entry boots {entry.image[:200]}, which names no release")
    return release


_EARLY_SCRIPTS = re.compile(
    r"0[01]_\w+|05_debian_theme|08_fallback_counting|10_reset_boot_success|README$"
)
"""Parts of grub-mkconfig that come before the Linux entries and add none."""


def _grub_by_version(host: Host, on_disk: Sequence[str], closed: str) -> tuple[str, str]:
    """What grub-mkconfig puts first, where the menu itself cannot be read: the newest kernel."""
    settings: dict[str, str] = {}
    folder = "/etc/default/grub.d"
    for path in (
        "/etc/default/grub",
        *(f"{folder}/{name}" for name in host.listdir(folder) if name.endswith(".cfg")),
    ):
        settings |= parse_assignments(host.read(path))
    reason = closed or "no boot menu found"
    default = settings.get("GRUB_DEFAULT", "0")
    if default != "0":
        raise Undecided(f"{reason}, and GRUB_DEFAULT={default[:100]} needs it")
    for name in ("GRUB_FLAVOUR_ORDER", "GRUB_TOP_LEVEL"):
        if settings.get(name):
            raise Undecided(f"{reason}, and {name} changes the order")
    if settings.get("GRUB_ENABLE_BLSCFG") == "true":
        raise Undecided(reason)
    early = [
        name
        for name in host.listdir("/etc/grub.d")
        if name < "10_linux" and not _EARLY_SCRIPTS.match(name)
    ]
    if early:
        raise Undecided(f"{reason}, and /etc/grub.d/{early[0]} may come first in it")
    return max(on_disk, key=release_key), "newest in /boot, GRUB_DEFAULT=0 in /etc/default/grub"


# -- Boot Loader Specification entries -------------------------------------------------------


def parse_bls_entry(text: str, name: str) -> Entry:
    """One file of loader/entries: a word and its value a line (title, version, linux, ...)."""
    values: dict[str, str] = {}
    for line in text.splitlines():
        word, _, value = line.strip().partition(" ")
        if word and not word.startswith("#"):
            values.setdefault(word, value.strip())
    return Entry(
        values.get("title", ""),
        name.removesuffix(".conf"),
        values.get("linux", ""),
        "" if "rescue" in values.get("version", "") else values.get("version", ""),
    )


def _bls_entries(host: Host, folder: str) -> list[Entry]:
    """Entries below a loader folder, newest first. Raises PermissionError as Undecided."""
    try:
        names = [name for name in host.listdir(f"{folder}/entries") if name.endswith(".conf")]
        entries = [parse_bls_entry(host.read(f"{folder}/entries/{n}"), n) for n in names[:200]]
    except PermissionError:
        raise Undecided(f"{folder}/entries is readable by root only") from None
    return sorted(entries, key=lambda entry: release_key(entry.ident), reverse=True)


def _bls(host: Host, menu: Menu, environment: Mapping[str, str]) -> tuple[str, str]:
    entries = _bls_entries(host, "/boot/loader")
    if not entries:
        raise Undecided("the boot menu takes its entries from /boot/loader/entries: none there")
    entry, by_position = choose(
        Menu(entries + menu.entries, menu.defaults, odd=menu.odd), environment
    )
    if by_position:
        _one_machine(entries)
    return _release(host, entry), f"/boot/loader/entries/{entry.ident}.conf"


def _one_machine(entries: Sequence[Entry]) -> None:
    """Names sort by version only where they start alike. Raises Undecided."""
    owners = {entry.ident.partition("-")[0] for entry in entries}
    if len(owners) > 1 or any("+" in entry.ident for entry in entries):
        raise Undecided("boot entries of several systems: their order cannot be told")


# -- systemd-boot ----------------------------------------------------------------------------

_LOADER_VENDOR = "4a67b082-0a4c-41cf-b6c7-440b29bb8c4f"


def efi_text(host: Host, name: str) -> str:
    """An EFI variable of the boot loader interface: 4 bytes of attributes, then UTF-16."""
    try:
        data = host.read_bytes(f"/sys/firmware/efi/efivars/{name}-{_LOADER_VENDOR}", 4096)
    except OSError:
        return ""
    return data[4:].decode("utf-16-le", "replace").strip("\0").strip()


def _loader_folder(host: Host) -> str:
    """Where systemd-boot's loader.conf lies; "" where none is seen."""
    for place in ("/boot", "/efi", "/boot/efi"):
        try:
            host.stat(f"{place}/loader/loader.conf")
        except PermissionError:
            raise Undecided(f"{place}/loader is readable by root only") from None
        except OSError:
            continue
        return f"{place}/loader"
    return ""


def _systemd_boot(host: Host) -> tuple[str, str]:
    folder = _loader_folder(host)
    if not folder:
        raise Undecided("systemd-boot's loader.conf is not seen (mounted and readable by root?)")
    entries = _bls_entries(host, folder)
    unified = [
        name
        for name in host.listdir(f"{posixpath.dirname(folder)}/EFI/Linux")
        if name.lower().endswith(".efi")
    ]
    want = efi_text(host, "LoaderEntryOneShot") or efi_text(host, "LoaderEntryDefault")
    if not want:
        for line in host.read_or(f"{folder}/loader.conf").splitlines():
            word, _, value = line.strip().partition(" ")
            if word == "default":
                want = value.strip()
    if want:
        if want.startswith("@"):
            raise Undecided(f"systemd-boot's default is {want[:100]}")
        pattern = want.lower()
        fitting = [
            entry
            for entry in entries
            if fnmatchcase(f"{entry.ident}.conf".lower(), pattern)
            or fnmatchcase(entry.ident.lower(), pattern)
        ]
        if any(fnmatchcase(name.lower(), pattern) for name in unified) or not fitting:
            raise Undecided(f"systemd-boot's default is {want[:100]}: no plain kernel entry")
    else:
        if unified:
            raise Undecided("unified kernel images: their order cannot be told from names")
        fitting = entries
    if not fitting:
        raise Undecided("systemd-boot has no entries")
    if len(fitting) > 1:
        _one_machine(fitting)
    entry = fitting[0]
    return _release(host, entry), f"{folder}/entries/{entry.ident}.conf"
