"""Confidence intervals: over repeats of a training, and over the queries of a test set."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import cos, inf, pi, sin, sqrt, tan
from statistics import NormalDist

import numpy as np
import torch
from torch import Tensor

from likewise.formula import whole_number
from likewise.metrics.arrays import Array, as_tensor, check_labels
from likewise.metrics.chunks import MEMORY, fit_rows, split_rows


@dataclass(frozen=True)
class Interval:
    """A number and its confidence interval.

    Args:
        mean: the mean of the values, or another statistic of them.
        low: the lower end of the interval.
        high: the upper end of the interval.
        confidence: the fraction of such intervals that contain the true value, if the assumptions hold.
        count: the number of independent observations: repeats, queries or classes.

    Examples:
        >>> print(Interval(0.625, 0.6, 0.65, 0.95, 10))
        0.625 [0.6, 0.65]
    """

    mean: float
    low: float
    high: float
    confidence: float
    count: int

    def __str__(self) -> str:
        return f"{self.mean:.4g} [{self.low:.4g}, {self.high:.4g}]"


def t_interval(values: Sequence[float] | Array, confidence: float = 0.95) -> Interval:
    r"""Compute the mean over repeats and its Student-t confidence interval.

    $\bar v \pm t_{n-1} \, s / \sqrt n$, where s is the standard deviation with n − 1 and t the quantile of Student's
    distribution.  The interval assumes independent normal values, which the scores of runs with different seeds
    approximate.  It covers other seeds, not other test sets; for those see `bootstrap`.

    The interval of a single value is infinite, because one value has no spread.

    Args:
        values: one number per repeat.
        confidence: between 0 and 1.

    Returns:
        An `Interval` with the mean, the ends of the interval, and the number of repeats.

    Examples:
        >>> interval = t_interval([0.61, 0.63, 0.62, 0.64])
        >>> round(interval.mean, 3), round(interval.low, 4), round(interval.high, 4)
        (0.625, 0.6045, 0.6455)
    """
    numbers = _check_numbers(values)
    _check_confidence(confidence)
    count, mean = len(numbers), float(numbers.mean())
    if count == 1:
        return Interval(mean, -inf, inf, confidence, 1)
    half = t_quantile(confidence, count - 1) * float(numbers.std()) / sqrt(count)
    return Interval(mean, mean - half, mean + half, confidence, count)


def bootstrap(
    values: Sequence[float] | Array,
    statistic: Callable[[Tensor], Tensor] | None = None,
    *,
    samples: int = 1000,
    confidence: float = 0.95,
    seed: int = 0,
    groups: Array | None = None,
    memory: int = MEMORY,
) -> Interval:
    """Compute a statistic over queries and its percentile bootstrap interval.

    The queries are drawn with replacement ``samples`` times; the interval is between the quantiles of the statistics of
    the draws (Efron 1979; with few queries it is somewhat too narrow).  It covers other test sets of the same kind with
    the same embedding, not other training runs; for those see `t_interval`.

    Queries of one class share their positives and their difficulty, so they are not independent, and an interval over
    single queries is too narrow.  With ``groups=labels`` whole classes are drawn instead, each with all its queries.

    To compare two methods on the same queries, use the interval of the *difference* of their values, in which the
    difficulty of a query cancels: the methods differ if the interval does not contain zero.

    The interval of a single query or a single group is infinite, because one value has no spread.

    Args:
        values: one number per query, such as ``retrieval(..., reduce="none")["MAP@R"]``.
        statistic: a function from ``(…, queries)`` to ``(…)``; the mean by default.
        samples: the number of draws.
        confidence: between 0 and 1.
        seed: the seed of the draws.
        groups: the class of each query, integers ``(queries,)``.
        memory: bytes that the draws may take at once.

    Returns:
        An `Interval` with the statistic of all queries, the ends of the interval, and the number of queries or groups.

    Examples:
        >>> import torch
        >>> ours, theirs = torch.linspace(0.5, 1.0, 100), torch.linspace(0.4, 1.0, 100)
        >>> interval = bootstrap(ours - theirs)
        >>> round(interval.mean, 3), interval.low > 0.0
        (0.05, True)
        >>> labels = torch.arange(100) // 10
        >>> bootstrap(ours, groups=labels).count
        10
    """
    numbers = _check_numbers(values)
    _check_confidence(confidence)
    whole_number("samples", samples, 1)
    whole_number("memory", memory, 1)
    generator = torch.Generator("cpu").manual_seed(whole_number("seed", seed, 0))
    value = float(_apply(statistic or _mean, numbers[None])[0])
    if groups is None:
        count, draws = len(numbers), _draw_queries(numbers, statistic or _mean, samples, generator, memory)
    else:
        codes = check_labels("groups", groups, len(numbers), None, "values").cpu()
        codes = torch.unique(codes, return_inverse=True)[1]
        count = int(codes.max()) + 1
        draws = _draw_groups(numbers, codes, statistic, samples, generator, memory)
    if count == 1:
        return Interval(value, -inf, inf, confidence, 1)
    low, high = np.quantile(torch.cat(list(draws)).numpy(), [(1.0 - confidence) / 2.0, (1.0 + confidence) / 2.0])
    return Interval(value, float(low), float(high), confidence, count)


def _mean(values: Tensor) -> Tensor:
    return values.mean(dim=-1)


def _apply(statistic: Callable[[Tensor], Tensor], values: Tensor) -> Tensor:
    result = statistic(values)
    if not isinstance(result, Tensor) or result.shape != values.shape[:-1]:
        what = f"the shape {tuple(result.shape)}" if isinstance(result, Tensor) else f"a {type(result).__name__}"
        raise ValueError(
            f"statistic must take values of shape {tuple(values.shape)} to shape "
            f"{tuple(values.shape[:-1])}, but it gave {what}"
        )
    return result.double()


def _split_samples(samples: int, width: int, memory: int) -> Iterator[int]:
    """Yield the number of draws per chunk; an entry takes four numbers of eight bytes: index, value and temporaries."""
    return (chunk.stop - chunk.start for chunk in split_rows(samples, fit_rows(memory, per_row=32 * width)))


def _draw_queries(
    values: Tensor, statistic: Callable[[Tensor], Tensor], samples: int, generator: torch.Generator, memory: int
) -> Iterator[Tensor]:
    for count in _split_samples(samples, len(values), memory):
        index = torch.randint(len(values), (count, len(values)), generator=generator, device="cpu")
        yield _apply(statistic, values[index])


def _draw_groups(
    values: Tensor,
    codes: Tensor,
    statistic: Callable[[Tensor], Tensor] | None,
    samples: int,
    generator: torch.Generator,
    memory: int,
) -> Iterator[Tensor]:
    sizes = codes.bincount()
    grouped = values[codes.argsort(stable=True)]
    starts = sizes.cumsum(0) - sizes
    sums = torch.zeros(len(sizes), dtype=torch.float64, device="cpu").index_add_(0, codes, values)
    for count in _split_samples(samples, len(sizes), memory):
        draws = torch.randint(len(sizes), (count, len(sizes)), generator=generator, device="cpu")
        if statistic is None:
            yield sums[draws].sum(dim=1) / sizes[draws].sum(dim=1)
            continue
        for groups in draws:  # draws differ in length
            lengths = sizes[groups]
            shift = (starts[groups] - lengths.cumsum(0) + lengths).repeat_interleave(lengths)
            yield _apply(statistic, grouped[torch.arange(len(shift), device="cpu") + shift][None])


def t_quantile(confidence: float, degrees: int) -> float:
    """The t with P(|T| ≤ t) = confidence, where T has Student's distribution with integer degrees of freedom.

    Examples:
        >>> round(t_quantile(0.95, 9), 4)
        2.2622
    """
    _check_confidence(confidence)
    whole_number("degrees", degrees, 1)
    if degrees > 1000:
        return _large_t_quantile(confidence, degrees)
    low, high = 0.0, pi / 2.0
    while True:  # bisect until there is no float between the ends
        middle = (low + high) / 2.0
        if not low < middle < high:
            return sqrt(degrees) * tan(low)
        low, high = (middle, high) if _central_probability(middle, degrees) < confidence else (low, middle)


def _central_probability(angle: float, degrees: int) -> float:
    """P(|T| ≤ t) with t = √ν tan θ: a finite sum of powers of cos θ (Abramowitz and Stegun 26.7.3 and 26.7.4)."""
    square = cos(angle) ** 2
    odd = degrees % 2
    term = cos(angle) if odd else 1.0
    total = 0.0
    for index in range(1 + odd, degrees, 2):
        total += term
        term *= square * index / (index + 1)
    return 2.0 / pi * (angle + sin(angle) * total) if odd else sin(angle) * total


def _large_t_quantile(confidence: float, degrees: int) -> float:
    """The expansion of the quantile around the normal one in powers of 1/ν (Abramowitz and Stegun 26.7.5)."""
    z = NormalDist().inv_cdf((1.0 + confidence) / 2.0)
    terms = (
        z,
        (z**3 + z) / 4.0,
        (5.0 * z**5 + 16.0 * z**3 + 3.0 * z) / 96.0,
        (3.0 * z**7 + 19.0 * z**5 + 17.0 * z**3 - 15.0 * z) / 384.0,
        (79.0 * z**9 + 776.0 * z**7 + 1482.0 * z**5 - 1920.0 * z**3 - 945.0 * z) / 92160.0,
    )
    return float(sum(term / degrees**power for power, term in enumerate(terms)))


def _check_numbers(values: Sequence[float] | Array) -> Tensor:
    tensor = as_tensor("values", values)
    try:
        numbers = torch.as_tensor(tensor, dtype=torch.float64, device="cpu").detach()
    except (TypeError, ValueError, RuntimeError):
        raise TypeError(f"values must be numbers, but it is {tensor!r}") from None
    if numbers.ndim != 1 or not len(numbers):
        raise ValueError(f"values must be one or more numbers in a row, but the shape is {tuple(numbers.shape)}")
    not_finite = (~numbers.isfinite()).nonzero()
    if len(not_finite):
        raise ValueError(f"values must be finite, but entry {int(not_finite[0])} is {float(numbers[not_finite[0]])}")
    return numbers


def _check_confidence(confidence: float) -> None:
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence must be between 0 and 1, but it is {confidence}")
