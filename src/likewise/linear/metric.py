"""The Mahalanobis metric that every estimator learns: a linear map, and the methods based on it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

Array = NDArray[np.float64]
Vector = NDArray[Any]


class MahalanobisMixin(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """The distance ``‖L(a − b)‖`` of a fitted linear map L, ``components_``."""

    components_: Array
    n_features_in_: int

    _requires_target: ClassVar[bool] = False

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags: results are float64 for any input, and some estimators need a target."""
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64"]
        if self._requires_target:
            tags.target_tags.required = True
        return tags

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def transform(self, X: Any) -> Array:
        """Return the points in the learned space, ``X Lᵀ``, ``(n, n_components)``, where distances are Euclidean."""
        check_is_fitted(self, "components_")
        points: Array = validate_data(self, X, reset=False, dtype=np.float64)
        return points @ self.components_.T

    def get_mahalanobis_matrix(self) -> Array:
        """Return the matrix ``M = LᵀL`` of the squared distance ``(a − b)ᵀ M (a − b)``."""
        check_is_fitted(self, "components_")
        return self.components_.T @ self.components_

    def pair_distance(self, pairs: Any) -> Array:
        """Return the distances ``‖L(a − b)‖`` of pairs ``(n, 2, d)``, or of index pairs if there is a preprocessor."""
        check_is_fitted(self, "components_")
        points = read_tuples(self, pairs, 2)
        return distances(points[:, 0] - points[:, 1], self.components_)

    def pair_score(self, pairs: Any) -> Array:
        """Return the negated distances of pairs; higher is closer."""
        return -self.pair_distance(pairs)

    def get_metric(self) -> Callable[[Any, Any], float]:
        """Return the distance as a function of two vectors, for example for scikit-learn's neighbors."""
        check_is_fitted(self, "components_")
        components = self.components_.copy()

        def distance(a: Any, b: Any) -> float:
            return float(np.linalg.norm(components @ (np.asarray(a, np.float64) - np.asarray(b, np.float64))))

        return distance


def distances(differences: Array, components: Array) -> Array:
    """The lengths of differences after the linear map."""
    return np.asarray(np.linalg.norm(differences @ components.T, axis=1))


def read_tuples(estimator: Any, tuples: Any, size: int, *, reset: bool = False) -> Array:
    """Tuples of points, ``(n, size, d)``; tuples of indices ``(n, size)`` become points by the preprocessor."""
    name = {2: "pairs", 3: "triplets", 4: "quadruplets"}[size]
    preprocessor = getattr(estimator, "preprocessor", None)
    array = np.asarray(tuples)
    if preprocessor is not None and array.ndim == 2 and array.dtype.kind in "iu" and array.shape[1] == size:
        array = _points_of(preprocessor, array, name)
    if array.ndim != 3 or array.shape[1] != size:
        hint = ", or index tuples with a preprocessor"
        if preprocessor is not None:
            hint = f", or (n, {size}) with whole numbers as indices"
        raise ValueError(
            f"{name} must have shape (n, {size}, d){hint}, but their shape is {array.shape}"
            f"{'' if array.ndim else ' (' + type(tuples).__name__ + ')'}"
        )
    points: Array = check_array(array, allow_nd=True, dtype=np.float64, input_name=name)
    if reset:
        estimator.n_features_in_ = points.shape[2]
    elif points.shape[2] != estimator.n_features_in_:
        raise ValueError(
            f"{name} must have {estimator.n_features_in_} features, as those of fit, but they have {points.shape[2]}"
        )
    return points


def _points_of(preprocessor: Any, indices: NDArray[Any], name: str) -> Array:
    if callable(preprocessor):
        rows = check_array(preprocessor(indices.ravel()), dtype=np.float64, input_name="the preprocessor's result")
        if len(rows) != indices.size:
            raise ValueError(
                f"preprocessor must return one point for each of {indices.size} indices, but it returns {len(rows)}"
            )
    else:
        points = check_array(preprocessor, dtype=np.float64, input_name="preprocessor")
        if indices.size and not (indices.min() >= 0 and indices.max() < len(points)):
            raise ValueError(
                f"{name} must be indices from 0 to {len(points) - 1} of the preprocessor's points, but they go from "
                f"{indices.min()} to {indices.max()}"
            )
        rows = points[indices.ravel()]
    return np.asarray(rows.reshape(*indices.shape, -1))


def read_pair_labels(y: Any, n: int) -> NDArray[np.int64]:
    """The labels of pairs: +1 for similar, −1 for dissimilar ones."""
    labels = np.asarray(y)
    if labels.shape != (n,):
        raise ValueError(f"y must have shape ({n},), one label for each pair, but its shape is {labels.shape}")
    if labels.dtype.kind not in "iufb" or not np.isin(labels, (1, -1)).all():
        raise ValueError(
            f"y must be +1 or −1 for each pair, but it contains {sorted(set(labels.tolist()), key=str)[:5]}"
        )
    return labels.astype(np.int64)


