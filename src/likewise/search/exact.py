"""Exact search: the k most similar rows, equal to a stable sort of all float64 similarities.

Products are computed in float32, in chunks.  Their rounding error is bounded, so every row within this bound of the k-th
best is computed again in float64.  The result does not depend on chunk sizes, threads or the order of storage, and equal
vectors tie.
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
"""The largest number of queries in one product."""

FEW = 16
"""The number of queries up to which a product is computed with transposed operands."""

SMALL = 2**20
"""The number of similarities up to which one core scans them faster than several."""

ENTRIES = 2**18
"""Entries of vectors that are compared in float64 at once; they fit into the cache of a core."""


@dataclass(frozen=True, eq=False)
class Part:
    """Stored vectors to search: all rows, only some, or all but some.

    Args:
        vectors: the stored vectors.
        rows: the only rows that a search may return, increasing.
        without: rows that a search must not return, increasing.

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
        """Return the rows that pass: by a list of them if they are few, by a list of the others if they are many."""
        if 2 * np.count_nonzero(passed) < len(passed):
            return cls(vectors, rows=np.flatnonzero(passed))
        without = np.flatnonzero(~passed)
        return cls(vectors, without=without if len(without) else None)

    def __len__(self) -> int:
        if self.rows is not None:
            return len(self.rows)
        return len(self.vectors) - (0 if self.without is None else len(self.without))

    @property
    def scanned_rows(self) -> int:
        """The number of rows that a search scans."""
        return len(self.vectors) if self.rows is None else len(self.rows)

    @property
    def selected_rows(self) -> Ints:
        """The rows that a search may return."""
        if self.rows is not None:
            return self.rows
        every = np.arange(len(self.vectors))
        return every if self.without is None else np.delete(every, self.without)

    def chunk(self, start: int, stop: int) -> NDArray[np.float32]:
        """Return the vectors of the scanned rows from ``start`` to ``stop``."""
        return self.vectors.take(slice(start, stop) if self.rows is None else self.rows[start:stop])

    def excluded(self, start: int, stop: int) -> Ints | None:
        """Return the positions in such a chunk that a search must not return."""
        if self.without is None:
            return None
        low, high = np.searchsorted(self.without, [start, stop])
        return self.without[low:high] - start if high > low else None

    def row(self, place: Ints) -> Ints:
        """Return the rows at these positions."""
        return place if self.rows is None else self.rows[place]


def nearest(queries: NDArray[Any], parts: Sequence[Part], k: int, *, memory: int = MEMORY) -> tuple[Ints, Doubles]:
    """Return the k most similar rows of each query, best first, and their similarities; −1 and −∞ if there are fewer.

    Equals ``np.argsort(-similarities, kind="stable")[:, :k]`` of the whole matrix in float64; rows are counted over all
    parts.

    Args:
        queries: queries ``(m, d)``, of unit length.
        parts: the vectors to search.
        k: number of results.
        memory: bytes for the similarities of a chunk.

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
        for start in range(0, part.scanned_rows, step):
            stop = min(start + step, part.scanned_rows)
            chunk, excluded = part.chunk(start, stop), part.excluded(start, stop)
            with exact_precision(left):
                scores = _products(left, torch.from_numpy(chunk))
            if excluded is not None:
                scores[:, torch.from_numpy(excluded)] = -torch.inf
            query, place = _passing(scores, best.least(scores, slack), excluded)
            if len(query):
                best.merge(query, first + part.row(start + place), similarities(queries, Vectors(chunk), query, place))
        first += len(part.vectors)
    return best.rows, best.scores


def _products(queries: torch.Tensor, chunk: torch.Tensor) -> torch.Tensor:
    """Return similarities ``(m, b)``; for few queries the operands are transposed, which reads the chunk only once."""
    if 1 < len(queries) <= FEW:
        return torch.mm(chunk, queries.T).T.contiguous()
    return torch.mm(queries, chunk.T)


def _passing(scores: torch.Tensor, least: torch.Tensor, excluded: Ints | None) -> tuple[Ints, Ints]:
    """Return queries and positions whose similarity is computed again in float64."""
    if scores.numel() <= SMALL:  # here threads take longer to synchronize than they save
        passed = scores.numpy() >= least.numpy()[:, None]
        if excluded is not None:
            passed[:, excluded] = False  # every similarity, even −∞, passes while there is no candidate
        rows, columns = np.nonzero(passed)
        return rows.astype(np.int64, copy=False), columns.astype(np.int64, copy=False)
    many = scores >= least[:, None]
    if excluded is not None:
        many[:, torch.from_numpy(excluded)] = False
    query, place = many.nonzero(as_tuple=True)
    return query.numpy(), place.numpy()


def rounding(dim: int) -> float:
    """Return a bound of the rounding error of a float32 product of two unit vectors, for any order of summation.

    Examples:
        >>> rounding(128) < 1e-5
        True
    """
    return 1.01 * (dim + 2) * 2.0**-24


def _step(queries: int, part: Part, memory: int) -> int:
    """Return the number of rows in a chunk: similarities, a mask, and a copy of vectors that are not stored as float32."""
    copy = 0 if part.rows is None and part.vectors.scales is None else 8 * part.vectors.codes.shape[1]
    return int(min(2**18, max(256, memory // (6 * queries + copy))))


def similarities(queries: NDArray[np.float32], vectors: Vectors, query: Ints, rows: Ints) -> Doubles:
    """Return products of pairs in float64, with the same order of summation for every pair.

    Args:
        queries: queries ``(m, d)``.
        vectors: the stored vectors.
        query: index of the query of each pair.
        rows: row of the vector of each pair.

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
        queries: number of queries.
        k: number of candidates per query.

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
        """Return the smallest float32 similarity that is computed again in float64."""
        known = torch.from_numpy(self.scores[:, -1]) - slack
        if scores.shape[1] >= self.k and np.isneginf(self.scores[:, -1]).any():
            if scores.numel() <= SMALL:
                here = torch.from_numpy(np.partition(scores.numpy(), -self.k, axis=1)[:, -self.k])
            else:
                here = torch.topk(scores, self.k, dim=1, sorted=False).values.amin(dim=1)
            known = torch.maximum(known, here.double() - 2.0 * slack)
        return known.float().nextafter(torch.tensor(-torch.inf))

    def merge(self, query: Ints, rows: Ints, scores: Doubles) -> None:
        """Merge the candidates of a chunk."""
        touched, code = np.unique(query, return_inverse=True)
        old = np.repeat(np.arange(len(touched)), self.k)
        query = np.concatenate([old, code])
        rows = np.concatenate([self.rows[touched].ravel(), rows])
        scores = np.concatenate([self.scores[touched].ravel(), scores])
        # an empty entry (-1) has similarity −∞, which sorts last
        order = np.lexsort((rows, -scores, query))
        starts = np.searchsorted(query[order], np.arange(len(touched)))
        best = order[starts[:, None] + np.arange(self.k)]
        self.rows[touched], self.scores[touched] = rows[best], scores[best]


def recall(rows: Ints, truth: Ints) -> float:
    """Return the fraction of the true neighbors among the rows; −1 is an empty entry.

    Examples:
        >>> recall(np.array([[1, 2], [3, 4]]), np.array([[2, 1], [3, 5]]))
        0.75
    """
    there = truth >= 0
    hits = (truth[:, :, None] == rows[:, None, :]).any(axis=2) & there
    return float(hits.sum() / max(1, there.sum()))
