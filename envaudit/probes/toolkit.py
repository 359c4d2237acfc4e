"""CUDA toolkits and the compilers a CUDA build would use.

The default toolkit is the one that builds take (torch.utils.cpp_extension and others): CUDA_HOME
or CUDA_PATH, else that of the nvcc on PATH, else /usr/local/cuda. Versions are nvcc's, which a
toolkit's files tell; programs are asked only where no file does.
"""

from __future__ import annotations

import contextlib
import posixpath
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from envaudit.elf import ElfFile, NotElf
from envaudit.host import CannotRun, Host
from envaudit.libversion import version_in_header, versions_in_json
from envaudit.probes import Look

ASK_SECONDS = 1.5
TEXT_LIMIT_BYTES = 1 << 18
TOOL_LIMIT_BYTES = 8 << 20
"""Most that is read of a toolkit's program for the version in it; fatbinary has 1.2 MB."""
TOOLKITS_LIMIT = 60
DPKG_STATUS = "/var/lib/dpkg/status"
DPKG_LIMIT_BYTES = 64 << 20


class Default(NamedTuple):
    """The toolkit that a build would take."""

    home: str
    """"" where it cannot be told."""
    nvcc: str
    """"" where it has none."""
    chosen_by: str


def look(look: Look) -> None:
    """Tell the default toolkit, all toolkits, and the host compilers."""
    default = find_default(look.host)
    programs = Programs(look.host)
    _part(look, "cuda.*", lambda: _toolkits(look, default, programs))
    _part(look, "gcc.*", lambda: _gcc(look, programs))
    _part(look, "clang.version", lambda: _clang(look, programs))
    _part(look, "cmake.version", lambda: _cmake(look, programs))
    _part(look, "nvcc.host_compiler.*", lambda: _host_compiler(look, default, programs))


def _part(look: Look, names: str, tell: Callable[[], None]) -> None:
    """Tell one part, so that the failure of one does not cost the others."""
    try:
        tell()
    except OSError as problem:
        look.gap(names, str(problem))


