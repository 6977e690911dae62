"""OPIS against plain loops, on exact and on chunked input."""

from __future__ import annotations

import pytest
import torch
from torch.nn.functional import normalize

from likewise import losses, metrics

GENERATOR = torch.Generator().manual_seed(0)
LABELS = torch.tensor([3, 3, 3, 1, 1, 1, 1, 7, 7, 0, 0, 0, 5])  # the last class has no positive pair
WIDTH = torch.tensor([0.2, 1.5, 0.5, 1.0, 1.0, 1.0, 1.0, 0.8])[LABELS]
CENTERS = torch.randn(8, 6, generator=GENERATOR, dtype=torch.float64)
ROWS = CENTERS[LABELS] + WIDTH[:, None] * torch.randn(13, 6, generator=GENERATOR, dtype=torch.float64)


def oracle(rows, labels, thresholds, beta=1.0, worst=1.0):
    """The definition in the docstring, as loops: the score, and the mean utility."""
    unit = normalize(rows).tolist()
    s = [[sum(x * y for x, y in zip(a, b, strict=True)) for b in unit] for a in unit]
    labels, n = labels.tolist(), len(unit)
    curves = []
    for c in sorted(set(labels)):
        ordered = [(i, j) for i in range(n) for j in range(n) if i != j and labels[i] == c]
        positive = [s[i][j] for i, j in ordered if labels[j] == c]
        negative = [s[i][j] for i, j in ordered if labels[j] != c]
        if not positive or not negative:
            continue
        curve = []
        for t in thresholds:
            sensitivity = sum(x >= t for x in positive) / len(positive)
            specificity = sum(x < t for x in negative) / len(negative)
            total = beta**2 * specificity + sensitivity
            curve.append((1 + beta**2) * specificity * sensitivity / total if total else 0.0)
        curves.append(curve)
    means = [sum(column) / len(curves) for column in zip(*curves, strict=True)]
    differences = [sum((u - m) ** 2 for u, m in zip(c, means, strict=True)) / len(means) for c in curves]
    differences.sort(reverse=True)
    kept = differences[: max(1, round(worst * len(differences)))]
    return sum(kept) / len(kept), sum(means) / len(means)


@pytest.mark.parametrize(("memory", "options"), [(metrics.MEMORY, {"beta": 2.0}), (4096, {"worst": 0.5})])
def test_equals_the_oracle(memory: int, options: dict[str, float]):
    thresholds = torch.linspace(-0.2, 0.9, 23, dtype=torch.float64).tolist()
    found = metrics.opis(ROWS, LABELS, thresholds=(-0.2, 0.9), steps=23, memory=memory, **options)
    score, utility = oracle(ROWS, LABELS, thresholds, **options)
    assert found["OPIS"] == pytest.approx(score, abs=1e-12)
    assert found["utility"] == pytest.approx(utility, abs=1e-12)
    assert found["classes"] == 4
    assert found["thresholds"] == (-0.2, 0.9)


def test_range_of_false_accept_rates():
    """The ends are the thresholds of `verification` at these rates."""
    found = metrics.opis(ROWS, LABELS, far=(0.05, 1.0), steps=7)
    rates = metrics.verification(ROWS, LABELS, far=(0.05, 1.0))
    ends = rates["threshold@1"], rates["threshold@0.05"]
    assert found["thresholds"] == ends
    assert ends[0] < ends[1]
    assert found["OPIS"] == metrics.opis(ROWS, LABELS, thresholds=ends, steps=7)["OPIS"]


def test_the_loss_that_goes_with_it_lowers_it():
    """Gradient steps of threshold-consistent margin on free embeddings make one threshold suit all classes."""
    rows = ROWS[:12].clone().requires_grad_()
    labels = LABELS[:12]
    before = metrics.opis(rows.detach(), labels, thresholds=(0.5, 0.9))["OPIS"]
    optimizer = torch.optim.SGD([rows], lr=1.0)
    for _ in range(100):
        optimizer.zero_grad()
        losses.ThresholdConsistentMarginLoss()(rows, labels).backward()
        optimizer.step()
    assert metrics.opis(rows.detach(), labels, thresholds=(0.5, 0.9))["OPIS"] < 0.1 * before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"far": (0.1, 0.01)}, r"far must be two numbers, the lower one first, but it is \(0.1, 0.01\)"),
        ({"far": (0.0, 0.1)}, "each of far must be above 0"),
        ({"thresholds": (0.5,)}, "thresholds must be two numbers, the lower one first"),
        ({"steps": 0}, "steps must be a whole number ≥ 1, but it is 0"),
        ({"beta": 0.0}, "beta must be a number > 0, but it is 0.0"),
        ({"worst": 1.5}, "worst must be a number > 0 and ≤ 1, but it is 1.5"),
    ],
)
def test_bad_input_gets_one_sentence(options: dict[str, object], message: str):
    with pytest.raises(ValueError, match=message) as caught:
        metrics.opis(ROWS, LABELS, **options)
    assert "\n" not in str(caught.value)


def test_no_class_with_pairs():
    with pytest.raises(ValueError, match="labels must give a class with positive and negative pairs"):
        metrics.opis(ROWS, torch.arange(13), thresholds=(0.1, 0.5))
