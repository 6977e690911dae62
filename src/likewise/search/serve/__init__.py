"""Web server of an index: a search page and a JSON API, with FastAPI."""

from __future__ import annotations

from typing import TYPE_CHECKING

from likewise._lazy import lazy_names

if TYPE_CHECKING:
    from likewise.search.serve.app import make_app
    from likewise.search.serve.limits import Limits
    from likewise.search.serve.why import explain

__all__ = ["Limits", "explain", "make_app"]

_PLACES = {
    "app": "make_app",
    "limits": "Limits",
    "why": "explain",
}

# only the server needs FastAPI
__getattr__, __dir__ = lazy_names(__name__, _PLACES)
