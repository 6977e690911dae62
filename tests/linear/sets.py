"""Data that several tests use."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits, load_wine
from sklearn.preprocessing import StandardScaler

from tests.oracles.linear import Array

REFERENCES = Path(__file__).parent / "data" / "metric_learn.npz"
"""What metric-learn 0.7.0 finds: tools/linear_references.py."""


@cache
def references() -> dict[str, Any]:
    with np.load(REFERENCES) as content:
        return dict(content)


@cache
def points_of(name: str) -> tuple[Array, Any]:
    X, y = (load_wine if name == "wine" else load_digits)(return_X_y=True)
    return (StandardScaler().fit_transform(X) if name == "wine" else X / 16.0), y


def blobs(n: int = 40, d: int = 3, classes: int = 3, seed: int = 0) -> tuple[Array, Any]:
    """Classes that overlap, with one direction of noise."""
    random = np.random.default_rng(seed)
    labels = np.arange(n) % classes
    points = random.normal(size=(n, d)) + 1.5 * random.normal(size=(classes, d))[labels]
    points[:, 0] *= 3.0
    return points, labels


def tuples(kind: str, n: int = 30, d: int = 3, seed: int = 0) -> tuple[Array, ...]:
    """Tuples of blobs as arrays: pairs with labels, triplets, or quadruplets."""
    points, labels = blobs(60, d, seed=seed)
    random = np.random.default_rng(seed)
    near, far = [], []
    for a, b in random.integers(len(points), size=(20 * n, 2)):
        if a != b:
            (near if labels[a] == labels[b] else far).append((a, b))
    same, other = np.array(near[:n]), np.array(far[:n])
    if kind == "pairs":
        return points[np.concatenate([same, other])], np.repeat([1, -1], n)
    if kind == "quadruplets":
        return (points[np.concatenate([same, other], axis=1)],)
    others = [int(random.choice(np.flatnonzero(labels != labels[a]))) for a in same[:, 0]]
    return (points[np.concatenate([same, np.array(others)[:, None]], axis=1)],)
