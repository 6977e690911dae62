"""Device functions that generated kernels call."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def _product(
    A, R, rows, columns, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    """Return a tile of inner products, accumulated in float32."""
    k = tl.arange(0, BK)
    left = A + rows[:, None] * D + k[None, :]
    right = R + columns[None, :] * D + k[:, None]
    products = tl.zeros([BM, BN], tl.float32)
    for start in range(0, D, BK):
        if D % BK == 0:
            a, b = tl.load(left), tl.load(right)
        else:
            a = tl.load(left, mask=(start + k < D)[None, :], other=0.0)
            b = tl.load(right, mask=(start + k < D)[:, None], other=0.0)
        products = tl.dot(a, b, products, input_precision=PRECISION)
        left += BK
        right += BK
    return products


@triton.jit
def _find_mixed(row_label, column_label, top, m, first_column, n, BM: tl.constexpr, BN: tl.constexpr):
    """Return the first tile whose range of labels overlaps that of a row of tiles, and the end of these tiles.

    Labels are sorted.  In rows that cross the edge of the matrix these are all tiles.
    """
    least, most = tl.load(row_label + top), tl.load(row_label + tl.minimum(top + BM, m) - 1)
    # the first columns whose labels are not below the least, and above the largest
    first, first_end = tl.minimum(first_column, n), tl.maximum(first_column, n)
    end, end_end = first, first_end
    while (first < first_end) | (end < end_end):
        middle, end_middle = first + (first_end - first) // 2, end + (end_end - end) // 2
        below = tl.load(column_label + tl.minimum(middle, n - 1)) < least
        reached = tl.load(column_label + tl.minimum(end_middle, n - 1)) <= most
        is_open, end_is_open = first < first_end, end < end_end
        first, first_end = tl.where(is_open & below, middle + 1, first), tl.where(below, first_end, middle)
        end, end_end = tl.where(end_is_open & reached, end_middle + 1, end), tl.where(reached, end_end, end_middle)
    inside = top + BM <= m
    first, end = (first - first_column) // BN, tl.cdiv(end - first_column, BN)
    return tl.where(inside, first, 0), tl.where(inside, end, tl.cdiv(n - first_column, BN))


@triton.jit
def _take_chunk(x, chunk: tl.constexpr, CHUNKS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    """Return one of one or two chunks of the columns of a tile; both are in registers already."""
    if CHUNKS == 2:
        first, second = tl.split(tl.permute(tl.reshape(x, [BM, 2, BN // 2]), [0, 2, 1]))
        x = first if chunk == 0 else second
    return x


@triton.jit
def _softplus(x):
    """``log(1 + eˣ)``, accurate for small results too: ``log(1 + e)`` itself would round a small ``e`` away."""
    e = tl.exp(-tl.abs(x))
    one = 1.0 + e
    log = tl.where(one == 1.0, e, e * tl.log(one) / tl.where(one == 1.0, 1.0, one - 1.0))
    return tl.maximum(x, 0.0) + log


@triton.jit
def _sigmoid(x):
    """``1 / (1 + e⁻ˣ)``, without overflow for large ``|x|``."""
    e = tl.exp(-tl.abs(x))
    return tl.where(x >= 0.0, 1.0, e) / (1.0 + e)


@triton.jit
def _tanh(x):
    """``tanh x``; ``eʸ − 1`` from ``eʸ`` and its logarithm keeps the digits of small numbers."""
    y = -2.0 * tl.minimum(tl.abs(x), 20.0)  # beyond, the result is one
    e = tl.exp(y)
    less_one = tl.where(e == 1.0, y, (e - 1.0) * y / tl.where(e == 1.0, 1.0, tl.log(e)))
    return tl.where(x < 0.0, less_one, -less_one) / (2.0 + less_one)


@triton.jit
def _acosh(x):
    """``arcosh max(x, 1)``, as ``log(1 + t + √t √(t + 2))`` with ``t = x − 1``; two roots, because ``t²`` overflows."""
    t = tl.maximum(x - 1.0, 0.0)
    t = t + tl.sqrt(t) * tl.sqrt(t + 2.0)
    one = 1.0 + t
    return tl.where(one == 1.0, t, t * tl.log(one) / tl.where(one == 1.0, 1.0, one - 1.0))


@triton.jit
def _power(x, exponent):
    """``xᵉ``, and zero where ``x ≤ 0``."""
    return tl.where(x > 0.0, tl.exp(exponent * tl.log(tl.where(x > 0.0, x, 1.0))), 0.0)
