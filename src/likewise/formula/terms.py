"""Declarations of losses: terms, each a sum over units.

A *unit* is what a paper averages over: an anchor, a pair, a triplet.  A `Term` has, per anchor, the sum over its units,
the number of units and the number of units that are not zero (`likewise.formula.reductions`).

A declaration is a value: it does not depend on the engine or the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeAlias
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from likewise.formula.batch import PairBatch
from likewise.formula.expressions import (
    Apply,
    Folded,
    Formula,
    Number,
    Operand,
    Rank,
    Total,
    apply,
    as_formula,
    ingredients,
    mentions_positive,
    s,
    s_p,
    substitute,
    walk,
)
from likewise.formula.folds import EACH_POSITIVE, NEGATIVES, POSITIVES, Side, add_up, check_side, count
from likewise.formula.operations import at_least, where
from likewise.formula.pair_numbers import AtPositive, PerPair, PerTriplet
from likewise.formula.reductions import TermValues, Thresholded
from likewise.formula.relations import PositiveIndex

if TYPE_CHECKING:
    from typing import Self


@dataclass(frozen=True, eq=False)
class Term:
    """One averaged term of a loss, as three formulas with one number per anchor.

    Args:
        total: the sum over the anchor's units.
        units: the number of the anchor's units; a condition counts as one or zero.
        nonzero: the number of units that are not zero.
        value: the value of one unit: a formula of `likewise.formula.s` where units are pairs, one number per anchor where
            they are anchors; ``None`` where it is not known, which `within` needs.
        over: the side whose pairs are the units; ``None``: the anchors.
        among: the pairs of the side that are units, a condition; ``None``: all.

    Examples:
        >>> from likewise.formula import NEGATIVES, per_pair, relu, s
        >>> per_pair(NEGATIVES, relu(s - 0.5)).units
        count[negatives](1.0)
    """

    total: Formula
    units: Formula
    nonzero: Formula
    value: Formula | None = field(default=None, kw_only=True)
    over: Side | None = field(default=None, kw_only=True)
    among: Formula | None = field(default=None, kw_only=True)

    folds_each_positive: bool = field(init=False)
    """Whether the term has a fold over each positive."""

    reads_pair_numbers: bool = field(init=False)
    """Whether the term has a number per pair or per triplet that is not a function of `s`."""

    def __post_init__(self) -> None:
        for formula in (self.total, self.units, self.nonzero):
            bare = [node for node in ingredients(formula) if isinstance(node, PerPair | AtPositive | PerTriplet)]
            if bare:
                raise ValueError(
                    f"a loss must be one number per anchor, but its formula has {bare[0]!r}, a number per pair, outside of "
                    "every fold; fold it with mean, add_up or logsumexp, or use per_pair"
                )
        nodes = walk(self.total, self.units, self.nonzero)
        folds = any(isinstance(node, Folded) and node.over.binds_positive for node in nodes)
        object.__setattr__(self, "folds_each_positive", folds)
        object.__setattr__(self, "reads_pair_numbers", any(isinstance(node, PerPair | PerTriplet) for node in nodes))

    def map(self, function: Callable[[Formula], Formula]) -> Term:
        """The term with a function applied to each of its formulas."""
        value, among = (None if each is None else function(each) for each in (self.value, self.among))
        formulas = function(self.total), function(self.units), function(self.nonzero)
        return Term(*formulas, value=value, over=self.over, among=among)

    def within(self, thresholds: Thresholded) -> Term:
        """The same term over the units whose value lies between thresholds."""
        if self.value is None:
            raise TypeError("reduction must not be Thresholded for a term that does not state the value of one unit")
        inside = thresholds.contains(self.value)
        if self.over is None:
            inside = inside & self.units
            return Term(where(inside, self.value, 0.0), inside, self.nonzero)
        inside = inside if self.among is None else inside & self.among
        total, units = add_up(where(inside, self.value, 0.0), self.over), count(self.over, inside)
        if isinstance(self.units, Folded):
            return Term(total, units, self.nonzero)
        # an anchor that lacks what the loss needs has no units, whatever the values of its pairs
        counted = self.units > 0.0
        return Term(where(counted, total, 0.0), where(counted, units, 0), self.nonzero)


@dataclass(frozen=True, eq=False)
class Choice:
    """The triplets that a rule chooses, as formulas: triplets are not enumerated.

    Args:
        positive: the similarity of a triplet's positive: `likewise.formula.s_p` for every positive, or one per anchor.
        negative: the similarity of its negative: `likewise.formula.s` for every negative, or one per positive or anchor.
        keep: which of these triplets count; ``None``: all.

    Examples:
        >>> from likewise.formula import NEGATIVES, POSITIVES, largest, s, smallest
        >>> Choice(smallest(s, POSITIVES), largest(s, NEGATIVES)).negative
        max[negatives](s)
    """

    positive: Formula = s_p
    negative: Formula = s
    keep: Formula | None = None


ALL_TRIPLETS = Choice()


@dataclass(frozen=True, eq=False)
class TripletTerm(Term):
    """A term over triplets.  On given triplets (`likewise.formula.Triplets`) it is the sum over those.

    Args:
        total: the sum over the anchor's triplets.
        units: their number, times the number of values.
        nonzero: the number of values that are not zero.
        values: the values of one triplet, formulas of `likewise.formula.s_p` and `likewise.formula.s`; each is a unit.
        choice: the triplets.
        thresholds: the units that count; ``None``: all.

    Examples:
        >>> from likewise.formula import per_triplet, relu, s, s_p
        >>> per_triplet(relu(s - s_p + 0.1)).values
        (relu((s - s_p) + 0.1),)
    """

    values: tuple[Formula, ...]
    choice: Choice = ALL_TRIPLETS
    thresholds: Thresholded | None = None

    def chosen_by(self, choice: Choice) -> TripletTerm:
        """The same values over the triplets that a rule chooses."""
        return per_triplet(*self.values, choice=choice, thresholds=self.thresholds)

    def within(self, thresholds: Thresholded) -> TripletTerm:
        """The same values over the units between thresholds."""
        return per_triplet(*self.values, choice=self.choice, thresholds=thresholds)


def per_triplet(*values: Formula, choice: Choice = ALL_TRIPLETS, thresholds: Thresholded | None = None) -> TripletTerm:
    """One unit per triplet and value.

    Args:
        values: formulas of `likewise.formula.s_p`, the similarity of the positive, and `likewise.formula.s`, that of the
            negative; zero at least.
        choice: the triplets.
        thresholds: the units that count; ``None``: all.

    Examples:
        >>> from likewise.formula import per_triplet, relu, s, s_p
        >>> per_triplet(relu(s - s_p + 0.1)).total
        sum[each positive](sum[negatives](relu((s - s_p) + 0.1)))
    """
    parts = []
    for value in values:
        value = substitute(value, {s_p: choice.positive, s: choice.negative})
        inside = None if thresholds is None else thresholds.contains(value)
        parts.append(_over_triplets(value, choice, inside))
    total, units, nonzero = parts[0]
    for more in parts[1:]:
        total, units, nonzero = total + more[0], units + more[1], nonzero + more[2]
    return TripletTerm(total, units, nonzero, values, choice, thresholds)


def _over_triplets(value: Formula, choice: Choice, inside: Formula | None) -> tuple[Formula, Formula, Formula]:
    """The sum of a value over an anchor's triplets, their number, and the number of those that are not zero.

    Only triplets for which ``inside`` holds, a condition on the value, are summed and counted.
    """
    if choice.negative is s and value.rank is not Rank.PAIR:
        return _over_equal_negatives(value, choice, inside)
    keep, differs = _both(choice.keep, inside), value > 0.0
    if choice.negative is s:
        summand = value if keep is None else where(keep, value, 0.0)
        parts: tuple[Formula, Formula, Formula] = (
            add_up(summand, NEGATIVES),
            count(NEGATIVES, keep),
            count(NEGATIVES, differs if keep is None else keep & differs),
        )
    elif keep is None:
        parts = value, Number(1), where(differs, 1, 0)
    else:
        parts = where(keep, value, 0.0), where(keep, 1, 0), where(keep & differs, 1, 0)
    if choice.positive is not s_p:
        return parts
    total, units, nonzero = (_over_positives(part) for part in parts)
    return total, units, nonzero


def _over_equal_negatives(value: Formula, choice: Choice, inside: Formula | None) -> tuple[Formula, Formula, Formula]:
    """The same for a value that does not depend on the negative."""
    negatives, differs = count(NEGATIVES, choice.keep), _both(inside, value > 0.0)
    assert differs is not None
    summand = value if inside is None else where(inside, value, 0.0)
    per_positive = mentions_positive(negatives)
    if choice.positive is s_p and not per_positive:  # the number of negatives is the same for all positives
        of_positives = [
            count(POSITIVES, None if condition is None else _as_pair(condition)) for condition in (inside, differs)
        ]
        return negatives * _over_positives(summand), negatives * of_positives[0], negatives * of_positives[1]
    units = negatives if inside is None else where(inside, negatives, 0)
    parts = negatives * summand, units, where(differs, negatives, 0)
    if choice.positive is not s_p:
        return parts
    total, units, nonzero = (_over_positives(part) for part in parts)
    return total, units, nonzero


def _both(left: Formula | None, right: Formula | None) -> Formula | None:
    """The conjunction of two conditions, either of which may be absent."""
    if left is None or right is None:
        return right if left is None else left
    return left & right


def _over_positives(value: Formula) -> Formula:
    """The sum of a formula over an anchor's positives; plain folds where no fold inside needs one positive at a time."""
    if not mentions_positive(value):
        return count(POSITIVES) if _is_one(value) else count(POSITIVES) * value
    return add_up(value, EACH_POSITIVE) if _folds_per_positive(value) else add_up(_as_pair(value), POSITIVES)


