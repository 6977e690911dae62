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
        extra: the extra of likewise without which it cannot start.

    Examples:
        >>> COMMANDS["doctor"].module
        'likewise.cli.doctor'
    """

    group: str
    help: str
    module: str
    function: str = "run"
    extra: str | None = "train"

    @property
    def shows_progress(self) -> bool:
        """Whether it takes ``--quiet``; commands that need no extra answer at once."""
        return self.extra is not None


TRY, WORK, COMPARE, LOOK = "try it", "train and use", "compare fairly", "look up"

COMMANDS = {
    "demo": Command(TRY, "see it work in two minutes: no data, no GPU needed", "likewise.cli.demo"),
    "doctor": Command(TRY, "what is installed, what is missing and how to get it", "likewise.cli.doctor", extra=None),
    "init": Command(WORK, "write a commented configuration for a folder of pictures", "likewise.cli.init"),
    "train": Command(WORK, "train an embedding, chosen on validation classes, with a report", "likewise.cli.train"),
    "evaluate": Command(WORK, "measure a run's model; --test opens the sealed test set", "likewise.cli.evaluate"),
    "embed": Command(WORK, "turn a folder or table of images into vectors", "likewise.cli.embed"),
    "index": Command(WORK, "make an index of images in which look-alikes are found", "likewise.cli.index"),
    "search": Command(WORK, "find look-alikes, near-duplicates and clusters in an index", "likewise.cli.search"),
    "classify": Command(WORK, "name the class of images, by their nearest labeled neighbors", "likewise.cli.classify"),
    "serve": Command(WORK, "a search page for an index, or for a folder of pictures", "likewise.cli.serve"),
    "verify": Command(WORK, "are two images of the same thing? with a probability", "likewise.cli.verify"),
    "calibrate": Command(WORK, "learn that from labeled images, and keep it with the model", "likewise.cli.calibrate"),
    "export": Command(WORK, "a model for other programs: ONNX, torch.export, a hub's folder", "likewise.cli.export"),
    "report": Command(WORK, "write a run's report again", "likewise.cli.evaluate", "write_report"),
    "compare": Command(
        COMPARE, "which of two methods is better, if they are distinguishable", "likewise.cli.comparing", "compare"
    ),
    "tune": Command(COMPARE, "search hyper-parameters on validation classes", "likewise.cli.tuning", "tune"),
    "repeat": Command(COMPARE, "one method with several seeds: mean and interval", "likewise.cli.tuning", "repeat"),
    "tournament": Command(
        COMPARE, "methods x settings x seeds, resumed at will, ranked at the end", "likewise.cli.tournament"
    ),
    "leaderboard": Command(
        COMPARE, "rank the methods of studies and runs, unless that is unfair", "likewise.cli.comparing", "leaderboard"
    ),
    "study": Command(
        COMPARE, "run a planned study, pack it for another machine, merge, export", "likewise.cli.study_commands"
    ),
    "lens": Command(LOOK, "what a loss does: a page with points to drag, weights and forces", "likewise.cli.lens"),
    "losses": Command(
        LOOK, "every loss; with a name: its formula, options and source", "likewise.cli.listings", "losses", extra=None
    ),
    "trunks": Command(LOOK, "every network and its weights", "likewise.cli.listings", "trunks", extra=None),
    "datasets": Command(LOOK, "every data set and how to get it", "likewise.cli.listings", "datasets", extra=None),
    "recipes": Command(
        LOOK, "the set-ups of papers, for --config NAME", "likewise.cli.listings", "recipes", extra=None
    ),
}
"""Every command by its name."""
