"""Clustering scores: how well k-means on the embeddings finds the classes again.

The scores are functions of the table of counts ``n_ij`` of class i in cluster j alone.  They are computed here rather
than by scikit-learn because its expected mutual information walks over all pairs of a class and a cluster, 24 seconds
with the 11,316 classes of Stanford Online Products; the expectation depends on the *sizes* of the two only, and few
sizes are different.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from likewise.formula import Cosine
from likewise.metrics.kmeans import kmeans
from likewise.metrics.ranks import Array
from likewise.metrics.tiles import MEMORY, Rows, labels_from, sides


def clustering(
    embeddings: Array,
    labels: Array,
    seed: int = 0,
    *,
    normalize: bool = True,
    iterations: int = 100,
    memory: int = MEMORY,
) -> dict[str, float]:
    """NMI, AMI and pairwise F1 of k-means clusters, with as many clusters as there are classes.

    The embeddings are scaled to unit length first, which is what the field does; ``normalize=False`` clusters them as
    they are.  k-means runs once, from k-means++ seeds, on the device of the embeddings, and gives the same clusters for
    the same seed.  The scores move by a point or more from seed to seed; report several.

    Args:
        embeddings: floats ``(n, d)``, on any device.
        labels: integers ``(n,)``: any dtype, any ids.
        seed: of the k-means++ draws.
        normalize: scale the embeddings to unit length first.
        iterations: the most k-means iterations to make.
        memory: bytes that the distances may take at once.

    Returns:
        ``"NMI"``, ``"AMI"`` and ``"F1"`` as fractions, defined at `clustering_scores`.

    Examples:
        >>> import torch
        >>> clustering(torch.tensor([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]]), torch.tensor([5, 5, -2, -2]))
        {'NMI': 1.0, 'AMI': 1.0, 'F1': 1.0}
    """
    given = sides(embeddings, None, Cosine())
    codes = labels_from("labels", labels, len(given.queries), given.queries.device, "embeddings")
    points = given.queries
    if normalize:
        rows = Rows(points, None, Cosine(), given.dtype)
        rows.keep()
        points = rows.take(0, len(rows))
    found = kmeans(points, len(torch.unique(codes)), seed=seed, iterations=iterations, memory=memory)
    return clustering_scores(codes, found.assignments)


def clustering_scores(labels: Array, clusters: Array) -> dict[str, float]:
    r"""NMI, AMI and pairwise F1 of two partitions of the same samples.

    With the mutual information $I$ of class and cluster, their entropies $H$, and $E[I]$ the expectation of $I$ over
    random partitions with the same sizes (Vinh et al. 2010):

    - NMI: $I / \tfrac12 (H_\text{class} + H_\text{cluster})$;
    - AMI: $(I - E[I]) / (\tfrac12 (H_\text{class} + H_\text{cluster}) - E[I])$, about zero for chance;
    - F1: $2\,TP / (2\,TP + FP + FN)$ over all pairs of samples, where a pair in one cluster is a positive answer and
      a pair of one class is a right one (Oh Song et al. 2016); counted in integers.

    Partitions that are equal but for the names score one in all three, also where a formula would be 0/0: one class in
    one cluster, or every sample alone in both.  A partition into one part against a finer one has NMI and AMI zero, and
    samples all alone against anything coarser have F1 zero.

    Args:
        labels: the class of each sample, integers ``(n,)``: any dtype, any ids.
        clusters: the cluster of each sample, likewise.

    Examples:
        >>> import torch
        >>> scores = clustering_scores(torch.tensor([0, 0, 0, 1, 1, 1]), torch.tensor([7, 7, 9, 9, 9, 9]))
        >>> {name: round(score, 4) for name, score in scores.items()}
        {'NMI': 0.4787, 'AMI': 0.3552, 'F1': 0.6154}
    """
    classes = labels_from("labels", labels, None, None, "samples").cpu()
    parts = labels_from("clusters", clusters, len(classes), None, "labels").cpu()
    if not len(classes):
        raise ValueError("labels must have at least one entry, but it is empty")
    table = _table(classes, parts)
    if len(table.cells) == len(table.classes) == len(table.clusters):
        return {"NMI": 1.0, "AMI": 1.0, "F1": 1.0}
    return {"NMI": _nmi(table), "AMI": _ami(table), "F1": _f1(table)}


@dataclass(frozen=True)
class _Table:
    """The counts of a class in a cluster that are not zero, and of each class and cluster by itself."""

    cells: Tensor
    cell_classes: Tensor
    cell_clusters: Tensor
    classes: Tensor
    clusters: Tensor

    @property
    def total(self) -> int:
        return int(self.classes.sum())


def _table(classes: Tensor, clusters: Tensor) -> _Table:
    _, class_codes, class_sizes = torch.unique(classes, return_inverse=True, return_counts=True)
    _, cluster_codes, cluster_sizes = torch.unique(clusters, return_inverse=True, return_counts=True)
    width = len(cluster_sizes)
    # codes are small whatever the ids are, so that the product cannot overflow
    cells, counts = torch.unique(class_codes * width + cluster_codes, return_counts=True)
    return _Table(counts, cells // width, cells % width, class_sizes, cluster_sizes)


def _pairs(counts: Tensor) -> int:
    return int((counts * (counts - 1) // 2).sum())


def _f1(table: _Table) -> float:
    # 2 TP + FP + FN is the pairs of one class and the pairs of one cluster together
    together = _pairs(table.classes) + _pairs(table.clusters)
    return 2 * _pairs(table.cells) / together


def _entropy(counts: Tensor) -> float:
    shares = counts.double() / counts.sum()
    return float(-(shares * shares.log()).sum())


def _information(table: _Table) -> float:
    cells = table.cells.double()
    expected = table.classes[table.cell_classes].double() * table.clusters[table.cell_clusters].double() / table.total
    # at least zero but for rounding
    return max(0.0, float((cells * (cells / expected).log()).sum() / table.total))


def _nmi(table: _Table) -> float:
    # the entropies are not both zero: two partitions into one part are equal, and equal ones do not come here
    return 2.0 * _information(table) / (_entropy(table.classes) + _entropy(table.clusters))


def _ami(table: _Table) -> float:
    if len(table.classes) == 1 or len(table.clusters) == 1:
        return 0.0
    expected = _expected_information(table.classes, table.clusters, table.total)
    most = (_entropy(table.classes) + _entropy(table.clusters)) / 2.0
    return (_information(table) - expected) / (most - expected)


def _expected_information(classes: Tensor, clusters: Tensor, total: int) -> float:
    """The mean mutual information over all ways to deal the samples out to classes and clusters of these sizes.

    A cell of a class of size a and a cluster of size b is hypergeometric.  Classes of one size share one term.
    """
    sizes, many = torch.unique(clusters, return_counts=True)
    result = 0.0
    for size, count in zip(*torch.unique(classes, return_counts=True), strict=True):
        # every possible count n of every cell (a, b), one after the other: no more than `total` of them
        least = (sizes + size - total).clamp_min(1)
        length = sizes.clamp_max(int(size)) - least + 1
        starts = (length.cumsum(0) - length - least).repeat_interleave(length)
        n = (torch.arange(len(starts)) - starts).double()
        a, b = size.double(), sizes.repeat_interleave(length).double()
        chance = _log_factorial(a) + _log_factorial(b) + _log_factorial(total - a) + _log_factorial(total - b)
        chance = chance - _log_factorial(torch.tensor(float(total), dtype=torch.float64)) - _log_factorial(n)
        chance = chance - _log_factorial(a - n) - _log_factorial(b - n) - _log_factorial(total - a - b + n)
        terms = n / total * (total * n / (a * b)).log() * chance.exp()
        result += float(count * (terms * many.repeat_interleave(length)).sum())
    return result


def _log_factorial(numbers: Tensor) -> Tensor:
    return torch.lgamma(numbers + 1.0)
