"""Regularizers of embeddings, as losses without labels: they spread the embeddings, or keep them small or centered."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import torch
from torch import Tensor, nn

from likewise.distributed import current_group
from likewise.formula import (
    BOTH,
    Cosine,
    Declaration,
    Euclidean,
    PairBatch,
    PerAnchor,
    RelationLike,
    Similarity,
    check_squared_norms,
    embeddings_of,
    exactly,
    full_precision,
    hyper,
    largest,
    log,
    mean_over_batch,
    per_anchor,
    relu,
    s,
    square,
    unit,
)
from likewise.losses.base import PairLoss, finite_number


class KoLeoLoss(PairLoss):
    r"""KoLeo: the Kozachenko-Leonenko estimate of the entropy, which spreads embeddings evenly.

    $$-\log\bigl(\min_{j\ne i}\lVert e_i-e_j\rVert+\varepsilon\bigr)$$

    per anchor, on unit vectors; the batch must have at least two samples.  Sablayrolles et al. 2019.  Labels are
    ignored.

    Args:
        eps: the constant ε, which keeps the loss of equal embeddings finite.

    Examples:
        >>> import torch
        >>> KoLeoLoss()(torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]]))
        tensor(0.9946)
    """

    eps: float = hyper(default=1e-8, help="added to the distance", above=0.0, search=(1e-8, 1e-2), log=True)
    similarity = "euclidean"
    takes_labels: ClassVar[bool] = False
    takes_references: ClassVar[bool] = False
    similarities: ClassVar[tuple[type[Similarity], ...] | None] = (Euclidean,)

    def declare(self) -> Declaration:
        """The distance is −s, and the nearest sample has the largest s."""
        return per_anchor(-log(self.eps - largest(s, BOTH)), needs=(BOTH,))


class GlobalOrthogonalRegularizationLoss(PairLoss):
    r"""Global orthogonality: cosines like those of points drawn uniformly from the sphere.

    $$w_1\,\bigl(\mathrm{mean}_{i\ne j}\,s_{ij}\bigr)^2+w_2\,\bigl[\mathrm{mean}_{i\ne j}\,s_{ij}^2-\tfrac1D\bigr]_+$$

    with D the dimension of the embeddings.  Zhang et al. 2017, on all pairs of the batch; labels are ignored.  The
    value is one number for the batch, which every anchor's unit has.

    Args:
        mean_weight: the weight w₁ of the first moment.
        second_moment_weight: the weight w₂ of the second moment.

    Examples:
        >>> import torch
        >>> GlobalOrthogonalRegularizationLoss()(torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]]))
        tensor(0.7594)
    """

    mean_weight: float = hyper(default=1.0, help="weight of the mean", at_least=0.0, search=(0.0, 10.0))
    second_moment_weight: float = hyper(
        default=1.0, help="weight of the second moment", at_least=0.0, search=(0.0, 10.0)
    )
    takes_labels: ClassVar[bool] = False
    takes_references: ClassVar[bool] = False
    similarities: ClassVar[tuple[type[Similarity], ...] | None] = (Cosine,)

    def declare(self) -> Declaration:
        """Two statistics of the batch."""
        of_uniform = PerAnchor("1/D", _inverse_dimension)
        first, second = mean_over_batch(s, BOTH), mean_over_batch(square(s), BOTH)
        value = self.mean_weight * square(first) + self.second_moment_weight * relu(second - of_uniform)
        return per_anchor(value, needs=())

    def only_from_embeddings(self) -> str | None:
        """Return the reason: the similarities do not contain the dimension."""
        return "it needs the dimension of the embeddings"


def _inverse_dimension(batch: PairBatch) -> Tensor:
    assert batch.anchors is not None
    return torch.full(
        (len(batch.anchors),), 1.0 / batch.anchors.shape[1], dtype=batch.dtype, device=batch.anchors.device
    )


class EmbeddingLoss(nn.Module, ABC):
    """A loss on embeddings only; the other arguments of losses are ignored, so that losses can be combined."""

    @abstractmethod
    def of_samples(self, samples: Tensor) -> Tensor:
        """The loss of checked embeddings, in float32 at least."""

    def forward(
        self,
        embeddings: Tensor,
        labels: Tensor | None = None,
        references: Tensor | None = None,
        reference_labels: Tensor | None = None,
        *,
        relation: RelationLike | None = None,
    ) -> Tensor:
        """Compute the loss of a batch; only ``embeddings``, ``(n, d)``, are used."""
        with full_precision(embeddings):
            return self.of_samples(embeddings_of("embeddings", embeddings))


def mean_over_samples(values: Tensor) -> Tensor:
    """The mean of one number per sample, over the samples of all ranks."""
    total, number = current_group().totals([values.sum(), torch.ones_like(values).sum()])
    return total / number


class EmbeddingNorm(EmbeddingLoss):
    """The mean length of the embeddings, ``mean ‖x‖``: keeps raw embeddings from growing.

    Examples:
        >>> import torch
        >>> EmbeddingNorm()(torch.tensor([[3.0, 4.0]]))
        tensor(5.)
    """

    def of_samples(self, samples: Tensor) -> Tensor:
        """``mean ‖x‖``."""
        check_squared_norms("embeddings", samples)
        # torch's norm gives a vector of zeros a zero gradient
        return mean_over_samples(torch.linalg.vector_norm(samples, dim=1))


class ZeroMean(EmbeddingLoss):
    """The mean of ``|Σₖ xₖ|`` over embeddings: keeps each embedding's entries around zero.  Yuan et al. 2019.

    Examples:
        >>> import torch
        >>> ZeroMean()(torch.tensor([[3.0, -4.0]]))
        tensor(1.)
    """

    def of_samples(self, samples: Tensor) -> Tensor:
        """``mean |Σ x|``."""
        return mean_over_samples(samples.sum(dim=1).abs())


class AntiCollapseLoss(EmbeddingLoss):
    r"""Anti-collapse: minus the coding rate of the embeddings, which is highest where they fill all dimensions.

    $$-\tfrac12\log\det\Bigl(I+\frac{D}{n\,\varepsilon^2}\,E^\top E\Bigr)$$

    with E the n embeddings of dimension D as rows, of unit length.  Jiang et al. 2024; the formula is taken from citing
    works and was not compared with the paper.  Add it to another loss with `WeightedSum`, or call it on the proxies of
    a loss: ``AntiCollapseLoss()(head.proxies)``.  Labels are ignored.

    Args:
        epsilon: the precision ε of the code.

    Examples:
        >>> import torch
        >>> AntiCollapseLoss(epsilon=1.0)(torch.eye(2)), AntiCollapseLoss(epsilon=1.0)(torch.ones(2, 2))
        (tensor(-0.6931), tensor(-0.5493))
    """

    def __init__(self, epsilon: float = 0.5) -> None:
        super().__init__()
        self.epsilon = finite_number("epsilon", epsilon, None)
        if not self.epsilon > 0.0:
            raise ValueError(f"epsilon must be a number > 0, but it is {epsilon!r}")

    def of_samples(self, samples: Tensor) -> Tensor:
        """Minus the coding rate."""
        rows, group = unit(samples), current_group()
        dim = rows.shape[1]
        gram, number = group.total(exactly(rows.T @ rows)), group.total(torch.ones_like(rows[:, 0]).sum())
        code = torch.eye(dim, dtype=rows.dtype, device=rows.device) + gram * (dim / self.epsilon**2) / number
        # the matrix is positive definite with eigenvalues of one at least
        value: Tensor = -exactly(torch.linalg.cholesky(code)).diagonal().log().sum()
        return value

    def extra_repr(self) -> str:
        """The arguments."""
        return f"epsilon={self.epsilon}"
