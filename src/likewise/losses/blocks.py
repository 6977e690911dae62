"""Proxies by the million: the table is read block by block, and each block is made again in the backward pass.

The streamed engine cuts anchors into panels.  Where the references are ten million proxies, a panel of a few anchors is
too large already, and so is a second table at unit length or in another dtype.  Here the proxies themselves are cut: a
block is widened, normalised and compared with the whole batch; folds merge what the blocks leave, which is a few numbers
per sample; and the gradient of a block is written where it belongs.  Beside the table and its gradient there is nothing
of the table's size.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from likewise.backends import DenseEngine, Engine, streamed
from likewise.core.checks import full_precision
from likewise.core.folds import Side, State, count
from likewise.core.formula import Folded, Formula, Number, PerReference, Rank, evaluate, s, walk
from likewise.core.problem import Problem
from likewise.core.relation import Labels
from likewise.core.similarity import Similarity
from likewise.core.spread import Spread

Outputs = tuple[Tensor, ...]
Compute = Callable[[Tensor, slice, Sequence[Tensor]], Outputs]


def blocks(rows: int, beside: int, like: Tensor, together: int = 1) -> list[slice]:
    """The rows of a table, as many at a time as the streamed engine's budget allows.

    Args:
        rows: how many rows the table has.
        beside: numbers that a row of the table makes; the samples that it is compared with.
        like: a tensor of the device and dtype in which they are made.
        together: rows that must not be parted, the centres of one class.

    Examples:
        >>> import torch
        >>> blocks(6, 10, torch.zeros(1), together=2)
        [slice(0, 6, None)]
    """
    budget = streamed.BUDGET.get(like.device.type, streamed.BUDGET["cuda"])
    classes = rows // together
    height = max(streamed.LEAST_ROWS, budget // (streamed.COPIES * beside * together * like.dtype.itemsize))
    number = max(1, -(-classes // height))
    height = max(1, -(-classes // number))  # all alike
    return [slice(k * together, min(k + height, classes) * together) for k in range(0, max(classes, 1), height)]


def in_blocks(
    table: Tensor, cut: list[slice], compute: Compute, inputs: Sequence[Tensor] = (), picked: Tensor | None = None
) -> tuple[list[Outputs], Tensor]:
    """What a function makes of each block of a table's rows; nothing of a block is kept for the backward pass.

    Args:
        table: ``(rows, d)``.
        cut: which rows are a block.
        compute: maps a block, the rows that it is, and the inputs, to tensors, as many for each block.
        inputs: everything else that gets a gradient.
        picked: indices of rows that are wanted as they are.

    Returns:
        The results of each block, and the picked rows.

    Examples:
        >>> import torch
        >>> table = torch.arange(4.0).reshape(4, 1).requires_grad_()
        >>> sums, rows = in_blocks(table, [slice(0, 2), slice(2, 4)], lambda block, rows, _: (block.sum(),))
        >>> [total.item() for (total,) in sums], rows.shape
        ([1.0, 5.0], torch.Size([0, 1]))
    """
    if picked is None:
        picked = torch.zeros(0, dtype=torch.int64, device=table.device)
    if len(cut) == 1 or not torch.is_grad_enabled():
        return [compute(table[rows], rows, inputs) for rows in cut], table[picked]
    *flat, gathered = _InBlocks.apply(compute, cut, picked, table, *inputs)  # type: ignore[no-untyped-call]
    width = len(flat) // max(len(cut), 1)
    return [tuple(flat[i * width : (i + 1) * width]) for i in range(len(cut))], gathered


class _InBlocks(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, compute: Compute, cut: list[slice], picked: Tensor, table: Tensor, *inputs: Tensor
    ) -> tuple[Tensor, ...]:
        flat = [each for rows in cut for each in compute(table[rows], rows, inputs)]
        ctx.compute, ctx.cut = compute, cut
        ctx.save_for_backward(picked, table, *inputs)
        ctx.set_materialize_grads(False)
        ctx.mark_non_differentiable(*[each for each in flat if not each.is_floating_point()])
        return (*flat, table[picked])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        picked, table, *inputs = ctx.saved_tensors
        needs = ctx.needs_input_grad[3:]
        of_table = torch.zeros_like(table) if needs[0] and not ctx.cut else None
        if needs[0] and ctx.cut:
            of_table = torch.empty_like(table)  # every row is in a block
        of_inputs: list[Tensor | None] = [None] * len(inputs)
        width = (len(grads) - 1) // max(len(ctx.cut), 1)
        for i, rows in enumerate(ctx.cut):
            leaves = [
                each.detach().requires_grad_(need) for each, need in zip((table[rows], *inputs), needs, strict=True)
            ]
            with full_precision(table):
                with torch.enable_grad():
                    results = ctx.compute(leaves[0], rows, leaves[1:])
                found = _gradients(results, grads[i * width : (i + 1) * width], leaves)
            if of_table is not None:
                of_table[rows] = 0.0 if found[0] is None else found[0]
            for k, grad in enumerate(found[1:]):
                if grad is not None:
                    so_far = of_inputs[k]
                    of_inputs[k] = grad if so_far is None else so_far + grad
        if of_table is not None and grads[-1] is not None:
            of_table.index_add_(0, picked, grads[-1])
        return None, None, None, of_table, *of_inputs


def _gradients(results: Outputs, grads: Sequence[Tensor | None], leaves: list[Tensor]) -> list[Tensor | None]:
    """The gradients of the leaves that want one; a result may be a constant (a peak, a count)."""
    kept = [(y, g) for y, g in zip(results, grads, strict=True) if g is not None and y.requires_grad]
    wanted = [leaf for leaf in leaves if leaf.requires_grad]
    if not kept or not wanted:
        return [None] * len(leaves)
    found = iter(torch.autograd.grad([y for y, _ in kept], wanted, [g for _, g in kept], allow_unused=True))
    return [next(found) if leaf.requires_grad else None for leaf in leaves]


@dataclass(frozen=True, eq=False)
class Table:
    """The proxies that a batch is compared with, and where its classes are among them.

    Args:
        rows: the proxies in their own dtype, ``(k · centres, d)``.
        classes: whose proxies they are, ``(k,)``.
        positions: where among them the class of each sample is, ``(m,)``; −1: nowhere.
        log_weights: for how many classes each stands, as a logarithm, ``(k,)``; ``None``: each for itself.
        shards: the processes that have a share of the proxies each; ``None``: all are here.

    Examples:
        >>> import torch
        >>> Table(torch.zeros(6, 2), torch.arange(3), torch.tensor([2])).centres
        2
    """

    rows: Tensor
    classes: Tensor
    positions: Tensor
    log_weights: Tensor | None = None
    shards: Spread | None = None

    def cut(self, classes: slice) -> Table:
        """Some of the classes."""
        rows = slice(classes.start * self.centres, classes.stop * self.centres)
        return replace(self, rows=self.rows[rows], classes=self.classes[classes])

    @property
    def centres(self) -> int:
        """How many proxies a class has."""
        return len(self.rows) // max(len(self.classes), 1)

    def owners(self) -> Tensor:
        """The class of each row."""
        return self.classes.repeat_interleave(self.centres, output_size=len(self.rows))


def _numbers(terms: list[Folded], known: dict[Formula, Tensor]) -> dict[Formula, Tensor]:
    """What the curves refer to beside `s`: numbers that are known, and learned scalars, which get a gradient, too."""
    found: dict[Formula, Tensor] = {}
    for node in walk(*(term.curve for term in terms)):
        if node in known:
            found[node] = known[node]
        elif isinstance(node, Number) and isinstance(node.value, Tensor):
            found[node] = node.value
    return found


class ProxiesAsAnchors(Engine):
    """Folds over the samples, one number per proxy: every block is a small problem of its own.

    Examples:
        >>> import torch
        >>> from likewise.core import Cosine, POSITIVES, largest, s
        >>> table, labels = Table(torch.eye(2), torch.arange(2), torch.tensor([1])), torch.tensor([1])
        >>> engine = ProxiesAsAnchors(Cosine(), torch.tensor([[0.6, 0.8]]), labels, table)
        >>> list(engine.fold([[largest(s, POSITIVES)]], {}).values())
        [tensor([  -inf, 0.8000])]
    """

    def __init__(
        self, similarity: Similarity, samples: Tensor, labels: Tensor, table: Table, valid: Tensor | None = None
    ) -> None:
        self.similarity, self.samples, self.labels, self.valid = similarity, samples, labels, valid
        self.table, self.owners = table, table.owners()

    def fold(self, passes: list[list[Folded]], known: dict[Formula, Tensor]) -> dict[Formula, Tensor]:
        """One vector per fold, block by block."""
        terms = [term for each in passes for term in each]
        numbers = _numbers(terms, known)

        def compute(block: Tensor, rows: slice, given: Sequence[Tensor]) -> Outputs:
            samples, *values = given
            relation = Labels(self.owners[rows], self.labels, valid=self.valid)
            problem = Problem(relation, self.similarity, anchors=block.to(samples.dtype), references=samples)
            of_block = {
                node: value[rows] if node.rank == Rank.ANCHOR else value
                for node, value in zip(numbers, values, strict=True)
            }
            folds = DenseEngine(problem).fold(passes, of_block)
            return tuple(folds[term] for term in terms)

        cut = blocks(len(self.table.rows), len(self.samples), self.samples)
        results, _ = in_blocks(self.table.rows, cut, compute, [self.samples, *numbers.values()])
        return {term: torch.cat(pieces) for term, pieces in zip(terms, zip(*results, strict=True), strict=True)}


class ProxiesAsReferences(Engine):
    """Folds over the proxies, one number per sample: blocks leave states, which merge.

    A sample's own proxies are few and their place is known, so folds over positives look at nothing else.

    Args:
        similarity: how samples and proxies are compared.
        samples: the anchors.
        table: the references.
        pool: makes one similarity to a class of those to its centres; ``None``: every proxy is a reference.

    Examples:
        >>> import torch
        >>> from likewise.core import Cosine, NEGATIVES, largest, s
        >>> table = Table(torch.eye(2), torch.arange(2), torch.tensor([1]))
        >>> engine = ProxiesAsReferences(Cosine(), torch.tensor([[0.6, 0.8]]), table)
        >>> list(engine.fold([[largest(s, NEGATIVES)]], {}).values())
        [tensor([0.6000])]
    """

    def __init__(
        self, similarity: Similarity, samples: Tensor, table: Table, pool: Callable[[Tensor], Tensor] | None = None
    ) -> None:
        self.similarity, self.table, self.pool = similarity, table, pool
        self.samples = similarity.prepare(samples)
        self.found = table.positions >= 0

    def fold(self, passes: list[list[Folded]], known: dict[Formula, Tensor]) -> dict[Formula, Tensor]:
        """One vector per fold: once over the table for each pass."""
        results: dict[Formula, Tensor] = {}
        for terms in passes:
            states = self.states(terms, {**known, **results})
            results.update({term: term.fold.finish(state) for term, state in zip(terms, states, strict=True)})
        return results

    def states(self, terms: list[Folded], known: dict[Formula, Tensor]) -> list[State]:
        """The folds of one pass, not finished: the table may be one of several shares."""
        numbers = _numbers(terms, known)
        near = [term for term in terms if term.over is Side.POSITIVES]
        wide = [term for term in terms if term.over is not Side.POSITIVES]
        sizes: list[int] = []

        def compute(block: Tensor, rows: slice, given: Sequence[Tensor]) -> Outputs:
            samples, *values = given
            columns = rows if self.pool is None else slice(rows.start // centres, rows.stop // centres)
            of_block = {
                node: value[None, columns] if isinstance(node, PerReference) else _broadcast(node, value)
                for node, value in zip(numbers, values, strict=True)
            }
            similarities = self._compare(samples, block.to(samples.dtype))
            states = _states(wide, similarities, lambda over: self._side(over, columns), of_block)
            sizes[:] = map(len, states)
            return tuple(each for state in states for each in state)

        centres = self.table.centres
        cut = blocks(len(self.table.rows), len(self.samples), self.samples, centres) if wide else []
        inputs = [self.samples, *numbers.values()]
        results, own = in_blocks(self.table.rows, cut, compute, inputs, self._own_rows())
        states = self._near(near, own, numbers)
        for k, term in enumerate(wide):
            first, end = sum(sizes[:k]), sum(sizes[: k + 1])
            states[term] = reduce(term.fold.merge, [flat[first:end] for flat in results])
        return [states[term] for term in terms]

    def _compare(self, samples: Tensor, block: Tensor) -> Tensor:
        """All samples against a block, ``(m, rows)``, or ``(m, classes)`` where centres are pooled."""
        right = self.similarity.prepare(block)
        if self.similarity.centres:
            middle = right.detach().mean(dim=0, keepdim=True)
            samples, right = samples - middle, right - middle
        similarities = self.similarity.of_factors(samples, right)
        if self.pool is None:
            return similarities
        return self.pool(similarities.reshape(len(samples), -1, self.table.centres))

    def _side(self, over: Side, columns: slice) -> Tensor:
        """The mask of a block: everybody, or everybody but the sample's own class."""
        width = columns.stop - columns.start
        everybody = torch.ones(len(self.samples), width + 1, dtype=torch.bool, device=self.samples.device)
        if over is Side.BOTH:
            return everybody[:, :width]
        own = self._own_columns() - columns.start
        outside = (own < 0) | (own >= width) | ~self.found[:, None]
        # one entry of a row is cheaper to write than all of them to compare; who is not here writes into the margin
        own = torch.where(outside, width, own)
        return everybody.scatter_(1, own, False)[:, :width]

    def _own_rows(self) -> Tensor:
        centre = torch.arange(self.table.centres, device=self.samples.device)
        return (self.table.positions.clamp_min(0)[:, None] * self.table.centres + centre).flatten()  # (m · centres,)

    def _own_columns(self) -> Tensor:
        """Where each sample's own class is among the columns, ``(m, one or centres)``."""
        if self.pool is not None:
            return self.table.positions.clamp_min(0)[:, None]
        return self._own_rows().view(len(self.samples), self.table.centres)

    def _near(self, terms: list[Folded], own: Tensor, numbers: dict[Formula, Tensor]) -> dict[Formula, State]:
        """Folds over positives: each sample with its own class alone."""
        similarities = self._with_own(own.to(self.samples.dtype))
        if self.pool is not None:
            similarities = self.pool(similarities[:, None, :])  # (m, 1)
        columns = self._own_columns()
        of_own = {
            node: value[columns] if isinstance(node, PerReference) else _broadcast(node, value)
            for node, value in numbers.items()
        }
        keep = self.found[:, None].expand_as(similarities)
        return dict(zip(terms, _states(terms, similarities, lambda _: keep, of_own), strict=True))

    def _with_own(self, own: Tensor) -> Tensor:
        """The similarities of each sample to its class's proxies, ``(m, centres)``; ``own`` is ``(m · centres, d)``."""
        centres = self.table.centres
        left, right = self.samples.repeat_interleave(centres, dim=0), self.similarity.prepare(own)
        if self.similarity.centres:
            left, right = left - right, torch.zeros_like(right)
        products, squares = (left * right).sum(dim=1), [self.similarity.squares(each) for each in (left, right)]
        shaped = (each.view(-1, centres) for each in (products, *squares))
        return self.similarity.link(*shaped)


def _broadcast(node: Formula, value: Tensor) -> Tensor:
    return value[:, None] if node.rank == Rank.ANCHOR else value


def _states(
    terms: list[Folded], similarities: Tensor, side: Callable[[Side], Tensor], known: dict[Formula, Tensor]
) -> list[State]:
    """What each fold leaves of some pairs."""
    pairs: dict[Formula, Any] = {s: similarities, **known}
    masks = {over: side(over) for over in {term.over for term in terms}}
    states = []
    for term in terms:
        keep = masks[term.over]
        if term is count(term.over):
            values = keep  # a count without a condition
        else:
            values = evaluate(term.curve, pairs)
            values = values if isinstance(values, Tensor) else similarities.new_full((), values)
            values = values.expand_as(keep)
        states.append(term.fold.start(values, keep))
    return states
