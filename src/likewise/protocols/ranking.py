"""Rank methods by their means over seeds, unless the comparison is unfair."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from likewise.protocols.conditions import OUTSIDE, RULES, Conditions
from likewise.protocols.fairness import Difference, seed_difference, unfair_differences
from likewise.protocols.leaderboard import Leaderboard, Place, Unfair
from likewise.protocols.pairs import NoPairs, compare_sides
from likewise.protocols.repeats import Row, Summary, is_done, labels_of_rows, name_of, select_stage, summarize
from likewise.report import in_words

COLUMN_CONDITIONS = {
    "trunk": "trunk",
    "weights": "pretraining",
    "dim": "embedding_size",
    "pool": "pooling",
    "images": "augmentation",
    "protocol": "split",
}
"""Columns of a table of results in which methods must agree, and the corresponding fields of `Conditions`."""

REQUIRED_EQUAL = {
    "data": ("data", OUTSIDE["data"]),
    **{column: (RULES[name].what, RULES[name].why) for column, name in COLUMN_CONDITIONS.items()},
    "source": ("source", OUTSIDE["source"]),
}
"""The name of each column in a comparison, and why a difference matters."""


def rank(
    rows: Sequence[Row],
    metric: str = "test MAP@R",
    *,
    by: Sequence[str] = ("method",),
    conditions: Sequence[Conditions | None] | None = None,
    allow_unfair: bool = False,
    stage: str = "final",
    confidence: float = 0.95,
) -> Leaderboard:
    """Rank methods by their means over seeds, unless that would be unfair.

    Runs that differ in more than the method raise an error that lists the differences; with ``allow_unfair=True`` they are
    ranked, and the table is marked.  Without conditions, only the columns of the rows are compared, which the table notes.
    `likewise.app.leaderboard` ranks folders, runs and results with their conditions.

    Args:
        rows: the tidy table of results, one dict per run.
        metric: the column to rank by; values are fractions, higher is better.
        by: the columns that identify a line of the table.
        conditions: the conditions of the run of each row.
        allow_unfair: rank unfair comparisons too.
        stage: ``"final"`` or ``"search"``.
        confidence: the confidence level of the intervals.

    Raises:
        Unfair: if the runs differ in more than the method, and ``allow_unfair`` is false.

    Examples:
        >>> rows = [{"method": "margin", "dim": 128, "seed": 0, "test R@1": 0.64}]
        >>> rows.append({"method": "triplet", "dim": 64, "seed": 0, "test R@1": 0.43})
        >>> rank(rows, "test R@1")
        Traceback (most recent call last):
        likewise.protocols.leaderboard.Unfair: runs must differ only in the method to be ranked, but they differ
        in embedding size: 128 (margin), 64 (triplet); allow_unfair=True ranks them anyway, with a mark
        >>> [place.marks for place in rank(rows, "test R@1", allow_unfair=True).places]
        [('unfair: embedding size 128', 'one seed'), ('unfair: embedding size 64', 'one seed')]
    """
    _check_rows(rows, conditions)
    chosen = select_stage(rows, metric, stage)
    summaries = summarize(chosen, metric, by=by, stage=stage, confidence=confidence)
    if not summaries:
        raise ValueError("rows must contain a setting with a complete seed, but all runs failed or lack a fold")
    sides: dict[str, list[Row]] = {}
    for row in chosen:
        sides.setdefault(name_of(row, by), []).append(row)
    ranked = {each.name: sides[each.name] for each in summaries}
    known = _group_conditions(rows, conditions, by, stage, ranked)
    differences = _differences(summaries, ranked, known)
    unfair = [each for each in differences if each.severity == "unfair"]
    if unfair and not allow_unfair:
        raise Unfair(unfair)
    places = _places(summaries, ranked, metric, unfair, known)
    missing = tuple(name for name in sides if name not in ranked)
    return Leaderboard(metric, places, tuple(differences), bool(known), missing)


def leaderboards(
    rows: Sequence[Row],
    metric: str = "test MAP@R",
    *,
    within: Sequence[str],
    conditions: Sequence[Conditions | None] | None = None,
    allow_unfair: bool = False,
    stage: str = "final",
    confidence: float = 0.95,
) -> dict[tuple[Any, ...], Leaderboard]:
    """Rank methods separately for each setting, such as each data set, trunk and size.

    Args:
        rows: the tidy table of results, one dict per run.
        metric: the column to rank by.
        within: the columns whose combinations get separate tables.
        conditions: the conditions of the run of each row.
        allow_unfair: rank unfair comparisons too.
        stage: ``"final"`` or ``"search"``.
        confidence: the confidence level of the intervals.

    Examples:
        >>> rows = [{"method": m, "dim": d, "test R@1": d / 1000} for m in "ab" for d in (64, 128)]
        >>> list(leaderboards(rows, "test R@1", within=("dim",)))
        [(64,), (128,)]
    """
    _check_rows(rows, conditions)
    parts: dict[tuple[Any, ...], list[int]] = {}
    for index, row in enumerate(rows):
        if _is_of_stage(row, stage):
            parts.setdefault(tuple(row.get(column) for column in within), []).append(index)
    return {
        key: rank(
            [rows[index] for index in part],
            metric,
            conditions=None if conditions is None else [conditions[index] for index in part],
            allow_unfair=allow_unfair,
            stage=stage,
            confidence=confidence,
        )
        for key, part in parts.items()
    }


def _check_rows(rows: Sequence[Row], conditions: Sequence[Conditions | None] | None) -> None:
    for index, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise TypeError(f"rows must be a list of dicts, one per run, but entry {index} is a {type(row).__name__}")
    if conditions is not None and len(conditions) != len(rows):
        raise ValueError(f"conditions must have an entry for each of {len(rows)} rows, but it has {len(conditions)}")


def _is_of_stage(row: Row, stage: str) -> bool:
    return (row.get("stage") or "final") == stage


def _group_conditions(
    rows: Sequence[Row],
    conditions: Sequence[Conditions | None] | None,
    by: Sequence[str],
    stage: str,
    names: Collection[str],
) -> dict[str, list[Conditions]]:
    """Group conditions by the name of the line; empty unless every ranked run has them."""
    groups: dict[str, list[Conditions]] = {}
    for row, each in zip(rows, conditions or (), strict=conditions is not None):
        name = name_of(row, by)
        if name in names and _is_of_stage(row, stage) and is_done(row):
            if each is None:
                return {}
            groups.setdefault(name, []).append(each)
    return groups


def _differences(
    summaries: Sequence[Summary], sides: Mapping[str, list[Row]], conditions: Mapping[str, list[Conditions]]
) -> list[Difference]:
    differences = _column_differences(summaries, sides)
    if conditions:
        names = {each.what for each in differences}
        names |= {RULES[name].what for name in _DATA_CONDITIONS} if "data" in names else set()
        differences += [each for each in unfair_differences(conditions) if each.what not in names]
    return sorted(differences, key=lambda each: each.severity == "note")


_DATA_CONDITIONS = ("training_images", "validation_images", "test_set")


def _column_differences(summaries: Sequence[Summary], sides: Mapping[str, list[Row]]) -> list[Difference]:
    """Find the differences that the columns of the table show."""
    differences = []
    for column, (what, why) in REQUIRED_EQUAL.items():
        values = {name: _one_or_all(row.get(column) for row in rows) for name, rows in sides.items()}
        if len({str(each) for each in values.values()}) > 1:
            differences.append(Difference(what, values, why))
    tuned = {name: any(row.get("tuned_on_test") for row in rows) for name, rows in sides.items()}
    if len(set(tuned.values())) > 1:
        marks = {name: "tuned on test" if each else "none" for name, each in tuned.items()}
        rule = RULES["test_set_feedback"]
        differences.append(Difference(rule.what, marks, rule.why))
    counts = {each.name: each.interval.count for each in summaries}
    if len(set(counts.values())) > 1:
        differences.append(seed_difference(counts))
    folds = {each.name: sorted(each.folds, key=str) for each in summaries}
    if len(set(map(str, folds.values()))) > 1:
        differences.append(Difference(RULES["fold"].what, folds, RULES["fold"].why))
    return differences


def _one_or_all(values: Iterable[Any]) -> Any:
    distinct = list(dict.fromkeys(values))
    return distinct[0] if len(distinct) == 1 else distinct


def _places(
    summaries: Sequence[Summary],
    sides: Mapping[str, list[Row]],
    metric: str,
    unfair: Sequence[Difference],
    conditions: Mapping[str, list[Conditions]],
) -> tuple[Place, ...]:
    ordered = sorted(summaries, key=lambda each: -each.interval.mean)
    first, means = ordered[0], [each.interval.mean for each in ordered]
    confidence = first.interval.confidence
    places = []
    for summary in ordered:
        behind = None
        if summary is not first:
            names = (first.name, summary.name)
            try:
                left, right = (sides[name] for name in names)
                # a line has one setting, so that runs are paired by seed and fold only
                labels = labels_of_rows([*left, *right])
                behind = compare_sides(left, right, *names, metric, but=labels, confidence=confidence)
            except NoPairs:
                behind = None
        rows = sides[summary.name]
        opened = [row["openings"] for row in rows if row.get("openings") is not None]
        openings = max(opened) if opened else None
        marks = _marks(summary, rows, unfair, conditions.get(summary.name, []), openings)
        places.append(Place(1 + means.index(summary.interval.mean), summary, marks, behind, summary is first, openings))
    return tuple(places)


def _marks(
    summary: Summary,
    rows: Sequence[Row],
    unfair: Sequence[Difference],
    conditions: Sequence[Conditions],
    openings: int | None,
) -> tuple[str, ...]:
    marks = ["tuned on test"] if any(row.get("tuned_on_test") for row in rows) else []
    marks += [
        mark for each in conditions if isinstance(each.test_set_feedback, tuple) for mark in each.test_set_feedback
    ]
    if unfair:
        marks.append("unfair: " + ", ".join(_describe_mark(each, summary.name) for each in unfair))
    if summary.interval.count == 1:
        marks.append("seeds not known" if None in summary.scores else "one seed")
    if summary.failed:
        marks.append(f"{summary.failed} failed")
    if summary.incomplete:
        marks.append(f"{summary.incomplete} {'seed' if summary.incomplete == 1 else 'seeds'} incomplete")
    if openings is not None and openings > 1:
        marks.append(f"test set opened {openings} times")
    return tuple(dict.fromkeys(marks))


def _describe_mark(difference: Difference, name: str) -> str:
    """Describe a difference in a few words; details are in a footnote."""
    value = difference.values[name]
    return difference.what if isinstance(value, Mapping | list) else f"{difference.what} {in_words(value)}"
