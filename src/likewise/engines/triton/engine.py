"""The Triton engine: kernels that compute folds from embeddings, and gradients from folds, without storing the matrix.

Forward: one kernel per pass computes the similarities of a tile on the tensor cores and folds them; it stores a few numbers
per tile and row.  Backward: one kernel recomputes each tile and writes the gradients by the similarities of a chunk, of all
passes at once, and a matrix product turns them into gradients of the embeddings.  There are no atomic operations: the same
input gives the same bits.

Numbers per pair are the exception: kernels read them from a matrix, and their gradient is a matrix, also if they are
part of a miner's condition.

A pass may use the value of an earlier fold inside a curve.  The gradient of that value is the sum of the curve's
derivatives by it, which the forward kernel accumulates together with the fold, so that the backward pass does not need
another kernel.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from likewise.engines.pair_numbers import PairNumbers
from likewise.engines.schedule import Engine, compute_folds
from likewise.engines.triton.folds import find_template
from likewise.engines.triton.join_source import write_join_kernel
from likewise.engines.triton.kernel_source import (
    TileFold,
    write_fold_kernel,
    write_gradient_kernel,
)
from likewise.engines.triton.kernels import (
    ALL_REGISTERS_WARPS,
    FOLD_SHAPES,
    GRADIENT_SHAPES,
    POOLED_SHAPES,
    SQUARE_SHAPES,
    Kernel,
    Shapes,
    TileShape,
    compile_source,
    join_tiles,
)
from likewise.engines.triton.layout import Layout, lay_out
from likewise.engines.triton.printer import Leaf, as_leaf, copy_folds, find_structure
from likewise.engines.triton.second_derivatives import refuse_second_derivative
from likewise.engines.triton.tile_source import KernelSpec, Tiles
from likewise.formula import (
    Folded,
    Formula,
    Mined,
    Number,
    PairBatch,
    PerPair,
    PerReference,
    Side,
    TableUse,
    full_precision,
    ingredients,
    s,
)

TILE_STATE_BYTES = 96 * 2**20
"""Bytes for the states of tiles before they are joined."""

MOST_SHARED_TERMS = 5
"""Folds up to which two programs share the registers of a multiprocessor; the gradients of more folds need more registers."""

TRIANGLE_STATE_BYTES = 256 * 2**20
"""The same where each tile is computed for two: more states for half of the products."""


class TritonEngine(Engine):
    """Compute folds by generated kernels.

    Examples:
        >>> TritonEngine.__mro__[1].__name__
        'Engine'
    """

    def __init__(self, batch: PairBatch) -> None:
        self.batch = batch
        relation = batch.relation
        self.layout = lay_out(batch)
        self.keep: tuple[Formula, Formula] | None = None
        self.mined_values: dict[Formula, Any] = {}
        self.matrices: dict[Formula, Tensor] = {}  # of numbers per pair
        if isinstance(relation, Mined):
            # a fold has another value before mining than after it
            positive, negative = copy_folds([relation.keep_positive, relation.keep_negative])
            self.keep = positive, negative
            with torch.no_grad():
                base = TritonEngine.__new__(TritonEngine)
                base.batch, base.layout = batch.under(relation.base), self.layout
                base.keep, base.mined_values, base.matrices = None, {}, self.matrices
                self.mined_values = compute_folds(list(self.keep), base, base.batch)

    def fold(self, passes: list[list[Folded]], known: dict[Formula, Any]) -> dict[Formula, Tensor]:
        """Compute one vector per fold."""
        # the gradient of a table is passed on in its own order, and only if the table itself is the factor
        is_factor = self.batch.table == "references" and self.layout.right.source is self.batch.references
        use = self.batch.use_table() if is_factor else None
        job = FoldJob(self, passes, self.bind(known), use)
        folds = [term for terms in passes for term in terms]
        learned = job.learned
        left, right = self.layout.left.source, self.layout.right.source
        results = _Folds.apply(job, left, right, *[job.values[node] for node in learned])  # type: ignore[no-untyped-call]
        return dict(zip(folds, results, strict=True))

    def bind(self, known: dict[Formula, Any]) -> dict[Formula, Any]:
        """Return known values with those of the miner and the similarity, and numbers per pair as matrices."""
        values = {**known, **self.mined_values, **self.layout.link_values}
        for node, value in values.items():
            if isinstance(value, PairNumbers):
                values[node] = self._store(node, value)
        return values

    def _store(self, node: Formula, numbers: PairNumbers) -> Tensor:
        """Return the matrix of a number per pair, which is computed once."""
        if node not in self.matrices:
            m, n = self.batch.shape
            self.matrices[node] = numbers.chunk(m, slice(0, n))
        return self.matrices[node]


_KERNELS: dict[Any, Any] = {}
"""Compiled kernels, by the structure of the formulas that they were generated from."""


@dataclass(eq=False)
class FoldJob:
    """The folds of some passes on one batch: their kernels, and the arguments of these."""

    engine: TritonEngine
    passes: list[list[Folded]]
    values: dict[Formula, Any]
    use: TableUse | None = None
    """Receives the gradient of the table in chunks."""
    learned: list[Formula] = field(init=False)
    """Leaves that need a gradient."""

    def __post_init__(self) -> None:
        nodes: dict[Formula, None] = {}
        for terms in self.passes:
            for term in terms:
                nodes.update(dict.fromkeys(ingredients(term.curve)))
        for node in nodes:
            if isinstance(node, Number):
                self.values[node] = node.value
        self.learned = [
            node for node in nodes if isinstance(self.values.get(node), Tensor) and self.values[node].requires_grad
        ]
        differentiable = set(self.learned)
        self.terms: list[list[TileFold]] = []
        for terms in self.passes:
            row = []
            for term in terms:
                fold = find_template(term.fold)
                by = tuple(
                    n
                    for n in ingredients(term.curve)
                    if n in differentiable and not isinstance(n, PerReference | PerPair)
                )
                row.append(TileFold(fold, term.over, term.curve, by if fold.weight_count else ()))
            self.terms.append(row)
            # later passes pass gradients on to these folds
            differentiable.update(t for t, r in zip(terms, row, strict=True) if r.fold.weight_count)
        self.exact = torch.is_grad_enabled() and any(term.fold.exact for row in self.terms for term in row)
        product = self.layout.product
        symmetric = product.symmetric and (product.is_bitwise_symmetric or not self.exact)
        # a number per pair has no mirror
        self.symmetric = symmetric and not self.engine.matrices

    @property
    def layout(self) -> Layout:
        """The batch in the form that kernels read."""
        return self.engine.layout

    # ------------------------------------------------------------------------------------------------ kernels

    def find_kernels(
        self, kind: str, terms: list[TileFold], options: tuple[Any, ...] = ()
    ) -> tuple[list[Kernel], list[Leaf]]:
        """Return the kernels of some terms, compiled or from the cache, and their leaves."""
        keep, layout = self.engine.keep, self.layout
        pool = layout.pool
        numbers = () if pool is None else pool.numbers
        structure, leaves = find_structure([layout.link, *(keep or ()), *[term.curve for term in terms], *numbers])
        positions = {leaf.node: k for k, leaf in enumerate(leaves)}
        folds = tuple(
            (type(term.fold).__name__, term.over.value, tuple(positions[node] for node in term.by)) for term in terms
        )
        option_key = (positions.get(options[0]), *options[1:]) if options else ()
        scaled = layout.product.scaled
        pool_key = None if pool is None else (pool.name, pool.centers)
        key = (kind, structure, folds, layout.pairing, layout.ordered, scaled, keep is not None, pool_key, option_key)
        if key not in _KERNELS:
            weights = sum(term.fold.weight_count for term in terms) if kind == "gradient" else 0
            extra = [Leaf(Number(0.0), "row") for _ in range(weights)]
            spec = KernelSpec((*leaves, *extra), layout.link, keep, layout.pairing, scaled, pool)
            sources = _write_sources(kind, spec, terms, layout.ordered, options)
            _KERNELS[key] = [compile_source(source) for source in sources]
        return _KERNELS[key], leaves

    def bind_leaves(self, leaves: list[Leaf], known: dict[Formula, Any]) -> list[Any]:
        """Return the values of leaves: numbers as they are, tensors in float32 and in the order of the operands."""
        values: list[Any] = []
        for leaf in leaves:
            if leaf.kind == "number":
                assert isinstance(leaf.node, Number)
                values.append(float(leaf.node.value))
                continue
            value: Any = leaf.node.value if isinstance(leaf.node, Number) else known[leaf.node]
            value = value.detach().to(torch.float32)
            if leaf.kind == "row":
                value = self.layout.sort_rows(value)
            elif leaf.kind == "column":
                value = self.layout.sort_columns(value)
            elif leaf.kind == "pair":
                value = self.layout.sort_pairs(value)
            values.append(value.contiguous())
        return values

    def cut_leaves(self, leaves: list[Leaf], values: list[Any], shift: int) -> list[Any]:
        """Return the values of leaves from `bind_leaves` for kernels that number columns from ``shift``."""
        if not shift:
            return values
        starts = {"column": (slice(shift, None),), "pair": (slice(None), slice(shift, None))}
        return [
            value[starts[leaf.kind]] if leaf.kind in starts else value
            for leaf, value in zip(leaves, values, strict=False)
        ] + values[len(leaves) :]

    def choose_tiles(self, m: int, n: int, shapes: Shapes) -> TileShape:
        """Choose the tiles of a rectangle; for exact folds those of the whole matrix, so that both passes have the same bits."""
        operands = self.layout.operands
        shapes = shapes if self.layout.pool is None else POOLED_SHAPES
        if self.exact:
            m, n, _ = operands.size
        shape = operands.choose_tiles(m, n, shapes)
        if shape.programs == 1 or sum(map(len, self.terms)) <= MOST_SHARED_TERMS:
            return shape
        return replace(shape, programs=1, chunks=1, warps=ALL_REGISTERS_WARPS)

    # ------------------------------------------------------------------------------------------------ forward

    def is_triangular(self, terms: list[TileFold], shape: TileShape) -> bool:
        """Whether the tiles on and above the diagonal suffice: each also has the pairs of its mirror.

        The states of all tiles are in memory at once.  A fold that compares values bit by bit needs products that do not
        depend on the side.
        """
        product, m = self.layout.product, self.layout.operands.size[0]
        same_bits = product.is_bitwise_symmetric or not any(term.fold.exact for term in terms)
        states = 4 * sum(term.width for term in terms) * m * -(-m // shape.columns)
        return self.symmetric and same_bits and shape.rows == shape.columns and states <= TRIANGLE_STATE_BYTES

    def fold_pass(self, terms: list[TileFold], known: dict[Formula, Any]) -> Tensor:
        """Return states and sums of derivatives ``(width, m)``, then the folds' values, in the order of the operands."""
        operands = self.layout.operands
        m, n, _ = operands.size
        width = sum(term.width for term in terms)
        shape = self.choose_tiles(m, n, SQUARE_SHAPES)
        triangular = self.is_triangular(terms, shape)
        if not (triangular or self.exact):
            shape = self.choose_tiles(m, n, FOLD_SHAPES)
        kernels, leaves = self.find_kernels("triangle" if triangular else "fold", terms)
        values = self.bind_leaves(leaves, known)
        most = min(shape.columns * (TILE_STATE_BYTES // (4 * width * m)), self.layout.most_columns)
        columns = n if triangular else shape.columns * max(1, most // shape.columns)
        join_kernel = compile_source(write_join_kernel(terms))
        chunks = []
        for first in range(0, n, columns):
            end = min(n, first + columns)
            tiles = operands.left.new_empty(-(-(end - first) // shape.columns), width, m, dtype=torch.float32)
            if self.layout.ordered and _folds_positives_only(terms):  # plain tiles are not visited
                _fill_states(tiles, terms)
            some, place = self.layout.columns(first, end)
            cut = self.cut_leaves(leaves, values, first - place)
            for kernel in kernels:
                some.launch(kernel, shape, [tiles], (0, m), (place, place + end - first), cut)
            chunks.append(join_tiles(join_kernel, tiles, width + len(terms)))
        return chunks[0] if len(chunks) == 1 else join_tiles(join_kernel, torch.stack(chunks), width + len(terms))

    # ------------------------------------------------------------------------------------------------ backward

    def differentiate(
        self, states: list[list[Tensor]], gradients: list[list[Tensor]], known: dict[Formula, Any]
    ) -> _FoldGradients:
        """Return the gradients by all similarities, as a writer of chunks."""
        terms = [term for row in self.terms for term in row]
        flat_states = [state for row in states for state in row]
        flat = [gradient for row in gradients for gradient in row]
        weights: list[Tensor] = []
        for term, state, gradient in zip(terms, flat_states, flat, strict=True):
            weights += term.fold.weights(state, gradient)
        return _FoldGradients(self, terms, [each.contiguous() for each in weights], known)


def _write_sources(
    kind: str, spec: KernelSpec, terms: list[TileFold], ordered: bool, options: tuple[Any, ...]
) -> list[str]:
    """Write one kernel for all tiles; or, if labels are sorted, one for plain tiles and one for the others."""
    kinds, triangular = [Tiles.PLAIN, Tiles.MIXED] if ordered else [Tiles.ALL], kind == "triangle"
    if options:
        by, symmetric, summands = options
        return [
            write_gradient_kernel(spec, terms, by, tiles, symmetric=symmetric, summands=summands) for tiles in kinds
        ]
    if ordered and _folds_positives_only(terms):
        kinds = [Tiles.MIXED]
    return [write_fold_kernel(spec, terms, tiles, triangular=triangular) for tiles in kinds]


def _folds_positives_only(terms: list[TileFold]) -> bool:
    return all(term.over is Side.POSITIVES for term in terms)


def _fill_states(tiles: Tensor, terms: list[TileFold]) -> None:
    """Fill the states of tiles, ``(tiles, width, m)``, with those of rows without pairs."""
    for k, number in enumerate(number for term in terms for number in term.identity):
        tiles[:, k] = number


@dataclass(eq=False)
class _FoldGradients:
    """The gradients by all similarities; see `likewise.engines.triton.layout.GradientWriter`."""

    job: FoldJob
    terms: list[TileFold]
    weights: list[Tensor]
    known: dict[Formula, Any]
    _bound: dict[tuple[Formula, int], tuple[list[Kernel], list[Leaf], list[Any]]] = field(default_factory=dict)

    @property
    def symmetric(self) -> bool:
        """Whether the gradient of each pair includes that of its mirror."""
        return self.job.symmetric

    def write(self, by: Formula, rows: tuple[int, int], columns: tuple[int, int], summands: int) -> Tensor:
        """Return the gradient by the similarities (or by another leaf) of a rectangle: ``(rows, summands, columns)``."""
        if (by, summands) not in self._bound:  # the same for every chunk
            kernels, leaves = self.job.find_kernels("gradient", self.terms, (by, self.symmetric and by is s, summands))
            self._bound[by, summands] = kernels, leaves, [*self.job.bind_leaves(leaves, self.known), *self.weights]
        kernels, leaves, values = self._bound[by, summands]
        operands, place = self.job.layout.columns(*columns)
        values = self.job.cut_leaves(leaves, values, columns[0] - place)
        shape = self.job.choose_tiles(rows[1] - rows[0], columns[1] - columns[0], GRADIENT_SHAPES)
        # gradients that enter a product may be rounded, those that are only summed may not
        columns = (place, place + columns[1] - columns[0])
        centers = self.job.layout.centers if by is s else 1
        return operands.write_gradients(
            kernels, shape, rows, columns, values, summands=summands, rounded=by is s, centers=centers
        )


class _Folds(torch.autograd.Function):
    """The folds of a job, as a function of the sources of both factors and of the learned leaves."""

    @staticmethod
    def forward(ctx: Any, job: FoldJob, left: Tensor, right: Tensor, *learned: Tensor) -> tuple[Tensor, ...]:
        layout = job.layout
        known = dict(job.values)
        known.update(zip(job.learned, learned, strict=True))
        states, sums, outputs = [], [], []
        for folds, terms in zip(job.passes, job.terms, strict=True):
            joined = job.fold_pass(terms, known)
            vectors = iter(torch.split(joined[: -len(terms)], [n for t in terms for n in (t.fold.width, len(t.by))]))
            pairs = [(next(vectors), next(vectors)) for _ in terms]
            states.append([state for state, _ in pairs])
            sums.append([leaf_sums for _, leaf_sums in pairs])
            for fold, term, result in zip(folds, terms, joined[-len(terms) :], strict=True):
                value = layout.unsort_rows(result)
                # detached, because an output that its own graph holds would never be freed
                known[fold] = value.detach()
                if not term.fold.weight_count:
                    value = value.to(torch.int64)
                    ctx.mark_non_differentiable(value)
                outputs.append(value.clone() if value is result else value)
        ctx.job, ctx.known, ctx.states, ctx.sums = job, known, states, sums
        ctx.save_for_backward(left, right, *learned)  # torch raises an error if these are changed in place
        ctx.set_materialize_grads(False)
        return tuple(outputs)

    @staticmethod
    @refuse_second_derivative
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        job: FoldJob = ctx.job
        left, *_ = ctx.saved_tensors
        with full_precision(left):
            return _backward(ctx, job, gradients)


def _backward(ctx: Any, job: FoldJob, gradients: tuple[Tensor | None, ...]) -> tuple[Tensor | None, ...]:
    """Compute the gradients by the sources of both factors and by learned leaves from those by the folds."""
    layout = job.layout
    m = layout.operands.size[0]
    incoming = iter(gradients)
    by_fold: dict[Formula, Tensor] = {}
    for folds in job.passes:
        for fold in folds:
            gradient = next(incoming)
            zero = layout.operands.left.new_zeros(m, dtype=torch.float32)
            by_fold[fold] = zero if gradient is None else layout.sort_rows(gradient.to(torch.float32))
    by_leaf: dict[Formula, Tensor] = {}
    for folds, terms, states, sums in reversed(list(zip(job.passes, job.terms, ctx.states, ctx.sums, strict=True))):
        for fold, term, state, leaf_sums in zip(folds, terms, states, sums, strict=True):
            divisor = term.fold.divisor(state)
            for leaf, leaf_sum in zip(term.by, leaf_sums, strict=True):
                gradient = by_fold[fold] * leaf_sum / divisor
                target = by_fold if leaf in by_fold else by_leaf
                target[leaf] = target[leaf] + gradient if leaf in target else gradient
    writer = job.differentiate(ctx.states, [[by_fold[fold] for fold in folds] for folds in job.passes], ctx.known)
    leaves = [_finish_leaf(node, by_leaf, writer, job) for node in job.learned]  # before the table may be updated
    by_left, by_right = layout.compute_gradients(writer, ctx.needs_input_grad[1], ctx.needs_input_grad[2], job.use)
    return (None, by_left, by_right, *leaves)


def _finish_leaf(node: Formula, by_leaf: dict[Formula, Tensor], writer: _FoldGradients, job: FoldJob) -> Tensor | None:
    """Return the gradient by a learned leaf: per anchor, for the batch, per reference, or per pair."""
    value: Tensor = job.values[node]
    if isinstance(node, PerPair):
        return job.layout.compute_pair_gradient(writer, node).to(value.dtype)
    if isinstance(node, PerReference):
        return job.layout.compute_column_gradient(writer, node).to(value.dtype)
    gradient = by_leaf.get(node)
    if gradient is None:
        return None
    leaf = as_leaf(node)
    assert leaf is not None
    if leaf.kind == "row":
        return job.layout.unsort_rows(gradient).to(value.dtype)
    return gradient.sum().to(value.dtype)
