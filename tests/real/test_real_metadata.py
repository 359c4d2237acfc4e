"""The rows of the newest releases against the package metadata of today, through a real pip."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.real import parts
from tools import refresh
from tools.metadata import Metadata, Pip, by_age

pytestmark = pytest.mark.real

ASKED = ("jax", "tensorflow", "torch", "vllm", "xformers")
NEWEST = 2
EXCERPT = Path(__file__).parents[1] / "metadata-cache.json"


@pytest.fixture(scope="module")
def shipped() -> dict[str, Any]:
    return refresh.catalogues()


@pytest.fixture(scope="module")
def today(shipped: dict[str, Any]) -> Metadata:
    """What pip tells today; days that the committed file has are not asked again."""
    pip = Pip(str(parts.part("pip") / "bin" / "python"))
    metadata = Metadata.load(EXCERPT)
    for package in ASKED:
        # Requirements are asked anew: those of the file are what this is about.
        known = metadata.packages[package]
        metadata.packages[package] = {v: replace(r, requires=None) for v, r in known.items()}
        assert refresh.ask(pip, metadata, shipped, package, NEWEST) == []
    return metadata


@pytest.mark.parametrize("package", ASKED)
def test_the_newest_release_with_a_row_was_read_in_full(package: str, today: Metadata) -> None:
    releases = today.of(package)
    newest = [releases[v] for v in by_age(releases) if releases[v].requires is not None][-1]
    assert newest.wheels
    assert newest.day
    assert newest.requires_python


def test_no_row_contradicts_the_metadata_of_today(shipped: dict[str, Any], today: Metadata) -> None:
    asked = Metadata({package: today.packages[package] for package in ASKED})
    found = refresh.compared(shipped, asked)
    assert not found.contradictions, "\n".join(refresh.report(found))
    assert found.rows > len(ASKED) * refresh.EXCERPT_RELEASES


@pytest.mark.parametrize("package", ASKED)
def test_the_committed_metadata_is_that_of_today(package: str, today: Metadata) -> None:
    committed = Metadata.load(EXCERPT).of(package)
    for version, release in committed.items():
        now = today.of(package)[version]
        # A wheel for one more platform may come later, and a release may be withdrawn.
        assert now.requires_python == release.requires_python
        assert set(release.wheels) <= set(now.wheels)
        if now.requires is not None:
            assert set(release.requires or ()) <= set(now.requires)
