"""Triplet miners that select by margin: the similarity of the positive minus that of the negative.

Miners do not loop over anchors.  Inside a loss they do not synchronize with a GPU if the matrix is computed at once; in
chunks, the host reads the largest number of positives.  A range of margins has no fixed number of triplets: losses use
it as a condition, and only ``triplets()``, which enumerates them, synchronizes.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real

import torch
from torch import Tensor

from likewise.engines import WholeRows, count_within
from likewise.formula import (
    NEGATIVES,
    POSITIVES,
    Choice,
    Mined,
    Relation,
    RowChunk,
    Similarity,
    Triplets,
    hyper,
    largest,
    logical_not,
    one_of,
    option,
    s,
    s_p,
    smallest,
    where,
)
from likewise.miners.base import LOWEST, TripletMiner, enumerate_triplets, fill

KINDS = ("all", "hard", "semihard", "easy")
"""The kinds of triplets by their margin."""


def _hardest_below(S: Tensor, negative: Tensor, limit: Tensor) -> tuple[Tensor, Tensor]:
    """Return the most similar negative strictly below each limit of each row, and whether there is one."""
    # most similar first; ties in the order of columns
    ordered, index = fill(S.neg(), ~negative, torch.inf).sort(dim=1, stable=True)
    place = torch.searchsorted(ordered, (-limit).contiguous(), right=True)
    exists = (place < S.shape[1]) & (ordered.gather(1, place.clamp_max(S.shape[1] - 1)) < torch.inf)
    return index.gather(1, place.clamp_max(S.shape[1] - 1)), exists


@dataclass(frozen=True)
class SemiHardMiner(TripletMiner):
    r"""Semi-hard negatives: the hardest ones that are less similar than the positive.

    Without a margin, selects for each positive pair the most similar negative that is less similar than the positive:
    $n_{ap}=\arg\max_{n:\,s_{ap}>s_{an}}s_{an}$, Eq. 2.20 of the thesis.  With a margin λ, selects every triplet with
    $s_{ap}-\lambda<s_{an}<s_{ap}$: `TripletMarginMiner` of kind ``"semihard"``.  Schroff et al. 2015.

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

    def mine(self, chunk: RowChunk) -> Triplets:
        """Sort the negatives of each row once; bisection locates each positive among them."""
        if self.margin is not None:
            return _mine_kind(chunk, "semihard", self.margin)
        S, (positive, negative) = chunk.similarities, chunk.masks()
        candidates = chunk.candidates(positive)
        chosen, exists = _hardest_below(S, negative, S.gather(1, candidates.index))
        return Triplets.of_rows(candidates.index, chosen, exists & candidates.mask)

    def choice(self, similarity: Similarity) -> Choice:
        """For each positive the hardest negative below it, or a condition on all negatives."""
        if self.margin is None:
            hardest = largest(where(s < s_p, s, LOWEST), NEGATIVES)
            exists = hardest > LOWEST / 2
            return Choice(s_p, where(exists, hardest, 0.0), exists)
        return _choose_kind("semihard", self.margin)

    def refine(self, rows: WholeRows) -> Relation:
        """The pairs of the triplets; with a margin the triplets are not enumerated."""
        return self.choose(rows) if self.margin is None else _refine_kind(self, rows, "semihard", self.margin)


