"""Ranks of queries among themselves by label, from half of the products.

With samples sorted by class, the positives of a chunk of rows lie in its chunk on the diagonal.  Every other chunk of
the matrix holds only negatives; it is counted for its rows and, down its columns, for the queries on the other side.
Where the memory cannot hold the counts of all queries, a GPU computes all products, and counts for one chunk of rows at
a time.
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
    BYTES_PER_POSITIVE,
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

MIN_CACHED_SIZE = 4096
"""Rows of a chunk on a GPU that must fit next to all prepared samples: to prepare them for each product costs more than
smaller products do."""

BYTES_PER_COUNT = 40
"""Threshold, index and two counts per positive, which are in memory until the pass ends."""

GATHER_BYTES = 48
"""Memory per positive of a chunk while its similarities are gathered and sorted on a GPU."""


@dataclass(frozen=True, eq=False)
class Layout:
    """Samples sorted by class, small classes first, and the chunks of this order.

    Args:
        order: the sample in each row, ``(n,)``.
        first: the first row of each row's class.
        sizes: the size of each row's class.
        small: how many rows, from the first, belong to classes that are small enough for comparing.
        chunks: first and last row (exclusive) of chunks of at most ``size`` rows; no small class is divided.
        size: rows and columns of every product.
        cache: whether all samples are prepared once.
        halves: whether a product is counted for its rows and its columns, with the counts of all queries in memory.
    """

    order: Tensor
    first: Tensor
    sizes: Tensor
    small: int
    chunks: list[tuple[int, int]]
    size: int
    cache: bool
    halves: bool


def plan_layout(inputs: MetricInputs, classes: Groups, needs: CountNeeds) -> Layout | None:
    """Sort the samples by class and plan chunks within the memory; ``None`` if no class is small enough to profit."""
    sizes = classes.sizes[classes.queries]
    order = torch.argsort(sizes * len(classes.sizes) + classes.queries, stable=True)
    codes, sizes = classes.queries[order], sizes[order]
    n, device = len(order), order.device
    boundaries = [*(torch.nonzero(codes[1:] != codes[:-1]).squeeze(1) + 1).tolist(), n]
    limit = get_comparison_limit(device, inputs.embeddings.queries.shape[1], needs.all_ranks)
    on_device = device.type != "cpu"
    while True:
        small = int((sizes <= limit + 1).sum())
        if not small or int(sizes[small - 1]) < 2:
            return None
        budget = inputs.memory - 4 * CHUNK_ENTRIES
        counts = _count_bytes(inputs, needs) * int((sizes[:small] - 1).sum())
        largest = int(sizes[small - 1])
        size, cache = _fit_chunks(inputs, budget - counts, GATHER_BYTES * largest if on_device else 0)
        least = min(n, max(MIN_SIZE, 2 * largest))
        if halves := size >= (max(least, min(n, MIN_CACHED_SIZE)) if on_device else least):
            break
        if on_device:  # the counts of a chunk instead of those of all queries
            size, cache = _fit_chunks(inputs, budget, BYTES_PER_POSITIVE * largest)
            if size >= least:
                break
        limit //= 2  # fewer counts in memory, smaller classes in a chunk
        if not limit:
            return None
    # chunks of equal size, with space for the class at the end that would be divided
    size = round_up(min(n, size, ceil(n / ceil(n / size)) + int(sizes[small - 1])), device)
    starts = codes.new_tensor([0, *boundaries])
    first = starts[torch.searchsorted(starts, torch.arange(n, device=device), right=True) - 1]
    return Layout(order, first, sizes, small, _plan_chunks(boundaries, small, n, size), size, cache, halves)


def _count_bytes(inputs: MetricInputs, needs: CountNeeds) -> int:
    """Return the bytes per positive that stay in memory: threshold, two counts and, where it is needed, the index."""
    if inputs.embeddings.queries.device.type == "cpu":
        return BYTES_PER_COUNT
    return inputs.embeddings.dtype.itemsize + 8 + (8 if needs.references else 0)


def _fit_chunks(inputs: MetricInputs, budget: int, per_row: int = 0) -> tuple[int, bool]:
    """Return how many rows a chunk can have, and whether all samples are prepared once."""
    n, width = inputs.embeddings.queries.shape
    item, device = inputs.embeddings.dtype.itemsize, inputs.embeddings.queries.device
    row_bytes = width * item
    # a chunk of similarities and, on a CPU, a byte for temporary copies
    per_pair = item + (1 if device.type == "cpu" else 0)
    if device.type == "cpu":
        cache = 2 * n * row_bytes <= budget
    else:
        cache = n * row_bytes + per_pair * min(n, MIN_CACHED_SIZE) ** 2 <= budget
    budget -= n * row_bytes if cache else 0
    # without a cache two chunks of prepared samples; a cache ends with a chunk of zeros
    prepared = 6 * row_bytes if not cache else 0 if device.type == "cpu" else row_bytes
    size = fit_rows(budget, per_row=per_row + prepared, per_pair=per_pair)
    return min(size, MAX_SIZE if device.type == "cpu" else MAX_SIZE_ON_DEVICE, n), cache


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
    if not layout.halves:
        for i in track(range(len(small)), "ranks"):
            yield _make_chunk(layout, small[i], *_count_rows(similarities, layout, i, largest[i], needs))
        return
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
    for chunk_range, (negatives, positives) in zip(small, results, strict=True):
        yield _make_chunk(layout, chunk_range, negatives, positives)


def _count_rows(
    similarities: SymmetricSimilarities, layout: Layout, i: int, largest: int, needs: CountNeeds
) -> tuple[ThresholdCounts, Positives]:
    """Count for one chunk of rows, from its products with all chunks."""
    negatives, positives = _count_on_diagonal(similarities, layout, layout.chunks[i], largest, needs)
    left = similarities.take(layout.chunks[i])
    for j, chunk in enumerate(layout.chunks):
        if j != i and len(negatives.thresholds):
            values = similarities.multiply(left, similarities.take(chunk))
            count_by_comparing(values, negatives, None, similarities.scratch)
    return negatives, positives


def _make_chunk(layout: Layout, chunk: tuple[int, int], negatives: ThresholdCounts, positives: Positives) -> RankChunk:
    samples = layout.order[chunk[0] : chunk[1]]
    references = None if positives.positive_index is None else samples[positives.positive_index]
    ranks = count_ranks(negatives.above, negatives.ties, positives.counts)
    return make_rank_chunk(samples, positives.counts, references, ranks, positives.are_finite())


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
    negatives = ThresholdCounts.start(positives.similarities)
    excluded = first.squeeze(1), (first + sizes).squeeze(1)
    count_by_comparing(values, negatives, None, similarities.scratch, excluded)
    return negatives, positives
