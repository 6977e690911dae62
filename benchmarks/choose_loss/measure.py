"""Train what is missing.

python -m benchmarks.choose_loss.measure            writes results/choose-loss-cpu.json row by row; run it again to continue
python -m benchmarks.choose_loss.measure --quick    a smoke test; prints, and writes nothing
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Any

import torch

from benchmarks.choose_loss.design import (
    ALL,
    ALL_CLASSES,
    BASE,
    GRADED,
    PAIRWISE,
    QUESTIONS,
    SEARCH_SEED,
    SEEDS,
    Condition,
    rates_to_try,
)
from benchmarks.choose_loss.training import UNSEEN_IMAGES, Row, Split, load_split, run_one
from benchmarks.harness import RESULTS, machine, make_parser, read, versions, write

RESULT = RESULTS / "choose-loss-cpu.json"
Rates = tuple[float, float]


def find(rows: list[Row], **wanted: Any) -> list[Row]:
    """Return the rows with these values."""
    return [row for row in rows if all(row[field] == value for field, value in wanted.items())]


def choose_rates(rows: list[Row], name: str, condition: Condition, metric: str) -> Rates | None:
    """Return the rates with the highest metric on validation characters, None if none were tried."""
    tried = find(rows, loss=name, split="val", **asdict(condition.tuned_at))
    if not tried:
        return None
    best = max(tried, key=lambda row: row[metric])
    return best["rate"], best["proxy_rate"] or 0.0


def find_trainings(rows: list[Row], name: str, condition: Condition, metric: str) -> list[Row]:
    """Return the trainings of a loss in a condition on test characters, by seed, with the rates chosen by a metric."""
    rates = choose_rates(rows, name, condition, metric)
    if rates is None:
        return []
    known = {"rate": rates[0], "proxy_rate": rates[1] or None}
    return sorted(find(rows, loss=name, split="test", **known, **asdict(condition)), key=lambda row: row["seed"])


def plan_search(rows: list[Row]) -> Iterator[tuple[str, Condition, Rates]]:
    """Yield the loss, the condition and the rates of each training of the search; `rows` grow meanwhile."""
    asked = dict.fromkeys(
        (name, condition.tuned_at)
        for question in QUESTIONS.values()
        for condition in question.conditions.values()
        for name in question.losses
    )
    for name, condition in sorted(asked, key=lambda each: each[1] != BASE):  # the base condition first
        for rates in rates_to_try(name, condition, choose_rates(rows, name, BASE, "MAP@R")):
            yield name, condition, rates


def work(report: dict[str, Any], seeds: int) -> None:
    """Train what is missing; every row is on disk as soon as it is known."""
    rows = report["rows"]
    splits = {"train": load_split("train", BASE.images)}
    splits |= {name: load_split(name, UNSEEN_IMAGES) for name in ("val", "test")}

    def add(name: str, condition: Condition, rates: Rates, seed: int, split: str) -> None:
        known = {"rate": rates[0], "proxy_rate": rates[1] or None, "seed": seed, "split": split}
        if find(rows, loss=name, **known, **asdict(condition)):
            return
        rows.append(run_one(name, condition, rates, seed, splits, split, graded=condition == ALL_CLASSES))
        print(describe(rows[-1]), flush=True)
        write(report, RESULT)

    for name, condition, rates in plan_search(rows):
        add(name, condition, rates, SEARCH_SEED, "val")
    for seed in range(seeds):
        for question in QUESTIONS.values():
            for condition in question.conditions.values() if seed < question.seeds else ():
                for name in question.losses:
                    rates = choose_rates(rows, name, condition, question.metric)
                    assert rates is not None
                    add(name, condition, rates, seed, "test")


def describe(row: Row) -> str:
    """Return one line about a training."""
    varied = {field: row[field] for field, value in asdict(BASE).items() if row[field] != value}
    return f"{row['loss']:20} {varied} rate {row['rate']} seed {row['seed']} {row['split']} MAP@R {row['MAP@R']:.3f}"


def smoke() -> None:
    """Train every loss for two steps on 20 classes; the losses for pairs also from pairs."""
    split = load_split("val", 4)
    split = Split(split.pixels[:20], split.groups[:20])
    splits = {"train": split, "test": split}
    condition = Condition(noise=0.2, images=4, classes=20, batch=32, seen=64)
    for name in ALL:
        print(describe(run_one(name, condition, (1e-3, 1e-2), 0, splits, "test", graded=name in GRADED)))
    for name in PAIRWISE:
        print(
            describe(
                run_one(name, replace(condition, noise=0.0, pairs=True), (1e-3, 0.0), 0, splits, "test", graded=False)
            )
        )


def main() -> None:
    """Run what is missing."""
    parser = make_parser(__doc__, quick="two steps of each loss on 20 classes")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.quick:
        smoke()
        return
    head = {"machine": {**machine("cpu"), "threads": 1, **versions("torch", "numpy", "pillow", "matplotlib")}}
    work(read(RESULT) or {**head, "rows": []}, options.seeds)


if __name__ == "__main__":
    main()
