"""The same batch in the miners of pytorch-metric-learning 2.9.0 (``theirs``): the same indices, or the reason why not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from pytorch_metric_learning import miners as theirs
from pytorch_metric_learning.distances import CosineSimilarity, LpDistance
from pytorch_metric_learning.utils import loss_and_miner_utils as their_utils
from torch import Tensor

from likewise import miners
from likewise.formula import Labels
from likewise.testing import make_batch

COSINE = CosineSimilarity()


def tuples(*indices: Tensor) -> set[tuple[int, ...]]:
    return set(zip(*(index.tolist() for index in indices), strict=True))


def chosen_by(indices: tuple[Tensor, ...]) -> Any:
    """Three index tensors are triplets, four are positive and negative pairs; each once."""
    if len(indices) == 3:
        assert len(tuples(*indices)) == len(indices[0])
        return tuples(*indices)
    return tuples(*indices[:2]), tuples(*indices[2:])


def mine(miner: miners.Miner, *batch: Tensor) -> Any:
    return chosen_by(miner.pairs(*batch) if isinstance(miner, miners.PairMiner) else miner.triplets(*batch))


def as_triplets(indices: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Their easy-hard miner says anchors twice."""
    anchors, positives, same_anchors, negatives = indices
    assert torch.equal(anchors, same_anchors)
    return anchors, positives, negatives


def easy_positive(negatives: str) -> Callable[..., Any]:
    miner = theirs.BatchEasyHardMiner(theirs.BatchEasyHardMiner.EASY, negatives, distance=COSINE)
    return lambda *batch: as_triplets(miner(*batch))


ROWS = {
    "multi-similarity": (miners.MultiSimilarityMiner(), theirs.MultiSimilarityMiner()),
    "multi-similarity-wide": (miners.MultiSimilarityMiner(0.4), theirs.MultiSimilarityMiner(0.4)),
    "valid-triplet": (miners.ValidTripletMiner(0.3), theirs.MultiSimilarityMiner(0.3)),
    "pair-margin": (miners.PairMarginMiner(0.7, 0.1), theirs.PairMarginMiner(0.7, 0.1, distance=COSINE)),
    "semihard-margin": (
        miners.SemiHardMiner(0.3),
        theirs.TripletMarginMiner(0.3, type_of_triplets="semihard", distance=COSINE),
    ),
    "batch-hard": (miners.BatchHardMiner(), theirs.BatchHardMiner(distance=COSINE)),
    "batch-hard-euclidean": (miners.BatchHardMiner(), theirs.BatchHardMiner(distance=LpDistance())),
    "easy-positive": (miners.EasyPositiveMiner(), easy_positive("semihard")),
    "easy-positive-default": (
        miners.EasyPositiveMiner(),
        lambda *batch: as_triplets(theirs.BatchEasyHardMiner()(*batch)),
    ),
    "easy-positive-hard": (miners.EasyPositiveMiner(negatives="hard"), easy_positive("hard")),
}


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("batch", ["balanced", "ragged", "two classes"])
@pytest.mark.parametrize("row", ROWS)
def test_same_indices(row: str, batch: str, seed: int) -> None:
    ours, other = ROWS[row]
    embeddings, labels = make_batch(batch, seed=seed)
    assert mine(ours, embeddings, labels) == chosen_by(other(embeddings, labels))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("row", ROWS)
def test_same_indices_with_references(row: str, seed: int) -> None:
    ours, other = ROWS[row]
    embeddings, labels = make_batch("balanced", seed=seed)
    references, reference_labels = make_batch("ragged", seed=seed + 100)
    batch = embeddings, labels, references, reference_labels % 4
    assert mine(ours, *batch) == chosen_by(other(*batch))


def test_semihard_without_a_margin_is_another_rule() -> None:
    """Without a margin ours takes one negative per positive pair, the hardest of theirs with a margin without end."""
    embeddings, labels = make_batch("ragged")
    every = chosen_by(theirs.TripletMarginMiner(9.0, type_of_triplets="semihard", distance=COSINE)(embeddings, labels))
    S = COSINE(embeddings)
    hardest: dict[tuple[int, int], int] = {}
    for anchor, positive, negative in every:
        best = hardest.setdefault((anchor, positive), negative)
        if S[anchor, negative] > S[anchor, best]:
            hardest[anchor, positive] = negative
    found = mine(miners.SemiHardMiner(), embeddings, labels)
    assert found == {(*pair, negative) for pair, negative in hardest.items()}
    assert len(found) < len(every)


