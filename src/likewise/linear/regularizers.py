"""Regularizers of a metric A = LᵀL: Frobenius, tr(AC), LogDet and nuclear norm (Eq. 2.8 and 2.9 of the thesis)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from likewise.linear.metric import Array, center_by_class, check_symmetric

Regularizer = Callable[[Tensor, Tensor], Tensor]
"""A function of A and of a matrix: C, or the inverse of a prior."""


def frobenius(metric: Tensor, matrix: Tensor) -> Tensor:
    """``½ ‖A‖²_F``."""
    return 0.5 * metric.square().sum()


def trace(metric: Tensor, matrix: Tensor) -> Tensor:
    """``tr(A C)``."""
    return (metric * matrix).sum()


def log_det(metric: Tensor, matrix: Tensor) -> Tensor:
    """The LogDet divergence from a prior P, ``tr(A P⁻¹) − log det(A P⁻¹) − d``."""
    logarithms = torch.linalg.slogdet(metric)[1] + torch.linalg.slogdet(matrix)[1]
    divergence: Tensor = (metric * matrix).sum() - logarithms - len(metric)
    return divergence


def nuclear(metric: Tensor, matrix: Tensor) -> Tensor:
    """The sum of eigenvalues of a positive semi-definite A, ``tr(A)``."""
    return metric.diagonal().sum()


REGULARIZERS: Mapping[str, Regularizer] = {
    "frobenius": frobenius,
    "trace": trace,
    "logdet": log_det,
    "nuclear": nuclear,
}


def regularizer_matrix(name: str | None, matrix: Any, points: Array, labels: NDArray[np.int64]) -> Array:
    """The matrix of a regularizer: C of the trace, or the inverse of the LogDet prior.

    By default, C is the mean of ``(x_i − x_j)(x_i − x_j)ᵀ`` over pairs of one class, and the prior is the identity.
    """
    d = points.shape[1]
    if matrix is None:
        return pair_scatter(points, labels) if name == "trace" else np.eye(d)
    symmetric = np.array(matrix, np.float64)
    check_symmetric("matrix", symmetric, d)
    if name == "logdet":
        if np.linalg.eigvalsh(symmetric)[0] <= 0.0:
            raise ValueError("matrix must be positive definite as a LogDet prior, but it is not")
        return np.asarray(np.linalg.inv(symmetric))
    return symmetric


def pair_scatter(points: Array, labels: NDArray[np.int64]) -> Array:
    """The mean of ``(x_i − x_j)(x_i − x_j)ᵀ`` over all pairs of one class; zero without one.

    Examples:
        >>> pair_scatter(np.array([[0.0], [2.0], [9.0]]), np.array([0, 0, 1]))
        array([[4.]])
    """
    sizes = np.bincount(labels)
    centered = center_by_class(points, labels)
    pairs = float((sizes * (sizes - 1)).sum()) / 2.0
    return np.asarray((centered.T * sizes[labels]) @ centered / max(pairs, 1.0))
