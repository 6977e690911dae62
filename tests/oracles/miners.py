"""Miners written as plain loops over a similarity matrix and two masks, straight from the papers' rules.

`S[i][j]` is the similarity of anchor i and reference j (higher is closer); `P` and `N` say which references
are positives and negatives of an anchor. Pairs are (anchor, reference), triplets are (anchor, positive,
negative). Of equally good candidates the one with the lowest index is taken. The texts called "thesis" and
"unified view" are named in `losses.py`.
"""

import math
from typing import Literal

Matrix = list[list[float]]
Mask = list[list[bool]]
Pairs = set[tuple[int, int]]
Triplets = set[tuple[int, int, int]]


def marked(row: list[bool]) -> list[int]:
    """Indices of the true entries."""
    return [j for j, yes in enumerate(row) if yes]


def most_similar(row: list[float], candidates: list[int]) -> int:
    """The candidate with the highest similarity, the first of equals."""
    return max(candidates, key=lambda j: row[j])


def least_similar(row: list[float], candidates: list[int]) -> int:
    """The candidate with the lowest similarity, the first of equals."""
    return min(candidates, key=lambda j: row[j])


# ------------------------------------------------------------------------------------------------------ pairs


def multi_similarity(S: Matrix, P: Mask, N: Mask, epsilon: float = 0.1) -> tuple[Pairs, Pairs]:
    """Wang et al. 2019 (multi-similarity), pair mining by relative similarity.

    A positive is kept iff s_ip − ε < max_N s_in, a negative iff s_in + ε > min_P s_ip; an anchor without
    positives or without negatives keeps nothing.
    """
    kept_positive: Pairs = set()
    kept_negative: Pairs = set()
    for i, row in enumerate(S):
        positives, negatives = marked(P[i]), marked(N[i])
        if not positives or not negatives:
            continue
        closest_negative = max(row[n] for n in negatives)
        farthest_positive = min(row[p] for p in positives)
        kept_positive |= {(i, p) for p in positives if row[p] - epsilon < closest_negative}
        kept_negative |= {(i, n) for n in negatives if row[n] + epsilon > farthest_positive}
    return kept_positive, kept_negative


def valid_triplet(S: Matrix, P: Mask, N: Mask, margin: float = 0.1) -> tuple[Pairs, Pairs]:
    """Unified view section 5.1, valid triplet based hard mining.

    The hardest positive p* of an anchor is its least similar one, the hardest negative n* its most similar
    one. A negative j is informative when s_ij > s_ip* − λ, a positive j when s_ij < s_in* + λ. Where p* or n*
    does not exist there is no triplet, hence no informative pair.
    """
    informative_positives: Pairs = set()
    informative_negatives: Pairs = set()
    for i in range(len(S)):
        if not any(P[i]) or not any(N[i]):
            continue
        hardest_positive = least_similar(S[i], marked(P[i]))
        hardest_negative = most_similar(S[i], marked(N[i]))
        for j in range(len(S[i])):
            if N[i][j] and S[i][j] > S[i][hardest_positive] - margin:
                informative_negatives.add((i, j))
            if P[i][j] and S[i][j] < S[i][hardest_negative] + margin:
                informative_positives.add((i, j))
    return informative_positives, informative_negatives


def pair_margin(S: Matrix, P: Mask, N: Mask, positive_margin: float, negative_margin: float) -> tuple[Pairs, Pairs]:
    """The pairs on which contrastive loss (unified view Eq. 5) is not flat.

    A positive is kept iff s_ip < positive_margin, a negative iff s_in > negative_margin.
    """
    kept_positive = {(i, p) for i, row in enumerate(S) for p in marked(P[i]) if row[p] < positive_margin}
    kept_negative = {(i, n) for i, row in enumerate(S) for n in marked(N[i]) if row[n] > negative_margin}
    return kept_positive, kept_negative


# --------------------------------------------------------------------------------------------------- triplets


def semi_hard(S: Matrix, P: Mask, N: Mask, margin: float | None = None) -> Triplets:
    """Schroff et al. 2015 section 3.2, thesis Eq. 2.20: n_ap = argmax over n with s_ap > s_an of s_an.

    One triplet for every positive pair that has a less similar negative; with a margin instead every triplet
    with s_ap − margin < s_an < s_ap.
    """
    triplets: Triplets = set()
    for a, row in enumerate(S):
        for p in marked(P[a]):
            easier = [n for n in marked(N[a]) if row[n] < row[p]]
            if margin is not None:
                triplets |= {(a, p, n) for n in easier if row[p] - margin < row[n]}
            elif easier:
                triplets.add((a, p, most_similar(row, easier)))
    return triplets


