"""Losses on the soft rank of a positive as functions."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from likewise.formula import Reduction, RelationLike, SimilarityLike
from likewise.functional._call import call_pair_loss
from likewise.losses import NDCGLoss, PNPLoss, RecallAtKLoss, ROADMAPLoss, SmoothAPLoss, SupAPLoss
from likewise.miners import Miner


def smooth_ap(
    embeddings: Tensor,
    labels: Tensor | None = None,
    references: Tensor | None = None,
    reference_labels: Tensor | None = None,
    *,
    relation: RelationLike | None = None,
    temperature: float = 0.01,
    include_self: bool = False,
    similarity: SimilarityLike = "cosine",
    miner: Miner | None = None,
    reduction: Reduction = "mean",
    backend: str = "auto",
) -> Tensor:
    """Smooth-AP: equal to the expression below; see `likewise.losses.SmoothAPLoss`.

        over = sigmoid((S[:, None, :] - S[:, :, None]) / temperature)  # of j, for each p
        positives, negatives = ((over * M[:, None, :]).sum(dim=2) for M in (P, N))
        1 - (((0.5 + positives) / (0.5 + positives + negatives) * P).sum(dim=1) / P.sum(dim=1)).mean()

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> smooth_ap(embeddings, torch.tensor([0, 0, 1]))
        tensor(0.2500)
    """
    return call_pair_loss(
        SmoothAPLoss,
        (embeddings, labels, references, reference_labels, relation),
        temperature=temperature,
        include_self=include_self,
        similarity=similarity,
        miner=miner,
        reduction=reduction,
        backend=backend,
    )


def sup_ap(
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
    include_self: bool = False,
    similarity: SimilarityLike = "cosine",
    miner: Miner | None = None,
    reduction: Reduction = "mean",
    backend: str = "auto",
) -> Tensor:
    """SupAP: equal to the expression below; see `likewise.losses.SupAPLoss`.

        d = S[:, None, :] - S[:, :, None]  # of j, for each p
        soft = sigmoid(d / temperature)
        step = where(d > delta, rho * (d - delta) + offset, where(d > 0, start + soft, soft))
        positives, negatives = ((d >= 0) * P[:, None, :]).sum(dim=2), (step * N[:, None, :]).sum(dim=2)
        1 - ((positives / (positives + negatives) * P).nan_to_num().sum(dim=1) / P.sum(dim=1)).mean()

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> sup_ap(embeddings, torch.tensor([0, 0, 1]))
        tensor(0.4628)
    """
    return call_pair_loss(
        SupAPLoss,
        (embeddings, labels, references, reference_labels, relation),
        temperature=temperature,
        rho=rho,
        delta=delta,
        offset=offset,
        start=start,
        include_self=include_self,
        similarity=similarity,
        miner=miner,
        reduction=reduction,
        backend=backend,
    )


def roadmap(
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
    positive_margin: float = 0.9,
    negative_margin: float = 0.6,
    calibration_weight: float = 1.0,
    include_self: bool = False,
    similarity: SimilarityLike = "cosine",
    miner: Miner | None = None,
    reduction: Reduction = "mean",
    backend: str = "auto",
) -> Tensor:
    """ROADMAP: equal to the expression below; see `likewise.losses.ROADMAPLoss`.

        d = S[:, None, :] - S[:, :, None]  # of j, for each p
        soft = sigmoid(d / temperature)
        step = where(d > delta, rho * (d - delta) + offset, where(d > 0, start + soft, soft))
        positives, negatives = ((d >= 0) * P[:, None, :]).sum(dim=2), (step * N[:, None, :]).sum(dim=2)
        average = (positives / (positives + negatives) * P).nan_to_num().sum(dim=1) / P.sum(dim=1)
        pull, push = relu(positive_margin - S)[P], relu(S - negative_margin)[N]
        calibration = pull.sum() / (pull > 0).sum().clamp_min(1) + push.sum() / (push > 0).sum().clamp_min(1)
        1 - average.mean() + calibration_weight * calibration

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> roadmap(embeddings, torch.tensor([0, 0, 1]))
        tensor(0.9228)
    """
    return call_pair_loss(
        ROADMAPLoss,
        (embeddings, labels, references, reference_labels, relation),
        temperature=temperature,
        rho=rho,
        delta=delta,
        offset=offset,
        start=start,
        positive_margin=positive_margin,
        negative_margin=negative_margin,
        calibration_weight=calibration_weight,
        include_self=include_self,
        similarity=similarity,
        miner=miner,
        reduction=reduction,
        backend=backend,
    )


def recall_at_k(
    embeddings: Tensor,
    labels: Tensor | None = None,
    references: Tensor | None = None,
    reference_labels: Tensor | None = None,
    *,
    relation: RelationLike | None = None,
    ks: Sequence[int] = (1, 2, 4, 8, 16),
    temperature: float = 0.01,
    k_temperature: float = 1.0,
    include_self: bool = False,
    similarity: SimilarityLike = "cosine",
    miner: Miner | None = None,
    reduction: Reduction = "mean",
    backend: str = "auto",
) -> Tensor:
    """Recall@k surrogate: equal to the expression below; see `likewise.losses.RecallAtKLoss`.

        over = sigmoid((S[:, None, :] - S[:, :, None]) / temperature) * (P | N)[:, None, :]
        rank = 0.5 + over.sum(dim=2)
        recall = 0
        for k in ks:
            k = min(k, len(S))
            hits = (sigmoid((k - rank) / k_temperature) * P).sum(dim=1)
            recall = recall + (hits.clamp_max(k) / P.sum(dim=1).clamp_max(k)).mean() / len(ks)
        1 - recall

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> recall_at_k(embeddings, torch.tensor([0, 0, 1]), ks=(1,))
        tensor(0.6155)
    """
    return call_pair_loss(
        RecallAtKLoss,
        (embeddings, labels, references, reference_labels, relation),
        ks=tuple(ks),
        temperature=temperature,
        k_temperature=k_temperature,
        include_self=include_self,
        similarity=similarity,
        miner=miner,
        reduction=reduction,
        backend=backend,
    )


def pnp(
    embeddings: Tensor,
    labels: Tensor | None = None,
    references: Tensor | None = None,
    reference_labels: Tensor | None = None,
    *,
    relation: RelationLike | None = None,
    variant: str = "O",
    alpha: float = 1.0,
    b: float = 2.0,
    temperature: float = 0.01,
    include_self: bool = False,
    similarity: SimilarityLike = "cosine",
    miner: Miner | None = None,
    reduction: Reduction = "mean",
    backend: str = "auto",
) -> Tensor:
    """PNP: equal to the expression below; see `likewise.losses.PNPLoss`.

        over = sigmoid((S[:, None, :] - S[:, :, None]) / temperature) * N[:, None, :]
        n = over.sum(dim=2)  # the penalty of variant "O"; f(n) for the others
        ((n * P).sum(dim=1) / P.sum(dim=1)).mean()

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> pnp(embeddings, torch.tensor([0, 0, 1]))
        tensor(0.5000)
    """
    return call_pair_loss(
        PNPLoss,
        (embeddings, labels, references, reference_labels, relation),
        variant=variant,
        alpha=alpha,
        b=b,
        temperature=temperature,
        include_self=include_self,
        similarity=similarity,
        miner=miner,
        reduction=reduction,
        backend=backend,
    )


def ndcg(
    embeddings: Tensor,
    labels: Tensor | None = None,
    references: Tensor | None = None,
    reference_labels: Tensor | None = None,
    *,
    relation: RelationLike | None = None,
    temperature: float = 0.01,
    include_self: bool = False,
    similarity: SimilarityLike = "cosine",
    miner: Miner | None = None,
    reduction: Reduction = "mean",
    backend: str = "auto",
) -> Tensor:
    """NDCG: equal to the expression below; see `likewise.losses.NDCGLoss`.

        over = sigmoid((S[:, None, :] - S[:, :, None]) / temperature) * (P | N)[:, None, :]
        gain = P / log2(1.5 + over.sum(dim=2))  # the relevance of a positive is 1 for classes
        ideal = P.sort(dim=1, descending=True).values / log2(2.0 + arange(S.shape[1]))
        (1 - gain.sum(dim=1) / ideal.sum(dim=1)).mean()

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> ndcg(embeddings, torch.tensor([[0, 0], [1, 0], [2, 1]]))
        tensor(0.1845)
    """
    return call_pair_loss(
        NDCGLoss,
        (embeddings, labels, references, reference_labels, relation),
        temperature=temperature,
        include_self=include_self,
        similarity=similarity,
        miner=miner,
        reduction=reduction,
        backend=backend,
    )
