"""What is particular to an index in a folder: versions, files, storages; and a dictionary as its model."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from likewise.search import Index, check_version, list_versions, purge_versions, restore_version
from likewise.search.card import FILES, FORMAT
from tests.search.conftest import units


def newest(index: Index) -> Path:
    return list_versions(index.folder)[-1].folder


def damaged(index: Index) -> list[Path]:
    return [file for each in list_versions(index.folder) for file in check_version(each)]


def test_a_reader_keeps_what_it_opened(make):
    writer = make(40, storage="int8")
    reader, queries = Index.open(writer.folder), units(3, 8, 1)
    before = reader.search(queries, 5)
    writer.remove(where="year < 2009")
    writer.rebuild(storage="float16")
    purge_versions(writer.folder)
    again = reader.search(queries, 5)
    assert np.array_equal(before.ids, again.ids)
    assert (reader.thumbnail(5), reader.item(5).path) == (b"webp 5", "0005.jpg")
    assert reader.refresh()
    assert len(reader) == 4
    assert not reader.refresh()
    shutil.rmtree(writer.folder)
    with pytest.raises(FileNotFoundError, match=r"is no longer an index"):
        reader.refresh()
    assert len(reader.search(queries, 4)) == 3  # what is open stays open


def test_versions_are_listed_restored_and_purged(make):
    index = make(10)
    index.add(units(2, 8, 5), ["0003.jpg", "new.jpg"])
    index.remove([0, 1])
    assert [(each.number, each.card.rows, each.card.change) for each in list_versions(index.folder)] == [
        (1, 0, "create"),
        (2, 10, "add 10"),
        (3, 11, "add 2, replace 1"),
        (4, 9, "remove 2"),
    ]
    reader = Index.open(index.folder)
    restore_version(index.folder, 2)
    assert index.refresh()
    assert reader.refresh()
    for each in (index, reader):
        assert each.ids.tolist() == list(range(10))
        assert (each.thumbnail(3), each.item(3).label) == (b"webp 3", "wren")
    assert list_versions(index.folder)[-1].card.change == "restore 2"
    assert index.add(units(1, 8, 6), ["later"]).tolist() == [12]  # ids that were given are not given again
    with pytest.raises(ValueError, match=r"number must be one of the stored versions \(3, 4, 5, 6\), but it is 2"):
        restore_version(index.folder, 2)
    assert (purge_versions(index.folder), [each.number for each in list_versions(index.folder)]) == (3, [6])
    assert sorted(each.name for each in index.folder.iterdir()) == [".lock", "version-000006"]


def test_unchanged_files_are_shared(make):
    index = make(10)
    index.rebuild(approximate="hnsw", queries=5)
    index.set_calibration({"points": []})
    first, second = (each.folder for each in list_versions(index.folder)[-2:])
    assert {each.name for each in second.iterdir()} <= {*FILES, "card.json"}
    for name in index.card.files:
        assert (first / name).stat().st_ino == (second / name).stat().st_ino, name
    index.add(units(1, 8, 3), ["new"], thumbnails=[b"fresh"])
    third = newest(index)
    shared = {
        name for name in index.card.files if (second / name).exists() and os.path.samefile(third / name, second / name)
    }
    assert shared == {"thumbnails.bin", "near.faiss", "near.npy"}
    assert (index.thumbnail(10), index.thumbnail(9)) == (b"fresh", b"webp 9")


def test_a_file_system_without_hard_links(make, monkeypatch: pytest.MonkeyPatch):
    index = make(10)

    def refused(*_: Any) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refused)
    index.set_calibration({"points": []})
    assert damaged(index) == []
    assert len(Index.open(index.folder)) == 10


def test_thumbnails_of_removed_items_do_not_stay_for_ever(make, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("likewise.search.writing.ADDED", 40)
    index = make(10)
    index.remove(range(7))
    assert index.card.files["thumbnails.bin"].bytes == len(b"webp 7" + b"webp 9")
    for row in range(8):  # beyond 40 added bytes, both files become one
        index.add(units(1, 8, row), [f"new {row}"], thumbnails=[b"0123456789"])
    added = index.card.files.get("thumbnails-added.bin")
    assert added is None or added.bytes <= 60
    assert [index.thumbnail(each) for each in index.ids] == [b"webp 7", None, b"webp 9", *[b"0123456789"] * 8]
    index.rebuild()
    assert "thumbnails-added.bin" not in index.card.files


@pytest.mark.parametrize(("storage", "least"), [("float16", 0.99), ("int8", 0.9)])
def test_fewer_bits_cost_a_measured_share_of_the_neighbors(storage: str, least: float, tmp_path: Path):
    vectors = units(800, 32)
    index = Index.create(tmp_path / "a.index", dim=32, storage=storage)
    index.add(vectors, [str(row) for row in range(800)])
    loss = index.loss
    assert loss is not None
    assert (loss.queries, loss.among) == (200, 800)
    assert least < loss.recall <= 1.0
    whole = Index.create(tmp_path / "b.index", dim=32)
    whole.add(vectors, [str(row) for row in range(800)])
    true, found = (each.search(vectors, 11).ids[:, 1:] for each in (whole, index))
    by_hand = np.mean([len(set(a) & set(b)) / 10 for a, b in zip(true.tolist(), found.tolist(), strict=True)])
    assert abs(by_hand - loss.recall) < 0.03  # over all 800 and not 200 queries
    merged = Index.create(tmp_path / "c.index", dim=32, storage=storage)
    merged.merge(whole)
    whole.rebuild(storage=storage)
    assert whole.loss == loss == merged.loss
    assert np.array_equal(whole.vectors(), index.vectors())
    size = index.card.files["vectors.npy"].bytes
    assert size == pytest.approx({"float16": 2, "int8": 1}[storage] * 800 * 32, abs=200)


class Dictionary(RuleBasedStateMachine):
    """An index does what a dictionary from paths to vectors does, whatever is done to it in whatever order."""

    def __init__(self) -> None:
        super().__init__()
        import tempfile

        self.folder = tempfile.TemporaryDirectory()
        self.index = Index.create(Path(self.folder.name) / "a.index", dim=3, storage="float16")
        self.known: dict[str, tuple[int, bytes]] = {}
        self.number = 0

    @rule(paths=st.lists(st.sampled_from("abcdef"), min_size=1, max_size=4, unique=True))
    def add(self, paths: list[str]) -> None:
        seeds = [self.number + place for place in range(len(paths))]
        ids = self.index.add(
            np.stack([units(1, 3, seed)[0] for seed in seeds]),
            paths,
            metadata={"seed": seeds},
            thumbnails=[b"%d" % seed for seed in seeds],
        )
        assert ids.tolist() == seeds
        self.number += len(paths)
        for path, seed in zip(paths, seeds, strict=True):
            self.known.pop(path, None)
            self.known[path] = (seed, b"%d" % seed)

    @rule(path=st.sampled_from("abcdef"))
    def remove(self, path: str) -> None:
        assert self.index.remove(where=f'path == "{path}"') == (path in self.known)
        self.known.pop(path, None)

    @rule(storage=st.sampled_from(["float32", "float16", "int8", None]))
    def rebuild(self, storage: str | None) -> None:
        self.index.rebuild(storage=storage)

    @rule()
    def reopen(self) -> None:
        self.index = Index.open(self.index.folder)

    @rule()
    def write_the_same_again(self) -> None:
        restore_version(self.index.folder, list_versions(self.index.folder)[-1].number)
        self.index.refresh()

    @invariant()
    def holds_the_same(self) -> None:
        assert self.index.ids.tolist() == [seed for seed, _ in self.known.values()]
        for path, (seed, thumbnail) in self.known.items():
            item = self.index.item(seed)
            assert (item.path, item.metadata["seed"], self.index.thumbnail(seed)) == (path, seed, thumbnail)
            assert np.abs(self.index.vectors([seed])[0] - units(1, 3, seed)[0]).max() < 0.02

    def teardown(self) -> None:
        assert damaged(self.index) == []
        self.folder.cleanup()


TestDictionary = Dictionary.TestCase
TestDictionary.settings = settings(max_examples=15, stateful_step_count=12, deadline=None)


def test_folders_that_are_no_index(tmp_path: Path, make):
    with pytest.raises(FileNotFoundError, match="there is no index"):
        Index.open(tmp_path / "nowhere")
    with pytest.raises(ValueError, match=r"must be the folder of an index, but it has no version"):
        Index.open(tmp_path)
    index = make()
    with pytest.raises(FileExistsError, match="folder must be new or empty"):
        Index.create(index.folder, dim=8)
    card = newest(index) / "card.json"
    content = json.loads(card.read_text())
    card.write_text(json.dumps(content | {"format": FORMAT + 1}))
    with pytest.raises(
        ValueError, match=f"it has format {FORMAT + 1}, and this version of likewise reads formats up to {FORMAT}"
    ):
        Index.open(index.folder)
    card.write_text(json.dumps(content | {"from the future": 1}))
    assert len(Index.open(index.folder)) == 60


@pytest.mark.parametrize(
    "name", ["vectors.npy", "scales.npy", "items.arrow", "thumbnails.bin", "thumbnails.npy", "near.faiss"]
)
def test_a_file_that_was_cut_changed_or_lost_is_named(tmp_path: Path, name: str):
    index = Index.create(tmp_path / "a.index", dim=8, storage="int8")
    index.add(units(60, 8), [str(row) for row in range(60)], thumbnails=[b"webp" * 9] * 60)
    index.rebuild(approximate="hnsw", queries=5)
    file = newest(index) / name
    content = file.read_bytes()
    file.unlink()  # the older version has a link to the same bytes
    file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    assert damaged(index) == [file]
    for size in (100, 0):
        os.truncate(file, size)
        with pytest.raises(
            ValueError, match=rf"{name} is damaged: restore an older version with likewise index --rest"
        ):
            Index.open(index.folder)
    file.unlink()
    with pytest.raises(ValueError, match=rf"{name} is missing: restore an older version with likewise index --restore"):
        Index.open(index.folder)
    assert damaged(index) == [file]
    with pytest.raises(ValueError, match=rf"{name} is damaged: version 3 cannot be restored"):
        restore_version(index.folder, 3)


@pytest.mark.parametrize(
    "change",
    [
        {"storage": "int4"},
        {"dim": "8"},
        {"dim": 0},
        {"files": {"../../etc/passwd": {"bytes": 1, "sha256": "0"}}},
        {"files": {"vectors.npy": {"bytes": 1}}},
        {"near": {"kind": "hnsw"}},
        {"format": "2"},
        {"name": 3, "format": None},
    ],
)
def test_cards_that_likewise_does_not_write(make, change: dict[str, object]):
    card = newest(make()) / "card.json"
    card.write_text(json.dumps(json.loads(card.read_text()) | change))
    for _ in range(2):
        with pytest.raises(ValueError, match=r"card\.json cannot be read: "):
            Index.open(card.parent.parent)
        card.write_bytes(b"\xff\xfe")


def test_a_damaged_version_gives_way_to_an_older_one(make):
    """Opening names the file and the way out, and the way works although the newest version cannot be opened."""
    index = make(10)
    index.remove([0])
    os.truncate(newest(index) / "items.arrow", 10)
    with pytest.raises(ValueError, match="is damaged"):
        Index.open(index.folder)
    restore_version(index.folder, 2)
    assert len(Index.open(index.folder)) == 10


@pytest.mark.parametrize("storage", ["float32", "float16", "int8"])
def test_lengths_beyond_what_squares_can_hold(tmp_path: Path, storage):
    index = Index.create(tmp_path / "a.index", dim=4, storage=storage)
    given = np.array([[1.0, 2.0, 3.0, 4.0]]) * np.array([[1e200], [1e-200], [1.0], [0.0]])
    index.add(given, list("abcd"))
    expected = np.array([1.0, 2.0, 3.0, 4.0]) / np.sqrt(30.0)
    assert np.allclose(index.vectors()[:3], expected, atol=0.01)
    assert not index.vectors()[3].any()
    assert index.search(given[:1], k=3).ids.tolist() == [[0, 1, 2]]
