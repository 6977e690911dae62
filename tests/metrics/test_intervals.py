from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats
import torch

from likewise.metrics.intervals import Interval, bootstrap, t_interval, t_quantile


@pytest.mark.parametrize("confidence", [0.1, 0.5, 0.8, 0.95, 0.99, 0.9999])
def test_t_quantiles_are_scipys(confidence):
    degrees = [*range(1, 60), *range(61, 1000, 47), 999, 1000, 1001, 1002, 2500, 10**5, 10**9]
    expected = scipy.stats.t.ppf((1.0 + confidence) / 2.0, degrees)
    found = [t_quantile(confidence, each) for each in degrees]
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def test_t_quantiles_of_a_printed_table():
    """Two-sided 95%, as in the back of any statistics book."""
    table = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 9: 2.262, 30: 2.042, 120: 1.980}
    assert {degrees: round(t_quantile(0.95, degrees), 3) for degrees in table} == table


@pytest.mark.parametrize("count", [2, 3, 10, 101])
@pytest.mark.parametrize("confidence", [0.5, 0.95])
def test_t_interval_is_scipys(count, confidence):
    values = np.random.default_rng(count).normal(0.6, 0.02, count)
    expected = scipy.stats.t.interval(confidence, count - 1, loc=values.mean(), scale=scipy.stats.sem(values))
    found = t_interval(values, confidence)
    np.testing.assert_allclose([found.low, found.high], expected, rtol=1e-12)
    assert found.mean == pytest.approx(values.mean(), rel=1e-14)
    assert (found.confidence, found.count) == (confidence, count)
    assert t_interval(values.tolist(), confidence) == t_interval(torch.from_numpy(values), confidence) == found


def test_one_repeat_has_an_infinite_interval():
    assert t_interval([0.5]) == Interval(0.5, -math.inf, math.inf, 0.95, 1)
    assert bootstrap([0.5]) == Interval(0.5, -math.inf, math.inf, 0.95, 1)
    assert bootstrap([0.5, 0.75], groups=torch.tensor([3, 3])) == Interval(0.625, -math.inf, math.inf, 0.95, 1)


def test_equal_values_have_no_width():
    assert t_interval([0.25] * 5) == Interval(0.25, 0.25, 0.25, 0.95, 5)
    assert bootstrap([0.25] * 5) == Interval(0.25, 0.25, 0.25, 0.95, 5)


def test_an_interval_prints_itself():
    assert str(t_interval([0.61, 0.63, 0.62, 0.64])) == "0.625 [0.6045, 0.6455]"


@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_bootstrap_is_scipys_within_monte_carlo_error(confidence):
    values = np.random.default_rng(0).beta(0.5, 0.5, 200)
    theirs = scipy.stats.bootstrap(
        (values,), np.mean, n_resamples=20_000, confidence_level=confidence, method="percentile", rng=1
    )
    found = bootstrap(values, samples=20_000, confidence=confidence)
    expected = theirs.confidence_interval
    # the standard error of a quantile of 20,000 draws is about 2% of the standard error of the mean
    np.testing.assert_allclose([found.low, found.high], expected, atol=0.08 * theirs.standard_error)
    assert found.mean == pytest.approx(values.mean())
    assert found.count == 200


def test_bootstrap_of_another_statistic():
    values = np.random.default_rng(0).exponential(size=101)
    theirs = scipy.stats.bootstrap((values,), np.median, n_resamples=5000, method="percentile", rng=1)
    found = bootstrap(values, lambda drawn: drawn.median(dim=-1).values, samples=5000)
    np.testing.assert_allclose([found.low, found.high], theirs.confidence_interval, atol=0.3 * theirs.standard_error)
    assert found.mean == np.median(values)


