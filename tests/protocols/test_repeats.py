"""Means, intervals and comparisons, against scipy and against counting by hand."""

from __future__ import annotations

from itertools import product
from math import isinf, sqrt
from typing import Any

import numpy as np
import pytest
from scipy import stats

from likewise.protocols import rank
from likewise.protocols.pairs import NoPairs, compare, compare_all, compare_sides
from likewise.protocols.repeats import format_percent, name_of, shared_labels, summarize
from likewise.protocols.significance import flip_p, holm, paired_p
from likewise.testing import loop_over
from studies.published import published

METRIC = "test MAP@R"


def row(method: str, seed: int | None, value: Any, fold: int = 0, **more: Any) -> dict[str, Any]:
    return {"method": method, "seed": seed, "fold": fold, METRIC: value, **more}


def table(**scores: Any) -> list[dict[str, Any]]:
    return [row(method, seed, value) for method, several in scores.items() for seed, value in enumerate(several)]


# ---- summaries


@loop_over("count", [2, 3, 5, 10, 40])
def test_the_interval_is_students(count: int):
    values = np.random.default_rng(count).normal(0.4, 0.02, count)
    [found] = summarize(table(a=values), METRIC, confidence=0.9)
    low, high = stats.t.interval(0.9, count - 1, values.mean(), stats.sem(values))
    assert (found.interval.mean, found.interval.low, found.interval.high) == pytest.approx((values.mean(), low, high))
    assert found.interval.count == count


def test_folds_are_combined_before_seeds():
    """Ten seeds of four folds are ten repeats, not forty."""
    values = np.random.default_rng(0).normal(0.2, 0.01, (10, 4))
    rows = [row("a", seed, values[seed, fold], fold) for seed, fold in product(range(10), range(4))]
    [found] = summarize(rows)
    means = values.mean(axis=1)
    expected = stats.t.interval(0.95, 9, means.mean(), stats.sem(means))
    assert (found.interval.low, found.interval.high) == pytest.approx(expected)
    assert found.interval.count == 10
    assert found.folds == (0, 1, 2, 3)
    assert list(found.scores.values()) == pytest.approx(means)


def test_a_seed_without_all_its_folds_is_left_out_and_counted():
    rows = [row("a", seed, 0.1 * seed, fold) for seed in (1, 2, 3) for fold in (0, 1)][:-1]
    [found] = summarize(rows)
    assert (set(found.scores), found.incomplete) == ({1, 2}, 1)
    assert found.interval.mean == pytest.approx(0.15)


def test_one_seed_has_no_interval_and_says_so():
    [found] = summarize([row("a", 0, 0.5)])
    assert isinf(found.interval.low)
    assert str(found) == "a: 50.00 (one seed: no interval)"


def test_two_seeds_have_no_interval_and_no_verdict():
    """Even where the interval of Student's t would lie above zero: one difference decides how wide it is."""
    scores = {"a": (0.50, 0.501), "b": (0.40, 0.401)}
    rows = [{"method": m, "seed": s, "test R@1": each[s]} for m, each in scores.items() for s in range(2)]
    assert str(summarize(rows, "test R@1")[0]) == "a: 50.05 (2 seeds: no interval)"
    compared = compare(rows, "a", "b", "test R@1")
    assert compared.difference.low > 0.0
    assert compared.verdict == "not distinguishable"
    assert str(compared) == (
        "a and b are not distinguishable by R@1 (a is 10.0 points above, 2 pairs: at least 3 are needed)"
    )
    board = rank(rows, metric="test R@1").text()
    assert "interval over" in board
    assert " to " not in board.replace("too few to", "")


def test_failed_trainings_are_counted_not_averaged():
    rows = [*table(a=(0.5, 0.6)), row("a", 2, None) | {"status": "failed"}, row("b", 0, None) | {"status": "failed"}]
    [found] = summarize(rows)
    assert (found.interval.mean, found.failed) == (pytest.approx(0.55), 1)


