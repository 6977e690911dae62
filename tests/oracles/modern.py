"""Sigmoid, threshold, regularizing and self-supervised losses, and losses on graded pairs, as plain loops over floats.

The companion of `losses.py`, with the same conventions: a pair loss returns its terms, lists of (anchor, value) units.
"""

import math

from .losses import (
    Batch,
    Matrix,
    Terms,
    Unit,
    Vector,
    anchors_of,
    dot,
    hinge,
    log_one_plus_sum_exp,
    log_sum_exp,
    mean,
    negative_pairs,
    negatives_of,
    positive_pairs,
    positives_of,
    similarities,
    softplus,
    triplets_of,
)


def unit(x: Vector) -> Vector:
    """x at unit length; zero stays zero."""
    length = math.sqrt(dot(x, x))
    return [component / length if length else 0.0 for component in x]


def others_of(pairs: Batch, i: int) -> list[int]:
    """All samples but i."""
    return [j for j in anchors_of(pairs) if j != i]


# ------------------------------------------------------------------------------------------------- thresholds


def sigmoid(batch: Batch, scale: float = 10.0, bias: float = -10.0) -> Terms:
    """Zhai et al. 2023 (SigLIP): Σ_j log(1 + e^{−z_ij (scale·s_ij + bias)}) per anchor, z = ±1."""
    s = similarities(batch, "cosine")
    units: list[Unit] = []
    for i in anchors_of(batch):
        value = sum(softplus(-(scale * s[i][p] + bias)) for p in positives_of(batch, i))
        value += sum(softplus(scale * s[i][n] + bias) for n in negatives_of(batch, i))
        units.append((i, value))
    return [units]


def threshold_consistent_margin(
    batch: Batch,
    positive_margin: float = 0.9,
    negative_margin: float = 0.5,
    positive_weight: float = 1.0,
    negative_weight: float = 1.0,
) -> Terms:
    """Zhang et al. 2024: w₊ mean over {s_p ≤ m₊} of m₊ − s_p + w₋ mean over {s_n ≥ m₋} of s_n − m₋."""
    s = similarities(batch, "cosine")
    positives = [
        (i, positive_weight * (positive_margin - s[i][p]))
        for i, p in positive_pairs(batch)
        if s[i][p] <= positive_margin
    ]
    negatives = [
        (i, negative_weight * (s[i][n] - negative_margin))
        for i, n in negative_pairs(batch)
        if s[i][n] >= negative_margin
    ]
    return [positives, negatives]


def ranked_list(
    batch: Batch,
    margin: float = 0.4,
    Tn: float = 10.0,
    imbalance: float = 0.5,
    alpha: float | None = None,
    Tp: float = 0.0,
) -> Terms:
    """Wang et al. 2019 with PML's constant: weighted means of the violations, 1e-5 per reference in the denominators."""
    alpha = 1.0 + margin / 2.0 if alpha is None else alpha
    s = similarities(batch, "euclidean")
    constant = 1e-5 * len(batch.references)
    units: list[Unit] = []
    for i in anchors_of(batch):
        pulls = [-s[i][p] - (alpha - margin) for p in positives_of(batch, i) if -s[i][p] > alpha - margin]
        pushes = [alpha + s[i][n] for n in negatives_of(batch, i) if -s[i][n] < alpha]
        value = 0.0
        for violations, steepness, weight in ((pulls, Tp, 1.0 - imbalance), (pushes, Tn, imbalance)):
            weights = [math.exp(steepness * violation) for violation in violations]
            weighted = sum(w * violation for w, violation in zip(weights, violations, strict=True))
            value += weight * weighted / (sum(weights) + constant)
        units.append((i, value))
    return [units]


# ------------------------------------------------------------------------------------------------ neighborhoods


def hardness_weighted_nt_xent(batch: Batch, temperature: float = 0.07, hardness: float = 9.0) -> Terms:
    """Lan et al. 2025 (LLaVE): e^{hardness·s} weighs each negative of NT-Xent."""
    return hardness_weighted_frozen(batch, batch, temperature, hardness)


