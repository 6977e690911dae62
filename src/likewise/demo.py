"""What a loss does, on a batch small enough to look at: ``python -m likewise.demo``."""

from __future__ import annotations

import torch
from torch import Tensor

from likewise.core import Labels
from likewise.losses import CircleLoss, ContrastiveLoss, MultiSimilarityLoss, NTXentLoss, PairLoss, TripletLoss

LOSSES: tuple[PairLoss, ...] = (
    ContrastiveLoss(),
    TripletLoss(0.2),
    NTXentLoss(0.2),
    MultiSimilarityLoss(),
    CircleLoss(),
)
SHADES = " ░▒▓█"


def toy_batch() -> tuple[Tensor, Tensor]:
    """Nine points on a circle, three classes of three, well mixed.

    Examples:
        >>> angles, labels = toy_batch()
        >>> labels.tolist()
        [0, 0, 0, 1, 1, 1, 2, 2, 2]
    """
    degrees = torch.tensor([10.0, 60.0, 150.0, 40.0, 100.0, 200.0, 80.0, 130.0, 300.0])
    return torch.deg2rad(degrees), torch.arange(3).repeat_interleave(3)


def points(angles: Tensor) -> Tensor:
    """Angles to points on the circle.

    Examples:
        >>> points(torch.tensor([0.0]))
        tensor([[1., 0.]])
    """
    return torch.stack([angles.cos(), angles.sin()], dim=1)


def pair_weights(loss: PairLoss, angles: Tensor, labels: Tensor) -> Tensor:
    """How hard the loss pulls each positive pair together and pushes each negative pair apart."""
    embeddings = points(angles)
    similarities = (embeddings @ embeddings.T).requires_grad_()
    (slopes,) = torch.autograd.grad(loss.from_similarity(similarities, Labels(labels)), similarities)
    return slopes.abs()


def descend(loss: PairLoss, angles: Tensor, labels: Tensor, steps: int = 300) -> Tensor:
    """Where the points end up when each follows its gradient along the circle, in steps of a degree at most."""
    angles = angles.clone()
    for _ in range(steps):
        leaf = angles.requires_grad_()
        (gradient,) = torch.autograd.grad(loss(points(leaf), labels), leaf)
        peak = gradient.abs().max().clamp_min(1e-12)
        angles = (leaf - torch.deg2rad(torch.tensor(1.0)) * gradient / peak).detach()
    return angles


def ring(angles: Tensor, labels: Tensor, width: int = 72) -> str:
    """The circle cut open and laid flat, five degrees to a character; a letter for each class."""
    cells = ["·"] * width
    for angle, label in zip(torch.rad2deg(angles).tolist(), labels.tolist(), strict=True):
        place = round(angle / 360.0 * width) % width
        cells[place] = "ABC"[label] if cells[place] in ("·", "ABC"[label]) else "*"
    return "".join(cells)


def show(loss: PairLoss, angles: Tensor, labels: Tensor) -> str:
    """The picture of one loss: its value, the weights of all pairs, and where it drives the points."""
    before = loss(points(angles), labels).item()
    weights = pair_weights(loss, angles, labels)
    relative = (weights / weights.max().clamp_min(1e-12) * (len(SHADES) - 1)).round().long()
    names = ["ABC"[label] for label in labels.tolist()]
    moved = descend(loss, angles, labels)
    after = loss(points(moved), labels).item()
    lines = [f"{loss}", f"  value {before:.3f} -> {after:.3f} after 300 small steps"]
    lines.append("  weight of each pair (row: anchor)   " + " ".join(names))
    for name, row in zip(names, relative.tolist(), strict=True):
        lines.append(f"  {'':33}{name}  " + " ".join(SHADES[shade] for shade in row))
    lines.append(f"  before {ring(angles, labels)}")
    lines.append(f"  after  {ring(moved, labels)}")
    return "\n".join(lines)


def main() -> None:
    """Show five losses at work on the same nine points."""
    angles, labels = toy_batch()
    print("Nine points of three classes, A, B and C, on a circle that is cut open and laid flat.")
    print("A loss weights every pair: the darker, the harder it pulls (same letter) or pushes (other letter).")
    print("Points of one class that meet share a letter; a star is where classes meet.\n")
    for loss in LOSSES:
        print(show(loss, angles, labels), end="\n\n")
    print("A loss is about ten lines: see src/likewise/losses/pair.py and CONTRIBUTING.md.")


if __name__ == "__main__":
    main()
