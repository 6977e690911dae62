"""Random triplet miners: distance-weighted or uniform."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from likewise.engines import WholeRows
from likewise.formula import RowChunk, Triplets, hyper, option
from likewise.miners.base import TripletMiner, fill

if TYPE_CHECKING:
    from typing import Self


@dataclass(frozen=True, eq=False)
class GivenNumbers:
    """Replaces a random number generator by numbers that were drawn before.

    Args:
        numbers: between 0 and 1.
    """

    numbers: Tensor


class DrawingMiner(TripletMiner):
    """A miner that draws.

    A CUDA graph gets the numbers of each call as an input, so that replays and second derivatives use them.
    """

    generator: torch.Generator | GivenNumbers | None

    @abstractmethod
    def find_draw_shape(self, m: int, n: int) -> tuple[int, ...]:
        """Return the shape of the numbers for a matrix ``(m, n)``, where no number of positives is read from a device."""

    def draw(self, m: int, n: int, device: torch.device) -> Tensor:
        """Draw the numbers for a matrix ``(m, n)``.

        Examples:
            >>> RandomMiner(5).draw(2, 2, torch.device("cpu")).shape
            torch.Size([3, 5])
        """
        return self._draw_uniform(self.find_draw_shape(m, n), device)

    def with_numbers(self, numbers: Tensor) -> Self:
        """Return the miner that uses numbers from `draw`."""
        return replace(self, generator=GivenNumbers(numbers))  # type: ignore[type-var]

    def _draw_uniform(self, shape: tuple[int, ...], device: torch.device) -> Tensor:
        """Float64 numbers between 0 and 1."""
        if isinstance(self.generator, GivenNumbers):
            if self.generator.numbers.shape != shape:
                raise ValueError(
                    f"numbers must have the shape {shape}, but it is {tuple(self.generator.numbers.shape)}"
                )
            return self.generator.numbers
        return torch.rand(shape, dtype=torch.float64, device=device, generator=self.generator)


@dataclass(frozen=True)
class DistanceWeightedMiner(DrawingMiner):
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
    generator: torch.Generator | GivenNumbers | None = option(
        default=None, kw_only=True, help="random number generator"
    )

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
        S = S.to(torch.promote_types(S.dtype, torch.float32))
        weights = self.weights(batch.similarity.distances(S), negative, dim)
        # the sums of a row must not decrease, and float32 would round more than the smallest weights
        running = weights.cumsum(dim=1, dtype=torch.float64)
        candidates = chunk.candidates(positive)
        drawn = self._draw_uniform(tuple(candidates.index.shape), S.device)
        chosen = torch.searchsorted(running, drawn * running[:, -1:], right=True).clamp_max_(S.shape[1] - 1)
        return Triplets.of_rows(candidates.index, chosen, candidates.mask & (weights.gather(1, chosen) > 0.0))

    def find_draw_shape(self, m: int, n: int) -> tuple[int, ...]:
        """A number for each pair, because each may be positive."""
        return m, n

    def weights(self, distances: Tensor, negative: Tensor, dim: int) -> Tensor:
        """Probabilities ``(m, n)`` of each negative; zero in a row without one to draw.

        Examples:
            >>> import torch
            >>> DistanceWeightedMiner().weights(torch.tensor([[0.6, 1.2]]), torch.tensor([[True, True]]), dim=3)
            tensor([[0.6667, 0.3333]])
        """
        # finite logarithms of the smallest number and of the distance 2 outweigh those of every other distance, as infinite ones would
        tiny = torch.finfo(distances.dtype).tiny
        d = distances.clamp(min=max(self.cutoff, tiny), max=2.0)
        # in place, because a large batch would otherwise take ten matrices
        log_inside = d.square().mul_(-0.25).log1p_().clamp_min_(math.log(tiny))
        log_weights = d.log_().mul_(2.0 - dim).add_(log_inside, alpha=0.5 * (3.0 - dim))
        eligible = negative & (distances < self.nonzero_loss_cutoff)  # NaN is not below the cutoff
        return fill(log_weights, eligible.logical_not_(), -torch.inf).softmax(dim=1).nan_to_num_(0.0)


@dataclass(frozen=True)
class RandomMiner(DrawingMiner):
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
    generator: torch.Generator | GivenNumbers | None = option(
        default=None, kw_only=True, help="random number generator"
    )

    def mine(self, chunk: RowChunk) -> Triplets:
        """Draw anchors in proportion to their triplets, then a positive and a negative of each."""
        positive, negative = chunk.masks()
        positives, negatives = positive.sum(dim=1), negative.sum(dim=1)
        anchors, u, valid = self._draw(positives, negatives)
        return Triplets(
            anchors,
            _take_member(positive, anchors, positives, u[1]),
            _take_member(negative, anchors, negatives, u[2]),
            valid,
        )

    def find_draw_shape(self, m: int, n: int) -> tuple[int, ...]:
        """Three numbers for each triplet."""
        return 3, self.n

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
                    picked = _take_member(mask, here, number[first:end], u[i + 1])
                    chosen[i] = torch.where(inside, picked, chosen[i])
            return rows.compact(Triplets(anchors, chosen[0], chosen[1], valid, rows.batch.shape))

    def _draw(self, positives: Tensor, negatives: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Anchors, the random numbers that pick their positives and negatives, and whether there are any triplets."""
        running = (positives * negatives).cumsum(0)
        u = self._draw_uniform((3, self.n), running.device)
        anchors = torch.searchsorted(running, (u[0] * running[-1]).long(), right=True).clamp_max(len(running) - 1)
        return anchors, u, (positives * negatives)[anchors] > 0


def _take_member(mask: Tensor, rows: Tensor, number: Tensor, share: Tensor) -> Tensor:
    """The members of chosen rows of a mask at fractions between 0 and 1 of their numbers of members.

    Args:
        mask: booleans, ``(m, n)``.
        rows: indices of rows, ``(t,)``.
        number: how many members each row of the mask has, ``(m,)``.
        share: the fractions, ``(t,)``.
    """
    members = number[rows]
    k = torch.minimum((share * members).long(), members - 1)
    # the rank of the member among those of all rows; for a row without members any place, which the caller ignores
    rank = (number.cumsum(0) - number)[rows] + k
    place = torch.searchsorted(mask.flatten().cumsum(0), rank, right=True)
    return place.clamp_max_(mask.numel() - 1) % mask.shape[1]
