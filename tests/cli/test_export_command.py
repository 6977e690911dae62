"""``likewise export``: from a run to files for other programs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from likewise.app.errors import UserError
from likewise.app.models import resolve_model
from likewise.cli.export import run as export_command
from likewise.trunks import Embedder

pytest.importorskip("onnxruntime")
pytest.importorskip("onnxscript")


def test_a_run_as_everything(run: Path, here: Path, capsys: pytest.CaptureFixture[str]):
    """The recipe, the data and the loss are the run's."""
    assert export_command(["run", "-o", "out", "--format", "onnx", "torch", "hub", "--title", "Stripes"]) == 0
    said, progress = capsys.readouterr()
    assert progress.splitlines()[0] == "writing format onnx and comparing it with torch"
    names = {"model.onnx", "model.pt2", "model.safetensors", "config.json", "preprocessor_config.json", "README.md"}
    assert {each.name for each in (here / "out").iterdir()} == names | {"export.json", "embed.py"}
    told = json.loads((here / "out" / "export.json").read_text())
    assert set(told) == {"onnx", "torch", "hub"}
    assert all(each["difference"] <= 1e-4 for each in told.values())
    assert "model.onnx, embed.py: within" in said
    card = (here / "out" / "README.md").read_text()
    assert "\n# Stripes\n" in card
    assert "- data: " in card
    assert "Preprocessing: whole image, scaled to 32 x 32 px" in card

    assert "levels of likewise's evaluation" in said
    assert told["onnx"]["takes"].startswith("images (B, H, W, 3) in uint8")
    program = (
        f"import sys, runpy; sys.modules.update(torch=None, likewise=None); sys.argv[1:] = ['{here}/photos/c00/0.png']"
    )
    program += f"; runpy.run_path('{here}/out/embed.py', run_name='__main__')"
    output = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    [truth] = resolve_model("run").load("cpu").embed([here / "photos/c00/0.png"])
    assert [float(each) for each in output.split()[1:]] == pytest.approx(truth.tolist(), abs=2e-3)
    for words, sentence in (((), "python embed.py a.jpg"), (("no.jpg",), "no.jpg cannot be read as an image: ")):
        refusal = subprocess.run([sys.executable, "out/embed.py", *words], capture_output=True, text=True, check=False)
        assert refusal.returncode == 1
        [line] = refusal.stderr.splitlines()
        assert sentence in line


def test_one_file(here: Path):
    Embedder("convnet", 8).save(here / "m.safetensors")
    words = ["--without-preprocessing", "--transform", "glyphs"]
    assert export_command(["m.safetensors", "-o", "out/b.pt2", *words]) == 0
    assert [each.name for each in (here / "out").iterdir()] == ["b.pt2"]
    with pytest.raises(UserError, match=r"formats must be the format of the file c.onnx, but it is"):
        export_command(["m.safetensors", "-o", "c.onnx", "--format", "hub"])


def test_mistakes(here: Path):
    Embedder("convnet", 8).save(here / "m.safetensors")
    with pytest.raises(UserError, match=r"invalid choice: 'tflite'"):
        export_command(["m.safetensors", "-o", "out", "--format", "tflite"])
    (here / "torn.safetensors").write_bytes(b"no model")
    with pytest.raises(UserError, match=r"the model torn.safetensors: torn.safetensors must be a safetensors file"):
        export_command(["torn.safetensors", "-o", "out"])
