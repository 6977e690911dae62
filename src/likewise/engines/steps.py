"""Sums of soft steps of similarity differences, ``Σ_j h(s_j − s_p)``, for many positives p, without enumerating triplets.

A step h is made of pieces; each is a line plus a multiple of ``σ(d / τ)``, such as those of Smooth-AP and SupAP.  Counts and
sums of lines follow from sorted rows.  For sigmoids, with ``z = e^{−|d| / τ}``, ``σ(−|d| / τ) = z / (1 + z)`` is a polynomial
of z without a constant term to within the rounding of the dtype, since its pole, z = −1, is far from [0, 1].  The sum of
``z^k`` over the references above (below) a positive is that of the next positive times a power, plus that of the references
between the two: ``O(n log n)`` for each anchor, for any number of positives.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import Enum, auto
from functools import lru_cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

from likewise.engines.hinges import linear_in
from likewise.formula import NEGATIVES, Apply, Folded, Formula, Number, Rank, Sum, is_nonzero

MANY = 32
"""The number of positives from which sorting rows is faster than computing every triplet."""

AT_ONCE = {"cpu": 2**19, "cuda": 2**22}
"""The number of pairs whose powers are computed at once, by kind of device."""


class Break(Enum):
    """A break of a step that is not a number."""

    TIE = auto()
    """The rounding of similarities: see `likewise.formula.is_nonzero`."""


TIE = Break.TIE


class Piece(NamedTuple):
    """A piece of a step, beyond a break: ``constant + slope · d + weight · σ(d / temperature)``."""

    constant: float = 0.0
    slope: float = 0.0
    weight: float = 0.0

    def plus(self, other: Piece, factor: float = 1.0) -> Piece:
        """The sum of this piece and a multiple of another."""
        return Piece(*(a + factor * b for a, b in zip(self, other, strict=True)))


class Step(NamedTuple):
    """A step: its first piece, and by how much it changes at each break, where ``d`` is larger."""

    temperature: float
    first: Piece
    changes: tuple[tuple[float | Break, Piece], ...]

    def at(self, d: Tensor) -> Tensor:
        """The step of differences."""
        soft = torch.sigmoid(d / self.temperature)
        value = self.first.constant + self.first.slope * d + self.first.weight * soft
        for place, (constant, slope, weight) in self.changes:
            beyond = is_nonzero(d) & (d > 0.0) if isinstance(place, Break) else d > place
            value = value + torch.where(beyond, constant + slope * d + weight * soft, 0.0)
        return value


def match_step(folded: Folded) -> Step | None:
    """Match a sum over negatives, one for each positive, with a sum of soft steps; ``None`` if it does not match.

    Examples:
        >>> from likewise.formula import add_up, s, s_p, sigmoid
        >>> match_step(add_up(sigmoid((s - s_p) / 0.5), NEGATIVES))
        Step(temperature=0.5, first=Piece(constant=0.0, slope=0.0, weight=1.0), changes=())
        >>> match_step(add_up(sigmoid(s + s_p), NEGATIVES)) is None
        True
    """
    if not isinstance(folded.fold, Sum) or folded.over is not NEGATIVES or folded.rank is not Rank.POSITIVE:
        return None
    return match_curve(folded.curve)


def match_curve(curve: Formula) -> Step | None:
    """Match a curve of `s` and `s_p` with a soft step of their difference; ``None`` if it does not match.

    Examples:
        >>> from likewise.formula import s, s_p, sigmoid
        >>> match_curve(0.5 * sigmoid((s - s_p) / 0.5)).first
        Piece(constant=0.0, slope=0.0, weight=0.5)
    """
    reader = _Reader()
    reader.read(curve, -math.inf)
    places: dict[float, float | Break] = {_number(each): each for each in reader.breaks}
    if any(place < 0.0 for place in places) or len(places) < len(reader.breaks):
        return None
    ordered = sorted(places)
    inside = [-math.inf, *(low + 1e-9 for low in ordered)]  # a difference in each piece
    pieces = [reader.read(curve, each) for each in inside]
    if None in pieces or len(reader.scales) != 1 or not min(reader.scales) > 0.0:
        return None
    known = [piece for piece in pieces if piece is not None]
    changes = tuple(
        (places[low], new.plus(old, -1.0)) for low, old, new in zip(ordered, known, known[1:], strict=False)
    )
    return Step(1.0 / next(iter(reader.scales)), known[0], changes)


class _Reader:
    """Reads the piece of a curve at a difference; collects breaks and temperatures on the way."""

    def __init__(self) -> None:
        self.breaks: set[float | Break] = set()
        self.scales: set[float] = set()

    def read(self, node: Formula, d: float) -> Piece | None:
        """Return the piece at a difference of similarities; ``None`` if the curve is not a step."""
        line = linear_in(node)
        if line is not None:
            return Piece(line[2], line[0]) if line[0] == -line[1] else None
        if not isinstance(node, Apply):
            return None
        if node.operation == "sigmoid":
            line = self._scaled(node.arguments[0], d)
            if line is None or line.constant or line.weight:
                return None
            self.scales.add(line.slope)
            return Piece(weight=1.0)
        if node.operation == "where":
            return self._choose(node, d)
        return self._scaled(node, d)

    def _scaled(self, node: Formula, d: float) -> Piece | None:
        """Sums, and products with numbers."""
        if not isinstance(node, Apply) or node.operation not in ("add", "sub", "mul", "div"):
            return self.read(node, d) if linear_in(node) is not None else None
        left, right = node.arguments
        if node.operation in ("add", "sub"):
            first, second = self.read(left, d), self.read(right, d)
            if first is None or second is None:
                return None
            return first.plus(second, 1.0 if node.operation == "add" else -1.0)
        if node.operation == "mul" and _value(left) is not None:
            left, right = right, left
        factor, piece = _value(right), self.read(left, d)
        if factor is None or piece is None or (node.operation == "div" and not factor):
            return None
        return Piece().plus(piece, factor if node.operation == "mul" else 1.0 / factor)

    def _choose(self, node: Apply, d: float) -> Piece | None:
        condition, above, below = node.arguments
        place = _threshold(condition)
        if place is None:
            return None
        self.breaks.add(place)
        found = {where: self.read(each, d) for where, each in ((True, above), (False, below))}  # breaks of both
        return None if None in found.values() else found[d > _number(place)]


def _number(place: float | Break) -> float:
    """Return a break as a number; the dtype determines how far from zero values tie."""
    return 0.0 if isinstance(place, Break) else place


def _value(node: Formula) -> float | None:
    return float(node.value) if isinstance(node, Number) and not isinstance(node.value, Tensor) else None


def _threshold(condition: Formula) -> float | Break | None:
    """The break b of ``b < d``; ``TIE`` if ties do not count as larger."""
    if not isinstance(condition, Apply) or condition.operation not in ("less", "both"):
        return None
    if condition.operation == "both":
        first, second = condition.arguments
        ties = isinstance(first, Apply) and first.operation == "nonzero" and linear_in(first.arguments[0])
        return TIE if ties == (1.0, -1.0, 0.0) and _threshold(second) == 0.0 else None
    low, high = (linear_in(each) for each in condition.arguments)
    if low is None or high is None or (high[0] - low[0], high[1] - low[1]) != (1.0, -1.0):
        return None
    return low[2] - high[2]


def sum_steps(S: Tensor, negative: Tensor, index: Tensor, step: Step) -> Tensor:
    """``Σ_j h(s_j − s_p)`` over the negatives of each anchor, for some of its references p.

    Args:
        S: similarities, ``(m, n)``.
        negative: the negative pairs.
        index: the columns of the references p, ``(m, K)``.
        step: the step h.

    Returns:
        The sums, ``(m, K)``.  A second derivative enumerates all triplets.

    Examples:
        >>> S, negative = torch.tensor([[0.5, 0.7, 0.2]]), torch.tensor([[False, True, True]])
        >>> sum_steps(S, negative, torch.tensor([[0]]), Step(0.1, Piece(weight=1.0), ()))
        tensor([[0.9282]])
    """
    size = max(AT_ONCE.get(S.device.type, AT_ONCE["cuda"]) // max(S.shape[1], 1), 1)
    chunks = zip(*(torch.split(each, size) for each in (S, negative, index)), strict=True)
    sums = [_SumSteps.apply(*chunk, step) for chunk in chunks]  # type: ignore[no-untyped-call]
    return torch.cat(sums) if sums else S.new_zeros(index.shape)


class _SumSteps(torch.autograd.Function):
    """Values, and the derivative by each positive, from the sorted negatives; the derivative by each negative, from the positives."""

    @staticmethod
    def forward(ctx: Any, S: Tensor, negative: Tensor, index: Tensor, step: Step) -> Tensor:
        points, order = S.gather(1, index).double().sort(dim=1)
        sums = _Sums(S.masked_fill(~negative, -torch.inf).sort(dim=1).values.double(), points, step, S.dtype)
        back = order.argsort(dim=1)
        ctx.save_for_backward(S, negative, index, points, order, sums.derivative())
        ctx.step = step
        return sums.value().gather(1, back).to(S.dtype)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
        S, negative, index, points, order, derivative = ctx.saved_tensors
        if torch.is_grad_enabled():
            values = ctx.step.at(S[:, None, :] - S.gather(1, index)[:, :, None]) * negative[:, None, :]
            (of_sums,) = torch.autograd.grad((values.sum(dim=2) * grad).sum(), S, create_graph=True)
            return of_sums, None, None, None
        weights = grad.gather(1, order).double()
        at_negatives = _Weighted(S, points, weights, ctx.step).derivative() * negative
        # in float64: where p is one of the references, the two derivatives by its similarity cancel
        return at_negatives.scatter_add_(1, index.gather(1, order), -weights * derivative).to(S.dtype), None, None, None


class _Sums:
    """Sums over the sorted negatives ``v`` of a row, ``(m, n)``, at the sorted points, ``(m, K)``."""

    def __init__(self, v: Tensor, points: Tensor, step: Step, dtype: torch.dtype) -> None:
        self.v, self.points, self.step, self.dtype = v.contiguous(), points.contiguous(), step, dtype
        self.finite = ~v.isinf()
        self.coefficients = polynomial(dtype)
        self.until = torch.where(self.finite, v, 0.0).cumsum(dim=1)  # the sum of the negatives up to each
        self.all = self.finite.sum(dim=1, keepdim=True).to(v.dtype), self.until[:, -1:]
        self.count, self.below, self.above = self._find(0.0, below=True)
        self.beyond = []
        for place, change in step.changes:
            b = 8.0 * torch.finfo(dtype).eps if isinstance(place, Break) else place
            position = torch.searchsorted(self.v, self.points + b, right=True)
            count = (v.shape[1] - position).to(v.dtype)
            powers = self._find(b)[2] if change.weight else None
            self.beyond.append((change, count, self.all[1] - _gather_until(self.until, position), powers))

    def _find(self, b: float, *, below: bool = False) -> tuple[Tensor, Tensor | None, Tensor]:
        """The number of negatives with ``d > b``, and ``Σ z^k``, ``(q, m, K)``, over those with ``d ≤ b`` and ``d > b``."""
        points, K = self.points + b, self.points.shape[1]
        near = torch.searchsorted(points, self.v)  # the number of points below each negative
        position = torch.searchsorted(self.v, points, right=True)
        count = (self.v.shape[1] - position).to(self.v.dtype)
        terms = _count_terms(b / self.step.temperature, self.dtype)
        up = self._powers(points, near.clamp_max(K - 1), (near < K) & self.finite, position, terms) if below else None
        down = self._powers(points, (near - 1).clamp_min(0), near > 0, position, terms, above=True)
        scale = torch.exp(-b / self.step.temperature * _degrees(down))
        return count, up, down * scale

    def _powers(
        self, points: Tensor, at: Tensor, inside: Tensor, position: Tensor, terms: int, *, above: bool = False
    ) -> Tensor:
        """``Σ z^k`` over the negatives on one side of each point, from those between it and the next point."""
        distance = (self.v - points.gather(1, at)).abs()
        z = torch.where(inside, torch.exp(distance / -self.step.temperature), 0.0)
        sums, power = [], z
        for k in range(terms):
            power = power * z if k else z
            total = power.cumsum(dim=1)
            until = _gather_until(total, position)
            if above:
                sums.append(torch.diff(until, dim=1, append=total[:, -1:]))
            else:
                sums.append(torch.diff(until, dim=1, prepend=torch.zeros_like(until[:, :1])))
        return _carry(torch.stack(sums), points / self.step.temperature, backward=above)

    def value(self) -> Tensor:
        """The sums of the step."""
        first, (count, total), points = self.step.first, self.all, self.points
        value = first.constant * count + first.slope * (total - points * count)
        if first.weight:
            assert self.below is not None
            value = value + first.weight * (self.count + _combine(self.coefficients, self.below - self.above))
        for change, beyond, above, powers in self.beyond:
            value = value + change.constant * beyond + change.slope * (above - points * beyond)
            if powers is not None:
                value = value + change.weight * (beyond - _combine(self.coefficients, powers))
        return value

    def derivative(self) -> Tensor:
        """The sums of the step's derivative."""
        first, coefficients = self.step.first, _derivative_of(self.coefficients, self.step.temperature)
        assert self.below is not None
        value = first.slope * self.all[0] + first.weight * _combine(coefficients, self.below + self.above)
        for change, beyond, _, powers in self.beyond:
            value = value + change.slope * beyond
            if powers is not None:
                value = value + change.weight * _combine(coefficients, powers)
        return value


