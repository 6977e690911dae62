"""Losses on two views without negatives: VICReg."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from likewise.distributed import current_group
from likewise.formula import RelationLike, check_squared_norms, embeddings_of, full_precision, same_device
from likewise.losses.base import finite_number


class VICRegLoss(nn.Module):
    r"""VICReg: two views agree (invariance), each dimension varies (variance), and dimensions differ (covariance).

    $$\lambda\,\mathrm{mean}\,(z-z')^2
      +\frac\mu2\sum_{v\in\{z,z'\}}\mathrm{mean}_d\Bigl[1-\sqrt{\mathrm{var}_d(v)+\varepsilon}\Bigr]_+
      +\frac\nu D\sum_{v\in\{z,z'\}}\sum_{k\ne l}\mathrm{cov}(v)_{kl}^2$$

    on raw embeddings; row k of both views is one sample, and variance and covariance are unbiased (zero for one sample).
    Bardes et al. 2022.  Labels are ignored.

    Args:
        invariance_lambda: the weight λ.
        variance_mu: the weight μ.
        covariance_v: the weight ν.
        eps: the constant ε under the root.

    Examples:
        >>> import torch
        >>> z = torch.tensor([[1.0, 0.0], [-1.0, 2.0]])
        >>> VICRegLoss()(z, references=z)
        tensor(8.)
    """

    def __init__(
        self,
        invariance_lambda: float = 25.0,
        variance_mu: float = 25.0,
        covariance_v: float = 1.0,
        eps: float = 1e-4,
    ) -> None:
        super().__init__()
        self.invariance_lambda = finite_number("invariance_lambda", invariance_lambda)
        self.variance_mu = finite_number("variance_mu", variance_mu)
        self.covariance_v = finite_number("covariance_v", covariance_v)
        self.eps = finite_number("eps", eps)
        if not self.eps > 0.0:
            raise ValueError(f"eps must be a number > 0, but it is {eps!r}")

    def forward(
        self,
        embeddings: Tensor,
        labels: Tensor | None = None,
        references: Tensor | None = None,
        reference_labels: Tensor | None = None,
        *,
        relation: RelationLike | None = None,
    ) -> Tensor:
        """Compute the loss of two views.

        Args:
            embeddings: the first view, ``(n, d)``.
            labels: ignored, as are ``reference_labels`` and ``relation``.
            references: the second view, ``(n, d)``.
            reference_labels: see ``labels``.
            relation: see ``labels``.
        """
        with full_precision(embeddings):
            first = embeddings_of("embeddings", embeddings)
            if references is None:
                raise TypeError("references must be given, the second view of the embeddings, but it is None")
            second = embeddings_of("references", references)
            if second.shape != first.shape:
                raise ValueError(
                    f"references must have the shape of embeddings, {tuple(first.shape)}, but the shape is {tuple(second.shape)}"
                )
            same_device("references", second, first.device, "embeddings")
            check_squared_norms("embeddings", first)
            check_squared_norms("references", second)
            group = current_group()
            rows = group.rows(first)
            first, second = group.gather(first, rows), group.gather(second, rows)
            invariance = self.invariance_lambda * (first - second).square().mean()
            return invariance + self._spread(first) + self._spread(second)

    def _spread(self, view: Tensor) -> Tensor:
        """The variance and the covariance term of one view."""
        number, dim = view.shape
        centered = view - view.mean(dim=0)
        covariance = centered.T @ centered / max(number - 1, 1)
        variances = covariance.diagonal()
        variance = torch.relu(1.0 - (variances + self.eps).sqrt()).mean()
        others = covariance - torch.diag(variances)
        return self.variance_mu / 2.0 * variance + self.covariance_v / dim * others.square().sum()

    def extra_repr(self) -> str:
        """The arguments."""
        return (
            f"invariance_lambda={self.invariance_lambda}, variance_mu={self.variance_mu}, "
            f"covariance_v={self.covariance_v}, eps={self.eps}"
        )
