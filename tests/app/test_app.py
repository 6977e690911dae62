"""The application layer from Python: configure, train, resume, evaluate and report, without the command line."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from likewise import app
from likewise.testing import loop_over

TINY = {
    "data": "Glyphs",
    "data.images_per_class": 2,
    "train.epochs": 1,
    "sampler.classes": 16,
    "sampler.per_class": 2,
    "sampler.steps": 2,
    "model.dim": 8,
}


def test_a_training_is_four_calls(tmp_path: Path):
    seen = []
    config = app.configure({**TINY, "loss": "ProxyAnchorLoss", "loss.alpha": 16, "split.validation": 0.01})
    run = app.train(config, tmp_path / "run", on_start=lambda pieces, folder: seen.append((pieces.loss.alpha, folder)))
    assert seen == [(16.0, str(tmp_path / "run"))]
    assert run.finished
    assert (run.folder / "report.html").exists()
    assert app.resume(run.folder).finished  # nothing is left to do
    found = app.evaluate(run)
    assert found.model == run.folder / "best.safetensors"
    assert set(found.scores) == {"validation"}
    assert 0.0 <= found.scores["validation"]["MAP@R"].mean <= 1.0
    assert found.openings == 0
    opened = app.evaluate(run.folder, test="the final number")
    assert set(opened.scores) == {"validation", "test"}
    assert opened.openings == 1
    assert app.report(run, tmp_path / "again.html").read_text().lower().startswith("<!doctype html>")


def test_settings_win_over_files(tmp_path: Path):
    (tmp_path / "a.yaml").write_text("loss: {class_path: CircleLoss, init_args: {gamma: 32}}\nseed: 3\n")
    settings = {"data": "ImageFolder", "data.root": tmp_path, "loss.margin": 0.3, "train.trackers": ("a",)}
    config = app.configure(
        {**settings, "cache_on": "ram", "optimizer": {"lrs": {"trunk": 1}}}, files=[tmp_path / "a.yaml"]
    )
    assert (config["seed"], config["cache_on"], config["optimizer"]["lrs"]) == (3, "ram", {"trunk": 1.0})
    assert (config["data"]["init_args"]["root"], config["train"]["trackers"]) == (str(tmp_path), ["a"])
    assert {name: config["loss"]["init_args"][name] for name in ("gamma", "margin")} == {"gamma": 32.0, "margin": 0.3}


@loop_over(
    "settings, message",
    [
        ({}, "--data must be given"),
        ({"data": "Glyphs", "loss": "CircelLoss"}, "there is no loss CircelLoss; did you mean CircleLoss?"),
        ({"data": "Glyphs", "seed": "x"}, "--seed must be a whole number, but it is 'x'"),
    ],
)
def test_errors_are_sentences(settings: dict[str, object], message: str):
    with pytest.raises(app.UserError) as error:
        app.configure(settings)
    assert str(error.value).startswith(message)


def test_the_command_line_is_not_needed():
    loaded = {name for name in sys.modules if name.startswith("likewise.cli")}
    app.configure({"data": "Glyphs"})
    assert {name for name in sys.modules if name.startswith("likewise.cli")} == loaded
