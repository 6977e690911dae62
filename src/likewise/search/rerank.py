r"""Re-ranking of search results: k-reciprocal neighbors and query expansion.

The methods are functions of arrays; `KReciprocal` and `QueryExpansion` wrap them for `likewise.search.Index.search`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from likewise.formula import whole_number
from likewise.search.matches import Floats, Ids, Matches

Booleans = NDArray[np.bool_]


def k_reciprocal(
    query: ArrayLike, candidates: ArrayLike, *, k1: int = 20, k2: int = 6, weight: float = 0.3
) -> NDArray[np.float64]:
    r"""Return distances of one query to its candidates after k-reciprocal re-ranking (Zhong et al. 2017).

    The query and its candidates are one set, in which $d(p, g)$ is the squared Euclidean distance of unit vectors, divided
    by the largest in the set.  With $N(p, k)$, p and its k nearest,

    - $R(p, k) = \{g \in N(p, k) : p \in N(g, k)\}$ are p's k-reciprocal neighbors (Eq. 2, 3);
    - $R^*(p)$ adds to $R(p, k_1)$ all of $R(q, k_1/2)$ for each q in it of which at least two thirds are in
      $R(p, k_1)$ already (Eq. 5);
    - $V_{p,g} = e^{-d(p, g)}$ for g in $R^*(p)$, otherwise 0 (Eq. 7), averaged over p and its $k_2 - 1$ nearest (Eq. 11);
    - the Jaccard distance is $d_J(p, g) = 1 - \sum_j \min(V_{p,j}, V_{g,j}) / \sum_j \max(V_{p,j}, V_{g,j})$ (Eq. 10);
    - the result is $(1 - λ) d_J + λ d$ (Eq. 12).

    Of equally near vectors the first one counts as nearer; the query comes before its candidates.

    Args:
        query: the query ``(d,)``, of any length but 0.
        candidates: the candidates ``(n, d)``, best first.
        k1: number of neighbors for reciprocity.
        k2: number of neighbors, including p, over which the sets are averaged; 1 for no averaging.
        weight: λ, the weight of the original distance.

    Returns:
        Distances ``(n,)``, from 0 to 1.

    Examples:
        >>> candidates = np.array([[1.0, 0.1], [1.0, -0.1], [0.0, 1.0]])
        >>> k_reciprocal(np.array([1.0, 0.0]), candidates, k1=2, k2=1).round(3)
        array([0.007, 0.007, 0.973])
    """
    checked = _Settings(k1, k2, weight)
    points = _units(np.vstack([np.asarray(query, np.float64)[None], np.asarray(candidates, np.float64)]))
    distances = np.maximum(2.0 - 2.0 * points @ points.T, 0.0)
    np.fill_diagonal(distances, 0.0)
    distances /= max(float(distances.max()), 1e-12)
    weights = _weights(distances, checked)
    smaller = np.minimum(weights[0], weights[1:]).sum(axis=1)
    larger = np.maximum(weights[0], weights[1:]).sum(axis=1)
    jaccard = 1.0 - smaller / larger
    mixed: NDArray[np.float64] = (1.0 - weight) * jaccard + weight * distances[0, 1:]
    return mixed


@dataclass(frozen=True)
class _Settings:
    k1: int
    k2: int
    weight: float

    def __post_init__(self) -> None:
        whole_number("k1", self.k1, 1)
        whole_number("k2", self.k2, 1)
        if not 0.0 <= self.weight <= 1.0:
            raise ValueError(f"weight must be between 0 and 1, but it is {self.weight!r}")


def _weights(distances: NDArray[np.float64], settings: _Settings) -> NDArray[np.float64]:
    """Return the vectors V of all points, ``(n, n)``, averaged."""
    # a point is its nearest neighbor, even if others have the same position
    order = np.argsort(distances - np.eye(len(distances)), axis=1, kind="stable")
    whole = _reciprocal(order, settings.k1)
    half = _reciprocal(order, round(settings.k1 / 2)).astype(np.float32)
    shared = whole.astype(np.float32) @ half.T  # how many of R(q, k1/2) are in R(p, k1)
    taken = whole & (shared >= 2.0 / 3.0 * half.sum(axis=1) - 1e-4)
    expanded = whole | (taken.astype(np.float32) @ half > 0.5)
    weights: NDArray[np.float64] = np.where(expanded, np.exp(-distances), 0.0)
    if settings.k2 > 1:
        weights = weights[order[:, : settings.k2]].mean(axis=1)
    return weights


def _reciprocal(order: Ids, k: int) -> Booleans:
    """Return which pairs of points are among each other's k nearest."""
    near = np.zeros(order.shape, bool)
    np.put_along_axis(near, order[:, : k + 1], True, axis=1)
    both: Booleans = near & near.T
    return both


