"""Triplet miners: choose an anchor, a positive and a negative.

Miners do not loop over anchors.  Inside a loss they do not synchronize with a GPU on a small batch; on a large one the
host reads the largest number of positives.  `SemiHardMiner` with a margin has no fixed number of triplets: losses use it
as a condition, and only ``triplets()``, which enumerates them, synchronizes.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real

import torch
from torch import Tensor

from likewise._compat import is_inside_func
from likewise.engines import WholeRows, count_within
from likewise.formula import (
    NEGATIVES,
    POSITIVES,
    Choice,
    Formula,
    Masks,
    PairBatch,
    Relation,
    Triplets,
    count,
    hyper,
    largest,
    one_of,
    option,
    s,
    s_p,
    smallest,
    where,
)
from likewise.miners.base import TripletMiner, candidates, one_negative_each


def _hardest_below(S: Tensor, negative: Tensor, limit: Tensor) -> tuple[Tensor, Tensor]:
    """For each row and each limit of that row, the most similar negative strictly below it, and whether there is one."""
    ordered, index = S.masked_fill(~negative, -torch.inf).sort(dim=1)
    place = torch.searchsorted(ordered, limit.contiguous()) - 1
    found = (place >= 0) & (ordered.gather(1, place.clamp_min(0)) > -torch.inf)
    return index.gather(1, place.clamp_min(0)), found


_LOWEST = -3e38


def _choose_hardest_below(positive: Formula, exists: Formula | None = None) -> Choice:
    """The same as formulas; negatives that tie at that similarity share the gradient."""
    hardest = largest(where(s < positive, s, _LOWEST), NEGATIVES)
    found = hardest > _LOWEST / 2
    found = found if exists is None else exists & found
    return Choice(positive, where(found, hardest, 0.0), found)


@dataclass(frozen=True)
class SemiHardMiner(TripletMiner):
    r"""Semi-hard negatives: the hardest ones that are less similar than the positive.

    Without a margin, for every positive pair the most similar negative that is less similar than the positive:
    $n_{ap}=\arg\max_{n:\,s_{ap}>s_{an}}s_{an}$, Eq. 2.20 of the thesis.  With a margin λ, every triplet with
    $s_{ap}-\lambda<s_{an}<s_{ap}$.  Schroff et al. 2015.

    Args:
        margin: the margin λ, a number > 0, or ``None``.

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> SemiHardMiner().triplets(embeddings, torch.tensor([0, 0, 1]))
        (tensor([0]), tensor([1]), tensor([2]))
    """

    margin: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.margin is not None and not (isinstance(self.margin, Real) and self.margin > 0.0):
            raise ValueError(f"SemiHardMiner: margin must be a number > 0 or None, but it is {self.margin!r}")

    def mine(self, S: Tensor, positive: Tensor, negative: Tensor, batch: PairBatch) -> Triplets:
        """Sort the negatives of each row once; bisection locates each positive among them."""
        if self.margin is None:
            candidate, exists = candidates(positive)
            chosen, found = _hardest_below(S, negative, S.gather(1, candidate))
            return one_negative_each(candidate, chosen, found & exists)
        ordered, index = S.masked_fill(~negative, -torch.inf).sort(dim=1)
        positives = S.contiguous()
        first = torch.searchsorted(ordered, positives - self.margin, right=True)
        # entries that are not negatives sort first, at minus infinity, below every threshold
        number = (torch.searchsorted(ordered, positives) - first).clamp_min(0).masked_fill(~positive, 0).reshape(-1)
        pair = torch.arange(len(number), device=S.device).repeat_interleave(number)
        offset = torch.arange(len(pair), device=S.device) - (number.cumsum(0) - number)[pair]
        anchors, positives = pair // S.shape[1], pair % S.shape[1]
        return Triplets(anchors, positives, index[anchors, first.reshape(-1)[pair] + offset])

    def choice(self) -> Choice:
        """For each positive the hardest negative below it, or a condition on all negatives."""
        if self.margin is None:
            return _choose_hardest_below(s_p)
        # both similarities explicitly, because torch.compile cannot trace formulas as defaults
        return Choice(s_p, s, (s_p - self.margin < s) & (s < s_p))

    def refine(self, rows: WholeRows) -> Relation:
        """The pairs of the triplets; with a margin the triplets are not enumerated."""
        if self.margin is None or rows.large:
            return self.choose(rows)
        with torch.no_grad():
            [whole] = rows.chunks()
            counts = count_within(whole.similarities.detach(), *whole.masks(), self.margin, below=True)
            return Masks(counts[0] > 0, counts[1] > 0)


@dataclass(frozen=True)
class BatchHardMiner(TripletMiner):
    """The least similar positive and the most similar negative of every anchor.  Hermans et al. 2017, Eq. 5.

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> BatchHardMiner().triplets(embeddings, torch.tensor([0, 0, 1]))
        (tensor([0, 1]), tensor([1, 0]), tensor([2, 2]))
    """

    def mine(self, S: Tensor, positive: Tensor, negative: Tensor, batch: PairBatch) -> Triplets:
        """Two extremes per row."""
        hardest_positive = S.masked_fill(~positive, torch.inf).argmin(dim=1)
        hardest_negative = S.masked_fill(~negative, -torch.inf).argmax(dim=1)
        anchors = torch.arange(len(S), device=S.device)
        return Triplets(anchors, hardest_positive, hardest_negative, positive.any(dim=1) & negative.any(dim=1))

    def choice(self) -> Choice:
        """Two folds; pairs that tie at an extreme share the gradient."""
        found = (count(POSITIVES) > 0) & (count(NEGATIVES) > 0)
        hardest = smallest(s, POSITIVES), largest(s, NEGATIVES)
        return Choice(where(found, hardest[0], 0.0), where(found, hardest[1], 0.0), found)


@dataclass(frozen=True)
class EasyPositiveMiner(TripletMiner):
    """The most similar positive of every anchor, with a semi-hard (or the hardest) negative.

    Members only have to stay near their nearest positive, so a class need not collapse to a point.  Xuan et al. 2020.

    Args:
        negatives: ``"semihard"``, the most similar negative that is less similar than that positive, or ``"hard"``.

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> EasyPositiveMiner().triplets(embeddings, torch.tensor([0, 0, 1]))
        (tensor([0]), tensor([1]), tensor([2]))
    """

    negatives: str = option(default="semihard", kw_only=True, help="semihard or hard")

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("negatives", self.negatives, ("semihard", "hard"))

    def mine(self, S: Tensor, positive: Tensor, negative: Tensor, batch: PairBatch) -> Triplets:
        """The most similar positive, and the negative that follows it in the order of similarity."""
        easiest = S.masked_fill(~positive, -torch.inf).argmax(dim=1)
        if self.negatives == "hard":
            chosen, found = S.masked_fill(~negative, -torch.inf).argmax(dim=1), negative.any(dim=1)
        else:
            chosen, found = (x.squeeze(1) for x in _hardest_below(S, negative, S.gather(1, easiest[:, None])))
        return Triplets(torch.arange(len(S), device=S.device), easiest, chosen, found & positive.any(dim=1))

    def choice(self) -> Choice:
        """A fold over the positives, then one over the negatives; ties share their gradient."""
        exists = count(POSITIVES) > 0
        easiest = where(exists, largest(s, POSITIVES), 0.0)
        if self.negatives == "semihard":
            return _choose_hardest_below(easiest, exists)
        found = exists & (count(NEGATIVES) > 0)
        return Choice(easiest, where(found, largest(s, NEGATIVES), 0.0), found)


@dataclass(frozen=True)
class DistanceWeightedMiner(TripletMiner):
    r"""For every positive pair one negative, drawn so that all distances are equally likely.

    A negative at distance $d$ is drawn with a probability proportional to $1/q(\max(d,\text{cutoff}))$, where
    $q(d)\propto d^{\,n-2}(1-d^2/4)^{(n-3)/2}$ is the density of distances on the sphere in $n$ dimensions, and only if
    $d$ is below ``nonzero_loss_cutoff``.  Wu et al. 2017.  Weights are computed as logarithms relative
    to the row's largest, which is accurate in 2 as in 4,096 dimensions.

    Args:
        cutoff: smaller distances are weighted as this one, against noise from the hardest negatives.
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
        default=0.5, help="smaller distances are weighted as this one", above=0.0, below=2.0, search=(0.1, 1.0)
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

    def mine(self, S: Tensor, positive: Tensor, negative: Tensor, batch: PairBatch) -> Triplets:
        """Draw by inverting each row's cumulative weights."""
        assert batch.similarity is not None
        dim = self.dim if batch.anchors is None else batch.anchors.shape[1]
        if dim is None:
            raise ValueError(
                "dim must be given where DistanceWeightedMiner mines a matrix of similarities, but it is None"
            )
        distances = batch.similarity.distances(S.double())
        weights = self.weights(distances, negative, dim)
        running = weights.cumsum(dim=1)
        candidate, exists = candidates(positive)
        drawn = torch.rand(candidate.shape, dtype=torch.float64, device=S.device, generator=self.generator)
        chosen = torch.searchsorted(running, drawn * running[:, -1:], right=True).clamp_max(S.shape[1] - 1)
        return one_negative_each(candidate, chosen, exists & (weights.gather(1, chosen) > 0.0))

    def weights(self, distances: Tensor, negative: Tensor, dim: int) -> Tensor:
        """Unnormalized probabilities ``(m, n)`` of each negative, the largest of a row being one.

        Examples:
            >>> import torch
            >>> DistanceWeightedMiner().weights(torch.tensor([[0.6, 1.2]]), torch.tensor([[True, True]]), dim=3)
            tensor([[1.0000, 0.5000]])
        """
        d = distances.clamp(min=self.cutoff, max=2.0)
        # in place, because a large batch would otherwise take a dozen matrices of doubles
        inside = d.square().div_(-4.0).add_(1.0).clamp_min_(torch.finfo(d.dtype).tiny)
        log_weights = d.log_().mul_(2.0 - dim).add_(inside.log_(), alpha=0.5 * (3.0 - dim))
        eligible = negative & (distances < self.nonzero_loss_cutoff)  # NaN is not below the cutoff
        # vmap cannot write into distances that it does not map over
        fill = log_weights.masked_fill if is_inside_func() else log_weights.masked_fill_
        log_weights = fill(eligible.logical_not_(), -torch.inf)
        peak = log_weights.amax(dim=1, keepdim=True)
        return log_weights.sub_(peak.masked_fill_(peak == -torch.inf, 0.0)).exp_()


