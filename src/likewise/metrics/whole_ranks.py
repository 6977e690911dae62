"""Means of retrieval metrics on a GPU, from the whole matrix of a small set, with as few steps as possible.

On a set of a few thousand samples, kernel launches and the host's waiting take longer than the arithmetic.  Here the
host usually waits twice: for the size of the largest class, which determines shapes, and for the result, which includes
what must be checked.  Products, thresholds and counts are those of `symmetric_ranks` with a single chunk.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from likewise.formula import Labels
from likewise.metrics.inputs import MetricInputs
from likewise.metrics.positives import RankChunk, count_ranks, gather_positives, make_rank_chunk
from likewise.metrics.precision import exact_precision
from likewise.metrics.prepared_rows import multiply, round_up
from likewise.metrics.query_scores import QueryMetric, compute_scores, score_queries
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
"""Samples with ties up to which the CPU resolves them.

Among the billions of comparisons of a few thousand samples, some float32 numbers are always equal.
"""


@dataclass(frozen=True, eq=False)
class WholeRanks:
    """The counts of all samples, in the order of their classes.

    Args:
        order: the sample in each column, ``(n,)``.
        counts: the number of positives of each sample, ``(n,)``.
        negatives: the counts of negatives above and tied with each positive, ``(k, n)``.
        is_finite: whether the similarities of all positives are finite, a scalar.
    """

    order: Tensor
    counts: Tensor
    negatives: ThresholdCounts
    is_finite: Tensor

    def make_chunk(self) -> RankChunk:
        """Return the ranks and the ties of the samples that have a positive."""
        ranks = count_ranks(self.negatives.above, self.negatives.ties, self.counts)
        return make_rank_chunk(self.order, self.counts, None, ranks, self.is_finite)

    def summarize(self, metrics: Sequence[QueryMetric], ties: str) -> tuple[list[float], int] | None:
        """Return the sum of each metric over samples with a positive, and their number.

        Args:
            metrics: the metrics.
            ties: how ties are resolved.

        Returns:
            ``None`` if very many positives tie with negatives or a similarity is not finite.
        """
        place = torch.arange(1, len(self.negatives.above) + 1, device=self.order.device)[:, None]
        rank = (self.negatives.above + place).double().masked_fill_(place > self.counts, torch.inf)
        values = compute_scores(rank, self.counts.double(), metrics)
        has_positive = self.counts > 0
        sums = torch.stack(list(values.values())).where(has_positive, 0.0).sum(dim=1)
        is_tied = self.negatives.ties.any(dim=0)
        facts = torch.stack([has_positive.sum(), self.is_finite.long(), is_tied.sum()])
        *sums_list, count, is_finite, tied = torch.cat([sums, facts.double()]).tolist()
        if tied > MAX_TIED or not is_finite:
            return None
        if tied and ties != "optimistic":
            sums_list = self._resolve_ties(sums_list, is_tied, metrics, ties)
        return sums_list, int(count)

    def _resolve_ties(
        self, sums: list[float], is_tied: Tensor, metrics: Sequence[QueryMetric], ties: str
    ) -> list[float]:
        """Replace the optimistic scores of the samples that tie, which are few, in the sums; on the CPU, without launches."""
        queries = is_tied.nonzero().squeeze(1)
        counts = torch.stack([self.negatives.above[:, queries], self.negatives.ties[:, queries]]).cpu()
        of_class = self.counts[queries].cpu()
        chunk = RankChunk(queries, of_class, None, *count_ranks(counts[0].double(), counts[1], of_class))
        optimistic, resolved = (score_queries(chunk, metrics, each) for each in ("optimistic", ties))
        return [
            total + float((resolved[metric.name] - optimistic[metric.name]).sum())
            for total, metric in zip(sums, metrics, strict=True)
        ]


def rank_whole(inputs: MetricInputs, metrics: Sequence[QueryMetric]) -> WholeRanks | None:
    """Rank all samples among themselves by label; ``None`` if the set or a class is too large, or has other relations."""
    relation, embeddings = inputs.relation, inputs.embeddings
    n, width = embeddings.queries.shape
    device, item = embeddings.queries.device, embeddings.dtype.itemsize
    side = round_up(n, device)
    budget = inputs.memory - side * (side + 3 * width) * item - 4 * CHUNK_ENTRIES
    if side * side > MAX_PAIRS or budget < 0 or not (inputs.only_self and inputs.similarity.mirrors):
        return None
    if not isinstance(relation, Labels) or relation.valid is not None or relation.reference_labels is not None:
        return None
    labels, order = relation.labels.sort(stable=True)
    first, stop = torch.searchsorted(labels, labels), torch.searchsorted(labels, labels, right=True)
    counts = stop - first - 1
    largest = int(counts.max())  # waits for the device
    limit = get_comparison_limit(device, width)
    if not 0 < largest <= limit or WHOLE_BYTES_PER_POSITIVE * n * largest > budget:
        return None
    with exact_precision(embeddings.queries):
        return _count(inputs, order, first, counts, largest)


def _count(inputs: MetricInputs, order: Tensor, first: Tensor, counts: Tensor, largest: int) -> WholeRanks:
    embeddings, n = inputs.embeddings, len(order)
    side = round_up(n, order.device)
    rows = embeddings.queries.new_zeros(side, embeddings.queries.shape[1], dtype=embeddings.dtype)
    rows[:n] = inputs.similarity.prepare(embeddings.queries[order].to(embeddings.dtype))
    similarities = multiply(rows, rows, inputs.similarity, rows.new_empty(side, side))[:n, :n]
    position, row = torch.arange(largest, device=order.device), torch.arange(n, device=order.device)
    # the members of the class without the sample itself
    index = first[:, None] + position + (position >= (row - first)[:, None])
    positives = gather_positives(similarities, index.clamp_(max=n - 1), position < counts[:, None], with_index=False)
    negatives = ThresholdCounts.start(positives.similarities)
    scratch = make_scratch(rows.device, 4 * side)
    count_by_comparing(similarities, negatives, None, scratch, (first, first + counts + 1))
    return WholeRanks(order, counts, negatives, positives.are_finite())
