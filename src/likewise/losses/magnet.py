"""Magnet loss: samples against the means of the batch's clusters."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from likewise.formula import (
    Declaration,
    Labels,
    Levels,
    MatrixLoss,
    PairBatch,
    RowChunk,
    RowMapper,
    Similarity,
    SquaredEuclidean,
    TermValues,
    hyper,
)
from likewise.losses.base import LabelKind, PairLoss

LEAST_VARIANCE = 1e-6
"""The smallest variance that distances are divided by; the variance of collapsed clusters is zero."""


class MagnetLoss(PairLoss):
    r"""Magnet loss: pulls a sample closer to the mean of its cluster than to the clusters of other classes.

    $$\Bigl[\frac{\lVert e_i-\mu_i\rVert^2}{2\sigma^2}+\alpha+\log\sum_{c:\,y(c)\ne y_i}
    e^{-\lVert e_i-\mu_c\rVert^2/2\sigma^2}\Bigr]_+,\qquad
    \sigma^2=\frac1{B-1}\sum_i\lVert e_i-\mu_i\rVert^2$$

    per sample. $\mu_c$ is the mean of the samples of cluster c in the batch, $\mu_i$ that of the sample's cluster, and
    $y$ a class; other clusters of the sample's class are ignored.  Rippel et al. 2016, Eq. 4 with the statistics of the
    batch, and $\sigma^2\ge10^{-6}$. The gradient flows through the means and the variance.  Embeddings are unit
    vectors, as everywhere in the library; ``SquaredEuclidean(normalize=False)`` is the paper's choice.

    Labels of shape ``(n, 2)`` contain a cluster, numbered over all classes, and its class, as returned by
    `likewise.data.MagnetSampler`; with labels of shape ``(n,)`` each class is one cluster.

    Args:
        alpha: the gap α between clusters of different classes.

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> MagnetLoss()(embeddings, torch.tensor([0, 0, 1]))
        tensor(0.3667)
        >>> MagnetLoss()(embeddings, torch.tensor([[0, 0], [1, 0], [2, 1]]))
        tensor(0.)
    """

    alpha: float = hyper(default=1.0, help="gap between clusters of different classes", search=(0.0, 10.0))
    similarity = "squared_euclidean"
    takes_references: ClassVar[bool] = False
    similarities: ClassVar[tuple[type[Similarity], ...] | None] = (SquaredEuclidean,)
    label_kind: ClassVar[LabelKind] = "levels"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.miner is not None:
            raise ValueError(
                f"MagnetLoss: miner must be None, because means are those of clusters, but it is {self.miner!r}"
            )

    def declare(self) -> Declaration:
        """A squared distance to a mean is a mean of squared distances, minus half of that within the cluster."""
        return MatrixLoss(self._compute)

    def _compute(self, batch: PairBatch, rows: RowMapper) -> list[TermValues]:
        if not isinstance(batch.relation, Labels | Levels):
            raise TypeError(
                "relation must be None, Labels or Levels for MagnetLoss, which needs the cluster of all samples"
            )
        assert batch.labels is not None
        labels = batch.gather(batch.labels)
        if labels.ndim == 2 and labels.shape[1] > 2:
            raise ValueError(f"labels must have a column of clusters and one of classes, but have {labels.shape[1]}")
        of_sample, of_class = (labels, labels) if labels.ndim == 1 else (labels[:, 0], labels[:, -1])
        # an index for each cluster, below the number of samples, that does not require counting the clusters
        clusters = torch.searchsorted(of_sample.contiguous().sort().values, of_sample.contiguous())
        sizes = torch.zeros_like(clusters).index_add(0, clusters, torch.ones_like(clusters))
        owners = torch.zeros_like(clusters).index_copy(0, clusters, of_class)
        local = slice(None) if batch.local_rows is None else batch.local_rows.local
        own, classes = clusters[local], of_class[local]

        def sum_by_cluster(chunk: RowChunk) -> Tensor:
            S = chunk.similarities
            return torch.zeros_like(S).scatter_add(1, clusters.expand_as(S), S)

        def sum_of_cluster(chunk: RowChunk) -> tuple[Tensor, ...]:
            return (sum_by_cluster(chunk).gather(1, own[chunk.rows, None])[:, 0],)

        [to_own] = rows.map(
            sum_of_cluster
        )  # (m,): minus the sum of the squared distances to the samples of the cluster
        size = sizes.clamp_min(1).to(to_own.dtype)
        within = to_own.new_zeros(len(clusters)).index_add(0, clusters, batch.gather(to_own)) / (2.0 * size)
        variance = -within.sum() / max(len(clusters) - 1, 1)
        steepness = 0.5 / variance.clamp_min(LEAST_VARIANCE)

        def compare(chunk: RowChunk) -> tuple[Tensor, ...]:
            mine = own[chunk.rows]
            logits = steepness * (sum_by_cluster(chunk) - within) / size  # (rows, n): minus squared distances to means
            near = logits.gather(1, mine[:, None])[:, 0].clamp_max(0.0)
            others = (sizes > 0) & (owners != classes[chunk.rows, None])
            counted = others.any(dim=1)
            # a row without other clusters gets a finite entry, whose value is not counted
            far = logits.masked_fill(~(others | ~counted[:, None]), -torch.inf).logsumexp(dim=1)
            value = torch.where(counted, torch.relu(self.alpha - near + far), 0.0)
            return value, counted.long(), (value != 0).long()

        return [TermValues(*rows.map(compare))]
