"""Closed forms: metrics from one eigenvalue problem."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import pinvh
from sklearn.metrics import euclidean_distances
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from likewise.linear.metric import (
    Array,
    MahalanobisMixin,
    center_by_class,
    check_choice,
    check_components,
    check_whole,
    components_of,
    inverse_root,
)

EMBEDDINGS = ("weighted", "plain", "orthonormalized")


class Covariance(MahalanobisMixin):
    r"""The Mahalanobis distance: whitening by the covariance of the data.

    $$M=\Sigma^{+}$$

    the pseudo-inverse of the unbiased covariance of X.  Mahalanobis 1936; section 2.1.1 of the thesis.

    Examples:
        >>> import numpy as np
        >>> points = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 4.0], [2.0, 4.0]])
        >>> Covariance().fit(points).get_mahalanobis_matrix()
        array([[0.75  , 0.    ],
               [0.    , 0.1875]])
    """

    def fit(self, X: Any, y: object = None) -> Self:
        """Estimate the covariance of points ``(n, d)``; y is not used."""
        points = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        matrix = np.atleast_2d(np.cov(points, rowvar=False))
        self.components_ = components_of(np.atleast_2d(pinvh(matrix)))
        return self


class RCA(MahalanobisMixin):
    r"""Relevant component analysis: whitening by the covariance inside chunks of similar points.

    $$M=C_w^{+},\qquad C_w=\frac1n\sum_c\sum_{i\in c}(x_i-\bar x_c)(x_i-\bar x_c)^\top$$

    over the points that are in a chunk.  Bar-Hillel et al. 2005.  With fewer components than the rank of $C_w$, A
    consists of the directions v of smallest λ in $C_w v=\lambda C_t v$, where $C_t$ is the unbiased covariance of the
    chunked points, and $M=A(A^\top C_wA)^{-1}A^\top$.  Directions in which no chunk varies get weight zero.

    Args:
        n_components: the number of directions; ``None``: all.

    Examples:
        >>> import numpy as np
        >>> points = np.array([[0.0, 0.0], [2.0, 0.1], [10.0, 5.0], [12.0, 5.1]])
        >>> learned = RCA().fit(points, [0, 0, 1, 1])
        >>> learned.pair_distance(points[None, :2]).round(6)
        array([2.])
    """

    _requires_target = True

    def __init__(self, n_components: int | None = None) -> None:
        self.n_components = n_components

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from points ``(n, d)`` and the chunk of each, ``(n,)``; −1 for a point that is not in a chunk."""
        points, chunks = validate_data(self, X, y, dtype=np.float64, ensure_min_samples=2)
        check_classification_targets(chunks)
        n_components = check_components(self.n_components, points.shape[1])
        chunked = chunks != -1
        if not chunked.any():
            raise ValueError("y must put at least one point into a chunk, but all of its entries are −1")
        points, chunks = points[chunked], chunks[chunked]
        _, index = np.unique(chunks, return_inverse=True)
        centered = center_by_class(points, index)
        within = centered.T @ centered / len(points)
        roots = inverse_root(within)
        if n_components < len(roots):
            total = np.atleast_2d(np.cov(points, rowvar=False))
            _, vectors = np.linalg.eigh(roots @ total @ roots.T)
            roots = vectors.T[::-1][:n_components] @ roots
        missing = n_components - len(roots)
        self.components_ = np.concatenate([roots, np.zeros((missing, points.shape[1]))])
        return self


