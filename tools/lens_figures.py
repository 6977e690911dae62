"""Make every picture of docs/lens.md, docs/assets/lens-*, and the numbers and tables in it.

    python tools/lens_figures.py                        # all of them, about five minutes on one core
    python tools/lens_figures.py unified similarities   # some of them

The batch behind the curves is real: printed characters of `likewise.data.Glyphs` that a linear discriminant, learned from
other characters, embeds in sixteen dimensions.
"""

from __future__ import annotations

import math
import os
import re
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from likewise.analysis.catalog import Entry, catalog
from likewise.analysis.curves import GRID, sensitivities, weight_curves
from likewise.analysis.figures import (
    GRAY,
    PULL,
    PUSH,
    as_bytes,
    draw_curves,
    draw_mining,
    draw_sensitivity,
    use_style,
)
from likewise.analysis.forces import forces, roll
from likewise.analysis.motion import animate, draw_forces
from likewise.analysis.signs import NegativeWeight, negative_weights
from likewise.analysis.similarity_table import as_markdown, similarity_table
from likewise.analysis.weights import pair_weights
from likewise.data import Glyphs
from likewise.formula import SquaredEuclidean
from likewise.losses import (
    CircleLoss,
    DirectionRegularized,
    HAPLoss,
    NDCGLoss,
    ProxyLoss,
    RAWLoss,
    SmoothAPLoss,
    TripletLoss,
)
from likewise.miners import ValidTripletMiner

DOCS = Path(__file__).parents[1] / "docs"
DIMENSIONS, IMAGES = 16, 12
FACES = [0, 2, 4, 8]
"""Which images of a character are in a batch: in four faces that differ."""

UNIFIED = ("Contrastive", "Triplet", "Generalized lifted structure", "Binomial deviance")
BESIDE = ("RAW + VTHM", "Multi-similarity", "Circle", "Proxy-Anchor")


@cache
def discriminant() -> tuple[Tensor, Tensor]:
    """The mean image of the training characters, and the directions in which they differ most: a linear metric."""
    train = Glyphs("train", images_per_class=IMAGES)
    images, labels = _pixels(train, range(len(train))), train.labels
    middle = images.mean(dim=0)
    images = images - middle
    means = torch.zeros(len(train.class_names), images.shape[1], dtype=images.dtype)
    means = means.index_add(0, labels, images) / IMAGES
    within = images - means[labels]
    spread = within.T @ within / len(images)
    # a little of the identity, so that pixels that never vary have an inverse
    spread = spread + 0.05 * spread.diagonal().mean() * torch.eye(len(spread), dtype=spread.dtype)
    values, vectors = torch.linalg.eigh(spread)
    whiten = vectors @ torch.diag(values.rsqrt()) @ vectors.T
    _, directions = torch.linalg.eigh(whiten @ (means.T @ means) @ whiten)
    return middle, whiten @ directions[:, -DIMENSIONS:]


