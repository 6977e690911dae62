"""Weights and images from arithmetic on whole numbers: the same on every machine and with every version of torch."""

from __future__ import annotations

import zlib

import torch
from torch import Tensor, nn


def numbers(shape: tuple[int, ...] | torch.Size, seed: int) -> Tensor:
    """Numbers from 0 to 1 that look random: a hash of their position."""
    position = torch.arange(torch.Size(shape).numel(), dtype=torch.int64)
    mixed = ((position + 1) * 2654435761 + seed) & 0xFFFFFFFF
    for factor, shift in ((2246822519, 15), (3266489917, 13), (668265263, 16)):
        mixed = mixed ^ (mixed >> shift)
        mixed = (mixed * factor) & 0xFFFFFFFF
    return (mixed.double() / 2**32).float().reshape(shape)


def arithmetic_state(module: nn.Module) -> dict[str, Tensor]:
    """A state dict whose activations neither vanish nor explode; every tensor is seeded by its name."""
    state = {}
    for key, value in module.state_dict().items():
        unit = numbers(value.shape, zlib.crc32(key.encode()))
        if key.endswith("num_batches_tracked"):
            state[key] = torch.zeros_like(value)
        elif value.ndim == 4:
            state[key] = (2.0 * unit - 1.0) * (6.0 / value[0].numel()) ** 0.5
        elif key.endswith(("running_var", "weight")) and value.ndim == 1:
            state[key] = unit + 0.5
        else:
            state[key] = 0.2 * unit - 0.1
    return state


def arithmetic_images(*shape: int) -> Tensor:
    """Images from -1 to 1."""
    return 2.0 * numbers(shape, 7) - 1.0


def summary(maps: Tensor) -> list[float]:
    """Seven numbers of maps: mean, deviation, a mean that weighs the lower right more, and four channels' means."""
    rows, columns = (torch.linspace(0.0, 1.0, side) for side in maps.shape[2:])
    lower_right = (maps * rows[:, None] * columns).mean()
    means, middle = maps.mean(dim=(2, 3)), maps.shape[1] // 2
    chosen = [means[0, 0], means[0, middle], means[1, middle + 1], means[1, -1]]
    return [value.item() for value in (maps.mean(), maps.std(), lower_right, *chosen)]
