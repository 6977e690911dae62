"""Protocol of the storage of an index: snapshots in a folder, or a PostgreSQL database."""

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
    """Items to be added to a store.

    Args:
        table: path, label and metadata; a column of ids is ignored.
        vectors: vectors ``(n, d)`` of any length, or stored vectors of another store.
        thumbnails: a WebP file or ``None`` for each item.
        loss: measured cost of the storage type of these vectors, if known.

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
    """Items with vectors: the storage of a `likewise.search.Index`.

    Items are in the order of their ids, which increase and are never reused.  Every change is atomic.  ``where`` is a
    filter, see `likewise.search.filters`; ``ids`` must be those of items in the store, otherwise a `KeyError` names one
    that is not.

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
        """Load changes of other writers, and return whether there were any."""

    def still(self) -> AbstractContextManager[VectorStore]:
        """Return a context manager of the current state, for several reads of one state."""

    def ids(self, where: str | None = None) -> Ids:
        """Return the ids of all items, or of those that pass a filter, in order."""

    def table(self, ids: Ids | None = None, columns: Sequence[str] | None = None) -> Table:
        """Return columns of all items in order, or of some in the order of ``ids``, including hidden columns."""

    def vectors(self, ids: Ids | None = None) -> Vectors:
        """Return vectors of all items in order, or of some in the order of ``ids``."""

    def thumbnails(self, ids: Ids) -> Iterator[bytes | None]:
        """Yield the thumbnails of some items, as WebP files."""

    def model(self) -> AbstractContextManager[Path]:
        """Return a context manager of a file of the model; raise an error if there is no copy."""

    def search(self, vectors: Floats, k: int, *, where: str | None = None, exact: bool | None = None) -> Matches:
        """Return the k most similar items of each query of unit length, best first; ties are in the order of addition."""

    def add(self, rows: NewRows, *, replace: bool = True) -> Ids:
        """Add items and return their ids; with ``replace`` they replace items with the same paths."""

    def remove(self, ids: Ids | None = None, *, where: str | None = None) -> int:
        """Remove items by ids or by a filter, and return their number."""

    def rebuild(self, *, storage: str | None, approximate: str | None, queries: int) -> None:
        """Change storage type and search structure, and measure the recall of approximations."""

    def calibrate(self, calibration: Mapping[str, Any] | None) -> None:
        """Store a calibration with the index."""

    def drop(self) -> None:
        """Delete the index."""

    def close(self) -> None:
        """Close connections."""


def check_paths(table: Table) -> None:
    """Check that no path occurs twice in a table.

    Examples:
        >>> from likewise.search.columns import make_table
        >>> check_paths(make_table(["a", "b", "a"]))
        Traceback (most recent call last):
        ValueError: paths must be distinct, but 'a' occurs twice
    """
    paths = table.column("path")
    if len(paths.unique()) < len(paths):
        counts = paths.value_counts().to_pylist()
        twice = next(each["values"] for each in counts if each["counts"] > 1)
        raise ValueError(f"paths must be distinct, but {twice!r} occurs twice")


def missing_id(number: int) -> KeyError:
    """Return the error for an id that is not in the store.

    Examples:
        >>> missing_id(7)
        KeyError('ids must be those of items in the index, but it has no item 7')
    """
    return KeyError(f"ids must be those of items in the index, but it has no item {number}")
