"""Folds over each positive of an anchor.

A fold over each positive (`likewise.formula.EACH_POSITIVE`) is computed in one of three ways:

* few positives with known positions: `likewise.engines.few_positives` turns the fold of each positive into a plain fold;
* sums of hinges ``[s − s_p + margin]₊``: `likewise.engines.hinges` counts active triplets in sorted rows;
* everything else: `fold_each_positive` computes chunks of positives; sums of a smooth curve are expanded in polynomials
  (`likewise.engines.expansions`), and those of many soft steps follow from sorted rows (`likewise.engines.steps`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any, NamedTuple

import torch
from torch import Tensor

from likewise._compat import is_transformed
from likewise.engines.expansions import match_smooth, sum_smooth
from likewise.engines.positive_steps import sum_positives
from likewise.engines.recompute import call_recomputed
from likewise.engines.steps import MANY, match_step, sum_steps
from likewise.engines.synchronization import can_synchronize
from likewise.formula import (
    NEGATIVES,
    POSITIVES,
    Apply,
    AtPositive,
    Count,
    Folded,
    Formula,
    PerTriplet,
    PositiveIndex,
    Rank,
    evaluate,
    s,
    s_p,
    walk,
)

TRIPLETS_AT_ONCE = {"cpu": 2**20, "cuda": 2**25}
"""The number of triplets that are computed at once, by kind of device."""

ENUMERATE_UP_TO = {"cpu": 0, "cuda": 2**22}
"""The number of triplets, positives × references, up to which all are computed for any number of positives.

On a GPU, sorting rows takes many kernel launches, and computing this few triplets takes only a few.
"""

COUNT_FROM = 2**25
"""The number of triplets, anchors × references², from which reading the number of positives from a device pays off.

