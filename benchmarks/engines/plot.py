"""The figures and tables of docs/benchmarks-engines.md, from what `engines.py` wrote.  Needs matplotlib (docs extra).

    python -m benchmarks.engines.plot

Every number on that page stands between markers and is put there by this script.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("agg")
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, NullLocator

from benchmarks.engines.bars import find, share
from benchmarks.engines.page import blocks
from benchmarks.harness import COLORS, DOCS, RESULTS, fill, make_parser

PAGE = DOCS / "benchmarks-engines.md"
FIGURES = DOCS / "assets" / "figures"

Report = dict[str, Any]
Row = dict[str, Any]
PEER = "pytorch-metric-learning"
INK, GRAY = "#404040", "#858585"

LINES: dict[str, tuple[dict[str, Any], str, str]] = {
    "Triton, bf16": ({"contender": "triton", "input": "bfloat16"}, COLORS[0], "o"),
    "Triton, float32 exact": ({"contender": "triton", "input": "float32", "products": "highest"}, COLORS[2], "s"),
    "chunked, float32": ({"contender": "chunked", "input": "float32", "products": "highest"}, COLORS[4], "D"),
    "dense, float32": ({"contender": "dense", "input": "float32", "products": "highest"}, COLORS[3], "v"),
    f"{PEER}, float32": ({"contender": PEER, "input": "float32", "products": "highest"}, COLORS[1], "^"),
    f"{PEER}, bf16": ({"contender": PEER, "input": "bfloat16"}, GRAY, "x"),
}
"""The lines of a figure: which rows, which color, which mark."""

PANELS = ("Multi-similarity", "Multi-similarity + miner", "NT-Xent", "Circle", "Contrastive", "Generalized lifted")


def main() -> None:
    """Read the results, write the figures and fill the page."""
    parser = make_parser(__doc__)
    parser.add_argument("--results", type=Path, default=RESULTS / "engines-cuda.json", help="what engines.py wrote")
    parser.add_argument("--cpu", type=Path, default=RESULTS / "engines-cpu.json", help="the same of a processor")
    parser.add_argument("--page", type=Path, default=PAGE, help="the page to fill")
    parser.add_argument("--figures", type=Path, default=FIGURES, help="the folder for the figures")
    options = parser.parse_args()
    report = json.loads(options.results.read_text())
    cpu = json.loads(options.cpu.read_text()) if options.cpu.exists() else None
    plt.rcParams.update({"font.size": 9, "text.color": INK, "axes.labelcolor": INK, "font.family": "sans-serif"})
    options.figures.mkdir(parents=True, exist_ok=True)
    draw_grid(report, "median_ms", "ms", options.figures / "engines-time.png")
    draw_grid(report, "extra_mib", "MiB", options.figures / "engines-memory.png")
    draw_rates(report, options.figures / "engines-rate.png")
    draw_small(report, options.figures / "engines-small.png")
    fill(options.page, blocks(report, cpu))


# ------------------------------------------------------------------------------------------------ figures


def draw_grid(report: Report, field: str, unit: str, path: Path) -> None:
    """A panel for each loss: a number against the size of the batch, a line for each engine and library."""
    figure, grid = plt.subplots(2, 3, figsize=(10.4, 5.6), sharex=True, sharey=True, layout="constrained")
    for axes, loss in zip(grid.flat, PANELS, strict=True):
        for name, (wanted, color, mark) in LINES.items():
            rows = sorted(find(report, part="large", loss=loss, **wanted), key=lambda row: row["key"]["size"])
            points = [(row["key"]["size"], row[field]) for row in rows if field in row]
            if points:
                axes.plot(*zip(*points, strict=True), color=color, marker=mark, markersize=5, linewidth=1.4, label=name)
        axes.set_title(loss, loc="left", color=INK, fontsize=10)
        logarithmic(axes, [2048, 8192, 32768, 131072], lambda size, _: f"{size:,.0f}")
    for axes in grid[:, 0]:
        axes.set_ylabel(unit)
    for axes in grid[-1]:
        axes.set_xlabel("samples in the batch")
    save(figure, grid.flat, path)


def logarithmic(axes: Axes, ticks: list[int], words: Callable[[float, int], str]) -> None:
    """Both axes by factors, and nothing on them but what is needed."""
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks(ticks)
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(words))
    axes.tick_params(axis="x", labelsize=8)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    plain(axes)


def plain(axes: Axes) -> None:
    """Gray everything that is not data."""
    axes.tick_params(colors=INK, length=0, which="both")
    axes.grid(color=GRAY, alpha=0.25, linewidth=0.6)
    axes.set_axisbelow(True)
    for spine in axes.spines.values():
        spine.set_visible(False)


def save(figure: Any, panels: Any, path: Path) -> None:
    """One legend for all panels, above them."""
    shown = {}
    for axes in panels:
        handles, labels = axes.get_legend_handles_labels()
        shown |= dict(zip(labels, handles, strict=True))
    if shown:
        place = {"loc": "outside upper center", "frameon": False, "labelcolor": INK}
        figure.legend(shown.values(), shown.keys(), ncols=min(len(shown), 3), **place)
    figure.savefig(path, dpi=160, facecolor="white")
    plt.close(figure)


def draw_rates(report: Report, path: Path) -> None:
    """Bars: how much of the card's own product rate the Triton engine reaches."""
    wanted = [
        (f"B = {size:,}, {words}", size, given, setting)
        for size in (8192, 32768)
        for words, given, setting in (
            ("bf16", "bfloat16", "highest"),
            ("TF32", "float32", "high"),
            ("float32", "float32", "highest"),
        )
    ]
    wanted = [entry for entry in wanted if not math.isnan(share(report, "forward", *entry[1:]))]
    figure, axes = plt.subplots(figsize=(7.2, 0.8 + 0.4 * len(wanted)), layout="constrained")
    for place, (_, size, given, setting) in enumerate(wanted):
        for side, what, color in ((-0.19, "forward", COLORS[0]), (0.19, "forward + backward", COLORS[1])):
            found = share(report, what, size, given, setting)
            label = what if place == 0 else None
            axes.barh(place + side, 0.0 if math.isnan(found) else found, height=0.34, color=color, label=label)
            axes.text(0.0 if math.isnan(found) else found, place + side, f" {words(found)}", va="center", fontsize=8)
    axes.set_yticks(range(len(wanted)), [name for name, *_ in wanted])
    axes.invert_yaxis()
    axes.set_xlabel("percent of what torch.matmul reaches on the same matrices, MultiSimilarity, 512-d")
    plain(axes)
    save(figure, [axes], path)