@dataclass(frozen=True)
class TripletMarginMiner(TripletMiner):
    r"""All triplets of one kind, by the margin $s_{ap}-s_{an}$ between their positive and their negative.

    ``"all"`` triplets violate the margin λ, $s_{an}>s_{ap}-\lambda$.  Of these, in ``"hard"`` ones the negative is at
    least as similar as the positive, $s_{an}\ge s_{ap}$, and in ``"semihard"`` ones it is less similar.  ``"easy"``
    triplets do not violate the margin.  Schroff et al. 2015.  λ may have any sign: below zero, ``"all"`` and ``"hard"``
    are the same triplets, and there are no semi-hard ones.

    Args:
        margin: the margin λ, on the similarity: with a Euclidean similarity it is a difference of distances.
        kind: ``"all"``, ``"hard"``, ``"semihard"`` or ``"easy"``.

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> TripletMarginMiner(0.1).triplets(embeddings, torch.tensor([0, 0, 1]))
        (tensor([1]), tensor([0]), tensor([2]))
        >>> TripletMarginMiner(0.1, kind="easy").triplets(embeddings, torch.tensor([0, 0, 1]))
        (tensor([0]), tensor([1]), tensor([2]))
    """

    margin: float = hyper(default=0.2, help="margin", search=(0.0, 1.0), step=0.1)
    kind: str = option(default="all", kw_only=False, help="all, hard, semihard or easy")

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("kind", self.kind, KINDS)

    def mine(self, chunk: RowChunk) -> Triplets:
        """Sort the negatives of each row once; bisection locates each positive among them."""
        return _mine_kind(chunk, self.kind, self.margin)

    def choice(self, similarity: Similarity) -> Choice:
        """A condition on all triplets."""
        return _choose_kind(self.kind, self.margin)

    def refine(self, rows: WholeRows) -> Relation:
        """The pairs of the triplets, which are not enumerated."""
        return _refine_kind(self, rows, self.kind, self.margin)


def _mine_kind(chunk: RowChunk, kind: str, margin: float) -> Triplets:
    """The triplets of a kind: for each positive, a range of the sorted negatives."""
    S, (positive, negative) = chunk.similarities.contiguous(), chunk.masks()
    # entries that are not negatives sort first, at minus infinity, below every threshold
    ordered, index = S.masked_fill(~negative, -torch.inf).sort(dim=1)
    violated = torch.searchsorted(ordered, S - margin, right=True)
    closer = torch.searchsorted(ordered, S)
    n, others = S.shape[1], (~negative).sum(dim=1, keepdim=True)
    ranges = {
        "all": (violated, torch.full_like(violated, n)),
        "hard": (closer if margin > 0.0 else violated, torch.full_like(violated, n)),
        "semihard": (violated, closer),
        "easy": (others.expand_as(violated), violated),
    }
    return enumerate_triplets(positive, index, *ranges[kind])


def _choose_kind(kind: str, margin: float) -> Choice:
    """The triplets of a kind as a condition on all triplets."""
    violates = s_p - margin < s
    if kind == "semihard":
        violates = violates & (s < s_p)
    elif kind == "hard" and margin > 0.0:  # otherwise every violation of the margin is also a violation of the order
        violates = logical_not(s < s_p)
    elif kind == "easy":
        violates = logical_not(violates)
    # both similarities explicitly, because torch.compile cannot trace formulas as defaults
    return Choice(s_p, s, violates)


def _refine_kind(miner: TripletMiner, rows: WholeRows, kind: str, margin: float) -> Relation:
    """The pairs that the triplets of a kind contain: conditions on the hardest or easiest pair of the other side."""
    if kind == "semihard":
        return rows.keep_pairs(lambda chunk: _pairs_in_band(chunk, margin), lambda: miner.choose(rows))
    if kind == "easy":
        keep = logical_not(s - margin < smallest(s, NEGATIVES)), logical_not(largest(s, POSITIVES) - margin < s)
    elif kind == "hard" and margin > 0.0:
        keep = logical_not(largest(s, NEGATIVES) < s), logical_not(s < smallest(s, POSITIVES))
    else:
        keep = s - margin < largest(s, NEGATIVES), smallest(s, POSITIVES) - margin < s
    return Mined(rows.batch.relation, *keep)


def _pairs_in_band(chunk: RowChunk, margin: float) -> tuple[Tensor, Tensor]:
    """The positive and the negative pairs of semi-hard triplets."""
    # with a negative margin the range is empty
    counts = count_within(chunk.similarities, *chunk.masks(), max(margin, 0.0), below=True)
    return counts[0] > 0, counts[1] > 0
