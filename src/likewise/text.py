"""Texts that terminals and pages share: aligned columns, how often, when, and the name of a metric."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime


def align(rows: Iterable[Sequence[str]], *, left: int | None = None) -> list[str]:
    """Rows as lines of one width each column.

    Args:
        rows: cells, equally many in each row.
        left: how many columns are aligned to the left; the others are aligned to the right (default: all).

    Examples:
        >>> align([("", "R@1"), ("circle", "9.5")], left=1)
        ['        R@1', 'circle  9.5']
    """
    cells = [list(row) for row in rows]
    wide = [max(map(len, column)) for column in zip(*cells, strict=True)]
    left = len(wide) if left is None else left
    return [
        "  ".join(
            cell.ljust(width) if place < left else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, wide, strict=True))
        )
        for row in cells
    ]


def times(count: int) -> str:
    """How often, in words.

    Examples:
        >>> times(2), times(3)
        ('twice', '3 times')
    """
    return {1: "once", 2: "twice"}.get(count, f"{count:,} times")


def metric_in_words(metric: str) -> str:
    """A column of a table of results as its metric is called in a sentence.

    Examples:
        >>> metric_in_words("test MAP@R"), metric_in_words("val R@1")
        ('MAP@R', 'R@1 on validation classes')
    """
    part, _, name = metric.partition(" ")
    return f"{name} on validation classes" if part == "val" else name


def moment(time: object) -> str:
    """A time that a record holds, to the minute, in its own zone; what is no time stays as it is.

    Examples:
        >>> moment("2026-03-01T14:05:09+01:00"), moment("yesterday")
        ('2026-03-01 14:05 +01:00', 'yesterday')
    """
    try:
        read = time if isinstance(time, datetime) else datetime.fromisoformat(str(time))
    except ValueError:
        return str(time)
    zone = read.strftime("%z")
    return f"{read:%Y-%m-%d %H:%M}" + (
        f" {zone[:3]}:{zone[3:]}" if zone and zone != "+0000" else " UTC" if zone else ""
    )
