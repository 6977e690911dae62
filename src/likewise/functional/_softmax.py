"""Softmax heads as functions of embeddings, labels and proxies."""

from __future__ import annotations

from torch import Tensor

from likewise.formula import Reduction
from likewise.functional._call import call_proxy_loss
from likewise.functional._numbers import split_bias, split_temperature
from likewise.losses import (
    ArcFaceLoss,
    CosFaceLoss,
    LargeMarginSoftmaxLoss,
    NormalizedSoftmaxLoss,
    SoftmaxLoss,
    SoftTripleLoss,
    SphereFaceLoss,
    SubCenterArcFaceLoss,
)


def softmax(
    embeddings: Tensor,
    labels: Tensor,
    proxies: Tensor,
    *,
    bias: Tensor | None = None,
    reduction: Reduction = "mean",
    backend: str = "auto",
) -> Tensor:
    """Softmax cross entropy on inner products: equal to the expression below; see `likewise.losses.SoftmaxLoss`.

        cross_entropy(embeddings @ proxies.T + (0 if bias is None else bias), labels)

    ``bias`` has shape ``(classes,)`` and gets a gradient.

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> softmax(embeddings, torch.tensor([0, 0, 1]), proxies=torch.eye(2))
        tensor(0.5032)
    """
    options, tensors = split_bias(bias, proxies)
    return call_proxy_loss(
        SoftmaxLoss, (embeddings, labels, proxies), tensors, reduction=reduction, backend=backend, **options
    )


def normalized_softmax(
    embeddings: Tensor,
    labels: Tensor,
    proxies: Tensor,
    *,
    temperature: float | Tensor = 0.05,
    normalize_embeddings: bool = True,
    reduction: Reduction = "mean",
    backend: str = "auto",
) -> Tensor:
    """Softmax cross entropy on cosines: equal to the expression below; see `likewise.losses.NormalizedSoftmaxLoss`.

        cross_entropy(S / temperature, labels)

    A tensor with one number as ``temperature`` gets a gradient.

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> normalized_softmax(embeddings, torch.tensor([0, 0, 1]), proxies=torch.eye(2))
        tensor(0.0121)
    """
    options, tensors = split_temperature("NormalizedSoftmaxLoss", temperature, embeddings)
    return call_proxy_loss(
        NormalizedSoftmaxLoss,
        (embeddings, labels, proxies),
        tensors,
        normalize_embeddings=normalize_embeddings,
        reduction=reduction,
        backend=backend,
        **options,
    )


def sphere_face(
    embeddings: Tensor,
    labels: Tensor,
    proxies: Tensor,
    *,
    margin: int = 4,
    scale: float = 1.0,
    normalize: bool = False,
    reduction: Reduction = "mean",
    backend: str = "auto",
) -> Tensor:
    """SphereFace: equal to the expression below; see `likewise.losses.SphereFaceLoss`.

        k = floor(margin * arccos(S) / pi)
        psi = (-1) ** k * cos(margin * arccos(S)) - 2 * k
        length = 1 if normalize else embeddings.norm(dim=1, keepdim=True)
        cross_entropy(scale * length * where(own, psi, S), labels)

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> sphere_face(embeddings, torch.tensor([0, 0, 1]), proxies=torch.eye(2))
        tensor(1.2079)
    """
    return call_proxy_loss(
        SphereFaceLoss,
        (embeddings, labels, proxies),
        margin=margin,
        scale=scale,
        normalize=normalize,
        reduction=reduction,
        backend=backend,
    )


def cos_face(
    embeddings: Tensor,
    labels: Tensor,
    proxies: Tensor,
    *,
    margin: float = 0.35,
    scale: float = 64.0,
    reduction: Reduction = "mean",
    backend: str = "auto",
) -> Tensor:
    """CosFace: equal to the expression below; see `likewise.losses.CosFaceLoss`.

        cross_entropy(scale * (S - margin * own), labels)

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> cos_face(embeddings, torch.tensor([0, 0, 1]), proxies=torch.eye(2))
        tensor(6.4000)
    """
    return call_proxy_loss(
        CosFaceLoss, (embeddings, labels, proxies), margin=margin, scale=scale, reduction=reduction, backend=backend
    )


