"""Text functions shared by several packages: aligned columns, counts, times, names of metrics, closest names."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from datetime import datetime


def align(rows: Iterable[Sequence[str]], *, left: int | None = None) -> list[str]:
    """Format rows as lines whose columns are aligned.

    Args:
        rows: cells, the same number in each row.
        left: the number of columns that are aligned to the left, the others to the right; by default all.

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
    """A number of repetitions in words.

    Examples:
        >>> times(2), times(3)
        ('twice', '3 times')
    """
    return {1: "once", 2: "twice"}.get(count, f"{count:,} times")


def metric_in_words(metric: str) -> str:
    """The name of a metric in a sentence, from its column in a table of results.

    Examples:
        >>> metric_in_words("test MAP@R"), metric_in_words("val R@1")
        ('MAP@R', 'R@1 on validation classes')
    """
    part, _, name = metric.partition(" ")
    return f"{name} on validation classes" if part == "val" else name


def moment(time: object) -> str:
    """Format the time of a record to the minute, in its time zone; a value that is not a time is returned as text.

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


def nearest_name(name: str, names: Iterable[str]) -> str | None:
    """Return the name that a misspelled one most likely means; ``None`` if none is close.

    Examples:
        >>> nearest_name("MultiSimilartyLoss", ["MultiSimilarityLoss", "CircleLoss"])
        'MultiSimilarityLoss'
        >>> nearest_name("multisim", ["MultiSimilarityLoss", "CircleLoss"])
        'MultiSimilarityLoss'
        >>> nearest_name("photos", ["MultiSimilarityLoss"]) is None
        True
    """
    names, wanted = list(names), name.lower()
    close = difflib.get_close_matches(name, names, 1, cutoff=0.7)
    if not close:
        lower = {each.lower(): each for each in names}
        close = [lower[each] for each in difflib.get_close_matches(wanted, lower, 1, cutoff=0.6)]
    if not close:  # a common prefix counts more than missing letters: multisim, gem
        close = sorted((each for each in names if len(wanted) > 2 and wanted in each.lower()), key=len)
    return close[0] if close else None
