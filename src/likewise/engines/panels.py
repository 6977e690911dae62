"""A computation on panels, some anchors against all references each: one node of the graph for all of them.

The forward pass keeps nothing of a panel but its results; the backward pass makes each panel once more, differentiates
it, and adds what it owes to the embeddings to one gradient, in place.  A graph for each panel would be small, but would
lie between the matrices of one panel and those of the next: a C library that cannot join what is free takes new memory,
ten times as much as is in use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils.checkpoint import checkpoint

from likewise.formula import PairBatch, full_precision

Results = Sequence[Tensor | None]
Compute = Callable[[PairBatch, slice, Sequence[Tensor], bool], Results]


class Panels:
    """A computation on panels.

    Args:
        batch: the whole.
        cut: the rows of each panel.
        compute: maps a panel, the rows that it is, the numbers, and whether it is for the backward pass, to tensors with
            one row for each of the panel's anchors; for the backward pass those without a slope may be ``None``.
        numbers: what gets a gradient beside the similarities; ``None``: `compute` knows it, and nobody else.

    Examples:
        >>> import torch
        >>> from likewise.formula import Cosine, Labels, PairBatch
        >>> batch = PairBatch(Labels(torch.tensor([0, 1])), Cosine(), anchors=torch.eye(2))
        >>> cut = [slice(0, 1), slice(1, 2)]
        >>> Panels(batch, cut, lambda panel, rows, numbers, back: [panel.similarities().sum(dim=1)]).run()
        [tensor([1., 1.])]
    """

    def __init__(
        self, batch: PairBatch, cut: list[slice], compute: Compute, numbers: Sequence[Tensor] | None = None
    ) -> None:
        self.batch, self.cut, self.compute = batch, cut, compute
        self.closed = numbers is not None
        self.is_matrix = batch.is_matrix
        squares: list[Tensor] = []
        if self.is_matrix:
            factors = [batch.similarities()]
        else:
            left, right = batch.factors()  # once for all panels, with its graph
            factors = [left] if right is left else [left, right]
            assert batch.similarity is not None
            if batch.similarity.uses_squares:
                squares = [batch.similarity.squares(each) for each in factors]
        self.factors, self.squares = len(factors), len(squares)
        self.inputs = [*factors, *squares, *(numbers or ())]

    def run(self) -> list[Tensor]:
        """The tensors of all panels, one under the other."""
        if torch.compiler.is_compiling():
            return self._one_by_one()
        if not torch.is_grad_enabled():
            return self._values(None)
        touched = None if self.closed else _Touched()
        with torch.no_grad():
            results = self._values(touched)
        if touched is not None and touched.graph:
            return self._one_by_one()
        return list(_InPanels.apply(self, results, *self.inputs))  # type: ignore[no-untyped-call]

    def _one_by_one(self) -> list[Tensor]:
        """Each panel as a node of its own, which finds out by itself what `compute` took from elsewhere."""
        numbers, pieces = self.inputs[self.factors + self.squares :], []
        for rows in self.cut:

            def of_rows(rows: slice = rows) -> Results:
                return self.compute(self.batch.rows(rows), rows, numbers, False)

            if torch.is_grad_enabled():
                # nothing is drawn in a panel, and saving the state of a GPU's generator would wait for the GPU
                pieces.append(
                    checkpoint(of_rows, use_reentrant=False, preserve_rng_state=False, determinism_check="none")
                )
            else:
                pieces.append(of_rows())
        return [torch.cat(vectors) for vectors in zip(*pieces, strict=True)]

    def _values(self, touched: _Touched | None) -> list[Tensor]:
        """The results, without a graph; none where something was touched that has one."""
        wholes: list[Tensor] = []
        room, others = self._room(), self.inputs[self.factors :]
        for rows in self.cut:
            panel = self._panel(self._products(self.inputs, rows, room), rows, others)
            with touched or nullcontext():
                pieces = self.compute(panel, rows, others[self.squares :], False)
            if touched is not None and touched.graph:
                break
            for k, piece in enumerate(pieces):
                assert piece is not None
                if k == len(wholes):
                    wholes.append(piece.new_empty(self.batch.shape[0], *piece.shape[1:]))
                wholes[k][rows] = piece
        return wholes

    def _room(self) -> Tensor | None:
        """Where the products of all panels are written, one after the other."""
        if self.is_matrix:
            return None
        return self.inputs[0].new_empty(self.cut[0].stop - self.cut[0].start, self.batch.shape[1])

    def _products(self, inputs: Sequence[Tensor], rows: slice, room: Tensor | None = None) -> Tensor:
        """Of a panel's anchors with all references; where the matrix is there, its rows."""
        if self.is_matrix:
            return inputs[0][rows]
        left, right = inputs[0][rows], inputs[self.factors - 1]
        return left @ right.T if room is None else torch.mm(left, right.T, out=room[: len(left)])

    def _panel(self, products: Tensor, rows: slice, others: Sequence[Tensor]) -> PairBatch:
        """Some rows of the batch, with the similarities that these products make."""
        with torch.enable_grad():  # what is cut out of something with a graph has one, and is not touched unseen
            panel = self.batch.rows(rows)
        if not self.is_matrix:
            assert panel.similarity is not None
            left = right = products.new_empty(0)
            if self.squares:
                left, right = others[0][rows, None], others[self.squares - 1][None, :]
            products = panel.similarity.link(products, left, right)
        panel._similarities = products
        return panel

    def slopes(self, inputs: Sequence[Tensor], needs: Sequence[bool], grads: Results) -> list[Tensor | None]:
        """The gradients of the inputs that need one, panel after panel added up in place."""
        found = [torch.zeros_like(each) if need else None for each, need in zip(inputs, needs, strict=True)]
        others = [each.detach().requires_grad_(need) for each, need in zip(inputs, needs, strict=True)][self.factors :]
        room = self._room()
        for rows in self.cut:
            products = self._products(inputs, rows, room).detach().requires_grad_(any(needs[: self.factors]))
            with torch.enable_grad():
                panel = self._panel(products, rows, others)
                results = self.compute(panel, rows, others[self.squares :], True)
            of_rows = [None if grad is None else grad[rows] for grad in grads]
            slope, *of_others = _gradients(results, of_rows, [products, *others])
            del panel, results
            if slope is not None:
                self._pass_on(slope, rows, inputs, found)
            for total, grad in zip(found[self.factors :], of_others, strict=True):
                if total is not None and grad is not None:
                    total += grad
            del slope  # before the next one is made
        return found

    def _pass_on(self, slope: Tensor, rows: slice, inputs: Sequence[Tensor], found: Results) -> None:
        """From a panel's products to both their factors."""
        of_left, of_right = found[0], found[self.factors - 1]
        if self.is_matrix:
            assert of_left is not None
            of_left[rows] = slope
            return
        if of_left is not None:
            torch.addmm(of_left[rows], slope, inputs[self.factors - 1], out=of_left[rows])
        if of_right is not None:
            torch.addmm(of_right, slope.T, inputs[0][rows], out=of_right)

    def slopes_with_graph(self, inputs: Sequence[Tensor], needs: Sequence[bool], grads: Results) -> list[Tensor | None]:
        """The same for somebody who differentiates again; the whole matrix is kept in pieces."""
        # aliases, because one input may depend on another, and what it owes to it is passed on elsewhere
        inputs = [each.view_as(each) if need else each.detach() for each, need in zip(inputs, needs, strict=True)]
        others, pieces = inputs[self.factors :], []
        for rows in self.cut:
            panel = self._panel(self._products(inputs, rows), rows, others)
            pieces.append(self.compute(panel, rows, others[self.squares :], False))
        results = [torch.cat(each) for each in zip(*pieces, strict=True)]
        return _gradients(results, grads, inputs, again=True)


