"""How likely a difference is that chance alone makes: paired t, sign flips, and Holm's correction for many of them."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, lgamma, log, sqrt

import numpy as np

from likewise.metrics import t_interval

ENUMERATED = 16
"""Up to so many pairs all choices of signs are looked at, 65,536 of them; beyond, as many are drawn."""


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
    t = interval.mean / error
    return _beta_share(degrees / (degrees + t * t), t * t / (degrees + t * t), degrees / 2.0, 0.5)


def _beta_share(x: float, rest: float, a: float, b: float) -> float:
    """The regularized incomplete beta function, by its continued fraction (Abramowitz and Stegun 26.5.8).

    The two-sided tail of Student's t with ν degrees of freedom is that of ν/(ν + t²), ν/2, 1/2 (26.7.1).
    """
    if x <= 0.0 or rest <= 0.0:  # the rest is 1 − x, which cannot be had from an x that is nearly 1
        return min(max(x, 0.0), 1.0)
    if x > (a + 1.0) / (a + b + 2.0):  # the fraction converges fast on the other side
        return 1.0 - _beta_share(rest, x, b, a)
    front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log(rest)) / a
    upper, lower, total = 1.0, 0.0, 1.0  # Lentz's way: two running ratios and their product
    for index in range(10_000):
        half = index // 2
        if index == 0:
            term = 1.0
        elif index % 2 == 0:
            term = half * (b - half) * x / ((a + 2 * half - 1) * (a + 2 * half))
        else:
            term = -(a + half) * (a + b + half) * x / ((a + 2 * half) * (a + 2 * half + 1))
        lower = 1.0 / _not_zero(1.0 + term * lower)
        upper = _not_zero(1.0 + term / upper)
        total *= upper * lower
        if abs(upper * lower - 1.0) < 1e-15:
            break
    return min(front * (total - 1.0), 1.0)


def _not_zero(value: float) -> float:
    return value if abs(value) > 1e-300 else 1e-300


def flip_p(differences: Sequence[float], *, seed: int = 0) -> float:
    """The p-value of the sign-flip test: how often signs by chance give a mean as far from zero, either way.

    Up to 16 differences all choices of signs are looked at; beyond, 65,536 are drawn, and the one that was found counts
    among them (Phipson and Smyth 2010).

    Args:
        differences: one for each pair.
        seed: of the draws.

    Examples:
        >>> flip_p([0.01, 0.02, 0.015, 0.01, 0.03])
        0.0625
    """
    values = np.asarray(differences, dtype=np.float64)
    found = abs(values.sum()) - 1e-12 * np.abs(values).sum()  # sums in another order round otherwise
    if len(values) <= ENUMERATED:
        sums = np.zeros(1)
        for value in values:
            sums = np.concatenate([sums + value, sums - value])
        return float((np.abs(sums) >= found).mean())
    chance, draws = np.random.default_rng(seed), 2**ENUMERATED
    sums = np.zeros(draws)
    for value in values:
        sums += value * (2 * chance.integers(0, 2, draws) - 1)
    return float(((np.abs(sums) >= found).sum() + 1) / (draws + 1))


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's correction: p-values that hold the chance of any false finding among all of them (Holm 1979).

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
