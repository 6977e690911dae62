"""Direction regularization written as plain loops over Python floats: Mohan et al. 2020 (overview Eq. 31 to 35).

In each loss the similarity of a negative becomes s_an − γ cos(n − a, p − a), with the actual cosine (Eq. 32 holds only if
n·p = n·a). In a triplet p is its positive; elsewhere it is p*, the least similar positive of the anchor, the first of equals.
Without a positive there is no direction and the cosine is zero. A scale of the loss multiplies the sum.

The functions return terms as those of `losses.py` do. Points are of unit norm except for the similarity `dot`.
"""

import math

from . import losses, miners
from .losses import (
    Batch,
    Kind,
    Matrix,
    Terms,
    Unit,
    Vector,
    difference,
    dot,
    hinge,
    log_one_plus_sum_exp,
    log_sum_exp,
    negatives_of,
    normalized,
    positives_of,
    similarity,
)


def cosine_of_directions(to_one: Vector, to_other: Vector) -> float:
    """Cosine between two difference vectors; zero if one of them is zero.

    Two vectors that agree but for their length are normalized to the same point up to rounding (1e-16); what
    is left of their difference has no direction.
    """
    if min(math.sqrt(dot(to_one, to_one)), math.sqrt(dot(to_other, to_other))) < 1e-12:
        return 0.0
    return similarity("cosine", to_one, to_other)


def cosine_at(a: Vector, n: Vector, p: Vector, kind: Kind) -> float:
    """cos(n − a, p − a) of the points that the similarity compares."""
    a, n, p = (x if kind == "dot" else normalized(x) for x in (a, n, p))
    return cosine_of_directions(difference(n, a), difference(p, a))


def shifted(pairs: Batch, gamma: float, kind: Kind) -> Matrix:
    """S, with −γ cos(n − a, p* − a) added to the entries of negatives."""
    S = losses.similarities(pairs, kind)
    for i, a in enumerate(pairs.anchors):
        if positives_of(pairs, i):
            hardest = pairs.references[miners.least_similar(S[i], positives_of(pairs, i))]
            for n in negatives_of(pairs, i):
                S[i][n] -= gamma * cosine_at(a, pairs.references[n], hardest, kind)
    return S


# ------------------------------------------------------------------------------------------------ pair losses


def triplet(
    pairs: Batch,
    margin: float = 0.1,
    gamma: float = 0.3,
    kind: Kind = "cosine",
    soft: bool = False,
    chosen: set[tuple[int, int, int]] | None = None,
) -> Terms:
    """[s_an − s_ap + margin − γ cos(n − a, p − a)]₊ over all or chosen triplets; soft: softplus (Eq. 33, hinged)."""
    S, units = losses.similarities(pairs, kind), []
    for a, p, n in losses.triplets_of(pairs) if chosen is None else sorted(chosen):
        direction = cosine_at(pairs.anchors[a], pairs.references[n], pairs.references[p], kind)
        violation = S[a][n] - S[a][p] + margin - gamma * direction
        units.append((a, losses.softplus(violation) if soft else hinge(violation)))
    return [units]


def multi_similarity(
    pairs: Batch,
    alpha: float = 2.0,
    beta: float = 50.0,
    base: float = 0.5,
    gamma: float = 0.3,
    kind: Kind = "cosine",
    epsilon: float | None = None,
) -> Terms:
    """log(1 + Σ_P e^{−α(s − base)})/α + log(1 + Σ_N e^{β(s_n − base − γ cos)})/β (Eq. 34); every anchor is a unit.

    epsilon: of the pairs that the miner keeps, which compares s itself.
    """
    S, plain, units = shifted(pairs, gamma, kind), losses.similarities(pairs, kind), []
    kept_positive, kept_negative = set(losses.positive_pairs(pairs)), set(losses.negative_pairs(pairs))
    if epsilon is not None:
        kept_positive, kept_negative = miners.multi_similarity(plain, pairs.positive, pairs.negative, epsilon)
    for i in losses.anchors_of(pairs):
        attract = [-alpha * (S[i][p] - base) for p in positives_of(pairs, i) if (i, p) in kept_positive]
        repel = [beta * (S[i][n] - base) for n in negatives_of(pairs, i) if (i, n) in kept_negative]
        units.append((i, log_one_plus_sum_exp(attract) / alpha + log_one_plus_sum_exp(repel) / beta))
    return [units]


