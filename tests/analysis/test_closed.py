"""Closed forms are what autograd finds, for every loss that has one, on every kind of batch."""

from __future__ import annotations

import pytest
import torch

from likewise.analysis.batches import random_batches
from likewise.analysis.catalog import catalog
from likewise.analysis.closed import closed_weights, evaluate_pairs, no_closed_form, term_derivatives, weight_formulas
from likewise.analysis.simplify import simplify
from likewise.analysis.weights import weigh
from likewise.engines import run
from likewise.formula import (
    BOTH,
    NEGATIVES,
    POSITIVES,
    ClassWeighted,
    Fold,
    Folded,
    Labels,
    Masks,
    Number,
    PairBatch,
    PerAnchor,
    PerReference,
    Thresholded,
    Total,
    Triplets,
    add_up,
    at_least,
    count,
    derivative,
    evaluate,
    exp,
    largest,
    logsumexp,
    mean,
    mean_over_batch,
    per_anchor,
    per_pair,
    reduce,
    relu,
    s,
    sigmoid,
    smallest,
    softplus,
    sqrt,
    square,
    stop_gradient,
    where,
)
from likewise.formula.terms import Term
from likewise.losses import (
    ArcFaceLoss,
    BinomialDevianceLoss,
    ContrastiveLoss,
    CrossBatchMemory,
    MarginLoss,
    MultiSimilarityLoss,
    NormalizedSoftmaxLoss,
    NTXentLoss,
    ProxyNCAPPLoss,
    SNRContrastiveLoss,
    SoftmaxLoss,
    SupConLoss,
    TripletLoss,
)
from likewise.miners import BatchHardMiner, DistanceWeightedMiner, EasyPositiveMiner, PairMarginMiner, SemiHardMiner
from likewise.testing import loop_over
from likewise.testing.batches import DEGENERATE, make_batch

CATALOG = catalog()
SOFT_RANKS = {"HAP", "NDCG", "PNP", "ROADMAP", "Recall@k", "Smooth-AP", "SupAP"}
"""Losses on the soft rank of a positive."""

CLOSED = {name: entry for name, entry in CATALOG.items() if no_closed_form(entry.make(10, 5)) is None}


def assert_same(loss, *batch, tolerance=1e-12, **options):
    """Every matrix of the closed form is one that was seen, with the same derivatives and masks."""
    seen = weigh(loss, *batch, **options).matrices
    closed = closed_weights(loss, *batch, **options)
    assert len(closed) == len(seen)
    for matrix in closed:
        (other,) = [each for each in seen if each.between == matrix.between]
        scale = float(other.derivatives.abs().max())
        assert float((matrix.derivatives - other.derivatives).abs().max()) <= tolerance * scale + 1e-16
        assert torch.equal(matrix.positive, other.positive)
        assert torch.equal(matrix.negative, other.negative)
        torch.testing.assert_close(matrix.similarities, other.similarities, rtol=0.0, atol=1e-14)


def test_which_losses_have_a_closed_form():
    """Those that are formulas of folds over pairs; the others say why not in one sentence."""
    without = {name: no_closed_form(entry.make(10, 5)) for name, entry in CATALOG.items() if name not in CLOSED}
    assert set(without) == {
        *("Angular", "FastAP", "Histogram", "Lifted structure", "ProxyGML", "Quadruplet", "Quadruplet-wise", "Triplet"),
        *("Triplet, semi-hard", *SOFT_RANKS),
    }
    each_positive = {name for name, reason in without.items() if "because it folds over each positive" in reason}
    assert each_positive == {"Triplet", "Triplet, semi-hard", *SOFT_RANKS}
    for name, reason in without.items():
        assert name in each_positive or "because it is a function of the matrix and not a formula" in reason
        assert reason.count(".") == 1, name
        assert "\n" not in reason
        with pytest.raises(TypeError, match="has no closed form of its weights"):
            weight_formulas(CATALOG[name].make(10, 5))
        with pytest.raises(TypeError, match="has no closed form of its weights"):
            closed_weights(CATALOG[name].make(10, 5), *make_batch("balanced"))


REDUCTIONS = ("mean", "nonzero", "sum", "none", Thresholded(low=0.3))


@pytest.mark.parametrize("name", CLOSED)
def test_closed_forms_are_what_autograd_finds(name):
    """Random batches, loose and tight; every reduction."""
    for reduction in REDUCTIONS:
        loss = CLOSED[name].make(5, 6, reduction=reduction).double()
        for batch in random_batches(2, classes=5, dim=6, seed=len(name)):
            assert_same(loss, *batch)


