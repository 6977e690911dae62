"""Values of a search: items of an index, and the matches of queries."""

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
    """An item of an index.

    Args:
        id: number of the item, which does not change while it is in the index.
        path: its file, relative to the root of the index, or absolute.
        label: its class, if known.
        metadata: its other columns.

    Examples:
        >>> Item(3, "wren/1.jpg", "wren", {"year": 2021}).metadata["year"]
        2021
    """

    id: int
    path: str
    label: str | None = None
    metadata: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Matches:
    """The matches of a search, best first.

    Args:
        ids: ids of the matches of each query, ``(m, k)``; −1 if there are fewer than k.
        scores: similarities of the matches, ``(m, k)``, higher is closer; −∞ where the id is −1.

    Examples:
        >>> matches = Matches(np.array([[7, -1]]), np.array([[0.9, -np.inf]], np.float32))
        >>> matches.of(0)
        [(7, 0.8999999761581421)]
    """

    ids: Ids
    scores: Floats

    def __len__(self) -> int:
        return len(self.ids)

    def of(self, query: int) -> list[tuple[int, float]]:
        """Return ids and scores of the matches of one query."""
        pairs = zip(self.ids[query].tolist(), self.scores[query].tolist(), strict=True)
        return [(number, score) for number, score in pairs if number >= 0]

    def without(self, id: int, k: int) -> Matches:
        """Return the k best matches of one query without this item."""
        others = np.flatnonzero(self.ids[0] != int(id))[:k]
        return Matches(self.ids[:, others], self.scores[:, others])


class Rerank(Protocol):
    """Protocol of re-ranking methods, which order the best candidates of a search again.

    Examples:
        >>> class Reversed:
        ...     def rerank(self, queries, k, search, vectors):
        ...         matches = search(queries, 2 * k)
        ...         return Matches(matches.ids[:, ::-1][:, :k], matches.scores[:, ::-1][:, :k])
        >>> rerank: Rerank = Reversed()
    """

    def rerank(
        self, queries: Floats, k: int, search: Callable[[Floats, int], Matches], vectors: Callable[[Ids], Floats]
    ) -> Matches:
        """Return the k best matches of each query.

        Args:
            queries: queries ``(m, d)``, of unit length.
            k: number of results.
            search: function that returns any number of candidates of any queries, with the filter of the search.
            vectors: function that returns the vectors of items by their ids.
        """
        ...


def check_ids(ids: object, name: str = "ids") -> Ids:
    """Check the ids of items that a caller passes, and return them as an array.

    Examples:
        >>> check_ids([3, 5])
        array([3, 5])
        >>> check_ids("wren")
        Traceback (most recent call last):
        TypeError: ids must be whole numbers, but the dtype is <U4
    """
    array = np.atleast_1d(np.asarray(ids))
    if array.size and array.dtype.kind not in "iu":
        raise TypeError(f"{name} must be whole numbers, but the dtype is {array.dtype}")
    return array.astype(np.int64).reshape(-1)
