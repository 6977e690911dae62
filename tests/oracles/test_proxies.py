"""The oracles of proxy losses and regularizers against numbers worked out on paper.

Points on the unit circle, with h = √3/2: A at 0°, B at 60°, C at 90°, D at 180°, E at −90°, F at −60°. Unless
a case says otherwise the samples are x = 2A of class 0 and x' = B of class 1 and the proxies 3A, C/2 and D of
classes 0, 1, 2:

    cosine     3A     C/2    D         squared distance     3A     C/2       D
    2A         1      0     −1         2A                   0      2         4
    B          1/2    h     −1/2       B                    1      2 − 2h    3
"""

import math
from math import exp, log, pi, sqrt

import pytest

from . import direction, losses, proxies

h = sqrt(3) / 2
A, B, C, D = [1.0, 0.0], [0.5, h], [0.0, 1.0], [-1.0, 0.0]
E, F = [0.0, -1.0], [0.5, -h]
X, Y = [[2.0, 0.0], B], [0, 1]
W = [[3.0, 0.0], [0.0, 0.5], D]


def near(value: float) -> object:
    """Equal up to rounding."""
    return pytest.approx(value, rel=0.0, abs=1e-12)


def values(terms: losses.Terms, term: int = 0) -> list[float]:
    """The values of one term, in order."""
    return [value for _, value in terms[term]]


def indices(terms: losses.Terms, term: int = 0) -> list[int]:
    """The samples or proxies of one term, in order."""
    return [index for index, _ in terms[term]]


# ------------------------------------------------------------------------------------- softmax and its kindred


def test_softmax():
    """Raw dot products: (2, 0) with (3, 0), (0, ½), (−1, 0) is 6, 0, −2; B has 3/2, h/2, −½.

    A bias (1, 2, 3) is added to both rows.
    """
    terms = proxies.softmax(X, Y, W)
    assert indices(terms) == [0, 1]
    assert values(terms) == near([log(1 + exp(-6) + exp(-8)), log(exp(1.5) + exp(h / 2) + exp(-0.5)) - h / 2])
    biased = proxies.softmax(X, Y, W, bias=[1.0, 2.0, 3.0])
    assert values(biased) == near(
        [log(exp(7) + exp(2) + exp(1)) - 7, log(exp(2.5) + exp(h / 2 + 2) + exp(2.5)) - h / 2 - 2]
    )


def test_normalized_softmax():
    """τ = ½: logits 2, 0, −2 and 1, 2h, −1."""
    terms = proxies.normalized_softmax(X, Y, W, temperature=0.5)
    assert indices(terms) == [0, 1]
    assert values(terms) == near([log(1 + exp(-2) + exp(-4)), log(exp(1) + exp(2 * h) + exp(-1)) - 2 * h])


def test_proxy_nca():
    """The positive is left out below: log(e^−2 + e^−4) + 0 and log(e^−1 + e^−3) + 2 − 2h, both negative.

    Scale 3 multiplies every squared distance. One proxy alone: nothing to divide by.
    """
    terms = proxies.proxy_nca(X, Y, W)
    assert indices(terms) == [0, 1]
    assert values(terms) == near([log(exp(-2) + exp(-4)), log(exp(-1) + exp(-3)) + 2 - 2 * h])
    assert values(proxies.proxy_nca(X, Y, W, scale=3.0)) == near(
        [log(exp(-6) + exp(-12)), log(exp(-3) + exp(-9)) + 6 - 6 * h]
    )
    assert proxies.proxy_nca([A], [0], [C]) == [[]]


def test_proxy_nca_pp():
    """T = ½: logits 0, −4, −8 and −2, 4h − 4, −6, the positive among them."""
    terms = proxies.proxy_nca_pp(X, Y, W, temperature=0.5)
    assert values(terms) == near([log(1 + exp(-4) + exp(-8)), log(exp(-2) + exp(4 * h - 4) + exp(-6)) - (4 * h - 4)])


def test_proxy_nca_pp_is_a_normalized_softmax():
    """−d²/T = (2 cos − 2)/T: the softmax of cosines at temperature T/2."""
    assert values(proxies.proxy_nca_pp(X, Y, W, 0.3)) == near(values(proxies.normalized_softmax(X, Y, W, 0.15)))


# -------------------------------------------------------------------------------------------- angular margins


