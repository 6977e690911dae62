"""Random batches for comparisons of losses: ordinary and extreme ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn


class Batch(NamedTuple):
    """Embeddings in float64 and their labels.

    Examples:
        >>> next(random_batches(1, classes=2, dim=3)).embeddings.dtype
        torch.float64
    """

    embeddings: Tensor
    labels: Tensor


TIGHT = (1.0, 0.3, 1e-2, 1e-4)
"""The standard deviations of a class around its center, whose entries are of the order of one."""

CLOSE = (1.0, 0.3, 1e-2)
"""The scales of the centers of classes."""


def random_batches(number: int, *, classes: int = 5, dim: int = 8, seed: int = 0) -> Iterator[Batch]:
    """Draw batches of 4 to 24 samples, with classes of any size, loose or tight, separated or overlapping.

    Every fourth batch has shuffled labels: its positives are not more similar than its negatives.

    Args:
        number: the number of batches.
        classes: labels are 0 … classes − 1; a batch need not contain all of them.
        dim: the dimension of the embeddings.
        seed: the seed of the random numbers.

    Examples:
        >>> [len(batch.labels) for batch in random_batches(3, seed=1)]
        [11, 21, 7]
    """
    generator = torch.Generator().manual_seed(seed)

    def pick(high: int) -> int:
        return int(torch.randint(high, (), generator=generator))

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    for index in range(number):
        size = 4 + pick(21)
        labels = torch.randint(2 + pick(max(classes - 1, 1)), (size,), generator=generator) % classes
        centers = normal(1, dim) + CLOSE[pick(len(CLOSE))] * normal(classes, dim)
        lengths = torch.exp(0.5 * normal(size, 1))
        embeddings = lengths * (centers[labels] + TIGHT[pick(len(TIGHT))] * normal(size, dim))
        if index % 4 == 3:
            labels = labels[torch.randperm(size, generator=generator)]
        yield Batch(embeddings, labels)


def sizes_for(*losses: Any) -> tuple[int, int]:
    """Return the numbers of classes and dimensions of a batch that several losses accept.

    Examples:
        >>> from likewise.losses import ArcFaceLoss, NTXentLoss
        >>> sizes_for(NTXentLoss(), ArcFaceLoss(num_classes=3, embedding_dim=16))
        (3, 16)
    """
    classes, dims = 5, set()
    for loss in losses:
        for module in loss.modules() if isinstance(loss, nn.Module) else ():
            there = getattr(module, "num_classes", None)
            named = getattr(module, "class_embeddings", None)
            classes = min(
                [
                    classes,
                    *([there] if isinstance(there, int) else []),
                    *([len(named)] if isinstance(named, Tensor) else []),
                ]
            )
            dim = getattr(module, "embedding_dim", None)
            widest = getattr(module, "dims", None)
            dims |= {dim} if isinstance(dim, int) else set()
            dims |= {max(widest)} if isinstance(widest, tuple) else set()
    if len(dims) > 1:
        raise ValueError(
            f"losses must take embeddings of one dimension, but they take {' and '.join(map(str, sorted(dims)))}"
        )
    return classes, next(iter(dims), 8)
