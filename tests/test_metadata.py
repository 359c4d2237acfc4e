"""The rows that rest on package metadata agree with it, and so does the tool that compares them."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools import columns, refresh, tables
from tools.metadata import Metadata, NoAnswer, Pip, Release, read_listing, targets

CACHE = Path(__file__).parent / "metadata-cache.json"
CACHE_LIMIT_BYTES = 300_000


@pytest.fixture(scope="module")
def kept() -> Metadata:
    return Metadata.load(CACHE)


@pytest.fixture
def shipped() -> dict[str, Any]:
    return refresh.catalogues()


# -- the rows as shipped ------------------------------------------------------------------------


def test_no_shipped_row_contradicts_the_committed_metadata(
    shipped: dict[str, Any], kept: Metadata
) -> None:
    found = refresh.compared(shipped, kept)
    assert [(one.row, one.column, one.shipped, one.told) for one in found.contradictions] == []
    assert found.rows > len(refresh.EXCERPT_OF) * refresh.EXCERPT_RELEASES / 2


def test_the_committed_metadata_is_small_and_as_the_tool_writes_it(
    shipped: dict[str, Any], kept: Metadata
) -> None:
    text = CACHE.read_text(encoding="utf-8")
    assert len(text) < CACHE_LIMIT_BYTES
    assert text == kept.dump()
    assert sorted(kept.packages) == sorted(refresh.EXCERPT_OF)
    assert refresh.excerpt(kept, shipped).dump() == text
    assert "://" not in text, "where a package came from is nobody's business"


IN_EXCERPT = (
    *("torch-pypi-releases", "companion-releases", "tensorflow-releases", "jax-releases"),
    *("onnxruntime-gpu-releases", "numpy-releases"),
)
"""Catalogues of releases with packages in the committed metadata; tests/real looks at more."""


def other(value: Any) -> Any:
    """A value that is not this one, of the same type."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, list):
        return [*value, "zzz==9999"]
    return value + "1" if value[-1].isdigit() else value + ",<9999"


def cells_with_metadata(rows: list[Any], table: Any, kept: Metadata) -> Iterator[tuple[Any, str]]:
    """Every shipped cell that the committed metadata tells."""
    for row in rows:
        package, version = table.package_of(row), row[table.version]
        if tables.find(kept, package, version) is None:
            continue
        told = table.cells(package, version, kept)
        yield from ((row, name) for name in told if row.get(name) is not None)


@pytest.mark.parametrize("name", IN_EXCERPT)
def test_any_one_cell_that_is_changed_is_found(
    name: str, shipped: dict[str, Any], kept: Metadata
) -> None:
    table = next(t for t in tables.TABLES if isinstance(t, tables.Releases) and t.name == name)
    rows = shipped[name]["rows"]
    cells = list(cells_with_metadata(rows, table, kept))
    assert cells
    for row, column in cells:
        right = row[column]
        row[column] = other(right)
        found = table.compare([row], kept).differences
        row[column] = right
        assert [(one.column, one.contradicts) for one in found] == [(column, True)]


def test_a_run_that_holds_no_longer_is_found(shipped: dict[str, Any], kept: Metadata) -> None:
    rows = [r for r in shipped["wheel-support"]["rows"] if r["package"] == "torch"]
    rows[-1] |= {"python": ["3.11"], "requires_python": [">=3.2"]}
    (table,) = [t for t in tables.TABLES if t.name == "wheel-support"]
    found = table.compare(rows, kept).differences
    assert sorted(one.column for one in found) == ["python", "requires_python"]
    assert all(one.cell is None for one in found), "what becomes of a run is for a person to say"


def test_an_excerpt_keeps_post_releases_with_their_release() -> None:
    numbers = ["1.0", "2.0", "2.0.post1", "2.0.post2", "3.0"]
    known = Metadata({"frob": {v: Release(v, requires=("a", "b")) for v in numbers}}, {"frob": "x"})
    kept = known.excerpt(["frob"], 2, lambda text: text == "a")
    assert list(kept.of("frob")) == numbers[1:]
    assert {release.requires for release in kept.of("frob").values()} == {("a",)}
    assert not kept.is_whole("frob")


