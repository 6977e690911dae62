"""Threshold consistency: whether one threshold on the similarity suits all classes equally."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from likewise.formula import SimilarityLike, whole_number
from likewise.metrics.arrays import Array
from likewise.metrics.chunks import MEMORY, fit_rows, split_rows
from likewise.metrics.inputs import Exclusion, MetricInputs, check_inputs
from likewise.metrics.precision import exact_precision
from likewise.metrics.prepared_rows import PreparedRows, compute_center, multiply, round_up
from likewise.metrics.verification import check_rates, verification


def opis(
    embeddings: Array,
    labels: Array,
    *,
    far: tuple[float, float] = (1e-2, 1e-1),
    thresholds: tuple[float, float] | None = None,
    steps: int = 100,
    beta: float = 1.0,
    worst: float = 1.0,
    similarity: SimilarityLike = "cosine",
    memory: int = MEMORY,
) -> dict[str, Any]:
    r"""Operating-point inconsistency score (OPIS): how much the effect of a threshold differs between classes.

    At a threshold t, a pair is accepted if its similarity is at least t.  Of the pairs whose first sample is in class c,
    $\psi_c(t)$ is the fraction of positive pairs that are accepted (sensitivity) and $\varphi_c(t)$ the fraction of negative pairs
    that are rejected (specificity).  With the utility of the class

    $$U_c(t)=\frac{(1+\beta^2)\,\varphi_c(t)\,\psi_c(t)}{\beta^2\varphi_c(t)+\psi_c(t)}$$

    (zero where both are zero) and its mean $\bar U(t)$ over the C classes that have positive and negative pairs, the score is the
    mean squared difference over classes and over the calibration range of thresholds:

    $$\mathrm{OPIS}=\frac1C\sum_c\mathrm{mean}_t\,\bigl(U_c(t)-\bar U(t)\bigr)^2$$

    Zhang et al. 2024 (threshold-consistent margin), from the definition in their abstract and not checked against their code: the
    mean over evenly spaced thresholds and ``worst`` are this library's reading of it.  Zero is best.
    `likewise.losses.ThresholdConsistentMarginLoss` reduces it.

    Args:
        embeddings: ``(n, d)``.
        labels: their labels.
        far: the calibration range as false-accept rates over all pairs, the lower one first; thresholds are computed as
            in `verification`.
        thresholds: the calibration range as similarities, in place of ``far``.
        steps: the number of thresholds, both ends included.
        beta: the weight β of sensitivity.
        worst: average over this fraction of classes, those with the largest differences; 1: all classes.
        similarity: how two embeddings are compared.
        memory: bytes that the computation may take.

    Returns:
        ``"OPIS"``, the mean utility over classes and thresholds ``"utility"``, the range ``"thresholds"``, and the number of
        ``"classes"``.

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [1.0, 0.1], [0.0, 1.0], [0.9, 1.0]])  # the second class is wider
        >>> scores = opis(embeddings, torch.tensor([0, 0, 1, 1]), thresholds=(0.5, 0.9), steps=5)
        >>> round(scores["OPIS"], 4), scores["classes"]
        (0.1, 2)
    """
    low, high = _check_range(far, thresholds)
    steps = whole_number("steps", steps, 1)
    if not isinstance(beta, float | int) or not beta > 0.0:
        raise ValueError(f"beta must be a number > 0, but it is {beta!r}")
    if not isinstance(worst, float | int) or not 0.0 < worst <= 1.0:
        raise ValueError(f"worst must be a number > 0 and ≤ 1, but it is {worst!r}")
    inputs = check_inputs(embeddings, labels, None, None, Exclusion(None, None, False), similarity, None, memory)
    if thresholds is None:
        rates = verification(embeddings, labels, far=(low, high), similarity=similarity, memory=memory)
        low, high = sorted(rates[f"threshold@{rate:g}"] for rate in (low, high))
        if high == float("inf"):
            raise ValueError(f"far must be reached by a threshold that accepts a positive pair, but {far[0]:g} is not")
    with exact_precision(inputs.embeddings.queries):
        utility = _compute_utilities(inputs, torch.linspace(low, high, steps, dtype=torch.float64), float(beta))
    if not len(utility):
        raise ValueError("labels must give a class with positive and negative pairs, but there is none")
    of_classes = (utility - utility.mean(dim=0)).square().mean(dim=1).sort(descending=True).values
    number = max(1, round(float(worst) * len(of_classes)))
    return {
        "OPIS": of_classes[:number].mean().item(),
        "utility": utility.mean().item(),
        "thresholds": (low, high),
        "classes": len(utility),
    }


def _check_range(far: tuple[float, float], thresholds: tuple[float, float] | None) -> tuple[float, float]:
    name, value = ("far", far) if thresholds is None else ("thresholds", thresholds)
    ends = check_rates(far) if thresholds is None else tuple(thresholds)
    if len(ends) != 2 or not all(isinstance(end, float | int) for end in ends) or not ends[0] < ends[1]:
        raise ValueError(f"{name} must be two numbers, the lower one first, but it is {value!r}")
    return float(ends[0]), float(ends[1])


def _compute_utilities(inputs: MetricInputs, thresholds: Tensor, beta: float) -> Tensor:
    """The utility of each class that has positive and negative pairs at each threshold, ``(classes, thresholds)``."""
    classes = inputs.classes()
    assert classes is not None
    numbers = classes.queries
    accepted = _count_accepted(inputs, numbers, thresholds)  # (2, classes, thresholds)
    size = torch.bincount(numbers, minlength=accepted.shape[1]).double()
    positives, negatives = size * (size - 1.0), size * (len(numbers) - size)
    has_both = (positives > 0) & (negatives > 0)
    sensitivity = accepted[0, has_both] / positives[has_both, None]
    specificity = 1.0 - accepted[1, has_both] / negatives[has_both, None]
    total = beta**2 * specificity + sensitivity
    return torch.where(total > 0.0, (1.0 + beta**2) * specificity * sensitivity / total.clamp_min(1e-300), 0.0)


def _count_accepted(inputs: MetricInputs, numbers: Tensor, thresholds: Tensor) -> Tensor:
    """The number of positive and of negative ordered pairs of each class that reach each threshold."""
    rows = inputs.embeddings.queries
    n, dtype, classes, steps = len(rows), inputs.embeddings.dtype, int(numbers.max()) + 1, len(thresholds)
    center = compute_center(rows, inputs.similarity, dtype)
    prepared = PreparedRows(rows, None, inputs.similarity, dtype, center)
    # products of one shape, a row multiple: equal pairs have equal similarities, as in `verification`
    size = round_up(min(n, fit_rows(inputs.memory // 2, per_pair=4 * dtype.itemsize + 24)), rows.device)
    out = torch.empty(size, size, dtype=dtype, device=rows.device)
    sample = torch.arange(n, device=rows.device)
    edges = thresholds.to(device=rows.device, dtype=dtype)
    counts = torch.zeros(2 * classes * (steps + 1), dtype=torch.float64, device=rows.device)
    for first in split_rows(n, size):
        left = prepared.take(first.start, first.start + size)
        for second in split_rows(n, size):
            right = prepared.take(second.start, second.start + size)
            products = multiply(left, right, inputs.similarity, out)
            chunk = products[: first.stop - first.start, : second.stop - second.start]
            reached = torch.searchsorted(edges, chunk.contiguous(), right=True)  # how many thresholds a pair reaches
            mine, others = numbers[first, None], numbers[None, second]
            index = ((mine != others) * classes + mine) * (steps + 1) + reached
            is_pair = sample[first, None] != sample[None, second]
            counts.index_add_(0, index.flatten(), is_pair.flatten().double())
    by_class = counts.view(2, classes, steps + 1)
    # a pair that reaches k thresholds reaches the first k
    return by_class.flip(2).cumsum(dim=2).flip(2)[:, :, 1:]
