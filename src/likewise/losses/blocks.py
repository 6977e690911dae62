"""Proxies by the million: the table is read block by block, and each block is made again in the backward pass.

The streamed engine cuts anchors into panels.  Where the references are ten million proxies, a panel of a few anchors is
too large already, and so is a second table at unit length or in another dtype.  Here the proxies themselves are cut: a
block is widened, normalized and compared with the whole batch; folds merge what the blocks leave, which is a few numbers
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

from likewise.distributed import ProcessGroup
from likewise.engines import ByPlaces, DenseEngine, Engine, Places, chunked, numbers_of, of_the_rest
from likewise.formula import Folded, Formula, Labels, PairBatch, Rank, Similarity, State, full_precision

Outputs = tuple[Tensor, ...]
Compute = Callable[[Tensor, slice, Sequence[Tensor]], Outputs]


def blocks(rows: int, beside: int, like: Tensor, together: int = 1) -> list[slice]:
    """The rows of a table, as many at a time as the streamed engine's budget allows.

    Args:
        rows: how many rows the table has.
        beside: numbers that a row of the table makes; the samples that it is compared with.
        like: a tensor of the device and dtype in which they are made.
        together: rows that must not be parted, the centers of one class.

    Examples:
        >>> import torch
        >>> blocks(6, 10, torch.zeros(1), together=2)
        [slice(0, 6, None)]
    """
    budget = chunked.BUDGET.get(like.device.type, chunked.BUDGET["cuda"])
    classes = rows // together
    height = max(chunked.LEAST_ROWS, budget // (chunked.COPIES * beside * together * like.dtype.itemsize))
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
    if len(cut) < 2 or not torch.is_grad_enabled():
        return [compute(table[rows], rows, inputs) for rows in cut], table[picked]
    *flat, gathered = _InBlocks.apply(compute, cut, picked, table, *inputs)  # type: ignore[no-untyped-call]
    width = len(flat) // len(cut)
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
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        picked, table, *inputs = ctx.saved_tensors
        if torch.is_grad_enabled():
            return None, None, None, *_with_graph(ctx, grads, picked, table, inputs)
        needs = ctx.needs_input_grad[3:]
        of_table = torch.empty_like(table) if needs[0] else None  # every row is in a block
        of_inputs: list[Tensor | None] = [None] * len(inputs)
        width = (len(grads) - 1) // len(ctx.cut)
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


def _with_graph(
    ctx: Any, grads: Sequence[Tensor | None], picked: Tensor, table: Tensor, inputs: list[Tensor]
) -> list[Tensor | None]:
    """The gradients as functions of everything, for somebody who differentiates again: all blocks stay in memory."""
    width = (len(grads) - 1) // len(ctx.cut)
    of_blocks: list[Tensor] = []
    of_inputs: list[list[Tensor]] = [[] for _ in inputs]
    with full_precision(table):
        for i, rows in enumerate(ctx.cut):
            # an input may be a function of another one, which is not this function's business: each is taken by itself
            leaves = [table[rows], *(each.view_as(each) for each in inputs)]
            results = ctx.compute(leaves[0], rows, leaves[1:])
            found = _gradients(results, grads[i * width : (i + 1) * width], leaves, create_graph=True)
            of_blocks.append(torch.zeros_like(leaves[0]) if found[0] is None else found[0])
            for so_far, grad in zip(of_inputs, found[1:], strict=True):
                so_far.extend([] if grad is None else [grad])
        of_table = torch.cat(of_blocks)
        if grads[-1] is not None:
            of_table = of_table.index_add(0, picked, grads[-1])
    return [of_table, *(sum(each[1:], each[0]) if each else None for each in of_inputs)]


def _gradients(
    results: Outputs, grads: Sequence[Tensor | None], leaves: list[Tensor], *, create_graph: bool = False
) -> list[Tensor | None]:
    """The gradients of the leaves that want one; a result may be a constant (a peak, a count)."""
    kept = [(y, g) for y, g in zip(results, grads, strict=True) if g is not None and y.requires_grad]
    wanted = [leaf for leaf in leaves if leaf.requires_grad]
    if not kept or not wanted:
        return [None] * len(leaves)
    outputs, arrived = [y for y, _ in kept], [g for _, g in kept]
    found = iter(torch.autograd.grad(outputs, wanted, arrived, allow_unused=True, create_graph=create_graph))
    return [next(found) if leaf.requires_grad else None for leaf in leaves]


@dataclass(frozen=True, eq=False)
class Table:
    """The proxies that a batch is compared with, and where its classes are among them.

    Args:
        rows: the proxies in their own dtype, ``(k · centers, d)``.
        classes: whose proxies they are, ``(k,)``.
        positions: where among them the class of each sample is, ``(m,)``; −1: nowhere.
        complete: whether every sample's class is among them, so that nobody need look.
        log_weights: for how many classes each stands, as a logarithm, ``(k,)``; ``None``: each for itself.
        shards: the processes that have a share of the proxies each; ``None``: all are here.

    Examples:
        >>> import torch
        >>> Table(torch.zeros(6, 2), torch.arange(3), torch.tensor([2])).centers
        2
    """

    rows: Tensor
    classes: Tensor
    positions: Tensor
    complete: bool = False
    log_weights: Tensor | None = None
    shards: ProcessGroup | None = None

    def cut(self, classes: slice) -> Table:
        """Some of the classes."""
        rows = slice(classes.start * self.centers, classes.stop * self.centers)
        return replace(self, rows=self.rows[rows], classes=self.classes[classes], complete=False)

    @property
    def centers(self) -> int:
        """How many proxies a class has."""
        return len(self.rows) // max(len(self.classes), 1)

    def owners(self) -> Tensor:
        """The class of each row."""
        if self.centers == 1:
            return self.classes
        return self.classes.repeat_interleave(self.centers, output_size=len(self.rows))


class ProxiesAsAnchors(Engine):
    """Folds over the samples, one number per proxy: every block is a small batch of its own.

    Examples:
        >>> import torch
        >>> from likewise.formula import Cosine, POSITIVES, largest, s
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
        numbers = numbers_of(terms, known)

        def compute(block: Tensor, rows: slice, given: Sequence[Tensor]) -> Outputs:
            samples, *values = given
            relation = Labels(self.owners[rows], self.labels, valid=self.valid)
            batch = PairBatch(relation, self.similarity, anchors=block.to(samples.dtype), references=samples)
            of_block = {
                node: value[rows] if node.rank == Rank.ANCHOR else value
                for node, value in zip(numbers, values, strict=True)
            }
            folds = DenseEngine(batch).fold(passes, of_block)
            return tuple(folds[term] for term in terms)

        cut = blocks(len(self.table.rows), len(self.samples), self.samples)
        results, _ = in_blocks(self.table.rows, cut, compute, [self.samples, *numbers.values()])
        return {term: torch.cat(pieces) for term, pieces in zip(terms, zip(*results, strict=True), strict=True)}


