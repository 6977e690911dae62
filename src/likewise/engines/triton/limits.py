"""Kernels that compare all negative pairs of a batch with limits: the sum and the number of pairs above each limit.

A limit belongs to an anchor; pairs that contain the anchor's class may be excluded.  Each pair is located among all
limits, which are sorted, by bisection.  A kernel adds it to the interval between two limits in whole numbers, whose sum
does not depend on the order.  The limits of a class are few: a second kernel compares each row with those of its class.
The gradient of a pair is the sum of the weights of all limits below it, minus those of its two classes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from likewise.engines.triton.engine import FoldJob, TritonEngine
from likewise.engines.triton.histograms import TILE_SUM_BYTES
from likewise.engines.triton.kernel_source import store_gradient, write_link_derivative
from likewise.engines.triton.kernels import SINGLE_SHAPES, Kernel, compile_source
from likewise.engines.triton.printer import Leaf, Writer, find_structure
from likewise.engines.triton.second_derivatives import refuse_second_derivative
from likewise.engines.triton.tile_source import INSIDE, KernelSpec, Tiles, write_head, write_leaves, write_masks
from likewise.formula import Formula, Number, PairBatch, full_precision, s

FIXED_POINT = 2.0**28
"""Steps per unit of similarity in which pairs are summed: 2³³ pairs fit, and a step is less than float32's rounding."""


class ClassLimits(NamedTuple):
    """Limits, sorted, and those of each anchor's class; a missing limit is infinite.

    Args:
        ordered: all limits, ascending, padded to a power of two.
        rank: the position of each limit among them, ``(m · k,)``.
        of_class: the limits of each anchor's class, ascending, ``(m, K)``.
        place: the position of each limit among those of its class, ``(m · k,)``.
    """

    ordered: Tensor
    rank: Tensor
    of_class: Tensor
    place: Tensor


def sort_limits(limits: Tensor, classes: Tensor) -> ClassLimits:
    """Sort limits, ``(m, k)``, where no class has more than ``k + 1`` anchors.

    Args:
        limits: the limits of each anchor; a missing one is infinite.
        classes: a number from 0 to m − 1 for each anchor's class.
    """
    m, k = limits.shape
    flat, which = limits.reshape(-1), classes[:, None].expand_as(limits).reshape(-1)
    ordered, order = flat.sort()
    rank = torch.empty_like(order).scatter_(0, order, torch.arange(len(order), device=order.device))
    by_class = order[which[order].argsort(stable=True)]
    start = torch.searchsorted(which[by_class], classes)
    end = torch.searchsorted(which[by_class], classes, right=True)
    position = start[:, None] + torch.arange(k * (k + 1), device=order.device)
    of_class = torch.where(position < end[:, None], flat[by_class][position.clamp_max(max(m * k - 1, 0))], torch.inf)
    place = torch.empty_like(order).scatter_(0, by_class, torch.arange(len(order), device=order.device))
    # at least four, because Triton compiles a kernel for each argument that is one
    padding = flat.new_full((max(4, 1 << len(flat).bit_length()) - len(flat),), torch.inf)
    return ClassLimits(torch.cat([ordered, padding]), rank, of_class, place - start.repeat_interleave(k))


def compute_excess(batch: PairBatch, limits: Tensor, classes: Tensor, *, apart: bool) -> tuple[Tensor, Tensor]:
    """Return the sum of ``[s − limit]₊`` over all negative pairs, in float64, and the number of pairs above each limit.

    Args:
        batch: a batch against itself, with labels.
        limits: limits of each anchor, ``(m, k)``; infinite where there is none.
        classes: a number from 0 to m − 1 for each anchor's class.
        apart: exclude the pairs that contain the anchor's class.
    """
    job = LimitJob(TritonEngine(batch), sort_limits(limits.detach().float(), classes), classes, apart)
    left, right = job.layout.left.source, job.layout.right.source
    excess, numbers = _Excess.apply(job, left, right, limits)  # type: ignore[no-untyped-call]
    return excess, numbers