class Programs:
    """Asks each program of the machine once."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self._said: dict[tuple[str, ...], tuple[str, str]] = {}

    def ask(self, *argv: str) -> tuple[str, str]:
        """What a program prints; and the reason where it prints nothing of use."""
        if argv not in self._said:
            self._said[argv] = self._run(argv)
        return self._said[argv]

    def _run(self, argv: tuple[str, ...]) -> tuple[str, str]:
        try:
            done = self.host.run(argv, seconds=ASK_SECONDS)
        except CannotRun as reason:
            return "", str(reason)
        if done.status == "ok" and done.code == 0:
            return done.stdout, ""
        how = done.status if done.status != "ok" else f"exit status {done.code}"
        return "", f"{' '.join(argv)}: {how} {done.stderr.strip()[:120]}".strip()


# -- toolkits ----------------------------------------------------------------------------------


def find_default(host: Host) -> Default | None:
    """The toolkit that a build would take; None where there is none and nothing names one."""
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        home = host.env.get(variable, "").rstrip("/")
        if home:
            nvcc = f"{home}/bin/nvcc"
            return Default(home, nvcc if host.exists(nvcc) else "", variable)
    nvcc = host.which("nvcc") or ""
    if nvcc:
        real = started_by(host, nvcc)
        if not real:
            return Default("", nvcc, "nvcc on PATH, a script that does not say what it starts")
        home = posixpath.dirname(posixpath.dirname(nvcc))
        if f"{host.real(home)}/bin/nvcc" == real:
            return Default(home, nvcc, "nvcc on PATH")
        home = posixpath.dirname(posixpath.dirname(real))
        return Default(home, nvcc, f"nvcc on PATH, which starts {real}")
    if host.isdir("/usr/local/cuda"):
        nvcc = "/usr/local/cuda/bin/nvcc"
        return Default("/usr/local/cuda", nvcc if host.exists(nvcc) else "", "/usr/local/cuda")
    return None


def started_by(host: Host, path: str) -> str:
    """The program behind a command: links followed, and scripts that only start another.

    Distributions and images put such a script in a folder of PATH: exec /usr/lib/.../nvcc "$@"
    """
    for _ in range(4):
        path = host.real(path)
        try:
            start = host.read(path, 4096)
        except OSError:
            return ""
        if not start.startswith("#!"):
            return path
        match = re.search(r"^\s*(?:exec\s+)?[\"']?(/[^\s\"'$]+/nvcc)\b", start, re.MULTILINE)
        if match is None:
            return ""
        path = match.group(1)
    return ""


def _toolkits(look: Look, default: Default | None, programs: Programs) -> None:
    host = look.host
    found: dict[str, tuple[str, str]] = {}
    lines = []
    for home in _homes(look, default):
        with contextlib.suppress(OSError):  # a link that leads round in a circle
            real = host.real(home)
            if real in found or len(found) >= TOOLKITS_LIMIT or not host.isdir(real):
                continue
            found[real] = toolkit_version(programs, real)
            nvcc = host.exists(f"{real}/bin/nvcc")
            if nvcc or found[real][0]:
                without = "" if nvcc else " (without nvcc)"
                lines.append(f"{real} {found[real][0] or 'unknown'}{without}")
    if lines:
        look.add("cuda.toolkits", [*lines], "folders of toolkits and version files in them")
    if default is None:
        return
    if default.home:
        there = host.isdir(default.home)
        chosen = default.chosen_by if there else f"{default.chosen_by}, not there"
        look.add("cuda.home", f"{default.home} ({chosen})", default.chosen_by)
        version, source = found.get(host.real(default.home), ("", ""))
    else:
        look.gap("cuda.home", default.chosen_by)
        version, source = _ask_nvcc(programs, default.nvcc), f"{default.nvcc} --version"
    if not default.nvcc:
        return
    look.add("cuda.nvcc.path", default.nvcc, default.chosen_by)
    if version:
        look.add("cuda.toolkit.version", version, f"{source} ({default.chosen_by})")
        look.add("cuda.nvcc.version", version, source)
    else:
        for name in ("cuda.toolkit.version", "cuda.nvcc.version"):
            look.gap(name, f"nothing in {default.home or default.nvcc} tells its version")


def _homes(look: Look, default: Default | None) -> Iterator[str]:
    """Every folder that may be a toolkit."""
    host = look.host
    if default is not None and default.home:
        yield default.home
    yield from filter(None, (host.env.get(n, "") for n in ("CUDA_HOME", "CUDA_PATH", "CUDA_ROOT")))
    yield "/usr/local/cuda"
    for name in host.listdir("/usr/local"):
        if name.startswith("cuda-"):
            yield f"/usr/local/{name}"
    yield from ("/opt/cuda", "/usr/lib/nvidia-cuda-toolkit", "/usr/lib/cuda")
    sdk = "/opt/nvidia/hpc_sdk"
    for system in host.listdir(sdk):
        for release in host.listdir(f"{sdk}/{system}"):
            for cuda in host.listdir(f"{sdk}/{system}/{release}/cuda"):
                if cuda[:1].isdigit():
                    yield f"{sdk}/{system}/{release}/cuda/{cuda}"
    if look.target is None:
        return
    if host.exists(f"{look.target.prefix}/conda-meta"):
        yield look.target.prefix
    for folder in look.target.site_dirs:
        for name in host.listdir(f"{folder}/nvidia"):
            home = f"{folder}/nvidia/{name}"
            if host.exists(f"{home}/bin/nvcc") or host.exists(f"{home}/bin/ptxas"):
                yield home


def toolkit_version(programs: Programs, home: str) -> tuple[str, str]:
    """Version of the toolkit in a folder, as nvcc has it, and what told it; ("", "") for none.

    cuda.h, the last resort, knows major and minor only.
    """
    host = programs.host
    parts = versions_in_json(_text(host, f"{home}/version.json"))
    for key in ("cuda_nvcc", "cuda"):
        if parts.get(key):
            return parts[key], f"{home}/version.json"
    match = re.match(r"CUDA Version (\d+(?:\.\d+)+)", _text(host, f"{home}/version.txt"))
    if match:
        return match.group(1), f"{home}/version.txt"
    for name in host.listdir(f"{home}/conda-meta"):
        match = re.match(r"cuda-nvcc(?:-tools|-impl)?-(\d+(?:\.\d+)+)-.*\.json$", name)
        if match:
            return match.group(1), f"{home}/conda-meta/{name}"
    if posixpath.basename(posixpath.dirname(home)) == "nvidia":  # a wheel's folder
        packages = posixpath.dirname(posixpath.dirname(home))
        cuda = posixpath.basename(home).removeprefix("cu")
        for name in host.listdir(packages):
            match = re.match(r"nvidia_cuda_nvcc(?:_cu\d+)?-(\d+(?:\.\d+)+)\.dist-info$", name)
            if match and (not cuda.isdigit() or match.group(1).split(".")[0] == cuda):
                return match.group(1), f"{packages}/{name}"
    try:
        tool = f"{home}/bin/fatbinary"
        version = version_in_tool(host.read_bytes(tool, TOOL_LIMIT_BYTES))
        if version:
            return version, f"version text in {tool}"
    except OSError:
        pass
    nvcc = f"{home}/bin/nvcc"
    if host.exists(nvcc):
        version = _ask_nvcc(programs, nvcc)
        if version:
            return version, f"{nvcc} --version"
    targets = [f"targets/{name}/include" for name in host.listdir(f"{home}/targets")]
    for folder in ("include", *targets):
        version = version_in_header(_text(host, f"{home}/{folder}/cuda.h"), ("CUDA_VERSION",))
        if version:
            return version, f"{home}/{folder}/cuda.h"
    return "", ""


def version_in_tool(data: bytes) -> str:
    """The release in a program of the toolkit or in what it prints.

    Cuda compilation tools, release 13.0, V13.0.88
    """
    match = re.search(rb"release \d+\.\d+, V(\d+(?:\.\d+)+)", data)
    return match.group(1).decode() if match else ""


def _ask_nvcc(programs: Programs, nvcc: str) -> str:
    said, _ = programs.ask(nvcc, "--version")
    return version_in_tool(said.encode())


# -- compilers ---------------------------------------------------------------------------------


def _gcc(look: Look, programs: Programs) -> None:
    gcc = look.host.which("gcc")
    if gcc is None:
        return
    version, source = gcc_version(programs, gcc)
    if version:
        look.add("gcc.version", version, source)
        look.add("gcc.major", version.split(".")[0], source)
        return
    look.gap("gcc.version", source)
    major = major_in_name(look.host.real(gcc))
    if major:
        look.add("gcc.major", major, f"name of {look.host.real(gcc)}")
    else:
        look.gap("gcc.major", source)


def gcc_version(programs: Programs, path: str) -> tuple[str, str]:
    """Version of a gcc or g++ and the command that told it; "" and the reason where none did."""
    said, reason = programs.ask(path, "-dumpfullversion", "-dumpversion")
    if re.fullmatch(r"\d+(\.\d+)*", said.strip()):
        return said.strip(), f"{path} -dumpfullversion"
    return "", reason or f"{path} -dumpfullversion: {said.strip()[:80]!r}"


def major_in_name(path: str) -> str:
    """The major version in the name of a compiler: /usr/bin/x86_64-linux-gnu-gcc-12 gives 12."""
    match = re.search(r"(?:gcc|g\+\+|clang|clang\+\+)-(\d+)(?:\.\d+)*$", path)
    return match.group(1) if match else ""


def _clang(look: Look, programs: Programs) -> None:
    clang = look.host.which("clang")
    if clang is None:
        return
    version, source = clang_version(programs, clang)
    if version:
        look.add("clang.version", version, source)
    else:
        look.gap("clang.version", source)


def clang_version(programs: Programs, path: str) -> tuple[str, str]:
    """Version of a clang and what told it; "" and the reason where nothing did.

    Up to release 15 the folder of its headers is named by the full version: lib/clang/14.0.6.
    """
    host = programs.host
    home = posixpath.dirname(posixpath.dirname(host.real(path)))
    names = [name for name in host.listdir(f"{home}/lib/clang") if name.count(".") == 2]
    if len(names) == 1 and re.fullmatch(r"[\d.]+", names[0]):
        return names[0], f"{home}/lib/clang/{names[0]}"
    said, reason = programs.ask(path, "--version")
    match = re.search(r"clang version (\d+(?:\.\d+)+)", said)
    if match:
        return match.group(1), f"{path} --version"
    return "", reason or f"{path} --version: {said.strip()[:80]!r}"


def _cmake(look: Look, programs: Programs) -> None:
    host = look.host
    cmake = host.which("cmake")
    if cmake is None:
        return
    if host.read_bytes(cmake, 2) == b"#!":  # pip's, which would start Python to answer
        home = posixpath.dirname(posixpath.dirname(cmake))
        folders = list(look.target.site_dirs) if look.target else []
        for lib in host.listdir(f"{home}/lib"):
            folders.append(f"{home}/lib/{lib}/site-packages")
        for folder in folders:
            for name in host.listdir(folder):
                match = re.fullmatch(r"cmake-(\d+(?:\.\d+)+)\.dist-info", name)
                if match:
                    look.add("cmake.version", match.group(1), f"{folder}/{name}")
                    return
    version = packaged_cmake(host, cmake)
    if version:
        look.add("cmake.version", version, f"{DPKG_STATUS} and version text in {cmake}")
        return
    said, reason = programs.ask(cmake, "--version")
    match = re.search(r"cmake version (\d+(?:\.\d+)+)", said)
    if match:
        look.add("cmake.version", match.group(1), f"{cmake} --version")
        return
    modules = f"{posixpath.dirname(posixpath.dirname(host.real(cmake)))}/share"
    names = [n for n in host.listdir(modules) if re.fullmatch(r"cmake-\d+\.\d+", n)]
    if len(names) == 1:
        look.add("cmake.version", names[0].removeprefix("cmake-"), f"{modules}/{names[0]}")
    else:
        look.gap("cmake.version", reason or f"{cmake} --version: {said.strip()[:80]!r}")


def packaged_cmake(host: Host, cmake: str) -> str:
    """Version of Debian's cmake as its package has it, if the program has that text in it, too.

    "" where it must be asked, which takes 8 ms: the loader links forty libraries for it.
    """
    try:
        if host.real(cmake) != "/usr/bin/cmake":
            return ""
        version = version_in_dpkg(host.read_bytes(DPKG_STATUS, DPKG_LIMIT_BYTES), "cmake")
        file = ElfFile(lambda at, size: host.read_bytes(cmake, size, at))
        constants = file.section(".rodata", TOOL_LIMIT_BYTES) if version else None
    except (OSError, NotElf):
        return ""
    return version if f"{version}\0".encode() in (constants or b"") else ""


def version_in_dpkg(status: bytes, package: str) -> str:
    """Version of an installed package without what Debian adds; "" where that is not plain.

    Package: cmake
    Status: install ok installed
    Version: 3.25.1-1
    """
    status = b"\n" + status
    begin = status.find(f"\nPackage: {package}\n".encode())
    if begin < 0:
        return ""
    end = status.find(b"\n\n", begin)
    paragraph = status[begin : end if end >= 0 else len(status)].decode("utf-8", "replace")
    match = re.search(r"\nVersion: (?:\d+:)?(\d+(?:\.\d+)+)(?:[-+]\S*)?(?:\n|$)", paragraph)
    return match.group(1) if match and " ok installed\n" in paragraph else ""


def _host_compiler(look: Look, default: Default | None, programs: Programs) -> None:
    """The compiler that nvcc would call; it pays no heed to CC and CXX."""
    host = look.host
    if default is None or not default.nvcc:
        return
    path, chosen_by = host_compiler(host, default.home)
    if not path:
        if chosen_by:
            look.gap("nvcc.host_compiler.*", chosen_by)
        return
    name = posixpath.basename(host.real(path))
    clang = "clang" in name
    version, source = clang_version(programs, path) if clang else gcc_version(programs, path)
    if not version:
        look.gap("nvcc.host_compiler.*", f"{source} ({chosen_by})")
        return
    source = f"{source} ({chosen_by})"
    look.add("nvcc.host_compiler.version", version, source)
    look.add(f"nvcc.host_compiler.{'clang' if clang else 'gcc'}", version, source)


def host_compiler(host: Host, home: str) -> tuple[str, str]:
    """Path of the host compiler and what chooses it; "" and a reason where it is named in vain.

    On nvcc's command line (which NVCC_PREPEND_FLAGS and NVCC_APPEND_FLAGS extend) it is
    -ccbin, beside that NVCC_CCBIN and the toolkit's nvcc.profile; otherwise gcc on PATH.
    """
    named = chosen_by = ""
    for variable in ("NVCC_APPEND_FLAGS", "NVCC_PREPEND_FLAGS"):
        named = named or ccbin_in_flags(host.env.get(variable, ""))
        chosen_by = chosen_by or (f"-ccbin in {variable}" if named else "")
    if not named and host.env.get("NVCC_CCBIN"):
        named, chosen_by = host.env["NVCC_CCBIN"], "NVCC_CCBIN"
    if not named and home:
        profile = f"{home}/bin/nvcc.profile"
        match = re.search(r"^\s*compiler-bindir\s*=\s*(\S+)", _text(host, profile), re.MULTILINE)
        if match and "$" not in match.group(1):
            named, chosen_by = match.group(1), profile
    if not named:
        gcc = host.which("gcc")
        return (gcc, "gcc on PATH") if gcc else ("", "")
    path = f"{named.rstrip('/')}/gcc" if host.isdir(named) else host.which(named) or ""
    if path and host.exists(path):
        return path, chosen_by
    return "", f"{named} ({chosen_by}) is not there"


def ccbin_in_flags(flags: str) -> str:
    """The host compiler in flags of nvcc: -ccbin PATH, -ccbin=PATH, --compiler-bindir PATH."""
    found = re.findall(r"(?:^|\s)(?:-ccbin|--compiler-bindir)(?:=|\s+)[\"']?([^\s\"']+)", flags)
    return str(found[-1]) if found else ""


def _text(host: Host, path: str) -> str:
    try:
        return host.read(path, TEXT_LIMIT_BYTES)
    except OSError:
        return ""
