"""Every pair loss on every engine that needs no GPU: the same value and gradient, without the matrix."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import partial

import pytest
import torch
from torch import Tensor

from likewise import losses, miners
from likewise.engines import map_rows, recompute
from likewise.formula import (
    NEGATIVES,
    POSITIVES,
    Cosine,
    Labels,
    Masks,
    Triplets,
    batch_from_embeddings,
    largest,
    mean_over_batch,
    s,
    where,
)
from likewise.testing import loop_over, make_batch
from tests.losses.cases import CASES
from tests.memory import GIVES_BACK, HIGH_WATER

TRIPLET_LOSSES = {
    "hinge": partial(losses.TripletLoss, 0.3),
    "soft": partial(losses.TripletLoss, 0.3, soft=True),
    "margin": losses.MarginLoss,
    "multi-similarity": losses.MultiSimilarityLoss,
}
MINERS = {
    "semi-hard": miners.SemiHardMiner(),
    "semi-hard band": miners.SemiHardMiner(0.2),
    "batch hard": miners.BatchHardMiner(),
    "easy positive": miners.EasyPositiveMiner(),
    "easy positive, hard": miners.EasyPositiveMiner(negatives="hard"),
    "triplet margin": miners.TripletMarginMiner(0.2),
    "easy triplets": miners.TripletMarginMiner(0.2, kind="easy"),
    "all positives": miners.BatchEasyHardMiner("all", "hard", positive_range=(-0.9, 1.9)),
    "pairs": miners.MultiSimilarityMiner(),
}
LABELS = {
    "few": torch.arange(60) % 17,
    "two classes": torch.arange(60) % 2,
    "alone": torch.arange(60),
}


@pytest.fixture(autouse=True)
def thin_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seven rows at a time."""
    monkeypatch.setattr(recompute, "LEAST_ROWS", 7)
    monkeypatch.setattr(recompute, "BUDGET", {"cpu": 1, "cuda": 1})


def batch(labels: str) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(3)
    centers = torch.randn(60, 6, generator=generator, dtype=torch.float64)
    y = LABELS[labels]
    order = torch.randperm(60, generator=generator)
    return (centers[y] + torch.randn(60, 6, generator=generator, dtype=torch.float64))[order], y[order]


def both(loss, embeddings: Tensor, *args, **options) -> tuple[Tensor, Tensor]:
    leaf = embeddings.clone().requires_grad_()
    value = loss(leaf, *args, **options)
    (gradient,) = torch.autograd.grad((value * torch.linspace(1.0, 2.0, max(value.numel(), 1))).sum(), leaf)
    return value.detach(), gradient


def agree(make, *args, **options) -> None:
    expected = both(make(backend="dense"), *args, **options)
    torch.testing.assert_close(both(make(backend="chunked"), *args, **options), expected, rtol=1e-9, atol=1e-9)


@loop_over("labels", LABELS)
@pytest.mark.parametrize("case", CASES, ids=[case.label for case in CASES])
def test_chunked_equals_dense(case, labels: str) -> None:
    if getattr(case.make(), "num_classes", None):
        labels = "two classes"
    embeddings, classes = batch(labels)
    embeddings = embeddings[:, : getattr(case.make(), "embedding_dim", None)]
    for reduction in ("nonzero", "none"):
        agree(partial(case.make, reduction=reduction), embeddings, classes)


@pytest.mark.parametrize("case", CASES, ids=[case.label for case in CASES])
def test_chunked_equals_dense_with_a_memory(case) -> None:
    """References of which some are the anchors themselves, and some do not exist."""
    if not case.make().takes_references or getattr(case.make(), "num_classes", None):
        pytest.skip("it takes no references")
    anchors, y = batch("few")
    everyone, theirs = (
        torch.cat([anchors, make_batch("ragged", dim=6).embeddings]),
        torch.cat([y, torch.arange(15) % 5]),
    )
    valid = torch.arange(75) % 11 != 3
    relation = Labels(y, theirs, own=torch.arange(60), valid=valid)
    agree(case.make, anchors, references=everyone, relation=relation)
    # who does not exist could be left out as well
    kept = valid.nonzero().squeeze(1)
    own = torch.where(valid[:60], valid.cumsum(0)[:60] - 1, -1)
    less = Labels(y, theirs[kept], own=own)
    without = both(case.make(backend="chunked"), anchors, references=everyone[kept], relation=less)
    torch.testing.assert_close(
        both(case.make(backend="dense"), anchors, references=everyone, relation=relation), without, rtol=1e-9, atol=1e-9
    )


