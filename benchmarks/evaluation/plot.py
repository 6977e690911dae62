"""The figure and the tables of docs/benchmarks-evaluation.md, from what `evaluation.py` wrote.  Needs matplotlib.

python -m benchmarks.evaluation.plot
"""

from __future__ import annotations

import json
from typing import Any

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot as plt

from benchmarks.harness import COLORS, DOCS, GRAY, RESULTS, fill, number, times

PAGE = DOCS / "benchmarks-evaluation.md"
FIGURE = DOCS / "assets" / "figures" / "evaluation.svg"

Report = dict[str, Any]
Row = dict[str, Any]


def main() -> None:
    """Read the results, write the figure and fill the page."""
    reports = {device: json.loads((RESULTS / f"evaluation-{device}.json").read_text()) for device in ("cpu", "cuda")}
    draw(reports)
    blocks = {}
    for device, report in reports.items():
        blocks |= {
            f"{device}-machine": machine(report),
            f"{device}-table": table(report),
            f"{device}-gallery": gallery(report),
        }
    fill(PAGE, blocks)


def seconds(row: Row) -> float | None:
    """The fastest of its calls; None where it did not run."""
    return min(row["seconds"]) if "seconds" in row else None


def sizes(report: Report) -> dict[str, dict[str, Row]]:
    """The rows of each size by contender."""
    found: dict[str, dict[str, Row]] = {}
    for row in report["rows"]:
        found.setdefault(row["size"], {})[row["contender"]] = row
    return found


def machine(report: Report) -> str:
    """One line on what it ran on."""
    facts = report["machine"]
    device = f"{facts['device']}; " if "device" in facts else ""
    packages = [name for name in facts if name not in ("cpu", "cores", "memory_gib", "threads", "device")]
    listed = ", ".join(f"{name} {facts[name]}" for name in packages)
    return f"{device}{facts['cpu']}, {facts['cores']} cores; {listed}."


def table(report: Report) -> str:
    """Time, time over ours, and memory, for each contender and size."""
    found = sizes(report)
    lines = ["| | " + " | ".join(found) + " |", "| :-- |" + " :-- |" * len(found)]
    for name in next(iter(found.values())):
        cells = [cell(rows[name], rows["likewise"]) for rows in found.values()]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def cell(row: Row, ours: Row) -> str:
    """One contender at one size."""
    taken, base = seconds(row), seconds(ours)
    if taken is None or base is None:
        return str(row["skipped"])
    shown = f"{number(taken)} s" if base > 0.5 else f"{number(1e3 * taken)} ms"
    return f"{shown}, {times(taken / base)}, {number(max(0.0, row['extra_mib']))} MiB"


def gallery(report: Report) -> str:
    """The thousand queries against a million references."""
    found = report["large_gallery"]
    runs = [
        f"{number(run['seconds'])} s with a budget of {run['memory_mib']:.0f} MiB"
        + (f" ({number(run['extra_mib'])} MiB used)" if "extra_mib" in run else "")
        for run in found["runs"]
    ]
    return (
        f"{found['queries']:,} queries against {found['references']:,} references in 512 dimensions, "
        f"{found['per_class']} of each class: {' and '.join(runs)}."
    )


def draw(reports: dict[str, Report]) -> None:
    """Bars of time over ours, one panel for each device and size."""
    plt.rcParams.update({"svg.hashsalt": "likewise", "font.size": 10, "text.color": GRAY, "font.family": "sans-serif"})
    panels = [(device, size, rows) for device, report in reports.items() for size, rows in sizes(report).items()]
    heights = [len(rows) for _, _, rows in panels]
    figure, axes = plt.subplots(
        len(panels),
        figsize=(8.0, 0.27 * sum(heights) + 0.8 * len(panels)),
        height_ratios=heights,
        layout="constrained",
    )
    for axis, (device, size, rows) in zip(axes, panels, strict=True):
        base = seconds(rows["likewise"]) or 1.0
        names = list(rows)
        ratios = [(seconds(row) or 0.0) / base for row in rows.values()]
        colors = [COLORS[0] if "likewise" in name else GRAY for name in names]
        axis.barh(range(len(names)), ratios, color=colors, alpha=0.85, height=0.62)
        for place, (row, ratio) in enumerate(zip(rows.values(), ratios, strict=True)):
            text = times(ratio) if ratio else row["skipped"]
            axis.text(ratio + 0.01 * max(ratios), place, f" {text}", va="center", fontsize=9)
        axis.set_yticks(range(len(names)), names, color=GRAY)
        axis.invert_yaxis()
        axis.set_xlim(0.0, 1.16 * max(ratios))
        where = "two cores" if device == "cpu" else "one H200"
        axis.set_title(f"{size}, {where}: time over likewise's", loc="left", color=GRAY, fontsize=10)
        axis.tick_params(colors=GRAY, length=0)
        axis.set_xticks([])
        for spine in axis.spines.values():
            spine.set_visible(False)
    FIGURE.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(FIGURE, transparent=True, metadata={"Date": None})
    plt.close(figure)


if __name__ == "__main__":
    main()
