"""Ranks of queries among themselves by label, from half of the products.

With samples sorted by class, the positives of a chunk of rows lie in its chunk on the diagonal.  Every other chunk of
the matrix holds only negatives; it is counted for its rows and, down its columns, for the queries on the other side.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

import torch
from torch import Tensor

from likewise.metrics.chunks import fit_rows
from likewise.metrics.inputs import Groups, MetricInputs
from likewise.metrics.positives import (
    CountNeeds,
    Positives,
    RankChunk,
    count_ranks,
    gather_positives,
    make_rank_chunk,
)
from likewise.metrics.prepared_rows import PreparedRows, multiply, round_up
from likewise.metrics.threshold_counts import (
    CHUNK_ENTRIES,
    ThresholdCounts,
    count_by_comparing,
    get_comparison_limit,
)
from likewise.progress import track

MIN_SIZE, MAX_SIZE, MAX_SIZE_ON_DEVICE = 128, 1024, 8192
"""Rows of a chunk: products smaller than the first number are slow; up to the second, a chunk stays in the caches of a
CPU; the third hides kernel launches."""

BYTES_PER_COUNT = 40
"""Threshold, index and two counts per positive, which are in memory until the pass ends."""


@dataclass(frozen=True, eq=False)
class Layout:
    """Samples sorted by class, small classes first, and the chunks of this order.

    Args:
        order: the sample in each row, ``(n,)``.
        codes: the class of each row.
        first: the first row of each row's class.
        sizes: the size of each row's class.
        small: how many rows, from the first, belong to classes that are small enough for comparing.
        chunks: first and last row (exclusive) of chunks of at most ``size`` rows; no small class is divided.
        size: rows and columns of every product.
        cache: whether all samples are prepared once.
    """

    order: Tensor
    codes: Tensor
    first: Tensor
    sizes: Tensor
    small: int
    chunks: list[tuple[int, int]]
    size: int
    cache: bool


def plan_layout(inputs: MetricInputs, classes: Groups, needs: CountNeeds) -> Layout | None:
    """Sort the samples by class and plan chunks within the memory; ``None`` if no class is small enough to profit."""
    sizes = classes.sizes[classes.queries]
    order = torch.argsort(sizes * len(classes.sizes) + classes.queries, stable=True)
    codes, sizes = classes.queries[order], sizes[order]
    n, item = len(order), inputs.embeddings.dtype.itemsize
    device = order.device
    boundaries = [*(torch.nonzero(codes[1:] != codes[:-1]).squeeze(1) + 1).tolist(), n]
    limit = get_comparison_limit(device, inputs.embeddings.queries.shape[1], needs.all_ranks)
    while True:
        small = int((sizes <= limit + 1).sum())
        if not small or int(sizes[small - 1]) < 2:
            return None
        budget = inputs.memory - 4 * CHUNK_ENTRIES - BYTES_PER_COUNT * int((sizes[:small] - 1).sum())
        row_bytes = inputs.embeddings.queries.shape[1] * item
        cache = 2 * n * row_bytes <= budget
        budget -= n * row_bytes if cache else 0
        # a chunk of similarities and, on the diagonal, its mask; without a cache two chunks of prepared samples
        size = fit_rows(budget, per_row=0 if cache else 6 * row_bytes, per_pair=item + 1)
        size = min(size, MAX_SIZE if device.type == "cpu" else MAX_SIZE_ON_DEVICE, n)
        if size >= min(n, max(MIN_SIZE, 2 * int(sizes[small - 1]))):
            break
        limit //= 2  # fewer counts in memory, smaller classes in a chunk
        if not limit:
            return None
    # chunks of equal size, with space for the class at the end that would be divided
    size = round_up(min(n, size, ceil(n / ceil(n / size)) + int(sizes[small - 1])), device)
    starts = codes.new_tensor([0, *boundaries])
    first = starts[torch.searchsorted(starts, torch.arange(n, device=device), right=True) - 1]
    return Layout(order, codes, first, sizes, small, _plan_chunks(boundaries, small, n, size), size, cache)


def _plan_chunks(boundaries: list[int], small: int, n: int, size: int) -> list[tuple[int, int]]:
    chunks, start = [], 0
    while start < small:
        stop = boundaries[bisect_right(boundaries, min(start + size, small)) - 1]
        chunks.append((start, stop))
        start = stop
    return chunks + [(start, min(start + size, n)) for start in range(small, n, size)]


class SymmetricSimilarities:
    """Chunks of the similarity matrix in a layout's order; all products have one shape and thus one rounding."""

    def __init__(self, inputs: MetricInputs, layout: Layout) -> None:
        self.layout, self.similarity = layout, inputs.similarity
        queries, dtype = inputs.embeddings.queries, inputs.embeddings.dtype
        self.rows = PreparedRows(queries, layout.order, inputs.similarity, dtype)
        if layout.cache:
            self.rows.cache(padding=layout.size)
        self.out = queries.new_empty(layout.size, layout.size, dtype=dtype)
        self.scratch = queries.new_empty(max(CHUNK_ENTRIES, layout.size), dtype=torch.float32)

    def take(self, chunk: tuple[int, int]) -> tuple[Tensor, slice]:
        """Return ``size`` prepared samples from the chunk's first row on, and the range of the chunk among them."""
        return self.rows.take(chunk[0], chunk[0] + self.layout.size), slice(0, chunk[1] - chunk[0])

    def multiply(self, left: tuple[Tensor, slice], right: tuple[Tensor, slice]) -> Tensor:
        """Return the similarities of two chunks; the next call overwrites them."""
        return multiply(left[0], right[0], self.similarity, self.out)[left[1], right[1]]