def _gradients(
    results: Results, grads: Results, inputs: Sequence[Tensor], *, again: bool = False
) -> list[Tensor | None]:
    """The gradients of the inputs that want one; a result may be a constant (a peak, a count)."""
    with torch.enable_grad():
        sums = [
            (result * grad).sum()
            for result, grad in zip(results, grads, strict=True)
            if result is not None and grad is not None and result.requires_grad
        ]
        wanted = [each for each in inputs if each.requires_grad]
        if not sums or not wanted:
            return [None] * len(inputs)
        # one number, because torch imports sympy, 25 MiB and a second, for whoever gives it gradients to start with
        end = sum(sums[1:], sums[0])
    found = iter(torch.autograd.grad(end, wanted, allow_unused=True, create_graph=again))
    return [next(found) if each.requires_grad else None for each in inputs]


class _InPanels(torch.autograd.Function):
    """All panels as one node of the graph."""

    @staticmethod
    def forward(ctx: Any, work: Panels, results: list[Tensor], *inputs: Tensor) -> tuple[Tensor, ...]:
        ctx.work = work
        ctx.save_for_backward(*inputs)
        ctx.set_materialize_grads(False)
        ctx.mark_non_differentiable(*[each for each in results if not each.is_floating_point()])
        return tuple(results)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Any, ...]:
        inputs = ctx.saved_tensors
        slopes = ctx.work.slopes_with_graph if torch.is_grad_enabled() else ctx.work.slopes
        with full_precision(inputs[0]):
            return None, None, *slopes(inputs, ctx.needs_input_grad[2:], grads)


class _Touched(TorchFunctionMode):
    """Whether somebody who builds no graph computes with a tensor that has one: it comes from outside of the panel."""

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
