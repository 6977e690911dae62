"""Studies, searches and comparisons from Python, without the command line."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from likewise import app
from likewise.app.comparisons import choose_metric
from likewise.app.search_space import make_search
from likewise.app.study_table import open_study
from likewise.protocols import Result, SerialExecutor, Trial, Unfair
from likewise.train import Run

TINY: dict[str, Any] = {
    "data": {"class_path": "Glyphs", "init_args": {"images_per_class": 2}},
    "model": {"trunk": "convnet", "dim": 4},
    "sampler": {"class_path": "PerClassSampler", "init_args": {"classes": 8, "per_class": 2, "steps": 2}},
    "train": {"epochs": 1},
}
METHODS = {"contrastive": {"loss": "ContrastiveLoss"}, "circle": {"loss": "CircleLoss"}}


@pytest.fixture(autouse=True)
def serial(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Trials run in this process."""

    monkeypatch.setattr("likewise.app.execution.choose_executor", lambda run, report, **_: SerialExecutor(run, report))
    monkeypatch.chdir(tmp_path)


def test_a_study_is_run_packed_and_compared(capsys: pytest.CaptureFixture[str]):
    """The same trials, here and as a pack; no module of the command line is imported on the way."""
    loaded = {name for name in sys.modules if name.startswith("likewise.cli")}
    study = {"name": "small", "base": TINY, "methods": METHODS}
    states: list[int] = []
    planned = app.run_study(study, execution=app.Execution(workers=0))
    assert (planned.folder, planned.counts["missing"], planned.is_finished) == (Path("studies/small"), 2, False)
    assert app.pack_study(planned.folder, "pack") == 2
    with pytest.raises(app.UserError, match="pack must be a folder that does not exist"):
        app.pack_study(planned.folder, "pack")
    assert app.execute_pack("pack")
    assert app.merge_study(planned.folder, "pack") == {"pack": 2}
    report = app.run_study(planned.folder, watch=lambda each, _: states.append(len(each)))
    assert states == [2]
    assert report.is_finished
    assert report.is_concluded
    assert {row["method"] for row in report.rows} == set(METHODS)
    [board] = report.leaderboards.values()
    assert {place.summary.name for place in board.places} == set(METHODS)
    assert report.comparisons is not None
    assert set(report.comparisons.names) == set(METHODS)
    assert report.page is not None
    assert report.page.exists()
    assert app.export_study(report.folder).read_text().count("\n") == 3
    assert app.leaderboard(report.folder).metric == "test MAP@R"
    assert len(app.compare(report.folder).sentences()) == 1
    assert {name for name in sys.modules if name.startswith("likewise.cli")} == loaded
    capsys.readouterr()


def test_a_search_is_tuned_and_its_best_repeated():
    config = app.configure({**flat(), "loss": "CircleLoss"})
    options: dict[str, Any] = {"how": "random", "search": ["optimizer.lr=1e-3:1e-2:log"], "at_once": 2}
    options["execution"] = app.Execution(workers=1)
    report = app.tune(config, "tuned", rounds=2, **options)
    assert report.best is not None
    assert [one.status for one in report.tried] == ["done", "done"]
    assert all(Run(report.folder / result.run).chosen["epoch"] > 0 for result in report.results)
    best = app.configure(files=[report.folder / "best.yaml"])
    assert best["optimizer"]["lr"] == report.best.point["optimizer.lr"]
    assert len(app.tune(config, "tuned", rounds=3, **options).tried) == 3, "more rounds go on"
    again = app.run_study("tuned")
    assert again.best is not None, "the file of the study has the search"
    final = app.repeat(best, "final", seeds=1)
    assert final.rows[0]["test MAP@R"] is not None


@pytest.mark.parametrize(
    ("search", "words"),
    [
        (
            ["optimizer.lr=1e-4:1e-2:log"],
            "search.space.optimizer.lr: '1e-3:1e-2:log' in the file and '1e-4:1e-2:log' now",
        ),
        (["loss.gamma"], "search.space.optimizer.lr: '1e-3:1e-2:log' in the file and None now"),
        (None, "search.space"),
    ],
)
def test_another_search_in_the_same_folder_is_refused(search: list[str] | None, words: str):
    config = app.configure({**flat(), "loss": "CircleLoss"})
    app.tune(config, "tuned", how="random", search=["optimizer.lr=1e-3:1e-2:log"], execution=app.Execution(workers=0))
    with pytest.raises(app.UserError, match="tuned must hold the same study, but its") as error:
        app.tune(config, "tuned", how="random", search=search, execution=app.Execution(workers=0))
    assert words in str(error.value)


