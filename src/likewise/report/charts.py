"""Charts as numbers: where lines, ticks and bars go.  The template draws them; the style sheet colors them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, isfinite, log10

from likewise.metrics import Interval
from likewise.report.words import percent, short

WIDTH, HEIGHT = 380, 230
LEFT, RIGHT, TOP, BOTTOM = 46, 12, 12, 28
COLORS = 8
POINTS = 240
"""Points of a line; of more, each is the mean of several."""


@dataclass(frozen=True)
class Line:
    """A named line through points.

    Args:
        name: for the legend.
        xs: ascending.
        ys: as many.
        color: the number of its color.
        dash: whether it is dashed.
        dots: whether each point is marked.

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


@dataclass(frozen=True)
class Tick:
    """A mark on an axis: its place in the drawing and its text.

    Examples:
        >>> Tick(46.0, "0").text
        '0'
    """

    at: float
    text: str


@dataclass(frozen=True)
class Drawn:
    """A line as a path of the drawing, and its points for a reader who points at it.

    Args:
        name: for the legend.
        path: of an SVG.
        dots: places ``(x, y)`` of marked points.
        color: the number of its color.
        dash: whether it is dashed.
        points: ``[x, y, what x is, what y is]`` for each point.

    Examples:
        >>> Drawn("loss", "M0 0", [], 0, False, []).name
        'loss'
    """

    name: str
    path: str
    dots: list[tuple[float, float]]
    color: int
    dash: bool
    points: list[list[float | str]]


@dataclass(frozen=True)
class Chart:
    """A chart of lines.

    Args:
        title: above it.
        note: beside the title.
        summary: in words, for those who do not see it.
        lines: what is drawn.
        x_ticks: below.
        y_ticks: at the left.
        marks: vertical lines with a text.

    Examples:
        >>> chart = line_chart("Loss", [Line("loss", [0.0, 2.0], [4.0, 1.0])])
        >>> chart.summary, [tick.text for tick in chart.x_ticks]
        ('loss: from 4 to 1.', ['0', '0.5', '1', '1.5', '2'])
    """

    title: str
    note: str
    summary: str
    lines: list[Drawn]
    x_ticks: list[Tick]
    y_ticks: list[Tick]
    marks: list[Tick]


def line_chart(
    title: str,
    lines: Sequence[Line],
    *,
    note: str = "",
    log: bool = False,
    as_percent: bool = False,
    own_scale: bool = False,
    within: tuple[float, float] | None = None,
    marks: Sequence[tuple[float, str]] = (),
) -> Chart | None:
    """Lay out lines over epochs; ``None`` where there is nothing to draw.

    Args:
        title: above it.
        lines: points that are not finite are left out.
        note: beside the title.
        log: a logarithmic axis; points that are not positive are left out.
        as_percent: values are fractions.
        own_scale: each line fills the height by itself, from its lowest to its highest.
        within: where the y axis goes at least.
        marks: places on the x axis with a text.

    Examples:
        >>> line_chart("Loss", []) is None
        True
    """
    thinned = [thin(_drawable(line, log)) for line in lines]
    thinned = [line for line in thinned if line.xs]
    if not thinned:
        return None
    xs = [x for line in thinned for x in line.xs] + [x for x, _ in marks]
    start, stop = min(0.0, *xs), max(xs) if max(xs) > min(0.0, *xs) else 1.0
    axis = _axis([y for line in thinned for y in line.ys], log, as_percent, own_scale, within)

    def x_at(x: float) -> float:
        return round(LEFT + (x - start) / (stop - start) * (WIDTH - LEFT - RIGHT), 1)

    drawn, said = [], []
    for line in thinned:
        scale = _axis(line.ys, False, as_percent, True, None) if own_scale else axis
        places = [(x_at(x), scale.at(y)) for x, y in zip(line.xs, line.ys, strict=True)]
        path = "M" + " ".join(f"{x:g},{y:g}" for x, y in places)
        values = [f"{100.0 * y:.1f}%" if as_percent else short(y) for y in line.ys]
        points: list[list[float | str]] = [
            [x, y, short(at), value] for (x, y), at, value in zip(places, line.xs, values, strict=True)
        ]
        drawn.append(Drawn(line.name, path, places if line.dots else [], line.color, line.dash, points))
        said.append(f"{line.name}: from {values[0]} to {values[-1]}.")
    return Chart(
        title,
        note,
        " ".join(said),
        drawn,
        [Tick(x_at(x), short(x)) for x in ticks(start, stop, 6)[0] if start <= x <= stop],
        axis.ticks,
        [Tick(x_at(x), text) for x, text in marks],
    )


