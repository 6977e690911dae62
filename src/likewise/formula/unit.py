"""Unit vectors: rows scaled to length one."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from likewise._compat import is_transformed


def unit(vectors: Tensor) -> Tensor:
    """Scale each row to length one.

    A row of zeros has no direction: it stays zero and does not get a gradient.  Rows are first divided by their largest
    entry, so that the norm of a finite row neither overflows nor underflows.

    Examples:
        >>> import torch
        >>> unit(torch.tensor([[3.0, 4.0], [0.0, 0.0], [3e30, 4e30]]))
        tensor([[0.6000, 0.8000],
                [0.0000, 0.0000],
                [0.6000, 0.8000]])
    """
    if is_transformed():
        return _unit_and_norm(vectors, _largest_entry(vectors.detach()))[0]
    result: Tensor = _Unit.apply(vectors)  # type: ignore[no-untyped-call]
    return result


class _Unit(torch.autograd.Function):
    """``u = x / ‖x‖`` and its gradient ``(g − u (u·g)) / ‖x‖``, in two divisions so that ``‖x‖`` itself is never formed."""

    @staticmethod
    def forward(ctx: Any, vectors: Tensor) -> Tensor:
        largest = _largest_entry(vectors)
        units, norm = _unit_and_norm(vectors, largest)
        ctx.save_for_backward(vectors, largest, units, norm)
        return units

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        vectors, largest, units, norm = ctx.saved_tensors
        again = torch.is_grad_enabled()
        if again:  # second derivative: recompute them from the inputs
            units, norm = _unit_and_norm(vectors, largest)
        along = (units * grad).sum(dim=1, keepdim=True)
        tangent: Tensor = torch.addcmul(grad, units, along, value=-1.0)
        # memory may not suffice for three copies of a large batch
        return tangent / norm / largest if again else tangent.div_(norm).div_(largest)


def _largest_entry(vectors: Tensor) -> Tensor:
    largest = vectors.abs().amax(dim=1, keepdim=True)  # as a norm it would take ten times as long
    # division by infinity makes the value and the gradient of a row of zeros zero
    return largest.masked_fill(largest < torch.finfo(vectors.dtype).tiny, torch.inf)


def _unit_and_norm(vectors: Tensor, largest: Tensor) -> tuple[Tensor, Tensor]:
    scaled = vectors / largest
    # at least one for a row that is not zero, so the floor changes only rows of zeros
    norm = torch.linalg.vector_norm(scaled, dim=1, keepdim=True).clamp_min(1.0)
    return scaled / norm, norm
