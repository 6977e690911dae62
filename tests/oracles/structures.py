"""Losses on clusters, trees of classes, learned metrics and cascades, as plain loops over floats.

The companion of `losses.py`, with the same conventions: a pair loss returns its terms, lists of (anchor, value) units.
"""

import math
from collections.abc import Callable

from .losses import (
    Batch,
    Matrix,
    Terms,
    Unit,
    Vector,
    anchors_of,
    distance,
    dot,
    hinge,
    log_sum_exp,
    mean,
    negatives_of,
    normalized,
    positives_of,
    squared_distance,
    triplets_of,
)

# -------------------------------------------------------------------------------------------------------- Magnet


def apart(a: Vector, b: Vector) -> float:
    """‖a − b‖² of vectors of any length."""
    return sum((x - y) ** 2 for x, y in zip(a, b, strict=True))


def magnet(batch: Batch, alpha: float = 1.0, clusters: list[int] | None = None) -> Terms:
    """Rippel et al. 2016, Eq. 4: [‖r − μ‖²/2σ² + α + log Σ over clusters of other classes e^(−‖r − μ_c‖²/2σ²)]₊."""
    labels = batch.anchor_labels
    assert labels is not None
    clusters = labels if clusters is None else clusters
    rows = [normalized(x) for x in batch.anchors]
    members = {c: [i for i in anchors_of(batch) if clusters[i] == c] for c in set(clusters)}
    means = {c: [mean([rows[i][k] for i in some]) for k in range(len(rows[0]))] for c, some in members.items()}
    total = sum(apart(rows[i], means[clusters[i]]) for i in anchors_of(batch))
    variance = max(total / max(len(rows) - 1, 1), 1e-6)
    units: list[Unit] = []
    for i in anchors_of(batch):
        others = [c for c, some in members.items() if labels[some[0]] != labels[i]]
        if others:
            near = apart(rows[i], means[clusters[i]]) / (2.0 * variance)
            far = log_sum_exp([-apart(rows[i], means[c]) / (2.0 * variance) for c in others])
            units.append((i, hinge(near + alpha + far)))
    return [units]


# ---------------------------------------------------------------------------------------- hierarchical triplets


def class_tree(rows: list[Vector], labels: list[int], levels: int) -> tuple[list[float], list[float], list[list[int]]]:
    """Ge et al. 2018: the thresholds of levels 0 … L, the spread of each class, and the level on which two classes meet."""
    rows = [normalized(x) for x in rows]
    classes = range(max(labels) + 1)
    members = [[i for i, label in enumerate(labels) if label == c] for c in classes]
    known = {
        c: mean([squared_distance(rows[i], rows[j]) for i in some for j in some if i != j])
        for c, some in enumerate(members)
        if len(some) > 1
    }
    start = mean(list(known.values())) if known else 0.0
    thresholds = [start + level * (4.0 - start) / levels for level in range(levels + 1)]
    meets = [[levels for _ in classes] for _ in classes]
    for level in range(levels - 1, 0, -1):
        reach = [
            [
                p == q
                or (
                    bool(members[p] and members[q])
                    and mean([squared_distance(rows[i], rows[j]) for i in members[p] for j in members[q]])
                    < thresholds[level]
                )
                for q in classes
            ]
            for p in classes
        ]
        for through in classes:  # all chains
            for p in classes:
                for q in classes:
                    reach[p][q] = reach[p][q] or (reach[p][through] and reach[through][q])
        for p in classes:
            for q in classes:
                if reach[p][q]:
                    meets[p][q] = level
    return thresholds, [known.get(c, start) for c in classes], meets


