"""Kernels on rows of embeddings: to unit length, in the order and dtype that products take, and the gradient back."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from likewise.engines.triton.program import launch, power_of_two


@triton.jit
def _lengths(x):
    """A row over its largest entry, that entry, and the norm of what is left; a row of zeros stays zero.

    The meaning of `likewise.formula.similarities.unit`.
    """
    largest = tl.max(tl.abs(x), axis=0)
    there = largest >= 1.1754943508222875e-38
    scaled = tl.where(there, x / tl.where(there, largest, 1.0), 0.0)
    return scaled, largest, tl.maximum(tl.sqrt(tl.sum(scaled * scaled, axis=0)), 1.0), there


@triton.jit
def _nearest(x):
    """The nearest numbers of TF32, which has 10 of float32's 23 digits; halves go away from zero, as on the card."""
    bits = x.to(tl.int32, bitcast=True)
    rounded = ((bits + 0x1000) & -0x2000).to(tl.float32, bitcast=True)
    # a carry may reach the exponent, which makes infinity of what is too large; what was none before stays as it is
    return tl.where((bits & 0x7F800000) == 0x7F800000, x, rounded)


@triton.jit
def _prepare(
    X, order, out, scale, stride, D, WIDTH: tl.constexpr, BLOCK: tl.constexpr, SORTED: tl.constexpr,
    UNIT: tl.constexpr, SCALED: tl.constexpr, ROUNDED: tl.constexpr,
):  # fmt: skip
    """One row, as it enters the product."""
    row = tl.program_id(0).to(tl.int64)
    source = tl.load(order + row) if SORTED else row
    k = tl.arange(0, BLOCK)
    x = tl.load(X + source * stride + k, mask=k < D, other=0.0).to(tl.float32)
    if SCALED:
        # a power of two changes no digit; the rest of the length is taken off the product
        largest = tl.max(tl.abs(x), axis=0)
        there = largest >= 1.1754943508222875e-38
        exponent = ((largest.to(tl.int32, bitcast=True) >> 23) & 255) - 126
        exponent = tl.minimum(tl.maximum(exponent, -125), 125)
        x = x * ((127 - exponent) << 23).to(tl.float32, bitcast=True)
        norm = tl.sqrt(tl.sum(x * x, axis=0))
        tl.store(scale + row, tl.where(there, 1.0 / tl.maximum(norm, 0.25), 0.0))
    elif UNIT:
        scaled, _, norm, _ = _lengths(x)
        x = scaled / norm
    if ROUNDED:
        # tensor cores take the first digits of a float32 and drop the others: a bias, where rounding has none
        x = _nearest(x)
    tl.store(out + row * WIDTH + k, x.to(out.dtype.element_ty), mask=k < WIDTH)


@triton.jit
def _back(
    X, order, scale, gradient, out, stride, D, WIDTH: tl.constexpr, BLOCK: tl.constexpr, SORTED: tl.constexpr,
    UNIT: tl.constexpr, SCALED: tl.constexpr,
):  # fmt: skip
    """One row of the gradient, from the factor to the embedding: ``(g − u (u·g)) / ‖x‖``."""
    row = tl.program_id(0).to(tl.int64)
    source = tl.load(order + row) if SORTED else row
    k = tl.arange(0, BLOCK)
    g = tl.load(gradient + row * WIDTH + k, mask=k < D, other=0.0)
    if SCALED:
        # slopes have the scales of both their sides, of which this side's is too much
        own = tl.load(scale + row)
        g = g / tl.where(own > 0.0, own, 1.0)
    if UNIT:
        x = tl.load(X + source * stride + k, mask=k < D, other=0.0).to(tl.float32)
        scaled, largest, norm, there = _lengths(x)
        u = scaled / norm
        g = (g - u * tl.sum(u * g, axis=0)) / norm / tl.where(there, largest, float("inf"))
    tl.store(out + source * D + k, g.to(out.dtype.element_ty), mask=k < D)


def padded(d: int) -> int:
    """The dimensions of an operand: rows of a multiple of 16 bytes load in whole vectors."""
    return d + -d % 16


def _in_rows(matrix: Tensor) -> Tensor:
    """The same numbers, without graph, each row in one piece."""
    matrix = matrix.detach()
    return matrix if matrix.stride(1) == 1 else matrix.contiguous()


class Factor:
    """One side of the product: where it comes from, what is multiplied, and the way back.

    Args:
        source: embeddings ``(n, d)`` with their graph, or a factor that torch made of them.
        order: the order of rows in the product, if it is another one.
        unit: rows are to be scaled to unit length.
        dtype: of the product.
        scaled: multiply rows as they are, and take their lengths off the product; the source must have no more digits
            than the dtype.
        rounded: round to TF32.

    Attributes:
        operand: what is multiplied, ``(n, width)``.
        scale: what products must be multiplied by, per row, where lengths are taken off them.
    """

    def __init__(
        self,
        source: Tensor,
        order: Tensor | None,
        *,
        unit: bool,
        dtype: torch.dtype,
        scaled: bool = False,
        rounded: bool = False,
    ) -> None:
        self.source, self.order, self.unit = source, order, unit
        n, d = source.shape
        self.scale = source.new_empty(n, dtype=torch.float32) if scaled else None
        x = self._x = _in_rows(source)
        as_it_is = order is None and padded(d) == d and x.dtype == dtype and x.is_contiguous()
        if as_it_is and not (unit or scaled or rounded):
            self.operand = x
            return
        self.operand = source.new_empty(n, padded(d), dtype=dtype)
        arguments = (
            x, x if order is None else order, self.operand, self.operand if self.scale is None else self.scale,
            x.stride(0), d, padded(d), power_of_two(padded(d)), order is not None, unit, scaled, rounded,
        )  # fmt: skip
        launch(_prepare, n, arguments, x.device)

    def empty(self) -> Tensor:
        """A place for the gradient by the source, in its dtype."""
        return torch.empty_like(self._x, memory_format=torch.contiguous_format)

    def back(self, gradient: Tensor, first: int, out: Tensor) -> None:
        """Take rows of the gradient, from ``first`` on in the order of the product, to the source's."""
        order = None if self.order is None else self.order[first:]
        source, place = (self._x[first:], out[first:]) if order is None else (self._x, out)
        scale = None if self.scale is None else self.scale[first:]
        d = source.shape[1]
        arguments = (
            source, source if order is None else order, source if scale is None else scale, gradient, place,
            source.stride(0), d, padded(d), power_of_two(padded(d)), order is not None, self.unit, scale is not None,
        )  # fmt: skip
        launch(_back, len(gradient), arguments, source.device)
