"""Information-theoretic metric learning: the metric closest to a prior that satisfies bounds on pairs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.linalg.blas import dsyr
from scipy.linalg.lapack import dtrtri
from sklearn.metrics import euclidean_distances
from sklearn.utils.validation import check_array

from likewise.linear.metric import (
    Array,
    check_choice,
    check_number,
    components_of,
    read_pair_labels,
    read_tuples,
)
from likewise.linear.solver import check_max_iter, minimize_array, prior_matrix, warn_not_converged
from likewise.linear.tuples import PairMixin

CHUNK = 48
"""The number of constraints in a chunk: balances Python's overhead per chunk and the work inside it."""

WHOLE = 3000
"""The number of points up to which all distances are kept in memory."""


class ITML(PairMixin):
    r"""Information-theoretic metric learning: the metric closest to a prior under bounds on pairs.

    $$\min_{M\succeq0}\ \mathrm{tr}(MP^{-1})-\log\det M\ +\ \text{slack},\qquad
    d^2_M\le u\ \text{(similar)},\quad d^2_M\ge l\ \text{(dissimilar)}$$

    Davis et al. 2007.  The slack is $\gamma\sum(\xi/b-\log(\xi/b)-1)$ with b = u or l, and ξ the squared distance of a pair
    that violates its bound: a convex objective with one minimum.

    ``solver="projections"``, as in the paper: cyclic Bregman projections.  The state is A = P, λ = 0 and $\hat b$ = u
    or l for each pair, and $g=\gamma/(\gamma+1)$.  A sweep visits the similar pairs in order, then the dissimilar ones,
    with $w=v^\top Av$:

    - similar: $\alpha=\min(\lambda,g(1/w-1/\hat b))$, $\beta=\alpha/(1-\alpha w)$, $1/\hat b\leftarrow1/\hat b+\alpha/\gamma$;
    - dissimilar: $\alpha=\min(\lambda,g(1/\hat b-1/w))$, $\beta=-\alpha/(1+\alpha w)$, $1/\hat b\leftarrow1/\hat b-\alpha/\gamma$;
    - both: $\lambda\leftarrow\lambda-\alpha$, $A\leftarrow A+\beta\,(Av)(Av)^\top$.

    It stops after a sweep in which $\sum|\lambda_{old}-\lambda|/(\lVert\lambda_{old}\rVert+\lVert\lambda\rVert)<$ `tol`.  The
    projections of a chunk of pairs run on its small matrix $V^\top AV$, with the same result.

    ``solver="lbfgs"``: L-BFGS over a square factor of M, as in `LSML`.  It converges to the same minimum more
    precisely, and is faster with many pairs.

    Pairs of equal points are ignored, because their distance is zero in any metric.

    Args:
        gamma: weight of the slack; larger values enforce the bounds more strictly, infinity (projections only) exactly.
        max_iter: the maximum number of sweeps, or of iterations of L-BFGS.
        tol: change of the multipliers at which sweeps stop; with L-BFGS, a thousand times the entry of the gradient by the
            factor at which iterations stop.
        prior: P: ``"identity"``, ``"covariance"`` (the inverse covariance of the points) or a positive definite matrix.
        solver: ``"projections"`` or ``"lbfgs"``.
        preprocessor: points ``(m, d)``, or a function of indices, for pairs that are given as indices ``(n, 2)``.

    Attributes:
        bounds_: u and l.
        n_iter_: the number of sweeps or iterations.

    Examples:
        >>> import numpy as np
        >>> pairs = np.array([[[0.0, 0.0], [0.0, 2.0]], [[0.0, 0.0], [1.0, 0.0]]])
        >>> learned = ITML().fit(pairs, [1, -1], bounds=(1.0, 4.0))
        >>> learned.get_mahalanobis_matrix().round(3)
        array([[1.6, 0. ],
               [0. , 0.4]])
    """

    def __init__(
        self,
        gamma: float = 1.0,
        max_iter: int = 1000,
        tol: float = 1e-3,
        prior: Any = "identity",
        solver: str = "projections",
        preprocessor: Any = None,
    ) -> None:
        self.gamma = gamma
        self.max_iter = max_iter
        self.tol = tol
        self.prior = prior
        self.solver = solver
        self.preprocessor = preprocessor

    def fit(self, pairs: Any, y: Any, bounds: Any = None) -> Self:
        """Learn from pairs.

        Args:
            pairs: the pairs, ``(n, 2, d)``, or indices ``(n, 2)``.
            y: +1 (similar) or −1 for each.
            bounds: u and l, which are compared with squared distances; by default the 5th and 95th percentile of the matrix
                of Euclidean (not squared) distances of the distinct points, its diagonal included.
        """
        points = read_tuples(self, pairs, 2, reset=True)
        labels = read_pair_labels(y, len(points))
        gamma = check_number("gamma", self.gamma, above=0.0)
        check_number("tol", self.tol, at_least=0.0)
        check_max_iter(self.max_iter)
        check_choice("solver", self.solver, ("projections", "lbfgs"))
        if self.solver == "lbfgs" and math.isinf(gamma):
            raise ValueError("gamma must be finite with solver='lbfgs', but it is inf; solver='projections' takes it")
        flat = points.reshape(-1, points.shape[2])
        self.bounds_ = _read_bounds(bounds, flat)
        differences = points[:, 0] - points[:, 1]
        matrix = prior_matrix(self.prior, flat)
        moved = differences.any(axis=1)
        order = np.concatenate([np.flatnonzero((labels == 1) & moved), np.flatnonzero((labels == -1) & moved)])
        similar = labels[order] == 1
        limits = np.where(similar, self.bounds_[0], self.bounds_[1])
        if self.solver == "lbfgs":
            matrix = self._minimize(matrix, differences[order], similar, limits)
        else:
            state = _State.start(matrix, limits, gamma)
            self.n_iter_ = _project(state, differences[order], similar, self.max_iter, self.tol)
            matrix = state.matrix
        self.components_ = components_of(matrix)
        return self._calibrate(differences, labels)

    def _minimize(self, prior: Array, differences: Array, similar: Any, limits: Array) -> Array:
        """Minimize by L-BFGS, in coordinates in which the prior is the identity."""
        root = np.linalg.cholesky(prior).T
        turned = differences @ root.T

        def objective(factor: Array) -> tuple[float, Array]:
            return itml_objective(factor, turned, similar, limits, self.gamma)

        found = minimize_array(objective, np.eye(len(root)), self.max_iter, gtol=1e-3 * self.tol)
        self.n_iter_ = found.n_iter
        components = found.at @ root
        return np.asarray(components.T @ components)


