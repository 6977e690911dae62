"""Losses on pairs as functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from torch import Tensor

from likewise.formula import Formula, Reduction, RelationLike, Side, SimilarityLike
from likewise.functional._call import call_pair_loss, call_with_function
from likewise.losses import (
    BinomialDevianceLoss,
    CircleLoss,
    ContrastiveLoss,
    IntraPairVarianceLoss,
    MultiSimilarityLoss,
    RAWLoss,
    SNRContrastiveLoss,
    WeightedPairLoss,
)
from likewise.miners import Miner


def contrastive(
    embeddings: Tensor,
    labels: Tensor | None = None,
    references: Tensor | None = None,
    reference_labels: Tensor | None = None,
    *,
    relation: RelationLike | None = None,
    positive_margin: float | None = None,
    negative_margin: float | None = None,
    similarity: SimilarityLike = "cosine",
    miner: Miner | None = None,
    reduction: Reduction = "nonzero",
    backend: str = "auto",
) -> Tensor:
    """Contrastive loss: equal to the expression below; see `likewise.losses.ContrastiveLoss`.

        pull, push = relu(positive_margin - S[P]), relu(S[N] - negative_margin)
        pull[pull > 0].mean() + push[push > 0].mean()

    Margins are 1 and 0.5 by default; those of a distance are distances, 0 and 1.

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> contrastive(embeddings, torch.tensor([0, 0, 1]))
        tensor(0.4800)
    """
    return call_pair_loss(
        ContrastiveLoss,
        (embeddings, labels, references, reference_labels, relation),
        positive_margin=positive_margin,
        negative_margin=negative_margin,
        similarity=similarity,
        miner=miner,
        reduction=reduction,
        backend=backend,
    )


def snr_contrastive(
    embeddings: Tensor,
    labels: Tensor | None = None,
    references: Tensor | None = None,
    reference_labels: Tensor | None = None,
    *,
    relation: RelationLike | None = None,
    positive_margin: float = 0.0,
    negative_margin: float = 1.0,
    regularizer: float = 0.0,
    similarity: SimilarityLike = "snr",
    miner: Miner | None = None,
    reduction: Reduction = "nonzero",
    backend: str = "auto",
) -> Tensor:
    """Contrastive loss on the signal-to-noise distance: equal to the expression below; see `likewise.losses.SNRContrastiveLoss`.

        pull, push = relu(-S[P] - positive_margin), relu(negative_margin + S[N])
        zero_mean = normalize(embeddings).sum(dim=1).abs().mean()
        pull[pull > 0].mean() + push[push > 0].mean() + regularizer * zero_mean

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> snr_contrastive(embeddings, torch.tensor([0, 0, 1]))
        tensor(8.3200)
    """
    return call_pair_loss(
        SNRContrastiveLoss,
        (embeddings, labels, references, reference_labels, relation),
        positive_margin=positive_margin,
        negative_margin=negative_margin,
        regularizer=regularizer,
        similarity=similarity,
        miner=miner,
        reduction=reduction,
        backend=backend,
    )


def intra_pair_variance(
    embeddings: Tensor,
    labels: Tensor | None = None,
    references: Tensor | None = None,
    reference_labels: Tensor | None = None,
    *,
    relation: RelationLike | None = None,
    positive_epsilon: float = 0.01,
    negative_epsilon: float = 0.01,
    similarity: SimilarityLike = "cosine",
    miner: Miner | None = None,
    reduction: Reduction = "mean",
    backend: str = "auto",
) -> Tensor:
    """Intra-pair variance: equal to the expression below; see `likewise.losses.IntraPairVarianceLoss`.

        pull = relu((1 - positive_epsilon) * S[P].mean() - S[P])
        push = relu(S[N] - (1 + negative_epsilon) * S[N].mean())
        pull.square().mean() + push.square().mean()

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> intra_pair_variance(embeddings, torch.tensor([0, 0, 1]))
        tensor(0.0148)
    """
    return call_pair_loss(
        IntraPairVarianceLoss,
        (embeddings, labels, references, reference_labels, relation),
        positive_epsilon=positive_epsilon,
        negative_epsilon=negative_epsilon,
        similarity=similarity,
        miner=miner,
        reduction=reduction,
        backend=backend,
    )


def binomial_deviance(
    embeddings: Tensor,
    labels: Tensor | None = None,
    references: Tensor | None = None,
    reference_labels: Tensor | None = None,
    *,
    relation: RelationLike | None = None,
    alpha: float = 2.0,
    beta: float = 50.0,
    base: float = 0.5,
    similarity: SimilarityLike = "cosine",
    miner: Miner | None = None,
    reduction: Reduction = "mean",
    backend: str = "auto",
) -> Tensor:
    """Binomial deviance: equal to the expression below; see `likewise.losses.BinomialDevianceLoss`.

        pull = (softplus(alpha * (base - S)) * P).sum(dim=1) / P.sum(dim=1)
        push = (softplus(beta * (S - base)) * N).sum(dim=1) / N.sum(dim=1)
        (pull + push).mean()

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> binomial_deviance(embeddings, torch.tensor([0, 0, 1]))
        tensor(14.4408)
    """
    return call_pair_loss(
        BinomialDevianceLoss,
        (embeddings, labels, references, reference_labels, relation),
        alpha=alpha,
        beta=beta,
        base=base,
        similarity=similarity,
        miner=miner,
        reduction=reduction,
        backend=backend,
    )


def multi_similarity(
    embeddings: Tensor,
    labels: Tensor | None = None,
    references: Tensor | None = None,
    reference_labels: Tensor | None = None,
    *,
    relation: RelationLike | None = None,
    alpha: float = 2.0,
    beta: float = 50.0,
    base: float = 0.5,
    similarity: SimilarityLike = "cosine",
    miner: Miner | None = None,
    reduction: Reduction = "mean",
    backend: str = "auto",
) -> Tensor:
    """Multi-similarity loss: equal to the expression below; see `likewise.losses.MultiSimilarityLoss`.

        pull = log1p((exp(-alpha * (S - base)) * P).sum(dim=1)) / alpha
        push = log1p((exp(beta * (S - base)) * N).sum(dim=1)) / beta
        (pull + push).mean()

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> multi_similarity(embeddings, torch.tensor([0, 0, 1]))
        tensor(0.4859)
    """
    return call_pair_loss(
        MultiSimilarityLoss,
        (embeddings, labels, references, reference_labels, relation),
        alpha=alpha,
        beta=beta,
        base=base,
        similarity=similarity,
        miner=miner,
        reduction=reduction,
        backend=backend,
    )


def raw(
    embeddings: Tensor,
    labels: Tensor | None = None,
    references: Tensor | None = None,
    reference_labels: Tensor | None = None,
    *,
    relation: RelationLike | None = None,
    alpha: float = 2.0,
    beta: float = 50.0,
    base: float = 0.5,
    margin: float = 0.1,
    similarity: SimilarityLike = "cosine",
    miner: Miner | None = None,
    reduction: Reduction = "mean",
    backend: str = "auto",
) -> Tensor:
    """Relative and absolute weighting of hard pairs: equal to the expression below; see `likewise.losses.RAWLoss`.

        hardest_positive = S.masked_fill(~P, inf).amin(dim=1, keepdim=True)
        hardest_negative = S.masked_fill(~N, -inf).amax(dim=1, keepdim=True)
        P, N = P & (S - margin < hardest_negative), N & (S + margin > hardest_positive)
        pull = log1p((exp(-alpha * (S - base)) * P).sum(dim=1)) / alpha
        push = log1p((exp(beta * (S - base)) * N).sum(dim=1)) / beta
        (pull + push).mean()

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> raw(embeddings, torch.tensor([0, 0, 1]))
        tensor(0.2262)
    """
    return call_pair_loss(
        RAWLoss,
        (embeddings, labels, references, reference_labels, relation),
        alpha=alpha,
        beta=beta,
        base=base,
        margin=margin,
        similarity=similarity,
        miner=miner,
        reduction=reduction,
        backend=backend,
    )


def circle(
    embeddings: Tensor,
    labels: Tensor | None = None,
    references: Tensor | None = None,
    reference_labels: Tensor | None = None,
    *,
    relation: RelationLike | None = None,
    margin: float = 0.4,
    gamma: float = 80.0,
    similarity: SimilarityLike = "cosine",
    miner: Miner | None = None,
    reduction: Reduction = "mean",
    backend: str = "auto",
) -> Tensor:
    """Circle loss: equal to the expression below; see `likewise.losses.CircleLoss`.

        pull = exp(-gamma * relu(1 + margin - S).detach() * (S - 1 + margin)) * P
        push = exp(gamma * relu(S + margin).detach() * (S - margin)) * N
        log1p(pull.sum(dim=1) * push.sum(dim=1)).mean()

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> circle(embeddings, torch.tensor([0, 0, 1]))
        tensor(28.8648)
    """
    return call_pair_loss(
        CircleLoss,
        (embeddings, labels, references, reference_labels, relation),
        margin=margin,
        gamma=gamma,
        similarity=similarity,
        miner=miner,
        reduction=reduction,
        backend=backend,
    )


def weighted_pair(
    embeddings: Tensor,
    labels: Tensor | None = None,
    references: Tensor | None = None,
    reference_labels: Tensor | None = None,
    *,
    relation: RelationLike | None = None,
    weight_fn: Callable[[Tensor, Mapping[str, Tensor], Tensor], Tensor],
    statistics: Mapping[str, Formula] | None = None,
    needs: tuple[Side, ...] = (),
    similarity: SimilarityLike = "cosine",
    miner: Miner | None = None,
    reduction: Reduction = "mean",
    backend: str = "auto",
) -> Tensor:
    """Weighted pair loss: equal to the expression below; see `likewise.losses.WeightedPairLoss`.

        W = weight_fn(S.detach(), rows, P)
        (W * S * N - W * S * P).sum(dim=1).mean()

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> def weigh_alike(similarities, rows, is_positive):
        ...     return torch.ones_like(similarities)
        >>> weighted_pair(embeddings, torch.tensor([0, 0, 1]), weight_fn=weigh_alike)
        tensor(0.5067)
    """
    return call_with_function(
        WeightedPairLoss,
        (embeddings, labels, references, reference_labels, relation),
        weight_fn=weight_fn,
        statistics=statistics,
        needs=needs,
        similarity=similarity,
        miner=miner,
        reduction=reduction,
        backend=backend,
    )
