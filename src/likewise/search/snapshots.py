"""Store of snapshots in a folder: every change writes the next version."""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise.files import sync_folder
from likewise.formula import one_of
from likewise.search.approximate import INDEX_KINDS, build_structure, faiss, kind_for
from likewise.search.card import IndexCard, Loss
from likewise.search.columns import check_kinds, make_table, number_rows
from likewise.search.drafts import NEXT, VERSIONS_TO_KEEP, Draft, lock_index, prune, publish_version
from likewise.search.matches import Floats, Ids, Matches
from likewise.search.snapshot import HINT, Snapshot
from likewise.search.storage import AMONG, larger_measurement, storage_loss
from likewise.search.store import NewRows, check_paths
from likewise.search.vectors import DTYPES, STORAGES, Vectors, encode_chunks
from likewise.search.versions import read_version, version_folder, version_numbers
from likewise.search.writing import write_items, write_rows, write_thumbnails, write_vectors

if TYPE_CHECKING:
    from pyarrow import Table


class SnapshotStore:
    """Items and vectors in a folder of versions; see `likewise.search.store.VectorStore`.

    Args:
        folder: the folder of the index.

    Attributes:
        folder: the folder of the index.

    Examples:
        >>> import tempfile
        >>> from likewise.search import list_versions
        >>> store = SnapshotStore.create(tempfile.mkdtemp(), IndexCard("birds", 2))
        >>> store.add(NewRows(make_table(["a.png", "b.png"]), np.eye(2))).tolist()
        [0, 1]
        >>> [each.card.change for each in list_versions(store.folder)]
        ['create', 'add 2']
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self._now = Snapshot.open(self.folder)

    @classmethod
    def create(cls, folder: str | Path, card: IndexCard, model: Path | None = None) -> SnapshotStore:
        """Create a new, empty store.

        Args:
            folder: a new or empty folder.
            card: name, vectors and model of the index.
            model: file of the model, which is copied.
        """
        place = Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        if {each.name for each in place.iterdir()} - {".lock", NEXT}:  # may be left by a killed process
            raise FileExistsError(f"folder must be new or empty, but {place} contains files")
        with lock_index(place), Draft(place) as draft:
            if model is not None:
                draft.copy("model.safetensors", model)
            write_vectors(draft, (), 0, card)
            write_items(draft, number_rows(make_table([]), np.zeros(0, np.int64)))
            draft.commit(dataclasses.replace(card, change="create"))
        sync_folder(place.parent)
        return cls(place)

    # ------------------------------------------------------------------------------------------- reading

    @property
    def card(self) -> IndexCard:
        """The card: content and measurements."""
        return self._now.version.card

    def __len__(self) -> int:
        return len(self._now)

    def refresh(self) -> bool:
        """Open the newest version if it has changed, and return whether it has."""
        try:
            number = version_numbers(self.folder)[-1]
        except (FileNotFoundError, ValueError):
            raise FileNotFoundError(f"{self.folder} is no longer an index: it has no version") from None
        if number == self._now.version.number and self._now.is_in_place():
            return False
        self._now = Snapshot.open(self.folder)
        return True

    @contextmanager
    def still(self) -> Iterator[SnapshotStore]:
        """Return the version that is open now."""
        yield copy(self)

    def ids(self, where: str | None = None) -> Ids:
        """Return the ids of all items, or of those that pass a filter, in order."""
        now = self._now
        return now.ids.copy() if where is None else now.ids[now.passing(where)]

    def table(self, ids: Ids | None = None, columns: Sequence[str] | None = None) -> Table:
        """Return columns of all items in order, or of some."""
        now = self._now
        return now.table(None if ids is None else now.rows(ids), columns)

    def vectors(self, ids: Ids | None = None) -> Vectors:
        """Return vectors of all items in order, mapped into memory, or of some."""
        now = self._now
        return now.stored if ids is None else now.stored.select(now.rows(ids))

    def thumbnails(self, ids: Ids) -> Iterator[bytes | None]:
        """Yield the thumbnails of some items, as WebP files."""
        now = self._now
        return (now.thumbnail(int(row)) for row in now.rows(ids))

    @property
    def model_file(self) -> Path | None:
        """Return the copy of the model, in this version or in a newer one."""
        model = self.card.model
        if model is None or not model.kept:
            return None
        for number in [self._now.version.number, *reversed(version_numbers(self.folder))]:
            file = version_folder(self.folder, number) / "model.safetensors"
            if file.is_file() and read_version(self.folder, number).card.model == model:
                return file
        raise ValueError(f"{self._now.version.folder / 'model.safetensors'} is missing: {HINT}")

    @contextmanager
    def model(self) -> Iterator[Path]:
        """Yield the copy of the model."""
        file = self.model_file
        if file is None:
            raise ValueError(f"{self.folder} has no model: search it with vectors")
        yield file

    def search(self, vectors: Floats, k: int, *, where: str | None = None, exact: bool | None = None) -> Matches:
        """Return the k most similar items of each query, best first; ties are in the order of addition."""
        return self._now.search(vectors, k, where, exact)

    # ------------------------------------------------------------------------------------------- changes

    @contextmanager
    def _next(self) -> Iterator[tuple[Snapshot, Draft]]:
        """Yield the newest version and the draft of the next one, under the lock."""
        with lock_index(self.folder):
            now = Snapshot.open(self.folder)
            mine, newest = self.card, now.version.card
            if (mine.created, mine.dim) != (newest.created, newest.dim):
                raise ValueError(f"{self.folder} was replaced by another index after it was opened: open it again")
            with Draft(self.folder) as draft:
                yield now, draft

    def _commit(self, now: Snapshot, draft: Draft, change: str, **changes: Any) -> None:
        draft.share(now.version, "model.safetensors")
        if "near" not in changes:
            draft.share(now.version, "near.faiss", "near.npy")
        card = dataclasses.replace(now.version.card, changed=time(), change=change, **changes)
        self._now = Snapshot(draft.commit(card))

    def add(self, rows: NewRows, *, replace: bool = True) -> Ids:
        """Add items and return their ids; with ``replace`` they replace items with the same paths."""
        with self._next() as (now, draft):
            card = now.version.card
            check_kinds(card.fields, rows.table)
            keep = None
            if replace:
                check_paths(rows.table)
                gone = now.with_paths(rows.table.column("path").combine_chunks())
                keep = np.delete(np.arange(len(now)), gone) if len(gone) else None
            ids = np.arange(card.next_id, card.next_id + len(rows))
            changes = write_rows(draft, now, keep, NewRows(number_rows(rows.table, ids), rows.vectors, rows.thumbnails))
            changes |= {"next_id": card.next_id + len(rows), "loss": _measure_loss(card, rows)}
            self._commit(
                now,
                draft,
                _describe_change(add=len(rows), replace=0 if keep is None else len(now) - len(keep)),
                **changes,
            )
        return ids

    def remove(self, ids: Ids | None = None, *, where: str | None = None) -> int:
        """Remove items by ids or by a filter, and return their number."""
        with self._next() as (now, draft):
            rows = np.unique(now.rows(ids)) if ids is not None else now.passing(where or "")
            if len(rows):
                changes = write_rows(draft, now, np.delete(np.arange(len(now)), rows), None)
                self._commit(now, draft, _describe_change(remove=len(rows)), **changes)
        return len(rows)

    def rebuild(self, *, storage: str | None, approximate: str | None, queries: int) -> None:
        """Change storage type and search structure, write all thumbnails into one file, and measure."""
        if storage is not None:
            one_of("storage", storage, STORAGES)
        if approximate is not None:
            one_of("approximate", approximate, INDEX_KINDS)
        with self._next() as (now, draft):
            card = now.version.card
            after = storage or card.storage
            kind = approximate or (card.near.kind if card.near else "exact")
            kind = kind_for(len(now)) if kind == "auto" else kind
            changes: dict[str, Any] = {"storage": after, "near": None}
            if after == card.storage:
                draft.share(now.version, "vectors.npy", "scales.npy")
                vectors = now.stored
            else:
                changes["loss"] = storage_loss(now.stored, after)
                vectors = write_vectors(
                    draft, encode_chunks(now.stored, after), len(now), dataclasses.replace(card, storage=after)
                )
            draft.share(now.version, "items.arrow")
            write_thumbnails(draft, now, whole=True)
            if kind != "exact" and len(now):
                structure, changes["near"] = build_structure(vectors, kind, queries)
                faiss().write_index(structure, str(draft.folder / "near.faiss"))
                draft.take("near.faiss")
                with draft.write("near.npy") as file:
                    np.save(file, now.ids)
            self._commit(now, draft, f"rebuild: {after}, {kind}", **changes)

    def calibrate(self, calibration: Mapping[str, Any] | None) -> None:
        """Store a calibration with the index."""
        with self._next() as (now, draft):
            draft.share(now.version, *now.version.card.files)
            self._commit(now, draft, "calibrate", calibration=calibration)

    def drop(self) -> None:
        """Delete the index; other files in its folder stay."""
        with lock_index(self.folder):
            prune(self.folder, 0)
        for file in [*self.folder.glob("map-*.npz"), self.folder / "broken.csv", self.folder / ".lock"]:
            file.unlink(missing_ok=True)
        if not any(self.folder.iterdir()):
            self.folder.rmdir()

    def close(self) -> None:
        """Do nothing: files are closed when they are no longer used."""


def adopt(new: Path, folder: Path) -> None:
    """Make the newest version of one index the next version of another, or the first one of a new index.

    Args:
        new: an index on the same file system, which is removed.
        folder: the other index, or a path that does not exist.

    Examples:
        >>> import tempfile
        >>> from likewise.search import list_versions
        >>> place = Path(tempfile.mkdtemp())
        >>> for name in ("a", "b"):
        ...     _ = SnapshotStore.create(place / name, IndexCard(name, 2))
        >>> adopt(place / "b", place / "a")
        >>> [each.card.name for each in list_versions(place / "a")], (place / "b").exists()
        (['a', 'b'], False)
    """
    prune(new, 1)
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        new.rename(folder)
        sync_folder(folder.parent)
        return
    with lock_index(folder):
        publish_version(version_folder(new, version_numbers(new)[-1]), folder)
        prune(folder, VERSIONS_TO_KEEP)
    shutil.rmtree(new, ignore_errors=True)


def _measure_loss(card: IndexCard, rows: NewRows) -> Loss | None:
    """Measure the cost of the storage type on the added vectors, unless it was measured among more items before."""
    if card.loss is not None and card.loss.among >= min(len(rows), AMONG):
        return card.loss
    if isinstance(rows.vectors, Vectors) and rows.vectors.codes.dtype != DTYPES["float32"]:
        same = rows.vectors.codes.dtype == DTYPES[card.storage]
        return larger_measurement(card.loss, rows.loss if same else None)
    return larger_measurement(card.loss, storage_loss(rows.vectors, card.storage))


def _describe_change(**counts: int) -> str:
    return ", ".join(f"{what} {count:,}" for what, count in counts.items() if count)
