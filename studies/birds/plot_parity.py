"""The tables and figures of docs/reality-check.md, from what the scripts on birds wrote.

python -m studies.birds.plot_parity
"""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.harness import COLORS, DOCS, GRAY, fill, finish, start
from benchmarks.harness import RESULTS as MEASURED

RESULTS = Path(__file__).parent / "results"
PAGE = DOCS / "reality-check.md"
FIGURE = DOCS / "assets" / "birds-parity.svg"
OURS, THEIRS = "likewise", "pytorch-metric-learning"


def main() -> None:
    """Fill the page and draw."""
    parity = json.loads((RESULTS / "parity.json").read_text())
    pretrained = json.loads((MEASURED / "pretrained-cub.json").read_text())
    fill(PAGE, {"parity-table": table(parity), "parity-words": words(parity), "pretrained": baseline(pretrained)})
    draw(parity)


def table(report: dict[str, Any]) -> str:
    """A table for each metric, a row for each loss: both means, and the difference."""
    return "\n\n".join(table_of(report, metric) for metric in ("MAP@R", "R@1"))


def table_of(report: dict[str, Any], metric: str) -> str:
    """One metric of both libraries."""
    lines = [f"| {metric} | {OURS} | {THEIRS} | difference |", "| :-- | --: | --: | --: |"]
    for row in report["rows"]:
        found, gap = row[metric], row[metric]["difference"]
        means = (f"{100 * statistics.mean(found[side]):.2f}" for side in (OURS, THEIRS))
        difference = f"{100 * gap['mean']:+.2f} ({100 * gap['low']:+.2f} to {100 * gap['high']:+.2f})"
        lines.append(f"| {' | '.join([row['loss'], *means, difference])} |")
    return "\n".join(lines)


def told_apart(report: Mapping[str, Any]) -> list[str]:
    """The losses whose two versions differ in MAP@R by more than seeds explain."""
    found = {row["loss"]: row["MAP@R"]["difference"] for row in report["rows"]}
    return [loss for loss, ends in found.items() if not ends["low"] <= 0 <= ends["high"]]


def words(report: dict[str, Any]) -> str:
    """What the table says, in sentences."""
    rows = report["rows"]
    apart = told_apart(report)
    largest = max(rows, key=lambda row: abs(row["MAP@R"]["difference"]["mean"]))
    noise = statistics.median(row["MAP@R"]["seed noise"] for row in rows)
    typical = statistics.median(abs(row["MAP@R"]["difference"]["mean"]) for row in rows)
    said = [
        f"{len(rows) - len(apart)} of {len(rows)} losses are not distinguishable by MAP@R (95%)."
        if apart
        else f"None of the {len(rows)} losses is distinguishable by MAP@R (95%)."
    ]
    for name in apart:
        gap = next(row for row in rows if row["loss"] == name)["MAP@R"]["difference"]
        said.append(f"{name} differs by {100 * gap['mean']:+.2f} points.")
    said.append(
        f"Half of the losses differ by less than {math.ceil(1e4 * typical) / 100:.2f} points; the standard deviation of "
        f"{THEIRS} over seeds is {100 * noise:.2f} (median over losses)."
    )
    gap = largest["MAP@R"]["difference"]
    said.append(
        f"The largest difference is that of {largest['loss']}, {100 * gap['mean']:+.2f} "
        f"({100 * gap['low']:+.2f} to {100 * gap['high']:+.2f})" + (f": {largest['note']}." if largest["note"] else ".")
    )
    return " ".join(said)


def baseline(report: dict[str, Any]) -> str:
    """The pretrained trunk without any training."""
    return (
        f"Before any training, the trunk's 1,280 features give R@1 {100 * report['R@1']:.2f} and MAP@R "
        f"{100 * report['MAP@R']:.2f} on the {report['images']:,} test images (`python -m benchmarks.trunks --cub PATH`)."
    )


def draw(report: dict[str, Any]) -> None:
    """MAP@R of every seed, both libraries next to each other."""
    rows = sorted(report["rows"], key=lambda row: statistics.mean(row["MAP@R"][OURS]))
    figure, axes = start(0.34 * len(rows) + 1.1)
    for place, row in enumerate(rows):
        for side, color, shift in ((OURS, COLORS[0], 0.14), (THEIRS, COLORS[1], -0.14)):
            values = [100 * value for value in row["MAP@R"][side]]
            axes.plot(values, [place + shift] * len(values), "o", ms=4, color=color, alpha=0.8, mew=0)
            axes.plot([statistics.mean(values)] * 2, [place + shift - 0.13, place + shift + 0.13], color=color, lw=2)
    axes.set_yticks(range(len(rows)), [row["loss"] for row in rows])
    axes.set_xlabel("MAP@R on the test birds, in per cent: three seeds, and their mean")
    for side, color in ((OURS, COLORS[0]), (THEIRS, COLORS[1])):
        axes.plot([], [], "o", color=color, label=side, mew=0)
    axes.legend(frameon=False, loc="lower right", labelcolor=GRAY)
    finish(figure, axes, FIGURE)


if __name__ == "__main__":
    main()
