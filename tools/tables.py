"""The catalogues that rest on package metadata, and how each is compared with it.

Columns that are not named here were read elsewhere (in wheels, in documentation) and are left
alone.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from envaudit.constraint import compare, in_range, part_of, release
from tools import columns as c
from tools.columns import Column, NotRead, Value
from tools.metadata import Metadata, Release, by_age

Row = dict[str, Any]


@dataclass(frozen=True)
class Difference:
    """A cell that metadata tells otherwise, or that the row leaves out (`shipped` is None)."""

    catalogue: str
    row: str
    column: str
    shipped: Value
    told: Value
    cell: tuple[Row, str] | None = None
    """Where --write puts what metadata tells; None where a person has to decide."""

    @property
    def contradicts(self) -> bool:
        """Whether the row says something else, and not only less."""
        return self.shipped is not None


@dataclass(frozen=True)
class Fresh:
    """A release that is newer than the newest row of its package."""

    catalogue: str
    package: str
    version: str
    row: Row | None = None
    """The row that --add appends; None where a person has to write it."""


@dataclass
class Seen:
    """What a comparison found."""

    differences: list[Difference] = field(default_factory=list)
    fresh: list[Fresh] = field(default_factory=list)
    rows: int = 0
    """Rows that there was metadata for."""


class Table(Protocol):
    """A catalogue, or a column of one, that can be compared."""

    @property
    def name(self) -> str:
        """The catalogue."""

    def packages(self, rows: Sequence[Row]) -> set[str]:
        """Packages that metadata is needed of."""

    def wanted(self, rows: Sequence[Row], package: str, found: Mapping[str, Release]) -> set[str]:
        """Releases whose requirements the comparison needs."""

    def compare(self, rows: Sequence[Row], metadata: Metadata) -> Seen:
        """Every row against metadata, and the releases that are newer than all rows."""


def find(metadata: Metadata, package: str, version: str) -> Release | None:
    """A release by its number, however that is written (2.0 is 2.0.0)."""
    releases = metadata.of(package)
    if version in releases:
        return releases[version]
    return next((r for v, r in releases.items() if Version(v) == Version(version)), None)


def newer(found: Mapping[str, Release], known: Iterable[str]) -> list[str]:
    """Releases after the newest known one that were not withdrawn, from the oldest."""
    newest = max(map(Version, known))
    return [v for v in by_age(found) if Version(v) > newest and not found[v].yanked]


def _any_of_requirements(columns: Mapping[str, Column]) -> bool:
    return any(column.of_requirements for column in columns.values())


# -- one row a release --------------------------------------------------------------------------


@dataclass(frozen=True)
class Releases:
    """A catalogue of one row a release."""

    name: str
    columns: Mapping[str, Column]
    package: str | None = None
    """The package, where no column names it."""
    version: str = "version"
    also: Mapping[str, str] = field(default_factory=dict)
    """Columns that tell of another package's release of the same number: column to package."""

    def package_of(self, row: Row) -> str:
        """The package that a row is about."""
        return self.package or str(row["package"])

    def packages(self, rows: Sequence[Row]) -> set[str]:
        """Packages that metadata is needed of."""
        return {self.package_of(row) for row in rows} | set(self.also.values())

    def wanted(self, rows: Sequence[Row], package: str, found: Mapping[str, Release]) -> set[str]:
        """Releases that have a row, and those that could get one."""
        known = self._known(rows, package)
        if not known or not _any_of_requirements(self.columns):
            return set()
        return {v for v in found if v in known} | set(newer(found, known))

    def _known(self, rows: Sequence[Row], package: str) -> set[str]:
        mine = [str(row[self.version]) for row in rows if self.package_of(row) == package]
        return {str(Version(version)) for version in mine}

    def cells(self, package: str, version: str, metadata: Metadata) -> dict[str, Value]:
        """The columns that metadata tells of a release; one that it leaves open is missing."""
        cells = {}
        for name, column in self.columns.items():
            item = find(metadata, self.also.get(name, package), version)
            if item is not None:
                with contextlib.suppress(NotRead):
                    cells[name] = column.read(item)
        return cells

    def compare(self, rows: Sequence[Row], metadata: Metadata) -> Seen:
        """Every row against its release."""
        seen = Seen()
        for row in rows:
            package, version = self.package_of(row), str(row[self.version])
            if find(metadata, package, version) is None:
                continue
            seen.rows += 1
            for name, told in self.cells(package, version, metadata).items():
                column, shipped = self.columns[name], row.get(name)
                if column.agree(shipped, told):
                    continue
                value = column.as_cell(shipped, told)
                label = f"{package} {version}"
                seen.differences.append(
                    Difference(self.name, label, name, shipped, value, (row, name))
                )
        for package in sorted({self.package_of(row) for row in rows}):
            for version in newer(metadata.of(package), self._known(rows, package)):
                row = self.new_row(rows, package, version, metadata)
                seen.fresh.append(Fresh(self.name, package, version, row))
        return seen

    def new_row(self, rows: Sequence[Row], package: str, version: str, metadata: Metadata) -> Row:
        """A row of what metadata tells; what else the catalogue knows is for a person to add."""
        last = [row for row in rows if self.package_of(row) == package][-1]
        row: Row = {} if self.package else {"package": package}
        row[self.version] = version
        for name, told in self.cells(package, version, metadata).items():
            value = self.columns[name].as_cell(last.get(name), told)
            if value not in (None, []):
                row[name] = value
        sources = [key for key in last["sources"] if key.startswith(("pypi-", "meta-"))]
        return {**row, "sources": sources, "confidence": "high"}