@dataclass(frozen=True)
class RandomMiner(TripletMiner):
    """A number of triplets, drawn uniformly and with replacement from all triplets of the batch.

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

    def mine(self, S: Tensor, positive: Tensor, negative: Tensor, batch: PairBatch) -> Triplets:
        """Draw anchors in proportion to their triplets, then a positive and a negative of each."""
        positives, negatives = positive.sum(dim=1), negative.sum(dim=1)
        anchors, u, valid = self._draw(positives, negatives)
        return Triplets(
            anchors,
            _pick(positive, anchors, positives[anchors], u[1]),
            _pick(negative, anchors, negatives[anchors], u[2]),
            valid,
        )

    def choose(self, rows: WholeRows) -> Triplets:
        """Draw anchors from the whole batch: chunks are counted first, then positives and negatives are picked."""
        if not rows.large:
            return super().choose(rows)
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
                    picked = _pick(mask, here, number[anchors], u[i + 1])
                    chosen[i] = torch.where(inside, picked, chosen[i])
            return Triplets(anchors, chosen[0], chosen[1], valid, rows.batch.shape).compact()

    def _draw(self, positives: Tensor, negatives: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Anchors, the random numbers that pick their positives and negatives, and whether there are any triplets."""
        running = (positives * negatives).cumsum(0)
        u = torch.rand(3, self.n, dtype=torch.float64, device=running.device, generator=self.generator)
        anchors = torch.searchsorted(running, (u[0] * running[-1]).long(), right=True).clamp_max(len(running) - 1)
        return anchors, u, (positives * negatives)[anchors] > 0


def _pick(mask: Tensor, rows: Tensor, number: Tensor, share: Tensor) -> Tensor:
    """The member of each row's mask at a fraction between 0 and 1 of its members."""
    # sort the members of a row to the front, then take the k-th of them
    members = mask.to(torch.uint8).argsort(dim=1, descending=True, stable=True)
    k = torch.minimum((share * number).long(), number - 1).clamp_min(0)
    return members[rows, k]
