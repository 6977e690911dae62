"""Pair losses: hinges of pairs against margins, or log-sum-exps over an anchor's pairs."""

from __future__ import annotations

from typing import Any, ClassVar

from torch import Tensor

from likewise.formula import (
    NEGATIVES,
    POSITIVES,
    SNR,
    Declaration,
    PairBatch,
    PerAnchor,
    Similarity,
    Term,
    as_similarity,
    hyper,
    logsumexp,
    mean,
    mean_over_batch,
    per_anchor,
    per_pair,
    relu,
    s,
    softplus,
    square,
    stop_gradient,
    unit,
)
from likewise.losses.base import PairLoss
from likewise.miners import ValidTripletMiner


class ContrastiveLoss(PairLoss):
    r"""Contrastive loss: pull positives above one margin, push negatives below another.

    $$\frac{1}{|\mathcal P|}\sum_{(i,j)\in\mathcal P}[m_+ - s_{ij}]_+
      + \frac{1}{|\mathcal N|}\sum_{(i,k)\in\mathcal N}[s_{ik} - m_-]_+$$

    each mean over the pairs with a nonzero value (``reduction="nonzero"``). Hadsell et al. 2006; Eq. 5 of the unified
    view, Eq. 2.15 of the thesis (both drop the constant $m_+$).  With a distance the margins are distances:
    ``ContrastiveLoss(similarity="euclidean")`` is $[d_{ij}]_+$ for positives and $[1-d_{ik}]_+$ for negatives.

    Args:
        positive_margin: positives above this similarity, or within this distance, cost nothing; by default 1.0, or 0.0
            for a distance.
        negative_margin: negatives below this similarity, or beyond this distance, cost nothing; by default 0.5, or 1.0
            for a distance.

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> ContrastiveLoss()(embeddings, torch.tensor([0, 0, 1]))
        tensor(0.4800)
    """

    positive_margin: float | None = hyper(
        default=None, help="positives above this similarity cost nothing", search=(0.0, 1.0), step=0.1
    )
    negative_margin: float | None = hyper(
        default=None, help="negatives below this similarity cost nothing", search=(0.0, 1.0), step=0.1
    )
    reduction = "nonzero"

    def __post_init__(self) -> None:
        positive, negative = (0.0, 1.0) if as_similarity(self.similarity).is_distance else (1.0, 0.5)
        self.positive_margin = positive if self.positive_margin is None else self.positive_margin
        self.negative_margin = negative if self.negative_margin is None else self.negative_margin
        super().__post_init__()

    def __setattr__(self, name: str, value: Any) -> None:
        """Reject another kind of similarity after construction, because the margins are in the units of the first."""
        before = vars(self).get("similarity") if name == "similarity" else None
        if before is not None and as_similarity(before).is_distance != as_similarity(value).is_distance:
            raise ValueError(
                f"similarity must be given to the constructor of {type(self).__name__}, because margins of a distance are "
                f"distances, but {before!r} was replaced by {value!r}"
            )
        super().__setattr__(name, value)

    def declare(self) -> Declaration:
        """Two averages, one over positive and one over negative pairs."""
        assert self.positive_margin is not None
        assert self.negative_margin is not None
        threshold = as_similarity(self.similarity).threshold
        return (
            per_pair(POSITIVES, relu(threshold(self.positive_margin) - s)),
            per_pair(NEGATIVES, relu(s - threshold(self.negative_margin))),
        )


class SNRContrastiveLoss(PairLoss):
    r"""Contrastive loss on the signal-to-noise distance $d = \mathrm{var}(b - a)/\mathrm{var}(a)$, $a$ the anchor.

    $$\mathrm{mean}_{\mathcal P}[d - m_+]_+ + \mathrm{mean}_{\mathcal N}[m_- - d]_+
      + \lambda\,\mathrm{mean}_i\Bigl|\sum_k e_{ik}\Bigr|$$

    each mean over the pairs with a nonzero value. Yuan et al. 2019; the last term keeps the mean of the entries of
    embeddings $e$ (of unit length) near zero.

    Args:
        positive_margin: a distance; positives below it cost nothing.
        negative_margin: a distance; negatives above it cost nothing.
        regularizer: the weight λ of the zero-mean term.

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> SNRContrastiveLoss()(embeddings, torch.tensor([0, 0, 1]))
        tensor(8.3200)
    """

    positive_margin: float = hyper(
        default=0.0, help="positives below this distance cost nothing", at_least=0.0, search=(0.0, 0.5)
    )
    negative_margin: float = hyper(
        default=1.0, help="negatives above this distance cost nothing", at_least=0.0, search=(0.1, 2.0)
    )
    regularizer: float = hyper(
        default=0.0, help="weight of the zero-mean term", at_least=0.0, search=(1e-3, 1.0), log=True
    )
    similarity = "snr"
    reduction = "nonzero"

    similarities: ClassVar[tuple[type[Similarity], ...] | None] = (SNR,)

    def declare(self) -> Declaration:
        """Contrastive loss with a distance of ``−s``, and one unit per anchor for the zero-mean term."""
        pairs = (
            per_pair(POSITIVES, relu(-s - self.positive_margin)),
            per_pair(NEGATIVES, relu(self.negative_margin + s)),
        )
        if self.regularizer == 0.0:
            return pairs
        return (*pairs, per_anchor(self.regularizer * PerAnchor("|Σe|", _absolute_sum), needs=()))

    def only_from_embeddings(self) -> str | None:
        """The zero-mean term is a function of the embeddings."""
        return "its regularizer is a function of the embeddings" if self.regularizer > 0.0 else None