def hardness_weighted_frozen(batch: Batch, frozen: Batch, temperature: float = 0.07, hardness: float = 9.0) -> Terms:
    """The same with the weights of another batch."""
    s, fixed = similarities(batch, "cosine"), similarities(frozen, "cosine")
    units: list[Unit] = []
    for i, p in positive_pairs(batch):
        negatives = negatives_of(batch, i)
        if negatives:
            logits = [s[i][n] / temperature + hardness * fixed[i][n] for n in negatives]
            units.append((i, log_one_plus_sum_exp([logit - s[i][p] / temperature for logit in logits])))
    return [units]


def instance(batch: Batch, gamma: float = 64.0) -> Terms:
    """Zheng et al. 2020: −log(e^{γ s_ii} / Σ_j e^{γ s_ij}) over the batch, s_ii = 1."""
    s = similarities(batch, "cosine")
    return [
        [(i, log_sum_exp([gamma, *(gamma * s[i][j] for j in others_of(batch, i))]) - gamma) for i in anchors_of(batch)]
    ]


# ------------------------------------------------------------------------------------------------ regularizers


def ko_leo(batch: Batch, eps: float = 1e-8) -> Terms:
    """Sablayrolles et al. 2019: −log(min_{j≠i} ‖e_i − e_j‖ + eps) on unit vectors."""
    s = similarities(batch, "euclidean")
    units: list[Unit] = []
    for i in anchors_of(batch):
        distances = [-s[i][j] for j in others_of(batch, i)]
        if distances:
            units.append((i, -math.log(min(distances) + eps)))
    return [units]


def global_orthogonal_regularization(
    batch: Batch, mean_weight: float = 1.0, second_moment_weight: float = 1.0
) -> Terms:
    """Zhang et al. 2017: (mean s)² and [mean s² − 1/D]₊ over all ordered pairs; every anchor has the value of the batch."""
    s = similarities(batch, "cosine")
    all_pairs = [s[i][j] for i in anchors_of(batch) for j in others_of(batch, i)]
    value = 0.0
    if all_pairs:
        second = mean([x * x for x in all_pairs]) - 1.0 / len(batch.anchors[0])
        value = mean_weight * mean(all_pairs) ** 2 + second_moment_weight * hinge(second)
    return [[(i, value) for i in anchors_of(batch)]]


def log_determinant(matrix: Matrix) -> float:
    """The logarithm of the determinant of a positive definite matrix, by elimination."""
    rows, total = [list(row) for row in matrix], 0.0
    for k in range(len(rows)):
        total += math.log(rows[k][k])
        for i in range(k + 1, len(rows)):
            factor = rows[i][k] / rows[k][k]
            rows[i] = [x - factor * y for x, y in zip(rows[i], rows[k], strict=True)]
    return total


def anti_collapse(embeddings: list[Vector], epsilon: float = 0.5) -> float:
    """Jiang et al. 2024: −½ log det(I + D/(n ε²) EᵀE) on unit vectors."""
    rows, dim = [unit(x) for x in embeddings], len(embeddings[0])
    factor = dim / (len(rows) * epsilon**2)
    gram = [
        [(1.0 if k == j else 0.0) + factor * sum(row[k] * row[j] for row in rows) for j in range(dim)]
        for k in range(dim)
    ]
    return -0.5 * log_determinant(gram)


def vic_reg(
    first: list[Vector],
    second: list[Vector],
    invariance_lambda: float = 25.0,
    variance_mu: float = 25.0,
    covariance_v: float = 1.0,
    eps: float = 1e-4,
) -> float:
    """Bardes et al. 2022: invariance, variance and covariance of two views; raw embeddings."""
    number, dim = len(first), len(first[0])
    squares = [(a - b) ** 2 for x, y in zip(first, second, strict=True) for a, b in zip(x, y, strict=True)]
    value = invariance_lambda * mean(squares)
    for view in (first, second):
        centers = [mean([row[k] for row in view]) for k in range(dim)]

        def covariance(k: int, j: int, view: list[Vector] = view, centers: Vector = centers) -> float:
            total = sum((row[k] - centers[k]) * (row[j] - centers[j]) for row in view)
            return total / max(number - 1, 1)

        value += variance_mu / 2.0 * mean([hinge(1.0 - math.sqrt(covariance(k, k) + eps)) for k in range(dim)])
        value += covariance_v / dim * sum(covariance(k, j) ** 2 for k in range(dim) for j in range(dim) if k != j)
    return value


# --------------------------------------------------------------------------------------------------- triplets


