"""Networks, batches and comparisons that are small enough to train a hundred times in a test."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from safetensors.torch import load_file
from torch import Tensor, nn

from likewise.data import BatchLoader, ImageCache, ImageFolder, PerClassSampler, cached
from likewise.data.augment import Augment
from likewise.data.crops import CenterCrop, RandomResizedCrop

TIMES = ("seconds", "images_per_s")
"""What differs from one run to the next."""

Batch = tuple[Tensor, ...]


class Small(nn.Module):
    """A trunk with batch norm and a head, as groups."""

    def __init__(self, dim: int = 4, *, channels: int = 3) -> None:
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Conv2d(channels, 5, 3, stride=2, bias=False), nn.BatchNorm2d(5), nn.ReLU(), nn.Flatten()
        )
        self.head = nn.Linear(45, dim)

    def forward(self, images: Tensor) -> Tensor:
        return self.head(self.trunk(images))

    def parameter_groups(self) -> dict[str, list[nn.Parameter]]:
        return {"trunk": list(self.trunk.parameters()), "head": list(self.head.parameters())}


def small(seed: int = 0) -> Small:
    torch.manual_seed(seed)
    return Small()


def linear(seed: int = 0, dim: int = 4, features: int = 6) -> nn.Linear:
    torch.manual_seed(seed)
    return nn.Linear(features, dim)


def vectors(count: int = 3, size: int = 8, *, classes: int = 4, seed: int = 0) -> list[Batch]:
    """Batches of vectors around a center for each class."""
    chance = torch.Generator().manual_seed(seed)
    centers = torch.randn(classes, 6, generator=chance)
    labels = torch.arange(size) % classes
    return [(centers[labels] + 0.7 * torch.randn(size, 6, generator=chance), labels) for _ in range(count)]


def pictures(count: int = 3, size: int = 8, *, classes: int = 4, seed: int = 0) -> list[Batch]:
    """Batches of images of 8 x 8 pixels."""
    chance = torch.Generator().manual_seed(seed)
    centers = torch.randn(classes, 3, 8, 8, generator=chance)
    labels = torch.arange(size) % classes
    return [(centers[labels] + torch.randn(size, 3, 8, 8, generator=chance), labels) for _ in range(count)]


def draw(folder: Path, classes: int = 6, images: int = 6) -> ImageCache:
    """Noisy images of 8 x 8 pixels in a cache."""
    chance = np.random.default_rng(0)
    for label in range(classes):
        pattern = chance.integers(0, 256, (8, 8, 3))
        (folder / "images" / f"class{label}").mkdir(parents=True)
        for number in range(images):
            noisy = np.clip(pattern + chance.normal(0, 60, (8, 8, 3)), 0, 255).astype(np.uint8)
            Image.fromarray(noisy).save(folder / "images" / f"class{label}" / f"{number}.png")
    return cached(ImageFolder(folder / "images"), folder / "cache", size=8, workers=0)


def loader(photos: ImageCache, steps: int = 5) -> BatchLoader:
    """Batches that can be resumed: four classes, two images of each, cropped at random."""
    sampler = PerClassSampler(photos.labels, classes=4, per_class=2, steps=steps, seed=3)
    return BatchLoader(photos, sampler, Augment(8, RandomResizedCrop(), flip=0.5), seed=4, workers=1)


def held_out(photos: ImageCache) -> BatchLoader:
    """The same images each time, as they are."""
    return BatchLoader(photos, [list(range(0, 36, 2))], Augment(8, CenterCrop()), workers=1)


class Interrupted(nn.Module):
    """A loss that does something at one of its calls, counted from 1."""

    def __init__(
        self, loss: Callable[..., Tensor], at: int | None = None, do: Callable[[], None] | None = None
    ) -> None:
        super().__init__()
        self.loss, self.at, self.do, self.calls = loss, at, do, 0

    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        self.calls += 1
        if self.calls == self.at and self.do is not None:
            self.do()
        return self.loss(embeddings, labels)


def terminate() -> None:
    os.kill(os.getpid(), signal.SIGTERM)


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


class Broken(Exception):  # noqa: N818
    """What a program may raise in the middle of a training."""


def fail() -> None:
    raise Broken


def square(embeddings: Tensor, labels: Tensor) -> Tensor:
    """A loss that is a mean over samples and knows no other samples."""
    return (embeddings - torch.nn.functional.one_hot(labels, embeddings.shape[1])).square().sum(dim=1).mean()


def measured(folder: str | Path) -> list[dict[str, Any]]:
    """The lines of a run, without its times."""
    lines = [json.loads(line) for line in (Path(folder) / "metrics.jsonl").read_text().split("\n") if line]
    return [{key: value for key, value in line.items() if key not in TIMES} for line in lines]


def same(one: Mapping[str, Tensor], other: Mapping[str, Tensor]) -> bool:
    """Whether all tensors are equal, bit for bit."""
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def assert_same_runs(one: Path, other: Path, *names: str) -> None:
    """The same measurements and the same models, bit for bit."""
    assert measured(one) == measured(other)
    for name in names or ("model", "best"):
        assert same(load_file(one / f"{name}.safetensors"), load_file(other / f"{name}.safetensors")), name
