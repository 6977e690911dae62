"""The figure of docs/choose-a-loss.md, from the results.  Needs matplotlib.

python -m benchmarks.choose_loss.plot
"""

from __future__ import annotations

from pathlib import Path
from statistics import fmean
from typing import Any

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

from benchmarks.choose_loss.design import FOR_CLASSES, QUESTIONS
from benchmarks.choose_loss.measure import RESULT, all_rows
from benchmarks.choose_loss.tables import FEWEST, read_scores
from benchmarks.choose_loss.training import Row
from benchmarks.harness import COLORS, DOCS, GRAY, make_parser, read

FIGURE = DOCS / "assets" / "figures" / "choose-a-loss.svg"
PANELS = {
    "noise": "wrong labels",
    "images": "images per class",
    "classes": "training classes",
    "batch": "images per batch",
}
STYLES = dict(zip(FOR_CLASSES, zip((*COLORS, "#b5423a", "#5f7d1f"), "osD^vPX", strict=True), strict=True))


def draw(report: dict[str, Any], path: Path) -> None:
    """Draw one panel for each question, one line for each loss."""
    plt.rcParams.update({"svg.hashsalt": "likewise", "font.size": 10, "text.color": GRAY, "axes.labelcolor": GRAY})
    figure, panels = plt.subplots(2, 2, figsize=(8.0, 6.4), sharey=True, layout="constrained")
    for axes, (name, label) in zip(panels.flat, PANELS.items(), strict=True):
        draw_panel(axes, all_rows(report), name)
        axes.set_xlabel(label)
    for axes in panels[:, 0]:
        axes.set_ylabel("MAP@R")
    handles, labels = panels.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=4, frameon=False)
    figure.savefig(path, transparent=path.suffix == ".svg", metadata={"Date": None} if path.suffix == ".svg" else None)


def draw_panel(axes: Axes, rows: list[Row], name: str) -> None:
    """Draw the mean over seeds, and a vertical line from the lowest to the highest."""
    question = QUESTIONS[name]
    ticks = [head.split()[0] for head in question.conditions]
    for index, loss in enumerate(question.losses):
        shift = 0.05 * (index - (len(question.losses) - 1) / 2)
        scores = [list(read_scores(rows, loss, each, "MAP@R").values()) for each in question.conditions.values()]
        known = [(place + shift, values) for place, values in enumerate(scores) if len(values) >= FEWEST]
        color, mark = STYLES[loss]
        places, means = [place for place, _ in known], [fmean(values) for _, values in known]
        axes.plot(places, means, color=color, marker=mark, markersize=5, linewidth=1.2, label=loss)
        for place, values in known:
            axes.plot([place, place], [min(values), max(values)], color=color, linewidth=1.2)
    axes.set_xticks(range(len(ticks)), ticks)
    axes.tick_params(colors=GRAY, length=0)
    axes.grid(axis="y", color=GRAY, alpha=0.25)
    for spine in axes.spines.values():
        spine.set_visible(False)


def main() -> None:
    """Write the figure."""
    parser = make_parser(__doc__)
    parser.add_argument("--figure", type=Path, default=FIGURE, help="the figure to write; .svg or .png")
    options = parser.parse_args()
    report = read(RESULT)
    assert report is not None
    draw(report, options.figure)


if __name__ == "__main__":
    main()
