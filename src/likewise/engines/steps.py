"""Sums of soft steps of similarity differences, ``Σ_j h(s_j − s_p)``, for many positives p, without enumerating triplets.

A step h is made of pieces; each is a line plus a multiple of ``σ(d / τ)``, such as those of Smooth-AP and SupAP.  Counts and
sums of lines follow from sorted rows.  For sigmoids, with ``z = e^{−|d| / τ}``, ``σ(−|d| / τ) = z / (1 + z)`` is a polynomial
of z without a constant term to within the rounding of the dtype, since its pole, z = −1, is far from [0, 1].  The sum of
``z^k`` over the references above (below) a positive is that of the next positive times a power, plus that of the references
between the two: ``O(n log n)`` for each anchor, however many positives it has.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

from likewise._compat import is_transformed
from likewise.engines.hinges import linear_in
from likewise.formula import NEGATIVES, Apply, Folded, Formula, Number, Rank, Sum, is_nonzero

MANY = 32
"""The number of positives from which sorting rows is faster than computing every triplet."""

AT_ONCE = {"cpu": 2**19, "cuda": 2**24}
"""The number of pairs whose powers are computed at once, by kind of device."""

TIE = "tie"
"""The break at the rounding of similarities: see `likewise.formula.is_nonzero`."""


class Piece(NamedTuple):
    """What a step is beyond a break: ``constant + slope · d + weight · σ(d / temperature)``."""

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
    changes: tuple[tuple[float | str, Piece], ...]

    def at(self, d: Tensor) -> Tensor:
        """The step of differences."""
        soft = torch.sigmoid(d / self.temperature)
        value = self.first.constant + self.first.slope * d + self.first.weight * soft
        for place, (constant, slope, weight) in self.changes:
            beyond = is_nonzero(d) & (d > 0.0) if place is TIE else d > float(place)
            value = value + torch.where(beyond, constant + slope * d + weight * soft, 0.0)
        return value


def match_step(folded: Folded) -> Step | None:
    """Match a sum over negatives, one for each positive, with a sum of soft steps; ``None`` if it is none.

    Examples:
        >>> from likewise.formula import add_up, sigmoid
        >>> match_step(add_up(sigmoid((s - s_p) / 0.5), NEGATIVES))
        Step(temperature=0.5, first=Piece(constant=0.0, slope=0.0, weight=1.0), changes=())
        >>> match_step(add_up(sigmoid(s + s_p), NEGATIVES)) is None
        True
    """
    if not isinstance(folded.fold, Sum) or folded.over is not NEGATIVES or folded.rank is not Rank.POSITIVE:
        return None
    reader = _Reader()
    reader.read(folded.curve, -math.inf)
    places: dict[float, float | str] = {0.0 if each is TIE else each: each for each in reader.breaks}
    if any(place < 0.0 for place in places) or len(places) < len(reader.breaks):
        return None
    ordered = sorted(places)
    inside = [-math.inf, *(low + 1e-9 for low in ordered)]  # a difference in each piece
    pieces = [reader.read(folded.curve, each) for each in inside]
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
        self.breaks: set[float | str] = set()
        self.scales: set[float] = set()

    def read(self, node: Formula, d: float) -> Piece | None:
        """The piece that holds at a difference of similarities; ``None`` if the curve is no step."""
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
        return None if None in found.values() else found[d > (0.0 if place is TIE else place)]


def _value(node: Formula) -> float | None:
    return float(node.value) if isinstance(node, Number) and not isinstance(node.value, Tensor) else None


def _threshold(condition: Formula) -> float | str | None:
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


def can_sum_steps(S: Tensor) -> bool:
    """Whether rows may be sorted here: not under transformations or a compiler, which see through plain operations only."""
    return not (is_transformed() or torch.compiler.is_compiling() or S.is_meta)


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
    chunks = zip(S.split(size), negative.split(size), index.split(size), strict=True)
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
        columns = index.gather(1, order)
        return at_negatives.to(S.dtype).scatter_add(1, columns, (-weights * derivative).to(S.dtype)), None, None, None


class _Sums:
    """Sums over the sorted negatives ``v`` of a row, ``(m, n)``, at the sorted points, ``(m, K)``."""

    def __init__(self, v: Tensor, points: Tensor, step: Step, dtype: torch.dtype) -> None:
        self.v, self.points, self.step = v.contiguous(), points.contiguous(), step
        self.coefficients = torch.tensor(polynomial(dtype), dtype=v.dtype, device=v.device)
        self.tie = 8.0 * torch.finfo(dtype).eps
        total = torch.nn.functional.pad(torch.where(v.isinf(), 0.0, v).cumsum(dim=1), (1, 0))
        self.below = self._powers(0.0, above=False)
        self.above = self._powers(0.0, above=True)
        self.beyond = []
        for place, change in step.changes:
            b = self.tie if place is TIE else float(place)
            position = torch.searchsorted(self.v, self.points + b, right=True)
            count = (v.shape[1] - position).to(v.dtype)
            powers = self._powers(b, above=True) if change.weight else None
            self.beyond.append((change, count, total[:, -1:] - total.gather(1, position), powers))
        self.count = (v.shape[1] - torch.searchsorted(self.v, self.points, right=True)).to(v.dtype)
        self.all = (~v.isinf()).sum(dim=1, keepdim=True).to(v.dtype), total[:, -1:]

    def _powers(self, b: float, *, above: bool) -> Tensor:
        """``Σ z^k``, ``(m, K, q)``, over the negatives with ``d > b`` (``d ≤ b``); z is one at ``d = b``, and times ``e^{−b/τ}``."""
        temperature, v, points = self.step.temperature, self.v, self.points + b
        K = points.shape[1]
        near = torch.searchsorted(points, v)  # the number of points below each negative
        inside = near > 0 if above else (near < K) & ~v.isinf()
        nearest = points.gather(1, (near - 1).clamp_min(0) if above else near.clamp_max(K - 1))
        z = torch.where(inside, torch.exp(-(v - nearest).abs() / temperature), 0.0)
        position = torch.searchsorted(v, points, right=True)
        sums, power = [], z
        first = math.exp(-b / temperature)
        terms = _count_terms(first, len(self.coefficients))
        for k in range(terms):
            power = z if k == 0 else power * z
            until = torch.nn.functional.pad(power.cumsum(dim=1), (1, 0)).gather(1, position)
            edge = power.sum(dim=1, keepdim=True) if above else torch.zeros_like(until[:, :1])
            between = torch.diff(until, dim=1, append=edge) if above else torch.diff(until, dim=1, prepend=edge)
            sums.append(between * first ** (k + 1))
        return _carry(torch.stack(sums, dim=2), points / temperature, backward=above)

    def value(self) -> Tensor:
        """The sums of the step."""
        first, c = self.step.first, self.coefficients
        count, total = self.all
        value = first.constant * count + first.slope * (total - self.points * count)
        if first.weight:
            value = value + first.weight * (self.count + (self.below - self.above) @ c)
        for change, beyond, above, powers in self.beyond:
            value = value + change.constant * beyond + change.slope * (above - self.points * beyond)
            if powers is not None:
                value = value + change.weight * (beyond - powers @ c[: powers.shape[2]])
        return value

    def derivative(self) -> Tensor:
        """The sums of the step's derivative."""
        first, c = self.step.first, _derivative_of(self.coefficients) / self.step.temperature
        value = first.slope * self.all[0] + first.weight * ((self.below + self.above) @ c)
        for change, beyond, _, powers in self.beyond:
            value = value + change.slope * beyond
            if powers is not None:
                value = value + change.weight * (powers @ c[: powers.shape[2]])
        return value


