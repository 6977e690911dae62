"""Operations of the server on an index: embed, search, look up and explain, independent of HTTP."""

from __future__ import annotations

import asyncio
import functools
import io
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from math import gcd
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from likewise.data import cores
from likewise.search.calibration import Calibration
from likewise.search.matches import Floats, Ids, Item, Matches
from likewise.search.places import place_below
from likewise.search.rerank import KReciprocal, QueryExpansion
from likewise.search.serve.decoders import LARGE, Decoders, return_memory
from likewise.search.serve.limits import HEAD, TYPES, Limits, RequestError, kind_by_content, read_upload
from likewise.search.serve.map import Map, map_of
from likewise.search.serve.queue import Batches
from likewise.search.serve.sorting import Groups, Sorter, name_group
from likewise.search.serve.why import Heat, explain
from likewise.search.vectors import encode

if TYPE_CHECKING:
    from likewise.search.index import Index

RERANKS: dict[str, KReciprocal | QueryExpansion] = {
    "k-reciprocal": KReciprocal(),
    "query-expansion": QueryExpansion(),
}
INVALID_QUERY = (ValueError, TypeError, KeyError, ArithmeticError, NotImplementedError)
"""Errors of a search with an invalid query or filter."""

TOGETHER, IMAGES = 64, 16
"""The largest number of searches, and of images, in one batch."""

SHOWN = 2048
"""The longer side of an image that is converted because browsers do not display its type."""

Result = TypeVar("Result")


@dataclass(frozen=True)
class Settings:
    """Settings of a search; searches with equal settings are computed in one product.

    Args:
        k: number of neighbors.
        where: a filter.
        exact: compare with every item.
        rerank: a name in `RERANKS`.

    Examples:
        >>> Settings(10) == Settings(10, where=None)
        True
    """

    k: int
    where: str | None = None
    exact: bool | None = None
    rerank: str | None = None


@dataclass(frozen=True, eq=False)
class Query:
    """Vectors or an item to search for, and the settings.

    Args:
        vectors: query vectors ``(m, d)``.
        item: id of an item whose neighbors are searched, instead of vectors; the item itself is excluded.
        settings: settings of the search.

    Examples:
        >>> Query(Settings(10), item=3).vectors is None
        True
    """

    settings: Settings
    vectors: Floats | None = None
    item: int | None = None


@dataclass(frozen=True, eq=False)
class Reply:
    """The results of a query.

    Args:
        found: items and scores, for each vector.
        vectors: the vectors of the query, of unit length.

    Examples:
        >>> Reply([[]], np.zeros((1, 2), np.float32)).found
        [[]]
    """

    found: list[list[tuple[Item, float]]]
    vectors: Floats


