"""The command line: ``likewise train``, ``evaluate``, ``embed``, …; the only place where strings become objects."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from likewise.cli.app import main
    from likewise.cli.commands import COMMANDS, Command

__all__ = ["COMMANDS", "Command", "main"]

_PLACES = {
    "COMMANDS": "commands",
    "Command": "commands",
    "main": "app",
}


def __getattr__(name: str) -> Any:
    """Import a name when it is used first: commands that list or help answer at once."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_PLACES[name]}"), name)


def __dir__() -> list[str]:
    """The public names and whatever is loaded, for shells and for the API pages."""
    return sorted({*globals(), *__all__})
