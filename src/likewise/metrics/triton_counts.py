"""The Triton kernel that compares the rows, or the columns, of a matrix with thresholds.  Needs Triton.

A program compares some lines (rows or columns) with five or ten thresholds of each.  The loop contains three float32
instructions per comparison, because others run at half their rate.  A multiply-add that saturates gives 1 for an entry
above the threshold, 0 for one below it, and exactly ½ for a tie: it maps the number before the threshold to 0, and the
threshold to ½.  The sum of these numbers and that of their squares determine both counts.  Programs with thresholds near
zero, or at negative powers of two, and those of other dtypes compare with the threshold instead.
"""

# tuples grow by concatenation, because Triton does not know unpacking:
# ruff: noqa: RUF005
# mypy: disable-error-code="assignment, misc"

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import triton
import triton.language as tl
from torch import Tensor

from likewise.triton_tools import use_device

if TYPE_CHECKING:
    from likewise.metrics.threshold_counts import ThresholdCounts


class Tile(NamedTuple):
    """The part of the matrix that a program holds in registers.

    Args:
        lines: the number of rows, or of columns.
        width: entries of each line that are compared at a time.
        lanes: counts of each line that are added at the end, because threads share the line.
        segment: entries of a line that one program compares, less than 2^15.
        thresholds: the largest number of thresholds of a line that a program compares with, a multiple of five.
        warps: the number of warps.
    """

    lines: int
    width: int
    lanes: int
    segment: int
    thresholds: int = 5
    warps: int = 4


ROW_TILE, COLUMN_TILE = Tile(4, 128, 32, 4096, thresholds=10), Tile(256, 8, 1, 128)
"""Threads of a warp read neighboring entries: of a row, which they share, or of columns, which each has for itself.

Chosen by ``python -m benchmarks.evaluation.device --device cuda --tune``.
"""


