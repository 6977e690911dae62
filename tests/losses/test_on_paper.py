"""Small cases worked out on paper, one for each of the main losses.

Throughout, three unit vectors in the plane: a = (1, 0), b = (0.8, 0.6), c = (0.6, 0.8); a and b are of class 0, c of
class 1.  So s_ab = 0.8, s_ac = 0.6, s_bc = 0.48 + 0.48 = 0.96.  Anchor a has the positive b and the negative c, anchor b
the positive a and the negative c, anchor c has two negatives and no positive.
"""

from __future__ import annotations

import math

import pytest
import torch

from likewise import losses
from likewise.formula import NEGATIVES, exp, per_pair, s

EMBEDDINGS = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]], dtype=torch.float64)
LABELS = torch.tensor([0, 0, 1])
AB, AC, BC = 0.8, 0.6, 0.96


def softplus(x: float) -> float:
    return math.log1p(math.exp(x))


def distance(s: float) -> float:
    return math.sqrt(2.0 - 2.0 * s)


CASES = {
    # positives (a,b), (b,a) cost 0.2 each: mean 0.2.  Negatives cost 0.1, 0.46, 0.1, 0.46: mean 0.28.
    "ContrastiveLoss": 0.2 + 0.28,
    # triplets (a,b,c): 0.6 − 0.8 + 0.1 < 0, zero; (b,a,c): 0.96 − 0.8 + 0.1 = 0.26.  Mean over the one that is not zero.
    "TripletLoss": 0.26,
    # per anchor, mean over all three: a and b have both terms, c has the negative term alone
    "MultiSimilarityLoss": (
        softplus(-2 * (AB - 0.5)) / 2
        + softplus(50 * (AC - 0.5)) / 50
        + softplus(-2 * (AB - 0.5)) / 2
        + softplus(50 * (BC - 0.5)) / 50
        + math.log(1 + math.exp(50 * (AC - 0.5)) + math.exp(50 * (BC - 0.5))) / 50
    )
    / 3,
    # the mining keeps for a: nothing (0.8 − 0.1 > 0.6); for b: both (0.8 − 0.1 < 0.96); for c: nothing, no positive
    "RAWLoss": (softplus(-2 * (AB - 0.5)) / 2 + softplus(50 * (BC - 0.5)) / 50) / 3,
    # anchors a and b; c lacks a positive and does not count
    "BinomialDevianceLoss": (2 * softplus(2 * (0.5 - AB)) + softplus(50 * (AC - 0.5)) + softplus(50 * (BC - 0.5))) / 2,
    # one positive and one negative each, so each log-sum-exp is its one exponent
    "CircleLoss": sum(
        softplus(-80 * (1.4 - AB) * (AB - 0.6) + 80 * (negative + 0.4) * (negative - 0.4)) for negative in (AC, BC)
    )
    / 2,
    # log e^(0.5 − 0.8) + log e^0.6 = 0.3 for a; 0.5 − 0.8 + 0.96 = 0.66 for b
    "GeneralizedLiftedStructureLoss": (0.3 + 0.66) / 2,
    # unit vectors, so the inner product is the cosine
    "NPairsLoss": (softplus(AC - AB) + softplus(BC - AB)) / 2,
    "NTXentLoss": (softplus((AC - AB) / 0.07) + softplus((BC - AB) / 0.07)) / 2,
    # one positive: the mean log-probability is that of the one
    "SupConLoss": (softplus((AC - AB) / 0.1) + softplus((BC - AB) / 0.1)) / 2,
    # −‖x − y‖² = 2s − 2: the differences of similarities double
    "NCALoss": (softplus(2 * (AC - AB)) + softplus(2 * (BC - AB))) / 2,
    # two triplets; d_ab = 0.632 < 1.2 − 0.2 costs nothing; both negatives are nearer than 1.2 + 0.2: 1.4 − d
    "MarginLoss": ((1.4 - distance(AC)) + (1.4 - distance(BC))) / 2,
    # one positive pair {a, b}, whose negatives are c twice
    "LiftedStructureLoss": 0.5
    * (distance(AB) + math.log(math.exp(1 - distance(AC)) + math.exp(1 - distance(BC)))) ** 2,
    # cos(θ − m) = s cos m + √(1 − s²) sin m, with √(1 − 0.64) = 0.6
    "TupletMarginLoss": sum(
        softplus(64 * (negative - (0.8 * math.cos(math.radians(5.73)) + 0.6 * math.sin(math.radians(5.73)))))
        for negative in (AC, BC)
    )
    / 2,
    # the two positives lie at their mean and cost (0.99·0.8 − 0.8)₊ = 0; negatives: mean 0.78, threshold 0.7878,
    # 0.96 − 0.7878 = 0.1722 for two of the four
    "IntraPairVarianceLoss": 0.1722**2 / 2,
    # squared distances 0.4 (node 1), a–c 0.8 (node 2), b–c 0.08 (share 0.8 at node 0, 0.2 at node 1).
    # a: the positive comes first, AP 1.  b: at node 1 precision 1 / (1 + 1) = 0.5.  c has no positive.
    "FastAPLoss": (0.0 + 0.5) / 2,
    # positives all at 0.8; negatives {a,c} at 0.6 and {b,c} at 0.96: half of them above
    "HistogramLoss": 0.5,
    # 4 tan²α (x_a + x_p)·x_n − 2 (1 + tan²α) s_ap, with (a + b)·c = 0.6 + 0.96 for both orders
    "AngularLoss": softplus(
        4 * math.tan(math.radians(40)) ** 2 * (AC + BC) - 2 * (1 + math.tan(math.radians(40)) ** 2) * AB
    ),
    # with two classes there is no third: the triplet term alone
    "QuadrupletLoss": 0.26,
    # positive pairs at 0.8 − 0.1: {b, c} at 0.96 is 0.26 over, in all orders, and {a, c} at 0.6 is not
    "QuadrupletWiseLoss": 0.26,
}