@pytest.mark.parametrize("reduction", ["mean_per_anchor", ClassWeighted([1.0] * 10)], ids=repr)
def test_reductions_without_a_closed_form(reduction):
    assert "its reduction weights the units of different anchors differently" in no_closed_form(
        NTXentLoss(reduction=reduction)
    )


@loop_over("name", CLOSED)
def test_closed_forms_on_poor_batches(name):
    for batch in ("ragged", *DEGENERATE):
        assert_same(CLOSED[name].make(10, 5).double(), *make_batch(batch))


@pytest.mark.parametrize(
    "loss",
    [
        NTXentLoss(0.2, learn_temperature=True),
        SupConLoss(0.2, learn_temperature=True),
        MarginLoss(num_classes=10, nu=0.1),
        MarginLoss(learn_beta=False),
        MarginLoss(miner=BatchHardMiner()),
        TripletLoss(soft=True, miner=BatchHardMiner()),
        TripletLoss(miner=EasyPositiveMiner()),
        TripletLoss(miner=EasyPositiveMiner(negatives="hard")),
        SNRContrastiveLoss(regularizer=0.3),
        MultiSimilarityLoss(miner=SemiHardMiner(0.1)),
        MultiSimilarityLoss(miner=DistanceWeightedMiner()),
        ContrastiveLoss(miner=PairMarginMiner(0.9, 0.1)),
        BinomialDevianceLoss(similarity="euclidean", alpha=1.0, beta=3.0),
        SoftmaxLoss(10, 5, bias=True),
        NormalizedSoftmaxLoss(10, 5, learn_temperature=True),
        ArcFaceLoss(10, 5, sampled=8),
    ],
    ids=lambda loss: repr(loss)[:60],
)
def test_closed_forms_of_options(loss):
    """Learned numbers, numbers per class, miners of every kind, classes drawn at random (the same ones by both)."""
    with torch.no_grad():
        for parameter in loss.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(3)))
    for seed in range(4):
        assert_same(loss.double(), *make_batch("ragged", seed=seed))


def test_references_and_relations():
    (x, y), (r, z) = make_batch("ragged"), make_batch("balanced", seed=1)
    for name, entry in CLOSED.items():
        if not entry.has_proxies and name != "Margin":
            assert_same(entry.make(0, 0), x, y, r, z)
    positive = torch.rand(15, 15, generator=torch.Generator().manual_seed(0)) < 0.3
    assert_same(MultiSimilarityLoss(), x, relation=Masks(positive, ~positive))
    chosen = Triplets(torch.tensor([0, 1]), torch.tensor([2, 3]), torch.tensor([4, 5]))
    assert_same(MultiSimilarityLoss(), x, relation=chosen)
    with pytest.raises(TypeError, match="no closed form of its weights on explicit triplets"):
        closed_weights(MarginLoss(), x, relation=chosen)


def test_float32_and_half_are_taken():
    x, y = make_batch("balanced")
    (exact,) = closed_weights(NTXentLoss(), x, y)
    for dtype, tolerance in ((torch.float32, 1e-5), (torch.bfloat16, 0.1)):
        (matrix,) = closed_weights(NTXentLoss(), x.to(dtype), y)
        assert matrix.derivatives.dtype == torch.float32
        torch.testing.assert_close(matrix.derivatives.double(), exact.derivatives, rtol=tolerance, atol=tolerance)


def test_nothing_is_left_behind():
    """No gradient, no random number and no declaration is used up."""
    loss, (x, y) = ArcFaceLoss(10, 5, sampled=8), make_batch("ragged")
    torch.manual_seed(0)
    before = torch.get_rng_state()
    closed_weights(loss, x, y)
    assert torch.equal(torch.get_rng_state(), before)
    assert loss.proxies.grad is None


def test_what_is_no_declaration_says_so():
    assert "it is not a single declaration" in no_closed_form(CrossBatchMemory(NTXentLoss(), 8))
    assert "it is not a single declaration" in no_closed_form(lambda s, y: s.sum())
    assert "represents several classes" in no_closed_form(NormalizedSoftmaxLoss(10, 5, sampled=4, corrected=True))


# ------------------------------------------------------------------------------------------------ as one reads them