def test_stages_are_not_mixed():
    rows = [row("a", 0, 0.5, stage="final"), row("a", 0, 0.1, stage="search"), row("a", 0, 0.2, stage="search", fold=1)]
    assert summarize(rows)[0].interval.mean == 0.5
    assert summarize(rows, stage="search")[0].interval.mean == pytest.approx(0.15)


def test_settings_are_not_mixed():
    rows = [row("a", 0, 0.5, dim=64), row("a", 1, 0.6, dim=128)]
    with pytest.raises(
        ValueError, match=r"^rows of 'a' must be repeats of one setting, but they differ in dim \(64, 128\)"
    ):
        summarize(rows)
    assert [each.name for each in summarize(rows, by=("method", "dim"))] == ["a, dim 64", "a, dim 128"]
    with pytest.raises(ValueError, match=r"differ in loss\.alpha"):
        summarize([row("a", 0, 0.5) | {"loss.alpha": 1.0}, row("a", 1, 0.6) | {"loss.alpha": 2.0}])


@loop_over(
    "rows, message",
    [
        ([row("a", 0, 0.5), row("a", 0, 0.6)], "'a' has two of seed 0, fold 0"),
        ([row("a", 0, 0.5), row("a", 1, float("nan"))], r"that of 'a' \(seed 1, fold 0\) is nan"),
        ([row("a", 0, 0.5), row("a", 1, None)], "is None"),
        ([row("a", 0, 0.5), row("a", 1, True)], "is True"),
        ([row("a", 0, 0.5), row("a", 1, "0.6")], "is '0.6'"),
        ([], "none"),
        ([{"method": "a", "seed": 0, "test R@1": 0.5}], r"\(test R@1\), but it is 'test MAP@R'"),
    ],
)
def test_bad_rows_are_refused_in_one_sentence(rows: list[dict[str, Any]], message: str):
    with pytest.raises(ValueError, match=message):
        summarize(rows)


@loop_over("metric", ["seconds", "openings", "MAP@R", "dim"])
def test_only_metrics_of_which_more_is_better_can_be_compared(metric: str):
    rows = [row("a", 0, 0.5, seconds=3.0, openings=1, dim=64)]
    with pytest.raises(ValueError, match="metric must be one of"):
        summarize(rows, metric)


def test_names_and_labels():
    assert name_of({"method": "a", "dim": 64}, ("method", "dim")) == "a, dim 64"
    assert shared_labels([row("a", 0, 0.5, dim=64, loss="L", run="r", year=2019) | {"loss.alpha": 2.0}]) == ["dim"]
    assert (
        format_percent(summarize(table(a=(0.2, 0.22, 0.21)))[0].interval)
        == "21.00 (95% interval 18.52 to 23.48, 3 seeds)"
    )


# ---- p-values


@loop_over("degrees", [1, 2, 3, 4, 7, 30, 500, 5000])
@loop_over("t", [1e-6, 0.1, 0.9, 1.7, 3.0, 10.0, 200.0])
def test_the_p_value_is_students_far_into_its_tails(degrees: int, t: float):
    """Differences are made so that their t is the one wanted."""
    steps = np.linspace(-1.0, 1.0, degrees + 1)
    values = steps + t * steps.std(ddof=1) / sqrt(degrees + 1)
    expected = stats.ttest_1samp(values, 0.0).pvalue
    assert paired_p(values.tolist()) == pytest.approx(expected, rel=1e-9, abs=1e-300)


def test_p_of_degenerate_differences():
    assert paired_p([0.5]) is None
    assert paired_p([0.0, 0.0, 0.0]) == 1.0
    assert paired_p([0.25, 0.25]) == 0.0
    assert flip_p([0.0, 0.0]) == 1.0
    assert flip_p([0.25]) == 1.0