# ------------------------------------------------------------------------------------------------ source


def _write_similarity(spec: KernelSpec, tiles: Tiles) -> tuple[Writer, str]:
    """Write the similarity of each pair and the mask of negatives; return the writer and the link's derivative."""
    loads, names = write_leaves(spec, INSIDE, mirrored=False)
    writer = Writer({**names, s: "s"}, INSIDE, "v")
    writer.lines += loads
    value = writer.value(spec.link)
    factor = write_link_derivative(writer, spec.link, names)
    if tiles is Tiles.PLAIN:
        writer.line("negative = here[:, None] & there[None, :]")
    else:
        for line in write_masks(spec.pairing):
            writer.line(line)
    writer.line(f"value = {value}")
    return writer, factor


def _bisect(ordered: str, half: str, levels: str) -> list[str]:
    """Write the number of limits below each pair; arguments: all limits, half their number, and its logarithm plus one."""
    return [
        "place = tl.zeros([BM, BN], tl.int32)",
        f"for level in range({levels}):",
        f"    step = {half} >> level",
        f"    limit = tl.load({ordered} + (place + step - 1), mask=negative, other=float('inf'))",
        "    place = tl.where(limit < value, place + step, place)",
    ]


def write_interval_kernel(spec: KernelSpec, tiles: Tiles) -> str:
    """Write the kernel that adds the pairs above the diagonal to intervals; the last leaves are those of `_bisect` and steps."""
    ordered, half, levels, scale = (f"leaf{len(spec.leaves) - k}" for k in (4, 3, 2, 1))
    writer, _ = _write_similarity(spec, tiles)
    for line in (
        "negative = negative & (rows[:, None] < columns[None, :])",
        *_bisect(ordered, half, levels),
        "above = negative & (place > 0)",
        f"tl.atomic_add(out + 2 * place, (value * {scale}).to(tl.int64), mask=above, sem='relaxed')",
        "one = tl.full([BM, BN], 1, tl.int64)",
        "tl.atomic_add(out + (2 * place + 1), one, mask=above, sem='relaxed')",
    ):
        writer.line(line)
    return "\n".join([*write_head(spec, tiles, "likewise_intervals", branches=True, upper=True), *writer.lines]) + "\n"


def write_class_kernel(spec: KernelSpec, tiles: Tiles) -> str:
    """Write the kernel that compares each row with the limits of its class; leaves: these limits and their number."""
    table, count = (f"leaf{len(spec.leaves) - k}" for k in (2, 1))
    writer, _ = _write_similarity(spec, tiles)
    for line in (
        "low = tl.where(negative, value, float('-inf'))",
        f"base = {table} + rows.to(tl.int64) * {count}",
        f"target = out + (j * (2 * {count})).to(tl.int64) * m + rows",
        f"for k in range({count}):",
        "    limit = tl.load(base + k, mask=here, other=float('inf'))",
        "    above = low > limit[:, None]",
        "    excess = tl.where(above, low - limit[:, None], 0.0)",
        "    tl.store(target + 2 * k * m, tl.sum(excess, axis=1), mask=here)",
        "    tl.store(target + (2 * k + 1) * m, tl.sum(above.to(tl.float32), axis=1), mask=here)",
    ):
        writer.line(line)
    return "\n".join([*write_head(spec, tiles, "likewise_class_limits", branches=True), *writer.lines]) + "\n"


