"""Exact search: the k most similar, as a sort of all float64 similarities would give them, ties by row order.

Products are made in float32, block by block.  Rounding may make a difference of at most d roundings, so whatever comes
that close to the k-th best is looked at again in float64: the result does not depend on block sizes, threads or storage
order, and equal vectors tie.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from likewise.metrics import MEMORY, exact_precision
from likewise.search.vectors import Vectors

Ints = NDArray[np.int64]
Doubles = NDArray[np.float64]

QUERIES = 512
"""Queries in one product, at most."""

FEW = 16
"""Queries up to which a product is made from the other side."""

SMALL = 2**20
"""Similarities up to which one core looks through them faster than several."""

ENTRIES = 2**18
"""Entries of vectors that are compared in float64 at once: what a core's cache holds."""


@dataclass(frozen=True, eq=False)
class Part:
    """Stored vectors that are searched, and which of them: all, only some, or all but some.

    Args:
        vectors: as they are stored.
        rows: the only rows that a search may return, increasing.
        without: rows that a search may not return, increasing.

    Examples:
        >>> vectors = Vectors(np.eye(3, dtype=np.float32))
        >>> len(Part(vectors)), len(Part(vectors, rows=np.array([0]))), len(Part(vectors, without=np.array([0])))
        (3, 1, 2)
    """

    vectors: Vectors
    rows: Ints | None = None
    without: Ints | None = None

    @classmethod
    def of(cls, vectors: Vectors, passed: NDArray[np.bool_]) -> Part:
        """Those rows that pass: copied where they are few, the others struck out where they are many."""
        if 2 * np.count_nonzero(passed) < len(passed):
            return cls(vectors, rows=np.flatnonzero(passed))
        without = np.flatnonzero(~passed)
        return cls(vectors, without=without if len(without) else None)

    def __len__(self) -> int:
        if self.rows is not None:
            return len(self.rows)
        return len(self.vectors) - (0 if self.without is None else len(self.without))

    @property
    def walked(self) -> int:
        """How many rows a search looks at."""
        return len(self.vectors) if self.rows is None else len(self.rows)

    @property
    def selected_rows(self) -> Ints:
        """The rows that a search may return."""
        if self.rows is not None:
            return self.rows
        every = np.arange(len(self.vectors))
        return every if self.without is None else np.delete(every, self.without)

    def block(self, start: int, stop: int) -> NDArray[np.float32]:
        """Vectors from one of the rows that are looked at to another."""
        return self.vectors.take(slice(start, stop) if self.rows is None else self.rows[start:stop])

    def struck(self, start: int, stop: int) -> Ints | None:
        """Places in such a block that a search may not return."""
        if self.without is None:
            return None
        low, high = np.searchsorted(self.without, [start, stop])
        return self.without[low:high] - start if high > low else None

    def row(self, place: Ints) -> Ints:
        """Rows of places."""
        return place if self.rows is None else self.rows[place]


def nearest(queries: NDArray[Any], parts: Sequence[Part], k: int, *, memory: int = MEMORY) -> tuple[Ints, Doubles]:
    """The k most similar rows of each query, best first, and their similarities; −1 and −∞ where there are fewer.

    Equals ``np.argsort(-similarities, kind="stable")[:, :k]`` of the whole matrix in float64; rows are counted through
    all parts.

    Args:
        queries: ``(m, d)``, of unit length.
        parts: what is searched.
        k: number of results.
        memory: bytes that a block's similarities may take.

    Examples:
        >>> rows, scores = nearest(np.eye(2), [Part(Vectors(np.array([[0.6, 0.8], [0.6, 0.8]], np.float32)))], 1)
        >>> rows.tolist(), scores.round(3).tolist()
        ([[0], [0]], [[0.6], [0.8]])
    """
    contiguous = np.ascontiguousarray(queries, np.float32)
    chunks = [
        _nearest(contiguous[start : start + QUERIES], parts, k, memory) for start in range(0, len(contiguous), QUERIES)
    ]
    if not chunks:
        return np.zeros((0, k), np.int64), np.zeros((0, k))
    return np.concatenate([rows for rows, _ in chunks]), np.concatenate([scores for _, scores in chunks])


def _nearest(queries: NDArray[np.float32], parts: Sequence[Part], k: int, memory: int) -> tuple[Ints, Doubles]:
    best, left = Best(len(queries), k), torch.from_numpy(queries)
    slack = rounding(queries.shape[1])
    first = 0
    for part in parts:
        step = _step(len(queries), part, memory)
        for start in range(0, part.walked, step):
            stop = min(start + step, part.walked)
            block, struck = part.block(start, stop), part.struck(start, stop)
            with exact_precision(left):
                scores = _products(left, torch.from_numpy(block))
            if struck is not None:
                scores[:, torch.from_numpy(struck)] = -torch.inf
            query, place = _passing(scores, best.least(scores, slack), struck)
            if len(query):
                best.merge(query, first + part.row(start + place), similarities(queries, Vectors(block), query, place))
        first += len(part.vectors)
    return best.rows, best.scores


