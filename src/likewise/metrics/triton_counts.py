"""The Triton kernel that counts for the rows and the columns of a matrix in one pass.  Needs Triton."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
import triton
import triton.language as tl
from torch import Tensor

if TYPE_CHECKING:
    from likewise.metrics.threshold_counts import ThresholdCounts

HEIGHT, WIDTH, WARPS = 128, 128, 8
"""Rows and columns of the tile that one program holds in registers: the larger, the fewer additions in memory; counts of
at most 255 are packed."""


@triton.jit(do_not_specialize=["height", "width", "row_count", "row_stride", "column_count", "column_stride"])
def _count(
    similarities, stride, height, width,
    row_thresholds, row_above, row_ties, row_count, row_stride,
    column_thresholds, column_above, column_ties, column_count, column_stride,
    HEIGHT: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """Read a tile of similarities once and compare it with every threshold of its rows and of its columns."""
    rows = tl.program_id(0).to(tl.int64) * HEIGHT + tl.arange(0, HEIGHT)
    columns = tl.program_id(1).to(tl.int64) * WIDTH + tl.arange(0, WIDTH)
    row_mask, column_mask = rows < height, columns < width
    mask = row_mask[:, None] & column_mask[None, :]
    tile = tl.load(similarities + rows[:, None] * stride + columns[None, :], mask=mask, other=float("-inf"))
    for index in range(0, row_count, 2):
        # two thresholds, above and reached: four counts of at most 255 in one number, so that one sum serves them all
        at = index * row_stride + rows
        second_mask = row_mask & (index + 1 + tl.zeros([HEIGHT], tl.int32) < row_count)
        first = tl.load(row_thresholds + at, mask=row_mask, other=float("inf"))[:, None]
        second = tl.load(row_thresholds + at + row_stride, mask=second_mask, other=float("inf"))[:, None]
        packed = tl.sum(_pack(tile, first, second), axis=1)
        _add(row_above + at, row_ties + at, packed, row_mask)
        _add(row_above + at + row_stride, row_ties + at + row_stride, packed >> 16, second_mask)
    for index in range(0, column_count, 2):
        at = index * column_stride + columns
        second_mask = column_mask & (index + 1 + tl.zeros([WIDTH], tl.int32) < column_count)
        first = tl.load(column_thresholds + at, mask=column_mask, other=float("inf"))[None, :]
        second = tl.load(column_thresholds + at + column_stride, mask=second_mask, other=float("inf"))[None, :]
        packed = tl.sum(_pack(tile, first, second), axis=0)
        _add(column_above + at, column_ties + at, packed, column_mask)
        _add(column_above + at + column_stride, column_ties + at + column_stride, packed >> 16, second_mask)


@triton.jit
def _pack(tile, first, second):
    """Return four counts of a pair in one number: above and reached, for two thresholds."""
    above = (tile > first).to(tl.int32) | ((tile > second).to(tl.int32) << 16)
    reached = (tile >= first).to(tl.int32) | ((tile >= second).to(tl.int32) << 16)
    return above | (reached << 8)


@triton.jit
def _add(above, ties, packed, mask):
    """Unpack two counts and add them; they are integers, so the order of the programs does not change the sum."""
    above_count, reached_count = packed & 255, (packed >> 8) & 255
    tl.atomic_add(above, above_count, mask=mask & (above_count > 0))
    tl.atomic_add(ties, reached_count - above_count, mask=mask & (reached_count > above_count))


def count_on_device(similarities: Tensor, rows: ThresholdCounts | None, columns: ThresholdCounts | None) -> None:
    """Add the counts of a matrix of similarities for its rows, its columns, or both."""
    height, width = similarities.shape
    grid = (triton.cdiv(height, HEIGHT), triton.cdiv(width, WIDTH))
    _count[grid](
        similarities, similarities.stride(0), height, width,
        *_make_arguments(rows, similarities), *_make_arguments(columns, similarities), HEIGHT, WIDTH, num_warps=WARPS,
    )  # fmt: skip


def _make_arguments(counts: ThresholdCounts | None, similarities: Tensor) -> tuple[Any, ...]:
    if counts is None:
        thresholds = torch.empty(1, dtype=similarities.dtype, device=similarities.device)
        empty = torch.empty(1, dtype=torch.int32, device=similarities.device)
        return thresholds, empty, empty, 0, 0
    return counts.thresholds, counts.above, counts.ties, len(counts.thresholds), counts.thresholds.shape[1]