def test_grouped_bootstrap_against_a_loop():
    """Whole classes are drawn, so a statistic sees all queries of a class or none, as often as it was drawn."""
    generator = np.random.default_rng(0)
    groups = generator.integers(-3, 4, 60) * 2**30
    values = generator.random(60) + groups / 2**31
    by_class = [values[groups == each] for each in np.unique(groups)]
    drawn = []
    for _ in range(4000):
        chosen = generator.integers(len(by_class), size=len(by_class))
        drawn.append(np.concatenate([by_class[index] for index in chosen]).mean())
    found = bootstrap(values, groups=groups, samples=4000)
    expected = np.quantile(drawn, [0.025, 0.975])
    np.testing.assert_allclose([found.low, found.high], expected, atol=0.1 * np.std(drawn))
    assert found.count == len(by_class)
    # a function of one's own, one draw after the other, sees the same draws
    slow = bootstrap(values, lambda each: each.mean(dim=-1), groups=groups, samples=4000)
    np.testing.assert_allclose([slow.low, slow.high, slow.mean], [found.low, found.high, found.mean], rtol=1e-12)


def coverage(shared: float, groups: np.ndarray | None) -> float:
    """How many of 300 intervals contain the true mean, zero; the 5 queries of a class may share a difficulty."""
    generator = np.random.default_rng(0)
    classes = np.repeat(np.arange(40), 5)
    hits = 0
    for trial in range(300):
        values = generator.normal(size=200) + shared * generator.normal(size=40)[classes]
        found = bootstrap(values, groups=groups, samples=300, seed=trial)
        hits += found.low <= 0.0 <= found.high
    return hits / 300


def test_about_95_of_100_intervals_contain_the_truth():
    assert 0.90 <= coverage(0.0, None) <= 0.985


def test_queries_of_one_class_are_not_independent():
    assert coverage(1.0, None) < 0.85
    assert 0.90 <= coverage(1.0, np.repeat(np.arange(40), 5)) <= 0.985


def test_the_difference_of_two_methods_is_sharper_than_either():
    generator = torch.Generator().manual_seed(0)
    hardness = torch.rand(500, generator=generator)
    one, two = hardness, hardness - 0.01 + 0.01 * torch.randn(500, generator=generator)
    difference = bootstrap(one - two)
    assert difference.low > 0.0
    assert bootstrap(one).low < bootstrap(two).high


def test_bootstrap_is_deterministic_and_chunks_do_not_matter():
    values = torch.rand(100, generator=torch.Generator().manual_seed(0))
    groups = torch.arange(100) // 7
    whole = bootstrap(values, seed=3)
    assert bootstrap(values, seed=3) == whole
    assert bootstrap(values, seed=4) != whole
    small = bootstrap(values, seed=3, memory=1)
    np.testing.assert_allclose([small.low, small.high], [whole.low, whole.high], rtol=1e-12)
    grouped = bootstrap(values, groups=groups)
    assert bootstrap(values, groups=groups, memory=1) == grouped


def test_repeated_draws_leave_the_global_generator_alone():
    before = torch.get_rng_state()
    bootstrap([1.0, 2.0, 3.0])
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda: t_interval([]), ValueError, r"values must be one or more numbers in a row, but the shape is \(0,\)"),
        (lambda: t_interval([0.1, math.nan]), ValueError, "values must be finite, but entry 1 is nan"),
        (lambda: t_interval(["a"]), TypeError, "values must hold numbers, but its dtype is"),
        (lambda: t_interval([1.0, 2.0], 95), ValueError, "confidence must be between 0 and 1, but it is 95"),
        (lambda: bootstrap(torch.zeros(2, 2)), ValueError, r"but the shape is \(2, 2\)"),
        (lambda: bootstrap([1.0, 2.0], samples=0), ValueError, "samples must be a whole number ≥ 1, but it is 0"),
        (
            lambda: bootstrap([1.0, 2.0], groups=torch.zeros(3, dtype=torch.int64)),
            ValueError,
            "groups must have one entry",
        ),
        (
            lambda: bootstrap([1.0, 2.0], torch.mean),
            ValueError,
            r"statistic must take values of shape \(1, 2\) to shape \(1,\), but it gave the shape \(\)",
        ),
        (lambda: bootstrap([1.0, 2.0], lambda each: 1.0), ValueError, "but it gave a float"),
        (lambda: t_quantile(0.95, 0), ValueError, "degrees must be a whole number ≥ 1, but it is 0"),
    ],
)
def test_refusals(call, kind, message):
    with pytest.raises(kind, match=message):
        call()