@cache
def characters(classes: int) -> Tensor:
    """All images of some test characters, embedded, ``(classes, images, d)``."""
    test = Glyphs("test", images_per_class=IMAGES)
    chosen = torch.arange(0, len(test.class_names), len(test.class_names) // classes)[:classes]
    index = (chosen[:, None] * IMAGES + torch.arange(IMAGES)).flatten()
    middle, directions = discriminant()
    embeddings = torch.nn.functional.normalize((_pixels(test, index.tolist()) - middle) @ directions, dim=1)
    return embeddings.reshape(classes, IMAGES, DIMENSIONS)


def batch(classes: int) -> tuple[Tensor, Tensor]:
    """A batch of test characters, four images each."""
    embeddings = characters(classes)[:, FACES]
    return embeddings.flatten(0, 1), torch.arange(classes).repeat_interleave(len(FACES))


def _pixels(glyphs: Glyphs, index: range | list[int]) -> Tensor:
    images = [np.asarray(glyphs.image(place).convert("L"), dtype=np.float64) for place in index]
    return torch.from_numpy(np.stack(images)).flatten(1) / 255.0


def made(entry: Entry, classes: int) -> torch.nn.Module:
    """A loss of the catalog; its proxies stand on images that are not in the batch, or on their mean."""
    torch.manual_seed(0)
    loss = entry.make(classes, DIMENSIONS).double()
    if isinstance(loss, ProxyLoss):
        others = characters(classes)[:, [face for face in range(IMAGES) if face not in FACES]]
        centers = loss.proxies_per_class
        own = others.mean(dim=1, keepdim=True) if centers == 1 else others[:, torch.arange(centers) % others.shape[1]]
        loss.proxies.data.copy_(own.flatten(0, 1))
    return loss


def curves_of(names: tuple[str, ...], classes: int, grid: Tensor, rows: int, columns: int) -> bytes:
    """Panels of the named losses on the real batch."""
    embeddings, labels = batch(classes)
    entries = catalog()
    losses = {name: made(entries[name], classes) for name in names}
    found = weight_curves(losses, similarities=grid, embeddings=embeddings, labels=labels, rows=rows)
    return draw_curves(found, columns=columns)


def unified() -> bytes:
    """The unified view's figure 1, a to d, and four losses beside it."""
    return curves_of(UNIFIED + BESIDE, 16, GRID, 5, 4)


def gallery(proxies: bool) -> bytes:
    """Every loss of the catalog, those with proxies or those without."""
    names = tuple(name for name, entry in catalog().items() if entry.has_proxies == proxies)
    return curves_of(names, 8, GRID[::2], 1, 5)


def mining() -> bytes:
    """The unified view's figure 2, on two anchors."""
    embeddings, labels = batch(16)
    return draw_mining(RAWLoss(miner=ValidTripletMiner()), embeddings, labels, anchors=(1, 9))


def sensitive() -> bytes:
    """Circle loss as its hyper-parameters vary."""
    embeddings, labels = batch(16)
    return draw_sensitivity(sensitivities(CircleLoss(), similarities=GRID, embeddings=embeddings, labels=labels))


def grades() -> bytes:
    """How strongly each pair of a hierarchy is pulled, by the number of levels on which it agrees."""
    draw, index = torch.Generator().manual_seed(0), torch.arange(32)
    levels = torch.stack([index // 4, index // 16], dim=1)
    parts = [torch.randn(32, DIMENSIONS, generator=draw, dtype=torch.float64)[each] for each in (*levels.T, index)]
    embeddings = torch.nn.functional.normalize(parts[0] + parts[1] + 0.8 * parts[2], dim=1)
    agree = (levels[:, None] == levels[None, :]).sum(dim=2)
    pairs = ~torch.eye(len(index), dtype=torch.bool) & (index % 4 == 0)[:, None]  # one anchor of each class
    cosines = embeddings @ embeddings.T
    subjects = {
        "HAP": (HAPLoss(temperature=0.1), levels),
        "NDCG": (NDCGLoss(temperature=0.1), levels),
        "Smooth-AP, on the finest level": (SmoothAPLoss(temperature=0.1), levels[:, 0]),
    }
    with use_style() as Figure:
        figure = Figure(figsize=(9.6, 2.9), layout="constrained")
        for axis, (name, (loss, labels)) in zip(figure.subplots(1, 3), subjects.items(), strict=True):
            weights = pair_weights(loss, embeddings, labels)
            positive = agree > 0 if labels.ndim == 2 else agree == 2
            pull = torch.where(positive, weights, -weights) * len(index)
            for level, color in ((0, PUSH), (1, GRAY), (2, PULL)):
                chosen = pairs & (agree == level)
                words = ("different families", "the same family", "the same class")[level]
                axis.scatter(cosines[chosen], pull[chosen], s=5, color=color, label=words)
            axis.set(title=name, xlabel="cosine")
        figure.axes[0].set_ylabel("pull (below zero: push)")
        handles, words = axis.get_legend_handles_labels()
        figure.legend(handles, words, loc="outside upper center", ncols=3, frameon=False, markerscale=2)
        return as_bytes(figure, "svg")


def triplet() -> bytes:
    """The overview's figure 3 in the plane, the same on the sphere, and with direction regularization (its figure 9)."""
    plane = torch.tensor([[0.0, 0.0], [1.0, 0.1], [-0.15, 0.75]], dtype=torch.float64)
    labels, low = torch.tensor([0, 0, 1]), 0.8 * plane
    sphere = torch.cat([low, (1.0 - low.square().sum(dim=1, keepdim=True)).sqrt()], dim=1)
    flat = TripletLoss(similarity=SquaredEuclidean(normalize=False))
    panels = {
        "Triplet, in the plane": forces(flat, plane, labels),
        "Triplet, on the sphere": forces(TripletLoss(), sphere, labels),
        "with direction regularization": forces(DirectionRegularized(TripletLoss(), gamma=0.15), sphere, labels),
    }
    view = torch.tensor([0.0, 0.0, 1.0])
    return draw_forces(panels, labels, ("anchor", "positive", "negative"), view=view)


def rolling(path: Path) -> None:
    """Twenty points on a circle under four losses."""
    torch.manual_seed(3)
    labels = torch.arange(4).repeat_interleave(5)
    angles = 2.0 * math.pi * (labels / 4.0 + 0.13 * torch.randn(20, dtype=torch.float64))
    points = torch.stack([angles.cos(), angles.sin()], dim=1)
    entries = catalog()
    rates = {"Contrastive": 0.1, "Triplet": 0.1, "Multi-similarity": 0.5, "Proxy-Anchor": 0.01}
    rolled = {}
    for name, rate in rates.items():
        loss = entries[name].make(4, 2)
        if isinstance(loss, ProxyLoss):  # on a circle a proxy cannot get past another
            loss.proxies.data.copy_(points[::5])
        rolled[name] = roll(loss, points, labels, steps=200, rate=rate)
    animate(rolled, path, frames=50, rate=12)


FIGURES: dict[str, Callable[[], bytes]] = {
    "unified": unified,
    "mining": mining,
    "grades": grades,
    "sensitivity": sensitive,
    "triplet": triplet,
    "gallery-pairs": lambda: gallery(proxies=False),
    "gallery-proxies": lambda: gallery(proxies=True),
}


def described() -> str:
    """The batch behind the curves, in words."""
    embeddings, labels = batch(16)
    S, same = embeddings @ embeddings.T, labels[:, None] == labels
    sides = (S[same.triu(1)], S[~same])
    positives, negatives = (f"{float(side.mean()):.2f} ± {float(side.std()):.2f}" for side in sides)
    return (
        f"The batch: {len(labels)} printed characters of {len(labels.unique())} classes, embedded in {DIMENSIONS} dimensions "
        "by a linear discriminant that was learned from other characters. Cosines of its positive pairs are "
        f"{positives}, of its negative pairs {negatives}.\n"
    )


def signs() -> str:
    """The losses that have a negative weight on some batch, each with the first that was found."""
    lines = [
        "| | pair | its similarity | its weight | the heaviest weight of the batch |",
        "| --- | --- | --- | --- | --- |",
    ]
    for name, entry in catalog().items():
        loss = entry.make(5, 8).double()
        found = negative_weights(loss)
        if found is not None and (loss.takes_references or entry.has_proxies or _still(loss, found)):
            numbers = f"{found.similarity:.3f} | {found.weight:.2g} | {found.largest:.2g}"
            lines.append(f"| {name} | {found.kind}, {found.between} | {numbers} |")
    return "\n".join(lines) + "\n"


def _still(loss: torch.nn.Module, found: NegativeWeight) -> bool:
    """Whether a weight is negative that a loss on unordered pairs may divide among the two entries as it likes."""
    weights = pair_weights(loss, found.batch.embeddings, found.batch.labels)
    return float((weights + weights.T).min()) < -1e-9 * float(weights.abs().max())


BLOCKS: dict[str, Callable[[], str]] = {
    "batch": described,
    "signs": signs,
    "similarities": lambda: as_markdown(similarity_table()),
}


def write_block(page: Path, name: str) -> None:
    """Put what was found between its two marks."""
    text, found = page.read_text(), BLOCKS[name]()
    marked = re.sub(
        rf"(<!-- {name} -->\n).*?(<!-- end -->)",
        lambda marks: f"{marks[1]}\n{found}\n{marks[2]}",
        text,
        flags=re.DOTALL,
    )
    _write(page, marked.encode())


def _write(path: Path, content: bytes) -> None:
    aside = path.with_name(f".{path.name}.part")
    aside.write_bytes(content)
    os.replace(aside, path)
    print(path, f"{len(content) / 1000:.0f} KB")


def main(wanted: list[str]) -> None:
    """All, or those that are named."""
    for name in wanted or [*FIGURES, "rolling", *BLOCKS]:
        if name in BLOCKS:
            write_block(DOCS / "lens.md", name)
        elif name == "rolling":
            rolling(DOCS / "assets" / "lens-rolling.gif")
        else:
            _write(DOCS / "assets" / f"lens-{name}.svg", FIGURES[name]())


if __name__ == "__main__":
    main(sys.argv[1:])
