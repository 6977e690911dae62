"""Poolings, which reduce feature maps ``(B, C, H, W)`` to vectors ``(B, C)``."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn


class AveragePool(nn.Module):
    """Average pooling over the whole feature map.

    Examples:
        >>> import torch
        >>> AveragePool()(torch.tensor([[[[1.0, 3.0]]]]))
        tensor([[2.]])
    """

    def forward(self, maps: Tensor) -> Tensor:
        """``(B, C, H, W)`` to ``(B, C)``."""
        return maps.mean(dim=(2, 3))


class MaxPool(nn.Module):
    """Max pooling over the whole feature map.

    Examples:
        >>> import torch
        >>> MaxPool()(torch.tensor([[[[1.0, 3.0]]]]))
        tensor([[3.]])
    """

    def forward(self, maps: Tensor) -> Tensor:
        """``(B, C, H, W)`` to ``(B, C)``."""
        return maps.amax(dim=(2, 3))


class AveragePlusMaxPool(nn.Module):
    """The sum of average and max pooling, as in the code of the authors of Proxy-Anchor (Kim et al. 2020).

    Examples:
        >>> import torch
        >>> AveragePlusMaxPool()(torch.tensor([[[[1.0, 3.0]]]]))
        tensor([[5.]])
    """

    def forward(self, maps: Tensor) -> Tensor:
        """``(B, C, H, W)`` to ``(B, C)``."""
        return maps.mean(dim=(2, 3)) + maps.amax(dim=(2, 3))


class GeneralizedMeanPool(nn.Module):
    """Generalized mean pooling, ``(mean x^p)^{1/p}`` (Radenović et al. 2018): the average for p = 1, the maximum for p → ∞.

    Args:
        p: the initial exponent; it is learned.
        least: smaller values are clamped to this minimum.

    Examples:
        >>> import torch
        >>> GeneralizedMeanPool(p=2.0)(torch.tensor([[[[1.0, 7.0]]]])).detach()
        tensor([[5.]])
    """

    def __init__(self, p: float = 3.0, least: float = 1e-6) -> None:
        super().__init__()
        self.p = nn.Parameter(torch.tensor(p))
        self.least = least

    def forward(self, maps: Tensor) -> Tensor:
        """``(B, C, H, W)`` to ``(B, C)``; computed in float32, because powers overflow in half precision."""
        powers = maps.to(torch.promote_types(maps.dtype, torch.float32)).clamp_min(self.least).pow(self.p)
        return powers.mean(dim=(2, 3)).pow(1.0 / self.p).to(maps.dtype)


POOLS: Mapping[str, Callable[[], nn.Module]] = {
    "avg": AveragePool,
    "max": MaxPool,
    "avg+max": AveragePlusMaxPool,
    "gem": GeneralizedMeanPool,
}
"""The poolings of an `Embedder`, by name."""
