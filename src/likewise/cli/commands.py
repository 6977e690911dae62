"""The table of commands."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Command:
    """A command of the command line.

    Args:
        group: under which heading it stands.
        help: what it does, on one line.
        module: where it is, imported only when it is asked for.
        function: what is called with the words after the command; returns an exit code.

    Examples:
        >>> COMMANDS["doctor"].module
        'likewise.cli.doctor'
    """

    group: str
    help: str
    module: str
    function: str = "run"


TRY, WORK, LOOK = "try it", "train and use", "look up"

COMMANDS = {
    "demo": Command(TRY, "see it work in two minutes: no data, no GPU needed", "likewise.cli.demo"),
    "doctor": Command(TRY, "what is installed, what is missing and how to get it", "likewise.cli.doctor"),
    "train": Command(WORK, "train an embedding, choose it on validation classes, write a report", "likewise.cli.train"),
    "evaluate": Command(WORK, "measure a run's model; --test opens the sealed test set", "likewise.cli.evaluate"),
    "embed": Command(WORK, "turn a folder or table of images into vectors", "likewise.cli.embed"),
    "report": Command(WORK, "write a run's report again", "likewise.cli.evaluate", "report"),
    "losses": Command(
        LOOK, "every loss; with a name: its formula, options and source", "likewise.cli.listings", "losses"
    ),
    "trunks": Command(LOOK, "every network and its weights", "likewise.cli.listings", "trunks"),
    "datasets": Command(LOOK, "every data set and how to get it", "likewise.cli.listings", "datasets"),
}
"""Every command by its name."""