def itml_objective(factor: Array, differences: Array, similar: Any, bounds: Array, gamma: float) -> tuple[float, Array]:
    """The objective with its slack for the identity as prior, and its gradient by the square factor of M."""
    sign, logarithm = np.linalg.slogdet(factor)
    if sign == 0.0:
        return np.inf, np.zeros_like(factor)
    moved = differences @ factor.T
    squared = np.einsum("ij,ij->i", moved, moved)
    squared = np.where(
        similar, np.maximum(squared, bounds), np.minimum(squared, bounds)
    )  # ξ: no slack inside the bound
    ratios = squared / bounds
    value = float(np.sum(factor**2) - 2.0 * logarithm + gamma * np.sum(ratios - np.log(ratios) - 1.0))
    moved *= (gamma * (1.0 / bounds - 1.0 / squared))[:, None]
    return value, 2.0 * (moved.T @ differences + factor - np.linalg.inv(factor).T)


def _read_bounds(bounds: Any, points: Array) -> Array:
    if bounds is None:
        limits = distance_percentiles(np.unique(points, axis=0), (5.0, 95.0))
    else:
        limits = check_array(bounds, ensure_2d=False, dtype=np.float64, input_name="bounds").ravel().copy()
        if limits.shape != (2,) or (limits < 0.0).any():
            raise ValueError(f"bounds must be two numbers ≥ 0, but they are {bounds!r}")
    limits[limits == 0.0] = 1e-9  # a bound of zero has no inverse
    return limits


@dataclass
class _State:
    """The state that projections change."""

    matrix: Array
    multipliers: list[float]
    bounds: list[float]
    gamma: float
    step: float

    @classmethod
    def start(cls, matrix: Array, bounds: Array, gamma: float) -> _State:
        step = 1.0 if math.isinf(gamma) else gamma / (gamma + 1.0)
        return cls(matrix, [0.0] * len(bounds), bounds.tolist(), gamma, step)


def _project(state: _State, differences: Array, similar: Any, max_iter: int, tol: float) -> int:
    """Sweep until the multipliers do not change and return the number of sweeps."""
    before = np.zeros(len(differences))
    signs = similar.tolist()
    for sweep in range(max_iter):
        for start in range(0, len(differences), CHUNK):
            _project_chunk(state, differences[start : start + CHUNK], signs, start)
        now = np.array(state.multipliers)
        norms = float(np.linalg.norm(now) + np.linalg.norm(before))
        change = now - before
        if norms == 0.0 or np.abs(change).sum() / norms < tol:
            return sweep + 1
        before = now
    warn_not_converged(max_iter, f"the multipliers still change by {np.abs(change).sum() / norms:.1e}", "sweeps")
    return max_iter


