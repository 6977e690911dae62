"""The application: endpoints, parameters and responses."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import numpy as np
from fastapi import APIRouter, FastAPI, Path, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse
from pydantic import BaseModel, ValidationError
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException

from likewise import __version__
from likewise.search.matches import Floats, Item
from likewise.search.serve import shapes
from likewise.search.serve.guard import FAILED, Guard
from likewise.search.serve.limits import Limits, Refused
from likewise.search.serve.service import Query as Asked
from likewise.search.serve.service import Reply, Service, Settings, calibration_of
from likewise.search.serve.sorting import Column
from likewise.search.serve.static import add_files
from likewise.search.serve.why import Heat

if TYPE_CHECKING:
    from likewise.search.calibration import Calibration
    from likewise.search.index import Index

KEPT = "private, max-age=604800, immutable"
FAULTS: dict[int | str, dict[str, Any]] = {
    400: {"model": shapes.Fault, "description": "the body cannot be read"},
    401: {"model": shapes.Fault, "description": "a token is needed"},
    403: {"model": shapes.Fault, "description": "requested by a page of another site"},
    404: {"model": shapes.Fault, "description": "there is no such item, or its file is missing"},
    409: {"model": shapes.Fault, "description": "the index has no model, or none that fits"},
    413: {"model": shapes.Fault, "description": "too large"},
    415: {"model": shapes.Fault, "description": "not an image"},
    421: {"model": shapes.Fault, "description": "requested for another host"},
    422: {"model": shapes.Fault, "description": "something does not fit, in one sentence"},
    429: {"model": shapes.Fault, "description": "too many requests are waiting; see Retry-After"},
    503: {"model": shapes.Fault, "description": "it took too long, or the index cannot be read just now"},
}

AWAY = "the index cannot be read at the moment: try again"
UNREACHABLE = (ConnectionError, FileNotFoundError, PermissionError)
"""Errors of an index whose database does not answer, no longer has it, or denies access."""

REPEATED = 60.0
"""Seconds after which the same line is printed again."""

Number = Annotated[int, Path(ge=0, le=shapes.LARGEST, description="an item's number")]
K = Annotated[int, Query(ge=1, le=shapes.LARGEST, description="number of neighbors")]
Where = Annotated[str | None, Query(max_length=4096, description="a filter")]
Offset = Annotated[int, Query(ge=0, le=shapes.LARGEST, description="groups that are passed over")]
Limit = Annotated[int, Query(ge=1, le=shapes.LARGEST)]
Shape = TypeVar("Shape", bound=BaseModel)


def make_app(
    index: Index,
    *,
    limits: Limits | None = None,
    token: str | None = None,
    loopback: bool = True,
    layout: str = "pca",
    files: bool = True,
) -> Guard:
    """The page and the API of an index, as an ASGI application that any server can run.

    Args:
        index: what is served, from a folder or a database; see `likewise.search.Index.open`.
        limits: how much is taken on.
        token: what the API must be asked with.
        loopback: answer only to names of this machine.
        layout: of the map: ``"pca"`` or ``"tsne"``.
        files: show the image files below the root that the index names; without, its thumbnails only.

    Examples:
        >>> import tempfile
        >>> from likewise.search import Index
        >>> index = Index.create(tempfile.mkdtemp() + "/a.index", dim=2)
        >>> sorted(path for path in description(index)["paths"] if "{" not in path)
        ['/api/about', '/api/clusters', '/api/columns', '/api/duplicates', '/api/items', '/api/map', '/api/search', '/api/verify', '/api/why']
    """
    app, _ = _application(index, limits or Limits(), layout, files)
    return Guard(app, limits or Limits(), token=token, loopback=loopback)


def description(index: Index) -> dict[str, Any]:
    """The API in OpenAPI's words.

    Examples:
        >>> import tempfile
        >>> from likewise.search import Index
        >>> description(Index.create(tempfile.mkdtemp() + "/a.index", dim=2))["info"]["title"]
        'a'
    """
    app, service = _application(index, Limits(), "pca")
    service.close()
    return app.openapi()


def _application(index: Index, limits: Limits, layout: str, files: bool = True) -> tuple[FastAPI, Service]:
    service = Service(index, limits, layout, files=files)

    @asynccontextmanager
    async def living(_app: FastAPI) -> AsyncIterator[None]:
        service.warm()
        yield
        service.close()

    app = FastAPI(
        title=index.name,
        version=__version__,
        summary=f"Look-alikes among {len(index):,} images, found by likewise.",
        docs_url=None,
        redoc_url=None,
        lifespan=living,
    )
    for add in (_about, _look_ups, _sorted, _searching, _comparing):
        router = APIRouter(prefix="/api", responses=FAULTS)
        add(router, service)
        app.include_router(router)
    add_files(app)
    app.add_exception_handler(RequestValidationError, _answer_invalid)
    app.add_exception_handler(HTTPException, _answer_http_error)
    app.add_exception_handler(Refused, _answer_refused)
    away = _make_unreachable_handler()
    for kind in UNREACHABLE:
        app.add_exception_handler(kind, away)
    app.add_exception_handler(Exception, _answer_failed)
    return app, service


# ------------------------------------------------------------------------------------------------ addresses


def _about(router: APIRouter, service: Service) -> None:
    @router.get("/about", response_model=shapes.About, summary="Facts about the server and the index")
    def about() -> Response:
        return _json(_describe_service(service))

    @router.get("/map", response_model=shapes.MapShape, summary="Positions of items on the map")
    async def embedding_map() -> Response:
        return _json(await service.run_in_thread(lambda: _map_shape(service)))


def _look_ups(router: APIRouter, service: Service) -> None:
    @router.get("/items", response_model=shapes.Listing, summary="Items in their order, page by page")
    def items(
        where: Where = None,
        offset: Annotated[int, Query(ge=0, le=shapes.LARGEST)] = 0,
        limit: Annotated[int, Query(ge=1, le=shapes.LARGEST)] = 50,
        spread: Annotated[bool, Query(description="not in row order, but spread over the whole collection")] = False,
    ) -> Response:
        if limit > service.limits.page:
            raise Refused(422, f"limit must be at most {service.limits.page}, but it is {limit:,}")
        some, total = service.listing(where, offset, limit, spread=spread)
        return _json({"items": [_item(each) for each in some], "total": total, "offset": offset})

    @router.get("/items/{number}", response_model=shapes.ItemShape, summary="An item and its metadata")
    def item(number: Number) -> Response:
        return _json(_item(service.item(number)))

    @router.get(
        "/items/{number}/thumbnail",
        response_class=Response,
        responses={200: {"content": {"image/webp": {}}}},
        summary="Its small picture",
    )
    def thumbnail(number: Number, v: Annotated[str | None, Query(max_length=64)] = None) -> Response:
        small, version = service.thumbnail(number)
        kept = KEPT if v == version else "no-cache"
        return Response(small, media_type="image/webp", headers={"cache-control": kept})

    @router.get(
        "/items/{number}/image",
        response_class=FileResponse,
        responses={200: {"content": {"image/*": {}}}},
        summary="Its image, as its file is or as WebP",
    )
    def image(number: Number) -> Response:
        place, kind = service.file(number)
        if kind is None:
            return Response(service.convert(place), media_type="image/webp", headers={"cache-control": "no-cache"})
        return FileResponse(place, media_type=kind, headers={"cache-control": "no-cache"})

    @router.get("/items/{number}/neighbors", response_model=shapes.Answers, summary="The nearest neighbors of an item")
    async def neighbors(
        number: Number,
        k: K = 10,
        where: Where = None,
        exact: bool | None = None,
        rerank: shapes.RerankName | None = None,
        place: bool = False,
    ) -> Response:
        how = shapes.How(k=k, where=where, exact=exact, rerank=rerank, place=place)
        return await _answer_search(service, how, item=number)


def _sorted(router: APIRouter, service: Service) -> None:
    @router.get("/columns", response_model=shapes.Columns, summary="Columns that a filter may use, with their values")
    async def columns() -> Response:
        found = await service.run_in_thread(service.sorter.columns)
        return _json({"columns": [_column(each) for each in found]})

    @router.get("/duplicates", response_model=shapes.Groups, summary="Groups of near-duplicates")
    async def duplicates(
        threshold: Annotated[float, Query(ge=-1, le=1, allow_inf_nan=False, description="the least similarity")] = 0.95,
        where: Where = None,
        offset: Offset = 0,
        limit: Limit = 20,
        each: Limit = 12,
    ) -> Response:
        def work() -> dict[str, Any]:
            return service.groups(lambda: service.sorter.duplicates(threshold, where), offset, limit, each)

        return _json(_groups(await service.run_slowly(work)))

    @router.get("/clusters", response_model=shapes.Groups, summary="The collection in clusters")
    async def clusters(
        n: Annotated[int, Query(ge=1, le=shapes.MOST_CLUSTERS, description="how many")] = 12,
        offset: Offset = 0,
        limit: Limit = 20,
        each: Limit = 12,
    ) -> Response:
        def work() -> dict[str, Any]:
            return service.groups(lambda: service.sorter.clusters(n), offset, limit, each)

        return _json(_groups(await service.run_slowly(work)))


def _searching(router: APIRouter, service: Service) -> None:
    form = {"image": {"type": "string", "format": "binary", "description": "the file of an image"}}
    body = _either(shapes.Search, _form(form, shapes.How, ("image",)))

    @router.post(
        "/search", response_model=shapes.Answers, openapi_extra=body, summary="What is most like an image or a vector"
    )
    async def search(request: Request) -> Response:
        if not _is_form(request):
            asked = _validate(shapes.Search, await request.body())
            if asked.id is not None:
                return await _answer_search(service, asked, item=asked.id)
            matrix = _matrix(asked.vectors or [asked.vector or []], service.limits.vectors)
            asked.vector = asked.vectors = None  # lists of numbers are several times as large, and would wait, too
            return await _answer_search(service, asked, vectors=matrix)
        files, fields = await _read_form(request, ("image",))
        how = _validate(shapes.How, fields)
        begun = time.perf_counter()
        return await _answer_search(service, how, vectors=await service.embed(files), begun=begun)


def _comparing(router: APIRouter, service: Service) -> None:
    pictures = {name: {"type": "string", "format": "binary"} for name in ("first", "second")}
    body = _either(shapes.Pair, _form(pictures, None, ("first", "second")))

    @router.post(
        "/verify", response_model=shapes.Verified, openapi_extra=body, summary="Whether two images show the same"
    )
    async def verify(request: Request) -> Response:
        if _is_form(request):
            files, _ = await _read_form(request, ("first", "second"))
            vectors = await service.embed(files)
        else:
            pair = _validate(shapes.Pair, await request.body())
            vectors = await service.run_in_thread(lambda: service.pair(pair.first, pair.second))
        similarity = float(vectors[0].astype(np.float64) @ vectors[1].astype(np.float64))
        return _json(_verdict(await service.run_in_thread(lambda: calibration_of(service.index)), similarity))

    query = {"image": {"type": "string", "format": "binary"}, "item": {"type": "integer", "minimum": 0}}
    body = _either(shapes.Why, _form(query, None, ("image", "item")))

    @router.post(
        "/why", response_model=shapes.Explained, openapi_extra=body, summary="What two images have in common, and where"
    )
    async def why(request: Request) -> Response:
        if _is_form(request):
            [upload], fields = await _read_form(request, ("image",))
            item = _validate(shapes.Why, {"query": 0, **fields}).item
            await service.run_in_thread(lambda: service.item(item))
            heats = await service.why(upload, item)
        else:
            pair = _validate(shapes.Why, await request.body())
            await service.run_in_thread(lambda: [service.item(each) for each in (pair.query, pair.item)])
            heats = await service.why(pair.query, pair.item)
        shown = {"query": _heat(heats[0]), "item": _heat(heats[1])}
        return _json({"similarity": heats[0].similarity, **shown})


# ------------------------------------------------------------------------------------------------ from requests


def _is_form(request: Request) -> bool:
    return request.headers.get("content-type", "").lower().startswith("multipart/form-data")


async def _read_form(request: Request, names: Sequence[str]) -> tuple[list[tuple[str, bytes]], dict[str, str]]:
    """The files of these names and what else is in a form."""
    try:
        async with request.form(max_files=len(names), max_fields=16, max_part_size=2**16) as form:
            files = []
            for name in names:
                given = form.get(name)
                if not isinstance(given, UploadFile):
                    raise Refused(422, f"the form must have a file {name}, but it has none")
                files.append((name if name != "image" else "the image", await given.read()))
            fields = {name: value for name, value in form.multi_items() if isinstance(value, str)}
    except (Refused, HTTPException):
        raise
    except (ValueError, KeyError, LookupError, AssertionError) as error:
        raise Refused(400, "the form cannot be read: it is damaged") from error
    return files, {name: value for name, value in fields.items() if value != ""}


def _validate(shape: type[Shape], given: bytes | dict[str, Any]) -> Shape:
    try:
        return shape.model_validate_json(given) if isinstance(given, bytes) else shape.model_validate(given)
    except ValidationError as error:
        raise Refused(422, _describe_fault(error.errors(include_url=False, include_context=False))) from None


def _matrix(vectors: Sequence[Sequence[float]], most: int) -> Floats:
    """Vectors of one size; whether it is the index's is seen where the index is searched."""
    if len(vectors) > most:
        raise Refused(422, f"vectors must be at most {most} at once, but there are {len(vectors):,}")
    first = len(vectors[0])
    other = next((len(each) for each in vectors if len(each) != first), None)
    if other is not None:
        raise Refused(422, f"vectors must all have {first:,} numbers like the first one, but one has {other:,}")
    matrix = np.asarray(vectors, np.float64)
    largest = np.abs(matrix).max(axis=1, keepdims=True)
    return (matrix / np.where(largest > 0.0, largest, 1.0)).astype(np.float32)  # the length of a vector means nothing


