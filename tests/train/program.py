"""A small training as a process of its own, so that it can be killed: python program.py FOLDER CACHE [--die WHERE:N].

It has everything that a checkpoint must keep: proxies, a cross-batch memory, an average, a loss that draws at random, a
step schedule and a resumable loader; and it takes a checkpoint after every step.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from likewise.data import BatchLoader, ImageFolder, PerClassSampler, cached
from likewise.data.transforms import GLYPHS
from likewise.losses import ContrastiveLoss, CrossBatchMemory, ProxyAnchorLoss, TripletLoss, WeightedSum
from likewise.miners import RandomMiner
from likewise.train import Data, OptimizerConfig, ScheduleConfig, TrainConfig, train
from likewise.trunks import Embedder


def draw(folder: Path, classes: int = 8, images: int = 6) -> None:
    """Noisy images whose class is a pattern."""
    chance = np.random.default_rng(0)
    for label in range(classes):
        pattern = chance.integers(0, 256, (8, 8))
        (folder / f"class{label}").mkdir(parents=True, exist_ok=True)
        for number in range(images):
            noisy = np.clip(pattern + chance.normal(0, 60, (8, 8)), 0, 255).astype(np.uint8)
            Image.fromarray(noisy).resize((32, 32)).save(folder / f"class{label}" / f"{number}.png")


def main(folder: str, cache: str) -> None:
    """Begin, or go on."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = Embedder("convnet", 16)
    recipe = GLYPHS.using(model.preprocessing)
    whole = cached(ImageFolder(Path(cache) / "images"), Path(cache) / "cache", size=32)
    seen, held_out = whole.of_classes(range(6)), whole.of_classes([6, 7])
    sampler = PerClassSampler(seen.labels, classes=4, per_class=3, steps=5, seed=3)
    loader = BatchLoader(seen, sampler, recipe.train, seed=4, workers=1)
    val = BatchLoader(held_out, [list(range(len(held_out)))], recipe.test, workers=1)
    loss = WeightedSum(
        {
            CrossBatchMemory(ContrastiveLoss(), size=20): 1.0,
            ProxyAnchorLoss(num_classes=6, embedding_dim=16): 0.5,
            TripletLoss(miner=RandomMiner(20)): 1.0,
        }
    )
    train(
        model,
        loss,
        Data(loader, val),
        folder=folder,
        optimizer=OptimizerConfig("AdamW", lr=1e-3, lrs={"proxies": 1e-2}),
        schedule=ScheduleConfig("step", step=2, gamma=0.5, warmup=0.4),
        settings=TrainConfig(epochs=5, ema=0.9, clip=1.0, log_every=2, checkpoint_minutes=0.0, trunk_warmup=1),
        resume=(Path(folder) / "run.yaml").exists(),
        device="cpu",
    )


def die(where: str, number: int) -> None:
    """Arrange for this process to be killed at the n-th file that is written: before, half-way, or before its rename."""
    import likewise.train.checkpoint as module

    count = 0
    real_save, real_fsync = module.save_file, os.fsync

    def counted() -> bool:
        nonlocal count
        count += 1
        return count == number

    def save(tensors, path, metadata=None):
        last = counted()
        if last and where == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        real_save(tensors, path, metadata=metadata)
        if last and where == "half":
            os.truncate(path, os.path.getsize(path) // 2)
            os.kill(os.getpid(), signal.SIGKILL)

    def fsync(descriptor):
        real_fsync(descriptor)
        if count == number and where == "rename":
            os.kill(os.getpid(), signal.SIGKILL)

    module.save_file, os.fsync = save, fsync


if __name__ == "__main__":
    if len(sys.argv) > 3:
        place, _, which = sys.argv[4].partition(":")
        die(place, int(which))
    main(sys.argv[1], sys.argv[2])
