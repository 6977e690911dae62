"""Computations on chunks of a table, such as ten million proxies, which is neither copied nor widened as a whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from likewise._compat import is_transformed
from likewise.engines.recompute import Results, TouchesGraph, call_recomputed, differentiate, recompute_in_backward
from likewise.formula import TableUse

TableFunction = Callable[[Tensor, slice, Sequence[Tensor]], tuple[Tensor, ...]]


class TableChunks:
    """A computation on chunks of a table's rows.

    Args:
        table: ``(rows, d)``, of any float dtype.
        cut: the rows of each chunk.
        compute: maps some rows, their indices, and the inputs, to tensors; their number is the same for each chunk.
        inputs: the other tensors that get a gradient.
        picked: indices of rows that are returned unchanged.
        closed: whether `compute` uses no other tensor that has a graph.
        use_table: registers the use of the table where its gradient may be passed on in chunks.

    Examples:
        >>> import torch
        >>> table = torch.arange(4.0).reshape(4, 1).requires_grad_()
        >>> chunks = TableChunks(table, [slice(0, 2), slice(2, 4)], lambda rows, where, _: (rows.sum(),))
        >>> sums, picked = chunks.run()
        >>> [total.item() for (total,) in sums], picked.shape
        ([1.0, 5.0], torch.Size([0, 1]))
    """

    def __init__(
        self,
        table: Tensor,
        cut: list[slice],
        compute: TableFunction,
        inputs: Sequence[Tensor] = (),
        picked: Tensor | None = None,
        *,
        closed: bool = True,
        use_table: Callable[[], TableUse | None] = lambda: None,
    ) -> None:
        self.table, self.cut, self.compute, self.inputs, self.closed = table, cut, compute, inputs, closed
        self.use_table = use_table
        self._use: TableUse | None = None
        self.picked = torch.zeros(0, dtype=torch.int64, device=table.device) if picked is None else picked

    def run(self) -> tuple[list[tuple[Tensor, ...]], Tensor]:
        """The results of each chunk, and the picked rows."""
        if len(self.cut) < 2 or not torch.is_grad_enabled() or is_transformed():
            return [self.compute(self.table[rows], rows, self.inputs) for rows in self.cut], self.table[self.picked]
        if not self.closed and self._touches_graph():
            chunks = [call_recomputed(self.compute, self.table[rows], rows, self.inputs) for rows in self.cut]
            return chunks, self.table[self.picked]
        with torch.no_grad():
            results = [each for rows in self.cut for each in self.compute(self.table[rows], rows, self.inputs)]
            results.append(self.table[self.picked])
        self._use = self.use_table()
        *flat, picked = recompute_in_backward(self, results, [self.table, *self.inputs])
        width = len(flat) // len(self.cut)
        return [tuple(flat[i * width : (i + 1) * width]) for i in range(len(self.cut))], picked

    def _touches_graph(self) -> bool:
        """Return whether the first chunk uses a tensor with a graph other than the table and the inputs."""
        touched, inputs = TouchesGraph(), [each.detach() for each in self.inputs]
        some = self.table.detach()[self.cut[0]]
        with torch.no_grad(), touched:
            self.compute(some, self.cut[0], inputs)
        return touched.graph

    def gradients(self, inputs: Sequence[Tensor], needs: Sequence[bool], grads: Results) -> list[Tensor | None]:
        """The gradients; those of the table are written into one tensor, or passed on."""
        table, *others = inputs
        use = self._use if needs[0] and self._use is not None and self._use.is_only() else None
        of_table = torch.empty_like(table) if needs[0] and use is None else None  # every row is in a chunk
        of_others: list[Tensor | None] = [None] * len(others)
        width = (len(grads) - 1) // len(self.cut)
        for i, rows in enumerate(self.cut):
            leaves = [
                each.detach().requires_grad_(need) for each, need in zip((table[rows], *others), needs, strict=True)
            ]
            with torch.enable_grad():
                results = self.compute(leaves[0], rows, leaves[1:])
            found = differentiate(results, grads[i * width : (i + 1) * width], leaves)
            if of_table is not None:
                of_table[rows] = 0.0 if found[0] is None else found[0]
            elif use is not None:
                use.take(
                    rows,
                    self._add_picked(rows, torch.zeros_like(leaves[0]) if found[0] is None else found[0], grads[-1]),
                )
            for k, grad in enumerate(found[1:]):
                if grad is not None:
                    so_far = of_others[k]
                    of_others[k] = grad if so_far is None else so_far + grad
        if of_table is not None and grads[-1] is not None:
            of_table.index_add_(0, self.picked, grads[-1])
        return [of_table, *of_others]

    def _add_picked(self, rows: slice, of_rows: Tensor, of_picked: Tensor | None) -> Tensor:
        """Add the gradients of the picked rows that are in a chunk, without synchronizing."""
        if of_picked is None:
            return of_rows
        here = (self.picked >= rows.start) & (self.picked < rows.stop)
        index = torch.where(here, self.picked - rows.start, 0)
        return of_rows.index_add_(0, index, torch.where(here[:, None], of_picked, 0.0))

    def gradients_with_graph(
        self, inputs: Sequence[Tensor], needs: Sequence[bool], grads: Results
    ) -> list[Tensor | None]:
        """The same with a graph; all chunks stay in memory."""
        table, *others = inputs
        width = (len(grads) - 1) // len(self.cut)
        of_chunks: list[Tensor] = []
        of_others: list[list[Tensor]] = [[] for _ in others]
        for i, rows in enumerate(self.cut):
            # an input may be a function of another one, which autograd differentiates outside; treat each separately
            leaves = [table[rows], *(each.view_as(each) for each in others)]
            results = self.compute(leaves[0], rows, leaves[1:])
            found = differentiate(results, grads[i * width : (i + 1) * width], leaves, create_graph=True)
            of_chunks.append(torch.zeros_like(leaves[0]) if found[0] is None else found[0])
            for so_far, grad in zip(of_others, found[1:], strict=True):
                so_far.extend([] if grad is None else [grad])
        of_table = torch.cat(of_chunks)
        if grads[-1] is not None:
            of_table = of_table.index_add(0, self.picked, grads[-1])
        return [of_table, *(sum(each[1:], each[0]) if each else None for each in of_others)]
