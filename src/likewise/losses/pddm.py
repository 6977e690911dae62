"""PDDM: a learned similarity that depends on where a pair lies, trained on the hardest quadruplet of a batch."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from likewise.formula import (
    OPERATIONS,
    Declaration,
    Euclidean,
    MatrixLoss,
    PairBatch,
    RowChunk,
    RowMapper,
    Similarity,
    TermValues,
    Triplets,
    exactly,
    hyper,
    unit,
    whole_number,
)
from likewise.losses.base import PairLoss

ENTRIES_AT_ONCE = 1 << 22
"""The number of entries of pair differences that are computed at once in the search for the quadruplet."""


class PDDMLoss(PairLoss):
    r"""Position-dependent deep metric: a double-header hinge loss on the hardest quadruplet of the batch.

    $$S_{ij}=W_s\,\rho(W_c[\rho(W_u\hat u+b_u);\rho(W_v\hat v+b_v)]+b_c)+b_s,\quad
    u=|e_i-e_j|,\ v=\tfrac12(e_i+e_j)$$

    is the learned similarity; ρ is the ReLU, and $\hat u$ and $\hat v$ are $u$ and $v$ at unit length.  The hardest quadruplet is the least
    similar positive pair $(i,j)$ of the batch, the negative k most similar to i and the negative l most similar to j, all by S.
    Its loss is

    $$[\alpha+S_{ik}-S_{ij}]_++[\alpha+S_{jl}-S_{ij}]_+
    +\lambda\bigl([\beta+d_{ij}-d_{ik}]_++[\beta+d_{ij}-d_{jl}]_+\bigr)$$

    with $d$ the Euclidean distance of the unit vectors.  Huang et al. 2016; their weight decay is left to the
    optimizer.  Each of the two headers i and j is a unit, so ``reduction="sum"`` is the loss of the paper.

    Args:
        embedding_dim: the dimension of the embeddings and of the hidden layers.
        alpha: the margin α of the learned similarity.
        beta: the margin β of the distance.
        weight: the weight λ of the distance.

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> loss = PDDMLoss(embedding_dim=2)
        >>> loss(embeddings, torch.tensor([0, 0, 1])).requires_grad
        True
        >>> loss.score_pairs(embeddings[:1], embeddings[1:2]).shape
        torch.Size([1])
    """

    embedding_dim: int
    alpha: float = hyper(
        default=0.5, help="margin of the learned similarity", at_least=0.0, search=(0.0, 1.0), step=0.1
    )
    beta: float = hyper(default=1.0, help="margin of the distance", at_least=0.0, search=(0.0, 2.0), step=0.1)
    weight: float = hyper(default=0.5, help="weight of the distance", at_least=0.0, search=(0.0, 2.0), step=0.1)
    similarity = "euclidean"
    reduction = "sum"
    takes_references: ClassVar[bool] = False
    similarities: ClassVar[tuple[type[Similarity], ...] | None] = (Euclidean,)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.miner is not None:
            raise ValueError(
                f"PDDMLoss: miner must be None, because the loss chooses its quadruplet, but it is {self.miner!r}"
            )
        dim = whole_number("embedding_dim", self.embedding_dim, 1)
        self.of_difference, self.of_position = nn.Linear(dim, dim), nn.Linear(dim, dim)
        self.joint, self.score = nn.Linear(2 * dim, dim), nn.Linear(dim, 1)

    def declare(self) -> Declaration:
        """The quadruplet is chosen by the parameters of the loss, so the loss is a function of the batch."""
        return MatrixLoss(self._compute)

    def only_from_embeddings(self) -> str | None:
        """Return the reason: the learned similarity is a function of two embeddings."""
        return "its learned similarity is a function of two embeddings"

    def score_pairs(self, left: Tensor, right: Tensor) -> Tensor:
        """The learned similarity of row k of one side and row k of the other, ``(n,)``."""
        dtype = left.dtype

        def apply(layer: nn.Linear, rows: Tensor) -> Tensor:
            return exactly(nn.functional.linear(rows, layer.weight.to(dtype), layer.bias.to(dtype)))

        difference = torch.relu(apply(self.of_difference, unit((left - right).abs())))
        position = torch.relu(apply(self.of_position, unit(0.5 * (left + right))))
        joint = torch.relu(apply(self.joint, torch.cat([difference, position], dim=1)))
        return apply(self.score, joint)[:, 0]

    def _compute(self, batch: PairBatch, rows: RowMapper) -> list[TermValues]:
        if isinstance(batch.relation, Triplets):
            raise TypeError(
                "a loss on quadruplets is defined on all of a batch and takes no triplets and no triplet miner"
            )
        anchors, references = batch.both_sides()
        assert batch.similarity is not None
        left = batch.similarity.prepare(anchors)
        right = left if references is None else batch.similarity.prepare(references)
        if right.shape[1] != self.embedding_dim:
            raise ValueError(
                f"embeddings must have the {self.embedding_dim} dimensions of the loss, but have {right.shape[1]}"
            )
        with torch.no_grad():
            found = rows.map(lambda chunk: self._find_hardest(chunk, left[chunk.rows], right))
        lowest, positive, negative, has_negative = (batch.gather(each) for each in found)
        i = lowest.argmin().reshape(
            1
        )  # indices are tensors of one entry, so that the host does not wait for the device
        j = positive[i]
        ends = right[torch.cat([i, i, j])], right[torch.cat([j, negative[i], negative[j]])]
        scores = self.score_pairs(*ends)
        distances = OPERATIONS["sqrt"].compute((ends[0] - ends[1]).square().sum(dim=1))
        value = torch.relu(self.alpha + scores[1:] - scores[0])
        value = value + self.weight * torch.relu(self.beta + distances[0] - distances[1:])  # (2,): of i and of j
        first = 0 if batch.local_rows is None else batch.local_rows.offset
        index = torch.arange(first, first + len(left), device=left.device)
        # with labels, j has the negatives of i; with other relations it may have none
        header = (
            (index[:, None] == torch.cat([i, j])) & (lowest[i] < torch.inf) & has_negative[torch.cat([i, j])]
        )  # (m, 2)
        counted = torch.where(header, value, 0.0)
        return [TermValues(counted.sum(dim=1), header.sum(dim=1), (counted != 0).sum(dim=1))]

    def _find_hardest(self, chunk: RowChunk, left: Tensor, right: Tensor) -> tuple[Tensor, ...]:
        """The lowest score of each anchor's positives, which one has it, its highest-scoring negative, and if it has one."""
        positive, negative = chunk.masks()
        number, (n, dim) = max(1, ENTRIES_AT_ONCE // max(right.numel(), 1)), right.shape
        scores = torch.cat(
            [
                self.score_pairs(
                    some[:, None].expand(-1, n, -1).reshape(-1, dim), right.expand(len(some), n, dim).reshape(-1, dim)
                ).view(len(some), n)
                for some in torch.split(left, number)
            ]
        )
        has_negative = negative.any(dim=1)
        lowest, farthest = scores.masked_fill(~positive | ~has_negative[:, None], torch.inf).min(dim=1)
        return lowest, farthest, scores.masked_fill(~negative, -torch.inf).argmax(dim=1), has_negative