def dynamic_soft_margin(
    batch: Batch,
    min_val: float = -2.0,
    num_bins: int = 10,
    momentum: float = 0.01,
    histogram: list[float] | None = None,
) -> tuple[Terms, list[float]]:
    """Zhang & Rusinkiewicz 2019 on all triplets: CDF[⌊u⌋]·q, and the histogram after the batch."""
    s = similarities(batch, "euclidean")
    width = 2.0 * abs(min_val) / num_bins
    violations = [(a, s[a][n] - s[a][p]) for a, p, n in triplets_of(batch)]
    positions = [min(max((q - min_val) / width, 0.0), num_bins - 1.0) for _, q in violations]
    counts = [0.0] * num_bins
    for u in positions:
        lower = math.floor(u)
        counts[lower] += 1.0 - (u - lower)
        if u > lower:
            counts[lower + 1] += u - lower
    old = [0.0] * num_bins if histogram is None else histogram
    weight = momentum if any(old) else 1.0
    mixed = [weight * new + (1.0 - weight) * before for new, before in zip(counts, old, strict=True)]
    mixed = [x / sum(mixed) for x in mixed] if sum(mixed) > 0.0 else old
    cumulative = [sum(mixed[: k + 1]) for k in range(num_bins)]
    units = [(a, cumulative[math.floor(u)] * q) for (a, q), u in zip(violations, positions, strict=True)]
    return [units], mixed


def dynamic_soft_margin_frozen(batch: Batch, frozen: Batch) -> float:
    """The mean with the weights of another batch, whose histogram was empty."""
    [units], _ = dynamic_soft_margin(frozen)
    s, fixed = similarities(batch, "euclidean"), similarities(frozen, "euclidean")
    total = 0.0
    for (a, p, n), (_, value) in zip(triplets_of(batch), units, strict=True):
        weight = value / (fixed[a][n] - fixed[a][p])
        total += weight * (s[a][n] - s[a][p])
    return total / max(len(units), 1)


def centroid_triplet(batch: Batch, margin: float = 0.3) -> Terms:
    """Wieczorek et al. 2021: [‖e − c_P‖² − ‖e − c_N‖² + m]₊ for each anchor with a positive and each other class."""
    labels = batch.anchor_labels
    assert labels is not None
    rows = [unit(x) for x in batch.anchors]

    def centroid(members: list[int]) -> Vector:
        return [mean([rows[j][k] for j in members]) for k in range(len(rows[0]))]

    def distance(a: Vector, b: Vector) -> float:
        return sum((x - y) ** 2 for x, y in zip(a, b, strict=True))

    units: list[Unit] = []
    for i in anchors_of(batch):
        positives = positives_of(batch, i)
        if not positives:
            continue
        near = distance(rows[i], centroid(positives))
        for label in sorted(set(labels) - {labels[i]}):
            far = distance(rows[i], centroid([j for j in anchors_of(batch) if labels[j] == label]))
            units.append((i, hinge(near - far + margin)))
    return [units]


# ------------------------------------------------------------------------------------------------ graded pairs


def cosine_of(a: Vector, b: Vector) -> float:
    """The cosine of two vectors."""
    return dot(unit(a), unit(b))


def angle_of_halves(a: Vector, b: Vector) -> float:
    """Li & Li 2024: |Σ a_m b_m + Σ_{m ≤ D/2} (a_{m+D/2} b_m − a_m b_{m+D/2})|; an odd D is padded with a zero."""
    a, b = unit(a), unit(b)
    if len(a) % 2:
        a, b = [*a, 0.0], [*b, 0.0]
    half = len(a) // 2
    return abs(dot(a, b) + sum(a[m + half] * b[m] - a[m] * b[m + half] for m in range(half)))


def co_sent(left: list[Vector], scores: list[float], right: list[Vector], scale: float = 20.0, of=cosine_of) -> float:
    """Su 2022: log(1 + Σ_{k,l: y_k > y_l} e^{scale (s_l − s_k)}), s the cosine of a pair."""
    s = [of(a, b) for a, b in zip(left, right, strict=True)]
    pairs = [(k, j) for k in range(len(s)) for j in range(len(s)) if scores[k] > scores[j]]
    return log_one_plus_sum_exp([scale * (s[j] - s[k]) for k, j in pairs])
