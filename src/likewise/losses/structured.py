"""Losses on positive pairs in the light of the negatives of both their members."""

from __future__ import annotations

import math
from typing import ClassVar

import torch

from likewise.backends import dense_masks
from likewise.core.folds import LogSumExp
from likewise.core.formula import OPERATIONS
from likewise.core.hyper import hyper, option
from likewise.core.problem import Problem
from likewise.core.similarity import Cosine, Euclidean, Similarity, SimilarityLike
from likewise.core.spec import Declaration, PartValues, WholeMatrix
from likewise.losses.module import PairLoss


class AngularLoss(PairLoss):
    r"""Angular loss: the angle at the negative of every triangle shall be small.

    $$\log\Bigl(1+\sum_{n\in N_a}e^{4\tan^2\!\alpha\,(x_a+x_p)\cdot x_n-2(1+\tan^2\!\alpha)\,x_a\cdot x_p}\Bigr)$$

    per positive pair whose anchor has a negative, unit vectors throughout.  Wang et al. 2017.  The sum over
    negatives of $e^{c\,s_{an}}e^{c\,s_{pn}}$ is one matrix product.

    Args:
        alpha: the angle α in degrees; the paper uses 36 to 55.  Above 66 the product would leave float32's range.

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> AngularLoss()(embeddings, torch.tensor([0, 0, 1]))
        tensor(1.8399)
    """

    alpha: float = hyper(default=40.0, help="angle in degrees", above=0.0, at_most=66.0, search=(30.0, 60.0))
    similarities: ClassVar[tuple[type[Similarity], ...] | None] = (Cosine,)

    def declare(self) -> Declaration:
        """A pair looks at its positive's negatives, so this looks at the matrix."""
        return WholeMatrix(self._compute)

    def only_from_embeddings(self) -> str | None:
        """Positives meet negatives, and both are references."""
        return "it compares references with references"

    def _compute(self, problem: Problem) -> list[PartValues]:
        assert problem.similarity is not None
        S = problem.similarities()
        positive, negative = dense_masks(problem)
        between = S if problem.references is None else problem.similarity(problem.references)
        tangent = math.tan(math.radians(self.alpha)) ** 2
        c = 4.0 * tangent
        # cosines end at 1, so e^(c (s − 1)) cannot overflow; the limit on alpha keeps the products from vanishing
        of_anchor = torch.exp(c * (S - 1.0)).masked_fill(~negative, 0.0)
        sums = of_anchor @ torch.exp(c * (between - 1.0)).T
        keep = positive & negative.any(dim=1, keepdim=True)
        logits = sums.masked_fill(~keep, 1.0).log() + 2.0 * c - 2.0 * (1.0 + tangent) * S
        value = torch.where(keep, OPERATIONS["softplus"].compute(logits), 0.0)
        return [PartValues(value.sum(dim=1), keep.sum(dim=1), (value != 0).sum(dim=1))]


class LiftedStructureLoss(PairLoss):
    r"""Lifted structure loss as first published: every positive pair against the negatives of both its ends.

    $$\tfrac12\Bigl[d_{ij}+\log\Bigl(\sum_{k\in N_i}e^{\lambda-d_{ik}}+\sum_{l\in N_j}e^{\lambda-d_{jl}}\Bigr)\Bigr]_+^2$$

    mean over positive pairs $i<j$, Euclidean distance of unit vectors.  Oh Song et al. 2016.  Under
    ``reduction="none"`` half of a pair's value goes to either end.

    Args:
        margin: the margin λ.

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> LiftedStructureLoss()(embeddings, torch.tensor([0, 0, 1]))
        tensor(1.5896)
    """

    margin: float = hyper(default=1.0, help="margin", at_least=0.0, search=(0.1, 2.0))
    similarity: SimilarityLike = option(
        default="euclidean", kw_only=True, help="how two embeddings are compared; higher is closer"
    )
    takes_references: ClassVar[bool] = False
    similarities: ClassVar[tuple[type[Similarity], ...] | None] = (Euclidean,)

    def declare(self) -> Declaration:
        """A pair looks at both its rows, so this looks at the matrix."""
        return WholeMatrix(self._compute)

    def only_from_embeddings(self) -> str | None:
        """Both members of a pair must be anchors."""
        return "it is defined on unordered pairs of one set, where both members have negatives of their own"

    def _compute(self, problem: Problem) -> list[PartValues]:
        S = problem.similarities()
        positive, negative = dense_masks(problem)
        positive = positive | positive.T  # a pair is unordered, however it was named
        fold = LogSumExp()
        pressure = fold.finish(fold.start(self.margin + S, negative))
        # far below any distance, yet finite: the logarithm of two empty sums has no slope
        pressure = pressure.clamp_min(-1e6)
        joint = torch.logaddexp(pressure[:, None], pressure[None, :])
        has_negative = negative.any(dim=1)
        keep = positive & (has_negative[:, None] | has_negative[None, :])
        value = torch.where(keep, 0.5 * torch.relu(joint - S).square(), 0.0)
        # every unordered pair stands in the matrix twice
        return [PartValues(value.sum(dim=1) / 2.0, keep.sum(dim=1) / 2.0, (value != 0).sum(dim=1) / 2.0)]
