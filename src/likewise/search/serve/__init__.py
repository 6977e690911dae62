"""A search page and a JSON API for an index, over FastAPI."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from likewise.search.serve.app import make_app
    from likewise.search.serve.limits import Limits
    from likewise.search.serve.why import explain

__all__ = ["Limits", "explain", "make_app"]

_PLACES = {"Limits": "limits", "explain": "why", "make_app": "app"}


def __getattr__(name: str) -> Any:
    """Import a name on first use: only the server itself needs FastAPI."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_PLACES[name]}"), name)


def __dir__() -> list[str]:
    """The public names and whatever is loaded, for shells and for the API pages."""
    return sorted({*globals(), *__all__})
