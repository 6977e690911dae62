"""Neighborhood losses as functions."""

from __future__ import annotations

from torch import Tensor

from likewise.formula import Reduction, RelationLike, SimilarityLike
from likewise.functional._call import call_pair_loss
from likewise.functional._numbers import split_temperature
from likewise.losses import (
    GeneralizedLiftedStructureLoss,
    HardnessWeightedNTXentLoss,
    InstanceLoss,
    NCALoss,
    NPairsLoss,
    NTXentLoss,
    SupConLoss,
    TupletMarginLoss,
)
from likewise.miners import Miner


def generalized_lifted_structure(
    embeddings: Tensor,
    labels: Tensor | None = None,
    references: Tensor | None = None,
    reference_labels: Tensor | None = None,
    *,
    relation: RelationLike | None = None,
    margin: float = 0.5,
    scale: float = 1.0,
    similarity: SimilarityLike = "cosine",
    miner: Miner | None = None,
    reduction: Reduction = "mean",
    backend: str = "auto",
) -> Tensor:
    """Generalized lifted structure: equal to the expression below; see `likewise.losses.GeneralizedLiftedStructureLoss`.

        pull = log((exp(margin - scale * S) * P).sum(dim=1))
        push = log((exp(scale * S) * N).sum(dim=1))
        relu(pull + push).mean()

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> generalized_lifted_structure(embeddings, torch.tensor([0, 0, 1]))
        tensor(0.4800)
    """
    return call_pair_loss(
        GeneralizedLiftedStructureLoss,
        (embeddings, labels, references, reference_labels, relation),
        margin=margin,
        scale=scale,
        similarity=similarity,
        miner=miner,
        reduction=reduction,
        backend=backend,
    )


def n_pairs(
    embeddings: Tensor,
    labels: Tensor | None = None,
    references: Tensor | None = None,
    reference_labels: Tensor | None = None,
    *,
    relation: RelationLike | None = None,
    l2: float = 0.0,
    scale: float = 1.0,
    similarity: SimilarityLike = "dot",
    miner: Miner | None = None,
    reduction: Reduction = "mean",
    backend: str = "auto",
) -> Tensor:
    """N-pairs loss: equal to the expression below; see `likewise.losses.NPairsLoss`.

        push, pull = (exp(scale * S) * N).sum(dim=1), (exp(-scale * S) * P).sum(dim=1)
        log1p(push * pull).mean() + l2 * embeddings.square().sum(dim=1).mean()

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> n_pairs(embeddings, torch.tensor([0, 0, 1]))
        tensor(0.6872)
    """
    return call_pair_loss(
        NPairsLoss,
        (embeddings, labels, references, reference_labels, relation),
        l2=l2,
        scale=scale,
        similarity=similarity,
        miner=miner,
        reduction=reduction,
        backend=backend,
    )


def tuplet_margin(
    embeddings: Tensor,
    labels: Tensor | None = None,
    references: Tensor | None = None,
    reference_labels: Tensor | None = None,
    *,
    relation: RelationLike | None = None,
    margin: float = 5.73,
    scale: float = 64.0,
    similarity: SimilarityLike = "cosine",
    miner: Miner | None = None,
    reduction: Reduction = "mean",
    backend: str = "auto",
) -> Tensor:
    """Tuplet margin loss: equal to the expression below; see `likewise.losses.TupletMarginLoss`.

        negatives = (exp(scale * S) * N).sum(dim=1, keepdim=True)
        log1p(negatives * exp(-scale * cos(arccos(S) - radians(margin))))[P].mean()

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> tuplet_margin(embeddings, torch.tensor([0, 0, 1]))
        tensor(3.3316)
    """
    return call_pair_loss(
        TupletMarginLoss,
        (embeddings, labels, references, reference_labels, relation),
        margin=margin,
        scale=scale,
        similarity=similarity,
        miner=miner,
        reduction=reduction,
        backend=backend,
    )


def nt_xent(
    embeddings: Tensor,
    labels: Tensor | None = None,
    references: Tensor | None = None,
    reference_labels: Tensor | None = None,
    *,
    relation: RelationLike | None = None,
    temperature: float | Tensor = 0.07,
    similarity: SimilarityLike = "cosine",
    miner: Miner | None = None,
    reduction: Reduction = "mean",
    backend: str = "auto",
) -> Tensor:
    """NT-Xent (InfoNCE): equal to the expression below; see `likewise.losses.NTXentLoss`.

        E = exp(S / temperature)
        -log(E / (E + (E * N).sum(dim=1, keepdim=True)))[P].mean()

    A tensor with one number as ``temperature`` gets a gradient.

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> nt_xent(embeddings, torch.tensor([0, 0, 1]))
        tensor(1.2192)
    """
    options, tensors = split_temperature("NTXentLoss", temperature, embeddings)
    return call_pair_loss(
        NTXentLoss,
        (embeddings, labels, references, reference_labels, relation),
        tensors,
        similarity=similarity,
        miner=miner,
        reduction=reduction,
        backend=backend,
        **options,
    )


