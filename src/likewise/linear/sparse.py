"""Sparse distance metric learning: a metric with few entries, by the graphical lasso."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy.linalg import eigh
from sklearn.covariance import graphical_lasso

from likewise.linear.metric import Array, check_number, components_of, read_pair_labels, read_tuples
from likewise.linear.solver import check_max_iter, prior_matrix
from likewise.linear.tuples import PairMixin

ROOM = 1e-3
"""The smallest generalized eigenvalue of the matrix of the graphical lasso after subtracting dissimilar pairs."""


class SDML(PairMixin):
    r"""Sparse distance metric learning: few off-diagonal entries of M, by the graphical lasso.

    $$\min_{M\succ0}\ \mathrm{tr}(MS)-\log\det M+\lambda\sum_{i\ne j}|M_{ij}|,\qquad
    S=P^{-1}+\eta\,\bigl(\textstyle\sum_{\text{similar}}vv^\top-\rho\sum_{\text{dissimilar}}vv^\top\bigr)$$

    Qi et al. 2009.  The minimum exists only if S is positive definite; ρ is 1 if this holds, otherwise the largest
    number for which S is, in every direction, at least 1e-3 of its value without dissimilar pairs.

    Args:
        balance_param: η, the weight of the pairs.
        sparsity_param: λ, the weight of the entries.
        prior: P: ``"identity"``, ``"covariance"`` (the inverse covariance of the points) or a positive definite matrix.
        max_iter: the maximum number of iterations of the graphical lasso.
        preprocessor: points ``(m, d)``, or a function of indices, for pairs that are given as indices ``(n, 2)``.

    Attributes:
        dissimilar_weight_: ρ.
        n_iter_: the number of iterations of the graphical lasso.

    Examples:
        >>> import numpy as np
        >>> pairs = np.array([[[0.0, 0.0], [1.0, 1.0]], [[0.0, 0.0], [1.0, 0.0]]])
        >>> SDML().fit(pairs, [1, -1]).get_mahalanobis_matrix().round(3)
        array([[ 1.191, -0.389],
               [-0.389,  0.794]])
    """

    def __init__(
        self,
        balance_param: float = 0.5,
        sparsity_param: float = 0.01,
        prior: Any = "identity",
        max_iter: int = 1000,
        preprocessor: Any = None,
    ) -> None:
        self.balance_param = balance_param
        self.sparsity_param = sparsity_param
        self.prior = prior
        self.max_iter = max_iter
        self.preprocessor = preprocessor

    def fit(self, pairs: Any, y: Any) -> Self:
        """Learn from pairs ``(n, 2, d)``, or indices ``(n, 2)``, and +1 (similar) or −1 for each."""
        points = read_tuples(self, pairs, 2, reset=True)
        differences, labels = points[:, 0] - points[:, 1], read_pair_labels(y, len(points))
        balance = check_number("balance_param", self.balance_param, above=0.0)
        penalty = check_number("sparsity_param", self.sparsity_param, at_least=0.0)
        check_max_iter(self.max_iter)
        inverse = np.linalg.inv(prior_matrix(self.prior, points.reshape(-1, points.shape[2])))
        similar, dissimilar = differences[labels == 1], differences[labels == -1]
        base = inverse + balance * similar.T @ similar
        push = balance * dissimilar.T @ dissimilar
        self.dissimilar_weight_ = _largest_weight(base, push)
        matrix = base - self.dissimilar_weight_ * push
        scale = float(np.trace(matrix)) / len(matrix)  # the solver's tolerances are absolute
        if len(matrix) == 1 or penalty == 0.0:
            metric, self.n_iter_ = np.linalg.inv(matrix), 1
        else:
            _, precision, self.n_iter_ = graphical_lasso(
                matrix / scale, penalty / scale, tol=1e-8, enet_tol=1e-10, max_iter=self.max_iter, return_n_iter=True
            )
            metric = precision / scale
        self.components_ = components_of(np.asarray(metric))
        return self._calibrate(differences, labels)


def _largest_weight(base: Array, push: Array) -> float:
    """The weight of dissimilar pairs, at most one."""
    largest = float(eigh(push, base, eigvals_only=True)[-1])
    return 1.0 if largest <= 1.0 - ROOM else (1.0 - ROOM) / largest