def contrastive(
    pairs: Batch, positive: float = 1.0, negative: float = 0.5, gamma: float = 0.3, kind: Kind = "cosine"
) -> Terms:
    """[positive − s_p]₊ and [s_n − γ cos − negative]₊; both margins are similarities."""
    S = shifted(pairs, gamma, kind)
    attract = [(i, hinge(positive - S[i][p])) for i, p in losses.positive_pairs(pairs)]
    return [attract, [(i, hinge(S[i][n] - negative)) for i, n in losses.negative_pairs(pairs)]]


def n_pairs(pairs: Batch, scale: float = 1.0, gamma: float = 0.3, kind: Kind = "dot") -> Terms:
    """log(1 + Σ_P Σ_N e^{scale (s_n − γ cos − s_p)}) for anchors that have both."""
    S, units = shifted(pairs, gamma, kind), []
    for i in losses.anchors_of(pairs):
        exponents = [scale * (S[i][n] - S[i][p]) for p in positives_of(pairs, i) for n in negatives_of(pairs, i)]
        if exponents:
            units.append((i, log_one_plus_sum_exp(exponents)))
    return [units]


# ------------------------------------------------------------------------------------------------ proxy losses


def of_proxies(
    embeddings: list[Vector], labels: list[int], proxies: list[Vector], gamma: float, kind: Kind
) -> tuple[Batch, Matrix]:
    """Samples against proxies, one for each class; p* is the sample's own proxy."""
    pairs = losses.batch(embeddings, labels, proxies, list(range(len(proxies))))
    return pairs, shifted(pairs, gamma, kind)


def proxy_nca(
    embeddings: list[Vector], labels: list[int], proxies: list[Vector], scale: float = 1.0, gamma: float = 0.3
) -> Terms:
    """−log(e^{−scale·d²(x, p_y)} / Σ_{k≠y} e^{scale (−d²(x, p_k) − γ cos(p_k − x, p_y − x))}) (Eq. 35).

    Without a second proxy the sample is not a unit.
    """
    pairs, S = of_proxies(embeddings, labels, proxies, gamma, "squared_euclidean")
    units: list[Unit] = []
    for i, y in enumerate(labels):
        others = [scale * S[i][k] for k in negatives_of(pairs, i)]
        if others:
            units.append((i, log_sum_exp(others) - scale * S[i][y]))
    return [units]


def proxy_nca_pp(
    embeddings: list[Vector], labels: list[int], proxies: list[Vector], temperature: float = 0.111, gamma: float = 0.3
) -> Terms:
    """The same with the own proxy in the denominator, and a temperature: cross entropy of (−d² − γ cos)/T."""
    _, S = of_proxies(embeddings, labels, proxies, gamma, "squared_euclidean")
    return [[(i, log_sum_exp([z / temperature for z in S[i]]) - S[i][y] / temperature) for i, y in enumerate(labels)]]


def proxy_anchor(
    embeddings: list[Vector],
    labels: list[int],
    proxies: list[Vector],
    margin: float = 0.1,
    alpha: float = 32.0,
    gamma: float = 0.3,
) -> Terms:
    """Proxies are the anchors: log(1 + Σ e^{−α(s_p − margin)}) over those with a sample, log(1 + Σ e^{α(s_n − γ cos + margin)})
    over all, with p* the least similar sample of the proxy's class.
    """
    pairs = losses.batch(proxies, list(range(len(proxies))), embeddings, labels)
    S = shifted(pairs, gamma, "cosine")
    attract: list[Unit] = []
    repel: list[Unit] = []
    for c in losses.anchors_of(pairs):
        if positives_of(pairs, c):
            exponents = [-alpha * (S[c][x] - margin) for x in positives_of(pairs, c)]
            attract.append((c, log_one_plus_sum_exp(exponents)))
        repel.append((c, log_one_plus_sum_exp([alpha * (S[c][x] + margin) for x in negatives_of(pairs, c)])))
    return [attract, repel]