@dataclass(frozen=True)
class _Axis:
    """A y axis: its ends, whether it is logarithmic, and its ticks."""

    low: float
    high: float
    log: bool
    ticks: list[Tick]

    def at(self, y: float) -> float:
        low, high, value = (log10(each) if self.log else each for each in (self.low, self.high, y))
        return round(HEIGHT - BOTTOM - (value - low) / (high - low) * (HEIGHT - TOP - BOTTOM), 1)


def _axis(
    ys: Sequence[float], log: bool, as_percent: bool, own_scale: bool, within: tuple[float, float] | None
) -> _Axis:
    low, high = min(*ys, *(within or ys)), max(*ys, *(within or ys))
    if own_scale:
        axis = _Axis(low, high if high > low else low + 1.0, False, [])
        return _Axis(axis.low, axis.high, False, [Tick(axis.at(axis.low), "low"), Tick(axis.at(axis.high), "high")])
    values, low, high = _log_ticks(low, high) if log else ticks(low, high, 5)
    axis = _Axis(low, high, log, [])
    factor = 100.0 if as_percent else 1.0
    return _Axis(low, high, log, [Tick(axis.at(value), short(factor * value)) for value in values])


def _drawable(line: Line, log: bool) -> Line:
    kept = [(x, y) for x, y in zip(line.xs, line.ys, strict=True) if isfinite(y) and (y > 0.0 or not log)]
    return Line(line.name, [x for x, _ in kept], [y for _, y in kept], line.color, line.dash, line.dots)


def thin(line: Line, most: int = POINTS) -> Line:
    """A line of at most so many points: means of equally many neighbors each, but for the last.

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
    return Line(line.name, xs, ys, line.color, line.dash, line.dots)


def ticks(low: float, high: float, about: int) -> tuple[list[float], float, float]:
    """Round numbers for an axis, and the ends of the axis: the outermost of them.

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


def _log_ticks(low: float, high: float) -> tuple[list[float], float, float]:
    first, last = floor(log10(low) + 1e-9), ceil(log10(high) - 1e-9)
    last = max(last, first + 1)
    step = ceil((last - first) / 5)
    values = [10.0**power for power in range(first, last + 1, step)]
    return values, 10.0**first, 10.0**last


@dataclass(frozen=True)
class Histogram:
    """Two histograms over cosine similarities, each of area one.

    Args:
        positive: the outline for pairs of one class.
        negative: the outline for pairs of two classes.
        x_ticks: below.
        means: where their means are, positive first.
        bars: for a reader who points at it: ``[x, from, to, positive share, negative share]``.

    Examples:
        >>> drawn = histogram([-1.0, 0.0, 1.0], [0, 4], [2, 2], (0.5, 0.0))
        >>> [tick.text for tick in drawn.x_ticks], drawn.bars[1][3:]
        (['-1', '-0.5', '0', '0.5', '1'], ['100.0%', '50.0%'])
    """

    positive: str
    negative: str
    x_ticks: list[Tick]
    means: list[Tick]
    bars: list[list[float | str]]


