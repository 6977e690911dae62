"""The oracles against numbers worked out on paper.

Most cases use four points on the unit circle, A at 0° and B at 60° of class 0, C at 90° and D at 180° of
class 1:

    cosine       B      C      D        distance     B          C          D
    A            1/2    0     −1        A            1          √2         2
    B                   h     −1/2      B                       u          √3
    C                          0        C                                  √2

with h = √3/2 and u = √(2 − √3). Each anchor has one positive and two negatives.
"""

import math
from dataclasses import replace
from math import exp, log, sqrt

import pytest

from . import losses, miners

h = sqrt(3) / 2
u = sqrt(2 - sqrt(3))
A, B, C, D = [1.0, 0.0], [0.5, h], [0.0, 1.0], [-1.0, 0.0]
CIRCLE = losses.batch([A, B, C, D], [0, 0, 1, 1])
ONE_CLASS = losses.batch([A, B], [0, 0])
SINGLE_PROCESS = losses.batch([A, C], [0, 1])


def near(value: float) -> object:
    """Equal up to rounding."""
    return pytest.approx(value, rel=0.0, abs=1e-12)


def mean_of(terms: losses.Terms, anchors: int = 4) -> float:
    """The reduction "mean"."""
    return losses.reduce(terms, "mean", anchors)


def nonzero_of(terms: losses.Terms, anchors: int = 4) -> float:
    """The reduction "nonzero"."""
    return losses.reduce(terms, "nonzero", anchors)


# ----------------------------------------------------------------------------------- similarity, pairs, units


def test_similarities_of_two_vectors_that_are_not_of_unit_norm():
    """a = (3, 0), b = (0, 2): normalized they are (1, 0) and (0, 1), at a right angle and √2 apart.

    Noise b − a = (−1, 1) has variance 1, the anchor (1, 0) has variance 1/4: ratio 4.
    """
    a, b = [3.0, 0.0], [0.0, 2.0]
    assert losses.similarity("cosine", a, b) == 0.0
    assert losses.similarity("dot", a, [2.0, 5.0]) == 6.0
    assert losses.similarity("euclidean", a, b) == near(-sqrt(2))
    assert losses.similarity("squared_euclidean", a, b) == near(-2.0)
    assert losses.similarity("snr", a, b) == near(-4.0)


def test_poincare_distances_along_a_line():
    """The map from the origin keeps distances along a ray, doubled: d(0, x) = 2 min(‖x‖, clip), opposite rays add up."""
    assert losses.similarity("poincare", [0.0, 0.0], [0.6, 0.8]) == near(-2.0)
    assert losses.similarity("poincare", [0.0, 0.0], [0.0, 9.0]) == near(-4.6)
    assert losses.similarity("poincare", [1.0, 0.0], [-0.5, 0.0]) == near(-3.0)


def test_the_signal_to_noise_ratio_depends_on_which_vector_is_the_anchor():
    """In the plane var(x, y) = (x − y)²/4.

    B − A = (−1/2, h), hence d(A, B) = (h + ½)² and d(B, A) = (h + ½)²/(h − ½)².
    """
    assert losses.similarity("snr", A, B) == near(-((h + 0.5) ** 2))
    assert losses.similarity("snr", B, A) == near(-(((h + 0.5) / (h - 0.5)) ** 2))


def test_a_zero_vector_normalizes_to_a_zero_vector():
    """Its cosine with anything is 0, its distance to a unit vector is 1; without signal or noise snr is 0."""
    zero = [0.0, 0.0]
    assert losses.similarity("cosine", zero, A) == 0.0
    assert losses.similarity("euclidean", zero, A) == -1.0
    assert losses.similarity("snr", zero, zero) == 0.0


def test_a_sample_is_excluded_by_index_and_only_within_one_set():
    """A duplicate is a positive like any other; against references even the same vector counts."""
    twins = losses.batch([A, A], [0, 0])
    assert twins.positive == [[False, True], [True, False]]
    crossed = losses.batch([A, B], [0, 1], [A, B], [0, 1])
    assert crossed.positive == [[True, False], [False, True]]
    assert crossed.negative == [[False, True], [True, False]]
    assert twins.same
    assert not crossed.same


