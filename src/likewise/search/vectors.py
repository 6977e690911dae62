"""Stored vectors: float32, float16, or int8, with one scale per row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Rows: TypeAlias = slice | NDArray[np.int64]

CHUNK = 2**10
"""Rows that are converted or copied at once: in float64 they fit into the cache of a core."""

SHORTEST = 1e-250
"""Squared lengths below this have lost precision."""

DTYPES: Mapping[str, np.dtype[Any]] = {"float32": np.dtype("<f4"), "float16": np.dtype("<f2"), "int8": np.dtype("i1")}

STORAGES = tuple(DTYPES)
"""The storage types of vectors."""


@dataclass(frozen=True, eq=False)
class Vectors:
    """Stored vectors of unit length: ``codes * scales`` in float32.

    Args:
        codes: float32, float16 or int8, ``(n, d)``.
        scales: one factor per row, float32 ``(n,)``; ``None`` for float32.

    Examples:
        >>> stored = Vectors(*encode(np.array([[3.0, 4.0]]), "int8"))
        >>> stored.codes.tolist(), stored.take(slice(0, 1)).round(2)
        ([[95, 127]], array([[0.6, 0.8]], dtype=float32))
    """

    codes: NDArray[Any]
    scales: NDArray[np.float32] | None = None

    def __len__(self) -> int:
        return len(self.codes)

    def take(self, rows: Rows) -> NDArray[np.float32]:
        """Return some rows in float32, as a view if they are a slice of float32."""
        codes = self.codes[rows]
        if self.scales is None:
            return codes
        wide: NDArray[np.float32] = codes.astype(np.float32)
        wide *= self.scales[rows][:, None]
        return wide

    def select(self, rows: Rows) -> Vectors:
        """Return some rows in their storage type."""
        return Vectors(self.codes[rows], None if self.scales is None else self.scales[rows])


def encode(vectors: NDArray[Any], storage: str) -> tuple[NDArray[Any], NDArray[np.float32] | None]:
    """Normalize vectors and convert them to a storage type; a row of zeros has no direction and stays zero.

    Examples:
        >>> encode(np.array([[0.0, 2.0]]), "float32")
        (array([[0., 1.]], dtype=float32), None)
    """
    exact = np.asarray(vectors, np.float64)
    with np.errstate(over="ignore"):
        squares = np.einsum("ij,ij->i", exact, exact)
    extreme = ((squares < SHORTEST) | (squares > 1.0 / SHORTEST)) & exact.any(axis=1)
    if extreme.any():  # their squares overflow or underflow float64, but their direction is defined
        exact = exact.copy()
        exact[extreme] /= np.abs(exact[extreme]).max(axis=1, keepdims=True)
        squares[extreme] = np.einsum("ij,ij->i", exact[extreme], exact[extreme])
    norms = np.sqrt(squares)[:, None]
    units = np.divide(exact, norms, out=np.zeros_like(exact), where=norms > 0.0)
    if storage == "float32":
        return units.astype(DTYPES[storage]), None
    if storage == "int8":
        largest = np.abs(units).max(axis=1, keepdims=True, initial=0.0)
        units = np.rint(np.divide(units * 127.0, largest, out=np.zeros_like(units), where=largest > 0.0))
    codes = units.astype(DTYPES[storage])
    wide = codes.astype(np.float64)
    lengths = np.sqrt(np.einsum("ij,ij->i", wide, wide))
    # scales are corrected so that decoded vectors have unit length and similarities stay cosines
    scales = np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0.0)
    return codes, scales.astype(np.float32)


def encode_chunks(
    vectors: NDArray[Any] | Vectors, storage: str, rows: NDArray[np.int64] | None = None
) -> Iterator[Vectors]:
    """Yield vectors in a storage type, in chunks; vectors of the same storage type are copied unchanged.

    Args:
        vectors: an array of vectors of any length, or stored vectors.
        storage: the storage type.
        rows: the rows, in order; by default all.

    Examples:
        >>> stored = Vectors(*encode(np.eye(2), "int8"))
        >>> [chunk.codes.tolist() for chunk in encode_chunks(stored, "int8", np.array([1]))]
        [[[0, 127]]]
    """
    for start in range(0, len(vectors) if rows is None else len(rows), CHUNK):
        some: Any = slice(start, start + CHUNK) if rows is None else rows[start : start + CHUNK]
        if rows is not None and some[-1] - some[0] == len(some) - 1:
            some = slice(some[0], some[-1] + 1)  # contiguous rows need no copy
        if not isinstance(vectors, Vectors):
            yield Vectors(*encode(vectors[some], storage))
        elif vectors.codes.dtype == DTYPES[storage]:
            yield vectors.select(some)
        else:
            yield Vectors(*encode(vectors.take(some), storage))