def _describe_fault(errors: Sequence[Any]) -> str:
    """The first of several faults, in words."""
    first = errors[0]
    place = ".".join(str(each) for each in first["loc"] if each not in ("body", "query", "path"))
    message = str(first["msg"]).removeprefix("Value error, ")
    if not place:
        return message
    shown = repr(first.get("input"))
    return f"{place}: {message[0].lower()}{message[1:]}, but it is {shown if len(shown) <= 60 else shown[:57] + '…'}"


# ------------------------------------------------------------------------------------------------ to answers


async def _answer_search(
    service: Service,
    how: shapes.How,
    *,
    vectors: Floats | None = None,
    item: int | None = None,
    begun: float | None = None,
) -> Response:
    begun = time.perf_counter() if begun is None else begun
    if how.k > service.limits.k:
        raise Refused(422, f"k must be at most {service.limits.k:,}, but it is {how.k:,}")
    settings = Settings(how.k, how.where, how.exact, how.rerank)
    reply: Reply = await service.search(Asked(settings, vectors, item))
    places: list[Any] = [None] * len(reply.found)
    if how.place:
        drawn = await service.run_in_thread(service.map)
        places = drawn.place(reply.vectors).astype(np.float64).round(5).tolist()
    answers = [
        {"found": [{**_item(each), "score": round(score, 6)} for each, score in found], "place": place}
        for found, place in zip(reply.found, places, strict=True)
    ]
    return _json({"answers": answers, "milliseconds": round(1e3 * (time.perf_counter() - begun), 2)})


