"""A gradient that is a number to torch, not a function: it cannot be differentiated again, and says so."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

Gradients = tuple[Tensor | None, ...]


def once(backward: Callable[..., Gradients]) -> Callable[..., Gradients]:
    """A backward pass whose gradients refuse to be differentiated.

    torch's own ``once_differentiable`` takes a gradient whose incoming one is a constant for a constant itself: a penalty
    on it would be silently left out.
    """

    @functools.wraps(backward)
    def wrapper(ctx: Any, *gradients: Tensor | None) -> Gradients:
        if not torch.is_grad_enabled():
            return backward(ctx, *gradients)
        with torch.no_grad():
            found = backward(ctx, *gradients)
        return tuple(None if x is None else _Refuses.apply(x.detach().requires_grad_()) for x in found)  # type: ignore[no-untyped-call]

    return wrapper


class _Refuses(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, gradient: Tensor) -> Tensor:
        return gradient.view_as(gradient)

    @staticmethod
    def backward(ctx: Any, *_gradients: Tensor) -> None:
        raise RuntimeError("the Triton engine's gradient cannot be differentiated again; give backend='dense'")
