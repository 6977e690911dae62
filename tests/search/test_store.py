"""What every store promises: the same suite for snapshots in a folder and for PostgreSQL."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet
import pytest
import torch
from PIL import Image

from likewise.search import Encoder, Index, KReciprocal, VectorStore, write_parquet
from likewise.testing import loop_over
from likewise.trunks import Embedder
from tests.search.conftest import brute, units

DIM = 8
Place = Callable[[str], str]


def fill(index: Index, rows: int = 60) -> Index:
    """Vectors with a class, a year and a thumbnail."""
    index.add(
        units(rows, DIM),
        [f"{row:04d}.jpg" for row in range(rows)],
        labels=[("wren", "robin", None)[row % 3] for row in range(rows)],
        metadata={"year": [2000 + row % 10 for row in range(rows)], "_stamp": [str(row) for row in range(rows)]},
        thumbnails=[b"webp %d" % row if row % 2 else None for row in range(rows)],
    )
    return index


@pytest.fixture
def index(place: Place) -> Index:
    return fill(Index.create(place("birds"), dim=DIM))


def test_what_goes_in_comes_out(index: Index, place: Place):
    for each in (index, Index.open(place("birds"))):
        assert (len(each), each.dim, each.storage, each.name) == (60, DIM, "float32", "birds")
        assert (each.card.similarity, each.model, each.model_card, each.near, each.calibration) == (
            "cosine",
            *[None] * 4,
        )
        assert each.fields == {"year": "number"}
        assert each.ids.tolist() == list(range(60))
        assert np.allclose(each.vectors(), units(60, DIM), atol=1e-7)
        assert np.allclose(each.vectors([7, 3, 7]), units(60, DIM)[[7, 3, 7]], atol=1e-7)
        item = each.item(4)
        assert (item.id, item.path, item.label, item.metadata) == (4, "0004.jpg", "robin", {"year": 2004})
        assert [item.id for item in each.items([9, 2, 9])] == [9, 2, 9]
        assert (each.thumbnail(4), each.thumbnail(5)) == (None, b"webp 5")
        assert each.column("label")[:3] == ["wren", "robin", None]
        assert each.column("_stamp")[7] == "7"
        assert each.column("_nothing") == [None] * 60
    assert index.items([]) == []
    assert index.vectors([]).shape == (0, DIM)
    for ask in (lambda: index.item(60), lambda: index.vectors([-1]), lambda: index.thumbnail(400)):
        with pytest.raises(KeyError, match="ids must be those of items in the index, but it has no item"):
            ask()
    with pytest.raises(KeyError, match="name must be one of path, label, id, year, but it is 'size'"):
        index.column("size")


def test_the_order_is_exact_and_ties_come_in_the_order_of_insertion(index: Index):
    queries = units(3, DIM, 1)
    expected, scores = brute(queries, index.vectors(), 10)
    for given in (queries, 3.0 * queries, torch.from_numpy(queries), queries.astype(np.float64), queries.tolist()):
        found = index.search(given)
        assert np.array_equal(found.ids, expected)
        assert np.allclose(found.scores, scores, atol=1e-5)
        assert found.scores.dtype == np.float32
    assert np.array_equal(index.search(queries[0], k=4).ids, expected[:1, :4])
    more = index.search(queries, k=100)
    assert more.ids[0, 60:].tolist() == [-1] * 40
    assert np.isneginf(more.scores[:, 60:]).all()
    index.add(np.concatenate([index.vectors([5, 5]), np.zeros((1, DIM))]), ["copy", "another", "nothing"])
    assert index.neighbors(61, 2).ids.tolist() == [[5, 60]]
    assert index.search(-queries[:1], 63).scores[0].tolist().count(0.0) == 1  # zeros have no direction
    again = index.search(queries, 6, rerank=KReciprocal(k1=5, pool=40))
    assert again.ids.shape == (3, 6)


def test_a_filter_comes_before_the_best_are_taken(index: Index):
    queries = units(4, DIM, 1)
    kept = [row for row in range(60) if row % 3 == 0 and row % 10 >= 6]
    expected, _ = brute(queries, index.vectors()[kept], 5)
    found = index.search(queries, k=5, where='label == "wren" and year >= 2006')
    assert np.array_equal(found.ids, np.array(kept)[expected])
    assert index.matching('label == "wren" and year >= 2006').tolist() == kept
    assert index.matching("year > 3000").tolist() == []
    with pytest.raises(ValueError, match="where must name columns of the index"):
        index.search(queries, where="_stamp == 'x'")


def test_add_replaces_and_remove_removes(index: Index):
    before = index.version
    assert index.add(units(2, DIM, 5), ["0003.jpg", "new.jpg"], labels=["auk", None]).tolist() == [60, 61]
    assert index.version != before
    assert (index.item(60).label, index.item(60).metadata) == ("auk", {"year": None})
    assert index.remove([1, 4, 1]) == 2
    with pytest.raises(KeyError, match="it has no item 4"):
        index.remove([5, 4])
    assert index.remove(where='label == "wren"') == 19  # of twenty, one of which is the replaced 3
    assert index.remove(where="year > 3000") == 0
    left = [row for row in range(60) if row % 3 and row not in (1, 4)]
    assert index.ids.tolist() == [*left, 60, 61]
    assert [index.thumbnail(row) for row in (5, 8, 60)] == [b"webp 5", None, None]
    assert index.add(units(1, DIM, 6), ["new.jpg"], replace=False).tolist() == [62]
    queries = units(3, DIM, 1)
    expected, _ = brute(queries, index.vectors(), 5)
    assert np.array_equal(index.search(queries, 5).ids, index.ids[expected])


@loop_over(
    "call, sentence",
    [
        (lambda index: index.search(np.ones((2, 3))), r"queries must have shape \(n, 8\), but the shape is \(2, 3\)"),
        (lambda index: index.search(np.full((1, 8), np.nan)), "queries must be finite, but row 0 contains NaN"),
        (lambda index: index.search(["a"], k=0), "k must be a whole number ≥ 1, but it is 0"),
        (lambda index: index.search("photo.jpg"), "search it with vectors"),
        (lambda index: index.search(units(1, 8), exact=False), "exact must be True or None for .*no approximate"),
        (
            lambda index: index.add(units(2, 8), ["a"]),
            "paths must have one entry for each of the 2 vectors, but it has 1",
        ),
        (lambda index: index.add(units(2, 8), ["a", "a"]), "paths must be distinct, but 'a' occurs twice"),
        (
            lambda index: index.add(units(1, 8), ["a"], labels=["x", "y"]),
            "labels must have one entry for each of the 1",
        ),
        (
            lambda index: index.add(units(1, 8), ["a"], thumbnails=[]),
            "thumbnails must have one entry for each of the 1",
        ),
        (lambda index: index.add(units(1, 8), ["a"], metadata={"label": ["x"]}), "names other than id, path, label"),
        (
            lambda index: index.add(units(1, 8), ["a"], metadata={"year": ["then"]}),
            "must be a number column as in the index",
        ),
        (
            lambda index: index.add(units(1, 8), ["a"], metadata={"x": [[1]]}),
            "all texts, all numbers or all booleans",
        ),
        (lambda index: index.remove(), "remove takes either ids or where"),
        (lambda index: index.merge(index), "other must be another index, but it is"),
        (lambda index: index.rebuild(storage="int4"), "storage must be one of 'float32', 'float16'"),
        (lambda index: index.rebuild(approximate="lsh"), "approximate must be one of 'auto', 'exact', 'hnsw'"),
    ],
)
def test_refusals_change_nothing(index: Index, call: Any, sentence: str):
    before = index.card
    with pytest.raises((ValueError, TypeError), match=sentence):
        call(index)
    assert index.card == before
    assert len(index) == 60


def test_one_moment_while_others_write(index: Index, place: Place):
    writer = Index.open(place("birds"))
    with index.still() as now:
        writer.remove([0])
        writer.add(units(1, DIM, 9), ["new"])
        index.refresh()
        assert (len(now), len(index)) == (60, 60)
        assert (now.item(0).path, now.thumbnail(1)) == ("0000.jpg", b"webp 1")
        assert now.search(units(1, DIM, 9), 60).ids.max() == 59
        assert now.version != index.version
    assert index.ids.tolist() == list(range(1, 61))
    assert not index.refresh()


def test_writers_wait_for_each_other(place: Place):
    index, given = Index.create(place("shared"), dim=DIM), []

    def write(number: int) -> None:
        mine = Index.open(place("shared"))
        given.extend(
            mine.add(units(5, DIM, turn), [f"{number} {turn} {row}" for row in range(5)]).tolist() for turn in range(4)
        )

    threads = [threading.Thread(target=write, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    index.refresh()
    assert sorted(x for each in given for x in each) == list(range(60)) == index.ids.tolist()
    assert all(each == list(range(each[0], each[0] + 5)) for each in given)


def test_merge_gives_new_ids_and_keeps_everything(place: Place, tmp_path: Path):
    """Also between a folder and a database."""
    index = Index.create(place("all"), dim=DIM, root=tmp_path / "a")
    other = Index.create(tmp_path / "other.index", dim=DIM, storage="int8", root=tmp_path / "b")
    for number, each in enumerate((index, other)):
        each.add(
            units(5, DIM, number),
            [f"{number}-{row}.jpg" for row in range(5)],
            labels=["a"] * 5,
            metadata={"only": [1.5] * 5} if number else {"other": ["x"] * 5, "_stamp": list("abcde")},
            thumbnails=[b"%d %d" % (number, row) for row in range(5)],
        )
    other.remove([2])
    assert index.merge(other) == 4
    assert index.ids.tolist() == list(range(9))
    assert index.fields == {"other": "text", "only": "number"}
    assert index.item(7).path == str(tmp_path.resolve() / "b" / "1-3.jpg")
    assert index.item(7).metadata == {"other": None, "only": 1.5}
    assert (index.thumbnail(3), index.thumbnail(8)) == (b"0 3", b"1 4")
    assert np.allclose(index.vectors()[5:], other.vectors(), atol=1e-6)
    assert index.search(units(1, DIM), 3, where="only == 1.5").ids.min() >= 5
    assert other.merge(index) == 9
    assert other.column("_stamp")[4:] == [*"abcde", *[None] * 4]
    odd = Index.create(tmp_path / "odd.index", dim=3)
    with pytest.raises(ValueError, match="other must have vectors of dimension 8, but they have dimension 3"):
        index.merge(odd)


def test_an_approximate_structure_is_measured(place: Place):
    rng = np.random.default_rng(0)
    centers = rng.normal(size=(60, DIM))
    vectors = centers[rng.integers(0, 60, 1500)] + 0.3 * rng.normal(size=(1500, DIM))
    index = Index.create(place("many"), dim=DIM)
    index.add(vectors, [str(row) for row in range(1500)], metadata={"n": list(range(1500))})
    queries = vectors[:40] + 0.1
    truth = index.search(queries)
    index.rebuild(approximate="hnsw", queries=50)
    near = index.near
    assert near is not None
    assert (near.kind, near.queries) == ("hnsw", 50)
    assert near.recall is not None
    assert near.recall > 0.95
    found = index.search(queries)
    assert np.mean([len({*a} & {*b}) / 10 for a, b in zip(truth.ids.tolist(), found.ids.tolist(), strict=True)]) > 0.95
    assert sorted(index.search(vectors[:1], where="n >= 1490").ids[0].tolist()) == list(range(1490, 1500))
    assert np.array_equal(index.search(queries, exact=True).ids, truth.ids)
    index.rebuild(storage="float16", approximate="exact")
    assert (index.storage, index.near) == ("float16", None)
    assert np.abs(np.linalg.norm(index.vectors(), axis=1) - 1.0).max() < 1e-6
    assert np.abs(index.search(queries).scores - truth.scores).max() < 2e-3


def test_groups_and_calibration(index: Index):
    index.add(np.repeat(units(2, DIM, 5), 3, axis=0), [f"copy {row}" for row in range(6)])
    assert index.duplicates(0.9999) == [[60, 61, 62], [63, 64, 65]]
    assert index.duplicates(0.9999, where="id < 62") == [[60, 61]]
    assert index.duplicates(0.9999, where="id > 99") == []
    assert sorted(np.bincount(index.clusters(4)), reverse=True) == np.bincount(index.clusters(4)).tolist()
    before = index.version
    index.set_calibration({"points": []})
    assert (index.calibration, len(index)) == ({"points": []}, 66)
    assert index.version != before


def test_a_copy_of_the_model(place: Place, tmp_path: Path):
    torch.manual_seed(0)
    Embedder("convnet", 8).eval().save(tmp_path / "m.safetensors", metrics={"R@1": 0.5})
    pictures = [Image.fromarray(np.random.default_rng(n).integers(0, 256, (32, 32), np.uint8)) for n in range(4)]
    index = Index.create(place("drawn"), dim=8, model=tmp_path / "m.safetensors", transform="glyphs", root=tmp_path)
    index.add(index.encoder("cpu").embed(pictures), ["a", "b", "c", "d"])
    assert index.encoder("cpu") is index.encoder("cpu")
    assert index.root == tmp_path.resolve()
    assert index.model is not None
    assert (index.model.name, index.model.transform) == ("m.safetensors", "glyphs")
    assert index.model_card is not None
    assert index.model_card.metrics == {"R@1": 0.5}
    by_hand = Encoder.load(tmp_path / "m.safetensors", "glyphs", "cpu").embed(pictures)
    assert np.allclose(Index.open(place("drawn")).encoder("cpu").embed(pictures), by_hand, atol=1e-6)
    assert index.search([pictures[1], pictures[3]], 1).ids.tolist() == [[1], [3]]
    like = Index.create_like(index, place("like"))
    assert like.merge(index) == 4
    assert (like.model, like.root, like.column("path")) == (index.model, index.root, ["a", "b", "c", "d"])
    bare = Index.create(place("bare"), dim=8, model=tmp_path / "m.safetensors", transform="glyphs", keep_model=False)
    assert (bare.model, bare.model_card is None) == (None, False)
    with pytest.raises(ValueError, match=r"bare has no (copy of its )?model: search it with vectors"):
        bare.search(pictures[0])
    assert bare.merge(index) == 4
    with pytest.raises(ValueError, match="dim must be the model's 8, but it is 9"):
        Index.create(place("wrong"), dim=9, model=tmp_path / "m.safetensors")
    with pytest.raises(ValueError, match=r"other must have vectors of the same model, no model, but they are of m\.s"):
        Index.create(place("plain"), dim=8).merge(index)
    with pytest.raises(ValueError, match="other must have the transform None, but it has glyphs"):
        Index.create(place("alike"), dim=8, model=tmp_path / "m.safetensors").merge(index)


def test_parquet_for_other_databases(index: Index, tmp_path: Path):
    assert write_parquet(index, tmp_path / "birds.parquet") == 60
    table = pyarrow.parquet.read_table(tmp_path / "birds.parquet")
    assert table.column_names == ["id", "path", "label", "year", "vector"]
    assert table.schema.field("vector").type == pyarrow.list_(pyarrow.float32(), DIM)
    assert np.allclose(np.array(table.column("vector").to_pylist()), index.vectors())
    assert table.column("year").to_pylist() == index.column("year")
    assert table.schema.metadata[b"likewise.similarity"] == b"cosine"
    assert [each.name for each in tmp_path.iterdir() if "parquet" in each.name] == ["birds.parquet"]


def test_dropped(index: Index, place: Place):
    store: VectorStore = index._store
    store.drop()
    with pytest.raises((ValueError, FileNotFoundError), match=r"there is no index|name must be an index"):
        Index.open(place("birds"))
    assert len(fill(Index.create(place("birds"), dim=DIM), 3)) == 3
