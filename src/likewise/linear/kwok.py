"""Kwok & Tsang's metric: shrinks the distances of similar pairs and increases dissimilar ones by a learned margin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from likewise.linear.metric import Array, check_number, components_of, project
from likewise.linear.solver import check_max_iter, minimize_array, warn_not_converged
from likewise.linear.tuples import PairMixin


class KwokTsang(PairMixin):
    r"""Learning with idealized kernels: shrinks similar pairs and expands dissimilar pairs by a margin γ.

    $$\min_{M\succeq0,\gamma\ge0,\xi\ge0}\ \tfrac12\lVert M\rVert_F^2+\frac{C_s}{N_s}\sum_{\text{similar}}\xi
    +C_d\Bigl(\frac1{N_d}\sum_{\text{dissimilar}}\xi-\nu\gamma\Bigr)$$

    subject to $d_M^2\le\lVert a-b\rVert^2+\xi$ for similar and $d_M^2\ge\lVert a-b\rVert^2+\gamma-\xi$ for dissimilar pairs.
    Kwok & Tsang 2003; Eq. 2.8 of the thesis.  The kernel of the metric is the one closest to the ideal kernel of the labels.
    Solved in its dual, $M=[\sum_d\alpha vv^\top-\sum_s\alpha vv^\top]_+$, by L-BFGS for a given γ and bisection for γ, to a
    duality gap.
    With `likewise.linear.Kernelized` the pairs are those of a kernel's feature space.

    Args:
        c_similar: $C_s$.
        c_dissimilar: $C_d$.
        nu: ν, from 0 to 1: the fraction of dissimilar pairs that may lie inside the margin.
        max_iter: the maximum number of steps of the bisection.
        tol: the duality gap at which it stops, relative to the objective if that is above one.
        preprocessor: points ``(m, d)``, or a function of indices, for pairs that are given as indices ``(n, 2)``.

    Attributes:
        margin_: γ.
        n_iter_: the number of steps of the bisection.

    Examples:
        >>> import numpy as np
        >>> pairs = np.array([[[0.0, 0.0], [0.0, 2.0]], [[0.0, 0.0], [1.0, 0.0]]])
        >>> learned = KwokTsang(c_dissimilar=4.0).fit(pairs, [1, -1])
        >>> learned.get_mahalanobis_matrix().round(3), round(learned.margin_, 3)
        (array([[2., 0.],
               [0., 0.]]), 1.0)
    """

    def __init__(
        self,
        c_similar: float = 1.0,
        c_dissimilar: float = 1.0,
        nu: float = 0.5,
        max_iter: int = 100,
        tol: float = 1e-4,
        preprocessor: Any = None,
    ) -> None:
        self.c_similar = c_similar
        self.c_dissimilar = c_dissimilar
        self.nu = nu
        self.max_iter = max_iter
        self.tol = tol
        self.preprocessor = preprocessor

    def fit(self, pairs: Any, y: Any) -> Self:
        """Learn from pairs ``(n, 2, d)``, or indices ``(n, 2)``, and +1 (similar) or −1 for each."""
        differences, labels = self._read(pairs, y)
        nu = check_number("nu", self.nu, at_least=0.0)
        if nu > 1.0:
            raise ValueError(f"nu must be a number from 0 to 1, but it is {self.nu!r}")
        check_number("tol", self.tol, above=0.0)
        if len(np.unique(labels)) < 2:
            raise ValueError("y must contain +1 and −1, but all pairs have one label")
        dissimilar = labels == -1
        weights = np.where(
            dissimilar,
            check_number("c_dissimilar", self.c_dissimilar, above=0.0) / dissimilar.sum(),
            check_number("c_similar", self.c_similar, above=0.0) / (~dissimilar).sum(),
        )
        program = _Program(differences, dissimilar, weights, nu)
        matrix, self.margin_, self.n_iter_ = program.solve(check_max_iter(self.max_iter), self.tol)
        self.components_ = components_of(matrix)
        return self._calibrate(differences, labels)


@dataclass(frozen=True)
class _Program:
    """The dual: a multiplier from 0 to its weight for each pair, those of dissimilar pairs with at least ν of all weight."""

    differences: Array
    dissimilar: Any
    weights: Array
    nu: float

    def matrix(self, multipliers: Array) -> Array:
        signed = np.where(self.dissimilar, multipliers, -multipliers)
        return project((self.differences.T * signed) @ self.differences)

    def gradient(self, matrix: Array) -> Array:
        """Return the gradient of the dual: by how much every pair violates its constraint without margin."""
        lengths = (self.differences**2).sum(axis=1)
        excess = lengths - ((self.differences @ matrix) * self.differences).sum(axis=1)
        return np.asarray(np.where(self.dissimilar, excess, -excess))

    def margin(self, violations: Array) -> float:
        """Return the best γ of a metric: the ν-quantile of the increase of dissimilar pairs' distances."""
        beyond = np.sort(-violations[self.dissimilar])
        return max(0.0, float(beyond[min(int(self.nu * len(beyond)), len(beyond) - 1)]))

    def gap(self, multipliers: Array, matrix: Array) -> tuple[float, float]:
        """The duality gap, relative to the objective where that is above one, and the margin."""
        violations = self.gradient(matrix)
        margin = self.margin(violations)
        slack = np.maximum(violations + np.where(self.dissimilar, margin, 0.0), 0.0)
        half = 0.5 * float((matrix**2).sum())
        primal = half + float(self.weights @ slack) - self.nu * float(self.weights[self.dissimilar].sum()) * margin
        lengths = (self.differences**2).sum(axis=1)
        dual = float(np.where(self.dissimilar, lengths, -lengths) @ multipliers) - half
        return (primal - dual) / max(1.0, abs(primal)), margin

    def at_margin(self, margin: float, start: Array) -> Array:
        """The multipliers that maximize the dual for a given γ, where only their limits remain."""
        lengths = (self.differences**2).sum(axis=1)
        gains = np.where(self.dissimilar, lengths + margin, -lengths)

        def objective(shares: Array) -> tuple[float, Array]:
            multipliers = shares * self.weights
            matrix = self.matrix(multipliers)
            slope = self.gradient(matrix) + np.where(self.dissimilar, margin, 0.0)
            return 0.5 * float((matrix**2).sum()) - float(gains @ multipliers), -slope * self.weights

        found = minimize_array(
            objective, start / self.weights, 5000, gtol=1e-12, ftol=0.0, limits=(0.0, 1.0), warn=False
        )
        return found.at * self.weights

    def solve(self, max_iter: int, tol: float) -> tuple[Array, float, int]:
        """Bisect for the γ at which dissimilar pairs have ν of their weight: the matrix, γ, and the number of steps."""
        least = self.nu * float(self.weights[self.dissimilar].sum())
        low, high = 0.0, 1.0
        below = self.at_margin(low, 0.5 * self.weights)
        if below[self.dissimilar].sum() >= least:
            return self.matrix(below), self.margin(self.gradient(self.matrix(below))), 0
        above = self.at_margin(high, below)
        matrix, gap = self.matrix(above), np.inf
        margin = self.margin(self.gradient(matrix))
        for step in range(max_iter):
            missing, excess = least - below[self.dissimilar].sum(), above[self.dissimilar].sum() - least
            if excess < 0.0:
                low, high, below = high, 2.0 * high, above
                above = self.at_margin(high, above)
                continue
            mixed = below + (above - below) * missing / max(missing + excess, np.finfo(np.float64).tiny)
            matrix = self.matrix(mixed)
            gap, margin = self.gap(mixed, matrix)
            if gap <= tol:
                return matrix, margin, step + 1
            middle = 0.5 * (low + high)
            between = self.at_margin(middle, mixed)
            if between[self.dissimilar].sum() >= least:
                high, above = middle, between
            else:
                low, below = middle, between
        warn_not_converged(max_iter, f"the duality gap is {gap:.1e}, more than {tol:.1e}", "steps")
        return matrix, margin, max_iter
