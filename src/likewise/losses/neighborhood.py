"""Neighborhood losses: an anchor's positives compete with its negatives in one softmax."""

from __future__ import annotations

import math
from typing import ClassVar

from torch import Tensor

from likewise.formula import (
    BOTH,
    NEGATIVES,
    POSITIVES,
    Cosine,
    Declaration,
    PairBatch,
    PerAnchor,
    Similarity,
    check_squared_norms,
    cos,
    hyper,
    logsumexp,
    mean,
    option,
    per_anchor,
    per_pair,
    s,
    sin,
    softplus,
    sqrt,
    stop_gradient,
)
from likewise.losses.base import PairLoss


class NPairsLoss(PairLoss):
    r"""N-pairs loss: all negatives and all positives of an anchor in one logarithm.

    $$\log\Bigl(1+\sum_{j\in P_i}\sum_{k\in N_i}e^{s_{ik}-s_{ij}}\Bigr) + \ell_2\,\lVert x_i\rVert^2$$

    per anchor; the first term over anchors that have both. Sohn 2016; Eq. 2.22 of the thesis. The double sum is
    computed as a product of two sums.

    With one pair of samples per class, as in Sohn's Eq. 6, pass the first samples as embeddings and the second ones as
    references with ``relation="paired"``: an anchor has one positive, and the positives of the other classes are its
    negatives.

    Args:
        l2: weight of the mean squared norm of the embeddings; the thesis uses 0.02.
        scale: multiplies the similarities.

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> NPairsLoss()(embeddings, torch.tensor([0, 0, 1]))
        tensor(0.6872)
        >>> NPairsLoss()(torch.eye(2), references=embeddings[:2], relation="paired")
        tensor(0.5178)
    """

    l2: float = hyper(default=0.0, help="weight of the mean squared norm", at_least=0.0, search=(1e-4, 0.1), log=True)
    scale: float = hyper(default=1.0, help="multiplies the similarities", above=0.0, search=(1.0, 100.0), log=True)
    similarity = "dot"

    def declare(self) -> Declaration:
        """``log(1 + e^(LSE_N + LSE_P))``, and one unit per anchor for the norm."""
        contrast = logsumexp(self.scale * s, NEGATIVES) + logsumexp(-self.scale * s, POSITIVES)
        main = per_anchor(softplus(contrast))
        if self.l2 == 0.0:
            return main
        return main, per_anchor(self.l2 * PerAnchor("‖x‖²", _squared_norm), needs=())

    def only_from_embeddings(self) -> str | None:
        """Return a reason if ``l2`` is not zero: norms are not contained in similarities."""
        return "its l2 term is a function of the embeddings' norms" if self.l2 > 0.0 else None


def _squared_norm(batch: PairBatch) -> Tensor:
    assert batch.anchors is not None
    check_squared_norms("embeddings", batch.anchors)
    return batch.anchors.square().sum(dim=1)


class TupletMarginLoss(PairLoss):
    r"""Tuplet margin loss: every positive, with an angular margin, against all negatives.

    $$\log\Bigl(1+\sum_{k\in N_i}e^{\sigma(\cos\theta_{ik}-\cos(\theta_{ij}-m))}\Bigr)$$

    per positive pair whose anchor has a negative.  Yu & Tao 2019.  $\cos(\theta-m)$ is expanded, so that no
    arc cosine is differentiated and the gradient at $s=1$ is finite.

    Args:
        margin: the margin m in degrees.
        scale: the scale σ.

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> TupletMarginLoss()(embeddings, torch.tensor([0, 0, 1]))
        tensor(3.3316)
    """

    margin: float = hyper(default=5.73, help="margin in degrees", at_least=0.0, below=90.0, search=(0.0, 20.0))
    scale: float = hyper(default=64.0, help="scale", above=0.0, search=(8.0, 128.0), log=True)
    similarities: ClassVar[tuple[type[Similarity], ...] | None] = (Cosine,)

    def declare(self) -> Declaration:
        """One log-sum-exp over the negatives, compared with every positive."""
        margin = self.margin * (math.pi / 180.0)
        shifted = cos(margin) * s + sin(margin) * sqrt((1.0 - s) * (1.0 + s))
        negatives = logsumexp(self.scale * s, NEGATIVES)
        return per_pair(POSITIVES, softplus(negatives - self.scale * shifted), needs=(NEGATIVES,))


class NTXentLoss(PairLoss):
    r"""NT-Xent (InfoNCE): every positive pair against the negatives of its anchor.

    $$-\log\frac{e^{s_{ij}/\tau}}{e^{s_{ij}/\tau}+\sum_{k\in N_i}e^{s_{ik}/\tau}}$$

    per positive pair whose anchor has a negative.  Sohn 2016, van den Oord et al. 2018, Chen et al. 2020 (Eq. 1, where a
    positive pair is two views of an image).

    Args:
        temperature: the temperature τ.
        learn_temperature: make τ a parameter, starting from ``temperature``.

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> NTXentLoss()(embeddings, torch.tensor([0, 0, 1]))
        tensor(1.2192)
    """

    temperature: float = hyper(
        default=0.07, help="temperature", above=0.0, search=(0.01, 1.0), log=True, learn="learn_temperature"
    )
    learn_temperature: bool = option(default=False, kw_only=True, help="make the temperature a parameter")

    def declare(self) -> Declaration:
        """``−log(e^p / (e^p + Σ e^n))`` is ``softplus(LSE_N − p)``."""
        logit = s / self.temperature
        return per_pair(POSITIVES, softplus(logsumexp(logit, NEGATIVES) - logit), needs=(NEGATIVES,))


