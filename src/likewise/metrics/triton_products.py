"""Float32 products on the bfloat16 units of a GPU, several times faster than on its float32 units.  Needs Triton.

A float32 number is the sum of three bfloat16 numbers: high, middle and low.  The product of two numbers is the sum of six
products of their parts, up to 2^−24 of it, as much as float32 rounds.  They are accumulated in float32, small ones first.
The units truncate where they accumulate, so that sums over a few dimensions are added by instructions that round.

The order of all sums is the same for every pair, wherever it stands and however large the matrices are, and it is symmetric:
exchanging the two vectors gives the same number.  This is why no library computes the product, as it does for losses in
`likewise.formula.parts`.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from likewise.metrics.chunks import fit_rows, split_rows
from likewise.triton_tools import place, place_above, use_device

DEPTH_MULTIPLE = 64
"""Parts are padded with zeros to a multiple of this number of dimensions."""


class Tile(NamedTuple):
    """The part of a product that a program computes.

    Args:
        side: the number of rows and of columns.
        depth: dimensions that are multiplied at a time; at most `DEPTH_MULTIPLE`.
        warps: the number of warps.
        stages: the number of stages of the pipeline that loads parts.
        group: rows of tiles that are traversed column by column, so that parts stay cached.
    """

    side: int
    depth: int
    warps: int
    stages: int
    group: int = 8


TILE = Tile(128, 32, 8, 4)
"""A thread holds three sums of 64 registers; a stage takes 48 KiB of shared memory."""


@triton.jit
def split_value(value):
    """Return the high, the middle and the low part of float32 numbers."""
    high = value.to(tl.bfloat16)
    rest = value - high.to(tl.float32)
    middle = rest.to(tl.bfloat16)
    return high, middle, (rest - middle.to(tl.float32)).to(tl.bfloat16)


@triton.jit(do_not_specialize=["n", "width"])
def _split(rows, row_stride, parts, n, width, depth, ROWS: tl.constexpr, WIDTH: tl.constexpr):
    """Split float32 rows into three bfloat16 parts, one after the other; the padding is zero."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.program_id(1) * WIDTH + tl.arange(0, WIDTH)
    mask = (row < n)[:, None] & (column < width)[None, :]
    value = tl.load(rows + row.to(tl.int64)[:, None] * row_stride + column[None, :], mask=mask, other=0.0)
    high, middle, low = split_value(value)
    at = parts + row[:, None] * (3 * depth) + column[None, :]
    mask = (row < n)[:, None] & (column < depth)[None, :]
    tl.store(at, high, mask=mask)
    tl.store(at + depth, middle, mask=mask)
    tl.store(at + 2 * depth, low, mask=mask)


@triton.jit
def _multiply(
    left, right, out, m, n, depth, stride,
    SIDE: tl.constexpr, DEPTH: tl.constexpr, GROUP: tl.constexpr, SYMMETRIC: tl.constexpr,
    WIDENS: tl.constexpr,
):  # fmt: skip
    """Multiply a tile.  If the matrix is symmetric, programs compute its upper triangle and write both triangles."""
    if SYMMETRIC:
        i, j = place_above(tl.program_id(0), tl.cdiv(m, SIDE), GROUP)
    else:
        i, j = place(tl.program_id(0), tl.cdiv(m, SIDE), tl.cdiv(n, SIDE), GROUP)
    row, column, k = i * SIDE + tl.arange(0, SIDE), j * SIDE + tl.arange(0, SIDE), tl.arange(0, DEPTH)
    # rows beyond the last are computed as the first, and not written
    at_left = left + tl.where(row < m, row, 0)[:, None] * (3 * depth) + k[None, :]
    at_right = right + tl.where(column < n, column, 0)[None, :] * (3 * depth) + k[:, None]
    products = tl.zeros([SIDE, SIDE], tl.float32)
    for _ in range(0, depth, DEPTH):
        left_high, right_high = tl.load(at_left), tl.load(at_right)
        left_middle, right_middle = tl.load(at_left + depth), tl.load(at_right + depth)
        left_low, right_low = tl.load(at_left + 2 * depth), tl.load(at_right + 2 * depth)
        before = _add_product(left_low, right_high, None, WIDENS)
        after = _add_product(left_high, right_low, None, WIDENS)
        before = _add_product(left_middle, right_high, before, WIDENS)
        after = _add_product(left_high, right_middle, after, WIDENS)
        some = _add_product(left_middle, right_middle, before + after, WIDENS)
        products += _add_product(left_high, right_high, some, WIDENS)
        at_left += DEPTH
        at_right += DEPTH
    mask = (row < m)[:, None] & (column < n)[None, :]
    tl.store(out + row.to(tl.int64)[:, None] * stride + column[None, :], products, mask=mask)
    if SYMMETRIC:
        mirrored = out + column.to(tl.int64)[:, None] * stride + row[None, :]
        tl.store(mirrored, tl.trans(products), mask=tl.trans(mask))