# -- what pip prints ----------------------------------------------------------------------------

AT = "https://example.org/files/frob"
LINUX = "manylinux_2_28_x86_64.whl"
FROM = "(from https://example.org/simple/frob/)"
RANGE = f"{FROM} (requires-python:>=3.9,<3.14)"
UPLOADED = "  Skipping link: Upload time 2026-02-0{} 10:18:38.058705+00:00 not prior to 1990-01-01"
OTHER_TAGS = "the wheel's tags (cp312-cp312t) are compatible (run pip debug --verbose to ...)"
LINES = [
    "Looking in indexes: https://example.org/simple",
    "Skipping link: not a file: https://example.org/simple/frob/",
    f"  Found link {AT}-1.0.0.tar.gz {FROM} (requires-python:>=3.8), version: 1.0.0",
    f"  Skipping link: none of {OTHER_TAGS}: {AT}-1.1.0-cp312-cp312t-{LINUX} {RANGE}",
    f"{UPLOADED.format(4)} 00:00:00+00:00: {AT}-1.1.0-cp311-cp311-{LINUX} {RANGE}",
    f"{UPLOADED.format(3)} 00:00:00+00:00: {AT}-1.1.0-cp311-cp311-win_amd64.whl {RANGE}",
    f"  Skipping link: yanked for reason: broken: {AT}-1.2.0-py3-none-any.whl {FROM}",
    f"  Skipping link: yanked for reason: broken: {AT}-1.3.0-py3-none-any.whl {FROM}",
    f"  Found link {AT}-1.3.0.zip {FROM}, version: 1.3.0",
    f"  Found link {AT}-2.0.0rc1-py3-none-any.whl {FROM}, version: 2.0.0rc1",
    "Found link file:///wheels/frob-1.1.0%2Bcpu-cp311-cp311-linux_x86_64.whl, version: 1.1.0+cpu",
    f"  Skipping link: wrong project name (not frob): {AT}nicate-9.0.0-py3-none-any.whl {FROM}",
    "frob (1.0.0)",
    "Available versions: 1.0.0",
]
LISTING = "\n".join(LINES)


def test_a_listing_tells_the_files_of_each_final_release() -> None:
    assert read_listing("Frob", LISTING) == {
        "1.0.0": Release("1.0.0", requires_python=">=3.8", sdist=True),
        "1.1.0": Release(
            "1.1.0",
            day="2026-02-03",
            requires_python=">=3.9,<3.14",
            wheels={
                "manylinux_2_28_x86_64": ("cp311-cp311", "cp312-cp312t"),
                "win_amd64": ("cp311-cp311",),
            },
        ),
        "1.2.0": Release("1.2.0", yanked=True, wheels={"any": ("py3-none",)}),
        "1.3.0": Release("1.3.0", sdist=True, wheels={"any": ("py3-none",)}),
    }


@given(st.text(), st.lists(st.sampled_from(LINES)))
def test_no_listing_is_too_strange(noise: str, lines: list[str]) -> None:
    cut = "\n".join(line[: len(noise) * 7] + noise for line in lines)
    for text in (noise, cut):
        for version, release in read_listing("frob", text).items():
            assert release.version == version
            assert release.wheels or release.sdist


TAGS = st.sampled_from(["cp311-cp311", "cp313-cp313t", "cp39-abi3", "py3-none", "cp37-cp37m"])
PLATFORMS = st.sampled_from(["any", "win_amd64", "manylinux_2_17_x86_64.manylinux2014_x86_64"])
RELEASES = st.builds(
    Release,
    version=st.just("1.0"),
    day=st.none() | st.just("2026-01-01"),
    requires_python=st.none() | st.just(">=3.9"),
    yanked=st.booleans(),
    sdist=st.booleans(),
    wheels=st.dictionaries(PLATFORMS, st.lists(TAGS, min_size=1, unique=True).map(tuple)),
    requires=st.none() | st.lists(st.sampled_from(["numpy", "a>=1"])).map(tuple),
    unlike=st.just(()) | st.just(("numpy",)),
)


