"""What a loss declares: its parts, each a sum over units, and how they are averaged.

A *unit* is what a paper averages over: an anchor, a pair, a triplet.  A `Term` says per anchor what its units add up
to, how many they are and how many of them are not zero; every reduction follows from these three, as a ratio of two
sums, so that it does not matter where the anchors live.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from torch import Tensor

from likewise.distributed import SINGLE_PROCESS, ProcessGroup
from likewise.formula.batch import PairBatch
from likewise.formula.expressions import (
    Apply,
    Folded,
    Formula,
    Number,
    Operand,
    Total,
    apply,
    as_formula,
    at_least,
    where,
)
from likewise.formula.folds import NEGATIVES, POSITIVES, Side, add_up, check_side, count

Reduction: TypeAlias = Literal["mean", "nonzero", "sum", "none"]
REDUCTIONS: tuple[Reduction, ...] = ("mean", "nonzero", "sum", "none")


@dataclass(frozen=True, eq=False)
class Term:
    """One averaged term of a loss, as three formulas with one number per anchor.

    Args:
        total: the sum over the anchor's units.
        units: how many units the anchor has; a condition counts as one or none.
        nonzero: how many of them are not zero.

    Examples:
        >>> from likewise.formula import NEGATIVES, per_pair, relu, s
        >>> per_pair(NEGATIVES, relu(s - 0.5)).units
        count[negatives](1.0)
    """

    total: Formula
    units: Formula
    nonzero: Formula


@dataclass(frozen=True, eq=False)
class Regularizer:
    """A number that is added to the reduced loss as it is (margin loss's ``ν · mean β``).

    Examples:
        >>> import torch
        >>> Regularizer(torch.tensor(0.1)).value
        tensor(0.1000)
    """

    value: Tensor


class TermValues(NamedTuple):
    """A `Term` computed: tensors with one entry per anchor; a count that the reduction does not need may be missing.

    Examples:
        >>> import torch
        >>> one = torch.ones(2)
        >>> reduce([TermValues(total=2 * one, units=one, nonzero=one)], [], "mean")
        tensor(2.)
    """

    total: Tensor
    units: Tensor | None
    nonzero: Tensor | None


Streams: TypeAlias = Literal["not", "by rows", "itself"]


@dataclass(frozen=True, eq=False)
class MatrixLoss:
    """The declaration of a loss that is not a formula: it says openly that it looks at the whole matrix.

    Args:
        compute: maps a `PairBatch` to the values of the loss's parts.
        streams: how it gets by without the matrix: ``"by rows"`` where an anchor's value depends on that anchor's row
            alone, so that it may be computed on panels; ``"itself"`` where it never asks for the matrix; ``"not"``.

    Examples:
        >>> MatrixLoss(lambda pair_batch: []).streams
        'not'
    """

    compute: Callable[[PairBatch], list[TermValues]]
    streams: Streams = "not"


@dataclass(frozen=True, eq=False)
class FromProblem:
    """A declaration that is made when the batch is known: how many positives an anchor has, who it is compared with.

    Args:
        declare: maps a `PairBatch` and the name of the engine that will run it to a declaration.

    Examples:
        >>> FromProblem(lambda pair_batch, engine: MatrixLoss(lambda pair_batch: [])).declare is not None
        True
    """

    declare: Callable[[PairBatch, str], Declaration]


Declared: TypeAlias = Term | Regularizer | MatrixLoss | FromProblem
Declaration: TypeAlias = Declared | tuple[Declared, ...]


# one node each, so that a condition which several parts of a declaration need is computed once
_HAS = {side: count(side) > 0.0 for side in Side}


# operations that turn a huge number into an infinite one, or two infinite ones into NaN
_STEEP = ("mul", "div", "square", "exp", "sqrt")


def _guarded(value: Operand, needs: tuple[Side, ...]) -> Formula:
    """The formula with zero for what a fold is over an empty side that the loss needs, where that could do harm.

    The anchor is not counted, but its value is computed and differentiated all the same: an infinity there would come
    out of the gradient as NaN.  A log-sum-exp of nothing is huge, not infinite, and safe but for steep operations.
    """
    return _guard(as_formula(value), False, needs, {})


def _guard(node: Formula, steep: bool, needs: tuple[Side, ...], seen: dict[tuple[Formula, bool], Formula]) -> Formula:
    # what is shared stays shared; no closure, which would be a cycle that holds learned numbers
    if (node, steep) not in seen:
        seen[node, steep] = _guard_inside(node, steep, needs, seen)
    return seen[node, steep]


def _guard_inside(
    node: Formula, steep: bool, needs: tuple[Side, ...], seen: dict[tuple[Formula, bool], Formula]
) -> Formula:
    if isinstance(node, Apply):
        scaled = any(isinstance(argument, Number) for argument in node.arguments)
        steep = steep or (node.operation in _STEEP and not scaled)
        arguments = tuple([_guard(argument, steep, needs, seen) for argument in node.arguments])
        same = all(new is old for new, old in zip(arguments, node.arguments, strict=True))
        return node if same else Apply(node.operation, arguments)
    if not isinstance(node, Folded):
        return node
    curve = _guard(node.curve, steep, needs, seen)
    fold = node if curve is node.curve else Folded(node.fold, node.over, curve)
    harmful = node.over in needs and (steep or node.fold.infinite_when_empty)
    return where(_HAS[node.over], fold, 0.0) if harmful else fold


def per_anchor(value: Operand, needs: tuple[Side, ...] = (POSITIVES, NEGATIVES)) -> Term:
    """One unit per anchor; an anchor that lacks a side which the loss needs contributes nothing and is not counted.

    Examples:
        >>> from likewise.formula import NEGATIVES, largest, per_anchor, s
        >>> per_anchor(largest(s, NEGATIVES), needs=(NEGATIVES,)).total
        where(0.0 < count[negatives](1.0), where(0.0 < count[negatives](1.0), max[negatives](s), 0.0), 0.0)
    """
    value = _guarded(value, needs)
    if not needs:
        counted: Formula = apply("less", -1.0, count(POSITIVES))  # every anchor
    else:
        counted = _HAS[needs[0]]
        for side in needs[1:]:
            counted = counted & _HAS[side]
        value = where(counted, value, 0.0)
    return Term(value, counted, apply("nonzero", value))


def per_pair(over: Side, value: Operand, needs: tuple[Side, ...] = ()) -> Term:
    """One unit per pair of one side, for anchors that also have a pair of every side in ``needs``.

    Examples:
        >>> from likewise.formula import POSITIVES, per_pair, relu, s
        >>> per_pair(POSITIVES, relu(1.0 - s)).total
        sum[positives](relu(1.0 - s))
    """
    check_side(over)
    value = _guarded(value, needs)
    formulas = (add_up(value, over), count(over), count(over, apply("nonzero", value)))
    for side in needs:
        formulas = tuple(where(_HAS[side], formula, 0) for formula in formulas)  # type: ignore[assignment]
    return Term(*formulas)


def mean_over_batch(curve: Operand, over: Side) -> Formula:
    """The mean of a curve over all pairs of one side in the whole batch (zero if there is none).

    Examples:
        >>> from likewise.formula import POSITIVES, mean_over_batch, s
        >>> mean_over_batch(s, POSITIVES)
        total(sum[positives](s)) / at_least(total(count[positives](1.0)), 1)
    """
    return Total(add_up(curve, over)) / at_least(Total(count(over)), 1)


def made_for(declaration: Declaration, pair_batch: PairBatch, engine: str) -> tuple[Declared, ...]:
    """A declaration with everything said that depends on the batch.

    Examples:
        >>> whole = MatrixLoss(lambda pair_batch: [])
        >>> made_for(FromProblem(lambda pair_batch, engine: whole), None, "dense")[0] is whole
        True
    """
    items: tuple[Declared, ...] = declaration if isinstance(declaration, tuple) else (declaration,)
    if not any(isinstance(item, FromProblem) for item in items):
        return items
    made: list[Declared] = []
    for item in items:
        more = item.declare(pair_batch, engine) if isinstance(item, FromProblem) else item
        made.extend(made_for(more, pair_batch, engine))
    return tuple(made)


def sort_declaration(declaration: Declaration) -> tuple[list[Term], list[Regularizer], list[MatrixLoss]]:
    """Sort what a loss declared by kind; what is still to be made from the batch is left out.

    Examples:
        >>> sort_declaration(MatrixLoss(lambda pair_batch: []))[0]
        []
    """
    items = declaration if isinstance(declaration, tuple) else (declaration,)
    for item in items:
        if not isinstance(item, Term | Regularizer | MatrixLoss | FromProblem):
            raise TypeError(
                "declare() must return parts, made with per_anchor, per_pair, Regularizer or MatrixLoss, "
                f"but it returned {item!r}"
            )
    parts = [item for item in items if isinstance(item, Term)]
    regularizers = [item for item in items if isinstance(item, Regularizer)]
    whole = [item for item in items if isinstance(item, MatrixLoss)]
    return parts, regularizers, whole


def reduce(
    values: list[TermValues], regularizers: list[Tensor], reduction: Reduction, group: ProcessGroup = SINGLE_PROCESS
) -> Tensor:
    """Reduce parts to the loss: ``Σ total / Σ units`` and its kin, each part on its own.

    Args:
        values: the parts.
        regularizers: added to the scalar, or in equal shares to the anchors.
        reduction: ``"mean"`` over units, ``"nonzero"`` over units that are not zero, ``"sum"``, or ``"none"``: one value
            per anchor, the sum over its units.
        group: over which processes the anchors are group.

    Examples:
        >>> import torch
        >>> part = TermValues(torch.tensor([3.0, 0.0]), torch.tensor([2.0, 1.0]), torch.tensor([1.0, 0.0]))
        >>> reduce([part], [], "mean"), reduce([part], [], "nonzero"), reduce([part], [], "none")
        (tensor(1.), tensor(3.), tensor([3., 0.]))
    """
    if reduction == "none":
        shared = [equal_share(penalty, values[0].total, group) for penalty in regularizers]
        return _add([part.total for part in values] + shared)
    sums = [part.total.sum() for part in values]
    if reduction != "sum":
        for part in values:
            counts = part.units if reduction == "mean" else part.nonzero
            assert counts is not None, "a part has the count that the reduction needs"
            sums.append(counts.sum())
    sums = group.totals(sums)
    totals, counts_of = sums[: len(values)], sums[len(values) :]
    if reduction != "sum":
        totals = [total / number.clamp_min(1) for total, number in zip(totals, counts_of, strict=True)]
    return _add(totals + regularizers)


def equal_share(number: Tensor, anchors: Tensor, group: ProcessGroup) -> Tensor:
    """A number divided by how many anchors there are, on all processes together.

    Examples:
        >>> import torch
        >>> equal_share(torch.tensor(6.0), torch.zeros(3), SINGLE_PROCESS)
        tensor(2.)
    """
    if group is SINGLE_PROCESS:
        return number / len(anchors)
    return number / group.total(number.new_tensor(float(len(anchors))))


def _add(terms: list[Tensor]) -> Tensor:
    result = terms[0]
    for term in terms[1:]:
        result = result + term
    return result