def test_sphere_face():
    """m = 4. Sample (2, 0) of class 0 at 0°: k = 0, ψ = 1, norm 2: logits 2, 0, −2.

    B of class 0 at 60°: 240°, k = 1, ψ = −cos 240° − 2 = −3/2; of class 1 at 30°: 120°, k = 0, ψ = −½; of class 2
    at 120°: 480°, k = 2, ψ = cos 120° − 4 = −9/2. 3D of class 0 at 180°: ψ = 1 − 2m = −7, norm 3.
    """
    samples = [[2.0, 0.0], B, B, B, [-3.0, 0.0]]
    terms = proxies.sphere_face(samples, [0, 0, 1, 2, 0], W)
    expected = [
        log(exp(2) + 1 + exp(-2)) - 2,
        log(exp(-1.5) + exp(h) + exp(-0.5)) + 1.5,
        log(exp(0.5) + exp(-0.5) + exp(-0.5)) + 0.5,
        log(exp(0.5) + exp(h) + exp(-4.5)) + 4.5,
        log(exp(-21) + 1 + exp(3)) + 21,
    ]
    assert indices(terms) == [0, 1, 2, 3, 4]
    assert values(terms) == near(expected)


def test_sphere_face_scaled_or_normalized():
    """m = 3, 3D of class 0: ψ(180°) = 1 − 6 = −5. Scale ½ halves the logits; normalized the 3 is dropped."""
    scaled = proxies.sphere_face([[-3.0, 0.0]], [0], W, margin=3, scale=0.5)
    assert values(scaled) == near([log(exp(-7.5) + 1 + exp(1.5)) + 7.5])
    unit = proxies.sphere_face([[-3.0, 0.0]], [0], W, margin=3, normalize=True)
    assert values(unit) == near([log(exp(-5) + 1 + exp(1)) + 5])


def test_sphere_face_without_margin():
    """m = 1: ψ(θ) = cos θ, a softmax with proxies of unit norm."""
    units = [A, C, D]
    assert values(proxies.sphere_face(X, Y, W, margin=1)) == near(values(proxies.softmax(X, Y, units)))


def test_cos_face():
    """Margin ¼, scale 2: logits 3/2, 0, −2 and 1, 2h − ½, −1."""
    terms = proxies.cos_face(X, Y, W, margin=0.25, scale=2.0)
    assert indices(terms) == [0, 1]
    assert values(terms) == near(
        [log(exp(1.5) + 1 + exp(-2)) - 1.5, log(exp(1) + exp(2 * h - 0.5) + exp(-1)) - 2 * h + 0.5]
    )


def test_arc_face():
    """Margin 30°, scale 2: 0° becomes 30°, logits 2h, 0, −2; 30° becomes 60°, logits 1, 1, −1."""
    terms = proxies.arc_face(X, Y, W, margin=30.0, scale=2.0)
    assert indices(terms) == [0, 1]
    assert values(terms) == near([log(exp(2 * h) + 1 + exp(-2)) - 2 * h, log(2 * exp(1) + exp(-1)) - 1])


def test_arc_face_past_pi():
    """Margin 30°, scale 1. D of class 0 is at 180°, past π: −1 − (π/6) sin 30° = −1 − π/12.

    Margin 90°: B of class 2 is at 120°, 210° together: −½ − π/2; of class 0 at 60°, 150° together: −h.
    """
    past = proxies.arc_face([D], [0], W, margin=30.0, scale=1.0)
    assert values(past) == near([log(exp(-1 - pi / 12) + 1 + exp(1)) + 1 + pi / 12])
    wide = proxies.arc_face([B, B], [2, 0], W, margin=90.0, scale=1.0)
    assert values(wide) == near(
        [
            log(exp(0.5) + exp(h) + exp(-0.5 - pi / 2)) + 0.5 + pi / 2,
            log(exp(-h) + exp(h) + exp(-0.5)) + h,
        ]
    )


def test_sub_center_arc_face():
    """Centers A, B of class 0 and 2C, D of class 1; margin 30°, scale 2.

    B of class 1: best centers B (1) and C (h, 30°, becomes 60°): logits 2, 1. A of class 0: A (becomes 30°) and
    C (0): logits 2h, 0. D of class 0: B (120°, becomes 150°) and D (1): logits −2h, 2.
    """
    terms = proxies.sub_center_arc_face([B, A, D], [1, 0, 0], [A, B, [0.0, 2.0], D], 2, 30.0, 2.0)
    assert indices(terms) == [0, 1, 2]
    assert values(terms) == near([log(1 + exp(1)), log(1 + exp(-2 * h)), log(1 + exp(2 + 2 * h))])


# ------------------------------------------------------------------------------------ several centers per class


