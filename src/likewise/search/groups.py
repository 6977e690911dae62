"""Groups of the items of a collection: near-duplicates and clusters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from likewise.formula import whole_number
from likewise.metrics import exact_precision, kmeans
from likewise.progress import progress
from likewise.search.exact import Ints, Part, rounding, similarities
from likewise.search.vectors import Vectors

CHUNK = 2048
"""Items per chunk: the similarities of two chunks are in memory at once."""


def duplicates(parts: Sequence[Part], threshold: float) -> list[Ints]:
    """Return groups of rows that are connected by pairs of at least this similarity, largest group first, rows increasing.

    Args:
        parts: the vectors; rows are counted over all of them.
        threshold: smallest similarity of a pair, from −1 to 1.

    Examples:
        >>> from likewise.search.vectors import Vectors, encode
        >>> vectors = Vectors(*encode(np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.1], [1.0, 0.2]]), "float32"))
        >>> [group.tolist() for group in duplicates([Part(vectors)], 0.99)]
        [[0, 2, 3]]
    """
    if isinstance(threshold, bool) or not isinstance(threshold, int | float) or not -1.0 <= threshold <= 1.0:
        raise ValueError(f"threshold must be a similarity from -1 to 1, but it is {threshold!r}")
    first, rows = 0, []
    for part in parts:
        rows.append(first + part.selected_rows)
        first += len(part.vectors)
    every = np.concatenate(rows) if rows else np.zeros(0, np.int64)
    forest = _Forest(len(every))
    chunks = list(_chunks(parts))
    with progress("comparing", len(chunks) * (len(chunks) + 1) // 2, "chunk") as advance:
        for place, (start, left) in enumerate(chunks):
            for begin, right in chunks[place:]:
                one, other = _pairs(left(), right(), threshold, same=begin == start)
                forest.join(start + one, begin + other)
                advance(1)
    return [every[group] for group in forest.groups()]


class _Chunk:
    """Some vectors, read on use."""

    def __init__(self, part: Part, places: Ints) -> None:
        self._part, self._places = part, places

    def __call__(self) -> NDArray[np.float32]:
        return self._part.vectors.take(self._places)


def _chunks(parts: Sequence[Part]) -> Iterator[tuple[int, _Chunk]]:
    start = 0
    for part in parts:
        rows = part.selected_rows
        for begin in range(0, len(rows), CHUNK):
            some = rows[begin : begin + CHUNK]
            yield start, _Chunk(part, some)
            start += len(some)


def _pairs(left: NDArray[np.float32], right: NDArray[np.float32], threshold: float, same: bool) -> tuple[Ints, Ints]:
    """Return pairs above the threshold; those within the rounding error of float32 are compared in float64."""
    slack = rounding(left.shape[1])
    a, b = torch.from_numpy(left), torch.from_numpy(right)
    with exact_precision(a):
        scores = torch.mm(a, b.T)
    if same:
        scores = scores.triu_(1).masked_fill_(torch.ones_like(scores, dtype=torch.bool).tril_(), -torch.inf)
    near = scores >= threshold - slack
    one, other = (each.numpy() for each in near.nonzero(as_tuple=True))
    values = scores[near].numpy()
    unsure = np.flatnonzero(values < threshold + slack)
    if len(unsure):
        alike = np.ones(len(one), bool)
        alike[unsure] = similarities(left, Vectors(right), one[unsure], other[unsure]) >= threshold
        one, other = one[alike], other[alike]
    return one, other


class _Forest:
    """Union-find: a tree for each group, whose root is its smallest number."""

    def __init__(self, size: int) -> None:
        self.parent = np.arange(size)

    def roots(self) -> Ints:
        """Compute and store the root of every item."""
        while True:
            above = self.parent[self.parent]
            if np.array_equal(above, self.parent):
                return self.parent
            self.parent = above

    def join(self, one: Ints, other: Ints) -> None:
        """Join the groups of pairs."""
        while len(one):
            roots = self.roots()
            low, high = np.minimum(roots[one], roots[other]), np.maximum(roots[one], roots[other])
            apart = low != high
            if not apart.any():
                return
            one, other = low[apart], high[apart]
            # if several pairs set the same root, the smallest is set now and the others in the next round
            np.minimum.at(self.parent, other, one)

    def groups(self) -> list[Ints]:
        """Return groups of more than one item, the largest first, then by first member."""
        roots = self.roots()
        order = np.argsort(roots, kind="stable")
        cuts = np.flatnonzero(np.diff(roots[order])) + 1
        groups = [each for each in np.split(order, cuts) if len(each) > 1]
        return sorted(groups, key=lambda each: (-len(each), int(each[0])))


def clusters(vectors: NDArray[np.float32], n: int, seed: int) -> Ints:
    """Return the cluster of each vector, by k-means; clusters are numbered by size, the largest first.

    Examples:
        >>> clusters(np.array([[1.0, 0.0], [0.0, 1.0], [0.1, 1.0]], np.float32), 2, 0).tolist()
        [1, 0, 0]
    """
    whole_number("n", n, 1)
    if n > len(vectors):
        raise ValueError(f"n must be at most the {len(vectors)} items, but it is {n}")
    owners = kmeans(vectors, n, seed=seed).assignments.cpu().numpy()
    sizes = np.bincount(owners, minlength=n)
    place = np.empty(n, np.int64)
    place[np.argsort(-sizes, kind="stable")] = np.arange(n)
    numbers: Ints = place[owners]
    return numbers
