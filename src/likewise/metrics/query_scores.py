"""Retrieval metrics of each query, from the counts of negatives above and tied with its positives.

If negatives tie with positives, a metric is its expectation over all orders of the tie.  A tie comes after ``before``
positives and ``above`` negatives, and contains ``alike`` positives and ``tied`` negatives.
"""

from __future__ import annotations

import torch
from torch import Tensor

from likewise.metrics.chunks import fit_rows, split_rows
from likewise.metrics.positives import RankChunk, find_tie_starts


def score_queries(chunk: RankChunk, ks: tuple[int, ...], ties: str, entries: int = 2**20) -> dict[str, Tensor]:
    """Compute each metric for each query of a chunk, ``(q,)`` float64.

    Args:
        chunk: the counts.
        ks: the k of ``R@k``.
        ties: ``"expected"``, ``"optimistic"`` or ``"pessimistic"``.
        entries: about how many positives are processed at once.

    Examples:
        >>> import torch
        >>> one = torch.ones(1, 1, dtype=torch.int64)
        >>> chunk = RankChunk(queries=one[0], counts=one[0], references=one, above=one, tied=0 * one)
        >>> {name: value.item() for name, value in score_queries(chunk, (1, 2), "expected").items()}
        {'R@1': 0.0, 'R@2': 1.0, 'P@1': 0.0, 'RP': 0.0, 'MAP@R': 0.0, 'MRR': 0.5, 'mAP': 0.5}
    """
    scores = []
    for columns in split_rows(len(chunk.queries), fit_rows(entries, per_row=max(1, len(chunk.above)))):
        counts = chunk.counts[columns].double()
        above, tied = chunk.above[:, columns].double(), chunk.tied[:, columns].double()
        if ties == "pessimistic":
            above = above + tied
        values = _score_without_ties(above, counts, ks)
        if ties == "expected":
            # expectations are expensive, and few queries have ties
            with_ties = tied.any(dim=0).nonzero().squeeze(1)
            if len(with_ties):
                expected = _score_with_ties(above[:, with_ties], tied[:, with_ties], counts[with_ties], ks, entries)
                values = {name: value.index_copy(0, with_ties, expected[name]) for name, value in values.items()}
        scores.append(values)
    return {name: torch.cat([values[name] for values in scores]) for name in scores[0]}


def _score_without_ties(above: Tensor, counts: Tensor, ks: tuple[int, ...]) -> dict[str, Tensor]:
    position = torch.arange(1.0, len(above) + 1.0, dtype=torch.float64, device=above.device)[:, None]
    rank = position + above
    precision = (position / rank).masked_fill_(position > counts, 0.0)  # padding does not count
    inside = (rank <= counts) & (position <= counts)
    recalls = {f"R@{k}": (above[0] < k).double() for k in ks}
    return {
        **recalls,
        "P@1": (above[0] < 1).double(),
        "RP": inside.double().sum(dim=0) / counts,
        "MAP@R": (precision * inside).sum(dim=0) / counts,
        "MRR": 1.0 / rank[0],
        "mAP": precision.sum(dim=0) / counts,
    }


def _score_with_ties(
    above: Tensor, tied: Tensor, counts: Tensor, ks: tuple[int, ...], entries: int
) -> dict[str, Tensor]:
    position = torch.arange(len(above), dtype=torch.float64, device=above.device)[:, None].expand(above.shape)
    is_positive = position < counts
    before, alike = _locate_ties(above, tied, position, counts)
    size, offset = alike + tied, above + before
    recalls = {f"R@{k}": _expected_recall(k, above[0], tied[0], alike[0], before, position, is_positive) for k in ks}
    inside = (counts - offset).clamp(min=0.0).minimum(size)  # ranks of the tie that are among the first R
    return {
        **recalls,
        "P@1": _expected_recall(1, above[0], tied[0], alike[0], before, position, is_positive),
        "RP": (inside / size * is_positive).sum(dim=0) / counts,
        "MAP@R": (_expected_precision(before, alike, size, offset, inside) * is_positive).sum(dim=0) / counts,
        "MRR": _expected_reciprocal_rank(above[0], alike[0], tied[0], entries),
        "mAP": (_expected_precision(before, alike, size, offset, size) * is_positive).sum(dim=0) / counts,
    }


def _locate_ties(above: Tensor, tied: Tensor, position: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
    """For each positive, the number of positives before its tie, and the number of positives in its tie."""
    is_start = find_tie_starts(above, tied) | (position >= counts)
    before = torch.where(is_start, position, 0.0).cummax(dim=0).values
    # the end of a tie is the next start: from the last positive up, the smallest start so far
    starts = torch.where(is_start, position, torch.inf)
    last = torch.full_like(starts[:1], len(above))
    after = torch.cat([starts[1:], last]).flip(0).cummin(dim=0).values.flip(0)
    return before, after - before


def _expected_recall(
    k: int, above: Tensor, tied: Tensor, alike: Tensor, before: Tensor, position: Tensor, is_positive: Tensor
) -> Tensor:
    """The probability that one of the best tie's positives is among the first k."""
    inside = k - above  # ranks of the best tie among the first k
    # all negatives: b choose m over (a + b) choose m, as a product of one factor per positive, of which there are a
    factor = ((tied - inside).clamp(min=0.0) + position + 1.0) / (tied + position + 1.0)
    in_best_tie = (before == 0.0) & is_positive & (position < alike)
    miss = torch.where(in_best_tie, factor, 1.0).prod(dim=0)
    return torch.where(inside <= 0.0, 0.0, torch.where(inside > tied, 1.0, 1.0 - miss))


def _expected_precision(before: Tensor, alike: Tensor, size: Tensor, offset: Tensor, inside: Tensor) -> Tensor:
    """Expected precision at a positive: the sum over the first ranks of its tie, divided by its number of positives.

    The m-th rank of the tie is a positive with probability a/g, g = a + b; then the expected number of the tie's other
    positives before it is (m − 1)(a − 1)/(g − 1).  The sum is over
    ``(a/g) (before + 1 + (m − 1)(a − 1)/(g − 1)) / (offset + m)``.
    """
    others = (alike - 1.0) / (size - 1.0).clamp(min=1.0)
    harmonic = torch.digamma(offset + inside + 1.0) - torch.digamma(offset + 1.0)
    total = others * inside + (before + 1.0 - others * (offset + 1.0)) * harmonic
    # a positive without a tie needs no logarithms and has no rounding
    without_tie = torch.where(inside >= 1.0, (before + 1.0) / (offset + 1.0), 0.0)
    return torch.where(size == 1.0, without_tie, total / size)


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
