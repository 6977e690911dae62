"""Whole rows of similarities, a few at a time: for any queries, references and relation."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from likewise.metrics.counting import SLICE, Tally, compare, most_compared, sort
from likewise.metrics.pieces import BYTES_PER_POSITIVE, Classes, Piece, Positives, Search, finished, positives_at
from likewise.metrics.tiles import Rows, center, chunk, grain, multiply, track, whole_grains


class Lines:
    """Rows of similarities to all references, in the references' own order.

    Args:
        search: what is searched.
        extra: bytes for each entry of a row that a caller needs beside the similarity.
    """

    def __init__(self, search: Search, extra: int = 0) -> None:
        sides, similarity = search.sides, search.similarity
        middle = center(sides.references, similarity, sides.dtype)
        self.queries = Rows(sides.queries, None, similarity, sides.dtype, middle)
        self.references = Rows(sides.references, None, similarity, sides.dtype, middle)
        self.memory = search.memory
        self.grain = grain(sides.queries.device)
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
        # references that are prepared again and again: a few at a time
        self.stretch = min(
            4 * chunk(sides.references),
            max(self.grain, self.memory // (64 * sides.dtype.itemsize * sides.queries.shape[1])),
        )
        self.scratch = sides.queries.new_empty(
            max(SLICE, whole_grains(len(self.references), sides.queries.device)), dtype=torch.float32
        )

    def height(self, positives: int) -> int:
        """How many rows fit into the memory, if each has so many positives; whole grains where there are some."""
        sorting = self.sort_bytes if positives > self.most_compared else 0
        rows = max(1, int(0.8 * self.memory) // (self.row_bytes + sorting + BYTES_PER_POSITIVE * positives))
        return rows - rows % self.grain if rows > self.grain else rows

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
        """Similarities of some queries, ``(q, n)`` and a few more columns of −∞."""
        rows, width = len(queries), len(self.references)
        left = torch.nn.functional.pad(self.queries.at(queries), (0, 0, 0, -rows % self.grain))
        lines = left.new_empty(rows, whole_grains(width, left.device))
        step = lines.shape[1]
        if not self.references.kept:
            step = min(step, whole_grains(self.stretch, left.device))
        if rows % self.grain:  # the rest of the last grain goes elsewhere
            step = min(step, whole_grains(SLICE // self.grain, left.device))
        aside = left.new_empty(len(left), step) if rows % self.grain else None
        for start in range(0, lines.shape[1], step):
            stop = min(start + step, lines.shape[1])
            out = lines[:, start:stop] if aside is None else aside[:, : stop - start]
            multiply(left, self.references.take(start, stop), self.queries.similarity, out)
            if aside is not None:
                lines[:, start:stop] = out[:rows]
        lines[:, width:] = -torch.inf
        return lines

    def counted(self, lines: Tensor, found: Positives) -> Tally:
        """Where positives stand among what is left in their rows once the rest is −∞; the rows may be overwritten."""
        tally = Tally.of(found.similarities)
        if len(found.similarities) > self.most_compared:
            sort(lines, tally)
        else:
            compare(lines, tally, None, self.scratch)
        return tally


def by_class(search: Search, classes: Classes, queries: Tensor) -> Iterator[Piece]:
    """Some queries, by label.

    Args:
        search: what is searched.
        classes: the labels.
        queries: which queries; each must have a reference of its class.
    """
    if not len(queries):
        return
    own = classes.own
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

    def piece(block: Tensor, positive: Tensor, negative: Tensor, counts: Tensor) -> Piece:
        rows, columns = positive.nonzero(as_tuple=True)
        slots = torch.arange(len(rows), device=rows.device) - (counts.cumsum(0) - counts)[rows]
        places = rows.new_zeros(len(block), int(counts.max()))
        there = torch.zeros(places.shape, dtype=torch.bool, device=places.device)
        places[rows, slots], there[rows, slots] = columns, True
        similarities = lines.of(block)
        found = positives_at(similarities, places, there)
        similarities[:, :n].masked_fill_(~negative, -torch.inf)
        return finished(lines.counted(similarities, found), found, block)

    height = lines.height(0)
    for start in track(range(0, m, height), "ranks"):
        queries = torch.arange(start, min(start + height, m), device=search.sides.queries.device)
        positive, negative = search.relation.masks(slice(start, start + len(queries)), slice(0, n))
        counts = positive.sum(dim=1)
        # how many positives there are is known only now
        step = lines.height(int(counts.max()))
        for top in range(0, len(queries), step):
            part = slice(top, top + step)
            if bool(counts[part].any()):
                yield piece(queries[part], positive[part], negative[part], counts[part])
