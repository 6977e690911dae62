"""Segments: items with their vectors and thumbnails, written once, read through the operating system's pages."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from likewise.search.manifest import SegmentEntry

if TYPE_CHECKING:
    from pyarrow import Table

Rows: TypeAlias = slice | NDArray[np.int64]
RESERVED = ("id", "path", "label")
"""Columns that every item has."""

HIDDEN = "_"
"""What the names of columns begin with that are the index's own business."""

DAMAGED = "is damaged: take a copy of the index, or make it anew"
MISSING = "is missing: take a copy of the index, or make it anew"

CHUNK = 2**16
"""Rows that are converted, copied or written at once."""

SHORTEST = 1e-250
"""Squares of lengths below this have lost digits."""

DTYPES: Mapping[str, np.dtype[Any]] = {"float32": np.dtype("<f4"), "float16": np.dtype("<f2"), "int8": np.dtype("i1")}


def arrow() -> Any:
    """The package pyarrow, or a sentence on how to get it.

    Examples:
        >>> arrow().__name__
        'pyarrow'
    """
    try:
        import pyarrow
    except ImportError as missing:
        raise ImportError("an index needs pyarrow: pip install 'likewise[search]'") from missing
    return pyarrow


@dataclass(frozen=True, eq=False)
class Vectors:
    """Vectors of unit length as they are stored: ``codes * scales`` in float32.

    Args:
        codes: float32, float16 or int8, ``(n, d)``.
        scales: what the length of each row is divided by, float32 ``(n,)``; none for float32.

    Examples:
        >>> stored = Vectors(*encode(np.array([[3.0, 4.0]]), "int8"))
        >>> stored.codes.tolist(), stored.take(slice(0, 1)).round(2)
        ([[95, 127]], array([[0.6, 0.8]], dtype=float32))
    """

    codes: NDArray[Any]
    scales: NDArray[np.float32] | None = None

    def __len__(self) -> int:
        return len(self.codes)

    def take(self, rows: Rows) -> NDArray[np.float32]:
        """Some rows in float32; a view where they are stored so and are a slice."""
        taken = self.codes[rows]
        if self.scales is None:
            return taken
        wide: NDArray[np.float32] = taken.astype(np.float32)
        wide *= self.scales[rows][:, None]
        return wide


def encode(vectors: NDArray[Any], storage: str) -> tuple[NDArray[Any], NDArray[np.float32] | None]:
    """Vectors as they are stored; a row of zeros has no direction and stays zero.

    Examples:
        >>> encode(np.array([[0.0, 2.0]]), "float32")
        (array([[0., 1.]], dtype=float32), None)
    """
    exact = np.asarray(vectors, np.float64)
    with np.errstate(over="ignore"):
        squares = np.einsum("ij,ij->i", exact, exact)
    odd = ((squares < SHORTEST) | (squares > 1.0 / SHORTEST)) & exact.any(axis=1)
    if odd.any():  # their squares have left what float64 can hold; their direction has not
        exact = exact.copy()
        exact[odd] /= np.abs(exact[odd]).max(axis=1, keepdims=True)
        squares[odd] = np.einsum("ij,ij->i", exact[odd], exact[odd])
    norms = np.sqrt(squares)[:, None]
    units = np.divide(exact, norms, out=np.zeros_like(exact), where=norms > 0.0)
    if storage == "float32":
        return units.astype(DTYPES[storage]), None
    if storage == "int8":
        largest = np.abs(units).max(axis=1, keepdims=True, initial=0.0)
        units = np.rint(np.divide(units * 127.0, largest, out=np.zeros_like(units), where=largest > 0.0))
    codes = units.astype(DTYPES[storage])
    wide = codes.astype(np.float64)
    lengths = np.sqrt(np.einsum("ij,ij->i", wide, wide))
    # what is read back has length one again: the similarity stays a cosine
    scales = np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0.0)
    return codes, scales.astype(np.float32)


