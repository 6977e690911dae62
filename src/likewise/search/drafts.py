"""Writing of index versions: folders that are written to a temporary name, synced, and renamed atomically.

A writer holds the lock, writes the next version into ``birds.index/.next``, syncs every file, and renames the folder.  A
process that is killed at any moment leaves the last version intact, and the next writer removes the unfinished one.
"""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from likewise.files import hold_lock, sync_folder
from likewise.search.card import CARD_FILE, FileEntry, IndexCard
from likewise.search.versions import Version, check_version, read_version, version_folder, version_numbers

WAIT = 30.0
"""Seconds to wait for another writer."""

VERSIONS_TO_KEEP = 4
"""Versions that are kept, including the new one, so that an update that adds, removes and rebuilds can be undone."""

NEXT, OLD = ".next", ".old"
"""The folder of the next version, and the folder to which a version is moved before it is removed."""


@contextmanager
def lock_index(folder: Path) -> Iterator[None]:
    """Hold the lock of the writers of an index; the system releases it when the process ends.

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
    """The next version, written to a temporary folder; the caller holds the lock.

    Args:
        index: the folder of the index.

    Attributes:
        index: the folder of the index.
        folder: folder of the draft.
        files: the files written so far.

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
            shutil.rmtree(self.folder, ignore_errors=True)  # after a commit the folder no longer exists

    @contextmanager
    def write(self, name: str) -> Iterator[HashedFile]:
        """Open a new file for writing; it is synced at the end of the block."""
        with HashedFile(self.folder / name) as file:
            yield file
        self.files[name] = FileEntry(file.size, file.digest.hexdigest())

    def take(self, name: str) -> None:
        """Register a file that other code wrote into the draft."""
        with (self.folder / name).open("rb+") as file:
            os.fsync(file.fileno())
            self.files[name] = FileEntry(
                os.fstat(file.fileno()).st_size, hashlib.file_digest(file, "sha256").hexdigest()
            )

    def copy(self, name: str, source: Path) -> None:
        """Copy a file into the draft."""
        with source.open("rb") as original, self.write(name) as file:
            shutil.copyfileobj(original, file, 2**20)

    def share(self, version: Version, *names: str) -> None:
        """Hard-link files of another version, which never change."""
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
        """Make the draft the newest version, and remove the oldest versions."""
        card = replace(card, files=self.files)
        with self.write(CARD_FILE) as file:
            file.write(card.to_json().encode())
        del self.files[CARD_FILE]
        sync_folder(self.folder)
        number = publish_version(self.folder, self.index)
        prune(self.index, VERSIONS_TO_KEEP)
        return read_version(self.index, number)


class HashedFile(io.RawIOBase):
    """A new file whose checksum is computed while it is written, and which is synced when it is closed.

    Args:
        path: path of the file.

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
        """Return true."""
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
        """Return the number of bytes written so far."""
        return self.size

    def close(self) -> None:
        """Sync and close the file."""
        if not self.closed:
            try:
                os.fsync(self._file.fileno())
            finally:
                self._file.close()
                super().close()


def publish_version(draft: Path, index: Path) -> int:
    """Rename a complete, synced folder to the next version, which readers see from then on; return its number.

    Examples:
        >>> import tempfile
        >>> index = Path(tempfile.mkdtemp())
        >>> (index / ".next").mkdir()
        >>> publish_version(index / ".next", index), version_numbers(index)
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
    """Remove all but the newest versions, and return the number of removed ones; readers keep the version they have open.

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
        # moved first, so that a partly removed version is never listed as restorable
        place = folder / f"{OLD}-{number}"
        version_folder(folder, number).rename(place)
        shutil.rmtree(place, ignore_errors=True)
    return len(numbers)


def restore_version(folder: str | Path, number: int) -> None:
    """Copy an older version of an index as the newest one; ids used since then are not reused.

    Args:
        folder: the index, whose newest version may be damaged.
        number: number of the version.

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
    version_numbers(place)  # raise before a lock file is created in a folder that is not an index
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
    """Remove all versions of an index except the newest, and return the number of removed ones.

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
    version_numbers(Path(folder))  # raise before a lock file is created in a folder that is not an index
    with lock_index(Path(folder)):
        return prune(Path(folder), 1)
