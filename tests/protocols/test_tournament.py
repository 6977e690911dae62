"""The tournament: ranks against scipy's, ties, gaps and refusals."""

from __future__ import annotations

import json
import random
import statistics

import pytest
import scipy.stats

from likewise.protocols.tournament import tournament
from likewise.testing import loop_over
from studies.published import published


def rows_of(scores, data="x"):
    return [{"method": name, "data": data, "test R@1": score} for name, score in scores.items()]


@loop_over("ties", ["average", "min"])
@loop_over("higher", [True, False])
@loop_over("seed", range(5))
def test_ranks_are_scipys(ties, higher, seed):
    """Random experiments with many ties."""
    chance = random.Random(seed)
    methods = [f"m{i}" for i in range(9)]
    experiments = {f"e{i}": {name: chance.randint(0, 4) / 10 for name in methods} for i in range(7)}
    rows = [row for data, scores in experiments.items() for row in rows_of(scores, data)]
    chance.shuffle(rows)
    found = tournament(rows, experiment=["data"], ties=ties, higher_is_better=higher)
    ranks = {name: [] for name in methods}
    medals = {name: [] for name in methods}
    for data in [one[0] for one in found.experiments]:
        signed = [-experiments[data][name] if higher else experiments[data][name] for name in methods]
        for name, rank, medal in zip(
            methods, scipy.stats.rankdata(signed, ties), scipy.stats.rankdata(signed, "min"), strict=True
        ):
            ranks[name].append(float(rank))
            medals[name].append(int(medal))
    for each in found.standings:
        assert list(each.ranks.values()) == ranks[each.method]
        assert each.total == sum(ranks[each.method])
        assert each.average == pytest.approx(statistics.fmean(ranks[each.method]))
        assert each.deviation == pytest.approx(statistics.stdev(ranks[each.method]))
        assert [each.gold, each.silver, each.bronze] == [medals[each.method].count(place) for place in (1, 2, 3)]
    assert [each.average for each in found.standings] == sorted(each.average for each in found.standings)


def test_medals_of_a_dead_heat():
    found = tournament(rows_of({"a": 0.5, "b": 0.5, "c": 0.4}), experiment=["data"])
    assert [
        (each.method, each.place, each.average, each.gold, each.silver, each.bronze) for each in found.standings
    ] == [
        ("a", 1, 1.5, 1, 0, 0),
        ("b", 1, 1.5, 1, 0, 0),
        ("c", 3, 3.0, 0, 0, 1),
    ]


def test_seeds_are_averaged_first():
    rows = [{"method": "a", "data": "x", "seed": s, "test R@1": v} for s, v in enumerate([0.1, 0.2, 0.9])]
    rows += rows_of({"b": 0.35})
    found = tournament(rows, experiment=["data"])
    assert found.standings[0].method == "a"
    assert found.scores["a"][("x",)] == (pytest.approx(0.4), 3)
    assert "Each score is the mean of 1 to 3 results." in found.notes


def test_means_of_the_same_numbers_tie_whatever_their_order():
    rows = [{"method": "a", "data": "x", "test R@1": v} for v in (0.1, 0.2, 0.3)]
    rows += [{"method": "b", "data": "x", "test R@1": v} for v in (0.3, 0.1, 0.2)]
    assert [each.average for each in tournament(rows, experiment=["data"]).standings] == [1.5, 1.5]


def test_partial_results_are_marked():
    """c took part in y alone, where it won: ranked over what it has, and marked."""
    rows = rows_of({"a": 0.5, "b": 0.4}, "x") + rows_of({"a": 0.5, "b": 0.4, "c": 0.6}, "y")
    found = tournament(rows, experiment=["data"])
    assert [(each.method, each.average, each.complete) for each in found.standings] == [
        ("c", 1.0, False),
        ("a", 1.5, True),
        ("b", 2.5, True),
    ]
    assert found.standings[0].deviation is None
    text = found.text()
    assert "c *" in text
    assert "1/2" in text
    assert "* Not in all experiments" in text
    common = tournament(rows, experiment=["data"], only_common=True)
    assert common.experiments == (("y",),)
    assert [each.method for each in common.standings] == ["c", "a", "b"]
    assert all(each.complete for each in common.standings)


def test_rows_that_are_not_done_are_counted():
    rows = [*rows_of({"a": 0.5, "b": 0.4}), {"method": "a", "data": "x", "status": "failed", "test R@1": 0.0}]
    rows.append({"method": "c", "data": "x", "test R@1": None})
    found = tournament(rows, experiment=["data"])
    assert [each.method for each in found.standings] == ["a", "b"]
    assert "Excluded: 2 of 4 rows, which are not done or have no test R@1." in found.notes


def test_what_was_tuned_on_test_is_said_in_the_table():
    text = tournament(published("thesis", table=6), notes=["Unequal: batch size."]).text()
    assert text.splitlines()[-2:] == [
        "Unequal: batch size.",
        "Tuned on test: 40 of 40 rows come from methods that were selected on the test set.",
    ]


def test_it_travels_as_json():
    found = tournament(published("thesis", table=(6, 7, 8)))
    said = json.loads(json.dumps(found.to_dict()))
    assert said["standings"][0]["method"] == "ProxyAnchor"
    assert len(said["standings"][0]["experiments"]) == 12
    assert said["standings"][9]["experiments"][0] == {
        "experiment": {"data": "CUB200", "trunk": "resnet50", "dim": 64},
        "rank": 10.0,
        "score": 0.5728,
        "rows": 1,
    }


@loop_over(
    "rows, options, words",
    [
        ([], {}, "rows must contain results, but it is empty"),
        (
            rows_of({"a": 0.5}),
            {"metric": "test RP"},
            "rows must have a column 'test RP', but the columns are 'method', 'data'",
        ),
        (rows_of({"a": 0.5}), {"experiment": ["trunk"]}, "rows must have a column 'trunk'"),
        (rows_of({"a": float("nan")}), {}, r"rows\[0\]\['test R@1'\] must be a finite number, but it is nan"),
        (rows_of({"a": None}), {}, "none of the 1 rows does"),
        (rows_of({"a": 0.5}), {"ties": "max"}, "ties must be one of 'average', 'min'"),
        (
            rows_of({"a": 0.5}, "x") + rows_of({"b": 0.5}, "y"),
            {"only_common": True},
            "only_common must be False, because no experiment has results of every method",
        ),
    ],
)
def test_refusals(rows, options, words):
    with pytest.raises(ValueError, match=words):
        tournament(rows, **({"experiment": ["data"]} | options))
