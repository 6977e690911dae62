"""Generated kernels, compiled once for each shape of a declaration, and how they are launched."""

from __future__ import annotations

import functools
import itertools
import linecache
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import torch
import triton
import triton.language as tl
from torch import Tensor

from likewise.engines.triton import pieces

Kernel: TypeAlias = Any
"""A function that Triton compiles."""

_numbers = itertools.count()


@functools.cache
def compile_source(source: str) -> Kernel:
    r"""The kernel of a source; Triton reads it where tracebacks do.

    Examples:
        >>> compile_source("@triton.jit\ndef kernel(x):\n    pass\n").__name__
        'kernel'
    """
    filename = f"<likewise kernel {next(_numbers)}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    names = ("_place", "_product", "_sigmoid", "_softplus")
    namespace: dict[str, Any] = {"tl": tl, "triton": triton, **{name: getattr(pieces, name) for name in names}}
    exec(compile(source, filename, "exec"), namespace)
    return namespace["kernel"]


# ------------------------------------------------------------------------------------------------ launching


def launch(
    kernel: Kernel, programs: int, arguments: Sequence[Any], device: torch.device, *, warps: int = 4, stages: int = 2
) -> None:
    """Run a kernel.

    Args:
        kernel: what.
        programs: how many.
        arguments: all of them, in order.
        device: where.
        warps: of each program.
        stages: of the pipeline that loads.
    """
    with on(device):
        # multiply-adds in one rounding are Triton's default, which 3.9 announces to change
        kernel[(programs,)](*arguments, num_warps=warps, num_stages=stages, enable_fp_fusion=True)


_ANYWHERE = nullcontext()


def on(device: torch.device) -> AbstractContextManager[object]:
    """Make a device the current one, on which Triton launches; where it is, or is no GPU, there is nothing to do."""
    if device.type != "cuda" or device.index == torch.cuda.current_device():
        return _ANYWHERE
    return torch.cuda.device(device)


# ------------------------------------------------------------------------------------------------ cutting