class Segment:
    """A segment that is open for reading; its files may be unlinked while it is.

    Args:
        folder: of the index.
        entry: what the manifest says of it.
        dim: the size of vectors.
        storage: how they are stored.

    Attributes:
        entry: what the manifest says of it.
        vectors: as they are stored.
        table: the items' columns.
        ids: their numbers, increasing.

    Examples:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> table = make_table(np.array([4, 7]), ["a.png", "b.png"], None, None)
        >>> entry = write_segment(folder, "0", blocks_of(np.eye(2), "int8"), table, [b"webp", None], "int8")
        >>> segment = Segment(folder, entry, 2, "int8")
        >>> segment.ids.tolist(), segment.thumbnail(0)
        ([4, 7], b'webp')
    """

    def __init__(self, folder: Path, entry: SegmentEntry, dim: int, storage: str) -> None:
        pa = arrow()
        self.entry = entry
        codes = _opened(folder / f"vectors-{entry.id}.npy")
        scales = None if storage == "float32" else _opened(folder / f"scales-{entry.id}.npy")
        if codes.shape != (entry.rows, dim) or codes.dtype != DTYPES[storage]:
            raise ValueError(f"{folder / f'vectors-{entry.id}.npy'} {DAMAGED}")
        if scales is not None and scales.shape != (entry.rows,):
            raise ValueError(f"{folder / f'scales-{entry.id}.npy'} {DAMAGED}")
        self.vectors = Vectors(codes, scales)
        items = folder / f"items-{entry.id}.arrow"
        try:
            self.table: Table = pa.ipc.open_file(pa.memory_map(str(items))).read_all()
        except pa.ArrowInvalid as error:
            raise ValueError(f"{items} {DAMAGED}") from error
        if self.table.num_rows != entry.rows or self.table.column_names[: len(RESERVED)] != list(RESERVED):
            raise ValueError(f"{items} {DAMAGED}")
        column = self.table.column("id")
        self.ids: NDArray[np.int64] = column.to_numpy() if entry.rows else np.zeros(0, np.int64)
        self._offsets = self._thumbs = None
        if entry.thumbnails:
            self._offsets = _opened(folder / f"thumbs-{entry.id}.npy")
            thumbs = folder / f"thumbs-{entry.id}.bin"
            if self._offsets.shape != (entry.rows + 1,) or thumbs.stat().st_size != self._offsets[-1]:
                raise ValueError(f"{thumbs} {DAMAGED}")
            self._thumbs = np.memmap(thumbs, np.uint8, "r")

    def __len__(self) -> int:
        return self.entry.rows

    def thumbnail(self, row: int) -> bytes | None:
        """The WebP file of an item's thumbnail."""
        if self._thumbs is None or self._offsets is None:
            return None
        start, stop = int(self._offsets[row]), int(self._offsets[row + 1])
        return self._thumbs[start:stop].tobytes() if stop > start else None


def _opened(file: Path) -> NDArray[Any]:
    try:
        # copy on write: torch warns of memory that cannot be written to, though nobody does
        array: NDArray[Any] = np.load(file, mmap_mode="c", allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise ValueError(f"{file} {DAMAGED}") from error
    return np.asarray(array)


# ------------------------------------------------------------------------------------------------ writing


def write_segment(
    folder: Path,
    name: str,
    blocks: Iterable[Vectors],
    table: Table,
    thumbnails: Iterable[bytes | None] | None,
    storage: str,
) -> SegmentEntry:
    """Write the files of a segment; nothing names them yet.

    Args:
        folder: of the index.
        name: part of the files' names, which is new.
        blocks: vectors, as they are stored.
        table: the items' columns.
        thumbnails: one for each, or nothing.
        storage: how vectors are stored.

    Examples:
        >>> import tempfile
        >>> folder, table = Path(tempfile.mkdtemp()), make_table(np.array([0]), ["a.png"], None, None)
        >>> write_segment(folder, "0", blocks_of(np.ones((1, 2)), "float32"), table, None, "float32")
        SegmentEntry(id='0', rows=1, thumbnails=False)
        >>> sorted(file.name for file in folder.iterdir())
        ['items-0.arrow', 'vectors-0.npy']
    """
    rows = table.num_rows
    _write_vectors(folder, name, blocks, rows, storage)
    pa = arrow()
    with _synced(folder / f"items-{name}.arrow") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table, max_chunksize=CHUNK)
    any_thumbnail = False
    if thumbnails is not None:
        any_thumbnail = _write_thumbnails(folder, name, thumbnails, rows)
    return SegmentEntry(name, rows, any_thumbnail)


def _write_vectors(folder: Path, name: str, blocks: Iterable[Vectors], rows: int, storage: str) -> None:
    scales = []
    with _synced(folder / f"vectors-{name}.npy") as file:
        written = 0
        for block in blocks:
            if not written:
                _header(file, DTYPES[storage], (rows, block.codes.shape[1]))
            file.write(np.ascontiguousarray(block.codes, DTYPES[storage]).tobytes())
            written += len(block)
            if block.scales is not None:
                scales.append(block.scales)
        if written != rows:
            raise ValueError(f"vectors must have one row for each of the {rows} items, but there are {written}")
    if storage != "float32":
        with _synced(folder / f"scales-{name}.npy") as file:
            np.save(file, np.concatenate(scales) if scales else np.zeros(0, np.float32))


def _header(file: Any, dtype: np.dtype[Any], shape: tuple[int, int]) -> None:
    description = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, description)