@loop_over("count", [1, 2, 5, 8, 11])
def test_sign_flips_are_counted(count: int):
    values = np.random.default_rng(count).normal(0.3, 1.0, count).round(2)
    flipped = [abs(sum(s * v for s, v in zip(signs, values, strict=True))) for signs in product((1, -1), repeat=count)]
    expected = sum(each >= abs(values.sum()) - 1e-9 for each in flipped) / 2**count
    assert flip_p(values.tolist()) == expected


def test_sign_flips_agree_with_scipy():
    values = np.random.default_rng(7).normal(0.5, 1.0, 9)
    expected = stats.permutation_test((values,), np.mean, permutation_type="samples", n_resamples=np.inf).pvalue
    assert flip_p(values.tolist()) == pytest.approx(expected)


def test_ties_among_sign_flips_count_whatever_floats_make_of_them():
    """0.1 + 0.2 − 0.3 is not zero for floats: of eight signs, the two with the largest sum and no other are as far."""
    assert flip_p([0.1, 0.2, 0.3]) == 2 / 8
    assert flip_p([0.1, 0.2, -0.3]) == 1.0


def test_many_sign_flips_are_drawn():
    values = np.random.default_rng(1).normal(0.4, 1.0, 20)
    sums = np.zeros(1)
    for value in values:
        sums = np.concatenate([sums + value, sums - value])
    exact = (np.abs(sums) >= abs(values.sum()) - 1e-9).mean()
    drawn = flip_p(values.tolist())
    assert drawn == pytest.approx(exact, abs=5 * sqrt(exact / 2**16))
    assert drawn == flip_p(values.tolist()), "the draws have a seed"
    assert flip_p([1.0] * 20) > 0.0, "a drawn p-value is never zero"


def test_holm_by_its_definition():
    """Reject in order of size while p ≤ α / (m − i): the adjusted value is the smallest α that rejects."""
    chance = np.random.default_rng(3)
    for count in (1, 2, 5, 12):
        values = chance.uniform(0.0, 0.2, count).round(3)
        adjusted = holm(values.tolist())
        for alpha in np.linspace(0.001, 0.999, 97):
            rejected: set[int] = set()
            for place, index in enumerate(np.argsort(values, kind="stable")):
                if values[index] > alpha / (count - place):
                    break
                rejected.add(int(index))
            assert {index for index, value in enumerate(adjusted) if value <= alpha} == rejected
    assert holm([]) == []
    with pytest.raises(ValueError, match=r"^p_values must be between 0 and 1, but one of them is 1\.5"):
        holm([0.1, 1.5])


# ---- pairs


def test_paired_comparison_is_scipys():
    chance = np.random.default_rng(5)
    hard = chance.normal(0.5, 0.1, 8)  # what makes a seed hard for both is far more than the difference
    a, b = hard + 0.01 + chance.normal(0, 0.003, 8), hard + chance.normal(0, 0.003, 8)
    found = compare(table(a=a, b=b), "a", "b")
    expected = stats.ttest_rel(a, b)
    ends = expected.confidence_interval(0.95)
    assert found.p == pytest.approx(expected.pvalue)
    assert (found.difference.low, found.difference.high) == pytest.approx((ends.low, ends.high))
    assert found.verdict == "better"
    assert compare(table(a=a, b=b), "b", "a").verdict == "worse"
    assert stats.ttest_ind(a, b).pvalue > 0.5, "without pairs nothing would be seen"


def test_rows_in_any_order_pair_by_seed():
    rows = table(a=(0.1, 0.5, 0.9), b=(0.0, 0.4, 0.8))
    shuffled = [rows[index] for index in (4, 2, 0, 5, 1, 3)]
    assert sorted(compare(shuffled, "a", "b").differences) == pytest.approx([0.1, 0.1, 0.1])