def components_of(matrix: Array) -> Array:
    """A square root L of a positive semi-definite matrix, ``LᵀL = M``: the upper triangular one where M is definite.

    Eigenvalues that rounding made negative are zero.

    Examples:
        >>> components_of(np.array([[4.0, 2.0], [2.0, 10.0]]))
        array([[2., 1.],
               [0., 3.]])
    """
    diagonal = np.diag(matrix)
    if np.array_equal(matrix, np.diag(diagonal)):
        return np.diag(np.sqrt(np.maximum(diagonal, 0.0)))
    try:
        return np.asarray(np.linalg.cholesky((matrix + matrix.T) / 2.0).T, np.float64)
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh((matrix + matrix.T) / 2.0)
        return np.asarray(np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T)


def project(matrix: Array) -> Array:
    """Return the nearest positive semi-definite matrix: negative eigenvalues become zero.

    Examples:
        >>> project(np.array([[0.0, 1.0], [1.0, 0.0]]))
        array([[0.5, 0.5],
               [0.5, 0.5]])
    """
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2.0)
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)


def inverse_root(matrix: Array) -> Array:
    """``W`` with ``W M Wᵀ`` the identity on the range of M: one row for each eigenvalue that is not zero, ``(rank, d)``.

    Examples:
        >>> inverse_root(np.diag([4.0, 0.0]))
        array([[0.5, 0. ]])
    """
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2.0)
    largest = max(float(values[-1]), 0.0) if len(values) else 0.0
    keep = values > largest * len(values) * np.finfo(np.float64).eps
    return np.asarray(vectors.T[keep] / np.sqrt(values[keep])[:, None])


def center_by_class(points: Array, labels: NDArray[Any]) -> Array:
    """The points minus the mean of their class; classes are whole numbers from 0.

    Examples:
        >>> center_by_class(np.array([[0.0], [2.0], [5.0]]), np.array([0, 0, 1]))
        array([[-1.],
               [ 1.],
               [ 0.]])
    """
    sizes = np.bincount(labels)
    sums = np.zeros((len(sizes), points.shape[1]))
    np.add.at(sums, labels, points)
    return np.asarray(points - (sums / np.maximum(sizes, 1)[:, None])[labels])


def check_symmetric(name: str, matrix: Array, size: int) -> None:
    """Check an argument that is a symmetric matrix."""
    if matrix.shape != (size, size):
        raise ValueError(f"{name} must be a symmetric matrix ({size}, {size}), but its shape is {matrix.shape}")
    if not np.allclose(matrix, matrix.T):
        raise ValueError(f"{name} must be a symmetric matrix, but it is not symmetric")


def check_choice(name: str, value: object, allowed: tuple[str, ...]) -> None:
    """Check an argument that is one of several strings."""
    if value not in allowed:
        raise ValueError(f"{name} must be {' or '.join(map(repr, allowed))}, but it is {value!r}")


def check_number(name: str, value: object, *, above: float | None = None, at_least: float | None = None) -> float:
    """Check an argument that is a number.

    Examples:
        >>> check_number("gamma", 0.0, above=0.0)
        Traceback (most recent call last):
        ValueError: gamma must be a number > 0, but it is 0.0
    """
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool) and not np.isnan(value)
    too_small = number and ((above is not None and value <= above) or (at_least is not None and value < at_least))  # type: ignore[operator]
    if not number or too_small:
        limit = f" > {above:g}" if above is not None else f" ≥ {at_least:g}" if at_least is not None else ""
        raise ValueError(f"{name} must be a number{limit}, but it is {value!r}")
    return float(value)  # type: ignore[arg-type]


def check_whole(name: str, value: object, *, or_none: bool = False) -> int:
    """Check an argument that is a whole number of at least one.

    Args:
        name: the argument's name in error messages.
        value: the argument.
        or_none: whether the message says that ``None`` is allowed, which the caller replaces.

    Examples:
        >>> check_whole("k", 0, or_none=True)
        Traceback (most recent call last):
        ValueError: k must be a whole number ≥ 1 or None, but it is 0
    """
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name} must be a whole number ≥ 1{' or None' if or_none else ''}, but it is {value!r}")
    return int(value)


def check_components(n_components: object, n_features: int) -> int:
    """The number of rows of the linear map; ``None`` is the number of features."""
    if n_components is None:
        return n_features
    if not isinstance(n_components, int | np.integer) or not 1 <= n_components <= n_features:
        raise ValueError(
            f"n_components must be a whole number from 1 to {n_features}, the number of features, or None, "
            f"but it is {n_components!r}"
        )
    return int(n_components)
