"""Random triplet miners: distance-weighted or uniform."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from likewise.engines import WholeRows
from likewise.formula import RowChunk, Triplets, hyper, option
from likewise.miners.base import TripletMiner, fill, one_negative_each


@dataclass(frozen=True)
class DistanceWeightedMiner(TripletMiner):
    r"""Draws one negative for each positive pair such that all distances are equally likely.

    A negative at distance $d$ is drawn with a probability proportional to $1/q(\max(d,\text{cutoff}))$, where
    $q(d)\propto d^{\,n-2}(1-d^2/4)^{(n-3)/2}$ is the density of distances on the sphere in $n$ dimensions, and only if
    $d$ is below ``nonzero_loss_cutoff``.  Wu et al. 2017.  Weights are computed as logarithms relative
    to the row's largest, which is accurate in 2 dimensions as well as in 4,096.

    Args:
        cutoff: smaller distances get the weight of this one, which reduces noise from the hardest negatives.  Zero is
            the limit of small cutoffs: in three or more dimensions, a negative equal to the anchor is then always
            drawn.
        nonzero_loss_cutoff: larger distances are not drawn.
        dim: the embeddings' dimension; needed only for a matrix of similarities.
        generator: the random number generator; torch's default one if ``None``.

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> DistanceWeightedMiner().triplets(embeddings, torch.tensor([0, 0, 1]))
        (tensor([0, 1]), tensor([1, 0]), tensor([2, 2]))
    """

    cutoff: float = hyper(
        default=0.5, help="smaller distances are weighted as this one", at_least=0.0, below=2.0, search=(0.1, 1.0)
    )
    nonzero_loss_cutoff: float = hyper(default=1.4, help="larger distances are not drawn", above=0.0, search=(1.0, 2.0))
    dim: int | None = option(default=None, kw_only=True, help="the embeddings' dimension")
    generator: torch.Generator | None = option(default=None, kw_only=True, help="random number generator")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.dim is not None and (not isinstance(self.dim, int) or self.dim < 2):
            raise ValueError(f"DistanceWeightedMiner: dim must be a whole number ≥ 2 or None, but it is {self.dim!r}")
        if self.cutoff >= self.nonzero_loss_cutoff:
            raise ValueError(
                f"DistanceWeightedMiner: cutoff must be below nonzero_loss_cutoff, {self.nonzero_loss_cutoff}, "
                f"but it is {self.cutoff}"
            )

    def mine(self, chunk: RowChunk) -> Triplets:
        """Draw by inverting each row's cumulative weights."""
        S, (positive, negative), batch = chunk.similarities, chunk.masks(), chunk.batch
        assert batch.similarity is not None
        dim = self.dim if batch.anchors is None else batch.anchors.shape[1]
        if dim is None:
            raise ValueError(
                "dim must be given where DistanceWeightedMiner mines a matrix of similarities, but it is None"
            )
        distances = batch.similarity.distances(S.double())
        weights = self.weights(distances, negative, dim)
        running = weights.cumsum(dim=1)
        candidate = chunk.candidates(positive)
        drawn = torch.rand(candidate.shape, dtype=torch.float64, device=S.device, generator=self.generator)
        chosen = torch.searchsorted(running, drawn * running[:, -1:], right=True).clamp_max(S.shape[1] - 1)
        return one_negative_each(candidate, chosen, positive.gather(1, candidate) & (weights.gather(1, chosen) > 0.0))

    def weights(self, distances: Tensor, negative: Tensor, dim: int) -> Tensor:
        """Unnormalized probabilities ``(m, n)`` of each negative, the largest of a row being one.

        Examples:
            >>> import torch
            >>> DistanceWeightedMiner().weights(torch.tensor([[0.6, 1.2]]), torch.tensor([[True, True]]), dim=3)
            tensor([[1.0000, 0.5000]])
        """
        # the logarithm of the smallest number is finite, and it outweighs every other distance, as that of zero would
        d = distances.clamp(min=max(self.cutoff, torch.finfo(distances.dtype).tiny), max=2.0)
        # in place, because a large batch would otherwise take a dozen matrices of doubles
        inside = d.square().div_(-4.0).add_(1.0).clamp_min_(torch.finfo(d.dtype).tiny)
        log_weights = d.log_().mul_(2.0 - dim).add_(inside.log_(), alpha=0.5 * (3.0 - dim))
        eligible = negative & (distances < self.nonzero_loss_cutoff)  # NaN is not below the cutoff
        log_weights = fill(log_weights, eligible.logical_not_(), -torch.inf)
        peak = log_weights.amax(dim=1, keepdim=True)
        return log_weights.sub_(peak.masked_fill_(peak == -torch.inf, 0.0)).exp_()


