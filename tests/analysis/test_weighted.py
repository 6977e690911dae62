"""A loss from its weights: the unified view's weight assignments, written down as such, train like the losses they belong to."""

from __future__ import annotations

import math
from functools import partial

import pytest
import torch

from likewise.analysis.equivalence import gradient_equivalent
from likewise.formula import (
    BOTH,
    EACH_POSITIVE,
    NEGATIVES,
    POSITIVES,
    Masks,
    Triplets,
    add_up,
    largest,
    logsumexp,
    mean_over_batch,
    s,
    smallest,
)
from likewise.losses import (
    BinomialDevianceLoss,
    CrossBatchMemory,
    GeneralizedLiftedStructureLoss,
    MultiSimilarityLoss,
    RAWLoss,
)
from likewise.losses.weighted import WeightedPairLoss
from likewise.miners import BatchHardMiner, MultiSimilarityMiner, PairMarginMiner, ValidTripletMiner
from likewise.testing import LABELS, loop_over, make_batch
from tests.analysis.weighted_case import ALPHA, BETA, GAMMA, RELATIVE, eq_15_and_16


def eq_13_and_14(similarities, rows, is_positive):
    """Binomial deviance: a sigmoid of each pair by itself."""
    of_positives = ALPHA * torch.sigmoid(ALPHA * (GAMMA - similarities)) / rows["positives"]
    return torch.where(
        is_positive, of_positives, BETA * torch.sigmoid(BETA * (similarities - GAMMA)) / rows["negatives"]
    )


MARGIN = 0.5


def eq_10_and_11(similarities, rows, is_positive):
    """Lifted structure: softmax weights, and none where the anchor's hinge is closed.

    In Eq. 11 the last form is 1 / Σ exp(s_ik − s_ij): the printed exponent has its sign wrong.
    """
    active = (
        rows["attract"] + rows["repel"] + MARGIN > 0.0
    )  # Eq. 9 with + log Σ_N exp(λ + s): the printed one is always 0
    weights = torch.where(
        is_positive, torch.exp(-similarities - rows["attract"]), torch.exp(similarities - rows["repel"])
    )
    return torch.where(active, weights, 0.0)


LIFTED = {"attract": logsumexp(-s, POSITIVES), "repel": logsumexp(s, NEGATIVES)}


@loop_over("backend", ["dense", "chunked"])
@loop_over("miner", [ValidTripletMiner(0.1), PairMarginMiner(), BatchHardMiner()])
def test_raw_is_its_weights(miner, backend):
    """Eq. 15 and 16 over the mined pairs give the gradient of Eq. 17."""
    weighted = WeightedPairLoss(eq_15_and_16, statistics=RELATIVE, miner=miner, backend=backend)
    assert gradient_equivalent(RAWLoss(ALPHA, BETA, GAMMA, miner=miner), weighted, tolerance=1e-9)


def test_raw_without_mining_is_multi_similarity():
    weighted = WeightedPairLoss(eq_15_and_16, statistics=RELATIVE)
    assert gradient_equivalent(MultiSimilarityLoss(ALPHA, BETA, GAMMA), weighted, tolerance=1e-9)
    assert gradient_equivalent(RAWLoss(), WeightedPairLoss(eq_15_and_16, RELATIVE, miner=MultiSimilarityMiner(0.1)))
    assert not gradient_equivalent(RAWLoss(), weighted)


@pytest.mark.parametrize("miner", [None, ValidTripletMiner(0.1)], ids=repr)
def test_binomial_deviance_is_its_weights(miner):
    """Eq. 13 and 14, where the statistics are the ones that there are by default; an anchor that lacks a side does not count."""
    weighted = WeightedPairLoss(eq_13_and_14, needs=(POSITIVES, NEGATIVES), miner=miner)
    binomial = BinomialDevianceLoss(ALPHA, BETA, GAMMA, miner=miner)
    assert gradient_equivalent(binomial, weighted, tolerance=1e-9)
    # without the sides that it needs, anchors are counted that binomial deviance leaves out
    assert not gradient_equivalent(binomial, WeightedPairLoss(eq_13_and_14, miner=miner))


