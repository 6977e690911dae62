"""Ranks of queries among themselves by label, from half of the products.

With samples sorted by class, the positives of a chunk of rows lie in its chunk on the diagonal.  Every other chunk of
the matrix holds only negatives; it is counted for its rows and, down its columns, for the queries on the other side.
Where the memory cannot hold the counts of all queries, a GPU computes all products, and counts for one chunk of rows at
a time.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from math import ceil

import torch
from torch import Tensor

from likewise.metrics.candidates import BYTES_PER_NEIGHBOR, get_selection_limit
from likewise.metrics.chunks import fit_rows
from likewise.metrics.cores import Buffers, Cores
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
from likewise.metrics.prepared_rows import PreparedRows, count_part_bytes, is_in_new_memory, multiply, round_up
from likewise.metrics.threshold_counts import (
    CHUNK_ENTRIES,
    ThresholdCounts,
    compares_faster,
    count_by_comparing,
    count_by_sorting,
    exclude,
    get_comparison_limit,
    make_scratch,
)

MIN_SIZE, MAX_SIZE, MAX_SIZE_ON_DEVICE = 128, 1536, 8192
"""Rows of a chunk: products smaller than the first number are slow; larger ones than the second are not faster on a CPU;
the third hides kernel launches."""

FEW_ROWS = 480
"""Rows of a product on a CPU that is counted at once, a row multiple: it stays in the caches."""

CHUNKS_PER_CORE, LEAST_SIZE = 2, 640
"""Chunks per core, at least, so that cores finish together; but chunks of at least so many rows."""

MIN_CACHED_SIZE = 4096
"""Rows of a chunk on a GPU that must fit next to all prepared samples: to prepare them for each product costs more than
smaller products do."""

BYTES_PER_COUNT = 40
"""Threshold, index and two counts per positive, which are in memory until the pass ends."""

GATHER_BYTES = 48
"""Memory per positive of a chunk while its similarities are gathered and sorted."""


@dataclass(frozen=True, eq=False)
class Layout:
    """Samples sorted by class, small classes first, and the chunks of this order.

    Args:
        order: the sample in each row, ``(n,)``.
        first: the first row of each row's class.
        sizes: the size of each row's class.
        small: how many rows, from the first, belong to classes that are small enough for comparing.
        chunks: first and last row (exclusive) of chunks of at most ``size`` rows; no small class is divided.
        largest: the size of the largest class of each chunk.
        size: the largest number of rows and columns of a product, a row multiple.
        cache: whether all samples are prepared once.
        halves: whether a product is counted for its rows and its columns, with the counts of all queries in memory.
        selects: whether only candidates for the first neighbors are looked at (`first_ranks`).
    """

    order: Tensor
    first: Tensor
    sizes: Tensor
    small: int
    chunks: list[tuple[int, int]]
    largest: dict[tuple[int, int], int]
    size: int
    cache: bool
    halves: bool
    selects: bool

    def list_small(self) -> list[tuple[int, int]]:
        """Return the chunks of small classes."""
        return [chunk for chunk in self.chunks if chunk[1] <= self.small]


def plan_layout(inputs: MetricInputs, classes: Groups, needs: CountNeeds, threads: int) -> Layout | None:
    """Sort the samples by class and plan chunks within the memory; ``None`` if no class is small enough to profit."""
    device, dim = inputs.embeddings.queries.device, inputs.embeddings.queries.shape[1]
    selects = not needs.all_ranks and device.type == "cpu" and inputs.embeddings.dtype == torch.float32
    if selects:
        limit = get_selection_limit(len(classes.queries), dim)
        if (needs.count_neighbors(0) or 0) > limit:
            return None
    else:
        limit = get_comparison_limit(device, dim)
    sizes = classes.sizes[classes.queries]
    order = torch.argsort(sizes * len(classes.sizes) + classes.queries, stable=True)
    codes, sizes = classes.queries[order], sizes[order]
    n = len(order)
    boundaries = [*(torch.nonzero(codes[1:] != codes[:-1]).squeeze(1) + 1).tolist(), n]
    on_device = device.type != "cpu"
    while True:
        small = int((sizes <= limit + 1).sum())
        if not small or int(sizes[small - 1]) < 2:
            return None
        budget = inputs.memory - 4 * CHUNK_ENTRIES * threads
        positives, largest = sizes[:small] - 1, int(sizes[small - 1])
        if selects:
            counts = BYTES_PER_NEIGHBOR * int(needs.count_each(positives).sum())
        else:
            counts = _count_bytes(inputs, needs) * int(positives.sum())
        size, cache = _fit_chunks(inputs, budget - counts, GATHER_BYTES * threads, largest, threads)
        least = min(n, max(MIN_SIZE, 2 * largest))
        if halves := size >= (max(least, min(n, MIN_CACHED_SIZE)) if on_device else least):
            break
        if on_device:  # the counts of a chunk instead of those of all queries
            size, cache = _fit_chunks(inputs, budget, BYTES_PER_POSITIVE, largest, threads)
            if size >= least:
                break
        limit //= 2  # fewer counts in memory, smaller classes in a chunk
        if not limit:
            return None
    starts = codes.new_tensor([0, *boundaries])
    first = starts[torch.searchsorted(starts, torch.arange(n, device=device), right=True) - 1]
    chunks = _plan_chunks(boundaries, small, int(sizes[small - 1]), n, size)
    size = round_up(max(stop - start for start, stop in chunks), device)
    # the last class of a chunk is its largest
    largest_classes = dict(zip(chunks, sizes[[stop - 1 for _, stop in chunks]].tolist(), strict=True))
    return Layout(order, first, sizes, small, chunks, largest_classes, size, cache, halves, selects)


def _count_bytes(inputs: MetricInputs, needs: CountNeeds) -> int:
    """Return the bytes per positive that stay in memory: threshold, two counts and, where it is needed, the index."""
    if inputs.embeddings.queries.device.type == "cpu":
        return BYTES_PER_COUNT
    return inputs.embeddings.dtype.itemsize + 8 + (8 if needs.references else 0)


def _fit_chunks(inputs: MetricInputs, budget: int, per_positive: int, largest: int, threads: int) -> tuple[int, bool]:
    """Return how many rows a chunk can have, and whether all samples are prepared once."""
    n, width = inputs.embeddings.queries.shape
    item, device = inputs.embeddings.dtype.itemsize, inputs.embeddings.queries.device
    row_bytes, part_bytes = width * item, 2 * count_part_bytes(inputs.embeddings.queries, inputs.embeddings.dtype)
    # the similarities of two chunks and, on a CPU, a copy of them
    per_pair = 2 * threads * item if device.type == "cpu" else item
    if device.type == "cpu":
        cache = 2 * n * row_bytes <= budget
    else:
        least = min(n, MIN_CACHED_SIZE)
        cache = n * row_bytes + least * (part_bytes + per_pair * least) <= budget
    budget -= n * row_bytes if cache else 0
    # without a cache two chunks of prepared samples; a cache ends with a chunk of zeros
    prepared = 6 * threads * row_bytes if not cache else 0 if device.type == "cpu" else row_bytes
    size = fit_rows(budget, per_row=per_positive * largest + prepared + part_bytes, per_pair=per_pair)
    most = MAX_SIZE_ON_DEVICE
    if device.type == "cpu":
        most = min(MAX_SIZE, max(LEAST_SIZE, 2 * largest, largest + n // (CHUNKS_PER_CORE * threads)))
    return min(size, most, n), cache


def _plan_chunks(boundaries: list[int], small: int, largest: int, n: int, size: int) -> list[tuple[int, int]]:
    """Divide the rows of small classes into chunks of about equal size, which end where a class ends, and the others."""
    count = 1 if small <= size else ceil(small / (size - largest))
    ends = [boundaries[bisect_right(boundaries, ceil(small * (i + 1) / count)) - 1] for i in range(count)]
    rest = ceil((n - small) / size)
    ends += [small + ceil((n - small) * (i + 1) / rest) for i in range(rest)]
    return list(pairwise([0, *ends]))


class SymmetricSimilarities:
    """Chunks of the similarity matrix in a layout's order; products have sides that are row multiples."""

    def __init__(self, inputs: MetricInputs, layout: Layout) -> None:
        self.layout, self.similarity = layout, inputs.similarity
        queries, self.dtype = inputs.embeddings.queries, inputs.embeddings.dtype
        self.rows = PreparedRows(queries, layout.order, inputs.similarity, self.dtype)
        if layout.cache:
            self.rows.cache(padding=layout.size)
        self._buffers = Buffers()

    @property
    def scratch(self) -> Tensor:
        """The buffer of this thread for functions that count; on a CPU, with space for the similarities of two chunks."""
        if self._buffers.scratch is None:
            device, size = self.layout.order.device, self.layout.size
            nbytes = size**2 * self.dtype.itemsize if device.type == "cpu" else 4 * size
            self._buffers.scratch = make_scratch(device, nbytes)
        return self._buffers.scratch

    def take(self, chunk: tuple[int, int]) -> tuple[Tensor, slice]:
        """Return ``size`` prepared samples from the chunk's first row on, and the range of the chunk among them."""
        return self.rows.take(chunk[0], chunk[0] + self.layout.size), slice(0, chunk[1] - chunk[0])

    def multiply(self, left: tuple[Tensor, slice], right: tuple[Tensor, slice]) -> Tensor:
        """Return the similarities of two chunks; the next call of the same thread may overwrite them."""
        return self._multiply(left[0], right[0])[left[1], right[1]]

    def multiply_few_rows(
        self, left: tuple[Tensor, slice], right: tuple[Tensor, slice]
    ) -> Iterator[tuple[slice, Tensor]]:
        """Yield rows of the left chunk, and their similarities to the right one, which stay in a core's cache."""
        step = self.layout.size if left[0].device.type != "cpu" else FEW_ROWS
        for start in range(0, left[1].stop, step):
            rows = slice(start, min(start + step, left[1].stop))
            yield rows, self._multiply(left[0][start : start + step], right[0])[: rows.stop - start, right[1]]

    def _multiply(self, left: Tensor, right: Tensor) -> Tensor:
        if is_in_new_memory(left, self.dtype):
            return multiply(left, right, self.similarity, None)
        if self._buffers.similarities is None:
            self._buffers.similarities = left.new_empty(self.layout.size, self.layout.size, dtype=self.dtype)
        return multiply(left, right, self.similarity, self._buffers.similarities[: len(left)])


