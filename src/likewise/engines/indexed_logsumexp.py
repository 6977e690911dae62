"""Log-sum-exps over rows with an index of their positives, with an explicit derivative."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from likewise.engines.positive_columns import PositiveColumns
from likewise.formula import Apply, Folded, Formula, Number, Rank, Side, evaluate, s

_FARTHEST = -80.0
"""e⁻⁸⁰ is negligible against the peak's e⁰, and smaller values would be denormal, which multiply slowly."""


_LOG2_E = 1.0 / math.log(2.0)


def curve_values(curve: Formula, pairs: dict[Formula, Any]) -> Tensor:
    """The values of a curve for every pair; a constant is broadcast."""
    values, similarities = evaluate(curve, pairs), pairs[s]
    values = values if isinstance(values, Tensor) else similarities.new_full((), values)
    matrix: Tensor = values.expand_as(similarities)
    return matrix


def start_logsumexp(
    folded: Folded, pairs: dict[Formula, Any], positives: PositiveColumns
) -> tuple[Tensor, Tensor, Tensor | None]:
    """The peak, the total, and the similarities of the positives if they are a by-product."""
    line, where = _line(folded.curve), (positives.columns, positives.exists, positives.itself, folded.over)
    if line is None:
        values = curve_values(folded.curve, pairs)
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