# -- runs of releases ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Runs:
    """A catalogue of one row a run of releases that are alike; its `version` is a range."""

    name: str
    columns: Mapping[str, Column]
    gathered: Sequence[str] = ()
    """Columns that list every value of the run."""
    elsewhere: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Columns of a package that were read in its wheels: their tags say less than is needed."""
    nothing: Mapping[str, Value] = field(default_factory=dict)
    """What a column holds where metadata says nothing: no row is missed for that."""

    def packages(self, rows: Sequence[Row]) -> set[str]:
        """Packages that metadata is needed of."""
        return {str(row["package"]) for row in rows}

    def wanted(self, rows: Sequence[Row], package: str, found: Mapping[str, Release]) -> set[str]:
        """Releases within a run, where a column rests on requirements."""
        ranges = [str(row["version"]) for row in rows if row["package"] == package]
        if not _any_of_requirements(self.columns):
            return set()
        return {v for v in found if any(in_range(v, text) for text in ranges)}

    def compare(self, rows: Sequence[Row], metadata: Metadata) -> Seen:
        """Every release against the run that it falls into."""
        seen = Seen()
        for row in rows:
            package, text = str(row["package"]), str(row["version"])
            releases = metadata.of(package)
            inside = [v for v in by_age(releases) if in_range(v, text) and not releases[v].yanked]
            seen.rows += bool(inside)
            for name, column in self.columns.items():
                if name in self.elsewhere.get(package, ()):
                    continue
                told = _told(column, (releases[v] for v in inside))
                agree = {v: self._agree(name, row.get(name), value) for v, value in told}
                # Post-releases share a row: it is right where it is so for one of them.
                right = {release(version) for version, yes in agree.items() if yes}
                wrong = [(v, value) for v, value in told if release(v) not in right]
                for value, versions in _alike(wrong):
                    label = f"{package} {text} at {' to '.join(versions)}"
                    seen.differences.append(
                        Difference(self.name, label, name, row.get(name), value)
                    )
        for package in sorted(self.packages(rows)):
            seen.fresh += [
                Fresh(self.name, package, version)
                for version in self._newer(rows, package, metadata)
            ]
        return seen

    def _agree(self, name: str, shipped: Value, told: Value) -> bool:
        if name in self.gathered:
            return told is None or any(self.columns[name].agree(one, told) for one in shipped or ())
        return self.columns[name].agree(shipped, told)

    def _newer(self, rows: Sequence[Row], package: str, metadata: Metadata) -> list[str]:
        ranges = [str(row["version"]) for row in rows if row["package"] == package]
        ends = [end for text in ranges for end in re.findall(r"[\d.]*\d", text)]
        found = newer(metadata.of(package), ends)
        outside = [v for v in found if not any(in_range(v, text) for text in ranges)]
        return [v for v in outside if self._tells(metadata.of(package)[v])]

    def _tells(self, item: Release) -> bool:
        """Whether metadata says of a release what a row could hold."""
        values = [
            (name, value) for name, one in self.columns.items() for _, value in _told(one, [item])
        ]
        return any(value not in (None, self.nothing.get(name)) for name, value in values)


def _told(column: Column, items: Iterable[Release]) -> list[tuple[str, Value]]:
    """Releases with what metadata tells of each, where it does."""
    found = []
    for item in items:
        with contextlib.suppress(NotRead):
            found.append((item.version, column.read(item)))
    return found


def _alike(told: Iterable[tuple[str, Value]]) -> list[tuple[Value, list[str]]]:
    """Values, each with the first and the last of the releases in a row that have it."""
    groups: list[tuple[Value, list[str]]] = []
    for version, value in told:
        if groups and groups[-1][0] == value:
            groups[-1][1][1:] = [version]
        else:
            groups.append((value, [version]))
    return groups


# -- lists of releases --------------------------------------------------------------------------


@dataclass(frozen=True)
class Listed:
    """A column that lists releases: it needs packages of which every release is known."""

    name: str
    column: str
    packages_of: Callable[[Row], Sequence[str]]
    tell: Callable[[Row, Metadata], tuple[list[str], list[str]]]
    """What the list must hold, and what it may hold besides: releases that were withdrawn."""
    label: Callable[[Row], str]
    requirements_of: str | None = None
    """The package whose requirements matter."""

    def packages(self, rows: Sequence[Row]) -> set[str]:
        """Packages that metadata is needed of."""
        return {package for row in rows for package in self.packages_of(row)}

    def wanted(self, rows: Sequence[Row], package: str, found: Mapping[str, Release]) -> set[str]:
        """Every release of the package whose requirements matter."""
        return set(found) if package == self.requirements_of else set()

    def compare(self, rows: Sequence[Row], metadata: Metadata) -> Seen:
        """The list of each row against all releases."""
        seen = Seen()
        for row in rows:
            packages = self.packages_of(row)
            if not packages or not all(metadata.is_whole(package) for package in packages):
                continue
            seen.rows += 1
            try:
                told, withdrawn = self.tell(row, metadata)
            except NotRead:
                continue
            shipped = row.get(self.column)
            if set(shipped or ()) - set(withdrawn) != set(told):
                seen.differences.append(
                    Difference(
                        self.name, self.label(row), self.column, shipped, told, (row, self.column)
                    )
                )
        return seen


def cudnn_wheels(row: Row, metadata: Metadata) -> tuple[list[str], list[str]]:
    """Builds of cuDNN in the row's range, for its CUDA major."""
    releases = metadata.of(f"nvidia-cudnn-cu{row['cuda_major']}")
    return _kept_and_withdrawn(releases[v] for v in by_age(releases) if in_range(v, row["cudnn"]))


