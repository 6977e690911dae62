"""Folds over rows with an index of their positives: a few columns of each row; all other columns are negatives.

A mask has an entry for every column; an index has one for every positive.  Folds over positives read only these columns,
and a log-sum-exp over negatives writes −∞ there.  No mask is computed, and the curve of the positives, such as a margin
on an angle, is computed only for positives.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from likewise._compat import is_transformed
from likewise.engines.dense import last_uses
from likewise.engines.pair_numbers import PairNumbers
from likewise.engines.schedule import Engine
from likewise.formula import (
    Apply,
    Folded,
    Formula,
    LogSumExp,
    Max,
    Mean,
    Min,
    Number,
    PerReference,
    PositiveIndex,
    Rank,
    Side,
    State,
    Sum,
    count,
    evaluate,
    s,
    walk,
)

_FARTHEST = -80.0
"""e⁻⁸⁰ is negligible against the peak's e⁰, and smaller values would be denormal, which multiply slowly."""

_LOG2_E = 1.0 / math.log(2.0)

_KEEPS_ONE_VALUE = (LogSumExp, Sum, Mean, Max, Min)
"""Folds that return a single value unchanged."""


@dataclass(frozen=True, eq=False)
class PositiveColumns:
    """The columns of each row's positives.

    Args:
        columns: ``(m, k)``, all within the width.
        exists: which of them are positives, ``(m, k)``; the others are columns without a positive of the row.
            ``None``: all are.
        width: the number of columns.
        itself: the column of the row itself, ``(m, 1)``, on neither side; ``None`` where rows are not columns.

    Examples:
        >>> import torch
        >>> PositiveColumns.within(torch.tensor([[5], [-1]]), slice(4, 8)).exists.tolist()
        [[True], [False]]
    """

    columns: Tensor
    exists: Tensor | None
    width: int
    itself: Tensor | None = None

    @classmethod
    def of_batch(cls, positives: PositiveIndex, width: int, first: int) -> PositiveColumns:
        """The columns for a batch against itself; the first row is anchor number ``first``."""
        index, exists = positives.index, positives.exists
        itself = torch.arange(first, first + len(index), device=index.device)[:, None]
        # an entry that does not exist must not point to the column of an existing one in its row
        return cls(index if exists is None else torch.where(exists, index, itself), exists, width, itself)

    @classmethod
    def within(cls, columns: Tensor, chunk: slice) -> PositiveColumns:
        """The columns inside a chunk of columns; negative indices are in none."""
        width, columns = chunk.stop - chunk.start, columns - chunk.start
        return cls(columns.clamp(0, width - 1), (columns >= 0) & (columns < width), width)

    def mask(self, over: Side) -> Tensor:
        """The pairs of a side, ``(m, width)`` booleans, for folds that need them."""
        everything = torch.ones(len(self.columns), self.width, dtype=torch.bool, device=self.columns.device)
        return self.leave_out(everything, over, False)

    def leave_out(self, values: Tensor, over: Side, instead: float) -> Tensor:
        """Write a number, in place, to every column that is not part of the side."""
        if over is not Side.BOTH:
            values = write(values, self.columns, self.exists, instead)
        return values if self.itself is None else write(values, self.itself, None, instead)

    def count(self, over: Side) -> Tensor:
        """The number of pairs of a side, ``(m,)``."""
        m, k = self.columns.shape
        everything = self.width if self.itself is None else self.width - 1
        if over is Side.BOTH or self.exists is None:
            number = {Side.BOTH: everything, Side.NEGATIVES: everything - k, Side.POSITIVES: k}[over]
            return torch.full((m,), number, device=self.columns.device)
        positives = self.exists.sum(dim=1)
        return positives if over is Side.POSITIVES else everything - positives


def write(values: Tensor, columns: Tensor, exists: Tensor | None, instead: float) -> Tensor:
    """Write a number, in place, to some columns of each row, where they exist.

    Examples:
        >>> import torch
        >>> write(torch.ones(2, 2), torch.tensor([[1], [1]]), torch.tensor([[True], [False]]), 0.0)
        tensor([[1., 0.],
                [1., 1.]])
    """
    # vmap cannot write columns that it maps over into values that it does not map over
    put = values.scatter if is_transformed() else values.scatter_
    if exists is None:
        return put(1, columns, instead)
    return put(1, columns, torch.where(exists, instead, values.gather(1, columns)))


