"""Margin heads with a margin per sample, and other heads, as plain loops over floats; the companion of `proxies.py`."""

import math

from .losses import Terms, Unit, Vector, dot, mean
from .proxies import angle_of, cosines, cross_entropy


def length_of(x: Vector) -> float:
    """‖x‖."""
    return math.sqrt(dot(x, x))


def ada_face_statistics(
    embeddings: list[Vector], batch_mean: float = 20.0, batch_std: float = 100.0, t_alpha: float = 0.01
) -> tuple[float, float]:
    """The running statistics after a batch."""
    lengths = [min(max(length_of(x), 0.001), 100.0) for x in embeddings]
    center = mean(lengths)
    std = batch_std
    if len(lengths) > 1:
        std = math.sqrt(sum((a - center) ** 2 for a in lengths) / (len(lengths) - 1))
    return t_alpha * center + (1 - t_alpha) * batch_mean, t_alpha * std + (1 - t_alpha) * batch_std


def ada_face(
    embeddings: list[Vector],
    labels: list[int],
    proxies: list[Vector],
    margin: float = 0.4,
    h: float = 0.333,
    scale: float = 64.0,
    batch_mean: float = 20.0,
    batch_std: float = 100.0,
    lengths_of: list[Vector] | None = None,
) -> Terms:
    """Kim et al. 2022 with given statistics; the lengths may be those of other embeddings."""
    s = cosines(embeddings, proxies)
    lengths = [min(max(length_of(x), 0.001), 100.0) for x in lengths_of or embeddings]
    units: list[Unit] = []
    for i, y in enumerate(labels):
        z = min(max(h * (lengths[i] - batch_mean) / (batch_std + 0.001), -1.0), 1.0)
        logits = []
        for k, cosine in enumerate(s[i]):
            theta = math.acos(min(max(cosine, -0.999), 0.999))
            if k == y:
                theta -= margin * z
            theta = min(max(theta, 0.001), math.pi - 0.001)
            logits.append(scale * (math.cos(theta) - (margin + margin * z if k == y else 0.0)))
        units.append((i, cross_entropy(logits, y)))
    return [units]


def mag_face(
    embeddings: list[Vector],
    labels: list[int],
    proxies: list[Vector],
    l_a: float = 10.0,
    u_a: float = 110.0,
    l_margin: float = 25.8,
    u_margin: float = 45.8,
    scale: float = 64.0,
    lambda_g: float = 35.0,
    easy_margin: bool = True,
) -> Terms:
    """Meng et al. 2021: a margin that grows with the clipped length a, and λ_g (a/u_a² + 1/a)."""
    s = cosines(embeddings, proxies)
    units: list[Unit] = []
    penalties: list[Unit] = []
    for i, y in enumerate(labels):
        a = min(max(length_of(embeddings[i]), l_a), u_a)
        m = math.radians(l_margin + (u_margin - l_margin) * (a - l_a) / (u_a - l_a))
        cosine = s[i][y]
        if easy_margin:
            target = math.cos(angle_of(cosine) + m) if cosine > 0.0 else cosine
        else:
            inside = cosine > math.cos(math.pi - m)
            target = math.cos(angle_of(cosine) + m) if inside else cosine - m * math.sin(m)
        logits = [scale * (target if k == y else other) for k, other in enumerate(s[i])]
        units.append((i, cross_entropy(logits, y)))
        penalties.append((i, lambda_g * (a / u_a**2 + 1.0 / a)))
    return [units, penalties]


def in_order(margins: list[float], targets: list[float]) -> list[float]:
    """The smallest margin for the largest target cosine, and so on."""
    result = [0.0] * len(margins)
    order = sorted(range(len(targets)), key=lambda i: -targets[i])
    for i, margin in zip(order, sorted(margins), strict=True):
        result[i] = margin
    return result


def elastic_arc_face(
    embeddings: list[Vector],
    labels: list[int],
    proxies: list[Vector],
    margin: float | list[float] = 28.65,
    std: float = 0.0,
    scale: float = 64.0,
    plus: bool = False,
) -> Terms:
    """Boutros et al. 2022: ArcFace with a margin per sample in degrees, without another form past 180°."""
    assert std == 0.0
    s = cosines(embeddings, proxies)
    margins = margin if isinstance(margin, list) else [margin] * len(labels)
    margins = in_order(margins, [s[i][y] for i, y in enumerate(labels)]) if plus else margins
    units: list[Unit] = []
    for i, y in enumerate(labels):
        target = math.cos(angle_of(s[i][y]) + math.radians(margins[i]))
        units.append((i, cross_entropy([scale * (target if k == y else x) for k, x in enumerate(s[i])], y)))
    return [units]


def elastic_cos_face(
    embeddings: list[Vector],
    labels: list[int],
    proxies: list[Vector],
    margin: float | list[float] = 0.35,
    std: float = 0.0,
    scale: float = 64.0,
    plus: bool = False,
) -> Terms:
    """Boutros et al. 2022: CosFace with a margin per sample."""
    assert std == 0.0
    s = cosines(embeddings, proxies)
    margins = margin if isinstance(margin, list) else [margin] * len(labels)
    margins = in_order(margins, [s[i][y] for i, y in enumerate(labels)]) if plus else margins
    units: list[Unit] = []
    for i, y in enumerate(labels):
        logits = [scale * (x - (margins[i] if k == y else 0.0)) for k, x in enumerate(s[i])]
        units.append((i, cross_entropy(logits, y)))
    return [units]


def p2s_grad(embeddings: list[Vector], labels: list[int], proxies: list[Vector]) -> Terms:
    """Zhang et al. 2019: the mean over classes of (cos − [k = y])²."""
    s = cosines(embeddings, proxies)
    return [[(i, mean([(x - (k == y)) ** 2 for k, x in enumerate(s[i])])) for i, y in enumerate(labels)]]


def large_margin_softmax(
    embeddings: list[Vector], labels: list[int], proxies: list[Vector], margin: int = 4, scale: float = 1.0
) -> Terms:
    """Liu et al. 2016: scale·‖w‖‖x‖ψ(θ) for the own class, ψ(θ) = (−1)^k cos(mθ) − 2k; scale·w·x for the others."""
    s = cosines(embeddings, proxies)
    units: list[Unit] = []
    for i, y in enumerate(labels):
        logits = []
        for j, x in enumerate(s[i]):
            if j == y:
                theta = angle_of(x)
                k = min(math.floor(margin * theta / math.pi), margin - 1)
                x = (-1) ** k * math.cos(margin * theta) - 2 * k
            logits.append(scale * length_of(proxies[j]) * length_of(embeddings[i]) * x)
        units.append((i, cross_entropy(logits, y)))
    return [units]