def test_reductions():
    """Term 1: 1, 3, 0 (anchors 0, 0, 2). Term 2: 5, 0 (anchors 1, 2). Term 3: nothing.

    mean 4/3 + 5/2; nonzero 4/2 + 5/1; sum 9; none (4, 5, 0, 0).
    """
    terms: losses.Terms = [[(0, 1.0), (0, 3.0), (2, 0.0)], [(1, 5.0), (2, 0.0)], []]
    assert losses.reduce(terms, "mean", 4) == near(4 / 3 + 5 / 2)
    assert losses.reduce(terms, "nonzero", 4) == near(7.0)
    assert losses.reduce(terms, "sum", 4) == 9.0
    assert losses.reduce(terms, "none", 4) == [4.0, 5.0, 0.0, 0.0]
    with pytest.raises(ValueError, match="reduction"):
        losses.reduce(terms, "median", 4)


def test_nothing_overflows():
    """β = 1000: log(1 + Σ e^{1000 s})/1000 tends to the largest similarity, here h for anchors B and C."""
    per_anchor = losses.reduce(losses.multi_similarity(CIRCLE, beta=1e3, base=0.0), "none", 4)
    assert per_anchor[1] == near(log(1 + exp(-1)) / 2 + h)
    assert math.isfinite(mean_of(losses.nt_xent(CIRCLE, temperature=1e-4)))
    assert math.isfinite(mean_of(losses.circle(CIRCLE, gamma=1e5)))


# -------------------------------------------------------------------------------- pairs, triplets, quadruples


def test_contrastive():
    """Positive pairs, both ways: 1 − ½ twice and 1 − 0 twice, mean ¾.

    Of the eight negative pairs only BC and CB are above ½, by h − ½. nonzero ¾ + (h − ½); mean
    ¾ + 2(h − ½)/8; B has ½ + (h − ½) = h.
    """
    terms = losses.contrastive(CIRCLE)
    assert [len(term) for term in terms] == [4, 8]
    assert nonzero_of(terms) == near(0.25 + h)
    assert mean_of(terms) == near(0.75 + (h - 0.5) / 4)
    assert losses.reduce(terms, "none", 4) == near([0.5, h, 1 + h - 0.5, 1.0])


def test_contrastive_on_distances():
    """[d_p]₊ + [1 − d_n]₊: positives 1, 1, √2, √2; negatives below 1 only BC, 1 − u."""
    terms = losses.contrastive(CIRCLE, 0.0, -1.0, kind="euclidean")
    assert nonzero_of(terms) == near((1 + sqrt(2)) / 2 + 1 - u)


def test_snr_contrastive():
    """A, B of class 0 and C of class 1. Positives (h + ½)² and ((h + ½)/(h − ½))² (see above).

    C − B = (−½, 1 − h), so d(A, C) = d(C, A) = 4, d(B, C) = (3/2 − h)²/(h − ½)² = 3, d(C, B) = (3/2 − h)²:
    only the last is below 1. Component sums 1, ½ + h, 1.
    """
    terms = losses.snr_contrastive(losses.batch([A, B, C], [0, 0, 1]), regularizer=0.1)
    positive = ((h + 0.5) ** 2 + ((h + 0.5) / (h - 0.5)) ** 2) / 2
    assert nonzero_of(terms, 3) == near(positive + 1 - (1.5 - h) ** 2 + 0.1 * (2.5 + h) / 3)


def test_intra_pair_variance():
    """Positive mean ¼; (1 − 0.2)·¼ = 0.2, missed by CD and DC by 0.2: mean 2·0.04/4.

    Negative mean m = (h − 3/2)/4 ≈ −0.16, threshold 1.2 m ≈ −0.19: exceeded by AC (0) and BC (h).
    """
    threshold = 1.2 * (h - 1.5) / 4
    expected = 0.02 + (threshold**2 + (h - threshold) ** 2) / 4
    assert mean_of(losses.intra_pair_variance(CIRCLE, 0.2, 0.2)) == near(expected)


def test_triplet():
    """s_an − s_ap + 0.1 is positive for three of the 8 triplets.

    (B, A, C): h − 0.4; (C, D, A): 0.1; (C, D, B): h + 0.1.
    """
    terms = losses.triplet(CIRCLE)
    assert len(terms[0]) == 8
    assert nonzero_of(terms) == near((2 * h - 0.2) / 3)
    assert mean_of(terms) == near((2 * h - 0.2) / 8)


