"""Names on a study's page: columns, methods, experiments and cells of the complete table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any, TypeAlias

from likewise.report.words import duration, in_words, percent, short

Row: TypeAlias = Mapping[str, Any]

RECORDS = ("seed", "fold", "stage", "status")
AFTER = ("seconds", "openings", "tuned_on_test", "machine", "run", "key", "command", "error")
RANK_COLUMNS = {
    "rank",
    "metric",
    "mean",
    "low",
    "high",
    "confidence",
    "seeds",
    "folds",
    "failed",
    "incomplete",
    "openings",
}
RANK_COLUMNS |= {"behind", "behind_low", "behind_high", "distinguishable", "pairs", "fair", "checked", "marks"}
"""Columns of a leaderboard other than its method and setting."""


def is_metric(column: str) -> bool:
    """Whether a column is a metric.

    Examples:
        >>> is_metric("test R@1"), is_metric("dim")
        (True, False)
    """
    return column.startswith(("val ", "test "))


def setting_columns(rows: Sequence[Row]) -> list[str]:
    """Return the columns of settings, without the method.

    Examples:
        >>> setting_columns([{"method": "a", "dim": 64, "seed": 0, "test R@1": 0.5, "loss.alpha": 2.0}])
        ['dim', 'loss.alpha']
    """
    columns = dict.fromkeys(column for row in rows for column in row)
    known = {"method", *RECORDS, *AFTER}
    return [column for column in columns if column not in known and not is_metric(column)]


def columns_of(rows: Sequence[Row], metric: str) -> list[str]:
    """Return the columns of the complete table in reading order, without empty ones.

    Examples:
        >>> columns_of(
        ...     [{"method": "a", "run": "runs/1", "test R@1": 0.5, "test MAP@R": 0.3, "error": None}], "test MAP@R"
        ... )
        ['method', 'test MAP@R', 'test R@1', 'run']
    """
    filled = dict.fromkeys(column for row in rows for column in row if row[column] not in (None, ""))
    metrics = sorted((column for column in filled if is_metric(column)), key=lambda each: each != metric)
    labels = sorted(setting_columns(rows), key=lambda each: "." in each)
    plain = sum("." not in each for each in labels)
    order = ["method", *labels[:plain], *RECORDS, *metrics, *labels[plain:], *AFTER]
    hidden = {"tuned_on_test"} if not any(row.get("tuned_on_test") for row in rows) else set()
    return [column for column in order if column in filled and column not in hidden]


def name_of(row: Row) -> str:
    """Return the name of a row of a leaderboard: its method and setting.

    Examples:
        >>> name_of({"rank": 1, "method": "triplet", "dim": 64, "mean": 0.5})
        'triplet, dim 64'
    """
    group = [column for column in row if column not in RANK_COLUMNS]
    return ", ".join(str(row[each]) if each == "method" else f"{each} {in_words(row[each])}" for each in group)


def filter_of(values: Mapping[str, Any]) -> str:
    """Return the filter that selects the rows of the complete table with these values.

    Examples:
        >>> filter_of({"method": "soft triple", "dim": 64})
        'method="soft triple" dim="64"'
    """
    return " ".join(
        f'{filter_name(name)}="{str(cell_text(name, value)).replace(chr(34), "")}"' for name, value in values.items()
    )


def filter_name(column: str) -> str:
    """Return the name of a column in the filter.

    Examples:
        >>> filter_name("test MAP@R")
        'test_map@r'
    """
    return "_".join(column.lower().split())


def experiment_names(experiments: Sequence[Mapping[str, Any]]) -> list[str]:
    """Name experiments by the settings in which they differ.

    Examples:
        >>> experiment_names([{"data": "CUB200", "dim": 64}, {"data": "CUB200", "dim": 128}])
        ['dim 64', 'dim 128']
        >>> experiment_names([{"data": "CUB200", "trunk": None}])
        ['CUB200']
    """
    varied = [name for each in experiments[:1] for name in each if len({str(one.get(name)) for one in experiments}) > 1]
    named = varied or [name for each in experiments[:1] for name in each if each[name] is not None]
    plain = ("data", "trunk")
    return [
        ", ".join(str(one[name]) if name in plain else f"{name} {in_words(one[name])}" for name in named) or "all runs"
        for one in experiments
    ]


def cell_text(column: str, value: Any) -> str:
    """Format a value as a cell of the complete table.

    Examples:
        >>> (
        ...     cell_text("test R@1", 0.51239),
        ...     cell_text("seconds", 75.0),
        ...     cell_text("loss.alpha", 0.00012),
        ...     cell_text("dim", 64),
        ...     cell_text("x", None),
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
