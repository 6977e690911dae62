"""Generated kernels, compiled once for each shape of a declaration, and how they are launched."""

from __future__ import annotations

import functools
import itertools
import linecache
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from likewise.engines.triton import pieces

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


# ------------------------------------------------------------------------------------------------ launching

Launch = Callable[[int, int, Sequence[Any]], None]
"""Runs so many programs of a compiled kernel on a stream; a pointer may be a tensor or an address."""


class Launcher:
    """A kernel, and its compiled forms by what they were specialized for.

    Triton looks at every argument of every call to find the form that fits; for a small batch that takes longer than the
    kernel.  Whoever calls knows better what can differ.
    """

    def __init__(self, kernel: Any) -> None:
        self.kernel = kernel
        self._compiled: dict[Any, Launch] = {}

    def __call__(
        self,
        programs: int,
        key: Any,
        arguments: Sequence[Any],
        device: torch.device,
        *,
        warps: int = 4,
        stages: int = 2,
    ) -> None:
        """Run it.

        Args:
            programs: how many.
            key: everything about the arguments that Triton specializes for: dtypes, whether addresses and whole numbers
                are multiples of 16, whether a number is one, and constants.
            arguments: all of them, in order.
            device: where.
            warps: of each program.
            stages: of the pipeline that loads.
        """
        known = self._compiled.get((key, device))
        with on(device):
            if known is not None:
                known(programs, stream_of(device), arguments)
                return
            launch = self.first(programs, arguments, warps=warps, stages=stages)
        if launch is not None:
            self._compiled[key, device] = launch

    def first(self, programs: int, arguments: Sequence[Any], *, warps: int = 4, stages: int = 2) -> Launch | None:
        """Run it on tensors, compile it if it must be, and say how it is launched from now on.

        ``None``: as before.  The interpreter compiles nothing.
        """
        # multiply-adds in one rounding are Triton's default, which 3.9 announces to change
        compiled = self.kernel[(programs,)](*arguments, num_warps=warps, num_stages=stages, enable_fp_fusion=True)
        return None if compiled is None else direct(compiled)


def direct(compiled: Any) -> Launch:
    """The short way to launch a compiled kernel.

    Triton's own, ``compiled[grid](*arguments)``, asks for device and stream, packs up what a profiler may want to know,
    and calls hooks before and after.  Below it is a function that only launches.  What that is given is Triton's own
    business and no promise: versions 3.6 to 3.9 are known, in two forms.  Wherever anything is not as it is there, and
    while a profiler listens, the plain way is taken.
    """

    def plain(programs: int, _stream: int, arguments: Sequence[Any]) -> None:
        compiled[(programs, 1, 1)](*arguments)

    version = tuple(int(part) for part in triton.__version__.split(".")[:2])
    names = ("launch", "launch_cooperative_grid", "launch_pdl", "global_scratch_size", "profile_scratch_size")
    launcher: Any = getattr(compiled, "run", None)  # loads it, too
    function, metadata = getattr(compiled, "function", None), getattr(compiled, "packed_metadata", None)
    runtime = getattr(getattr(triton, "knobs", None), "runtime", None)
    hooks = [getattr(getattr(runtime, f"launch_{when}_hook", None), "calls", None) for when in ("enter", "exit")]
    if (
        not (3, 6) <= version <= (3, 9)
        or not all(hasattr(launcher, name) for name in names)
        or not (isinstance(function, int) and isinstance(metadata, tuple) and len(metadata) == 3)
        or not all(isinstance(calls, list) for calls in hooks)
        or launcher.global_scratch_size
        or launcher.profile_scratch_size
        or getattr(launcher, "gsan_enabled", False)
    ):
        return plain
    entering, leaving = hooks
    launch, cooperative, dependent = launcher.launch, launcher.launch_cooperative_grid, launcher.launch_pdl
    if version == (3, 6):

        def short(programs: int, stream: int, arguments: Sequence[Any]) -> None:
            if entering or leaving:
                return plain(programs, stream, arguments)
            launch(
                programs, 1, 1, stream, function, cooperative, dependent, None, None, metadata, None, None, None,
                *arguments,
            )  # fmt: skip

        return short
    if not (hasattr(launcher, "arg_annotations") and hasattr(launcher, "kernel_signature")):
        return plain
    annotations, signature = launcher.arg_annotations, launcher.kernel_signature

    def shorter(programs: int, stream: int, arguments: Sequence[Any]) -> None:
        if entering or leaving:
            return plain(programs, stream, arguments)
        launch(
            programs, 1, 1, stream, function, cooperative, dependent, metadata, None, None, None, None, None,
            annotations, signature, arguments,
        )  # fmt: skip

    return shorter


_ANYWHERE = nullcontext()


def on(device: torch.device) -> AbstractContextManager[object]:
    """Make a device the current one, on which Triton launches; where it is, or is no GPU, there is nothing to do."""
    if device.type != "cuda" or device.index == torch.cuda.current_device():
        return _ANYWHERE
    return torch.cuda.device(device)


def stream_of(device: torch.device) -> int:
    """The address of the stream that torch launches on."""
    if device.type != "cuda":
        return 0
    return int(torch._C._cuda_getCurrentRawStream(device.index))


def aligned(*tensors: Tensor) -> tuple[bool, ...]:
    """Which tensors begin at an address that loads in whole vectors."""
    return tuple([tensor.data_ptr() % 16 == 0 for tensor in tensors])


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
    """What every kernel of a batch reads: tensors, or the places where they will be.

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

    left: Any
    right: Any
    scale: tuple[Any, Any] | None
    labels: tuple[Any, Any] | None
    ids: tuple[Any, Any] | None
    valid: Any | None
    codes: Any | None
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
        dtype = self.slope_dtype if rounded else torch.float32
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
        programs, arguments = self.arguments(shape, (out, rest), rows, columns, out.stride(0), leaves)
        tensors = [each for each in arguments if isinstance(each, Tensor)]
        kinds = self.dtype, out.dtype, None if self.labels is None else self.labels[0].dtype
        key = (rows, columns, self.size, out.stride(0), shape, programs, self.precision, kinds, aligned(*tensors))
        kernel(programs, key, arguments, self.device, warps=shape.warps, stages=shape.stages)

    def arguments(
        self,
        shape: Shape,
        out: tuple[Any, Any],
        rows: tuple[int, int],
        columns: tuple[int, int],
        stride: int,
        leaves: Sequence[Any],
    ) -> tuple[int, tuple[Any, ...]]:
        """How many programs cover a rectangle, and what they are given; ``stride`` is that of what they write."""
        empty = self.left  # for pointers that the kernel never follows
        scale, labels, ids = self.scale or (empty, empty), self.labels or (empty, empty), self.ids or (empty, empty)
        programs = min(shape.tiles(rows[1] - rows[0], columns[1] - columns[0]), processors(self.device))
        m, n, width = self.size
        return programs, (
            self.left, self.right, *scale, *labels, *ids,
            empty if self.valid is None else self.valid, empty if self.codes is None else self.codes,
            *out, rows[0], rows[1], columns[0], columns[1], n, stride, *leaves,
            width, shape.rows, shape.columns, shape.depth, GROUP, self.precision, programs, max(m, n) * width >= 2**31,
        )  # fmt: skip


def join(kernel: Launcher, tiles: Tensor, joined: Tensor) -> None:
    """Join what tiles left, ``(tiles, width, m)``, for each row: states, sums of slopes, finished folds."""
    count, width, m = tiles.shape
    kernel(-(-m // ROWS), (count, m, width), (tiles, joined, m, count, ROWS), tiles.device)