def test_soft_triplet():
    """A and B of one class, C of another, no margin.

    Anchor A has s_an − s_ap = 0 − ½, anchor B h − ½; C has no positive.
    """
    terms = losses.triplet(losses.batch([A, B, C], [0, 0, 1]), margin=0.0, soft=True)
    assert mean_of(terms, 3) == near((log(1 + exp(-0.5)) + log(1 + exp(h - 0.5))) / 2)


def test_margin():
    """Margin 0.2, β = 1.1, eight triplets.

    Every positive pair is in two triplets, with 0.1 (A, B) or √2 − 0.9 (C, D). Negatives closer than 1.3:
    only BC, 1.3 − u, for anchors B and C. That makes 8 + 2 values that are not zero; if the two values of a
    triplet were counted as one, the divisor would be 8.
    """
    total = 4 * 0.1 + 4 * (sqrt(2) - 0.9) + 2 * (1.3 - u)
    terms = losses.margin(CIRCLE, margin=0.2, beta=1.1)
    assert len(terms[0]) == 16
    assert nonzero_of(terms) == near(total / 10)


def test_margin_with_one_boundary_per_class():
    """β = 1.1 for class 0, 1.5 for class 1. Anchors A, B as before: 4 · 0.1 and BC 1.3 − u.

    Anchors C, D: √2 − 1.3 four times; negatives closer than 1.7: CA 1.7 − √2, CB 1.7 − u (DB is √3 apart).
    """
    total = 4 * 0.1 + (1.3 - u) + 4 * (sqrt(2) - 1.3) + (1.7 - sqrt(2)) + (1.7 - u)
    assert nonzero_of(losses.margin(CIRCLE, margin=0.2, beta=[1.1, 1.5])) == near(total / 11)


def test_quadruplet():
    """A, B of class 0, C and D alone in classes 1 and 2. Triplets: (B, A, C) alone is violated, h − 0.4.

    Quadruples (A, B), (B, A) with (C, D), (D, C): s_CD − s_AB + 0.6 = 0.1 each.
    """
    terms = losses.quadruplet(losses.batch([A, B, C, D], [0, 0, 1, 2]), margin1=0.1, margin2=0.6)
    assert [len(term) for term in terms] == [4, 4]
    assert nonzero_of(terms) == near(h - 0.4 + 0.1)
    assert losses.quadruplet(CIRCLE)[1] == []  # two classes: no n and k of different classes


# --------------------------------------------------------------------------------------------- positive pairs


def test_angular():
    """α = 45°, tan² = 1: exponent 4 (a + p)·n − 4 a·p.

    Pair AB with C: 4h − 2, with D: −6 − 2. Pair CD with A: −4, with B: 4(h − ½).
    """
    ab = log(1 + exp(4 * h - 2) + exp(-8))
    cd = log(1 + exp(-4) + exp(4 * h - 2))
    terms = losses.angular(CIRCLE, alpha=45.0)
    assert len(terms[0]) == 4
    assert mean_of(terms) == near((ab + cd) / 2)


def test_angular_normalizes_negatives_too():
    """The length of an embedding does not matter."""
    longer = losses.batch([A, B, [0.0, 7.0], [-0.1, 0.0]], [0, 0, 1, 1])
    assert mean_of(losses.angular(longer)) == near(mean_of(losses.angular(CIRCLE)))


def test_tuplet_margin():
    """Margin 30°, scale 2: AB at 60° becomes cos 30° = h, CD at 90° becomes cos 60° = ½."""
    values = [
        log(1 + exp(-2 * h) + exp(-2 - 2 * h)),
        log(1 + exp(2 * h - 2 * h) + exp(-1 - 2 * h)),
        log(1 + exp(-1) + exp(2 * h - 1)),
        log(1 + exp(-2 - 1) + exp(-1 - 1)),
    ]
    assert losses.reduce(losses.tuplet_margin(CIRCLE, 30.0, 2.0), "none", 4) == near(values)


