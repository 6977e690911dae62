"""Changes to an index: every one writes new files and then, in one step, a manifest that names them.

A process that dies at any moment leaves the old index, or the new one; what it had written beside is removed by whoever
writes next.  One process writes at a time; readers need not wait.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace as replaced
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from filelock import FileLock, Timeout
from numpy.typing import NDArray

from likewise.search.exact import Part, nearest, recall
from likewise.search.found import Ids
from likewise.search.manifest import (
    Loss,
    Manifest,
    ModelEntry,
    SegmentEntry,
    new_id,
    remove_leftovers,
    sync,
    write_manifest,
)
from likewise.search.segment import (
    Segment,
    Vectors,
    arrow,
    blocks_of,
    copied,
    encode,
    kind_of,
    make_table,
    write_segment,
)
from likewise.search.snapshot import Snapshot
from likewise.trunks import read_card

if TYPE_CHECKING:
    from pyarrow import Table

WAIT = 30.0
"""Seconds to wait for another writer."""

SEGMENTS = 32
"""Segments beyond which an addition puts them together."""

SAMPLE, AMONG, K = 200, 50_000, 10
"""Queries and items with which the cost of a storage is measured, and how many neighbors each query has."""


@contextmanager
def alone(folder: Path) -> Iterator[Snapshot]:
    """The index as it is now, for the one process that may change it; the system lets go when it dies.

    Examples:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp()) / "birds.index"
        >>> _ = create(folder, Manifest("birds", 2), None, None, None)
        >>> with alone(folder) as snapshot:
        ...     print(len(snapshot))
        0
    """
    lock = FileLock(folder / ".lock")
    try:
        lock.acquire(timeout=WAIT)
    except Timeout:
        raise TimeoutError(f"another process is writing {folder}") from None
    try:
        snapshot = Snapshot.open(folder)
        remove_leftovers(folder, snapshot.manifest)
        yield snapshot
    finally:
        lock.release()


def commit(folder: Path, manifest: Manifest) -> Snapshot:
    """Make a manifest the index, and remove what only the one before named.

    Examples:
        >>> import tempfile
        >>> commit(Path(tempfile.mkdtemp()), Manifest("birds", 2)).manifest.name
        'birds'
    """
    write_manifest(folder, manifest)
    snapshot = Snapshot(folder, manifest)
    remove_leftovers(folder, manifest)
    return snapshot


def create(folder: Path, manifest: Manifest, model: Path | None, images: str | None, name: str | None) -> Snapshot:
    """A new, empty index, with a copy of its model.

    Examples:
        >>> import tempfile
        >>> len(create(Path(tempfile.mkdtemp()), Manifest("birds", 2), None, None, None))
        0
    """
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise FileExistsError(f"folder must be new or empty, but {folder} has files")
    with FileLock(folder / ".lock"):
        if model is not None:
            manifest = replaced(manifest, model=_copied_model(folder, model, images, name))
        return commit(folder, manifest)


def _copied_model(folder: Path, model: Path, images: str | None, name: str | None) -> ModelEntry:
    card = read_card(model)
    with model.open("rb") as opened:
        digest = hashlib.file_digest(opened, "sha256").hexdigest()
    file = f"model-{digest[:8]}.safetensors"
    with model.open("rb") as original, (folder / file).open("wb") as copy:
        shutil.copyfileobj(original, copy, 2**20)  # on a full disk, an error that does not name the original
    sync(folder / file)
    return ModelEntry(file, name or model.name, digest, images, json.loads(card.to_json()))


# ------------------------------------------------------------------------------------------------ add, remove, merge


def add(
    snapshot: Snapshot,
    vectors: NDArray[Any],
    paths: Sequence[str],
    labels: Sequence[str | None] | None,
    metadata: Mapping[str, Sequence[Any]] | None,
    thumbnails: Sequence[bytes | None] | None,
    replace: bool,
) -> tuple[Manifest, Ids]:
    """A new segment, and those whose paths it has are gone.

    Examples:
        >>> import tempfile
        >>> empty = create(Path(tempfile.mkdtemp()), Manifest("birds", 2), None, None, None)
        >>> manifest, ids = add(empty, np.eye(2), ["a.png", "b.png"], None, None, None, True)
        >>> ids.tolist(), len(commit(empty.folder, manifest))
        ([0, 1], 2)
    """
    manifest = snapshot.manifest
    ids = np.arange(manifest.next_id, manifest.next_id + len(vectors))
    table = make_table(ids, paths, labels, metadata)
    _check_kinds(snapshot, table)
    blocks = blocks_of(vectors, manifest.storage)
    changes = _appended(snapshot, table, blocks, thumbnails, replace)
    changes["loss"] = _better(manifest.loss, storage_loss(vectors, manifest.storage))
    return manifest.next(**changes), ids


def merge(snapshot: Snapshot, other: Snapshot) -> tuple[Manifest, int]:
    """The living items of another index, with new numbers; those whose paths they have are gone.

    Examples:
        >>> import tempfile
        >>> one, other = (create(Path(tempfile.mkdtemp()), Manifest("birds", 2), None, None, None) for _ in range(2))
        >>> other = commit(other.folder, add(other, np.eye(2), ["a.png", "b.png"], None, None, None, True)[0])
        >>> manifest, count = merge(one, other)
        >>> count, len(commit(one.folder, manifest))
        (2, 2)
    """
    mine, theirs = snapshot.manifest, other.manifest
    _check_model(mine, theirs)
    count = len(other)
    table = _living_table(other)
    ids = np.arange(mine.next_id, mine.next_id + count)
    table = table.set_column(0, "id", arrow().array(ids))
    if theirs.root is not None and theirs.root != mine.root:
        root = Path(theirs.root)
        paths = [str(root / path) for path in table.column("path").to_pylist()]
        table = table.set_column(table.column_names.index("path"), "path", arrow().array(paths, arrow().string()))
    _check_kinds(snapshot, table)
    same = mine.storage == theirs.storage
    thumbnails = (other.thumbnail(row) for row in living_rows(other))
    changes = _appended(snapshot, table, copied(_living_vectors(other), mine.storage, same), thumbnails, True)
    if same:
        changes["loss"] = _better(mine.loss, theirs.loss)
    return mine.next(**changes), count


def _appended(
    snapshot: Snapshot, table: Table, blocks: Iterator[Vectors], thumbnails: Any, replace: bool
) -> dict[str, Any]:
    """What changes in the manifest when a segment is written behind the others."""
    manifest = snapshot.manifest
    paths = table.column("path")
    if replace:
        if len(paths.unique()) < len(paths):
            counts = paths.value_counts().to_pylist()
            twice = next(each["values"] for each in counts if each["counts"] > 1)
            raise ValueError(f"paths must name each file once, but it names {twice!r} twice")
        replaced = snapshot.with_paths(paths.to_pylist())
    else:
        replaced = np.zeros(0, np.int64)
    entry = write_segment(snapshot.folder, new_id(), blocks, table, thumbnails, manifest.storage)
    segments = (*manifest.segments, entry)
    gone = manifest.gone
    if len(replaced):
        gone = write_gone(snapshot, replaced)
    return {"segments": segments, "gone": gone, "next_id": manifest.next_id + table.num_rows}


def remove(snapshot: Snapshot, ids: Ids) -> Manifest:
    """The same without some items; their rows stay until the next rebuild.

    Examples:
        >>> import tempfile
        >>> some = create(Path(tempfile.mkdtemp()), Manifest("birds", 2), None, None, None)
        >>> some = commit(some.folder, add(some, np.eye(2), ["a.png", "b.png"], None, None, None, True)[0])
        >>> commit(some.folder, remove(some, np.array([0]))).ids.tolist()
        [1]
    """
    return snapshot.manifest.next(gone=write_gone(snapshot, ids))


def write_gone(snapshot: Snapshot, ids: Ids) -> str:
    """Write the numbers of all removed items, these included.

    Examples:
        >>> import tempfile
        >>> some = create(Path(tempfile.mkdtemp()), Manifest("birds", 2), None, None, None)
        >>> np.load(some.folder / write_gone(some, np.array([3])))
        array([3])
    """
    name = f"gone-{new_id()}.npy"
    with (snapshot.folder / name).open("xb") as file:
        np.save(file, np.union1d(snapshot.gone, ids).astype(np.int64))
    sync(snapshot.folder / name)
    return name


def _check_kinds(snapshot: Snapshot, table: Table) -> None:
    for column in table.schema:
        kind, known = kind_of(column.type), snapshot.fields.get(column.name)
        if kind is not None and known is not None and kind != known:
            raise TypeError(f"metadata[{column.name!r}] must hold a {known} like the index's, but it holds a {kind}")


def _check_model(mine: Manifest, theirs: Manifest) -> None:
    if mine.dim != theirs.dim:
        raise ValueError(f"other must have vectors of size {mine.dim}, but they are of size {theirs.dim}")
    ours, others = mine.model, theirs.model
    if (ours and ours.sha256) != (others and others.sha256):
        names = [each.name if each else "no model" for each in (ours, others)]
        raise ValueError(f"other must be of the same model, {names[0]}, but it is of another one, {names[1]}")
    if ours and others and ours.images != others.images:
        raise ValueError(f"other must show images alike, by {ours.images}, but it shows them by {others.images}")


# ------------------------------------------------------------------------------------------------ putting together


def compacted(snapshot: Snapshot, storage: str, *, keep: int = 0) -> dict[str, Any]:
    """What changes when all segments but the first few are put together, without what was removed.

    Args:
        snapshot: the index.
        storage: how vectors are stored afterwards.
        keep: segments that stay as they are.

    Examples:
        >>> import tempfile
        >>> some = create(Path(tempfile.mkdtemp()), Manifest("birds", 2), None, None, None)
        >>> for path in ("a.png", "b.png"):
        ...     some = commit(some.folder, add(some, np.ones((1, 2)), [path], None, None, None, True)[0])
        >>> len(some.segments), len(compacted(some, "int8")["segments"])
        (2, 1)
    """
    manifest = snapshot.manifest
    kept = manifest.segments[:keep]
    numbers = range(keep, len(snapshot.segments))
    rows = living_rows(snapshot)
    rows = rows[rows >= snapshot.starts[keep]]
    entries: tuple[SegmentEntry, ...] = ()
    if len(rows):
        blocks = copied(_living_vectors(snapshot, numbers), storage, storage == manifest.storage)
        thumbnails = None
        if any(each.thumbnails for each in manifest.segments[keep:]):
            thumbnails = (snapshot.thumbnail(int(row)) for row in rows)
        table = _living_table(snapshot, numbers)
        entries = (write_segment(snapshot.folder, new_id(), blocks, table, thumbnails, storage),)
    gone = snapshot.gone[np.isin(snapshot.gone, snapshot.row_ids[: snapshot.starts[keep]])]
    name = None
    if len(gone):
        name = f"gone-{new_id()}.npy"
        with (snapshot.folder / name).open("xb") as file:
            np.save(file, gone)
        sync(snapshot.folder / name)
    return {"segments": (*kept, *entries), "gone": name, "storage": storage}


def rebuilt(snapshot: Snapshot, storage: str, approximate: str | None, queries: int) -> Manifest:
    """The same items in one segment, with a structure for approximate search or without one.

    Examples:
        >>> import tempfile
        >>> some = create(Path(tempfile.mkdtemp()), Manifest("birds", 2), None, None, None)
        >>> some = commit(some.folder, add(some, np.eye(2), ["a.png", "b.png"], None, None, None, True)[0])
        >>> rebuilt(some, "int8", None, 10).storage
        'int8'
    """
    from likewise.search.approximate import kind_for, structured

    manifest = snapshot.manifest
    kind = approximate or (manifest.near.kind if manifest.near else "exact")
    kind = kind_for(len(snapshot)) if kind == "auto" else kind
    changes: dict[str, Any] = {"storage": storage}
    if storage != manifest.storage:
        among = living_rows(snapshot)
        if len(among) > AMONG:
            among = np.sort(np.random.default_rng(0).choice(among, AMONG, replace=False))
        changes["loss"] = storage_loss(snapshot.vectors(among), storage)
    if storage != manifest.storage or len(manifest.segments) > 1 or len(snapshot.gone):
        changes |= compacted(snapshot, storage)
    manifest = manifest.next(near=None, **changes)
    if kind == "exact" or not manifest.segments:
        return manifest
    entry = manifest.segments[0]
    vectors = Segment(snapshot.folder, entry, manifest.dim, storage).vectors
    return replaced(manifest, near=structured(snapshot.folder, entry.id, vectors, kind, queries))


def living_rows(snapshot: Snapshot) -> Ids:
    """The rows of living items.

    Examples:
        >>> import tempfile
        >>> living_rows(create(Path(tempfile.mkdtemp()), Manifest("birds", 2), None, None, None))
        array([], dtype=int64)
    """
    rows = np.arange(snapshot.starts[-1])
    return np.delete(rows, snapshot.dead) if len(snapshot.gone) else rows


def _living_vectors(snapshot: Snapshot, numbers: Sequence[int] | None = None) -> list[tuple[Vectors, Ids]]:
    found = []
    for number in range(len(snapshot.segments)) if numbers is None else numbers:
        rows = snapshot.living(number)
        segment = snapshot.segments[number]
        found.append((segment.vectors, np.arange(len(segment)) if rows is None else rows))
    return found


def _living_table(snapshot: Snapshot, numbers: Sequence[int] | None = None) -> Table:
    pa = arrow()
    tables = []
    for number in range(len(snapshot.segments)) if numbers is None else numbers:
        rows, table = snapshot.living(number), snapshot.segments[number].table
        tables.append(table if rows is None else table.take(rows))
    if not tables:
        return make_table(np.zeros(0, np.int64), [], None, None)
    return pa.concat_tables(tables, promote_options="permissive").combine_chunks()


# ------------------------------------------------------------------------------------------------ what a storage costs


def storage_loss(vectors: NDArray[Any], storage: str) -> Loss | None:
    """How many of the ten nearest are still found when vectors are stored in fewer bits; nothing for float32.

    Measured among at most fifty thousand of them, by two hundred that look for the others.

    Examples:
        >>> storage_loss(np.random.default_rng(0).normal(size=(500, 32)), "float16").recall > 0.95
        True
    """
    if storage == "float32" or len(vectors) <= K:
        return None
    chance = np.random.default_rng(0)
    rows = np.arange(len(vectors))
    if len(rows) > AMONG:
        rows = np.sort(chance.choice(len(rows), AMONG, replace=False))
    true = Vectors(*encode(np.asarray(vectors)[rows], "float32"))
    stored = Vectors(*encode(true.codes, storage))
    asked = np.sort(chance.choice(len(rows), min(SAMPLE, len(rows)), replace=False))
    queries = true.take(asked)
    found = [nearest(queries, [Part(each)], K + 1)[0] for each in (stored, true)]
    return Loss(recall(*(without(each, asked, K) for each in found)), len(asked), len(rows))


def without(found: Ids, own: Ids, k: int) -> Ids:
    """Rows that were found, k for each query, itself left out.

    Examples:
        >>> without(np.array([[4, 5, 6], [5, 6, 7]]), np.array([5, 9]), 2).tolist()
        [[4, 6], [5, 6]]
    """
    itself = found == own[:, None]
    itself[:, -1] |= ~itself.any(axis=1)  # not among them: the last one is one too many
    others: Ids = found[~itself].reshape(len(found), -1)[:, :k]
    return others


def _better(old: Loss | None, new: Loss | None) -> Loss | None:
    """The measurement among more items."""
    known = [each for each in (old, new) if each is not None]
    return max(known, key=lambda each: each.among, default=None)
