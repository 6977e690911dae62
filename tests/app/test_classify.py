"""Images named by their nearest labeled neighbors: from an index, a folder and a run."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
import torch
from PIL import Image

from likewise import app
from likewise.cli import main
from likewise.trunks import Embedder, build

COLORS = {"red": (220, 30, 30), "green": (30, 180, 40), "blue": (20, 40, 210)}


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """Two folders of colors, and a model; the second has one picture that lies in the wrong class."""
    torch.manual_seed(0)
    Embedder(build("convnet", in_channels=3), 16).save(tmp_path / "model.safetensors")
    for part, offsets in (("known", (0, 12, 24)), ("new", (6,))):
        for name, color in COLORS.items():
            (tmp_path / part / name).mkdir(parents=True)
            for number, offset in enumerate(offsets):
                shade = tuple(channel + offset for channel in color)
                Image.new("RGB", (32, 32), shade).save(tmp_path / part / name / f"{number}.png")
    Image.new("RGB", (32, 32), COLORS["red"]).save(tmp_path / "new" / "blue" / "9.png")
    return tmp_path


def test_neighbors_name_the_class(photos: Path, capsys: pytest.CaptureFixture[str]):
    model = photos / "model.safetensors"
    found = app.classify(model, photos / "new", examples=photos / "known", k=3)
    assert [(each.truth, each.label, each.share) for each in found.predictions] == [
        ("blue", "blue", 1.0),
        ("blue", "red", 1.0),
        ("green", "green", 1.0),
        ("red", "red", 1.0),
    ]
    assert (found.accuracy, found.examples, found.classes) == (0.75, 9, 3)
    app.index_folder(model, photos / "known", photos / "known.index")
    words = ["classify", str(photos / "known.index"), str(photos / "new" / "green" / "0.png"), "--json", "--weighted"]
    assert main([*words, "-o", str(photos / "found.csv")]) == 0
    row = json.loads(capsys.readouterr().out)
    assert (row["label"], row["nearest"].split("/")[0], row["truth"]) == ("green", "green", None)
    with (photos / "found.csv").open(newline="") as file:
        assert [each["label"] for each in csv.DictReader(file)] == ["green"]
    assert main(["classify", str(model), str(photos / "new"), "--examples", str(photos / "known")]) == 0
    said = capsys.readouterr().out
    assert "9 examples of 3 classes" in said
    assert "75.00 percent of the 4 images" in said
    for options, words_ in (
        ([str(model), "a.png"], "--examples must be given"),
        ([str(photos / "known.index"), "a.png", "--examples", "b"], "--examples cannot be combined with an index"),
        ([str(model), "a.png", "--examples", str(photos / "new" / "red")], "must have labels"),
    ):
        assert main(["classify", *options]) == 2
        assert words_ in capsys.readouterr().err


def test_the_training_images_of_a_run_vote(photos: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("likewise.app.evaluation.report_on", lambda *_, **__: None)  # pages are tested elsewhere
    settings = {"data": "ImageFolder", "data.root": str(photos / "known"), "model.trunk": "convnet", "model.dim": 8}
    settings |= {"split.validation": 0.0, "split.test": 0.0, "transform": "glyphs", "train.epochs": 1}
    settings |= {"sampler.classes": 3, "sampler.per_class": 2, "cache": str(photos / "cache"), "cache_on": "ram"}
    run = app.train(app.configure(settings), photos / "run")
    found = app.classify(run.folder, [photos / "new" / "red" / "0.png"], k=3)
    assert (found.examples, found.classes) == (9, 3)
    assert found.predictions[0].label in COLORS
