"""Counting by comparing, by sorting and by the Triton kernel, against plain comparisons."""

from __future__ import annotations

from itertools import product

import pytest
import torch
from tests.metrics.interpreter import run_interpreted
from torch import Tensor

from likewise.metrics import merged_counts, retrieval, threshold_counts
from likewise.metrics.merged_counts import find_first, get_lowest, make_keys, rank_merged
from likewise.metrics.positives import Ties
from likewise.metrics.row_counts import select_largest
from likewise.metrics.threshold_counts import ThresholdCounts, count_by_comparing, count_by_sorting, make_scratch


def make_case(height: int, width: int, count: int, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
    """Similarities with ties and gaps, and thresholds of rows and of columns, some of them padding."""
    generator = torch.Generator().manual_seed(height * width + count)
    similarities = torch.randint(-9, 10, (height, width), generator=generator).to(dtype) / 8
    similarities[torch.rand(height, width, generator=generator) < 0.1] = -torch.inf
    rows = torch.randint(-9, 10, (count, height), generator=generator).to(dtype) / 8
    columns = torch.randint(-9, 10, (count, width), generator=generator).to(dtype) / 8
    if count:
        rows[-1, 0] = torch.inf
    return similarities, rows, columns


def by_hand(similarities: Tensor, thresholds: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    edges = thresholds[:, :, None] if dim == 2 else thresholds[:, None, :]
    return (similarities > edges).sum(dim).double(), (similarities >= edges).sum(dim).double()


SHAPES = [(1, 1, 1), (3, 5, 2), (64, 128, 3), (65, 300, 4), (200, 33, 7), (700, 9, 2), (16, 16, 0), (3, 2100, 6)]


@pytest.mark.parametrize("compare", ["_compare_with_words", "_compare_with_floats"])
def test_comparing_and_sorting(monkeypatch: pytest.MonkeyPatch, compare: str):
    """Also as on devices without Triton."""
    monkeypatch.setattr(threshold_counts, "_compare_with_words", getattr(threshold_counts, compare))
    monkeypatch.setattr(threshold_counts, "CHUNK_ENTRIES", 100)
    monkeypatch.setattr(threshold_counts, "MAX_WORDS", 9)
    for (height, width, count), dtype in product(SHAPES, (torch.float32, torch.float64)):
        similarities, row_edges, column_edges = make_case(height, width, count, dtype)
        rows, columns = ThresholdCounts.start(row_edges), ThresholdCounts.start(column_edges)
        scratch = make_scratch(similarities.device, 8 * height * width)
        count_by_comparing(similarities, rows, columns, scratch)
        count_by_comparing(similarities, rows, None, scratch)  # counts accumulate
        above, reached = by_hand(similarities, row_edges, 2)
        assert torch.equal(rows.above, 2 * above)
        assert torch.equal(rows.ties, 2 * (reached - above))
        edge_above, edge_reached = by_hand(similarities, column_edges, 1)
        assert torch.equal(columns.above, edge_above)
        assert torch.equal(columns.ties, edge_reached - edge_above)
        rows, columns = ThresholdCounts.start(row_edges), ThresholdCounts.start(column_edges)
        view = torch.nn.functional.pad(similarities, (0, 2))[:, :width]
        count_by_sorting(view, rows, columns, scratch)
        count_by_sorting(similarities, rows)
        assert torch.equal(rows.above, 2 * above)
        assert torch.equal(rows.ties, 2 * (reached - above))
        assert torch.equal(columns.above, edge_above)
        assert torch.equal(columns.ties, edge_reached - edge_above)


def test_keys_of_both_widths_order_as_similarities_do():
    """Neighbors among float32 numbers, subnormal numbers and both zeros; infinity makes the keys of a row int64."""
    steps = torch.arange(-3, 4, dtype=torch.int32)
    near = [(torch.tensor(value).view(torch.int32) + steps).view(torch.float32) for value in (1.0, 0.3, 1e-38, 1e-44)]
    values = torch.cat([*near, torch.tensor([0.0, 1.4999999])])
    values = torch.cat([values, -values])
    values = values[values.isfinite() & (values.abs() < 1.5)][None]
    wide = torch.cat([values, torch.tensor([[torch.inf]])], dim=1)
    for row, dtype in ((values, torch.int32), (wide, torch.int64)):
        keys = make_keys(row)[0].long()
        assert make_keys(row).dtype == dtype
        assert torch.equal(keys[:, None] < keys, row[0, :, None] > row[0])  # the highest similarity first
        assert torch.equal(keys[:, None] == keys, row[0, :, None] == row[0])
        assert bool((keys & 1).all())
        assert bool((keys < get_lowest(make_keys(row))).all())


@pytest.mark.parametrize("levels", [1, 3, 40, 10**6])
def test_merged_ranks_and_ties(monkeypatch: pytest.MonkeyPatch, levels: int):
    """Ranks, flags of the first entries, ties and counts against plain comparisons."""
    monkeypatch.setattr(merged_counts, "CACHE_KEYS", 150)
    generator = torch.Generator().manual_seed(levels)
    values = torch.randint(-levels, levels + 1, (9, 50), generator=generator) / (levels * 2.0)
    kinds = torch.randint(0, 3, values.shape, generator=generator)  # positives, negatives, neither
    kinds[0], kinds[1] = 1, 0
    keys = make_keys(values) ^ (kinds == 0)
    keys.masked_fill_(kinds == 2, get_lowest(keys))
    ranks, alike = [], []
    for row, kind in zip(values, kinds, strict=True):
        positives, negatives = row[kind == 0].sort(descending=True).values, row[kind == 1]
        ranks.append(1.0 + torch.arange(len(positives)) + (negatives > positives[:, None]).sum(dim=1))
        alike.append((negatives == positives[:, None]).sum(dim=1))

    rank, ties, counts = rank_merged(keys.clone(), 50)
    assert torch.equal(counts, (kinds == 0).sum(dim=1))
    for column, (expected, tied) in enumerate(zip(ranks, alike, strict=True)):
        assert torch.equal(rank[: len(expected), column], expected.double())
        assert bool(rank[len(expected) :, column].isinf().all())
        assert list_ties(ties, column) == list_positive(tied)

    for first in (1, 7, 44, 50, 60):
        flags, (ties, tied_ranks), counts = find_first(keys.clone(), first)
        assert torch.equal(counts, (kinds == 0).sum(dim=1))
        for row, (expected, tied) in enumerate(zip(ranks, alike, strict=True)):
            assert (1 + flags[row].nonzero()[0]).tolist() == expected[expected <= first].tolist()
            # of ties that begin among the first entries, at least
            found, wanted = list_ties(ties, row), list_positive(tied)
            assert [each for each in found if expected[each[0]] <= first] == [
                each for each in wanted if expected[each[0]] <= first
            ]
            assert set(found) <= set(wanted)
        if ties is not None:
            assert tied_ranks.tolist() == [
                ranks[row][place] for row, place in zip(ties.query, ties.position, strict=True)
            ]


def list_ties(ties: Ties | None, query: int) -> list[tuple[int, int]]:
    """The position and the number of negatives of each tie of a query."""
    if ties is None:
        return []
    assert torch.equal(ties.query, ties.query.sort().values)
    return list(zip(ties.position[ties.query == query].tolist(), ties.tied[ties.query == query].tolist(), strict=True))


def list_positive(tied: Tensor) -> list[tuple[int, int]]:
    return [(position, number) for position, number in enumerate(tied.tolist()) if number]


def test_counts_beyond_float32():
    """Float32 cannot represent the sum of 17,000,003 ones."""
    similarities = torch.ones(1, 17_000_003)
    rows = ThresholdCounts.start(torch.zeros(1, 1))
    count_by_comparing(similarities, rows, None, make_scratch(similarities.device, 4 * 17_000_003))
    assert rows.above.item() == 17_000_003


KERNEL = """
import torch
from likewise.metrics.threshold_counts import ThresholdCounts, count_by_comparing, make_scratch
from likewise.metrics import triton_counts
from likewise.metrics.triton_counts import count_on_device
from tests.metrics.test_threshold_counts import SHAPES, by_hand, make_case

scratch = make_scratch(torch.device("cpu"), 0)
tile = triton_counts.ROW_TILE
triton_counts.ROW_TILE = tile._replace(lines=64)  # fewer programs, which the interpreter runs one by one
for dtype in (torch.float32, torch.float64):
    for height, width, count in SHAPES:
        similarities, row_edges, column_edges = make_case(height, width, count, dtype)
        rows, columns = ThresholdCounts.start(row_edges), ThresholdCounts.start(column_edges)
        wide = torch.full((height, width + 3), torch.inf, dtype=dtype)
        wide[:, :width] = similarities
        count_on_device(wide[:, :width], rows, columns)
        count_on_device(similarities, None, columns)
        count_on_device(similarities, rows, None)
        excluded = torch.arange(height) % width, torch.arange(height) % width + 2
        rest = ThresholdCounts.start(row_edges)
        count_on_device(similarities, rest, None, excluded)
        count_by_comparing(similarities.clone(), again := ThresholdCounts.start(row_edges), None, scratch, excluded)
        assert torch.equal(rest.above, again.above) and torch.equal(rest.ties, again.ties)
        for counts, dim in ((rows, 2), (columns, 1)):
            above, reached = by_hand(similarities, counts.thresholds, dim)
            assert torch.equal(counts.above, 2 * above), (height, width, count, dim)
            assert torch.equal(counts.ties, 2 * (reached - above)), (height, width, count, dim)
zeros = torch.tensor([[0.0, -0.0], [-0.0, 0.0]]).T.contiguous()
alike = ThresholdCounts.start(zeros)
count_on_device(torch.tensor([[0.0, -0.0, 1.0], [-0.0, 0.0, -1.0]]), alike, None)
assert alike.above.tolist() == [[1, 0], [1, 0]] and alike.ties.tolist() == [[2, 2], [2, 2]]
triton_counts.ROW_TILE = tile
powers = 2.0 ** torch.arange(-149.0, 128.0, 23.0, dtype=torch.float64)
edges = torch.cat([powers, 1.37 * powers[1:], torch.tensor([0.0, torch.finfo(torch.float32).max])]).float()
edges = torch.cat([edges, -edges])
near = torch.stack([edges, edges.nextafter(edges + torch.inf), edges.nextafter(edges - torch.inf)]).T
others = torch.tensor([-torch.inf, torch.nan, 0.0, -0.0, 1e-45, -1e-45, 3e38, -3e38]).expand(len(edges), -1)
line = torch.cat([near.repeat(1, 50), others, near.flip(1)], dim=1)  # more than one tile
alone = torch.cat([near, others], dim=1)  # every edge, its neighbors and the others, in programs that compare with one threshold
for k, edge in enumerate(edges):
    counts = ThresholdCounts.start(edge.repeat(1, 1))
    count_on_device(alone[k : k + 1], counts, None)
    above, reached = by_hand(alone[k : k + 1], counts.thresholds, 2)
    assert torch.equal(counts.above, above) and torch.equal(counts.ties, reached - above), edge
    if k % 6 == 0 or edge == edges.min():
        counts = ThresholdCounts.start(edge.repeat(1, 256))
        count_on_device(alone[k : k + 1].T.repeat(1, 256), None, counts)
        assert (counts.above == above).all() and (counts.ties == reached - above).all(), edge
for order in (torch.arange(len(edges)), torch.randperm(len(edges), generator=torch.Generator().manual_seed(0))):
    rows = ThresholdCounts.start(edges[None, order])  # programs of like thresholds, and of others
    count_on_device(line[order], rows, None)
    columns = ThresholdCounts.start(edges[None, order])
    count_on_device(line[order].T, None, columns)
    above, reached = by_hand(line[order], rows.thresholds, 2)
    for counts in (rows, columns):
        assert torch.equal(counts.above, above) and torch.equal(counts.ties, reached - above)
padding = ThresholdCounts.start(torch.full((2, 4), torch.inf))
count_on_device(line[:4], padding, None)
assert not padding.above.any() and not padding.ties.any()
print("counted")
"""


def test_triton_kernel_in_the_interpreter():
    """Triton's interpreter runs the kernel on the CPU; it must be enabled before Triton is imported."""
    assert run_interpreted(KERNEL) == "counted"


def test_no_positive_among_the_first():
    """Every query's nearest reference is of the other class."""
    queries, references = torch.eye(2), torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    scores = retrieval(queries, torch.tensor([0, 1]), references, torch.tensor([1, 0]), metrics=("R@1",))
    assert scores["R@1"] == 0.0


@pytest.mark.parametrize(("width", "k"), [(1, 1), (7, 7), (100, 3), (1003, 9), (4096, 64)])
def test_select_largest(width: int, k: int) -> None:
    """Directly and by groups, with columns outside of all groups, ties and rows of few finite entries."""
    values = torch.randn(5, width, generator=torch.Generator().manual_seed(0))
    values[1] = values[1].round()
    values[2, 1:] = -torch.inf
    values[3] = torch.arange(width, 0, -1)
    expected = values.topk(k, dim=1).values
    assert torch.equal(select_largest(values, k).sort(dim=1, descending=True).values, expected)