def test_soft_triple():
    """Centers A, B of class 0 and C, D of class 1; gamma ½, la 2, margin ¼. Sample 5A: cosines 1, ½ | 0, −1.

    S'_0 = (e² + e/2)/(e² + e), S'_1 = −e^−2/(1 + e^−2). Of class 0 the logits differ by 2(S'_1 − S'_0 + ¼), of
    class 1 by 2(S'_0 − S'_1 + ¼).
    """
    first, second = (exp(2) + exp(1) / 2) / (exp(2) + exp(1)), -exp(-2) / (1 + exp(-2))
    terms = proxies.soft_triple([[5.0, 0.0], A], [0, 1], [A, B, C, D], centers=2, la=2.0, gamma=0.5, margin=0.25)
    assert indices(terms) == [0, 1]
    assert values(terms) == near([log(1 + exp(2 * (second - first + 0.25))), log(1 + exp(2 * (first - second + 0.25)))])


def test_soft_triple_with_one_center_is_cos_face():
    """One center has weight 1 whatever gamma is."""
    expected = values(proxies.cos_face(X, Y, W, margin=0.25, scale=2.0))
    assert values(proxies.soft_triple(X, Y, W, 1, 2.0, 0.1, 0.25)) == near(expected)


def test_soft_triple_regularizer():
    """Class 0: 2A and B, w·w' = ½, √(1 + 1e-5); class 1: C and D, 0, √(2 + 1e-5). C K (K − 1) = 4.

    Three centers A, C, D of one class: pairs 0, −1, 0 and C K (K − 1) = 6. One center per class: 0.
    """
    two = proxies.soft_triple_regularizer([[2.0, 0.0], B, C, D], centers=2, tau=0.2)
    assert two == near(0.2 * (sqrt(1 + 1e-5) + sqrt(2 + 1e-5)) / 4)
    three = proxies.soft_triple_regularizer([A, C, D], centers=3, tau=1.0)
    assert three == near((2 * sqrt(2 + 1e-5) + sqrt(4 + 1e-5)) / 6)
    assert proxies.soft_triple_regularizer([A, C, D], centers=1, tau=1.0) == 0.0


SIX = [A, B, C, [-2.0, 0.0], E, F]  # two centers of each of three classes


@pytest.mark.parametrize(
    ("label", "neighbors", "expected"),
    [
        (0, 1, 0.0),
        (0, 2, 0.0),
        (0, 3, log(1 + exp(-1))),
        (1, 3, log(1 + exp(2))),
        (0, 6, log(1 + exp(-2.5) + exp(-1))),
        (0, 100, log(1 + exp(-2.5) + exp(-1))),
        (2, 4, log(1 + exp(1))),
        (2, 5, log(1 + exp(1) + exp(-0.5))),
    ],
)
def test_proxy_gml_samples(label: int, neighbors: int, expected: float):
    """Sample 4A: cosines 1, ½ | 0, −1 | 0, ½.

    Of class 0: K = 1 or 2 keeps the two positives alone, −log 1; K = 3 adds F, sums 3/2 and ½, class 1 is not
    in the denominator; K ≥ 6 keeps all, sums 3/2, −1, ½. Of class 1: K = 3 keeps C, D, however far, and A,
    sums 1 and −1. Of class 2: K = 4 keeps E, F, A, B, sums 3/2 and ½; K = 5 adds C, whose class is then in the
    denominator although its sum is 0.
    """
    terms = proxies.proxy_gml([[4.0, 0.0]], [label], SIX, centers=2, neighbors=neighbors)
    assert terms[0] == [(0, near(expected))]


def test_proxy_gml_proxies():
    """Centers 2A, B of class 0 and C, D of class 1, weight ½.

    Sums with class 0 and class 1, self included: A 3/2, −1; B 3/2, h − ½; C h, 1; D −3/2, 1.
    """
    terms = proxies.proxy_gml([A], [0], [[2.0, 0.0], B, C, D], centers=2, neighbors=4, weight=0.5)
    assert indices(terms, 1) == [0, 1, 2, 3]
    assert values(terms, 1) == near(
        [
            0.5 * log(1 + exp(-2.5)),
            0.5 * log(1 + exp(h - 2)),
            0.5 * log(1 + exp(h - 1)),
            0.5 * log(1 + exp(-2.5)),
        ]
    )


