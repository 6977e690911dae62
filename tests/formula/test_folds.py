"""Folds: any tiling gives the same result, and an empty row gives the identity."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from likewise.formula import Count, Fold, LogSumExp, Max, Mean, Min, Sum

FOLDS = [LogSumExp(), Sum(), Mean(), Max(), Min(), Count()]


def plain(fold: Fold, values: list[float]) -> float:
    """What each fold is, in words of the standard library."""
    import math

    if isinstance(fold, LogSumExp):
        return math.log(sum(math.exp(v) for v in values))
    if isinstance(fold, Sum):
        return sum(values)
    if isinstance(fold, Mean):
        return sum(values) / len(values)
    if isinstance(fold, Max):
        return max(values)
    if isinstance(fold, Min):
        return min(values)
    return sum(v != 0 for v in values)


@pytest.mark.parametrize("fold", FOLDS, ids=lambda fold: fold.name)
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_any_tiling_gives_the_same(fold: Fold, data: st.DataObject):
    n = data.draw(st.integers(1, 9))
    values = torch.tensor([data.draw(st.lists(st.floats(-30, 30), min_size=n, max_size=n))], dtype=torch.float64)
    keep = torch.tensor([data.draw(st.lists(st.booleans(), min_size=n, max_size=n))])
    cut = data.draw(st.integers(0, n))
    whole = fold.fold_whole(values, keep)
    tiles = [fold.start(values[:, a:b], keep[:, a:b]) for a, b in ((0, cut), (cut, n)) if a < b]
    merged = tiles[0] if len(tiles) == 1 else fold.merge(*tiles)
    torch.testing.assert_close(fold.finish(merged), whole)
    kept = values[keep].tolist()
    if kept:
        assert whole.item() == pytest.approx(plain(fold, kept), abs=1e-9)


def test_an_empty_row_is_the_identity():
    values, keep = torch.ones(1, 3), torch.zeros(1, 3, dtype=torch.bool)
    results = {fold.name: fold.finish(fold.start(values, keep)).item() for fold in FOLDS}
    assert results.pop("logsumexp") < -1e38
    assert results == {"sum": 0.0, "mean": 0.0, "max": -torch.inf, "min": torch.inf, "count": 0}


BOTH_FORMS = pytest.mark.parametrize(
    "log_sum_exp",
    [LogSumExp().fold_whole, lambda *tile: LogSumExp().finish(LogSumExp().start(*tile))],
    ids=["whole", "state"],
)


@BOTH_FORMS
def test_log_sum_exp_of_an_empty_row_has_a_zero_gradient(log_sum_exp: Callable[..., Tensor]):
    values = torch.ones(2, 3, requires_grad=True)
    keep = torch.tensor([[False] * 3, [True] * 3])
    torch.nn.functional.softplus(log_sum_exp(values, keep)).sum().backward()
    assert values.grad[0].tolist() == [0.0] * 3
    assert torch.isfinite(values.grad).all()


@BOTH_FORMS
def test_log_sum_exp_neither_overflows_nor_crawls_through_denormals(log_sum_exp: Callable[..., Tensor]):
    values = torch.tensor([[1e4, 0.0, -1e4], [-1e4, -1e4 - 95.0, -2e4]], requires_grad=True)
    result = log_sum_exp(values, torch.ones(2, 3, dtype=torch.bool))
    result.sum().backward()
    assert result.tolist() == [1e4, -1e4]
    assert values.grad.round().tolist() == [[1.0, 0.0, 0.0], [1.0, 0.0, 0.0]]


@BOTH_FORMS
def test_weights_beside_a_huge_peak(log_sum_exp: Callable[..., Tensor]):
    """The logarithm of ten beside a hundred million is below its rounding; the weights must not be."""
    values = torch.full((1, 10), 1e8, requires_grad=True)
    log_sum_exp(values, torch.ones(1, 10, dtype=torch.bool)).sum().backward()
    torch.testing.assert_close(values.grad, torch.full((1, 10), 0.1))


@BOTH_FORMS
def test_derivatives_of_log_sum_exp(log_sum_exp: Callable[..., Tensor]):
    values = torch.tensor([[0.1, 2.0, -1.0], [0.5, 0.5, 3.0]], dtype=torch.float64, requires_grad=True)
    keep = torch.tensor([[True, True, True], [True, True, False]])
    assert torch.autograd.gradcheck(lambda v: log_sum_exp(v, keep), values)
    assert torch.autograd.gradgradcheck(lambda v: log_sum_exp(v, keep), values)


def test_ties_are_shared_among_those_kept():
    values, keep = torch.tensor([[3.0, 3.0, 1.0, 3.0]]), torch.tensor([[True, False, True, True]])
    fold = Max()
    left, right = (fold.start(values[:, cut], keep[:, cut]) for cut in (slice(0, 2), slice(2, 4)))
    assert fold.derivative(values, keep, fold.merge(left, right)).tolist() == [[0.5, 0.0, 0.0, 0.5]]


def test_counts_are_whole_numbers():
    count = Count()
    assert count.finish(count.start(torch.ones(1, 2), torch.ones(1, 2, dtype=torch.bool))).dtype == torch.int64
