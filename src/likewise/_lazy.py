"""Lazy packages: names that are imported on first use, so that importing the package needs the standard library only."""

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any


def lazy_names(package: str, places: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The ``__getattr__`` and the ``__dir__`` of a package.

    Args:
        package: the package's name.
        places: by module, relative to the package, its names, separated by spaces.

    Examples:
        >>> find, listing = lazy_names("json", {"decoder": "JSONDecodeError JSONDecoder"})
        >>> find("JSONDecodeError").__module__, "loads" in listing()
        ('json.decoder', True)
    """
    modules = {name: module for module, names in places.items() for name in names.split()}

    def find(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(f"{package}.{modules[name]}"), name)

    def listing() -> list[str]:
        module = sys.modules[package]
        return sorted({*vars(module), *module.__all__})

    return find, listing
