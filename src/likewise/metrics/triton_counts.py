"""The Triton kernel that counts for the rows and the columns of a matrix in one pass.  Needs Triton."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import triton
import triton.language as tl
from torch import Tensor

if TYPE_CHECKING:
    from likewise.metrics.threshold_counts import ThresholdCounts

HEIGHT, WIDTH, WARPS = 32, 128, 4
"""Rows and columns of the tile that one program holds in registers, and its warps; counts of at most 1,023 are packed.

Chosen among seven (``python -m benchmarks.evaluation.device --device cuda --tune``).
"""


@triton.jit(do_not_specialize=["height", "width", "row_count", "row_stride", "column_count", "column_stride"])
def _count(
    similarities, stride, height, width, excluded_first, excluded_stop,
    row_thresholds, row_above, row_ties, row_count, row_stride,
    column_thresholds, column_above, column_ties, column_count, column_stride,
    HEIGHT: tl.constexpr, WIDTH: tl.constexpr, EXCLUDES: tl.constexpr,
):  # fmt: skip
    """Read a tile of similarities once and compare it with every threshold of its rows and of its columns."""
    rows = tl.program_id(0).to(tl.int64) * HEIGHT + tl.arange(0, HEIGHT)
    columns = tl.program_id(1).to(tl.int64) * WIDTH + tl.arange(0, WIDTH)
    row_mask, column_mask = rows < height, columns < width
    mask = row_mask[:, None] & column_mask[None, :]
    tile = tl.load(similarities + rows[:, None] * stride + columns[None, :], mask=mask, other=float("-inf"))
    if EXCLUDES:
        lowest = tl.load(excluded_first + rows, mask=row_mask, other=0)[:, None]
        highest = tl.load(excluded_stop + rows, mask=row_mask, other=0)[:, None]
        tile = tl.where((columns[None, :] >= lowest) & (columns[None, :] < highest), float("-inf"), tile)
    # the smallest distance of an entry to a threshold: ties are rare, and only a tile that has one counts them
    gap = tl.full([HEIGHT, WIDTH], float("inf"), tile.dtype)
    for index in range(0, row_count, 3):
        at = row_thresholds + index * row_stride + rows
        first, second, third = _load_three(at, row_stride, row_count - index, row_mask)
        first, second, third = first[:, None], second[:, None], third[:, None]
        packed = tl.sum(_pack(tile, first, second, third), axis=1)
        gap = _narrow(gap, tile, first, second, third)
        _add_three(row_above + index * row_stride + rows, row_stride, packed, row_mask)
    for index in range(0, column_count, 3):
        at = column_thresholds + index * column_stride + columns
        first, second, third = _load_three(at, column_stride, column_count - index, column_mask)
        first, second, third = first[None, :], second[None, :], third[None, :]
        packed = tl.sum(_pack(tile, first, second, third), axis=0)
        gap = _narrow(gap, tile, first, second, third)
        _add_three(column_above + index * column_stride + columns, column_stride, packed, column_mask)
    if tl.min(tl.min(gap, axis=1), axis=0) == 0:
        for index in range(0, row_count):
            at = index * row_stride + rows
            threshold = tl.load(row_thresholds + at, mask=row_mask, other=float("inf"))[:, None]
            _add(row_ties + at, tl.sum((tile == threshold).to(tl.int32), axis=1), row_mask)
        for index in range(0, column_count):
            at = index * column_stride + columns
            threshold = tl.load(column_thresholds + at, mask=column_mask, other=float("inf"))[None, :]
            _add(column_ties + at, tl.sum((tile == threshold).to(tl.int32), axis=0), column_mask)


@triton.jit
def _load_three(at, stride, left, mask):
    """Load up to three thresholds; infinity, which nothing exceeds, beyond the last."""
    zero = tl.zeros_like(mask.to(tl.int32))
    first = tl.load(at, mask=mask, other=float("inf"))
    second = tl.load(at + stride, mask=mask & (zero + 1 < left), other=float("inf"))
    third = tl.load(at + 2 * stride, mask=mask & (zero + 2 < left), other=float("inf"))
    return first, second, third


@triton.jit
def _pack(tile, first, second, third):
    """Return whether an entry exceeds each of three thresholds, in one number, so that one sum serves all three."""
    return tl.where(tile > first, 1, 0) + tl.where(tile > second, 1024, 0) + tl.where(tile > third, 1048576, 0)


@triton.jit
def _narrow(gap, tile, first, second, third):
    """Return the smaller of the gap and the distances to three thresholds."""
    gap = tl.minimum(gap, tl.abs(tile - first))
    gap = tl.minimum(gap, tl.abs(tile - second))
    return tl.minimum(gap, tl.abs(tile - third))


@triton.jit
def _add_three(at, stride, packed, mask):
    """Unpack three counts and add them; those beyond the last threshold are zero."""
    _add(at, packed & 1023, mask)
    _add(at + stride, (packed >> 10) & 1023, mask)
    _add(at + 2 * stride, packed >> 20, mask)


@triton.jit
def _add(at, counts, mask):
    """Add counts; they are integers, so the order of the programs does not change the sum."""
    tl.atomic_add(at, counts, mask=mask & (counts > 0), sem="relaxed")


def count_on_device(
    similarities: Tensor,
    rows: ThresholdCounts | None,
    columns: ThresholdCounts | None,
    excluded: tuple[Tensor, Tensor] | None = None,
) -> None:
    """Add the counts of a matrix of similarities for its rows, its columns, or both.

    Args:
        similarities: ``(m, n)``; −∞ for entries that do not count.
        rows: thresholds of the m rows.
        columns: thresholds of the n columns.
        excluded: the first and the last column (exclusive) of entries of each row that do not count, ``(m,)`` each.
    """
    height, width = similarities.shape
    grid = (triton.cdiv(height, HEIGHT), triton.cdiv(width, WIDTH))
    row_arguments, column_arguments = _make_arguments(rows, similarities), _make_arguments(columns, similarities)
    first, stop = (similarities, similarities) if excluded is None else excluded
    _count[grid](
        similarities, similarities.stride(0), height, width, first, stop, *row_arguments, *column_arguments,
        HEIGHT, WIDTH, excluded is not None, num_warps=WARPS,
    )  # fmt: skip


def _make_arguments(counts: ThresholdCounts | None, similarities: Tensor) -> tuple[Any, ...]:
    if counts is None:  # nothing is read or written
        return similarities, similarities, similarities, 0, 0
    return counts.thresholds, counts.above, counts.ties, len(counts.thresholds), counts.thresholds.shape[1]