@dataclass(frozen=True)
class RandomMiner(TripletMiner):
    """Draws triplets uniformly and with replacement from all triplets of the batch.

    Args:
        n: the number of triplets.
        generator: the random number generator; torch's default one if ``None``.

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> miner = RandomMiner(2, generator=torch.Generator().manual_seed(0))
        >>> [len(index) for index in miner.triplets(embeddings, torch.tensor([0, 0, 1]))]
        [2, 2, 2]
    """

    n: int = hyper(default=100, help="number of triplets", at_least=1, search=(100, 10_000), log=True)
    generator: torch.Generator | None = option(default=None, kw_only=True, help="random number generator")

    def mine(self, chunk: RowChunk) -> Triplets:
        """Draw anchors in proportion to their triplets, then a positive and a negative of each."""
        positive, negative = chunk.masks()
        positives, negatives = positive.sum(dim=1), negative.sum(dim=1)
        anchors, u, valid = self._draw(positives, negatives)
        return Triplets(
            anchors,
            _take_member(positive, anchors, positives[anchors], u[1]),
            _take_member(negative, anchors, negatives[anchors], u[2]),
            valid,
        )

    def choose(self, rows: WholeRows) -> Triplets:
        """Draw anchors from the whole batch."""
        return rows.choose(self.mine, lambda: self._choose_in_chunks(rows))

    def _choose_in_chunks(self, rows: WholeRows) -> Triplets:
        """Count the pairs of each chunk, draw anchors, then pick their positives and negatives."""
        with torch.no_grad():
            counted = [tuple(mask.sum(dim=1) for mask in chunk.masks()) for chunk in rows.chunks()]
            positives, negatives = (torch.cat(each) for each in zip(*counted, strict=True))
            anchors, u, valid = self._draw(positives, negatives)
            chosen = torch.zeros(2, len(anchors), dtype=torch.int64, device=anchors.device)
            for chunk in rows.chunks():
                first, end = chunk.rows.start, chunk.rows.stop
                inside = (anchors >= first) & (anchors < end)
                here = (anchors - first).clamp(0, end - first - 1)
                for i, (mask, number) in enumerate(zip(chunk.masks(), (positives, negatives), strict=True)):
                    picked = _take_member(mask, here, number[anchors], u[i + 1])
                    chosen[i] = torch.where(inside, picked, chosen[i])
            return rows.compact(Triplets(anchors, chosen[0], chosen[1], valid, rows.batch.shape))

    def _draw(self, positives: Tensor, negatives: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Anchors, the random numbers that pick their positives and negatives, and whether there are any triplets."""
        running = (positives * negatives).cumsum(0)
        u = torch.rand(3, self.n, dtype=torch.float64, device=running.device, generator=self.generator)
        anchors = torch.searchsorted(running, (u[0] * running[-1]).long(), right=True).clamp_max(len(running) - 1)
        return anchors, u, (positives * negatives)[anchors] > 0


def _take_member(mask: Tensor, rows: Tensor, number: Tensor, share: Tensor) -> Tensor:
    """The member of each row's mask at a fraction between 0 and 1 of its members."""
    # sort the members of a row to the front, then take the k-th of them
    members = mask.to(torch.uint8).argsort(dim=1, descending=True, stable=True)
    k = torch.minimum((share * number).long(), number - 1).clamp_min(0)
    return members[rows, k]
