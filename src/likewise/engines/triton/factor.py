"""One factor of the product: kernels that normalize, sort and convert rows of embeddings, and that compute their gradients."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from likewise.engines.triton.kernels import launch, next_power_of_two


@triton.jit
def _measure_row(x):
    """Return a row divided by a power of two, that power, the norm of the quotient, and whether the row is not zero.

    The meaning is that of `likewise.formula.unit`: the power is the largest up to the largest entry.
    """
    largest = tl.max(tl.abs(x), axis=0)
    power = (largest.to(tl.int32, bitcast=True) & 0x7F800000).to(tl.float32, bitcast=True)
    there = power > 0.0
    scaled = tl.where(there, x / tl.where(there, power, 1.0), 0.0)
    return scaled, power, tl.maximum(tl.sqrt(tl.sum(scaled * scaled, axis=0)), 1.0), there


@triton.jit
def _round_to_tf32(x):
    """Round to TF32, which keeps 10 of float32's 23 mantissa bits; ties round away from zero, as on the GPU."""
    bits = x.to(tl.int32, bitcast=True)
    rounded = ((bits + 0x1000) & -0x2000).to(tl.float32, bitcast=True)
    # a carry into the exponent turns numbers that are too large into infinity; infinity and NaN stay as they are
    return tl.where((bits & 0x7F800000) == 0x7F800000, x, rounded)


@triton.jit
def _round_to_bfloat16(x):
    """Round to bfloat16, which keeps 7 of float32's 23 mantissa bits; ties round to even, as in torch."""
    bits = x.to(tl.int32, bitcast=True)
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) & -0x10000).to(tl.float32, bitcast=True)
    return tl.where((bits & 0x7F800000) == 0x7F800000, x, rounded)


@triton.jit
def _prepare_row(
    X, order, out, scale, stride, D, WIDTH: tl.constexpr, BLOCK: tl.constexpr, SORTED: tl.constexpr,
    UNIT: tl.constexpr, SCALED: tl.constexpr, ROUNDED: tl.constexpr, HALVED: tl.constexpr,
):  # fmt: skip
    """Prepare one row for the product."""
    row = tl.program_id(0).to(tl.int64)
    source = tl.load(order + row) if SORTED else row
    k = tl.arange(0, BLOCK)
    x = tl.load(X + source * stride + k, mask=k < D, other=0.0).to(tl.float32)
    if HALVED:
        x = _round_to_bfloat16(x)
    if SCALED:
        # a power of two changes no mantissa bit; the product is multiplied by the rest of the inverse norm
        largest = tl.max(tl.abs(x), axis=0)
        there = largest >= 1.1754943508222875e-38
        exponent = ((largest.to(tl.int32, bitcast=True) >> 23) & 255) - 126
        exponent = tl.minimum(tl.maximum(exponent, -125), 125)
        x = x * ((127 - exponent) << 23).to(tl.float32, bitcast=True)
        norm = tl.sqrt(tl.sum(x * x, axis=0))
        tl.store(scale + row, tl.where(there, 1.0 / tl.maximum(norm, 0.25), 0.0))
    elif UNIT:
        scaled, _, norm, _ = _measure_row(x)
        x = scaled / norm
    if ROUNDED:
        # tensor cores truncate float32 to TF32, which is biased; rounding is not
        x = _round_to_tf32(x)
    tl.store(out + row * WIDTH + k, x.to(out.dtype.element_ty), mask=k < WIDTH)


@triton.jit
def _backward_row(
    X, order, scale, gradient, out, stride, D, WIDTH: tl.constexpr, BLOCK: tl.constexpr, SORTED: tl.constexpr,
    UNIT: tl.constexpr, SCALED: tl.constexpr, HALVED: tl.constexpr,
):  # fmt: skip
    """Compute one row of the gradient by the embeddings from that by the operand: ``(g − u (u·g)) / ‖x‖``."""
    row = tl.program_id(0).to(tl.int64)
    source = tl.load(order + row) if SORTED else row
    k = tl.arange(0, BLOCK)
    g = tl.load(gradient + row * WIDTH + k, mask=k < D, other=0.0)
    if SCALED:
        # gradients by similarities contain the scales of both factors; this factor's does not belong here
        own = tl.load(scale + row)
        g = g / tl.where(own > 0.0, own, 1.0)
    if UNIT:
        x = tl.load(X + source * stride + k, mask=k < D, other=0.0).to(tl.float32)
        if HALVED:  # the derivative of rounding is one
            x = _round_to_bfloat16(x)
        scaled, power, norm, there = _measure_row(x)
        u = scaled / norm
        g = (g - u * tl.sum(u * g, axis=0)) / norm / tl.where(there, power, float("inf"))
    tl.store(out + source * D + k, g.to(out.dtype.element_ty), mask=k < D)


