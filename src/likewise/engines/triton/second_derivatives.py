"""Gradients that raise an error when they are differentiated again."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

Gradients = tuple[Tensor | None, ...]


def refuse_second_derivative(backward: Callable[..., Gradients]) -> Callable[..., Gradients]:
    """Decorate a backward pass so that differentiating its gradients raises an error.

    torch's ``once_differentiable`` treats the gradients as constants if the incoming gradient is a constant: a penalty on
    them would have no effect, silently.
    """

    @functools.wraps(backward)
    def wrapper(ctx: Any, *gradients: Tensor | None) -> Gradients:
        if not torch.is_grad_enabled():
            return backward(ctx, *gradients)
        # what the gradients depend on, so that no derivative by it leaves this node out
        inputs = [each for each in (*ctx.saved_tensors, *gradients) if each is not None and each.requires_grad]
        with torch.no_grad():
            results = backward(ctx, *gradients)
        return tuple(None if x is None else _Refuse.apply(x, *inputs) for x in results)  # type: ignore[no-untyped-call]

    return wrapper


class _Refuse(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, gradient: Tensor, *inputs: Tensor) -> Tensor:
        return gradient.view_as(gradient)

    @staticmethod
    def backward(ctx: Any, *_gradients: Tensor) -> None:
        raise RuntimeError("the Triton engine's gradient cannot be differentiated again; give backend='dense'")