def nccl_majors(row: Row, metadata: Metadata) -> tuple[list[str], list[str]]:
    """CUDA majors for which the row's release of NCCL is there."""
    found = {major: find(metadata, f"nvidia-nccl-cu{major}", row["nccl"]) for major in NCCL_MAJORS}
    there = {major: item for major, item in found.items() if item is not None}
    withdrawn = [major for major, item in there.items() if item.yanked]
    return [major for major in there if major not in withdrawn], withdrawn


def tensorrt_wheels(row: Row, metadata: Metadata) -> tuple[list[str], list[str]]:
    """Builds of the row's TensorRT release, under any of its names."""
    found = {v: item for package in TENSORRT for v, item in metadata.of(package).items()}
    return _kept_and_withdrawn(
        found[v] for v in by_age(found) if part_of(v, "patch") == row["tensorrt"]
    )


def _kept_and_withdrawn(items: Iterable[Release]) -> tuple[list[str], list[str]]:
    found = list(items)
    return [i.version for i in found if not i.yanked], [i.version for i in found if i.yanked]


def torch_of_triton(row: Row, metadata: Metadata) -> tuple[list[str], list[str]]:
    """Torch releases whose metadata accept the row's release of Triton."""
    wanted = Version(row["version"])
    return [v for v, bound in _triton_bounds(metadata) if bound.contains(wanted)], []


