"""``likewise demo``: a few losses learn characters, and are asked about others that they never saw."""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from likewise.app import (
    Machine,
    Opening,
    Tree,
    UserError,
    make_model,
    make_pieces,
    parse_request,
    parts_of,
    read_request,
    scores,
    this_machine,
    write,
)
from likewise.cli.screen import bold, columns
from likewise.metrics import Interval
from likewise.report import Compared, Part
from likewise.train import Run
from likewise.trunks import Embedder

LOSSES = {
    "contrastive": ("--loss", "ContrastiveLoss"),
    "triplet, semi-hard": ("--loss", "TripletLoss", "--loss.miner", "SemiHardMiner"),
    "multi-similarity": ("--loss", "MultiSimilarityLoss", "--loss.miner", "MultiSimilarityMiner"),
}
"""What is compared, as flags of ``likewise train``."""

SHARED = ("--data", "Glyphs", "--transform", "glyphs", "--model.trunk", "convnet", "--model.dim", "64")
LEARNING = ("--optimizer.lr", "0.002", "--sampler.steps", "100", "--train.log_every", "10")
CHARACTERS = ("719 characters to learn from", "143 to choose the best model by", "576 sealed until the end")


@dataclass(frozen=True)
class Row:
    """One line of the table: what, and how well it finds characters that it never saw."""

    name: str
    found: dict[str, Interval]

    def cells(self) -> tuple[str, str, str]:
        """As text."""
        return self.name, _percent(self.found["R@1"]), _percent(self.found["MAP@R"])


def run(words: Sequence[str]) -> int:
    """Draw, train, choose, open the test set, report.

    Examples:
        >>> run(["--epochs", "0"])
        Traceback (most recent call last):
        likewise.app.errors.UserError: --epochs must be a whole number ≥ 1, but it is 0
    """
    options = _options(words)
    begin, machine = time.monotonic(), this_machine()
    print(bold("likewise demo: learn some characters, then find others that were never shown"))
    print("  " + ", ".join(CHARACTERS), flush=True)
    folder = _free(options.out)
    runs: dict[str, tuple[Run, Tree]] = {}
    for name, flags in LOSSES.items():
        runs[name] = _trained(name, flags, folder / name.replace(", ", "-"), options, machine)
    torch.manual_seed(options.seed)
    untrained = make_model(runs[name][1]["model"]).eval()
    best = max(runs, key=lambda name: _chosen(runs[name][0])["MAP@R"])
    print(f"\nbest on validation: {best}. Now the seal is broken, and each run's record says so.", flush=True)

    opened = {name: parts_of(each, config, machine, test=_why(best)) for name, (each, config) in runs.items()}
    *_, test = opened[best]
    rows = [
        Row("raw pixels", scores(_as_they_are(test))),
        Row("untrained network", scores(_by(untrained, test))),
        *(Row(name, scores(parts[-1])) for name, parts in opened.items()),
    ]
    print(bold("\non the characters that no network has seen, in per cent, with 95% intervals"))
    print(columns([("", "R@1", "MAP@R"), *(row.cells() for row in rows)]))
    compared = [Compared(name, row.found, runs[name][0].folder) for row in rows[2:] for name in [row.name]]
    baselines = {row.name: row.found for row in rows[:2]}
    page = write(runs[best][0], opened[best], baselines=baselines, comparison=compared)
    print(f"\nthe report, for a browser: {page}")
    print(f"the model: {runs[best][0].folder / 'best.safetensors'}")
    print(f"\n{time.monotonic() - begin:.0f} s. Next: likewise train --data ImageFolder --data.root YOUR_PHOTOS")
    return 0


def _options(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        "likewise demo", description="Train a few losses on drawn characters; no data needed."
    )
    parser.add_argument("--out", type=Path, default=Path("runs/demo"), help="where the runs go (default: runs/demo)")
    parser.add_argument("--epochs", type=int, default=4, help="of 100 batches, for each loss (default: 4)")
    parser.add_argument("--images-per-class", type=int, default=24, help="drawn of each character (default: 24)")
    parser.add_argument("--seed", type=int, default=0, help="of everything that is drawn (default: 0)")
    options = parser.parse_args(list(words))
    for name, least in (("epochs", 1), ("images_per_class", 4), ("seed", 0)):
        if getattr(options, name) < least:
            raise UserError(
                f"--{name.replace('_', '-')} must be a whole number ≥ {least}, but it is {getattr(options, name)}"
            )
    return options


def _free(folder: Path) -> Path:
    """The folder, or the first of its names with a number that is free."""
    number, free = 1, folder
    while free.exists():
        number += 1
        free = folder.with_name(f"{folder.name}-{number}")
    return free


def _trained(
    name: str, flags: Sequence[str], folder: Path, options: argparse.Namespace, machine: Machine
) -> tuple[Run, Tree]:
    numbers = ("--data.images_per_class", str(options.images_per_class), "--train.epochs", str(options.epochs))
    seed = ("--seed", str(options.seed), "--out", str(folder))
    config = parse_request(read_request([*SHARED, *LEARNING, *flags, *numbers, *seed]))
    finished = make_pieces(config, machine).train(folder, config, machine)
    [*_, end] = finished.metrics("end")
    best = _chosen(finished)
    measured = f"validation R@1 {100 * best['R@1']:.1f}, MAP@R {100 * best['MAP@R']:.1f}"
    print(f"  {name:<20}{end['seconds']:5.0f} s   {measured}", flush=True)
    return finished, config


def _chosen(finished: Run) -> Mapping[str, Any]:
    """The validation of the model that was kept; the demo always validates."""
    assert finished.chosen is not None
    return finished.chosen


def _why(best: str) -> Opening:
    return Opening(f"likewise demo: training is over, {best} was chosen on validation")


def _pixels(part: Part) -> Tensor:
    """The images of a part, gray, ``(n, 1, h, w)`` bytes."""
    return torch.from_numpy(
        np.stack([np.asarray(part.image(row).convert("L"))[None] for row in range(len(part.labels))])
    )


def _as_they_are(part: Part) -> Part:
    """The images themselves as embeddings, less their mean brightness: what a network has to beat."""
    flat = _pixels(part).flatten(1).float()
    return replace(part, embeddings=flat - flat.mean(dim=1, keepdim=True))


@torch.inference_mode()
def _by(model: Embedder, part: Part) -> Part:
    """The same images, embedded by another model."""
    assert model.preprocessing is not None
    made = [model(model.preprocessing(some)) for some in torch.split(_pixels(part), 512)]
    return replace(part, embeddings=torch.cat(made).clone())


def _percent(value: Interval) -> str:
    return f"{100 * value.mean:5.1f} ± {50 * (value.high - value.low):.1f}"
