"""A leaderboard ranks what is equal, refuses what is not, and says in its table what a reader must know."""

from __future__ import annotations

import csv
import io
import json
import re
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from scipy import stats

from likewise.app.comparisons import collect_trainings
from likewise.app.conditions import read_conditions
from likewise.app.run_rows import read_row
from likewise.protocols import Leaderboard, Unfair, leaderboards, ranking
from likewise.protocols.fairness import unfair_differences
from likewise.protocols.trial import Result, Trial
from likewise.testing import loop_over
from likewise.train import Run
from studies.published import published

METRIC = "test MAP@R"
CONFIG: dict[str, Any] = {
    "data": {"class_path": "likewise.data.CUB200", "init_args": {"root": "birds"}},
    "split": {"validation": 0.1, "test": 0.2, "seed": 0},
    "transform": "thesis",
    "model": {"trunk": "resnet50", "weights": "imagenet", "dim": 512, "pool": "avg", "head": "linear"},
    "loss": {"class_path": "likewise.losses.ContrastiveLoss", "init_args": {}},
    "sampler": {"class_path": "likewise.data.PerClassSampler", "init_args": {"classes": 8, "per_class": 4, "steps": 9}},
    "optimizer": {"name": "AdamW", "lr": 1e-4, "lrs": {}, "weight_decay": 1e-4},
    "schedule": {"name": "constant", "warmup": 0.0},
    "train": {"epochs": 2, "validate_every": 1, "metric": "MAP@R", "patience": None},
}
CONFIG["model"] |= {"normalize": True, "layer_norm": False, "freeze_bn": True}


def configured(**model: Any) -> dict[str, Any]:
    config = deepcopy(CONFIG)
    config["model"] |= model
    return config


def results(method: str, values: Any, *, config: dict[str, Any] | None = None, **more: Any) -> list[Result]:
    config = configured() if config is None else config
    return [
        Result(Trial(method, config, seed=seed), test={"MAP@R": value}, openings=1, **more)
        for seed, value in enumerate(values)
    ]


def rank(trainings: Any, metric: str = METRIC, **options: Any) -> Leaderboard:
    """Rank results, runs or rows with their conditions, as commands do."""
    table = collect_trainings(trainings)
    return ranking.rank(table.rows, metric, conditions=table.conditions, **options)


def row(method: str, seed: int | None, value: float | None, **more: Any) -> dict[str, Any]:
    return {"method": method, "seed": seed, "fold": 0, METRIC: value, **more}


FIRST, SECOND = (0.50, 0.52, 0.54, 0.53), (0.40, 0.43, 0.44, 0.42)


def test_equal_results_are_ranked_by_their_means():
    board = rank([*results("triplet", SECOND), *results("contrastive", FIRST)])
    assert [place.summary.name for place in board.places] == ["contrastive", "triplet"]
    assert [place.rank for place in board.places] == [1, 2]
    assert (board.unfair, board.checked, [place.marks for place in board.places]) == ((), True, [(), ()])
    best = board.places[0].summary.interval
    assert (best.low, best.high) == pytest.approx(stats.t.interval(0.95, 3, sum(FIRST) / 4, stats.sem(FIRST)))
    gap = board.places[1].behind
    ends = stats.ttest_rel(FIRST, SECOND).confidence_interval(0.95)
    assert gap is not None
    assert (gap.difference.low, gap.difference.high) == pytest.approx((ends.low, ends.high))


def test_unequal_results_are_refused_with_all_that_differs():
    config = configured(trunk="googlenet", dim=64)
    config["optimizer"]["weight_decay"] = 0.01
    with pytest.raises(Unfair) as refusal:
        rank([*results("margin", FIRST), *results("triplet", SECOND, config=config)])
    message = str(refusal.value)
    assert "\n" not in message
    for part in (
        "trunk: resnet50 (margin), googlenet (triplet)",
        "embedding size: 512 (margin), 64 (triplet)",
        "optimizer: weight_decay 0.0001 (margin), weight_decay 0.01 (triplet)",
        "allow_unfair=True",
    ):
        assert part in message
    assert {each.what for each in refusal.value.differences} == {"trunk", "embedding size", "optimizer"}


