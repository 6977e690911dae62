"""Leaderboards: methods ranked by their means, unless the comparison is unfair."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from likewise.protocols.conditions import OUTSIDE, RULES, Conditions
from likewise.protocols.fairness import Difference, seed_difference, unfair_differences
from likewise.protocols.pairs import Comparison, NoPairs, compare_sides
from likewise.protocols.repeats import FEWEST, Row, Summary, is_done, labels_of_rows, name_of, of_stage, summarize
from likewise.report import in_words
from likewise.text import align, metric_in_words

COLUMN_CONDITIONS = {
    "trunk": "trunk",
    "weights": "pretraining",
    "dim": "embedding_size",
    "pool": "pooling",
    "images": "augmentation",
    "protocol": "split",
}
"""Columns of a table of results in which methods must agree, and the fields of `Conditions` that they hold."""

REQUIRED_EQUAL = {
    "data": ("data", OUTSIDE["data"]),
    **{column: (RULES[name].what, RULES[name].why) for column, name in COLUMN_CONDITIONS.items()},
    "source": ("source", OUTSIDE["source"]),
}
"""The name of each column in a comparison, and why it matters."""


class Unfair(ValueError):  # noqa: N818
    """Trainings are not equal, so that they are not ranked.

    Args:
        differences: what makes the comparison unfair.

    Examples:
        >>> raise Unfair([Difference("trunk", {"margin": "resnet50", "triplet": "googlenet"}, RULES["trunk"].why)])
        Traceback (most recent call last):
        likewise.protocols.leaderboard.Unfair: trainings must be equal in all but the method to be ranked, but they differ
        in trunk: resnet50 (margin), googlenet (triplet); allow_unfair=True ranks them all the same, and says so
    """

    def __init__(self, differences: Sequence[Difference]) -> None:
        self.differences = tuple(differences)
        listed = "; ".join(map(str, self.differences))
        super().__init__(
            f"trainings must be equal in all but the method to be ranked, but they differ in {listed}; "
            "allow_unfair=True ranks them all the same, and says so"
        )


@dataclass(frozen=True)
class Place:
    """A line of a leaderboard.

    Args:
        rank: from 1; equal means share one.
        summary: mean, interval and seeds.
        marks: what a reader must know: ``"tuned on test"``, ``"unfair: …"``, ``"one seed"``, ….
        behind: the first against this one, pair by pair; ``None`` for the first, and without pairs.
        first: whether it is the one that others are held against.
        openings: how often the test set of one of its runs was opened, at most; ``None`` where that is not known.

    Examples:
        >>> rank([{"method": "a", "seed": 0, "test R@1": 0.5}], "test R@1").places[0].marks
        ('one seed',)
    """

    rank: int
    summary: Summary
    marks: tuple[str, ...] = ()
    behind: Comparison | None = None
    first: bool = True
    openings: int | None = None


@dataclass(frozen=True)
class Leaderboard:
    """Methods in the order of their means, with notes on the order.

    Args:
        metric: by which column they are ranked.
        places: best first.
        differences: in what the trainings differ besides the method.
        checked: whether their conditions were compared; else only the columns of the table were.
        missing: settings without a single complete seed.
        remark: a sentence for the reader, such as why this metric was chosen.

    Examples:
        >>> scores = {"a": (0.50, 0.52, 0.54), "b": (0.49, 0.50, 0.52)}
        >>> rows = [{"method": m, "seed": s, "test R@1": each[s]} for m, each in scores.items() for s in range(3)]
        >>> print(rank(rows, "test R@1").text())
        R@1 in percent: mean and 95% interval over seeds
        #  method  R@1    95% interval    seeds  behind the first  marks
        1  a       52.00  47.03 to 56.97  3
        2  b       50.33  46.54 to 54.13  3      1.67 (0.23 to 3.10)
        Whether the trainings are otherwise equal was not checked: their conditions were not given.
    """

    metric: str
    places: tuple[Place, ...]
    differences: tuple[Difference, ...] = ()
    checked: bool = True
    missing: tuple[str, ...] = ()
    remark: str = ""

    @property
    def unfair(self) -> tuple[Difference, ...]:
        """The differences that make the ranking unfair; empty unless the ranking was forced."""
        return tuple(each for each in self.differences if each.severity == "unfair")

    def rows(self) -> list[dict[str, Any]]:
        """One dict per place with the same keys and plain values; metrics are fractions."""
        return [self._row(place) for place in self.places]

    def _row(self, place: Place) -> dict[str, Any]:
        interval, behind = place.summary.interval, place.behind
        has_interval = interval.count > 1
        row = {"rank": place.rank, **place.summary.group, "metric": self.metric, "mean": interval.mean}
        row |= {"low": interval.low if has_interval else None, "high": interval.high if has_interval else None}
        row |= {"confidence": interval.confidence, "seeds": interval.count, "folds": len(place.summary.folds)}
        row |= {"failed": place.summary.failed, "incomplete": place.summary.incomplete, "openings": place.openings}
        sure = behind is not None and behind.resolution is not None
        row["behind"] = behind.difference.mean if behind else None
        row |= {"behind_low": behind.difference.low if behind and sure else None}
        row |= {"behind_high": behind.difference.high if behind and sure else None}
        row |= {"distinguishable": behind.verdict != "not distinguishable" if behind else None}
        row |= {"pairs": behind.pairs if behind else None, "fair": not self.unfair, "checked": self.checked}
        return row | {"marks": "; ".join(place.marks)}

    def footnotes(self) -> list[str]:
        """The notes under the table."""
        notes = [self.remark] if self.remark else []
        if self.unfair:
            notes.append("* Unfair: ranked although the trainings are not equal, as was asked for.")
            notes += [f"  {each}. {each.why}" for each in self.unfair]
        notes += [f"Note: {each}. {each.why}" for each in self.differences if each.severity == "note"]
        if not self.checked:
            notes.append("Whether the trainings are otherwise equal was not checked: their conditions were not given.")
        if self.missing:
            notes.append(f"Without a complete result: {', '.join(self.missing)}.")
        return notes

    def text(self, width: int = 120) -> str:
        """The table for a terminal."""
        confidence = self.places[0].summary.interval.confidence
        columns = list(self.places[0].summary.group)
        shown, sure = metric_in_words(self.metric), f"{100 * confidence:g}% interval"
        folds = max(len(place.summary.folds) for place in self.places)
        over = f"over seeds, each a mean over {folds} folds" if folds > 1 else "over seeds"
        cells = [["#", *columns, self.metric.partition(" ")[2], sure, "seeds", "behind the first", "marks"]]
        cells += [self._cells(place, columns) for place in self.places]
        lines = [f"{shown} in percent: mean and {sure} {over}"]
        for (*_, marks), start in zip(cells, align(row[:-1] for row in cells), strict=True):
            indent = len(start) + 2
            lines += _wrapped(marks, f"{start}  ", " " * indent, max(width, indent + 24))
        for note in self.footnotes():
            lines += _wrapped(note.strip(), " " * (len(note) - len(note.lstrip())), "    ", width)
        return "\n".join(lines)

    def _cells(self, place: Place, columns: Sequence[str]) -> list[str]:
        scores = place.summary.interval
        interval = f"{100 * scores.low:.2f} to {100 * scores.high:.2f}" if scores.count >= FEWEST else "none"
        group = [str(place.summary.group[column]) for column in columns]
        number = f"{place.rank}{'*' if self.unfair else ''}"
        return [
            number,
            *group,
            f"{100 * scores.mean:.2f}",
            interval,
            str(scores.count),
            _gap(place),
            "; ".join(place.marks),
        ]


def _gap(place: Place) -> str:
    """How far a place is behind the first."""
    if place.behind is None:
        return "" if place.first else "no pairs"
    difference = place.behind.difference
    if place.behind.verdict == "not distinguishable":
        return "not distinguishable"
    return f"{100 * difference.mean:.2f} ({100 * difference.low:.2f} to {100 * difference.high:.2f})"


def _wrapped(text: str, first: str, rest: str, width: int) -> list[str]:
    lines = textwrap.wrap(text, width, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False)
    return [line.rstrip() for line in lines or [first]]


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

    Trainings that differ in more than the method are refused, with all that differs; ``allow_unfair`` ranks them, and
    the table says so.  Without conditions only the columns of the rows are compared, and the table says that, too.
    `likewise.app.leaderboard` ranks folders, runs and results, with their conditions.

    Args:
        rows: the tidy table of results, a dict for each training.
        metric: by which column; values are fractions, higher is better.
        by: columns that tell the lines of the table apart.
        conditions: the conditions of the training of each row.
        allow_unfair: rank unfair comparisons too.
        stage: ``"final"`` or ``"search"``.
        confidence: of the intervals.

    Raises:
        Unfair: the trainings are not equal, and ``allow_unfair`` is false.

    Examples:
        >>> rows = [{"method": "margin", "dim": 128, "seed": 0, "test R@1": 0.64}]
        >>> rows.append({"method": "triplet", "dim": 64, "seed": 0, "test R@1": 0.43})
        >>> rank(rows, "test R@1")
        Traceback (most recent call last):
        likewise.protocols.leaderboard.Unfair: trainings must be equal in all but the method to be ranked, but they differ
        in embedding size: 128 (margin), 64 (triplet); allow_unfair=True ranks them all the same, and says so
        >>> [place.marks for place in rank(rows, "test R@1", allow_unfair=True).places]
        [('unfair: embedding size 128', 'one seed'), ('unfair: embedding size 64', 'one seed')]
    """
    _check_rows(rows, conditions)
    chosen = of_stage(rows, metric, stage)
    summaries = summarize(chosen, metric, by=by, stage=stage, confidence=confidence)
    if not summaries:
        raise ValueError("rows must contain a setting with a complete seed, but all trainings failed or lack a fold")
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
    """A leaderboard of methods for each setting, such as each data set, trunk and size.

    Args:
        rows: the tidy table of results, a dict for each training.
        metric: by which column.
        within: the columns of which each combination gets a separate table.
        conditions: the conditions of the training of each row.
        allow_unfair: rank unfair comparisons too.
        stage: ``"final"`` or ``"search"``.
        confidence: of the intervals.

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
            raise TypeError(
                f"rows must be a list of dicts, one per training, but entry {index} is a {type(row).__name__}"
            )
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
    """Conditions by name of the line; empty unless every ranked training has them."""
    groups: dict[str, list[Conditions]] = {}
    for row, each in zip(rows, conditions or (), strict=conditions is not None):
        name = name_of(row, by)
        if name in names and _is_of_stage(row, stage) and is_done(row):
            if each is None:
                return {}
            groups.setdefault(name, []).append(each)
    return groups


# ---- what differs, and how it is marked


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
    """The differences that the columns of the table show."""
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
                # a line is one setting throughout, so that seed and fold are all that pairs
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
    """A difference in a few words; details are in a footnote."""
    value = difference.values[name]
    return difference.what if isinstance(value, Mapping | list) else f"{difference.what} {in_words(value)}"
