"""Bars for the figures of papers, readable on a light and on a dark page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from studies.published.drawing import GRAY, finish_axis, new_figure, save_figure

COLORS = ("#3b8edb", "#e08a1e", "#2aa876", "#c2559d", "#8a6fd1", "#b59410")
"""Mid tones, readable on white as on black."""


def draw_bars(
    bars: Mapping[str, Mapping[str, float]],
    title: str,
    y_name: str,
    *,
    main: str | None = None,
    form: str = "svg",
) -> bytes:
    """Groups of bars, one group for each method; the axis begins at zero, because a cut one makes small gaps look large.

    Args:
        bars: by series (a K, a size, a trunk) the fraction of each method, in the order in which they are drawn.
        title: above it.
        y_name: what the bars are.
        main: a series that stands out, with numbers above its bars only; by default all are equal.
        form: ``"svg"`` or ``"png"``.

    Returns:
        The file's bytes, the same for the same input.

    Examples:
        >>> draw_bars({"R@1": {"Triplet": 0.5}}, "CUB200", "recall in %")[:5]
        b'<?xml'
    """
    methods = list(dict.fromkeys(name for values in bars.values() for name in values))
    if not methods:
        raise ValueError("bars must hold values, but there is none")
    figure = new_figure(max(4.5, 1.6 + 0.2 * len(methods) * (len(bars) + 1)), 4.0)
    axis = figure.subplots()
    width = 0.8 / len(bars)
    for place, (name, values) in enumerate(bars.items()):
        at = [index + width * (place - (len(bars) - 1) / 2) for index in range(len(methods))]
        heights = [100 * values.get(method, 0.0) for method in methods]
        alpha = 1.0 if main in (None, name) else 0.45
        axis.bar(at, heights, 0.92 * width, color=COLORS[place % len(COLORS)], alpha=alpha, label=name)
        if main in (None, name):
            _write_numbers(axis, at, heights)
    axis.set_xticks(range(len(methods)), methods, rotation=30, ha="right", color=GRAY)
    highest = max(value for values in bars.values() for value in values.values())
    axis.set_ylim(0.0, min(106.0, 120.0 * highest) or 100.0)
    axis.set_xlim(-0.6, len(methods) - 0.4)
    finish_axis(axis, title, y_name=y_name, grid="y")
    figure.legend(loc="outside upper center", ncols=min(6, len(bars)), frameon=False, labelcolor=GRAY)
    return save_figure(figure, form)


def _write_numbers(axis: Any, at: list[float], heights: list[float]) -> None:
    for x, height in zip(at, heights, strict=True):
        axis.text(x, height + 1.0, f"{height:.1f}", ha="center", va="bottom", fontsize=7, color=GRAY, rotation=90)
