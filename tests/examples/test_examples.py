"""The scripts in examples/ run, at tiny sizes."""

from __future__ import annotations

import functools
import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from likewise.data import glyphs

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
PORTS = EXAMPLES / "from_pytorch_metric_learning"
SCRIPTS = sorted([*EXAMPLES.glob("*.py"), *PORTS.glob("*.py")])


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"example_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def drawn() -> object:
    """Glyphs that are drawn once for all examples."""
    draw = glyphs.draw_glyphs

    @functools.cache
    def draw_once(character: str, numbers: tuple[int, ...], size: int, seed: int) -> np.ndarray:
        return draw(character, numbers, size=size, seed=seed)

    return lambda character, numbers, *, size, seed: draw_once(character, tuple(numbers), size, seed)


@pytest.fixture(autouse=True)
def tiny(drawn: object, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(glyphs, "draw_glyphs", drawn)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)


def test_own_loop():
    assert 0 < load(EXAMPLES / "own_loop.py").main(["--epochs", "1", "--images", "2", "--steps", "2"]) < 1


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # that library's own warnings
def test_lightning_loop():
    pytest.importorskip("lightning")
    assert 0 < load(EXAMPLES / "lightning_loop.py").main(["--epochs", "1", "--images", "2", "--steps", "2"]) < 1


def test_lightning_loop_says_what_it_needs(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "lightning", None)
    with pytest.raises(SystemExit, match="pip install lightning"):
        load(EXAMPLES / "lightning_loop.py")


def test_huggingface_dataset():
    assert load(EXAMPLES / "huggingface_dataset.py").main(["--epochs", "2"]) > 0.6


def test_huggingface_dataset_without_the_package(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    assert isinstance(load(EXAMPLES / "huggingface_dataset.py").make_dataset(2, 2), list)


@pytest.mark.slow
def test_torchrun_gives_the_losses_of_one_process():
    alone = load(EXAMPLES / "torchrun.py").main(["--steps", "3"])
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [*command, str(EXAMPLES / "torchrun.py"), "--steps", "3"],
        env=environment, capture_output=True, text=True, check=True, timeout=300,
    )  # fmt: skip
    losses = [float(value) for value in done.stdout.split()]
    assert losses == pytest.approx(alone, abs=2e-6)


def test_cross_batch_memory():
    scores = load(EXAMPLES / "cross_batch_memory.py").main(["--epochs", "1", "--images", "4", "--steps", "25"])
    assert scores["batch only"] != scores["with memory"]


def test_new_loss():
    losses = load(EXAMPLES / "new_loss.py").main(["--steps", "20"])
    assert losses[-1] < losses[0] / 1.5


def test_evaluate_embeddings(tmp_path: Path):
    example = load(EXAMPLES / "evaluate_embeddings.py")
    example.write_synthetic(tmp_path / "e.npz")
    assert example.main([str(tmp_path / "e.npz")]) == example.main([])


def test_search_from_python(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    pytest.importorskip("pyarrow")
    found = load(EXAMPLES / "search_from_python.py").main(["--folder", str(tmp_path / "i")])
    assert len(found) == 3
    assert "['00/003.jpg', '00/007.jpg']" in capsys.readouterr().out


def test_triplet_and_miner():
    assert load(PORTS / "triplet_and_miner.py").main(["--epochs", "1", "--images", "2"]) > 0.05


@pytest.mark.slow
def test_metric_loss_only():
    assert load(PORTS / "metric_loss_only.py").main(["--epochs", "1", "--images", "2", "--steps", "2"]) > 0


def test_train_with_classifier():
    assert load(PORTS / "train_with_classifier.py").main(["--epochs", "1", "--images", "2", "--steps", "2"]) > 0


def test_two_stream_metric_loss():
    assert load(PORTS / "two_stream_metric_loss.py").main(["--epochs", "10"])["first to second"] > 0.5


def test_inference():
    pytest.importorskip("pyarrow")
    assert load(PORTS / "inference.py").main(["--images", "2"]) > 0.5


def test_cascaded_embeddings():
    scores = load(PORTS / "cascaded_embeddings.py").main(["--epochs", "1", "--images", "2", "--steps", "2"])
    assert set(scores) == {"first", "second", "third", "together"}


def test_momentum_contrast():
    accuracy = load(PORTS / "momentum_contrast.py").main(["--epochs", "1", "--images", "2"])
    assert accuracy > 0.03  # one of 142 neighbors is right by chance


def lines(paths: Iterable[Path]) -> dict[str, int]:
    return {path.name: len(path.read_text().splitlines()) for path in paths}


def test_examples_are_short():
    assert max(lines([*SCRIPTS, *EXAMPLES.glob("notebooks/*.py")]).values()) <= 100


def test_every_example_is_tested_and_listed():
    tests, page = Path(__file__).read_text(), (EXAMPLES / "README.md").read_text()
    for script in SCRIPTS:
        assert f'/ "{script.name}"' in tests
        assert re.search(rf"{script.relative_to(EXAMPLES)}", page), f"add {script.name} to examples/README.md"
