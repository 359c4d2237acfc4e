"""What package managers of operating systems print: installed packages of the GPU stack.

    ii  libnccl2:amd64  2.18.3-1+cuda12.1  amd64  NVIDIA ...           dpkg -l
    libcudnn9-cuda-12/now 9.1.0.70-1 amd64 [installed,local]           apt list --installed
    libnccl2:                                                          apt-cache policy
      Installed: 2.18.3-1+cuda12.1
    nvidia-driver-cuda-libs-550.54.14-1.el9.x86_64                     rpm -qa
    nvidia-driver.x86_64    3:550.54.14-1.el9    @cuda-rhel9           dnf list installed
    nvidia-dkms 550.54.14-1                                            pacman -Q
    i+ | nvidia-compute-G06 | package | 550.54.14-1 | x86_64 | cuda    zypper se -is
    Upgrade: libnvidia-compute-460:amd64 (460.56, 460.73.01)           apt's history.log

Only packages that matter are told (`stack.WANTED`), by the versions that are installed: what a
repository offers, and what is left of a removed package, are not. Of a log the last line counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from envaudit.importers import Draft, Imported, Section
from envaudit.patterns import regex
from envaudit.stack import wanted

_LIMIT = 4 << 20
_LINE_LIMIT = 20_000
"""Longest line: a history.log lists a whole upgrade on one."""

_NAME = r"([a-zA-Z0-9][a-zA-Z0-9+._-]{0,98})"
_ARCH = r"(?::([a-z0-9-]{2,12}))?"
_VERSION = r"([0-9][A-Za-z0-9.+~:_^-]{0,99})"
_RPM_ARCH = r"(x86_64|noarch|aarch64|i[3-6]86|ppc64le|s390x|sbsa)"

_DPKG = regex(
    rf"[ \t]{{0,4}}([uirphUIRPH][ncHUFWtiA])[ R]?[ \t]+{_NAME}{_ARCH}[ \t]+{_VERSION}(?:[ \t]|\Z)"
)
_DPKG_UNKNOWN = regex(rf"[ \t]{{0,4}}[up]n[ \t]+{_NAME}{_ARCH}[ \t]+<none>")
_DPKG_RULE = regex(r"\+\+\+-(=+)-(=+)-")
_APT_LIST = regex(
    rf"[ \t]{{0,4}}{_NAME}/([^ \t\n]{{1,200}})[ \t]+{_VERSION}"
    r"[ \t]+([a-z0-9-]{2,12})[ \t]*\[([^\]\n]{1,120})\]?"
)
_APT_FROM = regex(rf":[ ]?{_VERSION}\Z")
_POLICY = regex(rf"{_NAME}{_ARCH}:\Z")
_POLICY_FIRST = regex(r"  [^ \t:\uff1a][^:\uff1a\n]{0,40}[:\uff1a][ ]{0,60}(\S{1,100})")
_SHOW = regex(rf"Package: {_NAME}\Z")
_SETTING_UP = regex(rf"Setting up {_NAME}{_ARCH} \({_VERSION}\) \.\.\.")
_NEVRA = regex(
    rf"{_NAME}-(?:([0-9]{{1,3}}):)?([0-9][A-Za-z0-9.+~_^]{{0,60}})-([0-9A-Za-z][A-Za-z0-9.+~_^]{{0,60}}?)"
    rf"\.{_RPM_ARCH}(?=[ \t]|\Z)"
)
_RPM_MISSING = regex(rf"package {_NAME} is not installed\Z")
_RPM_FIELD = regex(
    r"(Name|Epoch|Version|Release|Architecture|Install Date|Repository|From repo)[ \t]*: (.*)\Z"
)
_DNF = regex(
    rf"{_NAME}\.{_RPM_ARCH}[ \t]+((?:[0-9]{{1,3}}:)?[0-9][A-Za-z0-9.+~_^]{{0,60}}"
    r"-[0-9A-Za-z][A-Za-z0-9.+~_^]{0,60})"
    r"[ \t]+(@?[A-Za-z<@][^ \t\n]{0,99})\Z"
)
_DNF_NAME = regex(rf"{_NAME}\.{_RPM_ARCH}\Z")
_DNF_INSTALLED = regex(
    r"(?:Installed|Installierte|Paquets install|Paquetes instal|Pacchetti inst)\w*.*\Z",
    re.IGNORECASE,
)
_DNF_OTHER = regex(
    r"(?:Available|Verf\u00fcgbare|Upgradable|Obsoleting|Extra|Recently) ?\w*.*\Z", re.IGNORECASE
)
_PACMAN = regex(
    r"([a-z0-9@_+][a-z0-9@._+-]{0,98}) ((?:\d{1,3}:)?[A-Za-z0-9.+_~]{1,80}-\d{1,4}(?:\.\d{1,4})?)\Z"
)
_PACMAN_SEARCH = regex(
    r"([a-z][a-z0-9_-]{1,40})/([a-z0-9@_+][a-z0-9@._+-]{0,98}) "
    r"([^ \t\n]{1,80}-\d{1,4}(?:\.\d{1,4})?)(?: \([^)\n]{1,100}\))?"
    r"(?: \[([^\]\n]{1,100})\])?[ \t]*\Z"
)
_APK = regex(rf"{_NAME}-([0-9][A-Za-z0-9._]{{0,40}}-r\d{{1,4}})(?:[ \t]|\Z)")
_SNAP = regex(rf"{_NAME}[ \t]+v?{_VERSION}[ \t]+\d{{1,7}}[ \t]+\S{{1,60}}[ \t]+\S")
_HISTORY = regex(r"(Install|Upgrade|Downgrade|Reinstall|Remove|Purge): (.*)\Z")
_HISTORY_ENTRY = regex(rf"{_NAME}{_ARCH} \(([^()\n]{{1,200}})\)")
_DPKG_LOG = regex(
    rf"\d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d status (\S{{1,30}}) {_NAME}{_ARCH} (\S{{1,100}})\Z"
)
_DPKG_LOG_MOVE = regex(
    rf"\d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d (install|upgrade|remove|purge) {_NAME}{_ARCH}"
    r" (\S{1,100}) (\S{1,100})\Z"
)
_RPM_LOG = regex(
    r"(?:\S{1,40} SUBDEBUG |[A-Z][a-z]{2} +\d{1,2} \d\d:\d\d:\d\d )"
    r"(Installed|Upgrade|Updated|Downgrade|Reinstall|Erased?|Removed): (\S{3,200})\Z"
)
_DNF_HISTORY = regex(
    r"[ \t]{1,12}(?:Install|Dep-Install|Upgrade|Downgrade|Reinstall|Removed?|Erase)[ \t]+"
    r"(\S{3,200})[ \t]+@\S"
)
_ZYPP = regex(
    rf"\d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d\|(install|remove )\|{_NAME}\|([0-9][^|\s]{{0,99}})\|"
)
_ALPM = regex(
    r"\[[^\]\n]{1,40}\] \[ALPM\] (installed|upgraded|downgraded|reinstalled|removed) "
    r"([a-z0-9@_+][a-z0-9@._+-]{0,98}) \((?:[^()\n]{1,100} -> )?([^()\s]{1,100})\)"
)

_FABRIC_MANAGER = regex(r"nvidia-fabric-?manager(?:-\d+)?\Z")
_TOOLKIT = regex(r"nvidia-container-toolkit(?:-base)?\Z")
_LIBCUDA = regex(
    r"(?:libcuda1|libnvidia-compute(?:-\d+)?(?:-server)?|nvidia-(?:\d+xx-|lts-)?utils|"
    r"nvidia-driver-cuda-libs|nvidia-driver-libs|xorg-x11-drv-nvidia-cuda-libs|"
    r"nvidia-compute-?G\d+)\Z"
)
"""Packages that hold libcuda, the driver's library."""
_DRIVER = regex(
    r"(?:nvidia-driver(?:-\d+)?(?:-server)?(?:-open)?|nvidia-dkms(?:-\d+)?(?:-server)?(?:-open)?|"
    r"libnvidia-[a-z0-9]+-\d+(?:-server)?|nvidia-kernel-dkms|nvidia-open-dkms|nvidia-headless-\d+\S*|"
    r"nvidia-(?:kernel-common|kernel-source|utils|compute-utils)-\d+\S*|nvidia-kmod|kmod-nvidia\S*)\Z"
)
"""Other packages of the driver, which have its release too."""
_RELEASE = regex(r"(?:\d+:)?(\d+(?:\.\d+)+)")

