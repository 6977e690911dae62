"""Build an index of a folder or a table of images, update one, and merge several."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from likewise.app.chunks import ChunkFolder, EmbeddedImages, lock_chunks
from likewise.app.collection import STAMP, Collection, find_collection
from likewise.app.embedding import EmbeddingStart, embed_in_chunks
from likewise.app.embedding_options import EmbeddingOptions
from likewise.app.errors import UserError, making, writing
from likewise.app.index_places import check_free, chunk_folder, finish_index, index_name, new_folder, remove_leftovers
from likewise.app.models import ModelSource, resolve_model
from likewise.app.tables import write_rows
from likewise.data import Broken
from likewise.search import THUMBNAIL_SIDE, Encoder, Index, Kind, Storage, read_embeddings

CHUNK = 1024
"""Images per chunk file; a killed process loses at most one chunk."""

BROKEN_FILE = "broken.csv"
"""The list of unreadable images in the folder of an index."""


class UnreadableImagesError(UserError):
    """Raised when no image can be read.

    Args:
        broken: the images.

    Examples:
        >>> print(UnreadableImagesError(()))
        no image can be read: there is nothing to index
    """

    def __init__(self, broken: tuple[Broken, ...]) -> None:
        super().__init__("no image can be read: there is nothing to index")
        self.broken = broken


@dataclass(frozen=True)
class IndexResult:
    """An index after a change.

    Args:
        index: the index.
        added: number of new items.
        replaced: number of replaced items.
        removed: number of removed items.
        broken: the images that could not be read.
        example: one of the images that were read, for a first search.

    Examples:
        >>> from dataclasses import fields
        >>> [each.name for each in fields(IndexResult)]
        ['index', 'added', 'replaced', 'removed', 'broken', 'example']
    """

    index: Index
    added: int = 0
    replaced: int = 0
    removed: int = 0
    broken: tuple[Broken, ...] = ()
    example: Path | None = None


def index_folder(
    model: str | Path,
    images: str | Path,
    out: str | Path,
    *,
    name: str | None = None,
    overwrite: bool = False,
    shard: tuple[int, int] | None = None,
    storage: Storage = "float32",
    approximate: Kind = "auto",
    thumbnails: int = THUMBNAIL_SIDE,
    options: EmbeddingOptions | None = None,
    on_start: Callable[[EmbeddingStart], object] | None = None,
) -> IndexResult:
    """Build an index of the images of a folder or a table.

    Chunks of 1,024 images are stored in ``OUT.chunks`` until the index is complete: an interrupted or killed call continues
    from there.  Images that cannot be read are left out and listed in ``broken.csv`` in the index's folder.

    Args:
        model: a ``.safetensors`` file, the folder of a run (its best model), or the name of a published network.
        images: a folder, nested or flat, or a table (``.csv``, ``.tsv``, ``.parquet``), whose columns become metadata.
        out: the folder of the index.
        name: its name; by default that of the folder.
        overwrite: replace an existing index: the new one is its next version.
        shard: its number, from 1, and the number of shards: index only these images; `merge_indexes` merges the shards.
        storage: ``"float32"``, ``"float16"`` (half the size) or ``"int8"`` (a quarter); the loss in recall is measured.
        approximate: ``"auto"`` (by size: exact below 200,000 images), ``"exact"``, ``"hnsw"`` or ``"ivfpq"``; the recall is
            measured.
        thumbnails: the side of thumbnails in pixels; 0 for none.
        options: how images are listed, transformed and embedded.
        on_start: called before the first image is embedded.

    Raises:
        UserError: an argument is invalid, or the index cannot be written; an `UnreadableImagesError` lists broken images.

    Examples:
        >>> import tempfile
        >>> from PIL import Image
        >>> from likewise.trunks import Embedder
        >>> folder = Path(tempfile.mkdtemp())
        >>> Embedder("convnet", 8).save(folder / "model.safetensors")
        >>> for color in ("red", "blue"):
        ...     (folder / "photos" / color).mkdir(parents=True)
        ...     Image.new("RGB", (32, 32), color).save(folder / "photos" / color / "0.png")
        >>> model, options = folder / "model.safetensors", EmbeddingOptions(transform="glyphs")
        >>> index_folder(model, folder / "photos", folder / "a.index", options=options).added
        2
    """
    out, options = Path(out), options or EmbeddingOptions()
    check_free(out, overwrite=overwrite, hint="--update adds to it, --overwrite replaces it")
    source = resolve_model(model, options.transform)
    collection = _take_shard(find_collection(images, options), shard)
    how = _Embedding(thumbnails, options, on_start)
    encoder = source.load()
    with how.embed(out, collection, source, encoder, str(source.place)) as embedded:
        if not len(embedded.rows):
            shutil.rmtree(chunk_folder(out), ignore_errors=True)
            raise UnreadableImagesError(embedded.broken)
        with making("the index"):
            index = _create(out, source, encoder, collection.images.root, storage, name)
            _add_rows(index, collection, embedded)
            index = finish_index(index, out, approximate)
    return IndexResult(index, len(embedded.rows), 0, 0, embedded.broken, _example(collection, embedded))


def update_index(
    out: str | Path,
    images: str | Path,
    *,
    prune: bool = False,
    model: str | Path | None = None,
    shard: tuple[int, int] | None = None,
    storage: Storage | None = None,
    approximate: Kind | None = None,
    thumbnails: int = THUMBNAIL_SIDE,
    options: EmbeddingOptions | None = None,
    on_start: Callable[[EmbeddingStart], object] | None = None,
) -> IndexResult:
    """Update an index from a folder or a table: add new images, replace changed ones, remove missing ones.

    Args:
        out: the folder of the index.
        images: a folder, nested or flat, or a table.
        prune: remove items whose files were under ``images`` and no longer exist.
        model: the model, to check that it is the model of the index.
        shard: its number, from 1, and the number of shards: index only these images.
        storage: change how vectors are stored.
        approximate: change how they are searched.
        thumbnails: the side of thumbnails in pixels; 0 for none.
        options: how images are listed and embedded; a transform must be that of the index.
        on_start: called before the first image is embedded.

    Raises:
        UserError: an argument is invalid, or the index cannot be written.

    Examples:
        >>> update_index("nowhere.index", "photos")
        Traceback (most recent call last):
        likewise.app.errors.UserError: the index: there is no index nowhere.index
    """
    out, options = Path(out), options or EmbeddingOptions()
    if prune and shard is not None:
        raise UserError("--prune needs all images: remove --shard, or all other images would be removed from the index")
    with making("the index"):
        index = Index.open(out)
    source = _check_model(index, out, model, options.transform)
    collection = _take_shard(find_collection(images, options), shard)
    how = _Embedding(thumbnails, options, on_start)
    paths = collection.paths_from(index.root or collection.images.root.resolve())
    stamps = dict(zip(index.column("path"), index.column(STAMP), strict=True))
    files = enumerate(zip(paths, collection.stamps(), strict=True))
    rows = [row for row, (path, stamp) in files if stamps.get(path) != stamp]
    gone = _find_gone(index, collection, paths) if prune else np.zeros(0, np.int64)
    changed, result = collection.take(rows), IndexResult(index, example=collection.images.files[0])
    if rows:
        name = "" if index.card.model is None else index.card.model.name
        with how.embed(out, changed, source, index.encoder(), name) as embedded, making("the index"):
            _add_rows(index, changed, embedded)
        new = sum(paths[rows[row]] not in stamps for row in embedded.rows)
        counts = new, len(embedded.rows) - new, 0
        result = IndexResult(index, *counts, embedded.broken, _example(changed, embedded))
    with writing(out), making("the index"):
        removed = index.remove(gone) if len(gone) else 0
        if storage or approximate:
            index.rebuild(storage=storage, approximate=approximate)
    return replace(result, removed=removed)


def index_vectors(
    vectors: str | Path,
    out: str | Path,
    *,
    model: str | Path | None = None,
    update: bool = False,
    name: str | None = None,
    overwrite: bool = False,
    storage: Storage | None = None,
    approximate: Kind | None = None,
    transform: str | None = None,
    root: str | Path | None = None,
) -> IndexResult:
    """Build an index of existing vectors, or add them to one, with or without the model that computed them.

    Args:
        vectors: a NumPy file (``.npz``) with ``embeddings`` and optionally ``paths``, ``labels`` and other columns.
        out: the folder of the index.
        model: the model that computed the vectors, to search the index with images.
        update: add the vectors to an existing index.
        name: the name of a new index; by default that of the folder.
        overwrite: replace an existing index: the new one is its next version.
        storage: how vectors are stored; by default as they are in the index, and ``"float32"`` in a new one.
        approximate: how they are searched; by default as they are, and ``"auto"`` in a new index.
        transform: the name of the model's transform.
        root: the folder that paths are relative to; by default as the file says.

    Raises:
        UserError: an argument is invalid, or the index cannot be written.

    Examples:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> np.savez(folder / "e.npz", embeddings=np.eye(3), paths=["a.png", "b.png", "c.png"])
        >>> len(index_vectors(folder / "e.npz", folder / "birds.index").index)
        3
    """
    out = Path(out)
    with making("--vectors"):
        content = read_embeddings(vectors)
    source = None if model is None else resolve_model(model, transform)
    if source is not None and source.file is not None and content.model_sha256 not in (None, source.fingerprint):
        raise UserError(f"{vectors} was computed with another model than {source.place}")
    if not update:
        check_free(out, overwrite=overwrite, hint="--update adds to it, --overwrite replaces it")
    with writing(out), lock_chunks(chunk_folder(out)), making("the index"):
        if update:
            index = Index.open(out)
            if index.card.model is not None and content.model_sha256 not in (None, index.card.model.sha256):
                raise UserError(f"{vectors} was computed with another model than {out}")
        else:
            index = Index.create(
                new_folder(out),
                dim=content.vectors.shape[1],
                model=None if source is None else source.place,
                storage=storage or "float32",
                name=index_name(out, name),
                transform=None if source is None else source.transform,
                root=root or content.root,
            )
        before = len(index)
        index.add(content.vectors, content.paths, labels=content.labels, metadata=content.metadata)
        new = len(index) - before
        if not update:
            index = finish_index(index, out, approximate or "auto")
        elif storage or approximate:
            index.rebuild(storage=storage, approximate=approximate)
        remove_leftovers(out)
    return IndexResult(index, added=new, replaced=len(content.paths) - new)


def merge_indexes(
    indexes: Sequence[str | Path],
    out: str | Path,
    *,
    name: str | None = None,
    overwrite: bool = False,
    storage: Storage | None = None,
    approximate: Kind = "auto",
) -> IndexResult:
    """Merge several indexes of one model.

    Args:
        indexes: two or more.
        out: the folder of the new index.
        name: its name; by default that of the folder.
        overwrite: replace an existing index: the new one is its next version.
        storage: how vectors are stored; by default as in the first index.
        approximate: how they are searched, see `index_folder`.

    Raises:
        UserError: an argument is invalid, or the index cannot be written.

    Examples:
        >>> merge_indexes(["a.index"], "all.index")
        Traceback (most recent call last):
        likewise.app.errors.UserError: --merge needs two indexes or more, but it was given a.index
    """
    out = Path(out)
    if len(indexes) < 2:
        listed = " ".join(map(str, indexes)) or "none"
        raise UserError(f"--merge needs two indexes or more, but it was given {listed}")
    check_free(out, overwrite=overwrite, hint="--overwrite replaces it")
    with making("the index"):
        sources = [Index.open(each) for each in indexes]
    first = sources[0]
    with writing(out), lock_chunks(chunk_folder(out)), making("the index"):
        index = Index.create_like(first, new_folder(out), storage=storage, name=index_name(out, name))
        try:
            for place, source in zip(indexes, sources, strict=True):
                with making(f"{place}"):
                    index.merge(source)
        except UserError:
            remove_leftovers(out)
            raise
        if any(source.calibration != first.calibration for source in sources):
            index.set_calibration(None)
        index = finish_index(index, out, approximate)
        remove_leftovers(out)
    return IndexResult(index, added=len(index))


def _take_shard(collection: Collection, shard: tuple[int, int] | None) -> Collection:
    if shard is None:
        return collection
    number, count = shard
    if not 1 <= number <= count:
        raise UserError(f"--shard must be I/N with I from 1 to N, such as 2/8, but it is {number}/{count}")
    rows = range(number - 1, len(collection), count)
    if not rows:
        raise UserError(f"--shard {number}/{count} contains none of the {len(collection):,} images: use fewer shards")
    return collection.take(rows)


@dataclass(frozen=True)
class _Embedding:
    """How the images of a collection are embedded, see `index_folder`."""

    thumbnails: int
    options: EmbeddingOptions
    on_start: Callable[[EmbeddingStart], object] | None

    def __post_init__(self) -> None:
        if not 0 <= self.thumbnails <= 2048:
            raise UserError(f"--thumbnails must be a side in pixels from 0 to 2048, but it is {self.thumbnails}")

    @contextmanager
    def embed(
        self, out: Path, collection: Collection, source: ModelSource, encoder: Encoder, name: str
    ) -> Iterator[EmbeddedImages]:
        """Embed a collection; its chunks are removed after the block has added them to the index."""
        if self.on_start is not None:
            self.on_start(EmbeddingStart(name, len(collection), encoder.transform.name))
        chunks = ChunkFolder(chunk_folder(out), collection.images, CHUNK, self.thumbnails)
        with writing(out), lock_chunks(chunks.folder):
            embedded = embed_in_chunks(chunks, source, encoder, self.options)
            yield embedded
            _write_broken(out, collection, embedded)
            shutil.rmtree(chunks.folder, ignore_errors=True)


def _create(out: Path, source: ModelSource, encoder: Encoder, root: Path, storage: Storage, name: str | None) -> Index:
    """Create a new index in the folder of chunks, with a copy of the model."""
    return Index.create(
        new_folder(out),
        dim=encoder.dim,
        model=source.file or encoder,
        storage=storage,
        name=index_name(out, name),
        transform=source.transform,
        root=root,
    )


def _add_rows(index: Index, collection: Collection, embedded: EmbeddedImages) -> None:
    rows = collection.take(embedded.rows.tolist())
    index.add(
        embedded.embeddings,
        rows.paths_from(index.root or rows.images.root.resolve()),
        labels=rows.labels,
        metadata=rows.metadata | {STAMP: rows.stamps()},
        thumbnails=embedded.thumbnails,
    )


def _example(collection: Collection, embedded: EmbeddedImages) -> Path | None:
    return collection.images.files[int(embedded.rows[0])] if len(embedded.rows) else None


def _check_model(index: Index, out: Path, model: str | Path | None, transform: str | None) -> ModelSource:
    """The model of the index; vectors of another model are not comparable."""
    entry, file = index.model, index.model_file
    if entry is None or file is None:
        raise UserError(f"{out} has no model: add vectors to it with --vectors")
    if model is not None:
        source = resolve_model(model, transform)
        same = source.fingerprint == entry.sha256 if source.file is not None else source.place == entry.name
        if not same:
            raise UserError(f"{out} was built with the model {entry.name}, not with {source.place}: build a new index")
    if transform not in (None, entry.transform):
        raise UserError(
            f"{out} uses the transform {entry.transform or 'of the card'}, not {transform}: build a new index"
        )
    return ModelSource(file, entry.transform)


def _find_gone(index: Index, collection: Collection, paths: Sequence[str]) -> NDArray[np.int64]:
    """Items whose files were in the folder of the collection and no longer exist."""
    root, here = index.root, collection.images.root.resolve()
    listed = set(paths)
    gone = []
    for number, path in zip(index.ids, index.column("path"), strict=True):
        file = Path(path) if root is None else root / path
        if path not in listed and file.is_relative_to(here):
            gone.append(number)
    return np.array(gone, np.int64)


def _write_broken(folder: Path, collection: Collection, embedded: EmbeddedImages) -> None:
    """List the images that could not be read in the folder of the index."""
    file = folder / BROKEN_FILE
    if not embedded.broken:
        file.unlink(missing_ok=True)
        return
    rows = [{"path": collection.images.paths[each.index], "reason": each.reason} for each in embedded.broken]
    write_rows(file, rows, ["path", "reason"])
