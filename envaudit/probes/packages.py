"""Packages of the GPU stack and of the kernel, from the package managers' own files.

Read without a command and without root: dpkg's status file, rpm's SQLite database, pacman's
folder names, apk's index. Only what matters (`stack.WANTED`) is told: machines have thousands of
packages, and a fact for each would bury the few that explain something.
"""

from __future__ import annotations

import posixpath
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from typing import NamedTuple

from envaudit.host import CannotRun, Host
from envaudit.probes import Look, why
from envaudit.stack import wanted

_DRIVER_PREFIXES = ("nvidia", "libnvidia", "libcuda")

DATABASE_LIMIT_BYTES = 128 << 20

_DPKG_STATUS = "/var/lib/dpkg/status"
_DPKG_STATUS_D = "/var/lib/dpkg/status.d"
_DPKG_INFO = "/var/lib/dpkg/info"
_DPKG_FIRST = b"\nPackage: "
"""How a paragraph begins; dpkg writes this field first."""
_RPM_PLACES = ("/usr/lib/sysimage/rpm", "/var/lib/rpm")
_RPM_SQLITE = "rpmdb.sqlite"
_RPM_OLD = ("Packages.db", "Packages")
_RPM_TAGS = (1000, 1001, 1002, 1003, 1022)
"""Name, version, release, epoch, architecture."""
_RPM_FORMAT = r"%{NAME}\t%{EPOCH}\t%{VERSION}\t%{RELEASE}\t%{ARCH}\n"
_PACMAN = "/var/lib/pacman/local"
_APK = ("/lib/apk/db/installed", "/usr/lib/apk/db/installed")


class Package(NamedTuple):
    """One installed package, its version as its manager writes it."""

    name: str
    version: str
    arch: str = ""
    held: bool = False


class Found(NamedTuple):
    """What one database holds."""

    packages: list[Package]
    native: str
    """Architecture whose packages go by their plain name; "" where there are no others."""
    source: str


def look(look: Look) -> None:
    """Tell the packages that matter from every database there is."""
    found = []
    for source, read in (
        (_DPKG_STATUS, _dpkg),
        (_DPKG_STATUS_D, _distroless),
        ("rpm", _rpm),
        (_PACMAN, _pacman),
        (_APK[0], _apk),
    ):
        try:
            answer = read(look.host)
        except (OSError, ValueError, CannotRun) as problem:
            found.append(source)
            look.gap("pkg.*", f"{source}: {why(problem)}")
            continue
        if answer is not None:
            found.append(source)
            _tell(look, answer)
    if not found:
        look.gap("pkg.*", "no database of dpkg, rpm, pacman or apk")


def _tell(look: Look, found: Found) -> None:
    # Kernels of rpm are installed side by side under one name: the last one installed is told.
    for package in found.packages:
        foreign = package.arch not in ("", "all", "noarch", "any", found.native)
        name = f"{package.name}:{package.arch}" if foreign and found.native else package.name
        look.add(f"pkg.{name}.version", package.version, found.source)
        if package.held:
            look.add(f"pkg.{name}.held", True, found.source)


# -- dpkg ------------------------------------------------------------------------------------


def _dpkg(host: Host) -> Found | None:
    if not host.exists(_DPKG_STATUS):
        return None
    data = host.read_bytes(_DPKG_STATUS, DATABASE_LIMIT_BYTES)
    return Found(dpkg_packages(data), dpkg_arch(data), _DPKG_STATUS)


def _distroless(host: Host) -> Found | None:
    """Images without dpkg keep one paragraph a package in a folder."""
    names = [n for n in host.listdir(_DPKG_STATUS_D) if not n.endswith(".md5sums")]
    data = b"\n\n".join(host.read_bytes(f"{_DPKG_STATUS_D}/{name}") for name in names)
    if not data:
        return None
    return Found(dpkg_packages(data), "", _DPKG_STATUS_D)


def dpkg_packages(data: bytes) -> list[Package]:
    """The installed packages that matter, from dpkg's status file.

        Package: libcuda1
        Status: hold ok installed
        Architecture: amd64
        Version: 535.183.01-1~deb12u1

    Paragraphs are parted by empty lines. A package that was unpacked and not configured counts:
    its files are there. One of which only configuration is left (config-files) does not.
    """
    found = []
    data = b"\n" + data
    at = data.find(_DPKG_FIRST)
    while at >= 0:
        start = at + len(_DPKG_FIRST)
        name = data[start : _find(data, b"\n", start)].decode("utf-8", "replace").strip()
        if wanted(name):
            package = _dpkg_package(name, _fields(data[start : _find(data, b"\n\n", start)]))
            if package is not None:
                found.append(package)
        at = data.find(_DPKG_FIRST, start)
    return found


