"""``likewise verify``: two images, a similarity, a probability, and a decision."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from likewise.app.errors import UserError
from likewise.cli.verify import run as verify_command
from likewise.search.calibration import Calibration, Point
from likewise.search.encoder import Encoder
from likewise.trunks import Embedder, read_card
from likewise.trunks.card import read_tensors, write_model


@pytest.fixture
def model(here: Path) -> Path:
    torch.manual_seed(0)
    file = here / "m.safetensors"
    Embedder("convnet", 8).eval().save(file)
    return file


def with_threshold(model: Path, threshold: float) -> None:
    learned = Calibration((Point(0.01, threshold, 0.9),), (-1.0, 1.0), (0.01, 0.99), 100, 10_000)
    write_model(model, read_tensors(model), replace(read_card(model), calibration=learned.as_dict()))


PAIR = ["photos/c00/0.png", "photos/c06/1.png", "--transform", "glyphs"]


def test_same_or_not(model: Path, capsys: pytest.CaptureFixture[str]):
    first, second = Encoder.load(model, transform="glyphs", device="cpu").embed(PAIR[:2])
    similarity = float(first @ second)
    probability = 0.01 + 0.98 * (similarity + 1.0) / 2.0
    strict = "probably the same, but not similar enough for a false-accept rate of 0.01"
    for words, threshold, verdict in (
        ([], similarity + 0.01, "the same"),
        (["--prior", f"{1 - probability - 0.01}"], similarity + 0.01, "not the same"),
        (["--far", "0.01"], similarity - 0.01, "the same"),
        (["--far", "0.01"], similarity + 0.01, strict),
    ):
        with_threshold(model, threshold)
        assert verify_command(["m.safetensors", *PAIR, *words]) == 0
        said = capsys.readouterr().out
        assert said.splitlines()[0] == verdict
        assert f"{similarity:.4f}" in said
        assert "--prior" in words or f"{probability:.2f} that they show the same thing" in said


def test_an_image_is_the_same_as_itself(model: Path, capsys: pytest.CaptureFixture[str]):
    assert verify_command(["m.safetensors", PAIR[0], PAIR[0]]) == 0
    assert capsys.readouterr().out == "the same: the two files are identical\n"


def test_mistakes(model: Path, here: Path):
    with pytest.raises(
        UserError, match=r"m.safetensors is not calibrated: run likewise calibrate m.safetensors IMAGES"
    ):
        verify_command(["m.safetensors", *PAIR])
    with_threshold(model, 0.5)
    with pytest.raises(UserError, match=r"far must be one of the calibrated rates \(0.01\), but it is 0.2"):
        verify_command(["m.safetensors", *PAIR, "--far", "0.2"])
    with pytest.raises(UserError, match=r"cannot read the image photos/none.png: there is no such file"):
        verify_command(["m.safetensors", "photos/none.png", PAIR[0], "--transform", "glyphs"])
    with pytest.raises(UserError, match=r"prior must be between 0 and 1"):
        verify_command(["m.safetensors", *PAIR, "--prior", "1"])