def torch_minors_of_triton(row: Row, metadata: Metadata) -> tuple[list[str], list[str]]:
    """Minor releases of torch that pin the row's minor release of Triton."""
    found = [
        part_of(version, "minor")
        for version, bound in _triton_bounds(metadata)
        if any(compare(spec.version, row["triton"], "minor") == 0 for spec in bound)
    ]
    return list(dict.fromkeys(found)), []


def _triton_bounds(metadata: Metadata) -> list[tuple[str, SpecifierSet]]:
    """Torch releases that require a range of Triton, with it; all must have been asked."""
    read = c.bound_on("triton")
    releases = metadata.of("torch")
    found = [(version, read(releases[version])) for version in by_age(releases)]
    return [(version, SpecifierSet(bound)) for version, bound in found if bound]


NCCL_MAJORS = ("11", "12", "13")
TENSORRT = ("tensorrt", "tensorrt-cu12", "tensorrt-cu13")

# -- all of them --------------------------------------------------------------------------------

RELEASED = {
    "released": Column(c.released),
    "requires_python": Column(c.requires_python, c.as_range),
}
LINUX = {"python_wheels": Column(c.pythons, c.as_set), "glibc_min": Column(c.glibc)}
YANKED = {"yanked": Column(c.yanked)}
NUMPY = {"numpy": c.required(c.bounds_on("numpy"), c.as_range, one_of=True)}
CHOSEN = {"requires": c.required(c.all_needs(), c.as_needs, chosen=True)}
JAXLIB, TORCH = c.bound_on("jaxlib"), c.bound_on("torch")
WITH_CUDA = "with-cuda"
PLUGIN_CUDNN = c.bound_on(r"nvidia-cudnn-cu\d+", WITH_CUDA)

