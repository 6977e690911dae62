"""Approximate search: what it finds is scored exactly, what it misses is measured, and what it may not find it does not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from likewise.search import Index, approximate
from likewise.search.approximate import efforts, kind_for, trial_queries
from likewise.search.vectors import Vectors
from tests.search.conftest import brute, units

ROWS, DIM = 3000, 20


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three thousand items are many here."""
    monkeypatch.setattr(approximate, "FEW", 100)


def clustered(rows: int, seed: int = 0) -> np.ndarray:
    chance = np.random.default_rng(seed)
    centers = np.random.default_rng(99).normal(size=(60, DIM))
    return centers[chance.integers(0, 60, rows)] + 0.5 * chance.normal(size=(rows, DIM))


def made(folder: Path, kind: str, storage: str = "float32") -> Index:
    index = Index.create(folder, dim=DIM, storage=storage)  # type: ignore[arg-type]
    index.add(
        clustered(ROWS), [str(row) for row in range(ROWS)], metadata={"even": [row % 2 == 0 for row in range(ROWS)]}
    )
    index.rebuild(approximate=kind)  # type: ignore[arg-type]
    return index


@pytest.mark.parametrize("kind", ["hnsw", "ivfpq"])
@pytest.mark.parametrize("storage", ["float32", "int8"])
def test_finds_most_of_what_an_exact_search_finds(kind: str, storage: str, tmp_path: Path):
    made(tmp_path / "a.index", kind, storage)
    index = Index.open(tmp_path / "a.index")
    entry = index.near
    assert entry is not None
    assert (entry.kind, entry.queries) == (kind, 200)
    assert entry.recall >= 0.98
    queries = clustered(50, 1).astype(np.float32)
    found, truth = index.search(queries), index.search(queries, exact=True)
    share = np.mean([len(set(a) & set(b)) / 10 for a, b in zip(found.ids.tolist(), truth.ids.tolist(), strict=True)])
    assert share > 0.95
    for query in range(50):  # scores are those of the exact search, and so is the order
        scores = dict(zip(truth.ids[query].tolist(), truth.scores[query].tolist(), strict=True))
        there = [(number, score) for number, score in found.of(query) if number in scores]
        assert all(scores[number] == score for number, score in there)
        assert (np.diff(found.scores[query]) <= 0).all()
    assert not np.array_equal(found.scores, np.sort(found.scores, axis=None).reshape(found.scores.shape))


@pytest.mark.parametrize("kind", ["hnsw", "ivfpq"])
def test_removed_and_filtered_items_are_never_found_and_new_ones_are(kind: str, tmp_path: Path):
    index = made(tmp_path / "a.index", kind)
    queries = clustered(20, 1).astype(np.float32)
    nearest = index.search(queries, 3).ids
    index.remove(np.unique(nearest))
    again = index.search(queries, 10)
    assert not np.isin(again.ids, nearest).any()
    assert (again.ids >= 0).all()
    odd = index.search(queries, 10, where="not even")
    assert (odd.ids % 2 == 1).all()
    new = index.add(queries, [f"new {row}" for row in range(20)])
    assert np.array_equal(index.search(queries, 1).ids[:, 0], new)
    assert index.near is not None  # the structure stays; what is new is searched beside it
    few = index.search(queries, 10, where="id < 60", exact=None)
    assert np.array_equal(few.ids, index.search(queries, 10, where="id < 60", exact=True).ids)
    index.rebuild()
    assert index.near is not None
    assert index.near.kind == kind
    assert np.array_equal(index.search(queries, 1).ids[:, 0], new)
    index.rebuild(approximate="exact")
    assert index.near is None
    assert "near.faiss" not in index.card.files
    expected, _ = brute(index.vectors(new), index.vectors(), 5)
    assert np.array_equal(index.search(queries, 5).ids, index.ids[expected])


@pytest.mark.parametrize("kind", ["hnsw", "ivfpq"])
def test_a_filter_that_leaves_one_in_twenty_costs_no_recall(kind: str, tmp_path: Path):
    index = Index.create(tmp_path / "a.index", dim=DIM)
    index.add(clustered(4000), [str(row) for row in range(4000)], metadata={"part": [row % 20 for row in range(4000)]})
    index.rebuild(approximate=kind)  # type: ignore[arg-type]
    queries = clustered(50, 1)
    found, truth = (index.search(queries, where="part == 7", exact=exact).ids for exact in (None, True))
    assert (found % 20 == 7).all()
    assert np.mean([len(set(a) & set(b)) / 10 for a, b in zip(found.tolist(), truth.tolist(), strict=True)]) > 0.97


@pytest.mark.parametrize("kind", ["hnsw", "ivfpq"])
def test_searches_where_another_library_has_changed_faiss(kind: str, tmp_path: Path):
    """pytorch-metric-learning imports ``faiss.contrib.torch_utils``, which replaces methods of every index."""
    made(tmp_path / "a.index", kind)
    script = (
        "import sys, faiss.contrib.torch_utils\n"
        "from likewise.search import Index, approximate\n"
        "approximate.FEW = 100\n"
        "index = Index.open(sys.argv[1])\n"
        "assert index.near\n"
        "print(*index.neighbors(7, k=3).ids[0])\n"
        "index.rebuild(approximate=sys.argv[2])\n"
        "print(*index.neighbors(7, k=3).ids[0])\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "a.index"), kind]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    assert printed[0] == printed[1]
    assert len(printed[0].split()) == 3


def test_many_results_are_searched_exactly(tmp_path: Path):
    index = made(tmp_path / "a.index", "hnsw")
    queries = clustered(3, 1)
    assert np.array_equal(index.search(queries, 2000).ids, index.search(queries, 2000, exact=True).ids)


def test_small_indexes_stay_exact(tmp_path: Path):
    index = made(tmp_path / "a.index", "auto")
    assert index.near is None
    assert [kind_for(rows) for rows in (0, 199_999, 200_000, 10**7)] == ["exact", "exact", "hnsw", "ivfpq"]


def test_an_odd_size_of_vectors_and_few_items(tmp_path: Path):
    index = Index.create(tmp_path / "a.index", dim=7)
    index.add(units(150, 7), [str(row) for row in range(150)])
    for kind in ("ivfpq", "hnsw"):
        index.rebuild(approximate=kind, queries=20)
        assert index.search(units(150, 7)[:9], 1).ids[:, 0].tolist() == list(range(9))


def test_queries_for_the_trial_are_near_items_but_none_of_them():
    vectors = units(400, 16)
    queries = trial_queries(Vectors(vectors), 50)
    assert np.allclose(np.linalg.norm(queries, axis=1), 1.0, atol=1e-6)
    _, scores = brute(queries, vectors, 1)
    among = vectors @ vectors.T - 2 * np.eye(400)
    assert scores.max() < 0.99
    assert scores.min() >= among.max(axis=1).min() - 1e-5


def test_efforts_grow_to_the_most_thorough():
    assert efforts("hnsw", 10**6) == [32, 64, 128, 256, 512, 1024]
    assert efforts("ivfpq", 1)[-1] == 1
    assert efforts("ivfpq", 10**6) == [4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4000]
