"""Index: items with vectors, searched by similarity, in a folder or in a database."""

from __future__ import annotations

import hashlib
import json
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from copy import copy
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from likewise.formula import one_of, whole_number
from likewise.search.arguments import check_vectors, embed_queries, write_model_file
from likewise.search.card import IndexCard, Loss, ModelEntry, Structure
from likewise.search.columns import HIDDEN, RESERVED, filterable_fields, make_table, visible_fields
from likewise.search.encoder import Encoder
from likewise.search.exact import Part
from likewise.search.matches import Floats, Ids, Item, Matches, Rerank, check_ids
from likewise.search.places import is_url, split_url
from likewise.search.store import NewRows, VectorStore
from likewise.search.text_encoder import TextEncoder
from likewise.search.vectors import STORAGES
from likewise.trunks import Card, read_card

Storage = Literal["float32", "float16", "int8"]
Kind = Literal["auto", "exact", "hnsw", "ivfpq"]


class Index:
    """Items with vectors, searched by similarity; created by `create` or `open`.

    An index is a folder of immutable snapshots: a reader keeps the version that it opened while others write; `refresh`
    opens the newest.  In a PostgreSQL database every call reads the newest state.  Every change is atomic.

    Args:
        store: storage of the items and vectors.

    Examples:
        >>> folder = tempfile.mkdtemp() + "/birds.index"
        >>> index = Index.create(folder, dim=2)
        >>> index.add(np.array([[1.0, 0.0], [0.6, 0.8]]), ["wren.jpg", "robin.jpg"], labels=["wren", "robin"])
        array([0, 1])
        >>> matches = Index.open(folder).search(np.array([[0.0, 1.0]]), k=1)
        >>> index.item(matches.ids[0, 0]).label, round(float(matches.scores[0, 0]), 3)
        ('robin', 0.8)
    """

    def __init__(self, store: VectorStore) -> None:
        self._store = store
        self._encoders: dict[str, Encoder] = {}
        self._loading = threading.Lock()

    @classmethod
    def create(
        cls,
        place: str | Path,
        *,
        dim: int,
        model: str | Path | Encoder | None = None,
        storage: Storage = "float32",
        name: str | None = None,
        transform: str | None = None,
        root: str | Path | None = None,
        model_name: str | None = None,
        keep_model: bool = True,
    ) -> Index:
        """Create a new, empty index.

        Args:
            place: a new or empty folder; or the URL of a database and the name of the index,
                ``postgresql://me@host/photos#birds``.
            dim: dimension of the vectors.
            model: the model of the vectors: a ``.safetensors`` file, the name of a published trunk, or an encoder.
            storage: ``"float32"``, ``"float16"`` (half the size) or ``"int8"`` (a quarter; not in a database).
            name: name of the index; by default that of the folder.
            transform: name of the model's transform; by default that of the encoder, or the one that the card implies.
            root: the folder of relative paths.
            model_name: name of the model; by default that of its file or trunk.
            keep_model: store a copy of the model, so that the index can be searched with images.
        """
        dim = whole_number("dim", dim, 1)
        one_of("storage", storage, STORAGES)
        start = None if root is None else str(Path(root).resolve())
        with tempfile.TemporaryDirectory() as folder:
            file, transform, called = write_model_file(model, transform, Path(folder))
            entry = None if file is None else _model_entry(file, dim, transform, model_name or called, keep_model)
            copied = file if keep_model else None
            if is_url(place):
                from likewise.search.postgres import PostgresStore

                url, after = split_url(str(place))
                card = IndexCard(name or after or "", dim, storage, model=entry, root=start)
                return cls(PostgresStore.create(url, card, copied))
            from likewise.search.snapshots import SnapshotStore

            card = IndexCard(name or Path(place).name.removesuffix(".index"), dim, storage, model=entry, root=start)
            return cls(SnapshotStore.create(place, card, copied))

    @classmethod
    def create_like(
        cls, other: Index, place: str | Path, *, storage: Storage | None = None, name: str | None = None
    ) -> Index:
        """Create a new, empty index for vectors of the same model, with a copy of the model if the other index has one.

        Args:
            other: the index whose model, root and calibration are used.
            place: folder or database, see `create`.
            storage: storage type; by default that of the other index, but never int8 in a database.
            name: name of the index; by default that of its folder, or of the other index.
        """
        card, has_model = other.card, other.model is not None
        stored: Any = storage or ("float16" if is_url(place) and card.storage == "int8" else card.storage)
        if is_url(place):
            name = name or split_url(str(place))[1] or card.name
        with other._store.model() if has_model else nullcontext(None) as file:
            index = cls.create(
                place,
                dim=card.dim,
                model=file,
                storage=stored,
                name=name,
                transform=None if card.model is None else card.model.transform,
                root=card.root,
                model_name=None if card.model is None else card.model.name,
            )
        if card.calibration is not None:
            index.set_calibration(card.calibration)
        return index

    @classmethod
    def open(cls, place: str | Path) -> Index:
        """Open an index.

        Args:
            place: its folder; or the URL of a database and the name of the index, ``postgresql://me@host/photos#birds``.
                The name may be omitted if the database has only one index.
        """
        if is_url(place):
            from likewise.search.postgres import PostgresStore

            return cls(PostgresStore.open(*split_url(str(place))))
        from likewise.search.snapshots import SnapshotStore

        return cls(SnapshotStore(place))

    def refresh(self) -> bool:
        """Load changes of other writers, and return whether there were any.  Without changes this takes no time."""
        return self._store.refresh()

    @contextmanager
    def still(self) -> Iterator[Index]:
        """Return a context manager of a read-only view of the current state, which later changes do not affect."""
        with self._store.still() as held:
            index = copy(self)
            index._store = held
            yield index

    def drop(self) -> None:
        """Delete the index with all its files or tables."""
        self._store.drop()

    def close(self) -> None:
        """Close connections to a database; the next call opens a new one."""
        self._store.close()

    # ------------------------------------------------------------------------------------------- content

    def __len__(self) -> int:
        return len(self._store)

    def __repr__(self) -> str:
        where = "" if self.folder is None else f" in {str(self.folder)!r}"
        card = self.card
        return f"Index({card.name!r}{where}: {len(self):,} items, {card.dim} dimensions, {card.storage})"

    @property
    def folder(self) -> Path | None:
        """The folder of the index; ``None`` in a database."""
        return self._store.folder

    @property
    def card(self) -> IndexCard:
        """The card: content, model and measurements."""
        return self._store.card

    @property
    def version(self) -> str:
        """A string that changes with every change of the index."""
        return self.card.version

    @property
    def dim(self) -> int:
        """The dimension of the vectors."""
        return self.card.dim

    @property
    def storage(self) -> str:
        """The storage type of the vectors."""
        return self.card.storage

    @property
    def name(self) -> str:
        """The name of the index."""
        return self.card.name

    @property
    def root(self) -> Path | None:
        """The folder of relative paths, if known."""
        root = self.card.root
        return None if root is None else Path(root)

    @property
    def model(self) -> ModelEntry | None:
        """The model, if the index has a copy of it; otherwise queries must be vectors."""
        model = self.card.model
        return model if model is not None and model.kept else None

    @property
    def model_card(self) -> Card | None:
        """The card of the model that computed the vectors."""
        model = self.card.model
        return None if model is None else Card.from_json(json.dumps(model.card))

    @property
    def model_file(self) -> Path | None:
        """The copy of the model in the folder of the index; ``None`` in a database."""
        from likewise.search.snapshots import SnapshotStore

        return self._store.model_file if isinstance(self._store, SnapshotStore) else None

    @property
    def near(self) -> Structure | None:
        """The approximate structure: its kind, settings and measured recall."""
        return self.card.near

    @property
    def loss(self) -> Loss | None:
        """The measured cost of the storage type."""
        return self.card.loss

    @property
    def calibration(self) -> Mapping[str, Any] | None:
        """Thresholds and probabilities of similarities, if the index has a calibration."""
        return self.card.calibration

    @property
    def fields(self) -> dict[str, str]:
        """The columns of metadata and their types: ``"text"``, ``"number"`` or ``"bool"``."""
        return visible_fields(self.card.fields)

    @property
    def ids(self) -> Ids:
        """Return the ids of all items, in order."""
        return self._store.ids()

    def matching(self, where: str) -> Ids:
        """Return the ids of all items that pass a filter, in order."""
        return self._store.ids(where)

    def vectors(self, ids: Any = None) -> Floats:
        """Return vectors of unit length ``(n, dim)``, of all items in order, or of some."""
        return self._store.vectors(None if ids is None else check_ids(ids)).take(slice(None))

    def item(self, id: int) -> Item:
        """Return an item with its metadata."""
        return self.items([id])[0]

    def items(self, ids: Any) -> list[Item]:
        """Return several items with their metadata."""
        rows = self._store.table(check_ids(ids)).to_pylist()
        hidden = [name for name in (rows[0] if rows else ()) if name in RESERVED or name.startswith(HIDDEN)]
        return [
            Item(row["id"], row["path"], row["label"], {key: row[key] for key in row if key not in hidden})
            for row in rows
        ]

    def thumbnail(self, id: int) -> bytes | None:
        """Return the thumbnail of an item, as a WebP file, if it has one."""
        return next(iter(self._store.thumbnails(check_ids([id]))))

    def column(self, name: str) -> list[Any]:
        """Return ``"path"``, ``"label"`` or a column of metadata, of all items in order."""
        known = filterable_fields(self.card.fields)
        if name not in known and not name.startswith(HIDDEN):
            raise KeyError(f"name must be one of {', '.join(known)}, but it is {name!r}")
        if name not in known and name not in self.card.fields:
            return [None] * len(self)
        values: list[Any] = self._store.table(columns=[name]).column(name).to_pylist()
        return values

    def encoder(self, device: str | torch.device | None = None) -> Encoder:
        """Return the model that computed the vectors, ready to embed images; it is loaded once."""
        with self._loading:
            model = self.card.model
            key = f"{model and (model.sha256, model.transform, model.kept)} {device}"
            if key not in self._encoders:
                with self._store.model() as file:
                    self._encoders[key] = Encoder.load(file, None if model is None else model.transform, device)
            return self._encoders[key]

    def text_encoder(self) -> TextEncoder:
        """Return the text encoder of the model that computed the vectors, to search with texts."""
        with self._store.model() as file:
            return TextEncoder.load(file)

    # ------------------------------------------------------------------------------------------- search

    def search(
        self,
        queries: Any,
        k: int = 10,
        *,
        where: str | None = None,
        exact: bool | None = None,
        rerank: Rerank | None = None,
    ) -> Matches:
        """Return the k most similar items of each query, best first; ties are in the order of addition.

        Args:
            queries: vectors ``(m, d)`` as an array or a tensor; or an image, or several (a path, a PIL image, the
                bytes of a file), which the model of the index embeds.
            k: number of results.
            where: a filter, such as ``'label == "wren" and year >= 2019'``; only items that pass it are searched.
            exact: compare with every item; by default only if the index has no approximate structure.
            rerank: re-ranking of the best candidates, such as `likewise.search.KReciprocal`.
        """
        k = whole_number("k", k, 1)
        vectors = embed_queries(queries, self.dim, self.encoder)
        if rerank is None:
            return self._store.search(vectors, k, where=where, exact=exact)
        with self.still() as now:
            return rerank.rerank(
                vectors, k, lambda some, count: now._store.search(some, count, where=where, exact=exact), now.vectors
            )

    def neighbors(
        self,
        id: int,
        k: int = 10,
        *,
        where: str | None = None,
        exact: bool | None = None,
        rerank: Rerank | None = None,
    ) -> Matches:
        """Return the items that are most similar to an item of the index, without the item itself."""
        k = whole_number("k", k, 1)
        return self.search(self.vectors([id]), k + 1, where=where, exact=exact, rerank=rerank).without(id, k)

    def duplicates(self, threshold: float, *, where: str | None = None) -> list[list[int]]:
        """Return groups of near-duplicates, the largest group first.

        Two items are in one group if their similarity is at least the threshold, or if a chain of such pairs connects them.

        Args:
            threshold: smallest cosine of near-duplicates, such as 0.95.
            where: consider only items that pass this filter.
        """
        from likewise.search.groups import duplicates

        with self._store.still() as now:
            ids, vectors = now.ids(), now.vectors()
            rows = None if where is None else np.searchsorted(ids, now.ids(where))
        return [ids[each].tolist() for each in duplicates([Part(vectors, rows=rows)], threshold)]

    def clusters(self, n: int, *, seed: int = 0) -> Ids:
        """Return the cluster of each item, in order: k-means on vectors of unit length, the largest cluster first.

        Args:
            n: number of clusters.
            seed: seed of the initial centers.
        """
        from likewise.search.groups import clusters

        return clusters(self.vectors(), n, seed)

    # ------------------------------------------------------------------------------------------- changes

    def add(
        self,
        vectors: Any,
        paths: Sequence[str],
        *,
        labels: Sequence[str | None] | None = None,
        metadata: Mapping[str, Sequence[Any]] | None = None,
        thumbnails: Sequence[bytes | None] | None = None,
        replace: bool = True,
    ) -> Ids:
        """Add items, and return their ids.

        Args:
            vectors: vectors ``(n, d)`` of any length; they are normalized.
            paths: file of each item.
            labels: class of each item, or ``None``.
            metadata: columns of texts, numbers or booleans; ``None`` and NaN are missing values.
            thumbnails: WebP files, or ``None``.
            replace: replace an item with the same path; otherwise both are kept.
        """
        array = check_vectors("vectors", vectors, self.dim, empty=True)
        for name, each in (("paths", paths), ("thumbnails", thumbnails)):
            if each is not None and len(each) != len(array):
                raise ValueError(
                    f"{name} must have one entry for each of the {len(array)} vectors, but it has {len(each)}"
                )
        if not len(array):
            return np.zeros(0, np.int64)
        return self._store.add(NewRows(make_table(paths, labels, metadata), array, thumbnails), replace=replace)

    def remove(self, ids: Any = None, *, where: str | None = None) -> int:
        """Remove items by ids or by a filter, and return their number."""
        if (ids is None) == (where is None):
            raise ValueError("remove takes either ids or where, but it got both or neither")
        return self._store.remove(None if ids is None else check_ids(ids), where=where)

    def merge(self, other: Index) -> int:
        """Add all items of another index of the same model, with new ids, and return their number."""
        if self._is_same(other):
            raise ValueError(f"other must be another index, but it is this index, {other.folder or other.name}")
        mine, theirs = self.card, other.card
        _check_model(mine, theirs)
        with other._store.still() as held:
            table, ids = held.table(), held.ids()
            if not len(ids):
                return 0
            if theirs.root is not None and theirs.root != mine.root:
                from pyarrow import array, string

                paths = array([str(Path(theirs.root) / path) for path in table.column("path").to_pylist()], string())
                table = table.set_column(table.column_names.index("path"), "path", paths)
            self._store.add(NewRows(table, held.vectors(), held.thumbnails(ids), theirs.loss))
        return len(ids)

    def _is_same(self, other: Index) -> bool:
        if self.folder is None or other.folder is None:
            return self.folder == other.folder and self.version == other.version
        return self.folder.resolve() == other.folder.resolve()

    def rebuild(self, *, storage: Storage | None = None, approximate: Kind | None = None, queries: int = 200) -> None:
        """Change storage type and search structure, and measure the recall of approximations.

        Args:
            storage: new storage type; by default unchanged.
            approximate: ``"exact"`` for no structure, ``"hnsw"``, ``"ivfpq"`` (not in a database), or ``"auto"`` by size;
                by default unchanged.
            queries: number of queries of the measurement.
        """
        self._store.rebuild(storage=storage, approximate=approximate, queries=whole_number("queries", queries, 1))

    def set_calibration(self, calibration: Mapping[str, Any] | None) -> None:
        """Store the calibration of similarities in the index, as JSON."""
        self._store.calibrate(calibration)


def _model_entry(file: Path, dim: int, transform: str | None, name: str | None, kept: bool) -> ModelEntry:
    card = read_card(file)
    if card.dim != dim:
        raise ValueError(f"dim must be the model's {card.dim}, but it is {dim}")
    with file.open("rb") as opened:
        digest = hashlib.file_digest(opened, "sha256").hexdigest()
    return ModelEntry(name or file.name, digest, transform, json.loads(card.to_json()), kept)


def _check_model(mine: IndexCard, theirs: IndexCard) -> None:
    if mine.dim != theirs.dim:
        raise ValueError(f"other must have vectors of dimension {mine.dim}, but they have dimension {theirs.dim}")
    ours, others = mine.model, theirs.model
    if (ours and ours.sha256) != (others and others.sha256):
        names = [each.name if each else "no model" for each in (ours, others)]
        raise ValueError(f"other must have vectors of the same model, {names[0]}, but they are of {names[1]}")
    if ours and others and ours.transform != others.transform:
        raise ValueError(f"other must have the transform {ours.transform}, but it has {others.transform}")
