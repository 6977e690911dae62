"""Triton kernels of `likewise.metrics.whole_ranks`, each of which replaces many launches.  Needs Triton.

For a few thousand samples, to launch an operation takes longer than to compute it.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from likewise.metrics.triton_products import pad_depth, split_value, write_products
from likewise.triton_tools import use_device

MAX_DIMENSIONS = 4096
"""Dimensions up to which a program prepares whole rows."""


@triton.jit(do_not_specialize=["n"])
def _sort_labels(labels, out, n, ROWS: tl.constexpr, WIDTH: tl.constexpr):
    """Write the sample in each place of the order of labels, the bounds of its class, and the size of its class."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    mine = tl.load(labels + row, mask=row < n, other=0)[:, None]
    smaller, same, earlier = (
        tl.zeros([ROWS, WIDTH], tl.int32),
        tl.zeros([ROWS, WIDTH], tl.int32),
        tl.zeros([ROWS, WIDTH], tl.int32),
    )
    for start in range(0, n, WIDTH):
        place = start + tl.arange(0, WIDTH)
        exists = (place < n)[None, :]
        others = tl.load(labels + place, mask=place < n, other=0)[None, :]
        is_same = (others == mine) & exists
        smaller += ((others < mine) & exists).to(tl.int32)
        same += is_same.to(tl.int32)
        earlier += (is_same & (place[None, :] < row[:, None])).to(tl.int32)
    first, size = tl.sum(smaller, axis=1), tl.sum(same, axis=1)
    at = out + first + tl.sum(earlier, axis=1)
    tl.store(at, row.to(tl.int64), mask=row < n)
    tl.store(at + n, first.to(tl.int64), mask=row < n)
    tl.store(at + 2 * n, (first + size).to(tl.int64), mask=row < n)
    tl.store(at + 3 * n, size.to(tl.int64), mask=row < n)


@triton.jit(do_not_specialize=["n"])
def _prepare_parts(
    rows, row_stride, order, parts, sums, n, width, depth, WIDTH: tl.constexpr, NORMALIZES: tl.constexpr
):
    """Write the parts of one row, which may be scaled to unit length first, and its sum; zeros beyond the last row."""
    place, column = tl.program_id(0), tl.arange(0, WIDTH)
    row = tl.load(order + tl.minimum(place, n - 1))
    mask = column < tl.where(place < n, width, 0)
    value = tl.load(rows + row * row_stride + column, mask=mask, other=0.0).to(tl.float32)
    if place < n:
        tl.store(sums + place, tl.sum(value.to(tl.float64), axis=0))
    if NORMALIZES:
        # as `likewise.formula.unit`: divided by a power of two first, so that squares neither overflow nor underflow
        power = tl.max(tl.abs(value), axis=0).to(tl.int32, bitcast=True) & 0x7F800000
        power = tl.where(power == 0, 0x7F800000, power).to(tl.float32, bitcast=True)
        value = tl.div_rn(value, tl.zeros_like(value) + power)
        norm = tl.maximum(tl.sqrt_rn(tl.sum(value * value, axis=0)), 1.0)
        value = tl.div_rn(value, tl.zeros_like(value) + norm)
    high, middle, low = split_value(value)
    at = parts + place * (3 * depth) + column
    tl.store(at, high, mask=column < depth)
    tl.store(at + depth, middle, mask=column < depth)
    tl.store(at + 2 * depth, low, mask=column < depth)


@triton.jit(do_not_specialize=["n", "count"])
def _sort_positives(
    similarities, stride, first, stop, thresholds, sums, n, count, ROWS: tl.constexpr, WIDTH: tl.constexpr
):
    """Sort the similarities of some rows to the other members of their classes, and write them and their sums."""
    row, column = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, WIDTH)[None, :]
    begin = tl.load(first + row, mask=row < n, other=0).to(tl.int32)[:, None]
    end = tl.load(stop + row, mask=row < n, other=0).to(tl.int32)[:, None]
    place = begin + column
    mask = (place < end) & (place != row[:, None])
    values = tl.load(similarities + row.to(tl.int64)[:, None] * stride + place, mask=mask, other=float("-inf"))
    tl.store(sums + row, tl.sum(tl.where(mask, values, 0.0).to(tl.float64), axis=1), mask=row < n)
    values = tl.where(column < end - begin - 1, tl.sort(values, descending=True), float("inf"))
    tl.store(thresholds + column * n + row[:, None], values, mask=(row < n)[:, None] & (column < count))


