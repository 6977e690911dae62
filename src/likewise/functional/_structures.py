"""Losses on clusters, trees of classes and a learned metric, as functions."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from likewise.formula import Reduction, RelationLike, SimilarityLike
from likewise.functional._call import call_pair_loss
from likewise.losses import HierarchicalTripletLoss, MagnetLoss, PDDMLoss
from likewise.miners import Miner


def magnet(
    embeddings: Tensor,
    labels: Tensor | None = None,
    references: Tensor | None = None,
    reference_labels: Tensor | None = None,
    *,
    relation: RelationLike | None = None,
    alpha: float = 1.0,
    similarity: SimilarityLike = "squared_euclidean",
    miner: Miner | None = None,
    reduction: Reduction = "mean",
    backend: str = "auto",
) -> Tensor:
    """Magnet loss: equal to the expression below, where a class is one cluster; see `likewise.losses.MagnetLoss`.

        E, classes = normalize(embeddings), labels.unique()
        own = (labels[:, None] == classes).to(E.dtype)
        D = (E[:, None] - own.T @ E / own.sum(dim=0)[:, None]).square().sum(dim=2)
        D = D / (2 * D[own == 1].sum() / (E.shape[0] - 1))
        relu(D[own == 1] + alpha + (-D - 1e9 * own).logsumexp(dim=1)).mean()

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> magnet(embeddings, torch.tensor([0, 0, 1]))
        tensor(0.3667)
    """
    return call_pair_loss(
        MagnetLoss,
        (embeddings, labels, references, reference_labels, relation),
        alpha=alpha,
        similarity=similarity,
        miner=miner,
        reduction=reduction,
        backend=backend,
    )


def hierarchical_triplet(
    embeddings: Tensor,
    labels: Tensor,
    nodes: Tensor,
    thresholds: Tensor,
    spreads: Tensor,
    *,
    relation: RelationLike | None = None,
    margin: float = 0.1,
    similarity: SimilarityLike = "squared_euclidean",
    miner: Miner | None = None,
    reduction: Reduction = "mean",
    backend: str = "auto",
) -> Tensor:
    """Hierarchical triplet loss: equal to the expression below; see `likewise.losses.HierarchicalTripletLoss`.

        level = 1 + (nodes[labels][:, None] != nodes[labels]).sum(dim=2)
        margins = margin + thresholds[level] - spreads[labels][:, None]
        violation = relu(S[:, None, :] - S[:, :, None] + margins[:, None, :])
        violation[P[:, :, None] & N[:, None, :]].mean()

    The tree of classes is an argument and consists of the buffers of the class: the node of each class on all levels
    except the last, ``(C, L - 1)``, the thresholds of the levels 0 to L, and the spread of each class.

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> tree = torch.tensor([[0], [1]]), torch.tensor([0.4, 2.2, 4.0]), torch.tensor([0.4, 0.4])
        >>> hierarchical_triplet(embeddings, torch.tensor([0, 0, 1]), *tree)
        tensor(3.6600)
    """
    return call_pair_loss(
        HierarchicalTripletLoss,
        (embeddings, labels, None, None, relation),
        {"nodes": nodes, "thresholds": thresholds, "spreads": spreads},
        num_classes=len(nodes),
        margin=margin,
        levels=len(thresholds) - 1,
        similarity=similarity,
        miner=miner,
        reduction=reduction,
        backend=backend,
    )


def pddm(
    embeddings: Tensor,
    labels: Tensor,
    layers: Mapping[str, Tensor],
    *,
    relation: RelationLike | None = None,
    alpha: float = 0.5,
    beta: float = 1.0,
    weight: float = 0.5,
    similarity: SimilarityLike = "euclidean",
    miner: Miner | None = None,
    reduction: Reduction = "sum",
    backend: str = "auto",
) -> Tensor:
    """Position-dependent deep metric: equal to the expression below; see `likewise.losses.PDDMLoss`.

        E, n = normalize(embeddings), embeddings.shape[0]
        u, v = normalize((E[:, None] - E).abs(), dim=2), normalize((E[:, None] + E) / 2, dim=2)
        u = relu(linear(u, layers["of_difference.weight"], layers["of_difference.bias"]))
        v = relu(linear(v, layers["of_position.weight"], layers["of_position.bias"]))
        c = relu(linear(cat([u, v], dim=2), layers["joint.weight"], layers["joint.bias"]))
        M = linear(c, layers["score.weight"], layers["score.bias"])[:, :, 0]
        i = where(P, M, inf).argmin() // n
        j = where(P, M, inf).argmin() % n
        k, l = where(N, M, -inf)[i].argmax(), where(N, M, -inf)[j].argmax()
        value = relu(alpha + M[i, k] - M[i, j]) + relu(alpha + M[j, l] - M[i, j])
        value + weight * (relu(beta - S[i, j] + S[i, k]) + relu(beta - S[i, j] + S[j, l]))

    The layers are an argument: a mapping from the names of the class's parameters to tensors.

    Examples:
        >>> import torch
        >>> from likewise.losses import PDDMLoss
        >>> embeddings, labels = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]]), torch.tensor([0, 0, 1])
        >>> loss = PDDMLoss(embedding_dim=2)
        >>> bool(pddm(embeddings, labels, dict(loss.named_parameters())) == loss(embeddings, labels))
        True
    """
    return call_pair_loss(
        PDDMLoss,
        (embeddings, labels, None, None, relation),
        dict(layers),
        embedding_dim=layers["score.weight"].shape[1],
        alpha=alpha,
        beta=beta,
        weight=weight,
        similarity=similarity,
        miner=miner,
        reduction=reduction,
        backend=backend,
    )
