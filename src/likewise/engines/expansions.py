"""Sums of smooth curves over the negatives of an anchor, for each of its references, without enumerating triplets.

Similarities of unit vectors lie in a known interval.  A curve of `s` and `s_p` that is analytic around it, such as
``log(1 + e^(s − s_p + margin))``, is a short sum ``Σ_ij c_ij T_i(s) T_j(s_p)`` of Chebyshev polynomials to within the rounding
of its largest value.  Where all values are much smaller, as for well-separated classes, the sum has fewer correct digits
than one over enumerated triplets: its relative error was 1e-13 in float64 and 4e-7 in float32.  Steep curves, whose values
vary more, are not expanded.  The sum over negatives needs only their sums of each ``T_i``: ``O(q m n)`` with q polynomials,
for any number of positives, without sorting and without reading that number from a device.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor

from likewise.engines.hinges import linear_in
from likewise.formula import (
    NEGATIVES,
    OPERATIONS,
    Apply,
    Cosine,
    Count,
    Euclidean,
    Folded,
    Formula,
    Number,
    PairBatch,
    Rank,
    Similarity,
    SquaredEuclidean,
    Sum,
    has_similarity_hook,
)

AT_ONCE = {"cpu": 2**17, "cuda": 2**21}
"""The number of pairs whose polynomials are computed at once, by kind of device."""

STEEPEST = 5.0
"""The largest `Softplus.steepness`; 40 polynomials suffice for it in float64."""

INTERVALS: dict[type[Similarity], tuple[float, float]] = {
    Cosine: (-1.0, 1.0),
    Euclidean: (-2.0, 0.0),
    SquaredEuclidean: (-4.0, 0.0),
}
"""The least and the largest similarity of unit vectors, apart from rounding."""


class Softplus(NamedTuple):
    """The curve ``softplus(a s + b s_p + c)`` for similarities in an interval.

    Args:
        line: a, b and c.
        interval: the least and the largest similarity.
    """

    line: tuple[float, float, float]
    interval: tuple[float, float]

    @property
    def steepness(self) -> float:
        """The largest change of the argument when one of the similarities passes through the interval."""
        low, high = self.interval
        return max(map(abs, self.line[:2])) * (high - low)

    def count_polynomials(self, dtype: torch.dtype) -> int:
        """The number of polynomials whose remainder is below the rounding of a dtype."""
        # the poles nearest to the interval are at ±πi; the coefficients shrink with their distance from it
        pole = 2.0 * math.pi / self.steepness
        return math.ceil(math.log(8.0 / torch.finfo(dtype).eps) / math.asinh(pole)) + 1

    def is_positive(self) -> bool:
        """Whether the curve is a positive number everywhere, in float32."""
        a, b, c = self.line
        least = sum(min(factor * end for end in self.interval) for factor in (a, b)) + c
        return least > -80.0


def find_interval(batch: PairBatch) -> tuple[float, float] | None:
    """The least and the largest similarity of a batch, apart from rounding; ``None`` if they are not known.

    Examples:
        >>> from likewise.formula import Labels
        >>> find_interval(PairBatch(Labels(torch.tensor([0, 1])), Cosine(), anchors=torch.eye(2)))
        (-1.0, 1.0)
    """
    similarity = batch.similarity
    if batch.anchors is None or similarity is None or not similarity.bounded or has_similarity_hook():
        return None
    return INTERVALS.get(type(similarity))


def match_smooth(folded: Formula, interval: tuple[float, float] | None) -> Softplus | None:
    """Match a sum over negatives, one for each positive, of a softplus, or the number of those that are positive.

    Examples:
        >>> from likewise.formula import add_up, s, s_p, softplus
        >>> match_smooth(add_up(softplus(s - s_p), NEGATIVES), (-1.0, 1.0))
        Softplus(line=(1.0, -1.0, 0.0), interval=(-1.0, 1.0))
        >>> match_smooth(add_up(softplus(s - s_p), NEGATIVES), None) is None
        True
    """
    if interval is None or not isinstance(folded, Folded) or folded.over is not NEGATIVES:
        return None
    curve = folded.curve
    if folded.rank is not Rank.POSITIVE or not isinstance(folded.fold, Sum | Count):
        return None
    if isinstance(folded.fold, Count):
        if not (isinstance(curve, Apply) and curve.operation == "less"):
            return None
        zero, curve = curve.arguments
        if not (isinstance(zero, Number) and not isinstance(zero.value, Tensor) and zero.value == 0.0):
            return None
    line = linear_in(curve.arguments[0]) if isinstance(curve, Apply) and curve.operation == "softplus" else None
    if line is None or not (line[0] or line[1]):
        return None
    found = Softplus(line, interval)
    fits = found.is_positive() if isinstance(folded.fold, Count) else found.steepness <= STEEPEST
    return found if fits else None


def sum_smooth(S: Tensor, negative: Tensor, curve: Softplus) -> Tensor:
    """``Σ_j softplus(a s_j + b s_p + c)`` over the negatives of each anchor, for all of its references p, ``(m, n)``.

    Examples:
        >>> S, negative = torch.tensor([[0.5, 0.7, 0.2]]), torch.tensor([[False, True, True]])
        >>> sum_smooth(S, negative, Softplus((1.0, -1.0, 0.0), (-1.0, 1.0)))
        tensor([[1.3525, 1.1672, 1.6672]])
    """
    size = max(AT_ONCE.get(S.device.type, AT_ONCE["cuda"]) // max(S.shape[1], 1), 1)
    chunks = zip(torch.split(S, size), torch.split(negative, size), strict=True)
    sums = [_SumSmooth.apply(*chunk, curve) for chunk in chunks]  # type: ignore[no-untyped-call]
    return sums[0] if len(sums) == 1 else torch.cat(sums)


class _SumSmooth(torch.autograd.Function):
    """The sums; their polynomials are computed again in the backward pass, which can be differentiated."""

    @staticmethod
    def forward(ctx: Any, S: Tensor, negative: Tensor, curve: Softplus) -> Tensor:
        ctx.save_for_backward(S, negative)
        ctx.curve = curve
        T = _polynomials(S, curve)
        of_negatives = _sum_columns(T, negative) @ _coefficients(curve, "softplus", len(T), S)
        return _combine(T, of_negatives)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        S, negative = ctx.saved_tensors
        a, b, _ = ctx.curve.line
        T = _polynomials(S, ctx.curve)
        coefficients = _coefficients(ctx.curve, "sigmoid", len(T), S)
        by_negatives = _combine(T, a * _sum_columns(T, grad) @ coefficients.T)
        by_positives = _combine(T, b * _sum_columns(T, negative) @ coefficients)
        return torch.where(negative, by_negatives, 0.0) + by_positives * grad, None, None


def _polynomials(S: Tensor, curve: Softplus) -> Tensor:
    """``T_0, T_1, …`` of the similarities, ``(q, m, n)``."""
    low, high = curve.interval
    x = (S - 0.5 * (low + high)) * (2.0 / (high - low))
    T, twice = [torch.ones_like(x), x], 2.0 * x
    for _ in range(curve.count_polynomials(S.dtype) - 2):
        T.append(twice * T[-1] - T[-2])
    return torch.stack(T)


def _sum_columns(T: Tensor, weights: Tensor) -> Tensor:
    """The weighted sums of each polynomial over the columns, ``(m, q)``, in float64: a product must not round to TF32."""
    return (T * weights).sum(dim=2).T.double()


def _combine(T: Tensor, factors: Tensor) -> Tensor:
    """The sum of the polynomials times one factor per row and polynomial, ``(m, n)``."""
    return (T * factors.T[:, :, None].to(T.dtype)).sum(dim=0)


def _coefficients(curve: Softplus, operation: str, q: int, like: Tensor) -> Tensor:
    """The coefficients ``(q, q)`` of an operation on the line, from its values at the nodes, without copies from the host."""
    (a, b, c), (low, high) = curve
    k = torch.arange(q, dtype=torch.float64, device=like.device)
    angles = (k + 0.5) * (math.pi / q)
    nodes = 0.5 * (low + high) + 0.5 * (high - low) * angles.cos()
    values = OPERATIONS[operation].compute(a * nodes[:, None] + b * nodes[None, :] + c)
    basis = (k[:, None] * angles).cos() * (2.0 / q)
    basis = torch.cat([0.5 * basis[:1], basis[1:]])
    coefficients: Tensor = basis @ values @ basis.T
    return coefficients
