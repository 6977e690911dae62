"""Kernels for soft histograms of each anchor's pairs, and for their gradient.

Forward: for each tile, a loop over the nodes between the smallest and the largest position adds up the weights of each
row.  A loop compiles once for any number of bins.  Sums of tiles are joined in a fixed order.  Backward: the derivative by
a position is constant between two nodes, so the gradient of a pair is one entry of a table with a row for each anchor.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from likewise.engines.triton.engine import FoldJob, TritonEngine
from likewise.engines.triton.kernel_source import store_gradient, write_link_derivative
from likewise.engines.triton.kernels import FOLD_SHAPES, SINGLE_SHAPES, Kernel, compile_source
from likewise.engines.triton.printer import Leaf, Writer, find_structure
from likewise.engines.triton.second_derivatives import refuse_second_derivative
from likewise.engines.triton.tile_source import (
    INSIDE,
    KernelSpec,
    Tiles,
    as_tile,
    write_head,
    write_leaves,
    write_masks,
)
from likewise.formula import Formula, Number, PairBatch, RowHistograms, derivative, full_precision, s

TILE_SUM_BYTES = 2**28
"""Bytes for the sums of tiles before they are joined."""

ALL = "propagate_nan=tl.PropagateNan.ALL"


def compute_histograms(batch: PairBatch, position: Formula, bins: int) -> RowHistograms:
    """Return the histograms of each anchor's pairs; see `likewise.formula.RowMapper`."""
    job = HistogramJob(TritonEngine(batch), position, bins)
    left, right = job.layout.left.source, job.layout.right.source
    return RowHistograms(*_Histograms.apply(job, left, right))  # type: ignore[no-untyped-call]


# ------------------------------------------------------------------------------------------------ source


def _write_position(writer: Writer, position: Formula, bins: str) -> None:
    """Write the position of each pair, and the position between the first and the last node."""
    writer.line(f"raw = {writer.value(position)}")
    writer.line(f"last = {bins} + 0.0")
    writer.line(f"u = tl.minimum(tl.maximum(raw, 0.0, {ALL}), last, {ALL})")


def _write_kept(writer: Writer, spec: KernelSpec, over: str, plain: bool) -> str:
    """Write the mask of the pairs of one side, after mining, and return its name; empty: all pairs of the tile."""
    name = "" if plain else over
    if spec.keep is not None:
        condition = spec.keep[over == "negative"]
        name = as_tile(writer, condition) if plain else writer.write(f"{over} & {writer.value(condition)}")
    return name


def _name_sides(plain: bool) -> tuple[str, ...]:
    return ("negative",) if plain else ("positive", "negative")


def write_histogram_kernel(spec: KernelSpec, position: Formula, tiles: Tiles) -> str:
    """Write the kernel that adds up the weights of each row of a tile at each node; the last leaf is the number of bins.

    It stores ``bins + 2`` numbers for the positives and as many for the negatives: the weights, and the number of pairs.
    """
    plain = tiles is Tiles.PLAIN
    loads, names = write_leaves(spec, INSIDE, mirrored=False)
    writer = Writer({**names, s: "s"}, INSIDE, "v")
    writer.names[s] = writer.value(spec.link)
    bins = f"leaf{len(spec.leaves) - 1}"
    _write_position(writer, position, bins)
    if not plain:
        for line in write_masks(spec.pairing):
            writer.line(line)
    for over in _name_sides(plain):
        _write_sums(writer, _write_kept(writer, spec, over, plain), over, bins)
    return "\n".join([*write_head(spec, tiles, "likewise_histogram", branches=True), *loads, *writer.lines]) + "\n"


