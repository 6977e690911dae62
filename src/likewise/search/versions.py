"""The versions of an index: folders that are written aside, synced, and put in place by one rename.

``birds.index/version-000007`` is complete and never changes.  A writer holds the lock, writes the next version into
``birds.index/.next``, syncs every file, and renames the folder; the newest version is the one with the largest number.  A
process that dies at any moment leaves the last version, and the next writer removes what it had written aside.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from likewise.files import hold_lock, sync_folder
from likewise.search.card import CARD_FILE, FileEntry, IndexCard, read_index_card

WAIT = 30.0
"""Seconds to wait for another writer."""

KEPT = 4
"""Versions that a writer keeps, the new one included: an update that adds, removes and rebuilds can be undone."""

NEXT, OLD = ".next", ".old"
"""Where the next version is written, and where a version is moved before it is removed."""

VERSION = re.compile(r"version-(\d{6,})")


@dataclass(frozen=True)
class Version:
    """One version of an index.

    Args:
        number: counts from 1.
        folder: its files.
        card: what it holds.

    Examples:
        >>> Version(7, Path("birds.index/version-000007"), IndexCard("birds", 2)).number
        7
    """

    number: int
    folder: Path
    card: IndexCard

    @property
    def bytes(self) -> int:
        """The size of its files; versions share those that did not change."""
        return sum(each.bytes for each in self.card.files.values())


def version_folder(folder: Path, number: int) -> Path:
    """Where a version is.

    Examples:
        >>> version_folder(Path("birds.index"), 7).name
        'version-000007'
    """
    return folder / f"version-{number:06d}"


def version_numbers(folder: Path) -> list[int]:
    """The numbers of all versions, increasing; refuses a folder that is not an index.

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
            "it is of format 1, which is not read: `likewise index` makes it again" if older else "it has no version"
        )
        raise ValueError(f"{folder} must be the folder of an index, but {found}")
    return numbers


def is_index(folder: Path) -> bool:
    """Whether a folder is an index.

    Examples:
        >>> is_index(Path("nowhere"))
        False
    """
    try:
        return bool(version_numbers(folder))
    except (FileNotFoundError, ValueError):
        return (folder / "manifest.json").is_file()  # of format 1, which is refused by name


def read_version(folder: Path, number: int) -> Version:
    """A version and its card.

    Examples:
        >>> import tempfile
        >>> with Draft(Path(tempfile.mkdtemp())) as draft:
        ...     _ = draft.commit(IndexCard("birds", 2))
        >>> read_version(draft.index, 1).card.name
        'birds'
    """
    place = version_folder(folder, number)
    card = read_index_card(place)
    return Version(number, place, replace(card, version=f"{int(card.created * 1e3):x}-{number}"))


def list_versions(folder: str | Path) -> list[Version]:
    """All versions of an index that can be restored, the oldest first.

    Args:
        folder: the index.

    Examples:
        >>> import tempfile
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
                raise  # otherwise a writer has removed it meanwhile
    return versions


def check_version(version: Version) -> list[Path]:
    """The files of a version whose size or checksum is not the card's.

    Examples:
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
    """The versions of an index, each with its files whose size or checksum is not the card's.

    Other processes may write meanwhile: a version that a writer removes during the check is left out.

    Args:
        folder: the index.

    Examples:
        >>> import tempfile
        >>> with Draft(Path(tempfile.mkdtemp())) as draft:
        ...     _ = draft.commit(IndexCard("birds", 2))
        >>> [(version.number, damaged) for version, damaged in check_index(draft.index)]
        [(1, [])]
    """
    checks = [(version, check_version(version)) for version in list_versions(folder)]
    return [(version, damaged) for version, damaged in checks if not damaged or version.folder.exists()]


# ------------------------------------------------------------------------------------------------ writing


@contextmanager
def lock_index(folder: Path) -> Iterator[None]:
    """Hold the one lock of an index's writers; the system releases it when the process dies.

    Examples:
        >>> import tempfile
        >>> with lock_index(Path(tempfile.mkdtemp())):
        ...     pass
    """
    with hold_lock(folder / ".lock", TimeoutError(f"another process is writing {folder}"), wait=WAIT):
        for leftover in (folder / NEXT, *folder.glob(f"{OLD}*")):
            if leftover.exists():
                shutil.rmtree(leftover, ignore_errors=True)
        yield


class Draft:
    """The next version, written aside; the caller holds the lock.

    Args:
        index: the folder of the index.

    Attributes:
        index: the folder of the index.
        folder: where the files of the draft are.
        files: the files so far.

    Examples:
        >>> import tempfile
        >>> with Draft(Path(tempfile.mkdtemp())) as draft:
        ...     with draft.write("items.arrow") as file:
        ...         _ = file.write(b"abc")
        ...     version = draft.commit(IndexCard("birds", 2))
        >>> version.number, version.card.files["items.arrow"].bytes
        (1, 3)
    """

    def __init__(self, index: Path) -> None:
        self.index, self.folder = index, index / NEXT
        self.files: dict[str, FileEntry] = {}

    def __enter__(self) -> Draft:
        self.folder.mkdir()
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        if kind is None or issubclass(kind, Exception):
            shutil.rmtree(self.folder, ignore_errors=True)  # after a commit there is nothing to remove

    @contextmanager
    def write(self, name: str) -> Iterator[HashedFile]:
        """A new file; it is on the disk when the block is left."""
        with HashedFile(self.folder / name) as file:
            yield file
        self.files[name] = FileEntry(file.size, file.digest.hexdigest())

    def take(self, name: str) -> None:
        """Take in a file that something else wrote into the draft."""
        with (self.folder / name).open("rb+") as file:
            os.fsync(file.fileno())
            self.files[name] = FileEntry(
                os.fstat(file.fileno()).st_size, hashlib.file_digest(file, "sha256").hexdigest()
            )

    def copy(self, name: str, source: Path) -> None:
        """Copy a file from elsewhere."""
        with source.open("rb") as original, self.write(name) as file:
            shutil.copyfileobj(original, file, 2**20)

    def share(self, version: Version, *names: str) -> None:
        """Use files of another version: they never change, so one inode serves both."""
        for name in names:
            if name in self.files or name not in version.card.files:
                continue
            try:
                os.link(version.folder / name, self.folder / name)
            except FileNotFoundError:
                raise
            except OSError:  # a file system without hard links
                self.copy(name, version.folder / name)
            self.files[name] = version.card.files[name]

    def commit(self, card: IndexCard) -> Version:
        """Make the draft the newest version, and remove versions beyond those that are kept."""
        card = replace(card, files=self.files)
        with self.write(CARD_FILE) as file:
            file.write(card.to_json().encode())
        del self.files[CARD_FILE]
        sync_folder(self.folder)
        number = put_in_place(self.folder, self.index)
        prune(self.index, KEPT)
        return read_version(self.index, number)


