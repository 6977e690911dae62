"""Charts with one row per run or method: a number with its interval, or single values with their mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite

from likewise.report.axes import Axis, Tick, fit_axis
from likewise.report.charts import Point
from likewise.report.words import percent


@dataclass(frozen=True)
class Entry:
    """The data of one row of a chart.

    Args:
        name: the name of the run or method.
        color: the number of the color.
        mean: the mean, as a fraction; ``None`` if there is none.
        low: the lower limit of the interval; ``None`` without an interval.
        high: the upper limit of the interval.
        note: a text after the number, if there is no interval.
        points: single values: a fraction, a tooltip, and whether the point is hollow.
        is_baseline: whether the row is a baseline.

    Examples:
        >>> Entry("triplet", 0, 0.51).low is None
        True
    """

    name: str
    color: int
    mean: float | None
    low: float | None = None
    high: float | None = None
    note: str = ""
    points: tuple[tuple[float, str, bool], ...] = ()
    is_baseline: bool = False


@dataclass(frozen=True)
class ChartRow:
    """The geometry of one row: positions in percent of the width; ``None`` if there is nothing to draw.

    Examples:
        >>> row_chart("R@1", [Entry("a", 0, 0.5, 0.4, 0.6)]).rows[0].small
        '40.0–60.0'
    """

    entry: Entry
    text: str
    small: str
    at: float | None
    low: float | None
    high: float | None
    points: tuple[Point, ...]


@dataclass(frozen=True)
class RowChart:
    """A chart with one row per run or method: a number with its interval, or with the values of which it is the mean.

    Args:
        title: the title.
        note: a text after the title.
        rows: the runs or methods.
        ticks: the ticks of the axis.
        kind: ``"bars"``, ``"intervals"`` or ``"points"``.
        filter: the filter that shows its runs in the complete table of a study.

    Examples:
        >>> chart = row_chart("R@1", [Entry("a", 0, 0.5, 0.4, 0.6), Entry("b", 1, 0.45)])
        >>> chart.kind, chart.ticks[0].text, chart.ticks[-1].text, chart.rows[0].at
        ('intervals', '40', '60', 50.0)
    """

    title: str
    note: str
    rows: tuple[ChartRow, ...]
    ticks: tuple[Tick, ...]
    kind: str
    filter: str = ""


def row_chart(
    title: str,
    entries: Sequence[Entry],
    *,
    note: str = "",
    kind: str = "intervals",
    values: Sequence[float] = (),
    filter: str = "",
) -> RowChart:
    """Create a chart with one row per entry and a common axis.

    Args:
        title: the title.
        entries: the rows.
        note: a text after the title.
        kind: ``"bars"`` have an axis from 0 to 100 percent, because a truncated axis exaggerates differences;
            ``"intervals"`` and ``"points"`` have an axis that fits the values.
        values: additional values that the axis covers, so that several charts can have the same axis.
        filter: the filter that shows its runs in the complete table of a study.

    Examples:
        >>> row_chart("R@1", [Entry("a", 0, 0.61)], kind="bars").rows[0].at
        61.0
    """
    axis = Axis(0.0, 1.0, 0.0, 100.0, ticks=tuple(Tick(float(x), str(x)) for x in (0, 25, 50, 75, 100)))
    if kind != "bars":
        own = [x for each in entries for x in (each.mean, each.low, each.high, *(v for v, _, _ in each.points))]
        known = [min(max(x, 0.0), 1.0) for x in (*own, *values) if x is not None and isfinite(x)]
        axis = fit_axis(known or [0.0, 1.0], 0.0, 100.0, about=4, factor=100.0)
        if axis.low < 0.0 or axis.high > 1.0:
            axis = fit_axis([max(axis.low, 0.0), min(axis.high, 1.0)], 0.0, 100.0, about=4, factor=100.0)
    return RowChart(title, note, tuple(_chart_row(each, axis) for each in entries), axis.ticks, kind, filter)


def _chart_row(entry: Entry, axis: Axis) -> ChartRow:
    at = axis.at(entry.mean) if entry.mean is not None else None
    low = high = None
    small = entry.note
    if entry.low is not None and entry.high is not None and isfinite(entry.low) and isfinite(entry.high):
        low, high, small = axis.at(entry.low), axis.at(entry.high), f"{percent(entry.low)}–{percent(entry.high)}"
    points = tuple(Point(axis.at(x), 50.0, text, "hollow" if hollow else "dot") for x, text, hollow in entry.points)
    return ChartRow(entry, percent(entry.mean), small, at, low, high, points)