def test_an_unfair_ranking_says_so_in_the_table_itself():
    given = [*results("margin", FIRST), *results("triplet", SECOND, config=configured(dim=64))]
    board = rank(given, allow_unfair=True)
    text = board.text()
    assert text.splitlines()[2].startswith("1*  margin")
    assert "unfair: embedding size 512" in text
    assert "unfair: embedding size 64" in text
    assert "* Unfair: ranked on request, although the runs differ in more than the method." in text
    assert (
        "embedding size: 512 (margin), 64 (triplet). More dimensions probably raise accuracy (the thesis, 3.5.1)."
        in text
    )
    assert [each["fair"] for each in board.rows()] == [False, False]
    assert all("unfair" in each["marks"] for each in board.rows())
    fair = rank([*results("a", FIRST), *results("b", SECOND)], allow_unfair=True)
    assert "*" not in fair.text(), "asking does not make it unfair"


def test_unequally_many_seeds_are_unfair():
    given = [*results("a", FIRST), *results("b", SECOND[:3])]
    with pytest.raises(Unfair, match=r"number of seeds: 4 \(a\), 3 \(b\)"):
        rank(given)
    with pytest.raises(Unfair, match=r"number of seeds: 2 \(a\), 1 \(b\)"):
        rank([row("a", 0, 0.5), row("a", 1, 0.6), row("b", 0, 0.4)])


def test_other_folds_are_unfair():
    rows = [row("a", 0, 0.5), row("a", 0, 0.5) | {"fold": 1}, row("b", 0, 0.4)]
    with pytest.raises(Unfair, match=r"folds: 0 and 1 \(a\), 0 \(b\)"):
        rank(rows)


@loop_over("column", ["data", "trunk", "dim", "protocol", "source", "weights", "pool", "images"])
def test_columns_of_a_table_are_compared_too(column: str):
    rows = [row("a", 0, 0.5, **{column: "x"}), row("b", 0, 0.4, **{column: "y"})]
    with pytest.raises(Unfair, match=r"x \(a\), y \(b\)"):
        rank(rows)


def test_what_was_tuned_on_test_is_marked_and_not_mixed():
    tuned = results("a", FIRST, tuned_on_test=True)
    board = rank([*tuned, *results("b", SECOND, tuned_on_test=True)])
    assert [place.marks for place in board.places] == [("tuned on test",), ("tuned on test",)]
    assert "tuned on test" in board.text()
    with pytest.raises(Unfair, match=r"test-set feedback: tuned on test \(a\), none \(b\)"):
        rank([*tuned, *results("b", SECOND)])


def test_a_training_without_validation_is_marked():
    config = configured()
    config["split"]["validation"] = 0.0
    board = rank(results("a", FIRST, config=config))
    assert board.places[0].marks == ("no validation",)


def test_one_seed_is_marked_and_has_no_interval():
    board = rank([*results("a", FIRST[:1]), *results("b", SECOND[:1])])
    assert [place.marks for place in board.places] == [("one seed",), ("one seed",)]
    [first, second] = board.rows()
    assert (first["low"], first["high"], second["behind_low"]) == (None, None, None)
    assert second["behind"] == pytest.approx(0.1)
    assert second["distinguishable"] is False
    assert "none" in board.text()


def test_failures_and_missing_results_are_said():
    broken = Result(Trial("a", configured(), seed=9), status="failed", error="out of memory")
    lost = Result(Trial("c", configured(), seed=0), status="failed")
    board = rank([*results("a", FIRST), broken, *results("b", SECOND), lost])
    assert board.places[0].marks == ("1 failed",)
    assert board.missing == ("c",)
    assert "Without a complete result: c." in board.text()


def test_a_test_set_that_was_opened_often_is_marked():
    rows = [row("a", 0, 0.5, openings=3)]
    assert "test set opened 3 times" in rank(rows).places[0].marks


def test_ties_share_a_rank():
    board = rank([row(method, 0, value) for method, value in (("a", 0.4), ("b", 0.5), ("c", 0.5), ("d", 0.3))])
    assert [(place.summary.name, place.rank) for place in board.places] == [("b", 1), ("c", 1), ("a", 3), ("d", 4)]


def test_methods_with_other_seeds_have_no_pairs_and_it_is_said():
    board = rank([row("a", 0, 0.5), row("a", 1, 0.6), row("b", 2, 0.4), row("b", 3, 0.5)])
    assert board.places[1].behind is None
    assert "no pairs" in board.text()


def test_rows_alone_cannot_vouch_for_equality():
    board = rank([row("a", 0, 0.5), row("b", 0, 0.4)])
    assert not board.checked
    assert "Not checked: whether the runs differ" in board.text()