def test_nt_xent():
    """τ = ½, log(1 + Σ e^{2(s_n − s_p)}): A −1, −3; B 2h − 1, −2; C 0, 2h; D −2, −1."""
    values = [
        log(1 + exp(-1) + exp(-3)),
        log(1 + exp(2 * h - 1) + exp(-2)),
        log(1 + 1 + exp(2 * h)),
        log(1 + exp(-2) + exp(-1)),
    ]
    terms = losses.nt_xent(CIRCLE, temperature=0.5)
    assert losses.reduce(terms, "none", 4) == near(values)
    assert mean_of(terms) == near(sum(values) / 4)


def test_nt_xent_leaves_other_positives_out_of_the_denominator():
    """A, B, C of one class, D of another, τ = 1.

    Anchor A has −log(e^½/(e^½ + e^−1)) and −log(1/(1 + e^−1)).
    """
    terms = losses.nt_xent(losses.batch([A, B, C, D], [0, 0, 0, 1]), temperature=1.0)
    assert len(terms[0]) == 6
    assert losses.reduce(terms, "none", 4)[0] == near(log(1 + exp(-1.5)) + log(1 + exp(-1)))


def test_lifted_structure():
    """Margin 1. Both pairs see the same four negative distances √2, 2, u, √3: L = log Σ e^{1 − d}.

    d_AB = 1, d_CD = √2: mean of ½(1 + L)² and ½(√2 + L)²; per sample half of its pair.
    """
    tail = log(exp(1 - sqrt(2)) + exp(-1) + exp(1 - u) + exp(1 - sqrt(3)))
    ab, cd = 0.5 * (1 + tail) ** 2, 0.5 * (sqrt(2) + tail) ** 2
    terms = losses.lifted_structure(CIRCLE)
    assert [anchor for anchor, _ in terms[0]] == [0, 2]
    assert mean_of(terms) == near((ab + cd) / 2)
    assert losses.lifted_structure_per_anchor(CIRCLE) == near([ab / 2, ab / 2, cd / 2, cd / 2])


def test_lifted_structure_of_two_tight_clusters():
    """Two points at A, two at D.

    With margin 1, 0 + log(4 e^{1 − 2}) > 0; with margin 0, 0 + log(4 e^{0 − 2}) < 0 is cut.
    """
    tight = losses.batch([A, A, D, D], [0, 0, 1, 1])
    assert mean_of(losses.lifted_structure(tight, margin=1.0)) == near(0.5 * (log(4) - 1) ** 2)
    assert losses.lifted_structure(tight, margin=0.0) == [[(0, 0.0), (2, 0.0)]]


# ---------------------------------------------------------------------------------------------------- anchors


def test_generalized_lifted_structure():
    """Margin ½, one positive each: ½ − s_p + log Σ e^{s_n}.

    A log(1 + e^−1), B log(e^h + e^−½), C ½ + log(1 + e^h), D ½ + log(…) > 0.
    """
    values = [
        log(1 + exp(-1)),
        log(exp(h) + exp(-0.5)),
        0.5 + log(1 + exp(h)),
        0.5 + log(exp(-1) + exp(-0.5)),
    ]
    assert losses.reduce(losses.generalized_lifted_structure(CIRCLE), "none", 4) == near(values)
    hinged = losses.generalized_lifted_structure(CIRCLE, margin=-1.0)
    assert hinged[0][0] == (0, 0.0)
    assert len(hinged[0]) == 4
    doubled = losses.generalized_lifted_structure(CIRCLE, margin=0.5, scale=2.0)
    assert doubled[0][0][1] == 0.0
    assert doubled[0][2][1] == near(0.5 + log(1 + exp(2 * h)))


def test_n_pairs():
    """a (1, 0), p (2, 0), q (1, 1) of class 0 and n (0, 1): ap 2, aq 1, pq 2, an 0, pn 0, qn 1.

    a log(1 + e^−2 + e^−1), p log(1 + 2 e^−2), q log(1 + e^0 + e^−1), n has no positive. Squared norms 1, 4,
    2, 1: their mean is 2 over all four.
    """
    points = losses.batch([[1.0, 0.0], [2.0, 0.0], [1.0, 1.0], [0.0, 1.0]], [0, 0, 0, 1])
    expected = (log(1 + exp(-2) + exp(-1)) + log(1 + 2 * exp(-2)) + log(2 + exp(-1))) / 3
    assert mean_of(losses.n_pairs(points)) == near(expected)
    assert mean_of(losses.n_pairs(points, l2=0.1)) == near(expected + 0.2)


