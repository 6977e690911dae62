"""The tables of docs/choose-a-loss.md, from the results.

python -m benchmarks.choose_loss.tables
"""

from __future__ import annotations

import json
from dataclasses import asdict
from statistics import fmean
from typing import Any

import torch

from benchmarks.choose_loss.design import BASELINE, CHECKED, FOR_CLASSES, GRADED, HAVE_PROXIES, Condition, Question
from benchmarks.choose_loss.measure import choose_rates, find
from benchmarks.choose_loss.training import Row
from benchmarks.harness import DOCS, table
from likewise.metrics import Interval, t_interval

BIRDS = DOCS.parent / "studies" / "birds" / "results"
FEWEST = 3  # seeds
LOWER_IS_BETTER = ("EER",)


def read_scores(rows: list[Row], name: str, condition: Condition, metric: str) -> dict[int, float]:
    """Return a metric on test characters by seed, in percent."""
    rates = choose_rates(rows, name, condition)
    if rates is None:
        return {}
    known = {"rate": rates[0], "proxy_rate": rates[1] or None, "split": "test"}
    found = find(rows, loss=name, **known, **asdict(condition))
    return {row["seed"]: 100 * row[metric] for row in found if metric in row}


def subtract(ours: dict[int, float], theirs: dict[int, float]) -> Interval | None:
    """Return the mean difference over common seeds and its 95% interval; None with fewer than three."""
    seeds = [seed for seed in ours if seed in theirs]
    return t_interval([ours[seed] - theirs[seed] for seed in seeds]) if len(seeds) >= FEWEST else None


def judge(difference: Interval, metric: str = "MAP@R") -> str:
    """Return "better", "worse" or "not distinguishable"."""
    if difference.low <= 0.0 <= difference.high:
        return "not distinguishable"
    return "better" if (difference.mean > 0.0) != (metric in LOWER_IS_BETTER) else "worse"


def show_interval(difference: Interval) -> str:
    """Return a difference with its interval, and whether it is one."""
    shown = f"{difference.mean:+.1f} ({difference.low:+.1f} to {difference.high:+.1f})".replace("-", "−")
    return f"not distinguishable, {shown}" if judge(difference) == "not distinguishable" else shown


def show_cell(ours: dict[int, float], baseline: dict[int, float] | None, metric: str) -> str:
    """Return the mean over seeds and the difference from the baseline, half of its interval after ±.

    Bold: better than the baseline; italic: worse.
    """
    if len(ours) < FEWEST:
        return "–"
    mean = f"{sum(ours.values()) / len(ours):.1f}"
    difference = None if baseline is None else subtract(ours, baseline)
    if difference is None:
        return mean
    half = (difference.high - difference.low) / 2
    mark = {"better": "**", "worse": "*", "not distinguishable": ""}[judge(difference, metric)]
    return f"{mark}{mean}{mark} ({difference.mean:+.1f} ± {half:.1f})".replace("-", "−")


def make_question_table(rows: list[Row], question: Question) -> str:
    """Return a table of one question: a row for each loss, a column for each condition and metric."""
    heads = [
        metric if len(question.conditions) == 1 else head if len(question.metrics) == 1 else f"{metric}, {head}"
        for metric in question.metrics
        for head in question.conditions
    ]
    lines = []
    for name in question.losses:
        cells = []
        for metric in question.metrics:
            for condition in question.conditions.values():
                baseline = None if name == BASELINE else read_scores(rows, BASELINE, condition, metric)
                cells.append(show_cell(read_scores(rows, name, condition, metric), baseline, metric))
        lines.append([name, *cells])
    corner = question.metrics[0] if len(question.metrics) == 1 else "loss"
    return table([corner, *heads], lines)


def make_rates_table(rows: list[Row]) -> str:
    """Return the chosen learning rates."""
    lines = []
    for name in (*FOR_CLASSES, *GRADED):
        batches = (128,) if name in GRADED else (64, 128, 512)
        found = [choose_rates(rows, name, Condition(batch=batch)) for batch in batches]
        cells = [f"{rates[0]:g}" if rates else "–" for rates in found]
        cells = ["–", cells[0], "–"] if name in GRADED else cells
        proxies = [rates[1] for rates in found if rates] if name in HAVE_PROXIES else []
        lines.append([name, *cells, f"{proxies[0]:g}" if proxies else "–"])
    return table(["learning rate", "batches of 64", "of 128", "of 512", "proxies"], lines)


