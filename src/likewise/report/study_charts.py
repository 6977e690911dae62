"""The charts of a study's page: the seeds of each experiment, and the rounds of a search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from likewise.report.axes import is_number
from likewise.report.charts import COLORS, Chart, Line, line_chart, scatter
from likewise.report.row_charts import Entry, RowChart, row_chart
from likewise.report.study_names import Row, experiment_names, filter_of, setting_columns
from likewise.report.words import many, percent, short

PARTS_OF_METHOD = {"loss", "miner", "memory"}
Search = Mapping[str, Sequence[Mapping[str, Any]]]


def experiment_charts(rows: Sequence[Row], metric: str, colors: Mapping[str, int]) -> list[RowChart]:
    """Create one chart per experiment with a row per method: a point per seed, and their mean.

    The folds of a seed are averaged first.  A seed with a missing fold is a hollow point and not part of the mean.
    Experiments on the same data have the same axis.

    Examples:
        >>> rows = [{"method": "a", "dim": d, "seed": s, "test R@1": 0.5 + s / 10} for d in (64, 128) for s in (0, 1)]
        >>> [(chart.title, chart.rows[0].text) for chart in experiment_charts(rows, "test R@1", {"a": 0})]
        [('dim 64', '55.0'), ('dim 128', '55.0')]
    """
    final = [row for row in rows if (row.get("stage") or "final") == "final"]
    names = [name for name in setting_columns(final) if "." not in name and name not in PARTS_OF_METHOD]
    settings: dict[tuple[str, ...], dict[str, Any]] = {}
    scores: dict[tuple[str, ...], dict[str, list[Row]]] = {}
    for row in final:
        setting = {name: row.get(name) for name in names}
        key = tuple(map(str, setting.values()))
        settings.setdefault(key, setting)
        done = scores.setdefault(key, {}).setdefault(str(row["method"]), [])
        if (row.get("status") or "done") == "done" and is_number(row.get(metric)):
            done.append(row)
    entries = {
        key: [_seeds(name, done, metric, colors.get(name, 0) % COLORS) for name, done in methods.items()]
        for key, methods in scores.items()
    }
    values: dict[str, list[float]] = {}
    for key, each in entries.items():
        values.setdefault(str(settings[key].get("data")), []).extend(x for one in each for x, _, _ in one.points)
    charts = []
    for (key, each), title in zip(entries.items(), experiment_names(list(settings.values())), strict=True):
        shared = values[str(settings[key].get("data"))]
        if shared:
            known = {name: value for name, value in settings[key].items() if value is not None}
            rows_of = filter_of({**known, "stage": "final"})
            charts.append(row_chart(title, each, kind="points", values=shared, filter=rows_of))
    return charts


def _seeds(method: str, rows: Sequence[Row], metric: str, color: int) -> Entry:
    by_seed: dict[Any, dict[Any, float]] = {}
    for row in rows:
        by_seed.setdefault(row.get("seed"), {})[row.get("fold")] = float(row[metric])
    folds = {fold for each in by_seed.values() for fold in each}
    points = []
    for seed, each in by_seed.items():
        value, lacks = fmean(each.values()), len(each) < len(folds)
        points.append((value, f"{method}, seed {seed}: {percent(value, 2)}{', incomplete' if lacks else ''}", lacks))
    complete = [value for value, _, lacks in points if not lacks]
    note = many(len(complete), "seed") if complete else "none done"
    return Entry(method, color, fmean(complete) if complete else None, note=note, points=tuple(points))


def search_charts(search: Search, objective: str, colors: Mapping[str, int]) -> list[Chart]:
    """Create charts of the best value so far and of the value of each round, with one line per method.

    Examples:
        >>> rounds = [{"point": {}, "value": v, "status": "done"} for v in (0.2, 0.1, 0.3)]
        >>> [chart.summary for chart in search_charts({"a": rounds}, "val MAP@R", {"a": 0})]
        ['Best so far by round. a: from 20.0% to 30.0%.', 'Each round by round. a: from 20.0% to 30.0%.']
    """
    part, _, name = objective.partition(" ")
    note = f"{name} on {'validation' if part == 'val' else 'test'} classes, in percent"
    best, single = [], []
    for method, rounds in search.items():
        number = colors.get(str(method), 0)
        done = {float(at): one["value"] for at, one in enumerate(rounds, 1) if one["status"] == "done"}
        color, dash = number % COLORS, number >= COLORS
        best.append(Line(str(method), *_steps(done, len(rounds)), color, dash))
        single.append(Line(str(method), list(done), list(done.values()), color, dash, dots=True, faint=True))
    charts = [
        line_chart(title, lines, note=note, x_name="round", as_percent=True)
        for title, lines in (("Best so far", best), ("Each round", single))
    ]
    return [chart for chart in charts if chart is not None]


def _steps(done: Mapping[float, float], rounds: int) -> tuple[list[float], list[float]]:
    """Return the best value so far for every round, as a step function."""
    steps: list[tuple[float, float]] = []
    for at in range(1, rounds + 1):
        value = done.get(float(at))
        if value is not None and (not steps or value > steps[-1][1]):
            steps += [(float(at), steps[-1][1])] if steps else []
            steps.append((float(at), value))
        elif steps:
            steps.append((float(at), steps[-1][1]))
    return [x for x, _ in steps], [y for _, y in steps]


def scatters(search: Search, colors: Mapping[str, int]) -> dict[str, list[Chart]]:
    """Create one scatter plot for each method and each hyper-parameter with more than one value.

    Examples:
        >>> rounds = [{"point": {"loss.margin": m, "x": 1}, "value": m / 2, "status": "done"} for m in (0.1, 0.2)]
        >>> [chart.title for chart in scatters({"a": rounds}, {"a": 0})["a"]]
        ['loss.margin']
    """
    charts: dict[str, list[Chart]] = {}
    for method, rounds in search.items():
        names = list(dict.fromkeys(name for one in rounds for name in one["point"]))
        drawn = [_scatter(name, rounds, colors.get(str(method), 0) % COLORS) for name in names]
        charts[str(method)] = [chart for chart in drawn if chart is not None]
    return {method: each for method, each in charts.items() if each}


def _scatter(name: str, rounds: Sequence[Mapping[str, Any]], color: int) -> Chart | None:
    ended = [(at, one) for at, one in enumerate(rounds, 1) if name in one["point"] and one["status"] != "running"]
    done = [one for _, one in ended if one["status"] == "done"]
    if not done or len({str(one["point"][name]) for _, one in ended}) < 2:
        return None
    best = max(done, key=lambda one: one["value"])
    points = []
    for at, one in ended:
        is_done = one["status"] == "done"
        reached = f"{percent(one['value'], 2)}%" if is_done else str(one["status"])
        text = f"round {at}: {name} {_short(one['point'][name])}, {reached}"
        points.append((one["point"][name], one["value"] if is_done else None, text))
    highest = f"the best, {percent(best['value'], 2)}%, is at {_short(best['point'][name])}"
    return scatter(name, points, color=color, summary=f"{name} against the value of {len(done)} rounds: {highest}.")


def _short(value: Any) -> str:
    return short(value) if is_number(value) else str(value)
