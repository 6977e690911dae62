"""Retrieval metrics of each query, from the ranks of its positives and the negatives that tie with them.

Apart from recall and the reciprocal rank, a metric is a sum of gains over the positives that are among the first k,
divided by the largest possible sum or by k.  If negatives tie with positives, a metric is its expectation over all
orders of the tie.  A tie comes after ``before`` positives and ``above`` negatives, and contains ``alike`` positives and
``tied`` negatives.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Literal

import torch
from torch import Tensor

from likewise.formula import whole_number
from likewise.metrics.chunks import fit_rows, split_rows
from likewise.metrics.positives import CountNeeds, RankChunk, Ties

Cutoff = int | Literal["R"] | None


class Kind(Enum):
    """The value that a metric averages over queries."""

    RECALL = auto()
    PRECISION = auto()
    AVERAGE_PRECISION = auto()
    DISCOUNTED_GAIN = auto()
    RECIPROCAL_RANK = auto()


DEFAULT = ("R@k", "P@1", "RP", "MAP@R", "MRR", "mAP")
AT_K = {"R": Kind.RECALL, "P": Kind.PRECISION, "mAP": Kind.AVERAGE_PRECISION, "nDCG": Kind.DISCOUNTED_GAIN}
OTHERS: dict[str, tuple[Kind, Cutoff]] = {
    "RP": (Kind.PRECISION, "R"),
    "MAP@R": (Kind.AVERAGE_PRECISION, "R"),
    "MRR": (Kind.RECIPROCAL_RANK, None),
    "mAP": (Kind.AVERAGE_PRECISION, None),
}


@dataclass(frozen=True)
class QueryMetric:
    """One metric of a query.

    Args:
        name: its key in results.
        kind: what is averaged.
        k: how many references count: a number, the query's number of positives (``"R"``), or all (``None``).
    """

    name: str
    kind: Kind
    k: Cutoff


def parse_metrics(metrics: Sequence[str] | None, ks: Sequence[int]) -> tuple[QueryMetric, ...]:
    """Parse the names of metrics; a name that ends in ``@k`` stands for one metric per k.

    Args:
        metrics: the names; ``None`` for the default ones.
        ks: the numbers that a ``k`` stands for.

    Examples:
        >>> [metric.name for metric in parse_metrics(None, (1, 10))]
        ['R@1', 'R@10', 'P@1', 'RP', 'MAP@R', 'MRR', 'mAP']
        >>> [metric.name for metric in parse_metrics(("P@k", "nDCG@5"), (1, 10))]
        ['P@1', 'P@10', 'nDCG@5']
    """
    if isinstance(ks, str) or not isinstance(ks, Iterable):
        raise TypeError(f"ks must be a sequence of whole numbers, but it is {ks!r}")
    sizes = [whole_number("each of ks", k, 1) for k in ks]
    if metrics is None:
        metrics = DEFAULT
    if isinstance(metrics, str) or not isinstance(metrics, Iterable):
        raise TypeError(f"metrics must be a sequence of names, but it is {metrics!r}")
    parsed = tuple(dict.fromkeys(metric for name in metrics for metric in _parse(name, sizes)))
    if not parsed:
        raise ValueError("metrics must name at least one metric, but it is empty")
    return parsed


def _parse(name: object, ks: list[int]) -> list[QueryMetric]:
    if isinstance(name, str) and name in OTHERS:
        return [QueryMetric(name, *OTHERS[name])]
    match = re.fullmatch(r"(R|P|mAP|nDCG)@(k|[1-9][0-9]*)", name) if isinstance(name, str) else None
    if match is None:
        raise ValueError(
            "each of metrics must be 'R@k', 'P@k', 'mAP@k' or 'nDCG@k', with k or a number ≥ 1, or 'RP', 'MAP@R', "
            f"'MRR' or 'mAP', but it is {name!r}"
        )
    cutoffs = ks if match[2] == "k" else [int(match[2])]
    # one definition for two names: recall at 1 is precision at 1
    kinds = [AT_K["R"] if match[1] == "P" and k == 1 else AT_K[match[1]] for k in cutoffs]
    return [QueryMetric(f"{match[1]}@{k}", kind, k) for k, kind in zip(cutoffs, kinds, strict=True)]


def find_needs(metrics: Sequence[QueryMetric]) -> CountNeeds:
    """Find what must be counted for these metrics: every rank, or those of the first neighbors.

    Examples:
        >>> find_needs(parse_metrics(("R@8", "MAP@R"), ()))
        CountNeeds(references=False, all_ranks=False, first=8, first_positives=True)
        >>> find_needs(parse_metrics(("R@8", "mAP"), ())).all_ranks
        True
    """
    cutoffs = [metric.k for metric in metrics]
    return CountNeeds(
        references=False,
        all_ranks=None in cutoffs,
        first=max((k for k in cutoffs if isinstance(k, int)), default=0),
        first_positives="R" in cutoffs,
    )


def score_queries(
    chunk: RankChunk, metrics: Sequence[QueryMetric], ties: str, entries: int = 2**20
) -> dict[str, Tensor]:
    """Compute each metric for each query of a chunk, ``(q,)`` float64.

    Args:
        chunk: the ranks.
        metrics: from `parse_metrics`.
        ties: ``"expected"``, ``"optimistic"`` or ``"pessimistic"``.
        entries: about how many positives are processed at once.

    Examples:
        >>> import torch
        >>> one = torch.ones(1, 1, dtype=torch.int64)
        >>> chunk = RankChunk(queries=one[0], counts=one[0], references=one, rank=2.0 * one.double(), ties=None)
        >>> scores = score_queries(chunk, parse_metrics(("R@1", "R@2", "P@2", "MRR"), ()), "expected")
        >>> {name: value.item() for name, value in scores.items()}
        {'R@1': 0.0, 'R@2': 1.0, 'P@2': 0.5, 'MRR': 0.5}
    """
    scores = []
    if chunk.ties is not None and ties == "pessimistic":
        at = chunk.ties.position, chunk.ties.query
        chunk = replace(chunk, rank=chunk.rank.index_put(at, chunk.ties.tied.double(), accumulate=True))
    for columns in split_rows(len(chunk.queries), fit_rows(entries, per_row=max(1, len(chunk.rank)))):
        rank, counts = chunk.rank[:, columns], chunk.counts[columns].double()
        expected = _Ties.select(rank, chunk.ties, columns) if ties == "expected" else None
        scores.append(_compute(_Order(rank, counts, expected, entries), metrics))
    return {name: torch.cat([values[name] for values in scores]) for name in scores[0]}


def compute_scores(rank: Tensor, counts: Tensor, metrics: Sequence[QueryMetric]) -> dict[str, Tensor]:
    """Compute each metric for each query if no positive ties with a negative; any number for queries without a positive.

    Args:
        rank: the rank of each positive, ``(k, q)`` float64; infinity in the padding.
        counts: the number of positives of each query, ``(q,)`` float64.
        metrics: from `parse_metrics`.

    Examples:
        >>> import torch
        >>> rank = torch.tensor([[2.0, 1.0], [3.0, torch.inf]], dtype=torch.float64)
        >>> compute_scores(rank, torch.tensor([2.0, 1.0]).double(), parse_metrics(("R@1",), ()))
        {'R@1': tensor([0., 1.], dtype=torch.float64)}
    """
    return _compute(_Order(rank, counts, None), metrics)


def _compute(order: _Order, metrics: Sequence[QueryMetric]) -> dict[str, Tensor]:
    values = {}
    for metric in metrics:
        k = metric.k
        if metric.kind is Kind.RECALL:
            assert isinstance(k, int)
            values[metric.name] = order.recall(k)
        elif metric.kind is Kind.RECIPROCAL_RANK:
            values[metric.name] = order.reciprocal_rank()
        elif metric.kind is Kind.PRECISION:
            values[metric.name] = order.count_hits(k) / (k if isinstance(k, int) else order.counts)
        elif metric.kind is Kind.AVERAGE_PRECISION:
            values[metric.name] = order.sum_precisions(k) / order.count_possible(k)
        else:
            possible = order.count_possible(k)
            discounts = _sum_discounts(int(possible.max()), order.counts)
            values[metric.name] = order.sum_discounts(k) / discounts[possible.long()]
    return values


def _sum_discounts(ranks: int, like: Tensor) -> Tensor:
    """The sums of ``1 / log2(1 + rank)`` over the first 0, 1, … ranks, ``(ranks + 1,)``."""
    rank = torch.arange(1.0, ranks + 1.0, dtype=like.dtype, device=like.device)
    return torch.cat([rank.new_zeros(1), (1.0 + rank).log2().reciprocal().cumsum(0)])


class _Order:
    """Positives of some queries; one column per query, the first positive on top.

    Args:
        rank: the ranks before negatives that tie, ``(p, q)``, infinity in the padding.
        counts: the number of positives of each query, ``(q,)``.
        ties: the positives that tie with negatives; ``None`` if there are none or ties are resolved.
        entries: about how many numbers of ties are in memory at once.
    """

    def __init__(self, rank: Tensor, counts: Tensor, ties: _Ties | None, entries: int = 2**20) -> None:
        self.rank, self.counts, self.ties, self.entries = rank, counts, ties, entries
        self.position = torch.arange(1.0, len(rank) + 1.0, dtype=torch.float64, device=rank.device)[:, None]
        self._hits: dict[Cutoff, Tensor] = {}
        self._precision: Tensor | None = None

    def count_possible(self, k: Cutoff) -> Tensor:
        """The number of positives among the first k in the best order, ``(q,)``."""
        return self.counts.clamp(max=k) if isinstance(k, int) else self.counts

    def find_hits(self, k: Cutoff) -> Tensor:
        """The number of positives among the first k, before negatives that tie, ``(q,)`` int64."""
        if k not in self._hits:
            if self.rank.is_cuda and k is not None:
                return self._hits.setdefault(k, (self.rank <= (self.counts if k == "R" else k)).sum(dim=0))
            limit = self.counts if k == "R" else torch.full_like(self.counts, torch.inf if k is None else k)
            if k is not None and self.rank.T.is_contiguous():
                hits = torch.searchsorted(self.rank.T, limit[:, None], right=True).squeeze(1)
            elif k is not None and self.rank.device.type == "cpu" and self.rank.stride(0) == 1:
                rows = zip(self.rank.T.numpy(), limit.tolist(), strict=True)  # torch would copy the rows
                hits = torch.tensor([row.searchsorted(most, side="right") for row, most in rows])
            else:
                limit = limit.clamp(max=torch.finfo(torch.float64).max)  # the padding is infinite
                # zeros and ones as floats: torch compares into floats several times faster than into booleans
                hits = torch.le(self.rank, limit, out=torch.empty_like(self.rank)).sum(dim=0).long()
            self._hits[k] = hits
        return self._hits[k]

    def sum_first(self, values: Tensor, k: Cutoff) -> Tensor:
        """The sum of the values of the positives among the first k, before negatives that tie."""
        if k is None:
            return values.sum(dim=0)
        hits = self.find_hits(k)
        if values.is_cuda:
            return values.where(self.position <= hits, 0.0).sum(dim=0)
        # where all queries have a hit, nothing is masked
        least, most = int(hits.min()), int(hits.max())
        total, rest = values[:least].sum(dim=0), values[least:most]
        if not len(rest):
            return total
        inside = torch.le(self.position[least:most], hits, out=torch.empty_like(rest))
        return inside.mul_(rest).sum(dim=0).add_(total)

    def recall(self, k: int) -> Tensor:
        """The probability that a positive is among the first k."""
        values = (self.rank[0] <= k).double()
        return values if self.ties is None else self.ties.expect_recall(k, values)

    def reciprocal_rank(self) -> Tensor:
        """One over the rank of the first positive."""
        values = 1.0 / self.rank[0]
        return values if self.ties is None else self.ties.expect_reciprocal_rank(values, self.entries)

    def count_hits(self, k: Cutoff) -> Tensor:
        """The number of positives among the first k."""
        hits = self.find_hits(k).double()
        if self.ties is None:
            return hits
        return self.ties.correct(hits, self.ties.expect_inside(k, self.counts), self.ties.is_inside(k, self.counts))

    def sum_precisions(self, k: Cutoff) -> Tensor:
        """The sum of the precisions at the positives among the first k."""
        if self._precision is None:
            self._precision = self.position / self.rank  # zero in the padding, whose rank is infinite
        total = self.sum_first(self._precision, k)
        if self.ties is None:
            return total
        values = (self.ties.position + 1.0) / self.ties.rank * self.ties.is_inside(k, self.counts)
        return self.ties.correct(total, self.ties.expect_precision(k, self.counts), values)

    def sum_discounts(self, k: Cutoff) -> Tensor:
        """The discounted gain of the positives among the first k."""
        total = self.sum_first(_discount(self.rank), k)
        if self.ties is None:
            return total
        values = _discount(self.ties.rank) * self.ties.is_inside(k, self.counts)
        return self.ties.correct(total, self.ties.expect_discount(k, self.counts), values)


def _discount(rank: Tensor) -> Tensor:
    return (1.0 + rank).log2().reciprocal()


class _Ties:
    """The positives that tie with negatives: each number is an expectation over all orders of their tie.

    Args:
        rank: the ranks of all positives before negatives that tie, ``(p, q)``.
        ties: the positives that tie with negatives; there is at least one.
    """

    def __init__(self, rank: Tensor, ties: Ties) -> None:
        self.query, self.position = ties.query, ties.position
        self.rank = rank[self.position, self.query]
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
    def select(cls, rank: Tensor, ties: Ties | None, columns: slice) -> _Ties | None:
        """The ties of some queries; ``None`` if there are none."""
        if ties is None:
            return None
        first, last = torch.searchsorted(ties.query, ties.query.new_tensor([columns.start, columns.stop])).tolist()
        if first == last:
            return None
        return cls(rank, Ties(ties.query[first:last] - columns.start, ties.position[first:last], ties.tied[first:last]))

    def correct(self, total: Tensor, expected: Tensor, values: Tensor) -> Tensor:
        """Replace the values of these positives in the sum of each query by their expectations."""
        return total.index_add(0, self.query, expected - values)

    def is_inside(self, k: Cutoff, counts: Tensor) -> Tensor:
        """Whether each positive is among the first k if it comes before the negatives of its tie."""
        if k is None:
            return torch.ones_like(self.rank)
        return (self.rank <= (counts[self.query] if k == "R" else k)).double()

    def expect_inside(self, k: Cutoff, counts: Tensor) -> Tensor:
        """The probability that each positive is among the first k."""
        return self.count_inside(k, counts) / self.size

    def count_inside(self, k: Cutoff, counts: Tensor) -> Tensor:
        """The number of ranks of each positive's tie that are among the first k."""
        if k is None:
            return self.size
        return ((counts[self.query] if k == "R" else k) - self.offset).clamp(min=0.0).minimum(self.size)

    def expect_recall(self, k: int, values: Tensor) -> Tensor:
        """The probability that a positive is among the first k, where the best positive ties."""
        best = self.before == 0.0
        if not bool(best.any()):
            return values
        query, position, tied = self.query[best], self.position[best], self.tied[best]
        inside = k - self.above[best]  # ranks of the best tie among the first k
        # all negatives: b choose m over (a + b) choose m, as a product of one factor per positive, of which there are a
        factors = values.new_ones(int(self.alike[best].max()), len(values))
        factors[position, query] = ((tied - inside).clamp(min=0.0) + position + 1.0) / (tied + position + 1.0)
        first = position == 0
        query, tied, inside = query[first], tied[first], inside[first]
        hit = torch.where(inside > tied, 1.0, 1.0 - factors.prod(dim=0)[query])
        return values.index_copy(0, query, torch.where(inside <= 0.0, 0.0, hit))

    def expect_reciprocal_rank(self, values: Tensor, entries: int) -> Tensor:
        """The expectation of one over the rank of the first positive, where it ties."""
        first = self.position == 0
        if not bool(first.any()):
            return values
        expected = _expected_reciprocal_rank(self.above[first], self.alike[first], self.tied[first], entries)
        return values.index_copy(0, self.query[first], expected)

    def expect_precision(self, k: Cutoff, counts: Tensor) -> Tensor:
        """The expected precision at each positive, zero beyond the first k."""
        inside = self.count_inside(k, counts)
        return _expected_precision(self.before, self.alike, self.size, self.offset, inside)

    def expect_discount(self, k: Cutoff, counts: Tensor) -> Tensor:
        """The mean over a tie of the discounts of those of its ranks that are among the first k."""
        inside = self.count_inside(k, counts)
        offset = torch.where(inside > 0.0, self.offset, 0.0)
        sums = _sum_discounts(int((offset + inside).max()), counts)
        return (sums[(offset + inside).long()] - sums[offset.long()]) / self.size


