"""Every probe, in one visible table: what it can tell and how long it may take.

The order is the order of precedence where two probes tell the same fact. A probe's module is
imported in the child that runs it, so a broken or slow one costs nobody else anything.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from envaudit.host import Host
from envaudit.model import Confidence, Fact, Value
from envaudit.target import Target


class NotHere(Exception):
    """What this probe looks at is not on the machine: an answer (absent), not a failure."""


class Skipped(Exception):
    """This probe had no reason to look."""


class Denied(Exception):
    """This probe may not look; PermissionError says the same."""


class Look:
    """What a probe gets, and how it tells what it saw."""

    def __init__(
        self,
        host: Host,
        target: Target | None,
        facts: Mapping[str, Fact],
        tell: Callable[[bytes], None],
        seconds: float,
    ) -> None:
        self.host = host
        self.target = target
        self.facts = facts
        """What the probes named in `after` told, as far as they have answered."""
        self.seconds = seconds
        """Time this probe has in all."""
        self._tell = tell

    def add(
        self,
        name: str,
        value: Value | None,
        source: str,
        confidence: Confidence = "high",
        *,
        even_empty: bool = False,
    ) -> None:
        """Tell one fact at once, so that it is kept whatever happens next.

        None tells nothing, and so does an empty text unless it means something of its own.
        """
        if value is None or (value == "" and not even_empty):
            return
        self._send(["fact", name, value, source, confidence])

    def gap(self, name: str, reason: str) -> None:
        """Tell that a fact (or a pattern of facts) could not be looked at, and why."""
        self._send(["gap", name, reason])

    def value(self, name: str) -> Value | None:
        """Value of an earlier fact, or None."""
        fact = self.facts.get(name)
        return fact.value if fact is not None else None

    def _send(self, record: list[object]) -> None:
        # A name on disk or a variable need not be text; what cannot be told in UTF-8 becomes "?".
        self._tell(json.dumps(record, ensure_ascii=False).encode("utf-8", "replace"))


def part(look: Look, names: str | Sequence[str], work: Callable[[Look], None]) -> None:
    """Run one independent part of a probe; what goes wrong there costs only the names it tells."""
    try:
        work(look)
    except MemoryError:
        raise
    except Exception as problem:  # noqa: BLE001 - becomes the reason why these names are unknown
        reason = why(problem)
        if look.host.root != "/":
            reason = reason.replace(look.host.root, "")
        for name in [names] if isinstance(names, str) else names:
            look.gap(name, reason)


def why(problem: Exception) -> str:
    """An error as the reason of a gap, in words for the reader."""
    if isinstance(problem, FileNotFoundError):
        return f"no {problem.filename}"
    if isinstance(problem, PermissionError):
        return f"not permitted: {problem.filename}"
    if isinstance(problem, OSError) and problem.strerror:
        return f"{problem.filename or 'reading'}: {problem.strerror}"
    return f"{type(problem).__name__}: {problem}"[:300]


class Probe(NamedTuple):
    """One row of the table."""

    name: str
    provides: tuple[str, ...]
    seconds: float = 5.0
    """Its own deadline; the run's deadline may cut it shorter."""
    after: tuple[str, ...] = ()
    """Probes whose answers it uses."""
    patience: float = 2.0
    """How long it waits for them before it looks without them, in s."""

    @property
    def module(self) -> str:
        """Module that holds its `look(look: Look) -> None`."""
        return f"envaudit.probes.{self.name}"


PROBES: tuple[Probe, ...] = (
    Probe(
        "kernel",
        (
            "kernel.release",
            "kernel.version",
            "kernel.compiler",
            "kernel.cmdline",
            "kernel.lockdown",
            "kernel.taint",
            "kernel.installed",
            "kernel.default",
            "kernel.module.*",
            "boot.*",
            "firmware.*",
            "cpu.microcode",
        ),
    ),
    Probe("os", ("os.*", "wsl.version")),
    Probe("environment", ("env.*",)),
    Probe("host", ("host.*",)),
    Probe("container", ("container.*", "cgroup.*")),
    Probe("packages", ("pkg.*",)),
    Probe("dkms", ("dkms.*",)),
    Probe(
        "fabricmanager",
        ("fabricmanager.*", "service.*", "driver.persistenced.active"),
        after=("packages",),
    ),
    Probe(
        "toolkit",
        ("cuda.toolkit.version", "cuda.toolkits", "cuda.nvcc.*", "cuda.home")
        + ("gcc.*", "clang.version", "nvcc.host_compiler.*", "cmake.version"),
    ),
    Probe("python_env", ("python.*", "dist.*"), seconds=6.0),
    Probe(
        "libraries",
        ("lib.*", "os.libstdcxx.version", "cuda.runtime.*", "cudnn.*", "nccl.*")
        + ("cublas.version", "cusparse.version", "nvrtc.version", "nvjitlink.version")
        + ("tensorrt.version",),
        after=("python_env",),
    ),
    Probe(
        "frameworks",
        ("torch.version", "torch.cuda.version", "torch.hip.version", "torch.cudnn.version")
        + ("torch.nccl.version", "torch.arch_list", "torch.cxx11_abi")
        + ("tensorflow.*", "jax.version", "jaxlib.*", "cupy.*", "onnxruntime.*", "paddle.*"),
        after=("python_env",),
    ),
    Probe("conda", ("conda.*",), after=("python_env",)),
    # The ones below reach into the driver: what they tell of it wins over what files say.
    Probe(
        "nvml",
        ("nvml.*", "driver.version", "driver.cuda.version", "driver.gsp.version")
        + ("gpu.count", "gpu.*.*"),
        seconds=9.0,
    ),
    Probe(
        "nvidia_smi",
        ("smi.*", "driver.version", "driver.cuda.version", "driver.gsp.version")
        + ("gpu.count", "gpu.*.*"),
        seconds=9.0,
        after=("nvml",),
    ),
    Probe(
        "pci",
        ("gpu.driver_bound", "nvswitch.count", "pci.*", "gpu.*.pci.*"),
        after=("nvml", "container"),
        # NVML numbers the GPUs; only where it says that it cannot does the bus order stand in.
        patience=9.0,
    ),
    Probe(
        "driver",
        ("driver.version", "driver.module.*", "driver.param.*", "driver.library.*")
        + ("driver.libcuda.*", "driver.libnvml.*", "driver.compat.*", "driver.install_method")
        + ("driver.gsp.on_disk", "driver.device_nodes", "driver.blacklisted"),
    ),
)
"""All probes, in the order of precedence; all that wait for nobody start at once."""