def _item(item: Item) -> dict[str, Any]:
    return {"id": item.id, "path": item.path, "label": item.label, "metadata": _to_plain(dict(item.metadata))}


def _column(column: Column) -> dict[str, Any]:
    values = [{"value": value, "items": items} for value, items in column.values]
    return {"name": column.name, "kind": column.kind, "values": values, "low": column.low, "high": column.high}


def _groups(found: dict[str, Any]) -> dict[str, Any]:
    groups = [
        {"size": size, "label": label, "items": [_item(each) for each in items]}
        for size, label, items in found["groups"]
    ]
    return {**found, "groups": groups}


def _to_plain(value: Any) -> Any:
    """What JSON can hold: a number that is none is nothing."""
    if isinstance(value, dict):
        return {key: _to_plain(each) for key, each in value.items()}
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value if isinstance(value, str | int | float | bool) or value is None else str(value)


def _describe_service(service: Service) -> dict[str, Any]:
    limits = service.limits
    with service.index.still() as index:
        near, model = index.near, index.model
        return {
            "name": index.name,
            "items": len(index),
            "dim": index.dim,
            "storage": index.storage,
            "version": index.version,
            "fields": {"label": "text", "path": "text", "id": "number", **index.fields},
            "model": None if model is None else {"name": model.name, "sha256": model.sha256},
            "near": None if near is None else {"kind": near.kind, "recall": near.recall},
            "calibrated": calibration_of(index) is not None,
            "layout": service.layout,
            "limits": {name: getattr(limits, name) for name in ("upload", "pixels", "k", "vectors", "page")},
            "likewise": __version__,
        }


