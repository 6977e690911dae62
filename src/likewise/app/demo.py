"""The demo: train a few losses on drawn characters and measure them on unseen ones."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from likewise.app.build import Machine, make_model, make_pieces, this_machine
from likewise.app.configuration import parse_request
from likewise.app.defaults import Tree
from likewise.app.errors import UserError
from likewise.app.evaluation import Opening, parts_of, scores, write
from likewise.app.layers import read_request
from likewise.metrics import Interval
from likewise.report import Compared, Part
from likewise.train import Run
from likewise.trunks import Embedder

LOSSES = {
    "contrastive": ("--loss", "ContrastiveLoss"),
    "triplet, semi-hard": ("--loss", "TripletLoss", "--loss.miner", "SemiHardMiner"),
    "multi-similarity": ("--loss", "MultiSimilarityLoss", "--loss.miner", "MultiSimilarityMiner"),
}
"""The compared losses, as flags of ``likewise train``."""

SHARED = ("--data", "Glyphs", "--transform", "glyphs", "--model.trunk", "convnet", "--model.dim", "64")
LEARNING = ("--optimizer.lr", "0.002", "--sampler.steps", "100", "--train.log_every", "10")


@dataclass(frozen=True)
class DemoTraining:
    """A loss of the demonstration after its training.

    Args:
        name: the name of the loss.
        run: the run.
        config: its configuration.

    Examples:
        >>> from dataclasses import fields
        >>> [each.name for each in fields(DemoTraining)]
        ['name', 'run', 'config']
    """

    name: str
    run: Run
    config: Tree

    @property
    def seconds(self) -> float:
        """How long the training took."""
        [*_, end] = self.run.metrics("end")
        return float(end["seconds"])

    @property
    def validation(self) -> Mapping[str, Any]:
        """The metrics of its best model on validation classes; the demonstration always validates."""
        assert self.run.chosen is not None
        return self.run.chosen


@dataclass(frozen=True)
class Demo:
    """The outcome of the demonstration.

    Args:
        best: the training that was best on validation classes.
        scores: metrics with intervals on the test set: raw pixels, an untrained network, and every loss.
        page: the report.

    Examples:
        >>> from dataclasses import fields
        >>> [each.name for each in fields(Demo)]
        ['best', 'scores', 'page']
    """

    best: DemoTraining
    scores: dict[str, dict[str, Interval]]
    page: Path


def run_demo(
    folder: str | os.PathLike[str] = "runs/demo",
    *,
    epochs: int = 4,
    images_per_class: int = 24,
    seed: int = 0,
    on_trained: Callable[[DemoTraining], object] | None = None,
    on_test: Callable[[DemoTraining], object] | None = None,
) -> Demo:
    """Train three losses on drawn characters, select one on validation characters, and measure all on the test set.

    Args:
        folder: where the runs go; if it exists, the first free ``FOLDER-2``, ``FOLDER-3`` and so on.
        epochs: epochs per loss, of 100 batches each.
        images_per_class: images per character.
        seed: random seed.
        on_trained: called with each training that has ended.
        on_test: called with the best training before the test set is opened.

    Raises:
        UserError: an argument is invalid.

    Examples:
        >>> run_demo(epochs=0)
        Traceback (most recent call last):
        likewise.app.errors.UserError: --epochs must be a whole number ≥ 1, but it is 0
    """
    for option, value, least in (("epochs", epochs, 1), ("images-per-class", images_per_class, 4), ("seed", seed, 0)):
        if value < least:
            raise UserError(f"--{option} must be a whole number ≥ {least}, but it is {value}")
    machine, place = this_machine(), _find_free(Path(folder))
    numbers = ("--data.images_per_class", str(images_per_class), "--train.epochs", str(epochs), "--seed", str(seed))
    trainings = []
    for name, flags in LOSSES.items():
        training = _train(name, [*SHARED, *LEARNING, *flags, *numbers], place / name.replace(", ", "-"), machine)
        trainings.append(training)
        if on_trained is not None:
            on_trained(training)
    torch.manual_seed(seed)
    untrained = make_model(trainings[0].config["model"]).eval()
    best = max(trainings, key=lambda each: each.validation["MAP@R"])
    if on_test is not None:
        on_test(best)
    why = Opening(f"likewise demo: training is over, {best.name} was chosen on validation")
    parts = {each.name: parts_of(each.run, each.config, machine, test=why) for each in trainings}
    test = parts[best.name][-1]
    baselines = {"raw pixels": scores(_embed_pixels(test)), "untrained network": scores(_embed(untrained, test))}
    measured = {name: scores(some[-1]) for name, some in parts.items()}
    compared = [Compared(each.name, measured[each.name], each.run.folder) for each in trainings]
    page = write(best.run, parts[best.name], baselines=baselines, comparison=compared)
    return Demo(best, baselines | measured, page)


def _find_free(folder: Path) -> Path:
    """The folder, or its first unused numbered name."""
    number, free = 1, folder
    while free.exists():
        number += 1
        free = folder.with_name(f"{folder.name}-{number}")
    return free


def _train(name: str, flags: Sequence[str], folder: Path, machine: Machine) -> DemoTraining:
    config = parse_request(read_request([*flags, "--out", str(folder)]))
    return DemoTraining(name, make_pieces(config, machine).train(folder, config, machine), config)


def _read_pixels(part: Part) -> Tensor:
    """The images of a part, gray, ``(n, 1, h, w)`` bytes."""
    return torch.from_numpy(
        np.stack([np.asarray(part.image(row).convert("L"))[None] for row in range(len(part.labels))])
    )


def _embed_pixels(part: Part) -> Part:
    """Raw pixels as embeddings, minus their mean brightness: the baseline."""
    flat = _read_pixels(part).flatten(1).float()
    return replace(part, embeddings=flat - flat.mean(dim=1, keepdim=True))


@torch.inference_mode()
def _embed(model: Embedder, part: Part) -> Part:
    """The same images, embedded by another model."""
    assert model.preprocessing is not None
    embeddings = [model(model.preprocessing(some)) for some in torch.split(_read_pixels(part), 512)]
    return replace(part, embeddings=torch.cat(embeddings).clone())