def histogram(
    edges: Sequence[float], positive: Sequence[int], negative: Sequence[int], means: tuple[float | None, float | None]
) -> Histogram:
    """Lay out two histograms; bins beyond the outermost filled ones are left out.

    Examples:
        >>> histogram([-1.0, 0.0, 1.0], [0, 1], [1, 0], (0.5, -0.5)).means[0].text
        'mean 0.5'
    """
    filled = [at for at, (p, n) in enumerate(zip(positive, negative, strict=True)) if p or n]
    first, last = (filled[0], filled[-1]) if filled else (0, len(positive) - 1)
    low, high = edges[first], edges[last + 1]
    shares = [[n / max(1, sum(counts)) for n in counts] for counts in (positive, negative)]
    tallest = max(*shares[0], *shares[1], 1e-12)

    def x_at(value: float) -> float:
        return round(LEFT / 3 + (value - low) / (high - low) * (WIDTH - LEFT / 3 - RIGHT), 1)

    def outline(values: Sequence[float]) -> str:
        floor_at = HEIGHT - BOTTOM
        path = f"M{x_at(low):g},{floor_at}"
        for at in range(first, last + 1):
            y = round(floor_at - values[at] / tallest * (HEIGHT - TOP - BOTTOM), 1)
            path += f" V{y:g} H{x_at(edges[at + 1]):g}"
        return path + f" V{floor_at} Z"

    bars: list[list[float | str]] = [
        [
            x_at((edges[at] + edges[at + 1]) / 2.0),
            short(edges[at]),
            short(edges[at + 1]),
            f"{100.0 * shares[0][at]:.1f}%",
            f"{100.0 * shares[1][at]:.1f}%",
        ]
        for at in range(first, last + 1)
    ]
    x_ticks = [Tick(x_at(x), short(x)) for x in ticks(low, high, 5)[0] if low - 1e-9 <= x <= high + 1e-9]
    middles = [
        Tick(x_at(min(max(mean, low), high)), f"mean {short(round(mean, 3))}") for mean in means if mean is not None
    ]
    return Histogram(outline(shares[0]), outline(shares[1]), x_ticks, middles, bars)


@dataclass(frozen=True)
class Bar:
    """A row of an interval figure: places in percent of its width.

    Examples:
        >>> Bar("ours", 0, False, "61.0", "58.0–64.0", 61.0, 58.0, 64.0).name
        'ours'
    """

    name: str
    color: int
    baseline: bool
    text: str
    interval: str
    at: float
    low: float
    high: float


@dataclass(frozen=True)
class Bars:
    """One metric of several runs, with intervals.

    Args:
        metric: its name.
        rows: the runs and, after them, the baselines.
        x_ticks: below.

    Examples:
        >>> figure = interval_bars("R@1", [("ours", 0.61, 0, False), ("pixels", 0.2, 1, True)])
        >>> [row.at for row in figure.rows], figure.x_ticks[0].text
        ([61.0, 20.0], '0')
    """

    metric: str
    rows: list[Bar]
    x_ticks: list[Tick]


def interval_bars(metric: str, runs: Sequence[tuple[str, float | Interval, int, bool]]) -> Bars:
    """Lay out a metric of several runs on one axis from 0 to 100 percent; a cut axis would make small gaps look large.

    Examples:
        >>> interval_bars("R@1", [("ours", Interval(0.5, 0.4, 0.6, 0.95, 9), 0, False)]).rows[0].interval
        '40.0–60.0'
    """
    rows = []
    for name, value, color, baseline in runs:
        mean, low, high = (value.mean, value.low, value.high) if isinstance(value, Interval) else (value, value, value)
        low, high = (low, high) if isfinite(low) and isfinite(high) else (mean, mean)
        ends = (round(100.0 * each, 2) for each in (mean, low, high))
        words = "" if low == high else f"{percent(low)}–{percent(high)}"
        rows.append(Bar(name, color, baseline, percent(mean), words, *ends))
    return Bars(metric, rows, [Tick(float(x), str(x)) for x in (0, 25, 50, 75, 100)])