def _as_pair(value: Formula) -> Formula:
    """A formula of one positive as a formula of the pair of the anchor and that positive."""
    by: dict[Formula, Formula] = {node: node.pair for node in walk(value) if isinstance(node, AtPositive)}
    return substitute(value, {s_p: s, **by})


def _is_one(value: Formula) -> bool:
    return isinstance(value, Number) and not isinstance(value.value, Tensor) and value.value == 1


def _folds_per_positive(node: Formula) -> bool:
    if isinstance(node, Folded):
        return node.rank is Rank.POSITIVE
    return isinstance(node, Apply) and any(_folds_per_positive(argument) for argument in node.arguments)


@dataclass(frozen=True, eq=False)
class Regularizer:
    """A number that is added to the reduced loss (margin loss's ``ν · mean β``).

    Args:
        value: computes the number; the engine calls it once per loss.

    Examples:
        >>> import torch
        >>> Regularizer(lambda: torch.tensor(0.1)).value()
        tensor(0.1000)
    """

    value: Callable[[], Tensor]


@dataclass(frozen=True, eq=False)
class RowChunk:
    """Some anchors against all references: the input of a function of matrix rows.

    Args:
        batch: these anchors as a batch, with their rows of the matrix.
        rows: which anchors of the whole batch they are.
        masks: computes the positive and the negative pairs, ``(rows, n)`` booleans, after mining.
        candidates: computes the columns that may be true in each row of a mask, ``(rows, k)`` ascending indices; all
            columns where the engine may not read from the device how many there are.

    Examples:
        >>> import torch
        >>> from likewise.engines import map_rows
        >>> from likewise.formula import Labels, PairBatch
        >>> rows = map_rows(PairBatch(Labels(torch.tensor([0, 0, 1])), matrix=torch.eye(3)))
        >>> rows.map(lambda chunk: (chunk.candidates(chunk.masks()[0]),))
        [tensor([[1],
                [0],
                [0]])]
    """

    batch: PairBatch
    rows: slice
    masks: Callable[[], tuple[Tensor, Tensor]]
    candidates: Callable[[Tensor], Tensor]

    @property
    def similarities(self) -> Tensor:
        """The rows of the matrix, ``(rows, n)``."""
        return self.batch.similarities()