def arc_face(
    embeddings: Tensor,
    labels: Tensor,
    proxies: Tensor,
    *,
    margin: float = 28.6,
    scale: float = 64.0,
    reduction: Reduction = "mean",
    backend: str = "auto",
) -> Tensor:
    """ArcFace: equal to the expression below; see `likewise.losses.ArcFaceLoss`.

        m = radians(margin)
        shifted = where(S < -cos(m), S - m * sin(m), cos(arccos(S) + m))
        cross_entropy(scale * where(own, shifted, S), labels)

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> arc_face(embeddings, torch.tensor([0, 0, 1]), proxies=torch.eye(2))
        tensor(7.8860)
    """
    return call_proxy_loss(
        ArcFaceLoss, (embeddings, labels, proxies), margin=margin, scale=scale, reduction=reduction, backend=backend
    )


def sub_center_arc_face(
    embeddings: Tensor,
    labels: Tensor,
    proxies: Tensor,
    *,
    centers: int = 3,
    margin: float = 28.6,
    scale: float = 64.0,
    reduction: Reduction = "mean",
    backend: str = "auto",
) -> Tensor:
    """Sub-center ArcFace: equal to the expression below; see `likewise.losses.SubCenterArcFaceLoss`.

        S, m = S.unflatten(1, (-1, centers)).amax(dim=2), radians(margin)
        shifted = where(S < -cos(m), S - m * sin(m), cos(arccos(S) + m))
        cross_entropy(scale * where(own, shifted, S), labels)

    Row ``c * centers + k`` of ``proxies`` is center k of class c.

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> sub_center_arc_face(
        ...     embeddings, torch.tensor([0, 0, 1]), proxies=torch.eye(2).repeat_interleave(2, dim=0), centers=2
        ... )
        tensor(7.8860)
    """
    return call_proxy_loss(
        SubCenterArcFaceLoss,
        (embeddings, labels, proxies),
        centers=centers,
        margin=margin,
        scale=scale,
        reduction=reduction,
        backend=backend,
    )


def soft_triple(
    embeddings: Tensor,
    labels: Tensor,
    proxies: Tensor,
    *,
    centers: int = 10,
    la: float = 20.0,
    gamma: float = 0.1,
    margin: float = 0.01,
    tau: float = 0.2,
    reduction: Reduction = "mean",
    backend: str = "auto",
) -> Tensor:
    """SoftTriple: equal to the expression below; see `likewise.losses.SoftTripleLoss`.

        S = S.unflatten(1, (-1, centers))
        S = (torch.softmax(S / gamma, dim=2) * S).sum(dim=2)
        W = normalize(proxies).unflatten(0, (-1, centers))
        merging = sqrt(2 + 1e-5 - 2 * W @ W.mT).triu(1).sum(dim=(1, 2)).mean()
        merging = merging / (centers * (centers - 1))
        cross_entropy(la * (S - margin * own), labels) + tau * merging

    Row ``c * centers + k`` of ``proxies`` is center k of class c.

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> soft_triple(
        ...     embeddings, torch.tensor([0, 0, 1]), proxies=torch.eye(2).repeat_interleave(2, dim=0), centers=2
        ... )
        tensor(0.0151)
    """
    return call_proxy_loss(
        SoftTripleLoss,
        (embeddings, labels, proxies),
        centers=centers,
        la=la,
        gamma=gamma,
        margin=margin,
        tau=tau,
        reduction=reduction,
        backend=backend,
    )


def large_margin_softmax(
    embeddings: Tensor,
    labels: Tensor,
    proxies: Tensor,
    *,
    margin: int = 4,
    scale: float = 1.0,
    reduction: Reduction = "mean",
    backend: str = "auto",
) -> Tensor:
    """Large-margin softmax: equal to the expression below; see `likewise.losses.LargeMarginSoftmaxLoss`.

        k = floor(margin * arccos(S) / pi)
        psi = (-1) ** k * cos(margin * arccos(S)) - 2 * k
        lengths = embeddings.norm(dim=1, keepdim=True) * proxies.norm(dim=1)
        cross_entropy(scale * lengths * where(own, psi, S), labels)

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> large_margin_softmax(embeddings, torch.tensor([0, 0, 1]), proxies=torch.eye(2))
        tensor(1.2079)
    """
    return call_proxy_loss(
        LargeMarginSoftmaxLoss,
        (embeddings, labels, proxies),
        margin=margin,
        scale=scale,
        reduction=reduction,
        backend=backend,
    )
