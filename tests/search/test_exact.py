"""Exact search against a stable sort of the whole float64 matrix, and against the ranks that metrics count."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from likewise.metrics.ranks import ranks
from likewise.search import Index, exact
from likewise.search.exact import Part, nearest
from likewise.search.vectors import Vectors, encode
from likewise.testing import loop_over
from tests.search.conftest import brute, units


@loop_over("storage", ["float32", "float16", "int8"])
@loop_over("memory", [1, 10_000, 2**28])
def test_equals_a_sort_of_everything(storage: str, memory: int):
    stored = [Vectors(*encode(units(rows, 24, rows), storage)) for rows in (700, 0, 301)]
    queries = units(33, 24, 9)
    rows, scores = nearest(queries, [Part(each) for each in stored], 17, memory=memory)
    everything = np.concatenate([each.take(slice(None)) for each in stored])
    expected, values = brute(queries, everything, 17)
    assert np.array_equal(rows, expected)
    assert np.allclose(scores, values, atol=1e-14)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 5),
    st.integers(1, 60),
    st.integers(1, 70),
    st.integers(1, 4),
    st.integers(0, 2**31),
)
def test_ties_are_by_row_order(dim: int, rows: int, k: int, levels: int, seed: int):
    """Few different vectors: nearly everything ties, and the order of rows decides."""
    chance = np.random.default_rng(seed)
    vectors = encode(chance.integers(-levels, levels + 1, (rows, dim)).astype(float), "float32")[0]
    queries = encode(chance.integers(-levels, levels + 1, (4, dim)).astype(float), "float32")[0]
    found, scores = nearest(queries, [Part(Vectors(vectors))], k, memory=1)
    expected, _ = brute(queries, vectors, k)
    assert np.array_equal(found[:, : expected.shape[1]], expected)
    assert (found[:, expected.shape[1] :] == -1).all()
    assert np.isneginf(scores[:, expected.shape[1] :]).all()


def test_near_ties_that_float32_cannot_tell_apart():
    """Similarities that differ by 1e-9, far below what a float32 product resolves."""
    dim, rows = 64, 4000
    base = units(1, dim)[0].astype(np.float64)
    vectors = np.repeat(base[None], rows, axis=0).astype(np.float32)
    chance = np.random.default_rng(1)
    flips = chance.integers(0, dim, rows)
    vectors[np.arange(rows), flips] = np.nextafter(vectors[np.arange(rows), flips], np.float32(1.0))
    queries = units(3, dim, 5)
    found, _ = nearest(queries, [Part(Vectors(vectors))], 50, memory=100_000)
    _, values = brute(queries, vectors, 51)
    gaps = np.diff(values, axis=1)[:, :50]
    assert np.abs(gaps[gaps != 0.0]).min() < 1e-8  # the test is what it says
    same = np.take_along_axis(values, np.arange(50)[None].repeat(3, axis=0), axis=1)
    again = np.array(
        [(vectors[row].astype(np.float64) * queries[q].astype(np.float64)).sum(axis=1) for q, row in enumerate(found)]
    )
    assert np.abs(again - same).max() < 1e-15  # the order of a float64 sum is the only freedom


def test_rows_that_may_not_be_found_are_not():
    vectors, queries = units(500, 6), units(5, 6, 1)
    allowed = np.sort(np.random.default_rng(0).choice(500, 40, replace=False))
    expected, _ = brute(queries, vectors[allowed], 41)
    others = np.setdiff1d(np.arange(500), allowed)
    for part in (Part(Vectors(vectors), rows=allowed), Part(Vectors(vectors), without=others)):
        for memory in (1, 2**28):
            found, _ = nearest(queries, [part], 41, memory=memory)
            assert np.array_equal(found[:, :40], allowed[expected])
            assert (found[:, 40] == -1).all()
    assert (nearest(queries, [Part(Vectors(vectors), without=np.arange(500))], 3)[0] == -1).all()


def test_few_rows_are_copied_and_many_are_struck_out():
    passed = np.arange(10) < 3
    few, many = Part.of(Vectors(units(10, 2)), passed), Part.of(Vectors(units(10, 2)), ~passed)
    assert (few.rows is not None, many.rows is None) == (True, True)
    assert few.selected_rows.tolist() == [0, 1, 2]
    assert many.selected_rows.tolist() == [3, 4, 5, 6, 7, 8, 9]
    assert (len(few), len(many)) == (3, 7)


def test_places_are_the_ranks_that_metrics_count(make):
    """The rank of each query's positives by `metrics.ranks` is their place among everything that a search finds."""
    index: Index = make(200, 12)
    queries, vectors = units(20, 12, 3), index.vectors()
    labels, classes = np.arange(20) % 5, np.arange(200) % 5
    counted = ranks(torch.from_numpy(queries), labels, torch.from_numpy(vectors), classes)
    found = index.search(queries, k=200)
    place = np.empty((20, 200), np.int64)
    np.put_along_axis(place, found.ids, np.arange(1, 201)[None].repeat(20, axis=0), axis=1)
    assert len(counted.query) == 20 * 40
    for query, reference, rank in zip(
        counted.query.tolist(), counted.reference.tolist(), counted.rank.tolist(), strict=True
    ):
        assert place[query, reference] == rank


def test_more_queries_than_a_product_takes(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(exact, "QUERIES", 7)
    monkeypatch.setattr(exact, "ENTRIES", 100)
    vectors, queries = units(90, 5), units(20, 5, 2)
    found, _ = nearest(queries, [Part(Vectors(vectors))], 4)
    assert np.array_equal(found, brute(queries, vectors, 4)[0])
    assert nearest(queries[:0], [Part(Vectors(vectors))], 4)[0].shape == (0, 4)


def test_a_vector_of_zeros_is_alike_to_nothing():
    vectors = encode(np.array([[0.0, 0.0], [1.0, 0.0], [-1.0, 0.0]]), "int8")
    rows, scores = nearest(np.array([[1.0, 0.0]]), [Part(Vectors(*vectors))], 3)
    assert rows.tolist() == [[1, 0, 2]]
    assert scores.round(6).tolist() == [[1.0, 0.0, -1.0]]
