"""What the training loop costs: images per second of `likewise.train.train` and of a bare loop, on the same batches.

    python -m benchmarks.training.measure                               two cores, made-up images; writes results/training-cpu.json
    python -m benchmarks.training.measure --device cuda                 EfficientNet-Lite0, 112 px, 128 images, 512-d, bfloat16
    python -m benchmarks.training.measure --device cuda --cub FOLDER    the same on CUB-200-2011
    python -m benchmarks.training.measure --quick                       a smoke test; prints, and writes nothing

The bare loop is what a user writes by hand: the same model, loss, optimizer and loader, forward, backward, step, and
nothing else: no record, no checkpoint, no progress.  Ours has all of them.  Both are timed over whole epochs, in turns; on a
GPU its driver says for how much of ours it was busy.  Run it on a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

from benchmarks.harness import Busy, machine, make_parser, result_path, versions, write
from likewise.data import CUB128, CUB200, GLYPHS, BatchLoader, Glyphs, ImageCache, ImageFolder, PerClassSampler, cached
from likewise.losses import MultiSimilarityLoss
from likewise.train import Data, OptimizerConfig, TrainConfig, train
from likewise.trunks import Embedder

Row = dict[str, Any]


@dataclass(frozen=True)
class Setting:
    """A model on a data set."""

    name: str
    trunk: str
    dim: int
    classes: int
    images: ImageCache
    augment: Any
    device: str
    precision: str
    steps: int
    epochs: int

    def model(self) -> Embedder:
        torch.manual_seed(0)
        layout = torch.channels_last if self.device != "cpu" else torch.contiguous_format
        return Embedder(self.trunk, self.dim, freeze_bn=True).to(self.device, memory_format=layout).train()

    def loader(self) -> BatchLoader:
        sampler = PerClassSampler(self.images.labels, classes=self.classes, per_class=4, steps=self.steps)
        return BatchLoader(self.images, sampler, self.augment, device=self.device)

    @property
    def count(self) -> int:
        return self.classes * 4 * self.steps


def bare(setting: Setting) -> list[float]:
    """Seconds of each epoch of the loop that a user writes by hand."""
    model, loss, loader = setting.model(), MultiSimilarityLoss(), setting.loader()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=1e-4, fused=setting.device != "cpu")
    half = torch.autocast(torch.device(setting.device).type, dtype=torch.bfloat16, enabled=setting.precision == "bf16")
    times = []
    for _ in range(setting.epochs):
        begin = time.perf_counter()
        for images, labels, _indices in loader:
            optimizer.zero_grad(set_to_none=True)
            with half:
                embeddings = model(images)
            loss(embeddings.float(), labels).backward()
            optimizer.step()
        if setting.device != "cpu":
            torch.cuda.synchronize()
        times.append(time.perf_counter() - begin)
    return times


@dataclass(frozen=True)
class Trained:
    """Seconds of each epoch of `train`, from its own record, its notes, and the share of that time the GPU was busy."""

    epochs: list[float]
    notes: list[str]
    busy: float | None


def ours(setting: Setting, graph: bool | None) -> Trained:
    """Train, and read the record."""
    with Busy(setting.device) as watch, tempfile.TemporaryDirectory() as folder:
        run = train(
            setting.model(),
            MultiSimilarityLoss(),
            Data(setting.loader()),
            folder=f"{folder}/run",
            optimizer=OptimizerConfig(lr=1e-4, weight_decay=1e-4),
            settings=TrainConfig(
                epochs=setting.epochs,
                precision=setting.precision,  # type: ignore[arg-type]
                channels_last=setting.device != "cpu",
                graph=graph,
                log_every=20,
            ),
            device="cpu" if setting.device == "cpu" else None,
        )
        finished = time.perf_counter()
        lines = run.metrics()
    ends = [line["seconds"] for line in lines if line["kind"] == "train" and line["step"] % setting.steps == 0]
    notes = [line["message"] for line in lines if line["kind"] == "note"]
    begun = finished - next(line["seconds"] for line in lines if line["kind"] == "end")
    # from the first line of an epoch's end to the next: a checkpoint lies in between
    epochs = [after - before for before, after in pairwise(ends)]
    return Trained(epochs, notes, watch.share(begun + ends[0], begun + ends[-1]))


def compare(setting: Setting, turns: int) -> Row:
    """Both loops in turns."""
    notes: list[str] = []
    busy: dict[str, list[float]] = {}

    def recorded(name: str, graph: bool | None) -> list[float]:
        found = ours(setting, graph)
        notes.extend(found.notes)
        if found.busy is not None:
            busy.setdefault(name, []).append(found.busy)
        return found.epochs

    ways: dict[str, Callable[[], list[float]]] = {"bare": lambda: bare(setting)[1:]}
    ways["likewise"] = lambda: recorded("likewise", None)
    if setting.device != "cpu":
        ways["likewise, step by step"] = lambda: recorded("likewise, step by step", False)
    times: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(turns):
        order = list(ways.items()) if turn % 2 == 0 else list(ways.items())[::-1]
        for name, way in order:
            times[name] += way()
    row: Row = {
        "setting": setting.name,
        "trunk": setting.trunk,
        "dim": setting.dim,
        "batch": 4 * setting.classes,
        "size": setting.augment.size,
        "precision": setting.precision,
        "notes": sorted(set(notes)),
    }
    for name, some in times.items():
        speeds = sorted(setting.count / each for each in some)
        row[name] = {
            "images_per_s": round(statistics.median(speeds), 1),
            "quartiles": [round(each, 1) for each in statistics.quantiles(speeds, n=4)],
            "epochs": len(speeds),
        }
        if name in busy:
            row[name]["busy"] = round(statistics.fmean(busy[name]), 3)
    row["ratio"] = round(row["likewise"]["images_per_s"] / row["bare"]["images_per_s"], 4)
    shown = ", ".join(f"{name} {row[name]['images_per_s']:,.0f}" for name in times)
    print(f"{setting.name}: {shown} images/s; {row['ratio']:.3f} of the bare loop", flush=True)
    return row


def photographs(options: argparse.Namespace, scratch: Path) -> ImageCache:
    """CUB, or made-up images of its size."""
    if options.cub is not None:
        return cached(CUB200(options.cub, "train", check=False), scratch / "cache", size=128)
    chance = np.random.default_rng(0)
    for label in range(40):
        (scratch / "images" / f"{label:02}").mkdir(parents=True)
        for number in range(12):
            small = chance.integers(0, 256, (16, 20, 3), dtype=np.uint8)
            image = Image.fromarray(small).resize((160, 128))
            image.save(scratch / "images" / f"{label:02}" / f"{number}.jpg")
    return cached(ImageFolder(scratch / "images"), scratch / "cache", size=128)


def settings(options: argparse.Namespace, scratch: Path) -> list[Setting]:
    """What is measured on a device."""
    cuda = options.device != "cpu"
    lite = Embedder("efficientnet_lite0", 64).preprocessing
    assert lite is not None
    dtype = torch.bfloat16 if cuda else torch.float32
    birds = CUB128.using(lite, dtype=dtype, channels_last=cuda).train
    photos = photographs(options, scratch).to(options.device)
    name = "CUB-200-2011" if options.cub else "made-up photographs"
    if cuda:
        steps, epochs = (20, 3) if options.quick else (100, 5)
        return [Setting(name, "efficientnet_lite0", 512, 32, photos, birds, options.device, "bf16", steps, epochs)]
    glyphs = cached(Glyphs("val", images_per_class=12), scratch / "glyphs", size=32).to("cpu")
    small = GLYPHS.using(Embedder("convnet", 64).preprocessing).train  # type: ignore[arg-type]
    return [
        Setting("glyphs", "convnet", 64, 32, glyphs, small, "cpu", "no", 20 if options.quick else 100, 3),
        Setting(name, "efficientnet_lite0", 512, 8, photos, birds, "cpu", "no", 2 if options.quick else 25, 3),
    ]


def main() -> None:
    """Measure, print, write down."""
    parser = make_parser(__doc__, device=True, quick="one short turn", out="training")
    parser.add_argument("--cub", type=Path, help="a folder with CUB-200-2011; without one, photographs are made up")
    parser.add_argument("--turns", type=int, default=4, help="of each loop")
    options = parser.parse_args()
    described = {**machine(options.device), **versions("torch", "accelerate", "likewise")}
    report: Row = {"machine": described, "rows": []}
    with tempfile.TemporaryDirectory() as scratch:
        for setting in settings(options, Path(scratch)):
            report["rows"].append(compare(setting, 1 if options.quick else options.turns))
            write(report, result_path("training", options))


if __name__ == "__main__":
    main()
