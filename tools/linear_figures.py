"""Draw what every method of likewise.linear does to two-dimensional data.

    python tools/linear_figures.py          writes docs/assets/linear-methods.svg and docs/assets/linear-xor.svg

Needs the linear extra and matplotlib.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("svg")

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone

from likewise import linear
from likewise.losses import ContrastiveLoss

ASSETS = Path(__file__).parents[1] / "docs" / "assets"
COLORS = np.array(["#3b6fb6", "#d95f02", "#1b9e77"])
STYLE = {"svg.hashsalt": "linear", "svg.fonttype": "none", "font.size": 8, "axes.titlesize": 9}


def stripes(n: int = 90) -> tuple[np.ndarray, np.ndarray]:
    """Three classes that are long in one direction and next to each other in another."""
    random = np.random.default_rng(1)
    labels = np.arange(n) % 3
    points = np.stack(
        [random.normal(scale=2.0, size=n), 0.9 * (labels - 1) + random.normal(scale=0.22, size=n)], axis=1
    )
    angle = 0.5
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    return points @ turn.T, labels


def draw_tuples(points: np.ndarray, labels: np.ndarray, kind: str, n: int = 150) -> tuple[np.ndarray, ...]:
    """Random pairs with labels, triplets or quadruplets."""
    random = np.random.default_rng(0)
    near, far = [], []
    while len(near) < n or len(far) < n:
        a, b = random.integers(len(points), size=2)
        if a != b:
            (near if labels[a] == labels[b] else far).append((a, b))
    same, other = np.array(near[:n]), np.array(far[:n])
    if kind == "pairs":
        order = random.permutation(2 * n)
        return points[np.concatenate([same, other])][order], np.repeat([1, -1], n)[order]
    if kind == "quadruplets":
        return (points[np.concatenate([same, other], axis=1)],)
    third = [int(random.choice(np.flatnonzero(labels != labels[a]))) for a in same[:, 0]]
    return (points[np.concatenate([same, np.array(third)[:, None]], axis=1)],)


METHODS: list[tuple[Any, str]] = [
    (linear.Covariance(), "points"),
    (linear.RCA(), "points"),
    (linear.LFDA(k=7), "points"),
    (linear.NCA(init="identity"), "points"),
    (linear.LMNN(), "points"),
    (linear.MCML(), "points"),
    (linear.MLKR(), "points"),
    (linear.LinearMetric(ContrastiveLoss(), init="identity"), "points"),
    (linear.ITML(), "pairs"),
    (linear.MMC(), "pairs"),
    (linear.SDML(), "pairs"),
    (linear.POLA(), "pairs"),
    (linear.KwokTsang(c_similar=100.0, c_dissimilar=100.0), "pairs"),
    (linear.LSML(), "quadruplets"),
    (linear.SCML(random_state=0), "triplets"),
    (linear.SchultzJoachims(), "triplets"),
]


def ellipse(matrix: np.ndarray, radius: float) -> np.ndarray:
    """The points at one distance from the origin; directions that the metric ignores end far away."""
    values, vectors = np.linalg.eigh(matrix)
    angles = np.linspace(0.0, 2.0 * np.pi, 200)
    circle = np.stack([np.cos(angles), np.sin(angles)])
    return (vectors @ (circle / np.sqrt(np.maximum(values, 1e-4 * values[-1]))[:, None])) * radius


def draw_methods() -> None:
    """One pair of panels per method: the data with contours of the metric, and the data after the map."""
    points, labels = stripes()
    figure, axes = plt.subplots(8, 4, figsize=(8.4, 15.5))
    for number, (method, kind) in enumerate(METHODS):
        before, after = axes[number // 2, 2 * (number % 2) : 2 * (number % 2) + 2]
        arguments = (points, labels) if kind == "points" else draw_tuples(points, labels, kind)
        fitted = clone(method).fit(*arguments)
        before.scatter(*points.T, c=COLORS[labels], s=6)
        shape = ellipse(fitted.get_mahalanobis_matrix(), 1.0)
        extent = np.linalg.norm(shape, axis=0)
        for size in (0.5, 1.0, 1.5):
            before.plot(*(shape * size * 0.9 / extent.min()), color="#555555", linewidth=0.8)
        before.set(title=f"{type(method).__name__}: metric", xlim=(-5.5, 5.5), ylim=(-4.5, 4.5))
        moved = fitted.transform(points)
        moved = moved if moved.shape[1] > 1 else np.concatenate([moved, np.zeros_like(moved)], axis=1)
        _, vectors = np.linalg.eigh(np.cov(moved, rowvar=False))
        moved = (moved - moved.mean(axis=0)) @ vectors[:, ::-1]
        after.scatter(*moved.T, c=COLORS[labels], s=6)
        limit = 1.1 * np.abs(moved).max()
        after.set(title=f"after the map ({kind})", xlim=(-limit, limit), ylim=(-limit, limit))
    for each in axes.ravel():
        each.set(xticks=[], yticks=[], aspect="equal")
    figure.tight_layout()
    save(figure, "linear-methods.svg")


def draw_xor() -> None:
    """Figure 2 of the thesis: a linear map cannot separate XOR, one of a kernel's feature space can."""
    random = np.random.default_rng(0)
    corners = np.arange(80)[:, None] // np.array([1, 2]) % 2
    points = corners * 2.0 - 1.0 + random.normal(scale=0.25, size=(80, 2))
    labels = corners.sum(axis=1) % 2
    figure, axes = plt.subplots(1, 3, figsize=(8.4, 2.9))
    flat = linear.RCA(n_components=1).fit_transform(points, labels)
    kernelized = linear.Kernelized(linear.RCA(n_components=1), kernel="poly", degree=2)
    curved = kernelized.fit_transform(points, labels)
    axes[0].scatter(*points.T, c=COLORS[labels], s=8)
    axes[0].set(title="XOR", aspect="equal", xticks=[], yticks=[])
    for each, values, title in ((axes[1], flat, "RCA"), (axes[2], curved, "Kernelized(RCA), polynomial kernel")):
        for label in (0, 1):
            each.hist(values[labels == label, 0], bins=20, color=COLORS[label], alpha=0.7)
        each.set(title=title, xticks=[], yticks=[], xlabel="the one learned component")
    figure.tight_layout()
    save(figure, "linear-xor.svg")


def save(figure: Any, name: str) -> None:
    """Write a figure without the date, so that it changes only with its content."""
    figure.savefig(ASSETS / name, metadata={"Date": None})
    plt.close(figure)


if __name__ == "__main__":
    with plt.rc_context(STYLE):
        draw_methods()
        draw_xor()