_HINTS = (
    *(
        "ii ",
        "hi ",
        "iU ",
        "iF ",
        "ri ",
        "rc ",
        "un ",
        "/now ",
        ",now ",
        "[installed",
        "upgradable",
    ),
    *(".x86_64", ".noarch", ".aarch64", "grade: ", "nstall: ", "emove: ", "Installed: "),
    *(" status ", "[ALPM]", "Setting up ", "i | ", "i+ | ", "Version table", "Package: ", "-r"),
    *("grade  ", "nstall  ", "|install|", "|remove |", "Removed  ", "Erase  "),
    *("Version     :", "Version         :", "local/", "]: (none)", "(none)", "is not installed"),
)
_PLAIN = regex(r"^(?:nvidia|cuda|cudnn|nccl|linux)[a-z0-9-]{0,60} [0-9]", re.MULTILINE)
_COMMAND = regex(
    r"\b(?:dpkg|dpkg-query|apt|apt-cache|apt-get|apt-mark|aptitude|rpm|dnf|yum|pacman|yay|paru|zypper|apk|snap)\b"
)


class _Package(NamedTuple):
    """One package as one line tells it; without a version it is not there."""

    name: str
    version: str
    line: int
    source: str
    held: bool = False
    later: bool = False
    """A line of a log: what was told before is over."""


