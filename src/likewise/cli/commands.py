"""The table of commands."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Command:
    """A command of the command line.

    Args:
        group: the heading that lists it.
        help: a one-line description.
        module: the module, imported only when the command runs.
        function: the function, called with the arguments after the command; returns an exit code.
        extra: the extra of likewise that it requires.

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
        """Whether it accepts ``--quiet``; commands without an extra finish immediately."""
        return self.extra is not None


TRY, WORK, COMPARE, LOOK = "try it", "train and use", "compare fairly", "reference"

COMMANDS = {
    "demo": Command(TRY, "see it work in two minutes, without data or a GPU", "likewise.cli.demo"),
    "doctor": Command(
        TRY, "check what is installed and how to install what is missing", "likewise.cli.doctor", extra=None
    ),
    "init": Command(WORK, "write a commented configuration for a folder of pictures", "likewise.cli.init"),
    "train": Command(WORK, "train an embedding, select it on validation, write a report", "likewise.cli.train"),
    "evaluate": Command(WORK, "measure a run's model; --test opens the sealed test set", "likewise.cli.evaluate"),
    "embed": Command(WORK, "turn a folder or table of images into vectors", "likewise.cli.embed"),
    "index": Command(WORK, "build an index of images for similarity search", "likewise.cli.index"),
    "search": Command(WORK, "find look-alikes, near-duplicates and clusters in an index", "likewise.cli.search"),
    "classify": Command(WORK, "classify images by their nearest labeled neighbors", "likewise.cli.classify"),
    "serve": Command(WORK, "serve a search page for an index or a folder of pictures", "likewise.cli.serve"),
    "verify": Command(WORK, "estimate the probability that two images show the same thing", "likewise.cli.verify"),
    "calibrate": Command(WORK, "fit these probabilities to labeled images, for verify", "likewise.cli.calibrate"),
    "export": Command(WORK, "export a model: ONNX, torch.export or a model hub folder", "likewise.cli.export"),
    "report": Command(WORK, "rewrite a run's report", "likewise.cli.evaluate", "write_report"),
    "compare": Command(
        COMPARE, "test which of two methods is better, if distinguishable", "likewise.cli.comparing", "compare"
    ),
    "tune": Command(COMPARE, "search hyper-parameters on validation classes", "likewise.cli.tuning", "tune"),
    "repeat": Command(
        COMPARE, "train one method with several seeds: mean and interval", "likewise.cli.tuning", "repeat"
    ),
    "tournament": Command(
        COMPARE, "train methods x settings x seeds, resumable, and rank them", "likewise.cli.tournament"
    ),
    "leaderboard": Command(
        COMPARE,
        "rank the methods of studies and runs if the comparison is fair",
        "likewise.cli.comparing",
        "leaderboard",
    ),
    "study": Command(COMPARE, "run a planned study; pack, merge and export it", "likewise.cli.study_commands"),
    "lens": Command(LOOK, "see what a loss does: drag points, watch weights and forces", "likewise.cli.lens"),
    "losses": Command(
        LOOK, "list the losses; with a name: formula, options and source", "likewise.cli.listings", "losses", extra=None
    ),
    "trunks": Command(LOOK, "list the networks and their weights", "likewise.cli.listings", "trunks", extra=None),
    "datasets": Command(
        LOOK, "list the data sets and how to get them", "likewise.cli.listings", "datasets", extra=None
    ),
    "recipes": Command(
        LOOK, "list the set-ups of papers, for --config NAME", "likewise.cli.listings", "recipes", extra=None
    ),
}
"""Every command by its name."""
