"""Projected gradients over positive semi-definite matrices."""

from __future__ import annotations

import numpy as np

from likewise.linear.metric import Array, project
from likewise.linear.solver import Objective, check_max_iter, warn_not_converged


def minimize_projected(objective: Objective, start: Array, max_iter: int, tol: float = 1e-8) -> tuple[Array, int]:
    """Minimize over positive semi-definite matrices by spectral projected gradients.

    Birgin, Martínez & Raydan 2000: steps of Barzilai and Borwein's length, projected, that lower the largest of the last ten
    values.

    Args:
        objective: the value and the gradient at a matrix.
        start: the initial matrix, positive semi-definite.
        max_iter: the maximum number of iterations.
        tol: stop if a projected step of length one does not change any entry by more than this fraction of the largest
            one.

    Returns:
        The best matrix, and the number of iterations.

    Examples:
        >>> target = np.diag([1.0, -1.0])
        >>> minimize_projected(lambda A: (float(((A - target) ** 2).sum()), 2.0 * (A - target)), np.eye(2), 50)[
        ...     0
        ... ].round(6)
        array([[1., 0.],
               [0., 0.]])
    """
    now = project(start)
    value, gradient = objective(now)
    best, recent, length = (value, now), [value], 1.0 / max(float(np.abs(gradient).max()), 1e-12)
    for iteration in range(check_max_iter(max_iter)):
        if np.abs(project(now - gradient) - now).max() <= tol * max(1.0, float(np.abs(now).max())):
            return best[1], iteration
        direction = project(now - length * gradient) - now
        slope = float((gradient * direction).sum())
        step = 1.0
        while True:
            after = now + step * direction
            new_value, new_gradient = objective(after)
            if new_value <= max(recent[-10:]) + 1e-4 * step * slope or step < 1e-10:
                break
            step *= 0.5
        change, turn = after - now, new_gradient - gradient
        curvature = float((change * turn).sum())
        length = float(np.clip((change**2).sum() / curvature if curvature > 0.0 else 1e10, 1e-10, 1e10))
        now, value, gradient = after, new_value, new_gradient
        recent.append(value)
        best = min(best, (value, now), key=lambda each: each[0])
    warn_not_converged(max_iter, f"the objective is {best[0]:.6g} and may fall further")
    return best[1], max_iter