def expand(query: ArrayLike, neighbors: ArrayLike, scores: ArrayLike, *, alpha: float = 3.0) -> NDArray[np.float64]:
    r"""Return a query moved toward its matches: α-weighted query expansion (Radenović et al. 2019).

    $q' = q + \sum_i \max(s_i, 0)^α x_i$, scaled to unit length.

    Args:
        query: the query ``(d,)``.
        neighbors: its best matches, ``(n, d)``.
        scores: similarities of the matches, ``(n,)``.
        alpha: exponent that reduces the weight of less similar matches; 0 for a plain average.

    Examples:
        >>> expand(np.array([1.0, 0.0]), np.array([[0.6, 0.8]]), np.array([0.6]), alpha=1.0).round(3)
        array([0.943, 0.333])
    """
    if not alpha >= 0.0:
        raise ValueError(f"alpha must be a number ≥ 0, but it is {alpha!r}")
    points = _units(np.vstack([np.asarray(query, np.float64)[None], np.asarray(neighbors, np.float64)]))
    counted = np.concatenate([[1.0], np.maximum(np.asarray(scores, np.float64), 0.0) ** alpha])
    moved: NDArray[np.float64] = _units((counted @ points)[None])[0]
    return moved


def _units(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    scaled: NDArray[np.float64] = vectors / np.where(lengths == 0.0, 1.0, lengths)
    return scaled


@dataclass(frozen=True)
class KReciprocal:
    """Re-ranking by the overlap of the neighborhoods of query and candidate; see `k_reciprocal`.

    Neighborhoods are computed among the candidates of the query, not in the whole collection.  Scores are one minus the
    new distance.

    Args:
        k1: number of neighbors for reciprocity.
        k2: number of neighbors over which the sets are averaged.
        weight: the weight of the original distance.
        pool: minimum number of candidates.

    Examples:
        >>> KReciprocal(k1=10).pool
        100
    """

    k1: int = 20
    k2: int = 6
    weight: float = 0.3
    pool: int = 100

    def __post_init__(self) -> None:
        _Settings(self.k1, self.k2, self.weight)
        whole_number("pool", self.pool, 1)

    def rerank(
        self, queries: Floats, k: int, search: Callable[[Floats, int], Matches], vectors: Callable[[Ids], Floats]
    ) -> Matches:
        """Return the k best matches of each query; see `likewise.search.Rerank`."""
        matches = search(queries, max(k, self.pool))
        ids, scores = matches.ids[:, :k].copy(), matches.scores[:, :k].copy()
        for row, query in enumerate(queries):
            there = matches.ids[row][matches.ids[row] >= 0]
            if not len(there):
                continue
            distances = k_reciprocal(query, vectors(there), k1=self.k1, k2=self.k2, weight=self.weight)
            best = np.argsort(distances, kind="stable")[:k]
            ids[row, : len(best)] = there[best]
            scores[row, : len(best)] = 1.0 - distances[best]
        return Matches(ids, scores)


@dataclass(frozen=True)
class QueryExpansion:
    """A second search with the query moved toward the best matches of the first; see `expand`.

    Args:
        top: number of matches toward which the query is moved.
        alpha: exponent that reduces the weight of less similar matches.

    Examples:
        >>> QueryExpansion(top=5).alpha
        3.0
    """

    top: int = 5
    alpha: float = 3.0

    def __post_init__(self) -> None:
        whole_number("top", self.top, 1)
        if not self.alpha >= 0.0:
            raise ValueError(f"alpha must be a number ≥ 0, but it is {self.alpha!r}")

    def rerank(
        self, queries: Floats, k: int, search: Callable[[Floats, int], Matches], vectors: Callable[[Ids], Floats]
    ) -> Matches:
        """Return the k best matches of each query; see `likewise.search.Rerank`."""
        first = search(queries, self.top)
        moved = []
        for query, ids, scores in zip(queries, first.ids, first.scores, strict=True):
            there = ids >= 0
            near = vectors(ids[there]) if there.any() else np.zeros((0, len(query)), np.float32)
            moved.append(expand(query, near, scores[there], alpha=self.alpha))
        return search(np.array(moved, np.float32), k)
