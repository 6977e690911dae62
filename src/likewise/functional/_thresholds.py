"""Losses with one threshold for all anchors as functions."""

from __future__ import annotations

from torch import Tensor

from likewise.formula import Reduction, RelationLike, SimilarityLike
from likewise.functional._call import call_pair_loss
from likewise.functional._numbers import split_scale_and_bias
from likewise.losses import RankedListLoss, SigmoidLoss, ThresholdConsistentMarginLoss
from likewise.miners import Miner


def sigmoid(
    embeddings: Tensor,
    labels: Tensor | None = None,
    references: Tensor | None = None,
    reference_labels: Tensor | None = None,
    *,
    relation: RelationLike | None = None,
    scale: float | Tensor = 10.0,
    bias: float | Tensor = -10.0,
    similarity: SimilarityLike = "cosine",
    miner: Miner | None = None,
    reduction: Reduction = "mean",
    backend: str = "auto",
) -> Tensor:
    """Sigmoid loss (SigLIP): equal to the expression below; see `likewise.losses.SigmoidLoss`.

        logits = scale * S + bias
        (softplus(-logits) * P + softplus(logits) * N).sum(dim=1).mean()

    A tensor with one number as ``scale`` or ``bias`` gets a gradient.

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> sigmoid(embeddings, torch.tensor([0, 0, 1]))
        tensor(1.7721)
    """
    options, tensors = split_scale_and_bias(scale, bias, embeddings)
    return call_pair_loss(
        SigmoidLoss,
        (embeddings, labels, references, reference_labels, relation),
        tensors,
        similarity=similarity,
        miner=miner,
        reduction=reduction,
        backend=backend,
        **options,
    )


def threshold_consistent_margin(
    embeddings: Tensor,
    labels: Tensor | None = None,
    references: Tensor | None = None,
    reference_labels: Tensor | None = None,
    *,
    relation: RelationLike | None = None,
    positive_margin: float = 0.9,
    negative_margin: float = 0.5,
    positive_weight: float = 1.0,
    negative_weight: float = 1.0,
    similarity: SimilarityLike = "cosine",
    miner: Miner | None = None,
    reduction: Reduction = "mean",
    backend: str = "auto",
) -> Tensor:
    """Threshold-consistent margin: equal to the expression below; see `likewise.losses.ThresholdConsistentMarginLoss`.

        lack, excess = (positive_margin - S)[P], (S - negative_margin)[N]
        pull, push = (each[each >= 0].mean().nan_to_num() for each in (lack, excess))
        positive_weight * pull + negative_weight * push

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> threshold_consistent_margin(embeddings, torch.tensor([0, 0, 1]))
        tensor(0.3800)
    """
    return call_pair_loss(
        ThresholdConsistentMarginLoss,
        (embeddings, labels, references, reference_labels, relation),
        positive_margin=positive_margin,
        negative_margin=negative_margin,
        positive_weight=positive_weight,
        negative_weight=negative_weight,
        similarity=similarity,
        miner=miner,
        reduction=reduction,
        backend=backend,
    )


def ranked_list(
    embeddings: Tensor,
    labels: Tensor | None = None,
    references: Tensor | None = None,
    reference_labels: Tensor | None = None,
    *,
    relation: RelationLike | None = None,
    margin: float = 0.4,
    Tn: float = 10.0,
    imbalance: float = 0.5,
    alpha: float | None = None,
    Tp: float = 0.0,
    similarity: SimilarityLike = "euclidean",
    miner: Miner | None = None,
    reduction: Reduction = "mean",
    backend: str = "auto",
) -> Tensor:
    """Ranked list loss: equal to the expression below; see `likewise.losses.RankedListLoss`.

        pull, push, constant = -S - (alpha - margin), alpha + S, 1e-5 * len(S)
        w_p, w_n = exp(Tp * pull) * (pull > 0) * P, exp(Tn * push) * (push > 0) * N
        pulls = (w_p * pull).sum(dim=1) / (w_p.sum(dim=1) + constant)
        pushes = (w_n * push).sum(dim=1) / (w_n.sum(dim=1) + constant)
        ((1 - imbalance) * pulls + imbalance * pushes).mean()

    ``alpha`` is ``1 + margin / 2`` by default.

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> ranked_list(embeddings, torch.tensor([0, 0, 1]))
        tensor(0.3564)
    """
    return call_pair_loss(
        RankedListLoss,
        (embeddings, labels, references, reference_labels, relation),
        margin=margin,
        Tn=Tn,
        imbalance=imbalance,
        alpha=alpha,
        Tp=Tp,
        similarity=similarity,
        miner=miner,
        reduction=reduction,
        backend=backend,
    )