def test_conditions_can_be_given_with_rows():
    rows = [row("a", 0, 0.5), row("b", 0, 0.4)]
    one, other = (read_conditions({"config": configured(pool=pool), "seed": 0}) for pool in ("avg", "gem"))
    assert ranking.rank(rows, conditions=[one, one]).checked
    assert not ranking.rank(rows, conditions=[one, None]).checked
    with pytest.raises(Unfair, match="pooling"):
        ranking.rank(rows, conditions=[one, other])
    with pytest.raises(ValueError, match="conditions must have an entry for each of 2 rows, but it has 1"):
        ranking.rank(rows, conditions=[one])


def searched(method: str, rounds: int, option: str = "loss.alpha") -> list[Result]:
    """Rounds of four folds each."""
    return [
        Result(
            Trial(method, configured(), fold=fold, stage="search", labels={option: float(number)}), val={"MAP@R": 0.1}
        )
        for number in range(rounds)
        for fold in range(4)
    ]


def test_the_search_budget_is_counted_in_the_study_itself():
    finals = [*results("a", FIRST), *results("b", SECOND)]
    board = rank([*finals, *searched("a", 5), *searched("b", 5)])
    assert board.differences == ()
    with pytest.raises(Unfair, match=r"search budget: 5 \(a\), 3 \(b\)"):
        rank([*finals, *searched("a", 5), *searched("b", 3)])
    with pytest.raises(Unfair, match=r"search budget: 5 \(a\), 0 \(b\)"):
        rank([*finals, *searched("a", 5)])
    [note] = rank(finals).differences
    assert str(note) == "not recorded: search budget (a, b)"


def test_a_learning_rate_searched_for_both_is_a_note():
    config = configured()
    config["optimizer"]["lr"] = 3e-4
    given = [*results("a", FIRST), *results("b", SECOND, config=config)]
    with pytest.raises(Unfair, match=r"learning rate: 0\.0001"):
        rank(given)
    board = rank([*given, *searched("a", 2, "optimizer.lr"), *searched("b", 2, "optimizer.lr")])
    assert [(each.what, each.severity) for each in board.differences] == [("learning rate", "note")]
    assert "Note: learning rate: 0.0001 (a), 0.0003 (b)." in board.text()


