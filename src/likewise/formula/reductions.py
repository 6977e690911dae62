"""Reductions: how the units of a loss become one number, or one number per anchor.

A *unit* is what a paper averages over: an anchor, a pair, a triplet.  A computed term has, per anchor, the sum over its
units and their number.  Every reduction to one number is a ratio of two sums over anchors, so its result does not depend on
which rank or chunk holds an anchor.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

import torch
from torch import Tensor

from likewise._compat import is_transformed
from likewise.distributed import SINGLE_PROCESS, ProcessGroup
from likewise.formula.batch import PairBatch
from likewise.formula.checks import can_read_values, one_of
from likewise.formula.expressions import Formula
from likewise.formula.inputs import class_values


@dataclass(frozen=True, eq=False)
class ClassWeighted:
    """The mean over units, each multiplied by the weight of its anchor's class.

    Args:
        weights: one nonnegative number per class: a tensor ``(num_classes,)`` or a sequence.  A tensor on the device of
            the embeddings is not copied at every call.
        normalize: divide by the sum of the units' weights, as `torch.nn.CrossEntropyLoss` does; by default by the number of
            units.

    Examples:
        >>> import torch
        >>> from likewise.losses import SoftmaxLoss
        >>> loss = SoftmaxLoss(2, 4, reduction=ClassWeighted([1.0, 3.0]))
        >>> loss(torch.zeros(2, 4), torch.tensor([0, 1])).detach() / torch.tensor(2.0).log()
        tensor(2.)
    """

    weights: Tensor | Sequence[float]
    normalize: bool = False

    def __post_init__(self) -> None:
        weights = torch.as_tensor(self.weights).detach()
        weights = weights if weights.is_floating_point() else weights.float()
        if weights.ndim != 1 or not len(weights):
            raise ValueError(f"weights must be one number per class, but their shape is {tuple(weights.shape)}")
        if can_read_values(weights) and not bool(((weights >= 0.0) & weights.isfinite()).all()):
            raise ValueError(f"weights must be finite and zero at least, but one of them is {_offending(weights)}")
        object.__setattr__(self, "weights", weights)

    def of_anchors(self, batch: PairBatch) -> Tensor:
        """The weight of each anchor, ``(m,)``."""
        assert isinstance(self.weights, Tensor)
        weights = self.weights.to(device=batch.relation.device, dtype=batch.dtype)
        return class_values(weights, batch, "weight")

    def __repr__(self) -> str:
        return f"ClassWeighted(({len(self.weights)} weights){', normalize=True' if self.normalize else ''})"


def _offending(weights: Tensor) -> float:
    return float(weights[~((weights >= 0.0) & weights.isfinite())][0])


@dataclass(frozen=True)
class Thresholded:
    """The mean over the units whose value lies between two thresholds; zero if there is none.

    Units at a threshold are excluded.  ``low`` excludes easy units, ``high`` excludes outliers;
    ``Thresholded(low=0.0)`` equals ``"nonzero"`` for a loss that is never negative.  The loss must be declared in
    formulas.

    Args:
        low: a unit counts if its value is above; ``None``: no limit.
        high: a unit counts if its value is below; ``None``: no limit.

    Examples:
        >>> import torch
        >>> from likewise.losses import ContrastiveLoss
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> ContrastiveLoss(reduction=Thresholded(high=0.45))(embeddings, torch.tensor([0, 0, 1]))
        tensor(0.3000)
    """

    low: float | None = None
    high: float | None = None

    def __post_init__(self) -> None:
        for name, value in (("low", self.low), ("high", self.high)):
            if value is not None and (not isinstance(value, int | float) or math.isnan(value)):
                raise TypeError(f"{name} must be a number or None, but it is {value!r}")
        if self.low is None and self.high is None:
            raise ValueError("low or high must be a number, but both are None")
        if self.low is not None and self.high is not None and not self.low < self.high:
            raise ValueError(f"low must be below high, {self.high:g}, but it is {self.low:g}")

    def contains(self, value: Formula) -> Formula:
        """The condition that a value lies between the thresholds."""
        conditions = []
        if self.low is not None:
            conditions.append(value > float(self.low))
        if self.high is not None:
            conditions.append(value < float(self.high))
        return conditions[0] if len(conditions) == 1 else conditions[0] & conditions[1]


Counted: TypeAlias = Literal["mean", "nonzero", "sum", "none"]
"""The reductions that engines know: they say which count a term needs."""

Reduction: TypeAlias = Literal["mean", "nonzero", "sum", "none", "mean_per_anchor"] | ClassWeighted | Thresholded

REDUCTIONS: tuple[str, ...] = ("mean", "nonzero", "sum", "none", "mean_per_anchor")


def check_reduction(reduction: object) -> None:
    """Check the option ``reduction`` of a loss.

    Examples:
        >>> check_reduction("median")
        Traceback (most recent call last):
        ...
        ValueError: reduction must be one of 'mean', 'nonzero', 'sum', 'none', 'mean_per_anchor' or an object, ClassWeighted or Thresholded, but it is 'median'
    """
    if not isinstance(reduction, ClassWeighted | Thresholded):
        one_of("reduction", reduction, REDUCTIONS, "or an object, ClassWeighted or Thresholded")


def counted_by(reduction: Reduction) -> Counted:
    """Return the plain reduction that needs the same count of units as a reduction.

    Examples:
        >>> counted_by("mean_per_anchor"), counted_by("sum")
        ('mean', 'sum')
    """
    if reduction == "nonzero" or reduction == "sum" or reduction == "none":
        return reduction
    return "mean"


class TermValues(NamedTuple):
    """A computed `Term`: tensors with one entry per anchor; a count that the reduction does not need may be ``None``.

    Examples:
        >>> import torch
        >>> one = torch.ones(2)
        >>> reduce([TermValues(total=2 * one, units=one, nonzero=one)], [], "mean")
        tensor(2.)
    """

    total: Tensor
    units: Tensor | None
    nonzero: Tensor | None


_ROOM = 2.0**-20
"""A factor that keeps the sum over a million anchors finite if the mean is; a power of two, which is exact."""


def reduce(
    values: list[TermValues],
    regularizers: list[Tensor],
    reduction: Reduction,
    group: ProcessGroup = SINGLE_PROCESS,
    weights: Tensor | None = None,
) -> Tensor:
    """Reduce terms to the loss: ``Σ total / Σ units`` or another reduction, each term separately.

    Args:
        values: the terms; under `Thresholded` those of the units between the thresholds.
        regularizers: numbers added to the scalar, or divided equally among the anchors.
        reduction: ``"mean"`` over units, ``"nonzero"`` over units that are not zero, ``"sum"``; ``"none"``: one value per
            anchor, the sum over its units; ``"mean_per_anchor"``: one value per anchor, their mean; or an object.
        group: the processes that the anchors are distributed over.
        weights: one number per anchor, under `ClassWeighted`.

    Examples:
        >>> import torch
        >>> term = TermValues(torch.tensor([3.0, 0.0]), torch.tensor([2.0, 1.0]), torch.tensor([1.0, 0.0]))
        >>> reduce([term], [], "mean"), reduce([term], [], "nonzero"), reduce([term], [], "none")
        (tensor(1.), tensor(3.), tensor([3., 0.]))
    """
    if reduction == "none" or reduction == "mean_per_anchor":
        rows = [term.total if reduction == "none" else _ratio(term.total, _count(term, "mean")) for term in values]
        return _add(rows + [equal_share(number, rows[0], group) for number in regularizers])
    counted = counted_by(reduction)
    counts = [] if counted == "sum" else [_count(term, counted) for term in values]
    totals = [term.total for term in values]
    if weights is not None:
        totals = [weights * total for total in totals]
        if isinstance(reduction, ClassWeighted) and reduction.normalize:
            counts = [weights * count for count in counts]
    room = 1.0 if counted == "sum" else _ROOM
    sums = group.totals([(total * room).sum() for total in totals] + [count.sum() for count in counts])
    totals, counts = sums[: len(values)], sums[len(values) :]
    if counts and weights is None:
        totals = [total / _scale_count(count, total.dtype) for total, count in zip(totals, counts, strict=True)]
    elif counts:
        totals = [_ratio(total, count) / room for total, count in zip(totals, counts, strict=True)]
    return _add(totals + regularizers)


def _scale_count(count: Tensor, dtype: torch.dtype) -> Tensor | float:
    """Return the number of units, at least one, times `_ROOM`, which is exact; a number where values may be read."""
    if can_read_values(count) and not count.requires_grad and not is_transformed() and not torch.jit.is_tracing():  # type: ignore[attr-defined, no-untyped-call]
        return max(count.item(), 1) * _ROOM
    return count.clamp_min(1).to(dtype) * _ROOM


def _count(term: TermValues, counted: Counted) -> Tensor:
    count = term.units if counted == "mean" else term.nonzero
    assert count is not None, "a term has the count that the reduction needs"
    return count


def _ratio(total: Tensor, count: Tensor) -> Tensor:
    """Return the mean; for a count of zero the total, which is zero or a share of a unit of another anchor."""
    return total / torch.where(count > 0, count, 1)


def equal_share(number: Tensor, anchors: Tensor, group: ProcessGroup) -> Tensor:
    """Return a number divided by the number of anchors on all ranks.

    Examples:
        >>> import torch
        >>> equal_share(torch.tensor(6.0), torch.zeros(3), SINGLE_PROCESS)
        tensor(2.)
    """
    if group is SINGLE_PROCESS:
        return number / len(anchors)
    return number / group.total(number.new_tensor(float(len(anchors))))


def _add(terms: list[Tensor]) -> Tensor:
    result = terms[0]
    for term in terms[1:]:
        result = result + term
    return result
