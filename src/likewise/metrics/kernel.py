"""The compiled counter: one pass over a tile on a GPU, for its rows and its columns at once.  Needs Triton."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
import triton
import triton.language as tl
from torch import Tensor

if TYPE_CHECKING:
    from likewise.metrics.counting import Tally

HEIGHT, WIDTH, WARPS = 32, 128, 2
"""Rows and columns of similarities that one program holds in registers; counts of at most 255 are packed."""


@triton.jit(do_not_specialize=["height", "width", "row_slots", "row_stride", "column_slots", "column_stride"])
def _count(
    similarities, stride, height, width,
    row_edges, row_above, row_reached, row_slots, row_stride,
    column_edges, column_above, column_reached, column_slots, column_stride,
    HEIGHT: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """Read a rectangle of similarities once; compare it with every threshold of its rows and of its columns."""
    rows = tl.program_id(0).to(tl.int64) * HEIGHT + tl.arange(0, HEIGHT)
    columns = tl.program_id(1).to(tl.int64) * WIDTH + tl.arange(0, WIDTH)
    row_there, column_there = rows < height, columns < width
    there = row_there[:, None] & column_there[None, :]
    tile = tl.load(similarities + rows[:, None] * stride + columns[None, :], mask=there, other=float("-inf"))
    for slot in range(0, row_slots, 2):
        # two thresholds, above and reached: four counts of at most 255 in one number, so that one sum serves them all
        at = slot * row_stride + rows
        second = row_there & (slot + 1 + tl.zeros([HEIGHT], tl.int32) < row_slots)
        first_edge = tl.load(row_edges + at, mask=row_there, other=float("inf"))[:, None]
        second_edge = tl.load(row_edges + at + row_stride, mask=second, other=float("inf"))[:, None]
        packed = tl.sum(_four(tile, first_edge, second_edge), axis=1)
        _add(row_above + at, row_reached + at, packed, row_there)
        _add(row_above + at + row_stride, row_reached + at + row_stride, packed >> 16, second)
    for slot in range(0, column_slots, 2):
        at = slot * column_stride + columns
        second = column_there & (slot + 1 + tl.zeros([WIDTH], tl.int32) < column_slots)
        first_edge = tl.load(column_edges + at, mask=column_there, other=float("inf"))[None, :]
        second_edge = tl.load(column_edges + at + column_stride, mask=second, other=float("inf"))[None, :]
        packed = tl.sum(_four(tile, first_edge, second_edge), axis=0)
        _add(column_above + at, column_reached + at, packed, column_there)
        _add(column_above + at + column_stride, column_reached + at + column_stride, packed >> 16, second)


@triton.jit
def _four(tile, first, second):
    above = (tile > first).to(tl.int32) | ((tile > second).to(tl.int32) << 16)
    reached = (tile >= first).to(tl.int32) | ((tile >= second).to(tl.int32) << 16)
    return above | (reached << 8)


@triton.jit
def _add(above, reached, packed, there):
    """Unpack two counts and add them; whole numbers, so the sum is the same in whatever order programs arrive."""
    few, many = packed & 255, (packed >> 8) & 255
    tl.atomic_add(above, few.to(tl.float64), mask=there & (few > 0))
    tl.atomic_add(reached, many.to(tl.float64), mask=there & (many > 0))


def count(similarities: Tensor, rows: Tally | None, columns: Tally | None) -> None:
    """Add to the tallies of a tile's rows and columns."""
    height, width = similarities.shape
    grid = (triton.cdiv(height, HEIGHT), triton.cdiv(width, WIDTH))
    _count[grid](
        similarities, similarities.stride(0), height, width,
        *_arguments(rows, similarities), *_arguments(columns, similarities), HEIGHT, WIDTH, num_warps=WARPS,
    )  # fmt: skip


def _arguments(tally: Tally | None, similarities: Tensor) -> tuple[Any, ...]:
    if tally is None:
        edges = torch.empty(1, dtype=similarities.dtype, device=similarities.device)
        counts = torch.empty(1, dtype=torch.float64, device=similarities.device)
        return edges, counts, counts, 0, 0
    return tally.thresholds, tally.above, tally.reached, len(tally.thresholds), tally.thresholds.shape[1]
