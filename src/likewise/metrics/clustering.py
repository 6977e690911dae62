"""Clustering scores: how well k-means clusters of the embeddings agree with the classes.

The scores are functions of the contingency table, the counts ``n_ij`` of class i in cluster j.  They do not use
scikit-learn, because its expected mutual information iterates over all pairs of a class and a cluster, which takes 24
seconds with the 11,316 classes of Stanford Online Products; the expectation depends only on the *sizes* of the two, and
there are few distinct sizes.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from likewise.formula import Cosine
from likewise.metrics.arrays import Array, check_embeddings, check_labels
from likewise.metrics.chunks import MEMORY
from likewise.metrics.kmeans import kmeans
from likewise.metrics.prepared_rows import PreparedRows


def clustering(
    embeddings: Array,
    labels: Array,
    seed: int = 0,
    *,
    normalize: bool = True,
    iterations: int = 100,
    memory: int = MEMORY,
) -> dict[str, float]:
    """Compute NMI, AMI and pairwise F1 of k-means clusters, with one cluster per class.

    The embeddings are scaled to unit length first, as is usual in the field; ``normalize=False`` clusters them
    unchanged.  k-means runs once, from k-means++ seeds, on the device of the embeddings, and gives the same clusters
    for the same seed.  The scores vary by a point or more between seeds; report several.

    Args:
        embeddings: floats ``(n, d)``, on any device.
        labels: integers ``(n,)``: any dtype, any ids.
        seed: the seed of the k-means++ draws.
        normalize: scale the embeddings to unit length first.
        iterations: the maximum number of k-means iterations.
        memory: bytes that the distances may take at once.

    Returns:
        ``"NMI"``, ``"AMI"`` and ``"F1"`` as fractions, defined in `clustering_scores`.

    Examples:
        >>> import torch
        >>> clustering(torch.tensor([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]]), torch.tensor([5, 5, -2, -2]))
        {'NMI': 1.0, 'AMI': 1.0, 'F1': 1.0}
    """
    checked = check_embeddings(embeddings, None, Cosine())
    points = checked.queries
    classes = check_labels("labels", labels, len(points), points.device, "embeddings")
    if normalize:
        rows = PreparedRows(points, None, Cosine(), checked.dtype)
        rows.cache()
        points = rows.take(0, len(rows))
    clusters = kmeans(points, len(torch.unique(classes)), seed=seed, iterations=iterations, memory=memory)
    return clustering_scores(classes, clusters.assignments)


def clustering_scores(labels: Array, clusters: Array) -> dict[str, float]:
    r"""Compute NMI, AMI and pairwise F1 of two partitions of the same samples.

    With the mutual information $I$ of class and cluster, their entropies $H$, and $E[I]$ the expectation of $I$ over
    random partitions with the same sizes (Vinh et al. 2010):

    - NMI: $I / \tfrac12 (H_\text{class} + H_\text{cluster})$;
    - AMI: $(I - E[I]) / (\tfrac12 (H_\text{class} + H_\text{cluster}) - E[I])$, about zero for random clusters;
    - F1: $2\,TP / (2\,TP + FP + FN)$ over all pairs of samples: a pair in one cluster is predicted positive, a pair of
      one class is positive (Oh Song et al. 2016); counted in integers.

    Partitions that differ only in names score one in all three, including the cases where a formula is 0/0: one class
    in one cluster, or singletons in both.  A partition into one set scores zero in NMI and AMI against a finer one, and
    a partition into singletons scores zero in F1 against a coarser one.

    Args:
        labels: the class of each sample, integers ``(n,)``: any dtype, any ids.
        clusters: the cluster of each sample, integers ``(n,)``: any dtype, any ids.

    Returns:
        ``"NMI"``, ``"AMI"`` and ``"F1"`` as fractions.

    Examples:
        >>> import torch
        >>> scores = clustering_scores(torch.tensor([0, 0, 0, 1, 1, 1]), torch.tensor([7, 7, 9, 9, 9, 9]))
        >>> {name: round(score, 4) for name, score in scores.items()}
        {'NMI': 0.4787, 'AMI': 0.3552, 'F1': 0.6154}
    """
    classes = check_labels("labels", labels, None, None, "samples").cpu()
    assignments = check_labels("clusters", clusters, len(classes), None, "labels").cpu()
    if not len(classes):
        raise ValueError("labels must have at least one entry, but it is empty")
    table = _count_cells(classes, assignments)
    if len(table.cells) == len(table.classes) == len(table.clusters):
        return {"NMI": 1.0, "AMI": 1.0, "F1": 1.0}
    return {"NMI": _nmi(table), "AMI": _ami(table), "F1": _f1(table)}


@dataclass(frozen=True)
class _Table:
    """A sparse contingency table: the nonzero counts of a class in a cluster, and the sizes of classes and clusters."""

    cells: Tensor
    cell_classes: Tensor
    cell_clusters: Tensor
    classes: Tensor
    clusters: Tensor

    @property
    def total(self) -> int:
        return int(self.classes.sum())


def _count_cells(classes: Tensor, clusters: Tensor) -> _Table:
    _, class_codes, class_sizes = torch.unique(classes, return_inverse=True, return_counts=True)
    _, cluster_codes, cluster_sizes = torch.unique(clusters, return_inverse=True, return_counts=True)
    width = len(cluster_sizes)
    # codes are small for any ids, so the product cannot overflow
    cells, counts = torch.unique(class_codes * width + cluster_codes, return_counts=True)
    return _Table(counts, cells // width, cells % width, class_sizes, cluster_sizes)


def _count_pairs(counts: Tensor) -> int:
    return int((counts * (counts - 1) // 2).sum())


def _f1(table: _Table) -> float:
    # 2 TP + FP + FN is the number of pairs of one class plus the number of pairs of one cluster
    total = _count_pairs(table.classes) + _count_pairs(table.clusters)
    return 2 * _count_pairs(table.cells) / total


def _entropy(counts: Tensor) -> float:
    probabilities = counts.double() / counts.sum()
    return float(-(probabilities * probabilities.log()).sum())


def _information(table: _Table) -> float:
    cells = table.cells.double()
    expected = table.classes[table.cell_classes].double() * table.clusters[table.cell_clusters].double() / table.total
    # rounding may give a negative number
    return max(0.0, float((cells * (cells / expected).log()).sum() / table.total))


def _nmi(table: _Table) -> float:
    # the entropies are not both zero: two partitions into one set are equal, which `clustering_scores` returns earlier
    return 2.0 * _information(table) / (_entropy(table.classes) + _entropy(table.clusters))


def _ami(table: _Table) -> float:
    if len(table.classes) == 1 or len(table.clusters) == 1:
        return 0.0
    expected = _expected_information(table.classes, table.clusters, table.total)
    limit = (_entropy(table.classes) + _entropy(table.clusters)) / 2.0
    return (_information(table) - expected) / (limit - expected)


def _expected_information(classes: Tensor, clusters: Tensor, total: int) -> float:
    """The mean mutual information over all random partitions with classes and clusters of these sizes.

    The count of a class of size a in a cluster of size b is hypergeometric.  Classes of one size share one term.
    """
    sizes, multiplicity = torch.unique(clusters, return_counts=True)
    result = 0.0
    for size, count in zip(*torch.unique(classes, return_counts=True), strict=True):
        # all possible counts n of all cells (a, b) in one vector: at most `total` entries
        least = (sizes + size - total).clamp_min(1)
        length = sizes.clamp_max(int(size)) - least + 1
        starts = (length.cumsum(0) - length - least).repeat_interleave(length)
        n = (torch.arange(len(starts)) - starts).double()
        a, b = size.double(), sizes.repeat_interleave(length).double()
        log_p = _log_factorial(a) + _log_factorial(b) + _log_factorial(total - a) + _log_factorial(total - b)
        log_p = log_p - _log_factorial(torch.tensor(float(total), dtype=torch.float64)) - _log_factorial(n)
        log_p = log_p - _log_factorial(a - n) - _log_factorial(b - n) - _log_factorial(total - a - b + n)
        terms = n / total * (total * n / (a * b)).log() * log_p.exp()
        result += float(count * (terms * multiplicity.repeat_interleave(length)).sum())
    return result


def _log_factorial(numbers: Tensor) -> Tensor:
    return torch.lgamma(numbers + 1.0)
