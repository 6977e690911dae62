"""The command line: ``likewise train``, ``evaluate``, ``embed``, …; the only place that turns strings into objects."""

from __future__ import annotations

from typing import TYPE_CHECKING

from likewise._lazy import lazy_names

if TYPE_CHECKING:
    from likewise.cli.app import main
    from likewise.cli.commands import COMMANDS, Command

__all__ = ["COMMANDS", "Command", "main"]

_PLACES = {
    "app": "main",
    "commands": "COMMANDS Command",
}

# lazy, so that listings and help start fast
__getattr__, __dir__ = lazy_names(__name__, _PLACES)
