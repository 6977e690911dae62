"""The tables of docs/look-alikes.md and docs/serve.md, from what search.py and serve.py wrote.

python benchmarks/plot_search.py
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from page import fill, number, times

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
NAMES = {"exact": "exact", "hnsw": "HNSW", "ivfpq": "IVF-PQ"}


def main() -> None:
    """Fill the page."""
    found = json.loads((RESULTS / "search-cpu.json").read_text())
    fill(ROOT / "docs" / "look-alikes.md", {"search-table": table(found)})


def table(report: dict[str, Any]) -> str:
    """A row for each way of searching an index."""
    lines = [
        "| | recall@10 | queries a second, 1,000 together | one alone, ms | built in |",
        "| :-- | --: | --: | --: | --: |",
    ]
    for row in report["index"]:
        exact = row["exact"]
        for kind, name in NAMES.items():
            found = row[kind]
            together, alone = found["queries_a_second"], found["alone_ms_median"]
            cells = [
                f"{name}, {row['storage']}",
                "1" if kind == "exact" else f"{found['recall']:.4f}",
                number(together) + ("" if kind == "exact" else f" ({times(together / exact['queries_a_second'])})"),
                number(alone) + ("" if kind == "exact" else f" ({times(exact['alone_ms_median'] / alone)})"),
                "–" if kind == "exact" else f"{found['build_s'] / 60:.1f} min",
            ]
            lines.append(f"| {' | '.join(cells)} |")
    first, about = report["index"][0], report["machine"]
    lines += [
        "",
        f"{first['items']:,} synthetic vectors of {first['dim']} dimensions, in classes of fifty; {about['cpu']}, {about['cores']} "
        f"cores, all in one run. Opening the index took {1000 * first['open_s']:.0f} ms.",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