def test_circle():
    """m = ¼, γ = 4. Positive −4 (5/4 − s)(s − 3/4): s = ½ gives ¾, s = 0 gives 15/4.

    Negative 4 [s + ¼]₊ (s − ¼): s = 0 gives −¼, h gives 4(¾ − 1/16) = 11/4, −½ and −1 give 0 (the weight is
    cut). softplus(x + log(e^y + e^z)) = log(1 + e^{x + y} + e^{x + z}).
    """
    values = [
        log(1 + exp(0.5) + exp(0.75)),
        log(1 + exp(3.5) + exp(0.75)),
        log(1 + exp(3.5) + exp(6.5)),
        log(1 + 2 * exp(3.75)),
    ]
    assert losses.reduce(losses.circle(CIRCLE, 0.25, 4.0), "none", 4) == near(values)


def test_circle_with_frozen_weights():
    """Weights from `frozen`, where B lies at A and C at D: s_p = 1 and every s_n = −1, so [¼]₊ and [−¾]₊ = 0.

    γ = 4, m = ¼. Anchor A: −4 · ¼ (½ − ¾) = ¼, two negatives with weight zero: log(1 + 2 e^¼).
    """
    frozen = losses.batch([A, A, D, D], [0, 0, 1, 1])
    assert losses.circle_frozen(CIRCLE, frozen, 0.25, 4.0)[0][0][1] == near(log(1 + 2 * exp(0.25)))


def test_sup_con():
    """A, B, C of one class, D of another, τ = 1.

    A has cosines ½, 0 | −1: mean of log(e^½ + 1 + e^−1) − s_p. D has no positive.
    """
    terms = losses.sup_con(losses.batch([A, B, C, D], [0, 0, 0, 1]), temperature=1.0)
    assert len(terms[0]) == 3
    assert terms[0][0][1] == near(log(exp(0.5) + 1 + exp(-1)) - 0.25)


def test_nca():
    """Same points, s = −d²: A has −1, −2 | −4: −log((e^−1 + e^−2)/(e^−1 + e^−2 + e^−4))."""
    terms = losses.nca(losses.batch([A, B, C, D], [0, 0, 0, 1]))
    assert len(terms[0]) == 3
    assert terms[0][0][1] == near(log(1 + exp(-4) / (exp(-1) + exp(-2))))


def test_binomial_deviance():
    """α = 2, β = 4, base ½: positive log(1 + e^{1 − 2s}), negative log(1 + e^{4s − 2}) averaged over two."""
    b = log(1 + exp(4 * h - 2))
    zero, minus_half, minus_one = log(1 + exp(-2)), log(1 + exp(-4)), log(1 + exp(-6))
    values = [
        log(2) + (zero + minus_one) / 2,
        log(2) + (b + minus_half) / 2,
        log(1 + exp(1)) + (zero + b) / 2,
        log(1 + exp(1)) + (minus_one + minus_half) / 2,
    ]
    assert losses.reduce(losses.binomial_deviance(CIRCLE, 2.0, 4.0, 0.5), "none", 4) == near(values)


def test_multi_similarity():
    """α = 2, β = 4, base ½: positive e^{1 − 2s} is 1 (A, B) or e (C, D); negative e^{4s − 2}."""
    values = [
        log(2) / 2 + log(1 + exp(-2) + exp(-6)) / 4,
        log(2) / 2 + log(1 + exp(4 * h - 2) + exp(-4)) / 4,
        log(1 + exp(1)) / 2 + log(1 + exp(-2) + exp(4 * h - 2)) / 4,
        log(1 + exp(1)) / 2 + log(1 + exp(-6) + exp(-4)) / 4,
    ]
    terms = losses.multi_similarity(CIRCLE, 2.0, 4.0, 0.5)
    assert losses.reduce(terms, "none", 4) == near(values)
    assert mean_of(terms) == near(sum(values) / 4)


def test_raw():
    """Margin 0.1. A: no negative above 0.4, positive ½ not below 0.1: nothing kept; D: likewise.

    B keeps A (½ < h + 0.1) and C (h > 0.4) but not D; C keeps all of its pairs. Still averaged over four.
    """
    b = log(2) / 2 + log(1 + exp(4 * h - 2)) / 4
    c = log(1 + exp(1)) / 2 + log(1 + exp(-2) + exp(4 * h - 2)) / 4
    assert mean_of(losses.raw(CIRCLE, 2.0, 4.0, 0.5, 0.1)) == near((b + c) / 4)


