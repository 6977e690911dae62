"""Ranking losses as functions."""

from __future__ import annotations

from torch import Tensor

from likewise.formula import Reduction, RelationLike, SimilarityLike
from likewise.functional._call import call_pair_loss
from likewise.losses import FastAPLoss, HistogramLoss
from likewise.miners import Miner


def fast_ap(
    embeddings: Tensor,
    labels: Tensor | None = None,
    references: Tensor | None = None,
    reference_labels: Tensor | None = None,
    *,
    relation: RelationLike | None = None,
    bins: int = 10,
    similarity: SimilarityLike = "squared_euclidean",
    miner: Miner | None = None,
    reduction: Reduction = "mean",
    backend: str = "auto",
) -> Tensor:
    """FastAP: equal to the expression below; see `likewise.losses.FastAPLoss`.

        nodes = linspace(0, 4, bins + 1)
        shares = relu(1 - (-S[:, :, None] - nodes).abs() * bins / 4)
        positives, both = ((shares * M[:, :, None]).sum(dim=1) for M in (P, P | N))
        precision = positives.cumsum(dim=1) / both.cumsum(dim=1).clamp_min(1e-12)
        (1 - (positives * precision).sum(dim=1) / P.sum(dim=1)).mean()

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> fast_ap(embeddings, torch.tensor([0, 0, 1]))
        tensor(0.2500)
    """
    return call_pair_loss(
        FastAPLoss,
        (embeddings, labels, references, reference_labels, relation),
        bins=bins,
        similarity=similarity,
        miner=miner,
        reduction=reduction,
        backend=backend,
    )


def histogram(
    embeddings: Tensor,
    labels: Tensor | None = None,
    references: Tensor | None = None,
    reference_labels: Tensor | None = None,
    *,
    relation: RelationLike | None = None,
    bins: int = 100,
    similarity: SimilarityLike = "cosine",
    miner: Miner | None = None,
    reduction: Reduction = "mean",
    backend: str = "auto",
) -> Tensor:
    """Histogram loss: equal to the expression below; see `likewise.losses.HistogramLoss`.

        nodes = linspace(-1, 1, bins + 1)
        shares = relu(1 - (S[:, :, None] - nodes).abs() * bins / 2)
        (shares[N].mean(dim=0) * shares[P].mean(dim=0).cumsum(dim=0)).sum()

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> histogram(embeddings, torch.tensor([0, 0, 1]))
        tensor(0.5000)
    """
    return call_pair_loss(
        HistogramLoss,
        (embeddings, labels, references, reference_labels, relation),
        bins=bins,
        similarity=similarity,
        miner=miner,
        reduction=reduction,
        backend=backend,
    )