@pytest.mark.parametrize("name", CASES)
def test_equals_paper(name: str):
    value = getattr(losses, name)().double()(EMBEDDINGS, LABELS)
    assert value.item() == pytest.approx(CASES[name], abs=1e-6 if name == "MarginLoss" else 1e-12)


def test_quadruplets_on_paper():
    """Add d = (0, 1) of a third class: s_ad = 0, s_bd = 0.6, s_cd = 0.8.

    Triplets of anchor a: negatives 0.6 and 0 against 0.8 − 0.1: none active.  Anchor b: 0.96 active with 0.26, 0.6 not.
    Quadruplets: the positive pair at 0.8 − 0.05 = 0.75 against {c, d} at 0.8: 0.05 over, in all four orders.
    """
    embeddings = torch.cat([EMBEDDINGS, torch.tensor([[0.0, 1.0]], dtype=torch.float64)])
    value = losses.QuadrupletLoss()(embeddings, torch.tensor([0, 0, 1, 2]))
    assert value.item() == pytest.approx(0.26 + 0.05, abs=1e-12)


def test_snr_on_paper():
    """Signal-to-noise of plane vectors: var(b − a) / var(a) = ((Δ₁ − Δ₂) / (a₁ − a₂))².

    a: 1, b: 0.2, c: −0.2 as differences of their coordinates.  d_ab = (0.2 − 1)² / 1 = 0.64, d_ba = 0.64 / 0.04 = 16:
    mean 8.32.  d_ac = 1.44, d_bc = 4, d_ca = 36, d_cb = 4: all above the margin 1, no cost.
    """
    assert losses.SNRContrastiveLoss()(EMBEDDINGS, LABELS).item() == pytest.approx(8.32, abs=1e-12)