class LFDA(MahalanobisMixin):
    r"""Local Fisher discriminant analysis: keeps near points of a class together and separates classes.

    Per class c, $\sigma_i$ is the distance of point i to its k-th nearest neighbor in the class,
    $A_{ij}=e^{-d_{ij}^2/(\sigma_i\sigma_j)}$ and $G_c=X_c^\top(\mathrm{diag}(A1)-A)X_c$.  With
    $S_w=\sum_c G_c/n_c$ and

    $$S_b=\sum_c\Bigl[\tfrac{G_c}{n}+\bigl(1-\tfrac{n_c}{n}\bigr)X_c^\top X_c+\tfrac{s_cs_c^\top}{n}\Bigr]-\tfrac{ss^\top}{n}+S_w$$

    ($s_c$, s: sums of rows) the components are generalized eigenvectors $S_bv=\lambda S_wv$, $v^\top S_wv=1$, largest λ first,
    on the range of $S_w$.  Sugiyama 2007.  Each pair is used once, and the pencil is symmetric, so that the result is
    real for any data.

    Args:
        n_components: the number of components; ``None``: the rank of $S_w$, which is also the maximum.
        k: the neighbor that scales distances; ``None``: 7, but less than the number of features.  At most the size of a class
            minus one.
        embedding_type: ``"weighted"``: $\sqrt\lambda v$; ``"plain"``: v; ``"orthonormalized"``: an orthonormal basis of
            their span.

    Examples:
        >>> import numpy as np
        >>> points = np.array([[0.0, 0.0], [0.0, 2.0], [0.0, 5.0], [1.0, 0.0], [1.0, 2.0], [1.0, 5.0]])
        >>> points += np.random.default_rng(0).normal(scale=0.01, size=points.shape)
        >>> learned = LFDA(n_components=1, k=1, embedding_type="orthonormalized").fit(points, [0, 0, 0, 1, 1, 1])
        >>> abs(learned.components_).round(1)
        array([[1., 0.]])
    """

    _requires_target = True

    def __init__(self, n_components: int | None = None, k: int | None = None, embedding_type: str = "weighted") -> None:
        self.n_components = n_components
        self.k = k
        self.embedding_type = embedding_type

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from points ``(n, d)`` and the class of each, ``(n,)``."""
        points, labels = validate_data(self, X, y, dtype=np.float64, ensure_min_samples=2)
        check_classification_targets(labels)
        check_choice("embedding_type", self.embedding_type, EMBEDDINGS)
        n_components = check_components(self.n_components, points.shape[1])
        default = max(1, min(7, points.shape[1] - 1))
        k = default if self.k is None else check_whole("k", self.k, or_none=True)
        within, between = _local_scatter(points, labels, k)
        roots = inverse_root(within)
        if not len(roots):
            raise ValueError("X must have a class with two different points, but no class varies")
        values, vectors = np.linalg.eigh(roots @ between @ roots.T)
        order = np.argsort(-values, kind="stable")[:n_components]
        components = vectors.T[order] @ roots
        if self.embedding_type == "weighted":
            components = np.sqrt(np.maximum(values[order], 0.0))[:, None] * components
        elif self.embedding_type == "orthonormalized":
            components = np.linalg.qr(components.T)[0].T
        self.components_ = components
        return self


def _local_scatter(points: Array, labels: NDArray[Any], k: int) -> tuple[Array, Array]:
    """The local scatter inside classes and between them."""
    points = points - points.mean(axis=0)  # neither matrix depends on the origin, but rounding does
    n, d = points.shape
    within, between = np.zeros((d, d)), np.zeros((d, d))
    for label in np.unique(labels):
        members = points[labels == label]
        scatter = _class_scatter(members, min(k, len(members) - 1))
        total = members.sum(axis=0)
        within += scatter / len(members)
        between += scatter / n + (1.0 - len(members) / n) * (members.T @ members) + np.outer(total, total) / n
    return within, between + within


def _class_scatter(members: Array, k: int) -> Array:
    squared = euclidean_distances(members, squared=True)
    scale = np.sqrt(np.partition(squared, k, axis=1)[:, k])
    product = np.outer(scale, scale)
    affinity = np.zeros_like(squared)
    np.divide(squared, product, out=affinity, where=product > 0.0)
    affinity = np.where(product > 0.0, np.exp(-affinity), 0.0)
    return np.asarray((members.T * affinity.sum(axis=1)) @ members - members.T @ affinity @ members)