def test_proxy_gml_takes_its_means_separately():
    """Two samples, four proxies: mean of the first term plus mean of the second."""
    terms = proxies.proxy_gml([A, B], [0, 1], [A, B, C, D], centers=2, neighbors=4, weight=0.5)
    assert [len(term) for term in terms] == [2, 4]
    expected = sum(values(terms)) / 2 + sum(values(terms, 1)) / 4
    assert losses.reduce(terms, "mean", 4) == near(expected)


# ------------------------------------------------------------------------------------------ proxies as anchors


def test_proxy_anchor():
    """Samples 2A and B of class 0, C of class 1; margin ¼, α = 2; e^{−2s + ½} and e^{2s + ½}.

    Proxy A has positives 1, ½ and negative 0; C has positive 1 and negatives 0, h; D has no positive, so that it
    is in the second term only, with −1, −½, 0.
    """
    terms = proxies.proxy_anchor([[2.0, 0.0], B, C], [0, 0, 1], W, margin=0.25, alpha=2.0)
    assert indices(terms) == [0, 1]
    assert indices(terms, 1) == [0, 1, 2]
    attract = [log(1 + exp(-1.5) + exp(-0.5)), log(1 + exp(-1.5))]
    repel = [
        log(1 + exp(0.5)),
        log(1 + exp(0.5) + exp(2 * h + 0.5)),
        log(1 + exp(-1.5) + exp(-0.5) + exp(0.5)),
    ]
    assert values(terms) == near(attract)
    assert values(terms, 1) == near(repel)
    assert losses.reduce(terms, "mean", 3) == near(sum(attract) / 2 + sum(repel) / 3)


def test_proxy_anchor_of_a_batch_of_one_class():
    """Proxy A has no negative sample: log 1 = 0, which still counts in the mean over all proxies."""
    terms = proxies.proxy_anchor([A], [0], [A, C], margin=0.25, alpha=2.0)
    assert terms == [[(0, near(log(1 + exp(-1.5))))], [(0, 0.0), (1, near(log(1 + exp(0.5))))]]


def test_proxy_repulsion():
    """First term as above. Proxies 3A, C/2, D: AC 0, AD −1, CD 0; margin ¼, α = 2."""
    samples, labels = [[2.0, 0.0], B, C], [0, 0, 1]
    terms = proxies.proxy_repulsion(samples, labels, W, margin=0.25, alpha=2.0)
    assert terms[0] == proxies.proxy_anchor(samples, labels, W, margin=0.25, alpha=2.0)[0]
    assert indices(terms, 1) == [0, 1, 2]
    assert values(terms, 1) == near(
        [log(1 + exp(0.5) + exp(-1.5)), log(1 + 2 * exp(0.5)), log(1 + exp(-1.5) + exp(0.5))]
    )


def test_proxy_repulsion_through_samples():
    """Samples 2A, B, C have cosines (1, 0, −1), (½, h, −½), (0, 1, 0) with the proxies.

    AC: 0 + h/2 + 0; AD: −1 − ¼; CD: −h/2.
    """
    terms = proxies.proxy_repulsion([[2.0, 0.0], B, C], [0, 0, 1], W, 0.25, 2.0, through_samples=True)
    assert values(terms, 1) == near(
        [
            log(1 + exp(h + 0.5) + exp(-2.0)),
            log(1 + exp(h + 0.5) + exp(-h + 0.5)),
            log(1 + exp(-2.0) + exp(-h + 0.5)),
        ]
    )


def test_proxy_repulsion_does_not_overflow():
    """180 samples at A, proxies A and A: closeness 180, log(1 + e^{32 · 180.1}) = 5763.2."""
    terms = proxies.proxy_repulsion([A] * 180, [0] * 180, [A, A], through_samples=True)
    assert values(terms, 1) == pytest.approx([5763.2, 5763.2], rel=1e-12)
    assert math.isfinite(values(proxies.arc_face([D], [0], W, scale=1e4))[0])


# ---------------------------------------------------------------------------------------- direction regularized


def test_direction_triplet():
    """A, B of class 0, 3C of class 1; margin ¼, γ = ½.

    From A: C lies in the direction 135°, B in 120°: cos 15°; 0 − ½ + ¼ − cos 15°/2 < 0 is cut. From B: C lies
    at 165°, A at −60°: cos 225° = −√½; h − ½ + ¼ + √½/2.
    """
    terms = direction.triplet(losses.batch([A, B, [0.0, 3.0]], [0, 0, 1]), margin=0.25, gamma=0.5)
    assert terms == [[(0, 0.0), (1, near(h - 0.25 + sqrt(0.5) / 2))]]
    open_hinge = direction.triplet(losses.batch([A, B, [0.0, 3.0]], [0, 0, 1]), margin=1.25, gamma=0.5)
    assert values(open_hinge) == near([0.75 - math.cos(pi / 12) / 2, h + 0.75 + sqrt(0.5) / 2])


