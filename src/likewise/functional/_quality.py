"""Margin heads with a margin per sample as functions of embeddings, labels and proxies."""

from __future__ import annotations

from torch import Tensor
from torch.func import functional_call

from likewise.formula import Reduction, embeddings_of, full_precision
from likewise.functional._call import call_proxy_loss, find_proxy_loss
from likewise.functional._numbers import check_tensor
from likewise.losses import AdaFaceLoss, ElasticArcFaceLoss, ElasticCosFaceLoss, MagFaceLoss


def ada_face(
    embeddings: Tensor,
    labels: Tensor,
    proxies: Tensor,
    batch_mean: Tensor,
    batch_std: Tensor,
    *,
    margin: float = 0.4,
    h: float = 0.333,
    scale: float = 64.0,
    t_alpha: float = 0.01,
    reduction: Reduction = "mean",
    backend: str = "auto",
) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """AdaFace and its new state: equal to the expression below; see `likewise.losses.AdaFaceLoss`.

        a = embeddings.norm(dim=1).clamp(0.001, 100)
        batch_mean = t_alpha * a.mean() + (1 - t_alpha) * batch_mean
        batch_std = t_alpha * a.std() + (1 - t_alpha) * batch_std
        m = margin * (h * (a - batch_mean) / (batch_std + 0.001)).clamp(-1, 1)[:, None]
        theta = (arccos(S.clamp(-0.999, 0.999)) - m * own).clamp(0.001, pi - 0.001)
        value = cross_entropy(scale * (cos(theta) - (margin + m) * own), labels)
        value, (batch_mean, batch_std)

    The state is an argument and part of the result; a training loop passes it to the next call.

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> state = torch.tensor(20.0), torch.tensor(100.0)
        >>> value, state = ada_face(embeddings, torch.tensor([0, 0, 1]), torch.eye(2), *state)
        >>> state
        (tensor(19.8100), tensor(99.))
    """
    module = find_proxy_loss(
        AdaFaceLoss,
        proxies,
        margin=margin,
        h=h,
        scale=scale,
        t_alpha=t_alpha,
        reduction=reduction,
        backend=backend,
    ).eval()
    with full_precision(embeddings):
        samples = embeddings_of("embeddings", embeddings)
        old_mean, old_std = (
            check_tensor(f"AdaFaceLoss: {name}", each, 1, samples).reshape(())
            for name, each in (("batch_mean", batch_mean), ("batch_std", batch_std))
        )
        mean, std = AdaFaceLoss.update_statistics(samples, old_mean, old_std, t_alpha)
    tensors = {"proxies": proxies, "batch_mean": mean, "batch_std": std}
    value: Tensor = functional_call(module, tensors, (embeddings, labels))
    return value, (mean, std)


def mag_face(
    embeddings: Tensor,
    labels: Tensor,
    proxies: Tensor,
    *,
    l_a: float = 10.0,
    u_a: float = 110.0,
    l_margin: float = 25.8,
    u_margin: float = 45.8,
    scale: float = 64.0,
    lambda_g: float = 35.0,
    easy_margin: bool = True,
    reduction: Reduction = "mean",
    backend: str = "auto",
) -> Tensor:
    """MagFace: equal to the expression below; see `likewise.losses.MagFaceLoss`.

        a = embeddings.norm(dim=1, keepdim=True).clamp(l_a, u_a)
        m = (l_margin + (u_margin - l_margin) * (a - l_a) / (u_a - l_a)) * pi / 180
        easy, hard = where(S > 0, cos(arccos(S) + m), S), where(S > -cos(m), cos(arccos(S) + m), S - m * sin(m))
        logits = where(own, easy if easy_margin else hard, S)
        cross_entropy(scale * logits, labels) + lambda_g * (a / u_a**2 + 1 / a).mean()

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> mag_face(embeddings, torch.tensor([0, 0, 1]), proxies=torch.eye(2))
        tensor(9.5400)
    """
    return call_proxy_loss(
        MagFaceLoss,
        (embeddings, labels, proxies),
        l_a=l_a,
        u_a=u_a,
        l_margin=l_margin,
        u_margin=u_margin,
        scale=scale,
        lambda_g=lambda_g,
        easy_margin=easy_margin,
        reduction=reduction,
        backend=backend,
    )


def elastic_arc_face(
    embeddings: Tensor,
    labels: Tensor,
    proxies: Tensor,
    margins: Tensor,
    *,
    scale: float = 64.0,
    plus: bool = False,
    reduction: Reduction = "mean",
    backend: str = "auto",
) -> Tensor:
    """ElasticArcFace with given margins: equal to the expression below; see `likewise.losses.ElasticArcFaceLoss`.

        shifted = cos(arccos(S) + margins[:, None] * pi / 180)
        cross_entropy(scale * where(own, shifted, S), labels)

    ``margins``, in degrees, are those of the samples; with ``plus`` they are first distributed in order, the smallest to the
    largest target cosine.  A function draws no random numbers: ``margins = torch.normal(margin, std, (n,))``.

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> margins = torch.tensor([20.0, 20.0, 20.0])
        >>> elastic_arc_face(embeddings, torch.tensor([0, 0, 1]), torch.eye(2), margins)
        tensor(2.3023)
    """
    module = find_proxy_loss(ElasticArcFaceLoss, proxies, scale=scale, plus=plus, reduction=reduction, backend=backend)
    value: Tensor = functional_call(module, {"proxies": proxies}, (embeddings, labels), {"margins": margins})
    return value


def elastic_cos_face(
    embeddings: Tensor,
    labels: Tensor,
    proxies: Tensor,
    margins: Tensor,
    *,
    scale: float = 64.0,
    plus: bool = False,
    reduction: Reduction = "mean",
    backend: str = "auto",
) -> Tensor:
    """ElasticCosFace with given margins: equal to the expression below; see `likewise.losses.ElasticCosFaceLoss`.

        cross_entropy(scale * (S - margins[:, None] * own), labels)

    ``margins``, in cosines, are those of the samples; with ``plus`` they are first distributed in order, the smallest to the
    largest target cosine.  A function draws no random numbers: ``margins = torch.normal(margin, std, (n,))``.

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> margins = torch.tensor([0.3, 0.3, 0.3])
        >>> elastic_cos_face(embeddings, torch.tensor([0, 0, 1]), torch.eye(2), margins)
        tensor(4.2678)
    """
    module = find_proxy_loss(ElasticCosFaceLoss, proxies, scale=scale, plus=plus, reduction=reduction, backend=backend)
    value: Tensor = functional_call(module, {"proxies": proxies}, (embeddings, labels), {"margins": margins})
    return value