class _Weighted:
    """Sums over the sorted points of each row, with weights, at all its similarities."""

    def __init__(self, S: Tensor, points: Tensor, weights: Tensor, step: Step) -> None:
        self.S, self.points, self.step, self.dtype = S.double().contiguous(), points.contiguous(), step, S.dtype
        self.coefficients = _derivative_of(polynomial(S.dtype), step.temperature)
        spread = weights.expand(len(self.coefficients), *weights.shape)
        self.up = _carry(spread.clone(), points / step.temperature)
        self.down = _carry(spread.clone(), points / step.temperature, backward=True)
        self.until = torch.nn.functional.pad(weights.cumsum(dim=1), (1, 0))

    def derivative(self) -> Tensor:
        """The sum over points p of ``weight · h'(s_j − s_p)``, ``(m, n)``."""
        first, K = self.step.first, self.points.shape[1]
        near = torch.searchsorted(self.points, self.S)
        value = first.slope * self.until[:, -1:].expand_as(self.S)
        if first.weight:
            terms = len(self.coefficients)
            below = self._evaluate(self.down, near.clamp_max(K - 1), near < K, terms)
            value = value + first.weight * (self._evaluate(self.up, (near - 1).clamp_min(0), near > 0, terms) + below)
        for place, change in self.step.changes:
            b = 8.0 * torch.finfo(self.dtype).eps if isinstance(place, Break) else place
            if change.slope or change.weight:
                near = torch.searchsorted(self.points + b, self.S)
                value = value + change.slope * self.until.gather(1, near)
            if change.weight:
                terms = _count_terms(b / self.step.temperature, self.dtype)
                value = value + change.weight * self._evaluate(self.up, (near - 1).clamp_min(0), near > 0, terms)
        return value

    def _evaluate(self, powers: Tensor, at: Tensor, inside: Tensor, terms: int) -> Tensor:
        distance = (self.S - self.points.gather(1, at)).abs()
        z = torch.where(inside, torch.exp(distance / -self.step.temperature), 0.0)
        value = torch.zeros_like(z)
        for k in reversed(range(terms)):
            value = torch.add(powers[k].gather(1, at).mul_(self.coefficients[k]), value).mul_(z)
        return value


