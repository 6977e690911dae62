"""Pair losses written as plain loops over Python floats, straight from the papers' formulas.

A loss returns its separately averaged *terms*; a term is the list of its *units*, and a unit is a value
together with the anchor that it belongs to. `reduce` turns terms into the number (or the numbers) that the
library returns. Nothing here is fast, differentiable or shared with the library: that is the point.

Three texts are cited by equation number: "thesis" is Psomas, Metric Learning: A Deep Dive (2020); "unified
view" is A Unified View of Deep Metric Learning via Gradient Analysis; "overview" is Mohan et al., Deep Metric
Learning for Computer Vision (2023). Where one of them prints an equation wrongly the corrected form is used.
The original papers are cited by the name of their formula, which is written out.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Literal

from . import miners

Vector = list[float]
Matrix = list[list[float]]
Mask = list[list[bool]]
Unit = tuple[int, float]
Terms = list[list[Unit]]
Kind = Literal["cosine", "dot", "euclidean", "squared_euclidean", "snr", "poincare"]


# ---------------------------------------------------------------------------------------------------- batches


@dataclass(frozen=True)
class Batch:
    """Anchors, the references they are compared with, and which (anchor, reference) pairs are related."""

    anchors: list[Vector]
    references: list[Vector]
    positive: Mask
    negative: Mask
    anchor_labels: list[int] | None
    reference_labels: list[int] | None
    same: bool  # the references are the anchors themselves


def batch(
    embeddings: list[Vector],
    labels: list[int],
    references: list[Vector] | None = None,
    reference_labels: list[int] | None = None,
) -> Batch:
    """Build the pairs from labels. A sample is not its own positive; with references nothing is left out."""
    if (references is None) != (reference_labels is None):
        raise ValueError("references and reference_labels come together")
    same = references is None
    others = embeddings if references is None else references
    other_labels = labels if reference_labels is None else reference_labels
    # The self pair is recognized by its index: its similarity may differ from one by rounding.
    positive = [
        [label == other and not (same and i == j) for j, other in enumerate(other_labels)]
        for i, label in enumerate(labels)
    ]
    negative = [[label != other for other in other_labels] for label in labels]
    return Batch(embeddings, others, positive, negative, labels, other_labels, same)


def positives_of(pairs: Batch, i: int) -> list[int]:
    """P_i, the references that are positives of anchor i."""
    return [j for j in range(len(pairs.references)) if pairs.positive[i][j]]


def negatives_of(pairs: Batch, i: int) -> list[int]:
    """N_i, the references that are negatives of anchor i."""
    return [j for j in range(len(pairs.references)) if pairs.negative[i][j]]


def anchors_of(pairs: Batch) -> range:
    """Indices of the anchors."""
    return range(len(pairs.anchors))


def positive_pairs(pairs: Batch) -> list[tuple[int, int]]:
    """Ordered positive pairs (anchor, positive)."""
    return [(i, p) for i in anchors_of(pairs) for p in positives_of(pairs, i)]


def negative_pairs(pairs: Batch) -> list[tuple[int, int]]:
    """Ordered negative pairs (anchor, negative)."""
    return [(i, n) for i in anchors_of(pairs) for n in negatives_of(pairs, i)]


def triplets_of(pairs: Batch) -> list[tuple[int, int, int]]:
    """All triplets (anchor, positive, negative)."""
    return [(a, p, n) for a, p in positive_pairs(pairs) for n in negatives_of(pairs, a)]


def need_one_set(pairs: Batch, name: str) -> None:
    """Refuse references where the loss is defined among the samples of one set."""
    if not pairs.same:
        raise ValueError(f"{name} is defined on the pairs of one set")


# ---------------------------------------------------------------------------------------------------- numbers


def hinge(x: float) -> float:
    """[x]₊."""
    return x if x > 0.0 else 0.0


def softplus(x: float) -> float:
    """log(1 + e^x) without overflow, and without losing e^x against 1 when x is very negative."""
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


def log_sum_exp(values: list[float]) -> float:
    """log Σ e^v without overflow; the logarithm of an empty sum is minus infinity."""
    if not values:
        return -math.inf
    largest = max(values)
    return largest + math.log(sum(math.exp(value - largest) for value in values))


def log_one_plus_sum_exp(values: list[float]) -> float:
    """log(1 + Σ e^v); zero for an empty sum."""
    return softplus(log_sum_exp(values))


def mean(values: list[float]) -> float:
    """Arithmetic mean of a list that is not empty."""
    return sum(values) / len(values)


def variance(x: Vector) -> float:
    """Population variance over the components of one vector."""
    center = mean(x)
    return mean([(component - center) ** 2 for component in x])


def dot(a: Vector, b: Vector) -> float:
    """Inner product."""
    return sum(x * y for x, y in zip(a, b, strict=True))


def normalized(x: Vector) -> Vector:
    """x / ‖x‖; a zero vector stays zero."""
    norm = math.sqrt(dot(x, x))
    return [component / norm for component in x] if norm > 0.0 else list(x)


def difference(b: Vector, a: Vector) -> Vector:
    """b − a."""
    return [y - x for x, y in zip(a, b, strict=True)]


def squared_distance(a: Vector, b: Vector) -> float:
    """‖a − b‖² between unit vectors (a and b are normalized first)."""
    apart = difference(normalized(b), normalized(a))
    return dot(apart, apart)


def distance(a: Vector, b: Vector) -> float:
    """‖a − b‖ between unit vectors (a and b are normalized first)."""
    return math.sqrt(squared_distance(a, b))


def noise_to_signal(a: Vector, b: Vector) -> float:
    """Yuan et al. 2019, SNR distance: var(b − a) / var(a) with a the anchor, of unit vectors.

    Zero when there is neither noise nor signal; noise without signal has no value and divides by zero.
    """
    anchor = normalized(a)
    noise = variance(difference(normalized(b), anchor))
    signal = variance(anchor)
    return 0.0 if noise == 0.0 and signal == 0.0 else noise / signal


def poincare_distance(a: Vector, b: Vector, curvature: float = 0.1, clip: float = 2.3) -> float:
    """Distance in the Poincare ball (Ermolov et al. 2022, Eq. 3 and 5), as the inverse hyperbolic cosine."""
    root, ball = math.sqrt(curvature), []
    for x in (a, b):
        norm = math.sqrt(dot(x, x))
        clipped = min(norm, clip)
        ball.append([math.tanh(root * clipped) * entry / (root * norm) if norm else 0.0 for entry in x])
    gap = sum((x - y) ** 2 for x, y in zip(*ball, strict=True))
    rims = [1.0 - curvature * dot(z, z) for z in ball]
    return math.acosh(1.0 + 2.0 * curvature * gap / (rims[0] * rims[1])) / root


def similarity(kind: Kind, a: Vector, b: Vector) -> float:
    """Similarity of anchor a and reference b, higher is closer; all but `dot` and `poincare` normalize first."""
    if kind == "cosine":
        return dot(normalized(a), normalized(b))
    if kind == "dot":
        return dot(a, b)
    if kind == "euclidean":
        return -distance(a, b)
    if kind == "squared_euclidean":
        return -squared_distance(a, b)
    if kind == "snr":
        return -noise_to_signal(a, b)
    if kind == "poincare":
        return -poincare_distance(a, b)
    raise ValueError(f"unknown similarity {kind!r}")


def similarities(pairs: Batch, kind: Kind) -> Matrix:
    """S, one row per anchor and one column per reference."""
    return [[similarity(kind, a, b) for b in pairs.references] for a in pairs.anchors]


# -------------------------------------------------------------------------------------------------- reduction


ROUNDING = 8 * 2.0**-52
"""What is nearer to zero than this is the rounding of a similarity: equal embeddings are not always exactly one."""


def reduce(terms: Terms, reduction: str | Callable[[Terms, int], Any], number_of_anchors: int) -> Any:
    """Combine units: each term is averaged on its own and the averages are added.

    "mean": over all units of a term; "nonzero": over its units that are not zero (an average over no unit is
    zero); "sum": every unit of every term; "none": one value per anchor, the sum over its units. A function is
    given the terms and the number of anchors.
    """
    if callable(reduction):
        return reduction(terms, number_of_anchors)
    if reduction == "none":
        per_anchor = [0.0] * number_of_anchors
        for term in terms:
            for anchor, value in term:
                per_anchor[anchor] += value
        return per_anchor
    if reduction == "sum":
        return sum(value for term in terms for _, value in term)
    if reduction not in ("mean", "nonzero"):
        raise ValueError(f"unknown reduction {reduction!r}")
    total = 0.0
    for term in terms:
        values = [value for _, value in term]
        if reduction == "nonzero":
            values = [value for value in values if abs(value) > ROUNDING]
        total += mean(values) if values else 0.0
    return total


# -------------------------------------------------------------------------------------------- losses of pairs


def contrastive(
    batch: Batch, positive_margin: float = 1.0, negative_margin: float = 0.5, kind: Kind = "cosine"
) -> Terms:
    """Hadsell et al. 2006 in similarity form (unified view Eq. 5, thesis Eq. 2.15).

    [positive_margin − s]₊ over ordered positive pairs, [s − negative_margin]₊ over ordered negative pairs.
    """
    s = similarities(batch, kind)
    attract = [(i, hinge(positive_margin - s[i][p])) for i, p in positive_pairs(batch)]
    repel = [(i, hinge(s[i][n] - negative_margin)) for i, n in negative_pairs(batch)]
    return [attract, repel]


def snr_contrastive(
    batch: Batch, positive_margin: float = 0.0, negative_margin: float = 1.0, regularizer: float = 0.0
) -> Terms:
    """Yuan et al. 2019 (signal-to-noise ratio), DSML contrastive loss with its zero-mean regularizer.

    [d_p − positive_margin]₊ and [negative_margin − d_n]₊ with d = var(b − a)/var(a), a the anchor, of unit
    vectors; third term regularizer · |Σ_k e_ik|, one unit per anchor of the batch.
    """
    d = [[noise_to_signal(a, b) for b in batch.references] for a in batch.anchors]
    attract = [(i, hinge(d[i][p] - positive_margin)) for i, p in positive_pairs(batch)]
    repel = [(i, hinge(negative_margin - d[i][n])) for i, n in negative_pairs(batch)]
    centered = [(i, regularizer * abs(sum(normalized(batch.anchors[i])))) for i in anchors_of(batch)]
    return [attract, repel, centered]


def intra_pair_variance(
    batch: Batch, positive_epsilon: float = 0.01, negative_epsilon: float = 0.01, kind: Kind = "cosine"
) -> Terms:
    """Yu & Tao 2019 (tuplet margin loss), intra-pair variance loss: pairs worse than the mean of their kind.

    [(1 − ε₊) mean(s_p) − s_p]₊² and [s_n − (1 + ε₋) mean(s_n)]₊², means over all ordered pairs of the batch.
    """
    s = similarities(batch, kind)
    attract: list[Unit] = []
    repel: list[Unit] = []
    if positive_pairs(batch):
        threshold = (1.0 - positive_epsilon) * mean([s[i][p] for i, p in positive_pairs(batch)])
        attract = [(i, hinge(threshold - s[i][p]) ** 2) for i, p in positive_pairs(batch)]
    if negative_pairs(batch):
        threshold = (1.0 + negative_epsilon) * mean([s[i][n] for i, n in negative_pairs(batch)])
        repel = [(i, hinge(s[i][n] - threshold) ** 2) for i, n in negative_pairs(batch)]
    return [attract, repel]


# ----------------------------------------------------------------------------------------- losses of triplets


def triplet(batch: Batch, margin: float = 0.1, soft: bool = False, kind: Kind = "cosine") -> Terms:
    """Schroff et al. 2015 in similarity form (thesis Eq. 2.17, unified view Eq. 7): [s_an − s_ap + margin]₊.

    soft: softplus in place of the hinge (Hermans et al. 2017).
    """
    s = similarities(batch, kind)
    clip = softplus if soft else hinge
    return [[(a, clip(s[a][n] - s[a][p] + margin)) for a, p, n in triplets_of(batch)]]


def margin(batch: Batch, margin: float = 0.2, beta: float | list[float] = 1.2) -> Terms:
    """Wu et al. 2017, margin based loss (thesis Eq. 2.23), on Euclidean distance of unit vectors.

    For each triplet two separate units of one term: [margin + d_ap − β]₊ and [margin + β − d_an]₊. The loss
    is reduce(..., "nonzero"), so that positive and negative values are counted separately; `nu` · mean β is
    left to the caller. A list β is indexed by the class of the anchor.
    """
    units: list[Unit] = []
    for a, p, n in triplets_of(batch):
        boundary = beta[batch.anchor_labels[a]] if isinstance(beta, list) else beta
        units.append((a, hinge(margin + distance(batch.anchors[a], batch.references[p]) - boundary)))
        units.append((a, hinge(margin + boundary - distance(batch.anchors[a], batch.references[n]))))
    return [units]


def quadruplet(batch: Batch, margin1: float = 0.1, margin2: float = 0.05, kind: Kind = "cosine") -> Terms:
    """Chen et al. 2017 (beyond triplet loss), quadruplet loss, in similarity form.

    Term 1: [s_an − s_ap + margin1]₊ over triplets. Term 2: [s_nk − s_ap + margin2]₊ over ordered (a, p, n, k)
    with the classes of a, n and k all different.
    """
    need_one_set(batch, "quadruplet")
    labels = batch.anchor_labels
    if labels is None:
        raise ValueError("quadruplet needs labels: n and k are told apart by their classes")
    s = similarities(batch, kind)
    weak: list[Unit] = []
    for a, p in positive_pairs(batch):
        for n, k in product(negatives_of(batch, a), repeat=2):
            if labels[n] != labels[k]:
                weak.append((a, hinge(s[n][k] - s[a][p] + margin2)))
    return [*triplet(batch, margin1, kind=kind), weak]


def quadruplet_wise(batch: Batch, margin: float = 0.1, kind: Kind = "cosine") -> Terms:
    """Law et al. 2013 (quadruplet-wise): [s_kl − s_ij + δ]₊ over all positive pairs (i, j) and negative pairs (k, l)."""
    need_one_set(batch, "quadruplet_wise")
    s = similarities(batch, kind)
    negative = [s[k][l] for k in anchors_of(batch) for l in negatives_of(batch, k)]  # noqa: E741
    return [[(i, hinge(far - s[i][j] + margin)) for i, j in positive_pairs(batch) for far in negative]]


# ----------------------------------------------------------------------------------- losses of positive pairs


def angular(batch: Batch, alpha: float = 40.0) -> Terms:
    """Wang et al. 2017 (angular loss), log-sum-exp form over many negatives, on unit vectors, α in degrees.

    log(1 + Σ_n exp(4 tan²α (x_a + x_p)·x_n − 2 (1 + tan²α) x_a·x_p)) over the negatives of the anchor.
    """
    tan2 = math.tan(math.radians(alpha)) ** 2
    anchors = [normalized(x) for x in batch.anchors]
    references = [normalized(x) for x in batch.references]
    units: list[Unit] = []
    for a, p in positive_pairs(batch):
        if not negatives_of(batch, a):
            continue
        x_a, x_p = anchors[a], references[p]
        exponents: list[float] = []
        for n in negatives_of(batch, a):
            both = dot(x_a, references[n]) + dot(x_p, references[n])
            exponents.append(4.0 * tan2 * both - 2.0 * (1.0 + tan2) * dot(x_a, x_p))
        units.append((a, log_one_plus_sum_exp(exponents)))
    return [units]


def tuplet_margin(batch: Batch, margin: float = 5.73, scale: float = 64.0) -> Terms:
    """Yu & Tao 2019, tuplet margin loss: log(1 + Σ_n e^{scale (cos θ_n − cos(θ_p − margin))}).

    The margin is in degrees; θ is the angle between anchor and reference.
    """
    s = similarities(batch, "cosine")
    units: list[Unit] = []
    for a, p in positive_pairs(batch):
        if not negatives_of(batch, a):
            continue
        # Rounding may put the cosine of two equal vectors just outside the domain of acos.
        angle = math.acos(min(1.0, max(-1.0, s[a][p])))
        target = math.cos(angle - math.radians(margin))
        units.append((a, log_one_plus_sum_exp([scale * (s[a][n] - target) for n in negatives_of(batch, a)])))
    return [units]


def nt_xent(batch: Batch, temperature: float = 0.07, kind: Kind = "cosine") -> Terms:
    """Sohn 2016, van den Oord et al. 2018, Chen et al. 2020 (SimCLR) Eq. 1, one unit per positive pair.

    −log(e^{s_p/τ} / (e^{s_p/τ} + Σ_N e^{s_n/τ})) = log(1 + Σ_N e^{(s_n − s_p)/τ}): the other positives of the
    anchor are not in the denominator.
    """
    s = similarities(batch, kind)
    units: list[Unit] = []
    for a, p in positive_pairs(batch):
        if not negatives_of(batch, a):
            continue
        exponents = [(s[a][n] - s[a][p]) / temperature for n in negatives_of(batch, a)]
        units.append((a, log_one_plus_sum_exp(exponents)))
    return [units]


def lifted_pair_value(batch: Batch, i: int, j: int, margin: float) -> float:
    """½ [d_ij + log(Σ_{k∈N_i} e^{margin − d_ik} + Σ_{l∈N_j} e^{margin − d_jl})]₊² of one positive pair."""
    x = batch.anchors
    exponents = [margin - distance(x[i], x[k]) for k in negatives_of(batch, i)]
    exponents += [margin - distance(x[j], x[m]) for m in negatives_of(batch, j)]
    return 0.5 * hinge(distance(x[i], x[j]) + log_sum_exp(exponents)) ** 2


def lifted_structure(batch: Batch, margin: float = 1.0) -> Terms:
    """Oh Song et al. 2016, lifted structured loss, Euclidean distance of unit vectors, a unit per pair i < j.

    A unit is reported under its first sample; see `lifted_structure_per_anchor` for the reduction "none". A
    pair neither of whose samples has a negative is not a unit.
    """
    need_one_set(batch, "lifted structure")
    units: list[Unit] = []
    for i, j in positive_pairs(batch):
        if i < j and (negatives_of(batch, i) or negatives_of(batch, j)):
            units.append((i, lifted_pair_value(batch, i, j, margin)))
    return [units]


# An unordered pair has no anchor: with the reduction "none" each of its two samples gets this share.
LIFTED_STRUCTURE_SHARE = 0.5


def lifted_structure_per_anchor(batch: Batch, margin: float = 1.0) -> list[float]:
    """Oh Song et al. 2016, lifted structured loss, with the reduction "none".

    Half of a pair's value goes to i and half to j.
    """
    need_one_set(batch, "lifted structure")
    per_anchor = [0.0] * len(batch.anchors)
    for i, j in positive_pairs(batch):
        if i < j and (negatives_of(batch, i) or negatives_of(batch, j)):
            value = lifted_pair_value(batch, i, j, margin)
            per_anchor[i] += LIFTED_STRUCTURE_SHARE * value
            per_anchor[j] += LIFTED_STRUCTURE_SHARE * value
    return per_anchor


# ------------------------------------------------------------------------------------------ losses of anchors


def generalized_lifted_structure(batch: Batch, margin: float = 0.5, scale: float = 1.0, kind: Kind = "cosine") -> Terms:
    """Hermans et al. 2017, generalized lifted structure, in similarity form (thesis Eq. 2.21 without k = i).

    [log Σ_P e^{margin − scale·s} + log Σ_N e^{scale·s}]₊ per anchor with a positive and a negative.
    """
    s = similarities(batch, kind)
    units: list[Unit] = []
    for i in anchors_of(batch):
        positives, negatives = positives_of(batch, i), negatives_of(batch, i)
        if positives and negatives:
            attract = log_sum_exp([margin - scale * s[i][p] for p in positives])
            repel = log_sum_exp([scale * s[i][n] for n in negatives])
            units.append((i, hinge(attract + repel)))
    return [units]


def n_pairs(batch: Batch, l2: float = 0.0, scale: float = 1.0, kind: Kind = "dot") -> Terms:
    """Sohn 2016, multi-class N-pair loss, as thesis Eq. 2.22: all positives of an anchor in one logarithm.

    log(1 + Σ_{p∈P} Σ_{n∈N} e^{scale (s_n − s_p)}) per anchor with a positive and a negative; second term
    l2 · ‖x_i‖² of the raw embedding, one unit per anchor of the batch.
    """
    s = similarities(batch, kind)
    units: list[Unit] = []
    for i in anchors_of(batch):
        positives, negatives = positives_of(batch, i), negatives_of(batch, i)
        if positives and negatives:
            exponents = [scale * (s[i][n] - s[i][p]) for p in positives for n in negatives]
            units.append((i, log_one_plus_sum_exp(exponents)))
    norms = [(i, l2 * dot(x, x)) for i, x in enumerate(batch.anchors)]
    return [units, norms]


def circle_frozen(
    batch: Batch, frozen: Batch, margin: float = 0.4, gamma: float = 80.0, kind: Kind = "cosine"
) -> Terms:
    """Sun et al. 2020, circle loss, with the self-paced weights taken from another batch.

    The weights [1 + m − s]₊ and [s + m]₊ carry no gradient; with `frozen` fixed, finite differences of this
    value in `batch` are the gradient that the paper means.
    """
    s = similarities(batch, kind)
    still = similarities(frozen, kind)
    units: list[Unit] = []
    for i in anchors_of(batch):
        positives, negatives = positives_of(batch, i), negatives_of(batch, i)
        if positives and negatives:
            attract = [-gamma * hinge(1.0 + margin - still[i][p]) * (s[i][p] - 1.0 + margin) for p in positives]
            repel = [gamma * hinge(still[i][n] + margin) * (s[i][n] - margin) for n in negatives]
            units.append((i, softplus(log_sum_exp(attract) + log_sum_exp(repel))))
    return [units]


def circle(batch: Batch, margin: float = 0.4, gamma: float = 80.0, kind: Kind = "cosine") -> Terms:
    """Sun et al. 2020, circle loss with O_p = 1 + m, O_n = −m, Δ_p = 1 − m, Δ_n = m.

    softplus(LSE_P(−γ [1 + m − s]₊ (s − 1 + m)) + LSE_N(γ [s + m]₊ (s − m))).
    """
    return circle_frozen(batch, batch, margin, gamma, kind)


def sim_clr(first: list[Vector], second: list[Vector], temperature: float) -> float:
    """Chen et al. 2020 (SimCLR), Eq. 1 and algorithm 1: ℓ(i, j) over the 2N rows of both views, in both directions.

    Rows are ordered as in the paper, the two views of a sample one after the other.
    """
    rows = [row for views in zip(first, second, strict=True) for row in views]

    def similarity(a: Vector, b: Vector) -> float:
        return dot(a, b) / math.sqrt(dot(a, a) * dot(b, b))

    def of_pair(i: int, j: int) -> float:
        others = [math.exp(similarity(rows[i], rows[k]) / temperature) for k in range(len(rows)) if k != i]
        return -math.log(math.exp(similarity(rows[i], rows[j]) / temperature) / sum(others))

    pairs = [(2 * k, 2 * k + 1) for k in range(len(first))]
    return sum(of_pair(i, j) + of_pair(j, i) for i, j in pairs) / len(rows)


def sup_con(batch: Batch, temperature: float = 0.1, kind: Kind = "cosine") -> Terms:
    """Khosla et al. 2020, Eq. 2 (L_out): mean over P_i of −log(e^{s_p/τ} / Σ_{k≠i} e^{s_k/τ}).

    The denominator runs over the positives and the negatives of the anchor, which must have both.
    """
    s = similarities(batch, kind)
    units: list[Unit] = []
    for i in anchors_of(batch):
        positives, negatives = positives_of(batch, i), negatives_of(batch, i)
        if positives and negatives:
            everyone = log_sum_exp([s[i][k] / temperature for k in positives + negatives])
            units.append((i, mean([everyone - s[i][p] / temperature for p in positives])))
    return [units]


def nca(batch: Batch, scale: float = 1.0, kind: Kind = "squared_euclidean") -> Terms:
    """Goldberger et al. 2004, log form of neighborhood components (overview Eq. 15, corrected).

    −log(Σ_P e^{scale·s} / Σ_{k≠i} e^{scale·s}) per anchor with both.
    """
    s = similarities(batch, kind)
    units: list[Unit] = []
    for i in anchors_of(batch):
        positives, negatives = positives_of(batch, i), negatives_of(batch, i)
        if positives and negatives:
            everyone = log_sum_exp([scale * s[i][k] for k in positives + negatives])
            units.append((i, everyone - log_sum_exp([scale * s[i][p] for p in positives])))
    return [units]


def binomial_deviance(
    batch: Batch, alpha: float = 2.0, beta: float = 50.0, base: float = 0.5, kind: Kind = "cosine"
) -> Terms:
    """Yi et al. 2014 in the form of unified view Eq. 12.

    mean_P log(1 + e^{α(base − s)}) + mean_N log(1 + e^{β(s − base)}) per anchor that has both a positive
    and a negative.
    """
    s = similarities(batch, kind)
    units: list[Unit] = []
    for i in anchors_of(batch):
        positives, negatives = positives_of(batch, i), negatives_of(batch, i)
        if positives and negatives:
            attract = mean([softplus(alpha * (base - s[i][p])) for p in positives])
            repel = mean([softplus(beta * (s[i][n] - base)) for n in negatives])
            units.append((i, attract + repel))
    return [units]


def multi_similarity(
    batch: Batch, alpha: float = 2.0, beta: float = 50.0, base: float = 0.5, kind: Kind = "cosine"
) -> Terms:
    """Wang et al. 2019, multi-similarity loss (thesis Eq. 2.24), without mining.

    log(1 + Σ_P e^{−α(s − base)})/α + log(1 + Σ_N e^{β(s − base)})/β; every anchor of the batch is a unit
    and a side without pairs adds log 1 = 0.
    """
    s = similarities(batch, kind)
    units: list[Unit] = []
    for i in anchors_of(batch):
        attract = log_one_plus_sum_exp([-alpha * (s[i][p] - base) for p in positives_of(batch, i)])
        repel = log_one_plus_sum_exp([beta * (s[i][n] - base) for n in negatives_of(batch, i)])
        units.append((i, attract / alpha + repel / beta))
    return [units]


def raw(
    batch: Batch,
    alpha: float = 2.0,
    beta: float = 50.0,
    base: float = 0.5,
    margin: float = 0.1,
    kind: Kind = "cosine",
) -> Terms:
    """Unified view Eq. 17: multi-similarity on the pairs kept by the valid triplet rule (section 5.1).

    Every anchor of the batch is a unit (the paper's 1/m), those that keep no pair with the value zero.
    """
    kept_positive, kept_negative = miners.valid_triplet(
        similarities(batch, kind), batch.positive, batch.negative, margin
    )
    columns = range(len(batch.references))
    mined = replace(
        batch,
        positive=[[(i, j) in kept_positive for j in columns] for i in anchors_of(batch)],
        negative=[[(i, j) in kept_negative for j in columns] for i in anchors_of(batch)],
    )
    return multi_similarity(mined, alpha, beta, base, kind)


# --------------------------------------------------------------------------------------- losses of histograms


def soft_histogram(values: list[float], nodes: list[float]) -> list[float]:
    """h_l = Σ_j max(0, 1 − |v_j − c_l| / Δ): each value shares its weight between its two nearest nodes."""
    width = nodes[1] - nodes[0]
    return [sum(hinge(1.0 - abs(value - node) / width) for value in values) for node in nodes]


def fast_ap(batch: Batch, bins: int = 10) -> Terms:
    """Cakir et al. 2019, FastAP, on squared Euclidean distance of unit vectors, nodes c_l = 4 l / bins.

    1 − (1/|P_i|) Σ_l h⁺_l H⁺_l / H_l, H the cumulative histograms; one unit per anchor with a positive.
    """
    nodes = [4.0 * node / bins for node in range(bins + 1)]
    units: list[Unit] = []
    for i in anchors_of(batch):
        positives, negatives = positives_of(batch, i), negatives_of(batch, i)
        if not positives:
            continue
        anchor = batch.anchors[i]
        of_positives = soft_histogram([squared_distance(anchor, batch.references[p]) for p in positives], nodes)
        of_negatives = soft_histogram([squared_distance(anchor, batch.references[n]) for n in negatives], nodes)
        precision = 0.0
        for node in range(bins + 1):
            positives_so_far = sum(of_positives[: node + 1])
            everyone_so_far = positives_so_far + sum(of_negatives[: node + 1])
            if everyone_so_far > 0.0:  # nothing retrieved yet: no precision to add
                precision += of_positives[node] * positives_so_far / everyone_so_far
        value = 1.0 - precision / len(positives)
        units.append((i, 0.0 if abs(value) < 1e-12 else value))  # shares that add up to one but for rounding
    return [units]


def histogram(batch: Batch, bins: int = 100) -> Terms:
    """Ustinova & Lempitsky 2016, histogram loss, on unordered pairs of one set, nodes t_r = −1 + 2 r / bins.

    Σ_r h⁻_r Σ_{q≤r} h⁺_q, the probability that a negative pair is more similar than a positive one. The batch
    has one unit, reported as (0, value); none without a positive or without a negative pair.
    """
    need_one_set(batch, "histogram")
    s = similarities(batch, "cosine")
    positives = [s[i][j] for i, j in positive_pairs(batch) if i < j]
    negatives = [s[i][j] for i, j in negative_pairs(batch) if i < j]
    if not positives or not negatives:
        return [[]]
    nodes = [-1.0 + 2.0 * r / bins for r in range(bins + 1)]
    of_positives = [weight / len(positives) for weight in soft_histogram(positives, nodes)]
    of_negatives = [weight / len(negatives) for weight in soft_histogram(negatives, nodes)]
    reversals = sum(of_negatives[r] * sum(of_positives[: r + 1]) for r in range(bins + 1))
    return [[(0, reversals)]]
