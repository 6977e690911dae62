"""Operations on boolean masks, in the fastest form for each device; the result is the same on every device.

This file, `likewise.formula.checks`, `likewise.formula.indexing` and `likewise.formula.precision` are the only ones of
this package that depend on the device type (docs/decisions/0014-one-language.md).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from likewise._compat import is_transformed

_LARGE = 2**16
"""The number of entries below which the faster form costs more than it saves."""

_BITS = {torch.float32: torch.int32, torch.float64: torch.int64}


def sum_kept(values: Tensor, keep: Tensor) -> Tensor:
    """The sum of each row's kept values, differentiable.

    Examples:
        >>> sum_kept(torch.tensor([[1.0, 2.0, 4.0]]), torch.tensor([[True, False, True]]))
        tensor([5.])
    """
    if keep.numel() < _LARGE or is_transformed():
        return torch.where(keep, values, 0.0).sum(dim=1)
    total: Tensor = _SumKept.apply(values, keep)  # type: ignore[no-untyped-call]
    return total


class _SumKept(torch.autograd.Function):
    """The sum with an explicit derivative, because selection by a mask is slow on a CPU."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, keep: Tensor) -> Tensor:
        ctx.save_for_backward(keep)
        return _or_zero(values, keep).sum(dim=1)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (keep,) = ctx.saved_tensors
        return keep.view(torch.uint8).to(grad.dtype) * grad[:, None], None


def _or_zero(values: Tensor, keep: Tensor) -> Tensor:
    """Return the kept values, zero elsewhere; on a CPU, bitwise and is three times as fast as boolean selection."""
    bits = _BITS.get(values.dtype)
    if bits is None or _is_not_cpu(keep):
        return torch.where(keep, values, 0.0)
    all_or_none = keep.view(torch.int8).neg().to(bits)  # true is 1, and all bits of −1 are set
    return all_or_none.bitwise_and_(values.view(bits)).view(values.dtype)


def count_true(keep: Tensor) -> Tensor:
    """The number of true entries of each row; a CPU adds 32-bit integers twice as fast as 64-bit ones, for large rows.

    Examples:
        >>> count_true(torch.tensor([[True, False, True]]))
        tensor([2])
    """
    if keep.numel() < _LARGE or _is_not_cpu(keep):
        return keep.sum(dim=1)
    return keep.sum(dim=1, dtype=torch.int32).long()


def is_equal(column: Tensor, row: Tensor) -> Tensor:
    """``column == row``, a matrix; a CPU writes bytes twice as fast as booleans.

    Examples:
        >>> is_equal(torch.tensor([[1], [2]]), torch.tensor([[2, 1]]))
        tensor([[False,  True],
                [ True, False]])
    """
    if _is_not_cpu(column) or is_transformed():
        return column == row
    result = torch.empty(len(column), row.shape[1], dtype=torch.uint8)
    return torch.eq(column, row, out=result).view(torch.bool)


def _is_not_cpu(tensor: Tensor) -> bool:
    """Return whether the plain form is better: on other devices, and under a compiler."""
    return tensor.device.type != "cpu" or torch.compiler.is_compiling()
