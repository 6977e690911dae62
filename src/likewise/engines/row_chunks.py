"""Computations on chunks of the anchors of a batch, each against all references, recomputed in the backward pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext

import torch
from torch import Tensor

from likewise._compat import is_transformed
from likewise.engines.recompute import Results, TouchesGraph, call_recomputed, differentiate, recompute_in_backward
from likewise.engines.synchronization import cut_batch
from likewise.formula import PairBatch, beats_torch, multiply_columns, multiply_rows

RowFunction = Callable[[PairBatch, slice, Sequence[Tensor], bool], Results]


class RowChunks:
    """A computation on chunks of anchors, each against all references.

    Args:
        batch: the whole batch.
        cut: the rows of each chunk.
        compute: maps a chunk, its rows, the numbers, and whether it runs in the backward pass, to tensors with one row per
            anchor of the chunk; in the backward pass those without a gradient may be ``None``.
        numbers: the inputs, other than the similarities, that get a gradient.
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
        touched = None if self.closed else TouchesGraph()
        with torch.no_grad():
            results = self._values(touched)
        if touched is not None and touched.graph:
            return self._run_checkpointed()
        return recompute_in_backward(self, results, self.inputs)

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

    def _values(self, touched: TouchesGraph | None) -> list[Tensor]:
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
        """A buffer for the products of every chunk; only torch's own products are written into one."""
        left, right = self.inputs[0][self.cut[0]], self.inputs[self.factors - 1]
        if self.has_matrix or beats_torch(left, right, cancels=self.squares > 0):
            return None
        return left.new_empty(len(left), len(right))

    def _products(self, inputs: Sequence[Tensor], rows: slice, room: Tensor | None = None) -> Tensor:
        """Inner products of a chunk's anchors with all references; rows of the matrix if the batch holds it."""
        if self.has_matrix:
            return inputs[0][rows]
        left, right = inputs[0][rows], inputs[self.factors - 1]
        if room is None:
            return multiply_rows(left, right, cancels=self.squares > 0)
        return torch.mm(left, right.T, out=room[: len(left)])

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
            by_products, *by_others = differentiate(results, of_rows, [products, *others])
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
        left, right = inputs[0][rows], inputs[self.factors - 1]
        if beats_torch(left, right):
            if of_left is not None:
                of_left[rows] += multiply_rows(by_products, right.T)
            if of_right is not None:
                of_right += multiply_columns(by_products, left)
            return
        if of_left is not None:
            torch.addmm(of_left[rows], by_products, right, out=of_left[rows])
        if of_right is not None:
            torch.addmm(of_right, by_products.T, left, out=of_right)

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
        return differentiate(results, grads, inputs, create_graph=True)
