"""Ranking losses: average precision and pair order, through soft histograms of similarities."""

from __future__ import annotations

from typing import ClassVar

import torch

from likewise.formula import (
    Cosine,
    Declaration,
    MatrixLoss,
    PairBatch,
    RowMapper,
    Similarity,
    SquaredEuclidean,
    TermValues,
    exactly,
    hyper,
    s,
)
from likewise.losses.base import PairLoss


class FastAPLoss(PairLoss):
    r"""FastAP: one minus the average precision of each anchor's ranking, through soft histograms of distances.

    $$1-\frac{1}{|P_i|}\sum_l\frac{h^+_l\,H^+_l}{H_l}$$

    per anchor that has a positive; $h^+_l$ and $h_l$ count the positives and all references at node $l$ of the squared
    distance in $[0,4]$, $H^+_l$ and $H_l$ up to that node.  Cakir et al. 2019.

    Args:
        bins: the number of intervals; there is one node more.

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> FastAPLoss()(embeddings, torch.tensor([0, 0, 1]))
        tensor(0.2500)
    """

    bins: int = hyper(default=10, help="number of histogram intervals", at_least=1, search=(5, 50))
    similarity = "squared_euclidean"
    similarities: ClassVar[tuple[type[Similarity], ...] | None] = (SquaredEuclidean,)

    def declare(self) -> Declaration:
        """A histogram of a row is not a fold, so this is a function of the histograms of rows."""
        return MatrixLoss(self._compute, evaluates_formulas=True)

    def _compute(self, _batch: PairBatch, rows: RowMapper) -> list[TermValues]:
        at_node, of_negatives, positives, _ = rows.histograms(s * (self.bins / -4.0), self.bins)
        # one minus precision is the fraction of negatives so far, which is exactly zero if all positives rank first
        negatives_so_far = of_negatives.cumsum(dim=1)
        all_so_far = at_node.cumsum(dim=1) + negatives_so_far
        error = negatives_so_far / torch.where(all_so_far > 0.0, all_so_far, 1.0)
        value = (at_node * error).sum(dim=1) / positives.clamp_min(1)
        return [TermValues(value, (positives > 0).long(), (value != 0).long())]


class HistogramLoss(PairLoss):
    r"""Histogram loss: the probability that a random negative pair is more similar than a random positive one.

    $$\sum_r h^-_r\sum_{q\le r}h^+_q$$

    with soft histograms $h^\pm$ of the batch's similarities over $[-1,1]$, each normalized to one.  Ustinova & Lempitsky
    2016.  There is one unit, the batch; under ``reduction="none"`` an anchor's value is the contribution of its negatives.

    Args:
        bins: the number of intervals; there is one node more.

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> HistogramLoss()(embeddings, torch.tensor([0, 0, 1]))
        tensor(0.5000)
    """

    bins: int = hyper(default=100, help="number of histogram intervals", at_least=1, search=(20, 200))
    takes_references: ClassVar[bool] = False
    similarities: ClassVar[tuple[type[Similarity], ...] | None] = (Cosine,)

    def declare(self) -> Declaration:
        """Two phases: histograms of rows, then the anchors' values from the histogram of the batch."""
        return MatrixLoss(self._compute, evaluates_formulas=True)

    def _compute(self, batch: PairBatch, rows: RowMapper) -> list[TermValues]:
        position = (s + 1.0) * (self.bins / 2.0)
        of_positives, of_negatives, positives, negatives = rows.histograms(position, self.bins)
        group = batch.group
        n_positives, n_negatives = group.totals([positives.sum(), negatives.sum()])
        reached = group.total(of_positives.sum(dim=0)).cumsum(dim=0) / n_positives.clamp_min(1)
        value = exactly((of_negatives / n_negatives.clamp_min(1)) @ reached)
        # the batch is one unit, counted at its first anchor
        first = (torch.arange(len(value), device=value.device) == 0) & (group.rank == 0)
        exists = first & (n_positives > 0) & (n_negatives > 0)
        return [TermValues(value, exists, exists & (group.total(value.sum()) != 0))]
