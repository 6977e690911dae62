"""Sums of soft steps over the positives of an anchor, for each of them, by level of their pair numbers.

Hierarchical average precision compares every positive with every other one, and the summands depend on the relevance of
both.  Positives of one anchor that have the same numbers per pair are a *level*.  Within a pair of levels the curve is
a function of the difference of similarities only, so that `likewise.engines.steps` sums it in sorted rows:
``O(L K log K)`` for each anchor with K positives on L levels, instead of K² by enumeration.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from likewise.engines.hinges import linear_in
from likewise.engines.steps import Step, match_curve, sum_steps
from likewise.formula import (
    POSITIVES,
    Apply,
    AtPositive,
    Folded,
    Formula,
    Number,
    PerPair,
    Rank,
    Sum,
    evaluate,
    ingredients,
    s,
    s_p,
    substitute,
    walk,
)

MOST_LEVELS = 8
"""The number of levels up to which sorting them one after the other is tried."""


@dataclass(frozen=True, eq=False)
class Levels:
    """The levels of each anchor's candidates, from their numbers per pair.

    Args:
        of: the level of each candidate, ``(m, K)``; one that is not a positive is on level ``number``.
        number: the number of levels.
        values: for each number per pair its value on each level, ``(m, L)``.
        exist: which levels an anchor has, ``(m, L)``.
    """

    of: Tensor
    number: int
    values: dict[PerPair, Tensor]
    exist: Tensor

    @classmethod
    def find(cls, numbers: dict[PerPair, Tensor], keep: Tensor) -> Levels | None:
        """Group the candidates ``(m, K)`` that are kept by the order of their numbers; ``None`` if there are many levels."""
        of = torch.zeros_like(keep, dtype=torch.int64)
        for values in numbers.values():
            of = _rank(of * (keep.shape[1] + 1) + _rank(values))
        of = _rank(torch.where(keep, of, keep.shape[1] + 1))
        number = int(torch.where(keep, of, -1).max()) + 1
        if not 0 < number <= MOST_LEVELS:
            return None
        of = torch.where(keep, of, number)
        shape = (len(of), number + 1)
        table = {pair: values.new_zeros(shape).scatter_(1, of, values)[:, :number] for pair, values in numbers.items()}
        exist = torch.zeros(shape, dtype=torch.bool, device=of.device).scatter_(1, of, keep)[:, :number]
        return cls(of, number, table, exist)


def _rank(values: Tensor) -> Tensor:
    """The rank of each value among the distinct ones of its row, from 0."""
    ordered, order = values.sort(dim=1)
    new = torch.nn.functional.pad(ordered[:, 1:] > ordered[:, :-1], (1, 0))
    return torch.empty_like(order).scatter_(1, order, new.cumsum(dim=1))


def sum_positives(folded: Folded, known: dict[Formula, Any], positive: Tensor, index: Tensor) -> Tensor | None:
    """Sum over the positives of each anchor, for each candidate; ``None`` if it is not a sum of steps by level.

    Args:
        folded: the fold.
        known: the similarities and the numbers per pair, ``(m, n)`` each.
        positive: the positive pairs.
        index: the columns of the candidates, ``(m, K)``: all positives.

    Returns:
        The sums, ``(m, K)``.

    Examples:
        >>> from likewise.formula import add_up, sigmoid
        >>> S, positive = torch.tensor([[0.5, 0.7, 0.2]]), torch.tensor([[True, True, False]])
        >>> folded = add_up(sigmoid((s - s_p) / 0.1), POSITIVES)
        >>> sum_positives(folded, {s: S}, positive, torch.tensor([[0, 1]]))
        tensor([[1.3808, 0.6192]])
    """
    if not isinstance(folded.fold, Sum) or folded.over is not POSITIVES or folded.rank is not Rank.POSITIVE:
        return None
    pairs = set()
    for leaf in ingredients(folded.curve):
        if isinstance(leaf, AtPositive | PerPair):
            pairs.add(leaf.pair if isinstance(leaf, AtPositive) else leaf)
        elif leaf is not s and leaf is not s_p:
            return None
    if any(known[pair].requires_grad for pair in pairs):
        return None
    keep = positive.gather(1, index)
    ordered = sorted(pairs, key=repr)
    levels = Levels.find({pair: known[pair].expand_as(positive).gather(1, index) for pair in ordered}, keep)
    curves = None if levels is None else _curves_by_level(folded.curve, levels)
    if levels is None or curves is None:
        return None
    return _sum_levels(known[s].gather(1, index), levels, curves)


@dataclass(frozen=True, eq=False)
class Count:
    """A curve that has one value, ``(m, 1)`` or a number, where a similarity is below the positive's, and one elsewhere."""

    below: Any
    above: Any


