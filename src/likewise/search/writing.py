"""Writing the files of a version: vectors, items and thumbnails."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from likewise.search.card import IndexCard
from likewise.search.columns import arrow, kinds_of
from likewise.search.drafts import Draft
from likewise.search.matches import Ids
from likewise.search.snapshot import Snapshot
from likewise.search.store import NewRows
from likewise.search.vectors import DTYPES, Vectors, encode_chunks

if TYPE_CHECKING:
    from pyarrow import Table

BATCH = 2**16
"""Items per record batch."""

ADDED = 2**26
"""Bytes of added thumbnails above which all are written to one file, or a quarter of the first file if that is more."""


def write_rows(draft: Draft, now: Snapshot, keep: Ids | None, new: NewRows | None) -> dict[str, Any]:
    """Write the rows of the next version, and return the changes of the card.

    Args:
        draft: the next version.
        now: the current version.
        keep: rows of it to keep, increasing; ``None`` for all.
        new: rows to append, with their ids.

    Examples:
        >>> import tempfile
        >>> from likewise.search import Index
        >>> index = Index.create(tempfile.mkdtemp() + "/birds.index", dim=2)
        >>> _ = index.add(np.eye(2), ["a.png", "b.png"])
        >>> with Draft(index.folder) as draft:
        ...     write_rows(draft, Snapshot.open(index.folder), np.array([1]), None)
        {'rows': 1, 'fields': {}}
    """
    card, old_rows = now.version.card, len(now) if keep is None else len(keep)
    table = now.items if keep is None else now.items.filter(_mask(keep, len(now)))
    chunks: Iterable[Vectors] = encode_chunks(now.stored, card.storage, keep)
    thumbnails, count = None, 0
    if new is not None:
        table = arrow().concat_tables([table, new.table], promote_options="permissive")
        chunks = chain(chunks, encode_chunks(new.vectors, card.storage))
        thumbnails, count = new.thumbnails, len(new)
    write_vectors(draft, chunks, old_rows + count, card)
    write_items(draft, table)
    write_thumbnails(draft, now, keep=keep, new=thumbnails, count=count)
    return {"rows": table.num_rows, "fields": kinds_of(table.schema)}


def _mask(rows: Ids, total: int) -> Any:
    mask = np.zeros(total, bool)
    mask[rows] = True
    return arrow().array(mask)


def write_vectors(draft: Draft, chunks: Iterable[Vectors], rows: int, card: IndexCard) -> Vectors:
    """Write vectors and their scales, and return them, mapped into memory.

    Args:
        draft: the next version.
        chunks: chunks of stored vectors.
        rows: total number of rows.
        card: dimension and storage type of the vectors.

    Examples:
        >>> import tempfile
        >>> from pathlib import Path
        >>> with Draft(Path(tempfile.mkdtemp())) as draft:
        ...     len(write_vectors(draft, encode_chunks(np.eye(2), "int8"), 2, IndexCard("birds", 2, "int8")))
        2
    """
    scales, written, dtype = [np.zeros(0, np.float32)], 0, DTYPES[card.storage]
    with draft.write("vectors.npy") as file:
        np.lib.format.write_array_header_1_0(
            file, {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": (rows, card.dim)}
        )
        for chunk in chunks:
            file.write(np.ascontiguousarray(chunk.codes, dtype).view(np.uint8).reshape(-1))
            written += len(chunk)
            if chunk.scales is not None:
                scales.append(chunk.scales)
    if written != rows:
        raise ValueError(f"vectors must have one row for each of the {rows} items, but there are {written}")
    every = None if card.storage == "float32" else np.concatenate(scales)
    if every is not None:
        with draft.write("scales.npy") as file:
            np.save(file, every)
    return Vectors(np.asarray(np.load(draft.folder / "vectors.npy", mmap_mode="c")), every)


def write_items(draft: Draft, table: Table) -> None:
    """Write the table of items.

    Examples:
        >>> import tempfile
        >>> from pathlib import Path
        >>> with Draft(Path(tempfile.mkdtemp())) as draft:
        ...     write_items(draft, arrow().table({"id": [0]}))
        ...     list(draft.files)
        ['items.arrow']
    """
    with draft.write("items.arrow") as file, arrow().ipc.new_file(file, table.schema) as writer:
        writer.write_table(table, max_chunksize=BATCH)


def write_thumbnails(
    draft: Draft,
    now: Snapshot,
    *,
    keep: Ids | None = None,
    new: Iterable[bytes | None] | None = None,
    count: int = 0,
    whole: bool = False,
) -> None:
    """Write the positions of thumbnails, and append new thumbnails.

    Thumbnails are most of the bytes of an index.  The first file is shared with the current version; the second one, with
    the thumbnails added since, is written again.  Both are merged if the second is large, or if half of the bytes belong to
    removed items.

    Args:
        draft: the next version.
        now: the current version.
        keep: rows of it to keep, increasing; ``None`` for all.
        new: thumbnails of the appended rows; ``None`` if there are none.
        count: number of appended rows.
        whole: always write a single file.

    Examples:
        >>> import tempfile
        >>> from likewise.search import Index
        >>> index = Index.create(tempfile.mkdtemp() + "/birds.index", dim=2)
        >>> for path in ("a.png", "b.png"):
        ...     _ = index.add(np.eye(1, 2), [path], thumbnails=[b"webp"])
        >>> sorted(name for name in index.card.files if name.startswith("thumbnails"))
        ['thumbnails-added.bin', 'thumbnails.bin', 'thumbnails.npy']
    """
    if now.spans is None and new is None:
        return
    spans = np.zeros((len(now), 2), np.int64) if now.spans is None else now.spans
    spans = spans if keep is None else spans[keep]
    first, added = (0 if blob is None else len(blob) for blob in now.blobs)
    living = int((spans[:, 1] - spans[:, 0]).sum())
    behind, rows = repeat(None, count) if new is None else new, len(spans) + count
    if whole or not first or 2 * living < first + added or added > max(ADDED, first // 4):
        old = (now.thumbnail(int(row)) for row in (range(len(now)) if keep is None else keep))
        lengths, start = write_blobs(draft, "thumbnails.bin", chain(old, behind)), 0
        spans = spans[:0]
    else:
        draft.share(now.version, "thumbnails.bin")
        start = first + added
        if new is None:
            draft.share(now.version, "thumbnails-added.bin")
            lengths = np.zeros(count, np.int64)
        else:
            lengths = write_blobs(draft, "thumbnails-added.bin", behind, after=now.blobs[1])
    if len(spans) + len(lengths) != rows:
        entries = len(lengths) - (rows - len(spans) - count)
        raise ValueError(f"thumbnails must have one entry for each of the {count} items, but it has {entries}")
    ends = start + np.cumsum(lengths)
    with draft.write("thumbnails.npy") as file:
        np.save(file, np.concatenate([spans, np.stack([ends - lengths, ends], axis=1)]))


def write_blobs(
    draft: Draft, name: str, blobs: Iterable[bytes | None], after: NDArray[np.uint8] | None = None
) -> NDArray[np.int64]:
    """Write several byte strings one after the other, and return their lengths.

    Args:
        draft: the next version.
        name: name of the file.
        blobs: the byte strings.
        after: bytes that precede them.

    Examples:
        >>> import tempfile
        >>> from pathlib import Path
        >>> with Draft(Path(tempfile.mkdtemp())) as draft:
        ...     write_blobs(draft, "thumbnails.bin", [b"ab", None])
        array([2, 0])
    """
    with draft.write(name) as file:
        if after is not None:
            file.write(after)
        return np.fromiter((file.write(each) if each else 0 for each in blobs), np.int64)