Measured on an H200: enumerating all triplets of a batch of 512 takes 7.5 ms without that number and 3 ms with it.
"""


class MaskedMatrix(NamedTuple):
    """The matrix and its masks, ``(m, n)`` each, with the numbers that formulas refer to, broadcast to it.

    Args:
        known: the similarities, and the numbers that formulas refer to.
        positive: the positive pairs.
        negative: the negative pairs.
        interval: the least and the largest similarity, apart from rounding; ``None`` if they are not known.
    """

    known: dict[Formula, Any]
    positive: Tensor
    negative: Tensor
    interval: tuple[float, float] | None = None

    def mask(self, folded: Folded) -> Tensor:
        """The pairs that a fold runs over."""
        sides = {POSITIVES: self.positive, NEGATIVES: self.negative}
        return sides[folded.over] if folded.over in sides else self.positive | self.negative


def fold_each_positive(folds: list[Folded], pairs: MaskedMatrix) -> list[Tensor]:
    """Folds over each positive, in chunks of positives of all anchors against all their references.

    Large batches read the largest number of positives from the device, unless all sums are of smooth curves; in small ones
    every reference is a candidate, and those that are not positives are masked.

    Examples:
        >>> import torch
        >>> from likewise.formula import EACH_POSITIVE, NEGATIVES, add_up, relu
        >>> S, labels = torch.tensor([[1.0, 0.5, 0.7]]), torch.tensor([[False, True, False]])
        >>> pairs = MaskedMatrix({s: S}, labels, torch.tensor([[False, False, True]]))
        >>> fold_each_positive([add_up(add_up(relu(s - s_p), NEGATIVES), EACH_POSITIVE)], pairs)
        [tensor([0.2000])]
    """
    S, (m, n) = pairs.known[s], pairs.positive.shape
    index = find_candidates(pairs.positive, large=reads_count(folds, (m, n), pairs.interval)).index
    sums = sum_matched(folds, pairs, index) if index.shape[1] >= MANY else {}

    def start(S: Tensor, some: Tensor, *chunks: Tensor) -> tuple[Tensor, ...]:
        return _start_positives(S, some, index, folds, pairs, dict(zip(sums, chunks, strict=True)))

    inner = find_inner(folds) - sums.keys()
    all_columns = any(node.over is not POSITIVES for node in inner)
    width = n if all_columns else index.shape[1] if inner else 1
    steps = map_positives(S, index, start, *sums.values(), width=width)
    results, first = [], 0
    for folded, size in zip(folds, _state_sizes(folds, S), strict=True):
        states = [step[first : first + size] for step in steps]
        results.append(folded.fold.finish(reduce(folded.fold.merge, states)))
        first += size
    return results


def find_inner(folds: list[Folded]) -> set[Folded]:
    """The folds inside of folds over each positive that have one number for each positive."""
    nodes = walk(*(folded.curve for folded in folds))
    return {node for node in nodes if isinstance(node, Folded) and node.rank is Rank.POSITIVE}


def reads_count(folds: list[Folded], shape: tuple[int, int], interval: tuple[float, float] | None) -> bool:
    """Whether folds over each positive of a matrix are fast only if the number of positives is read from the device.

    Examples:
        >>> from likewise.formula import per_triplet, softplus
        >>> total = per_triplet(softplus(s - s_p)).total
        >>> [reads_count([total], (512, 512), interval) for interval in (None, (-1.0, 1.0))]
        [True, False]
    """
    if shape[0] * shape[1] ** 2 <= COUNT_FROM:
        return False
    return is_transformed() or any(match_smooth(node, interval) is None for node in find_inner(folds))


def sum_matched(folds: list[Folded], pairs: MaskedMatrix, index: Tensor) -> dict[Formula, Tensor]:
    """The sums of smooth curves and of soft steps that folds contain, ``(m, K)`` each; none under transformations, which enumerate.

    Examples:
        >>> from likewise.formula import EACH_POSITIVE, NEGATIVES, add_up, sigmoid
        >>> rank = add_up(sigmoid((s - s_p) / 0.1), NEGATIVES)
        >>> S, positive = torch.tensor([[0.5, 0.7, 0.2]]), torch.tensor([[True, False, False]])
        >>> pairs = MaskedMatrix({s: S}, positive, ~positive)
        >>> list(sum_matched([add_up(rank, EACH_POSITIVE)], pairs, torch.tensor([[0]])).values())
        [tensor([[0.9282]])]
    """
    S, n = pairs.known[s], pairs.positive.shape[1]
    if is_transformed() or torch.compiler.is_compiling() or S.is_meta:
        return {}
    few = index.numel() * n <= ENUMERATE_UP_TO.get(S.device.type, ENUMERATE_UP_TO["cuda"])
    may_read = can_synchronize(S, large=True)
    found: dict[Formula, Tensor] = {}
    for node in walk(*(folded.curve for folded in folds)):
        if not isinstance(node, Folded):
            continue
        smooth = match_smooth(node, pairs.interval)
        if smooth is not None and isinstance(node.fold, Count):  # all are positive
            found[node] = pairs.negative.sum(dim=1, keepdim=True).expand(index.shape)
        elif smooth is not None:
            sums = sum_smooth(S, pairs.negative, smooth)
            found[node] = sums if index.shape[1] == n else sums.gather(1, index)
        elif few:
            continue
        elif (step := match_step(node)) is not None:
            found[node] = sum_steps(S, pairs.negative, index, step)
        elif may_read:
            total = sum_positives(node, pairs.known, pairs.positive, index)
            if total is not None:
                found[node] = total
    return found


def _state_sizes(folds: list[Folded], like: Tensor) -> list[int]:
    one = like.detach()[:1, :1]
    return [len(folded.fold.start(one, one > one)) for folded in folds]


def map_positives(
    S: Tensor, index: Tensor, compute: Callable[..., tuple[Tensor, ...]], *others: Tensor, width: int | None = None
) -> list[tuple[Tensor, ...]]:
    """Apply a function to some positives of all anchors at a time.

    Args:
        S: similarities, ``(m, n)``.
        index: the columns of the candidates, ``(m, K)``; one that is not a positive is left to the function.
        compute: maps the similarities, the columns of some candidates, ``(m, k)``, and their other numbers to tensors.
        others: more numbers of each candidate, ``(m, K)``.
        width: the number of columns that the function compares a candidate with; by default all.

    Examples:
        >>> import torch
        >>> S = torch.tensor([[1.0, 0.5, 0.7]])
        >>> map_positives(S, torch.tensor([[1]]), lambda S, some: (S.gather(1, some),))
        [(tensor([[0.5000]]),)]
    """
    m, n = len(S), S.shape[1] if width is None else width
    size = max(TRIPLETS_AT_ONCE.get(S.device.type, TRIPLETS_AT_ONCE["cuda"]) // max(m * n, 1), 1)
    # all steps stay in memory if they fit; otherwise each is recomputed in the backward pass
    roomy = index.shape[1] * m * n <= 2**24
    chunks = zip(*(torch.split(each, size, dim=1) for each in (index, *others)), strict=True)
    return [compute(S, *some) if roomy else call_recomputed(compute, S, *some) for some in chunks]


def find_candidates(mask: Tensor, *, large: bool, known: PositiveIndex | None = None) -> PositiveIndex:
    """The columns that may be true in each row of a mask, ``(m, k)``, ascending unless known, and which of them are.

    Args:
        mask: booleans, ``(m, n)``.
        large: whether the batch is large enough to synchronize with a device.  ``k`` is the largest number in a row if
            it may be read; otherwise every column is a candidate.
        known: columns that contain all that are true, if they are known.

    Examples:
        >>> import torch
        >>> find_candidates(torch.tensor([[False, True, True], [True, False, False]]), large=False).index
        tensor([[1, 2],
                [0, 1]])
    """
    m, n = mask.shape
    if known is not None:
        exists = mask.gather(1, known.index)
        return PositiveIndex(known.index, exists if known.exists is None else exists & known.exists)
    if not can_synchronize(mask, large=large):
        return PositiveIndex(torch.arange(n, device=mask.device)[None, :].expand(m, n), mask)
    most = max(int(mask.sum(dim=1).max()), 1) if m else 1
    index = mask.to(torch.uint8).topk(min(most, n), dim=1).indices.sort(dim=1).values
    return PositiveIndex(index, mask.gather(1, index))


def _start_positives(
    S: Tensor, some: Tensor, index: Tensor, folds: list[Folded], pairs: MaskedMatrix, sums: dict[Formula, Tensor]
) -> tuple[Tensor, ...]:
    """The states of folds over some positives ``(m, k)``, one after the other.

    Their inner folds over negatives run over similarities ``(m, k, n)``, unless their sums are known; those over positives,
    over the columns of all candidates, ``(m, k, K)``.
    """
    m, k = some.shape
    everywhere = {node: _lift(node, value) for node, value in pairs.known.items()}
    everywhere |= {s: S[:, None, :], s_p: S.gather(1, some)[:, :, None]}
    for node in walk(*(folded.curve for folded in folds)):
        if isinstance(node, AtPositive):
            everywhere[node] = pairs.known[node.pair].gather(1, some)[:, :, None]
        elif isinstance(node, PerTriplet):
            everywhere[node] = pairs.known[node].at_positives(some, S.shape[1])
        elif node in sums:
            everywhere[node] = sums[node][:, :, None]
        elif isinstance(node, Folded) and node.rank is Rank.POSITIVE:
            known, keep = everywhere, pairs.mask(node)
            if node.over is POSITIVES:
                known, keep = _gather_columns(everywhere, index), keep.gather(1, index)
            keep = keep[:, None, :].expand(m, k, keep.shape[1])
            values = _as_tensor(evaluate(node.curve, known), S).expand(keep.shape)
            state = node.fold.start(values.flatten(0, 1), keep.flatten(0, 1))
            everywhere[node] = node.fold.finish(state).view(m, k, 1)
    keep = pairs.positive.gather(1, some)
    states: list[Tensor] = []
    for folded in folds:
        value = _as_tensor(evaluate(folded.curve, everywhere), S).expand(m, k, 1)[:, :, 0]
        if not value.is_floating_point():  # a count, which every fold accepts
            value = value.to(S.dtype)
        states += folded.fold.start(value, keep)
    return tuple(states)


def _gather_columns(known: dict[Formula, Any], index: Tensor) -> dict[Formula, Any]:
    """Numbers of all columns, ``(m or 1, k or 1, n)``, at some of them ``(m, K)``; other numbers stay."""
    chosen: dict[Formula, Any] = {}
    for node, value in known.items():
        if not isinstance(value, Tensor) or node.rank is not Rank.PAIR:
            chosen[node] = value
        elif not isinstance(node, Apply):  # values derived from numbers are computed from the chosen ones
            shape = (len(index), value.shape[1], value.shape[2])
            at = index[:, None, :].expand(len(index), value.shape[1], index.shape[1])
            chosen[node] = value.expand(shape).gather(2, at)
    return chosen


def _lift(node: Formula, value: Any) -> Any:
    """A number per anchor ``(m, 1)`` or per pair ``(m, n)`` with an axis for positives."""
    if not isinstance(value, Tensor) or value.ndim < 2:
        return value
    return value[:, :, None] if node.rank is Rank.ANCHOR else value[:, None, :]


def _as_tensor(value: Any, like: Tensor) -> Tensor:
    return value if isinstance(value, Tensor) else like.new_full((), value)
