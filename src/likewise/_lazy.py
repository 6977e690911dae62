"""Packages that import a name on first use, so that commands that list or help answer at once."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any


def lazy_names(package: str, places: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of a package.

    Args:
        package: its name.
        places: the module of each name, inside the package.

    Examples:
        >>> get, names = lazy_names("likewise.cli", {"Command": "commands"})
        >>> get("Command").__name__, names()
        ('Command', ['Command'])
    """

    def get(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(f"{package}.{places[name]}"), name)

    return get, lambda: sorted(places)
