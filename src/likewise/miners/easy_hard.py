"""Triplet miners that select easy, semi-hard or hard positives and negatives of an anchor."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real

import torch
from torch import Tensor

from likewise.engines import WholeRows
from likewise.formula import (
    NEGATIVES,
    POSITIVES,
    Choice,
    Formula,
    Mined,
    Number,
    PerPair,
    Relation,
    RowChunk,
    Side,
    Similarity,
    Triplets,
    count,
    join_conditions,
    largest,
    one_of,
    option,
    s,
    s_p,
    smallest,
    substitute,
    where,
)
from likewise.miners.base import LOWEST, TripletMiner, enumerate_triplets

STRATEGIES = ("easy", "semihard", "hard", "all")
"""Which positives, or negatives, of an anchor are chosen."""


@dataclass(frozen=True)
class BatchHardMiner(TripletMiner):
    """The least similar positive and the most similar negative of every anchor.  Hermans et al. 2017, Eq. 5.

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> BatchHardMiner().triplets(embeddings, torch.tensor([0, 0, 1]))
        (tensor([0, 1]), tensor([1, 0]), tensor([2, 2]))
    """

    def mine(self, chunk: RowChunk) -> Triplets:
        """Two extremes per row."""
        return _choose_one_each(chunk.similarities, *chunk.masks(), "hard", "hard")

    def choice(self, similarity: Similarity) -> Choice:
        """Two folds; pairs that tie at an extreme share the gradient."""
        return _declare("hard", "hard")


@dataclass(frozen=True)
class EasyPositiveMiner(TripletMiner):
    """The most similar positive of every anchor, with a semi-hard (or the hardest) negative.

    A sample only has to be close to its nearest positive, so a class does not have to collapse to a point.  Xuan et al.
    2020.

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

    def mine(self, chunk: RowChunk) -> Triplets:
        """The most similar positive, and the negative that follows it in the order of similarity."""
        return _choose_one_each(chunk.similarities, *chunk.masks(), "easy", self.negatives)

    def choice(self, similarity: Similarity) -> Choice:
        """A fold over the positives, then one over the negatives; ties share their gradient."""
        return _declare("easy", self.negatives)


