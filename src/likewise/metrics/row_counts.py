"""Methods to rank the positives of full rows, and the choice between them."""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from likewise.metrics.chunks import split_rows
from likewise.metrics.cores import map_over_cores
from likewise.metrics.merged_counts import get_lowest, make_keys, rank_merged
from likewise.metrics.positives import CountNeeds, Positives, Ties, count_ranks
from likewise.metrics.threshold_counts import (
    ThresholdCounts,
    count_by_comparing,
    count_by_sorting,
    get_comparison_limit,
)

if TYPE_CHECKING:
    from likewise.metrics.similarity_rows import SimilarityRows


class Method(Enum):
    """A way to count the negatives above each positive of full rows."""

    COMPARE = auto()
    """Compare the row with each positive: for few positives."""
    SELECT = auto()
    """Select the first negatives: for metrics of the first neighbors."""
    SORT = auto()
    """Sort the negatives and search for each positive: for all ranks."""
    MERGE = auto()
    """Sort negatives and positives together: for many positives, where searching costs more than sorting."""


MERGE_PART, SELECT_PART = 24, 8
"""Rows are merged if one reference in this many is a positive; the first negatives are selected if at most one in this
many is needed.  Measured on two cores."""


def choose_method(width: int, positives: int, neighbors: int | None, device: torch.device) -> Method:
    """Choose how to count for queries with ``positives`` positives among ``width`` references.

    Args:
        width: the number of references.
        positives: the largest number of positives of a query.
        neighbors: how many negatives must be counted; ``None`` for all.
        device: where the rows are.

    Examples:
        >>> import torch
        >>> cpu = torch.device("cpu")
        >>> choose_method(20_000, 19, 19, cpu).name, choose_method(20_000, 19, None, cpu).name
        ('SELECT', 'SORT')
        >>> choose_method(4_000, 3_998, None, cpu).name
        'MERGE'
    """
    if device.type != "cpu":
        return Method.COMPARE if positives <= get_comparison_limit(device, 0) else Method.SORT
    if positives * MERGE_PART > width:
        return Method.MERGE
    if neighbors is not None and neighbors * SELECT_PART <= width:
        return Method.SELECT
    return Method.COMPARE if positives <= 2 else Method.SORT


def rank_positives(
    similarities: Tensor, positives: Positives, rows: SimilarityRows, needs: CountNeeds
) -> tuple[Tensor, Ties | None]:
    """Return the ranks ``(k, q)`` and the ties of a `RankChunk`.

    Args:
        similarities: rows in which everything but negatives is −∞; they are overwritten.
        positives: the positives of these rows.
        rows: what computed the similarities.
        needs: which ranks are needed.
    """
    method = rows.choose_method(len(positives.similarities))
    if method is Method.SELECT:
        neighbors = needs.count_neighbors(len(positives.similarities))
        assert neighbors is not None
        return _select(similarities, positives, neighbors)
    if method is Method.MERGE:
        return _merge(similarities, positives)
    counts = ThresholdCounts.start(positives.similarities)
    if method is Method.SORT:
        count_by_sorting(similarities, counts)
    else:
        count_by_comparing(similarities, counts, None, rows.scratch)
    return count_ranks(counts.above, counts.ties, positives.counts)


def _merge(negatives: Tensor, positives: Positives) -> tuple[Tensor, Ties | None]:
    """Sort positives and negatives together."""
    thresholds = positives.similarities.T
    keys = make_keys(torch.cat([thresholds, negatives], dim=1))
    width = thresholds.shape[1]
    keys[:, :width] -= 1
    keys[:, :width].masked_fill_(torch.arange(width) >= positives.counts[:, None], get_lowest(keys))
    return rank_merged(keys, width)[:2]


def _select(similarities: Tensor, positives: Positives, neighbors: int) -> tuple[Tensor, Ties | None]:
    """Count only among the first negatives of each row; a positive below all of them has at least that many above."""
    first = select_largest(similarities, neighbors)
    rank, ties = _merge(first, positives)
    if ties is None:
        return rank, ties
    # more negatives than were selected may tie with the last of them
    last = first.amin(dim=1)
    at_last = positives.similarities[ties.position, ties.query] == last[ties.query]
    for chunk in split_rows(len(at_last), 64):
        entries = chunk.start + at_last[chunk].nonzero().squeeze(1)
        row = ties.query[entries]
        ties.tied[entries] = (similarities[row] == last[row, None]).sum(dim=1)
    return rank, ties


MIN_GROUP = 8
"""Columns of a group, at least: smaller groups have too many maxima."""


def select_largest(values: Tensor, k: int) -> Tensor:
    """Return the k largest entries of each row, ``(m, k)``, in no order; −∞ where a row has fewer finite ones.

    Columns form groups.  The k groups with the largest maxima contain the k largest entries, because each of these groups
    has an entry that is at least the maximum of any other group.  Maxima take one pass, and few entries remain to be
    partitioned.

    Args:
        values: ``(m, n)`` on a CPU; entries of a row may change places.
        k: at most n.

    Examples:
        >>> import torch
        >>> select_largest(torch.tensor([[0.3, 0.9, 0.1, 0.7]]), 2).sort().values
        tensor([[0.7000, 0.9000]])
    """
    width = values.shape[1]
    size = max(MIN_GROUP, int((width / k) ** 0.5))
    groups = width // size
    if k * size + groups < width // 2:
        # group j has the columns j, j + groups, j + 2 · groups, …, so that maxima are computed with vector instructions
        grouped = values[:, : size * groups].view(len(values), size, groups)
        maxima = grouped.amax(dim=1)
        # several times faster than torch.topk
        parts = map_over_cores(lambda part: np.argpartition(part, groups - k, axis=1)[:, groups - k :], maxima)
        chosen = torch.from_numpy(np.concatenate(parts))
        inside = grouped.gather(2, chosen[:, None].expand(-1, size, -1)).flatten(1)
        values = torch.cat([inside, values[:, size * groups :]], dim=1)
    start = values.shape[1] - k
    map_over_cores(lambda part: part.partition(start, axis=1), values)
    return values[:, start:]