def write_weight_kernel(spec: KernelSpec, tiles: Tiles, *, apart: bool, summands: int) -> str:
    """Write the kernel of the gradient by each similarity.

    The last leaves are those of `_bisect`, the sum of the weights before each limit, the limits of each row's class, their
    weights, and their number.
    """
    count = len(spec.leaves)
    ordered, half, levels, before, limits, weights, number = (f"leaf{count - 7 + k}" for k in range(7))
    writer, factor = _write_similarity(spec, tiles)
    lines = [*_bisect(ordered, half, levels), f"g = tl.load({before} + place, mask=negative, other=0.0)"]
    if apart:
        lines += [f"for k in range({number}):"]
        for where, inside, spread in (("rows", "here", "[:, None]"), ("columns", "there", "[None, :]")):
            place = f"{where}.to(tl.int64) * {number} + k"
            lines += [
                f"    own_limit = tl.load({limits} + {place}, mask={inside}, other=float('inf')){spread}",
                f"    own_weight = tl.load({weights} + {place}, mask={inside}, other=0.0){spread}",
                "    g = g - tl.where(own_limit < value, own_weight, 0.0)",
            ]
    lines += ["g = tl.where(negative, g, 0.0)"]
    lines += store_gradient(
        [] if factor == "1.0" else [factor], "here[:, None] & there[None, :]", scaled=spec.scaled, summands=summands
    )
    for line in lines:
        writer.line(line)
    return "\n".join([*write_head(spec, tiles, "likewise_weights", branches=True), *writer.lines]) + "\n"


# ------------------------------------------------------------------------------------------------ launching

_KERNELS: dict[Any, list[Kernel]] = {}
"""Compiled kernels, by what they compute and the structure of the link."""


