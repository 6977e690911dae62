"""Trunk and embedder with one metric loss, through `likewise.train` (in PML: the trainer MetricLossOnly).

Run: python examples/from_pytorch_metric_learning/metric_loss_only.py --epochs 2

The trainer keeps a complete record in a folder: metrics per epoch, the best model, checkpoints to resume from. These take
the place of the hooks, the tester and the record keeper.
"""

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path

import torch
from torch.utils.data import DataLoader, TensorDataset

from likewise.data import Glyphs, PerClassSampler
from likewise.losses import TripletLoss
from likewise.miners import MultiSimilarityMiner
from likewise.train import Data, OptimizerConfig, TrainConfig, train
from likewise.trunks import Embedder


def load(split: str, images_per_class: int) -> tuple[TensorDataset, torch.Tensor]:
    glyphs = Glyphs(split, images_per_class=images_per_class)
    return TensorDataset(glyphs.pixels().float() / 255, glyphs.labels), glyphs.labels


def main(argv: Sequence[str] | None = None) -> float:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--images", type=int, default=8, help="images per class")
    parser.add_argument("--steps", type=int, default=None, help="steps per epoch; default: one pass over the images")
    parser.add_argument("--out", type=Path, default=None, help="folder of the run; default: a temporary one")
    args = parser.parse_args(argv)

    torch.manual_seed(0)
    data, labels = load("train", args.images)
    val, _ = load("val", args.images)
    sampler = PerClassSampler(labels, classes=32, per_class=min(4, args.images), steps=args.steps)

    model = Embedder("convnet", 64)  # trunk and embedder in one module
    loss = TripletLoss(margin=0.1, miner=MultiSimilarityMiner(epsilon=0.1))
    run = train(
        model,
        loss,
        Data(DataLoader(data, batch_sampler=sampler), val=DataLoader(val, batch_size=256)),
        folder=args.out or Path(tempfile.mkdtemp()) / "run",
        # There: one optimizer per model. Here: one optimizer, learning rates by parameter group.
        optimizer=OptimizerConfig("AdamW", lr=1e-3, lrs={"trunk": 5e-4}),
        settings=TrainConfig(epochs=args.epochs, patience=5),
    )
    for line in run.metrics("val"):
        print(f"validation MAP@R {line['MAP@R']:.3f}")
    return float(run.metrics("val")[-1]["MAP@R"])


if __name__ == "__main__":
    main()