def broadcast(numbers: dict[Formula, Any], columns: slice | Tensor, rows: int) -> dict[Formula, Any]:
    """Numbers as matrices: per anchor ``(m, 1)``; per reference ``(1, width)`` and per pair ``(m, width)``, or ``(m, k)``.

    Args:
        numbers: the numbers.
        columns: a chunk of columns, or chosen ones of each row, ``(m, k)``.
        rows: the number of rows m.

    Examples:
        >>> import torch
        >>> bias = PerReference("bias", lambda batch: torch.arange(3.0))
        >>> broadcast({bias: torch.arange(3.0)}, torch.tensor([[2], [1]]), rows=2)[bias].tolist()
        [[2.0], [1.0]]
    """
    shaped: dict[Formula, Any] = {}
    for node, value in numbers.items():
        if isinstance(value, PairNumbers):
            shaped[node] = value.chunk(rows, columns) if isinstance(columns, slice) else value.at_columns(columns)
        elif isinstance(node, PerReference):
            shaped[node] = value[None, columns] if isinstance(columns, slice) else value[columns]
        else:
            shaped[node] = value[:, None] if node.rank == Rank.ANCHOR else value
    return shaped


def collect_numbers(folds: list[Folded], known: dict[Formula, Any]) -> dict[Formula, Any]:
    """The numbers that curves refer to besides `s`: known ones, and learned scalars, which also get a gradient.

    Examples:
        >>> import torch
        >>> from likewise.formula import POSITIVES, add_up
        >>> scale = Number(torch.tensor(2.0))
        >>> collect_numbers([add_up(scale * s, POSITIVES)], {})
        {learned(2): tensor(2.)}
    """
    found: dict[Formula, Any] = {}
    for node in walk(*(each.curve for each in folds)):
        if node in known:
            found[node] = known[node]
        elif isinstance(node, Number) and isinstance(node.value, Tensor):
            found[node] = node.value
    return found


def start_positives(
    folds: list[Folded], own: Tensor, positives: PositiveColumns, numbers: dict[Formula, Any]
) -> dict[Folded, State]:
    """The states of folds over positives.

    Args:
        folds: the folds.
        own: the similarities of the positives, ``(m, k)``.
        positives: their columns.
        numbers: the numbers in the curves: per anchor ``(m,)``, per reference ``(n,)`` and per pair (`PairNumbers`).

    Examples:
        >>> import torch
        >>> from likewise.formula import POSITIVES, add_up
        >>> positives = PositiveColumns(torch.tensor([[1]]), None, width=3)
        >>> list(start_positives([add_up(2.0 * s, POSITIVES)], torch.tensor([[0.4]]), positives, {}).values())
        [(tensor([0.8000]),)]
    """
    pairs = {s: own, **broadcast(numbers, positives.columns, len(own))}
    keep = torch.ones_like(own, dtype=torch.bool) if positives.exists is None else positives.exists
    return {
        each: (positives.count(each.over),) if _is_count(each) else each.fold.start(_matrix(each.curve, pairs), keep)
        for each in folds
    }


def fold_positives(
    folds: list[Folded], own: Tensor, positives: PositiveColumns, numbers: dict[Formula, Any]
) -> dict[Formula, Tensor]:
    """Finished folds over positives; the arguments are those of `start_positives`.

    Examples:
        >>> import torch
        >>> from likewise.formula import POSITIVES, logsumexp
        >>> positives = PositiveColumns(torch.tensor([[1]]), None, width=3)
        >>> list(fold_positives([logsumexp(2.0 * s, POSITIVES)], torch.tensor([[0.4]]), positives, {}).values())
        [tensor([0.8000])]
    """
    one = positives.exists is None and own.shape[1] == 1
    plain = [each for each in folds if one and isinstance(each.fold, _KEEPS_ONE_VALUE)]
    pairs = {s: own, **broadcast(numbers, positives.columns, len(own))} if plain else {}
    results: dict[Formula, Tensor] = {each: _matrix(each.curve, pairs)[:, 0] for each in plain}
    states = start_positives([each for each in folds if each not in results], own, positives, numbers)
    return results | {each: each.fold.finish(state) for each, state in states.items()}