@given(RELEASES)
def test_a_release_is_read_as_it_was_kept(release: Release) -> None:
    kept = Metadata({"frob": {"1.0": release}}, {"frob": "2026-01-02"}, {"frob"})
    assert Release.from_json("1.0", json.loads(json.dumps(release.as_json()))) == release
    assert json.loads(kept.dump())["packages"]["frob"]["partial"] is True


# -- asking pip ---------------------------------------------------------------------------------

FAKE = """\
#!/bin/sh
echo "$PIP_CONSTRAINT $*" >>{log}
case "$*" in
*" index versions frob "*--python-version=3.12*) cat {folder}/later; exit 1 ;;
*" index versions frob "*) cat {folder}/listing; exit 1 ;;
*" index versions old "*) echo 'no such option: --uploaded-prior-to' >&2; exit 2 ;;
*" index versions "*) echo 'ERROR: No matching distribution found' >&2; exit 1 ;;
*--abi=cp39*frob==1.1.0*) while [ "$1" != --report ]; do shift; done; cat {folder}/older >"$2" ;;
*frob==1.1.0*) while [ "$1" != --report ]; do shift; done; cat {folder}/report >"$2" ;;
*) echo 'ERROR: it is not there' >&2; exit 1 ;;
esac
"""


@pytest.fixture
def pip(tmp_path: Path) -> Pip:
    """A pip that answers from files, and writes down what it was asked."""
    wheel = "frob-1.1.0-cp312-cp312-manylinux_2_28_x86_64.whl"
    line = "Skipping link: {why}: https://example.org/" + wheel + " (from x)\n"
    (tmp_path / "listing").write_text(line.format(why="none of the wheel's tags are compatible"))
    (tmp_path / "later").write_text(line.format(why="Upload time 2026-03-04 00:00:00 not prior"))
    needs = {"install": [{"metadata": {"requires_dist": ["numpy>=2", "torch==2.9.0"]}}]}
    (tmp_path / "report").write_text(json.dumps(needs))
    needs = {"install": [{"metadata": {"requires_dist": ["torch == 2.9.0", "numpy"]}}]}
    (tmp_path / "older").write_text(json.dumps(needs))
    program = tmp_path / "python"
    program.write_text(FAKE.format(folder=tmp_path, log=tmp_path / "log"))
    program.chmod(0o755)
    return Pip(str(program))


FROB = Release(
    "1.1.0", day="2026-03-04", wheels={"manylinux_2_28_x86_64": ("cp312-cp312",)}, requires=None
)


def test_days_come_from_the_pythons_that_a_release_is_for(pip: Pip, tmp_path: Path) -> None:
    assert pip.releases("frob", {}) == {"1.1.0": FROB}
    first, second = (tmp_path / "log").read_text().splitlines()
    assert "--python-version" not in first
    assert "--python-version=3.12 --platform=manylinux_2_28_x86_64" in second
    assert first.startswith(f"{os.devnull} "), "a constraint of the machine hides releases"


def test_a_day_that_is_known_is_not_asked_again(pip: Pip, tmp_path: Path) -> None:
    assert pip.releases("frob", {"1.1.0": FROB}) == {"1.1.0": FROB}
    assert len((tmp_path / "log").read_text().splitlines()) == 1


def test_requirements_are_asked_of_a_wheel_for_linux(pip: Pip, tmp_path: Path) -> None:
    wheels = {**FROB.wheels, "win_amd64": ("cp314-cp314",), "any": ("py3-none",)}
    told = pip.with_requirements("frob", replace(FROB, wheels=wheels))
    assert told == replace(FROB, wheels=wheels, requires=("numpy>=2", "torch==2.9.0"))
    (asked,) = (tmp_path / "log").read_text().splitlines()
    assert "--python-version=3.12 --platform=manylinux_2_28_x86_64" in asked
    assert "--implementation=cp --abi=cp312 frob==1.1.0" in asked
    assert "--dry-run" in asked


def test_what_wheels_of_one_release_do_not_agree_on_is_left_open(pip: Pip) -> None:
    wheels = {"manylinux_2_28_x86_64": ("cp312-cp312", "cp313-cp313t", "cp310-cp310", "cp39-cp39")}
    told = pip.with_requirements("frob", replace(FROB, wheels=wheels))
    assert told.requires == ("numpy>=2", "torch==2.9.0")
    assert told.unlike == ("numpy",)
    assert columns.bound_on("torch")(told) == "==2.9.0"
    with pytest.raises(columns.NotRead):
        columns.bound_on("numpy")(told)


