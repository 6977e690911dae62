"""Responses of the API, as JSON."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import numpy as np
from fastapi import Response

from likewise import __version__
from likewise.search.matches import Floats, Item
from likewise.search.serve import shapes
from likewise.search.serve.limits import RequestError
from likewise.search.serve.service import Query as SearchQuery
from likewise.search.serve.service import Reply, Service, Settings, calibration_of
from likewise.search.serve.sorting import Column
from likewise.search.serve.why import Heat

if TYPE_CHECKING:
    from likewise.search.calibration import Calibration


async def answer_search(
    service: Service,
    how: shapes.How,
    *,
    vectors: Floats | None = None,
    item: int | None = None,
    started: float | None = None,
) -> Response:
    """Search, and return the response with items, scores and the time taken."""
    started = time.perf_counter() if started is None else started
    if how.k > service.limits.k:
        raise RequestError(422, f"k must be at most {service.limits.k:,}, but it is {how.k:,}")
    settings = Settings(how.k, how.where, how.exact, how.rerank)
    reply: Reply = await service.search(SearchQuery(settings, vectors, item))
    places: list[Any] = [None] * len(reply.found)
    if how.place:
        drawn = await service.run_in_thread(service.map)
        places = drawn.place(reply.vectors).astype(np.float64).round(5).tolist()
    answers = [
        {"found": [{**item_json(each), "score": round(score, 6)} for each, score in found], "place": place}
        for found, place in zip(reply.found, places, strict=True)
    ]
    return json_response({"answers": answers, "milliseconds": round(1e3 * (time.perf_counter() - started), 2)})


def item_json(item: Item) -> dict[str, Any]:
    """Return an item for JSON."""
    return {"id": item.id, "path": item.path, "label": item.label, "metadata": _to_plain(dict(item.metadata))}


def column_json(column: Column) -> dict[str, Any]:
    """Return a column and its values for JSON."""
    values = [{"value": value, "items": items} for value, items in column.values]
    return {"name": column.name, "kind": column.kind, "values": values, "low": column.low, "high": column.high}


def groups_json(found: dict[str, Any]) -> dict[str, Any]:
    """Return groups of items for JSON."""
    groups = [
        {"size": size, "label": label, "items": [item_json(each) for each in items]}
        for size, label, items in found["groups"]
    ]
    return {**found, "groups": groups}


def _to_plain(value: Any) -> Any:
    """Convert a value for JSON, which has no NaN and infinity."""
    if isinstance(value, dict):
        return {key: _to_plain(each) for key, each in value.items()}
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value if isinstance(value, str | int | float | bool) or value is None else str(value)


def service_json(service: Service) -> dict[str, Any]:
    """Return facts about the server and its index."""
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


def map_json(service: Service) -> dict[str, Any]:
    """Return the positions of items on the map, with labels as indices into their names."""
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


def verification_json(learned: Calibration | None, similarity: float) -> dict[str, Any]:
    """Return a similarity with its probability and the decision at each false-accept rate, if there is a calibration."""
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


def heat_json(heat: Heat) -> dict[str, Any]:
    """Return a heat map for JSON."""
    return {"places": heat.places.tolist(), "box": list(heat.box)}


def json_response(content: Any, status: int = 200) -> Response:
    """Return a response with JSON."""
    body = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Response(body.encode("utf-8", "surrogatepass"), status_code=status, media_type="application/json")