def test_a_folder_of_an_earlier_version_is_known_by_its_trials():
    """Its study.yaml does not name the space: the labels of its trials do."""
    config = app.configure({**flat(), "loss": "CircleLoss"})
    app.tune(config, "tuned", how="random", search=["loss.gamma"], rounds=4, execution=app.Execution(workers=0))
    file = Path("tuned/study.yaml")
    tree = yaml.safe_load(file.read_text())
    del tree["search"]
    file.write_text(yaml.safe_dump(tree))
    with pytest.raises(app.UserError, match=r"its trials search loss\.gamma and --search is loss\.margin"):
        app.tune(config, "tuned", how="random", search=["loss.margin"], execution=app.Execution(workers=0))
    file.write_text(yaml.safe_dump(tree))
    app.tune(config, "tuned", how="random", search=["loss.gamma"], rounds=4, execution=app.Execution(workers=0))
    assert yaml.safe_load(file.read_text())["search"]["space"] == {"loss.gamma": None}


def test_fresh_runs_are_compared_on_validation_classes(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("likewise.app.evaluation.report_on", lambda *_, **__: None)  # pages are tested elsewhere
    for name, loss in (("a", "ContrastiveLoss"), ("b", "CircleLoss")):
        app.train(app.configure({**flat(), "loss": loss}), name)
    board = app.leaderboard(["a", "b"])
    assert board.metric == "val MAP@R"
    assert "2 of 2 training runs are not measured on the test set, which is still sealed" in " ".join(
        board.text().split()
    )
    report = app.compare(["a", "b"])
    assert "MAP@R on validation classes" in report.sentences()[0]
    assert report.remark.startswith("Compared on validation classes")
    assert not any(Run(name).openings() for name in "ab")
    open_test_set(Run("a"))
    assert "1 of 2 training runs" in app.leaderboard(["a", "b"]).remark
    open_test_set(Run("b"))
    assert app.leaderboard(["a", "b"]).metric == "test MAP@R"
    with pytest.raises(app.UserError, match="metric must be one of the rows' metrics"):
        app.leaderboard(["a", "b"], metric="test accuracy")


def open_test_set(run: Run) -> None:
    """Record what `app.evaluate(run, test="…")` records."""
    run.record_opening("the final number", "best")
    run.record_evaluation("test", {"MAP@R": 0.5}, model="best")


def test_what_differs_is_refused_from_python():
    results = [
        Result(Trial(name, app.configure({**flat(), "model.dim": dim})), test={"MAP@R": 0.5})
        for name, dim in (("a", 4), ("b", 8))
    ]
    with pytest.raises(Unfair, match=r"embedding size: 4 \(a\), 8 \(b\)"):
        app.compare(results)
    assert [each.what for each in app.compare(results, allow_unfair=True).unfair] == ["embedding size"]


def test_learning_rates_are_searched_by_default():
    for loss, rates in (("CircleLoss", ["optimizer.lr"]), ("ProxyAnchorLoss", ["optimizer.lr", "optimizer.lrs.loss"])):
        study = app.StudyFile("s", base=TINY, methods={"m": {"loss": loss}}, search={"how": "random"})
        assert [path for path in make_search(study).space if path.startswith("optimizer")] == rates


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"search": {"romds": 3}}, "search: there is no key romds; did you mean rounds?"),
        ({"search": {"rounds": 0}}, "--rounds must be a whole number ≥ 1, but it is 0"),
        ({"search": {"how": "bayes"}}, "there is no search bayes; did you mean bayesian?"),
        ({"search": {"space": ["loss.gamma"]}}, "search: space must map paths to ranges"),
        ({"search": 3}, "search must have keys such as space and rounds, but it is 3"),
        ({"search": {}, "protocol": "classic"}, "--protocol must have validation classes for the search"),
        ({"search": {}, "methods": METHODS}, "a study with a search must have one method"),
    ],
)
def test_a_wrong_search_is_refused(changes: dict[str, Any], words: str):
    with pytest.raises(app.UserError) as error:
        app.run_study({"base": TINY, "methods": {"circle": METHODS["circle"]}, **changes})
    assert words in str(error.value)


def test_what_cannot_be_done_is_refused_in_one_sentence(tmp_path: Path):
    (tmp_path / "file").write_text("")
    config = app.configure(flat())
    for out in ("file", "file/run"):
        with pytest.raises(app.UserError, match="--out must be a folder that can be created, but file"):
            app.train(config, out)
        for run in (app.repeat, partial(app.tune, how="random")):
            with pytest.raises(app.UserError, match="--out must be a folder that can be created, but file"):
                run(config, out, execution=app.Execution(workers=0))
    for minutes in (float("nan"), 0.0, -1.0):
        with pytest.raises(app.UserError, match="--minutes must be a number > 0"):
            app.repeat(config, "out", execution=app.Execution(minutes=minutes))
        with pytest.raises(app.UserError, match="--minutes must be a number > 0"):
            app.execute_pack("out", minutes=minutes)
    with pytest.raises(app.UserError, match="nowhere must be the folder of a study or of a run"):
        app.leaderboard("nowhere")
    with pytest.raises(app.UserError, match="there is no key sedes in a study; did you mean seeds"):
        app.run_study({"sedes": [1]})