def test_formulas_are_readable():
    """As one would write them by hand: no constant that cancels, no condition twice."""
    formulas = weight_formulas(ContrastiveLoss())
    assert (
        repr(formulas["positives"])
        == "where(0.0 < (1.0 - s), 1.0 / at_least(total(count[positives](nonzero(relu(1.0 - s)))), 1), 0.0)"
    )
    formulas = weight_formulas(MultiSimilarityLoss(49.0, 3.0, reduction="sum"))
    inside = "logsumexp[positives](-49.0 * (s - 0.5))"
    assert repr(formulas["positives"]) == f"sigmoid({inside}) * exp((-49.0 * (s - 0.5)) - {inside})"
    formulas = weight_formulas(SupConLoss(1.0, reduction="sum"))
    both = "where((0.0 < count[positives](1.0)) & (0.0 < count[negatives](1.0)), {}, 0.0)"
    softmax = "exp((s / 1.0) - logsumexp[both](s / 1.0))"
    assert repr(formulas["positives"]) == both.format(f"(1.0 / at_least(count[positives](1.0), 1)) - {softmax}")
    assert repr(formulas["negatives"]) == both.format(softmax)
    assert list(weight_formulas(ProxyNCAPPLoss(3, 4))) == [
        "samples against proxies, positives",
        "samples against proxies, negatives",
    ]


