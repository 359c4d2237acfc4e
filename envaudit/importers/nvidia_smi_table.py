"""The table that plain `nvidia-smi` prints, of any generation, and `nvidia-smi -L`.

    | NVIDIA-SMI 580.95.05              Driver Version: 580.95.05      CUDA Version: 13.0     |
    |-----------------------------------------+------------------------+----------------------+
    | GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
    | Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
    |                                         |                        |               MIG M. |
    |=========================================+========================+======================|
    |   0  NVIDIA B200                    On  |   00000000:05:00.0 Off |                    0 |
    | N/A   33C    P0            192W / 1000W |  166593MiB / 183359MiB |      0%      Default |
    |                                         |                        |             Disabled |
    +-----------------------------------------+------------------------+----------------------+

From 610 on the heading says "KMD Version" and "CUDA UMD Version", before 410 it has no CUDA
column. In WSL the first number is the program's own and differs from the driver's. Windows
prints the driver model where Linux prints the persistence mode. Long names end in "...".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from envaudit.addresses import pci_address
from envaudit.importers import Draft, Imported, Section, lines_of
from envaudit.importers.nvidia_smi_words import (
    amount,
    corrupted_inforoms,
    failure,
    is_absent,
    is_sick,
    mebibytes,
    no_handles,
    nvml_error,
    nvml_version,
    version,
)
from envaudit.model import Value
from envaudit.patterns import regex

_LIMIT = 4 << 20
"""Characters of a text that are looked at: a table of 64 GPUs has 20 thousand."""
_MAX_LINES = 10_000
"""Most lines of a table: GPUs, MIG devices and processes."""

_HEADING = regex(
    r"NVIDIA-SMI[ \t]+([^ \t\n|]{1,40})[ \t]+(?:Driver|KMD) Version:[ \t]*([^ \t\n|]{1,40})"
    r"(?:[ \t]+CUDA (?:UMD )?Version:[ \t]*([^ \t\n|]{1,40}))?"
    r"(?=[^\n]{0,200}[|\n])"  # a line that was cut may have lost digits
)
_LISTED = regex(
    r"^[ \t]*GPU ([0-9]{1,3}): ([^\n]{1,120}?) \(UUID: ([A-Za-z0-9-]{8,60})\)[ \t]*$"
    r"|^[ \t]+MIG ([0-9a-z.+]{1,40})[ \t]+Device[ \t]+[0-9]{1,3}: \(UUID: [^\n)]{1,120}\)[ \t]*$",
    re.MULTILINE,
)

_READS = regex(
    r"^[ \t]*[|+].*$|^\w{3} \w{3} +\d+ [\d:]{8} \d{4}[ \t]*$|^GPU \d+: .*$", re.MULTILINE
)


def recognises(section: Section) -> bool:
    """Whether there is a table, a list of GPUs or a failure of nvidia-smi in the text."""
    text = section.text[:_LIMIT]
    return bool(_HEADING.search(text) or _LISTED.search(text) or failure(text))


def parse(section: Section) -> Imported:
    """Facts from the first table in the text, from a list of GPUs, and from known failures."""
    text = section.text[:_LIMIT].replace("\r\n", "\n")
    draft = Draft()
    draft.read(*lines_of(text, (found.span() for found in _READS.finditer(text))))
    heading = _HEADING.search(text)
    failed = failure(text)
    if heading is not None:
        first = text.count("\n", 0, heading.start())
        lines = text.split("\n", first + _MAX_LINES)[: first + _MAX_LINES]
        plain = _plain(lines, first)
        again = _HEADING.search(plain[0]) or heading
        draft.add("smi.status", "ok", "nvidia-smi")
        _heading(draft, first + 1, *again.groups())
        draft.read(*(first + 1 + n for n, line in enumerate(plain) if line[:1] in ("|", "+")))
        _Table(draft, text).read(plain[1:], first + 2)
        if _HEADING.search(text, heading.end()):
            draft.note("the text has more than one nvidia-smi table; the first was read")
    elif failed is not None:
        line = next((n for n, said in enumerate(text.split("\n"), 1) if failed[:20] in said), None)
        draft.add("smi.status", failed, "nvidia-smi", line)
        draft.add("nvml.status", nvml_error(text), "nvidia-smi", line)
        draft.add("nvml.version", nvml_version(text), "nvidia-smi: NVML library version")
        if failed.startswith("No devices"):
            draft.add("gpu.count", 0, "nvidia-smi")
        else:
            for name in ("gpu.count", "gpu.*.*", "driver.version", "driver.cuda.version"):
                draft.gap(name, failed)
    _list(draft, text)
    return draft.done()


_WRAPPED_LINES = 2
"""Most lines that a narrow terminal makes of one more: the table is 91 columns wide at most."""


def _plain(lines: Sequence[str], first: int) -> list[str]:
    """The table from its heading on, without what a paste or a log has put around its lines.

    Markdown escapes, a log's prefix in front of every line, and lines that a narrow terminal
    wrapped. Every line keeps its place: what was joined to a line leaves an empty one.
    """
    table = [re.sub(r"\\(?=[|+\-])", "", line) if "\\" in line else line for line in lines[first:]]
    prefix = table[0].find("| NVIDIA-SMI")
    before = table[0][: max(prefix, 0)]
    if before.strip(" \t>"):
        # Times differ from line to line, but not in length.
        table = [
            line[prefix:] if line.startswith(before) or line[prefix : prefix + 1] in "|+" else line
            for line in table
        ]
    if table[0].rstrip().endswith("|") or len(table) < 2 or not _ends_a_row(table[1]):
        return table
    width = len(table[0])
    for at, line in enumerate(table):
        if len(line) == width and line[:1] in ("|", "+"):
            rest = 0
            while rest < _WRAPPED_LINES and at + rest + 1 < len(table):
                rest += 1
                part, table[at + rest] = table[at + rest], ""
                table[at] += part
                if table[at].rstrip().endswith(("|", "+")):
                    break
    return table


def _ends_a_row(line: str) -> bool:
    return line[:1] not in ("|", "+") and line.rstrip().endswith("|")


def _heading(draft: Draft, line: int, own: str, driver: str, cuda: str | None) -> None:
    draft.add("smi.version", version(own), "nvidia-smi: NVIDIA-SMI", line)
    _cell(draft, "driver.version", driver, version, "Driver Version", line)
    if cuda is None:
        draft.gap("driver.cuda.version", "this nvidia-smi does not print it")
    else:
        _cell(draft, "driver.cuda.version", cuda, version, "CUDA Version", line)


def _cell(
    draft: Draft,
    name: str,
    text: str,
    read: Callable[[str], Value | None],
    column: str,
    line: int,
) -> None:
    """Tell what a cell says; nothing for N/A; a gap for what is neither."""
    if is_absent(text):
        return
    value = None if is_sick(text) else read(text)
    if value is None:
        draft.gap(name, f"nvidia-smi printed {text.strip()[:60]!r}")
    else:
        draft.add(name, value, f"nvidia-smi: {column}", line)


def _on(text: str) -> str | None:
    """Words for On and Off, Enabled and Disabled; a star marks that a change is pending."""
    return {"On": "enabled", "Off": "disabled", "Enabled": "enabled", "Disabled": "disabled"}.get(
        text.strip().rstrip("*")
    )


def _compute_mode(text: str) -> str | None:
    return {
        "Default": "default",
        "E. Process": "exclusive_process",
        "E. Thread": "exclusive_thread",
        "Prohibited": "prohibited",
    }.get(text.strip())


def _pstate(text: str) -> str | None:
    return text if re.fullmatch(r"P[0-9]{1,2}", text) else None


def _watts(text: str) -> int | float | None:
    return amount(text, "W")


_BUS = regex(r"[ \t]*([0-9A-Fa-f:]{5,14}\.[0-9A-Fa-f]|N/A)(?=[ \t]|\Z)")
_GPU = regex(r"[ \t]*([0-9]{1,3})[ \t]+([^ \t].*?)[ \t]*\Z")
_PROCESS = regex(
    r"[ \t]*([0-9]{1,3})[ \t]+(?:(?:[0-9]+|N/A)[ \t]+(?:[0-9]+|N/A)[ \t]+)?[0-9]+[ \t]+"
    r"(?:C|G|M|C\+G|M\+C)[ \t]"
)
_MIG = regex(r"[ \t]*([0-9]{1,3})(?:[ \t]+[0-9]{1,3}){3}[ \t]*\Z")
_WORDS = regex(r"[ \t]+")


class _Table:
    """Reads the lines below a heading, one at a time; every line that is whole tells its part."""

    def __init__(self, draft: Draft, text: str) -> None:
        self.draft = draft
        self.lost = no_handles(text)
        self.warned = corrupted_inforoms(text)
        self.line = 0
        self.part = "columns"
        self.columns = ""
        self.seen: list[int] = []
        self.open: int | None = None
        """The GPU whose rows are being read; a border line closes it."""
        self.row = 0
        self.cut = False
        self.followed = False
        """Whether the next table begins; pasted texts often end after some of the GPUs."""
        self.processes: dict[int, int] | None = None
        self.migs: dict[int, list[Value]] = {}

    def read(self, lines: Sequence[str], first: int) -> None:
        """Take the lines below the heading in; the first of them has this number."""
        for self.line, raw in enumerate(lines, first):
            line = raw.strip(" \t>")  # a quoted reply has ">" in front
            if len(line) > 400:
                break
            if line.startswith(("+-", "|-")):
                self.open = None
                if self.part == "processes":
                    break
            elif line.startswith(("|=", "+=")):
                self.part = {"columns": "gpus", "mig heading": "mig"}.get(
                    self.part, "processes" if self.part == "process heading" else self.part
                )
            elif line.startswith("|"):
                # A line that was cut has no right border: nothing of it can be trusted.
                if len(line) > 1 and line.endswith("|"):
                    self.cells(line[1:-1].split("|"))
                elif self.part == "gpus":
                    self.cut = True
            elif line and self.part != "columns" and self.seen:
                break
        else:
            if self.part == "processes":  # cut within the list: a count would be too low
                self.processes = None
        self.end()

    def cells(self, cells: list[str]) -> None:
        title = cells[0].strip()
        if len(cells) == 1 and title.startswith(("Processes:", "Compute processes:")):
            self.part, self.processes, self.followed = "process heading", None, True
        elif len(cells) == 1 and title.startswith("MIG devices:"):
            self.part, self.followed = "mig heading", True
        elif self.part == "columns":
            self.columns = f"{self.columns[-400:]} {' '.join(cells)}"
        elif self.part == "gpus":
            if len(cells) == 3:
                self.gpu(cells)
            else:
                self.cut = True
        elif self.part == "mig":
            self.mig(cells)
        elif self.part == "processes" and len(cells) == 1:
            self.process(cells[0])

    def gpu(self, cells: list[str]) -> None:
        bus = _BUS.match(cells[1])
        first = _GPU.match(cells[0])
        if self.open is None:
            if bus is not None and first is not None and int(first[1]) not in self.seen:
                self.open, self.row = int(first[1]), 1
                self.seen.append(self.open)
                self.identity(self.open, first[2], bus[1], cells[2])
            return
        self.row += 1
        if self.row == 2:
            self.readings(self.open, cells)
        elif self.row == 3 and "MIG M." in self.columns:
            self.tell("mig.current", cells[2], _on, "MIG M.")

    def tell(self, name: str, text: str, read: Callable[[str], Value | None], column: str) -> None:
        _cell(self.draft, f"gpu.{self.open}.{name}", text, read, column, self.line)

    def identity(self, gpu: int, name: str, bus: str, ecc: str) -> None:
        flag = ""
        if any(word in self.columns for word in ("Persistence-M", "Driver-Model", "TCC/WDDM")):
            name, _, flag = name.rpartition(" ")
        sick = is_sick(name)
        self.tell("name", name.strip(), lambda text: text, "Name")
        self.tell("pci.address", bus, pci_address, "Bus-Id")
        if "Persistence-M" in self.columns:
            self.tell("persistence_mode", flag, _on, "Persistence-M")
        elif re.fullmatch(r"WDDM|TCC|MCDM|WDM", flag):
            self.draft.add(f"gpu.{gpu}.driver_model", flag, "nvidia-smi: Driver-Model", self.line)
        ecc = ecc.strip()
        if ecc.isascii() and ecc.isdigit():
            self.draft.add(
                f"gpu.{gpu}.ecc.current", "enabled", "nvidia-smi: Uncorr. ECC", self.line
            )
            self.tell("ecc.uncorrected", ecc, lambda text: amount(text, ""), "Uncorr. ECC")
        else:
            self.tell("ecc.current", ecc, _on, "Uncorr. ECC")
        warning = self.warned.get(pci_address(bus) or "")
        status = name.strip() if sick else warning or "ok"
        self.draft.add(f"gpu.{gpu}.status", status, "nvidia-smi")
        if name.strip().endswith("..."):
            self.draft.note(f"the name of GPU {gpu} is cut: {name.strip()}")

    def readings(self, gpu: int, cells: list[str]) -> None:
        # Fan, temperature, performance state, then "draw / limit" at the right end.
        left = _WORDS.split(cells[0].strip())
        if len(left) == 6 and left[4] == "/":
            _, heat, state, draw, _, limit = left
            self.tell("temperature", heat, lambda text: amount(text, "C"), "Temp")
            self.tell("pstate", state, _pstate, "Perf")
            self.tell("power.draw", draw, _watts, "Pwr:Usage")
            self.tell("power.limit", limit, _watts, "Pwr:Cap")
        used, slash, total = cells[1].partition("/")
        if slash and not is_absent(cells[1]):
            self.tell("memory.used", used, mebibytes, "Memory-Usage")
            self.tell("memory.total", total, mebibytes, "Memory-Usage")
        load, _, mode = cells[2].strip().partition(" ")
        self.tell("utilization", load, lambda text: amount(text, "%"), "GPU-Util")
        self.tell("compute_mode", mode, _compute_mode, "Compute M.")

    def mig(self, cells: list[str]) -> None:
        if len(cells) == 1 and cells[0].strip() == "No MIG devices found":
            return
        match = _MIG.match(cells[0])
        if match is not None and len(cells) >= 3:
            size = cells[1].rpartition("/")[2].strip()
            self.migs.setdefault(int(match[1]), []).append(size.replace("MiB", " MiB"))

    def process(self, cell: str) -> None:
        match = _PROCESS.match(cell)
        if match is not None:
            self.processes = self.processes or {}
            gpu = int(match[1])
            self.processes[gpu] = self.processes.get(gpu, 0) + 1
        elif cell.strip().startswith("No running processes found"):
            self.processes = {}
        elif self.processes is not None:
            self.processes = None
            self.part = "columns"  # rows of a kind that is not known: no count

    def end(self) -> None:
        """What only the table as a whole can tell: how many GPUs, and what is missing."""
        draft = self.draft
        shown = list(self.seen)
        for lost in self.lost:
            if lost.gpu is None or lost.gpu in self.seen:
                draft.gap("gpu.count", lost.line)
                draft.gap("gpu.*.*", lost.line)
                continue
            self.seen.append(lost.gpu)
            draft.add(f"gpu.{lost.gpu}.status", lost.error, "nvidia-smi")
            draft.add(f"gpu.{lost.gpu}.pci.address", lost.address, "nvidia-smi")
            draft.gap(f"gpu.{lost.gpu}.*", lost.line)
        for gpu, sizes in self.migs.items():
            draft.add(f"gpu.{gpu}.mig.instances", list(sizes), "nvidia-smi: MIG devices")
        if self.processes is not None:
            for gpu in shown:
                draft.add(f"gpu.{gpu}.processes", self.processes.get(gpu, 0), "nvidia-smi")
        if not shown:
            draft.gap("gpu.count", "no GPU in the nvidia-smi table")
        elif self.open is not None or self.cut:
            draft.cut("the nvidia-smi table is cut")
            draft.gap("gpu.count", "the nvidia-smi table is cut")
            if self.open is not None:
                draft.gap(f"gpu.{self.open}.*", "the nvidia-smi table is cut in this GPU")
        elif not self.followed:
            draft.gap("gpu.count", "the nvidia-smi table may go on behind the text")
        elif sorted(self.seen) != list(range(len(self.seen))):
            draft.cut("the nvidia-smi table leaves GPUs out")
            draft.gap("gpu.count", "the nvidia-smi table leaves GPUs out")
        elif all(lost.gpu is not None for lost in self.lost):
            draft.add("gpu.count", len(self.seen), "nvidia-smi: rows of the table")
        draft.gap("gpu.*.*", "the nvidia-smi table does not tell it")


def _list(draft: Draft, text: str) -> None:
    """`nvidia-smi -L`: one line a GPU, below it one a MIG instance.

    GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-12345678-1234-1234-1234-123456780000)
      MIG 3g.20gb     Device  0: (UUID: MIG-12345678-...)
    """
    found: list[int] = []
    migs: dict[int, list[Value]] = {}
    line, at = 1, 0
    for match in _LISTED.finditer(text):
        if match[1] is None:
            if found:
                migs.setdefault(found[-1], []).append(match[4])
            continue
        gpu = int(match[1])
        if gpu in found:  # a second list, of a container for example
            break
        found.append(gpu)
        line += text.count("\n", at, match.start())
        at = match.start()
        draft.replace(f"gpu.{gpu}.name", match[2], "nvidia-smi -L", line)
        draft.add(f"gpu.{gpu}.uuid", match[3], "nvidia-smi -L", line)
    for gpu, names in migs.items():
        draft.add(f"gpu.{gpu}.mig.instances", list(names), "nvidia-smi -L")
    if not found:
        return
    if found == list(range(len(found))):
        draft.add("gpu.count", len(found), "nvidia-smi -L", line)
    else:
        draft.gap("gpu.count", "the list of nvidia-smi -L leaves GPUs out")
    draft.gap("gpu.*.*", "nvidia-smi -L does not tell it")
