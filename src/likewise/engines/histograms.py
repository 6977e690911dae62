"""Soft histograms of the rows of a matrix, with linear interpolation between the two nearest nodes."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from likewise._compat import is_transformed
from likewise.formula import Formula, RowChunk, RowHistograms, evaluate, s

FIXED_POINT = 2.0**40
"""The number of steps between 0 and 1 in which weights are summed on a GPU; a row may have 2²² pairs."""


def compute_histograms(chunk: RowChunk, position: Formula, bins: int) -> RowHistograms:
    """Return the histograms of the rows of a chunk, over ``bins + 1`` nodes.

    Args:
        chunk: the rows.
        position: the position of each pair, in units of bins, as a formula of `s`; values outside are clamped.
        bins: the number of intervals.

    Examples:
        >>> import torch
        >>> from likewise.engines import map_rows
        >>> from likewise.formula import Labels, PairBatch
        >>> S = torch.tensor([[1.0, 0.25, 1.0], [0.25, 1.0, 0.0], [1.0, 0.0, 1.0]])
        >>> rows = map_rows(PairBatch(Labels(torch.tensor([0, 0, 1])), matrix=S))
        >>> rows.map(lambda chunk: compute_histograms(chunk, 2.0 * s, 2))[0]
        tensor([[0.5000, 0.5000, 0.0000],
                [0.5000, 0.5000, 0.0000],
                [0.0000, 0.0000, 0.0000]])
    """
    positive, negative = chunk.masks()
    positions = evaluate(position, {s: chunk.similarities})
    compute = _compute_traced if torch.compiler.is_compiling() or is_transformed() else _SoftHistograms.apply
    both = compute(positions, positive, negative, bins)
    return RowHistograms(both[:, bins + 1 :], both[:, : bins + 1], positive.sum(dim=1), negative.sum(dim=1))


def _locate(position: Tensor, positive: Tensor, bins: int) -> tuple[Tensor, Tensor]:
    """Return the index of the lower node, those of positives after those of negatives, and the weight of the upper one."""
    position = position.clamp(0.0, float(bins))
    lower = position.detach().floor().clamp(max=float(bins - 1))
    # a NaN has no node, but its weight propagates it to the value
    return lower.nan_to_num(0.0).long() + (bins + 1) * positive, position - lower


def _compute_traced(position: Tensor, positive: Tensor, negative: Tensor, bins: int) -> Tensor:
    """The histograms in operations that torch can trace and transform."""
    index, upper = _locate(position, positive, bins)
    kept = (positive | negative).to(position.dtype)
    both = position.new_zeros(len(position), 2 * (bins + 1))
    return both.scatter_add(1, index, kept * (1.0 - upper)).scatter_add(1, index + 1, kept * upper)


def add_up_weights(index: Tensor, upper: Tensor, kept: Tensor, bins: int) -> Tensor:
    """Add up the weights of each row at the two nodes of each pair."""
    weight = kept.to(upper.dtype)
    upper = upper * weight
    both = upper.new_zeros(len(upper), 2 * (bins + 1))
    return both.scatter_add_(1, index, weight - upper).scatter_add_(1, index + 1, upper)


def add_up_steps(index: Tensor, upper: Tensor, kept: Tensor, bins: int) -> Tensor:
    """The same in whole numbers: their sum does not depend on the order of a GPU's atomic additions."""
    whole = kept.long() * int(FIXED_POINT)
    part = (upper * kept).double().mul_(FIXED_POINT).nan_to_num_(0.0).long()
    sums = part.new_zeros(len(upper), 2 * (bins + 1))
    sums.scatter_add_(1, index, whole - part).scatter_add_(1, index + 1, part)
    undefined = torch.where(kept, upper * 0.0, 0.0).sum(dim=1, keepdim=True)
    return (sums.double() / FIXED_POINT).to(upper.dtype) + undefined


class _SoftHistograms(torch.autograd.Function):
    """The histograms of negatives and of positives in one row; the derivative by a position is a difference of two nodes."""

    @staticmethod
    def forward(ctx: Any, position: Tensor, positive: Tensor, negative: Tensor, bins: int) -> Tensor:
        index, upper = _locate(position, positive, bins)
        kept = positive | negative
        ctx.save_for_backward(index, kept & (position >= 0.0) & (position <= bins))
        add_up = add_up_weights if position.device.type == "cpu" else add_up_steps
        return add_up(index, upper, kept, bins)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
        index, inside = ctx.saved_tensors
        return torch.diff(grad, dim=1).gather(1, index) * inside, None, None, None
