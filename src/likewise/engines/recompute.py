"""Computation on chunks, recomputed in the backward pass: one node of the graph for all chunks.

The forward pass keeps only the results of a chunk.  The backward pass recomputes each chunk, differentiates it, and adds
its gradients in place.  A graph per chunk would be small, but its tensors would be allocated between the matrices of
consecutive chunks, and a C library that cannot merge free memory then takes ten times as much as is in use.

`RowChunks` cuts the anchors of a batch; `TableChunks` cuts the rows of a table, such as ten million proxies, which is
neither copied nor widened as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils.checkpoint import checkpoint

from likewise._compat import is_transformed
from likewise.engines.synchronization import cut_batch
from likewise.formula import PairBatch, full_precision

Results = Sequence[Tensor | None]
RowFunction = Callable[[PairBatch, slice, Sequence[Tensor], bool], Results]
TableFunction = Callable[[Tensor, slice, Sequence[Tensor]], tuple[Tensor, ...]]

BUDGET = {"cpu": 20 * 2**20, "cuda": 2**30}
"""The bytes that a chunk and its intermediate results may take, by kind of device."""

COPIES = 10
"""Matrices of a chunk's size that are alive at once in a backward pass."""

LEAST_ROWS = 16
"""The least number of rows of a chunk: a smaller chunk would read all references for too little work."""


