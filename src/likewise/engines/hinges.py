"""Sums of hinges over all triplets of a batch, by counting instead of enumerating triplets.

Sorting each row gives the number of active triplets, ``s_an > s_ap − margin``, of every pair.  The sum of their hinges is
linear in the similarities with these numbers: ``O(B² log B)`` time without synchronizing, for any number of positives.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

from likewise._compat import is_transformed
from likewise.formula import NEGATIVES, Apply, Count, Folded, Formula, Number, Sum, s, s_p


class Hinge(NamedTuple):
    """A fold over all triplets that can be computed by counting.

    Args:
        what: the sum of hinges, the number of active triplets, or the number of triplets in the band.
        margin: of the hinge ``[s − s_p + margin]₊``.
        band: only triplets with ``s_p − band < s``; ``None``: all.
        below: only triplets with ``s < s_p``, where there is a band.
    """

    what: Literal["total", "active", "inside"]
    margin: float
    band: float | None
    below: bool = True


def match_hinge(folded: Folded) -> Hinge | None:
    """Match a fold over each positive with a sum or a count of hinges; ``None`` if it is neither.

    Examples:
        >>> from likewise.formula import per_triplet, relu, s, s_p
        >>> match_hinge(per_triplet(relu(s - (s_p - 0.1))).total)
        Hinge(what='total', margin=0.1, band=None, below=True)
    """
    inner = folded.curve
    if not isinstance(folded.fold, Sum) or not isinstance(inner, Folded) or inner.over is not NEGATIVES:
        return None
    if isinstance(inner.fold, Sum):
        return _match_value(inner.curve)
    if isinstance(inner.fold, Count):
        return _match_count(inner.curve)
    return None


def _match_value(curve: Formula) -> Hinge | None:
    """``[s − s_p + margin]₊``, or ``where(band, [s − s_p + margin]₊, 0)``."""
    band: tuple[float | None, bool] | None = (None, True)
    if isinstance(curve, Apply) and curve.operation == "where":
        condition, curve, otherwise = curve.arguments
        band = _match_band(condition) if _is_zero(otherwise) else None
    margin = _match_relu(curve)
    return None if margin is None or band is None else Hinge("total", margin, *band)


def _match_count(condition: Formula) -> Hinge | None:
    band: tuple[float | None, bool] | None = _match_band(condition)
    if band is not None:
        return Hinge("inside", 0.0, *band)
    band = (None, True)
    if isinstance(condition, Apply) and condition.operation == "both":
        band, condition = _match_band(condition.arguments[0]), condition.arguments[1]
    if band is None or not (isinstance(condition, Apply) and condition.operation == "less"):
        return None
    zero, value = condition.arguments
    margin = _match_relu(value)
    return None if margin is None or not _is_zero(zero) else Hinge("active", margin, *band)


def _match_relu(curve: Formula) -> float | None:
    if not (isinstance(curve, Apply) and curve.operation == "relu"):
        return None
    line = linear_in(curve.arguments[0])
    return line[2] if line is not None and line[:2] == (1.0, -1.0) else None


def _match_band(condition: Formula) -> tuple[float, bool] | None:
    """The width of ``s_p − band < s``, and whether ``s < s_p`` as well."""
    below = isinstance(condition, Apply) and condition.operation == "both"
    gaps = [_gap(each) for each in (condition.arguments if below else (condition,))]  # type: ignore[attr-defined]
    if gaps[0] is None or gaps[0][:2] != (1.0, -1.0) or (below and gaps[1] != (-1.0, 1.0, 0.0)):
        return None
    return gaps[0][2], below


def _gap(condition: Formula) -> tuple[float, float, float] | None:
    """``b − a`` of ``a < b``."""
    if not (isinstance(condition, Apply) and condition.operation == "less"):
        return None
    low, high = (linear_in(each) for each in condition.arguments)
    return None if low is None or high is None else (high[0] - low[0], high[1] - low[1], high[2] - low[2])


def linear_in(node: Formula) -> tuple[float, float, float] | None:
    """The coefficients of `s`, of `s_p` and the constant of a linear formula."""
    if node is s:
        return 1.0, 0.0, 0.0
    if node is s_p:
        return 0.0, 1.0, 0.0
    if isinstance(node, Number) and not isinstance(node.value, Tensor):
        return 0.0, 0.0, float(node.value)
    if not isinstance(node, Apply) or node.operation not in ("add", "sub", "neg"):
        return None
    parts = [linear_in(argument) for argument in node.arguments]
    if any(part is None for part in parts):
        return None
    first = parts[0] if len(parts) == 2 else (0.0, 0.0, 0.0)
    last, sign = parts[-1], 1.0 if node.operation == "add" else -1.0
    assert first is not None
    assert last is not None
    return first[0] + sign * last[0], first[1] + sign * last[1], first[2] + sign * last[2]


def _is_zero(node: Formula) -> bool:
    return isinstance(node, Number) and not isinstance(node.value, Tensor) and node.value == 0.0


def sum_hinges(
    S: Tensor, positive: Tensor, negative: Tensor, margin: float, band: float | None = None
) -> tuple[Tensor, Tensor]:
    """Per anchor the sum of ``[s_an − s_ap + margin]₊`` over its triplets, and the number of active ones.

    Args:
        S: similarities, ``(m, n)``.
        positive: the positive pairs.
        negative: the negative pairs.
        margin: the margin.
        band: only triplets with ``s_ap − band < s_an < s_ap``.

    Examples:
        >>> import torch
        >>> S, positive = torch.tensor([[1.0, 0.5, 0.75]]), torch.tensor([[False, True, False]])
        >>> sum_hinges(S, positive, torch.tensor([[False, False, True]]), margin=0.25)
        (tensor([0.5000]), tensor([1]))
    """
    if is_transformed():
        counts, active = count_active(S.detach(), positive, negative, margin, band)
        return _total(S, counts, active, margin), active
    total, active = _SumHinges.apply(S, positive, negative, margin, band)  # type: ignore[no-untyped-call]
    return total, active


class _SumHinges(torch.autograd.Function):
    """The sum over active triplets is ``Σ_j counts_j s_j + margin · active``; its derivative is the counts."""

    @staticmethod
    def forward(
        ctx: Any, S: Tensor, positive: Tensor, negative: Tensor, margin: float, band: float | None
    ) -> tuple[Tensor, Tensor]:
        counts, active = count_active(S, positive, negative, margin, band)
        ctx.save_for_backward(counts)
        ctx.mark_non_differentiable(active)
        return _total(S, counts, active, margin), active

    @staticmethod
    def backward(ctx: Any, grad_total: Tensor, _grad_active: Tensor) -> tuple[Tensor, None, None, None, None]:
        (counts,) = ctx.saved_tensors
        return grad_total[:, None] * counts, None, None, None, None


def _total(S: Tensor, counts: Tensor, active: Tensor, margin: float) -> Tensor:
    # large sums nearly cancel: float64 keeps the difference and does not become negative
    total = (counts.double() * S.double()).sum(dim=1) + margin * active.double()
    # the last step makes a new tensor: torch 2.11's compiler loses the gradient of a result that is an alias
    return total.to(S.dtype).clamp_min(0.0)


def count_active(
    S: Tensor, positive: Tensor, negative: Tensor, margin: float, band: float | None = None
) -> tuple[Tensor, Tensor]:
    """The number of active triplets of each pair (negated for positives), and of each anchor."""
    width = margin if band is None else min(margin, band)
    of_positives, of_negatives = count_within(S, positive, negative, width, below=band is not None)
    return (of_negatives - of_positives).to(S.dtype), of_positives.sum(dim=1)


def count_within(
    S: Tensor, positive: Tensor, negative: Tensor, width: float, *, below: bool = False
) -> tuple[Tensor, Tensor]:
    """The number of triplets with ``s_ap − width < s_an`` of each pair: as their positive, as their negative.

    The negatives and the positives' thresholds of each row are sorted; bisection locates each pair among the others.  A
    negative *at* a threshold is not above it.

    Args:
        S: similarities, ``(m, n)``.
        positive: the positive pairs.
        negative: the negative pairs.
        width: how far below the positive a negative may be.
        below: count only triplets with ``s_an < s_ap``.

    Examples:
        >>> import torch
        >>> S, positive = torch.tensor([[1.0, 0.5, 0.4]]), torch.tensor([[False, True, False]])
        >>> count_within(S, positive, torch.tensor([[False, False, True]]), 0.2)
        (tensor([[0, 1, 0]]), tensor([[0, 0, 1]]))
    """
    S = S.contiguous()
    n = S.shape[1]
    threshold = S - width
    negatives = S.masked_fill(~negative, -torch.inf).sort(dim=1).values
    thresholds = threshold.masked_fill(~positive, torch.inf).sort(dim=1).values
    of_positives = n - torch.searchsorted(negatives, threshold, right=True)
    of_negatives = torch.searchsorted(thresholds, S)
    if below:
        positives = S.masked_fill(~positive, torch.inf).sort(dim=1).values
        of_positives = (of_positives - n + torch.searchsorted(negatives, S)).clamp_min(0)
        of_negatives = (of_negatives - torch.searchsorted(positives, S, right=True)).clamp_min(0)
    return of_positives * positive, of_negatives * negative
