"""Search in an index: exact and approximate side by side in one run, on the same cores, and what fewer bits cost.

    python -m benchmarks.search.measure            a million vectors; about half an hour on two cores; writes results/search-cpu.json
    python -m benchmarks.search.measure --quick    fifty thousand; prints, and writes nothing
    python -m benchmarks.search.measure --items 200000 --dim 64 --storage int8

Vectors are synthetic: points around class centers, about fifty to a class, close enough for half of the neighbors or so
to be of the class.  Queries are other points around the same centers; none of them is in the index.  Run it on a machine
that does nothing else.
"""

from __future__ import annotations

import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.harness import cores, machine, make_parser, result_path, versions, write
from likewise.search import Index, Matches

EACH, SPREAD = 50, 0.7
"""Points around a center, and how far from it, in every dimension."""

CHUNK = 100_000


def make(rows: int, dim: int, seed: int, classes: int) -> NDArray[np.float32]:
    """Points around class centers; the same centers whatever the seed."""
    centers = np.random.default_rng(0).normal(size=(classes, dim)).astype(np.float32)
    chance = np.random.default_rng(seed)
    vectors = np.empty((rows, dim), np.float32)
    for start in range(0, rows, CHUNK):
        some = min(CHUNK, rows - start)
        noise = chance.normal(size=(some, dim)).astype(np.float32)
        vectors[start : start + some] = centers[chance.integers(0, classes, some)] + SPREAD * noise
    return vectors


def timed(function: Callable[[], Any]) -> tuple[Any, float]:
    start = time.perf_counter()
    found = function()
    return found, time.perf_counter() - start


def speed(index: Index, queries: NDArray[np.float32], exact: bool, single: int) -> tuple[Matches, dict[str, float]]:
    """What is found, queries a second all together, and how long one alone takes, in milliseconds."""
    index.search(queries[:16], 10, exact=exact)  # pages from the disk, and the structure into memory
    found, seconds = timed(lambda: index.search(queries, 10, exact=exact))
    alone = [1e3 * timed(lambda row=row: index.search(queries[row], 10, exact=exact))[1] for row in range(single)]
    return found, {
        "queries_a_second": round(len(queries) / seconds, 1),
        "alone_ms_median": round(statistics.median(alone), 3),
        "alone_ms_p95": round(float(np.quantile(alone, 0.95)), 3),
    }


def share(found: Matches, truth: Matches) -> float:
    hits = [len(set(a) & set(b)) for a, b in zip(found.ids.tolist(), truth.ids.tolist(), strict=True)]
    return sum(hits) / truth.ids.size


def size(index: Index, *names: str) -> float:
    """Megabytes of some files of the newest version."""
    return round(sum(entry.bytes for name, entry in index.card.files.items() if name in names) / 1e6, 1)


def compare(folder: Path, items: int, dim: int, storage: Any, queries: int) -> dict[str, Any]:
    """One index, searched exactly and by both structures."""
    classes = max(1, items // EACH)
    index = Index.create(folder, dim=dim, storage=storage)
    names = [f"{row:08d}.jpg" for row in range(items)]
    vectors = make(items, dim, 1, classes)
    _, added = timed(lambda: index.add(vectors, names))
    asked = make(queries, dim, 2, classes)
    reopened, opened = timed(lambda: Index.open(folder))
    loss = index.loss
    row: dict[str, Any] = {
        "items": items,
        "dim": dim,
        "storage": storage,
        "storage_recall": None if loss is None else loss.recall,
        "add_s": round(added, 1),
        "open_s": round(opened, 4),
        "vectors_mb": size(index, "vectors.npy", "scales.npy"),
    }
    single = min(100, queries)
    truth, row["exact"] = speed(reopened, asked, True, single)
    say(f"exact, {storage}", row["exact"], 1.0)
    for kind in ("hnsw", "ivfpq"):
        _, built = timed(lambda kind=kind: index.rebuild(approximate=kind))
        near = index.near
        assert near is not None
        found, measured = speed(index, asked, False, single)
        measured |= {
            "recall": round(share(found, truth), 4),
            "recall_in_card": round(near.recall, 4),
            "times_exact": round(measured["queries_a_second"] / row["exact"]["queries_a_second"], 1),
            "times_exact_alone": round(row["exact"]["alone_ms_median"] / measured["alone_ms_median"], 1),
            "build_s": round(built, 1),
            "structure_mb": size(index, "near.faiss"),
            "settings": dict(near.settings),
        }
        row[kind] = measured
        say(f"{kind}, {storage}", measured, measured["recall"])
    return row


def say(name: str, measured: dict[str, Any], recall: float) -> None:
    together, alone = measured["queries_a_second"], measured["alone_ms_median"]
    times = (
        f", {measured['times_exact']:5.1f}x / {measured['times_exact_alone']:5.1f}x"
        if "times_exact" in measured
        else ""
    )
    print(
        f"{name:16} {together:9,.0f} queries/s together, {alone:8.3f} ms alone, recall@10 {recall:.4f}{times}",
        flush=True,
    )


def main() -> None:
    options = make_parser(__doc__, quick="fifty thousand vectors", out="search")
    options.add_argument("--items", type=int, default=1_000_000)
    options.add_argument("--dim", type=int, default=128)
    options.add_argument("--queries", type=int, default=1000)
    options.add_argument("--storage", nargs="+", default=["float32", "float16", "int8"])
    given = options.parse_args()
    items, queries = (50_000, 200) if given.quick else (given.items, given.queries)
    torch.set_num_threads(cores())
    rows: list[Any] = []
    report = {"machine": machine("cpu"), "versions": versions("likewise", "torch", "numpy", "faiss-cpu"), "index": rows}
    for storage in given.storage:
        folder = Path(tempfile.mkdtemp(prefix="likewise-search-"))
        try:
            rows.append(compare(folder / "a.index", items, given.dim, storage, queries))
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        write(report, result_path("search", given))


if __name__ == "__main__":
    main()