def start_others(
    folds: list[Folded],
    similarities: Tensor,
    positives: PositiveColumns,
    columns: slice,
    numbers: dict[Formula, Any],
) -> tuple[dict[Folded, State], Tensor]:
    """The states of folds over negatives and over both sides, and the similarities of the positives.

    Args:
        folds: the folds.
        similarities: some columns of the matrix, ``(m, width)``.
        positives: the positives among these columns.
        columns: which of all references the columns are.
        numbers: the numbers in the curves: per anchor ``(m,)``, per reference ``(n,)`` and per pair (`PairNumbers`).

    Examples:
        >>> import torch
        >>> from likewise.formula import NEGATIVES, largest
        >>> similarities = torch.tensor([[0.1, 0.9, 0.3]])
        >>> positives = PositiveColumns(torch.tensor([[1]]), None, width=3)
        >>> states, own = start_others([largest(s, NEGATIVES)], similarities, positives, slice(0, 3), {})
        >>> list(states.values()), own
        ([(tensor([0.3000]), tensor([1]))], tensor([[0.9000]]))
    """
    pairs: dict[Formula, Any] = {s: similarities, **broadcast(numbers, columns, len(similarities))}
    states: dict[Folded, State] = {}
    masks: dict[Side, Tensor] = {}
    own: Tensor | None = None
    ends = last_uses(folds)
    for each in folds:
        if _is_count(each):
            states[each] = (positives.count(each.over),)
        elif type(each.fold) is LogSumExp and not is_transformed():
            *state, seen = _log_sum_exp(each, pairs, positives)
            states[each], own = tuple(state), seen if own is None else own
        else:
            if each.over not in masks:
                masks[each.over] = positives.mask(each.over)
            states[each] = each.fold.start(_matrix(each.curve, pairs), masks[each.over])
        for node in ends.get(each, ()):
            pairs.pop(node, None)
    return states, similarities.gather(1, positives.columns) if own is None else own


class IndexedEngine(Engine):
    """An engine with an index of each row's positives; folds over positives read only these columns.

    Examples:
        >>> issubclass(IndexedEngine, Engine)
        True
    """

    positives: PositiveColumns

    @abstractmethod
    def start_others(self, folds: list[Folded], numbers: dict[Formula, Any]) -> tuple[dict[Folded, State], Tensor]:
        """The states of folds over negatives and both sides, and the similarities of the positives.

        Args:
            folds: the folds.
            numbers: the numbers in their curves.
        """

    def fold(self, passes: list[list[Folded]], known: dict[Formula, Any]) -> dict[Formula, Tensor]:
        """One vector per fold."""
        results: dict[Formula, Tensor] = {}
        for folds in passes:
            near, states, own, numbers = self._run_pass(folds, {**known, **results})
            results |= {each: each.fold.finish(state) for each, state in states.items()}
            results |= fold_positives(near, own, self.positives, numbers)
        return results

    def states(self, folds: list[Folded], known: dict[Formula, Any]) -> list[State]:
        """The unfinished folds of one pass: the references may be one of several shards."""
        near, states, own, numbers = self._run_pass(folds, known)
        states |= start_positives(near, own, self.positives, numbers)
        return [states[each] for each in folds]

    def _run_pass(
        self, folds: list[Folded], known: dict[Formula, Any]
    ) -> tuple[list[Folded], dict[Folded, State], Tensor, dict[Formula, Any]]:
        """The pending folds over positives, the states of the others, the positives' similarities, and the numbers."""
        near = [each for each in folds if each.over is Side.POSITIVES]
        others = [each for each in folds if each.over is not Side.POSITIVES]
        return near, *self.start_others(others, collect_numbers(others, known)), collect_numbers(near, known)


class IndexedMatrix(IndexedEngine):
    """Folds over the matrix of a batch against itself, or over some of its rows.

    Args:
        similarities: the rows, ``(m, n)``.
        positives: the columns of their positives.

    Examples:
        >>> import torch
        >>> from likewise.formula import POSITIVES, smallest, s
        >>> S = torch.tensor([[1.0, 0.9, 0.2], [0.9, 1.0, 0.3], [0.2, 0.3, 1.0]])
        >>> index = PositiveIndex(torch.tensor([[1], [0], [0]]), torch.tensor([[True], [True], [False]]))
        >>> engine = IndexedMatrix(S, PositiveColumns.of_batch(index, 3, 0))
        >>> list(engine.fold([[smallest(s, POSITIVES)]], {}).values())
        [tensor([0.9000, 0.9000,    inf])]
    """

    def __init__(self, similarities: Tensor, positives: PositiveColumns) -> None:
        self.similarities, self.positives = similarities, positives

    def start_others(self, folds: list[Folded], numbers: dict[Formula, Any]) -> tuple[dict[Folded, State], Tensor]:
        """Compute the states from the matrix."""
        return start_others(folds, self.similarities, self.positives, slice(0, self.positives.width), numbers)


def _is_count(folded: Folded) -> bool:
    """Whether a fold counts pairs without a condition."""
    return folded is count(folded.over)


def _matrix(curve: Formula, pairs: dict[Formula, Any]) -> Tensor:
    """The values of a curve for every pair; a constant is broadcast."""
    values, similarities = evaluate(curve, pairs), pairs[s]
    values = values if isinstance(values, Tensor) else similarities.new_full((), values)
    matrix: Tensor = values.expand_as(similarities)
    return matrix


