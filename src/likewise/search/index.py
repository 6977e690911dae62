"""An index: items with their vectors, found by likeness, kept in a folder that a crash cannot spoil."""

from __future__ import annotations

import json
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import asdict
from dataclasses import replace as replaced
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from likewise.formula import one_of, whole_number
from likewise.search import writing
from likewise.search.approximate import INDEX_KINDS
from likewise.search.encoder import Encoder
from likewise.search.exact import nearest
from likewise.search.found import Floats, Found, Ids, Item, Rerank
from likewise.search.given import checked_vectors, model_file, query_vectors
from likewise.search.manifest import MANIFEST_FILE, STORAGES, Manifest
from likewise.search.segment import HIDDEN
from likewise.search.snapshot import Snapshot
from likewise.trunks import Card, read_card

Storage = Literal["float32", "float16", "int8"]
Kind = Literal["auto", "exact", "hnsw", "ivfpq"]


class Index:
    """Items with their vectors, found by likeness; made by `create` or `open`.

    Reading needs no lock, and a reader keeps what it opened whatever others write (`refresh` shows it the newest).
    Every change is whole or has not happened.

    Attributes:
        folder: where it is.

    Examples:
        >>> folder = tempfile.mkdtemp() + "/birds.index"
        >>> index = Index.create(folder, dim=2)
        >>> index.add(np.array([[1.0, 0.0], [0.6, 0.8]]), ["wren.jpg", "robin.jpg"], labels=["wren", "robin"])
        array([0, 1])
        >>> found = Index.open(folder).search(np.array([[0.0, 1.0]]), k=1)
        >>> index.item(found.ids[0, 0]).label, round(float(found.scores[0, 0]), 3)
        ('robin', 0.8)
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self.folder = snapshot.folder
        self._now = snapshot
        self._seen: tuple[int, int] | None = None
        self._encoders: dict[str, Encoder] = {}
        self._loading = threading.Lock()

    @classmethod
    def create(
        cls,
        folder: str | Path,
        *,
        dim: int,
        model: str | Path | Encoder | None = None,
        storage: Storage = "float32",
        name: str | None = None,
        images: str | None = None,
        root: str | Path | None = None,
        model_name: str | None = None,
    ) -> Index:
        """Make a new, empty index.

        Args:
            folder: where; new or empty.
            dim: the size of vectors.
            model: what makes the vectors: a ``.safetensors`` file, the name of a published trunk, or an encoder; a
                copy is kept, so that the index finds images by itself.
            storage: ``"float32"``, ``"float16"`` (half the size) or ``"int8"`` (a quarter).
            name: what it is called; by default the folder's name.
            images: the recipe by which images are shown to the model; by default the encoder's, or what the card says.
            root: where relative paths begin.
            model_name: what the model is called; by default the name of its file or trunk.
        """
        dim = whole_number("dim", dim, 1)
        one_of("storage", storage, STORAGES)
        place = Path(folder)
        manifest = Manifest(name or place.name.removesuffix(".index"), dim, storage)
        if root is not None:
            manifest = replaced(manifest, root=str(Path(root).resolve()))
        with tempfile.TemporaryDirectory() as beside:
            file, images, called = model_file(model, images, Path(beside))
            if file is not None and (card := read_card(file)).dim != dim:
                raise ValueError(f"dim must be the model's {card.dim}, but it is {dim}")
            return cls(writing.create(place, manifest, file, images, model_name or called))

    @classmethod
    def open(cls, folder: str | Path) -> Index:
        """Open an index for reading; methods that change it see to their lock themselves."""
        return cls(Snapshot.open(Path(folder)))

    def refresh(self) -> bool:
        """Show what others wrote since; returns whether anything changed.  Where nothing did, it takes no time."""
        seen = _stamp(self.folder)
        if seen is None:
            raise FileNotFoundError(f"{self.folder} is no index any more: it has no {MANIFEST_FILE}")
        if seen == self._seen:
            return False
        old, new = self._now, Snapshot.open(self.folder)
        self._now, self._seen = new, seen
        return old.manifest != new.manifest

    @contextmanager
    def still(self) -> Iterator[Index]:
        """The index as it is at this moment, for reading: a refresh or a change by others is not seen in it."""
        yield copy(self)

    # ------------------------------------------------------------------------------------------- what it holds

    def __len__(self) -> int:
        return len(self._now)

    def __repr__(self) -> str:
        return f"Index({str(self.folder)!r}: {len(self):,} items, {self.dim} dimensions, {self.storage})"

    @property
    def manifest(self) -> Manifest:
        """What the folder consists of, and what was measured."""
        return self._now.manifest

    @property
    def version(self) -> str:
        """A word that changes whenever the index does."""
        return f"{int(self.manifest.created * 1e3):x}-{self.manifest.revision}"

    @property
    def dim(self) -> int:
        """The size of its vectors."""
        return self.manifest.dim

    @property
    def storage(self) -> str:
        """How its vectors are stored."""
        return self.manifest.storage

    @property
    def name(self) -> str:
        """What it is called."""
        return self.manifest.name

    @property
    def root(self) -> Path | None:
        """Where relative paths begin, if that is known."""
        return None if self.manifest.root is None else Path(self.manifest.root)

    @property
    def card(self) -> Card | None:
        """What is known of the model that made its vectors."""
        model = self.manifest.model
        return None if model is None else Card.from_json(json.dumps(model.card))

    @property
    def model_file(self) -> Path | None:
        """The copy of that model."""
        model = self.manifest.model
        return None if model is None else self.folder / model.file

    @property
    def model(self) -> Mapping[str, str] | None:
        """The name and the checksum (``sha256``) of that copy; without one, queries must be vectors."""
        model = self.manifest.model
        return None if model is None else {"name": model.name, "sha256": model.sha256}

    @property
    def near(self) -> Mapping[str, Any] | None:
        """The approximate structure: its kind, settings and measured recall."""
        return None if self.manifest.near is None else asdict(self.manifest.near)

    @property
    def calibration(self) -> Mapping[str, Any] | None:
        """From which similarity on two items are the same, if that was kept with the index."""
        return self.manifest.calibration

    @property
    def fields(self) -> dict[str, str]:
        """Columns of metadata, and whether they hold ``"text"``, ``"number"`` or ``"bool"``."""
        return dict(self._now.fields)

    @property
    def ids(self) -> Ids:
        """The numbers of all items, in row order."""
        return self._now.ids.copy()

    def matching(self, where: str) -> Ids:
        """The numbers of all items that pass a filter, in row order."""
        now = self._now
        found: Ids = now.row_ids[_passing(now, where)]
        return found

    def vectors(self, ids: Any = None) -> Floats:
        """Vectors of unit length ``(n, dim)``; of all items in row order, or of these."""
        now = self._now
        return now.vectors(now.rows(now.ids if ids is None else ids))

    def item(self, id: int) -> Item:
        """What is known of an item."""
        return self.items([id])[0]

    def items(self, ids: Any) -> list[Item]:
        """What is known of several."""
        return self._now.items(self._now.rows(ids))

    def thumbnail(self, id: int) -> bytes | None:
        """The WebP file of an item's thumbnail, if it has one."""
        return self._now.thumbnail(int(self._now.rows([id])[0]))

    def column(self, name: str) -> list[Any]:
        """``"path"``, ``"label"`` or a column of metadata, of all items in row order."""
        if name not in self._now.filterable and not name.startswith(HIDDEN):
            raise KeyError(f"name must be one of {', '.join(self._now.filterable)}, but it is {name!r}")
        return self._now.column(name)

    def encoder(self, device: str | torch.device | None = None) -> Encoder:
        """The model that made its vectors, ready to embed images; loaded once."""
        file = self.model_file
        if file is None or self.manifest.model is None:
            raise ValueError(f"{self.folder} has no model: search it with vectors")
        with self._loading:
            key = f"{file.name} {device}"
            if key not in self._encoders:
                self._encoders[key] = Encoder.load(file, self.manifest.model.images, device)
            return self._encoders[key]

    # ------------------------------------------------------------------------------------------- search

    def search(
        self,
        queries: Any,
        k: int = 10,
        *,
        where: str | None = None,
        exact: bool | None = None,
        rerank: Rerank | None = None,
    ) -> Found:
        """The k most similar items of each query, the best first; of equal ones the one that was added first.

        Args:
            queries: vectors ``(m, d)`` as an array or a tensor; or an image, or several (a path, a PIL image, the
                bytes of a file), which the index's own model embeds.
            k: how many.
            where: a filter, such as ``'label == "wren" and year >= 2019'``; only items that pass it are searched.
            exact: compare with every item; by default only where the index has no approximate structure.
            rerank: what orders the best candidates anew, such as `likewise.search.KReciprocal`.
        """
        k = whole_number("k", k, 1)
        now, vectors = self._now, query_vectors(queries, self.dim, self.encoder)
        if rerank is None:
            return _search(now, vectors, k, where, exact)
        return rerank.rerank(vectors, k, lambda some, count: _search(now, some, count, where, exact), self.vectors)

    def neighbors(
        self,
        id: int,
        k: int = 10,
        *,
        where: str | None = None,
        exact: bool | None = None,
        rerank: Rerank | None = None,
    ) -> Found:
        """What is most similar to an item of the index, itself left out."""
        k = whole_number("k", k, 1)
        return self.search(self.vectors([id]), k + 1, where=where, exact=exact, rerank=rerank).but(id, k)

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
        """Add items; returns their numbers.

        Args:
            vectors: ``(n, d)``, of any length: they are scaled to one.
            paths: the file of each.
            labels: the class of each, or ``None``.
            metadata: columns of texts, numbers or truth values, ``None`` where there is nothing.
            thumbnails: WebP files, or ``None``.
            replace: an item whose path is there already takes its place; otherwise both stay.
        """
        given = checked_vectors("vectors", vectors, self.dim, empty=True)
        if len(paths) != len(given):
            raise ValueError(f"paths must have one entry for each of the {len(given)} vectors, but it has {len(paths)}")
        if not len(given):
            return np.zeros(0, np.int64)
        with writing.alone(self.folder) as now:
            manifest, ids = writing.add(now, given, list(paths), labels, metadata, thumbnails, replace)
            self._now = writing.commit(self.folder, manifest)
            self._tidied()
        return ids

    def remove(self, ids: Any = None, *, where: str | None = None) -> int:
        """Remove items by their numbers or by a filter; returns how many there were."""
        if (ids is None) == (where is None):
            raise ValueError("remove takes either ids or where, but it was given both or none")
        with writing.alone(self.folder) as now:
            rows = np.unique(now.rows(ids)) if where is None else _passing(now, where)
            if len(rows):
                self._now = writing.commit(self.folder, writing.remove(now, now.row_ids[rows]))
        return len(rows)

    def merge(self, other: Index) -> int:
        """Take in all items of another index of the same model, with new numbers; returns how many."""
        if other.folder.resolve() == self.folder.resolve():
            raise ValueError(f"other must be another index, but it is {other.folder} itself")
        with writing.alone(self.folder) as now:
            if not len(other):
                return 0
            manifest, count = writing.merge(now, other._now)
            self._now = writing.commit(self.folder, manifest)
            self._tidied()
        return count

    def rebuild(self, *, storage: Storage | None = None, approximate: Kind | None = None, queries: int = 200) -> None:
        """Put everything together anew, without what was removed, and measure what is approximate in it.

        Args:
            storage: how vectors are stored afterwards; by default as before.
            approximate: ``"exact"`` for none, ``"hnsw"``, ``"ivfpq"``, or ``"auto"`` by size; by default as before.
            queries: how many queries its recall is measured with.
        """
        storage = self.storage if storage is None else one_of("storage", storage, STORAGES)  # type: ignore[assignment]
        if approximate is not None:
            one_of("approximate", approximate, INDEX_KINDS)
        queries = whole_number("queries", queries, 1)
        with writing.alone(self.folder) as now:
            manifest = writing.rebuilt(now, str(storage), approximate, queries)
            self._now = writing.commit(self.folder, manifest)

    def duplicates(self, threshold: float, *, where: str | None = None) -> list[list[int]]:
        """Groups of items that are alike, the largest group first.

        Two items are in one group if they are at least so similar, or if a chain of such pairs joins them.

        Args:
            threshold: the cosine from which on two items are alike, such as 0.95.
            where: only among items that pass this filter.
        """
        from likewise.search.groups import duplicates

        now = self._now
        rows = duplicates(now.allowed(where), threshold)
        return [now.row_ids[each].tolist() for each in rows]

    def clusters(self, n: int, *, seed: int = 0) -> Ids:
        """The cluster of each item, in row order: k-means on vectors of unit length, the largest cluster first.

        Args:
            n: how many clusters.
            seed: of the first centers.
        """
        from likewise.search.groups import clusters

        return clusters(self.vectors(), n, seed)

    def calibrated(self, calibration: Mapping[str, Any] | None) -> None:
        """Keep with the index from which similarity on two items are the same, as JSON can hold it."""
        with writing.alone(self.folder) as now:
            self._now = writing.commit(self.folder, now.manifest.next(calibration=calibration))

    def _tidied(self) -> None:
        """Put small segments together once there are many: every one has its open files."""
        near = self.manifest.near
        keep = 0 if near is None else len(near.segments)
        if len(self.manifest.segments) - keep > writing.SEGMENTS:
            changes = writing.compacted(self._now, self.storage, keep=keep)
            self._now = writing.commit(self.folder, self.manifest.next(**changes))