def test_a_formula_is_the_function_of_eq_15_and_16():
    """The unified view's Eq. 15, evaluated by hand, is RAW's closed form."""
    S = torch.rand(6, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    pair_batch = PairBatch(Labels(torch.tensor([0, 0, 0, 1, 1, 2])), matrix=S)
    formula = weight_formulas(MultiSimilarityLoss(reduction="sum"))["positives"]
    (weights,) = evaluate_pairs([formula], pair_batch)
    for i, j, others in ((0, 1, (1, 2)), (3, 4, (4,))):
        expected = 1.0 / (sum(torch.exp(2.0 * (S[i, j] - S[i, k])) for k in others) + torch.exp(2.0 * (S[i, j] - 0.5)))
        torch.testing.assert_close(weights[i, j], expected)


# ------------------------------------------------------------------------------------------------ the chain rule

CLASS = PerAnchor("class", lambda pair_batch: pair_batch.labels.double())
PLACE = PerReference("place", lambda pair_batch: torch.arange(pair_batch.shape[1], dtype=torch.float64) / 7.0)
NESTED = logsumexp(3.0 * s - softplus(mean(s, POSITIVES)), NEGATIVES)

PARTS = {
    "extremes": per_anchor(square(largest(s, NEGATIVES) - smallest(s, POSITIVES) + 2.0)),
    "extremes of curves": per_anchor(largest(s * s, BOTH) * smallest(-exp(s), NEGATIVES)),
    "folds in folds": per_pair(POSITIVES, softplus(NESTED - s), needs=(NEGATIVES,)),
    "folds in folds in folds": per_anchor(logsumexp(s * add_up(sigmoid(s - NESTED), POSITIVES), BOTH)),
    "a total": per_pair(NEGATIVES, square(s - mean_over_batch(s, POSITIVES))),
    "a total of what uses a total": per_anchor(
        add_up(relu(s - 0.1 * Total(square(add_up(s, BOTH)) * mean_over_batch(s * s, NEGATIVES))), BOTH)
    ),
    "a total of nothing but a number": per_anchor(
        add_up(s, BOTH) * Total(where(count(POSITIVES) > 1.0, Number(2.0), 0.0))
    ),
    "a total beside anchors": per_anchor(mean_over_batch(s, BOTH) * CLASS + mean(s, POSITIVES), needs=()),
    "a total alone": per_anchor(square(mean_over_batch(s, BOTH))),
    "stop_gradient": per_anchor(
        logsumexp(stop_gradient(relu(s + 0.4)) * (s - 0.4), NEGATIVES) * stop_gradient(mean(s, POSITIVES))
    ),
    "frozen folds in a curve": per_pair(NEGATIVES, s * stop_gradient(largest(s, NEGATIVES)), needs=(POSITIVES,)),
    "numbers per anchor and reference": per_pair(BOTH, softplus(s * CLASS - PLACE)),
    "quotients": per_anchor(add_up(s, POSITIVES) / at_least(add_up(s * s, NEGATIVES), 0.3)),
    "roots": per_anchor(sqrt(add_up(s * s, BOTH)), needs=()),
    "conditions": per_pair(BOTH, where(s < mean(s, BOTH), square(s), 3.0 * s)),
    "counts": Term(count(POSITIVES, s > 0.0) * add_up(s, NEGATIVES), count(NEGATIVES), count(NEGATIVES)),
    "no similarity": per_anchor(CLASS, needs=()),
}


@loop_over("reduction", REDUCTIONS[:4])
@pytest.mark.parametrize("name", PARTS)
def test_the_chain_rule(name, reduction):
    """Against autograd through the dense engine, for everything that can be written down."""
    part = PARTS[name]
    for seed in range(2 if reduction == "mean" else 1):
        generator = torch.Generator().manual_seed(seed)
        S = (torch.rand(9, 9, generator=generator, dtype=torch.float64) * 2.0 - 1.0).requires_grad_()
        pair_batch = PairBatch(Labels(torch.tensor([0, 0, 0, 0, 1, 1, 2, 2, 3])), matrix=S)
        value = reduce(run([part], pair_batch, reduction, "dense"), [], reduction).sum()
        expected = torch.autograd.grad(value, S)[0] if value.requires_grad else torch.zeros_like(S)
        derivatives = term_derivatives(part, reduction)
        found = torch.zeros_like(S)
        for side, keep in zip((POSITIVES, NEGATIVES), pair_batch.relation.masks(), strict=True):
            found = torch.where(keep, evaluate_pairs([derivatives[side]], pair_batch)[0], found)
        torch.testing.assert_close(found, expected, rtol=1e-11, atol=1e-12)


def test_ties_share():
    """Three equal hardest negatives get a third each, as the fold's own slope says."""
    S = torch.tensor([[1.0, 0.5, 0.5, 0.5, 0.2]], dtype=torch.float64)
    no = torch.zeros(1, 5, dtype=torch.bool)
    pair_batch = PairBatch(Masks(no, torch.tensor([[False, True, True, True, True]])), matrix=S)
    derivatives = term_derivatives(per_anchor(largest(s, NEGATIVES), needs=(NEGATIVES,)))[NEGATIVES]
    (shares,) = evaluate_pairs([derivatives], pair_batch)
    torch.testing.assert_close(shares[0, 1:], torch.tensor([1, 1, 1, 0], dtype=torch.float64) / 3)


def test_a_fold_of_ones_own_is_refused():
    class Product(Fold):
        name = "product"

        def start(self, values, keep):
            return (torch.where(keep, values, 1.0).prod(dim=1),)

        def merge(self, left, right):
            return (left[0] * right[0],)

        def finish(self, state):
            return state[0]

        def derivative(self, values, keep, state):
            return state[0][:, None] / values

    with pytest.raises(TypeError, match="that of product is not"):
        term_derivatives(per_anchor(Folded(Product(), POSITIVES, s)))


CURVES = [
    2.0 * (s * 3.0) / 6.0,
    -(s - exp(s)),
    -(s + exp(s)),
    0.0 - (0.0 - s),
    0.0 * s + 1.0 - 1.0,
    (s - 0.0) * 1.0 + 0.0,
    0.0 - s,
    s + -2.0 * exp(s),
    -2.0 * s + exp(s),
    s - -exp(s),
    where(s > 0.0, s, 0.0) * where(s > 0.0, 2.0, 0.0) / (4.0 * exp(s)),
    where(s > 0.0, 1.0, 1.0) * s,
    where(s > 0.0, 0, 1) * s,
    1.0 / (s / 3.0),
    (s / 2.0) / (exp(s) / 4.0) / where(s > 0.0, s, 1.0),
    1.0 / where(s > 2.0, 1.0, 0.0),
    derivative(softplus(3.0 * relu(s) / 3.0), s),
]


@loop_over("curve", CURVES)
def test_simplifying_changes_nothing(curve):
    at = torch.linspace(-1.0, 1.0, 11, dtype=torch.float64)
    found = torch.as_tensor(evaluate(simplify(curve), {s: at}), dtype=torch.float64).expand_as(at)
    torch.testing.assert_close(found, torch.as_tensor(evaluate(curve, {s: at}), dtype=torch.float64).expand_as(at))


def test_what_simplifying_gives():
    positive = s > 0.0
    product = simplify(where(positive, s, 0.0) * where(positive, 2.0, 0.0) / (4.0 * exp(s)))
    assert repr(product) == "where(0.0 < s, (0.5 * s) / exp(s), 0.0)"
    assert repr(simplify(where(positive, s, 0.0) - where(positive, exp(s), 0.0))) == "where(0.0 < s, s - exp(s), 0.0)"
    assert repr(simplify(0.0 * s)) == "0.0"
    learned = Number(torch.tensor(2.0))
    assert simplify(learned * s).arguments[0] is learned
