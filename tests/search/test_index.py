"""An index: what goes in comes out, whatever was added, replaced, removed, merged and rebuilt."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from likewise.search import Index
from likewise.search.manifest import FORMAT
from tests.search.conftest import brute, units


def test_what_goes_in_comes_out(make, tmp_path: Path):
    index = make(60, 8, name="a.index")
    for each in (index, Index.open(tmp_path / "a.index")):
        assert (len(each), each.dim, each.storage, each.name) == (60, 8, "float32", "a")
        assert each.card is None
        assert each.model_file is None
        assert each.fields == {"year": "number"}
        assert each.ids.tolist() == list(range(60))
        assert np.allclose(each.vectors(), units(60, 8), atol=1e-7)
        assert np.allclose(each.vectors([7, 3]), units(60, 8)[[7, 3]], atol=1e-7)
        item = each.item(4)
        assert (item.id, item.path, item.label, item.metadata) == (4, "0004.jpg", "robin", {"year": 2004})
        assert [item.id for item in each.items([9, 2, 9])] == [9, 2, 9]
        assert (each.thumbnail(4), each.thumbnail(5)) == (None, b"webp 5")


def test_search_takes_arrays_tensors_lists_and_one_vector(make):
    index, queries = make(), units(3, 8, 1)
    expected, scores = brute(queries, index.vectors(), 10)
    for given in (queries, 3.0 * queries, torch.from_numpy(queries), queries.astype(np.float64), queries.tolist()):
        found = index.search(given)
        assert np.array_equal(found.ids, expected)
        assert np.allclose(found.scores, scores, atol=1e-6)
        assert found.scores.dtype == np.float32
    assert np.array_equal(index.search(queries[0], k=4).ids, expected[:1, :4])
    assert index.search(queries, k=100).ids[0, 60:].tolist() == [-1] * 40
    assert np.isneginf(index.search(queries, k=61).scores[:, -1]).all()


def test_neighbors_leave_the_item_out(make):
    index = make()
    expected, _ = brute(index.vectors([5]), index.vectors(), 4)
    assert index.neighbors(5, 3).ids.tolist() == [expected[0, 1:].tolist()]
    index.add(index.vectors([5, 5]), ["copy", "another"])
    assert index.neighbors(61, 2).ids.tolist() == [[5, 60]]


def test_a_filter_is_applied_before_the_best_are_taken(make):
    index, queries = make(90), units(4, 8, 1)
    found = index.search(queries, k=5, where='label == "wren" and year >= 2006')
    kept = [row for row in range(90) if row % 3 == 0 and row % 10 >= 6]
    expected, _ = brute(queries, index.vectors()[kept], 5)
    assert np.array_equal(found.ids, np.array(kept)[expected])


def test_a_path_that_is_there_is_replaced(make):
    index = make(10)
    new = index.add(units(2, 8, 5), ["0003.jpg", "new.jpg"], labels=["auk", None])
    assert new.tolist() == [10, 11]
    assert index.ids.tolist() == [0, 1, 2, 4, 5, 6, 7, 8, 9, 10, 11]
    assert index.item(10).label == "auk"
    assert index.item(10).metadata == {"year": None}
    with pytest.raises(KeyError, match="ids must be of items in the index, but it has none with the number 3"):
        index.item(3)
    both = index.add(units(1, 8, 6), ["new.jpg"], replace=False)
    assert (both.tolist(), len(index)) == ([12], 12)


def test_remove_by_number_and_by_filter(make):
    index = make(30)
    assert index.remove([3, 4, 3]) == 2
    assert index.matching('label == "wren"').tolist() == [row for row in range(30) if row % 3 == 0 and row != 3]
    assert index.matching("year > 3000").tolist() == []
    assert index.remove(where='label == "wren"') == 9  # of ten, one of which is the removed 3
    assert index.ids.tolist() == [row for row in range(30) if row % 3 and row != 4]
    assert index.remove(where="year > 3000") == 0
    queries = units(3, 8, 1)
    expected, _ = brute(queries, index.vectors(), 5)
    assert np.array_equal(index.search(queries, 5).ids, index.ids[expected])


def test_a_reader_keeps_what_it_opened(make, tmp_path: Path):
    writer = make(40, storage="int8")
    reader, queries = Index.open(writer.folder), units(3, 8, 1)
    before = reader.search(queries, 5)
    writer.remove(where="year < 2009")
    writer.rebuild(storage="float16")
    again = reader.search(queries, 5)
    assert np.array_equal(before.ids, again.ids)
    assert reader.thumbnail(5) == b"webp 5"
    assert reader.item(5).path == "0005.jpg"
    assert reader.refresh()
    assert len(reader) == 4
    assert not reader.refresh()
    shutil.rmtree(writer.folder)
    with pytest.raises(FileNotFoundError, match=r"is no index any more"):
        reader.refresh()
    assert len(reader.search(queries, 4)) == 3  # what is open goes on


def test_merge_gives_new_numbers_and_keeps_everything(tmp_path: Path):
    made = []
    for number, storage in enumerate(["float32", "int8"]):
        index = Index.create(tmp_path / f"{number}.index", dim=4, storage=storage)
        index.add(
            units(5, 4, number),
            [f"{number}-{row}.jpg" for row in range(5)],
            labels=["a"] * 5,
            metadata={"only": [1.5] * 5} if number else {"other": ["x"] * 5},
            thumbnails=[b"%d %d" % (number, row) for row in range(5)],
        )
        made.append(index)
    made[1].remove([2])
    assert made[0].merge(made[1]) == 4
    assert made[0].ids.tolist() == list(range(9))
    assert made[0].fields == {"other": "text", "only": "number"}
    assert made[0].item(7).path == "1-3.jpg"
    assert made[0].item(7).metadata == {"other": None, "only": 1.5}
    assert made[0].thumbnail(8) == b"1 4"
    assert np.allclose(made[0].vectors()[5:], made[1].vectors(), atol=1e-6)
    assert made[0].search(units(1, 4), 3, where="only == 1.5").ids.min() >= 5
    with pytest.raises(ValueError, match="other must be another index"):
        made[0].merge(made[0])
    other = Index.create(tmp_path / "other.index", dim=3)
    with pytest.raises(ValueError, match="other must have vectors of size 4, but they are of size 3"):
        other.add(units(1, 3), ["a"]), made[0].merge(other)


def test_rebuild_keeps_numbers_and_drops_what_was_removed(make):
    index = make(50)
    index.add(units(5, 8, 2), [f"new {row}" for row in range(5)], thumbnails=[b"x"] * 5)
    index.remove(range(10, 20))
    queries = units(4, 8, 1)
    before = index.search(queries, 60)
    index.rebuild()
    after = index.search(queries, 60)
    assert np.array_equal(before.ids, after.ids)
    assert np.array_equal(before.scores, after.scores)
    assert [each.rows for each in index.manifest.segments] == [45]
    assert index.manifest.gone is None
    assert (index.thumbnail(52), index.thumbnail(9), index.thumbnail(8)) == (b"x", b"webp 9", None)
    assert index.add(units(1, 8), ["last"]).tolist() == [55]
    names = sorted(file.name.split("-")[0] for file in index.folder.iterdir())
    assert names == [".lock", "items", "items", "manifest.json", "thumbs", "thumbs", "vectors", "vectors"]


@pytest.mark.parametrize(("storage", "least"), [("float16", 0.99), ("int8", 0.9)])
def test_fewer_bits_cost_a_measured_share_of_the_neighbors(storage: str, least: float, tmp_path: Path):
    vectors = units(800, 32)
    index = Index.create(tmp_path / "a.index", dim=32, storage=storage)
    index.add(vectors, [str(row) for row in range(800)])
    loss = index.manifest.loss
    assert loss is not None
    assert (loss.queries, loss.among) == (200, 800)
    assert least < loss.recall <= 1.0
    whole = Index.create(tmp_path / "b.index", dim=32)
    whole.add(vectors, [str(row) for row in range(800)])
    true, found = (each.search(vectors, 11).ids[:, 1:] for each in (whole, index))
    by_hand = np.mean([len(set(a) & set(b)) / 10 for a, b in zip(true.tolist(), found.tolist(), strict=True)])
    assert abs(by_hand - loss.recall) < 0.03  # over all 800 and not 200 queries
    whole.rebuild(storage=storage)
    assert whole.manifest.loss == loss
    assert np.array_equal(whole.vectors(), index.vectors())
    size = sum(file.stat().st_size for file in index.folder.glob("vectors-*"))
    assert size == pytest.approx({"float16": 2, "int8": 1}[storage] * 800 * 32, abs=200)


def test_many_small_additions_are_put_together(tmp_path: Path):
    index = Index.create(tmp_path / "a.index", dim=4)
    for row in range(80):
        index.add(units(1, 4, row), [f"{row % 50}.jpg"])
    assert len(index.manifest.segments) <= 33
    assert index.ids.tolist() == list(range(30, 80))
    assert [item.path for item in index.items(index.ids)] == [f"{row % 50}.jpg" for row in range(30, 80)]


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

    @invariant()
    def holds_the_same(self) -> None:
        assert self.index.ids.tolist() == [seed for seed, _ in self.known.values()]
        for path, (seed, thumbnail) in self.known.items():
            item = self.index.item(seed)
            assert (item.path, item.metadata["seed"], self.index.thumbnail(seed)) == (path, seed, thumbnail)
            assert np.abs(self.index.vectors([seed])[0] - units(1, 3, seed)[0]).max() < 0.02

    def teardown(self) -> None:
        self.folder.cleanup()


TestDictionary = Dictionary.TestCase
TestDictionary.settings = settings(max_examples=15, stateful_step_count=12, deadline=None)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda index: index.search(np.ones((2, 3))), r"queries must have shape \(n, 8\), but the shape is \(2, 3\)"),
        (lambda index: index.search(np.full((1, 8), np.nan)), "queries must be finite, but row 0 contains NaN"),
        (lambda index: index.search(["a"], k=0), "k must be a whole number ≥ 1, but it is 0"),
        (lambda index: index.search("photo.jpg"), "has no model: search it with vectors"),
        (lambda index: index.search(units(1, 8), exact=False), "exact must be True or None for .*no approximate"),
        (
            lambda index: index.add(units(2, 8), ["a"]),
            "paths must have one entry for each of the 2 vectors, but it has 1",
        ),
        (lambda index: index.add(units(2, 8), ["a", "a"]), "paths must name each file once, but it names 'a' twice"),
        (
            lambda index: index.add(units(1, 8), ["a"], labels=["x", "y"]),
            "labels must have one entry for each of the 1 vectors, but it has 2",
        ),
        (
            lambda index: index.add(units(1, 8), ["a"], metadata={"label": ["x"]}),
            "metadata must have columns with names other than id, path, label, but has 'label'",
        ),
        (lambda index: index.remove(), "remove takes either ids or where"),
        (lambda index: index.rebuild(storage="int4"), "storage must be one of 'float32', 'float16', 'int8'"),
        (lambda index: index.rebuild(approximate="lsh"), "approximate must be one of 'auto', 'exact', 'hnsw', 'ivfpq'"),
        (lambda index: Index.create(index.folder, dim=8), "folder must be new or empty"),
    ],
)
def test_refusals(make, call, sentence: str):
    index = make()
    before = (index.folder / "manifest.json").read_bytes()
    with pytest.raises((ValueError, FileExistsError), match=sentence):
        call(index)
    assert (index.folder / "manifest.json").read_bytes() == before


def test_metadata_of_another_kind_is_refused(make):
    index = make()
    with pytest.raises(TypeError, match=r"metadata\['year'\] must hold a number like the index's, but it holds a text"):
        index.add(units(1, 8), ["a"], metadata={"year": ["then"]})
    with pytest.raises(TypeError, match=r"metadata\['x'\] must be all texts, all numbers or all truth values"):
        index.add(units(1, 8), ["a"], metadata={"x": [[1]]})
    index.add(units(1, 8), ["a"], metadata={"year": [None], "when": [np.float32(2.5)], "good": [np.True_]})
    assert index.fields == {"year": "number", "when": "number", "good": "bool"}


def test_folders_that_are_no_index(tmp_path: Path, make):
    with pytest.raises(FileNotFoundError, match="there is no index"):
        Index.open(tmp_path / "nowhere")
    with pytest.raises(ValueError, match=r"must be the folder of an index, but it has no manifest\.json"):
        Index.open(tmp_path)
    index = make()
    manifest = index.folder / "manifest.json"
    content = json.loads(manifest.read_text())
    manifest.write_text(json.dumps(content | {"format": FORMAT + 1}))
    with pytest.raises(
        ValueError, match=f"it is of format {FORMAT + 1} and this likewise knows formats up to {FORMAT}"
    ):
        Index.open(index.folder)
    manifest.write_text(json.dumps(content | {"from the future": 1}))
    assert len(Index.open(index.folder)) == 60
    next(index.folder.glob("items-*")).unlink()
    with pytest.raises(ValueError, match=r"items-\w+\.arrow is missing: take a copy"):
        Index.open(index.folder)
    manifest.write_text("{")
    with pytest.raises(ValueError, match=r"manifest\.json cannot be read"):
        Index.open(index.folder)


@pytest.mark.parametrize("size", [0, 100])
@pytest.mark.parametrize("file", ["vectors-*.npy", "scales-*.npy", "items-*", "thumbs-*.bin", "thumbs-*.npy", "gone-*"])
def test_a_file_that_was_cut_is_named(tmp_path: Path, file: str, size: int):
    index = Index.create(tmp_path / "a.index", dim=8, storage="int8")
    index.add(units(60, 8), [str(row) for row in range(60)], thumbnails=[b"webp" * 9] * 60)
    index.remove([3])
    [cut] = index.folder.glob(file)
    os.truncate(cut, size)
    with pytest.raises(ValueError, match=f"{cut.name} is damaged: take a copy of the index, or make it anew"):
        Index.open(index.folder)


@pytest.mark.parametrize("size", [0, 100])
def test_a_structure_that_was_cut_is_named(tmp_path: Path, size: int):
    index = Index.create(tmp_path / "a.index", dim=8)
    index.add(units(60, 8), [str(row) for row in range(60)])
    index.rebuild(approximate="hnsw", queries=5)
    [cut] = index.folder.glob("near-*")
    os.truncate(cut, size)
    with pytest.raises(ValueError, match=f"{cut.name} is damaged"):
        Index.open(index.folder).search(units(1, 8))


@pytest.mark.parametrize(
    "change",
    [
        {"storage": "int4"},
        {"dim": "8"},
        {"dim": 0},
        {"gone": "../../etc/passwd"},
        {"gone": "gone-/../../x"},
        {"segments": [{"id": "/../../x", "rows": 1, "thumbnails": False}]},
        {"segments": [{"id": "a"}]},
        {"near": {"kind": "hnsw"}},
    ],
)
def test_manifests_that_nobody_wrote(make, change: dict[str, object]):
    manifest = make().folder / "manifest.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | change))
    with pytest.raises(ValueError, match=r"manifest\.json cannot be read: "):
        Index.open(manifest.parent)
    manifest.write_bytes(b"\xff\xfe")
    with pytest.raises(ValueError, match=r"manifest\.json cannot be read: "):
        Index.open(manifest.parent)


@pytest.mark.parametrize("storage", ["float32", "float16", "int8"])
def test_lengths_beyond_what_squares_can_hold(tmp_path: Path, storage):
    index = Index.create(tmp_path / "a.index", dim=4, storage=storage)
    given = np.array([[1.0, 2.0, 3.0, 4.0]]) * np.array([[1e200], [1e-200], [1.0], [0.0]])
    index.add(given, list("abcd"))
    expected = np.array([1.0, 2.0, 3.0, 4.0]) / np.sqrt(30.0)
    assert np.allclose(index.vectors()[:3], expected, atol=0.01)
    assert not index.vectors()[3].any()
    assert index.search(given[:1], k=3).ids.tolist() == [[0, 1, 2]]


def test_more_than_there_is(make):
    index = make()
    found = index.search(units(2, 8), k=500)
    assert found.ids.shape == found.scores.shape == (2, 500)
    assert sorted(found.ids[0, :60].tolist()) == index.ids.tolist()
    assert (found.ids[:, 60:] == -1).all()
    assert np.isneginf(found.scores[:, 60:]).all()