def pad_width(d: int) -> int:
    """Return the width of an operand: a multiple of 16, so that rows load in whole vectors."""
    return d + -d % 16


def _contiguous_rows(matrix: Tensor) -> Tensor:
    """Return a detached matrix whose rows are contiguous."""
    matrix = matrix.detach()
    return matrix if matrix.stride(1) == 1 else matrix.contiguous()


class Factor:
    """One factor of the product: its source, the operand that kernels multiply, and the gradient by the source.

    Args:
        source: embeddings ``(n, d)`` with their graph, or a matrix that torch computed from them; of any float dtype.
        order: the order of rows in the product; ``None`` for the order of the source.
        unit: scale rows to unit length.
        dtype: of the operand.
        scaled: multiply rows without normalizing them, and normalize the product; the dtype must be able to represent
            the source.
        rounded: round to TF32.
        halved: round to bfloat16 before anything else.
        streamed: compute the operand of some rows when they are read, instead of that of all rows at once.

    Attributes:
        streamed: whether the operand is computed in chunks; not where it is the source itself.
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
        halved: bool = False,
        streamed: bool = False,
    ) -> None:
        self.source, self.order, self.unit = source, order, unit
        self._dtype, self._scaled, self._rounded, self._halved = dtype, scaled, rounded, halved
        x = self._x = _contiguous_rows(source)
        n, d = source.shape
        self._computed: tuple[int, int, Tensor, Tensor | None]  # the first row, the end, the operand, the scales
        is_operand = order is None and pad_width(d) == d and x.dtype == dtype and x.is_contiguous()
        if is_operand and not (unit or scaled or rounded or halved):
            self.streamed, self._computed = False, (0, n, x, None)
            return
        self.streamed = streamed
        self._computed = (0, 0, x[:0], None) if streamed else (0, n, *self._compute(0, n))

    @property
    def operand(self) -> Tensor:
        """The matrix that kernels multiply, ``(n, width)``; without rows if it is streamed."""
        return self.source.new_empty(0, dtype=self._dtype) if self.streamed else self._computed[2]

    @property
    def scale(self) -> Tensor | None:
        """The factors per row that normalize products, if the factor is scaled; without rows if it is streamed."""
        if self.streamed:
            return self.source.new_empty(0, dtype=torch.float32) if self._scaled else None
        return self._computed[3]

    def rows(self, first: int, end: int) -> tuple[Tensor, Tensor | None]:
        """Return some rows of the operand, and their scales; the last chunk of a streamed factor is kept."""
        if self.streamed and self._computed[:2] != (first, end):
            self._computed = (0, 0, self._x[:0], None)  # free its memory for the next one
            self._computed = (first, end, *self._compute(first, end))
        start, _, operand, scale = self._computed
        rows = slice(first - start, end - start)
        return operand[rows], None if scale is None else scale[rows]

    def _compute(self, first: int, end: int) -> tuple[Tensor, Tensor | None]:
        x, d = self._x, self._x.shape[1]
        operand = x.new_empty(end - first, pad_width(d), dtype=self._dtype)
        scale = x.new_empty(end - first, dtype=torch.float32) if self._scaled else None
        order = None if self.order is None else self.order[first:]
        source = x[first:] if order is None else x
        arguments = (
            source, source if order is None else order, operand, operand if scale is None else scale,
            x.stride(0), d, pad_width(d), next_power_of_two(pad_width(d)), order is not None,
            self.unit, self._scaled, self._rounded, self._halved,
        )  # fmt: skip
        launch(_prepare_row, end - first, arguments, x.device)
        return operand, scale

    def new_gradient(self, rows: int | None = None) -> Tensor:
        """Return an uninitialized tensor for the gradient by the source, or by a number of its rows."""
        return torch.empty_like(self._x[:rows], memory_format=torch.contiguous_format)

    def backward(self, gradient: Tensor, first: int, out: Tensor) -> None:
        """Compute the gradient by the source from that by some rows of the operand.

        Args:
            gradient: by rows ``first`` and following of the operand.
            first: the first row.
            out: receives the gradient; of these rows of the source, or of all rows if they are in another order.
        """
        order = None if self.order is None else self.order[first:]
        source = self._x[first:] if order is None else self._x
        scale = self.rows(first, first + len(gradient))[1]
        d = source.shape[1]
        arguments = (
            source, source if order is None else order, source if scale is None else scale, gradient, out,
            source.stride(0), d, pad_width(d), next_power_of_two(pad_width(d)), order is not None,
            self.unit, scale is not None, self._halved,
        )  # fmt: skip
        launch(_backward_row, len(gradient), arguments, source.device)