RowStatistics: TypeAlias = Callable[[RowChunk, Tensor, Tensor], list[Tensor]]
"""From a chunk and its positive and negative pairs to one number per row, ``(rows,)``, for each of several formulas."""


class RowMapper(Protocol):
    """Runs functions of matrix rows: on the whole matrix, or on chunks that are recomputed in the backward pass."""

    def map(self, function: Callable[[RowChunk], tuple[Tensor, ...]]) -> list[Tensor]:
        """Concatenate a function's tensors, which have one row per anchor, over chunks of anchors."""

    def sum(self, function: Callable[[RowChunk], tuple[Tensor, ...]]) -> list[Tensor]:
        """Sum a function's tensors, which have fixed shapes, over chunks of anchors."""

    def evaluate(self, term: Term, batch: PairBatch) -> TermValues:
        """The values and units of a term on another batch, computed by the engine that the dispatcher chooses."""

    def statistics(self, formulas: Sequence[Formula]) -> RowStatistics:
        """A function that computes formulas with one number per anchor, without gradient, for the rows of a chunk.

        What formulas need of the whole batch is computed here.
        """

    def positive_index(self, most: int | None = None) -> PositiveIndex | None:
        """The positions of each anchor's positives; ``None`` if labels do not determine them or they exceed ``most``."""