@pytest.mark.parametrize(
    ("tags", "asked"),
    [
        (["cp39-abi3"], [["abi3"]]),
        (["py3-none"], [[]]),
        (["cp37-cp37m", "cp38-cp38"], [["cp38"], ["cp37m"]]),
        (["cp313-cp313t"], [["cp313t"]]),
        ([], []),
    ],
)
def test_two_wheels_stand_for_all(tags: list[str], asked: list[list[str]]) -> None:
    release = Release("1.0", wheels={"win_amd64": tuple(tags)} if tags else {})
    abis = [[o.removeprefix("--abi=") for o in one if "--abi" in o] for one in targets(release)]
    assert abis == asked


def test_a_release_without_wheels_is_not_built_to_be_asked(pip: Pip, tmp_path: Path) -> None:
    source = Release("1.0.0", sdist=True)
    assert pip.with_requirements("frob", source) == source
    assert not (tmp_path / "log").exists()


@pytest.mark.parametrize(
    ("package", "told"), [("old", "is too old"), ("gone", "named no file of gone")]
)
def test_a_pip_that_does_not_tell_says_what_to_do(pip: Pip, package: str, told: str) -> None:
    with pytest.raises(NoAnswer, match=told):
        pip.releases(package, {})


def test_what_could_not_be_read_stays_open(pip: Pip, tmp_path: Path) -> None:
    metadata = Metadata()
    (tmp_path / "report").unlink()
    (problem,) = metadata.ask(pip, "frob", lambda found: list(found), "2026-03-05")
    assert "frob 1.1.0" in problem
    assert metadata.of("frob") == {"1.1.0": FROB}
    assert metadata.is_whole("frob")


def test_requirements_are_asked_once(pip: Pip, tmp_path: Path) -> None:
    metadata = Metadata()
    for _ in range(2):
        assert metadata.ask(pip, "frob", lambda found: list(found), "2026-03-05") == []
    assert (tmp_path / "log").read_text().count("--report") == 1


# -- cells --------------------------------------------------------------------------------------

WHEELS = {
    "manylinux_2_17_x86_64.manylinux2014_x86_64": ("cp310-cp310", "cp313-cp313t"),
    "manylinux_2_27_x86_64.manylinux_2_28_x86_64": ("cp314-cp314",),
    "manylinux1_x86_64": ("cp36-cp36m",),
    "manylinux_2_34_aarch64": ("cp315-cp315",),
    "musllinux_1_2_x86_64": ("cp38-cp38",),
    "macosx_11_0_arm64": ("cp37-cp37",),
}
REQUIRES = (
    "numpy>=1.22; python_version < '3.11'",
    "numpy >=1.26.0 ; python_version >= '3.12'",
    "nvidia-cudnn-cu12==9.1.0.70; platform_system == 'Linux' and platform_machine == 'x86_64'",
    "nvidia-cudnn-cu11==8.9.2.26; platform_system == 'Windows'",
    "torch==2.9.0; extra == 'all'",
    "triton (<4,>=3.2) ; sys_platform == 'linux'",
    "cuda-toolkit[nvrtc,cudart]==13.*; extra == 'ctk'",
    "this is no requirement",
)
ITEM = Release("1.0", requires_python=">=3.10", wheels=WHEELS, requires=REQUIRES)