def describe_check(rows: list[Row]) -> str:
    """Return whether other rates would have been better where they were not searched, in words."""
    name, condition = CHECKED
    tried = find(rows, loss=name, split="val", **asdict(condition))
    rates = choose_rates(rows, name, condition)
    assert rates is not None
    used = next(row for row in tried if (row["rate"], row["proxy_rate"]) == rates)
    best = max(tried, key=lambda row: row["MAP@R"])
    return (
        f"For {name} with {condition.classes} classes, all {len(tried)} rates were tried on validation characters afterward: the "
        f"rates of the base condition give MAP@R {100 * used['MAP@R']:.1f}, the best ones ({best['rate']:g} for the network, "
        f"{best['proxy_rate']:g} for proxies) {100 * best['MAP@R']:.1f}."
    )


def compare_machines(report: dict[str, Any]) -> str:
    """Return how much the same runs differ on two machines, in words."""
    fields = ("loss", *asdict(Condition()), "rate", "proxy_rate", "seed", "split")
    rows = {tuple(row[field] for field in fields): row["MAP@R"] for row in report["rows"]}
    earlier = {tuple(row[field] for field in fields): row["MAP@R"] for row in report["earlier"]["rows"]}
    differences = [100 * abs(rows[key] - earlier[key]) for key in earlier if key in rows]
    return (
        f"{len(differences)} runs were repeated on both machines; their MAP@R differs by {fmean(differences):.1f} points on "
        f"average, at most by {max(differences):.1f}."
    )


# ------------------------------------------------------------------------------------------------ birds


def read_birds() -> dict[str, dict[int, float]]:
    """Return MAP@R on test birds in percent, by method and seed, with 512 dimensions."""
    found = {}
    for name in ("verdict", "recent"):
        for row in json.loads((BIRDS / f"{name}.json").read_text())["table"]:
            if row["dim"] == 512:
                found[row["method"]] = {seed: 100 * score for seed, score in enumerate(row["MAP@R"]["scores"])}
    return found


def make_birds_table() -> str:
    """Return the losses of this page, and the best ones, on birds."""
    birds = read_birds()
    shown = (
        *("SoftTriple", "AdaFace", "CosFace", "ArcFace", "SupAP", "Proxy-Anchor", "Smooth-AP"),
        *("Contrastive", "Triplet, semi-hard", "NT-Xent", "Multi-similarity"),
    )
    lines = []
    for name in shown:
        difference = None if name == BASELINE else subtract(birds[name], birds[BASELINE])
        mean = f"{sum(birds[name].values()) / len(birds[name]):.2f}"
        lines.append([name, mean, show_interval(difference) if difference else "–"])
    return table(["loss", "MAP@R", "against contrastive"], lines)


def compute_error(histogram: dict[str, list[int]], far: float) -> tuple[float, float]:
    """Return the equal error rate and the true-accept rate at a false-accept rate, from counts of similarities.

    The error rate is interpolated between two thresholds, as in `likewise.metrics.verification`.
    """
    accepted = [torch.tensor(histogram[kind]).double().flip(0).cumsum(0) for kind in ("positive", "negative")]
    true, false = (torch.cat([each.new_zeros(1), each / each[-1]]) for each in accepted)
    gap = false + true - 1.0  # ascending from −1 to 1
    after = int((gap >= 0.0).nonzero()[0])
    fraction = -gap[after - 1] / (gap[after] - gap[after - 1])
    error = false[after - 1] + fraction * (false[after] - false[after - 1])
    return float(error), float(true[false <= far].max())


def make_birds_verification_table() -> str:
    """Return verification on birds: the stored models, one seed each."""
    lines = []
    for model in json.loads((BIRDS / "models.json").read_text())["models"]:
        error, rate = compute_error(model["histogram"], 1e-2)
        lines.append(
            [model["method"], f"{100 * model['test']['MAP@R']:.1f}", f"{100 * error:.1f}", f"{100 * rate:.1f}"]
        )
    return table(["birds, one seed", "MAP@R", "EER", "TAR at FAR 1%"], lines)
