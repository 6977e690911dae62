"""Draw docs/assets/figures/why-map-at-r.svg: three embedding spaces that only MAP@R and RP tell apart.

    python tools/why_map_at_r.py

After the figure of the reality check, with spaces of our own.  Needs matplotlib.
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from likewise.formula import Euclidean
from likewise.metrics import clustering_scores, kmeans, retrieval

FIGURE = Path(__file__).parents[1] / "docs" / "assets" / "figures" / "why-map-at-r.svg"
CLASSES, PER_CLASS = 9, 200
GAPS = {"touching": 0.02, "a little apart": 0.2, "well apart": 0.85}
"""Between the discs that the classes fill, as a share of their diameter."""

COLORS = ("#3b8edb", "#e08a1e", "#2aa876", "#c2559d", "#8a6fd1", "#d1495b", "#6b8e23", "#20a4a4", "#9a7b4f")
GRAY = "#858585"


def space(gap: float) -> tuple[Tensor, Tensor]:
    """Classes that fill discs on a square grid evenly, so far apart."""
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(CLASSES).repeat_interleave(PER_CLASS)
    radius = torch.rand(len(labels), generator=generator, dtype=torch.float64).sqrt()
    angle = 2.0 * torch.pi * torch.rand(len(labels), generator=generator, dtype=torch.float64)
    places = torch.cartesian_prod(torch.arange(3.0), torch.arange(3.0)).double() * 2.0 * (1.0 + gap)
    return places[labels] + torch.stack([radius * angle.cos(), radius * angle.sin()], dim=1), labels


def scores(embeddings: Tensor, labels: Tensor) -> dict[str, float]:
    """All that papers report, in percent, on plain distances in the plane."""
    found = retrieval(embeddings, labels, ks=(1,), similarity=Euclidean(normalize=False))
    clusters = kmeans(embeddings, CLASSES, seed=1).assignments
    both = {**clustering_scores(labels, clusters), **found}
    return {name: 100.0 * both[name] for name in ("NMI", "F1", "R@1", "RP", "MAP@R")}


def main() -> None:
    """Draw the three side by side."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot as plt

    plt.rcParams.update({"svg.hashsalt": "likewise", "font.size": 10, "text.color": GRAY, "font.family": "sans-serif"})
    figure, axes = plt.subplots(1, 3, figsize=(9.6, 3.9))
    for axis, (name, gap) in zip(axes, GAPS.items(), strict=True):
        embeddings, labels = space(gap)
        found = scores(embeddings, labels)
        print(name, {key: round(value, 1) for key, value in found.items()})
        axis.scatter(*embeddings.T, c=[COLORS[label] for label in labels], s=1.5, linewidths=0, rasterized=True)
        same, differs = ("NMI", "F1", "R@1"), ("RP", "MAP@R")
        axis.set_title("   ".join(f"{key} {found[key]:.1f}" for key in same), fontsize=9, color=GRAY)
        lower = "   ".join(f"{key} {found[key]:.1f}" for key in differs)
        axis.text(0.5, -0.07, lower, transform=axis.transAxes, ha="center", fontsize=10.5, weight="bold")
        axis.set_aspect("equal")
        axis.axis("off")
    figure.tight_layout()
    FIGURE.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(FIGURE, transparent=True, dpi=200, metadata={"Date": None})


if __name__ == "__main__":
    main()
