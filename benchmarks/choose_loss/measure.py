"""Train what is missing.

python -m benchmarks.choose_loss.measure            writes results/choose-loss-cpu.json row by row; run it again to continue
python -m benchmarks.choose_loss.measure --quick    a smoke test; prints, and writes nothing
"""

from __future__ import annotations

import itertools
from dataclasses import asdict, replace
from typing import Any

import torch

from benchmarks.choose_loss.design import (
    ALL,
    BASE,
    CHECKED,
    GRADED,
    PAIRWISE,
    QUESTIONS,
    SEARCH_SEED,
    Condition,
    metrics_of,
    rates_to_try,
    tuned_at,
)
from benchmarks.choose_loss.training import UNSEEN_IMAGES, Row, Split, load_split, run_one
from benchmarks.harness import RESULTS, machine, make_parser, read, versions, write

RESULT = RESULTS / "choose-loss-cpu.json"
Rates = tuple[float, float]


def all_rows(report: dict[str, Any]) -> list[Row]:
    """Return all runs: those of the same design on another machine first, so that later ones replace them."""
    rows: list[Row] = report.get("earlier", {"rows": []})["rows"] + report["rows"]
    return rows


def find(rows: list[Row], **wanted: Any) -> list[Row]:
    """Return the rows with these values."""
    return [row for row in rows if all(row[field] == value for field, value in wanted.items())]


def choose_rates(rows: list[Row], name: str, condition: Condition) -> Rates | None:
    """Return the rates with the highest metric on validation characters, None if none were tried.

    The metric is MAP@R, and H-AP for the losses for a hierarchy.
    """
    tried = find(rows, loss=name, split="val", **asdict(tuned_at(name, condition)))
    if not tried:
        return None
    best = max(tried, key=lambda row: row["H-AP" if name in GRADED else "MAP@R"])
    return best["rate"], best["proxy_rate"] or 0.0


def work(report: dict[str, Any]) -> None:
    """Train what is missing; every row is on disk as soon as it is known."""
    rows = report["rows"]
    splits = {"train": load_split("train", BASE.images)}
    splits |= {name: load_split(name, UNSEEN_IMAGES) for name in ("val", "test")}

    def add(name: str, condition: Condition, rates: Rates, seed: int, split: str) -> None:
        known = {"rate": rates[0], "proxy_rate": rates[1] or None, "seed": seed, "split": split}
        if find(all_rows(report), loss=name, **known, **asdict(condition)):
            return
        metrics = metrics_of(name, condition) if split == "test" else {"H-AP" if name in GRADED else "MAP@R", "MAP@R"}
        rows.append(run_one(name, condition, rates, seed, splits, split, metrics))
        print(describe(rows[-1]), flush=True)
        write(report, RESULT)

    def search(name: str, condition: Condition) -> Rates:
        where = tuned_at(name, condition)
        base = None if name in GRADED or where == BASE else search(name, BASE)
        for rates in rates_to_try(name, where, base):
            add(name, where, rates, SEARCH_SEED, "val")
        chosen = choose_rates(rows, name, condition)
        assert chosen is not None
        return chosen

    for rates in rates_to_try(CHECKED[0], BASE, None):
        add(*CHECKED, rates, SEARCH_SEED, "val")
    for question in QUESTIONS.values():
        seeds = range(question.seeds)
        for condition, seed, name in itertools.product(question.conditions.values(), seeds, question.losses):
            add(name, condition, search(name, condition), seed, "test")


def describe(row: Row) -> str:
    """Return one line about a training."""
    varied = {field: row[field] for field, value in asdict(BASE).items() if row[field] != value}
    return f"{row['loss']:20} {varied} rate {row['rate']} seed {row['seed']} {row['split']} MAP@R {row['MAP@R']:.3f}"


def smoke() -> None:
    """Train every loss for two steps on 20 classes; the pair losses also from pairs."""
    split = load_split("val", 4)
    split = Split(split.pixels[:20], split.groups[:20])
    splits = {"train": split, "test": split}
    condition = Condition(noise=0.2, images=4, classes=20, batch=32, seen=64)
    for name in ALL:
        metrics = {"MAP@R", "H-AP"} if name in GRADED else {"MAP@R", "EER"}
        print(describe(run_one(name, condition, (1e-3, 1e-2), 0, splits, "test", metrics)))
    pairs = replace(condition, noise=0.0, pairs=True)
    for name in PAIRWISE:
        print(describe(run_one(name, pairs, (1e-3, 0.0), 0, splits, "test", {"MAP@R"})))


def main() -> None:
    """Run what is missing."""
    parser = make_parser(__doc__, quick="two steps of each loss on 20 classes")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.quick:
        smoke()
        return
    head = {"machine": {**machine("cpu"), "threads": 1, **versions("torch", "numpy", "pillow", "matplotlib")}}
    work(read(RESULT) or {**head, "rows": []})


if __name__ == "__main__":
    main()