def _map_shape(service: Service) -> dict[str, Any]:
    drawn = service.map()
    names = sorted({label for label in drawn.labels if label is not None})
    codes = {name: code for code, name in enumerate(names)}
    return {
        "layout": drawn.layout,
        "total": drawn.total,
        "ids": drawn.ids.tolist(),
        "x": drawn.places[:, 0].astype(np.float64).round(4).tolist(),
        "y": drawn.places[:, 1].astype(np.float64).round(4).tolist(),
        "labels": [None if label is None else codes[label] for label in drawn.labels],
        "names": names,
    }


def _verdict(learned: Calibration | None, similarity: float) -> dict[str, Any]:
    rates = [] if learned is None else learned.points
    return {
        "similarity": similarity,
        "probability": None if learned is None else learned.probability(similarity),
        "rates": [
            {
                "far": each.far,
                "threshold": each.threshold if np.isfinite(each.threshold) else None,
                "same": similarity >= each.threshold,
            }
            for each in rates
        ],
    }


def _heat(heat: Heat) -> dict[str, Any]:
    return {"places": heat.places.tolist(), "box": list(heat.box)}


def _json(content: Any, status: int = 200) -> Response:
    body = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Response(body.encode("utf-8", "surrogatepass"), status_code=status, media_type="application/json")


