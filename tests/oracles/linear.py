"""Linear metric learning as plain loops over Python floats and small numpy arrays; imports nothing from likewise."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def squared(a: Array, b: Array, matrix: Array) -> float:
    v = a - b
    return float(sum(v[i] * matrix[i, j] * v[j] for i in range(len(v)) for j in range(len(v))))


def itml(pairs: Array, y: list[int], bounds: tuple[float, float], gamma: float, sweeps: int) -> Array:
    """Davis et al. 2007, one rank-one update at a time."""
    A = np.eye(pairs.shape[2])
    order = [i for i in range(len(y)) if y[i] == 1] + [i for i in range(len(y)) if y[i] == -1]
    lam = dict.fromkeys(order, 0.0)
    b = {i: bounds[0] if y[i] == 1 else bounds[1] for i in order}
    for _ in range(sweeps):
        for i in order:
            v = pairs[i, 0] - pairs[i, 1]
            w = float(v @ A @ v)
            sign = float(y[i])
            alpha = min(lam[i], gamma / (gamma + 1.0) * sign * (1.0 / w - 1.0 / b[i]))
            beta = sign * alpha / (1.0 - sign * alpha * w)
            b[i] = 1.0 / (1.0 / b[i] + sign * alpha / gamma)
            lam[i] -= alpha
            A = A + beta * np.outer(A @ v, A @ v)
    return A


def pola(pairs: Array, y: list[int], threshold: float) -> tuple[Array, float]:
    A, b = np.zeros((pairs.shape[2],) * 2), threshold
    for (p, q), label in zip(pairs, y, strict=True):
        v = p - q
        loss = max(0.0, label * (float(v @ A @ v) - b) + 1.0)
        if loss > 0.0:
            alpha = loss / (float(v @ v) ** 2 + 1.0)
            A, b = A - label * alpha * np.outer(v, v), b + label * alpha
            values, vectors = np.linalg.eigh(A)
            if label == 1 and values[0] < 0.0:
                A = A - values[0] * np.outer(vectors[:, 0], vectors[:, 0])
            b = max(1.0, b)
    return A, b


def oasis(triplets: Array, c: float) -> Array:
    W = np.eye(triplets.shape[2])
    for p, near, far in triplets:
        loss = max(0.0, 1.0 - float(p @ W @ near) + float(p @ W @ far))
        V = np.outer(p, near - far)
        if loss > 0.0:
            W = W + min(c, loss / float((V**2).sum())) * V
    return W


def lfda(X: Array, y: Array, k: int) -> tuple[Array, Array]:
    """The scatter inside classes and between them, ``½ Σ W_ij (x_i − x_j)(x_i − x_j)ᵀ``, one pair at a time.

    Inside a class ``W = A/n_c`` and ``A/n + A/n_c``, between classes 0 and ``1/n``.
    """
    n, d = X.shape
    within, between = np.zeros((d, d)), np.zeros((d, d))
    sigma = []
    for i in range(n):
        near = sorted(math.dist(X[i], X[j]) for j in range(n) if y[j] == y[i])
        sigma.append(near[min(k, len(near) - 1)])
    for i in range(n):
        for j in range(n):
            outer = 0.5 * np.outer(X[i] - X[j], X[i] - X[j])
            if y[i] != y[j]:
                between += outer / n
            elif sigma[i] * sigma[j] > 0.0:
                affinity = math.exp(-(math.dist(X[i], X[j]) ** 2) / (sigma[i] * sigma[j]))
                size = sum(1 for label in y if label == y[i])
                within += affinity / size * outer
                between += (affinity / n + affinity / size) * outer
    return within, between


def nca(X: Array, y: Array, L: Array) -> float:
    """Goldberger et al. 2005: the expected number of points whose random neighbor has their class."""
    Z, total = X @ L.T, 0.0
    for i in range(len(Z)):
        weights = [math.exp(-(math.dist(Z[i], Z[j]) ** 2)) if j != i else 0.0 for j in range(len(Z))]
        same = sum(w for j, w in enumerate(weights) if y[j] == y[i])
        total += same / sum(weights) if sum(weights) > 0.0 else 0.0
    return total


def mlkr(X: Array, y: Array, L: Array) -> float:
    """Weinberger & Tesauro 2007: the squared error of leave-one-out kernel regression."""
    Z, total = X @ L.T, 0.0
    for i in range(len(Z)):
        weights = [math.exp(-(math.dist(Z[i], Z[j]) ** 2)) if j != i else 0.0 for j in range(len(Z))]
        guess = sum(w * float(y[j]) for j, w in enumerate(weights)) / sum(weights)
        total += (guess - float(y[i])) ** 2
    return total


def mcml(X: Array, y: Array, L: Array) -> float:
    """Globerson & Roweis 2005: the divergence from the ideal distribution of neighbors."""
    Z, total = X @ L.T, 0.0
    for i in range(len(Z)):
        d2 = [math.dist(Z[i], Z[j]) ** 2 for j in range(len(Z))]
        same = [j for j in range(len(Z)) if j != i and y[j] == y[i]]
        if same:
            partition = sum(math.exp(-d2[k]) for k in range(len(Z)) if k != i)
            total += sum(d2[j] for j in same) / len(same) + math.log(partition) - math.log(len(same))
    return total


def lmnn(X: Array, y: Array, L: Array, k: int, r: float) -> float:
    """Weinberger & Saul 2009, with targets by the Euclidean distance of X."""
    Z, total = X @ L.T, 0.0
    for i in range(len(Z)):
        same = sorted((math.dist(X[i], X[j]), j) for j in range(len(X)) if j != i and y[j] == y[i])[:k]
        for _, j in same:
            d_ij = math.dist(Z[i], Z[j]) ** 2
            total += r * d_ij
            for other in range(len(Z)):
                if y[other] != y[i]:
                    total += (1.0 - r) * max(0.0, 1.0 + d_ij - math.dist(Z[i], Z[other]) ** 2)
    return total
