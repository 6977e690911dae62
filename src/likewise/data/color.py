"""Random color changes of a batch: torchvision's jitter, with separate factors for each image."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

LUMA = (0.299, 0.587, 0.114)
"""Weights of red, green and blue in gray (ITU-R 601, as in Pillow)."""


@dataclass(frozen=True)
class ColorJitter:
    """Random changes of brightness, contrast, saturation and hue, drawn separately for each image.

    The amounts have torchvision's distribution.  The caller chooses the order of the changes; `Augment` draws one per
    batch.

    Args:
        brightness: the factor is drawn from ``1 ± brightness``, not below 0.
        contrast: the same for the distance to the mean gray of the image.
        saturation: the same for the distance to the gray of each pixel.
        hue: largest rotation of the color wheel, at most half a turn: 0.5.

    Examples:
        >>> import torch
        >>> jitter = ColorJitter(brightness=0.5)
        >>> images = torch.full((2, 3, 4, 4), 0.5)
        >>> bright = jitter.apply(images, jitter.amounts(torch.rand(2, 4)), (0, 1, 2, 3))
        >>> bool(((bright >= 0.25) & (bright <= 0.75)).all()), bool(bright[0, 0, 0, 0] != bright[1, 0, 0, 0])
        (True, True)
    """

    brightness: float = 0.0
    contrast: float = 0.0
    saturation: float = 0.0
    hue: float = 0.0

    def __post_init__(self) -> None:
        for name in ("brightness", "contrast", "saturation", "hue"):
            value, most = getattr(self, name), 0.5 if name == "hue" else math.inf
            if not (0.0 <= value <= most and math.isfinite(value)):
                limit = "≥ 0.0" if name != "hue" else "between 0.0 and 0.5"
                raise ValueError(f"{name} must be {limit}, but it is {value!r}")

    def amounts(self, uniform: Tensor) -> Tensor:
        """Compute amounts ``(n, 4)`` from random numbers in [0, 1) of the same shape, on the host."""
        spread = torch.tensor([self.brightness, self.contrast, self.saturation, self.hue], dtype=torch.float64)
        least = torch.cat([(1.0 - spread[:3]).clamp_min(0.0), -spread[3:]])
        most = torch.cat([1.0 + spread[:3], spread[3:]])
        return (least + (most - least) * uniform).to(torch.float32)

    def apply(self, images: Tensor, amounts: Tensor, order: tuple[int, ...]) -> Tensor:
        """Change images ``(n, 3, h, w)`` with values from 0 to 1 by amounts on the same device."""
        spread = (self.brightness, self.contrast, self.saturation, self.hue)
        for step in order:
            if spread[step] > 0.0:
                images = CHANGES[step](images, amounts[:, step, None, None, None])
        return images


def gray(images: Tensor) -> Tensor:
    """Return the lightness of each pixel, ``(n, 1, h, w)``.

    Examples:
        >>> import torch
        >>> gray(torch.ones(1, 3, 1, 1)).item()
        1.0
    """
    red, green, blue = images.unbind(1)
    return (LUMA[0] * red + LUMA[1] * green + LUMA[2] * blue)[:, None]


def turn_hue(images: Tensor, turns: Tensor) -> Tensor:
    """Rotate the color wheel by a fraction of a turn; saturation and value (of HSV) stay.

    Examples:
        >>> import torch
        >>> red = torch.tensor([1.0, 0.0, 0.0]).reshape(1, 3, 1, 1)
        >>> turn_hue(red, torch.tensor(1.0 / 3.0)).flatten().round(decimals=3)
        tensor([0., 1., 0.])
    """
    red, green, blue = images.unbind(1)
    value, least = images.amax(1), images.amin(1)
    chroma = value - least
    safe = torch.where(chroma > 0.0, chroma, 1.0)
    sixth = torch.where(
        value == red,
        ((green - blue) / safe) % 6.0,
        torch.where(value == green, (blue - red) / safe + 2.0, (red - green) / safe + 4.0),
    )
    turned = sixth[:, None] + 6.0 * turns  # (n, 1, h, w) sixths of a turn
    # Each channel falls from value to minimum and rises again around the wheel; red, green and blue start 120° apart.
    wheel = (turned + (5.0 - 2.0 * torch.arange(3, device=images.device)).view(1, 3, 1, 1)) % 6.0
    return value[:, None] - chroma[:, None] * torch.minimum(wheel, 4.0 - wheel).clamp(0.0, 1.0)


def _brighten(images: Tensor, factors: Tensor) -> Tensor:
    return (images * factors).clamp(0.0, 1.0)


def _contrast(images: Tensor, factors: Tensor) -> Tensor:
    middle = gray(images).mean(dim=(1, 2, 3), keepdim=True)
    return (middle + (images - middle) * factors).clamp(0.0, 1.0)


def _saturate(images: Tensor, factors: Tensor) -> Tensor:
    pale = gray(images)
    return (pale + (images - pale) * factors).clamp(0.0, 1.0)


CHANGES: tuple[Callable[[Tensor, Tensor], Tensor], ...] = (_brighten, _contrast, _saturate, turn_hue)
