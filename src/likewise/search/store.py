"""What an index needs of its store: snapshots in a folder, or a PostgreSQL database."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from numpy.typing import NDArray

from likewise.search.card import IndexCard, Loss
from likewise.search.matches import Floats, Ids, Matches
from likewise.search.vectors import Vectors

if TYPE_CHECKING:
    from pyarrow import Table


@dataclass(frozen=True, eq=False)
class NewRows:
    """Items that are added to a store.

    Args:
        table: path, label and metadata; a column of ids is not used.
        vectors: ``(n, d)`` of any length, or vectors as another store has them.
        thumbnails: a WebP file or ``None`` for each.
        loss: the measured cost of these vectors' storage, if it is known.

    Examples:
        >>> import numpy as np
        >>> from likewise.search.columns import make_table
        >>> len(NewRows(make_table(["a.png"]), np.eye(1)))
        1
    """

    table: Table
    vectors: NDArray[Any] | Vectors
    thumbnails: Iterable[bytes | None] | None = None
    loss: Loss | None = None

    def __len__(self) -> int:
        return int(self.table.num_rows)


class VectorStore(Protocol):
    """Vectors with their items: what `likewise.search.Index` is built on.

    Items are in the order of their ids, which increase and are never used twice.  Every change happens as a whole or not
    at all.  ``where`` is a filter, see `likewise.search.filters`; ``ids`` must be of items in the store, otherwise a
    `KeyError` names one that is not.

    Examples:
        >>> import tempfile
        >>> from likewise.search.snapshots import SnapshotStore
        >>> store: VectorStore = SnapshotStore.create(tempfile.mkdtemp(), IndexCard("birds", 2))
        >>> len(store)
        0
    """

    @property
    def folder(self) -> Path | None:
        """The folder of the index; ``None`` in a database."""

    @property
    def card(self) -> IndexCard:
        """The card: content and measurements."""

    def __len__(self) -> int:
        """The number of items."""

    def refresh(self) -> bool:
        """Read what others wrote since; returns whether anything changed."""

    def still(self) -> AbstractContextManager[VectorStore]:
        """The store as it is now, for several looks at one state."""

    def ids(self, where: str | None = None) -> Ids:
        """The ids of all items, or of those that pass a filter, in order."""

    def table(self, ids: Ids | None = None, columns: Sequence[str] | None = None) -> Table:
        """Columns of all items in order, or of some in the order in which they are given; hidden columns included."""

    def vectors(self, ids: Ids | None = None) -> Vectors:
        """Vectors of all items in order, or of some in the order in which they are given."""

    def thumbnails(self, ids: Ids) -> Iterator[bytes | None]:
        """The WebP files of some items' thumbnails."""

    def model(self) -> AbstractContextManager[Path]:
        """A file of the model; refuses where there is no copy."""

    def search(self, vectors: Floats, k: int, *, where: str | None = None, exact: bool | None = None) -> Matches:
        """The k most similar items of each query of unit length, the best first; of equal ones the first that was added."""

    def add(self, rows: NewRows, *, replace: bool = True) -> Ids:
        """Add items and return their ids; with ``replace`` they replace items with the same paths."""

    def remove(self, ids: Ids | None = None, *, where: str | None = None) -> int:
        """Remove items by ids or by a filter; returns how many."""

    def rebuild(self, *, storage: str | None, approximate: str | None, queries: int) -> None:
        """Change how vectors are stored and searched, and measure the recall of approximations."""

    def calibrate(self, calibration: Mapping[str, Any] | None) -> None:
        """Keep a calibration with the index."""

    def drop(self) -> None:
        """Remove the index."""

    def close(self) -> None:
        """Release connections."""


def check_paths(table: Table) -> None:
    """Refuse a table that names a path twice.

    Examples:
        >>> from likewise.search.columns import make_table
        >>> check_paths(make_table(["a", "b", "a"]))
        Traceback (most recent call last):
        ValueError: paths must name each file once, but it names 'a' twice
    """
    paths = table.column("path")
    if len(paths.unique()) < len(paths):
        counts = paths.value_counts().to_pylist()
        twice = next(each["values"] for each in counts if each["counts"] > 1)
        raise ValueError(f"paths must name each file once, but it names {twice!r} twice")


def missing_id(number: int) -> KeyError:
    """The error for an id that is not in the store.

    Examples:
        >>> missing_id(7)
        KeyError('ids must be of items in the index, but it has none with the number 7')
    """
    return KeyError(f"ids must be of items in the index, but it has none with the number {number}")