def recognises(section: Section) -> bool:
    """Whether the text can hold a line of a package manager."""
    if _COMMAND.search(section.command[:2000]):
        return True
    text = section.text[:_LIMIT]
    return any(hint in text for hint in _HINTS) or _PLAIN.search(text) is not None


def parse(section: Section) -> Imported:
    """Installed packages that matter, and the versions of what they bring."""
    draft = Draft()
    lines = [line.rstrip() for line in section.text[:_LIMIT].split("\n")]
    command = section.command[:4000]
    packages: dict[str, _Package] = {}
    for package in _packages(draft, lines, command):
        name = package.name
        if not wanted(name.partition(":")[0]):
            continue
        draft.read(package.line)
        if name not in packages or package.later:
            packages[name] = package
    for name, package in packages.items():
        if package.version:
            draft.add(f"pkg.{name}.version", package.version, package.source, package.line)
            if package.held:
                draft.add(f"pkg.{name}.held", True, package.source, package.line)
        else:
            draft.absent(f"pkg.{name}.version", package.line)
    if "showhold" in command:
        _held(draft, lines)
    _implied(draft, list(packages.values()))
    return draft.done()


def _packages(draft: Draft, lines: list[str], command: str) -> Iterator[_Package]:
    yield from _dpkg(draft, lines)
    yield from _apt(lines)
    yield from _rpm(lines, command)
    yield from _dnf(lines, command)
    yield from _columns(lines, command)
    yield from _pacman(lines, command)
    yield from _logs(lines)


def _held(draft: Draft, lines: list[str]) -> None:
    """apt-mark showhold: one name a line."""
    for number, line in enumerate(lines, 1):
        name = line.strip().partition(":")[0]
        if re.fullmatch(_NAME, name) and wanted(name):
            draft.add(f"pkg.{name}.held", True, "apt-mark showhold", number)


