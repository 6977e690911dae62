"""The tables of docs/benchmarks-training.md, from what `measure.py` wrote.

python -m benchmarks.training.plot
"""

from __future__ import annotations

import json
from typing import Any

from benchmarks.evaluation.plot import machine
from benchmarks.harness import DOCS, RESULTS, fill, number

PAGE = DOCS / "benchmarks-training.md"
WAYS = ("bare", "likewise", "likewise, step by step")


def main() -> None:
    """Fill the page."""
    blocks = {}
    for device in ("cpu", "cuda"):
        report = json.loads((RESULTS / f"training-{device}.json").read_text())
        blocks |= {f"{device}-machine": machine(report), f"{device}-table": table(report)}
    fill(PAGE, blocks)


def table(report: dict[str, Any]) -> str:
    """A row for each setting and loop; on a CPU ratios alone, for its speeds are those of that machine."""
    speeds = "device" in report["machine"]
    watched = any("busy" in row.get(way, ()) for row in report["rows"] for way in WAYS)
    head = ["", "loop", *["images/s (quartiles)"] * speeds, "of the bare loop", *["GPU busy"] * watched]
    lines = [line(head), line([":--", ":--", *["--:"] * (len(head) - 2)])]
    for row in report["rows"]:
        what = f"{row['trunk']}, {row['size']} px, {row['batch']} images, {row['dim']}-d, {row['setting']}"
        for way in (each for each in WAYS if each in row):
            low, middle, high = row[way]["quartiles"]
            speed = [f"{number(middle)} ({number(low)} to {number(high)})"] if speeds else []
            ratio = row[way]["images_per_s"] / row["bare"]["images_per_s"]
            busy = [f"{row[way]['busy']:.0%}" if "busy" in row[way] else "–"] * watched
            lines.append(line([what, way, *speed, f"{ratio:.2f}×", *busy]))
            what = ""
    return "\n".join(lines)


def line(cells: list[str]) -> str:
    """A line of a table."""
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
