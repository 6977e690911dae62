"""From a feature map ``(B, C, H, W)`` to one vector ``(B, C)`` for each image."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn


class AveragePool(nn.Module):
    """The mean over the map.

    Examples:
        >>> import torch
        >>> AveragePool()(torch.tensor([[[[1.0, 3.0]]]]))
        tensor([[2.]])
    """

    def forward(self, maps: Tensor) -> Tensor:
        """``(B, C, H, W)`` to ``(B, C)``."""
        return maps.mean(dim=(2, 3))


class MaxPool(nn.Module):
    """The largest value of the map.

    Examples:
        >>> import torch
        >>> MaxPool()(torch.tensor([[[[1.0, 3.0]]]]))
        tensor([[3.]])
    """

    def forward(self, maps: Tensor) -> Tensor:
        """``(B, C, H, W)`` to ``(B, C)``."""
        return maps.amax(dim=(2, 3))


class AveragePlusMaxPool(nn.Module):
    """The sum of the mean and the largest value, as in the authors' code of Proxy-Anchor (Kim et al. 2020).

    Examples:
        >>> import torch
        >>> AveragePlusMaxPool()(torch.tensor([[[[1.0, 3.0]]]]))
        tensor([[5.]])
    """

    def forward(self, maps: Tensor) -> Tensor:
        """``(B, C, H, W)`` to ``(B, C)``."""
        return maps.mean(dim=(2, 3)) + maps.amax(dim=(2, 3))


class GeneralizedMeanPool(nn.Module):
    """The mean of powers ``(mean x^p)^{1/p}`` (Radenović et al. 2018): the average for p = 1, near the maximum for large p.

    Args:
        p: the power to start from; it is learned.
        least: minimum to which smaller values are clamped.

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
        """``(B, C, H, W)`` to ``(B, C)``, in float32: cubes leave the range of half precision."""
        powers = maps.to(torch.promote_types(maps.dtype, torch.float32)).clamp_min(self.least).pow(self.p)
        return powers.mean(dim=(2, 3)).pow(1.0 / self.p).to(maps.dtype)


POOLS: Mapping[str, Callable[[], nn.Module]] = {
    "avg": AveragePool,
    "max": MaxPool,
    "avg+max": AveragePlusMaxPool,
    "gem": GeneralizedMeanPool,
}
"""Names of the poolings of an `Embedder`."""
