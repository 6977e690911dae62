"""Losses on pairs of rows as functions: graded pairs, and two views."""

from __future__ import annotations

from torch import Tensor

from likewise.functional._call import call_pair_loss
from likewise.losses import AnglELoss, CoSENTLoss, VICRegLoss


def co_sent(embeddings: Tensor, scores: Tensor, references: Tensor, *, scale: float = 20.0) -> Tensor:
    """CoSENT: equal to the expression below; see `likewise.losses.CoSENTLoss`.

        s = (normalize(embeddings) * normalize(references)).sum(dim=1)
        log1p(exp(scale * (s - s[:, None]))[scores[:, None] > scores].sum())

    Examples:
        >>> import torch
        >>> co_sent(torch.eye(2), torch.tensor([0.2, 0.9]), torch.tensor([[1.0, 0.0], [1.0, 0.0]]), scale=1.0)
        tensor(1.3133)
    """
    return call_pair_loss(CoSENTLoss, (embeddings, scores, references, None, None), scale=scale)


def angl_e(embeddings: Tensor, scores: Tensor, references: Tensor, *, scale: float = 20.0) -> Tensor:
    """AnglE: equal to the expression below for an even dimension; see `likewise.losses.AnglELoss`.

        a, b = normalize(embeddings), normalize(references)
        (re_a, im_a), (re_b, im_b) = a.chunk(2, dim=1), b.chunk(2, dim=1)
        s = ((a * b).sum(dim=1) + (im_a * re_b - re_a * im_b).sum(dim=1)).abs()
        log1p(exp(scale * (s - s[:, None]))[scores[:, None] > scores].sum())

    Examples:
        >>> import torch
        >>> angl_e(torch.eye(2), torch.tensor([0.2, 0.9]), torch.tensor([[1.0, 0.0], [1.0, 0.0]]), scale=1.0)
        tensor(0.6931)
    """
    return call_pair_loss(AnglELoss, (embeddings, scores, references, None, None), scale=scale)


def vic_reg(
    embeddings: Tensor,
    labels: Tensor | None = None,
    references: Tensor | None = None,
    *,
    invariance_lambda: float = 25.0,
    variance_mu: float = 25.0,
    covariance_v: float = 1.0,
    eps: float = 1e-4,
) -> Tensor:
    """VICReg: equal to the expression below; see `likewise.losses.VICRegLoss`.

        views, D = (embeddings, references), embeddings.shape[1]
        invariance = ((embeddings - references) ** 2).mean()
        variance = sum(relu(1 - sqrt(z.var(dim=0) + eps)).mean() for z in views) / 2
        covariance = sum((z.T.cov() ** 2).fill_diagonal_(0).sum() for z in views) / D
        invariance_lambda * invariance + variance_mu * variance + covariance_v * covariance

    Labels are ignored.

    Examples:
        >>> import torch
        >>> z = torch.tensor([[1.0, 0.0], [-1.0, 2.0]])
        >>> vic_reg(z, references=z)
        tensor(8.)
    """
    return call_pair_loss(
        VICRegLoss,
        (embeddings, labels, references, None, None),
        invariance_lambda=invariance_lambda,
        variance_mu=variance_mu,
        covariance_v=covariance_v,
        eps=eps,
    )
