"""Declarations of losses: terms, each a sum over units.

A *unit* is what a paper averages over: an anchor, a pair, a triplet.  A `Term` has, per anchor, the sum over its units,
the number of units and the number of units that are not zero (`likewise.formula.reductions`).

A declaration is a value: it does not depend on the engine or the batch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from likewise.formula.expressions import (
    Apply,
    Folded,
    Formula,
    Number,
    Operand,
    Total,
    apply,
    as_formula,
)
from likewise.formula.folds import NEGATIVES, POSITIVES, Side, add_up, check_side, count
from likewise.formula.operations import at_least, where
from likewise.formula.pair_numbers import AtPositive, PerPair, PerTriplet
from likewise.formula.reductions import Thresholded
from likewise.formula.traversal import ingredients, walk


@dataclass(frozen=True, eq=False)
class Term:
    """One averaged term of a loss, as three formulas with one number per anchor.

    Args:
        total: the sum over the anchor's units.
        units: the number of the anchor's units; a condition counts as one or zero.
        nonzero: the number of units that are not zero.
        value: the value of one unit: a formula of `likewise.formula.s` if units are pairs, one number per anchor if
            they are anchors; ``None`` if it is not known; `within` needs it.
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

    cache: dict[str, Any] = field(init=False, repr=False, default_factory=dict)
    """What engines derive once from the terms that begin with this one; it is dropped with the term."""

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


# one node each, so that a condition which several terms of a declaration need is computed once
_HAS = {side: count(POSITIVES if side.binds_positive else side) > 0.0 for side in Side}


# operations that turn a huge number into infinity, or two infinities into NaN
_STEEP = ("mul", "div", "square", "exp", "sqrt", "power")


def _guard_empty(value: Operand, needs: tuple[Side, ...]) -> Formula:
    """Return the formula with zero in place of folds over an empty side where infinity would be harmful.

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
    """Return a term with one unit per anchor; an anchor without a side that the loss needs is not counted.

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
    """Return a term with one unit per pair of one side, for anchors with a pair of every side in ``needs``.

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
