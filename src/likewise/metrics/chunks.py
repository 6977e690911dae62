"""Chunk planning: how many rows fit a budget, and where rows are split."""

from __future__ import annotations

from math import isqrt

MEMORY = 2**28
"""Default memory budget of an evaluation, in bytes, on top of its inputs and its result: 256 MiB."""


def fit_rows(budget: int, *, per_row: int = 0, per_pair: int = 0) -> int:
    """Return the largest n with ``per_row · n + per_pair · n² ≤ budget``, and at least 1.

    Args:
        budget: bytes, or entries, that one chunk may take.
        per_row: cost of one row, in the same unit.
        per_pair: cost of one entry of an ``(n, n)`` matrix, in the same unit; at least one of the costs is positive.

    Examples:
        >>> fit_rows(1000, per_row=48), fit_rows(1000, per_pair=10), fit_rows(1000, per_row=48, per_pair=10)
        (20, 10, 7)
        >>> fit_rows(0, per_row=48)
        1
    """
    if budget <= 0:
        return 1
    if not per_pair:
        return max(1, budget // per_row)
    # the positive root of per_pair · n² + per_row · n − budget, rounded down in integers
    return max(1, (isqrt(per_row**2 + 4 * per_pair * budget) - per_row) // (2 * per_pair))


def split_rows(count: int, size: int) -> list[slice]:
    """Split ``count`` rows into chunks of ``size``; the last chunk may be smaller.

    Examples:
        >>> split_rows(5, 2)
        [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    return [slice(start, min(start + size, count)) for start in range(0, count, size)]


def split_pairs(rows: int, columns: int, size: int, *, upper: bool = False) -> list[tuple[slice, slice]]:
    """Split a ``(rows, columns)`` matrix into square chunks of ``size``; ``upper`` skips chunks below the diagonal.

    Examples:
        >>> len(split_pairs(5, 5, 2)), len(split_pairs(5, 5, 2, upper=True))
        (9, 6)
    """
    return [
        (row_chunk, column_chunk)
        for row_chunk in split_rows(rows, size)
        for column_chunk in split_rows(columns, size)
        if not upper or column_chunk.start >= row_chunk.start
    ]