@pytest.mark.parametrize("reduction", ["mean", "sum", "none", "nonzero"])
def test_lifted_structure_is_its_weights(reduction):
    """Eq. 10 and 11 belong to the generalized lifted structure with its hinge, not to Oh Song et al.'s squared one."""
    lifted = GeneralizedLiftedStructureLoss(MARGIN, reduction=reduction)
    weighted = WeightedPairLoss(eq_10_and_11, LIFTED, needs=(POSITIVES, NEGATIVES), reduction=reduction)
    verdict = gradient_equivalent(lifted, weighted, batches=40, tolerance=1e-9)
    assert verdict, str(verdict)
    assert verdict.batches[1] > 20


def test_the_hinge_of_lifted_structure_closes_somewhere():
    """Two far classes of one pair each: no gradient of the loss, none of its weights."""
    x = torch.tensor([[1.0, 0.0], [1.0, 0.1], [-1.0, 0.0], [-1.0, 0.1]], dtype=torch.float64)
    y = torch.tensor([0, 0, 1, 1])
    loss = WeightedPairLoss(eq_10_and_11, LIFTED, needs=(POSITIVES, NEGATIVES))
    assert not float(GeneralizedLiftedStructureLoss(MARGIN)(x, y))
    assert not float(loss(x, y))


