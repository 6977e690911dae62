"""An index as it was at one moment: open files and which of their rows live.

A reader keeps its snapshot for as long as it likes, whatever writers do meanwhile: they never change a file, and a file
that they remove stays readable for those who have it open.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from likewise.search.exact import Part
from likewise.search.filters import parse
from likewise.search.found import Floats, Ids, Item, numbers
from likewise.search.manifest import Manifest, read_manifest
from likewise.search.segment import DAMAGED, HIDDEN, MISSING, RESERVED, Segment, kind_of

if TYPE_CHECKING:
    from likewise.search.approximate import Near

TRIES = 20
"""How often opening begins anew because a writer was faster."""


class Snapshot:
    """An open index.

    Args:
        folder: where it is.
        manifest: what belongs to it.

    Attributes:
        folder: where it is.
        manifest: what belongs to it.
        segments: its items.
        gone: the numbers of removed items, increasing.

    Examples:
        >>> import tempfile
        >>> from likewise.search import Index
        >>> index = Index.create(tempfile.mkdtemp() + "/birds.index", dim=2)
        >>> _ = index.add(np.eye(2), ["a.png", "b.png"])
        >>> before = Snapshot.open(index.folder)
        >>> index.remove([0]), len(before), len(Snapshot.open(index.folder))
        (1, 2, 1)
    """

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        self.folder, self.manifest = folder, manifest
        self.segments = [Segment(folder, each, manifest.dim, manifest.storage) for each in manifest.segments]
        self.gone: Ids = np.zeros(0, np.int64)
        if manifest.gone is not None:
            try:
                self.gone = np.load(folder / manifest.gone, allow_pickle=False)
            except (ValueError, EOFError) as error:
                raise ValueError(f"{folder / manifest.gone} {DAMAGED}") from error
        self._near_file: NDArray[np.uint8] | None = None
        if manifest.near is not None:
            if not (folder / manifest.near.file).stat().st_size:
                raise ValueError(f"{folder / manifest.near.file} {DAMAGED}")
            self._near_file = np.memmap(folder / manifest.near.file, np.uint8, "r")

    @classmethod
    def open(cls, folder: Path) -> Snapshot:
        """The index as it is now; again where a writer replaced it between reading the manifest and opening its files."""
        for attempt in range(TRIES):
            manifest = read_manifest(folder)
            try:
                return cls(folder, manifest)
            except FileNotFoundError as gone:
                if read_manifest(folder) == manifest or attempt == TRIES - 1:
                    missing = sorted(name for name in manifest.files() if not (folder / name).exists())
                    raise ValueError(f"{folder / (missing or ['a file'])[0]} {MISSING}") from gone
        raise AssertionError("unreachable")

    def __len__(self) -> int:
        return sum(map(len, self.segments)) - len(self.gone)

    @cached_property
    def starts(self) -> Ids:
        """The first row of each segment, and the number of rows."""
        return np.cumsum([0, *map(len, self.segments)])

    @cached_property
    def row_ids(self) -> Ids:
        """The number of the item in each row, removed ones included; increasing."""
        return np.concatenate([each.ids for each in self.segments]) if self.segments else np.zeros(0, np.int64)

    @cached_property
    def dead(self) -> Ids:
        """The rows of removed items, increasing."""
        return np.searchsorted(self.row_ids, self.gone)

    @cached_property
    def ids(self) -> Ids:
        """The numbers of living items."""
        return np.delete(self.row_ids, self.dead) if len(self.gone) else self.row_ids

    @cached_property
    def fields(self) -> dict[str, str]:
        """Columns of metadata and what they hold."""
        kinds: dict[str, str] = {}
        for segment in self.segments:
            for column in segment.table.schema:
                kind = kind_of(column.type)
                if kind is not None and column.name not in RESERVED and not column.name.startswith(HIDDEN):
                    kinds.setdefault(column.name, kind)
        return kinds

    @cached_property
    def near(self) -> Near | None:
        """The approximate structure, read when it is asked for first."""
        if self.manifest.near is None or self._near_file is None:
            return None
        from likewise.search.approximate import Near

        try:
            return Near.read(self._near_file, self.manifest.near)
        except RuntimeError as error:  # what faiss raises
            raise ValueError(f"{self.folder / self.manifest.near.file} {DAMAGED}") from error

    # ------------------------------------------------------------------------------------------- rows and items

    def rows(self, ids: Any, name: str = "ids") -> Ids:
        """The rows of living items."""
        asked = numbers(ids, name)
        rows = np.searchsorted(self.row_ids, asked)
        there = rows < len(self.row_ids)
        there[there] &= self.row_ids[rows[there]] == asked[there]
        if len(self.gone):
            there &= ~np.isin(asked, self.gone)
        if not there.all():
            raise KeyError(f"{name} must be of items in the index, but it has none with the number {asked[~there][0]}")
        return rows

    def dead_in(self, segment: int) -> Ids:
        """The rows of a segment, from 0, whose items were removed."""
        start, stop = self.starts[segment], self.starts[segment + 1]
        low, high = np.searchsorted(self.dead, [start, stop])
        rows: Ids = self.dead[low:high] - start
        return rows

    def living(self, segment: int) -> Ids | None:
        """The living rows of a segment, from 0; nothing where all live."""
        dead = self.dead_in(segment)
        return np.delete(np.arange(len(self.segments[segment])), dead) if len(dead) else None

    def allowed(self, where: str | None) -> list[Part]:
        """What a search may find: all living rows, or those that pass a filter."""
        parts = []
        kept = None if where is None else parse(where, self.filterable)
        for number, segment in enumerate(self.segments):
            dead = self.dead_in(number)
            if kept is None or not len(segment):
                parts.append(Part(segment.vectors, without=dead if len(dead) else None))
                continue
            passed = kept.rows(segment.table)
            if len(dead):
                passed = passed.copy()
                passed[dead] = False
            parts.append(Part.of(segment.vectors, passed))
        return parts

    @property
    def filterable(self) -> dict[str, str]:
        """Columns that a filter may name."""
        return {"path": "text", "label": "text", "id": "number", **self.fields}

    def _split(self, rows: Ids) -> list[tuple[int, Ids, Ids]]:
        """Rows by segment: its number, which of the given ones, and their places in it."""
        owner = np.searchsorted(self.starts, rows, side="right") - 1
        found = []
        for number in np.unique(owner):
            which = np.flatnonzero(owner == number)
            found.append((int(number), which, rows[which] - self.starts[number]))
        return found

    def vectors(self, rows: Ids) -> Floats:
        """Vectors of rows, float32."""
        found = np.empty((len(rows), self.manifest.dim), np.float32)
        for number, which, places in self._split(rows):
            found[which] = self.segments[number].vectors.take(places)
        return found

    def items(self, rows: Ids) -> list[Item]:
        """What is known of the items in rows."""
        found: list[Item | None] = [None] * len(rows)
        for number, which, places in self._split(rows):
            for place, cells in zip(which, self.segments[number].table.take(places).to_pylist(), strict=True):
                known = {key: value for key, value in cells.items() if key not in RESERVED and key[:1] != HIDDEN}
                metadata = {key: known.get(key) for key in self.fields}
                found[place] = Item(cells["id"], cells["path"], cells["label"], metadata)
        return [each for each in found if each is not None]

    def thumbnail(self, row: int) -> bytes | None:
        """The thumbnail of the item in a row."""
        number = int(np.searchsorted(self.starts, row, side="right")) - 1
        return self.segments[number].thumbnail(row - int(self.starts[number]))

    def column(self, name: str) -> list[Any]:
        """A column of all living items; nothing where a segment has none of that name."""
        values: list[Any] = []
        for number, segment in enumerate(self.segments):
            rows = self.living(number)
            if name not in segment.table.column_names:
                values += [None] * (len(segment) if rows is None else len(rows))
                continue
            column = segment.table.column(name)
            values += (column if rows is None else column.take(rows)).to_pylist()
        return values

    def with_paths(self, paths: Sequence[str]) -> Ids:
        """The numbers of living items with one of these paths."""
        from pyarrow import array, compute, string

        wanted, found = array(paths, string()), []
        for number, segment in enumerate(self.segments):
            if not len(segment):
                continue
            there = compute.is_in(segment.table.column("path"), value_set=wanted).to_numpy()
            rows = self.living(number)
            rows = np.flatnonzero(there) if rows is None else rows[there[rows]]
            found.append(segment.ids[rows])
        return np.concatenate(found) if found else np.zeros(0, np.int64)
