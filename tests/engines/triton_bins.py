"""Histograms, positive pairs and quadruplets in kernels, on both paths of the Triton engine, against float64."""

from __future__ import annotations

from functools import partial

import pytest
import torch

from likewise import losses, miners
from likewise.formula import Labels, Masks
from tests.engines.triton_common import WAYS, batch, check, run, take

ON_HISTOGRAMS = [
    partial(losses.FastAPLoss, 50, miner=miners.PairMarginMiner(-0.5, -1.0)),
    partial(losses.FastAPLoss, 1),
    partial(losses.FastAPLoss, 5, miner=miners.BatchEasyHardMiner("hard", "all")),
    partial(losses.FastAPLoss, 3, reduction="none"),
    partial(losses.HistogramLoss, 100, reduction="none"),
    partial(losses.HistogramLoss, 7, miner=miners.MultiSimilarityMiner(0.1)),
]
ON_QUADRUPLETS = [
    partial(losses.QuadrupletLoss, reduction="none"),
    partial(losses.QuadrupletLoss, margin2=2.0, similarity="squared_euclidean", reduction="mean"),
    partial(losses.QuadrupletWiseLoss, similarity="euclidean"),
]


@pytest.mark.parametrize("turn", range(len(ON_HISTOGRAMS)))
def test_histograms(turn: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each on one path: a miner in the order of the batch and in that of labels."""
    take(monkeypatch, WAYS[turn % len(WAYS)])
    check(ON_HISTOGRAMS[turn], *batch(34, 5, 10))


@pytest.mark.parametrize("turn", range(len(ON_QUADRUPLETS)))
def test_quadruplets(turn: int, monkeypatch: pytest.MonkeyPatch) -> None:
    take(monkeypatch, WAYS[turn % len(WAYS)])
    check(ON_QUADRUPLETS[turn], *batch(34, 5, 14))


@pytest.mark.parametrize("make", [partial(losses.FastAPLoss, 5), partial(losses.HistogramLoss, 9)])
def test_many_tiles_with_positives(make, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program processes several tiles of one row of tiles."""
    take(monkeypatch, "sorted")
    check(make, *batch(130, 3, 3))


def test_half_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    embeddings, labels = batch(19, 5, 8)
    take(monkeypatch, "sorted")
    for make in (losses.FastAPLoss, losses.LiftedStructureLoss, losses.QuadrupletLoss):
        check(make, embeddings.half(), labels)


def test_histograms_of_given_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    embeddings, labels = batch(21, 5, 6)
    positive, negative = Labels(labels).masks()
    keep = torch.rand(21, 21, generator=torch.Generator().manual_seed(0)) < 0.5
    take(monkeypatch, "general")
    check(losses.FastAPLoss, embeddings, relation=Masks(positive & keep, negative & keep))


def test_two_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    (anchors, labels), (references, theirs) = batch(19, 5, 6), batch(37, 5, 6, seed=1)
    take(monkeypatch, "sorted")
    check(losses.FastAPLoss, [anchors, references], labels, reference_labels=theirs)


@pytest.mark.parametrize("make", [losses.FastAPLoss, losses.HistogramLoss, losses.QuadrupletLoss])
def test_the_same_bits_twice(make, monkeypatch: pytest.MonkeyPatch) -> None:
    take(monkeypatch, "sorted")
    embeddings, labels = batch(19, 5, 6)
    first, second = (run(make(backend="triton"), [embeddings], labels) for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


def test_equal_embeddings_and_opposite_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """Positions at both ends, where rounding may take them outside."""
    embeddings, labels = batch(20, 5, 6)
    embeddings[5:10], embeddings[10:15] = embeddings[:5], -embeddings[:5]
    take(monkeypatch, "general")
    for make in (losses.FastAPLoss, losses.HistogramLoss):
        kernels, rows = (make(backend=backend)(embeddings, labels) for backend in ("triton", "dense"))
        torch.testing.assert_close(kernels, rows)


@pytest.mark.parametrize("make", [losses.LiftedStructureLoss, losses.QuadrupletLoss, losses.AngularLoss])
def test_many_positives_are_refused(make) -> None:
    embeddings, labels = batch(60, 5, 2)
    with pytest.raises(TypeError, match=r"because kernels handle few positives .* but it is 'triton'") as caught:
        make(backend="triton")(embeddings, labels)
    assert "\n" not in str(caught.value)
