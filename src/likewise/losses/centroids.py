"""Centroid triplet loss: samples against the centroids of the batch's classes."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from likewise.formula import (
    Cosine,
    Declaration,
    Labels,
    MatrixLoss,
    PairBatch,
    RowChunk,
    RowMapper,
    Similarity,
    TermValues,
    hyper,
)
from likewise.losses.base import PairLoss


class CentroidTripletLoss(PairLoss):
    r"""Centroid triplet loss: pulls an anchor closer to the centroid of its class than to other classes' centroids.

    $$\bigl[\lVert e_i-c_P\rVert^2-\lVert e_i-c_N\rVert^2+m\bigr]_+$$

    per anchor with a positive and per other class in the batch. $c_P$ is the mean of the anchor's positives, without
    the anchor, and $c_N$ the mean of the samples of the other class; embeddings are unit vectors, centroids are not
    normalized. Wieczorek et al. 2021; their code also leaves one sample out of the other centroids.

    Args:
        margin: the margin m, on squared distances.

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> CentroidTripletLoss()(embeddings, torch.tensor([0, 0, 1]))
        tensor(0.3100)
    """

    margin: float = hyper(default=0.3, help="margin on squared distances", search=(0.0, 1.0), step=0.1)
    takes_references: ClassVar[bool] = False
    similarities: ClassVar[tuple[type[Similarity], ...] | None] = (Cosine,)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.miner is not None:
            raise ValueError(
                f"CentroidTripletLoss: miner must be None, because centroids are those of classes, but it is {self.miner!r}"
            )

    def declare(self) -> Declaration:
        """A squared distance to a centroid is a mean of similarities and the centroid's squared length."""
        return MatrixLoss(self._compute)

    def _compute(self, batch: PairBatch, rows: RowMapper) -> list[TermValues]:
        if not isinstance(batch.relation, Labels):
            raise TypeError(
                "relation must be None or Labels for CentroidTripletLoss, which needs the classes of all samples"
            )
        assert batch.labels is not None
        labels = batch.gather(batch.labels)
        # an index for each class, below the number of samples, that does not require counting the classes
        classes = torch.searchsorted(labels.sort().values, labels)
        sizes = torch.zeros_like(classes).index_add(0, classes, torch.ones_like(classes))
        own = classes if batch.local_rows is None else classes[batch.local_rows.local]

        def sum_by_class(chunk: RowChunk) -> Tensor:
            S = chunk.similarities
            return torch.zeros_like(S).scatter_add(1, classes.expand_as(S), S)

        def sum_of_class(chunk: RowChunk) -> tuple[Tensor, ...]:
            return (sum_by_class(chunk).gather(1, own[chunk.rows, None])[:, 0],)

        [to_own] = rows.map(sum_of_class)  # (m,): the inner product with the sum of the class, itself included
        squares = to_own.new_zeros(len(classes)).index_add(0, classes, batch.gather(to_own))  # of the sum of each class

        def compare(chunk: RowChunk) -> tuple[Tensor, ...]:
            mine, to_class = own[chunk.rows], to_own[chunk.rows]
            positive, _ = chunk.masks()
            others = (sizes[mine] - 1).clamp_min(1).to(to_class.dtype)
            to_positives = torch.where(positive, chunk.similarities, 0.0).sum(dim=1)
            # ‖T − e‖² = ‖T‖² − 2 e·T + e·e, where T is the sum of the class and e·e = e·T − Σ_P s
            near = (squares[mine] - to_class - to_positives) / others.square() - 2.0 * to_positives / others
            size = sizes.clamp_min(1).to(to_class.dtype)
            far = squares / size.square() - 2.0 * sum_by_class(chunk) / size
            exists = (sizes > 0) & (torch.arange(len(sizes), device=sizes.device) != mine[:, None])
            keep = exists & positive.any(dim=1, keepdim=True)
            value = torch.where(keep, torch.relu(near[:, None] - far + self.margin), 0.0)
            return value.sum(dim=1), keep.sum(dim=1), (value != 0).sum(dim=1)

        return [TermValues(*rows.map(compare))]
