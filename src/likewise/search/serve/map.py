"""Two-dimensional map of a collection, computed once and stored in its folder, and the position of a query on it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile

import numpy as np
import torch
from numpy.typing import NDArray

from likewise.files import atomic_write
from likewise.formula import one_of
from likewise.report import lay_out as report_places
from likewise.search.matches import Floats, Ids

if TYPE_CHECKING:
    from likewise.search.index import Index

MOST = 5000
"""The largest number of items on a map."""

NEAREST = 5
"""The number of items from which the position of a query on a t-SNE map is interpolated."""

FILE = "map-{layout}.npz"
LAYOUTS = {"pca": "principal components", "tsne": "t-SNE"}


@dataclass(frozen=True, eq=False)
class Map:
    """Items on a plane.

    Args:
        layout: ``"pca"`` or ``"tsne"``.
        ids: ids of the items; all, or an even sample.
        places: positions ``(n, 2)`` in [0, 1]².
        vectors: vectors of these items, ``(n, d)``; needed only for t-SNE.
        center: ``(d,)``, subtracted from a vector before projection.
        directions: ``(d, 2)``, including the scale to [0, 1]².
        origin: ``(2,)``, origin of the square in projected coordinates.
        labels: labels of these items.
        total: number of items of the index, on the map or not.

    Examples:
        >>> drawn = lay_out(np.array([3, 5, 9]), np.eye(3, dtype=np.float32), "pca")
        >>> np.allclose(drawn.place(np.eye(3, dtype=np.float32)), drawn.places, atol=1e-6)
        True
    """

    layout: str
    ids: Ids
    places: Floats
    vectors: Floats
    center: Floats
    directions: Floats
    origin: Floats
    labels: Sequence[str | None] = field(default=(), kw_only=True)
    total: int = field(default=0, kw_only=True)

    def place(self, queries: Floats) -> Floats:
        """Return the positions of unit vectors, ``(m, 2)``; at most slightly outside the map."""
        if not len(self.ids):
            return np.full((len(queries), 2), 0.5, np.float32)
        if self.layout == "pca":
            found: NDArray[Any] = (queries - self.center) @ self.directions + self.origin
        else:
            likeness = queries @ self.vectors.T
            best = np.argsort(-likeness, axis=1, kind="stable")[:, :NEAREST]
            close = np.take_along_axis(likeness, best, axis=1).astype(np.float64)
            weight = np.exp(20.0 * (close - close[:, :1]))
            found = np.einsum("qn,qnc->qc", weight / weight.sum(axis=1, keepdims=True), self.places[best])
        inside: Floats = np.clip(found, -0.02, 1.02).astype(np.float32)
        return inside


def map_of(index: Index, layout: str = "pca") -> Map:
    """Return the map of an index: from the file in its folder if it is current, otherwise computed and stored there.

    The map of an index in a read-only folder, or in a database, is computed each time the index is opened: content of a
    database is never written to the disk of a machine that reads it.

    Args:
        index: the index.
        layout: ``"pca"``, which takes a moment, or ``"tsne"``, which takes seconds.

    Examples:
        >>> import tempfile
        >>> from likewise.search import Index
        >>> index = Index.create(tempfile.mkdtemp() + "/a.index", dim=2)
        >>> _ = index.add(np.eye(2), ["a.jpg", "b.jpg"])
        >>> map_of(index).ids, (index.folder / "map-pca.npz").exists()
        (array([0, 1]), True)
    """
    one_of("layout", layout, LAYOUTS)
    with index.still() as now:
        sample, total = _sample(now.ids), len(now)
        vectors, labels = now.vectors(sample), [item.label for item in now.items(sample)]
        state = json.dumps({"version": now.version, "most": MOST})
    file = None if index.folder is None else index.folder / FILE.format(layout=layout)
    kept = None if file is None else _read(file, state, sample)
    if kept is not None:
        return Map(ids=sample, vectors=vectors, labels=labels, total=total, **kept)
    drawn = lay_out(sample, vectors, layout)
    if file is not None:
        _store_map(drawn, file, state)
    return replace(drawn, labels=labels, total=total)


def _store_map(drawn: Map, file: Path, state: str) -> None:
    arrays = {name: getattr(drawn, name) for name in ("ids", "places", "center", "directions", "origin")}
    try:
        with atomic_write(file) as part, part.open("wb") as opened:
            np.savez(opened, state=np.array(state), layout=np.array(drawn.layout), **arrays)
    except OSError:
        pass  # a read-only folder: the map stays in memory


def lay_out(ids: Ids, vectors: Floats, layout: str) -> Map:
    """Compute the positions of items on a plane.

    Args:
        ids: ids of the items.
        vectors: vectors of unit length.
        layout: ``"pca"`` or ``"tsne"``.

    Examples:
        >>> lay_out(np.array([4]), np.ones((1, 2), np.float32), "pca").places
        array([[0.5, 0.5]], dtype=float32)
    """
    dim = vectors.shape[1]
    if not len(ids):
        return Map(layout, ids, *(np.zeros(shape, np.float32) for shape in ((0, 2), (0, dim), dim, (dim, 2), 2)))
    points = vectors.astype(np.float64)
    center = points.mean(axis=0)
    directions = _principal(points - center)
    flat = (points - center) @ directions
    low, high = flat.min(axis=0), flat.max(axis=0)
    wide = np.where(high - low > 1e-9, high - low, np.inf)  # identical items are placed in the middle
    directions, origin = directions / wide, np.where(np.isinf(wide), 0.5, -low / wide)
    places = (points - center) @ directions + origin
    if layout == "tsne" and len(ids) > 8:
        places = report_places(torch.from_numpy(vectors), "tsne", 0)[0]
    elif layout == "tsne":
        layout = "pca"  # too few items for t-SNE
    narrow = [each.astype(np.float32) for each in (places, points, center, directions, origin)]
    return Map(layout, ids, *narrow)


def _sample(ids: Ids) -> Ids:
    """Return an even sample of the collection, the same at each call."""
    if len(ids) <= MOST:
        return ids
    chosen: Ids = ids[np.linspace(0, len(ids) - 1, MOST).astype(np.int64)]
    return chosen


def _principal(centered: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the two largest principal directions, each with a fixed sign."""
    found = np.linalg.eigh(centered.T @ centered)[1][:, ::-1][:, :2]
    signs = np.sign(found[np.abs(found).argmax(axis=0), np.arange(found.shape[1])])
    found = found * np.where(signs == 0.0, 1.0, signs)
    return np.pad(found, ((0, 0), (0, max(0, 2 - found.shape[1]))))


def _read(file: Path, state: str, ids: Ids) -> dict[str, Any] | None:
    """Return the stored map, if it belongs to this state of the collection."""
    try:
        with np.load(file, allow_pickle=False) as kept:
            if str(kept["state"]) != state or not np.array_equal(kept["ids"], ids):
                return None
            arrays = {name: kept[name] for name in ("places", "center", "directions", "origin")}
            return {"layout": str(kept["layout"]), **arrays}
    except (OSError, ValueError, KeyError, EOFError, BadZipFile):
        return None