class LimitJob:
    """The comparison of one batch with limits: its kernels, and the arguments of these."""

    def __init__(self, engine: TritonEngine, limits: ClassLimits, classes: Tensor, apart: bool) -> None:
        self.layout, self.limits, self.classes, self.apart = engine.layout, limits, classes, apart
        self.folds = FoldJob(engine, [], engine.bind({}))
        half = len(limits.ordered) // 2
        self.bisection = [limits.ordered, half, half.bit_length()]
        self.row_limits = self.layout.sort_rows(limits.of_class).contiguous()

    def find_kernels(self, kind: str, extra: list[Any], **options: int) -> tuple[list[Kernel], list[Any]]:
        """Return kernels, compiled or from the cache, and the values of their leaves."""
        layout = self.layout
        structure, leaves = find_structure([layout.link])
        scaled = layout.product.scaled
        key = (kind, structure, layout.pairing, layout.ordered, scaled, *options.values())
        if key not in _KERNELS:
            spec = KernelSpec(
                (*leaves, *[Leaf(Number(0.0), "number")] * len(extra)), layout.link, None, layout.pairing, scaled
            )
            write: Any = {"interval": write_interval_kernel, "class": write_class_kernel, "weight": write_weight_kernel}
            kinds = [Tiles.PLAIN, Tiles.MIXED] if layout.ordered else [Tiles.ALL]
            _KERNELS[key] = [compile_source(write[kind](spec, tiles, **options)) for tiles in kinds]
        return _KERNELS[key], [*self.folds.bind_leaves(leaves, self.folds.values), *extra]

    def add_all(self) -> tuple[Tensor, Tensor]:
        """Return the sum, in float64, and the number of the negative pairs above each limit, ``(m · k,)``."""
        operands, ordered = self.layout.operands, self.limits.ordered
        kernels, values = self.find_kernels("interval", [*self.bisection, FIXED_POINT])
        m, n, _ = operands.size
        out = torch.zeros(len(ordered) + 1, 2, dtype=torch.int64, device=ordered.device)
        for kernel in kernels:
            shape = operands.choose_tiles(m, n, SINGLE_SHAPES)
            operands.launch(kernel, shape, [out], (0, m), (0, n), values)
        # a pair and its mirror
        until = 2 * out.cumsum(dim=0)
        sums, numbers = (until[-1] - until[self.limits.rank]).unbind(dim=1)
        return sums.double() / FIXED_POINT, numbers

    def add_classes(self) -> tuple[Tensor, Tensor]:
        """Return the sum of ``[s − limit]₊`` and the number of pairs that contain each limit's class, ``(m · k,)``."""
        operands, number = self.layout.operands, self.row_limits.shape[1]
        kernels, values = self.find_kernels("class", [self.row_limits, number])
        m, n, _ = operands.size
        shape = operands.choose_tiles(m, n, SINGLE_SHAPES)
        columns = shape.columns * max(1, TILE_SUM_BYTES // (8 * number * m))
        total = operands.left.new_zeros(2 * number, m, dtype=torch.float64)
        for first in range(0, n, columns):
            end = min(n, first + columns)
            tiles = total.new_zeros(-(-(end - first) // shape.columns), 2 * number, m, dtype=torch.float32)
            for kernel in kernels:
                operands.launch(kernel, shape, [tiles], (0, m), (first, end), values)
            total += tiles.sum(dim=0, dtype=torch.float64)
        by_row = self.layout.unsort_rows(total.T)  # (m, 2 K), sums and numbers alternating
        # sums of whole numbers do not depend on the order of atomic additions
        fixed = (by_row * FIXED_POINT).long()
        by_class = torch.zeros_like(fixed).index_add_(0, self.classes, fixed)[self.classes]
        width = len(self.limits.place) // len(self.classes)
        place = 2 * self.limits.place.view(-1, width)
        sums, numbers = (2.0 * by_class.gather(1, place + k).double() / FIXED_POINT for k in (0, 1))
        return sums.reshape(-1), numbers.reshape(-1).long()


@dataclass(eq=False)
class _WeightGradients:
    """The gradients by all similarities; see `likewise.engines.triton.layout.GradientWriter`."""

    job: LimitJob
    extra: list[Any]

    @property
    def symmetric(self) -> bool:
        """Whether the gradient of each pair includes that of its mirror."""
        return self.job.folds.symmetric

    def write(self, _by: Formula, rows: tuple[int, int], columns: tuple[int, int], summands: int) -> Tensor:
        """Return the gradient by the similarities of a rectangle: ``(rows, summands, columns)``."""
        operands = self.job.layout.operands
        kernels, values = self.job.find_kernels("weight", self.extra, apart=self.job.apart, summands=summands)
        shape = operands.choose_tiles(rows[1] - rows[0], columns[1] - columns[0], SINGLE_SHAPES)
        return operands.write_gradients(kernels, shape, rows, columns, values, summands=summands)


class _Excess(torch.autograd.Function):
    """The excess of a job's pairs over its limits, as a function of the sources of both factors and of the limits."""

    @staticmethod
    def forward(ctx: Any, job: LimitJob, left: Tensor, right: Tensor, limits: Tensor) -> tuple[Tensor, Tensor]:
        sums, numbers = job.add_all()
        flat = limits.reshape(-1).double()
        excess = torch.where((numbers > 0) | flat.isnan(), sums - numbers * flat, 0.0)
        if job.apart:
            of_class, inside = job.add_classes()
            excess, numbers = excess - of_class, numbers - inside
        numbers = numbers.view_as(limits)
        ctx.job = job
        ctx.mark_non_differentiable(numbers)
        ctx.save_for_backward(left, right, numbers)
        return excess.view_as(limits), numbers

    @staticmethod
    @refuse_second_derivative
    def backward(ctx: Any, grad: Tensor, _numbers: Tensor) -> tuple[Tensor | None, ...]:
        job, (left, _, numbers) = ctx.job, ctx.saved_tensors
        found, flat = job.limits, grad.reshape(-1).double()
        twice = 2.0 if job.folds.symmetric else 1.0
        weights = flat.new_zeros(len(found.ordered)).scatter_(0, found.rank, flat)
        before = torch.nn.functional.pad(weights.cumsum(0), (1, 0)) * twice
        width = len(found.place) // len(job.classes)
        of_class = flat.new_zeros(len(job.classes), found.of_class.shape[1])
        rows = job.classes[:, None].expand(-1, width).reshape(-1)
        of_class.index_put_((rows, found.place), flat * twice)  # each limit has another place
        of_class = job.layout.sort_rows(of_class[job.classes]).float().contiguous()
        number = job.row_limits.shape[1]
        extra = [*job.bisection, before.float(), job.row_limits, of_class, number]
        with full_precision(left):
            writer = _WeightGradients(job, extra)
            by_left, by_right = job.layout.compute_gradients(writer, *ctx.needs_input_grad[1:3])
        return None, by_left, by_right, (-numbers * grad).to(torch.float32)
