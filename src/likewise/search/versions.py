"""Versions of an index: complete folders that never change.

The folder of a version is ``birds.index/version-000007``; the newest version has the largest number.
`likewise.search.drafts` writes versions.
"""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass, replace
from pathlib import Path

from likewise.search.card import IndexCard, read_index_card

VERSION = re.compile(r"version-(\d{6,})")


@dataclass(frozen=True)
class Version:
    """One version of an index.

    Args:
        number: number of the version, counted from 1.
        folder: folder of its files.
        card: its card.

    Examples:
        >>> Version(7, Path("birds.index/version-000007"), IndexCard("birds", 2)).number
        7
    """

    number: int
    folder: Path
    card: IndexCard

    @property
    def bytes(self) -> int:
        """The size of its files; versions share unchanged files."""
        return sum(each.bytes for each in self.card.files.values())


def version_folder(folder: Path, number: int) -> Path:
    """Return the folder of a version.

    Examples:
        >>> version_folder(Path("birds.index"), 7).name
        'version-000007'
    """
    return folder / f"version-{number:06d}"


def version_numbers(folder: Path) -> list[int]:
    """Return the numbers of all versions, increasing; raise an error if the folder is not an index.

    Examples:
        >>> version_numbers(Path("nowhere"))
        Traceback (most recent call last):
        FileNotFoundError: there is no index nowhere
    """
    try:
        names = os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError(f"there is no index {folder}") from None
    numbers = sorted(int(match[1]) for name in names if (match := VERSION.fullmatch(name)))
    if not numbers:
        older = "manifest.json" in names
        found = (
            "it has format 1, which is no longer supported: create it again with `likewise index`"
            if older
            else "it has no version"
        )
        raise ValueError(f"{folder} must be the folder of an index, but {found}")
    return numbers


def is_index(folder: Path) -> bool:
    """Return whether a folder is an index.

    Examples:
        >>> is_index(Path("nowhere"))
        False
    """
    try:
        return bool(version_numbers(folder))
    except (FileNotFoundError, ValueError):
        return (folder / "manifest.json").is_file()  # format 1, which raises a specific error


def read_version(folder: Path, number: int) -> Version:
    """Read a version and its card.

    Examples:
        >>> import tempfile
        >>> from likewise.search.drafts import Draft
        >>> with Draft(Path(tempfile.mkdtemp())) as draft:
        ...     _ = draft.commit(IndexCard("birds", 2))
        >>> read_version(draft.index, 1).card.name
        'birds'
    """
    place = version_folder(folder, number)
    card = read_index_card(place)
    return Version(number, place, replace(card, version=f"{int(card.created * 1e3):x}-{number}"))


def list_versions(folder: str | Path) -> list[Version]:
    """Return all versions of an index that can be restored, the oldest first.

    Args:
        folder: the index.

    Examples:
        >>> import tempfile
        >>> from likewise.search.drafts import Draft
        >>> with Draft(Path(tempfile.mkdtemp())) as draft:
        ...     _ = draft.commit(IndexCard("birds", 2, change="create"))
        >>> [(each.number, each.card.change) for each in list_versions(draft.index)]
        [(1, 'create')]
    """
    versions = []
    for number in version_numbers(Path(folder)):
        try:
            versions.append(read_version(Path(folder), number))
        except (OSError, ValueError):
            if version_folder(Path(folder), number).exists():
                raise  # otherwise a writer has just removed it
    return versions


def check_version(version: Version) -> list[Path]:
    """Return the files of a version whose size or checksum differs from the card.

    Examples:
        >>> from likewise.search.card import FileEntry
        >>> lost = IndexCard("birds", 2, files={"items.arrow": FileEntry(1, "0")})
        >>> [file.name for file in check_version(Version(1, Path("nowhere"), lost))]
        ['items.arrow']
    """
    damaged = []
    for name, entry in version.card.files.items():
        try:
            with (version.folder / name).open("rb") as file:
                size = os.fstat(file.fileno()).st_size
                same = size == entry.bytes and hashlib.file_digest(file, "sha256").hexdigest() == entry.sha256
        except OSError:
            same = False
        if not same:
            damaged.append(version.folder / name)
    return damaged


def check_index(folder: str | Path) -> list[tuple[Version, list[Path]]]:
    """Return the versions of an index, each with the files whose size or checksum differs from the card.

    Other processes may write at the same time: a version that is removed during the check is skipped.

    Args:
        folder: the index.

    Examples:
        >>> import tempfile
        >>> from likewise.search.drafts import Draft
        >>> with Draft(Path(tempfile.mkdtemp())) as draft:
        ...     _ = draft.commit(IndexCard("birds", 2))
        >>> [(version.number, damaged) for version, damaged in check_index(draft.index)]
        [(1, [])]
    """
    checks = [(version, check_version(version)) for version in list_versions(folder)]
    return [(version, damaged) for version, damaged in checks if not damaged or version.folder.exists()]
