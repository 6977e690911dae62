"""The command line: ``likewise train``, ``evaluate``, ``embed``, …; the only place where strings become objects."""

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

# commands that list or help answer at once
__getattr__, __dir__ = lazy_names(__name__, _PLACES)
