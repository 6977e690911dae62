"""Large batches whose kernels are replayed: the positives of anchors are an input of the graph.

A recorder on the CPU takes the place of CUDA graphs; it refuses operations that would synchronize.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor, nn

from likewise import losses, miners
from likewise.engines import graphs
from likewise.formula import check_values
from tests.engines.fake_recorder import FakeRecorder

replay = sys.modules["likewise.engines.replay"]  # the package's attribute of that name is the function

SERVED: dict[str, Callable[[], nn.Module]] = {
    "all triplets": losses.TripletLoss,
    "soft triplets": lambda: losses.TripletLoss(soft=True),
    "hardest triplets": lambda: losses.TripletLoss(miner=miners.BatchHardMiner()),
    "semi-hard triplets": lambda: losses.TripletLoss(0.3, miner=miners.SemiHardMiner()),
    "triplets of a kind": lambda: losses.TripletLoss(miner=miners.TripletMarginMiner(0.2, kind="easy")),
    "FastAP": losses.FastAPLoss,
    "FastAP of mined pairs": lambda: losses.FastAPLoss(miner=miners.PairMarginMiner(0.9, 0.1)),
    "histogram": lambda: losses.HistogramLoss(bins=20),
    "lifted structure": losses.LiftedStructureLoss,
    "quadruplets": losses.QuadrupletLoss,
    "multi-similarity": losses.MultiSimilarityLoss,
}


@pytest.fixture(autouse=True)
def recorder(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeRecorder]:
    """Record on the CPU, let kernels run any batch, and read no values, as on a GPU."""
    fake = FakeRecorder()
    for module in (sys.modules["likewise.engines.dispatch"], replay):
        monkeypatch.setattr(module, "KERNELS_IN_GRAPH", (0, 2**31))
    monkeypatch.setattr(graphs, "_GRAPHS", graphs.Graphs(fake, after=1))
    monkeypatch.setattr(graphs, "UP_TO", 0)
    with check_values(False):
        yield fake


def batch(seed: int, classes: tuple[int, ...] = (3,) * 6) -> tuple[Tensor, Tensor]:
    """Return embeddings of classes of these sizes, in random order."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(len(classes)).repeat_interleave(torch.tensor(classes))
    labels = labels[torch.randperm(len(labels), generator=generator)]
    return torch.randn(len(labels), 5, generator=generator), labels


def outcome(loss: nn.Module, embeddings: Tensor, labels: Tensor) -> list[Tensor]:
    leaf = embeddings.clone().requires_grad_()
    value = loss(leaf, labels)
    return [value.detach(), *torch.autograd.grad(3.0 * value, [leaf])]


def plainly(loss: nn.Module, embeddings: Tensor, labels: Tensor) -> list[Tensor]:
    backend, loss.backend = loss.backend, "dense"
    try:
        return outcome(loss, embeddings, labels)
    finally:
        loss.backend = backend


def check(loss: nn.Module, embeddings: Tensor, labels: Tensor) -> None:
    torch.testing.assert_close(
        outcome(loss, embeddings, labels), plainly(loss, embeddings, labels), rtol=2e-5, atol=2e-6
    )


@pytest.mark.parametrize("name", SERVED)
def test_replayed_on_other_batches(name: str, recorder: FakeRecorder) -> None:
    loss = SERVED[name]()
    for seed in range(4):
        check(loss, *batch(seed))
    assert (recorder.captures, recorder.replays) == (1, 3)


@pytest.mark.parametrize("name", ["all triplets", "lifted structure", "quadruplets"])
def test_numbers_of_positives_have_recordings(name: str, recorder: FakeRecorder) -> None:
    loss = SERVED[name]()
    uneven, alone = (4, 2, 3, 4, 2, 3), (3, 1, 4, 1, 5, 4)  # the last class of one sample has no positive
    for seed in range(3):
        for classes in ((3,) * 6, uneven, alone):
            check(loss, *batch(seed, classes))
    # classes of three have two positives each; three or fewer; four or fewer, and none
    assert (recorder.captures, recorder.replays) == (3, 6)


def test_many_positives_are_not_recorded(recorder: FakeRecorder) -> None:
    loss = losses.TripletLoss()
    for seed in range(3):
        check(loss, *batch(seed, (18, 2)))
    assert recorder.captures == 0


@pytest.fixture
def indexed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """One entry for each time that positives are indexed outside of a graph."""
    calls: list[int] = []
    index = replay.find_positive_index
    monkeypatch.setattr(replay, "find_positive_index", lambda *a, **k: calls.append(1) or index(*a, **k))
    return calls


def test_positives_are_not_indexed_forever(
    recorder: FakeRecorder, indexed: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a graph that serves them, a few calls index positives; a call that a graph serves starts again."""
    monkeypatch.setattr(replay, "ATTEMPTS", 3)
    served, refused, (embeddings, labels) = losses.TripletLoss(), losses.TripletLoss(), batch(0, (18, 2))
    for _ in range(6):
        check(refused, embeddings, labels)
    assert (recorder.captures, len(indexed)) == (0, 3)
    for seed in range(8):
        check(served, *batch(seed))
    assert (recorder.captures, len(indexed)) == (1, 3 + 8)


def test_other_inputs_are_not_recorded(recorder: FakeRecorder, indexed: list[int]) -> None:
    triplet, centroid, (embeddings, labels) = losses.TripletLoss(), losses.CentroidTripletLoss(), batch(0)
    with pytest.raises(ValueError, match="labels must have one entry for each of the 18 embeddings"):
        triplet(embeddings, labels[1:])
    mined = losses.TripletLoss(miner=miners.PairMarginMiner(0.9, 0.1))
    vector = losses.TripletLoss(reduction="none")
    for _ in range(3):
        triplet(embeddings, labels, *batch(1))
        triplet(embeddings.double(), labels)
        for loss in (centroid, mined, vector):
            loss(embeddings.requires_grad_(), labels).sum().backward()
    assert recorder.captures == 0
    assert not indexed
    check(triplet, *batch(2))  # after other arguments
    check(triplet, *batch(3))
    assert (recorder.captures, len(indexed)) == (1, 2)
