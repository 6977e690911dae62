"""Learners from relative comparisons: an anchor should be nearer to one point than to another."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_array

from likewise.linear.hinge import HingeProgram, solve_columns, solve_hinge
from likewise.linear.metric import Array, check_number, check_whole
from likewise.linear.solver import check_max_iter
from likewise.linear.tuples import TripletMixin

GAP = 1e-9
"""The duality gap of `SCML`, relative to the objective where that is above one; weights need more digits than it."""


class SCML(TripletMixin):
    r"""Sparse compositional metric learning: a metric that is a sum of few rank-one metrics.

    $$\min_{w\ge0}\ \beta\sum_bw_b+\frac1T\sum_t\bigl[1+d_M^2(a_t,\text{near}_t)-d_M^2(a_t,\text{far}_t)\bigr]_+,\qquad
    M=\sum_bw_b\,bb^\top$$

    Shi et al. 2014.  The linear program is solved to a duality gap below 1e-6 by an interior-point method; if there are
    many basis vectors, they are added by reduced cost.

    Args:
        beta: weight of the sum of weights.
        basis: ``"triplet_diffs"``, or the vectors b, ``(n_basis, d)``.  ``"triplet_diffs"``: the eigenvectors with positive
            eigenvalue of $\sum(a-\text{far})(a-\text{far})^\top-(a-\text{near})(a-\text{near})^\top$ over d random triplets,
            repeated until there are `n_basis` vectors.
        n_basis: the number of vectors that are drawn; ``None``: 80 d.
        max_iter: the maximum number of draws of triplets for the basis.
        random_state: seed of the draws.
        preprocessor: points ``(m, d)``, or a function of indices, for triplets that are given as indices ``(n, 3)``.

    Attributes:
        basis_: the basis, ``(n_basis, d)``.
        weights_: w, mostly zeros.
        n_iter_: the number of interior-point steps.

    Examples:
        >>> import numpy as np
        >>> triplets = np.array([[[0.0, 0.0], [0.0, 1.0], [1.0, 0.0]]])
        >>> SCML(basis=np.eye(2)).fit(triplets).get_mahalanobis_matrix().round(4)
        array([[1., 0.],
               [0., 0.]])
    """

    def __init__(
        self,
        beta: float = 1e-5,
        basis: Any = "triplet_diffs",
        n_basis: int | None = None,
        max_iter: int = 10000,
        random_state: Any = None,
        preprocessor: Any = None,
    ) -> None:
        self.beta = beta
        self.basis = basis
        self.n_basis = n_basis
        self.max_iter = max_iter
        self.random_state = random_state
        self.preprocessor = preprocessor

    def fit(self, triplets: Any, y: object = None) -> Self:
        """Learn from triplets ``(n, 3, d)``, or indices ``(n, 3)``; y is not used."""
        near, far = self._read(triplets)
        beta = check_number("beta", self.beta, above=0.0)
        check_max_iter(self.max_iter)
        self.basis_ = self._basis(near, far)
        rows = (far @ self.basis_.T) ** 2 - (near @ self.basis_.T) ** 2
        program = HingeProgram(rows, 0.0, beta, 1.0 / len(rows))
        self.weights_, self.n_iter_ = solve_columns(program, GAP, max(64, near.shape[1]))
        used = self.weights_ > 0.0
        components = np.sqrt(self.weights_[used])[:, None] * self.basis_[used]
        if len(components) > near.shape[1]:  # as few rows as features
            components = np.asarray(np.linalg.qr(components, mode="r"))
        self.components_ = components if len(components) else np.zeros((1, near.shape[1]))
        return self

    def _basis(self, near: Array, far: Array) -> Array:
        d = near.shape[1]
        if not isinstance(self.basis, str):
            basis = check_array(self.basis, dtype=np.float64, input_name="basis")
            if basis.shape[1] != d:
                raise ValueError(f"basis must have shape (n_basis, {d}), but its shape is {basis.shape}")
            return np.asarray(basis)
        if self.basis != "triplet_diffs":
            raise ValueError(f"basis must be 'triplet_diffs' or an array (n_basis, {d}), but it is {self.basis!r}")
        wanted = 80 * d if self.n_basis is None else check_whole("n_basis", self.n_basis, or_none=True)
        random = check_random_state(self.random_state)
        directions: list[Array] = []
        for _ in range(self.max_iter):
            drawn = random.choice(len(near), size=min(d, len(near)), replace=False)
            values, vectors = np.linalg.eigh(far[drawn].T @ far[drawn] - near[drawn].T @ near[drawn])
            keep = values > d * np.finfo(np.float64).eps * max(abs(values[0]), values[-1])
            directions += list(vectors.T[keep][::-1])
            if len(directions) >= wanted or len(drawn) == len(near):
                break
        if not directions:
            raise ValueError("triplets must have a far point farther than a near one in some direction, but none has")
        return np.array(directions[:wanted])


class SchultzJoachims(TripletMixin):
    r"""One weight per feature from relative comparisons, with the largest margin.

    $$\min_{w\ge0}\ \tfrac12\lVert w\rVert^2+C\sum_t\bigl[1-(d_w^2(a_t,\text{far}_t)-d_w^2(a_t,\text{near}_t))\bigr]_+,\qquad
    d_w^2(a,b)=\sum_kw_k(a_k-b_k)^2$$

    Schultz & Joachims 2004, with their A = I; Eq. 2.7 and 2.8 of the thesis.  The quadratic program is solved to a duality gap
    of 1e-10 by an interior-point method.

    Args:
        C: weight of the hinges.
        preprocessor: points ``(m, d)``, or a function of indices, for triplets that are given as indices ``(n, 3)``.

    Attributes:
        weights_: w, one number per feature.
        n_iter_: the number of interior-point steps.

    Examples:
        >>> import numpy as np
        >>> triplets = np.array([[[0.0, 0.0], [0.0, 1.0], [2.0, 0.0]]])
        >>> SchultzJoachims().fit(triplets).weights_.round(4)
        array([0.25, 0.  ])
    """

    def __init__(self, C: float = 1.0, preprocessor: Any = None) -> None:
        self.C = C
        self.preprocessor = preprocessor

    def fit(self, triplets: Any, y: object = None) -> Self:
        """Learn from triplets ``(n, 3, d)``, or indices ``(n, 3)``; y is not used."""
        near, far = self._read(triplets)
        weight = check_number("C", self.C, above=0.0)
        self.weights_, _, self.n_iter_ = solve_hinge(HingeProgram(far**2 - near**2, 1.0, 0.0, weight), 1e-10)
        self.components_ = np.diag(np.sqrt(self.weights_))
        return self
