"""Compare methods over the runs of studies: leaderboards, and methods pair by pair."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from likewise.app.conditions import read_conditions
from likewise.app.errors import UserError, require_package
from likewise.app.run_rows import read_row
from likewise.app.runs import open_run
from likewise.app.study_io import STUDY_FILE, read_study
from likewise.app.study_table import view_study
from likewise.protocols import (
    Comparisons,
    Conditions,
    Difference,
    Leaderboard,
    NoPairs,
    Result,
    Unfair,
    compare_all,
    leaderboards,
    rank,
)
from likewise.train import Run

Row: TypeAlias = Mapping[str, Any]
Training: TypeAlias = str | os.PathLike[str] | Run | Result | Row
Trainings: TypeAlias = Training | Sequence[Training] | Mapping[str, Run | Sequence[Run]]
"""Folders of studies and runs, runs, results, or rows of a table of results; or runs by the name of their method."""

METRIC = "MAP@R"


@dataclass(frozen=True)
class TrainingTable:
    """Training runs as rows of the tidy table, with their conditions.

    Args:
        rows: one dict per training.
        conditions: the conditions of each; ``None`` for a training given as a row.

    Examples:
        >>> TrainingTable(({"method": "circle"},), (None,)).rows[0]["method"]
        'circle'
    """

    rows: tuple[Row, ...]
    conditions: tuple[Conditions | None, ...]

    def of_methods(self, names: Sequence[str]) -> TrainingTable:
        """The training runs of some methods."""
        both = [each for each in zip(self.rows, self.conditions, strict=True) if each[0]["method"] in names]
        return TrainingTable(tuple(row for row, _ in both), tuple(each for _, each in both))


def collect_trainings(trainings: Trainings) -> TrainingTable:
    """Training runs as a table.

    A search counts as the search budget of its method.

    Args:
        trainings: folders of studies and runs, runs, results of a study, or rows; or runs by the name of their method, by
            default that of their loss.

    Examples:
        >>> from likewise.protocols import Trial
        >>> table = collect_trainings([Result(Trial("triplet", {"model": {"dim": 64}}), test={"R@1": 0.5})])
        >>> table.rows[0]["test R@1"], table.conditions[0].embedding_size
        (0.5, 64)
    """
    if isinstance(trainings, Mapping) and all(isinstance(each, Run | Sequence) for each in trainings.values()):
        runs = [(name, run) for name, each in trainings.items() for run in ([each] if isinstance(each, Run) else each)]
        return TrainingTable(
            tuple(read_row(run, name) for name, run in runs), tuple(read_conditions(run) for _, run in runs)
        )
    single = isinstance(trainings, str | os.PathLike | Run | Result | Mapping)
    opened = [each for one in ([trainings] if single else trainings) for each in _open(one)]  # type: ignore[union-attr]
    rows, conditions = [], list[Conditions | None]()
    for index, each in enumerate(opened):
        if isinstance(each, Mapping):
            rows.append(each)
            conditions.append(None)
        elif isinstance(each, Run | Result):
            rows.append(read_row(each) if isinstance(each, Run) else each.row())
            conditions.append(read_conditions(each))
        else:
            kind = type(each).__name__
            raise TypeError(f"trainings must hold folders, runs, results or rows, but entry {index} is a {kind}")
    return TrainingTable(tuple(rows), _add_search_budgets(rows, conditions))


def _open(training: Any) -> list[Any]:
    """The results of a folder of a study, or the run of a folder."""
    if not isinstance(training, str | os.PathLike):
        return [training]
    folder = Path(training)
    if (folder / STUDY_FILE).exists():
        with view_study(folder) as study:
            return [each for each in study.results() if each.status == "done" or each.trial.stage == "search"]
    if (folder / "run.yaml").exists():
        return [open_run(folder)]
    raise UserError(f"{folder} must be the folder of a study or of a run, but it is neither")


def _add_search_budgets(rows: Sequence[Row], conditions: Sequence[Conditions | None]) -> tuple[Conditions | None, ...]:
    """Count the settings that the search of each method tried, if there are trials of a search among the rows."""
    points: dict[Any, dict[str, set[str]]] = {}
    for row in rows:
        if row.get("stage") == "search":
            searched = {name: value for name, value in row.items() if "." in name}
            points.setdefault(row["method"], {})[str(sorted(searched.items()))] = set(searched)
    if not points:
        return tuple(conditions)
    budgets = {}
    for name in {row["method"] for row in rows}:
        tried = points.get(name, {})
        options = sorted(set().union(*tried.values()))
        budgets[name] = read_conditions({"search": {"rounds": len(tried), "searched": options}})
    return tuple(
        None
        if each is None
        else replace(each, search_budget=budgets[row["method"]].search_budget, searched=budgets[row["method"]].searched)
        for row, each in zip(rows, conditions, strict=True)
    )


def leaderboard(
    trainings: Trainings,
    *,
    metric: str | None = None,
    by: Sequence[str] = ("method",),
    allow_unfair: bool = False,
    confidence: float = 0.95,
) -> Leaderboard:
    """Rank the methods of studies and runs by their means over seeds, and refuse unfair comparisons.

    Args:
        trainings: folders of studies and runs, runs, results of a study, or rows; or runs by the name of their method.
        metric: a column of the table of results, such as ``"test R@1"``; by default ``"test MAP@R"``, or
            ``"val MAP@R"`` if the test set of a training is still sealed, and the leaderboard says so.
        by: columns that tell the lines of the table apart.
        allow_unfair: rank training runs that differ in more than the method, and mark them.
        confidence: of the intervals.

    Raises:
        Unfair: the training runs are not equal, and ``allow_unfair`` is false.

    Examples:
        >>> from likewise.protocols import Trial
        >>> results = [Result(Trial(name, {}), test={"MAP@R": score}) for name, score in (("a", 0.5), ("b", 0.4))]
        >>> [place.summary.name for place in leaderboard(results).places]
        ['a', 'b']
    """
    table = _collect(trainings)
    chosen, remark = choose_metric(table.rows, metric)
    try:
        board = rank(
            table.rows,
            chosen,
            by=by,
            conditions=table.conditions,
            allow_unfair=allow_unfair,
            confidence=confidence,
        )
    except Unfair:
        raise
    except ValueError as error:
        raise UserError(str(error)) from error
    return replace(board, remark=remark)


def leaderboards_by_setting(
    folder: Path, *, metric: str | None = None, allow_unfair: bool = False
) -> dict[str, Leaderboard]:
    """The leaderboards of a study, one for each setting, as on its page.

    Args:
        folder: the folder of the study.
        metric: a column of the table of results; by default as in `leaderboard`.
        allow_unfair: rank training runs that differ in more than the method, and mark them.

    Examples:
        >>> leaderboards_by_setting(Path("nowhere"))
        Traceback (most recent call last):
        likewise.app.errors.UserError: nowhere must be the folder of a study or of a run, but it is neither
    """
    table = _collect(folder)
    chosen, remark = choose_metric(table.rows, metric)
    study = read_study(folder)
    within = study.settings() if study.vary else ()
    try:
        boards = leaderboards(table.rows, chosen, within=within, conditions=table.conditions, allow_unfair=allow_unfair)
    except Unfair:
        raise
    except ValueError as error:
        raise UserError(str(error)) from error
    named = {", ".join(f"{name} {value}" for name, value in zip(within, key, strict=True)): key for key in boards}
    return {name: replace(boards[key], remark=remark) for name, key in named.items()}


@dataclass(frozen=True)
class ComparisonReport:
    """Methods compared pair by pair.

    Args:
        comparisons: every method against every other one.
        differences: the conditions in which the training runs differ.
        remark: a note, such as why this metric was chosen; empty if there is none.

    Examples:
        >>> from likewise.protocols import Trial
        >>> results = [Result(Trial(name, {}), test={"MAP@R": score}) for name, score in (("a", 0.5), ("b", 0.4))]
        >>> compare(results).unfair
        ()
    """

    comparisons: Comparisons
    differences: tuple[Difference, ...] = ()
    remark: str = ""

    @property
    def unfair(self) -> tuple[Difference, ...]:
        """The differences that make the comparison unfair; there are none unless unfair comparisons are allowed."""
        return tuple(each for each in self.differences if each.severity == "unfair")

    def sentences(self) -> list[str]:
        """A sentence for every two methods."""
        return self.comparisons.sentences()


def compare(
    trainings: Trainings,
    *,
    methods: Sequence[str] | None = None,
    metric: str | None = None,
    holm: bool = False,
    allow_unfair: bool = False,
) -> ComparisonReport:
    """Compare methods pair by pair, over the same seeds, folds and settings.

    Args:
        trainings: folders of studies and runs, runs, results of a study, or rows; or runs by the name of their method.
        methods: the methods to compare; by default all.
        metric: a column of the table of results; by default as in `leaderboard`.
        holm: correct for many comparisons (Holm 1979).
        allow_unfair: compare training runs that differ in more than the method.

    Raises:
        Unfair: the training runs are not equal, and ``allow_unfair`` is false.

    Examples:
        >>> from likewise.protocols import Trial
        >>> scores = {"a": (0.50, 0.52, 0.54), "b": (0.49, 0.50, 0.52)}
        >>> results = [
        ...     Result(Trial(name, {}, seed=seed), test={"MAP@R": score})
        ...     for name, values in scores.items()
        ...     for seed, score in enumerate(values)
        ... ]
        >>> compare(results).sentences()
        ['a is better than b by 1.7 points of MAP@R (95% interval 0.2 to 3.1, 3 pairs)']
    """
    table = _collect(trainings)
    names = {str(row["method"]) for row in table.rows if row.get("stage") != "search"}
    for name in methods or ():
        if name not in names:
            raise UserError(f"there is no method {name}: the methods are {', '.join(sorted(names))}")
    names &= set(methods or names)
    if len(names) < 2:
        raise UserError(f"a comparison needs at least two methods, but there is only {min(names)}")
    table = table.of_methods(sorted(names))  # excluded methods do not affect fairness
    chosen, remark = choose_metric(table.rows, metric)
    try:
        board = rank(table.rows, chosen, conditions=table.conditions, allow_unfair=allow_unfair)
        comparisons = compare_all(table.rows, chosen, correct="holm" if holm else "none")
    except Unfair:
        raise
    except (NoPairs, ValueError) as error:
        raise UserError(str(error)) from error
    return ComparisonReport(comparisons, board.differences, remark)


def _collect(trainings: Trainings) -> TrainingTable:
    require_package("scipy", "study", "a comparison of methods")
    table = collect_trainings(trainings)
    if not table.rows:
        raise UserError("no training is done yet: run likewise tournament")
    if all(row.get("stage") == "search" for row in table.rows):
        raise UserError("all runs belong to a search: make final runs with likewise repeat")
    return table


def choose_metric(rows: Sequence[Row], metric: str | None = None) -> tuple[str, str]:
    """The metric to compare by, and a remark if it is one of validation classes because a test set is still sealed.

    Examples:
        >>> choose_metric([{"method": "circle", "val MAP@R": 0.5}])[0]
        'val MAP@R'
    """
    test, val = f"test {METRIC}", f"val {METRIC}"
    done = [row for row in rows if (row.get("status") or "done") == "done" and row.get("stage") != "search"]
    sealed = sum(row.get(test) is None for row in done)
    if metric is not None or not sealed or any(row.get(val) is None for row in done):
        return metric or test, ""
    which = "the training run is" if len(done) == 1 else f"{sealed} of {len(done)} training runs are"
    return val, (
        f"Compared on validation classes, because {which} not measured on the test set, which is still sealed. The models "
        "were chosen on these classes, so the numbers are optimistic. likewise evaluate RUN --test opens the test set."
    )
