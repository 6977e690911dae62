"""What the door refuses beyond the catalogue of the contract."""

from __future__ import annotations

import pytest
import torch

from likewise.core import check_values, hyperparameters
from likewise.core.checks import may_look
from likewise.losses import (
    AngularLoss,
    FastAPLoss,
    HistogramLoss,
    MarginLoss,
    MultiSimilarityLoss,
    NPairsLoss,
    NTXentLoss,
    QuadrupletLoss,
    TripletLoss,
)
from likewise.miners import DistanceWeightedMiner, MultiSimilarityMiner, RandomMiner, SemiHardMiner

E, Y = torch.randn(4, 3), torch.tensor([0, 0, 1, 1])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: MultiSimilarityLoss(alpha=0.0), "MultiSimilarityLoss: alpha must be a number > 0, but it is 0.0"),
        (lambda: MultiSimilarityLoss(beta=float("nan")), "beta must be a number > 0, but it is nan"),
        (lambda: MultiSimilarityLoss(beta="50"), "beta must be a number > 0, but it is '50'"),
        (lambda: FastAPLoss(bins=2.5), "FastAPLoss: bins must be a whole number ≥ 1, but it is 2.5"),
        (lambda: FastAPLoss(bins=True), "bins must be a whole number"),
        (lambda: AngularLoss(90.0), "AngularLoss: alpha must be a number > 0 and ≤ 66, but it is 90.0"),
        (lambda: NTXentLoss(reduction="average"), "reduction must be one of 'mean', 'nonzero', 'sum', 'none'"),
        (lambda: NTXentLoss(backend="cuda"), "backend must be one of 'auto', 'dense', but it is 'cuda'"),
        (lambda: NTXentLoss(similarity="l2"), "similarity must be one of"),
        (lambda: NTXentLoss(miner="hard"), "miner must be a miner of likewise.miners or None, but it is a str"),
        (lambda: HistogramLoss(similarity="dot"), "HistogramLoss: similarity must be Cosine, but it is 'dot'"),
        (lambda: MarginLoss(num_classes=0), "num_classes must be at least 1, but it is 0"),
        (lambda: MultiSimilarityMiner(-1.0), "MultiSimilarityMiner: epsilon must be a number ≥ 0, but it is -1.0"),
        (lambda: SemiHardMiner(0.0), "SemiHardMiner: margin must be a number > 0 or None"),
        (lambda: RandomMiner(0), "RandomMiner: n must be a whole number ≥ 1, but it is 0"),
        (lambda: NTXentLoss()(E, Y, E), "reference_labels must be given together with references"),
        (lambda: NTXentLoss()(E, Y, None, Y), "references must be given together with reference_labels"),
        (lambda: NTXentLoss()(E, Y, E[:, :2], Y), "references must have the 3 dimensions of embeddings, but have 2"),
        (lambda: NTXentLoss()(E, Y, E, Y[:3]), "reference_labels must have one entry for each of the 4 references"),
        (lambda: MarginLoss(num_classes=2)(E, Y + 1), "labels must be in 0..1, one beta for each class.*start at 1"),
        (lambda: QuadrupletLoss().from_similarity(E @ E.T, Y), "cannot be computed from similarities alone"),
        (lambda: NPairsLoss(l2=0.1).from_similarity(E @ E.T, Y), "its l2 term is a function of the embeddings' norms"),
        (lambda: NTXentLoss().from_similarity(E, Y), "relation must be a Relation where similarities are not square"),
        (
            lambda: TripletLoss(miner=DistanceWeightedMiner()).from_similarity(E @ E.T, Y),
            "dim must be given where DistanceWeightedMiner sees similarities alone",
        ),
        (
            lambda: TripletLoss(miner=DistanceWeightedMiner(), similarity="dot")(E, Y),
            "similarities do not determine Euclidean distances of unit vectors",
        ),
    ],
)
def test_one_sentence(call, message):
    with pytest.raises((ValueError, TypeError), match=message) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_values_are_looked_at_on_the_cpu_and_elsewhere_on_request():
    assert may_look(torch.zeros(1))
    assert not may_look(torch.zeros(1, device="meta"))
    with check_values():
        assert may_look(torch.zeros(1))


def test_large_finite_embeddings_are_not_taken_for_broken_ones():
    """Their sum overflows, and the embeddings are fine."""
    embeddings = torch.full((4, 3), 3e38)
    embeddings[::2, 0] = -3e38
    assert torch.isfinite(MultiSimilarityLoss()(embeddings, Y))


def test_hyperparameters_are_declared_once():
    declared = hyperparameters(MultiSimilarityLoss)
    assert list(declared) == ["alpha", "beta", "base"]
    assert declared["beta"].limits() == "> 0"
    assert (declared["base"].search, declared["base"].step) == ((0.0, 1.0), 0.1)
