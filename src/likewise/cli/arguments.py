"""The options of the small commands."""

from __future__ import annotations

import argparse
from typing import NoReturn

from likewise.app import UserError, nearest
from likewise.cli.commands import COMMANDS

QUIET, QUIET_HELP = "--quiet", "hide progress"


class Arguments(argparse.ArgumentParser):
    """argparse's parser, which raises `UserError` and suggests similar option names.

    Examples:
        >>> options = Arguments("report", "Write a report.")
        >>> _ = options.add_argument("--out")
        >>> options.parse_args(["--uot", "a.html"])
        Traceback (most recent call last):
        likewise.app.errors.UserError: there is no option --uot; did you mean --out?
    """

    def __init__(self, command: str, description: str) -> None:
        super().__init__(prog=f"likewise {command}", description=description, allow_abbrev=False)
        name = command.partition(" ")[0]
        if name in COMMANDS and COMMANDS[name].shows_progress:
            self.add_argument(QUIET, action="store_true", help=QUIET_HELP)  # `likewise.cli.app` obeys it

    def error(self, message: str) -> NoReturn:
        """Raise a `UserError`."""
        strange = message.removeprefix("unrecognized arguments: ")
        if strange != message:
            word = strange.split()[0]
            known = [each for action in self._actions for each in action.option_strings]
            what = "option" if word.startswith("-") else "place for"
            message = f"there is no {what} {word}{nearest(word, known)}"
        raise UserError(message)
