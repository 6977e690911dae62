"""Where an index is: a folder, or a database."""

from __future__ import annotations

from pathlib import Path

from likewise.search.postgres_server import PLAIN, checked_url

SCHEMES = ("postgresql://", "postgres://")


def is_url(place: str | Path) -> bool:
    """Whether a place is a database and not a folder.

    Examples:
        >>> is_url("postgresql://me@host/photos#birds"), is_url("birds.index")
        (True, False)
    """
    return str(place).startswith(SCHEMES)


def split_url(place: str) -> tuple[str, str | None]:
    """The URL of a database, and the name of the index after its ``#``.

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
