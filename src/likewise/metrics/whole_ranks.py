"""Means of retrieval metrics on a GPU, from the whole matrix of a small set, with as few steps as possible.

On a set of a few thousand samples, kernel launches and the host's waiting take longer than the arithmetic.  Here the
product starts before the host reads anything.  The host waits twice: for the size of the largest class, which determines
shapes and is known before the product is, and for the result, which includes what must be checked.  Each nDCG and each
unbounded similarity makes it wait once more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import ModuleType

import torch
from torch import Tensor

from likewise.formula import Cosine, Dot, Labels
from likewise.metrics.inputs import MetricInputs
from likewise.metrics.metric_names import QueryMetric
from likewise.metrics.positives import Positives, RankChunk, Ties, count_ranks, make_rank_chunk
from likewise.metrics.precision import exact_precision
from likewise.metrics.prepared_rows import load_part_product, multiply, round_up
from likewise.metrics.query_scores import compute_scores, sum_changes
from likewise.metrics.threshold_counts import (
    CHUNK_ENTRIES,
    ThresholdCounts,
    count_by_comparing,
    get_comparison_limit,
    make_scratch,
)

MAX_PAIRS = 2**27
"""Entries of the matrix up to which launches matter."""

WHOLE_BYTES_PER_POSITIVE = 104
"""Memory per positive: threshold, counts, float64 ranks and precisions, and temporary copies of two of them."""

MAX_TIED = 2**12
"""Positives that tie with negatives up to which the CPU resolves the ties.

