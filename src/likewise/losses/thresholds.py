"""Pair losses with one threshold for all anchors: sigmoid (SigLIP), threshold-consistent margin and ranked list."""

from __future__ import annotations

from numbers import Real
from typing import ClassVar

import torch
from torch import Tensor

from likewise.formula import (
    NEGATIVES,
    POSITIVES,
    Declaration,
    Euclidean,
    Formula,
    Labels,
    Mined,
    PairBatch,
    PerAnchor,
    Side,
    Similarity,
    add_up,
    as_similarity,
    exp,
    hyper,
    logical_not,
    option,
    per_anchor,
    per_pair,
    s,
    softplus,
    where,
)
from likewise.losses.base import PairLoss


class SigmoidLoss(PairLoss):
    r"""Sigmoid loss (SigLIP): each pair is a binary classification, with a learned scale and bias.

    $$\frac1n\sum_i\sum_j\log\bigl(1+e^{-z_{ij}(t\,s_{ij}+b)}\bigr),\qquad z_{ij}=\pm1$$

    $z$ is $+1$ for positive and $-1$ for negative pairs, $n$ is the number of anchors, all of which count.  Zhai et al.
    2023. For pairs of texts and images, row k of ``references`` is the positive of row k: ``relation="paired"``, or
    labels ``arange(n)`` on both sides.

    Args:
        scale: the scale t, or its initial value; its logarithm is the parameter ``log_scale``.
        bias: the bias b, or its initial value.
        learn: make scale and bias parameters.

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> loss = SigmoidLoss()
        >>> loss(embeddings, torch.tensor([0, 0, 1])).detach(), [name for name, _ in loss.named_parameters()]
        (tensor(1.7721), ['log_scale', 'bias'])
    """

    scale: float = hyper(default=10.0, help="scale", above=0.0, search=(1.0, 100.0), log=True, learn="learn")
    bias: float = hyper(default=-10.0, help="bias", search=(-20.0, 0.0), learn="learn")
    learn: bool = option(default=True, kw_only=False, help="make scale and bias parameters")

    def declare(self) -> Declaration:
        """The sum of a softplus over all pairs of an anchor."""
        logit = self.scale * s + self.bias
        return per_anchor(add_up(softplus(-logit), POSITIVES) + add_up(softplus(logit), NEGATIVES), needs=())


class ThresholdConsistentMarginLoss(PairLoss):
    r"""Threshold-consistent margin: pulls positives above one threshold, pushes negatives below another.

    $$w_+\,\mathrm{mean}_{s_p\le m_+}(m_+-s_p)+w_-\,\mathrm{mean}_{s_n\ge m_-}(s_n-m_-)$$

    over the ordered positive pairs at or below $m_+$ and the negative pairs at or above $m_-$; a mean over zero pairs
    is zero.  Zhang et al. 2024, who add it to another loss (`WeightedSum`).  With a distance the margins are distances.
    `likewise.metrics.opis` measures the consistency that it improves.

    Args:
        positive_margin: the margin m₊.
        negative_margin: the margin m₋.
        positive_weight: the weight w₊ of positive pairs.
        negative_weight: the weight w₋ of negative pairs.

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> ThresholdConsistentMarginLoss()(embeddings, torch.tensor([0, 0, 1]))
        tensor(0.3800)
    """

    positive_margin: float = hyper(default=0.9, help="positives below this similarity count", search=(0.5, 1.0))
    negative_margin: float = hyper(default=0.5, help="negatives above this similarity count", search=(0.0, 0.7))
    positive_weight: float = hyper(default=1.0, help="weight of positive pairs", at_least=0.0, search=(0.0, 10.0))
    negative_weight: float = hyper(default=1.0, help="weight of negative pairs", at_least=0.0, search=(0.0, 10.0))

    def declare(self) -> Declaration:
        """Two means over the pairs on the wrong side of a margin; one at the margin is zero and counts."""
        threshold = as_similarity(self.similarity).threshold
        lack, excess = threshold(self.positive_margin) - s, s - threshold(self.negative_margin)
        return (
            per_pair(POSITIVES, self.positive_weight * lack, among=logical_not(lack < 0.0)),
            per_pair(NEGATIVES, self.negative_weight * excess, among=logical_not(excess < 0.0)),
        )