def _write_thumbnails(folder: Path, name: str, thumbnails: Iterable[bytes | None], rows: int) -> bool:
    offsets = [0]
    with _synced(folder / f"thumbs-{name}.bin") as file:
        for each in thumbnails:
            offsets.append(offsets[-1] + (file.write(each) if each else 0))
    if len(offsets) != rows + 1:
        raise ValueError(f"thumbnails must have one entry for each of the {rows} items, but it has {len(offsets) - 1}")
    if not offsets[-1]:  # an empty file cannot be mapped
        (folder / f"thumbs-{name}.bin").unlink()
        return False
    with _synced(folder / f"thumbs-{name}.npy") as file:
        np.save(file, np.array(offsets, np.int64))
    return True


class _synced:  # noqa: N801 - used like a function
    """A new file, which is on the disk when the block is left."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("xb")

    def __enter__(self) -> Any:
        return self._file

    def __exit__(self, *error: object) -> None:
        try:
            self._file.flush()
            os.fsync(self._file.fileno())
        finally:
            self._file.close()


def blocks_of(vectors: NDArray[Any], storage: str) -> Iterator[Vectors]:
    """Given vectors, encoded a block at a time.

    Examples:
        >>> [len(block) for block in blocks_of(np.ones((3, 2)), "int8")]
        [3]
    """
    for start in range(0, len(vectors), CHUNK):
        yield Vectors(*encode(vectors[start : start + CHUNK], storage))


def copied(parts: Sequence[tuple[Vectors, NDArray[np.int64]]], storage: str, same: bool) -> Iterator[Vectors]:
    """Chosen rows of open segments: as they are where the storage is the same, else encoded anew.

    Examples:
        >>> stored = Vectors(*encode(np.eye(2), "int8"))
        >>> [block.codes.tolist() for block in copied([(stored, np.array([1]))], "int8", same=True)]
        [[[0, 127]]]
    """
    for vectors, rows in parts:
        for start in range(0, len(rows), CHUNK):
            some = rows[start : start + CHUNK]
            if same:
                yield Vectors(vectors.codes[some], None if vectors.scales is None else vectors.scales[some])
            else:
                yield Vectors(*encode(vectors.take(some), storage))


# ------------------------------------------------------------------------------------------------ columns


def make_table(
    ids: NDArray[np.int64],
    paths: Sequence[str],
    labels: Sequence[str | None] | None,
    metadata: Mapping[str, Sequence[Any]] | None,
) -> Table:
    """The columns of items, checked.

    Examples:
        >>> make_table(np.array([0]), ["a.png"], None, {"year": [2021]}).column_names
        ['id', 'path', 'label', 'year']
    """
    pa = arrow()
    rows = len(ids)
    texts = [os.fspath(path) for path in paths]
    names = [None] * rows if labels is None else [None if each is None else str(each) for each in labels]
    columns = {
        "id": pa.array(ids, pa.int64()),
        "path": pa.array(texts, pa.string()),
        "label": pa.array(names, pa.string()),
    }
    for name, values in (metadata or {}).items():
        if not isinstance(name, str) or not name or name in RESERVED:
            raise ValueError(
                f"metadata must have columns with names other than {', '.join(RESERVED)}, but has {name!r}"
            )
        columns[name] = _column(name, values)
    for name, column in columns.items():
        if len(column) != rows:
            what = {"path": "paths", "label": "labels"}.get(name, f"metadata[{name!r}]")
            raise ValueError(f"{what} must have one entry for each of the {rows} vectors, but it has {len(column)}")
    return pa.table(columns)


def _column(name: str, values: Sequence[Any]) -> Any:
    """Texts, numbers or truth values, with nothing where there is nothing."""
    pa = arrow()
    plain = [_plain(value) for value in (values.tolist() if isinstance(values, np.ndarray) else values)]
    kinds = {type(value) for value in plain if value is not None}
    if not kinds:
        return pa.nulls(len(plain))
    if kinds == {bool}:
        return pa.array(plain, pa.bool_())
    if kinds == {str}:
        return pa.array(plain, pa.string())
    if kinds == {int} and all(value is None or -(2**63) <= value < 2**63 for value in plain):
        return pa.array(plain, pa.int64())
    if kinds <= {int, float}:
        return pa.array([None if value is None else float(value) for value in plain], pa.float64())
    listed = ", ".join(sorted(kind.__name__ for kind in kinds))
    raise TypeError(f"metadata[{name!r}] must be all texts, all numbers or all truth values, but it has {listed}")


def _plain(value: Any) -> Any:
    """A value as Python's own; NaN is what tables put where nothing is."""
    if isinstance(value, np.generic):
        value = value.item()
    return None if value is None or value != value else value


def kind_of(column_type: Any) -> str | None:
    """What a column holds: ``"text"``, ``"number"`` or ``"bool"``; nothing where it is empty.

    Examples:
        >>> kind_of(arrow().int64())
        'number'
    """
    types = arrow().types
    if types.is_null(column_type):
        return None
    if types.is_boolean(column_type):
        return "bool"
    return "text" if types.is_string(column_type) or types.is_large_string(column_type) else "number"
