"""Whole rows of similarities, a few at a time: for any queries, references and relation."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from likewise.metrics.counting import SLICE, Tally, compare, most_compared, sort
from likewise.metrics.pieces import BYTES_PER_POSITIVE, Classes, Piece, Positives, Search, finished, positives_at
from likewise.metrics.tiles import Rows, centre, chunk, multiply, track


class Lines:
    """Rows of similarities to all references, in the references' own order.

    Args:
        search: what is searched.
        extra: bytes for each entry of a row that a caller needs beside the similarity.
    """

    def __init__(self, search: Search, extra: int = 0) -> None:
        sides, similarity = search.sides, search.similarity
        middle = centre(sides.references, similarity, sides.dtype)
        self.queries = Rows(sides.queries, None, similarity, sides.dtype, middle)
        self.references = Rows(sides.references, None, similarity, sides.dtype, middle)
        self.memory = search.memory
        # the references prepared once, if half of the memory holds them
        if 2 * self.references.nbytes <= self.memory:
            self.references.keep()
            self.memory -= self.references.nbytes
        # a similarity, and what a link writes on its way; a query, and what its preparation takes
        size = sides.dtype.itemsize * (4 if similarity.uses_squares else 1)
        self.row_bytes = len(self.references) * (size + extra) + sides.queries.shape[1] * 4 * sides.dtype.itemsize
        self.most_compared = most_compared(sides.queries.device)
        # numpy sorts in place, torch beside, with indices
        beside = sides.queries.device.type != "cpu"
        self.sort_bytes = len(self.references) * 2 * (sides.dtype.itemsize + 8) if beside else 0
        self.scratch = sides.queries.new_empty(max(SLICE, len(self.references)), dtype=torch.float32)

    def height(self, positives: int) -> int:
        """How many rows fit into the memory, if each has so many positives."""
        sorting = self.sort_bytes if positives > self.most_compared else 0
        return max(1, int(0.8 * self.memory) // (self.row_bytes + sorting + BYTES_PER_POSITIVE * positives))

    def blocks(self, positives: list[int]) -> list[tuple[int, int]]:
        """Cut queries, in ascending order of how many positives they have, into begins and ends that fit."""
        blocks, start = [], 0
        while start < len(positives):
            stop = min(start + self.height(positives[start]), len(positives))
            stop = min(stop, start + self.height(positives[stop - 1]))
            blocks.append((start, stop))
            start = stop
        return blocks

    def of(self, queries: Tensor) -> Tensor:
        """Similarities of some queries, ``(q, n)``."""
        similarity, width = self.queries.similarity, len(self.references)
        left = self.queries.at(queries)
        lines = left.new_empty(len(left), width)
        step = width if self.references.kept else min(width, max(256, 4 * chunk(left)))
        for start in range(0, width, step):
            # the last stretch reaches back rather than being narrower: one shape, one way of rounding
            start = min(start, width - step)
            multiply(left, self.references.take(start, start + step), similarity, lines[:, start : start + step])
        return lines

    def counted(self, lines: Tensor, found: Positives) -> Tally:
        """Where positives stand among what is left in their rows once the rest is −∞; the rows may be overwritten."""
        tally = Tally.of(found.similarities)
        if len(found.similarities) > self.most_compared:
            sort(lines, tally)
        else:
            compare(lines, tally, None, self.scratch)
        return tally


def by_class(search: Search, classes: Classes, queries: Tensor, own: Tensor | None) -> Iterator[Piece]:
    """Some queries, by label.

    Args:
        search: what is searched.
        classes: the labels.
        queries: which queries; each must have a reference of its class.
        own: for each query of the search the reference that is itself, −1 for none.
    """
    if not len(queries):
        return
    lines = Lines(search)
    members = classes.references.argsort(stable=True)  # references class by class
    starts = classes.sizes.cumsum(0) - classes.sizes
    sizes, order = classes.sizes[classes.queries[queries]].sort(stable=True)
    queries = queries[order]  # queries with like numbers of positives together: little padding

    def piece(block: Tensor, most: int) -> Piece:
        code = classes.queries[block]
        slots, size = torch.arange(most, device=block.device), classes.sizes[code, None]
        places = members[starts[code, None] + torch.minimum(slots, size - 1)]
        there = slots < size
        similarities = lines.of(block)
        if own is not None:
            there &= places != own[block, None]
        found = positives_at(similarities, places, there)
        similarities.scatter_(1, places, -torch.inf)
        if own is not None:
            rows = (own[block] >= 0).nonzero().squeeze(1)
            similarities[rows, own[block[rows]]] = -torch.inf
        return finished(lines.counted(similarities, found), found, block)

    for start, stop in track(lines.blocks(sizes.tolist()), "ranks"):
        yield piece(queries[start:stop], int(sizes[stop - 1]))


def by_mask(search: Search) -> Iterator[Piece]:
    """All queries, by a relation that only gives masks."""
    lines, m, n = Lines(search, extra=4), len(search.sides.queries), len(search.sides.references)

    def piece(block: Tensor) -> Piece:
        positive, negative = search.relation.masks(slice(int(block[0]), int(block[-1]) + 1), slice(0, n))
        counts = positive.sum(dim=1)
        rows, columns = positive.nonzero(as_tuple=True)
        slots = torch.arange(len(rows), device=rows.device) - (counts.cumsum(0) - counts)[rows]
        places = rows.new_zeros(len(block), int(counts.max()))
        there = torch.zeros(places.shape, dtype=torch.bool, device=places.device)
        places[rows, slots], there[rows, slots] = columns, True
        similarities = lines.of(block)
        found = positives_at(similarities, places, there)
        similarities.masked_fill_(~negative, -torch.inf)
        return finished(lines.counted(similarities, found), found, block)

    height = lines.height(n)  # there is no telling how many positives a mask has
    for start in track(range(0, m, height), "ranks"):
        yield piece(torch.arange(start, min(start + height, m), device=search.sides.queries.device))
