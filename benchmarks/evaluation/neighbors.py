"""Retrieval metrics on a CPU, in the same process as faiss: by samples, by positives per query, by class sizes.

    python -m benchmarks.evaluation.neighbors               writes results/neighbors-cpu.json, cell by cell; run again to go on
    python -m benchmarks.evaluation.neighbors --page        writes the tables of docs/benchmarks-evaluation.md
    python -m benchmarks.evaluation.neighbors --quick       small sizes; prints, and writes nothing

faiss searches an ``IndexFlatIP`` for as many neighbors as a query has positives, and the query itself; numpy computes
MAP@R from them.  Contenders take turns on the same number of threads, and each time is the shortest of its turns: wall
time where the machine does nothing else, CPU time (``--clock cpu``, one thread) where it does.
"""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks.harness import CLOCKS, DOCS, fill, machine, make_parser, number, result_path, resume, versions, write
from likewise.metrics import retrieval

PAGE = DOCS / "benchmarks-evaluation.md"
SIZES, POSITIVES, DIM = (5_000, 20_000, 60_000), (4, 19, 59, 199), 128
FIRST = ("R@1", "RP", "MAP@R")
LEAST_SECONDS = 1.0
"""The time that each contender gets, at least."""

CLASSES = {
    "classes of 10": [10] * 400,
    "classes of 100": [100] * 40,
    "classes of 800": [800] * 5,
    "two of 2,000": [2000, 2000],
    "one of 2,000, others of 10": [2000, *[10] * 200],
    "one of 3,999": [3999, 1],
}
"""Sizes of all classes: four thousand samples each."""

Call = Callable[[], float]
Cell = tuple[list[int], int | None]
"""Class sizes, and positives per query where faiss is measured too."""


def make(sizes: list[int]) -> tuple[Tensor, Tensor]:
    """Unit vectors around class centers, in random order."""
    generator = torch.Generator().manual_seed(0)
    labels = torch.repeat_interleave(torch.tensor(sizes))
    points = torch.randn(len(labels), DIM, generator=generator)
    points += 0.3 * torch.randn(len(sizes), DIM, generator=generator)[labels]
    order = torch.randperm(len(labels), generator=generator)
    return torch.nn.functional.normalize(points[order]), labels[order]


def search_with_faiss(embeddings: Tensor, labels: Tensor, positives: int) -> float:
    """MAP@R of classes of equal size, from the nearest neighbors."""
    import faiss

    faiss.omp_set_num_threads(torch.get_num_threads())
    x, y = embeddings.numpy(), labels.numpy()
    index = faiss.IndexFlatIP(x.shape[1])
    index.add(x)
    _, found = index.search(x, positives + 1)
    itself = found == np.arange(len(x))[:, None]
    itself[:, -1] |= ~itself.any(axis=1)
    hits = y[found[~itself].reshape(len(x), positives)] == y[:, None]
    precisions = hits.cumsum(axis=1) / np.arange(1, positives + 1)
    return float((precisions * hits).sum(axis=1).mean() / positives)


def make_calls(embeddings: Tensor, labels: Tensor, positives: int | None) -> dict[str, Call]:
    """The contenders; each returns MAP@R."""
    calls: dict[str, Call] = {
        "first": lambda: retrieval(embeddings, labels, metrics=FIRST)["MAP@R"],
        "all": lambda: retrieval(embeddings, labels)["MAP@R"],
    }
    if positives is not None:
        calls["faiss"] = lambda: search_with_faiss(embeddings, labels, positives)
    return calls


def time_calls(
    calls: dict[tuple[str, str], Call], turns: int, clock: str, least: float
) -> tuple[dict[tuple[str, str], float], dict[tuple[str, str], float], int]:
    """The shortest time of each contender in at least so many turns and seconds, its result, and the number of turns."""
    now = CLOCKS[clock]
    seconds: dict[tuple[str, str], list[float]] = {name: [] for name in calls}
    scores: dict[tuple[str, str], float] = {}
    while calls and (min(map(len, seconds.values())) < turns or min(map(sum, seconds.values())) < least):
        for name, call in calls.items():
            start = now()
            scores[name] = call()
            seconds[name].append(now() - start)
    return {name: min(times) for name, times in seconds.items()}, scores, max(map(len, seconds.values()), default=0)


