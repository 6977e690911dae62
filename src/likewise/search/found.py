"""What an index is made of and what a search finds: plain values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

Ids: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float32]


@dataclass(frozen=True)
class Item:
    """One thing in an index.

    Args:
        id: its number, which it keeps for as long as it is in the index.
        path: its file, relative to where the index's images begin, or absolute.
        label: its class, if that is known.
        metadata: everything else that is known of it.

    Examples:
        >>> Item(3, "wren/1.jpg", "wren", {"year": 2021}).metadata["year"]
        2021
    """

    id: int
    path: str
    label: str | None = None
    metadata: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Found:
    """What a search found, the best first.

    Args:
        ids: for each query the numbers of items, ``(m, k)``; −1 where there are fewer than k.
        scores: their similarities, ``(m, k)``, higher is closer; −∞ beside −1.

    Examples:
        >>> found = Found(np.array([[7, -1]]), np.array([[0.9, -np.inf]], np.float32))
        >>> found.of(0)
        [(7, 0.8999999761581421)]
    """

    ids: Ids
    scores: Floats

    def __len__(self) -> int:
        return len(self.ids)

    def of(self, query: int) -> list[tuple[int, float]]:
        """Numbers and scores of what was found for one query."""
        pairs = zip(self.ids[query].tolist(), self.scores[query].tolist(), strict=True)
        return [(number, score) for number, score in pairs if number >= 0]

    def but(self, id: int, k: int) -> Found:
        """The k best for one query that are not this item."""
        kept = np.flatnonzero(self.ids[0] != int(id))[:k]
        return Found(self.ids[:, kept], self.scores[:, kept])


class Rerank(Protocol):
    """What orders the best candidates of a search anew.

    Examples:
        >>> class Reversed:
        ...     def rerank(self, queries, k, search, vectors):
        ...         found = search(queries, 2 * k)
        ...         return Found(found.ids[:, ::-1][:, :k], found.scores[:, ::-1][:, :k])
        >>> rerank: Rerank = Reversed()
    """

    def rerank(
        self, queries: Floats, k: int, search: Callable[[Floats, int], Found], vectors: Callable[[Ids], Floats]
    ) -> Found:
        """The k best for each query.

        Args:
            queries: ``(m, d)``, of unit length.
            k: how many are wanted.
            search: finds any number of candidates for any queries, under the filter that was asked for.
            vectors: gives the vectors of items by their numbers.
        """
        ...


def numbers(ids: object, name: str = "ids") -> Ids:
    """The numbers of items, as a caller gave them.

    Examples:
        >>> numbers([3, 5])
        array([3, 5])
        >>> numbers("wren")
        Traceback (most recent call last):
        TypeError: ids must be whole numbers, but the dtype is <U4
    """
    asked = np.atleast_1d(np.asarray(ids))
    if asked.size and asked.dtype.kind not in "iu":
        raise TypeError(f"{name} must be whole numbers, but the dtype is {asked.dtype}")
    return asked.astype(np.int64).reshape(-1)
