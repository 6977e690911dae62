"""Training curves: loss, validation and learning rates, of one run or of several."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from likewise.report.charts import COLOURS, Chart, Line, line_chart
from likewise.report.record import Record, Row
from likewise.report.words import short

Run = tuple[str, int, Record]
"""A run's name, the number of its colour, and what it wrote."""


def training_charts(runs: Sequence[Run]) -> list[Chart]:
    """The charts that the records have something for.

    Examples:
        >>> from pathlib import Path
        >>> rows = [{"kind": "train", "epoch": float(n), "loss": 1.0 / n, "lr": {"trunk": 1e-4}} for n in (1, 2, 3)]
        >>> charts = training_charts([("one", 0, Record(Path("one"), {}, rows, [], [], []))])
        >>> [chart.title for chart in charts]
        ['Loss', 'Learning rate']
    """
    several = len(runs) > 1
    marks = [] if several else _marks(runs)
    # the losses of different formulas have nothing to do with each other but their shapes
    note = "each run on a scale of its own" if several else ""
    loss = [_line(run, "train", lambda row: row.get("loss")) for run in runs]
    charts = [line_chart("Loss", loss, note=note, own_scale=several, marks=marks)]
    if several:
        for metric in ("MAP@R", "R@1"):
            lines = [_line(run, "val", _getter(metric), dots=True) for run in runs]
            charts.append(line_chart(f"Validation {metric}", lines, as_percent=True, note="in percent"))
    elif runs:
        record = runs[0][2]
        lines = [
            _line((metric, colour, record), "val", _getter(metric), dots=True)
            for colour, metric in enumerate(("R@1", "RP", "MAP@R"))
        ]
        charts.append(line_chart("Validation", lines, as_percent=True, note="in percent", marks=marks))
    charts.append(_rates(runs))
    spread = [_line(run, "train", lambda row: row.get("spread")) for run in runs]
    charts.append(line_chart("Spread of a batch", spread, note="near 0: all embeddings alike", within=(0.0, 1.0)))
    return [chart for chart in charts if chart is not None]


def _marks(runs: Sequence[Run]) -> list[tuple[float, str]]:
    best = runs[0][2].best if runs else None
    return [] if best is None else [(float(best["epoch"]), f"best: epoch {short(float(best['epoch']))}")]


def _getter(metric: str) -> Callable[[Row], object]:
    return lambda row: row.get(metric)


def _line(run: Run, kind: str, value: Callable[[Row], object], *, dots: bool = False, dash: bool = False) -> Line:
    name, colour, record = run
    points: list[tuple[float, float]] = []
    for row in record.of_kind(kind):
        y = value(row)
        if isinstance(y, int | float):
            points.append((float(row["epoch"]), float(y)))
    points.sort(key=lambda point: point[0])
    return Line(name, [x for x, _ in points], [y for _, y in points], colour % COLOURS, dash, dots)


def _rates(runs: Sequence[Run]) -> Chart | None:
    """A line per run and group; those that are the same throughout share a line."""
    shared: dict[tuple[tuple[float, ...], tuple[float, ...]], dict[str, list[str]]] = {}
    colours: dict[str, int] = {}
    for name, colour, record in runs:
        colours[name] = colour
        rates = [row["lr"] for row in record.of_kind("train") if isinstance(row.get("lr"), dict)]
        for group in dict.fromkeys(group for each in rates for group in each):
            line = _line((name, colour, record), "train", _rate_of(group))
            shared.setdefault((tuple(line.xs), tuple(line.ys)), {}).setdefault(name, []).append(group)
    lines = []
    seen: set[int] = set()
    for number, ((xs, ys), owners) in enumerate(shared.items()):
        colour = number if len(runs) == 1 else colours[next(iter(owners))] if len(owners) < len(runs) else COLOURS - 1
        lines.append(Line(_owners(owners, runs), xs, ys, colour % COLOURS, colour in seen))
        seen.add(colour)
    # rates of groups are often a hundredfold apart; a schedule alone is easier to see on a plain axis
    highest = [max(line.ys) for line in lines if line.ys and max(line.ys) > 0.0]
    log = len(highest) > 1 and max(highest) > 10.0 * min(highest)
    return line_chart("Learning rate", lines, log=log, note="logarithmic" if log else "")


def _owners(owners: dict[str, list[str]], runs: Sequence[Run]) -> str:
    """Whose rate it is: the groups, and of several runs their names too."""
    groups = ", ".join(dict.fromkeys(group for each in owners.values() for group in each))
    if len(runs) == 1:
        return groups
    return f"{'all runs' if len(owners) == len(runs) else ', '.join(owners)}: {groups}"


def _rate_of(group: str) -> Callable[[Row], object]:
    def rate(row: Row) -> object:
        rates = row.get("lr")
        return rates.get(group) if isinstance(rates, dict) else None

    return rate
