"""The manifest: there and back, what it names, and what a crash leaves beside it."""

from __future__ import annotations

from pathlib import Path

import pytest

from likewise.search import Index
from likewise.search.manifest import Loss, Manifest, ModelEntry, NearEntry, SegmentEntry, remove_leftovers
from tests.search.conftest import units

FULL = Manifest(
    name="birds",
    dim=3,
    storage="int8",
    segments=(SegmentEntry("a", 2, True), SegmentEntry("b", 1, False)),
    gone="gone-1.npy",
    next_id=9,
    model=ModelEntry("model-1.safetensors", "best.safetensors", "1", "glyphs", {"dim": 3}),
    near=NearEntry("hnsw", "near-1.faiss", ("a",), {"effort": 64}, 0.99, 200, 31.5),
    loss=Loss(0.97, 200, 3),
    calibration={"thresholds": [0.5]},
    root="/photos",
)


def test_there_and_back():
    assert Manifest.from_json(FULL.to_json()) == FULL
    assert Manifest.from_json(Manifest("a", 1).to_json()).segments == ()


def test_names_all_of_its_files():
    segment = {"vectors-a.npy", "items-a.arrow", "scales-a.npy", "thumbs-a.bin", "thumbs-a.npy"}
    assert FULL.files() == segment | {
        *("vectors-b.npy", "items-b.arrow", "scales-b.npy"),
        *("gone-1.npy", "model-1.safetensors", "near-1.faiss"),
    }


def test_leftovers_are_removed_by_the_next_writer_and_by_nobody_else(make):
    index = make(10)
    left = ["vectors-dead.npy", "items-dead.arrow", "gone-dead.npy", "near-dead.faiss", "manifest.json.77.part"]
    for name in left:
        (index.folder / name).write_bytes(b"half")
    (index.folder / "notes.txt").write_text("a user's own")
    Index.open(index.folder).search(units(1, 8))
    assert all((index.folder / name).exists() for name in left)
    index.add(units(1, 8, 3), ["new"])
    assert not any((index.folder / name).exists() for name in left)
    assert (index.folder / "notes.txt").exists()
    assert {each for each in index.manifest.files() if not (index.folder / each).exists()} == set()


@pytest.mark.parametrize("text", ["[]", "{}", '{"format": "1"}', '{"format": 1}', "nonsense"])
def test_nonsense_is_refused(text: str):
    with pytest.raises((ValueError, KeyError, TypeError)):
        Manifest.from_json(text)


def test_removing_leftovers_counts_them(tmp_path: Path):
    (tmp_path / "vectors-x.npy").touch()
    assert remove_leftovers(tmp_path, FULL) == 1