def _log_sum_exp(
    folded: Folded, pairs: dict[Formula, Any], positives: PositiveColumns
) -> tuple[Tensor, Tensor, Tensor | None]:
    """The peak, the total, and the similarities of the positives if they are a by-product."""
    line, where = _line(folded.curve), (positives.columns, positives.exists, positives.itself, folded.over)
    if line is None:
        values = _matrix(folded.curve, pairs)
        peak, total, _ = _PeakAndTotal.apply(values, 1.0, 0.0, *where)  # type: ignore[no-untyped-call]
        return peak, total, None
    similarities, (factor, shift) = pairs[s], line
    # in the dtype of the similarities: a half-precision number must not be rounded again, for instance by a division
    numbers = {
        node: value.to(similarities.dtype) if isinstance(value, Tensor) else value
        for node, value in pairs.items()
        if node.rank < Rank.PAIR
    }
    peak, total, own = _PeakAndTotal.apply(similarities, evaluate(factor, numbers), shift, *where)  # type: ignore[no-untyped-call]
    return peak, total, own


def _line(curve: Formula) -> tuple[Formula, float] | None:
    """A curve as ``factor · (s + shift)``, with a factor per batch or anchor and a constant shift; ``None`` if it is not."""
    if curve is s:
        return Number(1.0), 0.0
    if not isinstance(curve, Apply):
        return None
    *_, last = arguments = curve.arguments
    if curve.operation == "neg":
        line = _line(last)
        return None if line is None else (-1.0 * line[0], line[1])
    if curve.operation in ("add", "sub") and arguments[0] is s and isinstance(last, Number):
        constant = last.value
        # a learned number has a gradient, which only the formula computes
        return (
            None if isinstance(constant, Tensor) else (Number(1.0), constant if curve.operation == "add" else -constant)
        )
    if curve.operation == "mul" and arguments[0].rank < Rank.PAIR:
        number, line = arguments[0], _line(last)
    elif curve.operation in ("mul", "div") and last.rank < Rank.PAIR:
        number, line = last if curve.operation == "mul" else 1.0 / last, _line(arguments[0])
    else:
        return None
    return None if line is None else (number * line[0], line[1])


class _PeakAndTotal(torch.autograd.Function):
    """The state of a log-sum-exp over one side of rows of ``scale · (v + shift)``, and the values of the positives.

    The derivative of both is explicit: one matrix, which autograd would sum from two.
    """

    @staticmethod
    def forward(
        ctx: Any,
        values: Tensor,
        scale: Tensor | float,
        shift: float,
        columns: Tensor,
        exists: Tensor | None,
        itself: Tensor | None,
        over: Side,
    ) -> tuple[Tensor, Tensor, Tensor]:
        weights = (values + shift).mul_(scale) if shift else values * scale
        weights = PositiveColumns(columns, exists, values.shape[1], itself).leave_out(weights, over, -torch.inf)
        # no result in place: torch 2.11's compiler loses its gradient
        peak = weights.amax(dim=1).clamp_min(torch.finfo(values.dtype).min)
        # a power of two takes a third of the time of a power of e on a CPU
        torch.threshold_(weights.sub_(peak[:, None]), _FARTHEST, -torch.inf).mul_(_LOG2_E).exp2_()
        # a row that is not empty sums to at least one; an empty one gets a logarithm of zero and no gradient
        total = weights.sum(dim=1).clamp_min(1.0)
        ctx.number, ctx.shift, ctx.over = None if isinstance(scale, Tensor) else scale, shift, over
        learned = scale if isinstance(scale, Tensor) else None
        ctx.save_for_backward(values, learned, columns, exists, itself, peak, weights)
        ctx.mark_non_differentiable(peak)
        ctx.set_materialize_grads(False)
        return peak, total, values.gather(1, columns)

    @staticmethod
    def backward(ctx: Any, _peak: Tensor | None, total: Tensor | None, own: Tensor | None) -> tuple[Tensor | None, ...]:
        values, scale, columns, exists, itself, peak, weights = ctx.saved_tensors
        scale = ctx.number if scale is None else scale
        again = torch.is_grad_enabled()
        if again:  # a second derivative: compute the weights again, with a graph
            positives = PositiveColumns(columns, exists, values.shape[1], itself)
            weights = torch.exp(((values + ctx.shift) * scale - peak[:, None]).clamp(_FARTHEST, 0.0))
            weights = weights * positives.leave_out(torch.ones_like(weights), ctx.over, 0.0)
        of_values, of_scale = None, None
        if total is not None:
            of_values = weights * (total[:, None] * scale)
            if ctx.needs_input_grad[1]:
                along = (weights * (values + ctx.shift)).sum(dim=1, keepdim=True)
                of_scale = (along * total[:, None]).sum_to_size(scale.shape)
        if own is not None:
            of_values = torch.zeros_like(values) if of_values is None else of_values
            add = of_values.scatter_add if again else of_values.scatter_add_
            of_values = add(1, columns, own)
        return of_values, of_scale, None, None, None, None, None
