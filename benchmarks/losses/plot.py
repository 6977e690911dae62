"""The figure and the tables of docs/benchmarks.md, from what `losses.py` wrote.  Needs matplotlib (the docs extra).

    python -m benchmarks.losses.plot

Every number on that page stands between markers, ``<!-- name:start -->`` and ``<!-- name:end -->``, and is put there
by this script.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from benchmarks.harness import COLORS, DOCS, GRAY, RESULTS, fill, make_parser, number, times

RESULT = RESULTS / "losses-cpu.json"
PAGE = DOCS / "benchmarks.md"
FIGURE = DOCS / "assets" / "figures" / "losses-cpu.svg"

MARKS = ("o", "s", "D", "^", "v")

Report = dict[str, Any]
Row = dict[str, Any]


def main() -> None:
    """Read the results, write the figure and fill the page."""
    parser = make_parser(__doc__)
    parser.add_argument("--results", type=Path, default=RESULT, help="the file that losses.py wrote")
    parser.add_argument("--page", type=Path, default=PAGE, help="the page to fill")
    parser.add_argument("--figure", type=Path, default=FIGURE, help="the figure to write; .svg or .png")
    options = parser.parse_args()
    report = json.loads(options.results.read_text())
    draw(report, options.figure)
    fill(options.page, {name: block(report) for name, block in BLOCKS.items()})


# ------------------------------------------------------------------------------------------------ the figure


def draw(report: Report, path: Path) -> None:
    """Speed ratios on a log axis, one line per loss and one mark per batch size."""
    plt.rcParams.update({"svg.hashsalt": "likewise", "font.size": 10, "text.color": GRAY, "font.family": "sans-serif"})
    rows = [row for row in report["rows"] if row["theirs"] is not None]
    names = list(dict.fromkeys(row["loss"] for row in rows))
    sizes = report["arguments"]["sizes"]
    figure, axes = plt.subplots(figsize=(8.0, 0.30 * len(names) + 1.2), layout="constrained")
    edge = 2.0 * max(row["ratio"] or 1.0 for row in rows)
    for place, size in enumerate(sizes):
        draw_size(axes, [row for row in rows if row["size"] == size], names, edge, place)
    axes.axvline(1.0, color=GRAY, linewidth=1.2)
    starred = {row["loss"] for row in rows if not row["same_problem"]}
    axes.set_yticks(range(len(names)), [f"{name} *" if name in starred else name for name in names])
    axes.set_ylim(len(names) - 0.4, -0.6)
    style(axes, sizes, edge)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, transparent=True, metadata={"Date": None} if path.suffix == ".svg" else None, dpi=160)
    plt.close(figure)


def draw_size(axes: Axes, rows: list[Row], names: list[str], edge: float, place: int) -> None:
    """The marks of one batch size; a hollow one at the edge where the peer did not run."""
    color, mark = COLORS[place % len(COLORS)], MARKS[place % len(MARKS)]
    ran = [row for row in rows if row["ratio"] is not None]
    axes.plot(
        [row["ratio"] for row in ran],
        [names.index(row["loss"]) for row in ran],
        mark,
        color=color,
        markersize=6,
        alpha=0.9,
        label=f"B = {rows[0]['size']:,}" if rows else None,
    )
    missing = [row for row in rows if row["ratio"] is None and "skipped" in row["theirs"]]
    axes.plot(
        [edge * 1.35**place for _ in missing],
        [names.index(row["loss"]) for row in missing],
        mark,
        color=color,
        markerfacecolor="none",
        markersize=6,
    )


def style(axes: Axes, sizes: list[int], edge: float) -> None:
    """Gray everything that is not data."""
    right = edge * 1.35 ** len(sizes)
    left = min(0.5, 0.8 * axes.dataLim.x0)
    axes.set_xscale("log")
    axes.set_xlim(left, right)
    ticks = [tick for tick in (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 1000, 10000) if left <= tick <= edge]
    axes.xaxis.set_major_locator(FixedLocator(ticks))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}×"))
    axes.set_xlabel(
        "time of pytorch-metric-learning / time of likewise; right of the line likewise is faster", color=GRAY
    )
    axes.tick_params(colors=GRAY, length=0)
    axes.grid(axis="both", color=GRAY, alpha=0.25, linewidth=0.6)
    axes.set_axisbelow(True)
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.legend(loc="lower right", frameon=False, labelcolor=GRAY, bbox_to_anchor=(1.0, 1.0), ncols=len(sizes))


# ------------------------------------------------------------------------------------------------ the page


def by_loss(report: Report) -> dict[str, list[Row]]:
    """The rows of each loss, in the order of the sizes."""
    table: dict[str, list[Row]] = {}
    for row in report["rows"]:
        table.setdefault(row["loss"], []).append(row)
    return table


def place(row: Row) -> str:
    """Which cell it is, in words."""
    return f"{row['loss']} at B = {row['size']:,}"


def as_table(report: Report, first: str, cell: Callable[[Row], str], last: list[str] | None = None) -> str:
    """A Markdown table with one line per loss and one column per size."""
    sizes = report["arguments"]["sizes"]
    lines = [f"| {first} | " + " | ".join(f"B = {size:,}" for size in sizes) + " |"]
    lines.append("| :-- |" + " --: |" * len(sizes))
    for name, rows in by_loss(report).items():
        star = "" if rows[0]["same_problem"] else " \\*"
        lines.append(f"| {name}{star} | " + " | ".join(cell(row) for row in rows) + " |")
    if last is not None:
        lines.append("| " + " | ".join(last) + " |")
    return "\n".join(lines)


def machine_block(report: Report) -> str:
    """Where and with what it ran."""
    m, a = report["machine"], report["arguments"]
    where = m.get("device", f"{m['cpu']}, {m['cores']} core{'' if m['cores'] == 1 else 's'}")
    where += ", CPU time" if a.get("clock") == "cpu" else ""
    return (
        f"{where}; Python {m['python']}, torch {m['torch']}, pytorch-metric-learning {m['pytorch-metric-learning']}, "
        f"likewise {m['likewise']}; {a['dim']}-d {a['dtype']}, {a['per_class']} samples per class, {a['seconds']:g} s for "
        f"each side of each cell, limits of {a['memory_limit']:g} GiB and {a['time_limit']:g} s for one call of the peer."
    )


def speed_block(report: Report) -> str:
    """Times of both, and their ratio."""

    def cell(row: Row) -> str:
        ours = number(row["ours"]["median_ms"]) if "median_ms" in row["ours"] else "–"
        if row["theirs"] is None:
            return ours
        if row["ratio"] is None:
            return f"{ours} / –"
        ratio = times(row["ratio"])
        return f"{ours} / {number(row['theirs']['median_ms'])} · " + (f"**{ratio}**" if row["ratio"] >= 1.0 else ratio)

    bare = ["*the bare similarities*", *(number(row["median_ms"]) for row in report["floor"])]
    return as_table(report, "ours / theirs in ms · theirs ÷ ours", cell, bare)


def memory_block(report: Report) -> str:
    """Peak memory of both."""

    def cell(row: Row) -> str:
        sides = [row["ours"]] if row["theirs"] is None else [row["ours"], row["theirs"]]
        memory = [side.get("memory_mib") for side in sides]
        return " / ".join("–" if value is None else number(value) for value in memory)

    return as_table(report, "ours / theirs in MiB", cell)


def slower_block(report: Report) -> str:
    """Where the peer won."""
    lines = []
    for name, rows in by_loss(report).items():
        lost = [row for row in rows if row["ratio"] is not None and row["ratio"] < 1.0]
        if lost:
            cells = ", ".join(f"{times(row['ratio'])} at B = {row['size']:,}" for row in lost)
            note = f" ({rows[0]['note']})" if not rows[0]["same_problem"] else ""
            lines.append(f"- **{name}**: {cells}{note}")
    return "\n".join(lines) or "Nowhere in this run."


def skipped_block(report: Report) -> str:
    """What the peer could not do."""
    missing = [row for row in report["rows"] if row["theirs"] is not None and "skipped" in row["theirs"]]
    lines = [f"- **{row['loss']}**, B = {row['size']:,}: {row['theirs']['why']}" for row in missing]
    return "\n".join(lines) or "Nothing in this run."


def agreement_block(report: Report) -> str:
    """Whether the timed calls computed the right thing."""
    asked = [row for row in report["rows"] if (row["agreement"] or {}).get("agrees") is not None]
    agree = [row for row in asked if row["agreement"]["agrees"]]
    worst = max((row["agreement"]["difference"] for row in agree), default=0.0)
    checked = [row for row in report["rows"] if "precision" in row]
    value = max(checked, key=lambda row: row["precision"]["value"])
    gradient = max(checked, key=lambda row: row["precision"]["gradient"])
    usual = statistics.median(row["precision"]["gradient"] for row in checked)
    text = (
        f"In float64 both libraries have the same value in {len(agree)} of the {len(asked)} cells that were compared "
        f"(largest relative difference {worst:.0e}). Our float32 values are within {value['precision']['value']:.0e} of "
        f"our float64 values ({place(value)}), relative. Our float32 gradients differ by {usual:.0e} in the median cell "
        f"and {gradient['precision']['gradient']:.0e} at most ({place(gradient)})."
    )
    differ = [place(row) for row in asked if not row["agreement"]["agrees"]]
    return text + (f" They differ for {', '.join(differ)}." if differ else "")


def large_block(report: Report) -> str:
    """All triplets of a large batch."""
    row = report.get("large")
    if row is None or "memory_mib" not in row.get("ours", {}):
        return "Not measured in this run."
    of_batch = report["arguments"]["per_class"] - 1
    triplets = row["size"] * of_batch * (row["size"] - of_batch - 1)
    return (
        f"`TripletLoss` over all {triplets:,} triplets of a batch of {row['size']:,}: "
        f"{number(row['ours']['median_ms'])} ms and {number(row['ours']['memory_mib'])} MiB, forward and backward."
    )


def memory_large_block(report: Report) -> str:
    """Memory of a batch whose matrix would hurt."""
    if not report.get("memory"):
        return "Not measured in this run."
    size = report["memory_size"]
    lines = [f"| B = {size:,} | ours in MiB | theirs in MiB | ours ÷ theirs |", "| :-- | --: | --: | --: |"]
    for row in report["memory"]:
        ours, theirs = (number(row[s]["bytes"] / 2**20) if "bytes" in row[s] else "–" for s in ("ours", "theirs"))
        mark = " (predicted)" if row["theirs"].get("predicted") else ""
        share = "–" if row["share"] is None else f"{100 * row['share']:.1f}%"
        star = " †" if "earlier" in row else ""
        lines.append(f"| {row['loss']}{star} | {ours} | {theirs}{mark} | {share} |")
    earlier = sorted({row["earlier"] for row in report["memory"] if "earlier" in row})
    return "\n".join(lines + [f"\n† Measured earlier: {where}." for where in earlier])


BLOCKS: dict[str, Callable[[Report], str]] = {
    "machine": machine_block,
    "table": speed_block,
    "slower": slower_block,
    "skipped": skipped_block,
    "memory": memory_block,
    "large": large_block,
    "memory-large": memory_large_block,
    "agreement": agreement_block,
}


if __name__ == "__main__":
    main()
