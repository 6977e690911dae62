"""Recipes in studies: applied whole, with the protocol of the study in place of their split."""

from __future__ import annotations

from pathlib import Path

import pytest

from likewise import app
from likewise.app.study_io import make_study

PLAN = app.Execution(workers=0)


def test_a_base_and_a_method_take_recipes_whole():
    study = make_study(
        {
            "base": {"config": "unified-view/cub", "data": {"init_args": {"root": "birds"}}},
            "methods": {"arc": {"config": ["reality-check/losses/arcface"], "model": {"dim": 64}}},
        }
    )
    alone = app.configure(
        {"data.root": "birds", "model.dim": 64, "split.validation": 0.1},
        files=["unified-view/cub", "reality-check/losses/arcface"],
    )
    [trial] = study.trials()
    assert {**trial.config, "out": None} == {**alone, "out": None}
    assert study.protocol == {"validation": 0.1, "seed": 0}, "the recipe's split, where the study has no protocol"


def test_the_papers_set_ups_and_protocols_work_together(tmp_path: Path):
    for name, protocol, folds in (
        ("reality-check/cub", "reality-check", 4),
        ("thesis/cub-resnet50", "thesis-folds", 10),
    ):
        config = app.configure({"data.root": "birds"}, files=[name])
        report = app.repeat(config, tmp_path / protocol, seeds=1, protocol=protocol, execution=PLAN)
        assert report.counts["missing"] == folds
        study = {"base": {"config": name, "data.root": 1}, "methods": {"a": {}}, "protocol": protocol}
        with pytest.raises(app.UserError, match=r"there is no option --data\.root"):
            make_study(study).trials()
        study["base"] = {"config": name, "data": {"init_args": {"root": "birds"}}}
        trials = make_study(study).trials()
        assert [trial.config["split"]["fold"] for trial in trials] == list(range(folds))
        assert {trial.config["model"]["trunk"] for trial in trials} == {config["model"]["trunk"]}
    report = app.repeat(config, tmp_path / "share", seeds=1, execution=PLAN)
    assert report.study.protocol == {"validation": 0.1, "seed": 0}


def test_a_recipe_that_is_not_there_is_refused():
    for given, words in (("nowhere.yaml", "there is no file"), (3, "must be a YAML file"), ([], "must be a YAML file")):
        with pytest.raises(app.UserError, match=words):
            make_study({"base": {"config": given}, "methods": {"a": {}}})


def test_a_recipe_is_looked_for_beside_the_study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "st").mkdir()
    (tmp_path / "glyphs").mkdir()  # a folder does not hide the recipe of that name
    (tmp_path / "mine.yaml").write_text("model: {dim: 4}\n")
    (tmp_path / "st" / "mine.yaml").write_text("model: {dim: 8}\n")
    (tmp_path / "st" / "study.yaml").write_text(
        "base: {config: [glyphs, mine.yaml]}\nmethods: {circle: {loss: CircleLoss}}\n"
    )
    monkeypatch.chdir(tmp_path)
    [trial] = app.read_study("st").trials()
    assert (trial.config["model"]["dim"], trial.config["transform"]) == (8, "glyphs")
