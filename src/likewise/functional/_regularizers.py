"""Regularizers of embeddings, as functions."""

from __future__ import annotations

from torch import Tensor

from likewise.functional._call import call_pair_loss
from likewise.losses import EmbeddingNorm, ZeroMean


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
