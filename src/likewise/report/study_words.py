"""How what was trained is named on a study's page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any, TypeAlias

from likewise.report.words import duration, percent, short

Row: TypeAlias = Mapping[str, Any]

RECORDS = ("seed", "fold", "stage", "status")
AFTER = ("seconds", "openings", "tuned_on_test", "machine", "run", "key", "command", "error")
PLACED = {"rank", "metric", "mean", "low", "high", "confidence", "seeds", "folds", "failed", "incomplete", "openings"}
PLACED |= {"behind", "behind_low", "behind_high", "distinguishable", "pairs", "fair", "checked", "marks"}
"""What a row of a leaderboard holds beside the columns that name its method and setting."""


def is_metric(column: str) -> bool:
    """Whether a column is a metric.

    Examples:
        >>> is_metric("test R@1"), is_metric("dim")
        (True, False)
    """
    return column.startswith(("val ", "test "))


def labels_of(rows: Sequence[Row]) -> list[str]:
    """The columns that say what was varied, the method left out.

    Examples:
        >>> labels_of([{"method": "a", "dim": 64, "seed": 0, "test R@1": 0.5, "loss.alpha": 2.0}])
        ['dim', 'loss.alpha']
    """
    columns = dict.fromkeys(column for row in rows for column in row)
    known = {"method", *RECORDS, *AFTER}
    return [column for column in columns if column not in known and not is_metric(column)]


def columns_of(rows: Sequence[Row], metric: str) -> list[str]:
    """The columns of the complete table in the order of reading; those that are empty everywhere are left out.

    Examples:
        >>> columns_of(
        ...     [{"method": "a", "run": "runs/1", "test R@1": 0.5, "test MAP@R": 0.3, "error": None}], "test MAP@R"
        ... )
        ['method', 'test MAP@R', 'test R@1', 'run']
    """
    there = dict.fromkeys(column for row in rows for column in row if row[column] not in (None, ""))
    metrics = sorted((column for column in there if is_metric(column)), key=lambda each: each != metric)
    labels = sorted(labels_of(rows), key=lambda each: "." in each)
    plain = sum("." not in each for each in labels)
    order = ["method", *labels[:plain], *RECORDS, *metrics, *labels[plain:], *AFTER]
    silent = {"tuned_on_test"} if not any(row.get("tuned_on_test") for row in rows) else set()
    return [column for column in order if column in there and column not in silent]


def in_words(value: Any) -> str:
    """A value as it is read in a sentence.

    Examples:
        >>> in_words({"name": "SGD", "momentum": 0.9}), in_words(None), in_words([64, 128]), in_words(True)
        ('name SGD, momentum 0.9', 'none', '64 and 128', 'yes')
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {in_words(each)}" for key, each in value.items())
    if isinstance(value, list | tuple | set | frozenset):
        return " and ".join(map(in_words, value)) or "none"
    return "none" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)


def name_of(row: Row) -> str:
    """What a row of a leaderboard is called: its method, and the settings that tell it from others.

    Examples:
        >>> name_of({"rank": 1, "method": "triplet", "dim": 64, "mean": 0.5})
        'triplet, dim 64'
    """
    group = [column for column in row if column not in PLACED]
    return ", ".join(str(row[each]) if each == "method" else f"{each} {in_words(row[each])}" for each in group)


def filter_of(values: Mapping[str, Any]) -> str:
    """What to type into the filter of the complete table to see the runs of something.

    Examples:
        >>> filter_of({"method": "soft triple", "dim": 64})
        'method="soft triple" dim="64"'
    """
    return " ".join(
        f'{filter_name(name)}="{str(cell(name, value)).replace(chr(34), "")}"' for name, value in values.items()
    )


def filter_name(column: str) -> str:
    """The name of a column in the filter.

    Examples:
        >>> filter_name("test MAP@R")
        'test_map@r'
    """
    return "_".join(column.lower().split())


def points(value: float | None, digits: int = 2, *, sign: bool = False) -> str:
    """A difference of fractions in percentage points.

    Examples:
        >>> points(0.0123, sign=True), points(-0.002, 1), points(None), points(-0.00001)
        ('+1.23', '−0.2', '–', '0.00')
    """
    if value is None or not isfinite(value):
        return "–"
    shown = f"{abs(100.0 * value):.{digits}f}"
    return shown if float(shown) == 0.0 else ("+" if sign and value > 0 else "−" if value < 0 else "") + shown


def experiment_names(held: Sequence[Mapping[str, Any]]) -> list[str]:
    """Experiments by what tells them apart; what is the same in all is left out.

    Examples:
        >>> experiment_names([{"data": "CUB200", "dim": 64}, {"data": "CUB200", "dim": 128}])
        ['dim 64', 'dim 128']
        >>> experiment_names([{"data": "CUB200", "trunk": None}])
        ['CUB200']
    """
    varied = [name for each in held[:1] for name in each if len({str(one.get(name)) for one in held}) > 1]
    chosen = varied or [name for each in held[:1] for name in each if each[name] is not None]
    plain = ("data", "trunk")
    return [
        ", ".join(str(one[name]) if name in plain else f"{name} {in_words(one[name])}" for name in chosen)
        or "all trainings"
        for one in held
    ]


def cell(column: str, value: Any) -> str:
    """A value as a cell of the complete table.

    Examples:
        >>> (
        ...     cell("test R@1", 0.51239),
        ...     cell("seconds", 75.0),
        ...     cell("loss.alpha", 0.00012),
        ...     cell("dim", 64),
        ...     cell("x", None),
        ... )
        ('51.24', '1 min 15 s', '1.2e-4', '64', '–')
    """
    if value is None or value == "":
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        if is_metric(column):
            return percent(value, 2)
        if column == "seconds":
            return duration(value) if isfinite(value) else "–"
        return short(value) if isinstance(value, float) and not value.is_integer() else f"{value:g}"
    return in_words(value)
