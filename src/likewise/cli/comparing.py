"""``likewise leaderboard`` and ``likewise compare``: which method is better, if that can be said."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

from likewise.app import UserError, open_run
from likewise.cli.arguments import Arguments
from likewise.cli.screen import bold, paragraph, width
from likewise.cli.study import FILE
from likewise.cli.study_table import view_study
from likewise.data import atomic_write
from likewise.protocols import (
    Difference,
    NoPairs,
    Result,
    Unfair,
    compare_all,
    comparison,
    data_of,
    draw_improvements,
    entries_of,
    papers_versus_reality,
    rank,
)
from likewise.train import Run


def leaderboard(words: Sequence[str]) -> int:
    """Rank the methods of studies and runs, unless that would be unfair.

    Examples:
        >>> leaderboard(["nowhere"])
        Traceback (most recent call last):
        likewise.app.errors.UserError: nowhere must be the folder of a study or of a run, but it is neither
    """
    options = _options("leaderboard", "Rank methods by their means over seeds, unless that would be unfair.")
    options.add_argument(
        "--papers",
        metavar="DATA",
        help="beside what papers claim and others measured on it: CUB200, Cars196, SOP, InShop",
    )
    options.add_argument("--by", metavar="COLUMN", nargs="+", default=["method"], help="what tells the lines apart")
    given = options.parse_args(words)
    found = _found(given)
    try:
        print(rank(found, given.metric, by=given.by, allow_unfair=given.allow_unfair).text(width()))
    except Unfair as unfair:
        return _refused(unfair)
    except ValueError as error:
        raise UserError(str(error)) from error
    if given.papers is not None:
        _beside_papers(given, found)
    return 0


def compare(words: Sequence[str]) -> int:
    """Compare methods pair by pair over the same seeds, folds and settings.

    Examples:
        >>> compare(["nowhere"])
        Traceback (most recent call last):
        likewise.app.errors.UserError: nowhere must be the folder of a study or of a run, but it is neither
    """
    options = _options("compare", "Say of every two methods which is better, or that it cannot be told.")
    options.add_argument("--methods", metavar="NAME", nargs="+", help="only these (default: all)")
    options.add_argument("--holm", action="store_true", help="ask more of each where there are many comparisons")
    given = options.parse_args(words)
    everything = _found(given)
    both = list(zip(everything, (row for row, _ in entries_of(everything)), strict=True))
    names = {str(row["method"]) for _, row in both}
    for name in given.methods or ():
        if name not in names:
            raise UserError(f"there is no method {name}: there are {', '.join(sorted(names))}")
    names &= set(given.methods or names)
    if len(names) < 2:
        raise UserError(f"there must be two methods to compare, but there is only {min(names)}")
    found = [each for each, row in both if row["method"] in names]  # what is left out makes nothing unfair
    rows = [row for _, row in both if row["method"] in names]
    try:
        differences: Sequence[Difference] = rank(found, given.metric, allow_unfair=True).differences
        compared = compare_all(rows, given.metric, correct="holm" if given.holm else "none")
    except (NoPairs, ValueError) as error:
        raise UserError(str(error)) from error
    unfair = [each for each in differences if each.severity == "unfair"]
    if unfair and not given.allow_unfair:
        return _refused(Unfair(unfair))
    if unfair:
        print(bold("unfair: " + "; ".join(map(str, unfair))))
    print("\n".join(paragraph(each) for each in compared.sentences()))
    if len(names) > 2:
        print(paragraph(compared.note))
    return 0


def _beside_papers(given: Namespace, found: Sequence[Result | Run]) -> None:
    """Improvements over contrastive and triplet: as papers claim them, as others measured them, and these here."""
    rows = [row for row, _ in entries_of(found)]
    try:
        series = papers_versus_reality(rows, data=data_of(given.papers), metric=given.metric)
    except ValueError as error:
        raise UserError(str(error)) from error
    print(bold("\npapers versus reality"))
    print(comparison(series))
    figure = given.places[0] / "papers-versus-reality.svg"
    with atomic_write(figure) as part:
        part.write_bytes(draw_improvements(series))
    print(figure)


def _options(command: str, description: str) -> Arguments:
    options = Arguments(command, description)
    options.add_argument("places", metavar="FOLDER", nargs="+", type=Path, help="studies, or runs")
    options.add_argument(
        "--metric", default="test MAP@R", help="a column (default: test MAP@R; val MAP@R, test R@1, …)"
    )
    options.add_argument("--allow-unfair", action="store_true", help="also what differs in more than the method")
    return options


def _found(given: Namespace) -> list[Result | Run]:
    found: list[Result | Run] = []
    for place in given.places:
        if (place / FILE).exists():
            with view_study(place) as study:
                found += [result for result in study.results() if result.status == "done"]
        elif (place / "run.yaml").exists():
            found.append(open_run(place))
        else:
            raise UserError(f"{place} must be the folder of a study or of a run, but it is neither")
    if not found:
        raise UserError("nothing is done yet: likewise tournament runs what is missing")
    return found


def _refused(unfair: Unfair) -> int:
    print(bold("not ranked, because it would be unfair:"))
    for each in unfair.differences:
        print(paragraph(f"{each}. {each.why}", indent=2))
    print("--allow-unfair ranks all the same, and says so in the table")
    return 1