def plan_chunks(
    rows: int, columns: int, like: Tensor, together: int = 1, *, copies: int | None = None, least: int | None = None
) -> list[slice]:
    """Chunks of the rows of a matrix, of equal size, as large as the budget of the device allows.

    Args:
        rows: the number of rows.
        columns: the number of entries that a row has.
        like: a tensor of the matrix's device and dtype.
        together: rows that must not be separated, such as the centers of one class.
        copies: matrices of a chunk's size that are alive at once; by default as many as a formula needs.
        least: the least number of rows of a chunk; by default what keeps a product fast.

    Examples:
        >>> import torch
        >>> plan_chunks(6, 10, torch.zeros(1), together=2)
        [slice(0, 6, None)]
    """
    budget = BUDGET.get(like.device.type, BUDGET["cuda"])
    units = rows // together
    copies, least = COPIES if copies is None else copies, LEAST_ROWS if least is None else least
    height = max(least, budget // (copies * max(columns, 1) * together * like.dtype.itemsize))
    number = max(1, -(-units // height))
    height = max(1, -(-units // number))
    # a rank without rows has one empty chunk
    return [slice(k * together, min(k + height, units) * together) for k in range(0, max(units, 1), height)]


def call_recomputed(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function whose intermediate results are recomputed in the backward pass; it draws no random numbers.

    Examples:
        >>> import torch
        >>> call_recomputed(torch.exp, torch.zeros(1))
        tensor([1.])
    """
    # transforms differentiate while they compute, and do not let intermediate results be replaced
    if not torch.is_grad_enabled() or is_transformed():
        return function(*arguments)
    # saving the state of a GPU's generator would synchronize
    return checkpoint(function, *arguments, use_reentrant=False, preserve_rng_state=False, determinism_check="none")


class Work(Protocol):
    """A computation on chunks that can be differentiated."""

    def gradients(self, inputs: Sequence[Tensor], needs: Sequence[bool], grads: Results) -> Sequence[Tensor | None]:
        """The gradients of the inputs that need one."""

    def gradients_with_graph(
        self, inputs: Sequence[Tensor], needs: Sequence[bool], grads: Results
    ) -> Sequence[Tensor | None]:
        """The same with a graph, for a second derivative; all chunks stay in memory."""


class _Recomputed(torch.autograd.Function):
    """All chunks as one node of the graph."""

    @staticmethod
    def forward(ctx: Any, work: Work, results: list[Tensor], *inputs: Tensor) -> tuple[Tensor, ...]:
        ctx.work = work
        ctx.save_for_backward(*inputs)
        ctx.set_materialize_grads(False)
        ctx.mark_non_differentiable(*[each for each in results if not each.is_floating_point()])
        return tuple(results)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Any, ...]:
        inputs = ctx.saved_tensors
        gradients = ctx.work.gradients_with_graph if torch.is_grad_enabled() else ctx.work.gradients
        with full_precision(inputs[0]):
            return None, None, *gradients(inputs, ctx.needs_input_grad[2:], grads)


def _differentiate(
    results: Results, grads: Results, inputs: Sequence[Tensor], *, create_graph: bool = False
) -> list[Tensor | None]:
    """The gradients of the inputs that require one; a result may be a constant (a peak, a count)."""
    with torch.enable_grad():
        sums = [
            (result * grad).sum()
            for result, grad in zip(results, grads, strict=True)
            if result is not None and grad is not None and result.requires_grad
        ]
        wanted = [each for each in inputs if each.requires_grad]
        if not sums or not wanted:
            return [None] * len(inputs)
        # one number, because with grad_outputs torch imports sympy, which takes 25 MiB and a second
        end = sum(sums[1:], sums[0])
    found = iter(torch.autograd.grad(end, wanted, allow_unused=True, create_graph=create_graph))
    return [next(found) if each.requires_grad else None for each in inputs]


class RowChunks:
    """A computation on chunks of anchors, each against all references.

    Args:
        batch: the whole batch.
        cut: the rows of each chunk.
        compute: maps a chunk, its rows, the numbers, and whether it runs in the backward pass, to tensors with one row per
            anchor of the chunk; in the backward pass those without a gradient may be ``None``.
        numbers: the inputs that get a gradient besides the similarities.
        closed: whether `compute` uses no other tensor that has a graph.
        summed: results have fixed shapes and are summed over chunks.

    Examples:
        >>> import torch
        >>> from likewise.formula import Cosine, Labels, PairBatch
        >>> batch = PairBatch(Labels(torch.tensor([0, 1])), Cosine(), anchors=torch.eye(2))
        >>> cut = [slice(0, 1), slice(1, 2)]
        >>> RowChunks(batch, cut, lambda chunk, rows, numbers, back: [chunk.similarities().sum(dim=1)]).run()
        [tensor([1., 1.])]
    """

    def __init__(
        self,
        batch: PairBatch,
        cut: list[slice],
        compute: RowFunction,
        numbers: Sequence[Tensor] = (),
        *,
        closed: bool = False,
        summed: bool = False,
    ) -> None:
        self.cut, self.compute, self.closed, self.summed = cut, compute, closed, summed
        self.has_matrix = batch.matrix is not None
        self.batch = batch if self.has_matrix else batch.prepare()  # once for all chunks, with its graph
        squares: list[Tensor] = []
        if batch.matrix is not None:
            factors = [batch.matrix]
        else:
            left, right = self.batch.both_factors()
            factors = [left] if right is left else [left, right]
            assert batch.similarity is not None
            if batch.similarity.uses_squares:
                squares = [batch.similarity.squares(each) for each in factors]
        self.factors, self.squares = len(factors), len(squares)
        self.inputs = [*factors, *squares, *numbers]

    def run(self) -> list[Tensor]:
        """The results of all chunks."""
        if torch.compiler.is_compiling() or is_transformed():
            return self._run_checkpointed()
        if not torch.is_grad_enabled():
            return self._values(None)
        touched = None if self.closed else _TouchesGraph()
        with torch.no_grad():
            results = self._values(touched)
        if touched is not None and touched.graph:
            return self._run_checkpointed()
        return list(_Recomputed.apply(self, results, *self.inputs))  # type: ignore[no-untyped-call]

    def _run_checkpointed(self) -> list[Tensor]:
        """Run each chunk as a checkpoint, which also differentiates tensors that `compute` closes over."""
        numbers, chunks = self.inputs[self.factors + self.squares :], []
        for rows in self.cut:

            def of_rows(rows: slice = rows) -> Results:
                return self.compute(cut_batch(self.batch, rows), rows, numbers, False)

            chunks.append(call_recomputed(of_rows))
        return [self._join(list(tensors)) for tensors in zip(*chunks, strict=True)]

    def _join(self, tensors: list[Tensor]) -> Tensor:
        return sum(tensors[1:], tensors[0]) if self.summed else torch.cat(tensors)

    def _values(self, touched: _TouchesGraph | None) -> list[Tensor]:
        """The results, without a graph; incomplete if `compute` uses a tensor that has one."""
        wholes: list[Tensor] = []
        room, others = self._room(), [each.detach() for each in self.inputs[self.factors :]]
        for rows in self.cut:
            chunk = self._chunk(self._products(self.inputs, rows, room), rows, others)
            with touched or nullcontext():
                results = self.compute(chunk, rows, others[self.squares :], False)
            if touched is not None and touched.graph:
                break
            for k, result in enumerate(results):
                assert result is not None
                if k == len(wholes):
                    shape = result.shape if self.summed else (self.batch.shape[0], *result.shape[1:])
                    wholes.append(result.new_zeros(shape) if self.summed else result.new_empty(shape))
                if self.summed:
                    wholes[k] += result
                else:
                    wholes[k][rows] = result
        return wholes

    def _room(self) -> Tensor | None:
        """A buffer for the products of every chunk."""
        if self.has_matrix:
            return None
        columns = len(self.inputs[self.factors - 1])
        return self.inputs[0].new_empty(self.cut[0].stop - self.cut[0].start, columns)

    def _products(self, inputs: Sequence[Tensor], rows: slice, room: Tensor | None = None) -> Tensor:
        """Inner products of a chunk's anchors with all references; rows of the matrix if the batch holds it."""
        if self.has_matrix:
            return inputs[0][rows]
        left, right = inputs[0][rows], inputs[self.factors - 1]
        return left @ right.T if room is None else torch.mm(left, right.T, out=room[: len(left)])

    def _chunk(self, products: Tensor, rows: slice, others: Sequence[Tensor]) -> PairBatch:
        """Some rows of the batch, with the similarities of these products."""
        with torch.enable_grad():  # slices of tensors with a graph must keep it
            chunk = cut_batch(self.batch, rows)
        if not self.has_matrix:
            assert chunk.similarity is not None
            left = right = products.new_empty(0)
            if self.squares:
                left, right = others[0][rows, None], others[self.squares - 1][None, :]
            products = chunk.similarity.of_products(products, left, right)
        return chunk.replace(matrix=products)

    def gradients(self, inputs: Sequence[Tensor], needs: Sequence[bool], grads: Results) -> list[Tensor | None]:
        """The gradients of the inputs that need one, accumulated in place over chunks."""
        found = [torch.zeros_like(each) if need else None for each, need in zip(inputs, needs, strict=True)]
        others = [each.detach().requires_grad_(need) for each, need in zip(inputs, needs, strict=True)][self.factors :]
        room = self._room()
        for rows in self.cut:
            products = self._products(inputs, rows, room).detach().requires_grad_(any(needs[: self.factors]))
            with torch.enable_grad():
                chunk = self._chunk(products, rows, others)
                results = self.compute(chunk, rows, others[self.squares :], True)
            of_rows = [None if grad is None else grad if self.summed else grad[rows] for grad in grads]
            by_products, *by_others = _differentiate(results, of_rows, [products, *others])
            del chunk, results
            if by_products is not None:
                self._pass_on(by_products, rows, inputs, found)
            for total, grad in zip(found[self.factors :], by_others, strict=True):
                if total is not None and grad is not None:
                    total += grad
            del by_products  # before the next one is computed
        return found

    def _pass_on(self, by_products: Tensor, rows: slice, inputs: Sequence[Tensor], found: Results) -> None:
        """Propagate the gradient by a chunk's products to both factors."""
        of_left, of_right = found[0], found[self.factors - 1]
        if self.has_matrix:
            assert of_left is not None
            of_left[rows] = by_products
            return
        if of_left is not None:
            torch.addmm(of_left[rows], by_products, inputs[self.factors - 1], out=of_left[rows])
        if of_right is not None:
            torch.addmm(of_right, by_products.T, inputs[0][rows], out=of_right)

    def gradients_with_graph(
        self, inputs: Sequence[Tensor], needs: Sequence[bool], grads: Results
    ) -> list[Tensor | None]:
        """The same with a graph; the whole matrix is kept in chunks."""
        # aliases, because one input may depend on another, and autograd differentiates that dependence outside
        inputs = [each.view_as(each) if need else each.detach() for each, need in zip(inputs, needs, strict=True)]
        others, chunks = inputs[self.factors :], []
        for rows in self.cut:
            chunk = self._chunk(self._products(inputs, rows), rows, others)
            chunks.append(self.compute(chunk, rows, others[self.squares :], False))
        results = [self._join(list(each)) for each in zip(*chunks, strict=True)]
        return _differentiate(results, grads, inputs, create_graph=True)


class _TouchesGraph(TorchFunctionMode):
    """Detect whether code without a graph uses a tensor that has one, from outside of the chunk."""

    def __init__(self) -> None:
        super().__init__()
        self.graph = False

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = function(*args, **(kwargs or {}))
        if not self.graph and not isinstance(result, int | torch.Size | torch.dtype | torch.device):
            self.graph = _have_graph(args) or (kwargs is not None and _have_graph(kwargs.values()))
        return result


def _have_graph(values: Iterable[Any]) -> bool:
    return any(
        value.requires_grad if isinstance(value, Tensor) else isinstance(value, tuple | list) and _have_graph(value)
        for value in values
    )


class TableChunks:
    """A computation on chunks of a table's rows.

    Args:
        table: ``(rows, d)``, of any float dtype.
        cut: the rows of each chunk.
        compute: maps some rows, their indices, and the inputs, to tensors; their number is the same for each chunk.
        inputs: the other tensors that get a gradient.
        picked: indices of rows that are returned unchanged.
        closed: whether `compute` uses no other tensor that has a graph.

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
    ) -> None:
        self.table, self.cut, self.compute, self.inputs, self.closed = table, cut, compute, inputs, closed
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
        *flat, picked = _Recomputed.apply(self, results, self.table, *self.inputs)  # type: ignore[no-untyped-call]
        width = len(flat) // len(self.cut)
        return [tuple(flat[i * width : (i + 1) * width]) for i in range(len(self.cut))], picked

    def _touches_graph(self) -> bool:
        """Whether the first chunk uses a tensor with a graph besides the table and the inputs."""
        touched, inputs = _TouchesGraph(), [each.detach() for each in self.inputs]
        some = self.table.detach()[self.cut[0]]
        with torch.no_grad(), touched:
            self.compute(some, self.cut[0], inputs)
        return touched.graph

    def gradients(self, inputs: Sequence[Tensor], needs: Sequence[bool], grads: Results) -> list[Tensor | None]:
        """The gradients; those of the table are written into one tensor."""
        table, *others = inputs
        of_table = torch.empty_like(table) if needs[0] else None  # every row is in a chunk
        of_others: list[Tensor | None] = [None] * len(others)
        width = (len(grads) - 1) // len(self.cut)
        for i, rows in enumerate(self.cut):
            leaves = [
                each.detach().requires_grad_(need) for each, need in zip((table[rows], *others), needs, strict=True)
            ]
            with torch.enable_grad():
                results = self.compute(leaves[0], rows, leaves[1:])
            found = _differentiate(results, grads[i * width : (i + 1) * width], leaves)
            if of_table is not None:
                of_table[rows] = 0.0 if found[0] is None else found[0]
            for k, grad in enumerate(found[1:]):
                if grad is not None:
                    so_far = of_others[k]
                    of_others[k] = grad if so_far is None else so_far + grad
        if of_table is not None and grads[-1] is not None:
            of_table.index_add_(0, self.picked, grads[-1])
        return [of_table, *of_others]

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
            found = _differentiate(results, grads[i * width : (i + 1) * width], leaves, create_graph=True)
            of_chunks.append(torch.zeros_like(leaves[0]) if found[0] is None else found[0])
            for so_far, grad in zip(of_others, found[1:], strict=True):
                so_far.extend([] if grad is None else [grad])
        of_table = torch.cat(of_chunks)
        if grads[-1] is not None:
            of_table = of_table.index_add(0, self.picked, grads[-1])
        return [of_table, *(sum(each[1:], each[0]) if each else None for each in of_others)]
