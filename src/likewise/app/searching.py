"""Search an index: look-alikes of pictures or of an item, near-duplicates, and clusters."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.app.embedding_options import ImageOptions
from likewise.app.errors import UserError, making
from likewise.app.images import find_images, is_image_source
from likewise.app.index_places import open_index
from likewise.data import Broken, BrokenImage, decode, draw_text
from likewise.search import Index, Item, KReciprocal, Matches, QueryExpansion, Rerank, thumbnail

BATCH = 256
"""Batch size of queries."""

RERANKS: Mapping[str, Callable[[], Rerank]] = {"expansion": QueryExpansion, "k-reciprocal": KReciprocal}
"""Reranking methods by name."""


@dataclass(frozen=True)
class Match:
    """An item that was found.

    Args:
        item: the item.
        score: its similarity to the query; higher is closer.

    Examples:
        >>> Match(Item(3, "wren/1.jpg", "wren"), 0.9).item.label
        'wren'
    """

    item: Item
    score: float


@dataclass(frozen=True)
class Answer:
    """A query and its matches.

    Args:
        query: the file of the query, its text, or the path of an item.
        matches: the items that were found, the best first.
        thumbnail: a small WebP file of the query.

    Examples:
        >>> Answer("wren.jpg", (Match(Item(3, "wren/1.jpg"), 0.9),)).matches[0].score
        0.9
    """

    query: str
    matches: tuple[Match, ...]
    thumbnail: bytes | None = None


@dataclass(frozen=True)
class SearchResult:
    """The answers to several queries.

    Args:
        answers: one for each query that could be read.
        broken: the queries that could not be read.

    Examples:
        >>> SearchResult((), ()).answers
        ()
    """

    answers: tuple[Answer, ...]
    broken: tuple[Broken, ...] = ()


@dataclass(frozen=True)
class Cluster:
    """A part of a collection.

    Args:
        items: its items, those nearest to its mean first.
        label: the most common label; ``None`` where no item has one.

    Examples:
        >>> len(Cluster((Item(3, "wren/1.jpg", "wren"),), "wren").items)
        1
    """

    items: tuple[Item, ...]
    label: str | None


def search(
    index: Index | str | Path,
    queries: str | Path | Sequence[str | Path] = (),
    *,
    texts: Sequence[str] = (),
    item: int | None = None,
    k: int = 10,
    where: str | None = None,
    exact: bool = False,
    rerank: str | Rerank | None = None,
    root: str | Path | None = None,
    path_column: str = "path",
) -> SearchResult:
    """Search an index with pictures, with texts or with an item of the index.

    Args:
        index: the index, its folder, or ``postgresql://…#name``.
        queries: a picture or several, or one folder or table of pictures.
        texts: descriptions, instead of pictures, for an index whose model has a text encoder.
        item: the id of an item of the index, instead of pictures.
        k: number of matches per query.
        where: a filter, such as ``'label == "wren" and year >= 2019'``.
        exact: compare with every item, even if the index has an approximate structure.
        rerank: ``"expansion"``, ``"k-reciprocal"``, or an object of `likewise.search`.
        root: the folder that paths of a query table are relative to; by default the table's folder.
        path_column: the table's path column.

    Raises:
        UserError: an argument is invalid, or the only query cannot be read.

    Examples:
        >>> import tempfile
        >>> index = Index.create(tempfile.mkdtemp() + "/birds.index", dim=2)
        >>> _ = index.add(np.array([[1.0, 0.0], [0.8, 0.6], [0.0, 1.0]]), ["a.png", "b.png", "c.png"])
        >>> [(match.item.path, round(match.score, 3)) for match in search(index, item=0, k=2).answers[0].matches]
        [('b.png', 0.8), ('c.png', 0.0)]
    """
    opened = index if isinstance(index, Index) else open_index(index)
    if k < 1:
        raise UserError(f"-k must be a whole number ≥ 1, but it is {k}")
    if isinstance(rerank, str) and rerank not in RERANKS:
        raise UserError(f"--rerank must be one of {', '.join(RERANKS)}, but it is {rerank}")
    files = list_queries(queries, root=root, path_column=path_column)
    if bool(files) + bool(texts) + (item is not None) != 1:
        raise UserError("a search needs one of QUERY pictures, --text TEXT and --item ID")
    order = RERANKS[rerank]() if isinstance(rerank, str) else rerank
    k = min(k, max(1, len(opened)))
    with opened.still() as now:
        if item is not None:
            return SearchResult((_search_item(now, item, k, where=where, exact=exact or None, rerank=order),))

        def find(images: Any) -> Matches:
            with making("the search"):
                return now.search(images, k, where=where, exact=exact or None, rerank=order)

        if texts:
            return _search_texts(now, texts, find)
        return _search_files(now, files, find)


def list_queries(
    queries: str | Path | Sequence[str | Path], *, root: str | Path | None = None, path_column: str = "path"
) -> list[Path]:
    """List the pictures of a search: the given ones, or those of one folder or table.

    Examples:
        >>> list_queries(["a.jpg", "b.jpg"])
        [PosixPath('a.jpg'), PosixPath('b.jpg')]
    """
    places = [Path(queries)] if isinstance(queries, str | Path) else [Path(each) for each in queries]
    sources = [each for each in places if is_image_source(each)]
    if sources and len(places) > 1:
        raise UserError(
            f"{sources[0]} cannot be combined with other queries: give pictures, or one folder or table of them"
        )
    return find_images(sources[0], ImageOptions(root, path_column)).files if sources else places


def _search_item(
    index: Index, item: int, k: int, *, where: str | None, exact: bool | None, rerank: Rerank | None
) -> Answer:
    try:
        with making("--item"):
            matches = index.neighbors(item, k, where=where, exact=exact, rerank=rerank)
        query = index.item(item)
    except KeyError as missing:
        raise UserError(str(missing.args[0])) from None
    return Answer(query.path, _read_matches(index, matches, 0), index.thumbnail(item))


def _search_texts(index: Index, texts: Sequence[str], find: Callable[[Any], Matches]) -> SearchResult:
    if not all(text.strip() for text in texts):
        raise UserError("--text must be a text, but it is empty")
    with making("the index"):
        vectors = index.text_encoder().embed(list(texts))
    matches = find(vectors)
    pictures = [thumbnail(draw_text(text)) for text in texts]
    return SearchResult(
        tuple(Answer(text, _read_matches(index, matches, row), pictures[row]) for row, text in enumerate(texts))
    )


def _search_files(index: Index, files: Sequence[Path], find: Callable[[Sequence[Any]], Matches]) -> SearchResult:
    answers: list[Answer] = []
    broken: list[Broken] = []
    for start in range(0, len(files), BATCH):
        names, images = [], []
        for row, file in enumerate(files[start : start + BATCH], start):
            try:
                images.append(decode(file))
            except BrokenImage as error:
                if len(files) == 1:
                    raise UserError(str(error)) from None
                broken.append(Broken(row, str(file), error.reason or "it cannot be read"))
                continue
            names.append(os.fsencode(file).decode("utf-8", "replace"))  # a terminal cannot show other encodings
        if images:
            matches = find(images)
            answers += [
                Answer(name, _read_matches(index, matches, row), thumbnail(image))
                for row, (name, image) in enumerate(zip(names, images, strict=True))
            ]
    return SearchResult(tuple(answers), tuple(broken))


def _read_matches(index: Index, matches: Matches, row: int) -> tuple[Match, ...]:
    pairs = matches.of(row)
    items = index.items([number for number, _ in pairs]) if pairs else []
    return tuple(Match(item, score) for item, (_, score) in zip(items, pairs, strict=True))


def find_duplicates(index: Index | str | Path, threshold: float, *, where: str | None = None) -> list[tuple[Item, ...]]:
    """Find groups of near-duplicates in an index, the largest group first.

    Args:
        index: the index, its folder, or ``postgresql://…#name``.
        threshold: the minimum similarity of near-duplicates, such as 0.95.
        where: only items that match this filter.

    Raises:
        UserError: an argument is invalid.

    Examples:
        >>> import tempfile
        >>> index = Index.create(tempfile.mkdtemp() + "/birds.index", dim=2)
        >>> _ = index.add(np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]), ["a.png", "b.png", "c.png"])
        >>> [[item.path for item in group] for group in find_duplicates(index, 0.99)]
        [['a.png', 'c.png']]
    """
    opened = index if isinstance(index, Index) else open_index(index)
    with making("--duplicates"):
        groups = opened.duplicates(threshold, where=where)
    if not groups:
        return []
    items = {item.id: item for item in opened.items([each for group in groups for each in group])}
    return [tuple(items[each] for each in group) for group in groups]


def find_clusters(index: Index | str | Path, count: int) -> list[Cluster]:
    """Cluster the items of an index with k-means, the largest cluster first.

    Args:
        index: the index, its folder, or ``postgresql://…#name``.
        count: number of clusters.

    Raises:
        UserError: an argument is invalid.

    Examples:
        >>> import tempfile
        >>> index = Index.create(tempfile.mkdtemp() + "/birds.index", dim=2)
        >>> _ = index.add(
        ...     np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.1]]), ["a.png", "b.png", "c.png"], labels=list("xyx")
        ... )
        >>> [(len(cluster.items), cluster.label) for cluster in find_clusters(index, 2)]
        [(2, 'x'), (1, 'y')]
    """
    opened = index if isinstance(index, Index) else open_index(index)
    with opened.still() as now:
        with making("--clusters"):
            owners = now.clusters(count)
        items, vectors = now.items(now.ids), now.vectors()
    clusters = []
    for number in range(count):
        rows = _sort_by_mean(vectors, np.flatnonzero(owners == number))
        members = tuple(items[row] for row in rows)
        clusters.append(Cluster(members, _most_common([item.label for item in members])))
    return clusters


def _sort_by_mean(vectors: NDArray[np.float32], rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Rows of a cluster, nearest to its mean first."""
    if not len(rows):
        return rows
    mean = vectors[rows].mean(axis=0)
    order: NDArray[np.int64] = rows[np.argsort(-(vectors[rows] @ mean), kind="stable")]
    return order


def _most_common(labels: Sequence[str | None]) -> str | None:
    names, counts = np.unique([each for each in labels if each], return_counts=True)
    return str(names[counts.argmax()]) if len(names) else None
