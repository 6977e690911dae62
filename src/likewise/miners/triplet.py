"""Triplet miners: an anchor, a positive and a negative at a time.

None of them loops over anchors.  Inside a loss none waits for a GPU either while the batch is small; on a large one it is
asked how many positives an anchor has.  `SemiHardMiner` with a margin has no fixed number of triplets: losses take it as
a condition, and only ``triplets()``, which names them, waits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Real

import torch
from torch import Tensor

from likewise.engines import dense_masks, panels
from likewise.formula import (
    NEGATIVES,
    POSITIVES,
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
    smallest,
    where,
)
from likewise.miners.base import (
    NO_POSITIVE,
    Choice,
    TripletMiner,
    candidates,
    one_negative_each,
    prepared,
)


def _hardest_below(S: Tensor, negative: Tensor, limit: Tensor) -> tuple[Tensor, Tensor]:
    """For each row and each limit of that row, the most similar negative strictly below it, and whether there is one."""
    ordered, index = S.masked_fill(~negative, -torch.inf).sort(dim=1)
    place = torch.searchsorted(ordered, limit.contiguous()) - 1
    found = (place >= 0) & (ordered.gather(1, place.clamp_min(0)) > -torch.inf)
    return index.gather(1, place.clamp_min(0)), found


_NOBODY = -3e38


def _hardest_below_formula(positive: Formula) -> Choice:
    """The same as formulas: of several negatives at that similarity each gets its share of the gradient."""
    hardest = largest(where(s < positive, s, _NOBODY), NEGATIVES)
    found = (hardest > _NOBODY / 2) & (positive < NO_POSITIVE)
    return Choice(positive, where(found, hardest, 0.0), found)


@dataclass(frozen=True)
class SemiHardMiner(TripletMiner):
    r"""Semi-hard negatives: hard, but not harder than the positive.

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

    def mine(self, S: Tensor, positive: Tensor, negative: Tensor, pair_batch: PairBatch) -> Triplets:
        """Sort the negatives of each row once; a positive finds its place among them."""
        if self.margin is None:
            candidate, exists = candidates(positive)
            chosen, found = _hardest_below(S, negative, S.gather(1, candidate))
            return one_negative_each(candidate, chosen, found & exists)
        ordered, index = S.masked_fill(~negative, -torch.inf).sort(dim=1)
        positives = S.contiguous()
        first = torch.searchsorted(ordered, positives - self.margin, right=True)
        # rows begin with what is no negative, at minus infinity, below every threshold
        number = (torch.searchsorted(ordered, positives) - first).clamp_min(0).masked_fill(~positive, 0).reshape(-1)
        pair = torch.arange(len(number), device=S.device).repeat_interleave(number)
        offset = torch.arange(len(pair), device=S.device) - (number.cumsum(0) - number)[pair]
        anchors, positives = pair // S.shape[1], pair % S.shape[1]
        return Triplets(anchors, positives, index[anchors, first.reshape(-1)[pair] + offset])

    @property
    def band(self) -> float | None:
        """The margin."""
        return self.margin

    def choices(self, positives: Callable[[], list[Formula] | None]) -> list[Choice] | None:
        """For each positive the hardest negative below it, or a condition on all negatives."""
        each = positives()
        if each is None:
            return None
        margin = self.margin
        if margin is None:
            return [_hardest_below_formula(positive) for positive in each]
        return [Choice(positive, s, (positive - margin < s) & (s < positive)) for positive in each]

    def touched(self, pair_batch: PairBatch, engine: str = "dense") -> Relation:
        """With a margin: the pairs that have somebody in the band, without naming the triplets."""
        if self.margin is None or engine != "dense":
            return self.refine(pair_batch, engine)
        S = pair_batch.similarities().detach()
        with torch.no_grad():
            of_positives, of_negatives = band_counts(S, *dense_masks(pair_batch), self.margin, below=True)
            return Masks(of_positives > 0, of_negatives > 0)


@dataclass(frozen=True)
class BatchHardMiner(TripletMiner):
    """The least similar positive and the most similar negative of every anchor.  Hermans et al. 2017, Eq. 5.

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> BatchHardMiner().triplets(embeddings, torch.tensor([0, 0, 1]))
        (tensor([0, 1]), tensor([1, 0]), tensor([2, 2]))
    """

    def mine(self, S: Tensor, positive: Tensor, negative: Tensor, pair_batch: PairBatch) -> Triplets:
        """Two extremes per row."""
        hardest_positive = S.masked_fill(~positive, torch.inf).argmin(dim=1)
        hardest_negative = S.masked_fill(~negative, -torch.inf).argmax(dim=1)
        anchors = torch.arange(len(S), device=S.device)
        return Triplets(anchors, hardest_positive, hardest_negative, positive.any(dim=1) & negative.any(dim=1))

    def choices(self, positives: Callable[[], list[Formula] | None]) -> list[Choice]:
        """Two folds; of several pairs at an extreme each gets its share of the gradient."""
        found = (count(POSITIVES) > 0) & (count(NEGATIVES) > 0)
        hardest = smallest(s, POSITIVES), largest(s, NEGATIVES)
        return [Choice(where(found, hardest[0], 0.0), where(found, hardest[1], 0.0), found)]


