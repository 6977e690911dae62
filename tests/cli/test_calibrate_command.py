"""``likewise calibrate``: from labeled images to thresholds in the model's file."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from likewise.app.errors import UserError
from likewise.cli import main
from likewise.cli.calibrate import run as calibrate_command
from likewise.search.calibration import Calibration
from likewise.search.encoder import Encoder
from likewise.trunks import Embedder, read_card


@pytest.fixture
def model(here: Path) -> Path:
    torch.manual_seed(0)
    file = here / "m.safetensors"
    Embedder("convnet", 8).eval().save(file, classes=["c00", "dunlin"], metrics={"R@1": 0.5})
    return file


def test_a_folder(model: Path, here: Path, capsys: pytest.CaptureFixture[str]):
    """Thresholds by hand: the smallest genuine similarity with few enough impostors at or above it."""
    before = Embedder.load(model).state_dict()
    assert main(["calibrate", "m.safetensors", "photos", "--transform", "glyphs", "--far", "0.1", "0.001"]) == 0
    said = capsys.readouterr()
    card = read_card(model)
    assert card.metrics == {"R@1": 0.5}
    assert card.calibration is not None
    learned = Calibration.from_dict(card.calibration)
    files = sorted((here / "photos").rglob("*.png"))
    vectors = Encoder.load(model, transform="glyphs", device="cpu").embed(files).astype(float)
    similar = vectors @ vectors.T
    same = np.array([[a.parent == b.parent for b in files] for a in files])
    upper = np.triu(np.ones_like(same), 1)
    genuine, impostors = np.sort(similar[same & upper]), similar[~same & upper]
    assert (learned.genuine, learned.impostors) == (len(genuine), len(impostors)) == (180, 2376)
    for far in (0.1, 0.001):
        fits = [each for each in genuine if (impostors >= each - 1e-6).mean() <= far]
        assert learned.point(far).threshold == pytest.approx(min(fits, default=np.inf), abs=1e-5)
    assert "72 images of 12 classes" in said.out
    assert "the model was trained on 1 of these classes" in said.err
    assert "2,376 different pairs are too few for a rate of 0.001" in said.err
    assert all(torch.equal(value, before[name]) for name, value in Embedder.load(model).state_dict().items())
    assert [each.name for each in here.iterdir() if "atomic_write" in each.name] == []


def test_a_table_with_a_broken_image_and_one_without_a_label(model: Path, here: Path, capsys):
    (here / "torn.png").write_bytes(b"no image")
    rows = [f"photos/c{number:02d}/{image}.png,c{number:02d}" for number in range(3) for image in range(3)]
    (here / "t.csv").write_text("\n".join(["path,label", *rows, "torn.png,c00", "photos/c05/0.png,"]))
    assert main(["calibrate", "m.safetensors", "t.csv", "--transform", "glyphs"]) == 0
    said = capsys.readouterr()
    assert "9 images of 3 classes" in said.out
    assert "left out: torn.png: it is not an image of a known format" in said.err


def test_a_copy_and_a_run_whose_test_set_was_opened(run: Path, here: Path, capsys):
    """The run knows how images are shown; its record of openings names a checksum, which changes in place."""
    before = (run / "best.safetensors").read_bytes()
    assert main(["calibrate", "run", "photos", "-o", "calibrated.safetensors"]) == 0
    assert (run / "best.safetensors").read_bytes() == before
    assert read_card(here / "calibrated.safetensors").calibration is not None
    assert "openings" not in capsys.readouterr().err
    (run / "openings.jsonl").write_text("{}\n")
    assert main(["calibrate", "run", "photos"]) == 0
    assert "the run's record of openings has the checksum of the old file" in capsys.readouterr().err
    assert read_card(run / "best.safetensors").calibration == read_card(here / "calibrated.safetensors").calibration


def test_a_run_brings_its_validation_classes(run: Path, model: Path, capsys: pytest.CaptureFixture[str]):
    assert calibrate_command(["run"]) == 0
    assert "fitted to 12 images of 2 classes" in capsys.readouterr().out
    assert read_card(run / "best.safetensors").calibration is not None
    with pytest.raises(
        UserError, match=r"images must be given for m.safetensors, because it is not the model of a run"
    ):
        calibrate_command(["m.safetensors"])


def test_mistakes(model: Path, here: Path):
    (here / "flat").mkdir()
    shutil.copy("photos/c00/0.png", here / "flat")
    before = model.read_bytes()
    with pytest.raises(UserError, match=r"flat must have images of at least two classes"):
        calibrate_command(["m.safetensors", "flat"])
    with pytest.raises(UserError, match=r"--far must be rates above 0 and at most 1, but it is 0.0"):
        calibrate_command(["m.safetensors", "photos", "--far", "0"])
    with pytest.raises(UserError, match=r"--out must be a file that ends in .safetensors, but it is m.pt"):
        calibrate_command(["m.safetensors", "photos", "-o", "m.pt"])
    (here / "t.csv").write_text("path,label\nphotos/c00/0.png,a\nphotos/c01/0.png,b\n")
    with pytest.raises(UserError, match=r"the calibration: labels must give at least one genuine pair"):
        calibrate_command(["m.safetensors", "t.csv", "--transform", "glyphs"])
    assert model.read_bytes() == before