async def _answer_refused(_request: Request, refused: Exception) -> Response:
    assert isinstance(refused, Refused)
    answer = _json({"error": str(refused)}, refused.status)
    if refused.retry is not None:
        answer.headers["retry-after"] = str(refused.retry)
    return answer


def _make_unreachable_handler() -> Callable[[Request, Exception], Awaitable[Response]]:
    """The answer while an index cannot be read; the reason is printed on the terminal of the server, once a minute."""
    printed: dict[str, float] = {}

    async def away(_request: Request, error: Exception) -> Response:
        reason, now = " ".join(str(error).split()), time.monotonic()
        if now - printed.get(reason, -REPEATED) >= REPEATED:
            printed.clear()
            printed[reason] = now
            print(f"the index cannot be read: {reason}", file=sys.stderr, flush=True)
        answer = _json({"error": AWAY}, 503)
        answer.headers["retry-after"] = "5"
        return answer

    return away


async def _answer_failed(_request: Request, _error: Exception) -> Response:
    return _json({"error": FAILED}, 500)


async def _answer_invalid(_request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return _json({"error": _describe_fault(error.errors())}, 422)


async def _answer_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    said = {404: f"there is no page {request.url.path}", 405: f"{request.url.path} does not support this method"}
    answer = _json({"error": said.get(error.status_code, str(error.detail))}, error.status_code)
    answer.headers.update(error.headers or {})
    return answer


# ------------------------------------------------------------------------------------------------ descriptions


def _either(shape: type[BaseModel], form: dict[str, Any]) -> dict[str, Any]:
    """A body that is JSON or a form."""
    schema = shape.model_json_schema()
    content = {"application/json": {"schema": schema}, "multipart/form-data": {"schema": form}}
    return {"requestBody": {"required": True, "content": content}}


def _form(files: dict[str, Any], shape: type[BaseModel] | None, required: Sequence[str]) -> dict[str, Any]:
    more = {} if shape is None else shape.model_json_schema()["properties"]
    return {"type": "object", "required": list(required), "properties": {**files, **more}}
