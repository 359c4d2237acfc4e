"""The gallery is what the recorded machines give now, and nobody is named in it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.gallery import GALLERY, MACHINES, snapshot


def settled(text: str) -> str:
    """How long a busy machine waits for what hangs says nothing; nor does what hangs on it."""
    text = re.sub(r"within [\d.]+ s", "within N s", text)
    return re.sub(r'"(id|fingerprint)": "[^"]*"', r'"\1": ""', text)


@pytest.mark.parametrize("name", MACHINES)
def test_the_gallery_is_up_to_date(name: str, tmp_path: Path) -> None:
    machine, taken_at = MACHINES[name]
    made = snapshot(machine, taken_at, tmp_path)
    kept = (GALLERY / f"{name}.json").read_text("utf-8")
    assert settled(made) == settled(kept), "run: python -m tests.gallery"


def test_every_file_is_told_in_the_readme() -> None:
    page = (GALLERY / "README.md").read_text("utf-8")
    files = {path.stem for path in GALLERY.glob("*.json")}
    assert files == set(MACHINES)
    assert files == set(re.findall(r"\| `([\w-]+)` \|", page))