def rank_symmetrically(inputs: MetricInputs, layout: Layout, needs: CountNeeds) -> Iterator[RankChunk]:
    """Rank all queries of small classes that have a positive."""
    similarities = SymmetricSimilarities(inputs, layout)
    small = [chunk for chunk in layout.chunks if chunk[1] <= layout.small]
    largest = layout.sizes[[stop - 1 for _, stop in small]].tolist()  # small classes come first
    results: list[tuple[ThresholdCounts, Positives]] = []
    for j in track(range(len(layout.chunks)), "ranks"):
        right = similarities.take(layout.chunks[j])
        if j < len(small):
            results.append(_count_on_diagonal(similarities, layout, small[j], largest[j], needs))
        columns = results[j][0] if j < len(small) else None
        for i in range(min(j, len(small))):
            rows = results[i][0]
            if len(rows.thresholds) or (columns is not None and len(columns.thresholds)):
                chunk = similarities.multiply(similarities.take(small[i]), right)
                count_by_comparing(chunk, rows, columns, similarities.scratch)
    # all kernels are launched before the host waits for a result
    for (start, stop), (negatives, positives) in zip(small, results, strict=True):
        samples = layout.order[start:stop]
        references = None if positives.positive_index is None else samples[positives.positive_index]
        ranks = count_ranks(negatives.above, negatives.ties, positives.counts)
        yield make_rank_chunk(samples, positives.counts, references, ranks, positives.are_finite())


def _count_on_diagonal(
    similarities: SymmetricSimilarities, layout: Layout, chunk: tuple[int, int], largest: int, needs: CountNeeds
) -> tuple[ThresholdCounts, Positives]:
    start, stop = chunk
    samples = similarities.take(chunk)
    values = similarities.multiply(samples, samples)
    rows = torch.arange(stop - start, device=values.device)[:, None]
    first, sizes = layout.first[start:stop, None] - start, layout.sizes[start:stop, None]
    positions = torch.arange(largest - 1, device=rows.device)
    index = first + positions + (positions >= rows - first).long()  # the members of the class without the sample itself
    positives = gather_positives(values, index.clamp(max=stop - start - 1), positions < sizes - 1, needs.references)
    codes = layout.codes[start:stop]
    values.masked_fill_(codes[:, None] == codes, -torch.inf)
    negatives = ThresholdCounts.start(positives.similarities)
    count_by_comparing(values, negatives, None, similarities.scratch)
    return negatives, positives