class SupConLoss(PairLoss):
    r"""Supervised contrastive loss: the mean log-probability of an anchor's positives among all others.

    $$\frac{1}{|P_i|}\sum_{j\in P_i}-\log\frac{e^{s_{ij}/\tau}}{\sum_{k\ne i}e^{s_{ik}/\tau}}$$

    per anchor that has a positive and a negative.  Khosla et al. 2020, Eq. 2 ("out").  A positive is also in the
    denominators of the other positives, so its weight can be negative.

    Args:
        temperature: the temperature τ.
        learn_temperature: make τ a parameter, starting from ``temperature``.

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> SupConLoss()(embeddings, torch.tensor([0, 0, 1]))
        tensor(0.9554)
    """

    temperature: float = hyper(
        default=0.1, help="temperature", above=0.0, search=(0.01, 1.0), log=True, learn="learn_temperature"
    )
    learn_temperature: bool = option(default=False, kw_only=True, help="make the temperature a parameter")

    def declare(self) -> Declaration:
        """One log-sum-exp over all references, minus the mean logit of the positives."""
        logit = s / self.temperature
        return per_anchor(logsumexp(logit, BOTH) - mean(logit, POSITIVES))


class NCALoss(PairLoss):
    r"""Neighborhood components analysis: the probability that a random neighbor is a positive.

    $$-\log\frac{\sum_{j\in P_i}e^{\sigma s_{ij}}}{\sum_{k\ne i}e^{\sigma s_{ik}}}$$

    per anchor that has a positive and a negative, by default with $s=-\lVert x_i-x_j\rVert^2$.  Goldberger et al. 2005;
    Eq. 14 and 15 of the overview (both misprinted there: exponentials and $j\in C_i$ are missing).

    Args:
        scale: the scale σ.

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> NCALoss()(embeddings, torch.tensor([0, 0, 1]))
        tensor(0.6895)
    """

    scale: float = hyper(default=1.0, help="scale", above=0.0, search=(1.0, 64.0), log=True)
    similarity = "squared_euclidean"

    def declare(self) -> Declaration:
        """``−log(P / (P + N))`` is ``softplus(log N − log P)``, which stays exact where the loss is small."""
        logit = self.scale * s
        return per_anchor(softplus(logsumexp(logit, NEGATIVES) - logsumexp(logit, POSITIVES)))


class HardnessWeightedNTXentLoss(PairLoss):
    r"""NT-Xent in which each negative is weighted by its hardness.

    $$-\log\frac{e^{s_{ij}/\tau}}{e^{s_{ij}/\tau}+\sum_{k\in N_i}e^{\alpha\,\mathrm{sg}(s_{ik})}\,e^{s_{ik}/\tau}}$$

    per positive pair; sg stops the gradient, so a negative is pushed as by `NTXentLoss` on a batch that contains it
    $e^{\alpha s_{ik}}$ times.  Lan et al. 2025 (LLaVE).

    Args:
        temperature: the temperature τ.
        hardness: the strength α; zero is `NTXentLoss`.

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> HardnessWeightedNTXentLoss()(embeddings, torch.tensor([0, 0, 1]))
        tensor(6.7721)
    """

    temperature: float = hyper(default=0.07, help="temperature", above=0.0, search=(0.01, 1.0), log=True)
    hardness: float = hyper(default=9.0, help="strength of the weights", at_least=0.0, search=(0.0, 10.0))

    def declare(self) -> Declaration:
        """The logarithm of a weight is added to the logit of each negative."""
        logit = s / self.temperature
        negatives = logsumexp(logit + self.hardness * stop_gradient(s), NEGATIVES)
        return per_pair(POSITIVES, softplus(negatives - logit), needs=(NEGATIVES,))


class InstanceLoss(PairLoss):
    r"""Instance loss: every sample is its own class, and the samples of the batch are the class vectors.

    $$-\log\frac{e^{\gamma s_{ii}}}{\sum_j e^{\gamma s_{ij}}}$$

    per anchor, over all samples including itself, where $s_{ii}=1$.  Zheng et al. 2020.  Labels are ignored.

    Args:
        gamma: the scale γ.

    Examples:
        >>> import torch
        >>> InstanceLoss(gamma=1.0)(torch.eye(2))
        tensor(0.3133)
    """

    gamma: float = hyper(default=64.0, help="scale", above=0.0, search=(1.0, 128.0), log=True)
    takes_labels: ClassVar[bool] = False
    takes_references: ClassVar[bool] = False
    similarities: ClassVar[tuple[type[Similarity], ...] | None] = (Cosine,)

    def declare(self) -> Declaration:
        """Return the cross entropy of an anchor's similarities with a positive of similarity one."""
        return per_anchor(softplus(logsumexp(self.gamma * s, BOTH) - self.gamma), needs=())
