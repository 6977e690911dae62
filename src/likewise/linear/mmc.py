"""Metric learning for clustering: separates dissimilar pairs while similar pairs stay together."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from likewise.linear.metric import Array, check_number, components_of, inverse_root
from likewise.linear.solver import check_max_iter, minimize_array, warn_not_converged
from likewise.linear.tuples import PairMixin

ROUND = 20
"""The number of L-BFGS iterations between two checks of the duality gap."""


class MMC(PairMixin):
    r"""Metric learning for clustering: separates dissimilar pairs while similar pairs stay together.

    $$\max_{M\succeq0}\ \sum_{\text{dissimilar}}d_M\quad\text{subject to}\quad\sum_{\text{similar}}d_M^2\le1$$

    Xing et al. 2002.  In coordinates that whiten the differences of similar pairs the constraint is tr(N) ≤ 1.  The concave
    problem is solved by L-BFGS over a factor of N, until the gap to the bound $\tfrac12\bigl(f+\lambda_{\max}(\sum uu^\top/d_N)\bigr)$,
    which no metric exceeds, is `tol` · 1e-3 of the objective.  The constraint is then an equality.

    `diagonal`: $\min_{w\ge0}\sum_{\text{similar}}d_w^2-c\,\log\sum_{\text{dissimilar}}d_w$ with $d_w^2=\sum_kw_kv_k^2$.

    Args:
        max_iter: the maximum number of rounds of 20 iterations each.
        tol: a thousand times the relative gap at which it stops.
        diagonal: learn one weight per feature.
        diagonal_c: the weight c.
        preprocessor: points ``(m, d)``, or a function of indices, for pairs that are given as indices ``(n, 2)``.

    Attributes:
        n_iter_: the number of rounds.

    Examples:
        >>> import numpy as np
        >>> pairs = np.array([[[0.0, 0.0], [1.0, 2.0]], [[0.0, 0.0], [1.0, -2.0]], [[0.0, 0.0], [1.0, 0.0]]])
        >>> MMC().fit(pairs, [1, 1, -1]).get_mahalanobis_matrix().round(3)
        array([[0.5, 0. ],
               [0. , 0. ]])
    """

    def __init__(
        self,
        max_iter: int = 100,
        tol: float = 1e-3,
        diagonal: bool = False,
        diagonal_c: float = 1.0,
        preprocessor: Any = None,
    ) -> None:
        self.max_iter = max_iter
        self.tol = tol
        self.diagonal = diagonal
        self.diagonal_c = diagonal_c
        self.preprocessor = preprocessor

    def fit(self, pairs: Any, y: Any) -> Self:
        """Learn from pairs ``(n, 2, d)``, or indices ``(n, 2)``, and +1 (similar) or −1 for each."""
        differences, labels = self._read(pairs, y)
        check_max_iter(self.max_iter)
        check_number("tol", self.tol, above=0.0)
        check_number("diagonal_c", self.diagonal_c, above=0.0)
        similar, dissimilar = differences[labels == 1], differences[labels == -1]
        if not similar.any() or not dissimilar.any():
            raise ValueError("pairs must contain two different points in a similar and in a dissimilar pair each")
        matrix = self._diagonal(similar, dissimilar) if self.diagonal else self._full(similar, dissimilar)
        self.components_ = components_of(matrix)
        return self._calibrate(differences, labels)

    def _full(self, similar: Array, dissimilar: Array) -> Array:
        roots = inverse_root(similar.T @ similar)
        vectors = dissimilar @ roots.T
        _check_bounded(dissimilar, vectors @ np.linalg.pinv(roots).T)
        factor = np.eye(len(roots)) / np.sqrt(len(roots))
        gap = np.inf
        for rounds in range(1, self.max_iter + 1):
            self.n_iter_ = rounds
            found = minimize_array(lambda at: _ratio(at, vectors), factor, ROUND, gtol=1e-12, warn=False)
            factor = found.at / np.linalg.norm(found.at)
            gap = _gap(factor, vectors)
            if gap <= 1e-3 * self.tol:
                break
        else:
            warn_not_converged(self.max_iter, f"the objective may be {gap:.1e} of itself below the maximum", "rounds")
        components = factor @ roots
        return np.asarray(components.T @ components)

    def _diagonal(self, similar: Array, dissimilar: Array) -> Array:
        cost, squares = (similar**2).sum(axis=0), dissimilar**2
        if (squares[:, cost == 0.0] > 0.0).any():
            raise ValueError(_UNBOUNDED)
        used = cost > 0.0
        cost, squares = cost[used], squares[:, used]
        scale = 1.0 / cost  # in these units the cost of every feature is one

        def objective(weights: Array) -> tuple[float, Array]:
            lengths = np.sqrt(squares @ (scale * weights))
            total = lengths.sum()
            if total == 0.0:
                return np.inf, np.zeros_like(weights)
            inverse = np.divide(0.5, lengths, out=np.zeros_like(lengths), where=lengths > 0.0)
            pull = self.diagonal_c / total * scale * (inverse @ squares)
            return float(weights.sum() - self.diagonal_c * np.log(total)), 1.0 - pull

        start = np.full(len(cost), 0.5 * self.diagonal_c / len(cost))
        found = minimize_array(objective, start, ROUND * self.max_iter, gtol=1e-6 * self.tol, limits=(0.0, None))
        self.n_iter_ = -(-found.n_iter // ROUND)
        diagonal = np.zeros(len(used))
        diagonal[used] = scale * found.at
        return np.diag(diagonal)


_UNBOUNDED = (
    "pairs must not differ in a direction in which no similar pair differs, but a dissimilar pair does: "
    "its distance has no limit; add similar pairs, or reduce the dimension"
)


def _check_bounded(dissimilar: Array, inside: Array) -> None:
    """Check that dissimilar differences lie in the span of similar ones."""
    outside = np.linalg.norm(dissimilar - inside, axis=1)
    if (outside > 1e-6 * np.linalg.norm(dissimilar, axis=1)).any():
        raise ValueError(_UNBOUNDED)


def _ratio(factor: Array, vectors: Array) -> tuple[float, Array]:
    """``−log Σ‖F u‖ + log ‖F‖``: the objective does not depend on the scale."""
    moved = vectors @ factor.T
    lengths = np.linalg.norm(moved, axis=1)
    total, norm = lengths.sum(), np.linalg.norm(factor)
    inverse = np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0.0)
    gradient = factor / norm**2 - (moved.T * inverse) @ vectors / total
    return float(np.log(norm) - np.log(total)), gradient


def _gap(factor: Array, vectors: Array) -> float:
    """How far below the maximum the objective can be, relative to it."""
    lengths = np.linalg.norm(vectors @ factor.T, axis=1)
    inverse = np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0.0)
    largest = np.linalg.eigvalsh((vectors.T * inverse) @ vectors)[-1]
    return float(0.5 * largest / lengths.sum() - 0.5)