def _expected_precision(before: Tensor, alike: Tensor, size: Tensor, offset: Tensor, inside: Tensor) -> Tensor:
    """Expected precision at a positive: the sum over the first ranks of its tie, divided by its number of positives.

    The m-th rank of the tie is a positive with probability a/g, g = a + b; then the expected number of the tie's other
    positives before it is (m − 1)(a − 1)/(g − 1).  The sum is over
    ``(a/g) (before + 1 + (m − 1)(a − 1)/(g − 1)) / (offset + m)``.
    """
    others = (alike - 1.0) / (size - 1.0)
    harmonic = torch.digamma(offset + inside + 1.0) - torch.digamma(offset + 1.0)
    return (others * inside + (before + 1.0 - others * (offset + 1.0)) * harmonic) / size


def _expected_reciprocal_rank(above: Tensor, alike: Tensor, tied: Tensor, entries: int) -> Tensor:
    """The expectation of one over the rank of the first positive."""
    # there are few distinct ties, even if all similarities are equal
    distinct, which = torch.unique(torch.stack([above, alike, tied], dim=1), dim=0, return_inverse=True)
    values = torch.empty(len(distinct), dtype=torch.float64, device=above.device)
    for chunk in split_rows(len(distinct), fit_rows(entries, per_row=int(tied.max()) + 1)):
        offset, a, b = (column[:, None] for column in distinct[chunk].T)
        m = torch.arange(int(b.max()) + 1, dtype=torch.float64, device=above.device)
        # m negatives come first, then a positive: each factor is one more negative
        negatives = ((b - m + 1.0).clamp(min=0.0) / (a + b - m + 1.0).clamp(min=1.0)).masked_fill(m == 0, 1.0)
        probability = negatives.cumprod(dim=1) * a / (a + b - m).clamp(min=1.0)
        values[chunk] = (probability.masked_fill(m > b, 0.0) / (offset + m + 1.0)).sum(dim=1)
    return values[which]