@pytest.mark.parametrize(
    ("read", "value"),
    [
        (columns.pythons, ["3.6", "3.10", "3.13t", "3.14"]),
        (columns.glibc, "2.5"),
        (columns.glibc_of_all, "2.27"),
        (columns.on("aarch64", columns.glibc), "2.34"),
        (columns.abi3_from, None),
        (columns.windows, False),
        (columns.source_only, None),
        (columns.bounds_on("numpy"), [">=1.22", ">=1.26.0"]),
        (columns.bound_on("numpy"), None),
        (columns.bound_on("triton"), "<4,>=3.2"),
        (columns.lowest(columns.bound_on("triton")), "3.2"),
        (columns.bound_on("torch"), None),
        (columns.only_in_extras("torch"), True),
        (columns.only_in_extras("triton"), None),
        (columns.pinned(r"nvidia-cudnn-cu\d+"), "9.1.0.70"),
        (columns.exact(columns.bound_on(r"nvidia-cudnn-cu\d+")), "9.1.0.70"),
        (columns.all_needs("nvidia-", write=columns.tight), ["nvidia-cudnn-cu12==9.1.0.70"]),
        (columns.all_needs(extras=["ctk"]), ["cuda-toolkit[cudart,nvrtc] ==13.*"]),
        (columns.all_needs(extras=["none"]), None),
        (columns.extras_like("c.*"), ["ctk"]),
    ],
)
def test_a_cell_is_what_metadata_says(read: Callable[[Release], Any], value: Any) -> None:
    assert read(ITEM) == value


@pytest.mark.parametrize(
    "read", [columns.bound_on("numpy"), columns.only_in_extras("torch"), columns.released]
)
def test_what_nobody_read_is_left_open(read: Callable[[Release], Any]) -> None:
    with pytest.raises(columns.NotRead):
        read(replace(ITEM, requires=None))


@pytest.mark.parametrize(
    ("same", "one", "another"),
    [
        (columns.as_range, ">=2,<3", "<3,>=2"),
        (columns.as_range, "~=2.0", ">=2.0,<3"),
        (columns.as_range, "~=2.1.3", ">=2.1.3,<2.2"),
        (columns.as_needs, ["a ~=13.0", "b[x]>=1,<2"], ["b[x] <2,>=1", "a~=13.0"]),
        (columns.as_ranges, ">=1; >=2 if python_version >= \"3.11\"",
         ">=2 if python_version >= '3.11'; >=1"),
        (columns.as_ranges, [">=1", ">=2"], [">=2", ">=1"]),
    ],
)  # fmt: skip
def test_the_spelling_of_a_requirement_is_no_difference(
    same: Callable[[Any], Any], one: Any, another: Any
) -> None:
    assert same(one) == same(another)


# -- writing ------------------------------------------------------------------------------------


def small() -> tuple[dict[str, Any], Metadata]:
    """One catalogue with one row, and metadata that knows better and has one release more."""
    row = {
        "torch": "2.9.0",
        "tag": "cu128",
        "released": "2026-01-01",
        "min_driver_linux": "525",
        "sources": ["pypi-torch", "wheel-torch"],
        "confidence": "medium",
        "note": "by hand",
    }
    sources = {key: {"title": key, "url": None, "read": "2026-01-01"} for key in row["sources"]}
    order = ["torch", "tag", "released", "nccl", "min_driver_linux", "requires_python"]
    catalogue = {"sources": sources, "columns": dict.fromkeys(order, ""), "rows": [row]}
    known = Release("2.9.0", day="2026-01-02", requires_python=">=3.10",
                    requires=("nvidia-nccl-cu12==2.27.5",))  # fmt: skip
    new = Release("2.10.0", day="2026-02-02", requires_python=">=3.10", requires=())
    gone = Release("2.11.0", day="2026-03-02", yanked=True, requires=())
    releases = {item.version: item for item in (known, new, gone)}
    return {"torch-pypi-releases": catalogue}, Metadata({"torch": releases}, {"torch": ""})


TORCH = [t for t in tables.TABLES if t.name == "torch-pypi-releases"]


def test_hand_written_cells_stay_and_metadata_fills_the_others() -> None:
    shipped, metadata = small()
    before = copy.deepcopy(shipped["torch-pypi-releases"]["rows"][0])
    found = refresh.compared(shipped, metadata, TORCH)
    # "pins" is a column that this small catalogue does not name: it comes after those it does.
    assert refresh.rewrite(shipped, found, add=False, day="2026-04-01") == ["torch-pypi-releases"]
    (row,) = shipped["torch-pypi-releases"]["rows"]
    assert row == before | {
        "released": "2026-01-02",
        "requires_python": ">=3.10",
        "nccl": "2.27.5",
        "pins": ["nvidia-nccl-cu12==2.27.5"],
    }
    assert list(row)[:5] == ["torch", "tag", "released", "nccl", "min_driver_linux"]
    read = {key: one["read"] for key, one in shipped["torch-pypi-releases"]["sources"].items()}
    assert read == {"pypi-torch": "2026-04-01", "wheel-torch": "2026-01-01"}
    assert refresh.compared(shipped, metadata, TORCH).differences == []


