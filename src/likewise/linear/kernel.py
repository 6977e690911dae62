"""Kernels: any linear estimator in the feature space of a kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, TransformerMixin, clone
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from likewise.linear.metric import Array, check_whole, inverse_root


def kernel_distances(
    X: Any, Y: Any = None, kernel: Any = "rbf", gamma: float | None = None, degree: float = 3, coef0: float = 1.0
) -> Array:
    r"""Distances in the feature space of a kernel, $\sqrt{\kappa(x,x)-2\kappa(x,y)+\kappa(y,y)}$, ``(n, m)``.

    Section 2.1.2 of the thesis.

    Args:
        X: points, ``(n, d)``.
        Y: points, ``(m, d)``; by default X.
        kernel: a kernel that scikit-learn knows, such as ``"rbf"``, $e^{-\gamma\lVert x-y\rVert^2}$, or ``"poly"``,
            $(\gamma\,x^\top y+c)^p$; or a function of two vectors.
        gamma: γ; ``None``: one over the number of features.
        degree: p.
        coef0: c.

    Examples:
        >>> kernel_distances([[0.0, 0.0]], [[3.0, 4.0]], kernel="linear")
        array([[5.]])
    """
    first = check_array(X, dtype=np.float64)
    second = first if Y is None else check_array(Y, dtype=np.float64)
    options = {"gamma": gamma, "degree": degree, "coef0": coef0}
    across = _kernel(first, second, kernel, options)
    of_first, of_second = (
        np.array([_kernel(row[None], row[None], kernel, options)[0, 0] for row in points]) for points in (first, second)
    )
    return np.asarray(np.sqrt(np.maximum(of_first[:, None] - 2.0 * across + of_second, 0.0)))


def _kernel(X: Array, Y: Array, kernel: Any, options: dict[str, Any]) -> Array:
    if callable(kernel):
        return np.asarray(pairwise_kernels(X, Y, metric=kernel))
    return np.asarray(pairwise_kernels(X, Y, metric=kernel, filter_params=True, **options))


def _inner_has(name: str) -> Callable[[Any], bool]:
    return lambda self: hasattr(self.estimator, name)


class Kernelized(MetaEstimatorMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    r"""A linear estimator in the feature space of a kernel: the distance $\lVert L(\phi(a)-\phi(b))\rVert$.

    The coordinates of a point are $\Lambda^{-1/2}U^\top k(x)$, where $k(x)$ are the kernel's values at the landmarks and
    $K=U\Lambda U^\top$ those of the landmarks among themselves (kernel PCA, Schölkopf et al. 1998).  With all distinct points as
    landmarks, distances in these coordinates are exactly those of the kernel, so that any estimator learns the same
    metric as in the feature space; with fewer landmarks, they are the Nyström approximation (Williams & Seeger 2001).

    Args:
        estimator: an estimator of `likewise.linear`, of points or of tuples ``(n, 2…4, d)``.
        kernel: ``"rbf"``, ``"poly"``, ``"linear"`` or another kernel that scikit-learn knows, or a function of two vectors.
        gamma: γ of the kernel; ``None``: one over the number of features.
        degree: the degree of ``"poly"``.
        coef0: the constant of ``"poly"``.
        n_landmarks: how many points are landmarks, drawn at random; ``None``: all.
        n_components: the number of coordinates passed to the estimator, those of largest variance first; ``None``: all.
        random_state: seed of the draw.

    Attributes:
        estimator_: the fitted estimator, in coordinates of the feature space.

    Examples:
        >>> import numpy as np
        >>> from likewise.linear import LFDA
        >>> xor = np.array([[1.0, 1.0], [-1.0, -1.0], [-1.0, 1.0], [1.0, -1.0]]).repeat(6, axis=0)
        >>> xor += np.random.default_rng(0).normal(scale=0.2, size=xor.shape)
        >>> kernelized = Kernelized(LFDA(n_components=1), kernel="poly", degree=2)
        >>> moved = kernelized.fit_transform(xor, np.arange(24) // 12)
        >>> bool(moved[:12].max() < moved[12:].min() or moved[:12].min() > moved[12:].max())
        True
    """

    def __init__(
        self,
        estimator: Any,
        kernel: Any = "rbf",
        gamma: float | None = None,
        degree: float = 3,
        coef0: float = 1.0,
        n_landmarks: int | None = None,
        n_components: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.n_landmarks = n_landmarks
        self.n_components = n_components
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn from points ``(n, d)`` or tuples ``(n, 2…4, d)``; y is passed to the estimator."""
        if getattr(self.estimator, "preprocessor", None) is not None:
            raise ValueError("estimator must not have a preprocessor inside of Kernelized: give tuples of points")
        points = check_array(X, allow_nd=True, dtype=np.float64, input_name="X")
        if points.ndim == 2:
            points = validate_data(self, X, dtype=np.float64)
        else:
            self.n_features_in_ = points.shape[2]
        self._choose_landmarks(np.unique(points.reshape(-1, points.shape[-1]), axis=0))
        self.estimator_ = clone(self.estimator)
        arguments = () if y is None else (y,)
        self.estimator_.fit(self._coordinates(points), *arguments)
        return self

    def _choose_landmarks(self, points: Array) -> None:
        if self.n_landmarks is not None:
            size = min(check_whole("n_landmarks", self.n_landmarks, or_none=True), len(points))
            points = points[check_random_state(self.random_state).choice(len(points), size, replace=False)]
        self.landmarks_ = points
        matrix = self._values(points)
        values = np.linalg.eigvalsh(matrix)
        if values[0] < -1e-8 * max(values[-1], 1.0):
            raise ValueError(
                f"kernel must be positive semi-definite, but its matrix has the eigenvalue {values[0]:.3g}"
            )
        roots = inverse_root(matrix + 1e-14 * max(values[-1], 0.0) * np.eye(len(matrix)))[::-1]
        number = (
            len(roots) if self.n_components is None else check_whole("n_components", self.n_components, or_none=True)
        )
        self.roots_ = roots[:number]

    def _values(self, points: Array) -> Array:
        options = {"gamma": self.gamma, "degree": self.degree, "coef0": self.coef0}
        return _kernel(points, self.landmarks_, self.kernel, options)

    def _coordinates(self, points: Array) -> Array:
        """Return coordinates of points or tuples in the feature space."""
        flat = points.reshape(-1, points.shape[-1])
        return (self._values(flat) @ self.roots_.T).reshape(*points.shape[:-1], -1)

    def _read(self, tuples: Any) -> Array:
        check_is_fitted(self, "estimator_")
        points = check_array(tuples, allow_nd=True, dtype=np.float64)
        if points.shape[-1] != self.n_features_in_:
            raise ValueError(
                f"X must have {self.n_features_in_} features, as that of fit, but it has {points.shape[-1]}"
            )
        return self._coordinates(points)

    def transform(self, X: Any) -> Array:
        """Return the points in the learned space."""
        check_is_fitted(self, "estimator_")
        points = validate_data(self, X, reset=False, dtype=np.float64)
        return np.asarray(self.estimator_.transform(self._coordinates(points)))

    @property
    def components_(self) -> Array:
        """The linear map L, on coordinates of the feature space."""
        check_is_fitted(self, "estimator_")
        return np.asarray(self.estimator_.components_)

    def pair_distance(self, pairs: Any) -> Array:
        """Return the learned distances of pairs ``(n, 2, d)``."""
        return np.asarray(self.estimator_.pair_distance(self._read(pairs)))

    def pair_score(self, pairs: Any) -> Array:
        """Return the learned similarity of pairs; higher is closer."""
        return np.asarray(self.estimator_.pair_score(self._read(pairs)))

    def get_metric(self) -> Callable[[Any, Any], float]:
        """Return the distance as a function of two vectors."""
        check_is_fitted(self, "estimator_")
        return lambda a, b: float(self.pair_distance(np.array([[a, b]], np.float64))[0])

    @available_if(_inner_has("decision_function"))  # type: ignore[untyped-decorator, unused-ignore]
    def decision_function(self, tuples: Any) -> Array:
        """Return the estimator's decision function for every tuple."""
        return np.asarray(self.estimator_.decision_function(self._read(tuples)))

    @available_if(_inner_has("predict"))  # type: ignore[untyped-decorator, unused-ignore]
    def predict(self, tuples: Any) -> Array:
        """Return the estimator's prediction for every tuple."""
        return np.asarray(self.estimator_.predict(self._read(tuples)))

    @available_if(_inner_has("score"))  # type: ignore[untyped-decorator, unused-ignore]
    def score(self, tuples: Any, y: Any = None) -> float:
        """Return the estimator's score on tuples."""
        return float(self.estimator_.score(self._read(tuples), *(() if y is None else (y,))))
