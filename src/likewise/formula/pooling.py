"""Pooling: the similarity of a sample to a class from the similarities to its centers.

A pooling is a value, a frozen dataclass that maps ``(m, classes, centers)`` to ``(m, classes)``, so that an engine can compute
it without calling it.  All of them reduce a middle dimension where they can, because torch reduces a short last dimension
row by row: there, a softmax over ten centers takes eighteen times as long.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch import Tensor

from likewise._compat import is_transformed

Pooling: TypeAlias = Callable[[Tensor], Tensor]
"""Maps similarities ``(m, classes, centers)`` to ``(m, classes)``."""


@dataclass(frozen=True)
class NearestCenter:
    """The highest similarity to a center; ties share the gradient.

    Examples:
        >>> import torch
        >>> NearestCenter()(torch.tensor([[[0.1, 0.3], [0.2, 0.0]]]))
        tensor([[0.3000, 0.2000]])
    """

    def __call__(self, similarities: Tensor) -> Tensor:
        """Pool ``(m, classes, centers)`` to ``(m, classes)``."""
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


@dataclass(frozen=True)
class BlendedCenters:
    r"""The mean similarity to the centers, weighted by $\mathrm{softmax}(s/T)$.

    Args:
        temperature: the temperature T.

    Examples:
        >>> import torch
        >>> BlendedCenters(1.0)(torch.tensor([[[0.0, 1.0]]]))
        tensor([[0.7311]])
    """

    temperature: float

    def __call__(self, similarities: Tensor) -> Tensor:
        """Pool ``(m, classes, centers)`` to ``(m, classes)``."""
        across = similarities.transpose(1, 2)
        return (torch.softmax(across / self.temperature, dim=1) * across).sum(dim=1)


@dataclass(frozen=True)
class SummedCenters:
    """The sum of the similarities to the centers.

    Examples:
        >>> import torch
        >>> SummedCenters()(torch.tensor([[[0.0, 1.0]]]))
        tensor([[1.]])
    """

    def __call__(self, similarities: Tensor) -> Tensor:
        """Pool ``(m, classes, centers)`` to ``(m, classes)``."""
        return similarities.sum(dim=2)
