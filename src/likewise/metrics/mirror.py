"""Queries among themselves by label, from half of the products.

In order of class, the positives of a block of rows lie in its diagonal tile.  Every other tile holds negatives alone; it
serves its rows and, read down its columns, the queries on the other side.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, isqrt

import torch
from torch import Tensor

from likewise.metrics.counting import SLICE, Tally, compare, most_compared
from likewise.metrics.pieces import Classes, Piece, Positives, Search, finished, positives_at
from likewise.metrics.tiles import Rows, multiply, track, whole_grains

SMALLEST, LARGEST, LARGEST_ON_DEVICE = 128, 1024, 8192
"""Sides of a tile: below the first, products are slow; the second stays in the caches; the third hides launches."""

BYTES_WAITING = 40
"""Threshold, place and two counts for each positive, all of which wait for the end of the pass."""


@dataclass(frozen=True, eq=False)
class Layout:
    """How samples stand in order of class, small classes first, and where that order is cut.

    Args:
        order: which sample stands where, ``(n,)``.
        codes: the class of the sample at each place.
        first: the place where the class of the sample at each place begins.
        sizes: how large that class is.
        small: how many places, from the start, are of classes with few enough members to compare.
        blocks: begins and ends of blocks of at most ``side`` places; those of small classes never cut a class.
        side: rows and columns of every tile.
        keep: whether all samples are prepared once.
    """

    order: Tensor
    codes: Tensor
    first: Tensor
    sizes: Tensor
    small: int
    blocks: list[tuple[int, int]]
    side: int
    keep: bool


def layout_of(search: Search, classes: Classes) -> Layout | None:
    """Cut the samples into blocks within the memory; ``None`` where no class is small enough for it to pay."""
    sizes = classes.sizes[classes.queries]
    order = torch.argsort(sizes * len(classes.sizes) + classes.queries, stable=True)
    codes, sizes = classes.queries[order], sizes[order]
    n, item = len(order), search.sides.dtype.itemsize
    device = order.device
    boundaries = [*(torch.nonzero(codes[1:] != codes[:-1]).squeeze(1) + 1).tolist(), n]
    limit = most_compared(device)
    memory = search.memory - 4 * SLICE
    while True:
        small = int((sizes <= limit + 1).sum())
        if not small or int(sizes[small - 1]) < 2:
            return None
        left = memory - BYTES_WAITING * int((sizes[:small] - 1).sum())
        width = search.sides.queries.shape[1] * item
        keep = 2 * n * width <= left
        left -= n * width if keep else 0
        # a tile and, on the diagonal, its mask; two stretches of samples where they are not kept
        side = _root(left, item + 1, 0.0 if keep else 6.0 * width)
        side = min(side, LARGEST if device.type == "cpu" else LARGEST_ON_DEVICE, n)
        if side >= min(n, max(SMALLEST, 2 * int(sizes[small - 1]))):
            break
        limit //= 2  # fewer positives to wait for, smaller classes to hold in a tile
        if not limit:
            return None
    # even blocks, with room for the class that would be cut
    side = whole_grains(min(n, side, ceil(n / ceil(n / side)) + int(sizes[small - 1])), device)
    begins = codes.new_tensor([0, *boundaries])
    first = begins[torch.searchsorted(begins, torch.arange(n, device=device), right=True) - 1]
    return Layout(order, codes, first, sizes, small, _cut(boundaries, small, n, side), side, keep)


def _root(budget: float, square: float, linear: float) -> int:
    """The largest side with ``square · side² + linear · side`` within the budget."""
    if budget <= 0:
        return 0
    return isqrt(int(linear**2 + 4.0 * square * budget)) // int(2 * square) - int(linear / (2 * square))


def _cut(boundaries: list[int], small: int, n: int, side: int) -> list[tuple[int, int]]:
    blocks, start = [], 0
    while start < small:
        stop = boundaries[bisect_right(boundaries, min(start + side, small)) - 1]
        blocks.append((start, stop))
        start = stop
    return blocks + [(start, min(start + side, n)) for start in range(small, n, side)]


class Tiles:
    """Tiles of the matrix in a layout's order, all made in one shape: one way of rounding."""

    def __init__(self, search: Search, layout: Layout) -> None:
        self.layout, self.similarity = layout, search.similarity
        queries, dtype = search.sides.queries, search.sides.dtype
        self.rows = Rows(queries, layout.order, search.similarity, dtype)
        if layout.keep:
            self.rows.keep(beyond=layout.side)
        self.tile = queries.new_empty(layout.side, layout.side, dtype=dtype)
        self.scratch = queries.new_empty(max(SLICE, layout.side), dtype=torch.float32)

    def stretch(self, block: tuple[int, int]) -> tuple[Tensor, slice]:
        """As many prepared samples as a tile is wide, from where the block begins, and the part that is the block."""
        return self.rows.take(block[0], block[0] + self.layout.side), slice(0, block[1] - block[0])

    def between(self, left: tuple[Tensor, slice], right: tuple[Tensor, slice]) -> Tensor:
        """Similarities of two blocks; the next call overwrites them."""
        return multiply(left[0], right[0], self.similarity, self.tile)[left[1], right[1]]


def mirrored(search: Search, layout: Layout) -> Iterator[Piece]:
    """All queries of small classes that have a positive."""
    tiles = Tiles(search, layout)
    small = [block for block in layout.blocks if block[1] <= layout.small]
    largest = layout.sizes[[stop - 1 for _, stop in small]].tolist()  # small classes stand first
    waiting: list[tuple[Tally, Positives]] = []
    for j in track(range(len(layout.blocks)), "ranks"):
        right = tiles.stretch(layout.blocks[j])
        if j < len(small):
            waiting.append(_on_the_diagonal(tiles, layout, small[j], largest[j]))
        below = waiting[j][0] if j < len(small) else None
        for i in range(min(j, len(small))):
            tally = waiting[i][0]
            if len(tally.thresholds) or (below is not None and len(below.thresholds)):
                similarities = tiles.between(tiles.stretch(small[i]), right)
                compare(similarities, tally, below, tiles.scratch)
    # a device has been given all of its work before anybody waits for a result
    for (start, stop), (tally, found) in zip(small, waiting, strict=True):
        samples = layout.order[start:stop]
        yield finished(tally, found, samples, samples)


def _on_the_diagonal(tiles: Tiles, layout: Layout, block: tuple[int, int], largest: int) -> tuple[Tally, Positives]:
    start, stop = block
    stretch = tiles.stretch(block)
    similarities = tiles.between(stretch, stretch)
    here = torch.arange(stop - start, device=similarities.device)[:, None]
    first, sizes = layout.first[start:stop, None] - start, layout.sizes[start:stop, None]
    slots = torch.arange(largest - 1, device=here.device)
    places = first + slots + (slots >= here - first).long()  # the members of the class, the sample itself left out
    found = positives_at(similarities, places.clamp(max=stop - start - 1), slots < sizes - 1)
    codes = layout.codes[start:stop]
    similarities.masked_fill_(codes[:, None] == codes, -torch.inf)
    tally = Tally.of(found.similarities)
    compare(similarities, tally, None, tiles.scratch)
    return tally, found