@triton.jit(do_not_specialize=["lines", "length", "count", "stride"])
def _count(
    similarities, line_stride, step, lines, length, thresholds, above, ties, count, stride,
    excluded_first, excluded_stop,
    LINES: tl.constexpr, WIDTH: tl.constexpr, LANES: tl.constexpr, SEGMENT: tl.constexpr, THRESHOLDS: tl.constexpr,
    EXCLUDES: tl.constexpr,
):  # fmt: skip
    """Compare a segment of some lines with some thresholds of each."""
    groups = (count + THRESHOLDS - 1) // THRESHOLDS
    k = tl.program_id(0) % groups * THRESHOLDS
    line = tl.program_id(0) // groups * LINES + tl.arange(0, LINES)
    exists = line < lines
    begin = tl.program_id(1) * SEGMENT
    end = tl.minimum(begin + SEGMENT, length)
    place = tl.arange(0, WIDTH)
    entries = similarities + line.to(tl.int64)[:, None] * line_stride + (begin + place).to(tl.int64)[None, :] * step
    # loads without a mask are four entries wide
    plain_end = tl.where((tl.program_id(0) // groups + 1) * LINES <= lines, end - WIDTH, -1)
    first, stop, lowest, highest = line, line, length, 0
    if EXCLUDES:
        first = tl.load(excluded_first + line, mask=exists, other=2147483647).to(tl.int32)
        stop = tl.load(excluded_stop + line, mask=exists, other=0).to(tl.int32)
        lowest, highest = tl.min(first, axis=0), tl.max(stop, axis=0)
    span = (entries, step, begin, end, place, plain_end, exists, first, stop, lowest, highest)
    out = (above + line[:, None], ties + line[:, None], k, count, stride, exists[:, None])
    values = ()
    for i in tl.static_range(THRESHOLDS):
        values = values + (_load_threshold(thresholds + line, k + i, count, stride, exists),)
    if values[0].dtype == tl.float32:
        is_plain, scales, offsets = exists[:, None] | True, (), ()
        for i in tl.static_range(THRESHOLDS):
            can, scale, offset = _find_scale(values[i])
            is_plain, scales, offsets = is_plain & can, scales + (scale,), offsets + (offset,)
        if tl.min(tl.min(is_plain.to(tl.int32), axis=1), axis=0) != 0:
            _count_segment(span, out, scales, offsets, LINES, WIDTH, LANES, THRESHOLDS, EXCLUDES, True)
        else:
            _count_segment(span, out, values, values, LINES, WIDTH, LANES, THRESHOLDS, EXCLUDES, False)
    else:
        _count_segment(span, out, values, values, LINES, WIDTH, LANES, THRESHOLDS, EXCLUDES, False)


@triton.jit
def _load_threshold(at, k, count, stride, exists):
    """Load a threshold of each line, a column; infinity, which nothing exceeds, beyond the last."""
    mask = exists & (tl.zeros_like(exists.to(tl.int32)) + k < count)  # the interpreter needs a tensor on both sides
    return tl.load(at + k * stride, mask=mask, other=float("inf"))[:, None]


@triton.jit
def _find_scale(threshold):
    """Return whether the multiply-add can compare with a float32 threshold, its power of two, and its summand.

    The power maps the distance to the number before the threshold to ½.  Both products, with it and with the power, are
    exact, and so is the sum for a tie.  The number after the threshold must not be nearer, as it is for a negative power of
    two, and the power must be representable.
    """
    bits = threshold.to(tl.int32, bitcast=True)
    is_negative, is_infinite = bits < 0, bits == 0x7F800000
    before = bits + tl.where(is_negative, 1, -1)
    # the exponent of the smaller of the two numbers
    exponent = tl.where(is_negative, bits, before) >> 23 & 255
    can = (bits != 0) & (exponent >= 22) & ((bits & 0x7F800000) != 0x7F800000) & ((before & 0x7F800000) != 0x7F800000)
    can = can & ~(is_negative & ((bits & 0x7FFFFF) == 0))
    power = tl.where(can, 276 - exponent, 127)
    scale = (power << 23).to(tl.float32, bitcast=True)
    offset = tl.where(can, -(before.to(tl.float32, bitcast=True) * scale), float("-inf"))
    return can | is_infinite, scale, offset


@triton.jit
def _count_segment(
    span, out, scales, offsets,
    LINES: tl.constexpr, WIDTH: tl.constexpr, LANES: tl.constexpr, THRESHOLDS: tl.constexpr, EXCLUDES: tl.constexpr,
    SATURATES: tl.constexpr,
):  # fmt: skip
    """Compare the entries of a segment and add the counts; ``scales`` and ``offsets`` may both be the thresholds."""
    entries, step, begin, end, place, plain_end, exists, first, stop, lowest, highest = span
    zero, sums, squares = tl.zeros([LINES, LANES], tl.float32), (), ()
    for _ in tl.static_range(THRESHOLDS):
        sums, squares = sums + (zero,), squares + (zero,)
    tile = _load_tile(entries, begin, place, end, plain_end, exists, first, stop, lowest, highest, WIDTH, EXCLUDES)
    for at_place in range(begin, end, WIDTH):
        entries += WIDTH * step  # the next tile is loaded while this one is compared
        following = _load_tile(
            entries, at_place + WIDTH, place, end, plain_end, exists, first, stop, lowest, highest, WIDTH, EXCLUDES
        )
        pieces = _split(tile, LINES, LANES, WIDTH // LANES)
        for piece in tl.static_range(WIDTH // LANES):
            new_sums, new_squares = (), ()
            for i in tl.static_range(THRESHOLDS):
                value = _compare(pieces[piece], scales[i], offsets[i], SATURATES)
                new_sums = new_sums + (sums[i] + value,)
                new_squares = new_squares + (tl.fma(value, value, squares[i]),)
            sums, squares = new_sums, new_squares
        tile = following
    for i in tl.static_range(THRESHOLDS):
        _store(out, i, sums[i], squares[i])


@triton.jit
def _load_tile(
    entries, begin, place, end, plain_end, exists, first, stop, lowest, highest, WIDTH: tl.constexpr,
    EXCLUDES: tl.constexpr,
):  # fmt: skip
    """Load entries of each line; −∞ beyond the end and for entries that are excluded."""
    is_plain = begin <= plain_end
    if EXCLUDES:
        is_plain = is_plain & ((begin + WIDTH <= lowest) | (begin >= highest))
    if is_plain:
        tile = tl.load(entries)
    else:
        place = begin + place
        mask = exists[:, None] & (place < end)[None, :]
        if EXCLUDES:
            mask = mask & ((place[None, :] < first[:, None]) | (place[None, :] >= stop[:, None]))
        tile = tl.load(entries, mask=mask, other=float("-inf"))
    return tile


@triton.jit
def _split(tile, LINES: tl.constexpr, LANES: tl.constexpr, PIECES: tl.constexpr):
    """Return the entries of each lane, a power of two of matrices ``(lines, lanes)``."""
    even, odd = tl.split(tl.reshape(tile, [LINES, LANES * PIECES // 2, 2]))
    if PIECES == 2:
        return even, odd
    else:
        return _split(even, LINES, LANES, PIECES // 2) + _split(odd, LINES, LANES, PIECES // 2)


@triton.jit
def _compare(values, scale, offset, SATURATES: tl.constexpr):
    """Return 1 for a value above a threshold, ½ for a tie, otherwise 0, also for NaN."""
    if SATURATES:  # one instruction
        return tl.minimum(tl.maximum(tl.fma(values, scale, offset), 0.0), 1.0)
    return tl.where(values > scale, 1.0, tl.where(values == scale, 0.5, 0.0))


@triton.jit
def _store(out, i: tl.constexpr, sums, squares):
    """Add the counts of all lanes; they are integers, so the order of the programs does not change the sum."""
    above, ties, k, count, stride, exists = out
    # a sum is above + ties / 2, and one of squares above + ties / 4; both counts of a segment in one integer
    packed = (2.0 * squares - sums).to(tl.int32) + ((4.0 * (sums - squares)).to(tl.int32) << 16)
    packed = tl.sum(packed, axis=1, keep_dims=True)
    exists = exists & (tl.zeros_like(packed) + k + i < count)
    tl.atomic_add(above + (k + i) * stride, packed & 0xFFFF, mask=exists & ((packed & 0xFFFF) > 0), sem="relaxed")
    tl.atomic_add(ties + (k + i) * stride, packed >> 16, mask=exists & ((packed >> 16) > 0), sem="relaxed")


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
    thresholds = min(tile.thresholds, -(-count // 5) * 5)
    grid = (triton.cdiv(height, tile.lines) * triton.cdiv(count, thresholds), triton.cdiv(length, tile.segment))
    first, stop = (lines, lines) if excluded is None else excluded
    with use_device(lines.device):
        _count[grid](
            lines, *lines.stride(), height, length, counts.thresholds, counts.above, counts.ties, count,
            counts.thresholds.stride(0), first, stop, tile.lines, tile.width, tile.lanes, tile.segment, thresholds,
            excluded is not None, num_warps=tile.warps,
        )  # fmt: skip