def _gather_until(total: Tensor, position: Tensor) -> Tensor:
    """Cumulated sums of as many entries as ``position`` says."""
    return torch.where(position > 0, total.gather(1, (position - 1).clamp_min(0)), 0.0)


def _carry(sums: Tensor, points: Tensor, *, backward: bool = False) -> Tensor:
    """Add to the powers of each point, ``(q, m, K)``, those of all points before (after) it, times the powers of their distance.

    In place, over distances that double: afterwards each point has those of as many points as the distance says.
    """
    stride, degrees = 1, _degrees(sums)
    while stride < points.shape[1]:
        decays = ((points[:, :-stride] - points[:, stride:]) * degrees).exp_()
        early, late = sums[:, :, :-stride], sums[:, :, stride:]
        if backward:
            early += decays.mul_(late)
        else:
            late += decays.mul_(early)
        stride *= 2
    return sums


def _combine(coefficients: Sequence[float], powers: Tensor) -> Tensor:
    """The polynomial of sums of powers; the coefficients stay on the host, so that a CUDA graph can capture it."""
    value = coefficients[0] * powers[0]
    for coefficient, power in zip(coefficients[1 : len(powers)], powers[1:], strict=True):
        value.add_(power, alpha=coefficient)
    return value


def _degrees(powers: Tensor) -> Tensor:
    return torch.arange(1, len(powers) + 1, dtype=powers.dtype, device=powers.device)[:, None, None]


