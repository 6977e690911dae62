"""The preprocessing of images that the weights of a network expect."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

ORDERS = {"RGB": 3, "BGR": 3, "L": 1}
"""Channel orders and their number of channels; ``L`` is gray."""

LARGEST = 4096
"""The largest side of an image in pixels, so that the card of a model cannot request unlimited memory."""


@dataclass(frozen=True)
class Preprocessing:
    """The scaling of pixels that a network expects: ``(x · white − mean) / std``, for ``x`` from 0 (black) to 1 (white).

    Calling it converts a batch of RGB or gray images to the input of the network, on the device of the batch and without
    synchronization.

    Args:
        mean: the mean of each channel, in the order of ``order``.
        std: the divisor of each channel.
        white: the value of white before the mean is subtracted: 1.0, or 255.0 for weights that were trained on bytes.
        order: the order of the channels: ``"RGB"``, ``"BGR"``, or ``"L"`` for gray.
        size: the side of the square images for which the weights were trained or published, in pixels.

    Examples:
        >>> import torch
        >>> lite = Preprocessing(mean=(127.0,) * 3, std=(128.0,) * 3, white=255.0)
        >>> lite(torch.tensor([255, 127, 0], dtype=torch.uint8).reshape(1, 3, 1, 1)).flatten()
        tensor([ 1.0000,  0.0000, -0.9922])
    """

    mean: tuple[float, ...] = (0.485, 0.456, 0.406)
    std: tuple[float, ...] = (0.229, 0.224, 0.225)
    white: float = 1.0
    order: str = "RGB"
    size: int = 224

    def __post_init__(self) -> None:
        if self.order not in ORDERS:
            raise ValueError(f"order must be one of {', '.join(map(repr, ORDERS))}, but it is {self.order!r}")
        for name in ("mean", "std"):
            values = tuple(float(value) for value in getattr(self, name))
            object.__setattr__(self, name, values)
            if len(values) != ORDERS[self.order]:
                raise ValueError(
                    f"{name} must have one number for each of {self.order}'s channels, but it has {len(values)}"
                )
        if not all(math.isfinite(value) and value > 0.0 for value in self.std):
            raise ValueError(f"std must be positive, but it is {self.std}")
        if not (math.isfinite(self.white) and self.white > 0.0):
            raise ValueError(f"white must be positive, but it is {self.white!r}")
        if isinstance(self.size, bool) or not isinstance(self.size, int) or not 1 <= self.size <= LARGEST:
            raise ValueError(f"size must be a whole number from 1 to {LARGEST:,}, but it is {self.size!r}")

    def __call__(self, images: Tensor) -> Tensor:
        """Scale images ``(B, C, H, W)`` or ``(C, H, W)``, given as bytes or as floats from 0 to 1."""
        channels = len(self.mean)
        if images.ndim not in (3, 4) or images.shape[-3] != channels:
            raise ValueError(
                f"images must have shape (B, {channels}, H, W) or ({channels}, H, W),"
                f" but the shape is {tuple(images.shape)}"
            )
        if images.dtype != torch.uint8 and not images.is_floating_point():
            raise TypeError(f"images must be uint8 or of a floating-point dtype, but the dtype is {images.dtype}")
        whole = 255.0 if images.dtype == torch.uint8 else 1.0
        if self.order == "BGR":
            images = images.flip(-3)
        if images.dtype == torch.uint8:
            images = images.to(torch.float32)
        scale = _per_channel([self.white / whole / std for std in self.std], images)
        shift = _per_channel([-mean / std for mean, std in zip(self.mean, self.std, strict=True)], images)
        return images * scale + shift

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as plain values, for JSON."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Preprocessing:
        """Create it from the result of `as_dict`."""
        plain_fields: dict[str, Any] = dict(fields)  # __post_init__ converts lists to tuples
        return cls(**plain_fields)


def _per_channel(values: list[float], images: Tensor) -> Tensor | float:
    """Return one number, or a tensor ``(C, 1, 1)`` that is created on the device: a copy from the host would synchronize."""
    if len(set(values)) == 1:
        return values[0]
    filled = [torch.full((1, 1), value, dtype=images.dtype, device=images.device) for value in values]
    return torch.stack(filled)


IMAGENET = Preprocessing()
"""The mean and deviation of ImageNet's pixels, which torchvision's weights expect."""


def plain(in_channels: int, size: int) -> Preprocessing:
    """Return the preprocessing of networks without published weights: pixels from −1 to 1.

    Examples:
        >>> plain(1, 32)
        Preprocessing(mean=(0.5,), std=(0.5,), white=1.0, order='L', size=32)
    """
    if in_channels not in (1, 3):
        raise ValueError(f"in_channels must be 1 or 3, but it is {in_channels!r}")
    half = (0.5,) * in_channels
    return Preprocessing(mean=half, std=half, order="L" if in_channels == 1 else "RGB", size=size)
