"""Train an embedding with a LightningModule. Needs the package `lightning`: pip install lightning

Run: python examples/lightning_loop.py --epochs 5
"""

import argparse
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.utils.data import DataLoader, TensorDataset

from likewise.data import Glyphs, PerClassSampler
from likewise.losses import Gathered, ProxyAnchorLoss
from likewise.metrics import Retrieval
from likewise.trunks import Embedder

try:
    import lightning
except ImportError:
    raise SystemExit("this example needs the package lightning: pip install lightning") from None


class MetricLearner(lightning.LightningModule):
    def __init__(self, num_classes: int, dim: int = 64):
        super().__init__()
        self.model = Embedder("convnet", dim)
        # With several devices, Gathered computes the loss of the global batch; with one it changes nothing.
        self.loss = Gathered(ProxyAnchorLoss(num_classes, dim))
        self.metric = Retrieval(ks=(1,))

    def training_step(self, batch: tuple[Tensor, Tensor], index: int) -> Tensor:
        images, labels = batch
        value: Tensor = self.loss(self.model(images), labels)
        self.log("loss", value)
        return value

    def validation_step(self, batch: tuple[Tensor, Tensor], index: int) -> None:
        images, labels = batch
        # Retrieval is a property of the whole set: collect embeddings here, compute at the end of the epoch.
        self.metric.update(self.model(images), labels)

    def on_validation_epoch_end(self) -> None:
        self.log("MAP@R", self.metric.compute()["MAP@R"], prog_bar=True)
        self.metric.reset()

    def configure_optimizers(self) -> torch.optim.Optimizer:
        # Proxies need a higher learning rate than the network.
        groups = [
            {"params": self.model.parameters(), "lr": 1e-3},
            {"params": self.loss.parameters(), "lr": 1e-1},
        ]
        return torch.optim.AdamW(groups)


def load(split: str, images_per_class: int) -> tuple[TensorDataset, Tensor, int]:
    glyphs = Glyphs(split, images_per_class=images_per_class)
    images = glyphs.pixels().float() / 255
    return TensorDataset(images, glyphs.labels), glyphs.labels, len(glyphs.class_names)


def main(argv: Sequence[str] | None = None) -> float:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--images", type=int, default=8, help="images per class")
    parser.add_argument("--steps", type=int, default=None, help="steps per epoch; default: one pass over the images")
    args = parser.parse_args(argv)

    lightning.seed_everything(0)
    train, labels, num_classes = load("train", args.images)
    val, _, _ = load("val", args.images)
    sampler = PerClassSampler(labels, classes=32, per_class=min(4, args.images), steps=args.steps)

    learner = MetricLearner(num_classes)
    trainer = lightning.Trainer(
        max_epochs=args.epochs,
        accelerator="cpu",
        use_distributed_sampler=False,  # Lightning's replacement would not keep classes together
        num_sanity_val_steps=0,
        logger=False,
        enable_checkpointing=False,
    )
    trainer.fit(learner, DataLoader(train, batch_sampler=sampler), DataLoader(val, batch_size=256))
    return float(trainer.callback_metrics["MAP@R"])


if __name__ == "__main__":
    main()
