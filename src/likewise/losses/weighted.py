"""Losses from weights: a loss that is defined by the weights of its pairs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import torch
from torch import Tensor

from likewise.formula import (
    BOTH,
    NEGATIVES,
    POSITIVES,
    Declaration,
    Formula,
    MatrixLoss,
    PairBatch,
    Rank,
    RowChunk,
    RowMapper,
    RowStatistics,
    Side,
    TermValues,
    count,
    largest,
    map_values,
    mean,
    option,
    s,
    smallest,
)
from likewise.losses.base import PairLoss

WeightFunction: TypeAlias = Callable[[Tensor, Mapping[str, Tensor], Tensor], Tensor]
"""Maps similarities ``(rows, n)``, statistics of the rows, ``(rows, 1)`` each, and a mask of positives to weights."""

STATISTICS: Mapping[str, Formula] = {
    "hardest_positive": smallest(s, POSITIVES),
    "hardest_negative": largest(s, NEGATIVES),
    "mean_positive": mean(s, POSITIVES),
    "mean_negative": mean(s, NEGATIVES),
    "positives": count(POSITIVES),
    "negatives": count(NEGATIVES),
}
"""The default statistics of each row, the second argument of a weight function.

Examples:
    >>> STATISTICS["hardest_negative"]
    max[negatives](s)
"""


class WeightedPairLoss(PairLoss):
    r"""A loss that is defined by the weights of its pairs: the converse of Theorem 3.1 of the unified view.

    $$\sum_{k\in N_i}w_{ik}\,s_{ik}-\sum_{j\in P_i}w_{ij}\,s_{ij}$$

    per anchor (Eq. 2 of the unified view), with weights $w$ without gradient: the strength that pulls positive pairs
    together and pushes negative pairs apart. Only the gradient matters for training; the value has little meaning and
    may be negative.

    The function is called once per batch, or once per chunk of complete rows of a large batch, with the statistics of
    these rows. Weights of pairs that are neither positive nor negative, or that a miner excludes, are not used.

    Args:
        weight_fn: ``weight_fn(similarities, rows, is_positive)`` returns weights, in any shape that broadcasts to that of
            ``similarities``, ``(rows, n)``; ``rows`` maps the name of a statistic to one number per row, ``(rows, 1)``;
            ``is_positive`` is a boolean matrix, false for negative pairs.  The weights of a row must not depend on other rows.
        statistics: a mapping from names to formulas with one number per anchor: folds over its positives, negatives or
            both, after mining.  By default ``hardest_positive`` and ``hardest_negative`` (the least similar positive,
            the most similar negative; infinite where there is none), ``mean_positive``, ``mean_negative``, and the
            numbers ``positives`` and ``negatives``.
        needs: the sides that an anchor must have to count; an anchor without one contributes nothing.  By default every
            anchor counts.

    Examples:
        >>> import torch
        >>> from likewise.formula import POSITIVES, logsumexp, s
        >>> embeddings, labels = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]]), torch.tensor([0, 0, 1])
        >>> def all_alike(similarities, rows, is_positive):
        ...     return torch.ones_like(similarities)
        >>> WeightedPairLoss(all_alike)(embeddings, labels)
        tensor(0.5067)
        >>> def softest_positive(similarities, rows, is_positive):
        ...     return torch.where(is_positive, torch.exp(-2.0 * similarities - rows["pull"]), 0.0)
        >>> loss = WeightedPairLoss(softest_positive, statistics={"pull": logsumexp(-2.0 * s, POSITIVES)})
        >>> loss(embeddings, labels)
        tensor(-0.5333)
    """

    weight_fn: WeightFunction
    statistics: Mapping[str, Formula] | None = option(
        default=None, kw_only=False, help="statistics of each row, as folds"
    )
    needs: tuple[Side, ...] = option(default=(), kw_only=True, help="the sides that an anchor must have to count")

    def __post_init__(self) -> None:
        super().__post_init__()
        if not callable(self.weight_fn):
            raise TypeError(
                "weight_fn must be a function of similarities, statistics of their rows and a mask of positives, "
                f"but it is a {type(self.weight_fn).__name__}"
            )
        for side in self.needs:
            if side not in (POSITIVES, NEGATIVES, BOTH):
                raise TypeError(f"needs must contain POSITIVES, NEGATIVES or BOTH only, but it contains {side!r}")
        for name, formula in self._statistics().items():
            if not isinstance(formula, Formula) or formula.rank > Rank.ANCHOR:
                what = f"the curve {formula!r}" if isinstance(formula, Formula) else f"a {type(formula).__name__}"
                raise TypeError(
                    f"statistics must map names to formulas with one number per anchor, made with folds, "
                    f"but {name!r} is {what}"
                )

    def _statistics(self) -> Mapping[str, Formula]:
        statistics = STATISTICS if self.statistics is None else self.statistics
        if not isinstance(statistics, Mapping):
            raise TypeError(f"statistics must map names to formulas, but it is a {type(statistics).__name__}")
        return statistics

    def declare(self) -> Declaration:
        """A Python function is not a formula but a function of matrix rows."""
        return MatrixLoss(self._compute)

    def _compute(self, batch: PairBatch, rows: RowMapper) -> list[TermValues]:
        statistics = rows.statistics(list(self._statistics().values()))
        return map_values(rows, lambda chunk: [self._of_rows(chunk, statistics)])

    def _of_rows(self, chunk: RowChunk, compute: RowStatistics) -> TermValues:
        S = chunk.similarities
        with torch.no_grad():
            positive, negative = chunk.masks()
            numbers = zip(self._statistics(), compute(chunk, positive, negative), strict=True)
            statistics = {name: values[:, None] for name, values in numbers}
            # a copy, because the function may change it in place
            weights = self._check_weights(self.weight_fn(S.detach().clone(), statistics, positive), S)
            counted = torch.ones(len(S), dtype=torch.bool, device=S.device)
            for side in self.needs:
                keep = {POSITIVES: positive, NEGATIVES: negative}.get(side, positive | negative)
                counted = counted & keep.any(dim=1)
            signed = torch.where(negative, weights, torch.where(positive, -weights, 0.0))
            signed = signed.masked_fill(~counted[:, None], 0.0)
        return TermValues((signed * S).sum(dim=1), counted.long(), (signed != 0.0).any(dim=1).long())

    @staticmethod
    def _check_weights(weights: object, S: Tensor) -> Tensor:
        """Check the function's weights and expand them to a matrix."""
        if not isinstance(weights, Tensor):
            raise TypeError(f"weight_fn must return a tensor of weights, but it returned a {type(weights).__name__}")
        stretches = weights.ndim <= 2 and all(
            have in (1, want) for have, want in zip(weights.shape[::-1], S.shape[::-1], strict=False)
        )
        if not stretches:
            raise ValueError(
                f"weight_fn must return weights for similarities of shape {tuple(S.shape)}, "
                f"but it returned a tensor of shape {tuple(weights.shape)}"
            )
        return weights.detach().to(S.dtype).expand_as(S)
