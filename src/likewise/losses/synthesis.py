"""Proxy Synthesis: synthetic classes between the classes of a batch."""

from __future__ import annotations

import copy
import math
from typing import Any

import torch
from torch import Tensor, nn

from likewise.distributed import current_group, extended_batch
from likewise.formula import RelationLike, full_precision, unit
from likewise.losses.base import collect_groups, finite_number
from likewise.losses.proxy_base import ProxyLoss


class ProxySynthesis(nn.Module):
    r"""Proxy Synthesis: a proxy loss on a batch and on synthetic classes, each a mixture of two neighboring rows.

    $$\tilde e_i=\lambda e_i+(1-\lambda)e_{i-1},\qquad\tilde p_i=\lambda p_{y_i}+(1-\lambda)p_{y_{i-1}},\qquad
      \lambda\sim\mathrm{Beta}(\alpha,\alpha)$$

    with unit vectors e and p; the last row precedes the first.  The first $\lfloor\mu n\rfloor$ synthetic samples, each
    of a new class, and their synthetic proxies are appended to the batch and to the proxies, all renormalized.  Gu et
    al. 2021. Neighboring rows should differ in class.  In a distributed batch the rows are those of all ranks, in their
    order.

    Args:
        loss: a loss with one proxy for each class; kept as ``.loss``.
        alpha: the parameter α of the Beta distribution.
        mu: the number of synthetic samples μ, as a fraction of the batch.

    Examples:
        >>> import torch
        >>> from likewise.losses import NormalizedSoftmaxLoss
        >>> loss = ProxySynthesis(NormalizedSoftmaxLoss(num_classes=3, embedding_dim=4))
        >>> loss(torch.zeros(2, 4), torch.tensor([0, 2])).detach()  # a softmax over 3 + 2 classes
        tensor(1.6094)
    """

    def __init__(self, loss: ProxyLoss, alpha: float = 0.4, mu: float = 1.0) -> None:
        super().__init__()
        if not isinstance(loss, ProxyLoss) or loss.proxies_per_class != 1:
            what = "has several" if isinstance(loss, ProxyLoss) else f"is a {type(loss).__name__}"
            raise TypeError(f"loss must be a loss with one proxy for each class, but it {what}")
        state = [*loss.named_parameters(), *loss.named_buffers()]
        of_classes = [name for name, each in state if name != "proxies" and each.ndim]
        if of_classes or loss.sampled is not None or loss.shard is not None:
            option = of_classes[0] if of_classes else "sampled" if loss.sampled is not None else "shards"
            raise ValueError(
                f"loss must compare with all proxies and have no other value per class, but it has {option}"
            )
        if loss.label_kind != "classes":
            raise TypeError(
                f"loss must be a loss on classes, because synthetic classes have no place in a hierarchy, but it is a "
                f"{type(loss).__name__}"
            )
        self.loss = loss
        self.alpha, self.mu = finite_number("alpha", alpha, None), finite_number("mu", mu)
        if not self.alpha > 0.0:
            raise ValueError(f"alpha must be a number > 0, but it is {alpha!r}")
        if self.mu > 1.0:
            raise ValueError(f"mu must be a number ≤ 1, but it is {mu!r}")

    def sample_ratio(self) -> float | Tensor:
        """Draw the ratio λ of a call."""
        ratio: Tensor = torch.distributions.Beta(self.alpha, self.alpha).sample()
        return ratio

    def forward(
        self,
        embeddings: Tensor,
        labels: Tensor | None = None,
        references: Tensor | None = None,
        reference_labels: Tensor | None = None,
        *,
        relation: RelationLike | None = None,
    ) -> Tensor:
        """Compute the loss of a batch and its synthetic classes; labels are class indices from 0."""
        self.loss.check_references(references, reference_labels, relation)
        with full_precision(embeddings):
            samples, labels = self.loss.check_batch(embeddings, labels)
            group = current_group()
            rows = group.rows(samples)
            samples = unit(samples)
            everything, classes = group.gather(samples, rows), group.gather(labels, rows)
            proxies = unit(self.loss.proxies.to(samples.dtype))
            ratio = self._ratio(samples)
            number = math.floor(self.mu * rows.count)
            own = slice(min(rows.local.start, number), min(rows.local.stop, number))
            synthetic = _mix(everything, ratio)[own]
            table = torch.cat([proxies, _mix(proxies[classes], ratio)[:number]])
            names = self.loss.num_classes + torch.arange(own.start, own.stop, device=labels.device)
            with extended_batch():
                loss = _with_proxies(self.loss, table)
                return loss.value(torch.cat([samples, synthetic]), torch.cat([labels, names]))

    def _ratio(self, like: Tensor) -> Tensor:
        """Return the ratio drawn on the first rank, on all ranks."""
        ratio = torch.as_tensor(self.sample_ratio(), dtype=like.dtype, device=like.device).reshape(1)
        group = current_group()
        return group.gather(ratio, group.rows(ratio))[0]

    def parameter_groups(self, lr: float | None = None) -> list[dict[str, Any]]:
        """The parameter groups of the loss."""
        return collect_groups([self.loss], lr)

    def extra_repr(self) -> str:
        """The arguments."""
        return f"alpha={self.alpha}, mu={self.mu}"


def _mix(rows: Tensor, ratio: Tensor) -> Tensor:
    """Each row mixed with the one before it, at unit length."""
    return unit(ratio * rows + (1.0 - ratio) * rows.roll(1, dims=0))


def _with_proxies(loss: ProxyLoss, proxies: Tensor) -> ProxyLoss:
    """The same loss with other proxies, which need not be a parameter; its buffers are those of the loss."""
    other = copy.copy(loss)
    vars(other)["_parameters"] = {**loss._parameters, "proxies": proxies}
    other.num_classes = len(proxies)
    return other
