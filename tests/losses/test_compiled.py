"""Many losses, compiled in one process."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import partial

import pytest
import torch
from torch import Tensor

from likewise import losses, miners
from likewise.testing import evaluate_without_synchronization, make_batch

PAIR_LOSSES = (
    losses.ContrastiveLoss,
    losses.TripletLoss,
    losses.MarginLoss,
    losses.LiftedStructureLoss,
    losses.NPairsLoss,
    losses.CircleLoss,
    losses.NTXentLoss,
    losses.NCALoss,
    losses.MultiSimilarityLoss,
)
PROXY_LOSSES = (losses.SoftmaxLoss, losses.CosFaceLoss, losses.ArcFaceLoss)


MINED = {
    "semi-hard": partial(losses.TripletLoss, miner=miners.SemiHardMiner()),
    "semi-hard band": partial(losses.TripletLoss, miner=miners.SemiHardMiner(0.2)),
    "batch hard": partial(losses.TripletLoss, miner=miners.BatchHardMiner()),
    "pairs of triplets": partial(losses.MultiSimilarityLoss, miner=miners.BatchHardMiner()),
    "all negatives in a range": partial(
        losses.TripletLoss, miner=miners.BatchEasyHardMiner("easy", "all", negative_range=(0.0, 0.9))
    ),
    "pairs": partial(losses.ContrastiveLoss, miner=miners.PairMarginMiner(0.7, 0.1)),
    "triplets of pairs": partial(losses.TripletLoss, miner=miners.ValidTripletMiner()),
}


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    torch.compiler.reset()
    with warnings.catch_warnings():
        # the tracer itself touches something in torch that torch deprecates
        warnings.simplefilter("ignore", DeprecationWarning)
        yield
    torch.compiler.reset()


def compiled_value(loss: torch.nn.Module, embeddings: Tensor, labels: Tensor) -> Tensor:
    return torch.compile(loss, fullgraph=True, backend="eager")(embeddings, labels).detach()


def test_twelve_losses_in_one_process() -> None:
    """Torch keeps eight graphs for one function; no two losses share one, and none is traced twice."""
    embeddings, labels = make_batch("ragged")
    assert torch._dynamo.config.recompile_limit <= 8
    with torch._dynamo.config.patch(error_on_recompile=True):
        for loss in [make() for make in PAIR_LOSSES] + [make(10, 5) for make in PROXY_LOSSES]:
            torch.testing.assert_close(compiled_value(loss, embeddings, labels), loss(embeddings, labels).detach())


@pytest.mark.parametrize("name", MINED)
def test_miners_are_captured(name: str) -> None:
    embeddings, labels = make_batch("ragged")
    loss = MINED[name]()
    torch.testing.assert_close(compiled_value(loss, embeddings, labels), loss(embeddings, labels).detach())


def test_indices_of_a_miner_are_captured() -> None:
    """Also with labels, which are read per class."""
    embeddings, labels = make_batch("ragged")
    triplets = miners.SemiHardMiner().triplets(embeddings, labels)
    loss = losses.MarginLoss(num_classes=10)
    compiled = torch.compile(loss, fullgraph=True, backend="eager")(embeddings, labels, relation=triplets)
    torch.testing.assert_close(compiled.detach(), loss(embeddings, labels, relation=triplets).detach())


@pytest.mark.parametrize("make", [miners.DistanceWeightedMiner, partial(miners.RandomMiner, 20)])
def test_random_miners_are_captured(make) -> None:
    embeddings, labels = make_batch("ragged")
    assert torch.isfinite(compiled_value(losses.MarginLoss(miner=make()), embeddings, labels))


@pytest.mark.parametrize(
    "make",
    [
        partial(losses.ArcFaceLoss, 10, 5),
        lambda margin: losses.MultiSimilarityLoss(miner=miners.PairMarginMiner(margin, margin)),
    ],
)
def test_another_number_is_another_graph(make) -> None:
    """From the second value on torch takes a number for one that changes; conditions must bear that."""
    embeddings, labels = make_batch("ragged")
    for margin in (0.1, 0.2, 0.3):
        loss = make(margin=margin) if isinstance(make, partial) else make(margin)
        torch.testing.assert_close(compiled_value(loss, embeddings, labels), loss(embeddings, labels).detach())


@pytest.mark.parametrize(
    "make",
    [
        partial(losses.DirectionRegularized, losses.TripletLoss()),
        partial(losses.DirectionRegularized, losses.MultiSimilarityLoss(miner=miners.MultiSimilarityMiner())),
        lambda: losses.DirectionRegularized(losses.ProxyNCALoss(10, 5)),
        lambda: losses.DirectionRegularized(losses.ProxyAnchorLoss(10, 5)),
        lambda: losses.LanguageGuidance(losses.TripletLoss(soft=True), torch.randn(10, 4).double()),
        lambda: losses.Matryoshka(losses.AngularLoss(), [2, 5]),
        lambda: losses.WeightedSum({losses.QuadrupletLoss(): 1.0, losses.EmbeddingNorm(): 0.1}),
        lambda: losses.CrossBatchMemory(losses.TripletLoss(soft=True), 40),
        lambda: losses.CrossBatchMemory(losses.TripletLoss(miner=miners.SemiHardMiner(0.2)), 40),
        lambda: losses.CrossBatchMemory(losses.ProxyAnchorLoss(10, 5), 40),
    ],
)
def test_wrappers_never_wait(make) -> None:
    """The second batch too, which meets a memory."""
    loss, twin = make(), make()
    twin.load_state_dict(loss.state_dict())
    for seed in range(2):
        embeddings, labels = make_batch("ragged", seed=seed)
        value = evaluate_without_synchronization(loss, embeddings, labels)
        torch.testing.assert_close(value, twin(embeddings, labels).detach())
