"""Generated kernels, compiled once for each shape of a declaration, and how they are launched."""

from __future__ import annotations

import functools
import itertools
import linecache
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from likewise.backends.fused import pieces

_numbers = itertools.count()


@functools.cache
def compile_source(source: str) -> Launcher:
    r"""The kernel of a source; Triton reads it where tracebacks do.

    Examples:
        >>> compile_source("@triton.jit\ndef kernel(x):\n    pass\n").kernel.__name__
        'kernel'
    """
    filename = f"<likewise kernel {next(_numbers)}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    names = ("_place", "_product", "_sigmoid", "_softplus")
    namespace: dict[str, Any] = {"tl": tl, "triton": triton, **{name: getattr(pieces, name) for name in names}}
    exec(compile(source, filename, "exec"), namespace)
    return Launcher(namespace["kernel"])


class Launcher:
    """A kernel, and its compiled forms by what they were specialised for.

    Triton looks at every argument of every call to find the form that fits; for a small batch that takes longer than the
    kernel.  Whoever calls knows better what can differ.
    """

    def __init__(self, kernel: Any) -> None:
        self.kernel = kernel
        self._compiled: dict[Any, Any] = {}

    def __call__(self, programs: int, key: Any, arguments: Sequence[Any], *, warps: int, stages: int = 2) -> None:
        """Run it.

        Args:
            programs: how many.
            key: everything about the arguments that Triton specialises for: dtypes, whether addresses and whole numbers
                are multiples of 16, whether a number is one, and constants.
            arguments: all of them, in order.
            warps: of each program.
            stages: of the pipeline that loads.
        """
        known = self._compiled.get(key)
        if known is not None:
            known[(programs, 1, 1)](*arguments)
            return
        compiled = self.kernel[(programs,)](*arguments, num_warps=warps, num_stages=stages)
        if compiled is not None:  # the interpreter compiles nothing
            self._compiled[key] = compiled


def aligned(*tensors: Tensor) -> tuple[bool, ...]:
    """Which tensors begin at an address that loads in whole vectors."""
    return tuple(tensor.data_ptr() % 16 == 0 for tensor in tensors)


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


@dataclass(frozen=True, eq=False)
class Operands:
    """What every kernel of a problem reads.

    Args:
        left: anchors as they are multiplied, ``(m, d)``, contiguous, rows of a multiple of 16 bytes.
        right: references.
        scale: numbers that products are multiplied by, per anchor and per reference, where there are any.
        labels: of anchors and references, or ``None`` where there are codes.
        ids: who each anchor is among the references, and who each reference is.
        valid: which references exist, as bytes.
        codes: 1 for a positive pair, 2 for a negative one, as bytes.
        precision: Triton's name for how float32 is multiplied.
    """

    left: Tensor
    right: Tensor
    scale: tuple[Tensor, Tensor] | None
    labels: tuple[Tensor, Tensor] | None
    ids: tuple[Tensor, Tensor] | None
    valid: Tensor | None
    codes: Tensor | None
    precision: str

    def cut(self, m: int, n: int, large: dict[int, Shape]) -> Shape:
        """How a rectangle is cut: into large tiles where they keep every processor busy, into small ones elsewhere."""
        shape, device = large[self.left.element_size()], self.left.device
        if triton.cdiv(m, shape.rows) * triton.cdiv(n, shape.columns) < processors(device) or device.type != "cuda":
            shape = SMALL
        depth = min(shape.depth, max(16, triton.next_power_of_2(self.left.shape[1])))
        return replace(shape, depth=depth)

    def slopes(
        self,
        kernels: list[Launcher],
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
        dtype = torch.bfloat16 if self.left.dtype == torch.bfloat16 and rounded else torch.float32
        # rows that begin at multiples of 16 are stored in whole vectors
        both = self.left.new_empty(1 + split, height, width + -width % 16, dtype=dtype)[:, :, :width]
        for kernel in kernels:
            self.launch(kernel, shape, both[0], both[-1], rows, columns, leaves)
        return tuple(both.unbind(0))

    def launch(
        self,
        kernel: Launcher,
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
        tiles = triton.cdiv(rows[1] - rows[0], shape.rows) * triton.cdiv(columns[1] - columns[0], shape.columns)
        programs = min(tiles, processors(self.left.device))
        n, width = self.right.shape
        wide = max(self.left.numel(), self.right.numel()) >= 2**31
        arguments = (
            self.left, self.right, *scale, *labels, *ids,
            empty if self.valid is None else self.valid, empty if self.codes is None else self.codes,
            out, rest, rows[0], rows[1], columns[0], columns[1], n, out.stride(0), *leaves,
            width, shape.rows, shape.columns, shape.depth, GROUP, self.precision, programs, wide,
        )  # fmt: skip
        tensors = [self.left, self.right, *labels, *ids, out, *[leaf for leaf in leaves if isinstance(leaf, Tensor)]]
        key = (
            rows, columns, n, out.stride(0), width, shape, programs, self.precision, self.left.dtype, labels[0].dtype,
            out.dtype, self.left.device, aligned(*tensors),
        )  # fmt: skip
        kernel(programs, key, arguments, warps=shape.warps, stages=shape.stages)


def join(kernel: Launcher, tiles: Tensor, joined: Tensor) -> None:
    """Join what tiles left, ``(tiles, width, m)``, for each row: states, sums of slopes, finished folds."""
    count, width, m = tiles.shape
    kernel(triton.cdiv(m, ROWS), (count, m, width, tiles.device), (tiles, joined, m, count, ROWS), warps=4)
