"""``likewise evaluate`` and ``likewise report``: what a trained model is worth."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping, Sequence
from math import isfinite
from pathlib import Path

from likewise.app import evaluate, evaluate_table, open_run, report
from likewise.cli.arguments import Arguments
from likewise.cli.image_options import add_table_options, add_transform_option
from likewise.cli.screen import bold, columns, note, print_broken, suggest
from likewise.metrics import Interval
from likewise.report import Part
from likewise.text import times
from likewise.train import RECALLS


def run(words: Sequence[str]) -> int:
    """Measure a run's model on its validation classes, and on the test set if that is to be opened.

    Examples:
        >>> run(["nowhere"])
        Traceback (most recent call last):
        likewise.app.errors.UserError: nowhere must be the folder of a run, but it has no run.yaml
    """
    options = Arguments("evaluate", "Measure a run's model on classes that it has not seen, with 95% intervals.")
    options.add_argument("run", metavar="RUN", type=Path, help="the folder of a run; with --table any model")
    options.add_argument(
        "--table",
        metavar="FILE",
        type=Path,
        help="measure on a table of images instead (path, label; role: query or gallery; camera, for re-identification)",
    )
    options.add_argument("--split", metavar="NAME", help="of the table: only rows of this split")
    add_table_options(options)
    options.add_argument("--camera-column", metavar="NAME", default="camera", help="its column of cameras (camera)")
    add_transform_option(options)
    options.add_argument("--test", action="store_true", help="open the sealed test set, which is written down")
    options.add_argument("--why", metavar="TEXT", help="why it is opened, for the record")
    options.add_argument(
        "--model", metavar="NAME", help="best (default), last (at the end of training), or a file of a model"
    )
    _add_metric_options(options)
    _add_allow(options)
    given = options.parse_args(words)
    if given.why is not None and not given.test:
        options.error("--why is for --test: it says why the test set is opened")
    if given.table is not None:
        return _evaluate_table(options, given)
    for name in ("split", "root", "path_column", "label_column", "camera_column", "transform"):
        if getattr(given, name) != options.get_default(name):
            options.error(f"--{name.replace('_', '-')} is for --table")
    begun = open_run(given.run)
    if not begun.finished:
        note("this training has not ended")
    test = given.why or "likewise evaluate --test" if given.test else None
    found = evaluate(begun, model=given.model, test=test, ks=given.ks, clusterings=given.clusters, allow=given.allow)
    for part in found.parts:
        print(bold(_describe(part, found.model)))
        print(_table(found.scores[part.name]))
    if given.clusters:
        print(f"NMI, AMI and F1: the mean of {times(given.clusters)} k-means, with the interval over its seeds")
    if given.test:
        print(f"the test set was opened {times(found.openings)} so far: {begun.folder / 'openings.jsonl'}")
    print(found.report)
    suggest("export", str(given.run), "-o", f"{begun.folder.name}-export")
    return 0


def _evaluate_table(options: Arguments, given: Namespace) -> int:
    if given.test or given.model is not None:
        options.error("--table must be given without --test and --model: the model is the first argument")
    named = {"path": given.path_column, "label": given.label_column, "camera": given.camera_column}
    found = evaluate_table(
        str(given.run),
        given.table,
        split=given.split,
        root=given.root,
        columns={column: name for column, name in named.items() if column != name},
        ks=RECALLS if given.ks is None else given.ks,
        clusterings=given.clusters,
        transform=given.transform,
    )
    print_broken(found.broken)
    part = found.part
    print(bold(_describe(part, given.run)))
    print(_table(found.scores))
    if part.cameras is not None:
        print("images of one class by one camera do not meet: R@k is rank k of re-identification")
    suggest("calibrate", str(given.run), str(given.table))
    return 0


def _describe(part: Part, model: Path) -> str:
    """What was measured of a model, in words."""
    classes, gallery = len(set(part.labels.tolist())), ""
    if part.is_query is not None:
        gallery = f", {len(part.queries):,} queries in a gallery of {len(part.references):,}"
    return f"{part.name}: {len(part.labels):,} images of {classes:,} classes{gallery}, {model}"


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
    _add_metric_options(options)
    _add_allow(options)
    given = options.parse_args(words)
    print(report(given.run, given.out, ks=given.ks, clusterings=given.clusters, allow=given.allow))
    suggest("evaluate", str(given.run))
    return 0


def _add_metric_options(options: Arguments) -> None:
    options.add_argument(
        "--ks",
        metavar="K",
        nargs="+",
        type=int,
        help="the k of recall at k (default: --train.ks, or those of the data set)",
    )
    options.add_argument(
        "--clusters",
        metavar="RUNS",
        nargs="?",
        type=int,
        const=3,
        default=0,
        help="also NMI, AMI and F1, as means of so many runs of k-means (3), which takes a while",
    )


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
        between = f"{100 * value.low:.2f} to {100 * value.high:.2f}" if isfinite(value.low) else "none"
        rows.append((name, f"{100 * value.mean:.2f}", between))
    return columns(rows)
