"""Unit vectors: rows scaled to length one."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from likewise._compat import is_transformed
from likewise.formula.checks import can_read_values

_ORDINARY = (1e-12, 1e12)
"""The norms whose squares are far from overflow and underflow in float32."""


def unit(vectors: Tensor) -> Tensor:
    """Scale each row to length one.

    A row of zeros has no direction: it stays zero and does not get a gradient.  If norms are extreme or cannot be read, each
    row is first divided by a power of two near its largest entry, so that the norm of a finite row neither overflows nor
    underflows.  The division is exact, so contiguous rows give the same bits with and without it, except in recorded graphs.

    Examples:
        >>> import torch
        >>> unit(torch.tensor([[3.0, 4.0], [0.0, 0.0], [3e30, 4e30]]))
        tensor([[0.6000, 0.8000],
                [0.0000, 0.0000],
                [0.6000, 0.8000]])
    """
    if is_transformed():
        return _unit_and_norm(vectors, _power_below(vectors.detach()))[0]
    result: Tensor = _Unit.apply(vectors)  # type: ignore[no-untyped-call]
    return result


class _Unit(torch.autograd.Function):
    """``u = x / ‖x‖`` and its gradient ``(g − u (u·g)) / ‖x‖``, in two divisions so that ``‖x‖`` itself is never formed."""

    @staticmethod
    def forward(ctx: Any, vectors: Tensor) -> Tensor:
        norm = _ordinary_norm(vectors)
        if norm is not None:
            power, units = None, vectors / norm
        else:
            power = _power_below(vectors)
            units, norm = _unit_and_norm(vectors, power)
        ctx.save_for_backward(vectors, power, units, norm)
        return units

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        vectors, power, units, norm = ctx.saved_tensors
        again = torch.is_grad_enabled()
        if again:  # second derivative: recompute them from the inputs
            units, norm = _unit_and_norm(vectors, power)
        along = (units * grad).sum(dim=1, keepdim=True)
        tangent: Tensor = torch.addcmul(grad, units, along, value=-1.0)
        # memory may not suffice for three copies of a large batch
        tangent = tangent / norm if again else tangent.div_(norm)
        if power is None:
            return tangent
        return tangent / power if again else tangent.div_(power)


def _ordinary_norm(vectors: Tensor) -> Tensor | None:
    """The norms of all rows, if they can be read and none is extreme; otherwise ``None``."""
    is_wide = vectors.dtype in (torch.float32, torch.float64) and vectors.numel() > 0
    if not is_wide or not can_read_values(vectors) or torch.jit.is_tracing():  # type: ignore[attr-defined, no-untyped-call]
        return None
    norm: Tensor = torch.linalg.vector_norm(vectors, dim=1, keepdim=True)
    least, most = torch.aminmax(norm)
    return norm if _ORDINARY[0] < least.item() and most.item() < _ORDINARY[1] else None


_EXPONENTS = {
    torch.float16: (torch.int16, 0x7C00),
    torch.bfloat16: (torch.int16, 0x7F80),
    torch.float32: (torch.int32, 0x7F800000),
    torch.float64: (torch.int64, 0x7FF0000000000000),
}
"""The integer type of each dtype's bits, and the bits of its exponent."""


def _power_below(vectors: Tensor) -> Tensor:
    """The largest power of two up to each row's largest entry; infinity for a row of zeros or denormal numbers.

    A graph of operations gets the largest entry itself: exporters have no operation that reads the bits of a number.
    """
    power = vectors.abs().amax(dim=1, keepdim=True)  # as a norm it would take ten times as long
    if not (torch.jit.is_tracing() or torch.compiler.is_compiling()):  # type: ignore[attr-defined, no-untyped-call]
        integer, exponent = _EXPONENTS[vectors.dtype]
        power = power.view(integer).bitwise_and(exponent).view(vectors.dtype)
    # division by infinity makes the value and the gradient of a row of zeros zero
    return power.masked_fill(power < torch.finfo(vectors.dtype).tiny, torch.inf)


def _unit_and_norm(vectors: Tensor, power: Tensor | None) -> tuple[Tensor, Tensor]:
    """The unit vectors, and the norms of the rows divided by the powers; ``None``: of the rows themselves."""
    if power is None:
        norm = torch.linalg.vector_norm(vectors, dim=1, keepdim=True)
        return vectors / norm, norm
    scaled = vectors / power
    # at least one for a row that is not zero, so the floor changes only rows of zeros
    norm = torch.linalg.vector_norm(scaled, dim=1, keepdim=True).clamp_min(1.0)
    return scaled / norm, norm