def test_semihard_at_the_margin() -> None:
    """A triplet exactly at the margin has a loss of zero; they keep it, we do not."""
    embeddings = torch.tensor([[1.0, 0.0, 0.0, 0.0], [0.5, 0.5, 0.5, 0.5], [0.0, 0.0, 0.0, 1.0]])
    labels = torch.tensor([0, 0, 1])
    other = theirs.TripletMarginMiner(0.5, type_of_triplets="semihard", distance=COSINE)
    assert chosen_by(other(embeddings, labels)) == {(0, 1, 2)}
    assert mine(miners.SemiHardMiner(0.5), embeddings, labels) == set()
    assert mine(miners.SemiHardMiner(0.75), embeddings, labels) == {(0, 1, 2)}


# Distance weighted sampling ----------------------------------------------------------------------------------------


def their_weights(embeddings: Tensor, labels: Tensor, monkeypatch: pytest.MonkeyPatch) -> Tensor:
    """The probabilities from which their miner draws."""
    seen = []
    monkeypatch.setattr(
        their_utils, "get_random_triplet_indices", lambda *_, weights, **__: seen.append(weights) or ([], [], [])
    )
    theirs.DistanceWeightedMiner()(embeddings, labels)
    monkeypatch.undo()
    return seen[0]


def our_weights(embeddings: Tensor, labels: Tensor) -> Tensor:
    weights = miners.DistanceWeightedMiner().weights(
        LpDistance()(embeddings), Labels(labels).masks()[1], embeddings.shape[1]
    )
    return weights / weights.sum(dim=1, keepdim=True).clamp_min(1e-300)


@pytest.mark.parametrize("dim", [3, 5, 32])
@pytest.mark.parametrize("batch", ["balanced", "ragged"])
def test_distance_weights(batch: str, dim: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same probabilities, and those of the density on the sphere; of a row without candidates they say NaN."""
    embeddings, labels = make_batch(batch, dim=dim)
    ours, other = our_weights(embeddings, labels), their_weights(embeddings, labels, monkeypatch)
    torch.testing.assert_close(ours, other.nan_to_num(), rtol=1e-10, atol=1e-10)
    distances = LpDistance()(embeddings)
    d = distances.clamp_min(0.5)
    density = d ** (dim - 2) * (1.0 - d**2 / 4.0) ** ((dim - 3) / 2)
    inverse = torch.where((labels[:, None] != labels) & (distances < 1.4), 1.0 / density, 0.0)
    expected = inverse / inverse.sum(dim=1, keepdim=True)
    torch.testing.assert_close(ours, expected.nan_to_num(), rtol=1e-10, atol=1e-10)


def far_but_for_one_pair() -> tuple[Tensor, Tensor]:
    """In 512 dimensions: neighbors at a distance of 1.3, but for two of different classes that are close together."""
    labels = torch.arange(6).repeat_interleave(2)
    shared = torch.full((12, 1), 0.155**0.5)
    embeddings = torch.cat([shared, torch.eye(12, 511) * 0.845**0.5], dim=1)
    embeddings[2] = embeddings[0] + 0.01 * embeddings[2]
    return embeddings, labels


def test_distance_weights_in_high_dimension(monkeypatch: pytest.MonkeyPatch) -> None:
    """They subtract the largest log-weight of the batch, not of the row: every other anchor underflows and is lost."""
    embeddings, labels = far_but_for_one_pair()
    ours, other = our_weights(embeddings, labels), their_weights(embeddings, labels, monkeypatch)
    others = torch.tensor([1, *range(3, 12)])
    torch.testing.assert_close(ours.sum(dim=1), torch.ones(12))
    assert other[others].isnan().all()
    assert {a for a, _, _ in tuples(*theirs.DistanceWeightedMiner()(embeddings, labels))} == {0, 2}
    assert {a for a, _, _ in mine(miners.DistanceWeightedMiner(), embeddings, labels)} == set(range(12))


def test_distance_weighted_draws() -> None:
    """Ours: one negative for every positive pair.  Theirs: as many as the class is large, with random positives."""
    embeddings, labels = make_batch("balanced")
    anchors, positives, _ = miners.DistanceWeightedMiner().triplets(embeddings, labels)
    positive = Labels(labels).masks()[0]
    assert len(anchors) == len(tuples(anchors, positives)) == positive.sum()
    assert len(theirs.DistanceWeightedMiner()(embeddings, labels)[0]) == 3 * len(labels)