class Service:
    """An index that several clients use at the same time.

    Operations that read the index more than once use a consistent state (`Index.still`), because other processes may change
    it.  An index in a database may be slow, so methods that access the index must not be called on the event loop.

    Args:
        index: the index to serve, from a folder or a database; changes by other processes are noticed.
        limits: limits of requests.
        layout: layout of the map, see `likewise.search.serve.map.map_of`.
        files: serve the image files below the root of the index.

    Examples:
        >>> import tempfile
        >>> from likewise.search import Index
        >>> index = Index.create(tempfile.mkdtemp() + "/a.index", dim=2)
        >>> _ = index.add(np.eye(2), ["a.jpg", "b.jpg"])
        >>> async def asked():
        ...     service = Service(index, Limits())
        ...     try:
        ...         return await service.search(Query(Settings(1), vectors=np.array([[0.0, 1.0]])))
        ...     finally:
        ...         service.close()
        >>> [(item, score)] = asyncio.run(asked()).found[0]
        >>> item.path, score
        ('b.jpg', 1.0)
    """

    def __init__(self, index: Index, limits: Limits, layout: str = "pca", *, files: bool = True) -> None:
        self.index, self.limits, self.layout, self.files = index, limits, layout, files
        self._searches: Batches[Query, Reply] = Batches(
            self._search_batch, "search", most=TOGETHER, waiting=limits.waiting
        )
        self._embeds: Batches[NDArray[np.uint8], Floats] = Batches(
            self._embed_batch, "embed", most=IMAGES, waiting=2 * limits.uploads
        )
        self._slow: Batches[Callable[[], Any], Any] = Batches(_one_by_one, "slow", most=1, waiting=limits.uploads)
        at_once = min(4, cores())
        self._decoders = Decoders(at_once, seconds=limits.decode_seconds, memory=limits.decode_memory)
        self._full_size = threading.BoundedSemaphore(at_once)  # an image at full size may need 150 MB
        self._pool = ThreadPoolExecutor(cores(), thread_name_prefix="likewise-read")
        self.sorter = Sorter(index, limits)
        self._map: tuple[str, Map] | None = None
        self._mapping = threading.Lock()
        self._listed: dict[tuple[str, str | None], Ids] = {}

    def warm(self) -> None:
        """Load the model in advance; if that fails, the first request that needs it raises the error."""

        def read() -> None:
            if self.index.model is not None:
                self.index.encoder()

        self._pool.submit(read)

    def close(self) -> None:
        """End all threads."""
        self._searches.close()
        self._embeds.close()
        self._slow.close()
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._decoders.close()

    # ------------------------------------------------------------------------------------------- search

    async def search(self, query: Query) -> Reply:
        """Search; queries that arrive at the same time are batched."""
        return await self._searches.do(query)

    async def embed(self, files: Sequence[tuple[str, bytes]]) -> Floats:
        """Return vectors of uploaded images, each a name for messages and the bytes of its file."""
        images = [await self.run_in_thread(functools.partial(self._shrink, name, data)) for name, data in files]
        found = await asyncio.gather(*(self._embeds.do(image) for image in images))
        return encode(np.stack(found), "float32")[0]

    def _shrink(self, name: str, data: bytes) -> NDArray[np.uint8]:
        """Reduce an uploaded image to the pixels that the model needs, so that waiting images are small."""
        if self.index.model is None:
            raise RequestError(409, f"{self.index.name} has no model for images: search with vectors or items")
        encoder = self.index.encoder()
        with self._full_size:
            image = read_upload(data, self.limits, name, self._decoders)
            shrunk, is_large = encoder.shrink(image), image.width * image.height > LARGE
            del image
            if is_large:
                return_memory()
            return shrunk

    async def run_in_thread(self, call: Callable[[], Result]) -> Result:
        """Run a short function in another thread."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, call)

    async def run_slowly(self, call: Callable[[], Result]) -> Result:
        """Run a function that takes seconds; these run one at a time, and are rejected if too many wait."""
        found: Result = await self._slow.do(call)
        return found

    def _embed_batch(self, images: Sequence[NDArray[np.uint8]]) -> list[Floats | Exception]:
        return list(self.index.encoder().embed_shrunk(images))

    def _search_batch(self, queries: Sequence[Query]) -> list[Reply | Exception]:
        self._refresh()
        groups: dict[Settings, list[int]] = {}
        replies: list[Reply | Exception] = [RuntimeError("not searched")] * len(queries)
        vectors: dict[int, Floats] = {}
        with self.index.still() as now:
            dim = now.dim
            for place, query in enumerate(queries):
                try:
                    vectors[place] = _vectors_of(query, now, dim)
                    more = 0 if query.item is None else 1  # the item itself is found, too
                    groups.setdefault(_with_more_results(query.settings, more), []).append(place)
                except RequestError as refused:
                    replies[place] = refused
                except INVALID_QUERY as error:
                    replies[place] = _to_request_error(error)
        for settings, places in groups.items():
            try:
                found = self._search_vectors(np.concatenate([vectors[place] for place in places]), settings)
            except INVALID_QUERY as error:
                for place in places:
                    replies[place] = _to_request_error(error)
                continue
            start = 0
            for place in places:
                stop = start + len(vectors[place])
                rows = [_exclude_query(each, queries[place]) for each in found[start:stop]]
                replies[place], start = Reply(rows, vectors[place]), stop
        return replies

    def _search_vectors(self, vectors: Floats, settings: Settings) -> list[list[tuple[Item, float]]]:
        """Return items and scores for each vector; the items of all vectors are read at once."""
        rerank = None if settings.rerank is None else RERANKS[settings.rerank]
        with self.index.still() as now:
            found: Matches = now.search(vectors, settings.k, where=settings.where, exact=settings.exact, rerank=rerank)
            each = [found.of(row) for row in range(len(found))]
            needed = sorted({number for row in each for number, _ in row})
            known = dict(zip(needed, now.items(needed), strict=True)) if needed else {}
        return [[(known[number], score) for number, score in row] for row in each]

    def _refresh(self) -> None:
        """Load changes of other processes; only the search thread calls this."""
        with suppress(FileNotFoundError):  # the index is being moved or removed; the open version stays usable
            self.index.refresh()

    # ------------------------------------------------------------------------------------------- look up

    def item(self, number: int) -> Item:
        """Return an item with its metadata."""
        return _item(number, self.index)

    def pair(self, first: int, second: int) -> Floats:
        """Return the vectors of two items."""
        with self.index.still() as now:
            return np.concatenate([_vectors(number, now) for number in (first, second)])

    def listing(self, where: str | None, offset: int, limit: int, *, spread: bool = False) -> tuple[list[Item], int]:
        """Return some items that pass a filter, consecutive or spread over all of them, and the total number."""
        try:
            with self.index.still() as now:
                ids = self._find_passing(now, where)
                offset = min(offset, len(ids))
                some = ids[offset : offset + limit]
                if spread and len(ids):
                    some = ids[np.arange(offset, min(offset + limit, len(ids))) * _stride(len(ids)) % len(ids)]
                return now.items(some) if len(some) else [], len(ids)
        except INVALID_QUERY as error:
            raise _to_request_error(error) from error

    def _find_passing(self, now: Index, where: str | None) -> Ids:
        """Return the ids of items that pass a filter; computed once per version of the index."""
        key = now.version, where
        ids = self._listed.get(key)
        if ids is None:
            ids = now.ids if where is None else now.matching(where)
            if len(self._listed) >= 8:
                self._listed.clear()
            self._listed[key] = ids
        return ids

    def groups(self, find: Callable[[], Groups], offset: int, limit: int, each: int) -> dict[str, Any]:
        """Return some of the groups, each with its size, its most frequent label, and its first items."""
        for name, value in (("limit", limit), ("each", each)):
            if value > self.limits.page:
                raise RequestError(422, f"{name} must be at most {self.limits.page}, but it is {value:,}")
        try:
            with self.index.still() as now:
                found = find()
                members = [now.items(ids) for ids in found[offset : offset + limit]]
        except INVALID_QUERY as error:
            raise _to_request_error(error) from error
        some = [(len(items), name_group(items), items[:each]) for items in members]
        return {"groups": some, "total": len(found), "members": sum(map(len, found)), "offset": offset}

    def thumbnail(self, number: int) -> tuple[bytes, str]:
        """Return the thumbnail of an item, as a WebP file, and the version of the index."""
        with self.index.still() as now:
            _item(number, now)
            small, version = now.thumbnail(number), now.version
        if small is None:
            raise RequestError(404, f"item {number} has no thumbnail")
        return small, version

    def file(self, number: int) -> tuple[Path, str | None]:
        """Return the file of an item and its type, which is ``None`` if browsers do not display it."""
        item = self.item(number)
        if not self.files:
            raise RequestError(404, "the image files of this index are not served: its root is outside its folder")
        place = place_below(self.index.root, item.path)
        if place is None:
            raise RequestError(
                404, f"the file of item {number}, {Path(item.path).name}, is not below the root of the index"
            )
        try:
            with place.open("rb") as file:
                kind = kind_by_content(file.read(HEAD))
        except OSError:
            raise RequestError(404, f"the file of item {number}, {Path(item.path).name}, cannot be opened") from None
        return place, None if kind is None else TYPES.get(kind)

    def convert(self, place: Path) -> bytes:
        """Return an image as WebP, for types that browsers do not display."""
        with self._full_size:
            image = self._picture(place)
            image.thumbnail((SHOWN, SHOWN))
        out = io.BytesIO()
        image.save(out, "WEBP", quality=85)
        return out.getvalue()

    def _picture(self, place: Path) -> Image.Image:
        """Read an image of the collection; any type is allowed, but the size is limited."""
        try:
            if place.stat().st_size > 16 * self.limits.upload:
                raise RequestError(413, f"{place.name} is too large to be read here")
            return read_upload(place.read_bytes(), self.limits, place.name, self._decoders)
        except OSError:
            raise RequestError(404, f"{place.name} cannot be opened") from None

    # ------------------------------------------------------------------------------------------- map and explanation

    def map(self) -> Map:
        """Return the map; computed once per version of the index."""
        with self._mapping:
            version = self.index.version
            if self._map is None or self._map[0] != version:
                self._map = version, map_of(self.index, self.layout)
            return self._map[1]

    async def why(self, query: tuple[str, bytes] | int, item: int) -> tuple[Heat, Heat]:
        """Return the heat maps of two images; the query is a name and the bytes of a file, or the id of an item."""

        def work() -> tuple[Heat, Heat]:
            if self.index.model is None:
                raise RequestError(409, f"{self.index.name} has no model for images")
            if isinstance(query, int):
                first = self._picture(self.file(query)[0])
            else:
                first = read_upload(query[1], self.limits, query[0], self._decoders)
            try:
                return explain(self.index.encoder(), first, self._picture(self.file(item)[0]))
            except (ValueError, TypeError) as unfit:
                raise RequestError(409, f"this model cannot be explained: {_sentence(unfit)}") from unfit

        return await self.run_slowly(work)


def calibration_of(index: Index) -> Calibration | None:
    """Return the calibration of the index or of its model, if there is one.

    Examples:
        >>> import tempfile
        >>> from likewise.search import Index
        >>> calibration_of(Index.create(tempfile.mkdtemp() + "/a.index", dim=2)) is None
        True
    """
    card = index.model_card
    kept = index.calibration or (None if card is None else card.calibration)
    return None if kept is None else Calibration.from_dict(kept)


def _item(number: int, index: Index) -> Item:
    try:
        return index.item(number)
    except (KeyError, OverflowError):
        raise RequestError(404, f"there is no item {number} in {index.name}") from None


def _vectors(number: int, index: Index) -> Floats:
    try:
        return index.vectors([number])
    except (KeyError, OverflowError):
        raise RequestError(404, f"there is no item {number} in {index.name}") from None


def _vectors_of(query: Query, index: Index, dim: int) -> Floats:
    if query.item is not None:
        return _vectors(query.item, index)
    given = np.asarray(query.vectors)
    if given.ndim != 2 or given.shape[1] != dim:
        raise ValueError(f"a vector must have dimension {dim:,}, but it has {given.shape[-1]:,}")
    return encode(given, "float32")[0]


def _one_by_one(calls: Sequence[Callable[[], Any]]) -> list[Any]:
    results: list[Any] = []
    for call in calls:
        try:
            results.append(call())
        except Exception as error:
            results.append(error)
    return results


def _with_more_results(settings: Settings, more: int) -> Settings:
    return Settings(settings.k + more, settings.where, settings.exact, settings.rerank)


def _exclude_query(found: list[tuple[Item, float]], query: Query) -> list[tuple[Item, float]]:
    if query.item is None:
        return found
    return [each for each in found if each[0].id != query.item][: query.settings.k]


def _stride(count: int) -> int:
    """Return a step size that visits each of ``count`` positions once, near the golden ratio, so that samples spread evenly."""
    step = max(1, round(0.6180339887 * count))
    while gcd(step, count) != 1:
        step += 1
    return step


def _to_request_error(error: Exception) -> RequestError:
    if isinstance(error, KeyError):
        return RequestError(404, _sentence(error))
    return RequestError(422, _sentence(error))


def _sentence(error: Exception) -> str:
    text = str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
    return " ".join(text.split()) or type(error).__name__