@dataclass(frozen=True, eq=False)
class MatrixLoss:
    """The declaration of a loss that is a function of the matrix, and not a formula.

    Args:
        compute: maps the batch and a `RowMapper` to the values of the loss's terms.  It reads the matrix through the
            mapper, in one phase or several, so that it also runs on chunks.
        evaluates_formulas: whether it delegates to formulas (`RowMapper.evaluate`), which kernels can execute.

    Examples:
        >>> import torch
        >>> from likewise.losses import PairLoss
        >>> class MeanSimilarity(PairLoss):
        ...     def declare(self):
        ...         def mean_of_rows(S, positive, negative):
        ...             value = S.mean(dim=1)
        ...             return [TermValues(value, torch.ones_like(value), value != 0)]
        ...
        ...         return MatrixLoss.by_rows(mean_of_rows)
        >>> MeanSimilarity()(torch.eye(2), torch.tensor([0, 1]))
        tensor(0.5000)
    """

    compute: Callable[[PairBatch, RowMapper], list[TermValues]]
    evaluates_formulas: bool = False

    @classmethod
    def by_rows(cls, function: Callable[[Tensor, Tensor, Tensor], list[TermValues]]) -> Self:
        """A loss whose value for an anchor depends on that anchor's row: a function of S and the two masks."""
        return cls(lambda _batch, rows: map_values(rows, lambda chunk: function(chunk.similarities, *chunk.masks())))


def map_values(rows: RowMapper, function: Callable[[RowChunk], list[TermValues]]) -> list[TermValues]:
    """Term values from a function of rows; see `RowMapper.map`."""
    present: list[list[bool]] = []

    def flat(chunk: RowChunk) -> tuple[Tensor, ...]:
        values = function(chunk)
        present[:] = [[field is not None for field in value] for value in values]
        return tuple(field for value in values for field in value if field is not None)

    vectors = iter(rows.map(flat))
    return [TermValues(*(next(vectors) if there else None for there in each)) for each in present]  # type: ignore[arg-type]


Declared: TypeAlias = Term | Regularizer | MatrixLoss
Declaration: TypeAlias = Declared | tuple[Declared, ...]


# one node each, so that a condition which several terms of a declaration need is computed once
_HAS = {side: count(POSITIVES if side.binds_positive else side) > 0.0 for side in Side}


# operations that turn a huge number into infinity, or two infinities into NaN
_STEEP = ("mul", "div", "square", "exp", "sqrt", "power")


def _guard_empty(value: Operand, needs: tuple[Side, ...]) -> Formula:
    """The formula with zero in place of a fold over an empty side that the loss needs, where infinity would be harmful.

    The anchor is not counted, but its value is still computed and differentiated: an infinity there would make the
    gradient NaN.  A log-sum-exp of an empty row is huge, not infinite, and safe except in steep operations.
    """
    return _guard(as_formula(value), False, needs, {})


def _guard(node: Formula, steep: bool, needs: tuple[Side, ...], seen: dict[tuple[Formula, bool], Formula]) -> Formula:
    # shared nodes stay shared; not a closure, which would be a reference cycle that holds learned numbers
    if (node, steep) not in seen:
        seen[node, steep] = _guard_inside(node, steep, needs, seen)
    return seen[node, steep]


def _guard_inside(
    node: Formula, steep: bool, needs: tuple[Side, ...], seen: dict[tuple[Formula, bool], Formula]
) -> Formula:
    if isinstance(node, Apply):
        scaled = node.operation != "power" and any(isinstance(argument, Number) for argument in node.arguments)
        steep = steep or (node.operation in _STEEP and not scaled)
        arguments = tuple([_guard(argument, steep, needs, seen) for argument in node.arguments])
        same = all(new is old for new, old in zip(arguments, node.arguments, strict=True))
        return node if same else Apply(node.operation, arguments)
    if not isinstance(node, Folded):
        return node
    curve = _guard(node.curve, steep, needs, seen)
    fold = node if curve is node.curve else Folded(node.fold, node.over, curve)
    side = POSITIVES if node.over.binds_positive else node.over
    harmful = side in needs and (steep or node.fold.infinite_when_empty)
    return where(_HAS[node.over], fold, 0.0) if harmful else fold


