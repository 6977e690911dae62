"""Folds: reductions of a row of pairs to one number.

A fold turns the values of a curve over one anchor's positives (or negatives, or both) into one number.  It is an
associative accumulator: `Fold.start` makes a state from a tile of values, `Fold.merge` merges the states of two tiles,
`Fold.finish` computes the number.  Any tiling of the references gives the same result, so the same declaration runs on
a whole matrix, on tiles, inside a kernel and across processes.

An empty row is not an error: it gives the fold's identity, −∞ for max, +∞ for min, 0 for the others.  For log-sum-exp it
is the most negative finite number instead of −∞, which has the same effect in most formulas and keeps gradients finite.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from enum import Enum
from typing import Any, ClassVar

import torch
from torch import Tensor

from likewise._compat import is_transformed
from likewise.formula.expressions import Folded, Formula, Number, Operand, as_formula
from likewise.formula.masking import count_true, sum_kept

State = tuple[Tensor, ...]


class Side(Enum):
    """Which pairs of an anchor a fold runs over.

    Examples:
        >>> Side.POSITIVES is POSITIVES
        True
    """

    POSITIVES = "positives"
    NEGATIVES = "negatives"
    BOTH = "both"
    EACH_POSITIVE = "each positive"

    @property
    def binds_positive(self) -> bool:
        """Whether a fold over this side binds `likewise.formula.s_p`, and not `likewise.formula.s`."""
        return self is Side.EACH_POSITIVE


POSITIVES = Side.POSITIVES
NEGATIVES = Side.NEGATIVES
BOTH = Side.BOTH
EACH_POSITIVE = Side.EACH_POSITIVE


class Fold(ABC):
    """An associative accumulator over the pairs of one anchor.

    Examples:
        >>> import torch
        >>> values, keep = torch.tensor([[1.0, 2.0, 9.0]]), torch.tensor([[True, True, False]])
        >>> fold = Sum()
        >>> fold.finish(fold.merge(fold.start(values, keep), fold.start(values, keep)))
        tensor([6.])
    """

    name: ClassVar[str]
    infinite_when_empty: ClassVar[bool] = False
    """Whether an empty row gives an infinity."""

    @abstractmethod
    def start(self, values: Tensor, keep: Tensor) -> State:
        """The state of one tile: values ``(m, n)`` where ``keep`` is true -> tensors ``(m,)``."""

    @abstractmethod
    def merge(self, left: State, right: State) -> State:
        """The state of two tiles together."""

    @abstractmethod
    def finish(self, state: State) -> Tensor:
        """One number per anchor."""

    def fold_whole(self, values: Tensor, keep: Tensor) -> Tensor:
        """The finished number of a single tile."""
        return self.finish(self.start(values, keep))

    @abstractmethod
    def derivative(self, values: Tensor, keep: Tensor, state: State) -> Tensor:
        """The derivative of the finished number by each value of a tile, given the state of the whole row."""


class LogSumExp(Fold):
    """``log Σ eᵛ``, relative to the largest value so that it cannot overflow.

    Examples:
        >>> import torch
        >>> fold, keep = LogSumExp(), torch.tensor([[True, True]])
        >>> fold.finish(fold.start(torch.tensor([[1000.0, 1000.0]]), keep))
        tensor([1000.6932])
    """

    name = "logsumexp"

    def start(self, values: Tensor, keep: Tensor) -> State:
        """The peak, a constant, and the sum of ``e^(v − peak)``.

        They are kept separate, because the logarithm and the weights would be lost to rounding if added to a large
        peak.
        """
        if is_transformed():
            peak = _peak(torch.where(keep, values.detach(), -torch.inf))
            return peak, _weights(values, keep, peak).sum(dim=1).clamp_min(1.0)
        peak, total = _PeakAndTotal.apply(values, keep)  # type: ignore[no-untyped-call]
        return peak, total

    def merge(self, left: State, right: State) -> State:
        """Move both sums to the larger peak."""
        peak = torch.maximum(left[0], right[0])
        return peak, left[1] * torch.exp(left[0] - peak) + right[1] * torch.exp(right[0] - peak)

    def finish(self, state: State) -> Tensor:
        """``log(total) + peak``."""
        peak, total = state
        return total.log() + peak

    def fold_whole(self, values: Tensor, keep: Tensor) -> Tensor:
        """``log(total) + peak`` as one function, which takes less time on a small tile."""
        if is_transformed() or type(self) is not LogSumExp:
            return super().fold_whole(values, keep)
        result: Tensor = _LogSumExp.apply(values, keep)  # type: ignore[no-untyped-call]
        return result

    def derivative(self, values: Tensor, keep: Tensor, state: State) -> Tensor:
        """``e^(v − peak) / total``, the softmax weight."""
        peak, total = state
        return _weights(values, keep, peak) / total[:, None]


_LOG2_E = 1.0 / math.log(2.0)


def _peak(masked: Tensor) -> Tensor:
    # no result in place: torch 2.11's compiler loses its gradient
    return masked.amax(dim=1).clamp_min(torch.finfo(masked.dtype).min)


def _weights(values: Tensor, keep: Tensor, peak: Tensor) -> Tensor:
    """``e^(v − peak)`` of the kept values, differentiable."""
    return torch.where(keep, torch.exp((values - peak[:, None]).clamp(-80.0, 0.0)), 0.0)


def _peak_and_weights(values: Tensor, keep: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The largest kept value of each row, ``e^(v − peak)``, and its sum; without a graph."""
    masked = torch.where(keep, values, -torch.inf)
    peak = _peak(masked)
    # e⁻⁸⁰ is negligible against the peak's e⁰, and smaller exponents would be denormal; a power of two takes a third
    # of the time of a power of e on a CPU
    weights = torch.threshold_(masked.sub_(peak[:, None]), -80.0, -torch.inf).mul_(_LOG2_E).exp2_()
    # a row that is not empty sums to at least one; an empty one gets a logarithm of zero and no gradient
    return peak, weights, weights.sum(dim=1).clamp_min(1.0)


