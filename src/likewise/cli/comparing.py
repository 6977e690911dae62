"""``likewise leaderboard`` and ``likewise compare``: rank methods and test which one is better."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from likewise.app import compare as compare_methods
from likewise.app import leaderboard as rank_methods
from likewise.app import leaderboards_by_setting
from likewise.cli.arguments import Arguments
from likewise.cli.screen import bold, paragraph, suggest, width
from likewise.protocols import Unfair


def leaderboard(words: Sequence[str]) -> int:
    """Rank the methods of studies and runs; refuse unfair comparisons.

    Examples:
        >>> leaderboard(["nowhere"])
        Traceback (most recent call last):
        likewise.app.errors.UserError: nowhere must be the folder of a study or of a run, but it is neither
    """
    parser = _make_parser("leaderboard", "Rank methods by their means over seeds; unfair comparisons are refused.")
    parser.add_argument("--by", metavar="COLUMN", nargs="+", help="columns that identify a row (method)")
    options = parser.parse_args(words)
    alone = options.by is None and len(options.folders) == 1 and (options.folders[0] / "study.yaml").exists()
    try:
        if alone:
            return _print_settings(options.folders[0], options.metric, options.allow_unfair)
        board = rank_methods(
            options.folders, metric=options.metric, by=options.by or ["method"], allow_unfair=options.allow_unfair
        )
    except Unfair as unfair:
        return _print_unfair(unfair)
    print(board.text(width()))
    if len(board.places) > 1:
        suggest("compare", *map(str, options.folders))
    return 0


def _print_settings(study: Path, metric: str | None, allow_unfair: bool) -> int:
    """Print a table for each setting of a study."""
    boards = leaderboards_by_setting(study, metric=metric, allow_unfair=allow_unfair)
    for number, (name, board) in enumerate(boards.items()):
        if len(boards) > 1:
            print(bold(f"{chr(10) if number else ''}{name}"))
        print(board.text(width()))
    suggest("compare", str(study))
    return 0


def compare(words: Sequence[str]) -> int:
    """Compare methods pair by pair over the same seeds, folds and settings.

    Examples:
        >>> compare(["nowhere"])
        Traceback (most recent call last):
        likewise.app.errors.UserError: nowhere must be the folder of a study or of a run, but it is neither
    """
    parser = _make_parser(
        "compare", "Test for each pair of methods which is better, or report that they are not distinguishable."
    )
    parser.add_argument("--methods", metavar="NAME", nargs="+", help="only these (default: all)")
    parser.add_argument("--holm", action="store_true", help="correct for many comparisons (Holm 1979)")
    options = parser.parse_args(words)
    try:
        report = compare_methods(
            options.folders,
            methods=options.methods,
            metric=options.metric,
            holm=options.holm,
            allow_unfair=options.allow_unfair,
        )
    except Unfair as unfair:
        return _print_unfair(unfair)
    if report.remark:
        print(paragraph(report.remark))
    if report.unfair:
        print(bold("unfair: " + "; ".join(map(str, report.unfair))))
    print("\n".join(map(paragraph, report.sentences())))
    if len(report.comparisons.names) > 2:
        print(paragraph(report.comparisons.note))
    suggest("leaderboard", *map(str, options.folders))
    return 0


def _make_parser(command: str, description: str) -> Arguments:
    parser = Arguments(command, description)
    parser.add_argument("folders", metavar="FOLDER", nargs="+", type=Path, help="studies, or runs")
    parser.add_argument(
        "--metric",
        help="a column: test MAP@R, val MAP@R, test R@1, … (default: test MAP@R; val MAP@R while a test set is sealed)",
    )
    parser.add_argument(
        "--allow-unfair", action="store_true", help="also rank runs that differ in more than the method"
    )
    return parser


def _print_unfair(unfair: Unfair) -> int:
    print(bold("not ranked, because the comparison would be unfair:"))
    for each in unfair.differences:
        print(paragraph(f"{each}. {each.why}", indent=2))
    print("--allow-unfair ranks them anyway and marks the table")
    return 1
