"""Batches for the tests of contracts: ordinary ones, and batches without positives, negatives or both."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class Batch(NamedTuple):
    """Embeddings in float64 and their labels.

    Examples:
        >>> make_batch("balanced").labels.tolist()
        [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]
    """

    embeddings: Tensor
    labels: Tensor


LABELS: dict[str, list[int]] = {
    "balanced": [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3],
    "ragged": [5, 2, 2, 9, 9, 9, 9, 9, 9, 9, 4, 4, 4, 4, 2],  # classes of 1, 3, 7 and 4, out of order
    "two classes": [0, 1, 0, 1, 1, 1],
    "one class": [3, 3, 3, 3],
    "singletons": [0, 1, 2, 3, 4],
    "one sample": [0],
}
"""Labels of the batches, by name.

Examples:
    >>> LABELS["one sample"]
    [0]
"""

DEGENERATE: tuple[str, ...] = ("one class", "singletons", "one sample")
"""Names of the batches without positives, negatives or both."""


def make_batch(name: str, dim: int = 5, seed: int = 0) -> Batch:
    """Make a batch with the labels ``LABELS[name]`` and random embeddings around class centers.

    Args:
        name: a key of `LABELS`.
        dim: the number of dimensions of the embeddings.
        seed: the seed of the embeddings.

    Examples:
        >>> make_batch("ragged").embeddings.shape
        torch.Size([15, 5])
    """
    generator = torch.Generator().manual_seed(seed)
    labels = torch.tensor(LABELS[name])
    centers = torch.randn(int(labels.max()) + 1, dim, generator=generator, dtype=torch.float64)
    noise = torch.randn(len(labels), dim, generator=generator, dtype=torch.float64)
    return Batch(centers[labels] + noise, labels)