def _derivative_of(coefficients: Sequence[float], temperature: float) -> tuple[float, ...]:
    """The coefficients of ``z p'(z) / τ``: the derivative of ``p(e^{d/τ})`` by d."""
    return tuple(k * each / temperature for k, each in enumerate(coefficients, 1))


def _count_terms(distance: float, dtype: torch.dtype) -> int:
    """The number of terms that count where ``z ≤ e^{−distance}``."""
    enough = (4.0 - math.log(torch.finfo(dtype).eps)) / distance if distance > 0.0 else math.inf
    return max(1, math.ceil(min(enough, len(polynomial(dtype)))))


@lru_cache
def polynomial(dtype: torch.dtype) -> tuple[float, ...]:
    """The coefficients of ``z, z², …`` in a polynomial that is ``z / (1 + z)`` on [0, 1] to within the dtype's rounding.

    Chebyshev's series of ``1 / (1 + z)``, whose terms shrink by ``3 + √8`` each.

    Examples:
        >>> p = polynomial(torch.float32)
        >>> abs(sum(p) - 0.5) < 1e-9, abs(sum(c * 0.25 ** (k + 1) for k, c in enumerate(p)) - 0.2) < 1e-9
        (True, True)
    """
    terms = math.ceil(-math.log(torch.finfo(dtype).eps) / math.log(3.0 + math.sqrt(8.0))) + 2
    ratio = math.sqrt(8.0) - 3.0
    # 1 / (3 + t) on [−1, 1] with t = 2 z − 1, times two
    series = [2.0 / math.sqrt(8.0) * (1.0 if k == 0 else 2.0) * ratio**k for k in range(terms)]
    before, now = [1.0], [-1.0, 2.0]  # T₀ and T₁ of 2 z − 1
    total = [0.0] * terms
    for each in series:
        total = [a + each * b for a, b in zip(total, before + [0.0] * (terms - len(before)), strict=True)]
        shifted = [2.0 * (2.0 * a - b) for a, b in zip([0.0, *now], [*now, 0.0], strict=True)]
        before, now = now, [a - b for a, b in zip(shifted, before + [0.0] * (len(shifted) - len(before)), strict=True)]
    return tuple(total)