def _write_sums(writer: Writer, kept: str, over: str, bins: str) -> None:
    """Write the sums of one side: only nodes next to a pair of the tile are visited, the others are zero already."""
    number = f"tl.sum({kept}.to(tl.float32), axis=1)" if kept else "tl.full([BM], BN, tl.float32)"
    low, high = "u", "u"
    if kept:
        # a position of −2 is away from every node
        low, high = f"tl.where({kept}, u, last)", f"tl.where({kept}, u, -2.0)"
    side = 0 if over == "positive" else 1
    for line in (
        f"place = out + ((2 * j + {side}) * ({bins} + 2)).to(tl.int64) * m + rows",
        f"tl.store(place + ({bins} + 1) * m, {number}, mask=here)",
        f"kept_u = {high}",
        f"first = tl.maximum(tl.min(tl.min({low}, axis=1), axis=0).to(tl.int32), 0)",
        f"end = tl.minimum(tl.max(tl.max(kept_u, axis=1), axis=0).to(tl.int32) + 2, {bins} + 1)",
        "for node in range(first, end):",
        f"    weight = tl.maximum(1.0 - tl.abs(kept_u - node), 0.0, {ALL})",
        "    tl.store(place + node * m, tl.sum(weight, axis=1), mask=here)",
    ):
        writer.line(line)


def write_lookup_kernel(spec: KernelSpec, position: Formula, tiles: Tiles, *, symmetric: bool, summands: int) -> str:
    """Write the kernel that looks up the gradient of each pair of a rectangle.

    Args:
        spec: what the kernels have in common; the last leaves are the number of bins and the tables of positives and of
            negatives, ``(m, bins + 1)``, whose last column is zero.
        position: the position of a pair.
        tiles: the tiles that the kernel processes.
        symmetric: the references are the anchors: add the gradient of the mirrored pair.
        summands: the number of matrices whose sum is the gradient: each has the rounding errors of those before it.
    """
    plain = tiles is Tiles.PLAIN
    count = len(spec.leaves)
    bins, tables = f"leaf{count - 3}", {"positive": f"leaf{count - 2}", "negative": f"leaf{count - 1}"}
    writer = Writer({}, INSIDE, "v")
    similarity, sums = "s", []
    for mirrored in [False, True] if symmetric else [False]:
        loads, names = write_leaves(spec, INSIDE, mirrored)
        writer.lines += loads
        writer.names = {**names, s: similarity}
        if not mirrored:
            similarity = writer.names[s] = writer.value(spec.link)
            factors = [write_link_derivative(writer, spec.link, names), writer.value(derivative(position, s))]
            _write_position(writer, position, bins)
            for line in [] if plain else write_masks(spec.pairing):
                writer.line(line)
            # the last entry of a row is zero, for positions outside
            writer.line("node = tl.minimum(u, last - 1.0).to(tl.int32)")
            writer.line(f"node = tl.where((raw >= 0.0) & (raw <= last), node, {bins})")
        anchors = "columns[None, :]" if mirrored else "rows[:, None]"
        for over in _name_sides(plain):
            kept = _write_kept(writer, spec, over, plain)
            row = writer.write(f"{anchors} * ({bins} + 1)")
            mask = f", mask={kept}, other=0.0" if kept else ""
            sums.append(writer.write(f"tl.load({tables[over]} + ({row} + node){mask})"))
    tail = [f"g = {' + '.join(sums)}"]
    factors = [factor for factor in factors if factor != "1.0"]
    tail += store_gradient(factors, "here[:, None] & there[None, :]", scaled=spec.scaled, summands=summands)
    lines = [
        *write_head(spec, tiles, "likewise_lookup", branches=True),
        *writer.lines,
        *(INSIDE + line for line in tail),
    ]
    return "\n".join(lines) + "\n"


# ------------------------------------------------------------------------------------------------ launching

_KERNELS: dict[Any, list[Kernel]] = {}
"""Compiled kernels, by the structure of the formulas that they were generated from."""


