"""Kernels on rows of embeddings: to unit length, in the order and dtype that products take, and the gradient back."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from likewise.backends.fused.program import Launcher, aligned


@triton.jit
def _lengths(x):
    """A row over its largest entry, that entry, and the norm of what is left; a row of zeros stays zero.

    The meaning of `likewise.core.similarity.unit`.
    """
    largest = tl.max(tl.abs(x), axis=0)
    there = largest >= 1.1754943508222875e-38
    scaled = tl.where(there, x / tl.where(there, largest, 1.0), 0.0)
    return scaled, largest, tl.maximum(tl.sqrt(tl.sum(scaled * scaled, axis=0)), 1.0), there


@triton.jit
def _prepare(
    X, order, out, scale, stride, D, WIDTH: tl.constexpr, BLOCK: tl.constexpr, SORTED: tl.constexpr,
    UNIT: tl.constexpr, EXACT: tl.constexpr,
):  # fmt: skip
    """One row, as it enters the product."""
    row = tl.program_id(0).to(tl.int64)
    source = tl.load(order + row) if SORTED else row
    k = tl.arange(0, BLOCK)
    x = tl.load(X + source * stride + k, mask=k < D, other=0.0).to(tl.float32)
    if EXACT:
        # a power of two changes no digit; the rest of the length is taken off the product
        largest = tl.max(tl.abs(x), axis=0)
        there = largest >= 1.1754943508222875e-38
        exponent = ((largest.to(tl.int32, bitcast=True) >> 23) & 255) - 126
        exponent = tl.minimum(tl.maximum(exponent, -125), 125)
        x = x * ((127 - exponent) << 23).to(tl.float32, bitcast=True)
        if UNIT:
            norm = tl.sqrt(tl.sum(x * x, axis=0))
            tl.store(scale + row, tl.where(there, 1.0 / tl.maximum(norm, 0.25), 0.0))
        else:
            tl.store(scale + row, ((127 + exponent) << 23).to(tl.float32, bitcast=True))
    elif UNIT:
        scaled, _, norm, _ = _lengths(x)
        x = scaled / norm
    tl.store(out + row * WIDTH + k, x.to(out.dtype.element_ty), mask=k < WIDTH)


@triton.jit
def _back(
    X, order, gradient, out, stride, D, WIDTH: tl.constexpr, BLOCK: tl.constexpr, SORTED: tl.constexpr,
    UNIT: tl.constexpr,
):  # fmt: skip
    """One row of the gradient, from the factor to the embedding: ``(g − u (u·g)) / ‖x‖``."""
    row = tl.program_id(0).to(tl.int64)
    source = tl.load(order + row) if SORTED else row
    k = tl.arange(0, BLOCK)
    g = tl.load(gradient + row * WIDTH + k, mask=k < D, other=0.0)
    if UNIT:
        x = tl.load(X + source * stride + k, mask=k < D, other=0.0).to(tl.float32)
        scaled, largest, norm, there = _lengths(x)
        u = scaled / norm
        g = (g - u * tl.sum(u * g, axis=0)) / norm / tl.where(there, largest, float("inf"))
    tl.store(out + source * D + k, g.to(out.dtype.element_ty), mask=k < D)


def _in_rows(matrix: Tensor) -> Tensor:
    matrix = matrix.detach()
    return matrix if matrix.stride(1) == 1 else matrix.contiguous()


_PREPARE, _BACK = Launcher(_prepare), Launcher(_back)


class Factor:
    """One side of the product: where it comes from, what is multiplied, and the way back.

    Args:
        source: embeddings ``(n, d)`` with their graph, or a factor that torch made of them.
        order: the order of rows in the product, if it is another one.
        unit: rows are to be scaled to unit length.
        dtype: of the product.
        given: the source in the 16 bits in which it was given: multiply these, and take lengths off the product.  The
            gradient is the source's: what several folds add up to is rounded once.

    Attributes:
        operand: what is multiplied, ``(n, width)``.
        scale: what products must be multiplied by, per row, where 16 bits are ``given``.
    """

    def __init__(
        self, source: Tensor, order: Tensor | None, *, unit: bool, dtype: torch.dtype, given: Tensor | None = None
    ) -> None:
        self.source, self.order, self.unit = source, order, unit
        n, d = source.shape
        exact = given is not None
        self.scale = source.new_empty(n, dtype=torch.float32) if exact else None
        self._x = _in_rows(source)
        x = self._x if given is None else _in_rows(given)
        width = d + -d % 16
        self._block = triton.next_power_of_2(width)
        if not (unit or exact) and order is None and width == d and x.dtype == dtype and x.is_contiguous():
            self.operand = x
            return
        self.operand = source.new_empty(n, width, dtype=dtype)
        arguments = (
            x, x if order is None else order, self.operand, self.operand if self.scale is None else self.scale,
            x.stride(0), d, width, self._block, order is not None, unit, exact,
        )  # fmt: skip
        key = (*arguments[4:], x.dtype, dtype, x.device, aligned(x))
        _PREPARE(n, key, arguments, warps=4)

    def empty(self, dtype: torch.dtype | None = None) -> Tensor:
        """A place for the gradient by the source, by default in its dtype."""
        return torch.empty_like(self._x, dtype=dtype, memory_format=torch.contiguous_format)

    def back(self, gradient: Tensor, first: int, out: Tensor) -> None:
        """Take rows of the gradient, from ``first`` on in the order of the product, to the source's."""
        n, d = len(gradient), self.source.shape[1]
        order = self._x if self.order is None else self.order[first:]
        source, place = (self._x, out) if self.order is not None else (self._x[first:], out[first:])
        arguments = (
            source, order, gradient, place, self._x.stride(0), d, gradient.shape[1], self._block,
            self.order is not None, self.unit,
        )  # fmt: skip
        key = (
            *arguments[4:],
            source.dtype,
            gradient.dtype,
            out.dtype,
            source.device,
            aligned(source, order, gradient, place),
        )
        _BACK(n, key, arguments, warps=4)
