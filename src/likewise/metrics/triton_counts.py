"""The Triton kernel that compares the rows, or the columns, of a matrix with thresholds.  Needs Triton.

A program compares some lines (rows or columns) with five thresholds of each.  Every thread adds what it counts until the
program ends, so that the loop contains three instructions for each comparison: the difference, its sign added to the
count, and the smallest distance, which tells whether anything ties.  Ties are rare; a program that has one counts again.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

if TYPE_CHECKING:
    from likewise.metrics.threshold_counts import ThresholdCounts

THRESHOLDS = 5
"""Thresholds of a line that a program compares with."""


class Tile(NamedTuple):
    """The part of the matrix that a program holds in registers.

    Args:
        lines: the number of rows, or of columns.
        width: entries of each line that are compared at a time.
        lanes: counts of each line that are added at the end, because threads share the line.
        segment: entries of a line that one program compares.
        warps: the number of warps.
    """

    lines: int
    width: int
    lanes: int
    segment: int
    warps: int = 4


ROW_TILE, COLUMN_TILE = Tile(8, 128, 32, 2048), Tile(256, 16, 1, 128, warps=2)
"""Threads of a warp read neighboring entries: of a row, which they share, or of columns, which each has for itself.

Chosen by ``python -m benchmarks.evaluation.device --device cuda --tune``.
"""


@triton.jit(do_not_specialize=["lines", "length", "count", "stride"])
def _count(
    similarities, line_stride, step, lines, length, thresholds, above, ties, count, stride,
    excluded_first, excluded_stop,
    LINES: tl.constexpr, WIDTH: tl.constexpr, LANES: tl.constexpr, SEGMENT: tl.constexpr, EXCLUDES: tl.constexpr,
):  # fmt: skip
    """Compare a segment of some lines with five thresholds of each."""
    groups = (count + 4) // 5
    k = tl.program_id(0) % groups * 5
    line = tl.program_id(0) // groups * LINES + tl.arange(0, LINES)
    exists = line < lines
    begin = tl.program_id(1) * SEGMENT
    end = tl.minimum(begin + SEGMENT, length)
    place = tl.arange(0, WIDTH)
    entries = similarities + line.to(tl.int64)[:, None] * line_stride + (begin + place).to(tl.int64)[None, :] * step
    # loads without a mask are four entries wide
    plain_end = tl.where((tl.program_id(0) // groups + 1) * LINES <= lines, end - WIDTH, -1)
    first, stop = line, line
    if EXCLUDES:
        first = tl.load(excluded_first + line, mask=exists, other=0).to(tl.int32)
        stop = tl.load(excluded_stop + line, mask=exists, other=0).to(tl.int32)
    at = thresholds + line
    t0, t1 = _load_threshold(at, k, count, stride, exists), _load_threshold(at, k + 1, count, stride, exists)
    t2, t3 = _load_threshold(at, k + 2, count, stride, exists), _load_threshold(at, k + 3, count, stride, exists)
    t4 = _load_threshold(at, k + 4, count, stride, exists)
    zero, at_entries = tl.zeros([LINES, LANES], tl.int32), entries
    c0, c1, c2, c3, c4 = zero, zero, zero, zero, zero
    gap = tl.full([LINES, LANES], float("inf"), t0.dtype)
    tile = _load_tile(entries, begin, place, end, plain_end, exists, first, stop, EXCLUDES)
    for at_place in range(begin, end, WIDTH):
        at_entries += WIDTH * step  # the next tile is loaded while this one is compared
        following = _load_tile(at_entries, at_place + WIDTH, place, end, plain_end, exists, first, stop, EXCLUDES)
        d0, d1, d2, d3, d4 = t0 - tile, t1 - tile, t2 - tile, t3 - tile, t4 - tile
        c0 += _add_signs(d0, LANES)
        c1 += _add_signs(d1, LANES)
        c2 += _add_signs(d2, LANES)
        c3 += _add_signs(d3, LANES)
        c4 += _add_signs(d4, LANES)
        near = tl.minimum(tl.minimum(tl.abs(d0), tl.abs(d1)), tl.minimum(tl.abs(d2), tl.abs(d3)))
        near = tl.reshape(tl.minimum(near, tl.abs(d4)), [LINES, LANES, WIDTH // LANES])
        gap = tl.minimum(gap, tl.min(near, axis=2))
        tile = following
    _store(above + line, k, count, stride, exists, -c0)
    _store(above + line, k + 1, count, stride, exists, -c1)
    _store(above + line, k + 2, count, stride, exists, -c2)
    _store(above + line, k + 3, count, stride, exists, -c3)
    _store(above + line, k + 4, count, stride, exists, -c4)
    if tl.min(tl.min(gap, axis=1), axis=0) == 0:
        for tied in range(k, tl.minimum(k + 5, count)):
            threshold = _load_threshold(at, tied, count, stride, exists)
            equal, at_entries = zero, entries
            for at_place in range(begin, end, WIDTH):
                tile = _load_tile(at_entries, at_place, place, end, plain_end, exists, first, stop, EXCLUDES)
                at_entries += WIDTH * step
                flags = tl.reshape((tile == threshold).to(tl.int32), [LINES, LANES, WIDTH // LANES])
                equal += tl.sum(flags, axis=2)
            _store(ties + line, tied, count, stride, exists, equal)


@triton.jit
def _load_threshold(at, k, count, stride, exists):
    """Load a threshold of each line, a column; infinity, which nothing exceeds, beyond the last."""
    mask = exists & (tl.zeros_like(exists.to(tl.int32)) + k < count)  # the interpreter needs a tensor on both sides
    value = tl.load(at + k * stride, mask=mask, other=float("inf"))
    return tl.where(value == 0, 0.0, value)[:, None]  # a negative zero minus zero would have a negative sign


@triton.jit
def _load_tile(entries, begin, place, end, plain_end, exists, first, stop, EXCLUDES: tl.constexpr):
    """Load entries of each line; −∞ beyond the end and for entries that are excluded."""
    place = begin + place
    if begin <= plain_end:
        tile = tl.load(entries)
    else:
        tile = tl.load(entries, mask=exists[:, None] & (place < end)[None, :], other=float("-inf"))
    if EXCLUDES:
        inside = (place[None, :] >= first[:, None]) & (place[None, :] < stop[:, None])
        tile = tl.where(inside, float("-inf"), tile)
    return tile


@triton.jit
def _add_signs(difference, LANES: tl.constexpr):
    """Return minus the number of negative differences of each lane: the sign bit, shifted, is all ones or all zeros."""
    if difference.dtype == tl.float64:
        sign = (difference.to(tl.int64, bitcast=True) >> 63).to(tl.int32)
    else:
        sign = difference.to(tl.int32, bitcast=True) >> 31
    return tl.sum(tl.reshape(sign, [sign.shape[0], LANES, sign.shape[1] // LANES]), axis=2)


@triton.jit
def _store(out, k, count, stride, exists, counts):
    """Add the counts of all lanes; they are integers, so the order of the programs does not change the sum."""
    counts = tl.sum(counts, axis=1)
    mask = exists & (counts > 0) & (tl.zeros_like(counts) + k < count)
    tl.atomic_add(out + k * stride, counts, mask=mask, sem="relaxed")


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
        excluded: the first and the last column (exclusive) of entries of each row that do not count, ``(m,)`` each; only
            for rows.
    """
    if rows is not None:
        _launch(similarities, rows, ROW_TILE, excluded)
    if columns is not None:
        _launch(similarities.T, columns, COLUMN_TILE, None)


def _launch(lines: Tensor, counts: ThresholdCounts, tile: Tile, excluded: tuple[Tensor, Tensor] | None) -> None:
    (height, length), count = lines.shape, len(counts.thresholds)
    if not (height and length and count):
        return
    grid = (triton.cdiv(height, tile.lines) * triton.cdiv(count, THRESHOLDS), triton.cdiv(length, tile.segment))
    first, stop = (lines, lines) if excluded is None else excluded
    # Triton launches on the current device
    with nullcontext() if lines.device.type != "cuda" else torch.cuda.device(lines.device):
        _count[grid](
            lines, *lines.stride(), height, length, counts.thresholds, counts.above, counts.ties, count,
            counts.thresholds.stride(0), first, stop,
            tile.lines, tile.width, tile.lanes, tile.segment, excluded is not None, num_warps=tile.warps,
        )  # fmt: skip
