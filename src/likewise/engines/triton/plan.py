"""The kernels of a whole loss: what the short way of small batches runs, generated from the declaration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from likewise.engines.schedule import schedule
from likewise.engines.triton.operands import Manner
from likewise.engines.triton.program import Launcher, compile_source
from likewise.engines.triton.source import (
    Pairing,
    Recipe,
    TileFold,
    Tiles,
    forward_source,
    join_source,
    slope_source,
    state_names,
)
from likewise.engines.triton.text import Leaf, Writer, apart, shape_of
from likewise.engines.triton.tiles import tiled
from likewise.formula import Folded, Formula, Number, derivative, ingredients, s

INDENT = "    "


class Kernel(NamedTuple):
    """A kernel of a plan, and what it is given beside the operands.

    Args:
        compiled: the kernel.
        leaves: in the order of its arguments.
    """

    compiled: Launcher
    leaves: list[Leaf]


class Pass(NamedTuple):
    """The kernels of one pass over the pairs.

    Args:
        folding: folds tiles.
        joining: joins the tiles of each row.
        terms: what is folded.
        folds: the same as the declaration has it.
    """

    folding: Kernel
    joining: Launcher
    terms: list[TileFold]
    folds: list[Folded]

    @property
    def width(self) -> int:
        """How many numbers are left of each row of a tile."""
        return sum(term.width for term in self.terms)


@dataclass(eq=False)
class Plan:
    """The kernels of a loss.

    Args:
        passes: in the order in which they run.
        mining: how many of them are the miner's.
        combine: the loss, and the weights of its gradient.
        slopes: the gradient by the similarities.
        weights: how many numbers per anchor that needs.
        symmetric: slopes have each pair's gradient from both its sides.
        exact: bits must agree, forward and back.
    """

    passes: list[Pass]
    mining: int
    combine: Kernel
    slopes: Kernel
    weights: int
    symmetric: bool
    exact: bool


def make_plan(
    totals: list[Formula],
    counts: list[Formula],
    keep: tuple[Formula, ...],
    manner: Manner,
    bend: Formula,
    pairing: Pairing,
) -> Plan:
    """Generate everything that a loss needs.

    Args:
        totals: what its parts add up to, one number per anchor each.
        counts: what they are divided by; none where they are not.
        keep: the miner's conditions, where there is one.
        manner: how embeddings are multiplied.
        bend: the similarity as a formula of the product.
        pairing: how kernels know who is positive to whom.
    """
    keep = apart(keep)  # what a fold is before mining, it need not be after it
    passes = []
    mining, stages = schedule(list(keep))[0].passes, schedule([*totals, *counts])[0].passes
    for own, group in ((False, mining), (True, stages)):
        differentiable: set[Formula] = set()
        for each in group:
            terms = []
            for fold in each:
                kind = tiled(fold.fold)
                by = tuple(node for node in ingredients(fold.curve) if node in differentiable)
                terms.append(TileFold(kind, fold.over, fold.curve, by if kind.weight_count and own else ()))
            differentiable.update(each)
            conditions = (keep[0], keep[1]) if own and keep else None
            _, leaves = shape_of([bend, *(conditions or ()), *[term.curve for term in terms]])
            recipe = Recipe(tuple(leaves), bend, conditions, pairing, manner.scaled)
            folding = Kernel(compile_source(forward_source(recipe, terms, Tiles.ALL)), leaves)
            passes.append(Pass(folding, compile_source(join_source(terms)), terms, each))
    main = passes[len(mining) :]
    terms = [term for each in main for term in each.terms]
    _, leaves = shape_of([bend, *keep, *[term.curve for term in terms]])
    weights = sum(term.fold.weight_count for term in terms)
    extra = [Leaf(Number(0.0), "row") for _ in range(weights)]
    conditions = (keep[0], keep[1]) if keep else None
    recipe = Recipe((*leaves, *extra), bend, conditions, pairing, manner.scaled)
    exact = any(term.fold.exact for term in terms)
    symmetric = manner.symmetric and (manner.mirrors or not exact)
    source = slope_source(recipe, terms, s, Tiles.ALL, symmetric=symmetric, split=manner.split)
    slopes = Kernel(compile_source(source), leaves)
    return Plan(passes, len(mining), _combine(totals, counts, main), slopes, weights, symmetric, exact)


def _combine(totals: list[Formula], counts: list[Formula], passes: list[Pass]) -> Kernel:
    """The kernel of what stands between folds and loss: the number, and the weights of the gradient by every fold."""
    roots = [*totals, *counts]
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
    for k in range(len(totals)):
        share = f"1.0 / tl.maximum(sum{len(totals) + k}, 1.0)" if counts else "tl.full([1], 1.0, tl.float64)"
        lines.append(f"    share{k} = {share}")
    total = " + ".join(f"sum{k} * share{k}" for k in range(len(totals)))
    lines.append(f"    tl.store(value + tl.arange(0, 1), ({total}).to(tl.float32))")
    lines += _weight_lines(totals, passes, states, names, head)
    return Kernel(compile_source("\n".join(lines) + "\n"), numbers)


def _weight_lines(
    totals: list[Formula], passes: list[Pass], states: list[list[list[str]]], names: dict[Formula, str], head: list[str]
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
            for p, total in enumerate(totals):
                change = derivative(total, fold)
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