def _stamp(folder: Path) -> tuple[int, int] | None:
    """What changes when a manifest is replaced; nothing where there is none."""
    try:
        state = (folder / MANIFEST_FILE).stat()
    except OSError:
        return None
    return state.st_mtime_ns, state.st_ino


def _passing(now: Snapshot, where: str) -> Ids:
    """Rows of items that pass a filter."""
    each = [start + part.chosen for start, part in zip(now.starts, now.allowed(where), strict=False)]
    return np.concatenate(each) if each else np.zeros(0, np.int64)


def _search(now: Snapshot, vectors: Floats, k: int, where: str | None, exact: bool | None) -> Found:
    parts = now.allowed(where)
    least = min(k, max(1, sum(map(len, parts))))  # nobody can find more, and memory goes with k
    if exact is False and now.manifest.near is None:
        raise ValueError(f"exact must be True or None for {now.folder}, which has no approximate structure")
    near = None if exact else now.near
    if near is None:
        rows, scores = nearest(vectors, parts, least)
    else:
        rows, scores = near.search(vectors, parts, least)
    ids, similar = np.full((len(rows), k), -1, np.int64), np.full((len(rows), k), -np.inf, np.float32)
    there = rows >= 0
    ids[:, :least][there] = now.row_ids[rows[there]]
    similar[:, :least] = scores
    return Found(ids, similar)