def _products(queries: torch.Tensor, block: torch.Tensor) -> torch.Tensor:
    """Similarities ``(m, b)``; for few queries from the other side, which reads the block once and not in pieces."""
    if 1 < len(queries) <= FEW:
        return torch.mm(block, queries.T).T.contiguous()
    return torch.mm(queries, block.T)


def _passing(scores: torch.Tensor, least: torch.Tensor, struck: Ints | None) -> tuple[Ints, Ints]:
    """Queries and places whose similarity is worth a second look."""
    if scores.numel() <= SMALL:  # threads that wait for each other cost more than they save
        passed = scores.numpy() >= least.numpy()[:, None]
        if struck is not None:
            passed[:, struck] = False  # −∞ passes where there is no candidate yet
        rows, columns = np.nonzero(passed)
        return rows.astype(np.int64, copy=False), columns.astype(np.int64, copy=False)
    many = scores >= least[:, None]
    if struck is not None:
        many[:, torch.from_numpy(struck)] = False
    query, place = many.nonzero(as_tuple=True)
    return query.numpy(), place.numpy()


def rounding(dim: int) -> float:
    """How far a float32 product of two unit vectors may be off, whatever the order of its sum.

    Examples:
        >>> rounding(128) < 1e-5
        True
    """
    return 1.01 * (dim + 2) * 2.0**-24


def _step(queries: int, part: Part, memory: int) -> int:
    """Rows in a block: their similarities, a mask, and a copy of the vectors where they are not stored as float32."""
    copy = 0 if part.rows is None and part.vectors.scales is None else 8 * part.vectors.codes.shape[1]
    return int(min(2**18, max(256, memory // (6 * queries + copy))))


def similarities(queries: NDArray[np.float32], vectors: Vectors, query: Ints, rows: Ints) -> Doubles:
    """Products of pairs in float64, in an order of summation that is the same for every pair.

    Args:
        queries: ``(m, d)``.
        vectors: as they are stored.
        query: which query, for each pair.
        rows: which vector.

    Examples:
        >>> vectors = Vectors(np.eye(2, dtype=np.float32))
        >>> similarities(np.eye(2, dtype=np.float32), vectors, np.array([0, 1]), np.array([0, 0]))
        array([1., 0.])
    """
    products, step = np.empty(len(query)), max(1, ENTRIES // queries.shape[1])
    for start in range(0, len(query), step):
        some = slice(start, start + step)
        left, right = queries[query[some]].astype(np.float64), vectors.take(rows[some]).astype(np.float64)
        products[some] = np.einsum("ij,ij->i", left, right)
    return products


class Best:
    """The k best of each query so far.

    Args:
        queries: how many there are.
        k: how many candidates each query has.

    Examples:
        >>> best = Best(1, 2)
        >>> best.merge(np.zeros(3, int), np.array([4, 5, 6]), np.array([0.5, 0.9, 0.5]))
        >>> best.rows.tolist()
        [[5, 4]]
    """

    def __init__(self, queries: int, k: int) -> None:
        self.k = k
        self.rows = np.full((queries, k), -1, np.int64)
        self.scores = np.full((queries, k), -np.inf)

    def least(self, scores: torch.Tensor, slack: float) -> torch.Tensor:
        """What a float32 similarity must reach to be worth a second look."""
        known = torch.from_numpy(self.scores[:, -1]) - slack
        if scores.shape[1] >= self.k and np.isneginf(self.scores[:, -1]).any():
            if scores.numel() <= SMALL:
                here = torch.from_numpy(np.partition(scores.numpy(), -self.k, axis=1)[:, -self.k])
            else:
                here = torch.topk(scores, self.k, dim=1, sorted=False).values.amin(dim=1)
            known = torch.maximum(known, here.double() - 2.0 * slack)
        return known.float().nextafter(torch.tensor(-torch.inf))

    def merge(self, query: Ints, rows: Ints, scores: Doubles) -> None:
        """Merge the candidates of a block."""
        touched, code = np.unique(query, return_inverse=True)
        old = np.repeat(np.arange(len(touched)), self.k)
        query = np.concatenate([old, code])
        rows = np.concatenate([self.rows[touched].ravel(), rows])
        scores = np.concatenate([self.scores[touched].ravel(), scores])
        # nothing (-1) has the similarity −∞ and comes last by that
        order = np.lexsort((rows, -scores, query))
        starts = np.searchsorted(query[order], np.arange(len(touched)))
        best = order[starts[:, None] + np.arange(self.k)]
        self.rows[touched], self.scores[touched] = rows[best], scores[best]


def recall(rows: Ints, truth: Ints) -> float:
    """The share of the true neighbors among the rows; −1 stands for no neighbor.

    Examples:
        >>> recall(np.array([[1, 2], [3, 4]]), np.array([[2, 1], [3, 5]]))
        0.75
    """
    there = truth >= 0
    hits = (truth[:, :, None] == rows[:, None, :]).any(axis=2) & there
    return float(hits.sum() / max(1, there.sum()))
