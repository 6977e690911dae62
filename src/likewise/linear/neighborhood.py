"""Neighborhood methods: NCA, MCML, MLKR and LMNN over all pairs of points, in O(n) memory."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from likewise.linear.initial import initial_components
from likewise.linear.metric import (
    Array,
    MahalanobisMixin,
    center_by_class,
    check_components,
    check_number,
    check_whole,
    components_of,
)
from likewise.linear.solver import check_max_iter, minimize_array, warn_not_converged
from likewise.linear.stream import MCMLObjective, MLKRObjective, NCAObjective
from likewise.linear.targets import LMNNObjective

WIDTHS = (1.0, 0.1, 0.01, 1e-3)
"""The decreasing widths of the parabola that smooths the hinge of `LMNN`."""


class _Neighborhood(MahalanobisMixin):
    """An objective over all pairs of points with targets."""

    n_iter_: int

    _requires_target = True

    def _read(self, X: Any, y: Any) -> tuple[Array, NDArray[Any]]:
        """Points and classes."""
        points, labels = validate_data(self, X, y, dtype=np.float64, ensure_min_samples=2)
        check_classification_targets(labels)
        return points, np.unique(labels, return_inverse=True)[1]


class NCA(_Neighborhood):
    r"""Neighborhood components analysis: the expected number of points whose random neighbor has their class.

    $$\max_L\ \sum_i\sum_{j\in P_i}p_{ij},\qquad p_{ij}=\frac{e^{-\lVert Lx_i-Lx_j\rVert^2}}{\sum_{k\ne i}e^{-\lVert Lx_i-Lx_k\rVert^2}}$$

    Goldberger et al. 2005.  L-BFGS on all points; the matrix $p$ is computed a chunk of rows at a time.
    `likewise.losses.NCALoss` is the mean of the logarithms of the inner sums instead.

    Args:
        n_components: the number of rows of L; ``None``: the number of features.
        init: L at the start: ``"auto"``, ``"pca"``, ``"lda"``, ``"identity"``, ``"random"`` or an array; ``"auto"`` is LDA
            where there are enough classes, else PCA where the dimension is reduced, else the identity.
        max_iter: the most iterations.
        tol: stop if an iteration improves the objective by less than this fraction; ``None``: 2.2e-9.
        device: where to compute, such as ``"cuda"``; ``None``: the CPU.
        random_state: seed of ``init="random"``.

    Attributes:
        objective_: the objective that was reached.
        n_iter_: the number of iterations.

    Examples:
        >>> import numpy as np
        >>> points = np.array([[0.0, 0.0], [0.1, 3.0], [1.0, 0.0], [1.1, 3.0]])
        >>> learned = NCA(init="identity").fit(points, [0, 0, 1, 1])
        >>> round(learned.objective_, 3)
        4.0
    """

    def __init__(
        self,
        n_components: int | None = None,
        init: Any = "auto",
        max_iter: int = 100,
        tol: float | None = None,
        device: Any = None,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.init = init
        self.max_iter = max_iter
        self.tol = tol
        self.device = device
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from points ``(n, d)`` and the class of each, ``(n,)``."""
        points, labels = self._read(X, y)
        ftol = 2.2e-9 if self.tol is None else check_number("tol", self.tol, at_least=0.0)
        n_components = check_components(self.n_components, points.shape[1])
        start = initial_components(self.init, n_components, points, labels, self.random_state)
        objective = NCAObjective(points, labels, self.device)
        found = minimize_array(objective, start, self.max_iter, gtol=1e-8, ftol=ftol)
        self.components_, self.n_iter_, self.objective_ = found.at, found.n_iter, -found.value
        return self


