"""Papers versus reality: by how much each method beats the contrastive and the triplet loss, as claimed and as measured.

The reality check ends with this comparison: over the years papers report ever larger gains over the two oldest losses,
and under equal conditions little of them is left.  Here a user's own results stand beside both.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from likewise.metrics import t_interval
from likewise.protocols.trial import Label
from studies.published.drawing import GRAY, finish_axis, new_figure, save_figure
from studies.published.tables import Row, data_of, method_of, published

CONDITIONS = ("source", "table", "data", "trunk", "dim", "protocol", "case")
"""What must be equal for a comparison to be one of methods alone, as far as a table of results can say."""

MARKS: Mapping[str, tuple[str, str]] = {
    "papers": ("s", "#e08a1e"),
    "reality check": ("o", "#3b8edb"),
    "thesis": ("^", "#2aa876"),
    "yours": ("D", "#c2559d"),
    "": ("v", "#8a6fd1"),
}
"""Marker and color of a series; mid tones, readable on white as on black."""


@dataclass(frozen=True)
class Improvement:
    """How much better than the baseline a method is.

    Args:
        method: its name, spelled as in the table of methods where it is known there.
        year: of the paper that introduced it, or None.
        baseline: what it is compared with.
        metric: by which.
        value: its score, a fraction.
        baseline_value: the baseline's score; None where the rows hold no baseline for it.
        relative: value / baseline_value − 1; None where there is no baseline.
        plus_minus: half the width of the interval around ``relative``, where both scores have one.
        count: how many results were averaged.
        conditions: data set, trunk, size and what else it was measured with.

    Examples:
        >>> found = improvements(
        ...     [{"method": "triplet", "test R@1": 0.5}, {"method": "mine", "test R@1": 0.6}], "Triplet"
        ... )
        >>> found[1].method, round(found[1].relative, 2)
        ('mine', 0.2)
    """

    method: str
    year: int | None
    baseline: str
    metric: str
    value: float
    baseline_value: float | None
    relative: float | None
    plus_minus: float | None
    count: int
    conditions: Mapping[str, Label]


@dataclass(frozen=True)
class _Score:
    """The results of one method under one set of conditions, averaged."""

    name: str
    year: int | None
    value: float
    plus_minus: float | None
    count: int
    conditions: Mapping[str, Label]


def improvements(
    rows: Sequence[Mapping[str, Label]],
    baseline: str = "Contrastive",
    metric: str = "test R@1",
    *,
    within: Sequence[str] = CONDITIONS,
    method: str = "method",
) -> list[Improvement]:
    r"""The relative improvement of every method over a baseline, by year of publication.

    Rows of one method under the same conditions are averaged.  An interval comes from their scatter (95%, Student's t)
    or, for a single row, from what was printed after ±; that of the quotient is
    $\sqrt{(\delta_v / b)^2 + (v \, \delta_b / b^2)^2}$, as if the two scores were independent.

    Args:
        rows: results, one's own or `published`; those without the metric or not done are left out.
        baseline: the method to compare with; any spelling that `method_of` knows, or a name in the rows.
        metric: the column to compare by.
        within: the columns in which a result and its baseline must agree.  Papers compare across networks and sizes:
            ``("source", "data")`` repeats what they do.
        method: the column of the methods' names.

    Returns:
        One for each method and set of conditions, by year and name, unknown years last.  Where the rows hold no
        baseline, ``relative`` is None.

    Examples:
        >>> found = improvements(published("reality-check", data="Cars196"), "Triplet", "test MAP@R")
        >>> best = max(found, key=lambda each: each.relative)
        >>> best.method, best.year, f"{best.relative:.1%} ± {best.plus_minus:.1%}", best.conditions["protocol"]
        ('MultiSimilarity', 2019, '22.1% ± 3.0%', 'separated')
    """
    if not rows:
        raise ValueError("rows must hold results, but it is empty")
    scores = _scores(rows, metric, tuple(dict.fromkeys((*within, *CONDITIONS))), method)
    known = method_of(baseline)
    wanted = known.method if known else baseline
    if all(_spelled(each.name) != wanted for each in scores):
        there = ", ".join(map(repr, dict.fromkeys(each.name for each in scores)))
        raise ValueError(f"baseline must be a method of the rows, but it is {baseline!r} and they are of {there}")
    bases: dict[tuple[Label, ...], _Score] = {}
    for each in scores:
        if _spelled(each.name) == wanted:
            key = tuple(each.conditions.get(name) for name in within)
            if key in bases:
                which = dict(zip(within, key, strict=True))
                raise ValueError(f"within must single out one {wanted}, but there are several for {which}")
            bases[key] = each
    found = []
    for each in scores:
        base = bases.get(tuple(each.conditions.get(name) for name in within))
        alone = all(_spelled(other.name) != _spelled(each.name) for other in scores if other.name != each.name)
        found.append(_improvement(each, base, _spelled(each.name) if alone else each.name, wanted, metric))
    return sorted(found, key=lambda each: (each.year is None, each.year or 0, each.method))


def _spelled(name: str) -> str:
    known = method_of(name)
    return known.method if known else name


def _scores(rows: Sequence[Mapping[str, Label]], metric: str, conditions: tuple[str, ...], method: str) -> list[_Score]:
    groups: dict[tuple[Label, ...], list[Mapping[str, Label]]] = {}
    for index, row in enumerate(rows):
        value = row.get(metric)
        if value is None or row.get("status", "done") != "done":
            continue
        if isinstance(value, bool | str) or not math.isfinite(value):
            raise ValueError(f"rows[{index}][{metric!r}] must be a finite number, but it is {value!r}")
        groups.setdefault((str(row.get(method)), *(row.get(name) for name in conditions)), []).append(row)
    if not groups:
        raise ValueError(f"rows must hold finished results with {metric!r}, but none of the {len(rows)} is one")
    return [_score(str(key[0]), group, metric, conditions) for key, group in groups.items()]


def _score(name: str, group: Sequence[Mapping[str, Label]], metric: str, conditions: tuple[str, ...]) -> _Score:
    interval = t_interval([float(row[metric] or 0.0) for row in group])
    plus_minus = (interval.high - interval.low) / 2.0
    first = group[0]
    if len(group) == 1:
        stated = first.get(f"{metric} ±")
        plus_minus = float(stated) if isinstance(stated, int | float) else math.inf
    year, known = first.get("year"), method_of(name)
    return _Score(
        name=name,
        year=int(year) if isinstance(year, int | float) else known.year if known else None,
        value=interval.mean,
        plus_minus=plus_minus if math.isfinite(plus_minus) else None,
        count=len(group),
        conditions={name: first[name] for name in conditions if first.get(name) not in (None, "")},
    )


def _improvement(score: _Score, base: _Score | None, name: str, baseline: str, metric: str) -> Improvement:
    relative = plus_minus = None
    if base is not None:
        if base.value <= 0.0:
            raise ValueError(f"the baseline's {metric} must be above 0, but that of {baseline} is {base.value}")
        relative = score.value / base.value - 1.0
        if base is score:
            plus_minus = 0.0
        elif score.plus_minus is not None and base.plus_minus is not None:
            plus_minus = math.hypot(score.plus_minus / base.value, score.value * base.plus_minus / base.value**2)
    return Improvement(
        method=name,
        year=score.year,
        baseline=baseline,
        metric=metric,
        value=score.value,
        baseline_value=None if base is None else base.value,
        relative=relative,
        plus_minus=plus_minus,
        count=score.count,
        conditions=score.conditions,
    )


def claims(data: str) -> list[Row]:
    """What papers claim on a data set, each with its own network and size: the widest comparison of the sources.

    That is Rolínek et al. (2020) for CUB200 and SOP, and tables 2 and 3 of the unified view for Cars196 and InShop.

    Examples:
        >>> [row["method"] for row in claims("Cars196")][:3]
        ['HDC', 'Clustering', 'ProxyNCA']
    """
    found = published("rolinek-2020", data=data)
    return found or published("unified-view", table=(2, 3), data=data)


def papers_versus_reality(
    own: Sequence[Mapping[str, Label]] = (),
    *,
    data: str = "CUB200",
    metric: str = "test R@1",
    baselines: Sequence[str] | None = None,
    within: Sequence[str] = CONDITIONS,
) -> dict[str, list[Improvement]]:
    """What papers claim, what the reality check and the thesis measured, and one's own results, side by side.

    The claims are those that Rolínek et al. (2020) collect from the papers, each with its own network and size, over the
    contrastive and triplet losses of 2016, as papers do; for Cars196 those of the unified view.  Of the reality check it is the separated models of 128
    dimensions, of the thesis BNInception with 512: equal conditions within each.

    Args:
        own: one's own results, on whatever data; a set of them that lacks a baseline is left out for that baseline.
        data: the data set of the published numbers.
        metric: a column of the results; papers print recall alone.
        baselines: what to compare with; by default the contrastive and the triplet loss, and ProxyNCA where the claims have
            neither of them, as for Cars196.
        within: the columns in which one's own results and their baseline must agree.

    Returns:
        Improvements by series.  A series that has no such numbers, such as claims for MAP@R, is not there.

    Examples:
        >>> series = papers_versus_reality(data="SOP", baselines=["Contrastive"])
        >>> for name, found in series.items():
        ...     best = max(found, key=lambda each: each.relative)
        ...     print(f"{name}: {best.method} {best.relative:+.0%}")
        papers, SOP: RaMBO log log +87%
        reality check, SOP: NormalizedSoftmax +3%
        thesis, SOP: ProxyAnchor +3%
    """
    data = data_of(data)
    claimed = claims(data)
    if baselines is None:
        has_oldest = {"Contrastive", "Triplet"} & {row["method"] for row in claimed}
        baselines = ("Contrastive", "Triplet") if has_oldest else ("Contrastive", "Triplet", "ProxyNCA")
    equal = {"reality check": published("reality-check", data=data), "thesis": published("thesis", data=data)}
    equal["reality check"] = [row for row in equal["reality check"] if row["protocol"] == "separated"]
    equal["thesis"] = [row for row in equal["thesis"] if row["table"] in ("17", "18", "19")]
    sets: list[tuple[str, Sequence[Mapping[str, Label]], Sequence[str]]] = [
        (f"papers, {data}", claimed, ("source", "data")),
        *((f"{name}, {data}", rows, CONDITIONS) for name, rows in equal.items()),
        ("yours", own, within),
    ]
    series: dict[str, list[Improvement]] = {}
    for name, rows, agree in sets:
        done = [row for row in rows if row.get(metric) is not None and row.get("status", "done") == "done"]
        measured = [row for row in done if row.get("method") != "Pretrained"]  # no method, and far from all of them
        there = {_spelled(str(row.get("method"))) for row in measured}
        found = [
            each
            for baseline in baselines
            if _spelled(baseline) in there
            for each in improvements(measured, baseline, metric, within=agree)
        ]
        if found:
            series[name] = found
    if own and "yours" not in series:
        asked = " or ".join(map(str, baselines))
        raise ValueError(f"own must hold finished results of {asked} with {metric!r}, but it holds none")
    return series


def comparison(series: Mapping[str, Sequence[Improvement]]) -> str:
    """The improvements as a table for a terminal: methods by year down, series across.

    Where a series has a method several times, at different sizes say, the range is given.

    Args:
        series: as `papers_versus_reality` gives them.

    Examples:
        >>> own = [{"method": "contrastive", "test R@1": 0.5}, {"method": "mine", "test R@1": 0.55}]
        >>> print(comparison({"yours": improvements(own)}))
        over Contrastive     yours
        2006  Contrastive    +0.0%
           –  mine          +10.0%
    """
    blocks = []
    for baseline in dict.fromkeys(each.baseline for found in series.values() for each in found):
        chosen = {name: [each for each in found if each.baseline == baseline] for name, found in series.items()}
        lines = [[f"over {baseline}", *chosen]]
        for year, method in _methods(chosen.values()):
            cells = [_cell([each for each in found if each.method == method]) for found in chosen.values()]
            lines.append([f"{year or '–':>4}  {method}", *cells])
        widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
        blocks.append(
            "\n".join(
                "  ".join([line[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(line[1:], widths[1:], strict=True))])
                for line in lines
            )
        )
    return "\n\n".join(blocks)


def _methods(found: Iterable[Sequence[Improvement]]) -> list[tuple[int | None, str]]:
    """The methods of all series with their years, oldest first, unknown years last."""
    years: dict[str, int | None] = {}
    for each in (each for one in found for each in one):
        years[each.method] = years.get(each.method) or each.year
    return sorted(
        ((year, name) for name, year in years.items()), key=lambda each: (each[0] is None, each[0] or 0, each[1])
    )


def _cell(found: Sequence[Improvement]) -> str:
    values = sorted(100.0 * each.relative for each in found if each.relative is not None)
    if not values:
        return "–"
    if len(found) == 1 and found[0].plus_minus:
        return f"{values[0]:+.1f}% ± {100.0 * found[0].plus_minus:.1f}"
    return f"{values[0]:+.1f}%" if len(values) == 1 else f"{values[0]:+.1f}% to {values[-1]:+.1f}%"


def draw_improvements(series: Mapping[str, Sequence[Improvement]], form: Literal["svg", "png"] = "svg") -> bytes:
    """The improvements as a figure: a panel for each baseline, methods by year, a mark for each series.

    Readable on a light and on a dark page: the background is transparent, and the colors are between the two.

    Args:
        series: as `papers_versus_reality` gives them.
        form: ``"svg"`` or ``"png"``.

    Returns:
        The file's bytes, the same for the same input.

    Examples:
        >>> draw_improvements(papers_versus_reality(data="SOP"))[:5]
        b'<?xml'
    """
    baselines = list(dict.fromkeys(each.baseline for found in series.values() for each in found))
    if not baselines:
        raise ValueError("series must hold improvements, but there is none")
    names = _methods(series.values())
    figure = new_figure(4.8 * len(baselines) + 1.0, 0.29 * len(names) + 1.5)
    axes = figure.subplots(1, len(baselines), sharey=True, squeeze=False)[0]
    for axis, baseline in zip(axes, baselines, strict=True):
        _panel(axis, baseline, series, names)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=4, frameon=False, labelcolor=GRAY)
    return save_figure(figure, form)


def _panel(axis: Any, baseline: str, series: Mapping[str, Sequence[Improvement]], names: Sequence[Any]) -> None:
    """One baseline: a row for each method, oldest on top, a line at no improvement."""
    places = {name: place for place, (_, name) in enumerate(names)}
    axis.axvline(0.0, color=GRAY, linewidth=1.0, alpha=0.7)
    for index, (label, found) in enumerate(series.items()):
        shown = [each for each in found if each.baseline == baseline and each.relative is not None]
        # series side by side in a row, so that marks that agree do not hide each other
        shift = 0.16 * (index - (len(series) - 1) / 2.0)
        marker, color = MARKS.get(label.split(",")[0], MARKS[""])
        axis.errorbar(
            [100.0 * (each.relative or 0.0) for each in shown],
            [places[each.method] + shift for each in shown],
            xerr=[100.0 * (each.plus_minus or 0.0) for each in shown],
            fmt=marker,
            color=color,
            markersize=5.5,
            elinewidth=1.2,
            label=label,
        )
    axis.set_yticks(range(len(names)), [f"{name}  {year or '–'}" for year, name in names], color=GRAY)
    axis.set_ylim(len(names) - 0.4, -0.6)
    finish_axis(axis, f"over {baseline}", x_name="relative improvement in %")