def _absolute_sum(batch: PairBatch) -> Tensor:
    assert batch.anchors is not None
    return unit(batch.anchors).sum(dim=1).abs()


class IntraPairVarianceLoss(PairLoss):
    r"""Intra-pair variance: penalizes positive (negative) pairs far below (above) the batch mean.

    $$\mathrm{mean}_{\mathcal P}[(1-\varepsilon_+)\bar s_+ - s]_+^2 + \mathrm{mean}_{\mathcal N}[s-(1+\varepsilon_-)\bar s_-]_+^2$$

    with $\bar s_\pm$ the mean similarity of the batch's positive and negative pairs.  Yu & Tao 2019, the
    companion of `TupletMarginLoss`.

    Args:
        positive_epsilon: slack of positives, as a fraction of their mean.
        negative_epsilon: slack of negatives, as a fraction of their mean.

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> IntraPairVarianceLoss()(embeddings, torch.tensor([0, 0, 1]))
        tensor(0.0148)
    """

    positive_epsilon: float = hyper(default=0.01, help="slack of positives", at_least=0.0, search=(1e-3, 0.2), log=True)
    negative_epsilon: float = hyper(default=0.01, help="slack of negatives", at_least=0.0, search=(1e-3, 0.2), log=True)

    def declare(self) -> Declaration:
        """Two averages; the means over the batch take one more pass than the contrastive loss."""
        positive_mean, negative_mean = mean_over_batch(s, POSITIVES), mean_over_batch(s, NEGATIVES)
        return (
            per_pair(POSITIVES, square(relu((1.0 - self.positive_epsilon) * positive_mean - s))),
            per_pair(NEGATIVES, square(relu(s - (1.0 + self.negative_epsilon) * negative_mean))),
        )


class BinomialDevianceLoss(PairLoss):
    r"""Binomial deviance: a soft contrastive loss.

    $$\frac{1}{|P_i|}\sum_{j\in P_i}\log\bigl(1+e^{\alpha(\gamma-s_{ij})}\bigr)
      +\frac{1}{|N_i|}\sum_{k\in N_i}\log\bigl(1+e^{\beta(s_{ik}-\gamma)}\bigr)$$

    per anchor, mean over anchors that have both.  Yi et al. 2014; Eq. 12 of the unified view.

    Args:
        alpha: steepness on positives.
        beta: steepness on negatives.
        base: the threshold γ between positive and negative similarities.

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> BinomialDevianceLoss()(embeddings, torch.tensor([0, 0, 1]))
        tensor(14.4408)
    """

    alpha: float = hyper(default=2.0, help="steepness on positives", above=0.0, search=(0.1, 100.0), log=True)
    beta: float = hyper(default=50.0, help="steepness on negatives", above=0.0, search=(1.0, 100.0), log=True)
    base: float = hyper(default=0.5, help="threshold between positives and negatives", search=(0.0, 1.0), step=0.1)

    def declare(self) -> Declaration:
        """Two means of a softplus."""
        positives = mean(softplus(self.alpha * (self.base - s)), POSITIVES)
        negatives = mean(softplus(self.beta * (s - self.base)), NEGATIVES)
        return per_anchor(positives + negatives)


def _multi_similarity(alpha: float, beta: float, base: float) -> Term:
    positives = logsumexp(-alpha * (s - base), POSITIVES)
    negatives = logsumexp(beta * (s - base), NEGATIVES)
    # a side without pairs is log(1 + 0) = 0, so every anchor has a value and counts
    return per_anchor(softplus(positives) / alpha + softplus(negatives) / beta, needs=())


class MultiSimilarityLoss(PairLoss):
    r"""Multi-similarity loss: each pair is weighted by its similarity and by those of the anchor's other pairs.

    $$\frac1\alpha\log\Bigl[1+\sum_{k\in P_i}e^{-\alpha(s_{ik}-\lambda)}\Bigr]
      +\frac1\beta\log\Bigl[1+\sum_{k\in N_i}e^{\beta(s_{ik}-\lambda)}\Bigr]$$

    per anchor, mean over all anchors of the batch; an anchor without positives or without negatives keeps the other
    term.  Wang et al. 2019; Eq. 2.24 of the thesis.

    Args:
        alpha: steepness on positives.
        beta: steepness on negatives.
        base: the threshold λ.

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> MultiSimilarityLoss()(embeddings, torch.tensor([0, 0, 1]))
        tensor(0.4859)
    """

    alpha: float = hyper(default=2.0, help="steepness on positives", above=0.0, search=(0.1, 100.0), log=True, step=2.0)
    beta: float = hyper(default=50.0, help="steepness on negatives", above=0.0, search=(1.0, 100.0), log=True, step=2.0)
    base: float = hyper(default=0.5, help="threshold between positives and negatives", search=(0.0, 1.0), step=0.1)

    def declare(self) -> Declaration:
        """A softplus of a log-sum-exp on either side."""
        return _multi_similarity(self.alpha, self.beta, self.base)


