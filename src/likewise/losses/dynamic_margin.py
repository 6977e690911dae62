"""Dynamic soft margin: triplets weighted by the running distribution of their violations."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import ClassVar

import torch
from torch import Tensor

from likewise._compat import is_inside_func
from likewise.formula import (
    Declaration,
    Euclidean,
    MatrixLoss,
    PairBatch,
    RelationLike,
    RowChunk,
    RowMapper,
    Similarity,
    TermValues,
    full_precision,
    hyper,
    map_values,
)
from likewise.losses.base import PairLoss


class DynamicSoftMarginLoss(PairLoss):
    r"""Dynamic soft margin: weights each triplet by its rank among the violations of recent triplets.

    $$\mathrm{mean}_{(a,p,n)}\,F\bigl(\lfloor u\rfloor\bigr)\,q,\qquad q=d_{ap}-d_{an},\quad u=\frac{q-v}{2|v|/b}$$

    over all triplets, with Euclidean distances of unit vectors; F is the cumulative sum of a histogram of q with b bins, without
    gradient.  Each triplet puts the mass $1-(u-\lfloor u\rfloor)$ into bin $\lfloor u\rfloor$ and the rest into the next; the sum
    over triplets, times the momentum, is added to the old histogram times one minus the momentum (a momentum of 1 while the
    histogram is empty), and the result is divided by its sum. Positions outside the bins are clamped to the first or
    last bin. Zhang & Rusinkiewicz 2019, on all triplets as in pytorch-metric-learning.

    In training mode, a call updates the histogram first.  In evaluation mode the histogram does not change; if it is
    empty, the histogram of the batch is used.

    Args:
        min_val: the smallest violation v of the histogram, which ends at −v.
        num_bins: the number of bins b.
        momentum: the weight of a batch in the histogram.

    Attributes:
        histogram: the running histogram, ``(num_bins,)``, a buffer.

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> loss = DynamicSoftMarginLoss()
        >>> loss(embeddings, torch.tensor([0, 0, 1])), loss.histogram.sum()
        (tensor(0.0555), tensor(1.))
    """

    min_val: float = hyper(default=-2.0, help="smallest violation in the histogram", below=0.0, search=(-2.0, -0.5))
    num_bins: int = hyper(default=10, help="number of bins", at_least=1, search=(5, 100))
    momentum: float = hyper(
        default=0.01, help="weight of a batch", at_least=0.0, at_most=1.0, search=(0.001, 1.0), log=True
    )
    similarity = "euclidean"
    similarities: ClassVar[tuple[type[Similarity], ...] | None] = (Euclidean,)
    is_stateful: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self.register_buffer("histogram", torch.zeros(self.num_bins))

    def declare(self) -> Declaration:
        """Two phases: the histogram of the batch, then the weighted triplets."""
        return MatrixLoss(self._compute)

    def step(
        self,
        embeddings: Tensor,
        labels: Tensor | None = None,
        references: Tensor | None = None,
        reference_labels: Tensor | None = None,
        *,
        histogram: Tensor,
        relation: RelationLike | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Return the loss of a batch and the updated histogram as a function of the old one; the buffer is not used."""
        updated: list[Tensor] = []

        def compute(batch: PairBatch, rows: RowMapper) -> list[TermValues]:
            values, new = self._weigh(batch, rows, histogram, self.momentum)
            updated.append(new)
            return values

        with full_precision(embeddings):
            batch = self.make_batch(embeddings, labels, references, reference_labels, relation)
            value = self.value(batch, declaration=MatrixLoss(compute))
        return value, updated[0]

    def _compute(self, batch: PairBatch, rows: RowMapper) -> list[TermValues]:
        stored = self.get_buffer("histogram")
        values, histogram = self._weigh(batch, rows, stored, self.momentum if self.training else 0.0)
        if self.training:
            if is_inside_func():
                raise RuntimeError(
                    "DynamicSoftMarginLoss cannot change its histogram inside a transform of torch.func; call eval() before"
                )
            with torch.no_grad():
                stored.copy_(histogram)
        return values

    def _weigh(
        self, batch: PairBatch, rows: RowMapper, stored: Tensor, momentum: float
    ) -> tuple[list[TermValues], Tensor]:
        """The weighted triplets, and the histogram after this batch."""
        [counts] = rows.sum(self._count)  # the values share the autograd graph of the matrix
        with torch.no_grad():
            counts = batch.group.total(counts.detach())
            stored = stored.to(counts.dtype)
            weight = torch.where(stored.any(), counts.new_full((), momentum), 1.0)  # in the dtype of the counts
            mixed = weight * counts + (1.0 - weight) * stored
            total = mixed.sum()
            histogram = torch.where(total > 0.0, mixed / torch.where(total > 0.0, total, 1.0), stored)
        return map_values(rows, partial(self._of_rows, cumulative=histogram.cumsum(dim=0))), histogram

    def _count(self, chunk: RowChunk) -> tuple[Tensor, ...]:
        """The histogram of some anchors' triplets."""
        histogram = chunk.similarities.new_zeros(self.num_bins)
        for violation, keep in _triplets(chunk):
            position, lower = self._position(violation)
            share = position - lower
            for bins, mass in ((lower, 1.0 - share), (lower + 1.0, share)):
                index = bins.clamp_max(self.num_bins - 1.0).long().flatten()
                histogram = histogram.index_add(0, index, torch.where(keep, mass, 0.0).flatten())
        return (histogram,)

    def _position(self, violation: Tensor) -> tuple[Tensor, Tensor]:
        """The position in units of bins, and the bin."""
        width = 2.0 * abs(self.min_val) / self.num_bins
        position = ((violation.detach() - self.min_val) / width).clamp(0.0, self.num_bins - 1.0)
        return position, position.floor()

    def _of_rows(self, chunk: RowChunk, cumulative: Tensor) -> list[TermValues]:
        total = units = nonzero = chunk.similarities.new_zeros(len(chunk.similarities))
        for violation, keep in _triplets(chunk):
            weight = cumulative[self._position(violation)[1].long()]
            value = torch.where(keep, weight * violation, 0.0)
            total, units, nonzero = total + value.sum(dim=1), units + keep.sum(dim=1), nonzero + (value != 0).sum(dim=1)
        return [TermValues(total, units, nonzero)]


def _triplets(chunk: RowChunk) -> Iterator[tuple[Tensor, Tensor]]:
    """``d_ap − d_an`` of one positive of each anchor and all references, and which of these are triplets, ``(rows, n)`` each."""
    S, (positive, negative) = chunk.similarities, chunk.masks()
    candidates = chunk.candidates(positive)  # (rows, k)
    for column, exists in zip(candidates.index.unbind(1), candidates.mask.unbind(1), strict=True):
        yield S - S.gather(1, column[:, None]), exists[:, None] & negative