def hierarchical_triplet(
    batch: Batch, tree: tuple[list[float], list[float], list[list[int]]] | None = None, margin: float = 0.1
) -> Terms:
    """Ge et al. 2018: [d²_ap − d²_an + β + d_H − s_y]₊ over all triplets; without a tree the margin is β."""
    labels = batch.anchor_labels
    assert labels is not None
    rows = [normalized(x) for x in batch.anchors]
    units: list[Unit] = []
    for a, p, n in triplets_of(batch):
        more = 0.0
        if tree is not None:
            thresholds, spreads, meets = tree
            more = thresholds[meets[labels[a]][labels[n]]] - spreads[labels[a]]
        near, far = squared_distance(rows[a], rows[p]), squared_distance(rows[a], rows[n])
        units.append((a, hinge(near - far + margin + more)))
    return [units]


# ------------------------------------------------------------------------------------------------- learned metric


def apply_layer(weight: Matrix, bias: Vector, x: Vector) -> Vector:
    return [dot(row, x) + b for row, b in zip(weight, bias, strict=True)]


def pddm_score(a: Vector, b: Vector, layers: dict[str, tuple[Matrix, Vector]]) -> float:
    """Huang et al. 2016: two layers of |a − b| and (a + b) / 2 at unit length, one of both, and a score."""
    u = normalized([abs(x - y) for x, y in zip(a, b, strict=True)])
    v = normalized([(x + y) / 2.0 for x, y in zip(a, b, strict=True)])
    hidden = [max(0.0, x) for x in apply_layer(*layers["of_difference"], u)]
    hidden += [max(0.0, x) for x in apply_layer(*layers["of_position"], v)]
    return apply_layer(*layers["score"], [max(0.0, x) for x in apply_layer(*layers["joint"], hidden)])[0]


def pddm(
    batch: Batch,
    layers: dict[str, tuple[Matrix, Vector]],
    alpha: float = 0.5,
    beta: float = 1.0,
    weight: float = 0.5,
) -> Terms:
    """The two headers of the least similar positive pair, each against its most similar negative."""
    rows = [normalized(x) for x in batch.anchors]
    found: tuple[float, int, int] | None = None
    for i in anchors_of(batch):
        for j in positives_of(batch, i) if negatives_of(batch, i) else []:
            value = pddm_score(rows[i], rows[j], layers)
            if found is None or value < found[0]:
                found = value, i, j
    if found is None:
        return [[]]
    lowest, i, j = found
    units: list[Unit] = []
    for header in (i, j):
        scores = {n: pddm_score(rows[header], rows[n], layers) for n in negatives_of(batch, header)}
        hardest = max(scores, key=lambda n: scores[n])
        value = hinge(alpha + scores[hardest] - lowest)
        value += weight * hinge(beta + distance(rows[i], rows[j]) - distance(rows[header], rows[hardest]))
        units.append((header, value))
    return [units]


# -------------------------------------------------------------------------------------------------------- cascades


def cascade(
    rows: list[Vector],
    labels: list[int],
    dims: list[int],
    shares: list[float],
    pair_value: Callable[[float, bool], float],
) -> float:
    """Yuan et al. 2017: the sum over slices of the mean value of their positive and of their negative pairs, hardest ones only."""
    n = len(rows)
    pairs = {
        True: [(i, j) for i in range(n) for j in range(n) if i != j and labels[i] == labels[j]],
        False: [(i, j) for i in range(n) for j in range(n) if labels[i] != labels[j]],
    }
    total, start = 0.0, 0
    for dim, share in zip(dims, [*shares, 1.0], strict=True):
        parts = [normalized(x[start : start + dim]) for x in rows]
        start += dim
        for positive, some in pairs.items():
            values = {(i, j): dot(parts[i], parts[j]) for i, j in some}
            total += mean([pair_value(values[pair], positive) for pair in some]) if some else 0.0
            hardness = sorted(((-s if positive else s) for s in values.values()), reverse=True)
            if hardness:
                last = hardness[max(1, round(share * len(hardness))) - 1]
                pairs[positive] = [
                    pair
                    for pair in some
                    if (-values[pair] if positive else values[pair]) >= last
                    or math.isclose(-values[pair] if positive else values[pair], last, abs_tol=1e-12)
                ]
    return total