@triton.jit(do_not_specialize=["n", "total", "most"])
def _list_ties(above, ties, counts, out, n, total, most, WIDTH: tl.constexpr):
    """Count the positives that tie, and write some numbers of the first that come, in any order."""
    index = tl.program_id(0) * WIDTH + tl.arange(0, WIDTH)
    tied = tl.load(ties + index, mask=index < total, other=0)
    if tl.max(tied, axis=0) > 0:
        slot = tl.atomic_add(out + tl.zeros_like(index), tl.zeros_like(tied) + 1, mask=tied > 0, sem="relaxed")
        mask = (tied > 0) & (slot < most)
        sample = index % n
        at = out + 1 + slot
        tl.store(at, sample, mask=mask)
        tl.store(at + most, index // n, mask=mask)
        tl.store(at + 2 * most, tl.load(above + index, mask=mask, other=0), mask=mask)
        tl.store(at + 3 * most, tied, mask=mask)
        tl.store(at + 4 * most, tl.load(counts + sample, mask=mask, other=0).to(tl.int32), mask=mask)


def sort_labels(labels: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the stable order of labels, and the first and the last row (exclusive) and the size of the class of each row.

    Every pair of labels is compared, which is faster than a sort of a few thousand.
    """
    n = len(labels)
    labels = labels.contiguous()
    out = torch.empty(4, n, dtype=torch.int64, device=labels.device)
    with use_device(labels.device):
        _sort_labels[(triton.cdiv(n, 16),)](labels, out, n, 16, 128)
    order, first, stop, sizes = out.unbind()
    return order, first, stop, sizes


def multiply_prepared(rows: Tensor, order: Tensor, normalizes: bool, out: Tensor) -> Tensor:
    """Write the products of rows in some order, ``(n, n)``, into a larger matrix; return the sum of each row, float64.

    Args:
        rows: ``(n, d)``, of any dtype up to float32 and up to `MAX_DIMENSIONS`.
        order: the row in each place.
        normalizes: whether rows are scaled to unit length.
        out: ``(side, side)`` float32; products beyond the n-th are zero.
    """
    n, width = rows.shape
    rows = rows if rows.stride(1) == 1 else rows.contiguous()
    depth = pad_depth(width)
    parts = torch.empty(len(out), 3, depth, dtype=torch.bfloat16, device=rows.device)
    sums = torch.empty(n, dtype=torch.float64, device=rows.device)
    with use_device(rows.device):
        _prepare_parts[(len(out),)](
            rows, rows.stride(0), order, parts, sums, n, width, depth, triton.next_power_of_2(depth), normalizes
        )
        write_products(parts, parts, out, True)
    return sums


def sort_positives(similarities: Tensor, bounds: tuple[Tensor, Tensor], count: int) -> tuple[Tensor, Tensor]:
    """Return the sorted similarities of each row to its positives, ``(count, n)``, and the sum of each row, float64.

    Args:
        similarities: ``(n, n)``, of samples in the order of their classes.
        bounds: the first and the last column (exclusive) of each row's class.
        count: the largest number of positives.
    """
    n, width = len(similarities), max(16, triton.next_power_of_2(count + 1))
    thresholds = similarities.new_empty(count, n)
    sums = torch.empty(n, dtype=torch.float64, device=similarities.device)
    rows = max(1, 1024 // width)
    with use_device(similarities.device):
        _sort_positives[(triton.cdiv(n, rows),)](
            similarities, similarities.stride(0), *bounds, thresholds, sums, n, count, rows, width
        )
    return thresholds, sums


def list_ties(above: Tensor, ties: Tensor, counts: Tensor, most: int) -> Tensor:
    """Return the number of positives that tie with negatives, and five numbers of some of them: all, if at most ``most``.

    The numbers are those of `WholeRanks`, in any order.
    """
    out = torch.zeros(1 + 5 * most, dtype=torch.int32, device=ties.device)
    with use_device(ties.device):
        _list_ties[(triton.cdiv(ties.numel(), 1024),)](
            above, ties, counts, out, ties.shape[1], ties.numel(), most, 1024
        )
    return out
