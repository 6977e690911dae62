"""The geometry of charts with two axes: lines, areas and points; a template draws them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import ceil, isfinite
from typing import Any

from likewise.report.axes import LARGE, PLAIN, SMALL, Axis, Frame, Tick, fit_axis, is_number
from likewise.report.words import short

COLORS = 8
POINTS = 240
"""The maximum number of points of a line; longer lines are averaged."""


@dataclass(frozen=True)
class Point:
    """A marked point.

    Args:
        x: the horizontal position.
        y: the vertical position.
        title: the tooltip.
        kind: ``"dot"``, ``"best"`` (with a ring), ``"hollow"`` or ``"cross"``.

    Examples:
        >>> Point(46.0, 12.0).kind
        'dot'
    """

    x: float
    y: float
    title: str = ""
    kind: str = "dot"


@dataclass(frozen=True)
class Series:
    """A line, an area or points in one color.

    Args:
        name: the name in the legend.
        color: the number of the color.
        path: an SVG path.
        kind: the kind of the path: ``"line"``, ``"line dash"``, ``"line faint"`` or ``"area"``.
        points: marked points.
        values: ``[x, y, text of x, text of y]`` for each point, for the readout.

    Examples:
        >>> Series("loss", 0, "M0 0").kind
        'line'
    """

    name: str
    color: int
    path: str = ""
    kind: str = "line"
    points: tuple[Point, ...] = ()
    values: tuple[tuple[float, float, str, str], ...] = ()


@dataclass(frozen=True)
class Chart:
    """A chart with two axes.

    Args:
        title: the title.
        note: a text after the title.
        summary: a sentence for screen readers.
        series: the lines, areas and points.
        x_ticks: ticks of the x axis.
        y_ticks: ticks of the y axis.
        frame: the size.
        x_name: the name of the x axis, for the readout.
        marks: vertical lines with a text.
        legend: whether there is a legend.

    Examples:
        >>> chart = line_chart("Loss", [Line("loss", [0.0, 2.0], [4.0, 1.0])])
        >>> chart.summary, [tick.text for tick in chart.x_ticks]
        ('Loss by epoch. loss: from 4 to 1.', ['0', '0.5', '1', '1.5', '2'])
    """

    title: str
    note: str
    summary: str
    series: tuple[Series, ...]
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...] = ()
    frame: Frame = LARGE
    x_name: str = ""
    marks: tuple[Tick, ...] = ()
    legend: bool = False


@dataclass(frozen=True)
class Line:
    """The data of a line for `line_chart`.

    Args:
        name: the name in the legend.
        xs: x values, ascending.
        ys: y values.
        color: the number of the color.
        dash: whether the line is dashed.
        dots: whether each point is marked.
        faint: whether the line is faint, so that its points stand out.

    Examples:
        >>> Line("loss", [0.0, 1.0], [2.0, 1.0]).color
        0
    """

    name: str
    xs: Sequence[float]
    ys: Sequence[float]
    color: int = 0
    dash: bool = False
    dots: bool = False
    faint: bool = False


def line_chart(
    title: str,
    lines: Sequence[Line],
    *,
    note: str = "",
    x_name: str = "epoch",
    log: bool = False,
    as_percent: bool = False,
    separate_scales: bool = False,
    within: tuple[float, float] | None = None,
    marks: Sequence[tuple[float, str]] = (),
) -> Chart | None:
    """Create a chart of lines; ``None`` if there is nothing to draw.

    Args:
        title: the title.
        lines: the lines; points that are not finite are skipped.
        note: a text after the title.
        x_name: the name of the x axis.
        log: use a logarithmic y axis; points that are not positive are skipped.
        as_percent: show fractions in percent.
        separate_scales: scale each line separately, from its smallest to its largest value.
        within: a range that the y axis must cover.
        marks: positions on the x axis with a text.

    Examples:
        >>> line_chart("Loss", []) is None
        True
    """
    drawable = [thin(_drawable(line, log)) for line in lines]
    drawable = [line for line in drawable if line.xs]
    if not drawable:
        return None
    xs = [0.0, *(x for line in drawable for x in line.xs), *(x for x, _ in marks)]
    x_axis = fit_axis(xs if max(xs) > min(xs) else [*xs, 1.0], LARGE.left, LARGE.right, about=6, round_ends=False)
    ys = [y for line in drawable for y in line.ys]
    y_axis = _whole_height(ys)
    if not separate_scales:
        factor = 100.0 if as_percent else 1.0
        y_axis = fit_axis([*ys, *(within or ())], LARGE.bottom, LARGE.top, about=5, log=log, factor=factor)
    series = [
        _line_series(line, x_axis, _whole_height(line.ys) if separate_scales else y_axis, as_percent)
        for line in drawable
    ]
    ends = [f"{each.name}: from {each.values[0][3]} to {each.values[-1][3]}." for each in series]
    return Chart(
        title,
        note,
        " ".join([f"{title} by {x_name}.", *ends]),
        tuple(series),
        x_axis.ticks,
        y_axis.ticks,
        x_name=x_name,
        marks=tuple(Tick(x_axis.at(x), text) for x, text in marks),
        legend=len(series) > 1,
    )


def _whole_height(ys: Sequence[float]) -> Axis:
    low, high = min(ys), max(ys) if max(ys) > min(ys) else min(ys) + 1.0
    return Axis(low, high, LARGE.bottom, LARGE.top, ticks=(Tick(LARGE.bottom, "low"), Tick(LARGE.top, "high")))


def _line_series(line: Line, x_axis: Axis, y_axis: Axis, as_percent: bool) -> Series:
    values = tuple(
        (x_axis.at(x), y_axis.at(y), short(x), f"{100.0 * y:.1f}%" if as_percent else short(y))
        for x, y in zip(line.xs, line.ys, strict=True)
    )
    path = "M" + " ".join(f"{x:g},{y:g}" for x, y, _, _ in values)
    points = tuple(Point(x, y) for x, y, _, _ in values) if line.dots else ()
    kind = f"line{' dash' if line.dash else ''}{' faint' if line.faint else ''}"
    return Series(line.name, line.color, path, kind, points, values)


def _drawable(line: Line, log: bool) -> Line:
    points = [(x, y) for x, y in zip(line.xs, line.ys, strict=True) if isfinite(y) and (y > 0.0 or not log)]
    return replace(line, xs=[x for x, _ in points], ys=[y for _, y in points])


def thin(line: Line, most: int = POINTS) -> Line:
    """Reduce a line to at most ``most`` points, each the mean of the same number of neighbors, except the last.

    Examples:
        >>> thin(Line("loss", [0.0, 1.0, 2.0, 3.0], [4.0, 2.0, 1.0, 1.0]), 2).ys
        [3.0, 1.0]
    """
    size = ceil(len(line.xs) / most)
    if size <= 1:
        return line
    xs, ys = (
        [sum(values[at : at + size]) / len(values[at : at + size]) for at in range(0, len(values), size)]
        for values in (line.xs, line.ys)
    )
    return replace(line, xs=xs, ys=ys)


def histogram(
    title: str,
    edges: Sequence[float],
    counts: Sequence[tuple[str, int, Sequence[int]]],
    *,
    x_name: str,
    note: str = "",
    summary: str = "",
) -> Chart:
    """Create a chart of histograms with equal area, without empty bins at both ends.

    Args:
        title: the title.
        edges: the edges of the bins, one more than there are bins.
        counts: name, color and counts of each histogram; the last one is in front.
        x_name: the name of the x axis.
        note: a text after the title.
        summary: a sentence for screen readers.

    Examples:
        >>> chart = histogram("s", [-1.0, 0.0, 1.0], [("a", 0, [2, 2]), ("b", 1, [0, 4])], x_name="cosine")
        >>> [tick.text for tick in chart.x_ticks], [each.values[1][3] for each in chart.series]
        (['-1', '-0.5', '0', '0.5', '1'], ['50.0%', '100.0%'])
    """
    filled = [at for at in range(len(edges) - 1) if any(each[at] for _, _, each in counts)]
    first, last = (filled[0], filled[-1]) if filled else (0, len(edges) - 2)
    edges = edges[first : last + 2]
    shares = [[n / max(1, sum(each)) for n in each[first : last + 1]] for _, _, each in counts]
    x_axis = fit_axis(edges, PLAIN.left, PLAIN.right, about=5, round_ends=False)
    y_axis = Axis(0.0, max(1e-12, *(share for each in shares for share in each)), PLAIN.bottom, PLAIN.top)
    drawn = []
    for (name, color, _), heights in zip(counts, shares, strict=True):
        path = f"M{x_axis.at(edges[0]):g},{PLAIN.bottom}"
        values = []
        for share, low, high in zip(heights, edges[:-1], edges[1:], strict=True):
            path += f" V{y_axis.at(share):g} H{x_axis.at(high):g}"
            middle = x_axis.at((low + high) / 2.0)
            values.append((middle, y_axis.at(share), f"{short(low)} to {short(high)}", f"{100.0 * share:.1f}%"))
        drawn.append(Series(name, color, f"{path} V{PLAIN.bottom} Z", "area", (), tuple(values)))
    base = (Tick(PLAIN.bottom, ""),)
    return Chart(title, note, summary, tuple(drawn), x_axis.ticks, base, PLAIN, x_name, legend=True)


def scatter(title: str, points: Sequence[tuple[Any, float | None, str]], *, color: int, summary: str) -> Chart:
    """Create a scatter plot of values by a setting; a ring marks the best, and crosses at the bottom have no value.

    Args:
        title: the name of the x axis.
        points: the setting (a number or a name), the value as a fraction or ``None``, and a tooltip.
        color: the number of the color.
        summary: a sentence for screen readers.

    Examples:
        >>> chart = scatter("margin", [(0.1, 0.5, ""), (0.2, 0.6, ""), (0.3, None, "")], color=0, summary="")
        >>> [point.kind for point in chart.series[0].points]
        ['dot', 'best', 'cross']
    """
    place, x_ticks, log = _any_axis([x for x, _, _ in points])
    known = [value for _, value, _ in points if value is not None]
    y_axis = fit_axis(known, SMALL.bottom, SMALL.top, about=3, factor=100.0)
    best = max(range(len(points)), key=lambda at: (-1.0 if points[at][1] is None else points[at][1], -at))
    drawn = [
        Point(place(x), SMALL.bottom - 2, text, "cross")
        if value is None
        else Point(place(x), y_axis.at(value), text, "best" if at == best else "dot")
        for at, (x, value, text) in enumerate(points)
    ]
    series = Series("", color, points=tuple(drawn))
    return Chart(title, "logarithmic" if log else "", summary, (series,), x_ticks, y_axis.ticks, SMALL)


def _any_axis(values: Sequence[Any]) -> tuple[Callable[[Any], float], tuple[Tick, ...], bool]:
    """Return positions and ticks: linear, logarithmic for a wide range, or side by side for values that are not numbers."""
    if not all(is_number(value) for value in values):
        names = list(dict.fromkeys(map(str, values)))
        width = (SMALL.right - SMALL.left) / len(names)
        at = {name: round(SMALL.left + width * (number + 0.5), 1) for number, name in enumerate(names)}
        return (lambda value: at[str(value)]), tuple(Tick(place, name) for name, place in at.items()), False
    log = min(values) > 0 and max(values) / min(values) >= 50
    axis = fit_axis(values, SMALL.left + 4, SMALL.right - 4, about=3, log=log, round_ends=False)
    return axis.at, axis.ticks, log