def _implied(draft: Draft, packages: list[_Package]) -> None:
    """Versions of the fabric manager, the container toolkit and the driver, by their packages."""
    for patterns, fact in (
        ((_FABRIC_MANAGER,), "fabricmanager.version"),
        ((_TOOLKIT,), "container.toolkit.version"),
        ((_LIBCUDA, _DRIVER), "driver.package.version"),
    ):
        found: dict[str, _Package] = {}
        for package in packages:
            release = _RELEASE.match(package.version) if package.version else None
            name = package.name.partition(":")[0]
            if release and any(pattern.match(name) for pattern in patterns):
                found.setdefault(release[1], package)
        if len(found) > 1:
            told = " and ".join(f"{p.name} {p.version}" for p in found.values())
            draft.gap(fact, f"{told} are installed")
        for version, package in found.items():
            if len(found) == 1:
                source = f"{package.source}: {package.name} {package.version}"
                draft.add(fact, version, source, package.line)


# -- Debian ----------------------------------------------------------------------------------


def _name(name: str, arch: str | None) -> str:
    """A package of a foreign architecture has it in its name, as the probe tells it."""
    return f"{name}:{arch}" if arch in ("i386", "armhf") else name


def _dpkg(draft: Draft, lines: list[str]) -> Iterator[_Package]:
    """Rows of dpkg -l.

    The first letter is what is wanted (h: hold), the second what is: i installed, U unpacked, F
    half configured, H half installed, W and t triggers; c leaves the configuration alone, n
    nothing. On a narrow terminal old dpkg cuts names and versions to its columns.
    """
    widths = (0, 0)
    for number, line in enumerate(lines, 1):
        rule = _DPKG_RULE.match(line)
        if rule:
            widths = len(rule[1]), len(rule[2])
            continue
        unknown = _DPKG_UNKNOWN.match(line) if len(line) < 1000 else None
        if unknown:
            yield _Package(_name(unknown[1], unknown[2]), "", number, "dpkg -l")
        found = _DPKG.match(line) if len(line) < 1000 else None
        if found is None or found[1][1] in "nc":
            continue
        state, name, arch, version = found.groups()
        shown = len(name) + (len(arch) + 1 if arch else 0)
        if widths[0] and widths[0] <= 14 and shown >= widths[0]:
            draft.gap("pkg.*", "dpkg cut the names to the width of a terminal")
            continue
        if widths[1] and widths[1] <= 14 and len(version) >= widths[1]:
            draft.gap(f"pkg.{name}.version", "dpkg cut the version to the width of a terminal")
            continue
        yield _Package(_name(name, arch), version, number, "dpkg -l", state[0] in "hH")


def _apt(lines: list[str]) -> Iterator[_Package]:
    """apt list, apt-cache policy, dpkg -s, and what apt says while it installs.

    "now" among the suites marks the installed version, in whatever language the rest is.
    """
    for number, line in enumerate(lines, 1):
        if len(line) > 1000 or not line:
            continue
        found = _APT_LIST.match(line) if "/" in line and "[" in line else None
        if found:
            name, suites, version, arch, state = found.groups()
            before = _APT_FROM.search(state)
            if "now" in suites.split(","):
                if "residual" not in state:
                    yield _Package(_name(name, arch), version, number, "apt list")
            elif before:
                yield _Package(_name(name, arch), before[1], number, "apt list")
            continue
        policy = _POLICY.match(line) if line.endswith(":") else None
        if policy and number + 1 < len(lines):
            first = _POLICY_FIRST.match(lines[number])
            second = _POLICY_FIRST.match(lines[number + 1])
            if first and second:
                version = "" if first[1][0] in "(\uff08" else first[1]
                yield _Package(_name(policy[1], policy[2]), version, number + 1, "apt-cache policy")
            continue
        show = _SHOW.match(line)
        if show:
            fields: dict[str, str] = {}
            for each in lines[number : number + 40]:
                key, colon, value = each.partition(": ")
                if not each:
                    break
                if colon and not each.startswith(" "):
                    fields.setdefault(key, value.strip())
            selection, ok, state = fields.get("Status", "").partition(" ok ")
            if ok and fields.get("Version") and state not in ("not-installed", "config-files"):
                held = selection == "hold"
                yield _Package(show[1], fields["Version"], number, "dpkg -s", held)
            continue
        done = _SETTING_UP.match(line)
        if done:
            yield _Package(_name(done[1], done[2]), done[3], number, "apt install", later=True)


# -- rpm -------------------------------------------------------------------------------------


