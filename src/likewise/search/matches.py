"""Items of an index, and the matches of a search: plain values."""

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
class Matches:
    """The matches of a search, the best first.

    Args:
        ids: for each query the numbers of items, ``(m, k)``; −1 where there are fewer than k.
        scores: their similarities, ``(m, k)``, higher is closer; −∞ where the id is −1.

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
        """Ids and scores of the matches of one query."""
        pairs = zip(self.ids[query].tolist(), self.scores[query].tolist(), strict=True)
        return [(number, score) for number, score in pairs if number >= 0]

    def without(self, id: int, k: int) -> Matches:
        """The k best for one query that are not this item."""
        others = np.flatnonzero(self.ids[0] != int(id))[:k]
        return Matches(self.ids[:, others], self.scores[:, others])


class Rerank(Protocol):
    """Orders the best candidates of a search again.

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
        """The k best for each query.

        Args:
            queries: ``(m, d)``, of unit length.
            k: how many are wanted.
            search: finds any number of candidates for any queries, under the filter of the search.
            vectors: gives the vectors of items by their numbers.
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