@loop_over("batch", LABELS)
@loop_over("reduction", ["mean", "sum", "none", "nonzero"])
@loop_over("miner", [None, ValidTripletMiner(0.1), MultiSimilarityMiner(0.5)])
def test_the_chunked_engine_agrees(batch, reduction, miner, monkeypatch):
    """Some rows at a time: two rows are a chunk."""
    monkeypatch.setattr("likewise.engines.recompute.BUDGET", {"cpu": 1, "cuda": 1})
    monkeypatch.setattr("likewise.engines.recompute.LEAST_ROWS", 2)
    x, y = make_batch(batch, seed=3)
    x.requires_grad_()
    values, gradients = [], []
    for backend in ("dense", "chunked"):
        loss = WeightedPairLoss(eq_15_and_16, RELATIVE, miner=miner, reduction=reduction, backend=backend)
        value = loss(x, y)
        values.append(value)
        gradients.append(torch.autograd.grad(value.sum(), x)[0])
    torch.testing.assert_close(values[0], values[1], rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(gradients[0], gradients[1], rtol=1e-12, atol=1e-12)


def test_the_function_gets_whole_rows(monkeypatch):
    monkeypatch.setattr("likewise.engines.recompute.BUDGET", {"cpu": 1, "cuda": 1})
    monkeypatch.setattr("likewise.engines.recompute.LEAST_ROWS", 4)
    shapes = []

    def note(similarities, rows, is_positive):
        shapes.append((tuple(similarities.shape), tuple(rows["positives"].shape), is_positive.dtype))
        return torch.ones_like(similarities)

    x, y = make_batch("balanced")
    WeightedPairLoss(note, backend="chunked")(x, y)
    assert shapes == [((4, 12), (4, 1), torch.bool)] * 3


def test_statistics_are_those_of_the_row():
    """By hand: a batch on a circle, with two positives and one negative of the first sample."""
    angles = torch.tensor([0.0, 30.0, 60.0, 90.0], dtype=torch.float64) * math.pi / 180.0
    x, y = torch.stack([angles.cos(), angles.sin()], dim=1), torch.tensor([0, 0, 0, 1])
    seen = {}

    def note(similarities, rows, is_positive):
        seen.update({name: value[:, 0] for name, value in rows.items()}, positive=is_positive)
        return torch.ones_like(similarities)

    WeightedPairLoss(note)(x, y)
    cosine = [math.cos(math.radians(angle)) for angle in (30.0, 60.0, 90.0)]
    assert float(seen["hardest_positive"][0]) == pytest.approx(cosine[1])
    assert float(seen["hardest_negative"][0]) == pytest.approx(cosine[2], abs=1e-12)
    assert float(seen["mean_positive"][0]) == pytest.approx((cosine[0] + cosine[1]) / 2)
    assert float(seen["mean_negative"][3]) == pytest.approx(sum(cosine) / 3)
    assert seen["positives"].tolist() == [2, 2, 2, 0]
    assert seen["negatives"].tolist() == [1, 1, 1, 3]
    assert float(seen["hardest_positive"][3]) == math.inf
    assert seen["positive"].tolist() == [
        [False, True, True, False],
        [True, False, True, False],
        [True, True, False, False],
        [False] * 4,
    ]


def test_statistics_are_formulas_of_folds(monkeypatch):
    x, y = make_batch("ragged")
    seen = {}

    def note(similarities, rows, is_positive):
        seen.update(rows)
        return torch.zeros_like(similarities)

    gap = largest(s, NEGATIVES) - smallest(s, POSITIVES)
    loss = WeightedPairLoss(note, {"gap": gap, "all": add_up(s * s, BOTH), "mean": mean_over_batch(s, POSITIVES)})
    loss(x, y)
    whole = dict(seen)
    S = torch.nn.functional.normalize(x) @ torch.nn.functional.normalize(x).T
    same = (y[:, None] == y) & ~torch.eye(len(y), dtype=torch.bool)
    torch.testing.assert_close(seen["all"][:, 0], S.square().sum(dim=1) - 1.0)
    torch.testing.assert_close(seen["mean"][:, 0], S[same].mean().expand(len(y)))
    for i in range(1, len(y)):  # the first has no positive
        assert float(seen["gap"][i]) == pytest.approx(float(S[i][y != y[i]].max() - S[i][same[i]].min()))
    # a statistic of the whole batch is not one of the rows that a chunk has
    monkeypatch.setattr("likewise.engines.recompute.BUDGET", {"cpu": 1, "cuda": 1})
    monkeypatch.setattr("likewise.engines.recompute.LEAST_ROWS", 4)
    loss.backend = "chunked"
    chunks = []
    loss.weight_fn = lambda similarities, rows, is_positive: (chunks.append(rows), similarities)[1]
    loss(x, y)
    assert len(chunks) > 1
    for name, expected in whole.items():
        torch.testing.assert_close(torch.cat([rows[name] for rows in chunks]), expected)


def test_weights_take_no_gradient_and_may_be_changed_in_place():
    """The gradient is that of Σ ± w s with w fixed, by hand; the function may spoil what it is given."""

    def doubled(similarities, rows, is_positive):
        return similarities.mul_(2.0)

    x, y = make_batch("two classes")
    x.requires_grad_()
    loss = WeightedPairLoss(doubled, reduction="sum")
    units = torch.nn.functional.normalize(x)
    S = units @ units.T
    sign = torch.where(y[:, None] == y, -1.0, 1.0).fill_diagonal_(0.0)
    expected = (sign * 2.0 * S.detach() * S).sum()
    value = loss(x, y)
    torch.testing.assert_close(value, expected)
    torch.testing.assert_close(torch.autograd.grad(value, x)[0], torch.autograd.grad(expected, x)[0])


def test_a_learned_weight_function_is_not_trained_by_the_loss():
    class Steep(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.steepness = torch.nn.Parameter(torch.tensor(3.0, dtype=torch.float64))

        def forward(self, similarities, rows, is_positive):
            return torch.exp(self.steepness * torch.where(is_positive, -similarities, similarities))

    x, y = make_batch("balanced")
    loss = WeightedPairLoss(Steep())
    x.requires_grad_()
    loss(x, y).backward()
    assert loss.weight_fn.steepness.grad is None
    assert x.grad.any()


def test_relations_references_similarities_and_memory():
    """Whatever a pair loss takes: it trains like multi-similarity there, too."""
    weighted, loss = WeightedPairLoss(eq_15_and_16, RELATIVE), MultiSimilarityLoss(ALPHA, BETA, GAMMA)
    (x, y), (r, z) = make_batch("ragged"), make_batch("balanced", seed=1)
    positive = torch.rand(len(x), len(x), generator=torch.Generator().manual_seed(0)) < 0.3
    t = Triplets(torch.tensor([0, 1]), torch.tensor([2, 3]), torch.tensor([4, 5]))
    for options in (
        {"labels": y, "references": r, "reference_labels": z},
        {"relation": Masks(positive, ~positive)},
        {"relation": t},
    ):
        found = []
        for each in (weighted, loss):
            leaf = x.clone().requires_grad_()
            found.append(torch.autograd.grad(each(leaf, **options), leaf)[0])
        torch.testing.assert_close(*found, rtol=1e-9, atol=1e-12)
    S = torch.rand(5, 5, generator=torch.Generator().manual_seed(1), dtype=torch.float64).requires_grad_()
    found = [torch.autograd.grad(each.from_similarity(S, y[:5]), S)[0] for each in (weighted, loss)]
    torch.testing.assert_close(*found, rtol=1e-9, atol=1e-12)
    memories = [CrossBatchMemory(each, size=20) for each in (weighted, loss)]
    for memory in memories:
        memory(r, z)
    assert gradient_equivalent(*memories, x, y)
    euclidean = partial(WeightedPairLoss, eq_15_and_16, RELATIVE, similarity="euclidean")
    assert gradient_equivalent(euclidean(), MultiSimilarityLoss(ALPHA, BETA, GAMMA, similarity="euclidean"))


def test_pair_weights_of_it_are_the_function():
    from likewise.analysis import pair_weights

    x, y = make_batch("balanced")
    weights = pair_weights(WeightedPairLoss(lambda s, rows, p: torch.where(p, 2.0, s.abs()), reduction="sum"), x, y)
    units = torch.nn.functional.normalize(x)
    same = y[:, None] == y
    expected = torch.where(same, 2.0, (units @ units.T).abs()).fill_diagonal_(0.0)
    torch.testing.assert_close(weights, expected)


@pytest.mark.parametrize(
    ("make", "error", "sentence"),
    [
        (lambda: WeightedPairLoss(3.0), TypeError, "weight_fn must be a function .* but it is a float"),
        (lambda: WeightedPairLoss(eq_15_and_16, 3.0), TypeError, "statistics must map names to formulas"),
        (lambda: WeightedPairLoss(eq_15_and_16, {"a": 2.0 * s}), TypeError, r"'a' is the curve 2.0 \* s"),
        (lambda: WeightedPairLoss(eq_15_and_16, {"a": 2.0}), TypeError, "'a' is a float"),
        (
            lambda: WeightedPairLoss(eq_15_and_16, needs=("positives",)),
            TypeError,
            "needs must contain POSITIVES, NEGATIVES or BOTH only, but it contains 'positives'",
        ),
        (lambda: WeightedPairLoss(eq_15_and_16, needs=(EACH_POSITIVE,)), TypeError, "needs must contain POSITIVES"),
        (lambda: WeightedPairLoss(), TypeError, "weight_fn"),
    ],
)
def test_bad_arguments_get_one_sentence(make, error, sentence):
    with pytest.raises(error, match=sentence) as caught:
        make()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("function", "error", "sentence"),
    [
        (lambda s, rows, p: 1.0, TypeError, "weight_fn must return a tensor of weights, but it returned a float"),
        (lambda s, rows, p: s[:, :2], ValueError, r"similarities of shape \(15, 15\), but .* of shape \(15, 2\)"),
        (lambda s, rows, p: s[0], None, None),
        (lambda s, rows, p: rows["positives"], None, None),
        (lambda s, rows, p: s.sum(dim=1), None, None),
        (lambda s, rows, p: s[None, None], ValueError, r"of shape \(1, 1, 15, 15\)"),
    ],
)
def test_what_a_function_returns(function, error, sentence):
    x, y = make_batch("ragged")
    if error is None:
        assert torch.isfinite(WeightedPairLoss(function)(x, y))
        return
    with pytest.raises(error, match=sentence) as caught:
        WeightedPairLoss(function)(x, y)
    assert "\n" not in str(caught.value)


def test_kernels_are_refused_at_the_call():
    """Also where the engine was chosen after the loss was made."""
    later = WeightedPairLoss(eq_15_and_16, RELATIVE)
    later.backend = "triton"
    for loss in (WeightedPairLoss(eq_15_and_16, RELATIVE, backend="triton"), later):
        with pytest.raises(TypeError, match=r"backend must be 'auto', 'chunked' or 'dense' .* not a formula") as caught:
            loss(*make_batch("balanced"))
        assert "\n" not in str(caught.value)


def test_a_large_batch_on_a_gpu_runs_in_chunks(monkeypatch):
    """Where formulas run in generated kernels, a function gets rows all the same."""
    x, y = make_batch("balanced")
    heights = []

    def counted(similarities, rows, is_positive):
        heights.append(len(similarities))
        return eq_15_and_16(similarities, rows, is_positive)

    loss = WeightedPairLoss(counted, RELATIVE)
    expected = loss(x, y)
    assert heights == [len(y)]
    monkeypatch.setattr("likewise.engines.dispatch._runs_in_kernels", lambda batch: True)
    monkeypatch.setattr("likewise.engines.dispatch.TRITON_FROM", 1)
    monkeypatch.setattr("likewise.engines.dispatch.CHUNK_FROM", {"cpu": 1, "cuda": 1})
    monkeypatch.setattr("likewise.engines.recompute.BUDGET", {"cpu": 1, "cuda": 1})
    monkeypatch.setattr("likewise.engines.recompute.LEAST_ROWS", 4)
    heights.clear()
    torch.testing.assert_close(loss(x, y), expected)
    assert max(heights) <= 4
