"""The chunk planner: chunks are as large as the budget allows, and they cover everything once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise.metrics.chunks import fit_rows, split_pairs, split_rows


@given(
    budget=st.integers(-(2**20), 2**40),
    per_row=st.integers(0, 2**20),
    per_pair=st.integers(0, 2**10),
)
def test_rows_are_the_most_that_fit(budget: int, per_row: int, per_pair: int):
    """One row is the least, because a chunk of no rows would never finish."""
    if not per_row and not per_pair:
        per_row = 1
    rows = fit_rows(budget, per_row=per_row, per_pair=per_pair)
    assert rows >= 1
    assert rows == 1 or per_row * rows + per_pair * rows**2 <= budget
    assert per_row * (rows + 1) + per_pair * (rows + 1) ** 2 > budget


@pytest.mark.parametrize("count", [0, 1, 5, 6, 7])
@pytest.mark.parametrize("size", [1, 3, 7])
def test_chunks_cover_each_row_once(count: int, size: int):
    chunks = split_rows(count, size)
    assert [row for chunk in chunks for row in range(count)[chunk]] == list(range(count))
    assert all(1 <= chunk.stop - chunk.start <= size for chunk in chunks)


@pytest.mark.parametrize("size", [1, 2, 5, 9])
def test_chunks_of_a_matrix_cover_each_pair_once(size: int):
    pairs = [(i, j) for rows, columns in split_pairs(7, 5, size) for i in range(7)[rows] for j in range(5)[columns]]
    assert sorted(pairs) == [(i, j) for i in range(7) for j in range(5)]


@pytest.mark.parametrize("size", [1, 2, 5, 9])
def test_upper_chunks_cover_each_unordered_pair_once(size: int):
    """Chunks on the diagonal are complete; their lower triangles are the caller's to ignore."""
    pairs = [
        (i, j)
        for rows, columns in split_pairs(7, 7, size, upper=True)
        for i in range(7)[rows]
        for j in range(7)[columns]
    ]
    assert sorted(pair for pair in pairs if pair[0] <= pair[1]) == [(i, j) for i in range(7) for j in range(i, 7)]
    assert all(i <= j or i // size == j // size for i, j in pairs)
