"""Proxy losses and regularizers written as plain loops over Python floats, straight from the papers' formulas.

The companion of `losses.py`: a loss returns its separately averaged terms, lists of (index, value) units, for
`losses.reduce`. The index is the sample, or the proxy where a proxy is the anchor (Proxy-Anchor, proxy
repulsion, the second term of ProxyGML). "Thesis" and "overview" are the texts named in `losses.py`; where
they print a sum over samples or an equation wrongly, the averaged and corrected form is used.

`proxies[c · centers + k]` is center k of class c. Samples and proxies are brought to unit norm unless the
function says otherwise. Angles are in degrees.
"""

import math

from .losses import (
    Matrix,
    Terms,
    Unit,
    Vector,
    dot,
    log_one_plus_sum_exp,
    log_sum_exp,
    mean,
    similarity,
    squared_distance,
)

# ---------------------------------------------------------------------------------------------------- helpers


def cosines(rows: list[Vector], columns: list[Vector]) -> Matrix:
    """Cosine of every row vector with every column vector."""
    return [[similarity("cosine", a, b) for b in columns] for a in rows]


def log_softmax(logits: list[float]) -> list[float]:
    """log(e^{z_j} / Σ_k e^{z_k}) for every j."""
    total = log_sum_exp(logits)
    return [logit - total for logit in logits]


def cross_entropy(logits: list[float], target: int) -> float:
    """−log(e^{z_target} / Σ_k e^{z_k})."""
    return log_sum_exp(logits) - logits[target]


def angle_of(cosine: float) -> float:
    """The angle in [0, π]; rounding may put a cosine just outside the domain of acos."""
    return math.acos(min(1.0, max(-1.0, cosine)))


def centers_of(c: int, centers: int) -> range:
    """Rows of the proxies of class c."""
    return range(c * centers, (c + 1) * centers)


# ------------------------------------------------------------------------------------- softmax and its kindred


def softmax(
    embeddings: list[Vector], labels: list[int], proxies: list[Vector], bias: list[float] | None = None
) -> Terms:
    """Softmax loss (thesis Eq. 2.26): cross entropy of w_j·x + b_j, neither x nor w normalized."""
    offsets = [0.0] * len(proxies) if bias is None else bias
    units: list[Unit] = []
    for i, x in enumerate(embeddings):
        logits = [dot(x, w) + b for w, b in zip(proxies, offsets, strict=True)]
        units.append((i, cross_entropy(logits, labels[i])))
    return [units]


def normalized_softmax(
    embeddings: list[Vector],
    labels: list[int],
    proxies: list[Vector],
    temperature: float = 0.05,
    normalize_embeddings: bool = True,
) -> Terms:
    """Wang et al. 2017 (NormFace), Zhai & Wu 2019 (normalized softmax): cross entropy of cos(x, w_j)/τ.

    Without normalize_embeddings: of the inner products of x as it is and the unit vectors of the proxies.
    """
    s = cosines(embeddings, proxies)
    units: list[Unit] = []
    for i, y in enumerate(labels):
        length = 1.0 if normalize_embeddings else math.sqrt(dot(embeddings[i], embeddings[i]))
        units.append((i, cross_entropy([length * cos / temperature for cos in s[i]], y)))
    return [units]


def proxy_nca(embeddings: list[Vector], labels: list[int], proxies: list[Vector], scale: float = 1.0) -> Terms:
    """Movshovitz-Attias et al. 2017 (overview Eq. 16): the positive proxy is not in the denominator.

    −log(e^{−scale·d²(x, p_y)} / Σ_{k≠y} e^{−scale·d²(x, p_k)}) on unit vectors. It may be negative. Without
    a second proxy there is no denominator and the sample is not a unit.
    """
    units: list[Unit] = []
    for i, y in enumerate(labels):
        exponents = [-scale * squared_distance(embeddings[i], p) for p in proxies]
        others = [exponents[k] for k in range(len(proxies)) if k != y]
        if others:
            units.append((i, log_sum_exp(others) - exponents[y]))
    return [units]