Among the billions of comparisons of a few thousand samples, some float32 numbers are always equal.
"""


@dataclass(frozen=True, eq=False)
class WholeRanks:
    """The counts of all samples, in the order of their classes.

    Args:
        order: the sample in each column, ``(n,)``.
        counts: the number of positives of each sample, ``(n,)``.
        negatives: the counts of negatives above and tied with each positive, ``(k, n)``.
        is_padding: whether there is no such positive, ``(k, n)``.
        checksum: the sum of all embeddings and of the similarities of positives, a float64 scalar: it is finite only if
            all of them are.
    """

    order: Tensor
    counts: Tensor
    negatives: ThresholdCounts
    is_padding: Tensor
    checksum: Tensor

    def make_chunk(self) -> RankChunk:
        """Return the ranks and the ties of the samples that have a positive."""
        ranks = count_ranks(self.negatives.above, self.negatives.ties, self.counts)
        is_finite = Positives(self.negatives.thresholds, None, self.counts).are_finite()
        return make_rank_chunk(self.order, self.counts, None, ranks, is_finite)

    def summarize(self, metrics: Sequence[QueryMetric], ties: str) -> tuple[list[float], int] | None:
        """Return the sum of each metric over samples with a positive, and their number.

        Args:
            metrics: the metrics.
            ties: how ties are resolved.

        Returns:
            ``None`` if very many positives tie with negatives, or if an embedding or a similarity may not be finite.
        """
        # the CPU resolves ties while the device computes the rest
        read_ties = self._list_ties() if ties == "expected" else None
        above = self.negatives.above
        place = torch.arange(1.0, len(above) + 1.0, dtype=torch.float64, device=above.device)[:, None]
        rank = (above + self.negatives.ties if ties == "pessimistic" else above) + place
        rank, counts = rank.masked_fill_(self.is_padding, torch.inf), self.counts.double()
        scores = compute_scores(rank, counts.clamp(min=1.0), metrics)
        sums = torch.stack([*scores.values(), counts.clamp_(max=1.0)]).sum(dim=1)
        read_sums = start_reading(torch.cat([sums, self.checksum[None]]))
        changes = [0.0] * len(metrics) if read_ties is None else self._resolve_ties(read_ties(), metrics)
        *sums_list, count, checksum = read_sums().tolist()
        if changes is None or not math.isfinite(checksum):
            return None
        return [value + change for value, change in zip(sums_list, changes, strict=True)], int(count)

    def _list_ties(self) -> Callable[[], Tensor]:
        """Start to read how many positives tie with negatives, and some numbers of `MAX_TIED` of them, in five equal parts.

        The parts are samples and places among their positives, negatives above and tied, and the number of positives of the
        sample.
        """
        above, tied = self.negatives.above, self.negatives.ties
        if (kernels := _load_kernels(tied.device)) is not None:
            return start_reading(kernels.list_ties(above, tied, self.counts, MAX_TIED))
        number = (tied.T > 0).flatten().cumsum(0)
        wanted = torch.arange(1, min(MAX_TIED, len(number)) + 1, device=tied.device)
        index = torch.searchsorted(number, wanted).clamp_(max=len(number) - 1)
        sample, position = index // len(tied), index % len(tied)
        at = position, sample
        return start_reading(
            torch.cat([number[-1:], sample, position, above[at].long(), tied[at].long(), self.counts[sample]])
        )

    def _resolve_ties(self, listed: Tensor, metrics: Sequence[QueryMetric]) -> list[float] | None:
        """Return how much ties change the sum of each metric; ``None`` if there are too many."""
        number, parts = int(listed[0]), listed[1:].view(5, -1)
        if number > parts.shape[1]:
            return None
        if not number:
            return [0.0] * len(metrics)
        parts = parts[:, :number].long()
        sample, position, above, tied, counts = parts[:, (parts[0] * len(self.is_padding) + parts[1]).argsort()]
        rank = (above + position + 1).double()
        return sum_changes(Ties(sample, position, tied), rank, counts.double(), metrics)


def start_reading(values: Tensor) -> Callable[[], Tensor]:
    """Start to copy numbers to the host after all work so far; return a function that waits for them, and not for later work.

    Examples:
        >>> start_reading(torch.ones(2))()
        tensor([1., 1.])
    """
    if not values.is_cuda:
        return values.cpu
    copy = values.to("cpu", non_blocking=True)
    copied = torch.cuda.Event()  # type: ignore[no-untyped-call]
    copied.record(torch.cuda.current_stream(values.device))

    def read() -> Tensor:
        copied.synchronize()
        return copy

    return read


def rank_whole(inputs: MetricInputs) -> WholeRanks | None:
    """Rank all samples among themselves by label; ``None`` if the set or a class is too large, or has other relations.

    The caller checks the values of embeddings only if the checksum is not finite.
    """
    relation, embeddings = inputs.relation, inputs.embeddings
    n, width = embeddings.queries.shape
    device, item = embeddings.queries.device, embeddings.dtype.itemsize
    side = round_up(n, device)
    budget = inputs.memory - side * (side + 4 * width) * item - 4 * CHUNK_ENTRIES
    if side * side > MAX_PAIRS or budget < 0 or not (inputs.only_self and inputs.similarity.mirrors):
        return None
    if not isinstance(relation, Labels) or relation.valid is not None or relation.reference_labels is not None:
        return None
    if not inputs.similarity.bounded:  # a finite sum does not show that products are finite
        embeddings.check_values()
    limit = get_comparison_limit(device, width)
    with exact_precision(embeddings.queries):
        order, first, stop, sizes = _sort_labels(relation.labels)
        read_largest = start_reading(sizes.max())
        similarities, sums = _multiply(inputs, order, side)
        largest = int(read_largest()) - 1
        if not 0 < largest <= limit or WHOLE_BYTES_PER_POSITIVE * n * largest > budget:
            return None
        return _count(similarities, sums, order, (first, stop), sizes, largest)


def _load_kernels(device: torch.device) -> ModuleType | None:
    """Import the Triton kernels for a GPU; ``None`` without Triton."""
    if device.type != "cuda":
        return None
    try:
        from likewise.metrics import triton_ranks
    except ImportError:
        return None
    return triton_ranks


def _sort_labels(labels: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the stable order of labels, and the first and the last row (exclusive) and the size of the class of each row.

    Examples:
        >>> order, first, stop, sizes = _sort_labels(torch.tensor([7, 3, 7]))
        >>> order.tolist(), first.tolist(), stop.tolist(), sizes.tolist()
        ([1, 0, 2], [0, 1, 1], [1, 3, 3], [1, 2, 2])
    """
    if (kernels := _load_kernels(labels.device)) is not None:
        sorted_labels: tuple[Tensor, Tensor, Tensor, Tensor] = kernels.sort_labels(labels)
        return sorted_labels
    labels, order = labels.sort(stable=True)
    first, stop = torch.searchsorted(labels, labels), torch.searchsorted(labels, labels, right=True)
    return order, first, stop, stop - first