class ProxiesAsReferences(ByPlaces):
    """Folds over the proxies, one number per sample: blocks leave states, which merge.

    A sample's own proxies are few and their place is known, so folds over positives look at nothing else.

    Args:
        similarity: how samples and proxies are compared.
        samples: the anchors.
        table: the references.
        pool: makes one similarity to a class of those to its centers; ``None``: every proxy is a reference.
        whole: compare with the whole table at once, however large it is.

    Examples:
        >>> import torch
        >>> from likewise.formula import Cosine, NEGATIVES, largest, s
        >>> table = Table(torch.eye(2), torch.arange(2), torch.tensor([1]))
        >>> engine = ProxiesAsReferences(Cosine(), torch.tensor([[0.6, 0.8]]), table)
        >>> list(engine.fold([[largest(s, NEGATIVES)]], {}).values())
        [tensor([0.6000])]
    """

    def __init__(
        self,
        similarity: Similarity,
        samples: Tensor,
        table: Table,
        pool: Callable[[Tensor], Tensor] | None = None,
        *,
        whole: bool = False,
    ) -> None:
        self.similarity, self.table, self.pool, self.centers = similarity, table, pool, table.centers
        self.samples = similarity.prepare(samples)
        everything = [slice(0, len(table.rows))]
        self.cut = everything if whole else blocks(len(table.rows), len(samples), self.samples, self.centers)
        # where each sample's own class is among the references
        self.columns = self._own_rows() if pool is None else table.positions[:, None]
        width = len(table.rows) if pool is None else len(table.classes)
        complete = Places(self.columns, None, width)
        self.places = complete if table.complete else Places.within(self.columns, slice(0, width))
        self._matrix: Tensor | None = None

    def of_others(self, terms: list[Folded], numbers: dict[Formula, Tensor]) -> tuple[dict[Folded, State], Tensor]:
        """Folds over all but positives and own similarities, once over the table."""
        if len(self.cut) > 1 or not terms:
            return self._of_blocks(terms, numbers)
        if self._matrix is None:
            self._matrix = self._compare(self.samples, self.table.rows.to(self.samples.dtype))
        return of_the_rest(terms, self._matrix, self.places, slice(0, self.places.width), numbers)

    def _of_blocks(self, terms: list[Folded], numbers: dict[Formula, Tensor]) -> tuple[dict[Folded, State], Tensor]:
        """Folds over all but positives, merged from block to block; own similarities from rows that are looked up."""
        centers, sizes = self.centers, [0]

        def compute(block: Tensor, rows: slice, given: Sequence[Tensor]) -> Outputs:
            samples, *values = given
            columns = rows if self.pool is None else slice(rows.start // centers, rows.stop // centers)
            similarities = self._compare(samples, block.to(samples.dtype))
            places, of_block = Places.within(self.columns, columns), dict(zip(numbers, values, strict=True))
            states, _ = of_the_rest(terms, similarities, places, columns, of_block)
            sizes[:] = [len(state) for state in states.values()]
            return tuple(each for state in states.values() for each in state)

        inputs, own_rows = [self.samples, *numbers.values()], self._own_rows().clamp_min(0).flatten()
        results, own = in_blocks(self.table.rows, self.cut if terms else [], compute, inputs, own_rows)
        states: dict[Folded, State] = {}
        for k, term in enumerate(terms):
            first, end = sum(sizes[:k]), sum(sizes[: k + 1])
            states[term] = reduce(term.fold.merge, [flat[first:end] for flat in results])
        return states, self._with_own(own.to(self.samples.dtype))

    def _compare(self, samples: Tensor, block: Tensor) -> Tensor:
        """All samples against a block, ``(m, rows)``, or ``(m, classes)`` where centers are pooled."""
        right = self.similarity.prepare(block)
        if self.similarity.centers:
            middle = right.detach().mean(dim=0, keepdim=True)
            samples, right = samples - middle, right - middle
        if self.pool is None:
            return self.similarity.of_factors(samples, right)
        # the first centers of all classes, then the second: so pooling goes along rows, not across a few columns
        by_center = right.reshape(-1, self.centers, right.shape[1]).transpose(0, 1).flatten(0, 1)
        similarities = self.similarity.of_factors(samples, by_center)
        return self.pool(similarities.reshape(len(samples), self.centers, -1).transpose(1, 2))

    def _own_rows(self) -> Tensor:
        """Which proxies are those of each sample's class, ``(m, centers)``; negative where there are none."""
        positions, centers = self.table.positions[:, None], self.centers
        return positions if centers == 1 else positions * centers + torch.arange(centers, device=positions.device)

    def _with_own(self, own: Tensor) -> Tensor:
        """The similarities of each sample to its own proxies, ``(m, centers)``, or to its class, ``(m, 1)``.

        Args:
            own: its proxies, ``(m · centers, d)``.
        """
        centers = self.centers
        left, right = self.samples.repeat_interleave(centers, dim=0), self.similarity.prepare(own)
        if self.similarity.centers:
            left, right = left - right, torch.zeros_like(right)
        products, squares = (left * right).sum(dim=1), [self.similarity.squares(each) for each in (left, right)]
        shaped = (each.view(-1, centers) for each in (products, *squares))
        similarities = self.similarity.link(*shaped)
        return similarities if self.pool is None else self.pool(similarities[:, None, :])
