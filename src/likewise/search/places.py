"""Where an index is: a folder, or a database."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from likewise.search.index import Index
from likewise.search.postgres_server import PLAIN, checked_url

if TYPE_CHECKING:
    from likewise.search.postgres import PostgresIndex

    AnyIndex: TypeAlias = Index | PostgresIndex

SCHEMES = ("postgresql://", "postgres://")


def is_url(place: str | Path) -> bool:
    """Whether a place is a database and not a folder.

    Examples:
        >>> is_url("postgresql://me@host/photos#birds"), is_url("birds.index")
        (True, False)
    """
    return str(place).startswith(SCHEMES)


def split_url(place: str) -> tuple[str, str | None]:
    """The URL of a database, and the index that stands behind its ``#``.

    Args:
        place: both in one; a ``#`` in a password is written ``%23``.

    Examples:
        >>> split_url("postgresql://me@host/photos#birds")
        ('postgresql://me@host/photos', 'birds')
    """
    url, _, name = place.partition("#")
    if any(sign in name for sign in "#@/:"):
        raise ValueError(PLAIN)  # the name is the rest of a password, and is not repeated
    return checked_url(url), name or None


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
    if is_url(place):
        from likewise.search.postgres import PostgresIndex

        return PostgresIndex.open(*split_url(str(place)))
    return Index.open(place)