def test_anchors_that_lack_a_positive_or_a_negative():
    """One class: nothing to contrast with. Two samples of two classes: nothing to attract.

    With one positive and no negative the softmax losses are −log 1 = 0, and FastAP is perfect.
    """
    both = [
        losses.generalized_lifted_structure,
        losses.n_pairs,
        losses.circle,
        losses.binomial_deviance,
        losses.nt_xent,
        losses.tuplet_margin,
        losses.angular,
        losses.lifted_structure,
        losses.histogram,
        losses.sup_con,
        losses.nca,
    ]
    for loss in both:
        assert loss(ONE_CLASS)[0] == []
        assert loss(SINGLE_PROCESS)[0] == []
    assert losses.fast_ap(ONE_CLASS) == [[(0, near(0.0)), (1, near(0.0))]]
    assert losses.fast_ap(SINGLE_PROCESS) == [[]]
    assert losses.multi_similarity(ONE_CLASS)[0] == [(0, near(log(2) / 2)), (1, near(log(2) / 2))]
    assert losses.multi_similarity(SINGLE_PROCESS, beta=4.0)[0][0] == (0, near(log(1 + exp(-2)) / 4))
    assert losses.raw(ONE_CLASS) == losses.raw(SINGLE_PROCESS) == [[(0, 0.0), (1, 0.0)]]


def test_references_are_not_excluded():
    """Anchor A against references A, B (positives) and C (negative).

    With τ = 1 the pairs have log(1 + e^{0 − 1}) and log(1 + e^{0 − ½}).
    """
    crossed = losses.batch([A], [0], [A, B, C], [0, 0, 1])
    assert losses.nt_xent(crossed, temperature=1.0)[0] == [
        (0, near(log(1 + exp(-1)))),
        (0, near(log(1 + exp(-0.5)))),
    ]
    for one_set_only in (losses.lifted_structure, losses.histogram, losses.quadruplet):
        with pytest.raises(ValueError, match="one set"):
            one_set_only(crossed)
    with pytest.raises(ValueError, match="labels"):
        losses.quadruplet(replace(CIRCLE, anchor_labels=None, reference_labels=None))


# ------------------------------------------------------------------------------------------------- histograms


def test_fast_ap_on_nodes():
    """4 bins, nodes 0, 1, 2, 3, 4; squared distances AB 1, AC 2, AD 4, BC u², BD 3, CD 2.

    A: positive first, 0. B: C shares nodes 0 and 1, so at node 1 precision is 1/2. C: at node 2 it is 1/3.
    D: positive first, 0.
    """
    terms = losses.fast_ap(CIRCLE, bins=4)
    assert losses.reduce(terms, "none", 4) == near([0.0, 1 / 2, 2 / 3, 0.0])
    assert mean_of(terms) == near(7 / 24)


def test_fast_ap_between_nodes():
    """2 bins, nodes 0, 2, 4. A: positive (½, ½, 0), negatives (0, 1, 0), (0, 0, 1): ½ · 1 + ½ · 1/2 = ¾.

    B: positive (½, ½, 0), C (1 − u²/2, u²/2, 0) = (h, 1 − h, 0), D (0, ½, ½): ½ · ½/(½ + h) + ½ · 1/(5/2).
    C: positive and A at node 2, B before: 1/3. D: positive at node 2 with half of B: 1/(3/2).
    """
    expected = [1 / 4, 1 - 0.25 / (0.5 + h) - 0.2, 2 / 3, 1 / 3]
    assert losses.reduce(losses.fast_ap(CIRCLE, bins=2), "none", 4) == near(expected)


