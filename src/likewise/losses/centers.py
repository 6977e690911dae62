"""Pooling functions: the similarity of a sample to a class from the similarities to its centers.

Both functions reduce a middle dimension where they can, because torch reduces a short last dimension row by row: there,
a softmax over ten centers takes eighteen times as long.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from likewise._compat import is_transformed
from likewise.engines import blend


def nearest_center(similarities: Tensor) -> Tensor:
    """Return the highest similarity to a center, ``(m, classes, centers) -> (m, classes)``; ties share the gradient.

    Examples:
        >>> import torch
        >>> nearest_center(torch.tensor([[[0.1, 0.3], [0.2, 0.0]]]))
        tensor([[0.3000, 0.2000]])
    """
    if is_transformed():
        return similarities.amax(dim=2)
    best: Tensor = _Nearest.apply(similarities)  # type: ignore[no-untyped-call]
    return best


class _Nearest(torch.autograd.Function):
    """``amax`` with an explicit derivative; torch's derivative multiplies by booleans, which is slow on a CPU."""

    @staticmethod
    def forward(ctx: Any, similarities: Tensor) -> Tensor:
        best = similarities.amax(dim=2)
        ctx.save_for_backward(similarities, best)
        return best

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        similarities, best = (each.detach() for each in ctx.saved_tensors)
        reach = similarities.clone().eq_(best[:, :, None])  # 1 where the maximum is reached
        shared: Tensor = reach * (grad / reach.sum(dim=2))[:, :, None]
        return shared


def blend_centers(similarities: Tensor, temperature: float) -> Tensor:
    """Return the mean similarity to the centers, weighted by their softmax, ``(m, classes, centers) -> (m, classes)``.

    Examples:
        >>> import torch
        >>> blend_centers(torch.tensor([[[0.0, 1.0]]]), temperature=1.0)
        tensor([[0.7311]])
    """
    return blend(similarities.transpose(1, 2), temperature)
