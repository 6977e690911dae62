"""Where an index is: a folder, or a database."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from likewise.search.index import Index

if TYPE_CHECKING:
    from likewise.search.postgres import PostgresIndex


def open_index(place: str | Path) -> Index | PostgresIndex:
    """Open an index wherever it is.

    Args:
        place: a folder; or the URL of a database with the index's name behind a ``#``, as in
            ``postgresql://me@host/photos#birds``.  The name may be left out where the database has one index alone.

    Examples:
        >>> import tempfile
        >>> folder = tempfile.mkdtemp() + "/birds.index"
        >>> _ = Index.create(folder, dim=2)
        >>> open_index(folder).dim
        2
    """
    text = str(place)
    if text.startswith(("postgresql://", "postgres://")):
        from likewise.search.postgres import PostgresIndex

        url, _, name = text.partition("#")
        return PostgresIndex.open(url, name or None)
    return Index.open(place)