def list_cells(options: Namespace) -> dict[str, Cell]:
    """The class sizes and the positives per query of every cell, by key."""
    cells: dict[str, Cell] = {}
    for n in options.sizes:
        for positives in POSITIVES:
            cells[f"{n}/{positives}"] = ([positives + 1] * (n // (positives + 1)), positives)
    for name, sizes in CLASSES.items():
        cells[name] = ([max(2, size // 10) for size in sizes] if options.quick else sizes, None)
    return cells


def main() -> None:
    """Measure the cells that are missing, and write each as it comes."""
    parser = make_parser(__doc__, quick="a tenth of the sizes", out="neighbors")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="numbers of samples")
    parser.add_argument("--turns", type=int, default=3, help="calls of each contender per cell, at least")
    parser.add_argument("--clock", choices=CLOCKS, default="wall", help="what is measured; cpu implies one thread")
    parser.add_argument("--page", action="store_true", help="write the tables of the page from the results")
    options = parser.parse_args()
    options.device = "cpu"
    path = result_path("neighbors", options)
    if options.page:
        assert path is not None
        fill(PAGE, make_tables(json.loads(path.read_text())))
        return
    if options.quick:
        options.sizes = [n // 10 for n in options.sizes]
    if options.clock == "cpu":
        torch.set_num_threads(1)
    facts = {**machine("cpu"), **versions("torch", "numpy", "faiss-cpu"), "clock": options.clock}
    head = {"machine": {**facts, "threads": torch.get_num_threads()}}
    report = resume(path, head) or {**head, "cells": {}}
    for keys in list_groups(list_cells(options)):
        missing = {key: cells for key, cells in keys.items() if key not in report["cells"]}
        for key, cell in time_group(missing, options).items():
            report["cells"][key] = cell
            print(key, {name: round(value, 3) for name, value in cell["seconds"].items()}, flush=True)
            write(report, path)


def list_groups(cells: dict[str, Cell]) -> list[dict[str, Cell]]:
    """The cells that are measured together: one with faiss, or all class sizes, which are compared with each other."""
    single = [{key: cell} for key, cell in cells.items() if cell[1] is not None]
    return [*single, {key: cell for key, cell in cells.items() if cell[1] is None}]


def time_group(cells: dict[str, Cell], options: Namespace) -> dict[str, Any]:
    """Time the contenders of some cells in turns."""
    calls: dict[tuple[str, str], Call] = {}
    for key, (sizes, positives) in cells.items():
        calls |= {(key, name): call for name, call in make_calls(*make(sizes), positives).items()}
    least = 0.0 if options.quick else LEAST_SECONDS
    seconds, scores, turns = time_calls(calls, options.turns, options.clock, least)
    return {
        key: {
            "seconds": {name: value for (owner, name), value in seconds.items() if owner == key},
            "MAP@R": {name: value for (owner, name), value in scores.items() if owner == key},
            "turns": turns,
        }
        for key in cells
    }


def duration(seconds: float) -> str:
    """Seconds, or milliseconds below one second."""
    return f"{number(seconds)} s" if seconds >= 1.0 else f"{number(1000.0 * seconds)} ms"


def make_tables(report: dict[str, Any]) -> dict[str, str]:
    """The machine, the table beside faiss, and the table of class sizes."""
    facts, cells = report["machine"], report["cells"]
    clock = "wall time" if facts["clock"] == "wall" else "CPU time, because the machine was shared"
    packages = ", ".join(f"{name} {facts[name]}" for name in ("torch", "numpy", "faiss-cpu"))
    how = f"{facts['cpu']}, {facts['threads']} thread(s); {packages}; {clock}."
    lines = [
        "| samples | positives | faiss | first neighbors | over faiss | all metrics | over faiss |",
        "| --: | --: | --: | --: | --: | --: | --: |",
    ]
    for key, cell in cells.items():
        if "faiss" not in cell["seconds"]:
            continue
        n, positives = key.split("/")
        base, first, everything = (cell["seconds"][name] for name in ("faiss", "first", "all"))
        values = f"{duration(base)} | {duration(first)} | {first / base:.2f} | {duration(everything)}"
        lines.append(f"| {int(n):,} | {positives} | {values} | {everything / base:.2f} |")
    rows = ["| 4,000 samples | first neighbors | all metrics |", "| :-- | --: | --: |"]
    tens = cells["classes of 10"]["seconds"]
    for name in CLASSES:
        taken = cells[name]["seconds"]
        shown = (f"{duration(taken[way])}, {taken[way] / tens[way]:.1f}×" for way in ("first", "all"))
        rows.append(f"| {name} | " + " | ".join(shown) + " |")
    return {"neighbors-machine": how, "neighbors-table": "\n".join(lines), "neighbors-classes": "\n".join(rows)}


if __name__ == "__main__":
    main()