def test_rows_fit_into_csv_and_json():
    board = rank([*results("a", FIRST[:1]), *results("b", SECOND[:1])])
    rows = board.rows()
    assert json.loads(json.dumps(rows, allow_nan=False)) == rows
    assert len({tuple(each) for each in rows}) == 1, "the same columns in all"
    file = io.StringIO()
    writer = csv.DictWriter(file, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    assert file.getvalue().count("\n") == 3


def test_text_keeps_to_its_width():
    config = configured(trunk="googlenet", pool="gem", dim=64, weights=None, head="mlp")
    given = [*results("margin", FIRST), *results("triplet", SECOND, config=config)]
    lines = rank(given, allow_unfair=True).text(width=110).splitlines()
    assert max(map(len, lines)) <= 110
    assert lines[2].index("margin") == lines[1].index("method")


def test_each_setting_has_a_table_of_its_own():
    rows = [row(method, 0, 0.5, dim=dim) for method in "ab" for dim in (64, 128)]
    with pytest.raises(Unfair, match="embedding size"):
        rank(rows, by=("method", "dim"))
    boards = leaderboards(rows, within=("dim",))
    assert {key: len(board.places) for key, board in boards.items()} == {(64,): 2, (128,): 2}
    with pytest.raises(ValueError, match="differ in dim"):
        rank(rows)


def test_published_tables_are_ranked_as_printed():
    """The thesis, table 6, CUB, ResNet50, 64 dimensions: Proxy-Anchor 62.93 before SoftTriple 61.28."""
    board = leaderboards(published("thesis", table=6), "test R@1", within=("data", "dim"))["CUB200", 64]
    top = [(place.summary.name, round(100 * place.summary.interval.mean, 2)) for place in board.places[:2]]
    assert top == [("ProxyAnchor", 62.93), ("SoftTriple", 61.28)]
    assert board.places[0].marks == ("tuned on test", "seeds not known")


def test_an_unfair_ranking_still_pairs_seeds():
    rows = [
        row(method, seed, value, dim=dim) for method, dim, value in (("a", 64, 0.4), ("b", 512, 0.5)) for seed in (0, 1)
    ]
    gap = rank(rows, allow_unfair=True).places[1].behind
    assert gap is not None
    assert gap.pairs == 2


def test_the_page_shows_what_is_printed(capsys: pytest.CaptureFixture[str]):
    page = (Path(__file__).parents[2] / "docs" / "fairness.md").read_text()
    space: dict[str, Any] = {}
    for block in re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE):
        exec(block, space)
    printed = capsys.readouterr().out
    shown = re.findall(r"^```text\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    assert len(shown) == 2
    for block in shown:
        assert block in printed


# ---- runs


def make_run(
    folder: Path, seed: int, value: float, *, config: dict[str, Any] | None = None, early: bool = False
) -> Run:
    config = configured() if config is None else config
    said = {"seed": seed, "config": config, "command": "likewise train", "loss": "ContrastiveLoss()"}
    said["data"] = {
        "train": {"name": "CUB200", "fingerprint": "a"},
        "val": {"fingerprint": "b"},
        "test": {"description": "t"},
    }
    run = Run.create(folder, said)
    for step, (score, best) in enumerate([(0.1, True), (0.3, True), (0.2, False)]):
        run.log("val", step=step, epoch=float(step), **{"MAP@R": score, "queries": 8, "best": best})
    if early:
        run.record_opening("curious", "best")
    run.log("end", step=2, epoch=2.0, reason="finished", message="2 of 2 epochs")
    run.record_opening("the end", "model")
    run.record_evaluation("test", {"MAP@R": 0.99}, model="model")
    run.record_opening("the end", "best")
    run.record_evaluation("test", {"MAP@R": value}, model="best")
    return run


def test_a_run_is_a_row(tmp_path: Path):
    found = read_row(make_run(tmp_path / "run", 3, 0.5))
    expected = {"method": "ContrastiveLoss", "data": "CUB200", "trunk": "resnet50", "dim": 512, "seed": 3, "fold": 0}
    expected |= {"status": "done", "val MAP@R": 0.3, METRIC: 0.5, "openings": 2, "tuned_on_test": False}
    assert {key: found[key] for key in expected} == expected
    assert "val queries" not in found


def test_runs_are_ranked_by_name_or_by_loss(tmp_path: Path):
    runs = {
        name: [make_run(tmp_path / f"{name}{seed}", seed, value) for seed, value in enumerate(values)]
        for name, values in (("with a miner", FIRST), ("without", SECOND))
    }
    board = rank(runs)
    assert [place.summary.name for place in board.places] == ["with a miner", "without"]
    assert board.checked
    assert rank(runs["without"]).places[0].summary.name == "ContrastiveLoss"
    with pytest.raises(ValueError, match="has two of seed 0"):
        rank([*runs["without"], *runs["with a miner"]])


def test_a_run_that_opened_the_test_set_early_is_told(tmp_path: Path):
    fair, early = make_run(tmp_path / "a", 0, 0.5), make_run(tmp_path / "b", 0, 0.6, early=True)
    with pytest.raises(Unfair, match="test-set feedback"):
        rank({"fair": fair, "early": early})
    board = rank({"fair": fair, "early": early}, allow_unfair=True)
    assert {"tuned on test", "test set opened before the end of training"} <= set(board.places[0].marks)


def test_a_run_that_has_not_ended_is_no_result(tmp_path: Path):
    run = Run.create(tmp_path / "run", {"seed": 0, "loss": "TripletLoss()"})
    assert (read_row(run)["status"], read_row(run, "mine")["method"]) == ("failed", "mine")
    with pytest.raises(ValueError, match="rows must contain a setting with a complete seed"):
        rank([read_row(run) | {METRIC: None}])


@loop_over("wrong", [[3], [None]])
def test_bad_input_is_one_sentence(wrong: Any):
    with pytest.raises(TypeError, match=r"^trainings must hold folders, runs, results or rows, but entry 0 is a"):
        rank(wrong)
    with pytest.raises(TypeError, match=r"^rows must be a list of dicts, one per run, but entry 0 is a"):
        ranking.rank(wrong)


def test_the_refusal_holds_what_the_check_found():
    one, other = (read_conditions({"config": configured(dim=dim), "seed": 0}) for dim in (512, 64))
    expected = [each for each in unfair_differences({"a": one, "b": other}) if each.severity == "unfair"]
    with pytest.raises(Unfair) as refusal:
        ranking.rank([row("a", 0, 0.5), row("b", 0, 0.4)], conditions=[one, other])
    assert list(refusal.value.differences) == expected