@dataclass(frozen=True)
class EasyPositiveMiner(TripletMiner):
    """The most similar positive of every anchor, with a semi-hard (or the hardest) negative.

    A class need not shrink to a point if each member only has to stay near its nearest.  Xuan et al. 2020.

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

    def mine(self, S: Tensor, positive: Tensor, negative: Tensor, pair_batch: PairBatch) -> Triplets:
        """One extreme for the positive, one place in the order for the negative."""
        easiest = S.masked_fill(~positive, -torch.inf).argmax(dim=1)
        if self.negatives == "hard":
            chosen, found = S.masked_fill(~negative, -torch.inf).argmax(dim=1), negative.any(dim=1)
        else:
            chosen, found = (x.squeeze(1) for x in _hardest_below(S, negative, S.gather(1, easiest[:, None])))
        return Triplets(torch.arange(len(S), device=S.device), easiest, chosen, found & positive.any(dim=1))

    def choices(self, positives: Callable[[], list[Formula] | None]) -> list[Choice]:
        """A fold over the positives, then one over the negatives; ties share their gradient."""
        exists = count(POSITIVES) > 0
        easiest = where(exists, largest(s, POSITIVES), 2.0 * NO_POSITIVE)
        if self.negatives == "semihard":
            choice = _hardest_below_formula(easiest)
            return [replace(choice, positive=where(exists, easiest, 0.0))]
        found = exists & (count(NEGATIVES) > 0)
        return [Choice(where(found, easiest, 0.0), where(found, largest(s, NEGATIVES), 0.0), found)]


@dataclass(frozen=True)
class DistanceWeightedMiner(TripletMiner):
    r"""For every positive pair one negative, drawn so that all distances are equally likely.

    A negative at distance $d$ is drawn with a probability proportional to $1/q(\max(d,\text{cutoff}))$, where
    $q(d)\propto d^{\,n-2}(1-d^2/4)^{(n-3)/2}$ is the density of distances on the sphere in $n$ dimensions, and only if
    $d$ is below ``nonzero_loss_cutoff``.  Wu et al. 2017.  Everything is done with logarithms relative to
    the row's largest, so that it holds in 2 dimensions as in 4,096.

    Args:
        cutoff: smaller distances are weighted as this one, against noise from the very hardest.
        nonzero_loss_cutoff: larger distances are not drawn.
        dim: the embeddings' dimension; needed only where the miner sees similarities alone.
        generator: the source of randomness; torch's own by default.

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
    generator: torch.Generator | None = option(default=None, kw_only=True, help="the source of randomness")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.dim is not None and (not isinstance(self.dim, int) or self.dim < 2):
            raise ValueError(f"DistanceWeightedMiner: dim must be a whole number ≥ 2 or None, but it is {self.dim!r}")
        if self.cutoff >= self.nonzero_loss_cutoff:
            raise ValueError(
                f"DistanceWeightedMiner: cutoff must be below nonzero_loss_cutoff, {self.nonzero_loss_cutoff}, "
                f"but it is {self.cutoff}"
            )

    def mine(self, S: Tensor, positive: Tensor, negative: Tensor, pair_batch: PairBatch) -> Triplets:
        """Draw by inverting each row's cumulative weights."""
        assert pair_batch.similarity is not None
        dim = self.dim if pair_batch.anchors is None else pair_batch.anchors.shape[1]
        if dim is None:
            raise ValueError("dim must be given where DistanceWeightedMiner sees similarities alone, but it is None")
        distances = pair_batch.similarity.distances(S.double())
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
        # in place: a dozen matrices of doubles would be what a large batch costs
        inside = d.square().div_(-4.0).add_(1.0).clamp_min_(torch.finfo(d.dtype).tiny)
        log_weights = d.log_().mul_(2.0 - dim).add_(inside.log_(), alpha=0.5 * (3.0 - dim))
        eligible = negative & (distances < self.nonzero_loss_cutoff)  # a distance that is none is below nothing
        log_weights.masked_fill_(eligible.logical_not_(), -torch.inf)
        peak = log_weights.amax(dim=1, keepdim=True)
        return log_weights.sub_(peak.masked_fill_(peak == -torch.inf, 0.0)).exp_()


