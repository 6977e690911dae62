"""The Triton engine: kernels that go from embeddings to folds, and from folds to gradients, without the matrix.

Forward: one kernel for each pass makes the similarities of a tile on the tensor cores and folds them at once; per tile
and row a few numbers are left.  Backward: one kernel makes each tile again and writes the gradient by every similarity
of a panel, however many passes there were, and a matrix product takes it to the embeddings.  No atomic operations: the
same input gives the same bits.

A number that a later pass takes from an earlier one (a fold inside a curve) passes its gradient on by the sum of the
curve's slopes by it, which the forward kernel accumulates beside the fold: so the backward pass needs no pass of its own
for it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from likewise.engines.schedule import Engine, compute_folds
from likewise.engines.triton.once import once
from likewise.engines.triton.operands import Arranged, arrange
from likewise.engines.triton.program import FOLDING, SLOPES, Kernel, Shape, compile_source, join
from likewise.engines.triton.source import Recipe, TileFold, Tiles, forward_source, join_source, slope_source
from likewise.engines.triton.text import Leaf, apart, leaf_of, shape_of
from likewise.engines.triton.tiles import tiled
from likewise.formula import (
    Folded,
    Formula,
    Mined,
    Number,
    PairBatch,
    PerReference,
    Side,
    full_precision,
    ingredients,
    s,
)

PARTIAL = 96 * 2**20
"""Bytes for the numbers that tiles leave before they are joined."""


class TritonEngine(Engine):
    """Folds by generated kernels.

    Examples:
        >>> TritonEngine.__mro__[1].__name__
        'Engine'
    """

    def __init__(self, batch: PairBatch) -> None:
        self.batch = batch
        relation = batch.relation
        self.arranged = arrange(batch)
        self.keep: tuple[Formula, Formula] | None = None
        self.mined: dict[Formula, Tensor] = {}
        if isinstance(relation, Mined):
            # what a fold is before mining, it need not be after it
            positive, negative = apart([relation.keep_positive, relation.keep_negative])
            self.keep = positive, negative
            with torch.no_grad():
                base = TritonEngine.__new__(TritonEngine)
                base.batch, base.arranged = batch.under(relation.base), self.arranged
                base.keep, base.mined = None, {}
                self.mined = compute_folds(list(self.keep), base, base.batch)

    def fold(self, passes: list[list[Folded]], known: dict[Formula, Tensor]) -> dict[Formula, Tensor]:
        """One vector per fold."""
        job = Job(self, passes, {**known, **self.mined, **self.arranged.numbers})
        folds = [term for terms in passes for term in terms]
        learned = job.learned
        left, right = self.arranged.left.source, self.arranged.right.source
        results = _Folds.apply(job, left, right, *[job.values[node] for node in learned])  # type: ignore[no-untyped-call]
        return dict(zip(folds, results, strict=True))


_KERNELS: dict[Any, Any] = {}
"""Compiled kernels, by the shape of what they were generated from."""


@dataclass(eq=False)
class Job:
    """The passes of one stage on one batch: which kernels they need, and what those are given."""

    engine: TritonEngine
    passes: list[list[Folded]]
    values: dict[Formula, Any]
    learned: list[Formula] = field(init=False)
    """Numbers from outside that a gradient goes to."""

    def __post_init__(self) -> None:
        nodes: dict[Formula, None] = {}
        for terms in self.passes:
            for term in terms:
                nodes.update(dict.fromkeys(ingredients(term.curve)))
        for node in nodes:
            if isinstance(node, Number):
                self.values[node] = node.value
        given = [node for node in nodes if node in self.values]
        self.learned = [
            node for node in given if isinstance(self.values[node], Tensor) and self.values[node].requires_grad
        ]
        differentiable = set(self.learned)
        self.terms: list[list[TileFold]] = []
        for terms in self.passes:
            row = []
            for term in terms:
                fold = tiled(term.fold)
                by = tuple(
                    n for n in ingredients(term.curve) if n in differentiable and not isinstance(n, PerReference)
                )
                row.append(TileFold(fold, term.over, term.curve, by if fold.weight_count else ()))
            self.terms.append(row)
            # folds pass a gradient on if one could reach them
            differentiable.update(t for t, r in zip(terms, row, strict=True) if r.fold.weight_count)
        self.exact = torch.is_grad_enabled() and any(term.fold.exact for row in self.terms for term in row)
        manner = self.arranged.manner
        self.symmetric = manner.symmetric and (manner.mirrors or not self.exact)

    @property
    def arranged(self) -> Arranged:
        """The operands."""
        return self.engine.arranged

    # ------------------------------------------------------------------------------------------------ kernels

    def kernels(
        self, kind: str, terms: list[TileFold], options: tuple[Any, ...] = ()
    ) -> tuple[list[Kernel], list[Leaf]]:
        """The kernels for some terms, compiled or remembered, and the leaves that they are to be given."""
        keep, arranged = self.engine.keep, self.arranged
        shape, leaves = shape_of([arranged.bend, *(keep or ()), *[term.curve for term in terms]])
        places = {leaf.node: k for k, leaf in enumerate(leaves)}
        structure = tuple(
            (type(term.fold).__name__, term.over.value, tuple(places[node] for node in term.by)) for term in terms
        )
        said = (places.get(options[0]), *options[1:]) if options else ()
        scaled = arranged.manner.scaled
        key = (kind, shape, structure, arranged.pairing, arranged.ordered, scaled, keep is not None, said)
        if key not in _KERNELS:
            weights = sum(term.fold.weight_count for term in terms) if kind == "slope" else 0
            extra = [Leaf(Number(0.0), "row") for _ in range(weights)]
            recipe = Recipe((*leaves, *extra), arranged.bend, keep, arranged.pairing, scaled)
            _KERNELS[key] = [compile_source(source) for source in _sources(recipe, terms, arranged.ordered, options)]
        return _KERNELS[key], leaves

    def given(self, leaves: list[Leaf], known: dict[Formula, Any]) -> list[Any]:
        """Values for leaves: numbers as they are, tensors in float32 and in the order of the operands."""
        found: list[Any] = []
        for leaf in leaves:
            if leaf.kind == "number":
                assert isinstance(leaf.node, Number)
                found.append(float(leaf.node.value))
                continue
            value: Any = leaf.node.value if isinstance(leaf.node, Number) else known[leaf.node]
            value = value.detach().to(torch.float32)
            if leaf.kind == "row":
                value = self.arranged.sorted_rows(value)
            elif leaf.kind == "column":
                value = self.arranged.sorted_columns(value)
            found.append(value.contiguous())
        return found

    def shape(self, m: int, n: int, table: dict[int, Shape]) -> Shape:
        """How a kernel cuts a rectangle; where bits must agree, forward and back, it cuts as if it were the whole."""
        operands = self.arranged.operands
        if self.exact:
            m, n, _ = operands.size
        return operands.cut(m, n, table)

    # ------------------------------------------------------------------------------------------------ forward

    def fold_pass(self, terms: list[TileFold], known: dict[Formula, Any]) -> Tensor:
        """For each term its state and the sums of slopes, ``(width, m)``, then the finished folds; in the operands' order."""
        operands = self.arranged.operands
        kernels, leaves = self.kernels("fold", terms)
        given = self.given(leaves, known)
        m, n, _ = operands.size
        shape = self.shape(m, n, SLOPES if self.exact else FOLDING)
        width = sum(term.width for term in terms)
        at_once = shape.columns * max(1, PARTIAL // (4 * width * m))
        joining = compile_source(join_source(terms))
        pieces = []
        for first in range(0, n, at_once):
            end = min(n, first + at_once)
            tiles = operands.left.new_empty(-(-(end - first) // shape.columns), width, m, dtype=torch.float32)
            for kernel in kernels:
                operands.launch(kernel, shape, tiles, tiles, (0, m), (first, end), given)
            pieces.append(_joined(joining, terms, tiles))
        if len(pieces) == 1:
            return pieces[0]
        return _joined(joining, terms, torch.stack([piece[:width] for piece in pieces]))

    # ------------------------------------------------------------------------------------------------ backward

    def slopes(self, states: list[list[Tensor]], gradients: list[list[Tensor]], known: dict[Formula, Any]) -> _Slopes:
        """The gradient by every similarity, ready to be written panel by panel."""
        terms = [term for row in self.terms for term in row]
        flat_states = [state for row in states for state in row]
        flat = [gradient for row in gradients for gradient in row]
        weights: list[Tensor] = []
        for term, state, gradient in zip(terms, flat_states, flat, strict=True):
            weights += term.fold.weights(state, gradient)
        return _Slopes(self, terms, [each.contiguous() for each in weights], known)


def _sources(recipe: Recipe, terms: list[TileFold], ordered: bool, options: tuple[Any, ...]) -> list[str]:
    """One kernel for all tiles; or, where labels are in order, one for plain tiles and one for the others."""
    split = [Tiles.PLAIN, Tiles.MIXED] if ordered else [Tiles.ALL]
    if options:
        by, symmetric, rest = options
        return [slope_source(recipe, terms, by, tiles, symmetric=symmetric, split=rest) for tiles in split]
    if ordered and all(term.over is Side.POSITIVES for term in terms):
        return [forward_source(recipe, terms, Tiles.MIXED, alone=True)]
    return [forward_source(recipe, terms, tiles) for tiles in split]


def _joined(kernel: Kernel, terms: list[TileFold], tiles: Tensor) -> Tensor:
    _, width, m = tiles.shape
    joined = tiles.new_empty(width + len(terms), m)
    join(kernel, tiles, joined)
    return joined


@dataclass(eq=False)
class _Slopes:
    job: Job
    terms: list[TileFold]
    weights: list[Tensor]
    known: dict[Formula, Any]
    _ready: dict[tuple[Formula, bool], tuple[list[Kernel], list[Any]]] = field(default_factory=dict)

    @property
    def symmetric(self) -> bool:
        """Whether pairs are written from both their sides."""
        return self.job.symmetric

    def write(self, by: Formula, rows: tuple[int, int], columns: tuple[int, int], split: bool) -> tuple[Tensor, ...]:
        """The gradient by the similarities (or by a number per reference) of a rectangle, in one matrix or two."""
        operands = self.job.arranged.operands
        if (by, split) not in self._ready:  # the same for every panel
            kernels, leaves = self.job.kernels("slope", self.terms, (by, self.symmetric and by is s, split))
            self._ready[by, split] = kernels, [*self.job.given(leaves, self.known), *self.weights]
        kernels, given = self._ready[by, split]
        shape = self.job.shape(rows[1] - rows[0], columns[1] - columns[0], SLOPES)
        # what goes into a product may be rounded, what is only added up may not
        return operands.slopes(kernels, shape, rows, columns, given, split=split, rounded=by is s)


class _Folds(torch.autograd.Function):
    """All folds of a stage, as a function of the factors and of the numbers that are learned."""

    @staticmethod
    def forward(ctx: Any, job: Job, left: Tensor, right: Tensor, *learned: Tensor) -> tuple[Tensor, ...]:
        arranged = job.arranged
        known = dict(job.values)
        known.update(zip(job.learned, learned, strict=True))
        states, sums, outputs = [], [], []
        for folds, terms in zip(job.passes, job.terms, strict=True):
            joined = job.fold_pass(terms, known)
            pieces = iter(torch.split(joined[: -len(terms)], [n for t in terms for n in (t.fold.width, len(t.by))]))
            pairs = [(next(pieces), next(pieces)) for _ in terms]
            states.append([state for state, _ in pairs])
            sums.append([by_leaf for _, by_leaf in pairs])
            for fold, term, finished in zip(folds, terms, joined[-len(terms) :], strict=True):
                value = arranged.unsorted_rows(finished)
                # another tensor: an output that its own graph holds would never be freed
                known[fold] = value.detach()
                if not term.fold.weight_count:
                    value = value.to(torch.int64)
                    ctx.mark_non_differentiable(value)
                outputs.append(value.clone() if value is finished else value)
        ctx.job, ctx.known, ctx.states, ctx.sums = job, known, states, sums
        ctx.save_for_backward(left, right, *learned)  # so that torch notices if somebody changes them
        ctx.set_materialize_grads(False)
        return tuple(outputs)

    @staticmethod
    @once
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        job: Job = ctx.job
        left, *_ = ctx.saved_tensors
        with full_precision(left):
            return _backward(ctx, job, gradients)


def _backward(ctx: Any, job: Job, gradients: tuple[Tensor | None, ...]) -> tuple[Tensor | None, ...]:
    """From the folds' gradients to those of the factors and of what is learned."""
    arranged = job.arranged
    m = arranged.operands.size[0]
    pending = iter(gradients)
    nodes: dict[Formula, Tensor] = {}
    for folds in job.passes:
        for fold in folds:
            gradient = next(pending)
            zero = arranged.operands.left.new_zeros(m, dtype=torch.float32)
            nodes[fold] = zero if gradient is None else arranged.sorted_rows(gradient.to(torch.float32))
    found: dict[Formula, Tensor] = {}
    for folds, terms, states, sums in reversed(list(zip(job.passes, job.terms, ctx.states, ctx.sums, strict=True))):
        for fold, term, state, by_leaf in zip(folds, terms, states, sums, strict=True):
            divisor = term.fold.divisor(state)
            for leaf, of_leaf in zip(term.by, by_leaf, strict=True):
                passed = nodes[fold] * of_leaf / divisor
                target = nodes if leaf in nodes else found
                target[leaf] = target[leaf] + passed if leaf in target else passed
    slopes = job.slopes(ctx.states, [[nodes[fold] for fold in folds] for folds in job.passes], ctx.known)
    by_left, by_right = arranged.gradients(slopes, ctx.needs_input_grad[1], ctx.needs_input_grad[2])
    return (None, by_left, by_right, *[_of_learned(node, found, slopes, job) for node in job.learned])


def _of_learned(node: Formula, found: dict[Formula, Tensor], slopes: _Slopes, job: Job) -> Tensor | None:
    """The gradient of a number from outside: per anchor, for the batch, or per reference."""
    value: Tensor = job.values[node]
    if isinstance(node, PerReference):
        return job.arranged.by_column(slopes, node).to(value.dtype)
    gradient = found.get(node)
    if gradient is None:
        return None
    leaf = leaf_of(node)
    assert leaf is not None
    if leaf.kind == "row":
        return job.arranged.unsorted_rows(gradient).to(value.dtype)
    return gradient.sum().to(value.dtype)