@dataclass(frozen=True)
class Shape:
    """How a kernel cuts the matrix.

    Args:
        rows: of a tile.
        columns: of a tile.
        depth: of the dimensions that are multiplied at a time.
        warps: that work on a tile.
        stages: of the pipeline that loads.
    """

    rows: int
    columns: int
    depth: int
    warps: int
    stages: int

    def tiles(self, rows: int, columns: int) -> int:
        """How many it takes to cover a rectangle."""
        return -(-rows // self.rows) * -(-columns // self.columns)


SMALL = Shape(32, 64, 64, 4, 3)
FOLDING = {2: Shape(128, 256, 64, 8, 3), 4: Shape(128, 128, 32, 8, 3)}
"""For folds, by the bytes of a number; measured on an H200."""
SLOPES = {2: Shape(128, 128, 64, 8, 3), 4: Shape(128, 128, 32, 8, 3)}
"""For slopes, whose curves need more registers."""
GROUP = 8
ROWS = 128
"""Of a program that joins tiles."""


@functools.cache
def processors(device: torch.device) -> int:
    """How many programs share the tiles: a prime, at most one for each processor; on the interpreter there is one.

    Tiles with positives lie along a diagonal, at regular distances in the order of tiles.  A distance that is a multiple
    of the number of programs would give all of them to a few; of a prime it hardly ever is.
    """
    count = int(torch.cuda.get_device_properties(device).multi_processor_count) if device.type == "cuda" else 1
    while any(count % factor == 0 for factor in range(2, int(count**0.5) + 1)):
        count -= 1
    return count


def power_of_two(least: int) -> int:
    """The next one.

    Examples:
        >>> power_of_two(16), power_of_two(17)
        (16, 32)
    """
    return 1 << (least - 1).bit_length()


@dataclass(frozen=True, eq=False)
class Operands:
    """What every kernel of a batch reads.

    Args:
        left: anchors as they are multiplied, ``(m, width)``, contiguous, rows of a multiple of 16 bytes.
        right: references, ``(n, width)``.
        scale: numbers that products are multiplied by, per anchor and per reference, where there are any.
        labels: of anchors and references, or ``None`` where there are codes.
        ids: who each anchor is among the references, and who each reference is, where that must be said.
        valid: which references exist, as bytes.
        codes: 1 for a positive pair, 2 for a negative one, as bytes.
        precision: Triton's name for how float32 is multiplied.
        size: m, n and width.
        dtype: of what is multiplied.
        device: where everything is.
    """

    left: Tensor
    right: Tensor
    scale: tuple[Tensor, Tensor] | None
    labels: tuple[Tensor, Tensor] | None
    ids: tuple[Tensor, Tensor] | None
    valid: Tensor | None
    codes: Tensor | None
    precision: str
    size: tuple[int, int, int]
    dtype: torch.dtype
    device: torch.device

    def cut(self, m: int, n: int, large: dict[int, Shape]) -> Shape:
        """How a rectangle is cut: into large tiles where they keep every processor busy, into small ones elsewhere."""
        shape = large[self.dtype.itemsize]
        if shape.tiles(m, n) < processors(self.device) or self.device.type != "cuda":
            shape = SMALL
        return replace(shape, depth=min(shape.depth, max(16, power_of_two(self.size[2]))))

    @property
    def slope_dtype(self) -> torch.dtype:
        """The dtype of slopes that go into a product; a gradient does not fit float16's range."""
        return torch.bfloat16 if self.dtype == torch.bfloat16 else torch.float32

    def slopes(
        self,
        kernels: list[Kernel],
        shape: Shape,
        rows: tuple[int, int],
        columns: tuple[int, int],
        leaves: list[Any],
        *,
        split: bool,
        rounded: bool = True,
    ) -> tuple[Tensor, ...]:
        """Write a rectangle of slopes, in one matrix, or in two of which the second has what 16 bits lose of the first.

        Args:
            kernels: that write it, each its own tiles.
            shape: of the tiles.
            rows: the first and the one behind the last.
            columns: likewise.
            leaves: what the kernels are given.
            split: two matrices.
            rounded: a product follows, in whose dtype the slopes may be.
        """
        height, width = rows[1] - rows[0], columns[1] - columns[0]
        dtype = self.slope_dtype if rounded else torch.float32
        # rows that begin at multiples of 16 are stored in whole vectors
        both = self.left.new_empty(1 + split, height, width + -width % 16, dtype=dtype)[:, :, :width]
        for kernel in kernels:
            self.launch(kernel, shape, both[0], both[-1], rows, columns, leaves)
        return tuple(both.unbind(0))

    def launch(
        self,
        kernel: Kernel,
        shape: Shape,
        out: Tensor,
        rest: Tensor,
        rows: tuple[int, int],
        columns: tuple[int, int],
        leaves: list[Any],
    ) -> None:
        """Run a kernel over a rectangle of the matrix."""
        empty = self.left  # for pointers that the kernel never follows
        scale, labels, ids = self.scale or (empty, empty), self.labels or (empty, empty), self.ids or (empty, empty)
        programs = min(shape.tiles(rows[1] - rows[0], columns[1] - columns[0]), processors(self.device))
        m, n, width = self.size
        arguments = (
            self.left, self.right, *scale, *labels, *ids,
            empty if self.valid is None else self.valid, empty if self.codes is None else self.codes,
            out, rest, rows[0], rows[1], columns[0], columns[1], n, out.stride(0), *leaves,
            width, shape.rows, shape.columns, shape.depth, GROUP, self.precision, programs, max(m, n) * width >= 2**31,
        )  # fmt: skip
        launch(kernel, programs, arguments, self.device, warps=shape.warps, stages=shape.stages)


def join(kernel: Kernel, tiles: Tensor, joined: Tensor) -> None:
    """Join what tiles left, ``(tiles, width, m)``, for each row: states, sums of slopes, finished folds."""
    count, _, m = tiles.shape
    launch(kernel, -(-m // ROWS), (tiles, joined, m, count, ROWS), tiles.device)
