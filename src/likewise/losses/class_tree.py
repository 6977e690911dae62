"""Hierarchical triplet loss: the margin of a triplet depends on where its classes meet in a tree of classes."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import torch
from torch import Tensor

from likewise.formula import (
    Declaration,
    PairBatch,
    PerPair,
    Similarity,
    SquaredEuclidean,
    check_classes,
    embeddings_of,
    hyper,
    labels_of,
    option,
    per_triplet,
    relu,
    s,
    s_p,
    unit,
    whole_number,
)
from likewise.losses.base import PairLoss


class ClassTree(NamedTuple):
    """A tree of classes: which classes have merged on each level.

    Args:
        nodes: the node of each class on the levels 1 to L − 1, ``(C, L − 1)``; on level L there is one node.
        thresholds: the distance below which nodes merge on each level, ``(L + 1,)``; that of level 0 is not used.
        spreads: the mean squared distance within each class, ``(C,)``.
    """

    nodes: Tensor
    thresholds: Tensor
    spreads: Tensor


def build_tree(embeddings: Tensor, labels: Tensor, num_classes: int, levels: int) -> ClassTree:
    r"""Build a tree by merging classes that are near each other, level by level.

    The distance of two classes is the mean squared distance of their unit vectors, and $d_0$ is the mean over classes of that
    within a class.  Classes merge on level l if a chain of distances below $d_l=d_0+l\,(4-d_0)/L$ connects them, and all do on
    level L.  Ge et al. 2018 do not say how distances to a merged node are measured; here it is the distance of the
    nearest members.  A class with fewer than two samples has the spread $d_0$.

    Args:
        embeddings: the embeddings of all samples, ``(n, d)``.
        labels: their classes, ``(n,)``.
        num_classes: the number C of classes.
        levels: the number L of levels.
    """
    rows = unit(embeddings.detach().to("cpu", torch.float64))
    labels = labels.to("cpu", torch.int64)
    sums = rows.new_zeros(num_classes, rows.shape[1]).index_add_(0, labels, rows)
    squares = rows.new_zeros(num_classes).index_add_(0, labels, rows.square().sum(dim=1))
    counts = torch.bincount(labels, minlength=num_classes).to(rows.dtype)
    pairs = (counts * (counts - 1.0)).clamp_min(1.0)
    within = 2.0 * (counts * squares - sums.square().sum(dim=1)).clamp_min(0.0) / pairs
    several = counts > 1
    mean_within = within[several].mean() if bool(several.any()) else within.new_zeros(())
    spreads = torch.where(several, within, mean_within)
    steps = torch.arange(levels + 1, dtype=rows.dtype) / levels
    thresholds = mean_within + steps * (4.0 - mean_within)
    size = counts.clamp_min(1.0)
    edges = _spanning_tree(sums / size[:, None], squares / size, counts > 0)
    node, columns, at = torch.arange(num_classes), [], 0
    for level in range(1, levels):
        while at < len(edges) and edges[at][0] < float(thresholds[level]):
            _, left, right = edges[at]
            node[node == node[right]] = node[left].clone()
            at += 1
        columns.append(node.clone())
    nodes = torch.stack(columns, dim=1) if columns else torch.empty(num_classes, 0, dtype=torch.int64)
    return ClassTree(nodes, thresholds, spreads)


def _spanning_tree(means: Tensor, squares: Tensor, exists: Tensor) -> list[tuple[float, int, int]]:
    """The edges of a minimum spanning tree of the classes that exist, by distance, shortest first (Prim 1957)."""
    index = exists.nonzero()[:, 0]
    means, squares = means[index], squares[index]
    nearest, best = torch.zeros(len(index), dtype=torch.int64), means.new_full((len(index),), torch.inf)
    inside, current, edges = torch.zeros(len(index), dtype=torch.bool), 0, []
    for _ in range(len(index) - 1):
        inside[current] = True
        distances = squares + squares[current] - 2.0 * (means @ means[current])
        closer = (distances < best) & ~inside
        best, nearest = torch.where(closer, distances, best), nearest.masked_fill(closer, current)
        current = int(best.masked_fill(inside, torch.inf).argmin())
        edges.append((float(best[current]), int(index[nearest[current]]), int(index[current])))
    return sorted(edges)


class _Labeled(NamedTuple):
    """The classes of this rank's anchors and of all references, and the tree."""

    anchors: Tensor
    references: Tensor
    tree: ClassTree


