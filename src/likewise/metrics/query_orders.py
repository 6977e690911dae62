"""The positives of queries in the order of their similarities, as metrics see them: from ranks, or from flags.

Apart from recall and the reciprocal rank, a metric is a sum of gains over the positives that are among the first k,
divided by the largest possible sum or by k.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from likewise.metrics.metric_names import Cutoff, Kind, QueryMetric, discount, divide_gains
from likewise.metrics.tie_changes import TieChanges


class QueryOrder(ABC):
    """The positives of some queries, before negatives that tie with them.

    Args:
        counts: the number of positives of each query, ``(q,)`` float64.
        ties: the positives that tie with negatives; ``None`` if there are none or ties are resolved.
        entries: about how many numbers of ties are in memory at once.
    """

    def __init__(self, counts: Tensor, ties: TieChanges | None, entries: int) -> None:
        self.counts, self.ties, self.entries = counts, ties, entries

    def compute(self, metric: QueryMetric) -> Tensor:
        """A metric of each query, its expectation where there are ties, ``(q,)``."""
        k = metric.k
        if metric.kind is Kind.RECALL:
            assert isinstance(k, int)
            values = self.has_hit(k)
        elif metric.kind is Kind.RECIPROCAL_RANK:
            values = self.invert_first_rank()
        elif metric.kind is Kind.PRECISION:
            assert k is not None
            values = divide_gains(self.find_hits(k).double(), self.counts, metric)
        elif metric.kind is Kind.AVERAGE_PRECISION:
            values = divide_gains(self.sum_precisions(k), self.counts, metric)
        else:
            values = divide_gains(self.sum_discounts(k), self.counts, metric)
        if self.ties is None:
            return values
        change = self.ties.change(metric, self.entries)
        return values.index_add_(0, self.tied_queries, change.to(values.device))

    @cached_property
    def tied_queries(self) -> Tensor:
        """The query of each positive that ties."""
        assert self.ties is not None
        return self.ties.query.to(self.counts.device)

    @abstractmethod
    def has_hit(self, k: int) -> Tensor:
        """One if a positive is among the first k, else zero, ``(q,)`` float64."""

    @abstractmethod
    def invert_first_rank(self) -> Tensor:
        """One over the rank of the first positive, ``(q,)``."""

    @abstractmethod
    def find_hits(self, k: int | Literal["R"]) -> Tensor:
        """The number of positives among the first k, ``(q,)``."""

    @abstractmethod
    def sum_precisions(self, k: Cutoff) -> Tensor:
        """The sum of the precisions at the positives among the first k, ``(q,)``."""

    @abstractmethod
    def sum_discounts(self, k: Cutoff) -> Tensor:
        """The sum of the discounts of the positives among the first k, ``(q,)``."""


class RankOrder(QueryOrder):
    """One column per query, the first positive on top.

    Args:
        rank: the ranks before negatives that tie, ``(p, q)``, infinity in the padding.
        counts: as in `QueryOrder`, as are the others.
        ties: the positives that tie.
        entries: about how many numbers of ties are in memory at once.
    """

    def __init__(self, rank: Tensor, counts: Tensor, ties: TieChanges | None, entries: int = 2**20) -> None:
        super().__init__(counts, ties, entries)
        self.rank = rank
        self.position = torch.arange(1.0, len(rank) + 1.0, dtype=torch.float64, device=rank.device)[:, None]
        self._hits: dict[int | str, Tensor] = {}

    @cached_property
    def precision(self) -> Tensor:
        """The precision at each positive, ``(p, q)``; zero in the padding, whose rank is infinite."""
        return self.position / self.rank

    def has_hit(self, k: int) -> Tensor:
        """Whether the first rank is at most k."""
        return torch.le(self.rank[0], k, out=torch.empty_like(self.counts))

    def invert_first_rank(self) -> Tensor:
        """One over the rank of the first positive."""
        return self.rank[0].reciprocal()

    def sum_precisions(self, k: Cutoff) -> Tensor:
        """The sum of positions over ranks."""
        return self._sum_first(self.precision, k)

    def sum_discounts(self, k: Cutoff) -> Tensor:
        """The sum of the discounts of ranks."""
        return self._sum_first(discount(self.rank), k)

    def find_hits(self, k: int | Literal["R"]) -> Tensor:
        """The number of ranks that are at most k."""
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

    def _sum_first(self, values: Tensor, k: Cutoff) -> Tensor:
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


class FlagOrder(QueryOrder):
    """The first references of each query, and whether each is a positive.

    Args:
        is_positive: ``(q, n)`` booleans, the most similar reference first.
        counts: as in `QueryOrder`, as are the others.
        ties: the positives that tie.
        entries: about how many numbers of ties are in memory at once.
    """

    def __init__(
        self, is_positive: NDArray[np.bool_], counts: Tensor, ties: TieChanges | None, entries: int = 2**20
    ) -> None:
        super().__init__(counts, ties, entries)
        self.is_positive, self.place = is_positive, np.arange(1.0, is_positive.shape[1] + 1.0)

    def has_hit(self, k: int) -> Tensor:
        """Whether one of the first k flags is set."""
        return torch.from_numpy(self.is_positive[:, :k].any(axis=1)).double()

    def invert_first_rank(self) -> Tensor:
        """Refuse, because all positives may come later."""
        raise NotImplementedError("the rank of the first positive is not known")

    def find_hits(self, k: int | Literal["R"]) -> Tensor:
        """The number of flags among the first k."""
        return self._sum_first(self.is_positive, k)

    def sum_precisions(self, k: Cutoff) -> Tensor:
        """The sum of the number of flags so far over the place, at each flag."""
        return self._sum_first(self._precision, k)

    def sum_discounts(self, k: Cutoff) -> Tensor:
        """The sum of the discounts of the places of flags."""
        return self._sum_first(self.is_positive * discount(torch.from_numpy(self.place)).numpy(), k)

    @cached_property
    def _precision(self) -> NDArray[np.float64]:
        hits = np.cumsum(self.is_positive, axis=1, dtype=np.int32)
        hits *= self.is_positive
        return hits / self.place

    def _sum_first(self, values: NDArray[Any], k: Cutoff) -> Tensor:
        """The sums over the first k columns, of neighboring queries with the same k at once."""
        assert k is not None
        sums = np.empty(len(values))
        limits = self.counts.long().numpy() if k == "R" else np.full(len(values), min(k, values.shape[1]))
        starts = np.flatnonzero(np.diff(limits, prepend=-1, append=-1))
        for start, stop in pairwise(starts.tolist()):
            chunk = values[start:stop, : limits[start]]
            if values.dtype == np.bool_:  # much faster than a sum of booleans
                sums[start:stop] = [np.count_nonzero(row) for row in chunk]
            else:
                np.add.reduce(chunk, axis=1, out=sums[start:stop])
        return torch.from_numpy(sums)