def test_weights_of_binomial_deviance_on_paper():
    """Equations 13 and 14 of the unified view are the slopes of its equation 12 (averaged over two anchors)."""
    S = (EMBEDDINGS @ EMBEDDINGS.T).requires_grad_()
    losses.BinomialDevianceLoss().from_similarity(S, LABELS).backward()

    def sigmoid(x: float) -> float:
        return 1 / (1 + math.exp(-x))

    assert S.grad[0, 1].item() == pytest.approx(-2 * sigmoid(2 * (0.5 - AB)) / 2)
    assert S.grad[1, 2].item() == pytest.approx(50 * sigmoid(50 * (BC - 0.5)) / 2)
    assert S.grad[2].tolist() == [0.0, 0.0, 0.0]


DISTANCES = {
    # d = √(2 − 2s): positives cost d_ab; of the negatives within 1, a–c and b–c, both ways
    "euclidean": distance(AB) + (2.0 - distance(AC) - distance(BC)) / 2,
    # d² = 2 − 2s: 0.4 for positives, 1 − 0.8 and 1 − 0.08 for negatives
    "squared_euclidean": 0.4 + (0.2 + 0.92) / 2,
    # as below: the mean of 0.64 and 16; all negatives are beyond 1
    "snr": 8.32,
}


@pytest.mark.parametrize("similarity", DISTANCES)
def test_margins_of_a_distance_are_distances(similarity: str):
    """By default positives are pulled to distance 0, and negatives pushed to distance 1."""
    loss = losses.ContrastiveLoss(similarity=similarity)
    assert (loss.positive_margin, loss.negative_margin) == (0.0, 1.0)
    for same in (loss, losses.ContrastiveLoss(0.0, 1.0, similarity=similarity)):
        assert same(EMBEDDINGS, LABELS).item() == pytest.approx(DISTANCES[similarity], abs=1e-12)


def test_margins_of_a_similarity_are_similarities():
    for similarity in ("cosine", "dot"):
        loss = losses.ContrastiveLoss(similarity=similarity)
        assert (loss.positive_margin, loss.negative_margin) == (1.0, 0.5)
        assert loss(EMBEDDINGS, LABELS).item() == pytest.approx(CASES["ContrastiveLoss"], abs=1e-12)


def test_one_margin_may_be_given():
    """Distances: positives cost d − 0.5, negatives as by default."""
    loss = losses.ContrastiveLoss(0.5, similarity="euclidean")
    assert (loss.positive_margin, loss.negative_margin) == (0.5, 1.0)
    assert loss(EMBEDDINGS, LABELS).item() == pytest.approx(DISTANCES["euclidean"] - 0.5, abs=1e-12)
    wider = losses.ContrastiveLoss(negative_margin=1.5, similarity="euclidean")
    assert wider(EMBEDDINGS, LABELS).item() == pytest.approx(DISTANCES["euclidean"] + 0.5, abs=1e-12)


def test_a_derivative_that_overflows_is_refused():
    """``e^s`` of two raw embeddings at s = 88.4 is 2.4e38, and its derivative 9.4 times that is beyond float32."""

    class Steep(losses.PairLoss):
        def declare(self):
            return per_pair(NEGATIVES, exp(s))

    embeddings = torch.tensor([[9.4, 0.0], [9.4, 0.01]], requires_grad=True)
    value = Steep(similarity="dot")(embeddings, torch.tensor([0, 1]))
    assert value.isfinite()
    with pytest.raises(ValueError, match=r"the gradient of embeddings must be finite, but that of row 0 is not"):
        value.backward()
    # the loss of a scaler that overflows is its own business
    (Steep(similarity="dot")(0.1 * embeddings, torch.tensor([0, 1])) * torch.inf).backward()


def test_margins_stay_in_the_units_of_their_similarity():
    loss = losses.ContrastiveLoss()
    loss.similarity = "dot"
    with pytest.raises(ValueError, match="similarity must be given to the constructor of ContrastiveLoss"):
        loss.similarity = "euclidean"
