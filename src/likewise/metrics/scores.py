"""Retrieval metrics of single queries, from the counts around their positives.

Where negatives tie with positives, a metric is its expectation over all orders of the tied.  A tie begins after
``before`` positives and ``above`` negatives, and holds ``alike`` positives and ``tied`` negatives.
"""

from __future__ import annotations

import torch
from torch import Tensor

from likewise.metrics.pieces import Piece, tie_begins


def per_query(piece: Piece, ks: tuple[int, ...], ties: str, entries: int = 2**20) -> dict[str, Tensor]:
    """Each metric for each query of a piece, ``(q,)`` float64, from about so many positives at once.

    Examples:
        >>> import torch
        >>> one = torch.ones(1, 1, dtype=torch.int64)
        >>> piece = Piece(queries=one[0], counts=one[0], references=one, above=one, tied=0 * one)
        >>> {name: value.item() for name, value in per_query(piece, (1, 2), "expected").items()}
        {'R@1': 0.0, 'R@2': 1.0, 'P@1': 0.0, 'RP': 0.0, 'MAP@R': 0.0, 'MRR': 0.5, 'mAP': 0.5}
    """
    step = max(1, entries // max(1, len(piece.above)))
    parts = []
    for start in range(0, len(piece.queries), step):
        columns = slice(start, start + step)
        counts = piece.counts[columns].double()
        above, tied = piece.above[:, columns].double(), piece.tied[:, columns].double()
        if ties == "pessimistic":
            above = above + tied
        values = _untied(above, counts, ks)
        if ties == "expected":
            # few queries have ties, and expectations cost more
            some = tied.any(dim=0).nonzero().squeeze(1)
            if len(some):
                expected = _tied(above[:, some], tied[:, some], counts[some], ks, entries)
                values = {name: value.index_copy(0, some, expected[name]) for name, value in values.items()}
        parts.append(values)
    return {name: torch.cat([part[name] for part in parts]) for name in parts[0]}


def _untied(above: Tensor, counts: Tensor, ks: tuple[int, ...]) -> dict[str, Tensor]:
    place = torch.arange(1.0, len(above) + 1.0, dtype=torch.float64, device=above.device)[:, None]
    rank = place + above
    precision = (place / rank).masked_fill_(place > counts, 0.0)  # the padding counts for nothing
    inside = (rank <= counts) & (place <= counts)
    recalls = {f"R@{k}": (above[0] < k).double() for k in ks}
    return {
        **recalls,
        "P@1": (above[0] < 1).double(),
        "RP": inside.double().sum(dim=0) / counts,
        "MAP@R": (precision * inside).sum(dim=0) / counts,
        "MRR": 1.0 / rank[0],
        "mAP": precision.sum(dim=0) / counts,
    }


def _tied(above: Tensor, tied: Tensor, counts: Tensor, ks: tuple[int, ...], entries: int) -> dict[str, Tensor]:
    place = torch.arange(len(above), dtype=torch.float64, device=above.device)[:, None].expand(above.shape)
    real = place < counts
    before, alike = _ties(above, tied, place, counts)
    size, offset = alike + tied, above + before
    recalls = {f"R@{k}": _recall(k, above[0], tied[0], alike[0], before, place, real) for k in ks}
    cut = (counts - offset).clamp(min=0.0).minimum(size)  # places of the tie that are among the first R
    return {
        **recalls,
        "P@1": _recall(1, above[0], tied[0], alike[0], before, place, real),
        "RP": (cut / size * real).sum(dim=0) / counts,
        "MAP@R": (_precision(before, alike, size, offset, cut) * real).sum(dim=0) / counts,
        "MRR": _reciprocal(above[0], alike[0], tied[0], entries),
        "mAP": (_precision(before, alike, size, offset, size) * real).sum(dim=0) / counts,
    }


def _ties(above: Tensor, tied: Tensor, place: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
    """For each positive, the positives before its tie and the positives in it."""
    new = tie_begins(above, tied) | (place >= counts)
    before = torch.where(new, place, 0.0).cummax(dim=0).values
    # the next tie begins where the following one does; looking from the end, the smallest begin seen so far
    begins = torch.where(new, place, torch.inf)
    last = torch.full_like(begins[:1], len(above))
    after = torch.cat([begins[1:], last]).flip(0).cummin(dim=0).values.flip(0)
    return before, after - before


def _recall(k: int, above: Tensor, tied: Tensor, alike: Tensor, before: Tensor, place: Tensor, real: Tensor) -> Tensor:
    """The chance that one of the best tie's positives is among the first k."""
    seen = k - above  # places of the best tie among the first k
    # all negatives: b choose m over (a + b) choose m, as a product of one factor for each of the a positives
    factor = ((tied - seen).clamp(min=0.0) + place + 1.0) / (tied + place + 1.0)
    first = (before == 0.0) & real & (place < alike)
    missed = torch.where(first, factor, 1.0).prod(dim=0)
    return torch.where(seen <= 0.0, 0.0, torch.where(seen > tied, 1.0, 1.0 - missed))


def _precision(before: Tensor, alike: Tensor, size: Tensor, offset: Tensor, places: Tensor) -> Tensor:
    """Expected precision at a positive, summed over the first places of its tie and shared among its positives.

    At the m-th place of the tie a positive stands with chance a/g, g = a + b, and then (m − 1)(a − 1)/(g − 1) others of
    the tie are expected before it: the sum of ``(a/g) (before + 1 + (m − 1)(a − 1)/(g − 1)) / (offset + m)``.
    """
    others = (alike - 1.0) / (size - 1.0).clamp(min=1.0)
    harmonic = torch.digamma(offset + places + 1.0) - torch.digamma(offset + 1.0)
    whole = others * places + (before + 1.0 - others * (offset + 1.0)) * harmonic
    # a positive that ties with nobody: no logarithms, no rounding
    alone = torch.where(places >= 1.0, (before + 1.0) / (offset + 1.0), 0.0)
    return torch.where(size == 1.0, alone, whole / size)


def _reciprocal(above: Tensor, alike: Tensor, tied: Tensor, entries: int) -> Tensor:
    """The expectation of one over the rank of the first positive."""
    # queries share few kinds of ties, even where everything ties with everything
    kinds, which = torch.unique(torch.stack([above, alike, tied], dim=1), dim=0, return_inverse=True)
    values = torch.empty(len(kinds), dtype=torch.float64, device=above.device)
    step = max(1, entries // (int(tied.max()) + 1))
    for start in range(0, len(kinds), step):
        offset, a, b = (column[:, None] for column in kinds[start : start + step].T)
        m = torch.arange(int(b.max()) + 1, dtype=torch.float64, device=above.device)
        # the first m are negatives, then comes a positive: each factor is one more negative
        negatives = ((b - m + 1.0).clamp(min=0.0) / (a + b - m + 1.0).clamp(min=1.0)).masked_fill(m == 0, 1.0)
        chance = negatives.cumprod(dim=1) * a / (a + b - m).clamp(min=1.0)
        values[start : start + step] = (chance.masked_fill(m > b, 0.0) / (offset + m + 1.0)).sum(dim=1)
    return values[which]