def sup_con(
    embeddings: Tensor,
    labels: Tensor | None = None,
    references: Tensor | None = None,
    reference_labels: Tensor | None = None,
    *,
    relation: RelationLike | None = None,
    temperature: float | Tensor = 0.1,
    similarity: SimilarityLike = "cosine",
    miner: Miner | None = None,
    reduction: Reduction = "mean",
    backend: str = "auto",
) -> Tensor:
    """Supervised contrastive loss: equal to the expression below; see `likewise.losses.SupConLoss`.

        E = exp(S / temperature) * (P | N)
        log_probability = S / temperature - log(E.sum(dim=1, keepdim=True))
        -((log_probability * P).sum(dim=1) / P.sum(dim=1)).mean()

    A tensor with one number as ``temperature`` gets a gradient.

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> sup_con(embeddings, torch.tensor([0, 0, 1]))
        tensor(0.9554)
    """
    options, tensors = split_temperature("SupConLoss", temperature, embeddings)
    return call_pair_loss(
        SupConLoss,
        (embeddings, labels, references, reference_labels, relation),
        tensors,
        similarity=similarity,
        miner=miner,
        reduction=reduction,
        backend=backend,
        **options,
    )


def nca(
    embeddings: Tensor,
    labels: Tensor | None = None,
    references: Tensor | None = None,
    reference_labels: Tensor | None = None,
    *,
    relation: RelationLike | None = None,
    scale: float = 1.0,
    similarity: SimilarityLike = "squared_euclidean",
    miner: Miner | None = None,
    reduction: Reduction = "mean",
    backend: str = "auto",
) -> Tensor:
    """Neighborhood components analysis: equal to the expression below; see `likewise.losses.NCALoss`.

        E = exp(scale * S)
        -log((E * P).sum(dim=1) / (E * (P | N)).sum(dim=1)).mean()

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> nca(embeddings, torch.tensor([0, 0, 1]))
        tensor(0.6895)
    """
    return call_pair_loss(
        NCALoss,
        (embeddings, labels, references, reference_labels, relation),
        scale=scale,
        similarity=similarity,
        miner=miner,
        reduction=reduction,
        backend=backend,
    )


def hardness_weighted_nt_xent(
    embeddings: Tensor,
    labels: Tensor | None = None,
    references: Tensor | None = None,
    reference_labels: Tensor | None = None,
    *,
    relation: RelationLike | None = None,
    temperature: float = 0.07,
    hardness: float = 9.0,
    similarity: SimilarityLike = "cosine",
    miner: Miner | None = None,
    reduction: Reduction = "mean",
    backend: str = "auto",
) -> Tensor:
    """NT-Xent with negatives weighted by their hardness: equal to the expression below; see `likewise.losses.HardnessWeightedNTXentLoss`.

        E = exp(S / temperature)
        weighted = exp(hardness * S.detach()) * E * N
        -log(E / (E + weighted.sum(dim=1, keepdim=True)))[P].mean()

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> hardness_weighted_nt_xent(embeddings, torch.tensor([0, 0, 1]))
        tensor(6.7721)
    """
    return call_pair_loss(
        HardnessWeightedNTXentLoss,
        (embeddings, labels, references, reference_labels, relation),
        temperature=temperature,
        hardness=hardness,
        similarity=similarity,
        miner=miner,
        reduction=reduction,
        backend=backend,
    )


def instance(
    embeddings: Tensor,
    labels: Tensor | None = None,
    references: Tensor | None = None,
    reference_labels: Tensor | None = None,
    *,
    relation: RelationLike | None = None,
    gamma: float = 64.0,
    similarity: SimilarityLike = "cosine",
    miner: Miner | None = None,
    reduction: Reduction = "mean",
    backend: str = "auto",
) -> Tensor:
    """Instance loss: equal to the expression below; see `likewise.losses.InstanceLoss`.

        log1p((exp(gamma * (S - 1)) * (P | N)).sum(dim=1)).mean()

    Labels are ignored.

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> instance(embeddings, torch.tensor([0, 0, 1]))
        tensor(0.0496)
    """
    return call_pair_loss(
        InstanceLoss,
        (embeddings, labels, references, reference_labels, relation),
        gamma=gamma,
        similarity=similarity,
        miner=miner,
        reduction=reduction,
        backend=backend,
    )
