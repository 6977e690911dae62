"""Find look-alikes: an index of vectors, exact and approximate search, filters, and what is built on them."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from likewise.search.calibration import Calibration, calibrate
    from likewise.search.encoder import Encoder
    from likewise.search.found import Found, Item, Rerank
    from likewise.search.index import Index
    from likewise.search.places import open_index
    from likewise.search.postgres import PostgresIndex
    from likewise.search.rerank import KReciprocal, QueryExpansion, expand, k_reciprocal

__all__ = [
    "Calibration",
    "Encoder",
    "Found",
    "Index",
    "Item",
    "KReciprocal",
    "PostgresIndex",
    "QueryExpansion",
    "Rerank",
    "calibrate",
    "expand",
    "k_reciprocal",
    "open_index",
]

_PLACES = {
    "Calibration": "calibration",
    "Encoder": "encoder",
    "Found": "found",
    "Index": "index",
    "Item": "found",
    "KReciprocal": "rerank",
    "PostgresIndex": "postgres",
    "QueryExpansion": "rerank",
    "Rerank": "found",
    "calibrate": "calibration",
    "expand": "rerank",
    "k_reciprocal": "rerank",
    "open_index": "places",
}


def __getattr__(name: str) -> Any:
    """Import a name when it is asked for: none of them needs faiss, a web server or a database before it is used."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"likewise.search.{_PLACES[name]}"), name)


def __dir__() -> list[str]:
    """What can be asked for, for whoever looks around: a shell, or the pages of the API."""
    return sorted({*globals(), *__all__})
