"""The web application: its endpoints and their parameters."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from fastapi import APIRouter, FastAPI, Path, Query, Request, Response
from fastapi.responses import FileResponse

from likewise import __version__
from likewise.search.serve import shapes
from likewise.search.serve.faults import FAULTS, add_handlers
from likewise.search.serve.guard import Guard
from likewise.search.serve.limits import Limits, RequestError
from likewise.search.serve.requests import form_schema, is_form, json_or_form, read_form, to_matrix, validate
from likewise.search.serve.responses import (
    answer_search,
    column_json,
    groups_json,
    heat_json,
    item_json,
    json_response,
    map_json,
    service_json,
    verification_json,
)
from likewise.search.serve.service import Service, calibration_of
from likewise.search.serve.static import add_files

if TYPE_CHECKING:
    from likewise.search.index import Index

IMMUTABLE = "private, max-age=604800, immutable"
Number = Annotated[int, Path(ge=0, le=shapes.LARGEST, description="id of an item")]
K = Annotated[int, Query(ge=1, le=shapes.LARGEST, description="number of neighbors")]
Where = Annotated[str | None, Query(max_length=4096, description="a filter")]
Offset = Annotated[int, Query(ge=0, le=shapes.LARGEST, description="number of groups to skip")]
Limit = Annotated[int, Query(ge=1, le=shapes.LARGEST)]


def make_app(
    index: Index,
    *,
    limits: Limits | None = None,
    token: str | None = None,
    loopback: bool = True,
    layout: str = "pca",
    files: bool = True,
) -> Guard:
    """Create the search page and the API of an index as an ASGI application, which any ASGI server can run.

    Args:
        index: the index to serve, from a folder or a database; see `likewise.search.Index.open`.
        limits: limits of requests.
        token: bearer token that API requests must send.
        loopback: answer only requests for names of this machine.
        layout: layout of the map: ``"pca"`` or ``"tsne"``.
        files: serve the image files below the root of the index; otherwise only its thumbnails.

    Examples:
        >>> import tempfile
        >>> from likewise.search import Index
        >>> index = Index.create(tempfile.mkdtemp() + "/a.index", dim=2)
        >>> sorted(path for path in description(index)["paths"] if "{" not in path)
        ['/api/about', '/api/clusters', '/api/columns', '/api/duplicates', '/api/items', '/api/map', '/api/search', '/api/verify', '/api/why']
    """
    app, _ = _make_application(index, limits or Limits(), layout, files)
    return Guard(app, limits or Limits(), token=token, loopback=loopback)


def description(index: Index) -> dict[str, Any]:
    """Return the OpenAPI description of the API.

    Examples:
        >>> import tempfile
        >>> from likewise.search import Index
        >>> description(Index.create(tempfile.mkdtemp() + "/a.index", dim=2))["info"]["title"]
        'a'
    """
    app, service = _make_application(index, Limits(), "pca")
    service.close()
    return app.openapi()


def _make_application(index: Index, limits: Limits, layout: str, files: bool = True) -> tuple[FastAPI, Service]:
    service = Service(index, limits, layout, files=files)

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        service.warm()
        yield
        service.close()

    app = FastAPI(
        title=index.name,
        version=__version__,
        summary=f"Similarity search among {len(index):,} images, by likewise.",
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
    )
    for add in (_add_facts, _add_items, _add_groups, _add_search, _add_comparisons):
        router = APIRouter(prefix="/api", responses=FAULTS)
        add(router, service)
        app.include_router(router)
    add_files(app)
    add_handlers(app)
    return app, service


# ------------------------------------------------------------------------------------------------ endpoints


def _add_facts(router: APIRouter, service: Service) -> None:
    @router.get("/about", response_model=shapes.About, summary="Facts about the server and the index")
    def about() -> Response:
        return json_response(service_json(service))

    @router.get("/map", response_model=shapes.MapShape, summary="Positions of items on the map")
    async def embedding_map() -> Response:
        return json_response(await service.run_in_thread(lambda: map_json(service)))


def _add_items(router: APIRouter, service: Service) -> None:
    @router.get("/items", response_model=shapes.Listing, summary="Items in order, page by page")
    def items(
        where: Where = None,
        offset: Annotated[int, Query(ge=0, le=shapes.LARGEST)] = 0,
        limit: Annotated[int, Query(ge=1, le=shapes.LARGEST)] = 50,
        spread: Annotated[
            bool, Query(description="return items spread over the whole collection instead of consecutive ones")
        ] = False,
    ) -> Response:
        if limit > service.limits.page:
            raise RequestError(422, f"limit must be at most {service.limits.page}, but it is {limit:,}")
        some, total = service.listing(where, offset, limit, spread=spread)
        return json_response({"items": [item_json(each) for each in some], "total": total, "offset": offset})

    @router.get("/items/{number}", response_model=shapes.ItemShape, summary="An item and its metadata")
    def item(number: Number) -> Response:
        return json_response(item_json(service.item(number)))

    @router.get(
        "/items/{number}/thumbnail",
        response_class=Response,
        responses={200: {"content": {"image/webp": {}}}},
        summary="The thumbnail of an item",
    )
    def thumbnail(number: Number, v: Annotated[str | None, Query(max_length=64)] = None) -> Response:
        small, version = service.thumbnail(number)
        kept = IMMUTABLE if v == version else "no-cache"
        return Response(small, media_type="image/webp", headers={"cache-control": kept})

    @router.get(
        "/items/{number}/image",
        response_class=FileResponse,
        responses={200: {"content": {"image/*": {}}}},
        summary="The image of an item, as its file or as WebP",
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
        return await answer_search(service, how, item=number)


def _add_groups(router: APIRouter, service: Service) -> None:
    @router.get("/columns", response_model=shapes.Columns, summary="Columns that a filter may use, with their values")
    async def columns() -> Response:
        found = await service.run_in_thread(service.sorter.columns)
        return json_response({"columns": [column_json(each) for each in found]})

    @router.get("/duplicates", response_model=shapes.Groups, summary="Groups of near-duplicates")
    async def duplicates(
        threshold: Annotated[
            float, Query(ge=-1, le=1, allow_inf_nan=False, description="smallest similarity of two near-duplicates")
        ] = 0.95,
        where: Where = None,
        offset: Offset = 0,
        limit: Limit = 20,
        each: Limit = 12,
    ) -> Response:
        def work() -> dict[str, Any]:
            return service.groups(lambda: service.sorter.duplicates(threshold, where), offset, limit, each)

        return json_response(groups_json(await service.run_slowly(work)))

    @router.get("/clusters", response_model=shapes.Groups, summary="The collection in clusters")
    async def clusters(
        n: Annotated[int, Query(ge=1, le=shapes.MOST_CLUSTERS, description="number of clusters")] = 12,
        offset: Offset = 0,
        limit: Limit = 20,
        each: Limit = 12,
    ) -> Response:
        def work() -> dict[str, Any]:
            return service.groups(lambda: service.sorter.clusters(n), offset, limit, each)

        return json_response(groups_json(await service.run_slowly(work)))


def _add_search(router: APIRouter, service: Service) -> None:
    form = {"image": {"type": "string", "format": "binary", "description": "the file of an image"}}
    body = json_or_form(shapes.Search, form_schema(form, shapes.How, ("image",)))

    @router.post(
        "/search",
        response_model=shapes.Answers,
        openapi_extra=body,
        summary="The items that are most similar to an image or a vector",
    )
    async def search(request: Request) -> Response:
        if not is_form(request):
            query = validate(shapes.Search, await request.body())
            if query.id is not None:
                return await answer_search(service, query, item=query.id)
            matrix = to_matrix(query.vectors or [query.vector or []], service.limits.vectors)
            # the lists are several times as large as the matrix: free them during the search
            query.vector = query.vectors = None
            return await answer_search(service, query, vectors=matrix)
        files, fields = await read_form(request, ("image",))
        how = validate(shapes.How, fields)
        started = time.perf_counter()
        return await answer_search(service, how, vectors=await service.embed(files), started=started)


def _add_comparisons(router: APIRouter, service: Service) -> None:
    pictures = {name: {"type": "string", "format": "binary"} for name in ("first", "second")}
    body = json_or_form(shapes.Pair, form_schema(pictures, None, ("first", "second")))

    @router.post(
        "/verify", response_model=shapes.Verified, openapi_extra=body, summary="Whether two images show the same thing"
    )
    async def verify(request: Request) -> Response:
        if is_form(request):
            files, _ = await read_form(request, ("first", "second"))
            vectors = await service.embed(files)
        else:
            pair = validate(shapes.Pair, await request.body())
            vectors = await service.run_in_thread(lambda: service.pair(pair.first, pair.second))
        similarity = float(vectors[0].astype(np.float64) @ vectors[1].astype(np.float64))
        return json_response(
            verification_json(await service.run_in_thread(lambda: calibration_of(service.index)), similarity)
        )

    query = {"image": {"type": "string", "format": "binary"}, "item": {"type": "integer", "minimum": 0}}
    body = json_or_form(shapes.Why, form_schema(query, None, ("image", "item")))

    @router.post(
        "/why", response_model=shapes.Explained, openapi_extra=body, summary="What two images have in common, and where"
    )
    async def why(request: Request) -> Response:
        if is_form(request):
            [upload], fields = await read_form(request, ("image",))
            item = validate(shapes.Why, {"query": 0, **fields}).item
            await service.run_in_thread(lambda: service.item(item))
            heats = await service.why(upload, item)
        else:
            pair = validate(shapes.Why, await request.body())
            await service.run_in_thread(lambda: [service.item(each) for each in (pair.query, pair.item)])
            heats = await service.why(pair.query, pair.item)
        shown = {"query": heat_json(heats[0]), "item": heat_json(heats[1])}
        return json_response({"similarity": heats[0].similarity, **shown})
