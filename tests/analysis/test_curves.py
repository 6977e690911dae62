"""Weight curves against the unified view's equations, written down by hand."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from likewise.analysis.catalog import catalog
from likewise.analysis.curves import GRID, Curve, sensitivities, sensitivity, vary, weight_curves, with_value
from likewise.analysis.stage import NEGATIVES, POSITIVES, Typical, show, typical_stage
from likewise.analysis.weights import pair_weights
from likewise.losses import (
    BinomialDevianceLoss,
    CircleLoss,
    ContrastiveLoss,
    GeneralizedLiftedStructureLoss,
    LiftedStructureLoss,
    MarginLoss,
    MultiSimilarityLoss,
    NPairsLoss,
    NTXentLoss,
    ProxyAnchorLoss,
    RAWLoss,
    SoftmaxLoss,
    WeightedSum,
)
from likewise.testing import loop_over

COARSE = GRID[::10]


def batch(classes: int = 4, per_class: int = 3, dim: int = 6, seed: int = 0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(classes).repeat_interleave(per_class)
    centers = torch.randn(classes, dim, generator=generator, dtype=torch.float64)
    noise = torch.randn(len(labels), dim, generator=generator, dtype=torch.float64)
    return centers[labels] + noise, labels


def row_of_first_anchor(x: Tensor, y: Tensor) -> tuple[Tensor, list[float], list[float]]:
    """The first anchor's cosines to its positives and negatives, each without the median one, which is swept."""
    units = x / x.norm(dim=1, keepdim=True)
    cosines = units @ units[0]
    positives, negatives = sorted(cosines[1:][y[1:] == y[0]].tolist()), sorted(cosines[y != y[0]].tolist())
    positives.pop(len(positives) // 2)
    negatives.pop(len(negatives) // 2)
    return cosines, positives, negatives


def only(loss, x: Tensor, y: Tensor, grid: Tensor = COARSE) -> Curve:
    return weight_curves({"it": loss}, similarities=grid, embeddings=x, labels=y, rows=1)["it"]


def test_contrastive_is_all_or_nothing():
    """Eq. 6: a positive pair weighs 1, a negative one 1 above the margin and 0 below."""
    curve = weight_curves(ContrastiveLoss(reduction="sum"))["ContrastiveLoss"]
    assert torch.equal(curve.positive[0], torch.ones(200, dtype=torch.float64))
    assert torch.equal(curve.negative[0], (GRID > 0.5).double())


def test_binomial_deviance_is_a_sigmoid():
    """Eq. 13 and 14, with the mean over anchors; no neighbor is in it."""
    x, y = batch()
    curve = only(BinomialDevianceLoss(alpha=2.0, beta=50.0, base=0.5), x, y)
    for place, s in enumerate(COARSE.tolist()):
        pull = math.exp(2.0 * (0.5 - s))
        push = math.exp(50.0 * (s - 0.5))
        assert float(curve.positive[0, place]) == pytest.approx(2.0 * pull / (1.0 + pull) / 2 / 12, rel=1e-9)
        assert float(curve.negative[0, place]) == pytest.approx(50.0 * push / (1.0 + push) / 9 / 12, rel=1e-9)


def test_generalized_lifted_structure_is_a_softmax():
    """Eq. 10 and the first form of Eq. 11."""
    x, y = batch()
    curve, (_, positives, negatives) = only(GeneralizedLiftedStructureLoss(), x, y), row_of_first_anchor(x, y)
    for place, s in enumerate(COARSE.tolist()):
        pull = math.exp(-s) / (math.exp(-s) + sum(math.exp(-each) for each in positives)) / 12
        push = math.exp(s) / (math.exp(s) + sum(math.exp(each) for each in negatives)) / 12
        assert float(curve.positive[0, place]) == pytest.approx(pull, rel=1e-9)
        assert float(curve.negative[0, place]) == pytest.approx(push, rel=1e-9)


@pytest.mark.parametrize("mined", [False, True])
def test_raw_is_relative_and_absolute(mined: bool):
    """Eq. 15 and 16, on all pairs and on those that VTHM keeps."""
    x, y = batch()
    alpha, beta, base, margin = 2.0, 50.0, 0.5, 0.1
    loss = RAWLoss(alpha, beta, base, margin) if mined else MultiSimilarityLoss(alpha, beta, base)
    curve, (cosines, positives, negatives) = only(loss, x, y), row_of_first_anchor(x, y)
    all_positives, all_negatives = cosines[1:][y[1:] == y[0]].tolist(), cosines[y != y[0]].tolist()
    for place, s in enumerate(COARSE.tolist()):
        hardest_negative, hardest_positive = max(all_negatives), min(all_positives)
        kept = [each for each in [s, *positives] if not mined or each < hardest_negative + margin]
        pull = 1.0 / (sum(math.exp(alpha * (s - each)) for each in kept) + math.exp(alpha * (s - base))) / 12
        assert float(curve.positive[0, place]) == pytest.approx(pull if s in kept else 0.0, rel=1e-9)
        kept = [each for each in [s, *negatives] if not mined or each > hardest_positive - margin]
        push = 1.0 / (sum(math.exp(-beta * (s - each)) for each in kept) + math.exp(-beta * (s - base))) / 12
        assert float(curve.negative[0, place]) == pytest.approx(push if s in kept else 0.0, rel=1e-9)


def test_a_loss_on_distances_is_drawn_over_cosines():
    """``d = √(2 − 2c)``, so ``−∂d/∂c = 1/d``: a positive pair of the margin loss weighs that, until it is inside."""
    loss = MarginLoss(margin=0.2, beta=1.2, reduction="sum")
    curve = weight_curves({"it": loss}, similarities=COARSE, classes=4, per_class=3)["it"]
    distance = (2.0 - 2.0 * COARSE).sqrt()
    triplets = 9  # a positive pair is in one with each of the nine negatives
    assert torch.allclose(curve.positive[0], torch.where(distance > 1.0, triplets / distance, 0.0))
    assert torch.allclose(curve.negative[0], torch.where(distance < 1.4, 2.0 / distance, 0.0), atol=1e-7)


def test_lengths_count_where_a_loss_looks_at_inner_products():
    """N-pairs of one triplet: ``w = σ(|a||n| c − a·p) |a||n|``."""
    x = torch.tensor([[2.0, 0.0], [0.6, 0.8], [0.0, 3.0]], dtype=torch.float64)
    y = torch.tensor([0, 0, 1])
    curve = only(NPairsLoss(reduction="sum"), x, y)
    expected = 6.0 * torch.sigmoid(6.0 * COARSE - 1.2)
    assert torch.allclose(curve.negative[0], expected)


def test_proxy_anchor_goes_down_the_column():
    """Two samples of a class compete for their proxy; what they do elsewhere does not matter."""
    x = torch.tensor([[1.0, 0.0], [0.6, 0.8], [0.0, 1.0]], dtype=torch.float64)
    loss = ProxyAnchorLoss(2, 2, margin=0.1, alpha=8.0).double()
    loss.proxies.data = torch.eye(2, dtype=torch.float64)
    curve = only(loss, x, torch.tensor([0, 0, 1]))
    other = math.exp(-8.0 * (0.6 - 0.1))
    for place, c in enumerate(COARSE.tolist()):
        own = math.exp(-8.0 * (c - 0.1))
        assert float(curve.positive[0, place]) == pytest.approx(8.0 * own / (1.0 + own + other) / 2, rel=1e-6)
    assert curve.between == "samples against proxies"
    assert curve.positives.tolist() == pytest.approx([1.0, 0.6, 1.0])


def test_unordered_pairs_have_one_weight():
    """Lifted structure puts all of a positive pair's weight on one of its two entries, whichever it likes."""
    x, y = batch()
    curve = only(LiftedStructureLoss(), x, y)
    cosines, *_ = row_of_first_anchor(x, y)
    partner = 1 + int(cosines[1:3].argmax())  # the upper of two is the median's place
    both = pair_weights(LiftedStructureLoss(), x, y)
    at = weight_curves(
        {"it": LiftedStructureLoss()}, similarities=cosines[partner : partner + 1], embeddings=x, labels=y, rows=1
    )
    chain = 1.0 / (2.0 - 2.0 * cosines[partner]).sqrt()
    assert torch.allclose(at["it"].positive[0, 0], (both[0, partner] + both[partner, 0]) * chain)
    assert (curve.positive > 0.0).all()


ORDERED = [name for name, entry in catalog().items() if entry.has_proxies or entry.kind.takes_references]


@loop_over("name", ORDERED)
def test_where_it_stands_a_pair_has_its_weight(name: str):
    """The curve at a pair's own cosine is the pair's weight, for every loss."""
    x, y = batch()
    torch.manual_seed(0)
    loss = catalog()[name].make(4, 6).double()
    start = weight_curves({name: loss}, similarities=torch.zeros(1), embeddings=x, labels=y, rows=1)[name]
    if name in ("SNR contrastive", "N-pairs", "Softmax"):
        assert start.negative.isfinite().all()  # lengths are in it: tested by hand above
        return
    weights = pair_weights(loss, x, y)
    units = x / x.norm(dim=1, keepdim=True)
    others = (
        units
        if not catalog()[name].has_proxies
        else loss.proxies.detach() / loss.proxies.detach().norm(dim=1, keepdim=True)
    )
    cosines = units @ others.T
    owners = y if others is units else torch.arange(len(others)) // (len(others) // 4)
    candidates = [int(j) for j in (owners != y[0]).nonzero()]
    median = sorted(candidates, key=lambda j: float(cosines[0, j]))[len(candidates) // 2]
    here = weight_curves({name: loss}, similarities=cosines[0, median][None], embeddings=x, labels=y, rows=1)[
        name
    ].negative[0, 0]
    chain = {"squared_euclidean": 2.0, "euclidean": float(1.0 / (2.0 - 2.0 * cosines[0, median]).sqrt())}
    similarity = loss.similarity
    assert float(here) == pytest.approx(float(weights[0, median]) * chain.get(similarity, 1.0), rel=1e-6, abs=1e-12)


@loop_over("name", list(catalog()))
def test_every_loss_has_typical_curves(name: str):
    torch.manual_seed(0)
    loss = catalog()[name].make(8, 16).double()
    curve = weight_curves({name: loss}, similarities=GRID[::40])[name]
    assert curve.positive.shape == curve.negative.shape == (1, 5)
    assert curve.positive.isfinite().all()
    assert curve.negative.isfinite().all()
    assert curve.positive.any() or curve.negative.any()


def test_a_typical_batch_is_what_was_asked_for():
    curve = weight_curves(
        NTXentLoss(), similarities=torch.zeros(1), positives=Typical(0.4, 0.1), negatives=Typical(-0.1, 0.2), classes=12
    )["NTXentLoss"]
    assert float(curve.positives.mean()) == pytest.approx(0.4, abs=0.01)
    assert float(curve.negatives.std()) == pytest.approx(0.2, abs=0.01)
    stage = typical_stage(NTXentLoss(), POSITIVES, NEGATIVES, 4, 3)
    cosines = show(NTXentLoss(), stage, lambda values: values).values
    assert torch.equal(cosines, cosines.T)


def test_anybodys_function_and_several_at_once():
    curves = weight_curves(
        {"squares": lambda s, labels: s.square().sum(), "circle": CircleLoss()}, similarities=torch.tensor([0.25])
    )
    assert float(curves["squares"].negative[0, 0]) == 0.5
    assert float(curves["squares"].positive[0, 0]) == -0.5
    assert list(curves) == ["squares", "circle"]
    assert len(curves) == 2


def test_the_same_matrix_made_twice_counts_twice():
    one, x = NTXentLoss(), torch.tensor([0.25])
    both = WeightedSum({NTXentLoss(): 1.0, NTXentLoss(): 2.0})
    curves = weight_curves({"one": one, "both": both}, similarities=x)
    assert torch.allclose(3.0 * curves["one"].negative, curves["both"].negative)


def test_sensitivity_varies_one_thing():
    """Contrastive loss: the step stands at the margin, wherever that is."""
    loss = ContrastiveLoss(reduction="sum")
    found = sensitivity(loss, "negative_margin", [0.2, 0.7])
    assert torch.equal(found["negative_margin=0.2"].negative[0], (GRID > 0.2).double())
    assert torch.equal(found["negative_margin=0.7"].negative[0], (GRID > 0.7).double())
    assert loss.negative_margin == 0.5
    assert list(sensitivities(loss, similarities=torch.zeros(1))) == ["positive_margin", "negative_margin"]


def test_a_varied_loss_keeps_what_it_learned():
    loss = ProxyAnchorLoss(3, 4).double()
    other = with_value(loss, "alpha", 8.0)
    assert torch.equal(other.proxies, loss.proxies)
    assert other.alpha == 8.0
    margin = MarginLoss(beta=1.0, num_classes=3)
    assert with_value(margin, "beta", 1.5).beta.tolist() == [1.5, 1.5, 1.5]
    margin.beta.data.fill_(0.7)
    assert with_value(margin, "margin", 0.3).beta.tolist() == pytest.approx([0.7] * 3)
    learned = NTXentLoss(temperature=0.5, learn_temperature=True)
    assert with_value(learned, "temperature", 0.1).log_temperature.exp().item() == pytest.approx(0.1)
    assert with_value(SoftmaxLoss(2, 3, bias=False), "reduction", "sum").bias is None
    assert next(iter(vary(CircleLoss(), "gamma"))) == "gamma=8"


def test_looking_changes_nothing():
    loss, before = CircleLoss(), torch.random.get_rng_state()
    weight_curves(loss, similarities=torch.zeros(1))
    sensitivity(ProxyAnchorLoss(8, 16), "alpha", [8.0], similarities=torch.zeros(1))
    torch.random.set_rng_state(before)
    ProxyAnchorLoss(8, 16)
    after = torch.random.get_rng_state()
    torch.random.set_rng_state(before)
    weight_curves(loss, similarities=torch.zeros(1))
    assert torch.equal(torch.random.get_rng_state(), before)
    assert not torch.equal(after, before)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: weight_curves(CircleLoss(), similarities=torch.tensor([2.0])), "similarities must be cosines"),
        (lambda: weight_curves([CircleLoss(), CircleLoss()]), "must have names"),
        (lambda: weight_curves(CircleLoss(), embeddings=torch.eye(3)), "labels must be given"),
        (lambda: weight_curves(CircleLoss(), rows=0), "rows must be a whole number"),
        (lambda: weight_curves(CircleLoss(), classes=1), "classes must be a whole number ≥ 2"),
        (lambda: weight_curves(ProxyAnchorLoss(3, 4), classes=5), "classes must be at most 3"),
        (lambda: sensitivity(CircleLoss(), "beta"), r"hyper-parameter of CircleLoss \(margin, gamma\)"),
        (
            lambda: weight_curves(CircleLoss(), embeddings=torch.eye(3), labels=torch.tensor([0, 1, 2])),
            "no anchor with a positive and a negative pair",
        ),
    ],
)
def test_refusals_are_one_sentence(make, sentence: str):
    with pytest.raises((ValueError, TypeError), match=sentence):
        make()