def per_anchor(value: Operand, needs: tuple[Side, ...] = (POSITIVES, NEGATIVES)) -> Term:
    """One unit per anchor; an anchor without a side that the loss needs contributes nothing and is not counted.

    Examples:
        >>> from likewise.formula import NEGATIVES, largest, per_anchor, s
        >>> per_anchor(largest(s, NEGATIVES), needs=(NEGATIVES,)).total
        where(0.0 < count[negatives](1.0), where(0.0 < count[negatives](1.0), max[negatives](s), 0.0), 0.0)
    """
    value = _guard_empty(value, needs)
    if not needs:
        counted: Formula = apply("less", -1.0, count(POSITIVES))  # every anchor
    else:
        counted = _HAS[needs[0]]
        for side in needs[1:]:
            counted = counted & _HAS[side]
        value = where(counted, value, 0.0)
    return Term(value, counted, apply("nonzero", value), value=value)


def per_pair(over: Side, value: Operand, needs: tuple[Side, ...] = (), among: Formula | None = None) -> Term:
    """One unit per pair of one side, for anchors that also have a pair of every side in ``needs``.

    With ``among``, only the pairs for which this condition holds are units.

    Examples:
        >>> from likewise.formula import POSITIVES, per_pair, relu, s
        >>> per_pair(POSITIVES, relu(1.0 - s)).total
        sum[positives](relu(1.0 - s))
    """
    check_side(over)
    value = _guard_empty(value, needs)
    value = value if among is None else where(among, value, 0.0)
    formulas = (add_up(value, over), count(over, among), count(over, apply("nonzero", value)))
    for side in needs:
        formulas = tuple(where(_HAS[side], formula, 0) for formula in formulas)  # type: ignore[assignment]
    return Term(*formulas, value=value, over=over, among=among)


def mean_over_batch(curve: Operand, over: Side) -> Formula:
    """The mean of a curve over all pairs of one side in the whole batch (zero if there is none).

    Examples:
        >>> from likewise.formula import POSITIVES, mean_over_batch, s
        >>> mean_over_batch(s, POSITIVES)
        total(sum[positives](s)) / at_least(total(count[positives](1.0)), 1)
    """
    return Total(add_up(curve, over)) / at_least(Total(count(over)), 1)


def sort_declaration(declaration: Declaration) -> tuple[list[Term], list[Regularizer], list[MatrixLoss]]:
    """Sort what a loss declares by kind.

    Examples:
        >>> sort_declaration(MatrixLoss(lambda batch, rows: []))[0]
        []
    """
    items = declaration if isinstance(declaration, tuple) else (declaration,)
    for item in items:
        if not isinstance(item, Term | Regularizer | MatrixLoss):
            raise TypeError(
                "declare() must return terms, made with per_anchor, per_pair or per_triplet, Regularizer or MatrixLoss, "
                f"but it returned {item!r}"
            )
    terms = [item for item in items if isinstance(item, Term)]
    regularizers = [item for item in items if isinstance(item, Regularizer)]
    matrix_losses = [item for item in items if isinstance(item, MatrixLoss)]
    return terms, regularizers, matrix_losses


# a loss declares once and runs many times
_WITHIN: WeakKeyDictionary[Term, dict[Thresholded, Term]] = WeakKeyDictionary()


def term_within(term: Term, thresholds: Thresholded) -> Term:
    """`Term.within`, cached for the term.

    Examples:
        >>> from likewise.formula import NEGATIVES, per_pair, relu, s
        >>> term_within(per_pair(NEGATIVES, relu(s)), Thresholded(low=0.5)).units
        count[negatives](0.5 < relu(s))
    """
    if torch.compiler.is_compiling():
        return term.within(thresholds)
    made = _WITHIN.setdefault(term, {})
    if thresholds not in made:
        made[thresholds] = term.within(thresholds)
    return made[thresholds]
