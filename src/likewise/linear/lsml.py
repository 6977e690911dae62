"""Least squared-residual metric learning: one pair of points should be nearer than another."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_array

from likewise.linear.metric import Array, check_number, components_of, read_tuples
from likewise.linear.solver import minimize_array, prior_matrix
from likewise.linear.tuples import QuadrupletMixin


class LSML(QuadrupletMixin):
    r"""Least squared-residual metric learning: relative comparisons and a LogDet prior.

    $$\min_{M\succ0}\ \sum_q w_q\bigl[d_M(a_q,b_q)-d_M(c_q,d_q)\bigr]_+^2+\mathrm{tr}(MP^{-1})-\log\det M$$

    over quadruplets in which $d(a,b)<d(c,d)$ should hold.  Liu et al. 2012.  The objective is strictly convex.  It is
    minimized by L-BFGS over a square factor of M, whose stationary points are those of M wherever it is definite.

    Args:
        max_iter: the maximum number of iterations.
        tol: a thousand times the entry of the gradient by the factor at which iterations stop.
        prior: P: ``"identity"``, ``"covariance"`` (the inverse covariance of the points) or a positive definite matrix.
        preprocessor: points ``(m, d)``, or a function of indices, for quadruplets that are given as indices ``(n, 4)``.

    Attributes:
        n_iter_: the number of iterations.

    Examples:
        >>> import numpy as np
        >>> quadruplets = np.array([[[0.0, 0.0], [0.0, 2.0], [0.0, 0.0], [1.0, 0.0]]])
        >>> LSML().fit(quadruplets).get_mahalanobis_matrix().round(3)
        array([[1.36 , 0.   ],
               [0.   , 0.544]])
    """

    def __init__(
        self, max_iter: int = 1000, tol: float = 1e-3, prior: Any = "identity", preprocessor: Any = None
    ) -> None:
        self.max_iter = max_iter
        self.tol = tol
        self.prior = prior
        self.preprocessor = preprocessor

    def fit(self, quadruplets: Any, y: object = None, weights: Any = None) -> Self:
        """Learn from quadruplets.

        Args:
            quadruplets: points a, b, c, d of each, ``(n, 4, d)``, or indices ``(n, 4)``.
            y: not used.
            weights: the weight of each, ``(n,)``, scaled to sum to one; by default uniform.
        """
        points = read_tuples(self, quadruplets, 4, reset=True)
        tol = check_number("tol", self.tol, above=0.0)
        shares = _read_weights(weights, len(points))
        prior = prior_matrix(self.prior, points.reshape(-1, points.shape[2]))
        root = np.linalg.cholesky(prior).T
        near, far = (points[:, 0] - points[:, 1]) @ root.T, (points[:, 2] - points[:, 3]) @ root.T

        def objective(factor: Array) -> tuple[float, Array]:
            return lsml_objective(factor, near, far, shares)

        found = minimize_array(objective, np.eye(len(root)), self.max_iter, gtol=1e-3 * tol)
        self.n_iter_ = found.n_iter
        components = found.at @ root
        self.components_ = components_of(components.T @ components)
        return self


def lsml_objective(factor: Array, near: Array, far: Array, weights: Array) -> tuple[float, Array]:
    """The objective for the identity as prior, and its gradient by the square factor of M."""
    sign, logarithm = np.linalg.slogdet(factor)
    if sign == 0.0:
        return np.inf, np.zeros_like(factor)
    of_near, of_far = near @ factor.T, far @ factor.T
    d_near, d_far = np.linalg.norm(of_near, axis=1), np.linalg.norm(of_far, axis=1)
    residuals = d_near - d_far
    active = residuals > 0.0
    value = float(weights[active] @ residuals[active] ** 2 + np.sum(factor**2) - 2.0 * logarithm)
    pull = weights[active] * residuals[active]
    gradient = (of_near[active].T * (pull / d_near[active])) @ near[active]
    distinct = np.maximum(d_far[active], np.finfo(np.float64).tiny)
    gradient -= (of_far[active].T * (pull / distinct)) @ far[active]
    return value, 2.0 * (gradient + factor - np.linalg.inv(factor).T)


def _read_weights(weights: Any, n: int) -> Array:
    if weights is None:
        return np.full(n, 1.0 / n)
    numbers = check_array(weights, ensure_2d=False, dtype=np.float64, input_name="weights")
    if numbers.shape != (n,):
        raise ValueError(f"weights must have shape ({n},), but their shape is {numbers.shape}")
    if (numbers < 0.0).any() or not numbers.sum() > 0.0:
        raise ValueError(f"weights must be numbers ≥ 0, not all zero, but the least is {numbers.min():g}")
    return np.asarray(numbers / numbers.sum())