class HashedFile(io.RawIOBase):
    """A new file whose checksum is computed while it is written, and which is synced when it is closed.

    Args:
        path: where it is.

    Examples:
        >>> import tempfile
        >>> with HashedFile(Path(tempfile.mkdtemp()) / "a") as file:
        ...     _ = file.write(b"abc")
        >>> file.size, file.digest.hexdigest()[:8]
        (3, 'ba7816bf')
    """

    def __init__(self, path: Path) -> None:
        self._file = path.open("xb", buffering=0)
        self.size, self.digest = 0, hashlib.sha256()

    def writable(self) -> bool:
        """True."""
        return True

    def write(self, content: Any) -> int:
        """Write all bytes of a buffer."""
        view = memoryview(content).cast("B")
        self.digest.update(view)
        self.size += len(view)
        rest = view
        while len(rest):
            rest = rest[self._file.write(rest) :]
        return len(view)

    def tell(self) -> int:
        """The number of bytes so far."""
        return self.size

    def close(self) -> None:
        """Sync and close the file."""
        if not self.closed:
            try:
                os.fsync(self._file.fileno())
            finally:
                self._file.close()
                super().close()


def put_in_place(draft: Path, index: Path) -> int:
    """Rename a complete, synced folder to the next version; from this moment on the index is the new one.

    Examples:
        >>> import tempfile
        >>> index = Path(tempfile.mkdtemp())
        >>> (index / ".next").mkdir()
        >>> put_in_place(index / ".next", index), version_numbers(index)
        (1, [1])
    """
    try:
        number = version_numbers(index)[-1] + 1
    except ValueError:
        number = 1
    draft.rename(version_folder(index, number))
    sync_folder(index)
    return number


def prune(folder: Path, keep: int) -> int:
    """Remove all but the newest versions; readers that have one open keep it. Returns how many were removed.

    Examples:
        >>> import tempfile
        >>> index = Path(tempfile.mkdtemp())
        >>> for _ in range(3):
        ...     with Draft(index) as draft:
        ...         _ = draft.commit(IndexCard("birds", 2))
        >>> prune(index, 1), version_numbers(index)
        (2, [3])
    """
    numbers = version_numbers(folder)
    numbers = numbers[: max(0, len(numbers) - keep)]
    for number in numbers:
        # moved first: a version that is half removed must not be taken for one that can be restored
        place = folder / f"{OLD}-{number}"
        version_folder(folder, number).rename(place)
        shutil.rmtree(place, ignore_errors=True)
    return len(numbers)


def restore_version(folder: str | Path, number: int) -> None:
    """Write an older version of an index again, as the newest one; ids that were given since are not given again.

    Args:
        folder: the index, whose newest version may be damaged.
        number: the version.

    Examples:
        >>> import tempfile
        >>> from likewise.search import Index
        >>> index = Index.create(tempfile.mkdtemp() + "/birds.index", dim=2)
        >>> _ = index.add([[1.0, 0.0]], ["wren.jpg"]), index.remove([0])
        >>> restore_version(index.folder, 2)
        >>> index.refresh(), len(index)
        (True, 1)
    """
    place = Path(folder)
    version_numbers(place)  # no lock is left in a folder that is not an index
    with lock_index(place), Draft(place) as draft:
        numbers, next_ids = version_numbers(place), [0]
        if number not in numbers:
            known = ", ".join(map(str, numbers))
            raise ValueError(f"number must be one of the stored versions ({known}), but it is {number}")
        old = read_version(place, number)
        if damaged := check_version(old):
            raise ValueError(f"{damaged[0]} is damaged: version {number} cannot be restored")
        for each in numbers:
            with suppress(ValueError, OSError):
                next_ids.append(read_version(place, each).card.next_id)
        draft.share(old, *old.card.files)
        draft.commit(replace(old.card, next_id=max(next_ids), changed=time.time(), change=f"restore {number}"))


def purge_versions(folder: str | Path) -> int:
    """Remove all versions of an index but the newest; returns how many were removed.

    Args:
        folder: the index.

    Examples:
        >>> import tempfile
        >>> from likewise.search import Index
        >>> index = Index.create(tempfile.mkdtemp() + "/birds.index", dim=2)
        >>> _ = index.add([[1.0, 0.0]], ["wren.jpg"])
        >>> purge_versions(index.folder)
        1
    """
    version_numbers(Path(folder))  # no lock is left in a folder that is not an index
    with lock_index(Path(folder)):
        return prune(Path(folder), 1)