def test_folds_are_paired_then_combined():
    values = np.random.default_rng(2).normal(0.3, 0.05, (2, 3, 4))
    rows = [
        row(method, seed, values[place, seed, fold], fold)
        for place, method in enumerate("ab")
        for seed, fold in product(range(3), range(4))
    ]
    found = compare(rows, "a", "b")
    assert found.differences == pytest.approx((values[0] - values[1]).mean(axis=1))
    assert compare(rows, "a", "b", unit="fold").pairs == 12
    # a missing fold takes its partner along: the rest of that seed is still the same folds on both sides
    fewer = compare(rows[:-1], "a", "b")
    assert fewer.differences[2] == pytest.approx((values[0, 2, :3] - values[1, 2, :3]).mean())
    assert fewer.unpaired == (1, 0)


def test_settings_are_paired_and_hyper_parameters_are_not():
    rows = [
        row(m, s, 0.01 * d + (m == "a"), dim=d, loss=m) | {f"loss.{m}": 1.0}
        for m in "ab"
        for s in (0, 1)
        for d in (1, 9)
    ]
    found = compare(rows, "a", "b")
    assert found.differences == pytest.approx([1.0] * 4)
    assert (found.pairs, found.settings) == (4, 2)
    assert "4 pairs over 2 settings" in str(found)


def test_leftovers_are_said():
    rows = [*table(a=(0.5, 0.6, 0.7, 0.8), b=(0.4, 0.5)), row("b", 7, 0.1), row("b", 8, None) | {"status": "failed"}]
    found = compare(rows, "a", "b")
    assert (found.unpaired, found.failed) == ((2, 1), (0, 1))
    assert str(found).endswith("; 2 runs of a and 1 run of b had no partner; 1 run of b failed")


def test_sentences():
    a = (0.212, 0.215, 0.209, 0.213, 0.211)
    b = (0.200, 0.201, 0.199, 0.198, 0.202)
    low, high = stats.ttest_rel(a, b).confidence_interval(0.95)
    told = f"A is better than B by 1.2 points of MAP@R (95% interval {100 * low:.1f} to {100 * high:.1f}, 5 pairs)"
    assert str(compare(table(A=a, B=b), "A", "B")) == told
    assert str(compare(table(A=b, B=a), "A", "B")) == told.replace("better", "worse")
    noise = compare(table(A=a, B=(0.21, 0.22, 0.20, 0.22, 0.205)), "A", "B")
    half = (noise.difference.high - noise.difference.low) / 2
    assert str(noise).startswith("A and B are not distinguishable by MAP@R (A is ")
    assert str(noise).endswith(
        f", 5 pairs; with 5 pairs a difference of about {100 * half:.1f} would be detected with 50% power)"
    )
    assert "one pair: the variation between pairs is unknown" in str(compare(table(A=(0.5,), B=(0.4,)), "A", "B"))
    assert "on validation classes" in str(compare([{"method": m, "val R@1": 0.5} for m in "ab"], "a", "b", "val R@1"))


def test_small_differences_are_not_rounded_to_nothing():
    base = np.linspace(0.2, 0.3, 6)
    small = base + 1e-5 * np.array([1.0, 1.1, 0.9, 1.0, 1.05, 0.95])
    assert "by 0.0010 points" in str(compare(table(a=small, b=base), "a", "b"))
    wide = base + np.array([0.02, -0.02, 0.01, -0.01, 0.0, 1e-4])
    assert "(a is less than 0.1 points above, " in str(compare(table(a=wide, b=base), "a", "b"))


def test_what_was_tuned_on_test_is_said():
    rows = [entry | {"tuned_on_test": entry["method"] == "a"} for entry in table(a=(0.5, 0.6), b=(0.4, 0.5))]
    assert str(compare(rows, "a", "b")).endswith("; a tuned on test")


def test_identical_results_are_not_distinguishable():
    found = compare(table(a=(0.5, 0.6, 0.7), b=(0.5, 0.6, 0.7)), "a", "b")
    assert (found.verdict, found.p, found.p_flip, found.resolution) == ("not distinguishable", 1.0, 1.0, 0.0)