def _rpm(lines: list[str], command: str) -> Iterator[_Package]:
    """rpm -qa and rpm -qi: name, [epoch:]version-release and architecture in one word."""
    asked = re.search(r"\brpm\b", command) is not None
    for number, line in enumerate(lines, 1):
        if len(line) > 600:
            continue
        found = _NEVRA.match(line.strip() if asked else line)
        if found and (asked or found.end() == len(line)):
            name, epoch, version, release, _ = found.groups()
            yield _Package(name, _evr(epoch, version, release), number, "rpm -qa")
        missing = _RPM_MISSING.match(line)
        if missing:
            yield _Package(missing[1], "", number, "rpm -q")
        if line.startswith("Name ") and (first := _RPM_FIELD.match(line)) is not None:
            fields = {}
            for each in lines[number - 1 : number + 30]:
                field = _RPM_FIELD.match(each)
                if field and field[1] not in fields:
                    fields[field[1]] = field[2].strip()
            installed = "Install Date" in fields or "From repo" in fields
            if installed and {"Version", "Release"} <= fields.keys():
                epoch = fields.get("Epoch", "")
                epoch = epoch if epoch.isdigit() else ""
                version = _evr(epoch, fields["Version"], fields["Release"])
                yield _Package(first[2].strip(), version, number, "rpm -qi")


def _evr(epoch: str | None, version: str, release: str) -> str:
    return (f"{epoch}:" if epoch else "") + f"{version}-{release}"


def _dnf(lines: list[str], command: str) -> Iterator[_Package]:
    """dnf and yum list installed; a long name stands on a line of its own."""
    installed = "installed" in command
    pending = ""
    for number, line in enumerate(lines, 1):
        if len(line) > 600:
            continue
        bare = line.strip()
        if _DNF_INSTALLED.match(bare) and "." not in bare:
            installed = True
        elif _DNF_OTHER.match(bare) and "." not in bare:
            installed = False
        found = _DNF.match(f"{pending} {bare}" if pending and line[:1] in " \t" else bare)
        pending = ""
        if found:
            repo = found[4]
            if repo.startswith("@") or repo == "installed" or installed:
                yield _Package(found[1], found[3], number, "dnf list installed")
        elif _DNF_NAME.match(bare):
            pending = bare


# -- others ----------------------------------------------------------------------------------


def _columns(lines: list[str], command: str) -> Iterator[_Package]:
    """zypper's table, apk's words and lists, snap's table, dpkg-query -W."""
    asked_apk = re.search(r"\bapk\b", command) is not None
    asked_snap = re.search(r"\bsnap\b", command) is not None
    asked_query = re.search(r"\bdpkg-query\b", command) is not None
    columns: list[str] = []
    for number, line in enumerate(lines, 1):
        if len(line) > 1000:
            continue
        if " | " in line:
            cells = [cell.strip() for cell in line.split("|")]
            if cells[0] == "S" and "Version" in cells and "Name" in cells:
                columns = cells
            elif columns and len(cells) == len(columns) and cells[0] in ("i", "i+", "il", "i+l"):
                row = dict(zip(columns, cells, strict=True))
                if row.get("Type", "package") == "package" and re.fullmatch(
                    _VERSION, row["Version"]
                ):
                    held = cells[0].endswith("l")
                    yield _Package(row["Name"], row["Version"], number, "zypper search", held)
        elif "-r" in line and (asked_apk or "[installed]" in line):
            found = _APK.match(line)
            if found:
                yield _Package(found[1], found[2], number, "apk info")
        elif asked_snap:
            found = _SNAP.match(line)
            if found:
                yield _Package(found[1], found[2], number, "snap list")
        elif asked_query:
            found = re.match(rf"{_NAME}{_ARCH}[ \t]+{_VERSION}\Z", line)
            if found:
                yield _Package(_name(found[1], found[2]), found[3], number, "dpkg-query -W")