class RAWLoss(PairLoss):
    r"""Relative and absolute weighting (RAW) of the pairs that valid-triplet hard mining keeps.

    `MultiSimilarityLoss` on the pairs $\tilde P_i, \tilde N_i$ of `likewise.miners.ValidTripletMiner`: Eq. 17 of the
    unified view, whose weights are its Eq. 15 and 16.  Another ``miner`` replaces this mining (RAW + semi-hard,
    RAW + distance-weighted), and ``margin`` is then unused.

    Args:
        alpha: steepness on positives.
        beta: steepness on negatives.
        base: the threshold γ.
        margin: the margin λ of the mining.

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> RAWLoss()(embeddings, torch.tensor([0, 0, 1]))
        tensor(0.2262)
    """

    alpha: float = hyper(default=2.0, help="steepness on positives", above=0.0, search=(0.1, 100.0), log=True, step=2.0)
    beta: float = hyper(default=50.0, help="steepness on negatives", above=0.0, search=(1.0, 100.0), log=True, step=2.0)
    base: float = hyper(default=0.5, help="threshold between positives and negatives", search=(0.0, 1.0), step=0.1)
    margin: float = hyper(default=0.1, help="margin of the mining", at_least=0.0, search=(0.0, 1.0), step=0.1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.miner is None:
            self.miner = ValidTripletMiner(self.margin)

    def declare(self) -> Declaration:
        """The same formula as multi-similarity; only the mining differs."""
        return _multi_similarity(self.alpha, self.beta, self.base)


class CircleLoss(PairLoss):
    r"""Circle loss: each similarity is weighted by its distance to its optimum.

    $$\mathrm{softplus}\Bigl(\log\sum_{j\in P_i}e^{-\gamma\,[1+m-s_{ij}]_+(s_{ij}-1+m)}
      +\log\sum_{k\in N_i}e^{\gamma\,[s_{ik}+m]_+(s_{ik}-m)}\Bigr)$$

    per anchor; the bracketed weights take no gradient.  Sun et al. 2020.

    Args:
        margin: the relaxation m.
        gamma: the scale γ.

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> CircleLoss()(embeddings, torch.tensor([0, 0, 1]))
        tensor(28.8648)
    """

    margin: float = hyper(default=0.4, help="relaxation", search=(0.0, 0.6))
    gamma: float = hyper(default=80.0, help="scale", above=0.0, search=(8.0, 512.0), log=True)

    def declare(self) -> Declaration:
        """The weights have no gradient: the gradient in training is not the derivative of the value."""
        m, gamma = self.margin, self.gamma
        positives = logsumexp(-gamma * stop_gradient(relu(1.0 + m - s)) * (s - (1.0 - m)), POSITIVES)
        negatives = logsumexp(gamma * stop_gradient(relu(s + m)) * (s - m), NEGATIVES)
        return per_anchor(softplus(positives + negatives))


class GeneralizedLiftedStructureLoss(PairLoss):
    r"""Generalized lifted structure: all positives and all negatives of an anchor, in one hinge.

    $$\Bigl[\log\sum_{j\in P_i}e^{\lambda-s_{ij}}+\log\sum_{k\in N_i}e^{s_{ik}}\Bigr]_+$$

    per anchor.  Hermans et al. 2017; Eq. 2.21 of the thesis without $k=i$ (Eq. 9 of the unified view has a wrong sign).
    Training collapses on unscaled cosines, whose range is small; ``scale`` multiplies every $s$.

    Args:
        margin: the margin λ.
        scale: multiplies the similarities.

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> GeneralizedLiftedStructureLoss()(embeddings, torch.tensor([0, 0, 1]))
        tensor(0.4800)
    """

    margin: float = hyper(default=0.5, help="margin", search=(0.0, 1.0), step=0.1)
    scale: float = hyper(default=1.0, help="multiplies the similarities", above=0.0, search=(1.0, 100.0), log=True)

    def declare(self) -> Declaration:
        """The two log-sum-exps share the hinge."""
        positives = logsumexp(self.margin - self.scale * s, POSITIVES)
        negatives = logsumexp(self.scale * s, NEGATIVES)
        return per_anchor(relu(positives + negatives))


__all__ = [
    "BinomialDevianceLoss",
    "CircleLoss",
    "ContrastiveLoss",
    "GeneralizedLiftedStructureLoss",
    "IntraPairVarianceLoss",
    "MultiSimilarityLoss",
    "RAWLoss",
    "SNRContrastiveLoss",
]
