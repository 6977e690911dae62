"""Generated kernels: compiling them, choosing tiles, and launching them on the operands of a batch."""

from __future__ import annotations

import functools
import itertools
import linecache
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import torch
import triton
import triton.language as tl
from torch import Tensor

from likewise import triton_tools
from likewise.engines.triton import device_functions
from likewise.triton_tools import use_device

Kernel: TypeAlias = Any
"""A function that Triton compiles."""

_kernel_numbers = itertools.count()


@functools.cache
def compile_source(source: str) -> Kernel:
    r"""Compile a kernel from source, which Triton reads from `linecache`.

    Examples:
        >>> compile_source("@triton.jit\ndef kernel(x):\n    pass\n").__name__
        'kernel'
    """
    filename = f"<likewise kernel {next(_kernel_numbers)}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    names = ("_acosh", "_find_mixed", "_power", "_product", "_sigmoid", "_softplus", "_take_chunk", "_tanh")
    namespace: dict[str, Any] = {
        "tl": tl,
        "triton": triton,
        "_place": triton_tools.place,
        "_place_above": triton_tools.place_above,
        **{name: getattr(device_functions, name) for name in names},
    }
    exec(compile(source, filename, "exec"), namespace)
    return namespace[source.split("def ", 1)[1].split("(", 1)[0]]


# ------------------------------------------------------------------------------------------------ launching


def launch(
    kernel: Kernel,
    programs: int,
    arguments: Sequence[Any],
    device: torch.device,
    *,
    warps: int = 4,
    stages: int = 2,
    registers: int | None = None,
) -> None:
    """Launch a kernel.

    Args:
        kernel: the kernel.
        programs: the number of programs.
        arguments: all arguments, in order.
        device: the device of the tensors.
        warps: the number of warps per program.
        stages: the number of stages of the pipeline that loads operands.
        registers: the number of registers that a thread may use; ``None`` for the limit of the hardware.
    """
    limit = {} if registers is None else {"maxnreg": registers}
    with use_device(device):
        # fused multiply-adds are Triton's default, which version 3.9 announces to change
        kernel[(programs,)](*arguments, num_warps=warps, num_stages=stages, enable_fp_fusion=True, **limit)


# ------------------------------------------------------------------------------------------------ tiles


