"""Locations of an index (a folder or a database) and of its images."""

from __future__ import annotations

from pathlib import Path

from likewise.search.postgres_server import ESCAPE_PASSWORD, check_url

SCHEMES = ("postgresql://", "postgres://")


def is_url(place: str | Path) -> bool:
    """Return whether a place is a database and not a folder.

    Examples:
        >>> is_url("postgresql://me@host/photos#birds"), is_url("birds.index")
        (True, False)
    """
    return str(place).startswith(SCHEMES)


def split_url(place: str) -> tuple[str, str | None]:
    """Return the URL of a database, and the name of the index after ``#``.

    Args:
        place: URL and name; a ``#`` in a password is written ``%23``.

    Examples:
        >>> split_url("postgresql://me@host/photos#birds")
        ('postgresql://me@host/photos', 'birds')
    """
    url, _, name = place.partition("#")
    if any(sign in name for sign in "#@/:"):
        raise ValueError(ESCAPE_PASSWORD)  # the name is part of a password and must not appear in a message
    return check_url(url), name or None


def place_below(root: Path | None, path: str) -> Path | None:
    """Return the file of an item if it exists below the root of the index, with links resolved; otherwise ``None``.

    Args:
        root: the folder of the images.
        path: the path in the index; never a path that a user sent.

    Examples:
        >>> place_below(Path("/photos"), "../etc/passwd") is None
        True
    """
    if root is None or "\0" in path:
        return None
    try:
        top = root.resolve(strict=True)
        file = (top / path).resolve(strict=True)
    except (OSError, RuntimeError, ValueError):
        return None
    return file if file.is_relative_to(top) and file.is_file() else None
