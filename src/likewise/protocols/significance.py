"""Significance of differences: the paired t-test, the sign-flip test, and Holm's correction."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

import numpy as np

from likewise.metrics import t_interval

ENUMERATED = 16
"""Up to this number of pairs all 65,536 sign choices are enumerated; beyond it, as many are drawn at random."""


def paired_p(differences: Sequence[float]) -> float | None:
    """The p-value of the paired t-test, two-sided; ``None`` for a single difference.

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
    from scipy import special  # of the extra likewise[study]

    return 2.0 * float(special.stdtr(degrees, -abs(interval.mean / error)))


def flip_p(differences: Sequence[float], *, seed: int = 0) -> float:
    """The p-value of the sign-flip test: the fraction of random signs whose mean is at least as far from zero, two-sided.

    Up to 16 differences all choices of signs are looked at; beyond, 65,536 are drawn, and the observed one counts
    among them (Phipson and Smyth 2010).

    Args:
        differences: one for each pair.
        seed: of the draws.

    Examples:
        >>> flip_p([0.01, 0.02, 0.015, 0.01, 0.03])
        0.0625
    """
    values = np.asarray(differences, dtype=np.float64)
    observed = abs(values.sum()) - 1e-12 * np.abs(values).sum()  # sums in another order round otherwise
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
