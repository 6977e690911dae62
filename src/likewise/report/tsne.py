"""t-SNE of a few thousand points, with exact gradients (van der Maaten and Hinton 2008).

All pairs are computed, chunk by chunk.  For the thousand points of a map this is faster than a tree, and much faster than
the import of a package that has one.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

PERPLEXITY = 30.0

EXAGGERATION = 12.0
"""Factor of the attraction in the first phase, so that clusters form before they are refined."""

ITERATIONS = (50, 100)
"""Of the two phases."""

MOMENTUM = 0.8

CHUNK_PRODUCTS = 2**18
"""Multiplications in one matrix product: OpenBLAS computes smaller ones in one thread, which waits for no other."""

Floats = NDArray[np.float32]


def fit_tsne(points: Floats, start: Floats) -> Floats:
    """Compute positions ``(n, 2)`` that preserve the neighbors of points.

    The learning rate is n divided by the exaggeration of the phase (Belkina et al. 2019), with one gain per coordinate
    (Jacobs 1988).

    Args:
        points: the points, ``(n, d)``.
        start: the initial positions, ``(n, 2)``.

    Examples:
        >>> points = np.random.default_rng(0).normal(size=(20, 3)).astype(np.float32)
        >>> fit_tsne(points, points[:, :2] * 1e-4).shape
        (20, 2)
    """
    affinities = _affinities(points)
    places, update = start.astype(np.float32), np.zeros_like(start, dtype=np.float32)
    gains = np.ones_like(places)
    for count, exaggeration in zip(ITERATIONS, (EXAGGERATION, 1.0), strict=True):
        rate = len(points) / exaggeration
        for _ in range(count):
            gradient = _gradient(affinities, places, exaggeration)
            gains = np.maximum(np.where(update * gradient < 0.0, gains + 0.2, gains * 0.8), 0.01)
            update = (MOMENTUM * update - rate * gains * gradient).astype(np.float32)
            places = places + update
    return places


def _affinities(points: Floats) -> Floats:
    """Symmetric probabilities ``(n, n)``: each point sees its nearest ones with the perplexity."""
    count = len(points)
    perplexity = min(PERPLEXITY, (count - 1) / 3.0)
    squares = (points.astype(np.float64) ** 2).sum(axis=1)
    distances = np.maximum(squares[:, None] + squares - 2.0 * (points.astype(np.float64) @ points.T), 0.0)
    np.fill_diagonal(distances, np.inf)
    # beyond three times the perplexity probabilities vanish (van der Maaten 2014)
    nearest = np.argpartition(distances, (few := min(count - 1, int(3 * perplexity) + 1)) - 1, axis=1)[:, :few]
    near = np.take_along_axis(distances, nearest, axis=1)
    near -= near.min(axis=1, keepdims=True)
    chances = _with_perplexity(near, perplexity)
    affinities = np.zeros((count, count), np.float32)
    np.put_along_axis(affinities, nearest, chances.astype(np.float32), axis=1)
    symmetric: Floats = (affinities + affinities.T) / np.float32(2 * count)
    return symmetric


def _with_perplexity(distances: NDArray[np.float64], perplexity: float) -> NDArray[np.float64]:
    """Normal probabilities of each row's squared distances, by bisection of the precision."""
    low, high = np.zeros((len(distances), 1)), np.full((len(distances), 1), np.inf)
    precision = np.ones_like(low)
    for _ in range(50):
        chances = np.exp(-distances * precision)
        total = chances.sum(axis=1, keepdims=True)
        entropy = np.log(total) + precision * (distances * chances).sum(axis=1, keepdims=True) / total
        is_wide = entropy > math.log(perplexity)
        low, high = np.where(is_wide, precision, low), np.where(is_wide, high, precision)
        precision = np.where(np.isinf(high), np.minimum(2.0 * precision, 1e30), (low + high) / 2.0)
    found: NDArray[np.float64] = chances / total
    return found


def _gradient(affinities: Floats, places: Floats, exaggeration: float) -> NDArray[Any]:
    count = len(places)
    ones = np.ones((count, 1), np.float32)
    squares = (places**2).sum(axis=1, keepdims=True)
    left = np.concatenate([-2.0 * places, squares + 1.0, ones], axis=1)  # (n, 4)
    right = np.ascontiguousarray(np.concatenate([places, ones, squares], axis=1).T)  # (4, n)
    extended = np.concatenate([places, ones], axis=1)  # (n, 3): weighted sums of places, and of one
    attraction, repulsion = np.empty_like(extended), np.empty_like(extended)
    size, total = max(1, CHUNK_PRODUCTS // (4 * count)), -float(count)  # a point does not repel itself
    for begin in range(0, count, size):
        rows = slice(begin, begin + size)
        heat = left[rows] @ right  # 1 + ‖yᵢ − yⱼ‖²
        np.reciprocal(heat, out=heat)
        np.matmul(affinities[rows] * heat, extended, out=attraction[rows])
        total += float(heat.sum())
        np.multiply(heat, heat, out=heat)
        np.matmul(heat, extended, out=repulsion[rows])
    pull = places * attraction[:, 2:] - attraction[:, :2]
    push = places * repulsion[:, 2:] - repulsion[:, :2]
    gradient: NDArray[Any] = 4.0 * (exaggeration * pull - push / total)
    return gradient
