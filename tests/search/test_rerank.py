"""Re-ranking, against the papers' equations read out literally, set by set and sum by sum."""

from __future__ import annotations

from math import exp, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from likewise.search.matches import Matches
from likewise.search.rerank import KReciprocal, QueryExpansion, expand, k_reciprocal
from likewise.testing import loop_over


def literal_k_reciprocal(
    query: list[float], candidates: list[list[float]], k1: int, k2: int, lam: float
) -> list[float]:
    """Zhong et al. 2017, equation by equation, with Python's sets."""
    points = [[x / sqrt(sum(y * y for y in point)) for x in point] for point in (query, *candidates)]
    everyone = range(len(points))
    squared = [[sum((x - y) ** 2 for x, y in zip(p, g, strict=True)) for g in points] for p in points]
    largest = max(max(row) for row in squared)
    d = [[value / largest if largest > 1e-12 else 0.0 for value in row] for row in squared]

    def nearest(p: int, k: int) -> list[int]:  # Eq. 1 and 2: p itself, then the k nearest
        others = sorted((g for g in everyone if g != p), key=lambda g: (d[p][g], g))
        return [p, *others[:k]]

    def reciprocal(p: int, k: int) -> set[int]:  # Eq. 3
        return {g for g in nearest(p, k) if p in nearest(g, k)}

    def expanded(p: int) -> set[int]:  # Eq. 5
        found = set(reciprocal(p, k1))
        for q in reciprocal(p, k1):
            small = reciprocal(q, round(k1 / 2))
            if 3 * len(reciprocal(p, k1) & small) >= 2 * len(small):
                found |= small
        return found

    vectors = []
    for p in everyone:  # Eq. 7
        star = expanded(p)
        vectors.append([exp(-d[p][g]) if g in star else 0.0 for g in everyone])
    averaged = []
    for p in everyone:  # Eq. 11
        near = nearest(p, k2 - 1)
        averaged.append([sum(vectors[g][j] for g in near) / len(near) for j in everyone])
    result = []
    for g in everyone[1:]:  # Eq. 10 and 12
        smaller = sum(min(averaged[0][j], averaged[g][j]) for j in everyone)
        larger = sum(max(averaged[0][j], averaged[g][j]) for j in everyone)
        result.append((1.0 - lam) * (1.0 - smaller / larger) + lam * d[0][g])
    return result


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    n=st.integers(1, 24),
    k1=st.integers(1, 12),
    k2=st.integers(1, 6),
    weight=st.sampled_from([0.0, 0.3, 1.0]),
)
def test_k_reciprocal_is_the_papers(seed: int, n: int, k1: int, k2: int, weight: float):
    chance = np.random.default_rng(seed)
    centers = chance.normal(size=(3, 4))
    points = centers[chance.integers(0, 3, n + 1)] + 0.6 * chance.normal(size=(n + 1, 4))
    found = k_reciprocal(points[0], points[1:], k1=k1, k2=k2, weight=weight)
    truth = literal_k_reciprocal(points[0].tolist(), points[1:].tolist(), k1, k2, weight)
    assert np.allclose(found, truth, atol=1e-9)


def test_an_impostor_between_two_groups_falls_back():
    """The query's own group stands together; one stray neighbor is nearer than half of it, and nobody else's."""
    degrees = np.radians([0.0, 3.0, -4.0, 5.0, -6.0, 9.0])  # the query, its group, and at 5 degrees a stray
    group = np.stack([np.cos(degrees), np.sin(degrees), np.zeros(6)], axis=1)
    stray = np.array([[np.cos(np.radians(8)), 0.0, np.sin(np.radians(8))]])
    others = stray + 0.02 * np.array([[0.0, 0.5, 1.0], [0.0, -0.4, 1.2], [0.1, 0.1, 1.4]])
    candidates = np.vstack([group[1:], stray, others])
    before = np.argsort(-(candidates / np.linalg.norm(candidates, axis=1, keepdims=True)) @ group[0])
    after = np.argsort(k_reciprocal(group[0], candidates, k1=4, k2=2))
    assert list(before).index(5) < list(before).index(4)
    assert list(after).index(5) > list(after).index(4)