def rank_symmetrically(
    inputs: MetricInputs, layout: Layout, needs: CountNeeds, cores: Cores
) -> list[Callable[[], RankChunk]]:
    """Count for all queries of small classes; return functions that rank those that have a positive, a chunk each."""
    similarities = SymmetricSimilarities(inputs, layout)
    small = layout.list_small()

    def start(i: int) -> tuple[ThresholdCounts, Positives]:
        return _count_on_diagonal(similarities, small[i], needs)

    def rank(i: int) -> RankChunk:
        return _make_chunk(layout, small[i], *_count_rows(similarities, layout, i, start(i)))

    if not layout.halves:
        return [partial(rank, i) for i in range(len(small))]
    counted = cores.map(start, range(len(small)))
    negatives = [counts for counts, _ in counted]

    def count(pair: tuple[int, int]) -> None:
        i, j = pair
        rows, columns = negatives[i], negatives[j] if j < len(small) else None
        if len(rows.thresholds) or (columns is not None and len(columns.thresholds)):
            left, right = similarities.take(small[i]), similarities.take(layout.chunks[j])
            if _compares(rows) and (columns is None or _compares(columns)):
                for some, values in similarities.multiply_few_rows(left, right):
                    count_by_comparing(values, rows.select(some), columns, similarities.scratch)
            else:
                count_by_sorting(similarities.multiply(left, right), rows, columns, similarities.scratch)

    cores.map(count, [(i, j) for j in range(len(layout.chunks)) for i in range(min(j, len(small)))], "ranks")
    # on a GPU, all kernels are launched before the host waits for a result
    return [partial(_make_chunk, layout, small[i], *counted[i]) for i in range(len(small))]