def _dpkg_package(name: str, fields: dict[str, str]) -> Package | None:
    selection, _, state = fields.get("Status", "install ok installed").partition(" ok ")
    version = fields.get("Version", "")
    if not version or state in ("", "not-installed", "config-files"):
        return None
    return Package(name, version, fields.get("Architecture", ""), selection == "hold")


def dpkg_arch(data: bytes) -> str:
    """The architecture of this dpkg: that of the package dpkg itself, else of the C library."""
    for own in (b"dpkg", b"libc6"):
        at = (b"\n" + data).find(_DPKG_FIRST + own + b"\n")
        if at >= 0:
            return _fields(data[at : _find(data, b"\n\n", at)]).get("Architecture", "")
    return ""


def _find(data: bytes, mark: bytes, start: int) -> int:
    """Where a mark stands, or the end of the data."""
    found = data.find(mark, start)
    return found if found >= 0 else len(data)


def _fields(paragraph: bytes) -> dict[str, str]:
    """The fields of one paragraph that stand on one line."""
    fields: dict[str, str] = {}
    for line in paragraph.decode("utf-8", "replace").split("\n"):
        key, colon, value = line.partition(":")
        if colon and not line.startswith((" ", "\t")):
            fields.setdefault(key, value.strip())
    return fields


# -- rpm -------------------------------------------------------------------------------------


def _rpm(host: Host) -> Found | None:
    for place in _RPM_PLACES:
        path = f"{place}/{_RPM_SQLITE}"
        if host.exists(path):
            packages = rpm_packages(host.at(path))
            return Found(_held(packages, _locked(host)), _native(packages), path)
    for place in _RPM_PLACES:
        for name in _RPM_OLD:
            if host.exists(f"{place}/{name}"):
                return _rpm_command(host, f"{place}/{name}")
    return None


def rpm_packages(path: str) -> list[Package]:
    """The installed packages that matter, from rpm's SQLite database, in the order of installation.

    Raises ValueError where it is none. Table Name says which number has a header blob in table
    Packages; only the few blobs that are wanted are read.
    """
    found = []
    with _sqlite(path) as query:
        for name, number in query("SELECT key, hnum FROM Name ORDER BY hnum", ()):
            if isinstance(name, str) and wanted(name):
                for (blob,) in query("SELECT blob FROM Packages WHERE hnum = ?", (number,)):
                    package = rpm_header(blob) if isinstance(blob, bytes) else None
                    if package is not None:
                        found.append(package)
    return found


@contextmanager
def _sqlite(path: str) -> Iterator[Callable[[str, tuple[object, ...]], list[tuple[object, ...]]]]:
    """Ask an SQLite file as it lies: no locks, no journal, nothing written beside it."""
    import sqlite3
    from urllib.parse import quote

    try:
        connection = sqlite3.connect(f"file:{quote(path)}?mode=ro&immutable=1", uri=True)
        try:
            yield lambda text, values: connection.execute(text, values).fetchall()
        finally:
            connection.close()
    except sqlite3.Error as problem:
        raise ValueError(f"not readable as SQLite: {problem}") from problem


def rpm_header(blob: bytes) -> Package | None:
    """Name, [epoch:]version-release and architecture from a header of the rpm database.

    Two big-endian counts (entries, bytes of data), the entries of four numbers each (tag, type,
    offset, count), then the data: text ends with NUL (type 6), numbers have four bytes (type 4).
    """
    if len(blob) < 8:
        return None
    entries = struct.unpack_from(">I", blob)[0]
    data = 8 + 16 * entries
    if data > len(blob):
        return None
    texts: dict[int, str] = {}
    for tag, kind, offset, _ in struct.iter_unpack(">4I", blob[8:data]):
        at = data + offset
        if tag not in _RPM_TAGS or at >= len(blob):
            continue
        if kind == 6:
            texts[tag] = blob[at : _find(blob, b"\0", at)].decode("utf-8", "replace")
        elif kind == 4 and at + 4 <= len(blob):
            texts[tag] = str(struct.unpack_from(">I", blob, at)[0])
    name, version, release, epoch, arch = (texts.get(tag, "") for tag in _RPM_TAGS)
    if not name or not version:
        return None
    return Package(name, _evr(epoch, version, release), arch)


def _evr(epoch: str, version: str, release: str) -> str:
    return (f"{epoch}:" if epoch else "") + version + (f"-{release}" if release else "")