@dataclass(frozen=True)
class RandomMiner(TripletMiner):
    """So many triplets, drawn uniformly and with replacement from all triplets of the batch.

    Args:
        n: how many.
        generator: the source of randomness; torch's own by default.

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> miner = RandomMiner(2, generator=torch.Generator().manual_seed(0))
        >>> [len(index) for index in miner.triplets(embeddings, torch.tensor([0, 0, 1]))]
        [2, 2, 2]
    """

    n: int = hyper(default=100, help="how many triplets", at_least=1, search=(100, 10_000), log=True)
    generator: torch.Generator | None = option(default=None, kw_only=True, help="the source of randomness")

    def mine(self, S: Tensor, positive: Tensor, negative: Tensor, pair_batch: PairBatch) -> Triplets:
        """An anchor in proportion to its triplets, then one of its positives and one of its negatives."""
        positives, negatives = positive.sum(dim=1), negative.sum(dim=1)
        anchors, u, valid = self._draw(positives, negatives)
        return Triplets(
            anchors,
            _pick(positive, anchors, positives[anchors], u[1]),
            _pick(negative, anchors, negatives[anchors], u[2]),
            valid,
        )

    def refine(self, pair_batch: PairBatch, engine: str = "dense") -> Triplets:
        """Anchors are drawn from all of the batch, so panels are counted first and looked into afterwards."""
        if engine == "dense":
            return super().refine(pair_batch)
        prepared(pair_batch)
        with torch.no_grad():
            counted = [
                tuple(mask.sum(dim=1) for mask in dense_masks(pair_batch.rows(rows))) for rows in panels(pair_batch)
            ]
            positives, negatives = (torch.cat(each) for each in zip(*counted, strict=True))
            anchors, u, valid = self._draw(positives, negatives)
            chosen = torch.zeros(2, len(anchors), dtype=torch.int64, device=anchors.device)
            for rows in panels(pair_batch):
                inside = (anchors >= rows.start) & (anchors < rows.stop)
                here = (anchors - rows.start).clamp(0, rows.stop - rows.start - 1)
                masks = dense_masks(pair_batch.rows(rows))
                for i, (mask, number) in enumerate(zip(masks, (positives, negatives), strict=True)):
                    picked = _pick(mask, here, number[anchors], u[i + 1])
                    chosen[i] = torch.where(inside, picked, chosen[i])
            return Triplets(anchors, chosen[0], chosen[1], valid, pair_batch.shape).compact()

    def _draw(self, positives: Tensor, negatives: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Anchors, the random numbers that will choose their partners, and whether there are any."""
        running = (positives * negatives).cumsum(0)
        u = torch.rand(3, self.n, dtype=torch.float64, device=running.device, generator=self.generator)
        anchors = torch.searchsorted(running, (u[0] * running[-1]).long(), right=True).clamp_max(len(running) - 1)
        return anchors, u, (positives * negatives)[anchors] > 0


def _pick(mask: Tensor, rows: Tensor, number: Tensor, share: Tensor) -> Tensor:
    """The member of each named row's mask that a share between 0 and 1 of its members names."""
    # the members of a row first, in order; then the k-th of them
    members = mask.to(torch.uint8).argsort(dim=1, descending=True, stable=True)
    k = torch.minimum((share * number).long(), number - 1).clamp_min(0)
    return members[rows, k]


def band_counts(
    S: Tensor, positive: Tensor, negative: Tensor, width: float, *, below: bool = False
) -> tuple[Tensor, Tensor]:
    """In how many triplets with ``s_ap − width < s_an`` each pair is: as their positive, and as their negative.

    The negatives of a row are sorted, and its positives' thresholds; each pair then finds its place among the others.
    A negative *at* a threshold is not above it.

    Args:
        S: similarities, ``(m, n)``.
        positive: the positive pairs.
        negative: the negative pairs.
        width: how far below the positive a negative may be.
        below: count only triplets with ``s_an < s_ap`` too.
    """
    S = S.contiguous()
    n = S.shape[1]
    threshold = S - width
    negatives = S.masked_fill(~negative, -torch.inf).sort(dim=1).values
    thresholds = threshold.masked_fill(~positive, torch.inf).sort(dim=1).values
    of_positives = n - torch.searchsorted(negatives, threshold, right=True)
    of_negatives = torch.searchsorted(thresholds, S)
    if below:
        positives = S.masked_fill(~positive, torch.inf).sort(dim=1).values
        of_positives = (of_positives - n + torch.searchsorted(negatives, S)).clamp_min(0)
        of_negatives = (of_negatives - torch.searchsorted(positives, S, right=True)).clamp_min(0)
    return of_positives * positive, of_negatives * negative