@triton.jit
def _add_product(left, right, products, WIDENS: tl.constexpr):
    """Add the product of two parts; as float32 for Triton's interpreter, which cannot multiply bfloat16 numbers."""
    if WIDENS:
        return tl.dot(left.to(tl.float32), right.to(tl.float32), products, input_precision="ieee")
    else:
        return tl.dot(left, right, products)


def multiply_in_parts(left: Tensor, right: Tensor, out: Tensor | None = None, entries: int = 2**21) -> Tensor:
    """Return ``left @ right.T`` of float32 matrices, with errors that are no larger than those of float32.

    Args:
        left: ``(m, d)``; infinity and numbers near the largest one give NaN.
        right: ``(n, d)``; if it is ``left``, half of the matrix is computed.
        out: where the result is written, ``(m, n)``, a matrix whose rows are contiguous.
        entries: entries of each matrix whose parts are in memory at once, about; twice as many of one that is both.
    """
    out = left.new_empty(len(left), len(right)) if out is None else out
    is_same = right.data_ptr() == left.data_ptr() and right.shape == left.shape and right.stride() == left.stride()
    chunk = fit_rows(2 * entries if is_same else entries, per_row=left.shape[1])
    chunk = max(1, chunk // TILE.side) * TILE.side
    with use_device(left.device):
        for rows in split_rows(len(left), chunk):
            left_parts = split_parts(left[rows])
            for columns in split_rows(len(right), chunk):
                is_diagonal = is_same and rows == columns
                right_parts = left_parts if is_diagonal else split_parts(right[columns])
                write_products(left_parts, right_parts, out[rows, columns], is_diagonal)
    return out


def split_parts(rows: Tensor) -> Tensor:
    """Return the high, the middle and the low parts of float32 rows, ``(n, 3, d)``, d padded to a multiple of 64."""
    rows = rows if rows.stride(1) == 1 else rows.contiguous()
    n, width = rows.shape
    depth = pad_depth(width)
    parts = rows.new_empty(n, 3, depth, dtype=torch.bfloat16)
    _split[triton.cdiv(n, 8), triton.cdiv(depth, 128)](rows, rows.stride(0), parts, n, width, depth, 8, 128)
    return parts


def pad_depth(width: int) -> int:
    """Return the number of dimensions of the parts of rows with so many dimensions."""
    return -(-width // DEPTH_MULTIPLE) * DEPTH_MULTIPLE


def write_products(left: Tensor, right: Tensor, out: Tensor, is_symmetric: bool) -> None:
    """Write the products of parts into a matrix; ``is_symmetric`` if both are the same."""
    (m, _, depth), n = left.shape, len(right)
    assert out.stride(1) == 1
    rows, columns, tile = triton.cdiv(m, TILE.side), triton.cdiv(n, TILE.side), TILE
    programs = triton.cdiv(rows, 2) * (rows + 1) if is_symmetric else rows * columns
    _multiply[programs,](
        left, right, out, m, n, depth, out.stride(0), tile.side, tile.depth, tile.group, is_symmetric,
        not left.is_cuda, num_warps=tile.warps, num_stages=tile.stages,
    )  # fmt: skip