@loop_over("labels", LABELS)
@loop_over("miner", MINERS)
@pytest.mark.parametrize("loss", TRIPLET_LOSSES)
def test_rules_equal_named_triplets(loss: str, miner: str, labels: str) -> None:
    """What a rule sums without naming triplets is what the named triplets sum to."""
    embeddings, y = batch(labels)
    make = partial(TRIPLET_LOSSES[loss], miner=MINERS[miner])
    for reduction in ("nonzero", "none"):
        agree(partial(make, reduction=reduction), embeddings, y)
    if not isinstance(MINERS[miner], miners.PairMiner):
        similarity = make().similarity
        named = Triplets(*MINERS[miner].triplets(embeddings, y, similarity=similarity))
        expected = both(TRIPLET_LOSSES[loss](reduction="nonzero"), embeddings, relation=named)
        for backend in ("dense", "chunked"):
            mined = both(make(backend=backend, reduction="nonzero"), embeddings, y)
            torch.testing.assert_close(mined, expected, rtol=1e-9, atol=1e-9)


@loop_over("labels", ["few", "two classes"])
@loop_over("loss", ["hinge", "soft", "margin"])
def test_a_batch_that_must_not_be_asked(loss: str, labels: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a GPU: nobody looks at a value, and the result is the same."""
    embeddings, y = batch(labels)
    for miner in (None, MINERS["semi-hard band"], MINERS["semi-hard"]):
        make = partial(TRIPLET_LOSSES[loss], miner=miner)
        expected = both(make(), embeddings, y)
        with monkeypatch.context() as patch:
            patch.setattr("likewise.engines.synchronization.can_read_values", lambda _: False)
            torch.testing.assert_close(both(make(), embeddings, y), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("backend", ["chunked"])
@loop_over("miner", ["semi-hard", "batch hard", "easy positive", "easy positive, hard"])
def test_ties_share_their_gradient(miner: str, backend: str) -> None:
    """Without the matrix, two negatives at one similarity get half of the gradient each; a named triplet names one."""
    embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8], [0.6, 0.8]])
    y = torch.tensor([0, 0, 1, 2])
    chosen = MINERS[miner]
    value, shared = both(losses.TripletLoss(1.0, miner=chosen, backend=backend), embeddings, y)
    torch.testing.assert_close(shared[2], shared[3])
    triplets = Triplets(*chosen.triplets(embeddings, y))
    expected, named = both(losses.TripletLoss(1.0, backend=backend), embeddings, relation=triplets)
    torch.testing.assert_close(value, expected)
    assert not torch.allclose(named[2], named[3])
    torch.testing.assert_close(named[2] + named[3], shared[2] + shared[3])
    torch.testing.assert_close(named[:2], shared[:2])
    _, dense = both(losses.TripletLoss(1.0, miner=chosen, backend="dense"), embeddings, y)
    torch.testing.assert_close(dense, named)  # with the matrix at hand, a rule names its triplets


def test_conditions_on_the_whole_batch_in_chunks() -> None:
    """A pair miner may refer to a number of the whole batch, which no chunk can compute."""

    class AboveMean(miners.PairMiner):
        def keep(self, similarity):
            mean = mean_over_batch(s, NEGATIVES)
            return s < where(largest(s, POSITIVES) > mean, 0.9, 0.8), mean < s

    miner = object.__new__(AboveMean)
    for make in (losses.TripletLoss, losses.FastAPLoss, losses.HistogramLoss, losses.MultiSimilarityLoss):
        agree(partial(make, miner=miner), *batch("few"))


def test_pairs_by_name() -> None:
    embeddings, y = batch("few")
    positive, negative = Labels(y).masks()
    keep = torch.rand(60, 60, generator=torch.Generator().manual_seed(0)) < 0.5
    relation = Masks(positive & keep, negative & keep)
    for make in (
        losses.TripletLoss,
        losses.FastAPLoss,
        losses.HistogramLoss,
        losses.AngularLoss,
        losses.LiftedStructureLoss,
        losses.MarginLoss,
    ):
        agree(make, embeddings, relation=relation)


ROW_WISE = {
    "dynamic": partial(losses.DynamicSoftMarginLoss, backend="triton"),
    "weighted": partial(losses.WeightedPairLoss, lambda S, _rows, _positive: S, backend="triton"),
}


@pytest.mark.parametrize("make", ROW_WISE.values(), ids=ROW_WISE)
def test_what_is_not_a_formula_refuses_kernels_when_it_is_called(make) -> None:
    loss = make()
    with pytest.raises(
        TypeError, match=r"backend must be 'auto', 'chunked' or 'dense' .* but it is 'triton'"
    ) as caught:
        loss(*batch("few"))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("make", [miners.DistanceWeightedMiner, partial(miners.RandomMiner, 500)])
def test_random_miners_in_chunks(make) -> None:
    """Triplets of the batch, as many as on the whole matrix."""
    embeddings, y = batch("few")
    pair_batch = batch_from_embeddings(embeddings, y, None, None, None, Cosine())
    positive, negative = Labels(y).masks()
    whole = make(generator=torch.Generator().manual_seed(0)).choose(map_rows(pair_batch, "dense"))
    drawn = make(generator=torch.Generator().manual_seed(0)).choose(map_rows(pair_batch, "chunked"))
    assert positive[drawn.anchors, drawn.positives].all()
    assert negative[drawn.anchors, drawn.negatives].all()
    assert len(drawn.anchors) == len(whole.anchors)
    if isinstance(make, partial):  # the same draws: they are made before any chunk is computed
        assert torch.equal(drawn.anchors, whole.anchors)
        assert torch.equal(drawn.positives, whole.positives)
        assert torch.equal(drawn.negatives, whole.negatives)
    _, gradient = both(losses.TripletLoss(1.0, miner=make(), backend="chunked"), embeddings, y)
    assert gradient.any()


PEAK = """
import json, os, sys, torch
from likewise import losses, miners
torch.set_num_threads(1)


def peak(loss, y):
    loss.backend = "chunked"
    x = torch.randn(3584, 32, requires_grad=True)
    loss(x[:256], y[:256]).backward()
    loss.backend = "auto"
    before = high_water(forget=True)
    value = loss(x, y)
    value.backward()
    assert torch.isfinite(value) and torch.isfinite(x.grad).all()
    return high_water() - before


for name, loss, labels in json.loads(sys.argv[1]):
    sys.stdout.flush()
    if os.fork() == 0:  # a process of its own for each, which has imported everything
        print(json.dumps([name, peak(eval(loss), eval(labels))]), flush=True)
        os._exit(0)
    os.wait()
"""
FOUR, TWO = "torch.arange(3584) // 4", "torch.arange(3584) % 2"
LARGE = {
    "all triplets": ("losses.TripletLoss(0.1)", FOUR),
    "all triplets, many positives": ("losses.TripletLoss(0.1)", TWO),
    "soft": ("losses.TripletLoss(0.1, soft=True)", FOUR),
    "semi-hard": ("losses.TripletLoss(0.1, miner=miners.SemiHardMiner())", FOUR),
    "distance weighted": ("losses.MarginLoss(miner=miners.DistanceWeightedMiner())", FOUR),
    "FastAP": ("losses.FastAPLoss()", FOUR),
    "histogram": ("losses.HistogramLoss()", FOUR),
    "lifted structure": ("losses.LiftedStructureLoss()", FOUR),
    "quadruplets": ("losses.QuadrupletLoss()", FOUR),
    "pairs of triplets": ("losses.MultiSimilarityLoss(miner=miners.SemiHardMiner())", FOUR),
}


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a fork")
def test_memory_grows_with_the_batch_and_not_with_its_square() -> None:
    """One matrix of 3,584 samples takes 49 MiB in float32; nobody takes one, where the dense engine takes ten."""
    environment = {**os.environ, **GIVES_BACK}
    cases = json.dumps([[name, *case] for name, case in LARGE.items()])
    result = subprocess.run(
        [sys.executable, "-c", HIGH_WATER + PEAK, cases], capture_output=True, text=True, check=False, env=environment
    )
    assert result.returncode == 0, result.stderr
    peaks = dict(json.loads(line) for line in result.stdout.splitlines())
    assert set(peaks) == set(LARGE), result.stderr
    assert {name: peak for name, peak in peaks.items() if peak >= 4 * 3584**2} == {}
