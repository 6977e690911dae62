"""A whole loss in one function, for batches so small that launching kernels is all they cost.

From embeddings to the number: unit length, folds, the loss and the weights of its gradient are one kernel each, and so is
each step back.  Nothing per anchor goes through autograd: the slopes of the loss by its folds are formulas too.  What is
done here is what `passes.run` and `reduce` do, for losses without numbers from outside (a learned temperature, a
boundary for each class, a mean over the batch); those take the longer way.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import Any

import torch
import triton
from torch import Tensor

from likewise.backends.fused.once import once
from likewise.backends.fused.operands import SORT_FROM, Arranged, arrange
from likewise.backends.fused.program import FOLDING, SLOPES, Launcher, Operands, compile_source, join
from likewise.backends.fused.source import Recipe, Term, Tiles, forward_source, join_source, slope_source, state_names
from likewise.backends.fused.text import Leaf, Writer, apart, shape_of
from likewise.backends.fused.tiles import TILED, tiled
from likewise.backends.passes import schedule
from likewise.core.formula import Folded, Formula, Number, ingredients, s, slope, walk
from likewise.core.problem import Problem
from likewise.core.relation import Labels, Mined
from likewise.core.spec import Part, Reduction
from likewise.core.spread import ALONE

UP_TO = 4096
"""Anchors up to which one program adds them up."""

INDENT = "    "

_PLANS: dict[Any, Plan | None] = {}
_SHAPES: weakref.WeakKeyDictionary[Part, dict[Any, Any]] = weakref.WeakKeyDictionary()
"""The shape of a declaration, which a loss keeps from call to call."""


def whole(parts: list[Part], problem: Problem, reduction: Reduction) -> Tensor | None:
    """The loss as a number, or ``None`` where it must take the longer way."""
    relation = problem.relation
    base = relation.base if isinstance(relation, Mined) else relation
    if not isinstance(base, Labels) or reduction == "none":
        return None
    m, n = problem.shape
    if m > UP_TO or m * n >= SORT_FROM or problem.spread is not ALONE or problem.shards is not ALONE:
        return None
    keep = (relation.keep_positive, relation.keep_negative) if isinstance(relation, Mined) else ()
    roots, shape, leaves = _described(parts, reduction)
    conditions, more = shape_of(list(keep), deep=True) if keep else ((), [])
    # a number that loss and miner share is one argument of a kernel, where others have two
    places = {leaf.node: place for place, leaf in enumerate(leaves)} if more else {}
    key: tuple[Any, ...] = (shape, conditions, tuple([places.get(leaf.node) for leaf in more]), reduction)
    if key not in _PLANS:
        _PLANS[key] = _possible(roots, keep)
    if _PLANS[key] is None:
        return None
    arranged = arrange(problem)
    operands = arranged.operands
    bend = (type(problem.similarity), arranged.bend is s)
    same = arranged.symmetric and arranged.mirrors
    key = (
        *key,
        len(parts),
        arranged.pairing,
        operands.scale is not None,
        arranged.symmetric,
        same,
        arranged.split,
        bend,
    )
    plan = _PLANS.get(key)
    if plan is None:
        plan = _PLANS[key] = make_plan(parts, roots, keep, [*leaves, *more], arranged)
    # numbers of this call, for the places that they have in the plan
    numbers = dict(zip(plan.places, [leaf.node for leaf in (*leaves, *more)], strict=True))
    known = dict(zip(plan.bent, arranged.numbers.values(), strict=True))
    sources = arranged.left.source, arranged.right.source
    return _Whole.apply(plan, arranged, numbers, known, *sources)  # type: ignore[no-any-return, no-untyped-call]


def _described(parts: list[Part], reduction: Reduction) -> tuple[list[Formula], Any, list[Leaf]]:
    remembered, others = _SHAPES.setdefault(parts[0], {}), parts[1:]
    # a loss may make its other parts anew at each call
    if reduction not in remembered or remembered[reduction][0] != others:
        counts = [] if reduction == "sum" else [part.units if reduction == "mean" else part.nonzero for part in parts]
        roots = [*[part.total for part in parts], *counts]
        remembered[reduction] = others, roots, *shape_of(roots, deep=True)
    _, roots, shape, leaves = remembered[reduction]
    return roots, shape, leaves


def _possible(roots: list[Formula], keep: Any) -> Any:
    """Something, if a loss needs nothing but folds that kernels know; ``None`` if it needs numbers from outside."""
    if any(isinstance(node, Folded) and type(node.fold) not in TILED for node in walk(*roots, *keep)):
        return None
    for formulas in (roots, list(keep)):
        stages = schedule(formulas)
        if len(stages) > 1 or stages[0].numbers:
            return None
    leaves = shape_of([*roots, *keep], deep=True)[1]
    return None if any(leaf.kind != "number" for leaf in leaves) else True


@dataclass(eq=False)
class Kernel:
    """A kernel of a plan, and what it is given beside the operands.

    Args:
        compiled: the kernel.
        leaves: numbers of the host as they are; everything else by its place among the vectors of the plan.
    """

    compiled: Launcher
    leaves: list[Leaf]


@dataclass(eq=False)
class Plan:
    """The kernels of a loss, in the order in which they run.

    Args:
        folds: for each pass a kernel that folds tiles, one that joins them, its terms and its folds.
        mining: how many of the passes are the miner's.
        combine: the loss, and the weights of its gradient.
        slopes: the gradient by the similarities.
        weights: how many numbers per anchor that needs.
        places: the numbers that the plan was made with, which those of a call take the places of.
        bent: the numbers of the similarity's formula, likewise.
        symmetric: slopes have each pair's gradient from both its sides.
        exact: bits must agree, forward and back.
    """

    folds: list[tuple[Kernel, Kernel, list[Term], list[Folded]]]
    mining: int
    combine: Kernel
    slopes: Kernel
    weights: int
    places: list[Formula]
    bent: list[Formula]
    symmetric: bool
    exact: bool


def make_plan(parts: list[Part], roots: list[Formula], keep: Any, leaves: list[Leaf], arranged: Arranged) -> Plan:
    """Generate everything that a loss needs."""
    keep = apart(keep)  # what a fold is before mining, it need not be after it
    stages, mining = schedule(roots), schedule(list(keep))
    places = [leaf.node for leaf in leaves]
    scaled = arranged.operands.scale is not None
    folds = []
    for own, passes in ((False, mining[0].passes), (True, stages[0].passes)):
        differentiable: set[Formula] = set()
        for each in passes:
            terms = []
            for fold in each:
                kind = tiled(fold.fold)
                by = tuple(node for node in ingredients(fold.curve) if node in differentiable)
                terms.append(Term(kind, fold.over, fold.curve, by if kind.weight_count and own else ()))
            differentiable.update(each)
            conditions = keep if own and keep else None
            _, leaves = shape_of([arranged.bend, *(conditions or ()), *[term.curve for term in terms]])
            recipe = Recipe(tuple(leaves), arranged.bend, conditions, arranged.pairing, scaled)
            folding = Kernel(compile_source(forward_source(recipe, terms, Tiles.ALL)), leaves)
            folds.append((folding, Kernel(compile_source(join_source(terms)), []), terms, each))
    main = folds[len(mining[0].passes) :]
    terms = [term for _, _, row, _ in main for term in row]
    _, leaves = shape_of([arranged.bend, *keep, *[term.curve for term in terms]])
    weights = sum(term.fold.weight_count for term in terms)
    extra = [Leaf(Number(0.0), "row") for _ in range(weights)]
    recipe = Recipe((*leaves, *extra), arranged.bend, keep or None, arranged.pairing, scaled)
    exact = any(term.fold.exact for term in terms)
    symmetric = arranged.symmetric and (arranged.mirrors or not exact)
    source = slope_source(recipe, terms, s, Tiles.ALL, symmetric=symmetric, split=arranged.split)
    return Plan(
        folds, len(folds) - len(main), _combine(parts, roots, main), Kernel(compile_source(source), leaves), weights,
        places, list(arranged.numbers), symmetric, exact,
    )  # fmt: skip


# ------------------------------------------------------------------------------------------------ sources


def _combine(
    parts: list[Part], roots: list[Formula], passes: list[tuple[Any, Any, list[Term], list[Folded]]]
) -> Kernel:
    """The kernel of what stands between folds and loss: the number, and the weights of the gradient by every fold."""
    numbers = [leaf for leaf in shape_of(roots)[1] if leaf.kind == "number"]
    arguments = "".join(f", joined{k}" for k in range(len(passes))) + "".join(f", leaf{k}" for k in range(len(numbers)))
    lines = ["@triton.jit", f"def kernel(value, weights, m{arguments}, ROWS: tl.constexpr):"]
    names: dict[Formula, str] = {leaf.node: f"leaf{k}" for k, leaf in enumerate(numbers)}
    states: list[list[list[str]]] = []
    loads = []
    for k, (_, _, terms, folds) in enumerate(passes):
        states.append(state_names(terms, f"p{k}t"))
        flat = [name for row in states[-1] for name in row]
        finished = [f"p{k}f{i}" for i in range(len(terms))]
        names.update(dict(zip(folds, finished, strict=True)))
        loads += [
            f"{name} = tl.load(joined{k} + {i} * m + rows, mask=here, other=0.0)"
            for i, name in enumerate([*flat, *finished])
        ]
    head = ["rows = first + tl.arange(0, ROWS)", "here = rows < m", *loads]
    sums = [f"sum{k}" for k in range(len(roots))]
    lines += [f"    {name} = tl.zeros([1], tl.float64)" for name in sums]
    lines.append("    for first in range(0, m, ROWS):")
    writer = Writer(names, INDENT * 2, "v")
    writer.lines += [INDENT * 2 + line for line in head]
    for name, root in zip(sums, roots, strict=True):
        entry = writer.write(f"tl.zeros([ROWS], tl.float32) + {writer.value(root)}")
        writer.line(f"{name} = {name} + tl.sum(tl.where(here, {entry}, 0.0).to(tl.float64), axis=0)")
    lines += writer.lines
    for k in range(len(parts)):
        share = (
            f"1.0 / tl.maximum(sum{len(parts) + k}, 1.0)"
            if len(roots) > len(parts)
            else "tl.full([1], 1.0, tl.float64)"
        )
        lines.append(f"    share{k} = {share}")
    total = " + ".join(f"sum{k} * share{k}" for k in range(len(parts)))
    lines.append(f"    tl.store(value + tl.arange(0, 1), ({total}).to(tl.float32))")
    lines += _weight_lines(parts, passes, states, names, head)
    return Kernel(compile_source("\n".join(lines) + "\n"), numbers)


def _weight_lines(
    parts: list[Part], passes: list[Any], states: list[list[list[str]]], names: dict[Formula, str], head: list[str]
) -> list[str]:
    """The second walk over the anchors: the slope by each fold, passed on to the folds inside its curve."""
    writer = Writer(names, INDENT * 2, "w")
    writer.lines += [INDENT * 2 + line for line in head]
    passed: dict[Formula, list[str]] = {}
    stores: list[tuple[int, int, list[str]]] = []
    for k in reversed(range(len(passes))):
        _, _, terms, folds = passes[k]
        for t, (term, fold) in enumerate(zip(terms, folds, strict=True)):
            if not term.fold.weight_count:
                continue
            pieces = list(passed.get(fold, []))
            for p, part in enumerate(parts):
                change = slope(part.total, fold)
                if not (isinstance(change, Number) and change.value == 0.0):
                    pieces.append(f"{writer.value(change)} * share{p}.to(tl.float32)")
            gradient = writer.write(" + ".join(pieces) or "0.0 * here.to(tl.float32)")
            state, sums = states[k][t][: term.fold.width], states[k][t][term.fold.width :]
            for leaf, of_leaf in zip(term.by, sums, strict=True):
                passed.setdefault(leaf, []).append(f"{gradient} * {of_leaf} / {term.fold.parts(state)}")
            stores.append((k, t, [writer.write(text) for text in term.fold.weighted(state, gradient)]))
    flat = [name for _, _, group in sorted(stores, key=lambda entry: entry[:2]) for name in group]
    for k, name in enumerate(flat):
        writer.line(f"tl.store(weights + {k} * m + rows, {name}, mask=here)")
    return ["    for first in range(0, m, ROWS):", *writer.lines]


# ------------------------------------------------------------------------------------------------ running


class _Whole(torch.autograd.Function):
    """The loss as a function of the two factors."""

    @staticmethod
    def forward(
        ctx: Any,
        plan: Plan,
        arranged: Arranged,
        numbers: dict[Formula, Formula],
        known: dict[Formula, Tensor],
        left: Tensor,
        right: Tensor,
    ) -> Tensor:
        operands = arranged.operands
        m, n = len(operands.left), len(operands.right)
        table = SLOPES if plan.exact else FOLDING
        shape = operands.cut(m, n, table)
        count = triton.cdiv(n, shape.columns)
        joined_states = []
        for folding, joining, terms, folds in plan.folds:
            width = sum(term.width for term in terms)
            buffer = left.new_empty(count * width * m + (width + len(terms)) * m, dtype=torch.float32)
            tiles, joined = buffer[: count * width * m].view(count, width, m), buffer[count * width * m :].view(-1, m)
            operands.launch(folding.compiled, shape, tiles, tiles, (0, m), (0, n), _given(folding, known, numbers))
            join(joining.compiled, tiles, joined)
            known.update(zip(folds, joined[width:], strict=True))
            joined_states.append(joined)
        value = left.new_empty((), dtype=torch.float32)
        weights = left.new_empty(plan.weights, m, dtype=torch.float32)
        main, given = joined_states[plan.mining :], _given(plan.combine, known, numbers)
        rows = 1024 if m > 256 else 256
        plan.combine.compiled(1, (m, count, left.device), (value, weights, m, *main, *given, rows), warps=4)
        # the gradient of a number is known as soon as the number; only a factor is missing
        wanted = ctx.needs_input_grad[4], ctx.needs_input_grad[5]
        ctx.gradients = arranged.gradients(_Written(plan, operands, weights, known, numbers), *wanted, torch.float32)
        ctx.dtypes = left.dtype, right.dtype
        return value

    @staticmethod
    @once
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        by_left, by_right = (
            None if each is None else (each * gradient).to(dtype)
            for each, dtype in zip(ctx.gradients, ctx.dtypes, strict=True)
        )
        return None, None, None, None, by_left, by_right


def _given(kernel: Kernel, known: dict[Formula, Tensor], numbers: dict[Formula, Formula]) -> list[Any]:
    given: list[Any] = []
    for leaf in kernel.leaves:
        if leaf.kind == "number":
            given.append(float(numbers.get(leaf.node, leaf.node).value))  # type: ignore[attr-defined]
        else:
            given.append(known[leaf.node])
    return given


@dataclass(eq=False)
class _Written:
    """Writes the gradient by the similarities, from the weights of a forward pass."""

    plan: Plan
    operands: Operands
    weights: Tensor
    known: dict[Formula, Tensor]
    numbers: dict[Formula, Formula]

    @property
    def symmetric(self) -> bool:
        """Whether pairs are written from both their sides."""
        return self.plan.symmetric

    def write(self, _by: Formula, rows: tuple[int, int], columns: tuple[int, int], split: bool) -> tuple[Tensor, ...]:
        """The gradient of a rectangle."""
        shape = self.operands.cut(rows[1] - rows[0], columns[1] - columns[0], SLOPES)
        given = [*_given(self.plan.slopes, self.known, self.numbers), *self.weights.unbind(0)]
        return self.operands.slopes([self.plan.slopes.compiled], shape, rows, columns, given, split=split)
