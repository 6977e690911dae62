"""A batch sampler for images with several labels each."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from torch import Tensor

from likewise.data.random_source import Array, Deck, RandomSource, whole_number
from likewise.data.samplers import ResumableSampler, check_divisible, check_enough_classes, checksum


class MultiLabelSampler(ResumableSampler):
    """Batches of some labels and the same number of images per label: ``classes`` x ``per_class`` images, label by label.

    An image with several labels may be drawn for any of them.  It occurs once in a batch, unless the labels of the batch
    have too few images.  A label with fewer than two images is never drawn.

    Args:
        tags: labels of each image, ``(n, C)`` booleans.
        classes: number of different labels in a batch.
        per_class: number of images drawn for each label.
        steps: batches per epoch; by default, the number of images divided by the batch size, at least 1.
        seed: seed of all random choices.
        rank: rank of this process; it gets the images of whole labels.
        world_size: number of processes over which each batch is split.

    Examples:
        >>> import torch
        >>> tags = torch.tensor([[1, 0, 1], [1, 1, 0], [0, 1, 0], [0, 1, 1], [1, 0, 0], [0, 0, 1]]).bool()
        >>> batch = next(iter(MultiLabelSampler(tags, classes=2, per_class=2)))
        >>> len(set(batch))
        4
    """

    def __init__(
        self,
        tags: Tensor | Array,
        *,
        classes: int = 32,
        per_class: int = 4,
        steps: int | None = None,
        seed: int = 0,
        rank: int = 0,
        world_size: int = 1,
    ):
        marked = tags.detach().cpu().numpy() if isinstance(tags, Tensor) else np.asarray(tags)
        if marked.ndim != 2 or marked.dtype != np.bool_ or not len(marked):
            raise TypeError(
                f"tags must be booleans of shape (n, C), but they are {marked.dtype} of shape {marked.shape}"
            )
        self.classes, self.per_class = whole_number("classes", classes, 1), whole_number("per_class", per_class, 1)
        super().__init__(
            np.unique(marked, axis=0, return_inverse=True)[1].reshape(-1),
            batch_size=classes * per_class,
            settings={"classes": self.classes, "per_class": self.per_class, "tags": checksum(marked)},
            steps=steps,
            seed=seed,
            rank=rank,
            world_size=world_size,
        )
        self._images = [images for images in map(np.flatnonzero, marked.T) if len(images) > 1]
        check_enough_classes(classes, len(self._images), "with two images or more")
        check_divisible("classes", classes, "world_size", world_size)

    def _batches(self, source: RandomSource) -> Iterator[list[int]]:
        decks = [Deck(images, source) for images in self._images]
        labels = Deck(np.arange(len(decks)), source)
        while True:
            batch: list[int] = []
            for label in labels.deal(self.classes):
                batch += self._draw(decks[label], len(self._images[label]), set(batch))
            yield batch

    def _draw(self, deck: Deck, size: int, taken: set[int]) -> list[int]:
        """Draw images of one label, first those that are not in the batch yet."""
        seen: list[int] = []
        fresh: list[int] = []
        while len(fresh) < self.per_class and len(seen) < 2 * size:
            (image,) = deck.deal(1)
            seen.append(image)
            if image not in taken and image not in fresh:
                fresh.append(image)
        return (fresh + seen + seen * self.per_class)[: self.per_class]
