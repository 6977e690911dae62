"""One training: its data, its network, its metrics."""

from __future__ import annotations

import time
import unicodedata
from collections.abc import Set
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.choose_loss.design import ALL, DIM, GRADED, HAVE_PROXIES, Condition
from likewise.data.glyphs import Glyphs
from likewise.data.samplers import PerClassSampler
from likewise.metrics import graded_retrieval, retrieval, verification

Row = dict[str, Any]
UNSEEN_IMAGES = 6


@dataclass(frozen=True)
class Split:
    """Images by class and the levels of each class.

    Args:
        pixels: ``(classes, images, 1, 32, 32)`` bytes.
        groups: ``(classes, 2)``: the base letter and the kind of each character.
    """

    pixels: Tensor
    groups: Tensor


def load_split(name: str, images: int) -> Split:
    """Draw the characters of a split of Glyphs."""
    glyphs = Glyphs(name, images_per_class=images)
    kinds = glyphs.categories[::images].tolist()
    return Split(glyphs.pixels().unflatten(0, (-1, images)), group_characters(list(glyphs.class_names), kinds))


def group_characters(characters: list[str], kinds: list[int]) -> Tensor:
    """Return the base letter and the kind of each character, ``(n, 2)``.

    The base letter is the first character of the canonical decomposition (Unicode's NFD): a letter without its accents.

    Examples:
        >>> group_characters(["e", "é", "è", "E"], [0, 0, 0, 0])[:, 0].unique().numel()
        2
    """
    bases = [(kind, unicodedata.normalize("NFD", each)[0]) for each, kind in zip(characters, kinds, strict=True)]
    order = {base: index for index, base in enumerate(dict.fromkeys(bases))}
    return torch.tensor([[order[base], kind] for base, kind in zip(bases, kinds, strict=True)])


def make_network() -> nn.Module:
    """Half the resolution, two convolutions and a linear layer: a training takes seconds on one core."""
    layers: list[nn.Module] = [nn.AvgPool2d(2)]  # (n, 1, 16, 16)
    for before, after in ((1, 16), (16, 32)):
        layers += [nn.Conv2d(before, after, 3, stride=2, padding=1), nn.BatchNorm2d(after), nn.ReLU()]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(32 * 4 * 4, DIM))


def scale_pixels(images: Tensor) -> Tensor:
    """Convert bytes to numbers around zero."""
    return (images.float() - 128.0) / 64.0


def make_training_data(split: Split, condition: Condition, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return images ``(n, 1, 32, 32)``, labels ``(n,)`` and the levels of each class ``(classes, 3)``, the finest first.

    A wrong label is another class, drawn uniformly.  With ``condition.pairs`` a label is the number of a pair.
    """
    chance = torch.Generator().manual_seed(seed)
    chosen = torch.randperm(len(split.pixels), generator=chance)[: condition.classes]
    images = split.pixels[chosen, : condition.images].flatten(0, 1)
    labels = torch.arange(len(chosen)).repeat_interleave(condition.images)
    wrong = torch.rand(len(labels), generator=chance) < condition.noise
    shift = torch.randint(1, len(chosen), labels.shape, generator=chance)
    labels = torch.where(wrong, (labels + shift) % len(chosen), labels)
    if condition.pairs:  # two images of a class, drawn without replacement
        order = torch.rand(len(chosen), condition.images, generator=chance).argsort(dim=1)
        images = images.unflatten(0, order.shape)[torch.arange(len(chosen))[:, None], order].flatten(0, 1)
        labels = torch.arange(len(images)) // 2
    return images, labels, torch.cat([torch.arange(len(chosen))[:, None], split.groups[chosen]], dim=1)


def train(
    name: str, data: tuple[Tensor, Tensor, Tensor], condition: Condition, rates: tuple[float, float], seed: int
) -> nn.Module:
    """Train a network with AdamW and cosine decay of the rates."""
    torch.manual_seed(seed)
    images, labels, levels = data
    loss, network = ALL[name](levels), make_network()
    groups = [{"params": list(network.parameters()), "lr": rates[0]}]
    if proxies := list(loss.parameters()):
        groups.append({"params": proxies, "lr": rates[1]})
    optimizer = torch.optim.AdamW(groups)
    steps, classes = condition.seen // condition.batch, condition.batch // condition.per_class
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for batch in PerClassSampler(labels, classes=classes, per_class=condition.per_class, steps=steps, seed=seed):
        optimizer.zero_grad()
        target = levels[labels[batch]] if name in GRADED else labels[batch]
        loss(network(scale_pixels(images[batch])), target).backward()
        optimizer.step()
        schedule.step()
    return network.eval()


def measure(network: nn.Module, split: Split, metrics: Set[str]) -> Row:
    """Measure metrics among images of unseen classes.

    Graded metrics have one query per class, its first image; the other images of all classes are the gallery.
    """
    with torch.no_grad():
        rows = [network(scale_pixels(some)) for some in split.pixels.flatten(0, 1).split(1000)]
    embeddings, classes = torch.cat(rows), torch.arange(len(split.pixels))
    labels = classes.repeat_interleave(split.pixels.shape[1])
    found: Row = dict(retrieval(embeddings, labels))
    if metrics & {"EER", "TAR@0.001"}:
        found |= verification(embeddings, labels, far=(1e-3,))
    if metrics & {"H-AP", "NDCG@100"}:
        levels = torch.cat([classes[:, None], split.groups], dim=1)
        by_class = embeddings.unflatten(0, split.pixels.shape[:2])
        others = levels.repeat_interleave(split.pixels.shape[1] - 1, dim=0)
        found |= graded_retrieval(by_class[:, 0], levels, by_class[:, 1:].flatten(0, 1), others, ks=(100,))
    return {name: round(float(found[name]), 5) for name in sorted(metrics)}


def run_one(
    name: str,
    condition: Condition,
    rates: tuple[float, float],
    seed: int,
    splits: dict[str, Split],
    split: str,
    metrics: Set[str],
) -> Row:
    """Train and measure once."""
    begin = time.process_time()
    data = make_training_data(splits["train"], condition, seed)
    network = train(name, data, condition, rates, seed)
    return {
        "loss": name,
        **asdict(condition),
        "rate": rates[0],
        "proxy_rate": rates[1] if name in HAVE_PROXIES else None,
        "seed": seed,
        "split": split,
        **measure(network, splits[split], metrics),
        "cpu_seconds": round(time.process_time() - begin, 1),
    }
