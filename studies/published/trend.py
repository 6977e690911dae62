"""The trend over the years in absolute numbers: according to papers, and according to reality (the slides' last pages)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Literal

from likewise.protocols.trial import Label
from studies.published.drawing import GRAY, finish_axis, new_figure, save_figure
from studies.published.reality import claims
from studies.published.tables import Row, data_of, method_of, published

PAPERS, REALITY, OWN = "according to papers", "according to reality", "yours"
MARKS: Mapping[str, tuple[str, str]] = {
    "CUB200": ("o", "#3b8edb"),
    "Cars196": ("s", "#e08a1e"),
    "SOP": ("^", "#2aa876"),
}
"""Marker and color of a data set; mid tones, readable on white as on black."""


@dataclass(frozen=True)
class Score:
    """The score of a method on a data set.

    Args:
        method: its name.
        year: of the paper that introduced it; ``None`` if it is not known.
        value: a fraction.

    Examples:
        >>> Score("Triplet", 2015, 0.361).year
        2015
    """

    method: str
    year: int | None
    value: float


Trend = dict[str, dict[str, list[Score]]]


def trend(own: Sequence[Mapping[str, Label]] = (), *, data: str = "CUB200", metric: str = "test R@1") -> Trend:
    """Scores by panel and data set: what papers claim, what the reality check measured, and one's own results.

    Of a method that papers claim several times, with other networks and sizes, it is the best claim; of the reality check it is
    the separated models.  One's own results are means over all rows of a method.

    Args:
        own: one's own results.
        data: the data set that they are of, or that they stand for.
        metric: a column of the results; papers print recall.

    Examples:
        >>> found = trend()
        >>> [list(found[panel]) for panel in found]
        [['CUB200', 'Cars196', 'SOP'], ['CUB200', 'Cars196', 'SOP']]
        >>> found["according to papers"]["CUB200"][0]
        Score(method='Contrastive', year=2006, value=0.264)
    """
    panels: Trend = {PAPERS: {}, REALITY: {}}
    for name in MARKS:
        panels[PAPERS][name] = _scores(claims(name), metric, max)
        rows = [row for row in published("reality-check", data=name) if row["protocol"] == "separated"]
        panels[REALITY][name] = _scores([row for row in rows if row["method"] != "Pretrained"], metric, fmean)
    if own:
        panels[OWN] = {data_of(data): _scores(own, metric, fmean)}
    panels = {panel: {name: some for name, some in sets.items() if some} for panel, sets in panels.items()}
    return {panel: sets for panel, sets in panels.items() if sets}


def _scores(rows: Sequence[Mapping[str, Label]] | Sequence[Row], metric: str, combine: Any) -> list[Score]:
    values: dict[str, list[float]] = {}
    for row in rows:
        value = row.get(metric)
        if isinstance(value, int | float) and row.get("status", "done") == "done":
            known = method_of(str(row["method"]))
            values.setdefault(known.method if known else str(row["method"]), []).append(float(value))
    years = {name: known.year if (known := method_of(name)) else None for name in values}
    scores = [Score(name, years[name], float(combine(some))) for name, some in values.items()]
    return sorted(scores, key=lambda each: (each.year is None, each.year or 0, each.method))


def draw_trend(
    own: Sequence[Mapping[str, Label]] = (),
    *,
    data: str = "CUB200",
    metric: str = "test R@1",
    form: Literal["svg", "png"] = "svg",
) -> bytes:
    """The trend as a figure: a panel for papers, one for reality, one for own results; methods by year, one axis of scores.

    Args:
        own: one's own results.
        data: the data set that they are of, or that they stand for.
        metric: a column of the results.
        form: ``"svg"`` or ``"png"``.

    Returns:
        The file's bytes, the same for the same input.

    Examples:
        >>> draw_trend()[:5]
        b'<?xml'
    """
    panels = trend(own, data=data, metric=metric)
    if not panels:
        raise ValueError(f"metric must be one that results have, but it is {metric!r}")
    names = {panel: _names(sets) for panel, sets in panels.items()}
    widths = [max(3, len(each)) for each in names.values()]
    figure = new_figure(1.5 + 0.32 * sum(widths), 4.6)
    axes = figure.subplots(1, len(panels), sharey=True, squeeze=False, width_ratios=widths)[0]
    for axis, (panel, sets) in zip(axes, panels.items(), strict=True):
        _panel(axis, panel, sets, names[panel], f"{metric.removeprefix('test ')} in %" if axis is axes[0] else "")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=3, frameon=False, labelcolor=GRAY)
    return save_figure(figure, form)


def _names(sets: Mapping[str, Sequence[Score]]) -> list[tuple[int | None, str]]:
    """Methods of all data sets with their years, oldest first, unknown years last."""
    found = {(each.year, each.method) for some in sets.values() for each in some}
    return sorted(found, key=lambda each: (each[0] is None, each[0] or 0, each[1]))


def _panel(axis: Any, panel: str, sets: Mapping[str, Sequence[Score]], names: Sequence[Any], y_name: str) -> None:
    places = {name: place for place, (_, name) in enumerate(names)}
    for data, scores in sets.items():
        marker, color = MARKS.get(data, ("D", "#c2559d"))
        at, values = [places[each.method] for each in scores], [100.0 * each.value for each in scores]
        axis.plot(at, values, marker=marker, color=color, linewidth=1.2, markersize=5.0, label=data)
    labels = [f"{name}  {year or '–'}" for year, name in names]
    axis.set_xticks(range(len(names)), labels, rotation=60, ha="right", rotation_mode="anchor", fontsize=8)
    axis.set_xlim(-0.6, max(3, len(names)) - 0.4)
    axis.set_ylim(0.0, 100.0)
    finish_axis(axis, panel, y_name=y_name, grid="y")