class _Weighted:
    """Sums over the sorted points of each row, with weights, at all its similarities."""

    def __init__(self, S: Tensor, points: Tensor, weights: Tensor, step: Step) -> None:
        self.S, self.points, self.weights, self.step = S.double().contiguous(), points.contiguous(), weights, step
        coefficients = torch.tensor(polynomial(S.dtype), dtype=points.dtype, device=points.device)
        self.coefficients = _derivative_of(coefficients) / step.temperature
        self.tie = 8.0 * torch.finfo(S.dtype).eps
        spread = weights[:, :, None].expand(-1, -1, len(coefficients)).contiguous()
        self.up = _carry(spread, points / step.temperature, backward=False)
        self.down = _carry(spread, points / step.temperature, backward=True)
        self.until = torch.nn.functional.pad(weights.cumsum(dim=1), (1, 0))

    def derivative(self) -> Tensor:
        """The sum over points p of ``weight · h'(s_j − s_p)``, ``(m, n)``."""
        first = self.step.first
        near = torch.searchsorted(self.points, self.S)
        value = first.slope * self.until[:, -1:].expand_as(self.S)
        if first.weight:
            value = value + first.weight * (self._above(near, 0.0) + self._below(near))
        for place, change in self.step.changes:
            b = self.tie if place is TIE else float(place)
            if change.slope or change.weight:
                near = torch.searchsorted(self.points + b, self.S)
                value = value + change.slope * self.until.gather(1, near)
                if change.weight:
                    value = value + change.weight * self._above(near, b)
        return value

    def _above(self, near: Tensor, b: float) -> Tensor:
        """Sigmoids' derivatives over the points below each similarity, by at least b."""
        terms = _count_terms(math.exp(-b / self.step.temperature), len(self.coefficients))
        return self._evaluate(self.up, (near - 1).clamp_min(0), near > 0, terms)

    def _below(self, near: Tensor) -> Tensor:
        K = self.points.shape[1]
        return self._evaluate(self.down, near.clamp_max(K - 1), near < K, len(self.coefficients))

    def _evaluate(self, powers: Tensor, at: Tensor, inside: Tensor, terms: int) -> Tensor:
        distance = (self.S - self.points.gather(1, at)).abs()
        z = torch.where(inside, torch.exp(-distance / self.step.temperature), 0.0)
        value = torch.zeros_like(z)
        for k in reversed(range(terms)):
            value = (value + self.coefficients[k] * powers[:, :, k].gather(1, at)) * z
        return value


def _carry(sums: Tensor, points: Tensor, *, backward: bool) -> Tensor:
    """Add to the powers of each point, ``(m, K, q)``, those of all points before (after) it, times the powers of their distance."""
    if backward:
        return _carry(sums.flip(1), -points.flip(1), backward=False).flip(1)
    degree = torch.arange(1, sums.shape[2] + 1, dtype=points.dtype, device=points.device)
    stride = 1
    while stride < points.shape[1]:
        decay = torch.exp((points[:, :-stride] - points[:, stride:])[:, :, None] * degree)
        sums = torch.cat([sums[:, :stride], sums[:, stride:] + sums[:, :-stride] * decay], dim=1)
        stride *= 2
    return sums


def _derivative_of(coefficients: Tensor) -> Tensor:
    """The coefficients of ``z · p'(z)``: the derivative of ``p(e^u)`` by u."""
    return coefficients * torch.arange(1, len(coefficients) + 1, dtype=coefficients.dtype, device=coefficients.device)


def _count_terms(largest: float, terms: int) -> int:
    """The number of terms that count where z is at most ``largest``."""
    if largest >= 1.0:
        return terms
    return max(1, min(terms, math.ceil(-40.0 / math.log(largest)))) if largest > 0.0 else 1


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