class _PeakAndTotal(torch.autograd.Function):
    """The largest kept value of each row, and the sum of ``e^(v − peak)``, with an explicit derivative of the sum."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, keep: Tensor) -> tuple[Tensor, Tensor]:
        peak, weights, total = _peak_and_weights(values, keep)
        ctx.save_for_backward(values, keep, peak, weights)
        ctx.mark_non_differentiable(peak)
        ctx.set_materialize_grads(False)
        return peak, total

    @staticmethod
    def backward(ctx: Any, _grad_peak: None, grad_total: Tensor | None) -> tuple[Tensor | None, None]:
        if grad_total is None:
            return None, None
        values, keep, peak, weights = ctx.saved_tensors
        if torch.is_grad_enabled():  # second derivative: recompute the weights from the inputs
            weights = _weights(values, keep, peak)
        return weights * grad_total[:, None], None


class _LogSumExp(torch.autograd.Function):
    """The log-sum-exp of each row's kept values, with an explicit derivative."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, keep: Tensor) -> Tensor:
        peak, weights, total = _peak_and_weights(values, keep)
        ctx.save_for_backward(values, keep, peak, weights, total)
        return total.log() + peak

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        values, keep, peak, weights, total = ctx.saved_tensors
        if torch.is_grad_enabled():  # second derivative: recompute the weights from the inputs
            weights = _weights(values, keep, peak)
            total = weights.sum(dim=1).clamp_min(1.0)
        return weights * (grad / total)[:, None], None


class Sum(Fold):
    """``Σ v``.

    Examples:
        >>> import torch
        >>> Sum().finish(Sum().start(torch.ones(1, 3), torch.tensor([[True, False, True]])))
        tensor([2.])
    """

    name = "sum"

    def start(self, values: Tensor, keep: Tensor) -> State:
        """Sum what is kept."""
        return (sum_kept(values, keep),)

    def merge(self, left: State, right: State) -> State:
        """Add."""
        return (left[0] + right[0],)

    def finish(self, state: State) -> Tensor:
        """The sum itself."""
        return state[0]

    def derivative(self, values: Tensor, keep: Tensor, state: State) -> Tensor:
        """One."""
        return keep.to(values.dtype)


class Mean(Fold):
    """``Σ v / n``, zero for an empty row.

    Examples:
        >>> import torch
        >>> Mean().finish(Mean().start(torch.tensor([[1.0, 3.0]]), torch.tensor([[True, True]])))
        tensor([2.])
    """

    name = "mean"

    def start(self, values: Tensor, keep: Tensor) -> State:
        """Sum and count what is kept."""
        return sum_kept(values, keep), count_true(keep)

    def merge(self, left: State, right: State) -> State:
        """Add both."""
        return left[0] + right[0], left[1] + right[1]

    def finish(self, state: State) -> Tensor:
        """Divide the sum by the count, or by one if the row is empty."""
        return state[0] / state[1].clamp_min(1)

    def derivative(self, values: Tensor, keep: Tensor, state: State) -> Tensor:
        """``1 / n``."""
        return keep.to(values.dtype) / state[1].clamp_min(1)[:, None]


class Max(Fold):
    """The largest value; a gradient is shared equally among ties.

    Examples:
        >>> import torch
        >>> Max().finish(Max().start(torch.tensor([[1.0, 3.0]]), torch.tensor([[True, False]])))
        tensor([1.])
    """

    name = "max"
    infinite_when_empty = True

    def start(self, values: Tensor, keep: Tensor) -> State:
        """The largest value of the tile, and the number of entries that reach it."""
        masked = torch.where(keep, values, -torch.inf)
        largest = masked.amax(dim=1)
        return largest, (keep & (masked == largest[:, None])).sum(dim=1)

    def merge(self, left: State, right: State) -> State:
        """The larger value, and the number of entries that reach it."""
        largest = torch.maximum(left[0], right[0])
        return largest, left[1] * (left[0] == largest) + right[1] * (right[0] == largest)

    def finish(self, state: State) -> Tensor:
        """The value itself."""
        return state[0]

    def derivative(self, values: Tensor, keep: Tensor, state: State) -> Tensor:
        """One over the number of ties at the extreme value, zero elsewhere."""
        largest, ties = state
        return (keep & (values == largest[:, None])) / ties.clamp_min(1)[:, None]


