"""``likewise evaluate`` and ``likewise report``: what a trained model is worth."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from likewise.cli.arguments import Arguments
from likewise.cli.measured import Opening, model_file, parts_of, scores, table, write
from likewise.cli.pieces import this_machine
from likewise.cli.screen import bold, note
from likewise.cli.train import config_of, open_run


def run(words: Sequence[str]) -> int:
    """Measure a run's model on its validation classes, and on the test set if that is to be opened.

    Examples:
        >>> run(["nowhere"])
        Traceback (most recent call last):
        likewise.cli.mistakes.Mistake: nowhere must be the folder of a run, but it has no run.yaml
    """
    options = Arguments("evaluate", "Measure a run's model on classes that it has not seen, with 95% intervals.")
    options.add_argument("run", metavar="RUN", type=Path, help="the folder of a run")
    options.add_argument("--test", action="store_true", help="open the sealed test set, which is written down")
    options.add_argument("--why", metavar="TEXT", help="why it is opened, for the record")
    options.add_argument(
        "--model", metavar="NAME", help="best (default), last (at the end of training), or a file of a model"
    )
    given = options.parse_args(words)
    if given.why is not None and not given.test:
        options.error("--why is for --test: it says why the test set is opened")
    begun = open_run(given.run)
    config, machine = config_of(begun), this_machine()
    file = model_file(begun, given.model)
    if not begun.finished:
        note("this training has not ended")
    test = Opening(given.why or "likewise evaluate --test") if given.test else None
    parts = parts_of(begun, config, machine, model=given.model, test=test)
    if not parts:
        options.error(f"{given.run} has no validation part to measure on; --test opens the test set")
    for part in parts:
        found = scores(part)
        plain = {name: value.mean for name, value in found.items()}
        begun.record_evaluation("val" if part.name == "validation" else part.name, plain, model=file.stem)
        classes = len(set(part.labels.tolist()))
        print(bold(f"{part.name}: {len(part.labels):,} images of {classes:,} classes, {file}"))
        print(table(found))
    if test is not None:
        print(f"the test set was opened {_times(len(begun.openings()))} so far: {begun.folder / 'openings.jsonl'}")
    print(write(begun, parts))
    return 0


def report(words: Sequence[str]) -> int:
    """Write a run's report again.

    Examples:
        >>> report(["nowhere"])
        Traceback (most recent call last):
        likewise.cli.mistakes.Mistake: nowhere must be the folder of a run, but it has no run.yaml
    """
    options = Arguments(
        "report",
        "Write a run's report again, from its records and its validation part. The test part is shown in full in the "
        "report that `likewise evaluate --test` writes.",
    )
    options.add_argument("run", metavar="RUN", type=Path, help="the folder of a run")
    options.add_argument("-o", "--out", metavar="FILE", type=Path, help="where to (default: RUN/report.html)")
    given = options.parse_args(words)
    begun = open_run(given.run)
    parts = parts_of(begun, config_of(begun), this_machine(), test=None)
    print(write(begun, parts, given.out))
    return 0


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count} times")