def test_a_pack_is_executed_once_at_a_time(capsys: pytest.CaptureFixture[str]):
    from likewise.app.execute import main

    app.run_study({"base": TINY, "methods": {"circle": METHODS["circle"]}}, "study", execution=app.Execution(workers=0))
    app.pack_study("study", "pack")
    with open_study(Path("pack")).driving():
        with pytest.raises(app.UserError, match="must be run by one process, but another one is running it"):
            app.execute_pack("pack")
        assert main(["pack"]) == 2
    assert main(["pack", "--minutes", "nan"]) == 2
    assert "--minutes must be a number > 0, but it is nan" in capsys.readouterr().err


def test_a_dict_is_of_the_present_schema():
    """A file without a schema is of schema 1, in which margins on a distance are negative; a dict is not."""
    loss = {"class_path": "ContrastiveLoss", "init_args": {"similarity": "euclidean", "negative_margin": 1.0}}
    study = {"base": TINY, "methods": {"contrastive": {"loss": loss}}}
    app.run_study(study, "study", execution=app.Execution(workers=0))
    [trial] = open_study(Path("study")).missing()
    assert trial.config["loss"]["init_args"]["negative_margin"] == 1.0


def test_the_metric_follows_the_seal():
    rows = [{"method": "a", "val MAP@R": 0.5, "test MAP@R": 0.4}, {"method": "b", "val MAP@R": 0.5}]
    assert choose_metric(rows)[0] == "val MAP@R"
    assert choose_metric(rows[:1]) == ("test MAP@R", "")
    assert choose_metric(rows, "test R@1") == ("test R@1", "")
    assert choose_metric([*rows, {"method": "c"}]) == ("test MAP@R", "")


def flat() -> dict[str, Any]:
    """The configuration as settings."""
    return {
        "data": "Glyphs",
        "data.images_per_class": 2,
        "model.dim": 4,
        "sampler.classes": 8,
        "sampler.per_class": 2,
        "sampler.steps": 2,
        "train.epochs": 1,
    }


def test_the_thesis_grid_goes_through_table_15():
    """Margin, then scale with the best margin, from the values of table 4; a step puts the defaults on its grid."""
    config = app.configure({**flat(), "loss": "ProxyAnchorLoss"})
    report = app.tune(config, "grid", how="thesis-grid", at_once=99, execution=app.Execution(workers=0))
    assert report.study.search is not None
    assert report.study.search["rounds"] == 1 + 11 + 50
    points = [one.point for one in report.tried]
    assert points[0] == {"loss.margin": 0.1, "loss.alpha": 32.0}
    assert {point["loss.alpha"] for point in points} == {32.0}
    assert sorted(point["loss.margin"] for point in points) == [round(0.1 * step, 1) for step in range(11)]
    space = ["loss.alpha=1:9:4", "loss.margin=0:1:0.5"]
    stepped = app.tune(
        config, "stepped", how="random", search=space, rounds=6, at_once=6, execution=app.Execution(workers=0)
    )
    assert {one.point["loss.alpha"] for one in stepped.tried} <= {1.0, 5.0, 9.0}
    begun = app.configure({**flat(), "loss": "ProxyAnchorLoss", "loss.alpha": 6.0})
    first = app.tune(begun, "begun", how="grid", search=space, at_once=9, execution=app.Execution(workers=0)).tried
    assert [one.point["loss.alpha"] for one in first] == [5.0, 1.0, 9.0]
    assert {one.point["loss.margin"] for one in first} == {0.0}
    plan = app.Execution(workers=0)
    alone = app.tune(begun, "alpha", how="grid", search=["loss.alpha"], at_once=9, execution=plan).tried
    assert [one.point["loss.alpha"] for one in alone] == [6.0, 2.0, 4.0, *range(8, 18, 2)], "counted from the value"
    thesis = app.tune(begun, "thesis", how="thesis-grid", at_once=99, execution=plan).tried
    assert {one.point["loss.alpha"] for one in thesis} == {6.0}, "a value of the configuration that is on the grid"
    off = app.configure({**flat(), "loss": "ProxyAnchorLoss", "loss.alpha": 6.5})
    thesis = app.tune(off, "off", how="thesis-grid", at_once=99, execution=plan).tried
    assert {one.point["loss.alpha"] for one in thesis} == {32.0}, "the table's default, which is on the grid"
