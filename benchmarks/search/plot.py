"""The tables of docs/look-alikes.md and docs/serve.md, from what search.py and serve.py wrote.

python -m benchmarks.search.plot
"""

from __future__ import annotations

import json
from typing import Any

from benchmarks.harness import DOCS, RESULTS, fill, number, times

NAMES = {"exact": "exact", "hnsw": "HNSW", "ivfpq": "IVF-PQ"}


def main() -> None:
    """Fill the page."""
    found = json.loads((RESULTS / "search-cpu.json").read_text())
    updates = json.loads((RESULTS / "index-updates-cpu.json").read_text())
    fill(DOCS / "look-alikes.md", {"search-table": table(found), "updates-table": updates_table(updates)})


def table(report: dict[str, Any]) -> str:
    """A row for each way of searching an index."""
    lines = [
        "| search | recall@10 | queries/s, batches of 1,000 | single query, ms | build time |",
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
        f"cores, one run. Opening the index took {1000 * first['open_s']:.0f} ms.",
    ]
    return "\n".join(lines)


UPDATES = {
    "open_ms": "open",
    "update_1_percent_s": "replace or add 1% of the items",
    "remove_1_percent_s": "remove 1%",
    "add_one_s": "add one item",
    "calibrate_s": "store a calibration (all files are shared)",
    "restore_s": "restore a version (checksums verified)",
    "filter_ms": "filter by a text and a number",
}


def updates_table(report: dict[str, Any]) -> str:
    """How long each change takes."""
    found, about = report["update"], report["machine"]
    lines = ["| operation | time |", "| :-- | --: |"]
    for key, name in UPDATES.items():
        lines.append(f"| {name} | {number(found[key])} {'ms' if key.endswith('_ms') else 's'} |")
    lines += [
        "",
        f"{found['items']:,} items x {found['dim']} in {found['storage']}, with thumbnails of {found['thumbnail_bytes']:,} bytes: "
        f"{found['index_mb'] / 1e3:.1f} GB, and {found['kept_versions_mb'] / 1e3:.1f} GB with all kept versions; {about['cpu']}, "
        f"{about['cores']} cores, shared with other programs (load {report['load_average'][0]:.0f}); the fastest of three (`python "
        "-m benchmarks.search.updates`). [Behavior after kills](reliability.md#how-it-is-tested).",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