def _compares(counts: ThresholdCounts) -> bool:
    return counts.thresholds.device.type != "cpu" or compares_faster(len(counts.thresholds))


def _count_rows(
    similarities: SymmetricSimilarities, layout: Layout, i: int, counted: tuple[ThresholdCounts, Positives]
) -> tuple[ThresholdCounts, Positives]:
    """Count for one chunk of rows, from its products with all chunks, after that with itself."""
    negatives, left = counted[0], similarities.take(layout.chunks[i])
    for j, chunk in enumerate(layout.chunks):
        if j != i and len(negatives.thresholds):
            values = similarities.multiply(left, similarities.take(chunk))
            count_by_comparing(values, negatives, None, similarities.scratch)
    return counted


def _make_chunk(layout: Layout, chunk: tuple[int, int], negatives: ThresholdCounts, positives: Positives) -> RankChunk:
    samples = layout.order[chunk[0] : chunk[1]]
    references = None if positives.positive_index is None else samples[positives.positive_index]
    ranks = count_ranks(negatives.above, negatives.ties, positives.counts)
    return make_rank_chunk(samples, positives.counts, references, ranks, positives.are_finite())


def _count_on_diagonal(
    similarities: SymmetricSimilarities, chunk: tuple[int, int], needs: CountNeeds
) -> tuple[ThresholdCounts, Positives]:
    values, positives, excluded = multiply_on_diagonal(similarities, chunk, needs)
    negatives = ThresholdCounts.start(positives.similarities)
    if _compares(negatives):
        count_by_comparing(values, negatives, None, similarities.scratch, excluded)
    else:
        exclude(values, *excluded)
        count_by_sorting(values, negatives, None, similarities.scratch)
    return negatives, positives


def multiply_on_diagonal(
    similarities: SymmetricSimilarities, chunk: tuple[int, int], needs: CountNeeds
) -> tuple[Tensor, Positives, tuple[Tensor, Tensor]]:
    """Return a chunk's similarities to itself, its positives, and the first and the last column of each row's class.

    The last column is exclusive; the next product of the same thread may overwrite the similarities.
    """
    (start, stop), layout = chunk, similarities.layout
    samples = similarities.take(chunk)
    values = similarities.multiply(samples, samples)
    rows = torch.arange(stop - start, device=values.device)[:, None]
    first, sizes = layout.first[start:stop, None] - start, layout.sizes[start:stop, None]
    positions = torch.arange(layout.largest[chunk] - 1, device=rows.device)
    index = first + positions + (positions >= rows - first).long()  # the members of the class without the sample itself
    positives = gather_positives(values, index.clamp(max=stop - start - 1), positions < sizes - 1, needs.references)
    return values, positives, (first.squeeze(1), (first + sizes).squeeze(1))