def test_direction_triplet_of_equal_vectors():
    """A and 7A of class 0 lie at one point: no direction, 0 − 1 + 2 is left of the triplets with C."""
    terms = direction.triplet(losses.batch([A, [7.0, 0.0], C], [0, 0, 1]), margin=2.0, gamma=0.5)
    assert values(terms) == near([1.0, 1.0])
    lengths = [[0.3, 0.1, 0.7], [0.9, 0.3, 2.1], [0.0, 1.0, 0.0]]  # equal but for rounding
    pairs = losses.batch(lengths, [0, 0, 1])
    plain = losses.triplet(pairs, margin=2.0)
    assert values(direction.triplet(pairs, margin=2.0, gamma=0.5)) == near(values(plain))


def test_direction_triplet_with_references():
    """Anchor A, references B (positive) and C (negative): one triplet."""
    terms = direction.triplet(losses.batch([A], [0], [B, C], [0, 1]), 1.25, 0.5)
    assert values(terms) == near([0.75 - math.cos(pi / 12) / 2])


def test_direction_multi_similarity():
    """A, 2B, C of class 0, D of class 1; α = 2, β = 4, base ½, γ = ½: e^{1 − 2s}, e^{4s − 2 − 2 cos}.

    A: hardest positive C; from A, D lies at 180° and C at 135°: √½, s = −1. B and C: hardest positive A; D and A
    are ends of a diameter, a right angle: 0; s = −½ and 0. D has no positive: no direction, negatives −1, −½, 0.
    """
    terms = direction.multi_similarity(losses.batch([A, [1.0, 2 * h], C, D], [0, 0, 0, 1]), 2.0, 4.0, 0.5, 0.5)
    assert indices(terms) == [0, 1, 2, 3]
    assert values(terms) == near(
        [
            log(1 + 1 + exp(1)) / 2 + log(1 + exp(-6 - 2 * sqrt(0.5))) / 4,
            log(1 + 1 + exp(1 - 2 * h)) / 2 + log(1 + exp(-4)) / 4,
            log(1 + exp(1) + exp(1 - 2 * h)) / 2 + log(1 + exp(-2)) / 4,
            log(1 + exp(-6) + exp(-4) + exp(-2)) / 4,
        ]
    )


def test_direction_proxy_nca():
    """Sample 2C of class 0, proxies 3A, D, B; scale 2, γ = ½. Squared distances 2, 2, 2 − 2h.

    From C, A lies at −45°, D at −135°: cos 0; B at −15°: cos 30° = h. The scale multiplies the cosine, too.
    """
    terms = direction.proxy_nca([[0.0, 2.0]], [0], [[3.0, 0.0], D, B], scale=2.0, gamma=0.5)
    assert terms == [[(0, near(log(exp(-4) + exp(-4 + 4 * h - h)) + 4))]]
    assert direction.proxy_nca([C], [0], [A]) == [[]]
    [[(_, softmax)]] = direction.proxy_nca_pp([[0.0, 2.0]], [0], [[3.0, 0.0], D, B], temperature=0.5, gamma=0.5)
    assert softmax == near(log(exp(-4) + exp(-4) + exp(-4 + 4 * h - h)) + 4)


def test_direction_proxy_anchor():
    """Proxies A and D of classes 0 and 1, samples B and C of class 0; α = 2, margin ½, γ = ½.

    D has no positive, so its similarities to B and C, −½ and 0, stay. With E of class 1: from A the least similar positive is
    C, at 135°, and E lies at −135°, a right angle; from D the positive E lies at −45°, C at 45°, a right angle, B at 30°: cos 75°.
    """
    attract, repel = direction.proxy_anchor([B, C], [0, 0], [A, D], 0.5, 2.0, 0.5)
    assert attract == [(0, near(log(1 + 1 + exp(1))))]
    assert repel == [(0, 0.0), (1, near(log(1 + 1 + exp(1))))]
    _, repel = direction.proxy_anchor([B, C, E], [0, 0, 1], [A, D], 0.5, 2.0, 0.5)
    assert repel == [(0, near(log(1 + exp(1)))), (1, near(log(1 + exp(1) + exp(-math.cos(5 * pi / 12)))))]


