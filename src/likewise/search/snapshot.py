"""An open version of an index, for reading.

A reader may keep its snapshot for any time: the files of a version never change, and files that a writer removes stay
readable for the processes that have them open.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from likewise.search.card import CARD_FILE
from likewise.search.columns import RESERVED, arrow, filterable_fields
from likewise.search.conditions import to_arrow
from likewise.search.exact import Part, nearest
from likewise.search.filters import parse
from likewise.search.matches import Floats, Ids, Matches
from likewise.search.store import missing_id
from likewise.search.vectors import DTYPES, Vectors
from likewise.search.versions import Version, read_version, version_numbers

if TYPE_CHECKING:
    from pyarrow import Table

    from likewise.search.approximate import Near

TRIES = 20
"""Attempts to open a version while writers remove it."""

HINT = "restore an older version with likewise index --restore, or create the index again"


class Snapshot:
    """An open version.

    Args:
        version: the version.

    Attributes:
        version: the version.
        stored: its vectors.
        items: the table of its items.
        ids: ids of the items, increasing.
        spans: first and last byte of each thumbnail in the concatenation of the two files of thumbnails.
        blobs: these two files.

    Examples:
        >>> import tempfile
        >>> from likewise.search import Index
        >>> index = Index.create(tempfile.mkdtemp() + "/birds.index", dim=2)
        >>> _ = index.add(np.eye(2), ["a.png", "b.png"])
        >>> before = Snapshot.open(index.folder)
        >>> index.remove([0]), len(before), len(Snapshot.open(index.folder))
        (1, 2, 1)
    """

    def __init__(self, version: Version) -> None:
        self.version = version
        self._stamp = _stamp(version)
        card = version.card
        for name, entry in card.files.items():
            if (version.folder / name).stat().st_size != entry.bytes:
                raise ValueError(f"{version.folder / name} is damaged: {HINT}")
        scales = None if card.storage == "float32" else self._array("scales.npy", (card.rows,))
        codes = self._array("vectors.npy", (card.rows, card.dim))
        if codes.dtype != DTYPES[card.storage]:
            raise self._damage_error("vectors.npy")
        self.stored = Vectors(codes, scales)
        self.items = self._table()
        self.ids: Ids = self.items.column("id").to_numpy() if card.rows else np.zeros(0, np.int64)
        self.spans = self._array("thumbnails.npy", (card.rows, 2)) if "thumbnails.npy" in card.files else None
        self.blobs = [self._bytes(name) for name in ("thumbnails.bin", "thumbnails-added.bin")]
        self._structure = self._bytes("near.faiss")
        self._covered = self._array("near.npy", None) if "near.npy" in card.files else None

    @classmethod
    def open(cls, folder: Path) -> Snapshot:
        """Open the newest version; try again if a writer removes it at the same time."""
        for attempt in range(TRIES):
            number = version_numbers(folder)[-1]
            try:
                return cls(read_version(folder, number))
            except FileNotFoundError as missing:
                if version_numbers(folder)[-1] == number or attempt == TRIES - 1:
                    raise ValueError(f"{missing.filename} is missing: {HINT}") from missing
        raise AssertionError("unreachable")

    def _damage_error(self, name: str) -> ValueError:
        return ValueError(f"{self.version.folder / name} is damaged: {HINT}")

    def _array(self, name: str, shape: tuple[int, ...] | None) -> NDArray[Any]:
        try:
            # copy on write: torch warns about read-only memory, even if it is only read
            array = np.asarray(np.load(self.version.folder / name, mmap_mode="c", allow_pickle=False))
        except (ValueError, EOFError) as error:
            raise self._damage_error(name) from error
        if shape is not None and array.shape != shape:
            raise self._damage_error(name)
        return array

    def _bytes(self, name: str) -> NDArray[np.uint8] | None:
        entry = self.version.card.files.get(name)
        if entry is None:
            return None
        return np.memmap(self.version.folder / name, np.uint8, "r") if entry.bytes else np.zeros(0, np.uint8)

    def _table(self) -> Table:
        pa = arrow()
        file = self.version.folder / "items.arrow"
        try:
            table = pa.ipc.open_file(pa.memory_map(str(file))).read_all()
            table.validate(full=True)  # rejects offsets outside the file; 30 ms for a million rows
        except FileNotFoundError:
            raise
        except (pa.ArrowException, OSError) as error:
            raise self._damage_error("items.arrow") from error
        if table.num_rows != self.version.card.rows or table.column_names[: len(RESERVED)] != list(RESERVED):
            raise self._damage_error("items.arrow")
        return table

    def __len__(self) -> int:
        return len(self.ids)

    def is_in_place(self) -> bool:
        """Return whether the folder of the version is still the one that was opened."""
        try:
            return _stamp(self.version) == self._stamp
        except OSError:
            return False

    # ------------------------------------------------------------------------------------------- rows

    def rows(self, ids: Ids) -> Ids:
        """Return the rows of items by their ids."""
        rows = np.searchsorted(self.ids, ids)
        there = rows < len(self.ids)
        there[there] &= self.ids[rows[there]] == ids[there]
        if not there.all():
            raise missing_id(int(ids[~there][0]))
        return rows

    def passing(self, where: str) -> Ids:
        """Return the rows of items that pass a filter, increasing."""
        condition = parse(where, filterable_fields(self.version.card.fields))
        arrow()
        from pyarrow.dataset import dataset

        passed = dataset(self.items).to_table(columns=["id"], filter=to_arrow(condition))  # reads no other column
        return np.searchsorted(self.ids, np.sort(passed.column("id").to_numpy()))

    def with_paths(self, paths: Any) -> Ids:
        """Return the rows of items that have one of these paths, increasing."""
        arrow()
        from pyarrow import compute

        mask = compute.is_in(self.items.column("path"), value_set=paths)
        rows: Ids = np.flatnonzero(mask.to_numpy()) if len(self) else np.zeros(0, np.int64)
        return rows

    def table(self, rows: Ids | None, columns: Sequence[str] | None) -> Table:
        """Return columns of all items, or of those in some rows."""
        table = self.items if columns is None else self.items.select(list(columns))
        return table if rows is None else table.take(rows)

    def thumbnail(self, row: int) -> bytes | None:
        """Return the thumbnail of the item in a row, as a WebP file."""
        if self.spans is None:
            return None
        start, stop = (int(each) for each in self.spans[row])
        first, added = self.blobs
        if stop == start or first is None:
            return None
        if start >= len(first) and added is not None:
            return added[start - len(first) : stop - len(first)].tobytes()
        return first[start:stop].tobytes()

    # ------------------------------------------------------------------------------------------- search

    @cached_property
    def near(self) -> Near | None:
        """The approximate structure, read on first use."""
        about = self.version.card.near
        if about is None or self._structure is None or self._covered is None:
            return None
        from likewise.search.approximate import Near

        try:
            return Near.read(self._structure, about, self._covered, self.ids[: self._covered_rows])
        except RuntimeError as error:  # raised by faiss
            raise self._damage_error("near.faiss") from error

    @cached_property
    def _covered_rows(self) -> int:
        """Return the number of rows that the structure covers: the first ones, because newer items have larger ids."""
        if self._covered is None or not len(self._covered):
            return 0
        return int(np.searchsorted(self.ids, self._covered[-1], side="right"))

    def parts(self, where: str | None, cut: int = 0) -> list[Part]:
        """Return the vectors to search, as one part, or as two that begin at row 0 and row `cut`."""
        passed = None if where is None else self.passing(where)
        bounds = [0, cut, len(self)] if 0 < cut < len(self) else [0, len(self)]
        parts = []
        for start, stop in pairwise(bounds):
            vectors = self.stored if len(bounds) == 2 else self.stored.select(slice(start, stop))
            if passed is None:
                parts.append(Part(vectors))
            else:
                mask = np.zeros(stop - start, bool)
                mask[passed[(passed >= start) & (passed < stop)] - start] = True
                parts.append(Part.of(vectors, mask))
        return parts

    def search(self, vectors: Floats, k: int, where: str | None, exact: bool | None) -> Matches:
        """Return the k most similar items of each query, best first."""
        if exact is False and self.version.card.near is None:
            raise ValueError(
                f"exact must be True or None for {self.version.folder.parent}, which has no approximate structure"
            )
        near = None if exact else self.near
        parts = self.parts(where, 0 if near is None else self._covered_rows)
        least = min(k, max(1, sum(map(len, parts))))  # more cannot be found, and memory grows with k
        if near is None or not self._covered_rows:
            rows, scores = nearest(vectors, parts, least)
        else:
            rows, scores = near.search(vectors, parts, least)
        ids, similar = np.full((len(rows), k), -1, np.int64), np.full((len(rows), k), -np.inf, np.float32)
        there = rows >= 0
        ids[:, :least][there] = self.ids[rows[there]]
        similar[:, :least] = scores
        return Matches(ids, similar)


def _stamp(version: Version) -> tuple[int, int]:
    """Return numbers that differ if another index was moved to the same name."""
    state = (version.folder / CARD_FILE).stat()
    return state.st_mtime_ns, state.st_ino
