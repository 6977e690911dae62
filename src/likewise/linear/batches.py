"""Mini-batches of some points of some classes, drawn on the device."""

from __future__ import annotations

import torch
from torch import Tensor

PER_CLASS = 4
"""The number of points per class in a mini-batch."""


class ClassBatches:
    """Draws batches of four points from each of ``size / 4`` random classes; all points of a smaller class.

    Args:
        labels: the class of every point, from 0, ``(n,)``, on the device where indices are drawn.
        size: the number of points of a batch.
        seed: the seed of the draws.

    Examples:
        >>> batches = ClassBatches(torch.arange(40) % 5, 8, 0)
        >>> batches.draw().shape
        torch.Size([8])
    """

    def __init__(self, labels: Tensor, size: int, seed: int) -> None:
        self.labels = labels
        self.sizes = labels.bincount()
        self.starts = self.sizes.cumsum(0) - self.sizes
        self.classes = max(1, min(size // PER_CLASS, len(self.sizes)))
        self.has_small = bool((self.sizes < PER_CLASS).any())
        self.generator = torch.Generator(labels.device).manual_seed(seed)
        self.order, self.left = labels.new_empty(0), 0

    def draw(self) -> Tensor:
        """Indices of the points of a batch."""
        device = self.labels.device
        if self.left <= 0:
            shuffled = torch.randperm(len(self.labels), generator=self.generator, device=device)
            self.order = shuffled[self.labels[shuffled].argsort(stable=True)]
            self.left = len(self.labels)
        chosen = torch.randperm(len(self.sizes), generator=self.generator, device=device)[: self.classes]
        sizes = self.sizes[chosen, None]
        first = torch.rand(self.classes, 1, generator=self.generator, device=device, dtype=torch.float64) * sizes
        steps = torch.arange(PER_CLASS, device=device)
        places = self.starts[chosen, None] + (first.long() + steps) % sizes
        places = places[steps < sizes] if self.has_small else places.ravel()
        self.left -= len(places)
        return self.order[places]