def test_a_new_release_becomes_a_row_only_when_asked_for() -> None:
    shipped, metadata = small()
    found = refresh.compared(shipped, metadata, TORCH)
    assert [one.version for one in found.fresh] == ["2.10.0"], "2.11.0 was withdrawn"
    refresh.rewrite(shipped, found, add=True, day="2026-04-01")
    assert shipped["torch-pypi-releases"]["rows"][1] == {
        "torch": "2.10.0",
        "released": "2026-02-02",
        "requires_python": ">=3.10",
        "sources": ["pypi-torch"],
        "confidence": "high",
    }
    assert refresh.compared(shipped, metadata, TORCH).fresh == []


def test_a_row_that_gets_its_first_cell_from_metadata_names_it_as_a_source() -> None:
    shipped, metadata = small()
    shipped["torch-pypi-releases"]["rows"][0]["sources"] = ["wheel-torch"]
    found = refresh.compared(shipped, metadata, TORCH)
    refresh.rewrite(shipped, found, add=False, day="2026-04-01")
    assert shipped["torch-pypi-releases"]["rows"][0]["sources"] == ["wheel-torch", "pypi-torch"]


def test_a_row_that_says_less_is_no_contradiction() -> None:
    shipped, metadata = small()
    shipped["torch-pypi-releases"]["rows"][0]["released"] = "2026-01-02"
    found = refresh.compared(shipped, metadata, TORCH)
    assert found.contradictions == []
    assert sorted(one.column for one in found.differences) == ["nccl", "pins", "requires_python"]


# -- the command --------------------------------------------------------------------------------


def test_the_check_passes_offline(capsys: pytest.CaptureFixture[str]) -> None:
    assert refresh.main(["--offline", "--check", "--cache", str(CACHE)]) == 0
    assert " rows compared: 0 cells contradict metadata" in capsys.readouterr().out


def test_the_check_fails_where_metadata_says_otherwise(
    kept: Metadata, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    newest = max(kept.of("jax").values(), key=lambda release: release.day or "")
    kept = copy.deepcopy(kept)
    kept.packages["jax"][newest.version] = replace(newest, requires_python=">=3.99")
    file = tmp_path / "cache.json"
    file.write_text(kept.dump())
    asked = ["--offline", "--cache", str(file), "--catalogue", "jax-releases"]
    assert refresh.main(asked) == 0
    assert refresh.main([*asked, "--check"]) == 1
    line = next(line for line in capsys.readouterr().out.splitlines() if ">=3.99" in line)
    assert f"jax {newest.version}" in line
    assert "requires_python" in line


def test_rows_are_written_in_place(
    kept: Metadata, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "jax-releases"
    text = (columns.CATALOGUES / f"{name}.json").read_text(encoding="utf-8")
    index = {"newest_source": "2000-01-01"}
    (tmp_path / "index.json").write_text(json.dumps(index))
    (tmp_path / f"{name}.json").write_text(text)
    monkeypatch.setattr(refresh, "CATALOGUES", tmp_path)
    monkeypatch.setattr(refresh, "INDEX", tmp_path / "index.json")
    monkeypatch.setattr(refresh, "TABLES", [t for t in tables.TABLES if t.name == name])
    shipped = refresh.catalogues()
    refresh.save_rows(shipped, [name], "2026-12-24")
    assert (tmp_path / f"{name}.json").read_text() == text
    assert json.loads((tmp_path / "index.json").read_text()) == {"newest_source": "2026-12-24"}


def test_a_file_of_another_kind_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "other.json").write_text('{"schema": "envaudit.rules/1"}')
    assert refresh.main(["--offline", "--cache", str(tmp_path / "other.json")]) == 2
    assert "not a file of package metadata" in capsys.readouterr().err