class HistogramJob:
    """The histograms of one batch: their kernels, and the arguments of these."""

    def __init__(self, engine: TritonEngine, position: Formula, bins: int) -> None:
        self.engine, self.layout, self.position, self.bins = engine, engine.layout, position, bins
        assert not self.layout.right.streamed  # kernels read all references
        self.folds = FoldJob(engine, [], engine.bind({}))

    def find_kernels(self, *options: int) -> tuple[list[Kernel], list[Any]]:
        """Return kernels, compiled or from the cache, and the values of their leaves except the last; options: of a gradient."""
        keep, layout = self.engine.keep, self.layout
        structure, leaves = find_structure([layout.link, *(keep or ()), self.position])
        scaled = layout.product.scaled
        key = (structure, layout.pairing, layout.ordered, scaled, keep is not None, options)
        if key not in _KERNELS:
            extra = [Leaf(Number(0.0), "number")] * (3 if options else 1)
            spec = KernelSpec((*leaves, *extra), layout.link, keep, layout.pairing, scaled)
            kinds = [Tiles.PLAIN, Tiles.MIXED] if layout.ordered else [Tiles.ALL]
            _KERNELS[key] = [compile_source(self._write(spec, tiles, options)) for tiles in kinds]
        return _KERNELS[key], [*self.folds.bind_leaves(leaves, self.folds.values), self.bins]

    def _write(self, spec: KernelSpec, tiles: Tiles, options: tuple[int, ...]) -> str:
        if not options:
            return write_histogram_kernel(spec, self.position, tiles)
        symmetric, summands = bool(options[0]), options[1]
        return write_lookup_kernel(spec, self.position, tiles, symmetric=symmetric, summands=summands)

    def add_up(self) -> Tensor:
        """Return the weights at each node and the numbers of pairs, ``(2, bins + 2, m)``, in the order of the operands."""
        operands, width = self.layout.operands, 2 * (self.bins + 2)
        kernels, values = self.find_kernels()
        m, n, _ = operands.size
        shape = operands.choose_tiles(m, n, FOLD_SHAPES)
        columns = shape.columns * max(1, TILE_SUM_BYTES // (4 * width * m))
        total = operands.left.new_zeros(width, m, dtype=torch.float32)
        for first in range(0, n, columns):
            end = min(n, first + columns)
            tiles = total.new_zeros(-(-(end - first) // shape.columns), width, m)
            for kernel in kernels:
                operands.launch(kernel, shape, [tiles], (0, m), (first, end), values)
            total += tiles.sum(dim=0)
        return total.view(2, -1, m)


@dataclass(eq=False)
class _HistogramGradients:
    """The gradients by all similarities; see `likewise.engines.triton.layout.GradientWriter`."""

    job: HistogramJob
    tables: list[Tensor]

    @property
    def symmetric(self) -> bool:
        """Whether the gradient of each pair includes that of its mirror."""
        return self.job.folds.symmetric

    def write(self, _by: Formula, rows: tuple[int, int], columns: tuple[int, int], summands: int) -> Tensor:
        """Return the gradient by the similarities of a rectangle: ``(rows, summands, columns)``."""
        operands = self.job.layout.operands
        kernels, values = self.job.find_kernels(self.symmetric, summands)
        shape = operands.choose_tiles(rows[1] - rows[0], columns[1] - columns[0], SINGLE_SHAPES)
        return operands.write_gradients(kernels, shape, rows, columns, [*values, *self.tables], summands=summands)


class _Histograms(torch.autograd.Function):
    """The histograms of a job, as a function of the sources of both factors."""

    @staticmethod
    def forward(ctx: Any, job: HistogramJob, left: Tensor, right: Tensor) -> tuple[Tensor, ...]:
        sums = [job.layout.unsort_rows(side.T) for side in job.add_up()]  # (m, bins + 2)
        weights, counts = [side[:, :-1] for side in sums], [side[:, -1].to(torch.int64) for side in sums]
        ctx.job = job
        ctx.mark_non_differentiable(*counts)
        ctx.save_for_backward(left, right)  # torch raises an error if these are changed in place
        return (*weights, *counts)

    @staticmethod
    @refuse_second_derivative
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        job, (left, _) = ctx.job, ctx.saved_tensors
        slopes = [torch.diff(each.to(torch.float32), dim=1) for each in gradients[:2]]
        tables = [job.layout.sort_rows(torch.nn.functional.pad(each, (0, 1))).contiguous() for each in slopes]
        with full_precision(left):
            writer = _HistogramGradients(job, tables)
            return (None, *job.layout.compute_gradients(writer, *ctx.needs_input_grad[1:]))
