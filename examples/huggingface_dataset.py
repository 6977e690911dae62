"""Train on a Hugging Face data set: `from_dataset` wraps it, classes are split into training and test.

Run: python examples/huggingface_dataset.py --epochs 3

The data set is built in memory, so that the example runs offline. Replace `make_dataset()` with
`datasets.load_dataset("owner/name", split="train")` for one from the hub. Without the package `datasets` the example uses
a list of dictionaries, which `from_dataset` accepts as well.
"""

import argparse
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from PIL import Image, ImageDraw
from torch import Tensor
from torch.utils.data import DataLoader

from likewise.data import ImageDataset, PerClassSampler, from_dataset, half_split
from likewise.losses import SupConLoss
from likewise.metrics import retrieval
from likewise.trunks import Embedder, convnet


def make_dataset(num_classes: int = 24, per_class: int = 6) -> Any:
    """Ellipses: a class is a position, a size and a color; its images differ by a shift."""
    random = np.random.default_rng(0)
    rows: dict[str, list[Any]] = {"image": [], "label": []}
    for label in range(num_classes):
        corner, size, color = random.integers(2, 12, 2), random.integers(6, 16, 2), random.integers(0, 255, 3)
        for _ in range(per_class):
            picture = Image.new("RGB", (32, 32), "white")
            left, top = (corner + random.integers(-2, 3, 2)).tolist()
            width, height = size.tolist()
            ImageDraw.Draw(picture).ellipse((left, top, left + width, top + height), fill=tuple(color.tolist()))
            rows["image"].append(picture)
            rows["label"].append(f"shape {label:02}")
    try:
        from datasets import Dataset
    except ImportError:
        return [{"image": image, "label": label} for image, label in zip(rows["image"], rows["label"], strict=True)]
    return Dataset.from_dict(rows)


def to_tensor(image: Image.Image) -> Tensor:
    return torch.from_numpy(np.asarray(image).copy()).permute(2, 0, 1).float() / 255  # (3, 32, 32)


@torch.no_grad()
def evaluate(model: Embedder, data: ImageDataset) -> float:
    model.eval()
    embeddings = torch.cat([model(images) for images, _ in DataLoader(data, batch_size=64)])
    return float(retrieval(embeddings, data.labels, ks=(1,))["R@1"])


def main(argv: Sequence[str] | None = None) -> float:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=3)
    args = parser.parse_args(argv)

    torch.manual_seed(0)
    data = from_dataset(make_dataset(), name="shapes", transform=to_tensor)  # labels are read without decoding an image
    split = half_split(len(data.class_names))
    train, test = data.of_classes(split.train), data.of_classes(split.test)
    print(f"train: {train}\ntest: {test}")

    model = Embedder(convnet(in_channels=3), 32)
    loss = SupConLoss()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    loader = DataLoader(train, batch_sampler=PerClassSampler(train.labels, classes=8, per_class=4, steps=10))

    print(f"before training: R@1 {evaluate(model, test):.3f}")
    for _ in range(args.epochs):
        model.train()
        for images, labels in loader:
            optimizer.zero_grad()
            loss(model(images), labels).backward()
            optimizer.step()
    score = evaluate(model, test)
    print(f"after training: R@1 {score:.3f}")
    return score


if __name__ == "__main__":
    main()