class Min(Fold):
    """The smallest value: `Max` of the negated values.

    Examples:
        >>> import torch
        >>> Min().finish(Min().start(torch.tensor([[1.0, 3.0]]), torch.tensor([[True, True]])))
        tensor([1.])
    """

    name = "min"
    infinite_when_empty = True
    _turned = Max()

    def start(self, values: Tensor, keep: Tensor) -> State:
        """The smallest of the tile, negated."""
        return self._turned.start(-values, keep)

    def merge(self, left: State, right: State) -> State:
        """The smaller."""
        return self._turned.merge(left, right)

    def finish(self, state: State) -> Tensor:
        """The value itself."""
        return -self._turned.finish(state)

    def derivative(self, values: Tensor, keep: Tensor, state: State) -> Tensor:
        """As for `Max`."""
        return self._turned.derivative(-values, keep, state)


class Count(Fold):
    """The number of pairs (for which the curve, a condition, holds); it has no gradient.

    Examples:
        >>> import torch
        >>> Count().finish(Count().start(torch.tensor([[True, False]]), torch.tensor([[True, True]])))
        tensor([1])
    """

    name = "count"

    def start(self, values: Tensor, keep: Tensor) -> State:
        """Count what is kept and true."""
        # an engine passes the mask itself where there is no condition
        return (count_true(keep if values is keep else keep & values.bool()),)

    def merge(self, left: State, right: State) -> State:
        """Add."""
        return (left[0] + right[0],)

    def finish(self, state: State) -> Tensor:
        """The count, an integer: exact also beyond 2²⁴."""
        return state[0]

    def derivative(self, values: Tensor, keep: Tensor, state: State) -> Tensor:
        """Zero."""
        return torch.zeros_like(values)


_LOGSUMEXP, _SUM, _MEAN, _MAX, _MIN, _COUNT = LogSumExp(), Sum(), Mean(), Max(), Min(), Count()


def check_side(over: object) -> Side:
    """Return the argument if it is a `Side`, otherwise raise an error that lists the sides.

    Examples:
        >>> check_side(POSITIVES) is POSITIVES
        True
    """
    if not isinstance(over, Side):
        raise TypeError(f"over must be POSITIVES, NEGATIVES, BOTH or EACH_POSITIVE, but it is {over!r}")
    return over


def logsumexp(curve: Operand, over: Side) -> Formula:
    """``log Σ e^curve`` over one side's pairs, per anchor.

    Examples:
        >>> from likewise.formula import POSITIVES, s
        >>> logsumexp(-2.0 * (s - 0.5), POSITIVES)
        logsumexp[positives](-2.0 * (s - 0.5))
    """
    return Folded(_LOGSUMEXP, check_side(over), as_formula(curve))


def add_up(curve: Operand, over: Side) -> Formula:
    """``Σ curve`` over one side's pairs, per anchor.

    Examples:
        >>> from likewise.formula import NEGATIVES, relu, s
        >>> add_up(relu(s - 0.5), NEGATIVES)
        sum[negatives](relu(s - 0.5))
    """
    return Folded(_SUM, check_side(over), as_formula(curve))


def mean(curve: Operand, over: Side) -> Formula:
    """The mean of the curve over one side's pairs, per anchor.

    Examples:
        >>> from likewise.formula import POSITIVES, s
        >>> mean(s, POSITIVES)
        mean[positives](s)
    """
    return Folded(_MEAN, check_side(over), as_formula(curve))


def largest(curve: Operand, over: Side) -> Formula:
    """The largest value of the curve over one side's pairs, per anchor.

    Examples:
        >>> from likewise.formula import NEGATIVES, s
        >>> largest(s, NEGATIVES)
        max[negatives](s)
    """
    return Folded(_MAX, check_side(over), as_formula(curve))


def smallest(curve: Operand, over: Side) -> Formula:
    """The smallest value of the curve over one side's pairs, per anchor.

    Examples:
        >>> from likewise.formula import POSITIVES, s
        >>> smallest(s, POSITIVES)
        min[positives](s)
    """
    return Folded(_MIN, check_side(over), as_formula(curve))


# one node each, so that a count which several terms of a declaration need is computed once
_COUNTS = {side: Folded(_COUNT, side, Number(1.0)) for side in Side}


def count(over: Side, condition: Formula | None = None) -> Formula:
    """The number of an anchor's pairs on one side (for which a condition holds).

    Examples:
        >>> from likewise.formula import NEGATIVES, s
        >>> count(NEGATIVES), count(NEGATIVES, 0.5 < s)
        (count[negatives](1.0), count[negatives](0.5 < s))
    """
    check_side(over)
    return _COUNTS[over] if condition is None else Folded(_COUNT, over, condition)