TABLES: tuple[Table, ...] = (
    Releases(
        "torch-pypi-releases",
        {
            **RELEASED,
            "cudnn": c.required(c.pinned(r"nvidia-cudnn-cu\d+")),
            "nccl": c.required(c.pinned(r"nvidia-nccl-cu\d+")),
            "triton": c.required(c.bound_on("triton"), c.as_range),
            "pins": c.required(c.all_needs("(nvidia|cuda)-", write=c.tight), c.as_needs),
            "python": Column(c.pythons, c.as_set),
            "platform_tags": Column(c.platform_tags, c.as_set),
        },
        package="torch",
        version="torch",
    ),
    Releases(
        "companion-releases",
        {
            **RELEASED,
            "torch": c.required(TORCH, c.as_range),
            "torch_pin": c.required(c.exact(TORCH)),
            "torch_in_extras": c.required(c.only_in_extras("torch")),
            "python": Column(c.pythons, c.as_set),
            "abi3_from": Column(c.abi3_from),
            "glibc_of_tag": Column(c.glibc),
            "source_only": Column(c.source_only),
            **YANKED,
            "requires": c.required(c.all_needs(write=c.tight), c.as_needs, chosen=True),
        },
    ),
    Listed(
        "companion-releases",
        "torch_releases",
        lambda row: ["torch"] if row["package"] == "triton" else [],
        torch_of_triton,
        lambda row: f"triton {row['version']}",
        "torch",
    ),
    Listed(
        "triton-minors",
        "torch",
        lambda row: ["torch"],
        torch_minors_of_triton,
        lambda row: f"triton {row['triton']}",
        "torch",
    ),
    Releases(
        "tensorflow-releases",
        {
            **RELEASED,
            **LINUX,
            **NUMPY,
            "and_cuda": c.required(c.all_needs(extras=["and-cuda"]), c.as_needs),
        },
        package="tensorflow",
        version="tensorflow",
    ),
    Releases(
        "jax-releases",
        {
            **RELEASED,
            "jaxlib": c.required(JAXLIB, c.as_range),
            "jaxlib_min": c.required(c.lowest(JAXLIB)),
            "jaxlib_python_wheels": Column(c.pythons, c.as_set),
            "jaxlib_glibc_min": Column(c.glibc),
            "numpy": c.required(c.bounds_on("numpy"), c.as_ranges),
            **YANKED,
        },
        package="jax",
        version="jax",
        also={"jaxlib_python_wheels": "jaxlib", "jaxlib_glibc_min": "jaxlib"},
    ),
    Releases(
        "jax-plugins",
        {
            **RELEASED,
            **LINUX,
            "cudnn": c.required(PLUGIN_CUDNN, c.as_range),
            "cudnn_min": c.required(c.lowest(PLUGIN_CUDNN)),
            "requires": c.required(c.all_needs(extras=["", WITH_CUDA]), c.as_needs, chosen=True),
            **YANKED,
        },
    ),
    Releases(
        "onnxruntime-gpu-releases",
        {
            **RELEASED,
            **LINUX,
            **NUMPY,
            "cuda_extra": c.required(c.all_needs(extras=["cuda"]), c.as_needs),
            "cudnn_extra": c.required(c.all_needs(extras=["cudnn"]), c.as_needs),
        },
        package="onnxruntime-gpu",
    ),
    Releases(
        "cupy-wheels",
        {
            **RELEASED,
            **LINUX,
            **NUMPY,
            "ctk_extra": c.required(c.all_needs(extras=["ctk"], write=c.tight), c.as_needs),
            **YANKED,
        },
    ),
    Releases(
        "numba-releases",
        {
            **RELEASED,
            **LINUX,
            **NUMPY,
            **CHOSEN,
            "cuda_extras": c.required(c.extras_like(r"cu\d+"), c.as_set),
        },
    ),
    Releases(
        "numpy-releases",
        {
            **RELEASED,
            "python": Column(c.pythons_anywhere, c.as_set),
            "glibc_x86_64": Column(c.glibc_of_all),
            "glibc_x86_64_lowest": Column(c.glibc),
            "glibc_aarch64": Column(c.on("aarch64", c.glibc_of_all)),
        },
        package="numpy",
        version="numpy",
    ),
    Releases("ctranslate2-releases", {**RELEASED, **LINUX}, package="ctranslate2"),
    Releases(
        "faster-whisper-releases",
        {**RELEASED, "ctranslate2": c.required(c.bound_on("ctranslate2"), c.as_range)},
        package="faster-whisper",
    ),
    Releases("tensorrt-wheels", {**RELEASED, **LINUX}, package="tensorrt"),
    Releases(
        "rapids-releases",
        {**RELEASED, **LINUX, "abi3_from": Column(c.abi3_from), **NUMPY, **CHOSEN, **YANKED},
    ),
    Releases("paddle-gpu-releases", {**RELEASED, **LINUX, **NUMPY}, package="paddlepaddle-gpu"),
    Releases(
        "mxnet-releases", {**RELEASED, "glibc_min": Column(c.glibc), **NUMPY}, package="mxnet"
    ),
    Runs(
        "wheel-support",
        {
            "requires_python": Column(c.requires_python, c.as_range),
            "python": Column(c.pythons, c.as_set),
            "abi3_from": Column(c.abi3_from),
            "wheel": Column(c.kind_of_wheel),
            "glibc_x86_64": Column(c.glibc),
            "glibc_aarch64": Column(c.on("aarch64", c.glibc)),
            "windows": Column(c.windows),
        },
        gathered=("requires_python",),
        # Tagged manylinux1, built on something newer.
        elsewhere={"torch": ["glibc_x86_64"]},
    ),
    Runs(
        "numpy-bounds",
        {"numpy": c.required(c.with_markers("numpy"), c.as_ranges)},
        nothing={"numpy": "any"},
    ),
    Listed(
        "cudnn-releases",
        "wheels",
        lambda row: [f"nvidia-cudnn-cu{row['cuda_major']}"] if int(row["cuda_major"]) > 10 else [],
        cudnn_wheels,
        lambda row: f"cuDNN {row['cudnn']} CUDA {row['cuda_major']}",
    ),
    Listed(
        "nccl-releases",
        "wheel_cuda_majors",
        lambda row: [f"nvidia-nccl-cu{major}" for major in NCCL_MAJORS],
        nccl_majors,
        lambda row: f"NCCL {row['nccl']}",
    ),
    Listed(
        "tensorrt-releases",
        "wheels",
        lambda row: TENSORRT,
        tensorrt_wheels,
        lambda row: f"TensorRT {row['tensorrt']}",
    ),
)
"""Every catalogue whose sources name package metadata, and that pip can tell."""
