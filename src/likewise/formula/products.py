"""Matrix products of rows with a gradient: that of rows with themselves takes one product instead of two."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from likewise._compat import is_transformed
from likewise.formula.matmul import beats_torch, multiply_columns, multiply_rows
from likewise.formula.precision import autocast_is_on, full_precision

ROWS_PER_DIMENSION = 8
"""Rows per dimension up to which adding the transposed gradient takes less time than a second product."""

SMALL_SIDE = 256
"""Rows up to which adding a transposed matrix takes less time than transposing it first."""


def multiply_pairs(
    left: Tensor, right: Tensor, added: Tensor | None = None, factor: float = 1.0, *, cancels: bool = False
) -> Tensor:
    """Return ``factor · left rightᵀ + added``; if both are one tensor, its gradient takes one product.

    Args:
        left: the anchors, ``(m, d)``.
        right: the references, ``(n, d)``.
        added: a number per reference, ``(1, n)``.
        factor: multiplies the products.
        cancels: whether the caller subtracts numbers of about the same size, as it does for distances.

    Examples:
        >>> import torch
        >>> rows = torch.tensor([[1.0, 2.0], [0.0, 1.0]])
        >>> multiply_pairs(rows, rows, torch.tensor([[1.0, 0.0]]))
        tensor([[6., 2.],
                [3., 1.]])
    """
    # the sum of two gradients may exceed the range of float16; under autocast the product has another dtype than the rows
    plain = left.dtype == torch.float16 or autocast_is_on(left) or torch.compiler.is_compiling() or is_transformed()
    if not plain:
        if left is right and left.requires_grad and len(left) <= ROWS_PER_DIMENSION * left.shape[1]:
            product: Tensor = _SelfProduct.apply(left, added, factor, cancels)  # type: ignore[no-untyped-call]
            return product
        inputs = left, right, added
        if any(each is not None and each.requires_grad for each in inputs) and beats_torch(left, right):
            product = _PairProduct.apply(left, right, added, factor, cancels)  # type: ignore[no-untyped-call]
            return product
    return multiply_rows(left, right, added, factor, cancels=cancels)


class _SelfProduct(torch.autograd.Function):
    """``f x xᵀ + a``, whose gradients are ``f (g + gᵀ) x`` and the sum of g over its rows."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, added: Tensor | None, factor: float, cancels: bool) -> Tensor:
        ctx.save_for_backward(rows)
        ctx.factor = factor
        return multiply_rows(rows, rows, added, factor, cancels=cancels)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor | None, None, None]:
        (rows,) = ctx.saved_tensors
        is_small = len(rows) <= SMALL_SIDE or torch.is_grad_enabled()
        both = grad + grad.T if is_small else grad.T.clone(memory_format=torch.contiguous_format).add_(grad)
        with full_precision(rows):
            of_rows = multiply_rows(both, rows.T)
        of_added = grad.sum(dim=0, keepdim=True) if ctx.needs_input_grad[1] else None
        return of_rows if ctx.factor == 1.0 else ctx.factor * of_rows, of_added, None, None


class _PairProduct(torch.autograd.Function):
    """``f x yᵀ + a``, whose gradients are ``f g y``, ``f gᵀ x`` and the sum of g over its rows."""

    @staticmethod
    def forward(ctx: Any, left: Tensor, right: Tensor, added: Tensor | None, factor: float, cancels: bool) -> Tensor:
        ctx.save_for_backward(left, right)
        ctx.factor = factor
        return multiply_rows(left, right, added, factor, cancels=cancels)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        left, right = ctx.saved_tensors
        of_left = of_right = of_added = None
        with full_precision(left):
            if ctx.needs_input_grad[0]:
                of_left = multiply_rows(grad, right.T, factor=ctx.factor)
            if ctx.needs_input_grad[1]:
                of_right = multiply_columns(grad, left if ctx.factor == 1.0 else ctx.factor * left)
        if ctx.needs_input_grad[2]:
            of_added = grad.sum(dim=0, keepdim=True)
        return of_left, of_right, of_added, None, None
