"""A frozen trunk: features are computed once, the head is trained, and the result is an ordinary model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from likewise.app.configuration import configure
from likewise.app.training import resume, train
from likewise.cli import main
from likewise.linear import RCA, load_embeddings
from likewise.train import FeatureLoader, Run
from likewise.trunks import Embedder, fold_metric
from tests.cli.conftest import TRAIN

FROZEN = (*TRAIN, "--model.freeze", "trunk")


def numbers(folder: str) -> list[dict[str, object]]:
    clock = ("seconds", "images_per_s", "time", "message")
    return [{name: x for name, x in line.items() if name not in clock} for line in Run(folder).metrics()]


@pytest.mark.filterwarnings("ignore::likewise.app.errors.Note")
def test_the_head_is_trained_on_features_of_one_pass(here: Path, monkeypatch: pytest.MonkeyPatch, capsys):
    passes, compute = [], FeatureLoader._compute
    monkeypatch.setattr(FeatureLoader, "_compute", lambda self: passes.append(1) or compute(self))
    monkeypatch.setenv("LIKEWISE_CACHE", str(here / "cache"))
    assert main([*FROZEN, "--out", "first"]) == 0
    assert "the trunk is frozen with random weights" in capsys.readouterr().err
    assert len(passes) == 2  # training and validation images, for all epochs
    run = Run("first")
    assert run.description["config"]["model"]["freeze"] == "trunk"
    assert list(run.description["groups"]) == ["head"]

    after = load_file("first/model.safetensors")
    torch.manual_seed(0)
    before = Embedder("convnet", 8, freeze="trunk").state_dict()
    assert all(torch.equal(after[name], before[name]) for name in before if name.startswith("trunk."))
    assert not torch.equal(after["head.weight"], before["head.weight"])

    settings = {"data": "ImageFolder", "data.root": "photos", "model.freeze": "trunk"}
    config = configure(settings, files=["quick.yaml"])
    with pytest.raises(KeyboardInterrupt):
        train(config, "second", on_start=lambda pieces, folder: interrupt(pieces.loss))
    assert not Run("second").finished
    resume("second")
    assert len(passes) == 2  # features are kept in the cache
    assert numbers("second") == numbers("first")

    assert main(["evaluate", "first"]) == 0  # an ordinary model, on images
    embedder = Embedder.load("first/best.safetensors")
    assert embedder.freeze is None


def interrupt(loss: torch.nn.Module) -> None:
    calls: list[int] = []

    def hook(*_: object) -> None:
        calls.append(1)
        if len(calls) == 3:
            import signal

            signal.raise_signal(signal.SIGINT)

    loss.register_forward_hook(hook)


def test_a_metric_of_embedded_photos_is_exported(run: Path):
    """`embed` writes a file, a metric is learned from it, folded into the embedder, and exported."""
    model = Embedder.load(run / "best.safetensors")
    model.normalize = False
    model.save("raw.safetensors")
    assert main(["embed", "raw.safetensors", "photos", "-o", "photos.npz"]) == 0
    points, labels = load_embeddings("photos.npz")
    learned = RCA(n_components=3).fit(points, labels)
    fold_metric(model, learned.components_).save("better.safetensors")
    assert main(["embed", "better.safetensors", "photos", "-o", "better.npz"]) == 0
    assert np.allclose(load_embeddings("better.npz")[0], learned.transform(points), atol=1e-2 * np.abs(points).max())
    assert main(["export", "better.safetensors", "-o", "better.pt2"]) == 0
    assert Path("better.pt2").exists()


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (["--model.head", "none", "--model.dim", "null"], "head must be 'linear' or 'mlp' with freeze='trunk'"),
        (["--model.freeze", "all"], "--model.freeze must be"),
        (["--train.trunk_warmup", "1"], "trunk_warmup must be 0"),
    ],
)
def test_bad_flags(flags: list[str], sentence: str, capsys: pytest.CaptureFixture[str]):
    assert main([*FROZEN, *flags]) == 2
    assert sentence in capsys.readouterr().err
