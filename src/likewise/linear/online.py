"""Online learners: one pass over pairs or triplets, which can be continued with more of them."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy.linalg import eigh
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_array, check_is_fitted

from likewise.linear.metric import Array, check_number, components_of, read_pair_labels, read_tuples
from likewise.linear.tuples import PairMixin


class POLA(PairMixin):
    r"""Pseudo-metric online learning: moves similar pairs below a threshold by a margin and dissimilar pairs above it.

    From $A=0$ and $b$ = `threshold`, for each pair in order, with $v=a-b$:

    $$\ell=\bigl[y\,(v^\top Av-b)+1\bigr]_+,\qquad\alpha=\frac{\ell}{\lVert v\rVert^4+1},\qquad
    A\leftarrow A-y\,\alpha\,vv^\top,\quad b\leftarrow b+y\,\alpha$$

    where $\ell>0$; then, for y = +1, the most negative eigenvalue of A, if there is one, becomes zero, and
    $b\leftarrow\max(1,b)$.  Shalev-Shwartz et al. 2004.

    Args:
        threshold: b at the start, on the squared distance.
        preprocessor: points ``(m, d)``, or a function of indices, for pairs that are given as indices ``(n, 2)``.

    Attributes:
        b_: the threshold b on squared distances.
        threshold_: its square root, on distances.

    Examples:
        >>> import numpy as np
        >>> pairs = np.array([[[0.0, 0.0], [2.0, 0.0]], [[0.0, 0.0], [0.0, 1.0]]])
        >>> learned = POLA().fit(pairs, [-1, 1])
        >>> learned.get_mahalanobis_matrix().round(3), learned.b_
        (array([[0.471, 0.   ],
               [0.   , 0.   ]]), 1.0)
    """

    def __init__(self, threshold: float = 1.0, preprocessor: Any = None) -> None:
        self.threshold = threshold
        self.preprocessor = preprocessor

    def fit(self, pairs: Any, y: Any) -> Self:
        """One pass over pairs ``(n, 2, d)``, or indices ``(n, 2)``, with +1 (similar) or −1 for each, from the start."""
        points = read_tuples(self, pairs, 2, reset=True)
        check_number("threshold", self.threshold, at_least=0.0)
        self.matrix_ = np.zeros((points.shape[2],) * 2)
        self.b_ = float(self.threshold)
        return self._update(points, y)

    def partial_fit(self, pairs: Any, y: Any) -> Self:
        """Continue with more pairs; the first call is `fit`."""
        if not hasattr(self, "matrix_"):
            return self.fit(pairs, y)
        return self._update(read_tuples(self, pairs, 2), y)

    def _update(self, points: Array, y: Any) -> Self:
        for difference, label in zip(points[:, 0] - points[:, 1], read_pair_labels(y, len(points)), strict=True):
            loss = label * (difference @ self.matrix_ @ difference - self.b_) + 1.0
            if loss <= 0.0:
                continue
            step = loss / ((difference @ difference) ** 2 + 1.0)
            self.matrix_ = self.matrix_ - label * step * np.outer(difference, difference)
            self.b_ += float(label * step)
            if label == 1:
                self.matrix_ = _raise_lowest(self.matrix_)
            self.b_ = max(1.0, self.b_)
        self.components_ = components_of(self.matrix_)
        self.threshold_ = float(np.sqrt(self.b_))
        return self


def _raise_lowest(matrix: Array) -> Array:
    """The matrix with its most negative eigenvalue, if there is one, set to zero."""
    values, vectors = eigh(matrix, subset_by_index=[0, 0])
    return matrix - values[0] * np.outer(vectors[:, 0], vectors[:, 0]) if values[0] < 0.0 else matrix


class OASIS(BaseEstimator):  # type: ignore[misc]
    r"""Online learning of a bilinear similarity $S(p,q)=p^\top Wq$ from triplets.

    From $W=I$, for each triplet (p, near, far) in order:

    $$\ell=\bigl[1-S(p,\text{near})+S(p,\text{far})\bigr]_+,\qquad V=p\,(\text{near}-\text{far})^\top,\qquad
    W\leftarrow W+\min\Bigl(c,\frac{\ell}{\lVert V\rVert_F^2}\Bigr)V$$

    where $\ell>0$.  Chechik et al. 2010.  W is neither symmetric nor positive semi-definite: this is a similarity, not a
    distance.

    Args:
        c: the largest step.
        init: W at the start: ``"identity"`` or a matrix ``(d, d)``.
        preprocessor: points ``(m, d)``, or a function of indices, for triplets that are given as indices ``(n, 3)``.

    Examples:
        >>> import numpy as np
        >>> triplet = np.array([[[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]])
        >>> OASIS().fit(triplet).get_bilinear_matrix()
        array([[0.9, 0.1],
               [0. , 1. ]])
    """

    def __init__(self, c: float = 0.1, init: Any = "identity", preprocessor: Any = None) -> None:
        self.c = c
        self.init = init
        self.preprocessor = preprocessor

    def fit(self, triplets: Any, y: object = None) -> Self:
        """One pass over triplets ``(n, 3, d)``, or indices ``(n, 3)``, from the start; y is not used."""
        points = read_tuples(self, triplets, 3, reset=True)
        check_number("c", self.c, above=0.0)
        d = points.shape[2]
        if isinstance(self.init, str):
            if self.init != "identity":
                raise ValueError(f"init must be 'identity' or a matrix ({d}, {d}), but it is {self.init!r}")
            self.matrix_ = np.eye(d)
        else:
            self.matrix_ = np.array(check_array(self.init, dtype=np.float64, input_name="init"))
            if self.matrix_.shape != (d, d):
                raise ValueError(
                    f"init must be 'identity' or a matrix ({d}, {d}), but its shape is {self.matrix_.shape}"
                )
        return self._update(points)

    def partial_fit(self, triplets: Any, y: object = None) -> Self:
        """Continue with more triplets; the first call is `fit`."""
        if not hasattr(self, "matrix_"):
            return self.fit(triplets)
        return self._update(read_tuples(self, triplets, 3))

    def _update(self, points: Array) -> Self:
        for anchor, near, far in points:
            contrast = near - far
            loss = 1.0 - anchor @ self.matrix_ @ contrast
            norm = (anchor @ anchor) * (contrast @ contrast)
            if loss > 0.0 and norm > 0.0:
                self.matrix_ += (min(self.c, loss / norm) * anchor)[:, None] * contrast
        return self

    def get_bilinear_matrix(self) -> Array:
        """The matrix W, which need not be symmetric."""
        check_is_fitted(self, "matrix_")
        return self.matrix_.copy()

    def pair_score(self, pairs: Any) -> Array:
        """The similarity S(p, q) of each pair ``(n, 2, d)``; higher is closer."""
        check_is_fitted(self, "matrix_")
        points = read_tuples(self, pairs, 2)
        return np.asarray(np.einsum("ni,ij,nj->n", points[:, 0], self.matrix_, points[:, 1], optimize=True))

    def decision_function(self, triplets: Any) -> Array:
        """``S(p, near) − S(p, far)``."""
        check_is_fitted(self, "matrix_")
        points = read_tuples(self, triplets, 3)
        return np.asarray(((points[:, 0] @ self.matrix_) * (points[:, 1] - points[:, 2])).sum(axis=1))

    def predict(self, triplets: Any) -> Array:
        """The sign of `decision_function`: +1 where the near point is more similar."""
        return np.sign(self.decision_function(triplets))

    def score(self, triplets: Any, y: object = None) -> float:
        """The fraction of triplets whose near point is more similar."""
        return float(np.mean(self.decision_function(triplets) > 0.0))
