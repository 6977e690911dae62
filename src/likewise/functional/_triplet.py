"""Losses on triplets, quadruplets and positive pairs with their negatives, as functions."""

from __future__ import annotations

from torch import Tensor

from likewise.formula import Reduction, RelationLike, SimilarityLike
from likewise.functional._call import call_pair_loss, find_pair_loss
from likewise.functional._numbers import check_tensor, split_beta
from likewise.losses import (
    AngularLoss,
    CentroidTripletLoss,
    DynamicSoftMarginLoss,
    LiftedStructureLoss,
    MarginLoss,
    QuadrupletLoss,
    QuadrupletWiseLoss,
    TripletLoss,
)
from likewise.miners import Miner


def triplet(
    embeddings: Tensor,
    labels: Tensor | None = None,
    references: Tensor | None = None,
    reference_labels: Tensor | None = None,
    *,
    relation: RelationLike | None = None,
    margin: float = 0.1,
    soft: bool = False,
    similarity: SimilarityLike = "cosine",
    miner: Miner | None = None,
    reduction: Reduction = "nonzero",
    backend: str = "auto",
) -> Tensor:
    """Triplet loss over all or mined triplets: equal to the expression below; see `likewise.losses.TripletLoss`.

        violation = relu(S[:, None, :] - S[:, :, None] + margin)
        violation = violation[P[:, :, None] & N[:, None, :]]
        violation[violation > 0].mean()

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> triplet(embeddings, torch.tensor([0, 0, 1]))
        tensor(0.2600)
    """
    return call_pair_loss(
        TripletLoss,
        (embeddings, labels, references, reference_labels, relation),
        margin=margin,
        soft=soft,
        similarity=similarity,
        miner=miner,
        reduction=reduction,
        backend=backend,
    )


def margin(
    embeddings: Tensor,
    labels: Tensor | None = None,
    references: Tensor | None = None,
    reference_labels: Tensor | None = None,
    *,
    relation: RelationLike | None = None,
    margin: float = 0.2,
    beta: float | Tensor = 1.2,
    nu: float = 0.0,
    similarity: SimilarityLike = "euclidean",
    miner: Miner | None = None,
    reduction: Reduction = "nonzero",
    backend: str = "auto",
) -> Tensor:
    """Margin loss over all or mined triplets: equal to the expression below; see `likewise.losses.MarginLoss`.

        triplets = P[:, :, None] & N[:, None, :]
        pull = relu(margin - S - beta)[:, :, None].expand(triplets.shape)[triplets]
        push = relu(margin + beta + S)[:, None, :].expand(triplets.shape)[triplets]
        terms = cat([pull, push])
        terms[terms > 0].mean() + nu * beta

    A tensor as ``beta``, with one number or one for each class of the anchor, gets a gradient.

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> margin(embeddings, torch.tensor([0, 0, 1]))
        tensor(0.8114)
    """
    options, tensors = split_beta(beta, embeddings)
    return call_pair_loss(
        MarginLoss,
        (embeddings, labels, references, reference_labels, relation),
        tensors,
        margin=margin,
        nu=nu,
        similarity=similarity,
        miner=miner,
        reduction=reduction,
        backend=backend,
        **options,
    )


def quadruplet(
    embeddings: Tensor,
    labels: Tensor | None = None,
    references: Tensor | None = None,
    reference_labels: Tensor | None = None,
    *,
    relation: RelationLike | None = None,
    margin1: float = 0.1,
    margin2: float = 0.05,
    similarity: SimilarityLike = "cosine",
    miner: Miner | None = None,
    reduction: Reduction = "nonzero",
    backend: str = "auto",
) -> Tensor:
    """Quadruplet loss: equal to the expression below; see `likewise.losses.QuadrupletLoss`.

        triplets = P[:, :, None] & N[:, None, :]
        three = relu(S[:, None, :] - S[:, :, None] + margin1)[triplets]
        four = relu(S - S[:, :, None, None] + margin2)
        four = four[triplets[:, :, :, None] & triplets[:, :, None, :] & N]
        three[three > 0].mean() + four[four > 0].mean()

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8], [0.0, 1.0]])
        >>> quadruplet(embeddings, torch.tensor([0, 0, 1, 2]))
        tensor(0.3100)
    """
    return call_pair_loss(
        QuadrupletLoss,
        (embeddings, labels, references, reference_labels, relation),
        margin1=margin1,
        margin2=margin2,
        similarity=similarity,
        miner=miner,
        reduction=reduction,
        backend=backend,
    )


def angular(
    embeddings: Tensor,
    labels: Tensor | None = None,
    references: Tensor | None = None,
    reference_labels: Tensor | None = None,
    *,
    relation: RelationLike | None = None,
    alpha: float = 40.0,
    similarity: SimilarityLike = "cosine",
    miner: Miner | None = None,
    reduction: Reduction = "mean",
    backend: str = "auto",
) -> Tensor:
    """Angular loss: equal to the expression below; see `likewise.losses.AngularLoss`.

        t = tan(radians(alpha)) ** 2
        E = exp(4 * t * (S[:, None, :] + S) - 2 * (1 + t) * S[:, :, None])
        log1p((E * N[:, None, :]).sum(dim=2))[P].mean()

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> angular(embeddings, torch.tensor([0, 0, 1]))
        tensor(1.8399)
    """
    return call_pair_loss(
        AngularLoss,
        (embeddings, labels, references, reference_labels, relation),
        alpha=alpha,
        similarity=similarity,
        miner=miner,
        reduction=reduction,
        backend=backend,
    )


