"""The outcome of a study: leaderboards, comparisons, the table of results and the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import yaml

from likewise.app.conditions import read_conditions
from likewise.app.study_file import StudyFile
from likewise.app.study_page import write_study_page
from likewise.app.tables import write_rows
from likewise.files import write_text
from likewise.protocols import (
    Comparisons,
    Difference,
    Leaderboard,
    NoPairs,
    Result,
    Search,
    Study,
    Tournament,
    Tried,
    Unfair,
    at_point,
    best,
    compare_all,
    concatenated,
    history,
    leaderboards,
    table,
    tournament,
)

BEST_FILE = "best.yaml"
"""The best configuration of a search, in the folder of its study."""


@dataclass(frozen=True)
class StudyReport:
    """The outcome of a study.

    Args:
        study: the content of the study.
        folder: with the table ``results.csv``, the page ``report.html`` and the runs.
        counts: number of trials in each state: missing, done, failed, pruned, canceled.
        results: of the trials that ended, and of the folds of a protocol together.
        leaderboards: by the name of their setting; empty if nothing is done or the ranking is unfair.
        unfair: differences for which the study was not ranked.
        tournament: ranks over settings and seeds; ``None`` with one method.
        comparisons: methods pair by pair; ``None`` with one method, or without pairs.
        no_pairs: why there are no comparisons; empty if there are.
        tried: the settings of a search, in their order.
        best: the best of them; ``None`` if none could be trained.
        page: ``report.html``; ``None`` if it was not written.
        is_concluded: whether methods were ranked, or the best setting was chosen; false for a shard and for a study
            that reached its time limit.

    Examples:
        >>> study = StudyFile("one", methods={"circle": {"loss": "CircleLoss"}}, base={"data": "Glyphs"})
        >>> StudyReport(study, Path("studies/one"), {"missing": 1}).is_finished
        False
    """

    study: StudyFile
    folder: Path
    counts: Mapping[str, int]
    results: tuple[Result, ...] = ()
    leaderboards: Mapping[str, Leaderboard] = field(default_factory=dict)
    unfair: tuple[Difference, ...] = ()
    tournament: Tournament | None = None
    comparisons: Comparisons | None = None
    no_pairs: str = ""
    tried: tuple[Tried, ...] = ()
    best: Tried | None = None
    page: Path | None = None
    is_concluded: bool = False

    @property
    def is_finished(self) -> bool:
        """Whether no trial is missing."""
        return not self.counts["missing"]

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The tidy table of results, a dict for each of them; ``results.csv`` has the same."""
        return [dict(row) for row in table(list(self.results))]


def conclude_study(study: StudyFile, folder: Path, trials: Study, *, allow_unfair: bool = False) -> StudyReport:
    """Rank the methods of a study, and write its table and its page.

    Args:
        study: the content of the study.
        folder: the folder of the study.
        trials: its table.
        allow_unfair: rank methods that differ in more than the method.

    Examples:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> study = StudyFile("one", methods={"circle": {"loss": "CircleLoss"}}, base={"data": "Glyphs"})
        >>> conclude_study(study, folder, Study(folder / "study.db")).results
        ()
    """
    results, folds = trials.results(), len(study.chosen_protocol().folds)
    done = [result for result in results if result.status == "done" and result.test]
    joined = concatenated(done, folder, folds) if folds > 1 else []
    everything = [*results, *joined]
    write_results(folder, table(everything))
    if not done:
        return StudyReport(study, folder, trials.counts(), tuple(everything), is_concluded=True)
    boards, unfair = _rank(study, done, joined, allow_unfair)
    ranks, comparisons, no_pairs = (None, None, "") if unfair else _compare(study, done)
    page = write_study_page(
        folder,
        study,
        everything,
        boards,
        unfair=unfair,
        ranks=ranks,
        compared=comparisons,
        planned=study.planned(),
    )
    return StudyReport(
        study,
        folder,
        trials.counts(),
        tuple(everything),
        leaderboards=boards,
        unfair=unfair,
        tournament=ranks,
        comparisons=comparisons,
        no_pairs=no_pairs,
        page=page,
        is_concluded=True,
    )


def _rank(
    study: StudyFile, done: Sequence[Result], joined: Sequence[Result], allow_unfair: bool
) -> tuple[dict[str, Leaderboard], tuple[Difference, ...]]:
    """Leaderboards by the name of their setting, or the differences that make them unfair."""
    within, boards = study.settings(), dict[str, Leaderboard]()
    try:
        for title, some in {"": done, "concatenated": joined}.items():
            rows, conditions = [each.row() for each in some], [read_conditions(each) for each in some]
            tables = leaderboards(
                rows, f"test {study.metric}", within=within, conditions=conditions, allow_unfair=allow_unfair
            )
            for setting, board in tables.items():
                name = ", ".join(f"{label} {value}" for label, value in zip(within, setting, strict=True))
                boards[", ".join(filter(None, [name, title]))] = board
    except Unfair as unfair:
        return {}, unfair.differences
    return boards, ()


def _compare(study: StudyFile, done: Sequence[Result]) -> tuple[Tournament | None, Comparisons | None, str]:
    if len(study.methods) < 2:
        return None, None, ""
    rows, metric = [result.row() for result in done], f"test {study.metric}"
    ranks = tournament(rows, metric, study.settings())
    try:
        return ranks, compare_all(rows, metric), ""
    except NoPairs as error:
        return ranks, None, str(error)


def conclude_search(study: StudyFile, folder: Path, trials: Study, search: Search) -> StudyReport:
    """Write the table of a search, and its best configuration to ``best.yaml``.

    Args:
        study: the content of the study.
        folder: the folder of the study.
        trials: its table.
        search: the search.

    Examples:
        >>> import tempfile
        >>> from likewise.app.search_space import make_search
        >>> folder = Path(tempfile.mkdtemp())
        >>> methods = {"circle": {"loss": "CircleLoss"}}
        >>> study = StudyFile("one", methods=methods, base={"data": "Glyphs"}, search={"how": "random"})
        >>> conclude_search(study, folder, Study(folder / "study.db"), make_search(study)).best is None
        True
    """
    results, tried = trials.results(), tuple(history(search, trials))
    write_results(folder, table(results))
    winner = best(tried)
    if winner is not None:
        text = yaml.safe_dump(at_point(dict(search.config), winner.point), sort_keys=False, allow_unicode=True)
        write_text(folder / BEST_FILE, text)
    return StudyReport(study, folder, trials.counts(), tuple(results), tried=tried, best=winner, is_concluded=True)


def write_results(folder: Path, rows: Sequence[Mapping[str, object]]) -> None:
    """Write the tidy table as ``results.csv``, and as ``results.parquet`` if pyarrow is installed.

    Examples:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> write_results(folder, [{"method": "circle", "test R@1": 0.5}])
        >>> (folder / "results.csv").read_text().splitlines()
        ['method,test R@1', 'circle,0.5']
    """
    columns = list(rows[0]) if rows else []
    write_rows(folder / "results.csv", rows, columns)
    if rows and find_spec("pyarrow") is not None:
        write_rows(folder / "results.parquet", rows, columns)
