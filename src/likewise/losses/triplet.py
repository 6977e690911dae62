"""Triplet losses: triplet, margin and quadruplet losses over all or mined triplets, without enumerating them."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from likewise.formula import (
    Declaration,
    Euclidean,
    PairBatch,
    PerAnchor,
    Regularizer,
    Similarity,
    class_values,
    hyper,
    option,
    per_triplet,
    relu,
    s,
    s_p,
    softplus,
)
from likewise.losses.base import PairLoss
from likewise.losses.quadruplets import sum_all


class TripletLoss(PairLoss):
    r"""Triplet loss over all triplets of the batch, or over those that a miner chooses.

    $$[s_{an}-s_{ap}+\lambda]_+\qquad\text{or, soft,}\qquad\log\bigl(1+e^{s_{an}-s_{ap}+\lambda}\bigr)$$

    mean over the triplets with a nonzero value (``reduction="nonzero"``).  Schroff et al. 2015, Hoffer & Ailon 2015;
    Eq. 7 of the unified view, Eq. 2.17 of the thesis; soft: Hermans et al. 2017.

    All triplets are summed exactly without being enumerated.  If anchors have few positives, each positive is a threshold
    for the anchor's negatives; otherwise sorting each row gives the number of active triplets of every pair, and the loss
    is linear in the similarities with these numbers, $O(B^2\log B)$.  The soft loss takes one pass for each positive, or sums
    Chebyshev polynomials of the similarities.

    The triplets of a deterministic miner (all of `likewise.miners` but `DistanceWeightedMiner` and `RandomMiner`) are
    summed in the same way; pairs that tie at the chosen similarity then share the gradient, while an explicit triplet
    assigns all of it to one of them.

    Args:
        margin: the margin λ.
        soft: replace the hinge by a softplus.

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> TripletLoss()(embeddings, torch.tensor([0, 0, 1]))
        tensor(0.2600)
    """

    margin: float = hyper(default=0.1, help="margin", at_least=-4.0, at_most=4.0, search=(0.0, 1.0), step=0.1)
    soft: bool = option(default=False, kw_only=False, help="softplus instead of the hinge")
    reduction = "nonzero"

    def declare(self) -> Declaration:
        """One hinge (or softplus) per triplet."""
        violation = s - (s_p - self.margin)
        return per_triplet(softplus(violation) if self.soft else relu(violation))


class MarginLoss(PairLoss):
    r"""Margin loss with a learned boundary β between positive and negative distances.

    $$\frac{\sum_{(a,p,n)}[\lambda+d_{ap}-\beta]_+ + [\lambda+\beta-d_{an}]_+}{\text{number of non-zero terms}}+\nu\,\bar\beta$$

    over all triplets, or over those that a miner chooses (`likewise.miners.DistanceWeightedMiner` in the paper); positive
    and negative terms are counted separately.  Wu et al. 2017; Eq. 2.23 of the thesis with
    $I_{ij}=\pm1$.  Distances are Euclidean, between unit vectors.

    Args:
        margin: the margin λ; the thesis uses 0.5.
        beta: the boundary, or its initial value.
        num_classes: one β for each class of the anchor; labels must then be 0 … num_classes − 1.
        learn_beta: make β a parameter.
        nu: weight of the mean β.

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> MarginLoss()(embeddings, torch.tensor([0, 0, 1])).detach()
        tensor(0.8114)
    """

    margin: float = hyper(default=0.2, help="margin", at_least=0.0, search=(0.0, 1.0), step=0.1)
    beta: float | Tensor = hyper(
        default=1.2, help="boundary between positive and negative distances", search=(0.5, 1.5)
    )
    num_classes: int | None = option(default=None, kw_only=False, help="one beta for each class of the anchor")
    learn_beta: bool = option(default=True, kw_only=False, help="make beta a parameter")
    nu: float = hyper(default=0.0, help="weight of the mean beta", at_least=0.0, search=(1e-4, 0.1), log=True)
    similarity = "euclidean"
    reduction = "nonzero"
    similarities: ClassVar[tuple[type[Similarity], ...] | None] = (Euclidean,)
    suggested_lr: ClassVar[float | None] = 5e-5

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.num_classes is not None and (not isinstance(self.num_classes, int) or self.num_classes < 1):
            raise ValueError(
                f"MarginLoss: num_classes must be a whole number ≥ 1 or None, but it is {self.num_classes!r}"
            )
        start = torch.full((self.num_classes or 1,), float(self.beta))
        if self.learn_beta:
            self.beta = nn.Parameter(start)
        else:
            del self.beta
            self.register_buffer("beta", start)

    def _boundary(self, batch: PairBatch) -> Tensor:
        """One β per anchor."""
        assert isinstance(self.beta, Tensor)
        beta = self.beta.to(batch.dtype)
        return beta.expand(batch.shape[0]) if self.num_classes is None else class_values(beta, batch, "beta")

    def declare(self) -> Declaration:
        """Two values per triplet, one for its positive and one for its negative; the distance is −s."""
        beta = PerAnchor("beta", self._boundary)
        pull, push = relu(self.margin - s_p - beta), relu(self.margin + beta + s)
        term = per_triplet(pull, push)
        return term if self.nu == 0.0 else (term, Regularizer(self._mean_boundary))

    def _mean_boundary(self) -> Tensor:
        assert isinstance(self.beta, Tensor)
        return self.nu * self.beta.mean()


class QuadrupletLoss(PairLoss):
    r"""Quadruplet loss: a triplet loss, and positive pairs against negative pairs of other classes.

    $$\mathrm{mean}\,[s_{an}-s_{ap}+\lambda_1]_+ + \mathrm{mean}\,[s_{nk}-s_{ap}+\lambda_2]_+$$

    over all triplets, and over all $(a,p,n,k)$ where $a$, $n$ and $k$ have three different classes; each mean over the
    nonzero terms.  Chen et al. 2017, in similarity form.  All quadruplets are summed exactly: each negative pair is
    located among the sorted positive pairs, $O(B^2\log B)$ instead of $O(B^4)$.

    Args:
        margin1: the margin of the triplets.
        margin2: the margin of the quadruplets, smaller because they are a weaker constraint.

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8], [0.0, 1.0]])
        >>> QuadrupletLoss()(embeddings, torch.tensor([0, 0, 1, 2]))
        tensor(0.3100)
    """

    margin1: float = hyper(
        default=0.1, help="margin of the triplets", at_least=-4.0, at_most=4.0, search=(0.0, 1.0), step=0.1
    )
    margin2: float = hyper(
        default=0.05, help="margin of the quadruplets", at_least=-4.0, at_most=4.0, search=(0.0, 1.0), step=0.1
    )
    reduction = "nonzero"
    takes_references: ClassVar[bool] = False

    def declare(self) -> Declaration:
        """All triplets, and positive pairs against the negative pairs of other anchors."""
        return per_triplet(relu(s - (s_p - self.margin1))), sum_all(self.margin2)

    def only_from_embeddings(self) -> str | None:
        """The loss needs the similarities of a set with itself and the labels of all samples."""
        return "it compares pairs of different anchors and needs the labels of all samples"


class QuadrupletWiseLoss(PairLoss):
    r"""Quadruplet-wise constraints: every positive pair should be more similar than every negative pair of the batch.

    $$\mathrm{mean}\,[s_{kl}-s_{ij}+\delta]_+$$

    over all positive pairs $(i,j)$ and all negative pairs $(k,l)$ of the batch, mean over the nonzero terms.  Law et
    al. 2013 compare any two pairs whose order is known; here labels give the order.  All quadruplets are summed
    exactly, as in `QuadrupletLoss`, $O(B^2\log B)$.

    Args:
        margin: the margin δ.

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> QuadrupletWiseLoss()(embeddings, torch.tensor([0, 0, 1]))
        tensor(0.2600)
    """

    margin: float = hyper(default=0.1, help="margin", at_least=-4.0, at_most=4.0, search=(0.0, 1.0), step=0.1)
    reduction = "nonzero"
    takes_references: ClassVar[bool] = False

    def declare(self) -> Declaration:
        """Positive pairs against all negative pairs."""
        return sum_all(self.margin, disjoint=False)

    def only_from_embeddings(self) -> str | None:
        """The loss needs the similarities of a set with itself and the labels of all samples."""
        return "it compares pairs of different anchors and needs the labels of all samples"