def _multiply(inputs: MetricInputs, order: Tensor, side: int) -> tuple[Tensor, Tensor]:
    """Return the similarities of all samples in this order, ``(n, n)``, and numbers whose sum is that of the embeddings."""
    n, embeddings, similarity = len(order), inputs.embeddings, inputs.similarity
    device, width = order.device, embeddings.queries.shape[1]
    if load_part_product(device, embeddings.dtype, width) is not None and type(similarity) in (Cosine, Dot):
        kernels = _load_kernels(device)
        if kernels is not None and width <= kernels.MAX_DIMENSIONS:
            similarities = torch.empty(side, side, dtype=embeddings.dtype, device=device)
            return similarities[:n, :n], kernels.multiply_prepared(
                embeddings.queries, order, similarity.normalize, similarities
            )
    rows = embeddings.queries.new_zeros(side, embeddings.queries.shape[1])
    torch.index_select(embeddings.queries, 0, order, out=rows[:n])
    rows = inputs.similarity.prepare(rows.to(embeddings.dtype))
    similarities = multiply(rows, rows, similarity, rows.new_empty(side, side))[:n, :n]
    return similarities, embeddings.queries.sum(dtype=torch.float64)[None]


def _count(
    similarities: Tensor, sums: Tensor, order: Tensor, bounds: tuple[Tensor, Tensor], sizes: Tensor, largest: int
) -> WholeRanks:
    """Sort the positives of each sample and count the negatives above each of them.

    Args:
        similarities: from `_multiply`, as are the sums.
        sums: numbers that add up to the sum of the embeddings.
        order: the sample in each row.
        bounds: the first and the last column (exclusive) of each row's class.
        sizes: the size of each row's class.
        largest: the largest number of positives.
    """
    thresholds, sums_of_positives = _sort_positives(similarities, bounds, sizes, largest)
    negatives = ThresholdCounts.start(thresholds)
    count_by_comparing(similarities, negatives, None, make_scratch(order.device, 4 * len(order)), bounds)
    # launched while the device counts
    counts = sizes - 1
    is_padding = torch.arange(1, largest + 1, device=order.device)[:, None] > counts
    checksum = torch.cat([sums, sums_of_positives]).sum()
    return WholeRanks(order, counts, negatives, is_padding, checksum)


def _sort_positives(
    similarities: Tensor, bounds: tuple[Tensor, Tensor], sizes: Tensor, largest: int
) -> tuple[Tensor, Tensor]:
    """Return the sorted similarities of each row to its positives, ``(k, n)``, and numbers that add up to their sum."""
    n = len(similarities)
    if (kernels := _load_kernels(similarities.device)) is not None:
        result: tuple[Tensor, Tensor] = kernels.sort_positives(similarities, bounds, largest)
        return result
    similarities.fill_diagonal_(-torch.inf)
    place = torch.arange(largest + 1, device=similarities.device)
    members = similarities.gather(1, (bounds[0][:, None] + place).clamp_(max=n - 1))
    # the sample itself is −∞ and comes last
    members = members.masked_fill_(place >= sizes[:, None], -torch.inf).sort(dim=1, descending=True).values
    is_padding = place[:largest, None] + 1 >= sizes
    thresholds = members.T[:largest].contiguous().masked_fill_(is_padding, 0.0)
    total = thresholds.sum(dtype=torch.float64)[None]
    return thresholds.masked_fill_(is_padding, torch.inf), total