def test_the_interval_covers_the_truth_as_often_as_it_says():
    """Of 2,000 comparisons of five pairs about 5% miss a true difference of 1 point: 4% to 6% with four sigmas to spare."""
    chance = np.random.default_rng(11)
    draws = chance.normal(0.01, 0.02, (2000, 5))
    found = [compare(table(a=0.5 + each, b=[0.5] * 5), "a", "b").difference for each in draws]
    missed = sum(not each.low <= 0.01 <= each.high for each in found)
    assert 60 < missed < 140


def test_comparisons_that_cannot_be_made():
    rows = table(a=(0.5,), b=(0.4,))
    with pytest.raises(ValueError, match=r"^b must be one of the rows' method \(a, b\), but it is 'c'"):
        compare(rows, "a", "c")
    with pytest.raises(ValueError, match="a and b must be different methods, but both are 'a'"):
        compare(rows, "a", "a")
    with pytest.raises(NoPairs, match="'a' and 'b' have none"):
        compare([row("a", 0, 0.5), row("b", 1, 0.5)], "a", "b")
    with pytest.raises(ValueError, match="has two of seed 0"):
        compare([*rows, row("a", 0, 0.6)], "a", "b")
    with pytest.raises(ValueError, match="unit must be one of"):
        compare(rows, "a", "b", unit="run")  # type: ignore[arg-type]


def test_other_columns_can_be_compared():
    small, large = ([row("a", seed, 0.5 + add, dim=dim) for seed in range(3)] for dim, add in ((64, 0.0), (512, 0.1)))
    assert compare_sides(large, small, "512", "64", METRIC, but=("dim",)).differences == pytest.approx([0.1] * 3)
    assert compare([*small, *large], 512, 64, by="dim").pairs == 3  # type: ignore[arg-type]


# ---- all against all


def test_all_against_all():
    chance = np.random.default_rng(0)
    scores = {name: add + chance.normal(0, 0.01, 6) for name, add in (("a", 0.5), ("b", 0.505), ("c", 0.3))}
    found = compare_all(table(**scores))
    matrix = found.matrix()
    for i, one in enumerate("abc"):
        assert matrix[i][i] is None
        for j, other in enumerate("abc"):
            if i != j:
                assert matrix[i][j] == pytest.approx((scores[one] - scores[other]).mean())
                expected = stats.ttest_rel(scores[one], scores[other]).pvalue < 0.05
                assert (found.verdict(one, other) != "not distinguishable") == expected
    assert found.verdict("a", "c") == "better"
    assert found.verdict("c", "a") == "worse"
    assert "3 comparisons at 95%, uncorrected" in found.text()


def test_holm_takes_back_what_chance_may_have_made():
    """Twenty methods that are all alike: uncorrected some of 190 comparisons look different, corrected none does."""
    chance = np.random.default_rng(4)
    rows = table(**{f"m{index}": chance.normal(0.5, 0.01, 5) for index in range(20)})
    plain, careful = compare_all(rows), compare_all(rows, correct="holm")
    different = [sum(each.verdict(*key) != "not distinguishable" for key in each.cells) for each in (plain, careful)]
    assert different[0] >= 3
    assert different[1] == 0
    assert "about 9.5 of them would appear different" in plain.note
    assert "at most 5%" in careful.note
    assert sum("after Holm's correction" in each for each in careful.sentences()) == different[0]


def test_methods_without_a_pair_are_named():
    found = compare_all([*table(a=(0.5, 0.6), b=(0.4, 0.5)), row("c", 9, 0.3)])
    assert found.without == (("a", "c"), ("b", "c"))
    assert found.note.endswith("without a pair: a and c, b and c.")
    assert found.verdict("a", "c") is None
    assert "?" in found.text()


def test_published_numbers_go_through_the_same_functions():
    """The thesis, tables 6 to 8, first rows by hand: Contrastive minus Triplet on CUB, ResNet50, 64 dimensions."""
    rows = published("thesis", table=[6, 7, 8])
    found = compare(rows, "Contrastive", "Triplet", "test R@1")
    assert found.settings == found.pairs == 12
    assert any(each == pytest.approx(0.6028 - 0.5756) for each in found.differences)
