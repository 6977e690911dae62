"""What a new version of a large index costs.

    python -m benchmarks.search.updates            a million vectors; writes results/index-updates-cpu.json
    python -m benchmarks.search.updates --quick    twenty thousand; prints, and writes nothing

Each time is the fastest of three, in a process that has the index open; everything is on the disk before a call returns.
Opening is measured in processes of their own, the pages of the files being in memory.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.harness import RESULTS, machine, make_parser, versions, write
from likewise.search import Index, check_version, list_versions, restore_version

RESULT = RESULTS / "index-updates-cpu.json"
CHUNK = 50_000
THUMBNAIL = 1000
"""Bytes of a thumbnail; those of photographs have some thousands."""

OPENING = """
import sys, time
import likewise.search.snapshots, pyarrow, numpy
from likewise.search import Index
start = time.perf_counter()
index = Index.open(sys.argv[1])
print(time.perf_counter() - start, len(index))
"""


def made(rows: int, dim: int, seed: int) -> NDArray[np.float16]:
    rng, found = np.random.default_rng(seed), np.empty((rows, dim), np.float16)
    for start in range(0, rows, CHUNK):
        found[start : start + CHUNK] = rng.standard_normal((min(CHUNK, rows - start), dim), np.float32)
    return found


def seconds(call: Callable[[], Any], times: int = 3) -> float:
    took = []
    for _ in range(times):
        start = time.perf_counter()
        call()
        took.append(time.perf_counter() - start)
    return round(min(took), 3)


def disk(folder: Path) -> float:
    """Megabytes on the disk; a file that versions share counts once."""
    found = {
        (file.stat().st_dev, file.stat().st_ino): file.stat().st_size for file in folder.rglob("*") if file.is_file()
    }
    return round(sum(found.values()) / 1e6, 1)


def update(folder: Path, items: int, dim: int) -> dict[str, Any]:
    """Times of changes to one index."""
    index = Index.create(folder, dim=dim, storage="float16")
    vectors, small = made(items, dim, 0), os.urandom(THUMBNAIL)

    def add(rows: int, seed: int, first: int) -> None:
        index.add(
            vectors[:rows] if seed == 0 else made(rows, dim, seed),
            [f"photos/{row:08d}.jpg" for row in range(first, first + rows)],
            labels=[f"class {row % 1000}" for row in range(rows)],
            metadata={"year": [2000 + row % 25 for row in range(rows)]},
            thumbnails=[small] * rows,
        )

    row: dict[str, Any] = {"items": items, "dim": dim, "storage": "float16", "thumbnail_bytes": THUMBNAIL}
    row["first_add_s"] = seconds(lambda: add(items, 0, 0), 1)
    row["index_mb"] = disk(folder)
    opened = [
        subprocess.run([sys.executable, "-c", OPENING, str(folder)], capture_output=True, text=True, check=True)
        for _ in range(5)
    ]
    row["open_ms"] = round(1e3 * min(float(each.stdout.split()[0]) for each in opened), 1)
    row["open_median_ms"] = round(1e3 * statistics.median(float(each.stdout.split()[0]) for each in opened), 1)
    percent = items // 100
    row["update_1_percent_s"] = seconds(lambda: add(percent, 1, items - percent // 2))
    row["kept_versions_mb"] = disk(folder)
    row["add_one_s"] = seconds(lambda: add(1, 2, 5 * items))
    row["remove_1_percent_s"] = seconds(lambda: index.remove(index.ids[:percent]))
    row["calibrate_s"] = seconds(lambda: index.set_calibration({"points": []}))
    row["restore_s"] = seconds(lambda: restore_version(folder, list_versions(folder)[0].number))
    row["check_s"] = seconds(lambda: check_version(list_versions(folder)[-1]), 1)
    index.refresh()
    row["filter_ms"] = round(1e3 * seconds(lambda: index.matching('label == "class 7" and year >= 2010')), 1)
    return row


def main() -> None:
    options = make_parser(__doc__, quick="twenty thousand vectors")
    options.add_argument("--items", type=int, default=1_000_000)
    options.add_argument("--dim", type=int, default=512)
    given = options.parse_args()
    items = 20_000 if given.quick else given.items
    place = Path(tempfile.mkdtemp(prefix="likewise-updates-"))
    try:
        report: dict[str, Any] = {
            "machine": machine("cpu"),
            "versions": versions("likewise", "numpy", "pyarrow"),
            "update": update(place / "a.index", items, given.dim),
        }
        print(report["update"], flush=True)
        report["load_average"] = [round(each, 1) for each in os.getloadavg()]
    finally:
        shutil.rmtree(place, ignore_errors=True)
    if not given.quick:
        write(report, RESULT)


if __name__ == "__main__":
    main()