def proxy_nca_pp(
    embeddings: list[Vector], labels: list[int], proxies: list[Vector], temperature: float = 0.111
) -> Terms:
    """Teh et al. 2020, ProxyNCA++ (overview Eq. 17, corrected): cross entropy of −d²(x, p_k)/T, unit vectors."""
    units: list[Unit] = []
    for i, y in enumerate(labels):
        units.append((i, cross_entropy([-squared_distance(embeddings[i], p) / temperature for p in proxies], y)))
    return [units]


# -------------------------------------------------------------------------------------------- angular margins


def sphere_face(
    embeddings: list[Vector],
    labels: list[int],
    proxies: list[Vector],
    margin: int = 4,
    scale: float = 1.0,
    normalize: bool = False,
) -> Terms:
    """Liu et al. 2017 (SphereFace), A-softmax loss, without annealing.

    Logits scale·‖x‖·cos θ_j, of the target scale·‖x‖·ψ(θ_y), ψ(θ) = (−1)^k cos(mθ) − 2k for θ in
    [kπ/m, (k + 1)π/m], k = 0, …, m − 1; proxies of unit norm. normalize: without ‖x‖.
    """
    s = cosines(embeddings, proxies)
    units: list[Unit] = []
    for i, y in enumerate(labels):
        length = 1.0 if normalize else math.sqrt(dot(embeddings[i], embeddings[i]))
        theta = angle_of(s[i][y])
        k = min(math.floor(margin * theta / math.pi), margin - 1)
        logits = [scale * length * cos for cos in s[i]]
        logits[y] = scale * length * ((-1.0) ** k * math.cos(margin * theta) - 2.0 * k)
        units.append((i, cross_entropy(logits, y)))
    return [units]


def cos_face(
    embeddings: list[Vector], labels: list[int], proxies: list[Vector], margin: float = 0.35, scale: float = 64.0
) -> Terms:
    """Wang et al. 2018 (CosFace), large margin cosine loss: cross entropy of scale·(cos θ_k − margin·[k = y])."""
    s = cosines(embeddings, proxies)
    units: list[Unit] = []
    for i, y in enumerate(labels):
        logits = [scale * (cos - margin if k == y else cos) for k, cos in enumerate(s[i])]
        units.append((i, cross_entropy(logits, y)))
    return [units]


def with_angular_margin(cosine: float, margin: float) -> float:
    """cos(θ + m); past θ + m = π, where that would rise again, cos θ − m sin m. Margin in degrees."""
    theta, m = angle_of(cosine), math.radians(margin)
    return cosine - m * math.sin(m) if theta + m > math.pi else math.cos(theta + m)


def arc_face(
    embeddings: list[Vector], labels: list[int], proxies: list[Vector], margin: float = 28.6, scale: float = 64.0
) -> Terms:
    """Deng et al. 2019, ArcFace (thesis Eq. 2.29): cross entropy with scale·cos(θ_y + margin) for the target.

    Past π the target is cos θ_y − m sin m, m in radians, the fallback of the authors' code.
    """
    return sub_center_arc_face(embeddings, labels, proxies, centers=1, margin=margin, scale=scale)