def lifted_structure(
    embeddings: Tensor,
    labels: Tensor | None = None,
    references: Tensor | None = None,
    reference_labels: Tensor | None = None,
    *,
    relation: RelationLike | None = None,
    margin: float = 1.0,
    similarity: SimilarityLike = "euclidean",
    miner: Miner | None = None,
    reduction: Reduction = "mean",
    backend: str = "auto",
) -> Tensor:
    """Lifted structure loss: equal to the expression below; see `likewise.losses.LiftedStructureLoss`.

        negatives = (exp(margin + S) * N).sum(dim=1)
        relu(log(negatives[:, None] + negatives) - S)[P].square().mean() / 2

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> lifted_structure(embeddings, torch.tensor([0, 0, 1]))
        tensor(1.5896)
    """
    return call_pair_loss(
        LiftedStructureLoss,
        (embeddings, labels, references, reference_labels, relation),
        margin=margin,
        similarity=similarity,
        miner=miner,
        reduction=reduction,
        backend=backend,
    )


def centroid_triplet(
    embeddings: Tensor,
    labels: Tensor | None = None,
    references: Tensor | None = None,
    reference_labels: Tensor | None = None,
    *,
    relation: RelationLike | None = None,
    margin: float = 0.3,
    similarity: SimilarityLike = "cosine",
    miner: Miner | None = None,
    reduction: Reduction = "mean",
    backend: str = "auto",
) -> Tensor:
    """Centroid triplet loss: equal to the expression below; see `likewise.losses.CentroidTripletLoss`.

        E, classes = normalize(embeddings), labels.unique()
        own = (labels[:, None] == classes).to(E.dtype)
        centers = own.T @ E / own.sum(dim=0)[:, None]
        near = (E - P.to(E.dtype) @ E / P.sum(dim=1, keepdim=True)).square().sum(dim=1, keepdim=True)
        far = (E[:, None] - centers).square().sum(dim=2)
        relu(near - far + margin)[own == 0].mean()

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> centroid_triplet(embeddings, torch.tensor([0, 0, 1]))
        tensor(0.3100)
    """
    return call_pair_loss(
        CentroidTripletLoss,
        (embeddings, labels, references, reference_labels, relation),
        margin=margin,
        similarity=similarity,
        miner=miner,
        reduction=reduction,
        backend=backend,
    )


def dynamic_soft_margin(
    embeddings: Tensor,
    labels: Tensor | None,
    histogram: Tensor,
    references: Tensor | None = None,
    reference_labels: Tensor | None = None,
    *,
    relation: RelationLike | None = None,
    min_val: float = -2.0,
    momentum: float = 0.01,
    similarity: SimilarityLike = "euclidean",
    miner: Miner | None = None,
    reduction: Reduction = "mean",
    backend: str = "auto",
) -> tuple[Tensor, Tensor]:
    """Dynamic soft margin and its new state: equal to the expression below; see `likewise.losses.DynamicSoftMarginLoss`.

        bins = len(histogram)
        q = (S[:, None, :] - S[:, :, None])[P[:, :, None] & N[:, None, :]]
        u = ((q.detach() - min_val) * bins / (2 * abs(min_val))).clamp(0, bins - 1)
        counts = relu(1 - (u[:, None] - torch.arange(bins)).abs()).sum(dim=0)
        momentum = momentum if histogram.any() else 1
        histogram = momentum * counts + (1 - momentum) * histogram
        histogram = histogram / histogram.sum()
        (histogram.cumsum(dim=0)[u.long()] * q).mean(), histogram

    ``histogram``, ``(num_bins,)``, is an argument and part of the result; a training loop starts with zeros and passes
    it to the next call.

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> value, histogram = dynamic_soft_margin(embeddings, torch.tensor([0, 0, 1]), torch.zeros(10))
        >>> value
        tensor(0.0555)
    """
    checked = check_tensor("DynamicSoftMarginLoss: histogram", histogram, None, embeddings).reshape(-1)
    module = find_pair_loss(
        DynamicSoftMarginLoss,
        min_val=min_val,
        num_bins=len(checked),
        momentum=momentum,
        similarity=similarity,
        miner=miner,
        reduction=reduction,
        backend=backend,
    )
    result: tuple[Tensor, Tensor] = module.step(
        embeddings, labels, references, reference_labels, histogram=checked, relation=relation
    )
    return result


def quadruplet_wise(
    embeddings: Tensor,
    labels: Tensor | None = None,
    references: Tensor | None = None,
    reference_labels: Tensor | None = None,
    *,
    relation: RelationLike | None = None,
    margin: float = 0.1,
    similarity: SimilarityLike = "cosine",
    miner: Miner | None = None,
    reduction: Reduction = "nonzero",
    backend: str = "auto",
) -> Tensor:
    """Quadruplet-wise constraints: equal to the expression below; see `likewise.losses.QuadrupletWiseLoss`.

        four = relu(S[N] - S[P][:, None] + margin)
        four[four > 0].mean()

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> quadruplet_wise(embeddings, torch.tensor([0, 0, 1]))
        tensor(0.2600)
    """
    return call_pair_loss(
        QuadrupletWiseLoss,
        (embeddings, labels, references, reference_labels, relation),
        margin=margin,
        similarity=similarity,
        miner=miner,
        reduction=reduction,
        backend=backend,
    )
