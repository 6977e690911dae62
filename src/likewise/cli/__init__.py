"""The command line: ``likewise train``, ``evaluate``, ``embed``, …; the only place where strings become objects."""

from likewise.cli.app import main
from likewise.cli.commands import COMMANDS, Command

__all__ = ["COMMANDS", "Command", "main"]
