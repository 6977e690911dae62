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
from functools import cached_property
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
    sizes = [_check_cutoff("each of ks", k) for k in ks]
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
    cutoffs = ks if match[2] == "k" else [_check_cutoff(f"the number of {name}", int(match[2]))]
    # one definition for two names: recall at 1 is precision at 1
    kinds = [AT_K["R"] if match[1] == "P" and k == 1 else AT_K[match[1]] for k in cutoffs]
    return [QueryMetric(f"{match[1]}@{k}", kind, k) for k, kind in zip(cutoffs, kinds, strict=True)]


MAX_CUTOFF = 2**53
"""The largest k, which float64 represents."""


def _check_cutoff(name: str, value: object) -> int:
    k = whole_number(name, value, 1)
    if k > MAX_CUTOFF:
        raise ValueError(f"{name} must be at most 2^53, but it is {k}")
    return k


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
    # ties need most of the memory
    has_few_ties = chunk.ties is None or len(chunk.ties.query) * 8 <= chunk.rank.numel()
    at_once = fit_rows(4 * entries if has_few_ties else entries, per_row=max(1, len(chunk.rank)))
    for columns in split_rows(len(chunk.queries), at_once):
        rank, counts = chunk.rank[:, columns], chunk.counts[columns].double()
        expected = _Ties.select(rank, counts, chunk.ties, columns) if ties == "expected" else None
        scores.append(_compute(_Order(rank, counts, expected, entries), metrics))
    return {name: torch.cat([values[name] for values in scores]) for name in scores[0]}


def compute_scores(rank: Tensor, counts: Tensor, metrics: Sequence[QueryMetric]) -> dict[str, Tensor]:
    """Compute each metric for each query if no positive ties with a negative; zero for queries without a positive.

    Args:
        rank: the rank of each positive, ``(k, q)`` float64; infinity in the padding.
        counts: the number of positives of each query, ``(q,)`` float64; one for queries without a positive.
        metrics: from `parse_metrics`.

    Examples:
        >>> import torch
        >>> rank = torch.tensor([[2.0, 1.0], [3.0, torch.inf]], dtype=torch.float64)
        >>> compute_scores(rank, torch.tensor([2.0, 1.0]).double(), parse_metrics(("R@1",), ()))
        {'R@1': tensor([0., 1.], dtype=torch.float64)}
    """
    return _compute(_Order(rank, counts, None), metrics)


def sum_changes(ties: Ties, rank: Tensor, counts: Tensor, metrics: Sequence[QueryMetric]) -> list[float]:
    """Return how much the sum of each metric over the queries changes when ties are taken in all orders.

    Args:
        ties: the positives that tie with negatives; there is at least one.
        rank: the rank of each of them before the negatives that tie with it, ``(t,)`` float64.
        counts: the number of positives of the query of each, ``(t,)`` float64.
        metrics: from `parse_metrics`.

    Examples:
        >>> import torch
        >>> one = torch.ones(1, dtype=torch.int64)
        >>> ties = Ties(query=one, position=0 * one, tied=one)
        >>> sum_changes(ties, one.double(), one.double(), parse_metrics(("R@1", "R@2", "MRR"), ()))
        [-0.5, 0.0, -0.25]
    """
    of_ties = _Ties(ties, rank, counts)
    changes: list[float] = torch.stack([of_ties.change(metric) for metric in metrics]).sum(dim=1).tolist()
    return changes


def _compute(order: _Order, metrics: Sequence[QueryMetric]) -> dict[str, Tensor]:
    distinct = {(metric.kind, metric.k): metric for metric in metrics}  # P@1 is R@1
    values = {key: order.compute(metric) for key, metric in distinct.items()}
    return {metric.name: values[metric.kind, metric.k] for metric in metrics}


def _count_possible(counts: Tensor, k: Cutoff) -> Tensor:
    """The number of positives among the first k in the best order."""
    return counts.clamp(max=k) if isinstance(k, int) else counts


def _divide(gains: Tensor, counts: Tensor, metric: QueryMetric) -> Tensor:
    """Divide the gains of queries, or their changes, by k or by the largest possible sum."""
    k = metric.k
    if metric.kind is Kind.PRECISION and isinstance(k, int):
        return gains / k
    possible = _count_possible(counts, k)
    if metric.kind is Kind.DISCOUNTED_GAIN:
        possible = _sum_discounts(int(possible.max()), counts)[possible.long()]
    return gains / possible


def _sum_discounts(ranks: int, like: Tensor) -> Tensor:
    """The sums of ``1 / log2(1 + rank)`` over the first 0, 1, … ranks, ``(ranks + 1,)``."""
    rank = torch.arange(1.0, ranks + 1.0, dtype=like.dtype, device=like.device)
    return torch.cat([rank.new_zeros(1), (1.0 + rank).log2().reciprocal().cumsum(0)])


