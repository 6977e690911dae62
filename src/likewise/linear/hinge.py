"""An interior-point method for hinge losses of a non-negative vector: linear and quadratic programs in few steps."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from likewise.linear.metric import Array

STEPS = 200
"""The maximum number of steps; a few dozen suffice."""

DROPS = 100
"""The number of programs of `solve_columns` after which unused columns are kept, which prevents endless cycles."""


@dataclass(frozen=True)
class HingeProgram:
    r"""Minimize $\tfrac q2\lVert w\rVert^2+c\sum_bw_b+C\sum_t[1-(\Delta w)_t]_+$ over w ≥ 0.

    Args:
        rows: Δ, one row for each hinge, ``(T, B)``.
        quadratic: q ≥ 0.
        linear: c ≥ 0; q or c must be positive.
        weight: C > 0.
    """

    rows: Array
    quadratic: float
    linear: float
    weight: float

    def value(self, w: Array) -> float:
        """The objective."""
        hinges = np.maximum(1.0 - self.rows @ w, 0.0)
        return float(0.5 * self.quadratic * w @ w + self.linear * w.sum() + self.weight * hinges.sum())

    def bound(self, multipliers: Array) -> float:
        """A lower bound of the objective: its dual at the multipliers of the hinges, which are made feasible first."""
        pull = self.rows.T @ multipliers
        if self.quadratic > 0.0:
            excess = np.maximum(pull - self.linear, 0.0)
            return float(multipliers.sum() - 0.5 * excess @ excess / self.quadratic)
        largest = float(pull.max(initial=0.0))
        return float(multipliers.sum() * min(1.0, self.linear / largest if largest > 0.0 else 1.0))

    def gap(self, w: Array, multipliers: Array) -> float:
        """The duality gap, relative to the objective where that is above one."""
        value = self.value(w)
        return (value - self.bound(multipliers)) / max(1.0, abs(value))


@dataclass(frozen=True)
class _Point:
    """Variables and their multipliers, all positive: w ≥ 0 (z), ξ ≥ 0 (μ) and Δw + ξ − 1 = s ≥ 0 (α)."""

    w: Array
    z: Array
    xi: Array
    mu: Array
    s: Array
    alpha: Array

    def complementarity(self) -> float:
        total = self.w @ self.z + self.xi @ self.mu + self.s @ self.alpha
        return float(total / (len(self.w) + 2 * len(self.xi)))

    def moved(self, step: _Point, primal: float, dual: float) -> _Point:
        return _Point(
            self.w + primal * step.w,
            self.z + dual * step.z,
            self.xi + primal * step.xi,
            self.mu + dual * step.mu,
            self.s + primal * step.s,
            self.alpha + dual * step.alpha,
        )


def solve_hinge(program: HingeProgram, tol: float) -> tuple[Array, Array, int]:
    """Minimize a hinge program to a relative duality gap.

    Mehrotra 1992: a predictor and a corrector from one factorization of a matrix ``(B, B)`` per step.

    Returns:
        The minimizer w, the multipliers of the hinges, and the number of steps.

    Examples:
        >>> w, _, _ = solve_hinge(HingeProgram(np.array([[2.0, -1.0]]), 1.0, 0.0, 10.0), 1e-9)
        >>> w.round(6)
        array([0.5, 0. ])
    """
    scale = np.sqrt((program.rows**2).mean(axis=0))
    scale[scale == 0.0] = 1.0
    rows = program.rows / scale
    quadratic, linear = program.quadratic / scale**2, program.linear / scale
    point = _start(rows, program.weight)
    taken = 0
    while taken < STEPS:
        step = _step(rows, quadratic, linear, program.weight, point)
        if step is None:
            break
        taken += 1
        primal = min(_length(point.w, step.w), _length(point.xi, step.xi), _length(point.s, step.s))
        dual = min(_length(point.z, step.z), _length(point.mu, step.mu), _length(point.alpha, step.alpha))
        if program.quadratic > 0.0:
            primal = dual = min(primal, dual)
        point = point.moved(step, primal, dual)
        gap = program.gap(point.w / scale, np.clip(point.alpha, 0.0, program.weight))
        if gap <= tol or max(primal, dual) < 1e-10:
            break
    w = np.where(point.w > point.z * max(1e-8, tol), point.w, 0.0)  # weights that the optimum does not use
    w = w if program.value(w / scale) <= program.value(point.w / scale) + 1e-12 else point.w
    return w / scale, np.clip(point.alpha, 0.0, program.weight), taken


def _start(rows: Array, weight: float) -> _Point:
    count, size = rows.shape
    w = np.full(size, 1.0 / size)
    half = np.full(count, 0.5 * weight)
    xi = np.maximum(1.0 - rows @ w, 0.0) + 1.0
    return _Point(w, np.full(size, max(weight, 1e-3)), xi, half, np.maximum(rows @ w + xi - 1.0, 1.0), half.copy())


def _length(now: Array, step: Array) -> float:
    """The longest step, up to one, that keeps numbers positive."""
    falling = step < 0.0
    return float(min(1.0, 0.995 * np.min(-now[falling] / step[falling], initial=np.inf)))


def _step(rows: Array, quadratic: Array, linear: Array, weight: float, at: _Point) -> _Point | None:
    """The predictor-corrector step, or ``None`` where the matrix cannot be factorized."""
    pull = at.s + at.alpha * at.xi / at.mu
    diagonal = at.alpha / pull
    matrix = (rows.T * diagonal) @ rows
    matrix[np.diag_indices_from(matrix)] += quadratic + at.z / at.w
    try:
        factor = cho_factor(matrix, overwrite_a=True, check_finite=False)
    except np.linalg.LinAlgError:
        return None
    r_dual = quadratic * at.w + linear - rows.T @ at.alpha - at.z
    r_primal = rows @ at.w + at.xi - 1.0 - at.s
    r_weight = weight - at.alpha - at.mu

    def solve(r_w: Array, r_xi: Array, r_s: Array) -> _Point:
        rest = (r_xi - at.xi * r_weight) / at.mu
        shift = (r_s - at.alpha * (r_primal + rest)) / pull
        dw = cho_solve(factor, rows.T @ shift + r_w / at.w - r_dual, check_finite=False)
        change = rows @ dw
        d_alpha = shift - diagonal * change
        d_xi = rest + at.xi / at.mu * d_alpha
        return _Point(dw, (r_w - at.z * dw) / at.w, d_xi, r_weight - d_alpha, change + d_xi + r_primal, d_alpha)

    guess = solve(-at.w * at.z, -at.xi * at.mu, -at.s * at.alpha)
    primal = min(_length(at.w, guess.w), _length(at.xi, guess.xi), _length(at.s, guess.s))
    dual = min(_length(at.z, guess.z), _length(at.mu, guess.mu), _length(at.alpha, guess.alpha))
    now = at.complementarity()
    target = now * (at.moved(guess, primal, dual).complementarity() / now) ** 3
    return solve(
        target - at.w * at.z - guess.w * guess.z,
        target - at.xi * at.mu - guess.xi * guess.mu,
        target - at.s * at.alpha - guess.s * guess.alpha,
    )


def solve_columns(program: HingeProgram, tol: float, first: int) -> tuple[Array, int]:
    """Minimize a linear hinge program with many columns: some of its columns and hinges at a time.

    Columns are added by their reduced costs, hinges if they are violated.  Each intermediate program is solved to a
    tenth of the duality gap of the whole program, which bounds the distance to its minimum at any time.

    Args:
        program: the program; its quadratic part must be zero.
        tol: the relative duality gap.
        first: the number of columns and hinges at the start, and the maximum number added at once.

    Returns:
        The minimizer, and the number of steps of all programs that were solved.

    Examples:
        >>> program = HingeProgram(np.array([[1.0, 3.0, 2.0]]), 0.0, 0.1, 1.0)
        >>> solve_columns(program, 1e-9, 1)[0].round(6)
        array([0.      , 0.333333, 0.      ])
    """
    count, size = program.rows.shape
    columns = _largest(program.rows.sum(axis=0), first)
    hinges = _largest(-program.rows[:, columns].sum(axis=1), 2 * first)
    w, multipliers, total, gap = np.zeros(size), np.zeros(count), 0, 1.0
    rounds = 0
    while True:
        rounds += 1
        part = program.rows[:, columns]
        inner = 0.1 * max(tol, min(gap, 0.1))
        small, found, steps = solve_hinge(replace(program, rows=part[hinges]), inner)
        w[:], multipliers[:] = 0.0, 0.0
        w[columns], multipliers[hinges] = small, found
        total += steps
        slack = 1.0 - part @ small
        pull = program.rows.T @ multipliers
        largest = max(float(pull.max(initial=0.0)), program.linear)
        value = program.linear * float(small.sum()) + program.weight * float(np.maximum(slack, 0.0).sum())
        gap = (value - float(multipliers.sum()) * program.linear / largest) / max(1.0, value)
        pull[columns], slack[hinges] = -np.inf, -np.inf
        more, violated = _largest(pull, first), _largest(slack, 2 * first)
        more, violated = more[pull[more] > program.linear], violated[slack[violated] > 0.0]
        is_whole = not len(more) and not len(violated)
        if gap <= tol or (is_whole and inner <= 0.1 * tol):
            return w, total
        if is_whole:
            gap = tol  # solve the same program to the end
        if len(columns) > 4 * first and rounds < DROPS:
            columns = columns[small > 0.0]
        columns, hinges = np.sort(np.concatenate([columns, more])), np.sort(np.concatenate([hinges, violated]))


def _largest(values: Array, count: int) -> NDArray[np.int64]:
    """The indices of the largest values, in order."""
    if count < len(values):
        return np.sort(np.argpartition(-values, count - 1)[:count])
    return np.arange(len(values))
