"""``likewise evaluate`` and ``likewise report``: measure a trained model."""

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
    """Measure a run's model on its validation classes, and with ``--test`` on the test set.

    Examples:
        >>> run(["nowhere"])
        Traceback (most recent call last):
        likewise.app.errors.UserError: nowhere must be the folder of a run, but it has no run.yaml
    """
    options = Arguments("evaluate", "Measure a run's model on unseen classes, with 95% intervals.")
    options.add_argument("run", metavar="RUN", type=Path, help="the folder of a run; with --table, any model")
    options.add_argument(
        "--table",
        metavar="FILE",
        type=Path,
        help="measure on a table of images instead (path, label; role: query or gallery; camera, for re-identification)",
    )
    options.add_argument("--split", metavar="NAME", help="with --table: only rows of this split")
    add_table_options(options)
    options.add_argument(
        "--camera-column", metavar="NAME", default="camera", help="with --table: the camera column (camera)"
    )
    add_transform_option(options)
    options.add_argument("--test", action="store_true", help="open the sealed test set; the opening is recorded")
    options.add_argument("--why", metavar="TEXT", help="the reason for opening it, for the record")
    options.add_argument("--model", metavar="NAME", help="best (default), last (end of training), or a model file")
    _add_metric_options(options)
    _add_allow(options)
    given = options.parse_args(words)
    if given.why is not None and not given.test:
        options.error("--why requires --test: it is the reason for opening the test set")
    if given.table is not None:
        return _evaluate_table(options, given)
    for name in ("split", "root", "path_column", "label_column", "camera_column", "transform"):
        if getattr(given, name) != options.get_default(name):
            options.error(f"--{name.replace('_', '-')} requires --table")
    begun = open_run(given.run)
    if not begun.finished:
        note("the training of this run has not ended")
    test = given.why or "likewise evaluate --test" if given.test else None
    found = evaluate(begun, model=given.model, test=test, ks=given.ks, clusterings=given.clusters, allow=given.allow)
    for part in found.parts:
        print(bold(_describe(part, found.model)))
        print(_table(found.scores[part.name]))
    if given.clusters:
        print(f"NMI, AMI and F1: mean of k-means run {times(given.clusters)}, with the interval over seeds")
    if given.test:
        print(f"the test set has been opened {times(found.openings)}: {begun.folder / 'openings.jsonl'}")
    print(found.report)
    suggest("export", str(given.run), "-o", f"{begun.folder.name}-export")
    return 0


def _evaluate_table(options: Arguments, given: Namespace) -> int:
    if given.test or given.model is not None:
        options.error("--table cannot be combined with --test or --model: the model is the first argument")
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
        print("pairs of the same class and camera are excluded: R@k is the rank-k accuracy of re-identification")
    suggest("calibrate", str(given.run), str(given.table))
    return 0


def _describe(part: Part, model: Path) -> str:
    """Describe what was measured."""
    classes, gallery = len(set(part.labels.tolist())), ""
    if part.is_query is not None:
        gallery = f", {len(part.queries):,} queries in a gallery of {len(part.references):,}"
    return f"{part.name}: {len(part.labels):,} images of {classes:,} classes{gallery}, {model}"


def write_report(words: Sequence[str]) -> int:
    """Rewrite a run's report.

    Examples:
        >>> write_report(["nowhere"])
        Traceback (most recent call last):
        likewise.app.errors.UserError: nowhere must be the folder of a run, but it has no run.yaml
    """
    options = Arguments(
        "report",
        "Rewrite a run's report from its records and its validation classes. Only the report that "
        "`likewise evaluate --test` writes shows the test classes in full.",
    )
    options.add_argument("run", metavar="RUN", type=Path, help="the folder of a run")
    options.add_argument("-o", "--out", metavar="FILE", type=Path, help="output file (default: RUN/report.html)")
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
        help="values of k for recall@k (default: --train.ks, or those of the data set)",
    )
    options.add_argument(
        "--clusters",
        metavar="RUNS",
        nargs="?",
        type=int,
        const=3,
        default=0,
        help="also measure NMI, AMI and F1, averaged over N runs of k-means (3); slow",
    )


def _add_allow(options: Arguments) -> None:
    options.add_argument(
        "--allow",
        metavar="PACKAGE",
        action="append",
        default=[],
        help="import this package if the run's data set is a class of it",
    )


def _table(found: Mapping[str, Interval]) -> str:
    """The table of metrics for a terminal.

    Examples:
        >>> print(_table({"R@1": Interval(0.5, 0.25, 0.75, 0.95, 10)}))
               percent   95% interval
          R@1  50.00    25.00 to 75.00
    """
    rows = [("", "percent", "95% interval")]
    for name, value in found.items():
        between = f"{100 * value.low:.2f} to {100 * value.high:.2f}" if isfinite(value.low) else "none"
        rows.append((name, f"{100 * value.mean:.2f}", between))
    return columns(rows)