def _project_chunk(state: _State, differences: Array, similar: list[bool], start: int) -> None:
    """Compute the projections of a chunk in order, using only its matrix ``K = V A Vᵀ``.

    A projection with factor β and column k of K changes K by ``β k kᵀ``; only entries below its place are used later.  With
    ``W = V A`` at the start of the chunk, the vectors ``A v`` at their projections, the rows of Y, satisfy ``Y = W + B Y``, where
    ``B_ji = β_i k_i[j]`` for i before j: the inverse of a small triangle gives them, and A is updated once.
    """
    products = differences @ state.matrix
    gram = (products @ differences.T).T  # symmetric; transposed for columns that are contiguous, as BLAS wants
    multipliers, bounds, gamma, share = state.multipliers, state.bounds, state.gamma, state.step
    used: list[int] = []
    columns: list[Array] = []
    factors: list[float] = []
    for place in range(len(differences)):
        index, squared = start + place, gram.item(place, place)
        if squared <= 0.0:
            continue
        # α and β of the projection: see `ITML`
        multiplier, sign = multipliers[index], 1.0 if similar[index] else -1.0
        inverse = 1.0 / bounds[index]
        alpha = sign * share * (1.0 / squared - inverse)
        if alpha > multiplier:
            alpha = multiplier
        if alpha == 0.0:
            continue
        multipliers[index] = multiplier - alpha
        bounds[index] = 1.0 / (inverse + sign * alpha / gamma)
        factor = sign * alpha / (1.0 - sign * alpha * squared)
        column = gram[:, place].copy()
        used.append(place)
        columns.append(column)
        factors.append(factor)
        dsyr(factor, column, lower=1, a=gram, overwrite_a=1)
    if used:
        weights = np.array(factors)
        coupling = -weights[:, None] * np.array(columns)[:, used]  # I − Bᵀ: only what is above the diagonal is read
        triangle = np.tril(dtrtri(coupling.T, lower=1, unitdiag=1)[0], -1)
        vectors = products[used]
        vectors += triangle @ vectors
        state.matrix += vectors.T @ (weights[:, None] * vectors)


def distance_percentiles(points: Array, percentiles: tuple[float, ...]) -> Array:
    """Percentiles of all entries of the matrix of Euclidean distances, diagonal included, in O(n) memory.

    Examples:
        >>> distance_percentiles(np.array([[0.0], [1.0], [3.0]]), (5.0, 50.0))
        array([0., 1.])
    """
    n = len(points)
    positions = np.array(percentiles) / 100.0 * (n * n - 1)
    ranks = np.unique(np.concatenate([np.floor(positions), np.ceil(positions)])).astype(np.int64)
    if n <= WHOLE:  # a zero for each point, then every distance twice
        matrix = euclidean_distances(points)
        above = np.concatenate([np.zeros(1), *(matrix[row, row + 1 :] for row in range(n))])
        places = np.maximum(0, (ranks - n) // 2 + 1)
        values = np.partition(above, places)[places]
    else:
        values = _order_statistics(points, ranks)
    low, high = values[np.searchsorted(ranks, np.floor(positions))], values[np.searchsorted(ranks, np.ceil(positions))]
    return low + (high - low) * (positions - np.floor(positions))


def _order_statistics(points: Array, ranks: Any, bins: int = 2**14) -> Array:
    """The entries of the distance matrix at positions of their sorted order: counted in bins, then sorted in a few."""
    chunks = [slice(start, start + 256) for start in range(0, len(points), 256)]
    limit = 2.0 * float(np.linalg.norm(points - points.mean(axis=0), axis=1).max())
    edges = np.linspace(0.0, limit * (1.0 + 1e-9), bins + 1)
    counts = np.zeros(bins, np.int64)
    for rows in chunks:
        counts += np.histogram(_distance_rows(points, rows), edges)[0]
    ends = np.cumsum(counts)
    wanted = np.searchsorted(ends, ranks, side="right")
    inside: dict[int, list[Array]] = {int(each): [] for each in wanted}
    for rows in chunks:
        values = _distance_rows(points, rows)
        for each, found in inside.items():
            last = values <= edges[each + 1] if each == bins - 1 else values < edges[each + 1]
            found.append(values[(values >= edges[each]) & last])
    ordered = {each: np.sort(np.concatenate(found)) for each, found in inside.items()}
    before = ends - counts
    return np.array([ordered[int(each)][rank - before[each]] for each, rank in zip(wanted, ranks, strict=True)])


def _distance_rows(points: Array, rows: slice) -> Array:
    """Some rows of the matrix of distances, whose diagonal is zero."""
    values: Array = euclidean_distances(points[rows], points)
    np.fill_diagonal(values[:, rows.start :], 0.0)
    return values