def test_histogram():
    """Positive pairs ½, 0; negative pairs 0, −1, h, −½, each unordered pair once.

    4 bins, nodes −1, −½, 0, ½, 1: h⁺ = (0, 0, ½, ½, 0), cumulative (0, 0, ½, 1, 1);
    h⁻ = ¼ (1, 1, 1, 2 − 2h, 2h − 1): ¼ (½ + 2 − 2h + 2h − 1) = 3/8.

    2 bins, nodes −1, 0, 1: h⁺ = (0, ¾, ¼), cumulative (0, ¾, 1); h⁻ = ¼ (3/2, 5/2 − h, h):
    ¼ (¾ (5/2 − h) + h) = (15/8 + h/4)/4.
    """
    assert losses.histogram(CIRCLE, bins=4) == [[(0, near(3 / 8))]]
    assert losses.histogram(CIRCLE, bins=2) == [[(0, near((15 / 8 + h / 4) / 4))]]


# ----------------------------------------------------------------------------------------------------- miners

# One anchor; references 0, 1, 2 are its positives, 3, 4, 5 its negatives.
S = [[0.9, 0.6, 0.3, 0.75, 0.5, 0.15]]
P = [[True, True, True, False, False, False]]
N = [[False, False, False, True, True, True]]


def test_pair_miners():
    """Hardest positive 0.3, hardest negative 0.75. ε = 0.1: positives below 0.85, negatives above 0.2.

    ε = 0.2: positives below 0.95 and negatives above 0.1, all of them. The two rules are one and the same.
    """
    for mine in (miners.multi_similarity, miners.valid_triplet):
        assert mine(S, P, N, 0.1) == ({(0, 1), (0, 2)}, {(0, 3), (0, 4)})
        assert mine(S, P, N, 0.2) == ({(0, 0), (0, 1), (0, 2)}, {(0, 3), (0, 4), (0, 5)})
        assert mine(S, P, [[False] * 6], 0.2) == (set(), set())
    assert miners.pair_margin(S, P, N, 0.7, 0.6) == ({(0, 1), (0, 2)}, {(0, 3)})


def test_triplet_miners():
    """Hardest negative below 0.9 is 0.75, below 0.6 is 0.5, below 0.3 is 0.15.

    Inside a margin of 0.2: 0.75 for 0.9, 0.5 for 0.6, 0.15 for 0.3; inside 0.12 only 0.5 for 0.6.
    """
    assert miners.semi_hard(S, P, N) == {(0, 0, 3), (0, 1, 4), (0, 2, 5)}
    assert miners.semi_hard(S, P, N, margin=0.2) == {(0, 0, 3), (0, 1, 4), (0, 2, 5)}
    assert miners.semi_hard(S, P, N, margin=0.12) == {(0, 1, 4)}
    assert miners.semi_hard(S, P, N, margin=0.42) == {(0, 0, 3), (0, 0, 4), (0, 1, 4), (0, 2, 5)}
    assert miners.batch_hard(S, P, N) == {(0, 2, 3)}
    assert miners.easy_positive(S, P, N) == {(0, 0, 3)}
    assert miners.easy_positive(S, P, N, negatives="hard") == {(0, 0, 3)}


def test_easy_positive_when_the_hardest_negative_is_closer():
    """Positive 0.4, negatives 0.75, 0.15.

    Semi-hard skips the first negative; without the second there is no triplet.
    """
    mined = miners.easy_positive([[0.4, 0.75, 0.15]], [[True, False, False]], [[False, True, True]])
    assert mined == {(0, 0, 2)}
    assert miners.easy_positive([[0.4, 0.75]], [[True, False]], [[False, True]]) == set()
    assert miners.easy_positive([[0.4, 0.75]], [[True, False]], [[False, True]], "hard") == {(0, 0, 1)}


def test_distance_weights():
    """On the sphere in three dimensions q(d) ∝ d: 0.25 counts as 0.5, weights 2 : 1, and 1.5 takes no part.

    In four dimensions q(d) ∝ d² √(1 − d²/4).
    """
    assert miners.distance_weights([0.25, 1.0, 1.5], dim=3) == near([2 / 3, 1 / 3, 0.0])
    near_weight, far_weight = 1 / (0.25 * sqrt(15 / 16)), 1 / sqrt(3 / 4)
    total = near_weight + far_weight
    assert miners.distance_weights([0.5, 1.0], dim=4) == near([near_weight / total, far_weight / total])
    assert miners.distance_weights([1.5, 1.9], dim=4) == [0.0, 0.0]
    assert sum(miners.distance_weights([0.1, 0.7, 1.0, 1.3], dim=2048)) == near(1.0)