@dataclass(frozen=True)
class TileShape:
    """The size of a kernel's tiles, and how they are computed.

    Args:
        rows: the rows of a tile.
        columns: the columns of a tile.
        depth: dimensions that are multiplied at a time.
        warps: the number of warps per tile.
        stages: the number of stages of the pipeline that loads operands.
        programs: the number of programs that share a multiprocessor: while one waits for operands or for the tensor cores,
            the other computes.  Their registers are limited.
        chunks: chunks of columns in which the gradients of a tile are computed, to save registers: 1 or 2; other kernels
            take one.
    """

    rows: int
    columns: int
    depth: int
    warps: int
    stages: int
    programs: int = 1
    chunks: int = 1

    @property
    def registers(self) -> int | None:
        """The number of registers that a thread may use; ``None`` if a program has the multiprocessor for itself."""
        return None if self.programs == 1 else REGISTERS // (32 * self.warps * self.programs)

    def count_tiles(self, rows: int, columns: int) -> int:
        """Return the number of tiles that cover a rectangle."""
        return -(-rows // self.rows) * -(-columns // self.columns)


REGISTERS = 2**16
"""Registers of a multiprocessor."""
ALL_REGISTERS_WARPS = 8
"""Warps whose threads, of up to 255 registers each, use all of them."""
SMALL_SHAPE = TileShape(32, 64, 64, 4, 3)

Shapes: TypeAlias = dict[str, TileShape]
"""Shapes by Triton's name of the precision of float32 products, and for ``half`` precision, chosen for an H200.

Three TF32 products for each need the registers of a multiprocessor.
"""

_FLOAT32 = TileShape(128, 128, 32, 8, 3)
FOLD_SHAPES: Shapes = {"half": TileShape(128, 256, 64, 8, 3), "tf32": _FLOAT32, "tf32x3": _FLOAT32, "ieee": _FLOAT32}
SQUARE_SHAPES: Shapes = {
    "half": TileShape(128, 128, 64, 4, 3, 2), "tf32": TileShape(128, 128, 32, 8, 3, 2), "tf32x3": _FLOAT32, "ieee": _FLOAT32,
}  # fmt: skip
"""For folds over the tiles above the diagonal, and for those whose products have the bits of the gradient's."""
SINGLE_SHAPES: Shapes = {"half": TileShape(128, 128, 64, 8, 3), "tf32": _FLOAT32, "tf32x3": _FLOAT32, "ieee": _FLOAT32}
"""For histograms and limits, whose gradients need the registers of a multiprocessor and are not computed in chunks."""
GRADIENT_SHAPES: Shapes = {
    "half": TileShape(128, 128, 64, 8, 3, 2, 2), "tf32": TileShape(128, 128, 32, 8, 3, 2, 2), "tf32x3": _FLOAT32, "ieee": _FLOAT32,
}  # fmt: skip
_POOLED = TileShape(64, 128, 32, 8, 3)
_POOLED_EXACT = TileShape(128, 64, 32, 8, 3)
POOLED_SHAPES: Shapes = {
    "half": TileShape(64, 128, 64, 8, 3),
    "tf32": _POOLED,
    "tf32x3": _POOLED_EXACT,
    "ieee": _POOLED,
}
"""For classes with several centers, which need several tiles of registers."""
GROUP = 8
"""Rows of tiles that are traversed together; see `device_functions`."""
JOIN_ROWS, JOIN_TILES = 256, 32
"""Rows and tiles per program that joins tiles."""


@functools.cache
def count_programs(device: torch.device, each: int = 1) -> int:
    """Return the number of programs that share the tiles: the largest prime up to ``each`` per multiprocessor.

    Each program takes every so many tiles, and some tiles take longer than others, at regular distances.  If such a
    distance were a multiple of the number of programs, few programs would get all of them; with a prime that hardly ever
    happens.  In the interpreter there is one program.
    """
    count = each * int(torch.cuda.get_device_properties(device).multi_processor_count) if device.type == "cuda" else 1
    while any(count % factor == 0 for factor in range(2, int(count**0.5) + 1)):
        count -= 1
    return count


def next_power_of_two(least: int) -> int:
    """Return the smallest power of two that is not below a number.

    Examples:
        >>> next_power_of_two(16), next_power_of_two(17)
        (16, 32)
    """
    return 1 << (least - 1).bit_length()


@dataclass(frozen=True, eq=False)
class Operands:
    """The tensors of a batch that every kernel reads.

    Args:
        left: the operand of the anchors, ``(m, width)``, contiguous, with rows of a multiple of 16 bytes.
        right: the operand of the references, ``(n, width)``, or of the centers of n classes, ``(centers · n, width)``: the
            first centers of all classes, then the second; without rows if it is streamed (`cut`).
        scale: factors of the products, per anchor and per reference, or ``None``.
        labels: of anchors and references, or ``None`` if there are codes.
        ids: the index of each anchor among the references, and of each reference, or ``None``.
        valid: which references exist, as bytes, or ``None`` if all do.
        codes: 1 for a positive pair, 2 for a negative one, as bytes, or ``None`` if there are labels.
        precision: Triton's name of the precision of float32 products.
        size: m, n and width.
        dtype: the dtype of both operands.
        device: the device of all tensors.
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

    def choose_tiles(self, m: int, n: int, large: Shapes) -> TileShape:
        """Choose the tiles for a rectangle: large ones if they keep every multiprocessor busy, small ones otherwise."""
        shape = large[self.precision if self.dtype == torch.float32 else "half"]
        if shape.count_tiles(m, n) < count_programs(self.device) or self.device.type != "cuda":
            shape = SMALL_SHAPE
        return replace(shape, depth=min(shape.depth, max(16, next_power_of_two(self.size[2]))))

    def cut(self, first: int, end: int, right: Tensor, scale: Tensor | None) -> Operands:
        """Return the operands of some references, which kernels then number from zero.

        Args:
            first: the first reference.
            end: the end.
            right: the operand of these references.
            scale: their factors.
        """

        def of_columns(both: tuple[Tensor, Tensor] | None) -> tuple[Tensor, Tensor] | None:
            return None if both is None else (both[0], both[1][first:end])

        return replace(
            self,
            right=right,
            scale=None if self.scale is None or scale is None else (self.scale[0], scale),
            labels=of_columns(self.labels),
            ids=of_columns(self.ids),
            valid=None if self.valid is None else self.valid[first:end],
            codes=None if self.codes is None else self.codes[:, first:end],
        )

    @property
    def gradient_dtype(self) -> torch.dtype:
        """The dtype of gradients by similarities that enter a product; float16 does not have their range."""
        return torch.bfloat16 if self.dtype == torch.bfloat16 else torch.float32

    def write_gradients(
        self,
        kernels: list[Kernel],
        shape: TileShape,
        rows: tuple[int, int],
        columns: tuple[int, int],
        leaves: list[Any],
        *,
        summands: int,
        rounded: bool = True,
        centers: int = 1,
    ) -> Tensor:
        """Return the gradients by the similarities of a rectangle, ``(rows, summands, columns)``, to be summed.

        Args:
            kernels: the kernels, each of which writes some of the tiles.
            shape: of the tiles.
            rows: the first row, and the end.
            columns: the first column, and the end.
            leaves: the values of the kernels' leaves.
            summands: how many numbers are returned for each pair; each is the rounding error of those before it.
            rounded: round to `gradient_dtype`, for a product.
            centers: the number of gradients of each row and column.
        """
        height, width = rows[1] - rows[0], (columns[1] - columns[0]) * centers
        dtype = torch.bfloat16 if summands > 1 else self.gradient_dtype if rounded else torch.float32
        # rows that begin at multiples of 16 are stored as whole vectors
        written = self.left.new_empty(height, summands, width + -width % 16, dtype=dtype)[:, :, :width]
        for kernel in kernels:
            self.launch(kernel, shape, written.unbind(1), rows, columns, leaves)
        return written

    def launch(
        self,
        kernel: Kernel,
        shape: TileShape,
        targets: Sequence[Tensor],
        rows: tuple[int, int],
        columns: tuple[int, int],
        leaves: list[Any],
    ) -> None:
        """Launch a kernel on a rectangle of the matrix, or on its tiles above the diagonal."""
        empty = self.left  # for pointers that the kernel does not read
        scale, labels, ids = self.scale or (empty, empty), self.labels or (empty, empty), self.ids or (empty, empty)
        tiles = shape.count_tiles(rows[1] - rows[0], columns[1] - columns[0])
        programs = min(tiles, count_programs(self.device, shape.programs))
        _, n, width = self.size
        wide = max(len(self.left), len(self.right)) * width >= 2**31
        arguments = (
            self.left, self.right, *scale, *labels, *ids,
            empty if self.valid is None else self.valid, empty if self.codes is None else self.codes,
            *targets, *[empty] * (3 - len(targets)), rows[0], rows[1], columns[0], columns[1], n, targets[0].stride(0), *leaves,
            width, shape.rows, shape.columns, shape.depth, GROUP, self.precision, programs, shape.chunks,
            shape.programs == 1, wide,
        )  # fmt: skip
        launch(
            kernel, programs, arguments, self.device,
            warps=shape.warps, stages=shape.stages, registers=shape.registers,
        )  # fmt: skip


def join_tiles(kernel: Kernel, tiles: Tensor, width: int) -> Tensor:
    """Join the states and sums of a row's tiles, ``(tiles, stride, m)``; return them and the folds' values, ``(width, m)``.

    Many tiles are joined by several programs, whose results are joined once more.
    """
    count, stride, m = tiles.shape
    parts = -(-count // JOIN_TILES)
    joined = tiles.new_empty(parts, width, m)
    programs = parts * -(-m // JOIN_ROWS)
    launch(kernel, programs, (tiles, joined, m, count, JOIN_TILES, stride, JOIN_ROWS), tiles.device)
    return joined[0] if parts == 1 else join_tiles(kernel, joined, width)
