"""Axes of charts: limits, ticks, and positions of values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil, floor, isfinite, log10

from likewise.report.words import short


@dataclass(frozen=True)
class Frame:
    """The size of a chart and the area inside its axes.

    Examples:
        >>> LARGE.right - LARGE.left
        322
    """

    width: int
    height: int
    left: int
    right: int
    top: int
    bottom: int


LARGE = Frame(380, 230, 46, 368, 12, 202)
PLAIN = Frame(380, 230, 15, 368, 12, 202)
"""Without a y axis."""
SMALL = Frame(260, 170, 38, 248, 12, 146)


@dataclass(frozen=True)
class Tick:
    """A tick of an axis: its position in the drawing and its label.

    Examples:
        >>> Tick(46.0, "0").text
        '0'
    """

    at: float
    text: str


@dataclass(frozen=True)
class Axis:
    """An axis: its limits, their positions in the drawing, and its ticks.

    Examples:
        >>> axis = fit_axis([0.0, 4.0], 0, 100, about=4)
        >>> axis.at(1.0), [tick.text for tick in axis.ticks]
        (25.0, ['0', '1', '2', '3', '4'])
    """

    low: float
    high: float
    start: float
    stop: float
    log: bool = False
    ticks: tuple[Tick, ...] = ()

    def at(self, value: float) -> float:
        """Return the position of a value; values outside the limits are clipped."""
        low, high, this = (log10(each) if self.log else each for each in (self.low, self.high, value))
        share = min(max((this - low) / (high - low), 0.0), 1.0)
        return round(self.start + share * (self.stop - self.start), 2)


def fit_axis(
    values: Sequence[float],
    start: float,
    stop: float,
    *,
    about: int,
    log: bool = False,
    factor: float = 1.0,
    round_ends: bool = True,
) -> Axis:
    """Create an axis that covers all values.

    Args:
        values: at least one value.
        start: the position of the lower limit.
        stop: the position of the upper limit.
        about: the approximate number of ticks.
        log: whether the axis is logarithmic.
        factor: the factor of the tick labels, such as 100 for fractions in percent.
        round_ends: whether the limits are ticks, or the smallest and the largest value.

    Examples:
        >>> fit_axis([0.002, 0.3], 0, 100, about=5, log=True).ticks[0].text
        '0.001'
    """
    marks, low, high = log_ticks(min(values), max(values)) if log else ticks(min(values), max(values), about)
    if not round_ends and max(values) > min(values):
        low, high = min(values), max(values)
        slack = 1e-9 * (high - low)
        marks = [mark for mark in marks if low - slack <= mark <= high + slack] or [low, high]
    axis = Axis(low, high, start, stop, log)
    return replace(axis, ticks=tuple(Tick(axis.at(mark), short(round(factor * mark, 12))) for mark in marks))


def ticks(low: float, high: float, about: int) -> tuple[list[float], float, float]:
    """Return round numbers for the ticks of an axis, and its limits: the first and the last of them.

    Examples:
        >>> ticks(0.13, 0.87, 4)
        ([0.0, 0.2, 0.4, 0.6, 0.8, 1.0], 0.0, 1.0)
    """
    if high - low < 1e-12 * max(1.0, abs(high)):
        low, high = low - max(abs(low), 1e-3) / 2.0, high + max(abs(high), 1e-3) / 2.0
    rough = (high - low) / about
    power = 10.0 ** floor(log10(rough))
    step = next(power * factor for factor in (1.0, 2.0, 2.5, 5.0, 10.0) if power * factor >= rough * 0.999)
    first, last = floor(low / step + 1e-9), ceil(high / step - 1e-9)
    values = [round(step * number, 12) for number in range(first, last + 1)]
    return values, values[0], values[-1]


def log_ticks(low: float, high: float) -> tuple[list[float], float, float]:
    """Return powers of ten for the ticks of an axis, and its limits.

    Examples:
        >>> log_ticks(0.02, 3.0)
        ([0.01, 0.1, 1.0, 10.0], 0.01, 10.0)
    """
    first, last = floor(log10(low) + 1e-9), ceil(log10(high) - 1e-9)
    last = max(last, first + 1)
    values = [10.0**power for power in range(first, last + 1, ceil((last - first) / 5))]
    return values, 10.0**first, 10.0**last


def is_number(value: object) -> bool:
    """Whether a value is a finite number.

    Examples:
        >>> is_number(0.5), is_number(True), is_number(float("nan")), is_number("1")
        (True, False, False, False)
    """
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
