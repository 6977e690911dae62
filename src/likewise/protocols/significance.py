"""Significance of differences: the paired t-test, the sign-flip test, and Holm's correction."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

import numpy as np

from likewise.metrics import t_interval

ENUMERATED = 16
"""The largest number of pairs for which all sign choices (65,536 for 16 pairs) are enumerated; beyond, 65,536 are drawn."""


def paired_p(differences: Sequence[float]) -> float | None:
    """Compute the p-value of the two-sided paired t-test; ``None`` for a single difference.

    Examples:
        >>> round(paired_p([0.01, 0.02, 0.015]), 4)
        0.0351
    """
    interval = t_interval(differences)
    degrees = interval.count - 1
    if not degrees:
        return None
    values = np.asarray(differences, dtype=np.float64)
    error = float(values.std(ddof=1)) / sqrt(len(values))
    if error == 0.0:
        return 1.0 if interval.mean == 0.0 else 0.0
    from scipy import special  # in the extra likewise[study]

    return 2.0 * float(special.stdtr(degrees, -abs(interval.mean / error)))


def flip_p(differences: Sequence[float], *, seed: int = 0) -> float:
    """Compute the p-value of the two-sided sign-flip test.

    It is the fraction of sign choices whose mean is at least as far from zero as the observed one.  For up to 16
    differences all choices are enumerated; beyond, 65,536 are drawn, and the observed one is added (Phipson and Smyth 2010).

    Args:
        differences: one per pair.
        seed: the seed of the draws.

    Examples:
        >>> flip_p([0.01, 0.02, 0.015, 0.01, 0.03])
        0.0625
    """
    values = np.asarray(differences, dtype=np.float64)
    observed = (
        abs(values.sum()) - 1e-12 * np.abs(values).sum()
    )  # tolerance for rounding, which depends on the order of the sum
    if len(values) <= ENUMERATED:
        sums = np.zeros(1)
        for value in values:
            sums = np.concatenate([sums + value, sums - value])
        return float((np.abs(sums) >= observed).mean())
    rng, draws = np.random.default_rng(seed), 2**ENUMERATED
    sums = np.zeros(draws)
    for value in values:
        sums += value * (2 * rng.integers(0, 2, draws) - 1)
    return float(((np.abs(sums) >= observed).sum() + 1) / (draws + 1))


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's correction: p-values that control the family-wise error rate (Holm 1979).

    Examples:
        >>> holm([0.01, 0.04, 0.03])
        [0.03, 0.06, 0.06]
    """
    for value in p_values:
        if not 0.0 <= value <= 1.0:
            raise ValueError(f"p_values must be between 0 and 1, but one of them is {value}")
    count, highest = len(p_values), 0.0
    adjusted = [0.0] * count
    for place, index in enumerate(sorted(range(count), key=lambda each: p_values[each])):
        highest = max(highest, min(1.0, (count - place) * p_values[index]))
        adjusted[index] = highest
    return adjusted