class HierarchicalTripletLoss(PairLoss):
    r"""Hierarchical triplet loss: triplets whose margin grows with the level on which their classes meet in a tree.

    $$\bigl[d^2_{ap}-d^2_{an}+\beta+d_{H(y_a,y_n)}-s_{y_a}\bigr]_+$$

    mean over all triplets.  H is the level of the tree of classes on which the classes of the anchor and the negative merge,
    $d_l$ the threshold of a level and $s_y$ the mean squared distance within a class.  Ge et al. 2018: their factor
    of one half is left out; distances are squared, as those of the tree are.

    `update` builds the tree from the embeddings of the training set; `likewise.train.train` calls it before each epoch, or as
    often as ``mine_every`` and ``mine_steps`` say.  Before that the margin is β.  The tree is part of the state.  The batches
    of the paper are those of `likewise.data.HardBatchSampler` with ``normalize=False``.

    Args:
        num_classes: the number of classes; labels must be 0 … num_classes − 1.
        margin: the margin β, to which the tree adds.
        levels: the number of levels of the tree.

    Examples:
        >>> import torch
        >>> embeddings, labels = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]]), torch.tensor([0, 0, 1])
        >>> loss = HierarchicalTripletLoss(num_classes=2)
        >>> loss(embeddings, labels)
        tensor(0.2100)
        >>> loss.update(embeddings, labels)
        >>> loss(embeddings, labels)
        tensor(0.3225)
    """

    num_classes: int
    margin: float = hyper(
        default=0.1, help="margin, added to that of the tree", at_least=0.0, search=(0.0, 1.0), step=0.1
    )
    levels: int = option(default=16, kw_only=False, help="levels of the tree of classes")
    similarity = "squared_euclidean"
    takes_references: ClassVar[bool] = False
    similarities: ClassVar[tuple[type[Similarity], ...] | None] = (SquaredEuclidean,)
    mines: ClassVar[bool] = True
    """Whether the trainer calls `update` with the embeddings of all images."""

    nodes: ClassVar[Tensor]
    thresholds: ClassVar[Tensor]
    spreads: ClassVar[Tensor]

    def __post_init__(self) -> None:
        super().__post_init__()
        whole_number("num_classes", self.num_classes, 1)
        whole_number("levels", self.levels, 1)
        self.register_buffer("nodes", torch.zeros(self.num_classes, self.levels - 1, dtype=torch.int64))
        self.register_buffer("thresholds", torch.zeros(self.levels + 1))
        self.register_buffer("spreads", torch.zeros(self.num_classes))

    @torch.no_grad()
    def update(self, embeddings: Tensor, labels: Tensor) -> None:
        """Build the tree; in distributed training, all ranks must pass the same embeddings.

        Args:
            embeddings: the embeddings of the training set, ``(n, d)``.
            labels: their classes, ``(n,)``.
        """
        embeddings = embeddings_of("embeddings", embeddings)
        labels = labels_of("labels", labels, len(embeddings), embeddings.device, "embeddings")
        check_classes(labels, self.num_classes, "node")
        tree = build_tree(embeddings, labels, self.num_classes, self.levels)
        for name, value in tree._asdict().items():
            getattr(self, name).copy_(value)

    def declare(self) -> Declaration:
        """A triplet loss with one margin per pair of classes."""
        margin = PerPair("margin", _margins, self._prepare)
        return per_triplet(relu(s - s_p + (margin + self.margin)))

    def _prepare(self, batch: PairBatch) -> _Labeled:
        if batch.labels is None:
            raise TypeError(
                "labels must be given together with a relation, because margins depend on classes, but they are None"
            )
        check_classes(batch.labels, self.num_classes, "node")
        tree = ClassTree(self.nodes, self.thresholds.to(batch.dtype), self.spreads.to(batch.dtype))
        return _Labeled(batch.labels, batch.gather(batch.labels), tree)


def _margins(labeled: _Labeled, rows: Tensor, columns: Tensor) -> Tensor:
    """Return the threshold of the level on which two classes merge, minus the spread of the anchor's class."""
    nodes, thresholds, spreads = labeled.tree
    left, right = labeled.anchors[rows], labeled.references[columns]
    level = torch.ones_like(left + right)
    for column in nodes.unbind(dim=1):
        level = level + (column[left] != column[right])
    return thresholds[level] - spreads[left]
