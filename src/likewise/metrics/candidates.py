"""The negatives that may be among the first neighbors of some queries, collected chunk by chunk.

A negative matters only if it is at least as similar as the k-th of the negatives that are known so far, so that this
threshold rises while chunks are read, and few of the later negatives pass it.  Queries and similarities are packed into
one integer each, which sort as both do.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import log
from threading import Lock

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from likewise.formula import is_onednn_faster
from likewise.metrics.merged_counts import order_bits
from likewise.metrics.positives import Positives, Ties, count_ranks

ADDED_PER_NEIGHBOR = 4
"""Candidates per neighbor that may be added between two selections; about two are if samples are in random order."""

BYTES_PER_NEIGHBOR = 52
"""Memory per neighbor: a positive, a key, the query and the similarity of each candidate that is added, temporaries."""


class CrowdedError(Exception):
    """Too many similarities reach their thresholds: they tie, or thresholds are too low."""


def get_selection_limit(samples: int, dim: int) -> int:
    """Return the number of neighbors up to which candidates, from half of the products, are the fastest way to count.

    Examples:
        >>> 10 < get_selection_limit(1_000, dim=128) < 100 < get_selection_limit(20_000, dim=128) < 1_000
        True
    """
    # nanoseconds on one core: half of a product and one pass, per pair; collecting and sorting, per candidate, of which
    # there are more the more often thresholds rise
    half = 0.0012 * dim + 0.5 if is_onednn_faster() else 0.0037 * dim + 0.3
    rises = 2.0 + log(max(1.0, samples / 3072))
    return int(samples * half / (20.0 * rises))


_MAGNITUDE = np.int32(2**31 - 1)


def encode(values: NDArray[np.float32]) -> NDArray[np.uint32]:
    """Return numbers that order as float32 values do, the highest first; equal values, zeros too, have one number.

    Examples:
        >>> encode(np.float32([0.5, 0.0, -0.0, -0.5])).tolist() == sorted(encode(np.float32([-0.5, 0.0, 0.0, 0.5])))
        True
    """
    bits = order_bits(values)
    bits ^= _MAGNITUDE
    return bits.view(np.uint32)


def decode(codes: NDArray[np.uint32]) -> NDArray[np.float32]:
    """Return the values of `encode`.

    Examples:
        >>> decode(encode(np.float32([0.25, -3.0]))).tolist()
        [0.25, -3.0]
    """
    bits = codes.view(np.int32)
    return (bits ^ (~(bits >> 31) & _MAGNITUDE)).view(np.float32)


@dataclass(eq=False)
class Candidates:
    """The negatives of a chunk of queries that may be among their first neighbors.

    Args:
        positives: the most similar positives of the queries, as many as a query has neighbors.
        is_finite: whether the similarities of all positives are finite, a scalar.
        neighbors: how many negatives each query needs, ``(q,)``, at least one.
        thresholds: the lowest similarity of a negative that may matter, ``(q,)`` float32.
        keys: the candidates, sorted: a query in the upper 32 bits, the code of a similarity in the lower ones.
        added: queries and similarities of candidates that are not sorted yet.
    """

    positives: Positives
    is_finite: Tensor
    neighbors: NDArray[np.int64]
    thresholds: NDArray[np.float32]
    keys: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    added: list[tuple[NDArray[np.int32], NDArray[np.float32]]] = field(default_factory=list)
    _lock: Lock = field(default_factory=Lock, repr=False)

    def __post_init__(self) -> None:
        self._most = ADDED_PER_NEIGHBOR * int(self.neighbors.sum())
        self._free = self._most

    @staticmethod
    def start(similarities: Tensor, positives: Positives, neighbors: Tensor) -> Candidates:
        """Select candidates from the first negatives of each query.

        Args:
            similarities: ``(q, n)``, −∞ for everything but negatives; entries of a row change places.
            positives: the positives of the queries.
            neighbors: how many negatives each query needs, ``(q,)``, at least one.

        Raises:
            CrowdedError: if there are too many.

        Examples:
            >>> positives = Positives(torch.tensor([[0.25]]), None, torch.tensor([1]))
            >>> candidates = Candidates.start(torch.tensor([[0.375, 0.75, 0.0, 0.5]]), positives, torch.tensor([2]))
            >>> candidates.thresholds, candidates.rank()[0]
            (array([0.5], dtype=float32), tensor([[3.]], dtype=torch.float64))
        """
        values, counts = similarities.numpy(), positives.counts.numpy()
        rows, needed = np.arange(len(values)), neighbors.numpy()
        most = min(int(needed.max(initial=1)), values.shape[1])
        values.partition(values.shape[1] - most, axis=1)
        first = np.sort(values[:, values.shape[1] - most :], axis=1)
        lowest = np.where(needed <= most, first[rows, np.maximum(most - needed, 0)], -np.inf)
        nearest = positives.similarities[: int(needed.max(initial=1))].clone()
        # negatives below all of these positives never matter
        last = nearest.numpy()[np.clip(counts, 1, len(nearest)) - 1, rows] if len(nearest) else lowest
        thresholds = np.where(counts > 0, np.maximum(lowest, last), np.inf).astype(np.float32)
        kept = replace(positives, similarities=nearest)
        candidates = Candidates(kept, positives.are_finite(), needed, thresholds)
        # more negatives than were partitioned may tie with the last of them
        reached = values >= np.maximum(thresholds, np.finfo(np.float32).min)[:, None]
        row, column = np.divmod(np.flatnonzero(reached).astype(np.int32), np.int32(values.shape[1]))
        candidates.add(row, values[row, column])
        candidates.select()
        return candidates

    def add(self, queries: NDArray[np.int32], similarities: NDArray[np.float32]) -> None:
        """Add negatives that reach the thresholds of their queries; several threads may.

        Raises:
            CrowdedError: if there are too many; whether there are does not depend on the order of the calls.
        """
        with self._lock:
            self._free -= len(queries)
            self.added.append((queries, similarities))
        if self._free < 0:
            raise CrowdedError

    def select(self) -> None:
        """Sort the candidates, raise the thresholds, and drop the candidates below them."""
        queries = np.concatenate([queries for queries, _ in self.added])
        keys = queries.astype(np.int64) << 32
        keys |= encode(np.concatenate([values for _, values in self.added]))
        self.added.clear()
        self._free = self._most
        keys = np.concatenate([self.keys, keys])
        keys.sort()
        starts = self._find_starts(keys)
        # the last of the neighbors of each query that has enough
        query = np.flatnonzero(np.diff(starts) >= self.neighbors)
        last = keys[starts[query] + self.neighbors[query] - 1]
        values = decode((last & 0xFFFFFFFF).astype(np.uint32))
        self.thresholds[query] = np.maximum(self.thresholds[query], values)
        bounds = (np.arange(len(self.thresholds)) << 32) | encode(self.thresholds)
        self.keys = keys[keys <= np.repeat(bounds, np.diff(starts))]

    def _find_starts(self, keys: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.searchsorted(keys, np.arange(len(self.neighbors) + 1) << 32)

    def rank(self) -> tuple[Tensor, Ties | None]:
        """Return the ranks ``(k, q)`` and the ties of a `RankChunk`, of the positives among the first neighbors.

        The rank of a positive below the threshold of its query is beyond them.
        """
        values = self.positives.similarities.numpy()
        above = np.broadcast_to(self.neighbors, values.shape).astype(np.float64)
        tied = np.zeros(values.shape)
        starts = self._find_starts(self.keys)
        is_first = (values >= self.thresholds) & (np.arange(len(values))[:, None] < self.positives.counts.numpy())
        query, position = np.nonzero(is_first.T)
        keys = (query << 32) | encode(values[position, query])
        left, right = (np.searchsorted(self.keys, keys, side) for side in ("left", "right"))
        above[position, query] = left - starts[query]
        tied[position, query] = right - left
        return count_ranks(torch.from_numpy(above), torch.from_numpy(tied), self.positives.counts)