def test_direction_contrastive_and_n_pairs():
    """A, B of class 0, C of class 1; γ = ½. From A: cos 15°, s = 0; from B: −√½, s = h; C has no positive: 0 and h."""
    pairs = losses.batch([A, B, C], [0, 0, 1])
    _, repel = direction.contrastive(pairs, negative=-2.0, gamma=0.5)
    turned = [-math.cos(pi / 12) / 2, h + sqrt(0.5) / 2]
    assert [value for _, value in repel] == near([2.0 + each for each in (*turned, 0.0, h)])
    n_pairs = direction.n_pairs(pairs, scale=2.0, gamma=0.5)
    assert values(n_pairs) == near([log(1 + exp(2.0 * (each - 0.5))) for each in turned])


def test_without_gamma_there_is_no_direction():
    """γ = 0 gives the losses themselves."""
    points, labels = [A, B, C, D], [0, 0, 1, 1]
    pairs = losses.batch(points, labels)
    for name in ("triplet", "multi_similarity", "contrastive", "n_pairs"):
        assert values(getattr(direction, name)(pairs, gamma=0.0)) == near(values(getattr(losses, name)(pairs))), name
    for name in ("proxy_nca", "proxy_nca_pp", "proxy_anchor"):
        found, plain = getattr(direction, name)(X, Y, W, gamma=0.0), getattr(proxies, name)(X, Y, W)
        assert [values(found, k) for k in range(len(found))] == [near(values(plain, k)) for k in range(len(plain))], (
            name
        )


# ------------------------------------------------------------------------------------------- other regularizers


def test_language_guidance():
    """2A of class 1 and C of class 0; their words are parallel, so that softmax(S_L) = (½, ½).

    softmax(S_I) = (p, 1 − p), p = e/(e + 1), self included: KL = p log 2p + (1 − p) log 2(1 − p) in both rows.
    """
    p = exp(1) / (exp(1) + 1)
    expected = p * log(2 * p) + (1 - p) * log(2 * (1 - p))
    words = [A, [5.0, 0.0]]
    assert proxies.language_guidance([[2.0, 0.0], C], [1, 0], words) == near(expected)
    assert proxies.language_guidance([[2.0, 0.0], C], [1, 0], words, gamma=17.0) == near(expected)


def test_language_guidance_is_a_divergence_from_images_to_words():
    """A, C, and the words A, B of their classes: p = e/(e + 1) against q = e/(e + e^½), Σ p log(p/q).

    The other direction would be Σ q log(q/p), another number.
    """
    p, q = exp(1) / (exp(1) + 1), exp(1) / (exp(1) + exp(0.5))
    expected = p * log(p / q) + (1 - p) * log((1 - p) / (1 - q))
    assert proxies.language_guidance([A, C], [0, 1], [A, B]) == near(expected)


def test_language_guidance_indexes_words_by_label():
    """A and C of class 2, D of class 0. Rows of S_I: (1, 0, −1), (0, 1, 0), (−1, 0, 1).

    Words A of class 0 and C of class 2: rows of S_L (1, 1, 0), (1, 1, 0), (0, 0, 1).
    """

    def divergence(image: list[float], word: list[float]) -> float:
        p, q = [exp(x) for x in image], [exp(x) for x in word]
        return sum(a / sum(p) * log(a / sum(p) / (b / sum(q))) for a, b in zip(p, q, strict=True))

    rows = [
        divergence([1, 0, -1], [1, 1, 0]),
        divergence([0, 1, 0], [1, 1, 0]),
        divergence([-1, 0, 1], [0, 0, 1]),
    ]
    words = [A, D, C]
    assert proxies.language_guidance([A, C, D], [2, 2, 0], words) == near(sum(rows) / 3)

    # masked, γ = 2: every pair of one class, self included, counts 3 in both
    masked = [
        divergence([3, 3, -1], [3, 3, 0]),
        divergence([3, 3, 0], [3, 3, 0]),
        divergence([-1, 0, 3], [0, 0, 3]),
    ]
    value = proxies.language_guidance([A, C, D], [2, 2, 0], words, gamma=2.0, mask_same_class=True)
    assert value == near(sum(masked) / 3)


def test_norm_and_mean_of_embeddings():
    """Norms 5 and 1, sum norms 7 and 1; component sums −1 and 1, whose absolute values are averaged."""
    points = [[3.0, -4.0], C]
    assert proxies.embedding_norm(points) == near(3.0)
    assert proxies.embedding_norm(points, p=1.0) == near(4.0)
    assert proxies.zero_mean(points) == near(1.0)