def _pacman(lines: list[str], command: str) -> Iterator[_Package]:
    """pacman -Q, -Qs and what -Ss marks as installed; -Qi."""
    asked = re.search(r"\b(?:pacman|yay|paru)\b", command) is not None
    run: list[_Package] = []
    for number, line in enumerate([*lines, ""], 1):
        found = _PACMAN.match(line) if len(line) < 300 else None
        if found:
            run.append(_Package(found[1], found[2], number, "pacman -Q"))
            continue
        if asked or (len(run) > 1 and any(wanted(each.name) for each in run)):
            yield from run
        run = []
        searched = _PACMAN_SEARCH.match(line) if "/" in line and len(line) < 400 else None
        if searched and (asked or searched[1] == "local"):
            repository, name, version, mark = searched.groups()
            if repository == "local" or mark:
                # [installed], [installed: 550.67-1] where the repository has another
                other = re.search(r":[ ]?(\S+)\Z", mark or "")
                yield _Package(name, other[1] if other else version, number, "pacman -Ss")
        if line.startswith("Name ") and (field := _RPM_FIELD.match(line)) is not None and asked:
            for each in lines[number : number + 3]:
                version_field = _RPM_FIELD.match(each)
                if version_field and version_field[1] == "Version":
                    yield _Package(
                        field[2].strip(), version_field[2].strip(), number + 1, "pacman -Qi"
                    )
                    break


# -- logs ------------------------------------------------------------------------------------


def _logs(lines: list[str]) -> Iterator[_Package]:
    """Logs of apt, dpkg, dnf and pacman, in their order: what the last line leaves installed."""
    for number, line in enumerate(lines, 1):
        if not line or len(line) > _LINE_LIMIT:
            continue
        if ": " in line and (found := _HISTORY.match(line)) is not None:
            for name, arch, told in _HISTORY_ENTRY.findall(found[2]):
                versions = [each.strip() for each in told.split(",")]
                gone = found[1] in ("Remove", "Purge")
                changed = found[1] in ("Upgrade", "Downgrade") and len(versions) > 1
                version = "" if gone else versions[1 if changed else 0]
                if gone or re.fullmatch(_VERSION, version):
                    yield _Package(
                        _name(name, arch), version, number, "apt history.log", later=True
                    )
            continue
        if line[:1].isdigit() and len(line) < 400:
            status = _DPKG_LOG.match(line)
            if status and status[1] == "installed":
                yield _Package(
                    _name(status[2], status[3]), status[4], number, "dpkg.log", later=True
                )
            elif status and status[1] in ("not-installed", "config-files"):
                yield _Package(_name(status[2], status[3]), "", number, "dpkg.log", later=True)
            move = _DPKG_LOG_MOVE.match(line)
            if move and move[1] in ("install", "upgrade") and re.fullmatch(_VERSION, move[5]):
                yield _Package(_name(move[2], move[3]), move[5], number, "dpkg.log", later=True)
        done = _RPM_LOG.match(line) if len(line) < 400 else None
        if done:
            nevra = _NEVRA.match(done[2]) or _NEVRA.match(re.sub(r"\A(\d+):(\S+)", r"\2", done[2]))
            if nevra:
                gone = done[1] in ("Erase", "Erased", "Removed")
                version = "" if gone else _evr(nevra[2], nevra[3], nevra[4])
                yield _Package(nevra[1], version, number, "dnf.rpm.log", later=True)
        history = _DNF_HISTORY.match(line) if " @" in line and len(line) < 400 else None
        altered = _NEVRA.match(history[1]) if history else None
        if altered:
            gone = line.lstrip().startswith(("Remove", "Erase"))
            version = "" if gone else _evr(altered[2], altered[3], altered[4])
            yield _Package(altered[1], version, number, "dnf history", later=True)
        zypp = _ZYPP.match(line) if "|" in line and len(line) < 400 else None
        if zypp:
            version = zypp[3] if zypp[1] == "install" else ""
            yield _Package(zypp[2], version, number, "zypp history", later=True)
        moved = _ALPM.match(line) if "[ALPM]" in line and len(line) < 400 else None
        if moved:
            version = "" if moved[1] == "removed" else moved[3]
            yield _Package(moved[2], version, number, "pacman.log", later=True)
