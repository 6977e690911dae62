"""Losses with proxies as functions of embeddings, labels and proxies."""

from __future__ import annotations

from torch import Tensor

from likewise.formula import Reduction
from likewise.functional._call import call_proxy_loss
from likewise.losses import P2SGradLoss, ProxyAnchorLoss, ProxyGMLLoss, ProxyNCALoss, ProxyNCAPPLoss, ProxyRepulsionLoss


def proxy_nca(
    embeddings: Tensor,
    labels: Tensor,
    proxies: Tensor,
    *,
    scale: float = 1.0,
    reduction: Reduction = "mean",
    backend: str = "auto",
) -> Tensor:
    """ProxyNCA: equal to the expression below; see `likewise.losses.ProxyNCALoss`.

        E = exp(scale * S)
        -log(E[own] / (E * ~own).sum(dim=1)).mean()

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> proxy_nca(embeddings, torch.tensor([0, 0, 1]), proxies=torch.eye(2))
        tensor(-0.9333)
    """
    return call_proxy_loss(
        ProxyNCALoss, (embeddings, labels, proxies), scale=scale, reduction=reduction, backend=backend
    )


def proxy_nca_pp(
    embeddings: Tensor,
    labels: Tensor,
    proxies: Tensor,
    *,
    temperature: float = 0.111,
    reduction: Reduction = "mean",
    backend: str = "auto",
) -> Tensor:
    """ProxyNCA++: equal to the expression below; see `likewise.losses.ProxyNCAPPLoss`.

        cross_entropy(S / temperature, labels)

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> proxy_nca_pp(embeddings, torch.tensor([0, 0, 1]), proxies=torch.eye(2))
        tensor(0.0179)
    """
    return call_proxy_loss(
        ProxyNCAPPLoss, (embeddings, labels, proxies), temperature=temperature, reduction=reduction, backend=backend
    )


def proxy_anchor(
    embeddings: Tensor,
    labels: Tensor,
    proxies: Tensor,
    *,
    margin: float = 0.1,
    alpha: float = 32.0,
    reduction: Reduction = "mean",
    backend: str = "auto",
) -> Tensor:
    """Proxy-Anchor: equal to the expression below; see `likewise.losses.ProxyAnchorLoss`.

        pull = log1p((exp(-alpha * (S - margin)) * own).sum(dim=0))
        push = log1p((exp(alpha * (S + margin)) * ~own).sum(dim=0))
        pull[own.any(dim=0)].mean() + push.mean()

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> proxy_anchor(embeddings, torch.tensor([0, 0, 1]), proxies=torch.eye(2))
        tensor(22.4000)
    """
    return call_proxy_loss(
        ProxyAnchorLoss, (embeddings, labels, proxies), margin=margin, alpha=alpha, reduction=reduction, backend=backend
    )


def proxy_repulsion(
    embeddings: Tensor,
    labels: Tensor,
    proxies: Tensor,
    *,
    margin: float = 0.1,
    alpha: float = 32.0,
    through_samples: bool = False,
    reduction: Reduction = "mean",
    backend: str = "auto",
) -> Tensor:
    """Proxy repulsion: equal to the expression below; see `likewise.losses.ProxyRepulsionLoss`.

        pull = log1p((exp(-alpha * (S - margin)) * own).sum(dim=0))
        W = normalize(proxies)
        between = S.T @ S if through_samples else W @ W.T
        push = log1p(exp(alpha * (between + margin)).fill_diagonal_(0).sum(dim=1))
        pull[own.any(dim=0)].mean() + push.mean()

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> proxy_repulsion(embeddings, torch.tensor([0, 0, 1]), proxies=torch.eye(2))
        tensor(3.2400)
    """
    return call_proxy_loss(
        ProxyRepulsionLoss,
        (embeddings, labels, proxies),
        margin=margin,
        alpha=alpha,
        through_samples=through_samples,
        reduction=reduction,
        backend=backend,
    )


def proxy_gml(
    embeddings: Tensor,
    labels: Tensor,
    proxies: Tensor,
    *,
    centers: int = 3,
    neighbors: int = 8,
    weight: float = 0.3,
    reduction: Reduction = "mean",
    backend: str = "auto",
) -> Tensor:
    """ProxyGML: equal to the expression below; see `likewise.losses.ProxyGMLLoss`.

        positive, W = own.repeat_interleave(centers, dim=1), normalize(proxies)
        compared = positive.scatter(1, (S + 4 * positive).topk(min(neighbors, S.shape[1])).indices, True)
        seen = compared.unflatten(1, (-1, centers)).any(dim=2)
        sums = (S * compared).unflatten(1, (-1, centers)).sum(dim=2).masked_fill(~seen, -inf)
        classes = torch.arange(len(proxies)) // centers
        between = (W @ W.T).unflatten(1, (-1, centers)).sum(dim=2)
        cross_entropy(sums, labels) + weight * cross_entropy(between, classes)

    Row ``c * centers + k`` of ``proxies`` is center k of class c.

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> proxy_gml(embeddings, torch.tensor([0, 0, 1]), proxies=torch.eye(2).repeat_interleave(2, dim=0), centers=2)
        tensor(0.4224)
    """
    return call_proxy_loss(
        ProxyGMLLoss,
        (embeddings, labels, proxies),
        centers=centers,
        neighbors=neighbors,
        weight=weight,
        reduction=reduction,
        backend=backend,
    )


def p2s_grad(
    embeddings: Tensor,
    labels: Tensor,
    proxies: Tensor,
    *,
    reduction: Reduction = "mean",
    backend: str = "auto",
) -> Tensor:
    """P2SGrad: equal to the expression below; see `likewise.losses.P2SGradLoss`.

        ((S - own.to(S.dtype)) ** 2).mean()

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> p2s_grad(embeddings, torch.tensor([0, 0, 1]), proxies=torch.eye(2))
        tensor(0.1333)
    """
    return call_proxy_loss(
        P2SGradLoss,
        (embeddings, labels, proxies),
        reduction=reduction,
        backend=backend,
    )