@dataclass(frozen=True)
class BatchEasyHardMiner(TripletMiner):
    r"""Selects one positive and one negative per anchor, or all of one side, by difficulty.  Xuan et al. 2020.

    The easy positive is the most similar one, and the easy negative is the least similar one; hard is the opposite.
    Semi-hard is the hardest one that keeps the order $s_{ap}>s_{an}$ relative to the one selected on the other side.
    ``"all"`` takes every pair of a side, combined with the one selected on the other side, or with all of them.
    `BatchHardMiner` is ``("hard", "hard")``, `EasyPositiveMiner` is ``("easy", "semihard")``.

    Args:
        positives: ``"easy"``, ``"semihard"``, ``"hard"`` or ``"all"``.
        negatives: the same choices; at most one of the two may be ``"semihard"``, and then the other must not be
            ``"all"`` (`SemiHardMiner` selects a semi-hard negative for every positive).
        positive_range: the lowest and the highest similarity of a positive, inclusive; distances if the loss uses a
            distance.
        negative_range: the same for negatives.

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> BatchEasyHardMiner("easy", "easy").triplets(embeddings, torch.tensor([0, 0, 1]))
        (tensor([0, 1]), tensor([1, 0]), tensor([2, 2]))
        >>> BatchEasyHardMiner("easy", "all", negative_range=(0.9, 1.0)).triplets(embeddings, torch.tensor([0, 0, 1]))
        (tensor([1]), tensor([0]), tensor([2]))
    """

    positives: str = option(default="easy", kw_only=False, help="easy, semihard, hard or all")
    negatives: str = option(default="semihard", kw_only=False, help="easy, semihard, hard or all")
    positive_range: tuple[float, float] | None = option(
        default=None, help="lowest and highest similarity of a positive"
    )
    negative_range: tuple[float, float] | None = option(
        default=None, help="lowest and highest similarity of a negative"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("positives", self.positives, STRATEGIES)
        one_of("negatives", self.negatives, STRATEGIES)
        sides = {"positives": self.positives, "negatives": self.negatives}
        if "semihard" in sides.values() and set(sides.values()) <= {"semihard", "all"}:
            raise ValueError(
                "BatchEasyHardMiner: positives and negatives must have an easy or hard side where the other is 'semihard', "
                f"but they are {self.positives!r} and {self.negatives!r}"
            )
        for name in ("positive_range", "negative_range"):
            object.__setattr__(self, name, _check_bounds(name, getattr(self, name)))

    def mine(self, chunk: RowChunk) -> Triplets:
        """One triplet per anchor, or all pairs of a side within their range."""
        positive, negative = self._masks(chunk)
        if "all" not in (self.positives, self.negatives):
            return _choose_one_each(chunk.similarities, positive, negative, self.positives, self.negatives)
        positive, negative = self._keep(chunk.similarities, positive, negative)
        if self.negatives == "all":
            # negatives first in each row, in the order of their columns
            columns = negative.to(torch.uint8).argsort(dim=1, descending=True, stable=True)
            first = torch.zeros_like(columns)
            return enumerate_triplets(positive, columns, first, first + negative.sum(dim=1, keepdim=True))
        candidates = chunk.candidates(positive)
        chosen = negative.to(torch.uint8).argmax(dim=1, keepdim=True).expand_as(candidates.index)
        return Triplets.of_rows(candidates.index, chosen, candidates.mask)

    def _masks(self, chunk: RowChunk) -> tuple[Tensor, Tensor]:
        """The pairs in their ranges."""
        S, (positive, negative), similarity = chunk.similarities, chunk.masks(), chunk.batch.similarity
        assert similarity is not None
        return (
            positive & _in_range(S, self.positive_range, similarity),
            negative & _in_range(S, self.negative_range, similarity),
        )

    def _keep(self, S: Tensor, positive: Tensor, negative: Tensor) -> tuple[Tensor, Tensor]:
        """The pairs that the triplets contain, where a side is all."""
        both = (positive.any(dim=1) & negative.any(dim=1))[:, None]
        columns = torch.arange(S.shape[1], device=S.device)
        near, far = (columns == chosen[:, None] for chosen in self._find_columns(S, positive, negative))
        return (
            positive & both if self.positives == "all" else near,
            negative & both if self.negatives == "all" else far,
        )

    def choice(self, similarity: Similarity) -> Choice:
        """Folds over each side, or conditions on all of its pairs."""
        return _declare(self.positives, self.negatives, *self._ranges(similarity))

    def refine(self, rows: WholeRows) -> Relation:
        """The pairs of the triplets; where a side is all, the triplets are not enumerated."""
        if "all" not in (self.positives, self.negatives):
            return self.choose(rows)
        return rows.keep_pairs(
            lambda chunk: self._keep(chunk.similarities, *self._masks(chunk)),
            lambda: Mined(rows.batch.relation, *self._conditions(rows)),
        )

    def _ranges(self, similarity: Similarity) -> tuple[Formula | None, Formula | None]:
        return _within(self.positive_range, similarity), _within(self.negative_range, similarity)

    def _conditions(self, rows: WholeRows) -> tuple[Formula, Formula]:
        """When a positive and a negative are in a triplet, without a mask of the whole matrix."""
        assert rows.batch.similarity is not None
        ranges = self._ranges(rows.batch.similarity)
        exist = _exists(POSITIVES, ranges[0]) & _exists(NEGATIVES, ranges[1])
        with torch.no_grad():
            # several pairs may have the extreme value of a fold; the column identifies one of them
            chosen = rows.map(lambda chunk: self._find_columns(chunk.similarities, *self._masks(chunk)))
        conditions = [
            (exist if within is None else exist & within) if strategy == "all" else _is_at(columns)
            for strategy, within, columns in zip((self.positives, self.negatives), ranges, chosen, strict=True)
        ]
        return conditions[0], conditions[1]

    def _find_columns(self, S: Tensor, positive: Tensor, negative: Tensor) -> tuple[Tensor, Tensor]:
        """The columns of each row's easy or hard positive and negative, where neither side is semi-hard; −1 for no triplet."""
        return (
            _find_one(S, positive, negative, most_similar=self.positives == "easy"),
            _find_one(S, negative, positive, most_similar=self.negatives == "hard"),
        )


# ------------------------------------------------------------------------------------------------ by index


def _find_extreme(S: Tensor, mask: Tensor, *, most_similar: bool) -> tuple[Tensor, Tensor]:
    """The column of each row's extreme inside a mask, the first of equal ones, and whether there is one."""
    filled = S.masked_fill(~mask, -torch.inf if most_similar else torch.inf)
    return filled.argmax(dim=1) if most_similar else filled.argmin(dim=1), mask.any(dim=1)


def _find_one(S: Tensor, mask: Tensor, other: Tensor, *, most_similar: bool) -> Tensor:
    """The column of each row's extreme; −1 where a row lacks a pair of this or the other side."""
    chosen, exists = _find_extreme(S, mask, most_similar=most_similar)
    return chosen.where(exists & other.any(dim=1), -1)


def _choose_one_each(S: Tensor, positive: Tensor, negative: Tensor, positives: str, negatives: str) -> Triplets:
    """One positive and one negative of each anchor; a semi-hard one is chosen after the other."""
    if positives == "semihard":
        far, has_negative = _find_extreme(S, negative, most_similar=negatives == "hard")
        near, exists = _find_extreme(S, positive & S.gt(S.gather(1, far[:, None])), most_similar=False)
    else:
        near, exists = _find_extreme(S, positive, most_similar=positives == "easy")
        below = negative & S.lt(S.gather(1, near[:, None])) if negatives == "semihard" else negative
        far, has_negative = _find_extreme(S, below, most_similar=negatives != "easy")
    return Triplets(torch.arange(len(S), device=S.device), near, far, exists & has_negative)


def _in_range(S: Tensor, bounds: tuple[float, float] | None, similarity: Similarity) -> Tensor:
    if bounds is None:
        return torch.ones_like(S, dtype=torch.bool)
    low, high = sorted(map(similarity.threshold, bounds))
    return S.ge(low) & S.le(high)


def _check_bounds(name: str, bounds: object) -> tuple[float, float] | None:
    if bounds is None:
        return None
    numbers = isinstance(bounds, tuple | list) and all(isinstance(each, Real) for each in bounds)
    if not numbers or len(bounds) != 2 or not bounds[0] <= bounds[1]:  # type: ignore[arg-type, index]
        raise ValueError(
            f"BatchEasyHardMiner: {name} must be a lowest and a highest number or None, but it is {bounds!r}"
        )
    return float(bounds[0]), float(bounds[1])  # type: ignore[index]


# ------------------------------------------------------------------------------------------------ as formulas


def _is_at(columns: Tensor) -> Formula:
    """The condition that a pair is at a column of its row."""
    return PerPair("chosen", lambda batch, rows, others: columns[rows] == others) > 0.5


def _within(bounds: tuple[float, float] | None, similarity: Similarity) -> Formula | None:
    """The condition that a similarity is in a range."""
    if bounds is None:
        return None
    low, high = sorted(map(similarity.threshold, bounds))
    return where(s < Number(low), 0, where(Number(high) < s, 0, 1)) > 0


def _exists(side: Side, within: Formula | None) -> Formula:
    return count(side, within) > 0


def _extreme(side: Side, most_similar: bool, within: Formula | None) -> Formula:
    """The most or least similar pair of a side that meets a condition."""
    fold, nowhere = (largest, LOWEST) if most_similar else (smallest, -LOWEST)
    return fold(s if within is None else where(within, s, nowhere), side)


def _declare(
    positives: str, negatives: str, in_positives: Formula | None = None, in_negatives: Formula | None = None
) -> Choice:
    """The choice as formulas; a semi-hard side is folded after the other."""
    if positives == "semihard":
        exists = _exists(NEGATIVES, in_negatives)
        far = where(exists, _extreme(NEGATIVES, negatives == "hard", in_negatives), 0.0)
        near = _extreme(POSITIVES, False, join_conditions(far < s, in_positives))
        is_valid = exists & (near < -LOWEST / 2)
        return Choice(where(is_valid, near, 0.0), far, is_valid)
    if negatives == "semihard":
        exists = _exists(POSITIVES, in_positives)
        near = where(exists, _extreme(POSITIVES, positives == "easy", in_positives), 0.0)
        far = _extreme(NEGATIVES, True, join_conditions(s < near, in_negatives))
        is_valid = exists & (far > LOWEST / 2)
        return Choice(near, where(is_valid, far, 0.0), is_valid)
    if positives == negatives == "all":
        return Choice(s_p, s, join_conditions(_of_positive(in_positives), in_negatives))
    if positives == "all":
        exists = _exists(NEGATIVES, in_negatives)
        far = where(exists, _extreme(NEGATIVES, negatives == "hard", in_negatives), 0.0)
        return Choice(s_p, far, join_conditions(exists, _of_positive(in_positives)))
    if negatives == "all":
        exists = _exists(POSITIVES, in_positives)
        near = where(exists, _extreme(POSITIVES, positives == "easy", in_positives), 0.0)
        return Choice(near, s, join_conditions(exists, in_negatives))
    is_valid = _exists(POSITIVES, in_positives) & _exists(NEGATIVES, in_negatives)
    near = _extreme(POSITIVES, positives == "easy", in_positives)
    far = _extreme(NEGATIVES, negatives == "hard", in_negatives)
    return Choice(where(is_valid, near, 0.0), where(is_valid, far, 0.0), is_valid)


def _of_positive(condition: Formula | None) -> Formula | None:
    """A condition on a pair as one on a triplet's positive."""
    return None if condition is None else substitute(condition, {s: s_p})
