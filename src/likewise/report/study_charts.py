"""The charts of a study's page as numbers: dots with intervals, dots of seeds, and what a search has tried."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite, log10
from statistics import fmean
from typing import Any

from likewise.report.charts import COLORS, Chart, Line, Tick, line_chart, ticks
from likewise.report.study_words import experiment_names, filter_of, labels_of
from likewise.report.words import percent, short

OF_THE_METHOD = {"loss", "miner", "memory"}
WIDE, HIGH = 260, 170
"""The size of a scatter, with 38 at the left and 24 below for its axes."""


@dataclass(frozen=True)
class Dot:
    """A line of a dot chart: places in percent of its width.

    Examples:
        >>> Dot("triplet", 0, "51.0", "50.0–52.0", 51.0, 50.0, 52.0, []).at
        51.0
    """

    name: str
    color: int
    text: str
    interval: str
    at: float | None
    low: float | None
    high: float | None
    dots: list[dict[str, Any]]


@dataclass(frozen=True)
class Dots:
    """A chart with a line for each method.

    Args:
        title: above it.
        lines: the methods.
        ticks: below, evenly spaced from end to end.
        filter: shows its runs in the complete table.

    Examples:
        >>> chart = interval_dots([("a", 0, 0.5, 0.4, 0.6), ("b", 1, 0.45, None, None)])
        >>> chart.ticks[0].text, chart.ticks[-1].text, chart.lines[0].at
        ('40', '60', 50.0)
    """

    title: str
    lines: list[Dot]
    ticks: list[Tick]
    filter: str = ""


def _scale(values: Sequence[float]) -> tuple[float, float, list[Tick]]:
    """The ends of an axis of fractions, and its ticks in percent; never beyond 0 and 100."""
    known = [min(max(value, 0.0), 1.0) for value in values]
    marks, low, high = ticks(min(known), max(known), 4)
    marks = [mark for mark in marks if -1e-9 <= mark <= 1.0 + 1e-9]
    low, high = max(low, 0.0), min(high, 1.0)
    return low, high, [Tick(_place(mark, low, high), short(round(100.0 * mark, 6))) for mark in marks]


def _place(value: float, low: float, high: float) -> float:
    return round(100.0 * min(max((value - low) / (high - low), 0.0), 1.0), 2)


def interval_dots(places: Sequence[tuple[str, int, float, float | None, float | None]]) -> Dots:
    """Means and their intervals on one axis: name, color, mean and the ends, which may be unknown.

    Examples:
        >>> interval_dots([("a", 0, 0.5, 0.4, 0.6)]).lines[0].interval
        '40.0–60.0'
    """
    values = [value for _, _, *given in places for value in given if value is not None and isfinite(value)]
    low, high, marks = _scale(values or [0.0, 1.0])
    lines = []
    for name, color, mean, first, last in places:
        if first is None or last is None or not (isfinite(first) and isfinite(last)):
            lines.append(Dot(name, color, percent(mean), "no interval", _place(mean, low, high), None, None, []))
            continue
        at, left, right = (_place(value, low, high) for value in (mean, first, last))
        lines.append(Dot(name, color, percent(mean), f"{percent(first)}–{percent(last)}", at, left, right, []))
    return Dots("", lines, marks)


# ---- each experiment


def panels_of(rows: Sequence[Mapping[str, Any]], metric: str, colors: Mapping[str, int]) -> list[Dots]:
    """For each experiment a chart with a line for each method: a dot for each seed, and their mean.

    The folds of a seed are averaged first; a seed that lacks a fold which its method has elsewhere is drawn hollow and
    left out of the mean.  Experiments on the same data share an axis.

    Examples:
        >>> rows = [{"method": "a", "dim": d, "seed": s, "test R@1": 0.5 + s / 10} for d in (64, 128) for s in (0, 1)]
        >>> [(panel.title, panel.lines[0].text) for panel in panels_of(rows, "test R@1", {"a": 0})]
        [('dim 64', '55.0'), ('dim 128', '55.0')]
    """
    chosen = [row for row in rows if (row.get("stage") or "final") == "final"]
    names = [name for name in labels_of(chosen) if "." not in name and name not in OF_THE_METHOD]
    held: dict[tuple[str, ...], dict[str, Any]] = {}
    scores: dict[tuple[str, ...], dict[str, list[Mapping[str, Any]]]] = {}
    for row in chosen:
        experiment = {name: row.get(name) for name in names}
        key = tuple(map(str, experiment.values()))
        held.setdefault(key, experiment)
        scores.setdefault(key, {}).setdefault(str(row["method"]), [])
        if (row.get("status") or "done") == "done" and _known(row.get(metric)):
            scores[key][str(row["method"])].append(row)
    seeds = {key: {method: _seeds(each, metric) for method, each in by.items()} for key, by in scores.items()}
    axes: dict[str, list[float]] = {}
    for key, by in seeds.items():
        axes.setdefault(str(held[key].get("data")), []).extend(s["value"] for each in by.values() for s in each)
    panels = []
    for (key, by), title in zip(seeds.items(), experiment_names(list(held.values())), strict=True):
        values = axes[str(held[key].get("data"))]
        if values:
            low, high, marks = _scale(values)
            lines = [_seed_line(name, each, colors.get(name, 0) % COLORS, low, high) for name, each in by.items()]
            shown = filter_of({**{n: v for n, v in held[key].items() if v is not None}, "stage": "final"})
            panels.append(Dots(title, lines, marks, shown))
    return panels


def _known(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)


def _seeds(rows: Sequence[Mapping[str, Any]], metric: str) -> list[dict[str, Any]]:
    by_seed: dict[Any, dict[Any, float]] = {}
    for row in rows:
        by_seed.setdefault(row.get("seed"), {})[row.get("fold")] = float(row[metric])
    folds = {fold for each in by_seed.values() for fold in each}
    return [
        {"seed": seed, "value": fmean(each.values()), "complete": len(each) == len(folds)}
        for seed, each in by_seed.items()
    ]


def _seed_line(name: str, seeds: Sequence[Mapping[str, Any]], color: int, low: float, high: float) -> Dot:
    whole = [each["value"] for each in seeds if each["complete"]]
    dots = [
        {
            "at": _place(each["value"], low, high),
            "hollow": not each["complete"],
            "title": f"{name}, seed {each['seed']}: {percent(each['value'], 2)}"
            + ("" if each["complete"] else ", incomplete"),
        }
        for each in seeds
    ]
    mean = fmean(whole) if whole else None
    count = f"{len(whole)} {'seed' if len(whole) == 1 else 'seeds'}" if whole else "none done"
    return Dot(name, color, percent(mean), count, None if mean is None else _place(mean, low, high), None, None, dots)


# ---- the search


def search_charts(
    search: Mapping[str, Sequence[Mapping[str, Any]]], objective: str, colors: Mapping[str, int]
) -> list[Chart]:
    """The best value so far, and the value of each round, with a line for each method.

    Examples:
        >>> tried = [{"point": {}, "value": v, "status": "done"} for v in (0.2, 0.1, 0.3)]
        >>> [chart.summary for chart in search_charts({"a": tried}, "val MAP@R", {"a": 0})]
        ['a: from 20.0% to 30.0%.', 'a: from 20.0% to 30.0%.']
    """
    part, _, name = objective.partition(" ")
    note = f"{name} on {'validation' if part == 'val' else 'test'} classes, in percent"
    best, each_round = [], []
    for method, tried in search.items():
        number = colors.get(str(method), 0)
        done = [(float(at), one["value"]) for at, one in enumerate(tried, 1) if one["status"] == "done"]
        rounds, values = [at for at, _ in done], [value for _, value in done]
        steps_x, steps_y = _steps(done, len(tried))
        look = {"color": number % COLORS, "dash": number >= COLORS}
        best.append(Line(str(method), steps_x, steps_y, look["color"], bool(look["dash"])))
        each_round.append(Line(str(method), rounds, values, look["color"], bool(look["dash"]), True))
    charts = [
        line_chart("Best so far", best, note=note, as_percent=True),
        line_chart("Each round", each_round, note=note, as_percent=True),
    ]
    return [chart for chart in charts if chart is not None]


def _steps(done: Sequence[tuple[float, float]], rounds: int) -> tuple[list[float], list[float]]:
    """The best so far at every round from the first that is done, with a corner where it rises."""
    known, xs, ys, highest = dict(done), [], [], None
    for at in range(1, rounds + 1):
        value = known.get(float(at))
        if value is not None and (highest is None or value > highest):
            if highest is not None:
                xs.append(float(at))
                ys.append(highest)
            highest = value
        if highest is not None:
            xs.append(float(at))
            ys.append(highest)
    return xs, ys


@dataclass(frozen=True)
class Scatter:
    """One hyper-parameter of a method against the value that was reached with it.

    Args:
        title: its name.
        log: whether its axis is logarithmic.
        color: of the method.
        dots: ``x``, ``y``, what it is, whether it is the best.
        crosses: places of points that failed or were pruned.
        x_ticks: below.
        y_ticks: at the left.
        summary: in words.

    Examples:
        >>> Scatter("loss.margin", False, 0, [], [], [], [], "nothing").title
        'loss.margin'
    """

    title: str
    log: bool
    color: int
    dots: list[dict[str, Any]]
    crosses: list[dict[str, Any]]
    x_ticks: list[Tick]
    y_ticks: list[Tick]
    summary: str


def scatters_of(
    search: Mapping[str, Sequence[Mapping[str, Any]]], colors: Mapping[str, int]
) -> dict[str, list[Scatter]]:
    """For each method a scatter for each hyper-parameter that took more than one value.

    Examples:
        >>> tried = [{"point": {"loss.margin": m, "x": 1}, "value": m / 2, "status": "done"} for m in (0.1, 0.2)]
        >>> [each.title for each in scatters_of({"a": tried}, {"a": 0})["a"]]
        ['loss.margin']
    """
    found: dict[str, list[Scatter]] = {}
    for method, tried in search.items():
        names = list(dict.fromkeys(name for one in tried for name in one["point"]))
        drawn = [_scatter(name, tried, colors.get(str(method), 0) % COLORS) for name in names]
        found[str(method)] = [each for each in drawn if each is not None]
    return {method: each for method, each in found.items() if each}


def _scatter(name: str, tried: Sequence[Mapping[str, Any]], color: int) -> Scatter | None:
    had = [(at, one) for at, one in enumerate(tried, 1) if name in one["point"] and one["status"] != "running"]
    done = [(at, one) for at, one in had if one["status"] == "done"]
    if not done or len({str(one["point"][name]) for _, one in had}) < 2:
        return None
    place, x_ticks, log = _x_axis([one["point"][name] for _, one in had])
    marks, low, high = ticks(min(one["value"] for _, one in done), max(one["value"] for _, one in done), 3)

    def y_at(value: float) -> float:
        return round(HIGH - 24 - (value - low) / (high - low) * (HIGH - 36), 1)

    best = max(done, key=lambda each: (each[1]["value"], -each[0]))
    said = f"{short(best[1]['point'][name])}" if _known(best[1]["point"][name]) else str(best[1]["point"][name])
    dots, crosses = [], []
    for at, one in had:
        value = one["point"][name]
        text = f"round {at}: {name} {short(value) if _known(value) else value}, "
        if one["status"] == "done":
            about = {"y": y_at(one["value"]), "best": at == best[0], "title": text + f"{percent(one['value'], 2)}%"}
            dots.append({"x": place(value), **about})
        else:
            crosses.append({"x": place(value), "title": text + one["status"]})
    summary = (
        f"{name} against the value of {len(done)} rounds: the best, {percent(best[1]['value'], 2)}%, is at {said}."
    )
    y_ticks = [Tick(y_at(mark), short(round(100.0 * mark, 6))) for mark in marks]
    return Scatter(name, log, color, dots, crosses, x_ticks, y_ticks, summary)


def _x_axis(values: Sequence[Any]) -> tuple[Any, list[Tick], bool]:
    """Where values go: on a plain axis, a logarithmic one if they span a lot, or side by side if they are no numbers."""
    left, width = 38.0, WIDE - 38.0 - 12.0
    if not all(_known(value) for value in values):
        kinds = list(dict.fromkeys(map(str, values)))
        at = {kind: round(left + width * (number + 0.5) / len(kinds), 1) for number, kind in enumerate(kinds)}
        return (lambda value: at[str(value)]), [Tick(place, kind) for kind, place in at.items()], False
    low, high = min(values), max(values)
    log = low > 0 and high / low >= 50

    def place(value: float) -> float:
        first, last, this = (log10(each) if log else each for each in (low, high, value))
        return round(left + 4 + (this - first) / (last - first) * (width - 8), 1)

    if log:
        powers = [10.0**power for power in range(-12, 13) if low <= 10.0**power <= high]
        shown = powers[:: max(1, (len(powers) + 3) // 4)] or [low, high]
    else:
        shown = [mark for mark in ticks(low, high, 3)[0] if low <= mark <= high]
    return place, [Tick(place(mark), short(mark)) for mark in shown], log