def sub_center_arc_face(
    embeddings: list[Vector],
    labels: list[int],
    proxies: list[Vector],
    centers: int = 3,
    margin: float = 28.6,
    scale: float = 64.0,
) -> Terms:
    """Deng et al. 2020 (sub-center ArcFace): ArcFace where the cosine of a class is that of its best center."""
    s = cosines(embeddings, proxies)
    units: list[Unit] = []
    for i, y in enumerate(labels):
        logits: list[float] = []
        for c in range(len(proxies) // centers):
            best = max(s[i][j] for j in centers_of(c, centers))
            logits.append(scale * (with_angular_margin(best, margin) if c == y else best))
        units.append((i, cross_entropy(logits, y)))
    return [units]


# ------------------------------------------------------------------------------------ several centers per class


def soft_triple(
    embeddings: list[Vector],
    labels: list[int],
    proxies: list[Vector],
    centers: int = 10,
    la: float = 20.0,
    gamma: float = 0.1,
    margin: float = 0.01,
    tau: float = 0.2,
) -> Terms:
    """Qian et al. 2019, SoftTriple (thesis Eq. 2.30, corrected), without `soft_triple_regularizer`.

    S'_c = Σ_k softmax_k(x·w_ck/gamma) x·w_ck, cross entropy of la·(S'_c − margin·[c = y]); gamma is a
    temperature. `tau` is the weight of the regularizer, which the caller adds: it is not used here.
    """
    s = cosines(embeddings, proxies)
    units: list[Unit] = []
    for i, y in enumerate(labels):
        logits: list[float] = []
        for c in range(len(proxies) // centers):
            own = [s[i][j] for j in centers_of(c, centers)]
            weights = [math.exp(weight) for weight in log_softmax([cos / gamma for cos in own])]
            relaxed = dot(weights, own)
            logits.append(la * (relaxed - margin if c == y else relaxed))
        units.append((i, cross_entropy(logits, y)))
    return [units]


def soft_triple_regularizer(proxies: list[Vector], centers: int = 10, tau: float = 0.2) -> float:
    """Qian et al. 2019, the L2,1 term that merges centers of a class, as in the authors' code.

    tau · Σ_c Σ_{k<l} √(2 + 1e-5 − 2 w_ck·w_cl) / (C K (K − 1)); zero for one center per class.
    """
    if centers == 1:
        return 0.0
    num_classes = len(proxies) // centers
    s = cosines(proxies, proxies)
    total = 0.0
    for c in range(num_classes):
        for k in centers_of(c, centers):
            for m in centers_of(c, centers):
                if k < m:
                    total += math.sqrt(2.0 + 1e-5 - 2.0 * s[k][m])
    return tau * total / (num_classes * centers * (centers - 1))


def proxy_gml(
    embeddings: list[Vector],
    labels: list[int],
    proxies: list[Vector],
    centers: int = 3,
    neighbors: int = 8,
    weight: float = 0.3,
) -> Terms:
    """Zhu et al. 2020, ProxyGML (overview Eq. 21-27, corrected), in the form of the authors' code.

    Term 1, a unit per sample: of its proxies K = `neighbors` are kept, all M = `centers` positive ones first
    and then the K − M most similar others (lower index first among equals); with K < M just the positives.
    The cosines of the kept proxies are summed per class; cross entropy over the classes that have a kept proxy
    (the mask of Eq. 22: a class is left out because nothing of it was kept, not because its sum is zero).
    Term 2, a unit per proxy, already times `weight`: cross entropy over all classes of its cosines with all
    proxies, itself included, summed per class.
    """
    num_classes = len(proxies) // centers
    s = cosines(embeddings, proxies)
    samples: list[Unit] = []
    for i, y in enumerate(labels):
        positive = list(centers_of(y, centers))
        others = sorted((-s[i][j], j) for j in range(len(proxies)) if j not in positive)
        kept = positive + [j for _, j in others[: max(neighbors - centers, 0)]]
        sums: dict[int, float] = {}
        for j in kept:
            sums[j // centers] = sums.get(j // centers, 0.0) + s[i][j]
        samples.append((i, log_sum_exp(list(sums.values())) - sums[y]))

    between = cosines(proxies, proxies)
    regularizer: list[Unit] = []
    for j in range(len(proxies)):
        logits = [sum(between[j][k] for k in centers_of(c, centers)) for c in range(num_classes)]
        regularizer.append((j, weight * cross_entropy(logits, j // centers)))
    return [samples, regularizer]


# ------------------------------------------------------------------------------------------ proxies as anchors


def proxies_attract(s: Matrix, labels: list[int], num_classes: int, margin: float, alpha: float) -> list[Unit]:
    """First term of thesis Eq. 2.31: log(1 + Σ_{x∈X_w⁺} e^{−α(s − margin)}) for every proxy with a sample."""
    units: list[Unit] = []
    for c in range(num_classes):
        exponents = [-alpha * (s[i][c] - margin) for i, y in enumerate(labels) if y == c]
        if exponents:
            units.append((c, log_one_plus_sum_exp(exponents)))
    return units


def proxy_anchor(
    embeddings: list[Vector], labels: list[int], proxies: list[Vector], margin: float = 0.1, alpha: float = 32.0
) -> Terms:
    """Kim et al. 2020, Proxy-Anchor (thesis Eq. 2.31; overview Eq. 18, corrected).

    Term 1 over the proxies with a sample in the batch: log(1 + Σ_{x∈X_w⁺} e^{−α(s − margin)}). Term 2 over all
    proxies: log(1 + Σ_{x∈X_w⁻} e^{α(s + margin)}), zero for a proxy whose class is the whole batch.
    """
    s = cosines(embeddings, proxies)
    repel: list[Unit] = []
    for c in range(len(proxies)):
        exponents = [alpha * (s[i][c] + margin) for i, y in enumerate(labels) if y != c]
        repel.append((c, log_one_plus_sum_exp(exponents)))
    return [proxies_attract(s, labels, len(proxies), margin, alpha), repel]


def proxy_repulsion(
    embeddings: list[Vector],
    labels: list[int],
    proxies: list[Vector],
    margin: float = 0.1,
    alpha: float = 32.0,
    through_samples: bool = False,
) -> Terms:
    """Thesis Eq. 6.1 (corrected) and, through_samples, Eq. 6.2.

    Term 1 as in Proxy-Anchor. Term 2 over all proxies w: log(1 + Σ_{w'≠w} e^{α(w·w' + margin)}), where
    through_samples puts Σ_x (w·x)(x·w'), over all samples of the batch, in place of w·w'.
    """
    s = cosines(embeddings, proxies)
    repel: list[Unit] = []
    for c in range(len(proxies)):
        exponents: list[float] = []
        for other in range(len(proxies)):
            if other == c:
                continue
            if through_samples:
                closeness = sum(s[i][c] * s[i][other] for i in range(len(embeddings)))
            else:
                closeness = similarity("cosine", proxies[c], proxies[other])
            exponents.append(alpha * (closeness + margin))
        repel.append((c, log_one_plus_sum_exp(exponents)))
    return [proxies_attract(s, labels, len(proxies), margin, alpha), repel]


# ------------------------------------------------------------------------------------------- other regularizers


def language_guidance(
    embeddings: list[Vector],
    labels: list[int],
    class_embeddings: list[Vector],
    gamma: float = 1.0,
    mask_same_class: bool = False,
) -> float:
    """Roth et al. 2022, language guidance (overview Eq. 29): (1/B) Σ_i KL(softmax(S_I^i) ‖ softmax(S_L^i + γ)).

    S_I holds the cosines within the batch, S_L those of the class embeddings of the labels, self pairs
    included, B entries to a row. Adding γ to a whole row does nothing. mask_same_class: entries of two samples
    of one class, self pairs among them, are first set to 1 + γ in both matrices, as in the authors' code.
    """
    language = [class_embeddings[y] for y in labels]
    of_images, of_language = cosines(embeddings, embeddings), cosines(language, language)
    total = 0.0
    for i in range(len(embeddings)):
        image_row, language_row = list(of_images[i]), list(of_language[i])
        if mask_same_class:
            for j in range(len(embeddings)):
                if labels[j] == labels[i]:
                    image_row[j] = language_row[j] = 1.0 + gamma
        log_p = log_softmax(image_row)
        log_q = log_softmax([entry + gamma for entry in language_row])
        total += sum(math.exp(p) * (p - q) for p, q in zip(log_p, log_q, strict=True))
    return total / len(embeddings)


def embedding_norm(embeddings: list[Vector], p: float = 2.0) -> float:
    """Mean over the raw embeddings of ‖x‖_p."""
    return mean([sum(abs(component) ** p for component in x) ** (1.0 / p) for x in embeddings])


def zero_mean(embeddings: list[Vector]) -> float:
    """Yuan et al. 2019, zero-mean regularizer: mean over the raw embeddings of |Σ_k x_k|."""
    return mean([abs(sum(x)) for x in embeddings])
