"""Regularizers of embeddings, as functions."""

from __future__ import annotations

from torch import Tensor

from likewise.formula import Reduction, RelationLike, SimilarityLike
from likewise.functional._call import call_pair_loss
from likewise.losses import (
    AntiCollapseLoss,
    EmbeddingNorm,
    GlobalOrthogonalRegularizationLoss,
    KoLeoLoss,
    ZeroMean,
)
from likewise.miners import Miner


def embedding_norm(embeddings: Tensor) -> Tensor:
    """Mean length of the embeddings: equal to the expression below; see `likewise.losses.EmbeddingNorm`.

        embeddings.norm(dim=1).mean()

    Examples:
        >>> import torch
        >>> embedding_norm(torch.tensor([[3.0, 4.0]]))
        tensor(5.)
    """
    return call_pair_loss(EmbeddingNorm, (embeddings, None, None, None, None))


def zero_mean(embeddings: Tensor) -> Tensor:
    """Mean absolute sum of the embeddings' entries: equal to the expression below; see `likewise.losses.ZeroMean`.

        embeddings.sum(dim=1).abs().mean()

    Examples:
        >>> import torch
        >>> zero_mean(torch.tensor([[3.0, -4.0]]))
        tensor(1.)
    """
    return call_pair_loss(ZeroMean, (embeddings, None, None, None, None))


def ko_leo(
    embeddings: Tensor,
    labels: Tensor | None = None,
    references: Tensor | None = None,
    reference_labels: Tensor | None = None,
    *,
    relation: RelationLike | None = None,
    eps: float = 1e-8,
    similarity: SimilarityLike = "euclidean",
    miner: Miner | None = None,
    reduction: Reduction = "mean",
    backend: str = "auto",
) -> Tensor:
    """KoLeo: equal to the expression below; see `likewise.losses.KoLeoLoss`.

        -log(eps - S.masked_fill(~(P | N), -inf).amax(dim=1)).mean()

    Labels are ignored.

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> ko_leo(embeddings, torch.tensor([0, 0, 1]))
        tensor(0.9946)
    """
    return call_pair_loss(
        KoLeoLoss,
        (embeddings, labels, references, reference_labels, relation),
        eps=eps,
        similarity=similarity,
        miner=miner,
        reduction=reduction,
        backend=backend,
    )


def global_orthogonal_regularization(
    embeddings: Tensor,
    labels: Tensor | None = None,
    references: Tensor | None = None,
    reference_labels: Tensor | None = None,
    *,
    relation: RelationLike | None = None,
    mean_weight: float = 1.0,
    second_moment_weight: float = 1.0,
    similarity: SimilarityLike = "cosine",
    miner: Miner | None = None,
    reduction: Reduction = "mean",
    backend: str = "auto",
) -> Tensor:
    """Global orthogonality: equal to the expression below; see `likewise.losses.GlobalOrthogonalRegularizationLoss`.

        pairs, D = S[P | N], embeddings.shape[1]
        mean_weight * pairs.mean() ** 2 + second_moment_weight * relu((pairs**2).mean() - 1 / D)

    Labels are ignored.

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> global_orthogonal_regularization(embeddings, torch.tensor([0, 0, 1]))
        tensor(0.7594)
    """
    return call_pair_loss(
        GlobalOrthogonalRegularizationLoss,
        (embeddings, labels, references, reference_labels, relation),
        mean_weight=mean_weight,
        second_moment_weight=second_moment_weight,
        similarity=similarity,
        miner=miner,
        reduction=reduction,
        backend=backend,
    )


def anti_collapse(embeddings: Tensor, *, epsilon: float = 0.5) -> Tensor:
    """Minus the coding rate of the embeddings: equal to the expression below; see `likewise.losses.AntiCollapseLoss`.

        E = normalize(embeddings)
        n, D = E.shape
        -torch.logdet(torch.eye(D, dtype=E.dtype) + D / (n * epsilon**2) * E.T @ E) / 2

    Examples:
        >>> import torch
        >>> anti_collapse(torch.eye(2), epsilon=1.0)
        tensor(-0.6931)
    """
    return call_pair_loss(AntiCollapseLoss, (embeddings, None, None, None, None), epsilon=epsilon)
