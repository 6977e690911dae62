"""``likewise export``: from a run to files for other programs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from likewise.app.errors import UserError
from likewise.cli.export import run as export_command
from likewise.trunks import Embedder

pytest.importorskip("onnxruntime")
pytest.importorskip("onnxscript")


def test_a_run_as_everything(run: Path, here: Path, capsys: pytest.CaptureFixture[str]):
    """The recipe, the data and the loss are the run's."""
    assert export_command(["run", "-o", "out", "--format", "onnx", "torch", "hub", "--title", "Stripes"]) == 0
    said = capsys.readouterr().out
    names = {"model.onnx", "model.pt2", "model.safetensors", "config.json", "preprocessor_config.json", "README.md"}
    assert {each.name for each in (here / "out").iterdir()} == names | {"export.json"}
    told = json.loads((here / "out" / "export.json").read_text())
    assert set(told) == {"onnx", "torch", "hub"}
    assert all(each["difference"] <= 1e-4 for each in told.values())
    assert "model.onnx: within" in said
    card = (here / "out" / "README.md").read_text()
    assert "\n# Stripes\n" in card
    assert "- data: " in card
    assert "Preprocessing: the transform glyphs" in card


def test_with_preprocessing(here: Path, capsys: pytest.CaptureFixture[str]):
    Embedder("convnet", 8).save(here / "m.safetensors")
    assert export_command(["m.safetensors", "-o", "out", "--with-preprocessing", "--transform", "glyphs"]) == 0
    assert "levels of our evaluation's" in capsys.readouterr().out
    told = json.loads((here / "out" / "export.json").read_text())["onnx"]
    assert told["takes"].startswith("images (B, H, W, 3) in uint8")


def test_mistakes(here: Path):
    Embedder("convnet", 8).save(here / "m.safetensors")
    with pytest.raises(UserError, match=r"--with-preprocessing is for onnx and torch"):
        export_command(["m.safetensors", "-o", "out", "--format", "hub", "--with-preprocessing"])
    with pytest.raises(UserError, match=r"invalid choice: 'tflite'"):
        export_command(["m.safetensors", "-o", "out", "--format", "tflite"])
    (here / "torn.safetensors").write_bytes(b"no model")
    with pytest.raises(UserError, match=r"the export of torn.safetensors: torn.safetensors must be a safetensors file"):
        export_command(["torn.safetensors", "-o", "out"])
