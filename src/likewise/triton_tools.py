"""What the Triton kernels of engines and metrics share: their device, and the order of their tiles.  Needs Triton."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import torch
import triton
import triton.language as tl

_NOTHING = nullcontext()


def use_device(device: torch.device) -> AbstractContextManager[object]:
    """Make a GPU the current device, on which Triton launches; do nothing if it already is, or if it is not a GPU."""
    if device.type != "cuda" or device.index == torch.cuda.current_device():
        return _NOTHING
    return torch.cuda.device(device)


@triton.jit
def place(tile, row_tiles, column_tiles, GROUP: tl.constexpr):
    """Return a tile's row and column.  GROUP rows of tiles are traversed column by column, so that operands stay cached."""
    in_group = GROUP * column_tiles
    first = (tile // in_group) * GROUP
    height = tl.minimum(row_tiles - first, GROUP)
    return first + (tile % in_group) % height, (tile % in_group) // height


@triton.jit
def place_above(tile, size, GROUP: tl.constexpr):
    """Return the row and column of a tile on or above the diagonal of a square of tiles.

    Row ``r`` of the triangle and row ``size − 1 − r`` together have ``size + 1`` tiles: they are one row of a rectangle.  In a
    square of odd size, the tiles of the middle row come twice.
    """
    r, c = place(tile, tl.cdiv(size, 2), size + 1, GROUP)
    upper = c < size - r
    i = tl.where(upper, r, size - 1 - r)
    return i, i + tl.where(upper, c, c - (size - r))
