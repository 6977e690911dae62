"""Losses on hierarchies as functions."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from likewise.formula import Reduction, RelationLike, SimilarityLike
from likewise.functional._call import call_pair_loss, call_proxy_loss, call_with_hierarchy
from likewise.losses import CSLLoss, HAPLoss, HAPPIERLoss
from likewise.miners import Miner


def hap(
    embeddings: Tensor,
    labels: Tensor | None = None,
    references: Tensor | None = None,
    reference_labels: Tensor | None = None,
    *,
    relation: RelationLike | None = None,
    temperature: float = 0.01,
    rho: float = 100.0,
    delta: float = 0.05,
    offset: float | None = 1.44,
    start: float = 0.5,
    alpha: float = 1.0,
    include_self: bool = False,
    similarity: SimilarityLike = "cosine",
    miner: Miner | None = None,
    reduction: Reduction = "mean",
    backend: str = "auto",
) -> Tensor:
    """Hierarchical average precision: equal to the expression below; see `likewise.losses.HAPLoss`.

        d = S[:, None, :] - S[:, :, None]  # of j, for each p
        soft = sigmoid(d / temperature)
        step = where(d > delta, rho * (d - delta) + offset, where(d > 0, start + soft, soft))
        above = (d >= 0) * P[:, None, :]  # with one level all positives are equally relevant
        precision = above.sum(dim=2) / (above + step * N[:, None, :]).sum(dim=2)
        1 - ((precision * P).nan_to_num().sum(dim=1) / P.sum(dim=1)).mean()

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> hap(embeddings, torch.tensor([[0, 0], [1, 0], [0, 0]]))
        tensor(0.4154)
    """
    return call_pair_loss(
        HAPLoss,
        (embeddings, labels, references, reference_labels, relation),
        temperature=temperature,
        rho=rho,
        delta=delta,
        offset=offset,
        start=start,
        alpha=alpha,
        include_self=include_self,
        similarity=similarity,
        miner=miner,
        reduction=reduction,
        backend=backend,
    )


def happier(
    embeddings: Tensor,
    labels: Tensor,
    proxies: Tensor,
    *,
    weight: float = 0.1,
    cluster_temperature: float = 0.05,
    temperature: float = 0.01,
    rho: float = 100.0,
    delta: float = 0.05,
    offset: float | None = 1.44,
    start: float = 0.5,
    alpha: float = 1.0,
    include_self: bool = False,
    reduction: Reduction = "mean",
    backend: str = "auto",
) -> Tensor:
    """HAPPIER: equal to the expression below; see `likewise.losses.HAPPIERLoss`.

        unit, same = normalize(embeddings), labels[:, None] == labels  # with one level
        N, P = ~same, same.clone().fill_diagonal_(False)
        d = (unit @ unit.T)[:, None, :] - (unit @ unit.T)[:, :, None]  # of j, for each p
        soft = sigmoid(d / temperature)
        step = where(d > delta, rho * (d - delta) + offset, where(d > 0, start + soft, soft))
        above = (d >= 0) * P[:, None, :]
        precision = above.sum(dim=2) / (above + step * N[:, None, :]).sum(dim=2)
        hap = 1 - ((precision * P).nan_to_num().sum(dim=1) / P.sum(dim=1)).mean()
        (1 - weight) * hap + weight * cross_entropy(S / cluster_temperature, labels)

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> happier(embeddings, torch.tensor([[0, 0], [1, 0], [0, 0]]), torch.eye(2))
        tensor(0.6417)
    """
    return call_proxy_loss(
        HAPPIERLoss,
        (embeddings, labels, proxies),
        weight=weight,
        cluster_temperature=cluster_temperature,
        temperature=temperature,
        rho=rho,
        delta=delta,
        offset=offset,
        start=start,
        alpha=alpha,
        include_self=include_self,
        reduction=reduction,
        backend=backend,
    )


def csl(
    embeddings: Tensor,
    labels: Tensor,
    proxies: Tensor,
    hierarchy: Tensor,
    *,
    margins: Sequence[float] = (0.25, 0.35, 0.45),
    scale: float = 32.0,
    reduction: Reduction = "mean",
    backend: str = "auto",
) -> Tensor:
    """CSL: equal to the expression below; see `likewise.losses.CSLLoss`.

        near = where(own, -scale * S, -inf).logsumexp(dim=1)
        value = 0
        for level, margin in enumerate(margins):
            other = hierarchy[:, level] != hierarchy[labels, level, None]  # with the classes as labels
            far = where(other, scale * S, -inf).logsumexp(dim=1)
            value = value + softplus(far + near + scale * margin).mean()
        value

    Examples:
        >>> import torch
        >>> hierarchy = torch.tensor([[0, 0], [1, 0]])
        >>> csl(torch.eye(2), hierarchy, torch.eye(2), hierarchy, margins=(0.5, 0.5), scale=2.0)
        tensor(0.3133)
    """
    return call_with_hierarchy(
        CSLLoss,
        (embeddings, labels, proxies, hierarchy),
        margins=tuple(margins),
        scale=scale,
        reduction=reduction,
        backend=backend,
    )