def _rpm_command(host: Host, database: str) -> Found:
    """Berkeley DB and ndb have no reader in the standard library: rpm itself is asked once."""
    rpm = host.which("rpm")
    if rpm is None:
        raise CannotRun(f"{database} is no SQLite file, and there is no rpm command to ask")
    done = host.run([rpm, "-qa", "--qf", _RPM_FORMAT], seconds=3.0)
    if done.status != "ok" or done.code != 0:
        raise CannotRun(f"rpm -qa: {done.status}, exit status {done.code}: {done.stderr[:200]}")
    packages = []
    for line in done.stdout.splitlines():
        fields = line.split("\t")
        if len(fields) == 5 and wanted(fields[0]):
            name, epoch, version, release, arch = fields
            packages.append(
                Package(name, _evr("" if epoch == "(none)" else epoch, version, release), arch)
            )
    return Found(_held(packages, _locked(host)), _native(packages), "rpm -qa")


def _native(packages: list[Package]) -> str:
    """The architecture of the machine: where there are two, the 32-bit one is the guest."""
    arches = [package.arch for package in packages if package.arch != "noarch"]
    return max(sorted(set(arches)), key=lambda arch: ("64" in arch, arches.count(arch)), default="")


def _locked(host: Host) -> list[str]:
    """Name patterns that dnf's versionlock plugin or zypper keeps from upgrades.

    versionlock.list: `nvidia-driver-3:550.54.14-1.el9.*`; zypp's locks: `solvable_name: nvidia*`.
    """
    lines = [
        line.strip()
        for path in ("/etc/dnf/plugins/versionlock.list", "/etc/yum/pluginconf.d/versionlock.list")
        for line in host.read_or(path).splitlines()
    ]
    found = [line.rsplit("-", 2)[0] for line in lines if line and line[0] not in "#!"]
    for line in host.read_or("/etc/zypp/locks").splitlines():
        key, _, value = line.partition(":")
        if key.strip() == "solvable_name":
            found.append(value.strip())
    return found


def _held(packages: list[Package], patterns: list[str]) -> list[Package]:
    return [
        package._replace(held=any(fnmatchcase(package.name, pattern) for pattern in patterns))
        for package in packages
    ]


# -- pacman and apk --------------------------------------------------------------------------


def _pacman(host: Host) -> Found | None:
    """Folders are named NAME-VERSION-RELEASE; what is in them need not be read."""
    packages = []
    folders = host.listdir(_PACMAN)
    for folder in folders:
        parts = folder.rsplit("-", 2)
        if len(parts) == 3 and wanted(parts[0]):
            packages.append(Package(parts[0], f"{parts[1]}-{parts[2]}"))
    if not folders:
        return None
    ignored = []
    for line in host.read_or("/etc/pacman.conf").splitlines():
        key, _, value = line.partition("=")
        if key.strip() == "IgnorePkg":
            ignored += value.split()
    return Found(_held(packages, ignored), "", _PACMAN)


def _apk(host: Host) -> Found | None:
    path = next((path for path in _APK if host.exists(path)), None)
    if path is None:
        return None
    return Found(apk_packages(host.read_bytes(path, DATABASE_LIMIT_BYTES)), "", path)


def apk_packages(data: bytes) -> list[Package]:
    """The packages that matter, from apk's index: paragraphs with `P:name` and `V:version`."""
    found = []
    for paragraph in data.split(b"\n\n"):
        fields = dict(
            line.split(":", 1)
            for line in paragraph.decode("utf-8", "replace").split("\n")
            if line[1:2] == ":" and line[0] in "PV"
        )
        if fields.get("V") and wanted(fields.get("P", "")):
            found.append(Package(fields["P"], fields["V"]))
    return found


# -- whose file ------------------------------------------------------------------------------


def owner(host: Host, path: str) -> tuple[str, str] | None:
    """Manager and its record of a driver file, by the file's real path; None for nobody's.

    Asks the lists of the few packages that may have it, by the file's base name: the folders in
    a list may be written with other links than the real path. Raises OSError and ValueError.
    """
    base = posixpath.basename(path)
    for name in host.listdir(_DPKG_INFO):
        if name.startswith(_DRIVER_PREFIXES) and name.endswith(".list"):
            record = f"{_DPKG_INFO}/{name}"
            if f"/{base}\n".encode() in host.read_bytes(record):
                return "apt", record
    for place in _RPM_PLACES:
        record = f"{place}/{_RPM_SQLITE}"
        if host.exists(record):
            with _sqlite(host.at(record)) as query:
                if query("SELECT hnum FROM Basenames WHERE key = ? LIMIT 1", (base,)):
                    return "zypper" if host.isdir("/etc/zypp") else "dnf", record
    for name in host.listdir(_PACMAN):
        if name.startswith(_DRIVER_PREFIXES):
            record = f"{_PACMAN}/{name}/files"
            if f"/{base}\n" in host.read_or(record):
                return "pacman", record
    for record in _APK:
        if f"\nR:{base}\n" in host.read_or(record):
            return "apk", record
    return None
