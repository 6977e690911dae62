"""``likewise evaluate`` and ``likewise report``: what a trained model is worth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from likewise.app import evaluate, open_run, report
from likewise.cli.arguments import Arguments
from likewise.cli.screen import bold, columns, note
from likewise.metrics import Interval
from likewise.text import times


def run(words: Sequence[str]) -> int:
    """Measure a run's model on its validation classes, and on the test set if that is to be opened.

    Examples:
        >>> run(["nowhere"])
        Traceback (most recent call last):
        likewise.app.errors.UserError: nowhere must be the folder of a run, but it has no run.yaml
    """
    options = Arguments("evaluate", "Measure a run's model on classes that it has not seen, with 95% intervals.")
    options.add_argument("run", metavar="RUN", type=Path, help="the folder of a run")
    options.add_argument("--test", action="store_true", help="open the sealed test set, which is written down")
    options.add_argument("--why", metavar="TEXT", help="why it is opened, for the record")
    options.add_argument(
        "--model", metavar="NAME", help="best (default), last (at the end of training), or a file of a model"
    )
    _add_allow(options)
    given = options.parse_args(words)
    if given.why is not None and not given.test:
        options.error("--why is for --test: it says why the test set is opened")
    begun = open_run(given.run)
    if not begun.finished:
        note("this training has not ended")
    test = given.why or "likewise evaluate --test" if given.test else None
    found = evaluate(begun, model=given.model, test=test, allow=given.allow)
    for part in found.parts:
        classes = len(set(part.labels.tolist()))
        print(bold(f"{part.name}: {len(part.labels):,} images of {classes:,} classes, {found.model}"))
        print(_table(found.scores[part.name]))
    if given.test:
        print(f"the test set was opened {times(found.openings)} so far: {begun.folder / 'openings.jsonl'}")
    print(found.report)
    return 0


def write_report(words: Sequence[str]) -> int:
    """Write a run's report again.

    Examples:
        >>> write_report(["nowhere"])
        Traceback (most recent call last):
        likewise.app.errors.UserError: nowhere must be the folder of a run, but it has no run.yaml
    """
    options = Arguments(
        "report",
        "Write a run's report again, from its records and its validation part. The test part is shown in full in the "
        "report that `likewise evaluate --test` writes.",
    )
    options.add_argument("run", metavar="RUN", type=Path, help="the folder of a run")
    options.add_argument("-o", "--out", metavar="FILE", type=Path, help="where to (default: RUN/report.html)")
    _add_allow(options)
    given = options.parse_args(words)
    print(report(given.run, given.out, allow=given.allow))
    return 0


def _add_allow(options: Arguments) -> None:
    options.add_argument(
        "--allow",
        metavar="PACKAGE",
        action="append",
        default=[],
        help="import this package if the run's data are its class",
    )


def _table(found: Mapping[str, Interval]) -> str:
    """The metrics of a part, for a terminal.

    Examples:
        >>> print(_table({"R@1": Interval(0.5, 0.25, 0.75, 0.95, 10)}))
               per cent  95% interval
          R@1  50.00     25.00 to 75.00
    """
    rows = [("", "per cent", "95% interval")]
    for name, value in found.items():
        rows.append((name, f"{100 * value.mean:.2f}", f"{100 * value.low:.2f} to {100 * value.high:.2f}"))
    return columns(rows)
