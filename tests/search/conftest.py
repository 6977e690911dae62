"""Small indexes with known content."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from likewise.search import Index


def units(rows: int, dim: int, seed: int = 0) -> NDArray[np.float32]:
    """Vectors of unit length in every direction."""
    vectors = np.random.default_rng(seed).normal(size=(rows, dim))
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def brute(queries: NDArray[np.float32], vectors: NDArray[np.float32], k: int) -> tuple[NDArray, NDArray]:
    """The k most similar by a stable sort of all float64 similarities, each summed in the same order."""
    scores = np.empty((len(queries), len(vectors)))
    for row, query in enumerate(queries.astype(np.float64)):
        scores[row] = (vectors.astype(np.float64) * query).sum(axis=1)
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return order, np.take_along_axis(scores, order, axis=1)


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., Index]:
    """An index of random vectors, with a class and a year for each."""

    def made(rows: int = 60, dim: int = 8, name: str = "birds.index", **options: object) -> Index:
        index = Index.create(tmp_path / name, dim=dim, **options)  # type: ignore[arg-type]
        index.add(
            units(rows, dim),
            [f"{row:04d}.jpg" for row in range(rows)],
            labels=[("wren", "robin", None)[row % 3] for row in range(rows)],
            metadata={"year": [2000 + row % 10 for row in range(rows)]},
            thumbnails=[b"webp %d" % row if row % 2 else None for row in range(rows)],
        )
        return index

    return made
