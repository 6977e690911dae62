"""Computation on chunks, recomputed in the backward pass: one node of the graph for all chunks.

The forward pass keeps only the results of a chunk.  The backward pass recomputes each chunk, differentiates it, and adds
its gradients in place.  A graph per chunk would be small, but its tensors would be allocated between the matrices of
consecutive chunks, and a C library that cannot merge free memory would then take ten times the memory in use.

`likewise.engines.row_chunks` cuts the anchors of a batch, `likewise.engines.table_chunks` the rows of a table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils.checkpoint import checkpoint

from likewise._compat import is_transformed
from likewise.formula import ALIGNMENT, full_precision

Results = Sequence[Tensor | None]

BUDGET = {"cpu": 20 * 2**20, "cuda": 2**30}
"""The bytes that a chunk and its intermediate results may take, by kind of device; `count_busy_rows` may ask for more."""

COPIES = 10
"""The number of matrices of a chunk's size that are in memory at once in a backward pass."""

LEAST_ROWS = 16
"""The smallest number of rows of a chunk: a smaller chunk would read all references for too little work."""

ALIGNED_FROM = 64
"""Rows from which the number of rows of a chunk is a multiple of `likewise.formula.ALIGNMENT`."""

BUSY_ROWS = 4096
"""Rows of a table whose gradient keeps all multiprocessors of a GPU busy."""


def plan_chunks(
    rows: int, columns: int, like: Tensor, together: int = 1, *, copies: int | None = None, least: int | None = None
) -> list[slice]:
    """Chunks of the rows of a matrix, of equal size, as large as the budget of the device allows.

    Args:
        rows: the number of rows.
        columns: the number of entries that a row has.
        like: a tensor of the matrix's device and dtype.
        together: rows that must not be separated, such as the centers of one class.
        copies: the number of matrices of a chunk's size in memory at once; by default as many as a formula needs.
        least: the smallest number of rows of a chunk; by default large enough for a fast product.

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
    if height >= ALIGNED_FROM:
        height += -height % ALIGNMENT
    # a rank without rows has one empty chunk
    return [slice(k * together, min(k + height, units) * together) for k in range(0, max(units, 1), height)]


def count_busy_rows(columns: int, like: Tensor, together: int = 1) -> int:
    """Return the smallest number of rows of a table in a chunk: their gradient is a product with one row for each of them.

    A product of fewer rows would leave most of a GPU idle.  A chunk of so many rows takes at most a sixteenth of the memory
    of a GPU.

    Args:
        columns: the number of anchors.
        like: a tensor of the matrix's device and dtype.
        together: rows that must not be separated, which are counted as one.

    Examples:
        >>> count_busy_rows(10, torch.zeros(1)) == LEAST_ROWS
        True
    """
    if like.device.type != "cuda":
        return LEAST_ROWS
    memory = torch.cuda.get_device_properties(like.device).total_memory
    rows = min(BUSY_ROWS, memory // (16 * COPIES * max(columns, 1) * like.dtype.itemsize))
    return max(LEAST_ROWS, rows // together)


def call_recomputed(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function whose intermediate results are recomputed in the backward pass; it draws no random numbers.

    Examples:
        >>> import torch
        >>> call_recomputed(torch.exp, torch.zeros(1))
        tensor([1.])
    """
    # transforms differentiate during the computation, and intermediate results cannot be replaced
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


def recompute_in_backward(work: Work, results: list[Tensor], inputs: Sequence[Tensor]) -> list[Tensor]:
    """Results that were computed without a graph, differentiable: all chunks are one node, which computes them again."""
    return list(_Recomputed.apply(work, results, *inputs))  # type: ignore[no-untyped-call]


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


def differentiate(
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


class TouchesGraph(TorchFunctionMode):
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
