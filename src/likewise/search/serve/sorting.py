"""Content of a collection for the search page: values of its columns, groups of near-duplicates, and clusters."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise.search.matches import Item
from likewise.search.serve.limits import Limits, RequestError

if TYPE_CHECKING:
    from likewise.search.index import Index

VALUES = 100
"""The largest number of values of a text column that are listed; with more, the user types a value."""

KEPT = 8
"""The number of results that are cached."""

Groups = Sequence[Sequence[int]]


@dataclass(frozen=True)
class Column:
    """The content of a column, for a filter form.

    Args:
        name: name of the column.
        kind: ``"text"``, ``"number"`` or ``"bool"``.
        values: values of a text column and their numbers of items, in order; empty if there are too many.
        low, high: smallest and largest number.

    Examples:
        >>> Column("year", "number", low=2019, high=2024).values
        ()
    """

    name: str
    kind: str
    values: tuple[tuple[str, int], ...] = ()
    low: float | None = None
    high: float | None = None


class Sorter:
    """Columns, near-duplicates and clusters of an index; each is computed once per version of the index.

    Args:
        index: the index.
        limits: `Limits.sorted` is the largest number of items for near-duplicates and clusters.

    Examples:
        >>> import tempfile
        >>> from likewise.search import Index
        >>> index = Index.create(tempfile.mkdtemp() + "/a.index", dim=2)
        >>> _ = index.add(np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]), ["a.jpg", "b.jpg", "c.jpg"])
        >>> sorter = Sorter(index, Limits())
        >>> [each.name for each in sorter.columns()], sorter.duplicates(0.99), sorter.clusters(2)
        (['path'], [[0, 2]], [[0, 2], [1]])
    """

    def __init__(self, index: Index, limits: Limits) -> None:
        self._index, self._limits = index, limits
        self._kept: OrderedDict[tuple[Any, ...], Any] = OrderedDict()

    def columns(self) -> list[Column]:
        """Return the columns that have values: label first, then metadata, and path."""

        def read(now: Index) -> list[Column]:
            found = [_describe("label", "text", now.column("label"))]
            found += [_describe(name, kind, now.column(name)) for name, kind in now.fields.items()]
            return [*(each for each in found if each is not None), Column("path", "text")]

        found: list[Column] = self._compute_once(("columns",), read)
        return found

    def duplicates(self, threshold: float, where: str | None = None) -> Groups:
        """Return groups of ids that are connected by pairs of at least this similarity, the largest group first."""
        return self._groups(
            ("duplicates", threshold, where),
            lambda now: now.duplicates(threshold, where=where),
            f"--duplicates {threshold:g} -o duplicates.csv",
        )

    def clusters(self, n: int) -> Groups:
        """Return the ids of the items of each cluster, the largest cluster first."""

        def split(now: Index) -> Groups:
            owners, ids = now.clusters(n), now.ids
            return [ids[owners == each].tolist() for each in range(n)]

        return self._groups(("clusters", n), split, f"--clusters {n} -o clusters.csv")

    def _groups(self, key: tuple[Any, ...], work: Callable[[Index], Groups], command: str) -> Groups:
        if len(self._index) > self._limits.sorted:
            raise RequestError(
                413,
                f"this page groups at most {self._limits.sorted:,} images, but {self._index.name} has "
                f"{len(self._index):,}: run likewise search INDEX {command}",
            )
        found: Groups = self._compute_once(key, work)
        return found

    def _compute_once(self, key: tuple[Any, ...], work: Callable[[Index], Any]) -> Any:
        with self._index.still() as now:
            key = now.version, *key
            found = self._kept.get(key)
            if found is None:
                found = self._kept[key] = work(now)
                while len(self._kept) > KEPT:
                    self._kept.popitem(last=False)
            return found


def name_group(items: Sequence[Item]) -> str | None:
    """Return the label of more than half of some items, or ``None``.

    Examples:
        >>> name_group([Item(0, "a.jpg", "wren", {}), Item(1, "b.jpg", "tern", {}), Item(2, "c.jpg", "wren", {})])
        'wren'
    """
    label, count = Counter(each.label for each in items).most_common(1)[0]
    return label if 2 * count > len(items) else None


def _describe(name: str, kind: str, values: Sequence[Any]) -> Column | None:
    known = [each for each in values if each is not None]
    if not known:
        return None
    if kind == "number":
        finite = [float(each) for each in known if np.isfinite(each)]
        return Column(name, kind, low=min(finite, default=None), high=max(finite, default=None))
    counts = Counter(known) if kind == "text" else {}
    return Column(name, kind, values=tuple(sorted(counts.items())) if len(counts) <= VALUES else ())