class MLKR(_Neighborhood):
    r"""Metric learning for kernel regression: the leave-one-out error of a regression by soft neighbors.

    $$\min_L\ \sum_i(\hat y_i-y_i)^2,\qquad\hat y_i=\sum_{j\ne i}y_j\,\mathrm{softmax}_{j\ne i}\bigl(-\lVert Lx_i-Lx_j\rVert^2\bigr)$$

    Weinberger & Tesauro 2007.

    Args:
        n_components: the number of rows of L; ``None``: the number of features.
        init: L at the start: ``"auto"``, ``"pca"``, ``"identity"``, ``"random"`` or an array; ``"auto"`` is PCA where the
            dimension is reduced, else the identity.
        max_iter: the most iterations.
        device: where to compute, such as ``"cuda"``; ``None``: the CPU.
        random_state: seed of ``init="random"``.

    Attributes:
        objective_: the objective that was reached.
        n_iter_: the number of iterations.

    Examples:
        >>> import numpy as np
        >>> points = np.random.default_rng(0).normal(size=(30, 2))
        >>> learned = MLKR().fit(points, points[:, 0])
        >>> abs(learned.components_[:, 0]).sum() > abs(learned.components_[:, 1]).sum()
        np.True_
    """

    def __init__(
        self,
        n_components: int | None = None,
        init: Any = "auto",
        max_iter: int = 1000,
        device: Any = None,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.init = init
        self.max_iter = max_iter
        self.device = device
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from points ``(n, d)`` and the number to predict for each, ``(n,)``."""
        points, targets = validate_data(self, X, y, dtype=np.float64, y_numeric=True, ensure_min_samples=2)
        n_components = check_components(self.n_components, points.shape[1])
        start = initial_components(self.init, n_components, points, None, self.random_state)
        targets = np.asarray(targets, np.float64)
        objective = MLKRObjective(points, targets - targets.mean(), self.device)
        found = minimize_array(objective, start, self.max_iter, gtol=1e-8, ftol=2.2e-9)
        self.components_, self.n_iter_, self.objective_ = found.at, found.n_iter, found.value
        return self


class MCML(_Neighborhood):
    r"""Maximally collapsing metric learning: collapses each class to a point, infinitely far from the others.

    $$\min_{M\succeq0}\ \sum_i\mathrm{KL}\bigl(p_0(\cdot\mid i)\,\Vert\,p_M(\cdot\mid i)\bigr)
    =\sum_i\Bigl[\frac1{|P_i|}\sum_{j\in P_i}d^2_{ij}+\log\sum_{k\ne i}e^{-d^2_{ik}}-\log|P_i|\Bigr]$$

    with $p_0$ uniform over the other points of the class and $p_M(j\mid i)\propto e^{-d_M^2(i,j)}$.  Globerson & Roweis 2005.
    The objective is convex in M; L-BFGS runs over a square factor of it.  It is the sum form of `likewise.losses.SupConLoss`
    with negative squared distances.

    Args:
        max_iter: the most iterations.
        tol: stop if the largest entry of the gradient, in coordinates that whiten the classes, is at most this per
            point.
        device: where to compute, such as ``"cuda"``; ``None``: the CPU.

    Attributes:
        objective_: the objective that was reached.
        n_iter_: the number of iterations.

    Examples:
        >>> import numpy as np
        >>> points = np.array([[0.0, 0.0], [0.1, 3.0], [1.0, 0.0], [1.1, 3.0], [0.7, 1.0]])
        >>> learned = MCML().fit(points, [0, 0, 1, 1, 0])
        >>> learned.pair_distance(points[None, :2]) < learned.pair_distance(points[None, 1:3])
        array([ True])
    """

    def __init__(self, max_iter: int = 1000, tol: float = 1e-6, device: Any = None) -> None:
        self.max_iter = max_iter
        self.tol = tol
        self.device = device

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from points ``(n, d)`` and the class of each, ``(n,)``."""
        points, labels = self._read(X, y)
        tol = check_number("tol", self.tol, at_least=0.0)
        root = _whitening(_within(points, labels))
        objective = MCMLObjective(points @ root, labels, self.device)
        found = minimize_array(objective, np.eye(len(root)), self.max_iter, gtol=tol * len(points), ftol=0.0)
        self.n_iter_, self.objective_ = found.n_iter, found.value
        self.components_ = _square(found.at @ root)
        return self


class LMNN(_Neighborhood):
    r"""Large-margin nearest neighbors: pulls target neighbors close and pushes other classes a margin farther away.

    $$\min_{M\succeq0}\ r\sum_i\sum_{j\in T_i}d^2_{ij}+(1-r)\sum_i\sum_{j\in T_i}\sum_{l:\,y_l\ne y_i}\bigl[1+d^2_{ij}-d^2_{il}\bigr]_+$$

    $T_i$: the nearest points of the class by the Euclidean distance of X (fewer in a class that has fewer).  Weinberger & Saul
    2009.  The objective is convex in M; L-BFGS runs over a square factor of it, on hinges that are smoothed over a shrinking
    width.

    Args:
        n_neighbors: the number of targets of a point.
        regularization: r, the weight of the pull against the push.
        init: L at the start, which affects only the time to converge: ``"auto"``, ``"pca"``, ``"lda"``, ``"identity"``,
            ``"random"`` or an array ``(d, d)``.
        max_iter: the most iterations.
        device: where to compute, such as ``"cuda"``; ``None``: the CPU.
        random_state: seed of ``init="random"``.

    Attributes:
        objective_: the objective that was reached.
        n_iter_: the number of iterations.

    Examples:
        >>> import numpy as np
        >>> points = np.array([[0.0, 0.0], [0.1, 3.0], [1.0, 0.0], [1.1, 3.0]])
        >>> learned = LMNN(n_neighbors=1).fit(points, [0, 0, 1, 1])
        >>> bool(learned.pair_distance(points[None, :2]) < learned.pair_distance(points[None, ::2]))
        True
    """

    def __init__(
        self,
        n_neighbors: int = 3,
        regularization: float = 0.5,
        init: Any = "auto",
        max_iter: int = 1000,
        device: Any = None,
        random_state: Any = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.regularization = regularization
        self.init = init
        self.max_iter = max_iter
        self.device = device
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from points ``(n, d)`` and the class of each, ``(n,)``."""
        points, labels = self._read(X, y)
        weight = check_number("regularization", self.regularization, at_least=0.0)
        if weight > 1.0:
            raise ValueError(f"regularization must be a number from 0 to 1, but it is {self.regularization!r}")
        n_neighbors = check_whole("n_neighbors", self.n_neighbors)
        d = points.shape[1]
        start = initial_components(self.init, d, points, labels, self.random_state)
        objective = LMNNObjective(points, labels, n_neighbors, weight, self.device)
        root = _whitening(objective.pull_matrix())
        objective = objective.transform(root)
        factor, left = start @ np.linalg.inv(root), check_max_iter(self.max_iter)
        best, best_factor, self.n_iter_ = objective(factor)[0], factor, 0
        for width in (*WIDTHS, 0.0):
            found = minimize_array(objective.smooth(width), factor, left, gtol=1e-8, ftol=1e-9, warn=False)
            factor = found.at
            self.n_iter_, left = self.n_iter_ + found.n_iter, left - found.n_iter
            value = objective(factor)[0] if width else found.value
            if value < best:
                best, best_factor = value, factor
            if left <= 0:
                warn_not_converged(self.max_iter, f"the objective is {best:.6g} and may fall further")
                break
        self.objective_ = best
        self.components_ = _square(best_factor @ root)
        return self


def _whitening(scatter: Array) -> Array:
    """Coordinates in which the pull of an objective, ``tr(M C)``, is a norm: ``(C + ridge)^(−1/2)``, symmetric."""
    values, vectors = np.linalg.eigh(scatter)
    ridge = 1e-4 * max(float(values.mean()), np.finfo(np.float64).tiny) if values[-1] > 0.0 else 1.0
    return np.asarray((vectors / np.sqrt(np.maximum(values, 0.0) + ridge)) @ vectors.T)


def _within(points: Array, labels: NDArray[Any]) -> Array:
    """The mean scatter of classes around their means."""
    centered = center_by_class(points, labels)
    return np.asarray(centered.T @ centered / len(points))


def _square(components: Array) -> Array:
    """The components of the same metric that do not depend on the path to it."""
    return components_of(components.T @ components)
