"""The cost of a storage type: the fraction of nearest neighbors that are still found with fewer bits."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.search.card import Loss
from likewise.search.exact import Part, nearest, recall
from likewise.search.matches import Ids
from likewise.search.vectors import Vectors, encode

QUERIES, AMONG, K = 200, 50_000, 10
"""Queries and items of the measurement, and the number of neighbors per query."""


def storage_loss(vectors: NDArray[Any] | Vectors, storage: str) -> Loss | None:
    """Return the fraction of the ten nearest that are still found when vectors are stored in fewer bits; ``None`` for float32.

    It is measured among at most fifty thousand vectors, of which two hundred are queries.

    Args:
        vectors: the original vectors.
        storage: the storage type.

    Examples:
        >>> storage_loss(np.random.default_rng(0).normal(size=(500, 32)), "float16").recall > 0.95
        True
    """
    if storage == "float32" or len(vectors) <= K:
        return None
    rng = np.random.default_rng(0)
    rows = np.arange(len(vectors))
    if len(rows) > AMONG:
        rows = np.sort(rng.choice(len(rows), AMONG, replace=False))
    sample = vectors.take(rows) if isinstance(vectors, Vectors) else np.asarray(vectors)[rows]
    true = Vectors(*encode(sample, "float32"))
    stored = Vectors(*encode(true.codes, storage))
    sample_rows = np.sort(rng.choice(len(rows), min(QUERIES, len(rows)), replace=False))
    queries = true.take(sample_rows)
    results = [nearest(queries, [Part(each)], K + 1)[0] for each in (stored, true)]
    return Loss(recall(*(without_self(each, sample_rows, K) for each in results)), len(sample_rows), len(rows))


def without_self(rows: Ids, own: Ids, k: int) -> Ids:
    """Return the first k rows of each query, without the query itself.

    Examples:
        >>> without_self(np.array([[4, 5, 6], [5, 6, 7]]), np.array([5, 9]), 2).tolist()
        [[4, 6], [5, 6]]
    """
    itself = rows == own[:, None]
    itself[:, -1] |= ~itself.any(axis=1)  # if the query is not among them, drop the last one
    others: Ids = rows[~itself].reshape(len(rows), -1)[:, :k]
    return others


def larger_measurement(*losses: Loss | None) -> Loss | None:
    """Return the measurement among the most items.

    Examples:
        >>> larger_measurement(None, Loss(0.9, 10, 100), Loss(0.8, 200, 1000)).recall
        0.8
    """
    return max((each for each in losses if each is not None), key=lambda each: each.among, default=None)
