"""Where an index is: a folder, or a database; and where its images are."""

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


def place_below(root: Path | None, path: str) -> Path | None:
    """The file of an item, if it is there and below its index's root, links followed; otherwise nothing.

    Args:
        root: where the index's images are.
        path: as the index has it; never what a user sent.

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
