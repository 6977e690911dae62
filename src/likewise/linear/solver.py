"""Minimization shared by the estimators: L-BFGS over a linear map, and priors."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import pinvh
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_array

from likewise.linear.metric import Array, check_symmetric, check_whole

Objective = Callable[[Array], tuple[float, Array]]
"""The value of an objective and its gradient, at a linear map or any other array."""


class Minimum(NamedTuple):
    """The result of a minimization: the array, its value, the number of iterations, and whether it converged."""

    at: Array
    value: float
    n_iter: int
    is_converged: bool


def minimize_array(
    objective: Objective,
    start: Array,
    max_iter: int,
    *,
    gtol: float,
    ftol: float = 1e-15,
    limits: tuple[float, float | None] | None = None,
    warn: bool = True,
) -> Minimum:
    """Minimize a function of an array by L-BFGS.

    Args:
        objective: the value and the gradient at an array.
        start: the initial array.
        max_iter: the maximum number of iterations.
        gtol: stop if the largest entry of the gradient is at most this.
        ftol: stop if an iteration lowers the value by less than this fraction.
        limits: the least and the largest value of every entry; ``None``: none.
        warn: warn if `max_iter` iterations do not suffice.

    Examples:
        >>> minimize_array(lambda x: (float((x**2).sum()), 2.0 * x), np.ones((2, 2)), 10, gtol=1e-9).at
        array([[0., 0.],
               [0., 0.]])
    """

    def of_vector(vector: Array) -> tuple[float, Array]:
        value, gradient = objective(vector.reshape(start.shape))
        return value, gradient.ravel()

    check_max_iter(max_iter)
    result = minimize(
        of_vector,
        start.ravel(),
        jac=True,
        method="L-BFGS-B",
        bounds=None if limits is None else [limits] * start.size,
        options={"maxiter": max_iter, "maxfun": 20 * max_iter, "ftol": ftol, "gtol": gtol, "maxcor": 20},
    )
    if warn and result.status == 1:
        warn_not_converged(max_iter, f"the largest entry of the gradient is {np.abs(result.jac).max():.1e}")
    return Minimum(result.x.reshape(start.shape), float(result.fun), int(result.nit), result.status != 1)


def warn_not_converged(max_iter: int, state: str, unit: str = "iterations") -> None:
    """Warn that an estimator stopped at its `max_iter`.

    Examples:
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore")
        ...     warn_not_converged(3, "the largest entry of the gradient is 0.1")
    """
    warnings.warn(
        f"max_iter={max_iter} {unit} do not suffice: {state}; raise max_iter, scale the features, or raise tol where there is "
        "one",
        ConvergenceWarning,
        stacklevel=4,
    )


def check_max_iter(max_iter: object) -> int:
    """Check the largest number of iterations."""
    return check_whole("max_iter", max_iter)


def prior_matrix(prior: Any, points: Array) -> Array:
    """Return the prior matrix of a metric: the identity, the inverse covariance of points, or an array.

    Args:
        prior: ``"identity"``, ``"covariance"`` or a positive definite matrix ``(d, d)``.
        points: the points, ``(n, d)``.

    Examples:
        >>> prior_matrix("identity", np.zeros((3, 2)))
        array([[1., 0.],
               [0., 1.]])
    """
    d = points.shape[1]
    if isinstance(prior, str):
        if prior == "identity":
            return np.eye(d)
        if prior != "covariance":
            raise ValueError(f"prior must be 'identity', 'covariance' or a matrix ({d}, {d}), but it is {prior!r}")
        matrix = np.atleast_2d(pinvh(np.atleast_2d(np.cov(np.unique(points, axis=0), rowvar=False))))
        reason = "is singular: the points do not vary in every direction"
    else:
        matrix = check_array(prior, dtype=np.float64, input_name="prior").copy()
        check_symmetric("prior", matrix, d)
        reason = "is not"
    values = np.linalg.eigvalsh(matrix)
    if values[0] <= d * np.finfo(np.float64).eps * values[-1]:
        raise ValueError(f"prior must be positive definite, but it {reason}")
    return matrix