def test_nothing_but_copies():
    """All at one place: every distance is zero, and the order stays."""
    found = k_reciprocal([1.0, 0.0], np.tile([2.0, 0.0], (5, 1)), k1=2, k2=1, weight=1.0)
    assert np.array_equal(found, np.zeros(5))


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10_000), n=st.integers(0, 6), alpha=st.floats(0.0, 5.0))
def test_query_expansion_is_the_papers(seed: int, n: int, alpha: float):
    """Radenović et al. 2019: the query and its neighbors, each weighted by its similarity to the power α."""
    chance = np.random.default_rng(seed)
    points = chance.normal(size=(n + 1, 3))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    scores = points[1:] @ points[0]
    total = [float(x) for x in points[0]]
    for point, score in zip(points[1:], scores, strict=True):
        for place in range(3):
            total[place] += max(float(score), 0.0) ** alpha * float(point[place])
    length = sqrt(sum(x * x for x in total))
    assert np.allclose(expand(points[0], points[1:], scores, alpha=alpha), [x / length for x in total], atol=1e-9)


class Collection:
    """A collection that is searched by looking at all of it."""

    def __init__(self, count: int, seed: int = 0) -> None:
        chance = np.random.default_rng(seed)
        vectors = chance.normal(size=(count, 8))
        self.all = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)

    def vectors(self, ids: np.ndarray) -> np.ndarray:
        return self.all[ids - 100]  # numbers begin at 100

    def search(self, queries: np.ndarray, k: int) -> Matches:
        scores = queries @ self.all.T
        order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
        ids = np.full((len(queries), k), -1, np.int64)
        best = np.full((len(queries), k), -np.inf, np.float32)
        ids[:, : order.shape[1]] = order + 100
        best[:, : order.shape[1]] = np.take_along_axis(scores, order, 1)
        return Matches(ids, best)


def test_a_search_with_k_reciprocal():
    here = Collection(60)
    queries = here.all[:4] + 0.1
    found = KReciprocal(k1=6, k2=3, pool=30).rerank(queries, 5, here.search, here.vectors)
    assert found.ids.shape == found.scores.shape == (4, 5)
    for row, query in enumerate(queries):
        pool = here.search(query[None], 30).ids[0]
        truth = literal_k_reciprocal(query.tolist(), here.vectors(pool).tolist(), 6, 3, 0.3)
        best = np.argsort(truth, kind="stable")[:5]
        assert found.ids[row].tolist() == pool[best].tolist()
        assert np.allclose(found.scores[row], 1.0 - np.array(truth)[best], atol=1e-5)


def test_a_search_with_query_expansion():
    here = Collection(60)
    queries = here.all[:3] + 0.1
    found = QueryExpansion(top=4, alpha=2.0).rerank(queries, 5, here.search, here.vectors)
    for row, query in enumerate(queries):
        first = here.search(query[None], 4)
        moved = expand(query, here.vectors(first.ids[0]), first.scores[0], alpha=2.0)
        again = here.search(moved[None].astype(np.float32), 5)
        assert found.ids[row].tolist() == again.ids[0].tolist()


@loop_over("rerank", [KReciprocal(), QueryExpansion()])
def test_fewer_items_than_wanted_and_none(rerank: KReciprocal | QueryExpansion):
    here = Collection(3)
    found = rerank.rerank(here.all[:1], 5, here.search, here.vectors)
    assert sorted(found.ids[0].tolist()) == [-1, -1, 100, 101, 102]
    assert found.ids[0, 3:].tolist() == [-1, -1]
    assert np.isneginf(found.scores[0, 3:]).all()
    nothing = Collection(0)
    found = rerank.rerank(here.all[:2], 5, nothing.search, nothing.vectors)
    assert (found.ids == -1).all()


def test_refusals():
    for make, said in (
        (lambda: KReciprocal(k1=0), r"k1 must be a whole number ≥ 1, but it is 0"),
        (lambda: KReciprocal(weight=1.5), r"weight must be between 0 and 1, but it is 1.5"),
        (lambda: KReciprocal(pool=0), r"pool must be a whole number ≥ 1, but it is 0"),
        (lambda: QueryExpansion(top=0), r"top must be a whole number ≥ 1, but it is 0"),
        (lambda: QueryExpansion(alpha=-1.0), r"alpha must be a number ≥ 0, but it is -1.0"),
        (lambda: expand([1.0], [[1.0]], [1.0], alpha=-1.0), r"alpha must be a number ≥ 0, but it is -1.0"),
    ):
        with pytest.raises(ValueError, match=said):
            make()
