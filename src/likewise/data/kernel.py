"""Triton kernel of the resampling: boxes of stored images to network input in one launch on a GPU."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

ROWS, COLUMNS, WARPS = 4, 64, 2
"""Output pixels per program."""

ORDERS = {"RGB": 0, "BGR": 1, "L": 2}


@triton.jit
def _weight(place, center, reach, support):
    """Return the weight of the triangle filter, zero outside the pixels that the box touches."""
    weight = tl.maximum(1.0 - tl.abs(place.to(tl.float32) + 0.5 - center) / support, 0.0)
    return tl.where((place >= 0) & (place < reach), weight, 0.0)


@triton.jit
def _store(to, values, scaling, there):
    scaled = values * tl.load(scaling) + tl.load(scaling + 3)
    tl.store(to, scaled.to(to.dtype.element_ty), mask=there)


@triton.jit
def _resample(
    pixels, table, scaling, out, height, width, by_image, by_channel, by_row, by_column,
    ORDER: tl.constexpr, FRACTION: tl.constexpr, TABLE: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Compute one tile of one image: the weighted sum of all input pixels under the triangles of the tile's pixels."""
    image = tl.program_id(0).to(tl.int64)
    about = table + image * TABLE
    start, image_height, image_width = tl.load(about), tl.load(about + 1), tl.load(about + 2)
    top, left = tl.load(about + 3), tl.load(about + 4)
    reach_y, reach_x, flip = tl.load(about + 5), tl.load(about + 6), tl.load(about + 7)
    offset_y, offset_x = tl.load(about + 8).to(tl.float32) * FRACTION, tl.load(about + 9).to(tl.float32) * FRACTION
    scale_y = tl.load(about + 10).to(tl.float32) * FRACTION / height
    scale_x = tl.load(about + 11).to(tl.float32) * FRACTION / width

    y = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    x = tl.program_id(2) * COLUMNS + tl.arange(0, COLUMNS)
    from_x = tl.where(flip > 0, width - 1 - x, x)
    support_y, support_x = tl.maximum(scale_y, 1.0), tl.maximum(scale_x, 1.0)
    center_y = offset_y + (y.to(tl.float32) + 0.5) * scale_y
    center_x = offset_x + (from_x.to(tl.float32) + 0.5) * scale_x
    first_y = tl.floor(center_y - support_y + 0.5).to(tl.int32)
    first_x = tl.floor(center_x - support_x + 0.5).to(tl.int32)
    taps_y, taps_x = (2.0 * support_y).to(tl.int32) + 2, (2.0 * support_x).to(tl.int32) + 2

    total_x = tl.zeros([COLUMNS], tl.float32)
    for tap in range(taps_x):
        total_x += _weight(first_x + tap, center_x, reach_x, support_x)
    total_y = tl.zeros([ROWS], tl.float32)
    sum0 = tl.zeros([ROWS, COLUMNS], tl.float32)
    sum1 = tl.zeros([ROWS, COLUMNS], tl.float32)
    sum2 = tl.zeros([ROWS, COLUMNS], tl.float32)
    for tap_y in range(taps_y):
        place_y = first_y + tap_y
        weight_y = _weight(place_y, center_y, reach_y, support_y)
        total_y += weight_y
        # pixels outside an image repeat its edge
        line = start + tl.minimum(tl.maximum(top + place_y, 0), image_height - 1) * image_width
        for tap_x in range(taps_x):
            place_x = first_x + tap_x
            weight = weight_y[:, None] * _weight(place_x, center_x, reach_x, support_x)[None, :]
            column = tl.minimum(tl.maximum(left + place_x, 0), image_width - 1)
            at = pixels + (line[:, None] + column[None, :]) * 3
            sum0 += weight * tl.load(at).to(tl.float32)
            sum1 += weight * tl.load(at + 1).to(tl.float32)
            sum2 += weight * tl.load(at + 2).to(tl.float32)

    share = 1.0 / (total_y[:, None] * total_x[None, :])
    sum0, sum1, sum2 = sum0 * share, sum1 * share, sum2 * share
    there = (y < height)[:, None] & (x < width)[None, :]
    to = out + image * by_image + y[:, None] * by_row + x[None, :] * by_column
    if ORDER == 2:
        gray = tl.load(scaling + 6) * sum0 + tl.load(scaling + 7) * sum1 + tl.load(scaling + 8) * sum2
        _store(to, gray, scaling, there)
    else:
        if ORDER == 1:
            sum0, sum2 = sum2, sum0
        _store(to, sum0, scaling, there)
        _store(to + by_channel, sum1, scaling + 1, there)
        _store(to + 2 * by_channel, sum2, scaling + 2, there)


def resample(pixels: Tensor, table: Tensor, scaling: Tensor, out: Tensor, order: str, fraction: float) -> Tensor:
    """Fill a batch ``(n, c, h, w)`` of any floating-point dtype and layout.

    Args:
        pixels: bytes ``(p, 3)`` of all images.
        table: image and box of each row, ``(n, 12)``, as returned by `likewise.data.resample.table_of`.
        scaling: three factors and three offsets of the channels, and the weights of red, green and blue in gray, ``(9,)``.
        out: the batch.
        order: ``"RGB"``, ``"BGR"`` or ``"L"``.
        fraction: unit of the fractions of pixels in the table.
    """
    count, _, height, width = out.shape
    grid = (count, triton.cdiv(height, ROWS), triton.cdiv(width, COLUMNS))
    _resample[grid](
        pixels, table, scaling, out, height, width, *out.stride(),
        ORDERS[order], fraction, table.shape[1], ROWS, COLUMNS, num_warps=WARPS,
    )  # fmt: skip
    return out


def probe(device: torch.device) -> None:
    """Compile the kernel and run it once, so that an incompatible machine raises the error here."""
    pixels = torch.zeros(4, 3, dtype=torch.uint8, device=device)
    table = torch.ones(1, 12, dtype=torch.int64, device=device)
    resample(pixels, table, torch.ones(9, device=device), torch.empty(1, 3, 1, 1, device=device), "RGB", 1.0)
