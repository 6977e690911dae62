"""Trunks for vectors: a linear map and a multilayer perceptron; small images are flattened."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from likewise.trunks.preprocessing import plain
from likewise.trunks.trunk import Trunk
from likewise.trunks.weights import WeightsLike, with_weights

SIDE = 32


class Perceptron(Trunk):
    """Linear layers with ReLU between them, for vectors ``(B, in_features)`` or images.

    Images are averaged to 32 × 32 pixels and flattened.

    Args:
        name: the name for `likewise.trunks.build`.
        widths: the widths of the layers.
        in_channels: the number of channels of images.
        in_features: the size of vectors; ``None``: the inputs are images.

    Examples:
        >>> import torch
        >>> mlp(in_features=20)(torch.zeros(2, 20)).shape, mlp()(torch.zeros(2, 1, 64, 64)).shape
        (torch.Size([2, 512]), torch.Size([2, 512]))
    """

    def __init__(self, name: str, widths: tuple[int, ...], *, in_channels: int, in_features: int | None) -> None:
        super().__init__(name, in_channels=in_channels, out_features=widths[-1], preprocessing=plain(in_channels, SIDE))
        if in_features is not None and (isinstance(in_features, bool) or in_features < 1):
            raise ValueError(f"in_features must be a whole number ≥ 1 or None, but it is {in_features!r}")
        self.in_features = in_features
        sizes = (in_channels * SIDE * SIDE if in_features is None else in_features, *widths)
        self.layers = nn.ModuleList(nn.Linear(*pair) for pair in pairwise(sizes))

    def recipe(self) -> dict[str, Any]:
        """Return the recipe, with the size of vectors if the inputs are vectors."""
        return super().recipe() | ({} if self.in_features is None else {"in_features": self.in_features})

    def forward(self, inputs: Tensor) -> Tensor:
        """Compute vectors ``(B, out_features)``."""
        if self.in_features is None:
            x = F.adaptive_avg_pool2d(self.checked(inputs), SIDE).flatten(1)
        elif inputs.ndim == 2 and inputs.shape[1] == self.in_features:
            x = inputs
        else:
            raise ValueError(f"inputs must have shape (B, {self.in_features}), but the shape is {tuple(inputs.shape)}")
        for place, layer in enumerate(self.layers):
            x = layer(F.relu(x) if place else x)
        return x


def linear(*, weights: WeightsLike = None, in_channels: int = 1, in_features: int | None = None) -> Perceptron:
    """One linear map to 256 features; with ``head="none"`` it is linear metric learning with any loss.

    Args:
        weights: a file, or `Weights`; ``None``: random weights.
        in_channels: the number of channels of images, 1 or 3.
        in_features: the size of vectors; ``None``: the inputs are images.

    Examples:
        >>> linear(in_features=13).out_features
        256
    """
    return with_weights(Perceptron("linear", (256,), in_channels=in_channels, in_features=in_features), weights, {})


def mlp(*, weights: WeightsLike = None, in_channels: int = 1, in_features: int | None = None) -> Perceptron:
    """A multilayer perceptron with two layers of 512.

    Args:
        weights: a file, or `Weights`; ``None``: random weights.
        in_channels: the number of channels of images, 1 or 3.
        in_features: the size of vectors; ``None``: the inputs are images.

    Examples:
        >>> mlp(in_features=13).out_features
        512
    """
    return with_weights(Perceptron("mlp", (512, 512), in_channels=in_channels, in_features=in_features), weights, {})
