"""Ranking losses written as plain loops over Python floats: `include_self`, soft ranks, hierarchies.

As in `losses`, a loss returns terms, lists of units `(anchor, value)`.  Labels are one class per sample, or one list of
labels per sample, the finest level first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from .losses import Batch, Terms, Unit, contrastive, log_sum_exp, mean, similarities, softplus

Ranked = list[tuple[float, int]]
"""The similarity to each member of a ranked set, and the number of levels on which it agrees with the anchor."""


def sigmoid(x: float) -> float:
    """1 / (1 + e^-x) without overflow."""
    return 1.0 / (1.0 + math.exp(-x)) if x >= 0.0 else math.exp(x) / (1.0 + math.exp(x))


def levels_of(label: int | Sequence[int]) -> list[int]:
    """A class is a hierarchy of one level."""
    return [label] if isinstance(label, int) else list(label)


def ranked_set(batch: Batch, i: int, s: list[list[float]], include_self: bool) -> Ranked:
    """Every reference; in one set not the anchor itself, unless it is included."""
    assert batch.anchor_labels is not None
    assert batch.reference_labels is not None
    own = levels_of(batch.anchor_labels[i])
    members = []
    for j in range(len(batch.references)):
        if batch.same and j == i and not include_self:
            continue
        others = levels_of(batch.reference_labels[j])
        members.append((s[i][j], sum(a == b for a, b in zip(own, others, strict=True))))
    return members


def above(ranked: Ranked, p: int, j: int, temperature: float) -> float:
    """The soft step of member j above member p."""
    return sigmoid((ranked[j][0] - ranked[p][0]) / temperature)


def smooth_ap(batch: Batch, temperature: float = 0.01, include_self: bool = False) -> Terms:
    """Brown et al. 2020: 1 − mean_p (1 + Σ_{j∈P, j≠p} σ(d/τ)) / (1 + Σ_{j≠p} σ(d/τ))."""
    s, units = similarities(batch, "cosine"), []
    for i in range(len(batch.anchors)):
        ranked = ranked_set(batch, i, s, include_self)
        positives = [j for j, (_, level) in enumerate(ranked) if level]
        if not positives:
            continue
        precisions = []
        for p in positives:
            over = 1.0 + sum(above(ranked, p, j, temperature) for j in positives if j != p)
            under = 1.0 + sum(above(ranked, p, j, temperature) for j in range(len(ranked)) if j != p)
            precisions.append(over / under)
        units.append((i, 1.0 - mean(precisions)))
    return [units]


def sup_step(d: float, temperature: float, rho: float, delta: float, offset: float | None, start: float) -> float:
    """H of Ramzi et al. 2021."""
    if d <= 0.0:
        return sigmoid(d / temperature)
    if d <= delta:
        return start + sigmoid(d / temperature)
    return rho * (d - delta) + (start + sigmoid(delta / temperature) if offset is None else offset)


def sup_ap(
    batch: Batch,
    temperature: float = 0.01,
    rho: float = 100.0,
    delta: float = 0.05,
    offset: float | None = 1.44,
    start: float = 0.5,
    include_self: bool = False,
) -> Terms:
    """Ramzi et al. 2021: 1 − mean_p R⁺ / (R⁺ + R⁻)."""
    s, units = similarities(batch, "cosine"), []
    for i in range(len(batch.anchors)):
        ranked = ranked_set(batch, i, s, include_self)
        positives = [j for j, (_, level) in enumerate(ranked) if level]
        if not positives:
            continue
        precisions = []
        for p in positives:
            over = 1.0 + sum(ranked[j][0] >= ranked[p][0] for j in positives if j != p)
            wrong = sum(
                sup_step(value - ranked[p][0], temperature, rho, delta, offset, start)
                for value, level in ranked
                if not level
            )
            precisions.append(over / (over + wrong))
        units.append((i, 1.0 - mean(precisions)))
    return [units]


def roadmap(
    batch: Batch,
    reduction: str,
    positive_margin: float = 0.9,
    negative_margin: float = 0.6,
    calibration_weight: float = 1.0,
    include_self: bool = False,
) -> Terms:
    """SupAP plus contrastive terms, whose units are the pairs with a value under the mean too."""
    terms = contrastive(batch, positive_margin, negative_margin)
    weighted = [
        [(i, calibration_weight * value) for i, value in term if value > 1e-14 or reduction != "mean"] for term in terms
    ]
    return [*sup_ap(batch, include_self=include_self), *weighted]


def recall_at_k(
    batch: Batch,
    ks: Sequence[int] = (1, 2, 4, 8, 16),
    temperature: float = 0.01,
    k_temperature: float = 1.0,
    include_self: bool = False,
) -> Terms:
    """Patel et al. 2022; the anchor may take a rank, but it is no positive."""
    s, units = similarities(batch, "cosine"), []
    for i in range(len(batch.anchors)):
        ranked = ranked_set(batch, i, s, include_self=False)
        positives = [j for j, (_, level) in enumerate(ranked) if level]
        if not positives:
            continue
        members = ranked + ([(1.0, 0)] if include_self and batch.same else [])
        recalls = []
        for k in ks:
            k = min(k, len(batch.anchors))
            found = 0.0
            for p in positives:
                rank = 1.0 + sum(above(members, p, j, temperature) for j in range(len(members)) if j != p)
                found += sigmoid((k - rank) / k_temperature)
            recalls.append(min(k, found) / min(k, len(positives)))
        units.append((i, 1.0 - mean(recalls)))
    return [units]


def pnp(
    batch: Batch,
    variant: str = "O",
    alpha: float = 1.0,
    b: float = 2.0,
    temperature: float = 0.01,
    include_self: bool = False,
) -> Terms:
    """Li et al. 2021; an anchor without another positive is skipped."""
    s, units = similarities(batch, "cosine"), []
    for i in range(len(batch.anchors)):
        others = [j for j, (_, level) in enumerate(ranked_set(batch, i, s, include_self=False)) if level]
        if not others:
            continue
        ranked = ranked_set(batch, i, s, include_self)
        values = []
        for of_positive, level in ranked:
            if level:
                n = sum(sigmoid((value - of_positive) / temperature) for value, agree in ranked if not agree)
                values.append(
                    {
                        "O": n,
                        "Ds": math.log(1.0 + n),
                        "Dq": 1.0 - (1.0 + n) ** -alpha,
                        "Iu": (1.0 + n) * math.log(1.0 + n),
                        "Ib": (b * n - math.log(1.0 + b * n)) / b**2,
                    }[variant]
                )
        units.append((i, mean(values)))
    return [units]


def ndcg(batch: Batch, temperature: float = 0.01, include_self: bool = False) -> Terms:
    """1 − Σ_p r_p / log₂(1 + soft rank) over Σ_k r_(k) / log₂(1 + k)."""
    assert batch.anchor_labels is not None
    s, units, depth = similarities(batch, "cosine"), [], len(levels_of(batch.anchor_labels[0]))
    for i in range(len(batch.anchors)):
        ranked = ranked_set(batch, i, s, include_self)
        gain = 0.0
        for p, (_, level) in enumerate(ranked):
            rank = 1.0 + sum(above(ranked, p, j, temperature) for j in range(len(ranked)) if j != p)
            gain += level / depth / math.log2(1.0 + rank)
        best = sorted((level / depth for _, level in ranked), reverse=True)
        ideal = sum(value / math.log2(2.0 + k) for k, value in enumerate(best))
        if ideal:
            units.append((i, 1.0 - gain / ideal))
    return [units]


def relevances(ranked: Ranked, depth: int, alpha: float) -> list[float]:
    """(l/L)^alpha divided by the number of members of the same level."""
    levels = [level for _, level in ranked]
    return [(level / depth) ** alpha / levels.count(level) if level else 0.0 for level in levels]


def hap(
    batch: Batch,
    temperature: float = 0.01,
    rho: float = 100.0,
    delta: float = 0.05,
    offset: float | None = 1.44,
    start: float = 0.5,
    alpha: float = 1.0,
    include_self: bool = False,
) -> Terms:
    """Ramzi et al. 2022: 1 − (Σ_p hrank / rank) / Σ_p rel."""
    assert batch.anchor_labels is not None
    s, units, depth = similarities(batch, "cosine"), [], len(levels_of(batch.anchor_labels[0]))
    for i in range(len(batch.anchors)):
        ranked = ranked_set(batch, i, s, include_self)
        rel = relevances(ranked, depth, alpha)
        total = 0.0
        for p, (of_positive, level) in enumerate(ranked):
            if not level:
                continue
            rank, hrank = 1.0, rel[p]
            for j, (value, agree) in enumerate(ranked):
                d = value - of_positive
                if agree < level:
                    rank += sup_step(d, temperature, rho, delta, offset, start)
                elif j != p:
                    rank += d >= 0.0
                if j != p and d >= 0.0:
                    hrank += min(rel[j], rel[p])
            total += hrank / rank
        if any(rel):
            units.append((i, 1.0 - total / sum(rel)))
    return [units]


def csl(
    cosines: list[list[float]],
    labels: list[list[int]],
    hierarchy: list[list[int]],
    margins: Sequence[float] = (0.25, 0.35, 0.45),
    scale: float = 32.0,
) -> list[Unit]:
    """Σ_l softplus(LSE_{h_kl ≠ y_l}(γ s_k) + LSE_{h_k0 = y_0}(−γ s_k) + γ m_l), one unit per sample."""
    units = []
    for i, row in enumerate(cosines):
        own = log_sum_exp([-scale * value for value, h in zip(row, hierarchy, strict=True) if h[0] == labels[i][0]])
        value = 0.0
        for level, margin in enumerate(margins):
            others = [scale * s for s, h in zip(row, hierarchy, strict=True) if h[level] != labels[i][level]]
            if others:
                value += softplus(log_sum_exp(others) + own + scale * margin)
        units.append((i, value))
    return units
