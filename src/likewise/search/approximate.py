"""Approximate search with faiss: a structure proposes candidates, which are rescored with the vectors of the index.

HNSW (Malkov and Yashunin 2018) is a graph that is traversed toward the query, over vectors of eight bits per dimension.
IVF-PQ (Jégou et al. 2011) scans the lists of the nearest centers, over vectors of two bits per dimension.  Scores equal
those of exact search, because candidates are rescored with the stored vectors.  Only the set of candidates is
approximate, and its recall is measured when the structure is built.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.progress import progress
from likewise.search.card import Structure
from likewise.search.exact import Best, Doubles, Ints, Part, nearest, recall, similarities
from likewise.search.vectors import Vectors

INDEX_KINDS = ("auto", "exact", "hnsw", "ivfpq")
"""The kinds of search of an index."""

EXACT_BELOW, HNSW_BELOW = 200_000, 5_000_000
"""The largest number of items for exact search, and for a graph, which needs more memory."""

TARGET = 0.985
"""The target recall of the ten nearest: the search effort is increased until it is reached."""

LINKS, CONSTRUCTION = 16, 120
"""Links per node of the graph, half of them at each end, and the number of candidates from which they are chosen."""

POOLS = {"hnsw": (30, 2), "ivfpq": (100, 10)}
"""Rescored candidates: a minimum, and a number per requested result.  Two bits per dimension need more of them than
eight."""

GAIN = 0.002
"""The smallest gain of recall for which the search effort is doubled."""

FEW = 20_000
"""The number of items after a filter up to which all of them are compared."""

BATCH = 2**16
"""Vectors that are passed to faiss at once."""


def faiss() -> Any:
    """Import faiss, or raise an error that says how to install it.

    Examples:
        >>> faiss().__name__
        'faiss'
    """
    try:
        import faiss
    except ImportError as missing:
        raise ImportError("approximate search needs faiss: pip install 'likewise[search]'") from missing
    return faiss


def kind_for(rows: int) -> str:
    """Return the default kind of search for a number of items.

    Examples:
        >>> kind_for(10_000), kind_for(1_000_000), kind_for(50_000_000)
        ('exact', 'hnsw', 'ivfpq')
    """
    return "exact" if rows < EXACT_BELOW else "hnsw" if rows < HNSW_BELOW else "ivfpq"


class Near:
    """An approximate structure over the first rows of an index.

    Args:
        structure: the faiss index.
        kind: ``"hnsw"`` or ``"ivfpq"``.
        effort: search effort: the number of candidates in the graph, or of lists that are scanned.
        places: position in the structure of each row that it covers, increasing; ``None`` if rows and positions are equal.

    Examples:
        >>> vectors = Vectors(np.eye(8, dtype=np.float32))
        >>> near = Near(build(vectors, "hnsw"), "hnsw", 16)
        >>> near.search(vectors.take(slice(3, 4)), [Part(vectors)], 1)[0].tolist()
        [[3]]
    """

    def __init__(self, structure: Any, kind: str, effort: int, places: Ints | None = None) -> None:
        self.structure, self.kind, self.effort, self.places = structure, kind, effort, places

    @classmethod
    def read(cls, content: NDArray[np.uint8], about: Structure, covered: Ints, ids: Ints) -> Near:
        """Read a structure from the bytes of its file.

        Args:
            content: the bytes.
            about: the entry of the structure in the card.
            covered: ids of the items that it was built from.
            ids: ids of those items that are still in the index.
        """
        places = None if len(ids) == len(covered) else np.searchsorted(covered, ids)
        return cls(faiss().deserialize_index(np.asarray(content)), about.kind, int(about.settings["effort"]), places)

    def search(self, queries: NDArray[np.float32], parts: Sequence[Part], k: int) -> tuple[Ints, Doubles]:
        """Search like `likewise.search.exact.nearest`, but without a guarantee that all nearest items are found.

        If a filter leaves few items, all of them are compared, and the result is exact.

        Args:
            queries: queries ``(m, d)``, of unit length.
            parts: the vectors to search; the structure covers the first part, and the others are searched exactly.
            k: number of results.
        """
        covered, *others = parts
        if len(covered) <= FEW or 50 * len(covered) < len(covered.vectors) or 4 * k > len(covered):
            return nearest(queries, parts, k)
        least, times = POOLS[self.kind]
        pool = max(least, times * k)
        candidates = self._candidates(queries, pool, covered)
        best = Best(len(queries), k)
        query, place = np.nonzero(candidates >= 0)
        rows = candidates[query, place]
        best.merge(query, rows, similarities(queries, covered.vectors, query, rows))
        if sum(map(len, others)):
            rows, scores = nearest(queries, others, k)
            query, place = np.nonzero(rows >= 0)
            best.merge(query, rows[query, place] + len(covered.vectors), scores[query, place])
        return best.rows, best.scores

    def _candidates(self, queries: NDArray[np.float32], pool: int, part: Part) -> Ints:
        library, total = faiss(), int(self.structure.ntotal)
        selector, effort = None, self.effort
        if len(part) < total:
            # only a fraction of the visited items passes the filter, so more of them are visited
            effort = math.ceil(effort * total / len(part))
            mask = np.zeros(total, bool)
            mask[part.selected_rows if self.places is None else self.places[part.selected_rows]] = True
            selector = library.IDSelectorBitmap(np.packbits(mask, bitorder="little"))
        if self.kind == "hnsw":
            settings = library.SearchParametersHNSW(efSearch=max(effort, pool), sel=selector)
        else:
            settings = library.SearchParametersIVF(nprobe=min(effort, self.structure.nlist), sel=selector)
        # faiss.contrib.torch_utils, which other libraries import, replaces this method by one without `params`
        search = getattr(self.structure, "search_numpy", self.structure.search)
        places: Ints = search(_pad(queries, self.structure.d), pool, params=settings)[1]
        if self.places is None:
            return places
        rows = np.searchsorted(self.places, places)  # −1 is below the first position
        rows[places < 0] = -1
        return rows


def build(vectors: Vectors, kind: str) -> Any:
    """Build a structure over stored vectors.

    Examples:
        >>> build(Vectors(np.eye(8, dtype=np.float32)), "hnsw").ntotal
        8
    """
    library = faiss()
    rows, dim = vectors.codes.shape
    if kind == "hnsw":
        structure = library.IndexHNSWSQ(dim, library.ScalarQuantizer.QT_8bit, LINKS, library.METRIC_INNER_PRODUCT)
        structure.hnsw.efConstruction = CONSTRUCTION
        structure.train(_sample(vectors, 100_000))
    else:
        wide = -(-dim // 8) * 8  # padding with zeros does not change products
        lists = _lists(rows)
        bits = min(8, int(math.log2(max(2, rows))))
        centers = library.IndexFlatIP(wide)
        structure = library.IndexIVFPQ(centers, wide, lists, wide // 4, bits, library.METRIC_INNER_PRODUCT)
        structure.cp.seed = structure.pq.cp.seed = 0
        structure.cp.min_points_per_centroid = structure.pq.cp.min_points_per_centroid = 1
        structure.train(_pad(_sample(vectors, max(64 * lists, 100_000)), wide))
    for block in _chunks(vectors):
        structure.add(_pad(block, structure.d))
    return structure


def _lists(rows: int) -> int:
    return max(1, min(rows // 39, round(4.0 * math.sqrt(rows))))  # faiss requires 39 points per center


def _chunks(vectors: Vectors) -> Iterator[NDArray[np.float32]]:
    with progress("building", len(vectors), "item") as advance:
        for start in range(0, len(vectors), BATCH):
            block = vectors.take(slice(start, start + BATCH))
            yield block
            advance(len(block))


def _sample(vectors: Vectors, count: int) -> NDArray[np.float32]:
    if len(vectors) <= count:
        return np.ascontiguousarray(vectors.take(slice(None)))
    return vectors.take(np.sort(np.random.default_rng(0).choice(len(vectors), count, replace=False)))


def _pad(vectors: NDArray[np.float32], dim: int) -> NDArray[np.float32]:
    if vectors.shape[1] == dim:
        return np.ascontiguousarray(vectors, np.float32)
    return np.pad(np.asarray(vectors, np.float32), ((0, 0), (0, dim - vectors.shape[1])))


# ------------------------------------------------------------------------------------------------ measurement


def trial_queries(vectors: Vectors, count: int) -> NDArray[np.float32]:
    """Return queries like those of a user: near items of the index, but not equal to one.

    Each is an item of the index, rotated in a random direction by the angle to its nearest neighbor.

    Examples:
        >>> trial_queries(Vectors(np.eye(4, dtype=np.float32)), 2).shape
        (2, 4)
    """
    rng = np.random.default_rng(0)
    rows = np.sort(rng.choice(len(vectors), min(count, len(vectors)), replace=False))
    own = vectors.take(rows).astype(np.float64)
    neighbors, scores = nearest(own, [Part(vectors)], 2)
    cosine = np.where(neighbors[:, 0] == rows, scores[:, 1], scores[:, 0]).clip(-1.0, 1.0)[:, None]
    aside = rng.normal(size=own.shape)
    aside -= (aside * own).sum(axis=1, keepdims=True) * own
    aside /= np.linalg.norm(aside, axis=1, keepdims=True).clip(1e-12)
    turned: NDArray[np.float32] = (cosine * own + np.sqrt(1.0 - cosine**2) * aside).astype(np.float32)
    return turned


def efforts(kind: str, rows: int) -> list[int]:
    """Return the possible search efforts of a structure, the fastest first.

    Examples:
        >>> efforts("ivfpq", 10_000)[-1] == _lists(10_000)
        True
    """
    most = 1024 if kind == "hnsw" else _lists(rows)
    steps = [2**step for step in range(5 if kind == "hnsw" else 2, most.bit_length()) if 2**step < most]
    return [*steps, most]


def build_structure(vectors: Vectors, kind: str, queries: int) -> tuple[Any, Structure]:
    """Build a structure, choose its search effort, and measure its recall and speed.

    Args:
        vectors: the stored vectors.
        kind: ``"hnsw"`` or ``"ivfpq"``.
        queries: number of queries of the measurement.

    Returns:
        The faiss index, and its entry in the card.

    Examples:
        >>> vectors = np.random.default_rng(0).normal(size=(500, 8)).astype(np.float32)
        >>> vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        >>> about = build_structure(Vectors(vectors), "hnsw", 20)[1]
        >>> about.kind, about.queries, about.recall > 0.9
        ('hnsw', 20, True)
    """
    structure, part = build(vectors, kind), [Part(vectors)]
    trials = trial_queries(vectors, queries)
    truth, exact_seconds = _time_second_call(lambda: nearest(trials, part, 10)[0])
    near, reached, seconds = Near(structure, kind, 0), 0.0, exact_seconds
    for effort in efforts(kind, len(vectors)):
        trial = Near(structure, kind, effort)
        rows, took = _time_second_call(lambda trial=trial: trial.search(trials, part, 10)[0])
        share = recall(rows, truth)
        if near.effort and share < reached + GAIN:
            break
        near, reached, seconds = trial, share, took
        if reached >= TARGET:
            break
    settings: Mapping[str, Any] = {"effort": near.effort, **_describe(structure, kind)}
    return structure, Structure(kind, settings, reached, len(trials), round(exact_seconds / seconds, 1))


def _describe(structure: Any, kind: str) -> dict[str, Any]:
    if kind == "hnsw":
        return {"links": LINKS, "construction": CONSTRUCTION, "bits": 8}
    return {"lists": int(structure.nlist), "codes": int(structure.pq.M), "bits": int(structure.pq.nbits)}


def _time_second_call(function: Any) -> tuple[Any, float]:
    """Return the result of a function, and the time of its second call: the first one reads pages from the disk."""
    function()
    start = time.perf_counter()
    result = function()
    return result, max(1e-9, time.perf_counter() - start)