MAX_MOVED_TIES = 2**16
"""The number of ties up to which the CPU computes expectations for a GPU, in many small steps, some of which read values."""


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
        self._hits: dict[int | str, Tensor] = {}

    @cached_property
    def precision(self) -> Tensor:
        """The precision at each positive, ``(p, q)``; zero in the padding, whose rank is infinite."""
        return self.position / self.rank

    def compute(self, metric: QueryMetric) -> Tensor:
        """A metric of each query, its expectation where there are ties, ``(q,)``."""
        k = metric.k
        if metric.kind is Kind.RECALL:
            assert isinstance(k, int)
            values = torch.le(self.rank[0], k, out=torch.empty_like(self.counts))
        elif metric.kind is Kind.RECIPROCAL_RANK:
            values = self.rank[0].reciprocal()
        elif metric.kind is Kind.PRECISION:
            assert k is not None
            values = _divide(self.find_hits(k).double(), self.counts, metric)
        elif metric.kind is Kind.AVERAGE_PRECISION:
            values = _divide(self.sum_first(self.precision, k), self.counts, metric)
        else:
            values = _divide(self.sum_first(_discount(self.rank), k), self.counts, metric)
        if self.ties is None:
            return values
        change = self.ties.change(metric, self.entries)
        return values.index_add_(0, self.tied_queries, change.to(values.device))

    @cached_property
    def tied_queries(self) -> Tensor:
        """The query of each positive that ties."""
        assert self.ties is not None
        return self.ties.query.to(self.rank.device)

    def find_hits(self, k: int | Literal["R"]) -> Tensor:
        """The number of positives among the first k, before negatives that tie, ``(q,)``."""
        if k not in self._hits:
            if self.rank.is_cuda:  # in two steps; others need integers
                inside = self.rank <= (self.counts if k == "R" else k)
                return self._hits.setdefault(k, inside.sum(dim=0, dtype=torch.float64))
            limit = self.counts if k == "R" else torch.full_like(self.counts, k)
            if self.rank.T.is_contiguous():
                hits = torch.searchsorted(self.rank.T, limit[:, None], right=True).squeeze(1)
            elif self.rank.device.type == "cpu" and self.rank.stride(0) == 1:
                hits = _bisect(self.rank, limit)  # torch would copy the rows
            else:
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
            return values.mul(self.position <= hits).sum(dim=0)
        # where all queries have a hit, nothing is masked
        least, most = int(hits.min()), int(hits.max())
        total, rest = values[:least].sum(dim=0), values[least:most]
        if not len(rest):
            return total
        inside = torch.le(self.position[least:most], hits, out=torch.empty_like(rest))
        return inside.mul_(rest).sum(dim=0).add_(total)


def _bisect(rank: Tensor, limit: Tensor) -> Tensor:
    """The number of entries of each column of ascending ranks, ``(p, q)``, that are at most a limit, ``(q,)``.

    Examples:
        >>> _bisect(torch.tensor([[1.0, 2.0], [3.0, torch.inf]]), torch.tensor([3.0, 1.0]))
        tensor([2, 0])
    """
    columns = torch.arange(rank.shape[1])
    low, high = torch.zeros_like(columns), torch.full_like(columns, len(rank))
    for _ in range(len(rank).bit_length()):
        middle = (low + high) // 2
        is_inside = (low < high) & (rank[middle.clamp(max=len(rank) - 1), columns] <= limit)
        low, high = torch.where(is_inside, middle + 1, low), torch.where(is_inside, high, middle.maximum(low))
    return low


def _discount(rank: Tensor) -> Tensor:
    return (1.0 + rank).log2().reciprocal()


class _Ties:
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
    def select(cls, rank: Tensor, counts: Tensor, ties: Ties | None, columns: slice) -> _Ties | None:
        """The ties of some queries, whose ranks and counts are given; ``None`` if there are none."""
        if ties is None:
            return None
        first, last = torch.searchsorted(ties.query, ties.query.new_tensor([columns.start, columns.stop])).tolist()
        if first == last:
            return None
        query, position, tied = ties.query[first:last] - columns.start, ties.position[first:last], ties.tied[first:last]
        numbers = (query, position, tied, rank[position, query], counts[query])
        if rank.is_cuda and len(query) <= MAX_MOVED_TIES:
            *of_ties, rank, counts = torch.stack([each.double() for each in numbers]).cpu()
            query, position, tied = (each.long() for each in of_ties)
            return cls(Ties(query, position, tied), rank, counts)
        return cls(Ties(query, position, tied), *numbers[3:])

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
            expected, best = self.expect_discount(k), _discount(self.rank) * self.is_inside(k)
        return _divide(expected - best, self.counts, metric)

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
        sums = _sum_discounts(int((offset + inside).max()), self.counts)
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