def words(found: float) -> str:
    """A percentage, or that there is none."""
    return "not measured" if math.isnan(found) else f"{found:.0f}%"


def draw_small(report: Report, path: Path) -> None:
    """Every loss at B = 128: a call, the same without graphs, the device's part of it, and theirs."""
    rows = {row["key"]["loss"]: row for row in small_rows(report, "auto")}
    theirs = {row["key"]["loss"]: row["median_ms"] for row in small_rows(report, PEER)}
    names = sorted(rows, key=lambda name: rows[name]["median_ms"])
    figure, axes = plt.subplots(figsize=(7.6, max(2.0, 0.21 * len(names) + 1.0)), layout="constrained")
    device, without = (
        {name: row[how]["median_ms"] for name, row in rows.items() if "median_ms" in row.get(how, {})}
        for how in ("graph", "plain")
    )
    for values, label, color, mark in (
        (device, "the device alone", COLORS[2], "s"),
        ({name: row["median_ms"] for name, row in rows.items()}, "a call", COLORS[0], "o"),
        (without, "without graphs", COLORS[0], "x"),
        (theirs, PEER, COLORS[1], "^"),
    ):
        points = [(values[name], place) for place, name in enumerate(names) if name in values]
        if points:
            axes.plot(*zip(*points, strict=True), mark, color=color, markersize=5, label=label)
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(-0.7, len(names) - 0.3)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_xlabel("ms for a forward and backward, B = 128, 512-d")
    plain(axes)
    save(figure, [axes], path)


def small_rows(report: Report, contender: str) -> list[Row]:
    """The rows at B = 128 that were not compiled."""
    return [row for row in find(report, part="small", contender=contender, size=128) if "compiled" not in row["key"]]


if __name__ == "__main__":
    main()
