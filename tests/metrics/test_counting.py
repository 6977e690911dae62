"""The two ways of counting, and the compiled one, against plain comparisons."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import torch
from torch import Tensor

from likewise.metrics import counting
from likewise.metrics.counting import Tally, compare, sort


def tile(height: int, width: int, slots: int, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
    """Similarities with ties and gaps, and thresholds of rows and of columns, some of them padding."""
    generator = torch.Generator().manual_seed(height * width + slots)
    similarities = torch.randint(-9, 10, (height, width), generator=generator).to(dtype) / 8
    similarities[torch.rand(height, width, generator=generator) < 0.1] = -torch.inf
    rows = torch.randint(-9, 10, (slots, height), generator=generator).to(dtype) / 8
    columns = torch.randint(-9, 10, (slots, width), generator=generator).to(dtype) / 8
    if slots:
        rows[-1, 0] = torch.inf
    return similarities, rows, columns


def by_hand(similarities: Tensor, thresholds: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    edges = thresholds[:, :, None] if dim == 2 else thresholds[:, None, :]
    return (similarities > edges).sum(dim).double(), (similarities >= edges).sum(dim).double()


SHAPES = [(1, 1, 1), (3, 5, 2), (64, 128, 3), (65, 130, 4), (200, 33, 7), (16, 16, 0)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("height", "width", "slots"), SHAPES)
def test_comparing(height: int, width: int, slots: int, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(counting, "SLICE", 100)
    similarities, row_edges, column_edges = tile(height, width, slots, dtype)
    rows, columns = Tally.of(row_edges), Tally.of(column_edges)
    scratch = torch.empty(max(100, width))
    compare(similarities, rows, columns, scratch)
    compare(similarities, rows, None, scratch)  # tallies go on from where they were
    above, reached = by_hand(similarities, row_edges, 2)
    assert torch.equal(rows.above, 2 * above)
    assert torch.equal(rows.reached, 2 * reached)
    assert torch.equal(rows.tied, (2 * (reached - above)).long())
    above, reached = by_hand(similarities, column_edges, 1)
    assert torch.equal(columns.above, above)
    assert torch.equal(columns.reached, reached)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("height", "width", "slots"), SHAPES)
def test_sorting(height: int, width: int, slots: int, dtype: torch.dtype):
    similarities, edges, _ = tile(height, width, slots, dtype)
    above, reached = by_hand(similarities, edges, 2)
    rows = Tally.of(edges)
    sort(similarities, rows)
    assert torch.equal(rows.above, above)
    assert torch.equal(rows.reached, reached)


def test_counts_beyond_float32():
    """Seventeen million and three ones; float32 cannot say that."""
    similarities = torch.ones(1, 17_000_003)
    rows = Tally.of(torch.zeros(1, 1))
    compare(similarities, rows, None, torch.empty(counting.LONGEST))
    assert rows.above.item() == 17_000_003


KERNEL = """
import torch
from likewise.metrics.counting import Tally
from likewise.metrics.kernel import count
from tests.metrics.test_counting import SHAPES, by_hand, tile

for dtype in (torch.float32, torch.float64):
    for height, width, slots in SHAPES:
        similarities, row_edges, column_edges = tile(height, width, slots, dtype)
        rows, columns = Tally.of(row_edges), Tally.of(column_edges)
        wide = torch.full((height, width + 3), torch.inf, dtype=dtype)
        wide[:, :width] = similarities
        count(wide[:, :width], rows, columns)
        count(similarities, None, columns)
        count(similarities, rows, None)
        for tally, dim in ((rows, 2), (columns, 1)):
            above, reached = by_hand(similarities, tally.thresholds, dim)
            assert torch.equal(tally.above, 2 * above), (height, width, slots, dim)
            assert torch.equal(tally.reached, 2 * reached), (height, width, slots, dim)
print("counted")
"""


def test_the_compiled_counter_in_the_interpreter():
    """Triton's interpreter runs the kernel on the CPU; it must be switched on before Triton is imported."""
    pytest.importorskip("triton")
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    result = subprocess.run([sys.executable, "-c", KERNEL], env=environment, capture_output=True, text=True)
    assert result.stdout.strip() == "counted", result.stderr