def batch_hard(S: Matrix, P: Mask, N: Mask) -> Triplets:
    """Hermans et al. 2017, batch hard (thesis Eq. 2.18-2.19).

    Each anchor with its least similar positive and its most similar negative.
    """
    triplets: Triplets = set()
    for a, row in enumerate(S):
        positives, negatives = marked(P[a]), marked(N[a])
        if positives and negatives:
            triplets.add((a, least_similar(row, positives), most_similar(row, negatives)))
    return triplets


def easy_positive(S: Matrix, P: Mask, N: Mask, negatives: Literal["semihard", "hard"] = "semihard") -> Triplets:
    """Xuan et al. 2020, easy positive triplet mining: each anchor's most similar positive p.

    "semihard": with the most similar negative strictly less similar than p, if there is one; "hard": with the
    most similar negative.
    """
    if negatives not in ("semihard", "hard"):
        raise ValueError(f"unknown choice of negatives {negatives!r}")
    triplets: Triplets = set()
    for a, row in enumerate(S):
        if not any(P[a]):
            continue
        p = most_similar(row, marked(P[a]))
        candidates = [n for n in marked(N[a]) if negatives == "hard" or row[n] < row[p]]
        if candidates:
            triplets.add((a, p, most_similar(row, candidates)))
    return triplets


def triplet_margin(S: Matrix, P: Mask, N: Mask, margin: float = 0.2, kind: str = "all") -> Triplets:
    """Schroff et al. 2015 section 3.2: every triplet of one kind.

    A triplet violates the margin iff s_an > s_ap − margin; "all" are those, "hard" those of them with
    s_an ≥ s_ap, "semihard" those of them with s_an < s_ap; "easy" are the triplets that do not violate it.
    """
    triplets: Triplets = set()
    for a, row in enumerate(S):
        for p in marked(P[a]):
            for n in marked(N[a]):
                violates = row[n] > row[p] - margin
                if {
                    "all": violates,
                    "hard": violates and row[n] >= row[p],
                    "semihard": violates and row[n] < row[p],
                    "easy": not violates,
                }[kind]:
                    triplets.add((a, p, n))
    return triplets


def easy_hard(
    S: Matrix,
    P: Mask,
    N: Mask,
    positives: str = "easy",
    negatives: str = "semihard",
    positive_range: tuple[float, float] = (-math.inf, math.inf),
    negative_range: tuple[float, float] = (-math.inf, math.inf),
) -> Triplets:
    """Xuan et al. 2020, the grid of easy, semi-hard and hard positives and negatives, and all of a side.

    Easy: the most similar positive, the least similar negative; hard: the opposite. A semi-hard positive is the
    least similar one above the chosen negative, a semi-hard negative the most similar one below the chosen
    positive. Only pairs in their range take part.
    """
    triplets: Triplets = set()
    for a, row in enumerate(S):
        near = [p for p in marked(P[a]) if positive_range[0] <= row[p] <= positive_range[1]]
        far = [n for n in marked(N[a]) if negative_range[0] <= row[n] <= negative_range[1]]
        if not near or not far:
            continue
        if positives == "easy":
            near = [most_similar(row, near)]
        elif positives == "hard":
            near = [least_similar(row, near)]
        if negatives == "easy":
            far = [least_similar(row, far)]
        elif negatives == "hard":
            far = [most_similar(row, far)]
        if positives == "semihard":
            near = [p for p in near if row[p] > row[far[0]]]
            near = [least_similar(row, near)] if near else []
        elif negatives == "semihard":
            far = [n for n in far if row[n] < row[near[0]]]
            far = [most_similar(row, far)] if far else []
        triplets |= {(a, p, n) for p in near for n in far}
    return triplets


def distance_weights(
    distances_row: list[float], dim: int, cutoff: float = 0.5, nonzero_loss_cutoff: float = 1.4
) -> list[float]:
    """Wu et al. 2017, distance weighted sampling: probabilities ∝ 1/q(max(d, cutoff)).

    q(d) ∝ d^{n−2} (1 − d²/4)^{(n−3)/2} is the density of distances between points uniform on the sphere in n
    dimensions. Only distances below nonzero_loss_cutoff take part; without any all probabilities are zero.
    """
    log_weights: dict[int, float] = {}
    for j, d in enumerate(distances_row):
        if d < nonzero_loss_cutoff:
            clipped = max(d, cutoff)
            log_density = (dim - 2) * math.log(clipped)
            log_density += (dim - 3) / 2 * math.log(1.0 - clipped**2 / 4.0)
            log_weights[j] = -log_density
    if not log_weights:
        return [0.0] * len(distances_row)
    # 1/q spans hundreds of orders of magnitude in high dimension: scale by the largest before leaving logs.
    largest = max(log_weights.values())
    weights = {j: math.exp(value - largest) for j, value in log_weights.items()}
    total = sum(weights.values())
    return [weights.get(j, 0.0) / total for j in range(len(distances_row))]
