"""How much ties change retrieval metrics: from the best case to the expectation over all orders of the tie.

A tie comes after ``before`` positives and ``above`` negatives, and contains ``alike`` positives and ``tied`` negatives.
"""

from __future__ import annotations

from functools import cached_property

import torch
from torch import Tensor

from likewise.metrics.chunks import fit_rows, split_rows
from likewise.metrics.metric_names import Cutoff, Kind, QueryMetric, discount, divide_gains, sum_discounts
from likewise.metrics.positives import Ties

MAX_MOVED_TIES = 2**16
"""The number of ties up to which the CPU computes expectations for a GPU, in many small steps, some of which read values."""


class TieChanges:
    """The positives that tie with negatives: the change of a metric to its expectation over all orders of their tie.

    Args:
        ties: the positives that tie with negatives; there is at least one.
        rank: their ranks before negatives that tie, ``(t,)``.
        counts: the number of positives of the query of each, ``(t,)``.
    """

    def __init__(self, ties: Ties, rank: Tensor, counts: Tensor) -> None:
        self.query, self.position, self.rank, self.counts = ties.query, ties.position, rank, counts
        self.above = self.rank - 1.0 - self.position
        self.tied = ties.tied.double()
        is_start = torch.ones_like(self.query, dtype=torch.bool)
        # positives of a tie are neighbors, and the next tie has more negatives above
        is_start[1:] = (self.query[1:] != self.query[:-1]) | (self.above[1:] != self.above[:-1])
        starts, group = is_start.nonzero().squeeze(1), is_start.cumsum(0) - 1
        self.before = self.position[starts][group].double()
        self.alike = torch.diff(starts, append=starts.new_tensor([len(group)]))[group].double()
        self.size, self.offset = self.alike + self.tied, self.above + self.before

    @classmethod
    def select(cls, ties: Ties, ranks: Tensor, counts: Tensor, queries: slice) -> TieChanges | None:
        """The ties of some queries; ``None`` if there are none.

        Args:
            ties: those of all queries.
            ranks: the rank of each of their positives, ``(t,)``.
            counts: the number of positives of each of the selected queries, ``(q,)``.
            queries: which ones.
        """
        first, last = torch.searchsorted(ties.query, ties.query.new_tensor([queries.start, queries.stop])).tolist()
        if first == last:
            return None
        query = ties.query[first:last] - queries.start
        numbers = (query, ties.position[first:last], ties.tied[first:last], ranks[first:last], counts[query])
        if ranks.is_cuda and len(query) <= MAX_MOVED_TIES:
            *of_ties, rank, count = torch.stack([each.double() for each in numbers]).cpu()
            return cls(Ties(*(each.long() for each in of_ties)), rank, count)
        return cls(Ties(*numbers[:3]), *numbers[3:])

    def change(self, metric: QueryMetric, entries: int = 2**20) -> Tensor:
        """How much each positive changes a metric of its query, from best case to expectation, ``(t,)``."""
        k = metric.k
        if metric.kind is Kind.RECALL:
            assert isinstance(k, int)
            return self.change_recall(k)
        if metric.kind is Kind.RECIPROCAL_RANK:
            return self.change_reciprocal_rank(entries)
        if metric.kind is Kind.PRECISION:
            expected, best = self.count_inside(k) / self.size, self.is_inside(k)
        elif metric.kind is Kind.AVERAGE_PRECISION:
            expected = self.expect_precision(k)
            best = (self.position + 1.0) / self.rank * self.is_inside(k)
        else:
            expected, best = self.expect_discount(k), discount(self.rank) * self.is_inside(k)
        return divide_gains(expected - best, self.counts, metric)

    def is_inside(self, k: Cutoff) -> Tensor | float:
        """Whether each positive is among the first k if it comes before the negatives of its tie."""
        return 1.0 if k is None else (self.rank <= (self.counts if k == "R" else k)).double()

    def count_inside(self, k: Cutoff) -> Tensor:
        """The number of ranks of each positive's tie that are among the first k."""
        if k is None:
            return self.size
        return ((self.counts if k == "R" else k) - self.offset).clamp(min=0.0).minimum(self.size)

    @cached_property
    def first_ties(self) -> tuple[Tensor, Tensor, Tensor]:
        """The positives of the first tie of a query, without positives before; and the counts above and tied of each."""
        index = (self.before == 0.0).nonzero().squeeze(1)
        return index, self.above[index], self.tied[index]

    def change_recall(self, k: int) -> Tensor:
        """Minus the probability that no positive is among the first k, where only a part of the first tie is."""
        change, (index, above, tied) = torch.zeros_like(self.tied), self.first_ties
        is_cut = (above < k) & (above + tied >= k)
        if bool(is_cut.any()):
            index, outside, tied = index[is_cut], (above + tied - k)[is_cut], tied[is_cut]
            position = self.position[index]
            first = position == 0
            # all negatives: b choose m over (a + b) choose m, as a product of one factor per positive, of which there are a
            factors = change.new_ones(int(self.alike[index].max()), int(first.sum()))
            factors[position, first.cumsum(0) - 1] = (outside + position + 1.0) / (tied + position + 1.0)
            change[index[first]] = -factors.prod(dim=0)
        return change

    def change_reciprocal_rank(self, entries: int) -> Tensor:
        """The change of one over the rank of the first positive, where it ties."""
        change, first = torch.zeros_like(self.tied), (self.position == 0).nonzero().squeeze(1)
        if len(first):
            expected = _expected_reciprocal_rank(self.above[first], self.alike[first], self.tied[first], entries)
            change[first] = expected - self.rank[first].reciprocal()
        return change

    @cached_property
    def precision_parts(self) -> tuple[Tensor, Tensor, Tensor]:
        """The parts of `expect_precision` that do not depend on k."""
        others = (self.alike - 1.0) / (self.size - 1.0)
        start = self.offset + 1.0
        return others, self.before + 1.0 - others * start, torch.digamma(start)

    def expect_precision(self, k: Cutoff) -> Tensor:
        """The expected precision at each positive, zero beyond the first k: a sum over those ranks of its tie.

        The m-th rank of the tie is a positive with probability a/g, g = a + b; then the expected number of the tie's
        other positives before it is (m − 1)(a − 1)/(g − 1).  The sum is over
        ``(a/g) (before + 1 + (m − 1)(a − 1)/(g − 1)) / (offset + m)``, divided by a for one positive.
        """
        inside, (others, rest, start) = self.count_inside(k), self.precision_parts
        return (others * inside + rest * (torch.digamma(self.offset + inside + 1.0) - start)) / self.size

    def expect_discount(self, k: Cutoff) -> Tensor:
        """The mean over a tie of the discounts of those of its ranks that are among the first k."""
        inside = self.count_inside(k)
        offset = torch.where(inside > 0.0, self.offset, 0.0)
        sums = sum_discounts(int((offset + inside).max()), self.counts)
        return (sums[(offset + inside).long()] - sums[offset.long()]) / self.size


def _expected_reciprocal_rank(above: Tensor, alike: Tensor, tied: Tensor, entries: int) -> Tensor:
    """The expectation of one over the rank of the first positive."""
    most = int(tied.max())
    rows = fit_rows(entries, per_row=most + 1)
    distinct, which = torch.stack([above, alike, tied], dim=1), slice(None)
    if len(distinct) > rows:  # there are few distinct ties, even if all similarities are equal
        distinct, which = torch.unique(distinct, dim=0, return_inverse=True)
    values = torch.empty(len(distinct), dtype=torch.float64, device=above.device)
    m = torch.arange(most + 1.0, dtype=torch.float64, device=above.device)
    for chunk in split_rows(len(distinct), rows):
        offset, a, b = distinct[chunk, :, None].unbind(1)
        # m negatives come first, then a positive: each factor is one more negative, and zero after the last
        factors = (b + 1.0 - m) / (a + b - m).clamp_(min=1.0)
        factors[:, :1] = a / (a + b)
        values[chunk] = (factors.cumprod(dim=1) / (offset + 1.0 + m)).sum(dim=1)
    return values[which]