class RankedListLoss(PairLoss):
    r"""Ranked list loss: positives inside a ball, negatives outside of it by a margin, the hardest weighted most.

    $$L_P=\frac{\sum_{d_p>\alpha-m}w_p\,(d_p-(\alpha-m))}{\sum w_p+10^{-5}n},\quad w_p=e^{T_p(d_p-(\alpha-m))}$$

    $$L_N=\frac{\sum_{d_n<\alpha}w_n\,(\alpha-d_n)}{\sum w_n+10^{-5}n},\quad w_n=e^{T_n(\alpha-d_n)}$$

    and $(1-\lambda)L_P+\lambda L_N$ per anchor, mean over all anchors; $d$ is the Euclidean distance of unit vectors, $n$ the
    number of references (the batch size), and the gradient flows through the weights.  Wang et al. 2019, with the small
    constant of pytorch-metric-learning.

    Args:
        margin: the margin m.
        Tn: the steepness of the weights of negatives.
        imbalance: the weight λ of the negative term.
        alpha: the least distance α of negatives; by default ``1 + margin / 2``.
        Tp: the steepness of the weights of positives.

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> RankedListLoss()(embeddings, torch.tensor([0, 0, 1]))
        tensor(0.3564)
    """

    margin: float = hyper(default=0.4, help="margin", at_least=0.0, at_most=2.0, search=(0.0, 1.0))
    Tn: float = hyper(default=10.0, help="steepness on negatives", at_least=0.0, at_most=20.0, search=(0.0, 20.0))
    imbalance: float = hyper(
        default=0.5, help="weight of the negative term", at_least=0.0, at_most=1.0, search=(0.0, 1.0)
    )
    alpha: float | None = hyper(
        default=None, help="least distance of negatives", above=0.0, at_most=2.0, search=(0.8, 1.6)
    )
    Tp: float = hyper(default=0.0, help="steepness on positives", at_least=0.0, at_most=20.0, search=(0.0, 10.0))
    similarity = "euclidean"
    similarities: ClassVar[tuple[type[Similarity], ...] | None] = (Euclidean,)

    def __post_init__(self) -> None:
        if self.alpha is None and isinstance(self.margin, Real):  # any other margin is an error, which is raised below
            self.alpha = 1.0 + self.margin / 2.0
        super().__post_init__()

    def declare(self) -> Declaration:
        """Two weighted means; the distance is −s."""
        assert self.alpha is not None
        pull = _weighted_mean(POSITIVES, -s - (self.alpha - self.margin), self.Tp)
        push = _weighted_mean(NEGATIVES, self.alpha + s, self.Tn)
        return per_anchor((1.0 - self.imbalance) * pull + self.imbalance * push, needs=())


def _weighted_mean(side: Side, violation: Formula, steepness: float) -> Formula:
    """The mean of positive violations, weighted by their exponential."""
    weight = where(violation > 0.0, exp(steepness * violation), 0.0)
    constant = 1e-5 * PerAnchor("n", _number_of_references)
    return add_up(weight * violation, side) / (add_up(weight, side) + constant)


def _number_of_references(batch: PairBatch) -> Tensor:
    m, n = batch.shape
    relation = batch.relation.base if isinstance(batch.relation, Mined) else batch.relation
    numbers = torch.full((m,), float(n), dtype=batch.dtype, device=relation.device)
    if isinstance(relation, Labels) and relation.valid is not None:  # the memory is not full yet
        numbers = torch.zeros_like(numbers) + relation.valid.sum()
    return numbers