def _sum_levels(S: Tensor, levels: Levels, curves: dict[tuple[int, int], Step | Count]) -> Tensor:
    """The sums at each candidate: over the levels of all positives with the curve of its level."""
    total = torch.zeros_like(S)
    every = torch.arange(S.shape[1], device=S.device).expand(S.shape)
    masks = [levels.of == level for level in range(levels.number)]
    counts: dict[int, Tensor] = {}
    for own, here in enumerate(masks):
        steps: dict[Step, Tensor] = {}
        for other, mask in enumerate(masks):
            curve = curves[other, own]
            if isinstance(curve, Step):
                steps[curve] = steps[curve] | mask if curve in steps else mask
                continue
            if other not in counts:
                counts[other] = _count_not_below(S, mask)
            value = curve.below * mask.sum(dim=1, keepdim=True) + (curve.above - curve.below) * counts[other]
            total = total + torch.where(here, value, 0.0).to(S.dtype)
        for step, mask in steps.items():
            total = total + torch.where(here, sum_steps(S, mask, every, step), 0.0)
    return total


def _count_not_below(S: Tensor, mask: Tensor) -> Tensor:
    """How many of the masked columns of a row are not below each of its columns, by more than a tie, ``(m, K)``."""
    exact = S.detach().double()
    ordered = exact.masked_fill(~mask, -torch.inf).sort(dim=1).values
    return S.shape[1] - torch.searchsorted(ordered, exact - 8.0 * torch.finfo(S.dtype).eps)


def _curves_by_level(curve: Formula, levels: Levels) -> dict[tuple[int, int], Step | Count] | None:
    """Return the curve for references of one level and positives of another."""
    found: dict[tuple[int, int], Step | Count] = {}
    for other in range(levels.number):
        for own in range(levels.number):
            known: dict[Formula, Any] = {}
            for pair, values in levels.values.items():
                known |= {pair: values[:, other, None], pair.at_positive: values[:, own, None]}
            plain = _choose_branches(curve, known, levels.exist[:, other] & levels.exist[:, own])
            match = None if plain is None else _match_count(plain, known) or match_curve(plain)
            if match is None:
                return None
            found[other, own] = match
    return found


def _choose_branches(curve: Formula, known: dict[Formula, Any], rows: Tensor) -> Formula | None:
    """Replace each ``where`` on numbers per pair by its branch; ``None`` if anchors have different ones."""
    chosen: dict[Formula, Formula] = {}
    for node in walk(curve):
        if not isinstance(node, Apply) or node.operation != "where":
            continue
        condition, then, otherwise = node.arguments
        if _depends_on_similarity(condition) or _depends_on_similarity(node) is False:
            continue
        holds = torch.as_tensor(evaluate(condition, known), device=rows.device).expand(len(rows), 1)[rows]
        if bool(holds.any()) and not bool(holds.all()):
            return None
        chosen[node] = substitute(then if bool(holds.any()) else otherwise, chosen)
    return substitute(curve, chosen)


def _depends_on_similarity(node: Formula) -> bool:
    return any(leaf is s or leaf is s_p for leaf in ingredients(node))


def _match_count(curve: Formula, known: dict[Formula, Any]) -> Count | None:
    """Match ``where(s is below s_p, a, b)`` with numbers a and b of a level."""
    if not (isinstance(curve, Apply) and curve.operation == "where"):
        return None
    condition, below, above = curve.arguments
    if not (isinstance(condition, Apply) and condition.operation == "both"):
        return None
    tie, less = condition.arguments
    is_tie = isinstance(tie, Apply) and tie.operation == "nonzero" and linear_in(tie.arguments[0]) == (1.0, -1.0, 0.0)
    if not is_tie or not (isinstance(less, Apply) and less.operation == "less"):
        return None
    low, high = less.arguments
    if linear_in(low) != (1.0, -1.0, 0.0) or not (isinstance(high, Number) and high.value == 0.0):
        return None
    if _depends_on_similarity(below) or _depends_on_similarity(above):
        return None
    return Count(evaluate(below, known), evaluate(above, known))
