"""Same or not: thresholds and probabilities, on data whose truth is known."""

from __future__ import annotations

import json
from dataclasses import replace
from math import comb, inf, sqrt

import numpy as np
import pytest
import torch

from likewise.search.calibration import (
    BINS,
    Calibration,
    Point,
    calibrate,
    calibration_error,
    count_pairs,
    isotonic,
    monotone_map,
)
from likewise.testing import loop_over
from likewise.trunks import Card, Embedder, read_card


def classes(
    count: int, each: int, *, seed: int, noise: float = 0.9, dim: int = 24
) -> tuple[torch.Tensor, torch.Tensor]:
    """Images scattered around the middles of their classes."""
    chance = torch.Generator().manual_seed(seed)
    middles = torch.randn(count, dim, generator=chance)
    images = middles.repeat_interleave(each, 0) + noise * torch.randn(count * each, dim, generator=chance)
    return images, torch.arange(count).repeat_interleave(each)


def fresh_pairs(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Similarities of genuine pairs and of impostors, each pair from classes of its own, so that all are independent."""
    images, _ = classes(2 * count, 2, seed=seed)
    units = torch.nn.functional.normalize(images, dim=1).view(2 * count, 2, -1)
    genuine = (units[:count, 0] * units[:count, 1]).sum(1)
    impostors = (units[count:, 0] * units[:count, 0]).sum(1)
    return genuine.numpy(), impostors.numpy()


@pytest.fixture(scope="module")
def learned() -> Calibration:
    return calibrate(*classes(500, 5, seed=0))


def test_thresholds_let_as_many_through_as_wanted(learned: Calibration):
    """On pairs of new classes, within three standard deviations of a binomial."""
    genuine, impostors = fresh_pairs(60_000, seed=1)
    for point in learned.points:
        through = int((impostors >= point.threshold).sum())
        spread = sqrt(len(impostors) * point.far * (1.0 - point.far))
        assert abs(through - len(impostors) * point.far) < 3.0 * spread, point
        accepted = float((genuine >= point.threshold).mean())
        assert abs(accepted - point.tar) < 0.03


def test_probabilities_are_frequencies(learned: Calibration):
    """On as many genuine pairs as impostors of new classes: of pairs that are given p, a share of about p is genuine."""
    genuine, impostors = fresh_pairs(60_000, seed=2)
    said = np.array([learned.probability(each) for each in np.concatenate([genuine, impostors])])
    truth = np.arange(len(said)) < len(genuine)
    assert said.min() > 0.0
    assert said.max() < 1.0
    edges = np.quantile(said, np.linspace(0, 1, 11))
    step = np.searchsorted(edges[1:-1], said, side="right")
    gaps = [abs(said[step == each].mean() - truth[step == each].mean()) for each in range(10)]
    assert np.mean(gaps) < 0.01
    assert max(gaps) < 0.03
    assert learned.error is not None
    assert learned.error < 0.02


def test_a_map_that_is_wrong_has_a_large_error(learned: Calibration):
    """The same map, pushed towards certainty."""
    images, labels = classes(300, 4, seed=3)
    counts = count_pairs(torch.nn.functional.normalize(images, dim=1), labels)
    similarities, probabilities = np.array(learned.similarities), np.array(learned.probabilities)
    odds = (probabilities / (1.0 - probabilities)) ** 3
    right = calibration_error(similarities, probabilities, *counts)
    assert right < 0.02
    assert calibration_error(similarities, odds / (1.0 + odds), *counts) > 3 * right


def test_two_normal_distributions_give_the_logistic_curve():
    """N(0.6, 0.1²) against N(0.2, 0.1²): log odds (0.4 / 0.01)(s − 0.4), worked out on paper."""
    chance = np.random.default_rng(0)
    drawn = [np.histogram(chance.normal(mean, 0.1, 400_000), BINS, (-1.0, 1.0))[0] for mean in (0.6, 0.2)]
    similarities, probabilities = monotone_map(*drawn)
    assert (np.diff(probabilities) >= 0.0).all()
    assert (np.diff(similarities) > 0.0).all()
    for s in np.linspace(0.3, 0.5, 21):
        truth = 1.0 / (1.0 + np.exp(-40.0 * (s - 0.4)))
        assert abs(np.interp(s, similarities, probabilities) - truth) < 0.02


@loop_over("n", [1, 2, 3, 5, 8, 12] * 5)
def test_isotonic_is_the_maximum_of_minima(n: int):
    """The textbook's formula: at i, the maximum over a ≤ i of the minimum over b ≥ i of the mean of a … b."""
    y, w = np.random.uniform(-5, 5, n).round(), np.random.uniform(0.1, 5, n)  # rounded, for ties
    found = isotonic(y, w)
    mean = {(a, b): np.average(y[a : b + 1], weights=w[a : b + 1]) for a in range(n) for b in range(a, n)}
    truth = [max(min(mean[a, b] for b in range(i, n)) for a in range(i + 1)) for i in range(n)]
    assert np.allclose(found, truth, atol=1e-9)


def test_pairs_are_counted_once(monkeypatch: pytest.MonkeyPatch):
    """Tiles of seven rows, against all pairs one by one."""
    monkeypatch.setattr("likewise.search.calibration.ROWS", 7)
    images, labels = classes(8, 4, seed=4)
    units = torch.nn.functional.normalize(images, dim=1)
    counts = count_pairs(units, labels)
    pairs = [(a, b) for a in range(32) for b in range(a)]
    for kind, found in zip((True, False), counts, strict=True):
        mine = [float(units[a] @ units[b]) for a, b in pairs if (labels[a] == labels[b]) == kind]
        truth = np.histogram(mine, BINS, (-1.0, 1.0))[0]
        assert found.sum() == len(mine)
        assert np.abs(np.cumsum(found) - np.cumsum(truth)).max() <= 1  # on an edge, to one side or the other
    assert counts[0].sum() == 8 * comb(4, 2)


def test_another_prior_shifts_the_odds():
    """One genuine pair in a hundred: the odds are 1/99 of those at even chances."""
    learned = Calibration((), (-1.0, 1.0), (0.2, 0.8), 1, 1)
    even, rare = learned.probability(0.7), learned.probability(0.7, prior=0.01)
    assert np.isclose(rare / (1 - rare), even / (1 - even) / 99.0)
    with pytest.raises(ValueError, match=r"prior must be between 0 and 1, but it is 1.0"):
        learned.probability(0.5, prior=1.0)


def test_json_and_thresholds_that_nothing_reaches():
    learned = Calibration((Point(0.1, 0.4, 0.9), Point(1e-3, inf, 0.0)), (0.0, 1.0), (0.1, 0.9), 7, 900, 0.01)
    text = json.dumps(learned.as_dict(), allow_nan=False)
    assert Calibration.from_dict(json.loads(text)) == learned
    assert not learned.same(1.0, far=1e-3)
    assert learned.unreliable_rates() == (1e-3,)
    with pytest.raises(ValueError, match=r"far must be one of the calibrated rates \(0.1, 0.001\), but it is 0.05"):
        learned.same(0.5, far=0.05)
    with pytest.raises(ValueError, match=r"the calibration must be one that likewise wrote"):
        Calibration.from_dict({"points": 3})


def test_few_pairs_claim_little():
    """Two classes that are perfectly apart: two genuine pairs allow no more than one in four, on either side."""
    found = calibrate(torch.eye(2)[[0, 0, 1, 1]], ["a", "a", "b", "b"], far=[0.5])
    assert found.probability(1.0) == pytest.approx(1.0 - 1.0 / 6.0)  # four impostors
    assert found.probability(-1.0) == pytest.approx(1.0 / 4.0)
    assert found.error is None


@loop_over(
    "embeddings, labels, said",
    [
        (torch.zeros(3), [1, 1, 2], r"embeddings must be finite numbers \(n, d\), but the shape is \(3,\)"),
        (torch.full((2, 2), torch.nan), [1, 1], r"embeddings must be finite"),
        (torch.eye(3), [1, 2, 3], r"labels must give at least one genuine pair, but there is none"),
        (torch.eye(3), [1, 1, 1], r"labels must give at least one impostor pair, but there is none"),
    ],
)
def test_refusals(embeddings: torch.Tensor, labels: list[int], said: str):
    with pytest.raises(ValueError, match=said):
        calibrate(embeddings, labels)


def test_cards_keep_it_and_older_cards_are_read(tmp_path):
    """A card without the entry, as it was written before there was one, and one with it."""
    card = Embedder("convnet", 8).card()
    old = json.loads(card.to_json())
    assert "calibration" not in old
    assert Card.from_json(json.dumps(old)) == card
    learned = Calibration((Point(0.1, 0.4, 0.9),), (0.0, 1.0), (0.1, 0.9), 7, 900)
    again = Card.from_json(replace(card, calibration=learned.as_dict()).to_json())
    assert again.calibration is not None
    assert Calibration.from_dict(again.calibration) == learned
    assert json.loads(again.to_json())["format"] == 1
    Embedder("convnet", 8).save(tmp_path / "m.safetensors")
    assert read_card(tmp_path / "m.safetensors").calibration is None
